/* descriptor.c - opens and reads files with every result checked. */
#include "descriptor.h"

#include "base/base.h"

#include <errno.h>

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
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return vpps_fail(VPPS_IO, "%s%s: cannot be read: %s", VPPS_PATH_ARGS(path), strerror(errno));
    }
    return VPPS_OK;
}
