/* simplify.c - equal values are made once, constants and algebra (algebra.c) leave operations out, and so is what nobody
 * reads. Forward and backward together. */
#include "cell/cell.h"

static bool is_run(const vpps_cell_value *v, uint32_t opcode) {
    return v->kind == VPPS_VALUE_RUN && v->opcode == opcode;
}

static bool equal(const vpps_compiled_cell *c, const vpps_cell_value *a, const vpps_cell_value *b,
                  const vpps_cell_arg *b_args) {
    if (a->kind != b->kind || a->opcode != b->opcode || a->domain != b->domain || a->over_list != b->over_list ||
        a->rows != b->rows || a->cols != b->cols || a->n_args != b->n_args || a->index != b->index ||
        a->param != b->param || memcmp(&a->f, &b->f, sizeof a->f) != 0 || a->u != b->u || a->f_word != b->f_word ||
        a->u_word != b->u_word || a->e_word != b->e_word || a->e_add != b->e_add ||
        memcmp(a->e_list, b->e_list, sizeof a->e_list) != 0 || a->average != b->average || a->position != b->position ||
        a->again != b->again) {
        return false;
    }
    for (uint32_t i = 0; i < a->n_args; i++) {
        const vpps_cell_arg *p = &c->args[a->first_arg + i], *q = &b_args[i];
        if (p->value != q->value || p->element != q->element || p->matrix != q->matrix) return false;
    }
    return true;
}

static bool is_output(const vpps_compiled_cell *c, uint32_t v) {
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value == v) return true;
    return false;
}

/* Marks what is read by what is read. */
static void mark(const vpps_compiled_cell *c, uint8_t *used) {
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value != VPPS_NONE) used[c->outputs[k].value] = 1;
    for (uint32_t i = 0; i < c->n_contributions; i++) used[c->contributions[i].value] = 1;
    for (uint32_t i = 0; i < c->n_outers; i++) {
        used[c->outers[i].dy] = 1;
        if (c->outers[i].x != VPPS_NONE) used[c->outers[i].x] = 1;
    }
    for (uint32_t v = c->n_values; v-- > 0;) {
        const vpps_cell_value *x = &c->values[v];
        if (x->kind == VPPS_VALUE_INPUT) used[v] = 1; /* inputs are the first values, in order */
        for (uint32_t i = 0; used[v] && i < x->n_args; i++) used[c->args[x->first_arg + i].value] = 1;
    }
    for (uint32_t v = 1; v < c->n_values; v++) /* positions follow what found them, which wants to store them */
        if (c->values[v].kind == VPPS_VALUE_POSITIONS) used[v] |= used[v - 1];
}

/* Writes the cell anew: value v becomes map[v]. `keep` NULL: all, with equal ones merged. */
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
        vpps_cell_arg *args = malloc((n_args + 1u) * sizeof *args);
        if (!args) {
            ok = false;
            break;
        }
        for (uint32_t i = 0; i < n_args; i++) {
            args[i] = c->args[x.first_arg + i];
            args[i].value = map[args[i].value];
        }
        uint32_t same = VPPS_NONE;
        if (!keep && x.kind != VPPS_VALUE_POSITIONS && !is_run(&x, VPPS_I_MAX_OF) && !is_run(&x, VPPS_I_MIN_OF)) {
            const bool output = is_output(c, v);
            same = vpps_simplify_value(&to, &x, args);
            if (output && same != VPPS_NONE) { /* an output has a place of its own */
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
        free(to.values);
        free(to.args);
        return false;
    }
    free(c->values);
    free(c->args);
    c->values = to.values;
    c->args = to.args;
    c->n_values = to.n_values;
    c->n_args = to.n_args;
    c->values_capacity = to.values_capacity;
    c->args_capacity = to.args_capacity;
    c->n_forward = n_forward;
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value != VPPS_NONE) c->outputs[k].value = map[c->outputs[k].value];
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
    free(map);
    free(used);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}
