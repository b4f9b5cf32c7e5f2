/* signals.h - SIGINT, SIGTERM and SIGHUP request an orderly end; and the guard.
 *
 * The guard is a parent process that reports the death of a training process in a run of several processes. A killed process cannot
 * report anything, and its launcher may name neither rank nor host (MPICH's does not) before it ends the other processes. Therefore the
 * process that the launcher started becomes the guard: it forks a child, which trains, and waits for it.
 *
 * To the outside, guard and child act as one process: the guard forwards signals, stops and continues with the child, and neither outlives
 * the other. A signal to the whole process group reaches both but counts once. */
#pragma once

/* Non-zero once SIGINT, SIGTERM or SIGHUP has come; a second signal ends the process at once. */
extern volatile int interrupted;

void interrupt_install(void);

/* Forks the process into a guard (parent that only waits) and a child that continues the run; call guard_begin before any thread is
 * created. The call returns only in the child. The guard exits with the child's exit code. If a signal killed the child, the guard prints
 * the child's rank and host, unless the child aborted because another process had died before. If fork fails, the call returns, and the
 * process runs without a guard. */
void guard_begin(long rank);
