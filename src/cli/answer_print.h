/* answer_print.h - prints answers as --output-format says: as lines, columns, JSONL, or a table of CSV or TSV. */
#pragma once

#include "cli/answers.h"

/* --output-format, in the order of its words. */
typedef enum output_form { OUTPUT_AUTO, OUTPUT_TEXT, OUTPUT_COLUMNS, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_TSV } output_form;

/* An example as it was read. */
typedef struct asked {
    json_t *fields; /* of a record; NULL: it was none */
    char *text;     /* its line, or its lines of columns; NULL: not kept */
    size_t len;
    uint32_t tag_column;   /* of columns, from 1; 0: there is none */
    char separator;        /* between columns */
    uint32_t lines_before; /* how many lines of the text that was read are before those of `text` */
    bool keeps_tags;       /* the column of tags stays, and the network's tag comes after all columns */
    bool blank;            /* no example, but a blank line */
} asked;

typedef struct answer_printer {
    const settings *s;
    output_form form;
    bool lines;    /* input is a line an example: so is output, whatever the line is */
    bool numbered; /* the table's columns have no names */
    bool begun;
    char **columns; /* of the table */
    size_t n_columns;
} answer_printer;

/* The form of what is printed, for examples of that form. Fails with ARGUMENT where they do not go together. */
vpps_status answers_set_form(answers *a, answer_printer *p, const settings *s, input_form form);

void answer_printer_close(answer_printer *p);

/* Prints the answer to an example; text NULL: it has none. Fails with FORMAT (what the form cannot hold), MEMORY. */
vpps_status answer_print(answer_printer *p, const asked *q, const char *text, size_t len);
