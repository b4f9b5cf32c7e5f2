/* chain.c - see chain.h. */
#include "cli/chain.h"
#include "base/base.h"
#include "io/chunks.h"

#include <math.h>

/* ---------------------------------------------------------------- schemes */

bool chain_allows(chain_scheme scheme, const char *before, const char *now) {
    vpps_chunk_tag a, b;
    vpps_chunk_tag_read(before, &a);
    vpps_chunk_tag_read(now, &b);
    const bool within = b.part == 'I' || b.part == 'E'; /* the tag wants a chunk of its type to go on */
    const bool open = a.part == 'B' || a.part == 'I';   /* a chunk may go on, or with IOBES must */
    const bool goes_on = open && within && strcmp(a.type, b.type) == 0;
    switch (scheme) {
    case CHAIN_IOB1: return b.part != 'B' || (open && strcmp(a.type, b.type) == 0); /* B parts chunks of one type */
    case CHAIN_IOB2: return !within || goes_on;
    case CHAIN_IOBES: return within || open ? goes_on : true;
    default: return true;
    }
}

/* Which tags a path leads to that begins where ends[tag] allows; tag a comes next to tag b where next[a * of_a + b * of_b] allows. */
static void spread(const tag_chain *ch, const float *ends, size_t of_a, size_t of_b, bool *reached) {
    const uint32_t n = ch->classes;
    for (uint32_t a = 0; a < n; a++) reached[a] = ends[a] > -INFINITY;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t a = 0; a < n; a++) {
            for (uint32_t b = 0; b < n && !reached[a]; b++)
                more |= reached[a] = reached[b] && ch->next[a * of_a + b * of_b] > -INFINITY;
        }
    }
}

/* A tag that no sentence may have is one of another scheme. */
static vpps_status check_tags(const tag_chain *ch, chain_scheme scheme, const vpps_vocab *tags) {
    const uint32_t n = ch->classes;
    const char *other = NULL;
    bool *from_begin = calloc(2 * (size_t)n + 1, sizeof *from_begin);
    if (!from_begin) return vpps_fail(VPPS_MEMORY, "no memory for %u tags", n);
    bool *const to_end = from_begin + n;
    spread(ch, ch->begin, n, 1, from_begin);
    spread(ch, ch->end, 1, n, to_end);
    for (uint32_t i = 0; i < n && !other; i++) {
        vpps_chunk_tag tag;
        vpps_chunk_tag_read(vpps_vocab_word(tags, i), &tag);
        const bool ends = tag.part == 'E' || tag.part == 'S';
        if (!from_begin[i] || !to_end[i] || (ends && scheme != CHAIN_IOBES)) other = vpps_vocab_word(tags, i);
    }
    free(from_begin);
    if (!other) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "--scheme: the network's tag '%.40s' is of another scheme", other);
}

vpps_status chain_forbid(tag_chain *ch, chain_scheme scheme, const vpps_vocab *tags) {
    if (scheme == CHAIN_ANY) return VPPS_OK;
    if (!tags || vpps_vocab_find(tags, "O", 1) == VPPS_NO_WORD || !vpps_f1_applies(tags))
        return vpps_fail(VPPS_ARGUMENT,
                         "--scheme: the network's tags are not those of chunks; expected O, B-x, I-x and so on");
    for (uint32_t i = 0; i < ch->classes; i++) {
        const char *tag = vpps_vocab_word(tags, i);
        if (!chain_allows(scheme, "O", tag)) ch->begin[i] = -INFINITY;
        if (!chain_allows(scheme, tag, "O")) ch->end[i] = -INFINITY;
        for (uint32_t j = 0; j < ch->classes; j++)
            if (!chain_allows(scheme, vpps_vocab_word(tags, j), tag)) ch->next[(size_t)i * ch->classes + j] = -INFINITY;
    }
    return check_tags(ch, scheme, tags);
}

vpps_status chain_check(chain_scheme scheme, const vpps_vocab *tags) {
    tag_chain ch = {0};
    if (scheme == CHAIN_ANY) return VPPS_OK;
    VPPS_TRY(chain_open(&ch, tags ? vpps_vocab_size(tags) : 0));
    const vpps_status status = chain_forbid(&ch, scheme, tags);
    chain_close(&ch);
    return status;
}

/* ---------------------------------------------------------------- memory */

vpps_status chain_open(tag_chain *ch, uint32_t classes) {
    const size_t n = classes;
    *ch = (tag_chain){.classes = classes, .next = calloc(n * n + 2 * n + 1, sizeof *ch->next)};
    if (!ch->next)
        return vpps_fail(VPPS_MEMORY, "no memory for the scores of which of %u tags follow each other", classes);
    ch->begin = ch->next + n * n;
    ch->end = ch->begin + n;
    return VPPS_OK;
}

void chain_close(tag_chain *ch) {
    free(ch->next);
    *ch = (tag_chain){0};
}

/* ---------------------------------------------------------------- the likeliest tags */

static uint32_t greatest(uint32_t n, const double *x) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* The best score of a path that ends in each tag of word k, from those of the preceding word; from[i]: the tag before tag i on it. */
static void step(const tag_chain *ch, const float *logits, const double *before, double *paths, double *now,
                 uint32_t *from) {
    const uint32_t n = ch->classes;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) paths[j] = before[j] + (double)ch->next[(size_t)i * n + j];
        from[i] = greatest(n, paths);
        now[i] = paths[from[i]] + (double)logits[i];
    }
}

static void decode(const tag_chain *ch, uint32_t n, const float *const *logits, double *room, uint32_t *from,
                   int32_t *tags) {
    const uint32_t classes = ch->classes;
    double *before = room, *now = room + classes, *paths = now + classes;
    for (uint32_t i = 0; i < classes; i++) before[i] = (double)ch->begin[i] + (double)logits[0][i];
    for (uint32_t k = 1; k < n; k++) {
        step(ch, logits[k], before, paths, now, from + (size_t)k * classes);
        double *other = before;
        before = now;
        now = other;
    }
    for (uint32_t i = 0; i < classes; i++) before[i] += (double)ch->end[i];
    uint32_t tag = greatest(classes, before);
    for (uint32_t k = n; k-- > 0; tag = from[(size_t)k * classes + tag]) tags[k] = (int32_t)tag;
}

vpps_status chain_decode(const tag_chain *ch, uint32_t n, const float *const *logits, int32_t *tags) {
    if (!n) return VPPS_OK;
    double *room = malloc(3 * ((size_t)ch->classes + 1) * sizeof *room);
    uint32_t *from = calloc((size_t)n * ch->classes + 1, sizeof *from); /* of word 0 there is none */
    if (room && from) decode(ch, n, logits, room, from, tags);
    const bool ok = room && from;
    VPPS_FREE(room, from);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for the tags of %u words", n);
}

/* ---------------------------------------------------------------- probabilities */

static double log_add(double a, double b) {
    const double most = fmax(a, b), least = fmin(a, b);
    return most == -INFINITY ? most : most + log1p(exp(least - most));
}

/* forward[k][i]: the log of the sum of e^score over all tags of the words up to k, of which word k's is i; backward[k][i]: over all tags
 * of the words after k, where word k's is i. */
static void sum_paths(const tag_chain *ch, uint32_t n, const float *const *logits, double *forward, double *backward) {
    const uint32_t classes = ch->classes;
    for (size_t a = 0; a < (size_t)n * classes; a++) forward[a] = backward[a] = -INFINITY;
    for (uint32_t i = 0; i < classes; i++) {
        forward[i] = (double)ch->begin[i] + (double)logits[0][i];
        backward[(size_t)(n - 1) * classes + i] = (double)ch->end[i];
    }
    for (uint32_t k = 1; k < n; k++) {
        const double *before = forward + (size_t)(k - 1) * classes;
        double *now = forward + (size_t)k * classes;
        for (uint32_t i = 0; i < classes; i++) {
            for (uint32_t j = 0; j < classes; j++)
                now[i] = log_add(now[i], before[j] + (double)ch->next[(size_t)i * classes + j]);
            now[i] += (double)logits[k][i];
        }
    }
    for (uint32_t k = n - 1; k-- > 0;) {
        const double *after = backward + (size_t)(k + 1) * classes;
        double *now = backward + (size_t)k * classes;
        for (uint32_t j = 0; j < classes; j++)
            for (uint32_t i = 0; i < classes; i++)
                now[j] =
                    log_add(now[j], after[i] + (double)ch->next[(size_t)i * classes + j] + (double)logits[k + 1][i]);
    }
}

vpps_status chain_marginals(const tag_chain *ch, uint32_t n, const float *const *logits, float *log_p) {
    const size_t elems = (size_t)n * ch->classes;
    if (!n) return VPPS_OK;
    double *forward = calloc(2 * elems + 1, sizeof *forward);
    if (!forward) return vpps_fail(VPPS_MEMORY, "no memory for the tags of %u words", n);
    double *const backward = forward + elems;
    sum_paths(ch, n, logits, forward, backward);
    for (uint32_t k = 0; k < n; k++) {
        double all = -INFINITY;
        const size_t at = (size_t)k * ch->classes;
        for (uint32_t i = 0; i < ch->classes; i++) all = log_add(all, forward[at + i] + backward[at + i]);
        for (uint32_t i = 0; i < ch->classes; i++) log_p[at + i] = (float)(forward[at + i] + backward[at + i] - all);
    }
    free(forward);
    return VPPS_OK;
}
