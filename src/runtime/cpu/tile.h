/* tile.h - runs stages in tiles: a few vertices at a time, whose values stay in the core's nearest caches between two steps. A stage's program
 * (cell/program.h) keeps values in numbered buffers ("slots"). In a tile, a slot is an array with an entry per item (vertex or list member): only the
 * rows that the virtual processor owns if rows are dealt to VPs, else whole values. */
#pragma once

#include "runtime/cpu/cpu.h"

typedef struct vpps_tile_slot {
    size_t at;      /* sum of the preceding widths on the same axis; times the number of items: the slot's begin */
    uint32_t width; /* number of floats of one item (vertex or list member) */
} vpps_tile_slot;

/* Layout of the memory of a stage's tiles, for one virtual processor of a group. */
typedef struct vpps_tile_layout {
    vpps_tile_slot *slots;      /* places of the slots (buffers), indexed by slot of the program */
    vpps_rows *own;             /* this virtual processor's rows, for each index `dealt` of operands; own[0] is empty */
    uint32_t floats[VPPS_AXES]; /* for each axis, the floats of all its slots (buffers) for one item */
    uint32_t tile;              /* number of vertices per tile */
} vpps_tile_layout;

/* The tile that is run, or a part of its vertices. An axis is the vertices, or the members of one of their lists. */
typedef struct vpps_tile {
    vpps_vp *vp;
    const vpps_kernels *kernels;
    const vpps_compiled_cell *c;
    const vpps_program *p;
    const vpps_tile_layout *layout;
    const vpps_block_view *view;
    uint32_t stage, member;
    uint32_t first[VPPS_AXES], n[VPPS_AXES]; /* for each axis: the part's first item in the block; number of items */
    uint32_t whole[VPPS_AXES];               /* for each axis: number of items (vertices, members) of the tile */
    uint32_t before;                         /* number of vertices of the tile that precede this part */
    const uint32_t *live;         /* numbers of the vertices that run, indexed from first[0]; NULL: all vertices run */
    float *region[VPPS_AXES];     /* for each axis (0: vertices, else a list's members): memory of buffers */
    float *records[VPPS_RECORDS]; /* by record (of kept values): the address that item 0 of the block would have */
    uint32_t task_first[VPPS_AXES], task_items[VPPS_AXES];
    uint64_t contributions; /* pool offset of the gradient contributions that the task writes */
} vpps_tile;

/* Makes the layouts of all of a cell's programs, for all virtual processors of a group, in cell->device_program, unless they exist. most: vertices
 * per tile. Fails with MEMORY. */
vpps_status vpps_make_tiles(vpps_compiled_cell *cell, uint32_t most);
const vpps_tile_layout *vpps_tiles_of(const vpps_compiled_cell *c, uint32_t stage, uint32_t member);

/* ---- operands: tile.c */

/* Addresses of an operand's items: item i is at base + i * stride, or at base + offsets[i]; with `live`, live[i] takes the place of i. */
typedef struct vpps_span {
    float *base;
    size_t stride;
    const uint32_t *offsets, *live;
} vpps_span;

/* Returns the addresses of an operand's items (vertices, list members) in the part of the tile. If rows are dealt to virtual processors: those of the
 * VP's own rows. If every VP has summed a share of the value: those of the VP's own share, or with first_share of the first VP's. */
vpps_span vpps_span_of(const vpps_tile *t, const vpps_operand *o, bool first_share);

static inline float *vpps_span_at(const vpps_span *w, uint32_t i) {
    const uint32_t item = w->live ? w->live[i] : i;
    return w->base + (w->offsets ? w->offsets[item] : item * w->stride);
}

static inline const vpps_operand *vpps_operands_of(const vpps_tile *t, const vpps_program_step *s) {
    return t->p->operands + s->first;
}

/* Returns the address of a slot's items (of the operand's buffer) in the part of the tile; they are adjacent. */
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

/* Returns the number, in the block, of vertex i of this part of the tile. */
static inline uint32_t vpps_vertex_at(const vpps_tile *t, uint32_t i) {
    return t->live ? t->live[t->first[0] + i] : t->first[0] + i;
}

/* ---- steps (steps.c, tile_products.c). All functions return false if out of memory. */

bool vpps_tile_product(const vpps_tile *t, const vpps_program_step *s);

/* Runs all steps of the stage's program over the tile (vertices that are computed together). */
bool vpps_run_tile(vpps_tile *t);
