/* help.h - the text of --help: commands, networks, and a command's options, from their tables. */
#pragma once

#include "cli/commands.h"

/* Of `vpps` itself. */
void help_overview(FILE *f);

/* The networks' names alone. */
void help_network_names(FILE *f);

/* The options that s's command and network have, with their values in s as defaults: those that most runs need, or those
 * of the engine. Without a network: the options that all networks have, and how to see the others. */
typedef enum help_part { HELP_COMMON, HELP_ENGINE } help_part;
void help_options(FILE *f, const settings *s, const command *c, help_part part);

/* Has s's command options of the engine that --help leaves to --help-engine? */
bool help_has_engine(const settings *s);

/* The same in short: names only. */
void help_usage(FILE *f, const settings *s, const command *c);
