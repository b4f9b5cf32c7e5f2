/* input.h - finds the format of a file's examples from the options, the file's name, or its first line. */
#pragma once

#include "cli/input/task.h"
#include "io/text.h"

/* Returns the format that a file's name suggests, compressed or not; INPUT_AUTO: none. */
input_form input_form_of_name(const char *name);

/* Returns the format of a data file by --input-format of training and measuring, else by the file's name; INPUT_AUTO: neither tells it. */
static inline input_form input_form_of(const settings *s, const char *name) {
    return s->data_format ? s->data_format : input_form_of_name(name);
}

/* Returns whether a line tells its file's format: whether it is not blank and, with `tags` (of taggers), neither a comment nor -DOCSTART-. A line
 * that begins with '#' is no comment if its first word has a '|'. */
bool input_decides(const vpps_line *line, bool tags);

/* Checks that the network reads a format. Fails with ARGUMENT. */
vpps_status input_check_form(const settings *s, const char *name, input_form form);

/* Checks that a text does not begin as an array of JSON objects, which no network reads. Fails with FORMAT. */
vpps_status input_refuse_array(const vpps_text *t);

/* Returns whether a text begins as an object of JSON: with a brace and a quote, or two braces. The object itself may be faulty. */
bool input_is_json(const vpps_text *t);

/* Finds the format of the input from its first whole lines, `first`, and tells on standard error what it concluded from them. Sets *in to
 * how examples are read, but not for records (JSON, CSV, TSV), for which fields_begin sets it. Fails with ARGUMENT where the network does
 * not read the format. */
vpps_status input_find_form(const corpus *c, const settings *s, const task_text *first, input_form *form,
                            input_reading *in);
