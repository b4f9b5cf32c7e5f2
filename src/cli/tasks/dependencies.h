/* dependencies.h - generated dependency trees. */
#ifndef VPPS_CLI_TASKS_DEPENDENCIES_H
#define VPPS_CLI_TASKS_DEPENDENCIES_H

#include "vpps_data.h"

/* Appends n trees, read as `how` says; the comments that label sentences are "# polarity = ...". Fails with MEMORY. */
vpps_status dependencies_generate(vpps_sentences *to, const vpps_dependencies *how, uint64_t seed, uint32_t n);

#endif
