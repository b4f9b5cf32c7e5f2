/* arrange.c - counts the copies that a compiled cell would need so that its operations of one kind and depth could run as one, forward or
 * backward: with its values in order of creation, and in the order that a PQ tree finds (pq_layout.h). `vpps cell` prints both; no device
 * runs operations so, and the compiler does not read the result. */
#include "cell/arrange.h"

#define NONE VPPS_NONE

typedef struct arranger {
    const vpps_compiled_cell *c;
    uint32_t *depth;    /* for each value: length of the longest chain of operations that ends with it */
    uint32_t *variable; /* for each value: number of the first value that is kept in the same place */
    uint32_t *order, *words, *operands, *members;
    uint32_t n_operands; /* number of words of `operands` in use */
    vpps_layout_batch *batches;
    uint32_t n_batches, n_forward;
} arranger;

static bool is_operation(const vpps_cell_value *x) {
    const bool run = x->kind == VPPS_VALUE_RUN && vpps_instructions[x->run.opcode].form < VPPS_FORM_PARTS;
    return (run || vpps_is_product(x)) && !x->axis;
}

static void find_depths(arranger *a) {
    const vpps_compiled_cell *c = a->c;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        a->depth[v] = 0;
        for (uint32_t i = 0; i < x->n_args; i++) {
            const uint32_t u = c->args[x->first_arg + i].value;
            const bool same = (u >= c->n_forward) == (v >= c->n_forward);
            if (same) a->depth[v] = vpps_max_u32(a->depth[v], a->depth[u] + 1);
        }
    }
}

/* Finds the values that share a place in memory: a kept value may take the place of an earlier one that is not read any more. */
static void find_variables(arranger *a) {
    const vpps_compiled_cell *c = a->c;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        a->variable[v] = v;
        a->words[v] = vpps_value_words(x);
        for (uint32_t u = 0; u < v && x->kept && a->variable[v] == v; u++) {
            const vpps_cell_value *y = &c->values[u];
            if (y->kept && y->record == x->record && y->offset == x->offset) a->variable[v] = a->variable[u];
        }
    }
}

/* ---------------------------------------------------------------- batches */

static bool are_alike(const arranger *a, uint32_t v, uint32_t u) {
    const vpps_compiled_cell *c = a->c;
    const vpps_cell_value *x = &c->values[v], *y = &c->values[u];
    if (a->depth[v] != a->depth[u] || x->kind != y->kind || x->rows != y->rows || x->cols != y->cols ||
        x->n_args != y->n_args || (v >= c->n_forward) != (u >= c->n_forward) || !is_operation(y) ||
        (x->kind == VPPS_VALUE_RUN && x->run.opcode != y->run.opcode))
        return false;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *p = &c->args[x->first_arg + i], *q = &c->args[y->first_arg + i];
        if ((p->matrix == VPPS_NO_PARAM) != (q->matrix == VPPS_NO_PARAM) ||
            vpps_value_words(&c->values[p->value]) != vpps_value_words(&c->values[q->value]))
            return false;
    }
    return true;
}

/* Returns operand number o of the operation that makes value v. The result is operand 0. */
static uint32_t operand_of(const arranger *a, uint32_t v, uint32_t o) {
    const vpps_compiled_cell *c = a->c;
    return a->variable[o ? c->args[c->values[v].first_arg + o - 1].value : v];
}

static bool add_batch(arranger *a, const uint32_t *members, uint32_t width) {
    const uint32_t n_operands = 1 + a->c->values[members[0]].n_args, first = a->n_operands;
    if (!VPPS_RESERVE(a->operands, first + (size_t)n_operands * width) || !VPPS_RESERVE(a->batches, a->n_batches + 1u))
        return false;
    for (uint32_t o = 0; o < n_operands; o++)
        for (uint32_t i = 0; i < width; i++) a->operands[a->n_operands++] = operand_of(a, members[i], o);
    a->batches[a->n_batches++] = (vpps_layout_batch){.n_operands = n_operands, .width = width};
    return true;
}

static bool list_batches(arranger *a) {
    const vpps_compiled_cell *c = a->c;
    for (uint32_t v = 0; v < c->n_values; v++) {
        uint32_t width = 0;
        bool first = is_operation(&c->values[v]);
        for (uint32_t u = 0; u < v && first; u++) first = !are_alike(a, v, u);
        for (uint32_t u = v; u < c->n_values && first; u++)
            if (u == v || are_alike(a, v, u)) a->members[width++] = u;
        if (width > 1 && !add_batch(a, a->members, width)) return false;
        if (v < c->n_forward) a->n_forward = a->n_batches;
    }
    const uint32_t *at = a->operands; /* the pointers are set last, when the array `operands` grows no more */
    for (uint32_t i = 0; i < a->n_batches; i++) {
        a->batches[i].operands = at;
        at += (size_t)a->batches[i].n_operands * a->batches[i].width;
    }
    return true;
}

static bool count(const arranger *a, vpps_cell_copies *out) {
    const uint32_t n = a->c->n_values, n_backward = a->n_batches - a->n_forward;
    return vpps_count_copies(n, a->order, a->batches, a->n_forward, a->words, &out->forward) &&
           vpps_count_copies(n, a->order, a->batches + a->n_forward, n_backward, a->words, &out->backward);
}

static bool arrange(arranger *a, vpps_cell_layout *out) {
    const vpps_compiled_cell *c = a->c;
    find_depths(a);
    find_variables(a);
    if (!list_batches(a)) return false;
    for (uint32_t v = 0; v < c->n_values; v++) a->order[v] = v;
    if (!count(a, &out->as_made) || !vpps_plan_layout(c->n_values, a->batches, a->n_batches, a->order) ||
        !count(a, &out->arranged))
        return false;
    /* The found order may need more copies, if operations placed early take places that larger ones need: then keep the order of creation. */
    if (vpps_copied_words(&out->arranged) > vpps_copied_words(&out->as_made)) out->arranged = out->as_made;
    return true;
}

vpps_status vpps_arrange_cell(const vpps_compiled_cell *c, vpps_cell_layout *out) {
    const uint64_t start = vpps_now_ns();
    const size_t n = c->n_values + (size_t)1;
    uint32_t *memory = calloc(5 * n, sizeof *memory);
    arranger a = {.c = c};
    bool ok = memory;
    if (ok) {
        a.depth = memory;
        a.variable = memory + n;
        a.order = memory + 2 * n;
        a.words = memory + 3 * n;
        a.members = memory + 4 * n;
        ok = arrange(&a, out);
    }
    VPPS_FREE_ARRAYS(a.operands, a.batches);
    free(memory);
    out->ns = vpps_now_ns() - start;
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}
