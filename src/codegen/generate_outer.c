/* generate_outer.c - gradients of a cell's parameters, of some of its vertices, as a function of the kernel: sums of dy x^T over them,
 * of the rows that the VP owns among all VPs. */
#include "codegen/generate_work.h"

enum { MOST_SUMS = 32 /* in registers of a thread, at a time */ };

typedef struct work {
    const vpps_generation *g;
    const vpps_compiled_cell *c;
    FILE *out;
} work;

/* Vectors of a value: its items' columns. From `first` and n on, as numbers of the block. */
static void put_range(const work *w, const vpps_cell_value *x) {
    if (x->domain) {
        fprintf(w->out, "const unsigned first = ls%u[o[2]], n = ls%u[o[2] + o[3]] - first;\n", x->domain, x->domain);
    } else {
        fprintf(w->out, "const unsigned first = o[2], n = o[3];\n");
    }
}

/* Word 0 of vector k of the range: an index of the pool. */
static void put_vector(const work *w, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    char item[64];
    snprintf(item, sizeof item, "first + k / %uu", x->cols);
    const uint32_t offset = vpps_generate_place(w->out, w->g, w->c, v, x->cols == 1 ? "first + k" : item);
    fprintf(w->out, " + %uu", offset);
    if (x->cols > 1) fprintf(w->out, " + k %% %uu * %uu", x->cols, x->rows);
}

static bool first_of_param(const vpps_compiled_cell *c, uint32_t i) {
    for (uint32_t j = 0; j < i; j++)
        if (c->outers[j].param == c->outers[i].param) return false;
    return true;
}

/* A warp a row; lanes go over the vectors. */
static void put_vector_gradient(const work *w, uint32_t i, bool first) {
    const vpps_cell_outer *outer = &w->c->outers[i];
    const vpps_cell_value *d = &w->c->values[outer->dy];
    const uint32_t at = w->g->pool->gradients[outer->param];
    fprintf(w->out, "{\n");
    put_range(w, d);
    fprintf(w->out,
            "const vpps_rows own = vpps_rows_of(%u, VPPS_VPS, blockIdx.x);\nfor (unsigned row = own.first + VPPS_WARP; "
            "row < "
            "own.end; row += VPPS_WARPS) {\nfloat sum = 0.0f;\nfor (unsigned k = VPPS_LANE; k < n * %uu; k += 32) sum "
            "+= pool[",
            d->rows, d->cols);
    put_vector(w, outer->dy);
    fprintf(w->out, " + row];\nsum = vpps_warp_sum(sum);\n");
    if (first) {
        fprintf(w->out, "if (VPPS_LANE == 0) pool[%uu + row] = vpps_touched[%u] ? pool[%uu + row] + sum : sum;\n}\n}\n",
                at, outer->param, at);
    } else {
        fprintf(w->out, "if (VPPS_LANE == 0) pool[%uu + row] += sum;\n}\n}\n", at);
    }
}

/* Rows of the gradients of matrices that are multiplied with the same value x. */
typedef struct outer_row {
    uint32_t outer, row;
} outer_row;

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

/* All rows of all of them at once. */
static void put_rows(const work *w, const outer_row *rows, uint32_t n, uint32_t x) {
    const vpps_cell_value *value = &w->c->values[x];
    const uint32_t length = value->rows, threads = w->g->plan->threads, columns = (length + threads - 1) / threads;
    fprintf(w->out, "{\n");
    put_range(w, value);
    fprintf(w->out, "float q[%u];\n#pragma unroll\nfor (int k = 0; k < %u; k++) q[k] = 0.0f;\n", n * columns,
            n * columns);
    fprintf(w->out, "#pragma unroll 4\nfor (unsigned k = 0; k < n * %uu; k++) {\nconst unsigned at = ", value->cols);
    put_vector(w, x);
    fprintf(w->out, ";\n");
    for (uint32_t j = 0; j < columns; j++)
        fprintf(w->out,
                "const float x%u = threadIdx.x + %u * VPPS_THREADS < %uu ? pool[at + threadIdx.x + %u * VPPS_THREADS] "
                ": 0.0f;\n",
                j, j, length, j);
    for (uint32_t r = 0; r < n; r++) {
        const vpps_cell_outer *outer = &w->c->outers[rows[r].outer];
        const uint32_t height = w->c->values[outer->dy].rows;
        if (!r || rows[r - 1].outer != rows[r].outer) {
            fprintf(w->out, "const unsigned d%u = ", rows[r].outer);
            put_vector(w, outer->dy);
            fprintf(w->out, " + r%u.first;\n", height);
        }
        fprintf(w->out, "{ const float d = %uu < r%u.end - r%u.first ? pool[d%u + %u] : 0.0f;", rows[r].row, height,
                height, rows[r].outer, rows[r].row);
        for (uint32_t j = 0; j < columns; j++) fprintf(w->out, " q[%u] += d * x%u;", r * columns + j, j);
        fprintf(w->out, " }\n");
    }
    fprintf(w->out, "}\n");
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t j = 0; j < columns; j++) {
            char at[16], column[64];
            snprintf(at, sizeof at, "%uu", rows[r].row);
            snprintf(column, sizeof column, "threadIdx.x + %u * VPPS_THREADS", j);
            put_add(w, rows[r].outer, at, column, r * columns + j);
        }
    }
    fprintf(w->out, "}\n");
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
    put_vector(w, outer->x);
    fprintf(w->out, ", d = r%u.first + row + ", height);
    put_vector(w, outer->dy);
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

static uint32_t most_rows_of_vp(const work *w, uint32_t rows) {
    const vpps_cell_needs all = {.group = w->g->plan->n_vps, .row_unit = w->g->plan->row_unit};
    return vpps_most_rows(&all, rows);
}

static void put_matrices(const work *w, uint32_t x) {
    const vpps_compiled_cell *c = w->c;
    const uint32_t threads = w->g->plan->threads, columns = (c->values[x].rows + threads - 1) / threads;
    outer_row rows[MOST_SUMS];
    uint32_t n = 0, all = 0;
    for (uint32_t i = 0; i < c->n_outers; i++)
        if (c->outers[i].x == x) all += most_rows_of_vp(w, c->values[c->outers[i].dy].rows);
    for (uint32_t i = 0; i < c->n_outers; i++) {
        if (c->outers[i].x != x) continue;
        if (all * columns > MOST_SUMS) put_blocks(w, i);
        const uint32_t height = most_rows_of_vp(w, c->values[c->outers[i].dy].rows);
        for (uint32_t r = 0; r < height && all * columns <= MOST_SUMS; r++) rows[n++] = (outer_row){i, r};
    }
    if (n) put_rows(w, rows, n, x);
}

void vpps_generate_outer(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t number) {
    const work w = {g, c, g->out};
    fprintf(w.out,
            "\n/* gradients of cell %s */\nVPPS_PART void vpps_outer_%u(const vpps_arguments &a, const "
            "unsigned *o) {\n",
            c->name, number);
    vpps_generate_view(w.out, c, "o[1]");
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const uint32_t rows = c->values[c->outers[i].dy].rows;
        bool seen = c->outers[i].x == VPPS_NONE;
        for (uint32_t j = 0; j < i && !seen; j++)
            seen = c->outers[j].x != VPPS_NONE && c->values[c->outers[j].dy].rows == rows;
        if (!seen) fprintf(w.out, "const vpps_rows r%u = vpps_rows_of(%u, VPPS_VPS, blockIdx.x);\n", rows, rows);
    }
    for (uint32_t i = 0; i < c->n_outers; i++)
        if (c->outers[i].x == VPPS_NONE) put_vector_gradient(&w, i, first_of_param(c, i));
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const uint32_t x = c->outers[i].x;
        bool seen = x == VPPS_NONE;
        for (uint32_t j = 0; j < i && !seen; j++) seen = c->outers[j].x == x;
        if (!seen) put_matrices(&w, x);
    }
    fprintf(w.out, "__syncthreads();\nif (threadIdx.x == 0 && o[3]) {\n");
    for (uint32_t i = 0; i < c->n_outers; i++)
        if (first_of_param(c, i)) fprintf(w.out, "vpps_touched[%u] = 1;\n", c->outers[i].param);
    fprintf(w.out, "}\n(void)pool;\n}\n");
}
