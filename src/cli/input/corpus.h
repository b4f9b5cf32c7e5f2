/* corpus.h - a command's data: the parts (train, dev, test) as read, and their ids in the network's vocabularies. */
#pragma once

#include "cli/input/input_form.h"
#include "cli/options/options.h"
#include "io/edge_lists.h"

/* The network's vocabularies; each kind of data has some of them. */
enum {
    VOCAB_WORDS,
    VOCAB_CHARACTERS,
    VOCAB_EDGE_TYPES,
    VOCAB_CLASSES, /* tags, target words or labels; labels unknown to training come last. NULL: numbers */
    VOCAB_LEXICON, /* all words that lattices are built with; their ids are not the network's */
    N_VOCABS
};

/* A data file, and the number of the first example that came from it. */
typedef struct corpus_file {
    char *name, *target; /* target: the file of translations; NULL unless data are pairs */
    uint32_t first;
} corpus_file;

/* One part of the data. Members that its kind of data does not use are NULL. */
typedef struct corpus_split {
    bool present;
    corpus_file *files; /* no files: the part was generated */
    size_t n_files;
    uint64_t content; /* hash of the files' text, independent of their paths */
    vpps_treebank *bank;
    vpps_constituents *constituents; /* trees with named labels, converted to `bank` once all files are read */
    vpps_sentences *sentences, *target;
    vpps_sentences *words; /* LATTICE_PAIRS: the source sentences, until all files are read */
    vpps_lattices *lattices;
    vpps_spellings *spellings;
    vpps_edge_lists *edge_lists; /* NODES, GRAPHS: the graphs' edges; the nodes are the words of `sentences` */
    char *
        /* Prediction, data with an own form (task.h): example i's text ends at text_ends[i], where the next one's
         * begins. */
        text;
    size_t *text_ends;
    vpps_vocab *numbers[N_VOCABS]; /* names of ids ("0", "1", ...) for data that have numbers only */
    uint32_t *stream;              /* TEXT: all words as the network's ids, example after example */
    /* TEXT: example i is stream[starts[i]] .. stream[starts[i + 1]]; the last word is the next example's first one. */
    uint32_t *starts;
    uint32_t *ids[N_VOCABS]; /* id as read -> id in the network's vocabulary; NULL: the same ids */
    uint32_t n_all;          /* number of examples read */
    uint32_t *examples;      /* numbers (less than n_all) of the n_examples examples to use */
    uint32_t n_examples;
} corpus_split;

/* Memory for one example whose words are the network's ids. */
typedef struct corpus_scratch {
    vpps_tree tree;
    vpps_lattice lattice;
    vpps_tree_node *nodes;
    vpps_lattice_arc *arcs;
    uint32_t *words, *tags, *target, *characters;
    net_spelling *spellings;
    net_edge *edges;
} corpus_scratch;

typedef struct corpus {
    corpus_split split[N_SPLITS];
    vpps_vocab *vocab[N_VOCABS];
    uint32_t classes;
    /* Constituents: whether it is decided that labels keep their function tags (NP-SBJ), and the decision. */
    bool tags_known, keeps_tags;
    input_reading input; /* prediction: how the text of the examples is read */
    corpus_scratch scratch;
    char *texts[OPTIONS_MAX]; /* option values that came from a checkpoint; settings point to them */
    uint32_t n_texts;
    char **notes; /* lines about odd data (corpus_notes.h) */
    size_t n_notes;
} corpus;

extern const char *const vocab_names[N_VOCABS]; /* names of the vocabularies in a checkpoint's metadata */

/* The word that ends a generated sentence; the network also reads it before the first word. */
#define END_WORD "<eos>"

/* Returns how many sentences, trees or lattices were read; a pair counts once. */
uint32_t corpus_read_so_far(const corpus_split *split);

/* Returns the file that example i came from; NULL: it was generated. */
const corpus_file *corpus_file_of(const corpus_split *split, uint32_t i);

/* Writes "FILE:LINE" of example i to `text`. */
void corpus_place(const corpus_split *split, uint32_t i, char *text, size_t n);

/* Frees a part's data and clears the part. */
void corpus_clear_split(corpus_split *split);

/* Frees a corpus's data and clears the corpus. */
void corpus_close(corpus *c);

/* Checks that the checkpoint at `path` had all vocabularies that the network needs. Fails with FORMAT. */
vpps_status corpus_check(const corpus *c, const settings *s, const char *path);

/* Sets those sizes in s->net that follow from the vocabularies. */
void corpus_set_sizes(const corpus *c, settings *s);

/* Shuffles the examples of an epoch into order[0 .. n_examples). The order depends only on seed and epoch, so that a
 * resumed epoch has the same order. */
void corpus_shuffle(const corpus_split *split, uint64_t seed, uint32_t epoch, uint32_t *order);
