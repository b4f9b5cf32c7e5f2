/* policies.h - the batching policy of a handle, which decides which vertices run together. It is given by name or chosen by measuring. */
#pragma once

#include "runtime/profile.h"
#include "script/script.h"

/* Reads and writes learned batching policies on disk, beside the compiled kernels. */
extern const vpps_policy_store vpps_policies_on_disk;

/* Finds a batching policy by name. NULL selects "depth"; "auto" makes `profile` measure all policies. Fails with ARGUMENT. */
vpps_status vpps_open_policy(const char *name, const vpps_policy **policy, vpps_profile *profile);
