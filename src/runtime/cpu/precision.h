/* precision.h - in what precision the CPU multiplies, and by which instructions. */
#ifndef VPPS_CPU_PRECISION_H
#define VPPS_CPU_PRECISION_H

#include "runtime/cpu/kernels.h"

/* What makes products of bf16 operands, and packs them. A thread that calls `product` has called `open` before, and calls `close` when it
 * has no more to do. Both may be NULL. */
typedef struct vpps_bf16_unit {
    const char *name;
    vpps_product_bf16 product;
    vpps_pack_bf16 pack;
    vpps_spread_bf16 spread;
    vpps_product_t_bf16 product_t; /* NULL, and `spread`: it needs transposed copies */
    void (*open)(void);
    void (*close)(void);
} vpps_bf16_unit;

typedef struct vpps_cpu_precision {
    vpps_precision precision; /* never AUTO */
    uint32_t parts;           /* of an operand: 0 in fp32, 2 in bf16x3, 1 in bf16 */
    vpps_bf16_unit unit;      /* in fp32 only its name */
} vpps_cpu_precision;

/* Asks the CPU for instructions for bf16. Each fails where they are not to be had, and the message says why. */
typedef struct vpps_bf16_hardware {
    vpps_status (*find_amx)(void);
    vpps_status (*find_avx512_bf16)(void);
} vpps_bf16_hardware;

extern const vpps_bf16_hardware vpps_bf16_of_this_cpu;

/* AUTO is bf16x3 where the hardware multiplies bf16 faster than fp32 and batches, of so many inputs (0: not known), are not too small
 * for it, else fp32; `why` (of why_bytes) then says what made the choice. */
vpps_cpu_precision vpps_choose_precision(vpps_precision asked, uint32_t batch, const vpps_bf16_hardware *hardware,
                                         const vpps_kernels *kernels, bool portable, char *why, size_t why_bytes);

#endif
