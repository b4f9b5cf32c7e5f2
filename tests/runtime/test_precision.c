/* test_precision.c - in what precision the CPU multiplies and by which instructions, as processors with and without AMX and AVX512-BF16,
 * options and the environment have it; and the reason that is given. */
#include "common/testing.h"
#include "runtime/cpu/precision.h"
#include "runtime/device.h"

enum { AMX = 1, AVX512_BF16 = 2 }; /* what a processor has */

static const struct {
    vpps_precision asked;
    const char *isa; /* VPPS_ISA; NULL: not set */
    int has;
    bool portable;
    vpps_precision precision;
    const char *unit, *why;
    uint32_t batch; /* options.batch */
} cases[] = {
    {VPPS_PRECISION_AUTO, NULL, AMX, false, VPPS_PRECISION_BF16X3, "amx", "AMX multiplies bf16 faster", 0},
    {VPPS_PRECISION_AUTO, NULL, 0, false, VPPS_PRECISION_FP32, "avx512", "no tiles: not here", 0},
    {VPPS_PRECISION_AUTO, NULL, AVX512_BF16, false, VPPS_PRECISION_FP32, "avx512", "no tiles: not here", 0},
    {VPPS_PRECISION_AUTO, NULL, AMX, false, VPPS_PRECISION_BF16X3, "amx", "AMX multiplies bf16 faster", 4},
    {VPPS_PRECISION_AUTO, NULL, AMX, false, VPPS_PRECISION_FP32, "avx512", "packing weights after every 3 takes", 3},
    {VPPS_PRECISION_AUTO, NULL, AMX, false, VPPS_PRECISION_FP32, "avx512", "packing weights after every 1 takes", 1},
    {VPPS_PRECISION_AUTO, NULL, 0, false, VPPS_PRECISION_FP32, "avx512", "no tiles: not here", 1},
    {VPPS_PRECISION_BF16X3, NULL, AMX, false, VPPS_PRECISION_BF16X3, "amx", "AMX", 1},
    {VPPS_PRECISION_AUTO, "", AMX, false, VPPS_PRECISION_BF16X3, "amx", "AMX multiplies bf16 faster", 0},
    {VPPS_PRECISION_AUTO, "amx", AMX, false, VPPS_PRECISION_BF16X3, "amx", "AMX multiplies bf16 faster", 0},
    {VPPS_PRECISION_AUTO, "avx512", AMX, false, VPPS_PRECISION_FP32, "avx512", "avx512 is asked for", 0},
    {VPPS_PRECISION_AUTO, "avx512bf16", AMX | AVX512_BF16, false, VPPS_PRECISION_FP32, "avx512",
     "AVX512-BF16 is asked for, and no faster", 0},
    {VPPS_PRECISION_AUTO, NULL, AMX, true, VPPS_PRECISION_FP32, "avx512", "plain C is asked for", 0},
    /* a name of what the processor lacks counts for nothing */
    {VPPS_PRECISION_AUTO, "amx", 0, false, VPPS_PRECISION_FP32, "avx512", "no tiles: not here", 0},
    {VPPS_PRECISION_AUTO, "avx512bf16", AMX, false, VPPS_PRECISION_BF16X3, "amx", "AMX multiplies bf16 faster", 0},
    {VPPS_PRECISION_AUTO, "neon", AMX, false, VPPS_PRECISION_BF16X3, "amx", "AMX multiplies bf16 faster", 0},
    {VPPS_PRECISION_AUTO, "neon", 0, false, VPPS_PRECISION_FP32, "avx512", "no tiles: not here", 0},
    /* what is asked for by name is made by what there is */
    {VPPS_PRECISION_FP32, NULL, AMX | AVX512_BF16, false, VPPS_PRECISION_FP32, "avx512", "as asked", 0},
    {VPPS_PRECISION_BF16, NULL, AMX, false, VPPS_PRECISION_BF16, "amx", "AMX", 0},
    {VPPS_PRECISION_BF16X3, NULL, AMX | AVX512_BF16, false, VPPS_PRECISION_BF16X3, "amx", "AMX", 0},
    {VPPS_PRECISION_BF16, NULL, AVX512_BF16, false, VPPS_PRECISION_BF16, "avx512", "no tiles: not here", 0},
    {VPPS_PRECISION_BF16, "avx512bf16", AMX | AVX512_BF16, false, VPPS_PRECISION_BF16, "avx512bf16", "is asked for", 0},
    {VPPS_PRECISION_BF16X3, "avx512bf16", AVX512_BF16, false, VPPS_PRECISION_BF16X3, "avx512bf16", "is asked for", 0},
    {VPPS_PRECISION_BF16X3, "avx512bf16", 0, false, VPPS_PRECISION_BF16X3, "avx512", "no tiles: not here", 0},
    {VPPS_PRECISION_BF16, "avx512", AMX, false, VPPS_PRECISION_BF16, "avx512", "avx512 is asked for", 0},
    {VPPS_PRECISION_BF16, "avx512bf16", AMX | AVX512_BF16, true, VPPS_PRECISION_BF16, "avx512", "plain C is asked for",
     0},
};

static void plain_product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                          const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc) {
    (void)m, (void)n, (void)parts, (void)x, (void)n_terms, (void)terms, (void)from, (void)ld_from, (void)c, (void)ldc;
}

static void plain_pack(const vpps_bf16_source *source, uint32_t parts, vpps_bf16_form form, uint32_t depth_tiles,
                       uint32_t *to) {
    (void)source, (void)parts, (void)form, (void)depth_tiles, (void)to;
}

static void other_pack(const vpps_bf16_source *source, uint32_t parts, vpps_bf16_form form, uint32_t depth_tiles,
                       uint32_t *to) {
    plain_pack(source, parts, form, depth_tiles, to);
}

static void some_spread(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to) {
    (void)n, (void)depth, (void)parts, (void)rows, (void)to;
}

static void amx_product_t(uint32_t k, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                          const vpps_bf16_term *terms, float *c, size_t ldc) {
    (void)k, (void)n, (void)parts, (void)x, (void)n_terms, (void)terms, (void)c, (void)ldc;
}

static void other_product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                          const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc) {
    plain_product(m, n, parts, x, n_terms, terms, from, ld_from, c, ldc);
}

static void nothing(void) {}

static vpps_status find_amx(vpps_bf16_unit *out) {
    *out = (vpps_bf16_unit){"amx", other_product, NULL, some_spread, amx_product_t, nothing, nothing};
    return VPPS_OK;
}
static vpps_status find_avx512_bf16(vpps_bf16_unit *out) {
    *out = (vpps_bf16_unit){.name = "avx512bf16", .product = other_product, .pack = other_pack, .spread = some_spread};
    return VPPS_OK;
}
static vpps_status no_amx(vpps_bf16_unit *out) {
    (void)out;
    return vpps_fail(VPPS_DEVICE, "amx: no tiles: not here");
}
static vpps_status no_avx512_bf16(vpps_bf16_unit *out) {
    (void)out;
    return vpps_fail(VPPS_DEVICE, "avx512bf16: none");
}

START_TEST(a_precision_is_chosen)
    {
        static const uint32_t parts[] = {
            [VPPS_PRECISION_FP32] = 0, [VPPS_PRECISION_BF16X3] = 2, [VPPS_PRECISION_BF16] = 1};
        const vpps_bf16_hardware hardware = {cases[_i].has & AMX ? find_amx : no_amx,
                                             cases[_i].has & AVX512_BF16 ? find_avx512_bf16 : no_avx512_bf16};
        const vpps_kernels kernels = {.isa = "avx512", .pack_bf16 = plain_pack, .product_bf16 = plain_product};
        char why[128] = "";
        if (cases[_i].isa) {
            setenv("VPPS_ISA", cases[_i].isa, 1);
        } else {
            unsetenv("VPPS_ISA");
        }
        const vpps_cpu_precision p = vpps_choose_precision(cases[_i].asked, cases[_i].batch, &hardware, &kernels,
                                                           cases[_i].portable, why, sizeof why);
        ck_assert_str_eq(vpps_precision_names[p.precision], vpps_precision_names[cases[_i].precision]);
        ck_assert_uint_eq(p.parts, parts[p.precision]);
        ck_assert_str_eq(p.unit.name, cases[_i].unit);
        ck_assert_msg(strstr(why, cases[_i].why), "'%s' lacks '%s'", why, cases[_i].why);
        /* tiles are set up by every thread, and by whoever uses them alone */
        ck_assert((p.unit.open != NULL) == !strcmp(p.unit.name, "amx") &&
                  (p.unit.close != NULL) == (p.unit.open != NULL));
        ck_assert((p.unit.product == plain_product) == !strcmp(p.unit.name, "avx512"));
        ck_assert((p.unit.product_t != NULL) == !strcmp(p.unit.name, "amx"));
        ck_assert(!p.unit.product_t || p.unit.spread);
        const bool by_avx512_bf16 = strcmp(p.unit.name, "avx512") && (cases[_i].has & AVX512_BF16);
        ck_assert(p.unit.pack == (by_avx512_bf16 ? other_pack : plain_pack));
    }
END_TEST

/* As much of the reason as there is room for. */
START_TEST(a_reason_may_be_cut_short)
    {
        const vpps_bf16_hardware hardware = {no_amx, no_avx512_bf16};
        const vpps_kernels kernels = {.isa = "generic", .product_bf16 = plain_product};
        char why[9] = "";
        unsetenv("VPPS_ISA");
        vpps_choose_precision(VPPS_PRECISION_AUTO, 0, &hardware, &kernels, false, why, sizeof why);
        ck_assert_str_eq(why, "no tiles");
    }
END_TEST

static char heard[256];

static void hear(void *context, const char *line) {
    (void)context;
    if (strstr(line, "multiplying in")) snprintf(heard, sizeof heard, "%s", line);
}

/* What a handle says that it takes is what it takes, with the reason of this processor. */
START_TEST(a_handle_says_which)
    {
        vpps_model *model;
        vpps_handle *h;
        vpps_options o;
        vpps_stats stats = {.size = sizeof stats};
        char why[128], want[256];
        unsetenv("VPPS_ISA");
        vpps_options_default(&o);
        o.precision = VPPS_PRECISION_AUTO;
        o.batch = _i ? 1 : 0;
        o.vps = 1;
        o.log = hear;
        TEST_OK(vpps_model_create(&model, 1));
        TEST_OK(vpps_add_matrix(model, &(vpps_param){0}, "W", 4, 4, NULL));
        TEST_OK(vpps_handle_create(&h, model, &o));
        TEST_OK(vpps_handle_stats(h, &stats));
        const vpps_cpu_precision p = vpps_choose_precision(VPPS_PRECISION_AUTO, o.batch, &vpps_bf16_of_this_cpu,
                                                           vpps_kernels_choose(false), false, why, sizeof why);
        snprintf(want, sizeof want, "multiplying in %s: %s", vpps_precision_names[p.precision], why);
        ck_assert_str_eq(heard, want);
        ck_assert_str_eq(stats.precision, vpps_precision_names[p.precision]);
        ck_assert_str_eq(stats.precision_unit, p.unit.name);
        vpps_handle_destroy(h);
        o.precision = (vpps_precision)(VPPS_PRECISION_AUTO + 1);
        TEST_FAILS(vpps_handle_create(&h, model, &o), VPPS_ARGUMENT, "an enumeration holds a value");
        vpps_model_destroy(model);
    }
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("precision");
    TCase *t = tcase_create("precision");
    tcase_add_loop_test(t, a_precision_is_chosen, 0, VPPS_COUNT(cases));
    tcase_add_test(t, a_reason_may_be_cut_short);
    tcase_add_loop_test(t, a_handle_says_which, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

int main(void) { return test_main(suite()); }
