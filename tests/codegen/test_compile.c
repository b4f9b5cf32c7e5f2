/* test_compile.c - NVRTC, what its log says of a kernel, and compiled kernels in the cache.
 *
 * Without NVRTC, the tests that compile check that its absence is reported, and say that they did not compile. Each
 * test is a process of its own, so each finds the library anew. */
#include "base/library.h"
#include "codegen/cache.h"
#include "codegen/compile.h"
#include "codegen/nvrtc.h"
#include "common/folder.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

/* A kernel that needs 128 bytes of static shared memory, and dynamic shared memory. */
static const char *const small_source = "extern \"C\" __global__ void __launch_bounds__(64) small(float *x, int n) {\n"
                                        "    __shared__ float s[32];\n"
                                        "    extern __shared__ float more[];\n"
                                        "    s[threadIdx.x & 31] = x[threadIdx.x];\n"
                                        "    more[threadIdx.x] = 2;\n"
                                        "    __syncthreads();\n"
                                        "    x[n] = s[(threadIdx.x + n) & 31] * more[n];\n"
                                        "}\n";

/* A kernel with 96 values for the 64 registers of each of 1024 threads. */
static const char *const spilling_source =
    "extern \"C\" __global__ void __launch_bounds__(1024) spilling(float *x, int n) {\n"
    "    float r[96];\n"
    "    #pragma unroll\n"
    "    for (int i = 0; i < 96; i++) r[i] = x[threadIdx.x + i * 1024];\n"
    "    for (int k = 0; k < n; k++) {\n"
    "        #pragma unroll\n"
    "        for (int i = 0; i < 96; i++) r[i] = r[i] * x[k] + r[(i + 7) % 96];\n"
    "    }\n"
    "    #pragma unroll\n"
    "    for (int i = 0; i < 96; i++) x[threadIdx.x + i * 1024] = r[i];\n"
    "}\n";

/* A kernel whose array, indexed at run time, lies in local memory, without spills. */
static const char *const indexed_source = "extern \"C\" __global__ void indexed(float *x, const int *at, int n) {\n"
                                          "    float r[16];\n"
                                          "    for (int i = 0; i < n; i++) r[at[i]] = x[i];\n"
                                          "    for (int i = 0; i < n; i++) x[i] = r[at[n - i]];\n"
                                          "}\n";

typedef struct compiled {
    void *cubin;
    size_t bytes;
    vpps_cubin_report report;
} compiled;

static compiled c; /* what was compiled last */

static vpps_status compile(const char *source, const char *name, uint32_t arch, bool use_cache) {
    free(c.cubin);
    c.cubin = &c; /* which a failure replaces by NULL */
    return vpps_compile(source, name, arch, "a small kernel", use_cache, &c.cubin, &c.bytes, &c.report);
}

/* Returns false without NVRTC, after checking that both calls report it. */
static bool have_nvrtc(const char *test) {
    const vpps_nvrtc *nvrtc;
    const char *own = getenv("VPPS_NVRTC"), *name = own && *own ? own : "libnvrtc.so";
    if (vpps_nvrtc_open(&nvrtc) == VPPS_OK) return true;
    TEST_FAILS(vpps_nvrtc_open(&nvrtc), VPPS_DEVICE, name);
    TEST_FAILS(compile(small_source, "small", 90, true), VPPS_DEVICE, name);
    ck_assert_ptr_null(c.cubin);
    test_tell("skipped", "%s: no NVRTC", test);
    return false;
}

static void make_cache(void) { cache_folder_make(); }

TEST_GROUP("compile", .before_each = make_cache);

/* ---------------------------------------------------------------- the library */

TEST(library_by_name) {
    const vpps_nvrtc *nvrtc;
    setenv("VPPS_NVRTC", "/nowhere/libnvrtc.so.99", 1);
    TEST_FAILS(vpps_nvrtc_open(&nvrtc), VPPS_DEVICE, "/nowhere/libnvrtc.so.99");
    vpps_fail(VPPS_OK, "x");
    setenv("VPPS_NVRTC", "", 1); /* too late: a process looks once */
    TEST_FAILS(compile(small_source, "small", 90, true), VPPS_DEVICE, "/nowhere/libnvrtc.so.99");
    ck_assert_ptr_null(c.cubin);
    ck_assert_uint_eq(c.bytes, 0);
}

TEST(another_library) {
    const vpps_nvrtc *nvrtc;
    setenv("VPPS_NVRTC", "libm.so.6", 1);
    TEST_FAILS(vpps_nvrtc_open(&nvrtc), VPPS_DEVICE, "no function nvrtc");
}

/* Copies the fake NVRTC as libraries of versions 12 and 13, to a folder that the loader searches first. */
static void add_versions(void) {
    static const char *const names[] = {"libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc-builtins.so.12.99",
                                        "libnvrtc-builtins.so.13.99"};
    char name[4300];
    const char *const fake = test_beside("fake_nvrtc.so"), *const folder = folder_make();
    for (size_t i = 0; i < VPPS_COUNT(names); i++) {
        snprintf(name, sizeof name, "mkdir -p %s/lib64 && cp %s %s/lib64/%s", folder, fake, folder, names[i]);
        ck_assert_int_eq(system(name), 0);
    }
    setenv("CUDA_HOME", folder, 1);
    unsetenv("VPPS_NVRTC");
}

/* Of several libraries the driver's own version is loaded, else the latest earlier one, else the earliest later one. The machine's own library comes
 * first among equals. */
TEST_EACH(the_version_that_the_driver_loads, 0, 4) {
    static const int wanted[][2] = {{12, 12}, {13, 13}, {99, 13}, {5, 12}};
    const vpps_nvrtc *nvrtc;
    add_versions();
    vpps_library_prefer(wanted[_i][0]);
    const vpps_status status = vpps_nvrtc_open(&nvrtc);
    ck_assert_msg(status == VPPS_OK, "%s", vpps_error_message());
    ck_assert_msg(nvrtc->major == wanted[_i][1] || (wanted[_i][0] == 99 && nvrtc->major > 13), "version %d",
                  nvrtc->major);
}

/* Version 13 knows all options, 12 lacks the last one. Both find their builtins, which they look up by name alone, already open. */
TEST_EACH(an_option_that_is_not_known_is_left_out, 0, 2) {
    char name[64];
    FREED char *ptx = NULL;
    vpps_cubin_report report;
    add_versions();
    snprintf(name, sizeof name, "lib64/libnvrtc.so.%d", 12 + _i);
    setenv("VPPS_NVRTC", folder_path(name), 1);
    const vpps_status status = vpps_compile_ptx("", 90, &ptx, &report);
    snprintf(name, sizeof name, "lib64/libnvrtc-builtins.so.%d.99", 12 + _i);
    const void *builtins = dlopen(folder_path(name), RTLD_NOW | RTLD_NOLOAD);
    ck_assert_msg(status == VPPS_OK, "%s", vpps_error_message());
    ck_assert_str_eq(ptx, _i ? "5" : "4");
    ck_assert_ptr_nonnull(builtins);
}

TEST(version) {
    const vpps_nvrtc *nvrtc;
    if (!have_nvrtc("version")) return;
    TEST_OK(vpps_nvrtc_open(&nvrtc));
    ck_assert_int_ge(nvrtc->major, 11);
    ck_assert_int_ge(nvrtc->minor, 0);
    ck_assert_uint_ge(nvrtc->n_architectures, 3);
    for (uint32_t i = 1; i < nvrtc->n_architectures; i++)
        ck_assert_uint_lt(nvrtc->architectures[i - 1], nvrtc->architectures[i]);
}

/* ---------------------------------------------------------------- compiling */

TEST(every_architecture) {
    const vpps_nvrtc *nvrtc;
    if (!have_nvrtc("every_architecture")) return;
    TEST_OK(vpps_nvrtc_open(&nvrtc));
    for (uint32_t i = 0; i < nvrtc->n_architectures; i++) {
        TEST_OK(compile(small_source, "small", nvrtc->architectures[i], false));
        ck_assert_uint_gt(c.bytes, 1000);
        ck_assert_mem_eq(c.cubin, "\177ELF", 4);
        ck_assert_uint_ge(c.report.registers, 4);
        ck_assert_uint_le(c.report.registers, 32);
        ck_assert_uint_eq(c.report.frame_bytes, 0);
        ck_assert_uint_eq(c.report.shared_bytes, 128);
        ck_assert_uint_eq(c.report.cubin_bytes, c.bytes);
        ck_assert(c.report.seconds > 0 && !c.report.cached);
    }
    ck_assert_int_eq(cache_folder_count(), 0); /* use_cache was false */
}

TEST(spills_and_frames) {
    if (!have_nvrtc("spills_and_frames")) return;
    TEST_OK(compile(spilling_source, "spilling", 90, true));
    ck_assert_uint_le(c.report.registers, 64);
    const uint32_t frame = c.report.frame_bytes;
    ck_assert_uint_ge(frame, 64 * 4);
    TEST_OK(compile(spilling_source, "spilling", 90, true));
    ck_assert(c.report.cached);
    ck_assert_uint_eq(c.report.frame_bytes, frame);
    TEST_OK(compile(indexed_source, "indexed", 90, true));
    ck_assert_uint_eq(c.report.frame_bytes, 16 * 4);
}

/* Of several kernels in a source, the named one's numbers are told, and its functions' stack counts. */
TEST(one_kernel_of_several) {
    static const char deep_source[] = "__device__ __noinline__ float deep(const float *x, int n) {\n"
                                      "    float r[16];\n"
                                      "    for (int i = 0; i < n; i++) r[(int)x[i] & 15] = x[i];\n"
                                      "    return r[n & 15];\n"
                                      "}\n"
                                      "extern \"C\" __global__ void smaller(float *x, int n) { x[n] = deep(x, n); }\n";
    char source[2048];
    if (!have_nvrtc("one_kernel_of_several")) return;
    snprintf(source, sizeof source, "%s%s%s", indexed_source, deep_source, small_source);
    const char *const names[] = {"small", "indexed", "smaller"};
    const uint32_t frames[] = {0, 16 * 4, 16 * 4}, shared[] = {128, 0, 0};
    for (size_t i = 0; i < VPPS_COUNT(names); i++) {
        TEST_OK(compile(source, names[i], 90, false));
        ck_assert_uint_ge(c.report.frame_bytes, frames[i]);
        ck_assert_int_eq(c.report.frame_bytes > 0, frames[i] > 0);
        ck_assert_uint_eq(c.report.shared_bytes, shared[i]);
    }
    TEST_FAILS(compile(source, "smal", 90, false), VPPS_FORMAT, "'smal'");
}

TEST(refused_sources) {
    if (!have_nvrtc("refused_sources")) return;
    TEST_FAILS(compile("__device__ int a;\n__device__ int b = c;\n__device__ int d = e;\n", "small", 90, true),
               VPPS_DEVICE, "kernel.cu(2): error: identifier \"c\" is undefined");
    ck_assert_ptr_null(strchr(vpps_error_message(), '\n'));
    ck_assert_ptr_null(c.cubin);
    TEST_FAILS(compile(small_source, "small", 70, true), VPPS_DEVICE, "sm_70");
    TEST_FAILS(compile(small_source, "smaller", 90, true), VPPS_FORMAT, "'smaller'");
    ck_assert_ptr_null(c.cubin);
    /* ptxas refuses what the front end accepts: 1 MiB of shared memory. */
    TEST_FAILS(compile("extern \"C\" __global__ void small(float *x, int n) {\n"
                       "    __shared__ float s[262144];\n"
                       "    s[threadIdx.x] = x[n]; __syncthreads(); x[n] = s[n];\n"
                       "}\n",
                       "small", 90, true),
               VPPS_DEVICE, "'small' uses too much shared data");
    TEST_FAILS(compile("extern \"C\" __global__ void small() { asm volatile(\"nonsense;\"); }", "small", 90, true),
               VPPS_DEVICE, "'nonsense'");
    ck_assert_int_eq(cache_folder_count(), 0);
}

/* ---------------------------------------------------------------- cache */

/* Compiles the kernel, which must come from the cache or not. Returns it: the caller frees the CUBIN. */
static compiled compile_small(bool cached) {
    TEST_OK(compile(small_source, "small", 90, true));
    ck_assert_int_eq(c.report.cached, cached);
    ck_assert(cached ? c.report.seconds == 0 : c.report.seconds > 0);
    ck_assert_uint_eq(c.report.shared_bytes, 128);
    const compiled made = c;
    c.cubin = NULL;
    return made;
}

/* The second CUBIN equals the first: the compiler makes the same bytes from the same source. */
static void check_same(compiled second, const compiled *first) {
    ck_assert_uint_eq(second.bytes, first->bytes);
    ck_assert_mem_eq(second.cubin, first->cubin, first->bytes);
    ck_assert_uint_eq(second.report.registers, first->report.registers);
    ck_assert_uint_eq(second.report.cubin_bytes, first->bytes);
    free(second.cubin);
}

TEST(cached) {
    size_t n;
    if (!have_nvrtc("cached")) return;
    const compiled first = compile_small(false);
    check_same(compile_small(true), &first);
    ck_assert_int_eq(cache_folder_count(), 1);
    const char *path = cache_folder_entry();
    FREED char *file = folder_load(path, &n);
    const size_t places[] = {0, 40, n / 2, n - 1};
    for (size_t i = 0; i < VPPS_COUNT(places); i++) {
        file[places[i]] ^= 1;
        folder_store(path, file, n);
        file[places[i]] ^= 1;
        check_same(compile_small(false), &first);
        check_same(compile_small(true), &first);
    }
    free(first.cubin);
}

static bool copy_toolchain(const vpps_cache_entry *entry, void *context) {
    ck_assert_str_eq(entry->kind, "cubin");
    ck_assert_str_eq(entry->description, "a small kernel");
    snprintf(context, 512, "%s", entry->toolchain);
    return true;
}

/* Entries with right keys and checksums, whose content is no kernel. */
TEST(cached_nonsense) {
    static const char *const payloads[] = {"", "nonsense", "\177ELF"};
    char toolchain[512];
    if (!have_nvrtc("cached_nonsense")) return;
    const compiled first = compile_small(false);
    TEST_OK(vpps_cache_list(copy_toolchain, toolchain, NULL));
    ck_assert_ptr_nonnull(strstr(toolchain, "NVRTC "));
    ck_assert_ptr_nonnull(strstr(toolchain, "sm_90"));
    const vpps_cache_key key = {"cubin", "a small kernel", toolchain, small_source, strlen(small_source)};
    for (size_t i = 0; i < VPPS_COUNT(payloads); i++) {
        TEST_OK(vpps_cache_write(&key, payloads[i], strlen(payloads[i])));
        check_same(compile_small(false), &first);
        check_same(compile_small(true), &first);
    }
    ck_assert_int_eq(cache_folder_count(), 1);
    free(first.cubin);
}

TEST(cache_out_of_order) {
    if (!have_nvrtc("cache_out_of_order")) return;
    const char *cache = cache_folder_make();
    folder_store(cache, "a file", 6);
    const compiled first = compile_small(false);
    check_same(compile_small(false), &first);
    free(first.cubin);
}

/* ---------------------------------------------------------------- threads */

enum { ROUNDS = 3 };

typedef struct worker {
    char source[ROUNDS][128];
    compiled made[ROUNDS];
    vpps_status status;
    char message[VPPS_MESSAGE_BYTES];
} worker;

static void *compile_sources(void *argument) {
    worker *w = argument;
    for (int i = 0; i < ROUNDS && w->status == VPPS_OK; i++) {
        compiled *m = &w->made[i];
        w->status = vpps_compile(w->source[i], "k", 90, "", true, &m->cubin, &m->bytes, &m->report);
        snprintf(w->message, sizeof w->message, "%s", vpps_error_message());
    }
    return NULL;
}

TEST(two_threads) {
    static worker workers[2];
    pthread_t threads[2];
    for (int w = 0; w < 2; w++) {
        for (int i = 0; i < ROUNDS; i++)
            snprintf(workers[w].source[i], sizeof workers[w].source[i],
                     "extern \"C\" __global__ void k(float *x) { x[threadIdx.x] = %d; }", 10 * w + i);
    }
    /* Both threads also race to open the library. */
    for (int w = 0; w < 2; w++) ck_assert_int_eq(pthread_create(&threads[w], NULL, compile_sources, &workers[w]), 0);
    for (int w = 0; w < 2; w++) ck_assert_int_eq(pthread_join(threads[w], NULL), 0);
    if (!have_nvrtc("two_threads")) {
        for (int w = 0; w < 2; w++) ck_assert_int_eq(workers[w].status, VPPS_DEVICE);
        return;
    }
    for (int w = 0; w < 2; w++) {
        ck_assert_msg(workers[w].status == VPPS_OK, "%s", workers[w].message);
        for (int i = 0; i < ROUNDS; i++) {
            TEST_OK(compile(workers[w].source[i], "k", 90, false));
            check_same(workers[w].made[i], &c);
        }
    }
    ck_assert_int_eq(cache_folder_count(), 2 * ROUNDS);
}
