/* graph.c - records, signatures and the flat form. */
#include "graph/graph.h"

#include <stdarg.h>

const vpps_op_row vpps_ops[VPPS_OP_COUNT] = {
#define OP(id, name, call, min, max, shape, op_class, per, flops, backward_flops, ...)                                 \
    [VPPS_OP_##id] = {#name,          min,   VPPS_##max,    VPPS_SHAPE_##shape, VPPS_CLASS_##op_class,                 \
                      VPPS_PER_##per, flops, backward_flops},
#define VPPS_0 0
#define VPPS_1 1
#define VPPS_2 2
#include "graph/ops.def"
#undef OP
};

vpps_status vpps_graph_create(vpps_graph **out, vpps_model *model) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_NEED(model);
    vpps_graph *g = calloc(1, sizeof *g);
    if (!g) return vpps_fail(VPPS_MEMORY, "graph: out of memory");
    g->model = model;
    *out = g;
    return VPPS_OK;
}

void vpps_free_cell(vpps_cell_data *c) {
    if (!c) return;
    void *parts[] = {c->name,      c->signatures, c->matrices,  c->nodes,        c->domain,
                     c->over_list, c->imm_pulled, c->args,      c->inputs,       c->scattered,
                     c->pushed,    c->outputs,    c->otherwise, c->index_limits, c};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
}

void vpps_graph_destroy(vpps_graph *g) {
    if (!g) return;
    vpps_free_cell(g->recording);
    void *parts[] = {g->signatures,      g->signature_table, g->matrices,   g->records,    g->record_nodes,
                     g->words,           g->vertices,        g->data,       g->flat.nodes, g->flat.args,
                     g->cell_signatures, g->cell_first,      g->node_record};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
    free(g);
}

vpps_node vpps_graph_fail(vpps_graph *g, vpps_status status, const char *format, ...) {
    if (g->status == VPPS_OK) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(g->message, sizeof g->message, format, arguments);
        va_end(arguments);
        g->status = status;
        vpps_restore_message(g->message);
    }
    return VPPS_NO_NODE;
}

vpps_status vpps_graph_status(const vpps_graph *g) {
    VPPS_NEED(g);
    if (g->status != VPPS_OK) vpps_restore_message(g->message);
    return g->status;
}

uint32_t vpps_graph_size(const vpps_graph *g) { return g->recording ? g->recording->n_nodes : g->n_nodes; }

/* ---------------------------------------------------------------- signatures */

static uint64_t hash_signature(const vpps_signature *s, const vpps_param *matrices) {
    uint32_t p_bits;
    memcpy(&p_bits, &s->p, sizeof p_bits);
    uint64_t h = vpps_mix64((uint64_t)s->op << 56 ^ (uint64_t)s->rows << 24 ^ s->cols);
    h = vpps_mix64(h ^ ((uint64_t)s->param << 32 | p_bits));
    h = vpps_mix64(h ^ s->n_matrices);
    for (uint32_t i = 0; i < s->n_matrices; i++) h = vpps_mix64(h ^ matrices[i]);
    return h;
}

static bool same_signature(const vpps_graph *g, const vpps_signature *a, const vpps_signature *b,
                           const vpps_param *b_matrices) {
    return a->op == b->op && a->rows == b->rows && a->cols == b->cols && a->param == b->param &&
           a->n_matrices == b->n_matrices && !memcmp(&a->p, &b->p, sizeof a->p) &&
           (!a->n_matrices || !memcmp(g->matrices + a->first_matrix, b_matrices, a->n_matrices * sizeof *b_matrices));
}

static void insert_signature(vpps_graph *g, uint32_t index) {
    const vpps_signature *s = &g->signatures[index];
    uint32_t mask = g->signature_table_size - 1;
    uint32_t at = (uint32_t)hash_signature(s, g->matrices + s->first_matrix) & mask;
    while (g->signature_table[at]) at = (at + 1) & mask;
    g->signature_table[at] = index + 1;
}

static bool rebuild_signature_table(vpps_graph *g, uint32_t size) {
    if (size != g->signature_table_size) {
        uint32_t *table = realloc(g->signature_table, size * sizeof *table);
        if (!table) return false;
        g->signature_table = table;
        g->signature_table_size = size;
    }
    memset(g->signature_table, 0, size * sizeof *g->signature_table);
    for (uint32_t i = 0; i < g->n_signatures; i++) insert_signature(g, i);
    return true;
}

/* The signature's index, new or known; UINT32_MAX (and the graph fails) when out of memory. `matrices` has
 * s->n_matrices members; s->first_matrix is set here. */
static uint32_t intern(vpps_graph *g, vpps_signature *s, const vpps_param *matrices) {
    if (g->n_signatures * 2 >= g->signature_table_size) {
        uint32_t size = g->signature_table_size ? g->signature_table_size * 2 : 128;
        if (!rebuild_signature_table(g, size)) goto out_of_memory;
    }
    uint32_t mask = g->signature_table_size - 1;
    for (uint32_t at = (uint32_t)hash_signature(s, matrices) & mask; g->signature_table[at]; at = (at + 1) & mask) {
        uint32_t index = g->signature_table[at] - 1;
        if (same_signature(g, &g->signatures[index], s, matrices)) return index;
    }
    if (!VPPS_RESERVE(g->signatures, g->signatures_capacity, g->n_signatures + 1u) ||
        !VPPS_RESERVE(g->matrices, g->matrices_capacity, g->n_matrices + s->n_matrices)) {
        goto out_of_memory;
    }
    s->first_matrix = (uint32_t)g->n_matrices;
    if (s->n_matrices) memcpy(g->matrices + g->n_matrices, matrices, s->n_matrices * sizeof *matrices);
    g->n_matrices += s->n_matrices;
    g->signatures[g->n_signatures] = *s;
    insert_signature(g, g->n_signatures);
    return g->n_signatures++;
out_of_memory:
    vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
    return UINT32_MAX;
}

/* A program that keeps inventing shapes must not grow the table for ever. */
enum { SPARE_SIGNATURES = 4096 };

void vpps_graph_clear(vpps_graph *g) {
    if (!g) return;
    if (g->recording) {
        vpps_graph_fail(g, VPPS_STATE, "clear: the cell %s is being recorded on this graph", g->recording->name);
        return;
    }
    g->status = VPPS_OK;
    g->n_nodes = 0;
    g->n_records = g->n_record_nodes = g->n_words = g->n_vertices = g->n_data = 0;
    g->flattened = g->decides = false;
    if (g->n_signatures > SPARE_SIGNATURES) {
        g->n_signatures = 0;
        g->n_matrices = g->n_cell_signatures = g->n_cell_first = 0;
        rebuild_signature_table(g, g->signature_table_size);
    }
}

/* ---------------------------------------------------------------- nodes */

/* Rows of the zeros that stand before a stack of members, which has so many; there are some even where none are missing. */
static uint32_t zero_rows(uint32_t rows, uint32_t most, uint32_t members) {
    return rows / most * vpps_max_u32(most - members, 1);
}

/* The template node of an applied cell with lists that became node `offset` of its record; *extra: it is one of those before it. */
static uint32_t template_of(const vpps_cell_data *c, uint32_t offset, const uint32_t *record, bool *extra) {
    *extra = false;
    uint32_t t = 0;
    for (uint32_t first = 0; t < c->n_nodes; t++) {
        first += vpps_extra_nodes(c, t);
        *extra = first > offset;
        first += vpps_members(record, c->domain[t]);
        if (first > offset) break;
    }
    return t;
}

/* The domain of an argument in a cell; of the list that a node over one goes over. */
static uint32_t domain_of(const vpps_cell_data *c, uint32_t a) {
    return a & VPPS_CELL_INPUT ? c->inputs[a & ~VPPS_CELL_INPUT].domain : c->domain[a];
}
static uint32_t list_below(const vpps_cell_data *c, uint32_t t) { return domain_of(c, c->args[c->nodes[t].args]); }

/* False: x is not a node (of the cell, while one is recorded). */
static bool find_signature(const vpps_graph *g, vpps_node x, vpps_signature *out, uint32_t *domain) {
    *domain = 0;
    if (g->recording) {
        const vpps_cell_data *c = g->recording;
        uint32_t input = x & ~VPPS_CELL_INPUT;
        if ((x & VPPS_CELL_INPUT) && input < c->n_inputs) {
            const vpps_cell_input *in = &c->inputs[input];
            *out = (vpps_signature){.op = VPPS_OP_GATHERED, .rows = in->rows, .cols = in->cols};
            *domain = in->domain;
            return true;
        }
        if (x >= c->n_nodes) return false;
        *out = g->signatures[c->nodes[x].signature];
        *domain = c->domain[x];
        return true;
    }
    if (x >= g->n_nodes) return false;
    const vpps_signature *plain = vpps_plain_signature(g, x);
    if (plain) return *out = *plain, true;
    const vpps_record *r = &g->records[g->node_record[x]];
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    bool extra;
    const uint32_t t = template_of(c, x - r->first, g->words + r->at, &extra);
    const vpps_flat_node *node = &c->nodes[t];
    *out = c->signatures[node->signature];
    if (!extra) return true;
    const uint32_t members = vpps_members(g->words + r->at, list_below(c, t));
    if (out->op == VPPS_OP_CONCAT) {
        out->op = VPPS_OP_CONSTANT;
        out->rows = zero_rows(out->rows, node->imm, members);
    } else { /* a vector of the members' scalars, or, of none, a zero */
        out->op = VPPS_OP_CONCAT;
        out->rows = vpps_max_u32(members, 1);
        out->cols = 1;
    }
    return true;
}

bool vpps_node_signature(vpps_graph *g, const char *what, vpps_node x, vpps_signature *out, uint32_t *domain) {
    if (find_signature(g, x, out, domain)) return true;
    if (g->recording) {
        vpps_graph_fail(g, VPPS_ARGUMENT, "%s: %u is not a node of the cell %s, which is being recorded", what, x,
                        g->recording->name);
    } else {
        vpps_graph_fail(g, VPPS_ARGUMENT, "%s: %u is not a node; the graph has %u", what, x, g->n_nodes);
    }
    return false;
}

vpps_status vpps_node_shape(const vpps_graph *g, vpps_node x, uint32_t *rows, uint32_t *cols) {
    VPPS_NEED(g);
    VPPS_NEED(rows);
    VPPS_NEED(cols);
    vpps_signature s;
    uint32_t domain;
    if (!find_signature(g, x, &s, &domain)) {
        return vpps_fail(VPPS_ARGUMENT, "node_shape: %u is not a node; the graph has %u", x, g->n_nodes);
    }
    *rows = s.rows;
    *cols = s.cols;
    return VPPS_OK;
}

static vpps_node add_template_node(vpps_graph *g, uint32_t signature, uint32_t n, const vpps_node *args, uint32_t imm,
                                   bool imm_pulled, uint32_t domain, bool over_list) {
    vpps_cell_data *c = g->recording;
    if (!VPPS_RESERVE(c->nodes, c->nodes_capacity, c->n_nodes + 1u) ||
        !VPPS_RESERVE(c->domain, c->domain_capacity, c->n_nodes + 1u) ||
        !VPPS_RESERVE(c->over_list, c->over_list_capacity, c->n_nodes + 1u) ||
        !VPPS_RESERVE(c->imm_pulled, c->imm_pulled_capacity, c->n_nodes + 1u) ||
        !VPPS_RESERVE(c->args, c->args_capacity, (size_t)c->n_args + n)) {
        return vpps_graph_fail(g, VPPS_MEMORY, "cell %s: out of memory", c->name);
    }
    c->nodes[c->n_nodes] = (vpps_flat_node){signature, c->n_args, n, imm};
    c->domain[c->n_nodes] = (uint8_t)domain;
    c->over_list[c->n_nodes] = over_list;
    c->imm_pulled[c->n_nodes] = imm_pulled;
    c->n_of_domain[domain]++;
    c->n_over_list += over_list;
    c->n_extra += vpps_extra_nodes(c, c->n_nodes);
    if (n) memcpy(c->args + c->n_args, args, n * sizeof *args);
    c->n_args += n;
    return c->n_nodes++;
}

vpps_node vpps_fail_lists(vpps_graph *g, const char *what, uint32_t a, uint32_t b) {
    return vpps_graph_fail(g, VPPS_SHAPE,
                           "%s: members of list %u and of list %u in cell %s; expected those of one list", what, a - 1,
                           b - 1, g->recording->name);
}

/* What of a recorded cell a node is one for. False: the graph has failed. */
static bool find_domain(vpps_graph *g, vpps_op op, uint32_t n, const vpps_node *args, uint32_t *domain) {
    vpps_cell_data *c = g->recording;
    const bool extreme = op == VPPS_OP_MAX_OF || op == VPPS_OP_MIN_OF;
    const bool of_all = extreme || op == VPPS_OP_SUM || op == VPPS_OP_AVERAGE;
    bool lists[VPPS_DOMAINS] = {false};
    *domain = 0;
    for (uint32_t i = 0; i < n; i++) {
        vpps_signature argument;
        uint32_t of;
        if (!vpps_node_signature(g, vpps_ops[op].name, args[i], &argument, &of)) return false;
        if (of && *domain && of != *domain && !of_all) return vpps_fail_lists(g, vpps_ops[op].name, *domain, of), false;
        if (of) *domain = of;
        lists[of] = true;
    }
    for (uint32_t d = 1; d < VPPS_DOMAINS && extreme && !lists[0]; d++)
        if (lists[d]) c->min_members[d] = 1;
    if (of_all) *domain = 0;
    return true;
}

vpps_node vpps_make_node(vpps_graph *g, vpps_signature *s, const vpps_param *matrices, uint32_t n,
                         const vpps_node *args, uint32_t imm, bool imm_pulled) {
    uint32_t domain = 0;
    if (g->recording && !find_domain(g, (vpps_op)s->op, n, args, &domain))
        return VPPS_NO_NODE; /* only a cell has lists */
    uint32_t signature = intern(g, s, matrices);
    if (signature == UINT32_MAX) return VPPS_NO_NODE;
    if (vpps_ops[s->op].op_class == VPPS_CLASS_DECIDED) *(g->recording ? &g->recording->decides : &g->decides) = true;
    if (g->recording) return add_template_node(g, signature, n, args, imm, imm_pulled, domain, false);
    if (g->n_nodes >= VPPS_CELL_INPUT - 1) return vpps_graph_fail(g, VPPS_ARGUMENT, "graph: more than 2^31 nodes");
    if (!VPPS_RESERVE(g->records, g->records_capacity, g->n_records + 1) ||
        !VPPS_RESERVE(g->record_nodes, g->record_nodes_capacity, g->n_record_nodes + 1) ||
        !VPPS_RESERVE(g->node_record, g->node_record_capacity, g->n_nodes + 1u) ||
        !VPPS_RESERVE(g->words, g->words_capacity, g->n_words + n)) {
        return vpps_graph_fail(g, VPPS_MEMORY, "graph: out of memory");
    }
    g->node_record[g->n_nodes] = (uint32_t)g->n_records;
    g->records[g->n_records++] = (vpps_record){VPPS_NODE_RECORD, g->n_nodes, (uint32_t)g->n_record_nodes};
    g->record_nodes[g->n_record_nodes++] = (vpps_flat_node){signature, (uint32_t)g->n_words, n, imm};
    if (n) memcpy(g->words + g->n_words, args, n * sizeof *args);
    g->n_words += n;
    g->flattened = false;
    return g->n_nodes++;
}

vpps_node vpps_make_over_list(vpps_graph *g, vpps_signature *s, uint32_t n, const vpps_node *args, uint32_t domain,
                              uint32_t most) {
    const uint32_t signature = intern(g, s, NULL);
    if (signature == UINT32_MAX) return VPPS_NO_NODE;
    uint32_t *known = &g->recording->most_members[domain];
    if (most) *known = *known ? vpps_min_u32(*known, most) : most;
    return add_template_node(g, signature, n, args, most, false, s->op == VPPS_OP_SOFTMAX ? domain : 0, true);
}

/* ---------------------------------------------------------------- flat form */

/* Dropout elements are numbered in node order, so that a node's mask does not depend on how work is scheduled. */
static void number_dropout(const vpps_graph *g, vpps_flat_node *node, uint64_t *elems) {
    const vpps_signature *s = &g->signatures[node->signature];
    if (s->op != VPPS_OP_DROPOUT) return;
    node->imm = (uint32_t)*elems;
    *elems += vpps_words(s);
}

/* The graph's signatures get those of a cell; where its list begins is noted. */
static bool intern_cell(vpps_graph *g, uint32_t cell) {
    const size_t n_cells = g->model->n_cells;
    const vpps_cell_data *c = vpps_cell_of(g, cell);
    if (!VPPS_RESERVE(g->cell_first, g->cell_first_capacity, n_cells) ||
        !VPPS_RESERVE(g->cell_signatures, g->cell_signatures_capacity, g->n_cell_signatures + c->n_signatures)) {
        return false;
    }
    for (; g->n_cell_first < n_cells; g->n_cell_first++) g->cell_first[g->n_cell_first] = UINT32_MAX;
    if (g->cell_first[cell] != UINT32_MAX) return true;
    for (uint32_t i = 0; i < c->n_signatures; i++) {
        vpps_signature s = c->signatures[i];
        const uint32_t index = intern(g, &s, c->matrices + s.first_matrix);
        if (index == UINT32_MAX) return false;
        g->cell_signatures[g->n_cell_signatures + i] = index;
    }
    g->cell_first[cell] = (uint32_t)g->n_cell_signatures;
    g->n_cell_signatures += c->n_signatures;
    return true;
}

/* A cell without lists: node t of the template is node first + t, so arguments are moved by addition. */
static void expand_plain(const vpps_graph *g, const vpps_record *r, vpps_flat *flat, uint64_t *dropout) {
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    const uint32_t *signatures = g->cell_signatures + g->cell_first[r->cell];
    const uint32_t *inputs = g->words + r->at + 1, *indices = inputs + c->n_inputs;
    uint32_t first_arg = (uint32_t)flat->n_args, first = flat->n_nodes;
    for (uint32_t t = 0; t < c->n_nodes; t++) {
        vpps_flat_node *node = &flat->nodes[first + t];
        *node = c->nodes[t];
        node->signature = signatures[node->signature];
        node->args += first_arg;
        if (c->imm_pulled[t]) node->imm = indices[node->imm];
        number_dropout(g, node, dropout);
    }
    for (uint32_t i = 0; i < c->n_args; i++) {
        uint32_t a = c->args[i];
        flat->args[first_arg + i] = a & VPPS_CELL_INPUT ? inputs[a & ~VPPS_CELL_INPUT] : first + a;
    }
    flat->n_nodes += c->n_nodes;
    flat->n_args += c->n_args;
}

/* Where a template argument's value (member `member` of it, when it is a list) is. */
typedef struct expansion {
    const vpps_cell_data *cell;
    const uint32_t *record, *inputs;
    uint32_t first;
} expansion;

static uint32_t members_of(const expansion *e, uint32_t a) { return vpps_members(e->record, domain_of(e->cell, a)); }

static uint32_t resolve(const expansion *e, uint32_t a, uint32_t member) {
    const uint32_t origin = a & VPPS_CELL_INPUT, n = a & ~VPPS_CELL_INPUT;
    uint32_t at = domain_of(e->cell, a) ? member : 0;
    for (uint32_t i = 0; i < n; i++) at += members_of(e, origin | i);
    if (origin) return e->inputs[at];
    for (uint32_t i = 0; i <= n; i++) at += vpps_extra_nodes(e->cell, i);
    return e->first + at;
}

static vpps_flat_node *add_flat(vpps_flat *flat, uint32_t signature, uint32_t imm) {
    flat->nodes[flat->n_nodes] = (vpps_flat_node){signature, (uint32_t)flat->n_args, 0, imm};
    return &flat->nodes[flat->n_nodes++];
}

static void add_flat_arg(vpps_flat *flat, vpps_flat_node *node, uint32_t arg) {
    flat->args[flat->n_args++] = arg;
    node->n_args++;
}

static uint32_t plain_signature(vpps_graph *g, vpps_op op, uint32_t rows, uint32_t cols) {
    vpps_signature s = {.op = (uint8_t)op, .rows = rows, .cols = cols, .param = VPPS_NO_PARAM};
    return intern(g, &s, NULL);
}

/* n nodes of zeros, in the place of what is made of no members. False: out of memory. */
static bool add_zeros(vpps_graph *g, uint32_t n, uint32_t rows, uint32_t cols) {
    const uint32_t signature = plain_signature(g, VPPS_OP_CONSTANT, rows, cols);
    for (uint32_t i = 0; i < n && signature != UINT32_MAX; i++) add_flat(&g->flat, signature, 0);
    return signature != UINT32_MAX;
}

/* The members of a list of scalars on top of each other. */
static bool add_stack(vpps_graph *g, const expansion *e, uint32_t list) {
    const uint32_t members = members_of(e, list), signature = plain_signature(g, VPPS_OP_CONCAT, members, 1);
    if (signature == UINT32_MAX) return false;
    vpps_flat_node *stack = add_flat(&g->flat, signature, 0);
    for (uint32_t k = 0; k < members; k++) add_flat_arg(&g->flat, stack, resolve(e, list, k));
    return true;
}

/* The members on top of each other, and zeros where there are less than `most`. */
static bool add_padded_stack(vpps_graph *g, const expansion *e, uint32_t list, uint32_t most, uint32_t signature) {
    vpps_flat *flat = &g->flat;
    const uint32_t rows = g->signatures[signature].rows, cols = g->signatures[signature].cols;
    const uint32_t members = members_of(e, list);
    if (!add_zeros(g, 1, zero_rows(rows, most, members), cols)) return false;
    vpps_flat_node *stack = add_flat(flat, signature, 0);
    for (uint32_t k = 0; k < members; k++) add_flat_arg(flat, stack, resolve(e, list, k));
    if (members < most) add_flat_arg(flat, stack, flat->n_nodes - 2);
    return true;
}

static bool expand_over_list(vpps_graph *g, const expansion *e, uint32_t t, uint32_t signature) {
    vpps_flat *flat = &g->flat;
    const uint32_t *args = e->cell->args + e->cell->nodes[t].args;
    const uint32_t rows = g->signatures[signature].rows, cols = g->signatures[signature].cols;
    const uint32_t members = members_of(e, args[0]);
    const bool softmax = g->signatures[signature].op == VPPS_OP_SOFTMAX;
    if (g->signatures[signature].op == VPPS_OP_CONCAT)
        return add_padded_stack(g, e, args[0], e->cell->nodes[t].imm, signature);
    if (!members) return add_zeros(g, softmax ? 2 : 1, 1, 1) && (softmax || add_zeros(g, 1, rows, cols));
    if (!add_stack(g, e, args[0])) return false;
    const uint32_t stack = flat->n_nodes - 1;
    if (!softmax) {
        vpps_flat_node *sum = add_flat(flat, signature, 0);
        add_flat_arg(flat, sum, stack);
        for (uint32_t k = 0; k < members; k++) add_flat_arg(flat, sum, resolve(e, args[1], k));
        return true;
    }
    const uint32_t of_all = plain_signature(g, VPPS_OP_SOFTMAX, members, 1);
    const uint32_t of_one = plain_signature(g, VPPS_OP_SLICE, 1, 1);
    if (of_all == UINT32_MAX || of_one == UINT32_MAX) return false;
    add_flat_arg(flat, add_flat(flat, of_all, 0), stack);
    for (uint32_t k = 0; k < members; k++) add_flat_arg(flat, add_flat(flat, of_one, k), stack + 1);
    return true;
}

static bool expand_lists(vpps_graph *g, const vpps_record *r, uint64_t *dropout) {
    vpps_flat *flat = &g->flat;
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    const uint32_t *signatures = g->cell_signatures + g->cell_first[r->cell];
    const uint32_t *record = g->words + r->at;
    const expansion e = {c, record, record + vpps_list_words(c), r->first};
    const uint32_t *indices = e.inputs + vpps_input_nodes(c, record);
    for (uint32_t t = 0; t < c->n_nodes; t++) {
        const uint32_t signature = signatures[c->nodes[t].signature];
        if (c->over_list[t]) {
            if (!expand_over_list(g, &e, t, signature)) return false;
            continue;
        }
        for (uint32_t member = 0; member < vpps_members(record, c->domain[t]); member++) {
            vpps_flat_node *node = add_flat(flat, signature, c->nodes[t].imm);
            if (c->imm_pulled[t]) node->imm = indices[node->imm];
            number_dropout(g, node, dropout);
            for (uint32_t i = 0; i < c->nodes[t].n_args; i++) {
                const uint32_t a = c->args[c->nodes[t].args + i];
                const uint32_t n = c->domain[t] ? 1 : members_of(&e, a); /* an n-ary op takes all members */
                for (uint32_t j = 0; j < n; j++) add_flat_arg(flat, node, resolve(&e, a, c->domain[t] ? member : j));
            }
            if (!c->nodes[t].n_args || node->n_args) continue;
            flat->n_nodes--; /* a sum of no members */
            if (!add_zeros(g, 1, g->signatures[signature].rows, g->signatures[signature].cols)) return false;
        }
    }
    return true;
}

/* An upper bound of the arguments a record's nodes have. */
static size_t args_of(const vpps_graph *g, const vpps_record *r) {
    if (r->cell == VPPS_NODE_RECORD) return g->record_nodes[r->at].n_args;
    const vpps_cell_data *c = vpps_cell_of(g, r->cell);
    uint32_t most = 1;
    for (uint32_t d = 1; d <= c->n_lists; d++) most = vpps_max_u32(most, vpps_members(g->words + r->at, d));
    return ((size_t)c->n_args + 2u * c->n_over_list) * most + c->n_over_list;
}

vpps_status vpps_graph_flatten(vpps_graph *g) {
    if (g->status != VPPS_OK) return vpps_graph_status(g);
    if (g->recording) return vpps_fail(VPPS_STATE, "graph: the cell %s is still being recorded", g->recording->name);
    if (g->flattened) return VPPS_OK;
    vpps_flat *flat = &g->flat;
    size_t n_args = 0;
    for (size_t i = 0; i < g->n_records; i++) {
        const uint32_t cell = g->records[i].cell;
        n_args += args_of(g, &g->records[i]);
        if (cell == VPPS_NODE_RECORD || (cell < g->n_cell_first && g->cell_first[cell] != UINT32_MAX)) continue;
        if (!intern_cell(g, cell)) return vpps_fail(VPPS_MEMORY, "graph: out of memory");
    }
    flat->n_nodes = 0;
    flat->n_args = 0;
    if (n_args > UINT32_MAX || !VPPS_RESERVE(flat->nodes, flat->nodes_capacity, g->n_nodes) ||
        !VPPS_RESERVE(flat->args, flat->args_capacity, n_args)) {
        return vpps_fail(VPPS_MEMORY, "graph: out of memory for %u nodes and %zu arguments", g->n_nodes, n_args);
    }
    uint64_t dropout = 0;
    for (size_t i = 0; i < g->n_records; i++) {
        const vpps_record *r = &g->records[i];
        if (r->cell == VPPS_NODE_RECORD) {
            vpps_flat_node *node = &flat->nodes[flat->n_nodes++];
            *node = g->record_nodes[r->at];
            uint32_t args = node->args;
            node->args = (uint32_t)flat->n_args;
            for (uint32_t k = 0; k < node->n_args; k++) flat->args[flat->n_args++] = g->words[args + k];
            number_dropout(g, node, &dropout);
        } else if (vpps_cell_of(g, r->cell)->n_lists) {
            if (!expand_lists(g, r, &dropout)) return vpps_graph_status(g);
        } else {
            expand_plain(g, r, flat, &dropout);
        }
    }
    g->dropout_elems = dropout;
    if (dropout > UINT32_MAX) return vpps_fail(VPPS_ARGUMENT, "graph: more than 2^32 elements under dropout");
    g->flattened = true;
    return VPPS_OK;
}
