/* read.h - reads a batch's graph for the scheduler: vertices, their types (cell or op), the nodes that each reads, and the loss's terms. */
#pragma once

#include "base/arena.h"
#include "script/script.h"

/* A vertex of the batch's graph. Loops over vertices are limited by memory bandwidth, so the struct has only the members that most loops
 * read; vpps_vertex_lists has all other members. */
typedef struct vpps_read_vertex {
    uint32_t type;         /* index of the vertex's type in vpps_reading.types */
    uint32_t first_source; /* index in `sources` of the vertex's first read (node that the vertex reads) */
    uint32_t first_output; /* node number (in the graph) of the vertex's first output; its other outputs follow */
    uint32_t depth;        /* the vertex's depth in the graph: 0 if it reads nothing */
    /* if the vertex is a cell: where in graph->words its integers (such as table rows) begin; if it is an op: the op's integer itself */
    uint32_t words;
} vpps_read_vertex;

/* Further data of a vertex whose cell has list inputs (each reads any number of nodes) or dropout. */
typedef struct vpps_vertex_lists {
    uint32_t members[VPPS_CELL_LISTS];
    uint32_t dropout; /* number, within the batch, of the vertex's first element under dropout */
    /* index in `sources` of the first node that the vertex reads through lists (inputs of many nodes), list after list */
    uint32_t first_source;
    /* shared, repeats: whether an earlier vertex's, or even the preceding vertex's, list inputs read the same nodes */
    bool shared, repeats;
} vpps_vertex_lists;

/* A node of the graph (`output`) and the vertex whose output the node is. */
typedef struct vpps_output_ref {
    vpps_node output;
    uint32_t vertex;
} vpps_output_ref;

/* A read: vertex `reader` reads an output of `vertex`. One array has a batch's reads. For speed, it has the reads of a list of nodes only
 * for the list's first reader; of a later reader, it has the reads of single nodes or, if there are none, of the list's first node. */
typedef struct vpps_read {
    uint32_t vertex, reader;
} vpps_read;

/* A term of the loss: an output of a vertex times a factor. */
typedef struct vpps_seed {
    vpps_output_ref to;
    float factor;
} vpps_seed;

/* A type of the batch's vertices (a cell, or an op with its shapes). */
typedef struct vpps_read_type {
    const vpps_type *type;
    /* copied from `type` for speed: its cell, and how many list inputs (of any number of nodes each) the cell has */
    const vpps_compiled_cell *base;
    uint32_t n_lists;
    uint32_t index;        /* index of the cell or op in vpps_history.types */
    vpps_type_guess guess; /* last batch's: types that read each other; outputs that depend on trained parameters */
    uint32_t first_input;  /* number of inputs of all preceding cells and ops */
    uint64_t trains;       /* the outputs, as bits, that depend on a parameter that is not frozen */
    uint64_t frozen;       /* hash of which parameters of the cell or op are frozen */
} vpps_read_type;

typedef struct vpps_reading {
    const vpps_graph *g;
    bool training;
    /* Whether the training step is in two halves, forward and backward; `seeds` are then the outputs whose gradients the host gives. */
    bool halves;
    bool fixed;                       /* whether no parameter gets a gradient */
    bool drops;                       /* whether dropout is on */
    const vpps_read_vertex *vertices; /* an extra last element tells where the last vertex's reads end */
    const vpps_vertex_lists *lists;   /* for each vertex: its inputs of many nodes, its dropout; zeros if it has none */
    const uint32_t *levels;   /* by vertex: step among cells that read each other, if these are as in the last batch */
    const vpps_read *sources; /* reads, by vertex: single nodes, then lists, but no list that an earlier vertex reads */
    const vpps_node *source_outputs;  /* for each element of `sources`: the node that is read */
    const vpps_output_ref *requested; /* outputs whose values the request asks for */
    const vpps_output_ref *asked;     /* outputs whose gradients the request asks for */
    const vpps_seed *seeds;
    const vpps_read_type *types;
    size_t n_sources;
    size_t n_reads; /* number of reads; a list of nodes that several vertices share counts for each vertex */
    uint32_t n_vertices, n_requested, n_asked, n_seeds, n_types;
    uint32_t n_inputs;  /* number of inputs of all cells and ops together */
    uint32_t n_outputs; /* number of all vertices' outputs; each is a node of the graph, numbered 0 to n_outputs - 1 */
    bool shares;        /* whether some list of nodes is read by more than one vertex */
    bool some_frozen;   /* whether any cell or op has a frozen parameter */
} vpps_reading;

/* Turns a graph into arrays: vertices, their types (cells, or ops with shapes), what each reads. New types are added to
 * the history, which keeps types and compiled cells for later batches. Fails with ARGUMENT, SHAPE, MEMORY. */
vpps_status vpps_read_graph(vpps_graph *g, vpps_history *history, const vpps_batch_request *request, vpps_arena *arena,
                            vpps_reading *out);

/* Iterates over what vertex v reads, input by input; `lists`: also list inputs (of any number of nodes) that are not
 * empty: for (vpps_reader x = vpps_reads_of(r, v, lists); vpps_next_input(&x);). */
typedef struct vpps_reader {
    const vpps_compiled_cell *cell;
    const uint32_t *members; /* for each list input: number of its members (nodes that it reads) */
    uint32_t input;
    bool lists;     /* whether list inputs (which read any number of nodes) are visited too */
    size_t at, end; /* what the input that is visited now reads: vpps_reading.sources[at] to [end - 1] */
    /* indices in vpps_reading.sources. own: of the next input that reads one node; listed: of the next list of nodes */
    size_t own, listed;
} vpps_reader;

static inline vpps_reader vpps_reads_of(const vpps_reading *r, uint32_t v, bool lists) {
    const vpps_compiled_cell *c = r->types[r->vertices[v].type].base;
    return (vpps_reader){
        c, r->lists[v].members, UINT32_MAX, lists, 0, 0, r->vertices[v].first_source, r->lists[v].first_source};
}

static inline bool vpps_next_input(vpps_reader *x) {
    while (++x->input < x->cell->n_inputs) {
        const uint32_t axis = x->cell->input_axis[x->input];
        if (!axis) return x->at = x->own++, x->end = x->own, true;
        x->at = x->listed;
        x->end = x->listed = x->at + x->members[axis - 1];
        if (x->lists && x->at < x->end) return true;
    }
    return false;
}

/* Returns a set of outputs of vertex x.vertex, as bits, whose only element is output x. */
static inline uint64_t vpps_output_bit(const vpps_reading *r, vpps_output_ref x) {
    return (uint64_t)1 << (x.output - r->vertices[x.vertex].first_output);
}

/* The position of a cell's input. n[0]: how many earlier inputs read one node; n[d]: how many earlier inputs read each
 * member of list d - 1 (several inputs can read different outputs of a list's members). */
typedef struct vpps_input_place {
    uint32_t n[VPPS_AXES];
    uint32_t axis; /* 0: the input reads one node; d: the input reads list number d - 1 */
} vpps_input_place;

static inline vpps_input_place vpps_place_of_input(const vpps_compiled_cell *c, uint32_t input) {
    vpps_input_place place = {.axis = c->input_axis[input]};
    for (uint32_t k = 0; k < input; k++) place.n[c->input_axis[k]]++;
    return place;
}

/* reads[k]: inputs (or lookups), as bits, on which output k of a cell depends. Returns those of all given outputs. */
static inline uint64_t vpps_reached(const uint64_t *reads, uint64_t outputs) {
    uint64_t reached = 0;
    for (; outputs; outputs &= outputs - 1) reached |= reads[__builtin_ctzll(outputs)];
    return reached;
}

/* Returns the root of v in a union-find forest: the first vertex of the set that v belongs to. */
static inline uint32_t vpps_find_root(uint32_t *parent, uint32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}
