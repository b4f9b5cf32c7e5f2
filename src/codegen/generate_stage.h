/* generate_stage.h - interfaces of files that generate a stage (part of a cell) by segments (steps that run together).
 *
 *   generate_places.c    expressions for elements of values and for numbers; stores
 *   generate_products.c  segments of products whose rows VPs (virtual processors, CTAs) divide
 *   generate_whole.c     segments over whole vectors, and segments of products that one VP computes alone
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
    bool lists;          /* whether some values belong to members (nodes that a vertex reads) of a list input */
    bool joined;         /* whether the elementwise steps being written first add up partial sums of products */
    bool loaded_early;   /* whether code that adds up products' sums loads its other operands before the products */
    uint32_t chunk;      /* number of vertices or nodes of their lists that a product handles at a time */
    uint32_t part_words; /* words of shared memory for the warps' partial sums of products */
    /* Vectors that products read are copied to copy_buffers buffers in shared memory, each for VPPS_COPY_ITEMS items (vertices or list
     * members). copies_at: first word of the buffers, after the weights. */
    uint32_t copies_at;
    uint32_t near_words; /* stages with lists: words of shared memory for buffers of values (slots) that fit there */
    uint32_t copy_words; /* most words of shared memory for copies of the vectors that products read */
    uint32_t copy_buffers;
    uint32_t copy_item_words; /* words of a buffer for the copied vectors of a vertex or list node; 0: no copies */
    uint32_t *copy_at;    /* each value's first word among a vertex's vectors copied for products; VPPS_NONE: no copy */
    uint32_t *part_at;    /* for each product: where the partial sums of its rows begin among a vertex's partial sums */
    uint32_t *item_words; /* for each segment (steps that run together): words of a vertex's partial sums of products */
    uint32_t *row_words;  /* for each segment (steps run together): words of a product row's sums: 1, or 1 per warp */
} vpps_stage_work;

/* Returns how many CTAs divide the columns of each product of a stage (part of a cell), each for a partial sum. */
static inline uint32_t vpps_stage_shares(const vpps_stage_work *w) {
    return vpps_shares_of(&w->c->values[w->c->order[w->c->stages[w->s.stage].first]]);
}

/* Returns an operand with value v's rows, columns, axis (0: one per vertex; d: one per node of list input d - 1). */
static inline const vpps_operand *vpps_stage_value(const vpps_stage_work *w, uint32_t v) {
    return w->s.made_by[v] ? &w->s.made_by[v]->to : w->s.memory[v];
}

static inline const vpps_segment_step *vpps_step_of(const vpps_stage_work *w, const vpps_segment *g, uint32_t k) {
    return &w->s.steps[g->first + k];
}

/* Returns whether the value has a slot (a buffer in shared or scratch memory). */
static inline bool vpps_in_slot(const vpps_stage_work *w, uint32_t v) {
    return w->s.slot[v] != VPPS_NONE && w->s.made_in[v] != VPPS_NONE;
}

/* Returns whether the value is computed by the elementwise loop whose code is being written. */
bool vpps_made_in_loop(const vpps_stage_work *w, uint32_t v);

/* ---- generate_places.c
 *
 * Names in a kernel's text. f0: number of the tile's first vertex (tile: vertices processed together); f1, f2: number
 * of the first node (member) that list inputs 0, 1 of these vertices read. n0, n1, n2: numbers of vertices and members. `item`: a vertex or
 * member; vx: the vertex whose list has the member. e: number of an element among those that the VP (a CTA) owns;
 * `element`: its number in the whole value. ls1: array with the number of each vertex's first member of list 0. k0, k1:
 * offsets of kept values of vertices and members. s5: the buffer (slot) of value 5; v5: the thread's element of it. */

/* Writes a C expression for an element of a value in memory. `item`: number of a vertex, or node that a list input reads, in the tile. */
void vpps_put_memory(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
/* Writes a C expression for an element of value v in its slot, a buffer in shared or scratch memory. */
void vpps_put_slot(const vpps_stage_work *w, uint32_t v, const char *item, const char *element);
/* Writes a C expression for an element of value v. in_slot: the element's number if v has a slot (a buffer, perhaps of only some rows of
 * v); in_memory: the element's number otherwise. */
void vpps_put_element(const vpps_stage_work *w, uint32_t v, const char *item, const char *in_slot,
                      const char *in_memory);
/* Writes a C expression for an element of value v in its slot (buffer) or in memory. `element`: printf format of the element's number. */
void vpps_put_at(const vpps_stage_work *w, uint32_t v, const char *item, const char *element, ...)
    __attribute__((format(printf, 4, 5)));
static inline void vpps_put_pointer(const vpps_stage_work *w, uint32_t v, const char *item) {
    fputc('&', w->out);
    vpps_put_at(w, v, item, "0u");
}

/* Returns the variable, in the kernel's text, by which a step finds operand o: vx, if a step for each node (`item`) that a list input reads
 * takes a value of the vertex that reads the node; else `item`. */
static inline const char *vpps_item_for(uint32_t axis, const vpps_operand *o) {
    return o->axis == axis || !axis ? "item" : "vx";
}

/* If the step computes a value for each node that a list input reads: declares vx, the vertex that reads the thread's node. */
void vpps_put_vertex(const vpps_stage_work *w, uint32_t axis);

/* Write C expressions for an instruction's argument: a real number (put_f), an integer (put_u), a random number in [0, 1) (put_random). */
void vpps_put_f(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_u(const vpps_stage_work *w, const vpps_program_step *s);
void vpps_put_random(const vpps_stage_work *w, const vpps_program_step *s);

/* Writes code that stores the thread's element of value v in v's slot (buffer), if it is read after a barrier. */
void vpps_store_in_slot(const vpps_stage_work *w, uint32_t v);
/* Writes code that stores variable `from` as an element of v in memory, if other vertices or cell parts read it. */
void vpps_store_in_memory(const vpps_stage_work *w, uint32_t v, const char *from);
/* Writes code that stores the thread's element of value v in v's slot (buffer) and in memory, wherever later code reads it. */
void vpps_store_made(const vpps_stage_work *w, uint32_t v);

/* Writes code that stores an element of product v, the total of all partial sums, in v's buffer (slot) and in memory.
 * In memory, a `late` product is stored by later steps, after a barrier, as it overwrites a value that others read. */
static inline void vpps_store_finished(const vpps_stage_work *w, uint32_t v) {
    if (w->s.late[v]) {
        vpps_store_in_slot(w, v);
    } else {
        vpps_store_made(w, v);
    }
}

/* ---- generate_elements.c */

/* g: elementwise steps that add up the warps' sums of products. Writes code that loads g's other operands before the
 * products run; none unless the CTA has a thread for each element. Returns whether code was written. */
bool vpps_put_early_loads(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* Writes the code of an elementwise segment (list of steps). `loaded` is scratch memory, a byte for each value of the cell. */
void vpps_put_elements(const vpps_stage_work *w, const vpps_segment *g, uint8_t *loaded);

/* ---- generate_whole.c */

/* Writes code for an instruction over whole vectors, such as softmax. */
void vpps_put_whole(const vpps_stage_work *w, const vpps_program_step *s);
/* Writes code for an instruction (such as softmax) over the members of each vertex's list: the nodes that it reads. */
void vpps_put_lists(const vpps_stage_work *w, const vpps_program_step *s);
/* Writes code for a product that one virtual processor (CTA) computes alone, with a whole matrix, which it reads in memory. */
void vpps_put_matrices(const vpps_stage_work *w, const vpps_program_step *s);

/* ---- generate_products.c */

/* Assigns shared memory to warps' partial sums of products, in fp32 only of products with vectors of over 8 elements.
 * Returns false if out of memory. */
bool vpps_place_products(const vpps_stage_work *w);

/* Assigns shared memory to copies of vectors that the matrix products of segment g (steps that run together) read. The
 * copies for one vertex, or for one node of a list that it reads, are adjacent. */
void vpps_place_copies(vpps_stage_work *w, const vpps_segment *g);

/* Returns whether segment number `segment` (steps that run together) is products whose partial sums the next segment can
 * add up. The next one then is elementwise, and each of its threads reads the products only at the element that it computes. */
bool vpps_can_join(const vpps_stage_work *w, uint32_t segment);

/* Writes the code of segment g, whose steps are matrix products. If `joined` is false, the code also adds up the warps' partial sums of the
 * products; otherwise the next segment does. Returns false if out of memory. */
bool vpps_put_products(vpps_stage_work *w, const vpps_segment *g, bool joined);

/* Writes the declaration of a variable for each product: the thread's element, the total of all warps' partial sums. */
void vpps_put_joined(const vpps_stage_work *w, const vpps_segment *products);
