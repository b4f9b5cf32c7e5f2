/* best.h - which measurement of dev was the best of a run. */
#pragma once

#include "cli/task.h"

/* A measured value: by a metric, and, where two values are 0, by the task's next one, as perplexity while BLEU is 0. */
typedef struct best_value {
    bool found; /* was a value finite? */
    double value, next;
} best_value;

/* All zero: nothing was measured yet. A run keeps the metric of its first measurement, since values of different metrics cannot be
 * compared. */
typedef struct best_measure {
    bool chosen;           /* is there a metric? */
    uint32_t metric;       /* of the task's: the first one of which dev has something to count */
    best_value any;        /* the best of all measurements */
    uint32_t epoch, batch; /* when that was measured: epochs finished, and batches of the next one */
    best_value due;        /* the best of those of --eval-every, by which --patience and --lr-schedule plateau go */
    uint32_t since;        /* of these, measurements after it that were no better; without a finite value, all */
} best_measure;

/* Takes a measurement of dev, after so many epochs, and batches of the next one. True: it is the best so far. A value that is
 * not finite is never the best; any finite one is better than none. `due`: a run of any length makes this measurement; else it
 * is made because the run ends here, and --patience and --lr-schedule plateau do not count it. */
bool best_take(best_measure *b, const task *kind, const measures *dev, uint32_t epoch, uint32_t batch, bool due);

/* Have `patience` due measurements in a row been no better? 0: never. */
bool best_is_old(const best_measure *b, uint32_t patience);
