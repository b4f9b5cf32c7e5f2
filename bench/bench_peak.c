/* bench_peak.c - what every core the process may use reaches together: multiply-adds in registers, and a triad on arrays
 * beyond the caches (McCalpin 1995, "STREAM"). The two limits of a roofline (Williams, Waterman and Patterson 2009).
 *
 *     bench_peak        prints {"threads": N, "isa": "...", "gflops": X, "gbs": Y}
 *
 * A multiply-add is 2 operations. The triad a = b + s c moves 12 bytes an element: what a cache reads of `a` only to
 * overwrite it is not counted, as in STREAM.
 */
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MAX_THREADS = 1024, CHAINS = 12, STEPS = 4096, TRIAD_ELEMS = 32 << 20 };
static const uint64_t duration_ns = 200000000;

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    double (*work)(const struct worker *w);
    size_t elems; /* of this thread's arrays */
    double result;
} worker;

/* ---------------------------------------------------------------- multiply-adds: flops of STEPS steps */

/* Written once for every width: independent chains, so that none waits for another's result. Their sum is used, or the
 * compiler would drop them. */
#define MULTIPLY_ADDS(name, attribute, vector, lanes, set, multiply_add, first)                                        \
    attribute static double name(volatile float *sink) {                                                               \
        const vector a = set(0.999f), b = set(0.001f);                                                                 \
        vector x[CHAINS];                                                                                              \
        for (int i = 0; i < CHAINS; i++) x[i] = set((float)i);                                                         \
        for (int step = 0; step < STEPS; step++) {                                                                     \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) x[i] = multiply_add(x[i], a, b);                 \
        }                                                                                                              \
        float sum = 0;                                                                                                 \
        for (int i = 0; i < CHAINS; i++) sum += first(x[i]);                                                           \
        *sink = sum;                                                                                                   \
        return 2.0 * (lanes)*CHAINS * STEPS;                                                                           \
    }

#if defined(__x86_64__)
MULTIPLY_ADDS(adds_avx512, __attribute__((target("avx512f"))), __m512, 16, _mm512_set1_ps, _mm512_fmadd_ps,
              _mm512_cvtss_f32)
MULTIPLY_ADDS(adds_avx2, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_set1_ps, _mm256_fmadd_ps,
              _mm256_cvtss_f32)
#endif

typedef float portable __attribute__((vector_size(16)));
static inline portable portable_set(float x) { return (portable){x, x, x, x}; }
static inline portable portable_multiply_add(portable x, portable a, portable b) { return x * a + b; }
static inline float portable_first(portable x) { return x[0]; }
MULTIPLY_ADDS(adds_portable, , portable, 4, portable_set, portable_multiply_add, portable_first)

typedef struct isa {
    const char *name;
    double (*adds)(volatile float *sink);
} isa;

static isa best_isa(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return (isa){"avx512", adds_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return (isa){"avx2", adds_avx2};
#endif
    return (isa){"portable", adds_portable};
}

/* Operations a ns. */
static double multiply_adds(const worker *w) {
    const isa best = best_isa();
    volatile float sink;
    double flops = 0;
    (void)w;
    best.adds(&sink); /* the clock settles */
    const uint64_t start = vpps_now_ns();
    uint64_t now = start;
    for (; now - start < duration_ns; now = vpps_now_ns()) {
        for (int i = 0; i < 16; i++) flops += best.adds(&sink);
    }
    return flops / (double)(now - start);
}

/* ---------------------------------------------------------------- triad */

/* Bytes a ns; 0 when there is no memory. */
static double triad(const worker *w) {
    const size_t n = w->elems / 4; /* vectors, as wide as a memory needs them */
    portable *restrict a = malloc(n * sizeof *a);
    portable *restrict b = malloc(n * sizeof *b);
    portable *restrict c = malloc(n * sizeof *c);
    double bytes = 0;
    uint64_t start = 0, now = 0;
    if (a && b && c) {
        for (size_t i = 0; i < n; i++) { /* touched by the thread that uses it */
            a[i] = b[i] = portable_set(1);
            c[i] = portable_set(2);
        }
        start = now = vpps_now_ns();
        for (float s = 0.5f; now - start < duration_ns; s += 0.5f, now = vpps_now_ns()) {
            const portable factor = portable_set(s);
            for (size_t i = 0; i < n; i++) a[i] = b[i] + factor * c[i];
            __asm__ volatile("" ::"r"(a) : "memory");
            bytes += 3.0 * sizeof *a * (double)n;
        }
    }
    free(a);
    free(b);
    free(c);
    return bytes > 0 ? bytes / (double)(now - start) : 0;
}

/* ---------------------------------------------------------------- all cores */

static void *run_worker(void *argument) {
    worker *w = argument;
    pthread_barrier_wait(w->start);
    w->result = w->work(w);
    return NULL;
}

static double on_all_cores(uint32_t n, double (*work)(const worker *)) {
    static worker workers[MAX_THREADS];
    pthread_barrier_t start;
    if (pthread_barrier_init(&start, NULL, n)) exit(EXIT_FAILURE);
    for (uint32_t i = 0; i < n; i++) {
        workers[i] = (worker){.start = &start, .work = work, .elems = TRIAD_ELEMS / n};
        if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i])) {
            fprintf(stderr, "bench_peak: cannot start thread %u\n", i);
            exit(EXIT_FAILURE);
        }
    }
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].result;
    }
    pthread_barrier_destroy(&start);
    return sum;
}

int main(void) {
    cpu_set_t cores;
    uint32_t n = sched_getaffinity(0, sizeof cores, &cores) ? 1 : (uint32_t)CPU_COUNT(&cores);
    n = vpps_max_u32(1, vpps_min_u32(n, MAX_THREADS));
    const double gflops = on_all_cores(n, multiply_adds), gbs = on_all_cores(n, triad);
    printf("{\"threads\": %u, \"isa\": \"%s\", \"gflops\": %.2f, \"gbs\": %.2f}\n", n, best_isa().name, gflops, gbs);
    return EXIT_SUCCESS;
}
