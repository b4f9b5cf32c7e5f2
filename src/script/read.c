/* read.c - the graph as vertices: what each reads, what the loss is made of, what is needed. */
#include "script/work.h"

uint32_t vpps_output_of_node(const vpps_batch_work *w, vpps_node x) {
    const vpps_graph *g = w->g;
    const uint32_t r = g->node_record[x];
    const vpps_vertex_work *v = &w->vertices[r];
    const vpps_type *type = w->used[v->type].type;
    const uint32_t offset = x - g->records[r].first;
    if (!type->n_mapped) {
        const uint32_t k = type->output_of_node[offset];
        return k == VPPS_NONE ? k : v->first_output + k;
    }
    for (uint32_t k = 0; k < type->base->n_outputs; k++) {
        const vpps_cell_output *o = &type->base->outputs[k];
        if (o->node - o->mapped + (uint64_t)o->mapped * v->members == offset) return v->first_output + k;
    }
    return VPPS_NONE;
}

/* ---------------------------------------------------------------- types */

static uint32_t use_type(vpps_batch_work *w, uint32_t index) {
    const size_t before = w->used_of_type_capacity;
    if (!VPPS_RESERVE(w->used_of_type, w->used_of_type_capacity, w->types->n_types)) return VPPS_NONE;
    for (size_t i = before; i < w->used_of_type_capacity; i++) w->used_of_type[i] = VPPS_NONE;
    if (!VPPS_RESERVE(w->used, w->used_capacity, w->n_used + 1u)) return VPPS_NONE;
    if (w->used_of_type[index] != VPPS_NONE) return w->used_of_type[index];
    vpps_type *type = w->types->types[index];
    vpps_used_type u = {.type = type, .index = index, .first_block = VPPS_NONE};
    uint64_t frozen = 0;
    for (uint32_t i = 0; i < type->n_params; i++) {
        const bool f = w->g->model->params[type->params[i]].frozen;
        u.trains |= !f;
        frozen = vpps_mix64(frozen + f + 1);
    }
    u.trains = u.trains && w->training;
    u.needs.frozen = frozen;
    u.needs.training = w->training;
    w->used[w->n_used] = u;
    return w->used_of_type[index] = w->n_used++;
}

static vpps_status type_of_node(vpps_batch_work *w, const vpps_flat_node *node, const uint32_t *args, uint32_t *out) {
    const vpps_graph *g = w->g;
    if (!VPPS_RESERVE(w->stack, w->stack_capacity, 2 * (size_t)node->n_args + 2)) return vpps_no_memory();
    for (uint32_t i = 0; i < node->n_args; i++) {
        const vpps_record *r = &g->records[g->node_record[args[i]]];
        if (r->cell == VPPS_NODE_RECORD) {
            const vpps_signature *s = &g->signatures[g->record_nodes[r->at].signature];
            w->stack[2 * i] = s->rows;
            w->stack[2 * i + 1] = s->cols;
            continue;
        }
        const uint32_t output = vpps_output_of_node(w, args[i]);
        if (output == VPPS_NONE) {
            return vpps_fail(VPPS_ARGUMENT, "node %u is inside a vertex; push or scatter it to use it", args[i]);
        }
        const vpps_vertex_work *v = &w->vertices[w->output_vertex[output]];
        const vpps_compiled_cell *c = w->used[v->type].type->base;
        const vpps_cell_value *x = &c->values[c->outputs[output - v->first_output].value];
        w->stack[2 * i] = x->rows;
        w->stack[2 * i + 1] = x->cols;
    }
    return vpps_type_of_op(w->types, g, node, w->stack, out);
}

/* ---------------------------------------------------------------- vertices */

static vpps_status read_vertex(vpps_batch_work *w, uint32_t r, uint64_t *dropout) {
    const vpps_graph *g = w->g;
    const vpps_record *record = &g->records[r];
    const bool node = record->cell == VPPS_NODE_RECORD;
    const vpps_flat_node *op = node ? &g->record_nodes[record->at] : NULL;
    const uint32_t *args = g->words + (node ? op->args : record->at + 1);
    uint32_t index;
    if (node) {
        VPPS_TRY(type_of_node(w, op, args, &index));
    } else {
        VPPS_TRY(vpps_type_of_cell(w->types, g->model, record->cell, &index));
    }
    uint32_t t = index < w->used_of_type_capacity ? w->used_of_type[index] : VPPS_NONE;
    if (t == VPPS_NONE) {
        t = use_type(w, index);
        if (t == VPPS_NONE) return vpps_no_memory();
    }
    const vpps_compiled_cell *c = w->used[t].type->base;
    vpps_vertex_work *v = &w->vertices[r];
    *v = (vpps_vertex_work){.type = t, .first_source = (uint32_t)w->n_sources, .first_output = w->n_outputs};
    uint32_t n = node ? op->n_args : c->n_inputs;
    v->members = node ? (c->list_inputs ? n : 0) : c->list_inputs ? g->words[record->at] : 0;
    if (!node && c->list_inputs) n = c->n_inputs - c->list_inputs + c->list_inputs * v->members;
    v->n_sources = n;
    if (!VPPS_RESERVE(w->sources, w->sources_capacity, w->n_sources + n) ||
        !VPPS_RESERVE(w->output_vertex, w->output_vertex_capacity, w->n_outputs + c->n_outputs)) {
        return vpps_no_memory();
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t out = vpps_output_of_node(w, args[i]);
        if (out == VPPS_NONE) {
            return vpps_fail(VPPS_ARGUMENT, "node %u is inside a vertex; push or scatter it to use it", args[i]);
        }
        w->sources[w->n_sources++] = out;
    }
    for (uint32_t k = 0; k < c->n_outputs; k++) w->output_vertex[w->n_outputs++] = r;
    v->dropout = (uint32_t)*dropout;
    *dropout += c->dropout_elems + c->dropout_list_elems * v->members;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the loss */

static const vpps_signature *op_of(const vpps_batch_work *w, uint32_t r, const vpps_flat_node **node) {
    const vpps_record *record = &w->g->records[r];
    if (record->cell != VPPS_NODE_RECORD) return NULL;
    *node = &w->g->record_nodes[record->at];
    return &w->g->signatures[(*node)->signature];
}

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The factor by which an op's arguments enter its value, when it is a sum of them; false when it is none. */
static bool linear(const vpps_signature *s, const vpps_flat_node *node, float *first, float *others) {
    *first = *others = 1;
    switch (s->op) {
    case VPPS_OP_ADD:
    case VPPS_OP_SUM: return true;
    case VPPS_OP_SUB: *others = -1; return true;
    case VPPS_OP_NEGATE: *first = -1; return true;
    case VPPS_OP_AVERAGE: *first = *others = 1.0f / (float)node->n_args; return true;
    case VPPS_OP_SCALE: *first = float_of(node->imm); return true;
    default: return false;
    }
}

/* Takes the loss apart into terms of other vertices with constant factors: what joins the inputs' graphs is no
 * vertex, so each stays a component of its own, and nothing waits for all of them. */
static vpps_status read_loss(vpps_batch_work *w, uint32_t output) {
    size_t depth = 1;
    w->n_seeds = 0;
    if (!VPPS_RESERVE(w->stack, w->stack_capacity, 2)) return vpps_no_memory();
    w->stack[0] = output;
    const float one = 1;
    memcpy(&w->stack[1], &one, sizeof one);
    while (depth) {
        depth--;
        const uint32_t out = w->stack[2 * depth];
        const float factor = float_of(w->stack[2 * depth + 1]);
        const vpps_vertex_work *v = &w->vertices[w->output_vertex[out]];
        const vpps_flat_node *node = NULL;
        const vpps_signature *s = op_of(w, w->output_vertex[out], &node);
        float first, others;
        if (!s || !linear(s, node, &first, &others)) {
            if (!VPPS_RESERVE(w->seeds, w->seeds_capacity, w->n_seeds + 1u)) return vpps_no_memory();
            w->seeds[w->n_seeds++] = (vpps_seed){out, factor};
            continue;
        }
        if (!VPPS_RESERVE(w->stack, w->stack_capacity, 2 * (depth + v->n_sources))) return vpps_no_memory();
        for (uint32_t i = v->n_sources; i-- > 0; depth++) { /* the first on top */
            const float f = factor * (i ? others : first);
            w->stack[2 * depth] = w->sources[v->first_source + i];
            memcpy(&w->stack[2 * depth + 1], &f, sizeof f);
        }
    }
    return VPPS_OK;
}

static vpps_status check_loss(const vpps_batch_work *w, uint32_t *output) {
    const vpps_graph *g = w->g;
    const vpps_node x = w->request->loss;
    if (x >= g->n_nodes) {
        return vpps_fail(VPPS_ARGUMENT, "fb: the loss, %u, is not a node; the graph has %u", x, g->n_nodes);
    }
    *output = vpps_output_of_node(w, x);
    if (*output == VPPS_NONE) return vpps_fail(VPPS_ARGUMENT, "fb: the loss is inside a vertex; push it");
    const vpps_vertex_work *v = &w->vertices[w->output_vertex[*output]];
    const vpps_compiled_cell *c = w->used[v->type].type->base;
    const vpps_cell_value *value = &c->values[c->outputs[*output - v->first_output].value];
    if (value->rows != 1 || value->cols != 1) {
        return vpps_fail(VPPS_SHAPE, "fb: the loss is %s, %u x %u; expected a scalar", c->name, value->rows,
                         value->cols);
    }
    if (value->kind > VPPS_VALUE_PARAMETER) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "fb: the loss is %s; expected the result of an operation", c->name);
}

static vpps_status check_outputs(vpps_batch_work *w) {
    const vpps_batch_request *request = w->request;
    if (!VPPS_RESERVE(w->requested, w->requested_capacity, request->n_outputs + 1u)) return vpps_no_memory();
    for (uint32_t i = 0; i < request->n_outputs; i++) {
        const vpps_node x = request->outputs[i];
        if (x >= w->g->n_nodes) {
            return vpps_fail(VPPS_ARGUMENT, "forward: %u is not a node; the graph has %u", x, w->g->n_nodes);
        }
        w->requested[i] = vpps_output_of_node(w, x);
        if (w->requested[i] == VPPS_NONE) {
            return vpps_fail(VPPS_ARGUMENT, "forward: node %u is inside a vertex; push it to read it", x);
        }
    }
    return VPPS_OK;
}

static void mark_needed(vpps_batch_work *w) {
    for (uint32_t i = 0; i < w->n_seeds; i++) w->vertices[w->output_vertex[w->seeds[i].output]].needed = true;
    for (uint32_t i = 0; i < w->request->n_outputs && !w->training; i++)
        w->vertices[w->output_vertex[w->requested[i]]].needed = true;
    for (uint32_t r = w->n_vertices; r-- > 0;) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        const uint32_t *sources = w->sources + v->first_source;
        for (uint32_t i = 0; i < v->n_sources; i++) w->vertices[w->output_vertex[sources[i]]].needed = true;
    }
}

vpps_status vpps_read_graph(vpps_batch_work *w) {
    const vpps_graph *g = w->g;
    w->n_vertices = (uint32_t)g->n_records;
    w->n_sources = 0;
    w->n_outputs = w->n_seeds = 0;
    for (uint32_t i = 0; i < w->n_used; i++) w->used_of_type[w->used[i].index] = VPPS_NONE;
    w->n_used = 0;
    if (!VPPS_RESERVE(w->vertices, w->vertices_capacity, w->n_vertices + 1u)) return vpps_no_memory();
    uint64_t dropout = 0;
    for (uint32_t r = 0; r < w->n_vertices; r++) VPPS_TRY(read_vertex(w, r, &dropout));
    if (dropout > UINT32_MAX) return vpps_fail(VPPS_ARGUMENT, "graph: more than 2^32 elements under dropout");
    if (w->training) {
        uint32_t loss = VPPS_NONE;
        VPPS_TRY(check_loss(w, &loss));
        VPPS_TRY(read_loss(w, loss));
    } else {
        VPPS_TRY(check_outputs(w));
    }
    mark_needed(w);
    return VPPS_OK;
}
