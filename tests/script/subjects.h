/* subjects.h - scripts to be checked, scheduled in all ways, run, and the judgement of changed ones. */
#pragma once

#include "fixture.h"

/* ---- execution.c: runs scripts by the CPU device's own code, a task at a time, with the virtual processors in any order: the second opinion on a
 * script that the checker accepts. Memory that nothing has written holds NaN. */

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

/* ---- subjects.c */

/* Ways: all numbers of processors and groups train by rows, by vertices, with gradients by levels, and infer; in 1 to 3 waves of 1 to 3 slices. */
enum { WAYS = 32, TRAINING_WAYS = 24 };

way way_of(uint32_t k);
const char *way_text(way w); /* valid until the next call */

/* Returns n; with VPPS_TEST_SCALE=full, five times n. */
uint32_t cases(uint32_t n);

/* Draws a case with small sizes, some large enough for rows to be shared out. */
void draw_small(rg_case *c, uint64_t seed);

/* Numbers of changed scripts, or compiled cells, by what became of them. */
typedef struct tally {
    uint32_t tried, refused, without_effect;
} tally;

/* Shows a mutant to the checker. One that it accepts must make no difference on the device, in any order of processors. False: it does. */
bool judge(const subject *mutant, executor *x, tally *t);

/* Prints a kind's line, and adds its numbers to *all. */
void report(const char *what, const tally *t, tally *all);

typedef void (*mutator)(const job *j, executor *x, uint64_t seed, tally *tallies);

/* Calls `mutate` for n small scripts, scheduled in all ways and right, of at most so many words, with an executor. Returns how many there were. */
uint32_t each_small(uint32_t n, uint32_t words, mutator mutate, tally *tallies);
