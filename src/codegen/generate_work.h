/* generate_work.h - functions that several files call to generate parts of a kernel's source text. */
#pragma once

#include "codegen/kernel_plan.h"

/* State while a kernel's source is written. */
typedef struct vpps_generation {
    const vpps_kernel_plan *plan;
    const vpps_model *model;
    const vpps_pool_plan *pool; /* offsets of vectors and lookup tables in the pool of device memory */
    const uint32_t *matrix_at;  /* for each parameter that is a matrix: its first word in the buffer of matrices */
    FILE *out;
} vpps_generation;

/* Writes the function vpps_stage_NUMBER of a stage (part of a cell). Sets `room` to the shared memory that its tiles
 * (vertices processed together) need, and the scratch memory per vertex and per node that a list input reads. */
vpps_status vpps_generate_stage(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t stage, uint32_t number,
                                vpps_stage_room *room);

/* Writes the function vpps_outer_NUMBER, which computes the gradients of a cell's parameters. Returns the words of shared memory needed. */
uint32_t vpps_generate_outer(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t number);

/* Writes macros VPPS_STEP, the optimiser's function (isa/steps.h), and VPPS_STEP_NUMBERS, the struct of its rates. */
void vpps_generate_step(FILE *out, vpps_optimizer_kind optimizer, const char *numbers);

/* Declares: script (the batch's program), pool (values' memory), b (a cell's vertices that a group runs), k0.. (where vertices' values
 * begin), and per vertex in0.. (inputs' offsets), lk0.. (table entries), wd0.. (integers), data (address of the caller's numbers), ls1..
 * (first node of a list), gs0.. (an output's first gradient term, in ge0..), ge0.. (terms' offsets), gp0.. (terms scalar * vector). */
void vpps_generate_view(FILE *out, const vpps_compiled_cell *c, const char *block);

/* Returns whether memory holds each element of a value as one bf16 number, or as two whose sum is the element. In bf16, values are stored
 * in this form if only products and gradients of parameters read them, since these need bf16 numbers anyway. */
static inline bool vpps_is_kept_in_parts(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t v) {
    return g->plan->parts && vpps_only_products_read(c, v);
}

/* Writes the name of the C++ type (products.cuh) for a matrix in memory, or for its transpose. */
void vpps_put_matrix(const vpps_generation *g, vpps_param matrix, bool transposed, uint32_t shares);

enum { VPPS_COPY_ITEMS = 4 /* number of vertices (or list nodes) whose vectors are copied together */ };

/* Returns whether a value is a vector of at least 16 words; in memory, such vectors begin at multiples of 16 words. */
static inline bool vpps_is_long(const vpps_operand *x) {
    enum { ALIGNED = 16 };
    return x->cols == 1 && x->rows >= ALIGNED;
}

/* Returns whether a value's vector in memory begins and ends at a multiple of four words. */
static inline bool vpps_has_quads(const vpps_operand *x) { return vpps_is_long(x) && x->rows % 4 == 0; }

/* Writes the beginning of a loop that runs `turns` times, with `turn` counting from 0; the caller ends the loop's body with `});`. If
 * `turns` is 1, writes nothing and returns false. */
static inline bool vpps_begin_turns(FILE *out, uint32_t turns) {
    if (turns > 1) fprintf(out, "vpps_by_turns(0u, %uu, 1u, [&](unsigned turn) {\n", turns);
    return turns > 1;
}

static inline const char *vpps_truth(bool is) { return is ? "true" : "false"; }
