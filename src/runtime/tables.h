/* tables.h - lookup tables that are shared out over processes, as a checkpoint has them: whole. A table passes through the first
 * process in pieces, and is never in one place.
 */
#pragma once

#include "graph/model.h"
#include "runtime/comm/comm.h"

/* What a tensor of a file is a table of. */
typedef struct vpps_table_tensor {
    vpps_param param;
    int state; /* -1: the values */
} vpps_table_tensor;

/* Tables on their way to the first process. */
typedef struct vpps_table_source {
    vpps_communicator *c;
    const vpps_model *model;
    vpps_table_tensor *tensors; /* by number in the file */
} vpps_table_source;

/* In the first process, with a vpps_table_source: what vpps_safetensors_source asks for. Fails with what the communicator fails
 * with, MEMORY. */
vpps_status vpps_table_read(void *source, size_t i, uint64_t first, size_t room, float *out, size_t *got);

/* In the first process: no more is asked for. */
vpps_status vpps_tables_done(vpps_communicator *c);

/* In the others: gives the first process what it asks for, until it is done. */
vpps_status vpps_tables_give(vpps_communicator *c, const vpps_model *model);
