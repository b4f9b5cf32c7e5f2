/* config.h - options from a JSON file, and as JSON. */
#ifndef VPPS_CLI_CONFIG_H
#define VPPS_CLI_CONFIG_H

#include "cli/json.h"
#include "cli/options.h"

/* The row's value: a number, true or false, a string; null for a text that was not given. */
json_t *config_value(const settings *s, const cli_option *o);

/* Takes the options of the file that were not given before: an object of values by their names, or the first line of a run's
 * log, which has one as "options" (the files that the run wrote are left out then). Options of other commands are left out; a value that is the default counts as not
 * given. Fails with IO, FORMAT (not JSON, by line and column), ARGUMENT (not an option, not a value of it). */
vpps_status config_read(settings *s, const char *path);

#endif
