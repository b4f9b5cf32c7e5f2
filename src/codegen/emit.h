/* emit.h - a plan's kernel as text. What is the same for all models are the files of interp_templates, embedded in the
 * library; what is generated are constants and lists of slots in front of them. */
#ifndef VPPS_EMIT_H
#define VPPS_EMIT_H

#include "plan/partition.h"

/* The whole source, header-free CUDA C++, zero-terminated, the caller's to free. Fails with MEMORY. */
vpps_status vpps_emit_kernel(const vpps_partition *p, vpps_optimizer_kind optimizer, char **source);

/* One line for people: sizes and choices, as in cache entries and logs. */
void vpps_emit_description(const vpps_partition *p, char *text, size_t bytes);

/* Dynamic shared memory of a CTA. */
uint32_t vpps_emit_shared_bytes(const vpps_partition *p);

#endif
