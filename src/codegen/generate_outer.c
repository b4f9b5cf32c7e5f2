/* generate_outer.c - gradients of a cell's parameters, of some of its vertices, as a function of the kernel: sums of dy x^T over them,
 * of the part that the VP has among all VPs. Tasks that follow each other, as groups' blocks do, are one sum. */
#include "codegen/generate_outer.h"

enum {
    DEPTH = 16,
    TILE = 8,           /* of mma: vectors; rows of dy */
    BLOCK = 32,         /* columns of x that a warp multiplies with rows of dy */
    TILE_THREADS = 1536 /* of a CTA, times tiles of these at a time: what there are registers for */
};

typedef vpps_outer_work work;

void vpps_outer_vectors(const work *w, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    vpps_generate_view(w->out, w->c, "t.operands[0]");
    if (x->axis) {
        fprintf(w->out,
                "const unsigned first = ls%u[t.operands[1]], n = ls%u[t.operands[1] + t.operands[2]] - first;\n",
                x->axis, x->axis);
    } else {
        fprintf(w->out, "const unsigned first = t.operands[1], n = t.operands[2];\n");
    }
    fprintf(w->out, "(void)pool;\n");
}

/* A loop over the tasks, each with a value's vectors. */
static void begin_tasks(const work *w, uint32_t v) {
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned i = 0; i < n_tasks; i++) {\nconst vpps_task t = tasks[i];\n");
    vpps_outer_vectors(w, v);
}

void vpps_outer_vector(const work *w, uint32_t v, const char *k) {
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

/* Sums that are not of products come before these. */
bool vpps_outer_is_first(const vpps_compiled_cell *c, uint32_t outer) {
    const vpps_cell_outer *o = &c->outers[outer];
    for (uint32_t j = 0; j < c->n_outers; j++) {
        const vpps_cell_outer *other = &c->outers[j];
        const bool same_kind = (other->x == VPPS_NONE) == (o->x == VPPS_NONE);
        if (other->param == o->param && (same_kind ? j < outer : other->x == VPPS_NONE)) return false;
    }
    return true;
}

/* Is it the gradient of a matrix that is read as a value? */
static bool is_whole_matrix(const work *w, uint32_t outer) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    return o->x == VPPS_NONE && w->g->model->params[o->param].kind == VPPS_MATRIX;
}

static uint32_t most_rows(const work *w, uint32_t rows, uint32_t teams) {
    const vpps_cell_needs all = {.group = w->g->plan->n_vps / teams, .rows.unit = w->g->plan->row_unit};
    return vpps_most_rows(&all, rows);
}

uint32_t vpps_outer_rows(const work *w, uint32_t outer) {
    return most_rows(w, w->c->values[w->c->outers[outer].dy].rows, w->g->plan->teams);
}

/* Blocks of columns of a team at most. */
static uint32_t blocks_of_team(const work *w, uint32_t length) {
    return ((length + BLOCK - 1) / BLOCK + w->g->plan->teams - 1) / w->g->plan->teams;
}

uint32_t vpps_outer_columns(const work *w, uint32_t outer) {
    const uint32_t length = w->c->values[w->c->outers[outer].x].rows;
    return vpps_min_u32(length, blocks_of_team(w, length) * BLOCK);
}

/* Do both lie alike, but for the words before their first rows? */
static bool lie_alike(const work *w, uint32_t v, uint32_t other) {
    const vpps_cell_value *x = &w->c->values[v], *y = &w->c->values[other];
    if (v == other) return true;
    return vpps_is_made(x) && vpps_is_made(y) && x->record == y->record && x->axis == y->axis && x->rows == y->rows &&
           x->cols == y->cols && vpps_is_kept_in_parts(w->g, w->c, v) == vpps_is_kept_in_parts(w->g, w->c, other);
}

static bool is_one_sum(const work *w, uint32_t outer, uint32_t other) {
    const vpps_cell_outer *o = &w->c->outers[outer], *p = &w->c->outers[other];
    return p->x == VPPS_NONE && p->param == o->param && lie_alike(w, o->dy, p->dy);
}

static bool begins_sum(const work *w, uint32_t outer) {
    for (uint32_t j = 0; j < outer; j++)
        if (is_one_sum(w, outer, j)) return false;
    return w->c->outers[outer].x == VPPS_NONE && !is_whole_matrix(w, outer);
}

/* Sums that the same instructions make, by the outers they begin with. */
typedef struct vectors {
    uint32_t firsts[VPPS_MOST_OUTERS], n;
} vectors;

/* False: it is made otherwise than those that are there, or there are too many. */
static bool join_vectors(const work *w, vectors *all, uint32_t first) {
    const vpps_cell_outer *const outers = w->c->outers;
    if (all->n == VPPS_MOST_OUTERS) return false;
    if (all->n && !lie_alike(w, outers[all->firsts[0]].dy, outers[first].dy)) return false;
    all->firsts[all->n++] = first;
    return true;
}

/* A constant that depends on a number below n. */
static void put_choice(const work *w, const char *name, const char *number, const uint32_t *values, uint32_t n) {
    fprintf(w->out, "const unsigned %s = ", name);
    for (uint32_t i = 0; i + 1 < n; i++) fprintf(w->out, "%s == %uu ? %uu : ", number, i, values[i]);
    fprintf(w->out, "%uu;\n(void)%s;\n", values[n - 1], name);
}

/* The words before the first row of each term of all sums. */
static void put_offsets(const work *w, const vectors *all) {
    uint32_t n = 0;
    fprintf(w->out, "const unsigned offset = ");
    for (uint32_t i = 0; i < all->n; i++)
        for (uint32_t k = all->firsts[i]; k < w->c->n_outers; k++)
            if (is_one_sum(w, all->firsts[i], k))
                fprintf(w->out, "j == %uu ? %uu : ", n++, w->c->values[w->c->outers[k].dy].offset);
    fprintf(w->out, "0u;\n");
}

/* A warp a row of one of them, lanes go over dy's vectors. `before`: rows of other vectors, so that their warps are others. Returns
 * how many there are. */
static uint32_t put_rows_of_vectors(const work *w, const vectors *all, uint32_t before) {
    const vpps_cell_outer *const outers = w->c->outers;
    const uint32_t dy = outers[all->firsts[0]].dy, rows = w->c->values[dy].rows, warps = w->g->plan->threads / 32;
    const uint32_t most = most_rows(w, rows, 1);
    uint32_t begins[VPPS_MOST_OUTERS + 1] = {0}, params[VPPS_MOST_OUTERS] = {0}, gradients[VPPS_MOST_OUTERS] = {0};
    uint32_t adds[VPPS_MOST_OUTERS] = {0};
    bool any_adds = false;
    for (uint32_t i = 0; i < all->n; i++) {
        const uint32_t first = all->firsts[i];
        begins[i + 1] = begins[i];
        for (uint32_t k = first; k < w->c->n_outers; k++) begins[i + 1] += is_one_sum(w, first, k);
        params[i] = outers[first].param;
        gradients[i] = w->g->pool->gradients[params[i]];
        adds[i] = !vpps_outer_is_first(w->c, first);
        any_adds |= adds[i] != 0;
    }
    if (any_adds) fprintf(w->out, "__syncthreads();\n"); /* what they are added to is there */
    fprintf(
        w->out,
        "#pragma unroll 1\nfor (unsigned at = (VPPS_WARP + %uu) %% VPPS_WARPS; at < %uu; at += VPPS_WARPS) {\nconst "
        "unsigned which = at / %u, row = r%u.first + at %% %u;\nif (row >= r%u.end) continue;\nfloat sum = 0.0f;\n",
        warps - before % warps, all->n * most, most, rows, most, rows);
    put_choice(w, "begin", "which", begins, all->n);
    put_choice(w, "end", "which", begins + 1, all->n);
    put_choice(w, "gradient", "which", gradients, all->n);
    put_choice(w, "param", "which", params, all->n);
    put_choice(w, "adds", "which", adds, all->n);
    fprintf(w->out,
            "float *const to = (float *)a.pool + gradient + row;\nconst float before = VPPS_LANE == 0 && (adds "
            "|| vpps_touched[param]) ? *to : 0.0f;\n#pragma unroll 1\nfor (unsigned j = begin; j < end; j++) {\n");
    put_offsets(w, all);
    begin_tasks(w, dy);
    fprintf(w->out, "for (unsigned k = VPPS_LANE; k < n * %uu; k += 32) sum += %s(pool[", w->c->values[dy].cols,
            vpps_is_kept_in_parts(w->g, w->c, dy) ? "vpps_whole_of" : "");
    vpps_outer_vector(w, dy, "k");
    fprintf(w->out,
            " - %uu + offset + row]);\n}\n}\nsum = vpps_warp_sum(sum);\nif (VPPS_LANE == 0) *to = before + sum;\n}\n",
            w->c->values[dy].offset);
    return all->n * most;
}

void vpps_outer_sum_vectors(work *w) {
    vectors all = {0};
    w->vectors_due = false;
    uint32_t before = 0;
    for (uint32_t i = 0; i <= w->c->n_outers; i++) {
        const bool begins = i < w->c->n_outers && begins_sum(w, i);
        if (i < w->c->n_outers && (!begins || join_vectors(w, &all, i))) continue;
        if (all.n) before += put_rows_of_vectors(w, &all, before);
        all = (vectors){0};
        if (begins) join_vectors(w, &all, i);
    }
}

/* Adds q of element `column` of row `row` of the VP's. */
static void put_add(const work *w, uint32_t outer, const char *row, const char *column, uint32_t q) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const uint32_t height = w->c->values[o->dy].rows, length = w->c->values[o->x].rows;
    fprintf(
        w->out,
        "if (%s < m%u.end - m%u.first && %s < l%u.end) {\nfloat *to = (float *)a.gradients + %uu + (m%u.first + %s) * "
        "%uu + %s;\n*to = "
        "%s%u] ? *to + q[%u] : q[%u];\n}\n",
        row, height, height, column, length, w->g->matrix_at[o->param], height, row, length, column,
        vpps_outer_is_first(w->c, outer) ? "vpps_touched[" : "1 || vpps_touched[", o->param, q, q);
}

/* Matrices whose gradients are summed up at once: their outers, and the different x of these. */
typedef struct group {
    uint32_t outers[VPPS_MOST_OUTERS], n;
    uint32_t xs[VPPS_MOST_OUTERS], n_xs;
    uint32_t axis;
} group;

/* False: it does not fit. */
static bool join_group(const work *w, group *g, uint32_t outer) {
    const vpps_cell_outer *o = &w->c->outers[outer];
    const vpps_cell_value *dy = &w->c->values[o->dy], *x = &w->c->values[o->x];
    if (dy->cols != 1 || x->cols != 1 || dy->axis != x->axis || g->n == VPPS_MOST_OUTERS) return false;
    if (g->n && g->axis != dy->axis) return false;
    for (uint32_t i = 0; i < g->n; i++)
        if (w->c->outers[g->outers[i]].param == o->param) return false; /* it adds to what is there */
    uint32_t i = 0;
    while (i < g->n_xs && g->xs[i] != o->x) i++;
    if (i == g->n_xs) g->xs[g->n_xs++] = o->x;
    g->outers[g->n++] = outer;
    g->axis = dy->axis;
    return true;
}

/* ---------------------------------------------------------------- in bf16 */

/* Tiles of rows that a warp multiplies with BLOCK columns of the same x: numbers first to end of those of all dy that are multiplied
 * with it. There are as many such warps as the VP's team has blocks of columns; number `slot` is the first, of strips of as many
 * tiles. */
typedef struct strip {
    uint32_t x, first, end, blocks, slot;
} strip;

/* A tile of rows of an outer. */
typedef struct row_tile {
    uint32_t outer, number;
} row_tile;

/* Number k of those that are multiplied with x; false: there are not so many. */
static bool find_tile(const work *w, const group *g, uint32_t x, uint32_t k, row_tile *out) {
    for (uint32_t i = 0; i < g->n; i++) {
        const vpps_cell_outer *o = &w->c->outers[g->outers[i]];
        const uint32_t tiles = (vpps_outer_rows(w, g->outers[i]) + TILE - 1) / TILE;
        if (o->x != x) continue;
        *out = (row_tile){g->outers[i], k};
        if (k < tiles) return true;
        k -= tiles;
    }
    return false;
}

static uint32_t most_tiles(const work *w) { return vpps_max_u32(1, TILE_THREADS / w->g->plan->threads); }

/* The strip after this one, the first after none, its warps numbered on; its x is NONE after the last. */
static strip any_next_strip(const work *w, const group *g, const strip *before) {
    const uint32_t most = most_tiles(w);
    row_tile t;
    uint32_t i = 0;
    strip s = {.x = g->xs[0]};
    if (before) {
        while (g->xs[i] != before->x) i++;
        s = (strip){.x = before->x, .first = before->end, .slot = before->slot + before->blocks};
        if (!find_tile(w, g, s.x, s.first, &t)) {
            s.first = 0;
            s.x = ++i < g->n_xs ? g->xs[i] : VPPS_NONE;
        }
    }
    if (s.x == VPPS_NONE) return s;
    s.blocks = blocks_of_team(w, w->c->values[s.x].rows);
    s.end = s.first;
    while (s.end < s.first + most && find_tile(w, g, s.x, s.end, &t)) s.end++;
    return s;
}

/* Likewise, of those of so many tiles. */
static strip next_strip(const work *w, const group *g, const strip *before, uint32_t tiles) {
    strip s = any_next_strip(w, g, before);
    while (s.x != VPPS_NONE && s.end - s.first != tiles) {
        const strip other = {s.x, s.first, s.end, 0, s.slot};
        s = any_next_strip(w, g, &other);
    }
    return s;
}

/* Strips of so many tiles, for which there are warps at the same time: of slots first to end. Warps that are left share out the vectors
 * with these: each strip has so many parts. */
typedef struct strips {
    uint32_t tiles, first, end, parts;
} strips;

static bool is_among(const strips *all, const strip *s) {
    return s->slot < all->end && s->slot + s->blocks > all->first;
}

/* Do warps of both do the same, but for where x is? */
static bool are_alike(const work *w, const group *g, const strip *a, const strip *b) {
    const vpps_cell_value *x = &w->c->values[a->x], *other_x = &w->c->values[b->x];
    if (x->rows != other_x->rows || vpps_has_quads(x) != vpps_has_quads(other_x) ||
        vpps_is_kept_in_parts(w->g, w->c, a->x) != vpps_is_kept_in_parts(w->g, w->c, b->x))
        return false;
    for (uint32_t k = 0; k < a->end - a->first; k++) {
        row_tile t, other;
        if (!find_tile(w, g, a->x, a->first + k, &t) || !find_tile(w, g, b->x, b->first + k, &other) ||
            w->c->outers[t.outer].dy != w->c->outers[other.outer].dy || t.number != other.number)
            return false;
    }
    return true;
}

/* The value's item of the thread's vector k, in the pool, but for so many words as are returned: added last, to an address, they are
 * part of the load's instruction. */
static uint32_t put_item(const work *w, uint32_t v, uint32_t k) {
    char item[16];
    snprintf(item, sizeof item, "first + v%u", k);
    return vpps_generate_place(w->out, w->g, w->c, v, item);
}

/* Begins what warps of the strip do, with the first of their columns. */
static void put_columns_of(const work *w, const strip *s) {
    fprintf(w->out, "if (slot >= %uu && slot < %uu) {\ncolumn = l%u.first + (slot - %uu) * %d;\n", s->slot,
            s->slot + s->blocks, w->c->values[s->x].rows, s->slot, BLOCK);
}

/* The sums of DEPTH vectors of a strip and of those like it, which the same instructions make. */
static void put_sums_of_alike(const work *w, const group *g, const strips *all, const strip *s) {
    const uint32_t length = w->c->values[s->x].rows;
    const char *four = vpps_has_quads(&w->c->values[s->x]) ? "true" : "false";
    fprintf(w->out, "{ unsigned column = VPPS_NONE, p0 = 0, p1 = 0, p2 = 0, p3 = 0;\n");
    for (strip a = *s; a.x != VPPS_NONE; a = next_strip(w, g, &a, all->tiles)) {
        if (!is_among(all, &a) || !are_alike(w, g, s, &a)) continue;
        put_columns_of(w, &a);
        for (uint32_t k = 0; k < 4; k++) {
            fprintf(w->out, "p%u = ", k);
            const uint32_t offset = put_item(w, a.x, k);
            fprintf(w->out, " + %u;\n", offset);
        }
        fprintf(w->out, "}\n");
    }
    fprintf(w->out, "if (column < l%u.end) {\ncolumn += VPPS_LANE / 4 * 4;\n", length);
    for (uint32_t k = 0; k < 4; k++)
        fprintf(w->out, "const vpps_quad x%u = vpps_four<%s, %s, %u>(pool + p%u, column);\n", k, four,
                length % BLOCK ? "false" : "true", length, k);
    row_tile t;
    for (uint32_t k = s->first; k < s->end && find_tile(w, g, s->x, k, &t); k++) {
        const uint32_t dy = w->c->outers[t.outer].dy, height = w->c->values[dy].rows;
        fprintf(w->out,
                "const unsigned row%u = vpps_least(m%u.first + VPPS_LANE / 4 + %u, %u);\nconst float d%u[4] = {",
                k - s->first, height, t.number * TILE, height - 1, k - s->first);
        for (uint32_t i = 0; i < 4; i++) {
            fprintf(w->out, "%s(pool + (", i ? ", " : "");
            const uint32_t offset = put_item(w, dy, i);
            fprintf(w->out, ") + row%u)[%u]", k - s->first, offset);
        }
        fprintf(w->out, "};\n");
    }
    fprintf(w->out, "vpps_words left, right;\nvpps_turn_quads<%s>({x0, x1, x2, x3}, left, right);\n",
            vpps_is_kept_in_parts(w->g, w->c, s->x) ? "true" : "false");
    for (uint32_t k = s->first; k < s->end && find_tile(w, g, s->x, k, &t); k++) {
        const uint32_t q = k - s->first;
        fprintf(w->out, "vpps_add_factors<%s>(q[%u], q[%u], left, right, d%u, low, high);\n",
                vpps_is_kept_in_parts(w->g, w->c, w->c->outers[t.outer].dy) ? "true" : "false", 2 * q, 2 * q + 1, q);
    }
    fprintf(w->out, "} }\n");
}

/* Those of all strips, once for all that are alike. */
static void put_strip_sums(const work *w, const group *g, const strips *all) {
    for (strip s = next_strip(w, g, NULL, all->tiles); s.x != VPPS_NONE; s = next_strip(w, g, &s, all->tiles)) {
        bool done = !is_among(all, &s);
        for (strip a = next_strip(w, g, NULL, all->tiles); !done && a.slot != s.slot;
             a = next_strip(w, g, &a, all->tiles))
            done = is_among(all, &a) && are_alike(w, g, &a, &s);
        if (!done) put_sums_of_alike(w, g, all, &s);
    }
}

/* Adds the strip's sums to gradients: a thread has four columns of two rows of each tile. */
static void put_stores(const work *w, const group *g, const strip *s) {
    const uint32_t length = w->c->values[s->x].rows;
    row_tile t;
    fprintf(w->out, "{ unsigned column = VPPS_NONE;\n");
    put_columns_of(w, s);
    fprintf(w->out, "}\nif (column < l%u.end) {\ncolumn += VPPS_LANE / 4 * 4;\n", length);
    for (uint32_t k = s->first; k < s->end && find_tile(w, g, s->x, k, &t); k++) {
        const vpps_cell_outer *o = &w->c->outers[t.outer];
        const uint32_t height = w->c->values[o->dy].rows, q = 2 * (k - s->first);
        fprintf(w->out,
                "{ const unsigned row = %u + VPPS_LANE %% 4 * 2, rows = m%u.end - m%u.first;\nconst bool add = %s"
                "vpps_touched[%u];\nfloat *const to = (float *)a.gradients + %uu + (m%u.first + row) * %u;\n",
                t.number * TILE, height, height, vpps_outer_is_first(w->c, t.outer) ? "" : "1 || ", o->param,
                w->g->matrix_at[o->param], height, length);
        for (uint32_t r = 0; r < 2; r++)
            fprintf(w->out,
                    "if (row + %u < rows) vpps_add_gradient<%s, %u>(to + %u, column, add, vpps_quad{q[%u][%u], "
                    "q[%u][%u], q[%u][%u], q[%u][%u]});\n",
                    r, length % 4 ? "false" : "true", length, r * length, q, r, q, 2 + r, q + 1, r, q + 1, 2 + r);
        fprintf(w->out, "}\n");
    }
    fprintf(w->out, "} }\n");
}

/* Begins what only VPs do that have rows of one of the strips. */
static void put_have_rows(const work *w, const group *g, const strips *all) {
    row_tile t;
    fprintf(w->out, "if (0");
    for (strip s = next_strip(w, g, NULL, all->tiles); s.x != VPPS_NONE; s = next_strip(w, g, &s, all->tiles)) {
        for (uint32_t k = s.first; k < s.end && find_tile(w, g, s.x, k, &t); k++) {
            const uint32_t height = w->c->values[w->c->outers[t.outer].dy].rows;
            fprintf(w->out, " || m%u.first + %u < m%u.end", height, t.number * TILE, height);
        }
    }
    fprintf(w->out, ") {\n");
}

/* Warps of the other parts leave their sums in shared memory, and those of the first add them to theirs, in order. */
static void put_add_parts(work *w, const strips *all) {
    const uint32_t busy = all->end - all->first, quads = 2 * all->tiles * 32;
    w->shared_words = vpps_max_u32(w->shared_words, (all->parts - 1) * busy * quads * 4);
    fprintf(
        w->out,
        "vpps_quad *const own = (vpps_quad *)staged + VPPS_WARP %% %u * %u + VPPS_LANE;\nif (own_part && own_part < "
        "%u) {\n#pragma unroll\nfor (int k = 0; k < %u; k++) own[(own_part - 1) * %u + k * 32] = vpps_quad{q[k][0], "
        "q[k][1], q[k][2], q[k][3]};\n}\n__syncthreads();\n",
        busy, quads, all->parts, 2 * all->tiles, busy * quads);
    fprintf(
        w->out,
        "#pragma unroll 1\nfor (unsigned part = 0; part < %u && !own_part; part++) {\n#pragma unroll\nfor (int k = 0; "
        "k < %u; k++) {\nconst vpps_quad other = own[part * %u + k * 32];\nq[k][0] += other.x, q[k][1] += other.y, "
        "q[k][2] += other.z, q[k][3] += other.w;\n}\n}\n",
        all->parts - 1, 2 * all->tiles, busy * quads);
}

/* The sums of strips. */
static void put_sums_of_strips(work *w, const group *g, const strips *all) {
    const uint32_t busy = all->end - all->first;
    put_have_rows(w, g, all);
    fprintf(w->out,
            "const unsigned own_part = VPPS_WARP / %u, slot = own_part < %u ? VPPS_WARP %% %u + %u : VPPS_NONE;\nfloat "
            "q[%u][4];\n#pragma unroll\nfor (int k = 0; k < %u; k++) q[k / 4][k %% 4] = 0.0f;\n",
            busy, all->parts, busy, all->first, 2 * all->tiles, 8 * all->tiles);
    begin_tasks(w, w->c->outers[g->outers[0]].dy);
    fprintf(w->out,
            "#pragma unroll 1\nfor (unsigned from = own_part * %d; from < n; from += %d) {\nconst unsigned at = "
            "from + VPPS_LANE %% 4 * 4;\nconst unsigned "
            "v0 = vpps_least(at, n - 1), v1 = vpps_least(at + 1, n - 1), v2 = vpps_least(at + 2, n - 1), v3 = "
            "vpps_least(at + 3, n - 1);\nconst unsigned low = vpps_pair_mask(at, n), high = vpps_pair_mask(at + 2, "
            "n);\n",
            DEPTH, DEPTH * all->parts);
    put_strip_sums(w, g, all);
    fprintf(w->out, "}\n}\n");
    if (all->parts > 1) put_add_parts(w, all);
    fprintf(w->out, "if (!own_part) {\n");
    for (strip s = next_strip(w, g, NULL, all->tiles); s.x != VPPS_NONE; s = next_strip(w, g, &s, all->tiles))
        if (is_among(all, &s)) put_stores(w, g, &s);
    fprintf(w->out, "}\n__syncthreads();\n}\n");
}

/* Strips of as many tiles at a time, so that warps have as much to do. */
static void put_mma_group(work *w, const group *g) {
    const uint32_t warps = w->g->plan->threads / 32;
    for (uint32_t tiles = most_tiles(w); tiles; tiles--) {
        uint32_t slots = 0;
        for (strip s = next_strip(w, g, NULL, tiles); s.x != VPPS_NONE; s = next_strip(w, g, &s, tiles))
            slots = s.slot + s.blocks;
        for (uint32_t first = 0; first < slots; first += warps) {
            const uint32_t end = vpps_min_u32(slots, first + warps);
            put_sums_of_strips(w, g, &(strips){tiles, first, end, warps / (end - first)});
        }
    }
}

/* ---------------------------------------------------------------- all */

/* Of one of them, some rows and columns at a time: where a VP has many. */
static void put_blocks(const work *w, uint32_t i) {
    enum { ROWS = 8, COLUMNS = 4 };
    const vpps_cell_outer *outer = &w->c->outers[i];
    const vpps_cell_value *x = &w->c->values[outer->x];
    const uint32_t height = w->c->values[outer->dy].rows, threads = w->g->plan->threads;
    const uint32_t columns = vpps_min_u32(COLUMNS, (x->rows + threads - 1) / threads);
    fprintf(w->out,
            "#pragma unroll 1\nfor (unsigned row = 0; row < m%u.end - m%u.first; row += %d) {\n#pragma unroll 1\nfor "
            "(unsigned column = "
            "l%u.first + threadIdx.x; column < l%u.end; column += %u * VPPS_THREADS) {\nfloat q[%u];\n#pragma "
            "unroll\nfor (int k = 0; k "
            "< %u; k++) "
            "q[k] = 0.0f;\n",
            height, height, ROWS, x->rows, x->rows, columns, ROWS * columns, ROWS * columns);
    begin_tasks(w, outer->x);
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned k = 0; k < n * %uu; k++) {\nconst unsigned at = ", x->cols);
    vpps_outer_vector(w, outer->x, "k");
    fprintf(w->out, ", d = m%u.first + row + ", height);
    vpps_outer_vector(w, outer->dy, "k");
    fprintf(w->out, ";\n");
    for (uint32_t j = 0; j < columns; j++)
        fprintf(
            w->out,
            "const float x%u = column + %u * VPPS_THREADS < l%u.end ? pool[at + column + %u * VPPS_THREADS] : 0.0f;\n",
            j, j, x->rows, j);
    for (uint32_t r = 0; r < ROWS; r++) {
        fprintf(w->out, "{ const float y = row + %u < m%u.end - m%u.first ? pool[d + %u] : 0.0f;", r, height, height,
                r);
        for (uint32_t j = 0; j < columns; j++) {
            const uint32_t q = r * columns + j;
            fprintf(w->out, w->g->plan->parts ? " q[%u] = vpps_multiply_add(y, x%u, q[%u]);" : " q[%u] += y * x%u;", q,
                    j, q);
        }
        fprintf(w->out, " }\n");
    }
    fprintf(w->out, "}\n}\n");
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t j = 0; j < columns; j++) {
            char at[32], column[64];
            snprintf(at, sizeof at, "row + %u", r);
            snprintf(column, sizeof column, "column + %u * VPPS_THREADS", j);
            put_add(w, i, at, column, r * columns + j);
        }
    }
    fprintf(w->out, "}\n}\n");
}

static void end_group(work *w, group *g) {
    if (g->n && w->g->plan->parts) {
        put_mma_group(w, g);
    } else if (g->n && !vpps_generate_outer_tiles(w, g->outers, g->n)) {
        for (uint32_t i = 0; i < g->n; i++)
            if (!vpps_generate_outer_tiles(w, &g->outers[i], 1)) put_blocks(w, g->outers[i]);
    }
    *g = (group){0};
}

/* A thread an element, neighbours one below the other. */
static void put_whole_matrices(const work *w) {
    for (uint32_t i = 0; i < w->c->n_outers; i++) {
        if (!is_whole_matrix(w, i)) continue;
        const vpps_cell_outer *o = &w->c->outers[i];
        const uint32_t rows = w->c->values[o->dy].rows, cols = w->c->values[o->dy].cols;
        fprintf(
            w->out,
            "#pragma unroll 1\nfor (unsigned e = threadIdx.x; e < (m%u.end - m%u.first) * (l%u.end - l%u.first); e += "
            "VPPS_THREADS) {\nconst unsigned row = m%u.first + e %% (m%u.end - m%u.first), column = l%u.first + e / "
            "(m%u.end - m%u.first);\nfloat *const to = (float *)a.gradients + %uu + row * %uu + column;\nfloat sum = "
            "%svpps_touched[%u] ? *to : 0.0f;\n",
            rows, rows, cols, cols, rows, rows, rows, cols, rows, rows, w->g->matrix_at[o->param], cols,
            vpps_outer_is_first(w->c, i) ? "" : "1 || ", o->param);
        begin_tasks(w, o->dy);
        fprintf(w->out, "#pragma unroll 1\nfor (unsigned k = 0; k < n; k++) sum += %s(pool[",
                vpps_is_kept_in_parts(w->g, w->c, o->dy) ? "vpps_whole_of" : "");
        const uint32_t offset = vpps_generate_place(w->out, w->g, w->c, o->dy, "first + k");
        fprintf(w->out, " + %uu + column * %uu + row]);\n}\n*to = sum;\n}\n__syncthreads();\n", offset, rows);
    }
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

/* The VP's columns of matrices of each length. */
static void put_lengths(const work *w) {
    const vpps_parameter_data *const params = w->g->model->params;
    for (uint32_t i = 0; i < w->c->n_outers; i++) {
        const vpps_parameter_data *p = &params[w->c->outers[i].param];
        bool seen = p->kind != VPPS_MATRIX;
        for (uint32_t j = 0; j < i && !seen; j++) {
            const vpps_parameter_data *other = &params[w->c->outers[j].param];
            seen = other->kind == VPPS_MATRIX && other->cols == p->cols;
        }
        if (!seen)
            fprintf(w->out, "const vpps_rows l%u = vpps_matrix_columns(%u, vp);\n(void)l%u;\n", p->cols, p->cols,
                    p->cols);
    }
}

uint32_t vpps_generate_outer(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t number) {
    work w = {.g = g, .c = c, .out = g->out, .vectors_due = true};
    fputs("\n/* gradients of cell ", w.out);
    vpps_generate_name(w.out, c->name);
    fprintf(w.out,
            " */\nVPPS_PART void vpps_outer_%u(const vpps_arguments &a, float "
            "*shared, const vpps_task *tasks, unsigned n_tasks) {\n",
            number);
    fprintf(w.out, "float *const staged = shared + VPPS_SHARED_WEIGHTS;\nconst unsigned vp = vpps_vp();\n(void)staged, "
                   "(void)vp;\n");
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const uint32_t rows = c->values[c->outers[i].dy].rows;
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++) seen = c->values[c->outers[j].dy].rows == rows;
        if (!seen) {
            fprintf(w.out, "const vpps_rows r%u = vpps_rows_of(%u, VPPS_VPS, vp), m%u = vpps_matrix_rows(%u, vp);\n",
                    rows, rows, rows, rows);
            fprintf(w.out, "(void)r%u, (void)m%u;\n", rows, rows);
        }
    }
    put_lengths(&w);
    put_whole_matrices(&w);
    if (g->plan->parts) vpps_outer_sum_vectors(&w);
    if (g->plan->packs)
        vpps_generate_packing(&w);
    else
        put_matrices(&w);
    if (w.vectors_due) vpps_outer_sum_vectors(&w);
    fprintf(w.out, "__syncthreads();\nif (threadIdx.x < n_tasks && tasks[threadIdx.x].operands[2]) {\n");
    for (uint32_t i = 0; i < c->n_outers; i++)
        if (vpps_outer_is_first(c, i) && (!g->plan->packs || c->outers[i].x == VPPS_NONE))
            fprintf(w.out, "vpps_touched[%u] = 1;\n", c->outers[i].param);
    fprintf(w.out, "}\n}\n");
    return w.shared_words;
}
