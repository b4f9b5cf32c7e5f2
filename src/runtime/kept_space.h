/* kept_space.h - an allocator for values that stay on the device between batches, in a part of the device's memory pool. The search for
 * free space starts after the latest value placed (next fit), so it is short while much space is free. */
#pragma once

#include "base/base.h"

enum { VPPS_KEPT_GRAIN = 16 }; /* sizes of values, in words, are rounded up to a multiple of this number */

typedef struct vpps_kept_value {
    vpps_value value;      /* number of the value (vpps_keep); 0: the entry is free */
    uint32_t offset, room; /* in words: the value's offset in device memory, and its size, rounded up */
    uint32_t rows, cols;
    uint32_t before, after; /* indices of the neighbours in memory; in a free entry, `after`: the next free one, or 0 */
    bool made;              /* whether a batch that computes the value has been launched */
} vpps_kept_value;

/* Where a batch leaves a value that is to stay on the device. */
typedef struct vpps_kept_copy {
    vpps_value value;
    uint32_t from; /* offset in device memory at which the batch leaves the value */
} vpps_kept_copy;

typedef struct vpps_kept_space {
    /* one entry for each value on the device; entry 0 is a sentinel of size 0 at word `first`, where the managed range begins */
    vpps_kept_value *values;
    uint32_t n_values;     /* number of elements of `values`; 0: no value was kept yet */
    uint32_t released;     /* first entry of the linked list of free entries; 0: none is free */
    uint32_t latest;       /* index of the value after which the search for free memory starts: the one placed last */
    uint32_t first, words; /* the managed range of device memory: first word and number of words */
    uint32_t used_words, n_live;
    vpps_kept_copy *copies; /* the running batch's values to copy to their lasting places when the batch has ended */
    uint32_t n_copies;
    /* Nodes of the current request: n_read nodes whose values the host reads, then the nodes whose values stay on the device. */
    vpps_node *nodes;
    uint32_t n_read;
} vpps_kept_space;

void vpps_kept_space_free(vpps_kept_space *k);

/* Starts the allocator on words [first, first + words) of the device's memory pool. Returns false if out of memory. */
bool vpps_kept_space_open(vpps_kept_space *k, uint32_t first, uint32_t words);

/* Allocates a place for a value. Returns NULL if there is no room in the pool (*status is POOL) or no host memory (MEMORY). */
vpps_kept_value *vpps_kept_space_add(vpps_kept_space *k, uint32_t rows, uint32_t cols, vpps_status *status);

/* Returns the entry of a value, or NULL if the value was released or belongs to another handle. */
vpps_kept_value *vpps_kept_space_find(const vpps_kept_space *k, vpps_value value);

void vpps_kept_space_release(vpps_kept_space *k, vpps_kept_value *v);
