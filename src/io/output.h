/* output.h - resolves an output's path to the file that will be written, and writes files atomically. */
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

/* An output file that is being written. A regular file, or one that does not exist yet, is written to a new file PATH.tmp-PID-NUMBER in the
 * same folder, flushed to disk and renamed to PATH; then the folder is flushed. Whatever happens, PATH holds either its old content or all
 * of the new one. A replaced file keeps its mode, and its owner and group where the system permits; a new file has mode 0666 less the
 * umask. A symbolic link stays; the file it points to is replaced (vpps_output_find). Devices, FIFOs, /dev/stdout, /dev/stderr and
 * /dev/fd/N are written directly. The temporary file of a killed process stays. */
typedef struct vpps_output {
    const char *path; /* the path as the caller gave it */
    vpps_output_place place;
    int fd, folder; /* folder: descriptor of the file's folder; -1: the file is written directly */
    char temporary[256];
} vpps_output;

/* Begins an output; waits for the reader of a FIFO. `o` and `path` must live until the output is committed or discarded. Fails with IO (the message
 * names the path, the step and the system's reason), MEMORY; a failure leaves nothing to clean up. */
vpps_status vpps_output_open(vpps_output *o, const char *path);

/* Appends bytes to the output. Fails with IO; the caller must then discard the output. */
vpps_status vpps_output_write(vpps_output *o, const void *bytes, uint64_t n_bytes);

/* Replaces the content of the file at the path by the bytes written so far, and flushes them to disk. Frees o even on failure. Fails with IO. */
vpps_status vpps_output_commit(vpps_output *o);

/* Drops the written bytes; bytes that went directly to a device or FIFO stay written. Frees o. */
void vpps_output_discard(vpps_output *o);

/* Removes the temporary files of all outputs that are being written. For the handler of a signal that ends the process. */
void vpps_output_abandon(void);

/* Writes a whole file in one call: open, write, commit. */
vpps_status vpps_output_write_file(const char *path, const void *bytes, size_t n_bytes);

/* Writes a whole file whose bytes `print` produces on a FILE in memory. Fails also as `print` does. */
vpps_status vpps_output_print(const char *path, vpps_status (*print)(const void *context, FILE *f),
                              const void *context);

/* Checks that a path can be written: opens an output there and undoes it. Fails as vpps_output_open does, and when the path is a folder. */
vpps_status vpps_output_check(const char *path);
