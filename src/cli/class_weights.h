/* class_weights.h - --class-weights: how much each label counts in the training loss. The weights are a frozen parameter of the model,
 * x->class_weights, which parameters_declare_weights declares, so that a checkpoint has them. */
#pragma once

#include "cli/session.h"

/* Sets the weights by --class-weights, in the model and on its device: by a file, or to N / (classes in the training part * positions of
 * the class), N being all labelled positions. Labels that the file, or the training part, does not have keep 1. Fails with IO, FORMAT
 * (names the line), ARGUMENT (a label that the training part does not have), MEMORY. */
vpps_status class_weights_set(session *x, corpus *c);

/* Hands a line with the weights to `tell`. */
vpps_status class_weights_tell(const session *x, const corpus *c, void (*tell)(void *context, const char *line),
                               void *context);
