/* contributions.h - the gradients that vertices contribute to outputs and table entries that they read: how many each one gets, and lists of offsets. */
#pragma once

#include "script/phases.h"
#include "script/task.h"

/* The mark of a lookup table's row. `entry`: the row's number among the entries that the batch trains, if `stamp` is the batch's stamp. */
typedef struct vpps_row_mark {
    uint32_t stamp, entry;
} vpps_row_mark;

/* Marks at all rows of all lookup tables, by which a batch counts each row once; kept, so that no batch has to clear them. */
typedef struct vpps_row_marks {
    /* For each parameter: an array with a mark for each row of the table; NULL: no table, or no batch has trained it. */
    vpps_row_mark **tables;
    size_t n;       /* number of parameters */
    uint32_t stamp; /* stamp of the current batch; marks with another stamp are out of date */
} vpps_row_marks;

void vpps_row_marks_free(vpps_row_marks *m);

/* An entry (row) of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row;
    uint32_t number; /* index among the table's trained entries, in the order of their first use */
} vpps_entry;

/* Where elements of a block (vertices of one type, group, slice of the batch) begin in two arrays of vpps_contributions: in `runs`, which lists the
 * block's tasks by stage and level (level 0 for a task over all levels), and in `uses`, which lists the table entries that the block contributes to. */
typedef struct vpps_block_uses {
    uint32_t runs, uses;
} vpps_block_uses;

/* Offsets in the pool of the values that a block of vertices keeps for backward: [0] of the vertices, [d] of the members of their lists d - 1. */
typedef struct vpps_block_memory {
    uint32_t kept[VPPS_AXES];
} vpps_block_memory;

typedef struct vpps_contributions {
    const vpps_tasks *tasks;
    /* for each output of a vertex: number of gradients contributed to it (meaningless for an output without gradient) */
    const uint32_t *counts;
    /* for each output: number of contributions that are pairs of factors (scalar, vector), not in `counts`; NULL: there are none */
    const uint32_t *pairs;
    const vpps_entry *entries; /* entries of tables that the batch trains, in the order of their first use */
    const uint32_t *of_table;  /* for each parameter that is a lookup table: number of its trained entries */
    /* for each gradient contributed to a table: the entry's index in `entries`; sorted by block, contribution and vertex */
    const uint32_t *uses;
    const uint32_t *runs; /* indices in tasks->all of the tasks that compute terms of gradients, block by block */
    const vpps_block_uses *blocks;
    uint32_t n_entries;
    uint32_t pair_words; /* words of an element of a list of pairs; or of runs, if vertices share long lists */
} vpps_contributions;

/* Counts the gradients contributed to every output with a gradient, and finds the table entries that get contributions. False: out of memory. */
bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out);

/* For each output, writes the offsets of the contributions to its gradient into the script from address list_at[output] on, and pairs (offset of a
 * scalar, offset of a vector) for its scaled contributions from address pairs_at[output] on; advances both addresses. `placed`: offsets of each
 * vertex block's kept values. `offsets`: for each task, the offset of the gradients that it contributes. */
void vpps_write_contributions(const vpps_contributions *all, const vpps_block_memory *placed, const uint32_t *offsets,
                              uint32_t *list_at, uint32_t *pairs_at, uint32_t *words);

/* ---------------------------------------------------------------- entries of tables, slice by slice */

/* The gradients that the vertices of the slice in work (a share of the batch) contribute to one table entry. */
typedef struct vpps_entry_list {
    uint32_t slice; /* latest slice (of a wave) that contributes to the table entry; VPPS_NONE: none yet */
    uint32_t count; /* number of gradients to add up: this slice's contributions and, if any, earlier slices' sum */
    uint32_t at;    /* address in the script for the offset of the next contribution */
    bool made;      /* whether an earlier slice (of a wave) has summed a gradient for the table entry */
} vpps_entry_list;

typedef struct vpps_entry_lists {
    vpps_entry_list *of; /* for each table entry: its list of contributions */
    uint32_t *touched;   /* indices in `of` of the entries that this slice (of a wave) contributes to, by first use */
    uint32_t n_touched;
} vpps_entry_lists;

/* Allocates empty lists for all table entries that the batch trains. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists);

/* Begins a slice (of a wave): finds the table entries that the slice contributes to, and counts the contributions to each. With a single slice the
 * list is all entries in order, so that the virtual processor that adds up an entry's gradient also owns the entry. */
void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists);

/* Writes the offsets of the contributions of a slice (share of the batch) to table entries into the script. */
void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words);
