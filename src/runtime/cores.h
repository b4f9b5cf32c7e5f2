/* cores.h - how many cores this process may use. */
#pragma once

#include "base/base.h"

/* The system is asked for so many sets of 1,024 CPUs. */
enum { VPPS_CPU_SETS = 16 };

/* Processor time that the control groups of this process allow, in cores: the least quota of its own group and of those above
 * it, in both versions of cgroups; 0: there is no quota. `root`: what all paths begin with, "" but in tests. */
double vpps_cores_quota(const char *root);

/* Cores that this process may run on, but no more than its quota, rounded down; at least 1. */
uint32_t vpps_cores_allowed(void);
