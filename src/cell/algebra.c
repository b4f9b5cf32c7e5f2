/* algebra.c - computes sums, differences and products of two constants in advance, and replaces other operations by simpler ones or by
 * none. Every rule keeps the result's bits, with two exceptions: joining two factors into one rounds once less, and a zero may change its sign. */
#include "cell/cell.h"

#include <math.h>

static bool is_constant(const vpps_cell_number *n) { return n->kind == VPPS_NUMBER_CONSTANT; }

static bool static_scale(const vpps_cell_value *v) { return vpps_is_run(v, VPPS_I_SCALE) && is_constant(&v->run.f); }

/* A value v of a compiled cell that is to be simplified, and v's arguments, which are simplified already. */
typedef struct operation {
    const vpps_compiled_cell *c;
    vpps_cell_value *v;
    vpps_cell_arg *args;
} operation;

static const vpps_cell_value *arg(const operation *o, uint32_t k) { return &o->c->values[o->args[k].value]; }

static bool constant(const operation *o, uint32_t k, float *f) {
    const vpps_cell_value *x = arg(o, k);
    if (!vpps_is_run(x, VPPS_I_FILL) || !is_constant(&x->run.f)) return false;
    *f = x->run.f.real;
    return true;
}

/* Operation o's argument k is the result x of an operation: returns a, x's own first argument. The returned `value` is VPPS_NONE if one of
 * a and x has a value for each node that a list input (of any number of nodes) reads, and the other has one value per vertex. */
static vpps_cell_arg below(const operation *o, uint32_t k) {
    const vpps_cell_value *x = arg(o, k);
    vpps_cell_arg a = o->c->args[x->first_arg];
    if (o->c->values[a.value].axis != x->axis) a.value = VPPS_NONE;
    return a;
}

/* Replaces v's instruction by `opcode` on the first n arguments of v, and on the number f if `opcode` takes one. Returns true. */
static bool become(const operation *o, uint32_t opcode, uint32_t n, float f) {
    o->v->run = (vpps_cell_run){
        .opcode = (uint8_t)opcode, .op = o->v->run.op, .recompute = o->v->run.recompute, .table = VPPS_NO_PARAM};
    if (strchr(vpps_instructions[opcode].operands, 'f')) o->v->run.f = vpps_real_number(f);
    o->v->n_args = n;
    return true;
}

static bool is_negation(const operation *o, uint32_t k) {
    return vpps_is_run(arg(o, k), VPPS_I_NEG) && below(o, k).value != VPPS_NONE;
}

/* Sorts the operands of a commutative operation, so that x + y and y + x become equal values. */
static void sort_operands(const operation *o) {
    if (o->args[0].value <= o->args[1].value) return;
    const vpps_cell_arg first = o->args[0];
    o->args[0] = o->args[1];
    o->args[1] = first;
}

/* ---------------------------------------------------------------- rules: true if v was changed; *same: v equals that value */

/* Returns the number of the first argument, from k on, that is a PLACE (a vector put among zeros) at row `row`; VPPS_NONE: none. */
static uint32_t placed_at(const operation *o, uint32_t k, uint32_t row) {
    for (; k < o->v->n_args; k++) {
        const vpps_cell_value *x = arg(o, k);
        if (vpps_is_run(x, VPPS_I_PLACE) && x->axis == o->v->axis && !x->run.over_list && x->run.u.whole == row &&
            below(o, k).value != VPPS_NONE)
            return k;
    }
    return VPPS_NONE;
}

/* Replaces a sum of vectors that lie among zeros (PLACE), at rows that follow each other without gaps, by a STACK of the vectors. The
 * gradient of a vector of which all slices were read is such a sum. */
static bool join_places(const operation *o) {
    uint32_t n = 0, k;
    for (uint32_t row = 0; row < o->v->rows; row += o->c->values[below(o, k).value].rows, n++)
        if ((k = placed_at(o, 0, row)) == VPPS_NONE) return false;
    if (n != o->v->n_args) return false;
    for (uint32_t row = 0, i = 0; i < n; i++) {
        k = placed_at(o, i, row);
        const vpps_cell_arg part = below(o, k);
        o->args[k] = o->args[i];
        o->args[i] = part;
        row += o->c->values[part.value].rows;
    }
    return become(o, VPPS_I_STACK, n, 0);
}

static bool simplify_neg(const operation *o, uint32_t *same) {
    const vpps_cell_value *x = arg(o, 0);
    if (!vpps_is_run(x, VPPS_I_NEG) && !static_scale(x)) return false;
    const vpps_cell_arg inner = below(o, 0);
    if (inner.value == VPPS_NONE) return false;
    if (vpps_is_run(x, VPPS_I_NEG)) {
        *same = inner.value;
        return false;
    }
    o->args[0] = inner;
    return become(o, VPPS_I_SCALE, 1, -x->run.f.real);
}

static bool is_moderate(float factor) { return fabsf(factor) >= 0x1p-16f && fabsf(factor) <= 0x1p16f; }

/* Returns whether x * a * b may be computed as x * (a * b), for constants a and b. If one constant is above 1 and the other below,
 * x * a may overflow or underflow where x * (a * b) does not; both constants must then be moderate (2^-16 to 2^16). */
static bool may_join(float a, float b) {
    const float x = fabsf(a), y = fabsf(b);
    const bool same_way = (x <= 1 && y <= 1) || (x >= 1 && y >= 1);
    return isnormal(a * b) && (same_way || (is_moderate(a) && is_moderate(b)));
}

static bool simplify_scale(const operation *o, uint32_t *same) {
    if (!static_scale(o->v)) return false;
    const float factor = o->v->run.f.real;
    if (factor == 1) {
        *same = o->args[0].value;
        return false;
    }
    if (factor == -1) return become(o, VPPS_I_NEG, 1, 0);
    const bool scaled = static_scale(arg(o, 0));
    if (!scaled && !is_negation(o, 0)) return false;
    const vpps_cell_arg inner = below(o, 0);
    const float f = scaled ? arg(o, 0)->run.f.real : -1;
    if (inner.value == VPPS_NONE || (scaled && !may_join(f, factor))) return false;
    o->args[0] = inner;
    return become(o, VPPS_I_SCALE, 1, f * factor);
}

static bool simplify_add(const operation *o, uint32_t *same) {
    float f, g;
    for (uint32_t k = 0; k < 2; k++) {
        if (!constant(o, k, &f)) continue;
        if (constant(o, 1 - k, &g)) return become(o, VPPS_I_FILL, 0, f + g);
        if (f == 0 && arg(o, 1 - k)->axis == o->v->axis) *same = o->args[1 - k].value;
    }
    for (uint32_t k = 0; k < 2 && *same == VPPS_NONE; k++) {
        if (!is_negation(o, k)) continue;
        const vpps_cell_arg minus = below(o, k);
        o->args[0] = o->args[1 - k];
        o->args[1] = minus;
        return become(o, VPPS_I_SUB, 2, 0);
    }
    if (*same == VPPS_NONE && join_places(o)) return true;
    sort_operands(o);
    return false;
}

static bool simplify_sub(const operation *o, uint32_t *same) {
    float f, g;
    if (constant(o, 1, &g)) {
        if (constant(o, 0, &f)) return become(o, VPPS_I_FILL, 0, f - g);
        if (g == 0 && arg(o, 0)->axis == o->v->axis) *same = o->args[0].value;
    } else if (constant(o, 0, &f) && (f == 0 || f == 1) && arg(o, 1)->axis == o->v->axis) {
        o->args[0] = o->args[1];
        return become(o, f == 0 ? VPPS_I_NEG : VPPS_I_ONE_MINUS, 1, 0);
    }
    if (*same != VPPS_NONE || !is_negation(o, 1)) return false;
    o->args[1] = below(o, 1);
    return become(o, VPPS_I_ADD, 2, 0);
}

static bool simplify_mul(const operation *o, uint32_t *same) {
    float f, g;
    (void)same;
    for (uint32_t k = 0; k < 2; k++) {
        if (!constant(o, k, &f)) continue;
        if (constant(o, 1 - k, &g)) return become(o, VPPS_I_FILL, 0, f * g);
        if (arg(o, 1 - k)->axis != o->v->axis) continue;
        o->args[0] = o->args[1 - k];
        return become(o, VPPS_I_SCALE, 1, f);
    }
    if (is_negation(o, 0) && is_negation(o, 1)) {
        const vpps_cell_arg a = below(o, 0), b = below(o, 1);
        o->args[0] = a;
        o->args[1] = b;
    }
    sort_operands(o);
    return false;
}

static bool simplify_div(const operation *o, uint32_t *same) {
    float f, g;
    if (!constant(o, 1, &g)) {
        if (!constant(o, 0, &f) || f != 1 || arg(o, 1)->axis != o->v->axis) return false;
        o->args[0] = o->args[1];
        return become(o, VPPS_I_RECIPROCAL, 1, 0);
    }
    if (g == 1 && arg(o, 0)->axis == o->v->axis) *same = o->args[0].value;
    return false;
}

/* Drops zero operands of a sum; keeps the last one if all operands are zero. */
static bool leave_zeros_out(const operation *o) {
    uint32_t n = 0;
    float f;
    for (uint32_t k = 0; k < o->v->n_args; k++) {
        const bool zero = arg(o, k)->axis == o->v->axis && constant(o, k, &f) && f == 0;
        if (!zero || (!n && k + 1 == o->v->n_args)) o->args[n++] = o->args[k];
    }
    const bool some = n < o->v->n_args;
    o->v->n_args = n;
    return some;
}

/* Replaces a sum over a list's members, each a vector times a number of the same member, by an instruction for weighted sums. */
static bool weigh(const operation *o) {
    const vpps_cell_value *x = arg(o, 0);
    if (o->v->axis || o->v->n_args > 1 || !vpps_is_run(x, VPPS_I_SCALE_BY)) return false;
    const vpps_cell_arg *scaled = &o->c->args[x->first_arg];
    const vpps_cell_value *a = &o->c->values[scaled[0].value], *by = &o->c->values[scaled[1].value];
    if (a->axis != x->axis || by->axis != x->axis || vpps_value_words(by) > 1) return false;
    o->args[0] = scaled[1];
    o->args[1] = scaled[0];
    become(o, VPPS_I_WEIGHTED_SUM, 2, 0);
    return o->v->run.over_list = true;
}

static bool simplify_sum(const operation *o, uint32_t *same) {
    const vpps_cell_value *v = o->v;
    if (!is_constant(&v->run.f) || v->run.f.real != 1) return false;
    if (leave_zeros_out(o)) return true;
    if (arg(o, 0)->axis != v->axis) return weigh(o);
    if (v->n_args == 1) *same = o->args[0].value;
    if (join_places(o)) return true;
    return v->n_args == 2 && arg(o, 1)->axis == v->axis && become(o, VPPS_I_ADD, 2, 0);
}

/* ---------------------------------------------------------------- parts of values */

/* For a slice of a stack of vectors, finds the vector that has all rows of the slice; *first becomes the slice's first row in it. */
static bool find_part(const operation *o, uint32_t *part, uint32_t *first) {
    const vpps_cell_value *x = arg(o, 0);
    uint32_t row = *first;
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &o->c->args[x->first_arg + k];
        const vpps_cell_value *y = &o->c->values[a->value];
        if (row < y->rows) {
            *part = a->value;
            *first = row;
            return row + o->v->rows <= y->rows && y->axis == o->v->axis;
        }
        row -= y->rows;
    }
    return false;
}

static bool simplify_slice(const operation *o, uint32_t *same) {
    const vpps_cell_value *x = arg(o, 0);
    uint32_t *row = &o->v->run.u.whole;
    if (x->axis != o->v->axis || (x->kind == VPPS_VALUE_RUN && x->run.over_list)) return false;
    if (*row == 0 && x->rows == o->v->rows) {
        *same = o->args[0].value;
    } else if (vpps_is_run(x, VPPS_I_SLICE) && below(o, 0).value != VPPS_NONE) {
        *row += x->run.u.whole;
        o->args[0] = below(o, 0);
        return true;
    } else if (vpps_is_run(x, VPPS_I_STACK)) {
        uint32_t part, first = *row;
        if (!find_part(o, &part, &first)) return false;
        *row = first;
        o->args[0].value = part;
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- all rules */

static bool simplify_run(const operation *o, uint32_t *same) {
    float f;
    switch (o->v->run.opcode) {
    case VPPS_I_ADD: return simplify_add(o, same);
    case VPPS_I_SUB: return simplify_sub(o, same);
    case VPPS_I_MUL: return simplify_mul(o, same);
    case VPPS_I_DIV: return simplify_div(o, same);
    case VPPS_I_SUM: return simplify_sum(o, same);
    case VPPS_I_SLICE: return simplify_slice(o, same);
    default: break;
    }
    if (!o->v->n_args || arg(o, 0)->axis != o->v->axis) return false;
    switch (o->v->run.opcode) {
    case VPPS_I_COPY: *same = o->args[0].value; return false;
    case VPPS_I_STACK:
        if (o->v->n_args == 1) *same = o->args[0].value;
        return false;
    case VPPS_I_DROPOUT:
        if (o->v->run.f.real == 0) *same = o->args[0].value; /* dropout with probability f = 0 copies its operand */
        return false;
    case VPPS_I_NEG: return simplify_neg(o, same);
    case VPPS_I_SCALE: return simplify_scale(o, same);
    case VPPS_I_SCALE_BY: return constant(o, 1, &f) && become(o, VPPS_I_SCALE, 1, f);
    case VPPS_I_ONE_MINUS: return constant(o, 0, &f) && become(o, VPPS_I_FILL, 0, 1 - f);
    default: return false;
    }
}

uint32_t vpps_simplify_value(const vpps_compiled_cell *c, vpps_cell_value *v, vpps_cell_arg *args) {
    const operation o = {c, v, args};
    uint32_t same = VPPS_NONE;
    bool changed = true;
    while (changed && same == VPPS_NONE) {
        changed = false;
        if (v->kind == VPPS_VALUE_RUN) changed = simplify_run(&o, &same);
    }
    return same;
}
