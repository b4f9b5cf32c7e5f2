/* best.c - keeps a run's best measurements of the dev data, and computes the learning rate of a batch (--lr-schedule). */
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

/* Replaces the best value by `value` if that is better. Metrics are not negative; 0 is the worst value unless lower is better. */
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

/* ---------------------------------------------------------------- the learning rate */

/* Returns how many times --lr-decay has lowered the learning rate. --lr-schedule step: once per --lr-every epochs. plateau: `drops` times,
 * as measurements decided. Other schedules: once per epoch. */
static uint32_t decays(const settings *s, uint32_t epoch, uint32_t drops) {
    switch (s->lr_schedule) {
    case SCHEDULE_STEP: return epoch / s->lr_every;
    case SCHEDULE_PLATEAU: return drops;
    default: return epoch;
    }
}

float schedule_rate(const settings *s, float lr, uint32_t epoch, uint32_t batch, uint32_t batches, uint32_t drops) {
    const uint64_t done = (uint64_t)epoch * batches + batch, all = (uint64_t)s->epochs * batches;
    /* the share of the batches after the warm-up that are done: 0 for the first batch, less than 1 for the last */
    const double share = done < s->warmup || all <= s->warmup ? 0
                         : done < all                         ? (double)(done - s->warmup) / (double)(all - s->warmup)
                                                              : 1;
    const double pi = 3.14159265358979323846;
    double rate = (double)lr * pow((double)s->lr_decay, decays(s, epoch, drops));
    if (done < s->warmup) rate *= (double)(done + 1) / s->warmup;
    if (s->lr_schedule == SCHEDULE_LINEAR) rate *= 1 - share;
    if (s->lr_schedule == SCHEDULE_COSINE) rate *= (1 + cos(pi * share)) / 2;
    return (float)rate;
}

bool schedule_drops(const settings *s, const best_measure *best) {
    return s->lr_schedule == SCHEDULE_PLATEAU && best->since && best->since % s->lr_every == 0;
}
