/* simplify.c - merges equal values, replaces operations by constants or simpler operations (algebra.c), and removes unread values. */
#include "cell/cell.h"

static bool equal_numbers(const vpps_cell_number *a, const vpps_cell_number *b) {
    return a->kind == b->kind && memcmp(&a->real, &b->real, sizeof a->real) == 0 && a->whole == b->whole &&
           a->word == b->word && memcmp(&a->count, &b->count, sizeof a->count) == 0;
}

/* Returns whether two values of the same kind differ at most in their arguments. */
static bool equal_kind(const vpps_cell_value *a, const vpps_cell_value *b) {
    const vpps_cell_run *x = &a->run, *y = &b->run;
    switch (a->kind) {
    case VPPS_VALUE_INPUT: return a->input == b->input;
    case VPPS_VALUE_LOOKUP: return a->lookup == b->lookup;
    case VPPS_VALUE_PARAMETER: return a->vector == b->vector;
    case VPPS_VALUE_GRADIENT: return a->output == b->output;
    case VPPS_VALUE_RUN:
        return x->opcode == y->opcode && x->over_list == y->over_list && x->recompute == y->recompute &&
               x->table == y->table && equal_numbers(&x->f, &y->f) && equal_numbers(&x->u, &y->u);
    case VPPS_VALUE_PRODUCT: return a->bias == b->bias;
    default: return true;
    }
}

static bool equal(const vpps_compiled_cell *c, const vpps_cell_value *a, const vpps_cell_value *b,
                  const vpps_cell_arg *b_args) {
    if (a->kind != b->kind || a->axis != b->axis || a->rows != b->rows || a->cols != b->cols ||
        a->n_args != b->n_args || !equal_kind(a, b))
        return false;
    for (uint32_t i = 0; i < a->n_args; i++) {
        const vpps_cell_arg *p = &c->args[a->first_arg + i], *q = &b_args[i];
        if (p->value != q->value || p->element != q->element || p->matrix != q->matrix) return false;
    }
    return true;
}

/* Marks the values that the host, other vertices, parameters' gradients or other marked values read. */
static void mark(const vpps_compiled_cell *c, uint8_t *used) {
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        if (c->outputs[k].value != VPPS_NONE) used[c->outputs[k].value] = 1;
        if (c->gradient_of[k] != VPPS_NONE) used[c->gradient_of[k]] = 1;
    }
    for (uint32_t i = 0; i < c->n_contributions; i++) used[c->contributions[i].value] = 1;
    for (uint32_t i = 0; i < c->n_outers; i++) {
        used[c->outers[i].dy] = 1;
        if (c->outers[i].x != VPPS_NONE) used[c->outers[i].x] = 1;
    }
    for (uint32_t v = c->n_values; v-- > 0;) {
        const vpps_cell_value *x = &c->values[v];
        if (x->kind == VPPS_VALUE_INPUT) used[v] = 1; /* all inputs stay, as the cell's first values, in their order */
        for (uint32_t i = 0; used[v] && i < x->n_args; i++) used[c->args[x->first_arg + i].value] = 1;
    }
    /* an instruction with two results, maxima (value v - 1) and their positions (value v): both are kept or dropped */
    for (uint32_t v = 1; v < c->n_values; v++)
        if (c->values[v].kind == VPPS_VALUE_POSITIONS) used[v] |= used[v - 1];
}

/* Rebuilds the cell's values; value v becomes map[v]. With `keep`, drops each value v with !keep[v]; else simplifies and merges values. */
static bool rebuild(vpps_compiled_cell *c, uint32_t *map, const uint8_t *keep) {
    vpps_compiled_cell to = {0};
    uint32_t n_forward = 0;
    bool ok = true;
    for (uint32_t v = 0; ok && v < c->n_values; v++) {
        vpps_cell_value x = c->values[v];
        if (v == c->n_forward) n_forward = to.n_values;
        if (keep && !keep[v]) {
            map[v] = VPPS_NONE;
            continue;
        }
        const uint32_t n_args = x.n_args;
        /* with spare room: simplifying may turn a sum with one argument into an instruction with two */
        vpps_cell_arg *args = malloc((n_args + 2u) * sizeof *args);
        if (!args) {
            ok = false;
            break;
        }
        for (uint32_t i = 0; i < n_args; i++) {
            args[i] = c->args[x.first_arg + i];
            args[i].value = map[args[i].value];
        }
        uint32_t same = VPPS_NONE;
        const bool finds = x.kind == VPPS_VALUE_RUN && strchr(vpps_instructions[x.run.opcode].operands, 'i');
        if (!keep && x.kind != VPPS_VALUE_POSITIONS && !finds) {
            const bool output = vpps_is_output(c, v);
            same = vpps_simplify_value(&to, &x, args);
            if (output && same != VPPS_NONE) { /* an output is not merged with an equal value */
                same = VPPS_NONE;
            }
            for (uint32_t u = 0; same == VPPS_NONE && !output && u < to.n_values; u++)
                if (equal(&to, &to.values[u], &x, args)) same = u;
        }
        if (same != VPPS_NONE) {
            map[v] = same;
        } else {
            const uint32_t n = x.n_args;
            x.n_args = 0;
            map[v] = vpps_cell_add(&to, x);
            ok = map[v] != VPPS_NONE;
            for (uint32_t i = 0; ok && i < n; i++)
                ok = vpps_cell_add_arg(&to, args[i].value, args[i].element, args[i].matrix);
        }
        free(args);
    }
    if (c->n_forward >= c->n_values) n_forward = to.n_values;
    if (!ok) {
        VPPS_FREE_ARRAYS(to.values, to.args);
        return false;
    }
    VPPS_FREE_ARRAYS(c->values, c->args);
    c->values = to.values;
    c->args = to.args;
    c->n_values = to.n_values;
    c->n_args = to.n_args;
    c->n_forward = n_forward;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        if (c->outputs[k].value != VPPS_NONE) c->outputs[k].value = map[c->outputs[k].value];
        if (c->gradient_of[k] != VPPS_NONE) c->gradient_of[k] = map[c->gradient_of[k]];
    }
    for (uint32_t i = 0; i < c->n_contributions; i++) c->contributions[i].value = map[c->contributions[i].value];
    for (uint32_t i = 0; i < c->n_outers; i++) {
        c->outers[i].dy = map[c->outers[i].dy];
        if (c->outers[i].x != VPPS_NONE) c->outers[i].x = map[c->outers[i].x];
    }
    return true;
}

vpps_status vpps_simplify(vpps_compiled_cell *c) {
    const size_t n = c->n_values + 1u;
    uint32_t *map = malloc(n * sizeof *map);
    uint8_t *used = calloc(n, 1);
    bool ok = map && used && rebuild(c, map, NULL);
    if (ok) {
        mark(c, used);
        ok = rebuild(c, map, used);
    }
    VPPS_FREE(map, used);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}
