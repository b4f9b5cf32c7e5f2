/* generate_stage.h - the interfaces between the files that write a stage. See segments.h for the parts of a stage.
 *
 *   generate_places.c    where values and numbers are, as expressions; stores
 *   generate_products.c  segments of products of dealt rows      generate_whole.c  of whole vectors, of matrices of one VP
 *   generate_elements.c  segments of elements
 *   generate_stage.c     the stage's function
 */
#pragma once

#include "codegen/generate_work.h"
#include "codegen/segments.h"

typedef struct vpps_stage_work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    vpps_segments s;
    FILE *out;
    uint32_t segment, tile;
    bool joined;         /* the segment finishes the products of the preceding one */
    bool loaded_early;   /* and its operands were loaded before them */
    uint32_t chunk;      /* items of a product at a time */
    uint32_t part_words; /* of shared memory, for the sums of warps */
    /* Copies, in shared memory, of a segment's operands: copy_buffers buffers of VPPS_COPY_ITEMS items each. */
    uint32_t copies_at;  /* where they begin, after the weights */
    uint32_t copy_words; /* the most that all buffers may take */
    uint32_t copy_buffers;
    uint32_t copy_item_words; /* of an item, for all operands that are copied; 0: none is */
    uint32_t *copy_at;    /* of every operand: where in an item's words its copy begins; VPPS_NONE: it is not copied */
    uint32_t *part_at;    /* of every product by rows: where in an item's words its rows' sums begin */
    uint32_t *item_words; /* of every segment: of an item, for the sums of all its products' rows */
} vpps_stage_work;

static inline const vpps_cell_value *vpps_stage_value(const vpps_stage_work *w, uint32_t v) { return &w->c->values[v]; }
static inline const vpps_operand *vpps_step_operand(const vpps_stage_work *w, const vpps_program_step *s, uint32_t i) {
    return vpps_operand_of(&w->s, s, i);
}

/* Step k of a segment. */
static inline const vpps_segment_step *vpps_step_of(const vpps_stage_work *w, const vpps_segment *g, uint32_t k) {
    return &w->s.steps[g->first + k];
}

/* Has the value a slot? */
static inline bool vpps_in_slot(const vpps_stage_work *w, uint32_t v) {
    return w->s.slot[v] != VPPS_NONE && w->s.made_in[v] != VPPS_NONE;
}

/* Does the loop over elements that is being written make it? */
bool vpps_made_in_loop(const vpps_stage_work *w, uint32_t v);

/* ---- generate_places.c
 *
 * Names in a kernel's text: f0, f1 ... the tile's first vertex and members of each list; n0, n1 ... how many; ls1 ... starts of lists;
 * k0, k1 ... records; s5 the slot of value 5; v5 value 5 of the thread's element; item, e, element the item, the element among those
 * that the VP has and among all; vx the item's vertex. */

/* Writes an element of an item, counted in the tile: where it is in memory; in its slot; in its slot or else in memory, which counts all
 * elements. */
void vpps_put_memory(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
void vpps_put_slot(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
void vpps_put_element(const vpps_stage_work *w, uint32_t v, const char *item, const char *in_slot,
                      const char *in_memory);
/* The same where both count the elements alike: the element is printed. */
void vpps_put_at(const vpps_stage_work *w, uint32_t v, const char *item, const char *element, ...)
    __attribute__((format(printf, 4, 5)));
static inline void vpps_put_pointer(const vpps_stage_work *w, uint32_t v, const char *item) {
    fputc('&', w->out);
    vpps_put_at(w, v, item, "0u");
}

/* The item of an operand that belongs to the step's current one. */
static inline const char *vpps_item_for(uint32_t axis, const vpps_operand *o) {
    return o->axis == axis || !axis ? "item" : "vx";
}

/* Declares vx, where items are members. */
void vpps_put_vertex(const vpps_stage_work *w, uint32_t axis);

/* The numbers of an instruction: real, whole, in [0, 1). */
void vpps_put_f(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_u(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_random(const vpps_stage_work *w, const vpps_program_step *s);

/* Stores vV: in its slot, where a later segment reads it; and where it is kept and contributed, from `from`. */
void vpps_store_in_slot(const vpps_stage_work *w, uint32_t v);
void vpps_store_in_memory(const vpps_stage_work *w, uint32_t v, const char *from);
void vpps_store_made(const vpps_stage_work *w, uint32_t v);

/* Stores a finished element e of a product's rows: in its slot, and in memory unless a later segment does that. */
static inline void vpps_store_finished(const vpps_stage_work *w, uint32_t v) {
    if (w->s.late[v]) {
        vpps_store_in_slot(w, v);
    } else {
        vpps_store_made(w, v);
    }
}

/* ---- generate_elements.c */

/* Loads the operands of a segment of elements before the products that it finishes, if there is a thread for each element. */
bool vpps_put_early_loads(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* Writes a segment of elements. `loaded`: scratch, a byte for each of the cell's values. */
void vpps_put_elements(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* ---- generate_whole.c: an instruction of whole vectors; of each vertex's list; a product that one VP makes alone */

void vpps_put_whole(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_lists(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_matrices(const vpps_stage_work *w, const vpps_program_step *s);

/* ---- generate_products.c */

/* Decides which products are streamed, and where the sums of the others lie. False: out of memory. */
bool vpps_place_products(const vpps_stage_work *w);

/* Places the copies of the segment's operands: an item's, one after the other. */
void vpps_place_copies(vpps_stage_work *w, const vpps_segment *g);

/* Can the segment after a segment of products finish these? It can if its threads read each item's products at their own element only. */
bool vpps_can_join(const vpps_stage_work *w, uint32_t segment);

/* Writes a segment of products; joined: the next segment finishes them. False: out of memory. */
bool vpps_put_products(vpps_stage_work *w, const vpps_segment *g, bool joined);

/* Declares the results of the preceding segment's products at the thread's element. */
void vpps_put_joined(const vpps_stage_work *w, const vpps_segment *products);
