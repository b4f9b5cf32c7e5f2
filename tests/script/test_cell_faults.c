/* test_cell_faults.c - faults in a script's compiled cells that test_refusals.c does not produce, and what the checker says of them. */
#include "faults.h"

/* The script was scheduled while parameters were frozen that no longer are. */
TEST(a_parameter_gets_no_gradient) {
    for (uint32_t n_frozen = 0; n_frozen <= 2; n_frozen++) {
        const float data[ROWS] = {0};
        AT_END(close_batch) batch b;
        begin_batch(&b);
        const vpps_param w[2] = {add_matrix(b.model, "W0", ROWS, ROWS), add_matrix(b.model, "W1", ROWS, ROWS)};
        const vpps_node h = vpps_tanh(b.g, vpps_matvec(b.g, w[0], vpps_input(b.g, ROWS, 1, data)));
        const vpps_node loss = vpps_sum_elements(b.g, vpps_matvec(b.g, w[1], h));
        for (uint32_t i = 0; i < n_frozen; i++) b.model->params[w[i]].frozen = true;
        open_batch(&b, loss, (way){.n_vps = 2, .groups = 1});
        for (uint32_t i = 0; i < n_frozen; i++) b.model->params[w[i]].frozen = false;
        if (n_frozen == 0) {
            TEST_OK(verify_edited(&b));
        } else {
            TEST_FAILS(verify_edited(&b), VPPS_SCRIPT,
                       n_frozen == 1 ? "depends on trained parameters, but gets no gradient"
                                     : "a term of the loss gets no gradient");
        }
    }
}

/* Another matrix is read as a value, or gets the gradient. */
TEST(a_matrix_is_read_as_a_value) {
    AT_END(close_batch) batch b;
    begin_batch(&b);
    const vpps_param w = add_matrix(b.model, "W", ROWS, 3), other = add_matrix(b.model, "W1", ROWS, 4);
    open_batch(&b, vpps_sum_elements(b.g, vpps_square(b.g, vpps_parameter(b.g, w))), (way){.n_vps = 2, .groups = 1});
    uint32_t number;
    vpps_compiled_cell *c = b.job.subject.cells[block_of(&b, "matrix", &number)->cell];
    ck_assert_uint_eq(vpps_n_outers(c), 1);
    vpps_program *outers = &c->programs[c->n_stages];
    outers->steps[0].to.at = other;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "gradient 0 is neither a vector's nor a matrix's");
    outers->steps[0].to.at = w;
    c->programs[0].steps[0].run.of.table = other;
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "not a matrix of the model");
    c->programs[0].steps[0].run.of.table = w;
    TEST_OK(verify_edited(&b));
}

/* Requested gradients are read elsewhere, taken as zero, or replaced by another value of the cell. */
TEST(a_gradient_that_is_asked_for_is_another) {
    const float data[ROWS] = {0};
    AT_END(close_batch) batch b;
    begin_batch(&b);
    const vpps_param w = add_matrix(b.model, "W", ROWS, ROWS);
    const vpps_node x = vpps_input(b.g, ROWS, 1, data), h = vpps_tanh(b.g, vpps_matvec(b.g, w, x)),
                    aside = vpps_square(b.g, h), nodes[] = {x, h, aside};
    open_batch(&b, vpps_sum_elements(b.g, vpps_square(b.g, vpps_tanh(b.g, h))), (way){.n_vps = 2, .groups = 1});
    vpps_batch_request request = b.job.request;
    request.goal = VPPS_GOAL_NODES;
    request.gradient_nodes = nodes;
    request.n_gradient_nodes = 3;
    vpps_batch *made = b.job.batch;
    TEST_OK(vpps_schedule_batch(made, &b.job.history, &b.job.machine, b.g, &request));
    uint32_t at[3];
    for (uint32_t i = 0; i < 3; i++) at[i] = vpps_batch_gradient(made, i);
    ck_assert_uint_eq(at[2], VPPS_NONE);
#define VERIFY()                                                                                                       \
    vpps_verify_batch(made->script, made->script_words, made->cells, made->n_cells, &b.job.machine, b.g, &request,     \
                      NULL, at, NULL)
    TEST_OK(VERIFY());
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t right = at[i];
        at[i] = right + 1;
        TEST_FAILS(VERIFY(), VPPS_SCRIPT, "is not at the offset where the host reads it");
        at[i] = VPPS_NONE;
        TEST_FAILS(VERIFY(), VPPS_SCRIPT, "is not at the offset where the host reads it");
        at[i] = right;
    }
    at[2] = at[1];
    TEST_FAILS(VERIFY(), VPPS_SCRIPT, "without this output");
    at[2] = VPPS_NONE;
    request.goal = VPPS_GOAL_GRADIENTS; /* then W trains */
    TEST_FAILS(VERIFY(), VPPS_SCRIPT, "");
    request.goal = VPPS_GOAL_NODES;
    for (uint32_t c = 0; c < made->n_cells; c++) {
        vpps_compiled_cell *cell = made->cells[c];
        const uint32_t d = cell->gradient_of[0];
        if (d == VPPS_NONE) continue;
        cell->gradient_of[0] = VPPS_NONE;
        TEST_FAILS(VERIFY(), VPPS_SCRIPT, "output 0's gradient differs from the vertex's derivative");
        cell->gradient_of[0] = cell->outputs[0].value;
        TEST_FAILS(VERIFY(), VPPS_SCRIPT, "output 0's gradient differs from the vertex's derivative");
        cell->gradient_of[0] = d;
        cell->needs.asked_gradients = 0;
        TEST_FAILS(VERIFY(), VPPS_SCRIPT, "or not asked for");
        cell->gradient_of[0] = VPPS_NONE;
        if (!strcmp(cell->name, "tanh")) TEST_FAILS(VERIFY(), VPPS_SCRIPT, "compiled without output 0's gradient");
        cell->gradient_of[0] = d;
        cell->needs.asked_gradients = 1;
    }
    TEST_OK(VERIFY());
#undef VERIFY
}

/* Opens two blocks of one op, the second of which claims the first one's cell. The script shows the same for both. */
static void open_alike(batch *b, const char *op, vpps_node x, vpps_node y) {
    const vpps_node out[] = {x, y};
    open_batch(b, VPPS_NO_NODE, (way){.n_vps = 1, .groups = 1, .inference = true, .wanted = out, .n_wanted = 2});
    vpps_block *blocks = (vpps_block *)(void *)(b->e.script + editor_header(&b->e)->blocks), *both[2] = {NULL, NULL};
    for (uint32_t i = 0, n = 0; i < editor_header(&b->e)->n_blocks; i++)
        if (n < 2 && !strcmp(b->job.subject.cells[blocks[i].cell]->name, op)) both[n++] = &blocks[i];
    ck_assert(both[0] && both[1]);
    both[1]->cell = both[0]->cell;
}

TEST(a_block_is_of_a_like_cell) {
    float data[32] = {0};
    batch b;
    begin_batch(&b);
    const vpps_node x = vpps_input(b.g, 16, 1, data), y = vpps_input(b.g, 32, 1, data);
    open_alike(&b, "sum_elements", vpps_sum_elements(b.g, x), vpps_sum_elements(b.g, y));
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "shape mismatch");
    close_batch(&b);
    for (uint32_t fewer = 0; fewer < 2; fewer++) {
        begin_batch(&b);
        vpps_node terms[4], sums[2];
        for (uint32_t i = 0; i < 4; i++) terms[i] = vpps_input(b.g, 16, 1, data);
        for (uint32_t i = 0; i < 2; i++) sums[i] = vpps_sum(b.g, i == fewer ? 4 : 3, terms);
        open_alike(&b, "sum", sums[0], sums[1]);
        TEST_FAILS(verify_edited(&b), VPPS_SCRIPT,
                   fewer ? "the graph gives the vertex more inputs" : "the graph gives the vertex fewer inputs");
        close_batch(&b);
    }
}

/* Gradients are kept in the place of gates that backward has read; with two operations exchanged, in the place of one not read yet. */
TEST(a_value_is_kept_over_one_that_is_still_read) {
    const float data[ROWS] = {0};
    bool seen = false;
    AT_END(close_batch) batch b;
    vpps_param w[4];
    vpps_node gate[4];
    begin_batch(&b);
    for (uint32_t i = 0; i < 4; i++) w[i] = add_matrix(b.model, (char[]){'W', (char)('0' + i), 0}, ROWS, ROWS);
    vpps_graph *r = begin_cell(b.model, "gates");
    const vpps_node in = vpps_pull(r, ROWS, 1);
    for (uint32_t i = 0; i < 4; i++) gate[i] = vpps_sigmoid(r, vpps_matvec(r, w[i], in));
    TEST_OK(vpps_push(r, vpps_mul(r, gate[0], gate[1])));
    TEST_OK(vpps_push(r, vpps_mul(r, gate[2], gate[3])));
    const vpps_cell gates = end_cell(r);
    const vpps_node x = vpps_input(b.g, ROWS, 1, data);
    const vpps_vertex v = APPLY(b.g, gates, PULLS(1, &x));
    open_batch(&b, vpps_dot(b.g, vpps_pushed(b.g, v, 0), vpps_pushed(b.g, v, 1)), (way){.n_vps = 1, .groups = 1});
    uint32_t block;
    vpps_compiled_cell *c = b.job.subject.cells[block_of(&b, "gates", &block)->cell];
    uint32_t *order = c->order + c->stages[1].first;
    for (uint32_t i = 0; i + 1 < c->stages[1].n; i++) { /* neighbours exchanged */
        const uint32_t first = order[i];
        order[i] = order[i + 1];
        order[i + 1] = first;
        TEST_OK(vpps_make_programs(c));
        if (verify_edited(&b) != VPPS_OK)
            seen |= strstr(vpps_error_message(), "stored over a value that the stage still reads") != NULL;
        order[i + 1] = order[i];
        order[i] = first;
    }
    ck_assert(seen);
}

TEST(an_inference_makes_a_gradient) {
    const float data[ROWS] = {0};
    AT_END(close_batch) batch b;
    begin_batch(&b);
    const vpps_param v = add_vector(b.model, "v", ROWS);
    const vpps_node out = vpps_tanh(b.g, vpps_input(b.g, ROWS, 1, data));
    open_batch(&b, VPPS_NO_NODE, (way){.n_vps = 1, .groups = 1, .inference = true, .wanted = &out, .n_wanted = 1});
    uint32_t number;
    vpps_compiled_cell *c = b.job.subject.cells[block_of(&b, "tanh", &number)->cell];
    vpps_operand dy = vpps_finished_operand(c, c->outputs[0].value);
    vpps_program_step outer = {.kind = VPPS_STEP_OUTER, .to = {.place = VPPS_PLACE_GRADIENT, .at = v}, .n = 1};
    vpps_program *outers = &c->programs[c->n_stages], none = *outers;
    *outers = (vpps_program){.steps = &outer, .n = 1, .operands = &dy, .n_operands = 1};
    TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "gradients in inference");
    *outers = none;
}

/* An RNN's product with its state begins with the product with its word, which is computed before; it has one column more. */
TEST(a_product_starts_from_fewer_columns) {
    enum { SIZE = 2 };
    AT_END(close_batch) batch b;
    begin_batch(&b);
    const vpps_param table = add_lookup(b.model, "E", STEPS, SIZE, 1);
    const vpps_param w[] = {add_matrix(b.model, "W0", SIZE, SIZE), add_matrix(b.model, "W1", SIZE, SIZE)};
    vpps_graph *r = begin_cell(b.model, "rnn");
    const vpps_node word = vpps_lookup(r, table, vpps_pull_index(r)), state = vpps_gather(r, 0, 0, SIZE, 1);
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_affine2(r, VPPS_NO_PARAM, w[0], word, w[1], state))));
    const vpps_cell rnn = end_cell(r);
    const vpps_node start = vpps_ones(b.g, SIZE, 1);
    vpps_vertex h = vpps_source(b.g, 1, &start);
    for (uint32_t i = 0; i < STEPS; i++) h = APPLY(b.g, rnn, CHILDREN(1, &h), INDICES(1, &i));
    open_batch(&b, vpps_sum_elements(b.g, vpps_scattered(b.g, h, 0)), (way){.n_vps = 2, .groups = 1});
    uint32_t number, found = 0;
    vpps_compiled_cell *c = b.job.subject.cells[block_of(&b, "rnn", &number)->cell];
    for (uint32_t s = 0; s < c->n_stages; s++) {
        for (uint32_t i = 0; i < c->programs[s].n; i++) {
            vpps_program_step *step = &c->programs[s].steps[i];
            if (step->kind != VPPS_STEP_PRODUCT || step->product.start.place != VPPS_PLACE_RECORD) continue;
            step->to.cols = 2;
            c->values[step->to.value].cols = 2;
            TEST_FAILS(verify_edited(&b), VPPS_SCRIPT, "value to add to the product does not fit");
            step->to.cols = 1;
            c->values[step->to.value].cols = 1;
            found++;
        }
    }
    ck_assert_uint_eq(found, 1);
    TEST_OK(verify_edited(&b));
}
