/* kernel_inputs.h - what tests of kernels share: the kernels of every instruction set, newly drawn numbers (VPPS_TEST_SEED repeats a run), and memory
 * that ends where a page without access begins, so that reading or writing past its end faults. */
#pragma once

#include "common/testing.h"
#include "runtime/cpu/units.h"

#include <sys/mman.h>
#include <unistd.h>

#define X(isa, has) #isa,
static const char *const isas[] = {VPPS_ISA_TABLE(X)};
#undef X
enum { N_ISAS = VPPS_COUNT(isas) };

static uint64_t seed, state;

static inline void draw_seed(void) { state = seed = getenv("VPPS_TEST_SEED") ? test_seed() : vpps_now_ns(); }

/* Returns the kernels of instruction set number i; NULL: this CPU lacks the instruction set. */
static inline const vpps_kernels *kernels_of(int i) {
    const vpps_cpu_units *units = vpps_units_of_this_cpu();
    for (uint32_t k = 0; k < units->n_kernels; k++)
        if (strcmp(units->kernels[k]->isa, isas[i]) == 0) return units->kernels[k];
    return NULL;
}

/* Returns the same kernels, for a test of all instruction sets: tells which one is left out. */
static inline const vpps_kernels *kernels_to_try(int i) {
    static bool told[N_ISAS];
    const vpps_kernels *kernels = kernels_of(i);
    if (!kernels && !told[i]) TEST_LEFT_OUT("kernels for %s, which this processor lacks", isas[i]);
    told[i] = true;
    return kernels;
}

/* Allocates n floats right before a page that faults. They need not be freed, since each test is a process; many are. */
static inline float *floats(size_t n) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (n * sizeof(float) + page - 1) / page * page;
    char *base = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(base != MAP_FAILED && mprotect(base + bytes, page, PROT_NONE) == 0);
    return (float *)(void *)(base + bytes) - n;
}

static inline void release(float *x, size_t n) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (n * sizeof(float) + page - 1) / page * page;
    munmap((char *)(void *)(x + n) - bytes, bytes + page);
}

static inline uint32_t below(uint32_t n) { return vpps_random_below(&state, n); }

/* Draws a size from 1 to `most`, often one at which the code changes loops. */
static inline uint32_t draw_size(uint32_t most) {
    static const uint32_t edges[] = {1,  2,  3,  4,  5,  6,  7,  8,  12, 13,  15, 16,
                                     17, 31, 32, 33, 48, 63, 64, 65, 96, 128, 129};
    const uint32_t size = edges[below(VPPS_COUNT(edges))];
    return below(3) && size <= most ? size : 1 + below(most);
}

static inline float draw(float low, float high) { return low + (high - low) * vpps_random_unit(&state); }

static inline float *drawn(size_t n, float low, float high) {
    float *x = floats(n);
    for (size_t i = 0; i < n; i++) x[i] = draw(low, high);
    return x;
}

static inline bool close_to(float got, double want, double tolerance) {
    if (isnan(want)) return isnan(got);
    if (isinf((float)want)) return (double)got == (double)(float)want;
    if (fabs(want) > 1e36 && isinf(got)) return (got > 0) == (want > 0); /* an intermediate result may overflow */
    return fabs(got - want) <= tolerance;
}
