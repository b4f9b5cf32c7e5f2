/* evaluate.h - `vpps eval`, and the measures of a network. */
#ifndef VPPS_CLI_EVALUATE_H
#define VPPS_CLI_EVALUATE_H

#include "task.h"

/* The metric that tells which network is better: the first one with a value; MAX_METRICS: none has one. */
uint32_t measures_first(const task *t, const measures *m);

/* Is a better than b in a metric? */
bool metric_better(const metric *kind, double a, double b);

int command_eval(settings *s);

#endif
