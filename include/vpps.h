/* vpps.h - train dynamic neural networks: the public interface.
 *
 * The whole job of a trainer:
 *
 *     vpps_model_create(&model, seed);           declare parameters, record cells
 *     vpps_handle_create(&h, model, &options);   specialise the machine, once
 *     for each batch {
 *         vpps_graph_clear(g);  ...ops on g...   build this batch's graphs
 *         vpps_fb(h, g, loss, &stale);           forward, backward, update; the loss of the preceding batch
 *     }
 *     vpps_sync_latest_loss(h, &loss);           wait for the batch in flight
 *
 * Conventions
 *   - Every call that can fail returns a vpps_status; the message of the calling thread's last failure is
 *     vpps_error_message(). Nothing here prints, exits or aborts.
 *   - Calls that make a node return the node itself, so that expressions nest. On failure they return
 *     VPPS_NO_NODE and the graph keeps the *first* error: a VPPS_NO_NODE operand fails silently, and
 *     vpps_graph_status(), vpps_fb() and vpps_forward() report that first error.
 *   - A value is rows x cols of float32; a vector has cols 1, a scalar is 1 x 1. A matrix-valued *node* lies
 *     column after column (each column is a vector); a *parameter* matrix is given and read row after row.
 *   - A model, its graphs and its handles belong to one thread at a time; different models are independent. But while a batch
 *     of one graph is trained or run in one thread, another may build another graph of the same model; and handles of
 *     vpps_handle_create_inference belong to threads of their own. A handle is of no use
 *     in a child of fork(): calls with it fail with STATE there (destroying it is allowed).
 *   - A pointer that is NULL fails with ARGUMENT, unless a comment allows it. An array of no elements may be NULL. Calls that return
 *     neither a status nor a node answer NULL with 0, NULL, or what their comments say for an unknown one.
 *   - Strings and arrays passed in are copied, unless a comment says otherwise.
 *   - A struct that may get more members in a later version begins with its `size`, which the caller sets:
 *
 *         vpps_stats stats = {.size = sizeof stats};
 *         vpps_apply(g, VPPS_APPLICATION(.cell = leaf, .n_indices = 1, .indices = &word));
 *
 *     So a program that was compiled against an older header goes on with a newer library: members that it does not know are
 *     taken for zero, or for what vpps_options_default sets. A size of zero, or one that no version has (above 4,096 bytes, say),
 *     fails with ARGUMENT. Structs without a `size` never change.
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

/* ---------------------------------------------------------------- status */

/* X(id, what it means) */
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

/* The status's name, e.g. "SHAPE". Never NULL. */
VPPS_API const char *vpps_status_name(vpps_status status);

/* The message of the calling thread's last failed call: what failed, where, what was expected. Valid until the
 * thread's next failing call; "" when none failed. */
VPPS_API const char *vpps_error_message(void);

VPPS_API const char *vpps_version(void);

/* ---------------------------------------------------------------- model */

typedef struct vpps_model vpps_model;
typedef uint32_t vpps_param; /* index of a parameter in its model, in order of declaration */

typedef enum vpps_init_kind {
    VPPS_INIT_GLOROT,   /* uniform in +-sqrt(6 / (rows + cols)); a lookup table's row counts as rows x 1 (Glorot and
                           Bengio 2010, eq. 16); a vector is zero */
    VPPS_INIT_UNIFORM,  /* uniform in [a, b) */
    VPPS_INIT_NORMAL,   /* normal with mean a and standard deviation b */
    VPPS_INIT_CONSTANT, /* a */
    VPPS_INIT_VALUES    /* copied from `values`, in the parameter's row order */
} vpps_init_kind;

typedef struct vpps_init {
    vpps_init_kind kind;
    float a, b;
    const float *values;
} vpps_init;

typedef enum vpps_param_kind { VPPS_MATRIX, VPPS_VECTOR, VPPS_LOOKUP } vpps_param_kind;

typedef struct vpps_param_info {
    size_t size;      /* sizeof(vpps_param_info) */
    const char *name; /* owned by the model */
    vpps_param_kind kind;
    uint32_t count; /* lookup: entries; else 1 */
    uint32_t rows, cols;
    bool frozen;
    /* lookup: this process has the entries first, first + step, ... (vpps_shard_tables); else first is 0 and step 1 */
    uint32_t first, step;
} vpps_param_info;

/* A model with no parameters. `seed` drives all initialisers: equal seeds and declarations give equal values.
 * Fails with MEMORY. */
VPPS_API vpps_status vpps_model_create(vpps_model **out, uint64_t seed);

/* Frees a model; its graphs and handles must be gone. NULL is allowed. */
VPPS_API void vpps_model_destroy(vpps_model *model);

/* Declare a parameter: a rows x cols matrix, a vector of `rows`, or a lookup table of `count` entries, each a
 * rows x cols value (column after column, like a node). `init` NULL means Glorot. Names are unique, non-empty
 * UTF-8, hold no control characters, and are none that a checkpoint has for itself ("__metadata__", "optimizer.0/W").
 * Fails with ARGUMENT (zero or over-large size, bad or duplicate name), STATE (a handle
 * exists), MEMORY. */
VPPS_API vpps_status vpps_add_matrix(vpps_model *model, vpps_param *out, const char *name, uint32_t rows, uint32_t cols,
                                     const vpps_init *init);
VPPS_API vpps_status vpps_add_vector(vpps_model *model, vpps_param *out, const char *name, uint32_t rows,
                                     const vpps_init *init);
VPPS_API vpps_status vpps_add_lookup(vpps_model *model, vpps_param *out, const char *name, uint32_t count,
                                     uint32_t rows, uint32_t cols, const vpps_init *init);

/* A frozen parameter is used but never updated. Takes effect with the next batch. Fails with ARGUMENT. */
VPPS_API vpps_status vpps_freeze(vpps_model *model, vpps_param param, bool frozen);

VPPS_API uint32_t vpps_param_count(const vpps_model *model);
VPPS_API vpps_status vpps_param_describe(const vpps_model *model, vpps_param param, vpps_param_info *out);
VPPS_API vpps_status vpps_param_find(const vpps_model *model, const char *name, vpps_param *out);

/* The model's copy of a parameter's values, count * rows * cols floats; a matrix row after row; of a lookup table that is shared out over
 * processes (vpps_shard_tables), the entries that this process has, one after the other. These are no copy: a handle trains them in place.
 * All else is out of date while a handle trains the model: call vpps_read_parameters before reading, and vpps_write_parameters after
 * writing. The pointer lives as long as the model. NULL for an unknown parameter. */
VPPS_API float *vpps_param_values(vpps_model *model, vpps_param param);

/* ---------------------------------------------------------------- graph */

typedef struct vpps_graph vpps_graph;
typedef uint32_t vpps_node;
typedef uint32_t vpps_vertex;
typedef uint32_t vpps_cell; /* index of a cell in its model, in order of recording */
#define VPPS_NO_NODE UINT32_MAX
#define VPPS_NO_VERTEX UINT32_MAX
#define VPPS_NO_PARAM UINT32_MAX

typedef struct vpps_handle vpps_handle;
typedef uint64_t vpps_value; /* a value that a handle keeps on its device (vpps_keep); no number is used twice */
#define VPPS_NO_VALUE ((vpps_value)0)

/* An empty graph over a model's parameters. Building it allocates only while it grows beyond its largest size. */
VPPS_API vpps_status vpps_graph_create(vpps_graph **out, vpps_model *model);
VPPS_API void vpps_graph_destroy(vpps_graph *g);

/* Forget nodes, vertices and the error; keep memory. */
VPPS_API void vpps_graph_clear(vpps_graph *g);

/* OK, or the first failure since the last clear (its message becomes vpps_error_message()). */
VPPS_API vpps_status vpps_graph_status(const vpps_graph *g);

/* Nodes so far, those inside applied cells included: an op on a list once for each member. */
VPPS_API uint32_t vpps_graph_size(const vpps_graph *g);

/* Shape of a node. Fails with ARGUMENT. */
VPPS_API vpps_status vpps_node_shape(const vpps_graph *g, vpps_node x, uint32_t *rows, uint32_t *cols);

/* Leaves. `data` has rows * cols floats, column after column, and is copied. A lookup's index is below the table's
 * count; inside a cell it may come from vpps_pull_index. vpps_parameter takes a vector or a matrix. The node of a matrix is a copy of
 * it, in fp32 whatever the precision of products, made by each call, and inside a cell at each vertex; its gradient is added to that of
 * products with the matrix. To multiply by a matrix, vpps_affine needs no node. */
VPPS_API vpps_node vpps_input(vpps_graph *g, uint32_t rows, uint32_t cols, const float *data);
VPPS_API vpps_node vpps_lookup(vpps_graph *g, vpps_param table, uint32_t index);
VPPS_API vpps_node vpps_parameter(vpps_graph *g, vpps_param parameter);

/* rows x cols elements, all equal to one number, without a gradient. In a cell, operations on such constants alone are done once, when the
 * cell is compiled. */
VPPS_API vpps_node vpps_constant(vpps_graph *g, uint32_t rows, uint32_t cols, float value);
VPPS_API vpps_node vpps_zeros(vpps_graph *g, uint32_t rows, uint32_t cols);
VPPS_API vpps_node vpps_ones(vpps_graph *g, uint32_t rows, uint32_t cols);

/* Operations follow IEEE 754, as PyTorch's do. A value that is not chosen takes no part in the result or in gradients, whatever it is: by
 * select, when and unless, max and min, relu, dropout, binary_log_loss at a target of 0 or 1; and a score of -inf has probability 0 in
 * softmax, log_softmax, log_sum_exp, and in cross_entropy unless it is the label's, where the loss is infinite and its gradient NaN. A NaN
 * among the arguments of max and min is the result. A factor of 0 is no such choice: times infinity it is NaN, in weighted_sum, dot and
 * products, too, and at a class of weight 0 under label smoothing.
 *
 * Sums of any number of terms, those of gradients and of products in fp32 included, are off by a few times 1e-5 of the sum of the terms'
 * sizes at most: long ones are added up in runs. */

/* bias + sum over i < n of matrices[i] * xs[i]. bias (a vector) may be VPPS_NO_PARAM; it is added to every column.
 * Each xs[i] is (matrix cols) x c for one common c; the result is (matrix rows) x c. n is at most 32. */
VPPS_API vpps_node vpps_affine(vpps_graph *g, vpps_param bias, uint32_t n, const vpps_param *matrices,
                               const vpps_node *xs);
VPPS_API vpps_node vpps_matvec(vpps_graph *g, vpps_param matrix, vpps_node x);
VPPS_API vpps_node vpps_affine1(vpps_graph *g, vpps_param bias, vpps_param w, vpps_node x);
VPPS_API vpps_node vpps_affine2(vpps_graph *g, vpps_param bias, vpps_param w0, vpps_node x0, vpps_param w1,
                                vpps_node x1);

/* Product of two nodes: (r x k) times (k x c). */
VPPS_API vpps_node vpps_matmul(vpps_graph *g, vpps_node a, vpps_node b);

/* Elementwise; operands have equal shapes. */
VPPS_API vpps_node vpps_add(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_sub(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_mul(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_div(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_max(vpps_graph *g, vpps_node a, vpps_node b); /* at a tie the gradient goes to a */
VPPS_API vpps_node vpps_min(vpps_graph *g, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_sum(vpps_graph *g, uint32_t n, const vpps_node *xs);
VPPS_API vpps_node vpps_average(vpps_graph *g, uint32_t n, const vpps_node *xs);
VPPS_API vpps_node vpps_max_of(vpps_graph *g, uint32_t n, const vpps_node *xs); /* at a tie: the first */
VPPS_API vpps_node vpps_min_of(vpps_graph *g, uint32_t n, const vpps_node *xs);

VPPS_API vpps_node vpps_negate(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_one_minus(vpps_graph *g, vpps_node x);  /* 1 - x */
VPPS_API vpps_node vpps_reciprocal(vpps_graph *g, vpps_node x); /* 1 / x */
VPPS_API vpps_node vpps_scale(vpps_graph *g, vpps_node x, float factor);
VPPS_API vpps_node vpps_scale_by(vpps_graph *g, vpps_node x, vpps_node scalar);
VPPS_API vpps_node vpps_when(vpps_graph *g, vpps_node x, vpps_node scalar);   /* scalar > 0 ? x : 0; the scalar has no
                                                                                gradient */
VPPS_API vpps_node vpps_unless(vpps_graph *g, vpps_node x, vpps_node scalar); /* scalar > 0 ? 0 : x; likewise */
/* condition > 0 ? a : b, of a scalar, made of the above. Value and gradient are those of the one that was taken, whatever the other one is,
 * infinite or NaN. (What the other one is made of gets a gradient of 0, which an infinite derivative makes NaN: log 0.) */
VPPS_API vpps_node vpps_select(vpps_graph *g, vpps_node condition, vpps_node a, vpps_node b);
VPPS_API vpps_node vpps_sigmoid(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_tanh(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_relu(vpps_graph *g, vpps_node x);             /* gradient 0 at 0 */
VPPS_API vpps_node vpps_elu(vpps_graph *g, vpps_node x, float alpha); /* x > 0 ? x : alpha (e^x - 1); alpha > 0 */
VPPS_API vpps_node vpps_gelu(vpps_graph *g, vpps_node x);             /* x Phi(x) in its tanh form (Hendrycks and
                                                                          Gimpel 2016, section 2) */
VPPS_API vpps_node vpps_gelu_erf(vpps_graph *g, vpps_node x);         /* x Phi(x) itself, with Phi by erf to 1e-7 */
VPPS_API vpps_node vpps_exp(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_log(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_square(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_sqrt(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_abs(vpps_graph *g, vpps_node x); /* gradient 0 at 0 */

/* Training: zero with probability p, else x / (1 - p) (0 <= p < 1); the mask follows from the handle's seed, the
 * batch's number and the element's position in the graph. vpps_forward: the identity. */
VPPS_API vpps_node vpps_dropout(vpps_graph *g, vpps_node x, float p);

/* Stack n nodes with equal cols on top of each other; rows [first, first + rows) of x. */
VPPS_API vpps_node vpps_concat(vpps_graph *g, uint32_t n, const vpps_node *xs);
VPPS_API vpps_node vpps_slice(vpps_graph *g, vpps_node x, uint32_t first, uint32_t rows);

/* The transpose of x. */
VPPS_API vpps_node vpps_transpose(vpps_graph *g, vpps_node x);
/* x as rows x cols, with the same elements in the same order, which is column after column. x itself, if it has that shape. Fails with
 * SHAPE: x has more elements, or fewer. */
VPPS_API vpps_node vpps_reshape(vpps_graph *g, vpps_node x, uint32_t rows, uint32_t cols);
/* n nodes with equal rows side by side. It is a concat and a reshape. Fails with SHAPE, ARGUMENT. */
VPPS_API vpps_node vpps_hstack(vpps_graph *g, uint32_t n, const vpps_node *xs);
/* n x cols: rows[i] of x as row i, for i below n; x may be a vector. A row that is taken twice gets both gradients. Fails with SHAPE: a
 * number is not below x's rows; ARGUMENT. */
VPPS_API vpps_node vpps_select_rows(vpps_graph *g, vpps_node x, uint32_t n, const uint32_t *rows);
/* Row i of the result is row numbers[i] of x, where `numbers` is a vector whose elements lose their fractions. So a cell can select rows by
 * a value that it pulls. Where x has no such row, all elements are NaN. The numbers' gradient is 0. Fails with SHAPE. */
VPPS_API vpps_node vpps_select_rows_at(vpps_graph *g, vpps_node x, vpps_node numbers);

VPPS_API vpps_node vpps_dot(vpps_graph *g, vpps_node a, vpps_node b);              /* scalar */
VPPS_API vpps_node vpps_squared_distance(vpps_graph *g, vpps_node a, vpps_node b); /* scalar: |a - b|^2 */
VPPS_API vpps_node vpps_sum_elements(vpps_graph *g, vpps_node x);                  /* scalar */
VPPS_API vpps_node vpps_softmax(vpps_graph *g, vpps_node x);                       /* of a vector, or of each column */
VPPS_API vpps_node vpps_log_softmax(vpps_graph *g, vpps_node x);
/* log(sum of e^x): of a vector a scalar; of a matrix a vector with one element for each column. -inf, with a gradient that is no number,
 * where all are -inf. */
VPPS_API vpps_node vpps_log_sum_exp(vpps_graph *g, vpps_node x);

/* Normalisation of a vector x, or of each column of a matrix: layer_norm (Ba, Kiros and Hinton 2016) is rms_norm (Zhang and
 * Sennrich 2019) of what is centred.
 *     centre      x - mean(x)
 *     rms_norm    gain x / sqrt(mean(x^2) + epsilon)
 *     layer_norm  gain (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) + bias
 * gain and bias are vectors of x's rows, as vpps_parameter makes them of a parameter, or VPPS_NO_NODE: ones, zeros. epsilon is above
 * 0; PyTorch's default is 1e-5 in LayerNorm, and 1.2e-7 in RMSNorm. Both are made of centre, one instruction, and of mul and add.
 * Fails with SHAPE, ARGUMENT. */
VPPS_API vpps_node vpps_centre(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_rms_norm(vpps_graph *g, vpps_node x, vpps_node gain, float epsilon);
VPPS_API vpps_node vpps_layer_norm(vpps_graph *g, vpps_node x, vpps_node gain, vpps_node bias, float epsilon);

/* Broadcasts x to rows x cols for elementwise operations: a scalar to every element, a vector (rows x 1) to every column, a row (1 x cols)
 * to every row. It is made of a product with ones, or is x itself. Fails with SHAPE. */
VPPS_API vpps_node vpps_broadcast(vpps_graph *g, vpps_node x, uint32_t rows, uint32_t cols);
/* The sum of a matrix's rows, 1 x cols, and of its columns, rows x 1: products with ones. */
VPPS_API vpps_node vpps_sum_rows(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_sum_columns(vpps_graph *g, vpps_node x);

/* sum over k < n of weights[k] * xs[k]; weights is a vector of n (attention). */
VPPS_API vpps_node vpps_weighted_sum(vpps_graph *g, vpps_node weights, uint32_t n, const vpps_node *xs);

/* Losses, each a scalar. `label`, the number of the right class, is below x's rows; inside a cell it may come from
 * vpps_pull_index. cross_entropy takes scores before the softmax, as most frameworks' function of that name does. */
VPPS_API vpps_node vpps_cross_entropy(vpps_graph *g, vpps_node x, uint32_t label); /* -log softmax(x)[label] */

/* The cross-entropy with weights of classes and label smoothing, as PyTorch's CrossEntropyLoss(weight, label_smoothing) has it for one
 * example, or with reduction="sum":
 *     -sum over classes k of q[k] log softmax(x)[k],  q[k] = weights[k] ((k == label ? 1 - smoothing : 0) + smoothing / rows)
 * weights is a vector of x's rows, VPPS_NO_NODE: ones; smoothing is 0 to 1. vpps_average over examples divides by their number,
 * PyTorch's reduction="mean" by the sum of weights[label]: scale a vpps_sum for that. Weights that are a parameter are trained unless
 * it is frozen. It is made of other ops; vpps_smooth_label is q. Fails with SHAPE, ARGUMENT. */
VPPS_API vpps_node vpps_cross_entropy_with(vpps_graph *g, vpps_node x, uint32_t label, vpps_node weights,
                                           float smoothing);
VPPS_API vpps_node vpps_smooth_label(vpps_graph *g, vpps_node weights, uint32_t label, float smoothing);
VPPS_API vpps_node vpps_hinge(vpps_graph *g, vpps_node x, uint32_t label, float margin);
/* sum over j != label of max(0, margin - x[label] + x[j]) (Crammer and Singer 2001 margins, summed) */
VPPS_API vpps_node vpps_binary_log_loss(vpps_graph *g, vpps_node p, vpps_node target);
/* -sum_i target_i log p_i + (1 - target_i) log(1 - p_i), 0 < p < 1 */

/* Choices that the device makes while it runs, for vpps_forward only: they have no gradient, and vpps_fb fails with ARGUMENT on a graph
 * that has them. A device without them (vpps_stats.decides), or with tables that are shared out, fails with DEVICE.
 *   argmax     of a vector, 2 x 1: the number of its greatest element, the first of equals, and log softmax of that, which is
 *              not finite where the vector is not
 *   lookup_at  the entry of a table whose number is the value of a scalar, without its fraction: below 0 the first, beyond
 *              the table the last. Numbers up to 2^24 are exact. */
VPPS_API vpps_node vpps_argmax(vpps_graph *g, vpps_node x);
VPPS_API vpps_node vpps_lookup_at(vpps_graph *g, vpps_param table, vpps_node index);

/* ---------------------------------------------------------------- cells: vertex functions
 *
 * A cell is a subgraph recorded once, for a model, and applied at any number of vertices of any of the model's graphs (Xu
 * et al. 2018, "Cavs", section 3). vpps_cell_begin gives a recorder: a graph on which the op calls above record instead
 * of building. The cell's four verbs are
 *     gather   read what a child vertex scattered        pull   read something from outside the vertices
 *     scatter  offer a value to parent vertices          push   offer a value to the outside
 * Shapes are checked while recording; applying checks only that children scatter what the cell gathers. */

/* Start recording a cell. *recorder is a graph for the op calls and the verbs, and for nothing else: what builds, runs or clears graphs
 * fails on it with STATE. Nodes of the recorder and of other graphs cannot be mixed. `name`, non-empty UTF-8 without control characters,
 * appears in messages and listings; several cells may have one name. Allowed while a handle exists, and while other cells are being
 * recorded. Fails with ARGUMENT (a bad name), MEMORY; then *recorder is NULL. */
VPPS_API vpps_status vpps_cell_begin(vpps_model *model, const char *name, vpps_graph **recorder);

/* Value number `output` that child number `child` scatters. */
VPPS_API vpps_node vpps_gather(vpps_graph *recorder, uint32_t child, uint32_t output, uint32_t rows, uint32_t cols);

/* Value number `output` of every child, however many a vertex has: a list. An op on a list is mapped over its members (lists in one op go
 * member by member; other operands are shared); sum, average, max_of and min_of over a list give one value. A list cannot be scattered or
 * pushed. A vertex may have no children: what is computed from no members is zero. A max_of or min_of of lists alone needs at least one
 * member of each. A parameter that is multiplied with members alone counts as used even then. */
VPPS_API vpps_node vpps_gather_list(vpps_graph *recorder, uint32_t output, uint32_t rows, uint32_t cols);

/* The same for the children from number `first` on; those with lower numbers are gathered by number (a decoder's state, then what it
 * attends to). All lists that a cell gathers from one list of children begin with the same child. */
VPPS_API vpps_node vpps_gather_list_from(vpps_graph *recorder, uint32_t first, uint32_t output, uint32_t rows,
                                         uint32_t cols);

/* Nodes given when applied, one for each member of the gathered list (features of the edges to them), or, if none is
 * gathered, any number of them: a list. */
VPPS_API vpps_node vpps_pull_list(vpps_graph *recorder, uint32_t rows, uint32_t cols);

/* The same for cells with several lists of different lengths: left and right children; children, and words that are none.
 * Lists are numbered from 0, at most to 3, in the order in which they are first named; the calls above are about list 0. All
 * that is gathered from a list, or pulled for it, has the same number of members. An op takes members of one list only, beside
 * values; sum, average, max_of and min_of may go over several. A vertex's children are those gathered by number, then list
 * 0's, then list 1's, and so on; where vpps_gather_list_from names a first child, lists begin with that one. */
VPPS_API vpps_node vpps_gather_list_of(vpps_graph *recorder, uint32_t list, uint32_t output, uint32_t rows,
                                       uint32_t cols);
VPPS_API vpps_node vpps_pull_list_of(vpps_graph *recorder, uint32_t list, uint32_t rows, uint32_t cols);

/* Over the members of a list of scalars: e^score / sum of e^score of all members; a list of scalars. */
VPPS_API vpps_node vpps_softmax_list(vpps_graph *recorder, vpps_node scores);

/* The logarithm of that, without going through it: score - log sum of e^score of all members; a list of scalars. The loss of a choice
 * among any number of candidates is the sum of this times a list of -1 for the right one and 0 for the others. */
VPPS_API vpps_node vpps_log_softmax_list(vpps_graph *recorder, vpps_node scores);

/* sum over the members of weight * x; weights are a list of scalars, xs any list. Attention: a query's dot products with all
 * members, their softmax, and this. */
VPPS_API vpps_node vpps_weighted_sum_list(vpps_graph *recorder, vpps_node weights, vpps_node xs);

/* A list's members on top of each other, the first at the top, and zeros below them: one value of `most` times a member's
 * rows, however many members a vertex has. A vertex of more than `most` (at least 1) is refused by vpps_apply. */
VPPS_API vpps_node vpps_concat_list(vpps_graph *recorder, vpps_node xs, uint32_t most);

VPPS_API vpps_node vpps_pull(vpps_graph *recorder, uint32_t rows, uint32_t cols); /* a node given when applied */
/* An integer given when applied: an index for lookup, a label. At most 65,535 a cell. */
VPPS_API uint32_t vpps_pull_index(vpps_graph *recorder);

/* Outputs are numbered 0, 1, ... in order of the calls, those scattered and those pushed apart. */
VPPS_API vpps_status vpps_scatter(vpps_graph *recorder, vpps_node x);
VPPS_API vpps_status vpps_push(vpps_graph *recorder, vpps_node x);

/* ---- control flow as data
 *
 * A cell may have a condition: its vertices run where that holds, and where it does not scatter something else, which they
 * were given. Loops and cases are made of such vertices, and whoever builds the graph need not know how they go: the device
 * decides. In training all vertices run, and gradients go the way that was taken. In inference the device cpu does not run
 * those whose condition does not hold, but copies; others run them, with the same result. */

/* Sets the cell's condition: a scalar is above 0; or it is `value` when rounded to the nearest integer (below 2^22). The scalar is one that
 * the cell gathers or pulls. Call it before any output; all outputs are then made by vpps_scatter_else. Fail with STATE (no recorder, a
 * second condition, outputs so far), SHAPE, ARGUMENT, MEMORY; sticky, as for nodes. */
VPPS_API vpps_status vpps_condition(vpps_graph *recorder, vpps_node scalar);
VPPS_API vpps_status vpps_condition_is(vpps_graph *recorder, vpps_node scalar, uint32_t value);

/* Scatters x where the condition holds, else `otherwise`, which has x's shape and is gathered or pulled by the cell; VPPS_NO_NODE: zeros.
 * The condition has no gradient. Fails with STATE (no condition), SHAPE, MEMORY. */
VPPS_API vpps_status vpps_scatter_else(vpps_graph *recorder, vpps_node x, vpps_node otherwise);

/* Finishes recording and adds the cell to the model, for as long as the model lives. The recorder is freed, also on failure
 * (vpps_graph_destroy drops a recording, too). Fails with the recording's first error, ARGUMENT (more than 64 values that are gathered or
 * pulled, nodes that are scattered or pushed, lookups, or pulled indices that are classes or rows), STATE (not a recorder; it is left
 * alone), MEMORY; then *out is UINT32_MAX and there is no cell. */
VPPS_API vpps_status vpps_cell_end(vpps_graph *recorder, vpps_cell *out);

/* What a vertex is made of. Each count must be what the cell asks for; arrays of none may be NULL. */
typedef struct vpps_application {
    size_t size; /* sizeof(vpps_application) */
    vpps_cell cell;
    uint32_t n_children;
    const vpps_vertex *children; /* in the order of their numbers in vpps_gather */
    uint32_t n_pulls;
    const vpps_node *pulls; /* in the order of the vpps_pull calls */
    uint32_t n_indices;
    const uint32_t *indices; /* in the order of the vpps_pull_index calls */
    uint32_t n_pull_lists, n_members;
    const vpps_node *const *pull_lists; /* in the order of the vpps_pull_list calls, each of n_members nodes */
    /* For cells with several lists: how many members each has, children or pulled nodes; n_members is not read. Where there
     * is one list, n_lists may be 0: its members are then all children from its first on, or n_members nodes. */
    uint32_t n_lists;
    const uint32_t *list_members;
} vpps_application;

/* A pointer to an application with its size set: vpps_apply(g, VPPS_APPLICATION(.cell = c, ...)). It lives as long as the block. */
#define VPPS_APPLICATION(...) (&(vpps_application){.size = sizeof(vpps_application), __VA_ARGS__})

/* The cell at a new vertex. VPPS_NO_VERTEX on failure (sticky, as for nodes): ARGUMENT (no such cell or vertex, wrong
 * counts, an index out of range), SHAPE, MEMORY. Costs one small record. */
VPPS_API vpps_vertex vpps_apply(vpps_graph *g, const vpps_application *a);

/* A vertex that scatters existing nodes, e.g. a recurrence's initial state. */
VPPS_API vpps_vertex vpps_source(vpps_graph *g, uint32_t n, const vpps_node *nodes);

/* A loop: as many vertices as `limit` (at least 1), each a turn, with the preceding turn as its child 0 and all else as `a` says,
 * whose child 0 is the first turn's. The cell's condition is one that it gathers from child 0, so that a turn is the last when
 * it scatters what ends the loop. The last vertex, which scatters what the last turn that was taken did, if each turn
 * scatters otherwise what it gathered; turns, of `limit` vertices, may be NULL. Fails as vpps_apply does, and with ARGUMENT (a
 * cell without such a condition, a limit of 0). */
VPPS_API vpps_vertex vpps_while(vpps_graph *g, const vpps_application *a, uint32_t limit, vpps_vertex *turns);

/* A case: applies n cells, of which the ones whose condition holds run. All branches scatter equally many values, and scatter zeros where
 * they do not run. The resulting vertex scatters the sums of the branches' values: zeros if no condition holds. Fails as vpps_apply does,
 * and with ARGUMENT (no branches, a cell of another kind). */
VPPS_API vpps_vertex vpps_case(vpps_graph *g, uint32_t n, const vpps_application *branches);

/* The node a vertex pushed, or scattered, as number k. */
VPPS_API vpps_node vpps_pushed(vpps_graph *g, vpps_vertex v, uint32_t k);
VPPS_API vpps_node vpps_scattered(vpps_graph *g, vpps_vertex v, uint32_t k);

/* ---- many at once
 *
 * For callers to whom a call is expensive, above all other languages: whole batches of trees, chains, lattices and edge lists are
 * built from arrays by a few calls. The graph is the same, bit by bit, as if each vertex or node had been made by a call of its own,
 * in the order of the arrays. */

/* The members that a list has at each vertex: vertex i has members first[i] to first[i + 1] - 1. */
typedef struct vpps_members_of {
    const uint32_t *first;       /* n + 1 numbers, from 0, never decreasing */
    const vpps_vertex *children; /* first[n] vertices; NULL for a list that the cell does not gather */
} vpps_members_of;

/* n vertices of one cell. An array is NULL where the cell asks for none of its kind. */
typedef struct vpps_applications {
    size_t size; /* sizeof(vpps_applications) */
    vpps_cell cell;
    uint32_t n;                              /* vertices; may be 0 */
    uint32_t n_children, n_pulls, n_indices; /* of each vertex: children before those in lists, nodes, indices */
    const vpps_vertex *children;             /* n x n_children, row after row, as are pulls and indices */
    const vpps_node *pulls;
    const uint32_t *indices;
    uint32_t n_lists;
    const vpps_members_of *lists; /* n_lists: one for each of the cell's lists */
    uint32_t n_pull_lists;        /* in the order of the vpps_pull_list calls, each has as many nodes as its list */
    const vpps_node *const *pull_lists; /* has members at all vertices together, in the order of the vertices */
} vpps_applications;

#define VPPS_APPLICATIONS(...) (&(vpps_applications){.size = sizeof(vpps_applications), __VA_ARGS__})

/* Applies a cell at n new vertices, whose numbers follow each other; the first one's number. A child may be a vertex of the
 * same call that comes before its parent: vertex i of the call has the number vpps_graph_vertices(g) + i. VPPS_NO_VERTEX on
 * failure (sticky), as vpps_apply fails, and with ARGUMENT (numbers in `first` that decrease); the message names the vertex. */
VPPS_API vpps_vertex vpps_apply_many(vpps_graph *g, const vpps_applications *a);

/* Vertices so far; the next one has this number. */
VPPS_API uint32_t vpps_graph_vertices(const vpps_graph *g);

/* n inputs of rows x cols each, from n * rows * cols floats, which are copied. Their numbers follow each other; the first one's
 * number. VPPS_NO_NODE on failure (sticky), as vpps_input fails. */
VPPS_API vpps_node vpps_input_many(vpps_graph *g, uint32_t n, uint32_t rows, uint32_t cols, const float *data);

/* out[i] is the node that vertex vertices[i] pushed, or scattered, as number k. Fail (sticky) with the graph's error, ARGUMENT
 * (no such vertex or output); then `out` is undefined. */
VPPS_API vpps_status vpps_pushed_many(vpps_graph *g, uint32_t n, const vpps_vertex *vertices, uint32_t k,
                                      vpps_node *out);
VPPS_API vpps_status vpps_scattered_many(vpps_graph *g, uint32_t n, const vpps_vertex *vertices, uint32_t k,
                                         vpps_node *out);

/* ---------------------------------------------------------------- cost
 *
 * What one training step on a graph costs at least, by this convention; a roofline is made of it.
 *   - product_flops: matrix products, of parameters and of nodes. A multiply-add is 2. Forward 2 r k c for r x k times
 *     k x c, and as much again for the gradient of each factor that has one.
 *   - other_flops: one for every addition, multiplication, comparison and call of a function (exp, tanh, a root) of an
 *     element, forward and backward; the table is src/graph/ops.def. Copies, changes of a sign, random bits, and
 *     adding up the gradients of a value that is used more than once are free. The update is plain SGD: 2 an element.
 *   - parameter_bytes: matrices and vectors that are used, and entries of lookup tables that are used: each element
 *     read once and written once, 8 bytes; a frozen one is only read, 4. State of the optimizer is not counted.
 *   - value_bytes: the value of a node is written once and read once, 8 bytes an element, and so is its gradient,
 *     another 8. A lookup and a vpps_parameter of a vector are their parameter, and no value beside it.
 * Every node is taken to be needed. A node has a gradient when a parameter that is not frozen is below it. */
typedef struct vpps_cost {
    size_t size;    /* sizeof(vpps_cost) */
    uint64_t nodes; /* vpps_graph_size */
    uint64_t product_flops, other_flops;
    uint64_t parameter_bytes, value_bytes;
} vpps_cost;

/* Costs of a graph: each op counts once, inside a cell once for each vertex and each member of a list; each parameter's entries count once.
 * Fails with the graph's error, STATE (a cell is being recorded), MEMORY. */
VPPS_API vpps_status vpps_graph_cost(vpps_graph *g, vpps_cost *out);

/* ---------------------------------------------------------------- handle */

/* X(id, name on the command line, state arrays a parameter needs, learning rate unless another is given) */
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

/* As a learning rate in options: that of the table. */
#define VPPS_DEFAULT_LR (-3e38f)

/* The learning rate of the table; NaN for an unknown optimizer. */
VPPS_API float vpps_default_lr(vpps_optimizer_kind kind);

/* The step, for a gradient g of weight w:
 *   g is first scaled by min(1, clip / |all gradients|_2) when clip > 0 (Pascanu et al. 2013);
 *   all but adamw then add weight_decay * w to it.
 *   sgd       w -= lr g
 *   momentum  s = momentum s + g;  w -= lr s
 *   adagrad   s += g^2;  w -= lr g / (sqrt(s) + epsilon)                     (Duchi et al. 2011)
 *   adam      m, v as in Kingma and Ba 2015, algorithm 1, bias-corrected; t counts the steps of the parameter since its m and v were zero
 *   adamw     the same, and w -= lr weight_decay w                            (Loshchilov and Hutter 2019)
 * A parameter, or an entry of a lookup table, that a batch does not use is not touched, nor is its state. A lookup table has one t, which
 * counts the batches that step any of its entries. */
typedef struct vpps_optimizer {
    vpps_optimizer_kind kind;
    float lr, momentum, beta1, beta2, epsilon, weight_decay, clip;
    float reserved[8]; /* zeros: room for numbers of later versions */
} vpps_optimizer;

typedef enum vpps_gradients {
    VPPS_GRADIENTS_DEFERRED,   /* operands are kept; one product per matrix at the end of the batch */
    VPPS_GRADIENTS_ACCUMULATE, /* the paper's: each level adds its outer products into resident gradients */
    VPPS_GRADIENTS_CUBLAS, /* GPU: as DEFERRED, but the products of matrices are cuBLAS's, between two launches a batch; without cuBLAS
                              no handle is made */
    VPPS_GRADIENTS_AUTO,       /* GPU: CUBLAS, where the profile finds it faster than DEFERRED. CPU: DEFERRED */
    VPPS_GRADIENTS_CUBLAS_TF32 /* as CUBLAS; products in fp32 have their operands rounded to TF32, of 11 significant bits */
} vpps_gradients;

/* What to do with a batch whose loss, or the norm of all its gradients, is NaN or infinite. (The norm's square is a float32: it is infinite
 * from a norm of about 1.8e19 on.) "No update": parameters and the optimiser's state stay as they are. */
typedef enum vpps_nonfinite {
    VPPS_NONFINITE_STOP,  /* no update; the next call fails with NONFINITE and names the batch */
    VPPS_NONFINITE_SKIP,  /* no update; training goes on, vpps_stats counts it */
    VPPS_NONFINITE_IGNORE /* update as if nothing had happened */
} vpps_nonfinite;

typedef enum vpps_caller {
    VPPS_CALLER_AUTO,  /* works when the VPs take every core the process may use */
    VPPS_CALLER_WORKS, /* the calling thread is VP 0: vpps_fb returns when its batch is done */
    VPPS_CALLER_FREE   /* every VP has a thread of its own: vpps_fb returns at once */
} vpps_caller;

/* How products with weight matrices are made: forward, backward and the weights' gradients. X(id, name)
 *   fp32    operands as they are
 *   bf16x3  each operand as a sum of two bf16 numbers, and three products of these: some 16 bits of significand. A result is off by
 *           at most 2^-15 of the sum of its terms' magnitudes, and what adding them in fp32 costs
 *   bf16    each operand rounded to the nearest bf16, ties to even: 8 bits of significand, off by at most 2^-7 of that sum
 *   auto    bf16x3 where it is faster than fp32, else fp32; the log says which. On a CPU by the rates that were measured on it, the
 *           sizes of the model's matrices, and options.batch. On a GPU fp32 for an options.batch of 1 to 4, else bf16x3
 * Parameters, the optimiser's state, sums, everything elementwise, products of two values, and losses are fp32 always, and so is
 * what is kept for backward, and what checkpoints hold; but a GPU keeps what nobody reads but products and gradients of parameters as
 * the one or two bf16 numbers that products make of it, which gradients of biases then sum up, too. In the two of bf16 an operand
 * below 2^-126 counts as zero, on a GPU perhaps as the bf16 nearest to it; NaN gives NaN, and an infinite operand something that is
 * not finite. Bits are the same in every run, as in fp32; whether the machine has instructions for it decides how sums are ordered,
 * not how operands are rounded. On the CPU it takes a second copy of the weights: as much memory as theirs in bf16, twice that in
 * bf16x3. On a GPU mma makes the products, of weights that lie rounded in registers (a tensor core cuts sums off where fp32 would
 * round them); one before sm_80 has none, and is refused with DEVICE. */
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

/* ---------------------------------------------------------------- processes
 *
 * Several processes, on one machine or on many, train one model together. Each has the same model, and a handle with a
 * communicator in its options; each then gives vpps_fb a graph of its own part of the batch. The loss of the batch is the sum of
 * the processes' losses, and its gradient the sum of their gradients: where a loss is a mean, each divides by the number of
 * examples that all have together. The parameters are the same everywhere, bit by bit, after every batch.
 *
 * All processes make the same calls of vpps_fb, and none may fail in one alone: who cannot go on ends, and the others fail with
 * STALL within the watchdog's time, or are ended by the launcher. With dropout, each process draws masks of its own.
 *
 * On a GPU the processes of a machine take its GPUs in turn. vpps_fb then returns when the gradients of all processes are one,
 * and the step runs on. Those of matrices and vectors go by NCCL (libnccl.so.2, or what the environment's VPPS_NCCL names), or
 * through the host where that is not to be had; the log tells. */

typedef struct vpps_communicator vpps_communicator;

/* Opens the processes' connection. kind: "mpi": the library of Open MPI or of MPICH (and its kin) that the program is linked with, or else
 * that of the launcher, is opened; the environment's VPPS_MPI can name it. comm: the address of an MPI_Comm, which is duplicated; NULL:
 * MPI_COMM_WORLD. MPI is initialised where it is not, with MPI_THREAD_SERIALIZED, and then finalised by the close; a program that
 * initialises it itself asks for at least that, since a thread of the handle communicates. watchdog_ms: a process that is silent for this
 * long while others wait has failed; 0: 10,000. All processes of the communicator call this together. Fails with ARGUMENT, DEVICE (no MPI;
 * the library's own error), MEMORY, STALL. */
VPPS_API vpps_status vpps_communicator_open(vpps_communicator **out, const char *kind, const void *comm,
                                            uint32_t watchdog_ms);

/* Closes it, in all processes; the handles that use it must be gone. NULL is allowed. */
VPPS_API void vpps_communicator_close(vpps_communicator *c);

/* The number of this process, from 0; how many there are. Of NULL: 0, and 1. */
VPPS_API uint32_t vpps_communicator_rank(const vpps_communicator *c);
VPPS_API uint32_t vpps_communicator_size(const vpps_communicator *c);

/* Shares out the lookup tables that are declared after this over the communicator's processes, by entries: each keeps those
 * whose number, modulo the number of processes, is its rank, with their state, and no copy of them. Of other processes' entries
 * those travel that a batch uses, and their gradients. Initial values are those of a table in one process. A handle of such a
 * model is made with this communicator, on the device cpu, and then all processes together call
 *   - vpps_fb, as they do anyhow;
 *   - vpps_save (the first one writes the file, with whole tables; other processes' path, which is not NULL, and metadata are not
 *     looked at) and vpps_load (each reads the file, and keeps what is its own); any number of processes goes on from the file;
 *   - vpps_forward_end, after calls of vpps_forward, of which each process makes as many as it likes.
 * NULL, or a communicator of one process: tables stay whole. Fails with STATE (there is a lookup table already). */
VPPS_API vpps_status vpps_shard_tables(vpps_model *model, const vpps_communicator *c);

typedef struct vpps_options {
    size_t size;        /* sizeof(vpps_options): vpps_options_default sets it */
    const char *device; /* "cpu"; "cuda" or "gpu": an NVIDIA GPU; "simt": the GPU's kernel run by the CPU, slowly, to
                            debug without a GPU; "auto": cuda, or cpu where there is no GPU (the log says why) */
    uint32_t
        vps; /* virtual processors; 0: one for every core that the process may use (by its affinity and the quota of its
                       control group), or multiprocessor of the GPU */
    uint32_t groups; /* groups of VPs, which divide vps and share out the inputs' graphs; each has the whole
                                 model. 0: as many as cost least by an estimate, which knows the model, the machine and
                                 this batch alone; on a GPU as many as keep the whole model resident and have four inputs each.
                                 Another number has a kernel of its own there. VPPS_GROUPS_PROFILE: the numbers (GPU:
                                 those that keep the whole model resident) are tried on the batches that are trained, in turn, and
                                 the fastest taken; sums are made in another order by another number, so bits then depend
                                 on times */
    uint32_t waves;  /* parts of a batch that run one after the other, in the same memory; 0: as many as
                                 keep at most 32 MB each (GPU: one), more where the pool is too small. Never more than the batch
                                 has inputs, of which those that share a node, the loss's sum aside, are one */
    uint32_t
        slices; /* training: parts of a wave's heads (vertices that only the loss reads, as classifiers). Slices run forward and backward
                 * one after the other in the same memory, after the forward and before the backward of the rest; 0: one. Where the pool is
                 * too small and heads take a considerable part of it, slices are added before waves are */
    const char *
        policy; /* batching policy: which vertices of a recurrence of several cells run together. NULL: "depth": those of one cell
                          * and depth; "agenda", "ratio", "fsm": as `vpps policy` tells, where fsm is learned on the first batch, in about a
                          * second at most, and kept in the cache of kernels; "auto": each runs some of the batches that are trained, in
                          * turn, and the fastest is taken: bits then depend on times, as with VPPS_GROUPS_PROFILE */
    uint64_t pool_bytes; /* memory for one batch and the parameters; 0: as much as 32-bit word offsets reach,
                                 touched only when used */
    vpps_optimizer optimizer;
    vpps_gradients gradients;
    vpps_nonfinite nonfinite;
    vpps_caller caller;
    uint32_t
        watchdog_ms; /* a wait longer than this, in which no VP has run a task, is a stall; 0 means 10,000. GPU: at most 1,000 where it
                                 drives a display; and a batch of ten times that, at least of a minute, is a stall, too */
    uint64_t seed; /* of dropout */
    vpps_precision precision;
    uint32_t batch; /* inputs that a batch will have, by which VPPS_PRECISION_AUTO chooses; 0: not known, some */
    vpps_communicator *
        communicator; /* the processes that train together; NULL: this one alone. It must outlive the handle, and nothing
                                      * else may use it while a batch is in flight */
    bool portable;    /* CPU: plain C instead of wide vectors */
    bool verify;      /* before each script runs, prove that it does what its graph asks for (slow) */
    uint32_t rpw; /* GPU: consecutive rows of a matrix that are one VP's, 1 to 1,024; 0: by profile, on the batches that
                             are trained */
    uint32_t threads;      /* GPU: of a CTA, a multiple of 32 up to 1,024; 0: by profile */
    uint64_t trace_events; /* note what happens when, up to so many events of 32 bytes (vpps_trace_write); 0: none */
    bool no_tuning; /* GPU: take the first choice for what is 0, and measure nothing. CPU: take a table's choice of how
                       products are made, whatever was measured */
    bool tune; /* CPU: where the cache has no fastest way to share out stages for such a model and so many VPs on this
                  processor, try them on the batches that are trained, and keep the fastest in the cache */
    void (*log)(
        void *context,
        const char
            *line); /* receives messages: why a device was chosen, which kernels were made or rejected, what the profile
                                    * measured; NULL: nobody does */
    void *log_context;
    /* The most memory that values of vpps_keep take, each rounded up to 64 bytes; 0: 64 MB, or half of what pool_bytes leaves for
     * batches, where that is less. It is taken from the pool with the first value. */
    uint64_t keep_bytes;
} vpps_options;

/* vpps_options_default(&options) sets all of a vpps_options: cpu, all cores, fp32, SGD, VPPS_DEFAULT_LR, deferred gradients, stop at a loss
 * or gradient that is not finite. It is a macro, which tells how large the caller's struct is: `size` is that of the struct. Fails
 * with ARGUMENT (a size that no version has). */
VPPS_API vpps_status vpps_options_init(vpps_options *options, size_t size);
#define vpps_options_default(options) vpps_options_init((options), sizeof(vpps_options))

/* A specialised engine for the model on a device; copies the parameters to it. `options` NULL means the defaults. The
 * model takes no further parameters while a handle exists; cells it takes at any time. The optimiser's state that the model has from an
 * earlier handle goes on where the optimizer is of the same kind; else all state is zero. Fails with ARGUMENT, DEVICE, POOL, MEMORY, STATE (the
 * model has a handle already). */
VPPS_API vpps_status vpps_handle_create(vpps_handle **out, vpps_model *model, const vpps_options *options);

/* A handle that computes beside the one that trains, in a thread of its own: vpps_forward, values that stay, vpps_handle_stats, tracing
 * and vpps_handle_destroy; everything else fails with STATE. A model has one handle that trains, and any number of these.
 *
 *     vpps_handle_create_inference(&reader, h, &options);   by the thread that has h; then another thread has `reader`
 *     vpps_publish_parameters(h);                           now and then, by the thread that trains
 *     vpps_forward(reader, ...);                            with the newest parameters that were published
 *
 * It has the parameters as they were after the trainer's latest batch when the handle was created, and then at each
 * vpps_publish_parameters. They change between two calls of vpps_forward, never within one. Two copies of the parameters are kept on the
 * host; each handle has a device of its own, with its own memory. Each thread builds graphs of its own; no thread may record cells or
 * freeze parameters while others use the model. The handle that trains may be destroyed before the others.
 *
 * `options` as for vpps_handle_create; NULL means the defaults. Set vps, since threads share the cores. The optimizer is ignored; a
 * communicator fails with ARGUMENT. Also fails as vpps_handle_create does, and with STATE (`trainer` is one for inference; tables are
 * shared out), MEMORY, and what made the trainer useless. */
VPPS_API vpps_status vpps_handle_create_inference(vpps_handle **out, vpps_handle *trainer, const vpps_options *options);

/* Waits for the batch in flight, and copies the parameters for the handles of vpps_handle_create_inference, each of which takes them
 * with its next vpps_forward; without any it does nothing. Fails with DEVICE, MEMORY, and what made the handle useless; the others
 * go on with what was published before. */
VPPS_API vpps_status vpps_publish_parameters(vpps_handle *h);

/* Waits for the batch in flight and frees the handle; the model keeps the values of the last vpps_read_parameters. NULL
 * is allowed. */
VPPS_API void vpps_handle_destroy(vpps_handle *h);

/* One training step on the graph: forward, gradients of `loss` (a scalar), update. The graph may be cleared or changed as soon as the call
 * returns. *stale_loss (may be NULL) receives the loss of the preceding batch; NaN at the first. An error of an earlier batch is returned
 * here, with that batch's number, and the given batch is not run: NONFINITE (training may go on with the next call); STALL, DEVICE (the
 * handle is then useless: every call that needs the device fails with that error). Also the graph's own error, SHAPE (loss is not a
 * scalar), ARGUMENT, SCRIPT, POOL, MEMORY, and DEVICE where no kernel can be made for the batch: then the batch was not run, and everything
 * is as before the call. With a communicator also STATE (a process trains another model, or steps by other settings); a loss of VPPS_NO_NODE then says that this process has no part in the
 * batch, and the graph is cleared. */
VPPS_API vpps_status vpps_fb(vpps_handle *h, vpps_graph *g, vpps_node loss, float *stale_loss);

/* ---------------------------------------------------------------- a training step in parts
 *
 *     vpps_backward(h, g, loss, NULL);           once or more often: gradients add up on the device
 *     vpps_read_gradients(h), ...                look at them, change them, write them back
 *     vpps_update(h);                            the optimiser's step, which also sets the gradients to none
 *
 * vpps_backward and vpps_update give the bits of vpps_fb, which is the shorter and faster way to do both: one launch. The gradient
 * of a sum of losses is the sum of their gradients: four graphs of eight inputs each, added up, train as one graph of 32 does. */

/* What a call of vpps_backward, or a step in two halves, returns beside the gradients of parameters: values of nodes (as predictions, without a second forward), and
 * gradients of the loss with respect to nodes (as inputs or rows of lookups). They are those of the training step: dropout is on, and
 * parameters are as before the update. Gradients are of this call's loss alone; they do not add up over calls. */
typedef struct vpps_request {
    size_t size; /* sizeof(vpps_request) */
    uint32_t n_values;
    const vpps_node *values;  /* any nodes of the graph, in any order, also the loss; a node may be named twice */
    float *const *value_outs; /* value_outs[i], the caller's, receives rows * cols floats, column after column */
    uint32_t n_gradients;
    const vpps_node *gradients;  /* likewise; of several lookups of one entry each has its own */
    float *const *gradient_outs; /* likewise; zeros where the loss does not depend on the node */
    bool no_parameters;          /* gradients of parameters are not computed, and those that add up stay as they are */
    uint64_t
        draw; /* masks of dropout follow from this number and options.seed alone: equal numbers, equal masks. 0: others in each call */
    bool no_dropout; /* dropout is off, as in vpps_forward */
} vpps_request;

/* A pointer to a request with its size set: vpps_backward(h, g, loss, VPPS_REQUEST(.n_values = 1, ...)). It lives as long as the
 * block. */
#define VPPS_REQUEST(...) (&(vpps_request){.size = sizeof(vpps_request), __VA_ARGS__})

/* Forward and backward of the graph: adds the gradients of `loss` to those that vpps_backward left since the latest update. Returns as
 * vpps_fb does, before the batch is finished; vpps_poll_loss and vpps_sync_latest_loss tell its loss. With a request that names nodes, the
 * call waits for the batch: their values and gradients are in the caller's arrays when it returns. `request` NULL asks for nothing. Dropout
 * draws other masks in each call; a call with no_parameters draws those of the next call without.
 *
 * Naming a sum that joins several inputs' losses makes them one component of the graph: groups of VPs and waves cannot share these
 * inputs out then. The loss itself costs nothing. Where the gradient of a node is asked for, the gradients of all vertices of its cell, or
 * of its operation and shapes, are computed and kept until the call is over, as far as the loss depends on them. Cells are compiled for
 * what is asked of them: the first request of its kind takes as long as the first batch, on a GPU seconds.
 *
 * Fails as vpps_fb does, but a loss that is not finite is no failure before the update; and with ARGUMENT (a request's node that the
 * graph has not; a list or a place that is NULL), when nothing was run. */
VPPS_API vpps_status vpps_backward(vpps_handle *h, vpps_graph *g, vpps_node loss, const vpps_request *request);

/* One step of the optimiser by the accumulated gradients, clipped by the norm of all. Afterwards there are none. It counts as one batch,
 * whose loss is the sum of the losses of its calls of vpps_backward. Parameters without a gradient, and frozen ones, stay as they are. With
 * a communicator gradients of all processes are added up first. Fails with STATE (no gradients), and as vpps_fb does; NONFINITE surfaces
 * with a later call, and the gradients are gone. */
VPPS_API vpps_status vpps_update(vpps_handle *h);

/* Forgets the gradients since the latest update. */
VPPS_API vpps_status vpps_zero_gradients(vpps_handle *h);

/* The model's copy of a parameter's gradient, as it was when vpps_read_gradients was called. */
typedef struct vpps_gradient {
    size_t size;   /* sizeof(vpps_gradient) */
    float *values; /* matrix, vector: rows * cols, in the order of vpps_param_values; lookup: n * rows * cols, entry
                                after entry. May be written. Zeros where a matrix or vector has no gradient. Owned by the model;
                                valid until the next vpps_read_gradients */
    const uint32_t *entries; /* lookup: the numbers of the entries that have a gradient, ascending; else NULL */
    uint32_t n;              /* lookup: how many; else 1, or 0 where it has no gradient */
} vpps_gradient;

/* Waits for the batch in flight, then copies the gradients to the model; or from the model to the device, where the update will
 * take them: of a lookup table those of the entries that vpps_read_gradients found. With a communicator they are this process's.
 * Fail with STATE (vpps_write_gradients: there are none to replace), MEMORY, DEVICE. */
VPPS_API vpps_status vpps_read_gradients(vpps_handle *h);
VPPS_API vpps_status vpps_write_gradients(vpps_handle *h);

/* Fails with ARGUMENT (no such parameter), STATE (vpps_read_gradients was not called yet). */
VPPS_API vpps_status vpps_param_gradient(vpps_model *model, vpps_param param, vpps_gradient *out);

/* The Euclidean norm of the model's copy of a parameter's gradient; VPPS_NO_PARAM: of all parameters together. Fails with
 * ARGUMENT. */
VPPS_API vpps_status vpps_gradient_norm(const vpps_model *model, vpps_param param, double *out);

/* ---------------------------------------------------------------- a training step in two halves
 *
 * Forward gives the values of nodes; the caller goes on from these values, anywhere, to a loss of its own; and backward goes on from the
 * loss's gradients with respect to them. So a graph is a layer of another framework's network.
 *
 *     vpps_step_forward(h, g, VPPS_REQUEST(.n_values = 1, .values = &y, .value_outs = &value,
 *                                          .n_gradients = 1, .gradients = &x, .gradient_outs = &dx));
 *     ...the caller computes with `value`, and finds dy...
 *     vpps_step_backward(h, 1, &dy);             adds to the parameters' gradients, and fills in dx
 *     vpps_update(h);
 *
 * Forward runs once: its records stay in the device's memory between the halves, and backward applies the masks of dropout that forward drew.
 * The gradients are those of vpps_backward for the loss sum over i of <values[i], gradients[i]>: two vpps_backward, or two steps, or one of
 * each, add up until vpps_update.
 *
 * Between the halves the step is open. A handle has one open step, and until it is closed every other call with the handle fails with STATE
 * and a message that names the step, but for vpps_handle_destroy and the calls that only look: vpps_handle_stats, vpps_handle_trials,
 * vpps_kept, vpps_kept_shape, and tracing. Steps are numbered from 1. Graphs may be built meanwhile, and handles for inference are not
 * concerned. */

/* The forward half, in training mode: dropout is on, drawn as in vpps_backward. When the call returns, the values of request->values are in
 * request->value_outs, the step is open, and the graph may be cleared. `values` are the nodes whose gradients vpps_step_backward takes: any
 * nodes of the graph, of any shapes, also inputs, lookups and parameters; a node may be named twice, and then has the sum of two gradients.
 * `gradients` are the nodes whose gradients it gives; gradient_outs, which stay the caller's, are filled in there. With no_parameters the
 * parameters' gradients are not computed. vpps_keep works as for vpps_forward.
 *
 * The step is one wave of one slice, whatever the options say, since all records stay. Fails as vpps_backward does, with POOL if the pool is
 * too small for that (the message tells how many bytes would do), and with ARGUMENT (the request is NULL or names no values). With a
 * communicator a process may name none: it has no part in the step. Where tables are shared out, all processes call it together. */
VPPS_API vpps_status vpps_step_forward(vpps_handle *h, vpps_graph *g, const vpps_request *request);

/* The backward half. gradients[i] has as many floats as the step's value i, column after column; NULL stands for zeros. n is the number of
 * the step's values. Returns as vpps_backward does: before the batch is finished, or, if the step named `gradients`, when these are in
 * gradient_outs. Then the step is closed. In vpps_sync_latest_loss, and in the sum that is the update's loss, the step's loss counts as 0; if a
 * given gradient is NaN or infinite, as NaN, so that vpps_update refuses, skips or ignores it by options.nonfinite.
 *
 * Fails with STATE (no step is open), ARGUMENT (another n; NULL), MEMORY: then the step stays open; and as vpps_fb does where the handle is
 * useless afterwards. */
VPPS_API vpps_status vpps_step_backward(vpps_handle *h, uint32_t n, const float *const *gradients);

/* Gives the open step up: its forward half has changed nothing. Fails with STATE (no step is open). */
VPPS_API vpps_status vpps_step_drop(vpps_handle *h);

/* Has the latest batch finished? Never blocks. *done tells; *loss (may be NULL) is set only when it is true. */
VPPS_API vpps_status vpps_poll_loss(vpps_handle *h, bool *done, float *loss);

/* Waits for the latest batch; its loss (may be NULL). Fails with STATE when no batch was ever enqueued, or with that batch's error. */
VPPS_API vpps_status vpps_sync_latest_loss(vpps_handle *h, float *loss);

/* Inference: computes the n given nodes and copies their values to outs[i] (rows * cols floats, column after column). It also computes
 * the nodes that vpps_keep named; n may be 0 if there are any. No gradients, no update, dropout off. Waits for the batch in flight first.
 * Fails as vpps_fb does. */
VPPS_API vpps_status vpps_forward(vpps_handle *h, vpps_graph *g, uint32_t n, const vpps_node *nodes,
                                  float *const *outs);

/* ---------------------------------------------------------------- values that stay
 *
 * A node's value outlives its graph on the device, and enters later graphs without a way through the host: the state that truncated
 * backpropagation through time carries from window to window, the encoder's states that a decoder reads again at every word, a
 * chain that grows by a word with every question.
 *
 *     vpps_keep(h, g, state, &kept);             the node's value is to stay
 *     vpps_fb(h, g, loss, NULL);                 or vpps_backward, or vpps_forward: computes it
 *     vpps_graph_clear(g);
 *     x = vpps_kept(g, h, kept);                 reads it in another graph, as often as wanted
 *     vpps_release(h, kept);                     when no graph that reads it will run any more
 *
 * A kept value is a constant: no gradient flows into it (PyTorch: detach), and it stays as it was when parameters change. It belongs
 * to the handle; vpps_handle_destroy releases all. These are calls with the handle: one thread at a time makes them. */

/* Keeps the value of x, of any shape, on the device when the next vpps_fb, vpps_backward, vpps_step_forward or vpps_forward with this handle
 * runs the graph;
 * *out is its number. If the graph is cleared before that, there is nothing to read. A run that fails with POOL or MEMORY keeps nothing,
 * and may be made again. Memory is taken now: fails with POOL where options.keep_bytes are in use (vpps_stats tells both), ARGUMENT (no
 * such node), STATE (a cell is being recorded), MEMORY, and with the graph's error; then *out is VPPS_NO_VALUE. */
VPPS_API vpps_status vpps_keep(vpps_handle *h, vpps_graph *g, vpps_node x, vpps_value *out);

/* The same for numbers in the host's memory, column after column, which are copied; the value can be read at once. Waits for the batch in
 * flight. Fails likewise, and with ARGUMENT (no elements, or 2^22 and more). */
VPPS_API vpps_status vpps_keep_data(vpps_handle *h, uint32_t rows, uint32_t cols, const float *data, vpps_value *out);

/* A node that reads a kept value. The graph then runs with this handle alone. The value may be in the making: its batch is
 * always over when a later one runs. Fails (sticky) with STATE (not a value of this handle, or one that was released; a cell is
 * being recorded), MEMORY; and vpps_fb and the like with STATE, where the value has been released since, or never computed. */
VPPS_API vpps_node vpps_kept(vpps_graph *g, vpps_handle *h, vpps_value value);

/* Copies a kept value to the host, column after column, waiting for the batch in flight; its shape, either may be NULL. Fail with
 * STATE (not a value of this handle, or released; reading: never computed), DEVICE. */
VPPS_API vpps_status vpps_read_kept(vpps_handle *h, vpps_value value, float *out);
VPPS_API vpps_status vpps_kept_shape(vpps_handle *h, vpps_value value, uint32_t *rows, uint32_t *cols);

/* Releases a value: its memory may be reused. Never waits; a batch in flight that reads the value is not disturbed. VPPS_NO_VALUE is
 * allowed. Fails with STATE (not a value of this handle, or released before). */
VPPS_API vpps_status vpps_release(vpps_handle *h, vpps_value value);

/* Where tables are shared out over processes, each calls this when it has no more calls of vpps_forward to make, before any of
 * vpps_fb, vpps_save or vpps_load: it hands out entries to those that still have some, and returns when none has. Elsewhere it
 * does nothing. Fails as vpps_forward does. */
VPPS_API vpps_status vpps_forward_end(vpps_handle *h);

/* Take effect with the next step, without re-specialising. Fail with ARGUMENT when negative or not finite; momentum is 0 to 1. */
VPPS_API vpps_status vpps_set_learning_rate(vpps_handle *h, float lr);
VPPS_API vpps_status vpps_set_momentum(vpps_handle *h, float momentum);
VPPS_API vpps_status vpps_set_weight_decay(vpps_handle *h, float weight_decay);

/* Numbers of a parameter group, which replace those of the options' optimizer. NAN: the optimizer's own. */
typedef struct vpps_param_group {
    size_t size; /* sizeof(vpps_param_group) */
    float lr, momentum, weight_decay;
} vpps_param_group;

/* Puts these n parameters into a group of such numbers, from the next step on; `group` NULL: takes them back to the optimizer's. To keep
 * parameters as they are, freeze them (vpps_freeze), which also saves the making of their gradients. With a communicator all processes call
 * it alike. Fails with ARGUMENT (a parameter that the model has not; a number out of its range), MEMORY. */
VPPS_API vpps_status vpps_set_param_group(vpps_handle *h, uint32_t n, const vpps_param *params,
                                          const vpps_param_group *group);

/* Waits for the batch in flight, then copies parameters and optimiser state from the device to the model (read), or from
 * the model to the device (write); state that the model lacks, since none was read or loaded, becomes zero. Fails with what made the handle useless (then the model is as it was), DEVICE, MEMORY. */
VPPS_API vpps_status vpps_read_parameters(vpps_handle *h);
VPPS_API vpps_status vpps_write_parameters(vpps_handle *h);

typedef struct vpps_stats {
    size_t size;             /* sizeof(vpps_stats) */
    uint64_t batches;        /* training batches finished, since the model began (checkpoints carry it on) */
    uint64_t skipped;        /* of those, batches not applied since loss or gradient was not finite */
    uint64_t nodes;          /* of the latest training batch, and so are those below */
    uint64_t levels, phases; /* phase: what runs between two barriers */
    uint64_t steps;          /* forward: vertices of one cell that run together; where the device runs nodes, 0 */
    uint64_t instructions;   /* an instruction shared by all VPs counts once */
    uint64_t script_bytes;
    uint64_t pool_bytes; /* parameters and the batch's tensors */
    uint64_t
        live_bytes; /* of pool_bytes, the most that parameters, and tensors that live at once, take: with so many waves no less
                          * suffices; where the device runs nodes, 0 */
    uint64_t host_ns, device_ns;                          /* making the script; running it */
    uint64_t total_nodes, total_host_ns, total_device_ns; /* over all training batches of this handle */
    uint64_t peak_pool_bytes;
    uint32_t vps;
    uint32_t groups, waves, slices; /* of the latest batch: see vpps_options; where a device has none, 1 */
    bool caller_works;
    bool decides;          /* does the device run argmax and lookup_at, with these tables? */
    const char *precision; /* of products: "fp32", "bf16x3", "bf16" */
    const char *
        precision_unit; /* which instructions make them: "generic", "avx2", "avx512", "neon", "avx512bf16", "amx"; on a GPU "fp32", "mma" */
    const char *device; /* its name: "cpu", "cuda", "simt" */
    const char *policy; /* of the latest batch */
    /* With a communicator, over all batches of this handle: time that exchanges took, of gradients and of tables' entries,
     * waiting for slower processes included; bytes that this process sent; and how much longer than the mean the slowest process
     * of a batch took until it had its gradients, as a share of the mean. */
    uint32_t rank, processes;
    uint64_t total_exchange_ns, total_sent_bytes;
    double imbalance;
    uint64_t kept_values, kept_bytes; /* of vpps_keep, that were not released yet */
    uint64_t keep_bytes;              /* the most that they may take; 0 before the first */
    /* By the device's clock: from the end of the preceding training batch to the end of this one, and how long of that the device had
     * nothing to do. 0 for the first; total: of all others. */
    uint64_t wall_ns, gap_ns, total_wall_ns, total_gap_ns;
    /* What made the gradients of matrices in the latest training batch: "kernel", VPPS's own code, "cublas" or "cublas-tf32". NULL before the
     * first. */
    const char *gradients;
} vpps_stats;

/* A number of groups, a batching policy; GPU: one way to lay the model out; CPU: a way to share out stages or to make products; and
 * how fast it was. */
#define VPPS_TRIAL_STATE_TABLE(X)                                                                                      \
    X(WAITING, "waiting")   /* not tried (yet) */                                                                      \
    X(REJECTED, "rejected") /* its kernel spills registers, or could not be made */                                    \
    X(MEASURED, "measured")                                                                                            \
    X(CURRENT, "current")       /* in use: being measured, or chosen */                                                \
    X(REMEMBERED, "remembered") /* in use: chosen by an earlier run */

typedef enum vpps_trial_state {
#define X(id, name) VPPS_TRIAL_##id,
    VPPS_TRIAL_STATE_TABLE(X)
#undef X
} vpps_trial_state;

typedef struct vpps_trial {
    size_t size;        /* sizeof(vpps_trial) */
    uint32_t groups;    /* of a trial of groups; 0: of another */
    const char *policy; /* of a trial of policies; else NULL */
    const char *split;  /* CPU: of a trial of stages; else NULL. VPs share out "rows", "vertices", or by the "size" of a
                           cell's matrices one or the other */
    /* CPU: of a trial of products with matrices of 256 rows and columns, by one core; else NULL. "forward": the matrix, or a
     * transposed copy of it, times `vectors` vectors at a time; "rows": the transposed matrix, read as it lies; "gradient": the
     * matrix's gradient from so many vectors; "copy": making the transposed copy, or packing the weights in bf16. */
    const char *product;
    const char *unit;      /* of such a trial: the instructions, as vpps_stats names them */
    const char *precision; /* "fp32", "bf16x3", "bf16" */
    uint32_t vectors;
    bool far;             /* the matrices do not fit the core's own cache */
    double ns_per_vector; /* of "copy": ns */
    /* The remaining members, except state, batches and ns_per_node, are set on a GPU only. */
    uint32_t rpw, threads;
    vpps_trial_state state;
    uint32_t batches;    /* measured */
    double ns_per_node;  /* device time, the median of the batches; 0: not measured */
    uint32_t registers;  /* of a thread */
    double load_seconds; /* making the kernel, or taking it from the cache */
    vpps_gradients gradients;
} vpps_trial;

/* The trials of the profile, at most *n, in the order of trying; *n is set to how many there are. *done: the choice is
 * made. A device without choices has none. The first one's size, which the caller sets, is that of all; `out` may be NULL where
 * *n is 0. */
VPPS_API vpps_status vpps_handle_trials(vpps_handle *h, vpps_trial *out, uint32_t *n, bool *done);

/* Never waits: of a batch in flight only its script is counted. */
VPPS_API vpps_status vpps_handle_stats(vpps_handle *h, vpps_stats *out);

/* Writes the script that vpps_fb would run for this graph as text to `file`, without running it. Fails as vpps_fb
 * does, and with IO. */
VPPS_API vpps_status vpps_disassemble(vpps_handle *h, vpps_graph *g, vpps_node loss, FILE *file);

/* ---------------------------------------------------------------- tracing
 *
 * With options.trace_events, a handle notes what its caller's thread, its device and, on the CPU, each virtual processor
 * did when: tasks, phases and waits. Batches are noted whole, until one might exceed the number of events; no more
 * are then. On the devices cuda and simt launches are noted, with the time that the device took by its own clock, and
 * nothing inside them. */

/* Begins a span of the trace, up to vpps_trace_end, for work of the calling program, as building a graph. `name`: at most 31 bytes are
 * kept. Parts may lie in each other, 16 deep. Without a trace both do nothing. Fail with STATE (too deep; no part to end), ARGUMENT (no
 * name). */
VPPS_API vpps_status vpps_trace_begin(vpps_handle *h, const char *name);
VPPS_API vpps_status vpps_trace_end(vpps_handle *h);

/* Waits for the batch in flight and writes what was noted so far, as JSON in Chrome's trace event format, which
 * https://ui.perfetto.dev opens. Fails with STATE (there is no trace), IO. */
VPPS_API vpps_status vpps_trace_write(vpps_handle *h, FILE *file);

/* ---------------------------------------------------------------- checkpoints (safetensors)
 *
 * One file holds parameters (tensor NAME), optimiser state (tensors optimizer.K/NAME) and string metadata, among it
 * how often each parameter's state was updated, the number of batches, the dropout seed and a checksum of all tensors. Writing is atomic:
 * temporary file, fsync, rename, fsync of the folder. A file that is replaced keeps its mode. A symbolic link is followed, unless it is
 * another user's in a sticky folder that everybody may write to, as /tmp; what is no regular file (a FIFO, /dev/stdout) is written
 * directly. */

typedef struct vpps_metadata {
    const char *key, *value; /* UTF-8; keys that begin with "vpps." are the library's own */
} vpps_metadata;

/* Pulls and writes. Fails with IO (message names the path and the system's reason), ARGUMENT. */
VPPS_API vpps_status vpps_save(vpps_handle *h, const char *path, const vpps_metadata *metadata, uint32_t n);

/* Reads into the model and pushes. All or nothing: on failure neither changes. Optimiser state is taken when it fits
 * the handle's optimiser, else it starts at zero; where a file of an older version does not say how often state was updated, it counts as
 * updated by every batch. Fails with IO, FORMAT (not safetensors, truncated, a tensor
 * missing or of another shape, tensors without the checksum that the file says), MEMORY. */
VPPS_API vpps_status vpps_load(vpps_handle *h, const char *path);

/* One metadata value of a checkpoint, as a string the caller frees; *out NULL when the key is absent. Fails with IO,
 * FORMAT, MEMORY. */
VPPS_API vpps_status vpps_checkpoint_metadata(const char *path, const char *key, char **out);

/* ---------------------------------------------------------------- trained cells as C
 *
 * vpps_export_c writes one C99 file with a function for each of the model's cells. It needs libc and libm alone, allocates nothing, has
 * no globals but constant weights, and any number of threads may call it. The caller's own recursion or loop is the schedule:
 *
 *     int net_inner(const float *child0, const float *child1, float *out, float *pushed);
 *
 *   child0, child1 ...    of each child that is gathered by number: what it scattered, its `out`
 *   list0, n0, list1 ...  of each list: how many members, and, if they are gathered, an array of what each of them scattered
 *   pull0 ..., pulls0 ... what is pulled; of a list, an array with a pointer for each member
 *   index0 ...            the pulled indices
 *   scratch0 ...          where a list's members need it: PREFIX_CELL_SCRATCH0 floats for each of list 0
 *   out, pushed           PREFIX_CELL_OUT and PREFIX_CELL_PUSHED floats: what the vertex scatters, and pushes. They overlap nothing else.
 *
 * A cell without lists and without a condition has a second function, of n vertices that do not need each other: PREFIX_CELL_many(n,
 * child0_of, ..., out_of, pushed_of), whose arrays have an entry for each vertex. It reads weights once for several vertices.
 *
 * Matrices lie column after column. A parameter that would not be read, or an array of no floats, is left out. Output k begins at
 * PREFIX_CELL_OUTk, which is the same for all cells of the model; pushed value k at PREFIX_CELL_PUSHk. A function returns PREFIX_OK,
 * PREFIX_INDEX (an index is out of range) or PREFIX_MEMBERS (a list has fewer or more members than the cell takes), and writes nothing
 * then. Where a condition does not hold, the function hands on what the cell says; a loop is the caller's, as long as the condition holds.
 *
 * A pushed scalar that depends on a label (an index other than a lookup's) is a loss, and left out with its label. Dropout is off. */

typedef enum vpps_c_precision {
    VPPS_C_FP32, /* weights as floats, in hexadecimal: results differ from vpps_forward's in the last bits at most */
    VPPS_C_BF16, /* matrices and tables rounded to bf16, vectors as floats; all sums in fp32 */
    VPPS_C_INT8  /* matrices as integers with a scale for each row, tables with one for each entry; vectors as floats */
} vpps_c_precision;

typedef struct vpps_c_export {
    size_t size;        /* sizeof(vpps_c_export) */
    const char *prefix; /* of all names that are not static; NULL: "net" */
    const char *omit;   /* a word that names of functions do without, where a cell's name begins with it; may be NULL */
    FILE *header;       /* receives prototypes and constants; NULL: they are in the file itself */
    const char *header_name; /* with a header: what the file includes it by */
    FILE *weights;           /* receives the weights; NULL: they are in the file itself */
    vpps_c_precision precision;
    bool losses; /* losses, too */
} vpps_c_export;

/* Writes the model's cells, with the host's copy of the parameters (after training: vpps_read_parameters). With `weights` every function
 * has as its first parameter `const void *weights`: the bytes of that file, mapped or linked (.incbin), at a multiple of 64, on a machine
 * of the same byte order; int PREFIX_weights_fit(const void *weights, size_t bytes) tells whether they are this text's. `options` NULL
 * means the defaults. Fails with ARGUMENT (no cells; a prefix that is no identifier; an operation that cannot be written as C, by its name;
 * a parameter that is not finite, or shared out over processes), IO, MEMORY; files may then be half written. */
VPPS_API vpps_status vpps_export_c(const vpps_model *model, FILE *out, const vpps_c_export *options);

#ifdef __cplusplus
}
#endif
#endif
