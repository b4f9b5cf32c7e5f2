/* flops.c - the cost of a compiled cell by the convention of vpps_cost: every addition, multiplication, comparison and call counts one. */
#include "cell/flops.h"

static uint64_t columns_of(const vpps_model *model, vpps_param p) { return model->params[p].cols; }

static void add_run(const vpps_compiled_cell *c, const vpps_cell_value *x, vpps_cell_flops *sum) {
    const vpps_instruction_row *row = &vpps_instructions[x->run.opcode];
    const vpps_cell_value *first = x->n_args ? &c->values[c->args[x->first_arg].value] : x;
    const bool of_operand = row->form == VPPS_FORM_REDUCE || x->run.opcode == VPPS_I_ARGMAX;
    const uint64_t words = vpps_value_words(of_operand ? first : x);
    if (row->form == VPPS_FORM_MATMUL) {
        const uint32_t inner = x->run.opcode == VPPS_I_MATMUL_TN ? first->rows : first->cols;
        sum->products[x->axis] += 2 * words * inner;
        return;
    }
    const char *list = strchr(row->operands, '*');
    if (!list) {
        sum->other[x->axis] += words * row->flops;
        return;
    }
    for (uint32_t k = strchr(row->operands, 'v') ? 1 : 0; k < x->n_args; k++) {
        const uint32_t axis = vpps_max_u32(c->values[c->args[x->first_arg + k].value].axis, x->axis);
        sum->other[axis] += words * row->flops;
    }
}

void vpps_add_value_flops(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v, vpps_cell_flops *sum) {
    const vpps_cell_value *x = &c->values[v];
    const uint64_t words = vpps_value_words(x);
    if (x->kind == VPPS_VALUE_RUN) add_run(c, x, sum);
    if (!vpps_is_product(x)) return;
    if (vpps_bias_of(x) != VPPS_NO_PARAM) sum->other[x->axis] += words;
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &c->args[x->first_arg + k];
        if (a->matrix == VPPS_NO_PARAM) { /* without a matrix the argument is only added: one flop for each element */
            sum->other[x->axis] += words;
        } else {
            const uint64_t inner =
                x->kind == VPPS_VALUE_PRODUCT ? columns_of(model, a->matrix) : model->params[a->matrix].rows;
            sum->products[x->axis] += 2 * words * inner;
        }
    }
}

static void add_outer_flops(const vpps_model *model, const vpps_compiled_cell *c, uint32_t i, vpps_cell_flops *sum) {
    const vpps_outer o = vpps_outer_of(c, i);
    const uint64_t words = vpps_operand_words(o.dy);
    if (!o.x) sum->other[o.dy->axis] += words;
    if (o.x) sum->products[o.dy->axis] += 2 * words * columns_of(model, o.param);
}

vpps_cell_cost vpps_cost_of_cell(const vpps_model *model, const vpps_compiled_cell *c) {
    vpps_cell_cost cost = {0};
    for (uint32_t v = 0; v < c->n_values; v++)
        vpps_add_value_flops(model, c, v, v < c->n_forward ? &cost.forward : &cost.backward);
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) add_outer_flops(model, c, i, &cost.parameters);
    return cost;
}

void vpps_set_stage_work(const vpps_model *model, vpps_compiled_cell *c) {
    enum { PRODUCTS = 8 /* number of flops in products that take as long as one flop elsewhere */, MOST = 1 << 20 };
    for (uint32_t s = 0; s < c->n_stages; s++) {
        vpps_cell_flops sum = {.other = {1}};
        uint64_t lists = 0;
        for (uint32_t v = 0; v < c->n_values; v++) {
            if (c->values[v].stage != s) continue;
            vpps_add_value_flops(model, c, v, &sum);
            sum.other[c->values[v].axis] += vpps_value_words(&c->values[v]);
        }
        for (uint32_t d = 0; d < VPPS_AXES; d++) sum.other[d] += sum.products[d] / PRODUCTS;
        for (uint32_t d = 1; d < VPPS_AXES; d++) lists |= sum.other[d];
        for (uint32_t d = 0; d < VPPS_AXES && lists; d++)
            c->stages[s].work[d] = (uint32_t)(sum.other[d] < MOST ? sum.other[d] : MOST);
    }
}

/* Returns the next value, from argument *k on, that the product multiplies by a matrix; VPPS_NONE: there is none. */
static uint32_t next_operand(const vpps_compiled_cell *c, const vpps_cell_value *x, uint32_t *k) {
    while (*k < x->n_args) {
        const vpps_cell_arg *a = &c->args[x->first_arg + (*k)++];
        if (a->matrix != VPPS_NO_PARAM) return a->value;
    }
    return VPPS_NONE;
}

static bool same_operands(const vpps_compiled_cell *c, const vpps_cell_value *x, const vpps_cell_value *y) {
    if (x->kind != y->kind || x->stage != y->stage || x->axis != y->axis || x->cols != y->cols) return false;
    for (uint32_t i = 0, k = 0;;) {
        const uint32_t a = next_operand(c, x, &i), b = next_operand(c, y, &k);
        if (a != b) return false;
        if (a == VPPS_NONE) return true;
    }
}

vpps_cell_stack vpps_stack_of(const vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_value *x = &c->values[v];
    vpps_cell_stack s = {.first = v};
    for (uint32_t k = 0, a; (a = next_operand(c, x, &k)) != VPPS_NONE;) s.cols += c->values[a].rows;
    for (uint32_t u = c->n_values; u-- > 0;) {
        if (!same_operands(c, x, &c->values[u])) continue;
        s.first = u;
        s.n++;
        s.rows += c->values[u].rows;
    }
    return s;
}
