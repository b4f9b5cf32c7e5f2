/* profile.h - the profile of a choice: its candidates run in turn on the batches that are trained anyway, and the fastest is taken. No
 * batch runs twice or is lost. */
#pragma once

#include "graph/model.h"

enum { VPPS_MOST_TRIALS = 8, VPPS_TRIAL_BATCHES = 9, VPPS_CANDIDATE_BYTES = 64 };

/* A text that is kept for later runs, beside the compiled kernels. */
typedef struct vpps_memory {
    const char *what;        /* the text, in a few words */
    char machine[512];       /* the text holds for this machine, */
    const vpps_model *model; /* and for models with matrices of these names and shapes; NULL: for all */
} vpps_memory;

/* The text that an earlier run kept, malloc'd, the caller's. NULL: there is none. */
char *vpps_recall(const vpps_memory *m);
/* Keeps it. Fails with MEMORY, and as vpps_cache_write does; a caller may go on without. */
vpps_status vpps_remember(const vpps_memory *m, const char *text);

typedef struct vpps_profile {
    vpps_trial trials[VPPS_MOST_TRIALS];             /* a candidate each, with its time */
    double ns[VPPS_MOST_TRIALS][VPPS_TRIAL_BATCHES]; /* a node, of each batch */
    uint32_t given[VPPS_MOST_TRIALS]; /* batches that ran; the first is not counted: cells are compiled, caches cold */
    uint32_t n;                       /* 0: nothing is profiled */
    uint32_t batches;                 /* to be measured of each candidate */
    uint32_t current;                 /* the candidate of the next batch */
    bool one_by_one; /* vpps_profile_take says when another candidate comes; else they take turns, batch by batch */
    bool done;       /* `current` is the choice */
    double margin;   /* the fraction of the first candidate's time by which another one must be faster */

    /* A candidate as text, for vpps_recall and vpps_remember. NULL: the choice is not kept. */
    void (*name)(const vpps_trial *t, char text[VPPS_CANDIDATE_BYTES]);
    vpps_memory memory;
    const vpps_options *options; /* their log gets a line if the choice could not be kept */
} vpps_profile;

/* The numbers of groups, up to `most`, that n_vps can be divided into; as many as there is room for, the few and large ones, and
 * the most. */
void vpps_profile_groups(vpps_profile *p, uint32_t n_vps, uint32_t most);

static inline bool vpps_profile_goes_on(const vpps_profile *p) { return p->n && !p->done; }

static inline const vpps_trial *vpps_profile_current(const vpps_profile *p) { return &p->trials[p->current]; }

/* To be told that a batch of so many nodes ran; `as_asked`: with the current candidate. It does not if the candidate asks for more groups
 * than the batch has inputs. */
void vpps_profile_note(vpps_profile *p, bool as_asked, uint64_t nodes, uint64_t ns);

/* The fastest candidate of those that were measured; p->n: none was. */
uint32_t vpps_profile_best(const vpps_profile *p);

/* Candidate i is the next one, or, without others to try (i = p->n), the choice is made: the fastest, or the first where none could be
 * measured. */
void vpps_profile_take(vpps_profile *p, uint32_t i);

/* Takes the choice of an earlier run's text, if that names a candidate. */
void vpps_profile_resume(vpps_profile *p, const char *text);
