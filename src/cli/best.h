/* best.h - which measurement of dev was the best of a run. */
#pragma once

#include "cli/task.h"

/* All zero: nothing was measured yet. A run keeps the metric of its first measurement, since values of different metrics cannot be
 * compared. */
typedef struct best_measure {
    bool chosen;           /* is there a metric? */
    uint32_t metric;       /* of the task's: the first one of which dev has something to count */
    bool found;            /* was a value finite? */
    double value;          /* the best one */
    uint32_t epoch, batch; /* when it was measured: epochs finished, and batches of the next one */
    uint32_t since;        /* measurements after it that were no better; without a finite value, all */
} best_measure;

/* Takes a measurement of dev, after so many epochs, and batches of the next one. True: it is the best so far. A value that is
 * not finite is never the best; any finite one is better than none. `trained`: the network has changed since the measurement
 * before; else the measurement does not count as one that was no better. */
bool best_take(best_measure *b, const task *kind, const measures *dev, uint32_t epoch, uint32_t batch, bool trained);

/* Have `patience` measurements in a row been no better? 0: never. */
bool best_is_old(const best_measure *b, uint32_t patience);
