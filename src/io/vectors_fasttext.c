/* vectors_fasttext.c - vectors from fastText's models (Bojanowski, Grave, Joulin and Mikolov, "Enriching Word
 * Vectors with Subword Information", 2017), as its program saves them in a .bin file. A word's vector is the mean of
 * the word's own row, if the model has one, and the rows of its character n-grams, which share a fixed number of
 * rows by their hashes. So words that the model has not seen get a vector, too.
 *
 * The file, little-endian:
 *     int32 magic, version (11 or 12)
 *     int32 dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate; double t
 *     int32 entries, words, labels; int64 tokens, pruned
 *     for each entry: its bytes, a NUL, int64 count, int8 type (0: a word)
 *     bool quantised (only then n-grams are pruned; else `pruned` is -1); int64 rows, columns; the rows of floats: words', then n-grams'
 *     (the output layer follows)
 *
 * The rows are read once, in order; the words that need each row are found beforehand. */
#include "vectors.h"

#include "base/base.h"
#include "file.h"

#include <math.h>

enum { SUPERVISED = 3 };

static const char magic[] = {(char)0xba, 0x16, 0x4f, 0x2f};

typedef struct fasttext_header {
    int32_t version, dim, model, bucket, min_n, max_n;
    int32_t entries, words;
    int64_t pruned;
} fasttext_header;

/* Row `row` of the model's matrix is one of the rows whose mean is the vector of word `id`. */
typedef struct part {
    uint64_t row;
    uint32_t id;
} part;

typedef struct fasttext_reader {
    vpps_stream *s;
    vpps_vectors_target *t;
    fasttext_header h;
    part *parts;
    size_t n_parts;
    uint32_t *n_rows; /* number of rows added to each word's vector */
    float *row;
} fasttext_reader;

/* ---------------------------------------------------------------- numbers */

static vpps_status fail_model(const vpps_stream *s, const char *expected, const char *found) {
    return vpps_fail(VPPS_FORMAT, "%s%s: expected %s, found %s", VPPS_PATH_ARGS(vpps_stream_name(s)), expected, found);
}

static vpps_status fail_quantised(const vpps_stream *s) {
    return fail_model(s, "a fastText model as it was trained", "a quantised one");
}

static vpps_status take(vpps_stream *s, void *out, size_t n, const char *what) {
    size_t got;
    VPPS_TRY(vpps_stream_read(s, out, n, &got));
    return got == n ? VPPS_OK : fail_model(s, what, "end of file");
}

static int32_t int32_at(const char *bytes) {
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* ---------------------------------------------------------------- the beginning */

bool vpps_fasttext_begins(const char *bytes, size_t n) {
    return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static vpps_status read_arguments(const vpps_stream *s, const char *bytes, fasttext_header *h) {
    enum { VERSION = 4, DIM = 8, MODEL = 36, BUCKET = 40, MIN_N = 44, MAX_N = 48 };
    *h = (fasttext_header){.version = int32_at(bytes + VERSION),
                           .dim = int32_at(bytes + DIM),
                           .model = int32_at(bytes + MODEL),
                           .bucket = int32_at(bytes + BUCKET),
                           .min_n = int32_at(bytes + MIN_N),
                           .max_n = int32_at(bytes + MAX_N)};
    if (h->version != 11 && h->version != 12) {
        char found[32];
        snprintf(found, sizeof found, "version %d", h->version);
        return fail_model(s, "a fastText model of version 11 or 12", found);
    }
    if (h->version == 11 && h->model == SUPERVISED) h->max_n = 0; /* version 11's supervised models have no n-grams */
    if (h->dim < 1 || (uint32_t)h->dim > VPPS_VECTORS_MOST || h->bucket < 0 || h->min_n < 0 || h->max_n < 0)
        return fail_model(s, "the arguments of a fastText model", "numbers that make no sense");
    return VPPS_OK;
}

vpps_status vpps_fasttext_look(vpps_stream *s, const char *bytes, size_t n, vpps_vectors_info *info) {
    fasttext_header h;
    if (n < VPPS_FASTTEXT_BYTES + sizeof(int32_t[2])) return fail_model(s, "a fastText model", "end of file");
    VPPS_TRY(read_arguments(s, bytes, &h));
    const int32_t words = int32_at(bytes + VPPS_FASTTEXT_BYTES + sizeof(int32_t));
    *info = (vpps_vectors_info){VPPS_VECTORS_FASTTEXT, words > 0 ? (uint64_t)words : 0, (uint32_t)h.dim};
    return VPPS_OK;
}

static vpps_status read_header(fasttext_reader *r) {
    char bytes[VPPS_FASTTEXT_BYTES];
    int32_t labels;
    int64_t tokens;
    VPPS_TRY(take(r->s, bytes, sizeof bytes, "a fastText model"));
    VPPS_TRY(read_arguments(r->s, bytes, &r->h));
    VPPS_TRY(take(r->s, &r->h.entries, sizeof r->h.entries, "the dictionary"));
    VPPS_TRY(take(r->s, &r->h.words, sizeof r->h.words, "the dictionary"));
    VPPS_TRY(take(r->s, &labels, sizeof labels, "the dictionary"));
    VPPS_TRY(take(r->s, &tokens, sizeof tokens, "the dictionary"));
    VPPS_TRY(take(r->s, &r->h.pruned, sizeof r->h.pruned, "the dictionary"));
    if (r->h.pruned >= 0) return fail_quantised(r->s);
    if (r->h.words >= 0 && r->h.entries >= r->h.words) return VPPS_OK;
    return fail_model(r->s, "the size of a dictionary", "numbers that make no sense");
}

/* ---------------------------------------------------------------- rows of words */

static vpps_status add_part(fasttext_reader *r, uint64_t row, uint32_t id) {
    if (!VPPS_RESERVE(r->parts, r->n_parts + 1))
        return vpps_fail(VPPS_MEMORY, "vectors: out of memory at %zu n-grams", r->n_parts);
    r->parts[r->n_parts++] = (part){row, id};
    r->n_rows[id]++;
    return VPPS_OK;
}

/* Returns the 32-bit FNV-1a hash of bytes taken as signed numbers. */
static uint32_t hash_of(const char *text, size_t len) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (uint32_t)(int8_t)text[i]) * 16777619u;
    return h;
}

static vpps_status add_ngram(fasttext_reader *r, const char *text, size_t len, uint32_t id) {
    const uint32_t hash = hash_of(text, len) % (uint32_t)r->h.bucket;
    return add_part(r, (uint64_t)(uint32_t)r->h.words + hash, id);
}

static bool goes_on(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

/* Adds the n-grams of <word>, of min_n to max_n characters, except '<' and '>' alone. */
static vpps_status add_ngrams(fasttext_reader *r, const char *text, size_t len, uint32_t id) {
    for (size_t i = 0; i < len; i++) {
        if (goes_on(text[i])) continue;
        size_t end = i;
        for (int32_t n = 1; end < len && n <= r->h.max_n; n++) {
            do { end++; } while (end < len && goes_on(text[end]));
            if (n < r->h.min_n || (n == 1 && (i == 0 || end == len))) continue;
            VPPS_TRY(add_ngram(r, text + i, end - i, id));
        }
    }
    return VPPS_OK;
}

/* Adds the n-grams of all words in the vocabulary except its <unk>. */
static vpps_status add_all_ngrams(fasttext_reader *r) {
    char *text = NULL;
    vpps_status status = VPPS_OK;
    if (r->h.max_n == 0 || r->h.bucket == 0) return VPPS_OK;
    for (uint32_t id = 0; id < r->t->found.words && status == VPPS_OK; id++) {
        const char *word = vpps_vocab_word(r->t->words, id);
        const size_t len = strlen(word);
        if (strcmp(word, "<unk>") == 0 || strcmp(word, "</s>") == 0) continue;
        if (!VPPS_RESERVE(text, len + 2)) {
            status = vpps_fail(VPPS_MEMORY, "vectors: out of memory for a word of %zu bytes", len);
            break;
        }
        text[0] = '<';
        memcpy(text + 1, word, len + 1);
        text[len + 1] = '>';
        status = add_ngrams(r, text, len + 2, id);
    }
    VPPS_FREE_ARRAYS(text);
    return status;
}

/* ---------------------------------------------------------------- the dictionary */

static vpps_status read_entry(fasttext_reader *r, int32_t i) {
    enum { AFTER = sizeof(int64_t) + 1 };
    const char *bytes, *nul;
    size_t n;
    VPPS_TRY(vpps_stream_find(r->s, '\0', VPPS_VECTORS_LONGEST_WORD, &bytes, &n, &nul));
    const size_t len = nul ? (size_t)(nul - bytes) : n;
    VPPS_TRY(vpps_stream_peek(r->s, len + 1 + AFTER, &bytes, &n));
    if (!nul || n < len + 1 + AFTER) return fail_model(r->s, "the rest of the dictionary", "end of file");
    const bool is_word = bytes[len + AFTER] == 0 && i < r->h.words;
    const uint32_t id = is_word ? vpps_vectors_wanted(r->t, bytes, len) : VPPS_NO_WORD;
    vpps_stream_skip(r->s, len + 1 + AFTER);
    if (id == VPPS_NO_WORD) return VPPS_OK;
    r->t->has[id] = true;
    r->t->found.found++;
    return add_part(r, (uint64_t)i, id);
}

/* ---------------------------------------------------------------- the matrix */

static int compare_parts(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static vpps_status read_shape(fasttext_reader *r) {
    char quantised;
    int64_t shape[2];
    VPPS_TRY(take(r->s, &quantised, 1, "the matrix"));
    if (quantised) return fail_quantised(r->s);
    VPPS_TRY(take(r->s, shape, sizeof shape, "the matrix"));
    const uint64_t needed = r->n_parts ? r->parts[r->n_parts - 1].row + 1 : 0;
    if (shape[1] == r->h.dim && shape[0] >= 0 && (uint64_t)shape[0] >= needed) return VPPS_OK;
    return fail_model(r->s, "a matrix with a row for every word and n-gram", "another shape");
}

static vpps_status read_rows(fasttext_reader *r) {
    const size_t bytes = (size_t)r->t->size * sizeof(float);
    uint64_t read = 0;
    for (size_t i = 0; i < r->n_parts; i++) {
        const part *p = &r->parts[i];
        for (; read <= p->row; read++) VPPS_TRY(take(r->s, r->row, bytes, "the rest of the matrix"));
        float *values = r->t->values + (size_t)p->id * r->t->size;
        for (uint32_t k = 0; k < r->t->size; k++) values[k] += r->row[k];
    }
    return VPPS_OK;
}

/* Divides each word's sum of rows by the number of rows, and counts the words whose vector comes from n-grams alone. */
static vpps_status finish(fasttext_reader *r) {
    for (uint32_t id = 0; id < r->t->found.words; id++) {
        if (!r->n_rows[id]) continue;
        r->t->found.composed += !r->t->has[id];
        float *values = r->t->values + (size_t)id * r->t->size;
        for (uint32_t k = 0; k < r->t->size; k++) {
            values[k] /= (float)r->n_rows[id];
            if (!isfinite(values[k])) return fail_model(r->s, "finite numbers", "others");
        }
    }
    return VPPS_OK;
}

static vpps_status read_matrix(fasttext_reader *r) {
    const size_t bytes = (size_t)r->t->size * sizeof(float);
    if (r->n_parts) qsort(r->parts, r->n_parts, sizeof *r->parts, compare_parts);
    VPPS_TRY(read_shape(r));
    for (uint32_t id = 0; id < r->t->found.words; id++)
        if (r->n_rows[id]) memset(r->t->values + (size_t)id * r->t->size, 0, bytes);
    VPPS_TRY(read_rows(r));
    return finish(r);
}

static vpps_status read_model(fasttext_reader *r) {
    VPPS_TRY(read_header(r));
    r->n_rows = calloc((size_t)r->t->found.words + 1, sizeof *r->n_rows);
    r->row = malloc((size_t)r->t->size * sizeof *r->row);
    if (!r->n_rows || !r->row) return vpps_fail(VPPS_MEMORY, "vectors: out of memory for %u words", r->t->found.words);
    for (int32_t i = 0; i < r->h.entries; i++) VPPS_TRY(read_entry(r, i));
    VPPS_TRY(add_all_ngrams(r));
    return read_matrix(r);
}

vpps_status vpps_vectors_read_fasttext(vpps_stream *s, const vpps_vectors_info *info, vpps_vectors_target *t) {
    fasttext_reader r = {.s = s, .t = t};
    (void)info;
    const vpps_status status = read_model(&r);
    VPPS_FREE_ARRAYS(r.parts);
    VPPS_FREE(r.n_rows, r.row);
    return status;
}
