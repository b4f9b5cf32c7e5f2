/* config.c - reads options from JSON files and logs, and writes them. */
#include "cli/options/config.h"
#include "base/base.h"
#include "cli/common/suggest.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

json_t *config_value(const settings *s, const cli_option *o) {
    char text[4096];
    options_write(s, o, text, sizeof text);
    switch (o->row.kind) {
    case OPTION_FLAG: return json_boolean(strcmp(text, "yes") == 0);
    case OPTION_F32: return report_number(strtod(text, NULL)); /* nine digits are enough to restore a float */
    case OPTION_TEXT: return options_text(s, o) ? json_string(text) : json_null();
    case OPTION_CHOICE: return json_string(text);
    case OPTION_U32:
    case OPTION_U64:
    case OPTION_BYTES: break;
    }
    const uint64_t number = strtoull(text, NULL, 10);
    return number <= INT64_MAX ? json_integer((json_int_t)number)
                               : json_string(text); /* the number exceeds JSON's largest integer */
}

/* Converts a value to text as on the command line. Returns false when its type does not fit the option. */
static bool value_text(const cli_option *o, const json_t *value, char *text, size_t n) {
    const bool flag = o->row.kind == OPTION_FLAG;
    if (json_is_string(value)) {
        const char *string = json_string_value(value);
        return snprintf(text, n, "%s", string) < (int)n &&
               (!flag || strcmp(string, "yes") == 0 || strcmp(string, "no") == 0);
    }
    if (json_is_boolean(value)) return snprintf(text, n, "%s", json_is_true(value) ? "yes" : "no") > 0 && flag;
    if (!json_is_number(value) || flag || o->row.kind == OPTION_TEXT || o->row.kind == OPTION_CHOICE) return false;
    const double x = json_number_value(value);
    if (json_is_integer(value))
        snprintf(text, n, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else /* a real number, written as an integer if whole and up to 2^53, where all integers are doubles */
        snprintf(text, n, x == floor(x) && fabs(x) <= 0x1p53 ? "%.0f" : "%.9g", x + 0.0 /* turns -0.0 into 0 */);
    return true;
}

static vpps_status fail_unknown(const settings *s, const char *path, const char *name) {
    suggestion near = suggest_for(name);
    for (const cli_option *o = options_rows(s); o->row.help; o++)
        if (options_apply(s, o)) suggest_try(&near, o->row.name);
    return vpps_fail(VPPS_ARGUMENT, "%s: \"%.64s\" is not an option%s%s%s%s%s", path, name, s->network ? " of " : "",
                     s->network ? s->network->name : "", near.word ? "; did you mean \"" : "",
                     near.word ? near.word : "", near.word ? "\"?" : "");
}

/* Takes one option from a file. From a file of options every listed option is taken; from a run's log, only options that differ from the default. */
static vpps_status take(settings *s, const char *path, const char *name, const json_t *value, bool of_log) {
    char text[4096], before[4096], after[4096], expected[160];
    const cli_option *o = options_find(s, name);
    if (!o) return fail_unknown(s, path, name);
    const option_kind kind = o->row.kind;
    const bool none =
        json_is_null(value) || (kind == OPTION_TEXT && json_string_length(value) == 0 && json_is_string(value));
    if (!options_apply(s, o) || s->given[o->number] || none || strcmp(name, "config") == 0) return VPPS_OK;
    options_write(s, o, before, sizeof before);
    if (!value_text(o, value, text, sizeof text))
        return vpps_fail(VPPS_ARGUMENT, "%s: \"%s\" is not %s", path, name,
                         kind == OPTION_FLAG                            ? "true or false"
                         : kind == OPTION_TEXT || kind == OPTION_CHOICE ? "a string"
                                                                        : "a number");
    if (!options_read(s, o, kind == OPTION_TEXT ? json_string_value(value) : text, expected, sizeof expected))
        return vpps_fail(VPPS_ARGUMENT, "%s: \"%s\": '%.64s' is not %s", path, name, text, expected);
    options_write(s, o, after, sizeof after);
    s->given[o->number] = !of_log || strcmp(before, after) != 0;
    return VPPS_OK;
}

/* Returns whether an option in the log of an old run does not apply to a new run that reads the log by --config: files of the old run,
 * which the new run must not write or continue, and --force, the permission to replace files. */
static bool is_of_run(const settings *s, const char *name) {
    const cli_option *o = options_find(s, name);
    return o && ((o->flags & (OPTION_OUTPUT | OPTION_NAMES_NETWORK)) || strcmp(name, "force") == 0);
}

/* ---------------------------------------------------------------- the network */

static const char *const network_keys[] = {"network", "model"};

/* Returns whether a key of the file names the network. "network" always does. "model" does in a log, for a command without --model, or if
 * its value is the name of a network; otherwise "model" is a checkpoint. */
static bool names_network(const settings *s, const char *key, const json_t *value, bool of_log) {
    if (strcmp(key, "network") == 0) return true;
    if (strcmp(key, "model") != 0) return false;
    const cli_option *o = options_find(s, key);
    return of_log || !o || !(o->commands & s->command) ||
           (json_is_string(value) && network_find(json_string_value(value)));
}

/* Sets *name to the name of the network under a key of an options file; NULL: the key is missing or names none. */
static vpps_status read_network(const settings *s, const char *path, const json_t *object, const char *key, bool of_log,
                                const char **name) {
    const json_t *value = json_object_get(object, key);
    *name = NULL;
    if (!value || json_is_null(value) || !names_network(s, key, value, of_log)) return VPPS_OK;
    if (!json_is_string(value)) return vpps_fail(VPPS_ARGUMENT, "%s: \"%s\" is not a string", path, key);
    *name = json_string_value(value);
    if (network_find(*name)) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "%s: \"%s\": '%.64s' is not a network", path, key, *name);
}

/* ---------------------------------------------------------------- the file */

/* Reads the first object of a file; in a log, it is the record of the run's start. The file is read only once, since it may be a pipe, and
 * the object is kept, since settings point to its strings. */
static vpps_status load(const char *path, json_t **out) {
    static json_t *root;
    json_error_t error;
    *out = root;
    if (root) return VPPS_OK;
    FILE *f = fopen(path, "r");
    if (!f) return vpps_fail(VPPS_IO, "%s: %s", path, strerror(errno));
    json_t *read = json_loadf(f, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    fclose(f);
    if (!read) return vpps_fail(VPPS_FORMAT, "%s:%d:%d: %s", path, error.line, error.column, error.text);
    if (!json_is_object(read)) {
        json_decref(read);
        return vpps_fail(VPPS_FORMAT, "%s: expected an object of options, or a run's log", path);
    }
    *out = root = read;
    return VPPS_OK;
}

vpps_status config_find_network(const settings *s, const char *path, const network **found, const char **checkpoint) {
    json_t *object;
    const char *name = NULL;
    *found = NULL;
    *checkpoint = NULL;
    VPPS_TRY(load(path, &object));
    const bool of_log = json_is_object(json_object_get(object, "options"));
    vpps_status status = VPPS_OK;
    for (size_t i = 0; i < VPPS_COUNT(network_keys) && status == VPPS_OK && !name; i++)
        status = read_network(s, path, object, network_keys[i], of_log, &name);
    if (status == VPPS_OK && name) *found = network_find(name);
    for (const cli_option *o = options_rows(s); o->row.help && !name && !of_log && status == VPPS_OK; o++) {
        if (!(o->flags & OPTION_NAMES_NETWORK) || !(o->commands & s->command)) continue;
        const char *file = json_string_value(json_object_get(object, o->row.name));
        if (file && *file) *checkpoint = file;
    }
    return status;
}

vpps_status config_read(settings *s, const char *path) {
    json_t *root, *value;
    VPPS_TRY(load(path, &root));
    json_t *options = json_object_get(root, "options");
    const char *name;
    const bool of_log = json_is_object(options);
    for (size_t i = 0; i < VPPS_COUNT(network_keys); i++) {
        VPPS_TRY(read_network(s, path, root, network_keys[i], of_log, &name));
        if (!name || !s->network || strcmp(name, s->network->name) == 0) continue;
        return vpps_fail(VPPS_ARGUMENT, "%s: its network is %s, not %s", path, name, s->network->name);
    }
    json_object_foreach(of_log ? options : root, name, value) {
        if (of_log ? is_of_run(s, name) : names_network(s, name, value, of_log)) continue;
        VPPS_TRY(take(s, path, name, value, of_log));
    }
    return VPPS_OK;
}
