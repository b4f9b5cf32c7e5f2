/* test_simt.c - software SIMT: small correct kernels give right results in every order of turns; errors of wrong ones are named. */
#include "common/folder.h"
#include "runtime/gpu/driver.h"
#include "runtime/simt/compiler.h"
#include "runtime/simt/fiber.h"
#include "runtime/simt/watch.h"
#include "simt_kernels.h"

#include <pthread.h>
#include <unistd.h>

enum { SEEDS = 6, MAX_N = 64 * 1024 };

static float in[MAX_N], out[MAX_N];
static unsigned counters[1024];

static vpps_simt_kernel *load(const char *source) {
    vpps_simt_kernel *kernel = NULL;
    double seconds;
    TEST_OK(vpps_simt_load(&kernel, source, "test", &seconds));
    return kernel;
}

DESTROYED_BY(vpps_simt_kernel, vpps_simt_unload)

static vpps_status run(vpps_simt_kernel *kernel, uint32_t ctas, uint32_t threads, unsigned n, unsigned mode,
                       uint32_t seed) {
    const vpps_arguments a = {(uintptr_t)in, (uintptr_t)out, (uintptr_t)counters, n, mode};
    memset(out, 0, sizeof out);
    memset(counters, 0, sizeof counters);
    return vpps_simt_run(kernel, ctas, threads, 4096, &a, sizeof a, seed, NULL);
}

static void draw_input(void) {
    uint64_t state = test_seed();
    for (size_t i = 0; i < MAX_N; i++) in[i] = vpps_random_unit(&state) - 0.5f;
}

/* ---------------------------------------------------------------- kernels that are right */

#define WITHOUT_TSAN .left_out = VPPS_SIMT_TSAN ? "ThreadSanitizer cannot follow software SIMT's stacks" : NULL
TEST_GROUP("right", WITHOUT_TSAN);

/* Checks the results of lane `lane` in the warp whose first input is x. */
static void check_lane(const float *x, uint32_t lane, const float *got) {
    uint32_t all = 0, ballot = 0;
    for (uint32_t i = 0; i < 32; i++) {
        all ^= vpps_float_bits(x[i]);
        ballot |= (uint32_t)(x[i] > 0) << i;
    }
    float sum[32];
    memcpy(sum, x, sizeof sum);
    for (uint32_t m = 16; m; m /= 2) {
        float next[32];
        for (uint32_t i = 0; i < 32; i++) next[i] = sum[i] + sum[i ^ m];
        memcpy(sum, next, sizeof sum);
    }
    ck_assert(got[0] == sum[lane]);
    ck_assert_uint_eq(vpps_float_bits(got[1]), all);
    ck_assert(got[2] == x[5]);
    ck_assert_uint_eq(vpps_float_bits(got[3]), ballot);
    ck_assert(got[4] == x[lane < 16 ? lane ^ 1 : lane ^ 2]);
}

TEST(warps_shuffle_and_vote) {
    OWNED(vpps_simt_kernel) *kernel = load(warp_kernel);
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        TEST_OK(run(kernel, 5, 64, 0, 0, seed));
        for (uint32_t i = 0; i < 5 * 64; i++) check_lane(in + i / 32 * 32, i % 32, out + 8 * i);
    }
}

TEST(shared_memory_is_private_to_a_cta) {
    enum { CTAS = 9, THREADS = 128, ROUNDS = 10 };
    OWNED(vpps_simt_kernel) *kernel = load(reduce_kernel);
    const vpps_arguments nothing = {0}; /* a run without dynamic shared memory precedes those with it */
    TEST_OK(vpps_simt_run(kernel, CTAS, THREADS, 0, &nothing, sizeof nothing, 0, NULL));
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        TEST_OK(run(kernel, CTAS, THREADS, ROUNDS, 0, seed));
        for (uint32_t i = 0; i < CTAS * THREADS; i++) {
            const uint32_t all = THREADS * (THREADS - 1) / 2 * (ROUNDS * (ROUNDS - 1) / 2);
            ck_assert_float_eq(out[i], (float)(i / THREADS * THREADS * ROUNDS + all));
        }
    }
}

TEST(ctas_wait_for_each_other) {
    enum { CTAS = 7, PHASES = 8 };
    float want[CTAS], next[CTAS];
    for (uint32_t i = 0; i < CTAS; i++) want[i] = (float)(i + 1);
    for (uint32_t phase = 0; phase < PHASES; phase++) {
        for (uint32_t i = 0; i < CTAS; i++) next[i] = want[i] + want[(i + CTAS - 1) % CTAS];
        memcpy(want, next, sizeof want);
    }
    OWNED(vpps_simt_kernel) *kernel = load(signal_kernel);
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        TEST_OK(run(kernel, CTAS, 64, PHASES, 0, seed));
        for (uint32_t i = 0; i < CTAS; i++) ck_assert(out[PHASES * CTAS + i] == want[i]);
        for (uint32_t i = 0; i < PHASES; i++) ck_assert_uint_eq(counters[i], CTAS);
    }
}

TEST(builtins_mean_what_they_mean_in_cuda) {
    OWNED(vpps_simt_kernel) *kernel = load(builtin_kernel);
    TEST_OK(run(kernel, 1, 32, 0, 0, 0));
    const float x = in[0];
    const float fused = fmaf(x, x, 1.0f), larger = fmaxf(x, 0.25f), like_x = copysignf(2, x);
    const float floats[] = {fused, expf(x), logf(x * x), fabsf(x), fabsf(x), larger, like_x, x / 4, 0, 1, 1, x * 3, 5};
    for (uint32_t i = 0; i < VPPS_COUNT(floats); i++)
        ck_assert_msg(fabsf(out[i] - floats[i]) <= 1e-6f * fabsf(floats[i]), "number %u: %g, not %g", i, (double)out[i],
                      (double)floats[i]);
    const unsigned words[] = {3, 8, 0x3f800000u};
    for (uint32_t i = 0; i < VPPS_COUNT(words); i++) ck_assert_uint_eq(counters[200 + i], words[i]);
    ck_assert_uint_eq(counters[0], 31 * 32 / 2);
    ck_assert_uint_eq(counters[1], 1); /* thread 0 comes first */
    ck_assert_uint_eq(counters[2], 1);
}

TEST(a_seed_is_an_order) {
    enum { CTAS = 132, N = CTAS * 96 };
    static float orders[SEEDS][N];
    OWNED(vpps_simt_kernel) *kernel = load(order_kernel);
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        TEST_OK(run(kernel, CTAS, 96, 0, 0, seed));
        memcpy(orders[seed], out, sizeof orders[seed]);
        TEST_OK(run(kernel, CTAS, 96, 0, 0, seed));
        ck_assert(memcmp(orders[seed], out, sizeof orders[seed]) == 0);
        for (uint32_t other = 0; other < seed; other++)
            ck_assert(memcmp(orders[seed], orders[other], sizeof orders[seed]) != 0);
    }
    for (uint32_t i = 0; i < N; i++) ck_assert(orders[0][i] == (float)i);
    for (uint32_t seed = 1; seed < SEEDS; seed++) { /* also inside a warp */
        TEST_OK(run(kernel, 1, 32, 0, 0, seed));
        ck_assert(memcmp(orders[0], out, 32 * sizeof *out) != 0);
    }
}

TEST(kernels_of_one_source_are_apart) {
    vpps_simt_kernel *one = load(reduce_kernel);
    OWNED(vpps_simt_kernel) *other = load(reduce_kernel), *third = load(vector_kernel);
    for (uint32_t round = 0; round < 3; round++) {
        TEST_OK(run(third, 2, 64, 10, 0, 0));
        ck_assert(out[9] == in[9] + in[0]);
        TEST_OK(run(one, 2, 64, 1, 0, 0));
        ck_assert_float_eq(out[64], 64.0f);
        TEST_OK(run(other, 3, 32, 1, 0, 0));
        ck_assert_float_eq(out[64], 64.0f);
    }
    vpps_simt_unload(one);
    TEST_OK(run(other, 3, 32, 1, 0, 0));
}

/* ---------------------------------------------------------------- kernels that are wrong */

static uint32_t wrong_values(void) {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < 4 * 128; i++) wrong += out[i] != (float)((i % 128 + 127) % 128 + i / 128);
    return wrong;
}

TEST_GROUP("wrong", WITHOUT_TSAN);

TEST(a_missing_barrier_shows) {
    OWNED(vpps_simt_kernel) *kernel = load(race_kernel);
    uint32_t seen = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        TEST_OK(run(kernel, 2, 128, 0, 0, seed));
        ck_assert_uint_eq(wrong_values(), 0);
        TEST_OK(run(kernel, 2, 128, 0, 1, seed));
        seen += wrong_values() > 0;
    }
    ck_assert_uint_eq(seen, SEEDS);
}

TEST(a_divergent_barrier_is_named) {
    OWNED(vpps_simt_kernel) *kernel = load(divergent_kernel);
    const uint64_t start = vpps_now_ns();
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        TEST_FAILS(run(kernel, 3, 64, 0, 1, seed), VPPS_STALL, "CTA 1: ");
        ck_assert(strstr(vpps_error_message(), "of 64 threads wait"));
        TEST_FAILS(run(kernel, 3, 64, 0, 2, seed), VPPS_STALL, "of 64 threads wait at that of line ");
        ck_assert(strstr(vpps_error_message(), "CTA 1: ") && strstr(vpps_error_message(), "line 8"));
        TEST_FAILS(run(kernel, 3, 64, 0, 3, seed), VPPS_STALL, "CTA 1: ");
        ck_assert(strstr(vpps_error_message(), "64 of 64 threads alive, 59 at the CTA barrier (line 15)"));
        ck_assert(strstr(vpps_error_message(), "waits in line 12"));
        TEST_FAILS(run(kernel, 3, 64, 0, 4, seed), VPPS_STALL, "CTA 1: ");
        ck_assert(strstr(vpps_error_message(), "finished") && strstr(vpps_error_message(), "line 15"));
        TEST_OK(run(kernel, 3, 64, 0, 0, seed)); /* runs as if nothing had happened */
        for (uint32_t i = 0; i < 3 * 64; i++) ck_assert(out[i] == 1.0f);
    }
    ck_assert(vpps_now_ns() - start < 1500000000u); /* at once, long before the patience ends */
}

TEST(a_missing_signal_is_a_stall) {
    OWNED(vpps_simt_kernel) *kernel = load(signal_kernel);
    vpps_simt_set_patience(50000000);
    for (uint32_t seed = 0; seed < 2; seed++) {
        TEST_FAILS(run(kernel, 6, 64, 8, 1, seed), VPPS_STALL, "6 of 6 CTAs spin; CTA ");
        ck_assert(
            strstr(vpps_error_message(), "64 of 64 threads alive, 63 at the CTA barrier, thread 0 spins in line 12"));
    }
    vpps_simt_set_patience(0); /* progress in every round: the patience never ends */
    TEST_OK(run(kernel, 6, 64, 200, 0, 0));
    vpps_simt_set_patience(2000000000u);
    TEST_OK(run(kernel, 6, 64, 8, 0, 0));
}

TEST(wrong_masks_are_named) {
    OWNED(vpps_simt_kernel) *kernel = load(mask_kernel);
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        TEST_OK(run(kernel, 1, 64, 0, 0, seed));
        TEST_FAILS(run(kernel, 1, 64, 0, 1, seed), VPPS_DEVICE,
                   "in line 5 with the mask 0000ffff, which lacks its own");
        TEST_FAILS(run(kernel, 1, 64, 0, 2, seed), VPPS_DEVICE, "in line 6, which the mask 0000ffff lacks");
        TEST_FAILS(run(kernel, 1, 64, 0, 3, seed), VPPS_DEVICE, "line 8 with mask ffffffff");
        ck_assert(strstr(vpps_error_message(), "line 10 with mask ffffffff"));
        const vpps_status status = run(kernel, 1, 64, 0, 4, seed); /* lane 3 is missing when it is needed, or later */
        ck_assert(status == VPPS_DEVICE || status == VPPS_STALL);
        ck_assert(strstr(vpps_error_message(), "line 12"));
    }
}

TEST(what_cannot_be_loaded_or_run_is_said) {
    OWNED(vpps_simt_kernel) *kernel = NULL;
    double seconds;
    TEST_FAILS(vpps_simt_load(&kernel,
                              ARGUMENTS "extern \"C\" __global__ void vpps_kernel(vpps_arguments a) {\n"
                                        "    no_such_thing(a.n);\n}\n",
                              "test", &seconds),
               VPPS_DEVICE, "kernel:3:");
    ck_assert(strstr(vpps_error_message(), "no_such_thing"));
    ck_assert(!kernel);
    setenv("VPPS_CXX", "/no/such/compiler", 1);
    TEST_FAILS(vpps_simt_load(&kernel, vector_kernel, "test", &seconds), VPPS_DEVICE, "\"/no/such/compiler\"");
    setenv("VPPS_CXX", "false", 1);
    TEST_FAILS(vpps_simt_load(&kernel, vector_kernel, "test", &seconds), VPPS_DEVICE, "software SIMT: false: ");
    unsetenv("VPPS_CXX");
    kernel = load(vector_kernel);
    TEST_FAILS(vpps_simt_run(kernel, 1, 64, 0, &seconds, sizeof seconds, 0, NULL), VPPS_ARGUMENT, "32 bytes, not 8");
    TEST_FAILS(run(kernel, 1, 33, 0, 0, 0), VPPS_ARGUMENT, "whole warps");
    TEST_FAILS(run(kernel, 1, 2048, 0, 0, 0), VPPS_ARGUMENT, "whole warps");
    TEST_FAILS(run(kernel, 0, 32, 0, 0, 0), VPPS_ARGUMENT, "0 CTAs");
}

TEST(a_kernel_is_compiled_once) {
    OWNED(vpps_simt_kernel) *kernel = NULL;
    double seconds = -1;
    const char *fresh = ARGUMENTS "extern \"C\" __global__ void vpps_kernel(vpps_arguments a) { *(int *)a.out = 7; }\n";
    TEST_OK(vpps_simt_load(&kernel, fresh, "test", &seconds));
    ck_assert(seconds > 0);
    vpps_simt_unload(kernel);
    TEST_OK(vpps_simt_load(&kernel, fresh, "test", &seconds));
    ck_assert(seconds == 0);
    TEST_OK(run(kernel, 1, 32, 0, 0, 0));
    ck_assert_uint_eq(vpps_float_bits(out[0]), 7);
}

/* ---------------------------------------------------------------- the driver */

static const vpps_driver_table *const table = &vpps_driver_simt;

TEST_GROUP("driver", WITHOUT_TSAN);

TEST(the_driver_has_memory) {
    vpps_driver *d;
    vpps_machine machine;
    setenv("VPPS_SIMT_SMS", "6", 1);
    TEST_OK(table->open(&d, 0, &machine));
    ck_assert_uint_eq(machine.sms, 6);
    ck_assert_uint_eq(machine.arch, 90);
    ck_assert_str_eq(machine.name, "software SIMT");
    ck_assert(table->free_bytes(d) > 0);
    uint64_t a, b;
    void *pinned;
    float values[10], got[10];
    TEST_OK(table->allocate(d, sizeof values, &a));
    TEST_OK(table->allocate(d, 0, &b));
    TEST_OK(table->allocate_host(d, 100, &pinned));
    ck_assert(a % 256 == 0 && b % 256 == 0 && a != b);
    ck_assert_uint_eq(vpps_simt_live_allocations(), 3);
    TEST_OK(table->read(d, got, a, sizeof got));
    for (int i = 0; i < 10; i++) ck_assert(isnan(got[i]));
    for (int i = 0; i < 10; i++) values[i] = (float)i;
    TEST_OK(table->write(d, a, values, sizeof values));
    TEST_OK(table->clear(d, a + 8, 12));
    TEST_OK(table->read(d, got, a + 4, 20));
    ck_assert(got[0] == 1 && got[1] == 0 && got[3] == 0 && got[4] == 5);
    TEST_FAILS(table->read(d, got, a + 4, sizeof got), VPPS_DEVICE, "40 bytes at");
    TEST_FAILS(table->write(d, a + 44, values, 0), VPPS_DEVICE, "not device memory");
    TEST_FAILS(table->clear(d, b, 4), VPPS_DEVICE, "not device memory");
    table->release(d, a);
    TEST_FAILS(table->read(d, got, a, 4), VPPS_DEVICE, "not device memory");
    ck_assert_uint_eq(vpps_simt_live_allocations(), 2);
    table->release_host(d, pinned);
    table->close(d); /* with b */
    ck_assert_uint_eq(vpps_simt_live_allocations(), 0);
    setenv("VPPS_SIMT_SMS", "many", 1);
    TEST_FAILS(table->open(&d, 0, &machine), VPPS_ARGUMENT, "VPPS_SIMT_SMS is \"many\"");
}

TEST(the_driver_launches) {
    vpps_driver *d;
    vpps_machine machine;
    setenv("VPPS_SIMT_SEED", "3", 1);
    TEST_OK(table->open(&d, 0, &machine));
    const vpps_launch_shape shape = {machine.sms, 64, 1024};
    vpps_kernel *kernel, *other;
    vpps_cubin_report report;
    TEST_OK(table->load(d, reduce_kernel, "test", &shape, &kernel, &report));
    ck_assert(report.cached == (report.seconds == 0) && report.frame_bytes == 0);
    TEST_OK(table->load(d, divergent_kernel, "test", &shape, &other, &report));
    uint64_t result;
    TEST_OK(table->allocate(d, machine.sms * 64 * 4, &result));
    TEST_OK(table->clear(d, result, machine.sms * 64 * 4));
    vpps_arguments a = {.out = result, .n = 3, .mode = 1};
    TEST_OK(table->launch(d, kernel, &shape, &a, sizeof a));
    ck_assert(table->passed(d, 0));
    TEST_OK(table->wait(d));
    TEST_OK(table->read(d, out, result, machine.sms * 64 * 4));
    for (uint32_t i = 0; i < machine.sms * 64; i++) ck_assert_float_eq(out[i], (float)(i / 64 * 64 * 3 + 2016 * 3));
    TEST_FAILS(table->launch(d, other, &shape, &a, sizeof a), VPPS_STALL, "CTA 1");
    table->unload(d, kernel);
    table->unload(d, other);
    table->close(d);
}

/* ---------------------------------------------------------------- kernels that are watched */

TEST_GROUP("watched", WITHOUT_TSAN);

static const char *const compilers[] = {"c++", "clang++"};
static const char *const misuses[] = {NULL,
                                      "with no barrier between, after line 0",
                                      "with no barrier between, after line 12",
                                      "writes a word that thread",
                                      "with no barrier between, after line 16",
                                      "thread 9 writes 4 bytes outside of the kernel's memory, after line 19",
                                      "thread 9 reads 4 bytes outside",
                                      "thread 9 writes 4 bytes outside",
                                      "thread 9 reads 4 bytes outside",
                                      "with no barrier between, after line 25",
                                      "with no barrier between, after line 25",
                                      "with no barrier between, after line 25"};

/* Misuses in one CTA of 64 threads, for which one word of shared memory each is just enough. */
TEST_EACH(what_a_watched_kernel_must_not_do, 0, VPPS_COUNT(compilers) * VPPS_COUNT(misuses)) {
    const unsigned mode = (unsigned)_i / VPPS_COUNT(compilers);
    char text[2048];
    enum { N = 192 };
    setenv("VPPS_SIMT_WATCH", "1", 1);
    setenv("VPPS_CXX", compilers[(unsigned)_i % VPPS_COUNT(compilers)], 1);
    if (_i % VPPS_COUNT(compilers) && vpps_simt_toolchain(text, sizeof text) != VPPS_OK) TEST_SKIP("no clang++ here");
    OWNED(vpps_simt_kernel) *kernel = load(watched_kernel);
    vpps_simt_piece piece = {.memory = (char *)(out + 1), .bytes = N * sizeof *out}, *const memory[VPPS_SIMT_MEMORIES] =
                                                                                         {&piece};
    const vpps_arguments a = {.out = (uintptr_t)(out + 1), .mode = mode};
    for (uint32_t seed = 0; seed < SEEDS; seed++) { /* whatever the order */
        const vpps_status status = vpps_simt_run(kernel, 1, 64, 64 * sizeof(float), &a, sizeof a, seed, memory);
        ck_assert_msg(status == (mode ? VPPS_DEVICE : VPPS_OK), "mode %u, seed %u: %s", mode, seed,
                      vpps_error_message());
        ck_assert_msg(!mode || strstr(vpps_error_message(), misuses[mode]), "mode %u: %s", mode, vpps_error_message());
    }
    free(piece.words);
}

/* Sequences of uses of a word by threads: whether the last use is a race. */
TEST(words_know_who_used_them) {
    enum { READ, WRITE };
    static const struct {
        struct {
            uint32_t thread, interval, warp;
            int write;
        } uses[3]; /* interval 0: no use */
        bool races;
    } cases[] = {
        {{{0, 1, 1, WRITE}, {1, 1, 1, READ}}, true},
        {{{0, 1, 1, WRITE}, {1, 1, 2, READ}}, false},
        {{{0, 1, 1, WRITE}, {40, 1, 9, READ}}, true},
        {{{0, 1, 1, WRITE}, {40, 2, 9, READ}}, false},
        {{{0, 1, 1, WRITE}, {0, 1, 1, READ}}, false},
        {{{0, 1, 1, WRITE}, {1, 1, 1, WRITE}}, true},
        {{{0, 1, 1, READ}, {1, 1, 1, WRITE}}, true},
        {{{0, 1, 1, READ}, {1, 1, 2, WRITE}}, false},
        {{{0, 1, 1, READ}, {40, 1, 9, WRITE}}, true},
        {{{0, 1, 1, READ}, {0, 1, 1, WRITE}}, false},
        {{{0, 1, 1, READ}, {1, 1, 1, READ}, {0, 1, 1, WRITE}}, true},
        {{{0, 1, 1, READ}, {1, 1, 1, READ}, {0, 1, 2, WRITE}}, false},
        {{{0, 1, 1, READ}, {40, 1, 9, READ}, {0, 1, 2, WRITE}}, true},
        {{{0, 1, 1, READ}, {40, 1, 9, READ}, {0, 2, 12, WRITE}}, false},
    };
    for (uint32_t i = 0; i < VPPS_COUNT(cases); i++) {
        vpps_simt_word word = {0};
        bool fine = true;
        for (uint32_t k = 0; k < 3 && cases[i].uses[k].interval; k++) {
            const vpps_simt_user by = {cases[i].uses[k].thread, cases[i].uses[k].interval, cases[i].uses[k].warp};
            uint32_t other;
            ck_assert(fine);
            fine = vpps_simt_use(&word, &by, cases[i].uses[k].write, &other);
        }
        ck_assert_msg(fine != cases[i].races, "case %u", i);
    }
}

TEST_GROUP("files");

static vpps_status stay_a_moment(const char *path, void *context) {
    (void)context;
    const struct timespec moment = {.tv_nsec = 1000000};
    nanosleep(&moment, NULL);
    return access(path, R_OK) == 0 ? VPPS_OK : VPPS_IO;
}

static void *write_files(void *failed) {
    for (uint32_t i = 0; i < 40; i++)
        if (vpps_simt_with_file("file", "x", 1, stay_a_moment, NULL)) *(bool *)failed = true;
    return NULL;
}

/* The processes that remove two threads' files do not wait for each other. */
TEST(threads_write_files_at_once) {
    pthread_t threads[4];
    bool failed[VPPS_COUNT(threads)] = {false};
    for (uint32_t i = 0; i < VPPS_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_files, &failed[i]), 0);
    for (uint32_t i = 0; i < VPPS_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        ck_assert(!failed[i]);
    }
}

TEST_GROUP("refused");

TEST_EACH(a_sanitizer_is_refused, 0, VPPS_SIMT_TSAN) {
    vpps_simt_kernel *kernel;
    double seconds;
    TEST_FAILS(vpps_simt_load(&kernel, vector_kernel, "test", &seconds), VPPS_DEVICE, "ThreadSanitizer");
}

int main(void) {
    cache_folder_make();
    draw_input();
    return test_main("simt");
}
