/* index.h - finds numbers by the hashes of what they stand for. */
#pragma once

#include "base/base.h"

/* All zero: empty. Half of the slots or more are free, and are 0; another one holds the upper half of a hash, which also says where the
 * search for the slot begins, and a number + 1. */
typedef struct vpps_index {
    uint64_t *slots;
    uint32_t n, size; /* numbers; slots, 0 or a power of two */
} vpps_index;

/* The numbers that may be the one with this hash, a number a call: `*at` is vpps_index_first before the first call. UINT32_MAX: no more. */
static inline uint32_t vpps_index_first(uint64_t hash) { return (uint32_t)(hash >> 32); }
static inline uint32_t vpps_index_next(const vpps_index *x, uint64_t hash, uint32_t *at) {
    uint64_t slot;
    while (x->size && (slot = x->slots[*at & (x->size - 1)])) {
        ++*at;
        if (slot >> 32 == hash >> 32) return (uint32_t)slot - 1;
    }
    return UINT32_MAX;
}

/* Adds a number below UINT32_MAX. False: out of memory, which cannot be with fewer numbers than there were before the latest clear. */
bool vpps_index_add(vpps_index *x, uint64_t hash, uint32_t number);

/* Forgets all numbers. Free: and their memory. */
void vpps_index_clear(vpps_index *x);
void vpps_index_free(vpps_index *x);

uint64_t vpps_hash_words(const uint32_t *words, uint32_t n);
