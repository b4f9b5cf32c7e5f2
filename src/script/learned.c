/* learned.c - finds in memory, loads from the store, or learns the automaton (policy that chooses which vertex type runs next) for a kind of graph. */
#include "script/learned.h"

void vpps_learned_free(vpps_learned *l) {
    for (uint32_t i = 0; i < l->n; i++) {
        free(l->all[i].key);
        vpps_automaton_free(&l->all[i].automaton);
    }
    VPPS_FREE_ARRAYS(l->all);
    *l = (vpps_learned){0};
}

static bool recall(const vpps_learned *l, const vpps_typed_graph *g, const vpps_graph_kind *kind, vpps_automaton *a) {
    size_t bytes = 0;
    void *packed = l->store ? l->store->read(kind, &bytes) : NULL;
    const bool ok = packed && vpps_automaton_unpack(a, g->n_types, packed, bytes);
    free(packed);
    return ok;
}

static bool learn(vpps_learned *l, const vpps_typed_graph *g, const vpps_graph_kind *kind, vpps_automaton *a) {
    if (!vpps_automaton_learn(a, g)) return false;
    size_t bytes;
    void *packed = l->store ? vpps_automaton_pack(a, &bytes) : NULL;
    if (packed) l->store->write(kind, packed, bytes);
    free(packed);
    return true;
}

const vpps_automaton *vpps_learned_for(vpps_learned *l, const vpps_typed_graph *g, const vpps_graph_kind *kind) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->all[i].key_bytes == kind->key_bytes && !memcmp(l->all[i].key, kind->key, kind->key_bytes))
            return &l->all[i].automaton;
    vpps_learned_one next = {.key = malloc(kind->key_bytes), .key_bytes = kind->key_bytes};
    if (!next.key || !VPPS_RESERVE(l->all, l->n + 1u) ||
        (!recall(l, g, kind, &next.automaton) && !learn(l, g, kind, &next.automaton))) {
        free(next.key);
        return NULL;
    }
    memcpy(next.key, kind->key, kind->key_bytes);
    l->all[l->n++] = next;
    return &l->all[l->n - 1].automaton;
}
