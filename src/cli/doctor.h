/* doctor.h - facts about this machine that training depends on. */
#ifndef VPPS_CLI_DOCTOR_H
#define VPPS_CLI_DOCTOR_H

#include <jansson.h>

/* The machine as {"devices": [...], "processor": {...}, "caches": {...}, "memory": {...}, "libraries": {...}}. NULL:
 * out of memory. */
json_t *doctor_examine(void);

#endif
