/* example.h - what the examples share: giving up with the library's message, and random numbers. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vpps.h>

/* A call that must succeed. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) == VPPS_OK) break;                                                                                  \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, vpps_error_message());                                      \
        exit(1);                                                                                                       \
    } while (0)

/* The same numbers on every machine (xorshift64; Marsaglia 2003). */
static inline uint32_t draw(uint32_t below) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

/* Ends a program that says what it reaches: with status 1 where it did not. */
static inline int reached(const char *what, double value, bool enough) {
    printf("%s: %.3f%s\n", what, value, enough ? "" : ", which is less than this program should reach");
    return enough ? 0 : 1;
}

#endif
