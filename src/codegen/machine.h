/* machine.h - the properties of a GPU that a kernel's plan depends on, read from a real GPU or given by an architecture's name. */
#pragma once

#include "base/base.h"

typedef struct vpps_machine {
    char name[96];             /* "NVIDIA H200", or "sm_90" if only the architecture is known */
    uint32_t number;           /* number of the GPU on this host; 0 if only the architecture is known */
    uint32_t arch;             /* compute capability without its dot: 90 for 9.0 */
    uint32_t sms;              /* streaming multiprocessors */
    uint32_t sm_registers;     /* number of 32-bit registers of an SM */
    uint32_t sm_shared_bytes;  /* bytes of shared memory of an SM */
    uint32_t cta_shared_bytes; /* most bytes of shared memory that one CTA may use (by opting in) */
    uint64_t l2_bytes;
    int driver; /* CUDA version of the GPU's driver, such as 13000; 0 if only the architecture is known */
} vpps_machine;

/* Fills in the properties of an architecture, "sm_90" or "90", with `sms` SMs (0: as many as its largest common GPU has). Fails with
 * ARGUMENT; the message lists the architectures. Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". */
vpps_status vpps_machine_named(vpps_machine *out, const char *arch, uint32_t sms);
