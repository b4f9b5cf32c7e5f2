/* trials.h - the choices that a device measured: as JSON, and as a table. */
#pragma once

#include "cli/json.h"

/* {"done": ..., "trials": [...]}, of a CPU also "splits", and "products" if wanted; null where the device has nothing to choose. */
json_t *trials_json(vpps_handle *h, bool products);

/* A line a trial that was tried; plans that were not are counted. */
void trials_print(vpps_handle *h, FILE *file);
