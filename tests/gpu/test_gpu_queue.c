/* test_gpu_queue.c - batches that are launched before the one in flight has ended, on a machine that is late, with every way of computing matrices'
 * gradients: their results, what happens after a failure, and when memory is lacking.
 *
 * The machine is software SIMT, late on purpose: work that a handle queues is done only when somebody waits for it, in the order of the calls. Uploads,
 * which have a stream of their own, are done at once. So a test sees what is overwritten, given back or read too early. Products of tests/fake_cublas
 * are as late. */
#include "common/episode.h"
#include "fake_cublas/fake_cublas.h"
#include "gpu_trees.h"
#include "interp_templates/arguments.cuh"
#include "interp_templates/failure.cuh"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

#include <dlfcn.h>

enum { LATE_MOST = 64 };

/* What has happened, and what a test wants to happen. */
static struct {
    uint32_t asked, done;       /* number of launches that were put into the queue, and that have run */
    uint32_t products;          /* number of cuBLAS calls that were done */
    uint32_t released;          /* number of allocations that were given back */
    uint32_t failed[LATE_MOST]; /* outcome of each launch that was done: a vpps_failure_kind */
    uint32_t stalls;            /* number, from 1, of the launch that does nothing and reports a stall; 0: none does */
    uint32_t allocations;       /* of device and pinned memory */
    uint32_t lacking;           /* number of the one that fails, from 1; 0: none */
} late;

static const char *stand_in; /* for cuBLAS: a path */

/* ---------------------------------------------------------------- the queue */

typedef struct pending {
    struct pending *next;
    void (*work)(const void *payload);
    max_align_t payload[];
} pending;

static pending *oldest, **end_of_queue = &oldest;
static uint32_t running; /* number of unfinished launches and products */

static void enqueue(void (*work)(const void *payload), const void *payload, size_t bytes) {
    pending *i = need(malloc(sizeof *i + bytes));
    *i = (pending){.work = work};
    memcpy(i->payload, payload, bytes);
    *end_of_queue = i;
    end_of_queue = &i->next;
}

static void do_one(void) {
    FREED pending *i = oldest;
    ck_assert_ptr_nonnull(i);
    i->work(i->payload);
    if (!(oldest = i->next)) end_of_queue = &oldest;
}

static void do_all(void) {
    while (oldest) do_one();
}

/* ---------------------------------------------------------------- memory */

static bool is_lacking(void) { return ++late.allocations == late.lacking; }

static vpps_status allocate(vpps_driver *d, size_t bytes, uint64_t *address) {
    if (is_lacking()) return vpps_fail(VPPS_MEMORY, "the test's device is full");
    return vpps_driver_simt.allocate(d, bytes, address);
}

static vpps_status allocate_host(vpps_driver *d, size_t bytes, void **out) {
    if (is_lacking()) return vpps_fail(VPPS_MEMORY, "the test's host is full");
    return vpps_driver_simt.allocate_host(d, bytes, out);
}

static void release(vpps_driver *d, uint64_t address) {
    ck_assert_msg(!running, "memory is given back while %u launches and products are to use it", running);
    late.released++;
    vpps_driver_simt.release(d, address);
}

static vpps_status read_memory(vpps_driver *d, void *to, uint64_t from, size_t bytes) {
    do_all();
    return vpps_driver_simt.read(d, to, from, bytes);
}

typedef struct copying {
    vpps_driver *driver;
    uint64_t to, from;
    size_t bytes;
} copying;

static void do_copy(const void *payload) {
    const copying *c = payload;
    TEST_OK(vpps_driver_simt.copy(c->driver, c->to, c->from, c->bytes));
}

static vpps_status copy(vpps_driver *d, uint64_t to, uint64_t from, size_t bytes) {
    enqueue(do_copy, &(copying){d, to, from, bytes}, sizeof(copying));
    return VPPS_OK;
}

static void do_clear(const void *payload) {
    const copying *c = payload;
    TEST_OK(vpps_driver_simt.clear(c->driver, c->to, c->bytes));
}

static vpps_status clear(vpps_driver *d, uint64_t address, size_t bytes) {
    enqueue(do_clear, &(copying){d, address, 0, bytes}, sizeof(copying));
    return VPPS_OK;
}

static void do_write(const void *payload) {
    const copying *c = payload;
    TEST_OK(vpps_driver_simt.write(c->driver, c->to, (const void *)(uintptr_t)c->from, c->bytes));
    free((void *)(uintptr_t)c->from);
}

/* Memory that is not pinned is read before the call returns, as CUDA does. */
static vpps_status write_memory(vpps_driver *d, uint64_t to, const void *from, size_t bytes) {
    void *own = memcpy(need(malloc(bytes + 1)), from, bytes);
    enqueue(do_write, &(copying){d, to, (uintptr_t)own, bytes}, sizeof(copying));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- kernels */

typedef struct launching {
    vpps_driver *driver;
    vpps_kernel *kernel;
    vpps_launch_shape shape;
    vpps_arguments arguments;
} launching;

/* Makes the launch do what follows a failed launch: it only zeroes what later launches need, and reports a stall. */
static void stall(launching *l) {
    static const vpps_failure before = {.failed = VPPS_FAILURE_STALL};
    vpps_arguments *a = &l->arguments;
    a->before = (uintptr_t)&before;
    TEST_OK(vpps_driver_simt.launch(l->driver, l->kernel, &l->shape, a, sizeof *a));
    ((vpps_failure *)(uintptr_t)a->failure)->failed = VPPS_FAILURE_STALL;
    ((vpps_launch_end *)(uintptr_t)a->end)->failed = VPPS_FAILURE_STALL;
}

static void do_launch(const void *payload) {
    launching l = *(const launching *)payload;
    const uint32_t number = ++late.done;
    running--;
    if (number == late.stalls)
        stall(&l);
    else
        TEST_OK(vpps_driver_simt.launch(l.driver, l.kernel, &l.shape, &l.arguments, sizeof l.arguments));
    ck_assert_uint_lt(number, LATE_MOST);
    const vpps_launch_end *end = (const vpps_launch_end *)(uintptr_t)l.arguments.end;
    late.failed[number] = end->failed;
    ck_assert_uint_le(end->begin_ns, end->end_ns);
}

static vpps_status launch(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape, const void *arguments,
                          size_t bytes) {
    launching l = {d, kernel, *shape, {0}};
    ck_assert_uint_eq(bytes, sizeof l.arguments);
    memcpy(&l.arguments, arguments, bytes);
    late.asked++;
    running++;
    enqueue(do_launch, &l, sizeof l);
    return VPPS_OK;
}

static void unload(vpps_driver *d, vpps_kernel *kernel) {
    ck_assert_msg(!running, "a kernel is given back while %u launches and products are to come", running);
    vpps_driver_simt.unload(d, kernel);
}

/* A product of cuBLAS: a function, and the argument to call it with. */
typedef struct product {
    void (*work)(const void *payload);
    max_align_t payload[16];
} product;

static void do_product(const void *payload) {
    const product *p = payload;
    running--;
    late.products++;
    p->work(p->payload);
}

static void enqueue_product(void (*work)(const void *payload), const void *payload, size_t bytes) {
    product p = {.work = work};
    ck_assert_uint_le(bytes, sizeof p.payload);
    memcpy(p.payload, payload, bytes);
    running++;
    enqueue(do_product, &p, sizeof p);
}

/* ---------------------------------------------------------------- time */

static uint32_t marks[VPPS_DRIVER_MARKS]; /* how often each mark is in the queue */

static void reach(const void *payload) { marks[*(const uint32_t *)payload]--; }

static vpps_status mark(vpps_driver *d, uint32_t which) {
    (void)d;
    marks[which]++;
    enqueue(reach, &which, sizeof which);
    return VPPS_OK;
}

/* A caller that asks again and again finally sees the mark pass. */
static bool passed(vpps_driver *d, uint32_t which) {
    (void)d;
    if (marks[which]) do_one();
    return !marks[which];
}

static vpps_status await(vpps_driver *d, uint32_t which) {
    (void)d;
    while (marks[which]) do_one();
    return VPPS_OK;
}

static vpps_status wait_for_all(vpps_driver *d) {
    do_all();
    return vpps_driver_simt.wait(d);
}

/* ---------------------------------------------------------------- the machine */

static vpps_driver_table driver;

static vpps_status open_machine(vpps_driver **out, uint32_t number, vpps_machine *machine) {
    VPPS_TRY(vpps_driver_simt.open(out, number, machine));
    (*out)->table = &driver;
    return VPPS_OK;
}

static void close_machine(vpps_driver *d) {
    do_all();
    vpps_driver_simt.close(d);
}

/* Sets all of `late` to zero, and defers the products of the cuBLAS stand-in. */
static const vpps_driver_table *late_driver(void) {
    void *library = dlopen(stand_in, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    const fake_cublas_controls *fake = dlsym(library, "fake_cublas");
    ck_assert_ptr_nonnull(fake);
    fake->defer(enqueue_product);
    memset(&late, 0, sizeof late);
    driver = vpps_driver_simt;
    driver.open = open_machine;
    driver.close = close_machine;
    driver.allocate = allocate;
    driver.allocate_host = allocate_host;
    driver.release = release;
    driver.read = read_memory;
    driver.write = write_memory;
    driver.copy = copy;
    driver.clear = clear;
    driver.unload = unload;
    driver.launch = launch;
    driver.mark = mark;
    driver.passed = passed;
    driver.await = await;
    driver.wait = wait_for_all;
    return &driver;
}

/* ---------------------------------------------------------------- ways */

static const vpps_gradients ways[] = {VPPS_GRADIENTS_DEFERRED, VPPS_GRADIENTS_CUBLAS};
enum { KERNEL, CUBLAS, WAYS };

static uint32_t launches_of(int way) { return way == CUBLAS ? 2 : 1; }

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
    *t = is_late ? trees_driven_by(late_driver(), TREES_HIDDEN, TREES_EMBED, &o)
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
    return parameters(h, &t, &count);
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
        AT_END(trees_close) gpu_trees t;
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
