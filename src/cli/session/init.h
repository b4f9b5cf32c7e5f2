/* init.h - `vpps train --init`: starts a new run from a checkpoint's parameters. */
#pragma once

#include "cli/session/session_state.h"

/* Takes network sizes that were not given from the file of --init, if it has them; they then count as given. Call it
 * before the data are read. Fails with IO, FORMAT, MEMORY. */
vpps_status init_take_sizes(settings *s);

/* Sets those parameters of x's model whose names and shapes are in the file of --init. Rows that belong to words, characters or classes are
 * matched by word, wherever they stand in the file; rows without a match keep their initial values. x->init counts the parameters taken;
 * *text, which the caller frees also after a failure, lists the others. Call it before the handle is created. Fails with IO, FORMAT (no
 * matrix fits, so that nearly all would stay random), NONFINITE, MEMORY. */
vpps_status init_load(session *x, const corpus *c, char **text);

/* Returns whether a tensor's name, optimizer.K/NAME, marks state of an optimiser; no parameter has such a name. */
bool init_is_state(const char *name);
