/* input_form.h - the formats in which files hold examples. */
#pragma once

#include "io/sequences.h"

/* The values of --input-format, in the order of the option's choices. */
typedef enum input_form {
    INPUT_AUTO,
    INPUT_TEXT,     /* the network's plain format, one example per line: a sentence, or a tree in brackets */
    INPUT_TAGGED,   /* word|TAG lines */
    INPUT_COLUMNS,  /* each line has one word; a blank line follows each sentence */
    INPUT_LABELLED, /* each line has a label, a tab and a sentence */
    INPUT_JSONL,
    INPUT_CSV,
    INPUT_TSV,
    INPUT_GRAPHS /* graphs as lists of nodes and edges; not a choice of --input-format */
} input_form;

/* fields_are returns whether examples are records with fields, fields_are_table whether they are rows of a table. */
static inline bool fields_are(input_form form) { return form == INPUT_JSONL || form == INPUT_CSV || form == INPUT_TSV; }

static inline bool fields_are_table(input_form form) { return form == INPUT_CSV || form == INPUT_TSV; }

/* How text is read: READ_FILE: a whole file of training examples at once; else one example to predict. READ_BARRED: words are word|TAG. */
typedef enum read_form { READ_FILE, READ_LINES, READ_BARRED, READ_COLUMNS, READ_LABELLED } read_form;

typedef struct input_reading {
    read_form form;
    vpps_columns columns;
    vpps_bars bars;
    bool records;    /* text in columns: whether vpps made it from a JSON object's or table row's words and tags */
    bool words_only; /* text in columns: whether lines are words without a column of tags */
    /* text in columns: whether the first word's tag is none of the network's; predict then keeps all tags and adds a column of tags */
    bool other_tags;
    vpps_columns_seen seen; /* the latest example's columns: number, separator, column of tags */
} input_reading;
