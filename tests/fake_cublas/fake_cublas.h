/* fake_cublas.h - a stand-in for cuBLAS, for tests: memory is the host's, and products are plain loops. */
#pragma once

#include <stddef.h>

/* Does work(payload) later, once, and in the order of the calls; the payload is copied. */
typedef void (*fake_cublas_later)(void (*work)(const void *payload), const void *payload, size_t bytes);

/* What a test does to it: the library exports one of these, named fake_cublas. */
typedef struct fake_cublas_controls {
    void (*defer)(
        fake_cublas_later later); /* who makes products from now on; NULL: they are made when their call returns */
} fake_cublas_controls;
