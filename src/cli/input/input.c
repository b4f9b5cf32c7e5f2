/* input.c - finds the format of a file's examples. */
#include "cli/input/input.h"
#include "base/base.h"
#include "cli/input/fields.h"
#include "io/descriptor.h"

#include <strings.h>

input_form input_form_of_name(const char *name) {
    static const struct {
        const char *ending;
        input_form form;
    } endings[] = {{".csv", INPUT_CSV},      {".tsv", INPUT_TSV},       {".jsonl", INPUT_JSONL},
                   {".ndjson", INPUT_JSONL}, {".conll", INPUT_COLUMNS}, {".conllu", INPUT_COLUMNS},
                   {".iob", INPUT_COLUMNS},  {".bio", INPUT_COLUMNS}};
    size_t n = strlen(name);
    if (n > 3 && strcasecmp(name + n - 3, ".gz") == 0) n -= 3;
    if (n > 4 && strncasecmp(name + n - 4, ".zst", 4) == 0) n -= 4;
    for (size_t i = 0; i < VPPS_COUNT(endings); i++) {
        const size_t m = strlen(endings[i].ending);
        if (n > m && strncasecmp(name + n - m, endings[i].ending, m) == 0) return endings[i].form;
    }
    return INPUT_AUTO;
}

/* Returns whether a text begins with these characters, perhaps with white space before each. */
static bool begins_with(const vpps_text *t, const char *characters) {
    const char *at = t->begin;
    for (const char *c = characters; *c; c++) {
        while (at < t->end && vpps_is_space(*at)) at++;
        if (at == t->end || *at++ != *c) return false;
    }
    return true;
}

bool input_is_json(const vpps_text *t) { return begins_with(t, "{\"") || begins_with(t, "{}"); }

vpps_status input_refuse_array(const vpps_text *t) {
    if (!begins_with(t, "[{\"")) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT,
                     "%s%s: expected JSON objects, one a line, found an array: jq -c '.[]' makes lines of it",
                     VPPS_PATH_ARGS(t->name));
}

bool input_decides(const vpps_line *line, bool tags) {
    const char *at = line->begin;
    vpps_word first;
    if (!vpps_text_next_word(&at, line->end, &first)) return false;
    if (!tags) return true;
    return !vpps_columns_document_start(line->begin, (size_t)(line->end - line->begin)) &&
           (*line->begin != '#' || memchr(first.at, '|', first.len));
}

vpps_status input_check_form(const settings *s, const char *name, input_form form) {
    static const char *const names[] = {"auto", "text", "tagged", "columns", "labelled", "jsonl", "csv", "tsv"};
    const net_kind kind = s->network->kind;
    if (form == INPUT_TAGGED || form == INPUT_COLUMNS ? net_tags(kind)
                                                      : form != INPUT_LABELLED || kind == NET_SENTENCES)
        return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s%s: %s does not read %s (--input-format)", VPPS_PATH_ARGS(name),
                     s->network->name, names[form]);
}

static input_form form_of_reading(read_form form) {
    static const input_form forms[] = {[READ_LINES] = INPUT_TEXT,
                                       [READ_BARRED] = INPUT_TAGGED,
                                       [READ_COLUMNS] = INPUT_COLUMNS,
                                       [READ_LABELLED] = INPUT_LABELLED};
    return forms[form];
}

static void tell(const task_text *first, const char *what) {
    fprintf(stderr, "vpps: %s%s: read as %s (--input-format text reads lines of text)\n", VPPS_PATH_ARGS(first->name),
            what);
}

vpps_status input_find_form(const corpus *c, const settings *s, const task_text *first, input_form *form,
                            input_reading *in) {
    const net_kind kind = s->network->kind;
    const vpps_text t = vpps_text_of(first->name, first->text, first->len, "");
    *form = s->input_format;
    *in = (input_reading){.form = READ_LINES};
    if (*form == INPUT_AUTO) *form = input_form_of_name(first->name);
    VPPS_TRY(input_check_form(s, first->name, *form));
    if (*form == INPUT_TSV && s->input_format == INPUT_AUTO && task_for(s)->look) {
        /* a .tsv file is one of three: a table with names of its columns; lines of a label, a TAB and a sentence; one word with its tags a line */
        const bool named = fields_begin_with_names(s, &t);
        /* if a first line fits no other format, it holds the names of columns */
        const bool lines = !named && task_for(s)->look(c, s, INPUT_AUTO, first, in) == VPPS_OK;
        if (lines && (in->form == READ_LABELLED || in->form == READ_COLUMNS)) *form = INPUT_AUTO;
        *in = (input_reading){.form = READ_LINES};
    }
    const bool open = *form == INPUT_AUTO; /* the lines must tell the format */
    if (*form == INPUT_AUTO || *form == INPUT_JSONL) VPPS_TRY(input_refuse_array(&t));
    if (open && input_is_json(&t)) *form = INPUT_JSONL;
    if (*form == INPUT_JSONL || *form == INPUT_CSV || *form == INPUT_TSV) return VPPS_OK;
    const task *of_kind = task_for(s);
    if (of_kind->look) VPPS_TRY(of_kind->look(c, s, *form, first, in));
    *form = form_of_reading(in->form);
    if (s->gold && *form == INPUT_TEXT && kind != NET_TREES)
        return vpps_fail(VPPS_ARGUMENT, "%s%s: --gold needs examples with %s, found lines of text",
                         VPPS_PATH_ARGS(first->name),
                         task_for(s)->paired ? "targets"
                         : net_tags(kind)    ? "tags"
                                             : "labels");
    if (*form == INPUT_TEXT || (!in->other_tags && (!open || s->gold))) return VPPS_OK;
    tell(first, *form == INPUT_TAGGED     ? "word|TAG lines, whose tags are replaced"
                : *form == INPUT_LABELLED ? "a label, a tab and a sentence a line; labels are replaced"
                : in->other_tags          ? "columns; the tags come after them"
                : in->words_only          ? "columns of words"
                                          : "columns, whose tags are replaced");
    return VPPS_OK;
}
