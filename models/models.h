/* models.h - the table of networks: one row per network, with all that a trainer needs to know.
 *
 * A network uses vpps.h and vpps_data.h only. It declares its parameters and records its cells on a model, and then adds examples, one
 * after the other, to a graph of that model. To add a network: write models/NAME.c with a `const network`, and name it in models.c. */
#ifndef VPPS_MODELS_H
#define VPPS_MODELS_H

#include "vpps_data.h"

/* ---------------------------------------------------------------- examples */

/* What a training example is, and what a network of that kind predicts from it. Each thing predicted is a position of the example. */
typedef enum net_kind {
    NET_TREES,     /* a labelled binary tree; the network predicts a label of each node */
    NET_TAGGING,   /* a sentence with a tag for every word; the network predicts a tag of each word */
    NET_SENTENCES, /* a sentence with one label; the network predicts only this label */
    NET_TEXT, /* a sentence; the network (a language model) predicts each word but the first from the words before it */
    NET_LATTICES, /* a lattice with a tag for every character; the network predicts a tag of each node but node 0 */
    /* a sentence and its translation; the network predicts each word of the translation but the first */
    NET_PAIRS,
    NET_LATTICE_PAIRS, /* a source lattice and its translation; the network predicts each word of the translation but the first */
    /* a dependency tree: a sentence with heads, and tags of all or some words; the network predicts each word's tag */
    NET_DEPENDENCIES,
    NET_NODES, /* a graph with typed edges, and tags of all or some nodes; the network predicts each node's tag */
    NET_GRAPHS /* a graph with edges of several types and one label; the network predicts only this label */
} net_kind;

/* The spelling of a word: the ids of its n characters. */
typedef struct net_spelling {
    const uint32_t *characters;
    uint32_t n;
} net_spelling;

/* An edge from a node of a graph to another, with the number of its type. */
typedef struct net_edge {
    uint32_t from, to, type;
} net_edge;

/* One input with its labels. Ids are ids of the network's vocabularies: words are less than net_config.words, and so on; VPPS_NO_WORD is an
 * unknown tag. Members that a kind of data does not use are zero. */
typedef struct net_example {
    const vpps_tree *tree; /* TREES */
    /* words of a sentence (at least 1), of a translation's source, or of a graph's nodes */
    vpps_sentence sentence;
    uint32_t label;                /* the label of a whole sentence or graph (kinds NET_SENTENCES, NET_GRAPHS) */
    const net_spelling *spellings; /* taggers: each word's characters; none for a word that has an embedding */
    const vpps_lattice *lattice;   /* networks on lattices; ids of characters are less than net_config.characters */
    /* networks that translate: the translation, with an end-of-sentence word before and after it; a word's id is its class in the output layer */
    vpps_sentence target;
    /* networks on graphs: the graph's edges, at least one; `sentence` holds the nodes' words and tags */
    const net_edge *edges;
    uint32_t n_edges;
    const float *numbers; /* networks on graphs: the nodes' features, net_config.numbers per node */
} net_example;

/* The positions (words, nodes or whole examples) for which a network computes losses or predictions. */
typedef enum net_heads {
    NET_HEADS_LABELLED, /* losses and predictions at all positions whose label is known */
    NET_HEADS_ROOT,     /* in trees: losses and predictions only at a labelled root; else as NET_HEADS_LABELLED */
    NET_HEADS_ALL       /* predictions at all positions, and losses where the label is known */
} net_heads;

struct net_decoding;
/* The nodes that a network's `add` makes for an example, in the caller's arrays. An array has an entry for each position (word, node or
 * whole example); VPPS_NO_NODE: the caller of `add` did not request (net_heads) the position's score or loss. */
typedef struct net_scores {
    vpps_node *logits; /* each position's vector of `classes` logits */
    vpps_node *nll;    /* each position's loss -log softmax(logits)[label], or its part of a random field's (crf.c) */
    /* May be NULL. Receives one node: a scalar that is added to the example's training loss, or VPPS_NO_NODE. */
    vpps_node *cost;
    uint32_t *labels; /* may be NULL; each position's label, VPPS_NO_WORD if it has no nll */
    /* May be NULL. Language models: the recurrent states with which the example begins (zeros if n_states is 0). The
     * network's function `add` replaces them by the states after the example's last word. */
    struct net_decoding *carry;
    bool training; /* whether nll is the training loss, with net_config's class weights and label smoothing */
} net_scores;

uint32_t net_positions(net_kind kind, const net_example *x);

/* Returns whether networks of a kind tag a sentence's words or characters. */
static inline bool net_tags(net_kind kind) { return kind == NET_TAGGING || kind == NET_LATTICES; }

/* The most layers of LSTMs, GRUs or transformers that a network may have. */
#define NET_LAYERS 16

/* The maximum number of recurrent states of a network that generates a translation or a text. */
#define NET_STATES (2 * NET_LAYERS + 1) /* h and c of each LSTM layer, and the vector that input feeding passes on */
typedef struct net_decoding {
    vpps_node states[NET_STATES]; /* recurrent states, which each word replaces */
    uint32_t n_states;
    const vpps_node *memory; /* the encoder's vectors, which attention reads at every word */
    uint32_t n_memory;
    vpps_node logits; /* scores of the next word */
} net_decoding;

/* Inputs and results of greedy search in which the device chooses all words. */
typedef struct net_greedy {
    uint32_t end_word, limit; /* number of the end word; limit: most words of a translation, end word included */
    /* The caller's `limit` entries, set to scalar nodes, whose values are the chosen words' numbers. Only end words follow an end word. */
    vpps_node *words;
    vpps_node log_p; /* scalar: log-probability of the words up to the first end word */
} net_greedy;

/* Scores of a chain of tags. NEXT: a matrix with the scores of pairs of successive tags (a row for each preceding tag). BEGIN, END: vectors
 * with the scores of each tag as the first, and as the last one. */
enum { NET_CHAIN_NEXT, NET_CHAIN_BEGIN, NET_CHAIN_END, NET_CHAIN };

/* ---------------------------------------------------------------- configuration */

/* The kinds of generated trees that networks on trees learn if no data are given, in the order of --generate's words. */
typedef enum net_generator { NET_LISTOPS, NET_COMPLETE_TREES, NET_GENERATORS } net_generator;

/* The sizes and options of a network. */
typedef struct net_config {
    /* sizes of the data's vocabularies */
    uint32_t words, characters, classes, edge_types;
    uint32_t embed, hidden;
    uint32_t layers;          /* layers of LSTMs or transformer, or rounds of a graph network; 0: one */
    uint32_t numbers;         /* networks on graphs: number of features of a node */
    uint32_t heads;           /* number of attention heads */
    uint32_t feed_forward;    /* units of a transformer's feed-forward layers; 0: 4 * hidden */
    uint32_t character_embed; /* elements of a character's embedding; a word's has `embed` elements */
    uint32_t mlp;             /* units of the classifier's hidden layer; 0: no such layer */
    uint32_t steps;           /* language models: number of words of an example; 0: an example is a sentence */
    /* language models: whether an example begins with the states with which the preceding example ended */
    bool carry;
    uint32_t turns; /* adaptive computation (act.c): how often a word is read at most */
    float ponder;   /* adaptive computation: the loss added for each reading of a word */
    bool attention;
    bool input_feeding; /* whether the decoder also reads its latest attention output; needs attention */
    bool crf;           /* taggers: whether a conditional random field (crf.c) chooses a sentence's tags */
    float dropout;
    float label_smoothing;    /* label smoothing of the training loss (vpps_cross_entropy_with) */
    bool weighted;            /* whether the training loss weights classes by class_weights */
    vpps_param class_weights; /* a frozen vector of one weight per class, declared before the network is made */
    uint32_t loss;            /* networks on trees: which nodes have a training loss (NET_HEADS_LABELLED, _ROOT) */
} net_config;

/* ---------------------------------------------------------------- options: a table row each */

typedef enum option_kind {
    OPTION_U32,    /* the value is a uint32_t in [min, max] */
    OPTION_U64,    /* uint64_t, any value */
    OPTION_BYTES,  /* the value is a uint64_t, which may have a suffix K, M or G */
    OPTION_F32,    /* the value is a float in [min, max] */
    OPTION_CHOICE, /* the value is a uint32_t: the index of a word in `argument`, whose words are separated by '|' */
    OPTION_TEXT,   /* const char * */
    OPTION_FLAG    /* bool, no argument */
} option_kind;

/* A command-line option. Its value is stored `offset` bytes after the start of its struct. */
typedef struct option_row {
    const char *name, *argument, *help;
    option_kind kind;
    size_t offset;
    double min, max;
    bool fixed; /* whether the option decides shapes of parameters, so that a trained model keeps its value */
} option_row;

/* ---------------------------------------------------------------- networks */

typedef struct network {
    const char *name;          /* name of the network on the command line */
    const char *summary;       /* one line that describes the network */
    const char *source;        /* the publication that has the equations */
    const option_row *options; /* command-line options that set members of net_config; ends with a NULL name */
    const char *embedding;     /* the lookup table of word vectors, which --vectors can fill */
    net_kind kind;
    net_config defaults;
    net_generator generator; /* networks on trees: the kind of trees generated if no data are given */
    bool parity;             /* sentence classifiers: whether generated data are signs + and -, labelled by parity */
    bool spells;             /* taggers: whether embeddings of rare words are made of their characters */

    size_t bytes; /* size of the network's struct, which begins with a part_net (parts.h) */
    /* Declares the parameters and records the cells on `model`; the struct's config is set, the rest of it zero. */
    vpps_status (*build)(void *net, vpps_model *model);
    /* Adds an example to a graph of the model. */
    vpps_status (*add)(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores);
    /* NULL unless the network translates (NET_PAIRS, NET_LATTICE_PAIRS). Adds the encoder of a sentence or lattice to
     * g. Sets d's first states and d's memory (the vectors for attention), which live until the next encode. */
    vpps_status (*encode)(void *net, vpps_graph *g, const net_example *x, net_decoding *d);
    /* NULL unless the network translates or (NET_TEXT) writes text; d is all zero when a text begins. Adds a decoder
     * step to g: reads `word` (at first the end word), d's states and memory, replaces the states, sets d's logits of
     * the next word. */
    vpps_status (*decode)(void *net, vpps_graph *g, uint32_t word, net_decoding *d);
    /* Only networks that translate may have `greedy`; else NULL. Called after `encode` on the same graph; adds greedy search without
     * dropout, for vpps_forward on devices that can choose words themselves (vpps_stats.decides). */
    vpps_status (*greedy)(void *net, vpps_graph *g, const net_decoding *d, net_greedy *out);
    /* Only taggers may have `chain`; else NULL. With net_config.crf, sets chain[] to the nodes that score pairs of successive tags. */
    void (*chain)(void *net, vpps_graph *g, vpps_node chain[NET_CHAIN]);
} network;

/* The table of all networks; ends with NULL. */
extern const network *const networks[];

/* Builds a network on `model`; the caller frees *net with network_destroy, which takes NULL, too. */
vpps_status network_create(const network *n, void **net, vpps_model *model, const net_config *config);
void network_destroy(void *net);

/* Finds a network by its name. Returns NULL when there is none. */
const network *network_find(const char *name);

#endif
