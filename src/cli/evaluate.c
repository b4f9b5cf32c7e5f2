/* evaluate.c - forward passes over a split, and `vpps eval`. */
#include "evaluate.h"
#include "base/base.h"
#include "checkpoint.h"
#include "report.h"

#include <math.h>

double accuracy_root(const accuracy *a) { return a->roots ? (double)a->roots_right / (double)a->roots : NAN; }
double accuracy_nodes(const accuracy *a) {
    return a->nodes > a->roots ? (double)a->nodes_right / (double)a->nodes : NAN;
}

static int32_t argmax(const float *x, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (x[i] > x[best]) best = i;
    }
    return (int32_t)best;
}

vpps_status evaluate_predict(session *x, const corpus_split *split, const uint32_t *trees, uint32_t n, net_heads heads,
                             int32_t **predicted, size_t *capacity) {
    const uint32_t classes = x->settings->net.classes;
    uint32_t n_nodes, n_heads = 0;
    VPPS_TRY(session_add_trees(x, split, trees, n, heads, &n_nodes));
    if (!VPPS_RESERVE(*predicted, *capacity, n_nodes)) {
        return vpps_fail(VPPS_MEMORY, "no memory for %u predictions", n_nodes);
    }
    vpps_node *nodes = x->scores.logits; /* closed up in place */
    for (uint32_t k = 0; k < n_nodes; k++) {
        const bool asked = nodes[k] != VPPS_NO_NODE;
        (*predicted)[k] = asked ? 0 : -1;
        if (asked) nodes[n_heads++] = nodes[k];
    }
    if (!n_heads) return VPPS_OK;
    float *values = malloc((size_t)n_heads * classes * sizeof *values);
    float **outs = malloc(n_heads * sizeof *outs);
    vpps_status status = VPPS_OK;
    if (!values || !outs) status = vpps_fail(VPPS_MEMORY, "no memory for the scores of %u nodes", n_heads);
    for (uint32_t j = 0; status == VPPS_OK && j < n_heads; j++) outs[j] = values + (size_t)j * classes;
    if (status == VPPS_OK) status = vpps_forward(x->handle, x->graph, n_heads, nodes, outs);
    for (uint32_t k = 0, j = 0; status == VPPS_OK && k < n_nodes; k++) {
        if ((*predicted)[k] == 0) (*predicted)[k] = argmax(outs[j++], classes);
    }
    free(outs);
    free(values);
    return status;
}

/* Labelled nodes that the network gave a class: some classify roots only. */
static void count(accuracy *a, vpps_tree tree, const int32_t *predicted) {
    for (uint32_t k = 0; k < tree.n_nodes; k++) {
        if (tree.nodes[k].label < 0 || predicted[k] < 0) continue;
        const bool right = predicted[k] == tree.nodes[k].label;
        a->nodes++;
        a->nodes_right += right;
        if (k + 1 == tree.n_nodes) {
            a->roots++;
            a->roots_right += right;
        }
    }
}

vpps_status evaluate_split(session *x, const corpus_split *split, const volatile int *stop, accuracy *a) {
    memset(a, 0, sizeof *a);
    int32_t *predicted = NULL;
    size_t capacity = 0;
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < split->n_trees && status == VPPS_OK; i += x->settings->batch) {
        if (stop && *stop) break;
        const uint32_t n = vpps_min_u32(x->settings->batch, split->n_trees - i);
        status = evaluate_predict(x, split, split->trees + i, n, NET_HEADS_LABELLED, &predicted, &capacity);
        size_t at = 0;
        for (uint32_t j = i; status == VPPS_OK && predicted && j < i + n; j++) {
            const vpps_tree tree = vpps_treebank_tree(split->bank, split->trees[j]);
            count(a, tree, predicted + at);
            at += tree.n_nodes;
        }
    }
    free(predicted);
    a->known = status == VPPS_OK && !(stop && *stop);
    return status;
}

static vpps_status eval(settings *s, session *x, corpus *c) {
    position p = {0};
    VPPS_TRY(checkpoint_describe(s->model, s, c, &p));
    options_complete(s);
    VPPS_TRY(session_open_on(x, s, c));
    VPPS_TRY(vpps_load(x->handle, s->model));

    accuracy a;
    const uint64_t begin = vpps_now_ns();
    VPPS_TRY(evaluate_split(x, &c->split[s->split], NULL, &a));
    return report_eval(x, &c->split[s->split], &a, (double)(vpps_now_ns() - begin) * 1e-9);
}

int command_eval(settings *s) {
    if (!s->model) return report_usage("eval", "--model FILE is missing");
    session x = {0};
    corpus c = {0};
    const vpps_status status = eval(s, &x, &c);
    if (status != VPPS_OK) report_failure(status);
    session_close(&x);
    corpus_close(&c);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
