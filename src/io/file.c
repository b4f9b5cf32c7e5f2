/* file.c - reads whole files through streams. */
#include "file.h"

#include "base/base.h"
#include "stream.h"

/* Reads to the end. A regular file, whose size is known, takes two reads; otherwise the buffer grows until the end. */
static vpps_status read_to_end(vpps_stream *stream, const char *path, char **bytes, size_t *n_bytes) {
    const size_t size = vpps_stream_size(stream);
    size_t wanted = size ? size + 1 : 65536, got = 0;
    bool ended;
    do {
        char *grown = realloc(*bytes, *n_bytes + wanted);
        if (!grown) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory at %zu bytes", VPPS_PATH_ARGS(path), *n_bytes);
        *bytes = grown;
        VPPS_TRY(vpps_stream_read(stream, grown + *n_bytes, wanted, &got));
        *n_bytes += got;
        ended = got < wanted;
        wanted = *n_bytes;
    } while (!ended);
    return VPPS_OK;
}

vpps_status vpps_file_read_all(const char *path, char **bytes, size_t *n_bytes) {
    vpps_stream *stream;
    *bytes = NULL;
    *n_bytes = 0;
    VPPS_TRY(vpps_stream_open(&stream, path));
    const vpps_status status = read_to_end(stream, path, bytes, n_bytes);
    vpps_stream_close(stream);
    if (status == VPPS_OK) return VPPS_OK;
    free(*bytes);
    *bytes = NULL;
    return status;
}
