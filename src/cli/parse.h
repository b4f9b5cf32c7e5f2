/* parse.h - the command line, by the table of options. */
#pragma once

#include "cli/commands.h"

/* Parses the arguments after `vpps COMMAND [NETWORK]` (argv[0] is skipped) into *s, whose command and network are set: first
 * the defaults, then --config's file, then the command line. Ends the process after --help (0) or a mistake (2, with a
 * message on stderr). */
void options_parse(settings *s, const command *c, int argc, char **argv);

/* The defaults of options for s's command, network and action. */
settings options_defaults(const settings *s);

/* The files that --model, --resume (or another option with OPTION_NAMES_NETWORK) and --config name on a command line whose
 * network is not known yet; NULL: it names none. argv[0] is no option. */
void options_find_files(const settings *s, int argc, char **argv, const char **checkpoint, const char **config);
