/* compiled.c - what the values of a compiled cell are: expressions, made of their instructions. */
#include "script/verify/proof.h"

static uint32_t refuse(const vpps_proof *p, const char *what) {
    vpps_check_record(p->check, "cell %s, value %u: %s", p->c->name, p->v, what);
    return VPPS_NONE;
}

static const vpps_cell_arg *arg_of(const vpps_proof *p, uint32_t i) {
    return &p->c->args[p->c->values[p->v].first_arg + i];
}
static const vpps_cell_value *value_of(const vpps_proof *p, uint32_t i) { return &p->c->values[arg_of(p, i)->value]; }

static bool same_shape(const vpps_cell_value *a, const vpps_cell_value *b) {
    return a->rows == b->rows && a->cols == b->cols;
}

const vpps_parameter_data *vpps_proof_parameter(const vpps_proof *p, vpps_param param, vpps_param_kind kind) {
    const vpps_model *model = p->check->g->model;
    return param < model->n_params && model->params[param].kind == kind ? &model->params[param] : NULL;
}

/* ---------------------------------------------------------------- values */

uint32_t vpps_proof_lookup(const vpps_proof *p, uint32_t index) {
    static const uint8_t sources[] = {[VPPS_WORD_INDEX] = VPPS_OPERAND_INDEX,
                                      [VPPS_WORD_IMM] = VPPS_OPERAND_OWN,
                                      [VPPS_WORD_DROPOUT] = VPPS_OPERAND_STATIC};
    if (index >= p->c->n_lookups) return refuse(p, "there is no such lookup");
    const vpps_cell_lookup *l = &p->c->lookups[index];
    const vpps_parameter_data *table = vpps_proof_parameter(p, l->table, VPPS_LOOKUP);
    if (!table || l->kind > VPPS_WORD_DROPOUT) return refuse(p, "it is no lookup of a table");
    const uint32_t source = sources[l->kind];
    return vpps_express(p->s, VPPS_X_LOOKUP, table->rows, table->cols, 0, l->table, source,
                        source == VPPS_OPERAND_OWN ? 0 : l->value);
}

/* The word of the vertex's record that a number is; NULL: there is no such word. */
static const vpps_cell_word *word_of(const vpps_proof *p, const vpps_cell_number *n) {
    return n->word < p->c->n_words ? &p->c->words[n->word] : NULL;
}

static bool set_f(const vpps_proof *p, const vpps_cell_number *f, vpps_run *run) {
    const vpps_cell_word *word = word_of(p, f);
    switch (f->kind) {
    case VPPS_NUMBER_CONSTANT:
        run->f_source = VPPS_OPERAND_STATIC;
        run->f = f->real;
        return true;
    case VPPS_NUMBER_WORD: run->f_source = VPPS_OPERAND_OWN; return word && word->kind == VPPS_WORD_IMM;
    case VPPS_NUMBER_INVERSE:
        run->average = true;
        run->u = f->count.base;
        memcpy(run->lists, f->count.list, sizeof run->lists);
        return true;
    default: return false;
    }
}

static bool set_u(const vpps_proof *p, const vpps_cell_number *u, vpps_run *run) {
    const vpps_cell_word *word = word_of(p, u);
    switch (u->kind) {
    case VPPS_NUMBER_CONSTANT:
        run->u_source = VPPS_OPERAND_STATIC;
        run->u = u->whole;
        return true;
    case VPPS_NUMBER_WORD:
        if (!word || word->kind > VPPS_WORD_IMM) return false;
        run->u_source = word->kind == VPPS_WORD_IMM ? VPPS_OPERAND_OWN : VPPS_OPERAND_INDEX;
        run->u = word->kind == VPPS_WORD_IMM ? 0 : word->value;
        return true;
    case VPPS_NUMBER_POSITION:
        run->u_source = VPPS_OPERAND_POSITION;
        run->u = u->count.base;
        memcpy(run->lists, u->count.list, sizeof run->lists);
        run->domain = p->c->values[p->v].domain;
        return true;
    default: return false;
    }
}

/* The numbers among an instruction's operands. */
static bool set_numbers(const vpps_proof *p, const char *types, vpps_run *run) {
    const vpps_cell_run *x = &p->c->values[p->v].run;
    if (strchr(types, 'f') ? !set_f(p, &x->f, run) : x->f.kind != VPPS_NUMBER_NONE) return false;
    if (strchr(types, 'u')) return set_u(p, &x->u, run);
    if (!strchr(types, 'e')) return x->u.kind == VPPS_NUMBER_NONE;
    const vpps_cell_word *word = word_of(p, &x->u);
    run->domain = p->c->values[p->v].domain;
    run->e_add = x->u.count.base;
    memcpy(run->lists, x->u.count.list, sizeof run->lists);
    return x->u.kind == VPPS_NUMBER_ELEMENT && word && word->kind == VPPS_WORD_DROPOUT;
}

/* The domain of the list that an instruction goes over. */
static uint32_t list_of(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    return x->domain ? x->domain : value_of(p, 0)->domain;
}

/* Does an operand fit the letter of its instruction? Whole tensors are as large as the result where it is elementwise. */
static bool fits(const vpps_proof *p, char type, uint32_t i) {
    const vpps_cell_value *x = &p->c->values[p->v], *a = value_of(p, i);
    const vpps_form form = vpps_instructions[x->run.opcode].form;
    if (x->run.over_list)
        return a->domain == list_of(p) && !arg_of(p, i)->element &&
               vpps_value_words(a) == (type == 'v' ? 1 : vpps_value_words(x));
    if (a->domain && a->domain != x->domain && (type != '*' || x->domain)) return false;
    if (type == 's') return arg_of(p, i)->element < vpps_value_words(a);
    if (arg_of(p, i)->element) return false;
    if (type == 'v') return vpps_value_words(a) + 1 == x->n_args;
    if (form == VPPS_FORM_EW || form == VPPS_FORM_ROW) return vpps_value_words(a) == vpps_value_words(x);
    if (form == VPPS_FORM_REDUCE)
        return vpps_value_words(a) == vpps_value_words(value_of(p, 0)) && vpps_value_words(x) == 1;
    return true;
}

static bool products_fit(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v], *a = value_of(p, 0), *b = value_of(p, 1);
    if (x->run.opcode == VPPS_I_MATMUL) return a->rows == x->rows && a->cols == b->rows && b->cols == x->cols;
    if (x->run.opcode == VPPS_I_MATMUL_NT) return a->rows == x->rows && a->cols == b->cols && b->rows == x->cols;
    return a->cols == x->rows && a->rows == b->rows && b->cols == x->cols;
}

/* May the instruction go over all members of a list, or its value not, as it says? */
static bool over_list_fits(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    if (!x->run.over_list) return true;
    if (!x->n_args || !list_of(p)) return false;
    if (x->run.opcode == VPPS_I_WEIGHTED_SUM) return !x->domain && x->n_args == 2;
    return (x->run.opcode == VPPS_I_SOFTMAX || x->run.opcode == VPPS_I_SOFTMAX_B) && x->domain &&
           vpps_value_words(x) == 1;
}

static uint32_t express_product(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    vpps_term *terms = vpps_express_room(p->s, x->n_args);
    uint32_t n = 0, starts = x->bias != VPPS_NO_PARAM;
    if (!terms) return VPPS_NONE;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = arg_of(p, i);
        const vpps_cell_value *y = value_of(p, i);
        bool fit = y->domain == x->domain && y->cols == x->cols && !a->element;
        if (a->matrix == VPPS_NO_PARAM) {
            fit = fit && y->rows == x->rows && !starts++;
            terms[n++] = vpps_plus(p->is[a->value]);
        } else {
            const vpps_parameter_data *m = vpps_proof_parameter(p, a->matrix, VPPS_MATRIX);
            fit = fit && m && m->rows == x->rows && m->cols == y->rows;
            if (fit)
                terms[n++] =
                    vpps_plus(vpps_express_of(p->s, VPPS_X_PRODUCT, x->rows, x->cols, p->is[a->value], a->matrix, 0));
        }
        if (!fit) return refuse(p, "a factor of the product does not fit");
    }
    if (x->bias != VPPS_NO_PARAM) {
        const vpps_parameter_data *bias = vpps_proof_parameter(p, x->bias, VPPS_VECTOR);
        if (!bias || bias->rows != x->rows) return refuse(p, "the product's bias does not fit");
        terms[n++] = vpps_plus(vpps_express(p->s, VPPS_X_PARAMETER, x->rows, x->cols, 0, x->bias, 0, 0));
    }
    return n ? vpps_express_sum(p->s, x->rows, x->cols, n, terms) : refuse(p, "a product of nothing");
}

static uint32_t express_product_t(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    vpps_term *terms = vpps_express_room(p->s, x->n_args);
    if (!terms) return VPPS_NONE;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = arg_of(p, i);
        const vpps_cell_value *y = value_of(p, i);
        const vpps_parameter_data *m = vpps_proof_parameter(p, a->matrix, VPPS_MATRIX);
        if (!m || y->domain != x->domain || y->cols != x->cols || m->rows != y->rows || m->cols != x->rows ||
            a->element)
            return refuse(p, "a factor of the product does not fit");
        terms[i] = vpps_plus(vpps_express_of(p->s, VPPS_X_PRODUCT_T, x->rows, x->cols, p->is[a->value], a->matrix, 0));
    }
    return x->n_args ? vpps_express_sum(p->s, x->rows, x->cols, x->n_args, terms) : refuse(p, "a product of nothing");
}

/* A stack of a list's members, or a member's rows of one. */
static uint32_t express_members(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    const bool stack = x->run.opcode == VPPS_I_STACK;
    const vpps_cell_value *a = x->n_args == 1 ? value_of(p, 0) : NULL;
    const uint32_t list = !a ? 0 : stack ? a->domain : x->domain;
    if (!list || x->run.opcode == VPPS_I_PLACE || (stack ? x->domain : a->domain) || a->cols != x->cols ||
        arg_of(p, 0)->element || (stack ? x->rows % a->rows : a->rows % x->rows) || x->run.u.whole)
        return refuse(p, "it is no stack of members, nor a member's part of one");
    const uint32_t of = p->is[arg_of(p, 0)->value];
    return stack ? vpps_express_members(p->s, x->rows, x->cols, of, list)
                 : vpps_express_member(p->s, x->rows, x->cols, of, list);
}

static uint32_t express_parts(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    if (x->run.over_list) return express_members(p);
    vpps_term *terms = vpps_express_room(p->s, x->n_args);
    uint64_t rows = 0;
    if (!terms) return VPPS_NONE;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_value *a = value_of(p, i);
        if ((a->domain && a->domain != x->domain) || a->cols != x->cols || arg_of(p, i)->element)
            return refuse(p, "a part does not fit");
        terms[i] = (vpps_term){p->is[arg_of(p, i)->value], 0};
        rows += a->rows;
    }
    const bool place = x->run.opcode == VPPS_I_PLACE;
    const uint32_t large = place ? x->rows : (uint32_t)rows, small = place ? (uint32_t)rows : x->rows;
    const uint32_t first = x->run.u.whole;
    if (x->run.opcode != VPPS_I_STACK && x->run.u.kind != VPPS_NUMBER_CONSTANT) return refuse(p, "its part is nowhere");
    if (x->run.opcode == VPPS_I_STACK) {
        if (rows != x->rows) return refuse(p, "its parts have other rows");
        return vpps_express_stack(p->s, x->rows, x->cols, x->n_args, terms);
    }
    if (x->n_args != 1 || first > large || small > large - first) return refuse(p, "its part is outside");
    if (!place) return vpps_express_slice(p->s, x->rows, x->cols, terms[0].x, first);
    if (large == small) return terms[0].x;
    return vpps_express_of(p->s, VPPS_X_PLACE, x->rows, x->cols, terms[0].x, first, 0);
}

static uint32_t express_positions(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    const uint32_t of = x->n_args == 1 ? arg_of(p, 0)->value : VPPS_NONE;
    if (of == VPPS_NONE || of + 1 != p->v) return refuse(p, "positions do not follow what found them");
    const vpps_cell_value *y = &p->c->values[of];
    const bool finds = vpps_is_run(y, VPPS_I_MAX_OF) || vpps_is_run(y, VPPS_I_MIN_OF);
    if (!finds || !same_shape(x, y) || x->domain != y->domain || x->stage != y->stage)
        return refuse(p, "positions of what finds none");
    return vpps_express_of(p->s, VPPS_X_POSITIONS, x->rows, x->cols, p->is[of], 0, 0);
}

static uint32_t express_decided(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    const vpps_cell_value *a = x->n_args == 1 ? value_of(p, 0) : NULL;
    if (!a || a->domain != x->domain || a->cols != 1 || arg_of(p, 0)->element || p->c->needs.training)
        return refuse(p, "what it is decided by does not fit");
    const uint32_t of = p->is[arg_of(p, 0)->value];
    if (x->run.opcode == VPPS_I_ARGMAX) return vpps_express_of(p->s, VPPS_X_ARGMAX, 2, 1, of, 0, 0);
    const vpps_parameter_data *table = vpps_proof_parameter(p, x->run.table, VPPS_LOOKUP);
    if (!table || a->rows != 1) return refuse(p, "it is no entry of a table, by a number");
    return vpps_express_of(p->s, VPPS_X_ENTRY, table->rows, table->cols, of, x->run.table, 0);
}

static uint32_t express_run(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    if (x->run.opcode >= VPPS_I_COUNT) return refuse(p, "it is no instruction on values");
    const vpps_form form = vpps_instructions[x->run.opcode].form;
    if (form == VPPS_FORM_PARTS) return express_parts(p);
    if (form == VPPS_FORM_DECIDED) return express_decided(p);
    const char *types = vpps_instructions[x->run.opcode].operands;
    vpps_cell_count count = {0};
    vpps_term *operands = malloc((x->n_args + 1u) * sizeof *operands);
    vpps_run run = {.opcode = x->run.opcode, .rows = x->rows, .cols = x->cols, .operands = operands};
    bool ok = operands && over_list_fits(p) && set_numbers(p, types, &run);
    if (x->run.over_list) run.domain = x->domain;
    for (const char *type = types; ok && *type; type++) {
        if (!strchr("tsv*", *type)) continue;
        const uint32_t end = *type == '*' ? x->n_args : run.n + 1;
        ok = run.n < x->n_args;
        for (; ok && run.n < end; run.n++) {
            const uint32_t list = value_of(p, run.n)->domain;
            const bool all = x->run.over_list || (*type == '*' && list && !x->domain);
            ok = fits(p, *type, run.n);
            operands[run.n] =
                (vpps_term){p->is[arg_of(p, run.n)->value], all ? VPPS_ALL_MEMBERS | list : arg_of(p, run.n)->element};
            if (x->run.opcode == VPPS_I_SUM) *(all ? &count.list[list] : &count.base) += 1;
        }
    }
    ok = ok && run.n == x->n_args;
    if (run.average && x->run.opcode == VPPS_I_SUM) ok = ok && !memcmp(&count, &x->run.f.count, sizeof count);
    if (ok && form == VPPS_FORM_MATMUL) ok = products_fit(p);
    const uint32_t is = ok ? vpps_express_run(p->s, &run) : VPPS_NONE;
    if (!operands) p->s->failed = true;
    free(operands);
    return ok || p->s->failed ? is : refuse(p, "its operands do not fit its instruction");
}

static uint32_t express_value(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    switch (x->kind) {
    case VPPS_VALUE_INPUT:
        if (x->input >= p->c->n_inputs) return refuse(p, "there is no such input");
        return vpps_express(p->s, VPPS_X_INPUT, x->rows, x->cols, x->domain, x->input, 0, 0);
    case VPPS_VALUE_LOOKUP: return vpps_proof_lookup(p, x->lookup);
    case VPPS_VALUE_DATA:
        if (!p->c->is_data) return refuse(p, "data without any");
        return vpps_express(p->s, VPPS_X_DATA, x->rows, x->cols, 0, 0, 0, 0);
    case VPPS_VALUE_PARAMETER:
        if (!vpps_proof_parameter(p, x->vector, VPPS_VECTOR)) return refuse(p, "it is no vector of the model");
        return vpps_express(p->s, VPPS_X_PARAMETER, p->check->g->model->params[x->vector].rows, 1, 0, x->vector, 0, 0);
    case VPPS_VALUE_GRADIENT:
        if (x->output >= p->c->n_outputs || !p->c->needs.training || !(p->c->needs.gradient_out >> x->output & 1))
            return refuse(p, "there is no such gradient");
        return vpps_express(p->s, VPPS_X_GRADIENT, x->rows, x->cols, 0, x->output, 0, 0);
    case VPPS_VALUE_RUN: return express_run(p);
    case VPPS_VALUE_PRODUCT: return express_product(p);
    case VPPS_VALUE_PRODUCT_T: return express_product_t(p);
    case VPPS_VALUE_POSITIONS: return express_positions(p);
    default: return refuse(p, "its kind is unknown");
    }
}

bool vpps_proof_express(vpps_proof *p) {
    for (p->v = 0; p->v < p->c->n_values; p->v++) {
        const vpps_cell_value *x = &p->c->values[p->v];
        if (x->domain > p->c->n_lists || x->first_arg > p->c->n_args || x->n_args > p->c->n_args - x->first_arg ||
            !x->rows || !x->cols) {
            return refuse(p, "its description makes no sense"), false;
        }
        if (x->kind == VPPS_VALUE_GRADIENT && x->output < VPPS_CELL_MOST) p->gradients[p->v] = (uint64_t)1 << x->output;
        for (uint32_t i = 0; i < x->n_args; i++) {
            if (arg_of(p, i)->value >= p->v) return refuse(p, "it is made of what comes later"), false;
            p->gradients[p->v] |= p->gradients[arg_of(p, i)->value];
        }
        if (x->n_args && x->kind <= VPPS_VALUE_GRADIENT)
            return refuse(p, "it is made of nothing, yet has arguments"), false;
        const uint32_t is = p->is[p->v] = express_value(p);
        if (p->check->status != VPPS_OK || p->s->failed) return false;
        const vpps_expression *e = &p->s->at[is];
        if (e->rows * e->cols != vpps_value_words(x) || e->rows != x->rows)
            return refuse(p, "its shape is another"), false;
        if (e->domain && e->domain != x->domain)
            return refuse(p, "its members differ, yet there is one, or those of another list"), false;
    }
    return true;
}
