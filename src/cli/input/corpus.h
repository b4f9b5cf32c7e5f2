/* corpus.h - a command's data: the splits (train, dev, test) as read, and ids of their words and labels in the network's vocabularies. */
#pragma once

#include "cli/input/input_form.h"
#include "cli/options/options.h"
#include "io/edge_lists.h"

/* The network's vocabularies; each kind of data has some of them. */
enum {
    VOCAB_WORDS,
    VOCAB_CHARACTERS,
    VOCAB_EDGE_TYPES,
    VOCAB_CLASSES, /* vocabulary of tags, target words or labels; its last entry stands for all unknown ones; NULL: classes have no names */
    VOCAB_LEXICON, /* lexicon: the words that arcs of lattices may have; VOCAB_WORDS gives the words other ids */
    N_VOCABS
};

/* A data file, and the number of the first example that came from it. */
typedef struct corpus_file {
    char *name; /* of pairs of sentences in two files, the one of source sentences */
    uint32_t first;
} corpus_file;

/* One split of the data (training, dev or test data). Members that the network's kind of data does not use are NULL. */
typedef struct corpus_split {
    bool present;
    corpus_file *files; /* data files; none if the split was generated */
    size_t n_files;
    uint64_t content; /* hash of the files' text, independent of their paths */
    vpps_treebank *bank;
    /* constituent trees as read; after the last file they are made binary and stored in `bank` */
    vpps_constituents *constituents;
    vpps_sentences *sentences, *target;
    vpps_sentences *words; /* translation from lattices: the source sentences, until their lattices are built */
    vpps_lattices *lattices;
    vpps_spellings *spellings;
    vpps_edge_lists *edge_lists; /* graph networks: the edges of all graphs; the nodes are the words of `sentences` */
    /* Prediction on dependency trees or graphs, whose answers repeat the input's lines: the texts of all examples. Text
     * i ends before text_ends[i], where text i + 1 begins. */
    char *text;
    size_t *text_ends;
    uint32_t *stream; /* language models (TEXT): the network's ids of all words, example after example */
    /* Language models: example i is stream[starts[i]] .. stream[starts[i + 1]]; its last word is also the next example's first. */
    uint32_t *starts;
    uint32_t *ids[N_VOCABS]; /* ids[k][i]: the network's id for id i as read, in vocabulary k; NULL: ids are equal */
    uint32_t n_all;          /* number of examples read */
    uint32_t *examples;      /* numbers (less than n_all) of the n_examples examples that the command uses */
    uint32_t n_examples;
} corpus_split;

/* Memory for a copy of one example, in which words have the ids of the network's vocabulary. */
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
    /* Constituent trees. keeps_tags: whether labels keep function tags, as SBJ in NP-SBJ. tags_known: whether keeps_tags has been set. */
    bool tags_known, keeps_tags;
    input_reading input; /* prediction: how the text of the examples is read */
    corpus_scratch scratch;
    char *texts[OPTIONS_MAX]; /* values of text options from a checkpoint, to which pointers in the settings refer */
    uint32_t n_texts;
    char **notes; /* notes for the user about odd data, one line each (corpus_note) */
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

void corpus_clear_split(corpus_split *split);

void corpus_close(corpus *c);

/* Checks that the checkpoint at `path` had all vocabularies that the network needs. Fails with FORMAT. */
vpps_status corpus_check(const corpus *c, const settings *s, const char *path);

/* Sets those network sizes in s->net that follow from the vocabularies, such as the number of words. */
void corpus_set_sizes(const corpus *c, settings *s);

/* Shuffles the examples of an epoch into order[0 .. n_examples). The order depends only on seed and epoch, so that a
 * resumed epoch has the same order. */
void corpus_shuffle(const corpus_split *split, uint64_t seed, uint32_t epoch, uint32_t *order);
