/* meetings.c - barriers of many VPs (threads), as trees of counters.
 *
 * A barrier of few VPs is a counter that all VPs increment and watch. Its cache line moves from core to core, so its
 * cost grows with the number of VPs. More VPs use a tree: VPPS_NEIGHBOURS adjacent VPs increment one node, and the last
 * of them increments the node above. The last VP at the root opens a gate for each VPPS_NEIGHBOURS VPs, which watch
 * only that line. So no line moves more than VPPS_NEIGHBOURS times, and the number of consecutive steps is the tree's
 * height. A sleeper wakes once, when all VPs have come.
 *
 * Counters of a tree are not reset between the barriers of a batch, so that the same lines serve all barriers of a
 * group. That requires a batch's program (script) whose barriers are "meetings": all VPs that signal a barrier wait in
 * their next task for all its signals. The scheduler writes only such scripts; others run with plain counters. */
#include "runtime/cpu/cpu.h"

static uint32_t above(uint32_t n) { return (n + VPPS_NEIGHBOURS - 1) / VPPS_NEIGHBOURS; }

/* Returns the number of nodes in a tree whose leaves are n threads, and whose nodes have at most VPPS_NEIGHBOURS children. */
static uint32_t nodes_of(uint32_t n) {
    uint32_t nodes = 0;
    do nodes += n = above(n);
    while (n > 1);
    return nodes;
}

bool vpps_meet(vpps_counter *nodes, uint32_t n, uint32_t member, uint32_t meeting) {
    for (;;) {
        const uint32_t node = member / VPPS_NEIGHBOURS, left = n - node * VPPS_NEIGHBOURS;
        const uint32_t all = vpps_min_u32(left, VPPS_NEIGHBOURS) * meeting;
        if (atomic_fetch_add_explicit(&nodes[node].value, 1, memory_order_acq_rel) + 1 != all) return false;
        if (n <= VPPS_NEIGHBOURS) return true;
        nodes += n = above(n);
        member = node;
    }
}

vpps_status vpps_meetings_open(vpps_cpu *cpu) {
    const size_t n = cpu->n_vps, tree = nodes_of(cpu->n_vps);
    vpps_meetings *m = &cpu->meetings;
    m->n_counters = 2 * (n + tree + above(cpu->n_vps));
    void *memory = NULL;
    if (posix_memalign(&memory, sizeof(vpps_counter), (m->n_counters + tree) * sizeof(vpps_counter)))
        return vpps_fail(VPPS_MEMORY, "cpu: out of memory for the barriers of %u VPs", cpu->n_vps);
    m->all = memory;
    m->all_gates = m->all + tree;
    m->group = m->all_gates + above(cpu->n_vps);
    m->group_gates = m->group + n;
    m->finish = m->all + m->n_counters;
    memset(memory, 0, (m->n_counters + tree) * sizeof(vpps_counter));
    return VPPS_OK;
}

void vpps_meetings_close(vpps_cpu *cpu) {
    VPPS_FREE_ARRAYS(cpu->meetings.signals);
    free(cpu->meetings.all);
}

/* Returns the first task from t on that signals a barrier, or `end`. */
static const vpps_task *next_signal(const vpps_task *t, const vpps_task *end) {
    while (t < end && t->signal == VPPS_NO_BARRIER) t++;
    return t;
}

/* Returns whether a group of threads, whose tasks are t to end - 1, waits for each barrier right after signalling it.
 * Adds its signals of barrier b to signals[b]. */
static bool count_signals(const vpps_task_header *h, const vpps_task *t, const vpps_task *end, uint32_t *signals) {
    uint32_t signalled = VPPS_NO_BARRIER;
    for (; t < end && t->kind != VPPS_TASK_END; t++) {
        if (t->wait != signalled) return false;
        signalled = t->signal;
        if (signalled == VPPS_NO_BARRIER) continue;
        if (signalled >= h->n_barriers) return false;
        signals[signalled] += h->n_vps / h->n_groups;
    }
    return t + 1 == end && t->wait == signalled && t->signal == VPPS_NO_BARRIER;
}

/* Returns the first task from t on that signals a barrier of all virtual processors (threads), or `end`. */
static const vpps_task *next_of_all(const vpps_task_header *h, const vpps_task *t, const vpps_task *end) {
    for (t = next_signal(t, end); t < end && t[1].signals != h->n_vps; t = next_signal(t + 1, end)) {}
    return t;
}

/* Returns whether each barrier of a group is of its threads or of all threads, the latter in the order of group 0. */
static bool meet_alike(const uint32_t *script, uint32_t group, const uint32_t *signals) {
    const vpps_task_header *h = vpps_task_header_of(script);
    const vpps_task *first = vpps_first_task(script, 0), *first_end = vpps_end_of_tasks(script, 0);
    const vpps_task *t = vpps_first_task(script, group), *end = vpps_end_of_tasks(script, group);
    for (const vpps_task *s = next_signal(t, end); s < end; s = next_signal(s + 1, end)) {
        const uint32_t expected = s[1].signals;
        if (signals[s->signal] != expected || (expected != h->n_vps && expected != h->n_vps / h->n_groups))
            return false;
    }
    for (; h->n_groups > 1; t++, first++) {
        t = next_of_all(h, t, end);
        first = next_of_all(h, first, first_end);
        if (t == end || first == first_end) return t == end && first == first_end;
        if (t->signal != first->signal) return false;
    }
    return true;
}

bool vpps_are_meetings(const uint32_t *script, uint32_t *signals) {
    const vpps_task_header *h = vpps_task_header_of(script);
    const uint32_t *starts = vpps_task_starts(script);
    memset(signals, 0, h->n_barriers * sizeof *signals);
    for (uint32_t g = 0; g < h->n_groups; g++) {
        const bool whole = (starts[g + 1] - starts[g]) % VPPS_TASK_WORDS == 0;
        if (!whole || !count_signals(h, vpps_first_task(script, g), vpps_end_of_tasks(script, g), signals))
            return false;
    }
    for (uint32_t g = 0; g < h->n_groups; g++)
        if (!meet_alike(script, g, signals)) return false;
    return true;
}

vpps_status vpps_choose_meetings(vpps_cpu *cpu, const uint32_t *script) {
    vpps_meetings *m = &cpu->meetings;
    m->taken = m->ordered = false;
    if (cpu->n_vps == 1) return VPPS_OK;
    if (!VPPS_RESERVE(m->signals, vpps_task_header_of(script)->n_barriers + 1u))
        return vpps_fail(VPPS_MEMORY, "cpu: out of memory for %u barriers", vpps_task_header_of(script)->n_barriers);
    m->ordered = vpps_are_meetings(script, m->signals);
    m->taken = m->ordered && cpu->n_vps >= VPPS_LEAST_TREE;
    if (!m->taken) return VPPS_OK;
    for (size_t i = 0; i < m->n_counters; i++) atomic_store_explicit(&m->all[i].value, 0, memory_order_relaxed);
    for (uint32_t v = 0; v < cpu->n_vps; v++) cpu->vps[v].met[0] = cpu->vps[v].met[1] = 0;
    return VPPS_OK;
}

/* The tree of counters of a barrier, as seen by one virtual processor (thread). */
typedef struct tree {
    vpps_counter *nodes, *gates;
    uint32_t n, member;
    uint32_t *met; /* how often the thread has met the others in this tree, which serves many barriers in turn */
} tree;

/* Returns the tree of counters of a barrier that `signals` processors signal: the group's tree if they are the group, else the tree of all
 * processors. A group's tree has at most as many nodes, and gates (counters that processors wait for), as the group has processors. */
static tree tree_of(vpps_vp *vp, uint32_t signals) {
    const vpps_cpu *cpu = vp->cpu;
    const vpps_meetings *m = &cpu->meetings;
    const uint32_t size = cpu->n_vps / cpu->batch.header.n_groups, first = vp->index / size * size;
    if (signals == size) return (tree){m->group + first, m->group_gates + first, size, vp->index - first, &vp->met[0]};
    return (tree){m->all, m->all_gates, cpu->n_vps, vp->index, &vp->met[1]};
}

void vpps_vp_signal_meeting(vpps_vp *vp, uint32_t signals) {
    const tree t = tree_of(vp, signals);
    const uint32_t meeting = ++*t.met;
    if (!vpps_meet(t.nodes, t.n, t.member, meeting)) return;
    for (uint32_t i = 0; i < above(t.n); i++) atomic_store_explicit(&t.gates[i].value, meeting, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* since vpps_wake needs sequential consistency */
    for (uint32_t i = 0; i < above(t.n); i++) vpps_wake(&t.gates[i]);
}

vpps_wait_end vpps_vp_wait_meeting(vpps_vp *vp, uint32_t signals, uint64_t limit_ns, uint32_t *came) {
    const tree t = tree_of(vp, signals);
    const vpps_wait_end end = vpps_wait_for(vp->cpu, &t.gates[t.member / VPPS_NEIGHBOURS], *t.met, limit_ns, true);
    if (end != VPPS_WAIT_TIMEOUT) return end;
    *came = 0;
    for (uint32_t i = 0; i < above(t.n); i++) *came += atomic_load_explicit(&t.nodes[i].value, memory_order_relaxed);
    *came -= (*t.met - 1) * t.n;
    return end;
}

void vpps_meetings_wake(vpps_cpu *cpu) {
    for (size_t i = 0; i < cpu->meetings.n_counters; i++) vpps_wake(&cpu->meetings.all[i]);
}
