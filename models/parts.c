/* parts.c - the functions that networks share: parameters, the classifier, trees, memory. */
#include "parts.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- parameters */

const vpps_init part_small = {.kind = VPPS_INIT_UNIFORM, .a = -0.05f, .b = 0.05f};
const vpps_init part_one = {.kind = VPPS_INIT_CONSTANT, .a = 1.0f};

vpps_status parts_declare(vpps_model *model, const part_parameter *parameters, size_t n) {
    for (const part_parameter *p = parameters; p < parameters + n; p++) {
        PART_TRY(p->count ? vpps_add_lookup(model, p->param, p->name, p->count, p->rows, p->cols ? p->cols : 1, p->init)
                 : p->cols ? vpps_add_matrix(model, p->param, p->name, p->rows, p->cols, p->init)
                           : vpps_add_vector(model, p->param, p->name, p->rows, p->init));
    }
    return VPPS_OK;
}

part_name part_layer_name(const char *name, uint32_t layer) {
    part_name n;
    snprintf(n.text, sizeof n.text, layer ? "%s%u" : "%s", name, layer + 1);
    return n;
}

vpps_status parts_declare_layer(vpps_model *model, const char *name, uint32_t layer, const part_parameter *parameters,
                                size_t n) {
    for (const part_parameter *p = parameters; p < parameters + n; p++) {
        char text[96];
        part_parameter named = *p;
        snprintf(text, sizeof text, "%s.%s", part_layer_name(name, layer).text, p->name);
        named.name = text;
        PART_TRY(parts_declare(model, &named, 1));
    }
    return VPPS_OK;
}

vpps_status part_gates_declare(part_gates *p, vpps_model *model, const char *name, const char *gates, uint32_t inputs,
                               uint32_t hidden) {
    for (int k = 0; gates[k]; k++) {
        char names[3][96];
        for (int i = 0; i < 3; i++)
            snprintf(names[i], sizeof names[i], "%s%s%c_%c", name, *name ? "." : "", "WUb"[i], gates[k]);
        const part_parameter parameters[] = {
            {&p->W[k], names[0], 0, hidden, inputs, NULL},
            {&p->U[k], names[1], 0, hidden, hidden, NULL},
            {&p->b[k], names[2], 0, hidden, 0, gates[k] == 'f' ? &part_one : NULL},
        };
        PART_TRY(parts_declare(model, parameters, PART_COUNT(parameters)));
    }
    return VPPS_OK;
}

vpps_node part_gate(const part_gates *p, vpps_graph *g, int k, vpps_node x, vpps_node h) {
    return vpps_affine2(g, p->b[k], p->W[k], x, p->U[k], h);
}

vpps_status part_pairs_declare(part_pair *U, vpps_model *model, const char *const *gates, size_t n, uint32_t size,
                               const char *suffix) {
    for (size_t i = 0; i < 2 * n; i++) {
        char name[32];
        snprintf(name, sizeof name, "U_%s%c%s", gates[i / 2], "lr"[i % 2], suffix);
        PART_TRY(vpps_add_matrix(model, &U[i / 2][i % 2], name, size, size, NULL));
    }
    return VPPS_OK;
}

vpps_node part_dropout(const net_config *c, vpps_graph *g, vpps_node x) {
    return c->dropout > 0 ? vpps_dropout(g, x, c->dropout) : x;
}

/* ---------------------------------------------------------------- the classifier */

vpps_status part_classifier_declare(part_classifier *c, vpps_model *model, const net_config *config, uint32_t inputs,
                                    uint32_t mlp) {
    const uint32_t last = mlp ? mlp : inputs, classes = config->classes;
    const part_parameter all[] = {
        {&c->W_h, "W_h", 0, mlp, inputs, NULL},
        {&c->b_h, "b_h", 0, mlp, 0, NULL},
        {&c->W_s, "W_s", 0, classes, last, NULL},
        {&c->b_s, "b_s", 0, classes, 0, NULL},
    };
    c->config = config;
    c->inputs = inputs;
    c->mlp = mlp;
    return mlp ? parts_declare(model, all, 4) : parts_declare(model, all + 2, 2);
}

static vpps_node pull_input(const part_classifier *c, vpps_graph *g) {
    enum { MOST = 4 };
    vpps_node pulled[MOST];
    const uint32_t n = c->n_pulls ? c->n_pulls : 1;
    for (uint32_t i = 0; i < n && i < MOST; i++) pulled[i] = vpps_pull(g, c->inputs / n, 1);
    return n > 1 ? vpps_concat(g, n, pulled) : pulled[0];
}

vpps_node part_logits(const part_classifier *c, vpps_graph *recorder, vpps_node h) {
    if (c->mlp) h = vpps_tanh(recorder, vpps_affine1(recorder, c->b_h, c->W_h, part_dropout(c->config, recorder, h)));
    return vpps_affine1(recorder, c->b_s, c->W_s, part_dropout(c->config, recorder, h));
}

/* Returns whether the training loss differs from -log p(label), by label smoothing or class weights. */
static bool trains_otherwise(const net_config *c) { return c->label_smoothing > 0 || c->weighted; }

void part_classifier_add(const part_classifier *c, vpps_graph *recorder, vpps_node h) {
    const uint32_t label = vpps_pull_index(recorder);
    const vpps_node logits = part_logits(c, recorder, h);
    vpps_push(recorder, logits);
    vpps_push(recorder, vpps_cross_entropy(recorder, logits, label));
    if (!trains_otherwise(c->config)) return;
    const vpps_node weights = c->config->weighted ? vpps_parameter(recorder, c->config->class_weights) : VPPS_NO_NODE;
    vpps_push(recorder, vpps_cross_entropy_with(recorder, logits, label, weights, c->config->label_smoothing));
}

vpps_status part_classifier_make(part_classifier *c, vpps_model *model, const net_config *config, uint32_t inputs,
                                 uint32_t mlp) {
    vpps_graph *g;
    PART_TRY(part_classifier_declare(c, model, config, inputs, mlp));
    PART_TRY(vpps_cell_begin(model, "classifier", &g));
    part_classifier_add(c, g, pull_input(c, g));
    return vpps_cell_end(g, &c->cell);
}

/* Returns whether the label is one of the classifier's classes; false for no label and for a label that training has not seen. */
static bool knows(const part_classifier *c, uint32_t label) { return label < c->config->classes; }

/* Sets entry k of the arrays in `scores` to the logits and the loss that vertex v (an application of a cell with the
 * classifier) outputs. Without a known label there is no loss, and logits only if `heads` is NET_HEADS_ALL. */
static void take_scores(const part_classifier *c, vpps_graph *g, uint32_t k, vpps_vertex v, uint32_t label,
                        net_heads heads, const net_scores *scores) {
    const bool labelled = knows(c, label);
    scores->logits[k] = labelled || heads == NET_HEADS_ALL ? vpps_pushed(g, v, 0) : VPPS_NO_NODE;
    const uint32_t loss = scores->training && trains_otherwise(c->config) ? 2 : 1;
    scores->nll[k] = labelled ? vpps_pushed(g, v, loss) : VPPS_NO_NODE;
    if (scores->labels) scores->labels[k] = labelled ? label : VPPS_NO_WORD;
}

void part_classify(const part_classifier *c, vpps_graph *g, uint32_t k, const vpps_node *h, uint32_t label,
                   net_heads heads, const net_scores *scores) {
    scores->logits[k] = scores->nll[k] = VPPS_NO_NODE;
    if (heads != NET_HEADS_ALL && !knows(c, label)) return;
    /* if there is no label, the loss of index 0 is computed but not read */
    const uint32_t index = knows(c, label) ? label : 0;
    const vpps_vertex head = vpps_apply(g, VPPS_APPLICATION(.cell = c->cell, .n_pulls = c->n_pulls ? c->n_pulls : 1,
                                                            .pulls = h, .n_indices = 1, .indices = &index));
    take_scores(c, g, k, head, label, heads, scores);
}

/* Returns the label of node k of a tree, VPPS_NO_WORD if the node has no loss; with NET_HEADS_ROOT only the root has a loss. */
static uint32_t label_of(const vpps_tree *tree, uint32_t k, net_heads heads) {
    const bool counts = heads != NET_HEADS_ROOT || k + 1 == tree->n_nodes;
    return counts ? (uint32_t)tree->nodes[k].label : VPPS_NO_WORD;
}

/* ---------------------------------------------------------------- a network */

vpps_status network_create(const network *n, void **net, vpps_model *model, const net_config *config) {
    part_net *made = calloc(1, n->bytes);
    if (!made) return VPPS_MEMORY;
    made->network = n;
    made->config = *config;
    const vpps_status s = n->build(made, model);
    if (s == VPPS_OK) {
        *net = made;
    } else {
        network_destroy(made);
    }
    return s;
}

void network_destroy(void *net) {
    part_net *n = net;
    for (size_t i = 0; n && i < PART_COUNT(n->scratch); i++) free(n->scratch[i].at);
    free(n);
}

void *part_reserve(part_memory *m, size_t n) {
    if (n > m->n) {
        void *grown = realloc(m->at, n * sizeof(uint32_t));
        if (!grown) return NULL;
        *m = (part_memory){grown, n};
    }
    return m->at;
}

vpps_status part_classify_words(const part_net *net, vpps_graph *g, uint32_t n, const vpps_vertex *at,
                                const vpps_vertex *also, const uint32_t *tags, net_heads heads,
                                const net_scores *scores) {
    const net_heads asked = part_crf_heads(&net->crf, heads);
    for (uint32_t k = 0; k < n; k++) {
        vpps_node h[2] = {vpps_scattered(g, at[k], 0)};
        if (also) h[1] = vpps_scattered(g, also[k], 0);
        part_classify(&net->classifier, g, k, h, tags ? tags[k] : VPPS_NO_WORD, asked, scores);
    }
    part_crf_add(&net->crf, g, n, tags, scores);
    return vpps_graph_status(g);
}

/* ---------------------------------------------------------------- a tree */

vpps_status part_tree_end(const part_net *net, vpps_graph *recorder, vpps_node h, vpps_cell *cell) {
    vpps_scatter(recorder, h);
    part_classifier_add(&net->classifier, recorder, h);
    return vpps_cell_end(recorder, cell);
}

vpps_status part_tree_add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    part_net *n = net;
    const vpps_tree *tree = x->tree;
    vpps_vertex *at = part_reserve(n->scratch, tree->n_nodes);
    if (!at) return VPPS_MEMORY;
    for (uint32_t k = 0; k < tree->n_nodes; k++) { /* children come before parents */
        const vpps_tree_node *node = &tree->nodes[k];
        const uint32_t label = label_of(tree, k, heads);
        const uint32_t indices[] = {node->word, knows(&n->classifier, label) ? label : 0};
        if (node->left < 0) {
            at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = n->leaf, .n_indices = 2, .indices = indices));
        } else {
            const vpps_vertex children[] = {at[node->left], at[node->right]};
            const vpps_cell cell = n->inner[n->choose ? n->choose(tree, k) : 0];
            at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = cell, .n_children = 2, .children = children, .n_indices = 1,
                                                   .indices = indices + 1));
        }
        take_scores(&n->classifier, g, k, at[k], label, heads, scores);
    }
    return vpps_graph_status(g);
}

vpps_status part_pyramid_add(void *net, vpps_graph *g, const net_example *x, net_heads heads,
                             const net_scores *scores) {
    part_net *base = net;
    const vpps_tree *tree = x->tree;
    vpps_vertex *at = part_reserve(base->scratch, tree->n_leaves);
    if (!at) return VPPS_MEMORY;
    uint32_t n = 0;
    for (uint32_t k = 0; k < tree->n_nodes; k++) {
        const vpps_tree_node *node = &tree->nodes[k];
        scores->logits[k] = scores->nll[k] = VPPS_NO_NODE;
        if (node->left < 0)
            at[n++] = vpps_apply(g, VPPS_APPLICATION(.cell = base->leaf, .n_indices = 1, .indices = &node->word));
    }
    for (; n > 1; n--) { /* at[i] may be overwritten: the next pair of neighbours begins at at[i + 1] */
        for (uint32_t i = 0; i + 1 < n; i++)
            at[i] = vpps_apply(g, VPPS_APPLICATION(.cell = base->inner[0], .n_children = 2, .children = &at[i]));
    }
    const uint32_t root = tree->n_nodes - 1;
    const vpps_node h = vpps_scattered(g, at[0], 0);
    part_classify(&base->classifier, g, root, &h, label_of(tree, root, heads), heads, scores);
    return vpps_graph_status(g);
}

/* ---------------------------------------------------------------- options */

#define SHAPE_OPTIONS                                                                                                  \
    PART_HIDDEN("Size of a vertex's representation"), PART_EMBED("Size of a word's embedding"),                        \
        PART_DROPOUT("Dropout on embeddings and before the classifier")

const option_row part_options[] = {SHAPE_OPTIONS, PART_LOSS, {0}};

const option_row part_root_options[] = {SHAPE_OPTIONS, {0}};
