/* grouping.h - the profile of groupings: equal groups of VPs, tried on the batches that are trained, in turn. */
#ifndef VPPS_GROUPING_H
#define VPPS_GROUPING_H

#include "vpps.h"

enum { VPPS_MOST_GROUPINGS = 8, VPPS_GROUPING_BATCHES = 9 };

typedef struct vpps_grouping {
    vpps_trial trials[VPPS_MOST_GROUPINGS];
    double ns[VPPS_MOST_GROUPINGS][VPPS_GROUPING_BATCHES]; /* a node, of each batch */
    uint32_t n;                                            /* 0: nothing is profiled */
    uint32_t batches;                                      /* given out so far */
    uint32_t asked;                                        /* trial of the batch in flight */
    bool done;
} vpps_grouping;

/* The numbers of groups that n_vps can be divided into; as many as there is room for, the few and large ones, and groups of
 * one. */
void vpps_grouping_open(vpps_grouping *p, uint32_t n_vps);

/* Groups for the next batch: of a trial, or, when all were measured, of the fastest. 0 where nothing is profiled. */
uint32_t vpps_grouping_next(vpps_grouping *p);

/* The batch that was given out last ran in so many groups: fewer than asked for where it has few inputs. */
void vpps_grouping_note(vpps_grouping *p, uint32_t groups, uint64_t nodes, uint64_t device_ns);

#endif
