/* fixture.c - see fixture.h. */
#include "fixture.h"

#include "runtime/layout.h"

static uint32_t largest_divisor(const vpps_batch_extent *e, uint32_t most) {
    while (e->n_vps % most) most--;
    return most;
}

vpps_status machine_create(vpps_target *machine, const vpps_model *model, vpps_optimizer_kind optimizer, uint32_t n_vps,
                           uint32_t split_elems, uint32_t pool_words) {
    const vpps_options options = {.optimizer.kind = optimizer};
    vpps_pool_plan plan = {.n_vps = n_vps};
    vpps_rows gradients;
    const vpps_status status = vpps_lay_out_pool(&plan, model, &options, n_vps, "test", &gradients);
    *machine = (vpps_target){.n_vps = n_vps,
                             .values = plan.values,
                             .batch = plan.batch,
                             .pool_words = pool_words,
                             .choose_groups = largest_divisor,
                             .rows = {.unit = 16, .split_elems = split_elems},
                             .scales = n_vps != 3,
                             .in_place = n_vps != 3};
    return status;
}

void machine_destroy(vpps_target *machine) {
    void *values = (void *)(uintptr_t)machine->values; /* owned by this machine, though its plan is read only */
    free(values);
}

/* Draws a node that a user can name: the result of an op call, or what a vertex scatters or pushes. */
static vpps_node draw_node(vpps_graph *g, uint64_t *random) {
    for (;;) {
        const uint32_t v = vpps_random_below(random, (uint32_t)(g->n_records + g->n_vertices));
        if (v < g->n_records) {
            if (g->records[v].cell == VPPS_NODE_RECORD) return g->records[v].first;
            continue;
        }
        const vpps_vertex at = v - (uint32_t)g->n_records;
        if (g->vertices[at].cell == VPPS_SOURCE_VERTEX) continue;
        const vpps_cell_data *c = vpps_cell_of(g, g->vertices[at].cell);
        if (c->n_pushed && vpps_random_below(random, 2))
            return vpps_pushed(g, at, vpps_random_below(random, c->n_pushed));
        if (c->n_scattered) return vpps_scattered(g, at, vpps_random_below(random, c->n_scattered));
    }
}

vpps_status job_open(job *j, vpps_graph *g, vpps_node loss, way w, uint64_t seed) {
    enum { POOL_WORDS = 1 << 22 };
    uint64_t random = seed + 77;
    *j = (job){.optimizer = {.kind = (vpps_optimizer_kind)(seed % 5),
                             .lr = 0.1f,
                             .momentum = 0.9f,
                             .beta1 = 0.9f,
                             .beta2 = 0.99f,
                             .epsilon = 1e-8f,
                             .weight_decay = 0.01f,
                             .clip = seed % 2 ? 5.0f : 0.0f}};
    VPPS_TRY(machine_create(&j->machine, g->model, j->optimizer.kind, w.n_vps, w.split_elems,
                            w.pool_words ? w.pool_words : POOL_WORDS));
    j->machine.waves = w.wave_rule;
    j->machine.rows.wide = w.wide;
    j->machine.rows.wide_elems = UINT32_MAX;
    j->machine.level_flops = w.level_flops;
    j->request = (vpps_batch_request){.loss = loss,
                                      .goal = w.keeps ? VPPS_GOAL_GRADIENTS : VPPS_GOAL_STEP,
                                      .optimizer = &j->optimizer,
                                      .gradients = w.accumulate ? VPPS_GRADIENTS_ACCUMULATE : VPPS_GRADIENTS_DEFERRED,
                                      .guard = seed % 3 == 0,
                                      .step = 3,
                                      .dropout_key = vpps_dropout_key(seed, 1),
                                      .groups = w.groups,
                                      .waves = w.waves,
                                      .slices = w.slices};
    if (w.inference) {
        const uint32_t n = w.wanted ? w.n_wanted : JOB_OUTPUTS;
        for (uint32_t i = 0; i < n; i++) j->outputs[i] = w.wanted ? w.wanted[i] : draw_node(g, &random);
        j->request = (vpps_batch_request){
            .loss = VPPS_NO_NODE, .outputs = j->outputs, .n_outputs = n, .groups = w.groups, .waves = w.waves};
    }
    if (w.halves) {
        j->request.halves = j->request.keeps_groups = true;
        j->request.outputs = w.wanted;
        j->request.n_outputs = j->request.n_given = w.n_wanted;
    }
    VPPS_TRY(vpps_batch_create(&j->batch));
    VPPS_TRY(vpps_schedule_batch(j->batch, &j->history, &j->machine, g, &j->request));
    for (uint32_t i = 0; i < j->request.n_outputs; i++) j->offsets[i] = vpps_batch_output(j->batch, i);
    const vpps_batch *b = j->batch;
    j->subject = (subject){b->script,   b->script_words, b->cells,
                           b->n_cells,  &j->machine,     g,
                           &j->request, j->offsets,      w.halves ? vpps_batch_given(b) : NULL};
    return VPPS_OK;
}

void job_close(job *j) {
    vpps_batch_destroy(j->batch);
    vpps_history_free(&j->history);
    machine_destroy(&j->machine);
}
