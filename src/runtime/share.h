/* share.h - processes that train one model together: their gradients become one, between a batch's gradients and its norm.
 *
 * The script knows nothing of it: it makes the gradients of this process's graph. Before the first task that reads all of
 * them (NORM, or UPDATE), a device exchanges them here, and goes on with those of all processes. So every process has the same
 * norm and makes the same step, whatever its own graph was.
 *
 *   1. headers: who trains what; the loss; which parameters have a gradient; how many rows of tables go where
 *   2. gradients of matrices and vectors, by the device: the sum of those that have one in any process
 *   3. rows of lookup tables that were used: to the process that adds them up (row modulo processes), and from there to all;
 *      where tables are shared out they are that process's anyhow
 */
#pragma once

#include "graph/model.h"
#include "runtime/comm/comm.h"
#include "runtime/row_sums.h"
#include "script/header.h"

typedef struct vpps_share vpps_share;

/* The costs of exchanges, and how evenly the processes were busy before them. */
typedef struct vpps_share_cost {
    uint32_t votes; /* of all processes */
    uint64_t exchange_ns, sent_bytes;
    uint64_t fetch_ns;            /* before the launch: entries of tables that are shared out */
    uint64_t slowest_ns, mean_ns; /* from the launch until a process had its gradients */
} vpps_share_cost;

/* The results of a batch: before the exchange this process's, afterwards those of all. */
typedef struct vpps_shared_batch {
    const vpps_task_header *header; /* how it steps */
    const uint32_t *steps;          /* likewise: the script at header->steps */
    uint64_t start_ns;              /* when it was launched */
    uint32_t vote;
    double loss;
    vpps_row_segment *
        segments; /* the caller's array, which may grow; afterwards rows and gradients are the share's, until the next batch */
    uint32_t n_segments;
    bool keep_rows; /* tables are shared out: each process goes on with its own rows */

    /* Adds up the gradients of matrices and vectors that vpps_share_dense marks: zeros where this process made none. */
    vpps_status (*reduce)(void *device, vpps_communicator *c);
    void *device;
} vpps_shared_batch;

/* Copies the first process's `text` to all. Each process calls it once before vpps_share_open, whatever its device, since differences are
 * reported there. Fails as the communicator does. */
enum { VPPS_SHARE_TEXT = 96 };
vpps_status vpps_share_text(vpps_communicator *c, char text[VPPS_SHARE_TEXT]);

/* `machine` is what the gradients' bits and order depend on: all processes must have it alike. The model and the communicator must
 * outlive it. Fails with MEMORY. */
vpps_status vpps_share_open(vpps_share **out, const vpps_model *model, const char *machine, vpps_communicator *c);
void vpps_share_close(vpps_share *s);

/* Which parameters have a gradient, of a lookup table some entries: of this process, as the device marks them before an exchange; then
 * of all. */
bool *vpps_share_dense(vpps_share *s);

/* Adds up the gradients of all processes; all call it together. Fails with MEMORY, STATE (another trains something else), and as the
 * communicator does. */
vpps_status vpps_share_exchange(vpps_share *s, vpps_shared_batch *batch);

/* Of the latest batch. */
vpps_share_cost vpps_share_cost_of(const vpps_share *s);

/* A hash of the model and its layout, which must be the same in all processes. */
uint64_t vpps_share_model(const vpps_share *s);

vpps_communicator *vpps_share_communicator(const vpps_share *s);
