/* fragments.c - divides weights into fragments: the operands (eight rows by 16 columns) of the tensor-core instruction mma. */
#include "codegen/fragments.h"

vpps_product_tile *vpps_tile_products(const vpps_segments *s, const vpps_segment *g, uint32_t *n) {
    enum { MOST = 4 /* only products with more tiles (eight rows each) are tall */ };
    uint32_t rows = 0, at = 0;
    for (uint32_t k = 0; k < g->n; k++) rows += vpps_segment_width(s, s->steps[g->first + k].value);
    *n = (rows + VPPS_FRAGMENT_ROWS - 1) / VPPS_FRAGMENT_ROWS;
    vpps_product_tile *tiles = calloc(*n + 1u, sizeof *tiles);
    if (!tiles) return NULL;
    const bool few = s->c->needs.recurrent_in && vpps_by_levels(s->c->stages[s->stage].pass); /* a level's vertices */
    const bool tall = !few && g->n == 1 && s->steps[g->first].step->n == 1 && rows > MOST * VPPS_FRAGMENT_ROWS;
    for (uint32_t t = 0; t < *n; t++) tiles[t].tall = tall, tiles[t].by_levels = few;
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_program_step *product = s->steps[g->first + k].step;
        const uint32_t width = vpps_segment_width(s, product->to.value);
        for (uint32_t row = 0; row < width; row++, at++)
            tiles[at / VPPS_FRAGMENT_ROWS].rows[at % VPPS_FRAGMENT_ROWS] = (vpps_product_row){product, row};
    }
    return tiles;
}

bool vpps_fragment_of(const vpps_program *p, const vpps_product_tile *tile, uint32_t operand, uint32_t which,
                      uint32_t threads, vpps_fragment *out) {
    enum { WARP = 32 };
    bool any = false;
    *out = (vpps_fragment){.tall = tile->tall, .by_levels = tile->by_levels};
    for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS; i++) {
        out->rows[i] = (vpps_weight_row){.matrix = VPPS_NO_PARAM};
        const vpps_program_step *x = tile->rows[i].product;
        uint32_t found = 0;
        for (uint32_t k = 0; x && k < x->n; k++) {
            const vpps_operand *a = &p->operands[x->first + k];
            if (a->value != operand || found++ != which) continue;
            out->rows[i] = (vpps_weight_row){a->matrix, tile->rows[i].row, x->product.transposed};
            out->shares = x->product.shares;
            out->length = a->rows / out->shares;
            any = true;
        }
    }
    const uint32_t all = (out->length + VPPS_FRAGMENT_DEPTH - 1) / VPPS_FRAGMENT_DEPTH, warps = threads / WARP;
    out->steps = (all + warps - 1) / warps;
    return any;
}

bool vpps_same_weights(const vpps_fragment *a, const vpps_fragment *b) {
    bool same = a->length == b->length && a->tall == b->tall && a->shares == b->shares;
    for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS && same; i++) {
        const vpps_weight_row *x = &a->rows[i], *y = &b->rows[i];
        same = x->matrix == y->matrix && x->row == y->row && x->transposed == y->transposed;
    }
    return same;
}
