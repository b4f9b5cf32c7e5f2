/* params.c - blocks of matrices; gradients of parameters and the optimiser's step. Each VP processes the rows and entries that it owns. */
#include "runtime/cpu/cpu.h"

#include <float.h>
#include <math.h>

/* ---------------------------------------------------------------- blocks */

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
    if (part == VPPS_MATRIX_VALUES) return &b->values;
    return part == VPPS_MATRIX_GRADIENT ? &b->gradient : &b->states[part - VPPS_MATRIX_STATES];
}

/* Assigns memory to the blocks: values, then gradients, then states, each VP by VP and matrix by matrix; then to transposed copies, whose
 * pages are not touched if products are in bf16. NULL: assigns none. Returns the floats needed. */
static size_t deal_memory(vpps_cpu *cpu, uint32_t states, float *memory) {
    size_t at = 0;
    for (uint32_t part = 0; part <= VPPS_MATRIX_STATES + states; part++) {
        for (uint32_t v = 0; v < cpu->n_vps; v++) {
            for (uint32_t p = 0; p < cpu->model->n_params; p++) {
                const vpps_cpu_matrix *m = &cpu->matrices[p];
                const uint32_t cols = cpu->model->params[p].cols;
                if (!m->blocks) continue;
                if (part < VPPS_MATRIX_STATES + states) {
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
    for (uint32_t p = 0; cpu->matrices && p < cpu->model->n_params; p++) {
        VPPS_FREE(cpu->matrices[p].blocks, cpu->matrices[p].first_block, cpu->matrices[p].transposed,
                  cpu->matrices[p].packed_t);
    }
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
                if (to_rows) {
                    row[k] = values[k * block->ld + r];
                } else {
                    values[k * block->ld + r] = row[k];
                }
            }
        }
        if (to_rows) continue;
        for (uint32_t k = 0; k < cols;
             k++) /* Clears the padding, too: an update with a non-finite gradient may have changed it. */
            memset(values + k * block->ld + block->rows, 0, (block->ld - block->rows) * sizeof *values);
    }
    if (to_rows || part != VPPS_MATRIX_VALUES) return;
    cpu->matrices[param].fresh = false;
    vpps_pack_matrix(cpu, param);
}

/* ---------------------------------------------------------------- gradients */

/* Points out[] to a value's columns, for n items of the block from `first` on: its vertices, or the members of their lists if the value is
 * made once for each member. */
static void point(const vpps_cpu *cpu, const vpps_block_view *view, uint32_t value, uint32_t first, uint32_t n,
                  const float **out) {
    const vpps_cell_value *x = &view->cell->values[value];
    for (uint32_t i = first; i < first + n; i++) {
        const float *at = vpps_in_pool(cpu, view, x, i);
        for (uint32_t k = 0; k < x->cols; k++) *out++ = at + (size_t)k * x->rows;
    }
}

/* Zeroes a matrix's gradient in the VP's own rows. */
static void clear_matrix(const vpps_vp *vp, vpps_param param) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_blocks own = vpps_blocks_of(cpu, param, vp->index, cpu->n_vps);
    for (uint32_t b = 0; b < own.n; b++)
        memset(own.blocks[b].gradient, 0, (size_t)own.blocks[b].ld * cpu->model->params[param].cols * sizeof(float));
}

/* Adds n elements of the vectors terms[1] to terms[count], in their order, to those at `to`. */
static void add_terms(const vpps_cpu *cpu, uint32_t n, float *to, uint32_t count, const float **terms) {
    terms[0] = to;
    cpu->kernels->run[VPPS_I_SUM](n, to, &(vpps_operands){.list = terms, .n_list = count + 1, .f = 1});
}

/* Adds the gradients of a matrix that is read as a value. */
static void add_whole_matrix(vpps_vp *vp, const vpps_block_view *view, const vpps_cell_outer *o, uint32_t first,
                             uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_cell_value *dy = &view->cell->values[o->dy];
    const vpps_blocks own = vpps_blocks_of(cpu, o->param, vp->index, cpu->n_vps);
    if (vp->touched[o->param] != cpu->sum) clear_matrix(vp, o->param);
    for (uint32_t b = 0; b < own.n; b++) {
        const vpps_matrix_block *block = &own.blocks[b];
        for (uint32_t k = 0; k < dy->cols; k++) {
            for (uint32_t i = 0; i < n; i++)
                vp->pointers[1 + i] = vpps_in_pool(cpu, view, dy, first + i) + (size_t)k * dy->rows + block->first_row;
            add_terms(cpu, block->rows, block->gradient + k * block->ld, n, vp->pointers);
        }
    }
}

static void add_vector(vpps_vp *vp, const vpps_block_view *view, const vpps_cell_outer *o, uint32_t first, uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_rows rows = vpps_rows_of_vp(cpu, o->param, vp->index);
    if (rows.first == rows.end) return;
    const uint32_t vectors = n * view->cell->values[o->dy].cols;
    point(cpu, view, o->dy, first, n, vp->pointers + 1);
    for (uint32_t i = 1; i <= vectors; i++) vp->pointers[i] += rows.first;
    add_terms(cpu, rows.end - rows.first, cpu->pool + cpu->plan.gradients[o->param] + rows.first, vectors,
              vp->pointers);
}

/* PACKED_VECTORS: vectors that are packed at a time, so that they stay in L2 for all matrices that multiply them. CLIPPED_VECTORS: up to so
 * many, computing a gradient twice, for the norm and for the update, costs less than writing it to memory. COPIED_VECTORS: up to so many
 * are copied for the update. */
enum { PACKED_VECTORS = 4 * 128, CLIPPED_VECTORS = 16, COPIED_VECTORS = 64 };
static const size_t NO_COPY = SIZE_MAX; /* value in vp->copy_of */

/* Returns the floats of scratch memory for packed vectors of k elements and their vectors dy. A block's gradient follows. */
static size_t packed_floats(const vpps_cpu *cpu, uint32_t k) {
    const uint32_t parts = cpu->precision.parts;
    if (!parts) return PACKED_VECTORS * cpu->kernels->outer_stride(k);
    return vpps_bf16_words(k, PACKED_VECTORS, parts) + vpps_bf16_words(VPPS_BLOCK_ROWS, PACKED_VECTORS, parts);
}

/* Packs n vectors of k elements into the VP's scratch memory. */
static void pack_x(const vpps_vp *vp, uint32_t n, uint32_t k, const float *const *x) {
    const vpps_cpu *cpu = vp->cpu;
    if (!cpu->precision.parts) {
        cpu->kernels->pack_outer(n, k, x, vp->scratch);
        return;
    }
    const vpps_bf16_source s = {x, 0, k, n, true};
    cpu->precision.unit.pack(&s, cpu->precision.parts, VPPS_BF16_AS_ROWS, vpps_bf16_depth_tiles(n),
                             (uint32_t *)(void *)vp->scratch);
}

/* Adds outer products of n vectors in bf16, as add_outer does in fp32. The block's padding becomes zero. */
static void add_outer_bf16(const vpps_vp *vp, const vpps_matrix_block *block, uint32_t n, uint32_t k,
                           const float *const *d, float *to, bool add) {
    const vpps_cpu *cpu = vp->cpu;
    const uint32_t parts = cpu->precision.parts;
    uint32_t *x = (uint32_t *)(void *)vp->scratch, *rows = x + vpps_bf16_words(k, n, parts);
    const vpps_bf16_source s = {d, block->first_row, block->rows, n, true};
    cpu->precision.unit.pack(&s, parts, VPPS_BF16_PAIRS, vpps_bf16_depth_tiles(n), rows);
    const vpps_bf16_term term = {rows, 0, n};
    cpu->precision.unit.product((uint32_t)block->ld, k, parts, x, 1, &term, add ? to : NULL, block->ld, to, block->ld);
}

/* Computes block = or += the sum over n vectors of d[v] x[v]^T, where x is packed in the VP's scratch memory. */
static void add_outer(const vpps_vp *vp, const vpps_matrix_block *block, uint32_t n, uint32_t k, const float *const *d,
                      float *to, bool add) {
    const vpps_kernels *kernels = vp->cpu->kernels;
    if (vp->cpu->precision.parts) {
        add_outer_bf16(vp, block, n, k, d, to, add);
        return;
    }
    const size_t stride = kernels->outer_stride(k);
    for (uint32_t v = 0, count; v < n; v += count) {
        count = vpps_min_u32(n - v, kernels->outer_vectors);
        kernels->outer(block->rows, count, k, d + v, block->first_row, vp->scratch + v * stride, to, block->ld,
                       add || v);
    }
}

/* Adds the gradients of all matrices that multiply value x, for its vectors [first, first + n), which are packed once. `apart`: sums these
 * products before adding them to earlier ones, so that sums do not get too long. */
static void add_matrices(vpps_vp *vp, const vpps_block_view *view, uint32_t x, const float *const *xs, uint32_t first,
                         uint32_t n, bool apart) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    const uint32_t k = c->values[x].rows;
    float *sum = vp->scratch + packed_floats(cpu, k);
    pack_x(vp, n, k, xs + first);
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const vpps_cell_outer *o = &c->outers[i];
        if (o->x != x || vp->by_update[o->param] == cpu->launch) continue;
        const vpps_blocks blocks = vpps_blocks_of(cpu, o->param, vp->index, cpu->n_vps);
        const bool add = vp->touched[o->param] == cpu->sum;
        const float *const *d = vp->pointers + (size_t)vp->d_at[i] + first;
        for (uint32_t b = 0; b < blocks.n; b++) {
            const vpps_matrix_block *block = &blocks.blocks[b];
            add_outer(vp, block, n, k, d, add && apart ? sum : block->gradient, add && !apart);
            if (add && apart) cpu->kernels->add((uint32_t)block->ld * k, block->gradient, sum);
        }
        vp->touched[o->param] = cpu->sum;
    }
}

/* Returns the number of a value's vectors for vertices [at, at + count); *first is its first item. */
static uint32_t vectors_of(const vpps_block_view *view, uint32_t value, uint32_t at, uint32_t count, uint32_t *first) {
    const vpps_cell_value *x = &view->cell->values[value];
    const uint32_t *starts = view->lists[x->axis];
    *first = x->axis ? starts[at] : at;
    return (x->axis ? starts[at + count] - *first : count) * x->cols;
}

static bool need_outer(vpps_vp *vp, size_t pointers, size_t outers, size_t floats) {
    return VPPS_RESERVE(vp->pointers, pointers) && VPPS_RESERVE(vp->sums, 2 * outers) &&
           VPPS_RESERVE(vp->d_at, outers) && vpps_vp_scratch(vp, floats);
}

/* Returns whether value x may be a vector or table entry, which the update changes. */
static bool reads_parameters(const vpps_cpu *cpu, const vpps_block_view *view, uint32_t x) {
    const vpps_cell_value *value = &view->cell->values[x];
    if (value->kind == VPPS_VALUE_LOOKUP || value->kind == VPPS_VALUE_PARAMETER) return true;
    if (value->kind != VPPS_VALUE_INPUT) return false;
    for (uint32_t i = 0; i < vpps_items(view->block, value->axis); i++)
        if (view->inputs[value->input][i] < cpu->plan.batch) return true;
    return false;
}

/* Decides which gradients the update computes itself. If few vectors of one block make a matrix's gradient, it is not written to memory:
 * the update computes it, a block of rows at a time, while it is in the cache. Clipping needs the norm before, so for few vectors the
 * gradient is computed twice. If there are other processes, they need the whole gradient. */
void vpps_choose_updates(vpps_cpu *cpu) {
    const uint32_t n_params = (uint32_t)cpu->model->n_params, n_blocks = cpu->task_header.n_blocks;
    const bool clip = cpu->task_header.clip > 0;
    const uint32_t most = clip ? CLIPPED_VECTORS : PACKED_VECTORS;
    memset(cpu->uses, 0, n_params * sizeof *cpu->uses);
    if (!cpu->task_header.lasting || cpu->share) return;
    for (uint32_t b = 0; b < n_blocks; b++)
        for (uint32_t i = 0; i < cpu->views[b].cell->n_outers && cpu->views[b].block->n; i++)
            cpu->uses[cpu->views[b].cell->outers[i].param]++;
    for (uint32_t b = 0; b < n_blocks; b++) {
        const vpps_block_view *view = &cpu->views[b];
        for (uint32_t i = 0; i < view->cell->n_outers && view->block->n; i++) {
            const vpps_cell_outer *o = &view->cell->outers[i];
            uint32_t first;
            if (o->x == VPPS_NONE || cpu->uses[o->param] != 1) continue;
            const uint32_t n = vectors_of(view, o->dy, 0, view->block->n, &first);
            if (n > most || (n > COPIED_VECTORS && reads_parameters(cpu, view, o->x))) cpu->uses[o->param] = 0;
        }
    }
}

static bool made_by_update(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_cell_outer *o, uint32_t n) {
    uint32_t first; /* if all lists are empty, there are no vectors, and nothing to update */
    return o->x != VPPS_NONE && cpu->uses[o->param] == 1 && n == view->block->n &&
           vectors_of(view, o->dy, 0, n, &first);
}

/* Returns the most vectors of any gradient of the block that the update computes; 0: none. */
static uint32_t most_by_update(const vpps_cpu *cpu, const vpps_block_view *view) {
    uint32_t most = 0, first;
    for (uint32_t i = 0; i < view->cell->n_outers; i++) {
        const vpps_cell_outer *o = &view->cell->outers[i];
        if (made_by_update(cpu, view, o, view->block->n))
            most = vpps_max_u32(most, vectors_of(view, o->dy, 0, view->block->n, &first));
    }
    return most;
}

/* Copies the vectors of value x of the whole block. Returns false if out of memory. */
static bool copy_vectors(vpps_vp *vp, const vpps_block_view *view, uint32_t x) {
    const uint32_t k = view->cell->values[x].rows, cols = view->cell->values[x].cols;
    uint32_t first;
    const uint32_t n = vectors_of(view, x, 0, view->block->n, &first);
    if (!VPPS_RESERVE(vp->pointers, n) || !VPPS_RESERVE(vp->copies, vp->n_copies + (size_t)n * k)) return false;
    point(vp->cpu, view, x, first, n / cols, vp->pointers);
    for (uint32_t i = 0; i < n; i++, vp->n_copies += k)
        memcpy(vp->copies + vp->n_copies, vp->pointers[i], k * sizeof *vp->copies);
    return true;
}

/* Notes which gradients of the block the update computes. Copies their vectors and table entries, since another VP may change these before.
 * Returns false if out of memory. */
static bool leave_to_update(vpps_vp *vp, const vpps_block_view *view, uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    if (vp->copied != cpu->launch) vp->n_copies = 0;
    vp->copied = cpu->launch;
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const vpps_cell_outer *o = &c->outers[i];
        if (!made_by_update(cpu, view, o, n)) continue;
        vp->by_update[o->param] = cpu->launch;
        vp->copy_of[o->param] = NO_COPY;
        for (uint32_t j = 0; j < i && vp->copy_of[o->param] == NO_COPY; j++)
            if (c->outers[j].x == o->x && vp->by_update[c->outers[j].param] == cpu->launch)
                vp->copy_of[o->param] = vp->copy_of[c->outers[j].param];
        if (vp->copy_of[o->param] != NO_COPY || !reads_parameters(cpu, view, o->x)) continue;
        vp->copy_of[o->param] = vp->n_copies;
        if (!copy_vectors(vp, view, o->x)) return false;
    }
    return true;
}

/* Zeroes gradients of matrices that multiplied no vector because all lists are empty; such matrices count as used (vpps_gather_list). */
static void use_unmultiplied(vpps_vp *vp, const vpps_block_view *view, uint32_t at, uint32_t count) {
    const vpps_cpu *cpu = vp->cpu;
    for (uint32_t i = 0; i < view->cell->n_outers; i++) {
        const vpps_cell_outer *o = &view->cell->outers[i];
        uint32_t first;
        if (vectors_of(view, o->dy, at, count, &first) || vp->touched[o->param] == cpu->sum) continue;
        if (cpu->model->params[o->param].kind == VPPS_MATRIX) clear_matrix(vp, o->param);
        vp->touched[o->param] = cpu->sum;
    }
}

/* Adds gradients that are sums of vectors, not of products, over vertices [at, at + n). Returns false if out of memory. */
static bool add_sums(vpps_vp *vp, const vpps_block_view *view, uint32_t at, uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    for (uint32_t i = 0; i < view->cell->n_outers; i++) {
        const vpps_cell_outer *o = &view->cell->outers[i];
        uint32_t first;
        const uint32_t vectors = o->x == VPPS_NONE ? vectors_of(view, o->dy, at, n, &first) : 0;
        if (!vectors) continue;
        if (!VPPS_RESERVE(vp->pointers, vectors + 1)) return false;
        const bool matrix = cpu->model->params[o->param].kind == VPPS_MATRIX;
        (matrix ? add_whole_matrix : add_vector)(vp, view, o, first, vectors / view->cell->values[o->dy].cols);
        vp->touched[o->param] = cpu->sum;
    }
    return true;
}

void vpps_vp_outer(vpps_vp *vp, uint32_t address, uint32_t block_number, uint32_t first, uint32_t n) {
    vpps_cpu *cpu = vp->cpu;
    const vpps_block_view *view = &cpu->views[block_number];
    const vpps_compiled_cell *c = view->cell;
    const uint32_t most = PACKED_VECTORS;
    use_unmultiplied(vp, view, first, n);
    if (!add_sums(vp, view, first, n) || !leave_to_update(vp, view, n)) {
        vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for gradients");
        return;
    }
    /* The update processes all vertices at once. */
    const size_t by_update = n == view->block->n ? most_by_update(cpu, view) : 0;
    for (uint32_t at = first, count; at < first + n; at += count) {
        count = vpps_min_u32(first + n - at, most);
        size_t pointers = 0, floats = 0;
        for (uint32_t i = 0; i < c->n_outers; i++) {
            uint32_t item;
            const uint32_t x = c->outers[i].x;
            pointers += 2 * (size_t)vectors_of(view, c->outers[i].dy, at, count, &item);
            if (x == VPPS_NONE) continue;
            const uint32_t k = c->values[x].rows;
            const size_t packed = packed_floats(cpu, k) + (size_t)k * VPPS_BLOCK_ROWS;
            if (packed > floats) floats = packed;
        }
        if (pointers < 2 * by_update) pointers = 2 * by_update;
        if (!need_outer(vp, pointers + 1, c->n_outers, floats)) {
            vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for gradients");
            return;
        }
        bool all = true;
        for (uint32_t i = 0; i < c->n_outers; i++)
            all &= c->outers[i].x == VPPS_NONE || vp->by_update[c->outers[i].param] == cpu->launch;
        if (all) continue;
        size_t next = 0;
        for (uint32_t i = 0; i < c->n_outers; i++) {
            const vpps_cell_outer *o = &c->outers[i];
            uint32_t item;
            if (o->x == VPPS_NONE) continue;
            vp->d_at[i] = (uint32_t)next;
            const uint32_t vectors = vectors_of(view, o->dy, at, count, &item);
            point(cpu, view, o->dy, item, vectors / c->values[o->dy].cols, vp->pointers + next);
            next += vectors;
        }
        for (uint32_t i = 0; i < c->n_outers; i++) {
            const uint32_t x = c->outers[i].x;
            bool done = x == VPPS_NONE;
            for (uint32_t j = 0; j < i && !done; j++) done = c->outers[j].x == x;
            if (done) continue;
            uint32_t item;
            const uint32_t vectors = vectors_of(view, x, at, count, &item);
            const float **xs = vp->pointers + next;
            point(cpu, view, x, item, vectors / c->values[x].cols, xs);
            for (uint32_t v = 0; v < vectors; v += most)
                add_matrices(vp, view, x, xs, v, vpps_min_u32(vectors - v, most), at > first || v);
        }
    }
}

/* Returns the VP's share of n table entries. */
static vpps_rows own_entries(const vpps_vp *vp, uint32_t n) {
    const uint64_t n_vps = vp->cpu->n_vps;
    return (vpps_rows){(uint32_t)(n * (uint64_t)vp->index / n_vps), (uint32_t)(n * (vp->index + (uint64_t)1) / n_vps)};
}

void vpps_vp_entries(vpps_vp *vp, uint32_t number, uint32_t address) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_table *t = vpps_table_at(cpu->script, number);
    const vpps_parameter_data *data = &cpu->model->params[t->param];
    const uint32_t words = data->rows * data->cols;
    const vpps_entry_sums s = vpps_sums_at(cpu->script, address);
    const vpps_rows own = own_entries(vp, s.n);
    for (uint32_t i = own.first; i < own.end; i++) {
        float *to = cpu->pool + t->gradients + (size_t)s.entries[i] * words;
        const uint32_t *list = s.offsets + s.starts[i], n = s.starts[i + 1] - s.starts[i];
        cpu->kernels->add_up(words, n, cpu->pool, list, 0, to);
    }
}

/* ---------------------------------------------------------------- norms and updates */

/* The VP's values, gradient and states of a parameter as contiguous floats. */
typedef struct run {
    float *w, *g, *s[VPPS_MAX_STATES];
    size_t n;
} run;

static float *in_pool(const vpps_cpu *cpu, uint32_t at, size_t elems) {
    return at == VPPS_NO_OFFSET ? NULL : cpu->pool + at + elems;
}

static run run_of(const vpps_vp *vp, uint32_t param) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_parameter_data *data = &cpu->model->params[param];
    if (data->kind == VPPS_MATRIX) { /* blocks of a VP are adjacent */
        const vpps_blocks blocks = vpps_blocks_of(cpu, param, vp->index, cpu->n_vps);
        if (!blocks.n) return (run){0};
        const vpps_matrix_block *b = blocks.blocks, *last = b + blocks.n - 1;
        return (run){b->values,
                     b->gradient,
                     {b->states[0], b->states[1]},
                     (size_t)(last->values - b->values) + last->ld * data->cols};
    }
    const vpps_rows rows = vpps_rows_of_vp(cpu, param, vp->index);
    return (run){
        cpu->pool + cpu->plan.values[param] + rows.first,
        cpu->pool + cpu->plan.gradients[param] + rows.first,
        {in_pool(cpu, cpu->plan.states[0][param], rows.first), in_pool(cpu, cpu->plan.states[1][param], rows.first)},
        rows.end - rows.first};
}

/* Returns the values, states and given gradient of a table entry. */
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

/* Returns the sum of squares of rows [first, end) of all vectors of a value of the block. */
static double squares(vpps_vp *vp, const vpps_block_view *view, uint32_t value, vpps_rows rows) {
    const vpps_cpu *cpu = vp->cpu;
    uint32_t first;
    const uint32_t n = vectors_of(view, value, 0, view->block->n, &first);
    point(cpu, view, value, first, n / view->cell->values[value].cols, vp->pointers);
    double sum = 0;
    for (uint32_t i = 0; i < n && rows.first < rows.end; i++)
        sum += cpu->kernels->sum_squares(rows.end - rows.first, vp->pointers[i] + rows.first);
    return sum;
}

/* Returns bounds of the squared norms of the block's gradients that the update computes. The norm of the sum of d x^T over the vectors is
 * at most the root of (sum of |d|^2) * (sum of |x|^2), which is as good for detecting non-finite values. */
static double bounds(vpps_vp *vp, const vpps_block_view *view) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    double total = 0, *sums = vp->sums;
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const vpps_cell_outer *o = &c->outers[i];
        if (vp->by_update[o->param] != cpu->launch || o->x == VPPS_NONE) continue;
        double *d = sums + 2 * (size_t)i, *x = d + 1;
        *d = *x = -1; /* both sums are not computed yet */
        const vpps_rows own = vpps_rows_of_vp(cpu, o->param, vp->index);
        const vpps_rows all = {0, cpu->model->params[o->param].cols};
        for (uint32_t j = 0; j < i; j++) {
            const vpps_cell_outer *before = &c->outers[j];
            if (vp->by_update[before->param] != cpu->launch || before->x == VPPS_NONE) continue;
            if (before->dy == o->dy) *d = sums[2 * j];
            if (before->x == o->x) *x = sums[2 * j + 1];
        }
        if (*d < 0) *d = squares(vp, view, o->dy, own);
        if (*x < 0) *x = squares(vp, view, o->x, all);
        total += sqrt(*d * *x) <= (double)FLT_MAX ? *d * *x : INFINITY;
    }
    return total;
}

/* Prepares the gradient of a matrix that the update computes: points to its vectors dy, and packs the vectors x unless `packed`. Returns
 * where blocks of the gradient go, in the VP's scratch memory; *n is the number of vectors. */
static float *open_gradient(vpps_vp *vp, const vpps_block_view *view, const vpps_cell_outer *o, bool packed,
                            uint32_t *n) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    const uint32_t k = c->values[o->x].rows;
    uint32_t first;
    *n = vectors_of(view, o->dy, 0, view->block->n, &first);
    const float **d = vp->pointers, **xs = d + *n;
    const size_t copy = vp->copy_of[o->param];
    if (!packed && copy == NO_COPY) point(cpu, view, o->x, first, *n / c->values[o->x].cols, xs);
    for (uint32_t v = 0; v < *n && !packed && copy != NO_COPY; v++) xs[v] = vp->copies + copy + (size_t)v * k;
    if (!packed) pack_x(vp, *n, k, xs);
    point(cpu, view, o->dy, first, *n / c->values[o->dy].cols, d);
    return vp->scratch + packed_floats(cpu, k);
}

static double squares_of_run(const vpps_cpu *cpu, const float *g, size_t n) {
    double sum = 0;
    for (size_t at = 0; at < n; at += 1u << 20)
        sum += cpu->kernels->sum_squares(n - at < 1u << 20 ? (uint32_t)(n - at) : 1u << 20, g + at);
    return sum;
}

/* Returns the outer product whose gradient the update computes for a matrix. */
static const vpps_cell_outer *outer_of(const vpps_cpu *cpu, uint32_t param, const vpps_block_view **view) {
    for (*view = cpu->views;; ++*view)
        for (uint32_t i = 0; i < (*view)->cell->n_outers && (*view)->block->n; i++)
            if ((*view)->cell->outers[i].param == param) return &(*view)->cell->outers[i];
}

/* Returns the sum of squares of the VP's rows of a matrix's gradient, block by block. So a gradient that the update computes, and that is
 * computed here a first time, gives the same bits as one in memory. */
static double squares_of_matrix(vpps_vp *vp, uint32_t param) {
    const vpps_cpu *cpu = vp->cpu;
    const uint32_t cols = cpu->model->params[param].cols;
    const vpps_blocks own = vpps_blocks_of(cpu, param, vp->index, cpu->n_vps);
    const bool made = vp->by_update[param] == cpu->launch;
    const vpps_block_view *view;
    const vpps_cell_outer *o = made ? outer_of(cpu, param, &view) : NULL;
    uint32_t n = 0;
    float *gradient = made ? open_gradient(vp, view, o, false, &n) : NULL;
    double sum = 0;
    for (uint32_t b = 0; b < own.n; b++) {
        const vpps_matrix_block *block = &own.blocks[b];
        if (made) add_outer(vp, block, n, cols, vp->pointers, gradient, false);
        const float *g = made ? gradient : block->gradient;
        if (block->rows == block->ld) sum += squares_of_run(cpu, g, block->ld * cols);
        for (uint32_t k = 0; k < cols && block->rows < block->ld; k++) /* without the padding */
            sum += cpu->kernels->sum_squares(block->rows, g + k * block->ld);
    }
    return sum;
}

void vpps_vp_norm(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    const bool clip = cpu->task_header.clip > 0;
    double sum = 0;
    for (uint32_t b = 0; b < cpu->task_header.n_blocks; b++)
        if (cpu->views[b].block->n && !clip) sum += bounds(vp, &cpu->views[b]);
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        if (vp->touched[p] != cpu->sum && !(clip && vp->by_update[p] == cpu->launch)) continue;
        const run r = run_of(vp, p);
        sum += cpu->model->params[p].kind == VPPS_MATRIX ? squares_of_matrix(vp, p) : squares_of_run(cpu, r.g, r.n);
    }
    for (uint32_t i = 0; i < cpu->n_segments && !cpu->entries; i++) { /* sharded tables' sum is in cpu->squares */
        const vpps_row_segment *s = &cpu->segments[i];
        const uint32_t words = cpu->model->params[s->param].rows * cpu->model->params[s->param].cols;
        const vpps_rows own = own_entries(vp, s->n);
        for (uint32_t k = own.first; k < own.end; k++)
            sum += cpu->kernels->sum_squares(words, s->gradients + (size_t)k * words);
    }
    cpu->norms[vp->index] = sum;
}

double vpps_cpu_norm(const vpps_cpu *cpu) {
    const vpps_task_header *h = &cpu->task_header;
    double sum = cpu->squares;
    for (uint32_t v = 0; v < cpu->n_vps && (h->guard || h->clip > 0); v++) sum += cpu->norms[v];
    return sqrt(sum);
}

/* Sets the optimiser's numbers for this batch. Returns false if the batch must not update. */
static bool prepare_step(const vpps_cpu *cpu, vpps_step *step) {
    const vpps_task_header *h = &cpu->task_header;
    const double norm = vpps_cpu_norm(cpu);
    if (h->guard && (!isfinite(cpu->loss) || !isfinite(norm))) return false;
#define X(name) .name = h->name,
    *step = (vpps_step){.kind = h->update - 1, .scale = 1, VPPS_OPTIMIZER_NUMBERS(X)};
#undef X
    if (h->clip > 0 && norm > h->clip) step->scale = (float)(h->clip / norm);
    return true;
}

/* Returns the optimiser's numbers for one parameter. */
static vpps_step step_of(const vpps_cpu *cpu, const vpps_step *step, uint32_t param) {
    vpps_step own = *step;
    memcpy(own.corrections, cpu->corrections[param], sizeof own.corrections);
    if (!cpu->task_header.steps) return own;
    vpps_param_step numbers;
    memcpy(&numbers, cpu->script + cpu->task_header.steps + param * (sizeof numbers / sizeof *cpu->script),
           sizeof numbers);
    own.lr = numbers.lr;
    own.momentum = numbers.momentum;
    own.weight_decay = numbers.weight_decay;
    return own;
}

static void update_run(const vpps_cpu *cpu, const vpps_step *step, const run *r) {
    for (size_t at = 0; at < r->n; at += 1u << 20)
        cpu->kernels->update(r->n - at < 1u << 20 ? (uint32_t)(r->n - at) : 1u << 20, step, r->w + at, r->g + at,
                             r->s[0] ? r->s[0] + at : NULL, r->s[1] ? r->s[1] + at : NULL);
}

/* Updates matrices whose gradients the update computes, one block of rows at a time. */
static void update_by_blocks(vpps_vp *vp, const vpps_block_view *view, const vpps_step *step) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    uint32_t packed = VPPS_NONE;
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const uint32_t x = c->outers[i].x;
        bool done = x == VPPS_NONE;
        for (uint32_t j = 0; j < i && !done; j++) done = c->outers[j].x == x;
        for (uint32_t j = i; j < c->n_outers && !done; j++) {
            const vpps_cell_outer *o = &c->outers[j];
            if (o->x != x || vp->by_update[o->param] != cpu->launch) continue;
            const uint32_t k = c->values[x].rows;
            uint32_t n;
            float *gradient = open_gradient(vp, view, o, packed == x, &n);
            packed = x;
            const vpps_blocks blocks = vpps_blocks_of(cpu, o->param, vp->index, cpu->n_vps);
            const vpps_step own = step_of(cpu, step, o->param);
            for (uint32_t b = 0; b < blocks.n; b++) {
                const vpps_matrix_block *block = &blocks.blocks[b];
                add_outer(vp, block, n, k, vp->pointers, gradient, false);
                const run r = {block->values, gradient, {block->states[0], block->states[1]}, block->ld * k};
                update_run(cpu, &own, &r);
                if (cpu->precision.parts) vpps_pack_block(cpu, o->param, vp->index, block);
            }
        }
    }
}

/* Updates a matrix's blocks, and packs each while it is in the cache. */
static void update_packed(const vpps_vp *vp, uint32_t param, const vpps_step *step) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_blocks blocks = vpps_blocks_of(cpu, param, vp->index, cpu->n_vps);
    for (uint32_t b = 0; b < blocks.n; b++) {
        const vpps_matrix_block *block = &blocks.blocks[b];
        const run r = {block->values,
                       block->gradient,
                       {block->states[0], block->states[1]},
                       block->ld * cpu->model->params[param].cols};
        update_run(cpu, step, &r);
        vpps_pack_block(cpu, param, vp->index, block);
    }
}

/* Counts a step for each parameter that made one; for a lookup table, if any entry made one in any process. */
static void count_updates(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    const bool *shared = cpu->share ? vpps_share_dense(cpu->share) : NULL;
    for (uint32_t i = 0; i < cpu->n_segments; i++) vp->touched[cpu->segments[i].param] = cpu->sum;
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        cpu->updates[p] += shared ? shared[p] : vp->touched[p] == cpu->sum || vp->by_update[p] == cpu->launch;
    for (uint32_t i = 0; i < cpu->n_segments; i++)
        vp->touched[cpu->segments[i].param] = 0; /* `touched` is not used otherwise for tables */
}

void vpps_vp_update(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    vpps_step step;
    if (!prepare_step(cpu, &step)) return;
    for (uint32_t b = 0; b < cpu->task_header.n_blocks; b++)
        if (cpu->views[b].block->n) update_by_blocks(vp, &cpu->views[b], &step);
    for (uint32_t p = 0; p < cpu->model->n_params; p++) {
        const bool by_blocks = vp->by_update[p] == cpu->launch;
        if (vp->touched[p] != cpu->sum && !by_blocks) continue;
        const run r = run_of(vp, p);
        const vpps_step own = step_of(cpu, &step, p);
        if (!by_blocks && cpu->precision.parts && cpu->model->params[p].kind == VPPS_MATRIX) {
            update_packed(vp, p, &own);
        } else if (!by_blocks) {
            update_run(cpu, &own, &r);
        }
        if (!cpu->precision.parts && vpps_has_copies(cpu, p)) vpps_transpose_rows(cpu, p, vp->index);
    }
    for (uint32_t i = 0; i < cpu->n_segments; i++) {
        const vpps_row_segment *s = &cpu->segments[i];
        const uint32_t words = cpu->model->params[s->param].rows * cpu->model->params[s->param].cols;
        const vpps_rows own = own_entries(vp, s->n);
        const vpps_step own_step = step_of(cpu, &step, s->param);
        for (uint32_t k = own.first; k < own.end; k++) {
            const run r = run_of_entry(cpu, s->param, s->rows[k], s->gradients + (size_t)k * words);
            update_run(cpu, &own_step, &r);
        }
    }
    if (vp->index == 0) count_updates(vp);
}
