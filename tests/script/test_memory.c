/* test_memory.c - how many words of the pool networks' batches take, compared with the most that are live at once: in training, and in inference,
 * where few are. For tensors alone: test_allocate.c; as a user sees it: tests/cli/test_memory.sh. */
#include "common/testing.h"
#include "fixture.h"
#include "models.h"

enum { EXAMPLES = 128, MOST_WORDS = 40, WORDS = 200, TAGS = 9 };

/* ---------------------------------------------------------------- a network's batch */

typedef struct network_batch {
    const network *net;
    void *data;
    vpps_model *model;
    vpps_graph *g;
    vpps_node *logits, *losses; /* at positions with a known label */
    size_t n;
} network_batch;

static void open_batch(network_batch *b, const char *name, uint32_t words, uint32_t characters, uint32_t classes) {
    *b = (network_batch){.net = network_find(name)};
    net_config config = b->net->defaults;
    config.words = words;
    config.characters = characters;
    config.classes = classes;
    config.embed = config.hidden = 32;
    TEST_OK(vpps_model_create(&b->model, 1));
    TEST_OK(b->net->create(&b->data, b->model, &config));
    TEST_OK(vpps_graph_create(&b->g, b->model));
}

static void close_batch(network_batch *b) {
    VPPS_FREE_ARRAYS(b->logits);
    VPPS_FREE_ARRAYS(b->losses);
    b->net->destroy(b->data);
    vpps_graph_destroy(b->g);
    vpps_model_destroy(b->model);
}

static void add_example(network_batch *b, const net_example *x) {
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

/* ---------------------------------------------------------------- examples */

/* Opens trees: the Stanford Sentiment Treebank's, or generated ones. */
static void open_trees(network_batch *b) {
    const char *path = test_data("sst/train.txt");
    OWNED(vpps_treebank) *trees = new_treebank();
    TEST_OK(path ? vpps_treebank_read_file(trees, path) : vpps_treebank_generate_listops(trees, NULL, EXAMPLES));
    open_batch(b, "tree-lstm", vpps_vocab_size(vpps_treebank_vocab(trees)), 0, 10);
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        const vpps_tree tree = vpps_treebank_tree(trees, i);
        add_example(b, &(net_example){.tree = &tree});
    }
}

static void open_sentences(network_batch *b) {
    uint64_t random = 7;
    uint32_t words[MOST_WORDS], tags[MOST_WORDS];
    open_batch(b, "bilstm-tagger", WORDS, 0, TAGS);
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        const uint32_t n = 1 + vpps_random_below(&random, MOST_WORDS);
        for (uint32_t k = 0; k < n; k++) {
            words[k] = vpps_random_below(&random, WORDS);
            tags[k] = vpps_random_below(&random, TAGS);
        }
        add_example(b, &(net_example){.sentence = {.words = words, .tags = tags, .n_words = n}});
    }
}

/* Opens sentences of characters, each with the words that end at it. */
static void open_lattices(network_batch *b) {
    uint64_t random = 8;
    open_batch(b, "lattice-lstm", WORDS, WORDS, TAGS);
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        uint32_t tags[MOST_WORDS + 1] = {0}, first[MOST_WORDS + 2] = {0}, n_arcs = 0;
        vpps_lattice_arc arcs[2 * MOST_WORDS];
        const uint32_t n = 2 + vpps_random_below(&random, MOST_WORDS);
        for (uint32_t k = 1; k < n; k++) {
            first[k] = n_arcs;
            tags[k] = vpps_random_below(&random, TAGS);
            arcs[n_arcs++] = (vpps_lattice_arc){k - 1, vpps_random_below(&random, WORDS), true};
            if (k > 3 && vpps_random_below(&random, 3) == 0)
                arcs[n_arcs++] =
                    (vpps_lattice_arc){k - 2 - vpps_random_below(&random, 2), vpps_random_below(&random, WORDS), false};
        }
        first[n] = n_arcs;
        const vpps_lattice lattice = {n, tags, first, arcs};
        add_example(b, &(net_example){.lattice = &lattice});
    }
}

/* ---------------------------------------------------------------- what it takes */

typedef struct taken {
    uint64_t words, live; /* parameters aside */
} taken;

/* Measures in one wave of one group. */
static taken measure(const network_batch *b, bool training) {
    const vpps_optimizer optimizer = {.kind = VPPS_ADAM, .lr = 0.1f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f};
    AT_END(machine_destroy) vpps_target machine;
    AT_END(vpps_history_free) vpps_history history = {0};
    vpps_batch *batch;
    TEST_OK(machine_create(&machine, b->model, VPPS_SGD, 2, 1u << 14, 1u << 30));
    TEST_OK(vpps_batch_create(&batch));
    const uint32_t n = (uint32_t)b->n;
    const vpps_batch_request request =
        training ? (vpps_batch_request){.loss = vpps_sum(b->g, n, b->losses), .optimizer = &optimizer, .step = 1}
                 : (vpps_batch_request){.loss = VPPS_NO_NODE, .outputs = b->logits, .n_outputs = n};
    TEST_OK(vpps_schedule_batch(batch, &history, &machine, b->g, &request));
    const taken t = {batch->pool_words - batch->parameter_words, batch->live_words};
    vpps_batch_destroy(batch);
    return t;
}

static void (*const open_any[])(network_batch *) = {open_trees, open_sentences, open_lattices};

TEST_GROUP("networks");

TEST_EACH(little_more_is_taken_than_lives_at_once, 0, VPPS_COUNT(open_any)) {
    AT_END(close_batch) network_batch b;
    open_any[_i](&b);
    const taken inference = measure(&b, false), training = measure(&b, true);
    ck_assert_uint_le(training.live, training.words);
    ck_assert_uint_le(inference.live, inference.words);
    ck_assert_msg((double)training.words <= 1.1 * (double)training.live, "training: %llu words of the pool, %llu live",
                  (unsigned long long)training.words, (unsigned long long)training.live);
    ck_assert_msg((double)inference.words <= 1.1 * (double)inference.live,
                  "inference: %llu words of the pool, %llu live", (unsigned long long)inference.words,
                  (unsigned long long)inference.live);
    ck_assert_msg(inference.live <= training.live / 2, "inference: %llu words live, training: %llu",
                  (unsigned long long)inference.live, (unsigned long long)training.live);
}
