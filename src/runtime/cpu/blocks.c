/* blocks.c - memory of matrices, whose rows are dealt to threads in blocks of at most 64; copies to and from arrays. */
#include "runtime/cpu/cpu.h"

static bool cut_into_blocks(vpps_cpu *cpu, uint32_t param) {
    vpps_cpu_matrix *m = &cpu->matrices[param];
    uint32_t n = 0;
    m->first_block = calloc(cpu->n_vps + 1u, sizeof *m->first_block);
    m->transposed = calloc(cpu->n_vps, sizeof *m->transposed);
    if (!m->first_block || !m->transposed) return false;
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        const vpps_rows rows = vpps_rows_of_vp(cpu, param, v);
        m->first_block[v] = n;
        n += (rows.end - rows.first + VPPS_BLOCK_ROWS - 1) / VPPS_BLOCK_ROWS;
    }
    m->first_block[cpu->n_vps] = m->n_blocks = n;
    m->blocks = calloc(n + 1u, sizeof *m->blocks);
    if (!m->blocks) return false;
    for (uint32_t v = 0, b = 0; v < cpu->n_vps; v++) {
        const vpps_rows rows = vpps_rows_of_vp(cpu, param, v);
        for (uint32_t row = rows.first; row < rows.end; row += VPPS_BLOCK_ROWS, b++) {
            vpps_matrix_block *block = &m->blocks[b];
            block->first_row = row;
            block->rows = vpps_min_u32(rows.end - row, VPPS_BLOCK_ROWS);
            block->ld = (block->rows + 15u) & ~15u;
        }
    }
    return true;
}

static float **part_of(vpps_matrix_block *b, uint32_t part) {
    if (part == VPPS_ARRAY_VALUES) return &b->values;
    return part == VPPS_ARRAY_GRADIENT ? &b->gradient : &b->states[part - VPPS_ARRAY_STATES];
}

/* Divides `memory` among the matrices' values, then gradients, then the optimizer's `states` arrays, then transposed copies; each of these
 * is ordered by thread, then by matrix. If products are in bf16, the copies' pages stay untouched, so take no memory. `memory` NULL: divides
 * nothing. Returns the number of floats needed. */
static size_t deal_memory(vpps_cpu *cpu, uint32_t states, float *memory) {
    size_t at = 0;
    for (uint32_t part = 0; part <= VPPS_ARRAY_STATES + states; part++) {
        for (uint32_t v = 0; v < cpu->n_vps; v++) {
            for (uint32_t p = 0; p < cpu->model->n_params; p++) {
                const vpps_cpu_matrix *m = &cpu->matrices[p];
                const uint32_t cols = cpu->model->params[p].cols;
                if (!m->blocks) continue;
                if (part < VPPS_ARRAY_STATES + states) {
                    for (uint32_t b = m->first_block[v]; b < m->first_block[v + 1]; b++) {
                        if (memory) *part_of(&m->blocks[b], part) = memory + at;
                        at += m->blocks[b].ld * cols;
                    }
                    continue;
                }
                const vpps_rows rows = vpps_rows_of_vp(cpu, p, v);
                const uint32_t parts = (cols + VPPS_BLOCK_ROWS - 1) / VPPS_BLOCK_ROWS;
                if (memory) m->transposed[v] = memory + at;
                at += (size_t)parts * VPPS_BLOCK_ROWS * (rows.end - rows.first);
            }
        }
    }
    return at;
}

vpps_status vpps_make_matrices(vpps_cpu *cpu, uint32_t states) {
    cpu->matrices = calloc(cpu->model->n_params + 1, sizeof *cpu->matrices);
    bool ok = cpu->matrices != NULL;
    for (uint32_t p = 0; ok && p < cpu->model->n_params; p++)
        if (cpu->model->params[p].kind == VPPS_MATRIX) ok = cut_into_blocks(cpu, p);
    if (ok) {
        cpu->matrix_bytes = (deal_memory(cpu, states, NULL) + 16) * sizeof(float);
        cpu->matrix_memory = vpps_map_pages(cpu->matrix_bytes);
        ok = cpu->matrix_memory != NULL;
    }
    if (!ok) return vpps_fail(VPPS_MEMORY, "cpu: out of memory for the model's matrices");
    deal_memory(cpu, states, cpu->matrix_memory);
    return VPPS_OK;
}

void vpps_free_matrices(vpps_cpu *cpu) {
    for (uint32_t p = 0; cpu->matrices && p < cpu->model->n_params; p++)
        VPPS_FREE(cpu->matrices[p].blocks, cpu->matrices[p].first_block, cpu->matrices[p].transposed,
                  cpu->matrices[p].packed_t);
    free(cpu->matrices);
    vpps_unmap_pages(cpu->matrix_memory, cpu->matrix_bytes);
    vpps_unmap_pages(cpu->pack_memory, cpu->pack_bytes);
}

void vpps_copy_matrix(vpps_cpu *cpu, uint32_t param, float *rows, uint32_t part, bool to_rows) {
    const uint32_t cols = cpu->model->params[param].cols;
    const vpps_cpu_matrix *m = &cpu->matrices[param];
    for (uint32_t b = 0; b < m->n_blocks; b++) {
        vpps_matrix_block *block = &m->blocks[b];
        float *values = *part_of(block, part);
        for (uint32_t r = 0; r < block->rows; r++) {
            float *row = rows + (size_t)(block->first_row + r) * cols;
            for (uint32_t k = 0; k < cols; k++) {
                float *in_row = row + k, *in_block = values + k * block->ld + r;
                *(to_rows ? in_row : in_block) = *(to_rows ? in_block : in_row);
            }
        }
        if (to_rows) continue;
        /* writes the padding, too: the update by a non-finite gradient may have changed it */
        for (uint32_t k = 0; k < cols; k++)
            memset(values + k * block->ld + block->rows, 0, (block->ld - block->rows) * sizeof *values);
    }
    if (to_rows || part != VPPS_ARRAY_VALUES) return;
    cpu->matrices[param].fresh = false;
    vpps_pack_matrix(cpu, param);
}
