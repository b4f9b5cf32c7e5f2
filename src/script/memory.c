/* memory.c - where blocks lie in the pool. A tensor lives from the phase that first writes it to the last that reads it;
 * two lie in the same words only if their lives do not meet. The largest are placed first, each as low as it fits. */
#include "script/work.h"

typedef struct tensor {
    uint64_t words, at;
    uint32_t first, last, group;
    uint32_t *offset;
} tensor;

static int larger_first(const void *a, const void *b) {
    const tensor *x = a, *y = b;
    if (x->words != y->words) return x->words < y->words ? 1 : -1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Groups have phases of their own: what two of them use may meet at any time. */
static bool meet(const tensor *a, const tensor *b) {
    return a->group != b->group || (a->first <= b->last && b->first <= a->last);
}

static uint64_t place(const tensor *all, uint32_t n, uint64_t base, tensor *t) {
    uint64_t at = base;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < n; i++) {
            const tensor *o = &all[i];
            if (at < o->at + o->words && o->at < at + t->words && meet(o, t)) {
                at = o->at + o->words;
                moved = true;
            }
        }
    }
    t->at = at;
    return at + t->words;
}

/* Lives of a block's tensors: of its kept values, and of what it contributes. The update may read what was
 * kept, where there is one wave. */
static void set_lives(const vpps_batch_work *w, uint32_t i, tensor *kept, tensor *contributions) {
    const vpps_block_work *b = &w->blocks[i];
    const uint32_t place = b->wave * w->n_groups + b->group;
    *kept = (tensor){.first = b->first_phase, .last = b->last_forward, .group = b->group};
    *contributions = (tensor){.first = b->first_backward, .last = b->last_backward, .group = b->group};
    if (b->first_phase == VPPS_NONE) kept->first = 0; /* it has no stages, and keeps nothing */
    bool lookups = false;
    const vpps_compiled_cell *c = w->used[b->type].cell;
    for (uint32_t j = 0; j < c->n_contributions; j++) lookups |= c->contributions[j].lookup;
    for (uint32_t t = 0; t < w->n_used; t++) {
        if (w->used[t].first_block == VPPS_NONE) continue;
        const vpps_block_work *other = &w->blocks[w->used[t].first_block + place];
        if (vpps_reads(w, b->type, t)) contributions->last = vpps_max_u32(contributions->last, other->last_backward);
        if (vpps_reads(w, t, b->type)) kept->last = vpps_max_u32(kept->last, other->last_forward);
    }
    if (w->training) kept->last = w->n_waves == 1 ? UINT32_MAX : b->wave_end;
    if (lookups) contributions->last = UINT32_MAX;
}

static bool keeps_request(const vpps_batch_work *w, uint32_t block) {
    for (uint32_t i = 0; i < w->request->n_outputs && !w->training; i++)
        if (vpps_block_of(w, w->requested[i].vertex) == block) return true;
    return false;
}

static uint64_t rounded(uint64_t words) { return (words + 15) & ~(uint64_t)15; }

vpps_status vpps_place_blocks(vpps_batch_work *w) {
    const uint32_t n = w->n_blocks;
    tensor *tensors = malloc(((1 + VPPS_DOMAINS) * (size_t)n + 1) * sizeof *tensors);
    if (!tensors) return vpps_no_memory();
    uint32_t n_tensors = 0;
    for (uint32_t i = 0; i < n; i++) {
        vpps_block_work *b = &w->blocks[i];
        const vpps_compiled_cell *c = w->used[b->type].cell;
        const vpps_block view = vpps_block_made(w, i);
        tensor kept, contributions;
        set_lives(w, i, &kept, &contributions);
        if (keeps_request(w, i)) kept.last = UINT32_MAX;
        contributions.words = 0;
        for (uint32_t j = 0; j < c->n_contributions; j++) contributions.words += vpps_contribution_words(c, &view, j);
        contributions.offset = &b->contributions;
        b->contributions = 0;
        if (contributions.words) tensors[n_tensors++] = contributions;
        for (uint32_t d = 0; d < VPPS_DOMAINS; d++) {
            kept.words = rounded((uint64_t)vpps_items(&view, d) * c->kept_words[d]);
            kept.offset = &b->kept[d];
            b->kept[d] = 0;
            if (kept.words) tensors[n_tensors++] = kept;
        }
    }
    qsort(tensors, n_tensors, sizeof *tensors, larger_first);
    const uint64_t base = w->next_word;
    uint64_t end = base;
    for (uint32_t i = 0; i < n_tensors; i++) {
        const uint64_t next = place(tensors, i, base, &tensors[i]);
        if (next > end) end = next;
    }
    if (end <= UINT32_MAX)
        for (uint32_t i = 0; i < n_tensors; i++) *tensors[i].offset = (uint32_t)tensors[i].at;
    w->next_word = end;
    free(tensors);
    return VPPS_OK;
}
