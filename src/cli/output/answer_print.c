/* answer_print.c - prints answers as lines, columns, JSONL, CSV or TSV. */
#include "cli/output/answer_print.h"
#include "base/base.h"
#include "cli/input/task.h"
#include "io/json.h"

vpps_status answers_set_form(answers *a, answer_printer *p, const settings *s, input_form form) {
    output_form out = s->json ? OUTPUT_JSONL : (output_form)s->output_format;
    if (out == OUTPUT_AUTO)
        out = form == INPUT_COLUMNS ? OUTPUT_COLUMNS
              : form == INPUT_JSONL ? OUTPUT_JSONL
              : form == INPUT_CSV   ? OUTPUT_CSV
              : form == INPUT_TSV   ? OUTPUT_TSV
                                    : OUTPUT_TEXT;
    if (out == OUTPUT_COLUMNS && !net_tags(s->network->kind))
        return vpps_fail(VPPS_ARGUMENT, "%s does not tag words: it prints no columns (--output-format)",
                         s->network->name);
    if (s->gold && task_for(s)->paired && out == OUTPUT_TEXT)
        return vpps_fail(VPPS_ARGUMENT,
                         "--gold: lines of translations do not say how likely a target is; expected --output-format "
                         "jsonl, csv or tsv");
    if (s->top > 1 && out != OUTPUT_JSONL)
        return vpps_fail(VPPS_ARGUMENT, "--top: the likeliest ones are printed in JSON; expected --json");
    p->s = s;
    p->form = out;
    p->lines = form == INPUT_TEXT || form == INPUT_TAGGED || form == INPUT_LABELLED || form == INPUT_JSONL;
    p->numbered = (form == INPUT_CSV || form == INPUT_TSV) && fields_numbered(s);
    a->json = out == OUTPUT_JSONL || out == OUTPUT_CSV || out == OUTPUT_TSV;
    a->rows = out == OUTPUT_COLUMNS;
    a->gold = s->gold;
    return VPPS_OK;
}

void answer_printer_close(answer_printer *p) {
    for (size_t i = 0; i < p->n_columns; i++) free(p->columns[i]);
    VPPS_FREE_ARRAYS(p->columns);
    p->columns = NULL;
    p->n_columns = 0;
}

static void end_line(bool crlf) { fputs(crlf ? "\r\n" : "\n", stdout); }

/* ---------------------------------------------------------------- columns */

/* A row of a tagger's answer, "LINE<TAB>TAG<TAB>GOLD<TAB>WORD". */
typedef struct tag_row {
    uint32_t line;
    const char *part[3];
    int len[3];
} tag_row;

enum { TAG, GOLD, WORD };

/* Parses the next row of an answer in *at .. end. Returns false at the end. */
static bool next_row(const char **at, const char *end, tag_row *row) {
    const char *stop = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (!stop) return false;
    const char *p = *at;
    for (row->line = 0; *p != '\t'; p++) row->line = 10 * row->line + (uint32_t)(*p - '0');
    for (int i = 0; i < 3; i++) {
        const char *next = i < WORD ? memchr(p + 1, '\t', (size_t)(stop - p - 1)) : stop;
        row->part[i] = p + 1;
        row->len[i] = (int)(next - p - 1);
        p = next;
    }
    *at = stop + 1;
    return true;
}

/* Prints a line of columns with the network's tag in place of the tag column, or after all columns. */
static void print_tagged_line(const answer_printer *p, const asked *q, const char *line, size_t len,
                              const tag_row *row) {
    vpps_word column = {NULL, 0};
    const bool keeps = q->keeps_tags || p->s->gold || !q->tag_column ||
                       !vpps_columns_find(q->separator, line, len, q->tag_column, &column);
    if (keeps) {
        const bool tabs = q->separator == '\t' || memchr(line, '\t', len);
        printf("%.*s%c%.*s", (int)len, line, tabs ? '\t' : ' ', row->len[TAG], row->part[TAG]);
        return;
    }
    const char *after = column.at + column.len;
    printf("%.*s%.*s%.*s", (int)(column.at - line), line, row->len[TAG], row->part[TAG], (int)(line + len - after),
           after);
}

/* Prints an example's lines as they were read, with the network's tags; lines without a word stay unchanged. */
static void print_same_columns(const answer_printer *p, const asked *q, const char *text, size_t text_len) {
    const char *end = text + text_len, *line = q->text, *stop = q->text + q->len;
    tag_row row;
    bool has_row = next_row(&text, end, &row);
    for (uint32_t number = 1 + q->lines_before;; number++) {
        const char *lf = memchr(line, '\n', (size_t)(stop - line));
        const bool crlf = lf ? lf > line && lf[-1] == '\r' : q->crlf;
        const size_t len = (size_t)((lf ? lf - crlf : stop) - line);
        if (has_row && row.line == number) {
            print_tagged_line(p, q, line, len, &row);
            has_row = next_row(&text, end, &row);
        } else {
            printf("%.*s", (int)len, line);
        }
        end_line(crlf);
        if (!lf) return;
        line = lf + 1;
    }
}

static void print_columns(const answer_printer *p, const asked *q, const char *text, size_t len) {
    tag_row row;
    if (q->text) {
        print_same_columns(p, q, text, len);
        return;
    }
    for (const char *at = text; next_row(&at, text + len, &row);) {
        printf("%.*s\t", row.len[WORD], row.part[WORD]);
        if (p->s->gold) printf("%.*s\t", row.len[GOLD], row.part[GOLD]);
        printf("%.*s\n", row.len[TAG], row.part[TAG]);
    }
    putchar('\n');
}

/* ---------------------------------------------------------------- records */

/* Returns whether a member of an answer, such as "gold", repeats labels of the input. */
static bool is_gold(const char *name) { return strncmp(name, "gold", 4) == 0; }

/* Returns the names of the table columns that answers fill; the list ends with NULL. */
static const char *const *answer_columns(const settings *s) {
    static const char *const tags[] = {"words", "tags", "gold", NULL},
                             *const pairs[] = {"translation", "score", "gold_log_probability", NULL},
                             *const text[] = {"perplexity", "log_probability", NULL},
                             *const labels[] = {"label", "score", "gold", NULL};
    switch (s->network->kind) {
    case NET_TAGGING:
    case NET_LATTICES: return tags;
    case NET_PAIRS:
    case NET_LATTICE_PAIRS: return pairs;
    case NET_TEXT: return text;
    default: return labels;
    }
}

/* A JSON object and its text; text NULL: no object. */
typedef struct object {
    const char *text;
    vpps_json json;
} object;

static vpps_status object_read(object *o, const char *text, size_t len) {
    vpps_json_error error;
    *o = (object){.text = text};
    if (!text || vpps_json_parse_foreign(&o->json, text, len, &error)) return VPPS_OK;
    return vpps_fail(VPPS_MEMORY, "no memory for an answer");
}

static const vpps_json_value *object_get(const object *o, const char *key) {
    return vpps_json_get(&o->json, o->json.values, key);
}

static const vpps_json_value *object_next(const object *o, const vpps_json_value *at) {
    return vpps_json_next(&o->json, o->json.values, at);
}

static void write_bytes(FILE *f, const object *o, size_t begin, size_t end) {
    fwrite(o->text + begin, 1, end - begin, f);
}

/* A record's fields and the answer to the record, as JSON objects. */
typedef struct both {
    object record, answer;
} both;

static vpps_status both_read(both *b, const asked *q, const char *text, size_t len) {
    *b = (both){.answer.text = NULL};
    VPPS_TRY(object_read(&b->record, q->fields ? q->text : NULL, q->len));
    return object_read(&b->answer, text, len);
}

static void both_free(both *b) {
    vpps_json_free(&b->record.json);
    vpps_json_free(&b->answer.json);
}

/* Returns whether `key`, a field of a record that got no answer, is also a field of answers. Its value in the input is not printed, since
 * it would look like an answer. */
static bool is_unanswered(const answer_printer *p, const both *b, const char *key) {
    if (b->answer.text || strcmp(key, "words") == 0 || is_gold(key)) return false;
    for (const char *const *c = answer_columns(p->s); *c; c++)
        if (strcmp(*c, key) == 0) return true;
    return false;
}

/* Prints a JSON object of the record's and the answer's members. The answer's members replace the record's of the same name. */
static void print_members(const answer_printer *p, const both *b, FILE *f) {
    const char *comma = "{";
    for (const vpps_json_value *v = NULL; (v = object_next(&b->record, v)); comma = ",") {
        const vpps_json_value *answer = object_get(&b->answer, v->key);
        const bool ours = answer || is_unanswered(p, b, v->key);
        if (ours && object_get(&b->record, v->key) != v) continue; /* an earlier member of this name was printed */
        fputs(comma, f);
        write_bytes(f, &b->record, v->key_begin, v->key_end);
        fputc(':', f);
        if (answer)
            write_bytes(f, &b->answer, answer->begin, answer->end);
        else if (ours)
            fputs("null", f);
        else
            write_bytes(f, &b->record, v->begin, v->end);
    }
    for (const vpps_json_value *v = NULL; (v = object_next(&b->answer, v));) {
        if (object_get(&b->record, v->key)) continue;
        fputs(comma, f);
        write_bytes(f, &b->answer, v->key_begin, v->end);
        comma = ",";
    }
    fputs(*comma == '{' ? "{}" : "}", f);
}

static vpps_status print_json(const answer_printer *p, const asked *q, const char *text, size_t len) {
    if (!q->fields) {
        if (text) fwrite(text, 1, len, stdout);
        end_line(q->crlf);
        return VPPS_OK;
    }
    VPPS_CLOSED_BY(both_free) both b;
    VPPS_TRY(both_read(&b, q, text, len));
    print_members(p, &b, stdout);
    end_line(q->crlf);
    return VPPS_OK;
}

/* Returns an element of a list as text: a word, or a tag's label. */
static const char *item_text(const object *o, const vpps_json_value *item, const char *key) {
    if (item->kind == VPPS_JSON_OBJECT) item = vpps_json_get(&o->json, item, key);
    return item && item->kind == VPPS_JSON_STRING ? item->string : "_";
}

/* Prints a value as the text of a cell: a string as it is, a list of words or tags with spaces between, null as nothing, anything else as JSON. */
static void print_cell(FILE *f, const object *o, const vpps_json_value *value, const char *key, bool listed) {
    if (!value) return;
    if (value->kind == VPPS_JSON_STRING) {
        fputs(value->string, f);
    } else if (value->kind == VPPS_JSON_ARRAY && listed) {
        const char *space = "";
        for (const vpps_json_value *v = NULL; (v = vpps_json_next(&o->json, value, v)); space = " ")
            fprintf(f, "%s%s", space, item_text(o, v, key));
    } else if (value->end - value->begin != 4 || strncmp(o->text + value->begin, "null", 4) != 0) {
        write_bytes(f, o, value->begin, value->end);
    }
}

static vpps_status write_cell(FILE *f, const object *o, const vpps_json_value *value, const char *key, bool listed,
                              char separator, bool tabs) {
    VPPS_FREED char *text = NULL;
    size_t len = 0;
    FILE *cell = open_memstream(&text, &len);
    if (cell) print_cell(cell, o, value, key, listed);
    VPPS_TRY(vpps_text_end(cell, VPPS_OK, &text));
    return csv_write(f, text, separator, tabs);
}

static bool has_column(const answer_printer *p, const char *name) {
    for (size_t i = 0; i < p->n_columns; i++)
        if (strcmp(p->columns[i], name) == 0) return true;
    return false;
}

static vpps_status add_column(answer_printer *p, const char *name) {
    if (has_column(p, name)) return VPPS_OK;
    char *copy = strdup(name);
    if (!copy || !VPPS_RESERVE(p->columns, p->n_columns + 1)) {
        free(copy);
        return vpps_fail(VPPS_MEMORY, "no memory for a table's columns");
    }
    p->columns[p->n_columns++] = copy;
    return VPPS_OK;
}

static char separator_before(const answer_printer *p, size_t column) {
    return column == 0 ? 0 : p->form == OUTPUT_TSV ? '\t' : ',';
}

static void print_empty_row(const answer_printer *p, bool crlf) {
    for (size_t i = 1; i < p->n_columns; i++) putchar(separator_before(p, i));
    end_line(crlf);
}

static vpps_status find_columns(answer_printer *p, const object *record) {
    const json_t *names = p->fields ? p->fields->names : NULL;
    for (size_t i = 0; i < json_array_size(names); i++)
        VPPS_TRY(add_column(p, json_string_value(json_array_get(names, i))));
    for (const vpps_json_value *v = NULL; !names && (v = object_next(record, v));) VPPS_TRY(add_column(p, v->key));
    if (!p->fields && !net_tags(p->s->network->kind)) VPPS_TRY(add_column(p, "text"));
    for (const char *const *c = answer_columns(p->s); *c; c++)
        if (!is_gold(*c) || p->s->gold) VPPS_TRY(add_column(p, *c));
    return VPPS_OK;
}

/* Prints a table's first line: the input's or the first record's columns, then the columns that answers fill. Then prints the empty rows of
 * the records that could not be read before the columns were known. */
static vpps_status begin_table(answer_printer *p, const object *record) {
    VPPS_FREED char *names = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&names, &len);
    vpps_status status = find_columns(p, record);
    for (size_t i = 0; f && status == VPPS_OK && i < p->n_columns; i++)
        status = csv_write(f, p->columns[i], separator_before(p, i), p->form == OUTPUT_TSV);
    status = vpps_text_end(f, status, &names);
    if (status != VPPS_OK) {
        answer_printer_close(p);
        return status;
    }
    p->begun = true;
    if (!p->numbered) {
        fputs(names, stdout);
        end_line(p->crlf);
    }
    for (; p->empty; p->empty--) print_empty_row(p, p->crlf);
    return VPPS_OK;
}

/* Checks that each of the example's fields has a column. */
static vpps_status check_columns(const answer_printer *p, const object *record) {
    for (const vpps_json_value *v = NULL; (v = object_next(record, v));) {
        if (has_column(p, v->key)) continue;
        return vpps_fail(VPPS_FORMAT, "the field '%.40s' is none of the first record's, which are the table's columns",
                         v->key);
    }
    return VPPS_OK;
}

static vpps_status check_names(const object *record) {
    for (const vpps_json_value *v = NULL; (v = object_next(record, v));) {
        if (object_get(record, v->key) == v) continue;
        return vpps_fail(VPPS_FORMAT, "two fields have the name '%.40s'; a table has one column for it", v->key);
    }
    return VPPS_OK;
}

static vpps_status print_row(const answer_printer *p, const both *b, const asked *q, FILE *f) {
    for (size_t i = 0; i < p->n_columns; i++) {
        const char *name = p->columns[i], separator = separator_before(p, i);
        const bool gold = strcmp(name, "gold") == 0, tabs = p->form == OUTPUT_TSV;
        const object *of = &b->answer;
        const vpps_json_value *value = object_get(of, name);
        if (!value && !is_unanswered(p, b, name)) value = object_get(of = &b->record, name);
        if (!value && gold) value = object_get(of = &b->answer, "tags");
        const bool listed = of == &b->answer || fields_are_of(p->s, name);
        if (!q->fields && q->text && strcmp(name, "text") == 0) {
            VPPS_FREED char *text = answer_utf8(q->text, q->len);
            VPPS_TRY(text ? csv_write(f, text, separator, tabs) : vpps_fail(VPPS_MEMORY, "no memory for a field"));
        } else {
            VPPS_TRY(write_cell(f, of, value, gold ? "gold" : "label", listed, separator, tabs));
        }
    }
    return VPPS_OK;
}

static vpps_status print_table(answer_printer *p, const asked *q, const char *text, size_t len) {
    VPPS_CLOSED_BY(both_free) both b = {.answer.text = NULL};
    VPPS_FREED char *row = NULL;
    size_t row_len = 0;
    const bool named = p->fields && p->fields->names;
    if (p->fields && (!q->fields || (q->bad && !named))) { /* a record that could not be read has an empty row */
        if (!p->begun && !named) /* an unreadable record's empty row is printed once a good one tells the columns */
            return p->empty++, VPPS_OK;
        if (!p->begun) VPPS_TRY(begin_table(p, &(object){.text = NULL}));
        print_empty_row(p, q->crlf);
        return VPPS_OK;
    }
    VPPS_TRY(both_read(&b, q, text, len));
    VPPS_TRY(check_names(&b.record));
    if (!p->begun) VPPS_TRY(begin_table(p, &b.record));
    VPPS_TRY(check_columns(p, &b.record));
    FILE *f = open_memstream(&row, &row_len);
    VPPS_TRY(vpps_text_end(f, f ? print_row(p, &b, q, f) : VPPS_OK, &row));
    fputs(row, stdout);
    end_line(q->crlf);
    return VPPS_OK;
}

vpps_status answer_print_names(answer_printer *p) {
    const bool table = p->form == OUTPUT_CSV || p->form == OUTPUT_TSV;
    return table && !p->begun && p->fields && p->fields->names ? begin_table(p, &(object){.text = NULL}) : VPPS_OK;
}

vpps_status answer_print_end(answer_printer *p) { return p->empty ? begin_table(p, &(object){.text = NULL}) : VPPS_OK; }

/* ---------------------------------------------------------------- all forms */

vpps_status answer_print(answer_printer *p, const asked *q, const char *text, size_t len) {
    if (q->blank && !(p->lines || p->form == OUTPUT_COLUMNS)) return VPPS_OK;
    if (p->form == OUTPUT_JSONL) return print_json(p, q, text, len);
    if (p->form == OUTPUT_CSV || p->form == OUTPUT_TSV) return print_table(p, q, text, len);
    if (p->form == OUTPUT_COLUMNS && (text || (q->text && !q->blank))) {
        print_columns(p, q, text ? text : "", len);
        return VPPS_OK;
    }
    const bool own = task_for(p->s)->own_form, comments = own && !text && q->text && !q->bad;
    if (comments) {
        fwrite(q->text, 1, q->len, stdout);
        end_line(q->crlf);
    }
    if (text) fwrite(text, 1, len, stdout);
    /* what is printed in a task's own form (CoNLL-U, list of edges) ends its line itself; CoNLL-U gets a blank line after each sentence */
    if (!own || p->s->network->kind == NET_DEPENDENCIES || !(text || comments)) end_line(q->crlf);
    return VPPS_OK;
}
