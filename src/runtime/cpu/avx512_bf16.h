/* avx512_bf16.h - products of bf16 operands by AVX512-BF16 (vdpbf16ps): is it there, and a product of packed tiles by it. */
#ifndef VPPS_CPU_AVX512_BF16_H
#define VPPS_CPU_AVX512_BF16_H

#include "vpps.h"

/* Fails with DEVICE, and the message says why it is not to be had. */
vpps_status vpps_avx512_bf16_find(void);

/* A vpps_product_bf16; once it was found. */
void vpps_avx512_bf16_product(uint32_t m, uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *a,
                              const uint32_t *x, const float *from, size_t ld_from, float *c, size_t ldc);

#endif
