/* sequences.c - sentences in memory: the words of all sentences in one array, and where each sentence ends. */
#include "sequences.h"

#include "base/base.h"

vpps_status vpps_sentences_create(vpps_sentences **out) {
    VPPS_NEED(out);
    *out = NULL;
    vpps_sentences *s = calloc(1, sizeof *s);
    if (!s) return vpps_fail(VPPS_MEMORY, "sentences: out of memory");
    vpps_status status = vpps_vocab_create(&s->vocab);
    if (status == VPPS_OK) status = vpps_vocab_create(&s->tag_vocab);
    if (status == VPPS_OK)
        *out = s;
    else
        vpps_sentences_destroy(s);
    return status;
}

void vpps_sentences_destroy(vpps_sentences *s) {
    if (!s) return;
    vpps_vocab_destroy(s->vocab);
    vpps_vocab_destroy(s->tag_vocab);
    VPPS_FREE_ARRAYS(s->words, s->tags, s->heads, s->lines, s->ends);
    free(s);
}

uint32_t vpps_sentences_size(const vpps_sentences *s) { return s ? s->n_sentences : 0; }

uint64_t vpps_sentences_total_words(const vpps_sentences *s) { return s ? s->n_words : 0; }

/* Returns the number of sentence i's first word; for i = n_sentences, the number of words. */
static size_t first_word(const vpps_sentences *s, uint32_t i) { return i ? s->ends[i - 1].end : 0; }

vpps_sentence vpps_sentences_get(const vpps_sentences *s, uint32_t i) {
    if (i >= vpps_sentences_size(s)) return (vpps_sentence){0};
    const size_t first = first_word(s, i), end = s->ends[i].end;
    if (end == first) return (vpps_sentence){0}; /* an empty sentence: the array of words may be NULL */
    return (vpps_sentence){s->words + first, s->kind == VPPS_TAGGED ? s->tags + first : NULL, (uint32_t)(end - first),
                           s->has_heads ? s->heads + first : NULL};
}

uint32_t vpps_sentences_label(const vpps_sentences *s, uint32_t i) {
    return i < vpps_sentences_size(s) ? s->ends[i].label : VPPS_NO_WORD;
}

uint32_t vpps_sentences_line(const vpps_sentences *s, uint32_t i) {
    return i < vpps_sentences_size(s) ? s->ends[i].line : 0;
}

static bool has_lines(const vpps_sentences *s) { return s->kind == VPPS_TAGGED || s->has_heads; }

uint32_t vpps_sentences_word_line(const vpps_sentences *s, uint32_t i, uint32_t k) {
    const bool known = i < vpps_sentences_size(s) && has_lines(s) && k < s->ends[i].end - first_word(s, i);
    return known ? s->lines[first_word(s, i) + k] : vpps_sentences_line(s, i);
}

const vpps_vocab *vpps_sentences_vocab(const vpps_sentences *s) { return s ? s->vocab : NULL; }

const vpps_vocab *vpps_sentences_tag_vocab(const vpps_sentences *s) { return s ? s->tag_vocab : NULL; }

vpps_sentences_mark vpps_sentences_extent(const vpps_sentences *s) {
    return (vpps_sentences_mark){s->n_words, s->n_sentences, vpps_vocab_size(s->vocab), vpps_vocab_size(s->tag_vocab)};
}

void vpps_sentences_restore(vpps_sentences *s, vpps_sentences_mark mark) {
    s->n_words = mark.n_words;
    s->n_sentences = mark.n_sentences;
    vpps_vocab_truncate(s->vocab, mark.vocab);
    vpps_vocab_truncate(s->tag_vocab, mark.tag_vocab);
}

static vpps_status begin(vpps_sentences *s, vpps_sentences_kind kind, bool has_heads) {
    static const char *const kinds[] = {"without tags", "with tags", "with labels"}, *const trees[] = {"",
                                                                                                       " and heads"};
    if (s->n_sentences && (s->kind != kind || s->has_heads != has_heads))
        return vpps_fail(VPPS_STATE, "sentences: expected text %s%s, as the %u sentences before, found text %s%s",
                         kinds[s->kind], trees[s->has_heads], s->n_sentences, kinds[kind], trees[has_heads]);
    s->kind = kind;
    s->has_heads = has_heads;
    s->line = 0;
    return VPPS_OK;
}

vpps_status vpps_sentences_begin(vpps_sentences *s, vpps_sentences_kind kind) { return begin(s, kind, false); }

vpps_status vpps_sentences_begin_trees(vpps_sentences *s, vpps_sentences_kind kind) { return begin(s, kind, true); }

vpps_status vpps_sentences_add_word(vpps_sentences *s, const char *word, size_t len, const char *tag, size_t tag_len) {
    const bool tagged = s->kind == VPPS_TAGGED;
    const size_t n = s->n_words + 1;
    if (!VPPS_RESERVE(s->words, n) || (tagged && !VPPS_RESERVE(s->tags, n)) ||
        (s->has_heads && !VPPS_RESERVE(s->heads, n)) || (has_lines(s) && !VPPS_RESERVE(s->lines, n)))
        return vpps_fail(VPPS_MEMORY, "sentences: out of memory at %zu words", s->n_words);
    VPPS_TRY(vpps_vocab_add_unchecked(s->vocab, word, len, &s->words[s->n_words]));
    if (tagged) s->tags[s->n_words] = VPPS_NO_WORD;
    if (tagged && tag) VPPS_TRY(vpps_vocab_add_unchecked(s->tag_vocab, tag, tag_len, &s->tags[s->n_words]));
    if (has_lines(s)) s->lines[s->n_words] = s->line;
    s->n_words++;
    return VPPS_OK;
}

vpps_status vpps_sentences_end(vpps_sentences *s, uint32_t line, uint32_t label) {
    if (s->n_sentences == UINT32_MAX || s->n_words - first_word(s, s->n_sentences) > UINT32_MAX ||
        !VPPS_RESERVE(s->ends, (size_t)s->n_sentences + 1))
        return vpps_fail(VPPS_MEMORY, "sentences: out of memory at %u sentences", s->n_sentences);
    s->ends[s->n_sentences++] = (struct vpps_sentence_end){s->n_words, line, label};
    return VPPS_OK;
}

void vpps_sentences_set_line(vpps_sentences *s, uint32_t first, uint32_t line) {
    for (size_t k = first_word(s, first); has_lines(s) && k < s->n_words; k++) s->lines[k] = line;
    for (uint32_t i = first; i < s->n_sentences; i++) s->ends[i].line = line;
}
