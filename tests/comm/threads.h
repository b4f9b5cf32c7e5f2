/* threads.h - a communicator whose processes are threads of one process, for tests without MPI. */
#pragma once

#include "runtime/comm/comm.h"

/* Runs `work` in `size` threads, each with its communicator, and waits for all. */
void threads_run(uint32_t size, void (*work)(vpps_communicator *c, void *argument), void *argument);
