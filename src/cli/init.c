/* init.c - see init.h. */
#include "cli/init.h"
#include "base/base.h"
#include "io/descriptor.h"
#include "io/safetensors.h"

/* Whose names the rows of a parameter have. A row of another vocabulary would be another word's. */
static const struct {
    const char *name;
    int vocab;
} tables[] = {
    {"embedding", VOCAB_WORDS}, {"source", VOCAB_WORDS},   {"words", VOCAB_WORDS},
    {"vectors", VOCAB_WORDS},   {"matrices", VOCAB_WORDS}, {"characters", VOCAB_CHARACTERS},
    {"target", VOCAB_CLASSES},  {"W_s", VOCAB_CLASSES},    {"b_s", VOCAB_CLASSES},
};

typedef struct source {
    const session *x;
    const corpus *c;
    const vpps_safetensors *file;
    vpps_vocab *vocab[N_VOCABS]; /* the file's; NULL: it has none */
    uint32_t *ids[N_VOCABS];     /* of a word here -> there */
    FILE *missing;               /* what was not taken, in words */
    uint32_t n_missing;
} source;

/* The vocabulary of a parameter's rows, N_VOCABS: it has none. A language model's classes are its words. */
static int vocab_of(const source *s, const char *name) {
    for (size_t i = 0; i < VPPS_COUNT(tables); i++) {
        if (strcmp(tables[i].name, name) != 0) continue;
        const bool says_words = tables[i].vocab == VOCAB_CLASSES && s->x->settings->network->kind == NET_TEXT;
        const int vocab = says_words ? VOCAB_WORDS : tables[i].vocab;
        return s->c->vocab[vocab] && s->vocab[vocab] ? vocab : N_VOCABS;
    }
    return N_VOCABS;
}

static vpps_status open_source(source *s) {
    for (int k = 0; k < N_VOCABS; k++) {
        const char *text = vpps_safetensors_metadata(s->file, vocab_names[k]);
        if (!text || !s->c->vocab[k]) continue;
        VPPS_TRY(vpps_vocab_from_text(&s->vocab[k], text));
        VPPS_TRY(vpps_vocab_map(s->c->vocab[k], s->vocab[k], VPPS_NO_WORD, &s->ids[k]));
    }
    return VPPS_OK;
}

static void close_source(source *s) {
    for (int k = 0; k < N_VOCABS; k++) {
        vpps_vocab_destroy(s->vocab[k]);
        free(s->ids[k]);
    }
}

/* Row i here is row `there` of the tensor: rows lie behind each other, of `bytes` each, and some are other processes'. */
static void take_row(const vpps_param_info *p, char *to, uint64_t i, const vpps_safetensors_info *t, uint64_t there,
                     size_t bytes) {
    if (i % p->step == p->first) memcpy(to + i / p->step * bytes, t->bytes + there * bytes, bytes);
}

/* Of n rows, those of the same words. Returns how many were taken. */
static uint32_t take_rows(const source *s, int vocab, const vpps_safetensors_info *t, const vpps_param_info *p,
                          char *to, uint64_t n, size_t bytes) {
    uint32_t taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t there = s->ids[vocab][i];
        if (there == VPPS_NO_WORD || there >= t->dims[0]) continue;
        take_row(p, to, i, t, there, bytes);
        taken++;
    }
    return taken;
}

/* A parameter here: so many rows, of so many elements. */
typedef struct shape {
    uint64_t rows, row_elems;
} shape;

/* Does a tensor have such rows, however many? A table's entries of several columns are [count, cols, rows] in a file. */
static bool has_such_rows(const vpps_safetensors_info *t, const vpps_param_info *p, const shape *here) {
    const uint32_t n_dims = p->kind == VPPS_VECTOR ? 1 : p->kind == VPPS_LOOKUP && p->cols > 1 ? 3 : 2;
    if (!t || strcmp(t->dtype, "F32") != 0 || t->n_dims != n_dims) return false;
    return t->dims[1] * t->dims[2] == here->row_elems && (n_dims < 3 || t->dims[1] == p->cols);
}

static vpps_status take_parameter(source *s, vpps_param param, init_found *found) {
    vpps_param_info info = {.size = sizeof info};
    VPPS_TRY(vpps_param_describe(s->x->model, param, &info));
    const bool table = info.kind == VPPS_LOOKUP;
    const shape here = {table ? info.count : info.rows, table ? (uint64_t)info.rows * info.cols : info.cols};
    const vpps_safetensors_info *t = vpps_safetensors_find(s->file, info.name);
    const int vocab = vocab_of(s, info.name);
    const char *separator = s->n_missing ? ", " : "";
    char *to = (char *)vpps_param_values(s->x->model, param);
    uint64_t taken = 0;
    found->parameters++;
    if (has_such_rows(t, &info, &here)) {
        if (vocab < N_VOCABS && here.rows <= vpps_vocab_size(s->c->vocab[vocab])) {
            taken = take_rows(s, vocab, t, &info, to, here.rows, here.row_elems * sizeof(float));
        } else if (vocab == N_VOCABS && t->dims[0] == here.rows) {
            for (; taken < here.rows; taken++) take_row(&info, to, taken, t, taken, here.row_elems * sizeof(float));
        }
    }
    found->whole += taken == here.rows;
    found->partly += taken && taken < here.rows;
    if (taken == here.rows) return VPPS_OK;
    if (taken) {
        fprintf(s->missing, "%s%llu of %s's %llu rows", separator, (unsigned long long)(here.rows - taken), info.name,
                (unsigned long long)here.rows);
    } else {
        fprintf(s->missing, "%s%s%s", separator, info.name, t ? " (of another shape)" : "");
    }
    s->n_missing++;
    return VPPS_OK;
}

static vpps_status take_all(source *s, init_found *found) {
    VPPS_TRY(open_source(s));
    const uint32_t n = vpps_param_count(s->x->model);
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(take_parameter(s, i, found));
    return VPPS_OK;
}

vpps_status init_load(session *x, const corpus *c, char *text, size_t n) {
    const char *path = x->settings->init;
    vpps_safetensors *file;
    char *missing = NULL;
    size_t missing_bytes = 0;
    VPPS_TRY(vpps_safetensors_open(&file, path));
    source s = {.x = x, .c = c, .file = file, .missing = open_memstream(&missing, &missing_bytes)};
    vpps_status status = s.missing ? vpps_safetensors_verify(file) : vpps_fail(VPPS_MEMORY, "no memory for --init");
    if (status == VPPS_OK) status = take_all(&s, &x->init);
    if (s.missing) fclose(s.missing);
    if (status == VPPS_OK && !x->init.whole && !x->init.partly) {
        status = vpps_fail(VPPS_FORMAT, "%s%s: has no parameter that fits %s", VPPS_PATH_ARGS(path),
                           x->settings->network->name);
    }
    if (status == VPPS_OK) {
        snprintf(text, n, "%s%s: took %u of %u parameters%s%.300s", VPPS_PATH_ARGS(path),
                 x->init.whole + x->init.partly, x->init.parameters, s.n_missing ? ", but not " : "",
                 missing ? missing : "");
    }
    free(missing);
    close_source(&s);
    vpps_safetensors_close(file);
    return status;
}
