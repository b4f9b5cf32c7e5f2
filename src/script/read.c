/* read.c - reads a batch's graph: which vertices there are, what they read, their types, the terms of the loss (read.h). */
#include "script/read.h"

/* A sum that is a term of the loss and is being replaced by its own terms. `next`: the number of its next term. */
typedef struct loss_sum {
    uint32_t record, next;
    /* factors in the loss: of the sum's first argument; of each other argument (they differ for a difference a - b) */
    float first, others;
} loss_sum;

/* Length, in reads, of the longest path to a vertex. depth: through all vertices; level: only through vertices whose
 * cells belong to the same recurrence (cells that read each other). */
typedef struct vertex_at {
    uint32_t depth, level;
} vertex_at;

enum { FIRST_TYPES = 16 }; /* initial capacity of the array of cells and ops */

typedef struct reader {
    vpps_arena *arena;
    vpps_history *history;
    const vpps_batch_request *request;
    vpps_reading *out;
    vpps_read_vertex *vertices;
    vpps_vertex_lists *lists;
    uint32_t *levels;
    vpps_read *sources;
    vpps_node *source_outputs;
    vpps_read_type *types;
    size_t types_capacity;
    uint32_t *type_of_cell; /* for each of the model's cells: its index in `types`; VPPS_NONE: not met in this batch */
    uint32_t *places;       /* for each cell or op ever met: its index in `types`; VPPS_NONE: not in this batch */
    uint32_t *shapes;       /* scratch: shapes of an op's arguments */
    size_t places_capacity, n_places, shapes_capacity;
    uint64_t dropout; /* number of elements under dropout in all vertices read so far */
    uint32_t listed;  /* the latest vertex that has list inputs (each reads any number of nodes) */
    vertex_at lists_at;
    const vpps_node *lists_nodes; /* nodes in the list inputs of vertex `listed`; NULL: no vertex has lists yet */
    vpps_seed *seeds;
    loss_sum *sums; /* stack of the sums that are being replaced by their terms; each sum is a term of the sum before */
    size_t seeds_capacity, sums_capacity;
    bool *whole; /* for each vertex: whether its gradient is requested (note_whole); NULL: no gradient is */
} reader;

static vpps_output_ref output_of(const vpps_graph *g, vpps_node x) { return (vpps_output_ref){x, g->node_record[x]}; }

/* ---------------------------------------------------------------- types */

static uint32_t use_type(reader *r, uint32_t index) {
    vpps_reading *out = r->out;
    const vpps_type *type = r->history->types[index].type;
    if (!VPPS_TAKE_MORE(r->arena, r->places, r->places_capacity, r->history->n_types)) return VPPS_NONE;
    while (r->n_places < r->history->n_types) r->places[r->n_places++] = VPPS_NONE;
    if (r->places[index] != VPPS_NONE) return r->places[index];
    if (!VPPS_TAKE_MORE(r->arena, r->types, r->types_capacity, out->n_types + 1u)) return VPPS_NONE;
    vpps_read_type u = {.type = type, .base = type->base, .n_lists = type->base->n_lists, .index = index};
    u.guess = r->history->types[index].guess;
    u.first_input = out->n_inputs;
    for (uint32_t i = 0; i < type->n_params; i++) {
        const bool frozen = out->fixed || out->g->model->params[type->params[i]].frozen;
        if (!frozen && out->training) u.trains |= type->params_reach[i];
        out->some_frozen |= frozen;
        u.frozen = vpps_mix64(u.frozen + frozen + 1);
    }
    r->places[index] = out->n_types;
    r->types[out->n_types] = u;
    out->n_inputs += type->base->n_inputs;
    return out->n_types++;
}

static vpps_status type_of_op(reader *r, const vpps_op_node *op, const vpps_node *args, uint32_t *index) {
    const vpps_graph *g = r->out->g;
    /* whether all arguments have one shape, so that one lookup of a shape suffices */
    const bool equal = vpps_ops[g->signatures[op->signature].op].shape == VPPS_SHAPE_EQUAL;
    if (!VPPS_TAKE_MORE(r->arena, r->shapes, r->shapes_capacity, 2 * (size_t)op->n_args + 2)) return vpps_no_memory();
    for (uint32_t i = 0; i < op->n_args; i++) {
        const vpps_signature *s = vpps_plain_signature(g, args[equal ? 0 : i]);
        r->shapes[2 * i] = s->rows;
        r->shapes[2 * i + 1] = s->cols;
    }
    return vpps_type_of_op(r->history, g, op, r->shapes, index);
}

/* Gives the index, in the batch's array of types, of a vertex's type. `op`: the op that the vertex is; NULL if the vertex applies a cell. */
static vpps_status type_of_record(reader *r, const vpps_record *record, const vpps_op_node *op, uint32_t *out) {
    const vpps_graph *g = r->out->g;
    uint32_t index;
    if (!op && r->type_of_cell[record->cell] != VPPS_NONE) return *out = r->type_of_cell[record->cell], VPPS_OK;
    VPPS_TRY(op ? type_of_op(r, op, g->words + op->args, &index)
                : vpps_type_of_cell(r->history, g->model, record->cell, &index));
    *out = use_type(r, index);
    if (!op) r->type_of_cell[record->cell] = *out;
    return *out == VPPS_NONE ? vpps_no_memory() : VPPS_OK;
}

/* ---------------------------------------------------------------- vertices */

/* Records that a vertex reads n nodes, outputs of earlier vertices. Raises at->depth above their depths in the graph, and at->level above
 * the levels (steps) of those whose types belong to the vertex's recurrence: types that read each other, as the last batch lets expect. */
static inline void read_nodes(reader *r, uint32_t vertex, uint32_t n, const vpps_node *nodes, vertex_at *at) {
    vpps_reading *out = r->out;
    vpps_read *sources = r->sources + out->n_sources;
    vpps_node *outputs = r->source_outputs + out->n_sources;
    const uint32_t scc = r->types[r->vertices[vertex].type].guess.scc;
    vertex_at after = *at;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t source = out->g->node_record[nodes[i]];
        const vpps_read_vertex *read = &r->vertices[source];
        sources[i] = (vpps_read){source, vertex};
        outputs[i] = nodes[i];
        after.depth = vpps_max_u32(after.depth, read->depth + 1);
        after.level = vpps_max_u32(after.level, r->types[read->type].guess.scc == scc ? r->levels[source] + 1 : 0);
    }
    out->n_sources += n;
    *at = after;
}

/* Records the nodes that a vertex reads through list inputs. If the latest vertex with lists has equal lists, `nodes` is that vertex's array. */
static void read_lists(reader *r, uint32_t vertex, uint32_t n, const vpps_node *nodes, vertex_at *at) {
    vpps_vertex_lists *lists = &r->lists[vertex];
    lists->shared = n && nodes == r->lists_nodes;
    lists->repeats = lists->shared && r->listed == vertex - 1;
    if (lists->shared) lists->first_source = r->lists[r->listed].first_source;
    if (!lists->shared) {
        r->lists_at = (vertex_at){0};
        r->lists_nodes = nodes;
        read_nodes(r, vertex, n, nodes, &r->lists_at);
    } else if (r->vertices[vertex].first_source == r->out->n_sources) {
        read_nodes(r, vertex, 1, nodes, at);
    }
    r->listed = vertex;
    r->out->shares |= lists->shared;
    at->depth = vpps_max_u32(at->depth, r->lists_at.depth);
    at->level = vpps_max_u32(at->level, r->lists_at.level);
}

static vpps_status read_vertex(reader *r, uint32_t vertex) {
    const vpps_graph *g = r->out->g;
    const vpps_record *record = &g->records[vertex];
    const vpps_op_node *op = record->cell == VPPS_NODE_RECORD ? &g->record_nodes[record->at] : NULL;
    vertex_at at = {0};
    uint32_t t;
    VPPS_TRY(type_of_record(r, record, op, &t));
    const vpps_compiled_cell *c = r->types[t].base;
    const vpps_cell_data *cell = r->types[t].type->cell;
    /* number of nodes in each list input; an op with any number of arguments has one list input, of all arguments */
    const uint32_t *members = op ? &op->n_args : g->words + record->at;
    const uint32_t n_own = c->inputs_of[0];
    const vpps_node *own = op ? g->words + op->args : vpps_own_nodes(cell, members);
    const vpps_node *listed = op ? own + n_own : vpps_listed_nodes(g, cell, members);
    uint64_t n_listed = 0;
    for (uint32_t d = 1; d <= c->n_lists; d++) n_listed += (uint64_t)c->inputs_of[d] * members[d - 1];
    r->vertices[vertex] = (vpps_read_vertex){.type = t,
                                             .first_source = (uint32_t)r->out->n_sources,
                                             .first_output = record->first,
                                             .words = op ? op->imm : (uint32_t)(own + n_own - g->words)};
    r->out->n_reads += n_own + n_listed;
    if (r->out->n_sources + n_own + (!op && listed == r->lists_nodes ? 1 : n_listed) > g->n_words)
        return vpps_fail(VPPS_STATE, "schedule: vertices read more values than the graph has words");
    if (c->n_lists || c->dropout_elems[0]) {
        vpps_vertex_lists *lists = &r->lists[vertex];
        lists->dropout = (uint32_t)r->dropout;
        lists->first_source = (uint32_t)r->out->n_sources + n_own;
        r->dropout += c->dropout_elems[0];
        for (uint32_t d = 1; d <= c->n_lists; d++) {
            lists->members[d - 1] = members[d - 1];
            r->dropout += c->dropout_elems[d] * members[d - 1];
        }
    }
    read_nodes(r, vertex, op ? (uint32_t)(n_own + n_listed) : n_own, own, &at);
    if (c->n_lists && !op) read_lists(r, vertex, (uint32_t)n_listed, listed, &at);
    r->vertices[vertex].depth = at.depth;
    r->levels[vertex] = at.level;
    return VPPS_OK;
}

/* Reads all vertices. `sources` has room for n_words reads: the graph has a 32-bit word for each node that is read. */
static vpps_status read_vertices(reader *r) {
    vpps_reading *out = r->out;
    const size_t n = out->n_vertices + (size_t)1, n_cells = out->g->model->n_cells;
    r->types_capacity = FIRST_TYPES;
    if (!VPPS_TAKE(r->arena, r->types, FIRST_TYPES) || !VPPS_TAKE(r->arena, r->type_of_cell, n_cells) ||
        !VPPS_TAKE(r->arena, r->vertices, n) || !VPPS_TAKE_ZEROS(r->arena, r->lists, n) ||
        !VPPS_TAKE(r->arena, r->levels, n) || !VPPS_TAKE(r->arena, r->sources, out->g->n_words) ||
        !VPPS_TAKE(r->arena, r->source_outputs, out->g->n_words))
        return vpps_no_memory();
    memset(r->type_of_cell, 0xff, n_cells * sizeof *r->type_of_cell);
    for (uint32_t v = 0; v < out->n_vertices; v++) VPPS_TRY(read_vertex(r, v));
    if (r->dropout > UINT32_MAX) return vpps_fail(VPPS_ARGUMENT, "graph: more than 2^32 elements under dropout");
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the loss */

/* Returns whether a vertex (record) is a weighted sum of its arguments. Sets *first to the weight of the first argument, and
 * *others to the one weight that all other arguments have. */
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
    case VPPS_OP_SCALE: *first = vpps_bits_float(node->imm); return true;
    default: return false;
    }
}

/* Returns how many of the graph's vertices the batch computes. In training the last vertices, which only add up the
 * loss, are left out (read_loss turns their terms into terms of the loss) unless the caller asks for them. */
static uint32_t count_records(const vpps_reading *out) {
    uint32_t n = (uint32_t)out->g->n_records;
    float first, others;
    while (out->training && n && is_linear(out->g, n - 1, &first, &others)) n--;
    for (uint32_t i = 0; i < out->n_requested; i++) n = vpps_max_u32(n, out->requested[i].vertex + 1);
    for (uint32_t i = 0; i < out->n_asked; i++) n = vpps_max_u32(n, out->asked[i].vertex + 1);
    return n;
}

/* Marks in `whole` the vertices whose gradients are requested. Such a vertex stays one term of the loss even if it is a sum of terms. */
static bool note_whole(reader *r) {
    if (!r->out->n_asked) return true;
    if (!VPPS_TAKE_ZEROS(r->arena, r->whole, r->out->n_vertices)) return false;
    for (uint32_t i = 0; i < r->out->n_asked; i++) r->whole[r->out->asked[i].vertex] = true;
    return true;
}

/* Adds a term to the loss. A sum is put on the stack, so that its terms replace it; another node becomes a seed, from which backward starts. */
static vpps_status add_term(reader *r, vpps_node x, float factor, size_t *depth) {
    const vpps_graph *g = r->out->g;
    float first, others;
    const uint32_t record = g->node_record[x];
    const bool whole = r->whole && record < r->out->n_vertices && r->whole[record];
    if (is_linear(g, record, &first, &others) && !whole) {
        if (!VPPS_TAKE_MORE(r->arena, r->sums, r->sums_capacity, *depth + 1)) return vpps_no_memory();
        r->sums[(*depth)++] = (loss_sum){record, 0, factor * first, factor * others};
        return VPPS_OK;
    }
    if (!VPPS_TAKE_MORE(r->arena, r->seeds, r->seeds_capacity, r->out->n_seeds + 1u)) return vpps_no_memory();
    r->seeds[r->out->n_seeds++] = (vpps_seed){output_of(g, x), factor};
    return VPPS_OK;
}

/* Expresses the loss as a sum of vertices' outputs times constants, the seeds. The sum over a minibatch is then no vertex, so each
 * example's graph stays a connected component of its own, and no vertex waits for all examples. */
static vpps_status read_loss(reader *r) {
    const vpps_graph *g = r->out->g;
    size_t depth = 0;
    if (!note_whole(r)) return vpps_no_memory();
    VPPS_TRY(add_term(r, r->request->loss, 1, &depth));
    while (depth) {
        loss_sum *sum = &r->sums[depth - 1];
        const vpps_op_node *node = &g->record_nodes[g->records[sum->record].at];
        const uint32_t i = sum->next++;
        if (i < node->n_args)
            VPPS_TRY(add_term(r, g->words[node->args + i], i ? sum->others : sum->first, &depth));
        else
            depth--;
    }
    return VPPS_OK;
}

/* For a training step in two halves: makes seeds, where backward starts, of the outputs whose gradients the host gives. */
static vpps_status read_given(reader *r) {
    vpps_reading *out = r->out;
    const uint32_t n = r->request->n_given;
    if (!VPPS_TAKE_MORE(r->arena, r->seeds, r->seeds_capacity, n + 1u) || !r->seeds) return vpps_no_memory();
    for (; out->n_seeds < n; out->n_seeds++) r->seeds[out->n_seeds] = (vpps_seed){.to = out->requested[out->n_seeds]};
    return VPPS_OK;
}

static vpps_status check_loss(const vpps_graph *g, vpps_node x) {
    if (x >= g->n_nodes)
        return vpps_fail(VPPS_ARGUMENT, "fb: the loss, %u, is not a node; the graph has %u", x, g->n_nodes);
    const vpps_record *record = &g->records[g->node_record[x]];
    const vpps_signature *s = vpps_plain_signature(g, x);
    const bool op = record->cell == VPPS_NODE_RECORD, source = vpps_ops[s->op].op_class == VPPS_CLASS_SOURCE;
    const char *name = op ? vpps_ops[s->op].name : vpps_cell_of(g, record->cell)->name;
    if (s->rows != 1 || s->cols != 1)
        return vpps_fail(VPPS_SHAPE, "fb: the loss is %s, %u x %u; expected a scalar", name, s->rows, s->cols);
    return source ? vpps_fail(VPPS_ARGUMENT, "fb: the loss is %s; expected the result of an operation", name) : VPPS_OK;
}

/* ---------------------------------------------------------------- the nodes of the request */

static vpps_status add_requested(const reader *r, uint32_t n, const vpps_node *nodes, vpps_output_ref *to) {
    const vpps_graph *g = r->out->g;
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i] >= g->n_nodes)
            return vpps_fail(VPPS_ARGUMENT, "%s: %u is not a node; the graph has %u",
                             r->out->training ? "backward" : "forward", nodes[i], g->n_nodes);
        to[i] = output_of(g, nodes[i]);
    }
    return VPPS_OK;
}

static vpps_status read_request(reader *r) {
    const vpps_batch_request *request = r->request;
    vpps_reading *out = r->out;
    vpps_output_ref *named;
    if (!VPPS_TAKE(r->arena, named, request->n_outputs + (size_t)request->n_gradient_nodes)) return vpps_no_memory();
    VPPS_TRY(add_requested(r, request->n_outputs, request->outputs, named));
    VPPS_TRY(add_requested(r, request->n_gradient_nodes, request->gradient_nodes, named + request->n_outputs));
    out->requested = named;
    out->n_requested = request->n_outputs;
    out->asked = named + request->n_outputs;
    out->n_asked = request->n_gradient_nodes;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the whole graph */

static vpps_status read_all(reader *r) {
    vpps_reading *out = r->out;
    const vpps_graph *g = out->g;
    VPPS_TRY(read_request(r));
    out->n_vertices = count_records(out);
    out->n_outputs = out->n_vertices < g->n_records ? g->records[out->n_vertices].first : g->n_nodes;
    VPPS_TRY(read_vertices(r));
    if (out->halves) return read_given(r);
    if (!out->training) return VPPS_OK;
    VPPS_TRY(check_loss(g, r->request->loss));
    return read_loss(r);
}

vpps_status vpps_read_graph(vpps_graph *g, vpps_history *history, const vpps_batch_request *request, vpps_arena *arena,
                            vpps_reading *out) {
    *out = (vpps_reading){.g = g,
                          .training = vpps_request_trains(request),
                          .halves = request->halves,
                          .fixed = request->goal == VPPS_GOAL_NODES,
                          .drops = vpps_request_trains(request) && !request->no_dropout};
    reader r = {.arena = arena, .history = history, .request = request, .out = out};
    VPPS_TRY(read_all(&r));
    out->vertices = r.vertices;
    out->lists = r.lists;
    out->levels = r.levels;
    out->sources = r.sources;
    out->source_outputs = r.source_outputs;
    out->seeds = r.seeds;
    out->types = r.types;
    return VPPS_OK;
}
