/* cost.c - what one training step on a graph costs at least: operations and bytes, counted from its flat form.
 *
 * The convention is in vpps.h, at vpps_cost. A product is counted where its result is asked for: the gradient of a
 * value only where a parameter that is trained is below it, the gradient of a matrix only where it is trained.
 */
#include "graph/graph.h"

/* ---------------------------------------------------------------- the count */

typedef struct count {
    const vpps_graph *g;
    uint8_t *gradient; /* of every node: is a parameter that is trained below it? */
    uint8_t *used;     /* entry by entry, one parameter after the other: was it counted already? */
    size_t *first;     /* each parameter's first entry in `used` */
    vpps_cost cost;
} count;

/* An entry of a parameter is read once and, when it is trained, updated once, however often it is used. */
static void use_parameter(count *c, vpps_param param, uint32_t entry) {
    if (param == VPPS_NO_PARAM) return;
    const vpps_parameter_data *p = &c->g->model->params[param];
    uint8_t *used = &c->used[c->first[param] + entry];
    if (*used) return;
    *used = 1;
    const uint64_t elems = (uint64_t)p->rows * p->cols;
    c->cost.parameter_bytes += elems * (p->frozen ? 4 : 8);
    if (!p->frozen) c->cost.other_flops += 2 * elems;
}

static bool trained(const count *c, vpps_param param) {
    return param != VPPS_NO_PARAM && !c->g->model->params[param].frozen;
}

/* The product itself, and as much again for each of its factors that has a gradient. */
static void count_product(count *c, uint64_t multiply_adds, bool left_gradient, bool right_gradient) {
    c->cost.product_flops += 2 * multiply_adds * (1u + left_gradient + right_gradient);
}

static void count_affine(count *c, const vpps_signature *s, const uint32_t *args, uint8_t *gradient) {
    const uint64_t words = vpps_words(s);
    for (uint32_t i = 0; i < s->n_matrices; i++) {
        const vpps_param matrix = c->g->matrices[s->first_matrix + i];
        count_product(c, words * c->g->model->params[matrix].cols, trained(c, matrix), c->gradient[args[i]]);
        use_parameter(c, matrix, 0);
        *gradient |= trained(c, matrix);
    }
    if (s->param == VPPS_NO_PARAM) return;
    use_parameter(c, s->param, 0);
    c->cost.other_flops += words * (1u + trained(c, s->param));
    *gradient |= trained(c, s->param);
}

static void count_other(count *c, const vpps_signature *s, const vpps_flat_node *node, uint64_t first_words,
                        bool gradient) {
    const vpps_op_row *op = &vpps_ops[s->op];
    uint64_t elems = op->per == VPPS_PER_ARGUMENT ? first_words : vpps_words(s);
    if (op->per == VPPS_PER_MEMBER) elems *= node->n_args - (s->op == VPPS_OP_WEIGHTED_SUM);
    c->cost.other_flops += elems * (op->flops + (gradient ? op->backward_flops : 0u));
}

static void count_node(count *c, uint32_t i) {
    const vpps_flat *flat = &c->g->flat;
    const vpps_flat_node *node = &flat->nodes[i];
    const vpps_signature *s = &c->g->signatures[node->signature];
    const uint32_t *args = flat->args + node->args;
    uint8_t gradient = 0;
    for (uint32_t k = 0; k < node->n_args; k++) gradient |= c->gradient[args[k]];
    const vpps_signature *first = node->n_args ? &c->g->signatures[flat->nodes[args[0]].signature] : s;

    if (s->op == VPPS_OP_LOOKUP || s->op == VPPS_OP_PARAMETER) { /* the parameter itself, no value beside it */
        use_parameter(c, s->param, s->op == VPPS_OP_LOOKUP ? node->imm : 0);
        c->gradient[i] = trained(c, s->param);
        return;
    }
    if (s->op == VPPS_OP_AFFINE) {
        count_affine(c, s, args, &gradient);
    } else if (s->op == VPPS_OP_MATMUL) {
        count_product(c, (uint64_t)vpps_words(s) * first->cols, c->gradient[args[0]], c->gradient[args[1]]);
    } else {
        count_other(c, s, node, vpps_words(first), gradient);
    }
    c->gradient[i] = gradient;
    c->cost.value_bytes += (uint64_t)vpps_words(s) * (gradient ? 16 : 8);
}

static bool open_count(count *c, const vpps_graph *g) {
    const vpps_model *model = g->model;
    size_t entries = 0;
    *c = (count){.g = g, .first = malloc((model->n_params + 1) * sizeof *c->first)};
    if (!c->first) return false;
    for (size_t p = 0; p < model->n_params; p++) {
        c->first[p] = entries;
        entries += model->params[p].count;
    }
    c->used = calloc(entries + 1, 1);
    c->gradient = malloc((size_t)g->flat.n_nodes + 1);
    return c->used && c->gradient;
}

static void close_count(count *c) {
    free(c->gradient);
    free(c->used);
    free(c->first);
}

static vpps_status give(const vpps_cost *cost, vpps_cost *out) {
    return vpps_give_struct(out, cost, sizeof *cost, sizeof *cost, "vpps_cost");
}

vpps_status vpps_graph_cost(vpps_graph *g, vpps_cost *out) {
    VPPS_NEED(g);
    VPPS_NEED(out);
    VPPS_TRY(give(&(vpps_cost){0}, out));
    VPPS_TRY(vpps_graph_flatten(g));
    count c;
    if (!open_count(&c, g)) {
        close_count(&c);
        return vpps_fail(VPPS_MEMORY, "graph: no memory to count %u nodes", g->flat.n_nodes);
    }
    for (uint32_t i = 0; i < g->flat.n_nodes; i++) count_node(&c, i);
    c.cost.nodes = g->flat.n_nodes;
    close_count(&c);
    return give(&c.cost, out);
}
