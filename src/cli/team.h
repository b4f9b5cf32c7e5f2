/* team.h - the processes of a run: found by their launcher (mpirun, srun), they share out examples and agree on the rest.
 *
 * Of a run in one process, every function here does nothing, and the process has rank 0 of 1.
 */
#pragma once

#include "cli/corpus.h"

typedef struct team {
    vpps_communicator *c; /* NULL: one process */
    uint32_t rank, size;
    uint32_t cores; /* of each process: those that may use the same ones share them out */
    bool agreed;    /* the latest failure is that of all processes */
    /* Of tables that are shared out every process has a part when the first one writes a checkpoint: to --save, --save-best. */
    bool saves, saves_best;
} team;

/* First of all in a process that is one of several: see guard.h. */
void team_guard(const settings *s);

/* Joins the processes that the launcher started together, if it did and s does not say otherwise; they are busy then.
 * Fails as vpps_communicator_open does. */
vpps_status team_open(team *t, const settings *s);
void team_close(team *t);

/* How many VPs a process takes: --vps, or without it on a CPU its cores; 0: as many as the device has. */
uint32_t team_vps(const team *t, const settings *s);

/* All processes read, save or measure from here on, for as long as that takes; or no longer. */
void team_busy(const team *t, bool busy);

/* All processes but the first write no files and print nothing. */
void team_quieten(team *t, settings *s);

/* Fails with ARGUMENT where there are several processes, which an option does not go with; `t` NULL: there is one. */
vpps_status team_alone(const team *t, const char *option);

/* Did all processes get here with OK? Else all fail alike. */
vpps_status team_agree(team *t, vpps_status status);

/* Waits for all. */
vpps_status team_meet(team *t);

/* Do all processes have the same options, data and parameters? `model` is about to be trained. Fails with ARGUMENT in all. */
vpps_status team_compare(team *t, const char *options, const corpus *c, vpps_model *model);

/* What team_compare compares of options: a line each. The caller frees it. NULL: out of memory. */
char *team_options(const settings *s);

/* The sums over all processes. */
vpps_status team_sum(team *t, uint32_t n, double *values);

/* Prints the failure once for all, and ends the other processes unless they fail alike. Returns the exit code. */
int team_fail(team *t, vpps_status status);

/* ---------------------------------------------------------------- examples */

/* What each example's graph is predicted to cost: about how many vertices it has; in *out, by number of the example, to be
 * freed in any case. NULL where there is one process. Fails with MEMORY. */
vpps_status team_costs(const team *t, corpus *c, net_kind kind, const corpus_split *split, uint32_t **out);

/* Of n examples those that this process takes, in their order, into own[], *n_own of them. The dearest ones are dealt first,
 * each to the process with the least so far. Every example is taken by exactly one process. Fails with MEMORY. */
vpps_status team_deal(const team *t, const uint32_t *costs, const uint32_t *examples, uint32_t n, uint32_t *own,
                      uint32_t *n_own);
