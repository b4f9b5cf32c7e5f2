/* init.h - `vpps train --init`: a new run that begins with a checkpoint's parameters. */
#pragma once

#include "cli/session_state.h"

/* Takes the network's sizes that were not given from the file that --init names, if it says them; they count as given then.
 * Before the data are read. Fails with IO, FORMAT, MEMORY. */
vpps_status init_take_sizes(settings *s);

/* Sets the parameters of x's model from the file that --init names, those whose names and shapes are in it. Where a row is a
 * word's, a character's or a class's, rows go by these words, wherever they stand in the file; the others keep their first
 * values. x->init tells how many parameters were taken, *text (to be freed by the caller in any case) in words which not.
 * Before the handle is created. Fails with IO, FORMAT (no matrix fits: what is left is almost a fresh network), NONFINITE,
 * MEMORY. */
vpps_status init_load(session *x, const corpus *c, char **text);

/* Is a tensor of that name state of the optimiser, optimizer.K/NAME, which no parameter is called? */
bool init_is_state(const char *name);
