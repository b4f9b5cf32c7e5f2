/* string.h - what an exported file needs of it. */
#pragma once
#include <stddef.h>
#define memcpy __builtin_memcpy
static inline int strncmp(const char *a, const char *b, size_t n) {
    for (; n && *a && *a == *b; n--) a++, b++;
    return n ? (unsigned char)*a - (unsigned char)*b : 0;
}
