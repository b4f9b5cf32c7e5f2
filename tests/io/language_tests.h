/* language_tests.h - generated sentences, for the suites that look at them. */
#pragma once

#include "io_tests.h"

enum { SHORTEST = 3, LONGEST = 25 };

/* Everything that one call fills. */
typedef struct corpus {
    vpps_sentences *s, *translation;
    vpps_vocab *lexicon;
} corpus;

static inline corpus new_corpus(void) {
    corpus c;
    TEST_OK(vpps_sentences_create(&c.s));
    TEST_OK(vpps_sentences_create(&c.translation));
    TEST_OK(vpps_vocab_create(&c.lexicon));
    return c;
}

static inline corpus generate(uint64_t seed, bool characters, uint32_t n) {
    corpus c = new_corpus();
    const vpps_language options = {.seed = seed, .characters = characters, .tags = true};
    TEST_OK(vpps_sentences_generate(c.s, c.translation, c.lexicon, &options, n));
    return c;
}

static inline void destroy(corpus c) {
    vpps_sentences_destroy(c.s);
    vpps_sentences_destroy(c.translation);
    vpps_vocab_destroy(c.lexicon);
}

static inline const char *word_at(const vpps_sentences *s, uint32_t i, uint32_t k) {
    return vpps_vocab_word(vpps_sentences_vocab(s), vpps_sentences_get(s, i).words[k]);
}

static inline const char *tag_at(const vpps_sentences *s, uint32_t i, uint32_t k) {
    return vpps_vocab_word(vpps_sentences_tag_vocab(s), vpps_sentences_get(s, i).tags[k]);
}
