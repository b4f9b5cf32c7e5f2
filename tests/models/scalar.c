/* scalar.c - see scalar.h. */
#include "scalar.h"

#include "common/testing.h"

/* Checks without writing to a pipe if the condition holds, which would take most of the time. */
#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                                                   \
    } while (0)

/* ---------------------------------------------------------------- vectors */

vec zeros(uint32_t n) {
    EXPECT(n <= MOST_ELEMENTS, "a vector of %u", n);
    return (vec){.n = n};
}

static void expect_same_size(vec a, vec b) { EXPECT(a.n == b.n, "vectors of %u and %u", a.n, b.n); }

vec concatenation(vec a, vec b) {
    vec y = zeros(a.n + b.n);
    for (uint32_t i = 0; i < a.n; i++) y.at[i] = a.at[i];
    for (uint32_t i = 0; i < b.n; i++) y.at[a.n + i] = b.at[i];
    return y;
}

double inner_product(vec a, vec b) {
    double sum = 0;
    expect_same_size(a, b);
    for (uint32_t i = 0; i < a.n; i++) sum += a.at[i] * b.at[i];
    return sum;
}

#define ELEMENTWISE(name, ...)                                                                                         \
    vec name(vec x) {                                                                                                  \
        for (uint32_t i = 0; i < x.n; i++) x.at[i] = __VA_ARGS__;                                                      \
        return x;                                                                                                      \
    }
#define ELEMENTWISE2(name, ...)                                                                                        \
    vec name(vec x, vec y) {                                                                                           \
        expect_same_size(x, y);                                                                                        \
        for (uint32_t i = 0; i < x.n; i++) x.at[i] = __VA_ARGS__;                                                      \
        return x;                                                                                                      \
    }
ELEMENTWISE2(sum_of, x.at[i] + y.at[i])
ELEMENTWISE2(product_of, x.at[i] * y.at[i])
ELEMENTWISE2(quotient_of, x.at[i] / y.at[i])
ELEMENTWISE(tanh_of, tanh(x.at[i]))
ELEMENTWISE(sigmoid_of, 1 / (1 + exp(-x.at[i])))
ELEMENTWISE(relu_of, fmax(0, x.at[i]))
ELEMENTWISE(elu_of, x.at[i] > 0 ? x.at[i] : exp(x.at[i]) - 1)
ELEMENTWISE(gelu_of, x.at[i] / 2 * (1 + erf(x.at[i] / sqrt(2))))
ELEMENTWISE(exp_of, exp(x.at[i]))

vec slice_of(vec x, uint32_t first, uint32_t n) {
    EXPECT(first + n <= x.n, "elements %u to %u of a vector of %u", first, first + n, x.n);
    vec y = zeros(n);
    for (uint32_t i = 0; i < n; i++) y.at[i] = x.at[first + i];
    return y;
}

/* ---------------------------------------------------------------- parameters */

void weights_copy(weights *w, vpps_model *model) {
    w->model = model;
    w->n = vpps_param_count(model);
    ck_assert_uint_le(w->n, MOST_WEIGHTS);
    for (vpps_param p = 0; p < w->n; p++) {
        vpps_param_info info = {.size = sizeof info};
        const float *values = vpps_param_values(model, p);
        TEST_OK(vpps_param_describe(model, p, &info));
        w->elements[p] = (size_t)info.count * info.rows * info.cols;
        w->of[p] = malloc(w->elements[p] * sizeof *w->of[p]);
        ck_assert_ptr_nonnull(w->of[p]);
        for (size_t i = 0; i < w->elements[p]; i++) w->of[p][i] = (double)values[i];
    }
}

void weights_free(weights *w) {
    for (vpps_param p = 0; p < w->n; p++) free(w->of[p]);
}

const double *values_of(const weights *w, const char *name, vpps_param_kind kind, vpps_param_info *info) {
    vpps_param p = VPPS_NO_PARAM;
    const bool known =
        vpps_param_find(w->model, name, &p) == VPPS_OK && vpps_param_describe(w->model, p, info) == VPPS_OK;
    EXPECT(known, "%s", vpps_error_message());
    EXPECT(info->kind == kind, "%s is a parameter of kind %d, not %d", name, (int)info->kind, (int)kind);
    return w->of[p];
}

vec vector(const weights *w, const char *name) {
    vpps_param_info info = {.size = sizeof info};
    const double *values = values_of(w, name, VPPS_VECTOR, &info);
    vec b = zeros(info.rows);
    for (uint32_t i = 0; i < info.rows; i++) b.at[i] = values[i];
    return b;
}

vec entry(const weights *w, const char *table, uint32_t id) {
    vpps_param_info info = {.size = sizeof info};
    const double *values = values_of(w, table, VPPS_LOOKUP, &info);
    vec x = zeros(info.rows);
    EXPECT(id < info.count && info.cols == 1, "entry %u of %s", id, table);
    for (uint32_t i = 0; i < info.rows; i++) x.at[i] = values[(size_t)id * info.rows + i];
    return x;
}

vec times(const weights *w, const char *W, vec x) {
    vpps_param_info info = {.size = sizeof info};
    const double *values = values_of(w, W, VPPS_MATRIX, &info);
    vec y = zeros(info.rows);
    EXPECT(info.cols == x.n, "%s has %u columns, not %u", W, info.cols, x.n);
    for (uint32_t i = 0; i < info.rows; i++)
        for (uint32_t j = 0; j < x.n; j++) y.at[i] += values[i * x.n + j] * x.at[j];
    return y;
}

vec affine(const weights *w, const char *b, const char *W, vec x) { return sum_of(vector(w, b), times(w, W, x)); }

vec affine2(const weights *w, const char *b, const char *W, vec x, const char *U, vec y) {
    return sum_of(affine(w, b, W, x), times(w, U, y));
}
