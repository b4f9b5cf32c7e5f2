/* contributions.h - the gradients that vertices contribute: numbers for each output and table entry, and lists of their offsets. */
#pragma once

#include "script/phases.h"
#include "script/task.h"

/* For a row of a lookup table: the number of its entry. Valid if the stamp is the batch's. */
typedef struct vpps_row_mark {
    uint32_t stamp, entry;
} vpps_row_mark;

/* The marks of all tables' rows; they last from batch to batch. */
typedef struct vpps_row_marks {
    /* For each parameter a mark for each row; NULL: no batch has trained the parameter as a table. */
    vpps_row_mark **tables;
    size_t n;       /* number of parameters */
    uint32_t stamp; /* stamp of the present batch */
} vpps_row_marks;

void vpps_row_marks_free(vpps_row_marks *m);

/* An entry of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row;
    uint32_t number; /* number among the table's entries, in the order of their first use */
} vpps_entry;

/* A block's positions: of its tasks in `runs`, by stage and level (level 0 for a task over all levels); and of its entries in `uses`. */
typedef struct vpps_block_uses {
    uint32_t runs, uses;
} vpps_block_uses;

/* Offsets of a block's kept values, by axis. */
typedef struct vpps_block_memory {
    uint32_t kept[VPPS_AXES];
} vpps_block_memory;

typedef struct vpps_contributions {
    const vpps_tasks *tasks;
    /* for each output: the number of contributions to its gradient; without a gradient they are not added up */
    const uint32_t *counts;
    /* for each output: the number of scaled contributions, which `counts` leaves out; NULL: there are none */
    const uint32_t *pairs;
    const vpps_entry *entries; /* trained entries of tables, in the order of their first use */
    const uint32_t *of_table;  /* for each parameter: the number of its entries, if it is a table */
    const uint32_t *uses;      /* entries that vertices contribute to, block after block, by contribution */
    const uint32_t *runs;      /* numbers of the tasks that make contributions, block after block */
    const vpps_block_uses *blocks;
    uint32_t n_entries;
} vpps_contributions;

/* Counts the contributions to every output with a gradient, and finds the entries that get contributions. False: out of memory. */
bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out);

/* Writes the offsets of contributions to outputs into the script, at the address list_at of each output, and advances that address.
 * `offsets`: for each task, the offset of its contributions. */
void vpps_write_contributions(const vpps_contributions *all, const uint32_t *offsets, uint32_t *list_at,
                              uint32_t *words);

/* Writes the pairs of scaled contributions (offsets of the scalar and the vector) at the address pairs_at of each output, and advances
 * that address. `placed`: offsets of each block's kept values. */
void vpps_write_pairs(const vpps_contributions *all, const vpps_block_memory *placed, uint32_t *pairs_at,
                      uint32_t *words);

/* ---------------------------------------------------------------- entries of tables, slice by slice */

/* The contributions of the present slice to an entry. */
typedef struct vpps_entry_list {
    uint32_t slice; /* latest slice that contributes to the entry; VPPS_NONE: none yet */
    uint32_t count; /* number of contributions in this slice, plus one for the sum of earlier slices */
    uint32_t at;    /* address in the script of the next contribution */
    bool made;      /* an earlier slice has summed a gradient for the entry */
} vpps_entry_list;

typedef struct vpps_entry_lists {
    vpps_entry_list *of; /* the list of each entry */
    uint32_t *touched;   /* entries that the slice contributes to, in the order of their first use */
    uint32_t n_touched;
} vpps_entry_lists;

/* Allocates empty lists for all entries. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists);

/* Begins a slice: finds the entries that it contributes to, and counts its contributions to each. With a single slice these are all
 * entries in their order, so that the VP that adds up an entry's gradient is the one that owns the entry. */
void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists);

/* Writes the offsets of the slice's contributions to entries. */
void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words);
