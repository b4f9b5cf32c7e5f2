/* main.c - runs a command line: `vpps COMMAND [NETWORK] [OPTION...]`. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/signals.h"
#include "cli/common/suggest.h"
#include "cli/common/terminal.h"

#include <unistd.h>

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-?") == 0 ||
           strcmp(word, "--help-engine") == 0;
}

static int unknown_command(const char *word) {
    suggestion near = suggest_for(word);
    for (const command *c = commands; c->name; c++) suggest_try(&near, c->name);
    if (near.word) return report_usage(NULL, "'%s' is not a command; did you mean '%s'?", word, near.word);
    return report_usage(NULL, "'%s' is not a command", word);
}

/* No network's name follows the command: finds out why. If the name follows options, or an option such as --model is misspelt or lacks its
 * value, reports this and returns the exit code; else returns 0. */
static int network_hidden(const command *c, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (network_find(argv[i]))
            return report_usage(c->name, "'%s' must follow the command: vpps %s %s [OPTION...]", argv[i], c->name,
                                argv[i]);
        if (strncmp(argv[i], "--", 2) != 0) continue;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[i] + 2, "="), argv[i] + 2);
        suggestion near = suggest_for(name);
        suggest_try(&near, c->bit & COMMAND_TRAIN ? "resume" : "model");
        if (near.word && near.distance == 0) return report_usage(c->name, "%s: a value must follow", argv[i]);
        if (near.word) return report_usage(c->name, "unrecognized option '--%s'; did you mean --%s?", name, near.word);
    }
    return 0;
}

static int network_missing(const command *c, int argc, char **argv) {
    const int code = network_hidden(c, argc, argv);
    if (code) return code;
    if (command_wants_model(c)) return report_usage(c->name, "--model FILE is missing");
    fprintf(stderr, "vpps %s: the network's name must follow: vpps %s NETWORK [OPTION...]%s\n", c->name, c->name,
            c->bit & COMMAND_TUNE    ? ""
            : c->bit & COMMAND_TRAIN ? ", or --resume FILE"
                                     : ", or --model FILE");
    help_network_names(stderr);
    return EXIT_USAGE;
}

/* Sets s's network to the network of a checkpoint. Returns 0, or an exit code after a failure. */
static int take_network_of(settings *s, const char *file) {
    char *name;
    const vpps_status status = vpps_checkpoint_metadata(file, "network", &name);
    if (status != VPPS_OK) return exit_code(status);
    s->network = name ? network_find(name) : NULL;
    if (!name)
        fprintf(stderr, "vpps: %s: no \"network\" in its metadata: not a checkpoint of `vpps train`\n", file);
    else if (!s->network)
        fprintf(stderr, "vpps: %s holds the network %.64s, which is not known\n", file, name);
    free(name);
    return s->network ? 0 : EXIT_RUNTIME;
}

/* Sets s's network from the command line's checkpoint. Returns 0, or a failure's exit code. */
static int take_network(const command *c, settings *s, int argc, char **argv) {
    const char *file = options_find_checkpoint(s, argc, argv);
    if (file && !*file)
        return report_usage(c->name, "--%s: the value is empty; expected a checkpoint",
                            c->bit & COMMAND_TRAIN ? "resume" : "model");
    return file ? take_network_of(s, file) : network_missing(c, argc, argv);
}

static int unknown_network(const command *c, const char *word) {
    const char *file = c->most_files ? ", nor a file that is there" : "";
    suggestion near = suggest_for(word);
    for (const network *const *n = networks; *n; n++) suggest_try(&near, (*n)->name);
    if (near.word) return report_usage(c->name, "'%s' is not a network%s; did you mean '%s'?", word, file, near.word);
    fprintf(stderr, "vpps %s: '%s' is not a network%s\n", c->name, word, file);
    help_network_names(stderr);
    return EXIT_USAGE;
}

/* Sets s's network to the one that the command line names, directly or by a checkpoint. Returns 0, or an exit code after a failure. *used: number
 * of words of the line that were read. `word`: the word after the command; NULL: an option follows the command. */
static int find_network(const command *c, settings *s, const char *word, int argc, char **argv, int *used) {
    if (word) s->network = network_find(word);
    if (s->network) {
        *used = 3;
        return 0;
    }
    if (word && (!c->most_files || access(word, F_OK) != 0)) return unknown_network(c, word);
    if (!word && argc > 2 && is_help(argv[2])) return 0; /* --help before a network asks for help about all networks */
    return take_network(c, s, argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    terminal_guard();
    signals_install();
    if (argc < 2) return report_usage(NULL, "a command is missing");
    const bool help = strcmp(argv[1], "help") == 0;
    if (is_help(argv[1]) || (help && argc == 2)) {
        help_overview(stdout);
        return exit_code(flush_stdout());
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "version") == 0) {
        printf("vpps %s\n", vpps_version());
        return exit_code(flush_stdout());
    }
    static char help_word[] = "--help";
    if (help) { /* vpps help COMMAND is vpps COMMAND --help */
        argv[1] = argv[2];
        argv[2] = help_word;
    }
    const command *c = command_find(argv[1]);
    if (!c) return unknown_command(argv[1]);

    settings s = {.command = c->bit};
    int used = 2;
    const char *word = argc > 2 && argv[2][0] != '-' ? argv[2] : NULL;
    if (c->operand == OPERAND_NETWORK) {
        const int code = find_network(c, &s, word, argc, argv, &used);
        if (code) return code;
    }
    if (c->operand == OPERAND_ACTION && word) {
        s.action = word;
        used = 3;
    }
    options_parse(&s, c, argc - used + 1, argv + used - 1);
    if (command_wants_model(c) && !s.model) return report_usage(c->name, "--model FILE is missing");
    return c->run(&s);
}
