/* compiled.c - a compiled cell computes what the graph asks for: each value's expression, made from its instruction, must
 * be that of the node which it stands for, and each gradient that of the function's derivative. */
#include "script/verify/checker.h"

typedef struct proof {
    vpps_checker *check;
    const vpps_compiled_cell *c;
    vpps_expressions *s;
    uint32_t *is;        /* expression of each value */
    uint64_t *gradients; /* of outputs, that each value is made of */
    uint32_t v;
} proof;

#define REFUSE(p, ...) refuse(p, __VA_ARGS__)

static uint32_t refuse(const proof *p, const char *what) {
    vpps_check_record(p->check, "cell %s, value %u: %s", p->c->name, p->v, what);
    return VPPS_NONE;
}

static const vpps_cell_arg *arg_of(const proof *p, uint32_t i) { return &p->c->args[p->c->values[p->v].first_arg + i]; }
static const vpps_cell_value *value_of(const proof *p, uint32_t i) { return &p->c->values[arg_of(p, i)->value]; }

static bool same_shape(const vpps_cell_value *a, const vpps_cell_value *b) {
    return a->rows == b->rows && a->cols == b->cols;
}

static const vpps_parameter_data *parameter(const proof *p, vpps_param param, vpps_param_kind kind) {
    const vpps_model *model = p->check->g->model;
    return param < model->n_params && model->params[param].kind == kind ? &model->params[param] : NULL;
}

/* ---------------------------------------------------------------- values */

static uint32_t express_lookup(const proof *p, uint32_t index) {
    static const uint8_t sources[] = {[VPPS_WORD_INDEX] = VPPS_OPERAND_INDEX,
                                      [VPPS_WORD_IMM] = VPPS_OPERAND_OWN,
                                      [VPPS_WORD_DROPOUT] = VPPS_OPERAND_STATIC};
    if (index >= p->c->n_lookups) return REFUSE(p, "there is no such lookup");
    const vpps_cell_lookup *l = &p->c->lookups[index];
    const vpps_parameter_data *table = parameter(p, l->table, VPPS_LOOKUP);
    if (!table || l->kind > VPPS_WORD_DROPOUT) return REFUSE(p, "it is no lookup of a table");
    const uint32_t source = sources[l->kind];
    return vpps_express(p->s, VPPS_X_LOOKUP, table->rows, table->cols, 0, l->table, source,
                        source == VPPS_OPERAND_OWN ? 0 : l->value);
}

/* The numbers among an instruction's operands. */
static bool set_numbers(const proof *p, const char *types, vpps_run *run) {
    const vpps_cell_value *x = &p->c->values[p->v];
    const vpps_cell_word *words = p->c->words;
    if (strchr(types, 'f') && x->average) {
        run->average = true;
        run->u = x->opcode == VPPS_I_SCALE ? x->u : 0;
        run->lists = x->opcode == VPPS_I_SCALE ? x->e_list : 0;
    } else if (strchr(types, 'f')) {
        if (x->f_word != VPPS_NONE && (x->f_word >= p->c->n_words || words[x->f_word].kind != VPPS_WORD_IMM))
            return false;
        run->f_source = x->f_word == VPPS_NONE ? VPPS_OPERAND_STATIC : VPPS_OPERAND_OWN;
        if (x->f_word == VPPS_NONE) run->f = x->f;
    }
    if (strchr(types, 'u') && x->position) {
        run->u_source = VPPS_OPERAND_POSITION;
        run->u = x->u;
        run->lists = x->e_list;
        run->domain = x->domain;
        if (x->u_word != VPPS_NONE) return false;
    } else if (strchr(types, 'u') && x->u_word == VPPS_NONE) {
        run->u_source = VPPS_OPERAND_STATIC;
        run->u = x->u;
    } else if (strchr(types, 'u')) {
        if (x->u_word >= p->c->n_words || words[x->u_word].kind > VPPS_WORD_IMM) return false;
        const bool own = words[x->u_word].kind == VPPS_WORD_IMM;
        run->u_source = own ? VPPS_OPERAND_OWN : VPPS_OPERAND_INDEX;
        run->u = own ? 0 : words[x->u_word].value;
    }
    if (!strchr(types, 'e')) return true;
    run->domain = x->domain;
    run->e_add = x->e_add;
    run->e_list = x->e_list;
    return x->e_word < p->c->n_words && words[x->e_word].kind == VPPS_WORD_DROPOUT;
}

/* Does an operand fit the letter of its instruction? Whole tensors are as large as the result where it is elementwise. */
static bool fits(const proof *p, char type, uint32_t i) {
    const vpps_cell_value *x = &p->c->values[p->v], *a = value_of(p, i);
    const vpps_form form = vpps_instructions[x->opcode].form;
    if (type != '*' && a->domain > x->domain) return false;
    if (type == 's') return arg_of(p, i)->element < vpps_value_words(a);
    if (arg_of(p, i)->element) return false;
    if (type == 'v') return vpps_value_words(a) + 1 == x->n_args;
    if (form == VPPS_FORM_EW || form == VPPS_FORM_ROW) return vpps_value_words(a) == vpps_value_words(x);
    if (form == VPPS_FORM_REDUCE)
        return vpps_value_words(a) == vpps_value_words(value_of(p, 0)) && vpps_value_words(x) == 1;
    return true;
}

static bool products_fit(const proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v], *a = value_of(p, 0), *b = value_of(p, 1);
    if (x->opcode == VPPS_I_MATMUL) return a->rows == x->rows && a->cols == b->rows && b->cols == x->cols;
    if (x->opcode == VPPS_I_MATMUL_NT) return a->rows == x->rows && a->cols == b->cols && b->rows == x->cols;
    return a->cols == x->rows && a->rows == b->rows && b->cols == x->cols;
}

static uint32_t express_run(const proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    if (x->opcode >= VPPS_I_COUNT || vpps_instructions[x->opcode].form >= VPPS_FORM_SHARED)
        return REFUSE(p, "it is no instruction on values");
    const char *types = vpps_instructions[x->opcode].operands;
    vpps_term *operands = malloc((x->n_args + 1u) * sizeof *operands);
    vpps_run run = {.opcode = x->opcode, .rows = x->rows, .cols = x->cols, .operands = operands};
    bool ok = operands && set_numbers(p, types, &run);
    for (const char *type = types; ok && *type; type++) {
        if (!strchr("tsv*", *type)) continue;
        const uint32_t end = *type == '*' ? x->n_args : run.n + 1;
        ok = run.n < x->n_args;
        for (; ok && run.n < end; run.n++) {
            const bool all = *type == '*' && value_of(p, run.n)->domain && !x->domain;
            ok = fits(p, *type, run.n);
            operands[run.n] =
                (vpps_term){p->is[arg_of(p, run.n)->value], all ? VPPS_ALL_MEMBERS : arg_of(p, run.n)->element};
            if (run.average && x->opcode == VPPS_I_SUM) *(all ? &run.lists : &run.u) += 1;
        }
    }
    ok = ok && run.n == x->n_args;
    if (ok && vpps_instructions[x->opcode].form == VPPS_FORM_MATMUL) ok = products_fit(p);
    const uint32_t is = ok ? vpps_express_run(p->s, &run) : VPPS_NONE;
    if (!operands) p->s->failed = true;
    free(operands);
    return ok || p->s->failed ? is : REFUSE(p, "its operands do not fit its instruction");
}

static uint32_t express_product(const proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    vpps_term *terms = vpps_express_room(p->s, x->n_args);
    uint32_t n = 0, starts = x->param != VPPS_NO_PARAM;
    if (!terms) return VPPS_NONE;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = arg_of(p, i);
        const vpps_cell_value *y = value_of(p, i);
        bool fit = y->domain == x->domain && y->cols == x->cols && !a->element;
        if (a->matrix == VPPS_NO_PARAM) {
            fit = fit && y->rows == x->rows && !starts++;
            terms[n++] = vpps_plus(p->is[a->value]);
        } else {
            const vpps_parameter_data *m = parameter(p, a->matrix, VPPS_MATRIX);
            fit = fit && m && m->rows == x->rows && m->cols == y->rows;
            if (fit)
                terms[n++] =
                    vpps_plus(vpps_express_of(p->s, VPPS_X_PRODUCT, x->rows, x->cols, p->is[a->value], a->matrix, 0));
        }
        if (!fit) return REFUSE(p, "a factor of the product does not fit");
    }
    if (x->param != VPPS_NO_PARAM) {
        const vpps_parameter_data *bias = parameter(p, x->param, VPPS_VECTOR);
        if (!bias || bias->rows != x->rows) return REFUSE(p, "the product's bias does not fit");
        terms[n++] = vpps_plus(vpps_express(p->s, VPPS_X_PARAMETER, x->rows, x->cols, 0, x->param, 0, 0));
    }
    return n ? vpps_express_sum(p->s, x->rows, x->cols, n, terms) : REFUSE(p, "a product of nothing");
}

static uint32_t express_product_t(const proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    vpps_term *terms = vpps_express_room(p->s, x->n_args);
    if (!terms) return VPPS_NONE;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = arg_of(p, i);
        const vpps_cell_value *y = value_of(p, i);
        const vpps_parameter_data *m = parameter(p, a->matrix, VPPS_MATRIX);
        if (!m || y->domain != x->domain || y->cols != x->cols || m->rows != y->rows || m->cols != x->rows ||
            a->element)
            return REFUSE(p, "a factor of the product does not fit");
        terms[i] = vpps_plus(vpps_express_of(p->s, VPPS_X_PRODUCT_T, x->rows, x->cols, p->is[a->value], a->matrix, 0));
    }
    return x->n_args ? vpps_express_sum(p->s, x->rows, x->cols, x->n_args, terms) : REFUSE(p, "a product of nothing");
}

static uint32_t express_parts(const proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    vpps_term *terms = vpps_express_room(p->s, x->n_args);
    uint64_t rows = 0;
    if (!terms) return VPPS_NONE;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_value *a = value_of(p, i);
        if (a->domain > x->domain || a->cols != x->cols || arg_of(p, i)->element)
            return REFUSE(p, "a part does not fit");
        terms[i] = (vpps_term){p->is[arg_of(p, i)->value], 0};
        rows += a->rows;
    }
    const uint32_t large = x->kind == VPPS_VALUE_PLACE ? x->rows : (uint32_t)rows;
    const uint32_t small = x->kind == VPPS_VALUE_PLACE ? (uint32_t)rows : x->rows;
    if (x->kind == VPPS_VALUE_STACK) {
        if (rows != x->rows) return REFUSE(p, "its parts have other rows");
        return vpps_express_stack(p->s, x->rows, x->cols, x->n_args, terms);
    }
    if (x->n_args != 1 || x->index > large || small > large - x->index) return REFUSE(p, "its part is outside");
    if (x->kind == VPPS_VALUE_SLICE) return vpps_express_slice(p->s, x->rows, x->cols, terms[0].x, x->index);
    if (large == small) return terms[0].x;
    return vpps_express_of(p->s, VPPS_X_PLACE, x->rows, x->cols, terms[0].x, x->index, 0);
}

static uint32_t express_positions(const proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    const uint32_t of = x->n_args == 1 ? arg_of(p, 0)->value : VPPS_NONE;
    if (of == VPPS_NONE || of + 1 != p->v) return REFUSE(p, "positions do not follow what found them");
    const vpps_cell_value *y = &p->c->values[of];
    const bool finds = y->kind == VPPS_VALUE_RUN && (y->opcode == VPPS_I_MAX_OF || y->opcode == VPPS_I_MIN_OF);
    if (!finds || !same_shape(x, y) || x->domain != y->domain || x->stage != y->stage)
        return REFUSE(p, "positions of what finds none");
    return vpps_express_of(p->s, VPPS_X_POSITIONS, x->rows, x->cols, p->is[of], 0, 0);
}

static uint32_t express_value(const proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    switch (x->kind) {
    case VPPS_VALUE_INPUT:
        if (x->index >= p->c->n_inputs) return REFUSE(p, "there is no such input");
        return vpps_express(p->s, VPPS_X_INPUT, x->rows, x->cols, x->domain, x->index, 0, 0);
    case VPPS_VALUE_LOOKUP: return express_lookup(p, x->index);
    case VPPS_VALUE_DATA:
        if (!p->c->is_data) return REFUSE(p, "data without any");
        return vpps_express(p->s, VPPS_X_DATA, x->rows, x->cols, 0, 0, 0, 0);
    case VPPS_VALUE_PARAMETER:
        if (!parameter(p, x->param, VPPS_VECTOR)) return REFUSE(p, "it is no vector of the model");
        return vpps_express(p->s, VPPS_X_PARAMETER, p->check->g->model->params[x->param].rows, 1, 0, x->param, 0, 0);
    case VPPS_VALUE_GRADIENT:
        if (x->index >= p->c->n_outputs || !p->c->needs.training || !(p->c->needs.gradient_out >> x->index & 1))
            return REFUSE(p, "there is no such gradient");
        return vpps_express(p->s, VPPS_X_GRADIENT, x->rows, x->cols, 0, x->index, 0, 0);
    case VPPS_VALUE_RUN: return express_run(p);
    case VPPS_VALUE_PRODUCT: return express_product(p);
    case VPPS_VALUE_PRODUCT_T: return express_product_t(p);
    case VPPS_VALUE_SLICE:
    case VPPS_VALUE_PLACE:
    case VPPS_VALUE_STACK: return express_parts(p);
    case VPPS_VALUE_POSITIONS: return express_positions(p);
    default: return REFUSE(p, "its kind is unknown");
    }
}

/* Every value's expression; a value is made of values before it, and is as large, and as many, as it says. */
static bool express_all(proof *p) {
    for (p->v = 0; p->v < p->c->n_values; p->v++) {
        const vpps_cell_value *x = &p->c->values[p->v];
        if (x->domain > 1 || x->first_arg > p->c->n_args || x->n_args > p->c->n_args - x->first_arg || !x->rows ||
            !x->cols) {
            return REFUSE(p, "its description makes no sense"), false;
        }
        if (x->kind == VPPS_VALUE_GRADIENT && x->index < VPPS_CELL_MOST) p->gradients[p->v] = (uint64_t)1 << x->index;
        for (uint32_t i = 0; i < x->n_args; i++) {
            if (arg_of(p, i)->value >= p->v) return REFUSE(p, "it is made of what comes later"), false;
            p->gradients[p->v] |= p->gradients[arg_of(p, i)->value];
        }
        if (x->n_args && x->kind <= VPPS_VALUE_GRADIENT)
            return REFUSE(p, "it is made of nothing, yet has arguments"), false;
        const uint32_t is = p->is[p->v] = express_value(p);
        if (p->check->status != VPPS_OK || p->s->failed) return false;
        const vpps_expression *e = &p->s->at[is];
        if (e->rows * e->cols != vpps_value_words(x) || e->rows != x->rows)
            return REFUSE(p, "its shape is another"), false;
        if (e->domain > x->domain) return REFUSE(p, "its members differ, yet there is one"), false;
    }
    return true;
}

/* ---------------------------------------------------------------- the same as the function */

static bool open_function(vpps_checker *c, vpps_function *f, const vpps_compiled_cell *cell, uint32_t record) {
    const vpps_record_view view = vpps_check_view(c->g, record);
    f->training = c->training;
    if (view.cell) return vpps_function_of_cell(f, c->g, view.cell);
    const uint32_t op = view.signature->op;
    const bool list = cell->n_inputs == 1 && cell->input_is_list[0];
    const bool may = op == VPPS_OP_SUM || op == VPPS_OP_AVERAGE || op == VPPS_OP_MAX_OF || op == VPPS_OP_MIN_OF;
    if (list ? !may : view.n_args != cell->n_inputs)
        return VPPS_REFUSE(c, "cell %s: its inputs are others", cell->name);
    f->n_inputs = cell->n_inputs;
    for (uint32_t i = 0; i < cell->n_inputs; i++) {
        const vpps_signature *s = vpps_check_signature(c->g, view.args[i]);
        f->inputs[i] = (vpps_function_input){s->rows, s->cols, list};
    }
    return vpps_function_of_op(f, c->g, view.signature, view.op->imm);
}

static bool check_inputs(const proof *p, const vpps_function *f) {
    const vpps_compiled_cell *c = p->c;
    uint32_t lists = 0;
    bool same = c->n_inputs == f->n_inputs;
    for (uint32_t i = 0; same && i < c->n_inputs; i++) {
        lists += c->input_is_list[i];
        same = c->input_is_list[i] == f->inputs[i].list;
    }
    return (same && lists == c->list_inputs) || VPPS_REFUSE(p->check, "cell %s: its inputs are others", c->name);
}

static bool check_outputs(const proof *p, const vpps_function *f, vpps_checked_cell *cell) {
    const vpps_compiled_cell *c = p->c;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const vpps_cell_output *o = &c->outputs[k];
        if (o->node >= f->n_nodes || f->nodes[o->node].mapped)
            return VPPS_REFUSE(p->check, "cell %s: output %u is no node of the vertex", c->name, k);
        for (uint32_t i = 0; i < k; i++)
            if (c->outputs[i].node == o->node)
                return VPPS_REFUSE(p->check, "cell %s: output %u is there twice", c->name, k);
        cell->output_reads[k] = f->reads[o->node];
        cell->output_trained[k] = f->trained[o->node];
        if (o->value == VPPS_NONE) continue; /* left out; vpps_check_output refuses who reads it */
        if (o->value >= c->n_values || c->values[o->value].domain)
            return VPPS_REFUSE(p->check, "cell %s: output %u is no value of the vertex", c->name, k);
        if (p->is[o->value] != f->value[o->node]) {
            return VPPS_REFUSE(p->check, "cell %s: output %u, value %u, is not what node %u (%s) asks for", c->name, k,
                               o->value, o->node, vpps_ops[f->nodes[o->node].s->op].name);
        }
    }
    return true;
}

/* What the compiled cell's gradients are added to. */
static bool collect_owed(proof *p, vpps_checked_cell *cell, vpps_owed_list *owed) {
    const vpps_compiled_cell *c = p->c;
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        if (to->value >= c->n_values || to->index >= (to->lookup ? c->n_lookups : c->n_inputs))
            return VPPS_REFUSE(p->check, "cell %s: contribution %u is to nothing", c->name, i);
        p->v = to->value;
        const uint32_t key = to->lookup ? express_lookup(p, to->index) : to->index;
        if (p->check->status != VPPS_OK) return false;
        *(to->lookup ? &cell->into_entry[to->index] : &cell->into_input[to->index]) |= p->gradients[to->value];
        vpps_owe(p->s, owed, to->lookup ? VPPS_OWED_ENTRY : VPPS_OWED_INPUT, key, 0, p->is[to->value]);
    }
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const vpps_cell_outer *o = &c->outers[i];
        if (o->dy >= c->n_values || (o->x != VPPS_NONE && o->x >= c->n_values))
            return VPPS_REFUSE(p->check, "cell %s: outer product %u is of nothing", c->name, i);
        const vpps_cell_value *dy = &c->values[o->dy];
        if (o->x == VPPS_NONE) {
            if (!parameter(p, o->param, VPPS_VECTOR))
                return VPPS_REFUSE(p->check, "cell %s: gradient %u is no vector's", c->name, i);
            const uint32_t is = dy->domain ? vpps_express_over_list(p->s, p->is[o->dy]) : p->is[o->dy];
            vpps_owe(p->s, owed, VPPS_OWED_VECTOR, o->param, 0, is);
            continue;
        }
        if (!parameter(p, o->param, VPPS_MATRIX) || c->values[o->x].domain != dy->domain)
            return VPPS_REFUSE(p->check, "cell %s: outer product %u does not fit", c->name, i);
        vpps_owe(p->s, owed, VPPS_OWED_MATRIX, o->param, p->is[o->x], p->is[o->dy]);
    }
    return true;
}

static const char *owed_name(const proof *p, const vpps_owed *o, char *text, size_t size) {
    if (o->kind == VPPS_OWED_INPUT) {
        snprintf(text, size, "input %u", o->key);
    } else {
        const vpps_param param = o->kind == VPPS_OWED_ENTRY ? p->s->at[o->key].a[0] : o->key;
        snprintf(text, size, "%s", p->check->g->model->params[param].name);
    }
    return text;
}

/* Compares what the cell makes with the derivative of the function, inputs only as far as their producers can use it. */
static bool check_gradients(proof *p, vpps_function *f, vpps_checked_cell *cell) {
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
    bool ok = collect_owed(p, cell, &have) && !want.failed && !have.failed && !p->s->failed;
    if (ok) {
        vpps_owed_sort(&want);
        vpps_owed_sort(&have);
        uint32_t i = 0;
        while (i < want.n && i < have.n && !memcmp(&want.at[i], &have.at[i], sizeof *want.at)) i++;
        if (i < want.n || i < have.n) {
            char text[128];
            ok = VPPS_REFUSE(p->check, "cell %s: the gradient of %s is not what the vertex's derivative asks for",
                             c->name, owed_name(p, i < want.n ? &want.at[i] : &have.at[i], text, sizeof text));
        }
    }
    if (want.failed || have.failed) p->s->failed = true;
    free(want.at);
    free(have.at);
    return ok;
}

static bool prove(proof *p, vpps_function *f, vpps_checked_cell *cell) {
    const vpps_compiled_cell *c = p->c;
    vpps_function_express(f, p->s);
    if (!check_inputs(p, f) || !express_all(p) || !check_outputs(p, f, cell)) return false;
    for (uint32_t v = 0; v < c->n_values; v++)
        if (c->values[v].kind == VPPS_VALUE_GRADIENT) cell->sums_gradient[c->values[v].index] = true;
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        cell->input_rows[i] = f->inputs[i].rows;
        cell->input_cols[i] = f->inputs[i].cols;
    }
    if (c->needs.training) return check_gradients(p, f, cell);
    return !(c->n_contributions || c->n_outers) || VPPS_REFUSE(p->check, "cell %s: gradients in inference", c->name);
}

bool vpps_check_cell(vpps_checker *c, vpps_checked_cell *cell, uint32_t record) {
    vpps_function f = {0};
    vpps_expressions_clear(&c->expressions);
    proof p = {.check = c, .c = cell->c, .s = &c->expressions};
    p.is = calloc(cell->c->n_values + 1u, sizeof *p.is);
    p.gradients = calloc(cell->c->n_values + 1u, sizeof *p.gradients);
    const bool open = p.is && p.gradients && open_function(c, &f, cell->c, record);
    bool ok = open && prove(&p, &f, cell);
    ok = ok && vpps_check_stages(c, cell);
    if (!ok && c->status == VPPS_OK) c->status = VPPS_MEMORY;
    cell->record = record;
    vpps_function_free(&f);
    free(p.is);
    free(p.gradients);
    return ok;
}
