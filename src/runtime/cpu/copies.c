/* copies.c - transposed copies of matrices. Backward multiplies vectors with transposed matrices: few vectors with a
 * matrix's stored rows, many vectors with a transposed copy, which is faster but must be renewed by every update. A
 * batch uses a matrix's copy if its tasks of at least `few` vectors (choices.h) multiply at least `pays` vectors with
 * the matrix. This does not depend on earlier batches, so that a resumed run gives the same bits. */
#include "runtime/cpu/cpu.h"

void vpps_transpose_rows(const vpps_cpu *cpu, uint32_t param, uint32_t vp) {
    const vpps_cpu_matrix *m = &cpu->matrices[param];
    const uint32_t cols = cpu->model->params[param].cols;
    const vpps_rows own = vpps_rows_of_vp(cpu, param, vp);
    for (uint32_t i = m->first_block[vp]; i < m->first_block[vp + 1]; i++) {
        const vpps_matrix_block *b = &m->blocks[i];
        if (cpu->precision.parts) {
            vpps_pack_copy(cpu, param, vp, b);
            continue;
        }
        float *to = m->transposed[vp] + (size_t)(b->first_row - own.first) * VPPS_BLOCK_ROWS;
        for (uint32_t k = 0; k < cols; k += VPPS_BLOCK_ROWS)
            cpu->kernels->transpose(b->rows, vpps_min_u32(cols - k, VPPS_BLOCK_ROWS), b->values + k * b->ld, b->ld,
                                    to + (size_t)k * (own.end - own.first), VPPS_BLOCK_ROWS);
    }
}

/* Counts in batch.vectors the vectors that n vertices multiply with transposed matrices in a stage (part of a cell). */
static void count_stage(vpps_cpu *cpu, const vpps_block_view *view, uint32_t stage, uint32_t first, uint32_t n) {
    const vpps_compiled_cell *c = view->cell;
    const vpps_program *p = &c->programs[stage];
    uint32_t first_items[VPPS_AXES], items[VPPS_AXES];
    vpps_items_of(view, first, n, first_items, items);
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_program_step *s = &p->steps[i];
        if (s->kind != VPPS_STEP_PRODUCT || !s->product.transposed) continue;
        for (uint32_t k = 0; k < s->n; k++) {
            const vpps_param matrix = p->operands[s->first + k].matrix;
            if (vpps_vectors_of_task(c, s, p->rows, items) >= cpu->choice.few)
                cpu->batch.vectors[matrix] += (uint64_t)items[s->axis] * s->to.cols;
        }
    }
}

/* Counts in batch.vectors the vectors that the backward tasks in words [at, end) of the batch's program multiply with
 * each transposed matrix. Stops at a malformed task. */
static void count_group(vpps_cpu *cpu, uint32_t at, uint32_t end) {
    for (; end - at >= VPPS_TASK_WORDS; at += VPPS_TASK_WORDS) {
        const vpps_task *t = vpps_task_at(cpu->batch.script, at);
        const uint32_t block = t->operands[0], first = t->operands[1], n = t->operands[2];
        if (t->kind != VPPS_TASK_STAGE) continue;
        if (block >= cpu->batch.header.n_blocks) return;
        const vpps_block_view *view = &cpu->batch.views[block];
        if (t->stage >= view->cell->n_stages || first > view->block->n || n > view->block->n - first) return;
        if (view->cell->stages[t->stage].backward) count_stage(cpu, view, t->stage, first, n);
    }
}

void vpps_choose_copies(vpps_cpu *cpu) {
    const vpps_task_header *h = &cpu->batch.header;
    const uint32_t *starts = cpu->batch.script + VPPS_TASK_HEADER_WORDS, n_params = (uint32_t)cpu->model->n_params;
    if (!h->update || (cpu->precision.parts && !cpu->precision.unit.product_t)) return;
    if (cpu->batch.goal == VPPS_GOAL_UPDATE) { /* an update alone renews valid transposed copies, and makes no others */
        for (uint32_t p = 0; p < n_params; p++)
            if (cpu->matrices[p].fresh) cpu->matrices[p].used_in = cpu->launch;
        return;
    }
    memset(cpu->batch.vectors, 0, n_params * sizeof *cpu->batch.vectors);
    for (uint32_t g = 0; g < h->n_groups; g++) count_group(cpu, starts[g], starts[g + 1]);
    for (uint32_t p = 0; p < n_params; p++) {
        vpps_cpu_matrix *m = &cpu->matrices[p];
        if (!m->blocks) continue;
        if (cpu->batch.vectors[p] < cpu->choice.pays) {
            m->fresh = false; /* the update changes the matrix, and does not renew its transposed copies */
            continue;
        }
        for (uint32_t v = 0; v < cpu->n_vps && !m->fresh; v++) vpps_transpose_rows(cpu, p, v);
        m->fresh = true;
        m->used_in = cpu->launch;
    }
}
