/* networks.c - see networks.h. */
#include "networks.h"

void networks_open(networks_batch *b, const char *name, uint32_t words, uint32_t characters, uint32_t classes,
                   uint32_t size) {
    *b = (networks_batch){.net = network_find(name)};
    net_config config = b->net->defaults;
    config.words = words;
    config.characters = characters;
    config.classes = classes;
    config.embed = config.hidden = size;
    TEST_OK(vpps_model_create(&b->model, 1));
    TEST_OK(network_create(b->net, &b->data, b->model, &config));
    TEST_OK(vpps_graph_create(&b->g, b->model));
}

void networks_add(networks_batch *b, const net_example *x) {
    const uint32_t n = net_positions(b->net->kind, x);
    ck_assert(VPPS_RESERVE(b->logits, b->n + n));
    ck_assert(VPPS_RESERVE(b->losses, b->n + n));
    vpps_node *logits = b->logits + b->n, *losses = b->losses + b->n;
    TEST_OK(b->net->add(b->data, b->g, x, NET_HEADS_LABELLED, &(net_scores){.logits = logits, .nll = losses}));
    for (uint32_t i = 0; i < n; i++) {
        if (losses[i] == VPPS_NO_NODE) continue;
        b->logits[b->n] = logits[i];
        b->losses[b->n++] = losses[i];
    }
}

void networks_close(networks_batch *b) {
    VPPS_FREE_ARRAYS(b->logits);
    VPPS_FREE_ARRAYS(b->losses);
    network_destroy(b->data);
    vpps_graph_destroy(b->g);
    vpps_model_destroy(b->model);
}
