/* machine.h - the properties of a GPU that a kernel's plan depends on; of a real GPU, or of an architecture's name. */
#pragma once

#include "base/base.h"

typedef struct vpps_machine {
    char name[96];             /* "NVIDIA H200", or "sm_90" where it was only named */
    uint32_t arch;             /* compute capability without its dot: 90 */
    uint32_t sms;              /* streaming multiprocessors */
    uint32_t sm_registers;     /* 32-bit registers of an SM */
    uint32_t sm_shared_bytes;  /* shared memory of an SM */
    uint32_t cta_shared_bytes; /* of it, what one CTA may use (with opting in) */
    uint64_t l2_bytes;
} vpps_machine;

/* The machine of an architecture, "sm_90" or "90", with that many SMs (0: as many as the largest common GPU of the
 * architecture has). Fails with ARGUMENT; the message lists the architectures. Sizes: CUDA C++ Programming Guide,
 * "Technical Specifications per Compute Capability". */
vpps_status vpps_machine_named(vpps_machine *out, const char *arch, uint32_t sms);

/* Calls see(arch) for every architecture there is, ascending. */
void vpps_machine_architectures(void (*see)(uint32_t arch, void *context), void *context);
