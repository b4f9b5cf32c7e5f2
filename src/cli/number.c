/* number.c - see number.h. */
#include "cli/number.h"

#include <math.h>
#include <stdio.h>

void number_text(double x, int decimals, char *text, size_t n) {
    if (isnan(x)) {
        snprintf(text, n, "nan"); /* whatever its sign */
    } else if (fabs(x) < 1e6) {
        snprintf(text, n, "%.*f", decimals, x);
    } else {
        snprintf(text, n, "%.4g", x);
    }
}
