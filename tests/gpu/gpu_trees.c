/* gpu_trees.c - see gpu_trees.h. */
#include "gpu_trees.h"

#include "common/testing.h"

enum { TREES = 12, TREES_IN_BATCH = 4, MOST_NODES = 64 };

void trees_open(gpu_trees *t, uint32_t hidden, uint32_t embed) {
    const network *n = network_find("tree-lstm");
    const vpps_listops listops = {.seed = test_seed(), .max_leaves = 10};
    ck_assert_ptr_nonnull(n);
    TEST_OK(vpps_treebank_create(&t->bank));
    TEST_OK(vpps_treebank_generate_listops(t->bank, &listops, TREES));
    net_config config = n->defaults;
    config.hidden = hidden;
    config.embed = embed;
    config.words = vpps_vocab_size(vpps_treebank_vocab(t->bank));
    config.classes = vpps_treebank_classes(t->bank);
    TEST_OK(vpps_model_create(&t->model, 11));
    TEST_OK(n->create(&t->net, t->model, &config));
    TEST_OK(vpps_graph_create(&t->g, t->model));
}

void trees_close(gpu_trees *t) {
    network_find("tree-lstm")->destroy(t->net);
    vpps_graph_destroy(t->g);
    vpps_model_destroy(t->model);
    vpps_treebank_destroy(t->bank);
}

vpps_node trees_add(gpu_trees *t, uint32_t batch) {
    static vpps_node logits[MOST_NODES], nll[MOST_NODES], terms[MOST_NODES * TREES_IN_BATCH];
    const net_scores scores = {.logits = logits, .nll = nll};
    uint32_t n_terms = 0;
    for (uint32_t i = 0; i < TREES_IN_BATCH; i++) {
        const vpps_tree tree = vpps_treebank_tree(t->bank, (batch * TREES_IN_BATCH + i) % TREES);
        ck_assert_uint_le(tree.n_nodes, MOST_NODES);
        const net_example x = {.tree = &tree}; /* the treebank's own ids are the network's */
        TEST_OK(network_find("tree-lstm")->add(t->net, t->g, &x, NET_HEADS_LABELLED, &scores));
        for (uint32_t k = 0; k < tree.n_nodes; k++) {
            if (nll[k] != VPPS_NO_NODE) terms[n_terms++] = nll[k];
        }
    }
    return vpps_average(t->g, n_terms, terms);
}

vpps_node trees_build(gpu_trees *t, uint32_t batch) {
    vpps_graph_clear(t->g);
    return trees_add(t, batch);
}
