/* gpu.h - the GPU device: runs batches' programs (scripts) with a kernel generated from their compiled cells, on a
 * machine that a driver controls.
 *
 *   device.c       launching, outcomes
 *   layout.c       how a model is laid out on a machine
 *   memory.c       buffers; the pool, which grows with the batches
 *   parameters.c   copies parameters to and from the model
 *   kernel.c       compiles and loads kernels
 *   gradients.c    gradients that are accumulated over launches
 *   products.c     gradients of matrices by cuBLAS, between two launches; cublas.c: the library
 *   share.c        exchange of gradients with other processes
 *   outside.c      arrays that the caller has in the GPU's memory
 *   script.c       scripts in the kernel's form
 *   profile.c      which kernel is the fastest
 *   ahead.c        compiles kernels that are likely to be needed, while batches run with others */
#pragma once

#include "codegen/specialise.h"
#include "interp_templates/arguments.cuh"
#include "interp_templates/failure.cuh"
#include "runtime/device.h"
#include "runtime/gpu/cublas.h"
#include "runtime/layout.h"
#include "runtime/log.h"

/* A buffer of device memory, which vpps_gpu_reserve enlarges. */
typedef struct vpps_gpu_buffer {
    uint64_t address;
    size_t bytes;
} vpps_gpu_buffer;

/* Where a model's parameters lie on a GPU (plan, matrix_at), and the GPU's properties on which batches' programs depend (target). */
typedef struct vpps_gpu_layout {
    vpps_pool_plan plan;
    vpps_target target;
    vpps_optimizer_kind optimizer;
    uint32_t n_states;        /* number of state values that the optimiser has per parameter value */
    vpps_precision precision; /* precision of products; never AUTO */
    const char *why;          /* why this precision was chosen, as text */
    vpps_rows gradients;      /* range, in the pool (the device's memory), of the gradients of vector parameters */
    uint32_t *matrix_at;      /* for each matrix: its first word in the buffers gpu.matrices and gradients */
    uint32_t *streamed;       /* target.streamed */
    size_t matrix_words;
} vpps_gpu_layout;

/* The kernel for all batches of one kind (training or inference) with one number of groups of CTAs. */
typedef struct vpps_gpu_kernel {
    struct vpps_gpu_kernel *next;
    bool training;
    uint32_t groups;
    const vpps_compiled_cell **cells; /* cells (vertex functions) for which the loaded kernel has code */
    uint32_t n_cells;
    vpps_kernel_plan plan;
    vpps_kernel *loaded; /* the compiled kernel on the device; NULL: not compiled yet */
    vpps_launch_shape shape;
    vpps_cubin_report report;
    uint32_t registers; /* how many registers of a thread may hold weights; 0: as many as possible */
} vpps_gpu_kernel;

typedef struct vpps_gpu_ahead vpps_gpu_ahead;

/* Number of slots. A slot is a set of buffers for one launch; launches use the slots in turn. Two batches may be running or queued, with
 * two launches each if cuBLAS computes gradients. A mark in the driver's queue tells when a slot's launch has ended. */
enum { VPPS_GPU_SLOTS = VPPS_DRIVER_MARKS };

/* The buffers of one launch, in use until the launch has ended. */
typedef struct vpps_gpu_slot {
    void *pinned; /* copy of the batch's script (tasks) in pinned host memory */
    size_t pinned_bytes;
    vpps_gpu_buffer script, counters; /* on the GPU: the batch's program; its barriers' counters, 0 before a launch */
    uint32_t used;                    /* number of words of `counters` that the latest launch used */
    vpps_launch_end *end;             /* results of the launch, which the kernel writes to pinned memory */
} vpps_gpu_slot;

/* One operand of a matrix's gradient (the sum of dy x^T over a cell's vertices): all vectors dy, or all vectors x, packed for cuBLAS. */
typedef struct vpps_gpu_factor {
    /* the vector dy or x, a value of the cell; NULL: nothing to pack: no product by cuBLAS, or an earlier factor is the same vector */
    const vpps_operand *operand;
    uint32_t words;   /* words of a packed vector; in bf16x3 three copies, of its high or low parts (packing.cuh) */
    uint64_t vectors; /* number of these vectors dy or x in the batch; counted to size `packed`, then to fill it */
    uint64_t at;      /* word of the buffer `packed`, which has all operands' vectors, at which these begin */
    bool used;        /* whether the batch has vertices of this cell */
} vpps_gpu_factor;

/* Tells which cuBLAS call (index in vpps_gpu_products.gemms) computes outer product number `outer`, dy x^T, of a cell. */
typedef struct vpps_gpu_use {
    uint32_t cell, outer, call;
} vpps_gpu_use;

/* The products dy x^T by which cuBLAS computes matrices' gradients in the latest batch, and the memory for the packed vectors dy and x. */
typedef struct vpps_gpu_products {
    vpps_cublas *cublas; /* handle of cuBLAS; NULL: not opened yet */
    vpps_gpu_buffer packed;
    uint32_t *first_factor; /* for each cell: index in `factors` of the first dy or x of the cell's products */
    vpps_gpu_factor *factors;
    vpps_gpu_use *uses;
    vpps_gemm *gemms; /* calls of cuBLAS; their to, dy and x are indices into `words`, not yet addresses */
    /* Words for the device: the arrays of addresses for cuBLAS's calls; then, from word `places` on, the place where each OUTER task (dy
     * x^T) packs its vectors. */
    uint32_t *words;
    uint32_t n_factors, n_uses, n_gemms, n_words, places;
} vpps_gpu_products;

/* A batch that was launched and whose outcome has not been taken yet. */
typedef struct vpps_gpu_flight {
    uint32_t last;  /* number of the batch's last launch */
    uint32_t first; /* number of the batch's first launch; equals `last` if there is only one */
    vpps_goal goal;
    bool trains;
    bool *steps;           /* for each parameter: whether the batch updates it, unless a gradient is infinite or NaN */
    vpps_status status;    /* failure of the call that launched the batch, if some of its work may be queued; else OK */
    uint64_t gradients_ns; /* duration of the batch's first launch, which computed the gradients */
} vpps_gpu_flight;

/* MOST_CELLS: most cells of one kernel. MEASURED: number of batches on which each variant of the kernel is timed. */
enum { VPPS_GPU_MOST_CELLS = 128, VPPS_GPU_MEASURED = 5 };

typedef struct vpps_gpu {
    vpps_device device;
    const vpps_driver_table *table;
    vpps_driver *driver;
    vpps_machine machine;
    const vpps_model *model;
    vpps_options options;
    vpps_gpu_layout layout;
    /* linked list of all kernels, each for training or inference and for one number of groups of CTAs */
    vpps_gpu_kernel *kernels;
    vpps_gpu_kernel *kernel;  /* kernel of the latest batch */
    vpps_gpu_kernel *trained; /* the kernel of the latest training batch */

    vpps_gpu_buffer pool, matrices, gradients, states[VPPS_MAX_STATES], scratch, entries;
    /* a ring of vpps_failure records, in which each launch writes whether and how it failed */
    vpps_gpu_buffer failures;
    vpps_gpu_slot slots[VPPS_GPU_SLOTS];
    uint32_t launches; /* number of launches so far; launch n uses the buffers slots[n % VPPS_GPU_SLOTS] */
    float *rescued;    /* host copy of the parameters while the device has no memory for them; else NULL */
    /* number of words that each CTA has in the buffer `scratch`, beside its copies of weights in bf16 */
    uint32_t scratch_words;

    vpps_share *share; /* exchanges gradients with other processes; NULL: there are no other processes */
    vpps_nccl *gpus;   /* sums gradients between GPUs directly; NULL: gradients go through the host */
    bool summing;      /* whether gradients are being summed over several launches */
    /* tasks of the latest launch that computed gradients; NULL once its gradients of table entries are added to device.row_sums */
    const uint32_t *untaken;
    vpps_gpu_products products;
    /* for each parameter: whether it has a gradient; for a lookup table, valid only during an update */
    bool *dense;
    double sum_loss; /* sum of the losses of the launches over which gradients are summed */
    /* lookup-table entries with gradients in this process or, after an exchange, in any process */
    vpps_row_segment *segments;
    uint32_t n_segments;
    /* host memory for the gradients of this process's table entries (rows), and for all other gradients (staged) */
    float *rows, *staged;
    uint64_t start_ns; /* time at which the batch was launched */

    vpps_task_header header;    /* header of the latest batch's script (tasks) */
    vpps_gpu_flight flights[2]; /* running batches, the oldest first */
    /* number of elements of `flights`, and of calls so far that checked whether a batch has ended */
    uint32_t n_flights, polls;
    vpps_outcome outcome;  /* outcome of the latest batch for whose end the host has waited */
    vpps_gpu_ahead *ahead; /* list of kernels that are being compiled before they are needed */
} vpps_gpu;

/* Creates a device that runs its kernel by a driver, which controls a GPU (device "cuda") or emulates one (device "simt"). */
vpps_status vpps_gpu_create(vpps_device **out, const vpps_device_table *device, const vpps_driver_table *driver,
                            const vpps_model *model, const vpps_options *options, vpps_pool_plan *plan);

/* Sets *out to the precision of products, and *why to the reason. The precision is the argument `asked`; if the argument is AUTO, the
 * faster precision on this machine for batches of `batch` examples (0: unknown). Fails with DEVICE if the machine lacks the precision. */
vpps_status vpps_gpu_choose_precision(vpps_precision asked, uint32_t batch, const vpps_machine *machine,
                                      vpps_precision *out, const char **why);

/* Decides where the model's parameters lie on the device named `device`. Fails with ARGUMENT, DEVICE, POOL, MEMORY. vpps_gpu_layout_free
 * must be called even after a failure. */
vpps_status vpps_gpu_lay_out(vpps_gpu_layout *out, const vpps_model *model, const vpps_options *options,
                             const vpps_machine *machine, const char *device);
void vpps_gpu_layout_free(vpps_gpu_layout *layout);

/* ---- examine.c */

void vpps_examine_cuda(vpps_device_facts *out);
void vpps_examine_simt(vpps_device_facts *out);

/* ---- memory.c */

/* Makes the buffer at least `bytes` long. A buffer that grows loses its content. */
vpps_status vpps_gpu_reserve(vpps_gpu *gpu, vpps_gpu_buffer *buffer, size_t bytes);
void vpps_gpu_release(vpps_gpu *gpu, vpps_gpu_buffer *buffer);

/* Waits until the device has done all that was queued. */
vpps_status vpps_gpu_finish(vpps_gpu *gpu);

/* Makes the pool (device memory) at least `words` long without losing the parameters in it. After a failure (MEMORY), the parameters are on
 * the device or in gpu->rescued, where the next call finds them. */
vpps_status vpps_gpu_grow_pool(vpps_gpu *gpu, uint32_t words);

vpps_status vpps_gpu_reserve_kept(vpps_device *d, uint32_t words);

/* If a failed vpps_gpu_grow_pool left the parameters on the host, copies them back to the device. Fails as vpps_gpu_grow_pool does. */
vpps_status vpps_gpu_restore_pool(vpps_gpu *gpu);

/* ---- parameters.c: functions of vpps_device_table (runtime/device.h) */

bool vpps_gpu_holds(const vpps_device *d, vpps_param p, uint32_t which);
vpps_status vpps_gpu_move(vpps_device *d, vpps_param p, uint32_t which, float *array, bool in);

/* ---- kernel.c */

/* Returns the plan from which vpps_specialise makes a kernel with code for these cells. `groups`: number of groups of CTAs (a group holds
 * all weights). `choice`: rows per warp, threads per CTA, whether the kernel or cuBLAS computes matrices' gradients. */
vpps_kernel_plan vpps_gpu_kernel_plan(const vpps_gpu_layout *layout, uint32_t groups, const vpps_trial *choice,
                                      const vpps_compiled_cell *const *cells, uint32_t n_cells);

/* Returns the kernel for training or inference with so many groups of CTAs; adds a missing one, not yet compiled. NULL: out of memory. */
vpps_gpu_kernel *vpps_gpu_kernel_of(vpps_gpu *gpu, bool training, uint32_t groups);

/* Sets gpu->kernel to a loaded kernel with code for the batch's cells (vertex functions), in the batch's order; compiles it if necessary.
 * gpu->header must be a copy of the header of the batch's program. Fails with vpps_status POOL if the kernel spills registers while
 * variants of it are still being timed, with MEMORY, and as loading code into the GPU does; the old kernel then stays loaded. */
vpps_status vpps_gpu_need_kernel(vpps_gpu *gpu, const vpps_batch *batch);

/* Drops all kernels and waits for threads that compile some. Call it when the cells or the kernel's variant change. */
void vpps_gpu_forget_kernels(vpps_gpu *gpu);

/* ---- script.c */

/* A batch's program (script) as the kernel reads it, in pinned memory for asynchronous upload. A task that runs code of
 * a cell has that code's number in the kernel in place of the task's kind. */
typedef struct vpps_gpu_script {
    const uint32_t *copy;
    uint32_t touched;  /* address of flags, one word a parameter: whether it has a gradient; 0: no flags */
    uint32_t words;    /* length of `copy`, in 32-bit words */
    uint32_t products; /* index in `copy` of the data for cuBLAS's products (vpps_gpu_products.words); 0: none */
} vpps_gpu_script;

/* The tasks of a batch that a launch runs. WHOLE: all. FORWARD: the tasks before PAUSE, which ends forward. GRADIENTS: the tasks before
 * NORM (after PAUSE, if there is one), which compute the gradients or pack vectors for cuBLAS. STEP: NORM and UPDATE. */
typedef enum vpps_gpu_part { VPPS_GPU_WHOLE, VPPS_GPU_FORWARD, VPPS_GPU_GRADIENTS, VPPS_GPU_STEP } vpps_gpu_part;

/* Makes the program (script) of the next launch, valid until that launch has ended. `adds`: parameters marked in gpu->dense have gradients
 * from earlier launches, to which this launch adds. Fails with MEMORY. */
vpps_status vpps_gpu_make_script(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_part part, bool adds,
                                 vpps_gpu_script *out);

/* Makes a program (script) that only computes the gradients' norm and updates the parameters marked in gpu->dense and
 * the lookup-table entries listed in gpu->segments. Valid until the launch has ended. Fails with MEMORY. */
vpps_status vpps_gpu_make_step(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_script *out);

/* ---- share.c */

/* Prepares the exchange of gradients with other processes' GPUs. Fails with MEMORY, DEVICE, and as the options' communicator does. */
vpps_status vpps_gpu_open_share(vpps_gpu *gpu);
void vpps_gpu_close_share(vpps_gpu *gpu);

/* Returns the number of the GPU that this process uses. The processes on one host get different numbers, from 0 on. */
uint32_t vpps_gpu_number(const vpps_communicator *c);

/* Sums the accumulated gradients and *loss over all processes. Afterwards gpu->dense marks the parameters, and gpu->segments lists the
 * table entries, that have a gradient in any process. All processes must make the update that `batch` describes. Fails with MEMORY, DEVICE,
 * and as vpps_share_exchange does. */
vpps_status vpps_gpu_exchange(vpps_gpu *gpu, const vpps_batch *batch, double *loss);

/* ---- products.c */

/* Returns whether the kernel in use packs vectors side by side, so that cuBLAS computes the gradients of matrices. */
bool vpps_gpu_packs(const vpps_gpu *gpu);

/* Plans in gpu->products how cuBLAS computes a batch's gradients of matrices (products dy x^T), before the launch that
 * packs the vectors dy and x, for which it reserves memory. `adds`: the products are added to gradients of earlier
 * launches, which parameters marked in gpu->dense have. Fails with DEVICE (no cuBLAS), MEMORY, POOL (large batch). */
vpps_status vpps_gpu_plan_products(vpps_gpu *gpu, const vpps_batch *batch, bool adds);

/* Queues cuBLAS's products after the launch that packs their vectors. `words`: device address of gpu->products.words. Fails with DEVICE. */
vpps_status vpps_gpu_multiply(vpps_gpu *gpu, uint64_t words);

void vpps_gpu_close_products(vpps_gpu *gpu);

/* ---- gradients.c */

/* Sets marks[p] for each parameter p whose gradient the batch's OUTER tasks compute. `products` false: leaves out parameters whose
 * gradients are sums of outer products dy x^T alone, since cuBLAS can compute these. */
void vpps_gpu_mark_outers(const vpps_batch *batch, bool products, bool *marks);

/* Prepares the first launch that computes gradients after an update: no parameter has a gradient yet. Fails with DEVICE. */
vpps_status vpps_gpu_open_sum(vpps_gpu *gpu);

/* Prepares an update: sets gpu->segments to the summed gradients of lookup tables' entries. Marks these tables in gpu->dense, which marks
 * the parameters to update, and unmarks frozen parameters. Fails with MEMORY, DEVICE. */
vpps_status vpps_gpu_open_update(vpps_gpu *gpu);
/* Copies gradients of lookup-table entries (gpu->segments) to the GPU (gpu->entries). Fails with MEMORY, DEVICE. */
vpps_status vpps_gpu_give_entries(vpps_gpu *gpu);

void vpps_gpu_zero_gradients(vpps_device *d);
vpps_status vpps_gpu_take_gradients(vpps_device *d);

/* ---- outside.c: functions of vpps_device_table (runtime/device.h) for arrays that the caller has in the GPU's memory */

vpps_status vpps_gpu_check_array(vpps_device *d, const void *array, size_t bytes, const char *what);
vpps_status vpps_gpu_trade(vpps_device *d, bool in, uint32_t n, const vpps_pool_copy *copies, void *stream);
vpps_status vpps_gpu_lend(vpps_device *d, uint64_t words, vpps_array **out, float **address);

/* ---- profile.c */

/* Lists the variants of the kernel that the options allow, in the order in which they will be timed. Returns their
 * number, at most VPPS_MOST_TRIALS. rpw (rows per warp) 0 stands for the fastest number found with earlier variants. */
uint32_t vpps_gpu_choices(const vpps_options *options, vpps_trial *out);

/* Lists the variants of the kernel to time, and takes the first one, or the one that an earlier run has chosen. */
void vpps_gpu_start_profile(vpps_gpu *gpu);

/* Records `made`, the status of making the kernel that is to be timed next, and its memory. Returns `made`; or POOL if
 * this variant of the kernel is rejected: the caller must then call vpps_gpu_tune, which takes another variant, and
 * schedule the batch again, since a batch's program fits one variant only. */
vpps_status vpps_gpu_note_kernel(vpps_gpu *gpu, vpps_status made);

/* Implements the device's `tune`: takes the next variant of the kernel once it is compiled and this one timed. */
vpps_status vpps_gpu_tune(vpps_device *d);

/* ---- ahead.c */

/* Returns whether the variant `next` of the kernel can be used at once. Else another thread is compiling it, with the
 * cells (vertex functions) of the latest training batch's kernel. */
bool vpps_gpu_is_ahead(vpps_gpu *gpu, const vpps_trial *next);

void vpps_gpu_compile_ahead(vpps_device *d, const vpps_batch *batch, bool training);

/* Waits for the kernel that is being compiled in another thread with these cells, if there is one. */
void vpps_gpu_await_ahead(vpps_gpu *gpu, const vpps_compiled_cell *const *cells, uint32_t n_cells);

/* Waits until other threads have compiled their kernels. This can take some seconds, since a compiler cannot be interrupted. */
void vpps_gpu_stop_ahead(vpps_gpu *gpu);
