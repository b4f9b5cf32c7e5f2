/* avx512_bf16.c - products of packed bf16 tiles by AVX512-BF16.
 *
 * vdpbf16ps takes a pair of elements of 16 packed rows, and the vector's pair at the same columns. It adds each row's two products to the
 * row's sum, one after the other, rounding each time to the nearest fp32 whatever the thread's rounding mode. Subnormals become zero
 * (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS). The error bound of bf16.h allows all this. */
#include "runtime/cpu/avx512_bf16.h"

#ifdef VPPS_HAS_AVX512_BF16

#include <immintrin.h>

#define DOT_TARGET target("avx512f,avx512vl,avx512bw,avx512bf16")
#define DOT_INLINE __attribute__((DOT_TARGET, always_inline)) static inline

#define VECTOR 16
#define VECTOR_REGISTERS 32
enum { SIDE = VPPS_BF16_ROWS, PAIRS = VPPS_BF16_DEPTH / 2, PRODUCT_HEIGHT = 4, PRODUCT_COLUMNS = 6, SUM_RUN = 1024 };

DOT_INLINE __m512 dot(__m512 sum, __m512i rows, uint32_t pair) {
    return _mm512_dpbf16_ps(sum, (__m512bh)rows, (__m512bh)_mm512_set1_epi32((int)pair));
}

/* Multiplies height * 16 matrix rows with `columns` vectors (bf16_product.h). Callers pass constants for height,
 * columns and parts (number of bf16 numbers that represent an fp32 number), so that loops unroll. */
DOT_INLINE void bf16_tile(const uint32_t height, const uint32_t columns, const uint32_t parts, uint32_t depth,
                          uint32_t first, uint32_t end, const uint32_t *a, uint32_t row, const uint32_t *x, uint32_t j0,
                          const float *from, size_t ld_from, float *c, size_t ldc, uint32_t tail) {
    const size_t step = (size_t)parts * VPPS_BF16_TILE, stride = vpps_bf16_depth_tiles(depth) * step;
    const uint32_t *rows_at = a + row / SIDE * stride + first * step, *xs[PRODUCT_COLUMNS];
    const __mmask16 last = (__mmask16)((1u << tail) - 1);
    __m512 sum[PRODUCT_COLUMNS][PRODUCT_HEIGHT];
#pragma GCC unroll 6
    for (uint32_t j = 0; j < columns; j++) {
        xs[j] = x + (j0 + j) / SIDE * stride + first * step + (size_t)((j0 + j) % SIDE) * PAIRS;
#pragma GCC unroll 4
        for (uint32_t i = 0; i < height; i++) {
            const __mmask16 mask = i + 1 == height ? last : (__mmask16)0xffff;
            sum[j][i] = from ? _mm512_maskz_loadu_ps(mask, from + j * ld_from + i * SIDE) : _mm512_setzero_ps();
        }
    }
    size_t at = 0;
    for (uint32_t d = first; d < end; d++, at += step) {
        const uint32_t pairs = vpps_min_u32((depth + 1) / 2 - d * PAIRS, PAIRS);
#pragma GCC unroll 1
        for (size_t q = 0; q < pairs; q++) {
            __m512i high[PRODUCT_HEIGHT], low[PRODUCT_HEIGHT];
#pragma GCC unroll 4
            for (uint32_t i = 0; i < height; i++) {
                const uint32_t *rows = rows_at + i * stride + at + q * SIDE;
                high[i] = _mm512_loadu_si512(rows);
                if (parts == 2) low[i] = _mm512_loadu_si512(rows + VPPS_BF16_TILE);
            }
#pragma GCC unroll 6
            for (uint32_t j = 0; j < columns; j++) {
                const uint32_t *pair = xs[j] + at + q;
#pragma GCC unroll 4
                for (uint32_t i = 0; parts == 2 && i < height; i++) sum[j][i] = dot(sum[j][i], low[i], pair[0]);
#pragma GCC unroll 4
                for (uint32_t i = 0; parts == 2 && i < height; i++)
                    sum[j][i] = dot(sum[j][i], high[i], pair[VPPS_BF16_TILE]);
#pragma GCC unroll 4
                for (uint32_t i = 0; i < height; i++) sum[j][i] = dot(sum[j][i], high[i], pair[0]);
            }
        }
    }
#pragma GCC unroll 6
    for (uint32_t j = 0; j < columns; j++) {
#pragma GCC unroll 4
        for (uint32_t i = 0; i < height; i++) {
            const __mmask16 mask = i + 1 == height ? last : (__mmask16)0xffff;
            _mm512_mask_storeu_ps(c + j * ldc + i * SIDE, mask, sum[j][i]);
        }
    }
}

#define BF16_WHOLE false
#define BF16_TARGET __attribute__((DOT_TARGET))
#define BF16_INLINE DOT_INLINE
#include "runtime/cpu/bf16_product.h"

vpps_status vpps_avx512_bf16_find(vpps_bf16_unit *out) {
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bf16"))
        return vpps_fail(VPPS_DEVICE, "avx512bf16: the CPU has no AVX512-BF16, or a hypervisor hides it");
    *out = (vpps_bf16_unit){.name = "avx512bf16",
                            .product = product_bf16,
                            .pack = vpps_avx512_bf16_pack,
                            .spread = vpps_avx512_bf16_spread};
    return VPPS_OK;
}

#else

vpps_status vpps_avx512_bf16_find(vpps_bf16_unit *out) {
    (void)out;
    return vpps_fail(VPPS_DEVICE,
                     "avx512bf16: this program was built for another CPU, or by a compiler that does not know it");
}

#endif
