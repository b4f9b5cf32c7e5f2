/* parse.h - the command line: options parsed by argp. */
#ifndef VPPS_CLI_PARSE_H
#define VPPS_CLI_PARSE_H

#include "cli/options.h"

/* Parses the arguments after `vpps COMMAND [NETWORK]` into *s, whose command and network are set. argv[0] is how
 * messages name the program. Ends the process after --help (0) or a mistake (2, with a message on stderr). */
void options_parse(settings *s, int argc, char **argv);

#endif
