/* records.h - reads a file's examples as they arrive, in bounded memory. A record is a line, the lines up to a blank
 * one, or a CSV record, whose quoted fields may hold line ends. */
#pragma once

#include "cli/input/csv.h"
#include "cli/input/input_form.h"
#include "cli/input/lines.h"

typedef struct record {
    const char *text; /* the record's text without its last line end; valid until the next record is read */
    size_t len;
    uint64_t number; /* number of the record's first line, from 1 */
    bool blank;      /* whether the record is a blank line; in text in columns: the blank line that ends a sentence */
    bool crlf;       /* whether the record's last line ends in CR LF */
} record;

typedef struct record_reader {
    line_reader lines;
    input_form form;
    char *joined; /* lines of the unfinished record */
    size_t joined_len;
    uint64_t first; /* number of the unfinished record's first line */
    /* Whether a record is unfinished (open), is not too long (whole), and whether the next record is the blank line after a sentence (blank). */
    bool open, whole, blank;
    bool graph, graph_ends; /* whether a graph's line "graph ..." was read; whether the latest line is blank */
    csv_state state;
} record_reader;

/* Opens a file or standard input for reading records; fails as lines_open does. */
vpps_status records_open(record_reader *r, const char *path, size_t limit);
/* Makes a reader of the records of a text in memory; the text must outlive the reader. */
void records_of(record_reader *r, const char *name, const char *text, size_t len, input_form form);
void records_close(record_reader *r);

/* Reads a whole line, or as many bytes as a line may have. waits: reads on to a line that tells the format (that is not blank; with `tags` neither
 * a comment nor -DOCSTART-). Sets *text to the whole lines in memory, *len bytes, which records_next will take. Fails as lines_fill does. */
vpps_status records_look(record_reader *r, bool waits, bool tags, const char **text, size_t *len);

/* Takes the next record from the text read so far. Returns LINE_WHOLE, LINE_TOO_LONG (only the record's number is set),
 * LINE_NONE (the record's end has not been read yet) or LINE_END (the input has ended). */
line_kind records_next(record_reader *r, record *out);

/* Takes the unfinished graph if its latest line is blank: a graph's usual end, though more lines of the graph may
 * follow. Does not wait for input. Returns false if there is no such graph. */
bool records_next_graph(record_reader *r, record *out);

/* The file name in error messages about a record's text, until records_place puts the real name in its place. */
#define RECORD_NAME "line"

/* Rewrites the thread's error message about a record's text: replaces RECORD_NAME by the file, and counts lines from `number`, the record's
 * first line. The message keeps its column if the text was read as it stands in the file. Returns `status`. */
vpps_status records_place(const record_reader *r, vpps_status status, uint64_t number);
