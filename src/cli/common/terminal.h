/* terminal.h - keeps printed text from sending commands to the terminal. */
#pragma once

#include <stdbool.h>

/* From now on prints control characters except tabs and line ends (names in checkpoints, data or options may hold them)
 * as ^X on standard error, and on standard output where that is a terminal. Call it before anything is printed. */
void terminal_guard(void);

/* Returns whether standard error is a terminal. */
bool terminal_is(void);
int terminal_columns(void);

void terminal_clear_line(void);
