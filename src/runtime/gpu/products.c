/* products.c - gradients of matrices (sums of dy x^T) by cuBLAS, between two launches of a batch's kernel: the first
 * one packs the vectors dy and x side by side (codegen/packing.h), the second one updates. The first launch's program
 * (script) holds the place where each task packs its vectors, and the addresses for cuBLAS's calls. */
#include "codegen/packing.h"
#include "runtime/gpu/gpu.h"

bool vpps_gpu_packs(const vpps_gpu *gpu) {
    return vpps_by_cublas(vpps_profile_current(&gpu->device.profile)->gradients);
}

static vpps_status no_memory(const vpps_gpu *gpu) {
    return vpps_fail(VPPS_MEMORY, "%s: out of memory for products by cuBLAS", gpu->table->name);
}

static uint32_t parts_of(const vpps_gpu *gpu) { return vpps_precision_parts(gpu->layout.precision); }

static const vpps_compiled_cell *cell_of(const vpps_batch *batch, const vpps_task *outer) {
    return batch->cells[vpps_block_at(batch->script, outer->operands[0])->cell];
}

/* Returns group 0's next OUTER task (dy x^T) after t (NULL: the first one); NULL: none. All groups of CTAs have the same OUTER tasks. */
static const vpps_task *next_outer(const vpps_batch *batch, const vpps_task *t) {
    const vpps_task *end = vpps_end_of_tasks(batch->script, 0);
    for (t = t ? t + 1 : vpps_first_task(batch->script, 0); t < end; t++)
        if (t->kind == VPPS_TASK_OUTER) return t;
    return NULL;
}

static void find_items(const vpps_batch *batch, const vpps_task *outer, uint32_t *items) {
    const vpps_block *block = vpps_block_at(batch->script, outer->operands[0]);
    vpps_block_view view;
    uint32_t first[VPPS_AXES];
    vpps_view_block(batch->script, block, batch->cells[block->cell], &view);
    vpps_items_of(&view, outer->operands[1], outer->operands[2], first, items);
}

/* Lists in gpu->products.factors the operands dy and x of all gradients of matrices (sums of dy x^T), with 0 vectors each. */
static vpps_status list_factors(vpps_gpu *gpu, const vpps_batch *batch) {
    vpps_gpu_products *p = &gpu->products;
    uint32_t n = 0;
    if (!VPPS_RESERVE(p->first_factor, batch->n_cells + 1u)) return no_memory(gpu);
    for (uint32_t i = 0; i < batch->n_cells; i++) {
        p->first_factor[i] = n;
        n += vpps_packed_operands(batch->cells[i]);
    }
    p->n_factors = n;
    if (!VPPS_RESERVE(p->factors, n + 1u)) return no_memory(gpu);
    memset(p->factors, 0, n * sizeof *p->factors);
    for (uint32_t i = 0; i < batch->n_cells; i++) {
        for (uint32_t k = 0; k < vpps_packed_operands(batch->cells[i]); k++) {
            vpps_gpu_factor *f = &p->factors[p->first_factor[i] + k];
            f->operand = vpps_packed_operand(batch->cells[i], k);
            if (f->operand) f->words = vpps_packed_words(f->operand->rows, parts_of(gpu));
        }
    }
    return VPPS_OK;
}

/* Counts in each operand's `vectors` those that the task `outer` packs: vectors dy and x of some vertices (products dy
 * x^T are a gradient). places[k] becomes the place of the first of operand k's vectors in the buffer `packed`. */
static void add_vectors(const vpps_gpu *gpu, const vpps_batch *batch, const vpps_task *outer, uint32_t *places) {
    const vpps_compiled_cell *c = cell_of(batch, outer);
    const uint32_t cell = vpps_block_at(batch->script, outer->operands[0])->cell;
    uint32_t items[VPPS_AXES];
    find_items(batch, outer, items);
    for (uint32_t k = 0; k < vpps_packed_operands(c); k++) {
        vpps_gpu_factor *f = &gpu->products.factors[gpu->products.first_factor[cell] + k];
        if (places) places[k] = (uint32_t)(f->at + f->vectors * f->words);
        if (f->operand) f->vectors += (uint64_t)items[f->operand->axis] * f->operand->cols;
        f->used |= outer->operands[2] > 0;
    }
}

static vpps_status place_factors(vpps_gpu *gpu) {
    enum { ALIGNED = 64 /* words; cuBLAS may choose its algorithm by the alignment */ };
    vpps_gpu_products *p = &gpu->products;
    uint64_t words = 0;
    for (uint32_t i = 0; i < p->n_factors; i++) {
        p->factors[i].at = words;
        words += (p->factors[i].vectors * p->factors[i].words + ALIGNED - 1) / ALIGNED * ALIGNED;
        p->factors[i].vectors = 0; /* counted again by add_vectors, which gives each task's vectors a place */
    }
    if (words > UINT32_MAX)
        return vpps_fail(VPPS_POOL,
                         "%s: 2^32 words do not hold the factors of gradients for cuBLAS; expected smaller batches",
                         gpu->table->name);
    const size_t bytes = (size_t)words * sizeof(float);
    return bytes > p->packed.bytes ? vpps_gpu_reserve(gpu, &p->packed, bytes + bytes / 4) : VPPS_OK;
}

/* Returns one operand of outer product number `outer` (dy x^T) of a cell: x if is_x, else dy. */
static const vpps_gpu_factor *factor_of(const vpps_gpu *gpu, const vpps_batch *batch, uint32_t cell, uint32_t outer,
                                        bool is_x) {
    const vpps_gpu_products *p = &gpu->products;
    return &p->factors[p->first_factor[cell] + vpps_packed_number(batch->cells[cell], outer, is_x)];
}

/* Describes the product by which cuBLAS computes gradient o of a cell, summed over all the cell's vertices in the batch. */
static vpps_gemm product_of(const vpps_gpu *gpu, const vpps_outer *o, const vpps_gpu_factor *dy, bool adds) {
    const uint32_t parts = parts_of(gpu), rows = o->dy->rows, columns = o->x->rows;
    return (vpps_gemm){.rows = rows,
                       .columns = columns,
                       .depth = (uint32_t)dy->vectors * vpps_packed_times(parts),
                       .dy_stride = vpps_packed_stride(rows, parts),
                       .x_stride = vpps_packed_stride(columns, parts),
                       .bf16 = parts,
                       .tf32 = vpps_profile_current(&gpu->device.profile)->gradients == VPPS_GRADIENTS_CUBLAS_TF32,
                       .adds = adds};
}

static bool is_alike(const vpps_gemm *a, const vpps_gemm *b) {
    return a->rows == b->rows && a->columns == b->columns && a->depth == b->depth && a->adds == b->adds;
}

/* Adds a product to a call of cuBLAS for products of its shape: the first such call from number `first` on, else a new call. Returns the
 * call's number. The call before `first` may compute an earlier term of this gradient. */
static uint32_t call_for(vpps_gpu_products *p, const vpps_gemm *product, uint32_t first) {
    uint32_t i = first;
    while (i < p->n_gemms && !is_alike(&p->gemms[i], product)) i++;
    if (i == p->n_gemms) p->gemms[p->n_gemms++] = *product;
    p->gemms[i].n++;
    return i;
}

/* Lists the products for a cell's gradients, and in which of cuBLAS's calls (for several products of one shape) each
 * is. For each parameter, `begun` tells whether its gradient has a value already, and `latest` is 1 + the number of the
 * last call that computes a term of its gradient; 0: no such call yet. */
static void list_products(vpps_gpu *gpu, const vpps_batch *batch, uint32_t cell, const bool *begun, uint32_t *latest) {
    vpps_gpu_products *p = &gpu->products;
    const vpps_compiled_cell *c = batch->cells[cell];
    const uint32_t first = p->n_gemms;
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (!o.x) continue;
        const vpps_gpu_factor *dy = factor_of(gpu, batch, cell, i, false);
        if (!dy->used) continue;
        const vpps_gemm product = product_of(gpu, &o, dy, latest[o.param] || begun[o.param]);
        const uint32_t call = call_for(p, &product, vpps_max_u32(first, latest[o.param]));
        p->uses[p->n_uses++] = (vpps_gpu_use){cell, i, call};
        latest[o.param] = call + 1;
    }
}

static void put_address(uint32_t *to, uint64_t address) { memcpy(to, &address, sizeof address); }

/* Writes each cuBLAS call's three arrays of addresses (of results, dy and x) to gpu->products.words, and the arrays' indices in `words` to
 * the call's members `to`, `dy` and `x`. Returns the number of words written. */
static uint32_t write_addresses(vpps_gpu *gpu, const vpps_batch *batch) {
    enum { WORDS = sizeof(uint64_t) / sizeof(uint32_t) };
    vpps_gpu_products *p = &gpu->products;
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->n_gemms; i++) {
        vpps_gemm *g = &p->gemms[i];
        g->to = at, g->dy = at + g->n * WORDS, g->x = at + 2 * g->n * WORDS;
        at += 3 * g->n * WORDS;
        for (uint32_t k = 0, n = 0; k < p->n_uses; k++) {
            const vpps_gpu_use *use = &p->uses[k];
            if (use->call != i) continue;
            const uint32_t matrix = gpu->layout.matrix_at[vpps_outer_of(batch->cells[use->cell], use->outer).param];
            const uint64_t dy = factor_of(gpu, batch, use->cell, use->outer, false)->at,
                           x = factor_of(gpu, batch, use->cell, use->outer, true)->at;
            put_address(p->words + g->to + n * WORDS, gpu->gradients.address + 4 * (uint64_t)matrix);
            put_address(p->words + g->dy + n * WORDS, p->packed.address + 4 * dy);
            put_address(p->words + g->x + n * WORDS, p->packed.address + 4 * x);
            n++;
        }
    }
    return at;
}

/* Reserves the lists in gpu->products: addresses for the GPU, cuBLAS's calls, which call makes which gradient. */
static vpps_status reserve_lists(vpps_gpu *gpu, const vpps_batch *batch) {
    enum { ADDRESS_WORDS = 6 };
    vpps_gpu_products *p = &gpu->products;
    uint64_t uses = 0, places = 0;
    for (uint32_t i = 0; i < batch->n_cells; i++) uses += vpps_n_outers(batch->cells[i]);
    for (const vpps_task *t = NULL; (t = next_outer(batch, t));) places += vpps_packed_operands(cell_of(batch, t));
    if (!VPPS_RESERVE(p->uses, uses + 1) || !VPPS_RESERVE(p->gemms, uses + 1) ||
        !VPPS_RESERVE(p->words, ADDRESS_WORDS * uses + places + 1))
        return no_memory(gpu);
    p->n_uses = p->n_gemms = 0;
    return VPPS_OK;
}

vpps_status vpps_gpu_plan_products(vpps_gpu *gpu, const vpps_batch *batch, bool adds) {
    vpps_gpu_products *p = &gpu->products;
    if (!p->cublas) VPPS_TRY(vpps_cublas_open(&p->cublas, gpu->driver));
    VPPS_TRY(list_factors(gpu, batch));
    VPPS_TRY(reserve_lists(gpu, batch));
    for (const vpps_task *t = NULL; (t = next_outer(batch, t));) add_vectors(gpu, batch, t, NULL);
    for (uint32_t i = 0; i < p->n_factors; i++)
        if (p->factors[i].vectors * vpps_packed_times(parts_of(gpu)) > INT32_MAX)
            return vpps_fail(VPPS_POOL, "%s: cuBLAS does not count to 2^31 vectors; expected smaller batches",
                             gpu->table->name);
    const size_t n_params = gpu->model->n_params;
    uint32_t *latest = calloc(n_params + 1, sizeof *latest);
    bool *begun = calloc(n_params + 1, sizeof *begun);
    if (latest && begun) {
        if (adds) memcpy(begun, gpu->dense, n_params * sizeof *begun);
        vpps_gpu_mark_outers(batch, false, begun); /* gradients to which the kernel, before cuBLAS, adds terms */
        for (uint32_t i = 0; i < batch->n_cells; i++) list_products(gpu, batch, i, begun, latest);
    }
    const bool listed = latest && begun;
    VPPS_FREE(latest, begun);
    if (!listed) return no_memory(gpu);
    VPPS_TRY(place_factors(gpu));
    p->places = write_addresses(gpu, batch);
    p->n_words = p->places;
    for (const vpps_task *t = NULL; (t = next_outer(batch, t));) {
        add_vectors(gpu, batch, t, p->words + p->n_words);
        p->n_words += vpps_packed_operands(cell_of(batch, t));
    }
    return VPPS_OK;
}

/* Zeroes the gradients of a call that has no vectors to sum, instead of calling cuBLAS. Leaves them if the call adds to gradients. */
static vpps_status clear(vpps_gpu *gpu, uint32_t call) {
    const vpps_gemm *g = &gpu->products.gemms[call];
    uint64_t address;
    for (uint32_t i = 0; i < g->n && !g->adds; i++) {
        memcpy(&address, gpu->products.words + g->to + 2 * (size_t)i, sizeof address);
        VPPS_TRY(gpu->table->clear(gpu->driver, address, (size_t)g->rows * g->columns * sizeof(float)));
    }
    return VPPS_OK;
}

vpps_status vpps_gpu_multiply(vpps_gpu *gpu, uint64_t words) {
    vpps_gpu_products *p = &gpu->products;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_gemms; i++) {
        vpps_gemm g = p->gemms[i];
        if (!g.depth) {
            VPPS_TRY(clear(gpu, i));
            continue;
        }
        g.to = words + 4 * g.to, g.dy = words + 4 * g.dy, g.x = words + 4 * g.x;
        p->gemms[n++] = g;
    }
    p->n_gemms = 0; /* a second vpps_gpu_multiply queues nothing */
    return vpps_cublas_multiply(p->cublas, p->gemms, n);
}

void vpps_gpu_close_products(vpps_gpu *gpu) {
    vpps_gpu_products *p = &gpu->products;
    if (gpu->driver) vpps_cublas_close(p->cublas);
    VPPS_FREE_ARRAYS(p->first_factor, p->factors, p->uses, p->gemms, p->words);
    *p = (vpps_gpu_products){0};
}
