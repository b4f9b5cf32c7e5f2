/* avx512_bf16.h - AVX512-BF16: is it there, a product of packed tiles by it (vdpbf16ps), and packing (vcvtne2ps2bf16). */
#ifndef VPPS_CPU_AVX512_BF16_H
#define VPPS_CPU_AVX512_BF16_H

#include "runtime/cpu/kernels.h"

/* Does the compiler know it? */
#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 9) || (!defined(__clang__) && __GNUC__ >= 10))
#define VPPS_HAS_AVX512_BF16
#endif

/* Fails with DEVICE, and the message says why it is not to be had. */
vpps_status vpps_avx512_bf16_find(void);

/* A vpps_product_bf16 and a vpps_pack_bf16; once it was found. */
void vpps_avx512_bf16_product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                              const vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc);
void vpps_avx512_bf16_pack(const vpps_bf16_source *source, uint32_t parts, vpps_bf16_form form, uint32_t depth_tiles,
                           uint32_t *to);

/* A vpps_spread_bf16. */
void vpps_avx512_bf16_spread(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to);

#endif
