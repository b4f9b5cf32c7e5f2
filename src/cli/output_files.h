/* output_files.h - checks outputs: a command must not overwrite its inputs, write two outputs to one file, or replace a file of another
 * program. */
#pragma once

#include "cli/options.h"

/* Are all outputs that s names (OPTION_OUTPUT) files of their own, and those pictures, tables and traces which are there already made by
 * such an option? Files that are there are compared by device and inode,
 * those that are not by their folder and name, links followed. To be asked before any of them is opened. Fails with
 * ARGUMENT, naming both options; IO, MEMORY. */
vpps_status output_files_check(const settings *s);

/* Can the file be written? What writing does is tried, so that it fails before an hour of training, not after. NULL:
 * nothing is to be written. Fails with IO. */
vpps_status output_file_check(const char *path);
