/* types.c - finds the type of a vertex: vertices that apply one cell, or equal ops on equal shapes, have one type. The
 * history keeps types from batch to batch (history.h). */
#include "script/history.h"

/* a sum of more arguments than this becomes an op that reads its arguments as a list of any length */
enum { FEW_ARGUMENTS = 8 };

void vpps_type_free(vpps_type *type) {
    if (!type) return;
    vpps_compiled_cell_free(type->base);
    VPPS_FREE_ARRAYS(type->params, type->params_reach);
    VPPS_FREE(type->key, type);
}

static uint32_t find(const vpps_history *h, uint64_t hash, const uint32_t *key, uint32_t words) {
    for (uint32_t at = vpps_index_first(hash), i; (i = vpps_index_next(&h->indices, hash, &at)) != UINT32_MAX;) {
        const vpps_type *type = h->types[i].type;
        if (type->hash == hash && type->key_words == words && !memcmp(type->key, key, words * sizeof *key)) return i;
    }
    return VPPS_NONE;
}

/* Sets made[v] to 1 for each value v of a cell on which output number `output` depends. */
static void mark_made(const vpps_compiled_cell *c, uint32_t output, uint8_t *made) {
    made[c->outputs[output].value] = 1;
    for (uint32_t v = c->outputs[output].value + 1; v-- > 0;)
        for (uint32_t i = 0; i < c->values[v].n_args && made[v]; i++)
            made[c->args[c->values[v].first_arg + i].value] = 1;
}

/* Notes that vertices of this type (a cell, or an op) use parameter p, and that `outputs` (bits) depend on it. */
static bool note_param(vpps_type *type, vpps_param p, uint64_t outputs) {
    uint32_t i = 0;
    if (p == VPPS_NO_PARAM) return true;
    while (i < type->n_params && type->params[i] != p) i++;
    if (i == type->n_params) {
        if (!VPPS_RESERVE(type->params, i + 1u) || !VPPS_RESERVE(type->params_reach, i + 1u)) return false;
        type->params[i] = p;
        type->params_reach[type->n_params++] = 0;
    }
    type->params_reach[i] |= outputs;
    return true;
}

/* Adds the parameters that the cell uses to type->params; notes that the outputs in `outputs` (bits), which depend on
 * the cell's values v with made[v] set, depend on the parameters of these values. */
static bool note_params(vpps_type *type, const uint8_t *made, uint64_t outputs) {
    const vpps_compiled_cell *c = type->base;
    bool ok = true;
    for (uint32_t v = 0; v < c->n_values && ok; v++)
        if (c->values[v].kind == VPPS_VALUE_LOOKUP)
            ok = note_param(type, c->lookups[c->values[v].lookup].table, made[v] ? outputs : 0);
    for (uint32_t v = 0; v < c->n_values && ok; v++)
        ok = note_param(type, vpps_param_of(&c->values[v]), made[v] ? outputs : 0);
    for (uint32_t v = 0; v < c->n_values; v++)
        for (uint32_t i = 0; i < c->values[v].n_args && ok; i++)
            ok = note_param(type, c->args[c->values[v].first_arg + i].matrix, made[v] ? outputs : 0);
    return ok;
}

/* Finds what each output of a cell or op depends on: inputs, lookups and parameters. */
static bool find_reach(vpps_type *type) {
    const vpps_compiled_cell *c = type->base;
    uint8_t *made = calloc(c->n_values + (size_t)1, 1);
    bool ok = made && note_params(type, made, 0); /* lists the parameters even of a cell without outputs */
    for (uint32_t k = 0; k < c->n_outputs && ok; k++) {
        memset(made, 0, c->n_values);
        mark_made(c, k, made);
        for (uint32_t v = 0; v < c->n_values; v++) {
            const vpps_cell_value *x = &c->values[v];
            if (made[v] && x->kind == VPPS_VALUE_INPUT) type->reads_inputs[k] |= (uint64_t)1 << x->input;
            if (made[v] && x->kind == VPPS_VALUE_LOOKUP) type->reads_lookups[k] |= (uint64_t)1 << x->lookup;
        }
        ok = note_params(type, made, (uint64_t)1 << k);
    }
    free(made);
    return ok;
}

vpps_status vpps_lower_type(const vpps_type *type, bool drops, vpps_compiled_cell **out) {
    if (type->cell) return vpps_lower_cell(type->cell, drops, out);
    const uint32_t *key = type->key;
    vpps_signature s = {.op = (uint8_t)key[1], .rows = key[2], .cols = key[3], .param = key[4]};
    memcpy(&s.p, &key[5], sizeof s.p);
    const bool list = key[1] >> 8;
    const uint32_t n = list ? 1 : key[6], n_shapes = 2 * n;
    s.n_matrices = type->key_words - 8 - n_shapes;
    return vpps_lower_op(&s, key + 8 + n_shapes, n, key + 8, list, key[7], drops, out);
}

static vpps_status add_type(vpps_history *h, const vpps_cell_data *cell, const uint32_t *key, uint32_t words,
                            uint32_t *out) {
    vpps_type *type = calloc(1, sizeof *type);
    if (!type || !(type->key = malloc(words * sizeof *key))) return free(type), vpps_no_memory();
    type->cell = cell;
    type->hash = vpps_hash_words(key, words);
    type->key_words = words;
    memcpy(type->key, key, words * sizeof *key);
    vpps_status status = vpps_lower_type(type, false, &type->base);
    if (status == VPPS_OK && !(find_reach(type) && VPPS_RESERVE(h->types, h->n_types + 1u) &&
                               vpps_index_add(&h->indices, type->hash, h->n_types)))
        status = vpps_no_memory();
    if (status != VPPS_OK) return vpps_type_free(type), status;
    *out = h->n_types;
    h->types[h->n_types++] = (vpps_known_type){.type = type, .guess.scc = VPPS_NONE};
    return VPPS_OK;
}

vpps_status vpps_type_of_cell(vpps_history *h, const vpps_model *model, uint32_t cell, uint32_t *out) {
    *out = cell < h->n_of_cell ? h->of_cell[cell] : VPPS_NONE;
    if (*out != VPPS_NONE) return VPPS_OK;
    if (!VPPS_RESERVE(h->of_cell, model->n_cells)) return vpps_no_memory();
    for (; h->n_of_cell < model->n_cells; h->n_of_cell++) h->of_cell[h->n_of_cell] = VPPS_NONE;
    const uint32_t key[] = {1, cell};
    VPPS_TRY(add_type(h, model->cells[cell], key, VPPS_COUNT(key), out));
    h->of_cell[cell] = *out;
    return VPPS_OK;
}

vpps_status vpps_type_of_op(vpps_history *h, const vpps_graph *g, const vpps_op_node *node, const uint32_t *shapes,
                            uint32_t *out) {
    const vpps_signature *s = &g->signatures[node->signature];
    const bool list = node->n_args > FEW_ARGUMENTS && vpps_takes_members(s->op);
    const uint32_t n_shapes = 2 * (list ? 1 : node->n_args), imm = s->op == VPPS_OP_SLICE ? node->imm : 0;
    const uint32_t words = 8 + n_shapes + s->n_matrices;
    if (!VPPS_RESERVE(h->key, words)) return vpps_no_memory();
    uint32_t *key = h->key;
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
    *out = find(h, vpps_hash_words(key, words), key, words);
    if (*out != VPPS_NONE) return VPPS_OK;
    return add_type(h, NULL, key, words, out);
}
