/* update.h - the optimizer's step in a batch's program (script): writes settings such as the learning rate to the
 * program's header, and settings of single parameters to an array in the program. */
#pragma once

#include "script/script.h"
#include "script/writer.h"

/* Appends the parameters' own optimizer settings to a batch's program (script), and returns at which word; 0: there are
 * none, and all parameters use the settings in the program's header. */
uint32_t vpps_write_steps(vpps_writer *to, const vpps_batch_request *request, const vpps_model *model);

/* Copies from a training request to the header of a batch's program: the optimizer's kind and settings, and whether the
 * update is skipped if the loss or a gradient is not finite. */
void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request);

/* Gives Adam's bias corrections, 1 / (1 - beta^updates) for each beta; `updates`: number of updates, the current one included. */
void vpps_correct_means(const vpps_task_header *h, uint64_t updates, float corrections[2]);

/* Returns whether an optimizer, as Adam and AdamW do, uses bias corrections, which depend on the number of updates. */
static inline bool vpps_corrects_means(vpps_optimizer_kind kind) { return kind == VPPS_ADAM || kind == VPPS_ADAMW; }
