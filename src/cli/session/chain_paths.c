/* chain_paths.c - a sentence's likeliest tags, and each tag's probability. Exported programs have this file, too. */
#include "cli/session/chain_paths.h"
#include "base/base.h"

#include <math.h>
#include <stdlib.h>

static uint32_t best_of(uint32_t n, const double *x) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* Sets now[i] to the best score of a sequence that ends in tag i of word k, and from[i] to the tag before tag i in that
 * sequence. before[j]: the best score of a sequence that ends in tag j of word k - 1. */
static void add_tags_of(const tag_chain *ch, const float *logits, const double *before, double *paths, double *now,
                        uint32_t *from) {
    const uint32_t n = ch->classes;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) paths[j] = before[j] + (double)ch->next[(size_t)i * n + j];
        from[i] = best_of(n, paths);
        now[i] = paths[from[i]] + (double)logits[i];
    }
}

vpps_status chain_decode(const tag_chain *ch, uint32_t n, const float *const *logits, int32_t *tags) {
    if (!n) return VPPS_OK;
    const uint32_t classes = ch->classes;
    double *room = malloc(3 * ((size_t)classes + 1) * sizeof *room), *before = room, *now, *paths;
    uint32_t *from = calloc((size_t)n * classes + 1, sizeof *from); /* zeros: word 0 has no preceding tag */
    if (!room || !from) {
        VPPS_FREE(room, from);
        return vpps_fail(VPPS_MEMORY, "no memory for the tags of %u words", n);
    }
    now = room + classes;
    paths = now + classes;
    for (uint32_t i = 0; i < classes; i++) before[i] = (double)ch->begin[i] + (double)logits[0][i];
    for (uint32_t k = 1; k < n; k++) {
        add_tags_of(ch, logits[k], before, paths, now, from + (size_t)k * classes);
        double *other = before;
        before = now;
        now = other;
    }
    for (uint32_t i = 0; i < classes; i++) before[i] += (double)ch->end[i];
    uint32_t tag = best_of(classes, before);
    for (uint32_t k = n; k-- > 0; tag = from[(size_t)k * classes + tag]) tags[k] = (int32_t)tag;
    VPPS_FREE(room, from);
    return VPPS_OK;
}

static double log_add(double a, double b) {
    const double most = fmax(a, b), least = fmin(a, b);
    return most == -INFINITY ? most : most + log1p(exp(least - most));
}

/* forward[k][i]: the log of the sum of e^score over all sequences of tags of words 0 .. k that end in tag i. backward[k][i]: over all
 * sequences of tags of the words after k, given tag i of word k. */
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
