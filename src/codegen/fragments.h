/* fragments.h - weights as operands of mma (interp_templates/mma.cuh), where products are in bf16.
 *
 * The products of a segment are dealt to tiles of eight rows. For each operand that a tile's products multiply there is a fragment: the
 * eight rows of weights, whose elements are shared out over the CTA's warps, 16 at a time. */
#pragma once

#include "codegen/segments.h"

enum { VPPS_FRAGMENT_ROWS = 8, VPPS_FRAGMENT_DEPTH = 16 };

/* A row of one of the products, numbered among those that the VP owns. */
typedef struct vpps_product_row {
    uint32_t value, row; /* VPPS_NONE: none, padding */
} vpps_product_row;

typedef struct vpps_product_tile {
    vpps_product_row rows[VPPS_FRAGMENT_ROWS];
} vpps_product_tile;

/* A row of a matrix, or of its transpose, numbered among those that the VP owns. */
typedef struct vpps_weight_row {
    vpps_param matrix; /* VPPS_NO_PARAM: zeros */
    uint32_t row;
    bool transposed;
} vpps_weight_row;

typedef struct vpps_fragment {
    vpps_weight_row rows[VPPS_FRAGMENT_ROWS];
    uint32_t length; /* of a row */
    uint32_t steps;  /* times 16 elements of it that a warp has */
    uint8_t level;   /* a vpps_resident_level */
    uint32_t at;     /* first register, or word of shared memory, of each thread */
} vpps_fragment;

/* Words of a thread, where an operand is the sum of so many bf16 numbers. */
static inline uint32_t vpps_fragment_words(const vpps_fragment *f, uint32_t parts) { return f->steps * 2 * parts; }

/* The tiles of a segment of products, one product's rows after the other's: the caller's, to be freed; NULL: out of memory. */
vpps_product_tile *vpps_tile_products(const vpps_segments *s, const vpps_segment *g, uint32_t *n);

/* The weights that a tile's products multiply an operand with; with several such matrices in a product, number `which` of them.
 * False: there are none. */
bool vpps_fragment_of(const vpps_compiled_cell *c, const vpps_product_tile *tile, uint32_t operand, uint32_t which,
                      uint32_t threads, vpps_fragment *out);

/* Does nobody read the value from the record but products, as tiles, and gradients of parameters? */
bool vpps_only_products_read(const vpps_compiled_cell *c, uint32_t v);

/* Have they the same weights? */
bool vpps_same_weights(const vpps_fragment *a, const vpps_fragment *b);
