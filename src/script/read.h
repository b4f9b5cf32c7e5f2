/* read.h - a batch's graph as the scheduler reads it: vertices with what each reads, their types, and the terms of the loss. */
#pragma once

#include "base/arena.h"
#include "script/script.h"

/* A vertex: a record of the graph. Passes over a batch's vertices are bound by memory, so this struct has only what most of them read. */
typedef struct vpps_read_vertex {
    uint32_t type;         /* in the reading's types */
    uint32_t first_source; /* in `sources`: what it reads, input by input, up to the next one's first */
    uint32_t first_output; /* its first node */
    uint32_t depth;        /* in the graph */
    uint32_t words;        /* of a cell: where its indices lie in the graph's words; of an op: its own number */
} vpps_read_vertex;

/* The rest of a vertex whose cell has lists or dropout. */
typedef struct vpps_vertex_lists {
    uint32_t members[VPPS_CELL_LISTS];
    uint32_t dropout; /* number of its first element under dropout */
    bool
        repeats; /* its lists are those of the preceding vertex, which is of its type: the words of a sentence all attend to the same list */
} vpps_vertex_lists;

/* A node that is an output of a vertex. */
typedef struct vpps_output_ref {
    vpps_node output;
    uint32_t vertex;
} vpps_output_ref;

/* One read of a vertex. Passes go over the array of all reads, not over vertices and the reads of each: processors predict the end of one
 * long loop, not of many short ones. */
typedef struct vpps_read {
    uint32_t vertex, reader;
} vpps_read;

/* A term of the loss. */
typedef struct vpps_seed {
    vpps_output_ref to;
    float factor;
} vpps_seed;

/* A type that the batch has vertices of. */
typedef struct vpps_read_type {
    vpps_type *type;
    const vpps_compiled_cell *base; /* this and the next: copied from the type, since passes over vertices read them */
    uint32_t n_lists;
    uint32_t index;       /* in vpps_types */
    uint32_t first_input; /* in a count of all types' inputs */
    uint64_t trains;      /* outputs made of a parameter that is trained */
    uint64_t frozen;      /* hash of which of its parameters are */
} vpps_read_type;

typedef struct vpps_reading {
    const vpps_graph *g;
    bool training;
    bool halves;                      /* seeds are outputs whose gradients the host gives, in the request's order */
    bool fixed;                       /* no parameter has a gradient */
    bool drops;                       /* dropout is on */
    const vpps_read_vertex *vertices; /* and one after the last */
    const vpps_vertex_lists *lists;   /* of each vertex; only those whose cells have lists or dropout are set */
    const uint32_t *levels;           /* of each vertex, if parts (needs.h) are those of the preceding batch */
    const vpps_read *sources;         /* reader after reader */
    const vpps_node
        *source_outputs; /* the node of each read; an array of its own, since passes over blocks read nothing else */
    const vpps_output_ref *requested; /* outputs of the request */
    const vpps_output_ref *asked;     /* outputs whose gradients the request names */
    const vpps_seed *seeds;
    const vpps_read_type *types;
    size_t n_sources;
    uint32_t n_vertices, n_requested, n_asked, n_seeds, n_types;
    uint32_t n_inputs;  /* of all types */
    uint32_t n_outputs; /* nodes of the vertices: the graph's first ones */
    bool some_frozen;   /* parameters of the types */
} vpps_reading;

/* Fails with ARGUMENT, SHAPE, MEMORY. What is read lies in the arena. */
vpps_status vpps_read_graph(vpps_graph *g, vpps_types *types, const vpps_batch_request *request, vpps_arena *arena,
                            vpps_reading *out);

static inline vpps_status vpps_no_memory(void) { return vpps_fail(VPPS_MEMORY, "schedule: out of memory"); }

static inline uint32_t vpps_n_sources(const vpps_read_vertex *v) { return v[1].first_source - v->first_source; }

/* Are the lists of the vertex after v, of v's type, those of v? */
static inline bool vpps_next_repeats(const vpps_reading *r, uint32_t v) {
    return v + 1 < r->n_vertices && r->vertices[v + 1].type == r->vertices[v].type && r->lists[v + 1].repeats;
}

/* Bit k: the output is a vertex's output k. */
static inline uint64_t vpps_output_bit(const vpps_reading *r, vpps_output_ref x) {
    return (uint64_t)1 << (x.output - r->vertices[x.vertex].first_output);
}

/* Where the sources of an input lie among a vertex's: after those of the inputs before it, of each axis. */
typedef struct vpps_input_place {
    uint32_t n[VPPS_AXES];
    uint32_t n_lists; /* of the cell */
} vpps_input_place;

static inline vpps_input_place vpps_place_of_input(const vpps_compiled_cell *c, uint32_t input) {
    vpps_input_place place = {.n_lists = c->n_lists};
    for (uint32_t k = 0; k < input; k++) place.n[c->input_axis[k]]++;
    return place;
}

/* The inputs, or lookups, that the given outputs of a type are made of: `reads` is its reads_inputs or reads_lookups. */
static inline uint64_t vpps_reached(const uint64_t *reads, uint64_t outputs) {
    uint64_t reached = 0;
    for (; outputs; outputs &= outputs - 1) reached |= reads[__builtin_ctzll(outputs)];
    return reached;
}

/* The first of the vertices that v is joined with (union-find). */
static inline uint32_t vpps_find_root(uint32_t *parent, uint32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}
