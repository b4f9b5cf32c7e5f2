/* model.h - parameters, their copies on the host, and optimizer state. */
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
    /* A lookup table shared out over processes: this process's number, and the number of processes; 0 or 1: the table is whole. */
    uint32_t rank, shards;
    /* count * rows * cols values; a matrix row after row, a lookup entry column after column. A table that is shared out over processes
     * has the entries rank, rank + shards, ... only, which the device trains in place. */
    float *values;
    /* Optimizer state in the order of the values; NULL means zeros, until it is read from a device or loaded. */
    float *states[VPPS_MAX_STATES];
    uint64_t updates; /* number of updates of the state since it was zero */
    /* The gradient copied by the latest vpps_read_gradients: of a matrix or vector in the order of its values; of a lookup table of the
     * n_entries entries that have a gradient, entry after entry. */
    float *gradient;
    uint32_t *entries; /* numbers of the entries with a gradient, ascending */
    uint32_t n_entries;
    bool has_gradient;
} vpps_parameter_data;

struct vpps_model {
    vpps_parameter_data *params;
    size_t n_params;
    uint64_t random;               /* state of the initialisers' random stream */
    uint64_t batches;              /* training batches so far; the number of a batch in messages and dropout masks */
    vpps_optimizer_kind optimizer; /* the optimizer whose state the parameters have */
    atomic_uint handles;           /* number of handles that exist */
    atomic_uint trainers;
    uint32_t rank, shards;         /* rank and number of processes for lookup tables declared later */
    struct vpps_cell_data **cells; /* recorded cells: graph.h */
    size_t n_cells;
};

/* Fails with ARGUMENT if a name is empty, no UTF-8, or has control characters; `what` is its title in the message. */
vpps_status vpps_check_name(const char *what, const char *name);

/* Frees the model's cells. */
void vpps_free_cells(vpps_model *model);

static inline size_t vpps_param_elems(const vpps_parameter_data *p) { return (size_t)p->count * p->rows * p->cols; }

/* Return whether a parameter is shared out over processes; the number of entries that this process has; the number of their elements. */
static inline bool vpps_is_sharded(const vpps_parameter_data *p) { return p->shards > 1; }
static inline uint32_t vpps_entries_held(const vpps_parameter_data *p) {
    return p->shards > 1 ? (p->count + p->shards - 1 - p->rank) / p->shards : p->count;
}
static inline size_t vpps_elems_held(const vpps_parameter_data *p) {
    return (size_t)vpps_entries_held(p) * p->rows * p->cols;
}

/* Copies, of an array of n entries from entry `first` on, those that this process has to their places in `held`. */
void vpps_take_entries(const vpps_parameter_data *p, const float *entries, uint32_t first, uint32_t n, float *held);

/* Makes room for a matrix's or vector's gradient, which the caller writes if has_gradient; else it is zeros. Fails with MEMORY. */
vpps_status vpps_need_gradient(vpps_parameter_data *p, bool has_gradient);

/* Copies the gradients of n entries of a lookup table, in the order of the entries. Fails with MEMORY. */
vpps_status vpps_take_entry_gradients(vpps_parameter_data *p, uint32_t n, const uint32_t *entries,
                                      const float *gradients);

/* Returns whether a matrix or vector has a gradient in the model's copy, read from the device or written by the user. */
bool vpps_writes_gradient(const vpps_parameter_data *p);

/* Makes `kind` the optimizer of the parameters' state, and drops state of another kind. */
void vpps_take_over_states(vpps_model *model, vpps_optimizer_kind kind);

/* Gives each parameter, or only tables that are shared out, `states` arrays of state; missing ones are zero. Fails with MEMORY. */
vpps_status vpps_need_states(vpps_model *model, uint32_t states, bool shared_out_alone);
