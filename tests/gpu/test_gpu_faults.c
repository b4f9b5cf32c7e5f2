/* test_gpu_faults.c - faults planted in the kernel's source, and in scripts, must show under software SIMT: as a wrong
 * result, as a failure that says what is wrong, or as a stall; for the order of turns in which they do, if not for all. */
#include "common/testing.h"
#include "gpu_tests.h"
#include "gpu_trees.h"
#include "nodes/script.h"
#include "runtime/gpu/gpu.h"
#include "runtime/simt/simt.h"

enum { HIDDEN = 24, BATCH = 3, BATCHES = 2, WATCHDOG_MS = 200, SEEDS = 6 };

static const struct fault {
    const char *what, *text, *with;
} faults[] = {
    {"a barrier before every instruction removed", "__syncthreads(); /* what the last instruction wrote", "/*"},
    {"the barrier behind staged vectors removed",
     "        vpps_b.staged_from = from;\n    }\n    __syncthreads();\n    return true;",
     "        vpps_b.staged_from = from;\n    }\n    return true;"},
    {"signals removed", "case VPPS_I_SIGNAL: vpps_signal(a.counters, at[1]); break;", "case VPPS_I_SIGNAL: break;"},
    {"waits removed",
     "if (!vpps_wait(a.counters, a.failure, a.watchdog_ns, vpps_pc[vpps_thread()] - words, at[1], at[2])) return;",
     ";"},
    {"a wait that lets one signal too few do", "VPPS_ACQUIRE_LOAD(counter)) < wanted;",
     "VPPS_ACQUIRE_LOAD(counter)) + 1 < wanted;"},
    {"another warp's piece", "span.piece + piece;\n            const unsigned group",
     "span.piece + piece + 1;\n            const unsigned group"},
    {"a shuffle between the wrong lanes", "__shfl_xor_sync(0xffffffffu, give, offset)",
     "__shfl_xor_sync(0xffffffffu, give, offset ^ 1)"},
    {"a slot's registers one off", "#define VPPS_SLOTS_0(X) X(0, 0, ", "#define VPPS_SLOTS_0(X) X(0, 1, "},
    {"rows owned one off", "(unsigned)((unsigned long long)blocks * member / parts) * VPPS_ROW_BLOCK;",
     "(unsigned)((unsigned long long)blocks * member / parts) * VPPS_ROW_BLOCK + 1;"},
    {"gradients that are not cleared", "g[i] = 0.0f;", "g[i] = 1.0f;"},
    {"the barrier before staging removed", "    __syncthreads();\n    if (source >= n_sources) return false;",
     "    if (source >= n_sources) return false;"},
    {"the barrier behind a round removed",
     "            __syncthreads();\n            if (vpps_thread() == 0) vpps_b.vector += VPPS_VECTORS;",
     "            if (vpps_thread() == 0) vpps_b.vector += VPPS_VECTORS;"},
    {"the barrier before the window is filled removed",
     "left < VPPS_WINDOW ? left : VPPS_WINDOW;\n    __syncthreads();\n", "left < VPPS_WINDOW ? left : VPPS_WINDOW;\n"},
    {"half of the lanes in a shuffle's mask", "__shfl_xor_sync(0xffffffffu, give, offset)",
     "__shfl_xor_sync(0x0000ffffu, give, offset)"},
    {"the copy's columns one off", "[row_words[32 * j] + column + r];", "[row_words[32 * j] + column + r + 1];"},
    {"the first vector taken for all", "? x[v][from + i]", "? x[0][from + i]"},
    {"a bundle's round taken for another's", " && vpps_b.address == vpps_b.wanted;", ";"},
};

static const struct fault *planted; /* NULL: none */

/* The driver's own, with the fault in the source. */
static vpps_status load(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report) {
    if (!planted) return vpps_driver_simt.load(d, source, description, shape, out, report);
    const char *at = strstr(source, planted->text);
    ck_assert_msg(at && !strstr(at + 1, planted->text), "%s: its text is not there, or not once", planted->what);
    const size_t before = (size_t)(at - source), bytes = strlen(source) + strlen(planted->with) + 1;
    char *changed = malloc(bytes);
    ck_assert_ptr_nonnull(changed);
    snprintf(changed, bytes, "%.*s%s%s", (int)before, source, planted->with, at + strlen(planted->text));
    const vpps_status status = vpps_driver_simt.load(d, changed, planted->what, shape, out, report);
    free(changed);
    return status;
}

typedef struct run {
    gpu_trees trees;
    vpps_options options;
    vpps_device *device;
    vpps_scheduler *scheduler;
    vpps_plan plan;
} run;

static void open_run(run *r, const struct fault *fault) {
    static vpps_driver_table driver;
    driver = vpps_driver_simt;
    driver.load = load;
    planted = fault;
    vpps_options_default(&r->options);
    r->options.no_tuning = true;
    r->options.pool_bytes = 32 << 20;
    r->options.watchdog_ms = WATCHDOG_MS;
    trees_open(&r->trees, HIDDEN, HIDDEN);
    TEST_OK(vpps_gpu_create(&r->device, &vpps_device_simt, &driver, r->trees.model, &r->options, &r->plan));
    TEST_OK(vpps_scheduler_create(&r->scheduler));
}

static void close_run(run *r) {
    vpps_scheduler_destroy(r->scheduler);
    r->device->table->destroy(r->device);
    trees_close(&r->trees);
}

static void schedule(run *r, uint32_t batch) {
    const vpps_request request = {
        .loss = trees_build(&r->trees, batch), .optimizer = &r->options.optimizer, .step = batch + 1};
    TEST_OK(vpps_schedule(r->scheduler, &r->plan, r->trees.g, &request));
}

static vpps_outcome launch(run *r) {
    vpps_outcome out;
    r->device->table->launch(r->device, r->scheduler->script); /* a failure is in the outcome, too */
    r->device->table->wait(r->device, &out);
    return out;
}

/* Trains; the parameters afterwards, or NULL (and *message) when a batch failed. */
static float *train(const struct fault *fault, uint32_t seed, size_t *n, char *message) {
    char text[16];
    snprintf(text, sizeof text, "%u", seed);
    setenv("VPPS_SIMT_SEED", text, 1);
    run r = {0};
    float *values = NULL;
    *message = '\0';
    open_run(&r, fault);
    for (uint32_t batch = 0; batch < BATCHES && !*message; batch++) {
        schedule(&r, batch);
        const vpps_outcome out = launch(&r);
        if (out.status != VPPS_OK) snprintf(message, VPPS_MESSAGE_BYTES, "%s", out.message);
    }
    if (!*message) {
        TEST_OK(r.device->table->read_parameters(r.device, r.trees.model));
        values = gpu_values(r.trees.model, n);
    }
    close_run(&r);
    return values;
}

START_TEST(a_planted_fault_is_caught)
    {
        const struct fault *fault = &faults[_i];
        char message[VPPS_MESSAGE_BYTES];
        size_t n = 0, same = 0;
        setenv("VPPS_SIMT_SMS", "4", 1);
        vpps_simt_set_patience(300000000);
        float *right = train(NULL, 0, &n, message);
        ck_assert_msg(right != NULL, "without a fault: %s", message);
        bool caught = false;
        for (uint32_t seed = 0; seed < SEEDS && !caught; seed++) {
            float *values = train(fault, seed, &same, message);
            caught = !values || memcmp(values, right, n * sizeof *right) != 0;
            if (caught) printf("%s: seed %u: %s\n", fault->what, seed, values ? "wrong parameters" : message);
            free(values);
        }
        free(right);
        ck_assert_msg(caught, "%s: nothing was wrong", fault->what);
    }
END_TEST

/* The order of turns alone changes no bit: what the test above compares means something. */
START_TEST(without_faults_every_order_gives_the_same)
    {
        char message[VPPS_MESSAGE_BYTES];
        size_t n = 0;
        setenv("VPPS_SIMT_SMS", "4", 1);
        float *right = train(NULL, 0, &n, message);
        for (uint32_t seed = 1; seed < SEEDS; seed++) {
            float *values = train(NULL, seed, &n, message);
            ck_assert_msg(values != NULL, "seed %u: %s", seed, message);
            ck_assert_msg(!memcmp(values, right, n * sizeof *right), "seed %u gives other parameters", seed);
            free(values);
        }
        free(right);
    }
END_TEST

/* ---------------------------------------------------------------- broken scripts */

/* The first instruction with this opcode in the VPs' own streams. */
static uint32_t *find(run *r, vpps_opcode opcode) {
    uint32_t *script = r->scheduler->script;
    const uint32_t *starts = vpps_script_starts(script);
    for (uint32_t *at = script + starts[0], *end = script + starts[r->plan.n_vps]; at < end;) {
        if (vpps_word_opcode(*at) == opcode) return at;
        at += vpps_instruction_words(at, end);
    }
    ck_abort_msg("the script has no such instruction");
    return NULL;
}

static void expect(run *r, vpps_status status, const char *text) {
    const uint64_t start = vpps_now_ns();
    const vpps_outcome out = launch(r);
    ck_assert_msg(out.status == status, "%s instead of %s: %s", vpps_status_name(out.status), vpps_status_name(status),
                  out.message);
    ck_assert_msg(strstr(out.message, "VP ") && strstr(out.message, "instruction at word "), "%s", out.message);
    ck_assert_msg(strstr(out.message, text) != NULL, "\"%s\" lacks \"%s\"", out.message, text);
    ck_assert_msg(vpps_now_ns() - start < 20000000000u, "took far longer than the watchdog's time");
}

START_TEST(a_broken_script_ends_with_a_reason)
    {
        run r = {0};
        setenv("VPPS_SIMT_SMS", "4", 1);
        setenv("VPPS_SIMT_SEED", "0", 1);
        open_run(&r, NULL);
        schedule(&r, 0);
        uint32_t *wait = find(&r, VPPS_I_WAIT);
        const uint32_t wanted = wait[2];
        char text[64];
        snprintf(text, sizeof text, "waited 0.2 s at barrier %u, which has %u of %u signals", wait[1], wanted,
                 wanted + 1);
        wait[2] = wanted + 1;
        expect(&r, VPPS_STALL, text);
        wait[2] = wanted;
        uint32_t *call = find(&r, VPPS_I_CALL), *segment = r.scheduler->script + call[1], word = *segment;
        *segment = 250;
        expect(&r, VPPS_SCRIPT, "opcode 250 is unknown");
        *segment = word;
        const vpps_outcome out = launch(&r); /* the device is as it was */
        ck_assert_msg(out.status == VPPS_OK, "%s", out.message);
        close_run(&r);
    }
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("gpu faults");
    TCase *t = tcase_create("faults");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_planted_fault_is_caught, 0, (int)VPPS_COUNT(faults));
    tcase_add_test(t, without_faults_every_order_gives_the_same);
    tcase_add_test(t, a_broken_script_ends_with_a_reason);
    suite_add_tcase(suite, t);
    return suite;
}

int main(void) { return gpu_main(make_suite); }
