/* input_form.h - the forms of examples. */
#pragma once

#include "io/sequences.h"

/* --input-format, in the order of its words. */
typedef enum input_form {
    INPUT_AUTO,
    INPUT_TEXT,     /* the network's plain form, a line each: a sentence, or a tree in brackets */
    INPUT_TAGGED,   /* word|TAG lines */
    INPUT_COLUMNS,  /* a word a line, a blank line after each sentence */
    INPUT_LABELLED, /* a label, a tab, a sentence */
    INPUT_JSONL,
    INPUT_CSV,
    INPUT_TSV,
    INPUT_GRAPHS /* lists of edges; no word of the option */
} input_form;

/* Are examples records with fields? */
static inline bool fields_are(input_form form) { return form == INPUT_JSONL || form == INPUT_CSV || form == INPUT_TSV; }

static inline bool fields_are_table(input_form form) { return form == INPUT_CSV || form == INPUT_TSV; }

/* How the text of one example is read, once what is around it was taken away. FILE: it is a whole file to train on, as its
 * network's reader takes it. */
typedef enum read_form { READ_FILE, READ_LINES, READ_BARRED, READ_COLUMNS, READ_LABELLED } read_form;

typedef struct input_reading {
    read_form form;
    vpps_columns columns;
    vpps_bars bars;
    bool records;           /* the columns are made of a record's fields */
    bool words_only;        /* the columns have no tag: lines hold a word each */
    bool other_tags;        /* the column of tags holds none that the network knows: it is kept */
    vpps_columns_seen seen; /* of the example that was read last */
} input_reading;
