/* file.c - reading with every result checked. */
#include "file.h"

#include "base/base.h"

#include <errno.h>
#include <sys/stat.h>

vpps_status vpps_file_open(int *fd, const char *path) {
    do { *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); } while (*fd < 0 && errno == EINTR);
    if (*fd >= 0) return VPPS_OK;
    return vpps_fail(VPPS_IO, "%s%s: cannot be opened: %s", VPPS_PATH_ARGS(path), strerror(errno));
}

vpps_status vpps_file_read(int fd, const char *path, void *bytes, size_t n_bytes, size_t *got) {
    *got = 0;
    while (*got < n_bytes) {
        ssize_t n = read(fd, (char *)bytes + *got, n_bytes - *got);
        if (n == 0) break;
        if (n > 0) {
            *got += (size_t)n;
        } else if (errno != EINTR) {
            return vpps_fail(VPPS_IO, "%s%s: cannot be read: %s", VPPS_PATH_ARGS(path), strerror(errno));
        }
    }
    return VPPS_OK;
}

/* Pipes have no size to ask for, so the buffer grows until the end is met; a regular file takes one read. */
static vpps_status read_to_end(int fd, const char *path, char **bytes, size_t *n_bytes) {
    struct stat info;
    size_t wanted = 65536, capacity = 0, got = 0;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) wanted = (size_t)info.st_size + 1;
    do {
        if (!VPPS_RESERVE(*bytes, capacity, *n_bytes + wanted)) {
            return vpps_fail(VPPS_MEMORY, "%s%s: out of memory at %zu bytes", VPPS_PATH_ARGS(path), *n_bytes);
        }
        VPPS_TRY(vpps_file_read(fd, path, *bytes + *n_bytes, wanted, &got));
        *n_bytes += got;
    } while (got == wanted);
    return VPPS_OK;
}

vpps_status vpps_file_read_all(const char *path, char **bytes, size_t *n_bytes) {
    int fd;
    *bytes = NULL;
    *n_bytes = 0;
    VPPS_TRY(vpps_file_open(&fd, path));
    vpps_status status = VPPS_OK;
    if (fcntl(fd, F_SETFL, 0) < 0) { /* reading from a pipe may wait for its writer */
        status = vpps_fail(VPPS_IO, "%s%s: cannot be read: %s", VPPS_PATH_ARGS(path), strerror(errno));
    }
    if (status == VPPS_OK) status = read_to_end(fd, path, bytes, n_bytes);
    close(fd); /* nothing was written: its result says nothing */
    if (status == VPPS_OK) return VPPS_OK;
    free(*bytes);
    *bytes = NULL;
    return status;
}
