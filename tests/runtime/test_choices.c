/* test_choices.c - which instructions and which precision the CPU chooses for products, for made-up processors, options, environments and trials;
 * trials and choices as text; and that a handle does what it says. */
#include "common/training.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/measure.h"
#include "runtime/cpu/probe.h"
#include "runtime/handle.h"

/* ---------------------------------------------------------------- made-up processors */

enum { AMX = 1, DOT = 2 }; /* bits: what a processor has besides vectors; DOT: AVX512-BF16 */

static void product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                    const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc) {
    (void)m, (void)n, (void)parts, (void)x, (void)n_terms, (void)terms, (void)from, (void)ld_from, (void)c, (void)ldc;
}
static void product_t(uint32_t k, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                      const vpps_bf16_term *terms, float *c, size_t ldc) {
    (void)k, (void)n, (void)parts, (void)x, (void)n_terms, (void)terms, (void)c, (void)ldc;
}

static const vpps_kernels avx2 = {.isa = "avx2", .product_bf16 = product},
                          avx512 = {.isa = "avx512", .product_bf16 = product},
                          generic = {.isa = "generic", .product_bf16 = product};

static vpps_cpu_units processor_with(int has) {
    vpps_cpu_units u = {.kernels = {&generic, &avx2, &avx512}, .n_kernels = 3};
    if (has & DOT) u.bf16[VPPS_BF16_AVX512_BF16] = (vpps_bf16_unit){.name = "avx512bf16", .product = product};
    if (has & AMX) u.bf16[VPPS_BF16_AMX] = (vpps_bf16_unit){.name = "amx", .product = product, .product_t = product_t};
    return u;
}

/* ---------------------------------------------------------------- made-up trials */

typedef struct list {
    vpps_trial at[VPPS_CPU_TRIALS];
    uint32_t n;
} list;

static void add(list *l, const char *unit, const char *precision, vpps_cpu_way way, uint32_t vectors, bool far,
                double ns) {
    l->at[l->n++] = (vpps_trial){.product = vpps_cpu_ways[way],
                                 .unit = unit,
                                 .precision = precision,
                                 .vectors = vectors,
                                 .far = far,
                                 .ns_per_vector = ns};
}

/* Adds all trials of a unit: ns for one vector and for many; with matrices from memory; and for a copy. `rows`: ns of one vector times the transposed
 * matrix as it lies; NAN: not possible; several vectors take as long each. */
static void add_unit(list *l, const char *unit, const char *precision, double one, double many, double far, double rows,
                     double copy) {
    static const uint32_t numbers[] = {1, 2, 4, 8, 16, 96};
    for (size_t i = 0; i < VPPS_COUNT(numbers); i++) {
        const double ns = numbers[i] < 4 ? one : many;
        add(l, unit, precision, VPPS_CPU_WAY_forward, numbers[i], false, ns);
        add(l, unit, precision, VPPS_CPU_WAY_forward, numbers[i], true, fmax(ns, far / numbers[i]));
        if (!isnan(rows) && numbers[i] <= 16) add(l, unit, precision, VPPS_CPU_WAY_rows, numbers[i], false, rows);
    }
    add(l, unit, precision, VPPS_CPU_WAY_gradient, 48, false, many);
    add(l, unit, precision, VPPS_CPU_WAY_copy, 1, false, copy);
}

/* Adds a processor's trials: its bf16 dot products are `dot` times, its AMX `amx` times as fast as its fp32; 0: it has none. */
static void add_processor(list *l, double avx2_ns, double dot, double amx) {
    l->n = 0;
    add_unit(l, "avx2", "fp32", avx2_ns, avx2_ns, 8000, avx2_ns, 9000);
    add_unit(l, "avx512", "fp32", 2000, 800, 8000, 2000, 8000);
    add_unit(l, "avx512", "bf16", 2000, 1000, 4000, NAN, 9000);
    add_unit(l, "avx512", "bf16x3", 5000, 3000, 8000, NAN, 20000);
    if (dot > 0) add_unit(l, "avx512bf16", "bf16", 1500, 800 / dot, 4000, NAN, 6000);
    if (dot > 0) add_unit(l, "avx512bf16", "bf16x3", 4000, 2400 / dot, 8000, NAN, 9000);
    if (amx > 0) add_unit(l, "amx", "bf16", 1300, 800 / amx, 4000, 1700, 6000);
    if (amx > 0) add_unit(l, "amx", "bf16x3", 2600, 2400 / amx, 8000, 3700, 9000);
}

/* ---------------------------------------------------------------- units and precisions */

typedef struct choice_case {
    vpps_precision asked;
    const char *isa; /* value of VPPS_ISA; NULL: not set */
    int has;
    bool portable;
    vpps_precision precision;
    const char *kernels, *unit, *why;
    uint32_t batch; /* options.batch */
} choice_case;

#define FP32 VPPS_PRECISION_FP32
#define BF16 VPPS_PRECISION_BF16
#define BF16X3 VPPS_PRECISION_BF16X3
#define AUTO VPPS_PRECISION_AUTO

static const choice_case without_trials[] = {
    {AUTO, NULL, AMX, false, BF16X3, "avx512", "amx", "AMX makes bf16x3 faster", 0},
    {AUTO, NULL, AMX, false, BF16X3, "avx512", "amx", "AMX makes bf16x3 faster", 4},
    {AUTO, NULL, AMX, false, FP32, "avx512", "amx", "batches of 4 and more", 3},
    {AUTO, NULL, DOT, false, FP32, "avx512", "avx512", "bf16x3 by avx512 is slower", 0},
    {AUTO, "", AMX, false, BF16X3, "avx512", "amx", "AMX", 0},
    {AUTO, "amx", AMX, false, BF16X3, "avx512", "amx", "AMX", 0},
    {AUTO, "avx512", AMX, false, FP32, "avx512", "avx512", "slower", 0},
    {AUTO, "avx512bf16", AMX | DOT, false, FP32, "avx512", "avx512bf16", "bf16x3 by avx512bf16 is slower", 0},
    {AUTO, NULL, AMX, true, FP32, "generic", "generic", "bf16x3 by generic is slower", 0},
    /* the name of a unit that the processor lacks is ignored */
    {AUTO, "amx", 0, false, FP32, "avx512", "avx512", "slower", 0},
    {AUTO, "avx512bf16", AMX, false, BF16X3, "avx512", "amx", "AMX", 0},
    {AUTO, "neon", AMX, false, BF16X3, "avx512", "amx", "AMX", 0},
    /* a precision that the options name uses the units that exist */
    {FP32, NULL, AMX | DOT, false, FP32, "avx512", "amx", "as asked", 0},
    {FP32, "avx2", AMX, false, FP32, "avx2", "avx2", "as asked", 0},
    {BF16X3, NULL, AMX, false, BF16X3, "avx512", "amx", "as asked", 1},
    {BF16, NULL, AMX | DOT, false, BF16, "avx512", "amx", "as asked", 0},
    {BF16, NULL, DOT, false, BF16, "avx512", "avx512", "as asked", 0},
    {BF16, "avx512bf16", AMX | DOT, false, BF16, "avx512", "avx512bf16", "as asked", 0},
    {BF16X3, "avx2", DOT, false, BF16X3, "avx2", "avx2", "as asked", 0},
    {BF16, "avx512bf16", AMX | DOT, true, BF16, "generic", "generic", "as asked", 0},
};

static char why[160]; /* of the latest choice */

static vpps_cpu_choice choose(const vpps_cpu_units *u, const choice_case *x, const list *l, size_t elems) {
    const vpps_cpu_problem p = {.asked = x->asked,
                                .batch = x->batch,
                                .elems = elems,
                                .cache_bytes = 1 << 21,
                                .portable = x->portable,
                                .wanted = x->isa};
    return vpps_cpu_choose(u, &p, l ? l->at : NULL, l ? l->n : 0, why, sizeof why);
}

static void check_choice(const choice_case *x, const list *l, size_t elems) {
    const vpps_cpu_units u = processor_with(x->has);
    const vpps_cpu_choice c = choose(&u, x, l, elems);
    ck_assert_str_eq(vpps_precision_names[c.precision], vpps_precision_names[x->precision]);
    ck_assert_str_eq(u.kernels[c.kernels]->isa, x->kernels);
    ck_assert_str_eq(vpps_bf16_unit_of(&u, c.kernels, (vpps_bf16_unit_id)c.unit).name, x->unit);
    ck_assert_msg(strstr(why, x->why), "'%s' lacks '%s'", why, x->why);
}

TEST_EACH(without_trials_the_table, 0, VPPS_COUNT(without_trials)) { check_choice(&without_trials[_i], NULL, 1 << 18); }

/* Zen 4 resembles the processor with dot = 1.7, the Intel processors measured first the one with dot = 0.5; avx2: ns of one vector. */
static const struct {
    double avx2, dot, amx;
    size_t elems;
    choice_case want;
} with_trials[] = {
    {4000, 1.7, 0, 1 << 18, {BF16, NULL, DOT, false, BF16, "avx512", "avx512bf16", "as asked", 16}},
    {4000, 0.5, 0, 1 << 18, {BF16, NULL, DOT, false, BF16, "avx512", "avx512", "as asked", 16}},
    {4000, 0.5, 9, 1 << 18, {BF16, NULL, DOT | AMX, false, BF16, "avx512", "amx", "as asked", 16}},
    {4000, 1.7, 1.6, 1 << 18, {BF16, NULL, DOT | AMX, false, BF16, "avx512", "amx", "as asked", 16}}, /* noise */
    {4000, 1.7, 0.4, 1 << 18, {BF16, NULL, DOT | AMX, false, BF16, "avx512", "avx512bf16", "as asked", 16}},
    {4000, 1.7, 0, 1 << 18, {AUTO, NULL, DOT, false, FP32, "avx512", "avx512bf16", "by avx512bf16 takes 1.", 16}},
    {4000, 4, 0, 1 << 18, {AUTO, NULL, DOT, false, BF16X3, "avx512", "avx512bf16", "by avx512bf16 takes 0.", 16}},
    {4000, 0.5, 9, 1 << 18, {AUTO, NULL, DOT | AMX, false, BF16X3, "avx512", "amx", "by amx takes 0.", 16}},
    {4000, 0.5, 9, 1 << 18, {AUTO, NULL, DOT | AMX, false, FP32, "avx512", "amx", "by amx takes 1.", 1}},
    {4000, 0.5, 0, 1 << 18, {AUTO, "avx2", DOT, false, FP32, "avx2", "avx2", "slower", 16}}, /* not measured */
    {400, 0, 0, 1 << 18, {FP32, NULL, 0, false, FP32, "avx2", "avx2", "as asked", 16}},
    {1900, 0, 0, 1 << 18, {FP32, NULL, 0, false, FP32, "avx512", "avx512", "as asked", 1}}, /* noise */
    {400, 0, 0, 1 << 18, {FP32, "avx512", 0, false, FP32, "avx512", "avx512", "as asked", 16}},
    {4000, 0.5, 9, 1 << 18, {BF16, "avx512", DOT | AMX, false, BF16, "avx512", "avx512", "as asked", 16}},
    {4000, 0.5, 9, 1 << 18, {BF16, "avx512bf16", DOT | AMX, false, BF16, "avx512", "avx512bf16", "as asked", 16}},
    /* weights that exceed the cache in fp32, but not in bf16 */
    {4000, 0, 0, 1 << 18, {BF16, NULL, 0, false, BF16, "avx512", "avx512", "as asked", 1}},
};

TEST_EACH(trials_decide, 0, VPPS_COUNT(with_trials)) {
    list l;
    add_processor(&l, with_trials[_i].avx2, with_trials[_i].dot, with_trials[_i].amx);
    check_choice(&with_trials[_i].want, &l, with_trials[_i].elems);
}

/* With AMX, bf16x3 is slower at batch 1 if the weights fit the cache in fp32 only, and faster if they never fit. */
TEST(the_size_of_a_network_decides) {
    list l;
    add_processor(&l, 4000, 0, 9);
    for (uint32_t i = 0; i < l.n; i++) /* bf16x3 is as fast from memory as from the cache, fp32 is not */
        if (!strcmp(l.at[i].precision, "bf16x3") && l.at[i].far && l.at[i].vectors == 1) l.at[i].ns_per_vector = 2600;
    const vpps_cpu_units u = processor_with(AMX);
    const choice_case x = {.asked = AUTO, .batch = 1};
    ck_assert_int_eq(choose(&u, &x, &l, 1 << 18).precision, FP32);
    ck_assert_int_eq(choose(&u, &x, &l, 1 << 20).precision, BF16X3);
}

TEST(small_matrices_gain_nothing_from_bf16x3) {
    static const struct {
        uint32_t side;
        vpps_precision asked, chosen;
    } cases[] = {{0, AUTO, BF16X3}, {1, AUTO, FP32}, {95, AUTO, FP32}, {96, AUTO, BF16X3}, {16, BF16X3, BF16X3}};
    const vpps_cpu_units u = processor_with(AMX);
    list l;
    add_processor(&l, 4000, 0, 9);
    for (uint32_t i = 0; i < VPPS_COUNT(cases); i++)
        for (uint32_t n = 0; n <= l.n; n += l.n) { /* without trials, then with trials */
            const vpps_cpu_problem p = {
                .asked = cases[i].asked, .batch = 16, .elems = 1 << 18, .cache_bytes = 1 << 21, .side = cases[i].side};
            ck_assert_msg(vpps_cpu_choose(&u, &p, l.at, n, why, sizeof why).precision == cases[i].chosen,
                          "side %u, %u trials: %s", cases[i].side, n, why);
        }
}

TEST(a_reason_may_be_cut_short) {
    const vpps_cpu_units u = processor_with(0);
    const vpps_cpu_problem p = {.asked = AUTO, .elems = 1, .cache_bytes = 1 << 21};
    vpps_cpu_choose(&u, &p, NULL, 0, why, 9);
    ck_assert_str_eq(why, "bf16x3 b");
}

/* ---------------------------------------------------------------- tiles and copies */

enum { TILES = 3, COUNTS = 3 };
static const uint32_t tiles[TILES] = {48, 96, 192}, counts[COUNTS] = {1, 4, 16};

static const struct {
    double tile[TILES], rows[COUNTS], forward[COUNTS], copy;
    uint32_t want_tile, few, pays;
} timings[] = {
#define USUAL_COPY {1000, 1000, 1000}, {400, 400, 400}, 6000
    {{100, 100, 100}, USUAL_COPY, 96, 1, 24},
    {{95, 100, 95}, USUAL_COPY, 96, 1, 24},                                   /* noise */
    {{89, 100, 80}, USUAL_COPY, 192, 1, 24},                                  /* the fastest */
    {{80, 100, 95}, {1000, 1000, 1000}, {900, 400, 400}, 6000, 48, 4, 24},    /* few vectors: without a copy */
    {{100, 100, 100}, {1000, 1000, 1000}, {400, 900, 400}, 6000, 96, 16, 24}, /* from where on copies are faster */
    {{100, 100, 100}, {1000, 1000, 1000}, {920, 850, 850}, 6000, 96, 4, 48},  /* by a tenth */
    {{100, 100, 100}, {1000, 1000, 1000}, {400, 500, 600}, 20000, 96, 1, 96}, /* by the least gain, 100 */
    {{100, 100, 100}, {1000, 1000, 1000}, {400, 500, 600}, 7200, 96, 1, 48},  /* the table's number is near enough */
    {{100, 100, 100}, {400, 400, 400}, {400, 400, 400}, 6000, 96, -1u, -1u},  /* never */
    {{100, 100, 100}, {400, 400, 400}, {400, 400, 900}, 6000, 96, -1u, -1u},
    {{100, 100, 100}, {1000, 1000, 1000}, {400, 400, 400}, 0.001, 96, 1, 0},
};

TEST_EACH(times_ask_for_tiles_and_copies, 0, VPPS_COUNT(timings)) {
    const vpps_cpu_units u = processor_with(0);
    list l = {.n = 0};
    for (int i = 0; i < COUNTS; i++) {
        add(&l, "avx512", "fp32", VPPS_CPU_WAY_forward, counts[i], false, timings[_i].forward[i]);
        add(&l, "avx512", "fp32", VPPS_CPU_WAY_rows, counts[i], false, timings[_i].rows[i]);
    }
    for (int i = 0; i < TILES; i++)
        add(&l, "avx512", "fp32", VPPS_CPU_WAY_forward, tiles[i], false, timings[_i].tile[i]);
    add(&l, "avx512", "fp32", VPPS_CPU_WAY_copy, 1, false, timings[_i].copy);
    const vpps_cpu_choice c = choose(&u, &(choice_case){.asked = FP32}, &l, 1);
    ck_assert_uint_eq(c.tile, timings[_i].want_tile);
    ck_assert_uint_eq(c.few, timings[_i].few);
    ck_assert_uint_eq(c.pays, timings[_i].pays);
    for (uint32_t i = 0; i < l.n; i++) {
        const bool rows = !strcmp(l.at[i].product, "rows");
        ck_assert_int_eq(vpps_cpu_is_chosen(&u, &c, &l.at[i]), !rows || l.at[i].vectors < c.few);
    }
}

/* ---------------------------------------------------------------- as text */

TEST(a_choice_is_text_and_back) {
    const vpps_cpu_units all = processor_with(AMX | DOT), few = processor_with(0);
    const vpps_cpu_choice c = {
        .kernels = 2, .unit = VPPS_BF16_AMX, .precision = BF16X3, .tile = 96, .few = -1u, .pays = 64};
    char text[VPPS_CHOICE_BYTES];
    vpps_cpu_choice back = {.tile = 7};
    vpps_cpu_write_choice(&all, &c, text);
    ck_assert_str_eq(text, "avx512 amx bf16x3 96 4294967295 64");
    ck_assert(!vpps_cpu_read_choice(&few, text, &back)); /* of another processor */
    static const char *const others[] = {"",
                                         "avx512 amx",
                                         "avx512 amx auto 96 3 48",
                                         "avx512 amx fp32 0 3 48",
                                         "avx512 amx fp32 96 3 48 more",
                                         "mmx amx fp32 96 3 48"};
    for (size_t i = 0; i < VPPS_COUNT(others); i++)
        ck_assert_msg(!vpps_cpu_read_choice(&all, others[i], &back), "%s", others[i]);
    ck_assert_uint_eq(back.tile, 7);
    ck_assert(vpps_cpu_read_choice(&all, text, &back));
    ck_assert_int_eq(memcmp(&c, &back, sizeof c), 0);
}

/* Returns a malloc'd copy of a text with a part replaced. */
static char *replaced(const char *text, const char *part, const char *by) {
    const char *at = strstr(text, part);
    char *out = malloc(strlen(text) + strlen(by) + 1);
    ck_assert(at && out);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, by, at + strlen(part));
    return out;
}

TEST(trials_are_text_and_back) {
    const vpps_cpu_units u = processor_with(DOT), less = processor_with(0);
    vpps_trial trials[VPPS_CPU_TRIALS], back[VPPS_CPU_TRIALS];
    vpps_cpu_maker by[VPPS_CPU_TRIALS];
    const uint32_t n = vpps_cpu_list_trials(&u, trials, by);
    for (uint32_t i = 0; i < n; i++) trials[i].ns_per_vector = 1000 + i;
    FREED char *text = vpps_probe_write(trials, n);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(vpps_probe_read(&u, text, back), n);
    ck_assert_int_eq(memcmp(trials, back, n * sizeof *trials), 0);
    ck_assert_uint_eq(vpps_probe_read(&less, text, back), 0); /* `less` lacks a unit */
    static const char *const others[][2] = {
        {" 1000.00", ""},        {" 1000.00", " nan"}, {" 1000.00", " -1"},
        {" 1 near", " 0 near"},  {" near", " here"},   {" forward", " aside"},
        {"avx512", "amx"},       {" fp32", " auto"},   {" 1000.00", " 1 more"},
        {" 1001.00\n", " 1001"}, {"avx2 ", "\navx2 "}, {"avx2 fp32 forward 1 near 1000.00\n", ""},
    };
    for (size_t i = 0; i < VPPS_COUNT(others); i++) {
        FREED char *other = replaced(text, others[i][0], others[i][1]);
        ck_assert_msg(!vpps_probe_read(&u, other, back), "'%s' instead of '%s'", others[i][1], others[i][0]);
    }
    text[strlen(text) - 1] = '\0';
    ck_assert_uint_eq(vpps_probe_read(&u, text, back), 0);
    ck_assert_uint_eq(vpps_probe_read(&u, "", back), 0);
}

/* ---------------------------------------------------------------- a handle's */

static char heard[256];

static void hear(void *context, const char *line) {
    (void)context;
    if (strstr(line, "multiplying in")) snprintf(heard, sizeof heard, "%s", line);
}

/* A handle uses the unit and precision that it names in its message, with a reason. */
TEST_EACH(a_handle_says_which, 0, 8) {
    unsetenv("VPPS_ISA");
    vpps_options o = default_options();
    o.precision = VPPS_PRECISION_AUTO;
    o.batch = _i % 2 ? 1 : 0;
    o.no_tuning = _i / 2 % 2;
    const uint32_t side = _i < 4 ? 128 : 4;
    o.vps = 1;
    o.log = hear;
    OWNED(vpps_model) *model = new_model(1);
    TEST_OK(vpps_add_matrix(model, &(vpps_param){0}, "W", side, side, NULL));
    vpps_handle *h = new_handle(model, &o);
    const vpps_stats stats = stats_of(h);
    const vpps_cpu *cpu = (const vpps_cpu *)h->device;
    char want[64];
    snprintf(want, sizeof want, "multiplying in %s: ", vpps_precision_names[cpu->precision.precision]);
    ck_assert_msg(!strncmp(heard, want, strlen(want)) && heard[strlen(want)], "%s", heard);
    ck_assert_int_eq(side == 4, strstr(heard, "gains nothing") != NULL);
    ck_assert_int_eq(o.no_tuning || side == 4, strstr(heard, "measured on this processor") == NULL);
    ck_assert_str_eq(stats.precision, vpps_precision_names[cpu->precision.precision]);
    ck_assert_str_eq(stats.precision_unit, cpu->precision.unit.name);
    vpps_handle_destroy(h);
    o.precision = (vpps_precision)(VPPS_PRECISION_AUTO + 1);
    TEST_FAILS(vpps_handle_create(&h, model, &o), VPPS_ARGUMENT, "an enumeration holds a value");
}

/* Each unit of this processor has all its functions. */
TEST(units_are_whole) {
    const vpps_cpu_units *u = vpps_units_of_this_cpu();
    ck_assert_uint_ge(u->n_kernels, 1);
    for (uint32_t i = 0; i < VPPS_BF16_UNITS; i++) {
        const vpps_bf16_unit unit = vpps_bf16_unit_of(u, 0, (vpps_bf16_unit_id)i);
        if (!unit.product) {
            ck_assert(*u->why_not[i]);
            continue;
        }
        ck_assert(unit.name && unit.pack && (!unit.product_t || unit.spread) &&
                  (unit.open != NULL) == (unit.close != NULL));
    }
}
