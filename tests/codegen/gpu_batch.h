/* gpu_batch.h - a training batch that is scheduled for a GPU, without a GPU: the cells of which a kernel is to be made. */
#pragma once

#include "common/random_graph.h"
#include "common/training.h"
#include "models.h"
#include "runtime/gpu/gpu.h"

/* How the model is laid out. */
typedef struct gpu_shape {
    uint32_t sms, groups, rpw, threads;
} gpu_shape;

typedef struct gpu_batch {
    vpps_machine machine;
    vpps_gpu_layout layout;
    vpps_model *model;
    const vpps_batch *batch;
    uint32_t threads;

    rg_built drawn; /* what the model consists of: drawn cells, or a network */
    const network *net;
    void *instance;
    vpps_graph *g;
    vpps_handle *handle;
} gpu_batch;

/* Draws a model, some of whose sizes may be large. */
void gpu_batch_draw(gpu_batch *b, const gpu_shape *shape, uint64_t seed);

/* Makes a Tree-LSTM on a small tree. */
void gpu_batch_tree_lstm(gpu_batch *b, const gpu_shape *shape, uint32_t hidden, uint32_t embed);

void gpu_batch_close(gpu_batch *b);

/* Returns a plan of the batch's cells, to be filled in by vpps_specialise or vpps_generate_kernel. */
vpps_kernel_plan gpu_batch_plan(const gpu_batch *b);

/* Returns what vpps_specialise must know; the caller adds the rest. */
vpps_specialiser gpu_batch_specialiser(const gpu_batch *b);

static inline uint32_t rows_of(const gpu_batch *b, const vpps_resident *m) {
    return m->transposed ? b->model->params[m->matrix].cols : b->model->params[m->matrix].rows;
}
static inline uint32_t columns_of(const gpu_batch *b, const vpps_resident *m) {
    return (m->transposed ? b->model->params[m->matrix].rows : b->model->params[m->matrix].cols) / m->shares;
}

static inline const vpps_compiled_cell *gpu_batch_cell(const gpu_batch *b, uint32_t i) { return b->batch->cells[i]; }
