/* arena.c - takes arrays from chunks of memory that grow (arena.h). */
#include "base/arena.h"

#ifdef __SANITIZE_ADDRESS__
#define VPPS_ARENA_APART 1 /* each array is allocated alone, so that the address sanitizer sees accesses beyond it */
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define VPPS_ARENA_APART 1
#endif
#endif
#ifndef VPPS_ARENA_APART
#define VPPS_ARENA_APART 0
#endif

enum { ALIGNMENT = 64, LEAST_CHUNK = 1 << 12 };

struct vpps_arena_chunk {
    vpps_arena_chunk *before;
    char *memory;
    size_t bytes, used;
};

static bool add_chunk(vpps_arena *a, size_t bytes) {
    vpps_arena_chunk *c = malloc(sizeof *c + ALIGNMENT + bytes);
    if (!c) return false;
    char *after = (char *)(c + 1);
    const size_t off = (uintptr_t)after % ALIGNMENT;
    *c = (vpps_arena_chunk){a->last, after + (off ? ALIGNMENT - off : 0), bytes, 0};
    a->last = c;
    return true;
}

static size_t rounded(size_t bytes) { return (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1); }

void *vpps_arena_take(vpps_arena *a, size_t n, size_t element_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(n, element_bytes, &bytes) || bytes > SIZE_MAX / 4) return NULL;
    bytes = rounded(bytes + !bytes);
    if (VPPS_ARENA_APART) {
        if (!add_chunk(a, bytes)) return NULL;
    } else if (!a->last || a->last->bytes - a->last->used < bytes) {
        const size_t twice = a->last ? 2 * a->last->bytes : LEAST_CHUNK;
        if (!add_chunk(a, bytes > twice ? bytes : twice)) return NULL;
    }
    char *piece = a->last->memory + a->last->used;
    a->last->used += bytes;
    return piece;
}

void *vpps_arena_zeros(vpps_arena *a, size_t n, size_t element_bytes) {
    void *piece = vpps_arena_take(a, n, element_bytes);
    return piece ? memset(piece, 0, n * element_bytes) : NULL;
}

vpps_arena_mark vpps_arena_here(const vpps_arena *a) { return (vpps_arena_mark){a->last, a->last ? a->last->used : 0}; }

static void drop_last(vpps_arena *a) {
    vpps_arena_chunk *c = a->last;
    a->last = c->before;
    free(c);
}

void vpps_arena_back_to(vpps_arena *a, vpps_arena_mark mark) {
    while (a->last != mark.last) drop_last(a);
    if (a->last) a->last->used = mark.used;
}

void vpps_arena_clear(vpps_arena *a) {
    size_t total = 0;
    for (const vpps_arena_chunk *c = a->last; c; c = c->before) total += c->bytes;
    if (!VPPS_ARENA_APART && a->last && !a->last->before) {
        a->last->used = 0;
        return;
    }
    vpps_arena_free(a);
    if (!VPPS_ARENA_APART && total) (void)add_chunk(a, total); /* the next vpps_arena_take reports if memory ran out */
}

void vpps_arena_free(vpps_arena *a) {
    while (a->last) drop_last(a);
}

bool vpps_arena_grow(vpps_arena *a, void *array, size_t *capacity, size_t needed, size_t element_bytes) {
    size_t n = *capacity ? *capacity : 16;
    while (n < needed) {
        if (n > SIZE_MAX / 2) return false;
        n *= 2;
    }
    void *old, *larger = vpps_arena_take(a, n, element_bytes);
    if (!larger) return false;
    memcpy(&old, array, sizeof old);
    if (*capacity) memcpy(larger, old, *capacity * element_bytes);
    memcpy(array, &larger, sizeof larger);
    *capacity = n;
    return true;
}
