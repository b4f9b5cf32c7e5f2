/* contributions.h - counts and lists contributions. The gradient of a vertex output or table entry is a sum with one term, a contribution,
 * from each vertex that reads the output or entry. */
#pragma once

#include "script/phases.h"
#include "script/task.h"

/* A row of a lookup table: `stamp` of the latest batch that trains it, and its index in that batch's `entries`. */
typedef struct vpps_row_mark {
    uint32_t stamp, entry;
} vpps_row_mark;

/* Marks for all rows of all lookup tables, so that a batch counts each row once. A mark with an old stamp is from an earlier batch. */
typedef struct vpps_row_marks {
    /* for each parameter: NULL, or for a table that batches trained: each row's mark (latest batch that trained it) */
    vpps_row_mark **tables;
    size_t n;       /* number of parameters */
    uint32_t stamp; /* number in the marks of rows that the current batch trains; another one for each batch */
} vpps_row_marks;

void vpps_row_marks_free(vpps_row_marks *m);

/* An entry (row) of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row;
    uint32_t number; /* the entry's number among the table's trained entries, in the order of their first use */
} vpps_entry;

/* A block is the vertices of one type that one group of threads or CTAs runs in one part of the batch. runs: where vpps_contributions.runs
 * has the block's tasks, by stage (part of the cell) and level (0: all levels); uses: where vpps_contributions.uses has the table entries
 * for which the block's vertices compute gradients. */
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
    /* index in `entries` of the table entry of each gradient that vertices compute for entries, by type of vertices */
    const uint32_t *uses;
    /* for each block (vertices of one type), stage (part of their cell) and level: index in tasks->all of their task */
    const uint32_t *runs;
    const vpps_block_uses *blocks;
    uint32_t n_entries;
    uint32_t run_words; /* number of words of the batch's program for runs (vpps_pair_run) of gradients' terms */
} vpps_contributions;

/* Counts each output gradient's terms (one per reading vertex), finds table rows with gradients. False: no memory. */
bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out);

/* Writes the lists of the terms of outputs' gradients to `words`, the batch's program. (Readers of an output compute a term each.)
 * list_at[output]: address to which a term's offset is written. pairs_at[output]: address for a term that is stored as factors, which gets
 * the offsets of scalar and vector. Many such terms, a constant distance apart, take one pair: the first scalar's offset, and the address
 * of a vpps_pair_run, which is written from runs_at on. Advances list_at, pairs_at. `placed`: where blocks (vertices of one cell) have
 * factors; `offsets`: each task's gradients. */
void vpps_write_contributions(const vpps_contributions *all, const vpps_block_memory *placed, const uint32_t *offsets,
                              uint32_t *list_at, uint32_t *pairs_at, uint32_t runs_at, uint32_t *words);

/* The gradients that vertices of the current slice (part of the batch) compute for one table entry, to be summed up. */
typedef struct vpps_entry_list {
    uint32_t slice; /* latest slice (part of the batch) whose vertices look up the table entry; VPPS_NONE: none yet */
    /* number of gradients to add up in this slice (part of the batch); the sum of all earlier slices, if any, counts as one of them */
    uint32_t count;
    uint32_t at; /* where in the batch's program the offset of the table entry's next gradient is to be written */
    bool made;   /* whether an earlier slice (part of the batch) has summed a gradient for the table entry */
} vpps_entry_list;

typedef struct vpps_entry_lists {
    vpps_entry_list *of; /* for each table row that the batch trains: the list of its gradients to be summed up */
    /* numbers of the table entries that the current slice (part of the batch) looks up, by first lookup */
    uint32_t *touched;
    uint32_t n_touched;
} vpps_entry_lists;

/* Allocates empty lists for all table entries that the batch trains. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists);

/* Begins a slice (part of the batch): finds the table entries that its vertices look up, and counts their gradients. */
void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists);

/* Writes into the batch's program (script) the offsets of the gradients that the vertices of one slice (part of the
 * batch) compute for table entries, entry by entry. The device then adds up each entry's gradients. */
void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words);
