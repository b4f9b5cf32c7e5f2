/* differentiate.c - adds the backward operations of a cell, by the rows of ops.def. Backward goes the other way (Cavs, section
 * 3.1): an output's gradient begins as the sum of the gradients that its readers compute, and a vertex computes gradients for its
 * inputs. For a parameter only the factors dy and x of its gradient dy x^T are named; they are multiplied later. */
#include "cell/cell.h"

/* One term of the sum that is a value's gradient, in a linked list. */
typedef struct part {
    uint32_t value, next;
    /* the summand is the transpose of this matrix times `value`; VPPS_NO_PARAM: the summand is `value` itself */
    vpps_param matrix;
} part;

typedef struct work {
    const vpps_model *model;
    vpps_compiled_cell *c;
    /* For each forward value: whether it needs a gradient, because it depends on a trained parameter or on an input with a gradient, or
     * because the host reads the gradient. */
    bool *needs;
    uint32_t *first; /* for each forward value: index of the first term of its gradient, in a linked list */
    /* for each forward value: length of the chain of instructions that recomputes it; 0 or KEPT: none */
    uint8_t *depth;
    uint32_t *recomputed; /* for each forward value: the backward value that recomputes it; VPPS_NONE: none */
    part *parts;
    uint32_t n_parts;
    bool ok;
} work;

static bool trained(const work *w, vpps_param p) {
    return p != VPPS_NO_PARAM && !w->c->needs.fixed && !w->model->params[p].frozen;
}

/* Returns the outputs, as bits, that are value v and have a gradient that the host reads. */
static uint64_t asked_outputs(const vpps_compiled_cell *c, uint32_t v) {
    uint64_t asked = 0;
    for (uint64_t left = c->needs.asked_gradients; left; left &= left - 1)
        if (c->outputs[__builtin_ctzll(left)].value == v) asked |= left & -left;
    return asked;
}

static void add_part(work *w, uint32_t of, uint32_t value, vpps_param matrix) {
    if (!w->needs[of]) return;
    w->ok = w->ok && value != VPPS_NONE && VPPS_RESERVE(w->parts, w->n_parts + 1u);
    if (!w->ok) return;
    w->parts[w->n_parts] = (part){value, w->first[of], matrix};
    w->first[of] = w->n_parts++;
}

static void mark_needs(work *w) {
    vpps_compiled_cell *c = w->c;
    for (uint32_t v = 0; v < c->n_forward; v++) {
        const vpps_cell_value *x = &c->values[v];
        bool needs = asked_outputs(c, v) != 0;
        if (x->kind == VPPS_VALUE_INPUT) needs = c->needs.gradient_in >> x->input & 1;
        if (x->kind == VPPS_VALUE_LOOKUP) needs |= trained(w, c->lookups[x->lookup].table);
        needs |= trained(w, vpps_param_of(x));
        for (uint32_t i = 0; i < x->n_args; i++) {
            const vpps_cell_arg *a = &c->args[x->first_arg + i];
            needs |= w->needs[a->value] || trained(w, a->matrix);
        }
        w->needs[v] = needs && x->kind != VPPS_VALUE_POSITIONS;
    }
}

static vpps_cell_value like(const vpps_cell_value *shape, vpps_cell_kind kind) {
    return (vpps_cell_value){.kind = (uint8_t)kind, .axis = shape->axis, .rows = shape->rows, .cols = shape->cols};
}

static vpps_cell_value run_like(const vpps_cell_value *shape, uint32_t opcode) {
    vpps_cell_value v = like(shape, VPPS_VALUE_RUN);
    v.run = (vpps_cell_run){.opcode = (uint8_t)opcode, .table = VPPS_NO_PARAM};
    if (opcode == VPPS_I_SUM) v.run.f = vpps_real_number(1);
    return v;
}

static uint32_t add_value(work *w, vpps_cell_value v) {
    const uint32_t at = w->ok ? vpps_cell_add(w->c, v) : VPPS_NONE;
    w->ok = at != VPPS_NONE;
    return at;
}

static void add_arg(work *w, uint32_t value, uint32_t element, vpps_param matrix) {
    w->ok = w->ok && vpps_cell_add_arg(w->c, value, element, matrix);
}

/* ---------------------------------------------------------------- sums of terms */

static uint32_t add_up(work *w, const vpps_cell_value *shape, const uint32_t *values, uint32_t n) {
    if (n == 1) return values[0];
    const uint32_t sum = add_value(w, run_like(shape, n == 2 ? VPPS_I_ADD : VPPS_I_SUM));
    for (uint32_t i = 0; i < n; i++) add_arg(w, values[i], 0, VPPS_NO_PARAM);
    return sum;
}

/* Makes two values whose sum is v's gradient: *product, the products with transposed matrices; *rest, all other terms. VPPS_NONE: no terms. */
static void collect(work *w, uint32_t v, uint32_t *product, uint32_t *rest) {
    vpps_compiled_cell *c = w->c;
    const vpps_cell_value shape = c->values[v];
    uint32_t n = 0, n_products = 0;
    *product = *rest = VPPS_NONE;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        if (c->outputs[k].value != v || !(c->needs.gradient_out >> k & 1)) continue;
        vpps_cell_value seed = like(&shape, VPPS_VALUE_GRADIENT);
        seed.output = k;
        add_part(w, v, add_value(w, seed), VPPS_NO_PARAM);
    }
    if (!w->ok || !w->parts) return;
    for (uint32_t p = w->first[v]; p != VPPS_NONE; p = w->parts[p].next) {
        n_products += w->parts[p].matrix != VPPS_NO_PARAM;
        n++;
    }
    uint32_t *values = calloc(n + 1u, sizeof *values);
    w->ok = w->ok && values;
    if (values && w->ok && n > n_products) {
        uint32_t at = n - n_products;
        /* the linked list begins with the newest term, the array `values` with the oldest */
        for (uint32_t p = w->first[v]; p != VPPS_NONE; p = w->parts[p].next)
            if (w->parts[p].matrix == VPPS_NO_PARAM) values[--at] = w->parts[p].value;
        *rest = add_up(w, &shape, values, n - n_products);
    }
    free(values);
    if (!w->ok || !n_products) return;
    *product = add_value(w, like(&shape, VPPS_VALUE_PRODUCT_T));
    for (uint32_t p = w->first[v]; p != VPPS_NONE; p = w->parts[p].next)
        if (w->parts[p].matrix != VPPS_NO_PARAM) add_arg(w, w->parts[p].value, 0, w->parts[p].matrix);
}

static void contribute(work *w, const vpps_cell_value *to, uint32_t value) {
    vpps_compiled_cell *c = w->c;
    if (value == VPPS_NONE) return;
    w->ok = w->ok && VPPS_RESERVE(c->contributions, c->n_contributions + 1u);
    if (!w->ok) return;
    const bool lookup = to->kind == VPPS_VALUE_LOOKUP;
    c->contributions[c->n_contributions++] =
        (vpps_cell_contribution){.lookup = lookup, .index = lookup ? to->lookup : to->input, .value = value};
}

static void add_outer(work *w, vpps_param param, uint32_t dy, uint32_t x) {
    vpps_compiled_cell *c = w->c;
    if (!trained(w, param)) return;
    w->ok = w->ok && VPPS_RESERVE(c->outers, c->n_outers + 1u);
    if (w->ok) c->outers[c->n_outers++] = (vpps_cell_outer){param, dy, x};
}

/* ---------------------------------------------------------------- operations */

enum { CHEAP = 5, DEEPEST = 4, KEPT = UINT8_MAX };

/* Sets w->depth[v] for each forward value: the length of the longest chain of instructions by which backward recomputes v. 0: backward has
 * v anyway, as an input, parameter or output. KEPT: v is kept if backward reads v. Backward recomputes cheap elementwise instructions,
 * slices, copies of matrices, and any elementwise function of one input or output. */
static void choose_recomputed(work *w) {
    const vpps_compiled_cell *c = w->c;
    for (uint32_t y = 0; y < c->n_forward; y++) {
        const vpps_cell_value *v = &c->values[y];
        uint32_t deepest = 0;
        for (uint32_t i = 0; i < v->n_args; i++)
            deepest = vpps_max_u32(deepest, w->depth[c->args[v->first_arg + i].value]);
        w->depth[y] = vpps_is_made(v) && !vpps_is_output(c, y) ? KEPT : 0;
        if (!w->depth[y] || v->kind != VPPS_VALUE_RUN || deepest >= DEEPEST) continue;
        const vpps_instruction_row *row = &vpps_instructions[v->run.opcode];
        const bool cheap = row->cost <= CHEAP && row->operands[strspn(row->operands, "tsf")] == 0;
        const bool again = row->form == VPPS_FORM_EW && (cheap || (!deepest && !strcmp(row->operands, "t")));
        if (again || (v->run.opcode == VPPS_I_SLICE && !v->run.over_list)) w->depth[y] = (uint8_t)(deepest + 1);
        if (v->run.opcode == VPPS_I_MATRIX) w->depth[y] = DEEPEST;
    }
}

/* Returns the value by which backward reads forward value y: y itself, or a value of backward that computes y once more. */
static uint32_t kept_or_recomputed(work *w, uint32_t y) {
    if (y >= w->c->n_forward || !w->depth[y] || w->depth[y] == KEPT) return y;
    if (w->recomputed[y] == VPPS_NONE) {
        const vpps_cell_value v = w->c->values[y];
        vpps_cell_value copy = v;
        copy.n_args = 0;
        copy.run.recompute = true;
        for (uint32_t i = 0; i < v.n_args; i++) kept_or_recomputed(w, w->c->args[v.first_arg + i].value);
        w->recomputed[y] = add_value(w, copy);
        for (uint32_t i = 0; i < v.n_args; i++) {
            const vpps_cell_arg a = w->c->args[v.first_arg + i];
            add_arg(w, kept_or_recomputed(w, a.value), a.element, a.matrix);
        }
    }
    return w->recomputed[y];
}

/* Returns gradient v where the cell's condition holds, and 0 elsewhere, so that a vertex at which the cell does not run contributes exactly
 * 0. Needed after each instruction that may turn a gradient of 0 into NaN. */
static uint32_t if_taken(work *w, uint32_t v) {
    if (!w->ok || !w->c->condition.there) return v;
    const uint32_t holds = kept_or_recomputed(w, w->c->holds);
    const uint32_t at = add_value(w, run_like(&w->c->values[v], VPPS_I_WHEN));
    add_arg(w, v, 0, VPPS_NO_PARAM);
    add_arg(w, holds, 0, VPPS_NO_PARAM);
    return at;
}

/* Makes the gradient of argument k of value y by instruction `opcode`; d is y's gradient. Each of `letters` is an
 * operand of the instruction, as in ops.def: a, b: y's arguments 0 and 1; y: the value y; d: its gradient. */
static uint32_t run_backward(work *w, uint32_t y, uint32_t d, uint32_t k, uint32_t opcode, const char *letters) {
    vpps_compiled_cell *c = w->c;
    const vpps_cell_value v = c->values[y];
    const uint32_t arg = c->args[v.first_arg + k].value, a = c->args[v.first_arg].value;
    const uint32_t b = v.n_args > 1 ? c->args[v.first_arg + 1].value : VPPS_NONE;
    vpps_cell_value dx = run_like(&c->values[arg], opcode);
    /* if y has a value per node of a list, dx has, too; for_axis() adds these up if the argument has just one value */
    if (v.axis) dx.axis = v.axis;
    dx.run.over_list = v.run.over_list && v.axis;
    uint32_t operands[8], elements[8] = {0}, n = 0;
    for (const char *letter = letters; *letter; letter++) {
        switch (*letter) {
        case 'a': operands[n++] = kept_or_recomputed(w, a); break;
        case 'b': operands[n++] = kept_or_recomputed(w, b); break;
        case 'y': operands[n++] = kept_or_recomputed(w, y); break;
        case 'd': operands[n++] = d; break;
        case 'i': operands[n++] = y + 1; break; /* positions that MAX_OF or MIN_OF found in forward (value y + 1) */
        case 'w':                               /* the weight that multiplied argument k: an element of argument 0 */
            elements[n] = k - 1;
            operands[n++] = a;
            break;
        case 'k':
            dx.run.u.kind = VPPS_NUMBER_POSITION;
            for (uint32_t i = 0; i < k; i++) { /* counts the operands before argument k, and the lists among these */
                const uint32_t axis = v.axis ? 0 : c->values[c->args[v.first_arg + i].value].axis;
                *(axis ? &dx.run.u.count.list[axis] : &dx.run.u.count.base) += 1;
            }
            break;
        case 'n':
        case 'f':
        case 'p': dx.run.f = v.run.f; break;
        case 'u':
        case 'e': dx.run.u = v.run.u; break;
        default: break;
        }
    }
    const uint32_t at = add_value(w, dx);
    for (uint32_t i = 0; i < n; i++) add_arg(w, operands[i], elements[i], VPPS_NO_PARAM);
    return at;
}

/* Returns gradient dx or, if dx has a value for each node of a list but argument `arg` one value for the vertex, the sum over the members. */
static uint32_t for_axis(work *w, uint32_t dx, uint32_t arg) {
    if (!w->ok || w->c->values[dx].axis == w->c->values[arg].axis) return dx;
    const uint32_t at = add_value(w, run_like(&w->c->values[arg], VPPS_I_SUM));
    add_arg(w, dx, 0, VPPS_NO_PARAM);
    return at;
}

/* Makes the gradient of the weights of weighted sum y: for each weight the dot product of y's gradient d with the weighted value. */
static uint32_t weights_backward(work *w, uint32_t y, uint32_t d) {
    vpps_compiled_cell *c = w->c;
    const uint32_t n = c->values[y].n_args - 1, first = c->values[y].first_arg;
    uint32_t dots = VPPS_NONE; /* number of the first of n dot products, which are consecutive values */
    vpps_cell_value scalar = run_like(&c->values[y], VPPS_I_DOT);
    scalar.rows = scalar.cols = 1;
    if (c->values[y].run.over_list)
        scalar.axis = c->values[c->args[first].value].axis; /* a factor (weight), so a gradient, for each list node */
    for (uint32_t i = 0; w->ok && i < n; i++) kept_or_recomputed(w, c->args[first + 1 + i].value);
    for (uint32_t i = 0; w->ok && i < n; i++) {
        const uint32_t dot = add_value(w, scalar);
        if (i == 0) dots = dot;
        add_arg(w, d, 0, VPPS_NO_PARAM);
        add_arg(w, kept_or_recomputed(w, c->args[first + 1 + i].value), 0, VPPS_NO_PARAM);
    }
    const uint32_t weights = c->args[first].value;
    vpps_cell_value stack = run_like(&c->values[weights], VPPS_I_STACK);
    stack.axis = c->values[y].axis;
    const uint32_t at = n == 1 ? dots : add_value(w, stack);
    for (uint32_t i = 0; n > 1 && i < n; i++) add_arg(w, dots + i, 0, VPPS_NO_PARAM);
    return at;
}

static void run_parts(work *w, uint32_t y, uint32_t d) {
    vpps_compiled_cell *c = w->c;
    const uint32_t number = c->values[y].run.op;
    const vpps_op_instruction_row *op = &vpps_op_instructions[number];
    for (uint32_t k = 0; w->ok && k < c->values[y].n_args; k++) {
        const uint32_t arg = c->args[c->values[y].first_arg + k].value;
        if (!w->needs[arg]) continue;
        const uint32_t which = vpps_ops[number].max_args == VPPS_MANY ? 0 : k;
        uint32_t dx = vpps_weighs(number) && k == 0
                          ? weights_backward(w, y, d)
                          : run_backward(w, y, d, k, op->backward[which], op->backward_operands[which]);
        if (vpps_spoils_zeros(op->backward[which])) dx = if_taken(w, dx);
        add_part(w, arg, for_axis(w, dx, arg), VPPS_NO_PARAM);
    }
}

static void product_parts(work *w, uint32_t y, uint32_t d) {
    vpps_compiled_cell *c = w->c;
    add_outer(w, c->values[y].bias, d, VPPS_NONE);
    for (uint32_t i = 0; w->ok && i < c->values[y].n_args; i++) {
        const vpps_cell_arg a = c->args[c->values[y].first_arg + i];
        if (trained(w, a.matrix)) add_outer(w, a.matrix, d, if_taken(w, a.value));
        add_part(w, a.value, d, a.matrix);
    }
}

/* Differentiates a slice (its argument's gradient is d placed among zeros) or a stack (each argument's gradient is a slice of d). */
static void slice_parts(work *w, uint32_t y, uint32_t d) {
    vpps_compiled_cell *c = w->c;
    const bool slice = c->values[y].run.opcode == VPPS_I_SLICE, list = c->values[y].run.over_list;
    uint32_t row = slice ? c->values[y].run.u.whole : 0;
    for (uint32_t i = 0; w->ok && i < c->values[y].n_args; i++) {
        const uint32_t arg = c->args[c->values[y].first_arg + i].value;
        vpps_cell_value v = run_like(&c->values[arg], slice ? VPPS_I_PLACE : VPPS_I_SLICE);
        /* row at which this part of the cut or stacked vector begins; 0 for nodes of a list: the device finds it */
        v.run.u = vpps_whole_number(list ? 0 : row);
        v.run.over_list = list;
        v.axis = list ? v.axis : c->values[y].axis;
        row += c->values[arg].rows;
        if (!w->needs[arg]) continue;
        const uint32_t dx = add_value(w, v);
        add_arg(w, d, 0, VPPS_NO_PARAM);
        add_part(w, arg, for_axis(w, dx, arg), VPPS_NO_PARAM);
    }
}

static void backward_of(work *w, uint32_t v) {
    vpps_compiled_cell *c = w->c;
    const vpps_cell_value value = c->values[v];
    uint64_t asked = asked_outputs(c, v);
    uint32_t product, rest;
    collect(w, v, &product, &rest);
    if (!w->ok || (product == VPPS_NONE && rest == VPPS_NONE)) return;
    if (product != VPPS_NONE) product = if_taken(w, product);
    const bool comes_in = value.kind <= VPPS_VALUE_LOOKUP;
    /* The gradient for an input stays two terms: `product` (by matrices^T, as one partial sum per processor) and
     * `rest`. The sum over all readers of the input adds all of these, too, without an extra step. */
    if (comes_in && c->needs.group > 1 && !asked) {
        contribute(w, &value, product);
        contribute(w, &value, rest);
        return;
    }
    const uint32_t both[] = {product, rest};
    uint32_t d = product == VPPS_NONE ? rest : product;
    if (product != VPPS_NONE && rest != VPPS_NONE) d = add_up(w, &value, both, 2);
    for (; asked; asked &= asked - 1) c->gradient_of[__builtin_ctzll(asked)] = d;
    switch (value.kind) {
    case VPPS_VALUE_INPUT: contribute(w, &value, d); break;
    case VPPS_VALUE_LOOKUP:
        if (trained(w, c->lookups[value.lookup].table)) contribute(w, &value, d);
        break;
    case VPPS_VALUE_PARAMETER: add_outer(w, value.vector, d, VPPS_NONE); break;
    case VPPS_VALUE_RUN:
        if (value.run.opcode == VPPS_I_MATRIX) add_outer(w, value.run.table, d, VPPS_NONE);
        (vpps_ops[value.run.op].op_class == VPPS_CLASS_PARTS ? slice_parts : run_parts)(w, v, d);
        break;
    case VPPS_VALUE_PRODUCT: product_parts(w, v, d); break;
    default: break;
    }
}

vpps_status vpps_differentiate(const vpps_model *model, vpps_compiled_cell *c) {
    work w = {.model = model, .c = c, .ok = true};
    const size_t n = c->n_forward + 1u;
    w.needs = calloc(n, sizeof *w.needs);
    w.first = malloc(n * sizeof *w.first);
    w.depth = calloc(n, sizeof *w.depth);
    w.recomputed = malloc(n * sizeof *w.recomputed);
    w.ok = w.needs && w.first && w.depth && w.recomputed;
    if (w.ok) {
        memset(w.first, 0xff, n * sizeof *w.first);
        memset(w.recomputed, 0xff, n * sizeof *w.recomputed);
        mark_needs(&w);
        choose_recomputed(&w);
        for (uint32_t v = c->n_forward; w.ok && v-- > 0;)
            if (w.needs[v]) backward_of(&w, v);
    }
    VPPS_FREE_ARRAYS(w.parts);
    VPPS_FREE(w.needs, w.first, w.depth, w.recomputed);
    return w.ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}
