/* answer_print.h - prints a network's answers in the format of --output-format: lines, columns, JSONL, CSV or TSV. */
#pragma once

#include "cli/input/fields.h"
#include "cli/output/answers.h"

/* The values of --output-format, in the order of the option's words. */
typedef enum output_form { OUTPUT_AUTO, OUTPUT_TEXT, OUTPUT_COLUMNS, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_TSV } output_form;

/* An example as it was read, for printing its answer. */
typedef struct asked {
    char *text; /* its line, its lines of columns, or its fields as a JSON object; NULL: not kept */
    size_t len;
    bool fields;           /* the example is a record with fields, and `text` is a JSON object */
    bool bad;              /* the example could not be read or answered */
    uint32_t tag_column;   /* columns: the column of tags, from 1; 0: none */
    char separator;        /* columns: the byte between columns */
    uint32_t lines_before; /* number of lines of the input before the first line of `text` */
    bool keeps_tags;       /* columns: keep the tags that were read, and append the network's tag as a last column */
    bool blank;            /* a blank line instead of an example */
    bool crlf;             /* the example's line ends in CR LF; so will the answer's */
} asked;

typedef struct answer_printer {
    const settings *s;
    output_form form;
    bool lines;                 /* every input line is an example: every one gives one output line, even a bad one */
    bool numbered;              /* the table's columns have numbers instead of names */
    const field_reader *fields; /* the reader of records, which knows the columns' names; NULL: no fields */
    bool begun, crlf;           /* tables: begun: the names have been printed; crlf: lines end in CR LF */
    size_t empty;               /* tables: rows without an answer that wait until the columns are known */
    char **columns;             /* tables: the columns' names */
    size_t n_columns;
} answer_printer;

/* Prepares a printer, and answers, for examples of the form `form` and s's --output-format. Fails with ARGUMENT where
 * the two do not go together. */
vpps_status answers_set_form(answers *a, answer_printer *p, const settings *s, input_form form);

void answer_printer_close(answer_printer *p);

/* Prints the answer `text` to example q; NULL: the example has no answer. Prints nothing on failure. Fails with FORMAT
 * (a character that the output format cannot hold), MEMORY. */
vpps_status answer_print(answer_printer *p, const asked *q, const char *text, size_t len);

/* answer_print_names, called after each file, prints the names of a table without records if they are still missing;
 * answer_print_end, called last, prints the rows that wait. Both fail with MEMORY. */
vpps_status answer_print_names(answer_printer *p);
vpps_status answer_print_end(answer_printer *p);
