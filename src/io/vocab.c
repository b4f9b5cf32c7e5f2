/* vocab.c - maps words to dense ids by an index; the text of a word never moves. */
#include "vocab.h"

#include "base/index.h"

#define BLOCK_BYTES 65536u

typedef struct block {
    struct block *next;
    char text[];
} block;

typedef struct entry {
    const char *text; /* NUL-terminated text in a block of memory */
    size_t len;
    uint64_t hash;
} entry;

struct vpps_vocab {
    entry *words; /* indexed by id */
    uint32_t n_words;
    vpps_index ids;
    block *blocks;
    char *free_text; /* unused rest of the newest block for texts */
    size_t free_bytes;
};

/* Hashes eight bytes at a time. The tail is read as two pieces that may overlap, not byte by byte: a short word takes a
 * ninth of the time that vpps_hash_bytes takes. */
static uint64_t hash_word(const char *text, size_t len) {
    uint64_t h = len * 0x9e3779b97f4a7c15u, tail = 0;
    for (; len > 8; text += 8, len -= 8) {
        uint64_t piece;
        memcpy(&piece, text, 8);
        h = vpps_mix64(h ^ piece);
    }
    if (len >= 4) {
        uint32_t first, last;
        memcpy(&first, text, 4);
        memcpy(&last, text + len - 4, 4);
        tail = (uint64_t)first << 32 | last;
    } else if (len > 0) {
        tail = (uint64_t)(unsigned char)text[0] << 16 | (uint64_t)(unsigned char)text[len / 2] << 8 |
               (unsigned char)text[len - 1];
    }
    return vpps_mix64(h ^ tail);
}

vpps_status vpps_vocab_create(vpps_vocab **out) {
    VPPS_NEED(out);
    *out = calloc(1, sizeof **out);
    return *out ? VPPS_OK : vpps_fail(VPPS_MEMORY, "vocabulary: out of memory");
}

void vpps_vocab_destroy(vpps_vocab *v) {
    if (!v) return;
    for (block *b = v->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    VPPS_FREE_ARRAYS(v->words);
    vpps_index_free(&v->ids);
    free(v);
}

static uint32_t find(const vpps_vocab *v, const char *text, size_t len, uint64_t hash) {
    if (!v->words) return VPPS_NO_WORD;
    for (uint32_t at = vpps_index_first(hash), id; (id = vpps_index_next(&v->ids, hash, &at)) != UINT32_MAX;) {
        const entry *w = &v->words[id];
        if (w->len == len && memcmp(w->text, text, len) == 0) return id;
    }
    return VPPS_NO_WORD;
}

/* Copies a text, NUL-terminated, to memory that lives as long as the vocabulary. Returns NULL when out of memory. */
static const char *keep_text(vpps_vocab *v, const char *text, size_t len) {
    if (len >= v->free_bytes) {
        size_t bytes = len + 1 > BLOCK_BYTES ? len + 1 : BLOCK_BYTES;
        block *b = malloc(sizeof *b + bytes);
        if (!b) return NULL;
        b->next = v->blocks;
        v->blocks = b;
        v->free_text = b->text;
        v->free_bytes = bytes;
    }
    char *kept = v->free_text;
    memcpy(kept, text, len);
    kept[len] = '\0';
    v->free_text += len + 1;
    v->free_bytes -= len + 1;
    return kept;
}

vpps_status vpps_vocab_add_unchecked(vpps_vocab *v, const char *word, size_t len, uint32_t *id) {
    uint64_t hash = hash_word(word, len);
    *id = find(v, word, len, hash);
    if (VPPS_LIKELY(*id != VPPS_NO_WORD)) return VPPS_OK;
    const char *kept = VPPS_RESERVE(v->words, (size_t)v->n_words + 1) ? keep_text(v, word, len) : NULL;
    if (!kept || !vpps_index_add(&v->ids, hash, v->n_words))
        return vpps_fail(VPPS_MEMORY, "vocabulary: out of memory at %u words", v->n_words);
    *id = v->n_words++;
    v->words[*id] = (entry){kept, len, hash};
    return VPPS_OK;
}

vpps_status vpps_vocab_add(vpps_vocab *v, const char *word, size_t len, uint32_t *id) {
    VPPS_NEED(v, id);
    if (len) VPPS_NEED(word);
    if (len == 0) return vpps_fail(VPPS_ARGUMENT, "vocabulary: expected a word, found an empty string");
    if (memchr(word, '\0', len) || memchr(word, '\n', len))
        return vpps_fail(VPPS_ARGUMENT, "vocabulary: expected a word without NUL and line feed bytes");
    return vpps_vocab_add_unchecked(v, word, len, id);
}

void vpps_vocab_truncate(vpps_vocab *v, uint32_t size) {
    if (size >= v->n_words) return;
    v->n_words = size; /* keeps the text of removed words in memory, as long as the vocabulary exists */
    vpps_index_clear(&v->ids);
    for (uint32_t id = 0; id < size; id++) vpps_index_add(&v->ids, v->words[id].hash, id);
}

void vpps_vocab_replace(vpps_vocab *v, vpps_vocab *by) {
    block **last = &by->blocks;
    while (*last) last = &(*last)->next;
    *last = v->blocks;
    VPPS_FREE_ARRAYS(v->words);
    vpps_index_free(&v->ids);
    *v = *by;
    free(by);
}

uint32_t vpps_vocab_find(const vpps_vocab *v, const char *word, size_t len) {
    return v && word ? find(v, word, len, hash_word(word, len)) : VPPS_NO_WORD;
}

uint32_t vpps_vocab_size(const vpps_vocab *v) { return v ? v->n_words : 0; }

const char *vpps_vocab_word(const vpps_vocab *v, uint32_t id) {
    return id < vpps_vocab_size(v) ? v->words[id].text : NULL;
}

vpps_status vpps_vocab_to_text(const vpps_vocab *v, char **out) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_NEED(v);
    size_t bytes = 1;
    for (uint32_t id = 0; id < v->n_words; id++) bytes += v->words[id].len + 1;
    char *text = malloc(bytes), *end = text;
    if (!text) return vpps_fail(VPPS_MEMORY, "vocabulary: out of memory for %zu bytes of text", bytes);
    for (uint32_t id = 0; id < v->n_words; id++) {
        if (id) *end++ = '\n';
        memcpy(end, v->words[id].text, v->words[id].len);
        end += v->words[id].len;
    }
    *end = '\0';
    *out = text;
    return VPPS_OK;
}

static vpps_status add_lines(vpps_vocab *v, const char *text) {
    for (uint32_t line = 1;; line++) {
        size_t len = strcspn(text, "\n");
        if (len == 0) return vpps_fail(VPPS_FORMAT, "vocabulary:%u:1: expected a word, found an empty line", line);
        uint32_t id;
        VPPS_TRY(vpps_vocab_add_unchecked(v, text, len, &id));
        if (id + 1 != line)
            return vpps_fail(VPPS_FORMAT, "vocabulary:%u:1: expected a new word, found '%.*s' of line %u", line,
                             len < 80 ? (int)len : 80, text, id + 1);
        if (text[len] == '\0') return VPPS_OK;
        text += len + 1;
    }
}

vpps_status vpps_vocab_from_text(vpps_vocab **out, const char *text) {
    VPPS_NEED(out, text);
    vpps_vocab *v;
    *out = NULL;
    VPPS_TRY(vpps_vocab_create(&v));
    vpps_status status = *text ? add_lines(v, text) : VPPS_OK;
    if (status != VPPS_OK) {
        vpps_vocab_destroy(v);
        return status;
    }
    *out = v;
    return VPPS_OK;
}
