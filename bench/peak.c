/* peak.c - measures the machine's peak of multiply-adds. */
#include "peak.h"
#include "base/base.h"

#include <pthread.h>
#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MAX_THREADS = 1024, CHAINS = 12, STEPS = 4096 };

/* Defines a function that runs STEPS steps of independent chains, so that no multiply-add waits for the preceding one,
 * and returns the number of operations. Storing the chains' sum keeps the compiler from dropping them. */
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

const char *peak_isa(void) { return best_isa().name; }

typedef struct worker {
    pthread_t thread;
    uint64_t ns;
    double rate; /* operations per ns */
} worker;

static void *multiply(void *argument) {
    worker *w = argument;
    const isa best = best_isa();
    volatile float sink;
    double flops = 0;
    best.adds(&sink); /* lets the clock settle */
    const uint64_t start = vpps_now_ns();
    uint64_t now = start;
    for (; now - start < w->ns; now = vpps_now_ns()) flops += best.adds(&sink);
    w->rate = flops / (double)(now - start);
    return NULL;
}

double peak_gflops(uint32_t n_threads, uint64_t ns) {
    worker workers[MAX_THREADS];
    double sum = 0;
    uint32_t n = 0;
    n_threads = vpps_min_u32(n_threads, MAX_THREADS);
    for (; n < n_threads; n++) {
        workers[n] = (worker){.ns = ns};
        if (pthread_create(&workers[n].thread, NULL, multiply, &workers[n])) break;
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].rate;
    }
    return n == n_threads ? sum : 0;
}

uint32_t peak_cores(void) {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) ? 1 : (uint32_t)vpps_max_u32(1, (uint32_t)CPU_COUNT(&cores));
}
