/* test_gpu_agreement.c - compares the GPU device with the double-precision reference and with the CPU device, in every precision: all operations and
 * random graphs, shapes of matrices in every layout, weights outside of registers, long scripts, optimisers, Tree-LSTMs; and every run must give the
 * same bits. */
#include "gpu_trees.h"
#include "gpu_zoo.h"

#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

static const vpps_precision precisions[] = {VPPS_PRECISION_BF16X3, VPPS_PRECISION_BF16};
enum { N_PRECISIONS = sizeof precisions / sizeof *precisions };

/* ---------------------------------------------------------------- random graphs over all operations */

/* Compilation takes most of a case's time, so everyday cases are few and long. */
enum { RANDOM_CASES = 40, USUAL_CASES = 2, USUAL_FIRST = 18, USUAL_IN_BF16 = 2 };

static rg_case draw_case(uint32_t layout, uint32_t number, uint64_t *seen) {
    static const uint32_t sizes[ZOO_LAYOUTS][RG_SIZES] = {
        {33, 5, 64, 1}, {7, 31, 16, 40}, {32, 3, 65, 9}, {100, 2, 17, 33}};
    rg_case c;
    rg_draw(&c, test_seed() * 1000003 + layout * 1000 + number, 6 + number % 24);
    if (number < 8) memcpy(c.sizes, sizes[layout], sizeof c.sizes);
    if (!test_full() && number % 3) c.batches = 1; /* a second batch has a kernel of its own */
    c.columns = 2 + layout % 3;
    c.alike = true;
    for (uint32_t i = 0; i < c.n_steps; i++) *seen |= 1ull << c.steps[i].what;
    return c;
}

TEST_GROUP("random", .seconds = 300);

/* In fp32 many cases in each layout, else one. */
GPU_EACH(random_graphs_agree, 1, test_everyday("random", ZOO_LAYOUTS + USUAL_IN_BF16, ZOO_LAYOUTS + RANDOM_CASES)) {
    const bool fp32 = _i < ZOO_LAYOUTS;
    const uint32_t layout = (uint32_t)_i % ZOO_LAYOUTS;
    const uint32_t first = !fp32 ? 5000 + (uint32_t)_i : test_full() ? 0 : USUAL_FIRST + layout;
    const uint32_t cases = !fp32 ? 1 : test_full() ? RANDOM_CASES : test_scaled(USUAL_CASES);
    uint32_t n_usable = 0;
    uint64_t seen = 0;
    for (uint32_t i = first; i < first + cases; i++) {
        const rg_case c = draw_case(layout, i, &seen);
        vpps_options o = gpu_options(&zoo_layouts[layout], fp32 ? VPPS_MOMENTUM : VPPS_SGD);
        o.precision = fp32 ? VPPS_PRECISION_FP32 : precisions[_i % N_PRECISIONS];
        o.slices = fp32 ? 1 + i % 3 : 0;
        n_usable += expect_agreement_on(&c, &o, &zoo_layouts[layout],
                                        i % 2 ? EPISODE_FORWARD : EPISODE_PARTS | EPISODE_REQUEST);
    }
    if (fp32) ck_assert_msg(n_usable * 10 >= cases * 9, "%u of %u cases have numbers in range", n_usable, cases);
    if (cases < RANDOM_CASES) return;
    for (uint32_t op = 0; op < VPPS_OP_COUNT; op++)
        ck_assert_msg(seen >> op & 1, "no case has a step %s", vpps_ops[op].name);
}

/* Trains in two halves, in every precision. */
GPU_EACH(halves_agree, 1, test_everyday("halves", 1 + N_PRECISIONS, 12)) {
    uint64_t seen = 0;
    const uint32_t layout = (uint32_t)_i % ZOO_LAYOUTS;
    const rg_case c = draw_case(layout, 700 + (uint32_t)_i, &seen);
    vpps_options o = gpu_options(&zoo_layouts[layout], VPPS_SGD);
    o.precision = _i % 3 ? precisions[_i % 3 - 1] : VPPS_PRECISION_FP32;
    expect_agreement_on(&c, &o, &zoo_layouts[layout], EPISODE_HALVES | (_i % 2 ? EPISODE_REQUEST : 0));
}

/* ---------------------------------------------------------------- shapes of matrices and layouts */

typedef struct shapes {
    uint32_t size[ZOO_SIZES];
    vpps_optimizer_kind optimizer;
    gpu_layout layouts[3];
} shapes;

/* Sizes, virtual processors, rows and threads in many combinations. The first layouts are the everyday ones. */
static const shapes all_shapes[] = {
    {{31, 512, 33, 1}, VPPS_SGD, {{1, 256, 1, 1}, {16, 256, 8, 1}, {64, 256, 1, 4}}},
    {{33, 100, 1, 31}, VPPS_MOMENTUM, {{2, 512, 5, 1}, {5, 384, 1, 1}}},
    {{100, 257, 31, 33}, VPPS_SGD, {{5, 128, 4, 1}, {16, 512, 1, 2}, {64, 384, 2, 1}}},
    {{257, 33, 512, 100}, VPPS_MOMENTUM, {{16, 64, 6, 1}, {64, 256, 1, 1}, {64, 384, 8, 2}}},
};

TEST_GROUP("shapes", .seconds = 300);

GPU_EACH(shapes_agree, 1, VPPS_COUNT(all_shapes)) {
    const uint32_t n_chains = _i % 2 ? 3 : 1,
                   chains[] = {n_chains, n_chains}; /* equally many: both batches have one kernel */
    const shapes *s = &all_shapes[_i];
    AT_END(zoo_close) gpu_zoo zoo = zoo_of(s->size, 5);
    AT_END(zoo_forget) episode x = zoo_episode(&zoo, chains, VPPS_COUNT(chains));
    const uint32_t n = test_full() ? VPPS_COUNT(s->layouts) : 1;
    for (uint32_t i = 0; i < n && s->layouts[i].sms; i++) {
        const vpps_options options = gpu_options(&s->layouts[i], s->optimizer);
        TEST_OK(vpps_handle_create(&zoo.h, zoo.model, &options));
        const vpps_stats stats = stats_of(zoo.h);
        if (gpu_is_simulated()) ck_assert_uint_eq(stats.vps, s->layouts[i].sms);
        vpps_handle_destroy(zoo.h);
        zoo.h = NULL;
        expect_agreement(&x, &options, &s->layouts[i], EPISODE_FORWARD, NULL);
    }
}

/* ---------------------------------------------------------------- weights outside of registers */

/* Counts how many matrices, or fragments of them, of the kernel in use lie at each level of memory. *divided: whether CTAs divide columns of one. */
static void count_levels(const vpps_handle *h, uint32_t *levels, bool *divided) {
    const vpps_residents *r = &((const vpps_gpu *)h->device)->kernel->plan.residents;
    for (uint32_t i = 0; i < r->n; i++) levels[r->list[i].level]++, *divided |= r->list[i].shares > 1;
    for (uint32_t i = 0; i < r->n_fragments; i++) levels[r->fragments[i].level]++;
}

TEST_GROUP("levels", .seconds = 300);

/* Weights in registers; also in shared memory; also streamed. */
GPU_EACH(levels_agree, 1, test_everyday("levels", 2, 7)) {
    static const struct {
        vpps_precision precision;
        uint32_t size[ZOO_SIZES], chains[2];
        gpu_layout layout;
        vpps_resident_level farthest;
        bool wide;
    } cases[] = {
        {VPPS_PRECISION_FP32, {65, 50, 512, 24}, {20, 20}, {2, 128, 1, 1}, VPPS_RESIDENT_STREAM, true},
        {VPPS_PRECISION_BF16X3, {65, 50, 1024, 24}, {9, 40}, {6, 128, 1, 1}, VPPS_RESIDENT_STREAM, true},
        {VPPS_PRECISION_FP32, {64, 48, 512, 24}, {6, 60}, {2, 320, 1, 1}, VPPS_RESIDENT_STREAM, true},
        {VPPS_PRECISION_BF16X3, {65, 50, 120, 24}, {9, 9}, {2, 128, 1, 1}, VPPS_RESIDENT_STREAM, false},
        {VPPS_PRECISION_FP32, {33, 40, 90, 2048}, {1, 2}, {4, 384, 2, 1}, VPPS_RESIDENT_STREAM, true},
        {VPPS_PRECISION_BF16, {31, 33, 40, 7}, {1, 9}, {5, 256, 1, 1}, VPPS_RESIDENT_REGISTERS, false},
        {VPPS_PRECISION_BF16X3, {33, 40, 80, 100}, {1, 9}, {4, 384, 2, 1}, VPPS_RESIDENT_SHARED, false},
    };
    uint32_t levels[VPPS_RESIDENT_STREAM + 1] = {0};
    AT_END(zoo_close) gpu_zoo zoo = zoo_of(cases[_i].size, 5);
    AT_END(zoo_forget) episode x = zoo_episode(&zoo, cases[_i].chains, 2);
    vpps_options options = gpu_options(&cases[_i].layout, VPPS_SGD);
    options.precision = cases[_i].precision, options.batch = 8; /* processors divide columns of 1,024 elements */
    expect_agreement(&x, &options, &cases[_i].layout, EPISODE_FORWARD, NULL);
    TEST_OK(vpps_handle_create(&zoo.h, zoo.model, &options));
    TEST_OK(vpps_fb(zoo.h, x.g[0], x.loss[0], NULL)); /* makes the kernel */
    bool divided = false;
    count_levels(zoo.h, levels, &divided);
    if (gpu_is_simulated()) ck_assert_int_eq(divided, cases[_i].size[2] == 1024 || cases[_i].size[3] == 2048);
    const bool wide = ((const vpps_gpu *)zoo.h->device)->kernel->plan.residents.wide_words > 0;
    if (gpu_is_simulated()) ck_assert_int_eq(wide, cases[_i].wide);
    for (uint32_t level = 0; level <= VPPS_RESIDENT_STREAM && gpu_is_simulated() && !wide; level++)
        ck_assert_msg((levels[level] > 0) == (level <= cases[_i].farthest), "%u matrices at level %u", levels[level],
                      level);
}

/* A virtual processor owns so many rows that one vertex's sums exceed the usual size of tiles (VPPS_TILE_WORDS), and then shared memory: in that case
 * nothing is launched, and the message says what to change. */
TEST_EACH(rows_have_room_or_are_refused, 0, 3) {
    enum { COLUMNS = 64 }; /* so that weights take all remaining shared memory */
    static const uint32_t rows[] = {3400, 130000, 16000};
    const gpu_layout layout = {2, 256, 1, 1};
    const vpps_precision precision = _i < 2 ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
    AT_END(training_end) training t = training_of(1);
    const vpps_param W = add_matrix(t.model, "W", rows[_i], COLUMNS);
    float in[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++) in[i] = 0.1f * (float)(i % 7) - 0.3f;
    const vpps_node y = vpps_matvec(t.g, W, vpps_input(t.g, COLUMNS, 1, in));
    const vpps_node loss = vpps_sum_elements(t.g, vpps_tanh(t.g, y));
    if (_i != 1) {
        expect_agreement_of(&t, loss, precision, &layout, 0);
    } else {
        vpps_options o = gpu_options(&layout, VPPS_SGD);
        o.precision = precision;
        training_start(&t, &o);
        TEST_FAILS(vpps_fb(t.h, t.g, loss, NULL), VPPS_POOL, "expected fewer rows or fewer groups");
    }
}

/* Classifiers over a vocabulary: each virtual processor has more rows than a warp has lanes; with 13,000 classes slots (buffers) are in memory, with
 * 160,000 one vertex needs more shared memory than tiles usually have; odd and large hidden sizes; with 4,096 and 13,008
 * classes virtual processors divide the transposed product's columns (vpps_cell_value.shares), and 1 or 2 of 25 and 26 have no rows. */
GPU_EACH(vocabularies_agree, 1, 10) {
    enum { BATCH = 5 };
    static const struct {
        uint32_t classes, hidden, sms;
        vpps_precision precision;
    } cases[] = {{3001, 50, 16, VPPS_PRECISION_FP32},    {10003, 100, 16, VPPS_PRECISION_BF16},
                 {13008, 33, 16, VPPS_PRECISION_FP32},   {40002, 20, 16, VPPS_PRECISION_BF16X3},
                 {10001, 257, 64, VPPS_PRECISION_FP32},  {4300, 1024, 132, VPPS_PRECISION_BF16X3},
                 {160000, 10, 132, VPPS_PRECISION_FP32}, {2501, 2048, 64, VPPS_PRECISION_FP32},
                 {4096, 40, 26, VPPS_PRECISION_FP32},    {4096, 43, 25, VPPS_PRECISION_BF16X3}};
    const gpu_layout layout = {cases[_i].sms, 256, 1, 1};
    const uint32_t n = cases[_i].hidden;
    AT_END(training_end) training t = training_of(1);
    const vpps_param E = add_lookup(t.model, "E", BATCH, n, 1), W = add_matrix(t.model, "W", cases[_i].classes, n),
                     b = add_vector(t.model, "b", cases[_i].classes);
    vpps_node terms[BATCH];
    for (uint32_t i = 0; i < BATCH; i++)
        terms[i] = vpps_cross_entropy(t.g, vpps_affine1(t.g, b, W, vpps_tanh(t.g, vpps_lookup(t.g, E, i))),
                                      i * (cases[_i].classes / BATCH));
    expect_agreement_of(&t, vpps_average(t.g, BATCH, terms), cases[_i].precision, &layout, EPISODE_FORWARD);
}

/* A long transposed product inside a cell is no gradient for an input, but an operand: of another operation, or of a matrix's gradient. Virtual
 * processors then do not divide its columns. */
GPU_EACH(long_products_that_a_cell_reads_agree, 2, 3) {
    enum { BATCH = 5, N = 40, CLASSES = 4096 };
    const gpu_layout layout = {24, 256, 1, 1};
    AT_END(training_end) training t = training_of(1);
    const vpps_param E = add_lookup(t.model, "E", BATCH, N, 1), U = add_matrix(t.model, "U", N, N),
                     W = add_matrix(t.model, "W", CLASSES, N);
    vpps_graph *r = begin_cell(t.model, "classifier");
    vpps_node x = vpps_lookup(r, E, vpps_pull_index(r)), terms[BATCH];
    if (_i == 0) x = vpps_softmax(r, x);
    if (_i) x = vpps_matvec(r, U, x);
    vpps_push(r, vpps_cross_entropy(r, vpps_matvec(r, W, x), vpps_pull_index(r)));
    const vpps_cell cell = end_cell(r);
    if (_i == 2) TEST_OK(vpps_freeze(t.model, U, true));
    if (_i == 1) TEST_OK(vpps_freeze(t.model, E, true));
    for (uint32_t i = 0; i < BATCH; i++)
        terms[i] = vpps_pushed(t.g, APPLY(t.g, cell, INDICES(2, (uint32_t[]){i, i * (CLASSES / BATCH)})), 0);
    expect_agreement_of(&t, vpps_average(t.g, BATCH, terms), VPPS_PRECISION_FP32, &layout, EPISODE_FORWARD);
}

/* Two products of different vectors in one stage: eight rows (an operand of mma) have weights of both where a processor's rows are no multiple of
 * eight, and there are more such groups of eight rows than a pass computes. */
GPU_EACH(products_of_different_vectors_agree, 1, 2) {
    enum { BATCH = 5, ROWS = 128, N = 40 };
    const gpu_layout layout = {2, 256, 1, 1};
    AT_END(training_end) training t = training_of(1);
    const vpps_param E = add_lookup(t.model, "E", BATCH, N, 1), A = add_matrix(t.model, "A", ROWS, N),
                     B = add_matrix(t.model, "B", ROWS, N);
    vpps_graph *r = begin_cell(t.model, "two");
    const vpps_node x = vpps_lookup(r, E, vpps_pull_index(r)), y = vpps_tanh(r, x);
    const vpps_node sum = vpps_add(r, vpps_tanh(r, vpps_matvec(r, A, x)), vpps_tanh(r, vpps_matvec(r, B, y)));
    vpps_push(r, vpps_cross_entropy(r, sum, vpps_pull_index(r)));
    const vpps_cell cell = end_cell(r);
    vpps_node terms[BATCH];
    for (uint32_t i = 0; i < BATCH; i++)
        terms[i] = vpps_pushed(t.g, APPLY(t.g, cell, INDICES(2, (uint32_t[]){i, i * (ROWS / BATCH)})), 0);
    expect_agreement_of(&t, vpps_average(t.g, BATCH, terms), _i ? VPPS_PRECISION_BF16 : VPPS_PRECISION_BF16X3, &layout,
                        EPISODE_FORWARD);
}

/* ---------------------------------------------------------------- long scripts */

/* Exceeds limits of the kernel, whose window has 512 words, and which keeps the first 64 blocks near: sums of many arguments, many types of vertices,
 * a long chain of levels, and an entry that many vertices look up. */
static vpps_node build_long(const gpu_zoo *zoo, vpps_graph *g) {
    enum { TERMS = 660, FACTORS = 200, STEPS = 150, MIXED = 33, COLUMNS = 5, LOOKUPS = 21 };
    static vpps_node terms[TERMS], weights[TERMS];
    vpps_node x = vpps_lookup(g, zoo->E, 1), y = vpps_lookup(g, zoo->E, 2);
    for (uint32_t i = 0; i < TERMS; i++) terms[i] = i % 2 ? x : vpps_scale(g, y, 0.001f * (float)i);
    const vpps_node sum = vpps_average(g, TERMS, terms);
    for (uint32_t i = 0; i < FACTORS; i++) terms[i] = vpps_tanh(g, vpps_scale(g, x, 0.01f * (float)i - 1));
    const vpps_node products = vpps_average(g, FACTORS, terms);
    for (uint32_t i = 0; i < LOOKUPS; i++) terms[i] = vpps_tanh(g, vpps_lookup(g, zoo->E, 3));
    const vpps_node entries = vpps_average(g, LOOKUPS, terms);
    for (uint32_t i = 0; i < TERMS; i++) weights[i] = i % 3 ? x : y;
    const vpps_node w = vpps_softmax(g, x); /* of 33 elements */
    float factors[MIXED * COLUMNS];
    for (uint32_t i = 0; i < MIXED * COLUMNS; i++) factors[i] = 0.05f * (float)(i % 37) - 1;
    const vpps_node matrix = vpps_mul(g, vpps_broadcast(g, x, MIXED, COLUMNS), vpps_input(g, MIXED, COLUMNS, factors));
    const vpps_node columns = vpps_log_sum_exp(g, vpps_add(g, vpps_log_softmax(g, matrix), /* of each column */
                                                           vpps_layer_norm(g, matrix, y, x, 0.1f)));
    const vpps_node beside[] = {x, matrix, y}, wide = vpps_hstack(g, 3, beside);
    const uint32_t numbers[] = {32, 0, 7, 7, 7, 31, 2};
    const vpps_node some = vpps_select_rows(g, wide, VPPS_COUNT(numbers), numbers);
    const vpps_node turned = vpps_matmul(g, vpps_matmul(g, some, vpps_transpose(g, wide)), matrix);
    const vpps_node mixed = vpps_weighted_sum(g, w, MIXED, weights);
    vpps_node chain = x;
    for (uint32_t i = 0; i < STEPS; i++)
        chain = vpps_tanh(g, vpps_affine2(g, zoo->b[1], zoo->A[i % 3], chain, zoo->B[0], chain));
    const vpps_node all[] = {sum, products, entries, mixed, chain};
    const vpps_node sums[] = {vpps_sum_elements(g, vpps_tanh(g, vpps_sum(g, 5, all))), vpps_sum_elements(g, columns),
                              vpps_sum_elements(g, vpps_tanh(g, turned))};
    return vpps_sum(g, 3, sums);
}

TEST_GROUP("long", .seconds = 300);

TEST_EACH(long_scripts_agree, 0, test_everyday("long", 1, ZOO_LAYOUTS)) {
    static const uint32_t size[] = {33, 33, 33, 33};
    AT_END(zoo_close) gpu_zoo zoo = zoo_of(size, 5);
    const vpps_node loss = build_long(&zoo, zoo.g);
    expect_agreement_of(&(training){zoo.model, zoo.g, NULL}, loss, VPPS_PRECISION_FP32, &zoo_layouts[_i], 0);
}

/* There are more groups than a CTA has threads, and only the last group's vertices have a certain cell. */
TEST(every_group_begins_gradients) {
    enum { GROUPS = 40 };
    static const uint32_t size[] = {9, 8, 7, 5};
    const gpu_layout layout = {GROUPS, 32, 1, GROUPS};
    AT_END(zoo_close) gpu_zoo zoo = zoo_of(size, 5);
    vpps_graph *g = zoo.g;
    vpps_node terms[GROUPS];
    for (uint32_t i = 0; i < GROUPS; i++) {
        const vpps_node y = vpps_matvec(g, i + 1 < GROUPS ? zoo.A[0] : zoo.C[2], vpps_lookup(g, zoo.E, i % ZOO_WORDS));
        terms[i] = vpps_sum_elements(g, vpps_tanh(g, y));
    }
    const vpps_node loss = vpps_sum(g, GROUPS, terms);
    expect_agreement_of(&(training){zoo.model, g, NULL}, loss, VPPS_PRECISION_FP32, &layout, 0);
}

/* ---------------------------------------------------------------- optimisers, frozen parameters */

TEST_GROUP("optimizers", .seconds = 300);

GPU_EACH(optimizers_agree, 1, VPPS_ADAMW + 1) {
    static const uint32_t size[] = {31, 33, 40, 7}, chains[] = {3, 3, 3};
    const gpu_layout *layout = &zoo_layouts[_i % ZOO_LAYOUTS];
    AT_END(zoo_close) gpu_zoo zoo = zoo_of(size, 9);
    AT_END(zoo_forget) episode x = zoo_episode(&zoo, chains, 3);
    if (_i % 2) {
        const vpps_param frozen[] = {zoo.A[1], zoo.C[2], zoo.b[3], zoo.first_bias + 4, zoo.E};
        for (size_t i = 0; i < VPPS_COUNT(frozen); i++) TEST_OK(vpps_freeze(zoo.model, frozen[i], true));
    }
    for (int clipping = 0; clipping < 2; clipping++) { /* without clipping, gradients leave the registers elsewhere */
        vpps_options options = gpu_options(layout, (vpps_optimizer_kind)_i);
        options.optimizer.clip = clipping ? 0.5f : 0;
        expect_agreement(&x, &options, layout, 0, NULL);
    }
}

/* ---------------------------------------------------------------- lists, and matrices that are read as values */

enum { LIST_ROWS = 65 };

typedef struct matrices {
    float U[LIST_ROWS * LIST_ROWS], W[LIST_ROWS * LIST_ROWS];
} matrices;

/* Only children are multiplied with U: in the first batch more of them than the kernel takes at a time (32), in the second none. W is multiplied, and
 * read as a value. Gives both matrices after each batch. */
static void train_children(const char *device, matrices after[2]) {
    enum { N = LIST_ROWS, CHILDREN = 37 };
    const gpu_layout layout = zoo_layouts[1];
    const vpps_init init = {.kind = VPPS_INIT_CONSTANT, .a = 0.5f};
    vpps_param v, b, U, W;
    vpps_options o = gpu_options(&layout, VPPS_MOMENTUM);
    o.optimizer = (vpps_optimizer){.kind = VPPS_MOMENTUM, .lr = 0.02f, .momentum = 0.5f};
    o.device = device;
    AT_END(training_end) training t = training_of(1);
    TEST_OK(vpps_add_vector(t.model, &v, "v", N, &init));
    TEST_OK(vpps_add_vector(t.model, &b, "b", N, &init));
    TEST_OK(vpps_add_matrix(t.model, &U, "U", N, N, NULL));
    TEST_OK(vpps_add_matrix(t.model, &W, "W", N, N, NULL));
    vpps_graph *r = begin_cell(t.model, "list"); /* virtual processors share out rows */
    const vpps_node members = vpps_tanh(r, vpps_affine1(r, b, U, vpps_gather_list(r, 0, N, 1)));
    vpps_scatter(r, vpps_add(r, vpps_parameter(r, v), vpps_sum(r, 1, &members)));
    const vpps_cell list = end_cell(r);
    r = begin_cell(t.model, "value"); /* they share out vertices */
    const vpps_node sums = vpps_sum_columns(r, vpps_tanh(r, vpps_parameter(r, W)));
    vpps_scatter(
        r, vpps_add(r, vpps_gather(r, 0, 0, N, 1), vpps_add(r, sums, vpps_affine1(r, b, W, vpps_parameter(r, v)))));
    const vpps_cell value = end_cell(r);
    training_start(&t, &o);
    for (uint32_t batch = 0; batch < 2; batch++) {
        vpps_vertex children[CHILDREN];
        vpps_graph_clear(t.g);
        for (uint32_t i = 0; i < CHILDREN; i++) {
            float values[N];
            for (uint32_t k = 0; k < N; k++) values[k] = 0.1f * (float)((i * 5 + k * 7) % 13) - 0.57f;
            const vpps_node child = vpps_input(t.g, N, 1, values);
            children[i] = vpps_source(t.g, 1, &child);
        }
        const vpps_vertex x = APPLY(t.g, list, CHILDREN(batch ? 0 : CHILDREN, children));
        const vpps_vertex y = APPLY(t.g, value, CHILDREN(1, &x));
        TEST_OK(vpps_fb(t.h, t.g, vpps_sum_elements(t.g, vpps_scattered(t.g, y, 0)), NULL));
        TEST_OK(vpps_read_parameters(t.h));
        memcpy(after[batch].U, vpps_param_values(t.model, U), sizeof after[batch].U);
        memcpy(after[batch].W, vpps_param_values(t.model, W), sizeof after[batch].W);
    }
}

TEST_GROUP("lists", .seconds = 300);

/* A matrix that multiplies no member counts as used: its momentum moves it on. */
TEST(lists_agree) {
    static matrices after[2][2];
    for (uint32_t d = 0; d < 2; d++) train_children(d ? "cpu" : test_gpu_device(), after[d]);
    for (uint32_t i = 0; i < LIST_ROWS * LIST_ROWS; i++) {
        for (uint32_t d = 0; d < 2; d++)
            ck_assert_msg(after[d][1].U[i] != after[d][0].U[i], "element %u rests on device %u", i, d);
        for (uint32_t batch = 0; batch < 2; batch++) {
            ck_assert_float_eq_tol(after[0][batch].U[i], after[1][batch].U[i], 1e-5f);
            ck_assert_float_eq_tol(after[0][batch].W[i], after[1][batch].W[i], 1e-5f);
        }
    }
}

/* ---------------------------------------------------------------- Tree-LSTMs */

/* Sums are made in another order, which in bf16 now and then rounds a later operand another way. Gradients of matrices in bf16 by one team of CTAs,
 * with more of them than a warp takes at a time; and by several: of columns that they share out evenly, and of others, whose parts end within a
 * block, and within four. Of 20 VPs some share out the columns of the classifier. */
static const struct {
    vpps_precision precision;
    uint32_t hidden, embed;
    gpu_layout layout;
    uint32_t teams;
} trees_cases[] = {
    {VPPS_PRECISION_FP32, 40, 24, {4, 256, 1, 1}, 1},    {VPPS_PRECISION_BF16X3, 40, 24, {4, 256, 1, 1}, 1},
    {VPPS_PRECISION_BF16, 40, 24, {4, 256, 1, 1}, 1},    {VPPS_PRECISION_BF16X3, 32, 128, {16, 256, 1, 1}, 4},
    {VPPS_PRECISION_BF16X3, 66, 70, {20, 128, 1, 1}, 4}, {VPPS_PRECISION_BF16, 32, 128, {16, 256, 1, 1}, 4},
    {VPPS_PRECISION_BF16X3, 72, 24, {2, 256, 1, 1}, 1},  {VPPS_PRECISION_BF16, 72, 24, {2, 256, 1, 1}, 1},
    {VPPS_PRECISION_FP32, 48, 24, {5, 384, 2, 1}, 1},    {VPPS_PRECISION_FP32, 56, 24, {6, 256, 4, 2}, 2},
    {VPPS_PRECISION_FP32, 64, 24, {2, 512, 3, 1}, 1},    {VPPS_PRECISION_BF16X3, 30, 150, {16, 128, 1, 2}, 4},
    {VPPS_PRECISION_BF16, 30, 150, {16, 128, 1, 2}, 4},  {VPPS_PRECISION_BF16X3, 14, 150, {6, 256, 2, 1}, 3},
    {VPPS_PRECISION_BF16, 14, 150, {6, 256, 2, 1}, 3},   {VPPS_PRECISION_BF16, 72, 70, {20, 128, 1, 2}, 4},
    {VPPS_PRECISION_FP32, 70, 256, {22, 128, 1, 2}, 2},  {VPPS_PRECISION_FP32, 34, 256, {20, 256, 1, 1}, 4},
};

TEST_GROUP("trees", .seconds = 300);

GPU_EACH(tree_lstms_agree, 3, test_everyday("trees", 8, VPPS_COUNT(trees_cases))) {
    enum { MOST = 50, SIMULATED = 20, EVERYDAY = 6, IN_BF16 = 4 };
    const vpps_precision precision = trees_cases[_i].precision;
    const gpu_layout *layout = &trees_cases[_i].layout;
    const bool fp32 = precision == VPPS_PRECISION_FP32;
    const uint32_t on_cpu = !fp32 ? IN_BF16 : gpu_is_simulated() ? SIMULATED : MOST;
    const uint32_t on_gpu = fp32 && gpu_is_simulated() && !test_full() ? EVERYDAY : on_cpu;
    const double tolerance = precision == VPPS_PRECISION_BF16 ? 2e-3 : 1e-4;
    double losses[3][MOST], most = 0;
    for (int k = 0; k < (fp32 ? 2 : 3); k++) { /* here, on the CPU, on the CPU in fp32 */
        vpps_options o = gpu_options(layout, VPPS_SGD);
        o.precision = k < 2 ? precision : VPPS_PRECISION_FP32;
        o.optimizer.lr = fp32 ? 0.5f : 2; /* the gradient is clipped to 0.2, so that its norm matters */
        o.optimizer.clip = fp32 ? 0 : 0.2f;
        o.verify = false;
        if (k) o.device = "cpu", o.groups = fp32 ? o.groups : 0;
        AT_END(trees_close) gpu_trees t = trees_with(trees_cases[_i].hidden, trees_cases[_i].embed, &o);
        const vpps_stats stats = stats_of(t.h);
        ck_assert_str_eq(stats.precision, vpps_precision_names[o.precision]);
        if (!k && !fp32) ck_assert_str_eq(stats.precision_unit, "mma");
        for (uint32_t batch = 0; batch < (k ? on_cpu : on_gpu); batch++)
            losses[k][batch] = (double)trees_step(&t, batch);
        if (!k && gpu_is_simulated())
            ck_assert_uint_eq(((const vpps_gpu *)t.h->device)->kernel->plan.teams, trees_cases[_i].teams);
    }
    for (uint32_t batch = 0; batch < on_gpu; batch++) {
        ck_assert_msg(fabs(losses[0][batch] - losses[1][batch]) <= tolerance, "%s, %s, batch %u: %.9g, on the CPU %.9g",
                      vpps_precision_names[precision], gpu_layout_text(layout), batch, losses[0][batch],
                      losses[1][batch]);
        if (!fp32) most = fmax(most, fabs(losses[0][batch] - losses[2][batch]));
    }
    if (precision == VPPS_PRECISION_BF16) ck_assert_double_gt(most, 0); /* it differs from fp32 */
    /* every third batch has the same trees */
    ck_assert_msg(!fp32 || losses[1][18] < 0.97 * losses[1][0], "nothing was learnt: %g to %g", losses[1][0],
                  losses[1][18]);
}

/* ---------------------------------------------------------------- the same bits every time */

TEST_GROUP("same bits", .seconds = 300);

/* CTAs and warps take turns in another order, which software SIMT chooses by a seed. (Other kernels: test_gpu_faults.c.) */
TEST_EACH(the_order_of_turns_does_not_matter, 1,
          gpu_end("the_order_of_turns_does_not_matter", 1,
                  1 + test_everyday("same bits", gpu_is_simulated() ? 1 : 3, 6))) {
    static const struct {
        vpps_precision precision;
        uint32_t layout;
    } cases[] = {{VPPS_PRECISION_FP32, 0}, {VPPS_PRECISION_BF16X3, 1}, {VPPS_PRECISION_FP32, 1},
                 {VPPS_PRECISION_BF16, 1}, {VPPS_PRECISION_FP32, 2},   {VPPS_PRECISION_FP32, 3}};
    static const char *const seeds[] = {"0", "1", "7"};
    static const uint32_t size[] = {31, 33, 40, 7};
    const gpu_layout *layout = &zoo_layouts[cases[_i - 1].layout];
    FREED float *first = NULL;
    for (size_t i = 0; i < VPPS_COUNT(seeds); i++) {
        size_t n;
        setenv("VPPS_SIMT_SEED", seeds[i], 1);
        vpps_options o = gpu_options(layout, VPPS_SGD);
        o.precision = cases[_i - 1].precision;
        AT_END(zoo_close) gpu_zoo zoo = zoo_with(size, 9, &o);
        for (uint32_t k = 0; k < 3; k++) /* the third batch uses the first one's kernel */
            TEST_OK(vpps_fb(zoo.h, zoo.g, zoo_build(&zoo, zoo.g, 1 + 4 * (k % 2), k, 0.1f), NULL));
        float *values = handle_values(zoo.model, zoo.h, &n);
        ck_assert_msg(!i || !memcmp(first, values, n * sizeof *first), "%s, %s: parameters differ with seed %s",
                      vpps_precision_names[o.precision], gpu_layout_text(layout), seeds[i]);
        if (i) free(values);
        if (!i) first = values;
    }
}

int main(void) {
    test_in_parts();
    return gpu_main("agreement");
}
