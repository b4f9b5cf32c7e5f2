/* help.h - what --help prints: commands, networks, and a command's options, from their tables. */
#ifndef VPPS_CLI_HELP_H
#define VPPS_CLI_HELP_H

#include "cli/commands.h"

#include <stdio.h>

/* Of `vpps` itself. */
void help_overview(FILE *f);

/* The networks, a line or more each. */
void help_networks(FILE *f);

/* The options that s's command and network have, with the values they have in s as defaults. */
void help_options(FILE *f, const settings *s, const command *c);

/* The same in short: names only. */
void help_usage(FILE *f, const settings *s, const command *c);

#endif
