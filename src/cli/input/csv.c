/* csv.c - reads and writes fields of CSV and TSV. Exported programs have this file, too. */
#include "cli/input/csv.h"
#include "base/base.h"
#include "io/json.h"

static csv_state csv_step(csv_state state, char c) {
    switch (state) {
    case CSV_BEGIN: return c == '"' ? CSV_QUOTED : c == ',' ? CSV_BEGIN : CSV_PLAIN;
    case CSV_PLAIN: return c == ',' ? CSV_BEGIN : CSV_PLAIN;
    case CSV_QUOTED: return c == '"' ? CSV_QUOTE : CSV_QUOTED;
    default: return c == '"' ? CSV_QUOTED : c == ',' ? CSV_BEGIN : CSV_PLAIN;
    }
}

bool csv_goes_on(csv_state *state, const char *line, size_t len) {
    for (size_t i = 0; i < len; i++) *state = csv_step(*state, line[i]);
    return *state == CSV_QUOTED;
}

/* The fields read so far of a record: n complete fields, and the bytes from `field` to `to` of the field that is being written. */
typedef struct csv_fields {
    char *field, *to;
    size_t n;
} csv_fields;

static void add_bytes(csv_fields *f, const char *bytes, size_t n) {
    memcpy(f->to, bytes, n);
    f->to += n;
}

static vpps_status end_field(csv_fields *f) {
    *f->to++ = '\0';
    f->n++;
    if (strlen(f->field) + 1 != (size_t)(f->to - f->field) || !vpps_is_utf8(f->field))
        return vpps_fail(VPPS_FORMAT, "field %zu: expected text in UTF-8 without NUL", f->n);
    f->field = f->to;
    return VPPS_OK;
}

/* Returns the closing quotation mark of a TSV field that is quoted as a whole, with inner marks doubled; NULL: the field's marks are ordinary
 * text. */
static const char *closing_quote(const char *field, const char *end) {
    if (field == end || *field != '"') return NULL;
    for (const char *at = field + 1; (at = memchr(at, '"', (size_t)(end - at))) != NULL; at += 2) {
        if (at + 1 == end || at[1] == '\t') return at;
        if (at[1] != '"') return NULL;
    }
    return NULL;
}

static vpps_status split_tabs(csv_fields *f, const char *text, size_t len) {
    for (const char *end = text + len;; text++) {
        const char *close = closing_quote(text, end), *from = close ? close : text;
        const char *tab = memchr(from, '\t', (size_t)(end - from)), *stop = tab ? tab : end;
        if (!close) add_bytes(f, text, (size_t)(stop - text));
        for (const char *at = text + 1; close && at < close; at += 1 + (*at == '"')) add_bytes(f, at, 1);
        VPPS_TRY(end_field(f));
        if (!tab) return VPPS_OK;
        text = tab;
    }
}

static vpps_status split_commas(csv_fields *f, const char *text, size_t len) {
    csv_state state = CSV_BEGIN;
    for (size_t i = 0; i < len; i++) {
        const csv_state before = state;
        state = csv_step(before, text[i]);
        if (before == CSV_QUOTE && state == CSV_PLAIN)
            return vpps_fail(VPPS_FORMAT,
                             "field %zu: expected a comma or the record's end after the closing quote, found '%c'",
                             f->n + 1, text[i]);
        if (state == CSV_BEGIN)
            VPPS_TRY(end_field(f));
        else if (state == CSV_PLAIN || (state == CSV_QUOTED && before != CSV_BEGIN))
            add_bytes(f, text + i, 1); /* adds the character; two quotation marks in a quoted field mean one */
    }
    if (state == CSV_QUOTED)
        return vpps_fail(VPPS_FORMAT, "field %zu: expected a closing quote, found the end of the file", f->n + 1);
    return end_field(f);
}

vpps_status csv_split(const char *text, size_t len, bool tabs, char *fields, size_t *n) {
    csv_fields f = {fields, fields, 0};
    const vpps_status status = (tabs ? split_tabs : split_commas)(&f, text, len);
    *n = f.n;
    return status;
}

vpps_status csv_write(FILE *f, const char *field, char separator, bool tabs) {
    const size_t len = strlen(field);
    if (separator) fputc(separator, f);
    if (tabs && strpbrk(field, "\r\n"))
        return vpps_fail(VPPS_FORMAT, "a field holds a line end, which TSV cannot: --output-format csv");
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
