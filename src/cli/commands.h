/* commands.h - the table of commands. */
#pragma once

#include "cli/options.h"

#include <string.h>

/* What may follow a command besides options. */
typedef enum operand_kind { OPERAND_NONE, OPERAND_NETWORK, OPERAND_ACTION } operand_kind;

typedef struct command {
    const char *name;
    const char *group; /* of those from this one on, a heading in help; NULL: that of the one before */
    command_bit bit;
    operand_kind operand;
    int most_files;          /* names of files that may follow */
    const char *actions;     /* for OPERAND_ACTION, as "list|clear" */
    int (*run)(settings *s); /* the process's exit code */
    const char *summary;     /* in the list of commands */
    const char *arguments;   /* after the options in the line of usage */
    const char *text;        /* what --help begins with */
} command;

/* Does it want a checkpoint: is --model among its arguments? */
static inline bool command_wants_model(const command *c) { return strstr(c->arguments, "--model ") != NULL; }

/* In the order of help; ends with a NULL name. */
extern const command commands[];

/* NULL: there is none. */
const command *command_find(const char *name);

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
