/* parameters.h - where a new run's parameters come from and how they are trained: --vectors, --init, --class-weights, --freeze, --lr-of; and a
 * check of parameters' values. */
#pragma once

#include "cli/session/session_state.h"

/* Declares the class weights in the model, a frozen vector of ones until class_weights_set or a checkpoint sets the weights, and stores the parameter
 * in *config. Call it before the network is recorded. */
vpps_status parameters_declare_weights(vpps_model *model, net_config *config);

/* Freezes the parameters that --freeze names. Fails with ARGUMENT, suggesting the nearest name, where the network has no parameter of a name. */
vpps_status parameters_freeze(session *x);

/* Sets x->rates to --lr-of's learning rates. Fails with ARGUMENT: no such parameter, or a parameter has two or no
 * rate. */
vpps_status parameters_take_rates(session *x);

/* Cuts off spaces, tabs and line ends at both ends of a text, in place. */
char *trim_blanks(char *text);

bool finite_all(const float *values, size_t n);

/* Checks that all parameters of a model are finite; `path` names their origin in the message. Fails with NONFINITE. */
vpps_status finite_check_parameters(vpps_model *model, const char *path);

/* Returns whether s initialises embeddings from a file of vectors; false where parameters come from a checkpoint. */
bool vectors_wanted(const settings *s);

/* Sets the embeddings' size to the size of the file's vectors, unless an option gives it. Call it before the network is
 * made. Fails with IO, FORMAT, MEMORY, ARGUMENT (another size is given). */
vpps_status vectors_set_size(settings *s);

/* Sets the embeddings of words that the file of --vectors has, and counts the words in x->vectors. Freezes embeddings
 * with --freeze-vectors. Call it before the engine (vpps_handle) is created. Fails with IO, FORMAT, MEMORY. */
vpps_status vectors_load(session *x, const corpus *c);

/* Writes a line such as "glove.txt: vectors of 81.2 % of the words, ...". */
void vectors_describe(const session *x, char *text, size_t n);

/* Takes network sizes that no option gives from the file of --init, if the file has them; the sizes then count as given. Call it before
 * the data are read. Fails with IO, FORMAT, MEMORY. */
vpps_status init_take_sizes(settings *s);

/* Sets those parameters of x's model whose names and shapes are in the file of --init. A parameter whose shape
 * depends on the number of words, characters, types of edges or classes is taken only if these are the file's, too. x->init counts the parameters taken;
 * *text, which the caller frees also after a failure, lists the others. Call it before the handle is created. Fails with IO, FORMAT (no
 * matrix fits, so that nearly all would stay random), NONFINITE, MEMORY. */
vpps_status init_load(session *x, const corpus *c, char **text);

/* Returns whether a tensor's name is optimizer.K/NAME, as state of an optimiser is named; no parameter has such a name. */
bool init_is_state(const char *name);

/* Sets the classes' weights in the model and on the device: from the file that --class-weights names, or to N / (number of classes in the
 * training split * positions of the class), N being the number of labelled positions. Classes that the file or the training split lacks keep
 * weight 1. The weights are a frozen parameter, so that checkpoints contain them. Fails with IO, FORMAT (names the line), ARGUMENT (a label
 * that the training split does not have), MEMORY. */
vpps_status class_weights_set(session *x, corpus *c);

/* Calls `tell` with one line of text that lists each class and its weight. */
vpps_status class_weights_tell(const session *x, const corpus *c, void (*tell)(void *context, const char *line),
                               void *context);
