/* commands.h - the commands that take the options of options.h. */
#ifndef VPPS_CLI_COMMANDS_H
#define VPPS_CLI_COMMANDS_H

#include "cli/options.h"

/* Each runs one command and returns the process's exit code. */
int command_train(settings *s);
int command_eval(settings *s);
int command_predict(settings *s);
int command_script(settings *s);
int command_cell(settings *s);
int command_plan(settings *s);
int command_kernel(settings *s);
int command_tune(settings *s);
int command_doctor(settings *s);

#endif
