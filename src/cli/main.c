/* main.c - `vpps COMMAND [NETWORK] [OPTION...]`. */
#include "evaluate.h"
#include "report.h"
#include "train.h"

#include <string.h>

static const struct command {
    const char *name;
    command_bit bit;
    bool takes_network;
    int (*run)(settings *s);
    const char *summary;
} commands[] = {
    {"train", COMMAND_TRAIN, true, command_train, "train a network"},
    {"eval", COMMAND_EVAL, true, command_eval, "measure a checkpoint's accuracy"},
    {"predict", COMMAND_PREDICT, true, command_predict, "label trees from stdin"},
    {"script", COMMAND_SCRIPT, true, command_script, "print the device script of the first batch"},
    {"doctor", COMMAND_DOCTOR, false, command_doctor, "show devices, processor, memory and libraries"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_networks(FILE *f) {
    fputs("Networks:\n", f);
    for (const network *const *n = networks; *n; n++) {
        fprintf(f, "  %-10s %s (%s)\n", (*n)->name, (*n)->summary, (*n)->source);
    }
}

static int print_help(void) {
    puts("Usage: vpps COMMAND [NETWORK] [OPTION...]\n"
         "Train dynamic neural networks with virtual persistent processors.\n\n"
         "Commands:");
    for (int i = 0; i < N_COMMANDS; i++) {
        printf("  %-8s%s  %s\n", commands[i].name, commands[i].takes_network ? " NETWORK" : "        ",
               commands[i].summary);
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
    if (command->takes_network) {
        const bool named = argc > 2 && argv[2][0] != '-';
        const bool help = argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-?") == 0 ||
                                       strcmp(argv[2], "--usage") == 0);
        if (!named && !help) {
            fprintf(stderr, "vpps %s: the network's name must follow: vpps %s NETWORK [OPTION...]\n", command->name,
                    command->name);
            print_networks(stderr);
            return EXIT_USAGE;
        }
        s.network = named ? network_find(argv[2]) : networks[0]; /* help without a name: the first one's options */
        if (!s.network) {
            fprintf(stderr, "vpps %s: '%s' is not a network\n", command->name, argv[2]);
            print_networks(stderr);
            return EXIT_USAGE;
        }
        if (named) used = 3;
    }
    /* argp names the program by argv[0]; what it parses begins after it. */
    static char name[96];
    snprintf(name, sizeof name, "vpps %s%s%s", command->name, s.network ? " " : "", s.network ? s.network->name : "");
    argv[used - 1] = name;
    options_parse(&s, argc - used + 1, argv + used - 1);
    return command->run(&s);
}
