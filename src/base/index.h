/* index.h - a hash table from hashes to numbers; the caller compares the things that the numbers stand for. */
#pragma once

#include "base/base.h"

/* A hash table with open addressing. It is empty if all members are zero. A free slot is 0; at least half of the slots are free. A used
 * slot holds the upper half of the hash, which also says where the search begins, and the stored number + 1. */
typedef struct vpps_index {
    uint64_t *slots;
    uint32_t n, size; /* n: how many numbers are stored; size: number of slots, 0 or a power of two */
} vpps_index;

/* vpps_index_next returns one number stored under the hash per call, then UINT32_MAX. First set *at to vpps_index_first(hash). */
static inline uint32_t vpps_index_first(uint64_t hash) { return (uint32_t)(hash >> 32); }
static inline uint32_t vpps_index_next(const vpps_index *x, uint64_t hash, uint32_t *at) {
    uint64_t slot;
    while (x->size && (slot = x->slots[*at & (x->size - 1)])) {
        ++*at;
        if (slot >> 32 == hash >> 32) return (uint32_t)slot - 1;
    }
    return UINT32_MAX;
}

/* Stores a number below UINT32_MAX under a hash. False: out of memory. After a clear, storing as many numbers as before cannot fail. */
bool vpps_index_add(vpps_index *x, uint64_t hash, uint32_t number);

/* vpps_index_clear removes all numbers and keeps the table's memory; vpps_index_free removes them and frees the memory. */
void vpps_index_clear(vpps_index *x);
void vpps_index_free(vpps_index *x);

uint64_t vpps_hash_words(const uint32_t *words, uint32_t n);
