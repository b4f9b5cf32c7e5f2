/* profile.h - times alternatives (candidates), such as variants of a kernel: they take turns in running the batches
 * that are trained anyway, and the fastest one is chosen. No batch is run twice or lost. */
#pragma once

#include "graph/model.h"

enum { VPPS_MOST_TRIALS = 8, VPPS_TRIAL_BATCHES = 9, VPPS_CANDIDATE_BYTES = 64 };

/* Identifies a text that is stored on disk for later runs of the program, such as the name of the fastest kernel. */
typedef struct vpps_memory {
    const char *what;  /* what the text tells that vpps_remember stores on disk, such as "the fastest kernel" */
    char machine[512]; /* machine and settings for which the stored text, such as the fastest kernel's name, is valid */
    /* the text that vpps_remember stores is valid for models whose matrices have this one's names and shapes; NULL: for all models */
    const vpps_model *model;
} vpps_memory;

/* Returns the text, such as the fastest kernel's name, that an earlier run stored for *m; free() it. NULL: none. */
char *vpps_recall(const vpps_memory *m);
/* Stores a text on disk, for vpps_recall(m) in later runs. Fails with MEMORY, IO, ARGUMENT; callers may go on then. */
vpps_status vpps_remember(const vpps_memory *m, const char *text);

typedef struct vpps_profile {
    /* the alternatives that are timed, such as variants of a kernel, with their times */
    vpps_trial trials[VPPS_MOST_TRIALS];
    double ns[VPPS_MOST_TRIALS][VPPS_TRIAL_BATCHES]; /* measured times: nanoseconds per graph node */
    /* for each of `trials`: number of its batches so far. The first one, which compiles, is not timed. */
    uint32_t given[VPPS_MOST_TRIALS];
    uint32_t n;       /* number of `trials`; 0: nothing is to be chosen */
    uint32_t batches; /* number of batches on which each alternative is timed */
    uint32_t current; /* index in `trials` of the alternative that runs the next batch */
    /* true: the timed alternative changes only by vpps_profile_take; false: alternatives take turns, batch by batch */
    bool one_by_one;
    bool done;     /* whether the choice is made: all further batches run with alternative number `current` */
    double margin; /* fraction of the first alternative's time that another one must save to be chosen */

    /* Writes alternative *t as text, by which the fastest one is stored (vpps_remember) and found again (vpps_recall). NULL: it is not stored. */
    void (*name)(const vpps_trial *t, char text[VPPS_CANDIDATE_BYTES]);
    vpps_memory memory;
    const vpps_options *options; /* options whose log gets a line if the fastest one cannot be stored */
} vpps_profile;

/* Prepares p to time numbers of groups of virtual processors (CTAs or threads; there are n_vps): divisors of n_vps up
 * to `most`; of too many divisors, the smallest ones and the largest. */
void vpps_profile_groups(vpps_profile *p, uint32_t n_vps, uint32_t most);

static inline bool vpps_profile_goes_on(const vpps_profile *p) { return p->n && !p->done; }

static inline const vpps_trial *vpps_profile_current(const vpps_profile *p) { return &p->trials[p->current]; }

/* Records that a batch with so many nodes ran in `ns`. as_asked: whether it ran with the setting that is on trial (p->current), such as a
 * number of groups of CTAs or threads; a batch of few inputs cannot be divided among many groups. */
void vpps_profile_note(vpps_profile *p, bool as_asked, uint64_t nodes, uint64_t ns);

/* Returns the index of the fastest alternative that was timed; p->n: none was. */
uint32_t vpps_profile_best(const vpps_profile *p);

/* Makes alternative i run the next batch. i = p->n: chooses the fastest one, or the first if none was timed. */
void vpps_profile_take(vpps_profile *p, uint32_t i);

/* Makes the choice that an earlier run of the program stored as text, if the text names one of the alternatives. */
void vpps_profile_resume(vpps_profile *p, const char *text);
