/* parts.c - the functions that networks share: parameters, the classifier, trees, memory. */
#include "parts.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- parameters */

const vpps_init part_small = {.kind = VPPS_INIT_UNIFORM, .a = -0.05f, .b = 0.05f};
const vpps_init part_one = {.kind = VPPS_INIT_CONSTANT, .a = 1.0f};

vpps_status parts_declare(vpps_model *model, const part_parameter *parameters, size_t n) {
    vpps_status s = VPPS_OK;
    for (const part_parameter *p = parameters; s == VPPS_OK && p < parameters + n; p++) {
        if (p->count) {
            s = vpps_add_lookup(model, p->param, p->name, p->count, p->rows, p->cols ? p->cols : 1, p->init);
        } else if (p->cols) {
            s = vpps_add_matrix(model, p->param, p->name, p->rows, p->cols, p->init);
        } else {
            s = vpps_add_vector(model, p->param, p->name, p->rows, p->init);
        }
    }
    return s;
}

vpps_status parts_declare_layer(vpps_model *model, const char *name, uint32_t number, const part_parameter *parameters,
                                size_t n) {
    vpps_status s = VPPS_OK;
    for (const part_parameter *p = parameters; s == VPPS_OK && p < parameters + n; p++) {
        char text[64];
        part_parameter named = *p;
        if (number) {
            snprintf(text, sizeof text, "%s%u.%s", name, number + 1, p->name);
        } else {
            snprintf(text, sizeof text, "%s.%s", name, p->name);
        }
        named.name = text;
        s = parts_declare(model, &named, 1);
    }
    return s;
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

vpps_status part_classifier_record(part_classifier *c, vpps_model *model) {
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, "classifier", &g);
    if (s != VPPS_OK) return s;
    part_classifier_add(c, g, pull_input(c, g));
    return vpps_cell_end(g, &c->cell);
}

/* Returns whether the label is one of the classifier's classes; false for no label and for a label that training has not seen. */
static bool knows(const part_classifier *c, uint32_t label) { return label < c->config->classes; }

/* Sets entry k of the scores to the logits and the loss that vertex v made, if the label is known or `heads` selects all positions. */
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

uint32_t part_label(const vpps_tree *tree, uint32_t k, net_heads heads) {
    const bool counts = heads != NET_HEADS_ROOT || k + 1 == tree->n_nodes;
    return counts ? (uint32_t)tree->nodes[k].label : VPPS_NO_WORD;
}

/* ---------------------------------------------------------------- vertices */

vpps_vertex *part_reserve_vertices(part_vertices *v, uint32_t n) {
    if (n > v->n) {
        vpps_vertex *grown = realloc(v->at, n * sizeof *grown);
        if (!grown) return NULL;
        v->at = grown;
        v->n = n;
    }
    return v->at;
}

/* ---------------------------------------------------------------- a tree */

vpps_status part_add_tree(vpps_graph *g, const vpps_tree *tree, vpps_cell leaf, const vpps_cell *inner,
                          uint32_t n_inner, uint32_t (*choose)(const vpps_tree *, uint32_t node),
                          const part_classifier *classifier, net_heads heads, const net_scores *scores,
                          part_vertices *scratch) {
    vpps_vertex *at = part_reserve_vertices(scratch, tree->n_nodes);
    if (!at) return VPPS_MEMORY;
    for (uint32_t k = 0; k < tree->n_nodes; k++) { /* children come before parents */
        const vpps_tree_node *node = &tree->nodes[k];
        const uint32_t label = part_label(tree, k, heads);
        const uint32_t indices[] = {node->word, knows(classifier, label) ? label : 0};
        if (node->left < 0) {
            at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = leaf, .n_indices = 2, .indices = indices));
        } else {
            const vpps_vertex children[] = {at[node->left], at[node->right]};
            const vpps_cell cell = inner[choose ? choose(tree, k) % n_inner : 0];
            at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = cell, .n_children = 2, .children = children, .n_indices = 1,
                                                   .indices = indices + 1));
        }
        take_scores(classifier, g, k, at[k], label, heads, scores);
    }
    return vpps_graph_status(g);
}

/* ---------------------------------------------------------------- a network's memory */

vpps_status part_create(void **net, size_t bytes, vpps_model *model, const net_config *config, part_step *declare,
                        part_step *record) {
    part_net *n = calloc(1, bytes);
    if (!n) return VPPS_MEMORY;
    n->config = *config;
    vpps_status s = declare(n, model);
    if (s == VPPS_OK) s = record(n, model);
    if (s != VPPS_OK) {
        part_destroy(n);
        return s;
    }
    *net = n;
    return VPPS_OK;
}

void part_destroy(void *net) {
    part_net *n = net;
    if (!n) return;
    free(n->scratch.at);
    free(n);
}

/* ---------------------------------------------------------------- options */

#define SHAPE_OPTIONS                                                                                                  \
    PART_HIDDEN("Size of a vertex's representation"), PART_EMBED("Size of a word's embedding"),                        \
        PART_DROPOUT("Dropout on embeddings and before the classifier")

const option_row part_options[] = {
    SHAPE_OPTIONS,
    {"loss", "nodes|root", "Train on every labelled node, or on the root alone", OPTION_CHOICE,
     offsetof(net_config, loss), 0, 0, false},
    {0},
};

const option_row part_root_options[] = {SHAPE_OPTIONS, {0}};
