/* gpu_trees.c - see gpu_trees.h. */
#include "gpu_trees.h"

enum {
    TREES = 12,
    TREES_IN_BATCH = 4,
    MOST_NODES = 64,
    CLASSES = 8 /* labels are taken modulo this number: a matrix with so few rows is low */
};

vpps_options trees_options(void) { return gpu_options(&(gpu_layout){4, 128, 1, 1}, VPPS_MOMENTUM); }

gpu_trees trees_of(uint32_t hidden, uint32_t embed) {
    gpu_trees t = {.h = NULL};
    const network *n = network_find("tree-lstm");
    const vpps_listops listops = {.seed = test_seed(), .max_leaves = 10};
    ck_assert_ptr_nonnull(n);
    TEST_OK(vpps_treebank_create(&t.bank));
    TEST_OK(vpps_treebank_generate_listops(t.bank, &listops, TREES));
    net_config config = n->defaults;
    config.hidden = hidden;
    config.embed = embed;
    config.words = vpps_vocab_size(vpps_treebank_vocab(t.bank));
    config.classes = CLASSES;
    TEST_OK(vpps_model_create(&t.model, 11));
    TEST_OK(network_create(n, &t.net, t.model, &config));
    TEST_OK(vpps_graph_create(&t.g, t.model));
    return t;
}

gpu_trees trees_with(uint32_t hidden, uint32_t embed, const vpps_options *options) {
    gpu_trees t = trees_of(hidden, embed);
    TEST_OK(vpps_handle_create(&t.h, t.model, options));
    return t;
}

gpu_trees trees_driven_by(const struct vpps_driver_table *driver, uint32_t hidden, uint32_t embed,
                          const vpps_options *options) {
    gpu_trees t = trees_with(hidden, embed, options);
    gpu_drive_by(t.h, driver, options);
    return t;
}

void trees_close(gpu_trees *t) {
    network_destroy(t->net);
    training_end(&(training){t->model, t->g, t->h});
    vpps_treebank_destroy(t->bank);
}

vpps_node trees_add(gpu_trees *t, uint32_t batch) {
    static vpps_node logits[MOST_NODES], nll[MOST_NODES], terms[MOST_NODES * TREES_IN_BATCH];
    const net_scores scores = {.logits = logits, .nll = nll};
    uint32_t n_terms = 0;
    for (uint32_t i = 0; i < TREES_IN_BATCH; i++) {
        vpps_tree_node nodes[MOST_NODES];
        vpps_tree tree = vpps_treebank_tree(t->bank, (batch * TREES_IN_BATCH + i) % TREES);
        ck_assert_uint_le(tree.n_nodes, MOST_NODES);
        for (uint32_t k = 0; k < tree.n_nodes; k++) {
            nodes[k] = tree.nodes[k];
            if (nodes[k].label >= 0) nodes[k].label %= CLASSES;
        }
        tree.nodes = nodes;
        const net_example x = {.tree = &tree}; /* the treebank's own ids are the network's */
        TEST_OK(network_find("tree-lstm")->add(t->net, t->g, &x, NET_HEADS_LABELLED, &scores));
        for (uint32_t k = 0; k < tree.n_nodes; k++)
            if (nll[k] != VPPS_NO_NODE) terms[n_terms++] = nll[k];
    }
    t->last = terms[n_terms - 1];
    return vpps_average(t->g, n_terms, terms);
}

vpps_node trees_build(gpu_trees *t, uint32_t batch) {
    vpps_graph_clear(t->g);
    return trees_add(t, batch);
}

void trees_fb(gpu_trees *t, uint32_t batch) { TEST_OK(vpps_fb(t->h, t->g, trees_build(t, batch), NULL)); }
float trees_step(gpu_trees *t, uint32_t batch) { return train_batch(t->h, t->g, trees_build(t, batch)); }
