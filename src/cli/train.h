/* train.h - `vpps train` and what shares its set-up. */
#ifndef VPPS_CLI_TRAIN_H
#define VPPS_CLI_TRAIN_H

#include "options.h"

/* Each runs one command and returns the process's exit code. */
int command_train(settings *s);
int command_script(settings *s);
int command_predict(settings *s);
int command_tune(settings *s);
int command_doctor(settings *s);

#endif
