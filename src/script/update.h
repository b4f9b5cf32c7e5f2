/* update.h - the optimiser's step: what a script's header says of it, and the script that does nothing else. */
#pragma once

#include "script/script.h"
#include "script/task.h"

/* Words that a script with an update has of parameters' own steps. */
uint32_t vpps_step_words(const vpps_batch_request *request, const vpps_model *model);

/* The optimiser, its numbers and the guard of a training request, into a header. */
void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request);

/* Adam's bias correction, 1 / (1 - beta^updates) for both betas: `updates` counts those of the state, that of the step included. */
void vpps_correct_means(const vpps_task_header *h, uint64_t updates, float corrections[2]);

/* Is an optimiser's step corrected by how often its state was updated? */
static inline bool vpps_corrects_means(vpps_optimizer_kind kind) { return kind == VPPS_ADAM || kind == VPPS_ADAMW; }
