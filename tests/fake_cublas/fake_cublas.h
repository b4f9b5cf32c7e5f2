/* fake_cublas.h - a stand-in for cuBLAS in tests: its memory is host memory, and products are plain loops. */
#pragma once

#include <stddef.h>

/* Runs work(payload) later, once, in the order of the calls; the payload is copied. */
typedef void (*fake_cublas_later)(void (*work)(const void *payload), const void *payload, size_t bytes);

/* How a test controls the library: the library exports one of these structs, named fake_cublas. */
typedef struct fake_cublas_controls {
    void (*defer)(
        fake_cublas_later later); /* function that runs products later; NULL: they are computed during the call */
} fake_cublas_controls;
