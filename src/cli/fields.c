/* fields.c - see fields.h. */
#include "cli/fields.h"
#include "base/base.h"
#include "cli/tokenize.h"
#include "io/text.h"

#include <ctype.h>

bool fields_numbered(const settings *s) {
    return s->text_field && *s->text_field && !s->text_field[strspn(s->text_field, "0123456789")];
}

void fields_begin(field_reader *r, const settings *s, input_form form, input_reading *in) {
    *r = (field_reader){.s = s, .form = form};
    *in = (input_reading){.form = READ_LINES};
    if (s->network->kind == NET_SENTENCES) in->form = READ_LABELLED;
    if (net_tags(s->network->kind))
        *in = (input_reading){.form = READ_COLUMNS, .columns = {.word = 1, .tag = 2, .tabs = true}};
}

void fields_close(field_reader *r) {
    json_decref(r->names);
    r->names = NULL;
}

bool fields_want_names(const field_reader *r) { return r->form != INPUT_JSONL && !r->names && !fields_numbered(r->s); }

vpps_status fields_take_names(field_reader *r, const char *text, size_t len) {
    const char *begin = vpps_skip_mark(text, text + len);
    return csv_split(begin, len - (size_t)(begin - text), r->form == INPUT_TSV, &r->names);
}

vpps_status fields_read(const field_reader *r, const char *text, size_t len, json_t **object) {
    *object = NULL;
    if (r->form == INPUT_JSONL) {
        json_error_t error;
        *object = json_loadb(text, len, 0, &error);
        if (!*object) return vpps_fail(VPPS_FORMAT, "byte %d: not JSON: %s", error.position + 1, error.text);
        if (json_is_object(*object)) return VPPS_OK;
        json_decref(*object);
        *object = NULL;
        return vpps_fail(VPPS_FORMAT, "expected a JSON object");
    }
    json_t *fields;
    VPPS_TRY(csv_split(text, len, r->form == INPUT_TSV, &fields));
    const size_t n = json_array_size(fields), expected = r->names ? json_array_size(r->names) : n;
    vpps_status status = VPPS_OK;
    if (n != expected)
        status = vpps_fail(VPPS_FORMAT, "expected %zu fields, as there are names, found %zu", expected, n);
    *object = status == VPPS_OK ? json_object() : NULL;
    for (size_t i = 0; *object && i < n; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        json_object_set(*object, r->names ? json_string_value(json_array_get(r->names, i)) : number,
                        json_array_get(fields, i));
    }
    json_decref(fields);
    return status;
}

/* ---------------------------------------------------------------- the text of an example */

static const json_t *find(const json_t *object, const char *given, const char *const *usual, const char **name) {
    for (const char *const one[] = {given, NULL}, *const *n = given ? one : usual; *n; n++) {
        const json_t *value = json_object_get(object, *n);
        *name = *n;
        if (value) return value;
    }
    return NULL;
}

static vpps_status fail_missing(const json_t *object, const char *wanted) {
    char found[200] = "";
    const char *key, *more = "";
    json_t *value;
    size_t len = 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) { /* it is only read */
        if (len < sizeof found) len += (size_t)snprintf(found + len, sizeof found - len, "%s%s", more, key);
        more = ", ";
    }
    return vpps_fail(VPPS_FORMAT, "expected a field '%.40s', found %s: --text-field tells another name", wanted, found);
}

static vpps_status find_text(const field_reader *r, const json_t *object, const json_t **value, const char **name) {
    static const char *const of_tags[] = {"words", "tokens", "text", "sentence", NULL},
                             *const of_trees[] = {"tree", "text", NULL},
                             *const of_pairs[] = {"source", "text", "sentence", NULL},
                             *const others[] = {"text", "sentence", NULL};
    const net_kind kind = r->s->network->kind;
    const bool pairs = kind == NET_PAIRS || kind == NET_LATTICE_PAIRS;
    const char *const *usual = net_tags(r->s->network->kind) ? of_tags
                               : kind == NET_TREES           ? of_trees
                               : pairs                       ? of_pairs
                                                             : others;
    *value = find(object, r->s->text_field, usual, name);
    if (!*value && !r->s->text_field && json_object_size(object) == 1) {
        *name = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)object));
        *value = json_object_get(object, *name);
    }
    if (!*value) return fail_missing(object, r->s->text_field ? r->s->text_field : kind == NET_TREES ? "tree" : "text");
    return VPPS_OK;
}

/* Writes text with white space of all kinds as single bytes of space. */
static void put_flat(FILE *f, const char *text) {
    for (; *text; text++) fputc(vpps_is_space(*text) ? ' ' : *text, f);
}

/* A scalar as text; NULL: it is none. */
static const char *scalar(const json_t *value, char *room, size_t n) {
    if (json_is_string(value)) return json_string_value(value);
    if (json_is_integer(value))
        snprintf(room, n, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_boolean(value))
        snprintf(room, n, "%s", json_is_true(value) ? "true" : "false");
    else
        return NULL;
    return room;
}

/* The words of a text, or of an array, as an array of strings, to be freed. */
static vpps_status read_words(const field_reader *r, const json_t *value, const char *name, json_t **words) {
    *words = json_array();
    if (!*words) return vpps_fail(VPPS_MEMORY, "no memory for words");
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *word = json_array_get(value, i);
        if (!json_is_string(word))
            return vpps_fail(VPPS_FORMAT, "%.40s: expected words, found something else at %zu", name, i);
        json_array_append(*words, word);
    }
    if (json_is_array(value)) return VPPS_OK;
    if (!json_is_string(value)) return vpps_fail(VPPS_FORMAT, "%.40s: expected a text, or a list of words", name);
    const bool characters = r->s->network->kind == NET_LATTICES;
    char *text = tokenize_field(r->s, json_string_value(value));
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for words");
    for (size_t at = 0, n; text[at]; at += n) {
        n = characters ? vpps_utf8_character(text + at, strlen(text + at)) : strcspn(text + at, " \t\v\f\r\n");
        if (characters && vpps_is_space(text[at])) continue;
        if (n)
            json_array_append_new(*words, json_stringn(text + at, n));
        else
            n = 1;
    }
    free(text);
    return VPPS_OK;
}

/* The tags of n words, as an array of strings or of objects with a label, or words of a text; NULL: there are none. */
static vpps_status read_tags(const field_reader *r, const json_t *object, size_t n, json_t **tags) {
    static const char *const usual[] = {"gold", "tags", "labels", NULL};
    const char *name;
    const json_t *value = r->s->gold ? find(object, r->s->label_field, usual, &name) : NULL;
    *tags = NULL;
    if (!value || json_is_null(value)) return VPPS_OK;
    *tags = json_array();
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *tag = json_array_get(value, i), *label = json_object_get(tag, "label");
        json_array_append(*tags, (json_t *)(uintptr_t)(label ? label : tag));
    }
    for (const char *at = json_is_string(value) ? json_string_value(value) : "", *word; *at;) {
        size_t len;
        if (!vpps_text_next_word(&at, at + strlen(at), &word, &len)) break;
        json_array_append_new(*tags, json_stringn(word, len));
    }
    if (json_array_size(*tags) == n) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%.40s: expected a tag for each of %zu words, found %zu", name, n,
                     json_array_size(*tags));
}

/* A word a line, and its tag. */
static vpps_status print_rows(const field_reader *r, const json_t *object, const json_t *value, const char *name,
                              FILE *f) {
    json_t *words = NULL, *tags = NULL;
    vpps_status status = read_words(r, value, name, &words);
    if (status == VPPS_OK) status = read_tags(r, object, json_array_size(words), &tags);
    for (size_t i = 0; status == VPPS_OK && i < json_array_size(words); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        put_flat(f, json_string_value(json_array_get(words, i)));
        fputc('\t', f);
        put_flat(f, tag && *tag ? tag : "_");
        fputc('\n', f);
    }
    json_decref(words);
    json_decref(tags);
    return status;
}

static void put_label(const field_reader *r, const json_t *object, FILE *f) {
    static const char *const usual[] = {"gold", "label", NULL};
    char room[40];
    const char *name;
    const json_t *value = find(object, r->s->label_field, usual, &name);
    const char *text = value ? scalar(value, room, sizeof room) : NULL;
    put_flat(f, text && text[strspn(text, " \t\r\n\v\f")] ? text : "_");
    fputc('\t', f);
}

static vpps_status print_line(const field_reader *r, const json_t *object, const json_t *value, const char *name,
                              FILE *f) {
    const bool list = json_is_array(value);
    if (!list && !json_is_string(value))
        return vpps_fail(VPPS_FORMAT, "%.40s: expected a text, or a list of words", name);
    char *text = list ? NULL : tokenize_field(r->s, json_string_value(value));
    if (text && !text[strspn(text, " \t\r\n\v\f")]) {
        free(text);
        return VPPS_OK; /* nothing to answer */
    }
    if (r->s->network->kind == NET_SENTENCES) put_label(r, object, f);
    if (text) put_flat(f, text);
    free(text);
    for (size_t i = 0; list && i < json_array_size(value); i++) {
        const char *word = json_string_value(json_array_get(value, i));
        if (!word || !*word || strpbrk(word, " \t\r\n\v\f")) {
            return vpps_fail(VPPS_FORMAT, "%.40s: expected words without white space, found something else at %zu",
                             name, i);
        }
        fprintf(f, "%s%s", i ? " " : "", word);
    }
    return VPPS_OK;
}

vpps_status fields_text(const field_reader *r, const json_t *object, char **text, size_t *len) {
    const json_t *value;
    const char *name;
    *text = NULL;
    *len = 0;
    VPPS_TRY(find_text(r, object, &value, &name));
    FILE *f = open_memstream(text, len);
    if (!f) return vpps_fail(VPPS_MEMORY, "no memory for an example");
    const vpps_status status =
        net_tags(r->s->network->kind) ? print_rows(r, object, value, name, f) : print_line(r, object, value, name, f);
    const bool closed = fclose(f) == 0;
    if (status == VPPS_OK && closed) return VPPS_OK;
    free(*text);
    *text = NULL;
    return status == VPPS_OK ? vpps_fail(VPPS_MEMORY, "no memory for an example") : status;
}
