/* model.h - a model's parameters: their copies on the host, and the optimizer's state for each. */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

enum {
    VPPS_MAX_STATES = 2,
#define X(id, name, states, lr) +1
    VPPS_OPTIMIZERS = VPPS_OPTIMIZER_TABLE(X) /* number of optimizers */
#undef X
};

typedef struct vpps_parameter_data {
    char *name;
    vpps_param_kind kind;
    uint32_t count, rows, cols;
    bool frozen;
    /* If the entries of a table are divided among processes: this process's rank, and the number of processes. Else 0 and 1. */
    uint32_t rank, shards;
    /* count * rows * cols values: a matrix row after row, a lookup table's entry column after column. If the entries are divided among
     * processes, only entries rank, rank + shards, ... are here, and the device trains them in this memory. */
    float *values;
    /* Optimizer state in the order of the values. NULL, which means zeros, until state is read from a device or loaded. */
    float *states[VPPS_MAX_STATES];
    uint64_t updates; /* number of updates since the optimizer's state was zero */
    /* The host's copy of the gradient, made by the latest vpps_read_gradients, in the order of the values. Of a lookup table: only the
     * gradients of n_entries entries, one after the other. */
    float *gradient;
    uint32_t *entries; /* ascending numbers of the table entries with a gradient */
    uint32_t n_entries;
    bool has_gradient;
} vpps_parameter_data;

struct vpps_model {
    vpps_parameter_data *params;
    size_t n_params;
    uint64_t random;  /* state of the generator of random initial values */
    uint64_t batches; /* number of training batches so far; messages and dropout masks number batches by it */
    vpps_optimizer_kind optimizer; /* kind of optimizer whose state the parameters hold */
    atomic_uint handles;           /* number of existing handles of the model */
    atomic_uint trainers;
    /* for lookup tables declared later: this process's number, and the number of processes that divide the tables among them */
    uint32_t rank, shards;
    struct vpps_cell_data **cells; /* recorded cells: graph.h */
    size_t n_cells;
};

/* Fails with ARGUMENT if a name is empty, no UTF-8, or has control characters; `what` says in the message what the name is for. */
vpps_status vpps_check_name(const char *what, const char *name);

/* Frees the model's cells. */
void vpps_free_cells(vpps_model *model);

/* Return the number of elements of a parameter, and of one of its entries; a matrix or a vector has a single entry. */
static inline size_t vpps_param_elems(const vpps_parameter_data *p) { return (size_t)p->count * p->rows * p->cols; }
static inline size_t vpps_entry_elems(const vpps_model *m, vpps_param p) {
    return (size_t)m->params[p].rows * m->params[p].cols;
}

/* Tell whether a table's entries are divided among processes (vpps_is_sharded), and how many entries and elements this process holds. */
static inline bool vpps_is_sharded(const vpps_parameter_data *p) { return p->shards > 1; }
static inline uint32_t vpps_entries_held(const vpps_parameter_data *p) {
    return p->shards > 1 ? (p->count + p->shards - 1 - p->rank) / p->shards : p->count;
}
static inline size_t vpps_elems_held(const vpps_parameter_data *p) {
    return (size_t)vpps_entries_held(p) * p->rows * p->cols;
}

/* From `entries`, the n entries of a lookup table from number `first` on, copies those that this process holds to `held`. */
void vpps_take_entries(const vpps_parameter_data *p, const float *entries, uint32_t first, uint32_t n, float *held);

/* Makes room for the host's copy of a matrix's or vector's gradient, and fills it with zeros unless has_gradient. Fails with MEMORY. */
vpps_status vpps_need_gradient(vpps_parameter_data *p, bool has_gradient);

/* Copies the gradients of n entries of a lookup table, sorted by entry number. Fails with MEMORY. */
vpps_status vpps_take_entry_gradients(vpps_parameter_data *p, uint32_t n, const uint32_t *entries,
                                      const float *gradients);

/* Returns whether a matrix or vector has a gradient that is not zero in the host's copy, read from the device or written by the user. */
bool vpps_writes_gradient(const vpps_parameter_data *p);

/* Makes `kind` the optimizer to which the parameters' state belongs, and drops the state of another optimizer. */
void vpps_take_over_states(vpps_model *model, vpps_optimizer_kind kind);

/* Allocates `states` zeroed optimizer arrays for each parameter, or only for lookup tables that processes divide. */
vpps_status vpps_need_states(vpps_model *model, uint32_t states, bool shared_out_alone);
