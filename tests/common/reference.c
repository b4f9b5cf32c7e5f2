#include "reference.h"

#include "common/meaning.h"

#define SINGLE_EPSILON 0x1p-23

/* ---------------------------------------------------------------- parameters */

ref_model *ref_model_create(const vpps_model *model) {
    ref_model *m = need(calloc(1, sizeof *m));
    m->model = model;
    m->n = model->n_params;
    m->first = need(calloc(m->n + 1, sizeof *m->first));
    for (uint32_t p = 0; p < m->n; p++) m->first[p + 1] = m->first[p] + vpps_param_elems(&model->params[p]);
    m->values = doubles(m->first[m->n]);
    for (int k = 0; k < 2; k++) m->states[k] = doubles(m->first[m->n]);
    m->updates = need(calloc(m->n + 1, sizeof *m->updates));
    for (uint32_t p = 0; p < m->n; p++) {
        const float *v = model->params[p].values;
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) m->values[i] = (double)v[i - m->first[p]];
    }
    return m;
}

ref_model *ref_model_copy(const ref_model *from) {
    ref_model *m = ref_model_create(from->model);
    const size_t bytes = from->first[from->n] * sizeof(double);
    memcpy(m->values, from->values, bytes);
    for (int k = 0; k < 2; k++) memcpy(m->states[k], from->states[k], bytes);
    memcpy(m->updates, from->updates, m->n * sizeof *m->updates);
    return m;
}

void ref_model_destroy(ref_model *m) {
    if (m) VPPS_FREE(m->first, m->values, m->states[0], m->states[1], m->updates, m);
}

/* ---------------------------------------------------------------- noise */

static double noisy(ref_run *r, double x) {
    if (r->mode.noise <= 0) return x;
    return x * (1 + r->mode.noise * SINGLE_EPSILON * (2 * (double)vpps_random_unit(&r->random) - 1));
}

/* Adds noise to an operand of a product with a matrix of the model. */
static double noisy_operand(void *context, double x) {
    ref_run *r = context;
    return x * (1 + r->mode.product_noise * (2 * (double)vpps_random_unit(&r->random) - 1));
}

/* ---------------------------------------------------------------- one node */

typedef struct node_view {
    vpps_op op;
    const vpps_signature *s;
    const flat_node *n;
    uint32_t n_args;
    size_t elems;
    float f; /* imm read as a float */
} node_view;

static node_view view(const ref_run *r, uint32_t x) {
    const flat_node *n = &r->flat->nodes[x];
    const vpps_signature *s = &n->s;
    node_view v = {(vpps_op)s->op, s, n, n->n_args, (size_t)s->rows * s->cols, 0};
    memcpy(&v.f, &n->imm, sizeof v.f);
    return v;
}

static uint32_t arg_of(const ref_run *r, const node_view *v, uint32_t k) { return r->flat->args[v->n->args + k]; }
static size_t elems_of(const ref_run *r, uint32_t x) { return vpps_words(&r->flat->nodes[x].s); }

/* Reserves a part of the scratch memory; earlier pointers stay valid within a node. */
static void scratch_room(ref_run *r, size_t n) {
    if (n <= r->scratch_elems) return;
    free(r->scratch);
    r->scratch = doubles(n);
    r->scratch_elems = n;
}

/* Copies the arguments, as the operation reads them, one after the other to `to`; returns the end. */
static double *read_args(ref_run *r, const node_view *v, double *to) {
    for (uint32_t k = 0; k < v->n_args; k++) {
        const uint32_t a = arg_of(r, v, k);
        for (size_t i = 0; i < elems_of(r, a); i++) *to++ = noisy(r, r->values[r->at[a] + i]);
    }
    return to;
}

/* Returns the matrix of argument k of an affine node. */
static meaning_matrix matrix_of(ref_run *r, const ref_model *m, const node_view *v, uint32_t k) {
    const vpps_param p = v->n->matrices[k];
    return (meaning_matrix){.elems = m->values + m->first[p],
                            .rows = v->s->rows,
                            .cols = m->model->params[p].cols,
                            .see = r->mode.product_noise > 0 ? noisy_operand : NULL,
                            .context = r};
}

static void affine(ref_run *r, const ref_model *m, const node_view *v, const double *a, double *y) {
    const uint32_t rows = v->s->rows;
    for (size_t i = 0; i < v->elems; i++)
        y[i] = v->s->param == VPPS_NO_PARAM ? 0 : m->values[m->first[v->s->param] + i % rows];
    for (uint32_t k = 0; k < v->n_args; k++) {
        const meaning_matrix w = matrix_of(r, m, v, k);
        for (uint32_t j = 0; j < v->s->cols; j++, a += w.cols) meaning_times(&w, a, y + (size_t)j * rows);
    }
}

/* Returns what the formulas of meanings.def read of a node whose arguments lie at `a`, one after the other. */
static meaning_operands operands_of(const ref_run *r, const node_view *v, const double *a) {
    const bool weighted = v->op == VPPS_OP_WEIGHTED_SUM;
    const size_t na = elems_of(r, arg_of(r, v, 0));
    meaning_operands o = {.a = a, .b = a + na, .n = (uint32_t)na, .key = r->mode.dropout_key};
    o.list = r->list;
    o.list_rows = r->list_rows;
    if (vpps_ops[v->op].max_args > 2) o.n_list = v->n_args - weighted;
    const double *member = weighted ? o.b : a;
    for (uint32_t k = 0; k < o.n_list; k++) {
        const size_t elems = elems_of(r, arg_of(r, v, k + weighted));
        r->list[k] = member;
        r->list_rows[k] = (uint32_t)(elems / v->s->cols);
        member += elems;
    }
    if (weighted) o.weights = a, o.n = (uint32_t)v->elems;
    o.u = o.e = v->n->imm;
    o.f = strchr(vpps_ops[v->op].operands, 'p') ? (double)v->s->p : (double)v->f;
    if (v->op == VPPS_OP_DROPOUT && !r->mode.training) o.f = 0;
    if (v->op == VPPS_OP_SUM) o.f = 1;
    return o;
}

/* Returns the number of columns that the operation treats one by one; 1: it takes the argument as a whole. */
static uint32_t columns_of(const node_view *v) {
    const uint32_t forward = vpps_op_instructions[v->op].forward;
    if (vpps_ops[v->op].shape == VPPS_SHAPE_COLUMNS) return v->s->rows;
    return forward < VPPS_I_COUNT && vpps_instructions[forward].form == VPPS_FORM_ROW ? v->s->cols : 1;
}

/* Computes sources, whose values have no error, since data are in single precision. */
static bool take_source(const ref_run *r, const ref_model *m, const node_view *v, double *y) {
    const double *values = v->s->param == VPPS_NO_PARAM ? NULL : m->values + m->first[v->s->param];
    for (size_t i = 0; i < v->elems && v->op == VPPS_OP_INPUT; i++) y[i] = (double)r->g->data[v->n->imm + i];
    for (size_t i = 0; i < v->elems && v->op == VPPS_OP_CONSTANT; i++) y[i] = (double)v->f;
    if (v->op == VPPS_OP_LOOKUP) memcpy(y, values + v->n->imm * v->elems, v->elems * sizeof *y);
    if (v->op == VPPS_OP_PARAMETER) memcpy(y, values, v->elems * sizeof *y);
    if (v->op == VPPS_OP_MATRIX) {
        meaning_operands o = {.a = values, .rows = v->s->rows, .cols = v->s->cols};
        meaning_forward(v->op, &o, (uint32_t)v->elems, y, NULL);
    }
    if (v->op == VPPS_OP_LOOKUP_AT) {
        const double number = r->values[r->at[arg_of(r, v, 0)]], last = m->model->params[v->s->param].count - 1.0;
        memcpy(y, values + (size_t)fmin(fmax(number, 0), last) * v->elems, v->elems * sizeof *y);
    }
    return !v->n_args || v->op == VPPS_OP_LOOKUP_AT;
}

/* Adds one error to all elements from which a mean was subtracted, so that their sum deviates. */
static void put_mean_off(ref_run *r, double mean, uint32_t n, double *y) {
    const double off = noisy(r, mean) - mean;
    for (uint32_t i = 0; i < n; i++) y[i] -= off;
}

static void forward_node(ref_run *r, const ref_model *m, uint32_t x) {
    const node_view v = view(r, x);
    double *y = r->values + r->at[x];
    size_t total = 0;
    if (take_source(r, m, &v, y)) return;
    for (uint32_t k = 0; k < v.n_args; k++) total += elems_of(r, arg_of(r, &v, k));
    scratch_room(r, total);
    double *a = r->scratch;
    read_args(r, &v, a);
    meaning_operands o = operands_of(r, &v, a);
    if (v.op == VPPS_OP_AFFINE) {
        affine(r, m, &v, a, y);
    } else {
        o.rows = v.s->rows, o.cols = v.s->cols;
        o.inner = o.n / (v.op == VPPS_OP_MATMUL ? o.rows : o.cols);
        const uint32_t columns = columns_of(&v), made = (uint32_t)v.elems / columns;
        o.n /= columns;
        for (uint32_t column = 0; column < columns; column++, o.a += o.n) {
            double *to = y + (size_t)column * made;
            meaning_forward(v.op, &o, made, to, NULL);
            if (v.op == VPPS_OP_CENTRE) put_mean_off(r, o.a[0] - to[0], made, to);
        }
    }
    for (size_t i = 0; i < v.elems && r->mode.noise > 0; i++) {
        const double slack = o.n == v.elems ? meaning_slack(v.op, a[i], o.f) : 0;
        y[i] = noisy(r, y[i]);
        if (slack > 0) y[i] += noisy(r, slack) - slack;
    }
}

/* Places values: the graph's nodes in their order, then the nodes inside cells. */
static void lay_out(ref_run *r) {
    const flat_graph *f = r->flat;
    r->first = need(calloc(r->g->n_nodes + 1u, sizeof *r->first));
    r->at = need(malloc((f->n_nodes + 1u) * sizeof *r->at));
    for (uint32_t x = 0; x < f->n_nodes; x++) r->at[x] = SIZE_MAX;
    for (uint32_t x = 0; x < r->g->n_nodes; x++) {
        r->at[f->of[x]] = r->first[x];
        r->n_values = r->first[x + 1] = r->first[x] + elems_of(r, f->of[x]);
    }
    for (uint32_t x = 0; x < f->n_nodes; x++) {
        if (r->at[x] != SIZE_MAX) continue;
        r->at[x] = r->n_values;
        r->n_values += elems_of(r, x);
    }
}

ref_run *ref_forward(vpps_graph *g, const ref_model *m, const ref_mode *mode) {
    if (vpps_graph_status(g) != VPPS_OK) return NULL;
    ref_run *r = need(calloc(1, sizeof *r));
    r->g = g;
    r->flat = flatten(g);
    r->mode = *mode;
    r->random = mode->noise_seed;
    lay_out(r);
    r->values = doubles(r->n_values);
    uint32_t most = 1;
    for (uint32_t x = 0; x < r->flat->n_nodes; x++) most = vpps_max_u32(most, r->flat->nodes[x].n_args);
    r->list = need(calloc(most, sizeof *r->list));
    r->list_rows = need(calloc(most, sizeof *r->list_rows));
    for (uint32_t x = 0; x < r->flat->n_nodes; x++) forward_node(r, m, x);
    return r;
}

void ref_run_destroy(ref_run *r) {
    if (!r) return;
    flat_graph_free(r->flat);
    VPPS_FREE(r->first, r->at, r->values, r->grads, r->param_grads, r->used, r->scratch, r->list, r->list_rows, r);
}

/* ---------------------------------------------------------------- backward */

static void add_param_grad(ref_run *r, size_t at, double g) { r->param_grads[at] += noisy(r, g); }

static void affine_backward(ref_run *r, const ref_model *m, const node_view *v, const double *a, const double *d,
                            double *da) {
    const uint32_t rows = v->s->rows;
    for (size_t i = 0; i < v->elems && v->s->param != VPPS_NO_PARAM; i++)
        add_param_grad(r, m->first[v->s->param] + i % rows, d[i]);
    for (uint32_t k = 0; k < v->n_args; k++) {
        const meaning_matrix w = matrix_of(r, m, v, k);
        for (uint32_t j = 0; j < v->s->cols; j++, a += w.cols, da += w.cols) {
            meaning_transposed_times(&w, 0, rows, d + (size_t)j * rows, da);
            meaning_outer(&w, d + (size_t)j * rows, a, r->param_grads + m->first[v->n->matrices[k]]);
        }
    }
}

/* Computes the gradient of argument k by the formulas of meanings.def. */
static void argument_gradient(const ref_run *r, const node_view *v, meaning_operands *o, uint32_t k, double *da) {
    const uint32_t elems = (uint32_t)elems_of(r, arg_of(r, v, k)), rows = v->s->rows, cols = v->s->cols;
    if (v->op == VPPS_OP_MATMUL) {
        const uint32_t inner = o->n / rows;
        o->rows = k ? inner : rows, o->inner = k ? rows : cols, o->cols = k ? cols : inner;
    }
    if (v->op == VPPS_OP_TRANSPOSE) o->rows = cols, o->cols = rows;
    if (v->op == VPPS_OP_SELECT_ROWS || v->op == VPPS_OP_SLICE) o->rows = rows, o->inner = o->n / cols, o->cols = cols;
    const bool weighted = v->op == VPPS_OP_WEIGHTED_SUM;
    if (weighted || vpps_ops[v->op].max_args > 2) o->u = k - weighted;
    if (v->op == VPPS_OP_CONCAT) {
        o->u = 0, o->rows = o->list_rows[k], o->inner = rows;
        for (uint32_t before = 0; before < k; before++) o->u += o->list_rows[before];
    }
    const uint32_t argument = weighted ? k > 0 : vpps_ops[v->op].max_args > 2 ? 0 : k, columns = columns_of(v);
    meaning_operands own = *o;
    own.n /= columns;
    for (uint32_t column = 0; column < columns; column++) {
        meaning_gradient(v->op, argument, &own, elems / columns, da + (size_t)column * (elems / columns), NULL);
        own.a += own.n, own.y += v->elems / columns, own.d += v->elems / columns;
    }
}

/* Adds the node's contributions to the gradients of its arguments and parameters. */
static void backward_node(ref_run *r, const ref_model *m, uint32_t x) {
    const node_view v = view(r, x);
    const size_t n = v.elems;
    if (v.op == VPPS_OP_LOOKUP || v.op == VPPS_OP_PARAMETER) {
        const size_t at = m->first[v.s->param] + (v.op == VPPS_OP_LOOKUP ? v.n->imm * n : 0);
        for (size_t i = 0; i < n; i++) add_param_grad(r, at + i, r->grads[r->at[x] + i]);
    }
    if (v.op == VPPS_OP_MATRIX) {
        meaning_operands o = {.d = r->grads + r->at[x], .rows = v.s->cols, .cols = v.s->rows};
        scratch_room(r, n);
        meaning_gradient(v.op, 0, &o, (uint32_t)n, r->scratch, NULL);
        for (size_t i = 0; i < n; i++) add_param_grad(r, m->first[v.s->param] + i, r->scratch[i]);
    }
    if (!v.n_args || vpps_ops[v.op].op_class == VPPS_CLASS_DECIDED) return; /* no argument has a gradient */
    size_t total = 0;
    for (uint32_t k = 0; k < v.n_args; k++) total += elems_of(r, arg_of(r, &v, k));
    scratch_room(r, 2 * total + 2 * n);
    double *a = r->scratch, *da = read_args(r, &v, a), *y = da + total, *d = y + n;
    memset(da, 0, total * sizeof *da);
    for (size_t i = 0; i < n; i++) y[i] = noisy(r, r->values[r->at[x] + i]);
    for (size_t i = 0; i < n; i++) d[i] = noisy(r, r->grads[r->at[x] + i]);
    meaning_operands o = operands_of(r, &v, a);
    o.y = y;
    o.d = d;
    double *to = da;
    if (v.op == VPPS_OP_AFFINE) affine_backward(r, m, &v, a, d, da);
    for (uint32_t k = 0; k < v.n_args && v.op != VPPS_OP_AFFINE; k++, to += elems_of(r, arg_of(r, &v, k - 1)))
        argument_gradient(r, &v, &o, k, to);
    for (uint32_t k = 0; k < v.n_args; k++) {
        const uint32_t arg = arg_of(r, &v, k);
        for (size_t i = 0; i < elems_of(r, arg); i++) r->grads[r->at[arg] + i] += noisy(r, *da++);
    }
}

static void mark_parameter(ref_run *r, const ref_model *m, vpps_param p) {
    memset(r->used + m->first[p], 1, m->first[p + 1] - m->first[p]);
}

/* Marks the parameters of the nodes that the loss depends on, as needed[x] tells. */
static void mark_used(ref_run *r, const ref_model *m, const uint8_t *needed) {
    for (uint32_t x = 0; x < r->flat->n_nodes; x++) {
        if (!needed[x]) continue;
        const node_view v = view(r, x);
        if (v.op == VPPS_OP_LOOKUP) {
            memset(r->used + m->first[v.s->param] + v.n->imm * v.elems, 1, v.elems);
        } else if (v.s->param != VPPS_NO_PARAM) {
            mark_parameter(r, m, v.s->param);
        }
        for (uint32_t k = 0; v.op == VPPS_OP_AFFINE && k < v.n_args; k++) mark_parameter(r, m, v.n->matrices[k]);
    }
}

void ref_backward(ref_run *r, const ref_model *m, vpps_node loss) {
    ref_backward_from(r, m, 1, &loss, (float *[]){&(float){1}});
}

void ref_backward_from(ref_run *r, const ref_model *m, uint32_t n_given, const vpps_node *given,
                       float *const *gradients) {
    const uint32_t n = r->flat->n_nodes;
    uint32_t end = 0;
    r->n_param_elems = m->first[m->n];
    r->grads = doubles(r->n_values);
    r->param_grads = doubles(r->n_param_elems);
    r->used = need(calloc(r->n_param_elems + 1, 1));
    FREED uint8_t *needed = need(calloc((size_t)n + 1, 1));
    for (uint32_t i = 0; i < n_given; i++) {
        const uint32_t x = r->flat->of[given[i]];
        needed[x] = 1;
        end = vpps_max_u32(end, x + 1);
        for (size_t k = 0; gradients[i] && k < elems_of(r, x); k++) /* a sum is rounded; a loss's 1 is exact */
            r->grads[r->at[x] + k] += n_given > 1 ? noisy(r, (double)gradients[i][k]) : (double)gradients[i][k];
    }
    for (uint32_t x = end; x-- > 0;) {
        if (!needed[x]) continue;
        const node_view v = view(r, x);
        for (uint32_t k = 0; k < v.n_args; k++) needed[arg_of(r, &v, k)] = 1;
        backward_node(r, m, x);
    }
    mark_used(r, m, needed);
}

/* ---------------------------------------------------------------- optimisers */

void ref_step(ref_model *m, ref_run *r, const vpps_optimizer *o) {
    double squares = 0, factor = 1;
    for (uint32_t p = 0; p < m->n; p++) {
        if (m->model->params[p].frozen) continue;
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++)
            if (r->used[i]) squares += r->param_grads[i] * r->param_grads[i];
    }
    if (o->clip > 0 && sqrt(squares) > (double)o->clip) factor = (double)o->clip / sqrt(squares);
    factor = noisy(r, factor);
    for (uint32_t p = 0; p < m->n; p++) {
        const size_t elems = m->first[p + 1] - m->first[p];
        if (m->model->params[p].frozen || !memchr(r->used + m->first[p], 1, elems)) continue;
        const double t = (double)++m->updates[p];
        const double left[] = {1 - pow((double)o->beta1, t), 1 - pow((double)o->beta2, t)};
        for (size_t i = m->first[p]; i < m->first[p + 1]; i++) {
            if (!r->used[i]) continue;
            const double before = m->values[i];
            meaning_step(o, left, noisy(r, factor * r->param_grads[i]), &m->values[i], &m->states[0][i],
                         &m->states[1][i]);
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
