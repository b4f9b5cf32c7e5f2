/* test_kernels.c - kernels of many models for many GPUs, compiled by NVRTC, which needs no GPU: none spills, and none has
 * a frame. What a kernel computes is not looked at here.
 *
 * Everything is compiled before the first test, by a thread a core, and kept in the kernel cache; every kernel is a test
 * then: Tree-LSTMs up to hidden 512 and matrices of mixed shapes for the oldest architecture, sm_90 and the newest, or
 * with VPPS_TEST_SCALE=full for all; strategies, Adam and matrices beyond the registers for sm_90. Without NVRTC nothing is compiled, and a line says so.
 */
#include "codegen/emit.h"
#include "codegen/specialise.h"
#include "common/testing.h"
#include "graph/model.h"
#include "models.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* ---------------------------------------------------------------- models */

enum { MIXED = 0 }; /* in place of a hidden size */
static const uint32_t sizes[] = {MIXED, 64, 128, 256, 384, 512, 1024, 2048};
static vpps_model *models[VPPS_COUNT(sizes)];

static vpps_status create_tree_lstm(vpps_model *model, uint32_t hidden) {
    const net_config config = {.words = 100, .classes = 5, .embed = hidden, .hidden = hidden};
    const network *net = network_find("tree-lstm");
    void *instance;
    VPPS_TRY(net->create(&instance, model, &config));
    net->destroy(instance);
    return VPPS_OK;
}

/* All pairs of awkward rows and columns; vectors between them, so that numbers of matrices are not those of parameters. */
static vpps_status create_mixed(vpps_model *model) {
    static const uint32_t lengths[] = {1, 31, 33, 100, 257, 512};
    for (size_t r = 0; r < VPPS_COUNT(lengths); r++) {
        for (size_t c = 0; c < VPPS_COUNT(lengths); c++) {
            char name[32];
            vpps_param unused;
            snprintf(name, sizeof name, "W%ux%u", lengths[r], lengths[c]);
            VPPS_TRY(vpps_add_matrix(model, &unused, name, lengths[r], lengths[c], NULL));
            *name = 'b';
            VPPS_TRY(vpps_add_vector(model, &unused, name, lengths[r], NULL));
        }
    }
    return VPPS_OK;
}

static vpps_status create_models(void) {
    for (size_t i = 0; i < VPPS_COUNT(sizes); i++) {
        VPPS_TRY(vpps_model_create(&models[i], 1));
        VPPS_TRY(sizes[i] == MIXED ? create_mixed(models[i]) : create_tree_lstm(models[i], sizes[i]));
    }
    return VPPS_OK;
}

static const vpps_model *model_of(uint32_t size) {
    size_t i = 0;
    while (sizes[i] != size) i++;
    return models[i];
}

/* ---------------------------------------------------------------- kernels */

/* One kernel: what is wanted, and what came of it. */
typedef struct kernel {
    uint32_t size, arch;
    vpps_optimizer_kind optimizer;
    vpps_strategy strategy; /* AUTO: of the first choice that compiles cleanly, as a device takes it */
    char name[64];

    uint32_t choices, refused; /* there are; before one was clean */
    uint32_t rejected;         /* plans; the last one's line */
    char line[VPPS_MESSAGE_BYTES];
    vpps_status status;
    char message[VPPS_MESSAGE_BYTES];
    vpps_partition plan;
    vpps_cubin_report report;
} kernel;

enum { MAX_KERNELS = 128, MAX_ARCHITECTURES = 64 };
static kernel kernels[MAX_KERNELS];
static uint32_t n_kernels, next_kernel;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct {
    const char *name;
    bool transposed, deferred;
} strategies[] = {{"auto", false, false},
#define X(id, name, transposed, deferred) {name, transposed, deferred},
                  VPPS_STRATEGY_TABLE(X)
#undef X
};

static void want(uint32_t size, uint32_t arch, vpps_optimizer_kind optimizer, vpps_strategy strategy) {
    static const char *const optimizers[] = {
#define X(id, name, states) name,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    if (n_kernels == MAX_KERNELS) abort();
    kernel *k = &kernels[n_kernels++];
    *k = (kernel){.size = size, .arch = arch, .optimizer = optimizer, .strategy = strategy};
    snprintf(k->name, sizeof k->name, size == MIXED ? "mixed shapes" : "hidden %u", size);
    const size_t n = strlen(k->name);
    snprintf(k->name + n, sizeof k->name - n, ", sm_%u, %s, %s", arch, optimizers[optimizer],
             strategies[strategy].name);
}

static vpps_status compile(void *context, const vpps_partition *p, const char *source, const char *description,
                           vpps_cubin_report *report) {
    (void)context;
    void *cubin = NULL;
    size_t bytes;
    const vpps_status status =
        vpps_compile(source, "vpps_kernel", p->machine.arch, description, true, &cubin, &bytes, report);
    free(cubin);
    return status;
}

static void note_rejected(void *context, const char *line) {
    kernel *k = context;
    k->rejected++;
    snprintf(k->line, sizeof k->line, "%s", line);
}

static vpps_machine machine_of(uint32_t arch) {
    char name[16];
    vpps_machine machine = {0};
    snprintf(name, sizeof name, "sm_%u", arch);
    if (vpps_machine_named(&machine, name, 0) != VPPS_OK) abort();
    return machine;
}

static vpps_status make(kernel *k) {
    vpps_partition_choice list[VPPS_MAX_CHOICES];
    const bool any = k->strategy == VPPS_STRATEGY_AUTO;
    const vpps_partition_choice fixed = {.transposed = strategies[k->strategy].transposed,
                                         .deferred = strategies[k->strategy].deferred};
    const vpps_machine machine = machine_of(k->arch);
    const vpps_model *model = model_of(k->size);
    const vpps_specialiser s = {model, &machine, k->optimizer, compile, note_rejected, k};
    k->choices = vpps_partition_choices(model, &machine, &fixed, !any, list, any ? VPPS_MAX_CHOICES : 1);
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < k->choices; i++) {
        if ((status = vpps_specialise(&s, &list[i], &k->plan, NULL, &k->report)) != VPPS_POOL) break;
        k->refused++;
    }
    return status;
}

static void *make_kernels(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        kernel *k = next_kernel < n_kernels ? &kernels[next_kernel++] : NULL;
        pthread_mutex_unlock(&lock);
        if (!k) return NULL;
        k->status = make(k);
        if (k->status != VPPS_OK) snprintf(k->message, sizeof k->message, "%s", vpps_error_message());
    }
}

/* ThreadSanitizer takes NVRTC's own locks, which it cannot see being made, for races: one thread there. */
#if defined(__SANITIZE_THREAD__)
enum { MAX_THREADS = 0 };
#else
enum { MAX_THREADS = 16 };
#endif

static void make_all(void) {
    pthread_t threads[MAX_THREADS + 1];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n = 0;
    while (n + 1 < cores && n < MAX_THREADS && pthread_create(&threads[n], NULL, make_kernels, NULL) == 0) n++;
    make_kernels(NULL);
    while (n > 0) pthread_join(threads[--n], NULL);
}

/* Those that both the compiler and the table of machines know, ascending. */
static uint32_t architectures[MAX_ARCHITECTURES], n_architectures;
static uint32_t compiled_for[MAX_ARCHITECTURES], n_compiled_for = MAX_ARCHITECTURES;

static void see_architecture(uint32_t arch, void *context) {
    (void)context;
    for (uint32_t i = 0; i < n_compiled_for; i++) {
        if (compiled_for[i] == arch) architectures[n_architectures++] = arch;
    }
}

static bool is_small(void) { return test_scaled(10) == 1; }

static void want_all(void) {
    vpps_machine_architectures(see_architecture, NULL);
    for (uint32_t i = 0; i < n_architectures; i++) {
        const uint32_t arch = architectures[i];
        const bool at_end = i == 0 || i + 1 == n_architectures;
        if (arch != 90 && (is_small() || (!at_end && !test_full()))) continue;
        for (size_t k = 0; k < VPPS_COUNT(sizes) && sizes[k] <= 512; k++) {
            want(sizes[k], arch, VPPS_SGD, VPPS_STRATEGY_AUTO);
        }
    }
    for (vpps_strategy s = VPPS_STRATEGY_COPY; s < VPPS_COUNT(strategies) && !is_small(); s++) {
        for (uint32_t size = 256; size <= 512; size += 256) {
            want(size, 90, VPPS_SGD, s);
            want(size, 90, VPPS_ADAM, s);
        }
    }
    want(1024, 90, VPPS_SGD, VPPS_STRATEGY_AUTO);
    want(2048, 90, VPPS_SGD, VPPS_STRATEGY_AUTO);
}

/* ---------------------------------------------------------------- what a kernel must be */

static void check_clean(const kernel *k) {
    ck_assert_msg(k->report.frame_bytes == 0, "%s: a frame of %u bytes", k->name, k->report.frame_bytes);
    ck_assert_msg(k->report.spill_bytes == 0, "%s: %u bytes spilled", k->name, k->report.spill_bytes);
    ck_assert_msg(k->report.registers <= 255, "%s: %u registers", k->name, k->report.registers);
    /* Weights and gradients are where the plan says: else the compiler has found another place. */
    ck_assert_msg(k->report.registers > k->plan.cached, "%s: %u registers, of which %u hold weights?", k->name,
                  k->report.registers, k->plan.cached);
    ck_assert_msg(k->report.registers * k->plan.choice.threads * k->plan.choice.ctas_per_sm <=
                      k->plan.machine.sm_registers,
                  "%s: %u registers: %u threads do not fit an SM", k->name, k->report.registers,
                  k->plan.choice.threads * k->plan.choice.ctas_per_sm);
    ck_assert_msg(k->report.shared_bytes + vpps_emit_shared_bytes(&k->plan) <= k->plan.machine.cta_shared_bytes,
                  "%s: %u + %u bytes of shared memory", k->name, k->report.shared_bytes,
                  vpps_emit_shared_bytes(&k->plan));
}

START_TEST(a_kernel_is_clean)
    {
        const kernel *k = &kernels[_i];
        if (k->rejected) ck_assert_msg(strncmp(k->line, "rejected: ", 10) == 0, "%s: \"%s\"", k->name, k->line);
        /* One strategy may be refused, if its plans all spill: gradients or a copy leave nothing to make smaller. */
        if (k->strategy != VPPS_STRATEGY_AUTO && k->status == VPPS_POOL) {
            ck_assert_msg(k->rejected > 0, "%s: %s", k->name, k->message);
            return;
        }
        ck_assert_msg(k->status == VPPS_OK, "%s: %s", k->name, k->message);
        if (k->strategy == VPPS_STRATEGY_AUTO) ck_assert_msg(k->choices > 0, "%s: no plan fits", k->name);
        if (k->choices) check_clean(k);
    }
END_TEST

static const kernel *find(uint32_t size, vpps_optimizer_kind optimizer, vpps_strategy strategy) {
    for (uint32_t i = 0; i < n_kernels; i++) {
        const kernel *k = &kernels[i];
        if (k->size == size && k->arch == 90 && k->optimizer == optimizer && k->strategy == strategy) return k;
    }
    ck_abort_msg("hidden %u was not compiled", size);
}

/* On sm_90 and 132 SMs, gradients stay in registers up to hidden 512, whose kernel leaves 31 for everything else. */
START_TEST(hidden_512_fills_the_registers)
    {
        for (uint32_t size = 256; size <= 512; size += 256) {
            const kernel *k = find(size, VPPS_SGD, VPPS_STRATEGY_AUTO);
            ck_assert_uint_eq(k->refused, 0);
            ck_assert(!k->plan.choice.deferred);
        }
        const kernel *k = find(512, VPPS_SGD, VPPS_STRATEGY_AUTO);
        const double share =
            (double)k->plan.cached * k->plan.choice.threads * k->plan.choice.ctas_per_sm / k->plan.machine.sm_registers;
        ck_assert_msg(share >= 0.85, "%.3f of the registers hold weights and gradients", share);
        ck_assert_uint_eq(k->plan.n_vps, 132);
    }
END_TEST

/* Of one choice for each strategy these must compile; others of hidden 512 are too large for it. */
START_TEST(strategies_that_must_compile)
    {
        static const vpps_optimizer_kind optimizers[] = {VPPS_SGD, VPPS_ADAM};
        for (size_t i = 0; i < VPPS_COUNT(optimizers) && !is_small(); i++) {
            for (vpps_strategy s = VPPS_STRATEGY_COPY; s < VPPS_COUNT(strategies); s++) {
                const kernel *k = find(256, optimizers[i], s);
                ck_assert_msg(k->choices == 1 && k->status == VPPS_OK, "%s: %s", k->name, k->message);
                ck_assert(k->plan.choice.transposed == strategies[s].transposed);
                ck_assert(k->plan.choice.deferred == strategies[s].deferred);
            }
            const kernel *k = find(512, optimizers[i], VPPS_STRATEGY_PARTIAL_DEFERRED);
            ck_assert_msg(k->choices == 1 && k->status == VPPS_OK, "%s: %s", k->name, k->message);
        }
    }
END_TEST

/* Weights beyond the registers lie in shared memory, and beyond that are streamed. */
START_TEST(large_matrices_use_all_levels)
    {
        for (uint32_t size = 1024; size <= 2048; size *= 2) {
            const kernel *k = find(size, VPPS_SGD, VPPS_STRATEGY_AUTO);
            uint32_t slots[VPPS_LEVEL_STREAM + 1] = {0};
            for (uint32_t i = 0; i < k->plan.rows.n_slots; i++) slots[k->plan.rows.slots[i].level]++;
            ck_assert(k->plan.choice.deferred);
            ck_assert_uint_gt(slots[VPPS_LEVEL_REGISTERS], 0);
            ck_assert_uint_gt(slots[VPPS_LEVEL_SHARED], 0);
            ck_assert_uint_gt(slots[VPPS_LEVEL_STREAM], 0);
            ck_assert_uint_eq(vpps_emit_shared_bytes(&k->plan), 4 * k->plan.rows.shared_words);
            ck_assert_uint_ge(k->plan.cached, 160);
        }
    }
END_TEST

START_TEST(sm_90_is_compiled_for)
    {
        bool found = false;
        for (uint32_t i = 0; i < n_architectures; i++) found |= architectures[i] == 90;
        ck_assert(found);
    }
END_TEST

/* ---------------------------------------------------------------- without the compiler */

static char missing[VPPS_MESSAGE_BYTES];
static vpps_status nvrtc_status;

START_TEST(without_nvrtc_the_reason_is_told)
    {
        void *cubin;
        size_t bytes;
        vpps_cubin_report report;
        ck_assert_int_eq(nvrtc_status, VPPS_DEVICE);
        ck_assert_msg(strstr(missing, "nvrtc") || strstr(missing, "NVRTC"), "\"%s\"", missing);
        TEST_FAILS(vpps_compile("", "vpps_kernel", 90, "", false, &cubin, &bytes, &report), VPPS_DEVICE, missing);
        ck_assert_ptr_null(cubin);
    }
END_TEST

int main(void) {
    int major, minor;
    if (create_models() != VPPS_OK) return fprintf(stderr, "%s\n", vpps_error_message()), EXIT_FAILURE;
    nvrtc_status = vpps_nvrtc_version(&major, &minor, compiled_for, &n_compiled_for);
    Suite *suite = suite_create("kernels");
    TCase *compiled = tcase_create("kernels");
    if (nvrtc_status != VPPS_OK) {
        snprintf(missing, sizeof missing, "%s", vpps_error_message());
        TEST_LEFT_OUT("all kernels: %s", missing);
        tcase_add_test(compiled, without_nvrtc_the_reason_is_told);
    } else {
        want_all();
        make_all();
        tcase_add_loop_test(compiled, a_kernel_is_clean, 0, (int)n_kernels);
        tcase_add_test(compiled, hidden_512_fills_the_registers);
        tcase_add_test(compiled, strategies_that_must_compile);
        tcase_add_test(compiled, large_matrices_use_all_levels);
        tcase_add_test(compiled, sm_90_is_compiled_for);
    }
    suite_add_tcase(suite, compiled);
    const int code = test_main(suite);
    for (uint32_t i = 0; i < n_kernels; i++) vpps_partition_destroy(&kernels[i].plan);
    for (size_t i = 0; i < VPPS_COUNT(models); i++) vpps_model_destroy(models[i]);
    return code;
}
