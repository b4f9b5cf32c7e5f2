/* forms.h - finds the format of an exported program's input: from --input-format, the file's name, or its first line.
 * The program defines the macros READS(form): whether the network reads a format; LOOKS: whether a .tsv file may also
 * hold columns or labelled sentences; LABEL_NAMES, TEXT_NAMES: usual names of the fields with labels, with text. */
/* The formats of input. form_words are their names for --input-format. */
typedef enum form { ANY, PLAIN, TAGGED, COLUMNS, LABELLED, JSONL, CSV, TSV } form;
static const char *const form_words[] = {"auto", "text", "tagged", "columns", "labelled", "jsonl", "csv", "tsv"};

enum { MOST_NAMES = 8 };

/* The names that a record's field with the text, or with the labels, may have. */
static const char *text_names[MOST_NAMES] = {TEXT_NAMES}, *label_names[MOST_NAMES] = {LABEL_NAMES};

/* The cells of a table's row (CSV or TSV), or the names of its columns. */
typedef struct fields {
    /* at: the n cells; memory: their text; numbers: "1", "2", ... as names of unnamed columns */
    char **at, *memory, *numbers;
    size_t n;
} fields;

/* A reader of one input file. `names` are a table's column names, empty until the table's first row is read. */
typedef struct reader {
    form form;
    int numbered; /* the table has no row of names: its columns are numbered */
    fields names;
} reader;

static size_t number_in(char *const *list, size_t n, const char *name) {
    size_t i = 0;
    while (i < n && strcmp(list[i], name) != 0) i++;
    return i;
}

static int is_table(form f) { return f == CSV || f == TSV; }

/* Returns whether two texts are equal if case is ignored. */
static int is_alike(text t, const char *other) {
    int alike = t.len == strlen(other);
    for (size_t i = 0; alike && i < t.len; i++)
        alike = tolower((unsigned char)t.at[i]) == tolower((unsigned char)other[i]);
    return alike;
}

static form form_of_name(void) {
    static const struct {
        const char *ending;
        form form;
    } endings[] = {{".csv", CSV},       {".tsv", TSV},        {".jsonl", JSONL}, {".ndjson", JSONL},
                   {".conll", COLUMNS}, {".conllu", COLUMNS}, {".iob", COLUMNS}, {".bio", COLUMNS}};
    const text name = {place.name, place.name ? strlen(place.name) : 0};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t n = strlen(endings[i].ending);
        if (name.len > n && is_alike(after(name, name.len - n), endings[i].ending)) return endings[i].form;
    }
    return ANY;
}

/* Returns whether a text begins with these characters, possibly with white space before each. */
static int begins_with(text t, const char *characters) {
    t = unmarked(t);
    for (const char *c = characters; *c; c++) {
        while (t.len && vpps_is_space(*t.at)) t = after(t, 1);
        if (!t.len || *t.at != *c) return 0;
        t = after(t, 1);
    }
    return 1;
}

static fields split(text t, int tabs) {
    fields y = {NULL, room(t.len, 1), NULL, 0};
    char *at = y.memory;
    csv_split(t.at, t.len, tabs, at, &y.n);
    y.at = room(y.n, sizeof *y.at);
    for (size_t i = 0; i < y.n; at += strlen(at) + 1) y.at[i++] = at;
    return y;
}

static void drop_fields(fields *y) {
    free((void *)y->at);
    free(y->memory);
    free(y->numbers);
    *y = (fields){NULL, NULL, NULL, 0};
}

static int has_one(const fields *y, const char *const *wanted) {
    for (; *wanted; wanted++)
        if (number_in(y->at, y->n, *wanted) < y->n) return 1;
    return 0;
}

/* Returns whether the first line of TSV names a column with text and a column with labels. */
static int begins_with_names(input in) {
    if (!next_line(&in)) return 0;
    char *line = copy(in.line);
    int named = vpps_is_utf8(line);
    free(line);
    if (!named) return 0;
    fields y = split(in.line, 1);
    named = has_one(&y, text_names) && has_one(&y, label_names);
    drop_fields(&y);
    return named;
}

/* Finds the format of input that is neither JSON nor a table, or returns ANY; each kind of network has its own `look`.
 * `wanted`: the format that the user asks for, or ANY. `sure`: it is no table, so that `look` may report errors. */
static form look(input first, form wanted, int sure);

static form find_form(input in) {
    const input first = first_lines(in);
    size_t k = number_in((char *const *)(size_t)form_words, sizeof form_words / sizeof *form_words,
                         asked.input_format ? asked.input_format : "auto");
    if (k > TSV) stop("--input-format=auto, text, tagged, columns, labelled, jsonl, csv or tsv");
    form found = (form)k;
    if (!found) found = form_of_name();
    if (!READS(found)) stop_with("the network does not read %s", form_words[found]);
    if (found == TSV && !k && LOOKS && !begins_with_names(first)) {
        const form lines = look(first, ANY, 0);
        if (lines == LABELLED || lines == COLUMNS) found = ANY;
    }
    if ((found == ANY || found == JSONL) && begins_with(first.left, "[{\""))
        stop("objects, one a line, found an array");
    if (found == ANY && (begins_with(first.left, "{\"") || begins_with(first.left, "{}"))) found = JSONL;
    return found < JSONL ? look(first, found, 1) : found;
}

static reader begin_reader(input *in) {
    const char *field = asked.text_field;
    if (field) text_names[0] = field, text_names[1] = NULL;
    if (asked.label_field) label_names[0] = asked.label_field, label_names[1] = NULL;
    reader r = {find_form(*in), field && *field && !field[strspn(field, "0123456789")], {NULL, NULL, NULL, 0}};
    in->raw = r.form >= JSONL;
    return r;
}
