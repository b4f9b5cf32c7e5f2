/* amx.h - Intel's AMX: may this process use it, and a product of bf16 tiles by it. */
#ifndef VPPS_CPU_AMX_H
#define VPPS_CPU_AMX_H

#include "vpps.h"

struct vpps_bf16_term; /* of kernels.h */

/* Asks the CPU, and Linux for the permission that a process needs. Fails with DEVICE, and the message says why it is not to be
 * had. */
vpps_status vpps_amx_find(void);

/* Once it was found: what a thread does before its first product and after its last; and the products. */
void vpps_amx_open(void);
void vpps_amx_close(void);
void vpps_amx_product(uint32_t m, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                      const struct vpps_bf16_term *terms, const float *from, size_t ld_from, float *c, size_t ldc);
void vpps_amx_spread(uint32_t n, uint32_t depth, uint32_t parts, const uint32_t *rows, uint32_t *to);
void vpps_amx_product_t(uint32_t k, uint32_t n, uint32_t parts, const uint32_t *x, uint32_t n_terms,
                        const struct vpps_bf16_term *terms, float *c, size_t ldc);

#endif
