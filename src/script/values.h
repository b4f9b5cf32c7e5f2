/* values.h - what steps of the scheduler hand to the next ones: each is made by one function, and only read then. Memory is kept for the
 * next batch. */
#ifndef VPPS_SCRIPT_VALUES_H
#define VPPS_SCRIPT_VALUES_H

#include "base/base.h"

/* The components of a batch's graph: needed vertices that are joined through reads. components.c */
typedef struct vpps_components {
    uint32_t *of; /* number of each needed vertex's component, in the order of their first vertices */
    uint32_t n;   /* 0: they have not been looked for */
    size_t of_capacity;
} vpps_components;

/* An entry of a lookup table that the batch trains. */
typedef struct vpps_entry {
    uint32_t table, row;
    uint32_t number; /* among the table's, in the order of their first use */
} vpps_entry;

/* A row of a table: its entry, if the stamp is the batch's. */
typedef struct vpps_row_entry {
    uint32_t stamp, entry;
} vpps_row_entry;

/* A parameter's rows, if it is a table. */
typedef struct vpps_table_rows {
    vpps_row_entry *rows; /* NULL: none has been trained yet */
    uint32_t n;           /* entries in this batch */
} vpps_table_rows;

/* Of a block: where its tasks are in `runs`, by stage and level, those over all levels as of level 0; where its uses are in `uses`. */
typedef struct vpps_block_uses {
    uint32_t runs, uses;
} vpps_block_uses;

/* What vertices contribute to gradients: vpps_count_contributions. */
typedef struct vpps_contributions {
    uint32_t *counts;    /* to each output; nobody adds them up where it has no gradient */
    vpps_entry *entries; /* in the order of their first use */
    uint32_t *uses; /* entries that vertices contribute to, block after block, in the order of their contributions */
    uint32_t *runs; /* numbers of tasks */
    vpps_block_uses *blocks;
    vpps_table_rows *tables; /* of each parameter */
    uint32_t n_entries, n_uses, n_tables, stamp;
    size_t counts_capacity, entries_capacity, uses_capacity, runs_capacity, blocks_capacity;
} vpps_contributions;

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
    size_t of_capacity, touched_capacity;
} vpps_entry_lists;

/* The constants of a group: factors of its terms in the loss, one for all of the same in a row. */
typedef struct vpps_group_constants {
    uint32_t n, last;        /* last: the bits of the one made last */
    uint32_t list, next, at; /* addresses of the first and of the next; offset in the pool of the next */
} vpps_group_constants;

/* Where what a script names lies: vpps_encode_batch. */
typedef struct vpps_script_places {
    uint32_t *output_at;   /* offset of every needed output's value */
    uint32_t *gradient_at; /* of every output whose gradient is kept for the host, its offset; else VPPS_NONE */
    uint32_t *list_at;     /* address of every output's next contribution; VPPS_NONE: it has no gradient */
    vpps_group_constants *constants; /* of each group */
    uint32_t constants_at;           /* offset in the pool */
    vpps_entry_lists entries;
    size_t output_at_capacity, gradient_at_capacity, list_at_capacity, constants_capacity;
} vpps_script_places;

#endif
