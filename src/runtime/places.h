/* places.h - places where threads may run: sockets, memory nodes and caches of this machine's CPUs, and the CPUs that suit so many VPs. */
#pragma once

#include "base/base.h"

/* A CPU that the process may run on, as /sys numbers it. */
typedef struct vpps_core_place {
    uint32_t cpu;
    uint32_t package, node; /* of sockets, of memory; 0 where it is not told */
    uint32_t cache;         /* the first CPU that shares its last cache; 0 where it is not told */
    uint32_t core;          /* the first CPU of its core */
    bool slow;              /* a core of the smaller kind, where there are two */
} vpps_core_place;

typedef struct vpps_places {
    vpps_core_place *at; /* by socket, node, cache, core */
    uint32_t n;
} vpps_places;

/* The CPUs c that are online and allowed[c], c < n; by files under root/sys, "" but in tests. A property that no file tells is 0, so that a
 * machine without /sys is one socket of one node. Fails with MEMORY. The caller frees at. */
vpps_status vpps_read_places(const char *root, const bool *allowed, uint32_t n, vpps_places *out);

/* Those of this process. */
vpps_status vpps_places_here(vpps_places *out);

/* chosen[v]: number of the place that suits VP v. A core's second thread and slow cores are taken last; VP 0 has the socket, node and cache
 * of CPU `here`, if it is allowed; VPs that follow each other are near each other; and VPs take no more nodes than they need. More VPs
 * than places share them, neighbours first. Fails with MEMORY. */
vpps_status vpps_choose_places(const vpps_places *p, uint32_t n_vps, uint32_t here, uint32_t *chosen);

/* How closely VPs are held to their places. ANYWHERE: all VPs are on one node and do not fill it, so that other programs need not make way;
 * CACHE: every core has a VP. */
typedef enum vpps_hold { VPPS_HOLD_ANYWHERE, VPPS_HOLD_NODE, VPPS_HOLD_CACHE } vpps_hold;
vpps_hold vpps_hold_of(const vpps_places *p, uint32_t n_vps, const uint32_t *chosen);

/* Does the place belong to where a VP is held that has place `own`? */
bool vpps_within(const vpps_core_place *own, const vpps_core_place *place, vpps_hold hold);

/* How many different ones there are among the places. */
typedef struct vpps_place_counts {
    uint32_t packages, nodes, caches, cores, slow_cores, cpus;
} vpps_place_counts;
vpps_place_counts vpps_count_places(const vpps_places *p);
