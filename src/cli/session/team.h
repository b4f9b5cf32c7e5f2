/* team.h - the processes of a run, started by a launcher (mpirun, srun): they divide the examples and agree on everything else.
 *
 * In a run of one process all these functions do nothing, and the process has rank 0 of 1. */
#pragma once

#include "cli/input/corpus.h"

typedef struct team {
    vpps_communicator *c; /* connection of the run's processes; NULL: there is only one process */
    uint32_t rank, size;
    uint32_t cores; /* cores that each process uses: those that several processes may run on are already divided */
    bool agreed;    /* whether the latest failure was common to all processes */
    /* Whether --save, --save-best are given with --shard-tables: each process then writes the rows of lookup tables that it stores. */
    bool saves, saves_best;
} team;

/* Joins the processes that the launcher started together, unless s forbids it. Marks this process as busy (team_busy). Fails as
 * vpps_communicator_open does. */
vpps_status team_open(team *t, const settings *s);
void team_close(team *t);

/* Returns how many virtual processors (CTAs or threads) a process has: --vps if it is given, else on a CPU one per core that it may use,
 * and on a GPU 0, which stands for one per multiprocessor. */
uint32_t team_vps(const team *t, const settings *s);

/* While a process is busy reading, saving or measuring, the watchdog lets the other processes wait for it. */
void team_busy(const team *t, bool busy);

/* Turns off output files and messages in all processes except the first one. */
void team_quieten(team *t, settings *s);

/* Checks that `option`, which needs a single process, is used in a run of one process (t NULL: it is one). Fails with ARGUMENT. */
vpps_status team_alone(const team *t, const char *option);

/* Waits until all processes have called team_agree; fails in all of them if one has a status other than OK. */
vpps_status team_agree(team *t, vpps_status status);

/* Waits until all processes have called team_meet. */
vpps_status team_meet(team *t);

/* Checks before training that all processes have equal options, data and parameters. Otherwise fails with ARGUMENT in all processes. */
vpps_status team_compare(team *t, const char *options, const corpus *c, vpps_model *model);

/* Returns the options that must be equal in all processes, one per line; free the result. NULL: out of memory. */
char *team_options(const settings *s);

/* Replaces n values by their sums over all processes. */
vpps_status team_sum(team *t, uint32_t n, double *values);

/* Prints a failure once for all processes, and ends the other processes unless all processes have this failure. Returns the exit code. */
int team_fail(team *t, vpps_status status);

/* Sets (*out)[i] to the predicted cost of example i, about its number of vertices; the caller frees *out also after a
 * failure. *out is NULL in a run of one process. Fails with MEMORY. */
vpps_status team_costs(const team *t, corpus *c, net_kind kind, const corpus_split *split, uint32_t **out);

/* Selects those of n examples that this process takes, in order, into own[0 .. *n_own). Assigns the costliest examples first, each to the
 * process with the lowest total so far; every example goes to exactly one process. Fails with MEMORY. */
vpps_status team_deal(const team *t, const uint32_t *costs, const uint32_t *examples, uint32_t n, uint32_t *own,
                      uint32_t *n_own);
