/* work.h - the scheduler's workspace: what its steps hand to each other. See script.h. */
#ifndef VPPS_SCRIPT_WORK_H
#define VPPS_SCRIPT_WORK_H

#include "script/allocate.h"
#include "script/script.h"
#include "script/task.h"
#include "script/values.h"

/* A vertex: a record of the graph. Passes over a batch's vertices are bound by memory, so this is only what most of them
 * read. */
typedef struct vpps_vertex_work {
    uint32_t type;         /* in `used` */
    uint32_t first_source; /* in `sources`: what it reads, input by input, up to the next one's first */
    uint32_t first_output; /* its first node */
    uint32_t level, depth; /* in its strongly connected part; in the whole graph */
    uint32_t words;        /* of a cell: where its indices lie in the graph's words; of an op: its own number */
    uint64_t gradients;    /* bit k: output k has a gradient */
} vpps_vertex_work;

/* The rest of a vertex whose cell has lists or dropout. */
typedef struct vpps_vertex_rest {
    uint32_t members[VPPS_CELL_LISTS];      /* of its lists */
    uint32_t first_member[VPPS_CELL_LISTS]; /* in its block */
    uint32_t dropout;                       /* number of its first element under dropout */
} vpps_vertex_rest;

typedef struct vpps_output_ref {
    vpps_node output;
    uint32_t vertex;
} vpps_output_ref;

/* One thing that a vertex reads. Passes go over all of these rather than over vertices and what each reads: how many those
 * are varies, and no processor guesses it. */
typedef struct vpps_read {
    uint32_t vertex, reader;
} vpps_read;

/* A vertex in the order of its block, with what encoding asks of it. */
typedef struct vpps_ordered_vertex {
    uint32_t vertex, first_source, first_output, words; /* see vpps_vertex_work */
} vpps_ordered_vertex;

/* A type in this batch. */
typedef struct vpps_used_type {
    vpps_type *type;
    const vpps_compiled_cell *base; /* this and the next: the type's, for passes over vertices ask for them */
    uint32_t n_lists;
    uint32_t index;             /* in vpps_types */
    uint32_t part;              /* strongly connected part, in topological order */
    bool needed;                /* a vertex of it is */
    bool head;                  /* see slices.c */
    uint64_t trains;            /* outputs made of a parameter that is trained */
    uint64_t differentiable;    /* outputs whose gradient somebody can use */
    uint64_t differentiable_in; /* inputs that are such outputs, where some parameters are frozen */
    vpps_cell_needs needs;
    uint64_t linked; /* outputs that vertices read */
    vpps_compiled_cell *cell;
    uint32_t cell_number;
    uint32_t first_block;         /* of place 0; VPPS_NONE: no vertex of it is needed */
    uint64_t items[VPPS_DOMAINS]; /* vertices that are needed, and members of their lists */
    uint32_t n_levels;            /* of these vertices */
    uint32_t first_input;         /* in `noted` */
} vpps_used_type;

/* What reads of a type's input mean is noted apart for types that are read, by their numbers modulo this. */
enum { VPPS_NOTED_TYPES = 4 };

/* The last read whose meaning was noted: most are like it. */
typedef struct vpps_noted_read {
    uint64_t gradients;    /* of the reader */
    uint64_t gives;        /* gradients of the vertex that is read */
    uint32_t type, output; /* of that vertex */
} vpps_noted_read;

typedef struct vpps_block_work {
    uint32_t type, group, slice;
    uint32_t n, n_levels;
    uint32_t members[VPPS_CELL_LISTS];
    uint64_t gradients; /* outputs that have one in every vertex */
    uint32_t first;     /* in `order` */
    uint32_t levels;    /* in `level_starts`: n_levels + 1 */
    /* phases: the first with a task of it, the first and last with a backward one, the last with a forward one, and the end
     * of its slice, in which the parameters' gradients are made */
    uint32_t first_phase, first_backward, last_forward, last_backward, slice_end;
    uint32_t kept[VPPS_DOMAINS];
    bool wide[2];   /* forward, backward: its passing records are those of all levels at once */
    bool requested; /* the host reads a value or a gradient of one of its vertices */
    uint32_t arrays;
} vpps_block_work;

typedef struct vpps_task_work {
    uint32_t group, phase;
    uint32_t block, stage, first, n;
    uint32_t level;                  /* VPPS_NONE: all of the block's */
    uint32_t passing, contributions; /* offsets */
} vpps_task_work;

typedef struct vpps_seed {
    vpps_output_ref to;
    float factor;
} vpps_seed;

/* A sum in the loss, and which of its terms is the next. */
typedef struct vpps_loss_sum {
    uint32_t record, next;
    float first, others; /* factors of its terms in the loss */
} vpps_loss_sum;

typedef struct vpps_batch_work {
    const vpps_task_plan *machine;
    const vpps_batch_request *request; /* while the script is made */
    vpps_graph *g;
    vpps_types *types;
    bool training;

    vpps_vertex_work *vertices; /* and one behind the last */
    vpps_vertex_rest *rests;
    bool *needed; /* by the loss or the request; apart: what is stored here is not what the next read loads */
    uint32_t n_vertices;
    vpps_read *sources;        /* reader after reader */
    vpps_node *source_outputs; /* of each, the node that it is; apart: passes over blocks read nothing else */
    size_t n_sources;
    uint32_t n_outputs; /* nodes of the vertices: the graph's first ones */
    vpps_loss_sum *sums;
    vpps_seed *seeds;
    uint32_t n_seeds;
    vpps_output_ref *requested; /* outputs of the request, then those whose gradients it names */
    uint32_t n_requested, n_asked;
    bool *whole; /* where gradients are asked for, of each vertex: the loss is not taken apart any further */

    vpps_used_type *used;
    uint32_t n_used;
    uint32_t *used_of_type, *used_of_cell; /* type, cell -> used, or VPPS_NONE */
    uint32_t n_parts, n_levels;
    uint32_t n_steps; /* levels of blocks that have vertices */
    bool some_frozen; /* parameters of used types */
    uint64_t *edges;  /* used x used bits: row reads column */
    uint32_t edge_words;
    vpps_noted_read *noted; /* type after type */
    uint32_t n_inputs;      /* of all types */

    vpps_components components;
    /* Of each vertex: its slice times n_groups, plus its group. Slices are numbered through all waves; those of a wave run one after the
     * other. Vertices of heads are shared out to the slices; all others belong to their wave's last slice: their forward runs in the
     * wave's first slice, their backward in its last. */
    uint32_t *place;
    uint32_t n_groups, group_size, n_waves, n_slices; /* n_slices: of a wave */

    vpps_block_work *blocks;
    uint32_t n_blocks;
    vpps_ordered_vertex *order, *unsorted; /* vertices, by block and level */
    uint32_t *level_starts;
    uint32_t *level_ends; /* like it: the last phase of a level's backward pass; then, that reads what it contributes */
    /* likewise, of both passes: where a level's passing records lie; `passing_life`, in `lives`. Where a part over all levels
     * needs them, those of all vertices are level 0's. */
    uint32_t *passing_at, *passing_life;
    const uint32_t **ends_of_type; /* in level_ends, of the blocks beside one */
    size_t n_level_starts;

    vpps_task_work *tasks;
    uint32_t n_tasks;
    uint32_t *group_phases; /* phases of each group, the ends of slices between them included */
    uint32_t n_phases;

    vpps_tensor_life *lives;

    uint64_t next_word;  /* of the pool */
    uint64_t live_words; /* see vpps_batch */
    uint32_t entry_gradients;
    vpps_contributions contributions;
    vpps_script_places places;
    uint32_t *stack;

    size_t vertices_capacity, rests_capacity, needed_capacity, sources_capacity, source_outputs_capacity, sums_capacity,
        seeds_capacity, requested_capacity, whole_capacity, used_capacity, used_of_type_capacity, used_of_cell_capacity,
        edges_capacity, noted_capacity, place_capacity, blocks_capacity, order_capacity, unsorted_capacity,
        level_starts_capacity, level_ends_capacity, ends_of_type_capacity, passing_at_capacity, passing_life_capacity,
        tasks_capacity, group_phases_capacity, lives_capacity, stack_capacity;
} vpps_batch_work;

vpps_status vpps_read_graph(vpps_batch_work *w);
bool vpps_find_needs(vpps_batch_work *w);
void vpps_count_vertices(vpps_batch_work *w);
vpps_status vpps_choose_groups(vpps_batch_work *w);
vpps_status vpps_choose_cells(vpps_batch_work *w, vpps_batch *b);
bool vpps_deal_components(vpps_batch_work *w);
void vpps_find_heads(vpps_batch_work *w);
bool vpps_deal_heads(vpps_batch_work *w);
vpps_status vpps_choose_steps(vpps_batch_work *w);
vpps_status vpps_choose_phases(vpps_batch_work *w);
vpps_status vpps_place_blocks(vpps_batch_work *w);

static inline vpps_status vpps_no_memory(void) { return vpps_fail(VPPS_MEMORY, "schedule: out of memory"); }

static inline bool vpps_reads(const vpps_batch_work *w, uint32_t reader, uint32_t read) {
    return w->edges[(size_t)reader * w->edge_words + read / 64] >> (read % 64) & 1;
}

/* A level's first vertex; behind the last level: how many there are. */
static inline uint32_t vpps_level_first(const vpps_batch_work *w, const vpps_block_work *b, uint32_t level) {
    return level >= b->n_levels ? b->n : w->level_starts[b->levels + level];
}

/* How many vertices and members a task runs over. */
static inline void vpps_items_of_task(const vpps_batch_work *w, const vpps_task_work *t, uint32_t *items) {
    const vpps_block_work *b = &w->blocks[t->block];
    const uint32_t end = t->first + t->n, n_lists = w->used[b->type].cell->n_lists;
    items[0] = t->n;
    for (uint32_t d = 1; d <= n_lists; d++) {
        const uint32_t next =
            end < b->n ? w->rests[w->order[b->first + end].vertex].first_member[d - 1] : b->members[d - 1];
        items[d] = next - w->rests[w->order[b->first + t->first].vertex].first_member[d - 1];
    }
}

static inline uint32_t vpps_n_sources(const vpps_vertex_work *v) { return v[1].first_source - v->first_source; }

static inline uint32_t vpps_block_of(const vpps_batch_work *w, uint32_t vertex) {
    return w->used[w->vertices[vertex].type].first_block + w->place[vertex];
}

/* The first of those that v is joined with. */
static inline uint32_t vpps_find_root(uint32_t *parent, uint32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

static inline uint32_t vpps_group_of(const vpps_batch_work *w, uint32_t vertex) {
    const uint32_t place = w->place[vertex], n = w->n_groups;
    return n && place >= n ? place % n : place; /* nearly always the latter */
}

/* Of all waves. */
static inline uint32_t vpps_all_slices(const vpps_batch_work *w) { return w->n_waves * w->n_slices; }

/* The last slice of a slice's wave. */
static inline uint32_t vpps_last_slice(const vpps_batch_work *w, uint32_t slice) {
    return slice - slice % w->n_slices + w->n_slices - 1;
}

/* A slice's blocks, in their order: type after type, and of each those of all groups. The first is also the first type's. */
static inline uint32_t vpps_first_of_slice(const vpps_batch_work *w, uint32_t slice) { return slice * w->n_groups; }
static inline uint32_t vpps_next_of_slice(const vpps_batch_work *w, uint32_t block) {
    return block + 1 + ((block + 1) % w->n_groups ? 0 : (vpps_all_slices(w) - 1) * w->n_groups);
}

/* What the given outputs of a type are made of: `reads` is its reads_inputs or reads_lookups. */
static inline uint64_t vpps_reached(const uint64_t *reads, uint64_t outputs) {
    uint64_t reached = 0;
    for (; outputs; outputs &= outputs - 1) reached |= reads[__builtin_ctzll(outputs)];
    return reached;
}

/* The vertices of a block, in its order. */
static inline const vpps_ordered_vertex *vpps_vertices_of(const vpps_batch_work *w, const vpps_block_work *b) {
    return w->order + b->first;
}

/* A number that a vertex has of its own: an index that its cell pulled, or its op's. */
static inline uint32_t vpps_word_of(const vpps_batch_work *w, const vpps_ordered_vertex *v, uint32_t kind,
                                    uint32_t value) {
    return kind == VPPS_WORD_INDEX ? w->g->words[v->words + value] : v->words;
}

static inline uint32_t vpps_row_of(const vpps_batch_work *w, const vpps_ordered_vertex *v, const vpps_cell_lookup *l) {
    return l->kind == VPPS_WORD_DROPOUT ? l->value : vpps_word_of(w, v, l->kind, l->value);
}

static inline vpps_block vpps_block_made(const vpps_batch_work *w, uint32_t i) {
    const vpps_block_work *b = &w->blocks[i];
    vpps_block made = {.cell = w->used[b->type].cell_number, .group = b->group, .n = b->n, .arrays = b->arrays};
    memcpy(made.members, b->members, sizeof made.members);
    memcpy(made.kept, b->kept, sizeof made.kept);
    return made;
}

/* Where the sources of an input lie among a vertex's: behind those of the inputs before it, of each domain. */
typedef struct vpps_input_place {
    uint32_t n[VPPS_DOMAINS];
    uint32_t n_lists; /* of the cell */
} vpps_input_place;

static inline vpps_input_place vpps_place_of_input(const vpps_compiled_cell *c, uint32_t input) {
    vpps_input_place place = {.n_lists = c->n_lists};
    for (uint32_t k = 0; k < input; k++) place.n[c->input_domain[k]]++;
    return place;
}

static inline size_t vpps_source_at(const vpps_batch_work *w, const vpps_ordered_vertex *v, vpps_input_place place) {
    size_t at = (size_t)v->first_source + place.n[0];
    for (uint32_t d = 1; d <= place.n_lists; d++)
        if (place.n[d]) at += (size_t)place.n[d] * w->rests[v->vertex].members[d - 1];
    return at;
}

#endif
