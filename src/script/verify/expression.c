/* expression.c - numbers formulas so that equal ones have equal numbers (expression.h). */
#include "script/verify/expression.h"

#include <math.h>

void vpps_expressions_clear(vpps_expressions *s) {
    s->n = 0;
    s->n_terms = 0;
    vpps_index_clear(&s->numbers);
}

void vpps_expressions_free(vpps_expressions *s) {
    VPPS_FREE_ARRAYS(s->at, s->terms, s->scratch);
    vpps_index_free(&s->numbers);
    *s = (vpps_expressions){0};
}

static uint32_t fail(vpps_expressions *s) {
    s->failed = true;
    return VPPS_NONE;
}

/* ---------------------------------------------------------------- equal formulas, equal numbers */

static uint64_t hash(const vpps_expression *x, const vpps_term *terms) {
    uint64_t h = vpps_mix64((uint64_t)x->kind << 56 ^ (uint64_t)x->axis << 48 ^ (uint64_t)x->rows << 24 ^ x->cols);
    for (uint32_t i = 0; i < VPPS_EXPRESSION_WORDS; i++) h = vpps_mix64(h + x->a[i]);
    for (uint32_t i = 0; i < x->n; i++) h = vpps_mix64(h + ((uint64_t)terms[i].x << 32 | terms[i].mark));
    return h;
}

static bool same(const vpps_expressions *s, const vpps_expression *a, const vpps_expression *b,
                 const vpps_term *terms) {
    return a->kind == b->kind && a->axis == b->axis && a->rows == b->rows && a->cols == b->cols && a->n == b->n &&
           !memcmp(a->a, b->a, sizeof a->a) && (!b->n || !memcmp(s->terms + a->first, terms, b->n * sizeof *terms));
}

/* Returns the number of the expression that equals x with these terms; adds the expression if it is new. `terms` must not point into s->terms. */
static uint32_t intern(vpps_expressions *s, vpps_expression x, const vpps_term *terms) {
    if (s->failed) return fail(s);
    const uint64_t h = hash(&x, terms);
    for (uint32_t at = vpps_index_first(h), i; (i = vpps_index_next(&s->numbers, h, &at)) != UINT32_MAX;)
        if (same(s, &s->at[i], &x, terms)) return i;
    if (s->n_terms + x.n > UINT32_MAX || !VPPS_RESERVE(s->at, s->n + 1u) || !VPPS_RESERVE(s->terms, s->n_terms + x.n) ||
        !vpps_index_add(&s->numbers, h, s->n))
        return fail(s);
    x.first = (uint32_t)s->n_terms;
    if (x.n) memcpy(s->terms + s->n_terms, terms, x.n * sizeof *terms);
    s->n_terms += x.n;
    s->at[s->n] = x;
    return s->n++;
}

vpps_term *vpps_express_room(vpps_expressions *s, uint32_t n) {
    if (VPPS_RESERVE(s->scratch, n + 1u)) return s->scratch;
    s->failed = true;
    return NULL;
}

uint32_t vpps_express(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t axis,
                      uint32_t a0, uint32_t a1, uint32_t a2) {
    const vpps_expression x = {
        .kind = (uint8_t)kind, .axis = (uint8_t)axis, .rows = rows, .cols = cols, .a = {a0, a1, a2}};
    return intern(s, x, NULL);
}

uint32_t vpps_express_of(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t x,
                         uint32_t a0, uint32_t a1) {
    if (x == VPPS_NONE) return x;
    const vpps_term term = {x, 0};
    const uint8_t axis = kind == VPPS_X_OVER_LIST ? 0 : s->at[x].axis;
    const vpps_expression y = {.kind = (uint8_t)kind, .axis = axis, .rows = rows, .cols = cols, .a = {a0, a1}, .n = 1};
    return intern(s, y, &term);
}

/* ---------------------------------------------------------------- constants */

static uint32_t express_constant(vpps_expressions *s, uint32_t rows, uint32_t cols, float f) {
    return vpps_express(s, VPPS_X_CONSTANT, rows, cols, 0, vpps_float_bits(f), 0, 0);
}

static bool is_constant(const vpps_expressions *s, uint32_t x, float *f) {
    if (x == VPPS_NONE || s->failed || s->at[x].kind != VPPS_X_CONSTANT) return false;
    *f = vpps_bits_float(s->at[x].a[0]);
    return true;
}

static bool is_zero(const vpps_expressions *s, uint32_t x) {
    float f;
    return is_constant(s, x, &f) && f == 0;
}

/* ---------------------------------------------------------------- sums */

/* Returns a result's axis, given its operands': 0: a value per vertex; d: per node of list d (input of many nodes). */
static uint8_t common_axis(uint8_t a, uint8_t b) { return a > b ? a : b; }

static int by_term(const void *a, const void *b) {
    const vpps_term *x = a, *y = b;
    if (x->x != y->x) return x->x < y->x ? -1 : 1;
    return x->mark < y->mark ? -1 : x->mark > y->mark;
}

/* Returns whether expression x is the sum of its terms: a sum, or a stack (which is a sum of values, each placed among zeros). */
static bool is_of_terms(const vpps_expressions *s, const vpps_expression *x) {
    return x->kind == VPPS_X_SUM || (x->kind == VPPS_X_STACK && !(s->terms[x->first].mark & VPPS_ALL_MEMBERS));
}

/* Writes x's terms times `factor` to `to`. A stack of vectors is a sum, too: of vectors padded with zeros (PLACE). */
static void write_terms(vpps_expressions *s, uint32_t x, float factor, vpps_term *to) {
    const vpps_expression of = s->at[x];
    for (uint32_t k = 0, row = 0; k < of.n; k++) {
        vpps_term term = s->terms[of.first + k];
        if (of.kind == VPPS_X_STACK) {
            const uint32_t rows = s->at[term.x].rows;
            term = vpps_plus(vpps_express_of(s, VPPS_X_PLACE, of.rows, of.cols, term.x, row, 0));
            row += rows;
        }
        to[k] = (vpps_term){term.x, vpps_float_bits(factor * vpps_bits_float(term.mark))};
    }
}

static int by_mark(const void *a, const void *b) {
    const vpps_term *x = a, *y = b;
    return x->mark < y->mark ? -1 : x->mark > y->mark;
}

/* If all terms are PLACE expressions (values among zeros) whose rows follow without gaps, returns the stack of the values; else VPPS_NONE. */
static uint32_t stack_terms(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms) {
    vpps_term *parts = malloc(n * sizeof *parts); /* the terms' values; mark: row at which PLACE puts the value */
    if (!parts) return fail(s);
    uint32_t row = 0, placed = 0, below = 0;
    for (; placed < n; placed++) {
        const vpps_expression *x = &s->at[terms[placed].x];
        if (x->kind != VPPS_X_PLACE || terms[placed].mark != vpps_plus(0).mark) break;
        parts[placed] = (vpps_term){s->terms[x->first].x, x->a[0]};
    }
    qsort(parts, placed, sizeof *parts, by_mark);
    for (; below < placed && parts[below].mark == row; below++) {
        row += s->at[parts[below].x].rows;
        parts[below].mark = 0;
    }
    const uint32_t stack = below == n && row == rows ? vpps_express_stack(s, rows, cols, n, parts) : VPPS_NONE;
    free(parts);
    return stack;
}

uint32_t vpps_express_sum(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms) {
    size_t all = 0;
    bool zeros = false;
    for (uint32_t i = 0; i < n && !s->failed; i++) {
        const bool zero = is_zero(s, terms[i].x);
        zeros |= zero;
        if (terms[i].x != VPPS_NONE && !zero) all += is_of_terms(s, &s->at[terms[i].x]) ? s->at[terms[i].x].n : 1;
    }
    if (!all && zeros) return express_constant(s, rows, cols, 0);
    if (!all || s->failed) return VPPS_NONE;
    vpps_term *flat = malloc(all * sizeof *flat);
    if (!flat || all > UINT32_MAX) {
        free(flat);
        return fail(s);
    }
    uint32_t at = 0;
    vpps_expression sum = {.kind = VPPS_X_SUM, .rows = rows, .cols = cols, .n = (uint32_t)all};
    for (uint32_t i = 0; i < n; i++) {
        if (terms[i].x == VPPS_NONE || is_zero(s, terms[i].x)) continue;
        const vpps_expression *x = &s->at[terms[i].x];
        sum.axis = common_axis(sum.axis, x->axis);
        if (!is_of_terms(s, x)) {
            flat[at++] = terms[i];
            continue;
        }
        const uint32_t count = x->n; /* write_terms may move the array that x points into */
        write_terms(s, terms[i].x, vpps_bits_float(terms[i].mark), flat + at);
        at += count;
    }
    if (s->failed) return free(flat), VPPS_NONE;
    qsort(flat, all, sizeof *flat, by_term);
    const vpps_expression *only = &s->at[flat[0].x];
    const bool one = all == 1 && flat[0].mark == vpps_plus(0).mark && only->rows == rows && only->cols == cols;
    uint32_t x = one ? flat[0].x : stack_terms(s, rows, cols, sum.n, flat);
    if (x == VPPS_NONE) x = intern(s, sum, flat);
    free(flat);
    return x;
}

uint32_t vpps_express_add(vpps_expressions *s, uint32_t a, uint32_t b) {
    if (a == VPPS_NONE || b == VPPS_NONE) return a == VPPS_NONE ? b : a;
    const vpps_term both[] = {vpps_plus(a), vpps_plus(b)};
    return vpps_express_sum(s, s->at[a].rows, s->at[a].cols, 2, both);
}

uint32_t vpps_express_over_list(vpps_expressions *s, uint32_t x, uint32_t axis) {
    if (x == VPPS_NONE || s->failed || !axis) return x;
    const vpps_expression of = s->at[x];
    if (of.kind != VPPS_X_SUM) return vpps_express_of(s, VPPS_X_OVER_LIST, of.rows, of.cols, x, axis, 0);
    vpps_term *terms = vpps_express_room(s, of.n);
    for (uint32_t i = 0; terms && i < of.n; i++) {
        const vpps_term t = s->terms[of.first + i];
        terms[i] = (vpps_term){vpps_express_of(s, VPPS_X_OVER_LIST, of.rows, of.cols, t.x, axis, 0), t.mark};
    }
    return terms ? vpps_express_sum(s, of.rows, of.cols, of.n, terms) : VPPS_NONE;
}

uint32_t vpps_express_stack(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms) {
    vpps_expression x = {.kind = VPPS_X_STACK, .rows = rows, .cols = cols, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        if (terms[i].x == VPPS_NONE || s->failed) return VPPS_NONE;
        x.axis = common_axis(x.axis, s->at[terms[i].x].axis);
    }
    const bool one = n == 1 && s->at[terms[0].x].rows == rows && s->at[terms[0].x].cols == cols;
    return one ? terms[0].x : intern(s, x, terms);
}

uint32_t vpps_express_members(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis) {
    const vpps_term term = {x, VPPS_ALL_MEMBERS | axis};
    if (x == VPPS_NONE) return x;
    return intern(s, (vpps_expression){.kind = VPPS_X_STACK, .rows = rows, .cols = cols, .n = 1}, &term);
}

uint32_t vpps_express_member(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis) {
    const vpps_expression member = {.kind = VPPS_X_MEMBER, .axis = (uint8_t)axis, .rows = rows, .cols = cols, .n = 1};
    const vpps_term term = {x, 0};
    return x == VPPS_NONE ? x : intern(s, member, &term);
}

/* Of a stack (vectors below each other): returns the vector that has its `rows` rows from *first on; VPPS_NONE: no
 * vector has them all. *first becomes the row in the vector. */
static uint32_t find_part(const vpps_expressions *s, const vpps_expression *stack, uint32_t rows, uint32_t *first) {
    for (uint32_t i = 0; i < stack->n; i++) {
        const uint32_t part = s->terms[stack->first + i].x, part_rows = s->at[part].rows;
        if (s->terms[stack->first + i].mark & VPPS_ALL_MEMBERS) return VPPS_NONE;
        if (*first < part_rows) return rows <= part_rows - *first ? part : VPPS_NONE;
        *first -= part_rows;
    }
    return VPPS_NONE;
}

uint32_t vpps_express_slice(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t first) {
    while (x != VPPS_NONE && !s->failed) {
        const vpps_expression *of = &s->at[x];
        if (of->rows == rows && !first) return x;
        uint32_t in_part = first;
        const uint32_t part = of->kind == VPPS_X_STACK ? find_part(s, of, rows, &in_part) : VPPS_NONE;
        if (of->kind == VPPS_X_SLICE) {
            first += of->a[0];
            x = s->terms[of->first].x;
        } else if (part != VPPS_NONE) {
            first = in_part;
            x = part;
        } else if (of->kind == VPPS_X_CONSTANT) {
            return express_constant(s, rows, cols, vpps_bits_float(of->a[0]));
        } else {
            break;
        }
    }
    return vpps_express_of(s, VPPS_X_SLICE, rows, cols, x, first, 0);
}

/* ---------------------------------------------------------------- instructions */

/* If all operands of an instruction are constants, sets *sum to their sum, in which operand 0 is multiplied by `first` and each other operand by
 * `others`. Else returns false. */
static bool constant_sum(const vpps_expressions *s, const vpps_run *run, float first, float others, float *sum) {
    for (uint32_t i = 0; i < run->n; i++) {
        float f;
        if ((run->operands[i].mark & VPPS_ALL_MEMBERS) || !is_constant(s, run->operands[i].x, &f)) return false;
        const float term = (i ? others : first) * f;
        *sum = i ? *sum + term : term;
    }
    return run->n && !run->average;
}

/* Returns the sum of an instruction's operands: operand 0 multiplied by `first`, each other operand by `others`. */
static uint32_t linear(vpps_expressions *s, const vpps_run *run, float first, float others) {
    float constant;
    if (constant_sum(s, run, first, others, &constant)) return express_constant(s, run->rows, run->cols, constant);
    vpps_term *terms = malloc((run->n + 1u) * sizeof *terms);
    if (!terms) return fail(s);
    for (uint32_t i = 0; i < run->n; i++) {
        const uint32_t mark = run->operands[i].mark, list = mark & VPPS_ALL_MEMBERS ? mark & ~VPPS_ALL_MEMBERS : 0;
        const uint32_t x = vpps_express_over_list(s, run->operands[i].x, list);
        terms[i] = (vpps_term){x, vpps_float_bits(i ? others : first)};
    }
    const uint32_t sum = vpps_express_sum(s, run->rows, run->cols, run->n, terms);
    free(terms);
    if (!run->average || sum == VPPS_NONE || s->failed) return sum;
    vpps_expression average = {
        .kind = VPPS_X_AVERAGE, .axis = s->at[sum].axis, .rows = run->rows, .cols = run->cols, .n = 1};
    const vpps_term term = {sum, 0};
    memcpy(average.a, run->lists, sizeof run->lists);
    average.a[0] = run->u;
    return intern(s, average, &term);
}

/* If expression x is the negative of another expression, returns that expression and toggles *negative; else returns x. */
static uint32_t take_sign(const vpps_expressions *s, uint32_t x, bool *negative) {
    const vpps_expression *of = &s->at[x];
    if (of->kind != VPPS_X_SUM || of->n != 1 || vpps_bits_float(s->terms[of->first].mark) != -1) return x;
    const uint32_t inner = s->terms[of->first].x;
    if (s->at[inner].rows != of->rows || s->at[inner].cols != of->cols) return x;
    *negative = !*negative;
    return inner;
}

static uint32_t scale(vpps_expressions *s, const vpps_run *run, uint32_t x, float factor) {
    vpps_term operand = {x, 0};
    const vpps_run one = {.rows = run->rows, .cols = run->cols, .operands = &operand, .n = 1};
    return linear(s, &one, factor, 0);
}

static uint32_t one_minus(vpps_expressions *s, const vpps_run *run) {
    vpps_term operands[] = {{express_constant(s, run->rows, run->cols, 1), 0}, run->operands[0]};
    const vpps_run difference = {.rows = run->rows, .cols = run->cols, .operands = operands, .n = 2};
    return linear(s, &difference, 1, -1);
}

/* Returns a simpler expression that equals the instruction because of its constant operands; VPPS_NONE: there is none. */
static uint32_t with_constant(vpps_expressions *s, const vpps_run *run) {
    float f = 0, g = 0;
    const bool first = run->n > 0 && is_constant(s, run->operands[0].x, &f);
    const bool second = run->n > 1 && is_constant(s, run->operands[1].x, &g);
    switch (run->opcode) {
    case VPPS_I_MUL:
        if (second) return scale(s, run, run->operands[0].x, g);
        return first ? scale(s, run, run->operands[1].x, f) : VPPS_NONE;
    case VPPS_I_SCALE_BY: return second ? scale(s, run, run->operands[0].x, g) : VPPS_NONE;
    case VPPS_I_DIV:
        if (first && second) return express_constant(s, run->rows, run->cols, f / g);
        if (second && g == 1) return scale(s, run, run->operands[0].x, 1);
        if (first && f == 1) {
            const vpps_run reciprocal = {.opcode = VPPS_I_RECIPROCAL,
                                         .rows = run->rows,
                                         .cols = run->cols,
                                         .operands = run->operands + 1,
                                         .n = 1};
            return vpps_express_run(s, &reciprocal);
        }
        return VPPS_NONE;
    default: break;
    }
    if (!first || run->n != 1) return VPPS_NONE;
    switch (run->opcode) {
    case VPPS_I_RECIPROCAL: return express_constant(s, run->rows, run->cols, 1 / f);
    case VPPS_I_SQUARE: return express_constant(s, run->rows, run->cols, f * f);
    case VPPS_I_SQRT: return express_constant(s, run->rows, run->cols, sqrtf(f));
    case VPPS_I_ABS: return express_constant(s, run->rows, run->cols, fabsf(f));
    case VPPS_I_RELU: return express_constant(s, run->rows, run->cols, f < 0 ? 0 : f);
    default: return VPPS_NONE;
    }
}

/* Returns the elementwise product of two factors. The factors are sorted by their numbers, and their minus signs moved in front of the product. */
static uint32_t multiply(vpps_expressions *s, vpps_expression product, const vpps_term *factors) {
    bool negative = false;
    const vpps_term a = {take_sign(s, factors[0].x, &negative), 0}, b = {take_sign(s, factors[1].x, &negative), 0};
    const vpps_term sorted[] = {a.x < b.x ? a : b, a.x < b.x ? b : a};
    const vpps_term x = {intern(s, product, sorted), vpps_float_bits(-1)};
    return negative ? vpps_express_sum(s, product.rows, product.cols, 1, &x) : x.x;
}

/* Returns the instruction WHEN: operands[0] where operands[1] is > 0, else zero. If operands[0] is a sum, each of its terms gets a WHEN. */
static uint32_t choose(vpps_expressions *s, vpps_expression choice, const vpps_term *operands) {
    const vpps_expression of = s->at[operands[0].x];
    vpps_term *terms = of.kind == VPPS_X_SUM ? vpps_express_room(s, of.n) : NULL;
    if (!terms) return intern(s, choice, operands);
    for (uint32_t i = 0; i < of.n; i++) {
        const vpps_term t = s->terms[of.first + i], both[] = {{t.x, 0}, operands[1]};
        terms[i] = (vpps_term){intern(s, choice, both), t.mark};
    }
    return vpps_express_sum(s, choice.rows, choice.cols, of.n, terms);
}

uint32_t vpps_express_pair(vpps_expressions *s, uint32_t opcode, uint32_t rows, uint32_t cols, uint32_t a, uint32_t b) {
    vpps_term both[] = {{a, 0}, {b, 0}};
    return vpps_express_run(s, &(vpps_run){.opcode = opcode, .rows = rows, .cols = cols, .operands = both, .n = 2});
}

/* Returns the weighted sum of a list's members as the sum of the members, each scaled by its weight. */
static uint32_t weigh(vpps_expressions *s, const vpps_run *run) {
    const uint32_t x =
        vpps_express_pair(s, VPPS_I_SCALE_BY, run->rows, run->cols, run->operands[1].x, run->operands[0].x);
    return x == VPPS_NONE ? x : vpps_express_over_list(s, x, run->operands[0].mark & ~VPPS_ALL_MEMBERS);
}

uint32_t vpps_express_run(vpps_expressions *s, const vpps_run *run) {
    vpps_expression x = {.kind = VPPS_X_RUN,
                         .rows = run->rows,
                         .cols = run->cols,
                         .axis = run->axis,
                         .n = run->n,
                         .a = {run->opcode, run->f_source,
                               run->f_source == VPPS_OPERAND_STATIC ? vpps_float_bits(run->f) : 0, run->u_source,
                               run->u, run->e_add}};
    memcpy(x.a + 6, run->lists, sizeof run->lists);
    for (uint32_t i = 0; i < run->n; i++) {
        if (run->operands[i].x == VPPS_NONE || s->failed) return VPPS_NONE;
        if (!(run->operands[i].mark & VPPS_ALL_MEMBERS)) x.axis = common_axis(x.axis, s->at[run->operands[i].x].axis);
    }
    const uint32_t other = with_constant(s, run);
    if (other != VPPS_NONE) return other;
    switch (run->opcode) {
    case VPPS_I_FILL:
        if (run->f_source == VPPS_OPERAND_STATIC) return express_constant(s, run->rows, run->cols, run->f);
        break;
    case VPPS_I_ONE_MINUS: return one_minus(s, run);
    case VPPS_I_COPY: return linear(s, run, 1, 1);
    case VPPS_I_NEG: return linear(s, run, -1, -1);
    case VPPS_I_ADD: return linear(s, run, 1, 1);
    case VPPS_I_SUB: return linear(s, run, 1, -1);
    case VPPS_I_SCALE:
    case VPPS_I_SUM:
        if (run->average) return linear(s, run, 1, 1);
        if (run->f_source == VPPS_OPERAND_STATIC) return linear(s, run, run->f, run->f);
        break;
    case VPPS_I_DROPOUT:
        if (run->f_source == VPPS_OPERAND_STATIC && !run->average && !vpps_float_bits(run->f))
            return linear(s, run, 1, 1);
        break;
    case VPPS_I_MUL: return multiply(s, x, run->operands);
    case VPPS_I_WHEN: return choose(s, x, run->operands);
    case VPPS_I_WEIGHTED_SUM:
        if (run->n == 2 && (run->operands[0].mark & run->operands[1].mark & VPPS_ALL_MEMBERS)) return weigh(s, run);
        break;
    default: break;
    }
    return intern(s, x, run->operands);
}
