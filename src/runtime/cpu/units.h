/* units.h - the kinds of instructions ("units") with which this processor can compute products. */
#pragma once

#include "runtime/cpu/kernels.h"
#include "vpps.h"

/* Kinds of processor instructions ("units") that compute products in bf16, as X(unit). VECTORS: plain vector instructions, as in fp32. */
#define VPPS_BF16_UNIT_TABLE(X) X(VECTORS) X(AVX512_BF16) X(AMX)

#define X(id) VPPS_BF16_##id,
typedef enum vpps_bf16_unit_id { VPPS_BF16_UNIT_TABLE(X) VPPS_BF16_UNITS } vpps_bf16_unit_id;
#undef X

#define X(isa, has) +1
enum { VPPS_MOST_KERNELS = 0 VPPS_ISA_TABLE(X) };
#undef X

typedef struct vpps_cpu_units {
    const vpps_kernels *kernels[VPPS_MOST_KERNELS]; /* kernels of VPPS_ISA_TABLE that the processor can run */
    uint32_t n_kernels;
    /* functions for bf16 products, by kind of instructions; NULL: the processor lacks the kind. bf16[VECTORS] (plain vectors) is unused */
    vpps_bf16_unit bf16[VPPS_BF16_UNITS];
    char why_not[VPPS_BF16_UNITS][96]; /* the reason why the processor lacks a kind of instructions, as text */
} vpps_cpu_units;

/* Sets all fields of *out except `pack`, after checking the CPU for Intel's AMX and asking Linux for the permission to use it. Fails with
 * DEVICE; the message says why AMX is not available. */
vpps_status vpps_amx_find(vpps_bf16_unit *out);

/* Returns the kernels and kinds of bf16 instructions of this processor. They are found at the first call of a process. */
const vpps_cpu_units *vpps_units_of_this_cpu(void);

/* Functions that compute products in a given precision: vector kernels (fp32), or a kind of bf16 instructions (such as AMX). */
typedef struct vpps_cpu_maker {
    const char *name; /* in fp32: of the vector kernels, such as "avx2"; in bf16: of the instructions, such as "amx" */
    vpps_precision precision;
    uint32_t kernels;
    vpps_bf16_unit_id unit;
} vpps_cpu_maker;
enum { VPPS_MOST_MAKERS = VPPS_MOST_KERNELS + 2 * VPPS_BF16_UNITS };

/* Lists all combinations of instructions and precision for products: all kernels in fp32; the fastest kernels with each kind of bf16
 * instructions in bf16 and bf16x3. Returns their number. */
uint32_t vpps_cpu_makers(const vpps_cpu_units *units, vpps_cpu_maker out[VPPS_MOST_MAKERS]);

/* Returns the functions for bf16 products by the kind of instructions `id`. VECTORS: plain vector instructions, of
 * instruction set number `kernels` in *units. */
vpps_bf16_unit vpps_bf16_unit_of(const vpps_cpu_units *units, uint32_t kernels, vpps_bf16_unit_id id);
