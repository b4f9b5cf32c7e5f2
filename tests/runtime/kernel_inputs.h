/* kernel_inputs.h - what tests of kernels share: the kernels of every instruction set, newly drawn numbers (VPPS_TEST_SEED repeats a run), and memory
 * that ends where a page without access begins, so that reading or writing past its end faults. */
#pragma once

#include "common/testing.h"
#include "runtime/cpu/units.h"

#include <sys/mman.h>
#include <unistd.h>

static uint64_t seed, state;

__attribute__((constructor)) static void draw_seed(void) {
    state = seed = getenv("VPPS_TEST_SEED") ? test_seed() : vpps_now_ns();
}

/* Returns the kernels of instruction set number i, from 0, of those that this processor has. */
static inline const vpps_kernels *kernels_of(int i) { return vpps_units_of_this_cpu()->kernels[i]; }

/* Returns the number of instruction sets; the first call tells how many this processor lacks. */
static inline int n_isas(void) {
    static bool told;
    const uint32_t n = vpps_units_of_this_cpu()->n_kernels;
    if (!told && n < VPPS_MOST_KERNELS) TEST_LEFT_OUT("kernels that this processor lacks: %u", VPPS_MOST_KERNELS - n);
    told = true;
    return (int)n;
}

/* Makes a check for each instruction set: that of kernels_of(_i). */
#define EACH_ISA(name) TEST_EACH(name, 0, n_isas())

static struct {
    void *at;
    size_t bytes;
} rooms[4096];
static uint32_t n_rooms;

/* Allocates memory right before a page that faults. It need not be freed, since each test is a process. */
static inline void *room(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    char *base = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(base != MAP_FAILED && mprotect(base + whole, page, PROT_NONE) == 0 && n_rooms < VPPS_COUNT(rooms));
    rooms[n_rooms].at = base;
    rooms[n_rooms++].bytes = whole + page;
    return base + whole - bytes;
}
static inline float *floats(size_t n) { return room(n * sizeof(float)); }

/* Frees all rooms, for tests that take many. */
static inline void free_rooms(void) {
    while (n_rooms) n_rooms--, munmap(rooms[n_rooms].at, rooms[n_rooms].bytes);
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
