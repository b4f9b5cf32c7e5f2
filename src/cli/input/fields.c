/* fields.c - reads examples from the fields of records. */
#include "cli/input/fields.h"
#include "base/base.h"
#include "cli/common/lists.h"
#include "cli/input/tokenize.h"
#include "io/json.h"

#include <ctype.h>

static bool is_pair(net_kind kind) { return kind == NET_PAIRS || kind == NET_LATTICE_PAIRS; }

bool fields_numbered(const settings *s) {
    return s->text_field && *s->text_field && !s->text_field[strspn(s->text_field, "0123456789")];
}

void fields_begin(field_reader *r, const settings *s, input_form form, input_reading *in) {
    *r = (field_reader){
        .s = s, .form = form, .labels = s->command != COMMAND_PREDICT || (s->gold && is_pair(s->network->kind))};
    *in = (input_reading){.form = READ_LINES};
    if (s->network->kind == NET_SENTENCES) in->form = READ_LABELLED;
    if (net_tags(s->network->kind))
        *in = (input_reading){.form = READ_COLUMNS, .records = true, .columns = {.word = 1, .tag = 2, .tabs = true}};
}

void fields_close(field_reader *r) {
    json_decref(r->names);
    r->names = NULL;
}

/* ---------------------------------------------------------------- names */

const char *const *fields_text_names(net_kind kind) {
    static const char *const of_tags[] = {"words", "tokens", "text", "sentence", NULL},
                             *const of_trees[] = {"tree", "text", NULL},
                             *const of_pairs[] = {"source", "text", "sentence", NULL},
                             *const others[] = {"text", "sentence", NULL};
    return net_tags(kind) ? of_tags : kind == NET_TREES ? of_trees : is_pair(kind) ? of_pairs : others;
}

/* Returns the default names of the field with the labels; NULL: labels are in the text. */
static const char *const *usual_labels(net_kind kind) {
    static const char *const of_tags[] = {"gold", "tags", "labels", NULL},
                             *const of_pairs[] = {"target", "translation", NULL},
                             *const of_sentences[] = {"gold", "label", NULL};
    return net_tags(kind) ? of_tags : is_pair(kind) ? of_pairs : kind == NET_SENTENCES ? of_sentences : NULL;
}

static const char *text_name(const settings *s) {
    const net_kind kind = s->network->kind;
    return s->text_field ? s->text_field : kind == NET_TREES ? "tree" : is_pair(kind) ? "source" : "text";
}

static const char *label_name(const settings *s) {
    const net_kind kind = s->network->kind;
    return s->label_field ? s->label_field : net_tags(kind) ? "tags" : is_pair(kind) ? "target" : "label";
}

static const json_t *find(const json_t *object, const char *given, const char *const *usual, const char **name) {
    for (const char *const one[] = {given, NULL}, *const *n = given ? one : usual; *n; n++) {
        const json_t *value = json_object_get(object, *n);
        *name = *n;
        if (value) return value;
    }
    return NULL;
}

/* Returns how many elements of `names`, a record's field names, are `name`. */
static size_t times_in(const json_t *names, const char *name) {
    size_t times = 0;
    for (size_t i = 0; i < json_array_size(names); i++)
        times += strcmp(json_string_value(json_array_get(names, i)), name) == 0;
    return times;
}

static bool has_name(const json_t *names, const char *given, const char *const *usual) {
    for (const char *const one[] = {given, NULL}, *const *n = given ? one : usual; n && *n; n++)
        if (times_in(names, *n)) return true;
    return !given && !usual;
}

static bool has_names(const settings *s, const json_t *names) {
    const net_kind kind = s->network->kind;
    return has_name(names, s->text_field, fields_text_names(kind)) &&
           has_name(names, s->label_field, usual_labels(kind));
}

/* Appends n strings that lie one after the other, each ended by a NUL, to an array, which is released on failure. */
static vpps_status take_strings(json_t **array, const char *strings, size_t n) {
    bool good = *array != NULL;
    for (; n && good; n--, strings += strlen(strings) + 1)
        good = json_array_append_new(*array, json_string(strings)) == 0;
    if (good) return VPPS_OK;
    json_decref(*array);
    *array = NULL;
    return vpps_fail(VPPS_MEMORY, "no memory for a record");
}

/* Sets *fields to an array of a table's fields, which the caller frees. */
static vpps_status split(const char *text, size_t len, bool tabs, json_t **fields) {
    size_t n;
    VPPS_FREED char *all = vpps_scratch(len + 1);
    if (!all) return vpps_fail(VPPS_MEMORY, "no memory for a record");
    VPPS_TRY(csv_split(text, len, tabs, all, &n));
    *fields = json_array();
    return take_strings(fields, all, n);
}

bool fields_begin_with_names(const settings *s, const vpps_text *t) {
    json_auto_t *names = NULL;
    vpps_line line = {0};
    return vpps_text_next_line(t, &line) &&
           split(line.begin, (size_t)(line.end - line.begin), true, &names) == VPPS_OK && has_names(s, names);
}

bool fields_want_names(const field_reader *r) { return r->form != INPUT_JSONL && !r->names && !fields_numbered(r->s); }

/* If several columns have empty names, as in spreadsheets, names these columns by their numbers. */
static vpps_status name_unnamed(json_t *names) {
    if (times_in(names, "") < 2) return VPPS_OK;
    for (size_t i = 0; i < json_array_size(names); i++) {
        if (*json_string_value(json_array_get(names, i))) continue;
        if (json_array_set_new(names, i, json_sprintf("%zu", i + 1)))
            return vpps_fail(VPPS_MEMORY, "no memory for the names of fields");
    }
    return VPPS_OK;
}

/* Checks that names are unique, since predict prints all fields by their names. */
static vpps_status check_all_once(const json_t *names) {
    json_auto_t *found = json_object();
    if (!found) return vpps_fail(VPPS_MEMORY, "no memory for the names of fields");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (json_object_get(found, name))
            return vpps_fail(VPPS_FORMAT, "two fields have the name '%.40s'; expected one", name);
        json_object_set_new(found, name, json_null());
    }
    return VPPS_OK;
}

/* Checks that the field to read has a unique name: `given` by an option, else the first of `usual` that the record has. */
static vpps_status check_once(const json_t *names, const char *given, const char *const *usual) {
    for (const char *const one[] = {given, NULL}, *const *n = given ? one : usual; n && *n; n++) {
        const size_t times = times_in(names, *n);
        if (times > 1) return vpps_fail(VPPS_FORMAT, "expected one field '%.40s', found %zu", *n, times);
        if (times) break;
    }
    return VPPS_OK;
}

static bool is_one(const char *name, const char *given, const char *const *usual) {
    for (const char *const one[] = {given, NULL}, *const *n = given ? one : usual; n && *n; n++)
        if (strcmp(*n, name) == 0) return true;
    return false;
}

bool fields_are_of(const settings *s, const char *name) {
    return is_one(name, s->text_field, fields_text_names(s->network->kind)) ||
           is_one(name, s->label_field, usual_labels(s->network->kind));
}

/* Refuses a CSV file whose only field holds semicolons or tabs, as some spreadsheets write it. */
static vpps_status check_separator(const json_t *names, bool tabs) {
    const char *name = json_string_value(json_array_get(names, 0)), *other = strpbrk(name, tabs ? ",;" : ";\t");
    if (json_array_size(names) != 1 || !other) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "expected %s between fields, found %s: '%.80s'", tabs ? "tabs" : "commas",
                     *other == '\t'  ? "tabs"
                     : *other == ';' ? "semicolons"
                                     : "commas",
                     name);
}

vpps_status fields_take_names(field_reader *r, const char *text, size_t len) {
    char found[200] = "", wanted[120];
    VPPS_TRY(split(text, len, r->form == INPUT_TSV, &r->names));
    VPPS_TRY(check_separator(r->names, r->form == INPUT_TSV));
    VPPS_TRY(check_once(r->names, r->s->text_field, fields_text_names(r->s->network->kind)));
    VPPS_TRY(check_once(r->names, r->s->label_field, usual_labels(r->s->network->kind)));
    if (r->s->command == COMMAND_PREDICT) VPPS_TRY(name_unnamed(r->names));
    if (r->s->command == COMMAND_PREDICT) VPPS_TRY(check_all_once(r->names));
    if (!r->labels || has_names(r->s, r->names)) return VPPS_OK;
    for (size_t i = 0, at = 0; i < json_array_size(r->names) && at < sizeof found; i++)
        at += (size_t)snprintf(found + at, sizeof found - at, "%s%s", i ? ", " : "",
                               json_string_value(json_array_get(r->names, i)));
    const bool labelled = usual_labels(r->s->network->kind) != NULL;
    snprintf(wanted, sizeof wanted, labelled ? "'%.40s' and '%.40s'" : "'%.40s'", text_name(r->s), label_name(r->s));
    return vpps_fail(VPPS_FORMAT,
                     "expected names of fields with %s, found %s: --text-field%s tell%s others, or numbers", wanted,
                     found, labelled ? " and --label-field" : "", labelled ? "" : "s");
}

/* ---------------------------------------------------------------- a record */

/* Converts a JSON value to a value of the library jansson. A number beyond jansson's range becomes text; any other value that jansson
 * refuses becomes null. */
static json_t *value_of(const vpps_json_value *v, const char *text) {
    const size_t n = v->end - v->begin;
    json_t *value = json_loadb(text + v->begin, n, JSON_DECODE_ANY, NULL);
    if (value) return value;
    const bool number = strchr("-0123456789", text[v->begin]) != NULL;
    return number ? json_stringn(text + v->begin, n) : json_null();
}

/* Copies the members of a record to an object; of several members with the same name, copies the first. */
static vpps_status take_members(const field_reader *r, const vpps_json *json, const char *text, json_t *object) {
    json_auto_t *names = json_array();
    for (const vpps_json_value *v = NULL; (v = vpps_json_next(json, json->values, v));) {
        json_array_append_new(names, json_string(v->key));
        if (json_object_get(object, v->key)) continue;
        if (json_object_set_new(object, v->key, value_of(v, text)) != 0)
            return vpps_fail(VPPS_MEMORY, "no memory for a record");
    }
    VPPS_TRY(check_once(names, r->s->text_field, fields_text_names(r->s->network->kind)));
    if (!r->labels && !r->s->gold) return VPPS_OK;
    return check_once(names, r->s->label_field, usual_labels(r->s->network->kind));
}

static vpps_status read_object(const field_reader *r, const char *text, size_t len, json_t **object) {
    vpps_json json;
    vpps_json_error error;
    if (!vpps_json_parse_foreign(&json, text, len, &error))
        return error.memory ? vpps_fail(VPPS_MEMORY, "no memory for a record")
                            : vpps_fail(VPPS_FORMAT, "byte %u: not JSON: expected %s", error.column, error.expected);
    *object = json_object();
    const bool is_object = json.values->kind == VPPS_JSON_OBJECT;
    const vpps_status status =
        is_object ? take_members(r, &json, text, *object) : vpps_fail(VPPS_FORMAT, "expected a JSON object");
    vpps_json_free(&json);
    if (status == VPPS_OK) return VPPS_OK;
    json_decref(*object);
    *object = NULL;
    return status;
}

vpps_status fields_read(const field_reader *r, const char *text, size_t len, json_t **object) {
    *object = NULL;
    if (r->form == INPUT_JSONL) return read_object(r, text, len, object);
    json_auto_t *fields = NULL;
    VPPS_TRY(split(text, len, r->form == INPUT_TSV, &fields));
    const size_t n = json_array_size(fields), expected = r->names ? json_array_size(r->names) : n;
    if (n != expected)
        return vpps_fail(VPPS_FORMAT, "expected %zu field%s, as there are names, found %zu", expected,
                         expected == 1 ? "" : "s", n);
    *object = json_object();
    for (size_t i = 0; *object && i < n; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        json_object_set(*object, r->names ? json_string_value(json_array_get(r->names, i)) : number,
                        json_array_get(fields, i));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the text of an example */

static vpps_status fail_missing(const json_t *object, const char *wanted, const char *option) {
    char found[200] = "";
    const char *key, *more = "";
    json_t *value;
    size_t len = 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) { /* jansson's macro wants an object without const */
        if (len < sizeof found) len += (size_t)snprintf(found + len, sizeof found - len, "%s%s", more, key);
        more = ", ";
    }
    return vpps_fail(VPPS_FORMAT, "expected a field '%.40s', found %s: --%s tells another name", wanted, found, option);
}

/* Replaces a table's cell that holds a list as text by the list. */
static vpps_status take_list(const field_reader *r, json_t *object, const char *name, const json_t **value) {
    const char *text = fields_are_table(r->form) ? json_string_value(*value) : NULL;
    VPPS_FREED char *items = text ? vpps_scratch(strlen(text) + 1) : NULL;
    bool cut = false;
    size_t n;
    if (text && !items) return vpps_fail(VPPS_MEMORY, "no memory for a record");
    const bool listed = text && list_of_text(text, items, &n, &cut);
    if (cut)
        return vpps_fail(VPPS_FORMAT,
                         "%.40s: expected a list, found one with \"...\": NumPy left items out when it was "
                         "written; lists of Python (.tolist()) are whole",
                         name);
    if (!listed) return VPPS_OK;
    json_t *list = json_array();
    VPPS_TRY(take_strings(&list, items, n));
    *value = list;
    return json_object_set_new(object, name, list) == 0 ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a record");
}

static vpps_status find_text(const field_reader *r, json_t *object, const json_t **value, const char **name) {
    *value = find(object, r->s->text_field, fields_text_names(r->s->network->kind), name);
    if (!*value && !r->s->text_field && json_object_size(object) == 1) {
        *name = json_object_iter_key(json_object_iter(object));
        *value = json_object_get(object, *name);
    }
    if (!*value) return fail_missing(object, text_name(r->s), "text-field");
    return r->s->network->kind == NET_TREES ? VPPS_OK : take_list(r, object, *name, value);
}

/* Finds an example's label. *value becomes NULL if there is no label and none is needed. */
static vpps_status find_label(const field_reader *r, json_t *object, const json_t **value, const char **name) {
    const net_kind kind = r->s->network->kind;
    *value = find(object, r->s->label_field, usual_labels(kind), name);
    if (*value) return net_tags(kind) || is_pair(kind) ? take_list(r, object, *name, value) : VPPS_OK;
    if (!r->labels) return VPPS_OK;
    return fail_missing(object, label_name(r->s), "label-field");
}

static bool is_blank(const char *text) { return text && !text[strspn(text, " \t\r\n\v\f")]; }

/* Writes text with each white space byte as a space. */
static void put_flat(FILE *f, const char *text) {
    for (; *text; text++) fputc(vpps_is_space(*text) ? ' ' : *text, f);
}

/* Returns a string, integer or truth value as text; NULL: the value has another type, or is a blank string. */
static const char *scalar(const json_t *value, char *room, size_t n) {
    const char *text = json_string_value(value);
    if (text) return is_blank(text) ? NULL : text;
    if (json_is_integer(value))
        snprintf(room, n, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_boolean(value))
        snprintf(room, n, "%s", json_is_true(value) ? "true" : "false");
    else
        return NULL;
    return room;
}

/* Reads the words of a text or of an array as an array of strings, which the caller frees. */
static vpps_status read_words(const field_reader *r, const json_t *value, const char *name, json_t **words) {
    *words = json_array();
    if (!*words) return vpps_fail(VPPS_MEMORY, "no memory for words");
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *word = json_array_get(value, i);
        if (!json_is_string(word))
            return vpps_fail(VPPS_FORMAT, "%.40s: expected words, found something else as word %zu", name, i + 1);
        json_array_append(*words, word);
    }
    if (json_is_array(value)) return VPPS_OK;
    if (!json_is_string(value)) return vpps_fail(VPPS_FORMAT, "%.40s: expected a text, or a list of words", name);
    const bool characters = r->s->network->kind == NET_LATTICES;
    VPPS_FREED char *text = tokenize_field(r->s, json_string_value(value));
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for words");
    for (size_t at = 0, n; text[at]; at += n) {
        n = characters ? vpps_utf8_character(text + at, strlen(text + at)) : strcspn(text + at, " \t\v\f\r\n");
        if (characters && vpps_is_space(text[at])) continue;
        if (n)
            json_array_append_new(*words, json_stringn(text + at, n));
        else
            n = 1;
    }
    return VPPS_OK;
}

/* Reads n words' tags: an array of strings or of objects with a label, or the words of a text. *tags NULL: none. */
static vpps_status read_tags(const field_reader *r, json_t *object, size_t n, json_t **tags) {
    const char *name = "";
    const json_t *value = NULL;
    *tags = NULL;
    if (r->labels || r->s->gold) VPPS_TRY(find_label(r, object, &value, &name));
    if (!value || (json_is_null(value) && !r->labels)) return VPPS_OK;
    *tags = json_array();
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *tag = json_array_get(value, i), *label = json_object_get(tag, "label");
        json_array_append(*tags, (json_t *)(uintptr_t)(label ? label : tag));
    }
    const char *at = json_is_string(value) ? json_string_value(value) : "";
    for (vpps_word word; vpps_text_next_word(&at, at + strlen(at), &word);)
        json_array_append_new(*tags, json_stringn(word.at, word.len));
    if (json_array_size(*tags) == n) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%.40s: expected a tag for each of %zu words, found %zu", name, n,
                     json_array_size(*tags));
}

/* Prints each word, with its tag, on a line. */
static vpps_status print_rows(const field_reader *r, json_t *object, const json_t *value, const char *name, FILE *f) {
    json_auto_t *words = NULL, *tags = NULL;
    VPPS_TRY(read_words(r, value, name, &words));
    VPPS_TRY(read_tags(r, object, json_array_size(words), &tags));
    for (size_t i = 0; i < json_array_size(words); i++) {
        char room[40];
        const char *tag = scalar(json_array_get(tags, i), room, sizeof room);
        if (!tag && r->labels) return vpps_fail(VPPS_FORMAT, "expected a tag of word %zu, found none", i + 1);
        put_flat(f, json_string_value(json_array_get(words, i)));
        fputc('\t', f);
        put_flat(f, tag ? tag : "_");
        fputc('\n', f);
    }
    return VPPS_OK;
}

static vpps_status put_label(const field_reader *r, json_t *object, FILE *f) {
    char room[40];
    const char *name;
    const json_t *value;
    VPPS_TRY(find_label(r, object, &value, &name));
    const char *text = scalar(value, room, sizeof room);
    if (!text && r->labels) {
        VPPS_FREED char *real =
            json_is_real(value) ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) : NULL;
        return vpps_fail(VPPS_FORMAT, "%.40s: expected a label, as text or a whole number, found %s", name,
                         real ? real : "none");
    }
    put_flat(f, text ? text : "_");
    fputc('\t', f);
    return VPPS_OK;
}

static vpps_status print_line(const field_reader *r, const json_t *value, const char *name, FILE *f) {
    const bool list = json_is_array(value);
    if (!list && !json_is_string(value))
        return vpps_fail(VPPS_FORMAT, "%.40s: expected a text, or a list of words", name);
    VPPS_FREED char *text = list ? NULL : tokenize_field(r->s, json_string_value(value));
    if (is_blank(text)) return VPPS_OK; /* nothing to predict */
    if (text) put_flat(f, text);
    for (size_t i = 0; list && i < json_array_size(value); i++) {
        const char *word = json_string_value(json_array_get(value, i));
        if (!word || !*word || strpbrk(word, " \t\r\n\v\f"))
            return vpps_fail(VPPS_FORMAT, "%.40s: expected words without white space, found something else as word %zu",
                             name, i + 1);
        fprintf(f, "%s%s", i ? " " : "", word);
    }
    return VPPS_OK;
}

static vpps_status print_labelled(const field_reader *r, json_t *object, const json_t *value, const char *name,
                                  FILE *f) {
    const bool empty = json_is_array(value) ? !json_array_size(value) : is_blank(json_string_value(value));
    if (empty && r->labels) return vpps_fail(VPPS_FORMAT, "%.40s: expected a text, found none", name);
    if (empty) return VPPS_OK; /* nothing to predict */
    VPPS_TRY(put_label(r, object, f));
    return print_line(r, value, name, f);
}

static vpps_status print_text(const field_reader *r, json_t *object, FILE *f) {
    const net_kind kind = r->s->network->kind;
    const json_t *value;
    const char *name;
    VPPS_TRY(find_text(r, object, &value, &name));
    if (net_tags(kind)) return print_rows(r, object, value, name, f);
    return kind == NET_SENTENCES ? print_labelled(r, object, value, name, f) : print_line(r, value, name, f);
}

const char *fields_other_text(const field_reader *r, const json_t *object, const char **read) {
    const json_t *value = find(object, r->s->text_field, fields_text_names(r->s->network->kind), read);
    const char *key;
    json_t *other;
    json_object_foreach((json_t *)(uintptr_t)object, key, other) { /* jansson's macro wants an object without const */
        const char *text = json_string_value(other);
        const bool label = is_one(key, r->s->label_field, usual_labels(r->s->network->kind));
        if (value && text && strcmp(key, *read) != 0 && !label && strchr(text + strspn(text, " "), ' ')) return key;
    }
    return NULL;
}

static vpps_status print_target(const field_reader *r, json_t *object, FILE *f) {
    const json_t *value;
    const char *name;
    VPPS_TRY(find_label(r, object, &value, &name));
    return value ? print_line(r, value, name, f) : VPPS_OK;
}

static vpps_status print_to(const field_reader *r, json_t *object, char **text, size_t *len,
                            vpps_status (*print)(const field_reader *r, json_t *object, FILE *f)) {
    *text = NULL;
    *len = 0;
    FILE *f = open_memstream(text, len);
    return vpps_text_end(f, f ? print(r, object, f) : VPPS_OK, text);
}

vpps_status fields_text(const field_reader *r, json_t *object, char **text, size_t *len) {
    return print_to(r, object, text, len, print_text);
}

vpps_status fields_target(const field_reader *r, json_t *object, char **text, size_t *len) {
    return print_to(r, object, text, len, print_target);
}
