/* commands.h - the table of vpps's commands. */
#pragma once

#include "cli/options/options.h"

#include <string.h>

/* What may follow a command's name besides options: nothing, a network's name, or an action. */
typedef enum operand_kind { OPERAND_NONE, OPERAND_NETWORK, OPERAND_ACTION } operand_kind;

typedef struct command {
    const char *name;
    const char *group; /* heading in help above this command; NULL: under the preceding heading */
    command_bit bit;
    operand_kind operand;
    int most_files;          /* most file names that may follow the options */
    const char *actions;     /* for commands with OPERAND_ACTION: their actions, such as "list|clear" */
    int (*run)(settings *s); /* runs the command and returns the process's exit code */
    const char *summary;     /* one line for the list of commands */
    const char *arguments;   /* what the usage line shows after the options */
    const char *text;        /* the first paragraph of --help */
} command;

/* Returns whether the command needs a checkpoint: its usage line has --model. */
static inline bool command_wants_model(const command *c) { return strstr(c->arguments, "--model ") != NULL; }

/* The commands in the order of help; the last entry's name is NULL. */
extern const command commands[];

/* Finds a command by its name. Returns NULL when there is none. */
const command *command_find(const char *name);

#define COMPLETION_SHELLS "bash|zsh"

/* Each runs its command, and returns the process's exit code. */
int command_train(settings *s);
int command_eval(settings *s);
int command_predict(settings *s);
int command_generate(settings *s);
int command_export(settings *s);
int command_script(settings *s);
int command_cell(settings *s);
int command_policy(settings *s);
int command_plan(settings *s);
int command_kernel(settings *s);
int command_tune(settings *s);
int command_doctor(settings *s);
int command_cache(settings *s);
/* `vpps completion SHELL` prints the shell's script. By `vpps completion words -- WORD...` the scripts ask what the last word may become. */
int command_completion(settings *s);
