/* kept_space.c - allocates places in the device's memory pool for values that stay on the device between batches. */
#include "runtime/kept_space.h"

#include <stdatomic.h>

/* A value's number holds its index in `values` in the low bits. The high bits count all values that ever stayed on a device in this
 * process, so that no two handles give the same number, and none is reused. */
enum { PLACE_BITS = 24 };

static uint32_t place_of(vpps_value value) { return (uint32_t)value & ((1u << PLACE_BITS) - 1); }

static vpps_value number_of(uint32_t place) {
    static atomic_ullong count;
    return (vpps_value)(atomic_fetch_add(&count, 1) + 1) << PLACE_BITS | place;
}

void vpps_kept_space_free(vpps_kept_space *k) {
    VPPS_FREE_ARRAYS(k->values, k->copies, k->nodes);
    *k = (vpps_kept_space){0};
}

bool vpps_kept_space_open(vpps_kept_space *k, uint32_t first, uint32_t words) {
    if (!VPPS_RESERVE(k->values, 1)) return false;
    k->values[0] = (vpps_kept_value){.offset = first};
    k->n_values = 1;
    k->first = first;
    k->words = words;
    return true;
}

/* Returns the number of free words between value i and the next one. */
static uint32_t room_after(const vpps_kept_space *k, uint32_t i) {
    const vpps_kept_value *v = &k->values[i];
    const uint32_t end = v->after ? k->values[v->after].offset : k->first + k->words;
    return end - v->offset - v->room;
}

/* Returns a free index of `values`; 0: out of memory, or all indices are in use. */
static uint32_t take_place(vpps_kept_space *k) {
    const uint32_t place = k->released;
    if (place) return k->released = k->values[place].after, place;
    if (k->n_values >> PLACE_BITS || !VPPS_RESERVE(k->values, k->n_values + 1u)) return 0;
    return k->n_values++;
}

vpps_kept_value *vpps_kept_space_add(vpps_kept_space *k, uint32_t rows, uint32_t cols, vpps_status *status) {
    const uint32_t room = (rows * cols + VPPS_KEPT_GRAIN - 1) / VPPS_KEPT_GRAIN * VPPS_KEPT_GRAIN;
    uint32_t before = k->latest;
    bool fits = room_after(k, before) >= room;
    while (!fits && (before = k->values[before].after) != k->latest) fits = room_after(k, before) >= room;
    if (!fits) return *status = VPPS_POOL, NULL;
    const uint32_t place = take_place(k);
    if (!place) return *status = VPPS_MEMORY, NULL;
    vpps_kept_value *v = &k->values[place], *b = &k->values[before];
    *v = (vpps_kept_value){.value = number_of(place),
                           .offset = b->offset + b->room,
                           .room = room,
                           .rows = rows,
                           .cols = cols,
                           .before = before,
                           .after = b->after};
    k->values[v->after].before = place;
    b->after = place;
    k->latest = place;
    k->used_words += room;
    k->n_live++;
    return v;
}

vpps_kept_value *vpps_kept_space_find(const vpps_kept_space *k, vpps_value value) {
    const uint32_t place = place_of(value);
    return place && place < k->n_values && k->values[place].value == value ? &k->values[place] : NULL;
}

void vpps_kept_space_release(vpps_kept_space *k, vpps_kept_value *v) {
    const uint32_t place = place_of(v->value);
    k->values[v->before].after = v->after;
    k->values[v->after].before = v->before;
    if (k->latest == place) k->latest = v->before;
    k->used_words -= v->room;
    k->n_live--;
    *v = (vpps_kept_value){.after = k->released};
    k->released = place;
}
