/* gpu_tests.c - see gpu_tests.h. */
#include "common/gpu_tests.h"

#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"
#include "runtime/simt/compiler.h"
#include "runtime/simt/fiber.h"
#include "runtime/simt/simt.h"

#include <stdio.h>

bool gpu_is_simulated(void) { return !strcmp(test_gpu_device(), "simt"); }

void gpu_ask_compiler(void) {
    char text[2048];
    if (!VPPS_SIMT_TSAN) (void)vpps_simt_toolchain(text, sizeof text); /* a test that needs it says what is wrong */
}

TEST(a_sanitizer_is_refused) {
    vpps_simt_kernel *kernel;
    double seconds;
    TEST_FAILS(vpps_simt_load(&kernel, "", "test", &seconds), VPPS_DEVICE, "ThreadSanitizer");
}

int gpu_main(Suite *(*make)(void)) {
    if (gpu_is_simulated()) gpu_ask_compiler();
    if (!VPPS_SIMT_TSAN || !gpu_is_simulated()) return test_main(make());
    Suite *suite = suite_create("gpu");
    TCase *tests = add_case(suite, "refused", 0);
    tcase_add_test(tests, a_sanitizer_is_refused);
    TEST_LEFT_OUT("software SIMT: its stacks cannot be followed by ThreadSanitizer");
    return test_main(suite);
}

/* This process runs part number so many of each group's tests. */
static void read_part(int *number, int *parts) {
    const char *text = getenv("VPPS_TEST_PART");
    *number = *parts = 1;
    if (!text || (sscanf(text, "%d/%d", number, parts) == 2 && *number >= 1 && *number <= *parts)) return;
    fprintf(stderr, "VPPS_TEST_PART is %s; expected NUMBER/PARTS\n", text);
    exit(2);
}

Suite *gpu_suite(const char *name, const gpu_group *groups, size_t n_groups) {
    Suite *s = suite_create(name);
    int number, parts;
    read_part(&number, &parts);
    for (const gpu_group *g = groups; g < groups + n_groups; g++) {
        TCase *t = tcase_create(g->name);
        tcase_set_timeout(t, 300);
        for (int i = number - 1; i < (test_full() ? g->n : g->everyday); i += parts)
            tcase_add_loop_test(t, g->test, i, i + 1);
        if (!test_full() && g->everyday < g->n)
            TEST_LEFT_OUT("%d of %d %s: VPPS_TEST_SCALE=full has them", g->n - g->everyday, g->n, g->name);
        suite_add_tcase(s, t);
    }
    return s;
}

void gpu_add(Suite *suite, const gpu_case *tests, uint32_t n) {
    if (VPPS_SIMT_TSAN && gpu_is_simulated()) {
        TEST_LEFT_OUT("%u tests of GPUs: ThreadSanitizer cannot follow software SIMT's stacks", n);
        return;
    }
    if (gpu_is_simulated()) gpu_ask_compiler();
    TCase *gpu = add_case(suite, "gpu", 120);
    for (uint32_t i = 0; i < n; i++) tcase_add_loop_test(gpu, tests[i].test, tests[i].argument, tests[i].argument + 1);
}

void gpu_drive_by(vpps_handle *h, const vpps_driver_table *driver, const vpps_options *options) {
    h->device->table->destroy(h->device);
    TEST_OK(vpps_gpu_create(&h->device, &vpps_device_simt, driver, h->model, options, &h->plan));
    h->machine = h->device->table->machine(h->device);
}

/* ---------------------------------------------------------------- layouts */

vpps_optimizer gpu_optimizer(vpps_optimizer_kind kind) {
    const bool divides = kind == VPPS_ADAM || kind == VPPS_ADAMW;
    return (vpps_optimizer){.kind = kind,
                            .lr = divides ? 0.01f : 0.05f,
                            .momentum = 0.9f,
                            .beta1 = 0.9f,
                            .beta2 = 0.999f,
                            .epsilon = kind == VPPS_ADAGRAD ? 1e-6f : 1e-8f,
                            .weight_decay = 0.02f,
                            .clip = 0.5f};
}

vpps_options gpu_options(const gpu_layout *layout, vpps_optimizer_kind optimizer) {
    char sms[16];
    vpps_options o;
    snprintf(sms, sizeof sms, "%u", layout->sms);
    setenv("VPPS_SIMT_SMS", sms, 1);
    vpps_options_default(&o);
    o.device = test_gpu_device();
    o.pool_bytes = 64u << 20;
    o.optimizer = gpu_optimizer(optimizer);
    o.seed = 1234;
    o.verify = true;
    o.rpw = layout->rpw;
    o.threads = layout->threads;
    o.groups = layout->groups;
    o.no_tuning = true;
    return o;
}

const char *gpu_layout_text(const gpu_layout *layout) {
    static char text[96];
    snprintf(text, sizeof text, "%u SMs in %u groups, %u threads, rpw %u", layout->sms, layout->groups, layout->threads,
             layout->rpw);
    return text;
}
