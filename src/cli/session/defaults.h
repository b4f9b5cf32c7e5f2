/* defaults.h - the default values of a command's options. */
#pragma once

#include "cli/options/options.h"

/* Returns the options' defaults for s's command, network and action. */
settings options_defaults(const settings *s);

/* Returns the number of generated examples that train in about a minute. */
uint32_t options_default_examples(const settings *s);
