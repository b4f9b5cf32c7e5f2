/* update.h - the optimizer's step in a script: its numbers in the header, and a script that does nothing but update parameters. */
#pragma once

#include "script/script.h"
#include "script/task.h"

/* Returns the words that the parameters' own optimizer numbers take in a script with an update; 0: there are none. */
uint32_t vpps_step_words(const vpps_batch_request *request, const vpps_model *model);

/* Writes the optimizer, its numbers and the guard of a training request into a script's header. */
void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request);

/* Gives Adam's bias corrections, 1 / (1 - beta^updates) for both betas, after `updates` updates, the present one included. */
void vpps_correct_means(const vpps_task_header *h, uint64_t updates, float corrections[2]);

/* Returns whether an optimizer (Adam) corrects its means by the number of updates. */
static inline bool vpps_corrects_means(vpps_optimizer_kind kind) { return kind == VPPS_ADAM || kind == VPPS_ADAMW; }
