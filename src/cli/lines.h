/* lines.h - lines of standard input or of a file as they come, in bounded memory. */
#pragma once

#include "io/stream.h"

typedef struct line_reader {
    const char *name;    /* in messages: "stdin", or the file's */
    vpps_stream *stream; /* of a file; NULL: standard input */
    bool is_regular;     /* a file that never waits for a writer */
    size_t limit;        /* bytes of a line at most */
    char *buffer;
    size_t begin, end, searched;
    uint64_t number; /* of the latest line, from 1 */
    bool ended, skipping;
    bool crlf; /* the latest line ended in CR LF */
    bool lent; /* the buffer is somebody else's */
} line_reader;

typedef enum line_kind {
    LINE_WHOLE,    /* a line, without LF or CR LF */
    LINE_TOO_LONG, /* one with more than `limit` bytes, which are not kept */
    LINE_NONE,     /* none is here yet: lines_fill gets more */
    LINE_END       /* there will be none */
} line_kind;

/* Opens a file, which may be compressed; path NULL or "-": standard input. `path` must outlive the reader, which is to be closed in any
 * case. Fails with IO, FORMAT, MEMORY. */
vpps_status lines_open(line_reader *r, const char *path, size_t limit);
/* The lines of a text, which must outlive the reader and is only read; however long they are. */
void lines_of(line_reader *r, const char *name, const char *text, size_t len);
void lines_close(line_reader *r);

/* The next line of what is here; it stays until lines_fill. */
line_kind lines_next(line_reader *r, const char **line, size_t *len);

/* Takes the latest line, which is whole, back: it comes again. */
void lines_back(line_reader *r, const char *line);

/* Reads more, waiting for it. Fails with IO, MEMORY, FORMAT (a damaged compressed file). */
vpps_status lines_fill(line_reader *r);

/* Would lines_fill return at once? A file's always does; a pipe's or a terminal's when somebody has written. */
bool lines_ready(const line_reader *r);
