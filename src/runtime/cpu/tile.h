/* tile.h - runs stages in tiles: a few vertices at a time, whose values stay in the core's nearest caches between two steps. A stage's
 * program (cell/program.h) keeps values in numbered buffers ("slots"). In a tile, a slot is an array with an entry per item (vertex or list
 * member): only the rows that the virtual processor owns if rows are dealt to VPs, else whole values. */
#pragma once

#include "runtime/cpu/cpu.h"

typedef struct vpps_tile_slot {
    /* the slot (buffer) begins at `at` times the number of items; at: sum of widths of earlier slots on this axis (vertices, or a list) */
    size_t at;
    uint32_t width; /* number of floats of one item (vertex or list member) */
} vpps_tile_slot;

/* Layout of the memory of a stage's tiles, for one virtual processor of a group. */
typedef struct vpps_tile_layout {
    vpps_tile_slot *slots; /* layout of each slot (buffer) of the program, indexed by the slot's number */
    /* Rows of an operand that this virtual processor (thread) owns, indexed by the operand's `dealt`; 0: operands that are not divided */
    vpps_rows *own;
    /* for each axis (0: vertices; d: list members): number of floats of all its slots (buffers), for one vertex or member */
    uint32_t floats[VPPS_AXES];
    uint32_t tile; /* number of vertices per tile */
} vpps_tile_layout;

/* A tile, or some of its vertices. Arrays have an element for each axis: 0 for vertices, d for the members of their list input d - 1. */
typedef struct vpps_tile {
    vpps_vp *vp;
    const vpps_kernels *kernels;
    const vpps_compiled_cell *c;
    const vpps_program *p;
    const vpps_tile_layout *layout;
    const vpps_block_view *view;
    uint32_t stage, member;
    /* for each axis (0: vertices; d: list members): number, in the block, of the first item of this tile or part; number of its items */
    uint32_t first[VPPS_AXES], n[VPPS_AXES];
    uint32_t whole[VPPS_AXES]; /* for each axis: number of vertices or list members of the whole tile */
    uint32_t before;           /* number of vertices of the tile before those that this struct covers */
    /* numbers, in the block, of vertices where the cell's condition holds; the tile begins at live[first[0]]; NULL: all vertices run */
    const uint32_t *live;
    float *region[VPPS_AXES]; /* for each axis (0: vertices; d: a list's members): memory of its buffers */
    /* for each record (area of kept values): address that item (vertex, list member) 0 of the block has, or would have, in it */
    float *records[VPPS_RECORDS];
    uint32_t task_first[VPPS_AXES], task_items[VPPS_AXES];
    uint64_t contributions; /* pool offset of the gradients that the task computes for inputs of vertices */
} vpps_tile;

/* Makes the layouts of all of a cell's programs, for all virtual processors of a group, in cell->device_program, unless they exist. most:
 * vertices per tile. Fails with MEMORY. */
vpps_status vpps_make_tiles(vpps_compiled_cell *cell, uint32_t most);
const vpps_tile_layout *vpps_tiles_of(const vpps_compiled_cell *c, uint32_t stage, uint32_t member);

/* ---- operands: tile.c */

/* Addresses of an operand: for item (vertex, list member) i, base + i * stride, or base + offsets[i]; with `live`, live[i] replaces i. */
typedef struct vpps_span {
    float *base;
    size_t stride;
    const uint32_t *offsets, *live;
} vpps_span;

/* Returns the addresses of an operand's values for the vertices, or list members, that `t` covers. If rows are dealt to virtual processors
 * (VPs), the values are the rows that this VP owns. If every VP has a partial sum of the value, returns this VP's sum or, with first_share,
 * that of the first VP. */
vpps_span vpps_span_of(const vpps_tile *t, const vpps_operand *o, bool first_share);

static inline float *vpps_span_at(const vpps_span *w, uint32_t i) {
    const uint32_t item = w->live ? w->live[i] : i;
    return w->base + (w->offsets ? w->offsets[item] : item * w->stride);
}

static inline const vpps_operand *vpps_operands_of(const vpps_tile *t, const vpps_program_step *s) {
    return t->p->operands + s->first;
}

/* Returns the address of the slot (buffer) that holds an operand: adjacent values for all vertices, or list members, that `t` covers. */
static inline float *vpps_slot_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_tile_slot *slot = &t->layout->slots[o->at];
    return t->region[o->axis] + slot->at * t->whole[o->axis] + (size_t)t->before * slot->width;
}

/* Returns the number of an operand's elements that this virtual processor computes with. */
static inline uint32_t vpps_width_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_rows own = t->layout->own[o->dealt];
    return o->dealt ? own.end - own.first : vpps_operand_words(o);
}
/* Returns the first row of an operand that this virtual processor owns. */
static inline uint32_t vpps_first_of(const vpps_tile *t, const vpps_operand *o) {
    return t->layout->own[o->dealt].first;
}

/* Returns the number, in the block of vertices, of the i-th vertex that `t` covers. */
static inline uint32_t vpps_vertex_at(const vpps_tile *t, uint32_t i) {
    return t->live ? t->live[t->first[0] + i] : t->first[0] + i;
}

/* ---- steps (steps.c, tile_products.c). All functions return false if out of memory. */

bool vpps_tile_product(const vpps_tile *t, const vpps_program_step *s);

/* Runs all steps of the stage's program over the tile (vertices that are computed together). */
bool vpps_run_tile(vpps_tile *t);
