/* corpus_records.h - reads records (JSONL, CSV, TSV) as examples for training and measuring, by field names (fields.h). */
#pragma once

#include "cli/input/task.h"

/* Sets *form to the format of a file whose examples are records, else to INPUT_AUTO. Records are in .jsonl and .csv files, in .tsv files
 * whose first line has field names, and in other files of JSON objects, about which a note is added. Fails with ARGUMENT where the network
 * cannot read records, or options about fields were given for a file without any. */
vpps_status corpus_records_form(corpus *c, const settings *s, const task_text *text, input_form *form);

/* Appends a file's records to a split as examples. Fails with FORMAT, naming the record's line, and MEMORY. */
vpps_status corpus_records_read(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                                input_form form);
