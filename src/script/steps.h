/* steps.h - sorts a batch's vertices into blocks, and in a block by level (the order of computation). A block is the
 * vertices of one cell that one group of threads or CTAs computes in one part of the batch (parts run in turn). */
#pragma once

#include "script/batching.h"

/* A vertex in an array in the order of computation (vpps_steps.order), with the fields of its vpps_read_vertex that are
 * copied for the code that writes the batch's program (encode.c). */
typedef struct vpps_ordered_vertex {
    uint32_t vertex, first_source, first_output, words;
} vpps_ordered_vertex;

typedef struct vpps_step_block {
    uint32_t type, group, slice;
    uint32_t n, n_levels;
    uint32_t members[VPPS_CELL_LISTS]; /* by list input: how many nodes all vertices of the block read through it */
    uint64_t gradients;                /* bit k: all vertices of the block (of one cell) have a gradient of output k */
    uint32_t first;                    /* the block's vertices are vpps_steps.order[first] to [first + n - 1] */
    /* vpps_steps.level_starts[levels + l]: where, among the block's vertices, level l (computed at once) begins */
    uint32_t levels;
} vpps_step_block;

/* Number of the first node of each list input of a vertex, counted through its block (vertices of one cell). */
typedef struct vpps_first_members {
    uint32_t of[VPPS_CELL_LISTS];
} vpps_first_members;

typedef struct vpps_steps {
    const vpps_batching *batching;
    const vpps_batch_needs *needs; /* vertices and gradients that must be computed (batching->needs) */
    const vpps_reading *reading;
    /* For each vertex: number of its slice (part of a wave) times n_groups, plus number of its group of threads or CTAs. Slices are
     * numbered through all waves (parts of the batch). Vertices that only the losses read are divided among the slices of their wave. All
     * others have the number of the wave's last slice, in which their backward runs; their forward runs before all slices of the wave. */
    const uint32_t *place;
    /* blocks (each: vertices of one cell, group and slice), sorted by recurrence (SCC of cells that read each other),
     * then by cell, by slice (part of the batch), by group (of threads or CTAs) */
    const vpps_step_block *blocks;
    const uint32_t *first_block; /* for each cell or op: its first block of vertices in `blocks`; VPPS_NONE: none */
    const vpps_ordered_vertex *order; /* the vertices to compute, sorted by block (of one cell), then by level */
    const uint32_t *level_starts;
    const vpps_first_members *first_members; /* for each vertex: number of each list's first node; unset: no lists */
    size_t n_level_starts;
    uint32_t n_waves, n_slices; /* number of waves (parts of the batch), and of slices (parts) of each wave */
    uint32_t n_blocks;
    uint32_t n_levels; /* number of levels of the graph (vertices of one level run together) */
    uint32_t n_steps;  /* number of steps; a step computes the vertices of one cell (one block) and one level at once */
} vpps_steps;

/* Divides the batch into at most n_waves waves (parts that run forward and backward in turn), a wave's classifiers
 * (vertices that only the loss reads) into at most n_slices slices, and the vertices of each into blocks by cell. Fewer
 * waves if the graph has fewer connected components, fewer slices if there are fewer classifiers. False: no memory. */
bool vpps_choose_steps(const vpps_batching *b, uint32_t n_waves, uint32_t n_slices, vpps_arena *arena, vpps_steps *out);

/* Returns where in a block (vertices of one cell) a level begins; for level n_levels or more: the block's length. */
static inline uint32_t vpps_level_first(const vpps_steps *s, const vpps_step_block *b, uint32_t level) {
    return level >= b->n_levels ? b->n : s->level_starts[b->levels + level];
}

static inline const vpps_compiled_cell *vpps_cell_of_block(const vpps_steps *s, const vpps_step_block *b) {
    return s->batching->cells[b->type];
}

/* Returns the vertices of a block (all apply one cell), sorted by level, i.e. in the order of computation. */
static inline const vpps_ordered_vertex *vpps_vertices_of(const vpps_steps *s, const vpps_step_block *b) {
    return s->order + b->first;
}

static inline uint32_t vpps_block_of(const vpps_steps *s, uint32_t vertex) {
    return s->first_block[s->reading->vertices[vertex].type] + s->place[vertex];
}

static inline uint32_t vpps_group_of(const vpps_steps *s, uint32_t vertex) {
    const uint32_t place = s->place[vertex], n = s->batching->n_groups;
    /* place: slice (part of the batch) * n + group of threads or CTAs; slice 0 needs no division */
    return n && place >= n ? place % n : place;
}

/* Axis d > 0 stands for the nodes that a block's vertices (of one cell) read through list input d - 1 (an input of any number of nodes).
 * They are numbered, vertex after vertex. Returns the number of vertex `at`'s first node; for at = b->n: how many nodes. */
static inline uint32_t vpps_first_member(const vpps_steps *s, const vpps_step_block *b, uint32_t at, uint32_t axis) {
    if (at >= b->n) return b->members[axis - 1];
    return s->first_members[vpps_vertices_of(s, b)[at].vertex].of[axis - 1];
}

/* The batch is divided into n_waves parts (waves), each wave into n_slices parts (slices). Returns the number of all slices. */
static inline uint32_t vpps_all_slices(const vpps_steps *s) { return s->n_waves * s->n_slices; }

/* Returns the last slice of the wave to which a slice belongs (waves are parts of the batch, slices parts of a wave). */
static inline uint32_t vpps_last_slice(const vpps_steps *s, uint32_t slice) {
    return slice - slice % s->n_slices + s->n_slices - 1;
}

/* vpps_first_of_slice and vpps_next_of_slice iterate over a slice's (batch part's) blocks of vertices: by cell, then by group of threads or CTAs. */
static inline uint32_t vpps_first_of_slice(const vpps_steps *s, uint32_t slice) {
    return slice * s->batching->n_groups;
}
static inline uint32_t vpps_next_of_slice(const vpps_steps *s, uint32_t block) {
    const uint32_t n = s->batching->n_groups;
    return block + 1 + ((block + 1) % n ? 0 : (vpps_all_slices(s) - 1) * n);
}

static inline size_t vpps_source_at(const vpps_steps *s, const vpps_ordered_vertex *v, vpps_input_place place) {
    if (!place.axis) return (size_t)v->first_source + place.n[0];
    size_t at = s->reading->lists[v->vertex].first_source;
    for (uint32_t d = 1; d < VPPS_AXES; d++)
        if (place.n[d]) at += (size_t)place.n[d] * s->reading->lists[v->vertex].members[d - 1];
    return at;
}

/* Returns whether vertex v, which has list inputs (of any number of nodes), reads the same nodes through them as v[-1],
 * the preceding vertex of the same cell in vpps_steps.order. */
static inline bool vpps_repeats(const vpps_steps *s, const vpps_ordered_vertex *v) {
    return v[-1].vertex + 1 == v->vertex && s->reading->lists[v->vertex].repeats;
}

/* Returns an integer of vertex v: for kind VPPS_WORD_INDEX, number `value` of the integers that the caller gave for the
 * vertex, such as a word's number; else the constant of the vertex's op, such as a class. */
static inline uint32_t vpps_word_of(const vpps_steps *s, const vpps_ordered_vertex *v, uint32_t kind, uint32_t value) {
    return kind == VPPS_WORD_INDEX ? s->reading->g->words[v->words + value] : v->words;
}

static inline uint32_t vpps_row_of(const vpps_steps *s, const vpps_ordered_vertex *v, const vpps_cell_lookup *l) {
    return l->kind == VPPS_WORD_DROPOUT ? l->value : vpps_word_of(s, v, l->kind, l->value);
}
