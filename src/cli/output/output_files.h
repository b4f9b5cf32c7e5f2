/* output_files.h - checks a command's outputs: no input is overwritten, no two outputs share a file, no file of another program or run is replaced. */
#pragma once

#include "cli/options/options.h"

/* Checks all outputs that s names (OPTION_OUTPUT): each is a file of its own, and an existing file other than a checkpoint is empty or
 * begins as files of the option's kind do, unless --force is given. Existing files are compared by device and inode, new outputs by folder and name, links followed.
 * Call it before any output is opened. Fails with ARGUMENT, naming both options; IO, MEMORY. */
vpps_status output_files_check(const settings *s);

/* Tries whether a file can be written, so that a run fails at once and not after training. NULL: no file. Fails with IO. */
vpps_status output_file_check(const char *path);

/* Checks that a training run may write its checkpoints and log. A new run replaces only empty files. A resumed run
 * replaces its own checkpoints and appends to its log. --force permits all. Call it before a file is opened. Fails with ARGUMENT, naming the file. */
vpps_status overwrite_check_run(const settings *s);

/* Checks that an export may write `path`: it may replace only an earlier export. Fails with ARGUMENT. */
vpps_status overwrite_check_export(const settings *s, const char *path);
