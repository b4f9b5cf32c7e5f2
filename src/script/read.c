/* read.c - the graph as vertices: what each reads, what the loss is made of. */
#include "script/work.h"

static vpps_output_ref output_of(const vpps_graph *g, vpps_node x) { return (vpps_output_ref){x, g->node_record[x]}; }

/* ---------------------------------------------------------------- types */

static uint32_t use_type(vpps_batch_work *w, uint32_t index) {
    const size_t before = w->used_of_type_capacity;
    if (!VPPS_RESERVE(w->used_of_type, w->used_of_type_capacity, w->types->n_types)) return VPPS_NONE;
    for (size_t i = before; i < w->used_of_type_capacity; i++) w->used_of_type[i] = VPPS_NONE;
    if (w->used_of_type[index] != VPPS_NONE) return w->used_of_type[index];
    vpps_type *type = w->types->types[index];
    type->last_used = w->types->n_batches;
    const uint32_t n_inputs = w->n_inputs + type->base->n_inputs;
    if (!VPPS_RESERVE(w->used, w->used_capacity, w->n_used + 1u) ||
        !VPPS_RESERVE(w->noted, w->noted_capacity, VPPS_NOTED_TYPES * (size_t)n_inputs + 1)) {
        return VPPS_NONE;
    }
    vpps_used_type u = {.type = type,
                        .base = type->base,
                        .n_lists = type->base->n_lists,
                        .index = index,
                        .first_block = VPPS_NONE,
                        .first_input = w->n_inputs};
    w->n_inputs = n_inputs;
    u.part = type->last_part;
    u.differentiable = type->last_differentiable;
    uint64_t frozen = 0;
    for (uint32_t i = 0; i < type->n_params; i++) {
        const bool f = w->request->part == VPPS_STEP_NODES || w->g->model->params[type->params[i]].frozen;
        if (!f) u.trains |= type->params_reach[i];
        w->some_frozen |= f;
        frozen = vpps_mix64(frozen + f + 1);
    }
    if (!w->training) u.trains = 0;
    u.needs.frozen = frozen;
    u.needs.training = w->training;
    u.needs.fixed = w->request->part == VPPS_STEP_NODES;
    w->used[w->n_used] = u;
    return w->used_of_type[index] = w->n_used++;
}

static vpps_status type_of_node(vpps_batch_work *w, const vpps_op_node *node, const vpps_node *args, uint32_t *out) {
    const bool equal = vpps_ops[w->g->signatures[node->signature].op].shape == VPPS_SHAPE_EQUAL; /* all arguments are */
    if (!VPPS_RESERVE(w->stack, w->stack_capacity, 2 * (size_t)node->n_args + 2)) return vpps_no_memory();
    for (uint32_t i = 0; i < node->n_args; i++) {
        const vpps_signature *s = vpps_plain_signature(w->g, args[equal ? 0 : i]);
        w->stack[2 * i] = s->rows;
        w->stack[2 * i + 1] = s->cols;
    }
    return vpps_type_of_op(w->types, w->g, node, w->stack, out);
}

/* ---------------------------------------------------------------- vertices */

/* The place in `used` of a record's type. */
static vpps_status used_of_record(vpps_batch_work *w, const vpps_record *record, const vpps_op_node *op,
                                  const vpps_node *args, uint32_t *out) {
    uint32_t index;
    if (!op && w->used_of_cell[record->cell] != VPPS_NONE) return *out = w->used_of_cell[record->cell], VPPS_OK;
    VPPS_TRY(op ? type_of_node(w, op, args, &index) : vpps_type_of_cell(w->types, w->g->model, record->cell, &index));
    *out = index < w->used_of_type_capacity ? w->used_of_type[index] : VPPS_NONE;
    if (*out == VPPS_NONE) *out = use_type(w, index);
    if (!op) w->used_of_cell[record->cell] = *out;
    return *out == VPPS_NONE ? vpps_no_memory() : VPPS_OK;
}

/* Notes what vertex r reads, and where that puts it in the graph, and in its part as far as that is known: see needs.c. */
static vpps_status read_sources(vpps_batch_work *w, uint32_t r, uint32_t n, const vpps_node *args) {
    VPPS_TRY(vpps_need_count(w->n_sources + (uint64_t)n, "schedule", "values that vertices read"));
    if (!VPPS_RESERVE(w->sources, w->sources_capacity, w->n_sources + n) ||
        !VPPS_RESERVE(w->source_outputs, w->source_outputs_capacity, w->n_sources + n)) {
        return vpps_no_memory();
    }
    vpps_read *sources = w->sources + w->n_sources;
    uint32_t *outputs = w->source_outputs + w->n_sources;
    vpps_vertex_work *v = &w->vertices[r];
    const uint32_t part = w->used[v->type].part;
    uint32_t level = 0, depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t vertex = w->g->node_record[args[i]];
        const vpps_vertex_work *read = &w->vertices[vertex];
        sources[i] = (vpps_read){vertex, r};
        outputs[i] = args[i];
        depth = vpps_max_u32(depth, read->depth + 1);
        level = vpps_max_u32(level, w->used[read->type].part == part ? read->level + 1 : 0);
    }
    v->level = level;
    v->depth = depth;
    w->n_sources += n;
    return VPPS_OK;
}

static vpps_status read_vertex(vpps_batch_work *w, uint32_t r, uint64_t *dropout) {
    const vpps_graph *g = w->g;
    const vpps_record *record = &g->records[r];
    const vpps_op_node *op = record->cell == VPPS_NODE_RECORD ? &g->record_nodes[record->at] : NULL;
    uint32_t t;
    VPPS_TRY(used_of_record(w, record, op, op ? g->words + op->args : NULL, &t));
    const vpps_compiled_cell *c = w->used[t].base;
    const uint32_t args = op ? op->args : record->at + vpps_list_words(w->used[t].type->cell);
    const uint32_t *members = op ? &op->n_args : g->words + record->at; /* an op's one list is its arguments */
    uint32_t n = op ? op->n_args : c->n_inputs;
    for (uint32_t d = 1; d <= c->n_lists && !op; d++) n += c->inputs_of[d] * members[d - 1] - c->inputs_of[d];
    w->vertices[r] = (vpps_vertex_work){.type = t,
                                        .first_source = (uint32_t)w->n_sources,
                                        .first_output = record->first,
                                        .words = op ? op->imm : args + n};
    VPPS_TRY(read_sources(w, r, n, g->words + args));
    if (c->n_lists || c->dropout_elems[0]) {
        vpps_vertex_rest *rest = &w->rests[r];
        *rest = (vpps_vertex_rest){.dropout = (uint32_t)*dropout};
        *dropout += c->dropout_elems[0];
        for (uint32_t d = 1; d <= c->n_lists; d++) {
            rest->members[d - 1] = members[d - 1];
            *dropout += c->dropout_elems[d] * members[d - 1];
        }
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the loss */

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Is a record a sum of its arguments? The factors of the first and of the others. */
static bool is_linear(const vpps_graph *g, uint32_t record, float *first, float *others) {
    if (g->records[record].cell != VPPS_NODE_RECORD) return false;
    const vpps_op_node *node = &g->record_nodes[g->records[record].at];
    *first = *others = 1;
    switch (g->signatures[node->signature].op) {
    case VPPS_OP_ADD:
    case VPPS_OP_SUM: return true;
    case VPPS_OP_SUB: *others = -1; return true;
    case VPPS_OP_NEGATE: *first = -1; return true;
    case VPPS_OP_AVERAGE: *first = *others = 1.0f / (float)node->n_args; return true;
    case VPPS_OP_SCALE: *first = float_of(node->imm); return true;
    default: return false;
    }
}

/* How many records are vertices. In training the last ones are none as long as they are sums that the request does not name: the
 * loss is taken apart into terms of what these read, and nothing else that is needed reads them. */
static uint32_t count_records(const vpps_batch_work *w) {
    uint32_t n = (uint32_t)w->g->n_records;
    float first, others;
    while (w->training && n && is_linear(w->g, n - 1, &first, &others)) n--;
    for (uint32_t i = 0; i < w->n_requested + w->n_asked; i++) n = vpps_max_u32(n, w->requested[i].vertex + 1);
    return n;
}

/* Notes the vertices whose gradients are asked for: a sum among them is a term of the loss as a whole. */
static bool note_whole(vpps_batch_work *w) {
    if (!w->n_asked) return true;
    if (!VPPS_RESERVE(w->whole, w->whole_capacity, w->n_vertices + 1u)) return false;
    memset(w->whole, 0, w->n_vertices * sizeof *w->whole);
    for (uint32_t i = 0; i < w->n_asked; i++) w->whole[w->requested[w->n_requested + i].vertex] = true;
    return true;
}

static bool is_whole(const vpps_batch_work *w, uint32_t record) {
    return w->n_asked && record < w->n_vertices && w->whole[record];
}

/* A term of the loss: a sum is taken apart next, everything else is a seed. */
static vpps_status add_term(vpps_batch_work *w, vpps_node x, float factor, size_t *depth) {
    float first, others;
    const uint32_t record = w->g->node_record[x];
    if (is_linear(w->g, record, &first, &others) && !is_whole(w, record)) {
        if (!VPPS_RESERVE(w->sums, w->sums_capacity, *depth + 1)) return vpps_no_memory();
        w->sums[(*depth)++] = (vpps_loss_sum){record, 0, factor * first, factor * others};
        return VPPS_OK;
    }
    if (!VPPS_RESERVE(w->seeds, w->seeds_capacity, w->n_seeds + 1u)) return vpps_no_memory();
    w->seeds[w->n_seeds++] = (vpps_seed){output_of(w->g, x), factor};
    return VPPS_OK;
}

/* Takes the loss apart into terms of other vertices with constant factors: what joins the inputs' graphs is no
 * vertex, so each stays a component of its own, and nothing waits for all of them. */
static vpps_status read_loss(vpps_batch_work *w) {
    size_t depth = 0;
    if (!note_whole(w)) return vpps_no_memory();
    VPPS_TRY(add_term(w, w->request->loss, 1, &depth));
    while (depth) {
        vpps_loss_sum *sum = &w->sums[depth - 1];
        const vpps_op_node *node = &w->g->record_nodes[w->g->records[sum->record].at];
        const uint32_t i = sum->next++;
        if (i < node->n_args) {
            VPPS_TRY(add_term(w, w->g->words[node->args + i], i ? sum->others : sum->first, &depth));
        } else {
            depth--;
        }
    }
    return VPPS_OK;
}

static vpps_status check_loss(const vpps_batch_work *w) {
    const vpps_graph *g = w->g;
    const vpps_node x = w->request->loss;
    if (x >= g->n_nodes) {
        return vpps_fail(VPPS_ARGUMENT, "fb: the loss, %u, is not a node; the graph has %u", x, g->n_nodes);
    }
    const vpps_record *record = &g->records[g->node_record[x]];
    const vpps_signature *s = vpps_plain_signature(g, x);
    const bool op = record->cell == VPPS_NODE_RECORD, source = vpps_ops[s->op].op_class == VPPS_CLASS_SOURCE;
    const char *name = op ? vpps_ops[s->op].name : vpps_cell_of(g, record->cell)->name;
    if (s->rows != 1 || s->cols != 1) {
        return vpps_fail(VPPS_SHAPE, "fb: the loss is %s, %u x %u; expected a scalar", name, s->rows, s->cols);
    }
    return source ? vpps_fail(VPPS_ARGUMENT, "fb: the loss is %s; expected the result of an operation", name) : VPPS_OK;
}

static vpps_status add_requested(vpps_batch_work *w, uint32_t n, const vpps_node *nodes, vpps_output_ref *to) {
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i] >= w->g->n_nodes)
            return vpps_fail(VPPS_ARGUMENT, "%s: %u is not a node; the graph has %u",
                             w->training ? "backward" : "forward", nodes[i], w->g->n_nodes);
        to[i] = output_of(w->g, nodes[i]);
    }
    return VPPS_OK;
}

static vpps_status read_request(vpps_batch_work *w) {
    const vpps_batch_request *r = w->request;
    const size_t n = r->n_outputs + (size_t)r->n_gradient_nodes;
    if (!VPPS_RESERVE(w->requested, w->requested_capacity, n + 1)) return vpps_no_memory();
    VPPS_TRY(add_requested(w, r->n_outputs, r->outputs, w->requested));
    VPPS_TRY(add_requested(w, r->n_gradient_nodes, r->gradient_nodes, w->requested + r->n_outputs));
    w->n_requested = r->n_outputs;
    w->n_asked = r->n_gradient_nodes;
    return VPPS_OK;
}

vpps_status vpps_read_graph(vpps_batch_work *w) {
    const vpps_graph *g = w->g;
    VPPS_TRY(read_request(w));
    w->n_vertices = count_records(w);
    w->n_sources = 0;
    w->n_outputs = w->n_vertices < g->n_records ? g->records[w->n_vertices].first : g->n_nodes;
    w->n_seeds = 0;
    for (uint32_t i = 0; i < w->n_used; i++) w->used_of_type[w->used[i].index] = VPPS_NONE;
    w->n_used = w->n_inputs = 0;
    w->some_frozen = false;
    const size_t n_cells = g->model->n_cells;
    if (!VPPS_RESERVE(w->used_of_cell, w->used_of_cell_capacity, n_cells + 1) ||
        !VPPS_RESERVE(w->vertices, w->vertices_capacity, w->n_vertices + 1u) ||
        !VPPS_RESERVE(w->rests, w->rests_capacity, w->n_vertices + 1u) ||
        !VPPS_RESERVE(w->needed, w->needed_capacity, w->n_vertices + 1u)) {
        return vpps_no_memory();
    }
    memset(w->used_of_cell, 0xff, n_cells * sizeof *w->used_of_cell);
    memset(w->needed, 0, w->n_vertices * sizeof *w->needed);
    uint64_t dropout = 0;
    for (uint32_t r = 0; r < w->n_vertices; r++) VPPS_TRY(read_vertex(w, r, &dropout));
    w->vertices[w->n_vertices].first_source = (uint32_t)w->n_sources;
    if (dropout > UINT32_MAX) return vpps_fail(VPPS_ARGUMENT, "graph: more than 2^32 elements under dropout");
    if (!w->training) return VPPS_OK;
    VPPS_TRY(check_loss(w));
    return read_loss(w);
}
