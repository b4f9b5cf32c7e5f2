/* update.h - the optimiser's step: what a script's header says of it, and the script that does nothing else. */
#pragma once

#include "script/script.h"
#include "script/task.h"

/* Words that a script with an update has of parameters' own steps. */
uint32_t vpps_step_words(const vpps_batch_request *request, const vpps_model *model);

/* The optimiser, its numbers and the guard of a training request, into a header. */
void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request);
