/* gpu.h - the GPU device: the model specialised into a kernel, on a machine that a driver drives.
 *
 *   device.c   launching, outcomes
 *   pool.c     the pool, which grows with the batches
 *   plan.c     from a choice to a loaded kernel, and from one plan to the next
 *   profile.c  which choice is the fastest
 */
#ifndef VPPS_GPU_H
#define VPPS_GPU_H

#include "codegen/specialise.h"
#include "interp_templates/arguments.cuh"
#include "interp_templates/failure.cuh"
#include "nodes/format.h"
#include "runtime/device.h"
#include "runtime/gpu/driver.h"
#include "runtime/layout.h"

/* Device memory that grows. */
typedef struct vpps_gpu_buffer {
    uint64_t address;
    size_t bytes;
} vpps_gpu_buffer;

/* A plan in use: its kernel, and the matrices laid out for it. */
typedef struct vpps_gpu_plan {
    vpps_partition partition;
    vpps_kernel *kernel;
    vpps_launch_shape shape;
    vpps_cubin_report report;
    vpps_gpu_buffer master, gradients, states[VPPS_MAX_STATES], tables;
} vpps_gpu_plan;

typedef struct vpps_gpu_trial {
    vpps_partition_choice choice;
    vpps_trial result;
    double *ns_per_node; /* of the batches measured */
} vpps_gpu_trial;

typedef struct vpps_gpu {
    vpps_device device;
    const vpps_driver_table *table;
    vpps_driver *driver;
    vpps_machine machine;
    const vpps_model *model;
    vpps_options options;
    vpps_plan plan;
    vpps_rows gradients; /* of vectors, in the pool */
    vpps_gpu_plan now;

    vpps_gpu_buffer pool, script, counters, resume; /* counters: a vpps_failure comes first */
    float *rescued; /* the pool's parameters while no room is found for a pool; else NULL */
    void *pinned[2];
    size_t pinned_bytes[2];
    uint32_t next_pinned;
    bool *touched; /* matrices whose gradient has a product in this batch */

    vpps_script_header header; /* of the batch in flight, or the latest */
    bool in_flight;
    vpps_status launch_status; /* a launch that failed half-way */
    vpps_outcome outcome;

    vpps_gpu_trial *trials;
    uint32_t n_trials, current; /* the trial in use */
    bool chosen, due;           /* the profile is over; another trial's turn has come */
    struct vpps_gpu_precompiler *precompilers;
    uint32_t n_precompilers;
} vpps_gpu;

/* A device whose kernel runs on that driver's machine. The devices "cuda" and "simt" are this with their drivers. */
vpps_status vpps_gpu_create(vpps_device **out, const vpps_device_table *device, const vpps_driver_table *driver,
                            const vpps_model *model, const vpps_options *options, vpps_plan *plan);

/* ---- pool.c */

/* A pool of at least so many words, with the parameters as they are. Fails with MEMORY; then they are kept, on the device
 * or on the host, and the next call finds them. */
vpps_status vpps_gpu_grow_pool(vpps_gpu *gpu, uint32_t words);

/* The parameters are on the device again, where a failure had left them on the host. Fails as vpps_gpu_grow_pool does. */
vpps_status vpps_gpu_restore_pool(vpps_gpu *gpu);

/* ---- plan.c */

/* Makes `bytes` of room; the content is lost when it grows. */
vpps_status vpps_gpu_reserve(vpps_gpu *gpu, vpps_gpu_buffer *buffer, size_t bytes);
void vpps_gpu_release(vpps_gpu *gpu, vpps_gpu_buffer *buffer);

/* Specialises and loads the choice, and moves the matrices over from the plan in use, or takes them from the model where
 * there is none yet. On failure the old plan stays. */
vpps_status vpps_gpu_adopt(vpps_gpu *gpu, const vpps_partition_choice *choice);
void vpps_gpu_close_plan(vpps_gpu *gpu, vpps_gpu_plan *plan);

/* Parameters and optimiser state to the model, or from it. */
vpps_status vpps_gpu_read_parameters(vpps_gpu *gpu, vpps_model *model);
vpps_status vpps_gpu_write_parameters(vpps_gpu *gpu, const vpps_model *model);

/* Waits for everything that was asked of the driver. */
static inline vpps_status vpps_gpu_settle(vpps_gpu *gpu) {
    uint64_t unused;
    return gpu->table->wait(gpu->driver, &unused);
}

void vpps_gpu_log(const vpps_gpu *gpu, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- profile.c */

/* Lists the choices and adopts the first that works, or the one an earlier run chose. */
vpps_status vpps_gpu_start_profile(vpps_gpu *gpu);

/* Notes a batch of `nodes` nodes; sets gpu->due when the trial in use has been measured. */
void vpps_gpu_measure(vpps_gpu *gpu, uint64_t device_ns, uint32_t nodes);

/* The next trial, or the choice. */
vpps_status vpps_gpu_next_trial(vpps_gpu *gpu);
void vpps_gpu_end_profile(vpps_gpu *gpu);

#endif
