/* segments.h - divides the steps of a stage (part of a cell) into segments, which barriers of the CTA separate.
 *
 * A stage runs over tiles: vertices processed together. An item is a vertex of the tile, or one of the nodes that
 * the vertex's list input reads. In an elementwise segment a thread takes one element of one item and computes all
 * values of the segment in registers. A value that another thread or segment reads is stored in a slot: a buffer in
 * shared memory, or in the CTA's scratch memory if a tile's lists are too long. A value in memory is
 * read there if one segment reads it or, in cells with lists but no recurrence, if the stage stores nothing over it. */
#pragma once

#include "cell/program.h"

typedef enum vpps_segment_kind {
    VPPS_SEGMENT_ELEMENTS, /* elementwise steps; a thread makes one element of each step's value, without a barrier */
    VPPS_SEGMENT_PRODUCTS, /* products of vectors with the matrix rows that the CTA owns */
    /* instructions on whole vectors (softmax, dot product): one warp for each vertex, or for each node of its list */
    VPPS_SEGMENT_WHOLE,
    VPPS_SEGMENT_LISTS,   /* instructions over all nodes of a list that a vertex reads, one warp per vertex */
    VPPS_SEGMENT_MATRICES /* products of vectors with whole matrices: a CTA makes all rows, for its own vertices */
} vpps_segment_kind;

typedef enum vpps_segment_step_kind {
    VPPS_SEGMENT_LOAD, /* copies a value from memory to a slot (buffer) */
    /* computes a value; in segments (lists of steps) of kind ELEMENTS or PRODUCTS also writes a kept value to memory */
    VPPS_SEGMENT_MAKE,
    VPPS_SEGMENT_STORE /* copies a value from a slot (buffer) to memory: kept values, or gradients for inputs */
} vpps_segment_step_kind;

typedef struct vpps_segment_step {
    uint8_t kind;
    uint32_t value;
    const vpps_program_step *step; /* kind MAKE: the step that computes `value`; other kinds: NULL */
} vpps_segment_step;

typedef struct vpps_segment {
    uint8_t kind, axis;
    bool dealt;        /* kind ELEMENTS: whether the CTA computes only its own rows of the vectors */
    uint32_t words;    /* kind ELEMENTS: elements of each value, per item (vertex, or node that a list input reads) */
    uint32_t first, n; /* the segment's steps: steps[first] to steps[first + n - 1] of vpps_segments */
    uint32_t barriers; /* CTA barriers before these steps; segments with equal numbers can run in any order */
} vpps_segment;

typedef struct vpps_segments {
    const vpps_compiled_cell *c;
    const vpps_program *p;
    uint32_t stage;
    vpps_segment *list;
    vpps_segment_step *steps;
    uint32_t n, n_steps;
    const vpps_operand **memory; /* for each value: an operand with its place in memory; NULL: no step reads it there */
    const vpps_program_step **made_by; /* for each value: the step that computes it; NULL: none */
    uint32_t *made_in; /* for each value: number of the list of steps (segment) that makes or loads it, or VPPS_NONE */
    uint32_t *slot;    /* for each value: offset of its slot (buffer) among a vertex's floats; VPPS_NONE: no slot */
    uint32_t *last_read; /* for each value with a slot (buffer): 1 + number of the last list of steps that reads it */
    uint8_t *late; /* for each value: whether it is stored in memory only after the barrier that follows its step */
    /* floats in all slots (buffers): [0] for a vertex, [d] for each of the many nodes of its list input d - 1 */
    uint32_t floats[VPPS_AXES];
} vpps_segments;

/* Divides the program of a stage (part of a cell) into segments (steps without a CTA barrier between them). Fails with MEMORY, and with
 * SCRIPT if the compiler of cells has made an error. Call vpps_segments_free in any case. */
vpps_status vpps_segments_make(vpps_segments *out, const vpps_compiled_cell *c, uint32_t stage);

/* Checks that each segment (list of steps) finds the values that it reads: a barrier must lie between a step that puts
 * a value in a slot (buffer) and its readers, and no step may overwrite what is still read. Fails with SCRIPT. */
vpps_status vpps_segments_check(const vpps_segments *s);

/* Returns whether a segment (list of steps) overwrites value u in memory. Matrix products that the preceding segment
 * began are stored by the segment that adds up their partial sums. */
bool vpps_segment_stores_over(const vpps_segments *s, uint32_t segment, uint32_t u);
void vpps_segments_free(vpps_segments *s);

/* Returns whether only products in tiles (GEMM blocks) and parameters' gradients read a value that is kept in memory. */
bool vpps_only_products_read(const vpps_compiled_cell *c, uint32_t v);

/* Returns how many of a vector's rows a CTA computes at most. `shares`: number of partial sums. */
uint32_t vpps_most_rows(const vpps_cell_needs *needs, uint32_t rows, uint32_t shares);

/* Returns how many elements of v a CTA computes for a vertex or list node. If CTAs divide v's rows: the most that any CTA computes. */
uint32_t vpps_segment_width(const vpps_segments *s, uint32_t v);

static inline bool vpps_is_dealt(const vpps_segments *s, uint32_t v) {
    return s->p->rows && vpps_rows_dealt(&s->c->needs, s->c->values[v].rows);
}

static inline const vpps_operand *vpps_operand_of(const vpps_segments *s, const vpps_program_step *step, uint32_t i) {
    return &s->p->operands[step->first + i];
}

/* Returns the value that is added to a product; NULL: nothing, or a bias vector, is added. */
static inline const vpps_operand *vpps_start_of(const vpps_program_step *product) {
    const vpps_operand *start = &product->product.start;
    return start->place && start->value != product->to.value ? start : NULL;
}

/* Returns operand number i of all that a step reads: its own, then the value that is added to a product; NULL: there is no such operand. */
static inline const vpps_operand *vpps_read_of(const vpps_segments *s, const vpps_program_step *step, uint32_t i) {
    if (step->kind < VPPS_STEP_RUN || i > step->n) return NULL;
    if (i < step->n) return vpps_operand_of(s, step, i);
    return step->kind == VPPS_STEP_PRODUCT ? vpps_start_of(step) : NULL;
}

static inline vpps_param vpps_bias_param(const vpps_program_step *product) {
    return product->product.start.place && !vpps_start_of(product) ? product->product.start.at : VPPS_NO_PARAM;
}

/* Returns whether a thread that computes element e of the step's result for a vertex (or a node of its list) reads
 * of operand o only element e, for the same vertex or node. */
static inline bool vpps_reads_alike(const vpps_program_step *step, const vpps_operand *o) {
    const uint32_t words = vpps_operand_words(o);
    const bool scalar = o->access == VPPS_ACCESS_SCALAR && !o->element && words == 1;
    return step->kind == VPPS_STEP_RUN && vpps_instructions[step->run.of.opcode].form == VPPS_FORM_EW &&
           o->axis == step->axis && words == vpps_operand_words(&step->to) && (o->access == VPPS_ACCESS_OWN || scalar);
}
