/* sequences.h - the internals of sentences, for the readers that fill them. */
#pragma once

#include "text.h"
#include "vocab.h"

/* What sentences have besides words. */
typedef enum vpps_sentences_kind { VPPS_PLAIN, VPPS_TAGGED, VPPS_LABELLED } vpps_sentences_kind;

struct vpps_sentences {
    vpps_vocab *vocab, *tag_vocab; /* the latter of labels, too */
    uint32_t *words, *tags;        /* of all sentences, one after the other; tags only when tagged, */
    uint32_t *heads;               /* only of dependency trees */
    uint32_t *lines;               /* the words' lines, where there are tags or heads */
    size_t n_words;
    uint32_t line; /* of the words that are added next; 0: none */
    struct vpps_sentence_end {
        size_t end; /* in words; a sentence begins where the preceding one ends */
        uint32_t line, label;
    } * ends;
    uint32_t n_sentences;
    vpps_sentences_kind kind; /* means nothing before the first sentence */
    bool has_heads;           /* neither */
};

/* The sentences' extent: what a failed reader puts back. */
typedef struct vpps_sentences_mark {
    size_t n_words;
    uint32_t n_sentences, vocab, tag_vocab;
} vpps_sentences_mark;

vpps_sentences_mark vpps_sentences_extent(const vpps_sentences *s);
void vpps_sentences_restore(vpps_sentences *s, vpps_sentences_mark mark);

/* Before text is added: are the sentences of its kind? Fails with STATE. */
vpps_status vpps_sentences_begin(vpps_sentences *s, vpps_sentences_kind kind);
/* The same, of dependency trees: the head of a word that was added is set by the caller. */
vpps_status vpps_sentences_begin_trees(vpps_sentences *s, vpps_sentences_kind kind);

/* Adds a word (neither empty nor with NUL or LF), and its tag when the sentences are tagged (NULL: VPPS_NO_WORD), to the sentence that the
 * next vpps_sentences_end completes. Fail with MEMORY. */
vpps_status vpps_sentences_add_word(vpps_sentences *s, const char *word, size_t len, const char *tag, size_t tag_len);
/* `line` is where it begins in its text, 0 without one; `label` VPPS_NO_WORD unless the sentences are labelled. */
vpps_status vpps_sentences_end(vpps_sentences *s, uint32_t line, uint32_t label);

/* Says that the sentences from number `first` on, with all their words, stand at `line` of their text. */
void vpps_sentences_set_line(vpps_sentences *s, uint32_t first, uint32_t line);

/* A line of plain text as a sentence, with the end word when it is not NULL (vpps_lines). Fails with MEMORY. */
vpps_status vpps_sentences_add_line(vpps_sentences *s, const vpps_line *line, const char *end_word);

/* Lines of tokens that are columns themselves, with '|' between: word|TAG, word|POS|TAG. A token with more than n of them has
 * the rest in its first column. */
typedef struct vpps_bars {
    uint32_t n, word, tag; /* word and tag: columns from 1 */
} vpps_bars;

/* vpps_sentences_read_tagged_text for such columns. Fails with ARGUMENT when word and tag are not two of them. */
vpps_status vpps_sentences_read_barred_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                            const vpps_bars *bars);

/* Oddities that a reader of columns found and a user may want to know. Lines: 0 for none. */
typedef struct vpps_columns_seen {
    uint32_t odd; /* the first line that begins with '#' and became a word, with a tag that no other line has */
    uint32_t inside, n_inside; /* the first comment between the words of a sentence; how many there are */
    uint32_t tag;              /* the column of tags, from 1; 0: no line had columns */
    char separator;            /* between columns; a space: any white space */
} vpps_columns_seen;

/* vpps_sentences_read_columns_text, and what was seen. records: -DOCSTART- is a word as others. */
vpps_status vpps_sentences_read_columns_seen(vpps_sentences *s, const char *name, const char *text, size_t len,
                                             const vpps_columns *columns, bool records, vpps_columns_seen *seen);

/* Does a line part two documents of CoNLL-2003, wherever columns end? */
bool vpps_columns_document_start(const char *line, size_t len);

/* Where column `wanted`, from 1, of a line stands; false: the line has fewer. */
bool vpps_columns_find(char separator, const char *line, size_t len, uint32_t wanted, const char **at, size_t *n);

/* What a comment "# NAME = VALUE" of CoNLL-U says, up to the line's end; NULL: it is another line. */
const char *vpps_comment_value(const vpps_line *line, const char *name);

/* The names of columns in "# global.columns = ID FORM ...", the first line of CoNLL-U Plus; NULL: it is another line. */
const char *vpps_conllu_plus(const vpps_line *first);

/* Fails with ARGUMENT for an end word that text could not hold; NULL is none. */
vpps_status vpps_sentences_check_end_word(const char *end_word);
