/* execution.h - runs scripts by the CPU device's own code, a task at a time, with the virtual processors in any order: the second opinion on a script
 * that the checker accepts. Memory that nothing has written holds NaN. */
#pragma once

#include "fixture.h"

/* The device of a job with the current parameters, and the results of the job's script. */
typedef struct executor executor;

executor *executor_open(const job *j);
void executor_close(executor *x);

/* Returns whether all numbers of the job's result are finite; otherwise any script's result would count as equal. */
bool executor_is_usable(const executor *x);

/* Returns whether, in some order of the virtual processors, the script gets stuck, or gives another loss, output, parameter or optimiser state than
 * the job's own script. A script that the device refuses makes no such difference. Tries the orders in which one processor runs whenever it can, or
 * only if no other can. */
bool executor_differs(executor *x, const subject *s);
