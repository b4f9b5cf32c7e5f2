#include "workload.h"

#include "base/base.h"

#include <stdlib.h>

void workload_destroy(workload *w) {
    if (w->instance) w->net->destroy(w->instance);
    vpps_graph_destroy(w->g);
    vpps_treebank_destroy(w->trees);
    vpps_model_destroy(w->model);
    free(w->logits);
    free(w->nll);
    free(w->losses);
    free(w->scores);
}

static vpps_status reserve(workload *w) {
    uint32_t most = 1;
    size_t nodes = 1;
    for (uint32_t i = 0; i < vpps_treebank_size(w->trees); i++) {
        const uint32_t n = vpps_treebank_tree(w->trees, i).n_nodes;
        most = vpps_max_u32(most, n);
        nodes += n;
    }
    w->logits = malloc(most * sizeof *w->logits);
    w->nll = malloc(most * sizeof *w->nll);
    w->losses = malloc(nodes * sizeof *w->losses);
    w->scores = malloc(nodes * sizeof *w->scores);
    return w->logits && w->nll && w->losses && w->scores ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a workload");
}

vpps_status workload_create(workload *w, const char *path, uint32_t embed, uint32_t hidden) {
    const vpps_listops listops = {.seed = 1};
    *w = (workload){.net = network_find("tree-lstm")};
    VPPS_TRY(vpps_model_create(&w->model, 1));
    VPPS_TRY(vpps_treebank_create(&w->trees));
    VPPS_TRY(path ? vpps_treebank_read_file(w->trees, path) : vpps_treebank_generate_listops(w->trees, &listops, 2000));
    VPPS_TRY(reserve(w));
    const net_config config = {.words = vpps_vocab_size(vpps_treebank_vocab(w->trees)),
                               .classes = vpps_treebank_classes(w->trees),
                               .embed = embed,
                               .hidden = hidden};
    VPPS_TRY(w->net->create(&w->instance, w->model, &config));
    return vpps_graph_create(&w->g, w->model);
}

vpps_status workload_batch(workload *w, uint32_t n_examples, vpps_node *loss) {
    uint32_t n = 0;
    vpps_graph_clear(w->g);
    for (uint32_t i = 0; i < n_examples; i++) {
        const vpps_tree tree = vpps_treebank_tree(w->trees, w->next++ % vpps_treebank_size(w->trees));
        const net_example x = {.tree = &tree};
        const net_scores scores = {.logits = w->logits, .nll = w->nll};
        VPPS_TRY(w->net->add(w->instance, w->g, &x, NET_HEADS_LABELLED, &scores));
        for (uint32_t k = 0; k < tree.n_nodes; k++) {
            if (w->nll[k] == VPPS_NO_NODE) continue;
            w->scores[n] = w->logits[k];
            w->losses[n++] = w->nll[k];
        }
    }
    w->n_scores = n;
    *loss = vpps_scale(w->g, vpps_sum(w->g, n, w->losses), 1.0f / (float)n_examples);
    return vpps_graph_status(w->g);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_doubles(double *x, size_t n) { qsort(x, n, sizeof *x, by_value); }
