/* parts.h - what networks on trees share: declaring parameters, the classifier, walking a tree, memory, options. */
#ifndef VPPS_PARTS_H
#define VPPS_PARTS_H

#include "models.h"

/* ---------------------------------------------------------------- parameters */

/* One parameter to declare. cols 0: a vector; count > 0: a lookup table of so many entries. */
typedef struct part_parameter {
    vpps_param *param;
    const char *name;
    uint32_t count, rows, cols;
    const vpps_init *init; /* NULL: Glorot; a vector is zero */
} part_parameter;

vpps_status parts_declare(vpps_model *model, const part_parameter *parameters, size_t n);

/* Embeddings begin uniform in +-0.05 (Tai, Socher and Manning 2015 train theirs from GloVe; without it, small). */
extern const vpps_init part_small;
/* Open forget gates at the start (Jozefowicz, Zaremba and Sutskever 2015). */
extern const vpps_init part_one;

/* x with the network's dropout, when it has one. */
vpps_node part_dropout(const net_config *c, vpps_graph *g, vpps_node x);

/* ---------------------------------------------------------------- the classifier */

/* p(y | vertex) = softmax(W_s h + b_s): logits and -log p(label), as a cell applied at the vertices that count. With
 * `mlp` a hidden layer comes first: h' = tanh(W_h h + b_h). */
typedef struct part_classifier {
    const net_config *config;
    bool mlp;
    vpps_param W_h, b_h, W_s, b_s;
    vpps_cell cell;
} part_classifier;

/* Declares all of its parameters. A network may declare them itself instead, where it wants others between them; it
 * then sets `config` and `mlp`. */
vpps_status part_classifier_declare(part_classifier *c, vpps_model *model, const net_config *config, bool mlp);
vpps_status part_classifier_record(part_classifier *c, vpps_graph *g);

/* Applies it to tree node k, whose representation is h, if `heads` asks for that node; fills in scores' entry k. */
void part_classify(const part_classifier *c, vpps_graph *g, const vpps_tree *tree, uint32_t k, vpps_node h,
                   net_heads heads, const net_scores *scores);

/* ---------------------------------------------------------------- a tree */

/* Scratch: a vertex for each of n places. NULL: out of memory. */
typedef struct part_vertices {
    vpps_vertex *at;
    uint32_t n;
} part_vertices;
vpps_vertex *part_reserve_vertices(part_vertices *v, uint32_t n);

/* Walks a tree bottom-up: leaf(word) at leaves, inner(left, right) at inner nodes, the classifier where it is asked for;
 * the vertex's first scattered value is its representation. `choose` (may be NULL) picks the inner cell of a node. */
vpps_status part_add_tree(vpps_graph *g, const vpps_tree *tree, const uint32_t *words, vpps_cell leaf,
                          const vpps_cell *inner, uint32_t n_inner,
                          uint32_t (*choose)(const vpps_tree *, uint32_t node), const part_classifier *classifier,
                          net_heads heads, const net_scores *scores, part_vertices *scratch);

/* ---------------------------------------------------------------- a network's memory */

/* What a network's struct may begin with. */
typedef struct part_net {
    net_config config;
    part_classifier classifier;
    part_vertices scratch;
} part_net;

/* `create` for a struct of that many bytes, all zero but the config: declare(net, model) adds the parameters. */
vpps_status part_create(void **net, size_t bytes, vpps_model *model, const net_config *config,
                        vpps_status (*declare)(void *net, vpps_model *model));
/* `destroy` for it. */
void part_destroy(void *net);

/* ---------------------------------------------------------------- options */

/* The options that all of these networks have: hidden, embed, dropout, loss. Ends with a NULL name. */
extern const option_row part_options[];
extern const option_row part_root_options[]; /* without loss: networks that represent whole sentences only */

#endif
