/* places.c - chooses CPUs for worker threads (virtual processors) by sockets, memory nodes and caches. Linux tells
 * these in files ("sysfs-devices-system-cpu" and "sysfs-devices-node" describe them). A list of CPUs reads "0-3,8". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares sched_getaffinity */
#endif
#include "runtime/places.h"

#include "runtime/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>

/* ---------------------------------------------------------------- files */

/* State of the reading of /sys. Arrays are indexed by CPU, except `nodes`. */
typedef struct reader {
    const char *root;
    vpps_core_place *by_cpu;
    bool *there;  /* whether the CPU is online and the process may use it */
    bool *known;  /* for each CPU: whether the property that is read now, such as the memory node, is already known */
    bool *listed; /* whether the list of CPUs that was read last, from a file, contains the CPU */
    bool *nodes;  /* whether the memory node is online */
    uint32_t n;   /* number of CPUs */
} reader;

/* Folders in /sys: a CPU's or memory node's number is appended to the name; NO_NUMBER: no number is appended. */
#define A_CPU "system/cpu/cpu"
#define A_NODE "system/node/node"
static const uint32_t NO_NUMBER = UINT32_MAX;

static FILE *open_file(const reader *r, const char *folder, uint32_t number, const char *name) {
    char path[PATH_MAX], digits[16] = "";
    if (number != NO_NUMBER) snprintf(digits, sizeof digits, "%u", number);
    snprintf(path, sizeof path, "%s/sys/devices/%s%s/%s", r->root, folder, digits, name);
    return fopen(path, "r");
}

/* Reads a file of a CPU that holds one number. Returns false if there is no such file or the number is -1. */
static bool read_number(const reader *r, uint32_t cpu, const char *name, uint32_t *number) {
    FILE *f = open_file(r, A_CPU, cpu, name);
    long told = -1;
    if (!f) return false;
    if (fscanf(f, "%ld", &told) != 1) told = -1;
    fclose(f);
    if (told >= 0) *number = (uint32_t)told;
    return told >= 0;
}

/* Reads a file with a list of CPUs; sets listed[c] for each listed c < r->n. Returns false if there is no such file. */
static bool read_list(const reader *r, const char *folder, uint32_t number, const char *name, bool *listed) {
    FILE *f = open_file(r, folder, number, name);
    uint32_t begin, end;
    bool any = false;
    memset(listed, 0, r->n * sizeof *listed);
    if (!f) return false;
    while (fscanf(f, "%u", &begin) == 1) {
        any = true;
        int separator = fgetc(f);
        end = begin;
        if (separator == '-' && fscanf(f, "%u", &end) == 1) separator = fgetc(f);
        for (uint32_t c = begin; c <= end && c < r->n; c++) listed[c] = true;
        if (separator != ',') break;
    }
    fclose(f);
    return any;
}

/* Reads the list of CPUs in a CPU's file `name`, or old_name (its name in kernels before 5.7), to r->listed. */
static bool read_list_of(const reader *r, uint32_t cpu, const char *name, const char *old_name) {
    return read_list(r, A_CPU, cpu, name, r->listed) || read_list(r, A_CPU, cpu, old_name, r->listed);
}

/* ---------------------------------------------------------------- properties */

static void forget(reader *r) { memset(r->known, 0, r->n * sizeof *r->known); }

/* A value for the function `give`: each listed CPU's property becomes the number of the first CPU in the list. */
static const uint32_t FIRST = UINT32_MAX;
/* Sets a property, given by its offset in vpps_core_place, of all CPUs in the list read last. */
static void give(reader *r, size_t property, uint32_t value) {
    for (uint32_t c = 0; c < r->n; c++) {
        if (!r->listed[c]) continue;
        if (value == FIRST) value = c;
        memcpy((char *)&r->by_cpu[c] + property, &value, sizeof value);
        r->known[c] = true;
    }
}

static void read_online(reader *r) {
    if (!read_list(r, "system/cpu", NO_NUMBER, "online", r->listed)) return;
    for (uint32_t c = 0; c < r->n; c++) r->there[c] &= r->listed[c];
}

/* Reads the socket number of one CPU of each socket, and sets it for all CPUs of the socket. */
static void read_packages(reader *r) {
    forget(r);
    for (uint32_t c = 0; c < r->n; c++) {
        uint32_t package = 0;
        if (!r->there[c] || r->known[c] || !read_number(r, c, "topology/physical_package_id", &package)) continue;
        r->by_cpu[c].package = package;
        if (read_list_of(r, c, "topology/package_cpus_list", "topology/core_siblings_list"))
            give(r, offsetof(vpps_core_place, package), package);
    }
}

/* Reads the memory node of every CPU. A node that has CPUs has a number below r->n, the number of CPUs. */
static void read_nodes(reader *r) {
    read_list(r, "system/node", NO_NUMBER, "online", r->nodes);
    for (uint32_t node = 0; node < r->n; node++)
        if (r->nodes[node] && read_list(r, A_NODE, node, "cpulist", r->listed))
            give(r, offsetof(vpps_core_place, node), node);
}

/* Reads which CPUs share the last-level cache of a CPU, if several cores share it. */
static void read_cache(reader *r, uint32_t cpu) {
    char name[64], last[64];
    uint32_t highest = 0, level = 0;
    for (uint32_t i = 0;; i++) {
        snprintf(name, sizeof name, "cache/index%u/level", i);
        if (!read_number(r, cpu, name, &level)) break;
        if (level <= highest) continue;
        highest = level;
        snprintf(last, sizeof last, "cache/index%u/shared_cpu_list", i);
    }
    if (highest > 2 && read_list(r, A_CPU, cpu, last, r->listed)) give(r, offsetof(vpps_core_place, cache), FIRST);
}

static void read_caches(reader *r) {
    forget(r);
    for (uint32_t c = 0; c < r->n; c++)
        if (r->there[c] && !r->known[c]) read_cache(r, c);
}

static void read_cores(reader *r) {
    forget(r);
    for (uint32_t c = 0; c < r->n; c++) {
        if (!r->there[c] || r->known[c]) continue;
        r->by_cpu[c].core = c;
        if (read_list_of(r, c, "topology/core_cpus_list", "topology/thread_siblings_list"))
            give(r, offsetof(vpps_core_place, core), FIRST);
    }
}

/* Finds slow cores: on x86, /sys lists the small cores; on ARM, it has each core's capacity. */
static void read_kinds(reader *r) {
    uint32_t capacity, most = 0;
    if (read_list(r, "cpu_atom", NO_NUMBER, "cpus", r->listed)) {
        for (uint32_t c = 0; c < r->n; c++) r->by_cpu[c].slow = r->listed[c];
        return;
    }
    for (uint32_t c = 0; c < r->n; c++) {
        if (!r->there[c]) continue;
        if (!read_number(r, c, "cpu_capacity", &capacity)) return;
        most = vpps_max_u32(most, capacity);
    }
    for (uint32_t c = 0; c < r->n; c++)
        if (r->there[c] && read_number(r, c, "cpu_capacity", &capacity)) r->by_cpu[c].slow = capacity < most;
}

/* ---------------------------------------------------------------- order */

static int compare(uint32_t a, uint32_t b) { return a < b ? -1 : a > b; }

static int by_nearness(const void *a, const void *b) {
    const vpps_core_place *x = a, *y = b;
    int order = compare(x->package, y->package);
    if (!order) order = compare(x->node, y->node);
    if (!order) order = compare(x->slow, y->slow);
    if (!order) order = compare(x->cache, y->cache);
    if (!order) order = compare(x->core, y->core);
    return order ? order : compare(x->cpu, y->cpu);
}

vpps_status vpps_read_places(const char *root, const bool *allowed, uint32_t n, vpps_places *out) {
    *out = (vpps_places){0};
    vpps_core_place *by_cpu = calloc(n + 1u, sizeof *by_cpu);
    bool *flags = calloc(4 * (size_t)n + 1, sizeof *flags);
    if (!by_cpu || !flags) {
        VPPS_FREE(by_cpu, flags);
        return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u CPUs", n);
    }
    reader r = {root, by_cpu, flags, flags + n, flags + 2 * (size_t)n, flags + 3 * (size_t)n, n};
    memcpy(r.there, allowed, n * sizeof *allowed);
    read_online(&r);
    read_packages(&r);
    read_nodes(&r);
    read_caches(&r);
    read_cores(&r);
    read_kinds(&r);
    for (uint32_t c = 0; c < n; c++) {
        if (!r.there[c]) continue;
        by_cpu[c].cpu = c;
        by_cpu[out->n++] = by_cpu[c];
    }
    free(flags);
    qsort(by_cpu, out->n, sizeof *by_cpu, by_nearness);
    out->at = by_cpu;
    return VPPS_OK;
}

vpps_status vpps_places_here(vpps_places *out) {
    cpu_set_t set[VPPS_CPU_SETS];
    bool allowed[VPPS_CPU_SETS * CPU_SETSIZE] = {false};
    const bool known = sched_getaffinity(0, sizeof set, set) == 0;
    uint32_t n = 0;
    for (uint32_t c = 0; c < VPPS_COUNT(allowed) && known; c++)
        if (CPU_ISSET_S(c, sizeof set, set)) allowed[c] = true, n = c + 1;
    return vpps_read_places("", allowed, n, out);
}

/* ---------------------------------------------------------------- choosing */

/* Returns whether CPU i of the sorted list is the second thread of a core, so that the first is next to it. */
static bool is_sibling(const vpps_places *p, uint32_t i) { return i && p->at[i - 1].core == p->at[i].core; }

/* Returns CPU i's sort key. From bit 40 up: whether the CPU is slow or a core's second thread; below: distance from `own`, then i. */
static uint64_t rank_of(const vpps_places *p, const vpps_core_place *own, uint32_t i) {
    const vpps_core_place *x = &p->at[i];
    uint64_t far = 0;
    if (own) far = (x->package != own->package) * 4u + (x->node != own->node) * 2u + (x->cache != own->cache);
    return (is_sibling(p, i) * UINT64_C(2) + x->slow) << 40 | far << 32 | i;
}

vpps_status vpps_choose_places(const vpps_places *p, uint32_t n_vps, uint32_t here, uint32_t *chosen) {
    const uint32_t n_taken = vpps_min_u32(n_vps, p->n);
    const vpps_core_place *own = NULL;
    uint64_t *ranks = malloc((p->n + (size_t)1) * sizeof *ranks);
    if (!ranks) return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u places", p->n);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->at[i].cpu == here) own = &p->at[i];
    for (uint32_t i = 0; i < p->n; i++) ranks[i] = rank_of(p, own, i);
    qsort(ranks, p->n, sizeof *ranks, vpps_by_number);
    for (uint32_t i = 0; i < n_taken; i++) ranks[i] &= (UINT64_C(1) << 40) - 1;
    qsort(ranks, n_taken, sizeof *ranks, vpps_by_number);
    for (uint32_t v = 0; v < n_vps; v++) chosen[v] = n_taken ? (uint32_t)ranks[(uint64_t)v * n_taken / n_vps] : 0;
    free(ranks);
    return VPPS_OK;
}

vpps_hold vpps_hold_of(const vpps_places *p, uint32_t n_vps, const uint32_t *chosen) {
    const vpps_place_counts c = vpps_count_places(p);
    bool one_node = true;
    for (uint32_t v = 1; v < n_vps && p->n; v++) one_node &= p->at[chosen[v]].node == p->at[chosen[0]].node;
    if (n_vps >= c.cores) return c.nodes * c.caches > 1 ? VPPS_HOLD_CACHE : VPPS_HOLD_ANYWHERE;
    return one_node ? VPPS_HOLD_ANYWHERE : VPPS_HOLD_NODE;
}

bool vpps_within(const vpps_core_place *own, const vpps_core_place *place, vpps_hold hold) {
    if (hold == VPPS_HOLD_ANYWHERE) return true;
    return own->node == place->node && (hold == VPPS_HOLD_NODE || own->cache == place->cache);
}

vpps_place_counts vpps_count_places(const vpps_places *p) {
    vpps_place_counts n = {.cpus = p->n};
    for (uint32_t i = 0; i < p->n; i++) {
        bool package = true, node = true, cache = true;
        for (uint32_t k = 0; k < i; k++) {
            package &= p->at[k].package != p->at[i].package;
            node &= p->at[k].node != p->at[i].node;
            cache &= p->at[k].cache != p->at[i].cache;
        }
        n.packages += package;
        n.nodes += node;
        n.caches += cache;
        n.cores += !is_sibling(p, i);
        n.slow_cores += !is_sibling(p, i) && p->at[i].slow;
    }
    return n;
}
