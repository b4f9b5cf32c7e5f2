/* predict.c - `vpps predict`: prints the answers of a checkpoint's network to examples from files or standard input,
 * one line per input line.
 *
 * Lines are collected to a batch while more are available. When a pipe or terminal has none for now, the collected
 * lines are run and printed: a program that writes a line gets its answer, and a file is run in whole batches. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/input/corpus_read.h"
#include "cli/input/fields.h"
#include "cli/input/input.h"
#include "cli/input/records.h"
#include "cli/input/task.h"
#include "cli/input/tokenize.h"
#include "cli/output/answer_print.h"
#include "cli/output/output_files.h"
#include "cli/session/checkpoint.h"
#include "io/descriptor.h"
#include "io/text.h"

#include <inttypes.h>

enum { ON_ERROR_STOP, ON_ERROR_SKIP };

/* The most words, brackets or characters of a batch, whatever --batch is: a limit on the memory that one batch takes. */
#define BATCH_PIECES 65536u

/* A line or record of the input that was read; its answer is printed once its batch has been computed. */
typedef struct waiting {
    uint64_t number; /* number of the example's first line in the input */
    /* Number of the example and of its answer; VPPS_NO_WORD: a blank or a bad line, which has neither. */
    uint32_t example;
    asked asked;
} waiting;

typedef struct predictor {
    const settings *s;
    session *x;
    corpus *c;
    answers answers;
    answer_printer printer;
    record_reader reader;
    field_reader fields;
    waiting *lines;
    size_t n_lines;
    uint32_t n_examples;
    size_t pieces;
    char *plus;        /* text of the first line of CoNLL-U Plus, which names the columns; NULL: none */
    char *class_names; /* class names from the checkpoint; NULL: it has none */
    uint32_t n_class_names;
    uint64_t n_blank, first_blank; /* number of a table's blank lines, and line number of the first one */
    /* line end (LF or CR LF) of the blank line to print before the next file's sentences in columns; NULL: none is to be printed */
    const char *open;
} predictor;

/* ---------------------------------------------------------------- lines that are wrong */

/* Adds a line's number to an error message. The line of column names, which is put before each CoNLL-U Plus sentence, does not count. */
static vpps_status place_failure(const predictor *p, vpps_status status, uint64_t number) {
    return records_place(&p->reader, status, number - (p->plus && number > 1));
}

/* Returns whether a failure is about the line, not about the run. */
static bool is_of_line(vpps_status status) {
    return status == VPPS_FORMAT || status == VPPS_POOL || status == VPPS_SHAPE || status == VPPS_NONFINITE ||
           status == VPPS_ARGUMENT;
}

/* Reports a bad line, which gets an empty answer, and returns OK; returns the failure if the run must stop. */
static vpps_status fail_line(const predictor *p, vpps_status status, uint64_t number) {
    place_failure(p, status, number);
    if (!is_of_line(status)) return status;
    if (p->s->on_error == ON_ERROR_STOP)
        return vpps_fail(status, "%.430s; the output ends before it (--on-error skip goes on)", vpps_error_message());
    report_failure(status);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- a batch */

/* Prints an answer; if the output format cannot hold the answer, handles its line as a bad one. */
static vpps_status print_answer(predictor *p, const waiting *w, const char *text, size_t len) {
    const vpps_status status = answer_print(&p->printer, &w->asked, text, len);
    if (status == VPPS_OK) return VPPS_OK;
    VPPS_TRY(fail_line(p, status, w->number));
    return answer_print(&p->printer, &(asked){.text = NULL}, NULL, 0);
}

/* Prints the first n collected lines' answers, and drops all lines. */
static vpps_status print_answers(predictor *p, size_t n) {
    vpps_status status = VPPS_OK;
    for (size_t i = 0; i < p->n_lines; i++) {
        waiting *w = &p->lines[i];
        size_t len = 0;
        const char *text = w->example == VPPS_NO_WORD ? NULL : answers_get(&p->answers, w->example, &len);
        if (i < n && status == VPPS_OK) status = print_answer(p, w, text, len);
        free(w->asked.text);
    }
    p->n_lines = 0;
    return status == VPPS_OK ? flush_stdout() : status;
}

/* Makes the answers to n collected examples. Fails with NONFINITE where the network's scores are not finite. */
static vpps_status answer(predictor *p, uint32_t first, uint32_t n) {
    p->x->nonfinite = false;
    VPPS_TRY(task_for(p->s)->predict(p->x, p->c, &p->c->split[SPLIT_TEST], first, n, &p->answers));
    return session_check_scores(p->x);
}

/* Answers the examples one by one after the batch failed, to find the one that fails. */
static vpps_status answer_each(predictor *p) {
    answers_clear(&p->answers);
    for (size_t i = 0; i < p->n_lines; i++) {
        waiting *line = &p->lines[i];
        if (line->example == VPPS_NO_WORD) continue;
        const vpps_status status = answer(p, line->example, 1);
        if (status == VPPS_OK) {
            /* a failed example leaves no answer, so this line's answer is the latest one */
            line->example = (uint32_t)p->answers.n - 1;
            continue;
        }
        line->example = VPPS_NO_WORD;
        line->asked.bad = true;
        const vpps_status failed = fail_line(p, status, line->number);
        if (failed == VPPS_OK) continue;
        char why[VPPS_MESSAGE_BYTES];
        snprintf(why, sizeof why, "%s", vpps_error_message());
        VPPS_TRY(print_answers(p, i)); /* prints the answers to the preceding examples */
        return vpps_fail(failed, "%s", why);
    }
    return VPPS_OK;
}

/* Drops the names of labels that the network does not know, so that they do not accumulate. */
static vpps_status forget_names(predictor *p) {
    vpps_vocab **names = &p->c->vocab[VOCAB_CLASSES];
    if (!p->class_names || vpps_vocab_size(*names) == p->n_class_names) return VPPS_OK;
    vpps_vocab_destroy(*names);
    *names = NULL;
    VPPS_TRY(vpps_vocab_from_text(names, p->class_names));
    if (p->answers.names) p->answers.names = *names;
    return VPPS_OK;
}

static vpps_status answer_all(predictor *p) {
    answers_clear(&p->answers);
    if (!p->n_examples) return VPPS_OK;
    VPPS_TRY(corpus_end_input(p->c, p->s));
    const vpps_status status = answer(p, 0, p->n_examples);
    return is_of_line(status) ? answer_each(p) : status;
}

static vpps_status run_batch(predictor *p) {
    vpps_status status = p->n_lines ? answer_all(p) : VPPS_OK;
    const vpps_status printed = print_answers(p, status == VPPS_OK ? p->n_lines : 0);
    if (status == VPPS_OK) status = printed;
    corpus_clear_split(&p->c->split[SPLIT_TEST]);
    p->pieces = 0;
    p->n_examples = 0;
    if (status == VPPS_OK) status = forget_names(p);
    return status;
}

/* ---------------------------------------------------------------- lines */

static size_t count_pieces(const settings *s, const char *line, size_t len) {
    const net_kind kind = s->network->kind;
    size_t n = 1;
    if (kind == NET_LATTICES || kind == NET_LATTICE_PAIRS || s->network->spells) return len;
    for (size_t i = 0; i < len; i++) n += vpps_is_blank(line[i]) || line[i] == '(';
    return n;
}

/* Adds an example to the examples collected for a batch: its text, and with --gold a translation, whose probability is computed.
 * *added: false where the text holds no example. */
static vpps_status read_example(predictor *p, const char *text, size_t len, json_t *fields, bool *added) {
    task_text source = {RECORD_NAME, text, len}, target = {.name = RECORD_NAME};
    char *own = NULL;
    if (p->s->gold && task_for(p->s)->paired) VPPS_TRY(fields_target(&p->fields, fields, &own, &target.len));
    target.text = own;
    const vpps_status status = own && !target.len ? vpps_fail(VPPS_FORMAT, "expected words in the target, found none")
                                                  : corpus_add_input(p->c, p->s, &source, own ? &target : NULL);
    free(own);
    VPPS_TRY(status);
    const uint32_t n = corpus_read_so_far(&p->c->split[SPLIT_TEST]) - p->n_examples;
    p->n_examples += n;
    if (n > 1) return vpps_fail(VPPS_FORMAT, "expected one example, found %u", n);
    *added = n == 1;
    return VPPS_OK;
}

/* Returns a sentence's lines, completed for the reader of columns: by a first line that names the columns (CoNLL-U Plus), or, where words
 * have no tags, by an empty column of tags. NULL: out of memory. */
static char *column_text(const predictor *p, const record *r, size_t *len) {
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (!f) return NULL;
    /* The answer in CoNLL-U or lists of edges repeats the input's lines, so the last line gets the line end that it had in the input. */
    if (task_for(p->s)->own_form) {
        fwrite(r->text, 1, r->len, f);
        fputs(r->crlf ? "\r\n" : "\n", f);
        vpps_text_end(f, VPPS_OK, &text);
        return text;
    }
    if (p->plus && r->number > 1) fprintf(f, "%s\n", p->plus);
    for (size_t i = 0; i < r->len; i++) {
        if (r->text[i] == '\r' && i + 1 < r->len && r->text[i + 1] == '\n') continue;
        if (r->text[i] == '\n' && p->c->input.words_only) fputs("\t_", f);
        fputc(r->text[i], f);
    }
    if (p->c->input.words_only) fputs("\t_", f);
    vpps_text_end(f, VPPS_OK, &text);
    return text;
}

static char *copy_bytes(const char *bytes, size_t n) {
    char *copy = malloc(n + 1);
    if (copy && n) memcpy(copy, bytes, n);
    return copy;
}

/* Keeps a record's fields as the text of a JSON object: a line of JSONL as it was read, a table's fields as strings. */
static vpps_status keep_fields(const predictor *p, const record *r, const json_t *fields, asked *q) {
    q->text = p->reader.form == INPUT_JSONL ? copy_bytes(r->text, r->len) : json_dumps(fields, JSON_COMPACT);
    if (!q->text) return vpps_fail(VPPS_MEMORY, "no memory for a record");
    q->len = p->reader.form == INPUT_JSONL ? r->len : strlen(q->text);
    q->fields = true;
    return VPPS_OK;
}

/* Keeps those parts of a record that printing needs, and reads the record's example. */
static vpps_status read_record(predictor *p, const record *r, asked *q, bool *added) {
    const output_form out = p->printer.form;
    char *text = NULL;
    size_t len = 0;
    *q = (asked){.blank = r->blank, .crlf = r->crlf};
    if (r->blank) return VPPS_OK;
    const bool table = out == OUTPUT_CSV || out == OUTPUT_TSV;
    const bool own = task_for(p->s)->own_form != NULL;
    const bool kept = own ? out == OUTPUT_TEXT : p->reader.form == INPUT_COLUMNS ? out == OUTPUT_COLUMNS : table;
    json_auto_t *fields = NULL;
    if (fields_are(p->reader.form)) {
        VPPS_TRY(fields_read(&p->fields, r->text, r->len, &fields));
        if (table || out == OUTPUT_JSONL) VPPS_TRY(keep_fields(p, r, fields, q));
        VPPS_TRY(fields_text(&p->fields, fields, &text, &len));
    } else if (own || p->reader.form == INPUT_COLUMNS) {
        text = column_text(p, r, &len);
    } else {
        const bool labelled = p->reader.form == INPUT_LABELLED;
        text = labelled || p->reader.form == INPUT_TEXT ? tokenize_line(p->s, labelled, r->text, r->len, &len)
                                                        : copy_bytes(r->text, len = r->len);
    }
    if (kept && !fields) q->text = copy_bytes(r->text, q->len = r->len);
    if (kept && !q->text) text = (free(text), NULL);
    const vpps_status status = !text ? vpps_fail(VPPS_MEMORY, "no memory for an example")
                               : len ? read_example(p, text, len, fields, added)
                                     : VPPS_OK;
    free(text);
    q->tag_column = p->c->input.words_only ? 0 : p->c->input.seen.tag;
    q->separator = p->c->input.seen.separator;
    q->keeps_tags = p->c->input.other_tags;
    q->lines_before = p->plus && r->number > 1;
    return status;
}

/* Handles a record that cannot be read; the records before it are answered first. */
static vpps_status take_bad(predictor *p, vpps_status status, waiting *w) {
    char why[VPPS_MESSAGE_BYTES];
    const vpps_status failed = fail_line(p, status, w->number);
    snprintf(why, sizeof why, "%s", vpps_error_message());
    w->asked.bad = true;
    if (failed != VPPS_OK || !w->asked.fields) {
        free(w->asked.text);
        w->asked.text = NULL;
    }
    if (failed == VPPS_OK) return VPPS_OK;
    p->n_lines--;
    VPPS_TRY(run_batch(p));
    return vpps_fail(failed, "%s", why);
}

/* Warns that the first line of a file with one field is taken for the field's name, although it may be text. */
static void tell_only_name(const predictor *p) {
    const char *name = json_string_value(json_array_get(p->fields.names, 0));
    if (json_array_size(p->fields.names) != 1 || p->s->text_field || !strpbrk(name, " \t")) return;
    fprintf(stderr, "vpps: %s%s:1: '%.80s' is read as the name of the field (--text-field 1: fields have no names)\n",
            VPPS_PATH_ARGS(p->reader.lines.name), name);
}

static vpps_status take_record(predictor *p, line_kind kind, record *r) {
    bool added = false;
    const bool table = fields_are_table(p->reader.form);
    if (!p->printer.begun && r->number == 1) p->printer.crlf = r->crlf;
    p->open = r->blank || p->reader.form != INPUT_COLUMNS || p->printer.form != OUTPUT_COLUMNS ? NULL
              : r->crlf                                                                        ? "\r\n"
                                                                                               : "\n";
    if (table && r->blank) { /* in a table of one column a blank line is an empty field */
        r->blank = json_array_size(p->fields.names) != 1;
        if (r->blank && !p->n_blank++) p->first_blank = r->number;
    }
    if (kind == LINE_WHOLE && !r->blank && fields_are(p->reader.form) && fields_want_names(&p->fields)) {
        const vpps_status status = fields_take_names(&p->fields, r->text, r->len);
        if (status != VPPS_OK) return place_failure(p, status, r->number);
        tell_only_name(p);
        return VPPS_OK;
    }
    if (!VPPS_RESERVE(p->lines, p->n_lines + 1)) return vpps_fail(VPPS_MEMORY, "no memory for lines");
    /* runs the collected batch first if this line would make it too large */
    const size_t pieces = kind == LINE_WHOLE ? count_pieces(p->s, r->text, r->len) : 0;
    if (p->n_examples && p->pieces + pieces > BATCH_PIECES) VPPS_TRY(run_batch(p));
    waiting *w = &p->lines[p->n_lines++];
    *w = (waiting){.number = r->number, .example = VPPS_NO_WORD};
    const uint32_t before = p->n_examples;
    const vpps_status status = kind == LINE_WHOLE
                                   ? read_record(p, r, &w->asked, &added)
                                   : vpps_fail(VPPS_FORMAT, "expected %s of at most %" PRIu64 " bytes (--line-bytes)",
                                               p->reader.form == INPUT_COLUMNS ? "a sentence"
                                               : p->reader.form == INPUT_CSV   ? "a record"
                                                                               : "a line",
                                               p->s->line_bytes);
    if (status != VPPS_OK) return take_bad(p, status, w);
    if (added) {
        w->example = before;
        p->pieces += pieces;
    } else if (task_for(p->s)->own_form && !w->asked.text) { /* the line is blank or a comment: it is no example */
        p->n_lines--;
    }
    const bool full = p->n_examples >= p->s->batch || p->n_lines >= 16 * (size_t)p->s->batch;
    return full ? run_batch(p) : VPPS_OK;
}

static vpps_status predict_records(predictor *p) {
    record r = {0};
    for (;;) {
        const line_kind kind = records_next(&p->reader, &r);
        if (kind == LINE_END) return run_batch(p);
        if (kind != LINE_NONE) {
            VPPS_TRY(take_record(p, kind, &r));
            continue;
        }
        const bool waits = !lines_ready(&p->reader.lines);
        if (waits && records_next_graph(&p->reader, &r)) VPPS_TRY(take_record(p, LINE_WHOLE, &r));
        if (waits && p->n_lines) VPPS_TRY(run_batch(p));
        VPPS_TRY(lines_fill(&p->reader.lines));
    }
}

/* ---------------------------------------------------------------- forms */

static vpps_status find_form(predictor *p) {
    const settings *s = p->s;
    const char *text;
    size_t len;
    const bool waits = s->input_format == INPUT_AUTO || s->input_format == INPUT_COLUMNS;
    VPPS_TRY(records_look(&p->reader, waits, net_tags(s->network->kind), &text, &len));
    const task_text first = {p->reader.lines.name, text, len};
    input_form form;
    VPPS_TRY(input_find_form(p->c, s, &first, &form, &p->c->input));
    p->reader.form = form;
    fields_close(&p->fields);
    if (fields_are(form)) fields_begin(&p->fields, s, form, &p->c->input);
    free(p->plus);
    p->plus = NULL;
    const vpps_text t = vpps_text_of(first.name, text, len, "");
    vpps_line line = {0};
    if (form == INPUT_COLUMNS && vpps_text_next_line(&t, &line) && vpps_conllu_plus(&line)) {
        p->plus = strndup(line.begin, (size_t)(line.end - line.begin));
        if (!p->plus) return vpps_fail(VPPS_MEMORY, "no memory for the names of columns");
    }
    p->printer.fields = fields_are(form) ? &p->fields : NULL;
    return answers_set_form(&p->answers, &p->printer, s, form);
}

static vpps_status predict_lines(predictor *p) {
    VPPS_TRY(find_form(p));
    if (p->open && p->printer.form == OUTPUT_COLUMNS) { /* a blank line separates the sentences of two files */
        fputs(p->open, stdout);
        p->open = NULL;
    }
    p->n_blank = 0;
    VPPS_TRY(predict_records(p));
    if (p->n_blank)
        fprintf(stderr,
                "vpps: %s%s:%" PRIu64 ": a blank line is no record, and has no answer; such lines: %" PRIu64 "\n",
                VPPS_PATH_ARGS(p->reader.lines.name), p->first_blank, p->n_blank);
    return answer_print_names(&p->printer);
}

/* Answers a file, or standard input if path is NULL. */
static vpps_status predict_file(predictor *p, const char *path) {
    const bool own = task_for(p->s)->own_form != NULL;
    const size_t limit = p->s->line_bytes && !own ? (size_t)p->s->line_bytes : SIZE_MAX / 4;
    vpps_status status = records_open(&p->reader, path, limit);
    if (status == VPPS_OK && own) { /* own: the network reads only CoNLL-U, or only lists of edges */
        p->reader.form = p->s->network->kind == NET_DEPENDENCIES ? INPUT_COLUMNS : INPUT_GRAPHS;
        status = answers_set_form(&p->answers, &p->printer, p->s, INPUT_TEXT);
        p->printer.lines = false;
    }
    if (status == VPPS_OK) status = own ? predict_records(p) : predict_lines(p);
    records_close(&p->reader);
    return status;
}

/* Checks options for networks that read CoNLL-U or lists of edges: output must have the input's format or be JSON. */
static vpps_status check_own_form(settings *s) {
    const bool columns = s->network->kind == NET_DEPENDENCIES;
    const uint32_t in = columns ? INPUT_COLUMNS : INPUT_TEXT, out = columns ? OUTPUT_COLUMNS : OUTPUT_TEXT;
    const char *form = task_for(s)->own_form;
    if (s->output_format == OUTPUT_JSONL) s->json = true;
    const char *other = s->input_format != INPUT_AUTO && s->input_format != in                   ? "input-format"
                        : s->output_format != OUTPUT_AUTO && s->output_format != out && !s->json ? "output-format"
                        : s->tokenizer                                                           ? "tokenizer"
                                                                                                 : NULL;
    return other ? vpps_fail(VPPS_ARGUMENT, "--%s: %s reads %s, and prints %s or JSON", other, s->network->name, form,
                             form)
                 : VPPS_OK;
}

static vpps_status predict(predictor *p, settings *s) {
    if (task_for(s)->own_form) VPPS_TRY(check_own_form(s));
    if (task_for(s)->paired && s->top > s->beam)
        return vpps_fail(VPPS_ARGUMENT, "--top %u: expected --beam %u or more, found %u", s->top, s->top, s->beam);
    VPPS_TRY(open_trained(p->x, s, p->c, false));
    VPPS_TRY(answers_open(&p->answers, s, p->c));
    const vpps_vocab *names = s->network->kind == NET_TREES ? p->c->vocab[VOCAB_CLASSES] : NULL;
    if (names) p->n_class_names = vpps_vocab_size(names);
    if (names) VPPS_TRY(vpps_vocab_to_text(names, &p->class_names));
    if (s->n_files == 0) VPPS_TRY(predict_file(p, NULL));
    for (int i = 0; i < s->n_files; i++) VPPS_TRY(predict_file(p, s->files[i]));
    VPPS_TRY(answer_print_end(&p->printer));
    return session_write_trace(p->x);
}

int command_predict(settings *s) {
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    predictor p = {.s = s, .x = &x, .c = &c};
    const int code = exit_code(predict(&p, s));
    for (size_t i = 0; i < p.n_lines; i++) free(p.lines[i].asked.text);
    answers_close(&p.answers);
    answer_printer_close(&p.printer);
    fields_close(&p.fields);
    VPPS_FREE_ARRAYS(p.lines);
    VPPS_FREE(p.plus, p.class_names);
    return code;
}
