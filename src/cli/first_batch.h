/* first_batch.h - the first training batch of a network, for commands that show what becomes of it. */
#pragma once

#include "cli/session.h"

/* Opens the data and the network that s, or the checkpoint it names, asks for, and builds the batch's graph. No parameters
 * are loaded: scripts and cells depend on shapes only. Free session and corpus in any case. */
vpps_status open_first_batch(session *x, settings *s, corpus *c, vpps_node *loss);
