/* terminal.h - keeps printed text from sending commands to the terminal. */
#pragma once

#include <stdbool.h>

/* After the call, control characters in output, except tabs and line ends, appear as ^X: on standard error, and on standard output if it is
 * a terminal. Names in checkpoints, data or options may hold control characters. Call it before anything is printed. */
void terminal_guard(void);

/* Returns whether standard error is a terminal. */
bool terminal_is(void);
int terminal_columns(void);

void terminal_clear_line(void);
