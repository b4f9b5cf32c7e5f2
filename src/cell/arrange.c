/* arrange.c - counts copies of a compiled cell's values, for `vpps cell`. A cell's operations of one kind and depth could run as one
 * batch if each operand's values were adjacent in memory; other values must be copied. Counts the copies for two orders of the values
 * in memory: that of creation, and one that a search finds. No device runs operations so, and the compiler does not read the result. */
#include "cell/arrange.h"

#define NONE VPPS_NONE

static const uint32_t *operand(const vpps_layout_batch *b, uint32_t o) { return b->operands + (size_t)o * b->width; }

/* ---------------------------------------------------------------- copies */

static bool is_broadcast(const uint32_t *values, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (values[i] == values[k]) return true;
    return false;
}

/* Returns whether an operand's values have the same distances in memory as the values in `first`. */
static bool lies_as(const uint32_t *place, const uint32_t *values, const uint32_t *first, uint32_t width) {
    uint32_t least = NONE, least_of_first = NONE;
    for (uint32_t i = 0; i < width; i++) {
        least = vpps_min_u32(least, place[values[i]]);
        least_of_first = vpps_min_u32(least_of_first, place[first[i]]);
    }
    for (uint32_t i = 0; i < width; i++)
        if (place[values[i]] - least != place[first[i]] - least_of_first) return false;
    return true;
}

static bool lies_together(const uint32_t *place, const uint32_t *values, uint32_t width) {
    uint32_t least = NONE, most = 0;
    for (uint32_t i = 0; i < width; i++) {
        least = vpps_min_u32(least, place[values[i]]);
        most = vpps_max_u32(most, place[values[i]]);
    }
    return most - least == width - 1;
}

static bool lies_in_order(const uint32_t *place, const uint32_t *values, uint32_t width) {
    for (uint32_t i = 1; i < width; i++)
        if (place[values[i]] < place[values[i - 1]]) return false;
    return true;
}

/* An operand of a batch (operations run as one) is one value for each operation. Returns the operand in whose values'
 * order in memory the operations should run: most operands have this order. NONE: no operand's values are adjacent. */
static uint32_t leader(const uint32_t *place, const vpps_layout_batch *b) {
    uint32_t best = NONE, most = 0;
    for (uint32_t o = 0; o < b->n_operands; o++) {
        uint32_t n = 0;
        if (is_broadcast(operand(b, o), b->width) || !lies_together(place, operand(b, o), b->width)) continue;
        for (uint32_t k = 0; k < b->n_operands; k++)
            n += 2 * (!is_broadcast(operand(b, k), b->width) && lies_as(place, operand(b, k), operand(b, o), b->width));
        n += lies_in_order(place, operand(b, o), b->width);
        if (n > most) {
            most = n;
            best = o;
        }
    }
    return best;
}

void vpps_count_copies(uint32_t n, const uint32_t *order, const vpps_layout_batch *batches, uint32_t n_batches,
                       const uint32_t *words, uint32_t *place, vpps_layout_copies *out) {
    *out = (vpps_layout_copies){0};
    for (uint32_t p = 0; p < n; p++) place[order[p]] = p;
    for (uint32_t i = 0; i < n_batches; i++) {
        const vpps_layout_batch *b = &batches[i];
        if (b->width < 2) continue;
        const uint32_t first = leader(place, b);
        for (uint32_t o = 0; o < b->n_operands; o++) {
            const uint32_t *values = operand(b, o);
            uint64_t moved = 0;
            for (uint32_t k = 0; k < b->width; k++) moved += words[values[k]];
            if (is_broadcast(values, b->width)) {
                out->broadcasts++;
                out->broadcast += moved;
            } else if (first == NONE || !lies_as(place, values, operand(b, first), b->width)) {
                out->gathers += o > 0;
                out->scatters += o == 0;
                out->gathered += o > 0 ? moved : 0;
                out->scattered += o == 0 ? moved : 0;
            }
        }
    }
}

/* ---------------------------------------------------------------- the search
 *
 * A move changes the order of values in memory: it puts the values of one operand of a batch, or of each of its operands, side by side, in
 * the order in which the values of some operand of the batch lie. From the order of creation and from random orders, moves are made as
 * long as they save copies. */

/* Limits of the search. STARTS: number of orders of a cell's values in memory, most of them random, that the search
 * improves so that fewer values are copied. Batches (operations run as one) of more than MOST_WIDTH operations or
 * MOST_OPERANDS operands are skipped. */
enum { STARTS = 64, MOST_WIDTH = 64, MOST_OPERANDS = 16 };

typedef struct search {
    uint32_t n, n_batches, n_forward;
    const vpps_layout_batch *batches;
    const uint32_t *words;
    uint32_t *place, *moved, *trial; /* scratch memory with an element for each value */
} search;

static uint64_t copied_words(const vpps_layout_copies *x) { return x->gathered + x->scattered; }

/* Returns the cost of an order of values in memory: in the upper 32 bits the words that must be copied for forward, in the lower bits those
 * for backward. Forward weighs more, since inference has no backward. */
static uint64_t cost_of(const search *s, const uint32_t *order) {
    vpps_layout_copies forward, backward;
    vpps_count_copies(s->n, order, s->batches, s->n_forward, s->words, s->place, &forward);
    vpps_count_copies(s->n, order, s->batches + s->n_forward, s->n_batches - s->n_forward, s->words, s->place,
                      &backward);
    return copied_words(&forward) << 32 | copied_words(&backward);
}

/* Reorders values in memory: puts all of operand o's values where its value number `where` lies, sorted as operand `like`'s values are. */
static void move(const search *s, const vpps_layout_batch *b, uint32_t o, uint32_t like, uint32_t where,
                 uint32_t *order) {
    const uint32_t *values = operand(b, o), *pattern = operand(b, like);
    uint32_t sorted[MOST_WIDTH], n = 0;
    if (is_broadcast(values, b->width)) return;
    for (uint32_t p = 0; p < s->n; p++) s->place[order[p]] = p;
    for (uint32_t i = 0, k; i < b->width; i++) {
        for (k = i; k && s->place[pattern[sorted[k - 1]]] > s->place[pattern[i]]; k--) sorted[k] = sorted[k - 1];
        sorted[k] = i;
    }
    for (uint32_t i = 0; i < b->width; i++) s->place[values[i]] = NONE;
    for (uint32_t p = 0; p < s->n; p++) {
        for (uint32_t i = 0; i < b->width && order[p] == values[where]; i++) s->moved[n++] = values[sorted[i]];
        if (s->place[order[p]] != NONE) s->moved[n++] = order[p];
    }
    memcpy(order, s->moved, n * sizeof *order);
}

/* Makes moves (which put an operand's values side by side) as long as the cost of the values' order falls. Returns the cost. */
static uint64_t descend(const search *s, uint32_t *order) {
    uint64_t best = cost_of(s, order), before;
    do {
        before = best;
        for (uint32_t i = 0; i < s->n_batches; i++) {
            const vpps_layout_batch *b = &s->batches[i];
            const uint32_t n = b->n_operands, all = n; /* `all` instead of an operand's number o: moves every operand */
            const bool small = b->width <= MOST_WIDTH && n <= MOST_OPERANDS;
            for (uint32_t m = 0; small && m < n * b->width * (n + 1) && best; m++) {
                const uint32_t o = m % (n + 1), like = m / (n + 1) % n, where = m / (n + 1) / n;
                memcpy(s->trial, order, s->n * sizeof *order);
                for (uint32_t k = 0; k < n; k++)
                    if (o == k || o == all) move(s, b, k, like, where, s->trial);
                const uint64_t cost = cost_of(s, s->trial);
                if (cost >= best) continue;
                best = cost;
                memcpy(order, s->trial, s->n * sizeof *order);
            }
        }
    } while (best < before);
    return best;
}

bool vpps_plan_layout(uint32_t n, const vpps_layout_batch *batches, uint32_t n_batches, uint32_t n_forward,
                      const uint32_t *words, uint32_t *order) {
    uint32_t *memory = calloc(4 * (size_t)n + 1, sizeof *memory), *start = memory;
    if (!memory) return false;
    const search s = {
        n, n_batches, n_forward, batches, words, memory + n, memory + 2 * (size_t)n, memory + 3 * (size_t)n};
    uint64_t best = UINT64_MAX, random = 1;
    for (uint32_t i = 0; i < STARTS && best; i++) {
        for (uint32_t v = 0; v < n; v++) {
            const uint32_t k = i ? vpps_random_below(&random, v + 1) : v;
            start[v] = start[k];
            start[k] = v;
        }
        const uint64_t cost = descend(&s, start);
        if (cost < best) memcpy(order, start, n * sizeof *order);
        if (cost < best) best = cost;
    }
    free(memory);
    return true;
}

/* ---------------------------------------------------------------- a cell's batches */

typedef struct arranger {
    const vpps_compiled_cell *c;
    uint32_t *depth;    /* for each value: length of the longest chain of operations that ends with it */
    uint32_t *variable; /* for each value: number of the first value that is kept in the same place of memory */
    uint32_t *order, *words, *operands, *members, *place;
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

/* Finds values that share a place in memory: a value may take the place of an earlier one that is not read any more. */
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

static bool add_batch(arranger *a, const uint32_t *members, uint32_t width) {
    const uint32_t n_operands = 1 + a->c->values[members[0]].n_args, first = a->n_operands;
    if (!VPPS_RESERVE(a->operands, first + (size_t)n_operands * width) || !VPPS_RESERVE(a->batches, a->n_batches + 1u))
        return false;
    for (uint32_t o = 0; o < n_operands; o++) /* operand 0: the results; operand o > 0: argument o - 1 */
        for (uint32_t i = 0; i < width; i++)
            a->operands[a->n_operands++] =
                a->variable[o ? a->c->args[a->c->values[members[i]].first_arg + o - 1].value : members[i]];
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

static void count(const arranger *a, vpps_cell_copies *out) {
    const uint32_t n = a->c->n_values, n_backward = a->n_batches - a->n_forward;
    vpps_count_copies(n, a->order, a->batches, a->n_forward, a->words, a->place, &out->forward);
    vpps_count_copies(n, a->order, a->batches + a->n_forward, n_backward, a->words, a->place, &out->backward);
}

static bool arrange(arranger *a, vpps_cell_layout *out) {
    const vpps_compiled_cell *c = a->c;
    find_depths(a);
    find_variables(a);
    if (!list_batches(a)) return false;
    for (uint32_t v = 0; v < c->n_values; v++) a->order[v] = v;
    count(a, &out->as_made);
    if (!vpps_plan_layout(c->n_values, a->batches, a->n_batches, a->n_forward, a->words, a->order)) return false;
    count(a, &out->arranged);
    if (vpps_copied_words(&out->arranged) > vpps_copied_words(&out->as_made)) out->arranged = out->as_made;
    return true;
}

uint64_t vpps_copied_words(const vpps_cell_copies *x) { return copied_words(&x->forward) + copied_words(&x->backward); }

vpps_status vpps_arrange_cell(const vpps_compiled_cell *c, vpps_cell_layout *out) {
    const size_t n = c->n_values + (size_t)1;
    uint32_t *memory = calloc(6 * n, sizeof *memory);
    arranger a = {.c = c};
    bool ok = memory;
    if (ok) {
        a.depth = memory;
        a.variable = memory + n;
        a.order = memory + 2 * n;
        a.words = memory + 3 * n;
        a.members = memory + 4 * n;
        a.place = memory + 5 * n;
        ok = arrange(&a, out);
    }
    VPPS_FREE_ARRAYS(a.operands, a.batches);
    free(memory);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}
