/* output.h - files that are written atomically. */
#pragma once

#include "output_place.h"

/* Where an output's bytes go. A regular file, or one that is not there yet: into a new file PATH.tmp-PID-NUMBER in the same
 * folder, which is flushed to disk and renamed to PATH, then the folder is flushed: whatever happens, PATH afterwards holds
 * either its old content or all of the new one. A file that is replaced keeps its mode, and its owner and group where the
 * system lets this user give them; a new one has mode 0666 less the umask. A symbolic link stays, and what it points to is
 * replaced (vpps_output_find). What is no regular file (a device, a FIFO) is written directly, and so is /dev/stdout,
 * /dev/stderr or /dev/fd/N, whatever that is.
 *
 * A temporary file is locked (flock) while it is written. What a killed process left has no lock: it is never read, and
 * the next output to the same path removes it. */
typedef struct vpps_output {
    const char *path; /* as it was given */
    vpps_output_place place;
    int fd, folder; /* folder: -1 where it is written directly */
    char temporary[256];
} vpps_output;

/* Fails with IO (the message names the path, the step and the system's reason), MEMORY; nothing is left then. `path`
 * must live until the output is committed or discarded. Waits for a FIFO's reader. */
vpps_status vpps_output_open(vpps_output *o, const char *path);

/* Claims a path for a run that replaces its file again and again: until *claim is closed, or its process ends, another claim of the path
 * on this machine fails. -1: none is needed, as of what is written directly, or can be had. Fails with IO. */
vpps_status vpps_output_claim(int *claim, const char *path);

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
