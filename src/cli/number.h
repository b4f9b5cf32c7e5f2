/* number.h - numbers for people. */
#ifndef VPPS_CLI_NUMBER_H
#define VPPS_CLI_NUMBER_H

#include <stddef.h>

/* So many decimals; from a million on four digits and a power of ten, as more digits would only look exact. */
void number_text(double x, int decimals, char *text, size_t n);

#endif
