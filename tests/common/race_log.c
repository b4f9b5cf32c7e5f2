/* race_log.c - see race_log.h. Every VP has a clock of its own. */
#include "common/race_log.h"
#include "base/base.h"

typedef struct entry {
    const uint64_t *at;
    uint32_t vp, interval; /* interval: how often the VP had signalled */
    bool write;
    size_t next; /* of the same place; + 1, 0: none */
} entry;

struct race_log {
    uint32_t n_vps, n_barriers;
    uint32_t *known;   /* (VP, other): intervals of the other that came before */
    uint32_t *carried; /* (barrier, other): the same for who waits for it */
    uint32_t *totals;  /* signals that each barrier gets in all */
    entry *entries;
    size_t n_entries, entries_capacity;
    size_t *heads; /* hash table of places: first entry + 1 */
    size_t n_heads;
    bool found;
};

static void *take(size_t n, size_t bytes) {
    void *block = calloc(n ? n : 1, bytes);
    if (!block) abort();
    return block;
}

race_log *race_log_create(uint32_t n_vps, uint32_t n_barriers) {
    race_log *log = take(1, sizeof *log);
    log->n_vps = n_vps;
    log->n_barriers = n_barriers;
    log->known = take((size_t)n_vps * n_vps, sizeof *log->known);
    log->carried = take((size_t)n_barriers * n_vps, sizeof *log->carried);
    log->totals = take(n_barriers, sizeof *log->totals);
    log->n_heads = 1 << 16;
    log->heads = take(log->n_heads, sizeof *log->heads);
    return log;
}

void race_log_destroy(race_log *log) {
    void *blocks[] = {log->known, log->carried, log->totals, log->entries, log->heads, log};
    for (size_t i = 0; i < VPPS_COUNT(blocks); i++) free(blocks[i]);
}

bool race_log_found(const race_log *log) { return log->found; }

void race_log_expect(race_log *log, uint32_t barrier, uint32_t signals) {
    if (barrier < log->n_barriers) log->totals[barrier] += signals;
}

void race_log_access(race_log *log, uint32_t vp, const uint64_t *at, bool write) {
    size_t *head = &log->heads[vpps_mix64((uintptr_t)at) % log->n_heads];
    const uint32_t interval = log->known[(size_t)vp * log->n_vps + vp];
    bool logged = false;
    for (size_t i = *head; i; i = log->entries[i - 1].next) {
        const entry *e = &log->entries[i - 1];
        if (e->at != at) continue;
        if (e->vp == vp) {
            logged |= e->interval == interval && e->write == write;
        } else if ((write || e->write) && e->interval >= log->known[(size_t)vp * log->n_vps + e->vp]) {
            log->found = true;
        }
    }
    if (logged) return;
    if (!VPPS_RESERVE(log->entries, log->entries_capacity, log->n_entries + 1)) abort();
    log->entries[log->n_entries++] = (entry){at, vp, interval, write, *head};
    *head = log->n_entries;
}

static void join(race_log *log, uint32_t *to, const uint32_t *from) {
    for (uint32_t i = 0; i < log->n_vps; i++) to[i] = vpps_max_u32(to[i], from[i]);
}

void race_log_signal(race_log *log, uint32_t vp, uint32_t barrier) {
    uint32_t *known = log->known + (size_t)vp * log->n_vps;
    known[vp]++; /* the intervals up to now come before */
    join(log, log->carried + (size_t)barrier * log->n_vps, known);
}

void race_log_wait(race_log *log, uint32_t vp, uint32_t barrier, uint32_t signals) {
    if (signals != log->totals[barrier]) return;
    join(log, log->known + (size_t)vp * log->n_vps, log->carried + (size_t)barrier * log->n_vps);
}
