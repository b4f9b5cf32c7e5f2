/* save_name.h - checkpoint names that contain "{epoch}": one file per epoch. */
#pragma once

#include "vpps.h"

/* Returns whether a name contains "{epoch}". */
bool save_name_varies(const char *name);

/* Checks a checkpoint's name. Fails with ARGUMENT, naming `option`, where there is more than one "{epoch}", one in a
 * folder's name, or another word in braces. */
vpps_status save_name_check(const char *option, const char *name);

/* Returns the name with the epoch's number for "{epoch}", which the caller frees. NULL: out of memory. */
char *save_name_of(const char *name, uint32_t epoch);

/* Returns whether `path` is `name` with the number of some epoch, and sets *epoch to that number. */
bool save_name_matches(const char *name, const char *path, uint32_t *epoch);
