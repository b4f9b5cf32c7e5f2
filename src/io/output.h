/* output.h - writes files atomically. */
#pragma once

#include "output_place.h"

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

/* Removes the temporary file of the output that was opened last, if it is being written. For the handler of a signal that ends the process. */
void vpps_output_abandon(void);

/* Writes a whole file in one call: open, write, commit. */
vpps_status vpps_output_write_file(const char *path, const void *bytes, size_t n_bytes);

/* Writes a whole file whose bytes `print` produces on a FILE in memory. Fails also as `print` does. */
vpps_status vpps_output_print(const char *path, vpps_status (*print)(const void *context, FILE *f),
                              const void *context);

/* Checks that a path can be written: opens an output there and undoes it. Fails as vpps_output_open does, and when the path is a folder. */
vpps_status vpps_output_check(const char *path);
