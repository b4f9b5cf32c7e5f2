/* fragments.h - fragments: eight rows of bf16 weights, in the order in which the tensor-core instruction mma multiplies
 * them, 16 columns at a time. The CTA's warps divide a fragment's blocks of 16 columns or, if it is tall, each multiply all.
 *
 * The result rows of matrix products that run together, without a barrier in between (a segment), form tiles of eight.
 * A tile needs one fragment for each vector that its products multiply: the weights that multiply the vector. */
#pragma once

#include "cell/segments.h"

enum { VPPS_FRAGMENT_ROWS = 8, VPPS_FRAGMENT_DEPTH = 16 };

/* One row of a product's result, computed by the VP (virtual processor, a CTA) that runs the kernel. */
typedef struct vpps_product_row {
    const vpps_program_step *product; /* the step that computes the product; NULL: none, the row fills a tile up */
    uint32_t row;                     /* number of the row among the product's rows that the CTA computes */
} vpps_product_row;

typedef struct vpps_product_tile {
    vpps_product_row rows[VPPS_FRAGMENT_ROWS];
    /* Whether the tile is of a product by one matrix with many rows, for many vertices at once: not the few of one level of a
     * recurrence. Each warp then computes final sums, of some tiles for some vertices; else partial sums, from some columns, of all. */
    bool tall;
    bool by_levels; /* whether the products run once for each level of a recurrence's vertices */
} vpps_product_tile;

/* One row of weights, of a matrix or its transpose. */
typedef struct vpps_weight_row {
    vpps_param matrix; /* the row's matrix; VPPS_NO_PARAM: the row is all zeros */
    uint32_t row;      /* number of the row among the matrix's rows that the CTA keeps */
    bool transposed;
} vpps_weight_row;

typedef struct vpps_fragment {
    vpps_weight_row rows[VPPS_FRAGMENT_ROWS];
    uint32_t length;      /* number of columns */
    uint32_t shares;      /* number of CTAs among which a row's columns are divided; each computes a partial sum */
    uint32_t steps;       /* number of blocks of eight rows x 16 columns that each warp multiplies with vectors */
    bool tall, by_levels; /* as of the tile of the eight rows' product (vpps_product_tile) */
    uint8_t level;        /* where the weights of `rows` are stored while the kernel runs: a vpps_resident_level */
    /* place of the fragment's weights in each thread: number of the first register, or of the first word of shared or device memory */
    uint32_t at;
} vpps_fragment;

/* Returns how many words of a fragment (eight rows of weights) each thread holds, if a weight is the sum of `parts` bf16 numbers. */
static inline uint32_t vpps_fragment_words(const vpps_fragment *f, uint32_t parts) { return f->steps * 2 * parts; }

/* Groups the result rows of the matrix products in g (a segment: steps that run together) by eight, product after
 * product. Returns an array of these *n groups (tiles) for the caller to free, or NULL if out of memory. */
vpps_product_tile *vpps_tile_products(const vpps_segments *s, const vpps_segment *g, uint32_t *n);

/* A tile is eight rows of results of matrix products. Finds the weights (a fragment, eight rows) by which the products of `tile` multiply
 * vector `operand`. If a product is a sum in which several matrices multiply `operand` (W0 x + W1 x), `which` numbers these from 0. Returns
 * false if no product of the tile multiplies `operand` by a matrix with number `which`. */
bool vpps_fragment_of(const vpps_program *p, const vpps_product_tile *tile, uint32_t operand, uint32_t which,
                      uint32_t threads, vpps_fragment *out);

bool vpps_same_weights(const vpps_fragment *a, const vpps_fragment *b);
