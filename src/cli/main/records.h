/* records.h - an exported program's input and output as lines, JSON objects, or rows of tables (CSV, TSV). The program
 * defines ANSWER_NAMES: names of the answer's fields, all printed in a JSON object, the first two in a row; CELLS: only
 * the first CELLS of the names may be names of an input table's columns; UNANSWERED(i): whether an input's field named as answer field i
 * is emptied if there is no answer; put_value and put_cell, which print an answer's field. */
typedef struct answer answer;
static void put_value(const answer *a, size_t i);
static void put_cell(const answer *a, size_t i, char separator, int tabs);

static const char *const answer_names[] = {ANSWER_NAMES};
enum { ANSWERS = sizeof answer_names / sizeof *answer_names, ADDED = 2 /* number of answer fields in a table's row */ };

/* One example of the input: a line, its JSON object, or a table's row. */
typedef struct example {
    text line;
    size_t number; /* number of the example's first line in the input */
    const char *end;
    int blank;
    vpps_json json;
    fields row;
} example;

/* The column names of the printed table; empty before the first row. `table_end` is the line end of the line of names. */
static fields columns_out;
static const char *table_end;

static size_t number_of_answer(const char *name) {
    return number_in((char *const *)(size_t)answer_names, ANSWERS, name);
}

static char separator_of(const reader *r) { return r->form == TSV ? '\t' : ','; }

static void check_once(const fields *y, const char *const *wanted) {
    size_t times = 0;
    for (; *wanted && !times; wanted++)
        for (size_t i = 0; i < y->n; i++) times += strcmp(y->at[i], *wanted) == 0;
    if (times > 1) stop_with("expected one field '%.40s', found %lu", wanted[-1], (unsigned long)times);
}

/* Names a table's columns that have no name, or all columns, by their numbers. */
static void number_fields(fields *y, int all) {
    enum { MOST = 24 };
    char *at = y->numbers = room(y->n, MOST);
    for (size_t i = 0; i < y->n; i++, at += MOST) {
        sprintf(at, "%lu", (unsigned long)i + 1);
        if (all || !*y->at[i]) y->at[i] = at;
    }
}

static void take_names(reader *r, text line) {
    fields *y = &r->names;
    size_t unnamed = 0;
    *y = split(line, r->form == TSV);
    if (y->n == 1 && strpbrk(y->at[0], r->form == TSV ? ",;" : ";\t"))
        stop_with("expected %s between fields: '%.80s'", r->form == TSV ? "tabs" : "commas", y->at[0]);
    check_once(y, text_names);
    check_once(y, label_names);
    for (size_t i = 0; i < y->n; i++) unnamed += !*y->at[i];
    if (unnamed > 1) number_fields(y, 0);
    for (size_t i = 0; i < y->n; i++) {
        if (number_in(y->at, i, y->at[i]) < i) stop_with("two fields have the name '%.40s'; expected one", y->at[i]);
        if (r->form == TSV && strchr(y->at[i], '\r')) stop("LF after CR, found CR alone");
        const size_t k = number_of_answer(y->at[i]);
        if (k >= CELLS && k < ANSWERS)
            stop_with("expected no field '%s' in a table, since an answer in JSON has it", y->at[i]);
    }
}

static void read_row(reader *r, example *x) {
    x->row = split(x->line, r->form == TSV);
    const size_t n = r->names.n;
    if (!r->numbered && x->row.n != n)
        stop_with("expected %lu field%s, as there are names, found %lu", (unsigned long)n, n == 1 ? "" : "s",
                  (unsigned long)x->row.n);
    if (!r->numbered || x->row.n <= n) return;
    drop_fields(&r->names);
    r->names.n = x->row.n;
    r->names.at = room(x->row.n, sizeof *r->names.at);
    number_fields(&r->names, 1);
}

/* Reads the next line, object or row; a row's quoted cells may contain line ends. Returns 0 at the input's end. */
static int next_example(input *in, reader *r, example *x) {
    vpps_json_error error;
    memset(x, 0, sizeof *x);
    while (next_line(in)) {
        csv_state state = CSV_BEGIN;
        const char *begin = in->line.at;
        x->number = in->number;
        while (r->form == CSV && csv_goes_on(&state, in->line.at, in->line.len) && next_line(in)) {}
        place.line = x->number;
        x->line = (text){begin, (size_t)(in->line.at + in->line.len - begin)};
        x->end = in->end;
        x->blank = !is_table(r->form) && !trim(x->line).len;
        if (x->number == 1 && !columns_out.n) table_end = in->end;
        if (is_table(r->form) && !x->line.len && (r->numbered || r->names.n != 1)) continue;
        if (is_table(r->form) && !r->numbered && !r->names.n) {
            take_names(r, x->line);
            continue;
        }
        if (is_table(r->form)) read_row(r, x);
        if (r->form != JSONL || x->blank) return 1;
        if (!vpps_json_parse_foreign(&x->json, x->line.at, x->line.len, &error)) stop(error.expected);
        if (x->json.values->kind != VPPS_JSON_OBJECT) stop("an object of JSON");
        return 1;
    }
    return 0;
}

static void drop_example(example *x) {
    drop_fields(&x->row);
    vpps_json_free(&x->json);
}

static void lack_text(void) { stop_with("expected a field '%.40s'", asked.text_field ? asked.text_field : TEXT_NAME); }

/* Returns the text in a table's row: the cell of the first column that is named as one of text_names. */
static char *cell_of(const reader *r, const example *x) {
    for (const char *const *name = text_names; *name; name++) {
        const size_t i = number_in(r->names.at, x->row.n, *name);
        if (i < x->row.n) return x->row.at[i];
    }
    if (asked.text_field || x->row.n != 1) lack_text();
    return x->row.at[0];
}

/* Returns the member of a JSON object with the text to process. */
static const vpps_json_value *value_in(const vpps_json *json) {
    const vpps_json_value *found = NULL;
    for (const char *const *name = text_names; *name && !found; name++) {
        found = vpps_json_get(json, json->values, *name);
        for (const vpps_json_value *v = found; v && (v = vpps_json_next(json, json->values, v));)
            if (strcmp(v->key, *name) == 0) stop("one field with the text, found two");
    }
    if (!found && json->values->n == 1 && !asked.text_field) found = vpps_json_next(json, json->values, NULL);
    if (!found) lack_text();
    return found;
}

/* Replaces each white space character by a space. */
static text flat(char *t) {
    for (char *c = t; *c; c++) *c = vpps_is_space(*c) ? ' ' : *c;
    return (text){t, strlen(t)};
}
static text flat_value(const vpps_json_value *v) {
    if (v->kind != VPPS_JSON_STRING) stop("a text, or a list of words");
    return flat((char *)(size_t)v->string);
}

/* ---------------------------------------------------------------- printing */

/* Prints the JSON object with the answer's fields: each replaces the field of its name, or follows all others. `a` may be NULL. */
static void put_object(const example *x, const answer *a) {
    const vpps_json *json = &x->json;
    const char *comma = "{";
    for (const vpps_json_value *v = NULL; (v = vpps_json_next(json, json->values, v));) {
        const size_t i = number_of_answer(v->key);
        const int ours = i < ANSWERS && (a || UNANSWERED(i));
        if (ours && vpps_json_get(json, json->values, v->key) != v) continue; /* a repeated name is printed once */
        fputs(comma, stdout);
        comma = ",";
        put((text){x->line.at + v->key_begin, v->key_end - v->key_begin});
        putchar(':');
        if (ours && a)
            put_value(a, i);
        else if (ours)
            fputs("null", stdout);
        else
            put((text){x->line.at + v->begin, v->end - v->begin});
    }
    for (size_t i = 0; a && i < ANSWERS; i++) {
        if (vpps_json_get(json, json->values, answer_names[i])) continue;
        printf("%s\"%s\":", comma, answer_names[i]);
        comma = ",";
        put_value(a, i);
    }
    fputs(*comma == '{' ? "{}" : "}", stdout);
}

/* Prints the table's first line: the names of the input's n columns, then of answer fields that are not among them. */
static void begin_table(const reader *r, size_t n) {
    columns_out.at = room(n + ADDED, sizeof *columns_out.at);
    for (size_t i = 0; i < n + ADDED; i++) {
        const char *name = i < n ? r->names.at[i] : answer_names[i - n];
        if (number_in(columns_out.at, columns_out.n, name) < columns_out.n) continue;
        columns_out.at[columns_out.n] = copy((text){name, strlen(name)});
        if (!r->numbered) csv_write(stdout, name, columns_out.n ? separator_of(r) : 0, r->form == TSV);
        columns_out.n++;
    }
    if (!r->numbered) fputs(table_end, stdout);
}

static void put_row(const reader *r, const example *x, const answer *a) {
    const fields *row = &x->row;
    place.line = x->number;
    if (!columns_out.n) begin_table(r, row->n);
    for (size_t i = 0; i < row->n; i++) {
        const char *name = r->names.at[i];
        if (number_in(columns_out.at, columns_out.n, name) == columns_out.n)
            stop_with("the field '%.40s' is none of the first record's, which are the table's columns", name);
        if (r->form == TSV && !(a && number_of_answer(name) < ANSWERS) && strchr(row->at[i], '\r'))
            stop_with("the field '%.40s' holds a line end, which TSV cannot", name);
    }
    for (size_t c = 0; c < columns_out.n; c++) {
        const size_t i = number_in(r->names.at, row->n, columns_out.at[c]), k = number_of_answer(columns_out.at[c]);
        const char separator = c ? separator_of(r) : 0;
        const int theirs = i < row->n && (k == ANSWERS || !UNANSWERED(k));
        if (a && k < ANSWERS)
            put_cell(a, k, separator, r->form == TSV);
        else
            csv_write(stdout, theirs ? row->at[i] : "", separator, r->form == TSV);
    }
}

static void put_record(const reader *r, const example *x, const answer *a) {
    if (r->form == JSONL)
        put_object(x, a);
    else
        put_row(r, x, a);
}

/* Frees the reader. Prints the column names if the table has no rows. */
static void end_reader(reader *r) {
    if (!columns_out.n && r->names.n && !r->numbered) begin_table(r, r->names.n);
    drop_fields(&r->names);
}
