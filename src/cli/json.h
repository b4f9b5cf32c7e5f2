/* json.h - values and lines of JSON. */
#pragma once

#include "vpps.h"

#include <jansson.h>

/* A JSON number; null when it is not finite. */
json_t *report_number(double x);

/* One JSON object as a line; takes the object. Fails with IO, MEMORY. */
vpps_status report_json_line(json_t *object, FILE *file);
