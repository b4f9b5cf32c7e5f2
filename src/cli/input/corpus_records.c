/* corpus_records.c - reads JSONL, CSV and TSV as examples. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/input/fields.h"
#include "cli/input/input.h"
#include "cli/input/records.h"
#include "io/constituents.h"
#include "io/descriptor.h"
#include "io/treebank.h"

#include <inttypes.h>

/* Returns whether the network reads records (JSON Lines, CSV, TSV); CoNLL-U and lists of edges are other formats. */
static bool reads_records(const settings *s) { return !task_for(s)->own_form; }

vpps_status corpus_records_form(corpus *c, const settings *s, const task_text *text, input_form *form) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    const char *asked = options_given(s, "text-field")    ? "text-field"
                        : options_given(s, "label-field") ? "label-field"
                                                          : NULL;
    const net_kind kind = s->network->kind;
    *form = input_form_of(s, text->name);
    /* if the first line of a .tsv file has no names, its lines may be labelled sentences or columns */
    if (*form == INPUT_TSV && !s->data_format &&
        !(reads_records(s) && (s->text_field || fields_begin_with_names(s, &t))))
        *form = INPUT_AUTO;
    if (s->data_format) VPPS_TRY(input_check_form(s, text->name, *form));
    if (s->data_format == INPUT_TEXT && (net_tags(kind) || kind == NET_SENTENCES))
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected sentences with %s, but --input-format text has none",
                         VPPS_PATH_ARGS(text->name), net_tags(kind) ? "tags" : "labels");
    if (fields_are(*form) && !reads_records(s))
        return vpps_fail(VPPS_ARGUMENT, "%s%s: %s does not read %s", VPPS_PATH_ARGS(text->name), s->network->name,
                         *form == INPUT_CSV ? "CSV" : "JSONL");
    if (*form == INPUT_AUTO || *form == INPUT_JSONL) VPPS_TRY(input_refuse_array(&t));
    if (*form == INPUT_AUTO && reads_records(s) && input_is_json(&t)) {
        *form = INPUT_JSONL;
        corpus_note(c, "%s%s: read as JSONL, an object a line", VPPS_PATH_ARGS(text->name));
    }
    if (fields_are(*form)) return VPPS_OK;
    *form = INPUT_AUTO;
    if (!asked) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s%s: --%s names fields of files that end in .jsonl, .csv or .tsv",
                     VPPS_PATH_ARGS(text->name), asked);
}

static void set_line(const corpus_split *split, uint32_t first, uint32_t line) {
    if (split->words) vpps_sentences_set_line(split->words, first, line);
    if (split->sentences) vpps_sentences_set_line(split->sentences, first, line);
    if (split->target) vpps_sentences_set_line(split->target, first, line);
    if (split->constituents) vpps_constituents_set_line(split->constituents, first, line);
    if (split->bank) vpps_treebank_set_line(split->bank, first, line);
}

static vpps_status add_example(corpus *c, const settings *s, corpus_split *split, const record *r,
                               const task_text *text, const task_text *target) {
    const uint32_t before = corpus_read_so_far(split);
    VPPS_TRY(task_for(s)->read(c, s, split, text, target));
    const uint32_t n = corpus_read_so_far(split) - before;
    if (n > 1) return vpps_fail(VPPS_FORMAT, "expected one example, found %u", n);
    set_line(split, before, r->number < UINT32_MAX ? (uint32_t)r->number : UINT32_MAX);
    return VPPS_OK;
}

/* Counts the records of a file that give no example, such as records with an empty text. */
typedef struct empty_records {
    uint64_t n, first; /* n: number of records without an example; first: line of the first one */
    bool told;         /* whether a note tells the user that another text field is not read */
} empty_records;

/* Reads a record. A record with an empty text, or a pair without source or target, is no example. */
static vpps_status read_record(corpus *c, const settings *s, corpus_split *split, const field_reader *fields,
                               const char *name, const record *r, empty_records *empty) {
    const bool paired = task_for(s)->paired;
    VPPS_FREED char *text = NULL, *other = NULL;
    task_text source = {RECORD_NAME, NULL, 0}, target = source;
    json_auto_t *object = NULL;
    VPPS_TRY(fields_read(fields, r->text, r->len, &object));
    const char *read, *other_text = empty->told ? NULL : fields_other_text(fields, object, &read);
    empty->told = empty->told || other_text;
    if (other_text)
        corpus_note(c, "%s%s:%" PRIu64 ": '%.40s' is not read, only '%.40s': --text-field names another one",
                    VPPS_PATH_ARGS(name), r->number, other_text, read);
    VPPS_TRY(fields_text(fields, object, &text, &source.len));
    if (paired) VPPS_TRY(fields_target(fields, object, &other, &target.len));
    source.text = text;
    target.text = other;
    if (source.len && (target.len || !paired)) return add_example(c, s, split, r, &source, paired ? &target : NULL);
    if (!empty->n++) empty->first = r->number;
    return VPPS_OK;
}

static vpps_status read_records(corpus *c, const settings *s, corpus_split *split, record_reader *records,
                                field_reader *fields) {
    empty_records empty = {0};
    record r;
    while (records_next(records, &r) == LINE_WHOLE) {
        if (r.blank && fields_are_table(records->form) && !empty.n++) empty.first = r.number;
        if (r.blank) continue;
        const vpps_status status = fields_want_names(fields)
                                       ? fields_take_names(fields, r.text, r.len)
                                       : read_record(c, s, split, fields, records->lines.name, &r, &empty);
        if (status != VPPS_OK) return records_place(records, status, r.number);
    }
    if (empty.n)
        corpus_note(c, "%s%s:%" PRIu64 ": a record without words%s is left out; such records: %" PRIu64,
                    VPPS_PATH_ARGS(records->lines.name), empty.first, task_for(s)->paired ? " on one side" : "",
                    empty.n);
    return VPPS_OK;
}

vpps_status corpus_records_read(corpus *c, const settings *s, corpus_split *split, const task_text *text,
                                input_form form) {
    const net_kind kind = s->network->kind;
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    record_reader records;
    field_reader fields;
    VPPS_TRY(vpps_text_check_encoding(&t));
    if (kind == NET_TEXT || task_for(s)->paired)
        corpus_note_reserved(c, text->name, t.begin, (size_t)(t.end - t.begin));
    records_of(&records, text->name, t.begin, (size_t)(t.end - t.begin), form);
    fields_begin(&fields, s, form, &c->input);
    const vpps_status status = read_records(c, s, split, &records, &fields);
    c->input = (input_reading){.form = READ_FILE};
    fields_close(&fields);
    records_close(&records);
    return status;
}
