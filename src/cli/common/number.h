/* number.h - writes numbers for people. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes x with `decimals` decimals; numbers from a million on get four digits and a power of ten. */
void number_text(double x, int decimals, char *text, size_t n);

/* Writes a count and its noun, which is passed in the plural: "1 sentence", "2 sentences". Returns `text`. */
const char *number_of(uint64_t count, const char *plural, char *text, size_t n);

/* Writes a duration: "0.4 s", "12.3 s", "3 min 05 s", "2 h 03 min". Returns `text`. */
const char *number_time(double seconds, char *text, size_t n);
