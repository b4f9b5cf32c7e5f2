/* number.c - writes numbers for people. */
#include "cli/common/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void number_text(double x, int decimals, char *text, size_t n) {
    if (isnan(x))
        snprintf(text, n, "nan"); /* NaN of either sign */
    else if (fabs(x) < 1e6)
        snprintf(text, n, "%.*f", decimals, x);
    else
        snprintf(text, n, "%.4g", x);
}

const char *number_of(uint64_t count, const char *plural, char *text, size_t n) {
    const size_t len = strlen(plural);
    const bool ies = len > 3 && strcmp(plural + len - 3, "ies") == 0,
               es = len > 4 && (strcmp(plural + len - 4, "sses") == 0 || strcmp(plural + len - 4, "ches") == 0);
    const int kept = count != 1 ? (int)len : ies ? (int)len - 3 : es ? (int)len - 2 : (int)len - 1;
    snprintf(text, n, "%" PRIu64 " %.*s%s", count, kept, plural, count == 1 && ies ? "y" : "");
    return text;
}

const char *number_time(double seconds, char *text, size_t n) {
    const uint64_t s = seconds > 0 && seconds < 1e15 ? (uint64_t)(seconds + 0.5) : 0;
    if (seconds < 120)
        snprintf(text, n, "%.1f s", seconds);
    else if (s < 7200)
        snprintf(text, n, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
    else
        snprintf(text, n, "%" PRIu64 " h %02" PRIu64 " min", s / 3600, s / 60 % 60);
    return text;
}
