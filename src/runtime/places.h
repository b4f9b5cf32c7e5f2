/* places.h - where threads may run: the sockets, memory nodes and caches of this machine's CPUs, and the choice of CPUs for virtual
 * processors (VPs), each of which is a thread. */
#pragma once

#include "base/base.h"

/* A CPU that the process may run on; numbers are those that Linux uses in /sys. */
typedef struct vpps_core_place {
    uint32_t cpu;
    uint32_t package, node; /* numbers of the CPU's socket and memory node; 0 if unknown */
    uint32_t cache;         /* number of the first CPU with the same last-level cache; 0 if unknown */
    uint32_t core;          /* number of the first CPU (hardware thread) of the CPU's core */
    bool slow;              /* whether the CPU is one of the smaller cores of a machine with two kinds of cores */
} vpps_core_place;

typedef struct vpps_places {
    vpps_core_place *at; /* the CPUs, sorted by socket, node, cache, core */
    uint32_t n;
} vpps_places;

/* Finds the CPUs c < n that are online and allowed[c], by reading files under root/sys (root is "" except in tests). Unknown properties are
 * 0, so a machine without /sys counts as one socket with one memory node. Fails with MEMORY. The caller frees out->at. */
vpps_status vpps_read_places(const char *root, const bool *allowed, uint32_t n, vpps_places *out);

vpps_status vpps_places_here(vpps_places *out);

/* Chooses a CPU for each virtual processor (VP): chosen[v] is an index into p->at. Second threads of a core and slow cores come last. VP 0
 * shares socket, node and cache with CPU `here` if that is allowed; consecutive VPs are close to each other; as few nodes as possible are
 * used. Adjacent VPs share a CPU if there are more VPs than CPUs. Fails with MEMORY. */
vpps_status vpps_choose_places(const vpps_places *p, uint32_t n_vps, uint32_t here, uint32_t *chosen);

/* How tightly virtual processors (threads) are bound: not at all, to the CPUs of one memory node, or of one last-level cache. */
typedef enum vpps_hold { VPPS_HOLD_ANYWHERE, VPPS_HOLD_NODE, VPPS_HOLD_CACHE } vpps_hold;
/* Returns how tightly virtual processors (threads) that run on the chosen CPUs should be bound to them. */
vpps_hold vpps_hold_of(const vpps_places *p, uint32_t n_vps, const uint32_t *chosen);

/* Returns whether a virtual processor (thread) that is bound to the CPU `own`, as tightly as `hold` says, may run on the CPU `place`. */
bool vpps_within(const vpps_core_place *own, const vpps_core_place *place, vpps_hold hold);

/* Numbers of different sockets, memory nodes, caches and cores among CPUs. */
typedef struct vpps_place_counts {
    uint32_t packages, nodes, caches, cores, slow_cores, cpus;
} vpps_place_counts;
vpps_place_counts vpps_count_places(const vpps_places *p);
