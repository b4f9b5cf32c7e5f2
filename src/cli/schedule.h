/* schedule.h - the learning rate of a batch. It follows from options and from where training stands, so that a resumed run has the
 * same. */
#pragma once

#include "cli/best.h"
#include "cli/options.h"

/* The learning rate of the next batch, after so many epochs of `batches` each, and batches of the one begun, where that of the first
 * one is `lr`, --lr or one of --lr-of. `drops`: how often --lr-schedule plateau has lowered it. */
float schedule_rate(const settings *s, float lr, uint32_t epoch, uint32_t batch, uint32_t batches, uint32_t drops);

/* Does --lr-schedule plateau lower the rate after the latest measurement? Every --lr-every measurements in a row that were no
 * better do. */
bool schedule_drops(const settings *s, const best_measure *best);
