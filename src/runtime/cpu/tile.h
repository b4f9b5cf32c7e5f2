/* tile.h - runs stages (parts of cells) in tiles: a few vertices at a time, whose values stay in the core's nearest
 * caches between two steps. A stage's program (cell/program.h) keeps values in numbered buffers ("slots"). In a tile, a
 * slot is an array with an entry per vertex, or per node that a list input (of any number of nodes) reads. If virtual
 * processors (threads) divide rows, entries hold the rows of this one, else whole values. */
#pragma once

#include "runtime/cpu/cpu.h"

typedef struct vpps_tile_slot {
    /* the buffer begins `at` floats, times the tile's number of vertices (or list nodes), after the start of the tile's memory */
    size_t at;
    uint32_t width; /* number of floats for one vertex (or node in a list) */
} vpps_tile_slot;

/* Memory layout of the tiles (vertices computed together) of a stage (part of a cell), for one thread. */
typedef struct vpps_tile_layout {
    vpps_tile_slot *slots; /* layout of each slot (buffer) of the program, indexed by the slot's number */
    /* rows that this thread owns of operands whose rows threads divide; index: vpps_operand.dealt (0: not divided) */
    vpps_rows *own;
    /* by axis (0: vertices; d: nodes of list input d - 1): floats of all slots (buffers), for one vertex or node */
    uint32_t floats[VPPS_AXES];
    uint32_t tile; /* most vertices that are computed together (in a tile) */
} vpps_tile_layout;

/* A tile (vertices computed together) or, while a step runs, the part of it that the step computes. Arrays are indexed
 * by axis: 0: vertices; d: nodes that list input d - 1 (of any number of nodes) reads. */
typedef struct vpps_tile {
    vpps_vp *vp;
    const vpps_kernels *kernels;
    const vpps_compiled_cell *c;
    const vpps_program *p;
    const vpps_tile_layout *layout;
    const vpps_block_view *view;
    uint32_t stage, member;
    /* [0]: vertices; [d]: nodes that list input d - 1 reads. first: the first one's index in its block (one cell's vertices); n: number now run */
    uint32_t first[VPPS_AXES], n[VPPS_AXES];
    uint32_t whole[VPPS_AXES]; /* [0]: number of the tile's vertices; [d]: of nodes that list input d - 1 reads */
    uint32_t before;           /* number of vertices of the tile before those that this struct covers */
    /* indices in the block of the vertices that run, as their cell's condition holds; the tile's begin at live[first[0]]; NULL: all vertices run */
    const uint32_t *live;
    float *region[VPPS_AXES]; /* buffers: [0]: of vertices; [d]: of nodes that list input d - 1 reads */
    /* values of item i (vertex or list node): at records[r] + i * kept_words[r]. r: its axis or, of one pass, VPPS_RECORD_FORWARD, _BACKWARD */
    float *records[VPPS_RECORDS];
    uint32_t task_first[VPPS_AXES], task_items[VPPS_AXES];
    /* offset in device memory of gradients that the task computes for vertices' inputs */
    uint64_t contributions;
} vpps_tile;

/* Makes, unless it exists, cell->device_program: where a tile (vertices computed together, at most `most`) has its
 * values, for each stage (part of a cell) and each thread of a group (which holds all weights). Fails with MEMORY. */
vpps_status vpps_make_tiles(vpps_compiled_cell *cell, uint32_t most);
const vpps_tile_layout *vpps_tiles_of(const vpps_compiled_cell *c, uint32_t stage, uint32_t member);

/* ---- operands: tile.c */

/* An operand's addresses: base + i * stride or base + offsets[i] for vertex i, or for node i that a list input reads. live: i is then live[i]. */
typedef struct vpps_span {
    float *base;
    size_t stride;
    const uint32_t *offsets, *live;
} vpps_span;

/* Returns the addresses of an operand's values for the vertices (or nodes in their lists) that `t` covers. If virtual
 * processors (VPs: threads) divide rows, these are the rows of this VP. If every VP has a partial sum of the value: the
 * sum of this VP or, with first_share, of the first VP. */
vpps_span vpps_span_of(const vpps_tile *t, const vpps_operand *o, bool first_share);

static inline float *vpps_span_at(const vpps_span *w, uint32_t i) {
    const uint32_t item = w->live ? w->live[i] : i;
    return w->base + (w->offsets ? w->offsets[item] : item * w->stride);
}

static inline const vpps_operand *vpps_operands_of(const vpps_tile *t, const vpps_program_step *s) {
    return t->p->operands + s->first;
}

/* Returns an operand's address in its slot (buffer), where values of the vertices (or nodes) of `t` are adjacent. */
static inline float *vpps_slot_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_tile_slot *slot = &t->layout->slots[o->at];
    return t->region[o->axis] + slot->at * t->whole[o->axis] + (size_t)t->before * slot->width;
}

/* Returns how many of an operand's elements this virtual processor (thread) processes. */
static inline uint32_t vpps_width_of(const vpps_tile *t, const vpps_operand *o) {
    const vpps_rows own = t->layout->own[o->dealt];
    return o->dealt ? own.end - own.first : vpps_operand_words(o);
}
/* Returns the first of an operand's rows that this virtual processor (thread) owns. */
static inline uint32_t vpps_first_of(const vpps_tile *t, const vpps_operand *o) {
    return t->layout->own[o->dealt].first;
}

/* Multiplies matrices with the vectors of a tile (vertices computed together), as step s says. False: out of memory. */
bool vpps_tile_product(const vpps_tile *t, const vpps_program_step *s);

/* Runs all steps of the stage (part of a cell) over the tile (vertices computed together). False: out of memory. */
bool vpps_run_tile(vpps_tile *t);
