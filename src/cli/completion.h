/* completion.h - `vpps completion SHELL`: what a shell needs to complete words of the command line. */
#pragma once

#define COMPLETION_SHELLS "bash|zsh"

/* Prints the script for that shell, made from the tables of commands, networks and options. The process's exit code. */
int command_completion(const char *shell);
