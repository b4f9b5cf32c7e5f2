/* test_graph.c - the interface of graph and model: shapes, errors that stay, memory, initialisers. */
#include "common/training.h"
#include "graph/graph.h"

#include <malloc.h>

typedef struct fixture {
    vpps_model *model;
    vpps_graph *g;
    vpps_param W, W2, b, b9, E, M; /* W 4x3, W2 5x3, b 4, b9 9, E 6 entries of 3x1, M 2 entries of 3x2 */
} fixture;

static fixture open_fixture(void) {
    fixture f;
    TEST_OK(vpps_model_create(&f.model, 1));
    TEST_OK(vpps_add_matrix(f.model, &f.W, "W", 4, 3, NULL));
    TEST_OK(vpps_add_matrix(f.model, &f.W2, "W2", 5, 3, NULL));
    TEST_OK(vpps_add_vector(f.model, &f.b, "b", 4, NULL));
    TEST_OK(vpps_add_vector(f.model, &f.b9, "b9", 9, NULL));
    TEST_OK(vpps_add_lookup(f.model, &f.E, "E", 6, 3, 1, NULL));
    TEST_OK(vpps_add_lookup(f.model, &f.M, "M", 2, 3, 2, NULL));
    TEST_OK(vpps_graph_create(&f.g, f.model));
    return f;
}

static void close_fixture(fixture *f) {
    vpps_graph_destroy(f->g);
    vpps_model_destroy(f->model);
}

/* Checks that the graph has failed with this status, and that the message has all of these words. */
static void expect_failure(vpps_graph *g, const char *what, vpps_status status, const char *words) {
    const vpps_status got = vpps_graph_status(g);
    ck_assert_msg(got == status, "%s: %s instead of %s: %s", what, vpps_status_name(got), vpps_status_name(status),
                  vpps_error_message());
    char copy[256];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *w = strtok(copy, "|"); w; w = strtok(NULL, "|"))
        ck_assert_msg(strstr(vpps_error_message(), w), "%s: the message \"%s\" lacks \"%s\"", what,
                      vpps_error_message(), w);
}

/* ---------------------------------------------------------------- errors */

/* Makes each call with these nodes: s 1x1, v3 and u3 3x1, v4 4x1, m 3x2, n 2x5. */
#define EACH_ERROR(X)                                                                                                  \
    X(vpps_add(g, v3, v4), SHAPE, "add|3 x 1|4 x 1")                                                                   \
    X(vpps_sub(g, v3, m), SHAPE, "sub|3 x 1|3 x 2")                                                                    \
    X(vpps_mul(g, v3, v4), SHAPE, "mul|3 x 1|4 x 1")                                                                   \
    X(vpps_div(g, v3, s), SHAPE, "div|3 x 1|1 x 1")                                                                    \
    X(vpps_max(g, v3, v4), SHAPE, "max|3 x 1|4 x 1")                                                                   \
    X(vpps_min(g, v3, v4), SHAPE, "min|3 x 1|4 x 1")                                                                   \
    X(vpps_sum(g, 3, ((vpps_node[]){v3, u3, v4})), SHAPE, "sum|3 x 1|4 x 1")                                           \
    X(vpps_average(g, 2, ((vpps_node[]){v3, v4})), SHAPE, "average|3 x 1|4 x 1")                                       \
    X(vpps_max_of(g, 2, ((vpps_node[]){v3, v4})), SHAPE, "max_of|3 x 1|4 x 1")                                         \
    X(vpps_min_of(g, 2, ((vpps_node[]){v3, v4})), SHAPE, "min_of|3 x 1|4 x 1")                                         \
    X(vpps_sum(g, 0, NULL), ARGUMENT, "sum|0")                                                                         \
    X(vpps_concat(g, 0, NULL), ARGUMENT, "concat|0")                                                                   \
    X(vpps_matmul(g, m, v3), SHAPE, "matmul|3 x 2|3 x 1")                                                              \
    X(vpps_matmul(g, v3, v4), SHAPE, "matmul|3 x 1|4 x 1")                                                             \
    X(vpps_matvec(g, f.W, v4), SHAPE, "affine|W|4 x 3|4 x 1")                                                          \
    X(vpps_affine1(g, f.b9, f.W, v3), SHAPE, "affine|b9|9|4")                                                          \
    X(vpps_affine2(g, f.b, f.W, v3, f.W2, v3), SHAPE, "affine|W2|5 x 1|4 x 1")                                         \
    X(vpps_affine2(g, f.b, f.W, v3, f.W, m), SHAPE, "affine|4 x 2|4 x 1")                                              \
    X(vpps_affine(g, f.b, 0, NULL, NULL), ARGUMENT, "affine|0")                                                        \
    X(vpps_scale_by(g, v3, v4), SHAPE, "scale_by|4 x 1|scalar")                                                        \
    X(vpps_concat(g, 2, ((vpps_node[]){v3, m})), SHAPE, "concat|3 x 2|1 column")                                       \
    X(vpps_slice(g, v3, 2, 2), SHAPE, "slice|3 x 1")                                                                   \
    X(vpps_slice(g, v3, 0, 0), SHAPE, "slice|3 x 1")                                                                   \
    X(vpps_slice(g, v3, UINT32_MAX, 2), SHAPE, "slice|3 x 1")                                                          \
    X(vpps_slice(g, v3, 1, UINT32_MAX), SHAPE, "slice|3 x 1")                                                          \
    X(vpps_reshape(g, v3, 2, 2), SHAPE, "reshape|3 x 1|2 x 2")                                                         \
    X(vpps_reshape(g, v3, 65536, 65537), SHAPE, "reshape|3 x 1|65536 x 65537")                                         \
    X(vpps_hstack(g, 0, NULL), ARGUMENT, "hstack|0")                                                                   \
    X(vpps_hstack(g, 2, NULL), ARGUMENT, "hstack|NULL")                                                                \
    X(vpps_hstack(g, 2, ((vpps_node[]){m, v4})), SHAPE, "hstack|argument 1|4 x 1|3 rows")                              \
    X(vpps_select_rows(g, m, 2, ((const uint32_t[]){2, 3})), SHAPE, "select_rows|row 1 is number 3|3 x 2")             \
    X(vpps_select_rows(g, m, 0, ((const uint32_t[]){2, 3})), ARGUMENT, "select_rows|0 rows")                           \
    X(vpps_select_rows(g, m, 2, NULL), ARGUMENT, "select_rows|NULL")                                                   \
    X(vpps_select_rows_at(g, v3, m), SHAPE, "select_rows|numbers of 3 x 2|vector")                                     \
    X(vpps_dot(g, v3, v4), SHAPE, "dot|3 x 1|4 x 1")                                                                   \
    X(vpps_squared_distance(g, v3, m), SHAPE, "squared_distance|3 x 1|3 x 2")                                          \
    X(vpps_broadcast(g, v3, 4, 2), SHAPE, "broadcast|3 x 1|4 rows|2 columns")                                          \
    X(vpps_broadcast(g, m, 3, 4), SHAPE, "broadcast|3 x 2|3 rows|4 columns")                                           \
    X(vpps_broadcast(g, s, 0, 4), SHAPE, "broadcast|1 x 1|0 rows")                                                     \
    X(vpps_broadcast(g, s, 2048, 2048), SHAPE, "broadcast|1 x 1|2^22")                                                 \
    X(vpps_rms_norm(g, v3, v4, 1), SHAPE, "rms_norm|gain|4 x 1|3 x 1")                                                 \
    X(vpps_rms_norm(g, v3, u3, 0), ARGUMENT, "rms_norm|epsilon|0")                                                     \
    X(vpps_layer_norm(g, v3, u3, m, 1), SHAPE, "layer_norm|bias|3 x 2|3 x 1")                                          \
    X(vpps_layer_norm(g, v3, u3, u3, NAN), ARGUMENT, "layer_norm|epsilon|nan")                                         \
    X(vpps_weighted_sum(g, v3, 2, ((vpps_node[]){v4, v4})), SHAPE, "weighted_sum|3 x 1|2 x 1")                         \
    X(vpps_weighted_sum(g, v3, 3, ((vpps_node[]){v4, v4, v3})), SHAPE, "weighted_sum|4 x 1|3 x 1")                     \
    X(vpps_weighted_sum(g, v3, 0, NULL), ARGUMENT, "weighted_sum|0")                                                   \
    X(vpps_cross_entropy(g, m, 0), SHAPE, "cross_entropy|3 x 2|vector")                                                \
    X(vpps_cross_entropy(g, v3, 3), ARGUMENT, "cross_entropy|3")                                                       \
    X(vpps_smooth_label(g, m, 0, 0.1f), SHAPE, "smooth_label|3 x 2|vector")                                            \
    X(vpps_smooth_label(g, v3, 3, 0.1f), ARGUMENT, "smooth_label|3")                                                   \
    X(vpps_smooth_label(g, v3, 0, 1.5f), ARGUMENT, "smooth_label|1.5|0 to 1")                                          \
    X(vpps_cross_entropy_with(g, v3, 0, v4, 0), SHAPE, "cross_entropy_with|4 x 1|3 x 1")                               \
    X(vpps_cross_entropy_with(g, v3, 0, m, 0.1f), SHAPE, "cross_entropy_with|3 x 2|3 x 1")                             \
    X(vpps_cross_entropy_with(g, m, 0, VPPS_NO_NODE, 0.1f), SHAPE, "3 x 2|vector")                                     \
    X(vpps_cross_entropy_with(g, v3, 3, VPPS_NO_NODE, 0.1f), ARGUMENT, "3")                                            \
    X(vpps_cross_entropy_with(g, v3, 0, VPPS_NO_NODE, -0.1f), ARGUMENT, "cross_entropy_with|-0.1|0 to 1")              \
    X(vpps_cross_entropy_with(g, v3, 0, VPPS_NO_NODE, NAN), ARGUMENT, "cross_entropy_with|nan|0 to 1")                 \
    X(vpps_hinge(g, v3, 7, 1), ARGUMENT, "hinge|7|3")                                                                  \
    X(vpps_binary_log_loss(g, v3, v4), SHAPE, "binary_log_loss|3 x 1|4 x 1")                                           \
    X(vpps_lookup(g, f.E, 6), ARGUMENT, "lookup|6")                                                                    \
    X(vpps_lookup(g, f.W, 0), ARGUMENT, "lookup|W|matrix|lookup table")                                                \
    X(vpps_lookup(g, 99, 0), ARGUMENT, "lookup|99|6")                                                                  \
    X(vpps_parameter(g, f.E), ARGUMENT, "parameter|E|lookup table|vector or a matrix|vpps_lookup")                     \
    X(vpps_parameter(g, VPPS_NO_PARAM), ARGUMENT, "parameter")                                                         \
    X(vpps_matvec(g, f.b, s), ARGUMENT, "affine|b|vector|matrix")                                                      \
    X(vpps_affine1(g, f.W, f.W, v3), ARGUMENT, "affine|W|matrix|vector")                                               \
    X(vpps_elu(g, v3, 0), ARGUMENT, "elu|0")                                                                           \
    X(vpps_elu(g, v3, -1), ARGUMENT, "elu|-1")                                                                         \
    X(vpps_elu(g, v3, NAN), ARGUMENT, "elu|nan")                                                                       \
    X(vpps_dropout(g, v3, 1), ARGUMENT, "dropout|1")                                                                   \
    X(vpps_dropout(g, v3, -0.1f), ARGUMENT, "dropout|-0.1")                                                            \
    X(vpps_dropout(g, v3, NAN), ARGUMENT, "dropout|nan")                                                               \
    X(vpps_input(g, 0, 1, data), ARGUMENT, "input|0 x 1")                                                              \
    X(vpps_input(g, 1, 0, data), ARGUMENT, "input|1 x 0")                                                              \
    X(vpps_input(g, 65536, 65536, data), ARGUMENT, "input|65536 x 65536")                                              \
    X(vpps_constant(g, 0, 1, 1), ARGUMENT, "constant|0 x 1|expected")                                                  \
    X(vpps_zeros(g, 65536, 65536), ARGUMENT, "constant|65536 x 65536|expected")                                        \
    X(vpps_input(g, 3, 1, NULL), ARGUMENT, "input|3 x 1|data")                                                         \
    X(vpps_tanh(g, 1000), ARGUMENT, "tanh|1000")                                                                       \
    X(vpps_pushed(g, 0, 0), ARGUMENT, "pushed|vertex")                                                                 \
    X(vpps_scattered(g, 5, 0), ARGUMENT, "scattered|vertex")                                                           \
    X(vpps_gather(g, 0, 0, 3, 1), STATE, "gather|cell")                                                                \
    X(vpps_gather_list(g, 0, 3, 1), STATE, "gather_list|cell")                                                         \
    X(vpps_pull(g, 3, 1), STATE, "pull|cell")                                                                          \
    X(vpps_pull_index(g), STATE, "pull_index|cell")                                                                    \
    X(vpps_source(g, 1, ((vpps_node[]){77})), ARGUMENT, "source|77")                                                   \
    X(APPLY(g, 0), ARGUMENT, "apply|cell")

TEST(errors_name_operation_and_shapes) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    static const float data[10] = {0};
#define X(call, status, words)                                                                                         \
    {                                                                                                                  \
        vpps_graph_clear(g);                                                                                           \
        const vpps_node s = vpps_input(g, 1, 1, data), v3 = vpps_lookup(g, f.E, 0), u3 = vpps_lookup(g, f.E, 1);       \
        const vpps_node v4 = vpps_parameter(g, f.b), m = vpps_lookup(g, f.M, 1), n = vpps_input(g, 2, 5, data);        \
        (void)s, (void)v3, (void)u3, (void)v4, (void)m, (void)n;                                                       \
        TEST_OK(vpps_graph_status(g));                                                                                 \
        const uint32_t size = vpps_graph_size(g);                                                                      \
        ck_assert_msg((call) == VPPS_NO_NODE, "%s gave a node", #call);                                                \
        expect_failure(g, #call, VPPS_##status, words);                                                                \
        ck_assert_uint_eq(vpps_graph_size(g), size);                                                                   \
    }
    EACH_ERROR(X)
#undef X
}

TEST(first_error_stays) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    const vpps_node v = vpps_lookup(g, f.E, 0);
    const vpps_node wrong = vpps_add(g, v, vpps_parameter(g, f.b));
    ck_assert_uint_eq(wrong, VPPS_NO_NODE);
    char first[VPPS_MESSAGE_BYTES];
    snprintf(first, sizeof first, "%s", vpps_error_message());
    /* what is made of the failed node, and even a correct call, fails silently */
    ck_assert_uint_eq(vpps_tanh(g, wrong), VPPS_NO_NODE);
    ck_assert_uint_eq(vpps_sum(g, 2, (vpps_node[]){v, wrong}), VPPS_NO_NODE);
    ck_assert_uint_eq(vpps_affine1(g, f.b, f.W, wrong), VPPS_NO_NODE);
    ck_assert_uint_eq(vpps_lookup(g, f.E, 1000), VPPS_NO_NODE);
    ck_assert_uint_eq(vpps_source(g, 1, &v), VPPS_NO_VERTEX);
    vpps_param p;
    ck_assert_int_eq(vpps_param_find(f.model, "none", &p), VPPS_ARGUMENT); /* another message meanwhile */
    TEST_FAILS(vpps_graph_status(g), VPPS_SHAPE, "add");
    ck_assert_str_eq(vpps_error_message(), first);
    vpps_graph_clear(g);
    TEST_OK(vpps_graph_status(g));
    ck_assert_uint_eq(vpps_graph_size(g), 0);
    ck_assert_uint_eq(vpps_lookup(g, f.E, 5), 0);
    uint32_t rows, cols;
    TEST_FAILS(vpps_node_shape(g, 1000, &rows, &cols), VPPS_ARGUMENT, "1000");
    TEST_FAILS(vpps_node_shape(g, VPPS_NO_NODE, &rows, &cols), VPPS_ARGUMENT, "");
    TEST_OK(vpps_graph_status(g)); /* asking for a shape is no building */
}

/* ---------------------------------------------------------------- the model */

TEST(model_errors) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_param p;
    vpps_model *m = f.model;
    TEST_FAILS(vpps_add_vector(m, &p, "W", 3, NULL), VPPS_ARGUMENT, "W");
    ck_assert_uint_eq(p, VPPS_NO_PARAM);
    TEST_FAILS(vpps_add_vector(m, &p, "", 3, NULL), VPPS_ARGUMENT, "name");
    TEST_FAILS(vpps_add_vector(m, &p, NULL, 3, NULL), VPPS_ARGUMENT, "name");
    TEST_FAILS(vpps_add_vector(m, &p, "a\nb", 3, NULL), VPPS_ARGUMENT, "control character, byte 1");
    TEST_FAILS(vpps_add_vector(m, &p, "\x7f", 3, NULL), VPPS_ARGUMENT, "control");
    TEST_FAILS(vpps_add_vector(m, &p, "ab\xc2\x9b", 3, NULL), VPPS_ARGUMENT, "control character, byte 2");
    TEST_FAILS(vpps_add_vector(m, &p, "\xff", 3, NULL), VPPS_ARGUMENT, "UTF-8");
    char euros[602] = "a"; /* longer than a message, which is cut between two characters */
    for (size_t i = 1; i < sizeof euros - 1; i += 3) memcpy(euros + i, "\xe2\x82\xac", 4);
    TEST_OK(vpps_add_vector(m, &p, euros, 3, NULL));
    TEST_FAILS(vpps_add_vector(m, &p, euros, 3, NULL), VPPS_ARGUMENT, "parameter a\xe2\x82\xac");
    const char *message = vpps_error_message() + strlen("parameter a");
    ck_assert_uint_gt(strlen(message), 400);
    ck_assert_uint_eq(strlen(message) % 3, 0);
    TEST_FAILS(vpps_add_vector(m, &p, "z", 0, NULL), VPPS_ARGUMENT, "z");
    TEST_FAILS(vpps_add_matrix(m, &p, "z", 3, 0, NULL), VPPS_ARGUMENT, "z");
    TEST_FAILS(vpps_add_lookup(m, &p, "z", 0, 3, 1, NULL), VPPS_ARGUMENT, "z");
    TEST_FAILS(vpps_add_matrix(m, &p, "z", 65536, 65536, NULL), VPPS_ARGUMENT, "65536");
    TEST_FAILS(vpps_add_lookup(m, &p, "z", UINT32_MAX, UINT32_MAX, UINT32_MAX, NULL), VPPS_ARGUMENT, "z");
    const vpps_init none = {.kind = VPPS_INIT_VALUES};
    TEST_FAILS(vpps_add_vector(m, &p, "z", 3, &none), VPPS_ARGUMENT, "z");
    TEST_FAILS(vpps_freeze(m, 99, true), VPPS_ARGUMENT, "99");
    vpps_param_info info = {.size = sizeof info};
    TEST_FAILS(vpps_param_describe(m, 99, &info), VPPS_ARGUMENT, "99");
    TEST_FAILS(vpps_param_find(m, "absent", &p), VPPS_ARGUMENT, "absent");
    ck_assert_ptr_null(vpps_param_values(m, 99));
    ck_assert_uint_eq(vpps_param_count(m), 7);

    TEST_OK(vpps_freeze(m, f.M, true));
    TEST_OK(vpps_param_find(m, "M", &p));
    ck_assert_uint_eq(p, f.M);
    TEST_OK(vpps_param_describe(m, p, &info));
    ck_assert_str_eq(info.name, "M");
    ck_assert_int_eq(info.kind, VPPS_LOOKUP);
    ck_assert(info.count == 2 && info.rows == 3 && info.cols == 2 && info.frozen);

    vpps_options o = default_options();
    o.vps = 1;
    vpps_handle *h = new_handle(m, &o);
    TEST_FAILS(vpps_add_vector(m, &p, "late", 3, NULL), VPPS_STATE, "late");
    vpps_handle_destroy(h);
    TEST_OK(vpps_add_vector(m, &p, "late", 3, NULL));
}

/* Positions in a graph have 32 bits: too many words are an error before memory is allocated. */
TEST(graphs_of_too_many_words) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *g = f.g;
    vpps_graph_clear(g);
    const vpps_node x = vpps_parameter(g, f.b);
    const vpps_node three[] = {x, x, x};
    g->n_words = UINT32_MAX - 3;
    ck_assert_uint_eq(vpps_sum(g, 3, three), VPPS_NO_NODE);
    TEST_FAILS(vpps_graph_status(g), VPPS_ARGUMENT, "graph: 2^32 words or more");
    vpps_graph_clear(g);
    g->n_words = UINT32_MAX - 4;
    ck_assert_uint_eq(vpps_source(g, 3, three), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(g), VPPS_ARGUMENT, "2^32 words");
    vpps_graph_clear(g);
    g->n_vertices = UINT32_MAX - 1;
    ck_assert_uint_eq(vpps_source(g, 0, NULL), VPPS_NO_VERTEX);
    TEST_FAILS(vpps_graph_status(g), VPPS_ARGUMENT, "2^32 vertices");
    vpps_graph_clear(g);
    g->n_data = UINT32_MAX - 2;
    ck_assert_uint_eq(vpps_input(g, 2, 1, (const float[]){1, 2}), VPPS_NO_NODE);
    TEST_FAILS(vpps_graph_status(g), VPPS_ARGUMENT, "2^32 numbers of inputs");
    vpps_graph_clear(g);
    ck_assert_uint_ne(vpps_input(g, 2, 1, (const float[]){1, 2}), VPPS_NO_NODE);
}

/* A message belongs to a failure: calls that succeed leave the last one as it is. */
TEST(success_leaves_the_message) {
    OWNED(vpps_model) *m = new_model(1);
    vpps_param p;
    TEST_OK(vpps_add_matrix(m, &p, "W", 4, 3, NULL));
    TEST_OK(vpps_add_vector(m, &p, "b", 4, NULL));
    TEST_OK(vpps_add_lookup(m, &p, "E", 6, 3, 1, NULL));
    TEST_OK(vpps_param_find(m, "b", &p));
    ck_assert_str_eq(vpps_error_message(), "");
    TEST_FAILS(vpps_param_find(m, "absent", &p), VPPS_ARGUMENT, "absent");
    TEST_OK(vpps_add_vector(m, &p, "c", 4, NULL));
    ck_assert_msg(strstr(vpps_error_message(), "absent"), "%s", vpps_error_message());
}

static void moments(const float *x, size_t n, double *mean, double *deviation, double *low, double *high) {
    double sum = 0, squares = 0;
    *low = *high = (double)x[0];
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
        *low = fmin(*low, (double)x[i]);
        *high = fmax(*high, (double)x[i]);
    }
    *mean = sum / (double)n;
    *deviation = sqrt(squares / (double)n - *mean * *mean);
}

TEST(initialisers) {
    enum { ROWS = 200, COLS = 300, N = ROWS * COLS };
    OWNED(vpps_model) *a = new_model(7), *b = new_model(7), *other = new_model(8);
    static float given[N];
    for (int i = 0; i < N; i++) given[i] = (float)i;
    const vpps_init uniform = {.kind = VPPS_INIT_UNIFORM, .a = -2, .b = 3};
    const vpps_init normal = {.kind = VPPS_INIT_NORMAL, .a = 1.5f, .b = 0.25f};
    const vpps_init constant = {.kind = VPPS_INIT_CONSTANT, .a = 4};
    const vpps_init values = {.kind = VPPS_INIT_VALUES, .values = given};
    const double glorot = sqrt(6.0 / (ROWS + COLS)), row = sqrt(6.0 / (ROWS + 1));
    vpps_model *models[] = {a, b, other};
    for (int k = 0; k < 3; k++) {
        vpps_param p;
        TEST_OK(vpps_add_matrix(models[k], &p, "glorot", ROWS, COLS, NULL));
        TEST_OK(vpps_add_lookup(models[k], &p, "glorot table", COLS, ROWS, 1, NULL));
        TEST_OK(vpps_add_matrix(models[k], &p, "uniform", ROWS, COLS, &uniform));
        TEST_OK(vpps_add_lookup(models[k], &p, "normal", COLS, ROWS, 1, &normal));
        TEST_OK(vpps_add_vector(models[k], &p, "bias", ROWS, NULL));
        TEST_OK(vpps_add_vector(models[k], &p, "constant", ROWS, &constant));
        TEST_OK(vpps_add_matrix(models[k], &p, "values", ROWS, COLS, &values));
    }
    const struct {
        double mean, deviation, low, high;
    } expected[] = {{0, glorot / sqrt(3), -glorot, glorot},
                    {0, row / sqrt(3), -row, row},
                    {0.5, 5 / sqrt(12), -2, 3},
                    {1.5, 0.25, 0, 3}};
    for (uint32_t p = 0; p < 4; p++) {
        double mean, deviation, low, high;
        moments(vpps_param_values(a, p), N, &mean, &deviation, &low, &high);
        const double sigma = expected[p].deviation, error = 5 * sigma / sqrt(N); /* five standard errors */
        ck_assert_msg(fabs(mean - expected[p].mean) < error, "parameter %u: mean %g", p, mean);
        ck_assert_msg(fabs(deviation - sigma) < error, "parameter %u: deviation %g instead of %g", p, deviation, sigma);
        ck_assert_msg(low >= expected[p].low - 1e-6 && high <= expected[p].high + 1e-6, "parameter %u: %g to %g", p,
                      low, high);
    }
    for (int i = 0; i < ROWS; i++) {
        ck_assert_float_eq(vpps_param_values(a, 4)[i], 0);
        ck_assert_float_eq(vpps_param_values(a, 5)[i], 4);
    }
    ck_assert_int_eq(memcmp(vpps_param_values(a, 6), given, sizeof given), 0);
    for (uint32_t p = 0; p < 4; p++) { /* equal seeds give equal values; other seeds give others */
        ck_assert_int_eq(memcmp(vpps_param_values(a, p), vpps_param_values(b, p), N * sizeof(float)), 0);
        ck_assert_int_ne(memcmp(vpps_param_values(a, p), vpps_param_values(other, p), N * sizeof(float)), 0);
    }
    ck_assert_int_ne(memcmp(vpps_param_values(a, 0), vpps_param_values(a, 1), N * sizeof(float)), 0);
}

/* ---------------------------------------------------------------- memory */

static vpps_node rebuild(fixture *f, vpps_cell cell, uint32_t n) {
    vpps_graph *g = f->g;
    static const float data[12] = {0};
    vpps_graph_clear(g);
    vpps_vertex last = VPPS_NO_VERTEX;
    vpps_node terms[64];
    for (uint32_t i = 0; i < n; i++) {
        const vpps_node x = vpps_lookup(g, f->E, i % 6), y = vpps_affine1(g, f->b, f->W, x);
        const vpps_node z = vpps_concat(g, 2, (vpps_node[]){vpps_tanh(g, y), vpps_input(g, 2 + i % 3, 1, data)});
        const vpps_node start = vpps_scale(g, x, (float)i);
        const vpps_vertex from = i % 8 ? last : vpps_source(g, 1, &start);
        last = APPLY(g, cell, CHILDREN(1, &from), PULLS(1, &x), INDICES(1, &(uint32_t){i % 6}));
        terms[i % 64] = vpps_add(g, vpps_sum_elements(g, z), vpps_pushed(g, last, 0));
    }
    const vpps_node loss = vpps_sum(g, n < 64 ? n : 64, terms);
    TEST_OK(vpps_graph_status(g));
    return loss;
}

TEST(no_allocation_once_warm) {
    AT_END(close_fixture) fixture f = open_fixture();
    vpps_graph *r = begin_cell(f.model, "step");
    const vpps_node h = vpps_gather(r, 0, 0, 3, 1), x = vpps_pull(r, 3, 1);
    const vpps_node y = vpps_tanh(r, vpps_add(r, h, vpps_mul(r, x, vpps_lookup(r, f.E, vpps_pull_index(r)))));
    vpps_scatter(r, y);
    vpps_push(r, vpps_dot(r, y, x));
    const vpps_cell cell = end_cell(r);
    rebuild(&f, cell, 500);
    const struct mallinfo2 before = mallinfo2();
    const void *const arrays[] = {f.g->records,  f.g->record_nodes, f.g->words,
                                  f.g->vertices, f.g->data,         f.g->signatures,
                                  f.g->matrices, f.g->node_record,  f.g->signature_index.slots};
    for (int i = 0; i < 50; i++) rebuild(&f, cell, 10 * (uint32_t)i + 10);
    const struct mallinfo2 after = mallinfo2();
    const void *const now[] = {f.g->records,  f.g->record_nodes, f.g->words,
                               f.g->vertices, f.g->data,         f.g->signatures,
                               f.g->matrices, f.g->node_record,  f.g->signature_index.slots};
    ck_assert_msg(!memcmp(arrays, now, sizeof now), "an array of the graph was allocated again");
    ck_assert_uint_eq(after.uordblks, before.uordblks);
}

/* Signatures must not accumulate if every batch has other shapes. */
TEST(ever_new_shapes_do_not_grow) {
    AT_END(close_fixture) fixture f = open_fixture();
    static const float data[70000] = {0};
    size_t bytes = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        vpps_graph_clear(f.g);
        for (uint32_t k = 0; k < 20; k++) vpps_tanh(f.g, vpps_input(f.g, 1 + i * 20 + k, 1, data));
        TEST_OK(vpps_graph_status(f.g));
        if (i == 500) bytes = vpps_capacity(f.g->signatures);
    }
    ck_assert_uint_eq(vpps_capacity(f.g->signatures), bytes);
}
