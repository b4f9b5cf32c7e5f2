/* corpus.h - the data a command works on: its parts as they were read, and their ids in the network's vocabularies. */
#pragma once

#include "cli/input_form.h"
#include "cli/options.h"
#include "io/edge_lists.h"

/* The network's vocabularies; a kind of data has some of them. */
enum {
    VOCAB_WORDS,
    VOCAB_CHARACTERS,
    VOCAB_EDGE_TYPES,
    VOCAB_CLASSES, /* tags, target words, labels (after those of the training part, more); without it numbers */
    VOCAB_LEXICON, /* all words a lattice is built with; their ids are not the network's */
    N_VOCABS
};

/* A file that examples came from, and the number of its first one. */
typedef struct corpus_file {
    char *name, *target; /* target: of a pair; else NULL */
    uint32_t first;
} corpus_file;

/* One part of the data. What its kind does not have is NULL. */
typedef struct corpus_split {
    bool present;
    corpus_file *files; /* none: generated */
    size_t n_files;
    uint64_t content; /* a hash of the files' text, wherever they lie */
    vpps_treebank *bank;
    vpps_constituents *constituents; /* trees with names, until all files are read: then they become the bank */
    vpps_sentences *sentences, *target;
    vpps_sentences *words; /* LATTICE_PAIRS: the sources, until all files are read */
    vpps_lattices *lattices;
    vpps_spellings *spellings;
    vpps_edge_lists *edge_lists; /* NODES, GRAPHS: their edges; the nodes are the sentences' words */
    char *
        text; /* of an own form (task.h), for prediction: that of example i ends at text_ends[i], where the next one's begins */
    size_t *text_ends;
    vpps_vocab *numbers[N_VOCABS]; /* of data without names, "0" and so on: the names of its ids */
    uint32_t *stream;              /* TEXT: all words in the network's ids, one example after the other */
    uint32_t *starts; /* TEXT: example i is stream[starts[i]] to stream[starts[i + 1]], which it shares with the next */
    uint32_t *ids[N_VOCABS]; /* what was read -> the network's vocabulary; NULL: the same ids */
    uint32_t n_all;          /* examples read */
    uint32_t *examples;      /* those to use, n_examples numbers below n_all */
    uint32_t n_examples;
} corpus_split;

/* Room for one example in the network's ids. */
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
    bool tags_known, keeps_tags; /* constituents: is it known whether labels keep their function tags, and do they? */
    input_reading input;         /* predict: how what is added is read */
    corpus_scratch scratch;
    char *texts[OPTIONS_MAX]; /* options that a checkpoint gave as text; settings point to them */
    uint32_t n_texts;
    char **notes; /* corpus_notes.h */
    size_t n_notes;
} corpus;

extern const char *const vocab_names[N_VOCABS]; /* in a checkpoint's metadata */

/* The word that marks the end of a sentence to be generated, and stands before its first word. */
#define END_WORD "<eos>"

/* How many sentences, trees or lattices were read, not counting the target's. */
uint32_t corpus_read_so_far(const corpus_split *split);

/* The file of number i of them; NULL: they were generated. */
const corpus_file *corpus_file_of(const corpus_split *split, uint32_t i);

/* Where number i of them stands: "FILE:LINE". */
void corpus_place(const corpus_split *split, uint32_t i, char *text, size_t n);

/* Frees what a part holds, and clears it. */
void corpus_clear_split(corpus_split *split);

/* Frees all that c holds, and clears it. */
void corpus_close(corpus *c);

/* Checks that the checkpoint at `path` had all vocabularies that the network needs. Fails with FORMAT. */
vpps_status corpus_check(const corpus *c, const settings *s, const char *path);

/* Sets s->net's sizes that follow from the vocabularies. */
void corpus_set_sizes(const corpus *c, settings *s);

/* The order of an epoch, into order[0 .. n_examples): it follows from seed and epoch alone, so that a resumed epoch has
 * the same one. */
void corpus_shuffle(const corpus_split *split, uint64_t seed, uint32_t epoch, uint32_t *order);
