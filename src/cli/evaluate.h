/* evaluate.h - accuracy of a network on trees. */
#ifndef VPPS_CLI_EVALUATE_H
#define VPPS_CLI_EVALUATE_H

#include "session.h"

typedef struct accuracy {
    bool known; /* false: nothing was evaluated */
    uint64_t roots, roots_right;
    uint64_t nodes, nodes_right; /* all labelled nodes that the network classifies, roots among them */
} accuracy;

/* Fractions, NaN where there is nothing to count, or for all nodes nothing but roots. */
double accuracy_root(const accuracy *a);
double accuracy_nodes(const accuracy *a);

/* The classes the network gives to the nodes of n trees where `heads` asks for one (elsewhere -1), one after the
 * other in *predicted, which is made to fit (*capacity) and freed by the caller. */
vpps_status evaluate_predict(session *x, const corpus_split *split, const uint32_t *trees, uint32_t n, net_heads heads,
                             int32_t **predicted, size_t *capacity);

/* Accuracy over a split, in batches of the settings' size. Ends early, with a->known false, once *stop is not 0
 * (stop may be NULL). */
vpps_status evaluate_split(session *x, const corpus_split *split, const volatile int *stop, accuracy *a);

/* `vpps eval`. */
int command_eval(settings *s);

#endif
