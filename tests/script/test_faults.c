/* test_faults.c - scripts with one fault each, made by hand from right ones, and what the checker says of it. */
#include "common/testing.h"
#include "mutate.h"

/* ---------------------------------------------------------------- scripts to edit */

/* A recurrent net over a few words, trained by two VPs that share rows out; or four values of an inference. */
typedef struct batch {
    vpps_model *model;
    vpps_graph *g;
    job job;
    editor e;
} batch;

enum { ROWS = 64, STEPS = 4 };

static void open_batch(batch *b, vpps_node loss, way w) {
    TEST_OK(job_open(&b->job, b->g, loss, w, 0));
    TEST_OK(verify_subject(&b->job.subject));
    ck_assert(editor_open(&b->e, &b->job.subject, 1));
}

static void open_recurrent(batch *b) {
    vpps_param w, v;
    vpps_graph *r;
    vpps_cell rnn;
    float data[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) data[i] = (float)i;
    TEST_OK(vpps_model_create(&b->model, 1));
    TEST_OK(vpps_add_matrix(b->model, &w, "W", ROWS, ROWS, NULL));
    TEST_OK(vpps_add_vector(b->model, &v, "b", ROWS, NULL));
    TEST_OK(vpps_cell_begin(b->model, "rnn", &r));
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_affine1(r, v, w, vpps_gather(r, 0, 0, ROWS, 1)))));
    TEST_OK(vpps_cell_end(r, &rnn));
    TEST_OK(vpps_graph_create(&b->g, b->model));
    const vpps_node x = vpps_input(b->g, ROWS, 1, data);
    vpps_vertex h = vpps_source(b->g, 1, &x);
    for (uint32_t i = 0; i < STEPS; i++) {
        const vpps_application a = {.cell = rnn, .n_children = 1, .children = &h};
        h = vpps_apply(b->g, &a);
    }
    open_batch(b, vpps_sum_elements(b->g, vpps_scattered(b->g, h, 0)), (way){.n_vps = 2, .groups = 1});
}

static void close_batch(batch *b) {
    editor_close(&b->e);
    job_close(&b->job);
    vpps_graph_destroy(b->g);
    vpps_model_destroy(b->model);
}

static vpps_status verify_edited(const batch *b) {
    subject s = b->job.subject;
    s.script = b->e.script;
    s.words = b->e.words;
    return verify_subject(&s);
}

/* The last block of a cell with vertices. */
static vpps_block *block_of(batch *b, const char *cell, uint32_t *number) {
    const vpps_task_header *h = editor_header(&b->e);
    vpps_block *blocks = (vpps_block *)(void *)(b->e.script + h->blocks), *found = NULL;
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        if (!blocks[i].n || strcmp(b->job.subject.cells[blocks[i].cell]->name, cell) != 0) continue;
        found = &blocks[i];
        *number = i;
    }
    ck_assert_ptr_nonnull(found);
    return found;
}

/* The n-th instruction of a kind, from 0. */
static const site *find(const batch *b, vpps_task task, uint32_t n) {
    for (size_t i = 0; i < b->e.n_sites; i++)
        if (b->e.script[b->e.sites[i].at] == task && n-- == 0) return &b->e.sites[i];
    ck_abort_msg("no such instruction");
    return NULL;
}

static const site *stage_of(const batch *b, uint32_t block) {
    for (size_t i = 0; i < b->e.n_sites; i++) {
        const uint32_t *at = b->e.script + b->e.sites[i].at;
        if (at[0] == VPPS_TASK_STAGE && at[1] == block) return &b->e.sites[i];
    }
    ck_abort_msg("no such stage");
    return NULL;
}

/* ---------------------------------------------------------------- barriers */

START_TEST(a_wait_is_missing)
    {
        batch b;
        open_recurrent(&b);
        const site *s = find(&b, VPPS_TASK_WAIT, 1);
        ck_assert(editor_splice(&b.e, s->at, s->words, NULL, 0));
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "(rnn)");
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "without a barrier between");
        close_batch(&b);
    }
END_TEST

START_TEST(a_wait_is_for_too_few_or_too_many)
    {
        batch b;
        open_recurrent(&b);
        const site *s = find(&b, VPPS_TASK_WAIT, 1);
        b.e.script[s->at + 2] = 1; /* a signal comes, but whose? */
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "without a barrier between");
        b.e.script[s->at + 2] = 3;
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "waits for 3 signals, barrier 1 gets 2");
        close_batch(&b);
    }
END_TEST

START_TEST(a_deadlock)
    {
        batch b;
        open_recurrent(&b);
        uint32_t *at = b.e.script + find(&b, VPPS_TASK_SIGNAL, 1)->at; /* with the wait behind it */
        const uint32_t wait_first[] = {at[2], at[3], at[4], at[0], at[1]};
        ck_assert_uint_eq(at[2], VPPS_TASK_WAIT);
        memcpy(at, wait_first, sizeof wait_first);
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "a deadlock: barrier 1 has 0 signals");
        close_batch(&b);
    }
END_TEST

/* A value lies where another lay that is read meanwhile by the other VP: with a barrier between it is right. */
START_TEST(a_write_after_a_read)
    {
        float data[16] = {0};
        batch b;
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
        const bool exchanged = stage_of(&b, reader)->at > stage_of(&b, writer)->at;
        const vpps_block *read = block_of(&b, exchanged ? "abs" : "tanh", &other);
        vpps_block *written = block_of(&b, exchanged ? "exp" : "square", &writer);
        block_of(&b, exchanged ? "square" : "exp", &reader);
        ck_assert_uint_eq(read->n, 2);
        for (uint32_t i = 0; i < 4; i++)
            if (i / 2 == !exchanged) b.job.offsets[i] += read->kept[0] - written->kept[0];
        written->kept[0] = read->kept[0];
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "it writes word");
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "which is read without a barrier between");

        const uint32_t barrier = editor_header(&b.e)->n_barriers++;
        const uint32_t between[] = {VPPS_TASK_SIGNAL, barrier, VPPS_TASK_WAIT, barrier, 2};
        ck_assert(editor_splice(&b.e, stage_of(&b, writer)->at, 0, between, VPPS_COUNT(between)));
        TEST_OK(verify_edited(&b));
        close_batch(&b);
    }
END_TEST

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

START_TEST(a_contribution_is_taken_twice)
    {
        batch b;
        open_recurrent(&b);
        uint32_t *shares = shares_of(&b, 1);
        shares[1] = shares[0];
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "contribution 0 (share 0) of rnn");
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "is taken twice");
        close_batch(&b);
    }
END_TEST

/* The list has one part less, and is right otherwise. */
START_TEST(a_contribution_is_missing)
    {
        batch b;
        open_recurrent(&b);
        uint32_t number;
        const vpps_block *block = block_of(&b, "rnn", &number);
        vpps_block_view view;
        vpps_view_block(b.e.script, block, b.job.subject.cells[block->cell], &view);
        uint32_t *starts = b.e.script + (view.gradient_starts[0] - b.e.script), *list = starts + block->n + 1;
        memmove(list + 1, list + 2, (starts[block->n] - 2) * sizeof *list);
        for (uint32_t p = 1; p <= block->n; p++) starts[p]--;
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "gradient number 0 is the sum of 1 parts; expected 2");
        close_batch(&b);
    }
END_TEST

START_TEST(the_losss_gradient_is_not_loaded)
    {
        batch b;
        open_recurrent(&b);
        const site *s = find(&b, VPPS_TASK_CONSTANTS, 0);
        ck_assert(editor_splice(&b.e, s->at, s->words, NULL, 0));
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "holds what nobody wrote");
        close_batch(&b);
    }
END_TEST

START_TEST(a_share_is_anothers)
    {
        batch b;
        open_recurrent(&b);
        shares_of(&b, 2)[1] += ROWS; /* of the vertex after the one that reads it */
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "a gradient is the sum of what does not belong to it");
        close_batch(&b);
    }
END_TEST

START_TEST(a_share_is_taken_for_the_sum)
    {
        batch b;
        open_recurrent(&b);
        uint32_t number;
        const uint32_t cell = block_of(&b, "rnn", &number)->cell;
        vpps_compiled_cell *changed = copy_cell(b.job.subject.cells[cell]);
        ck_assert(changed->contributions[0].partial);
        changed->contributions[0].partial = false;
        vpps_compiled_cell *cells[8];
        memcpy(cells, b.job.subject.cells, b.job.subject.n_cells * sizeof *cells);
        cells[cell] = changed;
        b.job.subject.cells = cells;
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "its shares are contributed as a whole");
        vpps_compiled_cell_free(changed);
        close_batch(&b);
    }
END_TEST

/* Scheduled while parameters were frozen that no longer are. */
START_TEST(a_parameter_gets_no_gradient)
    {
        for (uint32_t n_frozen = 0; n_frozen <= 2; n_frozen++) {
            const float data[ROWS] = {0};
            batch b;
            vpps_param w[2];
            TEST_OK(vpps_model_create(&b.model, 1));
            TEST_OK(vpps_add_matrix(b.model, &w[0], "W0", ROWS, ROWS, NULL));
            TEST_OK(vpps_add_matrix(b.model, &w[1], "W1", ROWS, ROWS, NULL));
            TEST_OK(vpps_graph_create(&b.g, b.model));
            const vpps_node h = vpps_tanh(b.g, vpps_matvec(b.g, w[0], vpps_input(b.g, ROWS, 1, data)));
            const vpps_node loss = vpps_sum_elements(b.g, vpps_matvec(b.g, w[1], h));
            for (uint32_t i = 0; i < n_frozen; i++) b.model->params[w[i]].frozen = true;
            open_batch(&b, loss, (way){.n_vps = 2, .groups = 1});
            for (uint32_t i = 0; i < n_frozen; i++) b.model->params[w[i]].frozen = false;
            if (n_frozen == 0) {
                TEST_OK(verify_edited(&b));
            } else {
                TEST_FAILS(verify_edited(&b), VPPS_SCRIPT,
                           n_frozen == 1 ? "made of parameters that are trained, but gets no gradient"
                                         : "a term of the loss gets no gradient");
            }
            close_batch(&b);
        }
    }
END_TEST

/* Two products one after the other: the first one's gradient is a product with a transposed matrix, of which VPs that share
 * rows out make shares. Nothing adds them up for a product or for a matrix's gradient. */
START_TEST(products_of_products)
    {
        for (uint32_t n_vps = 1; n_vps <= 4; n_vps++) {
            batch b;
            vpps_param w[2];
            TEST_OK(vpps_model_create(&b.model, 1));
            TEST_OK(vpps_add_matrix(b.model, &w[0], "W0", ROWS, ROWS, NULL));
            TEST_OK(vpps_add_matrix(b.model, &w[1], "W1", ROWS, ROWS, NULL));
            vpps_graph *r;
            vpps_cell linear;
            TEST_OK(vpps_cell_begin(b.model, "linear", &r));
            TEST_OK(vpps_push(r, vpps_matvec(r, w[1], vpps_matvec(r, w[0], vpps_pull(r, ROWS, 1)))));
            TEST_OK(vpps_cell_end(r, &linear));
            TEST_OK(vpps_graph_create(&b.g, b.model));
            const float data[ROWS] = {0};
            const vpps_node x = vpps_input(b.g, ROWS, 1, data);
            const vpps_application a = {.cell = linear, .n_pulls = 1, .pulls = &x};
            const vpps_vertex v = vpps_apply(b.g, &a);
            open_batch(&b, vpps_sum_elements(b.g, vpps_pushed(b.g, v, 0)), (way){.n_vps = n_vps, .groups = 1});
            close_batch(&b);
        }
    }
END_TEST

/* ---------------------------------------------------------------- work */

START_TEST(a_stage_runs_twice)
    {
        batch b;
        open_recurrent(&b);
        uint32_t number, copy[5];
        block_of(&b, "rnn", &number);
        const site *s = stage_of(&b, number);
        memcpy(copy, b.e.script + s->at, sizeof copy);
        ck_assert(editor_splice(&b.e, s->at, 0, copy, VPPS_COUNT(copy)));
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "vertex 0 has run this stage");
        close_batch(&b);
    }
END_TEST

START_TEST(a_stage_never_runs)
    {
        batch b;
        open_recurrent(&b);
        uint32_t number;
        block_of(&b, "sum_elements", &number);
        const site *s = stage_of(&b, number);
        ck_assert(editor_splice(&b.e, s->at, s->words, NULL, 0));
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "expected value 1 of sum_elements");
        close_batch(&b);
    }
END_TEST

/* Two blocks of one op, of which the one claims the other's cell. What a script shows of both is the same. */
static void open_alike(batch *b, const char *op, vpps_node x, vpps_node y) {
    const vpps_node out[] = {x, y};
    open_batch(b, VPPS_NO_NODE, (way){.n_vps = 1, .groups = 1, .inference = true, .wanted = out, .n_wanted = 2});
    vpps_block *blocks = (vpps_block *)(void *)(b->e.script + editor_header(&b->e)->blocks), *both[2] = {NULL, NULL};
    for (uint32_t i = 0, n = 0; i < editor_header(&b->e)->n_blocks; i++)
        if (n < 2 && !strcmp(b->job.subject.cells[blocks[i].cell]->name, op)) both[n++] = &blocks[i];
    ck_assert(both[0] && both[1]);
    both[1]->cell = both[0]->cell;
}

START_TEST(a_block_is_of_a_like_cell)
    {
        float data[32] = {0};
        batch b;
        TEST_OK(vpps_model_create(&b.model, 1));
        TEST_OK(vpps_graph_create(&b.g, b.model));
        const vpps_node x = vpps_input(b.g, 16, 1, data), y = vpps_input(b.g, 32, 1, data), four[] = {x, x, x, x};
        open_alike(&b, "sum_elements", vpps_sum_elements(b.g, x), vpps_sum_elements(b.g, y));
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "what it reads has another shape");
        editor_close(&b.e);
        job_close(&b.job);
        open_alike(&b, "sum", vpps_sum(b.g, 4, four), vpps_sum(b.g, 3, four));
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "inputs"); /* more of them, or fewer */
        close_batch(&b);
    }
END_TEST

START_TEST(a_vertex_is_there_twice)
    {
        float data[16] = {0};
        batch b;
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
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "it is there twice");
        close_batch(&b);
    }
END_TEST

START_TEST(the_header_is_anothers)
    {
        batch b;
        open_recurrent(&b);
        vpps_task_header *h = editor_header(&b.e);
        h->lr *= 2;
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "the header's optimiser is not the one asked for");
        h->lr /= 2;
        h->dropout_key[1]++;
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "dropout key");
        h->dropout_key[1]--;
        TEST_OK(verify_edited(&b));
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
        close_batch(&b);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("faults");
    TCase *t = tcase_create("faults");
    tcase_add_test(t, a_wait_is_missing);
    tcase_add_test(t, a_wait_is_for_too_few_or_too_many);
    tcase_add_test(t, a_deadlock);
    tcase_add_test(t, a_write_after_a_read);
    tcase_add_test(t, a_contribution_is_taken_twice);
    tcase_add_test(t, a_contribution_is_missing);
    tcase_add_test(t, the_losss_gradient_is_not_loaded);
    tcase_add_test(t, a_share_is_anothers);
    tcase_add_test(t, a_share_is_taken_for_the_sum);
    tcase_add_test(t, a_parameter_gets_no_gradient);
    tcase_add_test(t, products_of_products);
    tcase_add_test(t, a_stage_runs_twice);
    tcase_add_test(t, a_stage_never_runs);
    tcase_add_test(t, a_block_is_of_a_like_cell);
    tcase_add_test(t, a_vertex_is_there_twice);
    tcase_add_test(t, the_header_is_anothers);
    suite_add_tcase(suite, t);
    return test_main(suite);
}
