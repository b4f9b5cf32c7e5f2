/* keeper.h - the values that a handle keeps, and their places in a part of the device's pool. The search for a place begins after the
 * latest one given (next fit), so that it is short as long as there is much room. */
#pragma once

#include "base/base.h"

enum { VPPS_KEPT_GRAIN = 16 }; /* words: a value takes a multiple of them */

typedef struct vpps_kept_value {
    vpps_value value;      /* 0: released */
    uint32_t offset, room; /* in the pool; words, rounded up */
    uint32_t rows, cols;
    uint32_t before, after; /* in the order of offsets; released: `after` is another released one, or 0 */
    bool made;              /* a run has computed it, or will have when its batch is over */
} vpps_kept_value;

/* What a batch leaves for a kept value. */
typedef struct vpps_kept_copy {
    vpps_value value;
    uint32_t from; /* offset in the pool */
} vpps_kept_copy;

typedef struct vpps_keeper {
    vpps_kept_value *values; /* number 0 begins and ends the order: it lies before the others, and takes no room */
    uint32_t n_values;       /* 0: nothing was kept yet */
    uint32_t released;       /* the first; 0: none */
    uint32_t latest;         /* after which room is looked for */
    uint32_t first, words;   /* of the pool */
    uint32_t used_words, n_live;
    vpps_kept_copy *copies; /* of the batch in flight */
    uint32_t n_copies;
    /* Of the request at hand: nodes that the host reads, then those that are kept. */
    vpps_node *nodes;
    uint32_t n_read;
} vpps_keeper;

void vpps_keeper_free(vpps_keeper *k);

/* Takes words [first, first + words) of the pool for values. False: out of memory. */
bool vpps_keeper_open(vpps_keeper *k, uint32_t first, uint32_t words);

/* Room for a value. NULL: there is none, and *status is POOL or MEMORY. */
vpps_kept_value *vpps_keeper_add(vpps_keeper *k, uint32_t rows, uint32_t cols, vpps_status *status);

/* NULL: it is none of these, or was released. */
vpps_kept_value *vpps_keeper_find(const vpps_keeper *k, vpps_value value);

void vpps_keeper_release(vpps_keeper *k, vpps_kept_value *v);
