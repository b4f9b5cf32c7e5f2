/* dependencies.h - generates dependency trees. */
#pragma once

#include "vpps_data.h"

/* Appends n generated trees, in the representation that `how` selects; the comments that label sentences are "#
 * polarity = ...". Fails with MEMORY. */
vpps_status dependencies_generate(vpps_sentences *to, const vpps_dependencies *how, uint64_t seed, uint32_t n);
