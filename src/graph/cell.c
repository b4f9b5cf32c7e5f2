/* cell.c - vertex functions: records a subgraph once for a model, and applies it at vertices of its graphs (Xu et al. 2018, section 3). */
#include "graph/graph.h"

#include <inttypes.h>

static vpps_status need_recording(const vpps_graph *g, const char *what) {
    if (g->recording) return VPPS_OK;
    return vpps_fail(VPPS_STATE, "%s: no cell is being recorded; call vpps_cell_begin first", what);
}

vpps_status vpps_cell_begin(vpps_model *model, const char *name, vpps_graph **recorder) {
    VPPS_NEED(recorder);
    *recorder = NULL;
    VPPS_NEED(model, name);
    VPPS_TRY(vpps_check_name("cell_begin", name));
    vpps_graph *g;
    VPPS_TRY(vpps_graph_create(&g, model));
    g->recording = calloc(1, sizeof *g->recording);
    if (g->recording) g->recording->name = strdup(name);
    if (!g->recording || !g->recording->name) {
        vpps_graph_destroy(g);
        return vpps_fail(VPPS_MEMORY, "cell %s: out of memory", name);
    }
    *recorder = g;
    return VPPS_OK;
}

/* Returns the cell that graph g records; NULL: g records no cell, and has failed. */
static vpps_cell_data *recording_of(vpps_graph *g, const char *what) {
    if (g->status != VPPS_OK) return NULL;
    if (need_recording(g, what) != VPPS_OK) vpps_graph_fail(g, VPPS_STATE, "%s", vpps_error_message());
    return g->recording;
}

static vpps_node add_input(vpps_graph *g, const char *what, vpps_cell_input input) {
    vpps_cell_data *c = recording_of(g, what);
    if (!c) return VPPS_NO_NODE;
    if (!input.rows || !input.cols)
        return vpps_graph_fail(g, VPPS_SHAPE, "%s: %u x %u in cell %s", what, input.rows, input.cols, c->name);
    /* an earlier input that reads the same output of the same child is used again */
    for (uint32_t i = 0; i < c->n_inputs && !input.pulled; i++) {
        const vpps_cell_input *known = &c->inputs[i];
        if (known->pulled || known->axis != input.axis || known->child != input.child || known->output != input.output)
            continue;
        if (known->rows == input.rows && known->cols == input.cols) return VPPS_CELL_INPUT | i;
        return vpps_graph_fail(g, VPPS_SHAPE, "%s: %u x %u in cell %s, where the same was %u x %u", what, input.rows,
                               input.cols, c->name, known->rows, known->cols);
    }
    if (!VPPS_RESERVE(c->inputs, c->n_inputs + 1u))
        return vpps_graph_fail(g, VPPS_MEMORY, "cell %s: out of memory", c->name);
    c->inputs[c->n_inputs] = input;
    return VPPS_CELL_INPUT | c->n_inputs++;
}

vpps_node vpps_gather(vpps_graph *g, uint32_t child, uint32_t output, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (child >= VPPS_MANY) return vpps_graph_fail(g, VPPS_ARGUMENT, "gather: child %u", child);
    vpps_node x = add_input(g, "gather", (vpps_cell_input){rows, cols, child, output, false, 0});
    if (x != VPPS_NO_NODE) g->recording->min_children = vpps_max_u32(g->recording->min_children, child + 1);
    return x;
}

_Static_assert(VPPS_CELL_LISTS == 4 && VPPS_AXES == 5, "vpps.h says how many lists a cell may have");

/* Adds to the cell being recorded an input that reads list number `list`: any number of nodes per vertex. The list has
 * inputs already, or is the next new one. Numbers of children in lists are set when recording ends (keep_cell). */
static vpps_node add_list_input(vpps_graph *g, const char *what, uint32_t list, vpps_cell_input input) {
    vpps_cell_data *c = recording_of(g, what);
    if (!c) return VPPS_NO_NODE;
    if (list >= VPPS_CELL_LISTS || list > c->n_lists)
        return vpps_graph_fail(g, VPPS_ARGUMENT,
                               "%s: list %u in cell %s, which has %u so far; expected at most list %u", what, list,
                               c->name, c->n_lists, vpps_min_u32(c->n_lists, VPPS_CELL_LISTS - 1));
    input.axis = (uint8_t)(list + 1);
    const vpps_node x = add_input(g, what, input);
    if (x == VPPS_NO_NODE) return x;
    c->n_lists = vpps_max_u32(c->n_lists, list + 1);
    if (!input.pulled) c->gathered[list + 1] = true;
    if (input.pulled) c->n_pull_lists++;
    return x;
}

vpps_node vpps_gather_list_of(vpps_graph *g, uint32_t list, uint32_t output, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return add_list_input(g, "gather_list", list, (vpps_cell_input){.rows = rows, .cols = cols, .output = output});
}

vpps_node vpps_gather_list_from(vpps_graph *g, uint32_t first, uint32_t output, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    if (first >= VPPS_MANY) return vpps_graph_fail(g, VPPS_ARGUMENT, "gather_list: child %u", first);
    const vpps_cell_data *c = g->recording;
    if (c && c->list_first_given && c->list_first != first)
        return vpps_graph_fail(g, VPPS_ARGUMENT,
                               "gather_list: from child %u on in cell %s, which gathers lists from child %u on; "
                               "expected one first child",
                               first, c->name, c->list_first);
    const vpps_node x = vpps_gather_list_of(g, 0, output, rows, cols);
    if (x == VPPS_NO_NODE) return x;
    g->recording->list_first_given = true;
    g->recording->list_first = first;
    return x;
}

vpps_node vpps_gather_list(vpps_graph *g, uint32_t output, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_gather_list_from(g, 0, output, rows, cols);
}

vpps_node vpps_pull(vpps_graph *g, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    uint32_t number = g->recording ? g->recording->n_pulls : 0;
    vpps_node x = add_input(g, "pull", (vpps_cell_input){rows, cols, number, 0, true, 0});
    if (x != VPPS_NO_NODE) g->recording->n_pulls++;
    return x;
}

vpps_node vpps_pull_list_of(vpps_graph *g, uint32_t list, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    const uint32_t number = g->recording ? g->recording->n_pull_lists : 0;
    return add_list_input(g, "pull_list", list,
                          (vpps_cell_input){.rows = rows, .cols = cols, .child = number, .pulled = true});
}

vpps_node vpps_pull_list(vpps_graph *g, uint32_t rows, uint32_t cols) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vpps_pull_list_of(g, 0, rows, cols);
}

uint32_t vpps_pull_index(vpps_graph *g) {
    VPPS_NEED_OR(UINT32_MAX, g);
    vpps_cell_data *c = recording_of(g, "pull_index");
    if (!c) return VPPS_NO_NODE;
    if (c->n_indices == VPPS_MAX_PULLED_INDICES)
        return vpps_graph_fail(g, VPPS_ARGUMENT, "pull_index: cell %s pulls %u indices already; expected no more",
                               c->name, c->n_indices);
    return VPPS_PULLED_INDEX | c->n_indices++;
}

bool vpps_is_pulled_index(const vpps_graph *g, uint32_t value, uint32_t *number) {
    if ((value & VPPS_PULLED_INDEX) != VPPS_PULLED_INDEX) return false;
    uint32_t n = value & ~VPPS_PULLED_INDEX;
    if (n >= g->recording->n_indices) return false;
    *number = n;
    return true;
}

static vpps_status add_output(vpps_graph *g, const char *what, vpps_node x, uint32_t **outputs, uint32_t *n) {
    vpps_signature s;
    uint32_t axis;
    if (!vpps_node_signature(g, what, x, &s, &axis)) return vpps_graph_status(g);
    if (axis)
        return VPPS_GRAPH_STATUS(g, VPPS_SHAPE,
                                 "%s: a list in cell %s; expected one value (sum, average, max_of or min_of it)", what,
                                 g->recording->name);
    if (!VPPS_RESERVE(*outputs, *n + 1u))
        return VPPS_GRAPH_STATUS(g, VPPS_MEMORY, "cell %s: out of memory", g->recording->name);
    (*outputs)[(*n)++] = x;
    return VPPS_OK;
}

vpps_status vpps_add_scattered(vpps_graph *g, vpps_node x) {
    vpps_cell_data *c = g->recording;
    return add_output(g, "scatter", x, &c->scattered, &c->n_scattered);
}

static vpps_status need_no_condition(vpps_graph *g, const char *what) {
    if (!g->recording->condition.there) return VPPS_OK;
    return VPPS_GRAPH_STATUS(g, VPPS_STATE, "%s: cell %s has a condition; expected vpps_scatter_else", what,
                             g->recording->name);
}

vpps_status vpps_scatter(vpps_graph *g, vpps_node x) {
    VPPS_NEED(g);
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(need_recording(g, "scatter"));
    VPPS_TRY(need_no_condition(g, "scatter"));
    return vpps_add_scattered(g, x);
}

vpps_status vpps_push(vpps_graph *g, vpps_node x) {
    VPPS_NEED(g);
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(need_recording(g, "push"));
    VPPS_TRY(need_no_condition(g, "push"));
    vpps_cell_data *c = g->recording;
    return add_output(g, "push", x, &c->pushed, &c->n_pushed);
}

/* Returns the number that a caller's index at node t must be less than: a table's number of entries, or a loss's number of classes. */
static uint32_t index_limit(const vpps_model *model, const vpps_cell_data *c, uint32_t t) {
    const vpps_signature *s = &c->signatures[c->nodes[t].signature];
    if (s->op == VPPS_OP_LOOKUP) return model->params[s->param].count;
    const vpps_node x = c->args[c->nodes[t].args];
    return x & VPPS_CELL_INPUT ? c->inputs[x & ~VPPS_CELL_INPUT].rows : c->signatures[c->nodes[x].signature].rows;
}

/* Describes node or input t as an output of the cell. A node that is not in c->outputs yet is added there. */
static vpps_cell_offer offer_of(vpps_cell_data *c, uint32_t t) {
    if (t & VPPS_CELL_INPUT) {
        const vpps_cell_input *in = &c->inputs[t & ~VPPS_CELL_INPUT];
        return (vpps_cell_offer){t, in->rows, in->cols};
    }
    const vpps_signature *s = &c->signatures[c->nodes[t].signature];
    uint32_t k = 0;
    while (k < c->n_outputs && c->outputs[k] != t) k++;
    if (k == c->n_outputs) c->outputs[c->n_outputs++] = t;
    return (vpps_cell_offer){k, s->rows, s->cols};
}

static uint8_t op_of(const vpps_cell_data *c, uint32_t t) { return c->signatures[c->nodes[t].signature].op; }

/* Returns how many integers a vertex has: indices that the caller gives for other ops than lookups; one for dropout. */
static uint32_t count_numbers(const vpps_cell_data *c) {
    uint32_t n = 0;
    bool dropout = false;
    for (uint32_t t = 0; t < c->n_nodes; t++) dropout |= op_of(c, t) == VPPS_OP_DROPOUT;
    for (uint32_t i = 0; i < c->n_indices; i++) {
        bool used = false;
        for (uint32_t t = 0; t < c->n_nodes && !used; t++)
            used = c->imm_pulled[t] && c->nodes[t].imm == i && op_of(c, t) != VPPS_OP_LOOKUP;
        n += used;
    }
    return n + dropout;
}

static vpps_status check_limits(const vpps_cell_data *c) {
    uint32_t lookups = 0;
    for (uint32_t t = 0; t < c->n_nodes; t++) lookups += op_of(c, t) == VPPS_OP_LOOKUP;
    const struct {
        const char *what;
        uint32_t n;
    } counts[] = {{"inputs, gathered and pulled", c->n_inputs},
                  {"outputs, scattered and pushed", c->n_outputs},
                  {"lookups", lookups},
                  {"indices of classes and rows, and dropout", count_numbers(c)}};
    for (size_t i = 0; i < VPPS_COUNT(counts); i++)
        if (counts[i].n > VPPS_CELL_MOST)
            return vpps_fail(VPPS_ARGUMENT, "cell_end: cell %s has %u %s; expected at most %d", c->name, counts[i].n,
                             counts[i].what, VPPS_CELL_MOST);
    return VPPS_OK;
}

/* Adds the recorded cell to the model, and moves the recorder's signatures (ops and shapes of nodes) to the cell. */
static vpps_status keep_cell(vpps_graph *recorder, vpps_cell *out) {
    vpps_model *model = recorder->model;
    vpps_cell_data *c = recorder->recording;
    c->index_limits = malloc((c->n_indices + 1u) * sizeof *c->index_limits);
    c->outputs = calloc(c->n_scattered + c->n_pushed + 1u, sizeof *c->outputs);
    c->offers = malloc((c->n_scattered + c->n_pushed + 1u) * sizeof *c->offers);
    if (!c->index_limits || !c->outputs || !c->offers || !VPPS_RESERVE(model->cells, model->n_cells + 1))
        return vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
    c->signatures = recorder->signatures;
    c->matrices = recorder->matrices;
    c->n_signatures = recorder->n_signatures;
    recorder->signatures = NULL;
    recorder->matrices = NULL;
    recorder->recording = NULL;
    if (!c->list_first_given) c->list_first = c->min_children;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        c->n_own += !c->inputs[i].axis;
        if (c->inputs[i].axis && !c->inputs[i].pulled) c->inputs[i].child = c->list_first;
    }
    for (uint32_t k = 0; k < c->n_scattered; k++) c->offers[k] = offer_of(c, c->scattered[k]);
    for (uint32_t k = 0; k < c->n_pushed; k++) c->offers[c->n_scattered + k] = offer_of(c, c->pushed[k]);
    memset(c->index_limits, 0xff, c->n_indices * sizeof *c->index_limits);
    for (uint32_t t = 0; t < c->n_nodes; t++) {
        if (!c->imm_pulled[t]) continue;
        uint32_t *limit = &c->index_limits[c->nodes[t].imm];
        *limit = vpps_min_u32(*limit, index_limit(model, c, t));
    }
    const vpps_status status = check_limits(c);
    if (status != VPPS_OK) {
        vpps_free_cell(c);
        return status;
    }
    *out = (vpps_cell)model->n_cells;
    model->cells[model->n_cells++] = c;
    return VPPS_OK;
}

vpps_status vpps_cell_end(vpps_graph *recorder, vpps_cell *out) {
    VPPS_NEED(out);
    *out = UINT32_MAX;
    VPPS_NEED(recorder);
    VPPS_TRY(need_recording(recorder, "cell_end"));
    vpps_status status = vpps_graph_status(recorder);
    if (status == VPPS_OK) status = keep_cell(recorder, out);
    vpps_graph_destroy(recorder);
    return status;
}

void vpps_free_cells(vpps_model *model) {
    for (size_t i = 0; i < model->n_cells; i++) vpps_free_cell(model->cells[i]);
    VPPS_FREE_ARRAYS(model->cells);
}

/* ---------------------------------------------------------------- vertices */

static vpps_node input_node(const vpps_cell_data *c, const uint32_t *record, uint32_t input) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < input; i++) at += !c->inputs[i].axis;
    return vpps_own_nodes(c, record)[at];
}

/* Returns output k of vertex v as its cell describes it: the output's node and shape. k counts the outputs for nodes
 * outside cells (`pushed`), or those for parent vertices. NULL: v has no cell, or the cell no such output. */
static inline const vpps_cell_offer *find_offer(const vpps_graph *g, vpps_vertex v, uint32_t k, bool pushed) {
    if (v >= g->n_vertices || g->vertices[v].cell == VPPS_SOURCE_VERTEX) return NULL;
    const vpps_cell_data *c = vpps_cell_of(g, g->vertices[v].cell);
    if (k >= (pushed ? c->n_pushed : c->n_scattered)) return NULL;
    return &c->offers[pushed ? c->n_scattered + k : k];
}

static inline vpps_node offered_node(const vpps_graph *g, vpps_vertex v, const vpps_cell_offer *offer) {
    const vpps_vertex_data *d = &g->vertices[v];
    if (!(offer->output & VPPS_CELL_INPUT)) return d->first + offer->output;
    return input_node(vpps_cell_of(g, d->cell), g->words + d->at, offer->output & ~VPPS_CELL_INPUT);
}

/* Returns output k, a node, of v if vpps_source made v from existing nodes; else fails. Not inlined, so that callers need no frame. */
static __attribute__((noinline)) vpps_node find_output(vpps_graph *g, const char *what, vpps_vertex v, uint32_t k,
                                                       bool pushed) {
    if (v >= g->n_vertices)
        return vpps_graph_fail(g, VPPS_ARGUMENT, "%s: %u is not a vertex; the graph has %zu", what, v, g->n_vertices);
    const vpps_vertex_data *d = &g->vertices[v];
    const bool source = d->cell == VPPS_SOURCE_VERTEX;
    const vpps_cell_data *c = source ? NULL : vpps_cell_of(g, d->cell);
    const uint32_t n = source ? (pushed ? 0 : g->words[d->at]) : pushed ? c->n_pushed : c->n_scattered;
    if (source && k < n) return g->words[d->at + 1 + k];
    return vpps_graph_fail(g, VPPS_ARGUMENT, "%s: output %u of vertex %u (%s), which has %u", what, k, v,
                           source ? "source" : c->name, n);
}

static inline vpps_node vertex_output(vpps_graph *g, const char *what, vpps_vertex v, uint32_t k, bool pushed) {
    if (g->status != VPPS_OK) return VPPS_NO_NODE;
    const vpps_cell_offer *offer = find_offer(g, v, k, pushed);
    return offer ? offered_node(g, v, offer) : find_output(g, what, v, k, pushed);
}

vpps_node vpps_pushed(vpps_graph *g, vpps_vertex v, uint32_t k) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vertex_output(g, "pushed", v, k, true);
}
vpps_node vpps_scattered(vpps_graph *g, vpps_vertex v, uint32_t k) {
    VPPS_NEED_OR(VPPS_NO_NODE, g);
    return vertex_output(g, "scattered", v, k, false);
}

static inline vpps_vertex add_vertex(vpps_graph *g, vpps_vertex_data v) {
    if (!vpps_graph_holds(g, g->n_vertices + (uint64_t)1, "vertices")) return VPPS_NO_VERTEX;
    if (!VPPS_RESERVE(g->vertices, g->n_vertices + 1)) {
        return vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
    }
    g->vertices[g->n_vertices] = v;
    return (vpps_vertex)g->n_vertices++;
}

vpps_vertex vpps_source(vpps_graph *g, uint32_t n, const vpps_node *nodes) {
    VPPS_NEED_OR(VPPS_NO_VERTEX, g);
    if (n && !nodes) return vpps_graph_fail(g, VPPS_ARGUMENT, "source: nodes is NULL");
    if (g->status != VPPS_OK) return VPPS_NO_VERTEX;
    if (g->recording) return vpps_graph_fail(g, VPPS_STATE, "source: a cell is being recorded");
    if (!vpps_graph_holds(g, g->n_words + (uint64_t)n + 1, "words")) return VPPS_NO_VERTEX;
    if (!VPPS_RESERVE(g->words, g->n_words + n + 1)) { return vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory"); }
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i] >= g->n_nodes)
            return vpps_graph_fail(g, VPPS_ARGUMENT, "source: %u is not a node; the graph has %u", nodes[i],
                                   g->n_nodes);
    }
    uint32_t at = (uint32_t)g->n_words;
    g->words[g->n_words++] = n;
    for (uint32_t i = 0; i < n; i++) g->words[g->n_words++] = nodes[i];
    return add_vertex(g, (vpps_vertex_data){VPPS_SOURCE_VERTEX, at, g->n_nodes});
}

static __attribute__((noinline)) bool fail_input(vpps_graph *g, const vpps_cell_data *c, const vpps_cell_input *in,
                                                 uint32_t rows, uint32_t cols, uint32_t number) {
    return VPPS_GRAPH_REFUSE(g, VPPS_SHAPE, "apply %s: %s %u gives %u x %u; expected %u x %u", c->name,
                             in->pulled ? "pulled node" : "child", number, rows, cols, in->rows, in->cols);
}

static inline bool check_input(vpps_graph *g, const vpps_cell_data *c, const vpps_cell_input *in, uint32_t rows,
                               uint32_t cols, uint32_t number) {
    return (rows == in->rows && cols == in->cols) || fail_input(g, c, in, rows, cols, number);
}

/* Sets *to to node x, which an input of the cell reads, and checks that x has the shape that was recorded for the input. */
static bool take_node(vpps_graph *g, const vpps_cell_data *c, const vpps_cell_input *in, vpps_node x, uint32_t number,
                      uint32_t *to) {
    vpps_signature found;
    *to = x;
    if (g->status != VPPS_OK) return false;
    const vpps_signature *s = vpps_plain_signature(g, x);
    if (s) return check_input(g, c, in, s->rows, s->cols, number);
    return vpps_node_signature(g, "apply", x, &found, NULL) && check_input(g, c, in, found.rows, found.cols, number);
}

static inline bool take_child(vpps_graph *g, const vpps_cell_data *c, const vpps_cell_input *in, vpps_vertex child,
                              uint32_t number, uint32_t *to) {
    const vpps_cell_offer *offer = find_offer(g, child, in->output, false);
    if (!offer) return take_node(g, c, in, find_output(g, "apply", child, in->output, false), number, to);
    *to = offered_node(g, child, offer);
    return check_input(g, c, in, offer->rows, offer->cols, number);
}

/* Writes the nodes that an input reads from the child vertices of a list. Not inlined, so that cells without list inputs need no stack frame. */
static __attribute__((noinline)) bool take_children(vpps_graph *g, const vpps_cell_data *c, const vpps_cell_input *in,
                                                    const vpps_vertex *children, uint32_t first, uint32_t n,
                                                    uint32_t *to) {
    const vpps_vertex_data *vertices = g->vertices;
    const size_t n_vertices = g->n_vertices;
    for (uint32_t k = first, end = first + n; k < end;) {
        if (!take_child(g, c, in, children[k], k, to++)) return false;
        const vpps_cell_offer *offer = find_offer(g, children[k], in->output, false);
        const uint32_t cell = vertices[children[k++]].cell;
        if (!offer || (offer->output & VPPS_CELL_INPUT)) continue;
        const uint32_t output = offer->output;
        for (; k < end && children[k] < n_vertices && vertices[children[k]].cell == cell;
             k++) /* an output has one shape at all vertices of a cell: one check suffices */
            *to++ = vertices[children[k]].first + output;
    }
    return true;
}

/* Finds the nodes of a vertex's single inputs (inputs that read one node, not a list), and writes them to the array `to`. Returns the end
 * of the written nodes. NULL: the graph has failed. */
static uint32_t *take_inputs(vpps_graph *g, const vpps_cell_data *c, const vpps_application *a, uint32_t *to) {
    for (const vpps_cell_input *in = c->inputs, *end = in + c->n_inputs; in < end; in++) {
        if (in->axis) continue;
        const bool ok = in->pulled ? take_node(g, c, in, a->pulls[in->child], in->child, to)
                                   : take_child(g, c, in, a->children[in->child], in->child, to);
        if (!ok) return NULL;
        to++;
    }
    return to;
}

/* Returns how many children of an application (vertex being made) its list inputs (of any number of nodes) read. */
static inline uint32_t list_children(const vpps_cell_data *c, const vpps_application *a) {
    return a->n_children - vpps_min_u32(a->n_children, c->list_first);
}

/* Returns whether an application (vertex being made) reads the same lists of nodes as the latest vertex with list inputs. */
static bool repeats_lists(const vpps_graph *g, const vpps_cell_data *c, const uint32_t *members,
                          const vpps_application *a) {
    const uint32_t n = list_children(c, a);
    if (g->latest_listed >= g->n_vertices || g->vertices[g->latest_listed].cell != a->cell) return false;
    const uint32_t *record = g->words + g->vertices[g->latest_listed].at;
    const vpps_node *nodes = vpps_listed_nodes(g, c, record);
    if (memcmp(members, record, c->n_lists * sizeof *members) != 0) return false;
    if (n && memcmp(nodes - n, a->children + c->list_first, n * sizeof *nodes) != 0) return false;
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        const vpps_cell_input *in = &c->inputs[i];
        if (!in->axis) continue;
        const uint32_t count = vpps_members(record, in->axis);
        if (in->pulled && count && memcmp(nodes, a->pull_lists[in->child], count * sizeof *nodes) != 0) return false;
        nodes += count;
    }
    return true;
}

/* Writes to `to` what the list inputs (of many nodes) of a new vertex read: the lists' child vertices, then each input's nodes
 * (members[l] for list l). Writes nothing if the latest vertex with lists reads the same. Sets *position to the nodes' index in g->words.
 * Returns the end of what was written. NULL: the graph has failed. */
static __attribute__((noinline)) uint32_t *take_lists(vpps_graph *g, const vpps_cell_data *c, const uint32_t *members,
                                                      const vpps_application *a, uint32_t *position, uint32_t *to) {
    uint32_t first[VPPS_AXES] = {0}; /* [d]: where list input d - 1 begins among all list inputs' children */
    const uint32_t n_children = list_children(c, a);
    const bool repeats = repeats_lists(g, c, members, a);
    if (!repeats && n_children) memcpy(to, a->children + c->list_first, n_children * sizeof *to);
    if (!repeats) to += n_children;
    *position = repeats ? g->words[g->vertices[g->latest_listed].at + c->n_lists] : (uint32_t)(to - g->words);
    for (uint32_t d = 1; d < c->n_lists; d++) first[d + 1] = first[d] + (c->gathered[d] ? vpps_members(members, d) : 0);
    for (uint32_t i = 0; i < c->n_inputs && !repeats; i++) {
        const vpps_cell_input *in = &c->inputs[i];
        if (!in->axis) continue;
        const uint32_t n = vpps_members(members, in->axis);
        if (!in->pulled && !take_children(g, c, in, a->children, in->child + first[in->axis], n, to)) return NULL;
        for (uint32_t k = 0; k < n && in->pulled; k++)
            if (!take_node(g, c, in, a->pull_lists[in->child][k], k, &to[k])) return NULL;
        to += n;
    }
    g->latest_listed = (vpps_vertex)g->n_vertices;
    return to;
}

/* Finds, for each list input of an application (vertex being made), the number of nodes that it reads. False: the graph has failed. */
static bool count_members(vpps_graph *g, const vpps_cell_data *c, const vpps_application *a, uint32_t *members) {
    if (a->n_lists ? a->n_lists != c->n_lists : c->n_lists > 1)
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "apply %s: members of %u lists; expected %u", c->name, a->n_lists,
                                 c->n_lists);
    if (a->n_lists) {
        memcpy(members, a->list_members, a->n_lists * sizeof *members);
        return true;
    }
    *members = c->gathered[1] ? a->n_children - vpps_min_u32(a->n_children, c->list_first) : a->n_members;
    if (c->n_pull_lists ? a->n_members == *members : !a->n_members) return true;
    return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "apply %s: %u pulled lists of %u nodes; expected %u of %u", c->name,
                             a->n_pull_lists, a->n_members, c->n_pull_lists, c->n_pull_lists ? *members : 0);
}

static bool check_members(vpps_graph *g, const vpps_cell_data *c, const uint32_t *members) {
    for (uint32_t d = 1; d <= c->n_lists; d++) {
        const uint32_t n = members[d - 1], least = c->min_members[d], most = c->most_members[d];
        if (n < least || (most && n > most))
            return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "apply %s: a list of %u members; expected at %s %u%s", c->name,
                                     n, n < least ? "least" : "most", n < least ? least : most,
                                     n < least ? "" : ", which concat_list has room for");
    }
    return true;
}

/* Checks that a new vertex gives as many children, pulled nodes and indices as its cell needs. Finds the lengths of its list inputs. */
static bool check_counts(vpps_graph *g, const vpps_cell_data *c, const vpps_application *a, uint32_t *members) {
    if (!count_members(g, c, a, members)) return false;
    /* whether the only list input (of any number of nodes) reads all remaining children, since the caller gave no length */
    const bool any = c->n_lists == 1 && c->gathered[1] && !a->n_lists;
    /* the number of children that the cell needs: those before the first list, then the members of the lists of children */
    uint64_t n = c->list_first;
    for (uint32_t d = 1; d <= c->n_lists; d++)
        if (c->gathered[d]) n += any ? c->min_members[d] : members[d - 1];
    if (n < c->min_children) n = c->min_children;
    if (a->n_children < n || (a->n_children > n && !any) || a->n_pulls != c->n_pulls || a->n_indices != c->n_indices)
        return VPPS_GRAPH_REFUSE(
            g, VPPS_ARGUMENT,
            "apply %s: given %u children, %u pulls, %u indices; expected %s%" PRIu64 " children, %u pulls, %u indices: "
            "one for each gather, pull and pull_index of the cell",
            c->name, a->n_children, a->n_pulls, a->n_indices, any ? "at least " : "", n, c->n_pulls, c->n_indices);
    if (a->n_pull_lists != c->n_pull_lists)
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "apply %s: %u pulled lists; expected %u", c->name, a->n_pull_lists,
                                 c->n_pull_lists);
    return check_members(g, c, members);
}

/* Returns whether a cell without list inputs (any length) gets the right numbers of children, nodes, indices; else check_counts decides. */
static inline bool has_counts(const vpps_cell_data *c, const vpps_application *a) {
    return !(c->n_lists | a->n_lists | a->n_members | a->n_pull_lists) && a->n_children == c->min_children &&
           a->n_pulls == c->n_pulls && a->n_indices == c->n_indices;
}

/* Checks that each caller's index is less than its limit: a lookup table's number of entries, or a loss's number of classes. */
static bool check_indices(vpps_graph *g, const vpps_cell_data *c, const uint32_t *indices) {
    bool ok = true;
    for (uint32_t i = 0; i < c->n_indices; i++) ok &= indices[i] < c->index_limits[i];
    for (uint32_t t = 0; t < c->n_nodes && !ok; t++) { /* finds the node with the wrong index, for the message */
        if (!c->imm_pulled[t]) continue;
        const uint32_t index = indices[c->nodes[t].imm], limit = index_limit(g->model, c, t);
        if (index < limit) continue;
        return VPPS_GRAPH_REFUSE(g, VPPS_ARGUMENT, "apply %s: index %u for %s; expected below %u", c->name, index,
                                 vpps_ops[c->signatures[c->nodes[t].signature].op].name, limit);
    }
    return true;
}

bool vpps_take_application(vpps_graph *g, const char *call, const vpps_application *given, vpps_application *own) {
    *own = (vpps_application){0};
    const vpps_status status =
        given ? vpps_take_struct(own, sizeof *own, VPPS_LEAST(vpps_application, indices), given, "vpps_application")
              : vpps_fail(VPPS_ARGUMENT, "a is NULL");
    if (status != VPPS_OK) vpps_graph_fail(g, status, "%s: %s", call, vpps_error_message());
    return status == VPPS_OK;
}

static bool has_arrays(vpps_graph *g, const vpps_cell_data *c, const vpps_application *a) {
    const char *missing = a->n_children && !a->children       ? "children"
                          : a->n_pulls && !a->pulls           ? "pulls"
                          : a->n_indices && !a->indices       ? "indices"
                          : a->n_lists && !a->list_members    ? "list_members"
                          : a->n_pull_lists && !a->pull_lists ? "pull_lists"
                                                              : NULL;
    for (uint32_t i = 0; !missing && i < c->n_inputs && a->n_pull_lists; i++) {
        const vpps_cell_input *in = &c->inputs[i];
        if (!in->pulled || !in->axis || a->pull_lists[in->child]) continue;
        if (a->n_lists ? a->list_members[in->axis - 1] : a->n_members) missing = "a pulled list";
    }
    if (missing) vpps_graph_fail(g, VPPS_ARGUMENT, "apply %s: %s is NULL", c->name, missing);
    return !missing;
}

vpps_vertex vpps_apply(vpps_graph *g, const vpps_application *a) {
    VPPS_NEED_OR(VPPS_NO_VERTEX, g);
    if (g->status != VPPS_OK) return VPPS_NO_VERTEX;
    vpps_application own;
    if (VPPS_UNLIKELY(!a || a->size != sizeof *a)) { /* a struct `a` of another version of the library is copied */
        if (!vpps_take_application(g, "apply", a, &own)) return VPPS_NO_VERTEX;
        a = &own;
    }
    if (g->recording) return vpps_graph_fail(g, VPPS_STATE, "apply: a cell is being recorded");
    if (a->cell >= g->model->n_cells)
        return vpps_graph_fail(g, VPPS_ARGUMENT, "apply: cell %u; the model has %zu", a->cell, g->model->n_cells);
    const vpps_cell_data *c = vpps_cell_of(g, a->cell);
    uint32_t members[VPPS_CELL_LISTS] = {0};
    if (!has_arrays(g, c, a)) return VPPS_NO_VERTEX;
    if (!has_counts(c, a) && !check_counts(g, c, a, members)) return VPPS_NO_VERTEX;
    if (!check_indices(g, c, a->indices)) return VPPS_NO_VERTEX;
    uint64_t n_words = (uint64_t)1 + c->n_own + a->n_indices;
    if (c->n_lists) n_words += c->n_lists + list_children(c, a) + vpps_list_nodes(c, members);
    uint64_t size = c->n_of_axis[0];
    for (uint32_t d = 1; d <= c->n_lists; d++) size += (uint64_t)c->n_of_axis[d] * members[d - 1];
    if (!vpps_graph_holds(g, g->n_words + n_words, "words")) return VPPS_NO_VERTEX;
    if (!VPPS_RESERVE(g->words, g->n_words + n_words) || !VPPS_RESERVE(g->records, g->n_records + 1) ||
        !VPPS_RESERVE(g->node_record, g->n_nodes + (size_t)c->n_outputs))
        return vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
    if (g->size + size >= VPPS_CELL_INPUT) return vpps_graph_fail(g, VPPS_ARGUMENT, "graph: more than 2^31 nodes");
    const uint32_t at = (uint32_t)g->n_words, n_records = (uint32_t)g->n_records;
    uint32_t *words = g->words + at;
    for (uint32_t d = 0; d <= c->n_lists; d++) words[d] = d < c->n_lists ? members[d] : 0;
    words = take_inputs(g, c, a, words + c->n_lists + 1);
    if (!words) return VPPS_NO_VERTEX;
    for (uint32_t i = 0; i < a->n_indices; i++) *words++ = a->indices[i];
    if (c->n_lists) words = take_lists(g, c, members, a, g->words + at + c->n_lists, words);
    if (!words) return VPPS_NO_VERTEX;
    const vpps_vertex v = add_vertex(g, (vpps_vertex_data){a->cell, at, g->n_nodes});
    if (v == VPPS_NO_VERTEX) return v;
    g->n_words = (size_t)(words - g->words);
    if (c->n_nodes) { /* else the vertex only passes its inputs on: it computes nothing, and is not in g->records */
        uint32_t *record_of = g->node_record + g->n_nodes;
        for (uint32_t k = 0; k < c->n_outputs; k++) record_of[k] = n_records;
        g->records[g->n_records++] = (vpps_record){a->cell, g->n_nodes, at};
        g->n_nodes += c->n_outputs;
        g->size += (uint32_t)size;
    }
    g->decides |= c->decides;
    return v;
}
