/* device.h - the interface of a device (CPU, GPU, emulated GPU): a table of functions that a training handle calls. One batch runs at a
 * time; some devices queue a second batch behind it. */
#pragma once

#include "graph/model.h"
#include "runtime/profile.h"
#include "runtime/share.h"
#include "runtime/trace.h"
#include "script/script.h"

typedef struct vpps_device vpps_device;

enum { VPPS_CHOICE_TEXT = 320 };

/* The outcome of a batch. `message` describes a failure, without the batch's number. */
typedef struct vpps_outcome {
    vpps_status status;
    char message[VPPS_MESSAGE_BYTES];
    float loss, norm; /* norm of the gradient; 0 if the batch does not compute it */
    uint64_t device_ns;
    uint64_t own_ns;           /* device_ns less the time in which this process waited for other processes */
    uint64_t begin_ns, end_ns; /* start and end of the batch, in nanoseconds of the device's clock; 0: unknown */
    vpps_share_cost shared;    /* cost of exchanges with other processes; all zero with a single process */
} vpps_outcome;

/* Information for users about a device: named facts, and one line of text. */
typedef struct vpps_device_facts {
    bool ready;
    char state[320]; /* one line: how the device was opened, or why it is not ready */
    uint32_t n;
    struct {
        const char *name;
        char text[96];
        bool number;
    } facts[8];
} vpps_device_facts;

/* A copy between the pool (the device's memory) and an array of the caller. */
typedef struct vpps_pool_copy {
    uint32_t offset, words; /* range of device memory; offset VPPS_NONE: the copy fills `array` with zeros */
    float *array;           /* NULL: the copy fills the range with zeros */
} vpps_pool_copy;

typedef struct vpps_pointers {
    bool on_device; /* whether the arrays that callers pass are in the device's memory, not in the host's */
    void *stream;   /* CUDA stream (CUstream) in which the caller's work writes and reads the arrays that it passes */
} vpps_pointers;

typedef struct vpps_device_table {
    const char *name;
    const char *alias; /* another name of the device for users; NULL: none */
    const char *note;  /* text about the device in the command's help; NULL: none */
    bool decides;      /* whether the device can run the ops argmax and lookup_at */
    bool host_vps;     /* whether virtual processors, which run tasks, are threads of this process, not a GPU's CTAs */
    bool stands_in;    /* whether the device emulates another one; its times do not tell that device's speed */

    /* Describes the device in *out, which the caller has set to zeros. NULL: always ready, with nothing to describe. */
    void (*examine)(vpps_device_facts *out);

    /* Checks that the hardware exists. Fails with DEVICE; the message says why. NULL: the hardware always exists. */
    vpps_status (*find)(void);

    /* Creates a device that has the model's parameters, and writes their offsets to *plan. The device owns the plan's arrays. */
    vpps_status (*create)(vpps_device **out, const vpps_model *model, const vpps_options *options,
                          vpps_pool_plan *plan);
    void (*destroy)(vpps_device *d);

    /* Starts a batch's program (script: a list of tasks), which must not change until the batch is finished. If the calling thread runs
     * tasks, too, the batch is finished on return. After a failure, nothing was started and no parameter changed in three cases: member
     * `unstarted` is true; status MEMORY; status POOL of a device that compiles kernels: no kernel can run the batch, or the kernel being
     * timed cannot (`tune` then switches to the next one). */
    vpps_status (*launch)(vpps_device *d, const vpps_batch *batch);
    /* Compiles a kernel for the cells of `batch`, which need not have tasks yet, while other batches run. Called only if target->ahead. */
    void (*compile_ahead)(vpps_device *d, const vpps_batch *batch, bool training);
    /* Announces that compiled cells of earlier batches are about to be freed; no batch is running. NULL: the device holds no cells. */
    void (*forget_cells)(vpps_device *d);

    /* Returns whether this batch may be launched while another one runs, to start after that one. If the other one fails, or stops for a
     * loss or gradient that is not finite (vpps_options.nonfinite), the queued batch does nothing: its outcome is a failure, and parameters
     * stay. NULL: batches are never queued. */
    bool (*queues)(const vpps_device *d, const vpps_batch *batch);
    bool (*finished)(vpps_device *d); /* Returns whether the latest launch, if any, is finished. Never blocks. */
    /* Waits for the oldest launch whose outcome was not taken, and gives that outcome. If all were taken, gives the latest one again. */
    void (*wait)(vpps_device *d, vpps_outcome *out);

    /* Reads words of the pool (the device's memory) from `offset` on. The device must be idle for this and all following functions. */
    vpps_status (*read)(vpps_device *d, uint32_t offset, uint32_t words, float *out);
    /* Reserves device memory, between the parameters and the batches' tensors, for values that stay on the device
     * between batches. Later batches' tensors lie higher by `words`. Fails with MEMORY, changing nothing, or DEVICE. */
    vpps_status (*reserve_kept)(vpps_device *d, uint32_t words);
    /* Writes words to the pool (the device's memory). */
    vpps_status (*write)(vpps_device *d, uint32_t offset, uint32_t words, const float *from);
    /* Copies words within the pool (device memory), such as values that the latest launch left there. A later launch waits for the copy. */
    vpps_status (*copy)(vpps_device *d, uint32_t to, uint32_t from, uint32_t words);
    /* Checks that a caller's array, called `what` in the message, is in the device's memory. Fails with ARGUMENT. check_array, trade and
     * lend are NULL if the device has no memory of its own. */
    vpps_status (*check_array)(vpps_device *d, const void *array, size_t bytes, const char *what);
    /* Copies n of the caller's arrays in device memory to the pool (the engine's device memory) if `in`, else from the
     * pool. Does not wait: the copies run after earlier work in the caller's CUDA stream and before later work. */
    vpps_status (*trade)(vpps_device *d, bool in, uint32_t n, const vpps_pool_copy *copies, void *stream);
    vpps_status (*lend)(vpps_device *d, uint64_t words, vpps_array **out, float **address); /* vpps_array_create */
    /* sends other processes this one's entries of lookup tables until all call vpps_forward_end; NULL: not needed */
    vpps_status (*forward_end)(vpps_device *d);
    /* Returns whether the device has an array of a parameter (`which`: VPPS_ARRAY_VALUES, VPPS_ARRAY_GRADIENT, ...). A gradient exists only
     * while gradients are accumulated. Of a table divided among processes, the device has no array. */
    bool (*holds)(const vpps_device *d, vpps_param param, uint32_t which);
    /* Copies an array of a parameter to the host or, with `in`, from the host; a matrix row by row. `array` NULL, only with `in`: zeros. */
    vpps_status (*move)(vpps_device *d, vpps_param param, uint32_t which, float *array, bool in);
    vpps_status (*settle)(vpps_device *d); /* Waits for copies that `move` has begun; NULL: `move` waits. */

    /* Adds the latest launch's gradients of table entries to row_sums, before a launch reuses their memory. Fails with MEMORY, DEVICE. */
    vpps_status (*take_gradients)(vpps_device *d);
    /* Drops the gradients that were added up since the latest update. */
    void (*zero_gradients)(vpps_device *d);

    /* Writes, for checkpoints, the device's measured choices that affect a batch's bits, as text of at most VPPS_CHOICE_TEXT bytes.
     * `choice` and `take_choice` are NULL if bits do not depend on measurements. */
    void (*choice)(const vpps_device *d, char *text);
    /* Applies what `choice` wrote in another run: how products are computed, e.g. in which precision. Does nothing if
     * that machine was of another kind or the options forbid it. The caller must then write all parameters to the
     * device, which stores them to suit. Fails with MEMORY, changing nothing. */
    vpps_status (*take_choice)(vpps_device *d, const char *text);

    /* Switches to the next setting to be timed in training, such as a variant of the kernel. NULL: none is timed. */
    vpps_status (*tune)(vpps_device *d);
    /* Writes to *out the i-th kind of matrix product that the device timed before the first batch, and its time. False:
     * there is none. NULL: the device times no products. */
    bool (*measured)(const vpps_device *d, uint32_t i, vpps_trial *out);
} vpps_device_table;

struct vpps_device {
    const vpps_device_table *table;
    /* properties by which batches' programs are made, such as the number of threads or CTAs; `tune` may change them */
    const vpps_target *target;
    vpps_precision precision; /* precision of matrix products */
    const char *unit;         /* name of the instructions that compute matrix products */
    bool caller_works;        /* whether the calling thread runs a virtual processor (VP), too */
    vpps_profile profile;     /* measures alternatives of the device, such as kinds of kernels */
    vpps_trace *trace;        /* trace in which virtual processors (threads) record their tasks; NULL: none */
    /* A number sent to the other processes along with a batch's gradients; each process gets the sum of all processes' numbers. */
    uint32_t vote;
    uint32_t number;   /* number of the GPU among the host's GPUs; 0 for other devices */
    bool unstarted;    /* whether the latest launch failed before anything was started */
    uint64_t *updates; /* indexed by parameter: number of optimiser steps in finished batches */
    /* gradients of entries of lookup tables, summed over launches until the optimiser's update */
    vpps_row_sums *row_sums;
};

/* Arrays of a parameter on a device: its values, its gradient, and VPPS_ARRAY_STATES + s, state number s of the optimiser. */
enum { VPPS_ARRAY_VALUES, VPPS_ARRAY_GRADIENT, VPPS_ARRAY_STATES };

/* ---- parameters.c: code that all devices share */

/* Allocates `updates` and `row_sums` of a device. Fails with MEMORY. vpps_device_close frees them, also after a failure. */
vpps_status vpps_device_open(vpps_device *d, const vpps_model *model);
void vpps_device_close(vpps_device *d);

/* Copies parameters, and optimiser states if `states`, from the device to the model. */
vpps_status vpps_device_read_parameters(vpps_device *d, vpps_model *model, bool states);
/* Copies parameters and states of the optimiser `kind` to the device; states of another optimiser become zeros. */
vpps_status vpps_device_write_parameters(vpps_device *d, const vpps_model *model, vpps_optimizer_kind kind);

extern const char *const vpps_precision_names[];

/* For each vpps_gradients: what computes the gradients of matrices, such as "cublas"; NULL for VPPS_GRADIENTS_AUTO. */
extern const char *const vpps_gradient_makers[];

static inline bool vpps_by_cublas(vpps_gradients g) {
    return g == VPPS_GRADIENTS_CUBLAS || g == VPPS_GRADIENTS_CUBLAS_TF32;
}

/* Returns how many bf16 numbers, added up, represent an operand of a product; 0: operands are fp32. */
static inline uint32_t vpps_precision_parts(vpps_precision p) {
    return p == VPPS_PRECISION_BF16X3 ? 2 : p == VPPS_PRECISION_BF16 ? 1 : 0;
}

/* The devices as X(name), the default first. Each has a table of functions named vpps_device_NAME. */
#define VPPS_DEVICES(X)                                                                                                \
    X(cpu)                                                                                                             \
    X(cuda)                                                                                                            \
    X(simt)

#define X(name) extern const vpps_device_table vpps_device_##name;
VPPS_DEVICES(X)
#undef X
