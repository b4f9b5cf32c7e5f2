/* precision.h - in what precision the CPU multiplies, and by which instructions. */
#ifndef VPPS_CPU_PRECISION_H
#define VPPS_CPU_PRECISION_H

#include "runtime/cpu/kernels.h"

typedef struct vpps_cpu_precision {
    vpps_precision precision; /* never AUTO */
    uint32_t parts;           /* of an operand: 0 in fp32, 2 in bf16x3, 1 in bf16 */
    vpps_bf16_unit unit;      /* in fp32 only its name */
} vpps_cpu_precision;

/* Asks the CPU for instructions for bf16: vpps_amx_find and vpps_avx512_bf16_find, or in tests what stands for them. */
typedef struct vpps_bf16_hardware {
    vpps_status (*find_amx)(vpps_bf16_unit *out);
    vpps_status (*find_avx512_bf16)(vpps_bf16_unit *out);
} vpps_bf16_hardware;

extern const vpps_bf16_hardware vpps_bf16_of_this_cpu;

/* AUTO is bf16x3 where the hardware multiplies bf16 faster than fp32 and batches, of so many inputs (0: not known), are not too small
 * for it, else fp32; `why` (of why_bytes) then says what made the choice. */
vpps_cpu_precision vpps_choose_precision(vpps_precision asked, uint32_t batch, const vpps_bf16_hardware *hardware,
                                         const vpps_kernels *kernels, bool portable, char *why, size_t why_bytes);

#endif
