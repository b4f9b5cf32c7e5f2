/* share.h - data-parallel training by several processes: their gradients are summed after each batch, before the
 * gradient's norm is computed.
 *
 * A process's tasks compute the gradients of its own graph only. Before the first task that reads all gradients (NORM
 * or UPDATE), the device exchanges them here and continues with the sums. So every process has the same norm and makes
 * the same optimiser step, whatever its own graph was.
 *
 *   1. headers: a hash of what is trained; the loss; which parameters have a gradient; how many rows of tables go to which process
 *   2. gradients of matrices and vectors, summed by the device if any process has one
 *   3. gradients of used table rows: sent to the process that sums them (row number modulo processes), and from there to
 *      all; if tables are sharded, the sums stay at that process, which owns the row */
#pragma once

#include "graph/model.h"
#include "runtime/comm/comm.h"
#include "runtime/row_sums.h"
#include "script/header.h"

typedef struct vpps_share vpps_share;

/* Costs of one exchange of gradients between processes, and how evenly the processes were busy before it. */
typedef struct vpps_share_cost {
    uint32_t votes; /* sum of the processes' vpps_device.vote, sent with gradients, for a common decision (to stop) */
    uint64_t exchange_ns, sent_bytes;
    uint64_t fetch_ns;            /* time to fetch entries of sharded tables, before the launch */
    uint64_t slowest_ns, mean_ns; /* from launch to gradients: the slowest process's time; the mean of all */
} vpps_share_cost;

/* A batch's results: before the exchange, of this process; afterwards, of all processes. */
typedef struct vpps_shared_batch {
    const vpps_task_header *header; /* header of the batch's script (tasks), with the optimiser's kind and numbers */
    const uint32_t *steps;          /* each parameter's vpps_param_step (learning rate, ...), as 32-bit words */
    uint64_t start_ns;              /* time at which the batch was launched */
    uint32_t vote;
    double loss;
    /* Gradients of table entries. An array of the caller, which may grow. After the exchange its elements point to memory of vpps_share. */
    vpps_row_segment *segments;
    uint32_t n_segments;
    /* whether entries of lookup tables are divided among processes: each then keeps only the rows that it owns */
    bool keep_rows;

    /* Sums over all processes the gradients of matrices and vectors that vpps_share_dense marks. A process without one adds zeros. */
    vpps_status (*reduce)(void *device, vpps_communicator *c);
    void *device;
} vpps_shared_batch;

/* vpps_share_text copies the first process's `text`, of VPPS_SHARE_TEXT bytes, to all processes; each calls it once
 * before vpps_share_open, whatever its device. A CPU's text tells how it multiplies matrices, so that all compute the
 * same bits. Fails as the communicator does. */
enum { VPPS_SHARE_TEXT = 96 };
vpps_status vpps_share_text(vpps_communicator *c, char text[VPPS_SHARE_TEXT]);

/* Opens the exchange of gradients between processes. `machine` is a text about everything on which the gradients' bits and order depend; it
 * must be the same in all processes. The model and the communicator must outlive the result. Fails with MEMORY. */
vpps_status vpps_share_open(vpps_share **out, const vpps_model *model, const char *machine, vpps_communicator *c);
void vpps_share_close(vpps_share *s);

/* Returns flags, indexed by parameter: whether the parameter (of a lookup table, any entry) has a gradient. The device
 * sets them for this process; vpps_share_exchange, which sums gradients over processes, then for all processes. */
bool *vpps_share_dense(vpps_share *s);

/* Sums the gradients over all processes, each of which must call this function. Fails with MEMORY, with STATE if another process trains
 * something else, and as the communicator does. */
vpps_status vpps_share_exchange(vpps_share *s, vpps_shared_batch *batch);

vpps_share_cost vpps_share_cost_of(const vpps_share *s);

/* Returns a hash of the model and its layout, which must be equal in all processes. */
uint64_t vpps_share_model(const vpps_share *s);
