/* filter.h - a file's lines through a shell command that gives a line for each. */
#pragma once

#include "io/stream.h"

typedef struct filter filter;

/* Starts the command. A thread of its own hands it the bytes of `source`, or, where that is NULL, of standard input. *fd, which the
 * filter closes, is what it prints. `command` and `source` must outlive the filter. Fails with IO, MEMORY. */
vpps_status filter_open(filter **out, const char *command, vpps_stream *source, int *fd);

/* Ends it after all was read: n lines. Fails with IO where the command failed, the source could not be read, or there were more or fewer
 * lines of it. */
vpps_status filter_end(filter *f, uint64_t n);

/* Frees the filter, and stops the command if it still runs. NULL is fine. */
void filter_close(filter *f);
