/* answer_print.c - see answer_print.h. */
#include "cli/answer_print.h"
#include "base/base.h"
#include "cli/fields.h"
#include "cli/task.h"

vpps_status answers_set_form(answers *a, answer_printer *p, const settings *s, input_form form) {
    output_form out = s->json ? OUTPUT_JSONL : (output_form)s->output_format;
    if (out == OUTPUT_AUTO) {
        out = form == INPUT_COLUMNS ? OUTPUT_COLUMNS
              : form == INPUT_JSONL ? OUTPUT_JSONL
              : form == INPUT_CSV   ? OUTPUT_CSV
              : form == INPUT_TSV   ? OUTPUT_TSV
                                    : OUTPUT_TEXT;
    }
    if (out == OUTPUT_COLUMNS && !net_tags(s->network->kind)) {
        return vpps_fail(VPPS_ARGUMENT, "%s does not tag words: it prints no columns (--output-format)",
                         s->network->name);
    }
    if (s->gold && task_for(s)->paired && out == OUTPUT_TEXT) {
        return vpps_fail(VPPS_ARGUMENT,
                         "--gold: lines of translations do not say how likely a target is; expected --output-format "
                         "jsonl, csv or tsv");
    }
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

/* ---------------------------------------------------------------- columns */

/* A row of tags_answer, "LINE<TAB>TAG<TAB>GOLD<TAB>WORD". */
typedef struct tag_row {
    uint32_t line;
    const char *part[3];
    int len[3];
} tag_row;

enum { TAG, GOLD, WORD };

/* The next row in *at .. end; false: there is none. */
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

/* A line of columns with the network's tag in the place of its own, or after all. */
static void print_tagged_line(const answer_printer *p, const asked *q, const char *line, size_t len,
                              const tag_row *row) {
    const char *column = NULL;
    size_t n = 0;
    const bool keeps = q->keeps_tags || p->s->gold || !q->tag_column ||
                       !vpps_columns_find(q->separator, line, len, q->tag_column, &column, &n);
    if (keeps) {
        const bool tabs = q->separator == '\t' || memchr(line, '\t', len);
        printf("%.*s%c%.*s\n", (int)len, line, tabs ? '\t' : ' ', row->len[TAG], row->part[TAG]);
        return;
    }
    const char *after = column + n;
    printf("%.*s%.*s%.*s\n", (int)(column - line), line, row->len[TAG], row->part[TAG], (int)(line + len - after),
           after);
}

/* The lines as they were read, with other tags; lines without a word stay. */
static void print_same_columns(const answer_printer *p, const asked *q, const char *text, size_t text_len) {
    const char *end = text + text_len, *line = q->text, *stop = q->text + q->len;
    tag_row row;
    bool has_row = next_row(&text, end, &row);
    for (uint32_t number = 1 + q->lines_before;; number++) {
        const char *lf = memchr(line, '\n', (size_t)(stop - line));
        const size_t len = (size_t)((lf ? lf : stop) - line);
        if (has_row && row.line == number) {
            print_tagged_line(p, q, line, len, &row);
            has_row = next_row(&text, end, &row);
        } else {
            printf("%.*s\n", (int)len, line);
        }
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

/* Is the key one of the text's own labels? */
static bool is_gold(const char *name) { return strncmp(name, "gold", 4) == 0; }

/* The members of a network's answer, as columns of a table. */
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

/* The example's fields with those of the answer in them, to be freed; NULL: no memory. Without an answer, fields of its names are
 * null: what the input had there is no answer. */
static json_t *merge(const answer_printer *p, const asked *q, const char *text, size_t len) {
    json_t *o = q->fields ? json_copy(q->fields) : json_object();
    json_auto_t *answer = text ? json_loadb(text, len, 0, NULL) : NULL;
    if (o && answer) json_object_update(o, answer);
    for (const char *const *c = answer_columns(p->s); o && !text && *c; c++) {
        if (strcmp(*c, "words") != 0 && !is_gold(*c) && json_object_get(o, *c)) json_object_set_new(o, *c, json_null());
    }
    return o;
}

static vpps_status print_json(const answer_printer *p, const asked *q, const char *text, size_t len) {
    if (!q->fields) {
        if (text) fwrite(text, 1, len, stdout);
        putchar('\n');
        return VPPS_OK;
    }
    json_auto_t *o = merge(p, q, text, len);
    char *line = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    if (!line) return vpps_fail(VPPS_MEMORY, "no memory for a line of JSON");
    puts(line);
    free(line);
    return VPPS_OK;
}

/* One of a list's values as text: a word, or a tag's label. */
static const char *item_text(const json_t *item, const char *key) {
    const json_t *value = json_is_object(item) ? json_object_get(item, key) : item;
    return json_is_string(value) ? json_string_value(value) : "_";
}

/* A value as a field: a list of words or tags with spaces between. Objects have none. */
static vpps_status write_cell(FILE *f, const json_t *value, const char *key, char separator, bool tabs) {
    VPPS_FREED char *joined = NULL;
    char number[64] = "";
    size_t len = 0;
    const char *text = number;
    if (json_is_string(value)) text = json_string_value(value);
    if (json_is_integer(value)) snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) snprintf(number, sizeof number, "%.6g", json_real_value(value));
    if (json_is_boolean(value)) text = json_is_true(value) ? "true" : "false";
    if (json_is_array(value)) {
        FILE *list = open_memstream(&joined, &len);
        if (!list) return vpps_fail(VPPS_MEMORY, "no memory for a field");
        for (size_t i = 0; i < json_array_size(value); i++)
            fprintf(list, "%s%s", i ? " " : "", item_text(json_array_get(value, i), key));
        if (fclose(list) != 0) return vpps_fail(VPPS_MEMORY, "no memory for a field");
        text = joined;
    }
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

/* The table's columns are the first record's fields, and what answers have. */
static vpps_status begin_table(answer_printer *p, const json_t *fields, bool tabs) {
    const char *key;
    json_t *value;
    p->begun = true;
    json_object_foreach((json_t *)(uintptr_t)fields, key, value) VPPS_TRY(add_column(p, key)); /* it is only read */
    if (!fields && !net_tags(p->s->network->kind)) VPPS_TRY(add_column(p, "text"));
    for (const char *const *c = answer_columns(p->s); *c; c++) {
        if (!is_gold(*c) || p->s->gold) VPPS_TRY(add_column(p, *c));
    }
    if (p->numbered) return VPPS_OK;
    for (size_t i = 0; i < p->n_columns; i++) {
        VPPS_TRY(csv_write(stdout, p->columns[i], i == 0 ? 0 : tabs ? '\t' : ',', tabs));
    }
    putchar('\n');
    return VPPS_OK;
}

/* Is everything that the example has in a column? */
static vpps_status check_columns(const answer_printer *p, const json_t *fields) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)fields, key, value) {
        if (has_column(p, key)) continue;
        return vpps_fail(VPPS_FORMAT, "the field '%.40s' is none of the first record's, which are the table's columns",
                         key);
    }
    return VPPS_OK;
}

static vpps_status print_table(answer_printer *p, const asked *q, const char *text, size_t len) {
    const bool tabs = p->form == OUTPUT_TSV;
    if (!p->begun) VPPS_TRY(begin_table(p, q->fields, tabs));
    VPPS_TRY(check_columns(p, q->fields));
    json_auto_t *o = merge(p, q, text, len);
    if (!o) return vpps_fail(VPPS_MEMORY, "no memory for a row");
    if (!q->fields && q->text) json_object_set_new(o, "text", answer_text(q->text, q->len));
    VPPS_FREED char *row = NULL;
    size_t row_len = 0;
    FILE *f = open_memstream(&row, &row_len);
    vpps_status status = f ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a row");
    for (size_t i = 0; i < p->n_columns && status == VPPS_OK; i++) {
        const char *name = p->columns[i];
        const bool gold = strcmp(name, "gold") == 0;
        const json_t *value = json_object_get(o, name);
        if (gold && !value) value = json_object_get(o, "tags");
        status = write_cell(f, value, gold ? "gold" : "label", i == 0 ? 0 : tabs ? '\t' : ',', tabs);
    }
    if (f && fclose(f) != 0 && status == VPPS_OK) status = vpps_fail(VPPS_MEMORY, "no memory for a row");
    if (status == VPPS_OK) printf("%s\n", row);
    return status;
}

/* ---------------------------------------------------------------- all forms */

vpps_status answer_print(answer_printer *p, const asked *q, const char *text, size_t len) {
    if (q->blank && !(p->lines || p->form == OUTPUT_COLUMNS)) return VPPS_OK;
    switch (p->form) {
    case OUTPUT_COLUMNS:
        if (text || (q->text && !q->blank)) {
            print_columns(p, q, text ? text : "", len);
        } else {
            putchar('\n');
        }
        return VPPS_OK;
    case OUTPUT_JSONL: return print_json(p, q, text, len);
    case OUTPUT_CSV:
    case OUTPUT_TSV: return q->blank ? VPPS_OK : print_table(p, q, text, len);
    default:
        if (text) fwrite(text, 1, len, stdout);
        putchar('\n');
        return VPPS_OK;
    }
}
