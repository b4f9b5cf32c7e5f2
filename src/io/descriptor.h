/* descriptor.h - reading from a file descriptor, and how files are named in messages. */
#pragma once

#include "vpps.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Opens a file for reading; never blocks, not even on a FIFO without a writer. Fails with IO. */
vpps_status vpps_file_open(int *fd, const char *path);

/* Reads `n_bytes` or up to the end, whichever is first; *got tells how many. Fails with IO. */
vpps_status vpps_file_read(int fd, const char *path, void *bytes, size_t n_bytes, size_t *got);

/* For printf's "%s%s": a path's end, so that a long one does not push the rest out of the message. */
#define VPPS_PATH_SHOWN 240
#define VPPS_PATH_ARGS(path)                                                                                           \
    (strlen(path) > VPPS_PATH_SHOWN ? "..." : ""),                                                                     \
        (strlen(path) > VPPS_PATH_SHOWN ? (path) + strlen(path) - VPPS_PATH_SHOWN : (path))
