/* parse.c - parses the command line by getopt_long(3), and reports its errors. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/suggest.h"
#include "cli/input/task.h"
#include "cli/output/answer_print.h"
#include "runtime/devices.h"

#include <getopt.h>
#include <math.h>
#include <stdarg.h>

enum { KEY_HELP = 'h', KEY_HELP_ENGINE = 0x1000 };

/* ---------------------------------------------------------------- mistakes */

__attribute__((format(printf, 3, 4))) static _Noreturn void refuse(const settings *s, const command *c,
                                                                   const char *format, ...) {
    char name[96], message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(name, sizeof name, "%s%s%s", c->name, s->network ? " " : "", s->network ? s->network->name : "");
    exit(report_usage(name, "%s", message));
}

/* Lists the commands that have the option, as "train, tune"; empty: no command. *kinds: the kinds of networks that have the option, if the
 * chosen one has not. */
static void commands_with(const settings *s, const char *name, char *text, size_t n, uint32_t *kinds) {
    size_t len = 0;
    *text = 0;
    *kinds = 0;
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        if (!o->row.name || strcmp(o->row.name, name) != 0) continue;
        if (o->kinds && s->network && !(o->kinds >> s->network->kind & 1)) {
            *kinds |= o->kinds;
            continue;
        }
        for (const command *c = commands; c->name && len < n; c++)
            if (o->commands & c->bit) len += (size_t)snprintf(text + len, n - len, "%s%s", len ? ", " : "", c->name);
    }
}

static _Noreturn void refuse_long(const settings *s, const command *c, const char *word) {
    char name[64], others[128], possible[256];
    size_t len = 0, matching = 0;
    const char *begin = word + strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(begin, "="), begin);
    suggestion near = suggest_for(name);
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        if (!options_apply(s, o)) continue;
        if (strcmp(o->row.name, name) == 0) refuse(s, c, "--%s takes no value", name);
        suggest_try(&near, o->row.name);
        if (strncmp(o->row.name, name, strlen(name)) != 0 || len >= sizeof possible) continue;
        len += (size_t)snprintf(possible + len, sizeof possible - len, "%s--%s", matching++ ? ", " : "", o->row.name);
    }
    if (matching > 1) refuse(s, c, "--%s is ambiguous; possible are %s", name, possible);
    const vpps_device_table *device = vpps_device_named(name);
    if (device) refuse(s, c, "unrecognized option '%s'; did you mean --device %s?", word, device->name);
    uint32_t kinds;
    commands_with(s, name, others, sizeof others, &kinds);
    if (*others) refuse(s, c, "'%s' is an option of %s, not of %s", word, others, c->name);
    for (const network *const *other = networks; kinds && *other; other++)
        if (kinds >> (*other)->kind & 1)
            refuse(s, c, "'%s' is an option of %s and others, not of %s", word, (*other)->name, s->network->name);
    if (near.word) refuse(s, c, "unrecognized option '%s'; did you mean --%s?", word, near.word);
    refuse(s, c, "unrecognized option '%s'", word);
}

/* ---------------------------------------------------------------- the line */

/* Returns the items given to a list option earlier on the command line, joined with the items of `value`. The text is never freed. */
static const char *add_items(const settings *s, const command *c, const cli_option *o, const char *value) {
    static char *lists[OPTIONS_MAX];
    static size_t n;
    if (n == OPTIONS_MAX) refuse(s, c, "--%s is given more than %d times", o->row.name, OPTIONS_MAX);
    if (asprintf(&lists[n], "%s,%s", options_text(s, o), value) < 0) refuse(s, c, "no memory for --%s", o->row.name);
    return lists[n++];
}

static void take(settings *s, const command *c, const cli_option *o, const char *value) {
    char why[160];
    if ((o->flags & OPTION_LIST) && s->given[o->number] && value && *value) value = add_items(s, c, o, value);
    if (!options_read(s, o, value ? value : "yes", why, sizeof why)) {
        if (!value || !*value) refuse(s, c, "--%s: the value is empty; expected %s", o->row.name, why);
        refuse(s, c, "--%s: '%s' is not %s", o->row.name, value, why);
    }
    s->given[o->number] = true;
}

/* Prints the help and exits. The defaults shown do not depend on the options that precede --help. */
static _Noreturn void show(const settings *s, const command *c, int key) {
    const settings defaults = options_defaults(s);
    help_options(stdout, &defaults, c, key == KEY_HELP_ENGINE ? HELP_ENGINE : HELP_COMMON);
    exit(exit_code(flush_stdout()));
}

typedef struct getopt_table {
    char letters[2 * OPTIONS_MAX + 8];
    struct option list[OPTIONS_MAX + 4];
} getopt_table;

/* Adds to a table for getopt the options of s's command, for s's network or for any (of_all_kinds). Returns the number of long options. */
static size_t list_options(const settings *s, bool of_all_kinds, getopt_table *t) {
    size_t n_long = 0, n_short = strlen(t->letters);
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        if (!o->row.name || !(of_all_kinds ? (o->commands & s->command) != 0 : options_apply(s, o))) continue;
        const bool value = o->row.kind != OPTION_FLAG;
        t->list[n_long++] = (struct option){o->row.name, value ? required_argument : no_argument, NULL, o->key};
        if (o->key < 0x100) t->letters[n_short++] = (char)o->key;
        if (o->key < 0x100 && value) t->letters[n_short++] = ':';
    }
    return n_long;
}

/* Takes the files that follow the options. `predict` reads all of them; `eval` has only one, and measures it in place of --test's. */
static void take_files(settings *s, const command *c, int n, char **files) {
    static const char standard_input[] = "/dev/stdin";
    s->files = files;
    s->n_files = n;
    if (n == 0 || c->bit != COMMAND_EVAL) return;
    if (options_given(s, "test") || options_given(s, "split"))
        refuse(s, c, "'%s': a file is measured in place of --test: neither --test nor --split goes with it", files[0]);
    take(s, c, options_find(s, "test"), strcmp(files[0], "-") == 0 ? standard_input : files[0]);
}

static void parse_line(settings *s, const command *c, int argc, char **argv) {
    getopt_table table = {.letters = ":h"}; /* ':': getopt distinguishes a missing value from an unknown option */
    size_t n_long = list_options(s, false, &table);
    table.list[n_long++] = (struct option){"help", no_argument, NULL, KEY_HELP};
    if (help_has_engine(s)) table.list[n_long] = (struct option){"help-engine", no_argument, NULL, KEY_HELP_ENGINE};
    opterr = 0;
    for (int key; (key = getopt_long(argc, argv, table.letters, table.list, NULL)) != -1;) {
        const char *word = optind > 0 ? argv[optind - 1] : "";
        switch (key) {
        case KEY_HELP:
        case KEY_HELP_ENGINE: show(s, c, key); break;
        case ':': refuse(s, c, "%s: a value must follow", word); break;
        case '?':
            if (optopt == '?' || strcmp(word, "-?") == 0) show(s, c, KEY_HELP);
            if (strncmp(word, "--", 2) == 0) refuse_long(s, c, word);
            refuse(s, c, "unrecognized option '-%c'", optopt);
        default:
            for (const cli_option *o = options_rows(s); o->row.help; o++)
                if (o->key == key && options_apply(s, o)) {
                    take(s, c, o, optarg);
                    break;
                }
        }
    }
    if (c->operand == OPERAND_ACTION && !s->action && optind < argc) s->action = argv[optind++];
    if (argc - optind > c->most_files) refuse(s, c, "'%s': too many arguments", argv[optind + c->most_files]);
    take_files(s, c, argc - optind, argv + optind);
}

/* ---------------------------------------------------------------- defaults, and what goes together */

static void check_together(const settings *s, const command *c) {
    if (options_given(s, "generate") && options_name_files(s))
        refuse(s, c, "--generate and --data (or --train, --dev, --test) exclude each other");
    if (s->init && s->resume) refuse(s, c, "--init begins a run, --resume goes on with one: not both");
    if (s->command == COMMAND_PREDICT && s->json && s->output_format != OUTPUT_AUTO && s->output_format != OUTPUT_JSONL)
        refuse(s, c, "--json prints JSON: it excludes another --output-format");
}

/* Refuses an option that has no effect without a second option, its companion. */
static void check_companions(const settings *s, const command *c) {
    const bool files = options_name_files(s), known = s->model || s->resume;
    const struct {
        const char *option, *companion;
        bool found; /* whether the companion, without which `option` has no effect, was given */
    } list[] = {
        {"examples", "generated data, without --data or --train", !files},
        {"leaves", "--generate complete", known || (!files && s->generate == NET_COMPLETE_TREES)},
        {"save-every", "--save", s->save || s->resume},
        {"log-every", "--log", s->log},
        {"trace-events", "--trace", s->trace},
        {"header", "--c FILE.c", s->c_file},
        {"weights", "--c FILE.c", s->c_file},
        {"prefix", "--c FILE.c", s->c_file},
        {"precision", "--c FILE.c", s->c_file || s->command != COMMAND_EXPORT},
        {"losses", "--c FILE.c", s->c_file},
        {"main", "--c FILE.c", s->c_file},
        {"no-cache", "--report", s->report},
    };
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        const char *name = o->row.name;
        if (!s->given[o->number] || !name) continue;
        if ((o->flags & OPTION_FILES) && !files && !known) refuse(s, c, "--%s goes with --data or --train", name);
        for (size_t k = 0; k < VPPS_COUNT(list); k++)
            if (!list[k].found && strcmp(name, list[k].option) == 0)
                refuse(s, c, "--%s goes with %s", name, list[k].companion);
    }
    if (s->freeze_vectors && !s->vectors && !s->resume) refuse(s, c, "--freeze-vectors goes with --vectors");
    if (s->command == COMMAND_KERNEL && s->json && !s->report) refuse(s, c, "--json goes with --report");
}

void options_parse(settings *s, const command *c, int argc, char **argv) {
    *s = options_defaults(s);
    parse_line(s, c, argc, argv);
    check_together(s, c);
    check_companions(s, c);
    if (!options_given(s, "examples")) s->examples = options_default_examples(s);
}

/* While the network of a command line is unknown, the options of that network are unknown, too: they are skipped, and their values are
 * taken for arguments. */
const char *options_find_checkpoint(const settings *s, int argc, char **argv) {
    getopt_table table = {.letters = "-"}; /* '-': getopt keeps arguments in their place */
    const char *checkpoint = NULL;
    list_options(s, true, &table);
    optind = 0; /* makes GNU's getopt start from the beginning */
    opterr = 0;
    for (int key; (key = getopt_long(argc, argv, table.letters, table.list, NULL)) != -1;)
        for (const cli_option *o = options_rows(s); o->row.help; o++)
            if (o->key == key && o->row.name && (o->flags & OPTION_NAMES_NETWORK)) checkpoint = optarg;
    optind = 0;
    return checkpoint;
}
