/* completion.c - see completion.h. */
#include "cli/completion.h"
#include "base/base.h"
#include "cli/commands.h"
#include "cli/failure.h"

/* An option of some commands and networks. */
typedef struct word {
    cli_option option; /* a copy: the table is made anew for every network */
    unsigned commands;
    uint64_t networks; /* 1 << their number */
} word;

typedef struct words {
    word list[OPTIONS_MAX];
    size_t n, n_networks;
    uint64_t all;
} words;

enum value_kind { VALUE_NONE, VALUE_WORDS, VALUE_FILE, VALUE_OTHER };

static enum value_kind value_kind(const cli_option *o) {
    const char *argument = o->row.argument;
    if (o->row.kind == OPTION_FLAG) return VALUE_NONE;
    if (o->row.kind == OPTION_CHOICE) return VALUE_WORDS;
    return strncmp(argument, "FILE", 4) == 0 || strcmp(argument, "PATH") == 0 ? VALUE_FILE : VALUE_OTHER;
}

static void add(words *w, const cli_option *o, uint64_t of_network) {
    size_t i = 0;
    while (i < w->n && strcmp(w->list[i].option.row.name, o->row.name) != 0) i++;
    if (i == OPTIONS_MAX) return;
    if (i == w->n) w->list[w->n++] = (word){.option = *o};
    w->list[i].commands |= o->commands;
    w->list[i].networks |= of_network;
}

/* All options, of every network and of the commands without one. */
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

/* "a|b" as "a b" */
static void put_choices(const char *choices) {
    for (; *choices; choices++) putchar(*choices == '|' ? ' ' : *choices);
}

/* A text between single quotes, in which `special` characters get a backslash, and a quote is what the shell wants. */
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

/* A case for each command with actions, which stand between `before` and `after`. */
static void put_actions(const char *before, const char *after) {
    for (const command *c = commands; c->name; c++) {
        if (c->operand != OPERAND_ACTION) continue;
        printf("        %s) %s", c->name, before);
        put_choices(c->actions);
        puts(after);
    }
}

/* ---------------------------------------------------------------- bash */

/* An option as a pattern: "--a|-b". */
static void bash_name(const cli_option *o) {
    printf("--%s", o->row.name);
    if (o->key < 0x100) printf("|-%c", o->key);
}

/* The options that take values of this kind, as one pattern. */
static bool bash_names(const words *w, enum value_kind kind) {
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        const cli_option *o = &w->list[i].option;
        if (value_kind(o) != kind) continue;
        if (any) putchar('|');
        bash_name(o);
        any = true;
    }
    return any;
}

/* The options of a command that all networks have (network NULL), or that one has and not all. */
static void bash_options(const words *w, const command *c, size_t k, bool common) {
    for (size_t i = 0; i < w->n; i++) {
        const word *x = &w->list[i];
        if (!(x->commands & c->bit) || (x->networks == w->all) != common) continue;
        if (!common && !(x->networks >> k & 1)) continue;
        printf(" --%s%s", x->option.row.name, value_kind(&x->option) == VALUE_NONE ? "" : "=");
    }
}

static void print_bash(const words *w) {
    puts("# bash completion of vpps, made by `vpps completion bash'\n"
         "_vpps() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
         "    COMPREPLY=()\n"
         "    if [[ $cur == '=' ]]; then\n"
         "        cur=\n"
         "    elif [[ $option == '=' ]]; then\n"
         "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    fi\n"
         "    case $option in");
    for (size_t i = 0; i < w->n; i++) {
        const cli_option *o = &w->list[i].option;
        if (value_kind(o) != VALUE_WORDS) continue;
        fputs("    ", stdout);
        bash_name(o);
        fputs(") words='", stdout);
        put_choices(o->row.argument);
        puts("' ;;");
    }
    fputs("    ", stdout);
    if (bash_names(w, VALUE_FILE)) {
        puts(")\n        compopt -o filenames 2> /dev/null\n"
             "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n        return ;;");
    }
    fputs("    ", stdout);
    if (bash_names(w, VALUE_OTHER)) puts(") return ;;");
    puts("    esac\n"
         "    if [[ $words ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "        return\n"
         "    fi\n"
         "    if [[ $COMP_CWORD -eq 1 ]]; then");
    fputs("        words='--help --version help", stdout);
    for (const command *c = commands; c->name; c++) printf(" %s", c->name);
    puts("'\n    elif [[ $COMP_CWORD -eq 2 && $cur != -* ]]; then\n        case ${COMP_WORDS[1]} in");
    put_actions("words='", "' ;;");
    fputs("        ", stdout);
    put_commands_of_networks('|');
    fputs(") words='", stdout);
    put_networks(w, w->all, ' ');
    puts("' ;;\n        esac\n    else\n        case ${COMP_WORDS[1]} in");
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
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2> /dev/null; fi\n"
         "}\n"
         "complete -F _vpps vpps");
}

/* ---------------------------------------------------------------- zsh */

static void zsh_option(const cli_option *o) {
    const enum value_kind kind = value_kind(o);
    const char *sign = kind == VALUE_NONE ? "" : "=";
    fputs("            ", stdout);
    if (o->key < 0x100) {
        printf("'(-%c --%s)'{-%c%s,--%s%s}'[", o->key, o->row.name, o->key, kind == VALUE_NONE ? "" : "+", o->row.name,
               sign);
    } else {
        printf("'--%s%s[", o->row.name, sign);
    }
    put_quoted(o->row.help, "[]:\\", "'\\''");
    putchar(']');
    if (kind != VALUE_NONE) printf(":%s:", kind == VALUE_WORDS ? "word" : o->row.argument);
    if (kind == VALUE_FILE) fputs("_files", stdout);
    if (kind == VALUE_WORDS) {
        putchar('(');
        put_choices(o->row.argument);
        putchar(')');
    }
    puts("'");
}

static void zsh_command(const words *w, const command *c) {
    printf("    %s)\n        skip=%d\n        specs=(\n            '(-h --help)'{-h,--help}'[Print the options]'\n"
           "            '--usage[Print their names only]'\n",
           c->name, c->operand == OPERAND_NONE ? 2 : 3);
    for (size_t i = 0; i < w->n; i++) {
        if ((w->list[i].commands & c->bit) && w->list[i].networks == w->all) zsh_option(&w->list[i].option);
    }
    puts("        )");
    for (size_t i = 0; i < w->n; i++) {
        const word *x = &w->list[i];
        if (!(x->commands & c->bit) || x->networks == w->all) continue;
        fputs("        [[ $network == (", stdout);
        put_networks(w, x->networks, '|');
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

/* ---------------------------------------------------------------- fish */

static void fish_option(const words *w, const word *x) {
    const cli_option *o = &x->option;
    const enum value_kind kind = value_kind(o);
    fputs("complete -c vpps -n '__fish_seen_subcommand_from", stdout);
    for (const command *c = commands; c->name; c++) {
        if (x->commands & c->bit) printf(" %s", c->name);
    }
    if (x->networks != w->all) {
        fputs("; and __fish_seen_subcommand_from ", stdout);
        put_networks(w, x->networks, ' ');
    }
    printf("' -l %s", o->row.name);
    if (o->key < 0x100) printf(" -s %c", o->key);
    if (kind == VALUE_FILE) fputs(" -r -F", stdout);
    if (kind == VALUE_OTHER || kind == VALUE_WORDS) fputs(" -x", stdout);
    if (kind == VALUE_WORDS) {
        fputs(" -a '", stdout);
        put_choices(o->row.argument);
        putchar('\'');
    }
    fputs(" -d '", stdout);
    put_quoted(o->row.help, "\\", "\\'");
    puts("'");
}

static void print_fish(const words *w) {
    puts("# fish completion of vpps, made by `vpps completion fish'\ncomplete -c vpps -f");
    for (const command *c = commands; c->name; c++) {
        printf("complete -c vpps -n __fish_use_subcommand -a %s -d '", c->name);
        put_quoted(c->summary, "\\", "\\'");
        puts("'");
        if (c->operand != OPERAND_ACTION) continue;
        printf("complete -c vpps -n '__fish_seen_subcommand_from %s; and test (count (commandline -opc)) -eq 2' -a '",
               c->name);
        put_choices(c->actions);
        puts("'");
    }
    for (size_t k = 0; k < w->n_networks; k++) {
        fputs("complete -c vpps -n '__fish_seen_subcommand_from ", stdout);
        put_commands_of_networks(' ');
        printf("; and test (count (commandline -opc)) -eq 2' -a %s -d '", networks[k]->name);
        put_quoted(networks[k]->summary, "\\", "\\'");
        puts("'");
    }
    puts("complete -c vpps -l help -s h -d 'Print the options'\n"
         "complete -c vpps -n __fish_use_subcommand -l version -d 'Print the version'");
    for (size_t i = 0; i < w->n; i++) fish_option(w, &w->list[i]);
}

int command_completion(const char *shell) {
    static const struct {
        const char *name;
        void (*print)(const words *w);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    if (!shell) return report_usage("completion", "expected bash, zsh or fish");
    static words w;
    collect(&w);
    for (size_t i = 0; i < VPPS_COUNT(shells); i++) {
        if (strcmp(shells[i].name, shell) != 0) continue;
        shells[i].print(&w);
        return exit_code(flush_stdout());
    }
    return report_usage("completion", "expected bash, zsh or fish, found '%s'", shell);
}
