/* fields.h - takes examples from the fields of records: a JSON object, or a CSV or TSV record with named columns. */
#pragma once

#include "cli/common/json.h"
#include "cli/input/corpus.h"
#include "cli/input/csv.h"

typedef struct field_reader {
    const settings *s;
    input_form form;
    /* whether records must have labels: in training, in measuring, and in predict --gold for sentences with translations */
    bool labels;
    json_t *names; /* CSV, TSV: the fields' names, an array of strings; NULL: fields are numbered from 1 */
} field_reader;

/* Returns whether --text-field is a column's number, so that columns have no names. */
bool fields_numbered(const settings *s);

/* Returns whether a table's first line names the field with the text and the field with the labels. */
bool fields_begin_with_names(const settings *s, const vpps_text *t);

/* Returns the names that the field of an example's text usually has, which need no option; NULL ends the array. */
const char *const *fields_text_names(net_kind kind);

/* Returns whether `name` is the name of the field with an example's text, or with its labels. */
bool fields_are_of(const settings *s, const char *name);

/* Finds a field of a record that is not read although it holds several words, and sets *read to the name of the text field that is read.
 * Returns NULL when there is no such field. */
const char *fields_other_text(const field_reader *r, const json_t *object, const char **read);

/* Prepares r for a file in format `form`; sets *in to how the texts in its fields are read. */
void fields_begin(field_reader *r, const settings *s, input_form form, input_reading *in);
void fields_close(field_reader *r);

/* fields_want_names returns whether the next record is a table's line of field names; fields_take_names takes these names. fields_take_names fails
 * with FORMAT if the names are faulty, or if examples need labels and no field is named as the text or as the labels. */
bool fields_want_names(const field_reader *r);
vpps_status fields_take_names(field_reader *r, const char *text, size_t len);

/* Parses a record into an object, which the caller frees. Fails with FORMAT (no record, or a repeated field), MEMORY. */
vpps_status fields_read(const field_reader *r, const char *text, size_t len, json_t **object);

/* Sets *text, which the caller frees, to the text of the record `object`, in the format in which r's task reads examples; *len 0: the field is empty.
 * If a table's field holds a list as text (lists.h), the object gets the list. Fails with FORMAT (no field, or neither text nor list), MEMORY. */
vpps_status fields_text(const field_reader *r, json_t *object, char **text, size_t *len);

/* Sets *text to the target sentence (translation) of a pair, as fields_text does for the source sentence. */
vpps_status fields_target(const field_reader *r, json_t *object, char **text, size_t *len);
