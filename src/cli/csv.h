/* csv.h - comma-separated values by RFC 4180: a field in quotes may hold commas, line ends, and quotes as two. Values between tabs: a
 * line is a record. A field in quotes as a whole, its inner quotes as two, is what a spreadsheet writes of one that holds a tab or a
 * quote; any other quote is text, as in files that were never quoted. */
#pragma once

#include "cli/json.h"

typedef enum csv_state { CSV_BEGIN, CSV_PLAIN, CSV_QUOTED, CSV_QUOTE } csv_state;

/* Takes a line of a record, without its end. Does the record go on in the next line? *state: CSV_BEGIN before the first. */
bool csv_goes_on(csv_state *state, const char *line, size_t len);

/* The fields of a record as an array of strings; `tabs`: they end at tabs. Fails with FORMAT (quotes between commas, bytes that are not
 * UTF-8), MEMORY. */
vpps_status csv_split(const char *text, size_t len, bool tabs, json_t **fields);

/* Writes a field, after `separator` unless that is 0. Fails with FORMAT where a field between tabs holds a line end. */
vpps_status csv_write(FILE *f, const char *field, char separator, bool tabs);
