/* export_c.h - exports a checkpoint's network as C: its cells, its vocabularies, and a program. */
#pragma once

#include "cli/session/session.h"

/* Writes the files that the options --c, --header and --weights name. Fails with ARGUMENT if the network's
 * cells (functions) or the program that runs them (--main) cannot be written as C, and with IO, FORMAT, MEMORY. */
vpps_status export_as_c(settings *s);

/* export_main_check checks that `vpps export --main` can write a program for the network that s names. export_main writes the program's C
 * source to f, after the network's cells. Both fail with ARGUMENT, export_main also with MEMORY. */
vpps_status export_main_check(const settings *s);
vpps_status export_main(session *x, const corpus *c, FILE *f);
