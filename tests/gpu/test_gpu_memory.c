/* test_gpu_memory.c - a GPU without enough memory: a batch or a kernel that does not fit is refused, and nothing else changes. The driver is software
 * SIMT's with a limit on allocations. */
#include "common/folder.h"
#include "gpu_trees.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

enum { HIDDEN = 16, PARTS = 32, LARGE = 20000 / PARTS * PARTS }; /* elements: more than a batch of trees takes */

/* ---------------------------------------------------------------- a driver with little memory */

static struct {
    struct {
        uint64_t address;
        size_t bytes;
    } held[256];
    size_t n, used, peak, limit;
    bool launches_fail, loads_fail;
} memory;

static vpps_status allocate(vpps_driver *d, size_t bytes, uint64_t *address) {
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

static vpps_status launch(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape, const void *arguments,
                          size_t bytes) {
    if (memory.launches_fail) return vpps_fail(VPPS_DEVICE, "the test's device is gone");
    return vpps_driver_simt.launch(d, kernel, shape, arguments, bytes);
}

static vpps_status load(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report) {
    if (memory.loads_fail) return vpps_fail(VPPS_MEMORY, "the test's device has no room for a kernel");
    return vpps_driver_simt.load(d, source, description, shape, out, report);
}

/* Makes a network with a handle on such a device. */
static gpu_trees open_trees(vpps_optimizer_kind optimizer) {
    static vpps_driver_table driver;
    vpps_options o = default_options();
    o.device = "simt";
    o.no_tuning = true;
    o.optimizer = gpu_optimizer(optimizer);
    o.threads = 64;
    driver = vpps_driver_simt;
    driver.allocate = allocate;
    driver.release = release;
    driver.launch = launch;
    driver.load = load;
    memory.n = memory.used = 0;
    memory.limit = SIZE_MAX;
    memory.launches_fail = memory.loads_fail = false;
    return trees_driven_by(&driver, HIDDEN, HIDDEN, &o);
}

static void close_trees(gpu_trees *t) {
    trees_close(t);
    ck_assert_uint_eq(memory.n, 0);
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
    AT_END(close_trees) gpu_trees t = open_trees(VPPS_ADAM);
    for (uint32_t b = 0; b < n; b++) losses[b] = trees_step(&t, b);
}

/* Returns a network that has trained on two batches. */
static gpu_trees open_trained(void) {
    gpu_trees t = open_trees(VPPS_ADAM);
    for (uint32_t b = 0; b < 2; b++) trees_step(&t, b);
    return t;
}

/* ---------------------------------------------------------------- the pool */

/* Free memory when the large graph comes: for both pools, for only the larger one, for neither. */
typedef enum room { ROOM_FOR_BOTH, ROOM_FOR_ONE, ROOM_FOR_NONE, ROOMS } room;

/* Returns the free bytes. `old`: the pool's bytes; `all`: bytes that the large graph needs besides; `pool`: of these, its pool's least. */
static size_t free_in(room r, size_t old, size_t all, size_t pool) {
    return r == ROOM_FOR_BOTH ? all : r == ROOM_FOR_ONE ? all - pool / 4 - old / 2 : all - pool / 4 - 2 * old;
}

TEST_GROUP("memory", .seconds = 120);

TEST_EACH(a_pool_that_does_not_fit_loses_nothing, 0, ROOMS) {
    float losses[4], sum = 0;
    size_t n;
    gpu_trees t = open_trees(VPPS_ADAM);
    for (uint32_t b = 0; b < 4; b++) losses[b] = trees_step(&t, b);
    size_t used = memory.peak = memory.used;
    const size_t old = gpu_of(&t)->pool.bytes;
    TEST_OK(run_large(&t, &sum));
    const size_t all = memory.peak - used, pool = gpu_of(&t)->pool.bytes / 5 * 4; /* a quarter larger than needed */
    ck_assert_uint_gt(pool / 4, old);
    close_trees(&t);

    t = open_trained();
    float *before = handle_values(t.model, t.h, &n);
    used = memory.peak = memory.used;
    memory.limit = used + free_in((room)_i, old, all, pool);
    if (_i != ROOM_FOR_NONE) {
        TEST_OK(run_large(&t, &sum));
        ck_assert_float_eq_tol(sum, LARGE, 1);
        ck_assert_int_eq(memory.peak >= used + all, _i == ROOM_FOR_BOTH); /* the old one is freed last */
    } else {
        for (int twice = 0; twice < 2; twice++) TEST_FAILS(run_large(&t, &sum), VPPS_MEMORY, "is full");
    }
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
    gpu_trees t = open_trained();
    float *before = handle_values(t.model, t.h, &n);
    memory.limit = memory.used - gpu_of(&t)->pool.bytes;
    TEST_FAILS(run_large(&t, &sum), VPPS_MEMORY, "is full");
    ck_assert_uint_eq(gpu_of(&t)->pool.bytes, 0);
    TEST_FAILS(vpps_save(t.h, folder_path("run"), NULL, 0), VPPS_MEMORY, "is full");
    TEST_FAILS(vpps_fb(t.h, t.g, trees_build(&t, 2), NULL), VPPS_MEMORY, "is full");
    memory.limit = SIZE_MAX;
    TEST_OK(vpps_save(t.h, folder_path("run"), NULL, 0));
    expect_kept(&t, before, n);
    ck_assert_float_eq(trees_step(&t, 2), losses[2]);
    close_trees(&t);
}

/* ---------------------------------------------------------------- kernels */

/* A batch whose kernel does not fit does not run, and can be run again. */
TEST(a_kernel_that_does_not_fit_loses_nothing) {
    float losses[3], sum;
    size_t n;
    train_freely(losses, 3);
    AT_END(close_trees) gpu_trees t = open_trees(VPPS_ADAM);
    memory.loads_fail = true;
    TEST_FAILS(vpps_fb(t.h, t.g, trees_build(&t, 0), NULL), VPPS_MEMORY, "no room for a kernel");
    memory.loads_fail = false;
    for (uint32_t b = 0; b < 2; b++) ck_assert_float_eq(trees_step(&t, b), losses[b]);
    float *before = handle_values(t.model, t.h, &n);
    memory.loads_fail = true; /* a kernel with other cells */
    TEST_FAILS(run_large(&t, &sum), VPPS_MEMORY, "no room for a kernel");
    memory.loads_fail = false;
    expect_kept(&t, before, n);
    ck_assert_float_eq(trees_step(&t, 2), losses[2]);
}

/* ---------------------------------------------------------------- a device that is gone */

TEST(a_broken_handle_refuses_to_save) {
    float sum;
    size_t n, bytes;
    folder_make();
    const char *path = folder_path("run");
    folder_store(path, "", 0);
    gpu_trees t = open_trees(VPPS_SGD);
    trees_step(&t, 0);
    float *before = handle_values(t.model, t.h, &n);
    memory.launches_fail = true;
    TEST_FAILS(run_large(&t, &sum), VPPS_DEVICE, "forward: the test's device is gone");
    memory.launches_fail = false;
    TEST_FAILS(vpps_save(t.h, path, NULL, 0), VPPS_DEVICE, "forward: the test's device is gone");
    TEST_FAILS(vpps_read_parameters(t.h), VPPS_DEVICE, "forward: the test's device is gone");
    free(folder_load(path, &bytes));
    ck_assert_uint_eq(bytes, 0);
    float *after = model_values(t.model, &n);
    ck_assert_int_eq(memcmp(before, after, n * sizeof *before), 0);
    free(before);
    free(after);
    close_trees(&t);
}

int main(void) { return gpu_main("gpu memory"); }
