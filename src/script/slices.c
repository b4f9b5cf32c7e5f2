/* slices.c - heads, and which slice of its wave each of their vertices runs in. Heads are the types that only the loss and other
 * heads read, and that are no recurrence: classifiers, which keep more than all that is below them where there are many
 * classes. Their vertices need little of each other, so that a wave may run them slice by slice, forward and backward, while
 * the rest of it waits: what one slice keeps lies where the slice before kept its own, and what it contributes to the rest
 * stays until the rest's backward. */
#include "script/scopes.h"

/* A recurrence runs level by level. What reads nothing, as an input, may be what all heads read: it would tie them together. */
static bool may_be_head(const vpps_batch_work *w, uint32_t t) {
    bool reads = false;
    for (uint32_t u = 0; u < w->n_used; u++) reads |= vpps_reads(w, t, u);
    return reads && w->used[t].needed && !vpps_reads(w, t, t) && vpps_types_of_part(w, w->used[t].part) == 1;
}

void vpps_find_heads(vpps_batch_work *w) {
    for (uint32_t part = w->n_parts; part-- > 0;) { /* readers come behind what they read */
        for (uint32_t t = 0; t < w->n_used; t++) {
            if (w->used[t].part != part) continue;
            bool head = may_be_head(w, t);
            for (uint32_t u = 0; u < w->n_used && head; u++) head = w->used[u].head || !vpps_reads(w, u, t);
            w->used[t].head = head;
        }
    }
}

static bool is_head(const vpps_batch_work *w, uint32_t vertex) {
    return w->needed[vertex] && w->used[w->vertices[vertex].type].head;
}

/* Words that a vertex keeps; at least one. */
static uint64_t words_of(const vpps_batch_work *w, uint32_t vertex) {
    const vpps_compiled_cell *c = w->used[w->vertices[vertex].type].cell;
    uint64_t words = 1;
    for (uint32_t r = 0; r < VPPS_RECORDS; r++) {
        const uint32_t d = vpps_domain_of(r);
        words += (uint64_t)c->kept_words[r] * (d && c->kept_words[r] ? w->rests[vertex].members[d - 1] : 1);
    }
    return words;
}

/* The heads' vertices of a wave of a group. */
typedef struct share {
    uint64_t words, before; /* that they keep; of those that have been dealt */
    uint32_t n;             /* that are joined, as one */
} share;

/* first[v]: of the heads' vertices that v is joined with, because one reads another, the first. */
static void join(const vpps_batch_work *w, uint32_t *first) {
    for (uint32_t r = 0; r < w->n_vertices; r++) first[r] = r;
    for (size_t s = 0; s < w->n_sources; s++) {
        const vpps_read *x = &w->sources[s];
        if (!is_head(w, x->reader) || !is_head(w, x->vertex)) continue;
        const uint32_t a = vpps_find_root(first, x->reader), b = vpps_find_root(first, x->vertex);
        if (a != b) first[a > b ? a : b] = a > b ? b : a;
    }
    for (uint32_t r = 0; r < w->n_vertices; r++) first[r] = vpps_find_root(first, r);
}

/* Deals heads, in the batch's order, to slices that keep alike; all others belong to their wave's last slice. `words`: zeros. */
static void deal(vpps_batch_work *w, const uint32_t *first, uint64_t *words, share *shares) {
    uint32_t most = 1;
    for (uint32_t r = 0; r < w->n_vertices; r++)
        if (is_head(w, r)) words[first[r]] += words_of(w, r);
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        if (!words[r]) continue;
        share *s = &shares[w->place[r]];
        s->words += words[r];
        most = vpps_max_u32(most, ++s->n);
    }
    w->n_slices = vpps_min_u32(w->n_slices, most);
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        const uint32_t wave = w->place[r] / w->n_groups, group = w->place[r] % w->n_groups;
        uint32_t slice = w->n_slices - 1;
        if (words[r]) {
            share *s = &shares[w->place[r]];
            slice = (uint32_t)((s->before + words[r] / 2) * w->n_slices / (s->words + 1));
            s->before += words[r];
        }
        if (is_head(w, r) && first[r] != r) {
            w->place[r] = w->place[first[r]]; /* which was dealt before */
        } else {
            w->place[r] = (wave * w->n_slices + slice) * w->n_groups + group;
        }
    }
}

bool vpps_deal_heads(vpps_batch_work *w) {
    if (w->n_slices == 1) return true;
    vpps_find_heads(w);
    uint32_t *first = malloc((w->n_vertices + 1u) * sizeof *first);
    uint64_t *words = calloc(w->n_vertices + 1u, sizeof *words);
    share *shares = calloc((size_t)w->n_waves * w->n_groups, sizeof *shares);
    const bool ok = first && words && shares;
    if (ok) {
        join(w, first);
        deal(w, first, words, shares);
    }
    free(first);
    free(words);
    free(shares);
    return ok;
}
