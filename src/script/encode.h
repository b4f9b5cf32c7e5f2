/* encode.h - writes the words of a script, a batch's program. */
#pragma once

#include "script/memory.h"

/* Offsets, in the pool of memory, of the values that the host reads or writes. */
typedef struct vpps_script_places {
    const uint32_t *output_at; /* for each output of a vertex, if something reads it: offset of its value in memory */
    /* for each output: offset of its gradient; VPPS_NONE: the request does not ask for it; NULL: the request asks for no gradient */
    const uint32_t *gradient_at;
    /* where the host writes the outputs' gradients while a training step pauses between forward and backward */
    vpps_given_array given;
    uint64_t pool_words; /* words of memory that the batch's program needs */
} vpps_script_places;

/* Writes b->script (the batch's program) and sets b->n_tasks. Fails with MEMORY; or with POOL, without an error
 * message, if the pool (memory) is smaller than out->pool_words, which is set in this case too. */
vpps_status vpps_encode_batch(const vpps_placement *placed, const vpps_contributions *contributions,
                              const vpps_target *target, const vpps_batch_request *request, vpps_arena *arena,
                              vpps_batch *b, vpps_script_places *out);
