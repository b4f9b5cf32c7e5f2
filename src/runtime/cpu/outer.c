/* outer.c - computes gradients of parameters: of matrices, as sums of outer products dy x^T; of vectors and table
 * entries, as sums of vectors. Each VP (thread) computes the gradients of its own rows and entries. */
#include "runtime/cpu/outer.h"

void vpps_point_to(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_operand *x, uint32_t first, uint32_t n,
                   const float **out) {
    for (uint32_t i = first; i < first + n; i++) {
        const float *at = vpps_in_pool(cpu, view, x, i);
        for (uint32_t k = 0; k < x->cols; k++) *out++ = at + (size_t)k * x->rows;
    }
}

static void clear_matrix(const vpps_vp *vp, vpps_param param) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_blocks own = vpps_blocks_of(cpu, param, vp->index, cpu->n_vps);
    for (uint32_t b = 0; b < own.n; b++)
        memset(own.blocks[b].gradient, 0, (size_t)own.blocks[b].ld * cpu->model->params[param].cols * sizeof(float));
}

/* to += terms[1] + ... + terms[count], in this order; n elements each. terms[0] is room for the address `to`. */
static void add_terms(const vpps_cpu *cpu, uint32_t n, float *to, uint32_t count, const float **terms) {
    terms[0] = to;
    cpu->kernels->run[VPPS_I_SUM](n, to, &(vpps_operands){.list = terms, .n_list = count + 1, .f = 1});
}

/* Adds the vertices' dy to a matrix's gradient, for a cell that reads the matrix as a value instead of multiplying vectors with it. */
static void add_whole_matrix(vpps_vp *vp, const vpps_block_view *view, const vpps_outer *o, uint32_t first,
                             uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_operand *dy = o->dy;
    const vpps_blocks own = vpps_blocks_of(cpu, o->param, vp->index, cpu->n_vps);
    if (vp->touched[o->param] != cpu->sum.number) clear_matrix(vp, o->param);
    for (uint32_t b = 0; b < own.n; b++) {
        const vpps_matrix_block *block = &own.blocks[b];
        for (uint32_t k = 0; k < dy->cols; k++) {
            for (uint32_t i = 0; i < n; i++)
                vp->pointers[1 + i] = vpps_in_pool(cpu, view, dy, first + i) + (size_t)k * dy->rows + block->first_row;
            add_terms(cpu, block->rows, block->gradient + k * block->ld, n, vp->pointers);
        }
    }
}

static void add_vector(vpps_vp *vp, const vpps_block_view *view, const vpps_outer *o, uint32_t first, uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_rows rows = vpps_rows_of_vp(cpu, o->param, vp->index);
    if (rows.first == rows.end) return;
    const uint32_t vectors = n * o->dy->cols;
    vpps_point_to(cpu, view, o->dy, first, n, vp->pointers + 1);
    for (uint32_t i = 1; i <= vectors; i++) vp->pointers[i] += rows.first;
    add_terms(cpu, rows.end - rows.first, cpu->pool + cpu->plan.gradients[o->param] + rows.first, vectors,
              vp->pointers);
}

/* Numbers of vectors x in sums of dy x^T. PACKED_VECTORS are packed at a time, and stay in L2 for the gradients of all matrices that
 * multiply them. Up to CLIPPED_VECTORS, computing a gradient twice, for the norm and for the update, costs less than writing it to memory.
 * Up to COPIED_VECTORS are copied if they are parameters, since updates may change them too early. */
enum { PACKED_VECTORS = 4 * 128, CLIPPED_VECTORS = 16, COPIED_VECTORS = 64 };

size_t vpps_outer_floats(const vpps_cpu *cpu, uint32_t k) {
    const uint32_t parts = cpu->precision.parts;
    if (!parts) return PACKED_VECTORS * cpu->kernels->outer_stride(k);
    return vpps_bf16_words(k, PACKED_VECTORS, parts) + vpps_bf16_words(VPPS_BLOCK_ROWS, PACKED_VECTORS, parts);
}

void vpps_pack_outer(const vpps_vp *vp, uint32_t n, uint32_t k, const float *const *x) {
    const vpps_cpu *cpu = vp->cpu;
    if (!cpu->precision.parts) {
        cpu->kernels->pack_outer(n, k, x, vp->scratch);
        return;
    }
    const vpps_bf16_source s = {x, 0, k, n, true};
    cpu->precision.unit.pack(&s, cpu->precision.parts, VPPS_BF16_AS_ROWS, vpps_bf16_depth_tiles(n),
                             (uint32_t *)(void *)vp->scratch);
}

/* Computes, in bf16, a sum of outer products dy x^T, as vpps_add_outer does in fp32. The padding of the block of rows becomes zero. */
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

void vpps_add_outer(const vpps_vp *vp, const vpps_matrix_block *block, uint32_t n, uint32_t k, const float *const *d,
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

/* Adds outer products to the gradients of all matrices that multiply value x, for the value's vectors [first, first + n), which are packed
 * once. `apart`: sums these products before adding them to earlier ones, so that no sum gets too long. */
static void add_matrices(vpps_vp *vp, const vpps_block_view *view, const vpps_operand *x, const float *const *xs,
                         uint32_t first, uint32_t n, bool apart) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    const uint32_t k = x->rows;
    float *sum = vp->scratch + vpps_outer_floats(cpu, k);
    vpps_pack_outer(vp, n, k, xs + first);
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (!vpps_same_value(o.x, x) || vp->by_update[o.param] == cpu->launch) continue;
        const vpps_blocks blocks = vpps_blocks_of(cpu, o.param, vp->index, cpu->n_vps);
        const bool add = vp->touched[o.param] == cpu->sum.number;
        const float *const *d = vp->pointers + (size_t)vp->d_at[i] + first;
        for (uint32_t b = 0; b < blocks.n; b++) {
            const vpps_matrix_block *block = &blocks.blocks[b];
            vpps_add_outer(vp, block, n, k, d, add && apart ? sum : block->gradient, add && !apart);
            if (add && apart) cpu->kernels->add((uint32_t)block->ld * k, block->gradient, sum);
        }
        vp->touched[o.param] = cpu->sum.number;
    }
}

uint32_t vpps_outer_vectors(const vpps_block_view *view, const vpps_operand *x, uint32_t at, uint32_t count,
                            uint32_t *first) {
    const uint32_t *starts = view->lists[x->axis];
    *first = x->axis ? starts[at] : at;
    return (x->axis ? starts[at + count] - *first : count) * x->cols;
}

/* Returns whether operand x may be a vector parameter or a table entry, which the optimizer's update changes. */
static bool reads_parameters(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_operand *x) {
    if (x->place == VPPS_PLACE_ENTRY || x->place == VPPS_PLACE_PARAMETER) return true;
    if (x->place != VPPS_PLACE_INPUT) return false;
    for (uint32_t i = 0; i < vpps_items(view->block, x->axis); i++)
        if (vpps_input_at(view, x->at, i) < cpu->plan.batch) return true;
    return false;
}

/* Decides which matrices' gradients the update computes itself. If few vectors of a single block of vertices add to a gradient, it is not
 * written to memory: the update computes it, a block of matrix rows at a time, while that is in the cache. Clipping needs the norm first,
 * so then the gradient is computed twice, if vectors are few. No gradient that is exchanged with other processes is left to the update. */
void vpps_choose_updates(vpps_cpu *cpu) {
    const uint32_t n_params = (uint32_t)cpu->model->n_params, n_blocks = cpu->batch.header.n_blocks;
    const bool clip = cpu->batch.header.clip > 0;
    const uint32_t most = clip ? CLIPPED_VECTORS : PACKED_VECTORS;
    memset(cpu->batch.uses, 0, n_params * sizeof *cpu->batch.uses);
    if (!cpu->batch.header.lasting || cpu->share) return;
    for (uint32_t b = 0; b < n_blocks; b++)
        for (uint32_t i = 0; i < vpps_n_outers(cpu->batch.views[b].cell) && cpu->batch.views[b].block->n; i++)
            cpu->batch.uses[vpps_outer_of(cpu->batch.views[b].cell, i).param]++;
    for (uint32_t b = 0; b < n_blocks; b++) {
        const vpps_block_view *view = &cpu->batch.views[b];
        for (uint32_t i = 0; i < vpps_n_outers(view->cell) && view->block->n; i++) {
            const vpps_outer o = vpps_outer_of(view->cell, i);
            uint32_t first;
            if (!o.x || cpu->batch.uses[o.param] != 1) continue;
            const uint32_t n = vpps_outer_vectors(view, o.dy, 0, view->block->n, &first);
            if (n > most || (n > COPIED_VECTORS && reads_parameters(cpu, view, o.x))) cpu->batch.uses[o.param] = 0;
        }
    }
}

static bool made_by_update(const vpps_cpu *cpu, const vpps_block_view *view, const vpps_outer *o, uint32_t n) {
    uint32_t first; /* not used */
    return o->x && cpu->batch.uses[o->param] == 1 && n == view->block->n &&
           vpps_outer_vectors(view, o->dy, 0, n, &first);
}

/* Returns the most pairs (dy, x) in a gradient, sum of dy x^T, that the optimiser's update computes; 0: none. */
static uint32_t most_by_update(const vpps_cpu *cpu, const vpps_block_view *view) {
    uint32_t most = 0, first;
    for (uint32_t i = 0; i < vpps_n_outers(view->cell); i++) {
        const vpps_outer o = vpps_outer_of(view->cell, i);
        if (made_by_update(cpu, view, &o, view->block->n))
            most = vpps_max_u32(most, vpps_outer_vectors(view, o.dy, 0, view->block->n, &first));
    }
    return most;
}

/* Copies the vectors of operand x for all vertices of the block to vp->copies. Returns false if out of memory. */
static bool copy_vectors(vpps_vp *vp, const vpps_block_view *view, const vpps_operand *x) {
    const uint32_t k = x->rows;
    uint32_t first;
    const uint32_t n = vpps_outer_vectors(view, x, 0, view->block->n, &first);
    if (!VPPS_RESERVE(vp->pointers, n) || !VPPS_RESERVE(vp->copies, vp->n_copies + (size_t)n * k)) return false;
    vpps_point_to(vp->cpu, view, x, first, n / x->cols, vp->pointers);
    for (uint32_t i = 0; i < n; i++, vp->n_copies += k)
        memcpy(vp->copies + vp->n_copies, vp->pointers[i], k * sizeof *vp->copies);
    return true;
}

/* Notes which gradients (sums of dy x^T) of a block of vertices the optimiser's update computes itself. Copies their x
 * if these are parameters or table entries, which other threads may update first. Returns false if out of memory. */
static bool leave_to_update(vpps_vp *vp, const vpps_block_view *view, uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_compiled_cell *c = view->cell;
    if (vp->copied != cpu->launch) vp->n_copies = 0;
    vp->copied = cpu->launch;
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (!made_by_update(cpu, view, &o, n)) continue;
        vp->by_update[o.param] = cpu->launch;
        vp->copy_of[o.param] = VPPS_NO_COPY;
        for (uint32_t j = 0; j < i && vp->copy_of[o.param] == VPPS_NO_COPY; j++) {
            const vpps_outer other = vpps_outer_of(c, j);
            if (vpps_same_value(other.x, o.x) && vp->by_update[other.param] == cpu->launch)
                vp->copy_of[o.param] = vp->copy_of[other.param];
        }
        if (vp->copy_of[o.param] != VPPS_NO_COPY || !reads_parameters(cpu, view, o.x)) continue;
        vp->copy_of[o.param] = vp->n_copies;
        if (!copy_vectors(vp, view, o.x)) return false;
    }
    return true;
}

/* Adds to gradients that are sums of vectors, not of outer products, for vertices [at, at + n). A matrix that
 * multiplied nothing, as it multiplies nodes of lists and all lists are empty, gets a zero gradient and is updated.
 * Returns false if out of memory. */
static bool add_sums(vpps_vp *vp, const vpps_block_view *view, uint32_t at, uint32_t n) {
    const vpps_cpu *cpu = vp->cpu;
    for (uint32_t i = 0; i < vpps_n_outers(view->cell); i++) {
        const vpps_outer o = vpps_outer_of(view->cell, i);
        uint32_t first;
        const uint32_t vectors = vpps_outer_vectors(view, o.dy, at, n, &first);
        const bool matrix = cpu->model->params[o.param].kind == VPPS_MATRIX;
        if (vectors && o.x) continue;
        if (vectors && !VPPS_RESERVE(vp->pointers, vectors + 1)) return false;
        if (vectors) (matrix ? add_whole_matrix : add_vector)(vp, view, &o, first, vectors / o.dy->cols);
        if (!vectors && matrix && vp->touched[o.param] != cpu->sum.number) clear_matrix(vp, o.param);
        vp->touched[o.param] = cpu->sum.number;
    }
    return true;
}

void vpps_vp_outer(vpps_vp *vp, uint32_t address, uint32_t block_number, uint32_t first, uint32_t n) {
    vpps_cpu *cpu = vp->cpu;
    const vpps_block_view *view = &cpu->batch.views[block_number];
    const vpps_compiled_cell *c = view->cell;
    const uint32_t n_outers = vpps_n_outers(c);
    if (!add_sums(vp, view, first, n) || !leave_to_update(vp, view, n)) {
        vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for gradients");
        return;
    }
    /* a gradient that the optimiser's update computes needs pointers to the dy and x of all vertices at once */
    const size_t by_update = n == view->block->n ? most_by_update(cpu, view) : 0;
    for (uint32_t at = first, count; at < first + n; at += count) {
        count = vpps_min_u32(first + n - at, PACKED_VECTORS);
        size_t pointers = 0, floats = 0;
        bool all = true; /* whether the update computes all gradients of matrices */
        for (uint32_t i = 0; i < n_outers; i++) {
            const vpps_outer o = vpps_outer_of(c, i);
            uint32_t item;
            pointers += 2 * (size_t)vpps_outer_vectors(view, o.dy, at, count, &item);
            if (!o.x) continue;
            all &= vp->by_update[o.param] == cpu->launch;
            const size_t packed = vpps_outer_floats(cpu, o.x->rows) + (size_t)o.x->rows * VPPS_BLOCK_ROWS;
            if (packed > floats) floats = packed;
        }
        if (pointers < 2 * by_update) pointers = 2 * by_update;
        if (!VPPS_RESERVE(vp->pointers, pointers + 1) || !VPPS_RESERVE(vp->sums, 2 * (size_t)n_outers) ||
            !VPPS_RESERVE(vp->d_at, n_outers) || !vpps_vp_scratch(vp, floats)) {
            vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for gradients");
            return;
        }
        if (all) continue;
        size_t next = 0;
        for (uint32_t i = 0; i < n_outers; i++) {
            const vpps_outer o = vpps_outer_of(c, i);
            uint32_t item;
            if (!o.x) continue;
            vp->d_at[i] = (uint32_t)next;
            const uint32_t vectors = vpps_outer_vectors(view, o.dy, at, count, &item);
            vpps_point_to(cpu, view, o.dy, item, vectors / o.dy->cols, vp->pointers + next);
            next += vectors;
        }
        for (uint32_t i = 0; i < n_outers; i++) {
            const vpps_operand *x = vpps_new_factor(c, i);
            if (!x) continue;
            uint32_t item;
            const uint32_t vectors = vpps_outer_vectors(view, x, at, count, &item);
            const float **xs = vp->pointers + next;
            vpps_point_to(cpu, view, x, item, vectors / x->cols, xs);
            for (uint32_t v = 0; v < vectors; v += PACKED_VECTORS)
                add_matrices(vp, view, x, xs, v, vpps_min_u32(vectors - v, PACKED_VECTORS), at > first || v);
        }
    }
}

vpps_rows vpps_own_entries(const vpps_vp *vp, uint32_t n) {
    const uint64_t n_vps = vp->cpu->n_vps;
    return (vpps_rows){(uint32_t)(n * (uint64_t)vp->index / n_vps), (uint32_t)(n * (vp->index + (uint64_t)1) / n_vps)};
}

void vpps_vp_entries(vpps_vp *vp, uint32_t number, uint32_t address) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_table *t = vpps_table_at(cpu->batch.script, number);
    const vpps_parameter_data *data = &cpu->model->params[t->param];
    const uint32_t words = data->rows * data->cols;
    const vpps_entry_sums s = vpps_sums_at(cpu->batch.script, address);
    const vpps_rows own = vpps_own_entries(vp, s.n);
    for (uint32_t i = own.first; i < own.end; i++) {
        float *to = cpu->pool + t->gradients + (size_t)s.entries[i] * words;
        const uint32_t *list = s.offsets + s.starts[i], n = s.starts[i + 1] - s.starts[i];
        cpu->kernels->add_up(words, n, cpu->pool, list, 0, to);
    }
}
