/* main.c - `vpps COMMAND [NETWORK] [OPTION...]`. */
#include "cli/cache.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/parse.h"

#include <string.h>

static int run_cache(settings *s) { return command_cache(s->action, s->json); }

/* What must follow a command. */
typedef enum operand_kind { OPERAND_NONE, OPERAND_NETWORK, OPERAND_ACTION } operand_kind;
static const char *const operand_names[] = {"", "NETWORK", "ACTION"};

static const struct command {
    const char *name;
    command_bit bit;
    operand_kind operand;
    int (*run)(settings *s);
    const char *summary;
} commands[] = {
    {"train", COMMAND_TRAIN, OPERAND_NETWORK, command_train, "train a network"},
    {"eval", COMMAND_EVAL, OPERAND_NETWORK, command_eval, "measure a checkpoint"},
    {"predict", COMMAND_PREDICT, OPERAND_NETWORK, command_predict, "label, tag or translate what comes on stdin"},
    {"script", COMMAND_SCRIPT, OPERAND_NETWORK, command_script, "print the device script of the first batch"},
    {"cell", COMMAND_CELL, OPERAND_NETWORK, command_cell, "print a network's cells as they are compiled"},
    {"plan", COMMAND_PLAN, OPERAND_NETWORK, command_plan, "show how a network's matrices lie in a GPU's registers"},
    {"kernel", COMMAND_KERNEL, OPERAND_NETWORK, command_kernel,
     "print a network's GPU kernel, or what the compiler says of it"},
    {"tune", COMMAND_TUNE, OPERAND_NETWORK, command_tune, "find the fastest plan for a GPU, by training with each"},
    {"cache", COMMAND_CACHE, OPERAND_ACTION, run_cache, "list, clear or path: compiled kernels on disk"},
    {"doctor", COMMAND_DOCTOR, OPERAND_NONE, command_doctor, "show devices, processor, memory and libraries"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_networks(FILE *f) {
    fputs("Networks:\n", f);
    for (const network *const *n = networks; *n; n++) {
        fprintf(f, "  %-15s %s (%s)\n", (*n)->name, (*n)->summary, (*n)->source);
    }
}

static int print_help(void) {
    puts("Usage: vpps COMMAND [NETWORK] [OPTION...]\n"
         "Train dynamic neural networks with virtual persistent processors.\n\n"
         "Commands:");
    for (int i = 0; i < N_COMMANDS; i++) {
        printf("  %-8s %-7s  %s\n", commands[i].name, operand_names[commands[i].operand], commands[i].summary);
    }
    putchar('\n');
    print_networks(stdout);
    puts("\n`vpps COMMAND NETWORK --help' lists a command's options; `vpps --version' prints the version.\n"
         "Exit status: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted.");
    return fflush(stdout) == 0 ? 0 : EXIT_RUNTIME;
}

static const struct command *find_command(const char *name) {
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

static bool asks_for_help(int argc, char **argv) {
    return argc > 2 &&
           (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-?") == 0 || strcmp(argv[2], "--usage") == 0);
}

static int network_missing(const struct command *command) {
    fprintf(stderr, "vpps %s: the network's name must follow: vpps %s NETWORK [OPTION...]\n", command->name,
            command->name);
    print_networks(stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv) {
    if (argc < 2) return report_usage(NULL, "a command is missing");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        return print_help();
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("vpps %s\n", vpps_version());
        return fflush(stdout) == 0 ? 0 : EXIT_RUNTIME;
    }
    const struct command *command = find_command(argv[1]);
    if (!command) return report_usage(NULL, "'%s' is not a command", argv[1]);

    settings s = {.command = command->bit};
    int used = 2;
    const char *word = argc > 2 && argv[2][0] != '-' ? argv[2] : NULL;
    if (command->operand == OPERAND_NETWORK) {
        if (!word && !asks_for_help(argc, argv)) return network_missing(command);
        s.network = word ? network_find(word) : networks[0]; /* help without a name: the first one's options */
        if (!s.network) {
            fprintf(stderr, "vpps %s: '%s' is not a network\n", command->name, word);
            print_networks(stderr);
            return EXIT_USAGE;
        }
    }
    if (command->operand == OPERAND_ACTION) s.action = word;
    if (command->operand != OPERAND_NONE && word) used = 3;
    /* argp names the program by argv[0]; what it parses begins after it. */
    static char name[96];
    snprintf(name, sizeof name, "vpps %s%s%s", command->name, s.network ? " " : "", s.network ? s.network->name : "");
    argv[used - 1] = name;
    options_parse(&s, argc - used + 1, argv + used - 1);
    return command->run(&s);
}
