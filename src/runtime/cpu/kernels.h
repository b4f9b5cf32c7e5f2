/* kernels.h - the CPU's arithmetic: plain C that compilers vectorise, built once for each instruction-set extension and chosen at run time.
 *
 * Results do not depend on how work is divided: an element is the same wherever it lies in a call (blocks of 16, the last one padded), so
 * the same graph gives the same bits however the scheduler groups vertices. */
#pragma once

#include "cell/cell.h"
#include "script/header.h"

/* Operands of an instruction of isa.def. A tensor may be the destination itself, but not overlap it otherwise. */
typedef struct vpps_operands {
    const float *t[3]; /* operands that are tensors (arrays of elements) */
    float s[2];        /* operands that are single elements */
    float f;           /* the real number that an instruction takes, such as a factor */
    uint32_t u, e;
    uint32_t *indices;        /* second result of a maximum over a list: for each element, the tensor that has it */
    const float *weights;     /* weights for a sum over a list: one for each tensor of the list */
    const float *const *list; /* operands of instructions that take any number of tensors, such as sums */
    uint32_t n_list;
    /* for matrices: the result is r x c; k: products summed per element (MATMUL), or rows of t[0] (SELECT_ROWS) */
    uint32_t r, k, c;
    uint64_t key; /* random key of the dropout mask */
} vpps_operands;

/* Runs an instruction over n elements, and stores the result in dst. REDUCE: dst is one element. MATMUL, MOVE: n is r * c. */
typedef void (*vpps_cpu_kernel)(uint32_t n, float *dst, const vpps_operands *o);

/* The optimiser's numbers for one step, with the gradient's clip factor and the bias corrections. */
typedef struct vpps_step {
    uint32_t kind; /* vpps_optimizer_kind */
    float scale;   /* factor by which the gradient is multiplied to clip its norm */
    float corrections[2];
#define X(name) float name;
    VPPS_OPTIMIZER_NUMBERS(X)
#undef X
} vpps_step;

/* Rows of a matrix (a block), stored by columns and padded with zero rows to a multiple of 16: element (r, k) is a[k * ld + r]. The block
 * is multiplied with vectors: vector j begins at x[j] + skip. */
typedef struct vpps_product_term {
    const float *a;
    size_t ld;
    uint32_t m; /* number of rows */
    uint32_t skip;
    const float *const *x;
} vpps_product_term;

/* Operands of bf16 products are packed into tiles of 16 rows by 32 elements; a product sums over the elements of a row, the "depth". A tile
 * has 256 words, each with two adjacent elements of a row (a pair), the first one in the low half. Pair q of row i is word i * 16 + q in
 * the form AS_ROWS, and word q * 16 + i in the form PAIRS; Intel's AMX multiplies one form with the other. Rows 16 g to 16 g + 15 have the
 * tiles from number g * depth_tiles on. With two parts (bf16.h: an element is a sum, high + low), each tile of high parts precedes its tile
 * of low parts. Padding is zero. */
enum { VPPS_BF16_ROWS = 16, VPPS_BF16_DEPTH = 32, VPPS_BF16_TILE = 256 };
typedef enum vpps_bf16_form { VPPS_BF16_AS_ROWS, VPPS_BF16_PAIRS } vpps_bf16_form;

/* An operand to be packed in bf16: rows x[i] of `depth` elements from `skip` on; with `across`, vectors x[p] with element p of all rows. */
typedef struct vpps_bf16_source {
    const float *const *x;
    uint32_t skip, rows, depth;
    bool across;
} vpps_bf16_source;

static inline uint32_t vpps_bf16_depth_tiles(uint32_t depth) {
    return depth / VPPS_BF16_DEPTH + (depth % VPPS_BF16_DEPTH != 0);
}
static inline size_t vpps_bf16_words(uint32_t rows, uint32_t depth, uint32_t parts) {
    return ((size_t)rows + VPPS_BF16_ROWS - 1) / VPPS_BF16_ROWS * vpps_bf16_depth_tiles(depth) * parts * VPPS_BF16_TILE;
}

/* A term of a sum of bf16 products: matrix `a` times vectors of `depth` elements. Both are packed in tiles: `a` in form PAIRS (the same two
 * elements of 16 rows lie side by side), the vectors in form AS_ROWS (32 consecutive elements of one vector lie side by side). */
typedef struct vpps_bf16_term {
    const uint32_t *a;
    size_t x_words; /* where the vectors that `a` multiplies begin in the array of all vectors, in words */
    uint32_t depth;
} vpps_bf16_term;

/* Computes n vectors c + j * ldc (m elements): the start, from + j * ld_from (`from` NULL: zero), plus each term's A x[j], in the terms'
 * order, with fp32 sums. A term's vectors begin at x + x_words. parts: 2 if each number is the sum of two bf16, else 1. */
typedef void (*vpps_product_bf16)(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                                  const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc);

/* For products A^T x, AMX reads the tiles of A that also serve A x, whose words are pairs of elements of a row of A. So that a pair's
 * elements come into different sums, each element e of x is stored as two words, the pairs (e, 0) and (0, e): x is "spread". A tile of
 * words has 16 elements of 8 vectors: tile h * ceil(depth / 16) + g has elements from 16 g on of vectors from 8 h on (or two tiles, if an
 * element is the sum of two bf16). Element 16 g + i of vector 8 h + j is in word i * 16 + 2 j (low half) and in the next one (high half). */
enum { VPPS_BF16_SPREAD = 8 };
static inline size_t vpps_bf16_spread_words(uint32_t n, uint32_t depth, uint32_t parts) {
    return ((size_t)n + VPPS_BF16_SPREAD - 1) / VPPS_BF16_SPREAD * ((depth + VPPS_BF16_ROWS - 1) / VPPS_BF16_ROWS) *
           parts * VPPS_BF16_TILE;
}

/* Copies n vectors (packed as rows) for AMX's products with transposed matrices. Each of a vector's `depth` elements e becomes two pairs of
 * bf16, (e, 0) and (0, e), in tiles (VPPS_BF16_SPREAD, above). parts 2: e is a sum of two bf16; each becomes two pairs, in a tile of its own. */
typedef void (*vpps_spread_bf16)(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to);

/* Computes n vectors c + j * ldc (k elements): the sum of A^T x[j] over n_terms matrices A, of `depth` rows and k
 * columns. Each element of A and of x[j] is a sum of `parts` bf16 numbers; x is what vpps_spread_bf16 stored: pairs of an element and 0. A
 * non-finite element in column 2 q or 2 q + 1 of A makes both elements 2 q and 2 q + 1 of the results non-finite. */
typedef void (*vpps_product_t_bf16)(uint32_t k, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                                    const vpps_bf16_term *terms, float *c, size_t ldc);

/* Packs an operand into bf16 tiles, each element as the sum of `parts` (1 or 2) bf16 numbers. 16 rows take depth_tiles
 * tiles of `to` for each part; tiles beyond the last element are not written. */
typedef void (*vpps_pack_bf16)(const vpps_bf16_source *source, uint32_t parts, vpps_bf16_form form,
                               uint32_t depth_tiles, uint32_t *to);

/* A kind of processor instructions for bf16 products (a "unit"), with functions that pack operands and multiply them. A thread calls `open`
 * before its first `product` or `product_t`, and `close` after its last. Both may be NULL. */
typedef struct vpps_bf16_unit {
    const char *name;
    vpps_product_bf16 product;
    vpps_pack_bf16 pack;
    vpps_spread_bf16 spread;
    /* product with a transposed matrix, as AMX can compute it; NULL: needs a transposed copy of the matrix */
    vpps_product_t_bf16 product_t;
    void (*open)(void);
    void (*close)(void);
} vpps_bf16_unit;

typedef struct vpps_kernels {
    const char *isa; /* name of the instruction set, from VPPS_ISA_TABLE */
    /* kernels by instruction number; NULL for instructions that steps.c runs without a kernel, such as copies of rows */
    vpps_cpu_kernel run[VPPS_I_COUNT];

    /* Multiplies a block of rows with n vectors: c[j] (m elements) = start + block x[j]. The start is zero (`from` NULL), from[j *
     * ld_from], or c[j] itself. Meanwhile prefetches from `next`, which may be any address. */
    void (*product)(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t ld, const float *const *x, uint32_t skip,
                    const float *from, size_t ld_from, float *c, size_t ldc, const float *next);
    /* Multiplies transposed blocks of rows with vectors: c[j] (k elements) = (with `add`: +=) the sum over terms of block^T x[j]. */
    void (*product_t)(uint32_t n, uint32_t k, uint32_t n_terms, const vpps_product_term *terms, float *c, size_t ldc,
                      bool add);
    uint32_t outer_vectors;
    size_t (*outer_stride)(uint32_t k);
    void (*pack_outer)(uint32_t n, uint32_t k, const float *const *x, float *to);
    /* Adds up outer products of n <= outer_vectors vectors: block (m x k) = (`add`: +=) the sum of d[v] x[v]^T, with
     * d[v] from element d_skip on. pack_outer has copied the x[v] to distances of outer_stride(k) floats. */
    void (*outer)(uint32_t m, uint32_t n, uint32_t k, const float *const *d, uint32_t d_skip, const float *x, float *a,
                  size_t ld, bool add);

    /* Functions that pack and multiply bf16 operands with plain vector instructions (bf16.h). */
    vpps_pack_bf16 pack_bf16;
    vpps_product_bf16 product_bf16;

    /* Computes to[i], the dot product of x[i] and y (n elements each), with the same bits as run[VPPS_I_DOT]. */
    void (*dots)(uint32_t count, uint32_t n, const float *const *x, const float *y, float *to);

    void (*add)(uint32_t n, float *dst, const float *x); /* dst += x */
    /* Sums `count` >= 1 vectors, in order: vector i is n elements at pool (batch memory) + offsets[i] + skip. `to` is
     * vector 0 or overlaps no vector. */
    void (*add_up)(uint32_t n, uint32_t count, const float *pool, const uint32_t *offsets, uint32_t skip, float *to);
    /* Sums `count` >= 1 scaled vectors, in their order: pair i stands for pool[pair[0]] (pool: the batch's memory)
     * times the n elements at pool + pair[1] + skip. The sum is stored in `to` or, with `add`, added to `to`. */
    void (*add_scaled)(uint32_t n, uint32_t count, const float *pool, const uint32_t *pairs, uint32_t skip, bool add,
                       float *to);
    double (*sum_squares)(size_t n, const float *x);
    void (*update)(size_t n, const vpps_step *step, float *w, const float *g, float *s0, float *s1);
    /* Transposes a matrix: b (cols x rows) = a^T, both stored by columns. */
    void (*transpose)(uint32_t rows, uint32_t cols, const float *a, size_t lda, float *b, size_t ldb);
} vpps_kernels;

/* Compiled-in kernels, the slowest first, as X(instruction set, condition that this processor has it). The Makefile has the same list. */
#if defined(__x86_64__)
#define VPPS_ISA_TABLE(X)                                                                                              \
    X(generic, true)                                                                                                   \
    X(avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                                           \
    X(avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&                               \
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#elif defined(__aarch64__)
#define VPPS_ISA_TABLE(X) X(neon, true)
#else
#define VPPS_ISA_TABLE(X) X(generic, true)
#endif

#define X(isa, has) extern const vpps_kernels vpps_kernels_##isa;
VPPS_ISA_TABLE(X)
#undef X
