/* test_conditions.c - loops and cases made of vertices: they do, turn by turn, what the host would have decided, with every number of virtual
 * processors; gradients are those of the turns that ran; and the errors of recording and applying. */
#include "common/gpu_tests.h"
#include "common/training.h"

#include "graph/graph.h"

enum { LANES = 7, LIMIT = 12, MOST_HIDDEN = 300, WORDS = 6 };

/* ---------------------------------------------------------------- a loop
 *
 * h' = tanh(U h + x); goes on while v . h' + patience > 0. Each turn counts one, and looks a word up that it has decided. */

typedef struct network {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    uint32_t hidden;
    vpps_param U, v, E, W;
    vpps_cell cells[4];
} network;

enum { GOES_ON, COUNT, STATE, OUTPUTS };

typedef struct body {
    vpps_node goes_on, count, h;
} body;

static body turn_body(const network *n, vpps_graph *g, vpps_node count, vpps_node h, vpps_node x, vpps_node patience) {
    body b;
    b.h = vpps_tanh(g, vpps_add(g, vpps_matvec(g, n->U, h), x));
    b.goes_on = vpps_add(g, vpps_matvec(g, n->v, b.h), patience);
    b.count = vpps_add(g, count, vpps_ones(g, 1, 1));
    return b;
}

/* Kinds of a turn: with a condition; one that also decides which word it adds; one that sums a list; without a condition. */
typedef enum turn_kind { TURN, DECIDING, LISTING, PLAIN } turn_kind;

static void scatter(vpps_graph *g, turn_kind kind, vpps_node x, vpps_node before) {
    TEST_OK(kind == PLAIN ? vpps_scatter(g, x) : vpps_scatter_else(g, x, before));
}

static void record(network *n, turn_kind kind) {
    vpps_graph *g = begin_cell(n->model, "turn");
    const vpps_node goes_on = vpps_gather(g, 0, GOES_ON, 1, 1), count = vpps_gather(g, 0, COUNT, 1, 1);
    const vpps_node h = vpps_gather(g, 0, STATE, n->hidden, 1);
    vpps_node x = vpps_pull(g, n->hidden, 1);
    const vpps_node patience = vpps_pull(g, 1, 1);
    if (kind == LISTING) x = vpps_sum(g, 2, (vpps_node[]){x, vpps_pull_list(g, n->hidden, 1)});
    if (kind != PLAIN) TEST_OK(vpps_condition(g, goes_on));
    body b = turn_body(n, g, count, h, x, patience);
    if (kind == DECIDING) {
        const vpps_node word = vpps_slice(g, vpps_argmax(g, vpps_matvec(g, n->W, b.h)), 0, 1);
        b.h = vpps_add(g, b.h, vpps_lookup_at(g, n->E, word));
    }
    scatter(g, kind, b.goes_on, goes_on);
    scatter(g, kind, b.count, count);
    scatter(g, kind, b.h, h);
    n->cells[kind] = end_cell(g);
}

static void open_network(network *n, uint32_t hidden) {
    const vpps_init wide = {.kind = VPPS_INIT_UNIFORM, .a = -0.4f, .b = 0.4f};
    *n = (network){.hidden = hidden};
    TEST_OK(vpps_model_create(&n->model, test_seed()));
    TEST_OK(vpps_add_matrix(n->model, &n->U, "U", hidden, hidden, NULL));
    TEST_OK(vpps_add_matrix(n->model, &n->v, "v", 1, hidden, &wide));
    TEST_OK(vpps_add_lookup(n->model, &n->E, "E", WORDS, hidden, 1, &wide));
    TEST_OK(vpps_add_matrix(n->model, &n->W, "W", WORDS, hidden, NULL));
    for (turn_kind kind = TURN; kind <= PLAIN; kind++) record(n, kind);
    TEST_OK(vpps_graph_create(&n->g, n->model));
}

static void open_handle(network *n, const char *device, uint32_t vps, uint32_t groups, uint32_t waves) {
    vpps_options o = default_options();
    o.device = device;
    o.threads = 64;
    o.no_tuning = true;
    o.vps = vps;
    o.groups = groups;
    o.waves = waves;
    o.verify = true;
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1};
    TEST_OK(vpps_handle_create(&n->h, n->model, &o));
}

static void close_network(network *n) {
    vpps_handle_destroy(n->h);
    vpps_graph_destroy(n->g);
    vpps_model_destroy(n->model);
}

/* The initial values of lane i. */
typedef struct lane {
    vpps_node first[OUTPUTS], pulls[2];
} lane;

static lane make_lane(const network *n, uint32_t i) {
    uint64_t random = test_seed() + i;
    float x[MOST_HIDDEN];
    for (uint32_t k = 0; k < n->hidden; k++) x[k] = 2 * vpps_random_unit(&random) - 1;
    const float patience = 0.6f * vpps_random_unit(&random);
    lane l = {.pulls = {vpps_input(n->g, n->hidden, 1, x), vpps_input(n->g, 1, 1, &patience)}};
    l.first[GOES_ON] = vpps_ones(n->g, 1, 1);
    l.first[COUNT] = vpps_zeros(n->g, 1, 1);
    l.first[STATE] = vpps_zeros(n->g, n->hidden, 1);
    return l;
}

/* Returns how many turns lane i may take. */
static uint32_t limit_of(uint32_t i) { return LIMIT - i % 3; }

static vpps_application application_of(const network *n, turn_kind kind, const vpps_vertex *before, const lane *l) {
    return *VPPS_APPLICATION(.cell = n->cells[kind], CHILDREN(1, before), PULLS(2, l->pulls));
}

typedef struct result {
    float goes_on[LANES], count[LANES], h[LANES][MOST_HIDDEN];
} result;

static void fetch(network *n, vpps_node nodes[LANES][OUTPUTS], result *r) {
    float *outs[LANES * OUTPUTS];
    for (uint32_t i = 0; i < LANES; i++) {
        outs[i * OUTPUTS + GOES_ON] = &r->goes_on[i];
        outs[i * OUTPUTS + COUNT] = &r->count[i];
        outs[i * OUTPUTS + STATE] = r->h[i];
    }
    TEST_OK(vpps_forward(n->h, n->g, LANES * OUTPUTS, &nodes[0][0], outs));
}

/* Runs all lanes' loops, each with its own limit, in one forward pass. */
static void by_device(network *n, turn_kind kind, result *r) {
    vpps_node nodes[LANES][OUTPUTS];
    vpps_graph_clear(n->g);
    for (uint32_t i = 0; i < LANES; i++) {
        const lane l = make_lane(n, i);
        const vpps_node *members = &l.first[STATE];
        const vpps_vertex start = vpps_source(n->g, OUTPUTS, l.first);
        vpps_application a = application_of(n, kind, &start, &l);
        if (kind == LISTING) a.n_pull_lists = a.n_members = 1, a.pull_lists = &members;
        vpps_vertex turns[LIMIT];
        const vpps_vertex last = vpps_while(n->g, &a, limit_of(i), turns);
        TEST_OK(vpps_graph_status(n->g));
        ck_assert_uint_eq(last, turns[limit_of(i) - 1]);
        for (uint32_t k = 0; k < OUTPUTS; k++) nodes[i][k] = vpps_scattered(n->g, last, k);
    }
    fetch(n, nodes, r);
}

/* Computes the same; the host decides at every turn. */
static void by_host(network *n, result *r) {
    for (uint32_t i = 0; i < LANES; i++) {
        r->goes_on[i] = 1;
        r->count[i] = 0;
        memset(r->h[i], 0, sizeof r->h[i]);
    }
    for (uint32_t turn = 0; turn < LIMIT; turn++) {
        vpps_node nodes[LANES][OUTPUTS];
        result next;
        vpps_graph_clear(n->g);
        for (uint32_t i = 0; i < LANES; i++) {
            const lane l = make_lane(n, i);
            const vpps_node before[] = {vpps_input(n->g, 1, 1, &r->goes_on[i]), vpps_input(n->g, 1, 1, &r->count[i]),
                                        vpps_input(n->g, n->hidden, 1, r->h[i])};
            const vpps_vertex start = vpps_source(n->g, OUTPUTS, before);
            const vpps_application a = application_of(n, PLAIN, &start, &l);
            const vpps_vertex v = vpps_apply(n->g, &a);
            for (uint32_t k = 0; k < OUTPUTS; k++) nodes[i][k] = vpps_scattered(n->g, v, k);
        }
        fetch(n, nodes, &next);
        for (uint32_t i = 0; i < LANES; i++) {
            if (!(r->goes_on[i] > 0) || turn >= limit_of(i)) continue;
            r->goes_on[i] = next.goes_on[i];
            r->count[i] = next.count[i];
            memcpy(r->h[i], next.h[i], sizeof r->h[i]);
        }
    }
}

static const uint32_t sizes[] = {5, 33, 280, 16}; /* the third one's rows are shared out; the last is for a GPU */
enum { GPU = VPPS_COUNT(sizes) - 1 };

TEST_GROUP("conditions", .seconds = 60);

TEST_EACH(a_loop_is_what_the_host_would_have_done, 0, GPU) {
    AT_END(close_network) network n;
    result want, got;
    open_network(&n, sizes[_i]);
    open_handle(&n, "cpu", 1, 1, 1);
    by_host(&n, &want);
    by_device(&n, TURN, &got);
    uint32_t least = LIMIT, most = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        ck_assert_msg(got.count[i] == want.count[i], "lane %u: %g turns; expected %g", i, (double)got.count[i],
                      (double)want.count[i]);
        ck_assert_float_eq_tol(got.goes_on[i], want.goes_on[i], 1e-5f);
        for (uint32_t k = 0; k < n.hidden; k++) ck_assert_float_eq_tol(got.h[i][k], want.h[i][k], 1e-5f);
        least = vpps_min_u32(least, (uint32_t)got.count[i]);
        most = vpps_max_u32(most, (uint32_t)got.count[i]);
    }
    ck_assert_msg(least < most && least < LIMIT - 2, "%u to %u turns: nothing was decided", least, most);
}

TEST_EACH(every_machine_decides_alike, 0, GPU) {
    static const struct {
        uint32_t vps, groups, waves;
    } machines[] = {{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 2, 1}, {2, 1, 3}, {3, 3, 2}};
    for (turn_kind kind = TURN; kind <= LISTING; kind++) {
        result first, r;
        for (size_t m = 0; m < VPPS_COUNT(machines); m++) {
            AT_END(close_network) network n;
            open_network(&n, sizes[_i]);
            open_handle(&n, "cpu", machines[m].vps, machines[m].groups, machines[m].waves);
            memset(&r, 0, sizeof r);
            by_device(&n, kind, &r);
            if (!m) first = r;
            ck_assert_msg(!memcmp(&r, &first, sizeof r), "kind %d, %u VPs in %u groups: other results", kind,
                          machines[m].vps, machines[m].groups);
        }
    }
}

/* ---------------------------------------------------------------- gradients */

/* Makes a training step on the loops: as loops, or as their single turns. The last lane has an infinite state, and no turn. */
static void train(network *n, const float *turns) {
    vpps_node losses[LANES + 1];
    float infinite[MOST_HIDDEN];
    for (uint32_t k = 0; k < n->hidden; k++) infinite[k] = k % 2 ? INFINITY : -INFINITY;
    vpps_graph_clear(n->g);
    for (uint32_t i = 0; i <= LANES; i++) {
        lane l = make_lane(n, i);
        const bool none = i == LANES;
        if (none) l.first[GOES_ON] = vpps_zeros(n->g, 1, 1), l.first[STATE] = vpps_input(n->g, n->hidden, 1, infinite);
        vpps_vertex at = vpps_source(n->g, OUTPUTS, l.first);
        const vpps_application loop = application_of(n, TURN, &at, &l), turn = application_of(n, PLAIN, &at, &l);
        if (!turns) at = vpps_while(n->g, &loop, limit_of(i), NULL);
        for (uint32_t k = 0; turns && !none && (float)k < turns[i]; k++) at = vpps_apply(n->g, &turn);
        losses[i] = vpps_scattered(n->g, at, GOES_ON);
        if (!none) losses[i] = vpps_add(n->g, losses[i], vpps_dot(n->g, vpps_scattered(n->g, at, STATE), l.pulls[0]));
    }
    train_batch(n->h, n->g, vpps_average(n->g, LANES + 1, losses));
    TEST_OK(vpps_read_parameters(n->h));
}

/* Also on a GPU, which runs all turns, since no gradient comes from a turn that does not run. */
TEST_EACH(gradients_are_those_of_the_turns_that_were_taken, 0, GPU) {
    const char *device = _i == GPU ? test_gpu_device() : "cpu";
    const uint32_t vps = _i == GPU && !gpu_is_simulated() ? 0 : 2;
    AT_END(close_network) network loop, turns;
    result r;
    open_network(&loop, sizes[_i]);
    open_network(&turns, sizes[_i]);
    open_handle(&loop, device, vps, 0, 0);
    open_handle(&turns, device, vps, 0, 0);
    by_device(&loop, TURN, &r);
    train(&loop, NULL);
    train(&turns, r.count);
    const vpps_param params[] = {loop.U, loop.v};
    for (size_t p = 0; p < VPPS_COUNT(params); p++) {
        const float *a = vpps_param_values(loop.model, params[p]), *b = vpps_param_values(turns.model, params[p]);
        const uint32_t elems = p ? loop.hidden : loop.hidden * loop.hidden;
        for (uint32_t k = 0; k < elems; k++) ck_assert_float_eq_tol(a[k], b[k], 1e-5f);
    }
    vpps_graph_clear(loop.g);
    const vpps_node best = vpps_argmax(loop.g, make_lane(&loop, 0).pulls[0]);
    float pair[2], *to = pair;
    const vpps_status decides = vpps_forward(loop.h, loop.g, 1, &best, &to);
    if (_i == GPU) TEST_FAILS(decides, VPPS_DEVICE, "does not run argmax and lookup_at");
    if (_i != GPU) TEST_OK(decides);
}

/* ---------------------------------------------------------------- a case */

enum { BRANCHES = 3, SIZE = 4 };

/* Records the branches: branch k computes A_k x, a number times x. */
static void record_branches(vpps_model *model, vpps_param *A, vpps_cell *cells) {
    for (uint32_t k = 0; k < BRANCHES; k++) {
        char name[16];
        float values[SIZE * SIZE] = {0};
        const vpps_init init = {.kind = VPPS_INIT_VALUES, .values = values};
        for (uint32_t i = 0; i < SIZE; i++) values[i * SIZE + i] = 2.0f + (float)k;
        snprintf(name, sizeof name, "A%u", k);
        TEST_OK(vpps_add_matrix(model, &A[k], name, SIZE, SIZE, &init));
        vpps_graph *g = begin_cell(model, name);
        const vpps_node which = vpps_pull(g, 1, 1), x = vpps_pull(g, SIZE, 1);
        TEST_OK(vpps_condition_is(g, which, k));
        const vpps_node y = vpps_matvec(g, A[k], x);
        TEST_OK(vpps_scatter_else(g, y, VPPS_NO_NODE));
        TEST_OK(vpps_scatter_else(g, vpps_negate(g, y), VPPS_NO_NODE));
        TEST_OK(vpps_cell_end(g, &cells[k]));
    }
}

static vpps_vertex put_case(vpps_graph *g, const vpps_cell *cells, float which, const float *x) {
    const vpps_node pulls[] = {vpps_input(g, 1, 1, &which), vpps_input(g, SIZE, 1, x)};
    vpps_application branches[BRANCHES];
    for (uint32_t k = 0; k < BRANCHES; k++) branches[k] = *VPPS_APPLICATION(.cell = cells[k], PULLS(2, pulls));
    return vpps_case(g, BRANCHES, branches);
}

TEST_EACH(a_value_picks_the_branch, 0, 3) {
    static const float which[] = {0, 1, 2, 1.3f, 3, -1, NAN}, factors[] = {2, 3, 4, 3, 0, 0, 0},
                       x[SIZE] = {1, -2, 3, 4};
    vpps_param A[BRANCHES];
    vpps_cell cells[BRANCHES];
    vpps_options o = default_options();
    o.vps = 1 + (uint32_t)_i;
    o.verify = true;
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1};
    AT_END(training_end) training t = training_of(1);
    record_branches(t.model, A, cells);
    training_start(&t, &o);
    vpps_node nodes[2 * VPPS_COUNT(which)];
    float values[2 * VPPS_COUNT(which)][SIZE], *outs[2 * VPPS_COUNT(which)];
    for (size_t i = 0; i < VPPS_COUNT(nodes); i++) {
        nodes[i] = vpps_scattered(t.g, put_case(t.g, cells, which[i / 2], x), i % 2);
        outs[i] = values[i];
    }
    TEST_OK(vpps_forward(t.h, t.g, VPPS_COUNT(nodes), nodes, outs));
    for (size_t i = 0; i < VPPS_COUNT(nodes); i++)
        for (uint32_t k = 0; k < SIZE; k++)
            ck_assert_float_eq(values[i][k], (i % 2 ? -1.0f : 1.0f) * factors[i / 2] * x[k]);

    vpps_graph_clear(t.g); /* only the chosen branch trains */
    const vpps_node y = vpps_scattered(t.g, put_case(t.g, cells, 1, x), 0);
    TEST_OK(vpps_fb(t.h, t.g, vpps_sum_elements(t.g, y), NULL));
    TEST_OK(vpps_read_parameters(t.h));
    for (uint32_t k = 0; k < BRANCHES; k++) {
        const float *a = vpps_param_values(t.model, A[k]);
        for (uint32_t i = 0; i < SIZE * SIZE; i++) {
            const float before = i % SIZE == i / SIZE ? 2.0f + (float)k : 0;
            ck_assert_float_eq_tol(a[i], k == 1 ? before - x[i % SIZE] : before, 1e-6f);
        }
    }
}

/* ---------------------------------------------------------------- errors */

TEST(recording_fails) {
    AT_END(close_network) network n;
    vpps_graph *g;
    vpps_node x;
    vpps_cell cell;
    open_network(&n, 5);
    TEST_FAILS(vpps_condition(n.g, 0), VPPS_STATE, "no cell is being recorded");
#define FAILS_IN_CELL(status, text, ...)                                                                               \
    g = begin_cell(n.model, "cell");                                                                                   \
    TEST_FAILS((__VA_ARGS__), VPPS_##status, text);                                                                    \
    vpps_graph_destroy(g)
    FAILS_IN_CELL(SHAPE, "expected a scalar that it gathers or pulls", vpps_condition(g, vpps_pull(g, 2, 1)));
    FAILS_IN_CELL(SHAPE, "expected a scalar that it gathers or pulls", vpps_condition(g, vpps_ones(g, 1, 1)));
    FAILS_IN_CELL(STATE, "expected one condition, before all outputs", vpps_scatter(g, vpps_pull(g, 2, 1)),
                  vpps_condition(g, vpps_pull(g, 1, 1)));
    FAILS_IN_CELL(STATE, "has no condition", vpps_scatter_else(g, vpps_pull(g, 1, 1), VPPS_NO_NODE));
    FAILS_IN_CELL(STATE, "expected vpps_scatter_else", x = vpps_pull(g, 1, 1), vpps_condition(g, x), vpps_push(g, x));
    FAILS_IN_CELL(STATE, "expected vpps_scatter_else", x = vpps_pull(g, 1, 1), vpps_condition(g, x),
                  vpps_scatter(g, x));
    FAILS_IN_CELL(ARGUMENT, "less than 2^22", vpps_condition_is(g, vpps_pull(g, 1, 1), 1u << 22));
    g = begin_cell(n.model, "otherwise");
    x = vpps_pull(g, 1, 1);
    TEST_OK(vpps_condition(g, x));
    TEST_FAILS(vpps_scatter_else(g, x, vpps_negate(g, x)), VPPS_SHAPE, "gathers or pulls otherwise");
    TEST_FAILS(vpps_cell_end(g, &cell), VPPS_SHAPE, "otherwise");
}

TEST(applying_fails) {
    AT_END(close_network) network n;
    open_network(&n, 5);
    lane l = make_lane(&n, 0);
    vpps_vertex start = vpps_source(n.g, OUTPUTS, l.first);
    vpps_application a = application_of(&n, PLAIN, &start, &l);
    ck_assert_uint_eq(vpps_while(n.g, &a, 3, NULL), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(n.g), VPPS_ARGUMENT, "expected a cell of the model with a condition");
    vpps_graph_clear(n.g);
    l = make_lane(&n, 0);
    start = vpps_source(n.g, OUTPUTS, l.first);
    a = application_of(&n, TURN, &start, &l);
    ck_assert_uint_eq(vpps_while(n.g, &a, 0, NULL), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(n.g), VPPS_ARGUMENT, "a limit of 1 or more");
    vpps_graph_clear(n.g);
    ck_assert_uint_eq(vpps_case(n.g, 0, NULL), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(n.g), VPPS_ARGUMENT, "no branches");
    vpps_graph_clear(n.g);
    ck_assert_uint_eq(vpps_case(n.g, 1, &a), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(n.g), VPPS_ARGUMENT, "expected zeros");
}

TEST_GROUP(GPU_GROUP);
TEST_AGAIN(gradients_are_those_of_the_turns_that_were_taken, GPU, GPU + 1);

int main(void) {
    if (gpu_is_simulated()) gpu_ask_compiler();
    return test_main("conditions");
}
