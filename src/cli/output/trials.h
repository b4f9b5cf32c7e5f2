/* trials.h - reports the plans that the engine measured on a device, as JSON and as a table. */
#pragma once

#include "cli/common/json.h"

/* Returns the measured plans as {"done": ..., "trials": [...]}. A CPU adds "splits" (of stages over virtual processors), and if requested the
 * "products" (times of matrix products). Returns null if the device has nothing to choose. */
json_t *trials_json(vpps_handle *h, bool products);

/* Prints a line for each measured plan, and how many other plans were not tried. */
void trials_print(vpps_handle *h, FILE *file);
