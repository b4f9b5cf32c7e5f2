/* tables.h - reads lookup tables whose entries are divided among processes (sharded) as if they were whole, to write checkpoints. The first
 * process receives a table in pieces, so that the whole table is never in one place. */
#pragma once

#include "graph/model.h"
#include "runtime/comm/comm.h"

/* The lookup table, or its optimiser state, that a tensor of a checkpoint file holds. */
typedef struct vpps_table_tensor {
    vpps_param param;
    int state; /* number of the optimiser's state to be read; -1: the table's values */
} vpps_table_tensor;

/* A data source for the checkpoint writer in the first process, which gets sharded tables from all processes. */
typedef struct vpps_table_source {
    vpps_communicator *c;
    const vpps_model *model;
    vpps_table_tensor *tensors; /* for each tensor of the checkpoint file: the lookup table that the tensor holds */
} vpps_table_source;

/* Reads a piece of tensor i in the first process. Has the type vpps_safetensors_source, the checkpoint writer's source of data; `source` is
 * a vpps_table_source. Fails as the communicator does, and with MEMORY. */
vpps_status vpps_table_read(void *source, size_t i, uint64_t first, size_t room, float *out, size_t *got);

/* Tells the other processes that the first process needs no more pieces of their lookup tables. */
vpps_status vpps_tables_done(vpps_communicator *c);

/* Called in all other processes: sends the first process the pieces of tables that it asks for, until it calls vpps_tables_done. */
vpps_status vpps_tables_give(vpps_communicator *c, const vpps_model *model);
