/* generate_outer_strips.c - writes code for gradients of a cell's matrices in bf16: sums of dy x^T, for the CTA's rows and columns.
 *
 * A tile is eight rows of a gradient (as many as one mma instruction computes): eight elements of dy. A strip is some tiles with one x, for
 * all of the CTA's columns; several matrices may multiply one x, and then a strip can have tiles of all of them. One warp computes a block
 * of 32 columns of a strip. The blocks of all strips are numbered; a block's number is called its slot. Matrices with few rows ("low") have
 * strips of their own. */
#include "codegen/generate_outer.h"

enum {
    TILE = 8, /* rows of dy that one mma instruction multiplies */
    /* most tiles that a warp computes at once, times threads of a CTA; more tiles need too many registers */
    TILE_THREADS = 1536
};

/* Computes n gradients, sums of outer products dy x^T: numbers outers[0] to outers[n - 1]. A strip is `tiles` tiles
 * (eight rows of a gradient each) with one x. The blocks of 32 columns of all strips are numbered. `parts` warps, which
 * divide the vertices, compute a block; blocks first to end - 1 run at the same time. */
typedef struct strips {
    vpps_outer_work *w;
    const uint32_t *outers;
    uint32_t n, tiles, first, end, parts;
} strips;

/* A strip: some tiles (eight rows each) of gradients that are sums of dy v^T for one vector v. `x` is the number of the
 * first gradient with this v. The strip's tiles are first to end - 1 of those of all gradients with this v. Its blocks of
 * 32 columns are numbered slot to slot + slots - 1 among the blocks of all strips. */
typedef struct strip {
    uint32_t x, first, end, slot, slots;
} strip;

/* A tile: rows 8 * number to 8 * number + 7 of gradient number `outer`, a sum of outer products dy x^T. */
typedef struct row_tile {
    uint32_t outer, number;
} row_tile;

static vpps_outer outer_of(const strips *all, uint32_t i) { return vpps_outer_product_of(all->w->c, all->outers[i]); }

/* Returns whether gradients i and j (sums of products dy x^T) have the same x, and a CTA the same columns of both. */
static bool share_columns(const strips *all, uint32_t i, uint32_t j) {
    return vpps_same_value(outer_of(all, i).x, outer_of(all, j).x) &&
           vpps_outer_is_low(all->w, all->outers[i]) == vpps_outer_is_low(all->w, all->outers[j]);
}

/* Finds tile number k (each of eight rows) among the tiles of all gradients dy x^T that have the same vector x as
 * gradient number `x`, the first of them. Returns false if there are fewer tiles. */
static bool find_tile(const strips *all, uint32_t x, uint32_t k, row_tile *out) {
    for (uint32_t i = x; i < all->n; i++) {
        const uint32_t tiles = (vpps_outer_rows(all->w, all->outers[i]) + TILE - 1) / TILE;
        if (!share_columns(all, i, x)) continue;
        *out = (row_tile){i, k};
        if (k < tiles) return true;
        k -= tiles;
    }
    return false;
}

static uint32_t most_tiles(const strips *all) { return vpps_max_u32(1, TILE_THREADS / all->w->g->plan->threads); }

/* Sets s->x to the number of the next gradient dy x^T whose vector x no earlier one has. Returns false if none has. */
static bool next_x(const strips *all, strip *s) {
    bool seen = true;
    while (seen && ++s->x < all->n) {
        seen = false;
        for (uint32_t i = 0; i < s->x; i++) seen |= share_columns(all, i, s->x);
    }
    s->end = 0;
    return !seen;
}

/* Moves s to the next strip (rows of gradients dy x^T with one x) with all->tiles tiles of eight rows; {0} precedes the
 * first strip. Returns false after the last strip. */
static bool next_strip(const strips *all, strip *s) {
    row_tile t;
    s->slot += s->slots;
    do {
        if (!find_tile(all, s->x, s->end, &t) && !next_x(all, s)) return false;
        s->first = s->end;
        while (s->end < s->first + most_tiles(all) && find_tile(all, s->x, s->end, &t)) s->end++;
    } while (s->end - s->first != all->tiles);
    s->slots = vpps_outer_blocks(all->w, all->outers[s->x]);
    return true;
}

static bool is_among(const strips *all, const strip *s) {
    return s->slot < all->end && s->slot + s->slots > all->first;
}

/* Returns whether warps can run the same code for both strips (rows of gradients dy x^T with one x), except for x. */
static bool are_alike(const strips *all, const strip *a, const strip *b) {
    const vpps_operand *x = outer_of(all, a->x).x, *other_x = outer_of(all, b->x).x;
    if (x->rows != other_x->rows || vpps_is_kept_in_parts(all->w->g, all->w->c, x->value) !=
                                        vpps_is_kept_in_parts(all->w->g, all->w->c, other_x->value))
        return false;
    for (uint32_t k = 0; k < all->tiles; k++) {
        row_tile t, other;
        if (!find_tile(all, a->x, a->first + k, &t) || !find_tile(all, b->x, b->first + k, &other) ||
            !vpps_same_value(outer_of(all, t.outer).dy, outer_of(all, other.outer).dy) || t.number != other.number)
            return false;
    }
    return true;
}

/* Writes the C++ type of strip s (rows of gradients dy x^T with one x): x, its columns, and where the gradients lie. */
static void put_strip(const strips *all, const strip *s) {
    const vpps_outer_work *w = all->w;
    row_tile t;
    fprintf(w->out, ", vpps_strip<v%u, %u, %u", outer_of(all, s->x).x->value, s->slot, s->slots);
    for (uint32_t k = s->first; k < s->end && find_tile(all, s->x, k, &t); k++)
        fprintf(w->out, ", %u, %uu", w->g->matrix_at[outer_of(all, t.outer).param],
                vpps_outer_added_to(w, all->outers[t.outer]));
    fprintf(w->out, ">");
}

static void put_tiles(const strips *all, const strip *s) {
    row_tile t;
    fprintf(all->w->out, ",\nvpps_strips_alike<vpps_row_tiles<");
    for (uint32_t k = s->first; k < s->end && find_tile(all, s->x, k, &t); k++)
        fprintf(all->w->out, "%svpps_row_tile<v%u, %u>", k > s->first ? ", " : "", outer_of(all, t.outer).dy->value,
                t.number);
    fprintf(all->w->out, ">");
}

/* Strips (rows of gradients dy x^T with one x) that differ only in x share code. Writes it if s is the first. */
static void put_alike(const strips *all, const strip *s) {
    bool begun = false;
    for (strip a = {0}; next_strip(all, &a);) {
        if (!is_among(all, &a) || !are_alike(all, &a, s)) continue;
        if (!begun && a.slot != s->slot) return;
        if (!begun) put_tiles(all, s);
        begun = true;
        put_strip(all, &a);
    }
    fprintf(all->w->out, ">");
}

/* Writes code for blocks all->first to all->end - 1, each 32 columns of some rows of gradients. looped: the code is a
 * loop's body, and the rows of a turn follow those of the turn before by `tiles` times eight. */
static void put_sums(const strips *all, bool looped, uint32_t tiles) {
    enum { LANES = 32, SUMS = 8 /* SUMS: number of sums that a lane computes for a tile of eight rows */ };
    vpps_outer_work *w = all->w;
    const uint32_t busy = all->end - all->first;
    fprintf(w->out, "vpps_strip_sums<%u, %u, %u, %u, %u", all->tiles, all->first, busy, all->parts,
            outer_of(all, 0).x->axis);
    for (strip s = {0}; next_strip(all, &s);)
        if (is_among(all, &s)) put_alike(all, &s);
    fprintf(w->out, looped ? ">::run(*this, turn * %uu);\n" : ">::run(*this);\n", tiles * TILE);
    w->shared_words = vpps_max_u32(w->shared_words, (all->parts - 1) * busy * all->tiles * SUMS * LANES);
}

void vpps_generate_outer_strips(vpps_outer_work *w, const uint32_t *list, uint32_t n) {
    enum { LEAST_CALLS = 6 /* with fewer calls of put_sums no loop is written */ };
    const uint32_t warps = w->g->plan->threads / 32, blocks = vpps_outer_blocks(w, list[0]);
    strips all = {.w = w, .outers = list, .n = n};
    uint32_t calls = 1; /* fewest calls of put_sums (one block of columns per warp) that leave no row unfinished */
    while (calls * warps % blocks) calls++;
    for (all.tiles = most_tiles(&all); all.tiles; all.tiles--) {
        uint32_t slots = 0;
        for (strip s = {0}; next_strip(&all, &s);) slots = s.slot + s.slots;
        for (uint32_t first = 0; first < slots; first = all.end) {
            /* how often a loop runs the code, each time for the next rows of the only matrix; 1: no loop */
            uint32_t turns = n == 1 ? (slots - first) / (calls * warps) : 1;
            if (turns * calls < LEAST_CALLS) turns = 1;
            const bool looped = vpps_begin_turns(w->out, turns);
            for (uint32_t k = 0; k < (looped ? calls : 1); k++) {
                all.first = first + k * warps;
                all.end = vpps_min_u32(slots, all.first + warps);
                all.parts = warps / (all.end - all.first);
                put_sums(&all, looped, calls * warps / blocks * all.tiles);
            }
            if (!looped) continue;
            fprintf(w->out, "});\n");
            all.end = first + turns * calls * warps;
        }
    }
}
