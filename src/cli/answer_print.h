/* answer_print.h - prints answers as --output-format says: as lines, columns, JSONL, or a table of CSV or TSV. */
#pragma once

#include "cli/answers.h"
#include "cli/fields.h"

/* --output-format, in the order of its words. */
typedef enum output_form { OUTPUT_AUTO, OUTPUT_TEXT, OUTPUT_COLUMNS, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_TSV } output_form;

/* An example as it was read. */
typedef struct asked {
    char *text; /* its line, its lines of columns, or its fields as an object of JSON; NULL: not kept */
    size_t len;
    bool fields;           /* it is a record, and its text an object */
    bool bad;              /* it could not be read or answered */
    uint32_t tag_column;   /* of columns, from 1; 0: there is none */
    char separator;        /* between columns */
    uint32_t lines_before; /* how many lines of the text that was read are before those of `text` */
    bool keeps_tags;       /* the column of tags stays, and the network's tag comes after all columns */
    bool blank;            /* no example, but a blank line */
    bool crlf;             /* its line ends in CR LF, and so does what is printed for it */
} asked;

typedef struct answer_printer {
    const settings *s;
    output_form form;
    bool lines;                 /* input is a line an example: so is output, whatever the line is */
    bool numbered;              /* the table's columns have no names */
    const field_reader *fields; /* what reads records, and knows a table's names; NULL: input has no fields */
    bool begun, crlf;           /* of the table: its names are printed; how their line ends */
    size_t empty;               /* rows without an answer that wait for the table's columns */
    char **columns;             /* of the table */
    size_t n_columns;
} answer_printer;

/* The form of what is printed, for examples of that form. Fails with ARGUMENT where they do not go together. */
vpps_status answers_set_form(answers *a, answer_printer *p, const settings *s, input_form form);

void answer_printer_close(answer_printer *p);

/* Prints the answer to an example; text NULL: it has none. Nothing is printed where it fails: with FORMAT (what the form cannot hold),
 * MEMORY. */
vpps_status answer_print(answer_printer *p, const asked *q, const char *text, size_t len);

/* After a file: a table's names, which without records are not printed yet. After all: rows that wait. Fail with MEMORY. */
vpps_status answer_print_names(answer_printer *p);
vpps_status answer_print_end(answer_printer *p);
