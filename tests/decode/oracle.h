/* oracle.h - what a search must find: the probabilities of all translations of one source up to a length, as the network computes them in training,
 * and searches that examine all translations, or never stop early. */
#pragma once

#include "models.h"

/* A sentence has at most ORACLE_WORDS words, end word included. The end word is the last class. */
enum { ORACLE_CLASSES = 4, ORACLE_END = ORACLE_CLASSES - 1, ORACLE_WORDS = 5, ORACLE_PREFIXES = 121 };

/* Sentences without their last word are numbered: 0 is the empty one; p followed by word w has number p (CLASSES - 1) + 1 + w. */
typedef struct oracle {
    double logs[ORACLE_PREFIXES][ORACLE_CLASSES]; /* logs of the next word's probabilities */
} oracle;

typedef struct oracle_result {
    uint32_t words[ORACLE_WORDS], n;
    double score;
} oracle_result;

/* Clears g. */
void oracle_open(oracle *o, vpps_handle *h, vpps_graph *g, const network *net, void *instance, const net_example *x);

/* Returns the score of a sentence without its end word, which a sentence of the greatest length need not have. */
double oracle_score(const oracle *o, const uint32_t *words, uint32_t n, double alpha);

/* Returns the best of all sentences, and the scores of all, the best first. */
oracle_result oracle_exhaustive(const oracle *o, double alpha);
void oracle_rank(const oracle *o, double alpha, double scores[ORACLE_PREFIXES]);
/* Takes the likeliest word each time. */
oracle_result oracle_greedy(const oracle *o);
/* Searches with a beam that never narrows and never stops early. */
oracle_result oracle_beam(const oracle *o, uint32_t beam, double alpha);
