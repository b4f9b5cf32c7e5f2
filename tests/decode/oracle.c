/* oracle.c - see oracle.h. */
#include "oracle.h"
#include "common/testing.h"

/* ---------------------------------------------------------------- probabilities */

static uint32_t followed_by(uint32_t prefix, uint32_t word) { return prefix * (ORACLE_CLASSES - 1) + 1 + word; }

/* Writes the words of a prefix; returns their number. */
static uint32_t spell(uint32_t prefix, uint32_t *words) {
    uint32_t n = 0;
    if (prefix) {
        n = spell((prefix - 1) / (ORACLE_CLASSES - 1), words);
        words[n++] = (prefix - 1) % (ORACLE_CLASSES - 1);
    }
    return n;
}

void oracle_open(oracle *o, vpps_handle *h, vpps_graph *g, const network *net, void *instance, const net_example *x) {
    vpps_node ends[ORACLE_PREFIXES];
    float logits[ORACLE_PREFIXES][ORACLE_CLASSES], *outs[ORACLE_PREFIXES];
    vpps_graph_clear(g);
    for (uint32_t p = 0; p < ORACLE_PREFIXES; p++) {
        uint32_t target[ORACLE_WORDS + 1] = {ORACLE_END};
        vpps_node all[ORACLE_WORDS], nll[ORACLE_WORDS];
        const uint32_t n = spell(p, target + 1);
        net_example y = *x;
        target[n + 1] = ORACLE_END;
        y.target = (vpps_sentence){.words = target, .n_words = n + 2};
        TEST_OK(net->add(instance, g, &y, NET_HEADS_ALL, &(net_scores){.logits = all, .nll = nll}));
        ends[p] = all[n];
        outs[p] = logits[p];
    }
    TEST_OK(vpps_forward(h, g, ORACLE_PREFIXES, ends, outs));
    for (uint32_t p = 0; p < ORACLE_PREFIXES; p++) {
        double sum = 0;
        for (int w = 0; w < ORACLE_CLASSES; w++) sum += exp(logits[p][w]);
        for (int w = 0; w < ORACLE_CLASSES; w++) o->logs[p][w] = logits[p][w] - log(sum);
    }
}

static double normalised(double sum, uint32_t n, double alpha) { return sum * pow(6, alpha) / pow(5 + n, alpha); }

double oracle_score(const oracle *o, const uint32_t *words, uint32_t n, double alpha) {
    uint32_t prefix = 0;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += o->logs[prefix][words[i]];
        prefix = followed_by(prefix, words[i]);
    }
    if (n == ORACLE_WORDS) return normalised(sum, n, alpha);
    return normalised(sum + o->logs[prefix][ORACLE_END], n + 1, alpha);
}

/* ---------------------------------------------------------------- searches */

static oracle_result result(uint32_t prefix, double score) {
    oracle_result r = {.score = score};
    r.n = spell(prefix, r.words);
    return r;
}

oracle_result oracle_exhaustive(const oracle *o, double alpha) {
    oracle_result best = {.score = -INFINITY};
    for (uint32_t p = 0; p < ORACLE_PREFIXES; p++) {
        uint32_t words[ORACLE_WORDS];
        const double score = oracle_score(o, words, spell(p, words), alpha);
        if (score > best.score) best = result(p, score);
    }
    return best;
}

static int falling(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

void oracle_rank(const oracle *o, double alpha, double scores[ORACLE_PREFIXES]) {
    for (uint32_t p = 0; p < ORACLE_PREFIXES; p++) {
        uint32_t words[ORACLE_WORDS];
        scores[p] = oracle_score(o, words, spell(p, words), alpha);
    }
    qsort(scores, ORACLE_PREFIXES, sizeof *scores, falling);
}

oracle_result oracle_greedy(const oracle *o) {
    uint32_t prefix = 0;
    double sum = 0;
    for (uint32_t n = 0; n < ORACLE_WORDS; n++) {
        const double *logs = o->logs[prefix];
        uint32_t likeliest = 0;
        for (uint32_t w = 1; w < ORACLE_CLASSES; w++) likeliest = logs[w] > logs[likeliest] ? w : likeliest;
        sum += logs[likeliest];
        if (likeliest == ORACLE_END) break;
        prefix = followed_by(prefix, likeliest);
    }
    return result(prefix, sum);
}

typedef struct hypothesis {
    uint32_t prefix, word;
    double sum;
} hypothesis;

static int from_good_to_bad(const void *a, const void *b) {
    const hypothesis *x = a, *y = b;
    return (x->sum < y->sum) - (x->sum > y->sum);
}

oracle_result oracle_beam(const oracle *o, uint32_t beam, double alpha) {
    enum { MOST = 1024 };
    hypothesis live[MOST] = {{0}}, next[MOST];
    uint32_t n_live = 1;
    oracle_result best = {.score = -INFINITY};
    for (uint32_t length = 1; length <= ORACLE_WORDS; length++) {
        uint32_t n = 0, kept = 0;
        for (uint32_t k = 0; k < n_live; k++)
            for (uint32_t w = 0; w < ORACLE_CLASSES; w++)
                next[n++] = (hypothesis){live[k].prefix, w, live[k].sum + o->logs[live[k].prefix][w]};
        qsort(next, n, sizeof *next, from_good_to_bad);
        for (uint32_t k = 0; k < n && kept < beam; k++) {
            const double score = normalised(next[k].sum, length, alpha);
            if (next[k].word != ORACLE_END) {
                live[kept++] = (hypothesis){followed_by(next[k].prefix, next[k].word), 0, next[k].sum};
            } else if (k < beam && score > best.score) {
                best = result(next[k].prefix, score);
            }
        }
        n_live = kept;
    }
    if (best.score > -INFINITY) return best;
    return result(live[0].prefix, normalised(live[0].sum, ORACLE_WORDS, alpha));
}
