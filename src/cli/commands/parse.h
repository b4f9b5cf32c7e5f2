/* parse.h - parses the command line by the table of options. */
#pragma once

#include "cli/commands/commands.h"

/* Parses the arguments after `vpps COMMAND [NETWORK]` (argv[0] is skipped) into *s, whose command and network are set: defaults first, then
 * --config's file, then the command line. Exits after --help (code 0) or a mistake (code 2, with a message on stderr). */
void options_parse(settings *s, const command *c, int argc, char **argv);

/* Finds files on a command line that names no network: the checkpoint (value of --model, --resume or another option with
 * OPTION_NAMES_NETWORK), and the file of --config; NULL: not given. argv[0] is skipped. */
void options_find_files(const settings *s, int argc, char **argv, const char **checkpoint, const char **config);
