/* parts.h - functions that several networks share: declaring parameters, the classifier, walking a tree, memory, options. */
#ifndef VPPS_PARTS_H
#define VPPS_PARTS_H

#include "models.h"

/* ---------------------------------------------------------------- parameters */

/* A parameter to declare: a vector if cols is 0, a lookup table of `count` entries if count > 0, else a matrix. */
typedef struct part_parameter {
    vpps_param *param;
    const char *name;
    uint32_t count, rows, cols;
    const vpps_init *init; /* initial values; NULL: Glorot for matrices, zero for vectors */
} part_parameter;

vpps_status parts_declare(vpps_model *model, const part_parameter *parameters, size_t n);
/* Declares a layer's parameters, named NAME.W, ... in the first layer (`number` 0), NAME2.W, ... in the second. */
vpps_status parts_declare_layer(vpps_model *model, const char *name, uint32_t number, const part_parameter *parameters,
                                size_t n);

/* Initial embeddings: uniform in +-0.05, in place of the GloVe vectors of Tai, Socher and Manning (2015). */
extern const vpps_init part_small;
/* Initial biases of forget gates: 1, so that the gates begin open (Jozefowicz, Zaremba and Sutskever 2015). */
extern const vpps_init part_one;

/* Applies the network's dropout to x, if it has any. */
vpps_node part_dropout(const net_config *c, vpps_graph *g, vpps_node x);

/* ---------------------------------------------------------------- the classifier */

/* A classifier p(y | position) = softmax(W_s h + b_s): logits and -log p(label). With mlp > 0 a hidden layer of mlp units comes first, h' =
 * tanh(W_h h + b_h). Dropout applies to the input of each layer. The classifier is either a cell of its own, which is applied at the
 * selected positions and pulls h as one vector or as several to concatenate, or code inside other cells. */
typedef struct part_classifier {
    const net_config *config;
    /* number of elements of the input h (all its vectors together); mlp: of the hidden layer h' */
    uint32_t inputs, mlp;
    uint32_t n_pulls; /* number of vectors of equal size whose concatenation is the input h; 0 means 1 */
    vpps_param W_h, b_h, W_s, b_s;
    vpps_cell cell;
} part_classifier;

/* Declares the parameters of a classifier of an input vector h. If h is the concatenation of several vectors, the caller sets n_pulls,
 * their number. A network that needs another order of parameters declares them itself and sets `config`, `inputs` and `mlp`. */
vpps_status part_classifier_declare(part_classifier *c, vpps_model *model, const net_config *config, uint32_t inputs,
                                    uint32_t mlp);
vpps_status part_classifier_record(part_classifier *c, vpps_model *model);

/* Records the computation of logits from h in a cell that is being recorded, and returns the logits. */
vpps_node part_logits(const part_classifier *c, vpps_graph *recorder, vpps_node h);

/* Adds the classifier to a cell that is being recorded. The next index that the cell takes in (pulls) is the label; its next two outputs
 * (pushed) are logits and -log p(label), and the third is the training loss if that differs. */
void part_classifier_add(const part_classifier *c, vpps_graph *recorder, vpps_node h);

/* Classifies position k if `heads` selects the position: applies the classifier's cell to h, the position's n_pulls vectors, and fills in
 * entry k of `scores`. */
void part_classify(const part_classifier *c, vpps_graph *g, uint32_t k, const vpps_node *h, uint32_t label,
                   net_heads heads, const net_scores *scores);

/* Returns the label of node k of a tree, or UINT32_MAX if the node has no loss; with NET_HEADS_ROOT only the root has a loss. */
uint32_t part_label(const vpps_tree *tree, uint32_t k, net_heads heads);

/* ---------------------------------------------------------------- vertices */

/* Scratch memory for n vertices. part_reserve_vertices returns the array, NULL when out of memory. */
typedef struct part_vertices {
    vpps_vertex *at;
    uint32_t n;
} part_vertices;
vpps_vertex *part_reserve_vertices(part_vertices *v, uint32_t n);

/* Adds a tree's vertices to a graph, bottom-up, with cells that contain the classifier: leaf(word, label) at leaves,
 * inner(left, right; label) at inner nodes. `choose` picks the inner cell of a node; NULL: the first. */
vpps_status part_add_tree(vpps_graph *g, const vpps_tree *tree, vpps_cell leaf, const vpps_cell *inner,
                          uint32_t n_inner, uint32_t (*choose)(const vpps_tree *, uint32_t node),
                          const part_classifier *classifier, net_heads heads, const net_scores *scores,
                          part_vertices *scratch);

/* ---------------------------------------------------------------- a network's memory */

/* The first member of most networks' structs. */
typedef struct part_net {
    net_config config;
    part_classifier classifier;
    part_vertices scratch;
} part_net;

typedef vpps_status part_step(void *net, vpps_model *model);
/* Creates a network: allocates its struct of `bytes` zeros, sets its config, calls `declare` for the parameters, then `record` for the cells. */
vpps_status part_create(void **net, size_t bytes, vpps_model *model, const net_config *config, part_step *declare,
                        part_step *record);
/* Destroys a network that part_create made. */
void part_destroy(void *net);

/* ---------------------------------------------------------------- options */

/* Options of networks on trees: hidden, embed, dropout, loss; ends with a NULL name. */
extern const option_row part_options[];
extern const option_row part_root_options[]; /* options of networks on whole sentences: hidden, embed, dropout */

/* Rows of command-line options for the tables of several networks. */
#define PART_MOST_HIDDEN 65536
#define PART_HIDDEN(help)                                                                                              \
    { "hidden", "N", help, OPTION_U32, offsetof(net_config, hidden), 1, PART_MOST_HIDDEN, true }
#define PART_EMBED(help)                                                                                               \
    { "embed", "N", help, OPTION_U32, offsetof(net_config, embed), 1, 65536, true }
#define PART_LAYERS(help)                                                                                              \
    { "layers", "N", help, OPTION_U32, offsetof(net_config, layers), 1, NET_LAYERS, true }
/* The most attention heads: a cell gathers and scatters at most 64 values, and a head needs two. */
#define PART_MOST_HEADS 31
#define PART_HEADS                                                                                                     \
    {                                                                                                                  \
        "heads", "N", "Heads of the attention; each has the N-th part of the state", OPTION_U32,                       \
            offsetof(net_config, heads), 1, PART_MOST_HEADS, true                                                      \
    }
#define PART_DROPOUT(help)                                                                                             \
    { "dropout", "P", help, OPTION_F32, offsetof(net_config, dropout), 0, 0.99, false }

#endif
