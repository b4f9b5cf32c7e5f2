/* resident.h - where a running kernel keeps the weight matrices whose rows its VPs (virtual processors, CTAs) divide.
 *
 * Every warp's lanes form `blocks` blocks of adjacent lanes. Row r of the VP belongs to block r % blocks. The lanes of a block in all warps
 * together (its span) share the columns of the block's rows: thread p of a span holds columns [run * p, run * (p + 1)), then the same range
 * shifted by run * span, and so on. So each thread holds `columns` words of each of rows / blocks rows, padded with zeros. A transposed
 * matrix is stored as another matrix whose rows are the columns. Since a warp has few columns of many rows, it reads few elements of a
 * vector and sums over few lanes. The warps' partial sums are added at the end.
 *
 * With products in bf16, weights are stored as fragments (eight rows of weights, fragments.h). When the kernel begins, a VP copies the
 * fragments that fit in neither registers nor shared memory to device memory of its own. A matrix's level is then the slowest level of
 * its fragments, and its `at` is unused. */
#pragma once

#include "codegen/fragments.h"

/* Limits of wide products, which use each weight read from memory for many vertices. ITEMS: most vertices at once.
 * WORDS: of shared memory, in fp32. In bf16, TILES: most groups of eight rows; REGISTERS: of a thread, for weights. */
enum { VPPS_WIDE_ITEMS = 64, VPPS_WIDE_WORDS = 24576, VPPS_WIDE_TILES = 6, VPPS_WIDE_REGISTERS = 40 };

typedef enum vpps_resident_level {
    VPPS_RESIDENT_REGISTERS,
    VPPS_RESIDENT_SHARED, /* weights are in the CTA's shared memory; adjacent threads have adjacent words */
    VPPS_RESIDENT_STREAM /* weights are read from device memory at each use; with products in bf16, from copies in bf16 */
} vpps_resident_level;

typedef struct vpps_resident {
    vpps_param matrix;
    bool transposed;
    uint32_t shares; /* number of CTAs among which a row's columns are divided; each computes a partial sum */
    bool is_short; /* whether the matrix multiplies only short vectors; its weights are then read from device memory */
    uint8_t level;
    /* rows: the most rows that any CTA keeps; columns: how many columns of each row a thread holds */
    uint32_t rows, columns;
    uint32_t blocks, run; /* blocks: groups of a warp's lanes, for different rows; run: columns that one load reads */
    uint32_t at;          /* number of a thread's first register, or shared-memory word, with weights of the matrix */
} vpps_resident;

/* The elements of a bias vector (added to products) that a CTA owns, stored at the beginning of its shared memory. */
typedef struct vpps_resident_vector {
    vpps_param vector;
    uint32_t rows, at;
} vpps_resident_vector;

/* Registers and shared memory that a kernel may use for weights. */
typedef struct vpps_kernel_room {
    uint32_t threads;      /* threads of a CTA */
    uint32_t registers;    /* registers of a thread that weights may take */
    uint32_t shared_words; /* words of shared memory of a CTA that weights may take */
    uint32_t script_words; /* most words of shared memory for a copy of the batch's program, if weights leave room */
} vpps_kernel_room;

typedef struct vpps_residents {
    uint32_t parts; /* set by the caller: number of bf16 numbers whose sum is an operand of a product; 0: fp32 */
    vpps_fragment *fragments;
    uint32_t n_fragments;
    vpps_resident *list;
    vpps_resident_vector *vectors;
    uint32_t n, n_vectors, registers, shared_words;
    uint64_t memory_words; /* words of device memory of a CTA for weights in bf16 */
    /* words of shared memory, the last of shared_words, for buffers of wide products (tiles.cuh). These multiply each weight that they read
     * from memory by many vertices' vectors at once. 0: no product is wide. If they are wide in fp32, device memory holds all weights. */
    uint32_t wide_words;
} vpps_residents;

static inline uint32_t vpps_quads_up(uint32_t words) { return (words + 3) / 4 * 4; }

/* Returns the words of shared memory for one result row's partial sums, one per warp. The sums of a row are adjacent, so that a thread
 * loads four at once; a gap after them spreads rows over memory banks. */
static inline uint32_t vpps_sum_words(uint32_t threads) {
    const uint32_t warps = threads / 32;
    return warps < 4 ? warps : warps == 4 ? 4 : vpps_quads_up(warps) + 4;
}

/* Returns the number of blocks into which a warp's lanes are divided, so that different blocks multiply different rows.
 * rows: number of the matrix's rows that a CTA keeps. */
uint32_t vpps_blocks_of_rows(uint32_t rows, bool transposed, uint32_t threads);

/* Returns how a CTA's threads divide its rows of a matrix, at most `rows`. vpps_residents_place gives the rows registers or memory. */
vpps_resident vpps_lay_out_rows(uint32_t rows, uint32_t columns, bool transposed, uint32_t threads);

static inline uint32_t vpps_rows_of_thread(const vpps_resident *m) { return (m->rows + m->blocks - 1) / m->blocks; }

static inline uint32_t vpps_words_of_thread(const vpps_resident *m) { return vpps_rows_of_thread(m) * m->columns; }

/* Adds to r the cell's matrices whose rows are divided among CTAs, and products' bias vectors. Fails with MEMORY. */
vpps_status vpps_residents_add(vpps_residents *r, const vpps_model *model, const vpps_compiled_cell *c,
                               uint32_t threads);

/* Assigns registers, else shared memory, to each matrix in the order of adding. If over half the weights fit in
 * neither, sets wide_words: each weight in device memory serves many vertices a read; fp32 uses it for all, bf16 last for those of every level. */
void vpps_residents_place(vpps_residents *r, const vpps_kernel_room *room);

const vpps_resident_vector *vpps_resident_vector_of(const vpps_residents *r, vpps_param vector);
/* Returns the fragment in r (eight rows of weights, and their place) with the same rows as `weights`, or NULL. */
const vpps_fragment *vpps_resident_fragment(const vpps_residents *r, const vpps_fragment *weights);
vpps_resident *vpps_resident_of(const vpps_residents *r, vpps_param matrix, bool transposed, uint32_t shares);
void vpps_residents_free(vpps_residents *r);

/* Returns whether the product multiplies only vectors so short (such as class scores) that one thread computes an element of the result. */
bool vpps_product_is_short(const vpps_program *p, const vpps_program_step *product);
