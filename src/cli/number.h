/* number.h - numbers for people. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* So many decimals; from a million on four digits and a power of ten, as more digits would only look exact. */
void number_text(double x, int decimals, char *text, size_t n);

/* "1 sentence", "2 sentences": a number, and its noun, which is given in the plural. Returns `text`. */
const char *number_of(uint64_t count, const char *plural, char *text, size_t n);

/* A stretch of time: "0.4 s", "12.3 s", "3 min 05 s", "2 h 03 min". Returns `text`. */
const char *number_time(double seconds, char *text, size_t n);
