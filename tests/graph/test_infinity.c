/* test_infinity.c - values at the ends of the range. What is not chosen affects neither values nor gradients, whatever it is, infinite or NaN: on the
 * graph, in a cell, by a condition and in a loop. Also chains of constants. */
#include "common/gpu_tests.h"
#include "common/meaning.h"
#include "common/training.h"
#include "graph/graph.h"
#include "runtime/simt/fiber.h"

static const struct {
    const char *device;
    uint32_t vps;
    bool portable;
} settings[] = {{"cpu", 1, false}, {"cpu", 2, true}, {"simt", 2, false}};
enum { SETTINGS = VPPS_COUNT(settings) - VPPS_SIMT_TSAN };

static vpps_options options_of(int setting) {
    vpps_options o = default_options();
    o.device = settings[setting].device;
    o.vps = settings[setting].vps;
    o.portable = settings[setting].portable;
    o.threads = 64;
    o.verify = true;
    return o;
}

/* Each pair of these numbers serves as a and b. */
static const float numbers[] = {2, -0.5f, INFINITY, -INFINITY, NAN};
enum { NUMBERS = VPPS_COUNT(numbers), PAIRS = NUMBERS * NUMBERS };
static const float conditions[] = {1, INFINITY, 0, -1, NAN};

static vpps_param add_values(training *t, const char *name, const float *values) {
    vpps_param p;
    TEST_OK(vpps_add_vector(t->model, &p, name, PAIRS, &(vpps_init){.kind = VPPS_INIT_VALUES, .values = values}));
    return p;
}

typedef enum means { CONDITION, GRAPH, CELL, WAYS } means;

/* Records a cell that selects one of two vectors that it pulls. */
static vpps_cell record(vpps_model *model, means way) {
    vpps_graph *r = begin_cell(model, way == CELL ? "selects" : "has a condition");
    const vpps_node c = vpps_pull(r, 1, 1), a = vpps_pull(r, PAIRS, 1), b = vpps_pull(r, PAIRS, 1);
    if (way == CELL) {
        TEST_OK(vpps_scatter(r, vpps_select(r, c, a, b)));
    } else {
        TEST_OK(vpps_condition(r, c));
        TEST_OK(vpps_scatter_else(r, a, b));
    }
    return end_cell(r);
}

TEST_GROUP("infinity", .seconds = 120);

/* On software SIMT, make test has the condition alone: the others' kernels are larger. */
GPU_EACH(only_the_branch_that_is_taken_counts, SETTINGS *WAYS - (VPPS_SIMT_TSAN ? 0 : WAYS - 1), SETTINGS *WAYS) {
    const vpps_options o = options_of(_i / WAYS);
    const means way = (means)(_i % WAYS);
    float pairs[2][PAIRS], values[VPPS_COUNT(conditions)][PAIRS], *outs[VPPS_COUNT(conditions)];
    vpps_param params[2];
    vpps_node nodes[VPPS_COUNT(conditions)];
    for (uint32_t i = 0; i < PAIRS; i++) pairs[0][i] = numbers[i / NUMBERS], pairs[1][i] = numbers[i % NUMBERS];
    AT_END(training_end) training t = training_of(1);
    for (uint32_t k = 0; k < 2; k++) params[k] = add_values(&t, k ? "b" : "a", pairs[k]);
    const vpps_cell cell = way == GRAPH ? 0 : record(t.model, way);
    training_start(&t, &o);
    for (size_t i = 0; i < VPPS_COUNT(conditions); i++) {
        const vpps_node pulls[] = {vpps_input(t.g, 1, 1, &conditions[i]), vpps_parameter(t.g, params[0]),
                                   vpps_parameter(t.g, params[1])};
        nodes[i] = way == GRAPH ? vpps_select(t.g, pulls[0], pulls[1], pulls[2])
                                : vpps_scattered(t.g, APPLY(t.g, cell, PULLS(3, pulls)), 0);
        outs[i] = values[i];
    }
    TEST_OK(vpps_forward(t.h, t.g, VPPS_COUNT(conditions), nodes, outs));
    for (size_t i = 0; i < VPPS_COUNT(conditions); i++) {
        const bool first = conditions[i] > 0;
        TEST_OK(vpps_zero_gradients(t.h));
        TEST_OK(vpps_backward(t.h, t.g, vpps_sum_elements(t.g, nodes[i]), NULL));
        TEST_OK(vpps_read_gradients(t.h));
        for (uint32_t k = 0; k < PAIRS; k++) {
            const float want = pairs[!first][k], got = values[i][k];
            ck_assert_msg(got == want || (isnan(got) && isnan(want)), "condition %g: of %g and %g it is %g",
                          (double)conditions[i], (double)pairs[0][k], (double)pairs[1][k], (double)got);
            for (uint32_t p = 0; p < 2; p++)
                ck_assert_msg(gradient_of(&t, params[p])[k] == (p == !first), "condition %g: d / d %c is %g",
                              (double)conditions[i], p ? 'b' : 'a', (double)gradient_of(&t, params[p])[k]);
        }
    }
}

/* Turn k: the maximum of the state and x_k; the loop continues while the number of remaining turns is above 0. */
TEST_EACH(a_running_maximum_begins_at_minus_infinity, 0, SETTINGS) {
    enum { TURNS = 4, LANES = TURNS + 1 };
    const float least = -INFINITY;
    float values[LANES], *outs[LANES], pairs[PAIRS];
    const vpps_options o = options_of(_i);
    vpps_node nodes[LANES];
    for (uint32_t i = 0; i < PAIRS; i++) pairs[i] = -3.0f + (float)i;
    AT_END(training_end) training t = training_of(1);
    const vpps_param x = add_values(&t, "x", pairs);
    vpps_graph *r = begin_cell(t.model, "turn");
    const vpps_node left = vpps_gather(r, 0, 0, 1, 1), top = vpps_gather(r, 0, 1, 1, 1), next = vpps_pull(r, 1, 1);
    TEST_OK(vpps_condition(r, left));
    TEST_OK(vpps_scatter_else(r, vpps_sub(r, left, vpps_ones(r, 1, 1)), left));
    TEST_OK(vpps_scatter_else(r, vpps_max(r, top, next), top));
    const vpps_cell turn = end_cell(r);
    training_start(&t, &o);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const vpps_node first[] = {vpps_constant(t.g, 1, 1, (float)lane), vpps_input(t.g, 1, 1, &least)};
        vpps_vertex at = vpps_source(t.g, 2, first);
        for (uint32_t k = 0; k < TURNS; k++) {
            const vpps_node pull = vpps_slice(t.g, vpps_parameter(t.g, x), k, 1);
            at = APPLY(t.g, turn, CHILDREN(1, &at), PULLS(1, &pull));
        }
        nodes[lane] = vpps_scattered(t.g, at, 1);
        outs[lane] = &values[lane];
    }
    TEST_OK(vpps_forward(t.h, t.g, LANES, nodes, outs));
    TEST_OK(vpps_backward(t.h, t.g, vpps_sum(t.g, LANES - 1, nodes + 1), NULL));
    TEST_OK(vpps_read_gradients(t.h));
    for (uint32_t lane = 0; lane < LANES; lane++) ck_assert_float_eq(values[lane], lane ? pairs[lane - 1] : least);
    for (uint32_t k = 0; k < PAIRS; k++) ck_assert_float_eq(gradient_of(&t, x)[k], k < TURNS);
}

/* ---------------------------------------------------------------- vertices that are not taken
 *
 * They run in training all the same, and every operation in them makes NaN of a gradient of 0: the operands are not finite. */

typedef struct operands {
    vpps_param w, b, W, E;
} operands;

/* Makes the operation on operands that are vectors of NUMBERS elements, or lists of such vectors. */
static vpps_node operation(vpps_graph *r, vpps_op op, const operands *p, vpps_node a, vpps_node b) {
    const meaning_call *c = &meaning_calls[op];
    const vpps_node scalar = vpps_slice(r, b, 0, 1), both[] = {a, b};
    if (c->unary) return c->unary(r, a);
    if (c->many) return c->many(r, 2, both);
    if (op == VPPS_OP_MATMUL) return vpps_matmul(r, a, vpps_transpose(r, b));
    if (c->binary) return c->binary(r, a, vpps_ops[op].shape == VPPS_SHAPE_SCALED ? scalar : b);
    switch (op) {
    case VPPS_OP_AFFINE: return vpps_affine2(r, p->b, p->W, a, p->W, b);
    case VPPS_OP_MATRIX: return vpps_matmul(r, vpps_parameter(r, p->W), a);
    case VPPS_OP_SCALE: return vpps_scale(r, a, INFINITY);
    case VPPS_OP_ELU: return vpps_elu(r, a, 1);
    case VPPS_OP_DROPOUT: return vpps_dropout(r, a, 0.5f);
    case VPPS_OP_SLICE: return vpps_slice(r, a, 1, 2);
    case VPPS_OP_RESHAPE: return vpps_reshape(r, a, 1, NUMBERS);
    case VPPS_OP_SELECT_ROWS: return vpps_select_rows_at(r, a, b);
    case VPPS_OP_RMS_NORM: return vpps_layer_norm(r, a, b, b, 1e-5f);
    case VPPS_OP_WEIGHTED_SUM: return vpps_weighted_sum(r, vpps_slice(r, b, 0, 2), 2, both);
    case VPPS_OP_CROSS_ENTROPY: return vpps_cross_entropy(r, a, 1);
    case VPPS_OP_SMOOTH_LABEL: return vpps_cross_entropy_with(r, b, 1, a, 0.5f);
    case VPPS_OP_HINGE: return vpps_hinge(r, a, 1, 1);
    case VPPS_OP_LOOKUP: return vpps_lookup(r, p->E, 1);
    case VPPS_OP_PARAMETER: return vpps_parameter(r, p->w);
    default: ck_abort_msg("%s needs a call here", vpps_ops[op].name);
    }
}

/* Records the operation on each kind of operand: pulled, a parameter, a table's entry, list members, and a whole list. */
static vpps_cell record_untaken(vpps_model *model, vpps_op op, const operands *p) {
    vpps_graph *r = begin_cell(model, vpps_ops[op].name);
    const vpps_node c = vpps_pull(r, 1, 1), x = vpps_pull(r, NUMBERS, 1), list = vpps_pull_list(r, NUMBERS, 1);
    const vpps_node w = vpps_parameter(r, p->w), e = vpps_lookup(r, p->E, 1), scalars = vpps_slice(r, list, 0, 1);
    vpps_node terms[] = {operation(r, op, p, x, w), operation(r, op, p, w, x), operation(r, op, p, e, x),
                         operation(r, op, p, list, w), VPPS_NO_NODE};
    enum { TERMS = VPPS_COUNT(terms) };
    if (meaning_calls[op].list) terms[TERMS - 1] = meaning_calls[op].list(r, scalars);
    if (op == VPPS_OP_WEIGHTED_SUM) terms[TERMS - 1] = vpps_weighted_sum_list(r, scalars, list);
    if (op == VPPS_OP_CONCAT) terms[TERMS - 1] = vpps_concat_list(r, list, 3);
    const uint32_t n = TERMS - (terms[TERMS - 1] == VPPS_NO_NODE);
    for (uint32_t i = 0; i < n; i++) terms[i] = vpps_sum_elements(r, vpps_sum(r, 1, &terms[i]));
    TEST_OK(vpps_condition(r, c));
    TEST_OK(vpps_scatter_else(r, vpps_sum(r, n, terms), VPPS_NO_NODE));
    return end_cell(r);
}

TEST_EACH(a_vertex_that_is_not_taken_has_no_gradients, 0, SETTINGS) {
    vpps_options o = options_of(_i);
    o.precision = (vpps_precision)(_i % (VPPS_PRECISION_BF16 + 1));
    const bool simt = !strcmp(o.device, "simt"); /* three operations, each compiled */
    float values[NUMBERS * NUMBERS];
    for (uint32_t i = 0; i < NUMBERS * NUMBERS; i++) values[i] = i % 7 == 3 ? 0 : numbers[(i + i / NUMBERS) % NUMBERS];
    const vpps_init init = {.kind = VPPS_INIT_VALUES, .values = values};
    AT_END(training_end) training t = training_of(1);
    operands p;
    vpps_param x;
    TEST_OK(vpps_add_vector(t.model, &x, "x", NUMBERS, &init));
    TEST_OK(vpps_add_vector(t.model, &p.w, "w", NUMBERS, &init));
    TEST_OK(vpps_add_vector(t.model, &p.b, "b", NUMBERS, &init));
    TEST_OK(vpps_add_matrix(t.model, &p.W, "W", NUMBERS, NUMBERS, &init));
    TEST_OK(vpps_add_lookup(t.model, &p.E, "E", NUMBERS, NUMBERS, 1, &init));
    vpps_cell cells[VPPS_OP_COUNT];
    for (uint32_t op = 0; op < VPPS_OP_COUNT; op++) {
        const bool has_gradient =
            vpps_ops[op].op_class != VPPS_CLASS_DECIDED && op != VPPS_OP_INPUT && op != VPPS_OP_CONSTANT;
        const bool compiles = !simt || op == VPPS_OP_AFFINE || op == VPPS_OP_DIV || op == VPPS_OP_WEIGHTED_SUM;
        cells[op] = has_gradient && compiles ? record_untaken(t.model, (vpps_op)op, &p) : UINT32_MAX;
    }
    training_start(&t, &o);
    for (uint32_t op = 0; op < VPPS_OP_COUNT; op++) {
        if (cells[op] == UINT32_MAX) continue;
        vpps_graph_clear(t.g);
        const vpps_node at = vpps_parameter(t.g, x), pulls[] = {vpps_zeros(t.g, 1, 1), at}, members[] = {at, at};
        const vpps_node *lists[] = {members};
        const vpps_vertex v =
            APPLY(t.g, cells[op], PULLS(2, pulls), .n_pull_lists = 1, .pull_lists = lists, .n_members = 2);
        TEST_OK(vpps_zero_gradients(t.h));
        TEST_OK(vpps_backward(t.h, t.g, vpps_scattered(t.g, v, 0), NULL));
        TEST_OK(vpps_read_gradients(t.h));
        const vpps_param params[] = {x, p.w, p.b, p.W, p.E};
        for (uint32_t k = 0; k < VPPS_COUNT(params); k++) {
            vpps_gradient gradient = {.size = sizeof gradient};
            TEST_OK(vpps_param_gradient(t.model, params[k], &gradient));
            const uint32_t n = k == 3 ? NUMBERS * NUMBERS : NUMBERS;
            for (uint32_t i = 0; i < n; i++)
                ck_assert_msg(gradient.values[i] == 0, "%s: d / d %c[%u] is %g", vpps_ops[op].name, "xwbWE"[k], i,
                              (double)gradient.values[i]);
        }
    }
}

/* ---------------------------------------------------------------- cross entropy
 *
 * As PyTorch's: softmax(x) - onehot(label) also where the label's score is -inf, and NaN where softmax(x) is. */

/* The loss is -sum over k of share_k log softmax(x)_k, by PyTorch's definition (CrossEntropyLoss with class indices and label_smoothing). Returns
 * share_k. */
static double share_of(const float *weights, uint32_t n, uint32_t label, float smoothing, uint32_t k) {
    return (double)weights[k] * ((double)smoothing / n + (1 - (double)smoothing) * (k == label));
}

/* Returns the loss, and its gradient. A class without a share counts for nothing, whatever its score. */
static double entropy(const float *x, uint32_t n, uint32_t label, const float *weights, float smoothing, double *dx) {
    double top = -INFINITY, sum = 0, shares = 0, loss = 0;
    for (uint32_t k = 0; k < n; k++) top = isnan(x[k]) ? (double)NAN : fmax(top, (double)x[k]);
    for (uint32_t k = 0; k < n; k++) {
        sum += exp((double)x[k] - top);
        shares += share_of(weights, n, label, smoothing, k);
    }
    for (uint32_t k = 0; k < n; k++) {
        const double share = share_of(weights, n, label, smoothing, k);
        if (share > 0) loss += share * (log(sum) + top - (double)x[k]);
        dx[k] = shares * exp((double)x[k] - top) / sum - share;
    }
    return loss;
}

/* With 5 classes, a warp of a GPU computes four nodes at once, of which some have a loss above 100. */
TEST_EACH(cross_entropy_is_its_definition, 0, SETTINGS + 1) {
    enum { CLASSES = 19, FIRST = 3, KINDS = 6 };
    const uint32_t n = _i < SETTINGS ? CLASSES : 5;
    static const float first[][FIRST] = {{-INFINITY, 0, 1},          {0, -INFINITY, 1},         {INFINITY, 0, 1},
                                         {0, INFINITY, 1},           {-INFINITY, INFINITY, 0},  {NAN, 0, 1},
                                         {-INFINITY, NAN, 1},        {-INFINITY, -INFINITY, 1}, {-3e38f, 0, 1},
                                         {-INFINITY, 3e38f, -3e38f}, {-3e38f, 3e38f, 1},        {0, 1, 2}};
    static const float smoothings[] = {0, 0.1f, 1};
    enum { ROWS = VPPS_COUNT(first) };
    const vpps_options o = options_of(_i < SETTINGS ? _i : SETTINGS - 1);
    float x[ROWS][CLASSES], weights[2][CLASSES], losses[ROWS * KINDS], *outs[ROWS * KINDS];
    vpps_param params[ROWS * KINDS];
    vpps_node nodes[ROWS * KINDS], of[2];
    AT_END(training_end) training t = training_of(1);
    for (uint32_t k = 0; k < n; k++) weights[0][k] = 1, weights[1][k] = 0.5f + (float)(k % 3);
    for (uint32_t i = 0; i < ROWS * KINDS; i++) {
        float *row = x[i / KINDS];
        for (uint32_t k = 0; k < n; k++) row[k] = k < FIRST ? first[i / KINDS][k] : -0.25f * (float)k;
        TEST_OK(vpps_add_vector(t.model, &params[i], (char[]){(char)('a' + i / KINDS), (char)('0' + i % KINDS), 0}, n,
                                &(vpps_init){.kind = VPPS_INIT_VALUES, .values = row}));
    }
    training_start(&t, &o);
    of[0] = VPPS_NO_NODE;
    of[1] = vpps_input(t.g, n, 1, weights[1]);
    for (uint32_t i = 0; i < ROWS * KINDS; i++) {
        nodes[i] =
            vpps_cross_entropy_with(t.g, vpps_parameter(t.g, params[i]), 0, of[i % 2], smoothings[i % KINDS / 2]);
        outs[i] = &losses[i];
    }
    /* without weights and smoothing the node is vpps_cross_entropy's */
    ck_assert_uint_eq(vpps_plain_signature(t.g, nodes[0])->op, VPPS_OP_CROSS_ENTROPY);
    const vpps_request request = {
        .size = sizeof request, .n_values = ROWS * KINDS, .values = nodes, .value_outs = outs};
    TEST_OK(vpps_backward(t.h, t.g, vpps_sum(t.g, ROWS * KINDS, nodes), &request));
    TEST_OK(vpps_read_gradients(t.h));
    for (uint32_t i = 0; i < ROWS * KINDS; i++) {
        const float *row = x[i / KINDS];
        double wanted[CLASSES];
        const double loss = entropy(row, n, 0, weights[i % 2], smoothings[i % KINDS / 2], wanted);
        if (i < KINDS) ck_assert_float_eq(losses[i], INFINITY);
        if (fabs(loss) < 1e30)
            ck_assert_msg(fabs((double)losses[i] - loss) <= 2e-6 * (1 + fabs(loss)),
                          "scores %g %g %g, kind %u: %.9g, expected %.9g", (double)row[0], (double)row[1],
                          (double)row[2], i % KINDS, (double)losses[i], loss);
        for (uint32_t k = 0; k < n; k++) {
            const double want = wanted[k], got = (double)gradient_of(&t, params[i])[k];
            ck_assert_msg(fabs(got - want) < 1e-5 || (isnan(got) && isnan(want)),
                          "scores %g %g %g, kind %u: d / d x[%u] is %g, expected %g", (double)row[0], (double)row[1],
                          (double)row[2], i % KINDS, k, got, want);
        }
    }
}

/* Scores that are all far from 0 lose no precision: the loss depends on their differences. */
TEST_EACH(smoothing_of_great_scores_keeps_their_differences, 0, SETTINGS) {
    const float near[] = {0.5f, -1.25f, 1.5f, 0}, far[] = {1e5f + 0.5f, 1e5f - 1.25f, 1e5f + 1.5f, 1e5f};
    float values[2], *outs[] = {&values[0], &values[1]};
    const vpps_options o = options_of(_i);
    AT_END(training_end) training t = training_of(1);
    training_start(&t, &o);
    vpps_node losses[2];
    for (uint32_t i = 0; i < 2; i++)
        losses[i] = vpps_cross_entropy_with(t.g, vpps_input(t.g, 4, 1, i ? far : near), 2, VPPS_NO_NODE, 0.1f);
    TEST_OK(vpps_forward(t.h, t.g, 2, losses, outs));
    ck_assert_float_eq_tol(values[1], values[0], 1e-6f);
}

/* ---------------------------------------------------------------- constants
 *
 * A cell joins constants, which must not lead beyond the range of floats where the operations one by one stay in it, nor back into it. */

enum { CHAINS = 60, STEPS = 5, OPERATIONS = 9 };

static vpps_node add_chain(vpps_graph *g, vpps_node x, uint64_t random) {
    static const float constants[] = {1e-25f, -1e-18f, 1e-37f, 1e25f, 1e18f, -1e37f, 1, -1, 0, INFINITY};
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t operation = vpps_random_below(&random, OPERATIONS);
        const float f = constants[vpps_random_below(&random, VPPS_COUNT(constants))];
        const vpps_node c = vpps_constant(g, PAIRS, 1, f);
        switch (operation) {
        case 0: x = vpps_negate(g, x); break;
        case 1: x = vpps_add(g, x, c); break;
        case 2: x = vpps_sub(g, c, x); break;
        case 3: x = vpps_div(g, x, c); break;
        case 4: x = vpps_mul(g, x, vpps_scale(g, c, 1e-20f)); break;
        case 5: x = vpps_scale_by(g, x, vpps_constant(g, 1, 1, f)); break;
        case 6: x = vpps_average(g, 2, (vpps_node[]){x, c}); break;
        default: x = vpps_scale(g, x, f); break;
        }
    }
    return x;
}

TEST_EACH(constants_in_a_cell_do_what_they_do_outside, 0, 2) {
    float x[PAIRS];
    static float values[2][CHAINS][PAIRS];
    float *outs[2 * CHAINS];
    vpps_node nodes[2 * CHAINS];
    uint64_t random = test_seed();
    const vpps_options o = options_of(_i);
    for (uint32_t i = 0; i < PAIRS; i++)
        x[i] = i ? ldexpf(2 * vpps_random_unit(&random) - 1, (int)vpps_random_below(&random, 250) - 124) : 1e30f;
    AT_END(training_end) training t = training_of(1);
    vpps_cell cells[CHAINS];
    for (uint32_t i = 0; i < CHAINS; i++) {
        vpps_graph *r = begin_cell(t.model, (char[]){(char)('0' + i / 10), (char)('0' + i % 10), 0});
        TEST_OK(vpps_push(r, add_chain(r, vpps_pull(r, PAIRS, 1), test_seed() + i)));
        cells[i] = end_cell(r);
    }
    training_start(&t, &o);
    const vpps_node pull = vpps_input(t.g, PAIRS, 1, x);
    for (uint32_t i = 0; i < CHAINS; i++) {
        nodes[i] = vpps_pushed(t.g, APPLY(t.g, cells[i], PULLS(1, &pull)), 0);
        nodes[CHAINS + i] = add_chain(t.g, pull, test_seed() + i);
        outs[i] = values[0][i];
        outs[CHAINS + i] = values[1][i];
    }
    TEST_OK(vpps_forward(t.h, t.g, 2 * CHAINS, nodes, outs));
    for (uint32_t i = 0; i < CHAINS; i++)
        for (uint32_t e = 0; e < PAIRS; e++) {
            const double in = (double)values[0][i][e], want = (double)values[1][i][e];
            ck_assert_msg(in == want || (isnan(in) && isnan(want)) || fabs(in - want) <= 1e-6 * fabs(want) + 0x1p-125,
                          "chain %u of %g: %g in a cell, %g outside (VPPS_TEST_SEED=%llu)", i, (double)x[e], in, want,
                          (unsigned long long)test_seed());
        }
}

int main(void) {
    gpu_ask_compiler();
    return test_main("infinity");
}
