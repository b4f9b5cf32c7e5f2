/* commands.h - the table of vpps's commands, their command lines and help, and how several commands open a network and its data. */
#pragma once

#include "cli/session/session.h"

#include <string.h>

/* What may follow a command's name besides options: nothing, a network's name, or an action. */
typedef enum operand_kind { OPERAND_NONE, OPERAND_NETWORK, OPERAND_ACTION } operand_kind;

typedef struct command {
    const char *name;
    const char *group; /* heading above this command in help; NULL: the preceding command's heading */
    command_bit bit;
    operand_kind operand;
    int most_files;          /* largest number of file names after the options */
    int (*run)(settings *s); /* runs the command and returns the process's exit code */
    const char *summary;     /* the command's line in the list of commands */
    const char *arguments;   /* text of the usage line after the options */
    const char *text;        /* first paragraph of the command's --help */
} command;

/* Returns whether the command needs a checkpoint: its usage line has --model. */
static inline bool command_wants_model(const command *c) { return strstr(c->arguments, "--model ") != NULL; }

/* The commands in the order of help; the last entry's name is NULL. */
extern const command commands[];

/* Finds a command by its name. Returns NULL when there is none. */
const command *command_find(const char *name);

/* Each function runs the command that it is named after, and returns the process's exit code. */
int command_train(settings *s);
int command_eval(settings *s);
int command_predict(settings *s);
int command_generate(settings *s);
int command_export(settings *s);
int command_script(settings *s);
int command_cell(settings *s);
int command_plan(settings *s);
int command_kernel(settings *s);
int command_tune(settings *s);
int command_doctor(settings *s);
int command_cache(settings *s);

/* ---------------------------------------------------------------- command lines */

/* Parses the arguments after `vpps COMMAND [NETWORK]` (argv[0] is skipped) into *s, whose command and network are set: defaults first, then
 * the command line. Exits after --help (code 0) or a mistake (code 2, with a message on stderr). */
void options_parse(settings *s, const command *c, int argc, char **argv);

/* Returns the checkpoint that tells the network if the command line does not name it: the value of --model, --resume or another option with
 * OPTION_NAMES_NETWORK. NULL: no such option is given. argv[0] is skipped. */
const char *options_find_checkpoint(const settings *s, int argc, char **argv);

/* ---------------------------------------------------------------- help */

/* Prints the help of `vpps` itself. */
void help_overview(FILE *f);

/* Prints the networks' names, nothing else. */
void help_network_names(FILE *f);

/* Selects the options that help_options prints: those for everyday use, or those of the engine (the library that runs networks). The
 * defaults printed are the values in s. If s names no network, help_options prints only the options that all networks have, and how to list
 * the options of one network. */
typedef enum help_part { HELP_COMMON, HELP_ENGINE } help_part;
void help_options(FILE *f, const settings *s, const command *c, help_part part);

/* Returns whether s's command has engine options, which only --help-engine lists. */
bool help_has_engine(const settings *s);

/* ---------------------------------------------------------------- export as C */

/* Writes the files that the options --c, --header and --weights name. Fails with ARGUMENT if the network's
 * cells (functions) or the program that runs them (--main) cannot be written as C, and with IO, FORMAT, MEMORY. */
vpps_status export_as_c(settings *s);

/* export_main_check checks that `vpps export --main` can write a program for the network that s names. export_main writes the program's C
 * source to f, after the network's cells. Both fail with ARGUMENT, export_main also with MEMORY. */
vpps_status export_main_check(const settings *s);
vpps_status export_main(session *x, const corpus *c, FILE *f);

/* ---------------------------------------------------------------- the beginning of several commands */

/* Opens the data and the network of s, or of the checkpoint that s names, and builds the first training batch's graph. Loads no parameters:
 * only shapes matter to the callers. `shuffled`: the examples are in the order of training's first epoch, else in the data's order. Free
 * session and corpus also after a failure. */
vpps_status open_first_batch(session *x, settings *s, corpus *c, bool shuffled, vpps_node *loss);

/* Opens the network of the checkpoint --model, with its parameters and, if `data` is true, the data that s names. Refuses output files that
 * cannot be written, or that are inputs. Free session and corpus also after a failure. */
vpps_status open_trained(session *x, settings *s, corpus *c, bool data);
