#include "reference.h"

#include <math.h>

#define SINGLE_EPSILON 0x1p-23

/* A test cannot go on without memory. */
static void *need(void *p) {
    if (!p) abort();
    return p;
}
static double *doubles(size_t n) { return need(calloc(n + 1, sizeof(double))); }

/* ---------------------------------------------------------------- parameters */

ref_model *ref_model_create(vpps_model *model) {
    ref_model *m = need(calloc(1, sizeof *m));
    m->model = model;
    m->n = vpps_param_count(model);
    m->first = need(calloc(m->n + 1, sizeof *m->first));
    for (uint32_t p = 0; p < m->n; p++) m->first[p + 1] = m->first[p] + vpps_param_elems(&model->params[p]);
    m->values = doubles(m->first[m->n]);
    for (int k = 0; k < 2; k++) m->states[k] = doubles(m->first[m->n]);
    for (uint32_t p = 0; p < m->n; p++) {
        const float *v = vpps_param_values(model, p);
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) m->values[i] = (double)v[i - m->first[p]];
    }
    return m;
}

ref_model *ref_model_copy(const ref_model *from) {
    ref_model *m = need(calloc(1, sizeof *m));
    const size_t n = from->first[from->n];
    m->model = from->model;
    m->n = from->n;
    m->first = need(calloc(m->n + 1, sizeof *m->first));
    memcpy(m->first, from->first, (m->n + 1) * sizeof *m->first);
    m->values = doubles(n);
    memcpy(m->values, from->values, n * sizeof(double));
    for (int k = 0; k < 2; k++) {
        m->states[k] = doubles(n);
        memcpy(m->states[k], from->states[k], n * sizeof(double));
    }
    return m;
}

void ref_model_destroy(ref_model *m) {
    if (!m) return;
    free(m->first);
    free(m->values);
    free(m->states[0]);
    free(m->states[1]);
    free(m);
}

/* ---------------------------------------------------------------- noise */

static double noisy(ref_run *r, double x) {
    if (r->mode.noise <= 0) return x;
    return x * (1 + r->mode.noise * SINGLE_EPSILON * (2 * (double)vpps_random_unit(&r->random) - 1));
}

static double operand(ref_run *r, double x) {
    if (r->mode.product_noise <= 0) return x;
    return x * (1 + r->mode.product_noise * (2 * (double)vpps_random_unit(&r->random) - 1));
}

/* Errors that are not relative to the result but to a constant inside the function: 1 - e^x, 1 + tanh. */
static double absolute_error(const vpps_signature *s, double x, float f) {
    switch ((vpps_op)s->op) {
    case VPPS_OP_ELU: return (double)f;
    case VPPS_OP_GELU: return fabs(x);
    default: return 0;
    }
}

/* ---------------------------------------------------------------- one node */

typedef struct node_view {
    vpps_op op;
    const vpps_signature *s;
    const vpps_flat_node *n;
    uint32_t n_args;
    size_t elems;
    float f; /* imm as a float */
} node_view;

static node_view view(const ref_run *r, uint32_t x) {
    const vpps_flat_node *n = &r->g->flat.nodes[x];
    const vpps_signature *s = &r->g->signatures[n->signature];
    node_view v = {(vpps_op)s->op, s, n, n->n_args, (size_t)s->rows * s->cols, 0};
    memcpy(&v.f, &n->imm, sizeof v.f);
    return v;
}

static uint32_t arg_of(const ref_run *r, const node_view *v, uint32_t k) { return r->g->flat.args[v->n->args + k]; }
static size_t elems_of(const ref_run *r, uint32_t x) { return r->first[x + 1] - r->first[x]; }

/* A part of the scratch memory; pointers taken before stay valid within a node. */
static void scratch_room(ref_run *r, size_t n) {
    if (n <= r->scratch_elems) return;
    free(r->scratch);
    r->scratch = doubles(n);
    r->scratch_elems = n;
}

/* Arguments as the operation reads them, one after the other at `to`; returns the end. */
static double *read_args(ref_run *r, const node_view *v, double *to) {
    for (uint32_t k = 0; k < v->n_args; k++) {
        const uint32_t a = arg_of(r, v, k);
        for (size_t i = r->first[a]; i < r->first[a + 1]; i++) *to++ = noisy(r, r->values[i]);
    }
    return to;
}

static double gelu(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
static double gelu_slope(double x) {
    const double c = sqrt(2 / M_PI), t = tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

static double log_sum_exp(const double *x, size_t n) {
    double top = x[0], sum = 0;
    for (size_t i = 1; i < n; i++) top = fmax(top, x[i]);
    for (size_t i = 0; i < n; i++) sum += exp(x[i] - top);
    return top + log(sum);
}

/* Which of the lists' members element i comes from: the first that is largest (or smallest). */
static uint32_t selected(const double *a, uint32_t n, size_t elems, size_t i, bool largest) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < n; k++) {
        const double x = a[k * elems + i], y = a[best * elems + i];
        if (largest ? x > y : x < y) best = k;
    }
    return best;
}

/* Matrix of argument k of an affine node, row after row. */
static const double *matrix_of(const ref_run *r, const ref_model *m, const node_view *v, uint32_t k, uint32_t *cols,
                               size_t *first) {
    const vpps_param p = r->g->matrices[v->s->first_matrix + k];
    *cols = m->model->params[p].cols;
    *first = m->first[p];
    return m->values + m->first[p];
}

static void affine(ref_run *r, const ref_model *m, const node_view *v, const double *a, double *y) {
    const uint32_t rows = v->s->rows, c = v->s->cols;
    for (uint32_t j = 0; j < c; j++) {
        for (uint32_t i = 0; i < rows; i++) {
            y[i + (size_t)j * rows] = v->s->param == VPPS_NO_PARAM ? 0 : m->values[m->first[v->s->param] + i];
        }
    }
    for (uint32_t k = 0; k < v->n_args; k++) {
        uint32_t cols;
        size_t first;
        const double *w = matrix_of(r, m, v, k, &cols, &first);
        for (uint32_t j = 0; j < c; j++) {
            for (uint32_t i = 0; i < rows; i++) {
                for (uint32_t l = 0; l < cols; l++) {
                    y[i + (size_t)j * rows] +=
                        operand(r, w[(size_t)i * cols + l]) * operand(r, a[l + (size_t)j * cols]);
                }
            }
        }
        a += (size_t)cols * c;
    }
}

static void forward_node(ref_run *r, const ref_model *m, uint32_t x) {
    const node_view v = view(r, x);
    const uint32_t rows = v.s->rows;
    const size_t n = v.elems;
    size_t total = 0;
    for (uint32_t k = 0; k < v.n_args; k++) total += elems_of(r, arg_of(r, &v, k));
    scratch_room(r, total);
    double *y = r->values + r->first[x];
    const double *a = r->scratch;
    read_args(r, &v, r->scratch);
    const size_t na = v.n_args ? elems_of(r, arg_of(r, &v, 0)) : 0; /* elements of argument 0 */
    const double *b = a + na;
    const double keep = 1 - (double)v.s->p;

#define EACH(expression)                                                                                               \
    for (size_t i = 0; i < n; i++) y[i] = (expression);                                                                \
    break
    switch (v.op) {
    case VPPS_OP_INPUT: /* exact: the data is single precision */
        for (size_t i = 0; i < n; i++) y[i] = (double)r->g->data[v.n->imm + i];
        return;
    case VPPS_OP_CONSTANT:
        for (size_t i = 0; i < n; i++) y[i] = (double)v.f;
        return;
    case VPPS_OP_LOOKUP: memcpy(y, m->values + m->first[v.s->param] + v.n->imm * n, n * sizeof *y); return;
    case VPPS_OP_PARAMETER: memcpy(y, m->values + m->first[v.s->param], n * sizeof *y); return;
    case VPPS_OP_AFFINE: affine(r, m, &v, a, y); break;
    case VPPS_OP_MATMUL: {
        const uint32_t inner = (uint32_t)(na / rows);
        for (uint32_t j = 0; j < v.s->cols; j++) {
            for (uint32_t i = 0; i < rows; i++) {
                double sum = 0;
                for (uint32_t l = 0; l < inner; l++) sum += a[i + (size_t)l * rows] * b[l + (size_t)j * inner];
                y[i + (size_t)j * rows] = sum;
            }
        }
        break;
    }
    case VPPS_OP_ADD: EACH(a[i] + b[i]);
    case VPPS_OP_SUB: EACH(a[i] - b[i]);
    case VPPS_OP_MUL: EACH(a[i] * b[i]);
    case VPPS_OP_DIV: EACH(a[i] / b[i]);
    case VPPS_OP_MAX: EACH(a[i] >= b[i] ? a[i] : b[i]);
    case VPPS_OP_MIN: EACH(a[i] <= b[i] ? a[i] : b[i]);
    case VPPS_OP_SUM:
    case VPPS_OP_AVERAGE:
        for (size_t i = 0; i < n; i++) {
            y[i] = 0;
            for (uint32_t k = 0; k < v.n_args; k++) y[i] += a[k * n + i];
            if (v.op == VPPS_OP_AVERAGE) y[i] /= v.n_args;
        }
        break;
    case VPPS_OP_MAX_OF: EACH(a[selected(a, v.n_args, n, i, true) * n + i]);
    case VPPS_OP_MIN_OF: EACH(a[selected(a, v.n_args, n, i, false) * n + i]);
    case VPPS_OP_NEGATE: EACH(-a[i]);
    case VPPS_OP_ONE_MINUS: EACH(1 - a[i]);
    case VPPS_OP_RECIPROCAL: EACH(1 / a[i]);
    case VPPS_OP_SCALE: EACH((double)v.f * a[i]);
    case VPPS_OP_SCALE_BY: EACH(a[i] * b[0]);
    case VPPS_OP_WHEN: EACH(b[0] > 0 ? a[i] : 0);
    case VPPS_OP_SIGMOID: EACH(1 / (1 + exp(-a[i])));
    case VPPS_OP_TANH: EACH(tanh(a[i]));
    case VPPS_OP_RELU: EACH(a[i] > 0 ? a[i] : 0);
    case VPPS_OP_ELU: EACH(a[i] > 0 ? a[i] : (double)v.f * expm1(a[i]));
    case VPPS_OP_GELU: EACH(gelu(a[i]));
    case VPPS_OP_EXP: EACH(exp(a[i]));
    case VPPS_OP_LOG: EACH(log(a[i]));
    case VPPS_OP_SQUARE: EACH(a[i] * a[i]);
    case VPPS_OP_SQRT: EACH(sqrt(a[i]));
    case VPPS_OP_ABS: EACH(fabs(a[i]));
    case VPPS_OP_DROPOUT:
        for (size_t i = 0; i < n; i++) {
            if (!r->mode.training) {
                y[i] = a[i];
            } else {
                const bool kept = vpps_dropout_keeps(r->mode.dropout_key, v.n->imm + (uint32_t)i, v.s->p);
                y[i] = kept ? a[i] / keep : 0;
            }
        }
        break;
    case VPPS_OP_CONCAT: {
        uint32_t row = 0;
        for (uint32_t k = 0; k < v.n_args; k++) {
            const uint32_t its = (uint32_t)(elems_of(r, arg_of(r, &v, k)) / v.s->cols);
            for (uint32_t j = 0; j < v.s->cols; j++) {
                for (uint32_t i = 0; i < its; i++) y[row + i + (size_t)j * rows] = *a++;
            }
            row += its;
        }
        break;
    }
    case VPPS_OP_SLICE: EACH(a[v.n->imm + i % rows + i / rows * (na / v.s->cols)]);
    case VPPS_OP_DOT:
        y[0] = 0;
        for (size_t i = 0; i < na; i++) y[0] += a[i] * b[i];
        break;
    case VPPS_OP_SQUARED_DISTANCE:
        y[0] = 0;
        for (size_t i = 0; i < na; i++) y[0] += (a[i] - b[i]) * (a[i] - b[i]);
        break;
    case VPPS_OP_ARGMAX: {
        size_t best = 0;
        for (size_t i = 1; i < na; i++)
            if (a[i] > a[best]) best = i;
        y[0] = (double)best;
        y[1] = a[best] - log_sum_exp(a, na);
        break;
    }
    case VPPS_OP_LOOKUP_AT: {
        const double last = m->model->params[v.s->param].count - 1.0;
        const size_t entry = (size_t)fmin(fmax(a[0], 0), last);
        memcpy(y, m->values + m->first[v.s->param] + entry * n, n * sizeof *y);
        return;
    }
    case VPPS_OP_SUM_ELEMENTS:
        y[0] = 0;
        for (size_t i = 0; i < na; i++) y[0] += a[i];
        break;
    case VPPS_OP_SOFTMAX: EACH(exp(a[i] - log_sum_exp(a, n)));
    case VPPS_OP_LOG_SOFTMAX: EACH(a[i] - log_sum_exp(a, n));
    case VPPS_OP_WEIGHTED_SUM:
        for (size_t i = 0; i < n; i++) {
            y[i] = 0;
            for (uint32_t k = 0; k + 1 < v.n_args; k++) y[i] += a[k] * b[k * n + i];
        }
        break;
    case VPPS_OP_CROSS_ENTROPY: y[0] = log_sum_exp(a, na) - a[v.n->imm]; break;
    case VPPS_OP_HINGE:
        y[0] = 0;
        for (size_t j = 0; j < na; j++) {
            if (j != v.n->imm) y[0] += fmax(0, (double)v.s->p - a[v.n->imm] + a[j]);
        }
        break;
    case VPPS_OP_BINARY_LOG_LOSS:
        y[0] = 0;
        for (size_t i = 0; i < na; i++) y[0] -= b[i] * log(a[i]) + (1 - b[i]) * log1p(-a[i]);
        break;
    case VPPS_OP_COUNT: abort();
    }
#undef EACH
    for (size_t i = 0; i < n; i++) {
        y[i] = noisy(r, y[i]);
        const double off = na == n ? absolute_error(v.s, r->scratch[i], v.f) : 0;
        if (off > 0) y[i] += noisy(r, off) - off;
    }
}

ref_run *ref_forward(vpps_graph *g, const ref_model *m, const ref_mode *mode) {
    if (vpps_graph_flatten(g) != VPPS_OK) return NULL;
    ref_run *r = need(calloc(1, sizeof *r));
    const uint32_t n = g->flat.n_nodes;
    r->g = g;
    r->mode = *mode;
    r->random = mode->noise_seed;
    r->first = need(calloc((size_t)n + 1, sizeof *r->first));
    for (uint32_t x = 0; x < n; x++) {
        const vpps_signature *s = &g->signatures[g->flat.nodes[x].signature];
        r->first[x + 1] = r->first[x] + (size_t)s->rows * s->cols;
    }
    r->values = doubles(r->first[n]);
    for (uint32_t x = 0; x < n; x++) forward_node(r, m, x);
    return r;
}

void ref_run_destroy(ref_run *r) {
    if (!r) return;
    free(r->first);
    free(r->values);
    free(r->grads);
    free(r->param_grads);
    free(r->used);
    free(r->scratch);
    free(r);
}

/* ---------------------------------------------------------------- backward */

static void add_param_grad(ref_run *r, size_t at, double g) { r->param_grads[at] += noisy(r, g); }

static void affine_backward(ref_run *r, const ref_model *m, const node_view *v, const double *a, const double *d,
                            double *da) {
    const uint32_t rows = v->s->rows, c = v->s->cols;
    if (v->s->param != VPPS_NO_PARAM) {
        for (size_t i = 0; i < v->elems; i++) add_param_grad(r, m->first[v->s->param] + i % rows, d[i]);
    }
    for (uint32_t k = 0; k < v->n_args; k++) {
        uint32_t cols;
        size_t first;
        const double *w = matrix_of(r, m, v, k, &cols, &first);
        for (uint32_t j = 0; j < c; j++) {
            for (uint32_t i = 0; i < rows; i++) {
                const double di = d[i + (size_t)j * rows];
                for (uint32_t l = 0; l < cols; l++) {
                    da[l + (size_t)j * cols] += operand(r, w[(size_t)i * cols + l]) * operand(r, di);
                    r->param_grads[first + (size_t)i * cols + l] +=
                        operand(r, di) * operand(r, a[l + (size_t)j * cols]);
                }
            }
        }
        a += (size_t)cols * c;
        da += (size_t)cols * c;
    }
}

/* Adds the node's contributions to the gradients of its arguments and parameters. */
static void backward_node(ref_run *r, const ref_model *m, uint32_t x) {
    const node_view v = view(r, x);
    const uint32_t rows = v.s->rows;
    const size_t n = v.elems;
    if (v.op == VPPS_OP_INPUT || v.op == VPPS_OP_CONSTANT) return;
    if (v.op == VPPS_OP_LOOKUP || v.op == VPPS_OP_PARAMETER) {
        const size_t at = m->first[v.s->param] + (v.op == VPPS_OP_LOOKUP ? v.n->imm * n : 0);
        for (size_t i = 0; i < n; i++) add_param_grad(r, at + i, r->grads[r->first[x] + i]);
        return;
    }
    size_t total = 0;
    for (uint32_t k = 0; k < v.n_args; k++) total += elems_of(r, arg_of(r, &v, k));
    scratch_room(r, 2 * total + 2 * n);
    const size_t na = elems_of(r, arg_of(r, &v, 0));
    double *a = r->scratch, *b = a + na, *da = read_args(r, &v, a), *db = da + na, *y = da + total, *d = y + n;
    memset(da, 0, total * sizeof *da);
    for (size_t i = 0; i < n; i++) y[i] = noisy(r, r->values[r->first[x] + i]);
    for (size_t i = 0; i < n; i++) d[i] = noisy(r, r->grads[r->first[x] + i]);
    const double keep = 1 - (double)v.s->p;

#define EACH(expression)                                                                                               \
    for (size_t i = 0; i < na; i++) da[i] = (expression);                                                              \
    break
#define BOTH(first, second)                                                                                            \
    for (size_t i = 0; i < na; i++) {                                                                                  \
        da[i] = (first);                                                                                               \
        db[i] = (second);                                                                                              \
    }                                                                                                                  \
    break
    switch (v.op) {
    case VPPS_OP_AFFINE: affine_backward(r, m, &v, a, d, da); break;
    case VPPS_OP_MATMUL: {
        const uint32_t inner = (uint32_t)(na / rows);
        for (uint32_t j = 0; j < v.s->cols; j++) {
            for (uint32_t i = 0; i < rows; i++) {
                for (uint32_t l = 0; l < inner; l++) {
                    da[i + (size_t)l * rows] += d[i + (size_t)j * rows] * b[l + (size_t)j * inner];
                    db[l + (size_t)j * inner] += d[i + (size_t)j * rows] * a[i + (size_t)l * rows];
                }
            }
        }
        break;
    }
    case VPPS_OP_ADD: BOTH(d[i], d[i]);
    case VPPS_OP_SUB: BOTH(d[i], -d[i]);
    case VPPS_OP_MUL: BOTH(d[i] * b[i], d[i] * a[i]);
    case VPPS_OP_DIV: BOTH(d[i] / b[i], -d[i] * a[i] / (b[i] * b[i]));
    case VPPS_OP_MAX: BOTH(a[i] >= b[i] ? d[i] : 0, a[i] >= b[i] ? 0 : d[i]);
    case VPPS_OP_MIN: BOTH(a[i] <= b[i] ? d[i] : 0, a[i] <= b[i] ? 0 : d[i]);
    case VPPS_OP_SUM:
    case VPPS_OP_AVERAGE:
        for (size_t i = 0; i < total; i++) da[i] = v.op == VPPS_OP_SUM ? d[i % n] : d[i % n] / v.n_args;
        break;
    case VPPS_OP_MAX_OF:
    case VPPS_OP_MIN_OF:
        for (size_t i = 0; i < n; i++) da[selected(a, v.n_args, n, i, v.op == VPPS_OP_MAX_OF) * n + i] = d[i];
        break;
    case VPPS_OP_NEGATE: EACH(-d[i]);
    case VPPS_OP_ONE_MINUS: EACH(-d[i]);
    case VPPS_OP_RECIPROCAL: EACH(-d[i] * y[i] * y[i]);
    case VPPS_OP_SCALE: EACH((double)v.f * d[i]);
    case VPPS_OP_SCALE_BY:
        for (size_t i = 0; i < na; i++) {
            da[i] = d[i] * b[0];
            db[0] += d[i] * a[i];
        }
        break;
    case VPPS_OP_WHEN: EACH(b[0] > 0 ? d[i] : 0);
    case VPPS_OP_SIGMOID: EACH(d[i] * y[i] * (1 - y[i]));
    case VPPS_OP_TANH: EACH(d[i] * (1 - y[i] * y[i]));
    case VPPS_OP_RELU: EACH(a[i] > 0 ? d[i] : 0);
    case VPPS_OP_ELU: EACH(a[i] > 0 ? d[i] : d[i] * (y[i] + (double)v.f));
    case VPPS_OP_GELU: EACH(d[i] * gelu_slope(a[i]));
    case VPPS_OP_EXP: EACH(d[i] * y[i]);
    case VPPS_OP_LOG: EACH(d[i] / a[i]);
    case VPPS_OP_SQUARE: EACH(2 * d[i] * a[i]);
    case VPPS_OP_SQRT: EACH(d[i] / (2 * y[i]));
    case VPPS_OP_ABS: EACH(a[i] > 0 ? d[i] : a[i] < 0 ? -d[i] : 0);
    case VPPS_OP_DROPOUT:
        EACH(!r->mode.training                                                         ? d[i]
             : vpps_dropout_keeps(r->mode.dropout_key, v.n->imm + (uint32_t)i, v.s->p) ? d[i] / keep
                                                                                       : 0);
    case VPPS_OP_CONCAT: {
        uint32_t row = 0;
        for (uint32_t k = 0; k < v.n_args; k++) {
            const uint32_t its = (uint32_t)(elems_of(r, arg_of(r, &v, k)) / v.s->cols);
            for (uint32_t j = 0; j < v.s->cols; j++) {
                for (uint32_t i = 0; i < its; i++) *da++ = d[row + i + (size_t)j * rows];
            }
            row += its;
        }
        da -= total;
        break;
    }
    case VPPS_OP_SLICE:
        for (size_t i = 0; i < n; i++) da[v.n->imm + i % rows + i / rows * (na / v.s->cols)] = d[i];
        break;
    case VPPS_OP_DOT: BOTH(d[0] * b[i], d[0] * a[i]);
    case VPPS_OP_SQUARED_DISTANCE: BOTH(2 * d[0] * (a[i] - b[i]), 2 * d[0] * (b[i] - a[i]));
    case VPPS_OP_SUM_ELEMENTS: EACH(d[0]);
    case VPPS_OP_SOFTMAX: {
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += d[i] * y[i];
        EACH(y[i] * (d[i] - sum));
    }
    case VPPS_OP_LOG_SOFTMAX: {
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += d[i];
        EACH(d[i] - exp(y[i]) * sum);
    }
    case VPPS_OP_WEIGHTED_SUM:
        for (uint32_t k = 0; k + 1 < v.n_args; k++) {
            for (size_t i = 0; i < n; i++) {
                da[k] += d[i] * b[k * n + i];
                db[k * n + i] = d[i] * a[k];
            }
        }
        break;
    case VPPS_OP_CROSS_ENTROPY: {
        const double lse = log_sum_exp(a, na);
        EACH(d[0] * (exp(a[i] - lse) - (i == v.n->imm ? 1 : 0)));
    }
    case VPPS_OP_HINGE:
        for (size_t j = 0; j < na; j++) {
            if (j == v.n->imm || (double)v.s->p - a[v.n->imm] + a[j] <= 0) continue;
            da[j] += d[0];
            da[v.n->imm] -= d[0];
        }
        break;
    case VPPS_OP_BINARY_LOG_LOSS: BOTH(d[0] * (a[i] - b[i]) / (a[i] * (1 - a[i])), d[0] * (log1p(-a[i]) - log(a[i])));
    case VPPS_OP_INPUT:
    case VPPS_OP_CONSTANT:
    case VPPS_OP_LOOKUP:
    case VPPS_OP_PARAMETER:
    case VPPS_OP_ARGMAX:
    case VPPS_OP_LOOKUP_AT: break; /* no gradient */
    case VPPS_OP_COUNT: abort();
    }
#undef EACH
#undef BOTH
    for (uint32_t k = 0; k < v.n_args; k++) {
        const uint32_t to = arg_of(r, &v, k);
        for (size_t i = r->first[to]; i < r->first[to + 1]; i++) r->grads[i] += noisy(r, *da++);
    }
}

/* Marks the parameters of the nodes that the loss depends on; needed[x] tells which nodes those are. */
static void mark_used(ref_run *r, const ref_model *m, const uint8_t *needed) {
    for (uint32_t x = 0; x < r->g->flat.n_nodes; x++) {
        if (!needed[x]) continue;
        const node_view v = view(r, x);
        if (v.op == VPPS_OP_LOOKUP) {
            memset(r->used + m->first[v.s->param] + v.n->imm * v.elems, 1, v.elems);
        } else if (v.s->param != VPPS_NO_PARAM) {
            memset(r->used + m->first[v.s->param], 1, m->first[v.s->param + 1] - m->first[v.s->param]);
        }
        if (v.op != VPPS_OP_AFFINE) continue;
        for (uint32_t k = 0; k < v.n_args; k++) {
            const vpps_param p = r->g->matrices[v.s->first_matrix + k];
            memset(r->used + m->first[p], 1, m->first[p + 1] - m->first[p]);
        }
    }
}

void ref_backward(ref_run *r, const ref_model *m, vpps_node loss) {
    const uint32_t n = r->g->flat.n_nodes;
    r->n_param_elems = m->first[m->n];
    r->grads = doubles(r->first[n]);
    r->param_grads = doubles(r->n_param_elems);
    r->used = need(calloc(r->n_param_elems + 1, 1));
    uint8_t *needed = need(calloc((size_t)n + 1, 1));
    needed[loss] = 1;
    r->grads[r->first[loss]] = 1;
    for (uint32_t x = loss + 1; x-- > 0;) {
        if (!needed[x]) continue;
        const node_view v = view(r, x);
        for (uint32_t k = 0; k < v.n_args; k++) needed[arg_of(r, &v, k)] = 1;
        backward_node(r, m, x);
    }
    mark_used(r, m, needed);
    free(needed);
}

/* ---------------------------------------------------------------- optimisers: the formulas of vpps.h */

/* `left1`, `left2`: 1 - beta^t. */
static void step_element(ref_model *m, size_t i, double g, const vpps_optimizer *o, double left1, double left2) {
    const double lr = (double)o->lr, decay = (double)o->weight_decay, epsilon = (double)o->epsilon;
    const double beta1 = (double)o->beta1, beta2 = (double)o->beta2;
    double *w = &m->values[i], *s = &m->states[0][i], *s2 = &m->states[1][i];
    if (o->kind != VPPS_ADAMW) g += decay * *w;
    switch (o->kind) {
    case VPPS_SGD: *w -= lr * g; break;
    case VPPS_MOMENTUM:
        *s = (double)o->momentum * *s + g;
        *w -= lr * *s;
        break;
    case VPPS_ADAGRAD:
        *s += g * g;
        *w -= lr * g / (sqrt(*s) + epsilon);
        break;
    case VPPS_ADAM:
    case VPPS_ADAMW: {
        *s = beta1 * *s + (1 - beta1) * g;
        *s2 = beta2 * *s2 + (1 - beta2) * g * g;
        const double mean = *s / left1, square = *s2 / left2;
        const double before = *w;
        *w -= lr * mean / (sqrt(square) + epsilon);
        if (o->kind == VPPS_ADAMW) *w -= lr * decay * before;
        break;
    }
    }
}

void ref_step(ref_model *m, ref_run *r, const vpps_optimizer *o, uint64_t t) {
    double squares = 0, factor = 1;
    for (uint32_t p = 0; p < m->n; p++) {
        if (m->model->params[p].frozen) continue;
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            if (r->used[i]) squares += r->param_grads[i] * r->param_grads[i];
        }
    }
    if (o->clip > 0 && sqrt(squares) > (double)o->clip) factor = (double)o->clip / sqrt(squares);
    factor = noisy(r, factor);
    const double left1 = 1 - pow((double)o->beta1, (double)t), left2 = 1 - pow((double)o->beta2, (double)t);
    for (uint32_t p = 0; p < m->n; p++) {
        if (m->model->params[p].frozen) continue;
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            if (!r->used[i]) continue;
            const double before = m->values[i];
            step_element(m, i, noisy(r, factor * r->param_grads[i]), o, left1, left2);
            m->values[i] = noisy(r, before + noisy(r, m->values[i] - before));
            m->states[0][i] = noisy(r, m->states[0][i]);
            m->states[1][i] = noisy(r, m->states[1][i]);
        }
    }
}

/* ---------------------------------------------------------------- comparison */

void ref_widen(double *deviation, const double *exact, const double *noisy_values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double d = fabs(noisy_values[i] - exact[i]);
        if (!(d <= deviation[i])) deviation[i] = d;
    }
}

size_t ref_compare(const float *got, const double *want, const double *deviation, size_t n, double *bound) {
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += deviation[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double limit = 8 * deviation[i] + 4 * mean + 4 * SINGLE_EPSILON * fabs(want[i]) + 1e-30;
        if (fabs((double)got[i] - want[i]) <= limit) continue;
        *bound = limit;
        return i;
    }
    return n;
}
