/* generate_outer_tiles.c - gradients of a cell's matrices in fp32: sums of dy x^T, of the rows and columns that the VP has.
 *
 * Vectors come to shared memory some at a time, by asynchronous copies, while those before them are added up: columns of every x, and
 * the VP's rows of every dy, called slots. Eight, 16 or 32 lanes have a unit: columns of an x, four a lane, and some slots. With twelve
 * of them four loads bring what a thread needs for 48 multiply-adds. All vectors pass by once for as many units as a CTA has lanes for.
 */
#include "codegen/generate_outer.h"

#include <stdlib.h>

enum {
    MOST_UNITS = 256,
    MOST_SLOTS = 12, /* of a unit: a thread has four sums of each */
    AT_ONCE = 4,     /* vectors whose loads overlap. After the last, dy is zero: no loop is needed for what is left */
    MOST_VECTORS = 16,
    MOST_ROW_WORDS = VPPS_TILE_WORDS / (2 * AT_ONCE),
    WARP = 32,
    LEAST_LANES = 8,
    PASS_COST = 4 /* of bringing a vector and of waiting for it, in slots */
};

/* Outers are known by their numbers here; an x by that of its first outer, a list of slots by that of the first x that has it. */
typedef struct unit {
    uint32_t x, block; /* of the x's columns */
    uint32_t first, n; /* slots */
} unit;

typedef struct tiles {
    vpps_outer_work *w;
    const uint32_t *outers;
    uint32_t n;
    uint32_t lanes, at_once;                                       /* of a unit; units of a CTA */
    uint32_t x_of[VPPS_MOST_OUTERS], list_of[VPPS_MOST_OUTERS];    /* the latter of an x */
    uint32_t slot_of[VPPS_MOST_OUTERS], n_slots[VPPS_MOST_OUTERS]; /* an outer's first one; an x's */
    uint32_t slots;                                                /* of a unit */
    unit units[MOST_UNITS];
    uint32_t n_units;
} tiles;

/* Some units, and what they need of a vector: columns, and lists of slots. */
typedef struct pass {
    uint32_t first, end; /* units */
    uint32_t x[MOST_UNITS], block[MOST_UNITS], n_blocks;
    uint32_t lists[VPPS_MOST_OUTERS], list_at[VPPS_MOST_OUTERS], n_lists;
    uint32_t words, slots, vectors;
} pass;

static const vpps_cell_outer *outer_of(const tiles *t, uint32_t i) { return &t->w->c->outers[t->outers[i]]; }
static uint32_t length_of(const tiles *t, uint32_t i) { return t->w->c->values[outer_of(t, i)->x].rows; }
static uint32_t height_of(const tiles *t, uint32_t i) { return t->w->c->values[outer_of(t, i)->dy].rows; }
static uint32_t rows_of(const tiles *t, uint32_t i) { return vpps_outer_rows(t->w, t->outers[i]); }
static uint32_t columns_of(const tiles *t, uint32_t i) { return vpps_outer_columns(t->w, t->outers[i]); }

static uint32_t next_of_x(const tiles *t, uint32_t i) {
    const uint32_t x = t->x_of[i];
    for (i++; i < t->n && t->x_of[i] != x; i++) {}
    return i;
}

/* Are two xs multiplied with the same dys, in the same order? */
static bool same_slots(const tiles *t, uint32_t x, uint32_t y) {
    while (x < t->n && y < t->n) {
        if (outer_of(t, x)->dy != outer_of(t, y)->dy) return false;
        x = next_of_x(t, x), y = next_of_x(t, y);
    }
    return x == y;
}

static void find_slots(tiles *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        t->x_of[i] = 0;
        while (outer_of(t, t->x_of[i])->x != outer_of(t, i)->x) t->x_of[i]++;
        t->slot_of[i] = t->n_slots[t->x_of[i]];
        t->n_slots[t->x_of[i]] += rows_of(t, i);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->x_of[i] != i) continue;
        t->list_of[i] = 0;
        while (t->x_of[t->list_of[i]] != t->list_of[i] || !same_slots(t, t->list_of[i], i)) t->list_of[i]++;
    }
}

/* Words from the first slot of a list's to the end, a unit's slots beginning at a quad. */
static uint32_t list_words(const tiles *t, uint32_t list) {
    return (t->n_slots[list] + t->slots - 1) / t->slots * vpps_quads_up(t->slots);
}

/* Those with most slots first, so that one pass's are alike. */
static int by_slots(const void *a, const void *b) {
    const unit *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    if (x->x != y->x) return x->x > y->x ? 1 : -1;
    if (x->first != y->first) return x->first > y->first ? 1 : -1;
    return x->block > y->block ? 1 : -1;
}

/* With so many slots each. False: there would be too many. */
static bool find_units(tiles *t, uint32_t slots) {
    t->slots = slots;
    t->n_units = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->x_of[i] != i) continue;
        const uint32_t blocks = (columns_of(t, i) + 4 * t->lanes - 1) / (4 * t->lanes);
        for (uint32_t first = 0; first < t->n_slots[i]; first += slots) {
            for (uint32_t block = 0; block < blocks; block++) {
                if (t->n_units == MOST_UNITS) return false;
                t->units[t->n_units++] = (unit){i, block, first, vpps_min_u32(slots, t->n_slots[i] - first)};
            }
        }
    }
    qsort(t->units, t->n_units, sizeof *t->units, by_slots);
    return true;
}

static uint32_t block_in(const pass *p, const unit *u) {
    uint32_t b = 0;
    while (b < p->n_blocks && (p->x[b] != u->x || p->block[b] != u->block)) b++;
    return b;
}

static uint32_t list_in(const pass *p, uint32_t list) {
    uint32_t l = 0;
    while (l < p->n_lists && p->lists[l] != list) l++;
    return l;
}

/* As many units from p->first on as a CTA takes at once, and as a vector's words allow. False: not one. */
static bool fill(const tiles *t, pass *p) {
    *p = (pass){.first = p->first, .end = p->first, .slots = t->units[p->first].n};
    for (; p->end < t->n_units && p->end - p->first < t->at_once; p->end++) {
        const unit *u = &t->units[p->end];
        const uint32_t b = block_in(p, u), l = list_in(p, t->list_of[u->x]);
        const uint32_t more =
            (b == p->n_blocks ? 4 * t->lanes : 0) + (l == p->n_lists ? list_words(t, t->list_of[u->x]) : 0);
        if (p->words + more > MOST_ROW_WORDS) break;
        p->words += more;
        p->x[b] = u->x, p->block[b] = u->block;
        p->lists[l] = t->list_of[u->x];
        p->n_blocks += b == p->n_blocks;
        p->n_lists += l == p->n_lists;
    }
    for (p->vectors = MOST_VECTORS; 2 * p->vectors * p->words > VPPS_TILE_WORDS;) p->vectors /= 2;
    uint32_t at = p->n_blocks * 4 * t->lanes;
    for (uint32_t l = 0; l < p->n_lists; at += list_words(t, p->lists[l++])) p->list_at[l] = at;
    return p->end > p->first;
}

/* What a vector costs in all passes; UINT32_MAX: they cannot be. */
static uint32_t cost_of(tiles *t, uint32_t slots) {
    pass p = {0};
    uint32_t cost = 0;
    if (!find_units(t, slots)) return UINT32_MAX;
    for (; p.first < t->n_units; p.first = p.end) {
        if (!fill(t, &p)) return UINT32_MAX;
        cost += p.slots + PASS_COST;
    }
    return cost;
}

static bool lay_out(tiles *t) {
    uint32_t widest = 0, best = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < t->n; i++) {
        widest = vpps_max_u32(widest, columns_of(t, i));
        if (rows_of(t, i) > WARP) return false; /* a lane brings a slot */
    }
    for (t->lanes = LEAST_LANES; t->lanes < WARP && 4 * t->lanes < widest;) t->lanes *= 2;
    t->at_once = t->w->g->plan->threads / t->lanes;
    find_slots(t);
    for (uint32_t slots = 1; slots <= vpps_min_u32(MOST_SLOTS, t->lanes); slots++) {
        const uint32_t cost = cost_of(t, slots);
        if (cost <= least && cost < UINT32_MAX) least = cost, best = slots;
    }
    return best && find_units(t, best);
}

/* ---------------------------------------------------------------- text */

/* The x's columns of the vectors from `from` on: a unit's lanes a vector. */
static void put_columns(const tiles *t, const pass *p) {
    bool quads = true;
    for (uint32_t b = 0; b < p->n_blocks; b++) quads &= vpps_has_quads(&t->w->c->values[outer_of(t, p->x[b])->x]);
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        const uint32_t i = p->x[b], length = length_of(t, i), before = 4 * t->lanes * p->block[b];
        fprintf(t->w->out,
                "#pragma unroll 1\nfor (unsigned k = unit; k < there; k += %u)\nvpps_copy_columns<%s>(to + "
                "k * %u + "
                "%u, pool + (",
                t->at_once, quads ? "true" : "false", p->words, 4 * t->lanes * b);
        vpps_outer_vector(t->w, outer_of(t, i)->x, "vpps_least(from + k, n - 1)");
        fprintf(t->w->out, " + l%u.first + %u), lane * 4, l%u.end - l%u.first", length, before, length, length);
        if (before) fprintf(t->w->out, " - vpps_least(%u, l%u.end - l%u.first)", before, length, length);
        fprintf(t->w->out, ");\n");
    }
}

/* The VP's rows of a dy, the slots from `slot` on: a lane a row, by `n` warps from number `warp` on. */
static void put_rows(const tiles *t, const pass *p, uint32_t i, uint32_t slot, uint32_t warp, uint32_t n) {
    const uint32_t rows = rows_of(t, i), height = height_of(t, i), vectors = WARP / rows;
    fprintf(t->w->out,
            "if (VPPS_WARP - %u < %u && VPPS_LANE < %u) {\nconst unsigned row = VPPS_LANE %% %u;\n"
            "float *const slot = to + %u + (%u + row) / %u * %u + (%u + row) %% %u;\n#pragma unroll 1\n"
            "for (unsigned k = (VPPS_WARP - %u) * %u + VPPS_LANE / %u; k < there; k += %u)\n"
            "vpps_copy_word(slot + k * %u, pool + (",
            warp, n, vectors * rows, rows, slot, t->slot_of[i], t->slots, vpps_quads_up(t->slots), t->slot_of[i],
            t->slots, warp, vectors, rows, n * vectors, p->words);
    vpps_outer_vector(t->w, outer_of(t, i)->dy, "vpps_least(from + k, n - 1)");
    fprintf(t->w->out, " + m%u.first + row), row < m%u.end - m%u.first && from + k < n);\n}\n", height, height, height);
}

/* Warps share out the dys, and the vectors of one where there are more warps. */
static void put_slots(const tiles *t, const pass *p) {
    const uint32_t warps = t->w->g->plan->threads / WARP;
    uint32_t dys = 0, k = 0;
    for (uint32_t l = 0; l < p->n_lists; l++)
        for (uint32_t i = p->lists[l]; i < t->n; i = next_of_x(t, i)) dys++;
    const uint32_t share = dys && dys < warps ? warps / dys : 1;
    for (uint32_t l = 0; l < p->n_lists; l++)
        for (uint32_t i = p->lists[l]; i < t->n; i = next_of_x(t, i))
            put_rows(t, p, i, p->list_at[l], k++ * share % warps, share);
}

/* The outer that a slot of an x belongs to. */
static uint32_t outer_of_slot(const tiles *t, uint32_t x, uint32_t slot) {
    uint32_t i = x;
    while (slot >= t->slot_of[i] + rows_of(t, i)) i = next_of_x(t, i);
    return i;
}

/* A constant for every unit, or every slot of all of them, as `value` has it. */
static void put_table(const tiles *t, const pass *p, const char *name, uint32_t slots,
                      uint32_t (*value)(const tiles *t, const pass *p, const unit *u, uint32_t slot)) {
    fprintf(t->w->out, "static __constant__ const unsigned %s[] = {", name);
    for (uint32_t k = p->first; k < p->end; k++)
        for (uint32_t s = 0; s < slots; s++)
            fprintf(t->w->out, "%s%uu", k + s > p->first ? ", " : "", value(t, p, &t->units[k], s));
    fprintf(t->w->out, "};\n");
}

/* Of a unit: where its columns of an x and its slots begin in a staged vector, the x's length, and the VP's columns before these. */
static uint32_t x_at(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)slot;
    return 4 * t->lanes * block_in(p, u);
}
static uint32_t d_at(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)slot;
    return p->list_at[list_in(p, t->list_of[u->x])] + u->first / t->slots * vpps_quads_up(t->slots);
}
static uint32_t length(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)p, (void)slot;
    return length_of(t, u->x);
}
static uint32_t before(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)p, (void)slot;
    return 4 * t->lanes * u->block;
}

/* Of a slot: where its matrix's gradient begins; which of the VP's rows it is, of a matrix of so many, none of 0; and the parameter, to
 * whose gradient it is added if there is one, VPPS_NONE: in any case. */
static uint32_t matrix(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)p;
    return slot < u->n ? t->w->g->matrix_at[outer_of(t, outer_of_slot(t, u->x, u->first + slot))->param] : 0;
}
static uint32_t row(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)p;
    return slot < u->n ? u->first + slot - t->slot_of[outer_of_slot(t, u->x, u->first + slot)] : 0;
}
static uint32_t height(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)p;
    return slot < u->n ? height_of(t, outer_of_slot(t, u->x, u->first + slot)) : 0;
}
static uint32_t added_to(const tiles *t, const pass *p, const unit *u, uint32_t slot) {
    (void)p;
    if (slot >= u->n) return 0;
    const uint32_t i = outer_of_slot(t, u->x, u->first + slot);
    return vpps_outer_is_first(t->w->c, t->outers[i]) ? outer_of(t, i)->param : VPPS_NONE;
}

/* What the thread's unit is, and in lane s of its lanes where the gradients of its slot s begin. */
static void put_units(const tiles *t, const pass *p) {
    const uint32_t units = p->end - p->first;
    put_table(t, p, "xs", 1, x_at);
    put_table(t, p, "ds", 1, d_at);
    put_table(t, p, "lengths", 1, length);
    put_table(t, p, "befores", 1, before);
    put_table(t, p, "matrices", p->slots, matrix);
    put_table(t, p, "rows", p->slots, row);
    put_table(t, p, "heights", p->slots, height);
    put_table(t, p, "params", p->slots, added_to);
    fprintf(t->w->out,
            "const unsigned thread = vpps_thread(), unit = thread / %u, lane = thread %% %u;\nconst unsigned number = "
            "vpps_least(unit, %u), x_at = xs[number], d_at = ds[number];\nunsigned columns = 0, to_row = VPPS_NONE;\n"
            "bool add = false;\nif (unit < %u) {\nconst vpps_rows l = vpps_matrix_columns(lengths[unit], vp);\ncolumns "
            "= l.end - l.first;\ncolumns -= vpps_least(columns, befores[unit]);\n",
            t->lanes, t->lanes, units - 1, units);
    fprintf(t->w->out,
            "if (lane < %u) {\nconst unsigned s = unit * %u + lane;\nconst vpps_rows m = vpps_matrix_rows(heights[s], "
            "vp);\nif (rows[s] < m.end - m.first) {\nto_row = matrices[s] + (m.first + rows[s]) * lengths[unit] + "
            "l.first + befores[unit];\nadd = params[s] == VPPS_NONE || vpps_touched[params[s]];\n}\n}\n}\n",
            p->slots, p->slots);
}

/* The vectors' gradients are made while the first copies go on. */
static void put_pass(const tiles *t, const pass *p) {
    FILE *out = t->w->out;
    const bool vectors = t->w->vectors_due;
    bool quads = true;
    for (uint32_t k = p->first; k < p->end; k++) quads &= length_of(t, t->units[k].x) % 4 == 0;
    fprintf(out, "{\n");
    put_units(t, p);
    fprintf(
        out,
        "float q[%u];\n#pragma unroll\nfor (int k = 0; k < %u; k++) q[k] = 0.0f;\nunsigned i = 0, from = 0, ready = "
        "0;\n%s#pragma unroll 1\nfor (unsigned turn = 0;; turn ^= 1) "
        "{\nvpps_wait_for_copies();\n__syncthreads();\nconst "
        "bool more = i < n_tasks;\nunsigned coming = 0;\nif (more) {\nconst vpps_task t = tasks[i];\n",
        4 * p->slots, 4 * p->slots, vectors ? "bool first = true;\n" : "");
    vpps_outer_vectors(t->w, outer_of(t, 0)->dy);
    fprintf(out,
            "coming = vpps_least(n - from, %u);\nconst unsigned there = (coming + %d) / %d * %d;\nfloat *const to = "
            "staged + "
            "turn * %u;\n",
            p->vectors, AT_ONCE - 1, AT_ONCE, AT_ONCE, p->vectors * p->words);
    put_columns(t, p);
    put_slots(t, p);
    fprintf(out, "from += %u;\nif (from >= n) from = 0, i++;\n}\n", p->vectors);
    if (vectors) {
        fprintf(out, "if (first) {\n");
        vpps_outer_sum_vectors(t->w);
        fprintf(out, "}\nfirst = false;\n");
    }
    fprintf(
        out,
        "if (ready) vpps_add_outers<%u, %u, %d>(staged + (turn ^ 1) * %u, x_at + lane * 4, d_at, ready, q);\nif "
        "(!more) break;\nready = coming;\n}\nvpps_store_slots<%u, %u, %s>((float *)a.gradients, to_row, add, lane * "
        "4, columns, q);\n}\n",
        p->slots, p->words, AT_ONCE, p->vectors * p->words, p->slots, t->lanes, quads ? "true" : "false");
}

bool vpps_generate_outer_tiles(vpps_outer_work *w, const uint32_t *list, uint32_t n) {
    tiles t = {.w = w, .outers = list, .n = n};
    if (!lay_out(&t)) return false;
    fprintf(w->out, "{\n");
    for (pass p = {0}; p.first < t.n_units; p.first = p.end) {
        fill(&t, &p);
        put_pass(&t, &p);
        w->shared_words = vpps_max_u32(w->shared_words, 2 * p.vectors * p.words);
    }
    fprintf(w->out, "__syncthreads();\n}\n");
    return true;
}
