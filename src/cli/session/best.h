/* best.h - finds a run's best measurement of the dev data. */
#pragma once

#include "cli/input/task.h"

/* A measurement of the dev data: `value` is the chosen metric's, `next` the value of the metric after it in task.metrics. If two
 * measurements have value 0, the one with the better `next` is better: translators are compared by perplexity while BLEU is 0. */
typedef struct best_value {
    bool found; /* whether a finite value has been measured */
    double value, next;
} best_value;

/* A run's best measurements; all zero before the first one. A run keeps the metric of its first measurement, since
 * values of different metrics cannot be compared. */
typedef struct best_measure {
    bool chosen;           /* whether `metric` has been chosen */
    uint32_t metric;       /* index of the chosen metric in task.metrics: the first one that applies to the dev data */
    best_value any;        /* the best value of all measurements */
    uint32_t epoch, batch; /* the best value was measured after `epoch` epochs and `batch` batches of the next */
    /* the best of the measurements that --eval-every makes; --patience and --lr-schedule plateau use only these */
    best_value due;
    /* number of measurements by --eval-every after the best one; of all measurements while no value was finite */
    uint32_t since;
} best_measure;

/* Records a measurement of the dev data after `epoch` epochs and `batch` batches of the next epoch. Returns true if it is the best so far; a value
 * that is not finite never is, and any finite value is better than none. `due` is false for a measurement made only because the run ends: --patience
 * and --lr-schedule plateau do not count it. */
bool best_take(best_measure *b, const task *kind, const measures *dev, uint32_t epoch, uint32_t batch, bool due);

/* Returns whether the last `patience` or more measurements of --eval-every were no better than an earlier one; false for patience 0. */
bool best_is_old(const best_measure *b, uint32_t patience);
