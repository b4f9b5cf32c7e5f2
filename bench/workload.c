#include "workload.h"

#include "base/base.h"

#include <stdlib.h>

void workload_destroy(workload *w) {
    if (w->instance) w->net->destroy(w->instance);
    vpps_graph_destroy(w->g);
    vpps_treebank_destroy(w->trees);
    vpps_sentences_destroy(w->sentences);
    vpps_model_destroy(w->model);
    free(w->logits);
    free(w->nll);
    free(w->losses);
    free(w->scores);
}

static vpps_status reserve(workload *w, uint32_t positions, uint64_t all) {
    w->logits = malloc(positions * sizeof *w->logits);
    w->nll = malloc(positions * sizeof *w->nll);
    w->losses = malloc(all * sizeof *w->losses);
    w->scores = malloc(all * sizeof *w->scores);
    return w->logits && w->nll && w->losses && w->scores ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a workload");
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
    return reserve(w, most, nodes);
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

vpps_status workload_create_tagger(workload *w, const char *path, uint32_t embed, uint32_t hidden) {
    const vpps_language language = {.seed = 1, .tags = true};
    uint32_t most = 1;
    *w = (workload){.net = network_find("bilstm-tagger")};
    vpps_status s = vpps_model_create(&w->model, 1);
    if (s == VPPS_OK) s = vpps_sentences_create(&w->sentences);
    if (s != VPPS_OK) return s;
    s = path ? vpps_sentences_read_tagged_file(w->sentences, path)
             : vpps_sentences_generate(w->sentences, NULL, NULL, &language, 2000);
    if (s != VPPS_OK) return s;
    for (uint32_t i = 0; i < vpps_sentences_size(w->sentences); i++) {
        const uint32_t n = vpps_sentences_get(w->sentences, i).n_words;
        if (n > most) most = n;
    }
    s = reserve(w, most, vpps_sentences_total_words(w->sentences) + 1);
    if (s != VPPS_OK) return s;
    net_config config = w->net->defaults;
    config.words = vpps_vocab_size(vpps_sentences_vocab(w->sentences));
    config.classes = vpps_vocab_size(vpps_sentences_tag_vocab(w->sentences));
    config.embed = embed;
    config.hidden = hidden;
    s = w->net->create(&w->instance, w->model, &config);
    return s == VPPS_OK ? vpps_graph_create(&w->g, w->model) : s;
}

/* The next example; its ids, in the order of its file, are the network's. */
static net_example next_example(workload *w, vpps_tree *tree) {
    if (w->sentences) {
        return (net_example){.sentence =
                                 vpps_sentences_get(w->sentences, w->next++ % vpps_sentences_size(w->sentences))};
    }
    *tree = vpps_treebank_tree(w->trees, w->next++ % vpps_treebank_size(w->trees));
    return (net_example){.tree = tree};
}

vpps_status workload_batch(workload *w, uint32_t n_examples, vpps_node *loss) {
    uint32_t n = 0;
    vpps_graph_clear(w->g);
    for (uint32_t i = 0; i < n_examples; i++) {
        vpps_tree tree;
        const net_example x = next_example(w, &tree);
        const net_scores scores = {.logits = w->logits, .nll = w->nll};
        vpps_status s = w->net->add(w->instance, w->g, &x, NET_HEADS_LABELLED, &scores);
        if (s != VPPS_OK) return s;
        const uint32_t positions = net_positions(w->net->kind, &x);
        for (uint32_t k = 0; k < positions; k++) {
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
