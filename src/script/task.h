/* task.h - the layout of a script (a batch's program): header, blocks, tables, lists, tasks. All devices, printer and verifier read it.
 *
 * A script is one buffer of 32-bit words; an address is an index into the script, an offset is an index into the pool of memory.
 *
 *   header (vpps_task_header)
 *   starts[n_groups + 1]: group g of threads or CTAs runs the tasks at [starts[g], starts[g + 1]); its last is an END task
 *   blocks, lists, tables
 *   tasks (vpps_task), group after group
 *
 * A block is the vertices of one cell that one group of threads or CTAs (VPs) runs, sorted by level. A block's vertices are numbered
 * from 0. Members (nodes read) of a list input are numbered from 0, too, through the lists of all vertices. Arrays of a block, in order:
 *
 *   vertices[n]                      the graph's record of each vertex, for printing and checking
 *   for each input that is no list:  offsets[n]: for each vertex, offset of the value that the input reads
 *   for each lookup:                 offsets[n]: for each vertex, offset of the table entry
 *   for each integer of the cell:    words[n]: the integer of each vertex
 *   only for an input op:            addresses[n]: for each vertex, where its data lie in the script
 *   for each list:                   starts[n + 1]: the number of each vertex's first member; for each of its inputs: address, shift.
 *                                    Member m's value lies at script[address + m] + shift. Inputs may share an array of offsets.
 *   for each output with a gradient: starts[n + 1], then offsets of contributions: vertex v has those from starts[v] to starts[v + 1].
 *                                    If header.pairs is set, starts[n + 1] and pairs: offsets of a scalar and a vector to multiply;
 *                                    if header.pairs is 2, offset of a run's first scalar and address of the run (vpps_pair_run)
 *
 * An ENTRIES task adds up the gradients that a slice (a part of a wave of the batch) computes for table entries. At its address lie:
 *
 *   n, entries[n]                    number of entries, and their numbers among the table's trained entries
 *   starts[n + 1], offsets           offsets of contributions, for entry i from starts[i] to starts[i + 1]. The first is the entry's
 *                                    own gradient, if an earlier slice has summed one.
 */
#pragma once

#include "cell/program.h"
#include "script/header.h"

typedef enum vpps_task_kind {
#define TASK(id, ...) VPPS_TASK_##id,
#include "script/tasks.def"
#undef TASK
    VPPS_TASK_COUNT
} vpps_task_kind;

typedef struct vpps_task_row {
    const char *name;
    uint32_t n_operands;
} vpps_task_row;

extern const vpps_task_row vpps_task_rows[VPPS_TASK_COUNT];

#define VPPS_TASK_MAGIC 0x544b5357u

_Static_assert(sizeof(vpps_block) == (3 + VPPS_CELL_LISTS + VPPS_AXES + 1) * sizeof(uint32_t),
               "words, nothing between");

/* An ENTRIES task adds up gradients of table entries. Its list: gradients of entry entries[i] lie at offsets[starts[i]] and following. */
typedef struct vpps_entry_sums {
    uint32_t n;
    const uint32_t *entries, *starts, *offsets;
} vpps_entry_sums;

/* A block (the vertices of one cell that one group of threads or CTAs runs), with its arrays in the batch's program. */
typedef struct vpps_block_view {
    const vpps_block *block;
    const vpps_compiled_cell *cell;
    const uint32_t *vertices;
    /* inputs[i][v] + shifts[i]: where in memory input i of vertex v lies; if i is a list input: node v, counted through all vertices' lists */
    const uint32_t *inputs[VPPS_CELL_MOST];
    /* added to inputs[i]: list inputs whose values are a constant distance apart share an array of offsets; else 0 */
    int32_t shifts[VPPS_CELL_MOST];
    const uint32_t *lookups[VPPS_CELL_MOST];
    const uint32_t *words[VPPS_CELL_MOST];
    const uint32_t *data;
    const uint32_t *lists[VPPS_AXES]; /* d > 0: vertices before v read lists[d][v] nodes through list input d - 1 */
    /* for each output and vertex: index in `gradients` of the first term of the output's gradient */
    const uint32_t *gradient_starts[VPPS_CELL_MOST];
    const uint32_t *gradients[VPPS_CELL_MOST];
    /* A gradient's term may be stored as a pair, scalar and vector, to be multiplied. pair_starts[k][v]: index in
     * pairs[k] of the first such term of vertex v's output k; NULL: no pairs. */
    const uint32_t *pair_starts[VPPS_CELL_MOST];
    const uint32_t *pairs[VPPS_CELL_MOST];
    const uint32_t *runs; /* the batch's program, if `pairs` has addresses of runs (vpps_pair_run) in it; else NULL */
    uint64_t end; /* where in the batch's program the block's arrays end; beyond its end if the program is truncated */
} vpps_block_view;

/* A run: n terms of an output's gradient at equal distances in memory, each a scalar times a vector. Term i's scalar has the offset `by` +
 * i * `by_step`, its vector `of` + i * `of_step`. In a batch's program, the output's list of pairs has `by` and the address of the other
 * four members, which outputs may share. They follow the lists of all tasks ENTRIES (which add up gradients of table entries). */
typedef struct vpps_pair_run {
    uint32_t by, of, by_step, of_step, n;
} vpps_pair_run;
enum {
    VPPS_PAIRS_IN_RUNS = 2 /* vpps_task_header.pairs */,
    VPPS_PAIR_WORDS = 2,
    VPPS_RUN_WORDS = sizeof(vpps_pair_run) / 4 - 1
};

/* A term of a gradient may be a scalar times a vector. Returns element i of an output's list of such pairs as a run: n
 * pairs whose scalars, and whose vectors, are at equal distances; a single pair has n = 1. */
static inline vpps_pair_run vpps_run_of_pairs(const vpps_block_view *v, uint32_t output, uint32_t i) {
    const uint32_t *w = v->pairs[output] + VPPS_PAIR_WORDS * (size_t)i, *run = v->runs ? v->runs + w[1] : NULL;
    return run ? (vpps_pair_run){w[0], run[0], run[1], run[2], run[3]} : (vpps_pair_run){w[0], w[1], 0, 0, 1};
}

/* Terms of an output's gradient can be pairs (scalar, vector) to be multiplied. Returns how many such pairs vertices [first, end) have. */
static inline uint64_t vpps_count_pairs(const vpps_block_view *v, uint32_t output, uint32_t first, uint32_t end) {
    const uint32_t *starts = v->pair_starts[output];
    if (starts && !v->runs) return starts[end] - starts[first];
    uint64_t n = 0;
    for (uint32_t i = starts ? starts[first] : 0; starts && i < starts[end]; i++)
        n += vpps_run_of_pairs(v, output, i).n;
    return n;
}

static inline const vpps_task_header *vpps_task_header_of(const uint32_t *script) {
    return (const vpps_task_header *)(const void *)script;
}

enum {
    VPPS_TASK_HEADER_WORDS = sizeof(vpps_task_header) / 4,
    VPPS_TASK_WORDS = sizeof(vpps_task) / 4,
    VPPS_TASK_ALIGNMENT = 4, /* alignment of tasks, in words */
    VPPS_BLOCK_WORDS = sizeof(vpps_block) / 4,
    VPPS_TABLE_WORDS = sizeof(vpps_table) / 4
};
_Static_assert(VPPS_TASK_WORDS % VPPS_TASK_ALIGNMENT == 0, "tasks follow each other");

/* Returns where in a batch's program the tasks of each group of threads or CTAs begin (addresses) and, last, end. */
static inline const uint32_t *vpps_task_starts(const uint32_t *script) { return script + VPPS_TASK_HEADER_WORDS; }

static inline const vpps_task *vpps_task_at(const uint32_t *script, uint32_t address) {
    return (const vpps_task *)(const void *)(script + address);
}

/* Return the first task of a group of threads or CTAs, and the end of its tasks. */
static inline const vpps_task *vpps_first_task(const uint32_t *script, uint32_t group) {
    return vpps_task_at(script, vpps_task_starts(script)[group]);
}
static inline const vpps_task *vpps_end_of_tasks(const uint32_t *script, uint32_t group) {
    return vpps_first_task(script, group + 1);
}

/* Returns the task PAUSE of a group of threads or CTAs, at which a launch stops after forward, so that the host can
 * write gradients; if the group has none, the end of its tasks. */
static inline const vpps_task *vpps_find_pause(const uint32_t *script, uint32_t group) {
    const vpps_task *t = vpps_first_task(script, group), *end = vpps_end_of_tasks(script, group);
    while (t < end && t->kind != VPPS_TASK_PAUSE) t++;
    return t;
}

static inline const vpps_block *vpps_block_at(const uint32_t *script, uint32_t i) {
    return (const vpps_block *)(const void *)(script + vpps_task_header_of(script)->blocks) + i;
}
static inline const vpps_table *vpps_table_at(const uint32_t *script, uint32_t i) {
    return (const vpps_table *)(const void *)(script + vpps_task_header_of(script)->tables) + i;
}

/* Returns the list of a task ENTRIES: table entries, and the terms of each one's gradient. The list must lie in the batch's program. */
static inline vpps_entry_sums vpps_sums_at(const uint32_t *script, uint32_t address) {
    const uint32_t n = script[address], *entries = script + address + 1;
    return (vpps_entry_sums){n, entries, entries + n, entries + 2 * (size_t)n + 1};
}

/* Returns whether the list of a task that adds up gradients of table entries (ENTRIES) lies in the batch's program. */
static inline bool vpps_sums_inside(const uint32_t *script, uint64_t words, uint32_t address) {
    const uint64_t last = address < words ? address + (uint64_t)1 + 2 * (uint64_t)script[address] : words;
    return last < words && script[last] <= words - 1 - last;
}

/* Sets *out to the arrays of a block of vertices. Arrays that end beyond the end of the batch's program get NULL. */
void vpps_view_block(const uint32_t *script, const vpps_block *block, const vpps_compiled_cell *cell,
                     vpps_block_view *out);

/* Returns how many vertices (of one cell, run by one group) a block has (axis 0), or how many nodes they read through list input axis - 1. */
static inline uint32_t vpps_items(const vpps_block *b, uint32_t axis) { return axis ? b->members[axis - 1] : b->n; }

/* Returns the memory offset of the vector that an item (vertex or list member) reads through input number `input`. */
static inline uint32_t vpps_input_at(const vpps_block_view *view, uint32_t input, uint32_t item) {
    return view->inputs[input][item] + (uint32_t)view->shifts[input];
}

/* Gives, for each axis, the items that belong to vertices [first, first + n) of a block: for axis 0 the vertices themselves, for
 * axis d the nodes of their list (input of many nodes) d - 1. first_items: number of the first item; items: number of items. */
static inline void vpps_items_of(const vpps_block_view *view, uint32_t first, uint32_t n, uint32_t *first_items,
                                 uint32_t *items) {
    first_items[0] = first;
    items[0] = n;
    for (uint32_t d = 1; d <= view->cell->n_lists; d++) {
        first_items[d] = view->lists[d][first];
        items[d] = view->lists[d][first + n] - first_items[d];
    }
}

/* A stage (part of a cell) runs over the cell's vertices [first, first + n). The `group` threads or CTAs of a group divide them so that
 * each has about equal work. Returns the vertices of thread or CTA number `member`. lists[d][v], d > 0: how many nodes the vertices before
 * v read through list input d - 1 (an input of any number of nodes). */
vpps_rows vpps_share_of_stage(const vpps_cell_stage *stage, const uint32_t *const *lists, uint32_t first, uint32_t n,
                              uint32_t group, uint32_t member);

/* Contribution j is the gradient that a vertex computes for one of its cell's inputs. Returns how many words this takes
 * for `items` vertices (or nodes of a list input), partial sums of several threads or CTAs included. */
static inline uint64_t vpps_contribution_words(const vpps_compiled_cell *c, uint32_t items, uint32_t j) {
    const vpps_cell_contribution *to = &c->contributions[j];
    const uint64_t words = to->scaled ? 0 : (uint64_t)items * vpps_value_words(&c->values[to->value]);
    return ((words + 15) & ~(uint64_t)15) * vpps_shares_of(&c->values[to->value]);
}

/* A stage (part of a cell) stores its contributions (gradients for inputs) one after the other. Returns the number of words before number
 * j; for j = c->n_contributions, of all words. items[0]: number of vertices; items[d]: of members (nodes read) of list input d - 1. */
static inline uint64_t vpps_contribution_at(const vpps_compiled_cell *c, uint32_t stage, const uint32_t *items,
                                            uint32_t j) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < j; i++) {
        const vpps_cell_value *v = &c->values[c->contributions[i].value];
        if (v->stage == stage) at += vpps_contribution_words(c, items[v->axis], i);
    }
    return at;
}
