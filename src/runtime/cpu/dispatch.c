/* dispatch.c - which of the kernels compiled in this processor runs. */
#include "runtime/cpu/kernels.h"

#define X(isa, has) extern const vpps_kernels vpps_kernels_##isa;
VPPS_ISA_TABLE(X)
#undef X

const vpps_kernels *vpps_kernels_choose(bool portable) {
    const char *wanted = getenv("VPPS_ISA");
    const vpps_kernels *chosen = NULL;
#define X(isa, has)                                                                                                    \
    if (!portable && wanted && !strcmp(wanted, #isa) && (has)) return &vpps_kernels_##isa;                             \
    if (!chosen || (!portable && (has))) chosen = &vpps_kernels_##isa;
    VPPS_ISA_TABLE(X)
#undef X
    return chosen;
}
