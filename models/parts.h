/* parts.h - common parts of networks: declaring parameters, the classifier, walking a tree, memory, options. */
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
/* Those of a layer: their names are NAME.W and so on, in the second layer NAME2.W. `number` is 0 for the first. */
vpps_status parts_declare_layer(vpps_model *model, const char *name, uint32_t number, const part_parameter *parameters,
                                size_t n);

/* Embeddings begin uniform in +-0.05, small (Tai, Socher and Manning 2015 begin with GloVe's). */
extern const vpps_init part_small;
/* Open forget gates at the start (Jozefowicz, Zaremba and Sutskever 2015). */
extern const vpps_init part_one;

/* x with the network's dropout, when it has one. */
vpps_node part_dropout(const net_config *c, vpps_graph *g, vpps_node x);

/* ---------------------------------------------------------------- the classifier */

/* p(y | position) = softmax(W_s h + b_s): logits and -log p(label). With `mlp` a hidden layer of so many units comes first:
 * h' = tanh(W_h h + b_h). Dropout applies to what each layer reads. It is a cell of its own, applied at the positions that
 * count, which pulls h: one vector, or several that are put together; or it lies in other cells. */
typedef struct part_classifier {
    const net_config *config;
    uint32_t inputs, mlp; /* sizes of h (of all vectors together) and h' */
    uint32_t n_pulls;     /* vectors of equal size that make h; 0: one */
    vpps_param W_h, b_h, W_s, b_s;
    vpps_cell cell;
} part_classifier;

/* Declares all of its parameters. A network may declare them itself instead, where it wants others between them; it
 * then sets `config`, `inputs` and `mlp`. More than one vector: set n_pulls. */
vpps_status part_classifier_declare(part_classifier *c, vpps_model *model, const net_config *config, uint32_t inputs,
                                    uint32_t mlp);
vpps_status part_classifier_record(part_classifier *c, vpps_model *model);

/* In a cell that is being recorded: the logits of h. */
vpps_node part_logits(const part_classifier *c, vpps_graph *recorder, vpps_node h);

/* In a cell that is being recorded, where most of its vertices count: the next index that it pulls is the label, the next
 * two values that it pushes are logits and -log p(label), and the third one is the loss that is trained on, where that is another. */
void part_classifier_add(const part_classifier *c, vpps_graph *recorder, vpps_node h);

/* Applies it to position k, represented by the n_pulls vectors h, if its label is one of the classes, or if all
 * positions are asked for; fills in scores' entry k. */
void part_classify(const part_classifier *c, vpps_graph *g, uint32_t k, const vpps_node *h, uint32_t label,
                   net_heads heads, const net_scores *scores);

/* The label of node k of a tree as its classifier wants it: beyond the classes where it does not count, as it does not at
 * nodes below the root where NET_HEADS_ROOT asks for the root alone. */
uint32_t part_label(const vpps_tree *tree, uint32_t k, net_heads heads);

/* ---------------------------------------------------------------- vertices */

/* Scratch: a vertex for each of n places. NULL: out of memory. */
typedef struct part_vertices {
    vpps_vertex *at;
    uint32_t n;
} part_vertices;
vpps_vertex *part_reserve_vertices(part_vertices *v, uint32_t n);

/* Walks a tree bottom-up: leaf(word, label) at leaves, inner(left, right; label) at inner nodes, cells with the classifier in
 * them. `choose` (may be NULL) picks the inner cell of a node. */
vpps_status part_add_tree(vpps_graph *g, const vpps_tree *tree, vpps_cell leaf, const vpps_cell *inner,
                          uint32_t n_inner, uint32_t (*choose)(const vpps_tree *, uint32_t node),
                          const part_classifier *classifier, net_heads heads, const net_scores *scores,
                          part_vertices *scratch);

/* ---------------------------------------------------------------- a network's memory */

/* Members that a network's struct may begin with. */
typedef struct part_net {
    net_config config;
    part_classifier classifier;
    part_vertices scratch;
} part_net;

/* `create` for a struct of that many bytes, all zero but the config: declare adds the parameters, record the cells. */
typedef vpps_status part_step(void *net, vpps_model *model);
vpps_status part_create(void **net, size_t bytes, vpps_model *model, const net_config *config, part_step *declare,
                        part_step *record);
/* `destroy` for it. */
void part_destroy(void *net);

/* ---------------------------------------------------------------- options */

/* The options that networks on trees have: hidden, embed, dropout, loss. Ends with a NULL name. */
extern const option_row part_options[];
extern const option_row part_root_options[]; /* without loss: networks that represent whole sentences only */

/* Rows of option tables that many networks have. */
#define PART_MOST_HIDDEN 65536
#define PART_HIDDEN(help)                                                                                              \
    { "hidden", "N", help, OPTION_U32, offsetof(net_config, hidden), 1, PART_MOST_HIDDEN, true }
#define PART_EMBED(help)                                                                                               \
    { "embed", "N", help, OPTION_U32, offsetof(net_config, embed), 1, 65536, true }
#define PART_LAYERS(help)                                                                                              \
    { "layers", "N", help, OPTION_U32, offsetof(net_config, layers), 1, NET_LAYERS, true }
/* A cell gathers and scatters 64 values at most, two of them of each head. */
#define PART_MOST_HEADS 31
#define PART_HEADS                                                                                                     \
    {                                                                                                                  \
        "heads", "N", "Heads of the attention; each has the N-th part of the state", OPTION_U32,                       \
            offsetof(net_config, heads), 1, PART_MOST_HEADS, true                                                      \
    }
#define PART_DROPOUT(help)                                                                                             \
    { "dropout", "P", help, OPTION_F32, offsetof(net_config, dropout), 0, 0.99, false }

#endif
