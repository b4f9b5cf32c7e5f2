/* resident.h - where the matrices that are dealt to a kernel's VPs lie while it runs.
 *
 * Every warp's lanes form `blocks` of neighbours, which share out the rows that the VP owns: row r is of block r % blocks. The lanes of a
 * block, those of all warps one after the other, are its span: they share out a row's columns, `run` side by side at a time. Thread p of
 * them holds columns run * p and the next, then those run * span after them, and so on. These are `columns` words of each of rows / blocks
 * rows, padded with zeros. A transposed matrix is one more matrix, whose rows are the columns. So a warp has few columns of many rows: it
 * reads little of a vector, and adds sums up over few lanes, and the warps' sums are added up in the end.
 *
 * With products in bf16 they lie as fragments (fragments.h). A matrix's level is then the farthest of its fragments', and `at` is none. */
#pragma once

#include "codegen/fragments.h"

typedef enum vpps_resident_level {
    VPPS_RESIDENT_REGISTERS,
    VPPS_RESIDENT_SHARED, /* of the CTA, a word a thread side by side */
    VPPS_RESIDENT_STREAM  /* read from memory at each use */
} vpps_resident_level;

typedef struct vpps_resident {
    vpps_param matrix;
    bool transposed;
    bool is_short; /* only short products have the matrix, and read it from memory */
    uint8_t level;
    uint32_t rows, columns; /* of a VP at most; of a thread */
    uint32_t blocks, run;   /* of lanes; of columns */
    uint32_t at;            /* first register, first word in shared memory of each thread */
} vpps_resident;

/* The VP's rows of a vector that products start from: at the front of shared memory. */
typedef struct vpps_resident_vector {
    vpps_param vector;
    uint32_t rows, at;
} vpps_resident_vector;

/* What a kernel may take. */
typedef struct vpps_kernel_room {
    uint32_t threads;      /* of a CTA */
    uint32_t registers;    /* of a thread, for weights */
    uint32_t shared_words; /* of a CTA, for weights */
    uint32_t script_words; /* of a CTA, for a copy of the script: at most, as far as weights leave room */
} vpps_kernel_room;

typedef struct vpps_residents {
    uint32_t parts; /* bf16 numbers whose sum an operand of products is: set by who adds; 0: it is in fp32 */
    vpps_fragment *fragments;
    uint32_t n_fragments;
    vpps_resident *list;
    vpps_resident_vector *vectors;
    uint32_t n, n_vectors, registers, shared_words;
} vpps_residents;

/* Blocks of lanes that share out so many rows of a VP, alike for all matrices of so many rows. */
uint32_t vpps_blocks_of_rows(uint32_t rows, bool transposed, uint32_t threads);

/* The layout of a matrix of which a VP has at most so many rows, before it is placed. */
vpps_resident vpps_lay_out_rows(uint32_t rows, uint32_t columns, bool transposed, uint32_t threads);

static inline uint32_t vpps_rows_of_thread(const vpps_resident *m) { return (m->rows + m->blocks - 1) / m->blocks; }

static inline uint32_t vpps_words_of_thread(const vpps_resident *m) { return vpps_rows_of_thread(m) * m->columns; }

/* Adds the matrices that the cell's stages multiply with row by row, and what such products start from. Fails with MEMORY. */
vpps_status vpps_residents_add(vpps_residents *r, const vpps_model *model, const vpps_compiled_cell *c,
                               uint32_t threads);

/* Places the matrices in registers, then in shared memory, in the order in which they were added. */
void vpps_residents_place(vpps_residents *r, const vpps_kernel_room *room);

const vpps_resident_vector *vpps_resident_vector_of(const vpps_residents *r, vpps_param vector);
/* The fragment of these weights, or NULL. */
const vpps_fragment *vpps_resident_fragment(const vpps_residents *r, const vpps_fragment *weights);
const vpps_resident *vpps_resident_of(const vpps_residents *r, vpps_param matrix, bool transposed);
void vpps_residents_free(vpps_residents *r);

/* Are all vectors that the product multiplies so short (a classifier's classes) that one thread had best sum up an element alone? */
bool vpps_product_is_short(const vpps_compiled_cell *c, const vpps_cell_value *x);
