/* amx.h - products of bf16 tiles by Intel's AMX. */
#pragma once

#include "runtime/cpu/kernels.h"

/* Fills in *out except `pack`, after asking the CPU for AMX and Linux for the permission that a process needs to use
 * it. Fails with DEVICE; the message says why AMX is not available. */
vpps_status vpps_amx_find(vpps_bf16_unit *out);
