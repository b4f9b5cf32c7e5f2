/* avx512_bf16.h - products of packed bf16 tiles by AVX512-BF16 (vdpbf16ps), and packing by it (vcvtne2ps2bf16). */
#pragma once

#include "runtime/cpu/kernels.h"

/* Does the compiler know it? */
#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 9) || (!defined(__clang__) && __GNUC__ >= 10))
#define VPPS_HAS_AVX512_BF16

/* A vpps_pack_bf16 and a vpps_spread_bf16. */
void vpps_avx512_bf16_pack(const vpps_bf16_source *source, uint32_t parts, vpps_bf16_form form, uint32_t depth_tiles,
                           uint32_t *to);
void vpps_avx512_bf16_spread(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to);
#endif

/* Fills in *out. Its `spread` is for another unit: this one has no `product_t`. Fails with DEVICE; the message says why
 * AVX512-BF16 is not to be had. */
vpps_status vpps_avx512_bf16_find(vpps_bf16_unit *out);
