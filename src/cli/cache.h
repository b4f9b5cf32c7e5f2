/* cache.h - `vpps cache`. */
#pragma once

#include <stdbool.h>

/* `vpps cache ACTION`: list (`json`: as one object), clear or path. The process's exit code. */
int command_cache(const char *action, bool json);
