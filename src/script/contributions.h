/* contributions.h - what a batch's vertices contribute to gradients: how much to each output and to each entry of a table, and the
 * lists of where it lies. */
#pragma once

#include "script/phases.h"
#include "script/task.h"

/* The entry of a table's row; valid if the stamp is the batch's. */
typedef struct vpps_row_mark {
    uint32_t stamp, entry;
} vpps_row_mark;

/* The rows of tables, from batch to batch. */
typedef struct vpps_row_marks {
    vpps_row_mark *
        *tables;    /* for each parameter, a mark for each row; NULL: no batch has trained the parameter as a table */
    size_t n;       /* parameters */
    uint32_t stamp; /* the batch's */
} vpps_row_marks;

void vpps_row_marks_free(vpps_row_marks *m);

/* An entry of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row;
    uint32_t number; /* among the table's, in the order of their first use */
} vpps_entry;

/* Of a block: where its tasks are in `runs`, by stage and level, those over all levels as of level 0; where its uses are in `uses`. */
typedef struct vpps_block_uses {
    uint32_t runs, uses;
} vpps_block_uses;

/* Offsets of a block's kept values, by axis. */
typedef struct vpps_block_memory {
    uint32_t kept[VPPS_AXES];
} vpps_block_memory;

typedef struct vpps_contributions {
    const vpps_tasks *tasks;
    const uint32_t *counts;    /* to each output; those to an output without a gradient are not added up */
    const uint32_t *pairs;     /* likewise, of scaled ones, which do not count there; NULL: there are none */
    const vpps_entry *entries; /* in the order of their first use */
    const uint32_t *of_table;  /* of each parameter, how many of the entries are a table's */
    const uint32_t *uses;      /* entries that vertices contribute to, block after block, by contribution */
    const uint32_t *runs;      /* numbers of tasks */
    const vpps_block_uses *blocks;
    uint32_t n_entries;
} vpps_contributions;

/* How many contributions every output with a gradient gets, and which entries get some. False: out of memory. */
bool vpps_count_contributions(const vpps_tasks *t, vpps_row_marks *marks, vpps_arena *arena, vpps_contributions *out);

/* Writes the offsets of contributions to outputs into the script, at the address list_at of each output, and advances that address.
 * offsets: of each task, where what it contributes lies. */
void vpps_write_contributions(const vpps_contributions *all, const uint32_t *offsets, uint32_t *list_at,
                              uint32_t *words);

/* Writes the pairs of scaled contributions in the same way, at pairs_at. placed: of each block. */
void vpps_write_pairs(const vpps_contributions *all, const vpps_block_memory *placed, uint32_t *pairs_at,
                      uint32_t *words);

/* ---------------------------------------------------------------- entries, slice by slice */

/* What the slice at hand contributes to an entry. */
typedef struct vpps_entry_list {
    uint32_t slice; /* the last that contributes to it; VPPS_NONE: none yet */
    uint32_t count; /* contributions in this slice, the sum of earlier ones included */
    uint32_t at;    /* address in the script of the next one */
    bool made;      /* by an earlier slice */
} vpps_entry_list;

typedef struct vpps_entry_lists {
    vpps_entry_list *of; /* of each entry */
    uint32_t *touched;   /* entries that the slice contributes to, in the order of their first use */
    uint32_t n_touched;
} vpps_entry_lists;

/* Lists of all entries, of no slice yet. False: out of memory. */
bool vpps_open_entries(const vpps_contributions *all, vpps_arena *arena, vpps_entry_lists *lists);

/* Goes on to a slice: finds the entries that the slice contributes to, and counts its contributions to each. With a single slice these are
 * all entries in their order, so that the VP that adds an entry's gradient up is the one that owns the entry. */
void vpps_touch_entries(const vpps_contributions *all, uint32_t slice, vpps_entry_lists *lists);

/* Writes where the slice's contributions to entries lie. */
void vpps_write_entries(const vpps_contributions *all, const uint32_t *offsets, uint32_t slice, vpps_entry_lists *lists,
                        uint32_t *words);
