/* allocate.c - packs tensors into few words of memory, by their lifetimes. A hole is a range of words that no live tensor occupies. A new
 * tensor takes the smallest hole that is large enough; the rest of the hole stays a hole. Without such a hole, the tensor is placed after
 * all words used so far. */
#include "script/allocate.h"

/* A range of words that no live tensor occupies. */
typedef struct hole {
    uint64_t at, words;
} hole;

typedef struct sweep {
    vpps_tensor_life *all;
    uint32_t n;
    /* the tensors' numbers, sorted by the first phase (time between two barriers) in which a tensor is live, and by the last one */
    uint32_t *by_first, *by_last;
    uint8_t *apart; /* for each tensor: whether it is one of the largest, which are placed before all others */
    hole *holes;    /* holes (free ranges of words) by address; no two are adjacent */
    uint32_t n_holes;
    uint64_t end;
} sweep;

static void remove_hole(sweep *s, uint32_t i) {
    memmove(s->holes + i, s->holes + i + 1, (--s->n_holes - i) * sizeof *s->holes);
}

/* Turns the words of a dead tensor into a hole, merged with the adjacent holes. */
static void give_back(sweep *s, uint64_t at, uint64_t words) {
    uint32_t low = 0, high = s->n_holes;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (s->holes[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    const bool before = low && s->holes[low - 1].at + s->holes[low - 1].words == at;
    const bool after = low < s->n_holes && at + words == s->holes[low].at;
    if (before) {
        s->holes[low - 1].words += words + (after ? s->holes[low].words : 0);
        if (after) remove_hole(s, low);
    } else if (after) {
        s->holes[low].at = at;
        s->holes[low].words += words;
    } else {
        memmove(s->holes + low + 1, s->holes + low, (s->n_holes++ - low) * sizeof *s->holes);
        s->holes[low] = (hole){at, words};
    }
}

/* Takes words from the smallest hole that is large enough. Without such a hole, takes them at the end of all words in use. */
static uint64_t take(sweep *s, uint64_t words) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->n_holes; i++)
        if (s->holes[i].words >= words && (best == UINT32_MAX || s->holes[i].words < s->holes[best].words)) best = i;
    if (best == UINT32_MAX) {
        const hole *last = s->n_holes ? &s->holes[s->n_holes - 1] : NULL;
        const bool touches = last && last->at + last->words == s->end;
        const uint64_t at = touches ? last->at : s->end;
        if (touches) s->n_holes--;
        s->end = at + words;
        return at;
    }
    const uint64_t at = s->holes[best].at;
    s->holes[best].at += words;
    s->holes[best].words -= words;
    if (!s->holes[best].words) remove_hole(s, best);
    return at;
}

/* Sorts the tensors' numbers by first or last live phase (between two barriers); tensors that live to the end come after all others. */
static void sort_by_phase(const sweep *s, bool last, uint32_t n_phases, uint32_t *starts, uint32_t *order) {
    memset(starts, 0, (n_phases + (size_t)2) * sizeof *starts);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < s->n; i++) {
            const uint32_t phase = vpps_min_u32(last ? s->all[i].last : s->all[i].first, n_phases);
            if (pass)
                order[starts[phase]++] = i;
            else
                starts[phase + 1]++;
        }
        for (uint32_t p = 0; p <= n_phases && !pass; p++) starts[p + 1] += starts[p];
    }
}

static bool open_sweep(sweep *s, vpps_tensor_life *all, uint32_t n) {
    uint32_t n_phases = 1;
    for (uint32_t i = 0; i < n; i++) {
        n_phases = vpps_max_u32(n_phases, all[i].first + 1);
        if (all[i].last != UINT32_MAX) n_phases = vpps_max_u32(n_phases, all[i].last + 1);
    }
    *s = (sweep){.all = all, .n = n};
    uint32_t *starts = malloc((n_phases + (size_t)2) * sizeof *starts);
    s->by_first = malloc((2 * (size_t)n + 1) * sizeof *s->by_first);
    s->by_last = s->by_first + n;
    s->apart = calloc(n + (size_t)1, 1);
    s->holes = malloc((n + (size_t)1) * sizeof *s->holes);
    const bool ok = starts && s->by_first && s->apart && s->holes;
    if (ok) {
        sort_by_phase(s, false, n_phases, starts, s->by_first);
        sort_by_phase(s, true, n_phases, starts, s->by_last);
    }
    free(starts);
    return ok;
}

static void close_sweep(sweep *s) { VPPS_FREE(s->by_first, s->apart, s->holes); }

static uint64_t largest_live_set(const sweep *s) {
    uint64_t live = 0, largest = 0;
    uint32_t dead = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_tensor_life *t = &s->all[s->by_first[i]];
        for (; s->all[s->by_last[dead]].last < t->first; dead++) live -= s->all[s->by_last[dead]].words;
        live += t->words;
        if (live > largest) largest = live;
    }
    return largest;
}

/* Gives the lowest addresses to tensors that live to the end. Then places all further tensors, in the order in which they become live, each
 * in a hole (range of free words) that is large enough, or else after all words in use. Returns the number of words in use. */
static uint64_t place_as_made(sweep *s) {
    s->n_holes = 0;
    s->end = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->all[i].last != UINT32_MAX || s->apart[i]) continue;
        s->all[i].at = s->end;
        s->end += s->all[i].words;
    }
    uint32_t dead = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        vpps_tensor_life *t = &s->all[s->by_first[i]];
        if (t->last == UINT32_MAX || s->apart[s->by_first[i]]) continue;
        for (; s->all[s->by_last[dead]].last < t->first; dead++) {
            const uint32_t who = s->by_last[dead];
            if (!s->apart[who]) give_back(s, s->all[who].at, s->all[who].words);
        }
        t->at = take(s, t->words);
    }
    return s->end;
}

/* Places the given tensors one by one, each at the lowest free words. */
static uint64_t place_lowest(vpps_tensor_life *all, const uint32_t *named, uint32_t n) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        vpps_tensor_life *t = &all[named[i]];
        t->at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t k = 0; k < i; k++) {
                const vpps_tensor_life *o = &all[named[k]];
                if (t->at >= o->at + o->words || o->at >= t->at + t->words) continue;
                if (o->first > t->last || t->first > o->last) continue;
                t->at = o->at + o->words;
                moved = true;
            }
        }
        if (t->at + t->words > end) end = t->at + t->words;
    }
    return end;
}

/* Lists the numbers of the largest tensors, at most `most`, sorted by size. */
static uint32_t find_largest(const sweep *s, uint32_t most, uint32_t *largest) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint64_t words = s->all[i].words;
        if (n == most && s->all[largest[n - 1]].words >= words) continue;
        uint32_t at = n < most ? n++ : most - 1;
        for (; at && s->all[largest[at - 1]].words < words; at--) largest[at] = largest[at - 1];
        largest[at] = i;
    }
    return n;
}

/* Places the LARGE largest tensors by size, each at the lowest possible address; above them all others, in the order in which they become live. */
static uint64_t place_largest_first(sweep *s) {
    enum { LARGE = 48 };
    uint32_t largest[LARGE];
    const uint32_t n = find_largest(s, LARGE, largest);
    const uint64_t below = place_lowest(s->all, largest, n);
    for (uint32_t i = 0; i < n; i++) s->apart[largest[i]] = 1;
    const uint64_t above = place_as_made(s);
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->apart[i]) s->all[i].at += below;
    memset(s->apart, 0, s->n);
    return below + above;
}

/* Places all tensors. Placing them in order of creation nearly always takes the least possible number of words. If it does not, or if there are few
 * tensors, a placement of the largest tensors first is tried too. */
bool vpps_allocate(vpps_tensor_life *all, uint32_t n, uint64_t *words, uint64_t *live) {
    enum { FEW = 48, NEAR = 16 };
    sweep s;
    const bool ok = open_sweep(&s, all, n);
    *words = *live = 0;
    if (ok) {
        *live = largest_live_set(&s);
        *words = place_as_made(&s);
        if (*words > *live + (n > FEW ? *live / NEAR : 0)) {
            const uint64_t other = place_largest_first(&s);
            if (other > *words) place_as_made(&s);
            if (other < *words) *words = other;
        }
    }
    close_sweep(&s);
    return ok;
}
