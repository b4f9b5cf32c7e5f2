/* faults.c - see faults.h. */
#include "faults.h"

void begin_batch(batch *b) {
    TEST_OK(vpps_model_create(&b->model, 1));
    TEST_OK(vpps_graph_create(&b->g, b->model));
}

void open_batch(batch *b, vpps_node loss, way w) {
    TEST_OK(job_open(&b->job, b->g, loss, w, 0));
    TEST_OK(verify_subject(&b->job.subject));
    ck_assert(editor_open(&b->e, &b->job.subject, 1));
}

void open_recurrent(batch *b) {
    float data[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) data[i] = (float)i;
    begin_batch(b);
    const vpps_param w = add_matrix(b->model, "W", ROWS, ROWS), v = add_vector(b->model, "b", ROWS);
    vpps_graph *r = begin_cell(b->model, "rnn");
    TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_affine1(r, v, w, vpps_gather(r, 0, 0, ROWS, 1)))));
    const vpps_cell rnn = end_cell(r);
    const vpps_node x = vpps_input(b->g, ROWS, 1, data);
    vpps_vertex h = vpps_source(b->g, 1, &x);
    for (uint32_t i = 0; i < STEPS; i++) h = APPLY(b->g, rnn, CHILDREN(1, &h));
    open_batch(b, vpps_sum_elements(b->g, vpps_scattered(b->g, h, 0)), (way){.n_vps = 2, .groups = 1});
}

void open_inference(batch *b, vpps_node (*op)(vpps_graph *g, vpps_node x), uint32_t n_vps) {
    const float data[ROWS] = {0};
    begin_batch(b);
    const vpps_node out = op(b->g, vpps_input(b->g, ROWS, 1, data));
    open_batch(b, VPPS_NO_NODE, (way){.n_vps = n_vps, .groups = 1, .inference = true, .wanted = &out, .n_wanted = 1});
}

void close_batch(batch *b) {
    editor_close(&b->e);
    job_close(&b->job);
    vpps_graph_destroy(b->g);
    vpps_model_destroy(b->model);
}

vpps_status verify_edited(const batch *b) {
    subject s = b->job.subject;
    s.script = b->e.script;
    s.words = b->e.words;
    return verify_subject(&s);
}

vpps_block *block_of(batch *b, const char *cell, uint32_t *number) {
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

uint32_t find(batch *b, vpps_task_kind kind, uint32_t n) {
    for (size_t i = 0; i < b->e.n_sites; i++)
        if (editor_task(&b->e, b->e.sites[i].at)->kind == kind && n-- == 0) return b->e.sites[i].at;
    ck_abort_msg("no such task");
    return 0;
}

uint32_t find_wait(batch *b, uint32_t n) {
    for (size_t i = 0; i < b->e.n_sites; i++)
        if (editor_task(&b->e, b->e.sites[i].at)->wait != VPPS_NO_BARRIER && n-- == 0) return b->e.sites[i].at;
    ck_abort_msg("no such wait");
    return 0;
}
