/* generate_stage.h - interfaces between the files that generate the code of a stage. segments.h describes the segments of a stage.
 *
 *   generate_places.c    expressions for the places of values and numbers; stores
 *   generate_products.c  segments of products whose rows are dealt to VPs
 *   generate_whole.c     segments over whole vectors, and of products that one VP makes alone
 *   generate_elements.c  elementwise segments
 *   generate_stage.c     the stage's function */
#pragma once

#include "codegen/generate_work.h"
#include "codegen/segments.h"

typedef struct vpps_stage_work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    vpps_segments s;
    FILE *out;
    uint32_t segment, tile;
    bool joined;         /* the current segment finishes the products of the preceding segment */
    bool loaded_early;   /* operands of the joined segment are loaded before the products */
    uint32_t chunk;      /* vertices or list members that a product handles at a time */
    uint32_t part_words; /* words of shared memory for the warps' partial sums */
    /* Copies of a segment's operands in shared memory: copy_buffers buffers, each for VPPS_COPY_ITEMS items. */
    uint32_t copies_at;  /* first word of the copies, after the weights */
    uint32_t copy_words; /* most words that all buffers may take together */
    uint32_t copy_buffers;
    uint32_t copy_item_words; /* words per item for all copied operands; 0: none is copied */
    uint32_t *copy_at;    /* indexed by operand: first word of its copy among an item's words; VPPS_NONE: not copied */
    uint32_t *part_at;    /* indexed by product: first word of its rows' sums among an item's words */
    uint32_t *item_words; /* indexed by segment: words per item for the row sums of all its products */
} vpps_stage_work;

static inline const vpps_cell_value *vpps_stage_value(const vpps_stage_work *w, uint32_t v) { return &w->c->values[v]; }
static inline const vpps_operand *vpps_step_operand(const vpps_stage_work *w, const vpps_program_step *s, uint32_t i) {
    return vpps_operand_of(&w->s, s, i);
}

/* Returns step k of a segment. */
static inline const vpps_segment_step *vpps_step_of(const vpps_stage_work *w, const vpps_segment *g, uint32_t k) {
    return &w->s.steps[g->first + k];
}

/* Returns whether the value has a slot (a buffer of the stage, in shared or scratch memory). */
static inline bool vpps_in_slot(const vpps_stage_work *w, uint32_t v) {
    return w->s.slot[v] != VPPS_NONE && w->s.made_in[v] != VPPS_NONE;
}

/* Returns whether the loop over elements that is being written computes the value. */
bool vpps_made_in_loop(const vpps_stage_work *w, uint32_t v);

/* ---- generate_places.c
 *
 * Names in a kernel's text: f0, f1 ... the tile's first vertex and first member of each list; n0, n1 ... their numbers; ls1 ... starts of
 * lists; k0, k1 ... records; s5 the slot of value 5; v5 value 5 of the thread's element; item the item; vx the item's vertex; e and element
 * the element, counted among those that the VP has and among all. */

/* Writes a C expression for an element of a value in memory. `item` counts within the tile of vertices. */
void vpps_put_memory(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
/* Writes a C expression for an element of a value in its slot (buffer of the stage). */
void vpps_put_slot(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
/* Writes a C expression for an element: in the value's slot if any, else in memory. in_slot counts the VP's elements, in_memory all. */
void vpps_put_element(const vpps_stage_work *w, uint32_t v, const char *item, const char *in_slot,
                      const char *in_memory);
/* Writes a C expression for an element whose number, a printf format, is the same in the slot and in memory. */
void vpps_put_at(const vpps_stage_work *w, uint32_t v, const char *item, const char *element, ...)
    __attribute__((format(printf, 4, 5)));
static inline void vpps_put_pointer(const vpps_stage_work *w, uint32_t v, const char *item) {
    fputc('&', w->out);
    vpps_put_at(w, v, item, "0u");
}

/* Returns the name of the operand's item that belongs to the step's current item: the item itself, or its vertex. */
static inline const char *vpps_item_for(uint32_t axis, const vpps_operand *o) {
    return o->axis == axis || !axis ? "item" : "vx";
}

/* Writes the declaration of vx, the vertex of an item, if items are list members. */
void vpps_put_vertex(const vpps_stage_work *w, uint32_t axis);

/* Write the constant arguments of an instruction: real numbers, integers, or a random number in [0, 1). */
void vpps_put_f(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_u(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_random(const vpps_stage_work *w, const vpps_program_step *s);

/* Writes code that stores the thread's element of value V in the value's slot, if a later segment reads it. */
void vpps_store_in_slot(const vpps_stage_work *w, uint32_t v);
/* Writes code that stores the element named `from` in value V's record and contributions. */
void vpps_store_in_memory(const vpps_stage_work *w, uint32_t v, const char *from);
/* Writes code that stores the element in value V's slot, record and contributions. */
void vpps_store_made(const vpps_stage_work *w, uint32_t v);

/* Writes code that stores a finished element e of a product's rows in the slot, and in memory unless a later segment does so. */
static inline void vpps_store_finished(const vpps_stage_work *w, uint32_t v) {
    if (w->s.late[v]) {
        vpps_store_in_slot(w, v);
    } else {
        vpps_store_made(w, v);
    }
}

/* ---- generate_elements.c */

/* Loads the operands of an elementwise segment before the products that the segment finishes, if the CTA has a thread
 * for each element. Returns whether the loads were written. */
bool vpps_put_early_loads(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* Writes an elementwise segment. `loaded` is scratch memory, a byte for each value of the cell. */
void vpps_put_elements(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* ---- generate_whole.c: write code for an instruction over whole vectors; over each vertex's list; for a product that one VP computes */

void vpps_put_whole(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_lists(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_matrices(const vpps_stage_work *w, const vpps_program_step *s);

/* ---- generate_products.c */

/* Decides which products read their weights from memory, and where the row sums of the others lie. Returns false if out of memory. */
bool vpps_place_products(const vpps_stage_work *w);

/* Places the copies of the segment's operands: all of one item's copies are adjacent. */
void vpps_place_copies(vpps_stage_work *w, const vpps_segment *g);

/* Returns whether the elementwise segment after a segment of products can finish these products: its threads must read
 * an item's products only at their own element. */
bool vpps_can_join(const vpps_stage_work *w, uint32_t segment);

/* Writes a segment of products. If `joined`, the next segment finishes them. Returns false if out of memory. */
bool vpps_put_products(vpps_stage_work *w, const vpps_segment *g, bool joined);

/* Declares variables with the results of the preceding segment's products at the thread's element. */
void vpps_put_joined(const vpps_stage_work *w, const vpps_segment *products);
