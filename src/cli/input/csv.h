/* csv.h - reads and writes CSV and TSV. CSV follows RFC 4180: a quoted field may hold commas, line ends, and quotation marks, which are
 * doubled. In TSV each line is a record. Quotation marks around a whole TSV field are removed and doubled marks inside it become single,
 * since spreadsheets write such fields. Any other quotation mark in TSV is text. */
#pragma once

#include "vpps.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum csv_state { CSV_BEGIN, CSV_PLAIN, CSV_QUOTED, CSV_QUOTE } csv_state;

/* Takes the next line of a record, without its line end. Returns true if the record continues on the following line.
 * *state must be CSV_BEGIN before a record's first line. */
bool csv_goes_on(csv_state *state, const char *line, size_t len);

/* Splits a record into *n fields, which are written to `fields` one after the other, each ended by a NUL. `fields` has room for len + 1
 * bytes; `tabs`: TSV. Fails with FORMAT: a misplaced quotation mark in CSV, bytes that are not UTF-8, a NUL. */
vpps_status csv_split(const char *text, size_t len, bool tabs, char *fields, size_t *n);

/* Writes a field, after `separator` unless that is 0. Fails with FORMAT where a TSV field (`tabs`) holds a line end. */
vpps_status csv_write(FILE *f, const char *field, char separator, bool tabs);
