/* update.h - the optimizer's step in a script: settings such as the learning rate, in the header and for single parameters. */
#pragma once

#include "script/script.h"
#include "script/writer.h"

/* Appends the parameters' own optimizer settings to a script, and returns the address; 0: all parameters use the header's settings. */
uint32_t vpps_write_steps(vpps_writer *to, const vpps_batch_request *request, const vpps_model *model);

/* Copies the optimizer's kind and settings, and the guard against non-finite gradients, from a training request into a script's header. */
void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request);

/* Gives Adam's bias corrections, 1 / (1 - beta^updates) for each beta; `updates`: number of updates, the current one included. */
void vpps_correct_means(const vpps_task_header *h, uint64_t updates, float corrections[2]);

/* Returns whether an optimizer, as Adam and AdamW do, uses bias corrections, which depend on the number of updates. */
static inline bool vpps_corrects_means(vpps_optimizer_kind kind) { return kind == VPPS_ADAM || kind == VPPS_ADAMW; }
