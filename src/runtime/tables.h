/* tables.h - reads lookup tables that are sharded over processes as whole tables, for checkpoints. A table passes
 * through the first process in pieces, and is never in one place. */
#pragma once

#include "graph/model.h"
#include "runtime/comm/comm.h"

/* The table that a tensor of a checkpoint holds. */
typedef struct vpps_table_tensor {
    vpps_param param;
    int state; /* number of the optimiser's state; -1 stands for the values */
} vpps_table_tensor;

/* Source from which the first process reads sharded tables. */
typedef struct vpps_table_source {
    vpps_communicator *c;
    const vpps_model *model;
    vpps_table_tensor *tensors; /* the tables that the file's tensors hold, indexed by tensor */
} vpps_table_source;

/* Reads a piece of tensor i in the first process, as vpps_safetensors_source asks; `source` is a vpps_table_source.
 * Fails as the communicator does, and with MEMORY. */
vpps_status vpps_table_read(void *source, size_t i, uint64_t first, size_t room, float *out, size_t *got);

/* Tells the other processes that the first process needs no more pieces. */
vpps_status vpps_tables_done(vpps_communicator *c);

/* Sends the first process the pieces that it asks for, until vpps_tables_done; called in the other processes. */
vpps_status vpps_tables_give(vpps_communicator *c, const vpps_model *model);
