#include "evaluate.h"
#include "common/meaning.h"
#include "common/testing.h"

static double *drawn(uint64_t *random, size_t n) {
    double *x = doubles(n);
    for (size_t i = 0; i < n; i++) x[i] = 2 * (double)vpps_random_unit(random) - 1;
    return x;
}

/* ---------------------------------------------------------------- a vertex */

static size_t words_of(const vpps_cell_value *v) { return (size_t)v->rows * v->cols; }

vertex *vertex_draw(const vpps_model *model, const vpps_compiled_cell *base, const uint32_t *members,
                    const uint32_t *indices, uint64_t seed) {
    vertex *x = need(calloc(1, sizeof *x));
    uint64_t random = vpps_mix64(seed);
    x->model = model;
    if (base->n_lists) memcpy(x->members, members, base->n_lists * sizeof *members);
    x->dropout = 1000;
    x->dropout_key = vpps_random(&random);
    if (indices) memcpy(x->indices, indices, sizeof x->indices);
    x->params = need(calloc(model->n_params + 1, sizeof *x->params));
    for (uint32_t p = 0; p < model->n_params; p++) {
        const size_t n = vpps_param_elems(&model->params[p]);
        x->params[p] = doubles(n);
        for (size_t i = 0; i < n; i++) x->params[p][i] = (double)model->params[p].values[i];
    }
    for (uint32_t i = 0; i < base->n_inputs; i++) {
        const vpps_cell_value *v = &base->values[i]; /* inputs are the first values */
        x->inputs[i] = drawn(&random, words_of(v) * vpps_members(members, v->axis));
    }
    for (uint32_t k = 0; k < base->n_outputs; k++)
        x->gradients[k] = drawn(&random, words_of(&base->values[base->outputs[k].value]));
    if (base->is_data) x->data = drawn(&random, words_of(&base->values[base->outputs[0].value]));
    return x;
}

void vertex_destroy(vertex *x, const vpps_compiled_cell *base) {
    for (uint32_t p = 0; p < x->model->n_params; p++) free(x->params[p]);
    for (uint32_t i = 0; i < base->n_inputs; i++) free(x->inputs[i]);
    for (uint32_t k = 0; k < base->n_outputs; k++) free(x->gradients[k]);
    free(x->params);
    free(x->data);
    free(x);
}

static uint32_t word_of(const vpps_compiled_cell *c, const vertex *x, uint32_t word) {
    const vpps_cell_word *w = &c->words[word];
    return w->kind == VPPS_WORD_INDEX ? x->indices[w->value] : w->kind == VPPS_WORD_IMM ? x->own : x->dropout;
}

static uint32_t row_of(const vpps_cell_lookup *l, const vertex *x) {
    return l->kind == VPPS_WORD_INDEX ? x->indices[l->value] : l->kind == VPPS_WORD_IMM ? x->own : l->value;
}

/* What a value that no stage makes is; NULL for others. */
static const double *given(const vpps_compiled_cell *c, const vertex *x, uint32_t v) {
    const vpps_cell_value *value = &c->values[v];
    switch (value->kind) {
    case VPPS_VALUE_INPUT: return x->inputs[value->input];
    case VPPS_VALUE_LOOKUP: {
        const vpps_cell_lookup *l = &c->lookups[value->lookup];
        return x->params[l->table] + row_of(l, x) * words_of(value);
    }
    case VPPS_VALUE_PARAMETER: return x->params[value->vector];
    default: return NULL;
    }
}

/* ---------------------------------------------------------------- instructions */

enum { MOST_TENSORS = 512 };

/* What the formulas of meanings.def read of one item. */
typedef struct operands {
    meaning_operands of;
    const double *list[MOST_TENSORS];
    uint32_t list_rows[MOST_TENSORS];
} operands;

static uint32_t count_of(const vpps_cell_count *count, const vertex *x) {
    uint32_t n = count->base;
    for (uint32_t d = 1; d < VPPS_AXES; d++) n += count->list[d] * vpps_members(x->members, d);
    return n;
}

/* Operands of item i of value v. args[k]: all items of argument k. */
static void gather(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const double *const *args, uint32_t i,
                   operands *to) {
    const vpps_cell_value *value = &c->values[v];
    const vpps_cell_number *f = &value->run.f, *u = &value->run.u;
    const uint32_t own = value->axis ? i : 0; /* number among the members */
    const char *roles = meaning_of(value->run.opcode).roles;
    meaning_operands *o = &to->of;
    uint32_t n = 0;
    *o = (meaning_operands){
        .f = (double)f->real, .u = u->whole, .key = x->dropout_key, .list = to->list, .list_rows = to->list_rows};
    if (f->kind == VPPS_NUMBER_WORD) {
        const uint32_t bits = word_of(c, x, f->word);
        float number;
        memcpy(&number, &bits, sizeof number);
        o->f = (double)number;
    }
    if (f->kind == VPPS_NUMBER_INVERSE) {
        const uint32_t count = count_of(&f->count, x);
        o->f = count ? 1.0 / count : 0;
    }
    if (u->kind == VPPS_NUMBER_WORD) o->u = word_of(c, x, u->word);
    if (u->kind == VPPS_NUMBER_POSITION) o->u = count_of(&u->count, x) + own;
    if (u->kind == VPPS_NUMBER_ELEMENT)
        o->e = word_of(c, x, u->word) + count_of(&u->count, x) + own * (uint32_t)words_of(value);
    for (const char *type = vpps_instructions[value->run.opcode].operands; *type; type++, roles++) {
        if (strchr("tsv", *type)) {
            const vpps_cell_arg *a = &c->args[value->first_arg + n];
            const vpps_cell_value *arg = &c->values[a->value];
            const double *from = args[n++] + (arg->axis && value->axis ? i : 0) * words_of(arg);
            if (*type == 't' && !o->n) o->n = (uint32_t)words_of(arg);
            *meaning_place(o, *roles) = *type == 's' ? from + a->element : from;
        }
        for (; *type == '*' && n < value->n_args; n++) {
            const vpps_cell_value *arg = &c->values[c->args[value->first_arg + n].value];
            const uint32_t all = value->axis ? 0 : arg->axis, first = arg->axis && value->axis ? i : 0;
            for (uint32_t m = 0; m < vpps_members(x->members, all); m++) {
                if (o->n_list == MOST_TENSORS) ck_abort_msg("cell %s: too many operands", c->name);
                to->list_rows[o->n_list] = arg->rows;
                to->list[o->n_list++] = args[n] + (first + m) * words_of(arg);
            }
        }
    }
    o->rows = value->rows;
    o->cols = value->cols;
    if (value->run.opcode == VPPS_I_MATRIX) o->a = x->params[value->run.table];
    if (!value->n_args) return;
    const vpps_cell_value *a = &c->values[c->args[value->first_arg].value];
    const bool by_columns = value->run.opcode == VPPS_I_MATMUL || value->run.opcode == VPPS_I_MATMUL_NT;
    o->inner = by_columns ? a->cols : a->rows;
    const bool from_rows = value->run.opcode == VPPS_I_SELECT_ROWS_B || value->run.opcode == VPPS_I_PLACE;
    if (from_rows) o->inner = value->rows, o->rows = a->rows;
    if (value->run.opcode == VPPS_I_SLICE && value->run.over_list) o->u = i * value->rows;
}

/* Columns that an instruction goes over one by one: of a ROW's result; a REDUCE makes an element of each. */
static uint32_t columns_of(const vpps_cell_value *value) {
    const vpps_form form = vpps_instructions[value->run.opcode].form;
    return form == VPPS_FORM_ROW ? value->cols : form == VPPS_FORM_REDUCE ? (uint32_t)words_of(value) : 1;
}

/* From a column's operands to the next one's. */
static void next_column(uint32_t opcode, meaning_operands *o) {
    const char *roles = meaning_of(opcode).roles;
    for (const char *type = vpps_instructions[opcode].operands; *type; type++, roles++) {
        if (*type == 't') *meaning_place(o, *roles) += o->n;
        if (*type == 's') *meaning_place(o, *roles) += 1;
    }
}

static void run(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const double *const *args, double *to) {
    const vpps_cell_value *value = &c->values[v];
    const uint32_t n = (uint32_t)words_of(value), members = vpps_members(x->members, value->axis);
    operands o;
    const bool parts = vpps_instructions[value->run.opcode].form == VPPS_FORM_PARTS;
    if (value->run.over_list && value->axis && !parts) { /* the members' scalars are one vector */
        o.of = (meaning_operands){.n = members};
        for (uint32_t k = 0; k < value->n_args; k++)
            *meaning_place(&o.of, meaning_of(value->run.opcode).roles[k]) = args[k];
        meaning_instruction(value->run.opcode, &o.of, members, to, NULL);
        return;
    }
    for (uint32_t i = 0; i < members; i++) {
        gather(c, x, v, args, i, &o);
        const uint32_t columns = columns_of(value), made = n / columns;
        if (columns > 1) o.of.n /= columns;
        for (uint32_t column = 0; column < columns; column++, next_column(value->run.opcode, &o.of))
            meaning_instruction(value->run.opcode, &o.of, made, to + (size_t)i * n + (size_t)column * made, NULL);
    }
}

/* The positions that value v, a MAX_OF or MIN_OF with these operands, found. */
static void positions(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const double *const *args, double *to) {
    const vpps_cell_value *value = &c->values[v];
    const uint32_t n = (uint32_t)words_of(value);
    operands o;
    for (uint32_t i = 0; i < vpps_members(x->members, value->axis); i++) {
        gather(c, x, v, args, i, &o);
        for (uint32_t j = 0; j < n; j++) to[i * n + j] = meaning_position(value->run.opcode, &o.of, j);
    }
}

/* ---------------------------------------------------------------- other operations */

static meaning_matrix matrix_of(const vertex *x, vpps_param p) {
    const vpps_parameter_data *m = &x->model->params[p];
    return (meaning_matrix){.elems = x->params[p], .rows = m->rows, .cols = m->cols};
}

static void product(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const double *const *args, double *to) {
    const vpps_cell_value *value = &c->values[v];
    const uint32_t rows = value->rows, cols = value->cols, items = vpps_members(x->members, value->axis);
    for (uint32_t j = 0; j < items * cols; j++)
        for (uint32_t r = 0; r < rows; r++)
            to[(size_t)j * rows + r] = value->bias == VPPS_NO_PARAM ? 0 : x->params[value->bias][r];
    for (uint32_t k = 0; k < value->n_args; k++) {
        const vpps_cell_arg *a = &c->args[value->first_arg + k];
        if (a->matrix == VPPS_NO_PARAM) {
            for (size_t i = 0; i < (size_t)items * rows * cols; i++) to[i] += args[k][i];
            continue;
        }
        const meaning_matrix w = matrix_of(x, a->matrix);
        for (uint32_t j = 0; j < items * cols; j++)
            meaning_times(&w, args[k] + (size_t)j * w.cols, to + (size_t)j * rows);
    }
}

static void product_t(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const double *const *args, double *to) {
    const vpps_cell_value *value = &c->values[v];
    const uint32_t cols = value->rows, n = vpps_members(x->members, value->axis) * value->cols;
    memset(to, 0, (size_t)n * cols * sizeof *to);
    for (uint32_t k = 0; k < value->n_args; k++) {
        const meaning_matrix w = matrix_of(x, c->args[value->first_arg + k].matrix);
        for (uint32_t j = 0; j < n; j++)
            meaning_transposed_times(&w, 0, w.rows, args[k] + (size_t)j * w.rows, to + (size_t)j * cols);
    }
}

/* Makes value v of a kind that is made. args[k]: all items of argument k; for positions, the operands of what found them. */
static void make(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const double *const *args, double *to) {
    const vpps_cell_value *value = &c->values[v];
    switch (value->kind) {
    case VPPS_VALUE_DATA: memcpy(to, x->data, words_of(value) * sizeof *to); break;
    case VPPS_VALUE_GRADIENT: memcpy(to, x->gradients[value->output], words_of(value) * sizeof *to); break;
    case VPPS_VALUE_RUN: run(c, x, v, args, to); break;
    case VPPS_VALUE_PRODUCT: product(c, x, v, args, to); break;
    case VPPS_VALUE_PRODUCT_T: product_t(c, x, v, args, to); break;
    case VPPS_VALUE_POSITIONS: positions(c, x, c->args[value->first_arg].value, args, to); break;
    default: ck_abort_msg("cell %s: value %u is of no kind that is made", c->name, v);
    }
}

/* The value whose arguments value v is made of. */
static const vpps_cell_value *maker(const vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_value *value = &c->values[v];
    return value->kind == VPPS_VALUE_POSITIONS ? &c->values[c->args[value->first_arg].value] : value;
}

/* ---------------------------------------------------------------- results */

results *results_create(const vpps_compiled_cell *c, const vertex *x) {
    results *r = need(calloc(1, sizeof *r));
    r->model = x->model;
    r->n_outputs = c->n_outputs;
    r->n_inputs = c->n_inputs;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const uint32_t v = c->outputs[k].value;
        r->output_elems[k] = v == VPPS_NONE ? 0 : words_of(&c->values[v]);
        r->outputs[k] = doubles(r->output_elems[k]);
    }
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        const vpps_cell_input *in = &c->inputs[i];
        r->input_elems[i] = (size_t)in->rows * in->cols * vpps_members(x->members, c->input_axis[i]);
        r->inputs[i] = doubles(r->input_elems[i]);
    }
    r->params = need(calloc(x->model->n_params + 1, sizeof *r->params));
    for (uint32_t p = 0; p < x->model->n_params; p++) r->params[p] = doubles(vpps_param_elems(&x->model->params[p]));
    return r;
}

void results_destroy(results *r) {
    for (uint32_t k = 0; k < r->n_outputs; k++) free(r->outputs[k]);
    for (uint32_t i = 0; i < r->n_inputs; i++) free(r->inputs[i]);
    for (uint32_t p = 0; p < r->model->n_params; p++) free(r->params[p]);
    free(r->params);
    free(r);
}

static void add_contribution(results *r, const vpps_compiled_cell *c, const vertex *x, uint32_t j,
                             const double *value) {
    const vpps_cell_contribution *to = &c->contributions[j];
    const vpps_cell_value *v = &c->values[to->value];
    const size_t n = words_of(v) * vpps_members(x->members, v->axis);
    double *sum;
    if (to->lookup) {
        const vpps_cell_lookup *l = &c->lookups[to->index];
        ck_assert_msg(!v->axis, "cell %s: a member's gradient for an entry of a table", c->name);
        sum = r->params[l->table] + row_of(l, x) * n;
    } else {
        ck_assert_msg(n == r->input_elems[to->index], "cell %s: %zu elements for input %u, which has %zu", c->name, n,
                      to->index, r->input_elems[to->index]);
        sum = r->inputs[to->index];
    }
    for (size_t i = 0; i < n; i++) sum[i] += value[i];
}

/* values: all items of each value. */
static void add_outers(results *r, const vpps_compiled_cell *c, const vertex *x, const double *const *values) {
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const vpps_cell_outer *o = &c->outers[i];
        const vpps_cell_value *d = &c->values[o->dy];
        const meaning_matrix w = matrix_of(x, o->param);
        const uint32_t rows = d->rows;
        const double *dy = values[o->dy];
        for (uint32_t item = 0; item < vpps_members(x->members, d->axis); item++) {
            for (uint32_t j = 0; j < d->cols; j++, dy += rows) {
                if (o->x == VPPS_NONE) {
                    const bool matrix = x->model->params[o->param].kind == VPPS_MATRIX;
                    for (uint32_t k = 0; k < rows; k++) r->params[o->param][matrix ? k * w.cols + j : k] += dy[k];
                    continue;
                }
                const vpps_cell_value *with = &c->values[o->x];
                const double *factor = values[o->x] + (with->axis ? item : 0) * words_of(with) + j * with->rows;
                meaning_outer(&w, dy, factor, r->params[o->param]);
            }
        }
    }
}

/* ---------------------------------------------------------------- value by value */

results *evaluate(const vpps_compiled_cell *c, const vertex *x) {
    results *r = results_create(c, x);
    const double **values = need(calloc(c->n_values + 1u, sizeof *values));
    double **mine = need(calloc(c->n_values + 1u, sizeof *mine)); /* of them, those that were made here */
    for (uint32_t v = 0; v < c->n_values; v++) {
        if ((values[v] = given(c, x, v))) continue;
        const vpps_cell_value *value = &c->values[v], *made = maker(c, v);
        const double *args[MOST_TENSORS];
        ck_assert_uint_le(made->n_args, MOST_TENSORS);
        for (uint32_t k = 0; k < made->n_args; k++) {
            const uint32_t a = c->args[made->first_arg + k].value;
            ck_assert_msg(a < v, "cell %s: value %u reads %u, which comes after it", c->name, v, a);
            args[k] = values[a];
        }
        values[v] = mine[v] = doubles(words_of(value) * vpps_members(x->members, value->axis));
        make(c, x, v, args, mine[v]);
    }
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (r->output_elems[k]) memcpy(r->outputs[k], values[c->outputs[k].value], r->output_elems[k] * sizeof(double));
    for (uint32_t j = 0; j < c->n_contributions; j++) add_contribution(r, c, x, j, values[c->contributions[j].value]);
    add_outers(r, c, x, values);
    for (uint32_t v = 0; v < c->n_values; v++) free(mine[v]);
    free(mine);
    free(values);
    return r;
}

/* ---------------------------------------------------------------- comparing */

double results_loss(const results *r, const vertex *x) {
    double loss = 0;
    for (uint32_t k = 0; k < r->n_outputs; k++)
        for (size_t i = 0; i < r->output_elems[k]; i++) loss += r->outputs[k][i] * x->gradients[k][i];
    return loss;
}

static void compare(const char *what, const char *part, uint32_t number, const double *got, const double *want,
                    size_t n, double tolerance) {
    for (size_t i = 0; i < n; i++) {
        if (fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))) continue; /* an assertion costs a system call */
        ck_abort_msg("%s: %s %u, element %zu is %.12g; expected %.12g", what, part, number, i, got[i], want[i]);
    }
}

void results_compare_gradients(const char *what, const results *got, const results *want, uint64_t mask,
                               double tolerance) {
    for (uint32_t i = 0; i < want->n_inputs; i++)
        if (mask >> i & 1)
            compare(what, "gradient of input", i, got->inputs[i], want->inputs[i], want->input_elems[i], tolerance);
    for (uint32_t p = 0; p < want->model->n_params; p++) {
        if (want->model->params[p].frozen) continue;
        compare(what, want->model->params[p].name, p, got->params[p], want->params[p],
                vpps_param_elems(&want->model->params[p]), tolerance);
    }
}

void results_compare_outputs(const char *what, const results *got, const results *want, double tolerance) {
    ck_assert_uint_eq(got->n_outputs, want->n_outputs);
    for (uint32_t k = 0; k < want->n_outputs; k++)
        if (got->output_elems[k]) /* none: nobody reads it */
            compare(what, "output", k, got->outputs[k], want->outputs[k], want->output_elems[k], tolerance);
}

void results_compare(const char *what, const results *got, const results *want, double tolerance) {
    results_compare_outputs(what, got, want, tolerance);
    results_compare_gradients(what, got, want, UINT64_MAX, tolerance);
}
