/* spellings.c - splits words into characters. */
#include "vocab.h"

#include "base/base.h"
#include "io/json.h"

struct vpps_spellings {
    vpps_vocab *vocab;
    uint32_t *characters; /* the characters of all words, word after word */
    size_t n_characters;
    size_t *ends; /* for each word, the number of characters up to its end */
    uint32_t n_words;
};

/* Returns how many bytes the character at `text` has; 1 for a byte that is no UTF-8. */
uint32_t vpps_utf8_character(const char *text, size_t len) {
    VPPS_NEED_OR(0, text);
    const size_t n = vpps_utf8_length(text, len);
    return n ? (uint32_t)n : 1;
}

static vpps_status spell(vpps_spellings *s, const char *word) {
    for (size_t left = strlen(word), n; left > 0; word += n, left -= n) {
        n = vpps_utf8_character(word, left);
        if (!VPPS_RESERVE(s->characters, s->n_characters + 1))
            return vpps_fail(VPPS_MEMORY, "spellings: out of memory at %zu characters", s->n_characters);
        VPPS_TRY(vpps_vocab_add_unchecked(s->vocab, word, n, &s->characters[s->n_characters]));
        s->n_characters++;
    }
    return VPPS_OK;
}

static vpps_status spell_all(vpps_spellings *s, const vpps_vocab *words) {
    const uint32_t n = vpps_vocab_size(words);
    s->ends = malloc((n ? n : 1) * sizeof *s->ends);
    if (!s->ends) return vpps_fail(VPPS_MEMORY, "spellings: out of memory for %u words", n);
    for (; s->n_words < n; s->n_words++) {
        VPPS_TRY(spell(s, vpps_vocab_word(words, s->n_words)));
        s->ends[s->n_words] = s->n_characters;
    }
    return VPPS_OK;
}

vpps_status vpps_spellings_create(vpps_spellings **out, const vpps_vocab *words) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_NEED(words);
    vpps_spellings *s = calloc(1, sizeof *s);
    if (!s) return vpps_fail(VPPS_MEMORY, "spellings: out of memory");
    vpps_status status = vpps_vocab_create(&s->vocab);
    if (status == VPPS_OK) status = spell_all(s, words);
    if (status == VPPS_OK)
        *out = s;
    else
        vpps_spellings_destroy(s);
    return status;
}

void vpps_spellings_destroy(vpps_spellings *s) {
    if (!s) return;
    vpps_vocab_destroy(s->vocab);
    VPPS_FREE_ARRAYS(s->characters);
    VPPS_FREE(s->ends, s);
}

const uint32_t *vpps_spellings_word(const vpps_spellings *s, uint32_t word, uint32_t *n) {
    VPPS_NEED_OR(NULL, n);
    *n = 0;
    if (!s || word >= s->n_words) return NULL;
    const size_t first = word ? s->ends[word - 1] : 0;
    *n = (uint32_t)(s->ends[word] - first);
    return s->characters + first;
}

const vpps_vocab *vpps_spellings_vocab(const vpps_spellings *s) { return s ? s->vocab : NULL; }
