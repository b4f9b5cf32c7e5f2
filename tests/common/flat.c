/* flat.c - see flat.h. */
#include "common/flat.h"
#include "common/testing.h"

static uint32_t add_node(flat_graph *f, const vpps_signature *s, const vpps_param *matrices, uint32_t imm) {
    if (!VPPS_RESERVE(f->nodes, f->n_nodes + 1u)) abort();
    f->nodes[f->n_nodes] = (flat_node){*s, matrices, (uint32_t)f->n_args, 0, imm};
    if (s->op == VPPS_OP_DROPOUT) { /* elements are numbered in the order of the nodes */
        f->nodes[f->n_nodes].imm = (uint32_t)f->dropout_elems;
        f->dropout_elems += vpps_words(s);
    }
    return f->n_nodes++;
}

static uint32_t add_plain(flat_graph *f, vpps_op op, uint32_t rows, uint32_t cols, uint32_t imm) {
    const vpps_signature s = {.op = (uint8_t)op, .rows = rows, .cols = cols, .param = VPPS_NO_PARAM};
    return add_node(f, &s, NULL, imm);
}

/* Adds an argument to the last node. */
static void add_arg(flat_graph *f, uint32_t arg) {
    if (!VPPS_RESERVE(f->args, f->n_args + 1)) abort();
    f->args[f->n_args++] = arg;
    f->nodes[f->n_nodes - 1].n_args++;
}

/* ---------------------------------------------------------------- applied cells */

typedef struct expansion {
    flat_graph *f;
    const vpps_cell_data *cell;
    const uint32_t *members, *indices;
    const vpps_node *own, *listed;
    uint32_t *input_at; /* for each input: its index in `own` or `listed` */
    uint32_t *node_at;  /* for each template node: its value's, or first member's, index in the flat graph */
} expansion;

static uint32_t members_of(const expansion *e, uint32_t a) {
    const uint32_t n = a & ~VPPS_CELL_INPUT;
    return vpps_members(e->members, a & VPPS_CELL_INPUT ? e->cell->inputs[n].axis : e->cell->axis[n]);
}

/* Returns the node that an argument is, or, if the argument is a list, its member. */
static uint32_t resolve(const expansion *e, uint32_t a, uint32_t member) {
    const uint32_t n = a & ~VPPS_CELL_INPUT, at = member < members_of(e, a) ? member : 0;
    if (!(a & VPPS_CELL_INPUT)) return e->node_at[n] + at;
    return e->f->of[(e->cell->inputs[n].axis ? e->listed : e->own)[e->input_at[n] + at]];
}

static void add_members(const expansion *e, uint32_t list) {
    for (uint32_t k = 0; k < members_of(e, list); k++) add_arg(e->f, resolve(e, list, k));
}

static void expand_concat(const expansion *e, uint32_t t, const vpps_signature *s, uint32_t list) {
    const uint32_t most = e->cell->nodes[t].imm, members = members_of(e, list);
    const uint32_t missing = most > members ? most - members : 1; /* there are zeros even where none are missing */
    const uint32_t zeros = add_plain(e->f, VPPS_OP_CONSTANT, s->rows / most * missing, s->cols, 0);
    e->node_at[t] = add_node(e->f, s, NULL, 0);
    add_members(e, list);
    if (members < most) add_arg(e->f, zeros);
}

static void expand_over_list(const expansion *e, uint32_t t, const vpps_signature *s) {
    flat_graph *f = e->f;
    const uint32_t *args = e->cell->args + e->cell->nodes[t].args, members = members_of(e, args[0]);
    const bool each = vpps_ops[s->op].op_class == VPPS_CLASS_WHOLE; /* a value for each member */
    if (s->op == VPPS_OP_CONCAT) {
        expand_concat(e, t, s, args[0]);
    } else if (!members) { /* zeros, in the place of what is made of no members */
        for (uint32_t i = 0; i < 1u + each; i++) add_plain(f, VPPS_OP_CONSTANT, 1, 1, 0);
        e->node_at[t] = each ? f->n_nodes : add_plain(f, VPPS_OP_CONSTANT, s->rows, s->cols, 0);
    } else {
        const uint32_t stack = add_plain(f, VPPS_OP_CONCAT, members, 1, 0);
        add_members(e, args[0]);
        if (each) {
            add_plain(f, (vpps_op)s->op, members, 1, 0);
            add_arg(f, stack);
            e->node_at[t] = f->n_nodes;
            for (uint32_t k = 0; k < members; k++) {
                add_plain(f, VPPS_OP_SLICE, 1, 1, k);
                add_arg(f, stack + 1);
            }
        } else {
            e->node_at[t] = add_node(f, s, NULL, 0);
            add_arg(f, stack);
            add_members(e, args[1]);
        }
    }
}

static void expand_node(const expansion *e, uint32_t t) {
    const vpps_cell_data *c = e->cell;
    const vpps_op_node *node = &c->nodes[t];
    const vpps_signature *s = &c->signatures[node->signature];
    if (c->over_list[t]) {
        expand_over_list(e, t, s);
        return;
    }
    e->node_at[t] = e->f->n_nodes;
    for (uint32_t member = 0; member < vpps_members(e->members, c->axis[t]); member++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < node->n_args; i++)
            n += c->axis[t] ? 1 : members_of(e, c->args[node->args + i]); /* an n-ary op takes all members */
        if (node->n_args && !n) {
            add_plain(e->f, VPPS_OP_CONSTANT, s->rows, s->cols, 0); /* a sum of no members */
            continue;
        }
        add_node(e->f, s, c->matrices + s->first_matrix, c->imm_pulled[t] ? e->indices[node->imm] : node->imm);
        for (uint32_t i = 0; i < node->n_args; i++) {
            const uint32_t a = c->args[node->args + i];
            if (c->axis[t]) {
                add_arg(e->f, resolve(e, a, member));
            } else {
                add_members(e, a);
            }
        }
    }
}

static void expand_cell(flat_graph *f, const vpps_graph *g, const vpps_record *r) {
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    expansion e = {.f = f, .cell = c, .members = g->words + r->at};
    e.own = vpps_own_nodes(c, e.members);
    e.listed = vpps_listed_nodes(g, c, e.members);
    e.indices = vpps_indices_of(c, e.members);
    e.input_at = need(calloc(c->n_inputs + 1u, sizeof *e.input_at));
    e.node_at = need(calloc(c->n_nodes + 1u, sizeof *e.node_at));
    uint32_t n_nodes[2] = {0};
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        uint32_t *at = &n_nodes[c->inputs[i].axis != 0];
        e.input_at[i] = *at;
        *at += members_of(&e, VPPS_CELL_INPUT | i);
    }
    for (uint32_t t = 0; t < c->n_nodes; t++) expand_node(&e, t);
    for (uint32_t k = 0; k < c->n_outputs; k++) f->of[r->first + k] = e.node_at[c->outputs[k]];
    free(e.input_at);
    free(e.node_at);
}

/* ---------------------------------------------------------------- the graph */

flat_graph *flatten(const vpps_graph *g) {
    flat_graph *f = need(calloc(1, sizeof *f));
    f->of = need(calloc(g->n_nodes + 1u, sizeof *f->of));
    for (size_t i = 0; i < g->n_records; i++) {
        const vpps_record *r = &g->records[i];
        if (r->cell != VPPS_NODE_RECORD) {
            expand_cell(f, g, r);
            continue;
        }
        const vpps_op_node *node = &g->record_nodes[r->at];
        const vpps_signature *s = &g->signatures[node->signature];
        f->of[r->first] = add_node(f, s, g->matrices + s->first_matrix, node->imm);
        for (uint32_t k = 0; k < node->n_args; k++) add_arg(f, f->of[g->words[node->args + k]]);
    }
    return f;
}

void flat_graph_free(flat_graph *f) {
    if (!f) return;
    VPPS_FREE_ARRAYS(f->nodes);
    VPPS_FREE_ARRAYS(f->args);
    free(f->of);
    free(f);
}

static bool same_node(const flat_graph *f, const flat_node *a, const flat_graph *g, const flat_node *b) {
    const vpps_signature *s = &a->s, *t = &b->s;
    return s->op == t->op && s->rows == t->rows && s->cols == t->cols && s->param == t->param && s->p == t->p &&
           s->n_matrices == t->n_matrices && a->n_args == b->n_args && a->imm == b->imm &&
           (!a->n_args || !memcmp(f->args + a->args, g->args + b->args, a->n_args * sizeof *f->args)) &&
           (!s->n_matrices || !memcmp(a->matrices, b->matrices, s->n_matrices * sizeof *a->matrices));
}

uint32_t flat_difference(const flat_graph *a, const flat_graph *b) {
    const uint32_t n = vpps_min_u32(a->n_nodes, b->n_nodes);
    for (uint32_t i = 0; i < n; i++)
        if (!same_node(a, &a->nodes[i], b, &b->nodes[i])) return i;
    return a->n_nodes == b->n_nodes ? UINT32_MAX : n;
}
