/* cache.h - the command `vpps cache`. */
#pragma once

#include <stdbool.h>

/* Runs `vpps cache ACTION`: list (with `json` as one object), clear or path. Returns the process's exit code. */
int command_cache(const char *action, bool json);
