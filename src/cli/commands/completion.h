/* completion.h - `vpps completion SHELL`: completion of words on the command line by a shell. */
#pragma once

#include "cli/options/options.h"

#define COMPLETION_SHELLS "bash|zsh"

/* Runs `vpps completion SHELL`, which prints the shell's script, or `vpps completion words -- WORD...`, by which the scripts ask what the last word
 * may become. Returns the process's exit code. */
int command_completion(settings *s);
