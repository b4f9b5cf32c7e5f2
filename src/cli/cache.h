/* cache.h - `vpps cache`. */
#ifndef VPPS_CLI_CACHE_H
#define VPPS_CLI_CACHE_H

#include <stdbool.h>

/* `vpps cache ACTION`: list (`json`: as one object), clear or path. The process's exit code. */
int command_cache(const char *action, bool json);

#endif
