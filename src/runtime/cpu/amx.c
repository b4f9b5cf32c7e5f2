/* amx.c - products of bf16 tiles by Intel's AMX. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares syscall */
#endif
#include "base/base.h"
#include "runtime/cpu/units.h"

#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))

#include <cpuid.h>
#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Operand of the instruction LDTILECFG. Palette 1 has eight tiles of at most 16 rows of 64 bytes. */
typedef struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_configuration;
_Static_assert(sizeof(tile_configuration) == 64, "as the manual has it");

static _Thread_local uint32_t tile_rows; /* number of rows that tiles 0 to 5 have in this thread's configuration */

__attribute__((target("amx-tile"))) static void set_rows(uint32_t rows) {
    tile_configuration all = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        all.bytes[t] = 64;
        all.rows[t] = t < 6 ? (uint8_t)rows : 16;
    }
    __asm__ volatile("" ::: "memory");
    _tile_loadconfig(&all);
    tile_rows = rows;
}

#define AMX_FUNCTION __attribute__((target("amx-tile,amx-bf16"))) static inline
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, from, bytes) _tile_loadd(t, from, bytes)
#define TILE_STORE(t, to, bytes) _tile_stored(t, to, bytes)
#define TILE_ROWS(n)                                                                                                   \
    do {                                                                                                               \
        if (tile_rows != (n)) set_rows(n);                                                                             \
    } while (0)
#define TILE_DOT(sums, rows, pairs) _tile_dpbf16ps(sums, rows, pairs)
#include "runtime/cpu/amx_product.h"

static void open_tiles(void) { set_rows(VPPS_BF16_ROWS); }

__attribute__((target("amx-tile"))) static void close_tiles(void) { _tile_release(); }

/* Returns XCR0, whose bits tell which registers of a thread the operating system saves. */
static uint64_t kept_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Returns an integer from -3 to 3, as element (i, k) of a test matrix. */
static float trial_element(uint32_t i, uint32_t k) { return (float)((5 * i + 3 * k + i * k) % 7) - 3; }

static uint32_t trial_pair(uint32_t i, uint32_t k) {
    const float two[2] = {trial_element(i, k), trial_element(i, k + 1)};
    uint32_t u[2];
    memcpy(u, two, sizeof u);
    return u[0] >> 16 | (u[1] & 0xffff0000u);
}

/* Computes test products of 20 rows with n vectors. Returns whether the results, whose sums are exact, are right. */
static bool trial_product(uint32_t n) {
    enum { ROWS = 20, GROUPS = 2, DEPTH = 64, DEPTH_TILES = 2, PAIRS = VPPS_BF16_DEPTH / 2, SIDE = VPPS_BF16_ROWS };
    static _Thread_local uint32_t a[GROUPS * DEPTH_TILES * VPPS_BF16_TILE] __attribute__((aligned(64)));
    static _Thread_local uint32_t x[GROUPS * DEPTH_TILES * VPPS_BF16_TILE] __attribute__((aligned(64)));
    float c[ROWS * ROWS];
    for (uint32_t i = 0; i < GROUPS * SIDE; i++) {
        for (uint32_t q = 0; q < DEPTH / 2; q++) {
            const uint32_t tile = (i / SIDE * DEPTH_TILES + q / PAIRS) * VPPS_BF16_TILE;
            a[tile + q % PAIRS * SIDE + i % SIDE] = i < ROWS ? trial_pair(i, 2 * q) : 0;
            x[tile + i % SIDE * PAIRS + q % PAIRS] = i < n ? trial_pair(i + 7, 2 * q) : 0;
        }
    }
    open_tiles();
    const vpps_bf16_term term = {a, 0, DEPTH};
    amx_product(ROWS, n, 1, x, 1, &term, NULL, 0, c, ROWS);
    amx_product(ROWS, n, 1, x, 1, &term, c, ROWS, c, ROWS);
    close_tiles();
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            float want = 0;
            for (uint32_t k = 0; k < DEPTH; k++) want += 2 * trial_element(i, k) * trial_element(j + 7, k);
            if (!(fabsf(c[j * ROWS + i] - want) < 0.5f)) return false;
        }
    }
    return true;
}

vpps_status vpps_amx_find(vpps_bf16_unit *out) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 }; /* values of Linux's asm/prctl.h */
    const uint32_t tile = 1u << 24, bf16 = 1u << 22, osxsave = 1u << 27;
    const uint64_t tiles = 3u << 17; /* bits of XCR0 for the tiles' configuration and data */
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & tile) || !(d & bf16))
        return vpps_fail(VPPS_DEVICE,
                         "amx: the CPU has no AMX for bf16, or a hypervisor hides it (cpuid 7.0, edx %08x)", d);
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave) || (kept_state() & tiles) != tiles)
        return vpps_fail(VPPS_DEVICE, "amx: the CPU has it, but the operating system does not keep its state (XCR0)");
    if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA))
        return vpps_fail(VPPS_DEVICE, "amx: Linux does not permit it: %s (it can from 5.16 on)", strerror(errno));
    if (!trial_product(20) || !trial_product(5))
        return vpps_fail(VPPS_DEVICE, "amx: the CPU has it, and a trial product came out wrong");
    *out = (vpps_bf16_unit){.name = "amx",
                            .product = amx_product,
                            .spread = amx_spread,
                            .product_t = amx_product_t,
                            .open = open_tiles,
                            .close = close_tiles};
    return VPPS_OK;
}

#else

vpps_status vpps_amx_find(vpps_bf16_unit *out) {
    (void)out;
    return vpps_fail(VPPS_DEVICE,
                     "amx: this program was built for another CPU, or by a compiler that does not know it");
}

#endif
