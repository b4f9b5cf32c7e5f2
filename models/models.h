/* models.h - the networks, as a trainer sees them: a table with one row a network.
 *
 * A network is written against vpps.h and vpps_data.h alone. It declares its parameters and records its cells on a model,
 * and then adds one example after the other to a graph of that model. To add a network: write models/NAME.c with a
 * `const network`, and name it in models.c.
 */
#ifndef VPPS_MODELS_H
#define VPPS_MODELS_H

#include "vpps_data.h"

/* ---------------------------------------------------------------- examples */

/* The kind of data that a network learns from, and its positions: the places for which the network predicts something, in order. */
typedef enum net_kind {
    NET_TREES,         /* a labelled binary tree; its nodes */
    NET_TAGGING,       /* a sentence with a tag for every word; its words */
    NET_SENTENCES,     /* a sentence with a label; the sentence */
    NET_TEXT,          /* a sentence; its words but the first, each said from those before it */
    NET_LATTICES,      /* a lattice with a tag for every character; its nodes but the first */
    NET_PAIRS,         /* a sentence and its translation; the target's words but the first */
    NET_LATTICE_PAIRS, /* a lattice and its translation; the same */
    NET_DEPENDENCIES,  /* a dependency tree: a sentence with heads, and a tag for every word, or for some; its words */
    NET_NODES,         /* a graph whose edges have types, and a tag for every node, or for some; its nodes */
    NET_GRAPHS         /* such a graph with a label; the graph */
} net_kind;

/* The characters of a word. */
typedef struct net_spelling {
    const uint32_t *characters;
    uint32_t n;
} net_spelling;

/* An edge of a graph, between two of its nodes. */
typedef struct net_edge {
    uint32_t from, to, type;
} net_edge;

/* One input with its labels. All ids are the network's: words below net_config.words, and so on; VPPS_NO_WORD stands for an unknown tag.
 * Members that a kind does not use are zero. */
typedef struct net_example {
    const vpps_tree *tree;  /* TREES */
    vpps_sentence sentence; /* TAGGING, SENTENCES, TEXT, DEPENDENCIES, PAIRS: the source. SENTENCES: at least 1 word */
    uint32_t label;         /* SENTENCES, GRAPHS */
    const net_spelling *spellings; /* TAGGING: of each word; n is 0 for a word that has an embedding of its own */
    const vpps_lattice *lattice;   /* LATTICES, LATTICE_PAIRS; the characters' ids are those of net_config.characters */
    vpps_sentence target;          /* PAIRS, LATTICE_PAIRS: ids are classes. It begins and ends with the end word. */
    const net_edge *edges;         /* NODES, GRAPHS, whose nodes' words, and tags, are the sentence's: at least 1 */
    uint32_t n_edges;
    const float *numbers; /* NODES, GRAPHS: net_config.numbers of each node */
} net_example;

/* The positions at which an example's losses are taken, or predictions made. */
typedef enum net_heads {
    NET_HEADS_LABELLED, /* every position whose label is known */
    NET_HEADS_ROOT,     /* TREES: the root, if it has a label; else as LABELLED */
    NET_HEADS_ALL       /* every position, labelled or not: for prediction */
} net_heads;

/* The nodes an example's positions made (arrays of net_positions(), the caller's); VPPS_NO_NODE where none was asked
 * for. */
struct net_decoding;
typedef struct net_scores {
    vpps_node *logits; /* classes x 1 */
    vpps_node *nll;    /* scalar: -log softmax(logits)[label], or crf.h's; only where the label is known */
    vpps_node *cost; /* one, may be NULL: scalar that the example's training loss has beside them, where there is one */
    uint32_t *labels; /* may be NULL: the label that nll is of; VPPS_NO_WORD where there is none */
    /* TEXT, may be NULL. Given: the states that the first word is read with; none: zeros. `add` replaces them by the states after the last
     * word. */
    struct net_decoding *carry;
    bool training; /* nll is the loss that is trained on, with net_config's weights and smoothing */
} net_scores;

uint32_t net_positions(net_kind kind, const net_example *x);

/* Does a network of that kind tag the words or characters of a sentence? */
static inline bool net_tags(net_kind kind) { return kind == NET_TAGGING || kind == NET_LATTICES; }

/* The most layers that a network may have, of an LSTM, a GRU or a transformer. */
#define NET_LAYERS 16

/* The state of a network of pairs, or of text, while it makes a target, or a text, word by word. */
#define NET_STATES (2 * NET_LAYERS + 1) /* an LSTM's h and c of each layer, and what it fed to itself */
typedef struct net_decoding {
    vpps_node states[NET_STATES]; /* vectors that change with every word */
    uint32_t n_states;
    const vpps_node *memory; /* vectors that do not: what attention reads */
    uint32_t n_memory;
    vpps_node logits; /* of the next word */
} net_decoding;

/* The results of greedy search, of which the device decides all words. */
typedef struct net_greedy {
    uint32_t end_word, limit; /* given: at most so many words, the end word counted */
    vpps_node *words; /* given, with room for `limit`: scalars, the numbers of the words; the end word has no others
                                 after it */
    vpps_node log_p;  /* scalar: log-probability of these words, up to the end word */
} net_greedy;

/* Scores of a sentence's tags: classes x classes, of the preceding tag (a row) and the tag; and of the first and the last tag, a vector
 * each. */
enum { NET_CHAIN_NEXT, NET_CHAIN_BEGIN, NET_CHAIN_END, NET_CHAIN };

/* ---------------------------------------------------------------- configuration */

/* The generated data that a network on trees is trained on without data, in the order of --generate's words. */
typedef enum net_generator { NET_LISTOPS, NET_COMPLETE_TREES, NET_GENERATORS } net_generator;

/* The sizes and options of a network. The members of the first line follow from the data, the rest are options. */
typedef struct net_config {
    uint32_t words, characters, classes, edge_types;
    uint32_t embed, hidden;
    uint32_t layers;          /* of the LSTMs, or of the transformer; rounds of a graph network; 0: one */
    uint32_t numbers;         /* NODES, GRAPHS: real numbers of a node */
    uint32_t heads;           /* of attention */
    uint32_t feed_forward;    /* units of a transformer's feed-forward layers; 0: 4 times `hidden` */
    uint32_t character_embed; /* of a character; a spelled word is as large as the others' embeddings */
    uint32_t mlp;             /* of the classifier's hidden layer; 0: none */
    uint32_t steps;           /* TEXT: words of an example; 0: a sentence */
    bool carry;               /* TEXT: an example begins with the states that the preceding one has left */
    uint32_t turns;           /* of a network that decides how many it takes: the most */
    float ponder;             /* what such a turn costs */
    bool attention;
    bool input_feeding; /* of a decoder, which then has attention */
    bool crf;           /* TAGGING, LATTICES: a conditional random field over a sentence's tags (crf.h) */
    float dropout;
    float label_smoothing;    /* of the training loss: vpps_cross_entropy_with */
    bool weighted;            /* so are its weights of classes: */
    vpps_param class_weights; /* a frozen vector, which the caller has declared before it makes the network */
    uint32_t loss;            /* TREES: a net_heads, LABELLED or ROOT: where the training loss is taken */
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

/* ---------------------------------------------------------------- networks */

typedef struct network {
    const char *name;          /* on the command line */
    const char *summary;       /* one line */
    const char *source;        /* where the equations come from */
    const option_row *options; /* offsets into net_config; ends with a NULL name */
    const char *embedding;     /* the lookup table of words' vectors, which may be pretrained */
    net_kind kind;
    net_config defaults;
    net_generator generator; /* TREES */
    bool parity;             /* SENTENCES: is trained on that of signs when no data is given */
    bool spells;             /* TAGGING: takes the spellings of rare words */

    /* Declares the parameters and records the cells on `model`; *net is freed with destroy. */
    vpps_status (*create)(void **net, vpps_model *model, const net_config *config);
    /* Adds an example to a graph of that model. */
    vpps_status (*add)(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores);
    /* PAIRS, LATTICE_PAIRS, else NULL. encode adds what comes before the first word: d's states and memory (which lives
     * until the next encode). decode adds the step that reads `word` (first the end word), from d's states and memory,
     * given as nodes of g: it replaces the states, and sets the logits of the word that follows. TEXT may have decode alone,
     * which begins with a d that is all zero. */
    vpps_status (*encode)(void *net, vpps_graph *g, const net_example *x, net_decoding *d);
    vpps_status (*decode)(void *net, vpps_graph *g, uint32_t word, net_decoding *d);
    /* PAIRS, LATTICE_PAIRS, or NULL: adds greedy search after an encode on the same graph, without dropout; for
     * vpps_forward, where the device decides (vpps_stats). */
    vpps_status (*greedy)(void *net, vpps_graph *g, const net_decoding *d, net_greedy *out);
    /* TAGGING, LATTICES, or NULL: with net_config.crf, the scores that tags have besides the logits, as nodes. */
    void (*chain)(void *net, vpps_graph *g, vpps_node chain[NET_CHAIN]);
    void (*destroy)(void *net);
} network;

/* All networks; ends with NULL. */
extern const network *const networks[];

/* The network of that name, or NULL. */
const network *network_find(const char *name);

#endif
