/* init.c - starts a run with the parameters of another run's checkpoint (--init). */
#include "base/base.h"
#include "cli/session/parameters.h"
#include "io/descriptor.h"
#include "io/safetensors.h"

typedef struct source {
    session *x;
    const corpus *c;
    vpps_safetensors *file;
    bool *other;   /* for each parameter: whether its shape depends on a vocabulary that is not the file's */
    char *text;    /* text about the parameters that were not taken from the file */
    FILE *missing; /* stream that writes `text` */
    uint32_t n_missing, n_matrices;
} source;

static void close_source(source *s) {
    VPPS_FREE(s->text, s->other);
    vpps_safetensors_close(s->file);
}

/* ---------------------------------------------------------------- parameters of other words */

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

/* Marks the parameters whose shape changes when a vocabulary has one more word. */
static vpps_status compare(vpps_model *model, vpps_model *larger, bool *marks) {
    for (vpps_param p = 0; p < vpps_param_count(model); p++) {
        vpps_param q;
        vpps_param_info a = {.size = sizeof a}, b = {.size = sizeof b};
        VPPS_TRY(vpps_param_describe(model, p, &a));
        const bool there = vpps_param_find(larger, a.name, &q) == VPPS_OK;
        if (there) VPPS_TRY(vpps_param_describe(larger, q, &b));
        marks[p] |= !there || !same_shape(&a, &b);
    }
    return VPPS_OK;
}

static vpps_status has_same_words(const source *s, int vocab, bool *same) {
    VPPS_FREED char *here = NULL;
    const char *there = vpps_safetensors_metadata(s->file, vocab_names[vocab]);
    if (s->c->vocab[vocab]) VPPS_TRY(vpps_vocab_to_text(s->c->vocab[vocab], &here));
    *same = here && there ? strcmp(here, there) == 0 : !here && !there;
    return VPPS_OK;
}

/* Finds the parameters of other words. Does not rely on names: records the network with small vocabularies, then with one more word in a
 * vocabulary, and sees which parameters grow. */
static vpps_status find_other(source *s) {
    enum { FEW = 8 };
    const settings *set = s->x->settings;
    const uint32_t n = vpps_param_count(s->x->model);
    net_config config = set->net;
    uint32_t *const sizes[] = {[VOCAB_WORDS] = &config.words,
                               [VOCAB_CHARACTERS] = &config.characters,
                               [VOCAB_EDGE_TYPES] = &config.edge_types,
                               [VOCAB_CLASSES] = &config.classes};
    VPPS_CLOSED_BY(destroy_model) vpps_model *model = NULL;
    s->other = calloc((size_t)n + 1, sizeof *s->other);
    if (!s->other) return vpps_fail(VPPS_MEMORY, "no memory for --init");
    for (size_t k = 0; k < VPPS_COUNT(sizes); k++) *sizes[k] = vpps_min_u32(*sizes[k], FEW);
    VPPS_TRY(make_model(set, config, &model));
    if (vpps_param_count(model) != n)
        return vpps_fail(VPPS_ARGUMENT, "%s has other parameters with fewer words", set->network->name);
    const net_config smallest = config;
    for (int k = 0; k < (int)VPPS_COUNT(sizes); k++, config = smallest) {
        VPPS_CLOSED_BY(destroy_model) vpps_model *larger = NULL;
        bool same;
        VPPS_TRY(has_same_words(s, k, &same));
        if (same || !*sizes[k]) continue;
        ++*sizes[k];
        /* the classes of a language model are its vocabulary's words */
        if (k == VOCAB_WORDS) config.classes += set->network->kind == NET_TEXT;
        VPPS_TRY(make_model(set, config, &larger));
        VPPS_TRY(compare(model, larger, s->other));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- taking parameters */

/* Returns whether a file's tensor has the parameter's shape, of `rows` rows. In files, tables of matrices are [count, cols, rows]. */
static bool fits(const vpps_safetensors_info *t, const vpps_param_info *p, uint64_t rows, uint64_t row_elems) {
    const uint32_t n_dims = p->kind == VPPS_VECTOR ? 1 : p->kind == VPPS_LOOKUP && p->cols > 1 ? 3 : 2;
    if (!t || strcmp(t->dtype, "F32") != 0 || t->n_dims != n_dims || t->dims[0] != rows) return false;
    return t->dims[1] * t->dims[2] == row_elems && (n_dims < 3 || t->dims[1] == p->cols);
}

static vpps_status take_parameter(source *s, vpps_param param) {
    vpps_param_info info = {.size = sizeof info};
    VPPS_TRY(vpps_param_describe(s->x->model, param, &info));
    const bool table = info.kind == VPPS_LOOKUP;
    const uint64_t rows = table ? info.count : info.rows, n = table ? (uint64_t)info.rows * info.cols : info.cols;
    const vpps_safetensors_info *t = vpps_safetensors_find(s->file, info.name);
    const bool fitting = fits(t, &info, rows, n);
    s->x->init.parameters++;
    if (!fitting || s->other[param]) {
        fprintf(s->missing, "%s%s%s", s->n_missing++ ? ", " : "", info.name,
                !t         ? ""
                : !fitting ? " (of another shape)"
                           : " (of other words)");
        return VPPS_OK;
    }
    s->x->init.whole++;
    s->n_matrices += info.kind == VPPS_MATRIX;
    float *to = vpps_param_values(s->x->model, param);
    for (uint64_t i = info.first; i < rows; i += info.step, to += n)
        VPPS_TRY(vpps_safetensors_read_part(s->file, t->name, t->n_dims, t->dims, i * n, n, to));
    return VPPS_OK;
}

/* Takes the parameters that fit. Prints which ones were not taken, and which ones of the file the network does not have. */
static vpps_status take_all(source *s) {
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
    VPPS_TRY(find_other(&s));
    s.missing = open_memstream(&s.text, &bytes);
    VPPS_TRY(vpps_text_end(s.missing, s.missing ? take_all(&s) : VPPS_OK, &s.text));
    VPPS_TRY(check_taken(&s, path));
    VPPS_TRY(finite_check_parameters(x->model, path));
    if (asprintf(text, "%s%s: took %u of %u parameters%s%s", VPPS_PATH_ARGS(path), x->init.whole, x->init.parameters,
                 s.n_missing ? ", but not " : "", s.text) >= 0)
        return VPPS_OK;
    *text = NULL;
    return vpps_fail(VPPS_MEMORY, "no memory for --init");
}
