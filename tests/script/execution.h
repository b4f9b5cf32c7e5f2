/* execution.h - runs scripts by the CPU device's own code, a task at a time, in any order of the VPs: the second opinion on a script
 * that the checker accepts. Memory that nothing has written holds NaN. */
#pragma once

#include "fixture.h"

/* The device of a job, with the parameters as they are, and what the job's script makes of them. */
typedef struct executor executor;

executor *executor_open(const job *j);
void executor_close(executor *x);

/* Are all numbers of the job's result finite? Else any script's result would do. */
bool executor_is_usable(const executor *x);

/* Is there an order of the VPs in which the script gets stuck, or in which the loss, an output, a parameter or an optimiser's state is
 * another than after the job's own script? A script that the device refuses to run makes no such difference. Tried are the orders in
 * which one VP runs whenever it can, or only when no other can. */
bool executor_differs(executor *x, const subject *s);
