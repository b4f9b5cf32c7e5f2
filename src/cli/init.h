/* init.h - `vpps train --init`: a new run that begins with a checkpoint's parameters. */
#ifndef VPPS_CLI_INIT_H
#define VPPS_CLI_INIT_H

#include "cli/session_state.h"

/* Sets the parameters of x's model from the file that --init names, those whose names and shapes are in it; in tables of
 * words, characters and classes the rows of those that the file has, too, wherever they stand there. x->init tells how
 * many, `text` (of n bytes) in words which not. Before the handle is created. Fails with IO, FORMAT (also where nothing
 * fits), MEMORY. */
vpps_status init_load(session *x, const corpus *c, char *text, size_t n);

#endif
