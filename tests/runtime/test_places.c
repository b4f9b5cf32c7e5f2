/* test_places.c - sockets, nodes and caches, read from files like real Linux machines', and where virtual processors then run. */
#include "fake_root.h"
#include "runtime/places.h"

#define CPU "/sys/devices/system/cpu"

/* ---------------------------------------------------------------- machines */

/* A machine. Its cores are numbered socket by socket and node by node; second threads follow the last core, as on x86. */
typedef struct machine {
    uint32_t packages, nodes, caches, cores,
        threads; /* nodes of a package, caches of a node, cores of a cache, threads of a core */
} machine;

static uint32_t cores_of(const machine *m) { return m->packages * m->nodes * m->caches * m->cores; }
static uint32_t cpus_of(const machine *m) { return cores_of(m) * m->threads; }

/* Returns a list such as "0-7,64-71\n": n cores from the first one on, with their second threads. */
static const char *list(const machine *m, uint32_t first, uint32_t n) {
    static char text[64];
    const uint32_t second = first + cores_of(m);
    if (m->threads == 1)
        snprintf(text, sizeof text, "%u-%u\n", first, first + n - 1);
    else if (n == 1)
        snprintf(text, sizeof text, "%u,%u\n", first, second);
    else
        snprintf(text, sizeof text, "%u-%u,%u-%u\n", first, first + n - 1, second, second + n - 1);
    return text;
}

static void put_cpu(const machine *m, uint32_t cpu) {
    static const char *const levels[] = {"1\n", "1\n", "2\n", "3\n"};
    const uint32_t core = cpu % cores_of(m), of_package = m->nodes * m->caches * m->cores;
    char package[16];
    snprintf(package, sizeof package, "%u\n", core / of_package);
    fake_root_put(package, CPU "/cpu%u/topology/physical_package_id", cpu);
    fake_root_put(list(m, core / of_package * of_package, of_package), CPU "/cpu%u/topology/package_cpus_list", cpu);
    fake_root_put(list(m, core, 1), CPU "/cpu%u/topology/core_cpus_list", cpu);
    for (uint32_t i = 0; i < VPPS_COUNT(levels); i++) {
        fake_root_put(levels[i], CPU "/cpu%u/cache/index%u/level", cpu, i);
        fake_root_put(i < 3 ? list(m, core, 1) : list(m, core / m->cores * m->cores, m->cores),
                      CPU "/cpu%u/cache/index%u/shared_cpu_list", cpu, i);
    }
}

static const char *put_machine(const machine *m) {
    const char *root = fake_root_open();
    const uint32_t of_node = m->caches * m->cores, n_nodes = m->packages * m->nodes;
    char all[32];
    for (uint32_t c = 0; c < cpus_of(m); c++) put_cpu(m, c);
    snprintf(all, sizeof all, "0-%u\n", cpus_of(m) - 1);
    fake_root_put(all, CPU "/online");
    snprintf(all, sizeof all, "0-%u\n", n_nodes - 1);
    fake_root_put(all, "/sys/devices/system/node/online");
    for (uint32_t node = 0; node < n_nodes; node++)
        fake_root_put(list(m, node * of_node, of_node), "/sys/devices/system/node/node%u/cpulist", node);
    return root;
}

/* Reads the places of the CPUs [first, end) of the machine whose files lie under `root`. */
static vpps_places read_places(const char *root, uint32_t first, uint32_t end) {
    bool allowed[512] = {false};
    vpps_places p;
    for (uint32_t c = first; c < end; c++) allowed[c] = true;
    TEST_OK(vpps_read_places(root, allowed, end, &p));
    return p;
}

/* ---------------------------------------------------------------- reading */

static const machine machines[] = {
    {2, 2, 1, 8, 2},  /* two sockets with two nodes each, hyper-threading */
    {1, 1, 1, 2, 1},  /* a virtual machine */
    {2, 1, 8, 8, 2},  /* each cache serves eight cores */
    {1, 4, 2, 8, 1},  /* one socket with four nodes */
    {4, 1, 1, 16, 1}, /* four sockets */
};

TEST_EACH(machines_are_read, 0, VPPS_COUNT(machines)) {
    const machine *m = &machines[_i];
    const vpps_places p = read_places(put_machine(m), 0, cpus_of(m));
    const vpps_place_counts n = vpps_count_places(&p);
    ck_assert_uint_eq(n.cpus, cpus_of(m));
    ck_assert_uint_eq(n.cores, cores_of(m));
    ck_assert_uint_eq(n.packages, m->packages);
    ck_assert_uint_eq(n.nodes, m->packages * m->nodes);
    ck_assert_uint_eq(n.caches, m->packages * m->nodes * m->caches);
    ck_assert_uint_eq(n.slow_cores, 0);
    for (uint32_t i = 0; i < p.n; i++) {
        const vpps_core_place *x = &p.at[i];
        ck_assert_uint_eq(x->core, i / m->threads);
        ck_assert_uint_eq(x->cpu, i / m->threads + i % m->threads * cores_of(m));
        ck_assert_uint_eq(x->cache, x->core / m->cores * m->cores);
        ck_assert_uint_eq(x->node, x->core / (m->cores * m->caches));
        ck_assert_uint_eq(x->package, x->node / m->nodes);
    }
    free(p.at);
}

TEST(offline_and_forbidden_cpus_are_no_places) {
    const char *root = put_machine(&machines[0]);
    fake_root_put("0-2,5,8-15,40\n", CPU "/online");
    const vpps_places p = read_places(root, 1, 12);
    static const uint32_t expected[] = {1, 2, 5, 8, 9, 10, 11};
    ck_assert_uint_eq(p.n, VPPS_COUNT(expected));
    for (uint32_t i = 0; i < p.n; i++) ck_assert_uint_eq(p.at[i].cpu, expected[i]);
    ck_assert_uint_eq(p.at[2].node, 0);
    ck_assert_uint_eq(p.at[3].node, 1);
    free(p.at);
}

/* A container that hides /sys, and files without the information. */
TEST(what_is_not_told_is_one_socket) {
    const char *root = fake_root_open();
    for (uint32_t k = 0; k < 2; k++) {
        if (k) {
            fake_root_put("", CPU "/online");
            fake_root_put("-1\n", CPU "/cpu0/topology/physical_package_id");
            fake_root_put("x\n", CPU "/cpu1/topology/core_cpus_list");
            fake_root_put("3\n", CPU "/cpu2/cache/index0/level");
            fake_root_put("9-\n", "/sys/devices/system/node/online");
        }
        const vpps_places p = read_places(root, 0, 6);
        const vpps_place_counts n = vpps_count_places(&p);
        uint32_t chosen[6];
        ck_assert_uint_eq(n.cpus, 6);
        ck_assert_uint_eq(n.cores, 6);
        ck_assert(n.packages == 1 && n.nodes == 1 && n.caches == 1);
        TEST_OK(vpps_choose_places(&p, 6, 3, chosen));
        for (uint32_t v = 0; v < 6; v++) ck_assert_uint_eq(chosen[v], v);
        ck_assert_int_eq(vpps_hold_of(&p, 6, chosen), VPPS_HOLD_ANYWHERE);
        free(p.at);
    }
}

/* Four fast cores with two threads each and eight slow ones, according to x86's list or to the cores' capacity. */
TEST_EACH(slow_cores_come_last, 0, 2) {
    const char *root = fake_root_open();
    char text[16];
    for (uint32_t c = 0; c < 16; c++) {
        if (c < 8)
            snprintf(text, sizeof text, "%u-%u\n", c / 2 * 2, c / 2 * 2 + 1);
        else
            snprintf(text, sizeof text, "%u\n", c);
        fake_root_put(text, CPU "/cpu%u/topology/thread_siblings_list", c);
        if (_i) fake_root_put(c < 8 ? "1024\n" : "446\n", CPU "/cpu%u/cpu_capacity", c);
    }
    if (!_i) fake_root_put("8-15\n", "/sys/devices/cpu_atom/cpus");
    const vpps_places p = read_places(root, 0, 16);
    const vpps_place_counts n = vpps_count_places(&p);
    ck_assert(n.cores == 12 && n.slow_cores == 8);
    uint32_t chosen[16];
    TEST_OK(vpps_choose_places(&p, 6, 0, chosen));
    static const uint32_t six[] = {0, 2, 4, 6, 8, 9};
    for (uint32_t v = 0; v < 6; v++) ck_assert_uint_eq(p.at[chosen[v]].cpu, six[v]);
    TEST_OK(vpps_choose_places(&p, 12, 0, chosen));
    for (uint32_t v = 0; v < 12; v++) ck_assert_uint_eq(p.at[chosen[v]].cpu, v < 4 ? 2 * v : 4 + v);
    TEST_OK(vpps_choose_places(&p, 16, 0, chosen));
    for (uint32_t v = 0; v < 16; v++) ck_assert_uint_eq(p.at[chosen[v]].cpu, v);
    free(p.at);
}

/* ---------------------------------------------------------------- choosing */

typedef struct choice {
    machine m;
    uint32_t n_vps, here;
    vpps_hold hold;
    const char *cpus; /* of each VP */
} choice;

static const choice choices[] = {
    {{1, 1, 1, 2, 1}, 2, 1, VPPS_HOLD_ANYWHERE, "0 1"},
    {{1, 1, 1, 2, 1}, 5, 0, VPPS_HOLD_ANYWHERE, "0 0 0 1 1"},
    /* what fits in one node runs in the caller's node, and is not bound there */
    {{2, 1, 1, 4, 2}, 3, 5, VPPS_HOLD_ANYWHERE, "4 5 6"},
    {{2, 1, 1, 4, 2}, 4, 13, VPPS_HOLD_ANYWHERE, "4 5 6 7"},
    /* the rest runs in the next node; a core's second thread is used once all cores are */
    {{2, 1, 1, 4, 2}, 6, 0, VPPS_HOLD_NODE, "0 1 2 3 4 5"},
    {{2, 1, 1, 4, 2}, 6, 4, VPPS_HOLD_NODE, "4 5 6 7 0 1"},
    {{2, 1, 1, 4, 2}, 8, 6, VPPS_HOLD_CACHE, "4 5 6 7 0 1 2 3"},
    {{2, 1, 1, 2, 2}, 6, 0, VPPS_HOLD_CACHE, "0 4 1 5 2 3"},
    {{2, 1, 1, 2, 2}, 8, 2, VPPS_HOLD_CACHE, "2 6 3 7 0 4 1 5"},
    /* nodes and caches of the same socket first */
    {{2, 2, 1, 2, 1}, 8, 6, VPPS_HOLD_CACHE, "6 7 4 5 0 1 2 3"},
    {{1, 1, 2, 2, 1}, 3, 3, VPPS_HOLD_ANYWHERE, "2 3 0"},
    {{1, 1, 2, 2, 1}, 4, 3, VPPS_HOLD_CACHE, "2 3 0 1"},
    /* more virtual processors than places */
    {{2, 1, 1, 2, 1}, 8, 0, VPPS_HOLD_CACHE, "0 0 1 1 2 2 3 3"},
    /* a caller that runs elsewhere meanwhile */
    {{2, 1, 1, 2, 1}, 3, 77, VPPS_HOLD_NODE, "0 1 2"},
};

TEST_EACH(vps_take_places, 0, VPPS_COUNT(choices)) {
    const choice *c = &choices[_i];
    const vpps_places p = read_places(put_machine(&c->m), 0, cpus_of(&c->m));
    uint32_t chosen[16];
    char cpus[128] = "";
    TEST_OK(vpps_choose_places(&p, c->n_vps, c->here, chosen));
    for (uint32_t v = 0, n = 0; v < c->n_vps; v++)
        n += (uint32_t)snprintf(cpus + n, sizeof cpus - n, "%s%u", v ? " " : "", p.at[chosen[v]].cpu);
    ck_assert_str_eq(cpus, c->cpus);
    const vpps_hold hold = vpps_hold_of(&p, c->n_vps, chosen);
    ck_assert_int_eq(hold, c->hold);
    for (uint32_t v = 0; v < c->n_vps; v++) { /* each one may run on its own place, and on no other node's */
        const vpps_core_place *own = &p.at[chosen[v]];
        uint32_t n = 0;
        for (uint32_t i = 0; i < p.n; i++) n += vpps_within(own, &p.at[i], hold);
        ck_assert(vpps_within(own, own, hold));
        const uint32_t of_cache = c->m.cores * c->m.threads, of_node = c->m.caches * of_cache;
        ck_assert_uint_eq(n, hold == VPPS_HOLD_CACHE ? of_cache : hold == VPPS_HOLD_NODE ? of_node : p.n);
    }
    free(p.at);
}

TEST(this_process_has_places) {
    vpps_places p;
    TEST_OK(vpps_places_here(&p));
    ck_assert_uint_ge(p.n, 1);
    free(p.at);
}
