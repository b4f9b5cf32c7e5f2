/* records.h - examples of a file as they come, in bounded memory: a line each, or the lines up to a blank one, or a record of
 * CSV, whose quoted fields may hold line ends. */
#pragma once

#include "cli/csv.h"
#include "cli/input_form.h"
#include "cli/lines.h"

typedef struct record {
    const char *text; /* without the last line end; valid until the next record */
    size_t len;
    uint64_t number; /* of its first line, from 1 */
    bool blank;      /* a blank line; of columns, one that ends a sentence */
    bool crlf;       /* its last line ends in CR LF */
} record;

typedef struct record_reader {
    line_reader lines;
    input_form form;
    char *joined; /* lines of the record that has begun */
    size_t joined_len;
    uint64_t first;          /* the number of its first line */
    bool open, whole, blank; /* it has begun; it is not too long; a blank line comes after it */
    bool graph, graph_ends;  /* it has a graph; its latest line is blank */
    csv_state state;
} record_reader;

/* Opens a file as lines_open does. */
vpps_status records_open(record_reader *r, const char *path, size_t limit);
/* Those of a text, as lines_of. */
void records_of(record_reader *r, const char *name, const char *text, size_t len, input_form form);
void records_close(record_reader *r);

/* Waits for a whole line, or as many bytes as a line may have. The whole lines that are there, which stay: *len bytes. Fails as
 * lines_fill. */
vpps_status records_look(record_reader *r, const char **text, size_t *len);

/* The next record of what is here, as lines_next: LINE_WHOLE, LINE_TOO_LONG (only its number), LINE_NONE, LINE_END. */
line_kind records_next(record_reader *r, record *out);

/* While no more input is there: the graph that has begun, where a blank line stands after it. False: there is none. */
bool records_next_graph(record_reader *r, record *out);

/* The name of a record's text in the messages of its reader. */
#define RECORD_NAME "line"

/* The thread's message, of the text of a record, with the file and the line that it is about: `number` is its first. Columns of a line
 * mean something where the text was read as it stands. Returns `status`. */
vpps_status records_place(const record_reader *r, vpps_status status, uint64_t number);
