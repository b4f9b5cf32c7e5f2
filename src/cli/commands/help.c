/* help.c - prints --help. */
#include "base/base.h"
#include "cli/commands/commands.h"

enum { WIDTH = 79, OPTION_COLUMN = 29, NETWORK_COLUMN = 23 };

static const char *const operand_names[] = {"", "NETWORK", "ACTION"};

/* Prints words from column `at` on; following lines are indented by `indent`. */
static void wrap(FILE *f, const char *text, int at, int indent) {
    for (bool first = true; *text; first = false) {
        const int len = (int)strcspn(text, " ");
        if (!first && at + 1 + len > WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', f);
            at++;
        }
        fprintf(f, "%.*s", len, text);
        at += len;
        text += len + (text[len] == ' ');
    }
    fputc('\n', f);
}

/* Prints a name and, from column `column` on, its description; on the next line if the name is too long. */
static void row(FILE *f, const char *name, const char *text, int column) {
    const int len = (int)strlen(name);
    fprintf(f, len + 2 <= column ? "%s%*s" : "%s\n%*s", name, len + 2 <= column ? column - len : column, "");
    wrap(f, text, column, column);
}

void help_network_names(FILE *f) {
    char names[1024] = "";
    size_t len = 0;
    for (const network *const *n = networks; *n && len < sizeof names; n++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", (*n)->name, n[1] ? ", " : "");
    const int indent = fprintf(f, "Networks: ");
    wrap(f, names, indent, indent);
}

void help_overview(FILE *f) {
    fputs("Usage: vpps COMMAND [NETWORK] [OPTION...]\n"
          "Train dynamic neural networks with virtual persistent processors.\n",
          f);
    for (const command *c = commands; c->name; c++) {
        char name[64];
        if (c->group) fprintf(f, "\nCommands %s:\n", c->group);
        snprintf(name, sizeof name, "  %-10s %s", c->name, operand_names[c->operand]);
        row(f, name, c->summary, NETWORK_COLUMN);
    }
    fputs("\nNetworks:\n", f);
    for (const network *const *n = networks; *n; n++) {
        char name[64];
        snprintf(name, sizeof name, "  %s", (*n)->name);
        row(f, name, (*n)->summary, NETWORK_COLUMN);
    }
    fputs("\n`vpps COMMAND --help' lists a command's options, `vpps COMMAND NETWORK --help' those\n"
          "of a network, too; `vpps --version' prints the version.\n"
          "Exit status: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted.\n",
          f);
}

/* Writes the option's help text, followed by its default (the option's value in s) unless the text tells the default. */
static void describe(const settings *s, const cli_option *o, char *text, size_t n) {
    char value[128] = "";
    const size_t offset = o->row.offset;
    if (!s->network && (offset == offsetof(settings, examples) || offset == offsetof(settings, min_count)))
        snprintf(value, sizeof value, "by network");
    else if (o->row.kind != OPTION_FLAG && !strstr(o->row.help, "default"))
        options_write(s, o, value, sizeof value);
    snprintf(text, n, *value ? "%s (default: %s)" : "%s", o->row.help, value);
}

static void print_option(FILE *f, int key, const char *name, const char *argument, const char *text) {
    char left[128], letter[8] = "    ";
    if (key && key < 0x100) snprintf(letter, sizeof letter, "-%c, ", key);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, name, argument ? "=" : "", argument ? argument : "");
    row(f, left, text, OPTION_COLUMN);
}

static void print_usage(FILE *f, const settings *s, const command *c) {
    const char *name = s->network                      ? s->network->name
                       : c->operand != OPERAND_NETWORK ? ""
                       : command_wants_model(c)        ? "[NETWORK]"
                                                       : "NETWORK";
    fprintf(f, "Usage: vpps %s%s%s [OPTION...]", c->name, *name ? " " : "", name);
    fprintf(f, *c->arguments ? " %s\n" : "%s\n", c->arguments);
}

/* Prints one part of the options, common or engine options, under their headings; f NULL: prints nothing. Returns their number. */
static size_t print_rows(FILE *f, const settings *s, help_part part) {
    size_t printed = 0;
    const cli_option *group = NULL, *heading = NULL;
    for (const cli_option *o = options_rows(s); o->row.help; o++) {
        if (!o->row.name) group = o;
        const bool common = !group || (group->commands & s->command);
        if (!options_apply(s, o) || common != (part == HELP_COMMON)) continue;
        printed++;
        if (!f) continue;
        if (group != heading) fprintf(f, "\n%s\n", group->row.help);
        heading = group;
        char text[512];
        describe(s, o, text, sizeof text);
        print_option(f, o->key, o->row.name, o->row.argument, text);
    }
    return printed;
}

bool help_has_engine(const settings *s) { return print_rows(NULL, s, HELP_ENGINE) > 0; }

/* Prints how to see the options that this help leaves out. */
static void print_more(FILE *f, const settings *s, const command *c) {
    char text[256];
    if (c->operand != OPERAND_NETWORK || s->network) return;
    snprintf(text, sizeof text, "A network has options of its own: `vpps %s NETWORK --help' lists them, too%s.",
             c->name, command_wants_model(c) ? ", and so does `--model MODEL --help' for a checkpoint's" : "");
    fputc('\n', f);
    wrap(f, text, 0, 0);
    fputc('\n', f);
    help_network_names(f);
}

void help_options(FILE *f, const settings *s, const command *c, help_part part) {
    print_usage(f, s, c);
    if (s->network && part == HELP_COMMON) {
        char text[512];
        snprintf(text, sizeof text, "%s: %s (%s).", s->network->name, s->network->summary, s->network->source);
        wrap(f, text, 0, 0);
    }
    wrap(f,
         part == HELP_COMMON ? c->text
                             : "Options that shape how the engine runs. Results are the same but for rounding.",
         0, 0);
    print_rows(f, s, part);
    if (part == HELP_ENGINE) return;
    fputs("\nHelp:\n", f);
    print_option(f, 'h', "help", NULL, "Print this list");
    if (help_has_engine(s)) print_option(f, 0, "help-engine", NULL, "Print the options that shape how the engine runs");
    print_more(f, s, c);
    fputc('\n', f);
    wrap(f, "A long option may be cut short where it is still unique; its value may follow as a word of its own.", 0,
         0);
    fputc('\n', f);
    wrap(f,
         "Exit status: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted (SIGINT or SIGTERM: the batch is "
         "finished, --save written and the summary printed; a second signal ends at once).",
         0, 0);
}
