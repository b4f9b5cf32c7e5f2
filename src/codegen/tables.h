/* tables.h - the tables by which a kernel finds parameters, rows and pieces: their layout (the kernel's constants) and
 * their content. interp_templates/arguments.cuh says what the entries are. */
#ifndef VPPS_TABLES_H
#define VPPS_TABLES_H

#include "plan/partition.h"

/* Word offsets into the tables. */
typedef struct vpps_tables_layout {
    uint32_t params, matrices;
    uint32_t pieces, column_pieces; /* [vp * n_matrices + matrix]: number of the VP's first piece */
    uint32_t copy;      /* [(vp * slots + slot) * warps + warp]: what a slot of the transposed copy holds: where
                                       the matrix's row words begin, and the first column */
    uint32_t rows;      /* [matrix]: a word for each row, see vpps_matrix_entry */
    uint32_t zero_rows; /* row words that all point to the row of zeros: what empty slots hold */
    uint32_t words;
} vpps_tables_layout;

vpps_tables_layout vpps_tables_lay_out(const vpps_partition *p);

/* The tables for a pool laid out as `plan` says; malloc'd, the caller's. NULL: out of memory. */
uint32_t *vpps_tables_create(const vpps_partition *p, const vpps_model *model, const vpps_plan *plan);

#endif
