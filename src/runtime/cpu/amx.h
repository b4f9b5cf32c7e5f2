/* amx.h - products of bf16 tiles by Intel's AMX. */
#pragma once

#include "runtime/cpu/kernels.h"

/* Fills in *out but for `pack`. Asks the CPU for AMX, and Linux for the permission to use it that a process needs.
 * Fails with DEVICE; the message says why AMX is not to be had. */
vpps_status vpps_amx_find(vpps_bf16_unit *out);
