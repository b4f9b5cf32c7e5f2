/* fragments.h - weights as operands of the tensor-core instruction mma (interp_templates/mma.cuh), where products are in bf16.
 *
 * The rows of a segment's products are grouped into tiles of eight rows. A tile has one fragment for each operand that its products
 * multiply: the eight rows of weights. The CTA's warps share a fragment's columns, 16 at a time. */
#pragma once

#include "codegen/segments.h"

enum { VPPS_FRAGMENT_ROWS = 8, VPPS_FRAGMENT_DEPTH = 16 };

/* One row of a product's result, counted within the rows that the VP owns. */
typedef struct vpps_product_row {
    uint32_t value, row; /* value: VPPS_NONE in rows that only fill up a tile */
} vpps_product_row;

typedef struct vpps_product_tile {
    vpps_product_row rows[VPPS_FRAGMENT_ROWS];
} vpps_product_tile;

/* One row of a matrix or of its transpose, counted within the rows that the VP owns. */
typedef struct vpps_weight_row {
    vpps_param matrix; /* VPPS_NO_PARAM: a row of zeros */
    uint32_t row;
    bool transposed;
} vpps_weight_row;

typedef struct vpps_fragment {
    vpps_weight_row rows[VPPS_FRAGMENT_ROWS];
    uint32_t length; /* number of columns */
    uint32_t steps;  /* number of 16-column blocks that each warp multiplies */
    uint8_t level;   /* where the fragment is stored: a vpps_resident_level */
    uint32_t at;     /* number of the first register, or shared-memory word, that a thread holds */
} vpps_fragment;

/* Returns the words of a fragment that each thread holds, if an operand is the sum of `parts` bf16 numbers. */
static inline uint32_t vpps_fragment_words(const vpps_fragment *f, uint32_t parts) { return f->steps * 2 * parts; }

/* Splits the rows of a segment's products into tiles, one product's rows after the other's. Sets *n to the number of
 * tiles. Returns an array for the caller to free, or NULL if out of memory. */
vpps_product_tile *vpps_tile_products(const vpps_segments *s, const vpps_segment *g, uint32_t *n);

/* Finds the fragment of weights by which a tile's products multiply `operand`. If a product multiplies the operand by
 * several matrices, `which` selects one. Returns false if no product has such a matrix. */
bool vpps_fragment_of(const vpps_compiled_cell *c, const vpps_product_tile *tile, uint32_t operand, uint32_t which,
                      uint32_t threads, vpps_fragment *out);

/* Returns whether a value's record is read only by products that are computed in tiles and by gradients of parameters. */
bool vpps_only_products_read(const vpps_compiled_cell *c, uint32_t v);

/* Returns whether both fragments consist of the same rows of weights. */
bool vpps_same_weights(const vpps_fragment *a, const vpps_fragment *b);
