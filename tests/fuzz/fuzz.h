/* fuzz.h - what the fuzz targets share. */
#pragma once

#include "base/base.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline void require(bool condition) {
    if (!condition) abort();
}

/* Stores data in a file in memory, and its path in `path`; the caller closes the descriptor. */
static inline int fuzz_file(const uint8_t *data, size_t n, char path[32]) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}
