/* segments.h - divides a stage's program into segments of steps, separated by barriers of the CTA.
 *
 * A stage processes its vertices in tiles. An item is a vertex of the tile or a member of a vertex's list. In an elementwise segment a
 * thread takes one element of one item and computes all values of the segment in registers. A value that another thread or segment reads is
 * stored in a slot, a buffer in shared memory, or in the VP's scratch memory if the stage has lists of any length. A value in memory that
 * only one segment reads is read there, without a copy in a slot. */
#pragma once

#include "cell/program.h"

typedef enum vpps_segment_kind {
    VPPS_SEGMENT_ELEMENTS, /* elementwise steps, one thread per element */
    VPPS_SEGMENT_PRODUCTS, /* products with the matrix rows that the VP owns */
    VPPS_SEGMENT_WHOLE,    /* instructions that sum over whole vectors (REDUCE, ROW), one warp per item */
    VPPS_SEGMENT_LISTS,    /* instructions over all members of each vertex's list, one warp per vertex */
    VPPS_SEGMENT_MATRICES  /* products that one VP computes with whole matrices in memory */
} vpps_segment_kind;

typedef enum vpps_segment_step_kind {
    VPPS_SEGMENT_LOAD, /* copies a value from memory to a slot */
    VPPS_SEGMENT_MAKE, /* computes a value; segments of elements or products also store it */
    VPPS_SEGMENT_STORE /* copies a value from a slot to its record and contributions */
} vpps_segment_step_kind;

typedef struct vpps_segment_step {
    uint8_t kind;
    uint32_t value;
    const vpps_program_step *step; /* the step that computes the value; NULL unless the kind is MAKE */
} vpps_segment_step;

typedef struct vpps_segment {
    uint8_t kind, axis;
    bool dealt;        /* ELEMENTS: the segment computes only the rows that the VP owns */
    uint32_t words;    /* ELEMENTS: number of elements that each value has per item */
    uint32_t first, n; /* index of the segment's first step in vpps_segments.steps, and its number of steps */
} vpps_segment;

typedef struct vpps_segments {
    const vpps_compiled_cell *c;
    const vpps_program *p;
    uint32_t stage;
    vpps_segment *list;
    vpps_segment_step *steps;
    uint32_t n, n_steps;
    /* Indexed by value: the operand that tells the value's place in memory; NULL if no step reads the value in memory. */
    const vpps_operand **memory;
    /* Indexed by value: an operand with the value's axis, rows and columns; NULL if the value is not in the stage. */
    const vpps_operand **shape;
    const vpps_program_step **made_by; /* by value: the step that computes the value; NULL: none does */
    uint32_t *made_in;          /* by value: the segment that computes or loads the value; VPPS_NONE: read in memory */
    uint32_t *slot;             /* by value: offset of its slot (buffer) among an item's floats; VPPS_NONE: none */
    uint32_t *last_read;        /* by value with a slot: 1 + number of the last segment that reads the value */
    uint8_t *late;              /* by value: true if a later segment than the one that computes the value stores it */
    uint32_t floats[VPPS_AXES]; /* floats per item that the slots of each list axis take */
} vpps_segments;

/* Divides a stage's program into segments. Fails with MEMORY, or as vpps_segments_check. Call vpps_segments_free also after a failure. */
vpps_status vpps_segments_make(vpps_segments *out, const vpps_compiled_cell *c, uint32_t stage);

/* Checks that each segment finds the values that it reads: they are made earlier and not overwritten, and values read at other threads'
 * elements are not overwritten by the segment itself. Fails with SCRIPT, which means an error of the compiler. */
vpps_status vpps_segments_check(const vpps_segments *s);

/* Returns whether the segment writes to the memory where value u lies, directly or by finishing the preceding segment's products. */
bool vpps_segment_stores_over(const vpps_segments *s, uint32_t segment, uint32_t u);
void vpps_segments_free(vpps_segments *s);

/* Returns whether a value, once stored in memory, is read only by products in tiles and by gradients of parameters. */
bool vpps_only_products_read(const vpps_compiled_cell *c, uint32_t v);

/* Returns the most rows that any VP of the group owns of a value with `rows` rows. */
uint32_t vpps_most_rows(const vpps_cell_needs *needs, uint32_t rows);

/* Returns the most elements of a value that a VP has per item: its own rows in a stage whose rows are dealt to VPs, else all rows. */
uint32_t vpps_segment_width(const vpps_segments *s, uint32_t v);

static inline bool vpps_is_dealt(const vpps_segments *s, uint32_t v) {
    return s->p->rows && vpps_rows_dealt(&s->c->needs, s->c->values[v].rows);
}

/* Returns operand i of a step. */
static inline const vpps_operand *vpps_operand_of(const vpps_segments *s, const vpps_program_step *step, uint32_t i) {
    return &s->p->operands[step->first + i];
}

/* Returns the value to which a product is added, or NULL if there is none or it is a vector parameter (bias). */
static inline const vpps_operand *vpps_start_of(const vpps_program_step *product) {
    const vpps_operand *start = &product->product.start;
    return start->place && start->value != product->to.value ? start : NULL;
}

/* Returns the bias vector of a product; VPPS_NO_PARAM: none. */
static inline vpps_param vpps_bias_param(const vpps_program_step *product) {
    return product->product.start.place && !vpps_start_of(product) ? product->product.start.at : VPPS_NO_PARAM;
}

/* Returns whether each thread that runs the elementwise step reads the operand only at the thread's own item and element. */
static inline bool vpps_reads_alike(const vpps_program_step *step, const vpps_operand *o) {
    const uint32_t words = vpps_operand_words(o);
    const bool scalar = o->access == VPPS_ACCESS_SCALAR && !o->element && words == 1;
    return step->kind == VPPS_STEP_RUN && vpps_instructions[step->run.of.opcode].form == VPPS_FORM_EW &&
           o->axis == step->axis && words == vpps_operand_words(&step->to) && (o->access == VPPS_ACCESS_OWN || scalar);
}
