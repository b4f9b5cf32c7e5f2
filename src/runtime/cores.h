/* cores.h - how many CPU cores this process may use. */
#pragma once

#include "base/base.h"

/* Size of the CPU mask that is passed to the system, in sets of 1,024 CPUs. */
enum { VPPS_CPU_SETS = 16 };

/* Returns the processor time that Linux's control groups allow this process, in cores: the smallest quota of the process's group and that
 * group's ancestors, in cgroups v1 or v2; 0 without a quota. `root` is the prefix of all paths: "" except in tests. */
double vpps_cores_quota(const char *root);

/* Returns the number of cores that this process may run on, limited by its quota (rounded down); at least 1. */
uint32_t vpps_cores_allowed(void);
