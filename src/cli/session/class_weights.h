/* class_weights.h - --class-weights: the weight of each class in the training loss. The weights are a frozen parameter
 * (x->class_weights, declared by parameters_declare_weights), so that checkpoints contain them. */
#pragma once

#include "cli/session/session.h"

/* Sets the classes' weights in the model and on the device: from the file that --class-weights names, or to N / (number of classes in the
 * training split * positions of the class), N being the number of labelled positions. Classes that the file or the training split lacks
 * keep weight 1. Fails with IO, FORMAT (names the line), ARGUMENT (a label that the training split does not have), MEMORY. */
vpps_status class_weights_set(session *x, corpus *c);

/* Calls `tell` with one line of text that lists each class and its weight. */
vpps_status class_weights_tell(const session *x, const corpus *c, void (*tell)(void *context, const char *line),
                               void *context);
