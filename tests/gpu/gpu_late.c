/* gpu_late.c - see gpu_late.h. */
#include "gpu_late.h"

#include "common/testing.h"
#include "fake_cublas/fake_cublas.h"
#include "interp_templates/arguments.cuh"
#include "interp_templates/failure.cuh"

#include <dlfcn.h>

gpu_late late;

/* ---------------------------------------------------------------- the queue */

typedef struct item {
    struct item *next;
    void (*work)(const void *payload);
    max_align_t payload[];
} item;

static item *first, **last = &first;
static uint32_t running; /* number of unfinished launches and products */

static void enqueue(void (*work)(const void *payload), const void *payload, size_t bytes) {
    item *i = malloc(sizeof *i + bytes);
    ck_assert_ptr_nonnull(i);
    *i = (item){.work = work};
    memcpy(i->payload, payload, bytes);
    *last = i;
    last = &i->next;
}

static void do_one(void) {
    FREED item *i = first;
    ck_assert_ptr_nonnull(i);
    i->work(i->payload);
    if (!(first = i->next)) last = &first;
}

static void do_all(void) {
    while (first) do_one();
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
    void *own = malloc(bytes + 1);
    ck_assert_ptr_nonnull(own);
    memcpy(own, from, bytes);
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

const vpps_driver_table *late_driver(const char *cublas) {
    void *library = dlopen(cublas, RTLD_NOW | RTLD_LOCAL);
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
