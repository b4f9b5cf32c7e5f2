/* memory.h - places a batch's tensors in the pool of device memory. */
#pragma once

#include "script/contributions.h"

typedef struct vpps_placement {
    const vpps_tasks *tasks;
    const vpps_block_memory *blocks;
    /* for each task: offset of values that only forward or only backward uses; offset of the gradients it computes for other vertices */
    const uint32_t *pass_record, *contributions;
    uint32_t entry_gradients; /* offset of the array with the gradients of all trained table entries */
    uint64_t end;             /* offset of the first word after all tensors */
    uint64_t live_words;      /* the most words of tensors that are in use at the same time */
} vpps_placement;

/* Places a batch's tensors from word `begin` of the pool on. Offsets are invalid if out->end is beyond the pool. False: out of memory. */
bool vpps_place_tensors(const vpps_tasks *t, const vpps_contributions *c, uint64_t begin, vpps_arena *arena,
                        vpps_placement *out);
