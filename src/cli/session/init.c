/* init.c - starts a run with the parameters of another run's checkpoint (--init). */
#include "cli/session/init.h"
#include "base/base.h"
#include "cli/session/finite.h"
#include "cli/session/init_rows.h"
#include "io/descriptor.h"
#include "io/safetensors.h"

typedef struct source {
    const session *x;
    const corpus *c;
    const vpps_safetensors *file;
    vpps_vocab *vocab[N_VOCABS]; /* vocabularies in the file; NULL: the file has no such vocabulary */
    uint32_t *ids[N_VOCABS];     /* for each id of this network: the id of the same word in the file */
    init_rows *rows;             /* for each parameter: the vocabulary that shapes it */
    FILE *missing;               /* stream for text about the parameters that were not taken from the file */
    uint32_t n_missing, n_matrices;
} source;

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

/* Copies row `there` of the file's tensor to row i of the parameter `to`, if this process holds row i. */
static void take_row(const vpps_param_info *p, char *to, uint64_t i, const vpps_safetensors_info *t, uint64_t there,
                     size_t bytes) {
    if (i % p->step == p->first) memcpy(to + i / p->step * bytes, t->bytes + there * bytes, bytes);
}

/* For each of n words that the checkpoint has, copies the word's row of a parameter from the checkpoint. Returns the number of rows. */
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

/* Numbers of rows, and of elements in a row, of a parameter of this network. */
typedef struct shape {
    uint64_t rows, row_elems;
} shape;

/* Returns whether rows of the file's tensor have the parameter's size. In files, tables of matrices are [count, cols, rows]. */
static bool has_such_rows(const vpps_safetensors_info *t, const vpps_param_info *p, const shape *here) {
    const uint32_t n_dims = p->kind == VPPS_VECTOR ? 1 : p->kind == VPPS_LOOKUP && p->cols > 1 ? 3 : 2;
    if (!t || strcmp(t->dtype, "F32") != 0 || t->n_dims != n_dims) return false;
    return t->dims[1] * t->dims[2] == here->row_elems && (n_dims < 3 || t->dims[1] == p->cols);
}

/* Returns whether each word of a vocabulary has the same id in this network and in the file. */
static bool same_words(const source *s, int vocab) {
    if (!s->c->vocab[vocab] || !s->vocab[vocab])
        return !s->c->vocab[vocab] && !s->vocab[vocab]; /* true if neither vocabulary has names, only numbers */
    const uint32_t n = vpps_vocab_size(s->c->vocab[vocab]);
    bool same = n == vpps_vocab_size(s->vocab[vocab]);
    for (uint32_t i = 0; i < n && same; i++) same = s->ids[vocab][i] == i;
    return same;
}

/* Copies a tensor of the file to the parameter: all rows if both have the same rows, else those of words that both have. Returns how many. */
static uint64_t take_fitting(const source *s, const vpps_safetensors_info *t, const vpps_param_info *p, init_rows rows,
                             const shape *here, char *to) {
    const size_t bytes = here->row_elems * sizeof(float);
    uint64_t taken = 0;
    if (!has_such_rows(t, p, here)) return 0;
    if (rows.vocab == N_VOCABS || same_words(s, rows.vocab)) {
        if (t->dims[0] != here->rows) return 0;
        for (; taken < here->rows; taken++) take_row(p, to, taken, t, taken, bytes);
        return taken;
    }
    if (!rows.by_row || !s->c->vocab[rows.vocab] || !s->vocab[rows.vocab]) return 0;
    return here->rows <= vpps_vocab_size(s->c->vocab[rows.vocab])
               ? take_rows(s, rows.vocab, t, p, to, here->rows, bytes)
               : 0;
}

/* Returns why no row of a tensor was taken, as text. */
static const char *why_not(const source *s, const vpps_safetensors_info *t, const vpps_param_info *p, init_rows rows,
                           const shape *here) {
    if (!t) return "";
    if (!has_such_rows(t, p, here)) return " (of another shape)";
    if (rows.vocab == N_VOCABS) return " (of another shape)";
    return rows.by_row && s->vocab[rows.vocab] ? " (of other words)" : " (of words that the file does not tell)";
}

static vpps_status take_parameter(source *s, vpps_param param, init_found *found) {
    vpps_param_info info = {.size = sizeof info};
    VPPS_TRY(vpps_param_describe(s->x->model, param, &info));
    const bool table = info.kind == VPPS_LOOKUP;
    const shape here = {table ? info.count : info.rows, table ? (uint64_t)info.rows * info.cols : info.cols};
    const vpps_safetensors_info *t = vpps_safetensors_find(s->file, info.name);
    const init_rows rows = s->rows[param];
    const char *separator = s->n_missing ? ", " : "";
    const uint64_t taken = take_fitting(s, t, &info, rows, &here, (char *)vpps_param_values(s->x->model, param));
    found->parameters++;
    found->whole += taken == here.rows;
    found->partly += taken && taken < here.rows;
    s->n_matrices += taken && info.kind == VPPS_MATRIX;
    if (taken == here.rows) return VPPS_OK;
    if (taken) {
        fprintf(s->missing, "%s%llu of %s's %llu rows", separator, (unsigned long long)(here.rows - taken), info.name,
                (unsigned long long)here.rows);
    } else {
        fprintf(s->missing, "%s%s%s", separator, info.name, why_not(s, t, &info, rows, &here));
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

bool init_is_state(const char *name) {
    static const char begin[] = "optimizer.";
    if (strncmp(name, begin, sizeof begin - 1) != 0) return false;
    name += sizeof begin - 1;
    return *name >= '0' && *name <= '9' && name[strspn(name, "0123456789")] == '/';
}

/* Prints which of the file's parameters the network does not have. */
static void print_unused(const source *s, FILE *f) {
    const char *separator = "";
    for (size_t i = 0; i < vpps_safetensors_count(s->file); i++) {
        const char *name = vpps_safetensors_at(s->file, i)->name;
        vpps_param p;
        if (init_is_state(name) || vpps_param_find(s->x->model, name, &p) == VPPS_OK) continue;
        if (!*separator) fprintf(f, "; %s has no ", s->x->settings->network->name);
        fprintf(f, "%s%s", separator, name), separator = ", ";
    }
}

/* Prints the network sizes that the file has, as "--hidden 64, --embed 32". */
static void print_sizes(const settings *s, const vpps_safetensors *file, FILE *f) {
    const char *separator = "";
    for (const option_row *o = s->network->options; o->name; o++) {
        char key[96];
        snprintf(key, sizeof key, "option.%s", o->name);
        const char *value = o->fixed ? vpps_safetensors_metadata(file, key) : NULL;
        if (value) fprintf(f, "%s--%s %s", separator, o->name, value), separator = ", ";
    }
}

/* Fails if no matrix was taken from the file, only embeddings and vectors. */
static vpps_status check_taken(const source *s, const char *path) {
    char *sizes = NULL;
    size_t n;
    if (s->n_matrices) return VPPS_OK;
    FILE *f = open_memstream(&sizes, &n);
    if (f) print_sizes(s->x->settings, s->file, f);
    vpps_text_end(f, VPPS_OK, &sizes);
    vpps_fail(VPPS_FORMAT, "%s%s: has no matrix that fits %s%s%s", VPPS_PATH_ARGS(path), s->x->settings->network->name,
              sizes && *sizes ? "; it was made with " : "", sizes ? sizes : "");
    free(sizes);
    return VPPS_FORMAT;
}

vpps_status init_take_sizes(settings *s) {
    vpps_safetensors *file;
    size_t n;
    vpps_status status = VPPS_OK;
    VPPS_TRY(vpps_safetensors_open_on_disk(&file, s->init));
    const cli_option *rows = options_rows(s, &n);
    for (size_t i = 0; i < n && status == VPPS_OK; i++) {
        char key[96], why[160];
        if (!rows[i].of_network || !rows[i].row.fixed || s->given[i]) continue;
        snprintf(key, sizeof key, "option.%s", rows[i].row.name);
        const char *value = vpps_safetensors_metadata(file, key);
        if (!value) continue;
        if (!options_read(s, &rows[i], value, why, sizeof why))
            status = vpps_fail(VPPS_FORMAT, "%s: \"%s\" is \"%.64s\", not %s", s->init, key, value, why);
        s->given[i] = true;
    }
    vpps_safetensors_close(file);
    return status;
}

vpps_status init_load(session *x, const corpus *c, char **text) {
    const char *path = x->settings->init;
    vpps_safetensors *file;
    char *missing = NULL;
    size_t missing_bytes = 0;
    *text = NULL;
    VPPS_TRY(vpps_safetensors_open(&file, path));
    source s = {.x = x, .c = c, .file = file, .missing = open_memstream(&missing, &missing_bytes)};
    vpps_status status = s.missing ? vpps_safetensors_verify(file) : vpps_fail(VPPS_MEMORY, "no memory for --init");
    if (status == VPPS_OK) status = init_find_rows(x, &s.rows);
    if (status == VPPS_OK) status = take_all(&s, &x->init);
    if (status == VPPS_OK) print_unused(&s, s.missing);
    status = vpps_text_end(s.missing, status, &missing);
    if (status == VPPS_OK) status = check_taken(&s, path);
    if (status == VPPS_OK) status = finite_check_parameters(x->model, path);
    if (status == VPPS_OK &&
        asprintf(text, "%s%s: took %u of %u parameters%s%s", VPPS_PATH_ARGS(path), x->init.whole + x->init.partly,
                 x->init.parameters, s.n_missing ? ", but not " : "", missing ? missing : "") < 0) {
        *text = NULL;
        status = vpps_fail(VPPS_MEMORY, "no memory for --init");
    }
    VPPS_FREE(missing, s.rows);
    close_source(&s);
    vpps_safetensors_close(file);
    return status;
}
