/* generate_outer.c - gradients of a cell's parameters, of some of its vertices, as a function of the kernel: sums of dy x^T over them,
 * of the rows that the VP owns among all VPs. */
#include "codegen/generate_work.h"

enum {
    MOST_SUMS = 32, /* in registers of a thread, at a time */
    CHUNK = 32,     /* vectors whose factors are in shared memory */
    AT_ONCE =
        4 /* vectors whose loads overlap. Behind the last, factors are zeros: no loop is needed for what is left */
};

typedef struct work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    FILE *out;
    uint32_t shared_words; /* that are needed */
} work;

/* Vectors of a value: its items' columns. From `first` and n on, as numbers of the block. */
static void put_range(const work *w, const vpps_cell_value *x) {
    if (x->domain) {
        fprintf(w->out,
                "const unsigned first = ls%u[t.operands[1]], n = ls%u[t.operands[1] + t.operands[2]] - first;\n",
                x->domain, x->domain);
    } else {
        fprintf(w->out, "const unsigned first = t.operands[1], n = t.operands[2];\n");
    }
}

/* Word 0 of vector k of the range: an index of the pool. */
static void put_vector(const work *w, uint32_t v, const char *k) {
    const vpps_cell_value *x = &w->c->values[v];
    char item[64];
    if (x->cols == 1) {
        snprintf(item, sizeof item, "first + %s", k);
    } else {
        snprintf(item, sizeof item, "first + %s / %uu", k, x->cols);
    }
    const uint32_t offset = vpps_generate_place(w->out, w->g, w->c, v, item);
    fprintf(w->out, " + %uu", offset);
    if (x->cols > 1) fprintf(w->out, " + k %% %uu * %uu", x->cols, x->rows);
}

static bool first_of_param(const vpps_compiled_cell *c, uint32_t i) {
    for (uint32_t j = 0; j < i; j++)
        if (c->outers[j].param == c->outers[i].param) return false;
    return true;
}

static uint32_t most_rows_of_vp(const work *w, uint32_t rows) {
    const vpps_cell_needs all = {.group = w->g->plan->n_vps, .row_unit = w->g->plan->row_unit};
    return vpps_most_rows(&all, rows);
}

/* All outers of one vector: a warp a row, lanes go over the vectors. `before`: rows of other vectors, so that their warps are others. */
static void put_vector_rows(const work *w, uint32_t first, uint32_t before) {
    const vpps_compiled_cell *c = w->c;
    const vpps_param param = c->outers[first].param;
    const uint32_t rows = c->values[c->outers[first].dy].rows, warps = w->g->plan->threads / 32;
    fprintf(w->out,
            "#pragma unroll 1\nfor (unsigned row = r%u.first + (VPPS_WARP + %uu) %% VPPS_WARPS; row < r%u.end; row += "
            "VPPS_WARPS) "
            "{\nfloat sum "
            "= 0.0f;\n",
            rows, warps - before % warps, rows);
    for (uint32_t i = first; i < c->n_outers; i++) {
        const vpps_cell_outer *outer = &c->outers[i];
        if (outer->param != param || outer->x != VPPS_NONE) continue;
        fprintf(w->out, "{\n");
        put_range(w, &c->values[outer->dy]);
        fprintf(w->out, "for (unsigned k = VPPS_LANE; k < n * %uu; k += 32) sum += pool[", c->values[outer->dy].cols);
        put_vector(w, outer->dy, "k");
        fprintf(w->out, " + row];\n}\n");
    }
    fprintf(w->out,
            "sum = vpps_warp_sum(sum);\nfloat *const to = pool + %uu + row;\nif (VPPS_LANE == 0) *to = "
            "vpps_touched[%u] ? *to "
            "+ sum : sum;\n}\n",
            w->g->pool->gradients[param], param);
}

static void put_vectors(const work *w) {
    const vpps_compiled_cell *c = w->c;
    uint32_t before = 0;
    for (uint32_t i = 0; i < c->n_outers; i++) {
        if (c->outers[i].x != VPPS_NONE || !first_of_param(c, i)) continue;
        put_vector_rows(w, i, before);
        before += most_rows_of_vp(w, c->values[c->outers[i].dy].rows);
    }
}

/* Adds q of element `column` of row `row` of the VP's. */
static void put_add(const work *w, uint32_t outer, const char *row, const char *column, uint32_t q) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const uint32_t height = w->c->values[o->dy].rows, length = w->c->values[o->x].rows;
    fprintf(w->out,
            "if (%s < r%u.end - r%u.first && %s < %uu) {\nfloat *to = (float *)a.gradients + %uu + (r%u.first + %s) * "
            "%uu + %s;\n*to = "
            "%s%u] ? *to + q[%u] : q[%u];\n}\n",
            row, height, height, column, length, w->g->matrix_at[o->param], height, row, length, column,
            first_of_param(w->c, outer) ? "vpps_touched[" : "1 || vpps_touched[", o->param, q, q);
}

/* Matrices whose gradients are summed up at once, in the registers of the columns' threads: their outers, and the different dy
 * and x of these. */
typedef struct group {
    uint32_t outers[MOST_SUMS], n, sums;
    uint32_t dys[MOST_SUMS], slot_of_dy[MOST_SUMS], n_dys, slots;
    uint32_t xs[MOST_SUMS], n_xs;
    uint32_t domain;
} group;

static uint32_t columns_of(const work *w, uint32_t x) {
    return (w->c->values[x].rows + w->g->plan->threads - 1) / w->g->plan->threads;
}

static uint32_t sums_of(const work *w, uint32_t outer) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    return most_rows_of_vp(w, w->c->values[o->dy].rows) * columns_of(w, o->x);
}

static uint32_t place_in(uint32_t *list, uint32_t *n, uint32_t v) {
    uint32_t i = 0;
    while (i < *n && list[i] != v) i++;
    if (i == *n) list[(*n)++] = v;
    return i;
}

/* False: it does not fit. */
static bool join_group(const work *w, group *g, uint32_t outer) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const vpps_cell_value *dy = &w->c->values[o->dy], *x = &w->c->values[o->x];
    const uint32_t sums = sums_of(w, outer), before = g->n_dys;
    if (dy->cols != 1 || x->cols != 1 || dy->domain != x->domain || g->sums + sums > MOST_SUMS) return false;
    if (g->n && g->domain != dy->domain) return false;
    for (uint32_t i = 0; i < g->n; i++)
        if (w->c->outers[g->outers[i]].param == o->param) return false; /* it adds to what is there */
    g->domain = dy->domain;
    g->outers[g->n++] = outer;
    g->sums += sums;
    place_in(g->xs, &g->n_xs, o->x);
    const uint32_t at = place_in(g->dys, &g->n_dys, o->dy);
    if (g->n_dys > before) {
        g->slot_of_dy[at] = g->slots;
        g->slots += most_rows_of_vp(w, dy->rows);
    }
    return true;
}

/* The VP's rows of all dy of up to CHUNK vectors to shared memory, zeros behind the last: a warp a dy, a lane a vector. */
static void put_factors(const work *w, const group *g, uint32_t stride) {
    const uint32_t warps = w->g->plan->threads / 32;
    for (uint32_t i = 0; i < g->n_dys; i++) {
        const vpps_cell_value *dy = &w->c->values[g->dys[i]];
        fprintf(w->out, "if (VPPS_WARP == %u) {\nconst bool there = from + VPPS_LANE < n;\n", i % warps);
        fprintf(w->out, "const float *const d = pool + (");
        put_vector(w, g->dys[i], "vpps_least(from + VPPS_LANE, n - 1)");
        fprintf(w->out, ");\n");
        for (uint32_t r = 0; r < most_rows_of_vp(w, dy->rows); r++)
            fprintf(w->out,
                    "factors[VPPS_LANE * %u + %u] = there && %u < r%u.end - r%u.first ? d[r%u.first + %u] : 0.0f;\n",
                    stride, g->slot_of_dy[i] + r, r, dy->rows, dy->rows, dy->rows, r);
        fprintf(w->out, "}\n");
    }
}

static void put_group(const work *w, const group *g) {
    const vpps_compiled_cell *c = w->c;
    const uint32_t stride = (g->slots + 3) / 4 * 4, threads = w->g->plan->threads;
    fprintf(w->out, "{\n");
    put_range(w, &c->values[g->dys[0]]);
    fprintf(w->out, "float q[%u];\n#pragma unroll\nfor (int k = 0; k < %u; k++) q[k] = 0.0f;\n", g->sums, g->sums);
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned from = 0; from < n; from += %d) {\nif (from) __syncthreads();\n",
            CHUNK);
    put_factors(w, g, stride);
    fprintf(
        w->out,
        "__syncthreads();\nconst unsigned upto = vpps_least(n - from, %d);\n#pragma unroll 1\nfor (unsigned some = 0; "
        "some < upto; some += %d) {\n#pragma unroll\nfor (unsigned j = 0; j < %d; j++) {\nconst unsigned k = some + "
        "j;\n",
        CHUNK, AT_ONCE, AT_ONCE);
    for (uint32_t i = 0; i < g->n_xs; i++) {
        const uint32_t x = g->xs[i], length = c->values[x].rows;
        fprintf(w->out, "const float *const x%u = pool + (", i);
        put_vector(w, x, "vpps_least(from + k, n - 1)");
        fprintf(w->out, ") + threadIdx.x;\n");
        for (uint32_t j = 0; j < columns_of(w, x); j++) {
            fprintf(w->out, "const float x%u_%u = ", i, j);
            if ((j + 1) * threads > length) fprintf(w->out, "threadIdx.x + %u >= %u ? 0.0f : ", j * threads, length);
            fprintf(w->out, "x%u[%u];\n", i, j * threads);
        }
    }
    for (uint32_t i = 0; i < stride; i += 4)
        fprintf(w->out, "const vpps_quad d%u = *(const vpps_quad *)(factors + k * %u + %u);\n", i / 4, stride, i);
    uint32_t q = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const vpps_cell_outer *o = &c->outers[g->outers[i]];
        uint32_t dy = 0, x = 0;
        while (g->dys[dy] != o->dy) dy++;
        while (g->xs[x] != o->x) x++;
        for (uint32_t r = 0; r < most_rows_of_vp(w, c->values[o->dy].rows); r++) {
            const uint32_t slot = g->slot_of_dy[dy] + r;
            for (uint32_t j = 0; j < columns_of(w, o->x); j++, q++)
                fprintf(w->out, "q[%u] += d%u.%c * x%u_%u;\n", q, slot / 4, "xyzw"[slot % 4], x, j);
        }
    }
    fprintf(w->out, "}\n}\n}\n");
    q = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const vpps_cell_outer *o = &c->outers[g->outers[i]];
        for (uint32_t r = 0; r < most_rows_of_vp(w, c->values[o->dy].rows); r++) {
            for (uint32_t j = 0; j < columns_of(w, o->x); j++, q++) {
                char row[16], column[48];
                snprintf(row, sizeof row, "%uu", r);
                snprintf(column, sizeof column, "threadIdx.x + %uu", j * threads);
                put_add(w, g->outers[i], row, column, q);
            }
        }
    }
    fprintf(w->out, "__syncthreads();\n}\n");
}

/* Of one of them, some rows and columns at a time: where a VP has many. */
static void put_blocks(const work *w, uint32_t i) {
    enum { ROWS = 8, COLUMNS = 4 };
    const vpps_cell_outer *outer = &w->c->outers[i];
    const vpps_cell_value *x = &w->c->values[outer->x];
    const uint32_t height = w->c->values[outer->dy].rows, threads = w->g->plan->threads;
    const uint32_t columns = vpps_min_u32(COLUMNS, (x->rows + threads - 1) / threads);
    fprintf(w->out, "{\n");
    put_range(w, x);
    fprintf(w->out,
            "#pragma unroll 1\nfor (unsigned row = 0; row < r%u.end - r%u.first; row += %d) {\n#pragma unroll 1\nfor "
            "(unsigned column = "
            "threadIdx.x; column < %u; column += %u * VPPS_THREADS) {\nfloat q[%u];\n#pragma unroll\nfor (int k = 0; k "
            "< %u; k++) "
            "q[k] = 0.0f;\n",
            height, height, ROWS, x->rows, columns, ROWS * columns, ROWS * columns);
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned k = 0; k < n * %uu; k++) {\nconst unsigned at = ", x->cols);
    put_vector(w, outer->x, "k");
    fprintf(w->out, ", d = r%u.first + row + ", height);
    put_vector(w, outer->dy, "k");
    fprintf(w->out, ";\n");
    for (uint32_t j = 0; j < columns; j++)
        fprintf(w->out,
                "const float x%u = column + %u * VPPS_THREADS < %u ? pool[at + column + %u * VPPS_THREADS] : 0.0f;\n",
                j, j, x->rows, j);
    for (uint32_t r = 0; r < ROWS; r++) {
        fprintf(w->out, "{ const float y = row + %u < r%u.end - r%u.first ? pool[d + %u] : 0.0f;", r, height, height,
                r);
        for (uint32_t j = 0; j < columns; j++) fprintf(w->out, " q[%u] += y * x%u;", r * columns + j, j);
        fprintf(w->out, " }\n");
    }
    fprintf(w->out, "}\n");
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t j = 0; j < columns; j++) {
            char at[32], column[64];
            snprintf(at, sizeof at, "row + %u", r);
            snprintf(column, sizeof column, "column + %u * VPPS_THREADS", j);
            put_add(w, i, at, column, r * columns + j);
        }
    }
    fprintf(w->out, "}\n}\n}\n");
}

/* As many at once as fit, in their order; what does not fit at all, by blocks. */
static void put_matrices(work *w) {
    group g = {0};
    for (uint32_t i = 0; i < w->c->n_outers; i++) {
        if (w->c->outers[i].x == VPPS_NONE || join_group(w, &g, i)) continue;
        if (g.n) put_group(w, &g);
        w->shared_words = vpps_max_u32(w->shared_words, CHUNK * ((g.slots + 3) / 4 * 4));
        g = (group){0};
        if (!join_group(w, &g, i)) put_blocks(w, i);
    }
    if (g.n) put_group(w, &g);
    w->shared_words = vpps_max_u32(w->shared_words, CHUNK * ((g.slots + 3) / 4 * 4));
}

uint32_t vpps_generate_outer(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t number) {
    work w = {.g = g, .c = c, .out = g->out};
    fprintf(w.out,
            "\n/* gradients of cell %s */\nVPPS_PART void vpps_outer_%u(const vpps_arguments &a, float "
            "*shared, const vpps_kernel_task &t) {\n",
            c->name, number);
    vpps_generate_view(w.out, c, "t.operands[0]");
    fprintf(w.out, "float *const factors = shared + VPPS_SHARED_WEIGHTS;\n(void)factors;\n");
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const uint32_t rows = c->values[c->outers[i].dy].rows;
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++) seen = c->values[c->outers[j].dy].rows == rows;
        if (!seen) fprintf(w.out, "const vpps_rows r%u = vpps_rows_of(%u, VPPS_VPS, blockIdx.x);\n", rows, rows);
    }
    put_vectors(&w);
    put_matrices(&w);
    fprintf(w.out, "__syncthreads();\nif (threadIdx.x == 0 && t.operands[2]) {\n");
    for (uint32_t i = 0; i < c->n_outers; i++)
        if (first_of_param(c, i)) fprintf(w.out, "vpps_touched[%u] = 1;\n", c->outers[i].param);
    fprintf(w.out, "}\n(void)pool;\n}\n");
    return w.shared_words;
}
