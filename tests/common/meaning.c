#include "common/meaning.h"
#include "common/testing.h"

/* ---------------------------------------------------------------- what formulas call */

/* Adds a term to a sum, and its size to the sum of sizes by which rounding is measured. */
static double term(meaning_operands *o, double x) {
    o->terms += fabs(x);
    return x;
}

static double difference(meaning_operands *o, double x, double y) { return term(o, x) - term(o, y); }

static double sum_times(meaning_operands *o, double factor, const double *x) {
    double sum = 0;
    for (uint32_t j = 0; j < o->n; j++) sum += term(o, factor * x[j]);
    return sum;
}

static double sum(meaning_operands *o, const double *x) { return sum_times(o, 1, x); }

static double dot(meaning_operands *o, const double *x, const double *y) {
    double sum = 0;
    for (uint32_t j = 0; j < o->n; j++) sum += term(o, x[j] * y[j]);
    return sum;
}

static double squared_distance(meaning_operands *o) {
    double sum = 0;
    for (uint32_t j = 0; j < o->n; j++) sum += term(o, (o->a[j] - o->b[j]) * (o->a[j] - o->b[j]));
    return sum;
}

static double sum_of_list(meaning_operands *o, uint32_t i) {
    double sum = 0;
    for (uint32_t m = 0; m < o->n_list; m++) sum += term(o, (o->weights ? o->weights[m] : 1) * o->list[m][i]);
    return sum;
}

/* Returns element i of the product of two matrices, stored column after column, or of their transposes. */
static double product(meaning_operands *o, const double *x, bool x_transposed, const double *y, bool y_transposed,
                      uint32_t i) {
    const uint32_t row = i % o->rows, col = i / o->rows;
    double sum = 0;
    for (uint32_t l = 0; l < o->inner; l++)
        sum += term(o, (x_transposed ? x[l + row * o->inner] : x[row + l * o->rows]) *
                           (y_transposed ? y[col + l * o->cols] : y[l + col * o->inner]));
    return sum;
}

/* Returns element i of the transpose, which has rows x cols elements. */
static double turned(const meaning_operands *o, const double *x, uint32_t i) {
    return x[i / o->rows + i % o->rows * o->cols];
}

/* Returns element i of `rows` rows, from row u on, of a tensor with `inner` rows. */
static double rows_from(const meaning_operands *o, const double *x, uint32_t i) {
    return x[o->u + i % o->rows + i / o->rows * o->inner];
}

/* Returns element i of a tensor with `inner` rows: x from row u on, zeros elsewhere. */
static double rows_at(const meaning_operands *o, const double *x, uint32_t i) {
    const uint32_t row = i % o->inner;
    return row >= o->u && row < o->u + o->rows ? x[row - o->u + i / o->inner * o->rows] : 0;
}

/* Returns element i of the list's members on top of each other, with zeros below. */
static double stacked(const meaning_operands *o, uint32_t i) {
    uint32_t row = i % o->rows;
    for (uint32_t m = 0; m < o->n_list; row -= o->list_rows[m++])
        if (row < o->list_rows[m]) return o->list[m][row + i / o->rows * o->list_rows[m]];
    return 0;
}

static uint32_t greatest(const meaning_operands *o) {
    uint32_t best = 0;
    for (uint32_t j = 1; j < o->n; j++)
        if (o->a[j] > o->a[best]) best = j;
    return best;
}

/* Returns row i % rows of the rows selected from inner x cols. */
static double selected(const meaning_operands *o, uint32_t i) {
    const double number = o->b[i % o->rows];
    return number >= 0 && number < o->inner ? o->a[(uint32_t)number + i / o->rows * o->inner] : NAN;
}

static double selected_slope(meaning_operands *o, uint32_t i) {
    double sum = 0;
    for (uint32_t row = 0; row < o->rows; row++)
        if (floor(o->b[row]) == i % o->inner) sum += term(o, o->d[row + i / o->inner * o->rows]);
    return sum;
}

/* Returns the list's member with the greatest or least element i: the first of equal ones, or one that is NaN. */
static uint32_t extreme(const meaning_operands *o, uint32_t i, bool greatest) {
    uint32_t best = 0;
    for (uint32_t m = 1; m < o->n_list; m++) {
        const double x = o->list[m][i], y = o->list[best][i];
        if ((greatest ? x > y : x < y) || (isnan(x) && !isnan(y))) best = m;
    }
    return best;
}

static uint32_t found(const meaning_operands *o, uint32_t i, bool greatest) {
    return o->positions ? (uint32_t)o->positions[i] : extreme(o, i, greatest);
}

static double log_sum_exp(const meaning_operands *o) {
    double top = -INFINITY, sum = 0;
    for (uint32_t j = 0; j < o->n; j++) top = fmax(top, o->a[j]);
    for (uint32_t j = 0; j < o->n; j++) sum += exp(o->a[j] - top);
    return top + log(sum);
}

/* Returns log sum exp; if all elements are -inf, -inf. */
static double finite_log_sum_exp(const meaning_operands *o) {
    double sum = 0, top = -INFINITY;
    for (uint32_t j = 0; j < o->n; j++) top = fmax(top, o->a[j]);
    if (!isfinite(top)) top = 0;
    for (uint32_t j = 0; j < o->n; j++) sum += exp(o->a[j] - top);
    return top + log(sum);
}

static double inverse_norm(const meaning_operands *o) {
    double sum = 0;
    for (uint32_t j = 0; j < o->n; j++) sum += o->a[j] * o->a[j];
    return 1 / sqrt(sum / o->n + o->f);
}

/* Uses y if it is given, since y's rounding matters where a difference cancels. */
static double rms_norm_slope(meaning_operands *o, uint32_t i) {
    const double r = inverse_norm(o), factor = -(o->y ? o->y[i] : o->a[i] * r) * r * r / o->n;
    double sum = term(o, o->d[i] * r);
    for (uint32_t j = 0; j < o->n; j++) sum += term(o, factor * o->a[j] * o->d[j]);
    return sum;
}

static double margin(const meaning_operands *o, uint32_t j) { return o->f - o->a[o->u] + o->a[j]; }

static double hinge(meaning_operands *o) {
    double sum = 0;
    for (uint32_t j = 0; j < o->n; j++)
        if (j != o->u && !(margin(o, j) < 0)) sum += term(o, margin(o, j));
    return sum;
}

static double hinge_slope(const meaning_operands *o, uint32_t i) {
    double violations = 0;
    for (uint32_t j = 0; j < o->n; j++) violations += j != o->u && margin(o, j) > 0;
    return i == o->u ? -violations : margin(o, i) > 0;
}

/* A factor of 0 gives 0, even if the other is infinite. */
static double over(double x, double y) { return x == 0 ? 0 : x / y; }
static double times_log(double x, double y) { return x == 0 ? 0 : x * log(y); }

static double binary_log_loss(meaning_operands *o) {
    double sum = 0;
    for (uint32_t j = 0; j < o->n; j++)
        sum += term(o, -times_log(o->b[j], o->a[j]) - times_log(1 - o->b[j], 1 - o->a[j]));
    return sum;
}

static double gelu(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
static double gelu_slope(double x) {
    if (fabs(x) > 50) return x > 0;
    const double t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

static double gelu_erf(double x) { return x * (0.5 + 0.5 * erf(x * sqrt(0.5))); }
static double gelu_erf_slope(double x) {
    if (fabs(x) > 14) return x > 0;
    return 0.5 + 0.5 * erf(x * sqrt(0.5)) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
}

static double dropped(const meaning_operands *o, uint32_t i, double x) {
    return dropout_keeps(o->key, o->e + i, (float)o->f) ? x / (1 - o->f) : 0;
}

/* ---------------------------------------------------------------- operations */

#define A o->a[i]
#define B o->b[i]
#define Y o->y[i]
#define D o->d[i]
#define A0 o->a[0]
#define B0 o->b[0]
#define Y0 o->y[0]
#define D0 o->d[0]
#define F o->f
#define K o->u
#define LABEL o->a[o->u]
#define I i

const meaning_case meaning_cases[VPPS_OP_COUNT] = {
#define MEANING(id, a, b, shapes, noise, ...) [VPPS_OP_##id] = {a, b, shapes, noise},
#include "common/meanings.def"
#undef MEANING
};

#define UNARY(name)                                                                                                    \
    { .unary = vpps_##name }
#define LISTED(name)                                                                                                   \
    { .unary = vpps_##name, .list = vpps_##name##_list }
#define BINARY(name)                                                                                                   \
    { .binary = vpps_##name }
#define NARY(name)                                                                                                     \
    { .many = vpps_##name }
#define OWN(name)                                                                                                      \
    { .unary = NULL }
const meaning_call meaning_calls[VPPS_OP_COUNT] = {
#define OP(id, name, call, ...) [VPPS_OP_##id] = call(name),
#include "graph/ops.def"
#undef OP
};

/* An operation without a row does not compile. */
enum {
#define MEANING(id, ...) HAS_MEANING_##id,
#include "common/meanings.def"
#undef MEANING
#define OP(id, ...) MEANING_OF_##id = HAS_MEANING_##id,
#include "graph/ops.def"
#undef OP
};

#define EACH(formula)                                                                                                  \
    for (uint32_t i = 0; i < n; i++) {                                                                                 \
        o->terms = 0;                                                                                                  \
        to[i] = (formula);                                                                                             \
        if (terms) terms[i] = o->terms;                                                                                \
    }                                                                                                                  \
    return;

/* Evaluates pass 0: forward; pass 1, 2: the gradient of argument 0 or 1. */
static void evaluate(vpps_op op, uint32_t pass, meaning_operands *o, uint32_t n, double *to, double *terms) {
    switch (3 * op + pass) {
#define MEANING(id, a, b, shapes, noise, slack, forward, gradient0, gradient1)                                         \
    case 3 * VPPS_OP_##id: EACH(forward)                                                                               \
    case 3 * VPPS_OP_##id + 1: EACH(gradient0)                                                                         \
    case 3 * VPPS_OP_##id + 2:                                                                                         \
        EACH(gradient1)
#include "common/meanings.def"
#undef MEANING
    default: abort();
    }
}

void meaning_forward(vpps_op op, meaning_operands *o, uint32_t n, double *to, double *terms) {
    evaluate(op, 0, o, n, to, terms);
}

void meaning_gradient(vpps_op op, uint32_t argument, meaning_operands *o, uint32_t n, double *to, double *terms) {
    evaluate(op, 1 + argument, o, n, to, terms);
}

double meaning_slack(vpps_op op, double a, double f) {
    const meaning_operands operands = {.a = &a, .f = f}, *o = &operands;
    const uint32_t i = 0;
    (void)o, (void)i;
    switch (op) {
#define MEANING(id, a, b, shapes, noise, slack, ...)                                                                   \
    case VPPS_OP_##id:                                                                                                 \
        return slack;
#include "common/meanings.def"
#undef MEANING
    default: return 0;
    }
}

/* ---------------------------------------------------------------- matrices of the model */

static double seen(const meaning_matrix *w, double x) { return w->see ? w->see(w->context, x) : x; }

void meaning_times(const meaning_matrix *w, const double *x, double *y) {
    for (uint32_t i = 0; i < w->rows; i++)
        for (uint32_t l = 0; l < w->cols; l++) y[i] += seen(w, w->elems[(size_t)i * w->cols + l]) * seen(w, x[l]);
}

void meaning_transposed_times(const meaning_matrix *w, uint32_t first, uint32_t end, const double *d, double *dx) {
    for (uint32_t i = first; i < end; i++)
        for (uint32_t l = 0; l < w->cols; l++) dx[l] += seen(w, w->elems[(size_t)i * w->cols + l]) * seen(w, d[i]);
}

void meaning_outer(const meaning_matrix *w, const double *d, const double *x, double *dw) {
    for (uint32_t i = 0; i < w->rows; i++)
        for (uint32_t l = 0; l < w->cols; l++) dw[(size_t)i * w->cols + l] += seen(w, d[i]) * seen(w, x[l]);
}

/* ---------------------------------------------------------------- instructions */

meaning_use meaning_of(vpps_opcode opcode) {
    for (uint32_t op = 0; op < VPPS_OP_COUNT; op++)
        if (vpps_op_instructions[op].forward == opcode) return (meaning_use){(vpps_op)op, -1, vpps_ops[op].operands};
    for (uint32_t op = 0; op < VPPS_OP_COUNT; op++)
        for (int k = 0; k < 2; k++)
            if (vpps_op_instructions[op].backward[k] == opcode)
                return (meaning_use){(vpps_op)op, k, vpps_op_instructions[op].backward_operands[k]};
    ck_abort_msg("instruction %s is no operation's", vpps_instructions[opcode].name);
}

void meaning_instruction(vpps_opcode opcode, meaning_operands *o, uint32_t n, double *to, double *terms) {
    const meaning_use use = meaning_of(opcode);
    evaluate(use.op, (uint32_t)(1 + use.gradient), o, n, to, terms);
}

uint32_t meaning_position(vpps_opcode opcode, const meaning_operands *o, uint32_t i) {
    return extreme(o, i, opcode == VPPS_I_MAX_OF);
}

const double **meaning_place(meaning_operands *o, char role) {
    return role == 'a'   ? &o->a
           : role == 'b' ? &o->b
           : role == 'y' ? &o->y
           : role == 'd' ? &o->d
           : role == 'i' ? &o->positions
           : role == 'v' ? &o->weights
                         : NULL;
}

void meaning_range(vpps_opcode opcode, char role, float *low, float *high) {
    const meaning_case *c = &meaning_cases[meaning_of(opcode).op];
    const meaning_domain d = role == 'd' || role == 'v' ? ANY : role == 'b' ? c->b : c->a;
    *low = d == POSITIVE ? 0.1f : d == INSIDE ? 0.02f : d == ROW ? -0.5f : -3;
    *high = d == INSIDE ? 0.98f : d == ROW ? 9 : 3;
}

/* ---------------------------------------------------------------- optimisers */

void meaning_step(const vpps_optimizer *o, const double left[2], double g, double *w, double *s0, double *s1) {
    const double lr = (double)o->lr, decay = (double)o->weight_decay, epsilon = (double)o->epsilon;
    const double beta1 = (double)o->beta1, beta2 = (double)o->beta2, before = *w;
    if (o->kind != VPPS_ADAMW) g += decay * *w;
    switch (o->kind) {
    case VPPS_SGD: *w -= lr * g; return;
    case VPPS_MOMENTUM:
        *s0 = (double)o->momentum * *s0 + g;
        *w -= lr * *s0;
        return;
    case VPPS_ADAGRAD:
        *s0 += g * g;
        *w -= lr * g / (sqrt(*s0) + epsilon);
        return;
    case VPPS_ADAM:
    case VPPS_ADAMW:
        *s0 = beta1 * *s0 + (1 - beta1) * g;
        *s1 = beta2 * *s1 + (1 - beta2) * g * g;
        *w -= lr * (*s0 / left[0]) / (sqrt(*s1 / left[1]) + epsilon);
        if (o->kind == VPPS_ADAMW) *w -= lr * decay * before;
        return;
    }
}
