/* contributions.h - the gradients that vertices contribute: counts for each output and table entry, and lists of their offsets. */
#pragma once

#include "script/phases.h"
#include "script/task.h"

/* Mark of a lookup table's row: the number of its entry in the present batch. Valid if the stamp is the batch's. */
typedef struct vpps_row_mark {
    uint32_t stamp, entry;
} vpps_row_mark;

/* The marks of all lookup tables' rows; they are reused from batch to batch. */
typedef struct vpps_row_marks {
    /* For each parameter: an array with a mark for each row; NULL: no batch has trained the parameter as a table. */
    vpps_row_mark **tables;
    size_t n;       /* number of parameters */
    uint32_t stamp; /* stamp of the present batch; marks with another stamp are out of date */
} vpps_row_marks;

void vpps_row_marks_free(vpps_row_marks *m);

/* An entry (row) of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row;
    uint32_t number; /* index among the table's trained entries, in the order of their first use */
} vpps_entry;

/* Where a block's numbers begin: those of its tasks in `runs`, by stage and level (level 0 for a task over all levels), and its table
 * entries in `uses`. */
typedef struct vpps_block_uses {
    uint32_t runs, uses;
} vpps_block_uses;

/* For each axis: offset of a block's kept values. */
typedef struct vpps_block_memory {
    uint32_t kept[VPPS_AXES];
} vpps_block_memory;

typedef struct vpps_contributions {
    const vpps_tasks *tasks;
    /* for each output: number of contributions to its gradient; without a gradient they are not added up */
    const uint32_t *counts;
    /* for each output: number of scaled contributions, which `counts` leaves out; NULL: no output has any */
    const uint32_t *pairs;
    const vpps_entry *entries; /* trained entries of tables, in the order of their first use */
    const uint32_t *of_table;  /* for each parameter that is a lookup table: number of its trained entries */
    /* numbers of the table entries that vertices contribute to, block after block, contribution after contribution */
    const uint32_t *uses;
    const uint32_t *runs; /* numbers of the tasks that compute contributions, block after block */
    const vpps_block_uses *blocks;
    uint32_t n_entries;
} vpps_contributions;

/* Counts the contributions to every output with a gradient, and finds the table entries that get contributions. False: out of memory. */
bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out);

/* For each output, writes the offsets of the contributions to its gradient into the script at address list_at[output], and its scaled
 * contributions as pairs (offset of the scalar, offset of the vector) at pairs_at[output]; advances both. `placed`: offsets of each block's
 * kept values; `offsets`: for each task, the offset of its contributions. */
void vpps_write_contributions(const vpps_contributions *all, const vpps_block_memory *placed, const uint32_t *offsets,
                              uint32_t *list_at, uint32_t *pairs_at, uint32_t *words);

/* ---------------------------------------------------------------- entries of tables, slice by slice */

/* The gradients that the present slice contributes to one table entry. */
typedef struct vpps_entry_list {
    uint32_t slice; /* latest slice that contributes to the table entry; VPPS_NONE: none yet */
    uint32_t count; /* number of contributions in this slice, plus one if earlier slices have a sum */
    uint32_t at;    /* address in the script for the offset of the next contribution */
    bool made;      /* whether an earlier slice has summed a gradient for the table entry */
} vpps_entry_list;

typedef struct vpps_entry_lists {
    vpps_entry_list *of; /* for each table entry: its list of contributions */
    uint32_t *touched;   /* table entries that the slice contributes to, in the order of their first use */
    uint32_t n_touched;
} vpps_entry_lists;

/* Allocates empty lists for all trained table entries. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists);

/* Begins a slice: finds the table entries that the slice contributes to, and counts the contributions to each. With a single slice the list
 * is all entries in order, so that the virtual processor that adds up an entry's gradient also owns the entry. */
void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists);

/* Writes the offsets of the slice's contributions to table entries into the script. */
void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words);
