/* probe.h - the trials of this processor's products: made once, and kept in the cache for processors of its kind. */
#pragma once

#include "runtime/cpu/choices.h"

typedef struct vpps_probe {
    vpps_trial *trials; /* of all units; the memory belongs to the module, and is never freed */
    uint32_t n;         /* 0: there are none */
    bool recalled;      /* an earlier run made them */
    char note[256];     /* why there are none, or why they could not be kept; else empty */
} vpps_probe;

/* The trials that this process made or recalled before, else those in the cache, else new ones. */
const vpps_probe *vpps_probe_processor(void);

/* Trials as lines of text, malloc'd, the caller's; NULL: out of memory. And back: how many they are, at most VPPS_CPU_TRIALS; 0: the
 * text is not that of all trials of these units. */
char *vpps_probe_write(const vpps_trial *trials, uint32_t n);
uint32_t vpps_probe_read(const vpps_cpu_units *units, const char *text, vpps_trial *trials);
