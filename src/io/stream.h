/* stream.h - reads a file sequentially, and decompresses it if its first bytes say that it is compressed. */
#pragma once

#include "descriptor.h"

typedef struct vpps_stream vpps_stream;

/* Opens a file and reads its first bytes, which for a pipe waits for the writer. `path` must outlive the stream. Fails with IO,
 * FORMAT (an unsupported compression format), MEMORY. */
vpps_status vpps_stream_open(vpps_stream **out, const char *path);
void vpps_stream_close(vpps_stream *s);

const char *vpps_stream_name(const vpps_stream *s);

/* Takes n bytes, or fewer at the end; *got is the number taken. Fails, as the other calls do, with IO, FORMAT (damaged data), MEMORY. */
vpps_status vpps_stream_read(vpps_stream *s, void *bytes, size_t n, size_t *got);

/* Shows at least the next n bytes, or all up to the end, without taking them; *got is the number of bytes shown, which stay valid until the next
 * call. */
vpps_status vpps_stream_peek(vpps_stream *s, size_t n, const char **bytes, size_t *got);
/* Takes n bytes that vpps_stream_peek has shown. */
void vpps_stream_skip(vpps_stream *s, size_t n);

/* Shows the next bytes up to the first `stop`, perhaps more, without taking them. *found points to the first `stop`;
 * NULL: the first `most` bytes, or all bytes up to the end, have none. */
vpps_status vpps_stream_find(vpps_stream *s, char stop, size_t most, const char **bytes, size_t *got,
                             const char **found);

/* Takes the next line, without LF or CR LF; it stays valid until the next call. *line is NULL at the end. */
vpps_status vpps_stream_line(vpps_stream *s, const char **line, size_t *len);

/* Reads a file, decompressed, into memory that the caller frees. Fails with IO, FORMAT, MEMORY. */
vpps_status vpps_file_read_all(const char *path, char **bytes, size_t *n_bytes);

/* Declares `text`, a file's bytes, which are freed at the end of the block, and their number `len`; returns the status of a failure. */
#define VPPS_TEXT_OF_FILE(path, text, len)                                                                             \
    VPPS_FREED char *text = NULL;                                                                                      \
    size_t len;                                                                                                        \
    VPPS_TRY(vpps_file_read_all(path, &text, &len))
