/* json.h - writes JSON values and lines. */
#pragma once

#include "vpps.h"

#include <jansson.h>

/* Returns x as a JSON number, or null when x is not finite. */
json_t *report_number(double x);

/* Writes an object as one line and releases the object. Fails with IO, MEMORY. */
vpps_status report_json_line(json_t *object, FILE *file);
