/* policies.h - the batching policy of a handle: the one that was asked for, or by profile. */
#pragma once

#include "runtime/profile.h"
#include "script/script.h"

/* What is learned is kept beside the compiled kernels. */
extern const vpps_policy_store vpps_policies_on_disk;

/* The policy of that name: NULL is the default, and with "auto" all are profiled. Fails with ARGUMENT. */
vpps_status vpps_open_policy(const char *name, const vpps_policy **policy, vpps_profile *profile);
