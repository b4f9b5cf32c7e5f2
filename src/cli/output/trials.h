/* trials.h - reports, as JSON and as a table, the speeds that the engine measured on a device to choose between variants of its work. */
#pragma once

#include "cli/common/json.h"

/* Returns the variants and their times as {"done": ..., "trials": [...]}. On a CPU, "splits" has the ways to divide work among virtual
 * processors (threads), and "products", if requested, has the times of matrix products. Returns null if the device has no variants. */
json_t *trials_json(vpps_handle *h, bool products);

/* Prints a line for each measured variant, and the number of variants that were not tried. */
void trials_print(vpps_handle *h, FILE *file);
