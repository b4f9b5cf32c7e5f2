/* input.h - finds the form of a file's examples: by the options, the file's name, or its first lines. */
#pragma once

#include "cli/task.h"
#include "io/text.h"

/* The form that a file's name suggests, also when it is compressed; AUTO: none. */
input_form input_form_of_name(const char *name);

/* What form each line of a text looks like that is read as plain text: trees, word|TAG or columns; NULL: none. */
const char *input_text_looks(const vpps_text *t);

/* Fails with FORMAT where the text begins as an array of JSON objects does, which no network reads. */
vpps_status input_refuse_array(const vpps_text *t);

/* Is the first line that is not blank a JSON object? */
bool input_is_json(const vpps_text *t);

/* `first`: the whole lines that are there. How examples are read goes into *in, unless they are fields (fields_begin). What was
 * concluded from the lines is told on standard error. Fails with ARGUMENT where the network does not read the form. */
vpps_status input_find_form(const corpus *c, const settings *s, const task_text *first, input_form *form,
                            input_reading *in);
