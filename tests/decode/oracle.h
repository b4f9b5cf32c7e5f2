/* oracle.h - what a search must find: the probabilities of all translations of one source up to a length, as the network computes them in training,
 * and the scores of searches that examine all translations, or never stop early. */
#pragma once

#include "common/testing.h"
#include "models.h"

/* A sentence has at most ORACLE_WORDS words, end word included. The end word is the last class. */
enum { ORACLE_CLASSES = 4, ORACLE_END = ORACLE_CLASSES - 1, ORACLE_WORDS = 5, ORACLE_PREFIXES = 121 };

/* Sentences without their last word are numbered: 0 is the empty one; p followed by word w has number p (CLASSES - 1) + 1 + w. */
typedef struct oracle {
    double logs[ORACLE_PREFIXES][ORACLE_CLASSES]; /* logs of the next word's probabilities */
} oracle;

/* ---------------------------------------------------------------- probabilities */

static uint32_t followed_by(uint32_t prefix, uint32_t word) { return prefix * (ORACLE_CLASSES - 1) + 1 + word; }

/* Writes the words of a prefix; returns their number. */
static uint32_t spell(uint32_t prefix, uint32_t *words) {
    if (!prefix) return 0;
    const uint32_t n = spell((prefix - 1) / (ORACLE_CLASSES - 1), words);
    words[n] = (prefix - 1) % (ORACLE_CLASSES - 1);
    return n + 1;
}

/* Clears g. */
static void oracle_open(oracle *o, vpps_handle *h, vpps_graph *g, const network *net, void *instance,
                        const net_example *x) {
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

/* Returns the score of a sentence without its end word, which a sentence of the greatest length need not have. */
static double oracle_score(const oracle *o, const uint32_t *words, uint32_t n, double alpha) {
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

static int falling(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* Gives the scores of all sentences, the best first. */
static void oracle_rank(const oracle *o, double alpha, double scores[ORACLE_PREFIXES]) {
    for (uint32_t p = 0; p < ORACLE_PREFIXES; p++) {
        uint32_t words[ORACLE_WORDS];
        scores[p] = oracle_score(o, words, spell(p, words), alpha);
    }
    qsort(scores, ORACLE_PREFIXES, sizeof *scores, falling);
}

/* Takes the likeliest word each time. */
static double oracle_greedy(const oracle *o) {
    double sum = 0;
    for (uint32_t n = 0, prefix = 0, likeliest = 0; n < ORACLE_WORDS && likeliest != ORACLE_END; n++) {
        const double *logs = o->logs[prefix];
        likeliest = 0;
        for (uint32_t w = 1; w < ORACLE_CLASSES; w++) likeliest = logs[w] > logs[likeliest] ? w : likeliest;
        sum += logs[likeliest];
        prefix = followed_by(prefix, likeliest);
    }
    return sum;
}

typedef struct hypothesis {
    double sum; /* of logs; comes first, so that `falling` compares it */
    uint32_t prefix, word;
} hypothesis;

/* Searches with a beam that never narrows and never stops early. */
static double oracle_beam(const oracle *o, uint32_t beam, double alpha) {
    enum { MOST = 1024 };
    hypothesis live[MOST] = {{0}}, next[MOST];
    uint32_t n_live = 1;
    double best = -INFINITY;
    for (uint32_t length = 1; length <= ORACLE_WORDS; length++) {
        uint32_t n = 0, kept = 0;
        for (uint32_t k = 0; k < n_live; k++)
            for (uint32_t w = 0; w < ORACLE_CLASSES; w++)
                next[n++] = (hypothesis){live[k].sum + o->logs[live[k].prefix][w], live[k].prefix, w};
        qsort(next, n, sizeof *next, falling);
        for (uint32_t k = 0; k < n && kept < beam; k++) {
            if (next[k].word != ORACLE_END)
                live[kept++] = (hypothesis){next[k].sum, followed_by(next[k].prefix, next[k].word), 0};
            else if (k < beam)
                best = fmax(best, normalised(next[k].sum, length, alpha));
        }
        n_live = kept;
    }
    return best > -INFINITY ? best : normalised(live[0].sum, ORACLE_WORDS, alpha);
}
