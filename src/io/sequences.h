/* sequences.h - the inside of sentences, for the readers that fill them. */
#ifndef VPPS_SEQUENCES_H
#define VPPS_SEQUENCES_H

#include "text.h"
#include "vocab.h"

/* What sentences have besides words. */
typedef enum vpps_sentences_kind { VPPS_PLAIN, VPPS_TAGGED, VPPS_LABELLED } vpps_sentences_kind;

struct vpps_sentences {
    vpps_vocab *vocab, *tag_vocab; /* the latter of labels, too */
    uint32_t *words, *tags;        /* of all sentences, one after the other; tags only when tagged */
    size_t words_capacity, tags_capacity, n_words;
    struct vpps_sentence_end {
        size_t end; /* in words; a sentence begins where the one before ends */
        uint32_t line, label;
    } * ends;
    size_t ends_capacity;
    uint32_t n_sentences;
    vpps_sentences_kind kind; /* means nothing before the first sentence */
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

/* Adds a word (neither empty nor with NUL or LF), and its tag when the sentences are tagged, to the sentence that the
 * next vpps_sentences_end completes. Fail with MEMORY. */
vpps_status vpps_sentences_add_word(vpps_sentences *s, const char *word, size_t len, const char *tag, size_t tag_len);
/* `line` is where it begins in its text, 0 without one; `label` VPPS_NO_WORD unless the sentences are labelled. */
vpps_status vpps_sentences_end(vpps_sentences *s, uint32_t line, uint32_t label);

/* A line of plain text as a sentence, with the end word when it is not NULL. Fails with MEMORY. */
vpps_status vpps_sentences_add_line(vpps_sentences *s, const vpps_line *line, const char *end_word);
bool vpps_line_has_word(const vpps_line *line);

/* Fails with ARGUMENT for an end word that text could not hold; NULL is none. */
vpps_status vpps_sentences_check_end_word(const char *end_word);

#endif
