/* generate_stage.h - interfaces between the files that generate the code of a stage, a segment of its program (segments.h) at a time.
 *
 *   generate_places.c    expressions for the places of values and numbers; stores
 *   generate_products.c  segments of products whose rows are dealt to VPs
 *   generate_whole.c     segments over whole vectors, and of products that one VP makes alone
 *   generate_elements.c  elementwise segments
 *   generate_stage.c     the stage's function */
#pragma once

#include "cell/segments.h"
#include "codegen/generate_work.h"

typedef struct vpps_stage_work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    vpps_segments s;
    FILE *out;
    uint32_t segment, tile;
    bool lists;          /* whether the stage has values of list members */
    bool joined;         /* whether the current segment also sums up the preceding segment's products */
    bool loaded_early;   /* whether the segment that sums products up has loaded its operands before the products */
    uint32_t chunk;      /* number of vertices or list members that a product handles at a time */
    uint32_t part_words; /* words of shared memory for the warps' partial sums of products */
    /* Operands of products are copied to copy_buffers buffers in shared memory, each for VPPS_COPY_ITEMS items (vertices or list
     * members). copies_at: first word of the buffers, after the weights. */
    uint32_t copies_at;
    uint32_t copy_words; /* words of shared memory that the buffers of copies may take together */
    uint32_t copy_buffers;
    uint32_t copy_item_words; /* words of a buffer per item, for all copied operands; 0: none is copied */
    uint32_t *copy_at;    /* indexed by operand: where its copy begins among an item's words; VPPS_NONE: not copied */
    uint32_t *part_at;    /* indexed by product: where its rows' partial sums begin among an item's words */
    uint32_t *item_words; /* indexed by segment: number of an item's words, for the partial sums of all its products */
} vpps_stage_work;

/* Returns an operand with the axis, rows and columns of a value that the stage reads or makes. */
static inline const vpps_operand *vpps_stage_value(const vpps_stage_work *w, uint32_t v) {
    return w->s.made_by[v] ? &w->s.made_by[v]->to : w->s.memory[v];
}

/* Returns step k of a segment. */
static inline const vpps_segment_step *vpps_step_of(const vpps_stage_work *w, const vpps_segment *g, uint32_t k) {
    return &w->s.steps[g->first + k];
}

/* Returns whether the value has a slot (a buffer of the stage, in shared or scratch memory). */
static inline bool vpps_in_slot(const vpps_stage_work *w, uint32_t v) {
    return w->s.slot[v] != VPPS_NONE && w->s.made_in[v] != VPPS_NONE;
}

/* Returns whether the value is computed by the elementwise loop whose code is being written. */
bool vpps_made_in_loop(const vpps_stage_work *w, uint32_t v);

/* ---- generate_places.c
 *
 * Names in a kernel's text: f0 the first vertex of the tile (vertices processed together), f1 ... its first member of each list; n0, n1 ...
 * numbers of vertices and members; ls1 ... starts of lists; k0, k1 ... records; s5 the slot of value 5; v5 value 5 of the thread's element;
 * item a vertex or list member; vx the item's vertex; e the element's number among the VP's elements, `element` among all. */

/* Writes a C expression for an element of a value in memory. `item` numbers the vertex or list member within the tile. */
void vpps_put_memory(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
/* Writes a C expression for an element of a value in its slot (buffer of the stage). */
void vpps_put_slot(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
/* Writes a C expression for an element of value v: the VP's element in_slot if v has a slot (buffer), else element in_memory of all. */
void vpps_put_element(const vpps_stage_work *w, uint32_t v, const char *item, const char *in_slot,
                      const char *in_memory);
/* Writes a C expression for an element of value v in its slot (buffer) or in memory. `element`: printf format of the element's number. */
void vpps_put_at(const vpps_stage_work *w, uint32_t v, const char *item, const char *element, ...)
    __attribute__((format(printf, 4, 5)));
static inline void vpps_put_pointer(const vpps_stage_work *w, uint32_t v, const char *item) {
    fputc('&', w->out);
    vpps_put_at(w, v, item, "0u");
}

/* Returns the name, in the kernel's text, of the item at which a step reads an operand: its own item, or that item's vertex. */
static inline const char *vpps_item_for(uint32_t axis, const vpps_operand *o) {
    return o->axis == axis || !axis ? "item" : "vx";
}

/* Writes the declaration of the variable vx, the vertex to which an item belongs, if items are list members. */
void vpps_put_vertex(const vpps_stage_work *w, uint32_t axis);

/* Write C expressions for an instruction's argument: a real number (put_f), an integer (put_u), a random number in [0, 1) (put_random). */
void vpps_put_f(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_u(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_random(const vpps_stage_work *w, const vpps_program_step *s);

/* Writes code that stores the thread's element of value V in the value's slot, if a later segment reads it. */
void vpps_store_in_slot(const vpps_stage_work *w, uint32_t v);
/* Writes code that stores the variable `from` as an element of value V in memory: in its record and contributions (sums of gradients). */
void vpps_store_in_memory(const vpps_stage_work *w, uint32_t v, const char *from);
/* Writes code that stores the thread's element of value V in the value's slot and in memory. */
void vpps_store_made(const vpps_stage_work *w, uint32_t v);

/* Writes code that stores a finished element of a product's result in the slot, and in memory unless a later segment does so. */
static inline void vpps_store_finished(const vpps_stage_work *w, uint32_t v) {
    if (w->s.late[v]) {
        vpps_store_in_slot(w, v);
    } else {
        vpps_store_made(w, v);
    }
}

/* ---- generate_elements.c */

/* Writes code that loads an elementwise segment's operands before the products whose sums the segment finishes, if the CTA has a
 * thread for each element. Returns whether code was written. */
bool vpps_put_early_loads(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* Writes the code of an elementwise segment. `loaded` is scratch memory, a byte for each value of the cell. */
void vpps_put_elements(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* ---- generate_whole.c */

/* Writes code for an instruction over whole vectors, such as softmax. */
void vpps_put_whole(const vpps_stage_work *w, const vpps_program_step *s);
/* Writes code for an instruction over all members of each vertex's list. */
void vpps_put_lists(const vpps_stage_work *w, const vpps_program_step *s);
/* Writes code for a product that one VP computes with a whole matrix in memory. */
void vpps_put_matrices(const vpps_stage_work *w, const vpps_program_step *s);

/* ---- generate_products.c */

/* Assigns shared memory to the partial sums of all products; products of short vectors need none. Returns false if out of memory. */
bool vpps_place_products(const vpps_stage_work *w);

/* Places the copies of the segment's operands in shared memory; all copies for one item are adjacent. */
void vpps_place_copies(vpps_stage_work *w, const vpps_segment *g);

/* Returns whether the elementwise segment after a segment of products can add up these products' partial sums: each of its
 * threads must read the products only at its own element. */
bool vpps_can_join(const vpps_stage_work *w, uint32_t segment);

/* Writes the code of a segment of products. If `joined`, the next segment adds up the partial sums. Returns false if out of memory. */
bool vpps_put_products(vpps_stage_work *w, const vpps_segment *g, bool joined);

/* Writes declarations of variables with the results of the preceding segment's products at the thread's element. */
void vpps_put_joined(const vpps_stage_work *w, const vpps_segment *products);
