/* tile.h - stages over tiles: some vertices at a time, whose values between two steps stay in the core's nearest caches. A slot of
 * the stage's program (cell/program.h) is an array in a tile, item after item: of the rows that the VP owns where rows are shared
 * out, else of whole values. */
#pragma once

#include "cell/program.h"
#include "runtime/cpu/cpu.h"

typedef struct vpps_tile_slot {
    size_t at;      /* floats before it, for each item of its axis, in the axis's region */
    uint32_t width; /* floats of an item */
} vpps_tile_slot;

/* The layout of a program for one VP of a group. */
typedef struct vpps_tile_layout {
    vpps_tile_slot *slots;      /* of each slot of the program */
    vpps_rows *own;             /* by `dealt` of operands: the VP's rows; own[0] is empty */
    uint32_t floats[VPPS_AXES]; /* of an item, in the region of its axis */
    uint32_t tile;              /* vertices at a time */
} vpps_tile_layout;

/* The tile at hand, or a part of its vertices. */
typedef struct vpps_tile {
    vpps_vp *vp;
    const vpps_kernels *kernels;
    const vpps_compiled_cell *c;
    const vpps_program *p;
    const vpps_tile_layout *layout;
    const vpps_block_view *view;
    uint32_t stage, member;
    uint32_t first[VPPS_AXES], n[VPPS_AXES]; /* items of the part: counted in the block; how many */
    uint32_t whole[VPPS_AXES];               /* items of the whole tile */
    uint32_t before;                         /* vertices of the tile before the part */
    const uint32_t *live;         /* the block's vertices that run, in which first[0] counts; NULL: all of them run */
    float *region[VPPS_AXES];     /* of slots */
    float *records[VPPS_RECORDS]; /* where item 0 of the block would have its record */
    uint32_t task_first[VPPS_AXES], task_items[VPPS_AXES];
    uint64_t contributions; /* of the task, in the pool */
} vpps_tile;

/* Makes cell->device_program, the layouts of all its programs and all VPs of a group, when it is not there yet. most: vertices
 * at a time. Fails with MEMORY. */
vpps_status vpps_make_tiles(vpps_compiled_cell *cell, uint32_t most);
const vpps_tile_layout *vpps_tiles_of(const vpps_compiled_cell *c, uint32_t stage, uint32_t member);
const vpps_program *vpps_placed_program(const vpps_compiled_cell *c, uint32_t stage);

/* The program with fewer copies, of a cell with these contributions: see in_place.c. Its steps and operands are the caller's; all else is
 * the given one's. False: out of memory. */
bool vpps_place_in_memory(const vpps_program *given, const vpps_cell_contribution *contributions, vpps_program *out);

/* ---- operands: tile.c */

/* The items of an operand, one after the other: item i at base + i * stride, or at base + offsets[i]; with `live`, at live[i] instead
 * of i. */
typedef struct vpps_span {
    float *base;
    size_t stride;
    const uint32_t *offsets, *live;
} vpps_span;

/* The part's items of an operand, the VP's own rows of one that is dealt. Of shares: the VP's own, or, `first_share`, the first. */
vpps_span vpps_span_of(const vpps_tile *t, const vpps_operand *o, bool first_share);

static inline float *vpps_span_at(const vpps_span *w, uint32_t i) {
    const uint32_t item = w->live ? w->live[i] : i;
    return w->base + (w->offsets ? w->offsets[item] : item * w->stride);
}

/* The part's items of a slot, side by side. */
static inline float *vpps_slot_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_tile_slot *slot = &t->layout->slots[o->at];
    return t->region[o->axis] + slot->at * t->whole[o->axis] + (size_t)t->before * slot->width;
}

/* Elements that the VP has of an operand. */
static inline uint32_t vpps_width_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_rows own = t->layout->own[o->dealt];
    return o->dealt ? own.end - own.first : vpps_operand_words(o);
}
static inline uint32_t vpps_first_of(const vpps_tile *t, const vpps_operand *o) {
    return t->layout->own[o->dealt].first;
}

/* The block's vertex that is number i of the part. */
static inline uint32_t vpps_vertex_at(const vpps_tile *t, uint32_t i) {
    return t->live ? t->live[t->first[0] + i] : t->first[0] + i;
}

/* ---- steps: steps.c, tile_products.c. False: out of memory. */

bool vpps_tile_product(const vpps_tile *t, const vpps_program_step *s);

/* Runs all steps over the tile. */
bool vpps_run_tile(vpps_tile *t);
