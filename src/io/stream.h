/* stream.h - the bytes of a file, or of memory, one after the other; decompressed when their beginning says so. */
#pragma once

#include "vpps.h"

typedef struct vpps_stream vpps_stream;

/* Waits for a pipe's writer only once it has been opened. Fails with IO, FORMAT (compressed in a form that is not read),
 * MEMORY. */
vpps_status vpps_stream_open(vpps_stream **out, const char *path);
/* The bytes must live as long as the stream, as must `name` of either. */
vpps_status vpps_stream_of(vpps_stream **out, const char *name, const void *bytes, size_t n_bytes);
void vpps_stream_close(vpps_stream *s);

const char *vpps_stream_name(const vpps_stream *s);
/* How many bytes there are, where that is known at once; else 0. */
size_t vpps_stream_size(const vpps_stream *s);

/* The following fail with IO, FORMAT (damaged data), MEMORY. */

/* Takes n bytes, or those up to the end; *got tells how many. */
vpps_status vpps_stream_read(vpps_stream *s, void *bytes, size_t n, size_t *got);

/* Shows the next bytes without taking them: n, or more, or all up to the end. They stay until the next call. */
vpps_status vpps_stream_peek(vpps_stream *s, size_t n, const char **bytes, size_t *got);
/* Takes n bytes that a peek has shown. */
void vpps_stream_skip(vpps_stream *s, size_t n);

/* Shows the next bytes up to the first `stop`, and maybe more; *found is there, or NULL: the first `most` bytes, or all up
 * to the end, have none. */
vpps_status vpps_stream_find(vpps_stream *s, char stop, size_t most, const char **bytes, size_t *got,
                             const char **found);

/* The next line, without LF or CR LF, which stays until the next call; *line is NULL at the end. */
vpps_status vpps_stream_line(vpps_stream *s, const char **line, size_t *len);
