/* forms.h - the formats of data: reading any of them, and showing what was read; and each with a small text and a real file, for tests of what all
 * formats share. */
#pragma once

#include "io/edge_lists.h"
#include "io_tests.h"

enum { TAGGED, COLUMNS, LINES, LABELLED, DEPENDENCIES, PARALLEL, TREES, CONSTITUENTS, LEXICON, EDGES };

typedef struct form_edges {
    vpps_edge_labels labels;
    uint32_t numbers;
} form_edges;

/* A text that is read, or a file. */
typedef struct reading {
    int format;
    const void *
        options; /* of the format: vpps_columns, vpps_lines, vpps_dependencies, vpps_labels or form_edges; NULL: none */
    const char *text;   /* named "t"; if the format is PARALLEL, for both sides */
    size_t n;           /* bytes of the text; 0: up to its NUL */
    const char *path;   /* a file instead of the text; NULL: none */
    const char *before; /* a text that is read before it, and again if it is refused; NULL: none */
} reading;

/* Reads; fails as the reader of the text does. *shown: all that was read, a sentence or tree a line; the caller frees it. *n_words: the size of
 * all vocabularies. */
vpps_status form_try(const reading *r, char **shown, uint32_t *n_words);
/* Adds the sentences of a format that has some; n must be set, and `before` is not read. */
vpps_status form_read_sentences(const reading *r, vpps_sentences *s);

/* Checks that the text is read as what is shown. */
void form_takes(const reading *r, const char *shown);
/* Checks that the text is refused with this message, and changes nothing. */
void form_refuses(const reading *r, const char *message);

/* Return all of it as text. Sentences: words in square brackets with their tags, or with heads and relations; then the label. Lattices: the tag of each
 * node, and its arcs from:id, 'c' a character's, 'w' a word's. What is shown stands in a static buffer; the
 * caller frees a text. */
const char *sentences_shown(const vpps_sentences *s);
const char *lattices_shown(const vpps_lattices *l);
char *sentences_text(const vpps_sentences *s, size_t *n);
char *treebank_text(const vpps_treebank *tb, size_t *n);
char *constituents_text(const vpps_constituents *c, size_t *n);

typedef struct form {
    const char *name;
    const char *file; /* file of the data sets; NULL: none */
    reading small;    /* of a text whose lines end with LF */
} form;

extern const form forms[];
extern const int n_forms;

/* Returns what is shown of a file or a text, which the caller frees. The check fails if reading fails. */
char *form_text(const form *f, const char *path, const char *text, size_t n);
