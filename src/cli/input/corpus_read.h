/* corpus_read.h - fills a corpus (a command's data) by the functions that task.h has for each kind of data. */
#pragma once

#include "cli/input/task.h"

/* Names the data that s trains on or measures, for people: a path or the generator's name. */
const char *corpus_name(const settings *s);

/* Reads or generates the data that s asks for: all splits for training, one split for other commands (train for `script`). Leaves out
 * generated dev and test examples that occur in training. Makes vocabularies and classes from the training split, unless c has them from a
 * checkpoint; calls corpus_set_sizes. Fails with IO, FORMAT, MEMORY, ARGUMENT; call corpus_close also after a failure. */
vpps_status corpus_open(corpus *c, settings *s);

/* Calls `see` for every data file that s names, with the option that names it, and for every folder whose files are all
 * read. Stops at the first failure of `see`. Skips files that do not exist; corpus_open reports them. */
vpps_status corpus_list_files(const settings *s,
                              vpps_status (*see)(void *context, const char *option, const char *path), void *context);

/* For prediction, where no label is needed: appends the examples of a text to the test split; a failure leaves the split unchanged.
 * `target`: translations of the text's sentences, if the user gives some; else NULL. */
vpps_status corpus_add_input(corpus *c, const settings *s, const task_text *text, const task_text *target);

/* Makes the examples that corpus_add_input added ready for use. No more can be added until corpus_clear_split. */
vpps_status corpus_end_input(corpus *c, const settings *s);

/* Sets *x to example i of a split; *x is valid until the next call. Fails with MEMORY. */
vpps_status corpus_example(corpus *c, net_kind kind, const corpus_split *split, uint32_t i, net_example *x);
