/* heads.c - finds the types of classifier heads (heads.h). */
#include "script/heads.h"

/* Returns whether a type may be a head. A recurrence is no head, since it runs level by level. Nor is a type that reads nothing, such as an
 * input: if all heads read one such vertex, they could not run in separate slices. */
static bool may_be_head(const vpps_batch_needs *n, uint32_t t) {
    bool reads = false;
    for (uint32_t u = 0; u < n->reading->n_types; u++) reads |= vpps_reads(n, t, u);
    return reads && n->types[t].needed && !vpps_reads(n, t, t) && vpps_types_of_part(n, n->types[t].part) == 1;
}

void vpps_find_heads(const vpps_batch_needs *n, bool *heads) {
    const uint32_t n_types = n->reading->n_types;
    /* components are numbered in topological order: a reader's component has a higher number than those that it reads */
    for (uint32_t part = n->n_parts; part-- > 0;) {
        for (uint32_t t = 0; t < n_types; t++) {
            if (n->types[t].part != part) continue;
            bool head = may_be_head(n, t);
            for (uint32_t u = 0; u < n_types && head; u++) head = heads[u] || !vpps_reads(n, u, t);
            heads[t] = head;
        }
    }
}
