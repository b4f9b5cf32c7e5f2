/* model.h - parameters, their host copies and optimiser state. */
#ifndef VPPS_MODEL_H
#define VPPS_MODEL_H

#include "base/base.h"

enum {
    VPPS_MAX_STATES = 2,
#define X(id, name, states) +1
    VPPS_OPTIMIZERS = VPPS_OPTIMIZER_TABLE(X) /* how many there are */
#undef X
};

typedef struct vpps_parameter_data {
    char *name;
    vpps_param_kind kind;
    uint32_t count, rows, cols;
    bool frozen;
    float *values; /* count * rows * cols; a matrix row after row, a lookup entry column after column */
    float *states[VPPS_MAX_STATES]; /* optimiser state in the same order; NULL until pulled or loaded */
} vpps_parameter_data;

struct vpps_model {
    vpps_parameter_data *params;
    size_t n_params, capacity;
    uint64_t random;  /* state of the initialisers' stream */
    uint64_t batches; /* training batches so far: numbers batches in messages, optimiser steps, dropout masks */
    uint32_t handles; /* alive */
    struct vpps_cell_data **cells; /* graph.h */
    size_t n_cells, cells_capacity;
};

/* Frees the model's cells (cell.c). */
void vpps_free_cells(vpps_model *model);

static inline size_t vpps_param_elems(const vpps_parameter_data *p) { return (size_t)p->count * p->rows * p->cols; }

#endif
