/* test_memory.c - how many words of the pool a network's batches take, compared with the most that are live at once: in training, and in inference,
 * where few are. For tensors alone: test_allocate.c; other networks, as a user sees it: tests/cli/test_memory.sh. */
#include "common/testing.h"
#include "fixture.h"
#include "networks.h"

enum { EXAMPLES = 128 };

/* Opens trees: the Stanford Sentiment Treebank's, or generated ones. */
static void open_trees(networks_batch *b) {
    const char *path = test_data("sst/train.txt");
    OWNED(vpps_treebank) *trees = new_treebank();
    TEST_OK(path ? vpps_treebank_read_file(trees, path) : vpps_treebank_generate_listops(trees, NULL, EXAMPLES));
    networks_open(b, "tree-lstm", vpps_vocab_size(vpps_treebank_vocab(trees)), 0, 10, 32);
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        const vpps_tree tree = vpps_treebank_tree(trees, i);
        networks_add(b, &(net_example){.tree = &tree});
    }
}

typedef struct taken {
    uint64_t words, live; /* parameters aside */
} taken;

/* Measures in one wave of one group. */
static taken measure(const networks_batch *b, bool training) {
    const vpps_optimizer optimizer = {.kind = VPPS_ADAM, .lr = 0.1f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f};
    AT_END(machine_destroy) vpps_target machine;
    AT_END(vpps_history_free) vpps_history history = {0};
    OWNED(vpps_batch) *batch;
    TEST_OK(machine_create(&machine, b->model, VPPS_SGD, 2, 1u << 14, 1u << 30));
    TEST_OK(vpps_batch_create(&batch));
    const uint32_t n = (uint32_t)b->n;
    const vpps_batch_request request =
        training ? (vpps_batch_request){.loss = vpps_sum(b->g, n, b->losses), .optimizer = &optimizer, .step = 1}
                 : (vpps_batch_request){.loss = VPPS_NO_NODE, .outputs = b->logits, .n_outputs = n};
    TEST_OK(vpps_schedule_batch(batch, &history, &machine, b->g, &request));
    return (taken){batch->pool_words - batch->parameter_words, batch->live_words};
}

TEST_GROUP("networks");

TEST(little_more_is_taken_than_lives_at_once) {
    AT_END(networks_close) networks_batch b;
    open_trees(&b);
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
