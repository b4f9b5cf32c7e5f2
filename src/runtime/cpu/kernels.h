/* kernels.h - the CPU's arithmetic: plain C written so that compilers vectorise it, built once for each
 * instruction-set extension and chosen at run time.
 *
 * Results do not depend on how work is divided: an element is the same wherever it lies in a call (blocks of 16, the last one padded), so
 * that the same graph gives the same bits however the scheduler merges or splits vertices.
 */
#pragma once

#include "isa/isa.h"
#include "plan/plan.h"
#include "script/header.h"

/* Decoded operands, in the letters of isa.def. Tensors may be equal to the destination, but not overlap otherwise. */
typedef struct vpps_operands {
    const float *t[3]; /* t, in order */
    float s[2];        /* s, in order */
    float f;           /* the last f */
    uint32_t u, e;
    uint32_t *indices;        /* i */
    const float *weights;     /* v */
    const float *const *list; /* * */
    uint32_t n_list;
    uint32_t r, k,
        c;        /* MATMUL, MOVE: rows and columns of the result; k: what is summed over, rows of the first tensor */
    uint64_t key; /* dropout */
} vpps_operands;

/* dst = instruction over n elements; for REDUCE dst is one element, for MATMUL and MOVE n is r * c. */
typedef void (*vpps_cpu_kernel)(uint32_t n, float *dst, const vpps_operands *o);

/* The numbers of an optimiser step besides w and g: those of the script's header, with the clip factor and the step's number applied. */
typedef struct vpps_step {
    uint32_t kind; /* vpps_optimizer_kind */
    float scale;   /* of the gradient: clipping */
    float corrections[2];
#define X(name) float name;
    VPPS_OPTIMIZER_NUMBERS(X)
#undef X
} vpps_step;

/* A block of a matrix's rows, column after column, padded with zero rows to a multiple of 16: element (r, k) at a[k * ld + r]; and
 * what it is multiplied with: vector j from x[j] + skip on. */
typedef struct vpps_product_term {
    const float *a;
    size_t ld;
    uint32_t m; /* rows */
    uint32_t skip;
    const float *const *x;
} vpps_product_term;

/* Operands of products in bf16 lie in tiles of 16 rows by 32 elements of the sum (a "depth tile"), each of 256 words that hold
 * two elements, the earlier one in the low half. In the form of ROWS pair q of row i is word i * 16 + q, in that of PAIRS word
 * q * 16 + i, as a product's two operands are wanted by Intel's AMX. Tile d of the 16 rows from 16 g on is number
 * g * depth_tiles + d; of two parts (bf16.h) the high one comes first in each. What follows the last row or element is zero. */
enum { VPPS_BF16_ROWS = 16, VPPS_BF16_DEPTH = 32, VPPS_BF16_TILE = 256 };
typedef enum vpps_bf16_form { VPPS_BF16_AS_ROWS, VPPS_BF16_PAIRS } vpps_bf16_form;

/* Where operands come from: rows x[i] of `depth` elements from `skip` on; `across`: vectors x[p] with element p of the sum of every
 * row. */
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

/* A matrix and what it is multiplied with: m rows in pairs, n vectors in rows. */
typedef struct vpps_bf16_term {
    const uint32_t *a;
    size_t x_words; /* the vectors lie so many words after the first term's memory */
    uint32_t depth;
} vpps_bf16_term;

/* c[j] (m rows) = start + the sum of the terms' A x[j], for n vectors: added in the terms' order, sums in fp32; start as for
 * `product`. x: the memory of all terms' vectors. */
typedef void (*vpps_product_bf16)(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                                  const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc);

/* Transposed products with a matrix's tiles as they lie, for few vectors. In a tile of pairs row q is, for 16 rows i of the matrix,
 * elements 2 q and 2 q + 1 of row i. So a unit that multiplies it with pairs (x[i], 0) and (0, x[i]) has elements 2 q and
 * 2 q + 1 of A^T x. Such are vectors that are "spread": tile g of the 8 vectors from 8 h on is number h * groups + g, each of
 * `parts`, where word i * 16 + 2 j is element 16 g + i of vector 8 h + j in the low half, the next word the same in the high
 * half. */
enum { VPPS_BF16_SPREAD = 8 };
static inline size_t vpps_bf16_spread_words(uint32_t n, uint32_t depth, uint32_t parts) {
    return ((size_t)n + VPPS_BF16_SPREAD - 1) / VPPS_BF16_SPREAD * ((depth + VPPS_BF16_ROWS - 1) / VPPS_BF16_ROWS) *
           parts * VPPS_BF16_TILE;
}

/* Spreads n vectors of `depth` elements that are packed in rows. */
typedef void (*vpps_spread_bf16)(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to);

/* c[j] (k elements) = the sum of the terms' A^T x[j] for n spread vectors; depth: the rows of A, which has k columns. What is not
 * finite in A shows in both elements of a pair. */
typedef void (*vpps_product_t_bf16)(uint32_t k, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                                    const vpps_bf16_term *terms, float *c, size_t ldc);

/* Packs an operand, in one part or two. A group of 16 rows has depth_tiles tiles in `to`, of which those of the source's elements
 * are written. */
typedef void (*vpps_pack_bf16)(const vpps_bf16_source *source, uint32_t parts, vpps_bf16_form form,
                               uint32_t depth_tiles, uint32_t *to);

/* A unit, which packs bf16 operands and makes their products. A thread calls `open` before its first `product` or `product_t`, and `close`
 * after its last. Both may be NULL. */
typedef struct vpps_bf16_unit {
    const char *name;
    vpps_product_bf16 product;
    vpps_pack_bf16 pack;
    vpps_spread_bf16 spread;
    vpps_product_t_bf16 product_t; /* NULL: the unit needs transposed copies */
    void (*open)(void);
    void (*close)(void);
} vpps_bf16_unit;

typedef struct vpps_kernels {
    const char *isa;                   /* of VPPS_ISA_TABLE */
    vpps_cpu_kernel run[VPPS_I_COUNT]; /* NULL for the forms PARTS, DECIDED and WEIGHTS */

    /* Matrices column after column with leading dimensions. C (m x n) = or += A (m x k) B (k x n); nt: B is n x k. */
    void (*gemm_nn)(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda, const float *b, size_t ldb,
                    float *c, size_t ldc, bool accumulate);
    void (*gemm_nt)(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda, const float *b, size_t ldb,
                    float *c, size_t ldc, bool accumulate);
    /* C (k x n) = or += A^T B with A m x k, B m x n: for few columns, where A is read from a distant cache once. */
    void (*gemm_tn)(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t lda, const float *b, size_t ldb,
                    float *c, size_t ldc, bool accumulate);

    /* Blocks times vectors: see products.h. product: c[j] (m rows) = start + block x[j], where start is zero (from NULL),
     * from[j * ld_from] or c[j] itself, while `next` is fetched, which may be any address; product_t: c[j] (k elements) = or += sum
     * of the terms' block^T x[j]; outer: block = or += sum over v of d[v] x[v]^T, for at most outer_vectors, whose x were
     * packed before, outer_stride(k) floats apart. */
    void (*product)(uint32_t m, uint32_t n, uint32_t k, const float *a, size_t ld, const float *const *x, uint32_t skip,
                    const float *from, size_t ld_from, float *c, size_t ldc, const float *next);
    void (*product_t)(uint32_t n, uint32_t k, uint32_t n_terms, const vpps_product_term *terms, float *c, size_t ldc,
                      bool add);
    uint32_t outer_vectors;
    size_t (*outer_stride)(uint32_t k);
    void (*pack_outer)(uint32_t n, uint32_t k, const float *const *x, float *to);
    void (*outer)(uint32_t m, uint32_t n, uint32_t k, const float *const *d, uint32_t d_skip, const float *x, float *a,
                  size_t ld, bool add);

    /* The same with operands of bf16: see bf16.h. */
    vpps_pack_bf16 pack_bf16;
    vpps_product_bf16 product_bf16;

    /* to[i] = DOT of x[i] and y, and to[i * ld ...] = SCALE_BY of x[i] and s[i], for `count` vectors of n elements: as `run` has them. */
    void (*dots)(uint32_t count, uint32_t n, const float *const *x, const float *y, float *to);
    void (*scale_each)(uint32_t count, uint32_t n, const float *const *x, const float *s, float *to, size_t ld);

    void (*add)(uint32_t n, float *dst, const float *x); /* dst += x */
    /* to = the sum of n elements at pool + offset + skip over `count` >= 1 offsets, in their order. `to` is the first or overlaps none. */
    void (*add_up)(uint32_t n, uint32_t count, const float *pool, const uint32_t *offsets, uint32_t skip, float *to);
    /* to = or += the sum over `count` >= 1 pairs of pool[pair[0]] times n elements at pool + pair[1] + skip, in their order. */
    void (*add_scaled)(uint32_t n, uint32_t count, const float *pool, const uint32_t *pairs, uint32_t skip, bool add,
                       float *to);
    double (*sum_squares)(uint32_t n, const float *x);
    void (*update)(uint32_t n, const vpps_step *step, float *w, const float *g, float *s0, float *s1);
    void (*transpose)(uint32_t rows, uint32_t cols, const float *a, size_t lda, float *b, size_t ldb);
    /* b (cols x rows) = a^T, both column after column */
} vpps_kernels;

/* X(isa, does this processor have it?): the kernels that are compiled in, the slowest first. The Makefile has the same list. */
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

/* The fastest of VPPS_ISA_TABLE that this processor has, or the first when portable is true. The environment's VPPS_ISA may ask for one by
 * name; an unknown name, and one that the processor lacks, are ignored. Never NULL. */
const vpps_kernels *vpps_kernels_choose(bool portable);
