/* test_gpu_memory.c - a GPU without enough memory: a batch or a kernel that does not fit is refused, and nothing else changes. The driver is software
 * SIMT's with a limit on allocations. */
#include "base/hash.h"
#include "common/folder.h"
#include "gpu_trees.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"
#include "runtime/simt/simt.h"

enum { PARTS = 32, LARGE = 20000 / PARTS * PARTS }; /* elements: more than a batch of trees takes */

/* ---------------------------------------------------------------- a driver with little memory */

static struct {
    struct {
        uint64_t address;
        size_t bytes;
    } held[256];
    size_t n, used, peak, limit;
    uint32_t left; /* allocations up to the one that is refused, which counts; 0: none is refused */
    bool launches_fail;
    vpps_status loads_fail; /* VPPS_OK: they do not */
} memory;

static bool is_refused(void) { return memory.left && --memory.left == 0; }

static vpps_status allocate(vpps_driver *d, size_t bytes, uint64_t *address) {
    if (is_refused()) return vpps_fail(VPPS_MEMORY, "the test's device refuses an allocation");
    if (memory.used + bytes > memory.limit) return vpps_fail(VPPS_MEMORY, "the test's device is full");
    TEST_OK(vpps_driver_simt.allocate(d, bytes, address));
    ck_assert_uint_lt(memory.n, VPPS_COUNT(memory.held));
    memory.held[memory.n].address = *address;
    memory.held[memory.n++].bytes = bytes;
    memory.used += bytes;
    if (memory.used > memory.peak) memory.peak = memory.used;
    return VPPS_OK;
}

static void release(vpps_driver *d, uint64_t address) {
    for (size_t i = 0; i < memory.n; i++) {
        if (memory.held[i].address != address) continue;
        memory.used -= memory.held[i].bytes;
        memory.held[i] = memory.held[--memory.n];
        break;
    }
    vpps_driver_simt.release(d, address);
}

static vpps_status allocate_host(vpps_driver *d, size_t bytes, void **out) {
    if (is_refused()) return vpps_fail(VPPS_MEMORY, "the test's device refuses pinned memory");
    return vpps_driver_simt.allocate_host(d, bytes, out);
}

static vpps_status launch(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape, const void *arguments,
                          size_t bytes) {
    if (memory.launches_fail) return vpps_fail(VPPS_DEVICE, "the test's device is gone");
    if (is_refused()) return vpps_fail(VPPS_MEMORY, "the test's device has no memory for a launch");
    return vpps_driver_simt.launch(d, kernel, shape, arguments, bytes);
}

static vpps_status load(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report) {
    if (memory.loads_fail) return vpps_fail(memory.loads_fail, "the test's device has no room for a kernel");
    return vpps_driver_simt.load(d, source, description, shape, out, report);
}

/* Makes a network with a handle on such a device. */
static gpu_trees open_trees(void) {
    static vpps_driver_table driver;
    vpps_options o = trees_options();
    o.device = "simt";
    o.pool_bytes = 0; /* what a batch needs */
    driver = vpps_driver_simt;
    driver.allocate = allocate;
    driver.allocate_host = allocate_host;
    driver.release = release;
    driver.launch = launch;
    driver.load = load;
    memory.n = memory.used = 0;
    memory.limit = SIZE_MAX;
    memory.left = 0;
    memory.launches_fail = false;
    memory.loads_fail = VPPS_OK;
    return trees_driven_by(&driver, TREES_HIDDEN, TREES_EMBED, &o);
}

static void close_trees(gpu_trees *t) {
    trees_close(t);
    ck_assert_uint_eq(vpps_simt_live_allocations(), 0);
}

static vpps_gpu *gpu_of(const gpu_trees *t) { return (vpps_gpu *)t->h->device; }

/* Runs a graph whose values take more than the pool of a batch of trees; gives its result. */
static vpps_status run_large(gpu_trees *t, float *sum) {
    static float zeros[LARGE / PARTS];
    vpps_node parts[PARTS];
    float *const outs[] = {sum};
    vpps_graph_clear(t->g);
    const vpps_node part = vpps_input(t->g, LARGE / PARTS, 1, zeros);
    for (uint32_t i = 0; i < PARTS; i++) parts[i] = part;
    const vpps_node total = vpps_sum_elements(t->g, vpps_exp(t->g, vpps_concat(t->g, PARTS, parts)));
    return vpps_forward(t->h, t->g, 1, &total, outs);
}

/* Checks that the handle still has these parameters, and frees them. */
static void expect_kept(const gpu_trees *t, float *before, size_t n) {
    FREED float *after = handle_values(t->model, t->h, &n);
    ck_assert_int_eq(memcmp(before, after, n * sizeof *before), 0);
    free(before);
}

/* Computes the losses of so many batches without a limit. */
static void train_freely(float *losses, uint32_t n) {
    AT_END(close_trees) gpu_trees t = open_trees();
    for (uint32_t b = 0; b < n; b++) losses[b] = trees_step(&t, b);
}

/* Returns a network that has trained on two batches. */
static gpu_trees open_trained(void) {
    gpu_trees t = open_trees();
    for (uint32_t b = 0; b < 2; b++) trees_step(&t, b);
    return t;
}

/* ---------------------------------------------------------------- the pool */

TEST_GROUP("memory", .seconds = 120);

/* There is room for a pool a quarter larger than needed, for one as large as needed, for none. */
TEST_EACH(a_pool_that_does_not_fit_loses_nothing, 0, 3) {
    float losses[4], sum = 0;
    size_t n;
    train_freely(losses, 4);
    gpu_trees t = open_trained();
    size_t used = memory.peak = memory.used;
    TEST_OK(run_large(&t, &sum));
    const size_t all = memory.peak - used, pool = gpu_of(&t)->pool.bytes / 5 * 4; /* a quarter larger than needed */
    close_trees(&t);

    t = open_trained();
    float *before = handle_values(t.model, t.h, &n);
    used = memory.peak = memory.used;
    memory.limit = used + all - (size_t)_i * (pool / 4);
    if (_i < 2) {
        TEST_OK(run_large(&t, &sum));
        ck_assert_float_eq_tol(sum, LARGE, 1);
        ck_assert_int_eq(memory.peak == used + all, !_i);
    } else {
        for (int twice = 0; twice < 2; twice++) TEST_FAILS(run_large(&t, &sum), VPPS_MEMORY, "is full");
    }
    memory.limit = SIZE_MAX;
    expect_kept(&t, before, n);
    for (uint32_t b = 2; b < 4; b++) ck_assert_float_eq(trees_step(&t, b), losses[b]);
    close_trees(&t);
}

/* Another process may take memory that was given back. */
TEST(without_any_pool_the_parameters_stay_on_the_host) {
    float losses[3], sum;
    size_t n;
    folder_make();
    train_freely(losses, 3);
    AT_END(close_trees) gpu_trees t = open_trained();
    vpps_value kept;
    vpps_param table;
    t.h->options.keep_bytes = 1024;
    TEST_OK(vpps_keep_data(t.h, 1, 1, (const float[]){1}, &kept)); /* reserves room */
    for (table = 0; t.model->params[table].kind != VPPS_LOOKUP;) table++;
    float *before = handle_values(t.model, t.h, &n);
    memory.limit = memory.used - gpu_of(&t)->pool.bytes;
    TEST_FAILS(run_large(&t, &sum), VPPS_MEMORY, "is full");
    ck_assert_uint_eq(gpu_of(&t)->pool.bytes, 0);
    const vpps_node loss = trees_build(&t, 2);
    TEST_OK(vpps_keep(t.h, t.g, vpps_lookup(t.g, table, 1), &kept)); /* to be copied before the launch */
    TEST_FAILS(vpps_fb(t.h, t.g, loss, NULL), VPPS_MEMORY, "is full");
    TEST_FAILS(vpps_save(t.h, folder_path("run"), NULL, 0), VPPS_MEMORY, "is full");
    TEST_FAILS(vpps_fb(t.h, t.g, trees_build(&t, 2), NULL), VPPS_MEMORY, "is full");
    memory.limit = SIZE_MAX;
    TEST_OK(vpps_save(t.h, folder_path("run"), NULL, 0));
    expect_kept(&t, before, n);
    ck_assert_float_eq(trees_step(&t, 2), losses[2]);
}

/* ---------------------------------------------------------------- calls without memory */

/* What finds no memory: a call that is then repeated; an update that is not; a kernel, or a pool, of a batch before the update. */
typedef enum failure { FB, BACKWARD, STEP_BACKWARD, UPDATE, UPDATE_GIVEN_UP, NO_KERNEL, NO_POOL, FAILURES } failure;

static vpps_status make_call(const gpu_trees *t, failure call, vpps_node loss) {
    const float one = 1, *const gradients[] = {&one};
    if (call == FB) return vpps_fb(t->h, t->g, loss, NULL);
    if (call == BACKWARD) return vpps_backward(t->h, t->g, loss, NULL);
    return call == STEP_BACKWARD ? vpps_step_backward(t->h, 1, gradients) : vpps_update(t->h);
}

/* Makes a call, of which allocation k is refused (0: none); during an update of which one may be, a parameter is frozen. Returns whether one was. */
static bool refuse(const gpu_trees *t, failure call, vpps_node loss, uint32_t k) {
    memory.left = k;
    vpps_freeze(t->model, 1, k && call == UPDATE);
    const vpps_status status = make_call(t, call, loss);
    vpps_freeze(t->model, 1, false);
    const bool came = k && !memory.left;
    memory.left = 0;
    ck_assert_int_eq(status, came ? VPPS_MEMORY : VPPS_OK);
    return came;
}

/* Makes a call fail for lack of a kernel for two groups, or for lack of a pool, after which there is none. */
static void fail_otherwise(gpu_trees *t, failure f) {
    float sum;
    memory.loads_fail = f == NO_KERNEL ? VPPS_MEMORY : VPPS_OK;
    memory.limit = f == NO_POOL ? memory.used - gpu_of(t)->pool.bytes : SIZE_MAX;
    t->h->options.groups = 2;
    if (f == NO_KERNEL) TEST_FAILS(vpps_backward(t->h, t->g, trees_build(t, 1), NULL), VPPS_MEMORY, "no room");
    if (f == NO_POOL) TEST_FAILS(run_large(t, &sum), VPPS_MEMORY, "is full");
    ck_assert_int_eq(gpu_of(t)->pool.bytes == 0, f == NO_POOL);
    t->h->options.groups = 1;
    memory.loads_fail = VPPS_OK;
    memory.limit = SIZE_MAX;
}

/* Trains: the k-th time (0: never) that there is something to fail, it does. Returns whether it did. Every launch allocates, as none came before it in
 * its slot. Gives the losses, and a hash of the parameters. */
static bool learn(uint64_t learned[4], failure f, uint32_t k) {
    const failure calls[] = {f == STEP_BACKWARD ? f : BACKWARD, UPDATE, FB};
    float value, *const outs[] = {&value};
    size_t n;
    AT_END(close_trees) gpu_trees t = open_trees();
    t.h->options.groups = 1;
    TEST_OK(vpps_backward(t.h, t.g, trees_build(&t, 0), NULL));
    bool came = f >= NO_KERNEL && k == 1;
    if (came) fail_otherwise(&t, f);
    if (f == UPDATE_GIVEN_UP && k) came = refuse(&t, UPDATE, VPPS_NO_NODE, k);
    for (uint32_t i = f >= NO_KERNEL; i < VPPS_COUNT(calls); i++) {
        const vpps_node loss = trees_build(&t, 1 + i);
        if (calls[i] == STEP_BACKWARD)
            TEST_OK(vpps_step_forward(t.h, t.g, VPPS_REQUEST(.n_values = 1, .values = &loss, .value_outs = outs)));
        const bool refused = refuse(&t, calls[i], loss, calls[i] == f ? k : 0);
        if (refused) TEST_OK(make_call(&t, calls[i], loss));
        TEST_OK(vpps_sync_latest_loss(t.h, &value));
        learned[i] = vpps_hash_bytes(&value, sizeof value, 0);
        came |= refused;
    }
    FREED float *values = handle_values(t.model, t.h, &n);
    learned[3] = vpps_hash_bytes(values, n * sizeof *values, 0);
    return came;
}

TEST_EACH(a_call_without_memory_changes_nothing, 0, FAILURES) {
    uint64_t right[4] = {0}, learned[4] = {0};
    uint32_t k = 1;
    for (learn(right, (failure)_i, 0); learn(learned, (failure)_i, k); k++)
        ck_assert_msg(!memcmp(learned, right, sizeof right), "trained otherwise after allocation %u was refused", k);
    ck_assert_uint_gt(k, _i >= NO_KERNEL ? 1 : 3);
}

/* ---------------------------------------------------------------- kernels */

/* Trains on the square of a batch's loss, which needs a kernel of its own. */
static vpps_status train_squared(gpu_trees *t) {
    const vpps_node loss = trees_build(t, 0);
    return vpps_fb(t->h, t->g, vpps_mul(t->g, loss, loss), NULL);
}

/* A batch whose kernel does not fit, or is not compiled, does not run, and can be run again; others run in between. */
TEST(a_kernel_that_cannot_be_loaded_loses_nothing) {
    static const vpps_status failures[] = {VPPS_MEMORY, VPPS_DEVICE};
    float losses[3], sum;
    size_t n;
    train_freely(losses, 3);
    AT_END(close_trees) gpu_trees t = open_trees();
    for (int i = 0; i < 2; i++) {
        memory.loads_fail = failures[i];
        TEST_FAILS(vpps_fb(t.h, t.g, trees_build(&t, 0), NULL), failures[i], "no room for a kernel");
    }
    memory.loads_fail = VPPS_OK;
    for (uint32_t b = 0; b < 2; b++) ck_assert_float_eq(trees_step(&t, b), losses[b]);
    float *before = handle_values(t.model, t.h, &n);
    memory.loads_fail = VPPS_DEVICE; /* of kernels with other cells */
    for (int twice = 0; twice < 2; twice++) TEST_FAILS(train_squared(&t), VPPS_DEVICE, "no room for a kernel");
    memory.loads_fail = VPPS_POOL;
    TEST_FAILS(run_large(&t, &sum), VPPS_POOL, "no room for a kernel");
    memory.loads_fail = VPPS_OK;
    expect_kept(&t, before, n);
    ck_assert_float_eq(trees_step(&t, 2), losses[2]);
    TEST_OK(train_squared(&t));
    TEST_OK(vpps_sync_latest_loss(t.h, &sum));
    ck_assert_uint_eq(t.model->batches, 4); /* those that ran */
}

/* ---------------------------------------------------------------- a device that is gone */

TEST(a_broken_handle_refuses_to_save) {
    float sum;
    size_t n, bytes;
    folder_make();
    const char *path = folder_path("run");
    folder_store(path, "", 0);
    AT_END(close_trees) gpu_trees t = open_trees();
    trees_step(&t, 0);
    FREED float *before = handle_values(t.model, t.h, &n);
    memory.launches_fail = true;
    TEST_FAILS(run_large(&t, &sum), VPPS_DEVICE, "forward: the test's device is gone");
    memory.launches_fail = false;
    TEST_FAILS(vpps_save(t.h, path, NULL, 0), VPPS_DEVICE, "forward: the test's device is gone");
    TEST_FAILS(vpps_read_parameters(t.h), VPPS_DEVICE, "forward: the test's device is gone");
    free(folder_load(path, &bytes));
    ck_assert_uint_eq(bytes, 0);
    FREED float *after = model_values(t.model, &n);
    ck_assert_int_eq(memcmp(before, after, n * sizeof *before), 0);
}

int main(void) { return gpu_main("gpu memory"); }
