/* update.h - the optimizer's step in a script: its numbers in the header, and the script of an update alone. */
#pragma once

#include "script/script.h"
#include "script/task.h"

/* Returns the words of a script with an update that parameters' own steps take. */
uint32_t vpps_step_words(const vpps_batch_request *request, const vpps_model *model);

/* Writes the optimizer, its numbers and the guard of a training request into a script's header. */
void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request);

/* Gives Adam's bias corrections, 1 / (1 - beta^updates) for both betas, after `updates` updates of the state with the present one. */
void vpps_correct_means(const vpps_task_header *h, uint64_t updates, float corrections[2]);

/* Returns whether an optimizer's step is corrected by how often its state was updated. */
static inline bool vpps_corrects_means(vpps_optimizer_kind kind) { return kind == VPPS_ADAM || kind == VPPS_ADAMW; }
