/* crowd.c - how many threads run a launch's virtual processors (VPs), where others use the machine's cores, too.
 *
 * VPs meet after each phase, so that all are as slow as one whose thread waits for a core. Fewer threads, each of which runs several VPs by
 * turns, may then be faster. While the threads hardly wait for cores, every VP has its own thread. Otherwise, windows of launches with half
 * or twice as many threads are tried from time to time, and the faster number is kept. */
#include "runtime/cpu/cpu.h"

#include <fcntl.h>
#include <unistd.h>

/* WINDOW_NS: least duration of a window (series of launches). SHORTEST, LONGEST: least and most windows between trials of another number of
 * threads. MUCH: the machine is crowded if a thread waits for a core for 1 / MUCH of a window; two threads on one core wait half of it. */
enum { WINDOW_NS = 20 * 1000 * 1000, SHORTEST = 2, LONGEST = 64, MUCH = 8 };

void vpps_note_waiting(vpps_crowd *c) {
    static _Thread_local unsigned long long before;
    unsigned long long waited = before;
    /* line of text from the system: ns on a core, ns of waiting for a core, number of time slices */
    char text[64] = "";
    if (!c->ends) return;
    const int f = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (f >= 0 && read(f, text, sizeof text - 1) > 0) sscanf(text, "%*u %llu", &waited);
    if (f >= 0) close(f);
    if (waited - before > c->much_ns) atomic_store(&c->crowded, true);
    before = waited;
}

/* Decides at the end of a window (series of launches) how many threads the next window has. */
static void choose_rung(const vpps_cpu *cpu, vpps_crowd *c) {
    const uint32_t top = vpps_rung_of(cpu->n_vps - 1);
    const bool crowded = atomic_exchange(&c->crowded, false);
    const double speed = (double)c->words / (double)c->ns, before = c->speeds[c->rung];
    c->speeds[c->rung] = before > 0 ? (speed + before) / 2 : speed;
    c->ns = c->words = 0;
    if (c->rung != c->home) {
        const bool better = c->speeds[c->rung] > c->speeds[c->home] || (c->rung > c->home && !crowded);
        c->period = better ? SHORTEST : vpps_min_u32(2 * c->period, LONGEST);
        if (better) c->home = c->rung;
        c->left = c->period;
    } else if (crowded || c->home < top) {
        if (c->left) c->left--;
    } else {
        c->left = c->period = SHORTEST;
        return;
    }
    c->rung = c->home;
    if (c->left) return;
    c->down = c->home == top || (c->home && crowded && !c->down);
    c->rung += c->down ? UINT32_MAX : 1;
}

void vpps_choose_threads(vpps_cpu *cpu, const vpps_batch *batch) {
    vpps_crowd *c = cpu->crowd;
    if (c) {
        const uint64_t ns = cpu->batch.end_ns - cpu->batch.start_ns, idle_ns = vpps_now_ns() - cpu->batch.end_ns;
        c->latest_ns = ns + (idle_ns < ns ? idle_ns : ns); /* the launch, and at most as much of the pause after it */
        c->ns += c->latest_ns;
        if (c->ends) choose_rung(cpu, c);
    }
    c = cpu->crowd = &cpu->crowds[batch->half][batch->goal == VPPS_GOAL_UPDATE ? 2 : cpu->batch.header.update != 0];
    if (!c->period) c->rung = c->home = vpps_rung_of(cpu->n_vps - 1), c->period = c->left = SHORTEST;
    const bool may = cpu->n_vps > 1 && !cpu->share && !cpu->device.trace && !vpps_profile_goes_on(&cpu->device.profile);
    const uint64_t ns = c->ns + c->latest_ns; /* expected time of this series of launches, the next one included */
    c->words += batch->script_words;
    c->ends = may && ns >= WINDOW_NS;
    c->much_ns = ns / MUCH;
    cpu->threads = may ? vpps_min_u32(cpu->n_vps, 1u << c->rung) : cpu->n_vps;
}
