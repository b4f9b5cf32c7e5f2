/* tile.h - runs stages in tiles: a few vertices at a time, whose values stay in the core's nearest caches between two
 * steps. A slot of the stage's program (cell/program.h) is an array in the tile's memory, one entry per item (vertex or
 * list member): the rows that the VP owns if rows are dealt to VPs, else whole values. */
#pragma once

#include "cell/program.h"
#include "runtime/cpu/cpu.h"

typedef struct vpps_tile_slot {
    size_t at;      /* widths of the preceding slots of the axis; its array begins at `at` times the number of items */
    uint32_t width; /* floats of one item */
} vpps_tile_slot;

/* Layout of a stage's tiles for one VP of a group. */
typedef struct vpps_tile_layout {
    vpps_tile_slot *slots;      /* places of slots (buffers of values), indexed by slot of the program */
    vpps_rows *own;             /* the VP's rows, indexed by `dealt` of operands; own[0] is empty */
    uint32_t floats[VPPS_AXES]; /* floats of all slots of one item, for each axis */
    uint32_t tile;              /* number of vertices per tile */
} vpps_tile_layout;

/* The current tile, or a part of its vertices. */
typedef struct vpps_tile {
    vpps_vp *vp;
    const vpps_kernels *kernels;
    const vpps_compiled_cell *c;
    const vpps_program *p;
    const vpps_tile_layout *layout;
    const vpps_block_view *view;
    uint32_t stage, member;
    uint32_t first[VPPS_AXES],
        n[VPPS_AXES];             /* for each axis, the part's items: the first, counted in the block, and how many */
    uint32_t whole[VPPS_AXES];    /* items of the whole tile */
    uint32_t before;              /* vertices of the tile that precede the part */
    const uint32_t *live;         /* the block's vertices that run, counted by first[0]; NULL: all of them run */
    float *region[VPPS_AXES];     /* memory of the slots of each axis */
    float *records[VPPS_RECORDS]; /* address where item 0 of the block would have its record */
    uint32_t task_first[VPPS_AXES], task_items[VPPS_AXES];
    uint64_t contributions; /* offset of the task's contributions in the pool */
} vpps_tile;

/* Makes cell->device_program, the layouts of all its programs for all VPs of a group, unless it exists. most: vertices per tile. Fails with
 * MEMORY. */
vpps_status vpps_make_tiles(vpps_compiled_cell *cell, uint32_t most);
const vpps_tile_layout *vpps_tiles_of(const vpps_compiled_cell *c, uint32_t stage, uint32_t member);
const vpps_program *vpps_placed_program(const vpps_compiled_cell *c, uint32_t stage);

/* Makes a version of the program with fewer copies (in_place.c). The caller frees its steps and operands; everything
 * else belongs to the given program. Returns false if out of memory. */
bool vpps_place_in_memory(const vpps_program *given, const vpps_cell_contribution *contributions, vpps_program *out);

/* ---- operands: tile.c */

/* Addresses of an operand's items: item i is at base + i * stride, or at base + offsets[i]; with `live`, i is replaced by live[i]. */
typedef struct vpps_span {
    float *base;
    size_t stride;
    const uint32_t *offsets, *live;
} vpps_span;

/* Returns the addresses of an operand's items in the part; of a dealt operand, those of the VP's own rows. If every VP
 * has a share of the value: the VP's own share, or with first_share the first one. */
vpps_span vpps_span_of(const vpps_tile *t, const vpps_operand *o, bool first_share);

static inline float *vpps_span_at(const vpps_span *w, uint32_t i) {
    const uint32_t item = w->live ? w->live[i] : i;
    return w->base + (w->offsets ? w->offsets[item] : item * w->stride);
}

/* Returns the address of a slot's items in the part; they are adjacent. */
static inline float *vpps_slot_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_tile_slot *slot = &t->layout->slots[o->at];
    return t->region[o->axis] + slot->at * t->whole[o->axis] + (size_t)t->before * slot->width;
}

/* Returns the number of an operand's elements that this virtual processor computes with. */
static inline uint32_t vpps_width_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_rows own = t->layout->own[o->dealt];
    return o->dealt ? own.end - own.first : vpps_operand_words(o);
}
/* Returns the VP's first row of an operand. */
static inline uint32_t vpps_first_of(const vpps_tile *t, const vpps_operand *o) {
    return t->layout->own[o->dealt].first;
}

/* Returns the number in the block of the part's vertex i. */
static inline uint32_t vpps_vertex_at(const vpps_tile *t, uint32_t i) {
    return t->live ? t->live[t->first[0] + i] : t->first[0] + i;
}

/* ---- steps: steps.c, tile_products.c. The functions return false if out of memory. */

bool vpps_tile_product(const vpps_tile *t, const vpps_program_step *s);

/* Runs all steps of the program over the tile. */
bool vpps_run_tile(vpps_tile *t);
