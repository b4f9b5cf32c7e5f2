/* fragments.c - groups weights into operands of the tensor-core instruction mma. */
#include "codegen/fragments.h"

static const vpps_product_row no_row = {VPPS_NONE, 0};

vpps_product_tile *vpps_tile_products(const vpps_segments *s, const vpps_segment *g, uint32_t *n) {
    uint32_t rows = 0, at = 0;
    for (uint32_t k = 0; k < g->n; k++) rows += vpps_segment_width(s, s->steps[g->first + k].value);
    *n = (rows + VPPS_FRAGMENT_ROWS - 1) / VPPS_FRAGMENT_ROWS;
    vpps_product_tile *tiles = malloc((*n + 1u) * sizeof *tiles);
    if (!tiles) return NULL;
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t v = s->steps[g->first + k].value, width = vpps_segment_width(s, v);
        for (uint32_t row = 0; row < width; row++, at++)
            tiles[at / VPPS_FRAGMENT_ROWS].rows[at % VPPS_FRAGMENT_ROWS] = (vpps_product_row){v, row};
    }
    for (; at < *n * VPPS_FRAGMENT_ROWS; at++) tiles[at / VPPS_FRAGMENT_ROWS].rows[at % VPPS_FRAGMENT_ROWS] = no_row;
    return tiles;
}

bool vpps_fragment_of(const vpps_compiled_cell *c, const vpps_product_tile *tile, uint32_t operand, uint32_t which,
                      uint32_t threads, vpps_fragment *out) {
    enum { WARP = 32 };
    bool any = false;
    *out = (vpps_fragment){.length = c->values[operand].rows};
    const uint32_t all = (out->length + VPPS_FRAGMENT_DEPTH - 1) / VPPS_FRAGMENT_DEPTH, warps = threads / WARP;
    out->steps = (all + warps - 1) / warps;
    for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS; i++) {
        out->rows[i] = (vpps_weight_row){.matrix = VPPS_NO_PARAM};
        if (tile->rows[i].value == VPPS_NONE) continue;
        const vpps_cell_value *x = &c->values[tile->rows[i].value];
        uint32_t found = 0;
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = &c->args[x->first_arg + k];
            if (a->matrix == VPPS_NO_PARAM || a->value != operand || found++ != which) continue;
            out->rows[i] = (vpps_weight_row){a->matrix, tile->rows[i].row, x->kind == VPPS_VALUE_PRODUCT_T};
            any = true;
        }
    }
    return any;
}

/* Returns whether the computation of value `reader` reads v from memory other than by products whose rows are dealt to VPs. */
static bool reads_whole(const vpps_compiled_cell *c, const vpps_cell_value *reader, uint32_t v) {
    const bool product = vpps_is_product(reader) && c->stages[reader->stage].split == VPPS_SPLIT_ROWS;
    bool reads = false;
    for (uint32_t i = 0; i < reader->n_args && reader->stage != c->values[v].stage; i++) {
        const vpps_cell_arg *a = &c->args[reader->first_arg + i];
        reads |= a->value == v && (!product || a->matrix == VPPS_NO_PARAM);
    }
    return reads;
}

bool vpps_only_products_read(const vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_value *x = &c->values[v];
    bool kept = x->kept && x->cols == 1 && !vpps_makes_shares(x), multiplied = false;
    for (uint32_t k = 0; k < c->n_outputs && kept; k++) kept = c->outputs[k].value != v && c->gradient_of[k] != v;
    for (uint32_t i = 0; i < c->n_values && kept; i++) kept = !reads_whole(c, &c->values[i], v);
    for (uint32_t i = 0; i < vpps_n_outers(c) && kept; i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (!o.x || (o.x->value != v && o.dy->value != v)) continue;
        const vpps_operand *other = o.x->value == v ? o.dy : o.x;
        kept = other->cols == 1 && other->axis == x->axis;
        multiplied = true;
    }
    return kept && multiplied;
}

bool vpps_same_weights(const vpps_fragment *a, const vpps_fragment *b) {
    bool same = a->length == b->length;
    for (uint32_t i = 0; i < VPPS_FRAGMENT_ROWS && same; i++) {
        const vpps_weight_row *x = &a->rows[i], *y = &b->rows[i];
        same = x->matrix == y->matrix && x->row == y->row && x->transposed == y->transposed;
    }
    return same;
}
