/* parameters.h - options about single parameters of the network: --freeze, --lr-of, and the parameter that --class-weights adds; and a check of
 * parameters' values. */
#pragma once

#include "cli/session/session_state.h"

/* Declares the class weights in the model, a frozen vector of ones until class_weights_set or a checkpoint sets the weights, and stores the parameter
 * in *config. Call it before the network is recorded. */
vpps_status parameters_declare_weights(vpps_model *model, net_config *config);

/* Freezes the parameters that --freeze names. Fails with ARGUMENT, suggesting the nearest name, where the network has none of that name. */
vpps_status parameters_freeze(session *x);

/* Sets x->rates to --lr-of's learning rates. Fails as parameters_freeze does; ARGUMENT also for a missing or second rate. */
vpps_status parameters_take_rates(session *x);

bool finite_all(const float *values, size_t n);

/* Checks that all parameters of a model are finite; `path` names their origin in the message. Fails with NONFINITE. */
vpps_status finite_check_parameters(vpps_model *model, const char *path);
