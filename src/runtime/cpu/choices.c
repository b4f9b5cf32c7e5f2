/* choices.c - chooses the instructions and the precision of the CPU's products, by measured times ("trials") or a table. The order of sums
 * depends on the choice, and measured times are noisy. So a choice other than the table's must be clearly faster. */
#include "runtime/cpu/choices.h"
#include "runtime/device.h"

#include <math.h>

#define NEVER UINT32_MAX

/* Least part of the default's time that another choice (instructions, tile size, transposed copy) must save, as measured, to be taken. */
static const double margin = 0.1;

/* For estimating a batch's time: each matrix is used VECTORS_OF_INPUT times (a sentence's tree has some 20 inner
 * vertices), each time for one vector of every input of the batch. USUAL_BATCH: number of inputs if unknown. */
enum { VECTORS_OF_INPUT = 16, USUAL_BATCH = 16 };

/* Batch size from which bf16x3 with AMX counts as faster than fp32, if nothing was measured. */
enum { LEAST_BATCH = 4 };

/* bf16x3 is chosen only if matrices have at least this many rows and columns, on average: otherwise, splitting vectors into bf16 parts
 * takes the time that products save. With AMX, batches of 16 and 128: Tree-LSTM is slower in bf16x3 at hidden 32 and 64, faster at 128. */
enum { LEAST_SIDE = 96 };

static const vpps_cpu_choice defaults = {
#define X(name, value, what) .name = value,
    VPPS_CPU_CHOICE_TABLE(X)
#undef X
};

/* The choice for AMX if nothing was measured. AMX computes A^T x without a transposed copy of A, for up to 8 vectors x in the time of one;
 * so products with a transposed copy are faster only from 9 vectors at a time on (few). */
static const vpps_cpu_choice spreads = {.tile = 96, .few = 9, .pays = 64};

const char *const vpps_cpu_ways[VPPS_CPU_WAYS] = {
#define X(name, what) #name,
    VPPS_CPU_WAY_TABLE(X)
#undef X
};

typedef struct trial_list {
    const vpps_trial *at;
    uint32_t n;
} trial_list;

static bool is_made_by(const vpps_trial *t, vpps_cpu_maker m) {
    return !strcmp(t->unit, m.name) && !strcmp(t->precision, vpps_precision_names[m.precision]);
}

static bool is_of(const vpps_trial *t, vpps_cpu_maker m, vpps_cpu_way way, bool far) {
    return !strcmp(t->product, vpps_cpu_ways[way]) && t->far == far && is_made_by(t, m);
}

/* Returns the time per vector of products of kind `way` by instructions `m`, measured with `vectors` vectors or the next smaller measured
 * number. INFINITY: not measured. `far`: with matrices that exceed the core's cache. */
static double ns_of(trial_list l, vpps_cpu_maker m, vpps_cpu_way way, uint32_t vectors, bool far) {
    const vpps_trial *best = NULL;
    for (uint32_t i = 0; i < l.n; i++) {
        const vpps_trial *t = &l.at[i];
        if (is_of(t, m, way, far) && t->vectors <= vectors && (!best || t->vectors > best->vectors)) best = t;
    }
    return best ? best->ns_per_vector : INFINITY;
}

/* Returns a batch's estimated ns for one matrix of VPPS_TRIAL_SIDE rows and columns: forward, backward, gradient and, in bf16, packing. */
static double cost_of_batch(const vpps_cpu_problem *p, trial_list l, vpps_cpu_maker m, uint32_t parts) {
    const uint32_t n = p->batch ? p->batch : USUAL_BATCH;
    const double vectors = (double)VECTORS_OF_INPUT * n;
    const size_t bytes = p->elems * (parts ? 2 * (size_t)parts : sizeof(float));
    const bool far = bytes > p->cache_bytes / 4 * 3;
    const double near_forward = ns_of(l, m, VPPS_CPU_WAY_forward, n, false);
    const double forward = far ? ns_of(l, m, VPPS_CPU_WAY_forward, n, true) : near_forward;
    const double copy = ns_of(l, m, VPPS_CPU_WAY_copy, 1, false), by_copy = forward + copy / vectors;
    const double by_rows = ns_of(l, m, VPPS_CPU_WAY_rows, n, false) * (forward / near_forward);
    const double gradient = ns_of(l, m, VPPS_CPU_WAY_gradient, UINT32_MAX, false);
    return vectors * (forward + fmin(by_rows, by_copy) + gradient) + (parts ? copy : 0);
}

static vpps_cpu_maker maker_of(const vpps_cpu_units *u, uint32_t kernels, uint32_t unit, vpps_precision precision) {
    const vpps_bf16_unit_id id = (vpps_bf16_unit_id)unit;
    const bool fp32 = precision == VPPS_PRECISION_FP32;
    return (vpps_cpu_maker){fp32 ? u->kernels[kernels]->isa : vpps_bf16_unit_of(u, kernels, id).name, precision,
                            kernels, id};
}

static double cost(const vpps_cpu_units *u, const vpps_cpu_problem *p, trial_list l, uint32_t kernels, uint32_t unit,
                   vpps_precision precision) {
    return cost_of_batch(p, l, maker_of(u, kernels, unit, precision), vpps_precision_parts(precision));
}

/* Returns the index in *u of the fastest vector kernels or, if `unit`, of the fastest kind of bf16 instructions, such
 * as AMX, next to vector kernels `kernels`. A name in the environment variable VPPS_ISA overrides measured times. */
static uint32_t choose_one(const vpps_cpu_units *u, const vpps_cpu_problem *p, trial_list l, bool unit,
                           uint32_t kernels, vpps_precision precision) {
    const uint32_t n = unit ? (uint32_t)VPPS_BF16_UNITS : u->n_kernels;
    uint32_t best = !unit ? n - 1 : u->bf16[VPPS_BF16_AMX].product ? VPPS_BF16_AMX : VPPS_BF16_VECTORS;
    if (p->portable) return 0;
    double least = cost(u, p, l, unit ? kernels : best, best, precision) * (1 - margin);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = unit ? kernels : i;
        const vpps_bf16_unit made_by = vpps_bf16_unit_of(u, k, unit ? (vpps_bf16_unit_id)i : VPPS_BF16_VECTORS);
        if (unit && !made_by.product) continue;
        if (p->wanted && !strcmp(p->wanted, made_by.name)) return i;
        const double ns = cost(u, p, l, k, i, precision);
        if (!(ns < least)) continue;
        least = ns;
        best = i;
    }
    return best;
}

/* Chooses the precision where the options say AUTO: bf16x3 if it is faster than fp32. */
static vpps_precision choose_precision(const vpps_cpu_units *u, const vpps_cpu_problem *p, trial_list l,
                                       const vpps_cpu_choice *c, char *why, size_t bytes) {
    const char *fp32 = u->kernels[c->kernels]->isa,
               *unit = maker_of(u, c->kernels, c->unit, VPPS_PRECISION_BF16X3).name;
    if (p->side && p->side < LEAST_SIDE) {
        snprintf(why, bytes, "bf16x3 gains nothing for matrices of fewer than %d rows or columns", LEAST_SIDE);
        return VPPS_PRECISION_FP32;
    }
    const double ratio = cost(u, p, l, c->kernels, c->unit, VPPS_PRECISION_BF16X3) /
                         cost(u, p, l, c->kernels, c->unit, VPPS_PRECISION_FP32);
    if (isfinite(ratio)) {
        snprintf(why, bytes, "bf16x3 by %s takes %.2f of the time of fp32 by %s, as measured on this processor", unit,
                 ratio, fp32);
        return ratio < 1 - margin / 2 ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
    }
    const bool large = !p->batch || p->batch >= LEAST_BATCH;
    if (c->unit != VPPS_BF16_AMX) {
        snprintf(why, bytes, "bf16x3 by %s is slower, unless measured otherwise", unit);
        return VPPS_PRECISION_FP32;
    }
    snprintf(why, bytes, "AMX makes bf16x3 faster for batches of %d and more, unless measured otherwise", LEAST_BATCH);
    return large ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
}

static void choose_tile(trial_list l, vpps_cpu_maker m, vpps_cpu_choice *c) {
    double least = ns_of(l, m, VPPS_CPU_WAY_forward, c->tile, false) * (1 - margin);
    for (uint32_t i = 0; i < l.n; i++) {
        const vpps_trial *t = &l.at[i];
        if (!is_of(t, m, VPPS_CPU_WAY_forward, false) || t->vectors < c->tile / 4 || !(t->ns_per_vector < least))
            continue;
        least = t->ns_per_vector;
        c->tile = t->vectors;
    }
}

/* Sets c->few and c->pays by measurements. From c->few vectors on, all measured products are clearly faster with a
 * transposed copy of the matrix. `wanted` vectors save twice the time of making the copy, a margin for data that it
 * displaces from caches. As measured times vary, c->pays is the built-in number, doubled or halved until within a
 * factor of two of `wanted`. */
static void choose_copy(trial_list l, vpps_cpu_maker m, vpps_cpu_choice *c) {
    double gain = 0; /* ns per vector that a transposed copy saves in the measured product in which it saves least */
    c->few = NEVER;
    for (uint32_t i = l.n; i-- > 0;) {
        const vpps_trial *t = &l.at[i];
        if (!is_of(t, m, VPPS_CPU_WAY_rows, false)) continue;
        const double g = t->ns_per_vector - ns_of(l, m, VPPS_CPU_WAY_forward, t->vectors, false);
        if (!(g > margin * t->ns_per_vector)) break;
        c->few = t->vectors;
        if (gain <= 0 || g < gain) gain = g;
    }
    const double wanted = 2 * ns_of(l, m, VPPS_CPU_WAY_copy, 1, false) / gain;
    if (c->few == NEVER || !(wanted < 1e6)) {
        c->pays = NEVER;
        return;
    }
    while (wanted > 2.0 * c->pays) c->pays *= 2;
    while (wanted < c->pays / 2.0) c->pays /= 2;
}

vpps_cpu_choice vpps_cpu_choose(const vpps_cpu_units *u, const vpps_cpu_problem *p, const vpps_trial *trials,
                                uint32_t n, char *why, size_t bytes) {
    const trial_list l = {trials, n};
    const bool is_auto = p->asked == VPPS_PRECISION_AUTO;
    vpps_cpu_choice c = defaults;
    c.kernels = choose_one(u, p, l, false, 0, VPPS_PRECISION_FP32);
    c.unit = choose_one(u, p, l, true, c.kernels, is_auto ? VPPS_PRECISION_BF16X3 : p->asked);
    c.precision = p->asked;
    snprintf(why, bytes, "as asked");
    if (is_auto) c.precision = choose_precision(u, p, l, &c, why, bytes);
    const bool fp32 = c.precision == VPPS_PRECISION_FP32;
    const vpps_cpu_choice *table = !fp32 && u->bf16[c.unit].product_t ? &spreads : &defaults;
    c.tile = table->tile;
    c.few = table->few;
    c.pays = table->pays;
    const vpps_cpu_maker m = maker_of(u, c.kernels, c.unit, c.precision);
    if (!isfinite(ns_of(l, m, VPPS_CPU_WAY_rows, 1, false))) return c; /* not measured: keeps default thresholds */
    choose_tile(l, m, &c);
    choose_copy(l, m, &c);
    return c;
}

bool vpps_cpu_is_chosen(const vpps_cpu_units *u, const vpps_cpu_choice *c, const vpps_trial *t) {
    const vpps_cpu_maker m = maker_of(u, c->kernels, c->unit, c->precision);
    const bool rows = !strcmp(t->product, vpps_cpu_ways[VPPS_CPU_WAY_rows]);
    return is_made_by(t, m) && (!rows || t->vectors < c->few);
}

void vpps_cpu_write_choice(const vpps_cpu_units *u, const vpps_cpu_choice *c, char *text) {
    snprintf(text, VPPS_CHOICE_BYTES, "%s %s %s %u %u %u", u->kernels[c->kernels]->isa,
             vpps_bf16_unit_of(u, c->kernels, (vpps_bf16_unit_id)c->unit).name, vpps_precision_names[c->precision],
             c->tile, c->few, c->pays);
}

bool vpps_cpu_read_choice(const vpps_cpu_units *u, const char *text, vpps_cpu_choice *out) {
    char isa[16], unit[16], precision[16];
    vpps_cpu_choice c = {.kernels = NEVER, .unit = NEVER, .precision = VPPS_PRECISION_AUTO};
    int end = 0;
    if (sscanf(text, "%15s %15s %15s %u %u %u%n", isa, unit, precision, &c.tile, &c.few, &c.pays, &end) != 6 ||
        text[end] || !c.tile)
        return false;
    for (uint32_t i = 0; i < u->n_kernels; i++)
        if (!strcmp(isa, u->kernels[i]->isa)) c.kernels = i;
    if (c.kernels == NEVER) return false;
    for (uint32_t i = 0; i < VPPS_BF16_UNITS; i++) {
        const vpps_bf16_unit found = vpps_bf16_unit_of(u, c.kernels, (vpps_bf16_unit_id)i);
        if (found.product && !strcmp(unit, found.name)) c.unit = i;
    }
    for (int i = 0; i < VPPS_PRECISION_AUTO; i++)
        if (!strcmp(precision, vpps_precision_names[i])) c.precision = (vpps_precision)i;
    if (c.unit == NEVER || c.precision == VPPS_PRECISION_AUTO) return false;
    *out = c;
    return true;
}
