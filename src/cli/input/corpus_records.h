/* corpus_records.h - reads records (JSONL, CSV, TSV) as examples for training and measuring, by field names
 * (fields.h). */
#pragma once

#include "cli/input/task.h"

/* Finds whether a file's examples are records: .jsonl and .csv files; .tsv files whose first line has field names;
 * files with JSON objects in their lines, which is noted. *form is INPUT_AUTO if not. Fails with ARGUMENT where the
 * network cannot read records, or options about fields were given for a file without any. */
vpps_status corpus_records_form(corpus *c, const settings *s, const task_text *text, input_form *form);

/* Appends a file's records to a part as examples. Fails with FORMAT, naming the record's line, and MEMORY. */
vpps_status corpus_records_read(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                                input_form form);
