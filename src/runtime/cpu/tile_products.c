/* tile_products.c - products of matrices, of which each thread has some blocks of rows, with the vectors of a whole
 * tile: vertices for which a thread runs a part of a cell together (tile.h). products.h describes the kernels. */
#include "runtime/cpu/tile.h"

static vpps_blocks blocks_of(const vpps_tile *t, vpps_param matrix) {
    return t->p->rows ? vpps_blocks_of(t->vp->cpu, matrix, t->member, t->c->needs.group)
                      : vpps_blocks_of(t->vp->cpu, matrix, 0, 1);
}

/* Sets x[] to the addresses of an operand's columns, for all vertices (or nodes in their lists) that `t` covers. */
static void point(const vpps_tile *t, const vpps_operand *o, const float **x) {
    const vpps_span w = vpps_span_of(t, o, false);
    const uint32_t n = t->n[o->axis];
    for (uint32_t i = 0; i < n; i++) {
        const float *item = vpps_span_at(&w, i);
        for (uint32_t k = 0; k < o->cols; k++) x[(size_t)i * o->cols + k] = item + (size_t)k * o->rows;
    }
}

/* Returns the address of the rows of the first matrix, from operand k on, of which this thread has rows, or NULL. */
static const float *block_from(const vpps_tile *t, const vpps_program_step *s, uint32_t k) {
    for (; k < s->n; k++) {
        const vpps_blocks blocks = blocks_of(t, vpps_operands_of(t, s)[k].matrix);
        if (blocks.n) return blocks.blocks[0].values;
    }
    return NULL;
}

/* Returns the address that the next product reads first, in this tile or the next one, for prefetching. */
static const float *next_block(const vpps_tile *t, const vpps_program_step *s) {
    for (const vpps_program_step *end = t->p->steps + t->p->n, *next = s + 1;; next++) {
        if (next == end) next = t->p->steps;
        if (next->kind == VPPS_STEP_PRODUCT && !next->product.transposed) return block_from(t, next, 0);
    }
}

/* Returns the end of the run of vectors, from number i on, that are equally spaced in memory in both `a` and `b`. */
static uint32_t run_end(const vpps_span *a, const vpps_span *b, uint32_t i, uint32_t n) {
    const uint32_t *live = a->live ? a->live : b->live;
    uint32_t end = i + 1;
    if (!live) return n;
    while (end < n && live[end] == live[end - 1] + 1) end++;
    return end;
}

/* The result of a product, as vectors, and the vectors to which it is added (from.base NULL: none). */
typedef struct product {
    vpps_span c, from;
    uint32_t n;         /* number of vectors */
    uint32_t first_row; /* first row of the result that this virtual processor (thread) computes */
} product;

/* Returns the address of row `row` of vector i of an operand's vectors `w`, or NULL if there are none. */
static float *vector_at(const vpps_span *w, uint32_t i, uint32_t row) {
    return w->base ? vpps_span_at(w, i) + row : NULL;
}

/* Multiplies a block of rows with all vectors while the block is in the cache: a call for each run of vectors equally spaced in memory. */
static void multiply_block(const vpps_tile *t, const product *p, const vpps_matrix_block *block, uint32_t depth,
                           const float *next) {
    const uint32_t row = block->first_row - p->first_row;
    for (uint32_t i = 0, end; i < p->n; i = end) {
        end = run_end(&p->from, &p->c, i, p->n);
        t->kernels->product(block->rows, end - i, depth, block->values, block->ld, t->vp->pointers + i, 0,
                            vector_at(&p->from, i, row), p->from.stride, vector_at(&p->c, i, row), p->c.stride, next);
    }
}

static void multiply_fp32(const vpps_tile *t, const vpps_program_step *s, product *p) {
    for (uint32_t k = 0; k < s->n; k++) {
        const vpps_operand *o = vpps_operands_of(t, s) + k;
        const vpps_blocks blocks = blocks_of(t, o->matrix);
        point(t, o, t->vp->pointers);
        for (uint32_t b = 0; b < blocks.n; b++) {
            const float *next = b + 1 < blocks.n ? blocks.blocks[b + 1].values : block_from(t, s, k + 1);
            multiply_block(t, p, &blocks.blocks[b], o->rows, next ? next : next_block(t, s));
        }
        p->from = p->c;
    }
}

/* Computes a sum of products of matrices and vectors in bf16, all matrices at once, so that the sum is stored once. Vectors that several
 * matrices multiply are packed once, if they are adjacent in memory. Returns false if out of memory. */
static bool multiply_bf16(const vpps_tile *t, const vpps_program_step *s, const product *p) {
    vpps_vp *vp = t->vp;
    const vpps_cpu_precision *precision = &vp->cpu->precision;
    const vpps_operand *o = vpps_operands_of(t, s);
    if (!VPPS_RESERVE(vp->bf16_terms, s->n)) return false;
    for (uint32_t i = 0, end; i < p->n; i = end) {
        end = run_end(&p->from, &p->c, i, p->n);
        for (uint32_t k = 0; k < s->n; k++) {
            vpps_bf16_term *term = &vp->bf16_terms[k];
            term->depth = o[k].rows;
            point(t, &o[k], vp->pointers);
            if (!vpps_pack_vectors(vp, end - i == p->n ? o[k].value : VPPS_NONE, end - i, term->depth, vp->pointers + i,
                                   0, &term->x_words))
                return false;
        }
        /* all matrices of this sum of products are divided into blocks at the same rows, so o[0]'s blocks stand for all */
        const vpps_blocks blocks = blocks_of(t, o[0].matrix);
        for (uint32_t b = 0; b < blocks.n; b++) {
            const uint32_t row = blocks.blocks[b].first_row - p->first_row;
            for (uint32_t k = 0; k < s->n; k++) vp->bf16_terms[k].a = blocks_of(t, o[k].matrix).blocks[b].packed;
            precision->unit.product(blocks.blocks[b].rows, end - i, precision->parts, vp->vectors, s->n, vp->bf16_terms,
                                    vector_at(&p->from, i, row), p->from.stride, vector_at(&p->c, i, row), p->c.stride);
        }
    }
    return true;
}

/* Returns where an operand's columns lie, vertex after vertex; several per vertex lie in a buffer without gaps. */
static vpps_span columns_of(const vpps_tile *t, const vpps_operand *o) {
    if (o->place == VPPS_PLACE_NONE) return (vpps_span){0};
    vpps_span w = vpps_span_of(t, o, false);
    if (o->cols > 1) w.stride /= o->cols;
    return w;
}

static bool multiply(const vpps_tile *t, const vpps_program_step *s) {
    const uint32_t width = vpps_width_of(t, &s->to) / s->to.cols;
    product p = {columns_of(t, &s->to), columns_of(t, &s->product.start), t->n[s->axis] * s->to.cols,
                 vpps_first_of(t, &s->to)};
    if (!p.n || !width) return true;
    if (!VPPS_RESERVE(t->vp->pointers, p.n)) return false;
    if (t->vp->cpu->precision.parts && block_from(t, s, 0)) return multiply_bf16(t, s, &p);
    multiply_fp32(t, s, &p);
    for (uint32_t i = 0; i < p.n && !s->n; i++)
        memcpy(vector_at(&p.c, i, 0), vector_at(&p.from, i, 0), width * sizeof *p.c.base);
    return true;
}

/* Returns the first VP (thread) whose rows of a transposed matrix this VP multiplies; *n: number of such VPs. */
static uint32_t first_vp_of(const vpps_tile *t, uint32_t *n) {
    *n = t->p->rows ? t->vp->cpu->n_vps / t->c->needs.group : t->vp->cpu->n_vps;
    return t->p->rows ? t->member * *n : 0;
}

/* Lists the terms of a transposed product with n vectors in vp->terms. A term is a block of a matrix's rows or, with
 * `copies`, the transposed copy of a thread's rows of the matrix. Returns false if out of memory. */
static bool find_terms(const vpps_tile *t, const vpps_program_step *s, uint32_t n, bool copies, uint32_t *n_terms) {
    vpps_vp *vp = t->vp;
    const vpps_cpu *cpu = vp->cpu;
    const vpps_operand *o = vpps_operands_of(t, s);
    uint32_t share, most = 0;
    const uint32_t first_vp = first_vp_of(t, &share);
    for (uint32_t i = 0; i < s->n; i++) most += copies ? share : blocks_of(t, o[i].matrix).n;
    if (!VPPS_RESERVE(vp->pointers, (size_t)n * s->n) || !VPPS_RESERVE(vp->terms, most + 1u)) return false;
    *n_terms = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const float **pointers = vp->pointers + (size_t)i * n;
        point(t, &o[i], pointers);
        const uint32_t first = vpps_rows_of_vp(cpu, o[i].matrix, first_vp).first;
        for (uint32_t v = first_vp; copies && v < first_vp + share; v++) {
            const vpps_rows rows = vpps_rows_of_vp(cpu, o[i].matrix, v);
            if (rows.first == rows.end) continue;
            vp->terms[(*n_terms)++] = (vpps_product_term){cpu->matrices[o[i].matrix].transposed[v], VPPS_BLOCK_ROWS,
                                                          rows.end - rows.first, rows.first - first, pointers};
        }
        const vpps_blocks blocks = blocks_of(t, o[i].matrix);
        for (uint32_t b = 0; !copies && b < blocks.n; b++) {
            const vpps_matrix_block *block = &blocks.blocks[b];
            vp->terms[(*n_terms)++] =
                (vpps_product_term){block->values, block->ld, block->rows, block->first_row - first, pointers};
        }
    }
    return true;
}

/* Returns whether to use transposed copies of the matrices. The task's size decides, so that all tile sizes give the same bits. */
static bool want_copies(const vpps_tile *t, const vpps_program_step *s) {
    const vpps_cpu *cpu = t->vp->cpu;
    const uint32_t n = vpps_vectors_of_task(t->c, s, t->p->rows, t->task_items);
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_param matrix = vpps_operands_of(t, s)[i].matrix;
        if (!vpps_has_copies(cpu, matrix)) return false;
        if (!cpu->precision.parts && n < cpu->choice.few) return false;
    }
    return true;
}

/* Multiplies transposed matrices with n vectors in bf16; results have k elements and are ldc apart. Returns false if out of memory. */
static bool multiply_transposed_bf16(const vpps_tile *t, const vpps_program_step *s, uint32_t n, uint32_t k, float *c,
                                     size_t ldc) {
    vpps_vp *vp = t->vp;
    const vpps_cpu *cpu = vp->cpu;
    const bool copies = want_copies(t, s);
    uint32_t share, n_terms = 0;
    const uint32_t first_vp = first_vp_of(t, &share), n_values = t->c->n_values;
    if (!VPPS_RESERVE(vp->pointers, n) || !VPPS_RESERVE(vp->bf16_terms, (size_t)s->n * share)) return false;
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_operand *o = vpps_operands_of(t, s) + i;
        const uint32_t first = vpps_rows_of_vp(cpu, o->matrix, first_vp).first;
        point(t, o, vp->pointers);
        for (uint32_t v = first_vp; v < first_vp + share; v++) {
            const vpps_rows rows = vpps_rows_of_vp(cpu, o->matrix, v);
            const uint32_t depth = rows.end - rows.first, at = rows.first - first;
            const uint32_t key = (1 + v - first_vp) * n_values + o->value, spread_key = key + share * n_values;
            if (!depth) continue;
            const vpps_cpu_matrix *m = &cpu->matrices[o->matrix];
            vpps_bf16_term *term = &vp->bf16_terms[n_terms++];
            *term =
                (vpps_bf16_term){.a = copies ? m->packed_t[v] : m->blocks[m->first_block[v]].packed, .depth = depth};
            if (copies ? !vpps_pack_vectors(vp, key, n, depth, vp->pointers, at, &term->x_words)
                       : !vpps_spread_vectors(vp, key, spread_key, n, depth, vp->pointers, at, &term->x_words))
                return false;
        }
    }
    const vpps_cpu_precision *p = &cpu->precision;
    for (uint32_t i = 0; i < n && !n_terms; i++) memset(c + i * ldc, 0, k * sizeof *c);
    if (n_terms && copies) p->unit.product(k, n, p->parts, vp->vectors, n_terms, vp->bf16_terms, NULL, 0, c, ldc);
    if (n_terms && !copies) p->unit.product_t(k, n, p->parts, vp->vectors, n_terms, vp->bf16_terms, c, ldc);
    return true;
}

/* Multiplies transposed copies of matrices with n vectors in fp32, VPPS_BLOCK_ROWS elements of the results at a time. */
static void multiply_copies(const vpps_tile *t, uint32_t n, uint32_t k, uint32_t n_terms, float *c, size_t ldc) {
    const vpps_product_term *terms = t->vp->terms;
    for (uint32_t p = 0; p < k; p += VPPS_BLOCK_ROWS) {
        for (uint32_t i = 0; i < n_terms; i++) {
            const vpps_product_term *term = &terms[i];
            const uint32_t panel = i + 1 < n_terms || p + VPPS_BLOCK_ROWS >= k ? p : p + VPPS_BLOCK_ROWS;
            const vpps_product_term *next = &terms[i + 1 < n_terms ? i + 1 : 0];
            t->kernels->product(vpps_min_u32(k - p, VPPS_BLOCK_ROWS), n, term->m, term->a + (size_t)p * term->m,
                                VPPS_BLOCK_ROWS, term->x, term->skip, i ? c + p : NULL, ldc, c + p, ldc,
                                next->a + (size_t)panel * next->m);
        }
    }
}

static bool multiply_transposed(const vpps_tile *t, const vpps_program_step *s) {
    const uint32_t n = t->n[s->axis] * s->to.cols, k = s->to.rows;
    const vpps_span to = columns_of(t, &s->to);
    float *c = to.base;
    if (!n) return true;
    if (t->vp->cpu->precision.parts) return multiply_transposed_bf16(t, s, n, k, c, to.stride);
    const bool copies = want_copies(t, s);
    uint32_t n_terms;
    if (!find_terms(t, s, n, copies, &n_terms)) return false;
    for (uint32_t i = 0; i < n && !n_terms; i++) memset(c + i * to.stride, 0, k * sizeof *c);
    if (n_terms && copies) multiply_copies(t, n, k, n_terms, c, to.stride);
    if (n_terms && !copies) t->kernels->product_t(n, k, n_terms, t->vp->terms, c, to.stride, false);
    return true;
}

bool vpps_tile_product(const vpps_tile *t, const vpps_program_step *s) {
    return s->product.transposed ? multiply_transposed(t, s) : multiply(t, s);
}
