/* records.c - reads the records (examples) of a file, or of standard input as they arrive. */
#include "cli/input/records.h"
#include "base/base.h"
#include "cli/input/input.h"
#include "io/descriptor.h"
#include "io/edge_lists.h"

#include <inttypes.h>

vpps_status records_open(record_reader *r, const char *path, size_t limit) {
    *r = (record_reader){.form = INPUT_TEXT};
    return lines_open(&r->lines, path, limit);
}

void records_of(record_reader *r, const char *name, const char *text, size_t len, input_form form) {
    *r = (record_reader){.form = form};
    lines_of(&r->lines, name, text, len);
}

void records_close(record_reader *r) {
    lines_close(&r->lines);
    VPPS_FREE_ARRAYS(r->joined);
    *r = (record_reader){.form = INPUT_TEXT};
}

static bool tells_format(const vpps_text *t, bool tags) {
    for (vpps_line line = {0}; vpps_text_next_line(t, &line);)
        if (input_decides(&line, tags)) return true;
    return false;
}

vpps_status records_look(record_reader *r, bool waits, bool tags, const char **text, size_t *len) {
    line_reader *l = &r->lines;
    for (;;) {
        const size_t there = l->end - l->begin;
        *text = l->buffer ? l->buffer + l->begin : "";
        const char *lf = there ? memrchr(*text, '\n', there) : NULL;
        const bool all = l->ended || (!lf && there > l->limit);
        *len = all ? there : lf ? (size_t)(lf - *text) + 1 : 0;
        const vpps_text t = vpps_text_of(r->lines.name, *text, *len, "");
        if (all || there > l->limit || (*len && (!waits || tells_format(&t, tags)))) return VPPS_OK;
        VPPS_TRY(lines_fill(l));
    }
}

/* Adds a line to the record, unless the record becomes too long. */
static void join(record_reader *r, const char *line, size_t len) {
    if (!r->open) {
        r->open = r->whole = true;
        r->first = r->lines.number;
        r->joined_len = 0;
    }
    r->whole = r->whole && r->joined_len + len <= r->lines.limit && VPPS_RESERVE(r->joined, r->joined_len + len + 1);
    if (!r->whole) return;
    if (len) memcpy(r->joined + r->joined_len, line, len);
    r->joined_len += len;
    r->joined[r->joined_len++] = '\n';
}

/* Restores the CR of a line that ended in CR LF inside the record. */
static void put_back_cr(record_reader *r) {
    r->whole = VPPS_RESERVE(r->joined, r->joined_len + 1);
    if (!r->whole) return;
    r->joined[r->joined_len - 1] = '\r';
    r->joined[r->joined_len++] = '\n';
}

static line_kind finish(record_reader *r, record *out) {
    const bool put_back = r->whole && r->form != INPUT_CSV && r->joined_len > 1 && r->joined[r->joined_len - 2] == '\r';
    r->open = false;
    *out = (record){r->joined, r->joined_len, r->first, false, put_back || (r->form == INPUT_CSV && r->lines.crlf)};
    if (r->whole) out->len -= 1u + put_back; /* leaves out the last line's LF or CR LF */
    return r->whole ? LINE_WHOLE : LINE_TOO_LONG;
}

static bool takes_lines(input_form form) { return form == INPUT_COLUMNS || form == INPUT_CSV || form == INPUT_GRAPHS; }

/* Returns whether a line begins the next graph; if so, puts the line back, to be read again. */
static bool begins_next_graph(record_reader *r, const char *line, size_t len, bool blank) {
    const char *label, *label_end;
    if (r->form != INPUT_GRAPHS) return false;
    const bool begins = vpps_edge_lists_label(line, line + len, VPPS_GRAPH_LABELS, &label, &label_end);
    if (begins && r->open && r->graph) {
        lines_back(&r->lines, line);
        return true;
    }
    r->graph = begins || (r->open && r->graph);
    r->graph_ends = blank;
    return false;
}

bool records_next_graph(record_reader *r, record *out) {
    return r->form == INPUT_GRAPHS && r->open && r->graph && r->graph_ends && finish(r, out) == LINE_WHOLE;
}

line_kind records_next(record_reader *r, record *out) {
    if (r->blank) {
        r->blank = false;
        *out = (record){"", 0, r->lines.number, true, r->lines.crlf};
        return LINE_WHOLE;
    }
    for (;;) {
        const char *line = "";
        size_t len = 0;
        const line_kind kind = lines_next(&r->lines, &line, &len);
        if (kind == LINE_END && r->open) return finish(r, out);
        if (kind == LINE_NONE || kind == LINE_END) return kind;
        /* a byte order mark is left out, as no part of a record; but columns and graphs are printed as they were read, with the mark */
        if (r->form != INPUT_COLUMNS && r->form != INPUT_GRAPHS && r->lines.number == 1) {
            const char *begin = vpps_skip_mark(line, line + len);
            len -= (size_t)(begin - line);
            line = begin;
        }
        const bool table = fields_are_table(r->form); /* in a table, a line of blanks is a record */
        const bool blank = kind == LINE_WHOLE && (table ? !len : vpps_skip_blanks(line, line + len) == line + len);
        *out = (record){line, len, r->lines.number, blank, r->lines.crlf};
        if (!takes_lines(r->form)) return kind;
        if (begins_next_graph(r, line, len, blank)) return finish(r, out);
        if (r->form == INPUT_COLUMNS && blank) {
            r->blank = r->open;
            return r->open ? finish(r, out) : LINE_WHOLE;
        }
        if (r->form == INPUT_CSV && blank && !r->open) return LINE_WHOLE;
        if (!r->open) r->state = CSV_BEGIN;
        join(r, line, len);
        if (kind == LINE_TOO_LONG) r->whole = false;
        if (r->form != INPUT_CSV && r->whole && r->lines.crlf) put_back_cr(r);
        if (r->form == INPUT_COLUMNS && r->joined_len > len + 2 && vpps_columns_document_start(line, len))
            return finish(r, out); /* -DOCSTART- begins a document */
        if (r->form != INPUT_CSV) continue;
        if (!csv_goes_on(&r->state, line, kind == LINE_WHOLE ? len : 0)) return finish(r, out);
        if (r->whole && r->lines.crlf) put_back_cr(r);
    }
}

vpps_status records_place(const record_reader *r, vpps_status status, uint64_t number) {
    const char *about = vpps_error_message();
    const bool as_it_stands = !fields_are(r->form);
    char why[VPPS_MESSAGE_BYTES];
    uint64_t line = 1;
    int used = 0;
    if (sscanf(about, RECORD_NAME ":%" SCNu64 "%n", &line, &used) < 1) line = 1;
    about += used;
    if (!used && strncmp(about, RECORD_NAME, sizeof RECORD_NAME - 1) == 0) about += sizeof RECORD_NAME - 1;
    if (*about == ':' && used && !as_it_stands) about += 1 + strspn(about + 1, "0123456789");
    snprintf(why, sizeof why, "%s%s", *about == ':' ? "" : ": ", about);
    return vpps_fail(status, "%s%s:%" PRIu64 "%.480s", VPPS_PATH_ARGS(r->lines.name),
                     as_it_stands ? number + line - 1 : number, why);
}
