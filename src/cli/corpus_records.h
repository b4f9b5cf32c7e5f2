/* corpus_records.h - JSONL, CSV and TSV to train on and to measure: an example a record, by the names of its fields (fields.h). */
#pragma once

#include "cli/task.h"

/* Are a file's examples records? By its name: .jsonl, .csv; .tsv with names of fields in its first line; else JSON objects in its lines,
 * which is noted. AUTO: they are not. Fails with ARGUMENT where the network cannot read records, or options of fields were given for a
 * file that has none. */
vpps_status corpus_records_form(corpus *c, const settings *s, const task_text *text, input_form *form);

/* Reads the records of a file into a part, after the examples that it has. Fails with FORMAT and the record's line, MEMORY. */
vpps_status corpus_records_read(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                                input_form form);
