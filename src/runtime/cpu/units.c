/* units.c - finds the instructions with which this processor can compute products. */
#include "runtime/cpu/units.h"
#include "runtime/cpu/avx512_bf16.h"

#include <pthread.h>

static vpps_cpu_units here;

/* Keeps the latest error message, without the unit's name in front, as the reason why a kind of bf16 instructions is not available. */
static void note_why_not(vpps_bf16_unit_id id) {
    const char *message = vpps_error_message(), *colon = strstr(message, ": ");
    snprintf(here.why_not[id], sizeof here.why_not[id], "%s", colon ? colon + 2 : message);
}

static void find(void) {
    vpps_bf16_unit *dot = &here.bf16[VPPS_BF16_AVX512_BF16], *amx = &here.bf16[VPPS_BF16_AMX];
#define X(isa, has)                                                                                                    \
    if (has) here.kernels[here.n_kernels++] = &vpps_kernels_##isa;
    VPPS_ISA_TABLE(X)
#undef X
    if (vpps_avx512_bf16_find(dot) != VPPS_OK) note_why_not(VPPS_BF16_AVX512_BF16);
    if (vpps_amx_find(amx) != VPPS_OK) {
        note_why_not(VPPS_BF16_AMX);
        return;
    }
    const vpps_kernels *vectors = here.kernels[here.n_kernels - 1];
    amx->pack = dot->pack ? dot->pack : vectors->pack_bf16;
    if (dot->spread) amx->spread = dot->spread;
}

const vpps_cpu_units *vpps_units_of_this_cpu(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    return &here;
}

uint32_t vpps_cpu_makers(const vpps_cpu_units *u, vpps_cpu_maker out[VPPS_MOST_MAKERS]) {
    const uint32_t last = u->n_kernels - 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i <= last; i++) out[n++] = (vpps_cpu_maker){u->kernels[i]->isa, VPPS_PRECISION_FP32, i, 0};
    for (uint32_t i = 0; i < 2 * VPPS_BF16_UNITS; i++) {
        const vpps_bf16_unit_id unit = (vpps_bf16_unit_id)(i % VPPS_BF16_UNITS);
        const vpps_precision precision = i < VPPS_BF16_UNITS ? VPPS_PRECISION_BF16 : VPPS_PRECISION_BF16X3;
        const vpps_bf16_unit found = vpps_bf16_unit_of(u, last, unit);
        if (found.product) out[n++] = (vpps_cpu_maker){found.name, precision, last, unit};
    }
    return n;
}

vpps_bf16_unit vpps_bf16_unit_of(const vpps_cpu_units *units, uint32_t kernels, vpps_bf16_unit_id id) {
    const vpps_kernels *k = units->kernels[kernels];
    if (id != VPPS_BF16_VECTORS) return units->bf16[id];
    return (vpps_bf16_unit){.name = k->isa, .product = k->product_bf16, .pack = k->pack_bf16};
}
