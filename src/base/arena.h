/* arena.h - an arena: memory that is allocated in pieces and freed all at once. */
#pragma once

#include "base/base.h"

typedef struct vpps_arena_chunk vpps_arena_chunk;

/* An arena. All members zero: an empty one. */
typedef struct vpps_arena {
    vpps_arena_chunk *last; /* the latest chunk; pieces are taken from its free end */
} vpps_arena;

/* A position in an arena, to go back to later. */
typedef struct vpps_arena_mark {
    vpps_arena_chunk *last;
    size_t used;
} vpps_arena_mark;

/* Returns an array of n elements, not initialised and aligned to 64 bytes; NULL: out of memory. The array is valid until the arena is
 * cleared or freed, or goes back to a mark made before this call. */
void *vpps_arena_take(vpps_arena *a, size_t n, size_t element_bytes);
/* Returns an array as vpps_arena_take does, with all bytes zero. */
void *vpps_arena_zeros(vpps_arena *a, size_t n, size_t element_bytes);

/* A mark is the arena's present position; going back to the mark gives back all pieces taken since. */
vpps_arena_mark vpps_arena_here(const vpps_arena *a);
void vpps_arena_back_to(vpps_arena *a, vpps_arena_mark mark);

/* Clear gives back all pieces and keeps their memory for later ones, in one chunk; free also frees the memory. */
void vpps_arena_clear(vpps_arena *a);
void vpps_arena_free(vpps_arena *a);

/* Set `array` to n elements of the arena. False: out of memory. */
#define VPPS_TAKE(arena, array, n) (((array) = vpps_arena_take((arena), (n), sizeof *(array))) != NULL)
#define VPPS_TAKE_ZEROS(arena, array, n) (((array) = vpps_arena_zeros((arena), (n), sizeof *(array))) != NULL)

/* Gives an array of the arena room for at least `needed` elements, by a copy of twice the capacity. False: out of memory. */
bool vpps_arena_grow(vpps_arena *a, void *array, size_t *capacity, size_t needed, size_t element_bytes);
#define VPPS_TAKE_MORE(arena, array, capacity, needed)                                                                 \
    ((needed) <= (capacity) || vpps_arena_grow((arena), &(array), &(capacity), (needed), sizeof *(array)))
