/* generate_outer_strips.c - writes code for gradients of a cell's matrices in bf16: sums of dy x^T, for the CTA's rows and columns.
 *
 * A warp multiplies a block of an x's columns with several tiles of eight rows, from all dys that are multiplied with this x; low matrices (with few
 * rows) have separate tiles. A "strip" consists of these tiles and all of the CTA's blocks of columns. Each block of a strip needs a warp; a strip's
 * blocks are called its slots. */
#include "codegen/generate_outer.h"

enum {
    TILE = 8,           /* rows of dy that one mma instruction multiplies */
    TILE_THREADS = 1536 /* most tiles at a time, times threads of a CTA; more would need too many registers */
};

/* Strips (sets of tiles) of equally many tiles. outers: numbers of the steps OUTER (sums of dy x^T) whose gradients the strips make. tiles: number of
 * tiles of each strip. [first, end): slots, which are blocks of columns, that the CTA's warps compute at the same time. parts: number of warps that
 * divide the vectors of one slot among them. */
typedef struct strips {
    vpps_outer_work *w;
    const uint32_t *outers;
    uint32_t n, tiles, first, end, parts;
} strips;

/* A strip: tiles first to end - 1 (eight rows of dy each) of all tiles that are multiplied with one vector x; `x` is the number of the first sum dy
 * x^T with this x. The strip's blocks of columns are slots slot to slot + slots - 1 of the warps. */
typedef struct strip {
    uint32_t x, first, end, slot, slots;
} strip;

/* A tile: eight rows of the gradient that an outer (a sum of dy x^T) adds to. */
typedef struct row_tile {
    uint32_t outer, number;
} row_tile;

static vpps_outer outer_of(const strips *all, uint32_t i) { return vpps_outer_product_of(all->w->c, all->outers[i]); }

/* Returns whether the tiles (rows of dy) of sums dy x^T number i and j are multiplied with the same columns of one x. */
static bool share_columns(const strips *all, uint32_t i, uint32_t j) {
    return vpps_same_value(outer_of(all, i).x, outer_of(all, j).x) &&
           vpps_outer_is_low(all->w, all->outers[i]) == vpps_outer_is_low(all->w, all->outers[j]);
}

/* Several sums dy x^T may have the same x; `x` is the number of the first of these sums. Finds tile (eight rows of dy) number k of all tiles that are
 * multiplied with this x. Returns false if there are fewer tiles. */
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

/* Moves the strip to the next x of the sums dy x^T. Returns false after the last x. */
static bool next_x(const strips *all, strip *s) {
    bool seen = true;
    while (seen && ++s->x < all->n) {
        seen = false;
        for (uint32_t i = 0; i < s->x; i++) seen |= share_columns(all, i, s->x);
    }
    s->end = 0;
    return !seen;
}

/* Moves s to the next strip that has all->tiles tiles; {0} precedes the first strip. Returns false after the last strip. */
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

/* Returns whether warps of both strips (tiles that are multiplied with one x) can run the same code, except for the address of x. */
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

/* Writes the C++ type of a strip, which tells where its tiles' gradients lie. */
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

/* If s is the first of the strips that run the same code, writes code for all of them; otherwise writes nothing. */
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

static void put_sums(const strips *all) {
    enum { LANES = 32, SUMS = 8 /* SUMS: number of sums that a lane computes for a tile of eight rows */ };
    vpps_outer_work *w = all->w;
    const uint32_t busy = all->end - all->first;
    fprintf(w->out, "vpps_strip_sums<%u, %u, %u, %u, %u", all->tiles, all->first, busy, all->parts,
            outer_of(all, 0).x->axis);
    for (strip s = {0}; next_strip(all, &s);)
        if (is_among(all, &s)) put_alike(all, &s);
    fprintf(w->out, ">::run(*this);\n");
    w->shared_words = vpps_max_u32(w->shared_words, (all->parts - 1) * busy * all->tiles * SUMS * LANES);
}

/* Writes code for strips, which are sets of tiles (eight rows of dy each) multiplied with one x. Strips of equally many tiles run at the same time,
 * so that warps have equal work. */
void vpps_generate_outer_strips(vpps_outer_work *w, const uint32_t *list, uint32_t n) {
    const uint32_t warps = w->g->plan->threads / 32;
    strips all = {.w = w, .outers = list, .n = n};
    for (all.tiles = most_tiles(&all); all.tiles; all.tiles--) {
        uint32_t slots = 0;
        for (strip s = {0}; next_strip(&all, &s);) slots = s.slot + s.slots;
        for (all.first = 0; all.first < slots; all.first = all.end) {
            all.end = vpps_min_u32(slots, all.first + warps);
            all.parts = warps / (all.end - all.first);
            put_sums(&all);
        }
    }
}
