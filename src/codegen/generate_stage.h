/* generate_stage.h - what the parts of a stage's text hand to each other. See segments.h for what a stage is made of. */
#ifndef VPPS_GENERATE_STAGE_H
#define VPPS_GENERATE_STAGE_H

#include "codegen/generate_work.h"
#include "codegen/segments.h"

enum { VPPS_NEAR_ITEMS = 4 /* at a time, whose operands are brought near */ };

typedef struct vpps_stage_work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    vpps_segments s;
    FILE *out;
    uint32_t segment, tile;
    bool joined;          /* the segment finishes the products of the one before */
    bool loaded_early;    /* and its operands were loaded before them */
    uint32_t chunk;       /* items of a product at a time */
    uint32_t part_words;  /* of shared memory, for the sums of warps */
    uint32_t near_at;     /* where in shared memory, behind the weights, operands of products are brought */
    uint32_t near_item;   /* words there of an item, for the segment's operands; 0: they are read where they lie */
    uint32_t near_turns;  /* of so many times VPPS_NEAR_ITEMS items */
    uint32_t near_words;  /* for all of them, at most */
    uint32_t *near;       /* of every operand of the segment: where it begins there; VPPS_NONE: read where it lies */
    uint8_t *streamed;    /* of every product by rows: one of its matrices is read from memory */
    uint32_t *part_at;    /* of every other: where in an item's words its rows' sums begin */
    uint32_t *item_words; /* of every segment: of an item, for the sums of all its products' rows */
} vpps_stage_work;

static inline const vpps_cell_value *vpps_stage_value(const vpps_stage_work *w, uint32_t v) { return &w->c->values[v]; }
static inline const vpps_cell_arg *vpps_stage_arg(const vpps_stage_work *w, const vpps_cell_value *x, uint32_t i) {
    return &w->c->args[x->first_arg + i];
}

/* Has the value a slot? */
static inline bool vpps_in_slot(const vpps_stage_work *w, uint32_t v) {
    return w->s.slot[v] != VPPS_NONE && w->s.made_in[v] != VPPS_NONE;
}

/* generate_elements.c */

/* Any element of any item, from where it lies; a pointer to the item's first. */
void vpps_put_at(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
void vpps_put_pointer(const vpps_stage_work *w, uint32_t v, const char *item);

/* The item of an argument that the current one of a value has, where it is no list that is gone over. */
const char *vpps_item_for(const vpps_stage_work *w, const vpps_cell_value *x, uint32_t v);

/* The numbers of an instruction: real, whole. */
void vpps_put_f(const vpps_stage_work *w, const vpps_cell_value *x);
void vpps_put_u(const vpps_stage_work *w, const vpps_cell_value *x);

/* Stores vV: in its slot, where a later segment reads it; and where it is kept and contributed. */
void vpps_store_in_slot(const vpps_stage_work *w, uint32_t v);
void vpps_store_made(const vpps_stage_work *w, uint32_t v);

/* Loads the operands of a segment of elements before the products that it finishes, if there is a thread for each element. */
bool vpps_put_early_loads(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* A segment of elements. `loaded`: a byte for each of the cell's values, to work with. */
void vpps_put_elements(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* generate_whole.c: an instruction of whole vectors; of each vertex's list; a product that one VP makes alone. */
void vpps_put_whole(const vpps_stage_work *w, uint32_t v);
void vpps_put_lists(const vpps_stage_work *w, uint32_t v);
void vpps_put_matrices(const vpps_stage_work *w, uint32_t v);

/* generate_products.c */

/* Which products are streamed, and where the others' sums lie. False: out of memory. */
bool vpps_place_products(const vpps_stage_work *w);

/* Where the operands of the segment's products are brought, all of an item's one behind the other. */
void vpps_place_near(vpps_stage_work *w, const vpps_segment *g);

/* Can the segment behind products finish them? A thread of it has all rows of an item's products at its own element. */
bool vpps_can_join(const vpps_stage_work *w, uint32_t segment);

/* A segment of products; joined: the next one finishes them. False: out of memory. */
bool vpps_put_products(vpps_stage_work *w, const vpps_segment *g, bool joined);

/* What the products of the segment before have become, of the thread's element; and to where it is wanted. */
void vpps_put_joined(const vpps_stage_work *w, const vpps_segment *products);
void vpps_store_finished(const vpps_stage_work *w, uint32_t v);

#endif
