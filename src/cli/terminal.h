/* terminal.h - what is printed cannot give the terminal commands. */
#pragma once

#include <stdbool.h>

/* From now on control characters other than tabs and line ends, which names in a checkpoint, in data or in options may hold, are printed
 * on standard error as ^X, and so they are on standard output where that is a terminal. To be called before anything is printed. */
void terminal_guard(void);

/* Is standard error a terminal? */
bool terminal_is(void);
int terminal_columns(void);

/* Empties the line that the terminal's cursor is in. */
void terminal_clear_line(void);
