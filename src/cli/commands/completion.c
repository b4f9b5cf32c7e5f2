/* completion.c - prints completion scripts for bash and zsh, and the words that the scripts ask for. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"

/* ---------------------------------------------------------------- words, a line each: WORD, or WORD, a tab and a help text */

static void put_files(void) { puts("\t"); }

/* Prints the words of "a|b|FILE"; FILE stands for names of files. */
static void put_choices(const char *choices) {
    for (int len; *choices; choices += len + (choices[len] == '|')) {
        len = (int)strcspn(choices, "|");
        if (strncmp(choices, "FILE", 4) == 0)
            put_files();
        else
            printf("%.*s\n", len, choices);
    }
}

static void put_value(const option_row *o) {
    if (o->kind == OPTION_CHOICE || strchr(o->argument, '|'))
        put_choices(o->argument);
    else if (strncmp(o->argument, "FILE", 4) == 0 || strcmp(o->argument, "PATH") == 0)
        put_files();
}

/* ---------------------------------------------------------------- what may follow */

/* Returns the option that the first len characters of a word name, as --vps or -m, if the option takes a value; else NULL. */
static const cli_option *valued_option(const settings *s, const char *word, size_t len) {
    for (const cli_option *o = options_rows(s); o->row.help && *word == '-'; o++) {
        if (o->row.kind == OPTION_FLAG || !options_apply(s, o)) continue;
        const char *name = o->row.name;
        if (len == 2 && word[1] == o->key) return o;
        if (len == strlen(name) + 2 && word[1] == '-' && strncmp(word + 2, name, len - 2) == 0) return o;
    }
    return NULL;
}

/* Prints the completions of the last of the words after `vpps`. bash splits --vps=4 into three words: "--vps", "=" and "4". */
static void put_words(int n, char **words) {
    const char *last = n ? words[n - 1] : "";
    if (n < 2) {
        puts("--help\n--version\nhelp");
        for (const command *c = commands; c->name; c++) printf("%s\t%s\n", c->name, c->summary);
        return;
    }
    const command *c = command_find(words[0]);
    if (!c) return;
    const settings s = {.command = c->bit, .network = n > 2 ? network_find(words[1]) : NULL};
    const char *before = words[strcmp(words[n - 2], "=") == 0 && n > 2 ? n - 3 : n - 2], *equals = strchr(last, '=');
    const cli_option *o = equals && equals > last ? valued_option(&s, last, (size_t)(equals - last))
                                                  : valued_option(&s, before, strlen(before));
    const bool files = c->most_files && c->operand == OPERAND_NETWORK, operand = n == 2 && c->operand != OPERAND_NONE;
    if (o) {
        put_value(&o->row);
    } else if (*last == '-' || !(files || operand)) {
        puts("--help\tPrint the options");
        for (o = options_rows(&s); o->row.help; o++)
            if (options_apply(&s, o))
                printf("--%s%s\t%s\n", o->row.name, o->row.kind == OPTION_FLAG ? "" : "=", o->row.help);
    } else {
        if (operand && c->operand == OPERAND_ACTION) put_choices(c->actions);
        for (const network *const *k = networks; operand && *k && c->operand == OPERAND_NETWORK; k++)
            printf("%s\t%s\n", (*k)->name, (*k)->summary);
        if (files) put_files();
    }
}

extern const char completion_bash[], completion_zsh[]; /* templates.S */

int command_completion(settings *s) {
    const char *action = s->action ? s->action : "";
    const bool words = strcmp(action, "words") == 0, bash = strcmp(action, "bash") == 0;
    if (!words && !bash && strcmp(action, "zsh") != 0)
        return report_usage("completion", *action ? "expected bash or zsh, found '%s'" : "expected bash or zsh",
                            action);
    if (!words && s->n_files) return report_usage("completion", "'%s': too many arguments", s->files[0]);
    if (words)
        put_words(s->n_files, s->files);
    else
        fputs(bash ? completion_bash : completion_zsh, stdout);
    return exit_code(flush_stdout());
}
