/* sequences.h - the struct that holds sentences, for the readers that fill it. */
#pragma once

#include "text.h"
#include "vocab.h"

/* What sentences have besides words: nothing, a tag for each word, or a label for the whole sentence. */
typedef enum vpps_sentences_kind { VPPS_PLAIN, VPPS_TAGGED, VPPS_LABELLED } vpps_sentences_kind;

struct vpps_sentences {
    vpps_vocab *vocab, *tag_vocab; /* tag_vocab: names of the tags, or of the labels */
    uint32_t *words, *tags;        /* words and tags of all sentences; tags is NULL unless kind is VPPS_TAGGED */
    /* dependency trees: the number, from 1, of each word's head in its sentence; 0: a root */
    uint32_t *heads;
    uint32_t *lines; /* line number of each word in its text, if there are tags or heads */
    size_t n_words;
    uint32_t line; /* line number for the words that are added next; 0: none */
    struct vpps_sentence_end {
        size_t end; /* number of words up to the sentence's end; the next sentence begins there */
        uint32_t line, label;
    } * ends;
    uint32_t n_sentences;
    vpps_sentences_kind kind; /* kind of all sentences; set with the first sentence */
    bool has_heads;           /* whether the sentences are dependency trees; set with the first sentence */
};

/* Sizes of a vpps_sentences before a text is read; if reading fails, vpps_sentences_restore goes back to these sizes. */
typedef struct vpps_sentences_mark {
    size_t n_words;
    uint32_t n_sentences, vocab, tag_vocab;
} vpps_sentences_mark;

vpps_sentences_mark vpps_sentences_extent(const vpps_sentences *s);
void vpps_sentences_restore(vpps_sentences *s, vpps_sentences_mark mark);

/* Checks, before text is added, that the sentences read so far have this kind. Fails with STATE. */
vpps_status vpps_sentences_begin(vpps_sentences *s, vpps_sentences_kind kind);
/* Prepares for adding dependency trees; checks as vpps_sentences_begin does. The caller sets each word's head. */
vpps_status vpps_sentences_begin_trees(vpps_sentences *s, vpps_sentences_kind kind);

/* Adds a word (not empty, without NUL and LF) to the sentence that the next vpps_sentences_end completes, with its tag
 * when the sentences are tagged (NULL: VPPS_NO_WORD). Fails with MEMORY. */
vpps_status vpps_sentences_add_word(vpps_sentences *s, const char *word, size_t len, const char *tag, size_t tag_len);
/* Completes a sentence. `line` is the sentence's first line in its text, 0 without a text; `label` is VPPS_NO_WORD
 * unless the sentences are labelled. */
vpps_status vpps_sentences_end(vpps_sentences *s, uint32_t line, uint32_t label);

/* Sets the line number that messages name for sentence `first`, all later ones, and their words. */
void vpps_sentences_set_line(vpps_sentences *s, uint32_t first, uint32_t line);

/* Adds a line of plain text as a sentence, followed by end_word unless that is NULL (vpps_lines). Fails with MEMORY. */
vpps_status vpps_sentences_add_line(vpps_sentences *s, const vpps_line *line, const char *end_word);

/* The form of tokens such as word|TAG or word|POS|TAG: n characters '|' separate n + 1 columns. Where a token has more
 * '|', the surplus ones belong to its first column. */
typedef struct vpps_bars {
    uint32_t n, word, tag; /* n: number of '|' in a token; word, tag: numbers of the word's and tag's columns, from 1 */
} vpps_bars;

/* Reads tagged sentences as vpps_sentences_read_tagged_text does, but a word has `bars->n` '|', which separate n + 1 columns; bars tells
 * which columns have the word and the tag. Fails with ARGUMENT, too, when word and tag are not two of these columns. */
vpps_status vpps_sentences_read_barred_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                            const vpps_bars *bars);

/* The columns that a reader found. */
typedef struct vpps_columns_seen {
    uint32_t tag;     /* number of the tags' column, from 1; 0: no line had columns */
    uint32_t columns; /* number of columns of the latest sentence; 0: not known */
    char separator;   /* the byte between columns; a space: any white space */
} vpps_columns_seen;

/* Reads sentences as vpps_sentences_read_columns_text does, and tells in *seen what was found. `records`: the text is a
 * JSON object's or table row's, so that -DOCSTART- is a word. The caller sets seen->columns to a preceding text's
 * number of columns; 0: not known. If all lines begin with '#', lines with this number of columns (0: all) are
 * words. */
vpps_status vpps_sentences_read_columns_seen(vpps_sentences *s, const char *name, const char *text, size_t len,
                                             const vpps_columns *columns, bool records, vpps_columns_seen *seen);

/* Returns whether a line marks a new document in CoNLL-2003 (-DOCSTART-), for any separator of columns. */
bool vpps_columns_document_start(const char *line, size_t len);

/* Finds column `wanted` (from 1) of a line. Returns false when the line has fewer columns. */
bool vpps_columns_find(char separator, const char *line, size_t len, uint32_t wanted, vpps_word *column);

/* Parses CoNLL-U's ID. A word's ID is a number; the ID of a multiword token is a range, that of an empty node has a fraction. Sets *is_word
 * for a number. Returns false when it is no ID. */
bool vpps_conllu_id(vpps_word id, bool *is_word);

/* Returns VALUE of a CoNLL-U comment "# NAME = VALUE", which ends with the line; NULL for any other line. */
const char *vpps_comment_value(const vpps_line *line, const char *name);

/* Returns the columns' names in CoNLL-U Plus's first line "# global.columns = ID FORM ...", NULL for another line. */
const char *vpps_conllu_plus(const vpps_line *first);

/* Checks that end_word is a word that a text may hold; NULL (no end word) passes. Fails with ARGUMENT. */
vpps_status vpps_sentences_check_end_word(const char *end_word);
