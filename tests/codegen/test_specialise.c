/* test_specialise.c - from a kernel that spills to one with fewer weights in registers: the order of attempts, messages, and the end. Most compilers
 * here are simulated; one test makes NVRTC spill. */
#include "codegen/nvrtc.h"
#include "common/gpu_tests.h"
#include "gpu_batch.h"

/* Hidden 64 on two virtual processors fills all registers that weights may take. */
static const gpu_shape full = {2, 1, 1, 256};

/* Returns whether a line says why a kernel is rejected. */
static bool names_spills(const char *line) {
    const char *numbers = strrchr(line, ':');
    unsigned registers, frame;
    return strncmp(line, "rejected: ", 10) == 0 && numbers &&
           sscanf(numbers, ": %u registers, frame of %u bytes", &registers, &frame) == 2 && registers > 0 &&
           registers <= 255 && frame > 0;
}

enum { MOST = 32 };

/* A simulated compiler that reports a frame for the first kernels. */
typedef struct pretender {
    uint32_t bad, frame;        /* number of such kernels; the bytes of their frames */
    bool spills_will_do, bound; /* bound: whether a number of registers is given */
    uint32_t seen, logged;
    uint32_t registers[MOST]; /* registers for weights of the kernels seen */
    char descriptions[MOST][192], lines[MOST][VPPS_MESSAGE_BYTES];
    char *latest; /* source */
    uint32_t cta_words;
} pretender;

static vpps_status pretend(void *context, const vpps_kernel_plan *p, const char *source, const char *description,
                           vpps_cubin_report *report) {
    pretender *x = context;
    char text[192];
    ck_assert_uint_lt(x->seen, MOST);
    snprintf(text, sizeof text, "#define VPPS_WEIGHTS %uu\n", p->residents.registers);
    ck_assert_ptr_nonnull(strstr(source, text));
    ck_assert_ptr_nonnull(strstr(source, "vpps_kernel"));
    ck_assert_ptr_nonnull(strstr(source, p->lean ? "#define VPPS_LEAN 1u\n" : "#define VPPS_LEAN 0u\n"));
    ck_assert_int_eq(strstr(description, ", lean") != NULL, p->lean);
    vpps_kernel_describe(p, text, sizeof text);
    ck_assert_str_eq(description, text);
    ck_assert_uint_le(vpps_kernel_shared_bytes(p), 4 * x->cta_words);
    ck_assert_uint_eq(report->registers + report->frame_bytes, 0); /* not of an earlier one */
    snprintf(x->descriptions[x->seen], sizeof x->descriptions[0], "%s", description);
    x->registers[x->seen] = p->residents.registers;
    ck_assert_int_eq(p->lean, p->residents.registers > 96 || x->bound || x->seen);
    free(x->latest);
    x->latest = strdup(source);
    const bool bad = x->seen++ < x->bad;
    *report = (vpps_cubin_report){.registers = bad ? 255 : 200, .frame_bytes = bad ? x->frame : 0};
    return VPPS_OK;
}

static void keep_line(void *context, const char *line) {
    pretender *x = context;
    ck_assert_uint_lt(x->logged, MOST);
    snprintf(x->lines[x->logged++], sizeof x->lines[0], "%s", line);
}

static vpps_status specialise_with(pretender *x, const gpu_batch *b, vpps_kernel_plan *plan, uint32_t *registers,
                                   char **source, vpps_cubin_report *report) {
    vpps_specialiser s = gpu_batch_specialiser(b);
    s.spills = x->spills_will_do;
    s.compile = pretend;
    s.log = keep_line;
    s.context = x;
    x->bound = *registers > 0;
    x->cta_words = b->machine.cta_shared_bytes / 4;
    *plan = gpu_batch_plan(b);
    return vpps_specialise(&s, plan, registers, source, report);
}

/* ---------------------------------------------------------------- */

/* The real compiler needs seconds, and minutes on a busy machine. */
TEST_GROUP("specialise", .seconds = 600);

TEST(kernels_get_smaller_until_one_is_clean) {
    static const uint32_t bad[][2] = {{8, 24}, {4, 24}, {36, 32}}; /* frame, fewer registers */
    AT_END(gpu_batch_close) gpu_batch b;
    gpu_batch_tree_lstm(&b, &full, 64, 64);
    for (uint32_t n = 0; n < 6; n++) {
        pretender x = {.bad = n, .frame = bad[2 * n % 3][0]};
        AT_END(vpps_kernel_plan_free) vpps_kernel_plan plan;
        vpps_cubin_report report;
        uint32_t registers = 0;
        FREED char *source = NULL;
        char numbers[100];
        TEST_OK(specialise_with(&x, &b, &plan, &registers, &source, &report));
        ck_assert_uint_eq(x.seen, n + 1);
        ck_assert_uint_eq(x.logged, n);
        snprintf(numbers, sizeof numbers, ": 255 registers, frame of %u bytes", x.frame);
        for (uint32_t i = 0; i < n; i++) {
            ck_assert_uint_le(x.registers[i + 1] + bad[2 * n % 3][1], x.registers[i]);
            ck_assert_msg(names_spills(x.lines[i]), "\"%s\"", x.lines[i]);
            ck_assert_ptr_nonnull(strstr(x.lines[i], numbers));
            ck_assert_ptr_nonnull(strstr(x.lines[i], x.descriptions[i]));
        }
        if (!n) ck_assert_uint_gt(plan.residents.registers, 128); /* of 144 */
        ck_assert_uint_eq(report.frame_bytes, 0);
        ck_assert_uint_eq(plan.residents.registers, x.registers[n]); /* the result is the kernel compiled last */
        ck_assert_str_eq(source, x.latest);

        /* The next kernel begins with this one's number of registers. */
        pretender again = {0};
        AT_END(vpps_kernel_plan_free) vpps_kernel_plan second;
        const uint32_t learnt = registers;
        TEST_OK(specialise_with(&again, &b, &second, &registers, NULL, &report));
        ck_assert_uint_eq(again.seen, 1);
        ck_assert_uint_eq(registers, learnt);
        ck_assert_str_eq(again.latest, x.latest);
        free(x.latest);
        free(again.latest);
    }
}

TEST(a_bound_on_registers_is_kept) {
    AT_END(gpu_batch_close) gpu_batch b;
    gpu_batch_tree_lstm(&b, &full, 64, 64);
    for (uint32_t bound = 1; bound < 100; bound += 33) {
        pretender x = {0};
        AT_END(vpps_kernel_plan_free) vpps_kernel_plan plan;
        vpps_cubin_report report;
        uint32_t registers = bound;
        TEST_OK(specialise_with(&x, &b, &plan, &registers, NULL, &report));
        ck_assert_uint_eq(x.seen, 1);
        ck_assert_uint_le(plan.residents.registers, bound);
        ck_assert_uint_eq(registers, bound);
        free(x.latest);
    }
}

TEST(where_all_kernels_spill_one_may_do) {
    AT_END(gpu_batch_close) gpu_batch b;
    pretender x = {.bad = UINT32_MAX, .frame = 4};
    vpps_kernel_plan plan;
    vpps_cubin_report report;
    uint32_t registers = 0;
    FREED char *source = NULL;
    gpu_batch_tree_lstm(&b, &full, 64, 64);
    TEST_FAILS(specialise_with(&x, &b, &plan, &registers, &source, &report), VPPS_POOL,
               "specialise: every kernel of the cells with 256 threads spills");
    ck_assert_ptr_null(source);
    ck_assert_uint_ge(x.seen, 5);
    ck_assert_uint_eq(x.logged, x.seen);
    ck_assert_uint_lt(x.registers[x.seen - 1], 16); /* only when almost no register is left */
    vpps_kernel_plan_free(&plan);
    x.spills_will_do = true;
    registers = 0;
    TEST_OK(specialise_with(&x, &b, &plan, &registers, &source, &report));
    ck_assert_ptr_nonnull(source);
    ck_assert(registers == 1 && report.frame_bytes == 4);
    free(x.latest);
    vpps_kernel_plan_free(&plan);
}

static vpps_status refuse(void *context, const vpps_kernel_plan *p, const char *source, const char *description,
                          vpps_cubin_report *report) {
    (void)p, (void)source, (void)description, (void)report;
    ++*(uint32_t *)context;
    return vpps_fail(VPPS_DEVICE, "no compiler today");
}

TEST(a_compiler_that_fails_is_asked_once) {
    AT_END(gpu_batch_close) gpu_batch b;
    uint32_t calls = 0, registers = 0;
    char *source = NULL;
    vpps_cubin_report report;
    gpu_batch_tree_lstm(&b, &full, 64, 64);
    vpps_specialiser s = gpu_batch_specialiser(&b);
    s.compile = refuse;
    s.context = &calls;
    AT_END(vpps_kernel_plan_free) vpps_kernel_plan plan = gpu_batch_plan(&b);
    TEST_FAILS(vpps_specialise(&s, &plan, &registers, &source, &report), VPPS_DEVICE, "no compiler today");
    ck_assert_uint_eq(calls, 1);
    ck_assert_ptr_null(source);
}

/* ---------------------------------------------------------------- the real compiler */

typedef struct cramped {
    uint32_t compiled, rejected;
    char line[VPPS_MESSAGE_BYTES];
} cramped;

/* Compiles the first kernel so that it fits an SM four times, which leaves a thread 64 registers: too few for its weights. */
static vpps_status compile_cramped(void *context, const vpps_kernel_plan *p, const char *source,
                                   const char *description, vpps_cubin_report *report) {
    static const char alone[] = "__launch_bounds__(VPPS_THREADS, 1)";
    cramped *x = context;
    FREED char *text = strdup(source);
    char *at = strstr(text, alone);
    FREED void *cubin = NULL;
    size_t bytes;
    (void)p;
    ck_assert_ptr_nonnull(at);
    if (x->compiled++ == 0) at[sizeof alone - 3] = '4';
    return vpps_compile(text, "vpps_kernel", 90, description, true, &cubin, &bytes, report);
}

static void keep_real_line(void *context, const char *line) {
    cramped *x = context;
    x->rejected++;
    snprintf(x->line, sizeof x->line, "%s", line);
}

/* NVRTC takes seconds: only make check-kernels runs this. */
TEST_EACH(a_real_spill_is_seen, 1, gpu_end("a_real_spill_is_seen", 1, 2)) {
    cramped x = {0};
    vpps_cubin_report report;
    uint32_t registers = 64;
    const vpps_nvrtc *nvrtc;
    if (vpps_nvrtc_open(&nvrtc) != VPPS_OK) TEST_SKIP("a_real_spill_is_seen: %s", vpps_error_message());
    AT_END(gpu_batch_close) gpu_batch b;
    gpu_batch_tree_lstm(&b, &full, 64, 64);
    vpps_specialiser s = gpu_batch_specialiser(&b);
    s.compile = compile_cramped;
    s.log = keep_real_line;
    s.context = &x;
    AT_END(vpps_kernel_plan_free) vpps_kernel_plan plan = gpu_batch_plan(&b);
    TEST_OK(vpps_specialise(&s, &plan, &registers, NULL, &report));
    ck_assert_uint_eq(x.compiled, 2);
    ck_assert_uint_eq(x.rejected, 1);
    ck_assert_msg(names_spills(x.line), "\"%s\"", x.line);
    ck_assert_uint_le(plan.residents.registers, 48);
    ck_assert_uint_eq(report.frame_bytes, 0);
}
