#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t standin_64(const void *bytes, size_t n);
/* Hashes the same bytes in pieces: the low and high half of 128 bits, and 64 bits. */
void standin_in_pieces(const void *bytes, size_t n, size_t piece, uint64_t out[3]);
