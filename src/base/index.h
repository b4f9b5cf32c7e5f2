/* index.h - a hash table from hashes to numbers; the caller compares the things that the numbers stand for. */
#pragma once

#include "base/base.h"

/* A hash table with open addressing. It is empty if all members are zero. A free slot is 0, and at least half are free. A used slot holds
 * the upper half of the hash, which also is where the search begins, and the number + 1. */
typedef struct vpps_index {
    uint64_t *slots;
    uint32_t n, size; /* number of stored numbers; number of slots, 0 or a power of two */
} vpps_index;

/* vpps_index_next returns the numbers stored under a hash, one per call, then UINT32_MAX. *at begins as vpps_index_first. */
static inline uint32_t vpps_index_first(uint64_t hash) { return (uint32_t)(hash >> 32); }
static inline uint32_t vpps_index_next(const vpps_index *x, uint64_t hash, uint32_t *at) {
    uint64_t slot;
    while (x->size && (slot = x->slots[*at & (x->size - 1)])) {
        ++*at;
        if (slot >> 32 == hash >> 32) return (uint32_t)slot - 1;
    }
    return UINT32_MAX;
}

/* Stores a number less than UINT32_MAX under a hash. False: out of memory. It cannot fail for as many numbers as before a clear. */
bool vpps_index_add(vpps_index *x, uint64_t hash, uint32_t number);

/* vpps_index_clear removes all numbers and keeps the memory; vpps_index_free frees the memory, too. */
void vpps_index_clear(vpps_index *x);
void vpps_index_free(vpps_index *x);

uint64_t vpps_hash_words(const uint32_t *words, uint32_t n);
