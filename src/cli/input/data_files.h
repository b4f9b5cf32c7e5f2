/* data_files.h - finds the files of each split (train, dev, test) of the data. */
#pragma once

#include "cli/options/options.h"

/* Finds the path of a split's data. --train, --dev and --test name their split. --data names a file, which is the split `wanted`, or a
 * folder, where words in the name of a file (or, if no file fits, of a subfolder) tell the split. The name must end in `ending` (".de"; ""
 * for none), perhaps followed by the ending of a compressed file; *path has neither. *path is empty if there is no such split. Fails with
 * IO (no such file or folder; the wanted split is missing), ARGUMENT (several files fit). */
vpps_status data_file(const settings *s, int part, int wanted, const char *ending, char *path, size_t n);

typedef struct data_list {
    char **paths; /* names of the files, without the ending that all have, such as .de */
    size_t n;
} data_list;

/* Lists the files of a path from data_file: the path itself if it is a file; else all files with the ending in that folder and its subfolders, in the
 * order of their names, without files whose names begin with a dot. Fails with IO, MEMORY; call data_list_close also after a failure. */
vpps_status data_list_open(data_list *list, const char *path, const char *ending);
void data_list_close(data_list *list);

/* Writes a data file's name: `path` (such as data_list has), `ending`, and ".gz" or ".zst" if only the compressed file exists. */
vpps_status data_name(const char *path, const char *ending, char *name, size_t n);
