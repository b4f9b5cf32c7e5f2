/* model.c - a model's parameters and their initial values. */
#include "graph/model.h"
#include "vpps_data.h"

#include <math.h>

static const uint64_t max_param_elems = (uint64_t)1 << 31; /* lets 32-bit offsets address values and state */

vpps_status vpps_model_create(vpps_model **out, uint64_t seed) {
    VPPS_NEED(out);
    *out = NULL;
    vpps_model *model = calloc(1, sizeof *model);
    if (!model) return vpps_fail(VPPS_MEMORY, "model: out of memory");
    model->random = vpps_mix64(seed + 1);
    *out = model;
    return VPPS_OK;
}

void vpps_model_destroy(vpps_model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->n_params; i++) {
        VPPS_FREE_ARRAYS(model->params[i].gradient, model->params[i].entries);
        VPPS_FREE(model->params[i].name, model->params[i].values);
        for (int s = 0; s < VPPS_MAX_STATES; s++) free(model->params[i].states[s]);
    }
    VPPS_FREE_ARRAYS(model->params);
    vpps_free_cells(model);
    free(model);
}

/* Draws a standard normal number by the method of Box and Muller (1958); the second number that it gives is not used. */
static float random_normal(uint64_t *state) {
    double u = 1.0 - vpps_random_unit(state), v = vpps_random_unit(state);
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

static float next_value(const vpps_parameter_data *p, const vpps_init *init, float bound, uint64_t *random) {
    switch (init->kind) {
    case VPPS_INIT_GLOROT: return p->kind == VPPS_VECTOR ? 0.0f : bound * (2.0f * vpps_random_unit(random) - 1.0f);
    case VPPS_INIT_UNIFORM: return init->a + (init->b - init->a) * vpps_random_unit(random);
    case VPPS_INIT_NORMAL: return init->a + init->b * random_normal(random);
    default: return init->a;
    }
}

/* Initialises a parameter. Draws numbers for other processes' entries too, so that values do not depend on the number of processes. */
static void initialise(vpps_parameter_data *p, const vpps_init *init, uint64_t *random) {
    const size_t words = (size_t)p->rows * p->cols;
    const float bound = sqrtf(6.0f / ((float)p->rows + (float)p->cols));
    float *at = p->values;
    if (init->kind == VPPS_INIT_VALUES) {
        vpps_take_entries(p, init->values, 0, p->count, p->values);
        return;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        const bool held = !vpps_is_sharded(p) || i % p->shards == p->rank;
        for (size_t k = 0; k < words; k++) {
            const float x = next_value(p, init, bound, random);
            if (held) *at++ = x;
        }
    }
}

void vpps_take_entries(const vpps_parameter_data *p, const float *entries, uint32_t first, uint32_t n, float *held) {
    const size_t words = (size_t)p->rows * p->cols;
    if (!vpps_is_sharded(p)) {
        memcpy(held + first * words, entries, n * words * sizeof *held);
        return;
    }
    uint32_t i = first + (p->rank + p->shards - first % p->shards) % p->shards;
    for (; i < first + n; i += p->shards)
        memcpy(held + i / p->shards * words, entries + (i - first) * words, words * sizeof *held);
}

void vpps_take_over_states(vpps_model *model, vpps_optimizer_kind kind) {
    for (size_t i = 0; i < model->n_params && model->optimizer != kind; i++) {
        vpps_parameter_data *p = &model->params[i];
        VPPS_FREE(p->states[0], p->states[1]);
        p->states[0] = p->states[1] = NULL;
        p->updates = 0;
    }
    model->optimizer = kind;
}

vpps_status vpps_need_states(vpps_model *model, uint32_t states, bool shared_out_alone) {
    for (size_t i = 0; i < model->n_params; i++) {
        vpps_parameter_data *p = &model->params[i];
        for (uint32_t s = 0; s < states && (!shared_out_alone || vpps_is_sharded(p)); s++) {
            if (!p->states[s]) p->states[s] = calloc(vpps_elems_held(p) + 1, sizeof *p->states[s]);
            if (!p->states[s]) return vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", p->name);
        }
    }
    return VPPS_OK;
}

static vpps_param find_name(const vpps_model *model, const char *name) {
    for (size_t i = 0; i < model->n_params; i++)
        if (!strcmp(model->params[i].name, name)) return (vpps_param)i;
    return VPPS_NO_PARAM;
}

/* Returns whether checkpoints use this name for something other than a parameter: "__metadata__" or "optimizer.K/NAME". */
static bool is_of_checkpoint(const char *name) {
    static const char state[] = "optimizer.";
    if (!strcmp(name, "__metadata__")) return true;
    if (strncmp(name, state, sizeof state - 1) != 0) return false;
    const char *number = name + sizeof state - 1, *end = number;
    while (*end >= '0' && *end <= '9') end++;
    return end > number && *end == '/';
}

static bool is_utf8(const char *name) {
    const size_t n = strlen(name);
    for (size_t at = 0; at < n;) {
        const uint32_t bytes = vpps_utf8_character(name + at, n - at);
        if (bytes == 1 && (unsigned char)name[at] >= 0x80) return false;
        at += bytes;
    }
    return true;
}

vpps_status vpps_check_name(const char *what, const char *name) {
    if (!*name) return vpps_fail(VPPS_ARGUMENT, "%s: the name is empty", what);
    if (!is_utf8(name))
        return vpps_fail(VPPS_ARGUMENT, "%s: the name is not UTF-8, which checkpoints and traces need", what);
    /* control characters: U+0000 to U+001F and U+007F to U+009F, the latter two bytes in UTF-8 */
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f || (*c == (char)0xc2 && (unsigned char)c[1] < 0xa0))
            return vpps_fail(VPPS_ARGUMENT, "%s: the name holds a control character, byte %td", what, c - name);
    return VPPS_OK;
}

static vpps_status check_name(const vpps_model *model, const char *name) {
    VPPS_TRY(vpps_check_name("parameter", name));
    if (is_of_checkpoint(name))
        return vpps_fail(VPPS_ARGUMENT, "parameter %s: a checkpoint has something else under this name", name);
    if (find_name(model, name) == VPPS_NO_PARAM) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "parameter %s: there is one of this name already", name);
}

static vpps_status add(vpps_model *model, vpps_param *out, const char *name, vpps_parameter_data p,
                       const vpps_init *init) {
    static const vpps_init glorot = {VPPS_INIT_GLOROT, 0, 0, NULL};
    if (!init) init = &glorot;
    *out = VPPS_NO_PARAM;
    VPPS_TRY(check_name(model, name));
    if (model->handles) return vpps_fail(VPPS_STATE, "parameter %s: the model has a handle; add it before", name);
    uint64_t entry = (uint64_t)p.rows * p.cols;
    if (!p.count || !entry || entry >= max_param_elems || entry * p.count >= max_param_elems)
        return vpps_fail(VPPS_ARGUMENT, "parameter %s: %u x %u x %u elements; expected between 1 and 2^31", name,
                         p.count, p.rows, p.cols);
    if ((unsigned)init->kind > VPPS_INIT_VALUES || (init->kind == VPPS_INIT_VALUES && !init->values))
        return vpps_fail(VPPS_ARGUMENT, "parameter %s: unknown initialiser, or no values given", name);
    if (!VPPS_RESERVE(model->params, model->n_params + 1)) goto out_of_memory;
    if (p.kind == VPPS_LOOKUP) {
        p.rank = model->rank;
        p.shards = model->shards;
    }
    p.values = malloc((vpps_elems_held(&p) + 1) * sizeof(float));
    p.name = strdup(name);
    if (!p.values || !p.name) goto out_of_memory;
    initialise(&p, init, &model->random);
    model->params[model->n_params] = p;
    *out = (vpps_param)model->n_params++;
    return VPPS_OK;
out_of_memory:
    VPPS_FREE(p.values, p.name);
    return vpps_fail(VPPS_MEMORY, "parameter %s: out of memory", name);
}

vpps_status vpps_add_matrix(vpps_model *model, vpps_param *out, const char *name, uint32_t rows, uint32_t cols,
                            const vpps_init *init) {
    VPPS_NEED(model, out, name);
    return add(model, out, name, (vpps_parameter_data){.kind = VPPS_MATRIX, .count = 1, .rows = rows, .cols = cols},
               init);
}

vpps_status vpps_add_vector(vpps_model *model, vpps_param *out, const char *name, uint32_t rows,
                            const vpps_init *init) {
    VPPS_NEED(model, out, name);
    return add(model, out, name, (vpps_parameter_data){.kind = VPPS_VECTOR, .count = 1, .rows = rows, .cols = 1}, init);
}

vpps_status vpps_add_lookup(vpps_model *model, vpps_param *out, const char *name, uint32_t count, uint32_t rows,
                            uint32_t cols, const vpps_init *init) {
    VPPS_NEED(model, out, name);
    return add(model, out, name, (vpps_parameter_data){.kind = VPPS_LOOKUP, .count = count, .rows = rows, .cols = cols},
               init);
}

vpps_status vpps_shard_tables(vpps_model *model, const vpps_communicator *c) {
    VPPS_NEED(model);
    for (size_t i = 0; i < model->n_params; i++) {
        if (model->params[i].kind != VPPS_LOOKUP) continue;
        return vpps_fail(VPPS_STATE, "shard tables: %s is declared already; expected the call before all lookup tables",
                         model->params[i].name);
    }
    model->rank = vpps_communicator_rank(c);
    model->shards = vpps_communicator_size(c);
    return VPPS_OK;
}

static vpps_status check_param(const vpps_model *model, vpps_param param) {
    if (param < model->n_params) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "parameter %u: the model has %zu", param, model->n_params);
}

vpps_status vpps_freeze(vpps_model *model, vpps_param param, bool frozen) {
    VPPS_NEED(model);
    VPPS_TRY(check_param(model, param));
    model->params[param].frozen = frozen;
    return VPPS_OK;
}

uint32_t vpps_param_count(const vpps_model *model) { return model ? (uint32_t)model->n_params : 0; }

vpps_status vpps_param_describe(const vpps_model *model, vpps_param param, vpps_param_info *out) {
    VPPS_NEED(model, out);
    VPPS_TRY(check_param(model, param));
    const vpps_parameter_data *p = &model->params[param];
    const vpps_param_info info = {.name = p->name,
                                  .kind = p->kind,
                                  .count = p->count,
                                  .rows = p->rows,
                                  .cols = p->cols,
                                  .frozen = p->frozen,
                                  .first = p->rank,
                                  .step = vpps_is_sharded(p) ? p->shards : 1};
    return vpps_give_struct(out, &info, sizeof info, VPPS_LEAST(vpps_param_info, frozen), "vpps_param_info");
}

vpps_status vpps_param_find(const vpps_model *model, const char *name, vpps_param *out) {
    VPPS_NEED(model, name, out);
    *out = find_name(model, name);
    if (*out != VPPS_NO_PARAM) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "parameter %s: the model has none of this name", name);
}

float *vpps_param_values(vpps_model *model, vpps_param param) {
    VPPS_NEED_OR(NULL, model);
    return check_param(model, param) == VPPS_OK ? model->params[param].values : NULL;
}
