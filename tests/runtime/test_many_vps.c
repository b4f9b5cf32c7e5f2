/* test_many_vps.c - more virtual processors than cores: their barriers, rows and places. (Agreement with the reference: test_random.c; equal bits in
 * every run: test_crowd.c.) */
#include "runtime/cpu/cpu.h"
#include "runtime/handle.h"
#include "script/writer.h"
#include "small_network.h"

#include <sched.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- meetings */

static vpps_counter *counters(uint32_t n) {
    vpps_counter *all = aligned_alloc(sizeof *all, n * sizeof *all);
    ck_assert_ptr_nonnull(all);
    return memset(all, 0, n * sizeof *all);
}

/* In each meeting, exactly the last thread that arrives is told that it is the last. */
static void come(uint32_t n, uint64_t *random) {
    FREED vpps_counter *nodes = counters(2 * n);
    FREED uint32_t *order = need(malloc(n * sizeof *order));
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    for (uint32_t meeting = 1; meeting <= 3; meeting++) {
        for (uint32_t i = n; i-- > 1;) {
            const uint32_t k = vpps_random_below(random, i + 1), member = order[i];
            order[i] = order[k];
            order[k] = member;
        }
        for (uint32_t i = 0; i < n; i++)
            ck_assert_msg(vpps_meet(nodes, n, order[i], meeting) == (i + 1 == n),
                          "meeting %u of %u, member %u is number %u", meeting, n, order[i], i);
    }
}

TEST_GROUP("many VPs", .seconds = 120);

TEST(the_last_one_knows) {
    uint64_t random = test_seed();
    for (uint32_t n = 1; n <= 140; n++) come(n, &random);
    for (uint32_t n = 511; n <= 513; n++) come(n, &random);
}

/* ---------------------------------------------------------------- scripts whose barriers are no meetings */

enum { GROUPS = 2, VPS = 24, BARRIERS = 5 };

/* Writes a script: each group has a barrier of its own, and two barriers of all virtual processors. */
static void write_script(vpps_writer *w) {
    const uint32_t starts = (vpps_write_room(w, VPPS_TASK_HEADER_WORDS), vpps_write_room(w, GROUPS + 1));
    for (uint32_t g = 0; g < GROUPS; g++) {
        vpps_write_group(w, starts + g);
        VPPS_WRITE_TASK(w, NOTHING, 0);
        vpps_write_barrier(w, g, VPS / GROUPS);
        VPPS_WRITE_TASK(w, NOTHING, 0);
        vpps_write_barrier(w, 2, VPS);
        VPPS_WRITE_TASK(w, NOTHING, 0);
        vpps_write_barrier(w, 3, VPS);
        VPPS_WRITE_TASK(w, END, 0);
    }
    w->words[starts + GROUPS] = (uint32_t)w->n;
    const vpps_task_header h = {.n_vps = VPS, .n_groups = GROUPS, .n_barriers = BARRIERS, .words = (uint32_t)w->n};
    memcpy(w->words, &h, sizeof h);
}

/* `t`: the last group's four tasks. */
static void nothing(vpps_task *t) { (void)t; }
static void other_order(vpps_task *t) { t[1].signal = t[2].wait = 3, t[2].signal = t[3].wait = 2; }
static void other_groups_barrier(vpps_task *t) { t[0].signal = t[1].wait = 0; }
static void wait_of_a_group_only(vpps_task *t) { t[2].signals = VPS / GROUPS; }
static void wait_for_fewer(vpps_task *t) { t[1].signals--; }
static void no_wait(vpps_task *t) { t[1].wait = VPPS_NO_BARRIER; }
static void no_signal(vpps_task *t) { t[0].signal = VPPS_NO_BARRIER; }
static void later_wait(vpps_task *t) { t[0].signal = t[3].wait = 4, t[1].wait = VPPS_NO_BARRIER; }
static void one_more_of_its_own(vpps_task *t) { t[1].signal = t[2].wait = 4, t[2].signals = VPS / GROUPS; }
static void absent_barrier(vpps_task *t) { t[0].signal = t[1].wait = BARRIERS; }
static void signalled_twice(vpps_task *t) { t[2].signal = t[3].wait = 2; }
static void early_end(vpps_task *t) { t[2].kind = VPPS_TASK_END; }
static void end_that_signals(vpps_task *t) { t[3].signal = 4; }
static void no_end(vpps_task *t) { t[3].kind = VPPS_TASK_NOTHING; }

static void (*const changes[])(vpps_task *t) = {
    nothing,          other_order, other_groups_barrier, wait_of_a_group_only, wait_for_fewer,  no_wait,
    no_signal,        later_wait,  one_more_of_its_own,  absent_barrier,       signalled_twice, early_end,
    end_that_signals, no_end};

TEST_EACH(only_meetings_are_taken_for_meetings, 0, VPPS_COUNT(changes)) {
    uint32_t signals[BARRIERS];
    vpps_writer w = {0};
    write_script(&w);
    changes[_i]((vpps_task *)(void *)(w.words + vpps_task_starts(w.words)[GROUPS - 1]));
    ck_assert_int_eq(vpps_are_meetings(w.words, signals), _i == 0);
    w.words[VPPS_TASK_HEADER_WORDS + GROUPS] -= 4; /* the last task is cut short */
    ck_assert(!vpps_are_meetings(w.words, signals));
    VPPS_FREE_ARRAYS(w.words);
}

/* ---------------------------------------------------------------- gradients by level */

static void count_deferred(void *context, const char *line) {
    *(uint32_t *)context += strstr(line, "deferred") != NULL;
}

TEST(gradients_that_are_not_accumulated_are_told_once) {
    for (uint32_t groups = 1; groups <= 2; groups++) {
        uint32_t told = 0;
        vpps_options o = sn_options(4, VPPS_SGD);
        o.groups = groups;
        o.gradients = VPPS_GRADIENTS_ACCUMULATE;
        o.log = count_deferred;
        o.log_context = &told;
        AT_END(sn_close) small_network net = sn_with(5, &o);
        for (uint32_t b = 0; b < 2; b++) {
            vpps_node terms[2]; /* terms that groups share out */
            vpps_graph_clear(net.g);
            for (uint32_t i = 0; i < 2; i++) terms[i] = sn_loss(&net, sn_read(&net, i, VPPS_NO_NODE), 0);
            TEST_OK(vpps_fb(net.h, net.g, vpps_sum(net.g, 2, terms), NULL));
        }
        ck_assert_uint_eq(told, groups - 1);
    }
}

/* ---------------------------------------------------------------- when somebody does not come */

TEST(who_waits_in_vain_tells_how_many_came) {
    enum { N = 20, MISSING = 3 };
    uint32_t came = 0;
    vpps_options o = sn_options(N, VPPS_SGD);
    o.groups = 1;
    AT_END(sn_close) small_network net = sn_with(5, &o);
    sn_step(&net, 1);
    vpps_cpu *cpu = (vpps_cpu *)net.h->device;
    for (uint32_t v = 0; v < N; v++)
        if (v != MISSING && v != N - 1) vpps_vp_signal_meeting(&cpu->vps[v], N);
    ck_assert_int_eq(vpps_vp_wait_meeting(&cpu->vps[0], N, 1000000, &came), VPPS_WAIT_TIMEOUT);
    ck_assert_uint_eq(came, N - 2);
    for (uint32_t v = MISSING; v < N; v += N - 1 - MISSING) vpps_vp_signal_meeting(&cpu->vps[v], N);
    ck_assert_int_eq(vpps_vp_wait_meeting(&cpu->vps[0], N, 0, &came), VPPS_WAIT_REACHED);
}

/* ---------------------------------------------------------------- more VPs than rows */

enum { WIDE = 144 };

/* Trains a chain of vertices with WIDE rows, of whose gradients virtual processors with rows compute shares. Without verification, only the numbers
 * show faults. */
static float *train_wide(uint32_t vps, size_t *count) {
    float x[WIDE];
    for (uint32_t i = 0; i < WIDE; i++) x[i] = (float)(i % 7) / 7 - 0.4f;
    OWNED(vpps_model) *model = new_model(3);
    const vpps_param W = add_matrix(model, "W", WIDE, WIDE), C = add_matrix(model, "C", 3, WIDE);
    OWNED(vpps_graph) *g = new_graph(model);
    vpps_graph *r = begin_cell(model, "two products");
    TEST_OK(vpps_push(r, vpps_matvec(r, W, vpps_matvec(r, W, vpps_pull(r, WIDE, 1)))));
    const vpps_cell cell = end_cell(r);
    vpps_options o = sn_options(vps, VPPS_SGD);
    o.groups = 1;
    o.verify = vps > 2;
    OWNED(vpps_handle) *h = new_handle(model, &o);
    share_rows(h);
    for (uint32_t step = 0; step < 3; step++) {
        vpps_graph_clear(g);
        vpps_node y = vpps_input(g, WIDE, 1, x);
        for (uint32_t i = 0; i < 2; i++) {
            y = vpps_pushed(g, APPLY(g, cell, PULLS(1, &y)), 0);
            y = vpps_tanh(g, vpps_matvec(g, W, y));
        }
        train_batch(h, g, vpps_cross_entropy(g, vpps_matvec(g, C, y), step));
    }
    return handle_values(model, h, count);
}

static const uint32_t wide_machines[] = {2, 12, 20, 64};

TEST_EACH(vps_without_rows_change_nothing, 0, VPPS_COUNT(wide_machines)) {
    size_t n, m;
    FREED float *one = train_wide(1, &n), *many = train_wide(wide_machines[_i], &m);
    ck_assert_uint_eq(n, m);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(one[i] - many[i]) <= 1e-5f, "%u VPs: element %zu is %g, not %g", wide_machines[_i], i,
                      (double)many[i], (double)one[i]);
}

/* Rows are dealt to a group of any size if there are enough, or if each virtual processor gets a unit. */
TEST(rows_are_dealt) {
    static const struct {
        uint32_t group, rows;
        bool dealt;
    } cases[] = {{1, 16, true},   {2, 31, false}, {2, 32, true},    {8, 127, false}, {8, 128, true},
                 {9, 127, false}, {9, 128, true}, {64, 127, false}, {64, 128, true}, {64, 256, true}};
    for (size_t i = 0; i < VPPS_COUNT(cases); i++) {
        const vpps_cell_needs needs = {.group = cases[i].group,
                                       .rows = {.unit = VPPS_ROW_UNIT, .enough = VPPS_ENOUGH_ROWS}};
        ck_assert_msg(vpps_rows_dealt(&needs, cases[i].rows) == cases[i].dealt, "%u rows, groups of %u", cases[i].rows,
                      cases[i].group);
    }
}

/* A batch with few levels, many vectors, and matrices that fit the cache. */
TEST(groups_are_no_larger_than_rows_last) {
    vpps_batch_extent e = {.n_vps = 128, .flops = 1e8, .vectors = 1e4, .levels = 1, .elems = 1e6, .rows = 256};
    ck_assert_uint_eq(vpps_cpu_groups(&e, 128), 8);
    ck_assert_uint_eq(vpps_cpu_groups(&e, 4), 4);
    ck_assert_uint_eq(vpps_cpu_groups(&e, 1), 1);
    e.rows = 2048; /* some for all */
    ck_assert_uint_eq(vpps_cpu_groups(&e, 128), 1);
    e.rows = 96; /* too few rows to be dealt */
    ck_assert_uint_eq(vpps_cpu_groups(&e, 128), 1);
    e.levels = 40; /* and barriers are expensive */
    ck_assert_uint_eq(vpps_cpu_groups(&e, 128), 128);
    ck_assert_uint_eq(vpps_cpu_groups(&e, 4), 1);
}

/* ---------------------------------------------------------------- places */

/* A thread that is bound like a virtual processor's, and the CPUs where it may then run. */
typedef struct bound_thread {
    const vpps_vp *vp;
    cpu_set_t may_run;
} bound_thread;

static void *run_bound(void *argument) {
    bound_thread *s = argument;
    vpps_bind_vp(s->vp);
    sched_getaffinity(0, sizeof s->may_run, &s->may_run);
    return NULL;
}

static bool is_resident(const void *memory) {
    unsigned char resident = 0;
    ck_assert_int_eq(mincore((void *)((uintptr_t)memory / 4096 * 4096), 1, &resident), 0);
    return resident & 1;
}

/* Imitates a machine whose CPUs all have memory of their own. */
TEST(a_vp_and_its_rows_are_at_its_place) {
    enum { N = 2 };
    OWNED(vpps_model) *model = new_model(1);
    const vpps_param W = add_matrix(model, "W", 256, 256);
    vpps_options o = sn_options(N, VPPS_SGD);
    o.caller = VPPS_CALLER_FREE;
    OWNED(vpps_handle) *h = new_handle(model, &o);
    vpps_cpu *cpu = (vpps_cpu *)h->device;
    const uint32_t n = cpu->places.n;
    for (uint32_t i = 0; i < n; i++) cpu->places.at[i].node = i;
    cpu->hold = VPPS_HOLD_NODE;
    cpu->chosen[0] = 0;
    cpu->chosen[1] = n - 1;
    ck_assert_int_eq(madvise(cpu->matrix_memory, cpu->matrix_bytes / 4096 * 4096, MADV_DONTNEED), 0);
    for (uint32_t v = 0; v < N; v++) {
        bound_thread s = {.vp = &cpu->vps[v]};
        pthread_t thread;
        const vpps_blocks own = vpps_blocks_of(cpu, W, v, N);
        ck_assert(!is_resident(own.blocks[own.n - 1].values));
        ck_assert_int_eq(pthread_create(&thread, NULL, run_bound, &s), 0);
        pthread_join(thread, NULL);
        ck_assert_int_eq(CPU_COUNT(&s.may_run), 1);
        ck_assert(CPU_ISSET(cpu->places.at[cpu->chosen[v]].cpu, &s.may_run));
        for (uint32_t b = 0; b < own.n; b++) ck_assert(is_resident(own.blocks[b].values));
    }
}

int main(void) {
    setenv("VPPS_CACHE_DIR", "/dev/null", 1);
    return test_main("many VPs");
}
