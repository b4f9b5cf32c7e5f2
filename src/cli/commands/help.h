/* help.h - prints --help from the tables of commands, networks and options. */
#pragma once

#include "cli/commands/commands.h"

/* Prints the help of `vpps` itself. */
void help_overview(FILE *f);

/* Prints the networks' names, nothing else. */
void help_network_names(FILE *f);

/* Selects the options that help_options prints: those for everyday use, or those of the engine (the library that runs networks). The
 * defaults printed are the values in s. If s names no network, help_options prints only the options that all networks have, and how to list
 * the options of one network. */
typedef enum help_part { HELP_COMMON, HELP_ENGINE } help_part;
void help_options(FILE *f, const settings *s, const command *c, help_part part);

/* Returns whether s's command has engine options, which only --help-engine lists. */
bool help_has_engine(const settings *s);

/* Prints the usage line and the names of the options. */
void help_usage(FILE *f, const settings *s, const command *c);
