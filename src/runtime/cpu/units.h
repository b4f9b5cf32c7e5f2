/* units.h - what this processor can make products with. */
#pragma once

#include "runtime/cpu/kernels.h"
#include "vpps.h"

/* X(unit): what makes products in bf16. VECTORS are the vector instructions of the chosen kernels. */
#define VPPS_BF16_UNIT_TABLE(X) X(VECTORS) X(AVX512_BF16) X(AMX)

#define X(id) VPPS_BF16_##id,
typedef enum vpps_bf16_unit_id { VPPS_BF16_UNIT_TABLE(X) VPPS_BF16_UNITS } vpps_bf16_unit_id;
#undef X

#define X(isa, has) +1
enum { VPPS_MOST_KERNELS = 0 VPPS_ISA_TABLE(X) };
#undef X

typedef struct vpps_cpu_units {
    const vpps_kernels *kernels[VPPS_MOST_KERNELS]; /* those that the processor runs, in the order of VPPS_ISA_TABLE */
    uint32_t n_kernels;
    vpps_bf16_unit
        bf16[VPPS_BF16_UNITS];         /* product NULL: the processor lacks the unit. VECTORS: see vpps_bf16_unit_of */
    char why_not[VPPS_BF16_UNITS][96]; /* why a unit is lacking */
} vpps_cpu_units;

/* Asks the processor and the system, once a process. */
const vpps_cpu_units *vpps_units_of_this_cpu(void);

/* The unit or kernels that make products in a precision. */
typedef struct vpps_cpu_maker {
    const char *name; /* of the kernels in fp32, else of the unit */
    vpps_precision precision;
    uint32_t kernels;
    vpps_bf16_unit_id unit;
} vpps_cpu_maker;
enum { VPPS_MOST_MAKERS = VPPS_MOST_KERNELS + 2 * VPPS_BF16_UNITS };

/* All of them: fp32 by all kernels; bf16 and bf16x3 by all units, with the last kernels. Returns how many. */
uint32_t vpps_cpu_makers(const vpps_cpu_units *units, vpps_cpu_maker out[VPPS_MOST_MAKERS]);

/* The unit with those kernels. */
vpps_bf16_unit vpps_bf16_unit_of(const vpps_cpu_units *units, uint32_t kernels, vpps_bf16_unit_id id);
