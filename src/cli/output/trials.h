/* trials.h - reports, as JSON and as a table, the speeds that the engine measured on a device to choose between variants of its work. */
#pragma once

#include "cli/common/json.h"

/* Returns the variants of its work that the engine timed, as {"done": ..., "trials": [...]}. On a CPU, "splits" has
 * ways to divide work among threads; "products", if requested, has times of matrix products. Returns null if there are
 * none. */
json_t *trials_json(vpps_handle *h, bool products);

/* Prints a line for each timed variant of the engine's work, and the number of variants that were not tried. */
void trials_print(vpps_handle *h, FILE *file);
