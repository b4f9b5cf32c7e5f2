/* parameters.h - the options that name parameters of the network: --freeze and --lr-of. */
#ifndef VPPS_CLI_PARAMETERS_H
#define VPPS_CLI_PARAMETERS_H

#include "cli/session_state.h"

/* Freezes what --freeze names. Fails with ARGUMENT where the network has no such parameter, and names the nearest one. */
vpps_status parameters_freeze(session *x);

/* Sets x->rates to those of --lr-of. Fails as parameters_freeze, and with ARGUMENT (no rate, or a second one of a parameter). */
vpps_status parameters_take_rates(session *x);

#endif
