#include "workload.h"

#include <stdlib.h>

void workload_destroy(workload *w) {
    if (w->instance) w->net->destroy(w->instance);
    vpps_graph_destroy(w->g);
    vpps_treebank_destroy(w->trees);
    vpps_model_destroy(w->model);
    free(w->logits);
    free(w->nll);
    free(w->losses);
}

static vpps_status count(workload *w, uint32_t classes, uint32_t embed, uint32_t hidden) {
    uint32_t most = 1, n_trees = vpps_treebank_size(w->trees);
    uint64_t leaves = 0, nodes = 0;
    for (uint32_t i = 0; i < n_trees; i++) {
        vpps_tree tree = vpps_treebank_tree(w->trees, i);
        if (tree.n_nodes > most) most = tree.n_nodes;
        leaves += tree.n_leaves;
        nodes += tree.n_nodes;
    }
    double products = 3.0 * (double)leaves * hidden * embed + 10.0 * (double)(nodes - leaves) * hidden * hidden +
                      (double)nodes * classes * hidden;
    w->flops_a_tree = 3 * 2 * products / n_trees;
    w->logits = malloc(most * sizeof *w->logits);
    w->nll = malloc(most * sizeof *w->nll);
    w->losses = malloc(nodes * sizeof *w->losses);
    return w->logits && w->nll && w->losses ? VPPS_OK : VPPS_MEMORY;
}

vpps_status workload_create(workload *w, const char *path, uint32_t embed, uint32_t hidden) {
    const vpps_listops listops = {.seed = 1};
    *w = (workload){.net = network_find("tree-lstm")};
    vpps_status s = vpps_model_create(&w->model, 1);
    if (s == VPPS_OK) s = vpps_treebank_create(&w->trees);
    if (s != VPPS_OK) return s;
    s = path ? vpps_treebank_read_file(w->trees, path) : vpps_treebank_generate_listops(w->trees, &listops, 2000);
    if (s != VPPS_OK) return s;
    uint32_t n_words = vpps_vocab_size(vpps_treebank_vocab(w->trees)), classes = vpps_treebank_classes(w->trees);
    s = count(w, classes, embed, hidden);
    if (s != VPPS_OK) return s;
    const net_config config = {.words = n_words, .classes = classes, .embed = embed, .hidden = hidden};
    s = w->net->create(&w->instance, w->model, &config);
    return s == VPPS_OK ? vpps_graph_create(&w->g, w->model) : s;
}

vpps_status workload_batch(workload *w, uint32_t n_trees, vpps_node *loss) {
    uint32_t n = 0;
    vpps_graph_clear(w->g);
    for (uint32_t i = 0; i < n_trees; i++) {
        /* The treebank's own ids are the network's. */
        const vpps_tree tree = vpps_treebank_tree(w->trees, w->next++ % vpps_treebank_size(w->trees));
        const net_scores scores = {w->logits, w->nll};
        vpps_status s = w->net->add(w->instance, w->g, &(net_example){.tree = &tree}, NET_HEADS_LABELLED, &scores);
        if (s != VPPS_OK) return s;
        for (uint32_t k = 0; k < tree.n_nodes; k++) {
            if (w->nll[k] != VPPS_NO_NODE) w->losses[n++] = w->nll[k];
        }
    }
    *loss = vpps_scale(w->g, vpps_sum(w->g, n, w->losses), 1.0f / (float)n_trees);
    return vpps_graph_status(w->g);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_doubles(double *x, size_t n) { qsort(x, n, sizeof *x, by_value); }
