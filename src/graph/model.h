/* model.h - parameters, their host copies and optimiser state. */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

enum {
    VPPS_MAX_STATES = 2,
#define X(id, name, states, lr) +1
    VPPS_OPTIMIZERS = VPPS_OPTIMIZER_TABLE(X) /* how many there are */
#undef X
};

typedef struct vpps_parameter_data {
    char *name;
    vpps_param_kind kind;
    uint32_t count, rows, cols;
    bool frozen;
    uint32_t rank,
        shards; /* lookup: of the processes that share it out, which is this; 0 or 1: it is here as a whole */
    /* count * rows * cols; a matrix row after row, a lookup entry column after column. Of a table that is shared out the
     * entries rank, rank + shards, ... alone; a device trains these, and has no copy. */
    float *values;
    float *states
        [VPPS_MAX_STATES]; /* optimiser state in the same order; NULL, which means zeros, until pulled or loaded */
    uint64_t updates;      /* how often these were updated, since they were zero */
    /* The gradients read last (vpps_read_gradients): of a matrix or vector in the order of its values; of a lookup table of the
     * n_entries entries that have one, entry after entry. */
    float *gradient;
    uint32_t *entries; /* their numbers, ascending */
    uint32_t n_entries;
    bool has_gradient;
} vpps_parameter_data;

struct vpps_model {
    vpps_parameter_data *params;
    size_t n_params;
    uint64_t random;               /* state of the initialisers' stream */
    uint64_t batches;              /* training batches so far: numbers batches in messages, dropout masks */
    vpps_optimizer_kind optimizer; /* of which the parameters have state */
    atomic_uint handles;           /* alive; of these, that train: at most one */
    atomic_uint trainers;
    uint32_t rank, shards;         /* of lookup tables to be declared */
    struct vpps_cell_data **cells; /* graph.h */
    size_t n_cells;
};

/* Is it a name: not empty, UTF-8, without control characters? `what` has it, for the message. Fails with ARGUMENT. */
vpps_status vpps_check_name(const char *what, const char *name);

/* Frees the model's cells (cell.c). */
void vpps_free_cells(vpps_model *model);

static inline size_t vpps_param_elems(const vpps_parameter_data *p) { return (size_t)p->count * p->rows * p->cols; }

/* Is it shared out over processes? Of its entries, how many are here; of its elements. */
static inline bool vpps_is_sharded(const vpps_parameter_data *p) { return p->shards > 1; }
static inline uint32_t vpps_entries_held(const vpps_parameter_data *p) {
    return p->shards > 1 ? (p->count + p->shards - 1 - p->rank) / p->shards : p->count;
}
static inline size_t vpps_elems_held(const vpps_parameter_data *p) {
    return (size_t)vpps_entries_held(p) * p->rows * p->cols;
}

/* Of an array of so many entries from entry `first` on, those that are here, into the entries here. */
void vpps_take_entries(const vpps_parameter_data *p, const float *entries, uint32_t first, uint32_t n, float *held);

/* Makes room for a matrix's or vector's gradient; zeros, unless it has one, which the caller writes. Fails with MEMORY. */
vpps_status vpps_need_gradient(vpps_parameter_data *p, bool has_gradient);

/* Copies the gradients of these entries of a lookup table, in the entries' order. Fails with MEMORY. */
vpps_status vpps_take_entry_gradients(vpps_parameter_data *p, uint32_t n, const uint32_t *entries,
                                      const float *gradients);

/* Has a matrix or vector a gradient in the model's copy, read from the device or written by the user? */
bool vpps_writes_gradient(const vpps_parameter_data *p);

/* The parameters' state is of an optimiser of this kind from here on: state of another kind is dropped. */
void vpps_take_over_states(vpps_model *model, vpps_optimizer_kind kind);

/* Gives parameters, or tables that are shared out alone, so many arrays of state; those that they lack are zero. Fails with MEMORY. */
vpps_status vpps_need_states(vpps_model *model, uint32_t states, bool shared_out_alone);
