/* steps.h - sorts a batch's vertices into blocks (one type, one group of virtual processors, one part of the batch) and by level. */
#pragma once

#include "script/batching.h"

/* An element of vpps_steps.order: a vertex, with copies of the fields of its vpps_read_vertex that the encoder reads. */
typedef struct vpps_ordered_vertex {
    uint32_t vertex, first_source, first_output, words;
} vpps_ordered_vertex;

typedef struct vpps_step_block {
    uint32_t type, group, slice;
    uint32_t n, n_levels;
    /* for each list input: number of its members (nodes that it reads), summed over all vertices of the block */
    uint32_t members[VPPS_CELL_LISTS];
    uint64_t gradients; /* the outputs, as bits, that have a gradient in all vertices of the block */
    uint32_t first;     /* position in `order` of the block's first vertex */
    /* where the block's numbers begin in level_starts: one number per level, the position of the level's first vertex */
    uint32_t levels;
} vpps_step_block;

/* For each list input of a vertex: number of its first member (node that the list reads). A block's members are numbered consecutively. */
typedef struct vpps_first_members {
    uint32_t of[VPPS_CELL_LISTS];
} vpps_first_members;

typedef struct vpps_steps {
    const vpps_batching *batching;
    const vpps_batch_needs *needs; /* vertices and gradients that must be computed (batching->needs) */
    const vpps_reading *reading;
    /* For each vertex: number of its slice (part of a wave) times n_groups, plus number of its group of virtual processors. Slices are
     * numbered through all waves (parts of the batch). Vertices that only the losses read are divided among the slices of their wave. All
     * others have the number of the wave's last slice, in which their backward runs; their forward runs before all slices of the wave. */
    const uint32_t *place;
    /* blocks of vertices, sorted by strongly connected component of the types' graph, by type, by slice (part of the batch), by group */
    const vpps_step_block *blocks;
    /* for each type: its first block of vertices; VPPS_NONE: no vertex of the type is needed */
    const uint32_t *first_block;
    const vpps_ordered_vertex *order; /* all needed vertices, sorted by block, and in a block by level */
    const uint32_t *level_starts;
    /* for each vertex that has list inputs: the numbers of the lists' first members; elements of other vertices are not set */
    const vpps_first_members *first_members;
    size_t n_level_starts;
    /* n_waves: number of waves (parts of the batch); n_slices: number of slices (parts) of each wave */
    uint32_t n_waves, n_slices;
    uint32_t n_blocks;
    uint32_t n_levels; /* number of levels of the graph (vertices of one level run together) */
    uint32_t n_steps;  /* number of steps; a step is a block together with a level at which the block has vertices */
} vpps_steps;

/* Divides the batch into at most n_waves waves (parts that run in turn) of at most n_slices slices, and each slice into blocks by type.
 * There are fewer waves if there are fewer connected components, fewer slices if there are fewer classifiers. False: no memory. */
bool vpps_choose_steps(const vpps_batching *b, uint32_t n_waves, uint32_t n_slices, vpps_arena *arena, vpps_steps *out);

/* Returns the position in the block of the first vertex of a level; for level n_levels or more, the number of the block's vertices. */
static inline uint32_t vpps_level_first(const vpps_steps *s, const vpps_step_block *b, uint32_t level) {
    return level >= b->n_levels ? b->n : s->level_starts[b->levels + level];
}

static inline const vpps_compiled_cell *vpps_cell_of_block(const vpps_steps *s, const vpps_step_block *b) {
    return s->batching->cells[b->type];
}

/* Returns the vertices of a block, sorted by level. */
static inline const vpps_ordered_vertex *vpps_vertices_of(const vpps_steps *s, const vpps_step_block *b) {
    return s->order + b->first;
}

static inline uint32_t vpps_block_of(const vpps_steps *s, uint32_t vertex) {
    return s->first_block[s->reading->vertices[vertex].type] + s->place[vertex];
}

static inline uint32_t vpps_group_of(const vpps_steps *s, uint32_t vertex) {
    const uint32_t place = s->place[vertex], n = s->batching->n_groups;
    /* place = slice * n + group; a place below n needs no division */
    return n && place >= n ? place % n : place;
}

/* Members (nodes that the block's vertices read through list input axis - 1) are numbered consecutively. Returns the number of the first
 * member of vertex number `at` of the block; for at = b->n, the number of all members. */
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

/* vpps_first_of_slice and vpps_next_of_slice iterate over the blocks of vertices in a slice (part of the batch): by type, then by group. */
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

/* Returns whether vertex v, which has lists and is not the block's first, reads the same lists of nodes as the block's preceding vertex. */
static inline bool vpps_repeats(const vpps_steps *s, const vpps_ordered_vertex *v) {
    return v[-1].vertex + 1 == v->vertex && s->reading->lists[v->vertex].repeats;
}

/* Returns number `value` of the indices that the caller gave for the vertex, if `kind` is VPPS_WORD_INDEX; else the integer of its op. */
static inline uint32_t vpps_word_of(const vpps_steps *s, const vpps_ordered_vertex *v, uint32_t kind, uint32_t value) {
    return kind == VPPS_WORD_INDEX ? s->reading->g->words[v->words + value] : v->words;
}

static inline uint32_t vpps_row_of(const vpps_steps *s, const vpps_ordered_vertex *v, const vpps_cell_lookup *l) {
    return l->kind == VPPS_WORD_DROPOUT ? l->value : vpps_word_of(s, v, l->kind, l->value);
}
