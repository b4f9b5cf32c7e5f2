/* gpu.h - the GPU device: it runs scripts of tasks by a kernel that is made of the batches' compiled cells, on a machine that a
 * driver drives.
 *
 *   device.c       launching, outcomes
 *   layout.c       how a model lies on a machine
 *   memory.c       buffers; the pool, which grows with the batches
 *   parameters.c   to the model, and from it
 *   kernel.c       the kernels of all cells that batches had so far
 *   gradients.c    gradients that add up over launches
 *   products.c     gradients of matrices by cuBLAS, between two launches; cublas.c: its library
 *   share.c        gradients of other processes
 *   script.c       scripts as the kernel reads them
 *   profile.c      which kernel is the fastest
 *   ahead.c        kernels that are likely to be needed, made while batches run with others
 */
#pragma once

#include "codegen/specialise.h"
#include "interp_templates/arguments.cuh"
#include "interp_templates/failure.cuh"
#include "runtime/device.h"
#include "runtime/gpu/cublas.h"
#include "runtime/layout.h"
#include "runtime/log.h"

/* Device memory that grows. */
typedef struct vpps_gpu_buffer {
    uint64_t address;
    size_t bytes;
} vpps_gpu_buffer;

/* How a model lies on a machine, and what scripts for it are made for. */
typedef struct vpps_gpu_layout {
    vpps_plan plan;
    vpps_task_plan tasks;
    vpps_optimizer_kind optimizer;
    uint32_t n_states;        /* of it */
    vpps_precision precision; /* of products; never AUTO */
    vpps_rows gradients;      /* of vectors, in the pool */
    uint32_t *matrix_at;      /* of every parameter: first word in the buffers of matrices */
    size_t matrix_words;
} vpps_gpu_layout;

/* A kernel for all batches so far of one kind (training or inference) and number of groups. */
typedef struct vpps_gpu_kernel {
    struct vpps_gpu_kernel *next;
    bool training;
    uint32_t groups;
    const vpps_compiled_cell **cells; /* that it has */
    uint32_t n_cells;
    uint32_t *number;                    /* of each cell of the batch: among those */
    const vpps_compiled_cell **expected; /* those that it will have, if a batch needs any that it has not */
    uint32_t n_expected;
    vpps_kernel_plan plan;
    vpps_kernel *loaded; /* NULL: none yet */
    vpps_launch_shape shape;
    vpps_cubin_report report;
    uint32_t registers; /* that weights may take; 0: as many as go */
} vpps_gpu_kernel;

typedef struct vpps_gpu_ahead vpps_gpu_ahead;

/* Launches take slots in turn: two batches are in flight, of two launches each where cuBLAS makes gradients. A slot has a mark of the
 * driver's. */
enum { VPPS_GPU_SLOTS = VPPS_DRIVER_MARKS };

/* A launch's own buffers, until it has ended. */
typedef struct vpps_gpu_slot {
    void *pinned; /* the script's copy on its way to the device */
    size_t pinned_bytes;
    vpps_gpu_buffer script, counters; /* counters are zero before a launch */
    uint32_t used;                    /* words of them that the latest launch counted in */
    vpps_launch_end *end;             /* in pinned memory */
    uint64_t end_at;                  /* where the kernel finds it */
} vpps_gpu_slot;

/* Factors of a batch's gradients that cuBLAS makes: a value of a cell, of its vertices. */
typedef struct vpps_gpu_factor {
    uint32_t value;   /* VPPS_NONE: none has this number */
    uint32_t words;   /* of a vector */
    uint64_t vectors; /* there are; while they are given places, so far */
    uint64_t at;      /* first word, of what is packed */
    bool used;        /* the batch has vertices of the cell */
} vpps_gpu_factor;

/* Which call of cuBLAS makes a gradient of a cell's vertices. */
typedef struct vpps_gpu_use {
    uint32_t cell, outer, call;
} vpps_gpu_use;

/* Products of cuBLAS for the latest batch. */
typedef struct vpps_gpu_products {
    vpps_cublas *cublas; /* NULL: not opened yet */
    vpps_gpu_buffer packed;
    uint32_t *first_factor; /* of each cell */
    vpps_gpu_factor *factors;
    vpps_gpu_use *uses;
    vpps_gemm *gemms; /* their addresses count from the first of the words */
    uint32_t
        *words; /* for the device: addresses for the calls; from word `places` on, of each OUTER, where vectors go */
    uint32_t n_factors, n_uses, n_gemms, n_words, places;
} vpps_gpu_products;

/* A batch whose outcome has not been taken yet. */
typedef struct vpps_gpu_flight {
    uint32_t last;  /* number of its last launch */
    uint32_t first; /* of its first launch, where the last one resumes it; else the same */
    vpps_step_part part;
    bool trains;
    bool *steps;           /* the parameters that it steps, if its gradients are finite */
    vpps_status status;    /* a launch that failed half-way */
    uint64_t gradients_ns; /* how long an earlier launch took, up to the gradients */
} vpps_gpu_flight;

/* Cells of one kernel; batches that the profile measures of each candidate. */
enum { VPPS_GPU_MOST_CELLS = 128, VPPS_GPU_MEASURED = 5 };

typedef struct vpps_gpu {
    vpps_device device;
    const vpps_driver_table *table;
    vpps_driver *driver;
    vpps_machine machine;
    const vpps_model *model;
    vpps_options options;
    vpps_gpu_layout layout;
    vpps_gpu_kernel *kernels; /* a list: cells of inference, and of other groups of VPs, are others */
    vpps_gpu_kernel *kernel;  /* of the latest batch */
    vpps_gpu_kernel *trained; /* of the latest training batch */
    uint32_t most_cells;      /* of a kernel, unless one batch has more */

    vpps_gpu_buffer pool, matrices, gradients, states[VPPS_MAX_STATES], scratch, entries;
    vpps_gpu_buffer failures; /* a vpps_failure of each of the latest launches, and of the next ones */
    vpps_gpu_buffer ends;     /* vpps_launch_end of the slots, where kernels do not reach the host's memory */
    vpps_launch_end *pinned_ends;
    vpps_gpu_slot slots[VPPS_GPU_SLOTS];
    uint32_t launches;      /* so far; that of number n has slot n % VPPS_GPU_SLOTS */
    float *rescued;         /* the pool's parameters while no room is found for a pool; else NULL */
    uint32_t scratch_words; /* of a VP */

    vpps_share *share;       /* NULL: this process is the only one */
    vpps_communicator *gpus; /* NULL: its communicator moves gradients, too */
    bool summing;            /* gradients add up until an update; `dense` and row_sums tell which */
    const uint32_t
        *untaken; /* script of the latest launch that added to them, whose entries are not in row_sums; or NULL */
    vpps_gpu_products products;
    bool *dense;             /* parameters that have a gradient; tables only where an update is about to be launched */
    vpps_row_sums *row_sums; /* of tables' entries */
    double sum_loss;         /* of the launches that add up */
    vpps_row_segment *segments; /* rows of tables with gradients: of this process, then of all */
    uint32_t n_segments;
    float *rows, *staged; /* this process's rows; other gradients on their way */
    uint64_t start_ns;    /* when the batch was launched */

    uint64_t *updates;          /* of each parameter's state, by the batches that were waited for */
    vpps_task_header header;    /* of the latest batch */
    vpps_gpu_flight flights[2]; /* the oldest first */
    uint32_t n_flights, polls;  /* polls: of whether the latest has ended, before it told so */
    vpps_outcome outcome;       /* of the latest that was taken */
    vpps_gpu_ahead *ahead;      /* kernels on their way: a list */
} vpps_gpu;

/* A device whose kernel runs on that driver's machine. The devices "cuda" and "simt" are this with their drivers. */
vpps_status vpps_gpu_create(vpps_device **out, const vpps_device_table *device, const vpps_driver_table *driver,
                            const vpps_model *model, const vpps_options *options, vpps_plan *plan);

/* The precision of products on a machine: `asked`, or, for AUTO, the choice for batches of so many examples (0: not known); *why
 * gives the reason. Fails with DEVICE where the machine does not have it. */
vpps_status vpps_gpu_choose_precision(vpps_precision asked, uint32_t batch, const vpps_machine *machine,
                                      vpps_precision *out, const char **why);

/* Lays the model out for a device of that name. Fails with ARGUMENT, DEVICE, POOL, MEMORY. Free in any case. */
vpps_status vpps_gpu_lay_out(vpps_gpu_layout *out, const vpps_model *model, const vpps_options *options,
                             const vpps_machine *machine, const char *device);
void vpps_gpu_layout_free(vpps_gpu_layout *layout);

/* ---- examine.c */

void vpps_examine_cuda(vpps_device_facts *out);
void vpps_examine_simt(vpps_device_facts *out);

/* ---- memory.c */

/* Makes `bytes` of room; the content is lost when it grows. */
vpps_status vpps_gpu_reserve(vpps_gpu *gpu, vpps_gpu_buffer *buffer, size_t bytes);
void vpps_gpu_release(vpps_gpu *gpu, vpps_gpu_buffer *buffer);

/* Waits for everything that was asked of the driver. */
vpps_status vpps_gpu_settle(vpps_gpu *gpu);

/* A pool of at least so many words, with the parameters as they are. Fails with MEMORY; then they are kept, on the device
 * or on the host, and the next call finds them. */
vpps_status vpps_gpu_grow_pool(vpps_gpu *gpu, uint32_t words);

/* For the device's table: see runtime/device.h. */
vpps_status vpps_gpu_reserve_kept(vpps_device *d, uint32_t words);

/* Brings the parameters back to the device, where a failure had left them on the host. Fails as vpps_gpu_grow_pool does. */
vpps_status vpps_gpu_restore_pool(vpps_gpu *gpu);

/* ---- parameters.c */

/* Parameters and optimiser state to the model, or from it. */
vpps_status vpps_gpu_read_parameters(vpps_gpu *gpu, vpps_model *model, bool states);
vpps_status vpps_gpu_write_parameters(vpps_gpu *gpu, const vpps_model *model);

/* ---- kernel.c */

/* The plan, for vpps_specialise, of a kernel of these cells and so many groups, by one choice of the profile's. */
vpps_kernel_plan vpps_gpu_kernel_plan(const vpps_gpu_layout *layout, uint32_t groups, const vpps_trial *choice,
                                      const vpps_compiled_cell *const *cells, uint32_t n_cells);

/* Makes gpu->kernel one that has all cells of the batch, whose header is gpu->header, with their numbers. Fails with POOL (all kernels
 * spill), and as the driver's `load` does. Then the kernel is as before, or gone. */
vpps_status vpps_gpu_need_cells(vpps_gpu *gpu, const vpps_batch *batch);

/* Notes that batches which train, or infer, are likely to have this batch's cells and groups. Returns their kernel if there are more such cells
 * now than were expected, or that it has; else NULL. */
const vpps_gpu_kernel *vpps_gpu_expect_cells(vpps_gpu *gpu, const vpps_batch *batch, bool training);

/* Drops all kernels, also those on their way: the choice or the cells change. */
void vpps_gpu_forget_kernels(vpps_gpu *gpu);

/* ---- script.c */

/* A copy of a batch's script in pinned memory, so that its way to the device need not be waited for, whose stages have the kernel's
 * numbers. */
typedef struct vpps_gpu_script {
    const uint32_t *copy;
    uint32_t touched;  /* address: of every parameter, non-zero if it has a gradient; 0: none has yet */
    uint32_t words;    /* of all */
    uint32_t products; /* address of gpu->products.words */
} vpps_gpu_script;

/* A selection of a batch's tasks: all; those up to the pause; those up to the point where all gradients, or the factors for cuBLAS, are
 * made, from the pause on if the batch is in its backward half; those after that. */
typedef enum vpps_gpu_part { VPPS_GPU_WHOLE, VPPS_GPU_FORWARD, VPPS_GPU_GRADIENTS, VPPS_GPU_STEP } vpps_gpu_part;

/* For the next launch, valid until it has ended. With `adds` there are the gradients that gpu->dense marks. Fails with MEMORY. */
vpps_status vpps_gpu_make_script(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_part part, bool adds,
                                 vpps_gpu_script *out);

/* What is left then: the norm and the update, of parameters that gpu->dense marks and of the rows of gpu->segments, whose gradients
 * follow each other. Likewise. */
vpps_status vpps_gpu_make_step(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_script *out);

/* ---- share.c */

/* Joins the GPUs of the options' communicator. Fails with MEMORY, DEVICE, and as it does. */
vpps_status vpps_gpu_open_share(vpps_gpu *gpu);
void vpps_gpu_close_share(vpps_gpu *gpu);

/* The number of its host's GPU that a process takes: processes of a host take its GPUs in turn. */
uint32_t vpps_gpu_number(const vpps_communicator *c);

/* The gradients that this process has summed up become those of all processes, and so do its loss, gpu->dense and gpu->segments. `batch`
 * says how all step.
 * Fails with MEMORY, DEVICE, and as vpps_share_exchange does. */
vpps_status vpps_gpu_exchange(vpps_gpu *gpu, const vpps_batch *batch, double *loss);

/* ---- products.c */

/* Does cuBLAS make gradients of matrices, by the choice in use? */
bool vpps_gpu_packs(const vpps_gpu *gpu);

/* Before the launch that packs: gpu->products is what the batch needs, and there is room for it. `adds`: to the gradients that
 * gpu->dense marks. Fails with DEVICE (no cuBLAS), MEMORY, POOL (more than can be counted). */
vpps_status vpps_gpu_plan_products(vpps_gpu *gpu, const vpps_batch *batch, bool adds);

/* After it, asks for the products. `words`: address on the device of gpu->products.words. Fails with DEVICE. */
vpps_status vpps_gpu_multiply(vpps_gpu *gpu, uint64_t words);

void vpps_gpu_close_products(vpps_gpu *gpu);

/* ---- gradients.c */

/* Marks parameters whose gradients the batch's OUTERs make: all of them, or, without `products`, those with a part that is no product. */
void vpps_gpu_mark_outers(const vpps_batch *batch, bool products, bool *marks);

/* Before a launch that makes gradients and leaves them: it begins a sum, or adds to the one that there is. Fails with DEVICE. */
vpps_status vpps_gpu_open_sum(vpps_gpu *gpu, const vpps_batch *batch);

/* Takes over what the latest launch added, before the next one, which has its place in the pool. Fails with MEMORY, DEVICE. */
vpps_status vpps_gpu_take_gradients(vpps_gpu *gpu);

/* Before an update: gpu->segments are the sums of tables that are not frozen, and gpu->dense is without what is frozen. Then their
 * gradients to gpu->entries. Fail with MEMORY, DEVICE. */
vpps_status vpps_gpu_open_update(vpps_gpu *gpu);
vpps_status vpps_gpu_give_entries(vpps_gpu *gpu);

/* For the device's table: see runtime/device.h. */
void vpps_gpu_zero_gradients(vpps_device *d);
vpps_status vpps_gpu_read_gradients(vpps_device *d, vpps_model *model);
vpps_status vpps_gpu_write_gradients(vpps_device *d, const vpps_model *model);

static inline uint32_t vpps_gpu_entry_words(const vpps_gpu *gpu, uint32_t param) {
    return gpu->model->params[param].rows * gpu->model->params[param].cols;
}

/* ---- profile.c */

/* The candidates that the options leave, in the order of trying, at most VPPS_MOST_TRIALS; how many. rpw 0: as many as turn out to be
 * the fastest. */
uint32_t vpps_gpu_choices(const vpps_options *options, vpps_trial *out);

/* Lists the candidates and takes the first, or the one that an earlier run chose. */
void vpps_gpu_start_profile(vpps_gpu *gpu);

/* To be told how the making of the current candidate's kernel, and of memory for its tiles, ended. Returns that status; POOL where the
 * kernel cannot be made, and vpps_gpu_tune takes another candidate, which needs another script of the batch. */
vpps_status vpps_gpu_note_kernel(vpps_gpu *gpu, vpps_status made);

/* For the device's table. The current candidate stays while the next one's kernel is on its way. */
vpps_status vpps_gpu_tune(vpps_device *d);

/* ---- ahead.c */

/* Is there nothing to wait for before that trial is taken? A driver that compiles ahead begins with its kernel, of the cells that
 * the training kernel in use has. */
bool vpps_gpu_is_ahead(vpps_gpu *gpu, const vpps_trial *next);

/* For the device's table: begins with the kernel of such batches. Not with one core, on which it would only take the batches' time. */
void vpps_gpu_foresee(vpps_device *d, const vpps_batch *batch, bool training);

/* Waits for that kernel, if it is on its way with the cells that it has now. */
void vpps_gpu_await_ahead(vpps_gpu *gpu, const vpps_gpu_kernel *k);

/* Waits for all kernels that are on their way: some seconds, for a compiler cannot be interrupted. */
void vpps_gpu_stop_ahead(vpps_gpu *gpu);
