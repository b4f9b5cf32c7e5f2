/* init.c - starts a run with the parameters of another run's checkpoint (--init). */
#include "base/base.h"
#include "cli/session/parameters.h"
#include "io/descriptor.h"
#include "io/safetensors.h"

/* Tells whether a parameter's rows belong to the words of a vocabulary (of words, characters or classes). */
typedef struct param_rows {
    int vocab; /* the vocabulary whose size shapes the parameter (VOCAB_WORDS, ...); N_VOCABS: none */
    /* true: the parameter has one row per word, in order; false: the vocabulary's size changes the parameter's shape in another way */
    bool by_row;
} param_rows;

typedef struct source {
    session *x;
    const corpus *c;
    vpps_safetensors *file;
    vpps_vocab *vocab[N_VOCABS]; /* vocabularies in the file; NULL: the file has no such vocabulary */
    /* for each id of this network: the id of the same word in the file; NULL: network or file lacks the vocabulary */
    uint32_t *ids[N_VOCABS];
    param_rows *rows; /* for each parameter: the vocabulary that shapes it */
    char *text;       /* text about the parameters that were not taken from the file */
    FILE *missing;    /* stream that writes `text` */
    uint32_t n_missing, n_matrices;
} source;

static void close_source(source *s) {
    for (int k = 0; k < N_VOCABS; k++) {
        vpps_vocab_destroy(s->vocab[k]);
        free(s->ids[k]);
    }
    VPPS_FREE(s->text, s->rows);
    vpps_safetensors_close(s->file);
}

/* ---------------------------------------------------------------- which rows are words */

static void destroy_model(vpps_model **m) { vpps_model_destroy(*m); }

static vpps_status make_model(const settings *s, net_config config, vpps_model **model) {
    void *instance = NULL;
    VPPS_TRY(vpps_model_create(model, 1));
    if (s->class_weights) VPPS_TRY(parameters_declare_weights(*model, &config));
    const vpps_status status = network_create(s->network, &instance, *model, &config);
    network_destroy(instance);
    return status;
}

static bool same_shape(const vpps_param_info *a, const vpps_param_info *b) {
    return a->count == b->count && a->rows == b->rows && a->cols == b->cols;
}

/* Marks in `rows` the parameters whose shape changes when a vocabulary has one more word. */
static vpps_status compare(vpps_model *model, vpps_model *larger, int vocab, param_rows *rows) {
    for (vpps_param p = 0; p < vpps_param_count(model); p++) {
        vpps_param q;
        vpps_param_info a = {.size = sizeof a}, b = {.size = sizeof b};
        VPPS_TRY(vpps_param_describe(model, p, &a));
        const bool there = vpps_param_find(larger, a.name, &q) == VPPS_OK;
        if (there) VPPS_TRY(vpps_param_describe(larger, q, &b));
        if (there && same_shape(&a, &b)) continue;
        /* a: the parameter in `model`; b: in `larger`, which knows one word more. If one more row gives a the shape of b, rows are words */
        ++*(a.kind == VPPS_LOOKUP ? &a.count : &a.rows);
        rows[p] = (param_rows){vocab, there && rows[p].vocab == N_VOCABS && same_shape(&a, &b)};
    }
    return VPPS_OK;
}

/* Finds the vocabulary that each parameter's rows belong to. Does not rely on names: records the network with small vocabularies, then with
 * one more word in one of them, and sees which parameters grow. */
static vpps_status find_rows(const session *x, param_rows **rows) {
    enum { FEW = 8 };
    const settings *s = x->settings;
    const bool text = s->network->kind == NET_TEXT; /* the classes of a language model are its vocabulary's words */
    const uint32_t n = vpps_param_count(x->model);
    net_config config = s->net;
    uint32_t *const sizes[] = {[VOCAB_WORDS] = &config.words,
                               [VOCAB_CHARACTERS] = &config.characters,
                               [VOCAB_EDGE_TYPES] = &config.edge_types,
                               [VOCAB_CLASSES] = &config.classes};
    VPPS_CLOSED_BY(destroy_model) vpps_model *model = NULL;
    *rows = calloc((size_t)n + 1, sizeof **rows);
    if (!*rows) return vpps_fail(VPPS_MEMORY, "no memory for --init");
    for (uint32_t p = 0; p < n; p++) (*rows)[p].vocab = N_VOCABS;
    for (size_t k = 0; k < VPPS_COUNT(sizes); k++) *sizes[k] = vpps_min_u32(*sizes[k], FEW);
    VPPS_TRY(make_model(s, config, &model));
    if (vpps_param_count(model) != n)
        return vpps_fail(VPPS_ARGUMENT, "%s has other parameters with fewer words", s->network->name);
    const net_config smallest = config;
    for (int k = 0; k < (int)VPPS_COUNT(sizes); k++, config = smallest) {
        VPPS_CLOSED_BY(destroy_model) vpps_model *larger = NULL;
        if (!*sizes[k] || (text && k == VOCAB_CLASSES)) continue;
        ++*sizes[k];
        if (k == VOCAB_WORDS) config.classes += text;
        VPPS_TRY(make_model(s, config, &larger));
        VPPS_TRY(compare(model, larger, k, *rows));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- taking parameters */

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
    /* if neither this network nor the file has names for the ids, equal ids mean the same */
    if (!s->ids[vocab]) return !s->c->vocab[vocab] && !s->vocab[vocab];
    const uint32_t n = vpps_vocab_size(s->c->vocab[vocab]);
    bool same = n == vpps_vocab_size(s->vocab[vocab]);
    for (uint32_t i = 0; i < n && same; i++) same = s->ids[vocab][i] == i;
    return same;
}

/* Reads a tensor of the file into the parameter: all rows if both have the same rows, else those of words that both have. *taken: the
 * number of these rows, even if other processes hold some of them. */
static vpps_status take_fitting(const source *s, const vpps_safetensors_info *t, const vpps_param_info *p,
                                param_rows rows, const shape *here, float *to, uint64_t *taken) {
    const uint64_t n = here->row_elems;
    *taken = 0;
    if (!has_such_rows(t, p, here)) return VPPS_OK;
    const bool same = rows.vocab == N_VOCABS || same_words(s, rows.vocab);
    const uint32_t *ids = same ? NULL : s->ids[rows.vocab];
    if (same ? t->dims[0] != here->rows : !rows.by_row || !ids || here->rows > vpps_vocab_size(s->c->vocab[rows.vocab]))
        return VPPS_OK;
    for (uint64_t i = 0; i < here->rows; i++) {
        const uint64_t there = same ? i : ids[i];
        if ((!same && there == VPPS_NO_WORD) || there >= t->dims[0]) continue;
        if (i % p->step == p->first)
            VPPS_TRY(
                vpps_safetensors_read_part(s->file, t->name, t->n_dims, t->dims, there * n, n, to + i / p->step * n));
        ++*taken;
    }
    return VPPS_OK;
}

static vpps_status take_parameter(source *s, vpps_param param) {
    vpps_param_info info = {.size = sizeof info};
    VPPS_TRY(vpps_param_describe(s->x->model, param, &info));
    const bool table = info.kind == VPPS_LOOKUP;
    const shape here = {table ? info.count : info.rows, table ? (uint64_t)info.rows * info.cols : info.cols};
    const vpps_safetensors_info *t = vpps_safetensors_find(s->file, info.name);
    const param_rows rows = s->rows[param];
    const char *separator = s->n_missing ? ", " : "";
    uint64_t taken;
    VPPS_TRY(take_fitting(s, t, &info, rows, &here, vpps_param_values(s->x->model, param), &taken));
    s->x->init.parameters++;
    s->x->init.whole += taken == here.rows;
    s->x->init.partly += taken && taken < here.rows;
    s->n_matrices += taken && info.kind == VPPS_MATRIX;
    if (taken == here.rows) return VPPS_OK;
    s->n_missing++;
    if (taken)
        fprintf(s->missing, "%s%llu of %s's %llu rows", separator, (unsigned long long)(here.rows - taken), info.name,
                (unsigned long long)here.rows);
    else
        fprintf(s->missing, "%s%s%s", separator, info.name,
                !t                                                          ? ""
                : !has_such_rows(t, &info, &here) || rows.vocab == N_VOCABS ? " (of another shape)"
                : rows.by_row && s->vocab[rows.vocab]                       ? " (of other words)"
                                                      : " (of words that the file does not tell)");
    return VPPS_OK;
}

/* Takes the parameters that fit. Prints which ones were not taken, and which ones of the file the network does not have. */
static vpps_status take_all(source *s) {
    for (int k = 0; k < N_VOCABS; k++) {
        const char *text = vpps_safetensors_metadata(s->file, vocab_names[k]);
        if (!text || !s->c->vocab[k]) continue;
        VPPS_TRY(vpps_vocab_from_text(&s->vocab[k], text));
        VPPS_TRY(vpps_vocab_map(s->c->vocab[k], s->vocab[k], VPPS_NO_WORD, &s->ids[k]));
    }
    for (vpps_param p = 0; p < vpps_param_count(s->x->model); p++) VPPS_TRY(take_parameter(s, p));
    const char *separator = "";
    for (size_t i = 0; i < vpps_safetensors_count(s->file); i++) {
        const char *name = vpps_safetensors_at(s->file, i)->name;
        vpps_param p;
        if (init_is_state(name) || vpps_param_find(s->x->model, name, &p) == VPPS_OK) continue;
        if (!*separator) fprintf(s->missing, "; %s has no ", s->x->settings->network->name);
        fprintf(s->missing, "%s%s", separator, name);
        separator = ", ";
    }
    return VPPS_OK;
}

/* Fails, and tells the sizes of the file's network as options, if no matrix was taken from the file, only embeddings and vectors. */
static vpps_status check_taken(const source *s, const char *path) {
    VPPS_FREED char *sizes = NULL;
    size_t n;
    if (s->n_matrices) return VPPS_OK;
    FILE *f = open_memstream(&sizes, &n);
    for (const option_row *o = s->x->settings->network->options; f && o->name; o++) {
        char key[96];
        snprintf(key, sizeof key, "option.%s", o->name);
        const char *value = o->fixed ? vpps_safetensors_metadata(s->file, key) : NULL;
        if (value) fprintf(f, "%s--%s %s", ftell(f) ? ", " : "", o->name, value);
    }
    vpps_text_end(f, VPPS_OK, &sizes);
    return vpps_fail(VPPS_FORMAT, "%s%s: has no matrix that fits %s%s%s", VPPS_PATH_ARGS(path),
                     s->x->settings->network->name, sizes && *sizes ? "; it was made with " : "", sizes ? sizes : "");
}

/* ---------------------------------------------------------------- all of it */

bool init_is_state(const char *name) {
    static const char begin[] = "optimizer.";
    if (strncmp(name, begin, sizeof begin - 1) != 0) return false;
    name += sizeof begin - 1;
    return *name >= '0' && *name <= '9' && name[strspn(name, "0123456789")] == '/';
}

vpps_status init_take_sizes(settings *s) {
    VPPS_CLOSED_BY(close_source) source from = {.x = NULL};
    VPPS_TRY(vpps_safetensors_open(&from.file, s->init));
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        char key[96], why[160];
        if (!o->of_network || !o->row.fixed || s->given[o->number]) continue;
        snprintf(key, sizeof key, "option.%s", o->row.name);
        const char *value = vpps_safetensors_metadata(from.file, key);
        if (!value) continue;
        if (!options_read(s, o, value, why, sizeof why))
            return vpps_fail(VPPS_FORMAT, "%s: \"%s\" is \"%.64s\", not %s", s->init, key, value, why);
        s->given[o->number] = true;
    }
    return VPPS_OK;
}

vpps_status init_load(session *x, const corpus *c, char **text) {
    VPPS_CLOSED_BY(close_source) source s = {.x = x, .c = c};
    const char *path = x->settings->init;
    size_t bytes;
    *text = NULL;
    VPPS_TRY(vpps_safetensors_open(&s.file, path));
    VPPS_TRY(vpps_safetensors_verify(s.file));
    VPPS_TRY(find_rows(x, &s.rows));
    s.missing = open_memstream(&s.text, &bytes);
    VPPS_TRY(vpps_text_end(s.missing, s.missing ? take_all(&s) : VPPS_OK, &s.text));
    VPPS_TRY(check_taken(&s, path));
    VPPS_TRY(finite_check_parameters(x->model, path));
    if (asprintf(text, "%s%s: took %u of %u parameters%s%s", VPPS_PATH_ARGS(path), x->init.whole + x->init.partly,
                 x->init.parameters, s.n_missing ? ", but not " : "", s.text) >= 0)
        return VPPS_OK;
    *text = NULL;
    return vpps_fail(VPPS_MEMORY, "no memory for --init");
}
