/* random_graph.c - builds a case: every step finds or makes its operands. */
#include "random_graph.h"

#include "common/meaning.h"
#include "common/testing.h"

/* A node and what the builder knows about it. `size`: an estimate of its largest element's magnitude. */
typedef struct item {
    vpps_node node;
    uint32_t rows, cols;
    double size;
    uint32_t list; /* axis of its members; 0: it is no list */
    bool used;
} item;

enum {
    MOST_ARGUMENTS = 4, /* most arguments of an operation that takes any number */
    MAX_ITEMS = 4096,
    MAX_PARAMS = 256,
    MAX_VERTICES = 512,
    MAX_PULLS = 16,
    MAX_PULL_LISTS = 2,
    MAX_OUTPUTS = 3,
    MOST_MEMBERS = 5,
    MOST_CHILDREN = 16
};

typedef struct made_param {
    vpps_param param;
    vpps_param_kind kind;
    uint32_t rows, cols, variant;
} made_param;

typedef struct pulled {
    uint32_t rows, cols; /* a node's shape; cols 0: an index less than rows */
    uint32_t list;
} pulled;

typedef struct made_cell {
    vpps_cell cell;
    pulled pulls[MAX_PULLS], indices[MAX_PULLS], lists[MAX_PULL_LISTS];
    uint32_t n_pulls, n_indices, n_pushed, n_lists;
    item pushed[MAX_OUTPUTS];
} made_cell;

typedef struct builder {
    const rg_case *c;
    vpps_model *model;
    vpps_graph *g;
    FILE *print;
    uint64_t values; /* random stream of the inputs' values */
    made_param params[MAX_PARAMS];
    uint32_t n_params;
    made_cell cells[RG_CELLS];
    made_cell *recording;
    vpps_vertex vertices[MAX_VERTICES];
    uint32_t n_vertices;
    uint32_t list;       /* axis of the list that is an operand of the step; 0: none yet */
    bool all_lists;      /* the step's operation takes members of several lists */
    item *items, *outer; /* in a cell: the cell's items, and the graph's items */
    uint32_t n_items, n_outer;
} builder;

static void say(const builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const builder *b, const char *format, ...) {
    if (!b->print) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(b->print, format, arguments);
    va_end(arguments);
}

/* The printed form of a node: n12, or in12 for a cell's input. */
typedef struct node_text {
    char text[24];
} node_text;
static node_text text_of(vpps_node x) {
    node_text t;
    const bool input = x != VPPS_NO_NODE && (x & VPPS_CELL_INPUT);
    snprintf(t.text, sizeof t.text, input ? "in%u" : "n%u", x & ~VPPS_CELL_INPUT);
    return t;
}

static void say_nodes(const builder *b, uint32_t n, const vpps_node *xs) {
    for (uint32_t i = 0; i < n; i++) say(b, "%s%s", i ? ", " : "", text_of(xs[i]).text);
}

/* ---------------------------------------------------------------- making nodes */

/* Keeps a new node; returns its number among the items. */
static uint32_t keep(builder *b, vpps_node node, double size, uint32_t list) {
    uint32_t rows = 1, cols = 1;
    vpps_signature s;
    uint32_t axis;
    if (node != VPPS_NO_NODE && vpps_node_signature(b->g, "test", node, &s, &axis)) {
        rows = s.rows;
        cols = s.cols;
        list = axis;
    }
    say(b, "    // %u x %u", rows, cols);
    if (list) say(b, ", of list %u", list - 1);
    say(b, "\n");
    if (b->n_items == MAX_ITEMS) b->n_items--; /* more items than any case makes */
    b->items[b->n_items] = (item){node, rows, cols, size, list, false};
    return b->n_items++;
}

static vpps_node node_of(builder *b, uint32_t i) {
    b->items[i].used = true;
    return b->items[i].node;
}
static double size_of(const builder *b, uint32_t i) { return b->items[i].size; }

static uint32_t unary(builder *b, const char *name, vpps_node (*f)(vpps_graph *, vpps_node), uint32_t x, double size) {
    const vpps_node a = node_of(b, x), y = f(b->g, a);
    say(b, "%s = vpps_%s(g, %s);", text_of(y).text, name, text_of(a).text);
    return keep(b, y, size, false);
}

static uint32_t binary(builder *b, const char *name, vpps_node (*f)(vpps_graph *, vpps_node, vpps_node), uint32_t x,
                       uint32_t y, double size) {
    const vpps_node p = node_of(b, x), q = node_of(b, y), z = f(b->g, p, q);
    say(b, "%s = vpps_%s(g, %s, %s);", text_of(z).text, name, text_of(p).text, text_of(q).text);
    return keep(b, z, size, false);
}

static uint32_t many(builder *b, const char *name, vpps_node (*f)(vpps_graph *, uint32_t, const vpps_node *),
                     uint32_t n, const uint32_t *xs, double size) {
    vpps_node nodes[RG_STEPS * 8] = {0};
    for (uint32_t i = 0; i < n; i++) nodes[i] = node_of(b, xs[i]);
    const vpps_node y = f(b->g, n, nodes);
    say(b, "%s = vpps_%s(g, %u, {", text_of(y).text, name, n);
    say_nodes(b, n, nodes);
    say(b, "});");
    return keep(b, y, size, false);
}

/* Makes an operation on one node whose size grows by a factor and a term. */
static uint32_t grown(builder *b, const char *name, vpps_node (*f)(vpps_graph *, vpps_node), uint32_t x, double factor,
                      double term) {
    return unary(b, name, f, x, factor * size_of(b, x) + term);
}

static uint32_t with_number(builder *b, const char *name, vpps_node (*f)(vpps_graph *, vpps_node, float), uint32_t x,
                            float number, double factor, double least) {
    const vpps_node a = node_of(b, x), y = f(b->g, a, number);
    say(b, "%s = vpps_%s(g, %s, %.9g);", text_of(y).text, name, text_of(a).text, (double)number);
    return keep(b, y, fmax(factor * size_of(b, x), least), false);
}

/* ---------------------------------------------------------------- parameters and leaves */

static vpps_param find_param(builder *b, vpps_param_kind kind, uint32_t rows, uint32_t cols, uint32_t variant) {
    for (uint32_t i = 0; i < b->n_params; i++) {
        const made_param *p = &b->params[i];
        if (p->kind == kind && p->rows == rows && p->cols == cols && p->variant == variant) return p->param;
    }
    if (b->n_params == MAX_PARAMS) return VPPS_NO_PARAM;
    static const char letters[] = {'W', 'b', 'E'};
    char name[48];
    snprintf(name, sizeof name, "%c%ux%u.%u", letters[kind], rows, cols, variant);
    const float spread = kind == VPPS_MATRIX ? 1.5f / sqrtf((float)cols) : 1.0f;
    const vpps_init init = {.kind = VPPS_INIT_UNIFORM, .a = -spread, .b = spread};
    vpps_param p = VPPS_NO_PARAM;
    const uint32_t count = 3 + (rows + variant) % 4;
    if (kind == VPPS_MATRIX) vpps_add_matrix(b->model, &p, name, rows, cols, &init);
    if (kind == VPPS_VECTOR) vpps_add_vector(b->model, &p, name, rows, &init);
    if (kind == VPPS_LOOKUP) vpps_add_lookup(b->model, &p, name, count, rows, cols, &init);
    if (p == VPPS_NO_PARAM) {
        vpps_graph_fail(b->g, VPPS_STATE, "%s", vpps_error_message());
        return p;
    }
    static const uint64_t one_in[] = {6, 2, 1}; /* one parameter in so many is frozen */
    const bool frozen = b->c->frozen && vpps_mix64(b->c->seed + p) % one_in[b->c->seed % VPPS_COUNT(one_in)] == 0;
    vpps_freeze(b->model, p, frozen);
    if (kind == VPPS_LOOKUP) say(b, "    // new table %s of %u%s\n", name, count, frozen ? ", frozen" : "");
    if (kind != VPPS_LOOKUP) say(b, "    // new %s%s\n", name, frozen ? ", frozen" : "");
    b->params[b->n_params++] = (made_param){p, kind, rows, cols, variant};
    return p;
}

static const char *param_name(const builder *b, vpps_param p) {
    return p == VPPS_NO_PARAM ? "none" : b->model->params[p].name;
}

static uint32_t input(builder *b, uint32_t rows, uint32_t cols, float low, float high) {
    const size_t n = (size_t)rows * cols;
    FREED float *data = need(malloc(n * sizeof *data));
    for (size_t i = 0; i < n; i++) data[i] = low + (high - low) * vpps_random_unit(&b->values);
    const vpps_node x = vpps_input(b->g, rows, cols, data);
    say(b, "%s = vpps_input(g, %u, %u, uniform(%g, %g));", text_of(x).text, rows, cols, (double)low, (double)high);
    return keep(b, x, fmax(fabs((double)low), fabs((double)high)), false);
}

static uint32_t lookup(builder *b, uint32_t rows, uint32_t cols, uint32_t pick) {
    const vpps_param table = find_param(b, VPPS_LOOKUP, rows, cols, pick % 2);
    if (table == VPPS_NO_PARAM) return input(b, rows, cols, -1, 1);
    uint32_t index = pick / 2 % b->model->params[table].count;
    made_cell *cell = b->recording;
    if (cell && pick / 16 % 2 && cell->n_indices < MAX_PULLS) {
        cell->indices[cell->n_indices++] = (pulled){.rows = b->model->params[table].count};
        index = vpps_pull_index(b->g);
    }
    const vpps_node x = vpps_lookup(b->g, table, index);
    say(b, "%s = vpps_lookup(g, %s, %#x);", text_of(x).text, param_name(b, table), index);
    return keep(b, x, 1, false);
}

static uint32_t parameter(builder *b, uint32_t rows, uint32_t cols, uint32_t pick) {
    const vpps_param_kind kind = cols > 1 || pick / 2 % 2 ? VPPS_MATRIX : VPPS_VECTOR;
    const vpps_param p = find_param(b, kind, rows, cols, pick % 2);
    if (p == VPPS_NO_PARAM) return lookup(b, rows, cols, pick);
    const vpps_node x = vpps_parameter(b->g, p);
    say(b, "%s = vpps_parameter(g, %s);", text_of(x).text, param_name(b, p));
    return keep(b, x, 1, false);
}

static uint32_t constant(builder *b, uint32_t rows, uint32_t cols, uint32_t pick) {
    static const float numbers[] = {0, 1, -1, 0.5f};
    const float number = numbers[pick % VPPS_COUNT(numbers)];
    const vpps_node x = vpps_constant(b->g, rows, cols, number);
    say(b, "%s = vpps_constant(g, %u, %u, %g);", text_of(x).text, rows, cols, (double)number);
    return keep(b, x, 1, false);
}

static uint32_t pull(builder *b, uint32_t rows, uint32_t cols) {
    made_cell *cell = b->recording;
    cell->pulls[cell->n_pulls++] = (pulled){.rows = rows, .cols = cols};
    const vpps_node x = vpps_pull(b->g, rows, cols);
    say(b, "%s = vpps_pull(g, %u, %u);", text_of(x).text, rows, cols);
    return keep(b, x, 4, false);
}

static uint32_t leaf(builder *b, uint32_t rows, uint32_t cols, uint32_t pick) {
    const uint32_t way = pick % 4;
    pick /= 4;
    if (way == 0) return parameter(b, rows, cols, pick);
    if (b->recording)
        return way == 1 && b->recording->n_pulls < MAX_PULLS ? pull(b, rows, cols) : lookup(b, rows, cols, pick);
    return way == 1 ? input(b, rows, cols, -1.5f, 1.5f) : lookup(b, rows, cols, pick);
}

/* Makes values near 1, which keep arguments away from 0. */
static uint32_t ones(builder *b, uint32_t rows, uint32_t cols) {
    if (!b->recording) return input(b, rows, cols, 0.5f, 1.5f);
    return unary(b, "exp", vpps_exp, unary(b, "tanh", vpps_tanh, leaf(b, rows, cols, 2), 1), 3);
}

/* ---------------------------------------------------------------- operands */

static uint32_t tame(builder *b, uint32_t x, double limit) {
    const double size = size_of(b, x);
    if (size <= limit) return x;
    if (limit >= 1 && b->items[x].node % 3) return unary(b, "tanh", vpps_tanh, x, 1);
    return with_number(b, "scale", vpps_scale, x, (float)(limit / size), 0, limit);
}

/* Returns an item of this shape: an existing one (more often a recent one), or a new leaf. */
static uint32_t operand(builder *b, uint32_t rows, uint32_t cols, uint32_t pick) {
    uint32_t matches[64], n = 0;
    for (uint32_t i = b->n_items; i-- > 0 && n < VPPS_COUNT(matches);) {
        const item *x = &b->items[i];
        if (x->list && b->list && x->list != b->list && !b->all_lists) continue;
        if (x->rows == rows && x->cols == cols) matches[n++] = i;
    }
    const uint32_t way = pick % 8;
    pick /= 8;
    if (!n || way == 7) return leaf(b, rows, cols, pick);
    const uint32_t chosen = matches[way < 4 ? pick % (n < 3 ? n : 3) : pick % n];
    if (b->items[chosen].list) b->list = b->items[chosen].list;
    return tame(b, chosen, 4);
}

/* Applies sigmoid, so that values lie in (0, 1). */
static uint32_t probability(builder *b, uint32_t x) { return unary(b, "sigmoid", vpps_sigmoid, tame(b, x, 2), 1); }

static uint32_t affine(builder *b, uint32_t rows, uint32_t n, const uint32_t *xs, uint32_t pick) {
    vpps_param matrices[4] = {0}, bias = VPPS_NO_PARAM;
    vpps_node nodes[4] = {0};
    double size = 0;
    for (uint32_t k = 0; k < n; k++) {
        matrices[k] = find_param(b, VPPS_MATRIX, rows, b->items[xs[k]].rows, (pick >> k) % 2);
        nodes[k] = node_of(b, xs[k]);
        size += 1.5 * size_of(b, xs[k]);
    }
    if (pick / 16 % 3) bias = find_param(b, VPPS_VECTOR, rows, 1, pick / 64 % 2);
    const vpps_node y = vpps_affine(b->g, bias, n, matrices, nodes);
    say(b, "%s = vpps_affine(g, %s, %u, {", text_of(y).text, param_name(b, bias), n);
    for (uint32_t k = 0; k < n; k++) say(b, "%s%s", k ? ", " : "", param_name(b, matrices[k]));
    say(b, "}, {");
    say_nodes(b, n, nodes);
    say(b, "});");
    return keep(b, y, size + 1, false);
}

static uint32_t slice(builder *b, uint32_t x, uint32_t rows, uint32_t pick) {
    const uint32_t first = pick % (b->items[x].rows - rows + 1);
    const double size = size_of(b, x);
    const vpps_node a = node_of(b, x), y = vpps_slice(b->g, a, first, rows);
    say(b, "%s = vpps_slice(g, %s, %u, %u);", text_of(y).text, text_of(a).text, first, rows);
    return keep(b, y, size, false);
}

/* Selects rows of x, some of them twice. */
static uint32_t select_rows(builder *b, uint32_t x, uint32_t n, uint32_t pick) {
    uint32_t numbers[520];
    const double size = size_of(b, x);
    const vpps_node a = node_of(b, x);
    for (uint32_t i = 0; i < n; i++) numbers[i] = (pick + i * (1 + pick % 7)) % b->items[x].rows;
    const vpps_node y = vpps_select_rows(b->g, a, n, numbers);
    say(b, "%s = vpps_select_rows(g, %s, %u, {", text_of(y).text, text_of(a).text, n);
    for (uint32_t i = 0; i < n; i++) say(b, "%s%u", i ? ", " : "", numbers[i]);
    say(b, "});");
    return keep(b, y, size, false);
}

/* Returns the class of a loss: fixed, or pulled. */
static uint32_t label(builder *b, uint32_t rows, uint32_t pick) {
    made_cell *cell = b->recording;
    if (!cell || pick % 2 == 0 || cell->n_indices == MAX_PULLS) return pick / 2 % rows;
    cell->indices[cell->n_indices++] = (pulled){.rows = rows};
    return vpps_pull_index(b->g);
}

static uint32_t smoothed(builder *b, uint32_t x, uint32_t pick) {
    const uint32_t k = label(b, b->items[x].rows, pick);
    const double size = size_of(b, x);
    const float smoothing = 0.125f * (float)(pick / 64 % 9);
    const vpps_node a = node_of(b, x), y = vpps_smooth_label(b->g, a, k, smoothing);
    say(b, "%s = vpps_smooth_label(g, %s, %#x, %g);", text_of(y).text, text_of(a).text, k, (double)smoothing);
    return keep(b, y, size, false);
}

static uint32_t classified(builder *b, bool hinge, uint32_t x, uint32_t pick) {
    const uint32_t k = label(b, b->items[x].rows, pick);
    const double rows = b->items[x].rows, size = size_of(b, x);
    const float margin = 0.25f * (float)(pick / 64 % 8);
    const vpps_node a = node_of(b, x), y = hinge ? vpps_hinge(b->g, a, k, margin) : vpps_cross_entropy(b->g, a, k);
    if (hinge) say(b, "%s = vpps_hinge(g, %s, %#x, %g);", text_of(y).text, text_of(a).text, k, (double)margin);
    if (!hinge) say(b, "%s = vpps_cross_entropy(g, %s, %#x);", text_of(y).text, text_of(a).text, k);
    return keep(b, y, hinge ? rows * (size + (double)margin) : 2 * size + log(rows), false);
}

/* Normalises x. Epsilon is large, since elements may be almost zero. */
static uint32_t normalised(builder *b, uint32_t x, uint32_t pick) {
    const float epsilon = 0.25f * (float)(1 + pick / 2 % 6);
    const double size = size_of(b, x);
    const bool centred = pick % 2;
    const vpps_node a = node_of(b, x), none = VPPS_NO_NODE;
    const vpps_node y = centred ? vpps_layer_norm(b->g, a, none, none, epsilon) : vpps_rms_norm(b->g, a, none, epsilon);
    say(b, "%s = vpps_%s_norm(g, %s, VPPS_NO_NODE, %s%g);", text_of(y).text, centred ? "layer" : "rms", text_of(a).text,
        centred ? "VPPS_NO_NODE, " : "", (double)epsilon);
    return keep(b, y, 4 * size, false);
}

static uint32_t weighted_sum(builder *b, uint32_t rows, uint32_t cols, uint32_t n, uint32_t pick) {
    uint32_t weights = operand(b, n, 1, pick);
    if (pick & 64) weights = unary(b, "softmax", vpps_softmax, weights, 1);
    vpps_node xs[8];
    double size = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t x = operand(b, rows, cols, pick >> (3 * k));
        xs[k] = node_of(b, x);
        size += size_of(b, x);
    }
    size *= size_of(b, weights);
    const vpps_node w = node_of(b, weights), y = vpps_weighted_sum(b->g, w, n, xs);
    say(b, "%s = vpps_weighted_sum(g, %s, %u, {", text_of(y).text, text_of(w).text, n);
    say_nodes(b, n, xs);
    say(b, "});");
    return keep(b, y, size, false);
}

/* Makes matrices from vectors and reads them by rows, by columns or as a whole: outer products, broadcasts, and their transposes. */
static void outer(builder *b, uint32_t rows, uint32_t inner, const uint32_t *pick) {
    const uint32_t x = operand(b, rows, 1, pick[0]), cols = pick[2] / 2 % 2 ? rows : b->c->columns;
    const double size = size_of(b, x);
    if (pick[2] % 2) {
        const uint32_t y = operand(b, inner, 1, pick[1]),
                       turned = unary(b, "transpose", vpps_transpose, y, size_of(b, y));
        binary(b, "matmul", vpps_matmul, x, turned, size * size_of(b, y));
        return;
    }
    const bool turn = pick[2] / 4 % 2;
    const vpps_node a = node_of(b, turn ? unary(b, "transpose", vpps_transpose, x, size) : x);
    const vpps_node y = turn ? vpps_broadcast(b->g, a, cols, rows) : vpps_broadcast(b->g, a, rows, cols);
    say(b, "%s = vpps_broadcast(g, %s, %u, %u);", text_of(y).text, text_of(a).text, turn ? cols : rows,
        turn ? rows : cols);
    const uint32_t made = keep(b, y, size, false);
    if (pick[2] / 8 % 2) unary(b, "transpose", vpps_transpose, made, size);
}

/* ---------------------------------------------------------------- steps */

static void deep(builder *b, uint32_t rows, uint32_t inner, const rg_step *s) {
    uint32_t h = operand(b, rows, 1, s->pick[0]);
    for (uint32_t k = 0; k < 2 + s->pick[1] % 12; k++) {
        const uint32_t xs[2] = {h, operand(b, inner, 1, s->pick[2] >> k)};
        h = unary(b, "tanh", vpps_tanh, affine(b, rows, 2, xs, s->pick[1]), 1);
    }
}

static void wide(builder *b, uint32_t rows, uint32_t inner, uint32_t cols, const rg_step *s) {
    for (uint32_t k = 0; k < 2 + s->pick[1] % 12; k++) {
        const uint32_t x =
            b->recording ? operand(b, inner, cols, s->pick[0] * (k + 1)) : lookup(b, inner, cols, s->pick[0] >> k);
        const uint32_t y = affine(b, rows, 1, &x, s->pick[2]);
        if (k % 3) unary(b, "sigmoid", vpps_sigmoid, y, 1);
    }
}

/* Makes a source vertex: like every vertex with outputs, it scatters a vector of sizes[0] and one of sizes[1]. */
static void source(builder *b, const rg_step *s) {
    if (b->n_vertices == MAX_VERTICES) return;
    vpps_node nodes[2];
    for (uint32_t k = 0; k < 2; k++) nodes[k] = node_of(b, operand(b, b->c->sizes[k], 1, s->pick[k]));
    const vpps_vertex v = vpps_source(b->g, 2, nodes);
    say(b, "    v%u = vpps_source(g, 2, {%s, %s});\n", v, text_of(nodes[0]).text, text_of(nodes[1]).text);
    b->vertices[b->n_vertices++] = v;
}

/* Adds a vertex of a cell, with the nodes that it scatters and pushes. members: those of its lists. */
static void add_vertex(builder *b, uint32_t which, const vpps_application *a, const uint32_t *members) {
    const rg_cell *c = &b->c->cells[which];
    const made_cell *cell = &b->cells[which];
    const vpps_cell_data *data = b->model->cells[cell->cell];
    const vpps_vertex v = vpps_apply(b->g, a);
    say(b, "    v%u = vpps_apply(g, cell%u, children {", v, which);
    for (uint32_t k = 0; k < a->n_children; k++) say(b, "%sv%u", k ? ", " : "", a->children[k]);
    say(b, "}, pulls {");
    say_nodes(b, cell->n_pulls, a->pulls);
    say(b, "}, indices {");
    for (uint32_t k = 0; k < cell->n_indices; k++) say(b, "%s%u", k ? ", " : "", a->indices[k]);
    for (uint32_t k = 0; k < cell->n_lists; k++) {
        say(b, "}, list {");
        say_nodes(b, members[cell->lists[k].list], a->pull_lists[k]);
    }
    if (data->n_lists > 1) say(b, "}, members {");
    for (uint32_t l = 0; l < data->n_lists && data->n_lists > 1; l++) say(b, "%s%u", l ? ", " : "", members[l]);
    say(b, "});\n");
    for (uint32_t k = 0; k < 2 && !c->head; k++) {
        const vpps_node x = vpps_scattered(b->g, v, k);
        say(b, "%s = vpps_scattered(g, v%u, %u);", text_of(x).text, v, k);
        keep(b, x, 1, false);
    }
    for (uint32_t k = 0; k < cell->n_pushed; k++) {
        const vpps_node x = vpps_pushed(b->g, v, k);
        say(b, "%s = vpps_pushed(g, v%u, %u);", text_of(x).text, v, k);
        keep(b, x, cell->pushed[k].size, false);
    }
    if (!c->head) b->vertices[b->n_vertices++] = v;
}

static void apply(builder *b, const rg_step *s) {
    if (!b->c->n_cells || b->n_vertices + MOST_CHILDREN + 1 > MAX_VERTICES) return;
    const uint32_t which = s->pick[0] % b->c->n_cells;
    const rg_cell *c = &b->c->cells[which];
    const made_cell *cell = &b->cells[which];
    vpps_vertex children[MOST_CHILDREN];
    const vpps_cell_data *data = b->model->cells[cell->cell];
    const uint32_t first = c->rest ? c->n_children : 0, fewest = b->c->empty_lists ? data->min_members[1] : 1;
    const uint32_t least = vpps_max_u32(c->n_children, c->variable && !c->only_pulled ? first + fewest : 0);
    const bool gathers = c->variable && !c->only_pulled && !c->head;
    uint32_t n = c->head ? 0 : gathers ? least + s->pick[1] / 8 % 4 : least, members[VPPS_CELL_LISTS];
    members[0] = gathers ? n - first : vpps_max_u32(fewest, s->pick[1] / 8 % 4);
    for (uint32_t l = 1; l < data->n_lists; l++) {
        members[l] = vpps_max_u32(b->c->empty_lists ? data->min_members[l + 1] : 1, (s->pick[1] >> (3 * l)) % 4);
        if (data->gathered[l + 1]) n += members[l];
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!b->n_vertices || (s->pick[1] >> k) % 4 == 0) source(b, s);
        children[k] =
            b->vertices[b->n_vertices - 1 - (s->pick[1] >> (2 * k)) % (b->n_vertices < 4 ? b->n_vertices : 4)];
    }
    vpps_node pulls[MAX_PULLS];
    uint32_t indices[MAX_PULLS];
    for (uint32_t k = 0; k < cell->n_pulls; k++)
        pulls[k] = node_of(b, operand(b, cell->pulls[k].rows, cell->pulls[k].cols, s->pick[2] >> k));
    for (uint32_t k = 0; k < cell->n_indices; k++) indices[k] = (s->pick[2] >> k) % cell->indices[k].rows;
    vpps_node members_of[MAX_PULL_LISTS][16];
    const vpps_node *lists[MAX_PULL_LISTS];
    for (uint32_t k = 0; k < cell->n_lists; k++) {
        for (uint32_t m = 0; m < members[cell->lists[k].list]; m++)
            members_of[k][m] =
                node_of(b, operand(b, cell->lists[k].rows, cell->lists[k].cols, s->pick[2] >> (k + m) % 28));
        lists[k] = members_of[k];
    }
    const vpps_application a = {.size = sizeof a,
                                .cell = cell->cell,
                                .n_children = n,
                                .children = children,
                                .n_pulls = cell->n_pulls,
                                .pulls = pulls,
                                .n_indices = cell->n_indices,
                                .indices = indices,
                                .n_pull_lists = cell->n_lists,
                                .n_members = cell->n_lists && data->n_lists == 1 ? members[0] : 0,
                                .pull_lists = lists,
                                .n_lists = data->n_lists > 1 ? data->n_lists : 0,
                                .list_members = members};
    add_vertex(b, which, &a, members);
    for (uint32_t k = s->pick[2] % 4 ? 0 : 1 + s->pick[0] / 16 % 4; k > 0 && b->n_vertices < MAX_VERTICES; k--) {
        const uint32_t x = b->n_items - 1, xs[] = {x, x, x, x, x, x, x, x, x};
        if (s->pick[0] / 64 % 4 == 0) many(b, "sum", vpps_sum, 9, xs, 9 * b->items[x].size);
        add_vertex(b, which, &a, members); /* neighbouring vertices read the same lists; long sums are lists, too */
    }
}

/* Returns a list item: of the step's list if it has one, else of any list; UINT32_MAX: there is none. */
static uint32_t find_list(const builder *b, uint32_t pick) {
    uint32_t lists[64], n = 0;
    for (uint32_t i = b->n_items; i-- > 0 && n < VPPS_COUNT(lists);)
        if (b->items[i].list && (!b->list || b->items[i].list == b->list)) lists[n++] = i;
    return n ? lists[pick % n] : UINT32_MAX;
}

/* Applies one of the operations that also take a list of scalars, to at most 4 scores. */
static uint32_t over_scalars(builder *b, uint32_t scores, uint32_t pick) {
    enum { MOST = 12 };
    vpps_op ops[VPPS_OP_COUNT];
    uint32_t n = 0;
    char name[64];
    for (uint32_t op = 0; op < VPPS_OP_COUNT; op++)
        if (meaning_calls[op].list) ops[n++] = (vpps_op)op;
    const vpps_op op = ops[pick % n];
    snprintf(name, sizeof name, "%s_list", vpps_ops[op].name);
    return unary(b, name, meaning_calls[op].list, scores, op == VPPS_OP_SOFTMAX ? 1 : MOST);
}

/* Stacks a list's members, and takes a part as large as a member. */
static void stack_members(builder *b, uint32_t x, uint32_t pick) {
    const uint32_t most = MOST_MEMBERS + pick % 2;
    const vpps_node a = node_of(b, x), y = vpps_concat_list(b->g, a, most);
    say(b, "%s = vpps_concat_list(g, %s, %u);", text_of(y).text, text_of(a).text, most);
    const uint32_t stack = keep(b, y, size_of(b, x), false);
    slice(b, stack, b->items[x].rows, pick / 2);
}

/* Attention over lists: scores by a vector, an operation on these, and the sum of another list weighted by the result, or by any scores. */
static void attend(builder *b, const rg_step *s) {
    uint32_t x = find_list(b, s->pick[0]);
    if (!b->recording || x == UINT32_MAX) return;
    b->list = b->items[x].list;
    uint32_t z = find_list(b, s->pick[1]);
    x = tame(b, x, 4);
    if (s->pick[2] % 16 > 10) {
        stack_members(b, x, s->pick[1]);
        return;
    }
    z = tame(b, z, 4);
    const uint32_t rows = b->items[x].rows, cols = b->items[x].cols;
    const uint32_t query = operand(b, rows, cols, s->pick[2]);
    uint32_t scores = binary(b, "dot", vpps_dot, x, query, sqrt(rows * cols) * size_of(b, x) * size_of(b, query));
    scores = tame(b, scores, 4);
    if (s->pick[2] % 4) scores = over_scalars(b, scores, s->pick[2] / 4 % 4);
    const vpps_node w = node_of(b, scores), v = node_of(b, z), y = vpps_weighted_sum_list(b->g, w, v);
    say(b, "%s = vpps_weighted_sum_list(g, %s, %s);", text_of(y).text, text_of(w).text, text_of(v).text);
    keep(b, y, 4 * size_of(b, scores) * size_of(b, z), false);
}

/* Returns the largest result of an elementwise operation on elements of such sizes; at least a half if they must be positive. */
static double size_of_result(vpps_op op, const double *sizes) {
    const meaning_domain domains[] = {meaning_cases[op].a, meaning_cases[op].b};
    double most = 0;
    for (uint32_t corner = 0; corner < 4; corner++) {
        double x[2], y;
        for (uint32_t k = 0; k < 2; k++)
            x[k] = !(corner >> k & 1) ? sizes[k] : domains[k] == POSITIVE ? 0.5 : -sizes[k];
        meaning_forward(op, &(meaning_operands){.a = &x[0], .b = &x[1]}, 1, &y, NULL);
        most = fmax(most, fabs(y));
    }
    return most;
}

/* Makes an operation of ops.def that takes only the elements of one or two nodes; makes nothing for other operations. */
static void elementwise(builder *b, vpps_op op, uint32_t rows, uint32_t cols, const uint32_t *pick) {
    enum { MOST = 20 };
    const meaning_call *c = &meaning_calls[op];
    const meaning_domain domains[] = {meaning_cases[op].a, meaning_cases[op].b};
    const uint32_t n = c->binary ? 2 : 1;
    uint32_t xs[2] = {0};
    double sizes[2] = {1, 1};
    if (vpps_ops[op].op_class != VPPS_CLASS_EW || (!c->unary && !c->binary)) return;
    for (uint32_t k = 0; k < n; k++) {
        xs[k] = k && pick[2] % 8 == 0 && domains[0] == domains[1] ? xs[0] : operand(b, rows, cols, pick[k]);
        if (domains[k] == POSITIVE)
            xs[k] = binary(b, "add", vpps_add, unary(b, "square", vpps_square, xs[k], 16), ones(b, rows, cols), 18);
        sizes[k] = size_of(b, xs[k]);
    }
    if (n == 1 && size_of_result(op, sizes) > MOST) {
        xs[0] = tame(b, xs[0], 2);
        sizes[0] = size_of(b, xs[0]);
    }
    const double size = size_of_result(op, sizes);
    if (n == 1) unary(b, vpps_ops[op].name, c->unary, xs[0], size);
    if (n == 2) binary(b, vpps_ops[op].name, c->binary, xs[0], xs[1], size);
}

/* Returns the largest size of an operation's result from members of such sizes. */
static double size_of_members(const builder *b, vpps_op op, uint32_t n, const uint32_t *xs) {
    const double *sizes[MOST_ARGUMENTS];
    double size;
    for (uint32_t k = 0; k < n; k++) sizes[k] = &b->items[xs[k]].size;
    meaning_forward(op, &(meaning_operands){.list = sizes, .n_list = n, .f = 1}, 1, &size, NULL);
    return size;
}

/* Makes an operation of ops.def that reduces n values, and members of lists among them, to one value; total: sum of their sizes. */
static void of_members(builder *b, vpps_op op, uint32_t n, uint32_t *xs, double total) {
    for (uint32_t k = 0; k < n && size_of_members(b, op, n, xs) > total; k++) xs[k] = tame(b, xs[k], 2);
    many(b, vpps_ops[op].name, meaning_calls[op].many, n, xs, size_of_members(b, op, n, xs));
}

static void step(builder *b, const rg_step *s) {
    const uint32_t rows = b->c->sizes[s->rows % RG_SIZES], inner = b->c->sizes[s->cols % RG_SIZES];
    const uint32_t cols = s->cols / RG_SIZES % 4 == 3 ? b->c->columns : 1;
    const uint32_t *pick = s->pick;
    const uint32_t some = 1 + pick[2] % MOST_ARGUMENTS;
    uint32_t xs[MOST_ARGUMENTS];
    double total = 0;
    b->list = 0;
    const bool takes_members = s->what < VPPS_OP_COUNT && vpps_takes_members(s->what);
    b->all_lists = takes_members;

#define X operand(b, rows, cols, pick[0])
#define TWO const uint32_t x = X, y = pick[2] % 8 == 0 ? x : operand(b, rows, cols, pick[1])
#define SOME(n)                                                                                                        \
    for (uint32_t k = 0; k < (n); k++) {                                                                               \
        xs[k] = operand(b, rows, cols, pick[k % 2] >> (4 * (k / 2)));                                                  \
        total += size_of(b, xs[k]);                                                                                    \
    }
    if (takes_members) {
        SOME(some)
        of_members(b, (vpps_op)s->what, some, xs, total);
        return;
    }
    switch ((int)s->what) {
    case VPPS_OP_INPUT:
    case VPPS_OP_LOOKUP:
    case VPPS_OP_PARAMETER:
    case VPPS_OP_MATRIX: leaf(b, rows, cols, pick[0]); break;
    case VPPS_OP_AFFINE:
        for (uint32_t k = 0; k < 1 + pick[2] % 3; k++)
            xs[k] = operand(b, b->c->sizes[(s->cols + k) % RG_SIZES], cols, pick[k % 2] >> (4 * (k / 2)));
        affine(b, rows, 1 + pick[2] % 3, xs, pick[2] / 4);
        break;
    case VPPS_OP_MATMUL: {
        if (b->c->dense && pick[2] / 16 % 3) {
            outer(b, rows, inner, pick);
            break;
        }
        const uint32_t x = operand(b, rows, b->c->columns, pick[0]);
        const uint32_t y = operand(b, b->c->columns, pick[2] % 2 ? 1 : b->c->columns, pick[1]);
        binary(b, "matmul", vpps_matmul, x, y, sqrt(b->c->columns) * size_of(b, x) * size_of(b, y));
        break;
    }
    case VPPS_OP_DOT: {
        TWO;
        binary(b, "dot", vpps_dot, x, y, sqrt(rows * cols) * size_of(b, x) * size_of(b, y));
        break;
    }
    case VPPS_OP_SQUARED_DISTANCE: {
        TWO;
        const double p = size_of(b, x), q = size_of(b, y);
        binary(b, "squared_distance", vpps_squared_distance, x, y, rows * cols * (p * p + q * q));
        break;
    }
    case VPPS_OP_CONCAT:
        SOME(some)
        many(b, "concat", vpps_concat, some, xs, total);
        break;
    case VPPS_OP_TRANSPOSE: {
        const uint32_t x = X, y = unary(b, "transpose", vpps_transpose, x, size_of(b, x));
        if (pick[2] % 2) binary(b, "matmul", vpps_matmul, y, x, rows * size_of(b, x) * size_of(b, x));
        break;
    }
    case VPPS_OP_RESHAPE:
        SOME(some)
        many(b, "hstack", vpps_hstack, some, xs, total);
        break;
    case VPPS_OP_SELECT_ROWS: select_rows(b, X, b->recording ? some : inner, pick[1] % 1000); break;
    case VPPS_OP_CONSTANT: constant(b, rows, cols, pick[0]); break;
    case VPPS_OP_SUM_ELEMENTS: grown(b, "sum_elements", vpps_sum_elements, X, sqrt(rows * cols), 0); break;
    case VPPS_OP_SOFTMAX: unary(b, "softmax", vpps_softmax, X, 1); break;
    case VPPS_OP_LOG_SOFTMAX: grown(b, "log_softmax", vpps_log_softmax, X, 2, log(rows)); break;
    case VPPS_OP_LOG_SUM_EXP: grown(b, "log_sum_exp", vpps_log_sum_exp, X, 1, log(rows)); break;
    case VPPS_OP_CENTRE: grown(b, "centre", vpps_centre, X, 2, 0); break;
    case VPPS_OP_RMS_NORM: normalised(b, X, pick[1]); break;
    case VPPS_OP_SCALE: with_number(b, "scale", vpps_scale, X, (float)((int)(pick[1] % 9) - 4) / 3, 1.4, 0); break;
    case VPPS_OP_ELU: with_number(b, "elu", vpps_elu, X, 0.25f * (float)(1 + pick[1] % 6), 1, 1.5); break;
    case VPPS_OP_DROPOUT: with_number(b, "dropout", vpps_dropout, X, 0.25f * (float)(pick[1] % 4), 4, 0); break;
    case VPPS_OP_SCALE_BY: {
        const uint32_t x = X, y = operand(b, 1, 1, pick[1]);
        binary(b, "scale_by", vpps_scale_by, x, y, size_of(b, x) * size_of(b, y));
        break;
    }
    case VPPS_OP_WHEN:
    case VPPS_OP_UNLESS: { /* a condition that rounding does not change */
        const uint32_t x = X, square = unary(b, "square", vpps_square, operand(b, 1, 1, pick[1]), 16);
        const uint32_t y = binary(b, "add", vpps_add, square, ones(b, 1, 1), 18);
        const uint32_t condition = pick[2] % 2 ? y : unary(b, "negate", vpps_negate, y, 18);
        binary(b, vpps_ops[s->what].name, meaning_calls[s->what].binary, x, condition, size_of(b, x));
        break;
    }
    case VPPS_OP_SLICE:
        for (uint32_t k = 0, i = pick[0]; k < b->n_items; k++, i++) { /* the first item that is large enough */
            const item *x = &b->items[i % b->n_items];
            if (x->rows < rows || x->cols != cols) continue;
            slice(b, i % b->n_items, rows, pick[1]);
            break;
        }
        break;
    case VPPS_OP_WEIGHTED_SUM: weighted_sum(b, rows, cols, some, pick[0]); break;
    case VPPS_OP_CROSS_ENTROPY: classified(b, false, operand(b, rows, 1, pick[0]), pick[1]); break;
    case VPPS_OP_SMOOTH_LABEL: smoothed(b, operand(b, rows, 1, pick[0]), pick[1]); break;
    case VPPS_OP_HINGE: classified(b, true, operand(b, rows, 1, pick[0]), pick[1]); break;
    case VPPS_OP_BINARY_LOG_LOSS: {
        const uint32_t x = probability(b, X), y = probability(b, operand(b, rows, cols, pick[1]));
        binary(b, "binary_log_loss", vpps_binary_log_loss, x, y, 2.0 * rows * cols);
        break;
    }
    case RG_CHAIN: deep(b, rows, inner, s); break;
    case RG_WIDE: wide(b, rows, inner, cols, s); break;
    case RG_SOURCE:
        if (!b->recording) source(b, s);
        break;
    case RG_ATTEND: attend(b, s); break;
    case RG_APPLY:
        if (!b->recording) apply(b, s);
        break;
    default: elementwise(b, (vpps_op)s->what, rows, cols, pick); break;
    }
}

/* ---------------------------------------------------------------- cells */

/* Returns an item that is one value of this shape: the sum of a list, or a new value. */
static uint32_t single(builder *b, uint32_t rows, uint32_t pick) {
    b->list = 0;
    const uint32_t x = operand(b, rows, 1, pick);
    return b->items[x].list ? many(b, "sum", vpps_sum, 1, &x, 1) : x;
}

/* Makes a number that depends on all values which nothing uses yet. */
static void use_all(builder *b) {
    uint32_t terms[128], n = 0;
    const uint32_t n_items = b->n_items;
    for (uint32_t i = 0; i < n_items && n < VPPS_COUNT(terms); i++) {
        if (b->items[i].used) continue;
        const uint32_t one = b->items[i].list ? many(b, "average", vpps_average, 1, &i, size_of(b, i)) : i;
        const uint32_t x = tame(b, one, 2), elems = b->items[x].rows * b->items[x].cols;
        terms[n++] = binary(b, "dot", vpps_dot, x, x, elems * size_of(b, x) * size_of(b, x));
    }
    if (n) many(b, "average", vpps_average, n, terms, 1);
}

static void record_cell(builder *b, uint32_t which) {
    const rg_cell *c = &b->c->cells[which];
    made_cell *cell = &b->cells[which];
    *cell = (made_cell){0};
    b->outer = b->items;
    b->n_outer = b->n_items;
    b->items += b->n_items;
    b->n_items = 0;
    b->recording = cell;
    char name[16];
    snprintf(name, sizeof name, "cell%u", which);
    say(b, "vpps_cell_begin(model, \"%s\", &g);\n", name);
    vpps_graph *const g = b->g;
    if (vpps_cell_begin(b->model, name, &b->g) != VPPS_OK) abort();
    for (uint32_t k = 0; k < c->n_children && !c->head; k++) {
        for (uint32_t output = 0; output < 2; output++) {
            const vpps_node x = vpps_gather(b->g, k, output, b->c->sizes[output], 1);
            say(b, "%s = vpps_gather(g, %u, %u, %u, 1);", text_of(x).text, k, output, b->c->sizes[output]);
            keep(b, x, 4, false);
        }
    }
    for (uint32_t output = 0; output < 2 && c->variable && !c->only_pulled && !c->head; output++) {
        const uint32_t first = c->rest ? c->n_children : 0;
        const vpps_node x = vpps_gather_list_from(b->g, first, output, b->c->sizes[output], 1);
        say(b, "%s = vpps_gather_list_from(g, %u, %u, %u, 1);", text_of(x).text, first, output, b->c->sizes[output]);
        keep(b, x, 4, true);
    }
    uint32_t n_lists = c->variable && !c->only_pulled && !c->head;
    for (uint32_t output = 0; output < 2 && c->twice && n_lists; output++) {
        const vpps_node x = vpps_gather_list_of(b->g, 1, output, b->c->sizes[output], 1);
        say(b, "%s = vpps_gather_list_of(g, 1, %u, %u, 1);", text_of(x).text, output, b->c->sizes[output]);
        keep(b, x, 4, true);
    }
    if (c->twice && n_lists) n_lists = 2;
    for (uint32_t k = 0; k < c->n_pull_lists; k++) {
        const uint32_t rows = b->c->sizes[RG_SIZES - 1 - k], cols = k ? b->c->columns : 1;
        const uint32_t list = c->apart ? n_lists : 0;
        const vpps_node x = vpps_pull_list_of(b->g, list, rows, cols);
        say(b, "%s = vpps_pull_list_of(g, %u, %u, %u);", text_of(x).text, list, rows, cols);
        cell->lists[cell->n_lists++] = (pulled){rows, cols, list};
        keep(b, x, 4, true);
        n_lists = vpps_max_u32(n_lists, list + 1);
    }
    if (c->head) pull(b, b->c->sizes[0], 1);
    for (uint32_t i = 0; i < c->n_steps; i++) step(b, &c->steps[i]);
    for (uint32_t k = 0; k < 2 && !c->head; k++) {
        const uint32_t x = unary(b, "tanh", vpps_tanh, single(b, b->c->sizes[k], (uint32_t)b->c->seed % 4 * 8), 1);
        say(b, "vpps_scatter(g, %s);\n", text_of(b->items[x].node).text);
        vpps_scatter(b->g, node_of(b, x));
    }
    if (b->c->dense) use_all(b);
    for (uint32_t i = b->n_items; i-- > 0 && cell->n_pushed < MAX_OUTPUTS;) {
        if (b->items[i].used || b->items[i].list) continue;
        say(b, "vpps_push(g, %s);\n", text_of(b->items[i].node).text);
        vpps_push(b->g, node_of(b, i));
        cell->pushed[cell->n_pushed++] = b->items[i];
    }
    const vpps_status status = vpps_cell_end(b->g, &cell->cell);
    say(b, "vpps_cell_end(g, &%s);\n", name);
    b->g = g;
    b->recording = NULL;
    b->items = b->outer;
    b->n_items = b->n_outer;
    if (status != VPPS_OK) vpps_graph_fail(b->g, status, "%s: %s", name, vpps_error_message());
}

/* ---------------------------------------------------------------- a whole case */

/* Declares all parameters. weighted_sum has short weight vectors, matmul factors with few columns. */
static void declare_all(builder *b) {
    enum { SHORT = 4 };
    const rg_case *c = b->c;
    uint32_t sizes[RG_SIZES + SHORT];
    for (uint32_t i = 0; i < RG_SIZES + SHORT; i++) sizes[i] = i < RG_SIZES ? c->sizes[i] : i - RG_SIZES + 1;
    for (uint32_t i = 0; i < RG_SIZES + SHORT; i++) {
        for (uint32_t variant = 0; variant < 2; variant++) {
            find_param(b, VPPS_VECTOR, sizes[i], 1, variant);
            find_param(b, VPPS_LOOKUP, sizes[i], 1, variant);
            find_param(b, VPPS_LOOKUP, sizes[i], c->columns, variant);
            for (uint32_t k = 0; k < RG_SIZES && i < RG_SIZES; k++)
                find_param(b, VPPS_MATRIX, sizes[i], sizes[k], variant);
        }
    }
}

/* Makes a scalar that depends on every element of x. */
static uint32_t to_scalar(builder *b, uint32_t x, uint32_t way) {
    const uint32_t rows = b->items[x].rows, cols = b->items[x].cols;
    if (rows == 1 && cols == 1) return tame(b, x, 4);
    x = tame(b, x, 4);
    switch (way % 4) {
    case 0: return unary(b, "sum_elements", vpps_sum_elements, x, rows * cols);
    case 1: return binary(b, "squared_distance", vpps_squared_distance, x, input(b, rows, cols, -1, 1), rows * cols);
    case 2:
        if (cols == 1) return classified(b, false, x, way / 4);
        __attribute__((fallthrough));
    default: return binary(b, "dot", vpps_dot, x, input(b, rows, cols, -1, 1), rows * cols);
    }
}

/* Makes the loss: of most nodes that nothing uses, and of some others; the remaining nodes stay unused. */
static vpps_node make_loss(builder *b) {
    uint32_t terms[RG_STEPS * 6], n = 0;
    const uint32_t n_items = b->n_items;
    uint64_t random = b->c->seed + 99;
    for (uint32_t i = 0; i < n_items && n < VPPS_COUNT(terms); i++) {
        const uint64_t r = vpps_random(&random);
        if (b->items[i].used ? r % 8 != 0 : r % 8 == 0) continue;
        terms[n++] = to_scalar(b, i, (uint32_t)(r >> 8));
    }
    if (!n) terms[n++] = to_scalar(b, operand(b, b->c->sizes[0], 1, 0), 3);
    uint32_t loss =
        b->c->seed % 2 ? many(b, "average", vpps_average, n, terms, 1) : many(b, "sum", vpps_sum, n, terms, 1);
    if (b->c->seed % 5 == 0) loss = with_number(b, "scale", vpps_scale, loss, 0.5f, 0, 1);
    return node_of(b, loss);
}

vpps_status rg_build(rg_built *out, const rg_case *c, FILE *print) {
    *out = (rg_built){0};
    FREED builder *b = need(calloc(1, sizeof *b));
    FREED item *items = need(calloc(MAX_ITEMS * 2, sizeof *items));
    b->c = c;
    b->print = print;
    vpps_status status = vpps_model_create(&b->model, c->seed);
    out->model = b->model;
    for (uint32_t k = 0; k < c->batches && status == VPPS_OK; k++) {
        status = vpps_graph_create(&b->g, b->model);
        if (status != VPPS_OK) break;
        out->g[k] = b->g;
        say(b, "---- batch %u\n", k + 1);
        b->items = items;
        b->n_items = b->n_vertices = 0;
        b->values = vpps_mix64(c->seed * 2 + k);
        if (c->alike && k == 0) declare_all(b);
        for (uint32_t i = 0; i < c->n_cells && k == 0; i++) record_cell(b, i);
        for (uint32_t i = 0; i < c->n_steps; i++) step(b, &c->steps[k ? c->n_steps - 1 - i : i]);
        out->loss[k] = make_loss(b);
        say(b, "vpps_fb(h, g, %s, NULL);\n", text_of(out->loss[k]).text);
        status = vpps_graph_status(b->g);
    }
    return status;
}

void rg_destroy(rg_built *built) {
    vpps_graph_destroy(built->g[0]);
    vpps_graph_destroy(built->g[1]);
    vpps_model_destroy(built->model);
    *built = (rg_built){0};
}

uint32_t rg_named_nodes(vpps_graph *g, vpps_node *out) {
    uint32_t n = 0;
    for (size_t i = 0; i < g->n_records; i++)
        if (g->records[i].cell == VPPS_NODE_RECORD) out[n++] = g->records[i].first;
    for (vpps_vertex v = 0; v < g->n_vertices; v++) {
        if (g->vertices[v].cell == VPPS_SOURCE_VERTEX) continue;
        const vpps_cell_data *c = vpps_cell_of(g, g->vertices[v].cell);
        for (uint32_t k = 0; k < c->n_scattered; k++) out[n++] = vpps_scattered(g, v, k);
        for (uint32_t k = 0; k < c->n_pushed; k++) out[n++] = vpps_pushed(g, v, k);
    }
    return n;
}
