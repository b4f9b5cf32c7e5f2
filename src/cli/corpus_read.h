/* corpus_read.h - filling a corpus as its kind of data asks (task.h). */
#pragma once

#include "cli/task.h"

/* The data that s trains on or measures, for people: a path or the generator's name. */
const char *corpus_name(const settings *s);

/* Reads or generates what s asks for: for training all parts there are, for the other commands one part (train for
 * script). Generated dev and test examples that occur in training are left out. Vocabularies and classes come from the
 * training part, unless c has them already (from a checkpoint); corpus_set_sizes follows. Fails with IO,
 * FORMAT, MEMORY, ARGUMENT; free with corpus_close in any case. */
vpps_status corpus_open(corpus *c, settings *s);

/* Calls `see` for every file, and every folder whose files are all read, that s names as data, with the option that names it; ends with the
 * first failure. Files that cannot be found are left to corpus_open. */
vpps_status corpus_list_files(const settings *s,
                              vpps_status (*see)(void *context, const char *option, const char *path), void *context);

/* For prediction, where nothing needs a label: adds the examples of a text to the test part, after those before; on
 * failure it is as before. `target`: of a pair, where it is known; else NULL. */
vpps_status corpus_add_input(corpus *c, const settings *s, const task_text *text, const task_text *target);

/* Makes what was added ready, all of it to be used. Afterwards nothing more is added until corpus_clear_split. */
vpps_status corpus_end_input(corpus *c, const settings *s);

/* Example number i of those read, valid until the next one is asked for. Fails with MEMORY. */
vpps_status corpus_example(corpus *c, net_kind kind, const corpus_split *split, uint32_t i, net_example *x);
