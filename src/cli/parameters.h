/* parameters.h - the options that name parameters of the network, --freeze and --lr-of, and the parameter that --class-weights adds. */
#pragma once

#include "cli/session_state.h"

/* Declares the weights of classes, a frozen vector, and sets config's members for them. They are ones, until class_weights_set or a
 * checkpoint says more. Before the network is made. */
vpps_status parameters_declare_weights(vpps_model *model, net_config *config);

/* Freezes what --freeze names. Fails with ARGUMENT where the network has no such parameter, and names the nearest one. */
vpps_status parameters_freeze(session *x);

/* Sets x->rates to those of --lr-of. Fails as parameters_freeze, and with ARGUMENT (no rate, or a second one of a parameter). */
vpps_status parameters_take_rates(session *x);
