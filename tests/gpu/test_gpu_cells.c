/* test_gpu_cells.c - compares cells on a GPU with the double-precision reference: values, and the gradients of parameters and nodes. Software SIMT
 * watches its kernels here (simt.h). */
#include "common/meaning.h"
#include "gpu_zoo.h"

/* ---------------------------------------------------------------- matrices that are read at other elements */

typedef struct shape {
    uint32_t rows, cols, vertices;
} shape;

/* A cell's values: its parameters W and b, its child's vector x, and a computed state. */
typedef struct parts {
    vpps_graph *g;
    vpps_param W, b;
    vpps_node x, state;
    const shape *s;
} parts;

static vpps_node broadcast(const parts *p, vpps_node x) { return vpps_broadcast(p->g, x, p->s->rows, p->s->cols); }
static vpps_node affine(const parts *p) { return vpps_affine1(p->g, p->b, p->W, p->x); }
static vpps_node outer(const parts *p, vpps_node x) { return vpps_matmul(p->g, affine(p), vpps_transpose(p->g, x)); }

static vpps_node broadcast_affine(const parts *p) { return broadcast(p, affine(p)); }
static vpps_node turned_affine(const parts *p) { return vpps_transpose(p->g, broadcast_affine(p)); }
static vpps_node broadcast_vector(const parts *p) { return broadcast(p, vpps_parameter(p->g, p->b)); }
static vpps_node times_ones(const parts *p) {
    return vpps_matmul(p->g, vpps_parameter(p->g, p->W), vpps_constant(p->g, p->s->rows, p->s->cols, 1));
}
static vpps_node outer_product(const parts *p) { return outer(p, p->x); }
static vpps_node outer_state(const parts *p) { return outer(p, p->state); }
static vpps_node sum_of_turned(const parts *p) {
    const vpps_node y = vpps_mul(p->g, vpps_parameter(p->g, p->W), vpps_broadcast(p->g, p->x, p->s->rows, p->s->rows));
    return vpps_tanh(p->g, vpps_add(p->g, vpps_transpose(p->g, vpps_tanh(p->g, y)), y));
}
static vpps_node gram(const parts *p) {
    const vpps_node y = vpps_add(p->g, outer_product(p), vpps_parameter(p->g, p->W));
    return vpps_matmul(p->g, vpps_transpose(p->g, y), y);
}
static vpps_node reshaped(const parts *p) {
    const vpps_node y = vpps_tanh(p->g, broadcast_affine(p));
    return vpps_mul(p->g, vpps_reshape(p->g, vpps_transpose(p->g, y), p->s->rows, p->s->cols), y);
}
static vpps_node (*const makes[])(const parts *) = {broadcast_affine, turned_affine, broadcast_vector,
                                                    times_ones,       outer_product, outer_state,
                                                    sum_of_turned,    gram,          reshaped};

/* Pushes the transpose of a matrix that contains the state: the matrix is kept until the states of all vertices are computed, and the transpose may
 * take its place. */
static vpps_node turn(parts *p) {
    const vpps_node y = vpps_broadcast(p->g, vpps_transpose(p->g, p->x), p->s->cols, p->s->rows);
    p->state = vpps_transpose(p->g, vpps_slice(p->g, y, 0, 1));
    return vpps_transpose(p->g, y);
}

/* Records cell number `which`, with the function of that number in `makes`; the last cell has `turn`. */
static vpps_cell record(vpps_model *model, uint32_t which, const shape *s) {
    const vpps_init init = {.kind = VPPS_INIT_UNIFORM, .a = -0.5f, .b = 0.5f};
    parts p = {.s = s};
    char name[16];
    snprintf(name, sizeof name, "W%u", which);
    TEST_OK(vpps_add_matrix(model, &p.W, name, s->rows, s->rows, &init));
    snprintf(name, sizeof name, "b%u", which);
    TEST_OK(vpps_add_vector(model, &p.b, name, s->rows, &init));
    snprintf(name, sizeof name, "cell%u", which);
    p.g = begin_cell(model, name);
    p.x = vpps_gather(p.g, 0, 0, s->rows, 1);
    p.state = vpps_tanh(p.g, affine(&p));
    const vpps_node made = which < VPPS_COUNT(makes) ? makes[which](&p) : turn(&p);
    TEST_OK(vpps_scatter(p.g, p.state));
    TEST_OK(vpps_push(p.g, made));
    return end_cell(p.g);
}

static vpps_node draw(vpps_graph *g, uint32_t rows, uint32_t cols, uint64_t *random) {
    FREED float *data = need(calloc((size_t)rows * cols, sizeof *data));
    for (uint32_t k = 0; k < rows * cols; k++) data[k] = 2 * vpps_random_unit(random) - 1;
    return vpps_input(g, rows, cols, data);
}

/* Builds a chain of vertices of each cell; the loss depends on all that they push. */
static vpps_node build_chains(training *t, const shape *s) {
    enum { CELLS = VPPS_COUNT(makes) + 1, MOST = 32 };
    vpps_cell cells[CELLS];
    vpps_node terms[CELLS * MOST];
    uint32_t n = 0;
    uint64_t random = 1;
    for (uint32_t which = 0; which < CELLS; which++) cells[which] = record(t->model, which, s);
    for (uint32_t which = 0; which < CELLS; which++) {
        const vpps_node begin = draw(t->g, s->rows, 1, &random);
        vpps_vertex at = vpps_source(t->g, 1, &begin);
        for (uint32_t i = 0; i < s->vertices; i++) {
            uint32_t rows, cols;
            at = APPLY(t->g, cells[which], CHILDREN(1, &at));
            const vpps_node made = vpps_pushed(t->g, at, 0);
            TEST_OK(vpps_node_shape(t->g, made, &rows, &cols));
            terms[n++] = vpps_dot(t->g, made, draw(t->g, rows, cols, &random));
        }
    }
    return vpps_sum(t->g, n, terms);
}

static const shape shapes[] = {{3, 3, 3},   {2, 5, 2}, {12, 12, 29}, {11, 11, 32},
                               {33, 33, 2}, {7, 1, 3}, {1, 4, 2},    {2, 2, 5}};

TEST_GROUP("matrices", .seconds = 300);

GPU_EACH(other_elements_are_read_in_time, 1, VPPS_COUNT(shapes)) {
    AT_END(training_end) training t = training_of(7);
    const vpps_node loss = build_chains(&t, &shapes[_i]);
    expect_agreement_of(&t, loss, VPPS_PRECISION_FP32, &zoo_layouts[0],
                        EPISODE_FORWARD | EPISODE_PARTS | EPISODE_REQUEST);
}

/* ---------------------------------------------------------------- every operation, over lists and not */

/* How a cell contains an operation: on the vertex's values; on members, or with a list among its arguments; on a whole list. */
enum { PLAIN = 1, LISTED = 2, WHOLE_LIST = 4 };

static int ways_of(const vpps_cell_data *c, uint32_t op) {
    int ways = 0;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        if (c->signatures[c->nodes[i].signature].op != op) continue;
        bool listed = c->axis[i];
        for (uint32_t k = 0; k < c->nodes[i].n_args; k++) {
            const uint32_t a = c->args[c->nodes[i].args + k];
            listed |= a & VPPS_CELL_INPUT ? c->inputs[a & ~VPPS_CELL_INPUT].axis : c->axis[a];
        }
        ways |= c->over_list[i] ? WHOLE_LIST : listed ? LISTED : PLAIN;
    }
    return ways;
}

/* Returns in which ways the operation must occur. */
static int wanted_ways(uint32_t op) {
    const vpps_op_row *o = &vpps_ops[op];
    const bool whole = meaning_calls[op].list || op == VPPS_OP_WEIGHTED_SUM || op == VPPS_OP_CONCAT;
    if (o->op_class == VPPS_CLASS_DECIDED || op == VPPS_OP_INPUT || op == VPPS_OP_CONSTANT) return 0; /* no gradient */
    return PLAIN | (o->max_args && op != VPPS_OP_WEIGHTED_SUM ? LISTED : 0) | (whole ? WHOLE_LIST : 0);
}

static rg_step draw_step(uint8_t what, uint64_t *random) {
    rg_step s = {.what = what, .rows = (uint8_t)vpps_random_below(random, RG_SIZES)};
    s.cols = (uint8_t)vpps_random_below(random, RG_SIZES * 4);
    for (uint32_t k = 0; k < VPPS_COUNT(s.pick); k++) s.pick[k] = (uint32_t)vpps_random(random);
    return s;
}

/* Adds drawn steps to a case's last cell until the cell has the operation in all ways that it must. */
static void add_operation(rg_case *c, uint32_t op, uint64_t *random) {
    enum { EACH = 3, TRIES = 2000 };
    rg_cell *cell = &c->cells[c->n_cells - 1];
    const int wanted = wanted_ways(op);
    int ways = 0;
    cell->n_steps += EACH;
    for (uint32_t i = 0; i < TRIES && (ways & wanted) != wanted; i++) {
        for (uint32_t k = cell->n_steps - EACH; k < cell->n_steps; k++)
            cell->steps[k] = draw_step((uint8_t)(k % EACH || !(wanted & WHOLE_LIST) ? op : RG_ATTEND), random);
        AT_END(rg_destroy) rg_built built;
        TEST_OK(rg_build(&built, c, NULL));
        ways = ways_of(built.model->cells[c->n_cells - 1], op);
    }
    ck_assert_msg((ways & wanted) == wanted, "no cell has %s in all ways: %d of %d", vpps_ops[op].name, ways, wanted);
}

/* Makes a case whose vertices, some in a chain, gather a vector and pull two lists. */
static rg_case case_of_cells(uint64_t seed) {
    return (rg_case){.seed = seed, .sizes = {3, 4, 3, 4}, .columns = 3, .batches = 1, .dense = true};
}
static void add_cell(rg_case *c) {
    c->cells[c->n_cells++] = (rg_cell){.n_children = 1, .variable = true, .only_pulled = true, .n_pull_lists = 2};
}
static void add_vertices(rg_case *c, uint32_t n, uint64_t *random) {
    for (c->n_steps = 0; c->n_steps < n; c->n_steps++) {
        c->steps[c->n_steps] = draw_step(RG_APPLY, random);
        c->steps[c->n_steps].pick[0] = c->n_steps; /* applies each cell in turn */
    }
}

enum { OPS_OF_CELL = RG_CELL_STEPS / 3, OPS_OF_CASE = OPS_OF_CELL * RG_DRAWN_CELLS };

TEST_GROUP("operations", .seconds = 300);

TEST_EACH(operations_in_cells_agree, 0, (VPPS_OP_COUNT + OPS_OF_CASE - 1) / OPS_OF_CASE) {
    rg_case c = case_of_cells((uint64_t)_i);
    uint64_t random = (uint64_t)_i;
    uint32_t n = 0;
    add_vertices(&c, 2 * RG_DRAWN_CELLS, &random);
    for (uint32_t op = (uint32_t)_i; op < VPPS_OP_COUNT; op += (VPPS_OP_COUNT + OPS_OF_CASE - 1) / OPS_OF_CASE) {
        if (!wanted_ways(op)) continue;
        if (n++ % OPS_OF_CELL == 0) add_cell(&c);
        add_operation(&c, op, &random);
    }
    const vpps_options o = gpu_options(&zoo_layouts[_i % ZOO_LAYOUTS], VPPS_SGD);
    ck_assert(expect_agreement_on(&c, &o, &zoo_layouts[_i % ZOO_LAYOUTS], 0));
}

/* ---------------------------------------------------------------- random cells */

/* Draws at least so many cells with small matrices, mostly square ones; or with long vectors, whose rows are shared out. */
static rg_case draw_cells(uint64_t number, uint32_t n_cells) {
    static const uint8_t matrices[] = {VPPS_OP_MATMUL,    VPPS_OP_MATMUL,  VPPS_OP_MATMUL,
                                       VPPS_OP_TRANSPOSE, VPPS_OP_RESHAPE, VPPS_OP_SELECT_ROWS};
    static const uint32_t sizes[] = {1, 2, 2, 3, 3, 4, 5, 7, 11, 12, 33};
    uint64_t random = vpps_mix64(test_seed() * 1000003 + number);
    rg_case drawn, c = case_of_cells(number);
    rg_draw(&drawn, vpps_random(&random), RG_STEPS / 2);
    const bool vectors = number % 4 == 3;
    for (uint32_t i = 0; i < RG_SIZES; i++)
        c.sizes[i] = vectors && i < 2 ? 65 + 8 * i : sizes[vpps_random_below(&random, (uint32_t)VPPS_COUNT(sizes))];
    c.columns = vectors ? 1 : c.sizes[0];
    c.dense = !vectors;
    c.n_cells = vpps_max_u32(drawn.n_cells, n_cells);
    for (uint32_t i = 0; i < c.n_cells; i++) {
        rg_cell *cell = &c.cells[i];
        if (i && i % RG_DRAWN_CELLS == 0) rg_draw(&drawn, vpps_random(&random), RG_STEPS / 2);
        const bool is_drawn = i % RG_DRAWN_CELLS < drawn.n_cells;
        *cell = is_drawn ? drawn.cells[i % RG_DRAWN_CELLS] : (rg_cell){.n_children = 1, .n_steps = RG_CELL_STEPS};
        for (uint32_t k = 0; k < cell->n_steps; k++) {
            const uint32_t way = vpps_random_below(&random, 3);
            if (!is_drawn) cell->steps[k] = draw_step((uint8_t)vpps_random_below(&random, VPPS_OP_COUNT), &random);
            if (!way && !vectors) cell->steps[k].what = matrices[vpps_random_below(&random, VPPS_COUNT(matrices))];
        }
    }
    add_vertices(&c, (n_cells > 1 ? n_cells : 0) + 2 + vpps_random_below(&random, 6), &random);
    return c;
}

/* Returns a layout such that each kind of case meets each layout. */
static const gpu_layout *layout_of(uint32_t number) { return &zoo_layouts[(number + number / 4) % ZOO_LAYOUTS]; }

/* Checks that a batch fails only at the compiler, which refuses everything here. */
static void expect_refused(vpps_status status, uint32_t number, const char *call) {
    ck_assert_msg(status == VPPS_DEVICE && strstr(vpps_error_message(), "software SIMT: false"), "draw %u: %s: %s",
                  number, call, vpps_error_message());
}

/* Verifies a case's scripts for inference, for training, and with gradients of all nodes, and generates their kernels. */
static void prove(const rg_case *c, const vpps_options *o, uint32_t number) {
    AT_END(rg_destroy) rg_built built;
    TEST_OK(rg_build(&built, c, NULL));
    vpps_graph *g = built.g[0];
    float unread;
    FREED vpps_node *nodes = need(calloc(4 * (size_t)g->size, sizeof *nodes));
    FREED float **outs = need(calloc(4 * (size_t)g->size, sizeof *outs));
    const uint32_t n = rg_named_nodes(g, nodes);
    for (uint32_t i = 0; i < n; i++) outs[i] = &unread;
    const vpps_request request = {.size = sizeof request,
                                  .n_values = n,
                                  .values = nodes,
                                  .value_outs = outs,
                                  .n_gradients = n,
                                  .gradients = nodes,
                                  .gradient_outs = outs};
    OWNED(vpps_handle) *h = new_handle(built.model, o);
    expect_refused(vpps_forward(h, g, n, nodes, outs), number, "vpps_forward");
    expect_refused(vpps_fb(h, g, built.loss[0], NULL), number, "vpps_fb");
    expect_refused(vpps_backward(h, g, built.loss[0], &request), number, "vpps_backward");
}

TEST_GROUP("proofs", .seconds = 300);

GPU_EACH(random_cells_are_proved, 1, 10) {
    enum { CASES = 100 };
    if (!gpu_is_simulated()) TEST_SKIP("a GPU's compiler refuses nothing here");
    setenv("VPPS_CXX", "false", 1);
    for (uint32_t i = (uint32_t)_i * CASES; i < ((uint32_t)_i + 1) * CASES; i++) {
        const rg_case c = draw_cells(i, 1);
        const vpps_options o = gpu_options(layout_of(i), VPPS_SGD);
        prove(&c, &o, i);
    }
}

/* Number EVERYDAY is for make test: two groups share a cell's vertices, and a gradient has several tasks. make check-kernels has chunks of kernels
 * with RG_CELLS cells each, since compiling takes the time: more than 1,000 cells; VPPS_TEST_SCALE=full has ten times as many. */
enum { EVERYDAY = 34, CHUNK = 14, CHUNKS = 6, ALL_CHUNKS = 60 };

/* Returns whether chunks run; they do not check mutants, which all other tests do. */
static bool has_chunks(void) { return test_full() || test_kernels("networks"); }
static int end_of_chunks(void) {
    if (!has_chunks()) TEST_LEFT_OUT("%d random cells: make check-kernels has them", CHUNK * CHUNKS * RG_CELLS);
    return test_full() ? 1 + ALL_CHUNKS : has_chunks() ? 1 + CHUNKS : 1;
}

TEST_GROUP("random", .seconds = 900);

TEST_EACH(random_cells_agree, has_chunks(), end_of_chunks()) {
    const uint32_t first = _i ? ((uint32_t)_i - 1) * CHUNK : EVERYDAY, n = _i ? CHUNK : 1;
    uint32_t n_usable = 0;
    for (uint32_t i = first; i < first + n; i++) {
        const rg_case c = draw_cells(i, _i ? RG_CELLS : 1);
        char seed[16];
        snprintf(seed, sizeof seed, "%u", i);
        setenv("VPPS_SIMT_SEED", seed, 1);
        const vpps_options o = gpu_options(layout_of(i), VPPS_SGD);
        n_usable +=
            expect_agreement_on(&c, &o, layout_of(i), i % 2 ? EPISODE_FORWARD : EPISODE_PARTS | EPISODE_REQUEST);
    }
    ck_assert_msg(n_usable * 10 >= n * 9, "%u of %u cases have numbers in range", n_usable, n);
}

/* ---------------------------------------------------------------- lists */

TEST_GROUP("lists", .seconds = 120);

/* Returns the device, and for i > 0 the CPU to compare with. */
static const char *device(int i) { return i ? "cpu" : test_gpu_device(); }

/* The extremes of a list are NaN if a member is; below a stacked list are zeros, not the next vertex's members. */
TEST_EACH(members_are_told_apart, 0, 2) {
    enum { VERTICES = 4, MOST = 3, STACK = 4, OUTS = 3 };
    static const float members[VERTICES][MOST] = {{1, NAN, 3}, {NAN, -1}, {2, 5, -7}, {4, NAN}};
    static const uint32_t n_members[VERTICES] = {3, 2, 3, 2};
    vpps_options o = gpu_options(&zoo_layouts[0], VPPS_SGD);
    o.device = device(_i);
    AT_END(training_end) training t = training_of(1);
    vpps_graph *r = begin_cell(t.model, "list");
    const vpps_node list = vpps_pull_list(r, 1, 1);
    TEST_OK(vpps_push(r, vpps_max_of(r, 1, &list)));
    TEST_OK(vpps_push(r, vpps_min_of(r, 1, &list)));
    TEST_OK(vpps_push(r, vpps_concat_list(r, list, STACK)));
    const vpps_cell cell = end_cell(r);
    vpps_node nodes[VERTICES * OUTS];
    float got[VERTICES][OUTS][STACK], *outs[VERTICES * OUTS];
    for (uint32_t v = 0; v < VERTICES; v++) {
        vpps_node inputs[MOST];
        const vpps_node *lists[] = {inputs};
        for (uint32_t m = 0; m < n_members[v]; m++) inputs[m] = vpps_input(t.g, 1, 1, &members[v][m]);
        const vpps_vertex at = APPLY(t.g, cell, .n_pull_lists = 1, .n_members = n_members[v], .pull_lists = lists);
        for (uint32_t k = 0; k < OUTS; k++)
            nodes[v * OUTS + k] = vpps_pushed(t.g, at, k), outs[v * OUTS + k] = got[v][k];
    }
    training_start(&t, &o);
    TEST_OK(vpps_forward(t.h, t.g, VERTICES * OUTS, nodes, outs));
    for (uint32_t v = 0; v < VERTICES; v++) {
        ck_assert(v == 2 ? got[v][0][0] == 5 && got[v][1][0] == -7 : isnan(got[v][0][0]) && isnan(got[v][1][0]));
        for (uint32_t i = 0; i < STACK; i++) {
            const float want = i < n_members[v] ? members[v][i] : 0;
            ck_assert_msg(isnan(want) ? isnan(got[v][2][i]) : got[v][2][i] == want, "%s: element %u at vertex %u is %g",
                          o.device, i, v, (double)got[v][2][i]);
        }
    }
}

/* A product with more members than shared memory holds. */
TEST(long_lists_agree) {
    enum { N = 70, MEMBERS = 200, VERTICES = 2 };
    AT_END(training_end) training t = training_of(1);
    const vpps_param W = add_matrix(t.model, "W", N, N), E = add_lookup(t.model, "E", MEMBERS, N, 1);
    vpps_graph *r = begin_cell(t.model, "list");
    const vpps_node made = vpps_tanh(r, vpps_affine1(r, VPPS_NO_PARAM, W, vpps_pull_list(r, N, 1)));
    TEST_OK(vpps_push(r, vpps_sum_elements(r, vpps_average(r, 1, &made))));
    const vpps_cell cell = end_cell(r);
    vpps_node inputs[MEMBERS], terms[VERTICES];
    const vpps_node *lists[] = {inputs};
    for (uint32_t v = 0; v < VERTICES; v++) {
        for (uint32_t m = 0; m < MEMBERS - v; m++) inputs[m] = vpps_lookup(t.g, E, m);
        const vpps_vertex at = APPLY(t.g, cell, .n_pull_lists = 1, .n_members = MEMBERS - v, .pull_lists = lists);
        terms[v] = vpps_pushed(t.g, at, 0);
    }
    expect_agreement_of(&t, vpps_sum(t.g, VERTICES, terms), VPPS_PRECISION_FP32, &zoo_layouts[0], 0);
}

/* Attention over lists of which only some, neither the first nor all of a tile, are long: their members' values lie in memory that the host reserves. */
GPU_EACH(uneven_lists_have_room, 1, 1) {
    enum { SIZE = 24, VERTICES = 21, LONG = 600 };
    const gpu_layout layout = {.sms = 1, .threads = 64, .rpw = 1, .groups = 1};
    vpps_node losses[VERTICES], members[LONG];
    uint64_t random = 1;
    AT_END(training_end) training t = training_of(7);
    vpps_graph *r = begin_cell(t.model, "attention");
    const vpps_node query = vpps_pull(r, SIZE, 1), said = vpps_tanh(r, vpps_pull_list(r, SIZE, 1));
    const vpps_node weights = vpps_softmax_list(r, vpps_dot(r, said, query));
    TEST_OK(vpps_push(r, vpps_sum_elements(r, vpps_weighted_sum_list(r, weights, said))));
    const vpps_cell cell = end_cell(r);
    for (uint32_t i = 0; i < VERTICES; i++) {
        const uint32_t n = i == 5 || i == 10 ? LONG : i % 3;
        const vpps_node pulled = draw(t.g, SIZE, 1, &random), *const list[] = {members};
        for (uint32_t k = 0; k < n; k++) members[k] = draw(t.g, SIZE, 1, &random);
        losses[i] = vpps_pushed(
            t.g, APPLY(t.g, cell, PULLS(1, &pulled), .n_pull_lists = 1, .pull_lists = list, .n_members = n), 0);
    }
    expect_agreement_of(&t, vpps_sum(t.g, VERTICES, losses), VPPS_PRECISION_FP32, &layout,
                        EPISODE_FORWARD | EPISODE_REQUEST | EPISODE_PARTS);
}

/* Gradients of list members that are stored as two factors: term by term, and, if vertices read the same list, in runs. The members are two outputs
 * of a vertex, which sums both gradients, or nodes outside of cells. */
TEST_EACH(factors_agree, 0, 4) {
    enum { N = 20, MEMBERS = 9, VERTICES = 5 };
    AT_END(training_end) training t = training_of(1);
    const vpps_param E = add_lookup(t.model, "E", MEMBERS, 2 * N, 1), Q = add_lookup(t.model, "Q", VERTICES, N, 1);
    vpps_graph *r = begin_cell(t.model, "member");
    const vpps_node both = vpps_tanh(r, vpps_pull(r, 2 * N, 1));
    for (uint32_t k = 0; k < 2; k++) TEST_OK(vpps_push(r, vpps_slice(r, both, k * N, N)));
    const vpps_cell member = end_cell(r);
    r = begin_cell(t.model, "list");
    const vpps_node query = vpps_tanh(r, vpps_pull(r, N, 1)), keys = vpps_pull_list(r, N, 1);
    const vpps_node weights = vpps_softmax_list(r, vpps_dot(r, keys, query));
    const vpps_node sum = vpps_weighted_sum_list(r, weights, vpps_pull_list(r, N, 1));
    TEST_OK(vpps_push(r, vpps_sum_elements(r, vpps_tanh(r, sum))));
    const vpps_cell cell = end_cell(r);
    vpps_node inputs[2][MEMBERS], terms[VERTICES];
    const vpps_node *lists[] = {inputs[0], inputs[1]};
    for (uint32_t m = 0; m < MEMBERS; m++) {
        const vpps_node row = vpps_lookup(t.g, E, m);
        const vpps_vertex at = APPLY(t.g, member, PULLS(1, &row));
        for (uint32_t k = 0; k < 2; k++)
            inputs[k][m] = _i < 2 ? vpps_pushed(t.g, at, k) : vpps_tanh(t.g, vpps_slice(t.g, row, k * N, N));
    }
    for (uint32_t v = 0; v < VERTICES; v++) {
        const uint32_t n = _i % 2 ? MEMBERS : MEMBERS - v;
        const vpps_node pulled = vpps_tanh(t.g, vpps_lookup(t.g, Q, v));
        terms[v] = vpps_pushed(
            t.g, APPLY(t.g, cell, PULLS(1, &pulled), .n_pull_lists = 2, .pull_lists = lists, .n_members = n), 0);
    }
    expect_agreement_of(&t, vpps_sum(t.g, VERTICES, terms), VPPS_PRECISION_FP32, &zoo_layouts[_i], 0);
}

/* ---------------------------------------------------------------- matrices */

TEST_GROUP("shared", .seconds = 120);

/* A matrix in shared memory whose operands share one buffer, with more vertices than the buffer holds. */
TEST(one_buffer_serves_all_vertices) {
    enum { ROWS = 32, COLUMNS = 2048, VERTICES = 11 };
    static const gpu_layout layout = {2, 64, 1, 1};
    AT_END(training_end) training t = training_of(1);
    const vpps_param W = add_matrix(t.model, "W", ROWS, COLUMNS);
    vpps_graph *r = begin_cell(t.model, "wide");
    TEST_OK(
        vpps_push(r, vpps_sum_elements(r, vpps_tanh(r, vpps_affine1(r, VPPS_NO_PARAM, W, vpps_pull(r, COLUMNS, 1))))));
    const vpps_cell cell = end_cell(r);
    vpps_node terms[VERTICES];
    uint64_t random = 1;
    for (uint32_t v = 0; v < VERTICES; v++) {
        const vpps_node x = draw(t.g, COLUMNS, 1, &random);
        terms[v] = vpps_pushed(t.g, APPLY(t.g, cell, PULLS(1, &x)), 0);
    }
    expect_agreement_of(&t, vpps_sum(t.g, VERTICES, terms), VPPS_PRECISION_FP32, &layout, 0);
}

/* A product of one vector with A and B places their tiles of eight rows in turn: a loop over A's tiles in another cell must not read B's. */
TEST_EACH(weights_placed_in_turn, 1, 3) {
    enum { ROWS = 2400, COLUMNS = 16 };
    static const gpu_layout layout = {2, 128, 1, 1};
    AT_END(training_end) training t = training_of(1);
    const vpps_param A = add_matrix(t.model, "A", ROWS, COLUMNS), B = add_matrix(t.model, "B", ROWS, COLUMNS);
    uint64_t random = 1;
    const vpps_node x = draw(t.g, COLUMNS, 1, &random);
    vpps_node terms[2];
    for (uint32_t i = 0; i < 2; i++) {
        vpps_graph *r = begin_cell(t.model, i ? "alone" : "both");
        const vpps_node pulled = vpps_pull(r, COLUMNS, 1),
                        product = i ? vpps_affine1(r, VPPS_NO_PARAM, A, pulled)
                                    : vpps_affine2(r, VPPS_NO_PARAM, A, pulled, B, pulled);
        TEST_OK(vpps_push(r, vpps_sum_elements(r, vpps_tanh(r, product))));
        const vpps_cell cell = end_cell(r);
        terms[i] = vpps_pushed(t.g, APPLY(t.g, cell, PULLS(1, &x)), 0);
    }
    expect_agreement_of(&t, vpps_sum(t.g, 2, terms), (vpps_precision)_i, &layout, 0);
}

/* Nothing beyond the last matrix is read, although its rows end within a step of 16 elements. */
TEST_EACH(matrices_end_where_they_end, 1, 3) {
    enum { ROWS = 65, COLUMNS = 70 };
    AT_END(training_end) training t = training_of(1);
    const vpps_param W = add_matrix(t.model, "W", ROWS, COLUMNS);
    uint64_t random = 1;
    const vpps_node x = draw(t.g, COLUMNS, 1, &random);
    const vpps_node loss = vpps_sum_elements(t.g, vpps_tanh(t.g, vpps_affine1(t.g, VPPS_NO_PARAM, W, x)));
    expect_agreement_of(&t, loss, (vpps_precision)_i, &zoo_layouts[0], 0);
}

/* The gradients of all uses of a matrix, as a value or in products, add up: in two cells, at several vertices, and outside of cells. */
TEST_EACH(all_uses_of_a_matrix_add_up, 0, 2) {
    enum { N = 3, VERTICES = 3 };
    float x[N] = {1, 2, 4}, zeros[N * N] = {0};
    const vpps_init init = {.kind = VPPS_INIT_VALUES, .values = zeros};
    vpps_param W;
    vpps_options o = gpu_options(&zoo_layouts[0], VPPS_SGD);
    o.device = device(_i);
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = 1};
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_matrix(t.model, &W, "W", N, N, &init));
    vpps_cell cells[2];
    for (uint32_t i = 0; i < 2; i++) {
        vpps_graph *r = begin_cell(t.model, i ? "values" : "both");
        const vpps_node y = vpps_sum_elements(r, vpps_parameter(r, W));
        const vpps_node z = vpps_sum_elements(r, vpps_affine1(r, VPPS_NO_PARAM, W, vpps_pull(r, N, 1)));
        TEST_OK(vpps_push(r, i ? vpps_scale(r, y, 10) : vpps_add(r, y, z)));
        cells[i] = end_cell(r);
    }
    vpps_node terms[2 * VERTICES + 1];
    const vpps_node given = vpps_input(t.g, N, 1, x);
    for (uint32_t v = 0; v < 2 * VERTICES; v++)
        terms[v] = vpps_pushed(t.g, APPLY(t.g, cells[v % 2], PULLS(1, &given)), 0);
    terms[2 * VERTICES] = vpps_scale(t.g, vpps_sum_elements(t.g, vpps_parameter(t.g, W)), 1000);
    training_start(&t, &o);
    TEST_OK(vpps_fb(t.h, t.g, vpps_sum(t.g, 2 * VERTICES + 1, terms), NULL));
    TEST_OK(vpps_read_parameters(t.h));
    for (uint32_t i = 0; i < N * N; i++)
        ck_assert_float_eq(vpps_param_values(t.model, W)[i], -(1000 + VERTICES * (11 + x[i % N])));
}

int main(void) {
    setenv("VPPS_SIMT_WATCH", "1", 0);
    test_in_parts();
    return gpu_main("gpu cells");
}
