/* test_faults.c - faults of scripts, and what the checker says of them. */
#include "faults.h"

/* ---------------------------------------------------------------- barriers */

TEST(a_wait_is_missing) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    editor_task(&b.e, find_wait(&b, 1))->wait = VPPS_NO_BARRIER;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "(rnn)");
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "without a barrier in between");
}

TEST(a_wait_is_for_too_few_or_too_many) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    vpps_task *t = editor_task(&b.e, find_wait(&b, 1));
    t->signals = 1; /* a signal comes, but whose? */
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "without a barrier in between");
    t->signals = 3;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "waits for 3 signals, barrier 1 gets 2");
}

TEST(a_deadlock) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    vpps_task *waits = editor_task(&b.e, find_wait(&b, 1));
    ck_assert(waits->wait == 1 && waits[-1].signal == 1);
    waits[-1].signal = VPPS_NO_BARRIER; /* it signals after it has waited */
    waits->signal = 1;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "deadlock: barrier 1 has 0 signals");
}

/* A value lies where another lay that is read meanwhile by the other VP: with a barrier between it is right. */
TEST(a_write_after_a_read) {
    float data[16] = {0};
    AT_END(close_batch) batch b;
    vpps_node x[2], y[2], out[4];
    TEST_OK(vpps_model_create(&b.model, 1));
    TEST_OK(vpps_graph_create(&b.g, b.model));
    for (uint32_t i = 0; i < 2; i++) x[i] = vpps_tanh(b.g, vpps_input(b.g, 16, 1, data));
    for (uint32_t i = 0; i < 2; i++) y[i] = vpps_abs(b.g, vpps_input(b.g, 16, 1, data));
    for (uint32_t i = 0; i < 2; i++) out[i] = vpps_exp(b.g, x[1 - i]); /* each VP reads what the other made */
    for (uint32_t i = 0; i < 2; i++) out[2 + i] = vpps_square(b.g, y[1 - i]);
    open_batch(&b, VPPS_NO_NODE, (way){.n_vps = 2, .groups = 1, .inference = true, .wanted = out, .n_wanted = 4});

    uint32_t reader, writer, other;
    block_of(&b, "exp", &reader);
    block_of(&b, "square", &writer);
    const bool exchanged = stage_of(&b, reader) > stage_of(&b, writer);
    const vpps_block *read = block_of(&b, exchanged ? "abs" : "tanh", &other);
    vpps_block *written = block_of(&b, exchanged ? "exp" : "square", &writer);
    block_of(&b, exchanged ? "square" : "exp", &reader);
    ck_assert_uint_eq(read->n, 2);
    for (uint32_t i = 0; i < 4; i++)
        if (i / 2 == !exchanged) b.job.offsets[i] += read->kept[0] - written->kept[0];
    written->kept[0] = read->kept[0];
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "writes word");
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "which is read without a barrier in between");

    const uint32_t barrier = editor_header(&b.e)->n_barriers++;
    vpps_task *t = editor_task(&b.e, stage_of(&b, writer));
    const vpps_task between = {.kind = VPPS_TASK_NOTHING, .wait = t->wait, .signals = t->signals, .signal = barrier};
    t->wait = barrier;
    t->signals = 2;
    ck_assert(editor_insert(&b.e, stage_of(&b, writer), &between));
    TEST_OK(verify_edited(&b));
}

/* A recurrent net with a classifier of two rows at every step, of whole vertices, beside the net's rows. */
static void open_classified(batch *b) {
    static const float data[ROWS];
    vpps_graph *r;
    vpps_cell first, next;
    TEST_OK(vpps_model_create(&b->model, 1));
    const vpps_param w = add_matrix(b->model, "W", ROWS, ROWS), s = add_matrix(b->model, "S", 2, ROWS);
    vpps_node losses[STEPS];
    vpps_cell *const cells[] = {&first, &next};
    for (uint32_t i = 0; i < 2; i++) {
        TEST_OK(vpps_cell_begin(b->model, i ? "next" : "first", &r));
        vpps_node c = i ? vpps_gather(r, 0, 1, ROWS, 1) : vpps_pull(r, ROWS, 1);
        const vpps_node gate = vpps_sigmoid(r, vpps_matvec(r, w, i ? vpps_gather(r, 0, 0, ROWS, 1) : c));
        if (i) c = vpps_mul(r, c, gate);
        const vpps_node h = vpps_tanh(r, i ? c : gate);
        TEST_OK(vpps_scatter(r, h));
        TEST_OK(vpps_scatter(r, i ? c : gate));
        TEST_OK(vpps_scatter(r, vpps_cross_entropy(r, vpps_matvec(r, s, h), 1)));
        TEST_OK(vpps_cell_end(r, cells[i]));
    }
    TEST_OK(vpps_graph_create(&b->g, b->model));
    const vpps_node x = vpps_input(b->g, ROWS, 1, data);
    vpps_vertex v = vpps_apply(b->g, VPPS_APPLICATION(.cell = first, .n_pulls = 1, .pulls = &x));
    for (uint32_t i = 0; i < STEPS; i++) {
        losses[i] = vpps_scattered(b->g, v, 2);
        if (i + 1 < STEPS) v = vpps_apply(b->g, VPPS_APPLICATION(.cell = next, .n_children = 1, .children = &v));
    }
    open_batch(b, vpps_sum(b->g, STEPS, losses), (way){.n_vps = 2, .groups = 1});
}

/* Phases end only where a VP waits for another one. */
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

/* ---------------------------------------------------------------- results */

TEST(the_loss_is_late) {
    AT_END(close_batch) batch b;
    open_recurrent(&b); /* with a guard, for which every VP wants the loss */
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
    TEST_OK(vpps_model_create(&b.model, 1));
    TEST_OK(vpps_graph_create(&b.g, b.model));
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

/* ---------------------------------------------------------------- gradients */

/* The list of contributions to a vertex of the recurrence that another reads: two shares. */
static uint32_t *shares_of(batch *b, uint32_t p) {
    uint32_t number;
    const vpps_block *block = block_of(b, "rnn", &number);
    vpps_block_view view;
    vpps_view_block(b->e.script, block, b->job.subject.cells[block->cell], &view);
    ck_assert_uint_eq(view.gradient_starts[0][p + 1] - view.gradient_starts[0][p], 2);
    return b->e.script + (view.gradients[0] + view.gradient_starts[0][p] - b->e.script);
}

TEST(a_contribution_is_taken_twice) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    uint32_t *shares = shares_of(&b, 1);
    shares[1] = shares[0];
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "contribution 0 (share 0) of rnn");
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "duplicate contribution: ");
}

/* The list has one part less, and is right otherwise. */
TEST(a_contribution_is_missing) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    uint32_t number;
    const vpps_block *block = block_of(&b, "rnn", &number);
    vpps_block_view view;
    vpps_view_block(b.e.script, block, b.job.subject.cells[block->cell], &view);
    uint32_t *starts = b.e.script + (view.gradient_starts[0] - b.e.script), *list = starts + block->n + 1;
    memmove(list + 1, list + 2, (starts[block->n] - 2) * sizeof *list);
    for (uint32_t p = 1; p <= block->n; p++) starts[p]--;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "gradient 0 is the sum of 1 contributions; expected 2");
}

TEST(the_losss_gradient_is_not_loaded) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    editor_task(&b.e, find(&b, VPPS_TASK_CONSTANTS, 0))->kind = VPPS_TASK_NOTHING;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "holds a value that was never written");
}

TEST(a_share_is_anothers) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    shares_of(&b, 2)[1] += ROWS; /* of the vertex after the one that reads it */
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "foreign contribution in a gradient");
}

/* ---------------------------------------------------------------- work */

TEST(a_stage_runs_twice) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    uint32_t number;
    block_of(&b, "rnn", &number);
    const uint32_t at = stage_of(&b, number);
    vpps_task copy = *editor_task(&b.e, at);
    copy.signal = VPPS_NO_BARRIER;
    ck_assert(editor_insert(&b.e, at, &copy));
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "vertex 0 has run this stage");
}

TEST(a_stage_never_runs) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    uint32_t number;
    block_of(&b, "sum_elements", &number);
    editor_task(&b.e, stage_of(&b, number))->kind = VPPS_TASK_NOTHING;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "expected value 1 of sum_elements");
}

TEST(a_vertex_is_there_twice) {
    float data[16] = {0};
    AT_END(close_batch) batch b;
    vpps_node x[2], out;
    TEST_OK(vpps_model_create(&b.model, 1));
    TEST_OK(vpps_graph_create(&b.g, b.model));
    for (uint32_t i = 0; i < 2; i++) x[i] = vpps_input(b.g, 16, 1, data);
    out = vpps_add(b.g, vpps_tanh(b.g, x[0]), vpps_tanh(b.g, vpps_tanh(b.g, x[1])));
    open_batch(&b, VPPS_NO_NODE, (way){.n_vps = 1, .groups = 1, .inference = true, .wanted = &out, .n_wanted = 1});
    uint32_t number;
    const vpps_block *block = block_of(&b, "tanh", &number);
    ck_assert_uint_gt(block->n, 1);
    uint32_t *vertices = b.e.script + block->arrays;
    vertices[1] = vertices[0];
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "duplicate vertex");
}

TEST(the_header_is_anothers) {
    AT_END(close_batch) batch b;
    open_recurrent(&b);
    vpps_task_header *h = editor_header(&b.e);
    h->lr *= 2;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "the header has the wrong optimizer");
    h->lr /= 2;
    h->dropout_key[1]++;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "dropout key");
    h->dropout_key[1]--;
    TEST_OK(verify_edited(&b));
    subject nothing = b.job.subject;
    nothing.words = VPPS_TASK_HEADER_WORDS - 1;
    TEST_FAILS(verify_subject(&nothing), VPPS_SCRIPT, "incomplete header");
    for (size_t n = 0; n < b.job.subject.words; n++) { /* cut off anywhere */
        uint32_t *cut = malloc((n + 1) * sizeof *cut);
        subject s = b.job.subject;
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, s.script, n * sizeof *cut);
        s.script = cut;
        s.words = n;
        ck_assert_int_eq(verify_subject(&s), VPPS_SCRIPT);
        if (n >= VPPS_TASK_HEADER_WORDS) ((vpps_task_header *)(void *)cut)->words = (uint32_t)n;
        ck_assert_int_eq(verify_subject(&s), VPPS_SCRIPT);
        free(cut);
    }
}

/* ---------------------------------------------------------------- lists */

/* STEPS words attend to all of them, and read two outputs of each. Returns the script's address and shift of both inputs. */
static uint32_t *open_attending(batch *b, bool tables) {
    vpps_cell word, attends;
    vpps_vertex words[STEPS];
    vpps_node losses[STEPS];
    vpps_block_view view;
    uint32_t number;
    TEST_OK(vpps_model_create(&b->model, 1));
    const vpps_param of[] = {add_lookup(b->model, "E0", 3, ROWS, 1), add_lookup(b->model, "E1", 3, ROWS, 1)};
    vpps_graph *r = begin_cell(b->model, "word");
    for (uint32_t i = 0; i < 2; i++)
        TEST_OK(vpps_scatter(r, tables ? vpps_lookup(r, of[i], 1) : vpps_tanh(r, vpps_lookup(r, of[i], 1))));
    TEST_OK(vpps_cell_end(r, &word));
    r = begin_cell(b->model, "attends");
    const vpps_node k = vpps_gather_list_from(r, 0, 0, ROWS, 1), v = vpps_gather_list_from(r, 0, 1, ROWS, 1);
    const vpps_node a = vpps_softmax_list(r, vpps_dot(r, k, vpps_lookup(r, of[0], 2)));
    TEST_OK(vpps_scatter(r, vpps_sum_elements(r, vpps_weighted_sum_list(r, a, v))));
    TEST_OK(vpps_cell_end(r, &attends));
    TEST_OK(vpps_graph_create(&b->g, b->model));
    const vpps_application read = {sizeof read, .cell = attends, .n_children = STEPS, .children = words};
    for (uint32_t i = 0; i < STEPS; i++) words[i] = vpps_apply(b->g, VPPS_APPLICATION(.cell = word));
    for (uint32_t i = 0; i < STEPS; i++) losses[i] = vpps_scattered(b->g, vpps_apply(b->g, &read), 0);
    open_batch(b, vpps_sum(b->g, STEPS, losses), (way){.n_vps = 1, .groups = 1});
    const vpps_block *block = block_of(b, "attends", &number);
    vpps_view_block(b->e.script, block, b->job.subject.cells[block->cell], &view);
    return b->e.script + (view.lists[1] - b->e.script) + STEPS + 1;
}

/* Outputs of one cell lie at one distance, so that two inputs of a list share an array. Parameters, which processes may share out, do not. */
TEST_EACH(inputs_of_a_list_share_offsets, 0, 2) {
    AT_END(close_batch) batch b;
    uint32_t *places = open_attending(&b, _i);
    ck_assert(!places[1] && (places[0] == places[2]) == !_i && (places[3] != 0) == !_i);
    places[3] += ROWS;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "lies at");
    for (uint32_t m = 0; m < STEPS * STEPS && _i; m++) b.e.script[places[2] + m] -= ROWS;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "lies at"); /* the right place, but not if processes moved the table */
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
    TEST_OK(vpps_model_create(&b.model, 1));
    TEST_OK(vpps_graph_create(&b.g, b.model));
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

/* A script that keeps gradients for a later update makes all of them, and does not update. */
TEST(kept_gradients) {
    AT_END(close_batch) batch b;
    TEST_OK(vpps_model_create(&b.model, 1));
    const vpps_param E = add_lookup(b.model, "E", 3, ROWS, 1), W = add_matrix(b.model, "W", ROWS, ROWS);
    TEST_OK(vpps_graph_create(&b.g, b.model));
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
    TEST_OK(vpps_model_create(&b.model, 1));
    const vpps_param W = add_matrix(b.model, "W", ROWS, ROWS);
    TEST_OK(vpps_graph_create(&b.g, b.model));
    const vpps_node x = vpps_input(b.g, ROWS, 1, data);
    open_batch(&b, vpps_sum_elements(b.g, vpps_matvec(b.g, W, x)), (way){.n_vps = 1, .groups = 1, .keeps = true});
    editor_header(&b.e)->lasting = 1;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "left to an update, but there is none");
}
