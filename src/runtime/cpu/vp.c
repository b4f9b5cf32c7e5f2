/* vp.c - a virtual processor (worker that owns matrix rows): runs its part of each task of the batch's program. */
#include "runtime/cpu/cpu.h"

/* ---------------------------------------------------------------- barriers
 *
 * A barrier opens when all its VPs have signalled it. A VP signals in the order of its tasks, so all its earlier tasks are done then. A VP
 * that has no part in a task skips the wait before the task, and signals at once. So VPs without a vertex of a level (all but one in a
 * chain) run ahead of the others, and nobody waits for them. Before its next task with a part of its own, a VP waits for the latest
 * barriers that it skipped (awaited), of its group and of all groups; all earlier ones are open then. With trees, no wait is skipped. */

/* Returns the number of tasks that all virtual processors (threads) together have run. */
static uint32_t progress(const vpps_cpu *cpu) {
    uint32_t tasks = 0;
    for (uint32_t v = 0; v < cpu->n_vps; v++) tasks += atomic_load_explicit(&cpu->vps[v].tasks, memory_order_relaxed);
    return tasks;
}

/* Waits at most limit_ns for a barrier. The batch ends if no VP (thread) has run a task for the watchdog's time. */
static vpps_wait_end wait_for_barrier(vpps_vp *vp, const vpps_awaited *p, uint64_t limit_ns) {
    vpps_cpu *cpu = vp->cpu;
    vpps_counter *counter = cpu->meetings.taken ? NULL : &cpu->counters[p->barrier];
    uint32_t came = 0;
    const vpps_wait_end end = counter ? vpps_wait_for(cpu, counter, p->signals, limit_ns, true)
                                      : vpps_vp_wait_meeting(vp, p->signals, limit_ns, &came);
    if (end != VPPS_WAIT_TIMEOUT || limit_ns == VPPS_ONLY_LOOK) return end;
    const uint32_t before = vp->progress;
    vp->progress = progress(cpu);
    /* the most virtual processors that a thread runs: they wait limit_ns each, in turn */
    const uint32_t turns = (cpu->n_vps + cpu->threads - 1) / cpu->threads;
    vp->stalled_ns = vp->progress == before ? vp->stalled_ns + limit_ns * turns : 0;
    if (vp->stalled_ns < cpu->watchdog_ns) return end;
    if (counter) came = atomic_load_explicit(&counter->value, memory_order_relaxed);
    vpps_vp_fail(vp, VPPS_STALL, vp->at, "waited %.1f s at barrier %u, which has %u of %u signals",
                 (double)cpu->watchdog_ns * 1e-9, p->barrier, came, p->signals);
    return VPPS_WAIT_FAILED;
}

static bool has_part(const vpps_vp *vp, const vpps_task *t) {
    const vpps_cpu *cpu = vp->cpu;
    const uint32_t size = cpu->n_vps / cpu->batch.header.n_groups;
    const vpps_rows part = t->kind == VPPS_TASK_STAGE ? vpps_stage_part(cpu, vp->index, t) : (vpps_rows){0, 1};
    if (t->kind == VPPS_TASK_CONSTANTS) return vp->index % size == 0;
    if (t->kind == VPPS_TASK_LOSS) return vp->index == 0;
    return t->kind != VPPS_TASK_NOTHING && t->kind != VPPS_TASK_END && part.first < part.end;
}

/* Waits at most limit_ns for the barriers before the task; skips them if the VP (thread) has no part in it. */
static vpps_wait_end wait_before(vpps_vp *vp, const vpps_task *t, uint64_t limit_ns) {
    const vpps_cpu *cpu = vp->cpu;
    if (t->wait != VPPS_NO_BARRIER) {
        const bool of_all = t->signals == cpu->n_vps;
        if (of_all) vp->awaited[0].barrier = VPPS_NO_BARRIER;
        vp->awaited[of_all] = (vpps_awaited){t->wait, t->signals};
    }
    if (cpu->meetings.ordered && !cpu->meetings.taken && !has_part(vp, t)) return VPPS_WAIT_REACHED;
    for (vpps_awaited *p = vp->awaited; p < vp->awaited + VPPS_COUNT(vp->awaited); p++) {
        if (p->barrier == VPPS_NO_BARRIER) continue;
        const vpps_wait_end end = wait_for_barrier(vp, p, limit_ns);
        if (end != VPPS_WAIT_REACHED) return end;
        if (vp->track) vpps_trace_note(vp->track, (vpps_task_note){.kind = VPPS_NOTE_WAIT, .number = p->barrier});
        p->barrier = VPPS_NO_BARRIER;
    }
    return VPPS_WAIT_REACHED;
}

/* Signals t's barrier. If it is a tree of counters, the next task, t[1], waits for it, and holds the number of threads that signal it. */
static void signal_barrier(vpps_vp *vp, const vpps_task *t) {
    vpps_cpu *cpu = vp->cpu;
    if (cpu->meetings.taken) {
        vpps_vp_signal_meeting(vp, t[1].signals);
        return;
    }
    vpps_counter *counter = &cpu->counters[t->signal];
    atomic_fetch_add(&counter->value, 1);
    vpps_wake(counter);
}

/* Records the end of a task in the trace; the time of its signal counts as part of the next wait. */
static void note_task(const vpps_cpu *cpu, vpps_track *track, const vpps_task *t) {
    vpps_task_note note = {.kind = t->kind};
    switch (t->kind) {
    case VPPS_TASK_STAGE:
    case VPPS_TASK_OUTER:
        note.cell = cpu->batch.views[t->operands[0]].cell;
        note.stage = t->stage;
        note.number = t->operands[2];
        break;
    case VPPS_TASK_ENTRIES: note.number = vpps_table_at(cpu->batch.script, t->operands[0])->param; break;
    case VPPS_TASK_NOTHING: return;
    default: break;
    }
    vpps_trace_note(track, note);
}

/* Adds terms of the batch's loss, in double, since there may be thousands of them. */
static void add_loss(vpps_vp *vp, uint32_t address, const uint32_t *pairs, uint32_t n) {
    vpps_cpu *cpu = vp->cpu;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        float factor;
        uint32_t at = pairs[2 * i];
        if (at < cpu->plan.sharded) at = vpps_entry_place(cpu->entries, at);
        if (at == VPPS_NO_OFFSET) {
            vpps_vp_fail(vp, VPPS_SCRIPT, address, "a term of the loss is an entry that no vertex looks up");
            return;
        }
        memcpy(&factor, &pairs[2 * i + 1], sizeof factor);
        sum += (double)factor * (double)cpu->pool[at];
    }
    cpu->batch.loss += sum;
}

bool vpps_vp_task(vpps_vp *vp, uint32_t at, const vpps_task *t) {
    vpps_cpu *cpu = vp->cpu;
    const uint32_t *script = cpu->batch.script, *o = t->operands;
    const bool first = vp->index % (cpu->n_vps / cpu->batch.header.n_groups) == 0;
    switch (t->kind) {
    case VPPS_TASK_NOTHING: return true;
    case VPPS_TASK_STAGE: vpps_vp_stage(vp, at, t); return true;
    case VPPS_TASK_CONSTANTS:
        for (uint32_t i = 0; first && i < o[1]; i++)
            memcpy(cpu->pool + script[o[0] + 2 * i], &script[o[0] + 2 * i + 1], sizeof(float));
        return true;
    case VPPS_TASK_OUTER: vpps_vp_outer(vp, at, o[0], o[1], o[2]); return true;
    case VPPS_TASK_ENTRIES: vpps_vp_entries(vp, o[0], o[1]); return true;
    case VPPS_TASK_LOSS:
        if (vp->index == 0) add_loss(vp, at, script + o[0], o[1]);
        return true;
    case VPPS_TASK_PAUSE: return false; /* backward's launch continues after this task */
    case VPPS_TASK_NORM:
        if (!vpps_vp_share(vp)) return false;
        vpps_vp_norm(vp);
        return true;
    case VPPS_TASK_UPDATE:
        if (!vpps_vp_share(vp)) return false;
        vpps_vp_update(vp);
        return true;
    default: return false; /* END, the last task; vpps_check_task has rejected unknown kinds */
    }
}

static void start(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    const uint32_t *script = cpu->batch.script;
    const uint32_t group = vp->index / (cpu->n_vps / cpu->batch.header.n_groups);
    vp->at = vpps_task_starts(script)[group];
    vp->stalled_ns = 0;
    vp->track = vpps_trace_track(cpu->device.trace, vp->index);
    if (vp->track) vpps_trace_begin_track(cpu->device.trace, vp->track);
    vp->awaited[0].barrier = vp->awaited[1].barrier = VPPS_NO_BARRIER;
    if (vp->at == vpps_task_starts(script)[group + 1])
        vpps_vp_fail(vp, VPPS_SCRIPT, vp->at, "group %u has no tasks; expected END", group);
    if (cpu->batch.half == VPPS_BACKWARD_HALF)
        vp->at = (uint32_t)((const uint32_t *)(const void *)(vpps_find_pause(script, group) + 1) - script);
}

/* Runs the VP's (thread's) tasks until the last, or until it has waited limit_ns for a barrier. Returns: any ran? */
static bool run_tasks(vpps_vp *vp, uint64_t limit_ns) {
    vpps_cpu *cpu = vp->cpu;
    const uint32_t *script = cpu->batch.script, group = vp->index / (cpu->n_vps / cpu->batch.header.n_groups);
    const uint32_t end = vpps_task_starts(script)[group + 1], first = vp->at;
    for (; !atomic_load_explicit(&cpu->batch.failed, memory_order_relaxed); vp->at += VPPS_TASK_WORDS) {
        if (!vpps_check_task(vp, vp->at, end, group)) break;
        const vpps_task *t = vpps_task_at(script, vp->at);
        const vpps_wait_end waited = wait_before(vp, t, limit_ns);
        if (waited == VPPS_WAIT_TIMEOUT) return vp->at != first;
        if (waited == VPPS_WAIT_FAILED || !vpps_vp_task(vp, vp->at, t)) break;
        const uint32_t tasks = atomic_load_explicit(&vp->tasks, memory_order_relaxed);
        atomic_store_explicit(&vp->tasks, tasks + 1, memory_order_relaxed);
        if (vp->track) note_task(cpu, vp->track, t);
        if (t->signal != VPPS_NO_BARRIER) signal_barrier(vp, t);
    }
    vp->at = 0;
    return true;
}

void vpps_run_vps(vpps_cpu *cpu, uint32_t first, uint32_t end) {
    enum { TURN_NS = 100 * 1000 };
    const vpps_bf16_unit *unit = &cpu->precision.unit;
    const bool alone = end - first == 1;
    if (unit->open) unit->open();
    for (uint32_t v = first; v < end; v++) start(&cpu->vps[v]);
    for (bool running = true, any = true; running;) {
        const uint64_t limit_ns = alone ? cpu->watchdog_ns / 4 + 1 : any ? VPPS_ONLY_LOOK : TURN_NS;
        running = any = false;
        for (vpps_vp *vp = &cpu->vps[first]; vp < &cpu->vps[end]; vp++) {
            if (vp->at) any |= run_tasks(vp, limit_ns);
            running |= vp->at != 0;
        }
    }
    if (unit->close) unit->close();
}
