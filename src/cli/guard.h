/* guard.h - a process of several that is killed says nothing, and its launcher may name neither its rank nor its host (MPICH's
 * does not) before it ends all others. So each trains in a child of the process that was started, which waits for it.
 *
 * To the rest of the world both are one process: signals that reach the guard are handed on, where it is stopped the child stops,
 * too, and none outlives the other. A launcher that signals the whole group reaches both, which counts once.
 */
#pragma once

#include <sys/types.h>

/* Before there are threads: returns in the child, in which the run goes on; the guard ends as the child does, and when that was
 * killed it says so, by rank and host, once. A child that aborted because another process died is not told of. Where no process
 * can be made it returns here, and nothing guards. */
void guard_begin(long rank);

/* The guard of this process; 0: there is none. */
extern volatile pid_t guard;
