/* help.c - see help.h. */
#include "cli/help.h"
#include "base/base.h"

enum { WIDTH = 79, OPTION_COLUMN = 29, NETWORK_COLUMN = 22 };

static const char *const operand_names[] = {"", "NETWORK", "ACTION"};

/* Prints words from column `at` on, the lines after the first from `indent` on. */
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

/* A name, and from a column on what it is: in the next line, if the name is too long. */
static void row(FILE *f, const char *name, const char *text, int column) {
    const int len = (int)strlen(name);
    fprintf(f, len + 2 <= column ? "%s%*s" : "%s\n%*s", name, len + 2 <= column ? column - len : column, "");
    wrap(f, text, column, column);
}

void help_networks(FILE *f) {
    char name[64], text[512];
    fputs("Networks:\n", f);
    for (const network *const *n = networks; *n; n++) {
        snprintf(name, sizeof name, "  %s", (*n)->name);
        snprintf(text, sizeof text, "%s (%s)", (*n)->summary, (*n)->source);
        row(f, name, text, NETWORK_COLUMN);
    }
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
    fputc('\n', f);
    help_networks(f);
    fputs("\n`vpps COMMAND NETWORK --help' lists a command's options; `vpps --version' prints the version.\n"
          "Exit status: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted.\n",
          f);
}

/* What the default is, behind the text; nothing where the text says it itself. */
static void describe(const settings *s, const cli_option *o, char *text, size_t n) {
    char value[128] = "";
    if (o->row.kind != OPTION_FLAG && !strstr(o->row.help, "default")) options_write(s, o, value, sizeof value);
    snprintf(text, n, *value ? "%s (default: %s)" : "%s", o->row.help, value);
}

static void print_option(FILE *f, int key, const char *name, const char *argument, const char *text) {
    char left[128], letter[8] = "    ";
    if (key && key < 0x100) snprintf(letter, sizeof letter, "-%c, ", key);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, name, argument ? "=" : "", argument ? argument : "");
    row(f, left, text, OPTION_COLUMN);
}

static void print_usage(FILE *f, const settings *s, const command *c) {
    const char *behind = c->operand == OPERAND_ACTION ? c->actions : c->arguments;
    fprintf(f, "Usage: vpps %s%s%s [OPTION...]", c->name, s->network ? " " : "", s->network ? s->network->name : "");
    fprintf(f, *behind ? " %s\n" : "%s\n", behind);
}

void help_options(FILE *f, const settings *s, const command *c) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    const char *group = "", *heading = "";
    print_usage(f, s, c);
    wrap(f, c->text, 0, 0);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].row.name) group = rows[i].row.help;
        if (!rows[i].row.name || !options_apply(s, &rows[i])) continue;
        if (strcmp(group, heading) != 0) fprintf(f, "\n%s\n", heading = group);
        char text[512];
        describe(s, &rows[i], text, sizeof text);
        print_option(f, rows[i].key, rows[i].row.name, rows[i].row.argument, text);
    }
    fputs("\nHelp:\n", f);
    print_option(f, 'h', "help", NULL, "Print this list");
    print_option(f, 0, "usage", NULL, "Print the options' names only");
    fputc('\n', f);
    wrap(f, "A long option may be cut short where it is still unique; its value may follow as a word of its own.", 0,
         0);
    fputc('\n', f);
    wrap(f,
         "Exit status: 0 done, 1 failed while running, 2 wrong usage, 130 interrupted (SIGINT or SIGTERM: the batch is "
         "finished, --save written and the summary printed; a second signal ends at once).",
         0, 0);
}

void help_usage(FILE *f, const settings *s, const command *c) {
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    static char text[64 * OPTIONS_MAX];
    size_t len = 0;
    for (size_t i = 0; i < n && len < sizeof text; i++) {
        const option_row *r = &rows[i].row;
        if (!r->name || !options_apply(s, &rows[i])) continue;
        len += (size_t)snprintf(text + len, sizeof text - len, "[--%s%s%s] ", r->name, r->argument ? "=" : "",
                                r->argument ? r->argument : "");
    }
    print_usage(f, s, c);
    fputs("       ", f);
    wrap(f, text, 7, 7);
}
