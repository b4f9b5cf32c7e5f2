/* checkpoint.c - a training run's state to and from one safetensors file.
 *
 * Tensors: every parameter under its name (a matrix rows x cols; a vector rows; a table count x cols x rows, since an entry lies column
 * after column), and state K of the optimiser as optimizer.K/NAME. Metadata: vpps.version, vpps.checksum (of all tensors),
 * vpps.optimizer, vpps.updates (a line for each parameter: how often its state was updated, a blank, its name), vpps.batches (number of
 * trained batches), vpps.seed (of dropout), vpps.random (state of the initialisers) and vpps.products (how a CPU computed products), so
 * that a resumed run computes the same bits. In a file without vpps.updates every state was updated by all batches. */
#include "io/safetensors.h"
#include "runtime/handle.h"
#include "runtime/tables.h"

#include <inttypes.h>

static const char *const optimizer_names[] = {
#define X(id, name, states, lr) name,
    VPPS_OPTIMIZER_TABLE(X)
#undef X
};

static uint32_t dims_of(const vpps_parameter_data *p, uint64_t *dims) {
    switch (p->kind) {
    case VPPS_VECTOR: dims[0] = p->rows; return 1;
    case VPPS_MATRIX: dims[0] = p->rows, dims[1] = p->cols; return 2;
    default: break;
    }
    dims[0] = p->count;
    if (p->cols == 1) return dims[1] = p->rows, 2;
    dims[1] = p->cols;
    dims[2] = p->rows;
    return 3;
}

static char *state_name(const vpps_parameter_data *p, int state) {
    char *name = malloc(strlen(p->name) + 16);
    if (name) sprintf(name, "optimizer.%d/%s", state, p->name);
    return name;
}

/* Tensors of a checkpoint: all parameters' values and optimiser states. names: owned names of states; NULL: a value. */
typedef struct tensor_list {
    vpps_safetensors_tensor *tensors;
    char **names;
    vpps_table_tensor *tables;
} tensor_list;

static bool make_list(tensor_list *list, const vpps_model *model) {
    const size_t most = (1 + VPPS_MAX_STATES) * model->n_params + 1;
    list->tensors = calloc(most, sizeof *list->tensors);
    list->names = calloc(most, sizeof *list->names);
    list->tables = calloc(most, sizeof *list->tables);
    return list->tensors && list->names && list->tables;
}

static size_t list_tensors(const vpps_model *model, tensor_list *list) {
    size_t n = 0;
    for (size_t i = 0; i < model->n_params; i++) {
        const vpps_parameter_data *p = &model->params[i];
        for (int s = -1; s < VPPS_MAX_STATES; s++) {
            if (s >= 0 && !p->states[s]) continue;
            list->names[n] = s < 0 ? NULL : state_name(p, s);
            vpps_safetensors_tensor *t = &list->tensors[n];
            *t = (vpps_safetensors_tensor){.name = s < 0 ? p->name : list->names[n],
                                           .data = s < 0 ? p->values : p->states[s]};
            t->n_dims = dims_of(p, t->dims);
            list->tables[n] = (vpps_table_tensor){(vpps_param)i, s};
            if (vpps_is_sharded(p)) t->data = NULL;
            n++;
        }
    }
    return n;
}

/* Returns the text of the metadata vpps.updates, which says how often each parameter was updated. The caller frees it. NULL: no memory. */
static char *write_updates(const vpps_model *model) {
    size_t room = 1;
    for (size_t i = 0; i < model->n_params; i++) room += strlen(model->params[i].name) + 24;
    char *text = calloc(room, 1), *at = text;
    for (size_t i = 0; text && i < model->n_params; i++)
        at += sprintf(at, "%" PRIu64 " %s\n", model->params[i].updates, model->params[i].name);
    return text;
}

static vpps_status write_file(vpps_handle *h, const char *path, const vpps_metadata *metadata, uint32_t n) {
    enum { OWN = 8 };
    const vpps_model *model = h->model;
    tensor_list list;
    char *updates = write_updates(model);
    vpps_metadata *all = malloc((n + OWN) * sizeof *all);
    const bool made = make_list(&list, model);
    size_t n_tensors = made ? list_tensors(model, &list) : 0;
    vpps_status status = made && all && updates ? VPPS_OK : VPPS_MEMORY;
    for (size_t i = 0; i < n_tensors; i++)
        if (!list.tensors[i].name) status = VPPS_MEMORY;
    if (status != VPPS_OK) {
        vpps_fail(status, "save %s: out of memory", path);
    } else {
        char batches[24], seed[24], random[24], checksum[VPPS_CHECKSUM_BYTES] = "";
        char products[VPPS_CHOICE_TEXT] = "";
        if (h->device->table->choice) h->device->table->choice(h->device, products);
        snprintf(batches, sizeof batches, "%" PRIu64, model->batches);
        snprintf(seed, sizeof seed, "%" PRIu64, h->options.seed);
        snprintf(random, sizeof random, "%" PRIu64, model->random);
        const vpps_metadata own[OWN] = {{"vpps.version", VPPS_VERSION},
                                        {VPPS_CHECKSUM_KEY, checksum},
                                        {"vpps.optimizer", optimizer_names[h->options.optimizer.kind]},
                                        {"vpps.updates", updates},
                                        {"vpps.batches", batches},
                                        {"vpps.seed", seed},
                                        {"vpps.random", random},
                                        {"vpps.products", products}};
        memcpy(all, own, sizeof own);
        if (n) memcpy(all + OWN, metadata, n * sizeof *metadata);
        vpps_table_source tables = {h->options.communicator, model, list.tables};
        const vpps_safetensors_source source = {vpps_table_read, &tables}, *from = model->shards > 1 ? &source : NULL;
        status = vpps_safetensors_checksum(list.tensors, n_tensors, from, checksum);
        if (status == VPPS_OK) status = vpps_safetensors_write(path, list.tensors, n_tensors, all, n + OWN, from);
    }
    for (size_t i = 0; i < n_tensors; i++) free(list.names[i]);
    VPPS_FREE(list.names, list.tensors, list.tables, all, updates);
    return status;
}

/* Saves a model whose tables are sharded over processes: the first process writes the file, and all return its success or failure. */
static vpps_status write_together(vpps_handle *h, const char *path, const vpps_metadata *metadata, uint32_t n) {
    vpps_communicator *c = h->options.communicator;
    if (c->rank) {
        VPPS_TRY(vpps_tables_give(c, h->model));
        return vpps_comm_agree(c, VPPS_OK);
    }
    char message[VPPS_MESSAGE_BYTES];
    vpps_status status = write_file(h, path, metadata, n);
    /* communication has failed: this process cannot tell the others */
    if (status == VPPS_STALL || status == VPPS_DEVICE) return status;
    snprintf(message, sizeof message, "%s", vpps_error_message());
    VPPS_TRY(vpps_tables_done(c));
    if (status != VPPS_OK) status = vpps_fail(status, "%s", message);
    return vpps_comm_agree(c, status);
}

vpps_status vpps_save(vpps_handle *h, const char *path, const vpps_metadata *metadata, uint32_t n) {
    VPPS_NEED(path);
    if (n) VPPS_NEED(metadata);
    VPPS_TRY(vpps_handle_trains(h, "vpps_save"));
    VPPS_TRY(vpps_read_parameters(h));
    return h->model->shards > 1 ? write_together(h, path, metadata, n) : write_file(h, path, metadata, n);
}

/* ---------------------------------------------------------------- loading */

/* One parameter's tensors in a file: values and optimiser states. The tensors of all parameters are read before the model changes. */
typedef struct contents {
    float *values[1 + VPPS_MAX_STATES];
    uint64_t updates;
} contents;

static vpps_status read_tensor(const vpps_safetensors *file, const vpps_parameter_data *p, const char *name,
                               float **out) {
    uint64_t dims[3];
    uint32_t n_dims = dims_of(p, dims);
    *out = malloc((vpps_elems_held(p) + 1) * sizeof **out);
    if (!*out) return vpps_fail(VPPS_MEMORY, "load: out of memory for %s", name);
    if (!vpps_is_sharded(p)) return vpps_safetensors_read_f32(file, name, n_dims, dims, *out);
    enum { PIECE_ELEMS = 1 << 18 };
    const size_t words = (size_t)p->rows * p->cols, at_a_time = words < PIECE_ELEMS ? PIECE_ELEMS / words : 1;
    float *piece = malloc(at_a_time * words * sizeof *piece);
    vpps_status status = piece ? VPPS_OK : vpps_fail(VPPS_MEMORY, "load: out of memory for %s", name);
    for (uint32_t first = 0, n; first < p->count && status == VPPS_OK; first += n) {
        n = vpps_min_u32(p->count - first, (uint32_t)at_a_time);
        status = vpps_safetensors_read_part(file, name, n_dims, dims, first * (uint64_t)words, n * words, piece);
        if (status == VPPS_OK) vpps_take_entries(p, piece, first, n, *out);
    }
    free(piece);
    return status;
}

static vpps_status read_parameter(const vpps_safetensors *file, const vpps_parameter_data *p, bool states,
                                  contents *c) {
    VPPS_TRY(read_tensor(file, p, p->name, &c->values[0]));
    for (int s = 0; states && s < VPPS_MAX_STATES; s++) {
        char *name = state_name(p, s);
        if (!name) return vpps_fail(VPPS_MEMORY, "load: out of memory");
        vpps_status status = VPPS_OK;
        if (vpps_safetensors_find(file, name)) status = read_tensor(file, p, name, &c->values[1 + s]);
        free(name);
        VPPS_TRY(status);
    }
    return VPPS_OK;
}

static vpps_status read_number(const vpps_safetensors *file, const char *path, const char *key, uint64_t most,
                               uint64_t *out) {
    const char *text = vpps_safetensors_metadata(file, key);
    if (!text) return VPPS_OK; /* a file of another program lacks this metadata */
    if (vpps_read_number(text, most, out)) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s: metadata %s is \"%.40s\"; expected a whole number up to %llu", path, key, text,
                     (unsigned long long)most);
}

/* Largest credible number of batches. A file that claims more is rejected. */
#define MOST_BATCHES (UINT64_C(1) << 53)

static vpps_status read_updates(const vpps_safetensors *file, const char *path, const vpps_parameter_data *p,
                                uint64_t batches, contents *c) {
    const char *line = vpps_safetensors_metadata(file, "vpps.updates");
    if (!c->values[1]) return VPPS_OK; /* the file has no optimiser state of the parameter */
    c->updates = batches;
    if (!line) return VPPS_OK;
    for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
        char number[24] = "";
        const size_t digits = strspn(line, "0123456789"), length = strlen(p->name);
        if (digits >= sizeof number || line[digits] != ' ' || (size_t)(end - line) != digits + 1 + length ||
            memcmp(line + digits + 1, p->name, length) != 0)
            continue;
        memcpy(number, line, digits);
        if (vpps_read_number(number, MOST_BATCHES, &c->updates)) return VPPS_OK;
    }
    return vpps_fail(VPPS_FORMAT, "%s: metadata vpps.updates has no number of parameter %s", path, p->name);
}

/* Makes the device multiply matrices as the file's writer did (instructions, precision), if their processors match. */
static vpps_status take_choice(const vpps_safetensors *file, vpps_handle *h) {
    const char *products = vpps_safetensors_metadata(file, "vpps.products");
    if (!products || !h->device->table->take_choice || h->options.no_tuning) return VPPS_OK;
    VPPS_TRY(h->device->table->take_choice(h->device, products));
    vpps_handle_note_precision(h);
    return VPPS_OK;
}

static vpps_status read_all(const vpps_safetensors *file, const char *path, vpps_handle *h, contents *c,
                            uint64_t *numbers) {
    const char *optimizer = vpps_safetensors_metadata(file, "vpps.optimizer");
    bool states = optimizer && !strcmp(optimizer, optimizer_names[h->options.optimizer.kind]);
    VPPS_TRY(read_number(file, path, "vpps.batches", MOST_BATCHES, &numbers[0]));
    VPPS_TRY(read_number(file, path, "vpps.seed", UINT64_MAX, &numbers[1]));
    VPPS_TRY(read_number(file, path, "vpps.random", UINT64_MAX, &numbers[2]));
    for (size_t i = 0; i < h->model->n_params; i++) {
        VPPS_TRY(read_parameter(file, &h->model->params[i], states, &c[i]));
        VPPS_TRY(read_updates(file, path, &h->model->params[i], numbers[0], &c[i]));
    }
    return VPPS_OK;
}

/* Moves a parameter's values and states from the file to the model. States that the file lacks become zero. */
static void adopt(vpps_parameter_data *p, contents *c) {
    size_t bytes = vpps_elems_held(p) * sizeof(float);
    if (c->values[0]) memcpy(p->values, c->values[0], bytes);
    p->updates = c->updates;
    for (int s = 0; s < VPPS_MAX_STATES; s++) {
        if (!c->values[1 + s]) {
            if (p->states[s]) memset(p->states[s], 0, bytes);
            continue;
        }
        free(p->states[s]);
        p->states[s] = c->values[1 + s];
        c->values[1 + s] = NULL;
    }
}

vpps_status vpps_load(vpps_handle *h, const char *path) {
    VPPS_TRY(vpps_handle_trains(h, "vpps_load"));
    VPPS_NEED(path);
    vpps_model *model = h->model;
    vpps_handle_finish(h);
    vpps_safetensors *file;
    VPPS_TRY(vpps_safetensors_open(&file, path));
    contents *c = calloc(model->n_params + 1, sizeof *c);
    uint64_t numbers[3] = {0, h->options.seed, model->random};
    vpps_status status = c ? vpps_safetensors_verify(file) : vpps_fail(VPPS_MEMORY, "load %s: out of memory", path);
    if (status == VPPS_OK) status = read_all(file, path, h, c, numbers);
    /* this also allocates all optimiser states in the model, including those that the file lacks */
    if (status == VPPS_OK) status = vpps_read_parameters(h);
    if (status == VPPS_OK) status = take_choice(file, h);
    if (status == VPPS_OK) {
        for (size_t i = 0; i < model->n_params; i++) adopt(&model->params[i], &c[i]);
        model->batches = numbers[0];
        h->options.seed = numbers[1];
        model->random = numbers[2];
        status = vpps_write_parameters(h);
    }
    for (size_t i = 0; c && i < model->n_params; i++)
        for (int s = 0; s <= VPPS_MAX_STATES; s++) free(c[i].values[s]);
    free(c);
    vpps_safetensors_close(file);
    return status;
}
