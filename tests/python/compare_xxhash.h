#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t standin_64(const void *bytes, size_t n);
/* The same bytes, in pieces: 128 bits, low and high; 64 bits. */
void standin_in_pieces(const void *bytes, size_t n, size_t piece, uint64_t out[3]);
