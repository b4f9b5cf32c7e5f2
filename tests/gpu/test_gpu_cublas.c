/* test_gpu_cublas.c - gradients of matrices by cuBLAS: compared with the double-precision reference in every precision; equal bits in every run;
 * numbers that are not finite; messages when cuBLAS fails. For software SIMT a stand-in is cuBLAS (tests/fake_cublas); on a GPU the real one is
 * tested, by the groups that ask nothing of a stand-in. */
#include "common/folder.h"
#include "gpu_trees.h"
#include "gpu_zoo.h"

#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

#include <sys/wait.h>
#include <unistd.h>

enum { N_PRECISIONS = VPPS_PRECISION_BF16 + 1, N_ALL = ZOO_LAYOUTS * N_PRECISIONS };

static const char *stand_in;

/* Returns number i of all layouts in all precisions. */
static const gpu_layout *layout_of(int number) { return &zoo_layouts[number % ZOO_LAYOUTS]; }
static vpps_options options_of(int number, vpps_optimizer_kind optimizer) {
    vpps_options o = gpu_options(layout_of(number), optimizer);
    o.precision = (vpps_precision)(number % N_PRECISIONS);
    o.gradients = VPPS_GRADIENTS_CUBLAS;
    return o;
}

static const char *text_of(const vpps_options *o, int number) {
    static char text[160];
    snprintf(text, sizeof text, "%s, %s", vpps_precision_names[o->precision], gpu_layout_text(layout_of(number)));
    return text;
}

/* ---------------------------------------------------------------- agreement */

TEST_GROUP("cublas", .seconds = 300);

/* With values of several columns, lists and shared matrices. */
GPU_EACH(random_graphs_agree, 1, test_everyday("random", N_PRECISIONS, N_ALL)) {
    enum { CASES = 2 };
    static const uint32_t sizes[RG_SIZES] = {33, 5, 16, 1};
    const uint32_t n = test_scaled(CASES);
    for (uint32_t i = 0; i < n; i++) {
        rg_case c;
        rg_draw(&c, test_seed() * 1000003 + 77000 + (uint32_t)_i * 100 + i, 12 + i);
        memcpy(c.sizes, sizes, sizeof c.sizes);
        if (!test_full()) c.batches = 1; /* a second batch has a kernel of its own */
        c.columns = 2 + (uint32_t)_i % 3;
        c.alike = true;
        vpps_options o = options_of(_i, i % 2 ? VPPS_ADAM : VPPS_MOMENTUM);
        if (o.precision != VPPS_PRECISION_FP32) o.optimizer = gpu_optimizer(VPPS_SGD);
        o.slices = 1 + (i + (uint32_t)_i) % 3;
        expect_agreement_on(&c, &o, layout_of(_i), i % 2 ? EPISODE_FORWARD : EPISODE_PARTS | EPISODE_REQUEST);
        if (i == 0) expect_agreement_on(&c, &o, layout_of(_i), EPISODE_HALVES);
    }
}

GPU_EACH(shapes_agree, 1, test_everyday("shapes", N_PRECISIONS, N_ALL)) {
    static const uint32_t chains[] = {5, 5}, size[] = {31, 40, 33, 8}; /* equally many chains: one kernel */
    AT_END(zoo_close) gpu_zoo zoo = zoo_of(size, 5);
    AT_END(zoo_forget) episode x = zoo_episode(&zoo, chains, VPPS_COUNT(chains));
    vpps_options o = options_of(_i, VPPS_SGD);
    expect_agreement(&x, &o, layout_of(_i), _i % 2 ? EPISODE_FORWARD : EPISODE_PARTS, NULL);
}

static void expect_gradients_by(vpps_handle *h, vpps_gradients way) {
    static const char *const makers[] = {"kernel", "kernel", "cublas", NULL, "cublas-tf32"};
    ck_assert_pstr_eq(stats_of(h).gradients, makers[way]);
}

/* Trains on some batches of trees; returns the parameters, which the caller frees. waits: each batch is waited for before the next. */
static float *train_trees(const vpps_options *o, uint32_t n_batches, bool waits, size_t *n) {
    AT_END(trees_close) gpu_trees t = trees_with(32, 24, o);
    for (uint32_t batch = 0; batch < n_batches; batch++) {
        trees_fb(&t, batch);
        if (waits) TEST_OK(vpps_sync_latest_loss(t.h, NULL));
    }
    const bool no_tf32 = o->gradients == VPPS_GRADIENTS_CUBLAS_TF32 && o->precision != VPPS_PRECISION_FP32;
    expect_gradients_by(t.h, no_tf32 ? VPPS_GRADIENTS_CUBLAS : o->gradients);
    float *values = handle_values(t.model, t.h, n);
    return values;
}

/* Sums have another order than the kernel's, but equal bits in every run, whatever the order of CTAs' turns, and whether a batch is queued or the
 * preceding one is waited for. */
GPU_EACH(trees_agree_and_repeat_bits, 2, test_everyday("trees", N_PRECISIONS, N_ALL)) {
    const uint32_t batches = _i < 2 ? 3 : 5;
    vpps_options o = options_of(_i, VPPS_SGD);
    const double tolerance = o.precision == VPPS_PRECISION_BF16 ? 2e-3 : 1e-5;
    size_t n;
    o.verify = false;
    FREED float *first = train_trees(&o, batches, false, &n);
    setenv("VPPS_SIMT_SEED", "7", 1);
    FREED float *second = train_trees(&o, batches, true, &n);
    ck_assert_msg(!memcmp(first, second, n * sizeof *first), "%s: bits differ", text_of(&o, _i));
    o.gradients = VPPS_GRADIENTS_DEFERRED;
    FREED float *kernel = train_trees(&o, batches, false, &n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)first[i] - (double)kernel[i]) <= tolerance * fmax(1, fabs((double)kernel[i])),
                      "%s: parameter %zu is %.9g, by the kernel %.9g", text_of(&o, _i), i, (double)first[i],
                      (double)kernel[i]);
}

/* TF32 is used only on request, and only if products are in fp32. */
GPU_EACH(tf32_is_by_choice, 2, N_PRECISIONS) {
    enum { BATCHES = 3 };
    vpps_options o = options_of(_i, VPPS_SGD);
    size_t n;
    o.verify = false;
    FREED float *exact = train_trees(&o, BATCHES, false, &n);
    o.gradients = VPPS_GRADIENTS_CUBLAS_TF32;
    FREED float *rounded = train_trees(&o, BATCHES, false, &n);
    const bool same = !memcmp(exact, rounded, n * sizeof *exact);
    ck_assert_msg(same == (o.precision != VPPS_PRECISION_FP32), "%s", text_of(&o, _i));
    for (size_t i = 0; i < n; i++) ck_assert_float_le(fabsf(exact[i] - rounded[i]), 1e-3f * fmaxf(1, fabsf(exact[i])));
}

/* Matrices of one shape in one cell take one call: in a Tree-LSTM those of leaves, of inner vertices, and of the classifier. */
TEST_EACH(products_of_one_shape_are_one_call, 0, gpu_is_simulated()) {
    char line[128];
    vpps_options o = options_of(0, VPPS_SGD);
    uint32_t calls = 0, products = 0;
    size_t n;
    folder_make();
    setenv("FAKE_CUBLAS_LOG", folder_path("log"), 1);
    free(train_trees(&o, 1, false, &n));
    FILE *f = fopen(folder_path("log"), "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        int columns, rows, depth, batch;
        ck_assert_int_eq(sscanf(line, "%d %d %d %d", &columns, &rows, &depth, &batch), 4);
        calls++;
        products += (uint32_t)batch;
    }
    fclose(f);
    ck_assert_msg(calls >= 2 && calls <= 4 && products > 10, "%u calls of %u products", calls, products);
}

enum { SIDE = 8 };

/* Calls vpps_backward for a vertex with a list of 3 members and for one with an empty list, in either order: the later gradients are added. Gives the
 * gradients of W, which the cell multiplies three times, and of V, over the list, for both orders. */
static void add_parts(const vpps_options *o, float gradients[2][2][SIDE * SIDE]) {
    enum { MEMBERS = 3, PARTS = 2 };
    float numbers[SIDE];
    vpps_param params[2];
    for (uint32_t i = 0; i < SIDE; i++) numbers[i] = 0.1f * (float)(i + 1);
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_matrix(t.model, &params[0], "W", SIDE, SIDE, NULL));
    TEST_OK(vpps_add_matrix(t.model, &params[1], "V", SIDE, SIDE, NULL));
    vpps_graph *r = begin_cell(t.model, "parts");
    vpps_node x = vpps_pull(r, SIDE, 1);
    const vpps_node list = vpps_tanh(r, vpps_matvec(r, params[1], vpps_pull_list(r, SIDE, 1)));
    for (uint32_t i = 0; i < 3; i++) x = vpps_tanh(r, vpps_matvec(r, params[0], x));
    TEST_OK(vpps_push(r, vpps_sum_elements(r, vpps_add(r, x, vpps_sum(r, 1, &list)))));
    const vpps_cell cell = end_cell(r);
    training_start(&t, o);
    for (uint32_t order = 0; order < PARTS; order++) {
        for (uint32_t part = 0; part < PARTS; part++) {
            vpps_graph_clear(t.g);
            const vpps_node input = vpps_input(t.g, SIDE, 1, numbers), members[MEMBERS] = {input, input, input};
            const vpps_node *const lists[] = {members};
            const vpps_vertex vertex = APPLY(t.g, cell, PULLS(1, &input), .n_pull_lists = 1, .pull_lists = lists,
                                             .n_members = part == order ? MEMBERS : 0);
            TEST_OK(vpps_backward(t.h, t.g, vpps_pushed(t.g, vertex, 0), NULL));
        }
        TEST_OK(vpps_read_gradients(t.h));
        for (uint32_t k = 0; k < 2; k++) {
            vpps_gradient gradient = {.size = sizeof gradient};
            TEST_OK(vpps_param_gradient(t.model, params[k], &gradient));
            memcpy(gradients[order][k], gradient.values, sizeof gradients[order][k]);
        }
        TEST_OK(vpps_zero_gradients(t.h));
    }
}

TEST(parts_of_a_gradient_add_up) {
    float got[2][2][SIDE * SIDE], want[2][2][SIDE * SIDE];
    const vpps_options o = options_of(0, VPPS_SGD), cpu = default_options();
    add_parts(&o, got);
    add_parts(&cpu, want);
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        for (uint32_t k = 0; k < 4; k++) ck_assert_float_eq_tol(got[k / 2][k % 2][i], want[k / 2][k % 2][i], 1e-5f);
}

/* ---------------------------------------------------------------- what is not finite */

/* In make test, test_gpu_queue.c does this. */
TEST_EACH(what_is_not_finite_changes_nothing, 1, gpu_end("what_is_not_finite_changes_nothing", 1, 3)) {
    static const uint32_t size[] = {31, 33, 40, 7};
    const bool skip = _i == 2;
    size_t n;
    vpps_options o = options_of(0, VPPS_SGD);
    o.nonfinite = skip ? VPPS_NONFINITE_SKIP : VPPS_NONFINITE_STOP;
    AT_END(zoo_close) gpu_zoo zoo = zoo_with(size, 9, &o);
    float loss = train_batch(zoo.h, zoo.g, zoo_build(&zoo, zoo.g, 2, 1, 0.1f));
    ck_assert(isfinite(loss) && loss != 0);
    FREED float *before = handle_values(zoo.model, zoo.h, &n);
    TEST_OK(vpps_fb(zoo.h, zoo.g, zoo_build(&zoo, zoo.g, 2, 1, INFINITY), NULL));
    const vpps_node next = zoo_build(&zoo, zoo.g, 2, 3, 0.1f);
    if (!skip) TEST_FAILS(vpps_fb(zoo.h, zoo.g, next, NULL), VPPS_NONFINITE, "batch 2");
    float *after = handle_values(zoo.model, zoo.h, &n);
    ck_assert_msg(!memcmp(before, after, n * sizeof *before), "parameters have changed");
    free(after);
    loss = train_batch(zoo.h, zoo.g, next); /* training goes on */
    ck_assert(isfinite(loss));
    after = handle_values(zoo.model, zoo.h, &n);
    ck_assert(memcmp(before, after, n * sizeof *before) != 0);
    free(after);
}

/* ---------------------------------------------------------------- failures */

static void check_none(const char *message) {
    AT_END(trees_close) gpu_trees t = trees_of(32, 24);
    const vpps_options o = options_of(0, VPPS_SGD);
    TEST_FAILS(vpps_handle_create(&t.h, t.model, &o), VPPS_DEVICE, message);
}

TEST(a_library_that_is_missing_is_told) {
    setenv("VPPS_LIBCUBLAS", "/nowhere/libcublas.so", 1);
    check_none("/nowhere/libcublas.so, which VPPS_LIBCUBLAS names");
    setenv("VPPS_LIBCUBLAS", "", 1);
    if (gpu_is_simulated()) check_none("there is no cuBLAS here");
}

TEST(another_library_is_told) {
    setenv("VPPS_LIBCUBLAS", "libm.so.6", 1);
    check_none("no function cublas");
}

TEST_EACH(a_library_that_is_too_old_is_told, 0, gpu_is_simulated()) {
    size_t n;
    folder_make();
    char *library = folder_load(stand_in, &n);
    const char *old = folder_path("libcublas.so.11");
    folder_store(old, library, n);
    free(library);
    setenv("VPPS_LIBCUBLAS", old, 1);
    check_none("version 11 is too old; expected 12");
}

/* If a call fails, the handle is not created, or the batch changes nothing. */
TEST_EACH(a_call_that_fails_is_told, 0, gpu_is_simulated()) {
    static const char *const setting_up[] = {"cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2",
                                             "cublasSetAtomicsMode", "cublasSetMathMode"};
    size_t n;
    const vpps_options o = options_of(0, VPPS_SGD);
    for (size_t i = 0; i < VPPS_COUNT(setting_up); i++) {
        setenv("FAKE_CUBLAS_FAILS", setting_up[i], 1);
        check_none(setting_up[i]);
    }
    setenv("FAKE_CUBLAS_FAILS", "cublasGemmBatchedEx", 1);
    AT_END(trees_close) gpu_trees t = trees_with(32, 24, &o);
    FREED float *before = model_values(t.model, &n);
    vpps_status status = vpps_fb(t.h, t.g, trees_build(&t, 0), NULL);
    if (status == VPPS_OK) status = vpps_sync_latest_loss(t.h, NULL);
    ck_assert_int_eq(status, VPPS_DEVICE);
    ck_assert_msg(strstr(vpps_error_message(), "cublasGemmBatchedEx"), "%s", vpps_error_message());
    vpps_read_parameters(t.h);
    FREED float *after = model_values(t.model, &n);
    ck_assert(!memcmp(before, after, n * sizeof *before));
}

/* ---------------------------------------------------------------- the profile */

/* The profile tries cuBLAS last; without cuBLAS, training continues. */
TEST_EACH(the_profile_tries_it, 0, 2) {
    enum { BATCHES = 2 * (1 + VPPS_GPU_MEASURED) + 4 };
    const bool there = _i;
    vpps_trial trials[4] = {{.size = sizeof *trials}};
    uint32_t n = VPPS_COUNT(trials);
    bool done;
    vpps_options o = options_of(0, VPPS_SGD);
    cache_folder_make();
    if (!there) setenv("VPPS_LIBCUBLAS", "/nowhere", 1);
    o.gradients = VPPS_GRADIENTS_AUTO;
    o.no_tuning = o.verify = false;
    gpu_trees t = trees_with(32, 24, &o);
    ck_assert_ptr_null(stats_of(t.h).gradients);
    for (uint32_t batch = 0; batch < BATCHES; batch++) trees_fb(&t, batch % 2);
    TEST_OK(vpps_handle_trials(t.h, trials, &n, &done));
    expect_gradients_by(t.h, trials[trials[1].state == VPPS_TRIAL_CURRENT].gradients);
    trees_close(&t);
    ck_assert(done);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(trials[0].gradients, VPPS_GRADIENTS_DEFERRED);
    ck_assert_int_eq(trials[1].gradients, VPPS_GRADIENTS_CUBLAS);
    ck_assert_uint_eq(trials[1].threads, trials[0].threads);
    ck_assert_double_gt(trials[0].ns_per_node, 0);
    ck_assert(there ? trials[1].ns_per_node > 0 : trials[1].state == VPPS_TRIAL_REJECTED);
    const bool faster = there && trials[1].ns_per_node < trials[0].ns_per_node;
    ck_assert_int_eq(trials[faster].state, VPPS_TRIAL_CURRENT);
}

/* cuBLAS is tried with the rows and threads of the fastest candidate, and remembered with them. */
TEST_EACH(the_profile_tries_it_as_the_fastest, 0, gpu_is_simulated()) {
    vpps_options o = default_options();
    o.device = "simt";
    o.no_tuning = false;
    o.gradients = VPPS_GRADIENTS_AUTO;
    for (uint32_t fastest = 0, n = 1; fastest < n; fastest++) {
        vpps_trial tried = {.size = 0};
        cache_folder_make();
        for (uint32_t handle = 0; handle < 2; handle++) {
            AT_END(trees_close) gpu_trees t = trees_with(32, 24, &o);
            vpps_profile *p = &t.h->device->profile;
            vpps_trial *cublas = &p->trials[n = p->n - 1];
            for (uint32_t i = 0; i < n && !handle; i++) {
                p->trials[i].state = VPPS_TRIAL_MEASURED;
                p->trials[i].ns_per_node = i == fastest ? 2 : 3;
                if (!p->trials[i].rpw) p->trials[i].rpw = 1;
            }
            for (uint32_t turn = 0; turn < 2 && !handle; turn++, cublas->ns_per_node = 1)
                TEST_OK(t.h->device->table->tune(t.h->device));
            if (!handle) tried = p->trials[fastest];
            ck_assert(p->done && p->current == n);
            ck_assert_uint_eq(cublas->rpw, tried.rpw);
            ck_assert_uint_eq(cublas->threads, tried.threads);
        }
    }
}

/* ---------------------------------------------------------------- all */

/* Finds it out in a process of its own, since a process that has used the driver cannot fork tests that use it. */
static bool is_missing(void) {
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const vpps_options o = options_of(0, VPPS_SGD);
        gpu_trees t = trees_of(32, 24);
        const bool missing =
            vpps_handle_create(&t.h, t.model, &o) == VPPS_DEVICE && strstr(vpps_error_message(), "cuBLAS");
        if (missing) printf("skipped: %s\n", vpps_error_message());
        fflush(NULL);
        _exit(missing);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status);
}

int main(void) {
    stand_in = test_beside("fake_cublas.so");
    if (gpu_is_simulated()) setenv("VPPS_LIBCUBLAS", stand_in, 1);
    if (!gpu_is_simulated() && is_missing()) return 0;
    test_in_parts();
    return gpu_main("cublas");
}
