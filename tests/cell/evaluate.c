#include "evaluate.h"
#include "common/meaning.h"
#include "common/testing.h"

#include <math.h>

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

typedef struct who {
    uint32_t member, group; /* the VP, and VPs that rows are shared out to; 1: it has all */
} who;

static vpps_rows rows_of(const who *vp, uint32_t rows) {
    return vp->group == 1 ? (vpps_rows){0, rows} : vpps_rows_of(rows, 16, vp->group, vp->member);
}

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

static void product_t(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const who *vp,
                      const double *const *args, double *to) {
    const vpps_cell_value *value = &c->values[v];
    const uint32_t cols = value->rows, n = vpps_members(x->members, value->axis) * value->cols;
    memset(to, 0, (size_t)n * cols * sizeof *to);
    for (uint32_t k = 0; k < value->n_args; k++) {
        const meaning_matrix w = matrix_of(x, c->args[value->first_arg + k].matrix);
        const vpps_rows own = rows_of(vp, w.rows);
        for (uint32_t j = 0; j < n; j++)
            meaning_transposed_times(&w, own.first, own.end, args[k] + (size_t)j * w.rows, to + (size_t)j * cols);
    }
}

/* Makes value v of a kind that is made. args[k]: all items of argument k; for positions, the operands of what found
 * them. */
static void make(const vpps_compiled_cell *c, const vertex *x, uint32_t v, const who *vp, const double *const *args,
                 double *to) {
    const vpps_cell_value *value = &c->values[v];
    switch (value->kind) {
    case VPPS_VALUE_DATA: memcpy(to, x->data, words_of(value) * sizeof *to); break;
    case VPPS_VALUE_GRADIENT: memcpy(to, x->gradients[value->output], words_of(value) * sizeof *to); break;
    case VPPS_VALUE_RUN: run(c, x, v, args, to); break;
    case VPPS_VALUE_PRODUCT: product(c, x, v, args, to); break;
    case VPPS_VALUE_PRODUCT_T: product_t(c, x, v, vp, args, to); break;
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

/* get(context, v): all items of value v when everything is done. */
static void add_outers(results *r, const vpps_compiled_cell *c, const vertex *x,
                       const double *(*get)(void *context, uint32_t v), void *context) {
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const vpps_cell_outer *o = &c->outers[i];
        const vpps_cell_value *d = &c->values[o->dy];
        const meaning_matrix w = matrix_of(x, o->param);
        const uint32_t rows = d->rows;
        const double *dy = get(context, o->dy);
        for (uint32_t item = 0; item < vpps_members(x->members, d->axis); item++) {
            for (uint32_t j = 0; j < d->cols; j++, dy += rows) {
                if (o->x == VPPS_NONE) {
                    const bool matrix = x->model->params[o->param].kind == VPPS_MATRIX;
                    for (uint32_t k = 0; k < rows; k++) r->params[o->param][matrix ? k * w.cols + j : k] += dy[k];
                    continue;
                }
                const vpps_cell_value *with = &c->values[o->x];
                const double *factor = get(context, o->x) + (with->axis ? item : 0) * words_of(with) + j * with->rows;
                meaning_outer(&w, dy, factor, r->params[o->param]);
            }
        }
    }
}

/* ---------------------------------------------------------------- value by value */

typedef struct whole {
    const vpps_compiled_cell *c;
    const vertex *x;
    double **values;
} whole;

static const double *whole_value(void *context, uint32_t v) {
    const whole *w = context;
    const double *g = given(w->c, w->x, v);
    return g ? g : w->values[v];
}

results *evaluate(const vpps_compiled_cell *c, const vertex *x) {
    static const who everybody = {0, 1};
    results *r = results_create(c, x);
    whole w = {c, x, need(calloc(c->n_values + 1u, sizeof *w.values))};
    for (uint32_t v = 0; v < c->n_values; v++) {
        if (given(c, x, v)) continue;
        const vpps_cell_value *value = &c->values[v], *made = maker(c, v);
        const double *args[MOST_TENSORS];
        ck_assert_uint_le(made->n_args, MOST_TENSORS);
        for (uint32_t k = 0; k < made->n_args; k++) {
            const uint32_t a = c->args[made->first_arg + k].value;
            ck_assert_msg(a < v, "cell %s: value %u reads %u, which comes after it", c->name, v, a);
            args[k] = whole_value(&w, a);
        }
        w.values[v] = doubles(words_of(value) * vpps_members(x->members, value->axis));
        make(c, x, v, &everybody, args, w.values[v]);
    }
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (r->output_elems[k])
            memcpy(r->outputs[k], whole_value(&w, c->outputs[k].value), r->output_elems[k] * sizeof(double));
    for (uint32_t j = 0; j < c->n_contributions; j++)
        add_contribution(r, c, x, j, whole_value(&w, c->contributions[j].value));
    add_outers(r, c, x, whole_value, &w);
    for (uint32_t v = 0; v < c->n_values; v++) free(w.values[v]);
    free(w.values);
    return r;
}

/* ---------------------------------------------------------------- stage by stage */

typedef struct machine {
    const vpps_compiled_cell *c;
    const vertex *x;
    results *r;
    double *record[VPPS_RECORDS]; /* kept values of the vertex, of its members; those that pass */
    double **tile;                /* what the VP has of each value in the stage; NULL: nothing */
    double **joined;              /* values read from the record when all is done */
    uint32_t stage;
    who vp;
} machine;

static size_t elems_of(const machine *m, uint32_t v) {
    const vpps_cell_value *value = &m->c->values[v];
    return words_of(value) * vpps_members(m->x->members, value->axis);
}

static double *in_record(const machine *m, uint32_t v, uint32_t item, uint32_t share) {
    const vpps_cell_value *value = &m->c->values[v];
    ck_assert_msg(value->kept && value->offset != VPPS_NONE, "cell %s: value %u is not kept, and read in stage %u",
                  m->c->name, v, m->stage);
    return m->record[value->record] + (size_t)item * m->c->kept_words[value->record] + value->offset +
           (size_t)share * vpps_share_words(vpps_value_words(value));
}

/* What lies in the record of a value, shares added up. */
static double *read_record(const machine *m, uint32_t v) {
    const vpps_cell_value *value = &m->c->values[v];
    const size_t n = words_of(value);
    double *to = doubles(elems_of(m, v));
    for (uint32_t i = 0; i < vpps_members(m->x->members, value->axis); i++)
        for (uint32_t s = 0; s < vpps_shares_of(m->c, value); s++)
            for (size_t k = 0; k < n; k++) to[i * n + k] += in_record(m, v, i, s)[k];
    return to;
}

/* Rows that the VP does not own become NaN: it has not seen them. */
static void forget_others(const machine *m, uint32_t v, double *values) {
    const vpps_cell_value *value = &m->c->values[v];
    if (m->vp.group == 1 || value->rows < 16 * m->vp.group) return; /* whoever is so small is made by every VP */
    const vpps_rows own = rows_of(&m->vp, value->rows);
    for (size_t i = 0; i < elems_of(m, v); i++) {
        const size_t row = i % value->rows;
        if (row < own.first || row >= own.end) values[i] = NAN;
    }
}

/* What the VP reads of an argument. Products read memory when they run, whole vectors of it; others have loaded their own
 * rows when the value was first read in the stage. */
static const double *operand(machine *m, const vpps_cell_value *reader, const vpps_cell_arg *a) {
    const double *g = given(m->c, m->x, a->value);
    if (g) return g;
    const bool here = m->c->values[a->value].stage == m->stage;
    const bool by_pointer = a->matrix != VPPS_NO_PARAM && vpps_is_product(reader);
    if (here || (m->tile[a->value] && !by_pointer)) {
        ck_assert_msg(m->tile[a->value], "cell %s: value %u is read in stage %u before it is made", m->c->name,
                      a->value, m->stage);
        return m->tile[a->value];
    }
    double *values = read_record(m, a->value);
    if (by_pointer) { /* of this moment; in one place, as a product may read it twice */
        if (!m->joined[a->value]) return m->joined[a->value] = values;
        memcpy(m->joined[a->value], values, elems_of(m, a->value) * sizeof *values);
        free(values);
        return m->joined[a->value];
    }
    forget_others(m, a->value, values);
    return m->tile[a->value] = values;
}

static void store(const machine *m, uint32_t v) {
    const vpps_cell_value *value = &m->c->values[v];
    const size_t n = words_of(value);
    for (uint32_t i = 0; i < vpps_members(m->x->members, value->axis); i++) {
        double *to = in_record(m, v, i, vpps_makes_shares(value) ? m->vp.member : 0);
        for (size_t k = 0; k < n; k++)
            if (!isnan(m->tile[v][i * n + k])) to[k] = m->tile[v][i * n + k];
    }
}

/* The VP's part of a contribution: its rows, its share, or all. */
static void contribute(const machine *m, uint32_t j) {
    const uint32_t v = m->c->contributions[j].value;
    const vpps_cell_value *value = &m->c->values[v];
    FREED double *part = doubles(elems_of(m, v));
    const bool all = value->split == VPPS_SPLIT_ROWS && !vpps_makes_shares(value) && value->rows < 16 * m->vp.group;
    ck_assert_msg(m->c->contributions[j].partial == vpps_makes_shares(value),
                  "cell %s: contribution %u does not say whether it comes in shares", m->c->name, j);
    for (size_t i = 0; i < elems_of(m, v); i++) part[i] = isnan(m->tile[v][i]) ? 0 : m->tile[v][i];
    if (!all || m->vp.member == 0) add_contribution(m->r, m->c, m->x, j, part);
}

static void run_stage(machine *m) {
    const vpps_compiled_cell *c = m->c;
    const vpps_cell_stage *stage = &c->stages[m->stage];
    for (uint32_t i = 0; i < stage->n; i++) {
        const uint32_t v = c->order[stage->first + i];
        const vpps_cell_value *value = &c->values[v], *made = maker(c, v);
        const double *args[MOST_TENSORS];
        ck_assert_msg(value->split == stage->split && value->stage == m->stage,
                      "cell %s: value %u is in a stage that is shared out in another way", c->name, v);
        for (uint32_t k = 0; k < made->n_args; k++) args[k] = operand(m, made, &c->args[made->first_arg + k]);
        ck_assert_msg(!m->tile[v], "cell %s: value %u was read before it was made", c->name, v);
        m->tile[v] = doubles(elems_of(m, v));
        make(c, m->x, v, &m->vp, args, m->tile[v]);
        if (!vpps_makes_shares(value)) forget_others(m, v, m->tile[v]);
        if (value->kept) store(m, v);
        for (uint32_t j = 0; j < c->n_contributions; j++)
            if (c->contributions[j].value == v) contribute(m, j);
    }
}

static void forget(double **values, uint32_t n) {
    for (uint32_t v = 0; v < n; v++) {
        free(values[v]);
        values[v] = NULL;
    }
}

static const double *kept_value(void *context, uint32_t v) {
    machine *m = context;
    const double *g = given(m->c, m->x, v);
    if (!g && !m->joined[v]) m->joined[v] = read_record(m, v);
    return g ? g : m->joined[v];
}

static double *nothing(size_t n) {
    double *x = doubles(n);
    for (size_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

results *evaluate_stages(const vpps_compiled_cell *c, const vertex *x, bool reversed) {
    machine m = {.c = c, .x = x, .r = results_create(c, x)};
    const uint32_t group = c->needs.group;
    m.tile = need(calloc(c->n_values + 1u, sizeof *m.tile));
    m.joined = need(calloc(c->n_values + 1u, sizeof *m.joined));
    for (uint32_t r = 0; r < VPPS_RECORDS; r++) {
        const uint32_t d = vpps_axis_of(r);
        m.record[r] = nothing((size_t)c->kept_words[r] * (d > c->n_lists ? 0 : vpps_members(x->members, d)));
    }
    for (m.stage = 0; m.stage < c->n_stages; m.stage++) {
        const bool rows = c->stages[m.stage].split == VPPS_SPLIT_ROWS;
        for (uint32_t i = 0; i < (rows ? group : 1); i++) {
            m.vp = (who){rows ? (reversed ? group - 1 - i : i) : 0, rows ? group : 1};
            run_stage(&m);
            forget(m.tile, c->n_values);
            forget(m.joined, c->n_values);
        }
    }
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (m.r->output_elems[k])
            memcpy(m.r->outputs[k], kept_value(&m, c->outputs[k].value), m.r->output_elems[k] * sizeof(double));
    add_outers(m.r, c, x, kept_value, &m);
    forget(m.joined, c->n_values);
    free(m.tile);
    free(m.joined);
    for (uint32_t r = 0; r < VPPS_RECORDS; r++) free(m.record[r]);
    return m.r;
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
