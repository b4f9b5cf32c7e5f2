/* cores.h - how many CPU cores this process may use. */
#pragma once

#include "base/base.h"

/* Size of the CPU mask that the system is asked for, in sets of 1,024 CPUs. */
enum { VPPS_CPU_SETS = 16 };

/* Returns the processor time that this process's control groups allow, in cores: the smallest quota of its own group and that group's
 * ancestors, in both versions of cgroups; 0 without a quota. `root` is the prefix of all paths: "" except in tests. */
double vpps_cores_quota(const char *root);

/* Returns the number of cores that this process may run on, limited by its quota (rounded down); at least 1. */
uint32_t vpps_cores_allowed(void);
