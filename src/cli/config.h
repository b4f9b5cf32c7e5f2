/* config.h - options from a JSON file, and as JSON. */
#pragma once

#include "cli/json.h"
#include "cli/options.h"

/* The row's value: a number, true or false, a string; null for a text that was not given. */
json_t *config_value(const settings *s, const cli_option *o);

/* Takes the options of the file that were not given before: an object of values by their names, or the record of
 * the start in a run's log, which has one as "options": then a value that is the default counts as not given, and the run's own files are left out.
 * Options of other commands are left out. "network", or "model" in a command that has no checkpoint of that name, is the
 * network's name. Fails with IO, FORMAT (not JSON, by line and column), ARGUMENT (not an option, not a value of it, another
 * network than s's). */
vpps_status config_read(settings *s, const char *path);

/* Which network is meant by the file, for a command line that does not say: *found, by its name; or the one that *checkpoint
 * holds, which is freed by the caller. Both NULL: it does not say. Fails as config_read does. */
vpps_status config_find_network(const settings *s, const char *path, const network **found, char **checkpoint);
