/* stage.c - a stage of a cell over some vertices: tile after tile, the program of tile.h. */
#include "runtime/cpu/cpu.h"

/* The tile at hand. */
typedef struct tile {
    vpps_vp *vp;
    const vpps_kernels *kernels;
    const vpps_compiled_cell *c;
    const vpps_tile_program *p;
    const vpps_block_view *view;
    const uint32_t *script;
    float *pool;
    uint32_t stage_index;
    uint32_t member;
    bool rows;                                     /* rows are shared out, else vertices */
    uint32_t first[VPPS_DOMAINS], n[VPPS_DOMAINS]; /* vertices, members; of the part of the tile at hand */
    uint32_t whole[VPPS_DOMAINS];                  /* of the whole tile */
    uint32_t before;                               /* the tile's vertices before the part */
    const uint32_t *live; /* vertices that run, which first[0] then counts; NULL: all, and it counts the block's */
    float *passing, *contributions; /* of the task, and the items that it runs over: */
    uint32_t task_first[VPPS_DOMAINS], task_items[VPPS_DOMAINS];
    float *region[VPPS_DOMAINS]; /* slots of vertices, of members */
} tile;

/* Where the part's items of a value lie, side by side. */
static float *slot_of(const tile *t, uint32_t v) {
    const uint32_t domain = t->c->values[v].domain;
    const vpps_tile_slot *slot = &t->p->slots[v];
    return t->region[domain] + (size_t)slot->at * t->whole[domain] + (size_t)t->before * slot->width;
}

/* Vertex i of the part, counted in the block. */
static uint32_t vertex_at(const tile *t, uint32_t i) { return t->live ? t->live[t->first[0] + i] : t->first[0] + i; }

/* A vertex's first member of a list, counted in the block, and how many it has. */
static uint32_t first_member(const tile *t, uint32_t domain, uint32_t vertex) { return t->view->lists[domain][vertex]; }
static uint32_t members_of(const tile *t, uint32_t domain, uint32_t vertex) {
    return t->view->lists[domain][vertex + 1] - t->view->lists[domain][vertex];
}

/* The vertex, counted in the tile, that member i of the tile's belongs to. */
static uint32_t vertex_of(const tile *t, uint32_t domain, uint32_t i) {
    const uint32_t *starts = t->view->lists[domain] + t->first[0];
    const uint32_t at = t->first[domain] + i;
    uint32_t low = 0, high = t->n[0];
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (starts[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    while (starts[low + 1] <= at) low++;
    return low;
}

/* ---------------------------------------------------------------- memory */

/* Where item i of a value lies in the pool. */
static float *in_memory(const tile *t, uint32_t v, uint32_t i) {
    const vpps_cell_value *x = &t->c->values[v];
    const uint32_t item = x->domain ? t->first[x->domain] + i : vertex_at(t, i);
    if (x->kept && vpps_is_passing(x->record))
        return t->passing + (size_t)(item - t->task_first[0]) * t->c->kept_words[x->record] + x->offset;
    return vpps_in_pool(t->vp->cpu, t->view, x, item);
}

static void load(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_tile_slot *slot = &t->p->slots[v];
    float *to = slot_of(t, v);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += slot->width) {
        const float *from;
        if (x->kind == VPPS_VALUE_DATA) {
            from = (const float *)(const void *)(t->script + t->view->data[t->first[0] + i]);
        } else {
            from = in_memory(t, v, i);
        }
        memcpy(to, from + slot->first, slot->width * sizeof *to);
    }
}

/* The VP's rows of what all VPs of the group made shares of. */
static void add_shares(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_tile_slot *slot = &t->p->slots[v];
    float *to = slot_of(t, v);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += slot->width) {
        const float *from = in_memory(t, v, i) + slot->first;
        memcpy(to, from, slot->width * sizeof *to);
        for (uint32_t m = 1; m < vpps_shares_of(t->c, x); m++)
            t->kernels->add(slot->width, to, from + (size_t)m * vpps_share_words(x));
    }
}

/* The sum of what users contributed, in the order of the list. */
static void add_gradients(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_tile_slot *slot = &t->p->slots[v];
    const uint32_t *starts = t->view->gradient_starts[x->output] + t->first[0];
    const uint32_t *entries = t->view->gradients[x->output];
    float *to = slot_of(t, v);
    for (uint32_t i = 0; i < t->n[0]; i++, to += slot->width) {
        const uint32_t n = starts[i + 1] - starts[i], *list = entries + starts[i];
        if (!n) {
            memset(to, 0, slot->width * sizeof *to);
            continue;
        }
        memcpy(to, t->pool + list[0] + slot->first, slot->width * sizeof *to);
        for (uint32_t k = 1; k < n; k++) t->kernels->add(slot->width, to, t->pool + list[k] + slot->first);
    }
}

static void store(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_tile_slot *slot = &t->p->slots[v];
    const float *from = slot_of(t, v);
    const size_t skip = slot->first + (vpps_makes_shares(x) ? (size_t)t->member * vpps_share_words(x) : 0);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, from += slot->width)
        memcpy(in_memory(t, v, i) + skip, from, slot->width * sizeof *from);
}

/* Where a contribution of the tile's items lies. */
static float *contribution(const tile *t, uint32_t v, uint32_t j) {
    const vpps_cell_value *x = &t->c->values[v];
    uint64_t at = vpps_contribution_at(t->c, t->stage_index, t->task_items, j);
    if (t->c->contributions[j].partial)
        at += vpps_contribution_words(t->c, t->task_items[x->domain], j) / t->c->needs.group * t->member;
    return t->contributions + at + (size_t)(t->first[x->domain] - t->task_first[x->domain]) * vpps_value_words(x);
}

static void contribute(const tile *t, uint32_t v, uint32_t j) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_tile_slot *slot = &t->p->slots[v];
    const uint32_t words = vpps_value_words(x);
    const float *from = slot_of(t, v);
    float *to = contribution(t, v, j) + slot->first;
    if (slot->width == words) {
        memcpy(to, from, (size_t)t->n[x->domain] * words * sizeof *to);
        return;
    }
    for (uint32_t i = 0; i < t->n[x->domain]; i++, from += slot->width, to += words)
        memcpy(to, from, slot->width * sizeof *to);
}

/* ---------------------------------------------------------------- instructions */

/* Item i of a value, for an item of another value's domain. */
static const float *operand(const tile *t, const vpps_cell_arg *a, uint32_t domain, uint32_t i) {
    const vpps_cell_value *x = &t->c->values[a->value];
    const uint32_t item = x->domain == domain ? i : vertex_of(t, domain, i);
    return slot_of(t, a->value) + (size_t)item * t->p->slots[a->value].width + a->element;
}

static bool need_pointers(vpps_vp *vp, size_t n) { return VPPS_RESERVE(vp->pointers, vp->pointers_capacity, n); }

/* Operands of item i of value v. */
static bool gather_operands(const tile *t, uint32_t v, uint32_t i, vpps_operands *o) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_cell_arg *args = &t->c->args[x->first_arg];
    const char *types = vpps_instructions[x->run.opcode].operands;
    const uint32_t item = x->domain ? t->first[x->domain] + i : vertex_at(t, i);
    const uint32_t vertex = x->domain ? t->first[0] + vertex_of(t, x->domain, i) : item;
    const uint32_t member = x->domain ? item - first_member(t, x->domain, vertex) : 0; /* counted in the vertex */
    uint32_t n = 0, n_t = 0, n_s = 0;
    const vpps_cell_number *f = &x->run.f, *u = &x->run.u;
    uint32_t f_count = f->count.base, u_count = u->count.base;
    for (uint32_t d = 1; d <= t->c->n_lists; d++) {
        if (f->count.list[d]) f_count += f->count.list[d] * members_of(t, d, vertex);
        if (u->count.list[d]) u_count += u->count.list[d] * members_of(t, d, vertex);
    }
    o->f = f->real;
    o->u = u->whole;
    if (f->kind == VPPS_NUMBER_WORD) memcpy(&o->f, &t->view->words[f->word][vertex], sizeof o->f);
    if (f->kind == VPPS_NUMBER_INVERSE) o->f = f_count ? 1.0f / (float)f_count : 0.0f;
    if (u->kind == VPPS_NUMBER_WORD) o->u = t->view->words[u->word][vertex];
    if (u->kind == VPPS_NUMBER_POSITION) o->u = u_count + member;
    if (u->kind == VPPS_NUMBER_ELEMENT)
        o->e = t->view->words[u->word][vertex] + u_count + t->p->slots[v].first + member * vpps_value_words(x);
    for (; *types; types++) {
        if (*types == 't') o->t[n_t++] = operand(t, &args[n++], x->domain, i);
        if (*types == 's') o->s[n_s++] = *operand(t, &args[n++], x->domain, i);
        if (*types == 'v' && x->run.over_list) {
            const uint32_t domain = t->c->values[args[n].value].domain;
            o->weights = slot_of(t, args[n++].value) + (first_member(t, domain, vertex) - t->first[domain]);
        } else if (*types == 'v') {
            o->weights = operand(t, &args[n++], x->domain, i);
        }
        if (*types == 'i') o->indices = (uint32_t *)(void *)(slot_of(t, v + 1) + (size_t)i * t->p->slots[v + 1].width);
        if (*types != '*') continue;
        uint32_t count = 0;
        for (uint32_t k = n; k < x->n_args; k++) {
            const uint32_t domain = t->c->values[args[k].value].domain;
            count += domain && !x->domain ? members_of(t, domain, vertex) : 1;
        }
        if (!need_pointers(t->vp, count + 1u)) return false;
        const float **list = t->vp->pointers;
        for (o->n_list = 0; n < x->n_args; n++) {
            const uint32_t domain = t->c->values[args[n].value].domain;
            if (!domain || x->domain) {
                list[o->n_list++] = operand(t, &args[n], x->domain, i);
                continue;
            }
            const uint32_t first = first_member(t, domain, vertex) - t->first[domain];
            const uint32_t members = members_of(t, domain, vertex);
            for (uint32_t m = 0; m < members; m++)
                list[o->n_list++] = slot_of(t, args[n].value) + (size_t)(first + m) * t->p->slots[args[n].value].width;
        }
        o->list = list;
    }
    return true;
}

/* SOFTMAX and its gradient of each vertex's list of scalars, which lie side by side. */
static void run_over_lists(const tile *t, uint32_t v, vpps_kernel kernel) {
    const vpps_cell_value *x = &t->c->values[v];
    vpps_operands o = {0};
    for (uint32_t i = 0; i < t->n[0]; i++) {
        const uint32_t n = members_of(t, x->domain, t->first[0] + i);
        const uint32_t first = first_member(t, x->domain, t->first[0] + i) - t->first[x->domain]; /* in the tile */
        for (uint32_t k = 0; k < x->n_args; k++) o.t[k] = slot_of(t, t->c->args[x->first_arg + k].value) + first;
        if (n) kernel(n, false, slot_of(t, v) + first, &o);
    }
}

static bool run(const tile *t, const vpps_tile_op *op) {
    const uint32_t v = op->value;
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_tile_slot *slot = &t->p->slots[v];
    const vpps_kernel kernel = t->kernels->run[x->run.opcode];
    const uint32_t n = t->n[x->domain], *key = t->vp->cpu->task_header.dropout_key;
    vpps_operands o = {.key = key[0] | (uint64_t)key[1] << 32};
    if (!n || !slot->width) return true;
    if (x->run.over_list && x->domain) {
        run_over_lists(t, v, kernel);
        return true;
    }
    if (vpps_instructions[x->run.opcode].form == VPPS_FORM_MATMUL) {
        const vpps_cell_value *a = &t->c->values[t->c->args[x->first_arg].value];
        o.r = x->rows;
        o.c = x->cols;
        o.k = x->run.opcode == VPPS_I_MATMUL_TN ? a->rows : a->cols;
    }
    float *to = slot_of(t, v);
    if (op->uniform) {
        if (!gather_operands(t, v, 0, &o)) return false;
        kernel(n * slot->width, false, to, &o);
        return true;
    }
    const bool whole = vpps_instructions[x->run.opcode].form == VPPS_FORM_REDUCE;
    uint32_t length = slot->width;
    if (whole) length = vpps_value_words(&t->c->values[t->c->args[x->first_arg].value]);
    for (uint32_t i = 0; i < n; i++, to += slot->width) {
        if (!gather_operands(t, v, i, &o)) return false;
        kernel(length, false, to, &o);
    }
    return true;
}

/* ---------------------------------------------------------------- products */

/* Pointers to the vectors of an argument: items times columns. *skip: its first element in them that is read. */
static void point(const tile *t, uint32_t v, bool own_rows, const float **x, uint32_t *skip) {
    const vpps_cell_value *value = &t->c->values[v];
    const vpps_tile_slot *slot = &t->p->slots[v];
    const bool in_slot = value->stage == t->stage_index && slot->at != VPPS_NO_SLOT;
    const uint32_t n = t->n[value->domain], cols = value->cols;
    const float *base = in_slot ? slot_of(t, v) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        const float *item = in_slot ? base + (size_t)i * slot->width : in_memory(t, v, i);
        for (uint32_t k = 0; k < cols; k++) x[(size_t)i * cols + k] = item + (size_t)k * value->rows;
    }
    *skip = in_slot || !own_rows ? 0 : slot->first;
}

static vpps_blocks blocks_of(const tile *t, vpps_param matrix) {
    return t->rows ? vpps_blocks_of(t->vp->cpu, matrix, t->member, t->c->needs.group)
                   : vpps_blocks_of(t->vp->cpu, matrix, 0, 1);
}

/* The first matrix from argument k of value v on; NULL: there is none. */
static const float *matrix_from(const tile *t, const vpps_cell_value *x, uint32_t k) {
    for (; k < x->n_args; k++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
        if (a->matrix == VPPS_NO_PARAM) continue;
        const vpps_blocks blocks = blocks_of(t, a->matrix);
        if (blocks.n) return blocks.blocks[0].values;
    }
    return NULL;
}

/* What the product behind this operation reads first, or, behind the last one, the first of the next tile. */
static const float *next_matrix(const tile *t, const vpps_tile_op *op) {
    const vpps_tile_op *end = t->p->ops + t->p->n_ops;
    for (const vpps_tile_op *o = op + 1;; o++) {
        if (o == end) o = t->p->ops;
        if (o->kind == VPPS_TILE_PRODUCT) return matrix_from(t, &t->c->values[o->value], 0);
    }
}

/* Vectors that lie at equal distances: `at` is the first of them. */
typedef struct spread {
    float *at;
    size_t ld;
    bool in_slot; /* one after the other whatever vertices run; else at their places in the records */
} spread;

static spread spread_of(const tile *t, uint32_t v, bool in_slot, uint32_t width, uint32_t first) {
    if (in_slot) return (spread){slot_of(t, v), width, true};
    return (spread){in_memory(t, v, 0) + first, t->c->kept_words[t->c->values[v].record], false};
}

static float *vector_of(const tile *t, const spread *s, uint32_t i) {
    const uint32_t at = s->in_slot || !t->live ? i : vertex_at(t, i) - vertex_at(t, 0);
    return s->at + at * s->ld;
}

/* The end of a run of vectors from number i on that lie at equal distances. */
static uint32_t run_end(const tile *t, const spread *a, const spread *b, uint32_t i, uint32_t n) {
    if (!t->live || (a->in_slot && b->in_slot)) return n;
    uint32_t end = i + 1;
    while (end < n && vertex_at(t, end) == vertex_at(t, end - 1) + 1) end++;
    return end;
}

/* A block times all vectors, run by run: the block stays close meanwhile. */
static void multiply_block(const tile *t, const vpps_matrix_block *block, uint32_t n, uint32_t k, uint32_t skip,
                           const spread *from, const spread *c, uint32_t at, const float *next) {
    for (uint32_t i = 0, end; i < n; i = end) {
        end = run_end(t, from, c, i, n);
        t->kernels->product(block->rows, end - i, k, block->values, block->ld, t->vp->pointers + i, skip,
                            from->at ? vector_of(t, from, i) + at : NULL, from->ld, vector_of(t, c, i) + at, c->ld,
                            next);
    }
}

/* All products of value x in bf16, whose sum leaves the unit once. A factor is packed once for all matrices where its vectors are
 * one run. False: out of memory. */
static bool multiply_bf16(const tile *t, const vpps_cell_value *x, uint32_t n, const spread *from, const spread *c,
                          uint32_t first_row) {
    vpps_vp *vp = t->vp;
    const vpps_cpu_precision *p = &vp->cpu->precision;
    const vpps_cell_arg *args = t->c->args + x->first_arg;
    if (!VPPS_RESERVE(vp->bf16_terms, vp->bf16_terms_capacity, x->n_args)) return false;
    for (uint32_t i = 0, end; i < n; i = end) {
        uint32_t n_terms = 0, n_blocks = 0, skip;
        end = run_end(t, from, c, i, n);
        for (uint32_t k = 0; k < x->n_args; k++) {
            if (args[k].matrix == VPPS_NO_PARAM) continue;
            vpps_bf16_term *term = &vp->bf16_terms[n_terms++];
            term->depth = vp->cpu->model->params[args[k].matrix].cols;
            n_blocks = blocks_of(t, args[k].matrix).n;
            point(t, args[k].value, false, vp->pointers, &skip);
            if (!vpps_pack_vectors(vp, end - i == n ? args[k].value : VPPS_NONE, end - i, term->depth, vp->pointers + i,
                                   skip, &term->x_words))
                return false;
        }
        for (uint32_t b = 0; b < n_blocks; b++) {
            uint32_t term = 0, rows = 0, at = 0; /* those of all matrices are the same */
            for (uint32_t k = 0; k < x->n_args; k++) {
                if (args[k].matrix == VPPS_NO_PARAM) continue;
                const vpps_matrix_block *block = &blocks_of(t, args[k].matrix).blocks[b];
                vp->bf16_terms[term++].a = block->packed;
                rows = block->rows;
                at = block->first_row - first_row;
            }
            p->unit.product(rows, end - i, p->parts, vp->vectors, n_terms, vp->bf16_terms,
                            from->at ? vector_of(t, from, i) + at : NULL, from->ld, vector_of(t, c, i) + at, c->ld);
        }
    }
    return true;
}

static bool multiply(const tile *t, const vpps_tile_op *op) {
    const vpps_cell_value *x = &t->c->values[op->value];
    const vpps_tile_slot *slot = &t->p->slots[op->value];
    vpps_cpu *cpu = t->vp->cpu;
    const uint32_t n = t->n[x->domain] * x->cols, width = slot->width / x->cols;
    if (!n || !width) return true;
    const spread c = spread_of(t, op->value, op->index == VPPS_NO_SLOT, width, slot->first);
    spread from = {.in_slot = true}; /* what the sum starts from */
    if (x->bias != VPPS_NO_PARAM) from.at = t->pool + cpu->plan.values[x->bias] + slot->first;
    if (!need_pointers(t->vp, n)) return false;
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
        if (a->matrix != VPPS_NO_PARAM) continue;
        from = spread_of(t, a->value, t->p->slots[a->value].at != VPPS_NO_SLOT, width, slot->first);
    }
    if (cpu->precision.parts && matrix_from(t, x, 0)) return multiply_bf16(t, x, n, &from, &c, slot->first);
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
        if (a->matrix == VPPS_NO_PARAM) continue;
        uint32_t skip;
        point(t, a->value, false, t->vp->pointers, &skip);
        const uint32_t cols = cpu->model->params[a->matrix].cols;
        const vpps_blocks blocks = blocks_of(t, a->matrix);
        for (uint32_t b = 0; b < blocks.n; b++) {
            const vpps_matrix_block *block = &blocks.blocks[b];
            const uint32_t at = block->first_row - slot->first;
            const float *next = b + 1 < blocks.n ? block[1].values : matrix_from(t, x, k + 1);
            multiply_block(t, block, n, cols, skip, &from, &c, at, next ? next : next_matrix(t, op));
        }
        from = c;
    }
    if (from.at && from.at != c.at)
        for (uint32_t i = 0; i < n; i++) memcpy(vector_of(t, &c, i), vector_of(t, &from, i), width * sizeof *c.at);
    return true;
}

/* VPs that share out the rows of a stage's matrices with this one, all where rows are not shared out. */
static uint32_t first_vp_of(const tile *t, uint32_t *n) {
    *n = t->rows ? t->vp->cpu->n_vps / t->c->needs.group : t->vp->cpu->n_vps;
    return t->rows ? t->member * *n : 0;
}

/* The factors of a product with transposed matrices: blocks of rows, or copies of all rows of a VP. False: out of memory. */
static bool find_terms(const tile *t, const vpps_cell_value *x, uint32_t n, bool copies, uint32_t *n_terms) {
    vpps_vp *vp = t->vp;
    const vpps_cpu *cpu = vp->cpu;
    uint32_t share, most = 0;
    const uint32_t first_vp = first_vp_of(t, &share);
    for (uint32_t i = 0; i < x->n_args; i++)
        most += copies ? share : blocks_of(t, t->c->args[x->first_arg + i].matrix).n;
    if (!need_pointers(vp, (size_t)n * x->n_args) || !VPPS_RESERVE(vp->terms, vp->terms_capacity, most + 1u))
        return false;
    *n_terms = 0;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + i];
        const float **pointers = vp->pointers + (size_t)i * n;
        uint32_t skip;
        point(t, a->value, true, pointers, &skip);
        const uint32_t first = vpps_rows_of_vp(cpu, a->matrix, first_vp).first;
        for (uint32_t v = first_vp; copies && v < first_vp + share; v++) {
            const vpps_rows rows = vpps_rows_of_vp(cpu, a->matrix, v);
            if (rows.first == rows.end) continue;
            vp->terms[(*n_terms)++] = (vpps_product_term){cpu->matrices[a->matrix].transposed[v], VPPS_BLOCK_ROWS,
                                                          rows.end - rows.first, skip + rows.first - first, pointers};
        }
        const vpps_blocks blocks = blocks_of(t, a->matrix);
        for (uint32_t b = 0; !copies && b < blocks.n; b++) {
            const vpps_matrix_block *block = &blocks.blocks[b];
            vp->terms[(*n_terms)++] =
                (vpps_product_term){block->values, block->ld, block->rows, skip + block->first_row - first, pointers};
        }
    }
    return true;
}

/* By the task, not the tile, so that tiles of another size give the same bits. */
static bool want_copies(const tile *t, const vpps_cell_value *x) {
    const vpps_cpu *cpu = t->vp->cpu;
    const uint32_t n = vpps_vectors_of_task(t->c, x, t->task_items);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_param matrix = t->c->args[x->first_arg + i].matrix;
        if (!vpps_has_copies(cpu, matrix)) return false;
        if (!cpu->precision.parts && n < cpu->choices[matrix].few) return false;
    }
    return true;
}

/* n vectors c of x->rows elements, in bf16. */
static bool multiply_transposed_bf16(const tile *t, const vpps_cell_value *x, uint32_t n, float *c) {
    vpps_vp *vp = t->vp;
    const vpps_cpu *cpu = vp->cpu;
    const bool copies = want_copies(t, x);
    uint32_t share, n_terms = 0;
    const uint32_t first_vp = first_vp_of(t, &share), n_values = t->c->n_values;
    if (!need_pointers(vp, n) || !VPPS_RESERVE(vp->bf16_terms, vp->bf16_terms_capacity, (size_t)x->n_args * share))
        return false;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + i];
        const uint32_t first = vpps_rows_of_vp(cpu, a->matrix, first_vp).first;
        uint32_t skip;
        point(t, a->value, true, vp->pointers, &skip);
        for (uint32_t v = first_vp; v < first_vp + share; v++) {
            const vpps_rows rows = vpps_rows_of_vp(cpu, a->matrix, v);
            const uint32_t depth = rows.end - rows.first, at = skip + rows.first - first;
            const uint32_t key = (1 + v - first_vp) * n_values + a->value, spread_key = key + share * n_values;
            if (!depth) continue;
            const vpps_cpu_matrix *m = &cpu->matrices[a->matrix];
            vpps_bf16_term *term = &vp->bf16_terms[n_terms++];
            *term =
                (vpps_bf16_term){.a = copies ? m->packed_t[v] : m->blocks[m->first_block[v]].packed, .depth = depth};
            if (copies ? !vpps_pack_vectors(vp, key, n, depth, vp->pointers, at, &term->x_words)
                       : !vpps_spread_vectors(vp, key, spread_key, n, depth, vp->pointers, at, &term->x_words))
                return false;
        }
    }
    const vpps_cpu_precision *p = &cpu->precision;
    if (!n_terms)
        memset(c, 0, (size_t)n * x->rows * sizeof *c);
    else if (copies)
        p->unit.product(x->rows, n, p->parts, vp->vectors, n_terms, vp->bf16_terms, NULL, 0, c, x->rows);
    else
        p->unit.product_t(x->rows, n, p->parts, vp->vectors, n_terms, vp->bf16_terms, c, x->rows);
    return true;
}

/* Into v's slot, or, if there is one, where contribution j lies. */
static bool multiply_transposed(const tile *t, uint32_t v, uint32_t j) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_kernels *kernels = t->kernels;
    float *c = j == VPPS_NO_SLOT ? slot_of(t, v) : contribution(t, v, j);
    const uint32_t n = t->n[x->domain] * x->cols, k = x->rows;
    if (!n) return true;
    if (t->vp->cpu->precision.parts) return multiply_transposed_bf16(t, x, n, c);
    const bool copies = want_copies(t, x);
    uint32_t n_terms;
    if (!find_terms(t, x, n, copies, &n_terms)) return false;
    const vpps_product_term *terms = t->vp->terms;
    if (!n_terms) {
        memset(c, 0, (size_t)n * k * sizeof *c);
    } else if (!copies) {
        kernels->product_t(n, k, n_terms, terms, c, k, false);
    } else {
        for (uint32_t p = 0; p < k; p += VPPS_BLOCK_ROWS) {
            for (uint32_t i = 0; i < n_terms; i++) {
                const vpps_product_term *term = &terms[i];
                const uint32_t panel = i + 1 < n_terms || p + VPPS_BLOCK_ROWS >= k ? p : p + VPPS_BLOCK_ROWS;
                const vpps_product_term *next = &terms[i + 1 < n_terms ? i + 1 : 0];
                kernels->product(vpps_min_u32(k - p, VPPS_BLOCK_ROWS), n, term->m, term->a + (size_t)p * term->m,
                                 VPPS_BLOCK_ROWS, term->x, term->skip, i ? c + p : NULL, k, c + p, k,
                                 next->a + (size_t)panel * next->m);
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- parts of values */

/* A stack of each vertex's members, or each member's rows of it. */
static void copy_members(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_cell_arg *a = &t->c->args[x->first_arg];
    const vpps_cell_value *y = &t->c->values[a->value];
    const bool stack = x->run.opcode == VPPS_I_STACK;
    const size_t words = vpps_value_words(x), arg_words = vpps_value_words(y);
    const uint32_t rows = stack ? y->rows : x->rows, domain = stack ? y->domain : x->domain;
    float *to = slot_of(t, v);
    const float *from = slot_of(t, a->value);
    for (uint32_t i = 0; i < t->n[0]; i++) {
        const uint32_t n = members_of(t, domain, t->first[0] + i);
        const uint32_t first = first_member(t, domain, t->first[0] + i) - t->first[domain];
        if (stack) memset(to + i * words, 0, words * sizeof *to);
        for (uint32_t m = 0; m < n; m++) {
            const uint32_t item = first + m;
            for (uint32_t col = 0; col < x->cols; col++) {
                if (stack) {
                    memcpy(to + i * words + (size_t)col * x->rows + (size_t)m * rows,
                           from + item * arg_words + (size_t)col * rows, rows * sizeof *to);
                } else {
                    memcpy(to + item * words + (size_t)col * rows,
                           from + i * arg_words + (size_t)col * y->rows + (size_t)m * rows, rows * sizeof *to);
                }
            }
        }
    }
}

static void copy_parts(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    if (x->run.over_list) {
        copy_members(t, v);
        return;
    }
    float *to = slot_of(t, v);
    const uint32_t n = t->n[x->domain], words = vpps_value_words(x);
    for (uint32_t i = 0; i < n; i++, to += words) {
        uint32_t row = 0;
        if (x->run.opcode == VPPS_I_PLACE) memset(to, 0, words * sizeof *to);
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
            const vpps_cell_value *y = &t->c->values[a->value];
            const float *from = operand(t, a, x->domain, i);
            for (uint32_t col = 0; col < x->cols; col++) {
                float *out = to + (size_t)col * x->rows;
                const float *in = from + (size_t)col * y->rows;
                if (x->run.opcode == VPPS_I_SLICE) memcpy(out, in + x->run.u.whole, x->rows * sizeof *to);
                if (x->run.opcode == VPPS_I_PLACE) memcpy(out + x->run.u.whole, in, y->rows * sizeof *to);
                if (x->run.opcode == VPPS_I_STACK) memcpy(out + row, in, y->rows * sizeof *to);
            }
            row += y->rows;
        }
    }
}

/* ---------------------------------------------------------------- what values decide */

/* The number of the greatest element, the first of equals; and log softmax of it, which is not finite where the vector is
 * not. */
static void argmax(const tile *t, const float *x, uint32_t n, float *to) {
    float best = x[0], loss;
    uint32_t at = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (!(x[i] > best)) continue;
        best = x[i];
        at = i;
    }
    const vpps_operands o = {.t = {x}, .u = at};
    t->kernels->run[VPPS_I_CROSS_ENTROPY](n, false, &loss, &o);
    to[0] = (float)at;
    to[1] = -loss;
}

static void find_argmax(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_cell_arg *a = &t->c->args[x->first_arg];
    float *to = slot_of(t, v);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += 2)
        argmax(t, operand(t, a, x->domain, i), vpps_value_words(&t->c->values[a->value]), to);
}

/* Whatever the number is, the entry is one of the table's. */
static void look_up(const tile *t, uint32_t v) {
    const vpps_cell_value *x = &t->c->values[v];
    const vpps_cpu *cpu = t->vp->cpu;
    const uint32_t words = vpps_value_words(x), last = cpu->model->params[x->run.table].count - 1;
    const float *table = t->pool + cpu->plan.values[x->run.table];
    float *to = slot_of(t, v);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        const float number = *operand(t, &t->c->args[x->first_arg], x->domain, i);
        const uint32_t entry = !(number > 0) ? 0 : number < (float)last ? (uint32_t)number : last;
        memcpy(to, table + (size_t)entry * words, words * sizeof *to);
    }
}

/* ---------------------------------------------------------------- tiles */

static bool run_op(const tile *t, const vpps_tile_op *op) {
    switch (op->kind) {
    case VPPS_TILE_LOAD: load(t, op->value); return true;
    case VPPS_TILE_GRADIENT: add_gradients(t, op->value); return true;
    case VPPS_TILE_RUN: return run(t, op);
    case VPPS_TILE_PRODUCT: return multiply(t, op);
    case VPPS_TILE_PRODUCT_T: return multiply_transposed(t, op->value, op->index);
    case VPPS_TILE_PARTS: copy_parts(t, op->value); return true;
    case VPPS_TILE_ARGMAX: find_argmax(t, op->value); return true;
    case VPPS_TILE_ENTRY: look_up(t, op->value); return true;
    case VPPS_TILE_STORE: store(t, op->value); return true;
    case VPPS_TILE_CONTRIBUTE: contribute(t, op->value, op->index); return true;
    default: add_shares(t, op->value); return true;
    }
}

static bool is_product(const vpps_tile_op *op) {
    return op->kind == VPPS_TILE_PRODUCT || op->kind == VPPS_TILE_PRODUCT_T;
}

/* Products take the whole tile. What lies between them is done for some vertices at a time, whose values stay in L1, unless
 * lists are involved: their members are counted through the tile. */
static bool run_tile(tile *t) {
    enum { L1_FLOATS = 8 * 1024, FEW = 4 };
    const vpps_tile_op *op = t->p->ops, *end = op + t->p->n_ops;
    const uint32_t first = t->first[0], n = t->n[0];
    const uint32_t step = t->c->n_lists ? n : vpps_max_u32(FEW, L1_FLOATS / (t->p->floats[0] + 1));
    while (op < end) {
        const vpps_tile_op *next = op;
        bool ok = true;
        if (is_product(op)) {
            ok = run_op(t, next++);
        } else {
            while (next < end && !is_product(next)) next++;
            for (t->before = 0; t->before < n && ok; t->before += step) {
                t->first[0] = first + t->before;
                t->n[0] = vpps_min_u32(n - t->before, step);
                for (const vpps_tile_op *o = op; o < next && ok; o++) ok = run_op(t, o);
            }
            t->first[0] = first;
            t->n[0] = n;
            t->before = 0;
        }
        if (!ok) return false;
        op = next;
    }
    return true;
}

bool vpps_vp_scratch(vpps_vp *vp, size_t floats) {
    if (floats <= vp->scratch_floats) return true;
    floats += floats / 2;
    float *memory = vpps_map_pages(floats * sizeof(float));
    if (!memory) return false;
    vpps_unmap_pages(vp->scratch, vp->scratch_floats * sizeof(float));
    vp->scratch = memory;
    vp->scratch_floats = floats;
    return true;
}

/* ---------------------------------------------------------------- conditions */

static bool holds(const tile *t, uint32_t vertex) {
    const vpps_condition_data *condition = &t->c->condition;
    return vpps_condition_holds(condition, t->pool[t->view->inputs[condition->input][vertex]]);
}

/* A vertex that does not run: what this stage makes of its outputs is what it is otherwise. A zero that is added, as where all
 * is computed, so that the sign of a zero is the same. */
static void hand_on(const tile *t, uint32_t vertex) {
    for (uint32_t k = 0; k < t->c->n_outputs; k++) {
        const vpps_cell_output *o = &t->c->outputs[k];
        if (o->value == VPPS_NONE || t->c->values[o->value].stage != t->stage_index) continue;
        const vpps_tile_slot *slot = &t->p->slots[o->value];
        float *to = vpps_in_pool(t->vp->cpu, t->view, &t->c->values[o->value], vertex) + slot->first;
        const float *from =
            o->otherwise == VPPS_NONE ? NULL : t->pool + t->view->inputs[o->otherwise][vertex] + slot->first;
        for (uint32_t i = 0; i < slot->width; i++) to[i] = from ? from[i] + 0.0f : 0.0f;
    }
}

/* The vertices of [first, *end) that run; the others hand on. With lists, which tiles take side by side, all of them do where
 * one does. False: out of memory. */
static bool find_live(tile *t, uint32_t *first, uint32_t *end) {
    vpps_vp *vp = t->vp;
    uint32_t n = 0;
    if (!VPPS_RESERVE(vp->live, vp->live_capacity, *end - *first + 1u)) return false;
    for (uint32_t v = *first; v < *end; v++)
        if (holds(t, v)) vp->live[n++] = v;
    if (n == *end - *first || (n && t->c->n_lists)) return true;
    for (uint32_t v = *first, i = 0; v < *end; v++) {
        const bool runs = i < n && vp->live[i] == v;
        if (runs) i++;
        if (!runs) hand_on(t, v);
    }
    t->live = vp->live;
    *first = 0;
    *end = n;
    return true;
}

void vpps_vp_stage(vpps_vp *vp, uint32_t address, const uint32_t *o) {
    vpps_cpu *cpu = vp->cpu;
    const vpps_block_view *view = &cpu->views[o[0]];
    const uint32_t stage = o[1], n = o[3];
    uint32_t first = o[2];
    const vpps_compiled_cell *c = view->cell;
    tile t = {.vp = vp,
              .kernels = cpu->kernels,
              .c = c,
              .view = view,
              .script = cpu->script,
              .pool = cpu->pool,
              .stage_index = stage,
              .passing = cpu->pool + o[4],
              .contributions = cpu->pool + o[5],
              .member = vp->index % c->needs.group,
              .rows = c->stages[stage].split == VPPS_SPLIT_ROWS};
    t.p = vpps_tiles_of(c, stage, t.member);
    vpps_items_of(view, first, n, t.task_first, t.task_items);
    uint32_t end = first + n;
    if (!t.rows) {
        const uint32_t group = c->needs.group;
        end = first + (uint32_t)((uint64_t)n * (t.member + 1) / group);
        first += (uint32_t)((uint64_t)n * t.member / group);
    }
    if (vpps_stage_may_skip(c, &c->stages[stage]) && !find_live(&t, &first, &end)) {
        vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for the vertices that run");
        return;
    }
    for (uint32_t at = first, count; at < end; at += count) {
        count = vpps_min_u32(end - at, t.p->tile);
        t.first[0] = at;
        t.whole[0] = t.n[0] = count;
        for (uint32_t d = 1; d <= c->n_lists; d++) {
            t.first[d] = view->lists[d][at];
            t.whole[d] = t.n[d] = view->lists[d][at + count] - t.first[d];
        }
        size_t floats[VPPS_DOMAINS], all = 64;
        for (uint32_t d = 0; d <= c->n_lists; d++)
            all += floats[d] = ((size_t)t.p->floats[d] * t.n[d] + 15) & ~(size_t)15;
        if (!vpps_vp_scratch(vp, all)) {
            vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for a tile");
            return;
        }
        vpps_forget_vectors(vp);
        t.region[0] = vp->scratch;
        for (uint32_t d = 1; d <= c->n_lists; d++) t.region[d] = t.region[d - 1] + floats[d - 1];
        if (!run_tile(&t)) {
            vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for pointers");
            return;
        }
    }
}
