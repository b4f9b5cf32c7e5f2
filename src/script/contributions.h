/* contributions.h - counts and lists contributions. The gradient of a vertex output or table entry is a sum with one term, a contribution,
 * from each vertex that reads the output or entry. */
#pragma once

#include "script/phases.h"
#include "script/task.h"

/* A mark for a row of a lookup table. If `stamp` is the current batch's, the batch trains the row: vpps_contributions.entries[entry]. */
typedef struct vpps_row_mark {
    uint32_t stamp, entry;
} vpps_row_mark;

/* Marks for all rows of all lookup tables, so that a batch counts each row once. A mark with an old stamp is from an earlier batch. */
typedef struct vpps_row_marks {
    /* for each parameter: array with a mark for each row if the parameter is a lookup table; NULL: no table, or no batch has trained it */
    vpps_row_mark **tables;
    size_t n;       /* number of parameters */
    uint32_t stamp; /* stamp of the current batch */
} vpps_row_marks;

void vpps_row_marks_free(vpps_row_marks *m);

/* An entry (row) of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row;
    uint32_t number; /* the entry's number among the table's trained entries, in the order of their first use */
} vpps_entry;

/* Where the data of a block (vertices of one type in one group of virtual processors and one part of the batch) begin in two arrays of
 * vpps_contributions. runs: the block's tasks by stage and level (level 0 for a task over all levels). uses: the table entries to whose
 * gradients the block's vertices contribute. */
typedef struct vpps_block_uses {
    uint32_t runs, uses;
} vpps_block_uses;

/* Offsets of the values that a block of vertices keeps for backward: [0]: of vertices; [d]: of members (nodes read) of list input d - 1. */
typedef struct vpps_block_memory {
    uint32_t kept[VPPS_AXES];
} vpps_block_memory;

typedef struct vpps_contributions {
    const vpps_tasks *tasks;
    /* for each output of a vertex: number of terms of its gradient; meaningless if the output has no gradient */
    const uint32_t *counts;
    /* for each output of a vertex: number of terms of its gradient that are stored as two factors (scalar, vector); NULL: there are none */
    const uint32_t *pairs;
    const vpps_entry *entries; /* entries of tables that the batch trains, in the order of their first use */
    const uint32_t *of_table;  /* for each parameter that is a lookup table: number of its trained entries */
    /* for each contribution to a table entry: index of that entry in `entries`; sorted by block, cell's contribution and vertex */
    const uint32_t *uses;
    /* indices in tasks->all of the tasks that compute terms of gradients, for each block of vertices in turn */
    const uint32_t *runs;
    const vpps_block_uses *blocks;
    uint32_t n_entries;
    /* words per element in the lists of terms stored as two factors: 2 (offsets of scalar and vector) or 5 (vpps_pair_run) */
    uint32_t pair_words;
} vpps_contributions;

/* Counts the terms of each output's gradient (one term for each vertex that reads the output), and finds the table entries that get
 * gradients. Returns false if out of memory. */
bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out);

/* Writes to the script the offsets of the terms of each output's gradient, from address list_at[output] on. For terms that are stored as
 * two factors, writes pairs (offset of a scalar, offset of a vector), from address pairs_at[output] on. Advances both addresses. `placed`:
 * for each block of vertices, the offsets of its kept values. `offsets`: for each task, the offset of its gradients. */
void vpps_write_contributions(const vpps_contributions *all, const vpps_block_memory *placed, const uint32_t *offsets,
                              uint32_t *list_at, uint32_t *pairs_at, uint32_t *words);

/* The gradients that vertices of the current slice (part of the batch) compute for one table entry, to be summed up. */
typedef struct vpps_entry_list {
    uint32_t slice; /* latest slice (part of the batch) whose vertices look up the table entry; VPPS_NONE: none yet */
    /* number of gradients to add up in this slice (part of the batch); the sum of all earlier slices, if any, counts as one of them */
    uint32_t count;
    uint32_t at; /* address in the script for the offset of the entry's next gradient */
    bool made;   /* whether an earlier slice (part of the batch) has summed a gradient for the table entry */
} vpps_entry_list;

typedef struct vpps_entry_lists {
    vpps_entry_list *of; /* for each table entry: list of its gradients to be summed up */
    /* numbers of the table entries that the current slice (part of the batch) looks up, by first lookup */
    uint32_t *touched;
    uint32_t n_touched;
} vpps_entry_lists;

/* Allocates empty lists for all table entries that the batch trains. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists);

/* Begins a slice (part of the batch): finds the table entries that the slice's vertices look up, and counts the gradients of each. The only
 * slice of a batch finds all trained entries in order; each virtual processor then sums up gradients of entries that it also updates. */
void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists);

/* Writes into the script, for the table entries that a slice (part of the batch) uses, the offsets of the gradients to be summed up. */
void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words);
