/* precision.c - see precision.h. Vectors' bf16 instructions (vdpbf16ps) are not used: where they were measured they are half as
 * fast as fp32's, and plain vectors lose nothing but the time to widen a weight, once for all vectors that it meets. */
#include "runtime/cpu/precision.h"
#include "base/base.h"
#include "runtime/cpu/amx.h"

static uint32_t parts_of(vpps_precision p) { return p == VPPS_PRECISION_FP32 ? 0 : p == VPPS_PRECISION_BF16X3 ? 2 : 1; }

/* AMX, unless something else was asked for. */
static bool find_amx(bool portable, char *why, size_t why_bytes) {
    const char *wanted = getenv("VPPS_ISA");
    const bool other = wanted && *wanted && strcmp(wanted, "amx") != 0;
    if (portable || other) {
        snprintf(why, why_bytes, "%s is asked for", portable ? "plain C" : wanted);
        return false;
    }
    if (vpps_amx_find() == VPPS_OK) {
        snprintf(why, why_bytes, "AMX multiplies bf16 faster than vectors do fp32");
        return true;
    }
    const char *message = vpps_error_message(), *colon = strstr(message, ": ");
    snprintf(why, why_bytes, "%s", colon ? colon + 2 : message);
    return false;
}

vpps_cpu_precision vpps_choose_precision(vpps_precision asked, const vpps_kernels *kernels, bool portable, char *why,
                                         size_t why_bytes) {
    vpps_cpu_precision p = {.precision = asked, .unit = {kernels->isa, kernels->product_bf16, NULL, NULL}};
    snprintf(why, why_bytes, "as asked");
    if (asked == VPPS_PRECISION_FP32) return p;
    const bool amx = find_amx(portable, why, why_bytes);
    if (asked == VPPS_PRECISION_AUTO) p.precision = amx ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
    if (amx) p.unit = (vpps_bf16_unit){"amx", vpps_amx_product, vpps_amx_open, vpps_amx_close};
    p.parts = parts_of(p.precision);
    return p;
}
