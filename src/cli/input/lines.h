/* lines.h - reads lines of standard input or a file as they arrive, in bounded memory. */
#pragma once

#include "io/stream.h"

typedef struct line_reader {
    const char *name;    /* the file's name in messages, or "stdin" */
    vpps_stream *stream; /* the file's stream; NULL: standard input */
    bool is_regular;     /* whether the input is a regular file, which can be read at any time; else reading may wait */
    size_t limit;        /* most bytes that a line may have */
    char *buffer;
    size_t begin, end, searched;
    uint64_t number; /* number of the latest line, from 1 */
    bool ended, skipping;
    bool crlf; /* whether the latest line ended in CR LF */
    bool lent; /* whether `buffer` belongs to the caller */
} line_reader;

typedef enum line_kind {
    LINE_WHOLE,    /* a whole line, without LF or CR LF */
    LINE_TOO_LONG, /* a line of more than `limit` bytes, which is dropped */
    LINE_NONE,     /* no whole line has been read yet: call lines_fill */
    LINE_END       /* the input has ended */
} line_kind;

/* Opens a file, which may be compressed; path NULL or "-" is standard input. `path` must outlive the reader. Call
 * lines_close also after a failure. Fails with IO, FORMAT, MEMORY. */
vpps_status lines_open(line_reader *r, const char *path, size_t limit);
/* Makes a reader of the lines, of any length, of a text in memory. The text must outlive the reader and is not changed. */
void lines_of(line_reader *r, const char *name, const char *text, size_t len);
void lines_close(line_reader *r);

/* Takes the next line of what has been read; it stays valid until lines_fill. */
line_kind lines_next(line_reader *r, const char **line, size_t *len);

/* Puts back the latest line, which must be whole; lines_next returns it again. */
void lines_back(line_reader *r, const char *line);

/* Reads more input, waiting if necessary. Fails with IO, MEMORY, FORMAT (a damaged compressed file). */
vpps_status lines_fill(line_reader *r);

/* Returns whether lines_fill returns at once: for a regular file always, for standard input when input is pending. */
bool lines_ready(const line_reader *r);
