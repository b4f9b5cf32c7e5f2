/* overwrite.h - keeps a run from replacing another run's files. */
#pragma once

#include "cli/options/options.h"

/* Checks that a training run that has finished `epoch` epochs may write its checkpoints and log. A new run replaces only empty files. A resumed run
 * replaces its own checkpoints and appends to its log. --force permits all. Call it before a file is opened. Fails with ARGUMENT, naming the file. */
vpps_status overwrite_check_run(const settings *s, uint32_t epoch);

/* Checks that an export may write `path`: it may replace only an earlier export. Fails with ARGUMENT. */
vpps_status overwrite_check_export(const settings *s, const char *path);
