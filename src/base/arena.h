/* arena.h - an arena: memory from which arrays are taken one by one and freed all at once. */
#pragma once

#include "base/base.h"

typedef struct vpps_arena_chunk vpps_arena_chunk;

/* An arena. An arena whose members are all zero is empty. */
typedef struct vpps_arena {
    vpps_arena_chunk *last; /* the latest chunk of memory; arrays are taken from its free end */
} vpps_arena;

/* A position in an arena, to which the arena can be reset later. */
typedef struct vpps_arena_mark {
    vpps_arena_chunk *last;
    size_t used;
} vpps_arena_mark;

/* Returns an array of n elements, not initialised and aligned to 64 bytes; NULL: out of memory. The array is valid until the arena is
 * cleared or freed, or goes back to a mark made before this call. */
void *vpps_arena_take(vpps_arena *a, size_t n, size_t element_bytes);
/* Returns an array as vpps_arena_take does, with all bytes zero. */
void *vpps_arena_zeros(vpps_arena *a, size_t n, size_t element_bytes);

/* vpps_arena_here returns the arena's current position; vpps_arena_back_to frees all arrays that were taken after that position. */
vpps_arena_mark vpps_arena_here(const vpps_arena *a);
void vpps_arena_back_to(vpps_arena *a, vpps_arena_mark mark);

/* vpps_arena_clear frees all arrays and keeps their memory, in one chunk, for later arrays; vpps_arena_free returns the memory, too. */
void vpps_arena_clear(vpps_arena *a);
void vpps_arena_free(vpps_arena *a);

/* Set the pointer `array` to n elements taken from the arena; VPPS_TAKE_ZEROS sets their bytes to zero. False: out of memory. */
#define VPPS_TAKE(arena, array, n) (((array) = vpps_arena_take((arena), (n), sizeof *(array))) != NULL)
#define VPPS_TAKE_ZEROS(arena, array, n) (((array) = vpps_arena_zeros((arena), (n), sizeof *(array))) != NULL)

/* Moves the array at *array to a copy of at least twice the capacity, with room for `needed` elements. False: out of memory. */
bool vpps_arena_grow(vpps_arena *a, void *array, size_t *capacity, size_t needed, size_t element_bytes);
#define VPPS_TAKE_MORE(arena, array, capacity, needed)                                                                 \
    ((needed) <= (capacity) || vpps_arena_grow((arena), &(array), &(capacity), (needed), sizeof *(array)))
