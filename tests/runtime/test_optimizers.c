/* test_optimizers.c - learning rates that are not given, which norm clips gradients, and sums of gradients. (That a step follows the formulas of vpps.h:
 * test_random.c, codegen/test_instructions.c.) */
#include "graph/model.h"
#include "runtime/small_network.h"

/* Returns options with plain SGD. */
static vpps_options options_of(uint32_t vps, float lr, float clip) {
    vpps_options options = default_options();
    options.optimizer = (vpps_optimizer){.kind = VPPS_SGD, .lr = lr, .clip = clip};
    options.vps = vps;
    options.gradients = VPPS_GRADIENTS_DEFERRED;
    options.pool_bytes = 64u << 20;
    options.verify = true;
    return options;
}

TEST_GROUP("optimizers", .seconds = 60);

/* Options without a learning rate get the table's; a rate computed from VPPS_DEFAULT_LR is refused. */
TEST_EACH(every_optimizer_has_its_learning_rate, 0, VPPS_OPTIMIZERS) {
    static const float rates[] = {0.1f, 0.1f, 0.05f, 0.002f, 0.002f};
    float *got[2];
    size_t count = 0;
    for (int given = 0; given < 2; given++) {
        AT_END(sn_close) small_network n = sn_of(1);
        vpps_options options = default_options();
        options.optimizer.kind = (vpps_optimizer_kind)_i;
        if (given) options.optimizer.lr = rates[_i];
        TEST_OK(vpps_handle_create(&n.h, n.model, &options));
        sn_fb(&n, 1);
        got[given] = handle_values(n.model, n.h, &count);
        vpps_handle_destroy(n.h);
        options.optimizer.lr = VPPS_DEFAULT_LR / 2;
        TEST_FAILS(vpps_handle_create(&n.h, n.model, &options), VPPS_ARGUMENT, "lr");
    }
    ck_assert_mem_eq(got[0], got[1], count * sizeof(float));
    ck_assert_float_eq(vpps_default_lr((vpps_optimizer_kind)_i), rates[_i]);
    ck_assert_float_nan(vpps_default_lr((vpps_optimizer_kind)VPPS_OPTIMIZERS));
    free(got[0]);
    free(got[1]);
}

/* Returns the bf16 number nearest to a normal number; ties go to even. */
static double nearest_bf16(float x) {
    const uint32_t u = vpps_float_bits(x);
    return (double)vpps_bits_float((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u);
}

/* The gradient of W is the sum of n outer products d x^T, of rounded vectors in bf16. With W = 0, a rate of 1 and clipping to a quarter of the norm
 * (computed here in double), W becomes the negative gradient divided by 4. For few vectors a CPU finds the norm without the gradient. */
TEST_EACH(clipping_is_by_the_norm_of_sums_of_outer_products, 0, 3 * 14) {
    enum { MOST = 70, ROWS_OF_W = 33, COLS_OF_W = 20 };
    static const uint32_t counts[] = {1, 2, 5, 19, 64, 65, MOST};
    static const struct {
        vpps_precision precision;
        double tolerance; /* for products with two parts: bf16.h */
    } kinds_of_products[] = {
        {VPPS_PRECISION_FP32, 1e-6}, {VPPS_PRECISION_BF16, 1e-6}, {VPPS_PRECISION_BF16X3, 0x1p-14}};
    const vpps_precision precision = kinds_of_products[_i / 14].precision;
    static float d[MOST][ROWS_OF_W], x[MOST][COLS_OF_W];
    static double gradient[COLS_OF_W][ROWS_OF_W];
    const uint32_t n = counts[_i / 2 % 7];
    const bool cancels = _i % 2; /* the second half of the terms cancels the first */
    const vpps_init zero = {.kind = VPPS_INIT_CONSTANT};
    uint64_t state = 5;
    double norm = 0, bound[2] = {0};
    memset(gradient, 0, sizeof gradient);
    for (uint32_t i = 0; i < n; i++) {
        const bool back = cancels && i >= n / 2 && n / 2;
        for (uint32_t r = 0; r < ROWS_OF_W; r++)
            d[i][r] = back ? -d[i - n / 2][r] : (float)vpps_random_below(&state, 2001) / 1000 - 1;
        for (uint32_t c = 0; c < COLS_OF_W; c++)
            x[i][c] = back ? x[i - n / 2][c] : (float)vpps_random_below(&state, 2001) / 1000 - 1;
        for (uint32_t r = 0; r < ROWS_OF_W; r++) bound[0] += (double)d[i][r] * (double)d[i][r];
        for (uint32_t c = 0; c < COLS_OF_W; c++) bound[1] += (double)x[i][c] * (double)x[i][c];
        for (uint32_t c = 0; c < COLS_OF_W; c++)
            for (uint32_t r = 0; r < ROWS_OF_W; r++)
                gradient[c][r] += precision == VPPS_PRECISION_BF16 ? nearest_bf16(d[i][r]) * nearest_bf16(x[i][c])
                                                                   : (double)d[i][r] * (double)x[i][c];
    }
    for (uint32_t c = 0; c < COLS_OF_W; c++)
        for (uint32_t r = 0; r < ROWS_OF_W; r++) norm += gradient[c][r] * gradient[c][r];
    norm = sqrt(norm);
    const double most = sqrt(bound[0] * bound[1]);
    const double clip = norm > most / 100 ? norm / 4 : most / 1000; /* no clipping if everything cancels */
    for (uint32_t vps = 1; vps <= 3; vps++) {
        vpps_param W;
        vpps_node terms[MOST];
        vpps_options o = options_of(vps, 1, (float)clip);
        o.precision = precision;
        AT_END(training_end) training t = training_of(1);
        TEST_OK(vpps_add_matrix(t.model, &W, "W", ROWS_OF_W, COLS_OF_W, &zero));
        training_start(&t, &o);
        for (uint32_t i = 0; i < n; i++)
            terms[i] = vpps_dot(t.g, vpps_input(t.g, ROWS_OF_W, 1, d[i]),
                                vpps_matvec(t.g, W, vpps_input(t.g, COLS_OF_W, 1, x[i])));
        TEST_OK(vpps_fb(t.h, t.g, vpps_sum(t.g, n, terms), NULL));
        TEST_OK(vpps_read_parameters(t.h));
        const float *w = vpps_param_values(t.model, W);
        const double factor = norm > clip ? clip / norm : 1;
        for (uint32_t c = 0; c < COLS_OF_W; c++)
            for (uint32_t r = 0; r < ROWS_OF_W; r++)
                ck_assert_double_eq_tol((double)w[r * COLS_OF_W + c], -factor * gradient[c][r],
                                        kinds_of_products[_i / 14].tolerance * most);
    }
}

/* Makes a step of a model whose matrices' gradients are products with inputs, a table's entries and a vector. values: the matrices of entries and of
 * the vector after the step. Of two virtual processors the first has all rows, the second an entry. */
static void step_of_products(uint32_t vps, float *values) {
    enum { HEIGHT = 16, LONG = 8192, SHORT = 8, MATRICES = 5 };
    static const uint32_t widths[MATRICES] = {LONG, LONG, SHORT, SHORT, SHORT};
    static float x[LONG];
    const vpps_init some = {.kind = VPPS_INIT_UNIFORM, .a = -0.5f, .b = 0.5f};
    vpps_param matrices[MATRICES], table, vector;
    char name[] = "0";
    const vpps_options o = options_of(vps, 1, 0);
    for (uint32_t i = 0; i < LONG; i++) x[i] = (float)(i % 7) * 0.01f;
    AT_END(training_end) training t = training_of(3);
    for (uint32_t i = 0; i < MATRICES; i++, name[0]++)
        TEST_OK(vpps_add_matrix(t.model, &matrices[i], name, HEIGHT, widths[i], &some));
    TEST_OK(vpps_add_lookup(t.model, &table, "table", 2, SHORT, 1, &some));
    TEST_OK(vpps_add_vector(t.model, &vector, "vector", SHORT, &some));
    training_start(&t, &o);
    const vpps_node factors[MATRICES] = {vpps_input(t.g, LONG, 1, x), vpps_input(t.g, LONG, 1, x),
                                         vpps_lookup(t.g, table, 0), vpps_lookup(t.g, table, 1),
                                         vpps_parameter(t.g, vector)};
    vpps_node products[MATRICES];
    for (uint32_t i = 0; i < MATRICES; i++) products[i] = vpps_tanh(t.g, vpps_matvec(t.g, matrices[i], factors[i]));
    TEST_OK(vpps_fb(t.h, t.g, vpps_dot(t.g, vpps_sum(t.g, 2, products), vpps_sum(t.g, 3, products + 2)), NULL));
    TEST_OK(vpps_read_parameters(t.h));
    for (uint32_t i = 2; i < MATRICES; i++, values += HEIGHT * SHORT)
        memcpy(values, vpps_param_values(t.model, matrices[i]), HEIGHT * SHORT * sizeof *values);
}

/* While a virtual processor computes gradients in its update, another may change entries and vectors that they are products with. */
TEST(gradients_are_of_parameters_before_the_step) {
    enum { N = 3 * 16 * 8 };
    static float alone[N], together[N];
    step_of_products(1, alone);
    for (int run = 0; run < 4; run++) {
        step_of_products(2, together);
        for (uint32_t i = 0; i < N; i++) ck_assert_float_eq_tol(alone[i], together[i], 1e-4f);
    }
}

/* A block of many vertices with short lists: the update processes all vectors of a gradient at once. */
TEST_EACH(gradients_of_few_members_of_many_vertices, 0, 4) {
    enum { VERTICES = 1100, MEMBERS = 60, SIZE = 16, WORDS = 50 };
    static vpps_node losses[VERTICES];
    vpps_options o = options_of(1, 0.1f, _i % 2 ? 5 : 0);
    o.precision = _i / 2 ? VPPS_PRECISION_BF16 : VPPS_PRECISION_FP32;
    o.waves = 1;
    AT_END(training_end) training t = training_of(7);
    const vpps_param T = add_lookup(t.model, "T", WORDS, SIZE, 1), W = add_matrix(t.model, "W", SIZE, SIZE);
    vpps_graph *r = begin_cell(t.model, "cell");
    const vpps_node y = vpps_tanh(r, vpps_matvec(r, W, vpps_pull_list(r, SIZE, 1)));
    TEST_OK(vpps_push(r, vpps_sum_elements(r, vpps_sum(r, 1, &y))));
    const vpps_cell cell = end_cell(r);
    training_start(&t, &o);
    for (uint32_t i = 0; i < VERTICES; i++) {
        const vpps_node word = vpps_tanh(t.g, vpps_lookup(t.g, T, i % WORDS)), *lists[] = {&word};
        const uint32_t n = i * MEMBERS / VERTICES != (i + 1) * MEMBERS / VERTICES;
        const vpps_vertex v = APPLY(t.g, cell, .n_pull_lists = 1, .pull_lists = lists, .n_members = n);
        losses[i] = vpps_pushed(t.g, v, 0);
    }
    ck_assert(isfinite(train_batch(t.h, t.g, vpps_sum(t.g, VERTICES, losses))));
}

/* Returns the gradient of list members that are scaled by a value of which each virtual processor has a share, by a matrix's rows. */
enum { SHARED_ROWS = 128, DEPTH = 512, KEY = 24, KEYS = 7 };
static void gradients_of_keys(uint32_t vps, float gradient[KEYS * KEY]) {
    vpps_options o = options_of(vps, VPPS_DEFAULT_LR, 0);
    o.groups = 1;
    AT_END(training_end) training t = training_of(7);
    const vpps_param T = add_lookup(t.model, "T", KEYS, KEY, 1), W = add_matrix(t.model, "W", SHARED_ROWS, 1),
                     U = add_matrix(t.model, "U", SHARED_ROWS, DEPTH), P = add_lookup(t.model, "P", 3, DEPTH, 1),
                     Q = add_lookup(t.model, "Q", 3, KEY, 1), V = add_lookup(t.model, "V", 1, SHARED_ROWS, 1);
    vpps_graph *r = begin_cell(t.model, "cell");
    const vpps_node keys = vpps_pull_list(r, KEY, 1), query = vpps_tanh(r, vpps_pull(r, KEY, 1));
    const vpps_node v = vpps_pull(r, SHARED_ROWS, 1), p = vpps_pull(r, DEPTH, 1);
    const vpps_node y = vpps_tanh(r, vpps_add(r, vpps_matvec(r, W, vpps_dot(r, keys, query)), vpps_matvec(r, U, p)));
    /* a recurrence: the factors of a head would have to outlive its slice */
    TEST_OK(vpps_scatter(r, vpps_add(r, vpps_dot(r, vpps_sum(r, 1, &y), v), vpps_gather(r, 0, 0, 1, 1))));
    const vpps_cell cell = end_cell(r);
    training_start(&t, &o);
    vpps_vertex last = vpps_source(t.g, 1, (vpps_node[]){vpps_zeros(t.g, 1, 1)});
    for (uint32_t i = 0; i < 3; i++) {
        vpps_node list[4];
        for (uint32_t k = 0; k < 4; k++) list[k] = vpps_scale(t.g, vpps_lookup(t.g, T, (2 * i + k) % KEYS), 1.5f);
        const vpps_node *lists[] = {list};
        const vpps_node pulls[] = {vpps_lookup(t.g, Q, i), vpps_lookup(t.g, V, 0), vpps_lookup(t.g, P, i)};
        last = APPLY(t.g, cell, CHILDREN(1, &last), PULLS(3, pulls), .n_pull_lists = 1, .pull_lists = lists,
                     .n_members = 4);
    }
    TEST_OK(vpps_backward(t.h, t.g, vpps_scattered(t.g, last, 0), NULL));
    TEST_OK(vpps_read_gradients(t.h));
    const vpps_gradient of_keys = param_gradient(t.model, T);
    ck_assert_uint_eq(of_keys.n, KEYS);
    memcpy(gradient, of_keys.values, KEYS * KEY * sizeof *gradient);
}

TEST(members_are_scaled_by_sums_of_shares) {
    static float alone[KEYS * KEY], shared[KEYS * KEY];
    gradients_of_keys(1, alone);
    for (uint32_t vps = 2; vps <= 8; vps *= 2) {
        gradients_of_keys(vps, shared);
        for (uint32_t i = 0; i < KEYS * KEY; i++) ck_assert_float_eq_tol(alone[i], shared[i], 1e-4f);
    }
}
