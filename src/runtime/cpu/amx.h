/* amx.h - products of bf16 tiles by Intel's AMX. */
#pragma once

#include "runtime/cpu/kernels.h"

/* Sets all fields of *out except `pack`, after checking the CPU for AMX and asking Linux for the permission to use it. Fails with DEVICE; the message
 * says why AMX is not available. */
vpps_status vpps_amx_find(vpps_bf16_unit *out);
