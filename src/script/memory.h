/* memory.h - where a batch's tensors lie in the pool. */
#pragma once

#include "script/contributions.h"

typedef struct vpps_placement {
    const vpps_tasks *tasks;
    const vpps_block_memory *blocks;
    const uint32_t *pass_record,
        *contributions;       /* for each task: offset of its pass records, and of its contributions */
    uint32_t entry_gradients; /* offset of the gradients of tables' entries */
    uint64_t end;             /* the first word after all */
    uint64_t live_words;      /* see vpps_batch */
} vpps_placement;

/* Places a batch's tensors from word `begin` of the pool on. Where `end` is beyond the pool, the offsets are invalid. False: out of
 * memory. */
bool vpps_place_tensors(const vpps_tasks *t, const vpps_contributions *c, uint64_t begin, vpps_arena *arena,
                        vpps_placement *out);
