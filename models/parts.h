/* parts.h - functions that several networks share: declaring parameters, the classifier, walking a tree, memory, options. */
#ifndef VPPS_PARTS_H
#define VPPS_PARTS_H

#include "models.h"

/* Returns the status from the enclosing function if a call fails. */
#define PART_TRY(call)                                                                                                 \
    do {                                                                                                               \
        const vpps_status part_status_ = (call);                                                                       \
        if (part_status_ != VPPS_OK) return part_status_;                                                              \
    } while (0)
#define PART_COUNT(array) (sizeof(array) / sizeof *(array))

/* ---------------------------------------------------------------- parameters */

/* A parameter to declare: a vector if cols is 0, a lookup table of `count` entries if count > 0, else a matrix. */
typedef struct part_parameter {
    vpps_param *param;
    const char *name;
    uint32_t count, rows, cols;
    const vpps_init *init; /* initial values; NULL: Glorot for matrices, zero for vectors */
} part_parameter;

vpps_status parts_declare(vpps_model *model, const part_parameter *parameters, size_t n);
/* A layer's name, with which its parameters' and cells' names begin: part_layer_name returns NAME for layer 0, NAME2 for layer 1, and so on. */
typedef struct part_name {
    char text[64];
} part_name;
part_name part_layer_name(const char *name, uint32_t layer);
/* Declares a layer's parameters, named NAME.W, ... in layer 0, NAME2.W, ... in layer 1. */
vpps_status parts_declare_layer(vpps_model *model, const char *name, uint32_t layer, const part_parameter *parameters,
                                size_t n);

/* Weights and biases of up to four gates; gate k of an input x and a state h is W[k] x + U[k] h + b[k]. */
enum { PART_GATES = 4 };
typedef struct part_gates {
    vpps_param W[PART_GATES], U[PART_GATES], b[PART_GATES];
} part_gates;
/* Declares a gate's parameters for each letter of `gates`: for i NAME.W_i, NAME.U_i and NAME.b_i (with NAME "": W_i, U_i, b_i). The bias of
 * a forget gate f begins as 1 (part_one). */
vpps_status part_gates_declare(part_gates *p, vpps_model *model, const char *name, const char *gates, uint32_t inputs,
                               uint32_t hidden);
/* Records a gate. x or h may be a list, such as of children's states; then the result is a list, too. */
vpps_node part_gate(const part_gates *p, vpps_graph *g, int k, vpps_node x, vpps_node h);

/* Two matrices of a gate in a vertex with two children: the first multiplies h of the left child, the second h of the right child. */
typedef vpps_param part_pair[2];
/* Declares n pairs of matrices of `size` rows and columns. The pair of gate "i_" is named U_i_lSUFFIX and U_i_rSUFFIX. */
vpps_status part_pairs_declare(part_pair *U, vpps_model *model, const char *const *gates, size_t n, uint32_t size,
                               const char *suffix);

/* Initial embeddings: uniform in +-0.05, in place of the GloVe vectors of Tai, Socher and Manning (2015). */
extern const vpps_init part_small;
/* Initial biases of forget gates: 1, so that the gates begin open (Jozefowicz, Zaremba and Sutskever 2015). */
extern const vpps_init part_one;

/* Applies the network's dropout to x, if it has any. */
vpps_node part_dropout(const net_config *c, vpps_graph *g, vpps_node x);

/* ---------------------------------------------------------------- the classifier */

/* A classifier of a vector h: logits W_s h + b_s, p(label) = softmax(logits), and the loss -log p(label). With mlp > 0
 * a hidden layer of mlp units comes first, h' = tanh(W_h h + b_h). Dropout applies to the input of each layer. It is a
 * part of other cells, or a cell of its own, which is applied to one word or node and reads h as one vector or in
 * n_pulls pieces. */
typedef struct part_classifier {
    const net_config *config;
    /* elements of the input h (all its vectors together), and of the hidden layer h' */
    uint32_t inputs, mlp;
    uint32_t n_pulls; /* number of vectors of equal size whose concatenation is the input h; 0 means 1 */
    vpps_param W_h, b_h, W_s, b_s;
    vpps_cell cell;
} part_classifier;

/* Declares the parameters of a classifier of an input vector h. If h is the concatenation of several vectors, the caller sets n_pulls,
 * their number. A network that needs another order of parameters declares them itself and sets `config` and `inputs`. */
vpps_status part_classifier_declare(part_classifier *c, vpps_model *model, const net_config *config, uint32_t inputs,
                                    uint32_t mlp);
/* Declares a classifier's parameters, and adds its cell (the function that a vertex applies to h) to the model. */
vpps_status part_classifier_make(part_classifier *c, vpps_model *model, const net_config *config, uint32_t inputs,
                                 uint32_t mlp);

/* Records the computation of logits from h in a cell that is being recorded, and returns the logits. */
vpps_node part_logits(const part_classifier *c, vpps_graph *recorder, vpps_node h);

/* Adds the classifier to a cell that is being recorded. The next index that the cell takes in (pulls) is the label. Its next two outputs
 * (pushed) are logits and -log p(label); the third is the training loss, if label smoothing or class weights make it another loss. */
void part_classifier_add(const part_classifier *c, vpps_graph *recorder, vpps_node h);

/* Classifies word or node k of an example: adds its logits and loss to g, and stores both in entry k of the arrays in `scores`. The
 * classifier's input is h[0] or, if c->n_pulls > 1, the concatenation of the c->n_pulls vectors h[0], h[1], ... If no class of training is
 * named by `label`, adds no loss, and logits only if `heads` is NET_HEADS_ALL. */
void part_classify(const part_classifier *c, vpps_graph *g, uint32_t k, const vpps_node *h, uint32_t label,
                   net_heads heads, const net_scores *scores);

/* ---------------------------------------------------------------- a conditional random field (crf.c) */

typedef struct part_crf {
    uint32_t classes; /* number of tags; 0: there is no random field */
    vpps_param transitions, begin, end;
    vpps_cell first, next, last;
} part_crf;

/* Declares the random field's parameters and records its cells; does nothing unless net_config.crf. */
vpps_status part_crf_make(part_crf *c, vpps_model *model, const net_config *config);

/* Returns which positions need logits: NET_HEADS_ALL if there is a conditional random field, else `heads`. */
net_heads part_crf_heads(const part_crf *c, net_heads heads);

/* Replaces the losses of a sentence's n words by terms whose sum is -log p(y); all words must have logits. Removes the
 * losses if a word's tag is unknown. */
void part_crf_add(const part_crf *c, vpps_graph *g, uint32_t n, const uint32_t *tags, const net_scores *scores);

/* Sets chain[] to the random field's scores of pairs of tags, first tags and last tags (network.chain of taggers). */
void part_crf_chain(void *net, vpps_graph *g, vpps_node chain[NET_CHAIN]);

/* ---------------------------------------------------------------- a network */

/* Scratch memory for n numbers of 32 bits, such as vertices. part_reserve makes room for n, keeps the content, and returns the memory;
 * NULL: out of memory. */
typedef struct part_memory {
    void *at;
    size_t n;
} part_memory;
void *part_reserve(part_memory *m, size_t n);

/* The first member of every network's struct. A network uses what it needs. */
typedef struct part_net {
    const network *network;
    net_config config;
    part_classifier classifier;
    part_crf crf;
    /* networks on trees: the cell of leaves; one or two cells of inner nodes, of which `choose` takes one for each
     * node */
    vpps_cell leaf, inner[2];
    /* networks on trees: returns the index in inner[] of a node's cell; NULL: 0 for all nodes */
    uint32_t (*choose)(const vpps_tree *tree, uint32_t node);
    part_memory scratch[2];
} part_net;

/* Classifies n words or nodes. Word k's vectors are output 0 of vertex at[k] and (unless `also` is NULL) of also[k]; its label is tags[k]
 * (`tags` NULL: none). Adds the losses of the conditional random field, if there is one. */
vpps_status part_classify_words(const part_net *net, vpps_graph *g, uint32_t n, const vpps_vertex *at,
                                const vpps_vertex *also, const uint32_t *tags, net_heads heads,
                                const net_scores *scores);

/* ---------------------------------------------------------------- a tree */

/* Completes a tree node's cell: makes its state h output 0, which the parent node's cell reads, and adds the
 * classifier. */
vpps_status part_tree_end(const part_net *net, vpps_graph *recorder, vpps_node h, vpps_cell *cell);

/* A network's `add`: adds a tree's vertices to a graph, bottom-up, with cells that contain the classifier: leaf(word, label) at leaves,
 * inner(left, right; label) at inner nodes. */
vpps_status part_tree_add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores);

/* The `add` of time-delay networks: adds one vertex per word of the tree to a graph; then, level by level, one vertex per two neighbours of
 * the preceding level, until one vertex is left: n words make n (n - 1) / 2 inner vertices. Only the last vertex, the root, gets scores.
 * The cells are leaf(word) and inner(left, right), whose first output is the representation. */
vpps_status part_pyramid_add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores);

/* ---------------------------------------------------------------- options */

/* Options of networks on trees: hidden, embed, dropout, loss; ends with a NULL name. */
extern const option_row part_options[];
extern const option_row part_root_options[]; /* options of networks on whole sentences: hidden, embed, dropout */

/* The greatest --hidden. The macros below are rows of option tables, shared by several networks. */
#define PART_MOST_HIDDEN 65536
#define PART_HIDDEN(help)                                                                                              \
    { "hidden", "N", help, OPTION_U32, offsetof(net_config, hidden), 1, PART_MOST_HIDDEN, true }
#define PART_EMBED(help)                                                                                               \
    { "embed", "N", help, OPTION_U32, offsetof(net_config, embed), 1, 65536, true }
#define PART_LAYERS(help)                                                                                              \
    { "layers", "N", help, OPTION_U32, offsetof(net_config, layers), 1, NET_LAYERS, true }
/* The most attention heads: a cell has at most 64 inputs or outputs, two for each head and two others. */
#define PART_MOST_HEADS 31
#define PART_HEADS                                                                                                     \
    {                                                                                                                  \
        "heads", "N", "Heads of the attention; each has the N-th part of the state", OPTION_U32,                       \
            offsetof(net_config, heads), 1, PART_MOST_HEADS, true                                                      \
    }
#define PART_DROPOUT(help)                                                                                             \
    { "dropout", "P", help, OPTION_F32, offsetof(net_config, dropout), 0, 0.99, false }
#define PART_LOSS                                                                                                      \
    {                                                                                                                  \
        "loss", "nodes|root", "Train on every labelled node, or on the root alone", OPTION_CHOICE,                     \
            offsetof(net_config, loss), 0, 0, false                                                                    \
    }
/* The row of --crf in a tagger's table of command-line options. */
#define PART_CRF                                                                                                       \
    {                                                                                                                  \
        "crf", NULL, "Learn which tag follows which, too: a conditional random field over a sentence's tags",          \
            OPTION_FLAG, offsetof(net_config, crf), 0, 0, true                                                         \
    }

#endif
