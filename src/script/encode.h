/* encode.h - writes the words of a script. */
#pragma once

#include "script/memory.h"

/* Offsets of the script's results. */
typedef struct vpps_script_places {
    const uint32_t *output_at; /* offset of every needed output's value */
    /* offset of every gradient that the request names, else VPPS_NONE; NULL: it names none */
    const uint32_t *gradient_at;
    vpps_given_array given; /* a step in two halves: where the host writes gradients */
    uint64_t pool_words;    /* words of memory (the pool) that the script needs */
} vpps_script_places;

/* Makes b->script, and sets its n_tasks. Fails with MEMORY, and POOL (without a message: it has fewer than out->pool_words words). */
vpps_status vpps_encode_batch(const vpps_placement *placed, const vpps_contributions *contributions,
                              const vpps_task_plan *machine, const vpps_batch_request *request, vpps_arena *arena,
                              vpps_batch *b, vpps_script_places *out);
