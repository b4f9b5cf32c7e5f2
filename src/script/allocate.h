/* allocate.h - tensors that live from one phase to another, placed in as few words as can be. It knows nothing of scripts. */
#ifndef VPPS_SCRIPT_ALLOCATE_H
#define VPPS_SCRIPT_ALLOCATE_H

#include "base/base.h"

/* Two tensors interfere where their lives have a phase in common: then they have no word in common. */
typedef struct vpps_tensor_life {
    uint64_t words;       /* a multiple of 16 keeps all of them aligned */
    uint32_t first, last; /* phases, both included; last UINT32_MAX: to the end */
    uint64_t at;          /* the result: its first word */
    uint32_t *offset;     /* the caller's */
} vpps_tensor_life;

/* Places n tensors from word 0 on; `words` becomes what they take, `live` the most words that are live in one phase: no placing
 * takes less. False: out of memory. */
bool vpps_allocate(vpps_tensor_life *all, uint32_t n, uint64_t *words, uint64_t *live);

#endif
