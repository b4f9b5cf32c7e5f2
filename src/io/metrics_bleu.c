/* metrics_bleu.c - corpus BLEU (Papineni, Roukos, Ward and Zhu 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation"). */
#include "vpps_data.h"

#include "base/base.h"

#include <math.h>

#define ORDERS 4u

/* Returns whether two n-grams are equal; VPPS_NO_WORD equals no word. */
static bool equal_ngrams(const uint32_t *a, const uint32_t *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i] || a[i] == VPPS_NO_WORD) return false;
    return true;
}

/* Counts the hypothesis' n-grams that match one of the reference. Each reference n-gram matches once (clipping). */
static uint64_t count_matches(uint32_t n, uint32_t n_hypothesis, const uint32_t *hypothesis, uint32_t n_reference,
                              const uint32_t *reference, bool *taken) {
    uint64_t matches = 0;
    if (n_hypothesis < n || n_reference < n) return 0;
    memset(taken, 0, n_reference * sizeof *taken);
    for (uint32_t i = 0; i + n <= n_hypothesis; i++) {
        for (uint32_t k = 0; k + n <= n_reference; k++) {
            if (taken[k] || !equal_ngrams(hypothesis + i, reference + k, n)) continue;
            taken[k] = true;
            matches++;
            break;
        }
    }
    return matches;
}

vpps_status vpps_bleu_add(vpps_bleu *b, uint32_t n_hypothesis, const uint32_t *hypothesis, uint32_t n_reference,
                          const uint32_t *reference) {
    VPPS_NEED(b);
    if (n_hypothesis) VPPS_NEED(hypothesis);
    if (n_reference) VPPS_NEED(reference);
    VPPS_FREED bool *taken = vpps_scratch(n_reference ? n_reference : 1);
    if (!taken) return vpps_fail(VPPS_MEMORY, "BLEU: out of memory for a sentence of %u words", n_reference);
    for (uint32_t n = 1; n <= ORDERS; n++) {
        b->matches[n - 1] += count_matches(n, n_hypothesis, hypothesis, n_reference, reference, taken);
        b->possible[n - 1] += n_hypothesis >= n ? n_hypothesis - n + 1 : 0;
    }
    b->hypothesis_words += n_hypothesis;
    b->reference_words += n_reference;
    return VPPS_OK;
}

/* Returns the geometric mean of the four n-gram precisions, times the brevity penalty. */
double vpps_bleu_score(const vpps_bleu *b, vpps_bleu_smoothing smoothing) {
    double logs = 0, part = 1;
    if (!b || b->matches[0] == 0) return 0; /* without a matching word no n-gram matches */
    for (uint32_t n = 0; n < ORDERS; n++) {
        double matches = (double)b->matches[n];
        if (b->possible[n] == 0 || (matches == 0 && smoothing == VPPS_BLEU_NONE)) return 0;
        if (matches == 0) matches = part /= 2;
        logs += log(matches / (double)b->possible[n]);
    }
    const double shortage = 1 - (double)b->reference_words / (double)b->hypothesis_words;
    return 100 * exp(logs / ORDERS + (shortage < 0 ? shortage : 0));
}

const char *vpps_bleu_signature(vpps_bleu_smoothing smoothing) {
    return smoothing == VPPS_BLEU_NONE ? "BLEU|tok:none|case:as-is|refs:1|smooth:none"
                                       : "BLEU|tok:none|case:as-is|refs:1|smooth:exp";
}
