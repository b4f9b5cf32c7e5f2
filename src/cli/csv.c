/* csv.c - see csv.h. */
#include "cli/csv.h"
#include "base/base.h"

static csv_state step(csv_state state, char c) {
    switch (state) {
    case CSV_BEGIN: return c == '"' ? CSV_QUOTED : c == ',' ? CSV_BEGIN : CSV_PLAIN;
    case CSV_PLAIN: return c == ',' ? CSV_BEGIN : CSV_PLAIN;
    case CSV_QUOTED: return c == '"' ? CSV_QUOTE : CSV_QUOTED;
    default: return c == '"' ? CSV_QUOTED : c == ',' ? CSV_BEGIN : CSV_PLAIN;
    }
}

bool csv_goes_on(csv_state *state, const char *line, size_t len) {
    for (size_t i = 0; i < len; i++) *state = step(*state, line[i]);
    return *state == CSV_QUOTED;
}

static vpps_status add_field(json_t *fields, const char *text, size_t len) {
    json_t *field = json_stringn(text, len);
    if (!field)
        return vpps_fail(VPPS_FORMAT, "field %zu: expected text in UTF-8 without NUL", json_array_size(fields) + 1);
    return json_array_append_new(fields, field) == 0 ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a record");
}

static vpps_status split_tabs(const char *text, size_t len, json_t *fields) {
    for (const char *end = text + len;; text++) {
        const char *tab = memchr(text, '\t', (size_t)(end - text)), *stop = tab ? tab : end;
        VPPS_TRY(add_field(fields, text, (size_t)(stop - text)));
        if (!tab) return VPPS_OK;
        text = tab;
    }
}

/* `field` has room for the text. */
static vpps_status split_commas(const char *text, size_t len, json_t *fields, char *field) {
    csv_state state = CSV_BEGIN;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        const csv_state before = state;
        state = step(before, text[i]);
        if (before == CSV_QUOTE && state == CSV_PLAIN) {
            return vpps_fail(VPPS_FORMAT,
                             "field %zu: expected a comma or the record's end after the closing quote, found '%c'",
                             json_array_size(fields) + 1, text[i]);
        }
        if (state == CSV_BEGIN) {
            VPPS_TRY(add_field(fields, field, n));
            n = 0;
        } else if (state == CSV_PLAIN || (state == CSV_QUOTED && before != CSV_BEGIN)) {
            field[n++] = text[i]; /* of two quotes the second */
        }
    }
    if (state == CSV_QUOTED) {
        return vpps_fail(VPPS_FORMAT, "field %zu: expected a closing quote, found the end of the file",
                         json_array_size(fields) + 1);
    }
    return add_field(fields, field, n);
}

vpps_status csv_split(const char *text, size_t len, bool tabs, json_t **fields) {
    char *field = malloc(len + 1);
    *fields = json_array();
    vpps_status status = field && *fields ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a record");
    if (status == VPPS_OK) status = tabs ? split_tabs(text, len, *fields) : split_commas(text, len, *fields, field);
    free(field);
    if (status == VPPS_OK) return VPPS_OK;
    json_decref(*fields);
    *fields = NULL;
    return status;
}

vpps_status csv_write(FILE *f, const char *field, char separator, bool tabs) {
    if (separator) fputc(separator, f);
    if (tabs) {
        if (strpbrk(field, "\t\r\n")) {
            return vpps_fail(VPPS_FORMAT, "a field holds a tab or a line end, which TSV cannot: --output-format csv");
        }
        fputs(field, f);
        return VPPS_OK;
    }
    const size_t len = strlen(field);
    const bool quoted = strpbrk(field, ",\"\r\n") || (len && (field[0] == ' ' || field[len - 1] == ' '));
    if (quoted) fputc('"', f);
    for (; *field; field++) {
        if (*field == '"') fputc('"', f);
        fputc(*field, f);
    }
    if (quoted) fputc('"', f);
    return VPPS_OK;
}
