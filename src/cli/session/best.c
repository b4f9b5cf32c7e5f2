/* best.c - keeps a run's best measurements of the dev data. */
#include "cli/session/best.h"

#include <math.h>

/* Chooses the first metric that applies to the dev data, and keeps that choice while the metric applies. */
static bool choose_metric(best_measure *b, const task *kind, const measures *dev) {
    if (b->chosen && dev->counted[b->metric]) return true;
    for (uint32_t i = 0; i < MAX_METRICS && kind->metrics[i].name; i++) {
        if (!dev->counted[i]) continue;
        *b = (best_measure){.chosen = true, .metric = i};
        return true;
    }
    return false;
}

static bool is_better(const metric *kind, double value, double best) {
    return kind->falls ? value < best : value > best;
}

/* Replaces the best value by `value` if that is better. While both are 0 and more is better, `next`, the next metric's value, decides. */
static bool take(best_value *best, const metric *kind, double value, double next) {
    const bool nothing = best->found && value == 0 && best->value == 0 && !kind[0].falls && kind[1].name;
    const bool better = nothing ? is_better(&kind[1], next, best->next) : is_better(&kind[0], value, best->value);
    if (!isfinite(value) || (best->found && !better)) return false;
    *best = (best_value){true, value, next};
    return true;
}

bool best_take(best_measure *b, const task *kind, const measures *dev, uint32_t epoch, uint32_t batch, bool due) {
    if (!dev->known || !choose_metric(b, kind, dev)) return false;
    const metric *measure = &kind->metrics[b->metric];
    const double value = dev->value[b->metric], next = b->metric + 1 < MAX_METRICS ? dev->value[b->metric + 1] : NAN;
    if (due) b->since = take(&b->due, measure, value, next) ? 0 : b->since + 1;
    if (!take(&b->any, measure, value, next)) return false;
    b->epoch = epoch;
    b->batch = batch;
    return true;
}

bool best_is_old(const best_measure *b, uint32_t patience) { return patience && b->since >= patience; }
