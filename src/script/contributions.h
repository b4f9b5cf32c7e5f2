/* contributions.h - contributions: the gradient of a value is a sum with one term, its contribution, from each vertex that reads the value.
 * Counts the contributions to each vertex output and table entry, and lists their offsets. */
#pragma once

#include "script/phases.h"
#include "script/task.h"

/* A mark at a row of a lookup table. `entry`: number of the row among the rows that the batch trains; valid only if `stamp` is the batch's stamp. */
typedef struct vpps_row_mark {
    uint32_t stamp, entry;
} vpps_row_mark;

/* Marks at all rows of all lookup tables, by which a batch counts each row once. Marks stay from batch to batch, so that no batch has to clear
 * them. */
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
    uint32_t number; /* the entry's number among the table's trained entries, in the order of their first use */
} vpps_entry;

/* For a block (vertices of one type, group, slice of the batch): the index of its first element in two arrays of vpps_contributions: in `runs`,
 * which lists the block's tasks by stage and level (level 0 for a task over all levels), and in `uses`, which lists the table entries to whose
 * gradients the block's vertices add. */
typedef struct vpps_block_uses {
    uint32_t runs, uses;
} vpps_block_uses;

/* Offsets in the pool of the values that a block of vertices keeps for backward: [0] values of the vertices, [d] values for the members of list
 * input d - 1. */
typedef struct vpps_block_memory {
    uint32_t kept[VPPS_AXES];
} vpps_block_memory;

typedef struct vpps_contributions {
    const vpps_tasks *tasks;
    /* for each output of a vertex: number of terms that are summed up to its gradient (meaningless for an output without gradient) */
    const uint32_t *counts;
    /* for each output: number of terms of its gradient that are stored as two factors (scalar, vector) and not in `counts`; NULL: there are none */
    const uint32_t *pairs;
    const vpps_entry *entries; /* entries of tables that the batch trains, in the order of their first use */
    const uint32_t *of_table;  /* for each parameter that is a lookup table: number of its trained entries */
    /* for each term of the gradient of a table entry: index in `entries` of that entry; sorted by block, contribution and vertex */
    const uint32_t *uses;
    /* indices in tasks->all of the tasks that compute terms of gradients, for each block of vertices in turn */
    const uint32_t *runs;
    const vpps_block_uses *blocks;
    uint32_t n_entries;
    /* number of words in an element of a list of pairs (scalar, vector); an element is a run of pairs if vertices share long lists */
    uint32_t pair_words;
} vpps_contributions;

/* Counts the terms of the gradient of every output that has one (one term for each vertex that reads the output), and finds the table entries
 * that get gradients. Returns false if out of memory. */
bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out);

/* Writes to the script, for each output, the offsets of the terms that are summed up to its gradient, from address list_at[output] on, and pairs
 * (offset of a scalar, offset of a vector) for terms stored as two factors, from address pairs_at[output] on; advances both addresses. `placed`:
 * offsets of each vertex block's kept values. `offsets`: for each task, the offset of the gradients that it computes. */
void vpps_write_contributions(const vpps_contributions *all, const vpps_block_memory *placed, const uint32_t *offsets,
                              uint32_t *list_at, uint32_t *pairs_at, uint32_t *words);

/* The gradients that vertices of the current slice (part of the batch) compute for one table entry, to be summed up. */
typedef struct vpps_entry_list {
    uint32_t slice; /* latest slice (part of a wave) whose vertices use the table entry; VPPS_NONE: none yet */
    uint32_t count; /* number of gradients to add up: one for each use in this slice and, if any, earlier slices' sum */
    uint32_t at;    /* address in the script for the offset of the entry's next gradient */
    bool made;      /* whether an earlier slice (of a wave) has summed a gradient for the table entry */
} vpps_entry_list;

typedef struct vpps_entry_lists {
    vpps_entry_list *of; /* for each table entry: list of its gradients to be summed up */
    uint32_t *touched;   /* indices in `of` of the entries that this slice (part of a wave) uses, by first use */
    uint32_t n_touched;
} vpps_entry_lists;

/* Allocates empty lists for all table entries that the batch trains. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists);

/* Begins a slice (part of a wave): finds the table entries that the slice uses, and counts the gradients of each. With a single slice the list
 * is all entries in order, so that the virtual processor that adds up an entry's gradient also owns the entry. */
void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists);

/* Writes into the script, for the table entries that a slice (part of the batch) uses, the offsets of the gradients to be summed up. */
void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words);
