/* schedule.c - computes the learning rate of a batch (--lr-schedule). */
#include "cli/session/schedule.h"

#include <math.h>

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
    /* the part that is done of the batches after the warm-up: 0 for the first of them, less than 1 for the last */
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
