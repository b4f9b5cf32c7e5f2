/* test_verify.c - the checker accepts every correct script. (It ends for any script: test_mutations.c.) */
#include "common/training.h"
#include "subjects.h"

TEST_GROUP("verify", .seconds = 300);

/* Correct scripts pass, and do not depend on what is kept from batch to batch (types, compiled cells, guesses, capacities). */
TEST(correct_scripts_are_accepted) {
    const uint64_t first = test_seed() * 100000;
    for (uint64_t seed = first; seed < first + cases(24); seed++) {
        rg_case c;
        AT_END(rg_destroy) rg_built built;
        AT_END(vpps_history_free) vpps_history history = {0};
        OWNED(vpps_batch) *kept;
        rg_draw(&c, seed, 4 + (uint32_t)(seed % 40));
        c.empty_lists = seed % 2;
        TEST_OK(rg_build(&built, &c, NULL));
        TEST_OK(vpps_batch_create(&kept));
        for (uint32_t k = 0; k < 2 * WAYS; k++) { /* both batches in each way */
            const uint32_t batch = (k % 2 != k / WAYS) && built.g[1];
            AT_END(job_close) job j;
            way w = way_of(k * 13 % WAYS);
            w.keeps = (seed + k) % 4 == 0;
            TEST_OK(job_open(&j, built.g[batch], built.loss[batch], w, seed));
            const vpps_status status = verify_subject(&j.subject);
            ck_assert_msg(status == VPPS_OK, "seed %llu, batch %u, %s: %s", (unsigned long long)seed, batch,
                          way_text(w), vpps_error_message());
            TEST_OK(vpps_schedule_batch(kept, &history, &j.machine, built.g[batch], &j.request));
            ck_assert_uint_eq(kept->script_words, j.subject.words);
            ck_assert_mem_eq(kept->script, j.subject.script, j.subject.words * sizeof *kept->script);
        }
    }
}

/* Schedules a graph with the types of earlier batches, whose cells are widened; its script is right. Returns the cells compiled for it. */
static uint32_t check_widened(vpps_batch *kept, vpps_history *history, vpps_graph *g, vpps_node loss, uint32_t k,
                              uint64_t seed) {
    AT_END(job_close) job j;
    TEST_OK(job_open(&j, g, loss, way_of(k), seed));
    const uint32_t before = history->n_compiled;
    j.machine.most_cells = UINT32_MAX;
    TEST_OK(vpps_schedule_batch(kept, history, &j.machine, g, &j.request));
    subject widened = j.subject;
    widened.script = kept->script;
    widened.words = kept->script_words;
    widened.cells = kept->cells;
    widened.n_cells = kept->n_cells;
    for (uint32_t i = 0; i < j.request.n_outputs; i++) j.offsets[i] = vpps_batch_output(kept, i);
    const vpps_status status = verify_subject(&widened);
    ck_assert_msg(status == VPPS_OK, "seed %llu, %s: %s", (unsigned long long)seed, way_text(way_of(k)),
                  vpps_error_message());
    return history->n_compiled - before;
}

/* A cell compiled for a batch that needs more of it also serves a batch that needs less. */
TEST(widened_cells_do_the_same) {
    const uint64_t first = test_seed() * 100000;
    uint32_t again = 0;
    for (uint64_t seed = first; seed < first + cases(40); seed++) {
        rg_case c;
        AT_END(rg_destroy) rg_built built;
        AT_END(vpps_history_free) vpps_history history = {0};
        OWNED(vpps_batch) *kept;
        draw_small(&c, seed);
        c.empty_lists = seed % 2;
        TEST_OK(rg_build(&built, &c, NULL));
        TEST_OK(vpps_batch_create(&kept));
        for (uint32_t k = seed % 5; k < WAYS; k += 5) {
            for (uint32_t turn = 0; turn < 4; turn++) {
                const uint32_t batch = turn % 2 && built.g[1];
                const uint32_t made = check_widened(kept, &history, built.g[batch], built.loss[batch], k, seed);
                if (turn == 3) again += made;
            }
        }
    }
    ck_assert_uint_eq(again, 0);
}

/* Words and their classes: every word is a component. */
typedef struct words {
    vpps_model *model;
    vpps_cell cell;
    vpps_target machine;
    vpps_history history;
    vpps_batch *batch;
} words;

static void open_words(words *w) {
    enum { WORDS = 7, ROWS = 16, CLASSES = 5, VPS = 4, POOL_WORDS = 1 << 16 };
    *w = (words){0};
    TEST_OK(vpps_model_create(&w->model, 1));
    const vpps_param e = add_lookup(w->model, "E", WORDS, ROWS, 1), m = add_matrix(w->model, "W", CLASSES, ROWS);
    vpps_graph *r = begin_cell(w->model, "word");
    const vpps_node x = vpps_affine1(r, VPPS_NO_PARAM, m, vpps_lookup(r, e, vpps_pull_index(r)));
    TEST_OK(vpps_push(r, vpps_cross_entropy(r, x, vpps_pull_index(r))));
    TEST_OK(vpps_cell_end(r, &w->cell));
    TEST_OK(machine_create(&w->machine, w->model, VPPS_SGD, VPS, 0, POOL_WORDS));
    w->machine.most_groups = VPS;
    w->machine.most_cells = UINT32_MAX;
    TEST_OK(vpps_batch_create(&w->batch));
}

/* Returns in how many groups so many words are trained. */
static uint32_t groups_of(words *w, uint32_t n) {
    const vpps_optimizer optimizer = {.kind = VPPS_SGD, .lr = 0.1f};
    vpps_batch_request request = {.optimizer = &optimizer, .gradients = VPPS_GRADIENTS_DEFERRED};
    vpps_node losses[64];
    OWNED(vpps_graph) *g = new_graph(w->model);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t indices[] = {i % 7, i % 5};
        const vpps_application a = {.size = sizeof a, .cell = w->cell, .n_indices = 2, .indices = indices};
        losses[i] = vpps_pushed(g, vpps_apply(g, &a), 0);
    }
    request.loss = vpps_sum(g, n, losses);
    TEST_OK(vpps_schedule_batch(w->batch, &w->history, &w->machine, g, &request));
    const vpps_batch *b = w->batch;
    const subject s = {b->script, b->script_words, b->cells, b->n_cells, &w->machine, g, &request, NULL, NULL};
    TEST_OK(verify_subject(&s));
    return b->n_groups;
}

static uint32_t one_group(const vpps_batch_extent *e, uint32_t most) {
    (void)e, (void)most;
    return 1;
}

/* A data set's last batch runs in the preceding batches' number of groups; many small batches in a row get the number that their largest wants. */
TEST(few_small_batches_take_the_groups_of_large_ones) {
    enum { MANY = 32, FEWER = 8, SOME = 3, EPOCHS = 32 };
    words w;
    open_words(&w);
    ck_assert_uint_eq(groups_of(&w, SOME), 1);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        ck_assert_uint_eq(groups_of(&w, MANY), 4);
        ck_assert_uint_eq(groups_of(&w, SOME), 4);
    }
    for (uint32_t i = 1; i < VPPS_FEW_BATCHES; i++)
        ck_assert_uint_eq(groups_of(&w, i == VPPS_SOON_BATCHES ? FEWER : SOME), 4);
    ck_assert_uint_eq(groups_of(&w, SOME), 2);
    ck_assert_uint_eq(groups_of(&w, SOME), 2);
    ck_assert_uint_eq(groups_of(&w, FEWER), 2);
    ck_assert_uint_eq(groups_of(&w, MANY), 4);
    w.machine.choose_groups = one_group; /* whatever the best number for such a batch */
    ck_assert_uint_eq(groups_of(&w, SOME), 4);
    w.machine.most_cells = 0;
    ck_assert_uint_eq(groups_of(&w, SOME), 1);
    vpps_batch_destroy(w.batch);
    vpps_history_free(&w.history);
    machine_destroy(&w.machine);
    vpps_model_destroy(w.model);
}
