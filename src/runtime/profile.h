/* profile.h - the profile of a choice: its trials, as numbers of groups of VPs or batching policies, run the batches that are
 * trained, in turn, and the fastest is taken. */
#ifndef VPPS_PROFILE_H
#define VPPS_PROFILE_H

#include "codegen/cache_key.h"
#include "vpps.h"

enum { VPPS_MOST_TRIALS = 8, VPPS_TRIAL_BATCHES = 9 };

typedef struct vpps_profile {
    vpps_trial trials[VPPS_MOST_TRIALS];
    double ns[VPPS_MOST_TRIALS][VPPS_TRIAL_BATCHES]; /* a node, of each batch */
    uint32_t n;                                      /* 0: nothing is profiled */
    double margin;    /* by which part of the first trial's time another must be faster */
    uint32_t batches; /* given out so far */
    uint32_t asked;   /* trial of the batch in flight */
    bool done;
} vpps_profile;

/* The numbers of groups, up to `most`, that n_vps can be divided into; as many as there is room for, the few and large ones, and
 * the most. */
void vpps_profile_groups(vpps_profile *p, uint32_t n_vps, uint32_t most);

/* The policies; what is faster than the default by less than batches differ is not taken. */
void vpps_profile_policies(vpps_profile *p);

/* How stages are shared out; the first is the default. Likewise. */
void vpps_profile_splits(vpps_profile *p);

/* The trial that the next batch runs, or, when all were measured, the fastest. Something must be profiled. */
const vpps_trial *vpps_profile_next(vpps_profile *p);

/* The batch that was given out last took so long; `as_asked`: it ran as its trial says, which may ask for more groups than it
 * has inputs. */
void vpps_profile_note(vpps_profile *p, bool as_asked, uint64_t nodes, uint64_t device_ns);

/* The text that an earlier run kept under the key, malloc'd, the caller's. NULL: there is none. */
char *vpps_profile_recall(const vpps_cache_key *key);
/* Keeps it. Fails as vpps_cache_write does; a caller may go on without. */
vpps_status vpps_profile_keep(const vpps_cache_key *key, const char *text);

/* Of n > 0 numbers, which it sorts: the middle one, the larger of two. */
double vpps_median(double *x, size_t n);

static inline bool vpps_profile_goes_on(const vpps_profile *p) { return p->n && !p->done; }

#endif
