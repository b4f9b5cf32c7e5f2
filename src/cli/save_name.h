/* save_name.h - names of checkpoints that hold "{epoch}": a file for each epoch. */
#pragma once

#include "vpps.h"

/* Does the name hold "{epoch}"? */
bool save_name_varies(const char *name);

/* Fails with ARGUMENT where there is more than one "{epoch}", one in a folder's name, or another word in braces. `option` is
 * whose name it is. */
vpps_status save_name_check(const char *option, const char *name);

/* The name with the epoch's number in place of "{epoch}", to be freed by the caller. NULL: out of memory. */
char *save_name_of(const char *name, uint32_t epoch);

/* Is `path` that name for some epoch? Then *epoch is its number. */
bool save_name_matches(const char *name, const char *path, uint32_t *epoch);
