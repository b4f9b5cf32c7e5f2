/* device.h - a device, as handles see it: a small table of functions. One batch is in flight at a time; some devices take a second one,
 * which runs when the first has ended. */
#pragma once

#include "graph/model.h"
#include "plan/plan.h"
#include "runtime/profile.h"
#include "runtime/share.h"
#include "runtime/trace.h"
#include "script/script.h"

typedef struct vpps_device vpps_device;

enum { VPPS_CHOICE_TEXT = 320 };

/* How a batch ended. The message says what went wrong, without the batch's number. */
typedef struct vpps_outcome {
    vpps_status status;
    char message[VPPS_MESSAGE_BYTES];
    float loss, norm; /* norm: of the gradient, where the script takes it; else 0 */
    uint64_t device_ns;
    uint64_t own_ns;           /* device_ns without waiting for other processes */
    uint64_t begin_ns, end_ns; /* by a clock of the device's; 0: not told */
    vpps_share_cost shared;    /* all zero where there is one process */
} vpps_outcome;

/* What a user should know of a device: facts by name, and one line of text. */
typedef struct vpps_device_facts {
    bool ready;
    char state[320]; /* a line; why it is not ready, or of what it is made */
    uint32_t n;
    struct {
        const char *name;
        char text[96];
        bool number;
    } facts[8];
} vpps_device_facts;

typedef struct vpps_device_table {
    const char *name;
    const char *alias; /* another name that users give it; NULL: none */
    const char *note;  /* what help says of it; NULL: nothing */
    bool decides;      /* does it run argmax and lookup_at? */
    bool host_vps;     /* are its VPs threads of this process, which can be followed? */
    bool stands_in;    /* for another device, of whose speed its times say nothing? */

    /* Fills in `out`, which is zero. NULL: it is always ready, and there is no more to say. */
    void (*examine)(vpps_device_facts *out);

    /* Is there such a machine at all? Fails with DEVICE, and the message says why not. NULL: always. */
    vpps_status (*find)(void);

    /* A device for the model's parameters, which are copied to it. plan is filled in; its arrays are the device's. */
    vpps_status (*create)(vpps_device **out, const vpps_model *model, const vpps_options *options, vpps_plan *plan);
    void (*destroy)(vpps_device *d);

    /* The machine that scripts are made for. `tune` may change it. */
    const vpps_task_plan *(*machine)(const vpps_device *d);

    /* Starts a batch's script, which must stay as it is until the batch is finished. Where the calling thread works as a VP, it
     * is finished on return. Fails with MEMORY, and but for host_vps with POOL (while its profile goes on: `tune` takes
     * another candidate), when nothing was started and the parameters are as before; `unstarted` says that of other failures. */
    vpps_status (*launch)(vpps_device *d, const vpps_batch *batch);
    /* Tells that batches which train, or infer, are likely to come with this batch's cells and groups, so that the device can prepare for them.
     * The batch has no script. NULL: there is nothing to prepare. */
    void (*foresee)(vpps_device *d, const vpps_batch *batch, bool training);
    /* Compiled cells of earlier batches are about to be freed; nothing is in flight. NULL: the device holds none. */
    void (*forget_cells)(vpps_device *d);

    /* May this batch be launched while another one is in flight? It runs when that one has ended. If that one fails, or has a loss or
     * gradient that is not finite and the options stop at it, this batch does nothing: its outcome is a failure, and parameters are as
     * if it had not been launched. NULL: no. */
    bool (*queues)(const vpps_device *d, const vpps_batch *batch);
    bool (*finished)(vpps_device *d); /* never blocks; true when nothing was launched */
    void (*wait)(vpps_device *d,
                 vpps_outcome *out); /* of the oldest launch that was not waited for, or again of the latest */

    /* These want the device to be idle. read: `words` words of the pool from `offset` on. */
    vpps_status (*read)(vpps_device *d, uint32_t offset, uint32_t words, float *out);
    /* Kept values lie between the parameters and batches' tensors. reserve_kept: from now on scripts are made for tensors that begin so
     * many words later. write: to the pool. copy: within it, what a launch has left; a later launch waits for it. Fail with
     * MEMORY (reserve_kept: nothing has changed), DEVICE. */
    vpps_status (*reserve_kept)(vpps_device *d, uint32_t words);
    vpps_status (*write)(vpps_device *d, uint32_t offset, uint32_t words, const float *from);
    vpps_status (*copy)(vpps_device *d, uint32_t to, uint32_t from, uint32_t words);
    vpps_status (*forward_end)(vpps_device *d); /* see vpps_forward_end; NULL: nothing to do */
    vpps_status (*read_parameters)(vpps_device *d, vpps_model *model, bool states); /* to it; also optimiser state? */
    vpps_status (*write_parameters)(vpps_device *d, const vpps_model *model);

    /* Gradients that batches of the part VPPS_STEP_GRADIENTS left. zero: forgets them. read: to the model, with which entries of tables
     * have one; write: those that the model says, back. */
    void (*zero_gradients)(vpps_device *d);
    vpps_status (*read_gradients)(vpps_device *d, vpps_model *model);
    vpps_status (*write_gradients)(vpps_device *d, const vpps_model *model);
    bool (*caller_works)(const vpps_device *d);

    /* The precision of products, and the instructions that make them. */
    vpps_precision (*precision)(const vpps_device *d, const char **unit);

    /* The device's choices that a batch's bits depend on beside its script, as text of VPPS_CHOICE_TEXT bytes for checkpoints. take_choice:
     * applies such a text, if it is of such a machine and the options allow it; write_parameters must follow. Fails with MEMORY, and
     * nothing has changed. NULL: both, where bits do not depend on what was measured. */
    void (*choice)(const vpps_device *d, char *text);
    vpps_status (*take_choice)(vpps_device *d, const char *text);

    /* Switches the device to the next candidate of its profile; parameters stay as they are. NULL: the device has no profile. */
    vpps_status (*tune)(vpps_device *d);
    /* Trial i of those that were measured before there were batches; false: there are no more. NULL: there are none. */
    bool (*measured)(const vpps_device *d, uint32_t i, vpps_trial *out);
} vpps_device_table;

struct vpps_device {
    const vpps_device_table *table;
    vpps_profile profile; /* of the device's own choice */
    vpps_trace *trace;    /* where its VPs note what they do; NULL: nowhere */
    uint32_t vote;        /* sent with a batch's gradients; all processes get the sum */
    bool unstarted;       /* the latest launch failed before anything was started: false before each */
};

/* By vpps_precision. */
extern const char *const vpps_precision_names[];

/* By vpps_gradients, of those that batches run with: who makes the gradients of matrices. */
extern const char *const vpps_gradient_makers[];

/* Is it cuBLAS? */
static inline bool vpps_by_cublas(vpps_gradients g) {
    return g == VPPS_GRADIENTS_CUBLAS || g == VPPS_GRADIENTS_CUBLAS_TF32;
}

/* bf16 numbers whose sum an operand of a product is; 0: it is one of fp32. */
static inline uint32_t vpps_precision_parts(vpps_precision p) {
    return p == VPPS_PRECISION_BF16X3 ? 2 : p == VPPS_PRECISION_BF16 ? 1 : 0;
}

/* All devices, the default first: vpps_device_NAME, which a folder's device.c defines. */
#define VPPS_DEVICES(X)                                                                                                \
    X(cpu)                                                                                                             \
    X(cuda)                                                                                                            \
    X(simt)

#define X(name) extern const vpps_device_table vpps_device_##name;
VPPS_DEVICES(X)
#undef X
