/* subjects.h - scripts to be checked, scheduled in every way that there is, and what is to be thought of changed ones. */
#pragma once

#include "execution.h"

/* All numbers of VPs and groups train by rows, by vertices, with gradients level by level, and infer; in one to three waves of one to three slices. */
enum { WAYS = 32, TRAINING_WAYS = 24 };

way way_of(uint32_t k);
const char *way_text(way w); /* valid until the next call */

/* VPPS_TEST_SCALE=full: five times as many. */
uint32_t cases(uint32_t n);

/* A case of small sizes, some large enough to share rows out. */
void draw_small(rg_case *c, uint64_t seed);

/* What became of changed scripts, or compiled cells. */
typedef struct tally {
    uint32_t tried, refused, without_effect;
} tally;

/* Shows a mutant to the checker. One that it accepts must make no difference to the device, in any order of the VPs. False: it does. */
bool judge(const subject *mutant, executor *x, tally *t);

/* Prints a kind's line, and adds it to *all. */
void report(const char *what, const tally *t, tally *all);

typedef void (*mutator)(const job *j, executor *x, uint64_t seed, tally *tallies);

/* Calls `mutate` for n small scripts scheduled in all ways, each of which is right, of at most so many words, with
 * what runs them. How many there were. */
uint32_t each_small(uint32_t n, uint32_t words, mutator mutate, tally *tallies);
