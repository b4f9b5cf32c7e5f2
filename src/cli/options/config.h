/* config.h - reads options from a JSON file, and writes them as JSON. */
#pragma once

#include "cli/common/json.h"
#include "cli/options/options.h"

/* Returns an option's value as JSON: a number, true or false, a string, or null for a text that was not given. */
json_t *config_value(const settings *s, const cli_option *o);

/* Takes options that were not given before from a JSON file. The file is an object {option name: value}, or a run's log, whose "start"
 * record has such an object as "options". From a log, default values and the run's own files are left out. Options of other commands are
 * left out. The key "network" names the network, as does "model" where no checkpoint is meant. Fails with IO, FORMAT (not JSON: line and
 * column), ARGUMENT (an unknown option, a wrong value, another network than s's). */
vpps_status config_read(settings *s, const char *path);

/* Finds the network for a command line that names none. *found: the network that the file names, else NULL. *checkpoint: a checkpoint that
 * the file names, from which the network can be read, else NULL. Fails as config_read does. */
vpps_status config_find_network(const settings *s, const char *path, const network **found, const char **checkpoint);
