/* segments.h - how a kernel runs a stage's program: segments of steps, between barriers of the CTA.
 *
 * A stage goes over its vertices tile by tile. In a segment of elements a thread takes an item (a vertex or a member) and an element, and
 * makes all values of the segment there in registers. A value that another thread or another segment reads is in a slot: in shared memory,
 * or, where tiles have lists of any length, in the VP's scratch memory. A value that only one segment reads from memory is read from there,
 * without the program's LOAD. */
#pragma once

#include "cell/program.h"

typedef enum vpps_segment_kind {
    VPPS_SEGMENT_ELEMENTS, /* a thread an element */
    VPPS_SEGMENT_PRODUCTS, /* rows that the VP owns, of matrices that are dealt to it */
    VPPS_SEGMENT_WHOLE,    /* a warp an item: instructions REDUCE and ROW */
    VPPS_SEGMENT_LISTS,    /* a warp a vertex: instructions over all members of a list */
    VPPS_SEGMENT_MATRICES  /* products by one VP, of matrices in memory */
} vpps_segment_kind;

typedef enum vpps_segment_step_kind {
    VPPS_SEGMENT_LOAD, /* from memory into a slot */
    VPPS_SEGMENT_MAKE, /* and store, where it is a segment of elements or products */
    VPPS_SEGMENT_STORE /* from a slot to where the value is kept and contributed */
} vpps_segment_step_kind;

typedef struct vpps_segment_step {
    uint8_t kind;
    uint32_t value;
    const vpps_program_step *step; /* that makes the value; NULL unless it is MAKE */
} vpps_segment_step;

typedef struct vpps_segment {
    uint8_t kind, axis;
    bool dealt;        /* ELEMENTS: of rows that are dealt, the VP's own ones */
    uint32_t words;    /* ELEMENTS: of an item's values */
    uint32_t first, n; /* steps */
} vpps_segment;

typedef struct vpps_segments {
    const vpps_compiled_cell *c;
    const vpps_program *p;
    uint32_t stage;
    vpps_segment *list;
    vpps_segment_step *steps;
    uint32_t n, n_steps;
    const vpps_operand **memory; /* of every value: where it is outside of the tile; NULL: nothing reads it there */
    uint32_t *made_in;   /* of every value: the segment that makes or loads it; VPPS_NONE: read where it is in memory */
    uint32_t *slot;      /* of every value: floats of an item before it, among its axis's; VPPS_NONE: it needs none */
    uint32_t *last_read; /* of every value with a slot: the number after the last segment that reads it */
    uint8_t *late;       /* of every value: it must not be stored by the segment that makes it */
    uint32_t floats[VPPS_AXES]; /* of an item */
} vpps_segments;

/* Makes the segments of a stage. Fails with MEMORY, or as vpps_segments_check does. Free with vpps_segments_free in any case. */
vpps_status vpps_segments_make(vpps_segments *out, const vpps_compiled_cell *c, uint32_t stage);

/* Checks that each segment finds the values that it reads: made before, not stored over, and, at elements that other threads make, not
 * stored over by itself. Fails with SCRIPT: the compiler is wrong. */
vpps_status vpps_segments_check(const vpps_segments *s);

/* Does the segment store something where value u lies in memory? A segment of elements may also finish the products of the preceding one,
 * and store them. */
bool vpps_segment_stores_over(const vpps_segments *s, uint32_t segment, uint32_t u);
void vpps_segments_free(vpps_segments *s);

/* The most rows of a value with so many that a VP of the group owns. */
uint32_t vpps_most_rows(const vpps_cell_needs *needs, uint32_t rows);

/* Elements of a value's item that a VP has in a stage where rows are shared out, at most, or all. */
uint32_t vpps_segment_width(const vpps_segments *s, uint32_t v);

static inline bool vpps_is_dealt(const vpps_segments *s, uint32_t v) {
    return s->p->rows && vpps_rows_dealt(&s->c->needs, s->c->values[v].rows);
}

/* Operand i of a step. */
static inline const vpps_operand *vpps_operand_of(const vpps_segments *s, const vpps_program_step *step, uint32_t i) {
    return &s->p->operands[step->first + i];
}

/* The value that a product starts from, or NULL: none, or a vector. */
static inline const vpps_operand *vpps_start_of(const vpps_program_step *product) {
    const vpps_operand *start = &product->product.start;
    return start->place && start->value != product->to.value ? start : NULL;
}

/* Is the operand read at the reader's own item and element? */
static inline bool vpps_reads_alike(const vpps_program_step *step, const vpps_operand *o) {
    const uint32_t words = vpps_operand_words(o);
    const bool scalar = o->access == VPPS_ACCESS_SCALAR && !o->element && words == 1;
    return step->kind == VPPS_STEP_RUN && vpps_instructions[step->run.of.opcode].form == VPPS_FORM_EW &&
           o->axis == step->axis && words == vpps_operand_words(&step->to) && (o->access == VPPS_ACCESS_OWN || scalar);
}
