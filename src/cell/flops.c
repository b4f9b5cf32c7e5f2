/* flops.c - what a compiled cell costs, by the convention of vpps_cost: additions, multiplications, comparisons and calls
 * of a function count one each. */
#include "cell/print.h"

/* Of an instruction, for each element of its result (REDUCE: of its operands); of those over a list, for each member. */
static uint32_t flops_an_element(uint32_t opcode) {
    switch (opcode) {
    case VPPS_I_FILL:
    case VPPS_I_COPY:
    case VPPS_I_NEG:
    case VPPS_I_BROADCAST: return 0;
    case VPPS_I_DROPOUT:
    case VPPS_I_SQUARE_B:
    case VPPS_I_SQRT_B:
    case VPPS_I_ABS_B:
    case VPPS_I_DIV_B:
    case VPPS_I_SQUARED_DISTANCE_B:
    case VPPS_I_WEIGHTED_SUM:
    case VPPS_I_DOT: return 2;
    case VPPS_I_SIGMOID_B:
    case VPPS_I_TANH_B:
    case VPPS_I_ELU_B:
    case VPPS_I_SQUARED_DISTANCE:
    case VPPS_I_HINGE:
    case VPPS_I_CROSS_ENTROPY_B:
    case VPPS_I_HINGE_B: return 3;
    case VPPS_I_ELU:
    case VPPS_I_CROSS_ENTROPY:
    case VPPS_I_SOFTMAX_B:
    case VPPS_I_LOG_SOFTMAX_B: return 4;
    case VPPS_I_SOFTMAX:
    case VPPS_I_LOG_SOFTMAX:
    case VPPS_I_BINARY_LOG_LOSS_BP:
    case VPPS_I_BINARY_LOG_LOSS_BT: return 5;
    case VPPS_I_BINARY_LOG_LOSS: return 8;
    case VPPS_I_GELU: return 9;
    case VPPS_I_GELU_B: return 18;
    default: return 1;
    }
}

static uint64_t columns_of(const vpps_model *model, vpps_param p) { return model->params[p].cols; }

static void add_run(const vpps_compiled_cell *c, const vpps_cell_value *x, vpps_cell_flops *sum) {
    const vpps_instruction_row *row = &vpps_instructions[x->opcode];
    const vpps_cell_value *first = x->n_args ? &c->values[c->args[x->first_arg].value] : x;
    const uint64_t words = vpps_value_words(row->form == VPPS_FORM_REDUCE ? first : x);
    if (row->form == VPPS_FORM_MATMUL) {
        const uint32_t inner = x->opcode == VPPS_I_MATMUL_TN ? first->rows : first->cols;
        sum->products[x->domain] += 2 * words * inner;
        return;
    }
    const char *list = strchr(row->operands, '*');
    if (!list) {
        sum->other[x->domain] += words * flops_an_element(x->opcode);
        return;
    }
    for (uint32_t k = strchr(row->operands, 'v') ? 1 : 0; k < x->n_args; k++) {
        const uint32_t domain = c->values[c->args[x->first_arg + k].value].domain | x->domain;
        sum->other[domain] += words * flops_an_element(x->opcode);
    }
}

void vpps_add_value_flops(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v, vpps_cell_flops *sum) {
    const vpps_cell_value *x = &c->values[v];
    const uint64_t words = vpps_value_words(x);
    if (x->kind == VPPS_VALUE_RUN) add_run(c, x, sum);
    if (x->kind != VPPS_VALUE_PRODUCT && x->kind != VPPS_VALUE_PRODUCT_T) return;
    if (x->param != VPPS_NO_PARAM) sum->other[x->domain] += words;
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &c->args[x->first_arg + k];
        if (a->matrix == VPPS_NO_PARAM) { /* a value to start from */
            sum->other[x->domain] += words;
        } else {
            const uint64_t inner =
                x->kind == VPPS_VALUE_PRODUCT ? columns_of(model, a->matrix) : model->params[a->matrix].rows;
            sum->products[x->domain] += 2 * words * inner;
        }
    }
}

void vpps_add_outer_flops(const vpps_model *model, const vpps_compiled_cell *c, const vpps_cell_outer *o,
                          vpps_cell_flops *sum) {
    const vpps_cell_value *dy = &c->values[o->dy];
    const uint64_t words = vpps_value_words(dy);
    if (o->x == VPPS_NONE) {
        sum->other[dy->domain] += words;
    } else {
        sum->products[dy->domain] += 2 * words * columns_of(model, o->param);
    }
}

vpps_cell_cost vpps_cost_of_cell(const vpps_model *model, const vpps_compiled_cell *c) {
    vpps_cell_cost cost = {0};
    for (uint32_t v = 0; v < c->n_values; v++)
        vpps_add_value_flops(model, c, v, v < c->n_forward ? &cost.forward : &cost.backward);
    for (uint32_t i = 0; i < c->n_outers; i++) vpps_add_outer_flops(model, c, &c->outers[i], &cost.parameters);
    return cost;
}

/* ---------------------------------------------------------------- stacks */

/* The operand of a product's next matrix from *k on; VPPS_NONE: there is none. */
static uint32_t next_operand(const vpps_compiled_cell *c, const vpps_cell_value *x, uint32_t *k) {
    while (*k < x->n_args) {
        const vpps_cell_arg *a = &c->args[x->first_arg + (*k)++];
        if (a->matrix != VPPS_NO_PARAM) return a->value;
    }
    return VPPS_NONE;
}

static bool same_operands(const vpps_compiled_cell *c, const vpps_cell_value *x, const vpps_cell_value *y) {
    if (x->kind != y->kind || x->stage != y->stage || x->domain != y->domain || x->cols != y->cols) return false;
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
