/* test_crowd.c - how many threads run virtual processors: results do not depend on the number, which follows measured times. */
#include "runtime/cpu/cpu.h"
#include "runtime/handle.h"
#include "small_network.h"

/* Virtual processors and groups; from 12 on, virtual processors meet at trees of counters. */
static const uint32_t machines[][2] = {{2, 1},  {2, 2},  {3, 1},   {4, 2},  {8, 4},
                                       {13, 1}, {16, 2}, {24, 24}, {40, 2}, {64, 1}};

/* From now on, lets 2^rung threads run each launch. */
static void hold(vpps_cpu *cpu, uint32_t rung) {
    memset(cpu->crowds, 0, sizeof cpu->crowds);
    for (uint32_t i = 0; i < sizeof cpu->crowds / sizeof(vpps_crowd); i++) {
        vpps_crowd *c = &cpu->crowds[i / VPPS_COUNT(cpu->crowds[0])][i % VPPS_COUNT(cpu->crowds[0])];
        c->rung = c->home = rung, c->period = 1, c->left = UINT32_MAX;
    }
}

/* Returns parameters after some batches: with one thread for each virtual processor, or another number of threads in each batch. */
static float *train(uint32_t number, bool by_rows, vpps_caller caller, uint64_t random, size_t *count) {
    vpps_options o = sn_options(machines[number][0], VPPS_ADAM);
    o.groups = machines[number][1];
    o.caller = caller;
    o.waves = 1 + (by_rows && number % 2);
    o.slices = 1 + number % 2;
    AT_END(sn_close) small_network net = sn_with(5, &o);
    vpps_cpu *cpu = (vpps_cpu *)net.h->device;
    const uint32_t top = vpps_rung_of(o.vps - 1);
    if (by_rows) share_rows(net.h);
    for (uint32_t b = 0; b < 10; b++) {
        const vpps_node loss = sn_build(&net, b, 1);
        const uint32_t rung = random ? vpps_random_below(&random, top + 1) : top;
        hold(cpu, rung);
        if (b % 2)
            sn_parts(&net, loss);
        else
            TEST_OK(vpps_fb(net.h, net.g, loss, NULL));
        ck_assert(caller != VPPS_CALLER_WORKS || vpps_device_cpu.finished(&cpu->device)); /* when vpps_fb returns */
        TEST_OK(vpps_sync_latest_loss(net.h, NULL));
        ck_assert(cpu->meetings.taken == (o.vps >= 12));
        ck_assert_uint_eq(cpu->threads, vpps_min_u32(o.vps, 1u << rung));
    }
    return handle_values(net.model, net.h, count);
}

TEST_EACH(bits_do_not_depend_on_the_number, 0, 4 * VPPS_COUNT(machines)) {
    size_t n, m;
    const uint32_t number = (uint32_t)_i / 4;
    const vpps_caller caller = _i % 2 ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS;
    FREED float *all = train(number, _i & 2, VPPS_CALLER_WORKS, 0, &n);
    FREED float *some = train(number, _i & 2, caller, test_seed() | 1, &m);
    ck_assert_uint_eq(n, m);
    ck_assert_msg(!memcmp(all, some, n * sizeof *all), "%u VPs: other parameters", machines[number][0]);
}

/* Returns in how many of n launches (each is a window) `threads` threads take part. seconds[r]: duration of a launch with 2^r threads. free: number
 * of threads of which none has to wait for a core. */
static uint32_t launches(vpps_cpu *cpu, uint32_t n, uint32_t threads, const uint32_t *seconds, uint32_t free) {
    uint32_t count = 0;
    const vpps_batch batch = {.script_words = 1000};
    for (uint32_t i = 0; i < n; i++) {
        vpps_choose_threads(cpu, &batch);
        count += cpu->threads == threads;
        cpu->batch.end_ns = vpps_now_ns();
        cpu->batch.start_ns = cpu->batch.end_ns - seconds[vpps_rung_of(cpu->threads - 1)] * UINT64_C(1000000000);
        if (cpu->threads > free) atomic_store(&cpu->crowd->crowded, true);
    }
    return count;
}

TEST(the_number_follows_what_was_measured) {
    void *memory = NULL;
    ck_assert_int_eq(posix_memalign(&memory, 64, sizeof(vpps_cpu)), 0);
    FREED vpps_cpu *cpu = memset(memory, 0, sizeof(vpps_cpu));
    cpu->n_vps = 8;
    ck_assert_uint_eq(launches(cpu, 100, 8, (uint32_t[]){1, 1, 1, 1}, 8), 100); /* no trial if no thread waits */
    ck_assert_uint_ge(launches(cpu, 300, 2, (uint32_t[]){20, 4, 20, 80}, 2), 250);
    ck_assert_uint_ge(launches(cpu, 300, 1, (uint32_t[]){1, 4, 20, 80}, 1), 200);
    launches(cpu, 500, 8, (uint32_t[]){4, 8, 8, 8}, 8); /* the cores are free: every virtual processor gets a thread */
    ck_assert_uint_eq(launches(cpu, 100, 8, (uint32_t[]){4, 8, 8, 8}, 8), 100);
    ck_assert_uint_ge(launches(cpu, 300, 8, (uint32_t[]){64, 32, 16, 4}, 1), 250); /* crowded, but all are fastest */
}
