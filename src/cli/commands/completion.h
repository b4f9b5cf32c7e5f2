/* completion.h - `vpps completion SHELL`: completion of words on the command line by a shell. */
#pragma once

#define COMPLETION_SHELLS "bash|zsh"

/* Prints the completion script for a shell, made from the tables of commands, networks and options. Returns the process's exit code. */
int command_completion(const char *shell);
