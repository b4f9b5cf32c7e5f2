/* precision.c - see precision.h.
 *
 * AVX512-BF16 is taken only where it is asked for by name: where it was measured, vdpbf16ps makes half as many multiply-adds
 * a second as fp32's instructions do (bench/results/cpu-2core-avx512/precision.md), and plain vectors lose nothing but the
 * time to widen a weight, once for all vectors that it meets. */
#include "runtime/cpu/precision.h"
#include "base/base.h"
#include "runtime/cpu/amx.h"
#include "runtime/cpu/avx512_bf16.h"
#include "runtime/device.h"

const vpps_bf16_hardware vpps_bf16_of_this_cpu = {vpps_amx_find, vpps_avx512_bf16_find};

/* Inputs of a batch, from which on its products gain more in bf16x3 with AMX than packing weights in each update costs, and than is
 * lost where fp32's weights alone stay in L2 (measured there, too, of ten networks). */
enum { LEAST_BATCH = 4 };

/* Fills in the unit: AMX where there is any, unless something else was asked for that there is. False: it stays as it is. */
static bool find_unit(const vpps_bf16_hardware *hardware, bool portable, vpps_bf16_unit *unit, char *why,
                      size_t why_bytes) {
    vpps_bf16_unit vectors = *unit, packing;
    const char *wanted = getenv("VPPS_ISA");
    if (!wanted) wanted = "";
    if (portable || !strcmp(wanted, vectors.name)) {
        snprintf(why, why_bytes, "%s is asked for", portable ? "plain C" : wanted);
        return false;
    }
    if (!strcmp(wanted, "avx512bf16") && hardware->find_avx512_bf16(unit) == VPPS_OK) {
        snprintf(why, why_bytes, "AVX512-BF16 is asked for, and no faster than fp32 where it was measured");
        return true;
    }
    if (hardware->find_amx(unit) != VPPS_OK) {
        const char *message = vpps_error_message(), *colon = strstr(message, ": ");
        snprintf(why, why_bytes, "%s", colon ? colon + 2 : message);
        return false;
    }
    snprintf(why, why_bytes, "AMX multiplies bf16 faster than vectors do fp32");
    unit->pack = vectors.pack;
    if (hardware->find_avx512_bf16(&packing) == VPPS_OK) {
        unit->pack = packing.pack;
        unit->spread = packing.spread;
    }
    return true;
}

vpps_cpu_precision vpps_choose_precision(vpps_precision asked, uint32_t batch, const vpps_bf16_hardware *hardware,
                                         const vpps_kernels *kernels, bool portable, char *why, size_t why_bytes) {
    vpps_cpu_precision p = {
        .precision = asked,
        .unit = {.name = kernels->isa, .product = kernels->product_bf16, .pack = kernels->pack_bf16}};
    snprintf(why, why_bytes, "as asked");
    if (asked == VPPS_PRECISION_FP32) return p;
    vpps_bf16_unit unit = p.unit;
    const bool found = find_unit(hardware, portable, &unit, why, why_bytes);
    if (asked == VPPS_PRECISION_AUTO) {
        const bool amx = found && unit.product_t, pays = !batch || batch >= LEAST_BATCH;
        p.precision = amx && pays ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
        if (amx && !pays) snprintf(why, why_bytes, "packing weights after every %u takes longer than AMX saves", batch);
    }
    p.parts = vpps_precision_parts(p.precision);
    if (p.parts) p.unit = unit;
    return p;
}
