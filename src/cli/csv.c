/* csv.c - reads and writes fields of CSV and TSV. */
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

/* Returns the closing mark of a TSV field that is quoted as a whole, inner marks doubled; NULL: its marks are text. */
static const char *closing_quote(const char *field, const char *end) {
    if (field == end || *field != '"') return NULL;
    for (const char *at = field + 1; (at = memchr(at, '"', (size_t)(end - at))) != NULL; at += 2) {
        if (at + 1 == end || at[1] == '\t') return at;
        if (at[1] != '"') return NULL;
    }
    return NULL;
}

/* Adds a quoted field without its marks, doubled marks made single. `field` has room for the text. */
static vpps_status add_quoted(json_t *fields, const char *text, const char *close, char *field) {
    size_t n = 0;
    for (const char *at = text; at < close; at++) {
        field[n++] = *at;
        at += *at == '"';
    }
    return add_field(fields, field, n);
}

static vpps_status split_tabs(const char *text, size_t len, json_t *fields, char *field) {
    for (const char *end = text + len;; text++) {
        const char *close = closing_quote(text, end), *from = close ? close : text;
        const char *tab = memchr(from, '\t', (size_t)(end - from)), *stop = tab ? tab : end;
        VPPS_TRY(close ? add_quoted(fields, text + 1, close, field) : add_field(fields, text, (size_t)(stop - text)));
        if (!tab) return VPPS_OK;
        text = tab;
    }
}

/* Splits a record of CSV. `field` has room for the text. */
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
            field[n++] = text[i]; /* the second of a doubled quotation mark */
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
    if (status == VPPS_OK) status = (tabs ? split_tabs : split_commas)(text, len, *fields, field);
    free(field);
    if (status == VPPS_OK) return VPPS_OK;
    json_decref(*fields);
    *fields = NULL;
    return status;
}

vpps_status csv_write(FILE *f, const char *field, char separator, bool tabs) {
    const size_t len = strlen(field);
    if (separator) fputc(separator, f);
    if (tabs && strpbrk(field, "\r\n")) {
        return vpps_fail(VPPS_FORMAT, "a field holds a line end, which TSV cannot: --output-format csv");
    }
    const bool quoted = tabs ? *field == '"' || strchr(field, '\t')
                             : strpbrk(field, ",\"\r\n") || (len && (field[0] == ' ' || field[len - 1] == ' '));
    if (!quoted) {
        fputs(field, f);
        return VPPS_OK;
    }
    fputc('"', f);
    for (; *field; field++) {
        if (*field == '"') fputc('"', f);
        fputc(*field, f);
    }
    fputc('"', f);
    return VPPS_OK;
}
