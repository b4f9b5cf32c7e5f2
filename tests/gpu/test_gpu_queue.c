/* test_gpu_queue.c - batches that are launched before the one in flight has ended, on a machine that is late (gpu_late.h), with every way of
 * computing matrices' gradients: their results, what happens after a failure, and when memory is lacking. */
#include "common/episode.h"
#include "gpu_late.h"
#include "gpu_trees.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

static const vpps_gradients ways[] = {VPPS_GRADIENTS_DEFERRED, VPPS_GRADIENTS_CUBLAS};
enum { KERNEL, CUBLAS, WAYS };

static uint32_t launches_of(int way) { return way == CUBLAS ? 2 : 1; }

static const char *stand_in;

/* ---------------------------------------------------------------- batches */

typedef enum kind { PLAIN, INFINITE_LOSS, NAN_GRADIENT } kind;

/* Builds batch number b, of n times as many trees as others. */
static vpps_node build(gpu_trees *t, uint32_t b, uint32_t n, kind k) {
    vpps_node terms[4];
    ck_assert_uint_le(n, VPPS_COUNT(terms));
    vpps_graph_clear(t->g);
    for (uint32_t i = 0; i < n; i++) terms[i] = trees_add(t, b + i);
    const vpps_node loss = vpps_average(t->g, n, terms);
    if (k == INFINITE_LOSS) return vpps_add(t->g, loss, vpps_constant(t->g, 1, 1, INFINITY));
    if (k == NAN_GRADIENT) /* the root's gradient at 0 is infinite, times 0 */
        return vpps_add(t->g, loss, vpps_sqrt(t->g, vpps_mul(t->g, loss, vpps_constant(t->g, 1, 1, 0))));
    return loss;
}

/* Opens a handle on software SIMT, which is done when a call returns, or on the late machine. */
static vpps_handle *open_handle(gpu_trees *t, int way, vpps_nonfinite nonfinite, bool is_late) {
    vpps_options o = trees_options();
    o.gradients = ways[way];
    o.nonfinite = nonfinite;
    o.verify = false;
    *t = is_late ? trees_driven_by(late_driver(stand_in), TREES_HIDDEN, TREES_EMBED, &o)
                 : trees_with(TREES_HIDDEN, TREES_EMBED, &o);
    return t->h;
}

/* Returns the device's parameters, even of an unusable handle; the caller frees them. */
static float *parameters(vpps_handle *h, gpu_trees *t, size_t *n) {
    TEST_OK(vpps_device_read_parameters(h->device, t->model, true));
    return model_values(t->model, n);
}

/* Parameters and losses after these batches, each of which was waited for. */
typedef struct plan {
    uint32_t batch, size;
    kind kind;
} plan;
static float *train_one_at_a_time(int way, vpps_nonfinite nonfinite, const plan *p, uint32_t n, float *losses) {
    AT_END(trees_close) gpu_trees t;
    size_t count;
    vpps_handle *h = open_handle(&t, way, nonfinite, false);
    for (uint32_t i = 0; i < n; i++) losses[i] = train_batch(h, t.g, build(&t, p[i].batch, p[i].size, p[i].kind));
    float *values = parameters(h, &t, &count);
    return values;
}

static void expect_parameters(vpps_handle *h, gpu_trees *t, const float *expected) {
    size_t n;
    FREED float *now = parameters(h, t, &n);
    ck_assert_mem_eq(now, expected, n * sizeof *now);
}

/* ---------------------------------------------------------------- what is computed */

TEST_GROUP("gpu queue", .seconds = 300);

/* Losses and parameters equal those of batches that are waited for, to the bit. Batches grow and shrink; a handle tells how long the device was idle
 * between them, and gives back the memory that grew out of use. */
TEST_EACH(queued_batches_have_the_same_bits, 0, WAYS) {
    static const plan p[] = {{0, 1, PLAIN}, {1, 1, PLAIN}, {2, 2, PLAIN}, {0, 4, PLAIN}, {0, 4, PLAIN},
                             {2, 1, PLAIN}, {1, 2, PLAIN}, {0, 1, PLAIN}, {0, 4, PLAIN}, {1, 1, PLAIN}};
    enum { N = VPPS_COUNT(p), GROWN = 5 };
    const uint32_t each = launches_of(_i);
    float losses[N], stale;
    AT_END(trees_close) gpu_trees t;
    FREED float *expected = train_one_at_a_time(_i, VPPS_NONFINITE_STOP, p, N, losses);
    vpps_handle *h = open_handle(&t, _i, VPPS_NONFINITE_STOP, true);
    uint64_t wall = 0, gap = 0;
    for (uint32_t i = 0; i < N; i++) {
        TEST_OK(vpps_fb(h, t.g, build(&t, p[i].batch, p[i].size, PLAIN), &stale));
        const vpps_stats stats = stats_of(h);
        wall += stats.wall_ns, gap += stats.gap_ns;
        ck_assert(stats.gap_ns <= stats.wall_ns && (stats.wall_ns > 0) == (i > 1));
        ck_assert(stats.total_wall_ns == wall && stats.total_gap_ns == gap);
        if (i) ck_assert_float_eq(stale, losses[i - 1]);
        ck_assert_uint_eq(late.asked, each * (i + 1));
        if (i >= GROWN) ck_assert_uint_eq(late.done, each * i); /* this batch was not waited for */
    }
    TEST_OK(vpps_sync_latest_loss(h, &stale));
    ck_assert_float_eq(stale, losses[N - 1]);
    ck_assert_int_eq(late.products > 0, _i == CUBLAS);
    ck_assert_uint_ge(late.released, 2);
    expect_parameters(h, &t, expected);
}

/* ---------------------------------------------------------------- after a failure */

/* Checks that from launch `from` on nothing was done. */
static void expect_nothing_done(uint32_t from) {
    for (uint32_t i = 1; i <= late.done; i++) {
        const uint32_t expected = i < from ? VPPS_FAILURE_NONE : VPPS_FAILURE_BEFORE;
        if (i != late.stalls) ck_assert_msg(late.failed[i] == expected, "launch %u: %u", i, late.failed[i]);
    }
}

/* The second of three batches stalls, in its first or last launch: the error names it, and parameters are those after the first. */
TEST_EACH(after_a_stall_nothing_is_done, 0, 3) {
    static const plan p[] = {{0, 1, PLAIN}};
    static const struct {
        int way;
        uint32_t stalls;
    } cases[] = {{KERNEL, 2}, {CUBLAS, 3}, {CUBLAS, 4}};
    const int way = cases[_i].way;
    float losses[1];
    AT_END(trees_close) gpu_trees t;
    FREED float *expected = train_one_at_a_time(way, VPPS_NONFINITE_STOP, p, 1, losses);
    vpps_handle *h = open_handle(&t, way, VPPS_NONFINITE_STOP, true);
    late.stalls = cases[_i].stalls;
    for (uint32_t i = 0; i < 2; i++) TEST_OK(vpps_fb(h, t.g, build(&t, i, 1, PLAIN), NULL));
    const vpps_node third = build(&t, 2, 1, PLAIN);
    TEST_FAILS(vpps_fb(h, t.g, third, NULL), VPPS_STALL, "batch 2: VP 0, task at word 0: waited");
    ck_assert_uint_eq(late.done, 3 * launches_of(way));
    expect_nothing_done(late.stalls);
    expect_parameters(h, &t, expected);
}

/* The second of three batches is not finite: the error names it, and the third does nothing. Launched again, the third trains. */
TEST_EACH(after_what_is_not_finite_nothing_is_done, 0, 2 * WAYS) {
    const int way = _i % WAYS;
    const kind k = _i / WAYS ? NAN_GRADIENT : INFINITE_LOSS;
    const plan p[] = {{0, 1, PLAIN}, {2, 1, PLAIN}, {1, 1, PLAIN}};
    float losses[3], loss;
    AT_END(trees_close) gpu_trees t;
    FREED float *first = train_one_at_a_time(way, VPPS_NONFINITE_STOP, p, 1, losses),
                *all = train_one_at_a_time(way, VPPS_NONFINITE_STOP, p, 3, losses);
    vpps_handle *h = open_handle(&t, way, VPPS_NONFINITE_STOP, true);
    TEST_OK(vpps_fb(h, t.g, build(&t, 0, 1, PLAIN), NULL));
    TEST_OK(vpps_fb(h, t.g, build(&t, 1, 1, k), NULL));
    vpps_node third = build(&t, 2, 1, PLAIN);
    TEST_FAILS(vpps_fb(h, t.g, third, NULL), VPPS_NONFINITE,
               k == INFINITE_LOSS ? "batch 2: the loss is inf" : "batch 2: the gradient's norm is");
    ck_assert_uint_eq(late.done, 3 * launches_of(way));
    expect_nothing_done(2 * launches_of(way) + 1);
    expect_parameters(h, &t, first);
    TEST_OK(vpps_fb(h, t.g, third, NULL));
    ck_assert_uint_eq(h->latest_number, 3);
    TEST_OK(vpps_fb(h, t.g, build(&t, 1, 1, PLAIN), &loss));
    ck_assert_float_eq(loss, losses[1]);
    TEST_OK(vpps_sync_latest_loss(h, &loss));
    ck_assert_float_eq(loss, losses[2]);
    expect_parameters(h, &t, all);
}

/* If such batches are skipped, the third trains nevertheless. */
TEST_EACH(after_what_is_passed_over_batches_train, 0, 2 * WAYS) {
    const int way = _i % WAYS;
    const plan p[] = {{0, 1, PLAIN}, {1, 1, _i / WAYS ? NAN_GRADIENT : INFINITE_LOSS}, {2, 1, PLAIN}};
    float losses[3];
    AT_END(trees_close) gpu_trees t;
    FREED float *expected = train_one_at_a_time(way, VPPS_NONFINITE_SKIP, p, 3, losses);
    vpps_handle *h = open_handle(&t, way, VPPS_NONFINITE_SKIP, true);
    for (uint32_t i = 0; i < 3; i++) TEST_OK(vpps_fb(h, t.g, build(&t, p[i].batch, 1, p[i].kind), NULL));
    ck_assert_uint_lt(late.done, 3 * launches_of(way));
    TEST_OK(vpps_sync_latest_loss(h, NULL));
    ck_assert_uint_eq(stats_of(h).skipped, 1);
    expect_nothing_done(UINT32_MAX);
    expect_parameters(h, &t, expected);
}

/* ---------------------------------------------------------------- memory */

/* Whichever allocation of the second batch fails: the batch does without, or it fails, leaves no work behind, and can be repeated. */
TEST_EACH(a_batch_that_finds_no_memory_is_not_queued, 0, WAYS) {
    static const plan p[] = {{0, 1, PLAIN}, {1, 4, PLAIN}, {2, 1, PLAIN}};
    float losses[3];
    FREED float *expected = train_one_at_a_time(_i, VPPS_NONFINITE_STOP, p, 3, losses);
    uint32_t refused = 0;
    bool lacked = true;
    for (uint32_t nth = 1; lacked; nth++) {
        gpu_trees t;
        vpps_handle *h = open_handle(&t, _i, VPPS_NONFINITE_STOP, true);
        TEST_OK(vpps_fb(h, t.g, build(&t, 0, 1, PLAIN), NULL));
        late.lacking = late.allocations + nth;
        const vpps_node second = build(&t, 1, 4, PLAIN);
        const vpps_status status = vpps_fb(h, t.g, second, NULL);
        lacked = late.allocations >= late.lacking;
        late.lacking = 0;
        if (status != VPPS_OK) {
            refused++;
            ck_assert_int_eq(status, VPPS_MEMORY);
            ck_assert_uint_eq(late.done, late.asked);
            TEST_OK(vpps_fb(h, t.g, second, NULL));
        }
        TEST_OK(vpps_fb(h, t.g, build(&t, 2, 1, PLAIN), NULL));
        TEST_OK(vpps_sync_latest_loss(h, NULL));
        expect_parameters(h, &t, expected);
        trees_close(&t);
    }
    ck_assert_uint_ge(refused, 3 * launches_of(_i)); /* script, on both sides, and counters of each launch */
}

int main(void) {
    if (!gpu_is_simulated()) {
        test_tell("skipped", "queued batches: only software SIMT can be late");
        return 0;
    }
    stand_in = test_beside("fake_cublas.so");
    setenv("VPPS_LIBCUBLAS", stand_in, 1);
    return gpu_main("gpu queue");
}
