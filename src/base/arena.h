/* arena.h - memory that is taken piece by piece and given back as a whole. */
#pragma once

#include "base/base.h"

typedef struct vpps_arena_chunk vpps_arena_chunk;

/* All zero: empty. */
typedef struct vpps_arena {
    vpps_arena_chunk *last; /* pieces come from its free end */
} vpps_arena;

/* Where an arena was. */
typedef struct vpps_arena_mark {
    vpps_arena_chunk *last;
    size_t used;
} vpps_arena_mark;

/* An array of n elements, not initialised, aligned to 64 bytes. Valid until the arena is cleared, freed, or goes back to a mark of
 * before this call. NULL: out of memory. */
void *vpps_arena_take(vpps_arena *a, size_t n, size_t element_bytes);
/* The same, all zero. */
void *vpps_arena_zeros(vpps_arena *a, size_t n, size_t element_bytes);

/* Gives back all pieces that were taken since the mark. */
vpps_arena_mark vpps_arena_here(const vpps_arena *a);
void vpps_arena_back_to(vpps_arena *a, vpps_arena_mark mark);

/* Gives back all pieces. The memory is kept for the next ones, in one chunk. */
void vpps_arena_clear(vpps_arena *a);
void vpps_arena_free(vpps_arena *a);

/* False: out of memory. */
#define VPPS_TAKE(arena, array, n) (((array) = vpps_arena_take((arena), (n), sizeof *(array))) != NULL)
#define VPPS_TAKE_ZEROS(arena, array, n) (((array) = vpps_arena_zeros((arena), (n), sizeof *(array))) != NULL)

/* Makes room for `needed` elements in an array of the arena, which has room for *capacity: twice as many, elsewhere. False: out
 * of memory. */
bool vpps_arena_grow(vpps_arena *a, void *array, size_t *capacity, size_t needed, size_t element_bytes);
#define VPPS_TAKE_MORE(arena, array, capacity, needed)                                                                 \
    ((needed) <= (capacity) || vpps_arena_grow((arena), &(array), &(capacity), (needed), sizeof *(array)))
