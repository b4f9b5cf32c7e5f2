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

/* The numbers among an instruction's operands. */
static bool set_numbers(const vpps_proof *p, const char *types, vpps_run *run) {
    const vpps_cell_value *x = &p->c->values[p->v];
    const vpps_cell_word *words = p->c->words;
    const uint32_t named[] = {x->f_word, x->u_word,
                              x->e_word}; /* read even where the instruction has no use for them */
    for (uint32_t i = 0; i < VPPS_COUNT(named); i++)
        if (named[i] != VPPS_NONE && named[i] >= p->c->n_words) return false;
    if (strchr(types, 'f') && x->average) {
        run->average = true;
        if (x->opcode == VPPS_I_SCALE) {
            run->u = x->u;
            memcpy(run->lists, x->e_list, sizeof run->lists);
        }
    } else if (strchr(types, 'f')) {
        if (x->f_word != VPPS_NONE && words[x->f_word].kind != VPPS_WORD_IMM) return false;
        run->f_source = x->f_word == VPPS_NONE ? VPPS_OPERAND_STATIC : VPPS_OPERAND_OWN;
        if (x->f_word == VPPS_NONE) run->f = x->f;
    }
    if (strchr(types, 'u') && x->position) {
        run->u_source = VPPS_OPERAND_POSITION;
        run->u = x->u;
        memcpy(run->lists, x->e_list, sizeof run->lists);
        run->domain = x->domain;
        if (x->u_word != VPPS_NONE) return false;
    } else if (strchr(types, 'u') && x->u_word == VPPS_NONE) {
        run->u_source = VPPS_OPERAND_STATIC;
        run->u = x->u;
    } else if (strchr(types, 'u')) {
        if (words[x->u_word].kind > VPPS_WORD_IMM) return false;
        const bool own = words[x->u_word].kind == VPPS_WORD_IMM;
        run->u_source = own ? VPPS_OPERAND_OWN : VPPS_OPERAND_INDEX;
        run->u = own ? 0 : words[x->u_word].value;
    }
    if (!strchr(types, 'e')) return true;
    run->domain = x->domain;
    run->e_add = x->e_add;
    memcpy(run->lists, x->e_list, sizeof run->lists);
    return x->e_word != VPPS_NONE && words[x->e_word].kind == VPPS_WORD_DROPOUT;
}

/* The domain of the list that an instruction goes over. */
static uint32_t list_of(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    return x->domain ? x->domain : value_of(p, 0)->domain;
}

/* Does an operand fit the letter of its instruction? Whole tensors are as large as the result where it is elementwise. */
static bool fits(const vpps_proof *p, char type, uint32_t i) {
    const vpps_cell_value *x = &p->c->values[p->v], *a = value_of(p, i);
    const vpps_form form = vpps_instructions[x->opcode].form;
    if (x->over_list)
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
    if (x->opcode == VPPS_I_MATMUL) return a->rows == x->rows && a->cols == b->rows && b->cols == x->cols;
    if (x->opcode == VPPS_I_MATMUL_NT) return a->rows == x->rows && a->cols == b->cols && b->rows == x->cols;
    return a->cols == x->rows && a->rows == b->rows && b->cols == x->cols;
}

/* May the instruction go over all members of a list, or its value not, as it says? */
static bool over_list_fits(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    if (!x->over_list) return true;
    if (!x->n_args || !list_of(p)) return false;
    if (x->opcode == VPPS_I_WEIGHTED_SUM) return !x->domain && x->n_args == 2;
    return (x->opcode == VPPS_I_SOFTMAX || x->opcode == VPPS_I_SOFTMAX_B) && x->domain && vpps_value_words(x) == 1;
}

static uint32_t express_run(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    if (x->opcode >= VPPS_I_COUNT) return refuse(p, "it is no instruction on values");
    const char *types = vpps_instructions[x->opcode].operands;
    vpps_term *operands = malloc((x->n_args + 1u) * sizeof *operands);
    vpps_run run = {.opcode = x->opcode, .rows = x->rows, .cols = x->cols, .operands = operands};
    bool ok = operands && over_list_fits(p) && set_numbers(p, types, &run);
    if (x->over_list) run.domain = x->domain;
    for (const char *type = types; ok && *type; type++) {
        if (!strchr("tsv*", *type)) continue;
        const uint32_t end = *type == '*' ? x->n_args : run.n + 1;
        ok = run.n < x->n_args;
        for (; ok && run.n < end; run.n++) {
            const uint32_t list = value_of(p, run.n)->domain;
            const bool all = x->over_list || (*type == '*' && list && !x->domain);
            ok = fits(p, *type, run.n);
            operands[run.n] =
                (vpps_term){p->is[arg_of(p, run.n)->value], all ? VPPS_ALL_MEMBERS | list : arg_of(p, run.n)->element};
            if (run.average && x->opcode == VPPS_I_SUM) *(all ? &run.lists[list] : &run.u) += 1;
        }
    }
    ok = ok && run.n == x->n_args;
    if (ok && vpps_instructions[x->opcode].form == VPPS_FORM_MATMUL) ok = products_fit(p);
    const uint32_t is = ok ? vpps_express_run(p->s, &run) : VPPS_NONE;
    if (!operands) p->s->failed = true;
    free(operands);
    return ok || p->s->failed ? is : refuse(p, "its operands do not fit its instruction");
}

static uint32_t express_product(const vpps_proof *p) {
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
            const vpps_parameter_data *m = vpps_proof_parameter(p, a->matrix, VPPS_MATRIX);
            fit = fit && m && m->rows == x->rows && m->cols == y->rows;
            if (fit)
                terms[n++] =
                    vpps_plus(vpps_express_of(p->s, VPPS_X_PRODUCT, x->rows, x->cols, p->is[a->value], a->matrix, 0));
        }
        if (!fit) return refuse(p, "a factor of the product does not fit");
    }
    if (x->param != VPPS_NO_PARAM) {
        const vpps_parameter_data *bias = vpps_proof_parameter(p, x->param, VPPS_VECTOR);
        if (!bias || bias->rows != x->rows) return refuse(p, "the product's bias does not fit");
        terms[n++] = vpps_plus(vpps_express(p->s, VPPS_X_PARAMETER, x->rows, x->cols, 0, x->param, 0, 0));
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
    const bool stack = x->kind == VPPS_VALUE_STACK;
    const vpps_cell_value *a = x->n_args == 1 ? value_of(p, 0) : NULL;
    const uint32_t list = !a ? 0 : stack ? a->domain : x->domain;
    if (!list || x->kind == VPPS_VALUE_PLACE || (stack ? x->domain : a->domain) || a->cols != x->cols ||
        arg_of(p, 0)->element || (stack ? x->rows % a->rows : a->rows % x->rows) || x->index)
        return refuse(p, "it is no stack of members, nor a member's part of one");
    const uint32_t of = p->is[arg_of(p, 0)->value];
    return stack ? vpps_express_members(p->s, x->rows, x->cols, of, list)
                 : vpps_express_member(p->s, x->rows, x->cols, of, list);
}

static uint32_t express_parts(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    if (x->over_list) return express_members(p);
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
    const uint32_t large = x->kind == VPPS_VALUE_PLACE ? x->rows : (uint32_t)rows;
    const uint32_t small = x->kind == VPPS_VALUE_PLACE ? (uint32_t)rows : x->rows;
    if (x->kind == VPPS_VALUE_STACK) {
        if (rows != x->rows) return refuse(p, "its parts have other rows");
        return vpps_express_stack(p->s, x->rows, x->cols, x->n_args, terms);
    }
    if (x->n_args != 1 || x->index > large || small > large - x->index) return refuse(p, "its part is outside");
    if (x->kind == VPPS_VALUE_SLICE) return vpps_express_slice(p->s, x->rows, x->cols, terms[0].x, x->index);
    if (large == small) return terms[0].x;
    return vpps_express_of(p->s, VPPS_X_PLACE, x->rows, x->cols, terms[0].x, x->index, 0);
}

static uint32_t express_positions(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    const uint32_t of = x->n_args == 1 ? arg_of(p, 0)->value : VPPS_NONE;
    if (of == VPPS_NONE || of + 1 != p->v) return refuse(p, "positions do not follow what found them");
    const vpps_cell_value *y = &p->c->values[of];
    const bool finds = y->kind == VPPS_VALUE_RUN && (y->opcode == VPPS_I_MAX_OF || y->opcode == VPPS_I_MIN_OF);
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
    if (x->kind == VPPS_VALUE_ARGMAX) return vpps_express_of(p->s, VPPS_X_ARGMAX, 2, 1, of, 0, 0);
    const vpps_parameter_data *table = vpps_proof_parameter(p, x->param, VPPS_LOOKUP);
    if (!table || a->rows != 1) return refuse(p, "it is no entry of a table, by a number");
    return vpps_express_of(p->s, VPPS_X_ENTRY, table->rows, table->cols, of, x->param, 0);
}

static uint32_t express_value(const vpps_proof *p) {
    const vpps_cell_value *x = &p->c->values[p->v];
    switch (x->kind) {
    case VPPS_VALUE_INPUT:
        if (x->index >= p->c->n_inputs) return refuse(p, "there is no such input");
        return vpps_express(p->s, VPPS_X_INPUT, x->rows, x->cols, x->domain, x->index, 0, 0);
    case VPPS_VALUE_LOOKUP: return vpps_proof_lookup(p, x->index);
    case VPPS_VALUE_DATA:
        if (!p->c->is_data) return refuse(p, "data without any");
        return vpps_express(p->s, VPPS_X_DATA, x->rows, x->cols, 0, 0, 0, 0);
    case VPPS_VALUE_PARAMETER:
        if (!vpps_proof_parameter(p, x->param, VPPS_VECTOR)) return refuse(p, "it is no vector of the model");
        return vpps_express(p->s, VPPS_X_PARAMETER, p->check->g->model->params[x->param].rows, 1, 0, x->param, 0, 0);
    case VPPS_VALUE_GRADIENT:
        if (x->index >= p->c->n_outputs || !p->c->needs.training || !(p->c->needs.gradient_out >> x->index & 1))
            return refuse(p, "there is no such gradient");
        return vpps_express(p->s, VPPS_X_GRADIENT, x->rows, x->cols, 0, x->index, 0, 0);
    case VPPS_VALUE_RUN: return express_run(p);
    case VPPS_VALUE_PRODUCT: return express_product(p);
    case VPPS_VALUE_PRODUCT_T: return express_product_t(p);
    case VPPS_VALUE_SLICE:
    case VPPS_VALUE_PLACE:
    case VPPS_VALUE_STACK: return express_parts(p);
    case VPPS_VALUE_ARGMAX:
    case VPPS_VALUE_ENTRY: return express_decided(p);
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
        if (x->kind == VPPS_VALUE_GRADIENT && x->index < VPPS_CELL_MOST) p->gradients[p->v] = (uint64_t)1 << x->index;
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
