/* avx512_bf16.h - products of packed bf16 tiles by AVX512-BF16 (vdpbf16ps), and packing by it (vcvtne2ps2bf16). */
#pragma once

#include "runtime/cpu/kernels.h"

/* Defined if the compiler supports AVX512-BF16. */
#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 9) || (!defined(__clang__) && __GNUC__ >= 10))
#define VPPS_HAS_AVX512_BF16

/* Packs an operand of a product into bf16 tiles (vpps_pack_bf16). */
void vpps_avx512_bf16_pack(const vpps_bf16_source *source, uint32_t parts, vpps_bf16_form form, uint32_t depth_tiles,
                           uint32_t *to);
/* Arranges packed vectors for products with transposed matrices (vpps_spread_bf16): each element x becomes the pairs (x, 0) and (0, x). */
void vpps_avx512_bf16_spread(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to);
#endif

/* Sets *out to the functions for bf16 products by AVX512-BF16; product_t (products with transposed matrices) is NULL.
 * Fails with DEVICE; the message says why AVX512-BF16 is not available. */
vpps_status vpps_avx512_bf16_find(vpps_bf16_unit *out);
