/* probe.h - measured times ("trials") of matrix products: measured once, and stored on disk for later runs on this kind of processor. */
#pragma once

#include "runtime/cpu/choices.h"

typedef struct vpps_probe {
    vpps_trial *trials; /* measured times, for all kinds of instructions; static memory that is never freed */
    uint32_t n;         /* number of measured times; 0: nothing was measured */
    bool recalled;      /* whether the times were measured by an earlier run and read from the disk */
    char note[256]; /* message for the user if nothing was measured, or if the times could not be stored; else empty */
} vpps_probe;

/* Returns the trials (measured times of products) that this process has, else reads them from the disk cache, else measures them. */
const vpps_probe *vpps_probe_processor(void);

/* Writes trials (measured times) as lines of text (malloc'd, owned by the caller). Returns NULL if out of memory. */
char *vpps_probe_write(const vpps_trial *trials, uint32_t n);
/* Reads trials (times) that vpps_probe_write wrote, at most VPPS_CPU_TRIALS. Returns how many; 0 if the text is not of
 * exactly the products that the instructions in *units can compute. */
uint32_t vpps_probe_read(const vpps_cpu_units *units, const char *text, vpps_trial *trials);
