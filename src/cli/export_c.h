/* export_c.h - a checkpoint's network as C: its cells, vocabularies, and a program. */
#pragma once

#include "cli/options.h"

/* Writes what --c, --header and --weights name. Fails with ARGUMENT, where the cells or the program cannot be written as C; IO, FORMAT,
 * MEMORY. */
vpps_status export_as_c(settings *s);
