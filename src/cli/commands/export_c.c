/* export_c.c - writes a checkpoint's network as C. The text is made in memory first; then each file is written atomically. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/output/report.h"
#include "cli/session/checkpoint.h"
#include "cli/session/measure.h"
#include "export/export.h"
#include "io/output.h"

/* An output file while its text is made in memory. */
typedef struct made {
    FILE *file;
    char *text;
    size_t bytes;
} made;

/* ---------------------------------------------------------------- vocabularies */

static const char *const vocab_words[N_VOCABS] = {"word", "character", "edge_type", "class", NULL};

/* Prints a text as a C string; bytes that are not printable ASCII are octal escapes. */
static void put_string(FILE *f, const char *text) {
    fputc('"', f);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c == '?' || c < 0x20 || c >= 0x7f)
            fprintf(f, "\\%03o", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static int by_text(const void *a, const void *b, void *vocab) {
    return strcmp(vpps_vocab_word(vocab, *(const uint32_t *)a), vpps_vocab_word(vocab, *(const uint32_t *)b));
}

static const char *prefix_of(const settings *s) { return s->prefix ? s->prefix : "net"; }

/* Prints a vocabulary as C: an array of its texts, their numbers sorted by text, and functions that look up a number or a text. */
static vpps_status put_vocab(const settings *s, FILE *f, FILE *declarations, vpps_vocab *vocab, const char *name) {
    const char *prefix = prefix_of(s);
    const uint32_t n = vpps_vocab_size(vocab);
    uint32_t *order = malloc((n + 1u) * sizeof *order);
    if (!order) return vpps_fail(VPPS_MEMORY, "no memory for %u texts", n);
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    qsort_r(order, n, sizeof *order, by_text, vocab);
    fprintf(f, "\nstatic const char *const %s_texts[%u] = {", name, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        fputs(i % 8 ? " " : "\n", f);
        put_string(f, vpps_vocab_word(vocab, i));
        fputc(',', f);
    }
    fprintf(f, "\nNULL};\nstatic const uint32_t %s_order[%u] = {", name, n + 1);
    for (uint32_t i = 0; i < n; i++) fprintf(f, "%s%u,", i % 16 ? " " : "\n", order[i]);
    fprintf(f,
            "\n0};\nuint32_t %s_%s_number(const char *text, size_t len) { return number_of(%s_texts, %s_order, %u, "
            "text, len); }\n"
            "const char *%s_%s_text(uint32_t number) { return number < %u ? %s_texts[number] : NULL; }\n",
            prefix, name, name, name, n, prefix, name, n, name);
    free(order);
    fprintf(declarations,
            "/* %s_%s_number returns the number, less than %u, of a %s of `len` bytes; UINT32_MAX: it is unknown.%s\n"
            " * %s_%s_text returns the %s with a number; NULL: there is none. */\n"
            "uint32_t %s_%s_number(const char *text, size_t len);\nconst char *%s_%s_text(uint32_t number);\n\n",
            prefix, name, n, name, strcmp(name, "word") == 0 ? " Give the network 0 for unknown words." : "", prefix,
            name, name, prefix, name, prefix, name);
    return VPPS_OK;
}

static const char find_text[] =
    "\n/* Finds the number of a text of len bytes by binary search; order[] has the numbers of the texts in the order\n"
    " * of strcmp. UINT32_MAX: there is no such text. */\n"
    "static uint32_t number_of(const char *const *texts, const uint32_t *order, uint32_t n, const char *text, size_t "
    "len) {\n"
    "    uint32_t first = 0;\n"
    "    while (first < n) {\n"
    "        const uint32_t middle = first + (n - first) / 2;\n"
    "        const char *at = texts[order[middle]];\n"
    "        const int differ = strncmp(at, text, len);\n"
    "        if (differ == 0 && at[len] == '\\0') return order[middle];\n"
    "        if (differ < 0) first = middle + 1;\n"
    "        else n = middle;\n"
    "    }\n"
    "    return UINT32_MAX;\n"
    "}\n";

/* Prints the network's vocabularies as C. The prototypes of their functions go to the header if there is one. */
static vpps_status put_vocabs(const settings *s, const corpus *c, FILE *f, FILE *header) {
    bool any = false;
    vpps_status status = VPPS_OK;
    if (header) fprintf(header, "\n#ifndef %s_vocabularies\n#define %s_vocabularies\n\n", prefix_of(s), prefix_of(s));
    for (int k = 0; k < N_VOCABS && status == VPPS_OK; k++) {
        if (!c->vocab[k] || !vocab_words[k]) continue;
        if (!any) fputs(find_text, f);
        any = true;
        status = put_vocab(s, f, header ? header : f, c->vocab[k], vocab_words[k]);
    }
    if (header) fputs("#endif\n", header);
    return status;
}

/* ---------------------------------------------------------------- all of it */

static vpps_status make(const settings *s, session *x, const corpus *c, const made files[3]) {
    const vpps_c_export options = {.size = sizeof options,
                                   .prefix = s->prefix,
                                   .omit = s->network->name,
                                   .header = files[1].file,
                                   .header_name = s->header ? basename(s->header) : NULL,
                                   .weights = files[2].file,
                                   .precision = (vpps_c_precision)s->c_precision,
                                   .losses = s->losses};
    VPPS_TRY(vpps_export_c(x->model, files[0].file, &options));
    VPPS_TRY(put_vocabs(s, c, files[0].file, files[1].file));
    return s->main_program ? export_main(x, c, files[0].file) : VPPS_OK;
}

/* ---------------------------------------------------------------- the error of rounded weights */

/* Evaluates the network on the checkpoint's dev data: m[0] with its fp32 weights, m[1] with the rounded weights of the C file. */
static vpps_status compare(const settings *of, session *x, corpus *c, measures m[2]) {
    corpus_split *const dev = &c->split[SPLIT_DEV];
    settings s = *of;
    s.command = COMMAND_EVAL;
    s.quiet = true;
    s.split = SPLIT_DEV;
    VPPS_TRY(open_trained(x, &s, c, true));
    vpps_status status = measure_part(x, c, dev, NULL, &m[0]);
    for (vpps_param p = 0; p < vpps_param_count(x->model); p++)
        vpps_c_round(x->model, p, (vpps_c_precision)s.c_precision);
    if (status == VPPS_OK) status = vpps_write_parameters(x->handle);
    if (status == VPPS_OK) status = measure_part(x, c, dev, NULL, &m[1]);
    session_close(x);
    *x = (session){0}; /* emptied, since a session must not outlive its settings s */
    return status;
}

/* Prints the metrics on dev by fp32 and by rounded weights, or why they cannot be measured, e.g. since the data have moved. */
static void tell_error(const settings *s) {
    static const char *const names[] = {"fp32", "bf16", "int8"};
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    measures m[2];
    const metric *kinds = task_for(s)->metrics;
    if (compare(s, &x, &c, m) != VPPS_OK) {
        fprintf(stderr, "%s: the error of %s is not known: %s\n", s->c_file, names[s->c_precision],
                vpps_error_message());
        return;
    }
    fprintf(stderr, "%s: on dev", s->c_file);
    for (int i = 0; i < MAX_METRICS && kinds[i].name; i++) {
        char exact[64], rounded[64];
        report_metric(&kinds[i], m[0].value[i], exact, sizeof exact);
        report_metric(&kinds[i], m[1].value[i], rounded, sizeof rounded);
        if (m[0].value[i] == m[0].value[i])
            fprintf(stderr, "%s %s by %s, %s by fp32", i ? ";" : "", rounded, names[s->c_precision], exact);
    }
    fputc('\n', stderr);
}

/* Loads the checkpoint's network. Processor speed is not measured for tuning, since nothing is computed. */
static vpps_status open_network(session *x, settings *s, corpus *c) {
    VPPS_TRY(checkpoint_describe(s->model, s, c, NULL));
    options_complete(s);
    if (s->main_program) VPPS_TRY(export_main_check(s));
    s->vps = 1;
    s->no_tuning = true;
    VPPS_TRY(session_open(x, s, c));
    return session_load(x, s->model);
}

static vpps_status make_and_write(settings *s, session *x, corpus *c, made files[3]) {
    const char *const paths[] = {s->c_file, s->header, s->weights};
    VPPS_TRY(open_network(x, s, c));
    vpps_status status = VPPS_OK;
    for (int i = 0; i < 3; i++) {
        if (paths[i]) files[i].file = open_memstream(&files[i].text, &files[i].bytes);
        if (paths[i] && !files[i].file) status = vpps_fail(VPPS_MEMORY, "no memory for the text of %s", paths[i]);
    }
    if (status == VPPS_OK) status = make(s, x, c, files);
    for (int i = 0; i < 3; i++)
        if (files[i].file) status = vpps_text_end(files[i].file, status, &files[i].text);
    for (int i = 0; i < 3 && status == VPPS_OK; i++)
        if (paths[i]) status = vpps_output_write_file(paths[i], files[i].text, files[i].bytes);
    return status;
}

vpps_status export_as_c(settings *s) {
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    made files[3] = {0};
    const vpps_status status = make_and_write(s, &x, &c, files);
    VPPS_FREE(files[0].text, files[1].text, files[2].text);
    if (status == VPPS_OK && s->c_precision) tell_error(s);
    return status;
}
