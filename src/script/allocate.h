/* allocate.h - packs tensors into as few words as possible. A tensor is live from one phase (time between two barriers) to another. */
#pragma once

#include "base/base.h"

/* A tensor with its lifetime. Tensors that are in use in the same phase (time between two barriers) share no word. */
typedef struct vpps_tensor_life {
    uint64_t words; /* size in words; multiples of 16 keep all tensors aligned */
    /* first and last phase (time between two barriers) in which the tensor is in use; last UINT32_MAX: in use until the end */
    uint32_t first, last;
    uint64_t at;      /* set by vpps_allocate: number of the tensor's first word */
    uint32_t *offset; /* not used by vpps_allocate: where the caller stores the tensor's offset in device memory */
} vpps_tensor_life;

/* Places n tensors in words 0 and following. *words: number of words that they take; *live: the most words in use in one phase (time
 * between two barriers), which no placement can undercut. Returns false if out of memory. */
bool vpps_allocate(vpps_tensor_life *all, uint32_t n, uint64_t *words, uint64_t *live);
