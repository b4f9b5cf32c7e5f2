/* descriptor.h - reads from a file descriptor, and shortens file names for messages. */
#pragma once

#include "vpps.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Opens a file for reading; never blocks, not even on a FIFO without a writer. Fails with IO. */
vpps_status vpps_file_open(int *fd, const char *path);

/* Reads n_bytes, or fewer at the end of the file; *got is the number of bytes read. Fails with IO. */
vpps_status vpps_file_read(int fd, const char *path, void *bytes, size_t n_bytes, size_t *got);

/* Two arguments for printf's "%s%s": the last VPPS_PATH_SHOWN bytes of a path, after "..." if the path is longer. */
#define VPPS_PATH_SHOWN 240
#define VPPS_PATH_ARGS(path)                                                                                           \
    (strlen(path) > VPPS_PATH_SHOWN ? "..." : ""),                                                                     \
        (strlen(path) > VPPS_PATH_SHOWN ? (path) + strlen(path) - VPPS_PATH_SHOWN : (path))
