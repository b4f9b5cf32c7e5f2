/* output.h - files that are written atomically. */
#pragma once

#include "vpps.h"

/* Where an output's bytes go. A regular file, or one that is not there yet: into a new file PATH.tmp-PID-NUMBER in the same
 * folder (mode 0666 less the umask), which is flushed to disk and renamed to PATH, then the folder is flushed: whatever
 * happens, PATH afterwards holds either its old content or all of the new one. A symbolic link stays, and what it points
 * to is replaced. What is no regular file (a device, a FIFO) is written directly, and so is /dev/stdout, /dev/stderr or
 * /dev/fd/N, whatever that is.
 *
 * A temporary file is locked (flock) while it is written. What a killed process left has no lock: it is never read, and
 * the next output to the same path removes it. */
typedef struct vpps_output {
    const char *path; /* as it was given */
    char *target;     /* with its links followed */
    const char *base; /* target's last part */
    int fd, folder;   /* folder: -1 where it is written directly */
    char temporary[256];
} vpps_output;

/* Fails with IO (the message names the path, the step and the system's reason), MEMORY; nothing is left then. `path`
 * must live until the output is committed or discarded. Waits for a FIFO's reader. */
vpps_status vpps_output_open(vpps_output *o, const char *path);

/* Fails with IO; the output is then to be discarded. */
vpps_status vpps_output_write(vpps_output *o, const void *bytes, uint64_t n_bytes);

/* Makes the written data the path's content, durably. Fails with IO; o is freed in any case. */
vpps_status vpps_output_commit(vpps_output *o);

/* Drops what was written, unless it was written directly. */
void vpps_output_discard(vpps_output *o);

/* All of it at once: open, write, commit. */
vpps_status vpps_output_write_file(const char *path, const void *bytes, size_t n_bytes);

/* The same with what `print` writes to a file in memory; fails as it does, too. */
vpps_status vpps_output_print(const char *path, vpps_status (*print)(const void *context, FILE *f),
                              const void *context);

/* Could the path be written? Tries the steps of an output and undoes them. Fails as vpps_output_open does, and for a folder. */
vpps_status vpps_output_check(const char *path);

/* Which descriptor of this process a path names (/dev/stdout is 1); -1: none. */
int vpps_output_descriptor(const char *path);

/* The path with symbolic links at its end followed, also one that points to nothing; freed by the caller. Fails with IO
 * (a circle of links), MEMORY. */
vpps_status vpps_output_target(const char *path, char **target);
