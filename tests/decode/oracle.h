/* oracle.h - what a search must find: probabilities of all translations of one source up to a length, as the network gives them in
 * training, and searches that look at all of them, or go on to the end. */
#pragma once

#include "models.h"

/* ORACLE_WORDS at most in a sentence, the end word counted. The end word is the last class. */
enum { ORACLE_CLASSES = 4, ORACLE_END = ORACLE_CLASSES - 1, ORACLE_WORDS = 5, ORACLE_PREFIXES = 121 };

/* Sentences without their last word are numbered: 0 is empty, p followed by word w is number p (CLASSES - 1) + 1 + w. */
typedef struct oracle {
    double logs[ORACLE_PREFIXES][ORACLE_CLASSES]; /* of the next word's probabilities */
} oracle;

typedef struct oracle_result {
    uint32_t words[ORACLE_WORDS], n;
    double score;
} oracle_result;

/* Clears g. */
void oracle_open(oracle *o, vpps_handle *h, vpps_graph *g, const network *net, void *instance, const net_example *x);

/* Of a sentence without its end word; as many words as there may be need not have one. */
double oracle_score(const oracle *o, const uint32_t *words, uint32_t n, double alpha);

/* The best of all sentences; and the scores of all, from good to bad. */
oracle_result oracle_exhaustive(const oracle *o, double alpha);
void oracle_rank(const oracle *o, double alpha, double scores[ORACLE_PREFIXES]);
/* The likeliest word after the likeliest word. */
oracle_result oracle_greedy(const oracle *o);
/* A beam that is never narrowed and never stops early. */
oracle_result oracle_beam(const oracle *o, uint32_t beam, double alpha);
