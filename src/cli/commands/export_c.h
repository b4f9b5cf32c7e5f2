/* export_c.h - exports a checkpoint's network as C: its cells, its vocabularies, and a program. */
#pragma once

#include "cli/options/options.h"

/* Writes the files that the options --c, --header and --weights name. Fails with ARGUMENT if the cells or the program
 * cannot be written as C, and with IO, FORMAT, MEMORY. */
vpps_status export_as_c(settings *s);
