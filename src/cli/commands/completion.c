/* completion.c - prints completion scripts for bash and zsh. */
#include "cli/commands/completion.h"
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"

enum { COMMAND_BITS = 16 };

/* An option, and the commands and networks that have it. */
typedef struct word {
    cli_option option;               /* a copy, since the table is rebuilt for every network */
    uint64_t networks[COMMAND_BITS]; /* for each command, the networks with the option, as bits */
} word;

typedef struct words {
    word list[OPTIONS_MAX];
    size_t n, n_networks;
    uint64_t all;
} words;

static uint64_t networks_of(const word *x, const command *c) { return x->networks[__builtin_ctz(c->bit)]; }

static bool takes_value(const cli_option *o) { return o->row.kind != OPTION_FLAG; }

static bool takes_words(const cli_option *o) {
    return o->row.kind == OPTION_CHOICE || (takes_value(o) && strchr(o->row.argument, '|'));
}

static bool takes_file(const cli_option *o) {
    const char *argument = o->row.argument, *last = argument ? strrchr(argument, '|') : NULL;
    if (!takes_value(o)) return false;
    return strncmp(last ? last + 1 : argument, "FILE", 4) == 0 || strcmp(argument, "PATH") == 0;
}

static void add(words *w, const cli_option *o, uint64_t of_network) {
    size_t i = 0;
    while (i < w->n && strcmp(w->list[i].option.row.name, o->row.name) != 0) i++;
    if (i == OPTIONS_MAX) return;
    if (i == w->n) w->list[w->n++] = (word){.option = *o};
    for (uint32_t c = 0; c < COMMAND_BITS; c++)
        if (o->commands >> c & 1) w->list[i].networks[c] |= of_network;
}

/* Collects all options, with the networks and the commands that have them. */
static void collect(words *w) {
    for (size_t k = 0; networks[k]; k++) {
        const settings s = {.network = networks[k], .command = (command_bit)~0u};
        size_t n;
        const cli_option *rows = options_rows(&s, &n);
        for (size_t i = 0; i < n; i++) {
            if (rows[i].row.name && options_apply(&s, &rows[i])) add(w, &rows[i], UINT64_C(1) << k);
        }
        w->all |= UINT64_C(1) << k;
        w->n_networks = k + 1;
    }
}

/* Prints the choices of an option that are words: "a|b|FILE" as "a b". */
static void put_choices(const char *choices) {
    for (const char *between = ""; *choices; choices += *choices == '|') {
        const int len = (int)strcspn(choices, "|");
        if (strncmp(choices, "FILE", 4) != 0) printf("%s%.*s", between, len, choices);
        between = " ";
        choices += len;
    }
}

/* Prints a text for single quotes: `special` characters get a backslash, and `quote` replaces single quotes. */
static void put_quoted(const char *text, const char *special, const char *quote) {
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, stdout);
        } else {
            if (strchr(special, *text)) putchar('\\');
            putchar(*text);
        }
    }
}

static void put_networks(const words *w, uint64_t set, char between) {
    bool first = true;
    for (size_t k = 0; k < w->n_networks; k++) {
        if (!(set >> k & 1)) continue;
        if (!first) putchar(between);
        fputs(networks[k]->name, stdout);
        first = false;
    }
}

static void put_commands_of_networks(char between) {
    bool first = true;
    for (const command *c = commands; c->name; c++) {
        if (c->operand != OPERAND_NETWORK) continue;
        if (!first) putchar(between);
        fputs(c->name, stdout);
        first = false;
    }
}

/* Prints a branch of the shell's `case` for each command that has actions: `before`, the actions, `after`. */
static void put_actions(const char *before, const char *after) {
    for (const command *c = commands; c->name; c++) {
        if (c->operand != OPERAND_ACTION) continue;
        printf("        %s) %s", c->name, before);
        put_choices(c->actions);
        puts(after);
    }
}

/* ---------------------------------------------------------------- bash */

/* Prints an option's names as a pattern for bash: "--a|-b". */
static void bash_name(const cli_option *o) {
    printf("--%s", o->row.name);
    if (o->key < 0x100) printf("|-%c", o->key);
}

/* Prints those of a command's options that all networks have (`common`), or the further options of network k. */
static void bash_options(const words *w, const command *c, size_t k, bool common) {
    for (size_t i = 0; i < w->n; i++) {
        const word *x = &w->list[i];
        const uint64_t set = networks_of(x, c);
        if (!set || (set == w->all) != common || (!common && !(set >> k & 1))) continue;
        printf(" --%s%s", x->option.row.name, takes_value(&x->option) ? "=" : "");
    }
}

static void print_bash(const words *w) {
    puts("# bash completion of vpps, made by `vpps completion bash'\n"
         "_vpps() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} value= words= files=\n"
         "    COMPREPLY=()\n"
         "    if [[ $cur == '=' ]]; then\n"
         "        cur=\n"
         "    elif [[ $option == '=' ]]; then\n"
         "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    fi\n"
         "    case $option in");
    for (size_t i = 0; i < w->n; i++) {
        const cli_option *o = &w->list[i].option;
        if (!takes_value(o)) continue;
        fputs("    ", stdout);
        bash_name(o);
        fputs(") value=yes", stdout);
        if (takes_words(o)) {
            fputs(" words='", stdout);
            put_choices(o->row.argument);
            putchar('\'');
        }
        puts(takes_file(o) ? " files=yes ;;" : " ;;");
    }
    puts("    esac\n"
         "    if [[ ! $value && $COMP_CWORD -eq 1 ]]; then");
    fputs("        words='--help --version help", stdout);
    for (const command *c = commands; c->name; c++) printf(" %s", c->name);
    puts("'\n    elif [[ ! $value && $cur != -* ]]; then\n        case ${COMP_WORDS[1]} in");
    for (const command *c = commands; c->name; c++)
        if (c->most_files) printf("        %s) files=yes ;;\n", c->name);
    puts("        esac\n    fi\n    if [[ ! $value && $COMP_CWORD -eq 2 && $cur != -* ]]; then\n        case "
         "${COMP_WORDS[1]} in");
    put_actions("words='", "' ;;");
    fputs("        ", stdout);
    put_commands_of_networks('|');
    fputs(") words='", stdout);
    put_networks(w, w->all, ' ');
    puts("' ;;\n        esac\n    elif [[ ! $value && $COMP_CWORD -gt 1 && $cur == -* || ! $value && ! $files && "
         "$COMP_CWORD -gt 2 ]]; then\n"
         "        case ${COMP_WORDS[1]} in");
    for (const command *c = commands; c->name; c++) {
        printf("        %s) words='--help --usage", c->name);
        bash_options(w, c, 0, true);
        puts("' ;;");
    }
    puts("        esac\n        case ${COMP_WORDS[1]}/${COMP_WORDS[2]} in");
    for (const command *c = commands; c->name; c++) {
        for (size_t k = 0; k < w->n_networks && c->operand == OPERAND_NETWORK; k++) {
            printf("        %s/%s) words+='", c->name, networks[k]->name);
            bash_options(w, c, k, false);
            puts("' ;;");
        }
    }
    puts("        esac\n"
         "    fi\n"
         "    [[ $files ]] && compopt -o filenames 2> /dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"; [[ $files ]] && compgen -f -- \"$cur\")\n"
         "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2> /dev/null; fi\n"
         "}\n"
         "complete -F _vpps vpps");
}

/* ---------------------------------------------------------------- zsh */

static void zsh_option(const cli_option *o) {
    const char *sign = takes_value(o) ? "=" : "";
    fputs("            ", stdout);
    if (o->key < 0x100) {
        printf("'(-%c --%s)'{-%c%s,--%s%s}'[", o->key, o->row.name, o->key, takes_value(o) ? "+" : "", o->row.name,
               sign);
    } else {
        printf("'--%s%s[", o->row.name, sign);
    }
    put_quoted(o->row.help, "[]:\\", "'\\''");
    putchar(']');
    if (takes_value(o)) printf(":%s:", takes_words(o) ? "word" : o->row.argument);
    if (takes_words(o)) {
        fputs(takes_file(o) ? "{compadd - " : "(", stdout);
        put_choices(o->row.argument);
        fputs(takes_file(o) ? "; _files}" : ")", stdout);
    } else if (takes_file(o)) {
        fputs("_files", stdout);
    }
    puts("'");
}

static void zsh_command(const words *w, const command *c) {
    printf("    %s)\n        skip=%d\n        specs=(\n            '(-h --help)'{-h,--help}'[Print the options]'\n"
           "            '--usage[Print their names only]'\n",
           c->name, c->operand == OPERAND_NONE ? 2 : 3);
    for (size_t i = 0; i < w->n; i++) {
        if (networks_of(&w->list[i], c) == w->all) zsh_option(&w->list[i].option);
    }
    if (c->most_files) puts("            '*:file:_files'");
    puts("        )");
    for (size_t i = 0; i < w->n; i++) {
        const word *x = &w->list[i];
        const uint64_t set = networks_of(x, c);
        if (!set || set == w->all) continue;
        fputs("        [[ $network == (", stdout);
        put_networks(w, set, '|');
        puts(") ]] && specs+=(");
        zsh_option(&x->option);
        puts("        )");
    }
    puts("        ;;");
}

static void print_zsh(const words *w) {
    puts("#compdef vpps\n# zsh completion of vpps, made by `vpps completion zsh'\n"
         "_vpps() {\n    local -a names specs\n    local -i skip\n    local command=$words[2] network=$words[3]\n"
         "    if (( CURRENT == 2 )); then\n        names=(");
    for (const command *c = commands; c->name; c++) {
        printf("            '%s:", c->name);
        put_quoted(c->summary, ":\\", "'\\''");
        puts("'");
    }
    puts("        )\n        _describe command names\n        return\n    fi\n"
         "    if (( CURRENT == 3 )) && [[ $words[3] != -* ]]; then\n        case $command in");
    put_actions("names=(", "); _describe action names; return ;;");
    fputs("        ", stdout);
    put_commands_of_networks('|');
    puts(")\n            names=(");
    for (size_t k = 0; k < w->n_networks; k++) {
        printf("                '%s:", networks[k]->name);
        put_quoted(networks[k]->summary, ":\\", "'\\''");
        puts("'");
    }
    puts("            )\n            _describe network names\n            return ;;\n        esac\n    fi\n"
         "    case $command in");
    for (const command *c = commands; c->name; c++) zsh_command(w, c);
    puts("    esac\n    words=(vpps \"${(@)words[skip + 1,-1]}\")\n    (( CURRENT -= skip - 1 ))\n    _arguments -s -S "
         "$specs\n}\n"
         "if [[ $funcstack[1] == _vpps ]]; then _vpps \"$@\"; else compdef _vpps vpps; fi");
}

int command_completion(const char *shell) {
    static const struct {
        const char *name;
        void (*print)(const words *w);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}};
    if (!shell) return report_usage("completion", "expected bash or zsh");
    static words w;
    collect(&w);
    for (size_t i = 0; i < VPPS_COUNT(shells); i++) {
        if (strcmp(shells[i].name, shell) != 0) continue;
        shells[i].print(&w);
        return exit_code(flush_stdout());
    }
    return report_usage("completion", "expected bash or zsh, found '%s'", shell);
}
