/* export_main.h - writes the C program that `vpps export --main` appends to a network's cells. */
#pragma once

#include "cli/session/session.h"

/* Checks that `vpps export --main` can write a program for the network that s names. Fails with ARGUMENT. */
vpps_status export_main_check(const settings *s);

/* Writes the program's C source to f. Fails with ARGUMENT, MEMORY. */
vpps_status export_main(session *x, const corpus *c, FILE *f);
