/* machine.h - a GPU that runs scripts of tasks: the kernel of the batch's compiled cells, on a machine that a driver drives. */
#ifndef VPPS_GPU_MACHINE_H
#define VPPS_GPU_MACHINE_H

#include "codegen/generate.h"
#include "interp_templates/failure.cuh"
#include "interp_templates/machine_arguments.cuh"
#include "runtime/device.h"
#include "runtime/gpu/driver.h"
#include "runtime/layout.h"

/* Device memory that grows. */
typedef struct vpps_machine_buffer {
    uint64_t address;
    size_t bytes;
} vpps_machine_buffer;

typedef struct vpps_gpu_machine {
    vpps_device device;
    const vpps_driver_table *table;
    vpps_driver *driver;
    vpps_machine machine;
    const vpps_model *model;
    vpps_options options;
    vpps_plan plan;
    vpps_task_plan tasks;
    uint32_t n_states;
    uint32_t *matrix_at; /* of every parameter: first word in the buffers of matrices */
    size_t matrix_words;

    const vpps_compiled_cell **cells; /* that the kernel has */
    uint32_t n_cells;
    size_t cells_capacity;
    uint32_t *number; /* of each cell of the batch: among those */
    size_t number_capacity;
    vpps_kernel_plan kernel_plan;
    vpps_kernel *kernel;
    vpps_launch_shape shape;
    vpps_cubin_report report;
    uint32_t registers; /* that weights may take */

    vpps_machine_buffer pool, script, counters, matrices, gradients, states[VPPS_MAX_STATES], scratch;
    uint32_t scratch_words; /* of a VP */
    void *pinned[2];
    size_t pinned_bytes[2];
    uint32_t next_pinned;

    vpps_task_header header; /* of the batch in flight, or the latest */
    bool in_flight;
    vpps_status launch_status; /* a launch that failed half-way */
    vpps_outcome outcome;
} vpps_gpu_machine;

/* A device whose kernel runs on that driver's machine. */
vpps_status vpps_gpu_machine_create(vpps_device **out, const vpps_device_table *device, const vpps_driver_table *driver,
                                    const vpps_model *model, const vpps_options *options, vpps_plan *plan);

#endif
