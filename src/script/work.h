/* work.h - the scheduler's workspace: what its steps hand to each other. See script.h. */
#ifndef VPPS_SCRIPT_WORK_H
#define VPPS_SCRIPT_WORK_H

#include "script/script.h"
#include "script/task.h"

/* A vertex: a record of the graph. */
typedef struct vpps_vertex_work {
    uint32_t type;                    /* in `used` */
    uint32_t first_source, n_sources; /* in `sources`: output numbers of what it reads, input by input */
    uint32_t first_output;            /* its outputs are numbered on from here */
    uint32_t members;                 /* of its list */
    uint32_t dropout;                 /* number of its first element under dropout */
    uint32_t level;                   /* in its strongly connected part; depth: in the whole graph */
    uint32_t depth;
    uint32_t block, position; /* position in its block; member_position: of its first member */
    uint32_t member_position;
    bool needed;
    uint64_t gradients;       /* bit k: output k has a gradient */
    uint64_t inputs, lookups; /* that outputs with a gradient are made of */
} vpps_vertex_work;

/* A type in this batch. */
typedef struct vpps_used_type {
    vpps_type *type;
    uint32_t index; /* in vpps_types */
    uint32_t part;  /* strongly connected part, in topological order */
    bool recurrent; /* its part has a cycle */
    bool trains, differentiable;
    vpps_cell_needs needs;
    vpps_compiled_cell *cell;
    uint32_t cell_number;
    uint32_t first_block;    /* of group 0; VPPS_NONE: no vertex of it is needed */
    uint32_t *contributions; /* of each input: how many entries a vertex adds to what it reads */
} vpps_used_type;

typedef struct vpps_block_work {
    uint32_t type, group;
    uint32_t n, members, n_levels;
    uint32_t first;                       /* in `order` */
    uint32_t levels;                      /* in `level_starts`: n_levels + 1 */
    uint32_t forward_done, backward_done; /* phases */
    uint32_t first_phase, last_phase, back_phase;
    uint32_t kept[2], contributions;
    uint32_t arrays;
} vpps_block_work;

typedef struct vpps_task_work {
    uint32_t group, phase;
    uint32_t block, stage, first, n;
} vpps_task_work;

typedef struct vpps_seed {
    uint32_t output; /* of a vertex, numbered through */
    float factor;
} vpps_seed;

/* An entry of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row, count; /* count: contributions */
    uint32_t at;                /* cursor in the script */
} vpps_entry;

typedef struct vpps_batch_work {
    const vpps_task_plan *machine;
    const vpps_batch_request *request;
    vpps_graph *g;
    vpps_types *types;
    bool training;

    vpps_vertex_work *vertices;
    uint32_t n_vertices;
    uint32_t *sources;
    size_t n_sources;
    uint32_t *output_vertex; /* of every output, its vertex */
    uint32_t n_outputs;
    vpps_seed *seeds;
    uint32_t n_seeds;
    uint32_t *requested; /* outputs of the request: output numbers */

    vpps_used_type *used;
    uint32_t n_used;
    uint32_t *used_of_type; /* type -> used, or VPPS_NONE */
    uint32_t n_parts, n_levels;
    uint64_t *edges; /* used x used bits: row reads column */
    uint32_t edge_words;

    uint32_t *component; /* of each vertex, union-find, then its group */
    uint32_t n_groups, group_size;

    vpps_block_work *blocks;
    uint32_t n_blocks;
    uint32_t *order; /* vertices, by block and level */
    uint32_t *level_starts;
    size_t n_level_starts;

    vpps_task_work *tasks;
    uint32_t n_tasks;
    uint32_t *group_phases; /* phases of each group */
    uint32_t n_phases;

    uint64_t next_word; /* of the pool */
    uint32_t entry_gradients, seeds_at, outputs_at;
    uint32_t *output_at; /* offset of every needed output's value */
    uint32_t *users;     /* contributions to every output, then cursors; VPPS_NONE: it has no gradient */
    vpps_entry *entries;
    uint32_t n_entries;
    uint32_t **entry_of_row, **row_stamp; /* per parameter */
    uint32_t n_tables, stamp;
    uint32_t *stack;

    size_t vertices_capacity, sources_capacity, output_vertex_capacity, seeds_capacity, requested_capacity,
        used_capacity, used_of_type_capacity, edges_capacity, component_capacity, blocks_capacity, order_capacity,
        level_starts_capacity, tasks_capacity, group_phases_capacity, users_capacity, output_at_capacity,
        entries_capacity, stack_capacity;
} vpps_batch_work;

vpps_status vpps_read_graph(vpps_batch_work *w);
vpps_status vpps_choose_steps(vpps_batch_work *w, vpps_batch *b);
vpps_status vpps_choose_phases(vpps_batch_work *w);
vpps_status vpps_place_blocks(vpps_batch_work *w);
vpps_status vpps_encode_batch(vpps_batch *b);

/* Number of the output that a node is; VPPS_NONE when it is inside a cell. */
uint32_t vpps_output_of_node(const vpps_batch_work *w, vpps_node x);

static inline vpps_status vpps_no_memory(void) { return vpps_fail(VPPS_MEMORY, "schedule: out of memory"); }

static inline bool vpps_reads(const vpps_batch_work *w, uint32_t reader, uint32_t read) {
    return w->edges[(size_t)reader * w->edge_words + read / 64] >> (read % 64) & 1;
}

#endif
