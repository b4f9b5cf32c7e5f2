/* fields.h - examples that are fields of a record: of JSONL an object, of CSV and TSV the fields by their names in the first
 * record. */
#pragma once

#include "cli/corpus.h"
#include "cli/csv.h"

typedef struct field_reader {
    const settings *s;
    input_form form;
    bool labels;   /* an example must have what the network learns: to train, to measure, or for --gold of a pair */
    json_t *names; /* CSV, TSV: an array of strings; NULL: they are numbers, from 1 */
} field_reader;

/* Does --text-field count columns, which have no names then? */
bool fields_numbered(const settings *s);

/* Is a table's first line the names of fields, one of them the text's, and one what is learned from it? */
bool fields_begin_with_names(const settings *s, const char *line, size_t len);

/* The names of the field with the text that need not be said; end with NULL. */
const char *const *fields_text_names(net_kind kind);

/* Is a field of that name the text's, or one of what is learned from it? */
bool fields_are_of(const settings *s, const char *name);

/* A field of several words that is not read, where *read is the one that is; NULL: there is none. */
const char *fields_other_text(const field_reader *r, const json_t *object, const char **read);

/* Begins a file. How the texts of its examples are read goes into *in. */
void fields_begin(field_reader *r, const settings *s, input_form form, input_reading *in);
void fields_close(field_reader *r);

/* Is the next record the names of fields? It then goes to fields_take_names. Fails with FORMAT, also where labels are needed and it
 * lacks a name. */
bool fields_want_names(const field_reader *r);
vpps_status fields_take_names(field_reader *r, const char *text, size_t len);

/* A record as an object, to be freed. Fails with FORMAT (no record, or a field that is read is there twice), MEMORY. */
vpps_status fields_read(const field_reader *r, const char *text, size_t len, json_t **object);

/* The example's text, as r's reading wants it; empty: there is none. A table's cell that holds a list as text (lists.h) becomes that list
 * in the object. *text is to be freed. Fails with FORMAT (the field is
 * missing, or no text), MEMORY. */
vpps_status fields_text(const field_reader *r, json_t *object, char **text, size_t *len);

/* The same of a pair's target. */
vpps_status fields_target(const field_reader *r, json_t *object, char **text, size_t *len);
