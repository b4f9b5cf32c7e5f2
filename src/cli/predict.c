/* predict.c - `vpps predict`: what a checkpoint's network says of examples from files or standard input, a line out for each line in.
 *
 * Lines become a batch as long as more are there; once a pipe or a terminal has none for now, what is there is run and
 * printed. So a program that writes a line gets its answer, and a file is run in whole batches. */
#include "base/base.h"
#include "cli/answers.h"
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/corpus_read.h"
#include "cli/failure.h"
#include "cli/lines.h"
#include "cli/output_files.h"
#include "cli/task.h"
#include "io/descriptor.h"
#include "io/text.h"

#include <inttypes.h>

enum { ON_ERROR_STOP, ON_ERROR_SKIP };

/* So many words, brackets or characters make a batch, whatever --batch says: what a batch takes is bounded. */
#define BATCH_PIECES 65536u

/* A line of the batch. */
typedef struct waiting {
    uint64_t number;
    uint32_t example; /* its number, and its answer's; VPPS_NO_WORD: an empty line, or a bad one, is answered by one */
} waiting;

typedef struct predictor {
    const settings *s;
    session *x;
    corpus *c;
    answers answers;
    line_reader reader;
    waiting *lines;
    size_t n_lines, capacity;
    uint32_t n_examples;
    size_t pieces;
    char *class_names; /* as the checkpoint has them; NULL: none */
    uint32_t n_class_names;
} predictor;

/* ---------------------------------------------------------------- lines that are wrong */

/* The name of a line's text in the messages of readers. */
#define LINE_NAME "line"

/* The thread's message, of a text that was a line, with the file and the line's own number. */
static vpps_status place_failure(const predictor *p, vpps_status status, uint64_t number) {
    static const char first[] = LINE_NAME ":1:", any[] = LINE_NAME ": ";
    const char *name = p->reader.name;
    char why[VPPS_MESSAGE_BYTES];
    snprintf(why, sizeof why, "%s", vpps_error_message());
    if (strncmp(why, first, sizeof first - 1) == 0) {
        return vpps_fail(status, "%s%s:%" PRIu64 ":%.480s", VPPS_PATH_ARGS(name), number, why + sizeof first - 1);
    }
    return vpps_fail(status, "%s%s:%" PRIu64 ": %.480s", VPPS_PATH_ARGS(name), number,
                     strncmp(why, any, sizeof any - 1) == 0 ? why + sizeof any - 1 : why);
}

/* Is it the line's fault? */
static bool is_of_line(vpps_status status) {
    return status == VPPS_FORMAT || status == VPPS_POOL || status == VPPS_SHAPE || status == VPPS_NONFINITE ||
           status == VPPS_ARGUMENT;
}

/* OK: an empty line answers the bad one, and it was told. Else the failure. */
static vpps_status fail_line(const predictor *p, vpps_status status, uint64_t number) {
    place_failure(p, status, number);
    if (p->s->on_error == ON_ERROR_STOP || !is_of_line(status)) return status;
    report_failure(status);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- a batch */

static vpps_status print_answers(predictor *p) {
    for (size_t i = 0; i < p->n_lines; i++) {
        size_t len = 0;
        const char *text = "";
        if (p->lines[i].example != VPPS_NO_WORD) text = answers_get(&p->answers, p->lines[i].example, &len);
        fwrite(text, 1, len, stdout);
        putchar('\n');
    }
    return flush_stdout();
}

/* Answers n examples of those that wait. Fails with NONFINITE where the network's scores are not finite. */
static vpps_status answer(predictor *p, uint32_t first, uint32_t n) {
    p->x->nonfinite = false;
    VPPS_TRY(task_for(p->s)->predict(p->x, p->c, &p->c->split[SPLIT_TEST], first, n, &p->answers));
    return session_check_scores(p->x);
}

/* One by one, after all together failed: whose fault was it? */
static vpps_status answer_each(predictor *p) {
    answers_clear(&p->answers);
    for (size_t i = 0; i < p->n_lines; i++) {
        waiting *line = &p->lines[i];
        if (line->example == VPPS_NO_WORD) continue;
        const vpps_status status = answer(p, line->example, 1);
        if (status == VPPS_OK) {
            line->example = (uint32_t)p->answers.n - 1; /* a failed one may have left its own */
            continue;
        }
        line->example = VPPS_NO_WORD;
        const vpps_status failed = fail_line(p, status, line->number);
        if (failed == VPPS_OK) continue;
        char why[VPPS_MESSAGE_BYTES];
        snprintf(why, sizeof why, "%s", vpps_error_message());
        p->n_lines = i; /* what was before it is answered */
        VPPS_TRY(print_answers(p));
        p->n_lines = 0;
        return vpps_fail(failed, "%s", why);
    }
    return VPPS_OK;
}

/* Labels of constituents that the network does not know: their names are not kept for ever. */
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

/* Answers the lines that wait. */
static vpps_status run_batch(predictor *p) {
    vpps_status status = p->n_lines ? answer_all(p) : VPPS_OK;
    if (status == VPPS_OK && p->n_lines) status = print_answers(p);
    corpus_clear_split(&p->c->split[SPLIT_TEST]);
    p->n_lines = p->pieces = 0;
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

/* Reads the line's example, behind those that wait. *added: it has one. */
static vpps_status read_example(predictor *p, const char *line, size_t len, bool *added) {
    *added = false;
    if (vpps_skip_blanks(line, line + len) == line + len) return VPPS_OK;
    VPPS_TRY(corpus_add_input(p->c, p->s, LINE_NAME, line, len));
    const uint32_t n = corpus_read_so_far(&p->c->split[SPLIT_TEST]) - p->n_examples;
    if (n > 1) return vpps_fail(VPPS_FORMAT, "expected one example, found %u", n);
    *added = n == 1;
    p->n_examples += n;
    return VPPS_OK;
}

/* A line that cannot be read: what was read before it is answered first. */
static vpps_status take_bad(predictor *p, vpps_status status, waiting *line) {
    char why[VPPS_MESSAGE_BYTES];
    const vpps_status failed = fail_line(p, status, line->number);
    if (failed == VPPS_OK) return VPPS_OK;
    snprintf(why, sizeof why, "%s", vpps_error_message());
    p->n_lines--;
    VPPS_TRY(run_batch(p));
    return vpps_fail(failed, "%s", why);
}

static vpps_status take_line(predictor *p, line_kind kind, const char *text, size_t len) {
    bool added = false;
    if (!VPPS_RESERVE(p->lines, p->capacity, p->n_lines + 1)) return vpps_fail(VPPS_MEMORY, "no memory for lines");
    /* a batch is no larger for its last line, unless that is its only one */
    const size_t pieces = kind == LINE_WHOLE ? count_pieces(p->s, text, len) : 0;
    if (p->n_examples && p->pieces + pieces > BATCH_PIECES) VPPS_TRY(run_batch(p));
    waiting *line = &p->lines[p->n_lines++];
    *line = (waiting){p->reader.number, VPPS_NO_WORD};
    const uint32_t before = p->n_examples;
    const vpps_status status =
        kind == LINE_WHOLE
            ? read_example(p, text, len, &added)
            : vpps_fail(VPPS_FORMAT, "expected a line of at most %" PRIu64 " bytes (--line-bytes)", p->s->line_bytes);
    if (status != VPPS_OK) return take_bad(p, status, line);
    if (added) {
        line->example = before;
        p->pieces += pieces;
    }
    const bool full = p->n_examples >= p->s->batch || p->n_lines >= 16 * (size_t)p->s->batch;
    return full ? run_batch(p) : VPPS_OK;
}

static vpps_status predict_lines(predictor *p) {
    const char *line = NULL;
    size_t len = 0;
    for (;;) {
        const line_kind kind = lines_next(&p->reader, &line, &len);
        if (kind == LINE_END) return run_batch(p);
        if (kind != LINE_NONE) {
            VPPS_TRY(take_line(p, kind, line, len));
            continue;
        }
        if (p->n_lines && !lines_ready(&p->reader)) VPPS_TRY(run_batch(p));
        VPPS_TRY(lines_fill(&p->reader));
    }
}

/* ---------------------------------------------------------------- what has no lines */

/* Lattices of ids are numbers with white space between them, however many to a line. */
static vpps_status predict_whole(predictor *p) {
    line_reader *r = &p->reader;
    do { VPPS_TRY(lines_fill(r)); } while (!r->ended);
    VPPS_TRY(corpus_add_input(p->c, p->s, r->name, r->buffer, r->end));
    VPPS_TRY(corpus_end_input(p->c, p->s));
    corpus_split *split = &p->c->split[SPLIT_TEST];
    for (uint32_t i = 0; i < split->n_examples; i += p->s->batch) {
        const uint32_t n = vpps_min_u32(p->s->batch, split->n_examples - i);
        answers_clear(&p->answers);
        VPPS_TRY(answer(p, i, n));
        if (!VPPS_RESERVE(p->lines, p->capacity, n)) return vpps_fail(VPPS_MEMORY, "no memory for %u lattices", n);
        for (uint32_t k = 0; k < n; k++) p->lines[k].example = k;
        p->n_lines = n;
        VPPS_TRY(print_answers(p));
    }
    corpus_clear_split(split);
    p->n_lines = 0;
    return VPPS_OK;
}

/* Answers what is in a file; path NULL: on standard input. */
static vpps_status predict_file(predictor *p, const char *path) {
    const bool of_ids = p->s->network->kind == NET_LATTICES && !p->c->vocab[VOCAB_LEXICON];
    const size_t limit = p->s->line_bytes && !of_ids ? (size_t)p->s->line_bytes : SIZE_MAX / 4;
    vpps_status status = lines_open(&p->reader, path, limit);
    if (status == VPPS_OK) status = of_ids ? predict_whole(p) : predict_lines(p);
    lines_close(&p->reader);
    return status;
}

static vpps_status open_predictor(predictor *p, settings *s) {
    session *x = p->x;
    corpus *c = p->c;
    VPPS_TRY(checkpoint_describe(s->model, s, c, NULL));
    options_complete(s);
    VPPS_TRY(output_files_check(s));
    VPPS_TRY(output_file_check(s->trace));
    VPPS_TRY(session_open(x, s, c));
    VPPS_TRY(session_load(x, s->model));
    VPPS_TRY(answers_open(&p->answers, s, c));
    if (!c->vocab[VOCAB_CLASSES] || s->network->kind != NET_TREES) return VPPS_OK;
    p->n_class_names = vpps_vocab_size(c->vocab[VOCAB_CLASSES]);
    return vpps_vocab_to_text(c->vocab[VOCAB_CLASSES], &p->class_names);
}

static vpps_status predict(predictor *p, settings *s) {
    VPPS_TRY(open_predictor(p, s));
    if (s->n_files == 0) VPPS_TRY(predict_file(p, NULL));
    for (int i = 0; i < s->n_files; i++) VPPS_TRY(predict_file(p, s->files[i]));
    return session_write_trace(p->x);
}

int command_predict(settings *s) {
    if (!s->model) return report_usage("predict", "--model FILE is missing");
    session x = {0};
    corpus c = {0};
    predictor p = {.s = s, .x = &x, .c = &c};
    const vpps_status status = predict(&p, s);
    if (status != VPPS_OK) report_failure(status);
    answers_close(&p.answers);
    free(p.lines);
    free(p.class_names);
    session_close(&x);
    corpus_close(&c);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
