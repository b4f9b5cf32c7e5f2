/* test_gpu_ahead.c - kernels that are compiled ahead, in threads beside training: for inference, and for another number of groups. The device is
 * software SIMT, whose driver compiles nothing ahead; here it gets a function that keeps the sources that it gets. When a kernel is loaded, the test
 * sees whether its source is among them. Kernels run, so that their results are compared, too. */
#include "gpu_trees.h"
#include "runtime/cores.h"
#include "runtime/gpu/driver.h"
#include "runtime/handle.h"

#include <pthread.h>

enum { MOST_SOURCES = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *sources[MOST_SOURCES];
static uint32_t n_sources, loads, ready; /* ready: loads of sources that were prepared before */

static vpps_status prepare(vpps_driver *d, const char *source, const char *description, vpps_cubin_report *report) {
    (void)d, (void)description;
    pthread_mutex_lock(&lock);
    if (n_sources < MOST_SOURCES) sources[n_sources++] = strdup(source);
    pthread_mutex_unlock(&lock);
    *report = (vpps_cubin_report){0};
    return VPPS_OK;
}

static vpps_status load(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report) {
    pthread_mutex_lock(&lock);
    loads++;
    for (uint32_t i = 0; i < n_sources; i++)
        if (!strcmp(sources[i], source)) {
            ready++;
            break;
        }
    pthread_mutex_unlock(&lock);
    return vpps_driver_simt.load(d, source, description, shape, out, report);
}

static void expect_kernels(uint32_t loaded, uint32_t ahead) {
    ck_assert_uint_eq(loads, loaded);
    ck_assert_uint_eq(ready, vpps_cores_allowed() > 1 ? ahead : 0);
}

/* Makes a handle whose driver compiles ahead, or not. */
static gpu_trees open_trees(bool ahead, uint32_t groups) {
    static vpps_driver_table driver;
    vpps_options o = trees_options();
    o.groups = groups;
    driver = vpps_driver_simt;
    driver.prepare = prepare;
    driver.load = load;
    return ahead ? trees_driven_by(&driver, TREES_HIDDEN, TREES_EMBED, &o) : trees_with(TREES_HIDDEN, TREES_EMBED, &o);
}

static void close_trees(gpu_trees *t) {
    trees_close(t);
    while (n_sources) free(sources[--n_sources]);
}

TEST_GROUP("gpu ahead", .seconds = 300);

/* ---------------------------------------------------------------- inference */

static float train_then_infer(bool ahead) {
    AT_END(close_trees) gpu_trees t = open_trees(ahead, 1);
    trees_step(&t, 0);
    const float first = infer(t.h, t.g, t.last);
    if (ahead) expect_kernels(2, 1);
    trees_step(&t, 1);
    const float second = infer(t.h, t.g, t.last);
    if (ahead) expect_kernels(2, 1);
    return first + second;
}

TEST(the_first_inference_does_not_wait) { ck_assert_float_eq(train_then_infer(true), train_then_infer(false)); }

/* New cells come when the kernel for inference has been made, or loaded. */
static float train_on_more(bool ahead, bool loaded) {
    AT_END(close_trees) gpu_trees t = open_trees(ahead, 1);
    trees_step(&t, 0);
    float sum = loaded ? infer(t.h, t.g, t.last) : 0;
    const vpps_node loss = trees_build(&t, 1);
    train_batch(t.h, t.g, vpps_mul(t.g, loss, loss));
    sum += infer(t.h, t.g, t.last) + infer(t.h, t.g, loss);
    if (ahead) expect_kernels(3 + loaded, 1 + loaded);
    return sum;
}

TEST_EACH(new_cells_join_the_kernel, 0, 2) { ck_assert_float_eq(train_on_more(true, _i), train_on_more(false, _i)); }

/* A kernel that nobody needs must be ready before the handle can be destroyed. */
TEST(a_handle_may_go_at_once) {
    AT_END(close_trees) gpu_trees t = open_trees(true, 1);
    trees_fb(&t, 0);
}

/* ---------------------------------------------------------------- groups */

/* Trains on 16 trees, then on batches of four, which want one group: its kernel is ready when they get it. Some steps before are skipped. */
static float train_on_fewer(bool ahead) {
    AT_END(close_trees) gpu_trees t = open_trees(ahead, 0);
    vpps_usual_groups *usual = &t.h->history.usual[true];
    vpps_node terms[4];
    for (uint32_t i = 0; i < VPPS_COUNT(terms); i++) terms[i] = trees_add(&t, i);
    float sum = train_batch(t.h, t.g, vpps_average(t.g, VPPS_COUNT(terms), terms));
    const uint64_t groups = stats_of(t.h).groups;
    ck_assert_uint_gt(groups, 1);
    sum += trees_step(&t, 0);
    ck_assert_uint_eq(usual->fewer, 1);
    usual->fewer = VPPS_SOON_BATCHES - 1;
    sum += trees_step(&t, 1);
    ck_assert_uint_eq(stats_of(t.h).groups, groups);
    if (ahead) expect_kernels(1, 0);
    usual->fewer = VPPS_FEW_BATCHES;
    sum += trees_step(&t, 2);
    ck_assert_uint_lt(stats_of(t.h).groups, groups);
    if (ahead) expect_kernels(2, 1);
    return sum;
}

TEST(fewer_groups_do_not_wait) { ck_assert_float_eq(train_on_fewer(true), train_on_fewer(false)); }

int main(void) { return gpu_main("gpu_ahead"); }
