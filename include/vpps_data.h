/* vpps_data.h - data sets for dynamic networks: labelled binary trees and vocabularies.
 *
 * Independent of the engine; conventions (status, messages, ownership) are those of vpps.h.
 */
#ifndef VPPS_DATA_H
#define VPPS_DATA_H

#include "vpps.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- vocabulary: strings to dense ids */

typedef struct vpps_vocab vpps_vocab;
#define VPPS_NO_WORD UINT32_MAX

VPPS_API vpps_status vpps_vocab_create(vpps_vocab **out);
VPPS_API void vpps_vocab_destroy(vpps_vocab *v);

/* The id of a word of `len` bytes; added (with the next id) when new. Fails with ARGUMENT (an empty word, or one that
 * holds NUL or a line feed), MEMORY. */
VPPS_API vpps_status vpps_vocab_add(vpps_vocab *v, const char *word, size_t len, uint32_t *id);

/* The id, or VPPS_NO_WORD. */
VPPS_API uint32_t vpps_vocab_find(const vpps_vocab *v, const char *word, size_t len);
VPPS_API uint32_t vpps_vocab_size(const vpps_vocab *v);
/* NUL-terminated, lives as long as v; NULL for an unknown id. */
VPPS_API const char *vpps_vocab_word(const vpps_vocab *v, uint32_t id);

/* All words joined by line feeds, in order of their ids; freed by the caller. And back. Fails with MEMORY, FORMAT
 * (an empty or repeated word). */
VPPS_API vpps_status vpps_vocab_to_text(const vpps_vocab *v, char **out);
VPPS_API vpps_status vpps_vocab_from_text(vpps_vocab **out, const char *text);

/* ---------------------------------------------------------------- labelled binary trees */

typedef struct vpps_tree_node {
    int32_t label;       /* class of this node; -1: none */
    int32_t left, right; /* index in the same tree, both smaller than this node's own; -1 at a leaf */
    uint32_t word;       /* leaf: id in the treebank's vocabulary; else VPPS_NO_WORD */
} vpps_tree_node;

/* Nodes in post-order: children before parents, the root last. */
typedef struct vpps_tree {
    const vpps_tree_node *nodes;
    uint32_t n_nodes, n_leaves;
} vpps_tree;

typedef struct vpps_treebank vpps_treebank;

VPPS_API vpps_status vpps_treebank_create(vpps_treebank **out);
VPPS_API void vpps_treebank_destroy(vpps_treebank *tb);
VPPS_API uint32_t vpps_treebank_size(const vpps_treebank *tb);
/* Valid until the treebank grows; all zero for an i that is out of range. */
VPPS_API vpps_tree vpps_treebank_tree(const vpps_treebank *tb, uint32_t i);
VPPS_API const vpps_vocab *vpps_treebank_vocab(const vpps_treebank *tb);
VPPS_API uint32_t vpps_treebank_classes(const vpps_treebank *tb); /* 1 + the largest label; 0 when empty */

/* Append trees in the bracket format of the Stanford Sentiment Treebank (Socher et al. 2013), one a line:
 *     tree := '(' label ' ' word ')' | '(' label ' ' tree ' ' tree ')'       label := -1 .. 999
 * A word is any bytes but space, round brackets, CR, LF and NUL (brackets are written -LRB- and -RRB-); empty lines
 * are skipped, CR LF is accepted. Fails with IO (cannot be opened or read), FORMAT (message: file:line:column, the
 * column in bytes from 1, what was expected, what was found), MEMORY. On failure the treebank is as before. Nesting is
 * limited by memory only. `name` stands for the file in messages. */
VPPS_API vpps_status vpps_treebank_read_file(vpps_treebank *tb, const char *path);
VPPS_API vpps_status vpps_treebank_read_text(vpps_treebank *tb, const char *name, const char *text, size_t len);

/* One tree as a line of text, in the format above, appended to `file`. Fails with IO, ARGUMENT, MEMORY. A write error
 * that the file's buffer hides shows when the caller closes the file. */
VPPS_API vpps_status vpps_treebank_write(const vpps_treebank *tb, uint32_t i, FILE *file);

/* ListOps (Nangia and Bowman 2018): nested MAX, MIN, MED and SM (sum modulo 10) over digits; the label of every node
 * is its value, 10 classes. Binarised left-branching as the authors do: [MAX 3 7 ] is ((([MAX 3) 7) ]). A leaf digit
 * and a complete list are labelled with their value; operator tokens, the closing bracket and partial lists have
 * label -1 (written -1 in text, which the reader accepts). */
typedef struct vpps_listops {
    uint64_t seed;
    uint32_t max_depth;              /* of nested lists, at most 1,000; 0: 4 */
    uint32_t max_arguments;          /* of a list, at least 2; 0: 5 */
    uint32_t min_leaves, max_leaves; /* trees outside are drawn again; at most 1,000,000; 0: 2 and 64 */
} vpps_listops;

/* Append n generated trees: equal options give equal trees on every machine. `options` NULL means all defaults. Fails
 * with ARGUMENT (an option out of its range, or no tree of such size found in 100,000 draws or 100 million leaves),
 * MEMORY; the treebank is then as before. */
VPPS_API vpps_status vpps_treebank_generate_listops(vpps_treebank *tb, const vpps_listops *options, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
