/* generate_outer_tiles.c - writes code for gradients of a cell's matrices in fp32: sums of dy x^T, for the CTA's rows and columns.
 *
 * A CTA copies its columns of every vector x and its rows of every vector dy to shared memory, a few vertices at a time, while it adds the
 * products of the preceding vertices. A unit of work is four columns of one x per lane, for eight, 16 or 32 lanes, times up to twelve rows
 * of dy (slots): four loads provide a thread's operands for 48 multiply-adds. A pass reads all vectors once, for as many units as a CTA has
 * lanes for. If there are lanes for several times the units, as many "parts" of the CTA divide the vectors, and add up their sums. */
#include "codegen/generate_outer.h"

enum {
    MOST_UNITS = 256,
    MOST_SLOTS = 12, /* most rows of gradients in a unit of work; a thread computes four columns of each */
    /* Number of vectors that are loaded at the same time. Vectors after the last one have dy = 0, so no loop is needed for a remainder. */
    AT_ONCE = 4,
    MOST_PARTS = 16,
    MOST_VECTORS = 64,
    LEAST_TURNS = 4, /* with fewer passes over all vectors no loop is written */
    MOST_ROW_WORDS = VPPS_TILE_WORDS / (2 * AT_ONCE),
    WARP = 32,
    LEAST_LANES = 8,
    MULTIPLY_COST = 64,            /* cost of a multiply-add; the other costs are relative to it (cost_of) */
    LOAD_COST = 6 * MULTIPLY_COST, /* cost of a load of four words from shared memory */
    PART_COST = MULTIPLY_COST,     /* cost per vertex of each of several groups of threads that have their own sums */
    COPY_COST = 24 * MULTIPLY_COST /* cost of copying and awaiting a vector */
};

/* A unit of work: some columns of some rows of gradients, sums of outer products dy x^T. Rows of all gradients with one
 * x are numbered together (as slots), so that a unit can have rows of several gradients. */
typedef struct unit {
    uint32_t x;        /* index of a gradient dy x^T, the first of those with its vector x */
    uint32_t block;    /* index of a block of 4 * lanes columns of these gradients */
    uint32_t first, n; /* the unit's rows: first to first + n - 1 of the rows of all gradients with this x */
} unit;

typedef struct tiles {
    vpps_outer_work *w;
    const uint32_t *outers;
    uint32_t n;
    uint32_t lanes, at_once; /* lanes that compute a unit of work (some rows and columns of gradients); units at once */
    /* x_of[i]: number of the first gradient dy x^T with the same x as gradient i. list_of[i], if i is the first with its x: least j that is
     * the first with its x, too, and whose x is multiplied with the same vectors dy as i's. */
    uint32_t x_of[VPPS_MOST_OUTERS], list_of[VPPS_MOST_OUTERS];
    /* Rows of all gradients with one x are numbered together. slot_of[i]: gradient i's first row; n_slots[x_of[i]]: number of rows. */
    uint32_t slot_of[VPPS_MOST_OUTERS], n_slots[VPPS_MOST_OUTERS];
    uint32_t slots; /* most rows of gradients in a unit of work */
    unit units[MOST_UNITS];
    uint32_t n_units;
} tiles;

/* A pass reads the vectors dy and x of all vertices once and computes some rows and columns of gradients dy x^T. It
 * needs n_blocks blocks of elements of vectors x, and n_lists lists; a list: the dy of all gradients with one x. */
typedef struct pass {
    uint32_t first, end; /* the pass computes units (blocks of rows and columns of gradients) first to end - 1 */
    uint32_t x[MOST_UNITS], block[MOST_UNITS], n_blocks;
    uint32_t lists[VPPS_MOST_OUTERS], list_at[VPPS_MOST_OUTERS], n_lists;
    uint32_t words, slots, vectors;
    uint32_t parts;     /* number of parts of the CTA's threads; each part sums up products of some of the vertices */
    uint32_t sum_words; /* words of shared memory to add up the sums of all parts of the CTA's threads; 0: one part */
} pass;

static vpps_outer outer_of(const tiles *t, uint32_t i) { return vpps_outer_product_of(t->w->c, t->outers[i]); }
static uint32_t length_of(const tiles *t, uint32_t i) { return outer_of(t, i).x->rows; }
static uint32_t rows_of(const tiles *t, uint32_t i) { return vpps_outer_rows(t->w, t->outers[i]); }
static uint32_t next_of_x(const tiles *t, uint32_t i) {
    const uint32_t x = t->x_of[i];
    for (i++; i < t->n && t->x_of[i] != x; i++) {}
    return i;
}

/* A matrix's gradient is a sum of products dy x^T of two vectors. Returns whether the gradients with the same vector x as gradient a have, one by one,
 * the same dy as the gradients with the same vector x as gradient b. */
static bool same_slots(const tiles *t, uint32_t a, uint32_t b) {
    while (a < t->n && b < t->n) {
        if (!vpps_same_value(outer_of(t, a).dy, outer_of(t, b).dy)) return false;
        a = next_of_x(t, a), b = next_of_x(t, b);
    }
    return a == b;
}

static void find_slots(tiles *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        t->x_of[i] = 0;
        while (!vpps_same_value(outer_of(t, t->x_of[i]).x, outer_of(t, i).x)) t->x_of[i]++;
        t->slot_of[i] = t->n_slots[t->x_of[i]];
        t->n_slots[t->x_of[i]] += rows_of(t, i);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->x_of[i] != i) continue;
        t->list_of[i] = 0;
        while (t->x_of[t->list_of[i]] != t->list_of[i] || !same_slots(t, t->list_of[i], i)) t->list_of[i]++;
    }
}

/* A list holds the elements of all vectors dy that are multiplied with one vector x. Returns the words of shared memory
 * that a list takes per vertex: the elements are cut into groups of t->slots, each padded to a multiple of four. */
static uint32_t list_words(const tiles *t, uint32_t list) {
    return (t->n_slots[list] + t->slots - 1) / t->slots * vpps_quads_up(t->slots);
}

/* Orders units of work (rows and columns of gradients) for qsort: most rows first, so that a pass has similar units. */
static int by_slots(const void *a, const void *b) {
    const unit *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    if (x->x != y->x) return x->x > y->x ? 1 : -1;
    if (x->first != y->first) return x->first > y->first ? 1 : -1;
    return x->block > y->block ? 1 : -1;
}

/* Lists the units of work: some columns of at most `slots` rows of gradients. Returns false if there are too many. */
static bool find_units(tiles *t, uint32_t slots) {
    t->slots = slots;
    t->n_units = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->x_of[i] != i) continue;
        const uint32_t own = vpps_outer_blocks(t->w, t->outers[i]) * VPPS_OUTER_COLUMNS;
        const uint32_t blocks = (vpps_min_u32(length_of(t, i), own) + 4 * t->lanes - 1) / (4 * t->lanes);
        for (uint32_t first = 0; first < t->n_slots[i]; first += slots)
            for (uint32_t block = 0; block < blocks; block++) {
                if (t->n_units == MOST_UNITS) return false;
                t->units[t->n_units++] = (unit){i, block, first, vpps_min_u32(slots, t->n_slots[i] - first)};
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

/* Fills a pass (one reading of all vectors) with units of work from number p->first on, as many as lanes and memory
 * allow. Also uses shared memory (staged_words) that weights left for registers earlier. False: no unit fits. */
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
    if (p->end == p->first) return false;
    const uint32_t sum_words = (p->end - p->first) * t->lanes * 4 * p->slots;
    p->parts = vpps_min_u32(t->at_once / (p->end - p->first), MOST_PARTS);
    if (sum_words + 2 * AT_ONCE * p->words > VPPS_TILE_WORDS) p->parts = 1;
    p->sum_words = p->parts > 1 ? sum_words : 0;
    const uint32_t room = VPPS_TILE_WORDS + t->w->g->plan->staged_words - p->sum_words;
    p->vectors = vpps_min_u32(room / (2 * p->words), MOST_VECTORS) / AT_ONCE * AT_ONCE;
    uint32_t at = p->n_blocks * 4 * t->lanes;
    for (uint32_t l = 0; l < p->n_lists; at += list_words(t, p->lists[l++])) p->list_at[l] = at;
    return true;
}

static void set_lanes(tiles *t, uint32_t lanes) {
    t->lanes = lanes;
    t->at_once = t->w->g->plan->threads / lanes;
}

/* Returns the cost of adding one vertex to all gradients (sums of dy x^T) if a unit of work (some columns of some rows,
 * for a few lanes) has at most `slots` rows; UINT32_MAX: impossible. */
static uint32_t cost_of(tiles *t, uint32_t slots) {
    pass p = {0};
    uint32_t cost = 0;
    if (!find_units(t, slots)) return UINT32_MAX;
    for (; p.first < t->n_units; p.first = p.end) {
        if (!fill(t, &p)) return UINT32_MAX;
        cost += (4 * p.slots * MULTIPLY_COST + (1 + (p.slots + 3) / 4) * LOAD_COST) / p.parts + p.parts * PART_COST +
                COPY_COST;
    }
    return cost;
}

/* A unit of work is some columns of some rows of gradients. Chooses the number of lanes that compute a unit, and the
 * most rows of a unit. Returns false if each choice needs too many units or too much shared memory. */
static bool lay_out(tiles *t) {
    uint32_t best_lanes = 0, best = 0, least = UINT32_MAX;
    find_slots(t);
    for (uint32_t lanes = LEAST_LANES; lanes <= WARP; lanes *= 2) {
        set_lanes(t, lanes);
        for (uint32_t slots = 1; slots <= vpps_min_u32(MOST_SLOTS, lanes); slots++) {
            const uint32_t cost = cost_of(t, slots);
            if (cost <= least && cost < UINT32_MAX) least = cost, best = slots, best_lanes = lanes;
        }
    }
    if (!best) return false;
    set_lanes(t, best_lanes);
    return find_units(t, best);
}

/* ---------------------------------------------------------------- text */

/* Writes C++ types, each of which copies rows of one vector dy to shared memory: 32 or fewer of the rows that the CTA
 * owns, or all of them if they are more than its threads. With fewer warps than types, a warp runs several types; with
 * more, several warps run one type, each for some of the vertices. */
static void put_rows(const tiles *t, const pass *p) {
    const uint32_t threads = t->w->g->plan->threads, warps = threads / WARP;
    uint32_t dys = 0, k = 0;
    for (uint32_t l = 0; l < p->n_lists; l++)
        for (uint32_t i = p->lists[l]; i < t->n; i = next_of_x(t, i)) dys += (rows_of(t, i) + WARP - 1) / WARP;
    const uint32_t share = dys && dys < warps ? warps / dys : 1;
    for (uint32_t l = 0; l < p->n_lists; l++)
        for (uint32_t i = p->lists[l]; i < t->n; i = next_of_x(t, i))
            for (uint32_t base = 0, n; base < rows_of(t, i); base += n) {
                n = rows_of(t, i) > threads ? rows_of(t, i) : vpps_min_u32(WARP, rows_of(t, i) - base);
                fprintf(t->w->out, ",\nvpps_staged_rows<v%u, %u, %u, %u, %u, %u, %u, %u>", outer_of(t, i).dy->value, n,
                        p->list_at[l], t->slot_of[i], t->slots, k++ * share % warps, share, base);
            }
}

/* Rows of all gradients (sums of dy x^T) with one x are numbered. Returns which of these gradients has row `slot`. */
static uint32_t outer_of_slot(const tiles *t, uint32_t x, uint32_t slot) {
    uint32_t i = x;
    while (slot >= t->slot_of[i] + rows_of(t, i)) i = next_of_x(t, i);
    return i;
}

/* Writes two tables. `units`: for each unit of work (some columns of some rows of gradients dy x^T), where its elements
 * of x and dy lie in shared memory. `slots`: for each row of each unit, which row of which gradient it is. `slots` lies
 * in device memory, as it may exceed the 64 KiB of constant memory. */
static void put_units(const tiles *t, const pass *p, uint32_t turns) {
    FILE *out = t->w->out;
    const uint32_t end = p->first + turns * (p->end - p->first);
    fprintf(out, "static __constant__ const vpps_unit units[] = {");
    for (uint32_t k = p->first; k < end; k++) {
        const unit *u = &t->units[k];
        const uint32_t d_at = p->list_at[list_in(p, t->list_of[u->x])] + u->first / t->slots * vpps_quads_up(t->slots);
        fprintf(out, "{%u, %u, %u, %u}, ", 4 * t->lanes * block_in(p, u), d_at, length_of(t, u->x),
                4 * t->lanes * u->block);
    }
    fprintf(out, "};\nstatic __device__ const vpps_unit_slot slots[] = {");
    for (uint32_t k = p->first * p->slots; k < end * p->slots; k++) {
        const unit *u = &t->units[k / p->slots];
        const uint32_t slot = u->first + k % p->slots;
        if (k % p->slots >= u->n) {
            fprintf(out, "{0, 0, 0, 0}, ");
            continue;
        }
        const uint32_t i = outer_of_slot(t, u->x, slot);
        fprintf(out, "{%uu, %u, %u, %uu}, ", t->w->g->matrix_at[outer_of(t, i).param], slot - t->slot_of[i],
                outer_of(t, i).dy->rows, vpps_outer_added_to(t->w, t->outers[i]));
    }
    fprintf(out, "};\n");
}

/* Writes the code of `turns` passes, of which p is the first; each reads all vectors dy and x once. The first pass of all also computes the
 * gradients of vector parameters, while the first vectors dy and x are copied to shared memory. */
static void put_pass(const tiles *t, const pass *p, uint32_t turns) {
    const uint32_t n = p->end - p->first;
    bool quads = true;
    for (uint32_t k = p->first; k < p->end; k++) quads &= length_of(t, t->units[k].x) % 4 == 0;
    fprintf(t->w->out, "{\n");
    put_units(t, p, turns);
    const bool looped = vpps_begin_turns(t->w->out, turns);
    fprintf(t->w->out, "vpps_unit_sums<%u, %u, %u, %u, %d, %u, %s, %s, %u", p->slots, t->lanes, p->words, p->vectors,
            AT_ONCE, p->parts, vpps_truth(quads), vpps_truth(t->w->vectors_due), outer_of(t, 0).dy->axis);
    t->w->vectors_due = false;
    for (uint32_t b = 0; b < p->n_blocks; b++)
        fprintf(t->w->out, ",\nvpps_staged_columns<v%u, %u, %u>", outer_of(t, p->x[b]).x->value,
                4 * t->lanes * p->block[b], 4 * t->lanes * b);
    put_rows(t, p);
    fprintf(t->w->out,
            looped ? ">::run<%u>(*this, units + turn * %uu, slots + turn * %uu);\n});\n}\n"
                   : ">::run<%u>(*this, units, slots);\n}\n",
            n, n, n * p->slots);
}

bool vpps_generate_outer_tiles(vpps_outer_work *w, const uint32_t *list, uint32_t n) {
    tiles t = {.w = w, .outers = list, .n = n};
    if (!lay_out(&t)) return false;
    for (pass p = {0}; p.first < t.n_units;) {
        fill(&t, &p);
        /* whether there is one gradient, and the next pass computes other rows of the same columns: one loop runs both */
        const bool alike =
            n == 1 && !w->vectors_due && p.end < t.n_units && t.units[p.first].block == t.units[p.end].block;
        const uint32_t units = p.end - p.first, passes = alike ? (t.n_units - p.first) / units : 1,
                       turns = passes < LEAST_TURNS ? 1 : passes;
        put_pass(&t, &p, turns);
        p.first += turns * units;
        w->shared_words = vpps_max_u32(w->shared_words, 2 * p.vectors * p.words + p.sum_words);
    }
    fprintf(w->out, "__syncthreads();\n");
    return true;
}
