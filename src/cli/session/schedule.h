/* schedule.h - computes the learning rate of a batch. It depends only on options and the position in training, so that
 * a resumed run has the same rate. */
#pragma once

#include "cli/options/options.h"
#include "cli/session/best.h"

/* Returns the learning rate of the next batch, after `epoch` epochs of `batches` batches and `batch` batches of the current epoch. `lr` is
 * the initial rate (--lr or one of --lr-of), `drops` how often --lr-schedule plateau has lowered it. */
float schedule_rate(const settings *s, float lr, uint32_t epoch, uint32_t batch, uint32_t batches, uint32_t drops);

/* Returns whether --lr-schedule plateau lowers the rate now: after every --lr-every measurements in a row that were no better than the best. */
bool schedule_drops(const settings *s, const best_measure *best);
