/* generate_outer.c - gradients of a cell's parameters, of some of its vertices, as a function of the kernel: sums of dy x^T over them,
 * of the rows that the VP owns among all VPs. */
#include "codegen/generate_work.h"

enum {
    MOST_SUMS = 32,     /* in registers of a thread, at a time */
    CHUNK = 32,         /* vectors whose factors are in shared memory */
    MOST_MMA_SUMS = 48, /* likewise, by mma */
    DEPTH = 16,
    TILE = 8, /* of mma: vectors; rows of dy */
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

/* Sums by mma: has the tile of slots a dy that is multiplied with x? */
static bool is_used(const work *w, const group *g, uint32_t x, uint32_t tile) {
    for (uint32_t i = 0; i < g->n; i++) {
        const vpps_cell_outer *o = &w->c->outers[g->outers[i]];
        uint32_t dy = 0;
        while (g->dys[dy] != o->dy) dy++;
        const uint32_t first = g->slot_of_dy[dy], end = first + most_rows_of_vp(w, w->c->values[o->dy].rows);
        if (o->x == x && first < (tile + 1) * TILE && tile * TILE < end) return true;
    }
    return false;
}

static uint32_t tiles_of(const group *g) { return (g->slots + TILE - 1) / TILE; }

/* Two products of 16 columns and 8 rows each time that the CTA's warps go over columns, of four sums of a thread. */
static uint32_t mma_sums(const work *w, const group *g) {
    uint32_t sums = 0;
    for (uint32_t i = 0; i < g->n_xs; i++)
        for (uint32_t t = 0; t < tiles_of(g); t++)
            if (is_used(w, g, g->xs[i], t)) sums += 8 * columns_of(w, g->xs[i]);
    return sums;
}

static void add_to_group(const work *w, group *g, uint32_t outer) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const uint32_t before = g->n_dys;
    g->outers[g->n++] = outer;
    g->sums += sums_of(w, outer);
    place_in(g->xs, &g->n_xs, o->x);
    const uint32_t at = place_in(g->dys, &g->n_dys, o->dy);
    if (g->n_dys == before) return;
    g->slot_of_dy[at] = g->slots;
    g->slots += most_rows_of_vp(w, w->c->values[o->dy].rows);
}

/* False: it does not fit. */
static bool join_group(const work *w, group *g, uint32_t outer) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const vpps_cell_value *dy = &w->c->values[o->dy], *x = &w->c->values[o->x];
    if (dy->cols != 1 || x->cols != 1 || dy->domain != x->domain || g->n == MOST_SUMS) return false;
    if (!w->g->plan->parts && g->sums + sums_of(w, outer) > MOST_SUMS) return false;
    if (g->n && g->domain != dy->domain) return false;
    for (uint32_t i = 0; i < g->n; i++)
        if (w->c->outers[g->outers[i]].param == o->param) return false; /* it adds to what is there */
    group joined = *g;
    joined.domain = dy->domain;
    add_to_group(w, &joined, outer);
    if (w->g->plan->parts && mma_sums(w, &joined) > MOST_MMA_SUMS) return false;
    *g = joined;
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

/* An outer's sums, from q[*q] on, to where gradients lie: row by row and column by column of the thread. */
static void put_stores(const work *w, uint32_t outer, uint32_t number, uint32_t *q) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const uint32_t height = w->c->values[o->dy].rows, length = w->c->values[o->x].rows, threads = w->g->plan->threads;
    const uint32_t rows = most_rows_of_vp(w, height), columns = columns_of(w, o->x);
    fprintf(w->out, "{\nfloat *const to = (float *)a.gradients + %uu + r%u.first * %uu + threadIdx.x;\n",
            w->g->matrix_at[o->param], height, length);
    for (uint32_t pass = 0; pass < 2; pass++) { /* what there is already is added first, all of it at once */
        if (!pass) fprintf(w->out, "if (touched%u) {\n", number);
        for (uint32_t k = 0; k < rows * columns; k++) {
            const uint32_t row = k / columns, column = k % columns * threads;
            fprintf(w->out, "if (%u < r%u.end - r%u.first", row, height, height);
            if (column + threads > length) fprintf(w->out, " && threadIdx.x + %u < %u", column, length);
            if (pass) {
                fprintf(w->out, ") to[%u] = q[%u];\n", row * length + column, *q + k);
            } else {
                fprintf(w->out, ") q[%u] += to[%u];\n", *q + k, row * length + column);
            }
        }
        if (!pass) fprintf(w->out, "}\n");
    }
    fprintf(w->out, "}\n");
    *q += rows * columns;
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
    for (uint32_t i = 0; i < g->n; i++) {
        const vpps_param param = c->outers[g->outers[i]].param;
        if (first_of_param(c, g->outers[i])) {
            fprintf(w->out, "const unsigned touched%u = vpps_touched[%u];\n", i, param);
        } else {
            fprintf(w->out, "const unsigned touched%u = 1;\n", i);
        }
    }
    q = 0;
    for (uint32_t i = 0; i < g->n; i++) put_stores(w, g->outers[i], i, &q);
    fprintf(w->out, "__syncthreads();\n}\n");
}

/* ---------------------------------------------------------------- in bf16 */

/* Words from one pair of vectors' factors to the next part's: lanes of a warp read four pairs of eight slots in different banks. */
static uint32_t pair_stride(const work *w, const group *g) {
    return tiles_of(g) * TILE + (w->g->plan->parts == 2 ? 2 : 4);
}

static uint32_t factor_words(const work *w, const group *g) {
    if (!w->g->plan->parts) return CHUNK * ((g->slots + 3) / 4 * 4);
    return CHUNK / 2 * w->g->plan->parts * pair_stride(w, g);
}

/* As put_factors, of two vectors in a word: a warp a dy, a lane two vectors. */
static void put_pairs(const work *w, const group *g) {
    const uint32_t warps = w->g->plan->threads / 32, parts = w->g->plan->parts, stride = pair_stride(w, g);
    for (uint32_t i = 0; i < g->n_dys; i++) {
        const uint32_t rows = w->c->values[g->dys[i]].rows;
        fprintf(w->out,
                "if (VPPS_WARP == %u && VPPS_LANE < %d) {\nconst unsigned even = from + 2 * VPPS_LANE, odd = even + "
                "1;\nconst "
                "float *const d0 = pool + (",
                i % warps, CHUNK / 2);
        put_vector(w, g->dys[i], "vpps_least(even, n - 1)");
        fprintf(w->out, "), *const d1 = pool + (");
        put_vector(w, g->dys[i], "vpps_least(odd, n - 1)");
        fprintf(w->out, ");\nunsigned *const to = pairs + VPPS_LANE * %u;\n", parts * stride);
        for (uint32_t r = 0; r < most_rows_of_vp(w, rows); r++) {
            fprintf(
                w->out,
                "{ const bool own = %u < r%u.end - r%u.first;\nconst vpps_split s = vpps_split_of(own && even < n ? "
                "d0[r%u.first + %u] : 0.0f, own && odd < n ? d1[r%u.first + %u] : 0.0f);\n",
                r, rows, rows, rows, r, rows, r);
            for (uint32_t p = 0; p < parts; p++)
                fprintf(w->out, "to[%u] = s.part[%u];%s", p * stride + g->slot_of_dy[i] + r, p,
                        p + 1 < parts ? " " : " }\n");
        }
        fprintf(w->out, "}\n");
    }
}

/* Do the columns of x that a thread has begin and end at quads? */
static bool has_quads(const work *w, uint32_t x) {
    enum { QUAD = 4, ALIGNED = 16 };
    return w->c->values[x].rows % QUAD == 0 && w->c->values[x].rows >= ALIGNED;
}

/* The warp's first column of round u, and the thread's. */
static void put_columns(const work *w, uint32_t u) {
    fprintf(w->out, "const unsigned first_column = VPPS_WARP * 32 + %u, column = first_column + VPPS_LANE / 4 * 4;\n",
            u * w->g->plan->threads);
}

/* Adds up 16 vectors. */
static void put_mma_sums(const work *w, const group *g) {
    const uint32_t parts = w->g->plan->parts, stride = pair_stride(w, g);
    for (uint32_t t = 0; t < tiles_of(g); t++) {
        fprintf(w->out, "const unsigned b%u[%u] = {", t, 2 * parts);
        for (uint32_t i = 0; i < 2 * parts; i++)
            fprintf(w->out, "%sfactor[%u]", i ? ", " : "", (i % 2 * parts + i / 2) * stride + t * TILE);
        fprintf(w->out, "};\n");
    }
    uint32_t q = 0;
    for (uint32_t i = 0; i < g->n_xs; i++) {
        const uint32_t x = g->xs[i], length = w->c->values[x].rows;
        fprintf(w->out, "{\n");
        for (uint32_t k = 0; k < 4; k++) {
            char vector[80];
            snprintf(vector, sizeof vector, "vpps_least(from + some + VPPS_LANE %% 4 * 4 + %u, n - 1)", k);
            fprintf(w->out, "const float *const x%u = pool + (", k);
            put_vector(w, x, vector);
            fprintf(w->out, ");\n");
        }
        for (uint32_t u = 0; u < columns_of(w, x); u++) {
            const char *four = has_quads(w, x) ? "true" : "false";
            fprintf(w->out, "{ ");
            put_columns(w, u);
            fprintf(w->out, "if (first_column < %u) {\nvpps_words left, right;\nconst vpps_quad some_columns[4] = {",
                    length);
            for (uint32_t k = 0; k < 4; k++)
                fprintf(w->out, "%svpps_four<%s, %s, %u>(x%u, column)", k ? ", " : "", four,
                        length % 32 ? "false" : "true", length, k);
            fprintf(w->out, "};\nvpps_turn_quads(some_columns, left, right);\n");
            for (uint32_t t = 0; t < tiles_of(g); t++) {
                if (!is_used(w, g, x, t)) continue;
                fprintf(w->out, "vpps_add_products(q[%u], left, b%u);\nvpps_add_products(q[%u], right, b%u);\n", q, t,
                        q + 1, t);
                q += 2;
            }
            fprintf(w->out, "} }\n");
        }
        fprintf(w->out, "}\n");
    }
}

/* Adds the sums of an outer's rows, which begin at q, to its gradient. */
static void put_mma_rows(const work *w, const group *g, uint32_t outer, uint32_t x, uint32_t t, uint32_t q) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const uint32_t height = w->c->values[o->dy].rows, length = w->c->values[x].rows;
    uint32_t dy = 0;
    while (g->dys[dy] != o->dy) dy++;
    for (uint32_t r = 0; r < most_rows_of_vp(w, height); r++) {
        const uint32_t slot = g->slot_of_dy[dy] + r;
        if (slot / TILE != t) continue;
        fprintf(w->out,
                "if (VPPS_LANE %% 4 == %u && %u < r%u.end - r%u.first) vpps_add_gradient<%s, %u>((float *)a.gradients "
                "+ %uu + "
                "(r%u.first + %u) * %u, column, %s%u], vpps_quad{q[%u][%u], q[%u][%u], q[%u][%u], q[%u][%u]});\n",
                slot % TILE / 2, r, height, height, length % 4 ? "false" : "true", length, w->g->matrix_at[o->param],
                height, r, length, first_of_param(w->c, outer) ? "vpps_touched[" : "1 || vpps_touched[", o->param, q,
                slot % 2, q, 2 + slot % 2, q + 1, slot % 2, q + 1, 2 + slot % 2);
    }
}

static void put_mma_group(const work *w, const group *g) {
    const uint32_t parts = w->g->plan->parts, stride = pair_stride(w, g), n = mma_sums(w, g) / 4;
    fprintf(w->out, "{\n");
    put_range(w, &w->c->values[g->dys[0]]);
    fprintf(
        w->out,
        "unsigned *const pairs = (unsigned *)factors;\nfloat q[%u][4];\n#pragma unroll\nfor (int k = 0; k < %u; k++) "
        "q[k / 4][k %% 4] = 0.0f;\n",
        n, 4 * n);
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned from = 0; from < n; from += %d) {\nif (from) __syncthreads();\n",
            CHUNK);
    put_pairs(w, g);
    fprintf(w->out,
            "__syncthreads();\n#pragma unroll 1\nfor (unsigned some = 0; some < %d && from + some < n; some += %d) "
            "{\nconst "
            "unsigned *const factor = pairs + (some / 2 + VPPS_LANE %% 4 * 2) * %u + VPPS_LANE / 4;\n",
            CHUNK, DEPTH, parts * stride);
    put_mma_sums(w, g);
    fprintf(w->out, "}\n}\n");
    uint32_t q = 0;
    for (uint32_t i = 0; i < g->n_xs; i++) {
        for (uint32_t u = 0; u < columns_of(w, g->xs[i]); u++) {
            fprintf(w->out, "{ ");
            put_columns(w, u);
            fprintf(w->out, "(void)first_column;\n");
            for (uint32_t t = 0; t < tiles_of(g); t++) {
                if (!is_used(w, g, g->xs[i], t)) continue;
                for (uint32_t k = 0; k < g->n; k++)
                    if (w->c->outers[g->outers[k]].x == g->xs[i]) put_mma_rows(w, g, g->outers[k], g->xs[i], t, q);
                q += 2;
            }
            fprintf(w->out, "}\n");
        }
    }
    fprintf(w->out, "__syncthreads();\n}\n");
}

/* ---------------------------------------------------------------- all */

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
        for (uint32_t j = 0; j < columns; j++) {
            const uint32_t q = r * columns + j;
            fprintf(w->out, w->g->plan->parts ? " q[%u] = vpps_multiply_add(y, x%u, q[%u]);" : " q[%u] += y * x%u;", q,
                    j, q);
        }
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

static void end_group(work *w, group *g) {
    if (g->n && w->g->plan->parts) put_mma_group(w, g);
    if (g->n && !w->g->plan->parts) put_group(w, g);
    w->shared_words = vpps_max_u32(w->shared_words, factor_words(w, g));
    *g = (group){0};
}

/* As many at once as fit, in their order; what does not fit at all, by blocks. */
static void put_matrices(work *w) {
    group g = {0};
    for (uint32_t i = 0; i < w->c->n_outers; i++) {
        if (w->c->outers[i].x == VPPS_NONE || join_group(w, &g, i)) continue;
        end_group(w, &g);
        if (!join_group(w, &g, i)) put_blocks(w, i);
    }
    end_group(w, &g);
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
