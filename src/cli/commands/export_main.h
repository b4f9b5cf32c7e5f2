/* export_main.h - writes the C program that `vpps export --main` appends to a network's cells. */
#pragma once

#include "cli/session/session.h"

/* Checks that a program exists for the described checkpoint's network. Fails with ARGUMENT. */
vpps_status export_main_check(const settings *s);

/* Writes the program's C source to f. Fails with ARGUMENT, MEMORY. */
vpps_status export_main(session *x, const corpus *c, FILE *f);
