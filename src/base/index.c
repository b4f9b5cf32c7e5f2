/* index.c - a hash table that stores numbers under hashes (index.h). */
#include "base/index.h"

static void put(vpps_index *x, uint64_t slot) {
    uint32_t at = vpps_index_first(slot);
    while (x->slots[at & (x->size - 1)]) at++;
    x->slots[at & (x->size - 1)] = slot;
}

static bool grow(vpps_index *x) {
    const vpps_index old = *x;
    const uint32_t size = old.size ? 2 * old.size : 64;
    uint64_t *slots = size ? calloc(size, sizeof *slots) : NULL;
    if (!slots) return false;
    *x = (vpps_index){slots, old.n, size};
    for (uint32_t i = 0; i < old.size; i++)
        if (old.slots[i]) put(x, old.slots[i]);
    free(old.slots);
    return true;
}

bool vpps_index_add(vpps_index *x, uint64_t hash, uint32_t number) {
    if (2 * ((uint64_t)x->n + 1) > x->size && !grow(x)) return false;
    put(x, (hash & ~(uint64_t)UINT32_MAX) | (number + 1u));
    x->n++;
    return true;
}

void vpps_index_clear(vpps_index *x) {
    if (x->slots) memset(x->slots, 0, x->size * sizeof *x->slots);
    x->n = 0;
}

void vpps_index_free(vpps_index *x) {
    free(x->slots);
    *x = (vpps_index){0};
}

uint64_t vpps_hash_words(const uint32_t *words, uint32_t n) {
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) h = vpps_mix64(h ^ words[i]) + i;
    return h;
}
