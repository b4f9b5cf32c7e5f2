/* proof.c - proves that a compiled cell computes what the graph asks for: each output has its node's expression, and each gradient the
 * expression of the function's derivative. */
#include "script/verify/proof.h"

static bool open_function(vpps_checker *c, vpps_function *f, const vpps_compiled_cell *cell, uint32_t record) {
    const vpps_record_view view = vpps_check_view(c->g, record);
    f->drops = c->training && !c->request->no_dropout;
    f->fixed = c->request->goal == VPPS_GOAL_NODES;
    if (view.cell) return vpps_function_of_cell(f, c->g, view.cell);
    const bool list = cell->n_inputs == 1 && cell->input_axis[0] == 1;
    if (list ? !vpps_takes_members(view.signature->op) : view.n_args != cell->n_inputs)
        return VPPS_REFUSE(c, "cell %s: number of inputs differs from the op's", cell->name);
    f->n_inputs = cell->n_inputs;
    for (uint32_t i = 0; i < cell->n_inputs; i++) {
        const vpps_signature *s = vpps_check_signature(c->g, view.args[i]);
        f->inputs[i] = (vpps_function_input){s->rows, s->cols, list};
    }
    return vpps_function_of_op(f, c->g, view.signature, view.op->imm);
}

static bool check_inputs(const vpps_proof *p, const vpps_function *f) {
    const vpps_compiled_cell *c = p->c;
    uint32_t n_lists = 0, inputs_of[VPPS_AXES] = {0};
    bool same = c->n_inputs == f->n_inputs;
    for (uint32_t i = 0; same && i < c->n_inputs; i++) {
        same = c->input_axis[i] == f->inputs[i].axis;
        n_lists = vpps_max_u32(n_lists, f->inputs[i].axis);
        inputs_of[f->inputs[i].axis]++;
    }
    return (same && n_lists == c->n_lists && !memcmp(inputs_of, c->inputs_of, sizeof inputs_of)) ||
           VPPS_REFUSE(p->check, "cell %s: wrong inputs", c->name);
}

/* Checks that each lookup names a table of the model, even if no step uses it, since devices read its entries all the same. */
static bool check_lookups(const vpps_proof *p) {
    for (uint32_t i = 0; i < p->c->n_lookups; i++)
        if (p->c->lookups[i].table != VPPS_NO_PARAM && !vpps_proof_parameter(p, p->c->lookups[i].table, VPPS_LOOKUP))
            return VPPS_REFUSE(p->check, "cell %s: lookup %u has no table", p->c->name, i);
    return true;
}

static bool check_outputs(const vpps_proof *p, const vpps_function *f, vpps_checked_cell *cell) {
    const vpps_compiled_cell *c = p->c;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const vpps_cell_output *o = &c->outputs[k];
        if (o->node >= f->n_nodes || f->nodes[o->node].axis)
            return VPPS_REFUSE(p->check, "cell %s: output %u is no node of the vertex", c->name, k);
        for (uint32_t i = 0; i < k; i++)
            if (c->outputs[i].node == o->node)
                return VPPS_REFUSE(p->check, "cell %s: output %u: duplicate node", c->name, k);
        cell->output_reads[k] = f->reads[o->node];
        cell->output_trained[k] = f->trained[o->node];
        /* an output need not be computed: vpps_check_output refuses vertices that read it */
        if (o->value == VPPS_NONE) continue;
        if (o->value >= c->n_values || c->values[o->value].axis)
            return VPPS_REFUSE(p->check, "cell %s: output %u is no value of the vertex", c->name, k);
        if (p->is[o->value] != f->value[o->node])
            return VPPS_REFUSE(p->check, "cell %s: output %u, value %u, does not compute node %u (%s)", c->name, k,
                               o->value, o->node, vpps_ops[f->nodes[o->node].s->op].name);
    }
    return true;
}

/* If the request asks for gradients of outputs: finds for each output which outputs it depends on. */
static bool find_made_of(const vpps_proof *p, const vpps_function *f, vpps_checked_cell *cell) {
    const vpps_compiled_cell *c = p->c;
    if (!c->needs.asked_gradients) return true;
    uint64_t *of = vpps_check_zeros(p->check, f->n_nodes, sizeof *of);
    if (!of) return false;
    for (uint32_t k = 0; k < c->n_outputs; k++) of[c->outputs[k].node] |= (uint64_t)1 << k;
    for (uint32_t t = 0; t < f->n_nodes; t++)
        for (uint32_t i = 0; i < f->nodes[t].n; i++) {
            const uint32_t arg = f->args[f->nodes[t].first + i];
            if (!(arg & VPPS_CELL_INPUT)) of[t] |= of[arg];
        }
    for (uint32_t k = 0; k < c->n_outputs; k++) cell->output_made_of[k] = of[c->outputs[k].node];
    return true;
}

/* ---------------------------------------------------------------- conditions */

/* Returns the expression of the cell's input number `input`, and gives its shape. */
static uint32_t input_of(const vpps_proof *p, uint32_t input, uint32_t *rows, uint32_t *cols) {
    for (uint32_t v = 0; v < p->c->n_values; v++) {
        if (p->c->values[v].kind != VPPS_VALUE_INPUT || p->c->values[v].input != input) continue;
        *rows = p->c->values[v].rows;
        *cols = p->c->values[v].cols;
        return p->is[v];
    }
    return VPPS_NONE;
}

/* A cell with a condition runs where a scalar input is > 0, or equals a number. Returns a formula that is > 0 there. */
static uint32_t express_condition(const vpps_proof *p) {
    const vpps_condition_data *condition = &p->c->condition;
    uint32_t rows, cols;
    const uint32_t x = input_of(p, condition->input, &rows, &cols);
    if (x == VPPS_NONE || rows != 1 || cols != 1) return VPPS_NONE;
    if (!condition->is) return x;
    const uint32_t half = vpps_express(p->s, VPPS_X_CONSTANT, 1, 1, 0, vpps_float_bits(0.5f), 0, 0);
    const uint32_t value = vpps_express(p->s, VPPS_X_CONSTANT, 1, 1, 0, vpps_float_bits(condition->value), 0, 0);
    vpps_term off = {vpps_express_pair(p->s, VPPS_I_SUB, 1, 1, x, value), 0};
    const vpps_run size = {.opcode = VPPS_I_ABS, .rows = 1, .cols = 1, .operands = &off, .n = 1};
    return vpps_express_pair(p->s, VPPS_I_SUB, 1, 1, half, vpps_express_run(p->s, &size));
}

static bool is_when(const vpps_proof *p, uint32_t x, uint32_t condition) {
    const vpps_expression *e = &p->s->at[x];
    return e->kind == VPPS_X_RUN && e->a[0] == VPPS_I_WHEN && e->n == 2 && p->s->terms[e->first + 1].x == condition;
}

/* Returns whether output x, where the cell's condition does not hold, is expression `unless` or, if that is VPPS_NONE, zero. */
static bool is_otherwise(const vpps_proof *p, uint32_t x, uint32_t condition, uint32_t unless) {
    const vpps_expression *e = &p->s->at[x];
    const bool sum = e->kind == VPPS_X_SUM;
    bool found = unless == VPPS_NONE;
    for (uint32_t i = 0; i < (sum ? e->n : 1); i++) {
        const vpps_term t = sum ? p->s->terms[e->first + i] : vpps_plus(x);
        if (!found && t.x == unless && vpps_bits_float(t.mark) == 1) {
            found = true;
        } else if (!is_when(p, t.x, condition)) {
            return false;
        }
    }
    return found;
}

/* A device may skip stages (parts of a cell) for vertices for which the cell's condition does not hold, and write fixed
 * values as their outputs. Checks that the cell computes just these values for such vertices. */
static bool check_condition(const vpps_proof *p) {
    const vpps_compiled_cell *c = p->c;
    if (!c->condition.there) return true;
    const uint32_t condition = express_condition(p);
    if (condition == VPPS_NONE) return VPPS_REFUSE(p->check, "cell %s: the condition is no scalar input", c->name);
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const vpps_cell_output *o = &c->outputs[k];
        if (o->value == VPPS_NONE) continue;
        const vpps_cell_value *x = &c->values[o->value];
        uint32_t rows = x->rows, cols = x->cols, unless = VPPS_NONE;
        if (o->otherwise != VPPS_NONE) {
            const uint32_t otherwise = input_of(p, o->otherwise, &rows, &cols);
            if (otherwise == VPPS_NONE || rows != x->rows || cols != x->cols)
                return VPPS_REFUSE(p->check, "cell %s: output %u: its other value is no input of its shape", c->name,
                                   k);
            unless = vpps_express_pair(p->s, VPPS_I_UNLESS, rows, cols, otherwise, condition);
        }
        if (!p->s->failed && !is_otherwise(p, p->is[o->value], condition, unless))
            return VPPS_REFUSE(p->check,
                               "cell %s: output %u, value %u, is wrong where the condition "
                               "does not hold",
                               c->name, k, o->value);
    }
    return true;
}

/* Lists the gradients that the compiled cell computes for inputs, table entries and parameters. */
static bool collect_owed(vpps_proof *p, vpps_checked_cell *cell, vpps_owed_list *owed) {
    const vpps_compiled_cell *c = p->c;
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        p->v = to->value;
        const uint32_t key = to->lookup ? vpps_proof_lookup(p, to->index) : to->index;
        if (p->check->status != VPPS_OK) return false;
        *(to->lookup ? &cell->into_entry[to->index] : &cell->into_input[to->index]) |= p->gradients[to->value];
        vpps_owe(p->s, owed, to->lookup ? VPPS_OWED_ENTRY : VPPS_OWED_INPUT, key, p->is[to->value]);
    }
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (!o.x) {
            const vpps_parameter_data *matrix = vpps_proof_parameter(p, o.param, VPPS_MATRIX);
            const vpps_parameter_data *is_of = matrix ? matrix : vpps_proof_parameter(p, o.param, VPPS_VECTOR);
            if (!is_of || is_of->rows != o.dy->rows || (matrix && matrix->cols != o.dy->cols))
                return VPPS_REFUSE(p->check, "cell %s: gradient %u is neither a vector's nor a matrix's", c->name, i);
            const uint32_t is = vpps_express_over_list(p->s, p->is[o.dy->value], o.dy->axis);
            vpps_owe(p->s, owed, VPPS_OWED_SUM, o.param, is);
            continue;
        }
        if (!vpps_proof_parameter(p, o.param, VPPS_MATRIX) || o.x->axis != o.dy->axis)
            return VPPS_REFUSE(p->check, "cell %s: outer product %u does not fit", c->name, i);
        vpps_owe_matrix(owed, o.param, p->is[o.x->value], o.dy->axis, p->is[o.dy->value]);
    }
    return true;
}

static const char *owed_name(const vpps_proof *p, const vpps_owed *o, char *text, size_t size) {
    if (o->kind == VPPS_OWED_INPUT) {
        snprintf(text, size, "input %u", o->key);
    } else {
        const vpps_param param = o->kind == VPPS_OWED_ENTRY ? p->s->at[o->key].a[0] : o->key;
        snprintf(text, size, "%s", p->check->g->model->params[param].name);
    }
    return text;
}

/* Checks that each gradient that the host reads equals the derivative of the vertex's function. */
static bool check_asked(const vpps_proof *p, const vpps_function *f) {
    const vpps_compiled_cell *c = p->c;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const uint32_t d = c->gradient_of[k];
        if (d != VPPS_NONE && (d >= c->n_values || !(c->needs.asked_gradients >> k & 1)))
            return VPPS_REFUSE(p->check, "cell %s: output %u's gradient is no value, or not asked for", c->name, k);
        if (!(c->needs.asked_gradients >> k & 1)) continue;
        if ((d == VPPS_NONE ? VPPS_NONE : p->is[d]) != f->gradient[c->outputs[k].node])
            return VPPS_REFUSE(p->check, "cell %s: output %u's gradient differs from the vertex's derivative", c->name,
                               k);
    }
    return true;
}

/* Compares a compiled cell's gradients with its function's derivative; those of inputs only if the batch needs them. */
static bool check_gradients(vpps_proof *p, vpps_function *f, vpps_checked_cell *cell) {
    const vpps_compiled_cell *c = p->c;
    uint32_t nodes[VPPS_CELL_MOST];
    for (uint32_t k = 0; k < c->n_outputs; k++) nodes[k] = c->outputs[k].node;
    vpps_owed_list want = {0}, have = {0};
    vpps_function_differentiate(f, p->s, c->n_outputs, nodes, c->needs.gradient_out, &want);
    uint32_t n = 0;
    for (uint32_t i = 0; i < want.n; i++)
        if (want.at[i].kind != VPPS_OWED_INPUT || (c->needs.gradient_in >> want.at[i].key & 1))
            want.at[n++] = want.at[i];
    want.n = n;
    bool ok = check_asked(p, f) && collect_owed(p, cell, &have) && !want.failed && !have.failed && !p->s->failed;
    if (ok) {
        vpps_owed_sort(&want);
        vpps_owed_sort(&have);
        uint32_t i = 0;
        while (i < want.n && i < have.n && !memcmp(&want.at[i], &have.at[i], sizeof *want.at)) i++;
        if (i < want.n || i < have.n) {
            char text[128];
            ok = VPPS_REFUSE(p->check, "cell %s: the gradient of %s differs from the vertex's derivative", c->name,
                             owed_name(p, i < want.n ? &want.at[i] : &have.at[i], text, sizeof text));
        }
    }
    if (want.failed || have.failed) p->s->failed = true;
    VPPS_FREE_ARRAYS(want.at, have.at);
    return ok;
}

static bool prove(vpps_proof *p, vpps_function *f, vpps_checked_cell *cell) {
    const vpps_compiled_cell *c = p->c;
    vpps_function_express(f, p->s);
    if (!check_inputs(p, f) || !check_lookups(p) || !vpps_proof_run(p) || !check_outputs(p, f, cell) ||
        !find_made_of(p, f, cell) || !check_condition(p))
        return false;
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        cell->input_rows[i] = f->inputs[i].rows;
        cell->input_cols[i] = f->inputs[i].cols;
    }
    if (c->needs.training) return check_gradients(p, f, cell);
    return !(c->n_contributions || vpps_n_outers(c)) ||
           VPPS_REFUSE(p->check, "cell %s: gradients in inference", c->name);
}

bool vpps_check_cell(vpps_checker *c, vpps_checked_cell *cell, uint32_t record) {
    vpps_function f = {0};
    vpps_expressions_clear(&c->expressions);
    vpps_proof p = {.check = c, .cell = cell, .c = cell->c, .s = &c->expressions};
    p.is = vpps_check_zeros(c, cell->c->n_values, sizeof *p.is);
    p.gradients = vpps_check_zeros(c, cell->c->n_values, sizeof *p.gradients);
    const bool open = c->status == VPPS_OK && open_function(c, &f, cell->c, record);
    const bool ok = open && prove(&p, &f, cell);
    if (!ok && c->status == VPPS_OK) c->status = VPPS_MEMORY;
    cell->record = record;
    vpps_function_free(&f);
    return ok;
}
