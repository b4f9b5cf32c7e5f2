/* generate_work.h - the interfaces between the files of the generator. */
#pragma once

#include "codegen/kernel_plan.h"

/* A kernel being written. */
typedef struct vpps_generation {
    const vpps_kernel_plan *plan;
    const vpps_model *model;
    const vpps_plan *pool; /* where vectors and tables lie */
    const uint32_t *matrix_at;
    FILE *out;
} vpps_generation;

/* A function for a stage: vpps_stage_NUMBER. *words: of shared memory that its tiles take; of scratch memory for a vertex
 * and for a member of each list. */
vpps_status vpps_generate_stage(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t stage, uint32_t number,
                                vpps_stage_room *room);

/* A function for the gradients of a cell's parameters: vpps_outer_NUMBER. Returns the words of shared memory that it takes. */
uint32_t vpps_generate_outer(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t number);

/* A name that a user chose, for a comment, which an asterisk could end: written as an underscore. */
void vpps_generate_name(FILE *out, const char *name);

/* Declares where the arrays of a block lie (task.h): script, pool, b, inputs inK, lookups lkK, words wdK, data, lists lsD, gradients
 * gsK and geK, kept values kD. */
void vpps_generate_view(FILE *out, const vpps_compiled_cell *c, const char *block);

/* Is the value kept as its bf16 parts, a word for each element, so that products need not round it? Where products are in bf16, it is if
 * only products and gradients of parameters read it from the record. */
static inline bool vpps_is_kept_in_parts(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t v) {
    return g->plan->parts && vpps_only_products_read(c, v);
}

/* Types of the kernel's text (products.cuh): a matrix in memory, or its transpose; the rows of a fragment in memory; the thread's resident
 * words of a fragment. */
void vpps_put_matrix(const vpps_generation *g, vpps_param matrix, bool transposed);
void vpps_put_fragment_rows(const vpps_generation *g, const vpps_fragment *f);
void vpps_put_fragment_words(const vpps_generation *g, const vpps_fragment *f);

/* Words up to the next quad. */
static inline uint32_t vpps_quads_up(uint32_t words) { return (words + 3) / 4 * 4; }

enum { VPPS_COPY_ITEMS = 4 /* items whose operands are copied to shared memory together */ };

/* Words of shared memory for the sums that all warps of so many threads have of a product's row: side by side, so that a thread loads
 * four at once. The gap spreads them over banks. */
static inline uint32_t vpps_sum_words(uint32_t threads) {
    const uint32_t warps = threads / 32;
    return warps < 4 ? warps : warps == 4 ? 4 : vpps_quads_up(warps) + 4;
}

/* Does a value's vector in memory begin and end at a quad? */
static inline bool vpps_has_quads(const vpps_cell_value *x) {
    enum { QUAD = 4, ALIGNED = 16 };
    return x->cols == 1 && x->rows % QUAD == 0 && x->rows >= ALIGNED;
}

/* In a kernel's text. */
static inline const char *vpps_truth(bool is) { return is ? "true" : "false"; }
