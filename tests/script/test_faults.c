/* test_faults.c - faults in scripts that test_refusals.c does not produce, and what the checker says of them. */
#include "faults.h"

/* Opens a recurrent network with a classifier of two rows at every step, whose vertices are shared out, while the network's rows are. */
static void open_classified(batch *b) {
    static const float data[ROWS];
    vpps_cell cells[2];
    begin_batch(b);
    const vpps_param w = add_matrix(b->model, "W", ROWS, ROWS), s = add_matrix(b->model, "S", 2, ROWS);
    vpps_node losses[STEPS];
    for (uint32_t i = 0; i < 2; i++) {
        vpps_graph *r = begin_cell(b->model, i ? "next" : "first");
        vpps_node c = i ? vpps_gather(r, 0, 1, ROWS, 1) : vpps_pull(r, ROWS, 1);
        const vpps_node gate = vpps_sigmoid(r, vpps_matvec(r, w, i ? vpps_gather(r, 0, 0, ROWS, 1) : c));
        if (i) c = vpps_mul(r, c, gate);
        const vpps_node h = vpps_tanh(r, i ? c : gate);
        TEST_OK(vpps_scatter(r, h));
        TEST_OK(vpps_scatter(r, i ? c : gate));
        TEST_OK(vpps_scatter(r, vpps_cross_entropy(r, vpps_matvec(r, s, h), 1)));
        cells[i] = end_cell(r);
    }
    const vpps_node x = vpps_input(b->g, ROWS, 1, data);
    vpps_vertex v = APPLY(b->g, cells[0], PULLS(1, &x));
    for (uint32_t i = 0; i < STEPS; i++) {
        losses[i] = vpps_scattered(b->g, v, 2);
        if (i + 1 < STEPS) v = APPLY(b->g, cells[1], CHILDREN(1, &v));
    }
    open_batch(b, vpps_sum(b->g, STEPS, losses), (way){.n_vps = 2, .groups = 1});
}

/* Phases end only where a virtual processor waits for another one. */
TEST(every_barrier_is_needed) {
    batch b;
    open_classified(&b);
    uint32_t n = 0;
    for (size_t i = 0; i < b.e.n_sites; i++) n += editor_task(&b.e, b.e.sites[i].at)->wait != VPPS_NO_BARRIER;
    ck_assert_uint_gt(n, 2 * STEPS);
    close_batch(&b);
    for (uint32_t i = 0; i < n; i++) {
        open_classified(&b);
        TEST_OK(verify_edited(&b));
        editor_task(&b.e, find_wait(&b, i))->wait = VPPS_NO_BARRIER;
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "without a barrier in between");
        close_batch(&b);
    }
}

TEST(the_loss_is_late) {
    AT_END(close_batch) batch b;
    open_recurrent(&b); /* with a guard, for which all processors need the loss */
    vpps_task *loss = editor_task(&b.e, find(&b, VPPS_TASK_LOSS, 0));
    vpps_task *update = editor_task(&b.e, find(&b, VPPS_TASK_UPDATE, 0)), late = *update;
    late.kind = loss->kind;
    memcpy(late.operands, loss->operands, sizeof late.operands);
    loss->kind = VPPS_TASK_NOTHING;
    update->wait = VPPS_NO_BARRIER;
    ck_assert(editor_insert(&b.e, find(&b, VPPS_TASK_UPDATE, 0), &late));
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "reads the loss without a barrier in between");
}

TEST(an_output_is_overwritten) {
    const float data[16] = {0};
    AT_END(close_batch) batch b;
    vpps_node out[2];
    begin_batch(&b);
    out[0] = vpps_tanh(b.g, vpps_input(b.g, 16, 1, data));
    out[1] = vpps_abs(b.g, vpps_input(b.g, 16, 1, data));
    open_batch(&b, VPPS_NO_NODE, (way){.n_vps = 1, .groups = 1, .inference = true, .wanted = out, .n_wanted = 2});
    b.job.offsets[1]++;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "output 1 is not at the offset where the host reads it");
    uint32_t number;
    vpps_block *first = block_of(&b, "tanh", &number), *second = block_of(&b, "abs", &number);
    second->kept[0] = first->kept[0];
    b.job.offsets[1] = b.job.offsets[0];
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "is overwritten before it is read");
}

TEST(a_script_that_is_cut_off) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    subject nothing = b.job.subject;
    nothing.words = VPPS_TASK_HEADER_WORDS - 1;
    TEST_FAILS(verify_subject(&nothing), VPPS_SCRIPT, "incomplete header");
    for (size_t n = 0; n < b.job.subject.words; n++) { /* cut off anywhere */
        FREED uint32_t *cut = need(malloc((n + 1) * sizeof *cut));
        subject s = b.job.subject;
        memcpy(cut, s.script, n * sizeof *cut);
        s.script = cut;
        s.words = n;
        ck_assert_int_eq(verify_subject(&s), VPPS_SCRIPT);
        if (n >= VPPS_TASK_HEADER_WORDS) ((vpps_task_header *)(void *)cut)->words = (uint32_t)n;
        ck_assert_int_eq(verify_subject(&s), VPPS_SCRIPT);
    }
}

/* A group waits, before its pause, for a signal that another group gives only after its own pause: neither goes on. */
TEST(a_deadlock_at_the_pause) {
    static const float data[ROWS];
    AT_END(close_batch) batch b;
    vpps_node out[2];
    TEST_OK(vpps_model_create(&b.model, 1));
    const vpps_param w = add_matrix(b.model, "W", ROWS, ROWS);
    TEST_OK(vpps_graph_create(&b.g, b.model));
    for (uint32_t i = 0; i < 2; i++) out[i] = vpps_matvec(b.g, w, vpps_input(b.g, ROWS, 1, data));
    open_batch(&b, VPPS_NO_NODE,
               (way){.n_vps = 2, .groups = 2, .keeps = true, .halves = true, .wanted = out, .n_wanted = 2});
    vpps_task_header *h = editor_header(&b.e);
    ck_assert_uint_eq(h->n_groups, 2);
    const uint32_t barrier = h->n_barriers++;
    const vpps_task signals = {.kind = VPPS_TASK_NOTHING, .wait = VPPS_NO_BARRIER, .signal = barrier};
    ck_assert(editor_insert(&b.e, find(&b, VPPS_TASK_PAUSE, 0) + VPPS_TASK_WORDS, &signals));
    TEST_OK(verify_edited(&b));
    vpps_task *waits = editor_task(&b.e, find(&b, VPPS_TASK_PAUSE, 1));
    waits->wait = barrier;
    waits->signals = 1;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "group 1");
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "has 0 signals, and no more come");
}

/* ---------------------------------------------------------------- lists */

/* Opens STEPS words that attend to all words and read two outputs of each. Returns the script's address and shift of both inputs. */
static uint32_t *open_attending(batch *b, bool tables) {
    vpps_vertex words[STEPS];
    vpps_node losses[STEPS];
    vpps_block_view view;
    uint32_t number;
    begin_batch(b);
    const vpps_param of[] = {add_lookup(b->model, "E0", 3, ROWS, 1), add_lookup(b->model, "E1", 3, ROWS, 1)};
    vpps_graph *r = begin_cell(b->model, "word");
    for (uint32_t i = 0; i < 2; i++)
        TEST_OK(vpps_scatter(r, tables ? vpps_lookup(r, of[i], 1) : vpps_tanh(r, vpps_lookup(r, of[i], 1))));
    const vpps_cell word = end_cell(r);
    r = begin_cell(b->model, "attends");
    const vpps_node k = vpps_gather_list_from(r, 0, 0, ROWS, 1), v = vpps_gather_list_from(r, 0, 1, ROWS, 1);
    const vpps_node a = vpps_softmax_list(r, vpps_dot(r, k, vpps_lookup(r, of[0], 2)));
    TEST_OK(vpps_scatter(r, vpps_sum_elements(r, vpps_weighted_sum_list(r, a, v))));
    const vpps_cell attends = end_cell(r);
    const vpps_application read = {sizeof read, .cell = attends, .n_children = STEPS, .children = words};
    for (uint32_t i = 0; i < STEPS; i++) words[i] = APPLY(b->g, word);
    for (uint32_t i = 0; i < STEPS; i++) losses[i] = vpps_scattered(b->g, vpps_apply(b->g, &read), 0);
    open_batch(b, vpps_sum(b->g, STEPS, losses), (way){.n_vps = 1, .groups = 1});
    const vpps_block *block = block_of(b, "attends", &number);
    vpps_view_block(b->e.script, block, b->job.subject.cells[block->cell], &view);
    return b->e.script + (view.lists[1] - b->e.script) + STEPS + 1;
}

/* One distance separates outputs of one cell, so that two inputs of a list share an array; not parameters, which processes may share out. */
TEST_EACH(inputs_of_a_list_share_offsets, 0, 2) {
    AT_END(close_batch) batch b;
    uint32_t *places = open_attending(&b, _i);
    ck_assert(!places[1] && (places[0] == places[2]) == !_i && (places[3] != 0) == !_i);
    places[3] += ROWS;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "lies at");
    for (uint32_t m = 0; m < STEPS * STEPS && _i; m++) b.e.script[places[2] + m] -= ROWS;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "lies at"); /* the right place, but wrong if processes moved the table */
    places[2] = (uint32_t)b.e.words - STEPS;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "its arrays end at word");
}

/* ---------------------------------------------------------------- requests */

TEST(a_request_is_for_something_else) {
    enum { TERMS = 1000 };
    const float data[ROWS] = {0};
    const vpps_node none = VPPS_NO_NODE - 1;
    AT_END(close_batch) batch b;
    vpps_node terms[TERMS];
    begin_batch(&b);
    const vpps_node x = vpps_input(b.g, ROWS, 1, data), small = vpps_sum_elements(b.g, vpps_tanh(b.g, x));
    for (uint32_t i = 0; i < TERMS; i++) terms[i] = small;
    const vpps_node large = vpps_sum(b.g, TERMS, terms);
    open_batch(&b, small, (way){.n_vps = 1, .groups = 1});
    b.job.request.loss = none;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "the loss depends on node");
    b.job.request.loss = large;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "the loss has more terms than the script has words");
    b.job.request.loss = small;
    b.job.request.gradient_nodes = &none;
    b.job.request.n_gradient_nodes = 1;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "is no output of a vertex");
}

TEST(an_output_is_of_no_vertex) {
    AT_END(close_batch) batch b;
    open_inference(&b, vpps_tanh, 1);
    b.job.outputs[0] = VPPS_NO_NODE - 1;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "is no output of a vertex");
}

/* ---------------------------------------------------------------- gradients that are kept */

/* A script that keeps gradients for a later update computes all of them, and does not update. */
TEST(kept_gradients) {
    AT_END(close_batch) batch b;
    begin_batch(&b);
    const vpps_param E = add_lookup(b.model, "E", 3, ROWS, 1), W = add_matrix(b.model, "W", ROWS, ROWS);
    const vpps_node x = vpps_lookup(b.g, E, 1);
    open_batch(&b, vpps_sum_elements(b.g, vpps_matvec(b.g, W, x)), (way){.n_vps = 2, .groups = 1, .keeps = true});
    static const vpps_task update = {.kind = VPPS_TASK_UPDATE, .wait = VPPS_NO_BARRIER, .signal = VPPS_NO_BARRIER};
    const uint32_t end = find(&b, VPPS_TASK_END, 0);
    vpps_task *entries = editor_task(&b.e, find(&b, VPPS_TASK_ENTRIES, 0));
    entries->kind = VPPS_TASK_NOTHING;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "table 0, entry 1");
    entries->kind = VPPS_TASK_ENTRIES;
    TEST_OK(verify_edited(&b));
    ck_assert(editor_insert(&b.e, end, &update));
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "unexpected update");
    ck_assert(editor_remove(&b.e, end));
    TEST_OK(verify_edited(&b));
    editor_task(&b.e, find(&b, VPPS_TASK_OUTER, 0))->kind = VPPS_TASK_NOTHING;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "is missing in the parameters' gradients");
}

TEST(kept_gradients_are_not_left_to_an_update) {
    AT_END(close_batch) batch b;
    float data[ROWS] = {0};
    begin_batch(&b);
    const vpps_param W = add_matrix(b.model, "W", ROWS, ROWS);
    const vpps_node x = vpps_input(b.g, ROWS, 1, data);
    open_batch(&b, vpps_sum_elements(b.g, vpps_matvec(b.g, W, x)), (way){.n_vps = 1, .groups = 1, .keeps = true});
    editor_header(&b.e)->lasting = 1;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "left to an update, but there is none");
}
