/* shared.c - instructions on matrices and parameters: each VP for the rows it owns. */
#include "runtime/cpu/cpu.h"

#include <math.h>

#if VPPS_WITH_XSMM
#include <libxsmm.h>
#endif

/* Vectors multiplied at a time: enough to run at the FMA's speed (4) many times over, few enough that they stay in L2
 * beside the matrix. OUTER takes more, since each pass reads and writes the whole gradient. */
enum { VECTORS = 64, OUTER_VECTORS = 128 };

/* Up to so many vectors, a product waits for the matrix: our own kernel reads it in one sweep, libxsmm's in strips.
 * With matrices too many for L2, AFFINE at batch 1 took 16 % less time in two interleaved pairs of runs. */
enum { FEW_VECTORS = 3 };

/* ---------------------------------------------------------------- products */

#if VPPS_WITH_XSMM
static void compile_product(vpps_product *p) {
    libxsmm_blasint lda = (libxsmm_blasint)p->key.lda, ldb = (libxsmm_blasint)p->key.ldb;
    libxsmm_blasint ldc = (libxsmm_blasint)p->key.ldc;
    float alpha = 1, beta = p->key.accumulate ? 1 : 0;
    int flags = p->key.transposed_b ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
    int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    libxsmm_smmfunction run =
        libxsmm_smmdispatch((libxsmm_blasint)p->key.m, (libxsmm_blasint)p->key.n, (libxsmm_blasint)p->key.k, &lda, &ldb,
                            &ldc, &alpha, &beta, &flags, &prefetch);
    memcpy(&p->run, &run, sizeof run);
}

static uint32_t hash_product(const vpps_product_key *k) {
    uint64_t h = ((uint64_t)k->m << 32 | k->n) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ ((uint64_t)k->k << 32 | k->lda)) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ ((uint64_t)k->ldb << 32 | k->ldc)) * 0x9e3779b97f4a7c15u;
    return (uint32_t)((h ^ k->transposed_b ^ (uint64_t)k->accumulate << 1) * 0x9e3779b97f4a7c15u >> 32);
}

static bool same_product(const vpps_product_key *a, const vpps_product_key *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && a->lda == b->lda && a->ldb == b->ldb && a->ldc == b->ldc &&
           a->transposed_b == b->transposed_b && a->accumulate == b->accumulate;
}

static vpps_product *find_slot(vpps_product *table, size_t size, const vpps_product_key *key) {
    size_t at = hash_product(key) & (size - 1);
    while (table[at].used && !same_product(&table[at].key, key)) at = (at + 1) & (size - 1);
    return &table[at];
}

/* The product for these sizes, compiled at its first use; NULL when the library cannot. Each VP has its own table, so
 * no locks. */
static const vpps_product *find_product(vpps_vp *vp, const vpps_product_key *key) {
    if (vp->n_products * 2 >= vp->products_capacity) {
        size_t size = vp->products_capacity ? vp->products_capacity * 2 : 256;
        vpps_product *table = calloc(size, sizeof *table);
        if (!table) return NULL;
        for (size_t i = 0; i < vp->products_capacity; i++) {
            if (vp->products[i].used) *find_slot(table, size, &vp->products[i].key) = vp->products[i];
        }
        free(vp->products);
        vp->products = table;
        vp->products_capacity = size;
    }
    vpps_product *p = find_slot(vp->products, vp->products_capacity, key);
    if (!p->used) {
        *p = (vpps_product){.key = *key, .used = true};
        compile_product(p);
        vp->n_products++;
    }
    return p->run ? p : NULL;
}
#endif

typedef struct operand {
    const float *at;
    uint32_t ld;
} operand;

/* c (m x n) = or += a (m x k) b (k x n), or b (n x k) transposed. */
static void multiply(vpps_vp *vp, uint32_t m, uint32_t n, uint32_t k, operand a, operand b, bool transposed_b, float *c,
                     uint32_t ldc, bool accumulate) {
    if (!m || !n) return;
#if VPPS_WITH_XSMM
    if (vp->cpu->use_xsmm && (n > FEW_VECTORS || transposed_b)) {
        const vpps_product_key key = {m, n, k, a.ld, b.ld, ldc, transposed_b, accumulate};
        const vpps_product *p = find_product(vp, &key);
        if (p) {
            p->run(a.at, b.at, c);
            return;
        }
    }
#endif
    const vpps_kernels *kernels = vp->cpu->kernels;
    (transposed_b ? kernels->gemm_nt : kernels->gemm_nn)(m, n, k, a.at, a.ld, b.at, b.ld, c, ldc, accumulate);
}

/* ---------------------------------------------------------------- bundles, see nodes/format.h */

typedef struct bundle {
    uint32_t n_lists, n_outputs;
    const uint32_t *lists; /* 4 words each */
    const uint32_t *outputs;
} bundle;

typedef struct output {
    uint32_t value, gradient, bias, rows, n_pairs;
    const uint32_t *pairs; /* matrix, list */
} output;

static bundle read_bundle(const vpps_vp *vp, uint32_t address) {
    const uint32_t *at = vp->cpu->script + address;
    return (bundle){at[0], at[1], at + 2, at + 2 + 4 * (size_t)at[0]};
}

/* The output at *at, which moves on to the next. */
static output next_output(const uint32_t **at) {
    const uint32_t *w = *at;
    *at = w + 5 + 2 * (size_t)w[4];
    return (output){w[0], w[1], w[2], w[3], w[4], w + 5};
}

static float *scratch(vpps_vp *vp, size_t floats, uint32_t address) {
    if (floats <= vp->scratch_floats) return vp->scratch;
    void *grown = NULL;
    if (posix_memalign(&grown, 64, floats * sizeof(float))) {
        vpps_vp_fail(vp, VPPS_MEMORY, address, "out of memory for %zu gathered elements", floats);
        return NULL;
    }
    free(vp->scratch);
    vp->scratch = grown;
    vp->scratch_floats = floats;
    return grown;
}

/* Members first .. first + n - 1 of a list as a matrix, one a column: gathered into `room` unless they lie in a row. */
static const float *gather(const vpps_vp *vp, const uint32_t *offsets, uint32_t n, uint32_t elems, float *room) {
    const float *pool = vp->cpu->pool;
    uint32_t j = 1;
    while (j < n && offsets[j] == offsets[0] + j * elems) j++;
    if (j == n) return pool + offsets[0];
    for (j = 0; j < n; j++) memcpy(room + (size_t)j * elems, pool + offsets[j], elems * sizeof(float));
    return room;
}

/* Room for VECTORS members of every list, and where each list's begins. */
static bool list_room(vpps_vp *vp, const bundle *b, uint32_t vectors, uint32_t address, float **rooms) {
    size_t floats = 0;
    for (uint32_t i = 0; i < b->n_lists; i++) floats += (size_t)vectors * ((b->lists[4 * i + 3] + 15) / 16 * 16);
    float *room = scratch(vp, floats, address);
    if (!room) return false;
    for (uint32_t i = 0; i < b->n_lists; i++) {
        rooms[i] = room;
        room += (size_t)vectors * ((b->lists[4 * i + 3] + 15) / 16 * 16);
    }
    return true;
}

enum { MAX_LISTS = VPPS_MANY_PAIRS };

static void affine(vpps_vp *vp, uint32_t address, const bundle *b, uint32_t first, uint32_t count) {
    vpps_cpu *cpu = vp->cpu;
    float *rooms[MAX_LISTS];
    if (!list_room(vp, b, VECTORS, address, rooms)) return;
    for (uint32_t start = first; start < first + count; start += VECTORS) {
        uint32_t n = vpps_min_u32(VECTORS, first + count - start);
        const float *xs[MAX_LISTS] = {NULL};
        const uint32_t *at = b->outputs;
        for (uint32_t i = 0; i < b->n_outputs; i++) {
            output o = next_output(&at);
            vpps_rows rows = vpps_vp_rows(vp, o.rows);
            if (rows.first == rows.end) continue;
            float *y = cpu->pool + o.value + (size_t)start * o.rows + rows.first;
            uint32_t n_rows = rows.end - rows.first;
            if (o.bias != VPPS_NO_PARAM) {
                const float *bias = cpu->pool + cpu->plan.values[o.bias] + rows.first;
                for (uint32_t j = 0; j < n; j++) memcpy(y + (size_t)j * o.rows, bias, n_rows * sizeof *y);
            }
            for (uint32_t p = 0; p < o.n_pairs; p++) {
                uint32_t list = o.pairs[2 * p + 1], elems = b->lists[4 * list + 3];
                const uint32_t *offsets = cpu->script + b->lists[4 * list] + start;
                if (!xs[list]) xs[list] = gather(vp, offsets, n, elems, rooms[list]);
                const vpps_panel *panel = &vp->panels[o.pairs[2 * p]];
                multiply(vp, n_rows, n, elems, (operand){panel->values, n_rows}, (operand){xs[list], elems}, false, y,
                         o.rows, p > 0 || o.bias != VPPS_NO_PARAM);
            }
        }
    }
}

/* By columns: the VP's own columns of W^T dy, all products of a list together, then added to the list's gradients. */
static void affine_transposed(vpps_vp *vp, uint32_t address, const bundle *b, uint32_t first, uint32_t count) {
    vpps_cpu *cpu = vp->cpu;
    for (uint32_t list = 0; list < b->n_lists; list++) {
        const uint32_t *l = b->lists + 4 * (size_t)list;
        vpps_rows cols = vpps_vp_rows(vp, l[3]);
        uint32_t n_cols = cols.end - cols.first;
        if (!l[1] || !n_cols) continue;
        float *sum = scratch(vp, (size_t)VECTORS * n_cols, address);
        if (!sum) return;
        for (uint32_t start = first; start < first + count; start += VECTORS) {
            uint32_t n = vpps_min_u32(VECTORS, first + count - start);
            const uint32_t *at = b->outputs;
            bool begun = false;
            for (uint32_t i = 0; i < b->n_outputs; i++) {
                output o = next_output(&at);
                const float *dy = cpu->pool + o.gradient + (size_t)start * o.rows;
                for (uint32_t p = 0; p < o.n_pairs; p++) {
                    if (o.pairs[2 * p + 1] != list) continue;
                    const vpps_panel *panel = &vp->panels[o.pairs[2 * p]];
                    multiply(vp, n_cols, n, o.rows, (operand){panel->transposed, n_cols}, (operand){dy, o.rows}, false,
                             sum, n_cols, begun);
                    begun = true;
                }
            }
            const uint32_t *gradients = cpu->script + l[1] + start;
            for (uint32_t j = 0; j < n; j++) {
                cpu->kernels->add(n_cols, cpu->pool + gradients[j] + cols.first, sum + (size_t)j * n_cols);
            }
        }
    }
}

/* By rows: this VP's rows' share of W^T dy into its partial sums. */
static void affine_partial(vpps_vp *vp, const bundle *b, uint32_t first, uint32_t count) {
    vpps_cpu *cpu = vp->cpu;
    for (uint32_t list = 0; list < b->n_lists; list++) {
        const uint32_t *l = b->lists + 4 * (size_t)list;
        if (!l[1]) continue;
        uint32_t members = cpu->script[l[0] - 1], elems = l[3];
        float *sum = cpu->pool + l[2] + ((size_t)vp->index * members + first) * elems;
        const uint32_t *at = b->outputs;
        bool begun = false;
        for (uint32_t i = 0; i < b->n_outputs; i++) {
            output o = next_output(&at);
            vpps_rows rows = vpps_vp_rows(vp, o.rows);
            if (rows.first == rows.end) continue;
            const float *dy = cpu->pool + o.gradient + (size_t)first * o.rows + rows.first;
            for (uint32_t p = 0; p < o.n_pairs; p++) {
                if (o.pairs[2 * p + 1] != list) continue;
                cpu->kernels->gemm_tn(rows.end - rows.first, count, elems, vp->panels[o.pairs[2 * p]].values,
                                      rows.end - rows.first, dy, o.rows, sum, elems, begun);
                begun = true;
            }
        }
        if (!begun) memset(sum, 0, (size_t)count * elems * sizeof *sum);
    }
}

static void reduce_partial(vpps_vp *vp, const bundle *b, uint32_t first, uint32_t count) {
    vpps_cpu *cpu = vp->cpu;
    for (uint32_t list = 0; list < b->n_lists; list++) {
        const uint32_t *l = b->lists + 4 * (size_t)list;
        vpps_rows rows = vpps_vp_rows(vp, l[3]);
        if (!l[1] || rows.first == rows.end) continue;
        uint32_t members = cpu->script[l[0] - 1];
        for (uint32_t j = first; j < first + count; j++) {
            float *gradient = cpu->pool + cpu->script[l[1] + j] + rows.first;
            for (uint32_t v = 0; v < cpu->n_vps; v++) {
                const float *share = cpu->pool + l[2] + ((size_t)v * members + j) * l[3] + rows.first;
                cpu->kernels->add(rows.end - rows.first, gradient, share);
            }
        }
    }
}

/* Gradients of the matrices: one product of rank `count` each, in parts that stay in the cache. */
static void outer(vpps_vp *vp, uint32_t address, const bundle *b, uint32_t first, uint32_t count) {
    vpps_cpu *cpu = vp->cpu;
    float *rooms[MAX_LISTS];
    if (!list_room(vp, b, OUTER_VECTORS, address, rooms)) return;
    for (uint32_t start = first; start < first + count; start += OUTER_VECTORS) {
        uint32_t n = vpps_min_u32(OUTER_VECTORS, first + count - start);
        const float *xs[MAX_LISTS] = {NULL};
        const uint32_t *at = b->outputs;
        for (uint32_t i = 0; i < b->n_outputs; i++) {
            output o = next_output(&at);
            vpps_rows rows = vpps_vp_rows(vp, o.rows);
            if (rows.first == rows.end) continue;
            uint32_t n_rows = rows.end - rows.first;
            const float *dy = cpu->pool + o.gradient + (size_t)start * o.rows + rows.first;
            if (o.bias != VPPS_NO_PARAM) {
                float *bias = cpu->pool + cpu->plan.gradients[o.bias] + rows.first;
                for (uint32_t j = 0; j < n; j++) cpu->kernels->add(n_rows, bias, dy + (size_t)j * o.rows);
            }
            for (uint32_t p = 0; p < o.n_pairs; p++) {
                uint32_t list = o.pairs[2 * p + 1], elems = b->lists[4 * list + 3];
                const uint32_t *offsets = cpu->script + b->lists[4 * list] + start;
                if (!xs[list]) xs[list] = gather(vp, offsets, n, elems, rooms[list]);
                vpps_panel *panel = &vp->panels[o.pairs[2 * p]];
                multiply(vp, n_rows, elems, n, (operand){dy, o.rows}, (operand){xs[list], elems}, true, panel->gradient,
                         n_rows, panel->touched == cpu->launch);
                panel->touched = cpu->launch;
            }
        }
    }
}

static void transpose(vpps_vp *vp, uint32_t param) {
    vpps_cpu *cpu = vp->cpu;
    vpps_panel *own = &vp->panels[param];
    if (!own->n_cols) return;
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        const vpps_panel *p = &cpu->vps[v].panels[param];
        if (!p->n_rows) continue;
        cpu->kernels->transpose(p->n_rows, own->n_cols, p->values + (size_t)own->first_col * p->n_rows, p->n_rows,
                                own->transposed + (size_t)p->first_row * own->n_cols, own->n_cols);
    }
}

/* ---------------------------------------------------------------- norms and updates */

/* The gradient of the VP's rows of a matrix; zero where this batch added nothing. */
static float *panel_gradient(const vpps_vp *vp, uint32_t param, size_t elems) {
    vpps_panel *p = &vp->panels[param];
    if (p->touched != vp->cpu->launch) memset(p->gradient, 0, elems * sizeof(float));
    p->touched = vp->cpu->launch;
    return p->gradient;
}

static void norm(vpps_vp *vp, uint32_t param) {
    vpps_cpu *cpu = vp->cpu;
    const vpps_parameter_data *data = &cpu->model->params[param];
    vpps_rows rows = vpps_vp_rows(vp, data->rows);
    uint32_t elems = (rows.end - rows.first) * data->cols;
    if (!elems) return;
    const float *g = data->kind == VPPS_MATRIX ? panel_gradient(vp, param, elems)
                                               : cpu->pool + cpu->plan.gradients[param] + rows.first;
    vp->norm += cpu->kernels->sum_squares(elems, g);
}

double vpps_cpu_norm(const vpps_cpu *cpu) {
    double sum = 0;
    for (uint32_t v = 0; v < cpu->n_vps && cpu->header.update && VPPS_TAKES_NORM(&cpu->header); v++) {
        sum += cpu->pool[cpu->plan.norms + v];
    }
    return sqrt(sum);
}

/* The step, or false when this batch must not update. */
static bool prepare_step(const vpps_cpu *cpu, vpps_step *step) {
    const vpps_script_header *h = &cpu->header;
    const double norm = vpps_cpu_norm(cpu);
    if (h->guard && !(isfinite(cpu->pool[h->loss]) && isfinite(norm))) return false;
    *step = (vpps_step){.kind = h->update - 1,
                        .scale = 1,
                        .lr = h->lr,
                        .momentum = h->momentum,
                        .beta1 = h->beta1,
                        .beta2 = h->beta2,
                        .epsilon = h->epsilon,
                        .weight_decay = h->weight_decay,
                        .correction1 = h->corrections[0],
                        .correction2 = h->corrections[1]};
    if (h->clip > 0 && norm > h->clip) step->scale = (float)(h->clip / norm);
    return true;
}

/* Optimiser state of a vector or table, at `elems` into it; NULL where the optimiser has none. */
static float *state_at(const vpps_cpu *cpu, uint32_t param, uint32_t state, size_t elems) {
    uint32_t at = cpu->plan.states[state][param];
    return at == VPPS_NO_OFFSET ? NULL : cpu->pool + at + elems;
}

static void update(vpps_vp *vp, uint32_t param) {
    vpps_cpu *cpu = vp->cpu;
    const vpps_parameter_data *data = &cpu->model->params[param];
    vpps_rows rows = vpps_vp_rows(vp, data->rows);
    uint32_t elems = (rows.end - rows.first) * data->cols;
    vpps_step step;
    if (!elems || !prepare_step(cpu, &step)) return;
    if (data->kind == VPPS_MATRIX) {
        vpps_panel *p = &vp->panels[param];
        cpu->kernels->update(elems, &step, p->values, panel_gradient(vp, param, elems), p->states[0], p->states[1]);
    } else {
        cpu->kernels->update(elems, &step, cpu->pool + cpu->plan.values[param] + rows.first,
                             cpu->pool + cpu->plan.gradients[param] + rows.first, state_at(cpu, param, 0, rows.first),
                             state_at(cpu, param, 1, rows.first));
    }
}

/* Entries of a lookup table: pairs (row, offset of its gradient). */
static void rows_of_table(vpps_vp *vp, uint32_t table, const uint32_t *pairs, uint32_t n, bool updating) {
    vpps_cpu *cpu = vp->cpu;
    const vpps_parameter_data *data = &cpu->model->params[table];
    uint32_t entry = data->rows * data->cols;
    vpps_rows rows = vpps_vp_rows(vp, entry);
    uint32_t elems = rows.end - rows.first;
    vpps_step step;
    if (!elems || (updating && !prepare_step(cpu, &step))) return;
    for (uint32_t i = 0; i < n; i++) {
        const float *g = cpu->pool + pairs[2 * i + 1] + rows.first;
        size_t at = (size_t)pairs[2 * i] * entry + rows.first;
        if (updating) {
            cpu->kernels->update(elems, &step, cpu->pool + cpu->plan.values[table] + at, g, state_at(cpu, table, 0, at),
                                 state_at(cpu, table, 1, at));
        } else {
            vp->norm += cpu->kernels->sum_squares(elems, g);
        }
    }
}

void vpps_vp_shared(vpps_vp *vp, const uint32_t *at) {
    vpps_cpu *cpu = vp->cpu;
    uint32_t opcode = vpps_word_opcode(at[0]), count = vpps_word_length(at[0]);
    uint32_t address = (uint32_t)(at - cpu->script);
    bundle b = {0, 0, NULL, NULL};
    if (opcode <= VPPS_I_OUTER) b = read_bundle(vp, at[2]);
    switch (opcode) {
    case VPPS_I_AFFINE: affine(vp, address, &b, at[1], count); break;
    case VPPS_I_AFFINE_T: affine_transposed(vp, address, &b, at[1], count); break;
    case VPPS_I_AFFINE_P: affine_partial(vp, &b, at[1], count); break;
    case VPPS_I_REDUCE_P: reduce_partial(vp, &b, at[1], count); break;
    case VPPS_I_OUTER: outer(vp, address, &b, at[1], count); break;
    case VPPS_I_TRANSPOSE: transpose(vp, at[1]); break;
    case VPPS_I_NORM: norm(vp, at[1]); break;
    case VPPS_I_UPDATE: update(vp, at[1]); break;
    case VPPS_I_NORM_ROWS: rows_of_table(vp, at[1], cpu->script + at[2], count, false); break;
    case VPPS_I_UPDATE_ROWS: rows_of_table(vp, at[1], cpu->script + at[2], count, true); break;
    default: cpu->pool[cpu->plan.norms + vp->index] = (float)vp->norm; break; /* NORM_END */
    }
}
