/* verify_graph.c - what graph and request demand: which nodes, which gradients from which contributions, which
 * updates; and whether the layout gives them room. Nothing here looks at the script's instructions. */
#include "nodes/verify/verify.h"

static const char *op_name(const vpps_verifier *v, uint32_t node) {
    return vpps_ops[vpps_verify_signature(v, node)->op].name;
}

static bool is_source_in_place(uint8_t op) { return op == VPPS_OP_LOOKUP || op == VPPS_OP_PARAMETER; }

static bool is_own_node(const vpps_verifier *v, uint32_t node) { return node < v->n_nodes; }

/* ---------------------------------------------------------------- needed, trainable, wanted */

static bool mark_nodes(vpps_verifier *v) {
    bool *reached = vpps_verify_zeros(v, v->n_nodes, sizeof *reached);
    if (!reached) return false;
    if (v->training) {
        if (!is_own_node(v, v->request->loss)) return VPPS_REFUSE(v, "the loss is not a node of the graph");
        v->needed[v->request->loss] = reached[v->request->loss] = true;
    }
    for (uint32_t i = 0; i < v->request->n_outputs; i++) {
        if (!is_own_node(v, v->request->outputs[i])) return VPPS_REFUSE(v, "an output is not a node of the graph");
        v->needed[v->request->outputs[i]] = true;
    }
    for (uint32_t x = v->n_nodes; x-- > 0;) {
        for (uint32_t i = 0; v->needed[x] && i < v->nodes[x].n_args; i++) {
            v->needed[vpps_verify_arg(v, x, i)] = true;
            if (reached[x]) reached[vpps_verify_arg(v, x, i)] = true;
        }
    }
    for (uint32_t x = 0; x < v->n_nodes; x++) {
        const vpps_signature *s = vpps_verify_signature(v, x);
        bool trainable = s->param != VPPS_NO_PARAM && !v->params[s->param].frozen;
        for (uint32_t i = 0; i < s->n_matrices; i++)
            trainable |= !v->params[v->g->matrices[s->first_matrix + i]].frozen;
        for (uint32_t i = 0; i < v->nodes[x].n_args; i++) trainable |= v->trainable[vpps_verify_arg(v, x, i)];
        v->trainable[x] = trainable;
        /* what needs none may have one all the same, as its neighbours in a list do; nothing depends on it */
        v->wanted[x] = reached[x] && (trainable || v->gradients[x] != VPPS_NO_OFFSET);
    }
    return true;
}

/* ---------------------------------------------------------------- where values lie */

static uint64_t value_extent(const vpps_verifier *v, uint32_t x) {
    bool indexed = strchr(vpps_op_instructions[vpps_verify_signature(v, x)->op].forward_operands, 'i') != NULL;
    return (uint64_t)vpps_verify_words(v, x) * (indexed ? 2 : 1);
}

static bool in_batch(const vpps_verifier *v, uint32_t offset, uint64_t words) {
    return offset >= v->plan->batch && offset + words <= v->pool_words;
}

static bool check_value_place(vpps_verifier *v, uint32_t x) {
    const vpps_signature *s = vpps_verify_signature(v, x);
    if (is_source_in_place(s->op)) {
        uint32_t row = s->op == VPPS_OP_LOOKUP ? v->nodes[x].imm : 0;
        uint64_t place = v->plan->values[s->param] + (uint64_t)row * vpps_verify_words(v, x);
        if (row >= v->params[s->param].count || v->values[x] != place) {
            return VPPS_REFUSE(v, "value of node %u (%s) lies at %u, its parameter at %" PRIu64, x, op_name(v, x),
                               v->values[x], place);
        }
    } else if (v->same_value[x] == x && !in_batch(v, v->values[x], value_extent(v, x))) {
        return VPPS_REFUSE(v, "value of node %u (%s) at %u lies outside the batch's words %u to %u", x, op_name(v, x),
                           v->values[x], v->plan->batch, v->pool_words);
    }
    return true;
}

/* Without training dropout does nothing, so its value may be its argument's. */
static bool place_values(vpps_verifier *v) {
    uint64_t bits = v->n_bits;
    for (uint32_t x = 0; x < v->n_nodes; x++) {
        v->same_value[x] = x;
        if (!v->training && vpps_verify_signature(v, x)->op == VPPS_OP_DROPOUT && v->needed[x] &&
            v->values[x] == v->values[vpps_verify_arg(v, x, 0)]) {
            v->same_value[x] = v->same_value[vpps_verify_arg(v, x, 0)];
        }
        if (v->needed[x] && !check_value_place(v, x)) return false;
        v->value_bits[x] = (int64_t)bits;
        bits += vpps_verify_words(v, x);
    }
    v->n_bits = bits;
    return true;
}

/* ---------------------------------------------------------------- slots of gradients */

static uint32_t row_hash(uint32_t table, uint32_t row) { return (uint32_t)vpps_mix64((uint64_t)table << 32 | row); }

static vpps_row_entry *find_row(const vpps_verifier *v, uint32_t table, uint32_t row) {
    uint32_t mask = v->row_table_size - 1, at = row_hash(table, row) & mask;
    while (v->rows[at].slot != UINT32_MAX && (v->rows[at].table != table || v->rows[at].row != row)) {
        at = (at + 1) & mask;
    }
    return &v->rows[at];
}

uint32_t vpps_verify_row(const vpps_verifier *v, uint32_t table, uint32_t row) { return find_row(v, table, row)->slot; }

static uint32_t slot_for(vpps_verifier *v, uint32_t x) {
    const vpps_signature *s = vpps_verify_signature(v, x);
    if (s->op == VPPS_OP_PARAMETER) return v->n_nodes + s->param;
    if (s->op != VPPS_OP_LOOKUP || !v->trainable[x]) return x;
    vpps_row_entry *entry = find_row(v, s->param, v->nodes[x].imm);
    if (entry->slot == UINT32_MAX) {
        *entry = (vpps_row_entry){s->param, v->nodes[x].imm, x};
        v->slots[x].row = v->n_rows++;
    }
    return entry->slot;
}

static bool make_slots(vpps_verifier *v) {
    for (uint32_t p = 0; p < v->n_params; p++) {
        vpps_slot *slot = &v->slots[v->n_nodes + p];
        if (v->params[p].kind != VPPS_VECTOR) continue;
        *slot = (vpps_slot){.root = v->n_nodes + p,
                            .start = v->plan->gradients[p],
                            .words = v->params[p].rows,
                            .required = v->training && !v->params[p].frozen};
    }
    for (uint32_t x = 0; x < v->n_nodes; x++) {
        v->slot_of[x] = UINT32_MAX;
        if (!v->wanted[x]) continue;
        uint32_t slot = v->slot_of[x] = slot_for(v, x);
        if (slot == x) {
            uint32_t row = v->slots[x].row;
            v->slots[x] = (vpps_slot){.root = x,
                                      .start = v->gradients[x],
                                      .words = vpps_verify_words(v, x),
                                      .row = row,
                                      .required = v->trainable[x]};
            if (!in_batch(v, v->gradients[x], v->slots[x].words)) {
                return VPPS_REFUSE(v, "gradient of node %u (%s) at %u lies outside the batch's words %u to %u", x,
                                   op_name(v, x), v->gradients[x], v->plan->batch, v->pool_words);
            }
        } else if (v->gradients[x] != v->slots[slot].start) {
            return VPPS_REFUSE(v, "gradient of node %u (%s) lies at %u, that of its parameter at %u", x, op_name(v, x),
                               v->gradients[x], v->slots[slot].start);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- edges: contributions to gradients */

uint32_t vpps_verify_backward(const vpps_verifier *v, uint32_t node, uint32_t i, const char **operands) {
    const vpps_op_row *row = &vpps_ops[vpps_verify_signature(v, node)->op];
    const vpps_op_instruction_row *how = &vpps_op_instructions[vpps_verify_signature(v, node)->op];
    if (row->shape == VPPS_SHAPE_WEIGHTED && i == 0) { /* one product for each weight */
        *operands = "dX";
        return VPPS_I_DOT;
    }
    uint32_t which = row->max_args == VPPS_MANY ? 0 : i & 1;
    *operands = how->backward_operands[which];
    return how->backward[which];
}

uint32_t vpps_verify_expected(const vpps_verifier *v, uint32_t slot, uint32_t e) {
    uint32_t expected = v->slots[slot].expected;
    for (uint32_t at = v->slots[slot].slices; at; at = v->edges[at - 1].next) {
        const uint32_t node = v->edges[at - 1].node;
        uint32_t row = e % vpps_verify_signature(v, vpps_verify_arg(v, node, 0))->rows;
        expected += row - v->nodes[node].imm < vpps_verify_signature(v, node)->rows;
    }
    return expected;
}

/* Is argument i's contribution the node's gradient itself? */
static bool is_copied(const vpps_verifier *v, uint32_t node, uint32_t i) {
    const char *operands;
    return vpps_ops[vpps_verify_signature(v, node)->op].op_class == VPPS_CLASS_EW &&
           vpps_verify_backward(v, node, i, &operands) == VPPS_I_COPY;
}

static bool count_edges(vpps_verifier *v) {
    uint64_t n = 0;
    for (uint32_t x = 0; x < v->n_nodes; x++) {
        v->edge_first[x] = (uint32_t)n;
        n += v->nodes[x].n_args + (vpps_verify_signature(v, x)->op == VPPS_OP_AFFINE);
    }
    if (n >= VPPS_TOKEN_LIMIT) return VPPS_REFUSE(v, "the graph has too many arguments to be verified");
    v->edge_first[v->n_nodes] = (uint32_t)n;
    v->edge_table_size = 16;
    while (v->edge_table_size < n) v->edge_table_size *= 2;
    v->edges = vpps_verify_zeros(v, n, sizeof *v->edges);
    v->edge_table = vpps_verify_zeros(v, v->edge_table_size, sizeof *v->edge_table);
    return v->edges && v->edge_table;
}

/* Which slots share memory: last users first, so that chains of sums resolve. */
static void find_roots(vpps_verifier *v) {
    for (uint32_t c = 0; c < v->n_nodes; c++) {
        for (uint32_t i = 0; v->wanted[c] && i < v->nodes[c].n_args; i++) {
            uint32_t slot = v->slot_of[vpps_verify_arg(v, c, i)];
            if (slot != UINT32_MAX) v->slots[slot].uses++;
        }
    }
    if (v->training && v->slot_of[v->request->loss] != UINT32_MAX) v->slots[v->slot_of[v->request->loss]].uses++;
    for (uint32_t c = v->n_nodes; c-- > 0;) {
        for (uint32_t i = 0; v->wanted[c] && i < v->nodes[c].n_args; i++) {
            uint32_t slot = v->slot_of[vpps_verify_arg(v, c, i)];
            if (slot == UINT32_MAX || slot >= v->n_nodes || v->slots[slot].uses != 1 || !is_copied(v, c, i)) continue;
            if (v->slots[slot].start == v->gradients[c] && v->slots[slot].words == vpps_verify_words(v, c)) {
                v->slots[slot].root = v->slots[v->slot_of[c]].root;
            }
        }
    }
}

uint32_t vpps_verify_edge_key(const vpps_verifier *v, uint32_t opcode, uint32_t to, uint32_t from) {
    uint64_t key = vpps_mix64(((uint64_t)to << 32 | from) + (uint64_t)opcode * 0x9e3779b97f4a7c15u);
    return (uint32_t)key & (v->edge_table_size - 1);
}

/* Puts an edge where the instruction that carries it out will look: by opcode and by where the gradients lie. */
static void index_edge(vpps_verifier *v, uint32_t edge, uint32_t c, uint32_t i) {
    vpps_op_class op_class = vpps_ops[vpps_verify_signature(v, c)->op].op_class;
    if (op_class == VPPS_CLASS_AFFINE) return; /* found through bundles */
    const char *operands;
    uint32_t opcode = vpps_verify_backward(v, c, i, &operands);
    uint32_t to = v->slots[v->edges[edge].slot].start;
    uint32_t from = op_class == VPPS_CLASS_PARTS ? (uint32_t)VPPS_PARTS_KEY : v->gradients[c];
    uint32_t *head = &v->edge_table[vpps_verify_edge_key(v, opcode, to, from)];
    v->edges[edge].next = *head;
    *head = edge + 1;
}

static void add_edge(vpps_verifier *v, uint32_t c, uint32_t i, uint32_t slot) {
    uint32_t edge = v->edge_first[c] + i;
    vpps_slot *s = &v->slots[slot], *root = &v->slots[s->root];
    v->edges[edge].slot = slot;
    if (s->root != slot && v->slots[v->slot_of[c]].root == s->root) return; /* nothing to be done */
    v->edges[edge].bits = (int64_t)v->n_bits;
    if (vpps_verify_signature(v, c)->op == VPPS_OP_SLICE) {
        v->n_bits += vpps_verify_words(v, c);
        v->edges[edge].next = root->slices;
        root->slices = edge + 1;
    } else {
        v->n_bits += s->words;
        root->expected++;
        index_edge(v, edge, c, i);
    }
}

/* The matrices' and the bias's share of an affine node. */
static void add_parameter_edges(vpps_verifier *v, uint32_t c) {
    const vpps_signature *s = vpps_verify_signature(v, c);
    for (uint32_t i = 0; i < s->n_matrices; i++) {
        uint32_t matrix = v->g->matrices[s->first_matrix + i];
        v->edges[v->edge_first[c] + i].outer = (int64_t)v->n_bits;
        v->n_bits += (uint64_t)s->cols * v->n_vps;
        v->outer_expected[matrix] += s->cols;
        v->updated_param[matrix] = !v->params[matrix].frozen;
    }
    if (s->param == VPPS_NO_PARAM) return;
    uint32_t edge = v->edge_first[c] + v->nodes[c].n_args, slot = v->n_nodes + s->param;
    v->edges[edge].slot = slot;
    v->edges[edge].bits = (int64_t)v->n_bits;
    v->n_bits += vpps_words(s);
    v->slots[slot].expected += s->cols;
    v->updated_param[s->param] = !v->params[s->param].frozen;
}

static bool make_edges(vpps_verifier *v) {
    if (!count_edges(v)) return false;
    find_roots(v);
    for (uint32_t c = 0; c < v->n_nodes; c++) {
        const vpps_signature *s = vpps_verify_signature(v, c);
        for (uint32_t e = v->edge_first[c]; e < v->edge_first[c + 1]; e++) {
            v->edges[e] = (vpps_edge){.node = c, .slot = UINT32_MAX, .bits = VPPS_NO_BITS, .outer = VPPS_NO_BITS};
        }
        if (!v->wanted[c]) continue;
        for (uint32_t i = 0; i < v->nodes[c].n_args; i++) {
            uint32_t slot = v->slot_of[vpps_verify_arg(v, c, i)];
            if (slot != UINT32_MAX) add_edge(v, c, i, slot);
        }
        if (s->op == VPPS_OP_AFFINE) add_parameter_edges(v, c);
        if (s->op == VPPS_OP_PARAMETER) v->updated_param[s->param] = !v->params[s->param].frozen;
    }
    if (v->training && v->slot_of[v->request->loss] != UINT32_MAX) {
        v->slots[v->slots[v->slot_of[v->request->loss]].root].expected++; /* the seed, 1 */
    }
    return true;
}

/* ---------------------------------------------------------------- regions: from an offset to nodes */

typedef struct vpps_place {
    uint32_t start, words, node;
} vpps_place;

static int compare_places(const void *a, const void *b) {
    const vpps_place *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->words != y->words) return x->words < y->words ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static bool make_regions(vpps_verifier *v, vpps_regions *regions, vpps_place *places, uint32_t n) {
    qsort(places, n, sizeof *places, compare_places);
    regions->at = vpps_verify_zeros(v, n, sizeof *regions->at);
    regions->nodes = vpps_verify_zeros(v, n, sizeof *regions->nodes);
    if (!regions->at || !regions->nodes) return false;
    for (uint32_t i = 0; i < n; i++) {
        vpps_region *last = regions->n ? &regions->at[regions->n - 1] : NULL;
        regions->nodes[i] = places[i].node;
        if (last && last->start == places[i].start && last->words == places[i].words) {
            last->n++;
            continue;
        }
        uint32_t end = places[i].start + places[i].words, reach = last ? last->reach : 0;
        regions->at[regions->n++] = (vpps_region){places[i].start, places[i].words, i, 1, vpps_max_u32(end, reach)};
    }
    return true;
}

bool vpps_verify_region(const vpps_regions *regions, uint32_t offset, uint32_t *from) {
    uint32_t i = *from;
    if (i == regions->n) { /* the last one that starts at or before the offset */
        uint32_t low = 0, high = regions->n;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (regions->at[middle].start <= offset)
                low = middle + 1;
            else
                high = middle;
        }
        i = low;
    }
    while (i > 0 && regions->at[i - 1].reach > offset) {
        i--;
        if (offset - regions->at[i].start < regions->at[i].words) {
            *from = i;
            return true;
        }
    }
    return false;
}

static bool index_memory(vpps_verifier *v) {
    uint32_t n = 0;
    vpps_place *places = vpps_verify_zeros(v, (uint64_t)v->n_nodes + v->n_params, sizeof *places);
    if (!places) return false;
    for (uint32_t x = 0; x < v->n_nodes; x++) {
        if (!v->needed[x] || is_source_in_place(vpps_verify_signature(v, x)->op) || v->same_value[x] != x) continue;
        places[n++] = (vpps_place){v->values[x], vpps_verify_words(v, x), x};
    }
    if (!make_regions(v, &v->value_regions, places, n)) return false;
    n = 0;
    for (uint32_t slot = 0; slot < v->n_nodes + v->n_params; slot++) {
        bool used = slot < v->n_nodes ? v->slot_of[slot] == slot : v->slots[slot].words > 0 && v->training;
        if (used) places[n++] = (vpps_place){v->slots[slot].start, v->slots[slot].words, slot};
    }
    return make_regions(v, &v->gradient_regions, places, n);
}

/* ---------------------------------------------------------------- all of it */

static bool take_tables(vpps_verifier *v) {
    uint32_t n = v->n_nodes;
    v->needed = vpps_verify_zeros(v, n, sizeof *v->needed);
    v->trainable = vpps_verify_zeros(v, n, sizeof *v->trainable);
    v->wanted = vpps_verify_zeros(v, n, sizeof *v->wanted);
    v->same_value = vpps_verify_zeros(v, n, sizeof *v->same_value);
    v->slot_of = vpps_verify_zeros(v, n, sizeof *v->slot_of);
    v->edge_first = vpps_verify_zeros(v, (uint64_t)n + 1, sizeof *v->edge_first);
    v->value_bits = vpps_verify_zeros(v, n, sizeof *v->value_bits);
    v->slots = vpps_verify_zeros(v, (uint64_t)n + v->n_params, sizeof *v->slots);
    v->outer_expected = vpps_verify_zeros(v, v->n_params, sizeof *v->outer_expected);
    v->updated_param = vpps_verify_zeros(v, v->n_params, sizeof *v->updated_param);
    v->row_table_size = 16;
    while (v->row_table_size < (uint64_t)n * 2) v->row_table_size *= 2;
    v->rows = vpps_verify_zeros(v, v->row_table_size, sizeof *v->rows);
    if (v->status != VPPS_OK) return false;
    memset(v->rows, 0xff, v->row_table_size * sizeof *v->rows);
    return true;
}

/* Where instructions name the gradient that goes back: it leads to the edge. */
static void find_gradient_operands(vpps_verifier *v) {
    for (uint32_t op = 0; op < VPPS_OP_COUNT; op++) {
        for (uint32_t i = 0; i < 2; i++) {
            const vpps_op_instruction_row *how = &vpps_op_instructions[op];
            const char *d = strchr(how->backward_operands[i], 'd');
            if (d) v->gradient_operand[how->backward[i]] |= 1u << (d - how->backward_operands[i]);
        }
    }
    v->gradient_operand[VPPS_I_DOT] |= 1; /* of a weighted sum's weights */
}

bool vpps_verify_demands(vpps_verifier *v) {
    find_gradient_operands(v);
    if (!take_tables(v) || !mark_nodes(v) || !place_values(v) || !make_slots(v) || !make_edges(v)) return false;
    v->row_normed = (int64_t)v->n_bits;
    v->n_bits += (uint64_t)v->n_rows * v->n_vps;
    v->row_updated = (int64_t)v->n_bits;
    v->n_bits += (uint64_t)v->n_rows * v->n_vps;
    v->done = vpps_verify_zeros(v, v->n_bits / 64 + 1, sizeof *v->done);
    return v->done && index_memory(v);
}
