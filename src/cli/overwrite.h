/* overwrite.h - a run does not replace the files of another one unasked. */
#pragma once

#include "cli/options.h"

/* May a training run that has finished `epoch` epochs write its checkpoints and its log? A new run replaces empty files only. A resumed
 * run replaces the checkpoints of its own run and appends to the log. With --force every file may be replaced. Call it before a file is
 * opened. Fails with ARGUMENT, naming the file. */
vpps_status overwrite_check_run(const settings *s, uint32_t epoch);

/* May an export replace the file at `path`? Only an earlier export. */
vpps_status overwrite_check_export(const settings *s, const char *path);
