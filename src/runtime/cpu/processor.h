/* processor.h - the name of this machine's processor. */
#pragma once

#include "base/base.h"

/* Size of a buffer for the texts that the following functions write. */
enum { VPPS_PROCESSOR_BYTES = 160 };

/* Writes the processor's model: "AMD EPYC 9B14", or on ARM, where processors have no name, "ARM implementer 0x41 part 0xd40". */
void vpps_processor_name(char *text, size_t bytes);

/* Writes the processor's model, revision and microcode, if known, as key for measured times that are kept on disk. */
void vpps_processor_identity(char *text, size_t bytes);
