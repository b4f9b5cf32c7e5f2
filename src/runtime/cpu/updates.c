/* updates.c - the gradient's norm and the optimiser's step. Each thread updates rows and entries that it owns. */
#include "runtime/cpu/outer.h"

#include <float.h>
#include <math.h>

/* Values, gradient and optimiser states of some parameters, each as contiguous floats. */
typedef struct run {
    float *w, *g, *s[VPPS_MAX_STATES];
    size_t n;
} run;

static float *in_pool(const vpps_cpu *cpu, uint32_t at, size_t elems) {
    return at == VPPS_NO_OFFSET ? NULL : cpu->pool + at + elems;
}

static run run_of(const vpps_vp *vp, uint32_t param) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_rows rows = vpps_rows_of_vp(cpu, param, vp->index);
    return (run){
        cpu->pool + cpu->plan.values[param] + rows.first,
        cpu->pool + cpu->plan.gradients[param] + rows.first,
        {in_pool(cpu, cpu->plan.states[0][param], rows.first), in_pool(cpu, cpu->plan.states[1][param], rows.first)},
        rows.end - rows.first};
}

/* Returns the values and states of a table entry, with the given gradient. */
static run run_of_entry(const vpps_cpu *cpu, uint32_t param, uint32_t row, float *gradient) {
    const vpps_parameter_data *data = &cpu->model->params[param];
    const size_t words = (size_t)data->rows * data->cols;
    if (vpps_is_sharded(data)) {
        const size_t at = row / data->shards * words;
        return (run){data->values + at,
                     gradient,
                     {data->states[0] ? data->states[0] + at : NULL, data->states[1] ? data->states[1] + at : NULL},
                     words};
    }
    const size_t at = row * words;
    return (run){cpu->pool + cpu->plan.values[param] + at,
                 gradient,
                 {in_pool(cpu, cpu->plan.states[0][param], at), in_pool(cpu, cpu->plan.states[1][param], at)},
                 words};
}

/* Returns the sum of squares of rows [first, end) of an operand, over all its vectors in the block. */
static double squares(vpps_vp *vp, const vpps_block_view *view, const vpps_operand *o, vpps_rows rows) {
    const vpps_cpu *cpu = vp->cpu;
    uint32_t first;
    const uint32_t n = vpps_outer_vectors(view, o, 0, view->block->n, &first);
    vpps_point_to(cpu, view, o, first, n / o->cols, vp->pointers);
    double sum = 0;
    for (uint32_t i = 0; i < n && rows.first < rows.end; i++)
        sum += cpu->kernels->sum_squares(rows.end - rows.first, vp->pointers[i] + rows.first);
    return sum;
}

/* Returns an upper bound of the squared norms of gradients that the update will compute for a block (vertices of one
 * cell): |sum of dy x^T|^2 <= (sum of |dy|^2) * (sum of |x|^2). Gradients are finite if the bound is. */
static double bounds(vpps_vp *vp, const vpps_block_view *view) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    double total = 0, *sums = vp->sums;
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (vp->by_update[o.param] != cpu->launch || !o.x) continue;
        double *d = sums + 2 * (size_t)i, *x = d + 1;
        *d = *x = -1; /* -1: the sums of squares of dy and x are not computed yet */
        const vpps_rows own = vpps_rows_of_vp(cpu, o.param, vp->index);
        const vpps_rows all = {0, cpu->model->params[o.param].cols};
        for (uint32_t j = 0; j < i; j++) {
            const vpps_outer before = vpps_outer_of(c, j);
            if (vp->by_update[before.param] != cpu->launch || !before.x) continue;
            if (vpps_same_value(before.dy, o.dy)) *d = sums[2 * j];
            if (vpps_same_value(before.x, o.x)) *x = sums[2 * j + 1];
        }
        if (*d < 0) *d = squares(vp, view, o.dy, own);
        if (*x < 0) *x = squares(vp, view, o.x, all);
        total += sqrt(*d * *x) <= (double)FLT_MAX ? *d * *x : INFINITY;
    }
    return total;
}

/* Prepares the computation of a matrix's gradient in the update: points to the vectors dy, and packs the vectors x unless `packed`. Returns
 * scratch memory for one block of the gradient. *n: number of vectors. */
static float *open_gradient(vpps_vp *vp, const vpps_block_view *view, const vpps_outer *o, bool packed, uint32_t *n) {
    const vpps_cpu *cpu = vp->cpu;
    const uint32_t k = o->x->rows;
    uint32_t first;
    *n = vpps_outer_vectors(view, o->dy, 0, view->block->n, &first);
    const float **d = vp->pointers, **xs = d + *n;
    const size_t copy = vp->copy_of[o->param];
    if (!packed && copy == VPPS_NO_COPY) vpps_point_to(cpu, view, o->x, first, *n / o->x->cols, xs);
    for (uint32_t v = 0; v < *n && !packed && copy != VPPS_NO_COPY; v++) xs[v] = vp->copies + copy + (size_t)v * k;
    if (!packed) vpps_pack_outer(vp, *n, k, xs);
    vpps_point_to(cpu, view, o->dy, first, *n / o->dy->cols, d);
    return vp->scratch + vpps_outer_floats(cpu, k);
}

/* Returns the outer product dy x^T that is a matrix's whole gradient, which the update itself computes. */
static vpps_outer outer_of(const vpps_cpu *cpu, uint32_t param, const vpps_block_view **view) {
    for (*view = cpu->batch.views;; ++*view)
        for (uint32_t i = 0; i < vpps_n_outers((*view)->cell) && (*view)->block->n; i++)
            if (vpps_outer_of((*view)->cell, i).param == param) return vpps_outer_of((*view)->cell, i);
}

/* Returns the sum of squares of this thread's rows of a matrix's gradient. A gradient that is not stored, since the
 * update computes it block by block, is computed here as well, with the same bits as if it were stored. */
static double squares_of_matrix(vpps_vp *vp, uint32_t param) {
    const vpps_cpu *cpu = vp->cpu;
    const uint32_t cols = cpu->model->params[param].cols;
    const vpps_blocks own = vpps_blocks_of(cpu, param, vp->index, cpu->n_vps);
    const bool made = vp->by_update[param] == cpu->launch;
    const vpps_block_view *view;
    const vpps_outer o = made ? outer_of(cpu, param, &view) : (vpps_outer){0};
    uint32_t n = 0;
    float *gradient = made ? open_gradient(vp, view, &o, false, &n) : NULL;
    double sum = 0;
    for (uint32_t b = 0; b < own.n; b++) {
        const vpps_matrix_block *block = &own.blocks[b];
        if (made) vpps_add_outer(vp, block, n, cols, vp->pointers, gradient, false);
        const float *g = made ? gradient : block->gradient;
        if (block->rows == block->ld) sum += cpu->kernels->sum_squares(block->ld * cols, g);
        for (uint32_t k = 0; k < cols && block->rows < block->ld; k++) /* leaves the padding out of the sum */
            sum += cpu->kernels->sum_squares(block->rows, g + k * block->ld);
    }
    return sum;
}

void vpps_vp_norm(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    const bool clip = cpu->batch.header.clip > 0;
    double sum = 0;
    for (uint32_t b = 0; b < cpu->batch.header.n_blocks; b++)
        if (cpu->batch.views[b].block->n && !clip) sum += bounds(vp, &cpu->batch.views[b]);
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        if (vp->touched[p] != cpu->sum.number && !(clip && vp->by_update[p] == cpu->launch)) continue;
        if (cpu->model->params[p].kind == VPPS_MATRIX) {
            sum += squares_of_matrix(vp, p);
        } else {
            const run r = run_of(vp, p);
            sum += cpu->kernels->sum_squares(r.n, r.g);
        }
    }
    /* gradients of sharded tables (cpu->entries) are left out: cpu->squares is the sum of their squares */
    for (uint32_t i = 0; i < cpu->batch.n_segments && !cpu->entries; i++) {
        const vpps_row_segment *s = &cpu->batch.segments[i];
        const uint32_t words = cpu->model->params[s->param].rows * cpu->model->params[s->param].cols;
        const vpps_rows own = vpps_own_entries(vp, s->n);
        for (uint32_t k = own.first; k < own.end; k++)
            sum += cpu->kernels->sum_squares(words, s->gradients + (size_t)k * words);
    }
    cpu->norms[vp->index] = sum;
}

double vpps_cpu_norm(const vpps_cpu *cpu) {
    const vpps_task_header *h = &cpu->batch.header;
    double sum = cpu->squares;
    for (uint32_t v = 0; v < cpu->n_vps && (h->guard || h->clip > 0); v++) sum += cpu->norms[v];
    return sqrt(sum);
}

/* Sets *step to the optimiser's numbers for this batch and the factor that clips gradients. Returns false if no update may follow. */
static bool prepare_step(const vpps_cpu *cpu, vpps_step *step) {
    const vpps_task_header *h = &cpu->batch.header;
    const double norm = vpps_cpu_norm(cpu);
    if (h->guard && (!isfinite(cpu->batch.loss) || !isfinite(norm))) return false;
#define X(name) .name = h->name,
    *step = (vpps_step){.kind = h->update - 1, .scale = 1, VPPS_OPTIMIZER_NUMBERS(X)};
#undef X
    if (h->clip > 0 && norm > h->clip) step->scale = (float)(h->clip / norm);
    return true;
}

/* Returns the optimiser's numbers for one parameter, which may have settings of its own. */
static vpps_step step_of(const vpps_cpu *cpu, const vpps_step *step, uint32_t param) {
    vpps_step own = *step;
    memcpy(own.corrections, cpu->batch.corrections[param], sizeof own.corrections);
    if (!cpu->batch.header.steps) return own;
    vpps_param_step numbers;
    memcpy(&numbers, cpu->batch.script + cpu->batch.header.steps + param * (sizeof numbers / sizeof *cpu->batch.script),
           sizeof numbers);
    own.lr = numbers.lr;
    own.momentum = numbers.momentum;
    own.weight_decay = numbers.weight_decay;
    return own;
}

static void update_run(const vpps_cpu *cpu, const vpps_step *step, const run *r) {
    cpu->kernels->update(r->n, step, r->w, r->g, r->s[0], r->s[1]);
}

/* Updates a block of rows of a matrix, and packs its new values while they are in the cache. */
static void update_block(const vpps_vp *vp, uint32_t param, const vpps_step *step, const vpps_matrix_block *b,
                         float *gradient) {
    const vpps_cpu *cpu = vp->cpu;
    const run r = {b->values, gradient, {b->states[0], b->states[1]}, b->ld * cpu->model->params[param].cols};
    update_run(cpu, step, &r);
    if (cpu->precision.parts) vpps_pack_block(cpu, param, vp->index, b);
}

/* Updates matrices whose gradients the update computes itself, one block of rows at a time. */
static void update_by_blocks(vpps_vp *vp, const vpps_block_view *view, const vpps_step *step) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    const vpps_operand *packed = NULL;
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        const vpps_operand *x = vpps_new_factor(c, i);
        for (uint32_t j = i; j < vpps_n_outers(c) && x; j++) {
            const vpps_outer o = vpps_outer_of(c, j);
            if (!vpps_same_value(o.x, x) || vp->by_update[o.param] != cpu->launch) continue;
            uint32_t n;
            float *gradient = open_gradient(vp, view, &o, packed == x, &n);
            packed = x;
            const vpps_blocks blocks = vpps_blocks_of(cpu, o.param, vp->index, cpu->n_vps);
            const vpps_step own = step_of(cpu, step, o.param);
            for (uint32_t b = 0; b < blocks.n; b++) {
                const vpps_matrix_block *block = &blocks.blocks[b];
                vpps_add_outer(vp, block, n, x->rows, vp->pointers, gradient, false);
                update_block(vp, o.param, &own, block, gradient);
            }
        }
    }
}

/* Counts an optimiser step for each parameter that the batch has updated. A lookup table counts if any process has updated an entry. */
static void count_updates(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    const bool *shared = cpu->share ? vpps_share_dense(cpu->share) : NULL;
    for (uint32_t i = 0; i < cpu->batch.n_segments; i++) vp->touched[cpu->batch.segments[i].param] = cpu->sum.number;
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        cpu->device.updates[p] +=
            shared ? shared[p] : vp->touched[p] == cpu->sum.number || vp->by_update[p] == cpu->launch;
    for (uint32_t i = 0; i < cpu->batch.n_segments; i++)
        vp->touched[cpu->batch.segments[i].param] = 0; /* undoes the marks that this function has set */
}

void vpps_vp_update(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    vpps_step step;
    if (!prepare_step(cpu, &step)) return;
    for (uint32_t b = 0; b < cpu->batch.header.n_blocks; b++)
        if (cpu->batch.views[b].block->n) update_by_blocks(vp, &cpu->batch.views[b], &step);
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        const bool by_blocks = vp->by_update[p] == cpu->launch;
        if (vp->touched[p] != cpu->sum.number && !by_blocks) continue;
        const vpps_step own = step_of(cpu, &step, p);
        if (cpu->model->params[p].kind != VPPS_MATRIX) {
            const run r = run_of(vp, p);
            update_run(cpu, &own, &r);
        } else if (!by_blocks) {
            const vpps_blocks blocks = vpps_blocks_of(cpu, p, vp->index, cpu->n_vps);
            for (uint32_t b = 0; b < blocks.n; b++)
                update_block(vp, p, &own, &blocks.blocks[b], blocks.blocks[b].gradient);
        }
        if (!cpu->precision.parts && vpps_has_copies(cpu, p)) vpps_transpose_rows(cpu, p, vp->index);
    }
    for (uint32_t i = 0; i < cpu->batch.n_segments; i++) {
        const vpps_row_segment *s = &cpu->batch.segments[i];
        const uint32_t words = cpu->model->params[s->param].rows * cpu->model->params[s->param].cols;
        const vpps_rows own = vpps_own_entries(vp, s->n);
        const vpps_step own_step = step_of(cpu, &step, s->param);
        for (uint32_t k = own.first; k < own.end; k++) {
            const run r = run_of_entry(cpu, s->param, s->rows[k], s->gradients + (size_t)k * words);
            update_run(cpu, &own_step, &r);
        }
    }
    if (vp->index == 0) count_updates(vp);
}
