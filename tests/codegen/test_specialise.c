/* test_specialise.c - from a plan whose kernel spills to a smaller one: in which order, what is told, and when it ends.
 * Most compilers here only pretend; one test makes NVRTC spill.
 */
#include "codegen/specialise.h"
#include "shapes.h"

#include <stdio.h>

/* Says a line what a rejected kernel has? */
static bool names_spills(const char *line) {
    const char *numbers = strrchr(line, ':');
    unsigned registers, frame, spills;
    return strncmp(line, "rejected: ", 10) == 0 && numbers &&
           sscanf(numbers, ": %u registers, frame of %u bytes, %u bytes spilled", &registers, &frame, &spills) == 3 &&
           registers > 0 && registers <= 255 && frame + spills > 0;
}

/* A compiler that finds spills or a frame in the first plans. */
typedef struct pretender {
    uint32_t bad, frame, spills; /* so many plans; what they have */
    uint32_t seen, logged;
    vpps_partition_choice choices[32];
    uint32_t cached[32], budgets[32];
    char lines[32][VPPS_MESSAGE_BYTES];
} pretender;

static vpps_status pretend(void *context, const vpps_partition *p, const char *source, const char *description,
                           vpps_cubin_report *report) {
    pretender *x = context;
    ck_assert_uint_lt(x->seen, VPPS_COUNT(x->choices));
    ck_assert_ptr_nonnull(strstr(source, "vpps_kernel"));
    ck_assert_ptr_nonnull(strstr(source, description));
    x->choices[x->seen] = p->choice;
    x->cached[x->seen] = p->cached;
    x->budgets[x->seen] = p->budget;
    const bool bad = x->seen++ < x->bad;
    *report = (vpps_cubin_report){.registers = 255, .frame_bytes = bad ? x->frame : 0};
    report->spill_bytes = bad ? x->spills : 0;
    return VPPS_OK;
}

static void keep_line(void *context, const char *line) {
    pretender *x = context;
    ck_assert_uint_lt(x->logged, VPPS_COUNT(x->lines));
    snprintf(x->lines[x->logged++], sizeof x->lines[0], "%s", line);
}

static vpps_status specialise_with(pretender *x, uint32_t size, const vpps_partition_choice *c, vpps_partition *out,
                                   char **source) {
    const vpps_machine machine = shapes_machine(132, 0);
    shapes tree_lstm;
    shapes_tree_lstm(&tree_lstm, size, size, 5);
    const vpps_specialiser s = {&tree_lstm.model, &machine, VPPS_SGD, pretend, keep_line, x};
    vpps_cubin_report report;
    return vpps_specialise(&s, c, out, source, &report);
}

/* Hidden 1024 fills every budget, so a smaller one moves weights out of registers. */
static const vpps_partition_choice deferred = {
    .rpw = 1, .threads = 256, .ctas_per_sm = 1, .vectors = 4, .deferred = true};

START_TEST(plans_get_smaller_until_one_is_clean)
    {
        static const uint32_t ladder[][2] = {{4, 0}, {2, 0}, {1, 0}, {1, 16}, {1, 32}}; /* vectors, spare */
        static const uint32_t bad[][2] = {{8, 0}, {0, 4}, {24, 100}};                   /* frame, spills */
        for (uint32_t n = 0; n < VPPS_COUNT(ladder); n++) {
            pretender x = {.bad = n, .frame = bad[n % 3][0], .spills = bad[n % 3][1]};
            vpps_partition plan;
            char *source = NULL, numbers[100];
            TEST_OK(specialise_with(&x, 1024, &deferred, &plan, &source));
            ck_assert_uint_eq(x.seen, n + 1);
            ck_assert_uint_eq(x.logged, n);
            snprintf(numbers, sizeof numbers, ": 255 registers, frame of %u bytes, %u bytes spilled", x.frame,
                     x.spills);
            for (uint32_t i = 0; i <= n; i++) {
                ck_assert_uint_eq(x.choices[i].vectors, ladder[i][0]);
                ck_assert_uint_eq(x.choices[i].spare, ladder[i][1]);
                ck_assert_uint_le(x.cached[i], x.budgets[i]);
                if (i == n) continue;
                ck_assert(names_spills(x.lines[i]));
                ck_assert_msg(strstr(x.lines[i], numbers) != NULL, "\"%s\" lacks \"%s\"", x.lines[i], numbers);
            }
            if (n == 4) ck_assert_uint_lt(x.cached[4], x.cached[2]);
            ck_assert_uint_eq(plan.choice.vectors, ladder[n][0]); /* what comes out is what was compiled last */
            ck_assert_uint_eq(plan.choice.spare, ladder[n][1]);
            ck_assert_ptr_nonnull(strstr(source, "vpps_kernel"));
            free(source);
            vpps_partition_destroy(&plan);
        }
    }
END_TEST

START_TEST(a_model_whose_kernels_all_spill_is_refused)
    {
        pretender x = {.bad = UINT32_MAX, .spills = 4};
        vpps_partition plan;
        char *source = NULL;
        TEST_FAILS(specialise_with(&x, 1024, &deferred, &plan, &source), VPPS_POOL,
                   "every plan with rpw 1, 256 threads, 1 CTAs an SM spills");
        ck_assert_ptr_null(source);
        ck_assert_uint_ge(x.seen, 10);
        ck_assert_uint_eq(x.logged, x.seen);
        /* Gradients in registers need all of theirs: only vectors can be fewer. */
        const vpps_partition_choice whole = {.rpw = 1, .threads = 256, .ctas_per_sm = 1, .vectors = 1};
        x = (pretender){.bad = UINT32_MAX, .frame = 4};
        TEST_FAILS(specialise_with(&x, 512, &whole, &plan, &source), VPPS_POOL, "224 registers a thread for weights");
        ck_assert_uint_eq(x.seen, 1);
        ck_assert_uint_eq(x.logged, 1);
    }
END_TEST

static vpps_status refuse(void *context, const vpps_partition *p, const char *source, const char *description,
                          vpps_cubin_report *report) {
    (void)p;
    (void)source;
    (void)description;
    (void)report;
    ++*(uint32_t *)context;
    return vpps_fail(VPPS_DEVICE, "no compiler today");
}

START_TEST(a_compiler_that_fails_is_asked_once)
    {
        uint32_t calls = 0;
        const vpps_machine machine = shapes_machine(132, 0);
        shapes tree_lstm;
        shapes_tree_lstm(&tree_lstm, 64, 64, 5);
        const vpps_specialiser s = {&tree_lstm.model, &machine, VPPS_SGD, refuse, NULL, &calls};
        vpps_partition plan;
        vpps_cubin_report report;
        TEST_FAILS(vpps_specialise(&s, &deferred, &plan, NULL, &report), VPPS_DEVICE, "no compiler today");
        ck_assert_uint_eq(calls, 1);
    }
END_TEST

/* ---------------------------------------------------------------- the real compiler */

typedef struct crampeds {
    uint32_t compiled, rejected;
    char line[VPPS_MESSAGE_BYTES];
} crampeds;

/* The first kernel is to fit an SM four times, which leaves a thread 64 registers: too few for 96 words of weights. */
static vpps_status compile_cramped(void *context, const vpps_partition *p, const char *source, const char *description,
                                   vpps_cubin_report *report) {
    static const char alone[] = "#define VPPS_CTAS_PER_SM 1\n";
    crampeds *x = context;
    char *text = strdup(source), *at = strstr(text, alone);
    void *cubin;
    size_t bytes;
    ck_assert_ptr_nonnull(at);
    if (x->compiled++ == 0) at[sizeof alone - 3] = '4';
    const vpps_status status =
        vpps_compile(text, "vpps_kernel", p->machine.arch, description, true, &cubin, &bytes, report);
    free(cubin);
    free(text);
    return status;
}

static void keep_real_line(void *context, const char *line) {
    crampeds *x = context;
    x->rejected++;
    snprintf(x->line, sizeof x->line, "%s", line);
}

START_TEST(a_real_spill_is_seen)
    {
        const vpps_machine machine = shapes_machine(132, 0);
        const vpps_partition_choice c = {.rpw = 1, .threads = 256, .ctas_per_sm = 1, .vectors = 4, .transposed = true};
        crampeds x = {0};
        shapes tree_lstm;
        shapes_tree_lstm(&tree_lstm, 256, 256, 5);
        const vpps_specialiser s = {&tree_lstm.model, &machine, VPPS_SGD, compile_cramped, keep_real_line, &x};
        vpps_partition plan;
        vpps_cubin_report report;
        TEST_OK(vpps_specialise(&s, &c, &plan, NULL, &report));
        ck_assert_uint_eq(x.compiled, 2);
        ck_assert_uint_eq(x.rejected, 1);
        ck_assert_msg(names_spills(x.line), "\"%s\"", x.line);
        ck_assert_uint_eq(plan.choice.vectors, 2);
        ck_assert_uint_eq(report.frame_bytes + report.spill_bytes, 0);
        vpps_partition_destroy(&plan);
    }
END_TEST

int main(void) {
    int major, minor;
    uint32_t architecture, n = 1;
    Suite *suite = suite_create("specialise");
    TCase *plans = tcase_create("plans");
    tcase_set_timeout(plans, 60); /* of which the real compiler needs seconds */
    tcase_add_test(plans, plans_get_smaller_until_one_is_clean);
    tcase_add_test(plans, a_model_whose_kernels_all_spill_is_refused);
    tcase_add_test(plans, a_compiler_that_fails_is_asked_once);
    if (vpps_nvrtc_version(&major, &minor, &architecture, &n) == VPPS_OK) {
        tcase_add_test(plans, a_real_spill_is_seen);
    } else {
        TEST_LEFT_OUT("a_real_spill_is_seen: %s", vpps_error_message());
    }
    suite_add_tcase(suite, plans);
    return test_main(suite);
}
