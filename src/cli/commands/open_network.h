/* open_network.h - opens a checkpoint's network, and builds the first training batch for commands that show how it is scheduled and compiled. */
#pragma once

#include "cli/session/session.h"

/* Opens the data and the network of s, or of the checkpoint that s names, and builds the first batch's graph. Loads no
 * parameters: scripts and cells depend on shapes only. `shuffled`: the examples are in the order of training's first epoch, else in the data's
 * order. Free session and corpus also after a failure. */
vpps_status open_first_batch(session *x, settings *s, corpus *c, bool shuffled, vpps_node *loss);

/* Opens the network of the checkpoint --model, with its parameters; `data`: and the data. Refuses output files that cannot be written, or
 * that are inputs. Free session and corpus also after a failure. */
vpps_status open_trained(session *x, settings *s, corpus *c, bool data);
