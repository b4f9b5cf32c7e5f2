/* processor.h - what this processor is. */
#pragma once

#include "base/base.h"

/* Enough for any of these texts. */
enum { VPPS_PROCESSOR_BYTES = 160 };

/* Its model: "AMD EPYC 9B14", or on ARM, whose processors do not tell a name, "ARM implementer 0x41 part 0xd40". */
void vpps_processor_name(char *text, size_t bytes);

/* The same with its revision and microcode, where the system tells them: what was measured on such a processor holds for. */
void vpps_processor_identity(char *text, size_t bytes);
