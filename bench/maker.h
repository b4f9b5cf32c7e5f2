/* maker.h - scripts of the Tree-LSTM's batches, made but not run: for the CPU, or for a GPU that need not be there, an sm_90 with
 * 132 SMs, as its device would have them made without a profile. */
#ifndef VPPS_BENCH_MAKER_H
#define VPPS_BENCH_MAKER_H

#include "runtime/device.h"
#include "runtime/gpu/gpu.h"
#include "workload.h"

typedef struct maker {
    workload w;
    vpps_options options;
    vpps_device *cpu;     /* its plan is used; NULL: for a GPU, by */
    vpps_machine machine; /* these */
    vpps_gpu_layout layout;
    vpps_trial choice; /* the profile's first */
    const vpps_task_plan *plan;
    vpps_types types;
    vpps_batch *batch;
    double build_ns, script_ns; /* of the latest: CPU time of building the graph, of making the script */
} maker;

/* The network with `hidden` as the size of embeddings, too, on a file of trees (NULL: ListOps), for a CPU with so many VPs (0: a
 * core each) or for the GPU. Close in any case. */
vpps_status maker_open_cpu(maker *m, const char *trees, uint32_t hidden, uint32_t vps);
vpps_status maker_open_gpu(maker *m, const char *trees, uint32_t hidden);
void maker_close(maker *m);

/* The script that trains the next n trees, in m->batch. */
vpps_status maker_make(maker *m, uint32_t n);

#endif
