/* test_driver_cuda.c - driver_cuda.c against a fake driver (tests/fake_cuda), on any machine: it must use the CUDA driver as its manual says, in
 * order and without leaks, and must say what went wrong. No GPU is involved, and no kernel runs here. */
#include "codegen/nvrtc.h"
#include "common/training.h"
#include "fake_cuda/fake_cuda.h"
#include "runtime/gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

extern const bool cuda_declarations_compared; /* by cuda_declarations.c */

static const vpps_driver_table *const cuda = &vpps_driver_cuda;
static const fake_cuda_controls *fake;

/* Loads the fake driver anew for each test, which Check runs in a process of its own. */
static void load_fake(void) {
    const char *path = test_beside("fake_cuda.so");
    setenv("VPPS_LIBCUDA", path, 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    fake = dlsym(library, "fake_cuda");
    ck_assert_ptr_nonnull(fake);
    setenv("VPPS_CACHE_DIR", test_beside("kernels_of_test_driver_cuda"), 1);
}

static void expect_nothing_left(void) {
    const fake_cuda_counts n = fake->counts();
    ck_assert_msg(n.contexts + n.streams + n.events + n.modules + n.device_blocks + n.pinned_blocks == 0,
                  "left: %u contexts, %u streams, %u events, %u modules, %u blocks, %u pinned blocks", n.contexts,
                  n.streams, n.events, n.modules, n.device_blocks, n.pinned_blocks);
    ck_assert_uint_eq(n.damaged + n.refused, 0);
}

/* What a check uses, unless it is NULL: the kernel is loaded by load_kernel. */
static vpps_driver *d;
static vpps_kernel *kernel;

static void open_driver(void) {
    vpps_machine machine;
    TEST_OK(cuda->open(&d, 0, &machine));
}

static void close_driver(void) {
    if (kernel) cuda->unload(d, kernel);
    kernel = NULL;
    if (!d) return;
    cuda->close(d);
    d = NULL;
    expect_nothing_left();
}

/* Opens the driver again, as the fake device is now. */
static void reopen_driver(void) {
    close_driver();
    open_driver();
}

static void load_fake_and_open(void) {
    load_fake();
    open_driver();
}
#define WITH_DRIVER .before_each = load_fake_and_open, .after_each = close_driver

/* ---------------------------------------------------------------- opening */

static void expect_no_gpu(const char *text) {
    vpps_machine machine;
    d = (vpps_driver *)&machine;
    TEST_FAILS(cuda->open(&d, 0, &machine), VPPS_DEVICE, text);
    ck_assert_ptr_null(d);
    ck_assert_msg(strncmp(vpps_error_message(), "cuda: ", 6) == 0, "%s", vpps_error_message());
    ck_assert_msg(!strchr(vpps_error_message(), '\n'), "more than a line: %s", vpps_error_message());
    expect_nothing_left();
}

TEST_GROUP("opening", .before_each = load_fake, .after_each = close_driver);

/* The compiler has compared the declarations with the toolkit's, or there was no toolkit. */
TEST(declarations_are_the_toolkits) {
    if (!cuda_declarations_compared) TEST_SKIP("declarations_are_the_toolkits: no headers of the CUDA toolkit");
}

TEST(machines_without_a_driver) {
    setenv("VPPS_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    expect_no_gpu("no GPU driver: /nowhere/libcuda.so.1: ");
    setenv("VPPS_LIBCUDA", "libm.so.6", 1);
    expect_no_gpu("has no function cuInit");
}

static const struct {
    vpps_cu_result code;
    const char *text;
} no_gpu[] = {
    {34, "no GPU: libcuda is the toolkit's stub"},
    {35, "no GPU: the driver is missing or too old"},
    {100, "no GPU: the driver sees none"},
    {2, "the driver does not start: CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)"},
    {9999, "the driver does not start: a code without a name (9999"},
};

TEST_EACH(drivers_without_a_gpu, 0, VPPS_COUNT(no_gpu)) {
    fake->break_call("cuInit", 1, no_gpu[_i].code);
    expect_no_gpu(no_gpu[_i].text);
    open_driver(); /* the next attempt finds the function */
}

TEST(gpus_that_will_not_do) {
    fake->device->count = 0;
    expect_no_gpu("no GPU: the driver sees none");
    fake->device->count = 1;
    fake->device->cooperative = 0;
    expect_no_gpu("Fake GPU cannot launch cooperatively");
}

TEST(open_cleans_up_after_any_failure) {
    static const char *const functions[] = {"cuDeviceGetCount", "cuDeviceGet",         "cuDeviceGetAttribute",
                                            "cuDeviceGetName",  "cuStreamCreate",      "cuDevicePrimaryCtxRetain",
                                            "cuEventCreate",    "cuCtxPushCurrent_v2", "cuEventCreate"};
    for (uint32_t i = 0; i < VPPS_COUNT(functions); i++) {
        fake->break_call(functions[i], i == VPPS_COUNT(functions) - 1 ? 2 : 1, 2); /* the last fails for its event */
        expect_no_gpu("CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)");
    }
    open_driver();
}

TEST(machine_is_described) {
    *fake->device =
        (fake_cuda_device){"Some GPU", 2, 10, 3, 148, 65537, 233473, 232449, 60 << 20, 1, 128, 1 << 20, 0, 0};
    vpps_machine m;
    TEST_OK(cuda->open(&d, 0, &m));
    ck_assert_str_eq(m.name, "Some GPU");
    ck_assert_uint_eq(m.arch, 103);
    ck_assert_uint_eq(m.sms, 148);
    ck_assert_uint_eq(m.sm_registers, 65537);
    ck_assert_uint_eq(m.sm_shared_bytes, 233473);
    ck_assert_uint_eq(m.cta_shared_bytes, 232449);
    ck_assert_uint_eq(m.l2_bytes, 60 << 20);
    ck_assert_ptr_eq(d->table, cuda);
    ck_assert_str_eq(cuda->name, "cuda");
    ck_assert_uint_eq(cuda->free_bytes(d), 1 << 20);
}

/* ---------------------------------------------------------------- memory and order */

TEST_GROUP("memory", WITH_DRIVER);

TEST(copies_happen_in_order_and_later) {
    uint64_t at;
    uint32_t *pinned, pageable[4] = {11, 12, 13, 14}, back[8];
    TEST_OK(cuda->allocate(d, sizeof back, &at));
    TEST_OK(cuda->allocate_host(d, 16, (void **)&pinned));
    fake->hold(true);
    for (uint32_t i = 0; i < 4; i++) pinned[i] = i;
    TEST_OK(cuda->clear(d, at, 32));
    TEST_OK(cuda->write(d, at + 8, pinned, 16));
    TEST_OK(cuda->write(d, at + 16, pageable, 16)); /* over the second half of the words written before */
    TEST_OK(cuda->clear(d, at + 28, 4));
    pinned[0] = 77;   /* the copy from pinned memory is still due */
    pageable[0] = 88; /* copied already */
    TEST_OK(cuda->read(d, back, at, sizeof back));
    const uint32_t want[] = {0, 0, 77, 1, 11, 12, 13, 0};
    ck_assert_mem_eq(back, want, sizeof want);
    TEST_OK(cuda->write(d, at, pageable, 0));
    TEST_OK(cuda->read(d, back, at, 0));
    TEST_OK(cuda->clear(d, at, 0));
    cuda->release_host(d, pinned);
    cuda->release(d, at);
    ck_assert_uint_eq(fake->counts().device_blocks + fake->counts().pinned_blocks, 0);
}

/* Arrays of the caller are copied in the order of its stream, and rows at equal distances by one call. */
TEST(copies_of_the_callers_arrays) {
    uint64_t own, theirs;
    uint32_t rows[6] = {1, 2, 3, 4, 5, 6}, back[6];
    TEST_OK(cuda->allocate(d, sizeof rows, &own));
    TEST_OK(cuda->allocate(d, sizeof rows, &theirs));
    TEST_OK(cuda->write(d, theirs, rows, sizeof rows));
    TEST_OK(cuda->clear(d, own, sizeof rows));
    fake->take_calls();
    TEST_OK(cuda->order(d, NULL, true));
    TEST_OK(cuda->copy_outside(d, &(vpps_outside_copy){own, theirs, 8, 12, 8, 2, true}));
    TEST_OK(cuda->copy_outside(d, &(vpps_outside_copy){own + 16, theirs + 8, 0, 0, 4, 1, true}));
    TEST_OK(cuda->order(d, NULL, false));
    ck_assert_str_eq(fake->take_calls(),
                     "record e2 s0; wait s1 e2; copy 8 x 2 s1; copy 4 s1; record e2 s1; wait s0 e2; ");
    TEST_OK(cuda->read(d, back, own, sizeof back));
    ck_assert_mem_eq(back, ((uint32_t[]){1, 2, 4, 5, 3, 0}), sizeof back);
    TEST_OK(cuda->copy_outside(d, &(vpps_outside_copy){theirs + 4, 0, 0, 0, 8, 1, false}));
    ck_assert_str_eq(fake->take_calls(), "set 2 s1; ");
    TEST_OK(cuda->read(d, back, theirs, sizeof back));
    ck_assert_mem_eq(back, ((uint32_t[]){1, 0, 0, 4, 5, 6}), sizeof back);
}

TEST(arrays_of_others_are_refused) {
    uint64_t at;
    float host[4];
    TEST_OK(cuda->allocate(d, 100, &at));
#define ARRAY(offset) ((const void *)(uintptr_t)(at + (offset)))
    TEST_OK(cuda->check_outside(d, ARRAY(0), 100, "x"));
    TEST_OK(cuda->check_outside(d, ARRAY(60), 40, "x"));
    ck_assert_uint_eq(cuda->room_outside(d, at + 60), 40);
    ck_assert_uint_eq(cuda->room_outside(d, (uintptr_t)host), 0);
    TEST_FAILS(cuda->check_outside(d, host, 16, "out[3]"), VPPS_ARGUMENT,
               "out[3] is the host's memory; expected memory of GPU 0");
    TEST_FAILS(cuda->check_outside(d, ARRAY(60), 44, "x"), VPPS_ARGUMENT, "x has room for 40 bytes; expected 44");
    fake->move(at, 1);
    TEST_FAILS(cuda->check_outside(d, ARRAY(0), 100, "x"), VPPS_ARGUMENT, "x is memory of GPU 1; expected GPU 0");
}

/* What a second driver allocates stays when the first driver is closed. */
TEST(branches_outlive_their_driver) {
    vpps_driver *branch;
    uint64_t at;
    fake->break_call("cuDevicePrimaryCtxRetain", 1, 2);
    TEST_FAILS(cuda->branch(d, &branch), VPPS_DEVICE, "the context: CUDA_ERROR_OUT_OF_MEMORY");
    TEST_OK(cuda->branch(d, &branch));
    TEST_OK(cuda->allocate(branch, 100, &at));
    cuda->close(d);
    d = branch;
    ck_assert_uint_eq(fake->counts().device_blocks, 1);
    ck_assert_ptr_nonnull(fake->host(at, 100));
}

TEST(memory_can_be_exhausted) {
    fake->device->memory_bytes = 1000;
    reopen_driver();
    uint64_t a, b, empty;
    void *host;
    TEST_OK(cuda->allocate(d, 600, &a));
    ck_assert_uint_eq(cuda->free_bytes(d), 400);
    TEST_FAILS(cuda->allocate(d, 401, &b), VPPS_MEMORY, "401 bytes of device memory: CUDA_ERROR_OUT_OF_MEMORY");
    cuda->release(d, a);
    TEST_OK(cuda->allocate(d, 900, &b));
    TEST_OK(cuda->allocate(d, 0, &empty));
    ck_assert_uint_ne(empty, b);
    fake->break_call("cuMemHostAlloc", 1, 2);
    TEST_FAILS(cuda->allocate_host(d, 64, &host), VPPS_MEMORY, "64 bytes of pinned memory");
}

TEST(finished_never_blocks) {
    uint64_t at;
    TEST_OK(cuda->allocate(d, 64, &at));
    ck_assert(cuda->passed(d, 0)); /* nothing was begun */
    TEST_OK(cuda->wait(d));
    for (uint32_t round = 0; round < 3; round++) {
        fake->hold(true);
        TEST_OK(cuda->clear(d, at, 64));
        TEST_OK(cuda->mark(d, 0));
        ck_assert(!cuda->passed(d, 0));
        if (round == 0) {
            fake->hold(false);
            while (!cuda->passed(d, 0)) usleep(100);
        }
        TEST_OK(cuda->wait(d));
        ck_assert(cuda->passed(d, 0));
    }
}

/* Launches see what was uploaded before; each mark stands for the calls made before it. */
TEST(marks_are_waited_for_one_by_one) {
    uint64_t at, copies;
    uint32_t back[4];
    void *pinned;
    TEST_OK(cuda->allocate(d, 8, &at));
    TEST_OK(cuda->allocate(d, 16, &copies));
    TEST_OK(cuda->allocate_host(d, 8, &pinned));
    uint32_t *words = pinned;
    words[0] = 7, words[1] = 8;
    fake->hold(true);
    TEST_OK(cuda->upload(d, at, words, 8));
    TEST_OK(cuda->copy(d, copies, at, 8));
    TEST_OK(cuda->mark(d, 0));
    TEST_OK(cuda->clear(d, at, 8));
    TEST_OK(cuda->copy(d, copies + 8, at, 8));
    TEST_OK(cuda->mark(d, 1));
    ck_assert(!cuda->passed(d, 0) && !cuda->passed(d, 1));
    TEST_OK(cuda->await(d, 0));
    ck_assert(cuda->passed(d, 0));
    TEST_OK(cuda->await(d, 1));
    ck_assert(cuda->passed(d, 1));
    TEST_OK(cuda->read(d, back, copies, 16));
    ck_assert(back[0] == 7 && back[1] == 8 && back[2] == 0 && back[3] == 0);
    fake->hold(false);
}

static void *use_elsewhere(void *opened) {
    uint64_t at;
    uint32_t value = 5, back = 0;
    const bool good = cuda->allocate(d, 4, &at) == VPPS_OK && cuda->write(d, at, &value, 4) == VPPS_OK &&
                      cuda->read(d, &back, at, 4) == VPPS_OK && back == 5;
    cuda->release(d, at);
    return good ? opened : NULL;
}

TEST(any_thread_may_call) {
    pthread_t thread;
    void *good;
    ck_assert_int_eq(pthread_create(&thread, NULL, use_elsewhere, d), 0);
    pthread_join(thread, &good);
    ck_assert_ptr_eq(good, d);
}

/* The fake driver's own functions, which control the calling thread's contexts. */
static vpps_cu_result (*push)(vpps_cu_context context), (*pop)(vpps_cu_context *context);

/* Checks that the thread's only context is the caller's own. */
static void expect_own_context(const void *own) {
    vpps_cu_context is = NULL, none = NULL;
    ck_assert_uint_eq(pop(&is), VPPS_CU_SUCCESS);
    ck_assert_ptr_eq(is, own);
    ck_assert_uint_ne(pop(&none), VPPS_CU_SUCCESS);
    push(is);
}

/* A program that uses CUDA itself finds its context current again after every call, even one that fails. */
TEST(the_callers_context_comes_back) {
    int own;
    vpps_driver *none = NULL;
    vpps_machine machine;
    uint64_t at;
    uint32_t word = 7;
    void *pinned;
    vpps_gpu_stream stream;
    bool idle;
    void *library = dlopen(getenv("VPPS_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(library, "cuCtxPopCurrent_v2");
    close_driver();
    fake->break_call("cuStreamCreate", 1, 2);
    ck_assert_int_eq(cuda->open(&none, 0, &machine), VPPS_DEVICE);
    ck_assert_uint_ne(pop(&(vpps_cu_context){0}), VPPS_CU_SUCCESS); /* no context before, none now */
    open_driver();
    ck_assert_uint_ne(pop(&(vpps_cu_context){0}), VPPS_CU_SUCCESS);
    ck_assert_uint_eq(push((vpps_cu_context)(void *)&own), VPPS_CU_SUCCESS);
#define KEEPS(call)                                                                                                    \
    call;                                                                                                              \
    expect_own_context(&own)
    KEEPS(TEST_OK(cuda->allocate(d, 4, &at)));
    KEEPS(TEST_OK(cuda->allocate_host(d, 4, &pinned)));
    KEEPS(ck_assert_uint_gt(cuda->free_bytes(d), 0));
    KEEPS(TEST_OK(cuda->clear(d, at, 4)));
    KEEPS(TEST_OK(cuda->write(d, at, &word, 4)));
    KEEPS(TEST_OK(cuda->read(d, &word, at, 4)));
    KEEPS(cuda->passed(d, 0));
    KEEPS(TEST_OK(cuda->mark(d, 0)));
    KEEPS(TEST_OK(cuda->await(d, 0)));
    KEEPS(TEST_OK(cuda->upload(d, at, pinned, 4)));
    KEEPS(TEST_OK(cuda->wait(d)));
    cuda->stream(d, &stream);
    KEEPS(TEST_OK(stream.idle(stream.context, &idle)));
    fake->break_call("cuMemsetD32Async", 1, 1);
    KEEPS(ck_assert_int_eq(cuda->clear(d, at, 4), VPPS_DEVICE));
    KEEPS(ck_assert_int_eq(cuda->write(d, at, &word, 5), VPPS_DEVICE));
    KEEPS(cuda->release_host(d, pinned));
    KEEPS(cuda->release(d, at));
    KEEPS(close_driver());
#undef KEEPS
}

/* ---------------------------------------------------------------- kernels */

typedef struct arguments {
    uint64_t at;
    uint32_t value;
} arguments;

static const char source[] = "struct arguments { unsigned long long at; unsigned value; };\n"
                             "extern \"C\" __global__ void vpps_kernel(const arguments a) {\n"
                             "    if (threadIdx.x == 0 && blockIdx.x == 0) *(unsigned *)a.at = a.value;\n"
                             "}\n";
static const vpps_launch_shape plain = {132, 256, 0};
static vpps_cubin_report report; /* of the latest load */

/* Runs in place of the kernel above: stores the launch's argument after its word. */
static vpps_cu_result store(const void *given, unsigned ctas, unsigned threads, unsigned shared) {
    const arguments *a = given;
    uint32_t *to = fake->host(a->at, 16);
    if (!to) return 700;
    to[0] = a->value, to[1] = ctas, to[2] = threads, to[3] = shared;
    return 0;
}

static vpps_status load(vpps_kernel **out) { return cuda->load(d, source, "a test", &plain, out, &report); }

/* Opens the driver, as the fake device is now, and loads the kernel; false: there is no NVRTC. */
static bool load_kernel(void) {
    const vpps_nvrtc *nvrtc;
    reopen_driver();
    fake->set_kernel(store, sizeof(arguments));
    if (vpps_nvrtc_open(&nvrtc) != VPPS_OK) {
        test_tell("skipped", "launches: no NVRTC");
        return false;
    }
    TEST_OK(load(&kernel));
    ck_assert_uint_gt(report.registers, 0);
    ck_assert_uint_eq(report.frame_bytes, 0);
    return true;
}

TEST_GROUP("kernels", WITH_DRIVER);

TEST(launches_pass_their_argument) {
    if (!load_kernel()) return;
    uint32_t back[4];
    arguments a = {0, 42};
    const vpps_launch_shape shape = {7, 384, 60000};
    TEST_OK(cuda->allocate(d, sizeof back, &a.at));
    fake->hold(true);
    TEST_OK(cuda->clear(d, a.at, sizeof back));
    TEST_OK(cuda->launch(d, kernel, &shape, &a, sizeof a));
    a.value = 43; /* the launch has its own copy of the argument */
    TEST_OK(cuda->read(d, back, a.at, sizeof back));
    ck_assert_uint_eq(back[0], 42);
    ck_assert_uint_eq(back[1], 7);
    ck_assert_uint_eq(back[2], 384);
    ck_assert_uint_eq(back[3], 60000);
    TEST_OK(cuda->wait(d));
}

TEST(too_many_ctas_are_refused) {
    fake->device->kernel_registers = 255; /* one CTA of 256 threads per SM */
    if (!load_kernel()) return;
    arguments a = {0, 0};
    TEST_OK(cuda->allocate(d, 16, &a.at));
    const vpps_launch_shape more = {133, 256, 0}, wide = {132, 512, 0}, large = {1, 256, 240000};
    TEST_FAILS(cuda->launch(d, kernel, &more, &a, sizeof a), VPPS_DEVICE,
               "133 CTAs of 256 threads and 0 bytes of dynamic shared memory are not resident at once: 1 fit on each "
               "of 132 SMs");
    TEST_FAILS(cuda->launch(d, kernel, &wide, &a, sizeof a), VPPS_DEVICE, "0 fit on each of 132 SMs");
    TEST_FAILS(cuda->launch(d, kernel, &large, &a, sizeof a), VPPS_DEVICE, "dynamic shared memory: CUDA_ERROR_INV");
    TEST_OK(cuda->launch(d, kernel, &plain, &a, sizeof a));
    ck_assert_uint_eq(fake->counts().launches, 1);
    vpps_kernel *second;
    TEST_FAILS(cuda->load(d, source, "a test", &more, &second, &report), VPPS_DEVICE, "133 CTAs");
    ck_assert_uint_eq(fake->counts().modules, 1);
}

/* With the real NVRTC: a GPU that it does not know gets the newest code that the GPU can run; a GPU of a later generation gets PTX; a GPU older than
 * all that it knows gets nothing. The fake driver refuses code that the GPU cannot run. */
TEST(architectures_that_nvrtc_lacks) {
    const int between[][2] = {{8, 8}, {9, 9}};
    for (uint32_t i = 0; i < VPPS_COUNT(between); i++) {
        fake->device->arch_major = between[i][0];
        fake->device->arch_minor = between[i][1];
        if (!load_kernel()) return;
    }
    fake->device->arch_major = 99;
    fake->device->kernel_registers = 77;
    load_kernel();
    ck_assert(report.registers == 77 && report.seconds > 0 && !report.cached);
    fake->device->arch_major = 1;
    reopen_driver();
    TEST_FAILS(load(&kernel), VPPS_DEVICE, "the GPU is sm_19; NVRTC ");
}

/* A driver older than NVRTC gets PTX; if the PTX is too new as well, the message says what to do. */
TEST(code_that_is_too_new_for_the_driver) {
    fake->device->driver_version = 12040;
    if (!load_kernel()) return;
    static const vpps_cu_result too_new[] = {200, 209};
    vpps_kernel *second;
    for (uint32_t i = 0; i < VPPS_COUNT(too_new); i++) {
        fake->break_call("cuModuleLoadData", 1, too_new[i]);
        TEST_OK(load(&second));
        ck_assert_uint_eq(report.registers, (uint32_t)fake->device->kernel_registers);
        cuda->unload(d, second);
        fake->break_call("cuModuleLoadData", 1, too_new[i]);
        fake->break_call("cuModuleLoadData", 2, 222);
        TEST_FAILS(load(&second), VPPS_DEVICE,
                   "unsupported toolchain.); the driver is CUDA 12.4's, and VPPS_NVRTC can name");
        ck_assert_uint_eq(fake->counts().modules, 1);
    }
    fake->break_call("cuModuleLoadData", 1, 209);
    fake->break_call("cuFuncGetAttribute", 2, 1);
    TEST_FAILS(load(&second), VPPS_DEVICE, "an attribute of the kernel");
    ck_assert_uint_eq(fake->counts().modules, 1);
}

TEST(nvrtc_may_be_missing) {
    setenv("VPPS_NVRTC", "/nowhere/libnvrtc.so", 1);
    TEST_FAILS(load(&kernel), VPPS_DEVICE, "/nowhere/libnvrtc.so");
}

TEST(failing_loads_leave_nothing) {
    vpps_kernel *none;
    if (!load_kernel()) return;
    TEST_FAILS(cuda->load(d, "not C++", "a test", &plain, &none, &report), VPPS_DEVICE, "error");
    static const char *const functions[] = {"cuModuleLoadData", "cuModuleGetFunction",
                                            "cuOccupancyMaxActiveBlocksPerMultiprocessor"};
    for (uint32_t i = 0; i < VPPS_COUNT(functions); i++) {
        fake->break_call(functions[i], 1, 1);
        TEST_FAILS(load(&none), VPPS_DEVICE, "INVALID_VALUE");
        ck_assert_uint_eq(fake->counts().modules, 1);
    }
}

/* A failed kernel breaks its context; the driver works again after it is reopened. */
TEST(failed_kernels_are_reported_by_wait) {
    if (!load_kernel()) return;
    const arguments a = {64, 0}; /* nowhere */
    fake->hold(true);            /* the kernel fails when it is waited for, not before */
    TEST_OK(cuda->launch(d, kernel, &plain, &a, sizeof a));
    TEST_FAILS(cuda->wait(d), VPPS_DEVICE,
               "cuda: the kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS (700, an illegal memory access");
    ck_assert(cuda->passed(d, 0));
    TEST_FAILS(cuda->launch(d, kernel, &plain, &a, sizeof a), VPPS_DEVICE, "the launch: CUDA_ERROR_ILLEGAL_ADDRESS");
    reopen_driver();
    TEST_OK(cuda->wait(d));
}

/* ---------------------------------------------------------------- waiting, but not for ever */

TEST_GROUP("limits", WITH_DRIVER);

TEST(waits_have_a_limit) {
    uint64_t at;
    uint32_t word = 5;
    TEST_OK(cuda->allocate(d, 4, &at));
    d->limit_ns = 1000000000;
    TEST_OK(cuda->clear(d, at, 4));
    TEST_OK(cuda->read(d, &word, at, 4)); /* the work ends by itself a millisecond later */
    ck_assert_uint_eq(word, 0);
    TEST_OK(cuda->clear(d, at, 4));
    TEST_OK(cuda->wait(d));
}

/* A GPU that does not finish is given up: nothing waits for it any more, not even closing. */
TEST_EACH(a_gpu_that_hangs_is_given_up, 0, 2) {
    uint64_t at;
    uint32_t word;
    void *pinned;
    TEST_OK(cuda->allocate(d, 4, &at));
    TEST_OK(cuda->allocate_host(d, 4, &pinned));
    d->limit_ns = 50000000;
    fake->hold(true);
    TEST_OK(cuda->clear(d, at, 4));
    const uint64_t before = vpps_now_ns();
    TEST_FAILS(_i ? cuda->read(d, &word, at, 4) : cuda->wait(d), VPPS_STALL,
               "cuda: the GPU did not finish within 0.1 s");
    const uint64_t waited = vpps_now_ns() - before;
    ck_assert_uint_ge(waited, d->limit_ns);
    ck_assert(cuda->passed(d, 0));
    TEST_FAILS(cuda->wait(d), VPPS_STALL, "did not finish");
    TEST_FAILS(cuda->read(d, &word, at, 4), VPPS_STALL, "did not finish");
    TEST_FAILS(cuda->write(d, at, &word, 4), VPPS_STALL, "did not finish");
    cuda->release(d, at);
    cuda->release_host(d, pinned);
    cuda->close(d);
    d = NULL;
    ck_assert_uint_eq(fake->counts().device_blocks, 1); /* freeing the block would wait */
}

TEST(gpus_that_drive_a_display) {
    ck_assert(!d->kernels_time_out);
    ck_assert_uint_eq(vpps_driver_watchdog_ns(d, 0), 10000000000);
    ck_assert_uint_eq(vpps_driver_watchdog_ns(d, 7), 7000000);
    fake->device->kernel_timeout = 1;
    reopen_driver();
    ck_assert(d->kernels_time_out);
    ck_assert_uint_eq(vpps_driver_watchdog_ns(d, 0), 1000000000); /* the kernel reports a stall before it is ended */
    ck_assert_uint_eq(vpps_driver_watchdog_ns(d, 7), 7000000);
    fake->break_call("cuStreamSynchronize", 1, 702);
    TEST_FAILS(cuda->wait(d), VPPS_DEVICE,
               "CUDA_ERROR_LAUNCH_TIMEOUT (702, the launch timed out and was terminated): the GPU drives a display");
    ck_assert_uint_eq(vpps_driver_limit_ns(0), 100000000000);
    ck_assert_uint_eq(vpps_driver_limit_ns(1), 60000000000);
}

/* ---------------------------------------------------------------- the device "auto" */

static vpps_status open_auto(vpps_handle **h, vpps_model *model) {
    vpps_options o = default_options();
    o.device = "auto";
    o.vps = 1;
    return vpps_handle_create(h, model, &o);
}

/* `auto` selects the CPU only if there is no GPU; a GPU that does not work is reported. */
TEST(auto_is_the_cpu_only_without_a_gpu) {
    static const vpps_cu_result none[] = {34, 35, 100};
    const char *path = test_beside("fake_cuda.so");
    OWNED(vpps_model) *model = new_model(1);
    vpps_handle *h;
    close_driver();
    add_matrix(model, "W", 4, 4);
    for (uint32_t i = 0; i < VPPS_COUNT(none) + 2; i++) {
        if (i < VPPS_COUNT(none)) fake->break_call("cuInit", 1, none[i]);
        fake->device->count = i != VPPS_COUNT(none);
        setenv("VPPS_LIBCUDA", i > VPPS_COUNT(none) ? "/nowhere/libcuda.so.1" : path, 1);
        TEST_OK(open_auto(&h, model));
        ck_assert_str_eq(stats_of(h).device, "cpu");
        vpps_handle_destroy(h);
    }
    setenv("VPPS_LIBCUDA", path, 1);
    fake->break_call("cuInit", 1, 999); /* one call to look for a GPU, one to open it */
    fake->break_call("cuInit", 2, 999);
    TEST_FAILS(open_auto(&h, model), VPPS_DEVICE, "the driver does not start");
    fake->break_call("cuDeviceGetAttribute", 1, 1);
    TEST_FAILS(open_auto(&h, model), VPPS_DEVICE, "the device cuda is there, so \"auto\" does not take the cpu");
    setenv("VPPS_LIBCUDA", "libm.so.6", 1);
    TEST_FAILS(open_auto(&h, model), VPPS_DEVICE, "has no function cuInit");
    setenv("VPPS_LIBCUDA", path, 1);
    setenv("VPPS_NVRTC", "/nowhere/libnvrtc.so", 1);
    TEST_FAILS(open_auto(&h, model), VPPS_DEVICE, "/nowhere/libnvrtc.so");
    expect_nothing_left();
}

/* ---------------------------------------------------------------- failing calls, leaks */

TEST_GROUP("kernels", WITH_DRIVER);

TEST(failing_calls_are_named) {
    uint64_t at;
    uint32_t word = 0;
    void *pinned;
    TEST_OK(cuda->allocate(d, 4, &at));
#define FAILS(function, call, text)                                                                                    \
    fake->break_call(function, 1, 1);                                                                                  \
    TEST_FAILS(call, VPPS_DEVICE, text ": CUDA_ERROR_INVALID_VALUE (1, invalid argument)")
    FAILS("cuCtxPushCurrent_v2", cuda->clear(d, at, 4), "the context");
    FAILS("cuMemcpyHtoDAsync_v2", cuda->write(d, at, &word, 4), "a copy to the device");
    FAILS("cuMemcpyDtoHAsync_v2", cuda->read(d, &word, at, 4), "a copy from the device");
    FAILS("cuStreamSynchronize", cuda->read(d, &word, at, 4), "a copy from the device");
    FAILS("cuMemcpyDtoDAsync_v2", cuda->copy(d, at, at, 4), "a copy on the device");
    FAILS("cuMemsetD32Async", cuda->clear(d, at, 4), "clearing device memory");
    vpps_outside_copy outside = {at, at, 0, 0, 4, 1, true};
    FAILS("cuMemcpyDtoDAsync_v2", cuda->copy_outside(d, &outside), "a copy on the device");
    outside.from = 0;
    FAILS("cuMemsetD32Async", cuda->copy_outside(d, &outside), "clearing device memory");
    outside = (vpps_outside_copy){at, at, 1, 1, 1, 2, true};
    FAILS("cuMemcpy2DAsync_v2", cuda->copy_outside(d, &outside), "a copy on the device");
    FAILS("cuEventRecord", cuda->order(d, NULL, true), "the caller's stream");
    FAILS("cuStreamWaitEvent", cuda->order(d, NULL, false), "the caller's stream");
    FAILS("cuStreamSynchronize", cuda->wait(d), "the kernel failed");
    TEST_OK(cuda->allocate_host(d, 4, &pinned));
    memset(pinned, 0, 4);
    FAILS("cuMemcpyHtoDAsync_v2", cuda->upload(d, at, pinned, 4), "a copy to the device");
    FAILS("cuEventRecord", cuda->upload(d, at, pinned, 4), "a copy to the device");
    FAILS("cuStreamWaitEvent", cuda->upload(d, at, pinned, 4), "a copy to the device");
    FAILS("cuEventRecord", cuda->mark(d, 1), "a mark");
    FAILS("cuEventSynchronize", cuda->await(d, 1), "the kernel failed");
#undef FAILS
    TEST_FAILS(cuda->write(d, at, &word, 5), VPPS_DEVICE, "a copy to the device"); /* one byte too many */
}
