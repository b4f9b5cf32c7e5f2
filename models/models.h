/* models.h - the networks, as a trainer sees them: a table with one row a network.
 *
 * A network is written against vpps.h and vpps_data.h alone. It declares its parameters on a model, records its cells
 * on a graph, and then adds one input after the other to that graph. To add a network: write models/NAME.c with a
 * `const network`, and name it in models.c.
 */
#ifndef VPPS_MODELS_H
#define VPPS_MODELS_H

#include "vpps_data.h"

/* Which nodes of a tree the classifier is applied to. */
typedef enum net_heads {
    NET_HEADS_LABELLED, /* every node whose label is not -1 */
    NET_HEADS_ROOT,     /* the root, if it has a label */
    NET_HEADS_ALL       /* every node, labelled or not: for prediction */
} net_heads;

/* What a network is trained on when no data is given: a generator, in the order of --generate's words. */
typedef enum net_generator { NET_LISTOPS, NET_COMPLETE_TREES, NET_GENERATORS } net_generator;

/* What shapes a network. `words` and `classes` follow from the data, the rest are options. */
typedef struct net_config {
    uint32_t words, classes;
    uint32_t embed, hidden;
    float dropout;
    uint32_t loss; /* a net_heads, LABELLED or ROOT: where the training loss is taken */
} net_config;

/* ---------------------------------------------------------------- options: a table row each */

typedef enum option_kind {
    OPTION_U32,    /* uint32_t in [min, max] */
    OPTION_U64,    /* uint64_t, the whole range */
    OPTION_BYTES,  /* uint64_t with a suffix K, M or G */
    OPTION_F32,    /* float in [min, max] */
    OPTION_CHOICE, /* uint32_t: the index of a word in `argument`, whose words are parted by '|' */
    OPTION_TEXT,   /* const char * */
    OPTION_FLAG    /* bool, no argument */
} option_kind;

/* One command-line option; its value lies at `offset` bytes from the start of the struct it belongs to. */
typedef struct option_row {
    const char *name, *argument, *help;
    option_kind kind;
    size_t offset;
    double min, max;
    bool fixed; /* shapes parameters: cannot change once they exist */
} option_row;

/* ---------------------------------------------------------------- networks on trees */

/* The nodes that a tree's classifiers made, one of each a tree node (arrays of n_nodes, the caller's);
 * VPPS_NO_NODE where no classifier was applied. */
typedef struct net_scores {
    vpps_node *logits; /* classes x 1 */
    vpps_node *nll;    /* scalar: -log softmax(logits)[label]; only at labelled nodes */
} net_scores;

typedef struct network {
    const char *name;          /* on the command line */
    const char *summary;       /* one line */
    const char *source;        /* where the equations come from */
    const option_row *options; /* offsets into net_config; ends with a NULL name */
    net_config defaults;
    net_generator generator;

    /* Declares the parameters on `model`; *net is freed with destroy. */
    vpps_status (*create)(void **net, vpps_model *model, const net_config *config);
    /* Records the cells on g; trees can be added to that graph from now on. */
    vpps_status (*record)(void *net, vpps_graph *g);
    /* Adds a tree; words[w] is the embedding's index of the treebank's word w. */
    vpps_status (*add_tree)(void *net, vpps_graph *g, const vpps_tree *tree, const uint32_t *words, net_heads heads,
                            const net_scores *scores);
    void (*destroy)(void *net);
} network;

/* All networks; ends with NULL. */
extern const network *const networks[];

/* The network of that name, or NULL. */
const network *network_find(const char *name);

#endif
