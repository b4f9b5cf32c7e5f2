/* precision.c - see precision.h. Vectors' bf16 instructions (vdpbf16ps) are not used: where they were measured they are half as
 * fast as fp32's, and plain vectors lose nothing but the time to widen a weight, once for all vectors that it meets. */
#include "runtime/cpu/precision.h"

static uint32_t parts_of(vpps_precision p) { return p == VPPS_PRECISION_FP32 ? 0 : p == VPPS_PRECISION_BF16X3 ? 2 : 1; }

vpps_cpu_precision vpps_choose_precision(vpps_precision asked, const vpps_kernels *kernels, bool portable, char *why,
                                         size_t why_bytes) {
    (void)portable;
    vpps_cpu_precision p = {.precision = asked, .unit = {kernels->isa, kernels->product_bf16, NULL, NULL}};
    if (asked == VPPS_PRECISION_AUTO) {
        p.precision = VPPS_PRECISION_FP32;
        snprintf(why, why_bytes, "%s multiplies bf16 no faster than fp32", kernels->isa);
    }
    p.parts = parts_of(p.precision);
    return p;
}
