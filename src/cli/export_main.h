/* export_main.h - the program that `vpps export --main` appends to a network's cells. */
#pragma once

#include "cli/session.h"

/* Can there be one? Fails with ARGUMENT. The checkpoint has been described. */
vpps_status export_main_check(const settings *s);

/* Appends the program. Fails with ARGUMENT, MEMORY. */
vpps_status export_main(session *x, const corpus *c, FILE *f);
