/* parse.c - argp, made from the table of options. */
#include "cli/parse.h"
#include "base/base.h"
#include "cli/failure.h"
#include "cli/task.h"

#include <argp.h>
#include <math.h>

static error_t parse_one(int key, char *arg, struct argp_state *state) {
    settings *s = state->input;
    if (key == ARGP_KEY_ARG) argp_error(state, "'%s': too many arguments", arg);
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].key != key || !options_apply(s, &rows[i])) continue;
        char why[160];
        if (!options_read(s, &rows[i], arg ? arg : "yes", why, sizeof why)) {
            argp_error(state, "--%s: '%s' is not %s", rows[i].row.name, arg, why);
        }
        s->given[i] = true;
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* What --help shows as the default; NULL: nothing. */
static const char *default_text(const settings *s, const cli_option *o, char *text, size_t n) {
    if (o->row.kind == OPTION_FLAG || strstr(o->row.help, "default")) return NULL;
    options_write(s, o, text, n);
    return *text ? text : NULL;
}

static const struct {
    command_bit command;
    const char *arguments, *text;
} commands[] = {
    {COMMAND_TRAIN, "", "Train a network. With no options: on generated data, with every core allowed."},
    {COMMAND_EVAL, "--model FILE", "Measure a checkpoint on the data it was trained with, or on other data."},
    {COMMAND_PREDICT, "--model FILE <INPUT",
     "Read examples from stdin, one a line, and print what a checkpoint's network says of them: bracketed trees (a "
     "label may be -1) with labels, sentences with tags, perplexities of sentences, translations."},
    {COMMAND_SCRIPT, "", "Print the device script of the first training batch."},
    {COMMAND_CELL, "",
     "Print the cells of the first training batch as they are compiled for the device's virtual processors: stages and "
     "their operations, what is kept, contributed and deferred, what it costs."},
    {COMMAND_PLAN, "",
     "Show which rows of which matrix would lie in the registers of a GPU: the most promising plan, or all that fit. "
     "Needs no GPU. Without --model and data the network has 1000 words and 5 classes, or says one of the words."},
    {COMMAND_KERNEL, "",
     "Print the CUDA C++ source of the network's kernel for its most promising plan; or compile it and report. Needs "
     "no GPU. Without --model and data the network has 1000 words and 5 classes, or says one of the words."},
    {COMMAND_CACHE, "list|clear|path", "List the compiled kernels on disk, remove them, or print where they are."},
    {COMMAND_TUNE, "", "Measure the plans that fit on batches of the training data."},
    {COMMAND_DOCTOR, "", "Show the machine: devices, processor, memory, libraries."},
};

static const char ending[] =
    "\vExit status: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted (SIGINT or SIGTERM: the batch is "
    "finished, --save written and the summary printed; a second signal ends at once).";

/* So many that a run takes a minute or so. */
static uint32_t default_examples(const settings *s) {
    enum { COMPLETE_TREES = 2000 }; /* with many leaves */
    if (!s->network) return 0;
    const bool complete = s->network->kind == NET_TREES && s->generate == NET_COMPLETE_TREES;
    return complete ? COMPLETE_TREES : task_for(s)->n_generated;
}

void options_parse(settings *s, int argc, char **argv) {
    *s = (settings){.command = s->command,
                    .network = s->network,
                    .action = s->action,
                    .leaves = 256,
                    .min_count = s->network && s->network->spells ? 5 : 2,
                    .seed = 1,
                    .split = SPLIT_TEST,
                    .batch = 32,
                    .epochs = 10,
                    .eval_every = 1,
                    .optimizer = VPPS_ADAM,
                    .lr = NAN,
                    .lr_decay = 1,
                    .momentum = 0.9f,
                    .clip = 5,
                    .device = "cpu",
                    .vps_shown = 16,
                    .log_every = 1,
                    .trace_events = 200000,
                    .beam = 1,
                    .length_penalty = 0.6f};
    if (s->network) {
        s->net = s->network->defaults;
        s->generate = s->network->generator;
    }
    s->examples = default_examples(s);

    size_t n, shown = 0;
    const cli_option *rows = options_rows(s, &n);
    struct argp_option list[2 * OPTIONS_MAX + 1] = {0};
    static char docs[OPTIONS_MAX][256];
    const char *group = "", *heading = "";
    for (size_t i = 0; i < n; i++) {
        const cli_option *o = &rows[i];
        if (!o->row.name) group = o->row.help;
        if (!options_apply(s, o)) continue;
        if (strcmp(group, heading) != 0) list[shown++].doc = heading = group;
        char text[128];
        const char *value = default_text(s, o, text, sizeof text);
        snprintf(docs[i], sizeof docs[i], value ? "%s (default: %s)" : "%s", o->row.help, value);
        list[shown++] = (struct argp_option){o->row.name, o->key, o->row.argument, 0, docs[i], 0};
    }

    static char usage[64], doc[1024];
    for (size_t i = 0; i < VPPS_COUNT(commands); i++) {
        if (commands[i].command != s->command) continue;
        snprintf(usage, sizeof usage, "%s", commands[i].arguments);
        snprintf(doc, sizeof doc, "%s%s", commands[i].text, ending);
    }
    for (size_t i = 0, headings = 0; i < shown; i++) { /* argp sorts within a group, and a group begins at a heading */
        if (!list[i].name) headings++;
        list[i].group = (int)headings;
    }
    const struct argp argp = {list, parse_one, usage, doc, NULL, NULL, NULL};
    argp_err_exit_status = EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, s);
    if (options_given(s, "generate") && options_name_files(s)) {
        exit(report_usage(argv[0] + strlen("vpps "),
                          "--generate and --data (or --train, --dev, --test) exclude each other"));
    }
    static const char *const of_files[] = {"lexicon", "source", "target", "word-column", "tag-column"};
    for (size_t i = 0; i < VPPS_COUNT(of_files); i++) {
        if (!options_given(s, of_files[i]) || options_name_files(s) || s->model || s->resume) continue;
        exit(report_usage(argv[0] + strlen("vpps "), "--%s goes with --data or --train", of_files[i]));
    }
    if (s->freeze_vectors && !s->vectors && !s->resume) {
        exit(report_usage(argv[0] + strlen("vpps "), "--freeze-vectors goes with --vectors"));
    }
    if (!options_given(s, "examples")) s->examples = default_examples(s);
}
