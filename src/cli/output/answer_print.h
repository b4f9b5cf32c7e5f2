/* answer_print.h - prints a network's answers in the format of --output-format: lines, columns, JSONL, CSV or TSV. */
#pragma once

#include "cli/input/fields.h"
#include "cli/output/answers.h"

/* The values of --output-format, in the order of the option's choices. */
typedef enum output_form { OUTPUT_AUTO, OUTPUT_TEXT, OUTPUT_COLUMNS, OUTPUT_JSONL, OUTPUT_CSV, OUTPUT_TSV } output_form;

/* An example as it was read, for printing its answer. */
typedef struct asked {
    char *text; /* the example as read: its line, lines of columns, or fields as JSON; NULL: not kept */
    size_t len;
    bool fields;           /* whether the example is a record with fields, and `text` is a JSON object */
    bool bad;              /* whether the example could not be read or answered */
    uint32_t tag_column;   /* text in columns: number of the column of tags, from 1; 0: none */
    char separator;        /* text in columns: the byte between columns */
    uint32_t lines_before; /* number of lines of the input before the first line of `text` */
    /* text in columns: whether tags in the input stay, and the network's tags become a last column */
    bool keeps_tags;
    /* true: the input line is blank, so there is no example, but perhaps a blank line of output */
    bool blank;
    bool crlf; /* true: the example's line ends in CR LF, and so must the line of its answer */
} asked;

typedef struct answer_printer {
    const settings *s;
    output_form form;
    bool lines;                 /* whether every input line is an example and gives one output line, even a bad one */
    bool numbered;              /* whether a table's columns have numbers instead of names, so no names are printed */
    const field_reader *fields; /* reads records and knows the names of their fields; NULL: examples have no fields */
    /* begun: whether a table's line of column names is printed; crlf: whether lines end in CR LF */
    bool begun, crlf;
    size_t empty;   /* number of empty rows (records without an answer) to print once the table's columns are known */
    char **columns; /* names of a table's columns */
    size_t n_columns;
} answer_printer;

/* Prepares the printer p and the list of answers a for examples of the format `form` and for --output-format. Fails
 * with ARGUMENT where input and output format do not go together. */
vpps_status answers_set_form(answers *a, answer_printer *p, const settings *s, input_form form);

void answer_printer_close(answer_printer *p);

/* Prints the answer `text` to example q; `text` NULL: the example has no answer. Prints nothing on failure. Fails with
 * FORMAT (a character that the output format cannot hold), MEMORY. */
vpps_status answer_print(answer_printer *p, const asked *q, const char *text, size_t len);

/* Prints a table's line of column names if no row was printed yet; call it after each file. Fails with MEMORY. */
vpps_status answer_print_names(answer_printer *p);
/* Prints an empty row for each unreadable record if no good one told the columns; call it last. Fails with MEMORY. */
vpps_status answer_print_end(answer_printer *p);
