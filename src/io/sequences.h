/* sequences.h - the inside of sentences, for the readers that fill them. */
#ifndef VPPS_SEQUENCES_H
#define VPPS_SEQUENCES_H

#include "vocab.h"

struct vpps_sentences {
    vpps_vocab *vocab, *tag_vocab;
    uint32_t *words, *tags; /* of all sentences, one after the other; tags only when tagged */
    size_t words_capacity, tags_capacity, n_words;
    size_t *ends; /* of each sentence, in words; it begins where the one before ends */
    size_t ends_capacity;
    uint32_t n_sentences;
    bool tagged; /* means nothing before the first sentence */
};

/* The sentences' extent: what a failed reader puts back. */
typedef struct vpps_sentences_mark {
    size_t n_words;
    uint32_t n_sentences, vocab, tag_vocab;
} vpps_sentences_mark;

vpps_sentences_mark vpps_sentences_extent(const vpps_sentences *s);
void vpps_sentences_restore(vpps_sentences *s, vpps_sentences_mark mark);

/* Before text is added: are the sentences tagged, or not, as it is? Fails with STATE. */
vpps_status vpps_sentences_begin(vpps_sentences *s, bool tagged);

/* Adds a word (neither empty nor with NUL or LF), and its tag when the sentences are tagged, to the sentence that the
 * next vpps_sentences_end completes. Fail with MEMORY. */
vpps_status vpps_sentences_add_word(vpps_sentences *s, const char *word, size_t len, const char *tag, size_t tag_len);
vpps_status vpps_sentences_end(vpps_sentences *s);

/* A line of plain text as a sentence, with the end word when it is not NULL. Fails with MEMORY. */
vpps_status vpps_sentences_add_line(vpps_sentences *s, const char *line, const char *end, const char *end_word);
bool vpps_line_has_word(const char *line, const char *end);

/* Fails with ARGUMENT for an end word that text could not hold; NULL is none. */
vpps_status vpps_sentences_check_end_word(const char *end_word);

#endif
