/* guard_process.h - a parent process that reports the death of a training process in a run of several processes. A killed process cannot
 * report anything, and its launcher may name neither rank nor host (MPICH's does not) before it ends the other processes. Therefore the
 * process that the launcher started becomes the guard: it forks a child, which trains, and waits for it.
 *
 * To the outside, guard and child act as one process: the guard forwards signals, stops and continues with the child, and neither outlives
 * the other. A signal to the whole process group reaches both but counts once. */
#pragma once

#include <sys/types.h>

/* Forks the process into a guard and a child; call it before any thread is created. It returns in the child, which continues the run. The
 * guard exits as the child does; if the child was killed, the guard prints its rank and host once, except when it aborted because another
 * process died. If fork fails, it returns in the only process, without a guard. */
void guard_begin(long rank);

/* The process id of the guard that waits for this process; 0: there is no guard. */
extern volatile pid_t guard;
