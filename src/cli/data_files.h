/* data_files.h - finds the files of each part of the data. */
#pragma once

#include "cli/options.h"

/* The path of a part: --train, --dev and --test name theirs; --data names a file, which is the part `wanted`, or a folder
 * whose files (or, where none does, folders) tell by the words of their names which part they are. `ending` (".de"; "" for none) must
 * follow, maybe with that of a compressed file after it, and is not in the result. Empty: there is no such part. Fails
 * with IO (no such file or folder; the wanted part is missing), ARGUMENT (several files could be it). */
vpps_status data_file(const settings *s, int part, int wanted, const char *ending, char *path, size_t n);

typedef struct data_list {
    char **paths; /* without the ending */
    size_t n;
} data_list;

/* The files that `path`, from data_file, is: itself, or, of a folder, all files with the ending in it and in the folders
 * below, in the order of their names; names that begin with a dot are left out. Fails with IO, MEMORY; free in any
 * case. */
vpps_status data_list_open(data_list *list, const char *path, const char *ending);
void data_list_close(data_list *list);

/* The name of a file of the list: with its ending and, where there is no such file, with that of a compressed one. */
vpps_status data_name(const char *path, const char *ending, char *name, size_t n);
