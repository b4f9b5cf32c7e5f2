/* config.c - see config.h. */
#include "cli/config.h"
#include "base/base.h"
#include "cli/suggest.h"

#include <errno.h>
#include <inttypes.h>

json_t *config_value(const settings *s, const cli_option *o) {
    char text[4096];
    options_write(s, o, text, sizeof text);
    switch (o->row.kind) {
    case OPTION_FLAG: return json_boolean(strcmp(text, "yes") == 0);
    case OPTION_F32: return report_number(strtod(text, NULL)); /* the digits that bring the float back */
    case OPTION_TEXT: return options_text(s, o) ? json_string(text) : json_null();
    case OPTION_CHOICE: return json_string(text);
    case OPTION_U32:
    case OPTION_U64:
    case OPTION_BYTES: break;
    }
    const uint64_t number = strtoull(text, NULL, 10);
    return number <= INT64_MAX ? json_integer((json_int_t)number)
                               : json_string(text); /* which JSON's integers end below */
}

/* A value as the command line has it. False: it is of another type than the row. */
static bool value_text(const cli_option *o, const json_t *value, char *text, size_t n) {
    const bool flag = o->row.kind == OPTION_FLAG;
    if (json_is_string(value)) {
        const char *string = json_string_value(value);
        return snprintf(text, n, "%s", string) < (int)n &&
               (!flag || strcmp(string, "yes") == 0 || strcmp(string, "no") == 0);
    }
    if (json_is_boolean(value)) return snprintf(text, n, "%s", json_is_true(value) ? "yes" : "no") > 0 && flag;
    if (json_is_integer(value)) {
        return snprintf(text, n, "%" JSON_INTEGER_FORMAT, json_integer_value(value)) > 0 && !flag &&
               o->row.kind != OPTION_TEXT;
    }
    return json_is_real(value) && snprintf(text, n, "%.9g", json_real_value(value)) > 0 && o->row.kind == OPTION_F32;
}

/* The strings that settings point to from here on. */
static json_t *root;

static const cli_option *find_row(const settings *s, const char *name, size_t *at) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    for (*at = 0; *at < n; ++*at) {
        if (rows[*at].row.name && strcmp(rows[*at].row.name, name) == 0) return &rows[*at];
    }
    return NULL;
}

static vpps_status fail_unknown(const settings *s, const char *path, const char *name) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    suggestion near = suggest_for(name);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].row.name && options_apply(s, &rows[i])) suggest_try(&near, rows[i].row.name);
    }
    const char *of = s->network ? " of " : "", *whose = s->network ? s->network->name : "";
    if (!near.word) return vpps_fail(VPPS_ARGUMENT, "%s: \"%.64s\" is not an option%s%s", path, name, of, whose);
    return vpps_fail(VPPS_ARGUMENT, "%s: \"%.64s\" is not an option%s%s; did you mean \"%s\"?", path, name, of, whose,
                     near.word);
}

static vpps_status take(settings *s, const char *path, const char *name, const json_t *value) {
    char text[4096], before[4096], after[4096], expected[160];
    size_t at;
    const cli_option *o = find_row(s, name, &at);
    if (!o) return fail_unknown(s, path, name);
    const bool none =
        json_is_null(value) || (o->row.kind == OPTION_TEXT && json_is_string(value) && !*json_string_value(value));
    if (!options_apply(s, o) || s->given[at] || none || strcmp(name, "config") == 0) return VPPS_OK;
    options_write(s, o, before, sizeof before);
    if (!value_text(o, value, text, sizeof text)) {
        const char *type = o->row.kind == OPTION_FLAG                                   ? "true or false"
                           : o->row.kind == OPTION_TEXT || o->row.kind == OPTION_CHOICE ? "a string"
                                                                                        : "a number";
        return vpps_fail(VPPS_ARGUMENT, "%s: \"%s\" is not %s", path, name, type);
    }
    if (!options_read(s, o, o->row.kind == OPTION_TEXT ? json_string_value(value) : text, expected, sizeof expected)) {
        return vpps_fail(VPPS_ARGUMENT, "%s: \"%s\": '%.64s' is not %s", path, name, text, expected);
    }
    options_write(s, o, after, sizeof after);
    s->given[at] = strcmp(before, after) != 0;
    return VPPS_OK;
}

/* A run's own files, which another run must not write, or go on from, unasked. */
static bool is_of_run(const char *name) {
    static const char *const names[] = {"save", "save-best", "resume", "log", "plot", "trace"};
    for (size_t i = 0; i < VPPS_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

/* The file's first object. */
static vpps_status load(const char *path, json_t **out) {
    json_error_t error;
    FILE *f = fopen(path, "r");
    if (!f) return vpps_fail(VPPS_IO, "%s: %s", path, strerror(errno));
    *out = json_loadf(f, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    fclose(f);
    if (json_is_object(*out)) return VPPS_OK;
    if (*out) return vpps_fail(VPPS_FORMAT, "%s: expected an object of options, or a run's log", path);
    return vpps_fail(VPPS_FORMAT, "%s:%d:%d: %s", path, error.line, error.column, error.text);
}

vpps_status config_read(settings *s, const char *path) {
    VPPS_TRY(load(path, &root));
    json_t *options = json_object_get(root, "options"), *value;
    const char *model = json_string_value(json_object_get(root, "model")), *name;
    const bool of_log = json_is_object(options);
    if (of_log && model && s->network && strcmp(model, s->network->name) != 0) {
        return vpps_fail(VPPS_ARGUMENT, "%s: it is of a run of %.64s, not of %s", path, model, s->network->name);
    }
    json_object_foreach(of_log ? options : root, name, value) {
        if (!of_log || !is_of_run(name)) VPPS_TRY(take(s, path, name, value));
    }
    return VPPS_OK;
}
