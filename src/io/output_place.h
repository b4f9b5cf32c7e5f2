/* output_place.h - the file that an output's path leads to. */
#pragma once

#include "vpps.h"

#include <limits.h>
#include <sys/stat.h>

typedef struct vpps_output_place {
    int descriptor; /* of this process, which the path names (/dev/stdout is 1); -1: none, and what follows is set */
    int folder;     /* descriptor (O_PATH) of the folder that holds the file */
    char base[NAME_MAX + 1]; /* the file's name in it; empty where the path ends in '/' */
    bool exists;
    struct stat info; /* of the file, if it exists */
} vpps_output_place;

/* Finds the place; to be closed if it succeeds. Links at the path's end are followed, also one to a file that is not there yet. Each
 * link is read by its folder's descriptor, and refused as Linux with protected_symlinks refuses it (proc_sys_fs(5)), whether or not
 * the system does: in a folder with the sticky bit that all may write to, a link must be of this user or of the folder's owner.
 * So must be a file that is there already, which another user may have put there to get the output. Fails with IO: a folder or
 * file that cannot be looked at (that it is not there is no failure), a circle of links, another user's file. */
vpps_status vpps_output_find(vpps_output_place *place, const char *path);
void vpps_output_place_close(vpps_output_place *place);

/* Is it a regular file that holds something? */
bool vpps_output_holds_bytes(const vpps_output_place *place);

/* Opens the file itself with open(2)'s flags, or copies the descriptor. -1: errno tells why not. Waits for a FIFO's other end. */
int vpps_output_place_open(const vpps_output_place *place, int flags);
