/* corpus_read.h - fills a corpus (a command's data) by the functions that task.h has for each kind of data, and notes what is odd about it. */
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

/* Sets *form to the format of a file whose examples are records, else to INPUT_AUTO. Records are in .jsonl and .csv files, and in .tsv
 * files whose first line has field names. Another file that begins with a JSON object is read as JSONL, and a note says so. Fails with
 * ARGUMENT where the network cannot read records, or where options about fields were given for a file without records. */
vpps_status corpus_records_form(corpus *c, const settings *s, const task_text *text, input_form *form);

/* Appends a file's records to a split as examples. Fails with FORMAT, naming the record's line, and MEMORY. */
vpps_status corpus_records_read(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                                input_form form);

/* Keeps a note, a line to be printed after all data are read; drops the note when out of memory. */
void corpus_note(corpus *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a note if a file is not UTF-8: where its first such byte is, and how many lines have such bytes. */
void corpus_note_encoding(corpus *c, const char *name, const char *text, size_t len);

/* Adds a note if the text of a language model contains END_WORD: on which lines, and how the word is read. */
void corpus_note_reserved(corpus *c, const char *name, const char *text, size_t len);

/* Adds a note about labels of a split that the training split lacks: the place of the first such label, and their
 * number. Call it after task.map, which translates ids of labels as read to the network's classes. */
void corpus_note_labels(corpus *c, int which);

/* Adds a note about a split's tags that fit no scheme of chunks (such as B-PER, I-PER), so that their words count as outside of all chunks. Does
 * nothing if the network's own tags are not tags of chunks. */
void corpus_note_tags(corpus *c, int which);
