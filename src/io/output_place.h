/* output_place.h - resolves an output's path to the file that will be written. */
#pragma once

#include "vpps.h"

#include <limits.h>
#include <sys/stat.h>

typedef struct vpps_output_place {
    /* the process's own descriptor that the path names (/dev/stdout: 1); -1: a file, which the other members describe */
    int descriptor;
    int folder;              /* descriptor (O_PATH) of the folder that holds the file */
    char base[NAME_MAX + 1]; /* the file's name within the folder; empty for a path that ends in '/' */
    bool exists;
    struct stat info; /* the file's stat(2), if it exists */
} vpps_output_place;

/* Resolves a path; the caller closes the place after success. Follows symbolic links at the path's end, even to files that do not exist
 * yet. Links are judged as Linux's protected_symlinks does (proc_sys_fs(5)), whether or not the system does: in a folder with the sticky
 * bit that everybody may write to, a link must belong to this user or to the folder's owner. The same holds for an existing file, which
 * another user may have planted to capture the output. Fails with IO: a folder or file cannot be examined (a missing file is no failure),
 * links form a circle, or the file is another user's. */
vpps_status vpps_output_find(vpps_output_place *place, const char *path);
void vpps_output_place_close(vpps_output_place *place);

/* Returns whether the place is a non-empty regular file. */
bool vpps_output_holds_bytes(const vpps_output_place *place);

/* Opens the file with open(2)'s flags, or duplicates the descriptor; waits for the other end of a FIFO. Returns -1 on
 * failure, with the reason in errno. */
int vpps_output_place_open(const vpps_output_place *place, int flags);
