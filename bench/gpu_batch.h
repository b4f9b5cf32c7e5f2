/* gpu_batch.h - scripts of the Tree-LSTM's batches for a GPU that need not be there, an sm_90 with 132 SMs, as its device would
 * have them made without a profile. */
#ifndef VPPS_BENCH_GPU_BATCH_H
#define VPPS_BENCH_GPU_BATCH_H

#include "runtime/gpu/gpu.h"
#include "workload.h"

typedef struct gpu_batch {
    workload w;
    vpps_options options;
    vpps_machine machine;
    vpps_gpu_layout layout;
    vpps_trial choice; /* the profile's first */
    vpps_types types;
    vpps_batch *batch;
    double build_ns, script_ns; /* of the latest: CPU time of building the graph, of making the script */
} gpu_batch;

/* The network with `hidden` as the size of embeddings, too, on a file of trees (NULL: ListOps). Free in any case. */
vpps_status gpu_batch_open(gpu_batch *b, const char *trees, uint32_t hidden);
void gpu_batch_close(gpu_batch *b);

/* The script that trains the next n trees, in b->batch. */
vpps_status gpu_batch_make(gpu_batch *b, uint32_t n);

#endif
