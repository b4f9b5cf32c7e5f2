/* config.h - reads options from a JSON file, and writes them as JSON. */
#pragma once

#include "cli/common/json.h"
#include "cli/options/options.h"

/* Returns an option's value as JSON: a number, true or false, a string, or null for a text that was not given. */
json_t *config_value(const settings *s, const cli_option *o);

/* Takes options that were not given before from a JSON file. The file is an object {option name: value}, or a run's log, whose "start"
 * record has such an object as "options"; from a log, values that equal the default and the run's own files are left out. Options of other
 * commands are left out. "network" (or "model", in a command without a checkpoint of that name) is the network's name. Fails with IO,
 * FORMAT (not JSON: line and column), ARGUMENT (an unknown option, a wrong value, another network than s's). */
vpps_status config_read(settings *s, const char *path);

/* Finds the network for a command line that names none: *found, if the file names a network, or *checkpoint, if the file names a checkpoint
 * that knows its network. Both are NULL when the file names neither. Fails as config_read does. */
vpps_status config_find_network(const settings *s, const char *path, const network **found, const char **checkpoint);
