/* vpps.h - train dynamic neural networks: the public interface. Part one is what a first trainer needs; part two is the rest.
 *
 *     vpps_model_create(&model, seed);           declare parameters, record cells
 *     vpps_handle_create(&h, model, &options);   specialise an engine for the model, once
 *     for each batch {
 *         vpps_graph_clear(g);  ...ops on g...   build this batch's graphs
 *         vpps_fb(h, g, loss, &stale);           forward, backward, update; returns the loss of the preceding batch
 *     }
 *     vpps_sync_latest_loss(h, &loss);           wait for the batch in flight
 *
 * Conventions
 *   - A call that can fail returns a vpps_status; vpps_error_message() is the message. The library never prints, exits or aborts. Every
 *     call that allocates memory can fail with MEMORY; comments do not repeat it.
 *   - A call that makes a node or a vertex returns its number, so that expressions nest. On failure the call returns VPPS_NO_NODE or
 *     VPPS_NO_VERTEX, and the graph keeps its *first* error ("sticky"): later calls with VPPS_NO_NODE operands fail silently, and
 *     vpps_graph_status() and every call that runs the graph report the first error.
 *   - A value is rows x cols of float32. A vector has one column; a scalar is 1 x 1. The data of a matrix-valued *node* are given and
 *     returned column after column; those of a *parameter* matrix row after row.
 *   - A model, its graphs and its handles belong to one thread at a time; different models are independent. While one thread trains or
 *     runs a batch of one graph, another thread may build another graph of the same model. Handles of vpps_handle_create_inference belong
 *     to threads of their own. After fork(), calls in the child with a handle of the parent fail with STATE; the child may destroy it.
 *   - A NULL pointer fails with ARGUMENT, unless a comment allows NULL. An array of no elements may be NULL. A call that returns neither a
 *     status nor a node answers a NULL pointer with 0, NULL, or the value that its comment gives for an unknown argument.
 *   - Strings and arrays that are passed in are copied, unless a comment says otherwise.
 *   - A struct that later versions may extend begins with `size`, which the caller sets to the struct's size:
 *
 *         vpps_stats stats = {.size = sizeof stats};
 *         vpps_apply(g, VPPS_APPLICATION(.cell = leaf, .n_indices = 1, .indices = &word));
 *
 *     So a program compiled against an older header runs with a newer library: members that the program does not know count as zero, or
 *     as vpps_options_default sets them. A size that no version has (0, or more than 4,096 bytes) fails with ARGUMENT. Structs without
 *     `size` never change. The macros VPPS_APPLICATION, VPPS_APPLICATIONS and VPPS_REQUEST make a pointer to a struct whose size is set;
 *     the struct lives as long as the enclosing block.
 */
#ifndef VPPS_H
#define VPPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VPPS_VERSION "0.1.0"

#if defined(__GNUC__)
#define VPPS_API __attribute__((visibility("default")))
#else
#define VPPS_API
#endif

/* ================================================================ part one: what a first trainer needs */
/* ---------------------------------------------------------------- status */
/* X(id, meaning) */
#define VPPS_STATUS_TABLE(X)                                                                                           \
    X(OK, "success")                                                                                                   \
    X(ARGUMENT, "an argument is out of its range")                                                                     \
    X(SHAPE, "operand shapes do not fit")                                                                              \
    X(MEMORY, "memory is exhausted, the host's or the device's")                                                       \
    X(POOL, "the batch does not fit the device's pool")                                                                \
    X(IO, "a file could not be read or written")                                                                       \
    X(FORMAT, "a file's content is not what its format asks for")                                                      \
    X(DEVICE, "the device is missing or failed")                                                                       \
    X(STALL, "a device program stopped making progress")                                                               \
    X(NONFINITE, "the loss or its gradient is not finite")                                                             \
    X(SCRIPT, "a script failed verification")                                                                          \
    X(STATE, "the call does not fit the object's state")

typedef enum vpps_status {
#define X(id, text) VPPS_##id,
    VPPS_STATUS_TABLE(X)
#undef X
} vpps_status;
/* Returns the name of a status, e.g. "SHAPE"; never NULL. */
VPPS_API const char *vpps_status_name(vpps_status status);
/* Returns the message of the thread's last failed call: what failed, where, what was expected. Valid until the next failure; never NULL. */
VPPS_API const char *vpps_error_message(void);
VPPS_API const char *vpps_version(void);

/* ---------------------------------------------------------------- model */
typedef struct vpps_model vpps_model;
typedef uint32_t vpps_param; /* a parameter's index in its model, in order of declaration */
#define VPPS_NO_PARAM UINT32_MAX

typedef enum vpps_init_kind {
    /* Uniform in +-sqrt(6 / (rows + cols)) (Glorot and Bengio 2010, eq. 16); rows x 1 for an entry of a lookup table. Vectors are zero. */
    VPPS_INIT_GLOROT,
    VPPS_INIT_UNIFORM,  /* uniform in [a, b) */
    VPPS_INIT_NORMAL,   /* normal distribution with mean a and standard deviation b */
    VPPS_INIT_CONSTANT, /* every element is `a` */
    VPPS_INIT_VALUES    /* copied from `values`, a matrix row after row */
} vpps_init_kind;

typedef struct vpps_init {
    vpps_init_kind kind;
    float a, b;
    const float *values;
} vpps_init;
/* Creates a model without parameters. `seed` drives all initialisers: equal seeds and declarations give equal values. */
VPPS_API vpps_status vpps_model_create(vpps_model **out, uint64_t seed);
/* Frees a model, whose graphs and handles must be destroyed before. NULL is allowed. */
VPPS_API void vpps_model_destroy(vpps_model *model);
/* Declare a parameter: a rows x cols matrix, a vector of `rows`, or a lookup table of `count` entries of rows x cols (column after column).
 * `init` NULL: Glorot. Names are unique, non-empty UTF-8 without control characters, and not reserved by checkpoints ("__metadata__",
 * "optimizer.0/W"). Fail with ARGUMENT (a size of zero or too large, a bad or duplicate name), STATE (a handle exists). */
VPPS_API vpps_status vpps_add_matrix(vpps_model *model, vpps_param *out, const char *name, uint32_t rows, uint32_t cols,
                                     const vpps_init *init);
VPPS_API vpps_status vpps_add_vector(vpps_model *model, vpps_param *out, const char *name, uint32_t rows,
                                     const vpps_init *init);
VPPS_API vpps_status vpps_add_lookup(vpps_model *model, vpps_param *out, const char *name, uint32_t count,
                                     uint32_t rows, uint32_t cols, const vpps_init *init);
/* Returns the model's copy of a parameter's count * rows * cols values, a matrix row after row; NULL for an unknown parameter. It lives
 * as long as the model. While a handle trains, call vpps_read_parameters before reading the copy and vpps_write_parameters after writing
 * it. For a table shared out over processes (vpps_shard_tables), the result is no copy but this process's entries themselves. */
VPPS_API float *vpps_param_values(vpps_model *model, vpps_param param);

/* ---------------------------------------------------------------- graph */
typedef struct vpps_graph vpps_graph;
typedef uint32_t vpps_node;
#define VPPS_NO_NODE UINT32_MAX

/* Creates an empty graph over a model's parameters. Building a graph allocates only while it grows beyond its largest size so far. */
VPPS_API vpps_status vpps_graph_create(vpps_graph **out, vpps_model *model);
VPPS_API void vpps_graph_destroy(vpps_graph *g);
VPPS_API void vpps_graph_clear(vpps_graph *g); /* drops the graph's nodes, vertices and error, and keeps its memory */
/* Returns OK, or the graph's first failure since the last clear (whose message becomes vpps_error_message()). */
VPPS_API vpps_status vpps_graph_status(const vpps_graph *g);

/* ---- leaves: nodes without operands. vpps_input copies `data`: rows * cols floats, column after column. vpps_lookup reads
 * entry number `index` of a lookup table; in a cell, `index` may be a result of vpps_pull_index, a number that each vertex is given. */
VPPS_API vpps_node vpps_input(vpps_graph *g, uint32_t rows, uint32_t cols, const float *data);
VPPS_API vpps_node vpps_lookup(vpps_graph *g, vpps_param table, uint32_t index);
/* Makes a node of a vector or matrix parameter; the node's gradient is added to the parameter's. Each run of the
 * graph copies a matrix, in fp32, for each such node (in a cell: for each vertex). vpps_affine copies none. */
VPPS_API vpps_node vpps_parameter(vpps_graph *g, vpps_param parameter);
/* Makes a node of equal elements, which has no gradient. A cell's operations on constants alone are evaluated once, by the compiler. */
VPPS_API vpps_node vpps_constant(vpps_graph *g, uint32_t rows, uint32_t cols, float value);
VPPS_API vpps_node vpps_zeros(vpps_graph *g, uint32_t rows, uint32_t cols);
VPPS_API vpps_node vpps_ones(vpps_graph *g, uint32_t rows, uint32_t cols);

/* ---- operations, by IEEE 754 as in PyTorch. Some operations choose among operands: select, when, unless, max, min, relu, dropout, and
 * binary_log_loss at a target of 0 or 1. An operand that is not chosen affects neither the result nor gradients, even if the operand is
 * infinite or NaN; but max and min of a NaN are NaN. A score of -inf has probability 0 in softmax, log_softmax, log_sum_exp and
 * cross_entropy. If the label's score is -inf, the loss is infinite, and its gradient is still softmax(x) - onehot(label). 0 times infinity
 * is NaN, also in weighted_sum, dot, products, and for a class of weight 0 under label smoothing. Sums (also of gradients, and in fp32
 * products) are off by at most a few times 1e-5 of the sum of the terms' magnitudes. */
/* Computes bias + sum over i < n of matrices[i] * xs[i]. The bias, a vector or VPPS_NO_PARAM, is added to every column. Each xs[i] is
 * (cols of matrices[i]) x c with one common c; the result is (matrix rows) x c. n is at most 32. */
VPPS_API vpps_node vpps_affine(vpps_graph *g, vpps_param bias, uint32_t n, const vpps_param *matrices,
                               const vpps_node *xs);
VPPS_API vpps_node vpps_matvec(vpps_graph *g, vpps_param matrix, vpps_node x);
VPPS_API vpps_node vpps_affine1(vpps_graph *g, vpps_param bias, vpps_param w, vpps_node x);
VPPS_API vpps_node vpps_affine2(vpps_graph *g, vpps_param bias, vpps_param w0, vpps_node x0, vpps_param w1,
                                vpps_node x1);
VPPS_API vpps_node vpps_matmul(vpps_graph *g, vpps_node a, vpps_node b); /* matrix product of r x k and k x c */
/* Elementwise operations on equal shapes. At a tie, the gradient goes to a (max, min) or to the first equal operand (max_of, min_of). */
VPPS_API vpps_node vpps_add(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_sub(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_mul(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_div(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_max(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_min(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_sum(vpps_graph *g, uint32_t n, const vpps_node *xs);
VPPS_API vpps_node vpps_average(vpps_graph *g, uint32_t n, const vpps_node *xs);
VPPS_API vpps_node vpps_max_of(vpps_graph *g, uint32_t n, const vpps_node *xs);
VPPS_API vpps_node vpps_min_of(vpps_graph *g, uint32_t n, const vpps_node *xs);
VPPS_API vpps_node vpps_negate(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_one_minus(vpps_graph *g, vpps_node x);  /* 1 - x */
VPPS_API vpps_node vpps_reciprocal(vpps_graph *g, vpps_node x); /* 1 / x */
VPPS_API vpps_node vpps_scale(vpps_graph *g, vpps_node x, float factor);
VPPS_API vpps_node vpps_scale_by(vpps_graph *g, vpps_node x, vpps_node scalar);
VPPS_API vpps_node vpps_sigmoid(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_tanh(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_relu(vpps_graph *g, vpps_node x);             /* relu's gradient at 0 is 0 */
VPPS_API vpps_node vpps_elu(vpps_graph *g, vpps_node x, float alpha); /* x > 0 ? x : alpha (e^x - 1); alpha > 0 */
VPPS_API vpps_node vpps_gelu(vpps_graph *g, vpps_node x);     /* x Phi(x) in tanh form (Hendrycks and Gimpel 2016) */
VPPS_API vpps_node vpps_gelu_erf(vpps_graph *g, vpps_node x); /* x Phi(x), Phi by the error function to 1e-7 */
VPPS_API vpps_node vpps_exp(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_log(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_square(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_sqrt(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_abs(vpps_graph *g, vpps_node x); /* the gradient of |x| at 0 is 0 */

/* Dropout: in training each element becomes zero with probability p, 0 <= p < 1, else x / (1 - p); the mask follows from the handle's
 * seed, the batch's number and the element's position in the graph. In vpps_forward dropout is the identity. */
VPPS_API vpps_node vpps_dropout(vpps_graph *g, vpps_node x, float p);
VPPS_API vpps_node vpps_concat(vpps_graph *g, uint32_t n, const vpps_node *xs); /* stacks nodes of equal cols */
/* rows of x from `first` on */
VPPS_API vpps_node vpps_slice(vpps_graph *g, vpps_node x, uint32_t first, uint32_t rows);

VPPS_API vpps_node vpps_dot(vpps_graph *g, vpps_node a, vpps_node b);              /* a scalar */
VPPS_API vpps_node vpps_squared_distance(vpps_graph *g, vpps_node a, vpps_node b); /* a scalar: |a - b|^2 */
VPPS_API vpps_node vpps_sum_elements(vpps_graph *g, vpps_node x);                  /* a scalar */

VPPS_API vpps_node vpps_softmax(vpps_graph *g, vpps_node x); /* softmax of a vector, or of each column of a matrix */
VPPS_API vpps_node vpps_log_softmax(vpps_graph *g, vpps_node x);
/* Losses, each a scalar. `label`, the number of the right class, must be less than x's rows; inside a cell it may come from
 * vpps_pull_index.
 *   cross_entropy    -log softmax(x)[label]: x are scores before the softmax
 *   hinge            sum over j != label of max(0, margin - x[label] + x[j])      (Crammer and Singer 2001, margins summed)
 *   binary_log_loss  -sum_i target_i log p_i + (1 - target_i) log(1 - p_i), with 0 < p < 1 */
VPPS_API vpps_node vpps_cross_entropy(vpps_graph *g, vpps_node x, uint32_t label);
VPPS_API vpps_node vpps_hinge(vpps_graph *g, vpps_node x, uint32_t label, float margin);
VPPS_API vpps_node vpps_binary_log_loss(vpps_graph *g, vpps_node p, vpps_node target);

/* ---------------------------------------------------------------- cells: vertex functions
 *
 * A cell is a subgraph that is recorded once, for a model, and applied at any number of vertices of any of the model's graphs (Xu et al.
 * 2018, "Cavs", section 3). vpps_cell_begin gives a recorder: a graph on which the op calls record instead of building. A cell has four
 * verbs:
 *     gather   read what a child vertex scattered        pull   read something from outside the vertices
 *     scatter  offer a value to parent vertices          push   offer a value to the outside
 * Shapes are checked while recording; applying a cell checks only that the children scatter what the cell gathers. */
typedef uint32_t vpps_vertex;
#define VPPS_NO_VERTEX UINT32_MAX
typedef uint32_t vpps_cell; /* a cell's index in its model, in order of recording */

/* Starts recording a cell. *recorder is a graph for calls of ops, gather, pull, scatter and push only: calls that build, run or clear
 * graphs fail on it with STATE. Nodes of the recorder and of other graphs cannot be mixed. `name`, non-empty UTF-8 without control
 * characters, appears in messages and listings; several cells may have one name. Allowed while a handle exists, and while other cells are
 * being recorded. Fails with ARGUMENT (a bad name); *recorder is NULL on failure. */
VPPS_API vpps_status vpps_cell_begin(vpps_model *model, const char *name, vpps_graph **recorder);
/* Makes a node of a child's value: output number `output` (made by vpps_scatter) of child number `child` of the vertex. */
VPPS_API vpps_node vpps_gather(vpps_graph *recorder, uint32_t child, uint32_t output, uint32_t rows, uint32_t cols);
/* Declares a node that each application of the cell supplies. */
VPPS_API vpps_node vpps_pull(vpps_graph *recorder, uint32_t rows, uint32_t cols);
/* Declares an integer that each application of the cell supplies: an index for lookup, a label. A cell has at most 65,535. */
VPPS_API uint32_t vpps_pull_index(vpps_graph *recorder);
/* vpps_scatter makes x an output that parent vertices can read (gather). vpps_push makes x an output that nodes outside cells can use. The
 * outputs of vpps_scatter, and separately those of vpps_push, are numbered from 0 in the order of the calls. */
VPPS_API vpps_status vpps_scatter(vpps_graph *recorder, vpps_node x);
VPPS_API vpps_status vpps_push(vpps_graph *recorder, vpps_node x);
/* Ends recording, adds the cell to the model for the model's life, and frees the recorder, even on failure. (vpps_graph_destroy
 * drops a recorder without making a cell.) Fails with the first error of the recording; STATE if `recorder` is an ordinary
 * graph; ARGUMENT if the cell has more than 64 inputs (made by vpps_gather, vpps_pull or their list forms), outputs, lookups,
 * or results of vpps_pull_index that are labels or row numbers (dropout counts as one more). *out is UINT32_MAX on failure. */
VPPS_API vpps_status vpps_cell_end(vpps_graph *recorder, vpps_cell *out);
/* The arguments of one application of a cell (one vertex): the child vertices, nodes and integers for which results of vpps_gather,
 * vpps_pull, vpps_pull_index and their list forms stood when the cell was recorded. */
typedef struct vpps_application {
    size_t size; /* sizeof(vpps_application) */
    vpps_cell cell;
    uint32_t n_children;
    const vpps_vertex *children; /* child vertices: what vpps_gather calls child number i is children[i] */
    uint32_t n_pulls;
    const vpps_node *pulls; /* pulls[i]: the node that call number i of vpps_pull in the cell stands for */
    uint32_t n_indices;
    const uint32_t *indices; /* indices[i]: the integer that call number i of vpps_pull_index stands for */
    uint32_t n_pull_lists, n_members;
    const vpps_node *const *pull_lists; /* for each vpps_pull_list call: an array of n_members nodes */
    /* list_members[i]: how many children or nodes list input number i of the cell reads. If n_lists is 0, the cell's only list reads all
     * `children` after those of vpps_gather or, if it reads no children, n_members nodes. If n_lists is not 0, n_members is ignored. */
    uint32_t n_lists;
    const uint32_t *list_members;
} vpps_application;
#define VPPS_APPLICATION(...) (&(vpps_application){.size = sizeof(vpps_application), __VA_ARGS__})

/* Makes a new vertex that applies a cell. Fails with SHAPE, ARGUMENT (unknown cell or vertex, wrong counts, an index out of range); the
 * graph keeps the error and makes no more nodes. */
VPPS_API vpps_vertex vpps_apply(vpps_graph *g, const vpps_application *a);
/* Makes a vertex whose outputs for parent vertices (vpps_gather) are existing nodes, e.g. a recurrence's initial state. */
VPPS_API vpps_vertex vpps_source(vpps_graph *g, uint32_t n, const vpps_node *nodes);
/* Returns the node of the value that call k (from 0) of vpps_push in vertex v's cell gives to nodes outside cells. */
VPPS_API vpps_node vpps_pushed(vpps_graph *g, vpps_vertex v, uint32_t k);
/* Returns the node of the value that call k (from 0) of vpps_scatter in v's cell gives to parents; if vpps_source made v, its nodes[k]. */
VPPS_API vpps_node vpps_scattered(vpps_graph *g, vpps_vertex v, uint32_t k);

/* ---------------------------------------------------------------- options */
typedef struct vpps_handle vpps_handle;
typedef struct vpps_communicator vpps_communicator;
/* X(id, name on the command line, state arrays per parameter, default learning rate) */
#define VPPS_OPTIMIZER_TABLE(X)                                                                                        \
    X(SGD, "sgd", 0, 0.1f)                                                                                             \
    X(MOMENTUM, "momentum", 1, 0.1f)                                                                                   \
    X(ADAGRAD, "adagrad", 1, 0.05f)                                                                                    \
    X(ADAM, "adam", 2, 0.002f)                                                                                         \
    X(ADAMW, "adamw", 2, 0.002f)

typedef enum vpps_optimizer_kind {
#define X(id, name, states, lr) VPPS_##id,
    VPPS_OPTIMIZER_TABLE(X)
#undef X
} vpps_optimizer_kind;
#define VPPS_DEFAULT_LR (-3e38f) /* value of vpps_optimizer.lr that stands for the optimizer's default learning rate */
VPPS_API float vpps_default_lr(vpps_optimizer_kind kind); /* default learning rate; NaN for an unknown optimizer */

/* The optimizer's step, for a gradient g of weight w. First g is scaled by min(1, clip / |all gradients|_2) if clip > 0 (Pascanu et al.
 * 2013). Then, except in adamw, weight_decay * w is added to g.
 *   sgd       w -= lr g
 *   momentum  s = momentum s + g;  w -= lr s
 *   adagrad   s += g^2;  w -= lr g / (sqrt(s) + epsilon)                     (Duchi et al. 2011)
 *   adam      m, v as in Kingma and Ba 2015, algorithm 1, bias-corrected; t counts the parameter's steps since its m and v were zero
 *   adamw     as adam, and w -= lr weight_decay w                             (Loshchilov and Hutter 2019)
 * A parameter, or an entry of a lookup table, that a batch does not use keeps its value and state. A lookup table has one t, which counts
 * the batches that step any of its entries. */
typedef struct vpps_optimizer {
    vpps_optimizer_kind kind;
    float lr, momentum, beta1, beta2, epsilon, weight_decay, clip;
    float reserved[8]; /* reserved for later versions: must be zeros */
} vpps_optimizer;
/* How the gradients of matrices are computed. */
typedef enum vpps_gradients {
    VPPS_GRADIENTS_DEFERRED, /* one product per matrix at the end of the batch; its operands are kept until then */
    /* Each level (vertices that are computed at once) adds its outer products to the gradients, as in the paper (VPPS, MICRO 2018). With
     * several groups of threads or CTAs (vpps_options.groups) VPPS_GRADIENTS_DEFERRED replaces this, and the log says so once. */
    VPPS_GRADIENTS_ACCUMULATE,
    /* GPU: one cuBLAS product per matrix at the end of the batch; vpps_handle_create fails without cuBLAS */
    VPPS_GRADIENTS_CUBLAS,
    /* GPU: VPPS_GRADIENTS_CUBLAS if the first batches measure it as faster. Else, and on a CPU: VPPS_GRADIENTS_DEFERRED */
    VPPS_GRADIENTS_AUTO,
    VPPS_GRADIENTS_CUBLAS_TF32 /* GPU: cuBLAS products whose fp32 operands are rounded to TF32 (11 significant bits) */
} vpps_gradients;
/* What happens if a batch's loss, or norm of all gradients, is NaN or infinite. (The norm's square, a float32, is infinite for norms of
 * about 1.8e19 and more.) "No update": parameters and optimizer state stay. */
typedef enum vpps_nonfinite {
    VPPS_NONFINITE_STOP,  /* no update; the next call fails with NONFINITE and names the batch */
    VPPS_NONFINITE_SKIP,  /* no update; training goes on, and vpps_stats counts the batch */
    VPPS_NONFINITE_IGNORE /* the update is done in spite of NaN or infinity */
} vpps_nonfinite;
/* Device cpu: whether the thread that calls vpps_fb (trains a batch) does a share of the work, or leaves it to the device's own threads. */
typedef enum vpps_caller {
    /* the calling thread does a share if there are as many shares (vpps_options.vps) as cores that the process may use, and all are idle */
    VPPS_CALLER_AUTO,
    VPPS_CALLER_WORKS, /* the calling thread does a share of the work, and vpps_fb returns when the batch is done */
    VPPS_CALLER_FREE   /* the device's threads do all the work, and vpps_fb returns at once */
} vpps_caller;
/* The precision of products with weight matrices: forward, backward and the weights' gradients. X(id, name)
 *   fp32    operands unchanged
 *   bf16x3  operands as sums of two bf16 numbers, in three products: ~16 bits; error <= 2^-15 of the sum of the terms' magnitudes
 *   bf16    operands rounded to the nearest bf16, ties to even: 8 bits; error <= 2^-7 of the sum of the terms' magnitudes
 *   auto    the faster one of bf16x3 and fp32; the log says which. A CPU decides by measured rates, the sizes of matrices and
 *           options.batch; a GPU takes fp32 for an options.batch of 1 to 4, else bf16x3
 * Always fp32: parameters, optimizer state, sums, elementwise operations, products of two nodes, losses, checkpoints, and kept values
 * (except that a GPU may keep a value that only products and parameters' gradients read as its one or two bf16 numbers). In bf16 and
 * bf16x3 an operand smaller than 2^-126 may count as zero; NaN gives NaN, infinity something not finite. All runs on a machine give the
 * same bits. A CPU needs a second copy of the weights: as large in bf16, twice that in bf16x3. A GPU older than sm_80: DEVICE. */
#define VPPS_PRECISION_TABLE(X)                                                                                        \
    X(FP32, "fp32")                                                                                                    \
    X(BF16X3, "bf16x3")                                                                                                \
    X(BF16, "bf16")                                                                                                    \
    X(AUTO, "auto")

typedef enum vpps_precision {
#define X(id, name) VPPS_PRECISION_##id,
    VPPS_PRECISION_TABLE(X)
#undef X
} vpps_precision;

#define VPPS_GROUPS_PROFILE UINT32_MAX

/* The settings of a handle; vpps_options_default sets all of them. */
typedef struct vpps_options {
    size_t size; /* sizeof(vpps_options): vpps_options_default sets it */
    /* "cpu"; "cuda" or "gpu": an NVIDIA GPU; "simt": the GPU's kernel on the CPU, to debug; "auto": cuda if there is one, else cpu. */
    const char *device;
    /* Number of virtual processors (threads or CTAs). 0: one per core (within affinity and control group's quota) or GPU multiprocessor. */
    uint32_t vps;
    /* Number of groups of virtual processors (threads or CTAs), a divisor of vps. Each group holds the model and computes some of the
     * batch's inputs (examples). 0: the number with the least estimated cost; on a GPU more than one only if each then has at least four
     * inputs, and a chip holds at least half of its weights. A GPU needs a kernel for each number. VPPS_GROUPS_PROFILE: the first training
     * batches try the numbers, and the fastest is kept; the results' last bits then depend on measured times. */
    uint32_t groups;
    /* Number of waves: parts of a batch that run one after the other in the same memory. 0: on a GPU one wave, on a CPU as few as keep each
     * wave within 32 MB; more if the pool is too small. A batch has at most as many waves as inputs (examples); inputs that share a node,
     * except the loss's sum, count as one. */
    uint32_t waves;
    /* Training: number of slices of a wave (part of a batch): sets of vertices that only the loss reads, such as classifiers. Slices run in
     * turn in the same memory, after forward and before backward of the wave's other vertices. 0: one; more if the pool is too small. */
    uint32_t slices;
    /* Batching policy: which vertices run together if cells form a recurrence. "depth": those of one cell and depth. Others run all ready
     * vertices of one cell at a time. "share": of the cell with the largest fraction ready / not run; "ratio": as "share", without vertices
     * that wait for another one of the cell; "fsm": of the cell that a table, learned on the first batch in about a second, names for the
     * set of cells with ready vertices. "auto": trained batches try all. NULL: "share" on a CPU, "depth" on a GPU. */
    const char *policy;
    /* Memory for the parameters and one batch. 0: as much as 32-bit word offsets reach. Memory is touched only when used. */
    uint64_t pool_bytes;
    vpps_optimizer optimizer;
    vpps_gradients gradients;
    vpps_nonfinite nonfinite;
    vpps_caller caller;
    /* A wait of more ms than this, in which no thread or CTA runs a task, fails with STALL. 0: 10,000. A GPU that drives a
     * display: at most 1,000. On a GPU a batch that takes ten times as long, and at least a minute, also fails with STALL. */
    uint32_t watchdog_ms;
    uint64_t seed; /* seed of dropout's random masks */
    vpps_precision precision;
    uint32_t batch; /* inputs (examples) expected per batch, for VPPS_PRECISION_AUTO and a GPU's layout; 0: unknown */
    /* Connects processes that train together; NULL: this process trains alone. The communicator must live longer than the handle, and
     * nothing else may use the communicator during a batch. */
    vpps_communicator *communicator;
    bool portable; /* CPU: whether products use plain C instead of wide vector instructions */
    bool verify;   /* whether each batch's script (program) is first proved to compute what the graph asks for (slow) */
    /* GPU: CTAs get rows of a weight matrix in blocks of this many, 1 to 1,024. 0: the first trained batches measure what is fastest. */
    uint32_t rpw;
    /* GPU: threads of a virtual processor (CTA), a multiple of 32 up to 1,024. 0: the first trained batches measure what is fastest. */
    uint32_t threads;
    uint64_t trace_events; /* record at most this many trace events of 32 bytes (vpps_trace_write); 0: no trace */
    /* Whether to measure nothing. Where `rpw` or `threads` (above) is 0, or gradients is AUTO, a GPU then uses a
     * default, not the fastest value; a CPU chooses its kernels for matrix products by a fixed table. */
    bool no_tuning;
    /* CPU: try all ways to divide a cell's work among cores on trained batches, and cache the fastest on disk, unless the cache has it. */
    bool tune;
    /* Receives messages: why a device was chosen, which kernels were made or rejected, what was measured. NULL: no messages. */
    void (*log)(void *context, const char *line);
    void *log_context;
    /* Most bytes for values that vpps_keep leaves on the device, each rounded up to 64. The first such value reserves this memory in the
     * pool. 0: 64 MB, or half of what pool_bytes leaves for batches if that is less. */
    uint64_t keep_bytes;
} vpps_options;
/* Sets members to cpu, all cores, fp32, SGD, VPPS_DEFAULT_LR, VPPS_GRADIENTS_DEFERRED, VPPS_NONFINITE_STOP. Fails with ARGUMENT (size). */
VPPS_API vpps_status vpps_options_init(vpps_options *options, size_t size);
#define vpps_options_default(options) vpps_options_init((options), sizeof(vpps_options))

/* ---------------------------------------------------------------- handle: a training engine on a device
 * After a batch fails with STALL or DEVICE its handle is useless: every call that needs the device fails with that error. */
/* Creates an engine specialised for the model; copies the parameters to its device. `options` NULL: the defaults. While the handle
 * exists, cells can be added to the model, but no parameters. Optimizer state of an earlier handle with the same optimizer is used,
 * else state is zero. Fails with ARGUMENT, DEVICE, POOL (too little memory), STATE (the model has a handle). */
VPPS_API vpps_status vpps_handle_create(vpps_handle **out, vpps_model *model, const vpps_options *options);
/* Waits for the batch in flight and frees the handle; the model keeps the values of the last vpps_read_parameters. NULL is allowed. */
VPPS_API void vpps_handle_destroy(vpps_handle *h);
/* One training step: forward, gradients of `loss`, update. The graph may be cleared or changed when the call returns. *stale_loss (may be
 * NULL) is the loss of the preceding batch; NaN at the first. An earlier batch's error is returned here with that batch's number, and the
 * given batch does not run: NONFINITE (the next call goes on), STALL, DEVICE. Fails without effect, with SHAPE (`loss` is no scalar),
 * ARGUMENT, SCRIPT (its program is wrong), POOL (too little memory), DEVICE (no kernel can be made); with a communicator STATE (processes
 * have different models or optimizer settings). A process without inputs then passes the loss VPPS_NO_NODE; the call clears its graph. */
VPPS_API vpps_status vpps_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, float *stale_loss);
/* Tells whether the latest batch has finished, without waiting: sets *done, and *loss (may be NULL) if it has. */
VPPS_API vpps_status vpps_poll_loss(vpps_handle *h, bool *done, float *loss);
/* Waits for the latest batch and gives its loss (may be NULL). Fails with STATE (no batch was ever run), or with that batch's error. */
VPPS_API vpps_status vpps_sync_latest_loss(vpps_handle *h, float *loss);
/* Inference: computes n nodes and copies their values to outs[i] (rows * cols floats, column after column), and computes nodes that vpps_keep
 * marked to stay on the device; n may then be 0. Waits for the batch in flight. No gradients, no update, dropout off. Fails as vpps_fb does. */
VPPS_API vpps_status vpps_forward(vpps_handle *h, vpps_graph *g, uint32_t n, const vpps_node *nodes,
                                  float *const *outs);
/* Set a number of the optimizer for the next steps. Fail with ARGUMENT if the number is negative or not finite, or a momentum above 1. */
VPPS_API vpps_status vpps_set_learning_rate(vpps_handle *h, float lr);
VPPS_API vpps_status vpps_set_momentum(vpps_handle *h, float momentum);
VPPS_API vpps_status vpps_set_weight_decay(vpps_handle *h, float weight_decay);
/* Wait for the batch in flight, then copy parameters and optimizer state from device to model (read) or from model to device (write;
 * state that was never read or loaded becomes zero). Fail, the model unchanged, with DEVICE and the error that made the handle useless. */
VPPS_API vpps_status vpps_read_parameters(vpps_handle *h);
VPPS_API vpps_status vpps_write_parameters(vpps_handle *h);

/* ---------------------------------------------------------------- checkpoints (safetensors)
 * One file holds parameters (tensors NAME), optimizer state (tensors optimizer.K/NAME) and string metadata, with each state's number of
 * updates, the number of batches, the dropout seed and a checksum of all tensors. Writing is atomic (temporary file, fsync, rename) and
 * keeps the mode of a replaced file. Symbolic links are followed, except another user's in a sticky folder that everybody may write to,
 * such as /tmp; a file that is not regular (a FIFO, /dev/stdout) is written directly. */
typedef struct vpps_metadata {
    const char *key, *value; /* one pair of metadata, in UTF-8; keys that begin with "vpps." are the library's own */
} vpps_metadata;
/* Writes a checkpoint of the device's parameters and optimizer state with n pairs of metadata. Fails with IO, ARGUMENT. */
VPPS_API vpps_status vpps_save(vpps_handle *h, const char *path, const vpps_metadata *metadata, uint32_t n);
/* Reads a checkpoint into model and device; on failure neither changes. Optimizer state that does not fit the handle's optimizer begins at
 * zero. If the file lacks the parameters' numbers of updates (old files), each parameter counts as updated by every batch. Fails with IO,
 * FORMAT (not safetensors, truncated, a tensor missing or of another shape, a wrong checksum). */
VPPS_API vpps_status vpps_load(vpps_handle *h, const char *path);
/* Gives one metadata value of a checkpoint as a string that the caller frees; NULL if the key is absent. Fails with IO, FORMAT. */
VPPS_API vpps_status vpps_checkpoint_metadata(const char *path, const char *key, char **out);

/* ================================================================ part two: the rest
 * ---------------------------------------------------------------- parameters */
typedef enum vpps_param_kind { VPPS_MATRIX, VPPS_VECTOR, VPPS_LOOKUP } vpps_param_kind;

typedef struct vpps_param_info {
    size_t size;      /* sizeof(vpps_param_info) */
    const char *name; /* the parameter's name; owned by the model */
    vpps_param_kind kind;
    uint32_t count; /* number of a lookup table's entries; else 1 */
    uint32_t rows, cols;
    bool frozen;
    /* Lookup table whose entries are divided among processes (vpps_shard_tables): this process has entries first, first + step, ... Else
     * first is 0, step 1. */
    uint32_t first, step;
} vpps_param_info;

VPPS_API uint32_t vpps_param_count(const vpps_model *model);
VPPS_API vpps_status vpps_param_describe(const vpps_model *model, vpps_param param, vpps_param_info *out);
VPPS_API vpps_status vpps_param_find(const vpps_model *model, const char *name, vpps_param *out);
/* Freezes a parameter, so that it is used but not updated, or thaws it, from the next batch on. Fails with ARGUMENT. */
VPPS_API vpps_status vpps_freeze(vpps_model *model, vpps_param param, bool frozen);
/* Numbers for a group of parameters that replace the optimizer's numbers. NAN keeps the optimizer's number. */
typedef struct vpps_param_group {
    size_t size; /* sizeof(vpps_param_group) */
    float lr, momentum, weight_decay;
} vpps_param_group;
/* Puts n parameters into a group for the next steps; `group` NULL takes them out of their groups. (To keep parameters constant, rather
 * freeze them.) With a communicator all processes make the same call. Fails with ARGUMENT (unknown parameter, number out of range). */
VPPS_API vpps_status vpps_set_param_group(vpps_handle *h, uint32_t n, const vpps_param *params,
                                          const vpps_param_group *group);

/* ---------------------------------------------------------------- more operations */
/* Returns the number of nodes of the graph so far. Nodes inside applied cells count; an op on a list counts once per list member. */
VPPS_API uint32_t vpps_graph_size(const vpps_graph *g);
VPPS_API vpps_status vpps_node_shape(const vpps_graph *g, vpps_node x, uint32_t *rows, uint32_t *cols);
/* Choices by a scalar condition; the scalar gets no gradient. */
VPPS_API vpps_node vpps_when(vpps_graph *g, vpps_node x, vpps_node scalar);   /* x where scalar > 0, else 0 */
VPPS_API vpps_node vpps_unless(vpps_graph *g, vpps_node x, vpps_node scalar); /* 0 where scalar > 0, else x */
/* Computes condition > 0 ? a : b, for a scalar condition. The value and its gradient are those of the chosen operand, even if the other
 * operand is infinite or NaN. The operand that is not chosen gets gradient 0. If the operation that makes it has an infinite derivative
 * (log at 0), 0 times infinity makes NaN gradients, except in a cell whose condition (vpps_condition) does not hold. */
VPPS_API vpps_node vpps_select(vpps_graph *g, vpps_node condition, vpps_node a, vpps_node b);

VPPS_API vpps_node vpps_transpose(vpps_graph *g, vpps_node x);
/* Gives x the shape rows x cols, with the same elements column after column; returns x itself if x has that shape. Fails with SHAPE. */
VPPS_API vpps_node vpps_reshape(vpps_graph *g, vpps_node x, uint32_t rows, uint32_t cols);
/* Puts n nodes with equal numbers of rows side by side, by a concat and a reshape. Fails with SHAPE, ARGUMENT. */
VPPS_API vpps_node vpps_hstack(vpps_graph *g, uint32_t n, const vpps_node *xs);
/* Makes an n x cols node whose row i is row rows[i] of x. A row selected twice gets both gradients. Fails with SHAPE, ARGUMENT. */
VPPS_API vpps_node vpps_select_rows(vpps_graph *g, vpps_node x, uint32_t n, const uint32_t *rows);
/* Makes a node whose row i is row numbers[i] (fraction cut off) of x, or NaN if x has no such row. `numbers`, a vector, gets gradient 0. */
VPPS_API vpps_node vpps_select_rows_at(vpps_graph *g, vpps_node x, vpps_node numbers);
/* Computes log(sum of e^x) of a vector, or of each column of a matrix. If all elements are -inf, the result is -inf, its gradient NaN. */
VPPS_API vpps_node vpps_log_sum_exp(vpps_graph *g, vpps_node x);
/* Normalisation of a vector x, or of each column of a matrix (Zhang and Sennrich 2019; Ba, Kiros and Hinton 2016):
 *     centre      x - mean(x)
 *     rms_norm    gain x / sqrt(mean(x^2) + epsilon)
 *     layer_norm  gain (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) + bias
 * gain and bias are vectors with x's rows, e.g. nodes of vpps_parameter, or VPPS_NO_NODE for ones and zeros. epsilon is greater than 0;
 * PyTorch's default is 1e-5 in LayerNorm and 1.2e-7 in RMSNorm. Fail with SHAPE, ARGUMENT. */
VPPS_API vpps_node vpps_centre(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_rms_norm(vpps_graph *g, vpps_node x, vpps_node gain, float epsilon);
VPPS_API vpps_node vpps_layer_norm(vpps_graph *g, vpps_node x, vpps_node gain, vpps_node bias, float epsilon);
/* Repeats a scalar, a vector (rows x 1) or a row (1 x cols) as rows x cols, by a product with ones. Fails with SHAPE. */
VPPS_API vpps_node vpps_broadcast(vpps_graph *g, vpps_node x, uint32_t rows, uint32_t cols);
/* Add up a matrix's rows (vpps_sum_rows: 1 x cols), or its columns (vpps_sum_columns: rows x 1), by a product with ones. */
VPPS_API vpps_node vpps_sum_rows(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_sum_columns(vpps_graph *g, vpps_node x);
/* Computes the sum over k < n of weights[k] * xs[k], for a vector `weights` of n elements (attention). */
VPPS_API vpps_node vpps_weighted_sum(vpps_graph *g, vpps_node weights, uint32_t n, const vpps_node *xs);
/* Cross-entropy with class weights and label smoothing, as PyTorch's CrossEntropyLoss(weight, label_smoothing, reduction="sum"):
 *     -sum over classes k of q[k] log softmax(x)[k],  q[k] = weights[k] ((k == label ? 1 - smoothing : 0) + smoothing / rows)
 * weights: a vector with x's rows, or VPPS_NO_NODE for ones; smoothing: 0 to 1; vpps_smooth_label: q. PyTorch's reduction="mean" divides
 * by the sum of weights[label]: scale a vpps_sum. A parameter as weights is trained unless frozen. Fail with SHAPE, ARGUMENT. */
VPPS_API vpps_node vpps_cross_entropy_with(vpps_graph *g, vpps_node x, uint32_t label, vpps_node weights,
                                           float smoothing);
VPPS_API vpps_node vpps_smooth_label(vpps_graph *g, vpps_node weights, uint32_t label, float smoothing);
/* Choices that the device makes while it runs, for vpps_forward only: they have no gradient, so vpps_fb fails with ARGUMENT. A device that
 * cannot choose (vpps_stats.decides is false), or tables shared out over processes, make vpps_forward fail with DEVICE.
 *   argmax     of a vector: 2 x 1, index and log softmax of the (first) greatest element; the latter is not finite if the vector is not
 *   lookup_at  entry number `index` of a table; `index`, a scalar, is cut to an integer (exact to 2^24) and clamped to the table */
VPPS_API vpps_node vpps_argmax(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_lookup_at(vpps_graph *g, vpps_param table, vpps_node index);

/* ---------------------------------------------------------------- lists in cells */
/* Reads output number `output` of every child as a list; vertices may have different numbers of children. An op on a list applies to each
 * member (of several lists, to the i-th members together; operands that are no lists are shared). sum, average, max_of and min_of over a
 * list give one value, zero for an empty list; but if all operands of max_of or min_of are lists, vpps_apply refuses empty ones. A list
 * cannot be an output of the cell. A parameter that multiplies the members of an empty list counts as used. */
VPPS_API vpps_node vpps_gather_list(vpps_graph *recorder, uint32_t output, uint32_t rows, uint32_t cols);
/* Reads output number `output` of the children from number `first` on, as a list; vpps_gather reads the children before `first`. All calls
 * in one cell need the same `first` (vpps_gather_list: 0). */
VPPS_API vpps_node vpps_gather_list_from(vpps_graph *recorder, uint32_t first, uint32_t output, uint32_t rows,
                                         uint32_t cols);
/* Declares a list of nodes that each application of the cell supplies. If the cell also reads children as a list (vpps_gather_list), each
 * application supplies one node for each of these children; else any number of nodes. */
VPPS_API vpps_node vpps_pull_list(vpps_graph *recorder, uint32_t rows, uint32_t cols);
/* A cell may have up to four lists, each of any number of members (children or nodes), e.g. left and right children. vpps_gather_list_of
 * reads an output of the children in list number `list`; vpps_pull_list_of declares a node for each member. Lists are numbered from 0 in the
 * order of first use; calls without a number use list 0. All inputs from one list have equally many members. An op takes members of one list
 * only, beside single values; sum, average, max_of, min_of may go over several. A vertex's children: vpps_gather's, then list 0's, list 1's ... */
VPPS_API vpps_node vpps_gather_list_of(vpps_graph *recorder, uint32_t list, uint32_t output, uint32_t rows,
                                       uint32_t cols);
VPPS_API vpps_node vpps_pull_list_of(vpps_graph *recorder, uint32_t list, uint32_t rows, uint32_t cols);
/* Computes a softmax over the members of a list of scalars; the result is a list of scalars. */
VPPS_API vpps_node vpps_softmax_list(vpps_graph *recorder, vpps_node scores);
/* Computes the log softmax over the members of a list of scalars, score - log sum of e^score, as a list of scalars. Multiplied by a list
 * of -1 for the right member and 0 for the others, and added up, it is the loss of a choice among any number of candidates. */
VPPS_API vpps_node vpps_log_softmax_list(vpps_graph *recorder, vpps_node scores);
/* Computes the sum over members of weight * x, for a list of scalars `weights` and any list xs (attention). */
VPPS_API vpps_node vpps_weighted_sum_list(vpps_graph *recorder, vpps_node weights, vpps_node xs);
/* Stacks a list's members on top of each other, then zeros up to `most` members' rows (most >= 1); vpps_apply refuses more members. */
VPPS_API vpps_node vpps_concat_list(vpps_graph *recorder, vpps_node xs, uint32_t most);

/* ---------------------------------------------------------------- control flow as data
 * If a cell has a condition, a vertex of the cell runs where the condition holds; elsewhere the vertex's outputs are other values that the
 * vertex was given. Loops and cases are made of such vertices: the device decides, not the graph's builder. In training all vertices run,
 * and gradients follow the branch that was taken: where the condition does not hold, only the values that replace the outputs get a
 * gradient. What the vertex computes there adds exactly 0 to every gradient, even if infinite or NaN. In inference the device cpu skips
 * vertices whose condition does not hold; other devices run them, with the same result. */
/* Give a cell a condition: its outputs are what it computes where a scalar input of the cell (vpps_gather, vpps_pull) is greater than 0
 * (vpps_condition) or rounds to `value` < 2^22 (vpps_condition_is), and other values elsewhere. Called before any output; vpps_scatter_else
 * then makes all outputs. Fail with ARGUMENT, SHAPE, STATE (called too late); the recorder keeps the error. */
VPPS_API vpps_status vpps_condition(vpps_graph *recorder, vpps_node scalar);
VPPS_API vpps_status vpps_condition_is(vpps_graph *recorder, vpps_node scalar, uint32_t value);
/* Makes an output for parent vertices: x where the cell's condition holds, else `otherwise`, which is an input of the cell (vpps_gather,
 * vpps_pull) or VPPS_NO_NODE for zeros. Fails with STATE, SHAPE. */
VPPS_API vpps_status vpps_scatter_else(vpps_graph *recorder, vpps_node x, vpps_node otherwise);
/* Adds a loop of `limit` turns (at least 1). A turn is a vertex of the cell of `a` with the arguments `a`, except child 0: child 0 of the
 * first turn is that of `a`, child 0 of any other turn is the preceding turn. The cell's condition must be an output of child 0
 * (vpps_gather), so that each turn's output decides whether the next turn runs. If a turn that does not run hands on the outputs of child 0
 * (vpps_scatter_else), the last vertex has the outputs of the last turn that ran. `turns` (may be NULL) receives the vertices. Fails as
 * vpps_apply does, and with ARGUMENT (a cell whose condition is no output of child 0; a limit of 0). */
VPPS_API vpps_vertex vpps_while(vpps_graph *g, const vpps_application *a, uint32_t limit, vpps_vertex *turns);
/* Adds a case (switch) of n branches. A branch applies a cell that has a condition (vpps_condition), and zeros as outputs where the
 * condition does not hold; all branches have equally many outputs. The outputs of the new vertex are the sums of the branches' outputs.
 * Fails as vpps_apply does, and with ARGUMENT (no branches; a cell without condition, or with other outputs where it does not hold). */
VPPS_API vpps_vertex vpps_case(vpps_graph *g, uint32_t n, const vpps_application *branches);

/* ---------------------------------------------------------------- many vertices at once
 * For other languages, where each call is expensive: few calls build batches of trees, chains, lattices and edge lists from arrays. The
 * graph is the same, bit by bit, as one whose vertices and nodes are made by single calls in the order of the arrays. */
/* A list input of a cell, for n vertices. At each vertex it reads any number of members (child vertices or nodes). */
typedef struct vpps_members_of {
    const uint32_t *first; /* n + 1 numbers, 0 first, in order: vertex i reads members first[i] to first[i + 1] - 1 */
    const vpps_vertex *children; /* children of vertex 0, of vertex 1, ...; NULL: the list has nodes (`pull_lists`) */
} vpps_members_of;
/* The arguments of n vertices of one cell. An array is NULL if the cell asks for none of its kind. */
typedef struct vpps_applications {
    size_t size; /* sizeof(vpps_applications) */
    vpps_cell cell;
    uint32_t n;                              /* number of vertices; may be 0 */
    uint32_t n_children, n_pulls, n_indices; /* lengths of a vertex's rows in the next three arrays */
    const vpps_vertex *children;             /* n x n_children child vertices outside lists, a row for each vertex */
    const vpps_node *pulls;                  /* n x n_pulls nodes that vpps_pull calls read, a row for each vertex */
    const uint32_t *indices;                 /* n x n_indices numbers for vpps_pull_index, a row for each vertex */
    uint32_t n_lists;
    const vpps_members_of *lists; /* for each list input of the cell: its members (children or nodes) at all vertices */
    uint32_t n_pull_lists;
    const vpps_node *const *pull_lists; /* for each list made by vpps_pull_list: nodes of vertex 0, of vertex 1, ... */
} vpps_applications;
#define VPPS_APPLICATIONS(...) (&(vpps_applications){.size = sizeof(vpps_applications), __VA_ARGS__})
/* Makes n vertices that apply a cell, numbered from vpps_graph_vertices(g) on; returns the first number. A child may be an earlier vertex
 * of the call. Fails as vpps_apply does, naming the vertex, and with ARGUMENT if first[i] > first[i + 1] in a list (vpps_members_of). */
VPPS_API vpps_vertex vpps_apply_many(vpps_graph *g, const vpps_applications *a);
/* Returns the number of vertices so far, which is the next vertex's number. */
VPPS_API uint32_t vpps_graph_vertices(const vpps_graph *g);
/* Makes n input nodes of rows x cols from n * rows * cols floats, which are copied; returns the first of n consecutive nodes. */
VPPS_API vpps_node vpps_input_many(vpps_graph *g, uint32_t n, uint32_t rows, uint32_t cols, const float *data);
/* Set out[i] to the node that is output number k of vertices[i], made by vpps_push or by vpps_scatter. Fail with ARGUMENT (no such vertex
 * or output); the graph keeps the error. */
VPPS_API vpps_status vpps_pushed_many(vpps_graph *g, uint32_t n, const vpps_vertex *vertices, uint32_t k,
                                      vpps_node *out);
VPPS_API vpps_status vpps_scattered_many(vpps_graph *g, uint32_t n, const vpps_vertex *vertices, uint32_t k,
                                         vpps_node *out);

/* ---------------------------------------------------------------- a training step in parts
 *
 *     vpps_backward(h, g, loss, NULL);           once or more often: gradients add up on the device
 *     vpps_read_gradients(h), ...                look at them, change them, write them back
 *     vpps_update(h);                            the optimizer's step, which also drops the gradients
 *
 * vpps_backward and vpps_update give the bits of vpps_fb, which is faster: one launch. Four graphs of eight inputs train as one of 32. */
/* Names nodes whose values, and nodes whose gradients (of the call's loss), a training call returns. Values are computed with dropout
 * unless no_dropout, from parameters before the update; gradients of nodes do not add up over calls. */
typedef struct vpps_request {
    size_t size; /* sizeof(vpps_request) */
    uint32_t n_values;
    /* nodes whose values are wanted, in any order; the loss may be among them, and a node may stand twice */
    const vpps_node *values;
    float *const *value_outs; /* value_outs[i], the caller's, receives rows * cols floats, column after column */
    uint32_t n_gradients;
    /* nodes whose gradients are wanted; two lookups of one entry have separate gradients */
    const vpps_node *gradients;
    /* gradient_outs[i] receives the gradient of the loss with respect to gradients[i]; zeros if the loss does not depend on that node */
    float *const *gradient_outs;
    bool no_parameters; /* whether to leave parameters' gradients as they are, and not to compute new ones */
    /* Dropout masks follow from this number and options.seed alone: equal numbers, equal masks. 0: new masks in each call. */
    uint64_t draw;
    bool no_dropout; /* whether dropout is off, as in vpps_forward */
} vpps_request;
#define VPPS_REQUEST(...) (&(vpps_request){.size = sizeof(vpps_request), __VA_ARGS__})

/* Forward and backward: adds the gradients of `loss` to the sums since the latest update. Returns before the batch is finished;
 * vpps_poll_loss and vpps_sync_latest_loss give the loss. If `request` (may be NULL) names nodes, the call waits and fills in the caller's
 * arrays. Dropout masks differ in each call; a call with request->no_parameters (no parameters' gradients) has the masks of the next call
 * without. The first request of its kind compiles cells. Examples that a requested node other than the loss adds up run in one group and
 * wave. A requested gradient is computed and kept for all vertices of the node's cell, or nodes of its operation and shapes. Fails as
 * vpps_fb, though a loss that is not finite fails at the update, and with ARGUMENT before anything runs (an unknown node, a NULL array). */
VPPS_API vpps_status vpps_backward(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_request *request);
/* Makes an optimizer step by the accumulated gradients, clipped by their common norm, and drops them. Counts as one batch; its loss is
 * the sum over its vpps_backward calls. Parameters without gradient, and frozen ones, stay. A communicator first adds up all processes'
 * gradients. Fails with STATE (no gradients), POOL (no memory), DEVICE, an earlier batch's error; a later call reports NONFINITE. */
VPPS_API vpps_status vpps_update(vpps_handle *h);
VPPS_API vpps_status vpps_zero_gradients(vpps_handle *h); /* drops the gradients added up since the latest update */

/* The model's copy of a parameter's gradient, as of the latest vpps_read_gradients. */
typedef struct vpps_gradient {
    size_t size; /* sizeof(vpps_gradient) */
    /* The gradient's rows * cols floats in the order of vpps_param_values, zeros without a gradient; for a lookup table n * rows * cols
     * floats, entry after entry. Owned by the model, valid until the next vpps_read_gradients; may be written. */
    float *values;
    const uint32_t *entries; /* lookup table: ascending numbers of the entries with a gradient; else NULL */
    uint32_t n;              /* lookup table: number of entries with a gradient; matrix, vector: 1 with one, else 0 */
} vpps_gradient;
/* Wait for the batch in flight, then copy this process's gradients from device to model (read) or back for the next update (write; of a
 * lookup table only the entries of the latest vpps_read_gradients). Fail with DEVICE, STATE (write: the device has no gradients). */
VPPS_API vpps_status vpps_read_gradients(vpps_handle *h);
VPPS_API vpps_status vpps_write_gradients(vpps_handle *h);
/* Gives the model's copy of a parameter's gradient. Fails with ARGUMENT (no such parameter), STATE (no vpps_read_gradients so far). */
VPPS_API vpps_status vpps_param_gradient(vpps_model *model, vpps_param param, vpps_gradient *out);
/* Gives the Euclidean norm of the model's copy of a parameter's gradient; VPPS_NO_PARAM: of all gradients. Fails with ARGUMENT. */
VPPS_API vpps_status vpps_gradient_norm(const vpps_model *model, vpps_param param, double *out);

/* ---------------------------------------------------------------- a training step in two halves
 * Forward gives values of nodes; the caller computes a loss from them; backward goes on from the loss's gradients with respect to these
 * values. So a graph can be a layer of another framework's network.
 *
 *     vpps_step_forward(h, g, VPPS_REQUEST(.n_values = 1, .values = &y, .value_outs = &value,
 *                                          .n_gradients = 1, .gradients = &x, .gradient_outs = &dx));
 *     ...the caller computes with `value`, and finds dy...
 *     vpps_step_backward(h, 1, &dy);             adds to the parameters' gradients, and fills in dx
 *     vpps_update(h);
 *
 * Forward runs once; backward uses its results and dropout masks. The parameters' gradients are those of vpps_backward for the loss
 * sum over i of <values[i], gradients[i]>, and add up until vpps_update. Between the halves the step (numbered from 1) is open: every other
 * call with the handle fails with STATE and names the step, except vpps_handle_destroy, vpps_handle_stats, vpps_handle_trials, vpps_kept,
 * vpps_kept_shape, vpps_set_pointer_mode and tracing. Graphs may be built meanwhile; handles for inference are not affected. */
/* Runs the forward half of a training step, with dropout as in vpps_backward. When the call returns, value_outs are filled in, the step is open, and
 * the graph may be cleared. `values` are the nodes whose gradients vpps_step_backward takes; a node named twice gets the sum of both gradients.
 * `gradients` are the nodes whose gradients vpps_step_backward writes to gradient_outs, which stay the caller's. no_parameters skips parameters'
 * gradients. vpps_keep works as for vpps_forward. The step runs undivided: one wave of one slice (vpps_options). Fails as vpps_backward, with POOL if
 * the device's memory is too small for that (the message tells how many bytes are enough), and with ARGUMENT (request NULL or without values). With a
 * communicator a process without inputs in the step names no values. If tables are shared out, all processes make the call together. */
VPPS_API vpps_status vpps_step_forward(vpps_handle *h, vpps_graph *g, const vpps_request *request);
/* Runs the open step's backward half, and closes the step. gradients[i] (NULL: zeros) is the loss's gradient for node values[i] of
 * vpps_step_forward's request, column after column. If the request has `gradients`, waits until gradient_outs are set; else may return while
 * the batch runs. The step's loss counts as 0, or NaN if a given gradient is not finite: options.nonfinite then applies at vpps_update.
 * Fails with STATE (no step is open), ARGUMENT (another n; NULL), MEMORY, and leaves the step open; else with STALL, DEVICE. */
VPPS_API vpps_status vpps_step_backward(vpps_handle *h, uint32_t n, const float *const *gradients);
/* Drops the step that vpps_step_forward opened, as if its forward half had not run. Fails with STATE (no step is open). */
VPPS_API vpps_status vpps_step_drop(vpps_handle *h);

/* ---------------------------------------------------------------- handles for inference beside training */
/* Creates a handle for inference beside another that trains, with its own thread, device and memory. Calls for other than vpps_forward,
 * kept values (vpps_keep), vpps_handle_stats, tracing and vpps_handle_destroy fail with STATE. A model has only one handle that trains.
 *
 *     vpps_handle_create_inference(&reader, h, &options);   by the thread that has h; then another thread has `reader`
 *     vpps_publish_parameters(h);                           now and then, by the thread that trains
 *     vpps_forward(reader, ...);                            with the newest published parameters
 *
 * The new handle begins with the parameters after the trainer's latest batch. Its parameters change between two calls of vpps_forward,
 * never within one; the host keeps two copies of them. Each thread builds its own graphs; no thread may record cells or freeze parameters
 * while others use the model. The trainer may be destroyed first. Set options.vps, since threads share the cores; the optimizer is ignored.
 * Fails as vpps_handle_create, with ARGUMENT (a communicator), STATE (`trainer` is for inference; tables are shared out). */
VPPS_API vpps_status vpps_handle_create_inference(vpps_handle **out, vpps_handle *trainer, const vpps_options *options);
/* Waits for the batch in flight and publishes the parameters, which each inference handle takes with its next vpps_forward. Fails with
 * DEVICE and the error that made the handle useless; inference handles then keep the parameters published before. */
VPPS_API vpps_status vpps_publish_parameters(vpps_handle *h);

/* ---------------------------------------------------------------- kept values
 * A node's value can outlive its graph on the device and enter later graphs without a copy through the host: the state of truncated
 * backpropagation through time, or the encoder's states that a decoder reads at every word.
 *
 *     vpps_keep(h, g, state, &kept);             the node's value is to stay
 *     vpps_fb(h, g, loss, NULL);                 or vpps_backward, or vpps_forward: computes the value
 *     vpps_graph_clear(g);
 *     x = vpps_kept(g, h, kept);                 reads the value in another graph, any number of times
 *     vpps_release(h, kept);                     when no graph that reads it will run any more
 *
 * A kept value is a constant: no gradient flows into it, and updates do not change it. It lives until its handle's end at most. */
typedef uint64_t vpps_value; /* number of a value that a handle keeps on its device; no number is used twice */
#define VPPS_NO_VALUE ((vpps_value)0)

/* Makes the next vpps_fb, vpps_backward, vpps_step_forward or vpps_forward of the graph with this handle keep x's value on the device; *out
 * is the value's number. If the graph is cleared first, nothing is kept; a run that fails with POOL or MEMORY keeps nothing and may be
 * repeated. Fails with POOL (options.keep_bytes are in use), ARGUMENT (no such node), STATE (g records a cell), the graph's error. */
VPPS_API vpps_status vpps_keep(vpps_handle *h, vpps_graph *g, vpps_node x, vpps_value *out);
/* Copies rows * cols floats, column after column, to the device as a kept value (a value that stays there). Waits for the batch in flight.
 * Fails as vpps_keep, and with ARGUMENT (no elements, or 2^22 and more). */
VPPS_API vpps_status vpps_keep_data(vpps_handle *h, uint32_t rows, uint32_t cols, const float *data, vpps_value *out);
/* Makes a node that reads a kept value (vpps_keep); a batch in flight may still compute the value. From then on the graph can run with
 * handle h only. Fails with STATE if h has no such value, or if g records a cell; the graph keeps the error. Running the graph fails with
 * STATE if the value has been released, or was never computed. */
VPPS_API vpps_node vpps_kept(vpps_graph *g, vpps_handle *h, vpps_value value);
/* Waits for the batch in flight and copies a kept value (vpps_keep), column after column, to out. Fails with STATE (h has no such value, or
 * never computed it), DEVICE. */
VPPS_API vpps_status vpps_read_kept(vpps_handle *h, vpps_value value, float *out);
/* Makes a vector node for each column of a kept value (a value that stays on the device, vpps_keep); returns the first of the consecutive
 * nodes. From then on the graph can run with handle h only. Fails with STATE (h has no such value; g is a recorder of vpps_cell_begin). */
VPPS_API vpps_node vpps_kept_columns(vpps_graph *g, vpps_handle *h, vpps_value value);
/* Gives the shape of a kept value (vpps_keep); `rows` or `cols` may be NULL. Fails with STATE if h has no such value, or released it. */
VPPS_API vpps_status vpps_kept_shape(vpps_handle *h, vpps_value value, uint32_t *rows, uint32_t *cols);
/* Releases a kept value (vpps_keep), or VPPS_NO_VALUE, without waiting for its readers. Fails with STATE if h has no such value. */
VPPS_API vpps_status vpps_release(vpps_handle *h, vpps_value value);

/* ---------------------------------------------------------------- arrays in the device's memory
 * Numbers can enter and leave a handle on a GPU without a copy through the host, as tensors of PyTorch or CuPy do.
 *
 *     vpps_set_pointer_mode(h, VPPS_POINTERS_DEVICE, stream);
 *     vpps_keep_data(h, rows, n, tensor, &x);            copies n inputs of `rows` numbers on the device
 *     first = vpps_kept_columns(g, h, x);                their nodes; a vpps_request can ask for these nodes' gradients
 *     vpps_step_forward(h, g, &request);                 value_outs and gradient_outs are addresses of the device
 *     ...the caller computes with them in `stream`...
 *     vpps_step_backward(h, n_values, gradients); */
typedef enum vpps_pointer_mode { VPPS_POINTERS_HOST, VPPS_POINTERS_DEVICE } vpps_pointer_mode;
/* Sets where the arrays of floats of later calls lie: `data` of vpps_keep_data, `out` of vpps_read_kept, `outs` of vpps_forward, value_outs
 * and gradient_outs of a vpps_request, `gradients` of vpps_step_backward. DEVICE: in the memory of the handle's GPU (simt: the host's);
 * lists of their addresses, and all other arrays, stay the host's. `stream` is the caller's CUstream (NULL: the default stream): a call's
 * copies follow the work that the stream has then, and precede its later work, so that the stream may use the arrays when the call returns.
 * An open step's gradient_outs keep the mode that they had in vpps_step_forward. Allowed while a step is open.
 *   With DEVICE, those calls fail with ARGUMENT if an array is not the GPU's memory, or its allocation ends too early; a request cannot name the
 * loss; and vpps_step_backward does not look whether gradients are finite: options.nonfinite sees the norm of the parameters' gradients.
 * Fails with ARGUMENT (DEVICE on a handle of the device cpu). */
VPPS_API vpps_status vpps_set_pointer_mode(vpps_handle *h, vpps_pointer_mode mode, void *stream);
typedef struct vpps_array vpps_array;
/* Allocates an array of n floats in the memory of the handle's GPU, and gives its address there. It may outlive the handle. Fails with
 * ARGUMENT (the device cpu), MEMORY, DEVICE. */
VPPS_API vpps_status vpps_array_create(vpps_array **out, vpps_handle *h, uint64_t n, float **address);
/* Frees the array after the work on it that is queued on streams. Any thread may call this. NULL is allowed. */
VPPS_API void vpps_array_destroy(vpps_array *array);

/* ---------------------------------------------------------------- processes
 * Several processes, on one or many machines, train one model. Each process has the same model, a handle with a communicator in its options,
 * and gives vpps_fb a graph of its share of the batch. Loss and gradient of the batch are sums over the processes (for a mean, each process
 * divides by the number of all examples). After every batch the parameters of all processes are the same, bit by bit. Each process draws its
 * own dropout masks. All processes make the same calls of vpps_fb. A process that cannot go on must end; the others then fail with STALL
 * within the watchdog's time, or the launcher ends them. On GPUs, a machine's processes take its GPUs in turn; vpps_fb returns when the
 * gradients of all processes are added up, before the update ends. Gradients of matrices and vectors travel by NCCL (libnccl.so.2, or the
 * library named by VPPS_NCCL), else through the host. */
/* Opens the connection of the processes, all of which make the call. kind: "mpi". The MPI library (Open MPI, MPICH ...) is $VPPS_MPI, else
 * the one that the program is linked with, else mpirun's. comm: address of an MPI_Comm to duplicate; NULL: MPI_COMM_WORLD. Initialises MPI
 * if the program has not (a program that does so must ask for MPI_THREAD_SERIALIZED); closing then finalises MPI. watchdog_ms: a process
 * silent for so long while others wait has failed; 0: 10,000. Fails with ARGUMENT, DEVICE, STALL. */
VPPS_API vpps_status vpps_communicator_open(vpps_communicator **out, const char *kind, const void *comm,
                                            uint32_t watchdog_ms);
/* Closes the connection: each process makes the call, after it has destroyed the handles that use the connection. NULL is allowed. */
VPPS_API void vpps_communicator_close(vpps_communicator *c);
/* Return this process's number, from 0 (rank), and the number of processes (size). For NULL: rank 0, size 1. */
VPPS_API uint32_t vpps_communicator_rank(const vpps_communicator *c);
VPPS_API uint32_t vpps_communicator_size(const vpps_communicator *c);
/* Shares out the lookup tables that are declared later over the processes: each process keeps the entries whose number, modulo the number
 * of processes, is its rank, and their optimizer state; no other process keeps them. Entries that a batch uses, and their gradients,
 * travel. Initial values are as with one process. The model's handle must have this communicator and the device cpu. All processes together
 * call vpps_fb; vpps_save (the first process writes whole tables to its path; the others' path, not NULL, and metadata are ignored);
 * vpps_load (each reads its own entries; the number of processes may have changed); and vpps_forward_end after any number of calls of
 * vpps_forward. NULL, or one process: tables stay whole. Fails with STATE (there is a table already). */
VPPS_API vpps_status vpps_shard_tables(vpps_model *model, const vpps_communicator *c);
/* If lookup tables are divided among processes (vpps_shard_tables), each process calls this after its last vpps_forward, before vpps_fb,
 * vpps_save or vpps_load: it sends tables' entries to processes still in vpps_forward. Else it does nothing. Fails as vpps_forward does. */
VPPS_API vpps_status vpps_forward_end(vpps_handle *h);

/* ---------------------------------------------------------------- cost
 * The least operations and memory traffic of one training step on a graph, for rooflines. All nodes are taken to be needed; a node has a
 * gradient if it depends on a parameter that is not frozen.
 *   - product_flops: 2 r k c for a product r x k times k x c, of parameters or nodes, and the same for each factor with a gradient.
 *   - other_flops: 1 for each addition, multiplication, comparison and function call on an element, forward and backward, by the table
 *     src/graph/ops.def. Copies, sign changes, random bits and sums of a value's gradients are free. The update is SGD: 2 per element.
 *   - parameter_bytes: 8 per element of the matrices, vectors and table entries that are used; 4 if frozen. No optimizer state.
 *   - value_bytes: 8 per element of a node's value, and 8 of its gradient; 0 for a lookup, or a vpps_parameter of a vector. */
typedef struct vpps_cost {
    size_t size;    /* sizeof(vpps_cost) */
    uint64_t nodes; /* vpps_graph_size */
    uint64_t product_flops, other_flops;
    uint64_t parameter_bytes, value_bytes;
} vpps_cost;
/* Gives a graph's cost. An op of a cell counts once per vertex of the cell or, on an input of any number of nodes, once
 * per node; a table's entry counts once. Fails with STATE if g is a recorder (vpps_cell_begin). */
VPPS_API vpps_status vpps_graph_cost(vpps_graph *g, vpps_cost *out);

/* ---------------------------------------------------------------- what a handle did */
/* Counts and times of a handle. The members from `nodes` to `live_bytes`, host_ns, device_ns, groups, waves, slices, policy, wall_ns,
 * gap_ns and `gradients` describe the latest training batch. */
typedef struct vpps_stats {
    size_t size;      /* sizeof(vpps_stats) */
    uint64_t batches; /* training batches finished since the model began; checkpoints carry the number on */
    uint64_t skipped; /* batches that were not applied, since loss or gradient was not finite */
    uint64_t nodes;   /* nodes of the graph, those inside cells included */
    /* levels: number of the graph's levels; phases: number of parts of the batch's program (script) that barriers separate */
    uint64_t levels, phases;
    uint64_t steps;        /* number of steps in forward; a step runs vertices of one cell together */
    uint64_t instructions; /* tasks of the batch's program (script); each group of threads or CTAs has its own */
    uint64_t script_bytes;
    uint64_t pool_bytes; /* bytes of the parameters and of the batch's tensors */
    uint64_t live_bytes; /* most bytes of parameters and tensors that are live at one time: the least pool_bytes */
    uint64_t host_ns, device_ns; /* host_ns: time to make the batch's program (script); device_ns: to run it */
    uint64_t total_nodes, total_host_ns, total_device_ns; /* sums over all training batches of this handle */
    uint64_t peak_pool_bytes;
    uint32_t vps;
    /* groups of threads or CTAs; waves: parts of the batch, run in turn; slices: parts of a wave's classifier vertices, run in turn */
    uint32_t groups, waves, slices;
    bool caller_works;
    bool decides;               /* whether the device can run vpps_argmax and vpps_lookup_at */
    const char *precision;      /* precision of products: "fp32", "bf16x3", "bf16" */
    const char *precision_unit; /* CPU: "generic", "avx2", "avx512", "neon", "avx512bf16", "amx"; GPU: "fp32", "mma" */
    const char *device;         /* "cpu", "cuda", "simt" */
    const char *policy;
    uint32_t rank, processes; /* rank: this process's number, from 0; processes: how many there are */
    /* Sums over all batches: time, waits included, to exchange gradients and tables' entries with other processes; bytes sent to these. */
    uint64_t total_exchange_ns, total_sent_bytes;
    /* The slowest process's time until it has its gradients, relative to the mean of all processes: 0.1 means 10 % longer. */
    double imbalance;
    uint64_t kept_values, kept_bytes; /* number and bytes of the values of vpps_keep that are not released */
    uint64_t keep_bytes;              /* bytes reserved on the device for values of vpps_keep; 0: none was kept yet */
    /* Device's clock: time from the preceding training batch's end to the latest one's (wall), and idle part of it (gap). 0 at first. */
    uint64_t wall_ns, gap_ns, total_wall_ns, total_gap_ns;
    const char *gradients; /* source of gradients of matrices: "kernel" (own), "cublas", "cublas-tf32"; NULL at first */
    uint32_t gpu;          /* device cuda: the GPU's number in the driver and in DLPack; else 0 */
} vpps_stats;
/* Gives the handle's counts and times without waiting; a batch in flight contributes only the counts of its program (script). */
VPPS_API vpps_status vpps_handle_stats(vpps_handle *h, vpps_stats *out);
#define VPPS_TRIAL_STATE_TABLE(X)                                                                                      \
    X(WAITING, "waiting")   /* not tried yet */                                                                        \
    X(REJECTED, "rejected") /* the kernel spills registers, or could not be made */                                    \
    X(MEASURED, "measured")                                                                                            \
    X(CURRENT, "current")       /* this kernel, policy or way to share work is in use: being measured, or chosen */    \
    X(REMEMBERED, "remembered") /* this kernel, policy or way to share work is in use: an earlier run chose it */

typedef enum vpps_trial_state {
#define X(id, name) VPPS_TRIAL_##id,
    VPPS_TRIAL_STATE_TABLE(X)
#undef X
} vpps_trial_state;
/* An alternative that is timed to keep the fastest: number of groups, batching policy, GPU kernel, or way to share work among cores. */
typedef struct vpps_trial {
    size_t size;     /* sizeof(vpps_trial) */
    uint32_t groups; /* number of groups of threads or CTAs, if several numbers are tried to keep the fastest; else 0 */
    const char *policy; /* the batching policy (as in vpps_options), if policies were timed; else NULL */
    /* CPU: how work was shared among cores: "rows", "vertices", or "size" (matrices' size decides). NULL: not timed. */
    const char *split;
    /* CPU: the kind of product that was timed on one core; NULL: something else was timed. "forward": a 256 x 256 matrix, or its transposed
     * copy, times `vectors` vectors; "rows": the transposed matrix times the vectors; "gradient": outer products; "copy": transposing the
     * matrix, or packing it in bf16. */
    const char *product;
    const char *unit;      /* for a product: the instructions used, named as in vpps_stats.precision_unit */
    const char *precision; /* for a product: its precision, "fp32", "bf16x3", "bf16" */
    uint32_t vectors;
    bool far;              /* for a product: whether its matrices are too large for the core's own cache */
    double ns_per_vector;  /* for a product: ns per vector; if `product` is "copy": ns to copy the matrix once */
    uint32_t rpw, threads; /* GPU kernel: number of rows of a matrix that a CTA gets at a time; threads per CTA */
    vpps_trial_state state;
    uint32_t batches;         /* number of batches on which this alternative was timed */
    double ns_per_node;       /* ns of device time per node, the median of the batches; 0: not measured */
    uint32_t registers;       /* GPU: number of registers of a thread */
    double load_seconds;      /* GPU: seconds to make the kernel, or to load it from the cache */
    vpps_gradients gradients; /* GPU */
} vpps_trial;
/* Gives at most *n alternatives that the handle times to keep the fastest (vpps_trial, of out[0].size bytes each; `out` NULL: *n is 0). *n
 * becomes their number in all, *done whether all choices are made. */
VPPS_API vpps_status vpps_handle_trials(vpps_handle *h, vpps_trial *out, uint32_t *n, bool *done);
/* Writes the script (the device's program) that vpps_fb would run for this graph as text. Fails as vpps_fb does, and with IO. */
VPPS_API vpps_status vpps_disassemble(vpps_handle *h, vpps_graph *g, vpps_node loss, FILE *file);

/* ---------------------------------------------------------------- tracing
 * With options.trace_events, a handle records what its caller's thread, its device and, on the CPU, each VP does when: tasks, phases,
 * waits. Batches are recorded whole, until one might exceed the number of events. On cuda and simt only launches are recorded. */
/* Begin and end a span of the caller's own work, such as building a graph. Spans nest at most 16 deep; `name` is cut to 31 bytes. Without a
 * trace the calls do nothing. Fail with STATE (too deep; no span to end), ARGUMENT (no name). */
VPPS_API vpps_status vpps_trace_begin(vpps_handle *h, const char *name);
VPPS_API vpps_status vpps_trace_end(vpps_handle *h);
/* Waits for the batch in flight, and writes the trace as JSON in Chrome's trace event format. Fails with STATE (there is no trace), IO. */
VPPS_API vpps_status vpps_trace_write(vpps_handle *h, FILE *file);

#ifdef __cplusplus
}
#endif
#endif
