/* allocate.h - places tensors, each of which lives from one phase to another, in as few words as possible. */
#pragma once

#include "base/base.h"

/* A tensor. Two tensors whose lives have a phase in common share no word. */
typedef struct vpps_tensor_life {
    uint64_t words;       /* a multiple of 16 keeps all of them aligned */
    uint32_t first, last; /* phases, both included; last UINT32_MAX: to the end */
    uint64_t at;          /* the result: its first word */
    uint32_t *offset;     /* the caller's */
} vpps_tensor_life;

/* Places n tensors from word 0 on; `words` becomes how many words they take, `live` the most words that are live in one phase: no placement
 * takes fewer. False: out of memory. */
bool vpps_allocate(vpps_tensor_life *all, uint32_t n, uint64_t *words, uint64_t *live);
