/* first_batch.h - builds a network's first training batch, for commands that show how it is scheduled and compiled. */
#pragma once

#include "cli/session/session.h"

/* Opens the data and the network of s, or of the checkpoint that s names, and builds the first batch's graph. Loads no
 * parameters: scripts and cells depend on shapes only. Free session and corpus also after a failure. */
vpps_status open_first_batch(session *x, settings *s, corpus *c, vpps_node *loss);
