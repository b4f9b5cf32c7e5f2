/* data_files.h - which file holds which part of the data. */
#ifndef VPPS_CLI_DATA_FILES_H
#define VPPS_CLI_DATA_FILES_H

#include "cli/options.h"

/* The path of a part: --train, --dev and --test name theirs; --data names a file, which is the part `wanted`, or a folder
 * whose files tell by their names which part they are. `ending` (".de"; "" for none) must follow and is not in the
 * result. Empty: there is no such part. Fails with IO (no such file or folder; the wanted part is missing), ARGUMENT
 * (several files could be it). */
vpps_status data_file(const settings *s, int part, int wanted, const char *ending, char *path, size_t n);

#endif
