/* index.h - a hash table from hashes to numbers; the caller compares the things that the numbers stand for. */
#pragma once

#include "base/base.h"

/* A hash table with open addressing. All members zero: empty. At least half of the slots are free, with the value 0. A used slot holds
 * the upper half of a hash, where the search also begins, and the number + 1. */
typedef struct vpps_index {
    uint64_t *slots;
    uint32_t n, size; /* count of stored numbers; count of slots, 0 or a power of two */
} vpps_index;

/* Return the numbers stored under this hash, one per call, then UINT32_MAX. `*at` is vpps_index_first before the first call. */
static inline uint32_t vpps_index_first(uint64_t hash) { return (uint32_t)(hash >> 32); }
static inline uint32_t vpps_index_next(const vpps_index *x, uint64_t hash, uint32_t *at) {
    uint64_t slot;
    while (x->size && (slot = x->slots[*at & (x->size - 1)])) {
        ++*at;
        if (slot >> 32 == hash >> 32) return (uint32_t)slot - 1;
    }
    return UINT32_MAX;
}

/* Adds a number less than UINT32_MAX. False: out of memory, which cannot happen with fewer numbers than before the latest clear. */
bool vpps_index_add(vpps_index *x, uint64_t hash, uint32_t number);

/* Clear forgets all numbers and keeps the memory; free also frees the memory. */
void vpps_index_clear(vpps_index *x);
void vpps_index_free(vpps_index *x);

uint64_t vpps_hash_words(const uint32_t *words, uint32_t n);
