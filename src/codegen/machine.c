/* machine.c - the architectures that kernels are generated for, and the properties of their GPUs. */
#include "codegen/machine.h"

enum { SM_REGISTERS = 65536 };

/* `sms` and `l2_kib` are those of one product of the architecture: TITAN RTX, A100, RTX A6000, RTX 6000 Ada, H100 SXM, B200, B300
 * (160 SMs: those of the whole chip), RTX PRO 6000. Other numbers hold for the whole architecture. */
static const struct architecture {
    uint32_t arch, sms, sm_shared_kib, cta_shared_kib,
        l2_kib; /* cta_shared_kib: shared memory of an SM that one CTA may use */
} architectures[] = {
    {75, 72, 64, 64, 6144},     {80, 108, 164, 163, 40960},   {86, 84, 100, 99, 6144},      {89, 142, 100, 99, 98304},
    {90, 132, 228, 227, 51200}, {100, 148, 228, 227, 129024}, {103, 160, 228, 227, 129024}, {120, 188, 100, 99, 131072},
};

static vpps_status fail_unknown(const char *text) {
    char list[VPPS_COUNT(architectures) * 16];
    size_t used = 0;
    for (size_t i = 0; i < VPPS_COUNT(architectures); i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%ssm_%u", i ? ", " : "", architectures[i].arch);
    return vpps_fail(VPPS_ARGUMENT, "'%.40s' is not an architecture that kernels are made for; these are: %s", text,
                     list);
}

vpps_status vpps_machine_named(vpps_machine *out, const char *arch, uint32_t sms) {
    uint64_t wanted; /* the number in "sm_90" or "90" */
    if (!vpps_read_number(strncmp(arch, "sm_", 3) ? arch : arch + 3, UINT32_MAX, &wanted)) return fail_unknown(arch);
    for (size_t i = 0; i < VPPS_COUNT(architectures); i++) {
        const struct architecture *a = &architectures[i];
        if (a->arch != wanted) continue;
        *out = (vpps_machine){.arch = a->arch,
                              .sms = sms ? sms : a->sms,
                              .sm_registers = SM_REGISTERS,
                              .sm_shared_bytes = a->sm_shared_kib * 1024,
                              .cta_shared_bytes = a->cta_shared_kib * 1024,
                              .l2_bytes = (uint64_t)a->l2_kib * 1024};
        snprintf(out->name, sizeof out->name, "sm_%u", a->arch);
        return VPPS_OK;
    }
    return fail_unknown(arch);
}
