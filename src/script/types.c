/* types.c - finds, makes, compiles and drops the types of vertices (types.h). */
#include "script/types.h"

enum {
    FEW_ARGUMENTS = 8, /* sums with more arguments share one compiled cell, which takes any number */
    MOST_KEPT = 1024   /* the usual limit for the number of types and compiled cells together */
};

static void free_type(vpps_type *type) {
    if (!type) return;
    for (uint32_t i = 0; i < type->n_compiled; i++) vpps_compiled_cell_free(type->compiled[i]);
    vpps_compiled_cell_free(type->base);
    VPPS_FREE_ARRAYS(type->params, type->compiled);
    VPPS_FREE(type->key, type->params_reach, type);
}

void vpps_types_free(vpps_types *t) {
    for (uint32_t i = 0; i < t->n_types; i++) free_type(t->types[i]);
    VPPS_FREE_ARRAYS(t->types, t->of_cell, t->key);
    vpps_index_free(&t->indices);
    *t = (vpps_types){0};
}

/* ---------------------------------------------------------------- keys */

static uint32_t find(const vpps_types *t, uint64_t hash, const uint32_t *key, uint32_t words) {
    for (uint32_t at = vpps_index_first(hash), i; (i = vpps_index_next(&t->indices, hash, &at)) != UINT32_MAX;) {
        const vpps_type *type = t->types[i];
        if (type->hash == hash && type->key_words == words && !memcmp(type->key, key, words * sizeof *key)) return i;
    }
    return VPPS_NONE;
}

static bool insert(vpps_types *t, vpps_type *type) {
    if (!VPPS_RESERVE(t->types, t->n_types + 1u) || !vpps_index_add(&t->indices, type->hash, t->n_types)) return false;
    t->types[t->n_types++] = type;
    return true;
}

/* ---------------------------------------------------------------- dropping types */

static uint32_t most_kept(const vpps_types *t) { return t->most ? t->most : MOST_KEPT; }

bool vpps_types_are_full(const vpps_types *t) { return t->n_types + t->n_compiled > most_kept(t); }

/* Types of vertices and compiled cells have the number of the latest batch that used them. Returns the median number; 0: out of memory. */
static uint64_t median_use(const vpps_types *t) {
    uint64_t n = 0, *uses = malloc((t->n_types + (size_t)t->n_compiled + 1) * sizeof *uses);
    if (!uses) return 0;
    for (uint32_t i = 0; i < t->n_types; i++) {
        uses[n++] = t->types[i]->last_used;
        for (uint32_t k = 0; k < t->types[i]->n_compiled; k++) uses[n++] = t->types[i]->compiled[k]->last_used;
    }
    if (n) qsort(uses, n, sizeof *uses, vpps_by_number);
    const uint64_t median = n ? uses[n / 2] : 0;
    free(uses);
    return median;
}

static void drop_compiled(vpps_types *t, vpps_type *type, uint64_t last) {
    uint32_t left = 0;
    for (uint32_t k = 0; k < type->n_compiled; k++) {
        if (type->compiled[k]->last_used > last)
            type->compiled[left++] = type->compiled[k];
        else
            vpps_compiled_cell_free(type->compiled[k]);
    }
    t->n_compiled -= type->n_compiled - left;
    type->n_compiled = left;
}

void vpps_types_drop(vpps_types *t) {
    const uint64_t median = median_use(t), last = median < t->n_batches ? median : t->n_batches - 1;
    uint32_t left = 0;
    for (uint32_t i = 0; i < t->n_types; i++) {
        vpps_type *type = t->types[i];
        drop_compiled(t, type, last);
        if (type->cell || type->last_used > last) {
            if (type->cell) t->of_cell[type->key[1]] = left;
            t->types[left++] = type;
        } else {
            free_type(type);
        }
    }
    t->n_types = left;
    vpps_index_clear(&t->indices);
    for (uint32_t i = 0; i < left; i++) vpps_index_add(&t->indices, t->types[i]->hash, i);
    t->most = vpps_max_u32(most_kept(t), 2 * (left + t->n_compiled)); /* a batch may use more than the usual limit */
}

/* ---------------------------------------------------------------- making a type */

static bool note_param(vpps_type *type, vpps_param p) {
    if (p == VPPS_NO_PARAM) return true;
    for (uint32_t i = 0; i < type->n_params; i++)
        if (type->params[i] == p) return true;
    if (!VPPS_RESERVE(type->params, type->n_params + 1u)) return false;
    type->params[type->n_params++] = p;
    return true;
}

static bool note_params(vpps_type *type) {
    const vpps_compiled_cell *c = type->base;
    bool ok = true;
    for (uint32_t i = 0; ok && i < c->n_lookups; i++) ok = note_param(type, c->lookups[i].table);
    for (uint32_t i = 0; ok && i < c->n_values; i++) ok = note_param(type, vpps_param_of(&c->values[i]));
    for (uint32_t i = 0; ok && i < c->n_args; i++) ok = note_param(type, c->args[i].matrix);
    return ok;
}

/* Returns the outputs of a cell that depend on a parameter, as bits; of_it: scratch with a flag for each value. */
static uint64_t reach_of_param(const vpps_compiled_cell *c, vpps_param p, bool *of_it) {
    uint64_t reached = 0;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        of_it[v] = x->kind == VPPS_VALUE_LOOKUP ? c->lookups[x->lookup].table == p : vpps_param_of(x) == p;
        for (uint32_t i = 0; i < x->n_args; i++)
            of_it[v] |= c->args[x->first_arg + i].matrix == p || of_it[c->args[x->first_arg + i].value];
    }
    for (uint32_t k = 0; k < c->n_outputs; k++) reached |= (uint64_t)of_it[c->outputs[k].value] << k;
    return reached;
}

static bool find_params_reach(vpps_type *type) {
    bool *of_it = malloc(type->base->n_values + (size_t)1);
    type->params_reach = calloc(type->n_params + (size_t)1, sizeof *type->params_reach);
    const bool ok = of_it && type->params_reach;
    for (uint32_t i = 0; ok && i < type->n_params; i++)
        type->params_reach[i] = reach_of_param(type->base, type->params[i], of_it);
    free(of_it);
    return ok;
}

/* Finds the inputs and lookups that each output of a type depends on. */
static bool find_reads(vpps_type *type) {
    const vpps_compiled_cell *c = type->base;
    uint64_t *inputs = calloc(2 * (size_t)c->n_values + 1, sizeof *inputs), *lookups = inputs + c->n_values;
    if (!inputs) return false;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (x->kind == VPPS_VALUE_INPUT) inputs[v] = (uint64_t)1 << x->input;
        if (x->kind == VPPS_VALUE_LOOKUP) lookups[v] = (uint64_t)1 << x->lookup;
        for (uint32_t i = 0; i < x->n_args; i++) {
            inputs[v] |= inputs[c->args[x->first_arg + i].value];
            lookups[v] |= lookups[c->args[x->first_arg + i].value];
        }
    }
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        type->reads_inputs[k] = inputs[c->outputs[k].value];
        type->reads_lookups[k] = lookups[c->outputs[k].value];
    }
    free(inputs);
    return true;
}

/* Adds a type, which becomes the owner of `base`. */
static vpps_status add_type(vpps_types *t, vpps_compiled_cell *base, const vpps_cell_data *cell, const uint32_t *key,
                            uint32_t words, uint32_t *out) {
    vpps_type *type = calloc(1, sizeof *type);
    if (!type) {
        vpps_compiled_cell_free(base);
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    }
    type->base = base;
    type->cell = cell;
    type->last_part = VPPS_NONE;
    type->hash = vpps_hash_words(key, words);
    type->key_words = words;
    type->key = calloc(words + 1u, sizeof *key);
    bool ok = type->key && note_params(type) && find_params_reach(type) && find_reads(type);
    if (ok) {
        memcpy(type->key, key, words * sizeof *key);
        ok = insert(t, type);
    }
    *out = t->n_types - 1;
    if (ok) return VPPS_OK;
    free_type(type);
    return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
}

vpps_status vpps_type_of_cell(vpps_types *t, const vpps_model *model, uint32_t cell, uint32_t *out) {
    *out = cell < t->n_of_cell ? t->of_cell[cell] : VPPS_NONE;
    if (*out != VPPS_NONE) return VPPS_OK;
    if (!VPPS_RESERVE(t->of_cell, model->n_cells)) { return vpps_fail(VPPS_MEMORY, "schedule: out of memory"); }
    for (; t->n_of_cell < model->n_cells; t->n_of_cell++) t->of_cell[t->n_of_cell] = VPPS_NONE;
    vpps_compiled_cell *base;
    VPPS_TRY(vpps_lower_cell(model->cells[cell], false, &base));
    const uint32_t key[] = {1, cell};
    VPPS_TRY(add_type(t, base, model->cells[cell], key, VPPS_COUNT(key), out));
    t->of_cell[cell] = *out;
    return VPPS_OK;
}

static bool as_list(const vpps_signature *s, uint32_t n) { return n > FEW_ARGUMENTS && vpps_takes_members(s->op); }

vpps_status vpps_type_of_op(vpps_types *t, const vpps_graph *g, const vpps_op_node *node, const uint32_t *shapes,
                            uint32_t *out) {
    const vpps_signature *s = &g->signatures[node->signature];
    const bool list = as_list(s, node->n_args);
    const uint32_t n_shapes = 2 * (list ? 1 : node->n_args), imm = s->op == VPPS_OP_SLICE ? node->imm : 0;
    const uint32_t words = 8 + n_shapes + s->n_matrices;
    if (!VPPS_RESERVE(t->key, words)) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    uint32_t *key = t->key;
    key[0] = 2;
    key[1] = s->op | (uint32_t)list << 8;
    key[2] = s->rows;
    key[3] = s->cols;
    key[4] = s->param;
    memcpy(&key[5], &s->p, sizeof s->p);
    key[6] = list ? 0 : node->n_args;
    key[7] = imm;
    memcpy(key + 8, shapes, n_shapes * sizeof *key);
    if (s->n_matrices) memcpy(key + 8 + n_shapes, g->matrices + s->first_matrix, s->n_matrices * sizeof *key);
    *out = find(t, vpps_hash_words(key, words), key, words);
    if (*out != VPPS_NONE) return VPPS_OK;
    vpps_compiled_cell *base;
    VPPS_TRY(vpps_lower_op(s, g->matrices + s->first_matrix, node->n_args, shapes, list, imm, false, &base));
    return add_type(t, base, NULL, key, words, out);
}

/* ---------------------------------------------------------------- compiling */

static bool same_needs(const vpps_cell_needs *a, const vpps_cell_needs *b) {
    return a->training == b->training && a->drops == b->drops && a->gradient_in == b->gradient_in &&
           a->gradient_out == b->gradient_out && a->recurrent_in == b->recurrent_in &&
           a->recurrent_out == b->recurrent_out && a->group == b->group && a->read_out == b->read_out &&
           a->rows.unit == b->rows.unit && a->rows.least == b->rows.least && a->rows.enough == b->rows.enough &&
           a->asked_gradients == b->asked_gradients && a->fixed == b->fixed && a->scales == b->scales &&
           a->rows.columns == b->rows.columns && a->rows.split_elems == b->rows.split_elems && a->frozen == b->frozen;
}

/* Adds the needs `more` to a cell's needs: outputs that are read, and gradients, of outputs only those among `outputs`. */
static void add_needs(vpps_cell_needs *to, const vpps_cell_needs *more, uint64_t outputs) {
    to->gradient_in |= more->gradient_in;
    to->gradient_out |= more->gradient_out & outputs;
    to->recurrent_in |= more->recurrent_in;
    to->recurrent_out |= more->recurrent_out;
    to->read_out |= more->read_out;
}

/* Returns, as bits, the outputs whose gradients reach no parameter that the gradients of the outputs `own` do not reach. A parameter that a
 * batch's loss does not depend on must not count as trained by the batch, whatever else the cell was compiled for. */
static uint64_t outputs_alike(const vpps_type *type, uint64_t own) {
    uint64_t outputs = UINT64_MAX;
    for (uint32_t i = 0; i < type->n_params; i++)
        if (!(type->params_reach[i] & own)) outputs &= ~type->params_reach[i];
    return outputs;
}

void vpps_widen_needs(const vpps_type *type, vpps_cell_needs *needs) {
    const uint64_t outputs = type->last_differentiable & outputs_alike(type, needs->gradient_out);
    for (uint32_t i = 0; i < type->n_compiled; i++) {
        const vpps_cell_needs *had = &type->compiled[i]->needs;
        if (had->training == needs->training && had->drops == needs->drops && had->frozen == needs->frozen &&
            had->fixed == needs->fixed && had->asked_gradients == needs->asked_gradients)
            add_needs(needs, had, outputs);
    }
}

static void supersede(const vpps_type *type, const vpps_cell_needs *needs) {
    for (uint32_t i = 0; i < type->n_compiled; i++) {
        vpps_cell_needs both = type->compiled[i]->needs;
        add_needs(&both, needs, outputs_alike(type, both.gradient_out));
        type->compiled[i]->superseded |= same_needs(&both, needs);
    }
}

/* Lowers the cell, or the op that the type's key describes, once more. */
static vpps_status lower_again(const vpps_type *type, bool drops, vpps_compiled_cell **out) {
    if (type->cell) return vpps_lower_cell(type->cell, drops, out);
    const uint32_t *key = type->key;
    vpps_signature s = {.op = (uint8_t)key[1], .rows = key[2], .cols = key[3], .param = key[4]};
    memcpy(&s.p, &key[5], sizeof s.p);
    const bool list = key[1] >> 8;
    const uint32_t n = list ? 1 : key[6], n_shapes = 2 * n;
    s.n_matrices = type->key_words - 8 - n_shapes;
    return vpps_lower_op(&s, key + 8 + n_shapes, n, key + 8, list, key[7], drops, out);
}

vpps_status vpps_compiled_for(vpps_types *t, const vpps_model *model, vpps_type *type, const vpps_cell_needs *needs,
                              vpps_compiled_cell **out) {
    for (uint32_t i = 0; i < type->n_compiled; i++)
        if (same_needs(&type->compiled[i]->needs, needs)) {
            *out = type->compiled[i];
            (*out)->last_used = t->n_batches;
            return VPPS_OK;
        }
    const uint64_t start = vpps_now_ns();
    vpps_compiled_cell *c;
    VPPS_TRY(lower_again(type, needs->drops, &c));
    vpps_status status = vpps_compile_cell(model, c, needs);
    if (status == VPPS_OK && !VPPS_RESERVE(type->compiled, type->n_compiled + 1u))
        status = vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    if (status != VPPS_OK) {
        vpps_compiled_cell_free(c);
        return status;
    }
    supersede(type, needs);
    t->compile_ns += vpps_now_ns() - start;
    c->last_used = t->n_batches;
    *out = type->compiled[type->n_compiled++] = c;
    t->n_compiled++;
    return VPPS_OK;
}
