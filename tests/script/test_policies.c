/* test_policies.c - batching policies: on ED-Batch's figure 1, on random graphs compared with definitions, on real data compared with numbers of
 * batches that another program counted. */
#include "common/training.h"
#include "networks.h"
#include "runtime/handle.h"
#include "script/schedule.h"
#include "script/scopes.h"

/* ---------------------------------------------------------------- typed graphs */

static vpps_typed_graph open_graph(uint32_t most, uint32_t n_types) {
    vpps_typed_graph g = {.n_types = n_types,
                          .types = calloc(most + 1, sizeof(uint32_t)),
                          .first = calloc(most + 1, sizeof(uint32_t)),
                          .sources = calloc((size_t)most * most + 1, sizeof(uint32_t))};
    ck_assert(g.types && g.first && g.sources);
    return g;
}

static void close_graph(vpps_typed_graph *g) { VPPS_FREE(g->types, g->first, g->sources); }

static uint32_t add_vertex(vpps_typed_graph *g, uint32_t type) {
    g->types[g->n] = type;
    g->first[g->n + 1] = g->first[g->n];
    return g->n++;
}

/* Makes the vertex added last read another one. */
static void reads(vpps_typed_graph *g, uint32_t source) { g->sources[g->first[g->n]++] = source; }

static uint32_t batches_by(const vpps_typed_graph *g, const char *name, const vpps_automaton *a, uint32_t *steps) {
    uint32_t n;
    ck_assert(vpps_policy_choose(vpps_policy_find(name), g, a, steps, &n));
    return n;
}

/* ---------------------------------------------------------------- figure 1 */

enum { I, O, R };

/* Returns the figure's graph: seven I (four leaves, then a chain of three), an O for each, and an R of all O. */
static vpps_typed_graph figure_1(void) {
    vpps_typed_graph g = open_graph(15, 3);
    uint32_t inner[7];
    for (uint32_t i = 0; i < 4; i++) inner[i] = add_vertex(&g, I);
    for (uint32_t i = 4; i < 7; i++) {
        inner[i] = add_vertex(&g, I);
        reads(&g, i == 4 ? inner[0] : inner[i - 1]);
        reads(&g, inner[i - 3]);
    }
    uint32_t outputs[7];
    for (uint32_t i = 0; i < 7; i++) {
        outputs[i] = add_vertex(&g, O);
        reads(&g, inner[i]);
    }
    add_vertex(&g, R);
    for (uint32_t i = 0; i < 7; i++) reads(&g, outputs[i]);
    return g;
}

TEST_GROUP("policies", .seconds = 120);

TEST(as_in_figure_1) {
    AT_END(close_graph) vpps_typed_graph g = figure_1();
    uint32_t steps[15], bound;
    AT_END(vpps_automaton_free) vpps_automaton a;
    ck_assert(vpps_automaton_learn(&a, &g));
    ck_assert_uint_eq(batches_by(&g, "depth", NULL, steps), 9);
    ck_assert_uint_eq(batches_by(&g, "share", NULL, steps), 7);
    ck_assert_uint_eq(batches_by(&g, "ratio", NULL, steps), 6);
    ck_assert_uint_eq(batches_by(&g, "fsm", &a, steps), 6);
    ck_assert(vpps_batches_bound(&g, &bound));
    ck_assert_uint_eq(bound, 6);
    ck_assert_uint_eq(a.batches, 6);
}

/* ---------------------------------------------------------------- random graphs */

enum { MOST = 40 };

static vpps_typed_graph draw_graph(uint64_t *random) {
    const uint32_t n = 1 + vpps_random_below(random, MOST);
    vpps_typed_graph g = open_graph(MOST, 1 + vpps_random_below(random, 4));
    for (uint32_t v = 0; v < n; v++) {
        add_vertex(&g, vpps_random_below(random, g.n_types));
        const uint32_t n_sources = v ? vpps_random_below(random, 3) : 0;
        const uint32_t back = v < 8 ? v : 8;
        for (uint32_t i = 0; i < n_sources; i++) reads(&g, v - 1 - vpps_random_below(random, back));
    }
    return g;
}

/* Checks that every batch has one type and comes after what it reads. */
static void check_steps(const vpps_typed_graph *g, const uint32_t *steps, uint32_t n) {
    uint32_t type[MOST + 1], bound;
    memset(type, 0xff, sizeof type);
    for (uint32_t v = 0; v < g->n; v++) {
        ck_assert_uint_lt(steps[v], n);
        ck_assert(type[steps[v]] == UINT32_MAX || type[steps[v]] == g->types[v]);
        type[steps[v]] = g->types[v];
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) ck_assert_uint_lt(steps[g->sources[i]], steps[v]);
    }
    for (uint32_t k = 0; k < n; k++) ck_assert_uint_ne(type[k], UINT32_MAX);
    ck_assert(vpps_batches_bound(g, &bound));
    ck_assert_uint_ge(n, bound);
}

TEST(every_policy_orders_random_graphs) {
    uint64_t random = test_seed();
    uint32_t fewer = 0;
    for (uint32_t i = 0; i < test_scaled(300); i++) {
        AT_END(close_graph) vpps_typed_graph g = draw_graph(&random);
        AT_END(vpps_automaton_free) vpps_automaton a;
        uint32_t steps[MOST], n, ratio = 0, learned = 0;
        ck_assert(vpps_automaton_learn(&a, &g));
        for (const vpps_policy *p = vpps_policies; p->name; p++) {
            memset(steps, 0xff, sizeof steps);
            ck_assert(vpps_policy_choose(p, &g, &a, steps, &n));
            check_steps(&g, steps, n);
            if (!strcmp(p->name, "ratio")) ratio = n;
            if (p->learned) learned = n;
        }
        ck_assert_uint_eq(learned, a.batches);
        ck_assert_uint_le(learned, ratio);
        fewer += learned < ratio;
    }
    ck_assert_msg(fewer > 0 || test_scaled(300) < 300, "nothing was learned that is better than ratios");
}

/* before[v]: bits of the vertices that precede v, and v itself. */
static void find_before(const vpps_typed_graph *g, uint64_t *before) {
    for (uint32_t v = 0; v < g->n; v++) {
        before[v] = (uint64_t)1 << v;
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) before[v] |= before[g->sources[i]];
    }
}

/* Checks the frontiers of G, and of each type's own graph, by their definitions. */
static void check_ratios(vpps_walk *w, uint64_t done, const uint64_t *before) {
    const vpps_typed_graph *g = w->graph;
    for (uint32_t type = 0; type < g->n_types; type++) {
        uint32_t ready = 0, frontier = 0;
        uint64_t of_type = 0;
        for (uint32_t v = 0; v < g->n; v++)
            if (g->types[v] == type) of_type |= (uint64_t)1 << v;
        for (uint32_t v = 0; v < g->n; v++) {
            const uint64_t self = (uint64_t)1 << v, left = before[v] & ~done & ~self;
            if (!(of_type & self) || (done & self)) continue;
            ready += left == 0;
            frontier += (left & of_type) == 0;
        }
        ck_assert_uint_eq(w->ready[type], ready);
        if (ready) ck_assert_double_eq(vpps_walk_ratio(w, type), (double)ready / frontier);
    }
}

TEST(ratios_are_what_is_said) {
    uint64_t random = test_seed() + 1, before[MOST] = {0};
    for (uint32_t i = 0; i < test_scaled(500); i++) {
        AT_END(close_graph) vpps_typed_graph g = draw_graph(&random);
        AT_END(vpps_walk_close) vpps_walk w;
        uint32_t steps[MOST];
        uint64_t done = 0;
        find_before(&g, before);
        ck_assert(vpps_walk_open(&w, &g));
        memset(steps, 0xff, sizeof steps);
        const uint32_t first = vpps_random_below(&random, 5); /* number of the first batch that is asked about */
        while (w.n_left) {
            if (w.n_batches >= first) check_ratios(&w, done, before);
            uint32_t type = vpps_random_below(&random, g.n_types);
            while (!w.ready[type]) type = (type + 1) % g.n_types;
            vpps_walk_run(&w, type, steps);
            for (uint32_t v = 0; v < g.n; v++)
                if (steps[v] == w.n_batches - 1) done |= (uint64_t)1 << v;
        }
    }
}

/* ---------------------------------------------------------------- automata */

TEST(packed_and_unpacked) {
    uint64_t random = test_seed() + 2;
    for (uint32_t i = 0; i < test_scaled(50); i++) {
        AT_END(close_graph) vpps_typed_graph g = draw_graph(&random), other = draw_graph(&random);
        other.n_types = g.n_types;
        for (uint32_t v = 0; v < other.n; v++) other.types[v] %= g.n_types;
        AT_END(vpps_automaton_free) vpps_automaton a;
        vpps_automaton b;
        size_t bytes;
        uint32_t steps[2][MOST];
        ck_assert(vpps_automaton_learn(&a, &g));
        FREED void *packed = vpps_automaton_pack(&a, &bytes);
        ck_assert_ptr_nonnull(packed);
        ck_assert(vpps_automaton_unpack(&b, g.n_types, packed, bytes));
        /* also on another graph, not all of whose states it knows */
        const vpps_typed_graph *both[] = {&g, &other};
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t n = batches_by(both[k], "fsm", &a, steps[0]);
            check_steps(both[k], steps[0], n);
            ck_assert_uint_eq(batches_by(both[k], "fsm", &b, steps[1]), n);
            ck_assert_mem_eq(steps[0], steps[1], both[k]->n * sizeof(uint32_t));
        }
        vpps_automaton_free(&b);
        ck_assert(!vpps_automaton_unpack(&b, g.n_types + 1, packed, bytes));
        ck_assert(!vpps_automaton_unpack(&b, g.n_types, packed, bytes - 4));
        ck_assert(!vpps_automaton_unpack(&b, g.n_types, packed, bytes - 1));
        ck_assert(!vpps_automaton_unpack(&b, g.n_types, packed, 0));
        if (a.n_states) { /* a type without vertices */
            ((uint32_t *)packed)[8] = g.n_types;
            ck_assert(!vpps_automaton_unpack(&b, g.n_types, packed, bytes));
        }
    }
}

TEST(equal_graphs_give_equal_automata) {
    uint64_t random = test_seed() + 3;
    AT_END(close_graph) vpps_typed_graph g = draw_graph(&random);
    AT_END(vpps_automaton_free) vpps_automaton a, b;
    size_t bytes[2];
    ck_assert(vpps_automaton_learn(&a, &g) && vpps_automaton_learn(&b, &g));
    void *packed[] = {vpps_automaton_pack(&a, &bytes[0]), vpps_automaton_pack(&b, &bytes[1])};
    ck_assert_uint_eq(bytes[0], bytes[1]);
    ck_assert_mem_eq(packed[0], packed[1], bytes[0]);
    for (uint32_t i = 0; i < 2; i++) free(packed[i]);
}

/* ---------------------------------------------------------------- real data */

/* Checks numbers of batches by depth, share and ratio, and their bound. */
static void check_counts(const vpps_scope *scope, const uint32_t *expected) {
    static const char *const names[] = {"depth", "share", "ratio"};
    FREED uint32_t *steps = need(malloc((scope->graph.n + 1) * sizeof *steps));
    uint32_t bound;
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_msg(batches_by(&scope->graph, names[i], NULL, steps) == expected[i], "%s: %u instead of %u batches",
                      names[i], batches_by(&scope->graph, names[i], NULL, steps), expected[i]);
    ck_assert(vpps_batches_bound(&scope->graph, &bound));
    ck_assert_uint_eq(bound, expected[3]);
    AT_END(vpps_automaton_free) vpps_automaton a;
    ck_assert(vpps_automaton_learn(&a, &scope->graph));
    ck_assert_uint_lt(batches_by(&scope->graph, "fsm", &a, steps), expected[2]);
}

/* Schedules the network's batch on a handle, and checks the numbers of batches of its recurrence of several cells. */
static void check_batch(networks_batch *of, const uint32_t *expected) {
    vpps_options o = default_options();
    o.vps = 1;
    OWNED(vpps_handle) *h = new_handle(of->model, &o);
    const vpps_batch *b;
    TEST_OK(vpps_handle_batch(h, of->g, vpps_sum(of->g, (uint32_t)of->n, of->losses), &b));
    const vpps_batch_needs *needs = &b->schedule->needs;
    vpps_scope scope;
    AT_END(vpps_arena_free) vpps_arena arena = {0};
    uint32_t part = 0;
    while (part < needs->n_sccs && vpps_types_of_scc(needs, part) < 2) part++;
    ck_assert_uint_lt(part, needs->n_sccs);
    TEST_OK(vpps_scope_of_scc(needs, part, &arena, &scope));
    check_counts(&scope, expected);
}

static const struct {
    const char *network;
    uint32_t n, expected[4];
} of_trees[] = {
    {"tree-lstm-2type", 32, {32, 24, 24, 22}},
    {"tree-lstm-2type", 128, {43, 33, 33, 28}},
};

TEST_EACH(on_trees, 0, test_everyday("trees", 1, VPPS_COUNT(of_trees))) {
    const char *path = test_data("sst/train.txt");
    if (!path) TEST_SKIP("on_trees: no sst/train.txt (set VPPS_DATA to the folder of data sets)");
    OWNED(vpps_treebank) *trees = new_treebank();
    TEST_OK(vpps_treebank_read_file(trees, path));
    AT_END(networks_close) networks_batch of;
    networks_open(&of, of_trees[_i].network, vpps_vocab_size(vpps_treebank_vocab(trees)), 0, 5, 4);
    for (uint32_t i = 0; i < of_trees[_i].n; i++) {
        const vpps_tree tree = vpps_treebank_tree(trees, i);
        networks_add(&of, &(net_example){.tree = &tree});
    }
    check_batch(&of, of_trees[_i].expected);
}

static const struct {
    const char *network;
    uint32_t n, expected[4];
} of_lattices[] = {
    {"lattice-lstm", 32, {549, 300, 299, 238}},
    {"lattice-gru", 32, {289, 203, 201, 164}},
    {"lattice-lstm", 128, {633, 341, 344, 251}},
    {"lattice-gru", 128, {335, 238, 229, 190}},
};

static uint32_t next_number(FILE *f) {
    uint32_t n;
    ck_assert_int_eq(fscanf(f, "%u", &n), 1);
    return n;
}

/* Returns the next lattice of a file of ED-Batch's benchmark, valid until the next call: the number of nodes, their tags; for each node how many arcs
 * enter it, and of each arc the node that it leaves and its id. */
static vpps_lattice next_lattice(FILE *f) {
    enum { NODES = 256, ARCS = 8 * NODES };
    static uint32_t tags[NODES], first[NODES + 1];
    static vpps_lattice_arc arcs[ARCS];
    const uint32_t n = next_number(f);
    uint32_t n_arcs = 0;
    ck_assert_uint_le(n, NODES);
    for (uint32_t i = 0; i < n; i++) tags[i] = next_number(f);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = next_number(f); k > 0; k--) {
            const uint32_t from = next_number(f), id = next_number(f);
            ck_assert_uint_lt(n_arcs, ARCS);
            arcs[n_arcs++] = (vpps_lattice_arc){from, id, from + 1 == i};
        }
        first[i + 1] = n_arcs;
    }
    return (vpps_lattice){n, tags, first, arcs};
}

TEST_EACH(on_lattices, 0, test_everyday("lattices", 2, VPPS_COUNT(of_lattices))) {
    enum { WORDS = 10130, CHARACTERS = 2212, TAGS = 18 };
    const char *path = test_data("lattice_ids/train.txt");
    if (!path) TEST_SKIP("on_lattices: no lattice_ids/train.txt (set VPPS_DATA to the folder of data sets)");
    FILE *f = need(fopen(path, "r"));
    ck_assert_uint_ge(next_number(f), of_lattices[_i].n);
    const uint32_t target[] = {0, 1, 0};
    AT_END(networks_close) networks_batch of;
    networks_open(&of, of_lattices[_i].network, WORDS, CHARACTERS, TAGS, 4);
    for (uint32_t i = 0; i < of_lattices[_i].n; i++) {
        const vpps_lattice lattice = next_lattice(f);
        networks_add(&of, &(net_example){.lattice = &lattice, .target = {.n_words = 3, .words = target}});
    }
    fclose(f);
    check_batch(&of, of_lattices[_i].expected);
}

int main(void) {
    setenv("VPPS_CACHE_DIR", "/dev/null", 1);
    return test_main("policies");
}
