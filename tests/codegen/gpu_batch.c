/* gpu_batch.c - see gpu_batch.h. */
#include "gpu_batch.h"

#include "runtime/handle.h"

/* Returns a GPU with an H100's shared memory of an SM and of a CTA. */
static vpps_machine gpu_machine(uint32_t sms) {
    return (vpps_machine){.name = "test",
                          .arch = 90,
                          .sms = sms,
                          .sm_registers = 65536,
                          .sm_shared_bytes = 228 << 10,
                          .cta_shared_bytes = 227 << 10};
}

static void schedule(gpu_batch *b, const gpu_shape *shape, vpps_node loss) {
    vpps_options o = default_options();
    b->machine = gpu_machine(shape->sms);
    b->threads = shape->threads;
    o.vps = 1; /* for the handle's own device, which runs nothing */
    TEST_OK(vpps_handle_create(&b->handle, b->model, &o));
    o.vps = shape->sms;
    o.groups = shape->groups;
    o.rpw = shape->rpw;
    o.threads = shape->threads;
    TEST_OK(vpps_gpu_lay_out(&b->layout, b->model, &o, &b->machine, "test"));
    TEST_OK(vpps_handle_batch_for(b->handle, b->g, loss, &b->layout.target, shape->groups, &b->batch));
}

void gpu_batch_draw(gpu_batch *b, const gpu_shape *shape, uint64_t seed) {
    static const uint32_t large[] = {128, 200, 256, 257, 512};
    rg_case c;
    uint64_t random = seed;
    *b = (gpu_batch){0};
    rg_draw(&c, seed, 12 + (uint32_t)(seed % 20));
    if (seed % 2) c.sizes[seed / 2 % RG_SIZES] = large[vpps_random_below(&random, (uint32_t)VPPS_COUNT(large))];
    TEST_OK(rg_build(&b->drawn, &c, NULL));
    b->model = b->drawn.model;
    b->g = b->drawn.g[0];
    schedule(b, shape, b->drawn.loss[0]);
}

void gpu_batch_tree_lstm(gpu_batch *b, const gpu_shape *shape, uint32_t hidden, uint32_t embed) {
    enum { N = 5 };
    static const vpps_tree_node nodes[N] = {
        {0, -1, -1, 1}, {1, -1, -1, 2}, {2, 0, 1, VPPS_NO_WORD}, {3, -1, -1, 3}, {4, 2, 3, VPPS_NO_WORD}};
    static const vpps_tree tree = {nodes, N, 3};
    const net_config config = {.words = 100, .classes = 5, .embed = embed, .hidden = hidden};
    const net_example example = {.tree = &tree};
    vpps_node logits[N], nll[N];
    *b = (gpu_batch){.net = network_find("tree-lstm")};
    TEST_OK(vpps_model_create(&b->model, 1));
    TEST_OK(network_create(b->net, &b->instance, b->model, &config));
    TEST_OK(vpps_graph_create(&b->g, b->model));
    TEST_OK(b->net->add(b->instance, b->g, &example, NET_HEADS_LABELLED, &(net_scores){.logits = logits, .nll = nll}));
    schedule(b, shape, vpps_sum(b->g, N, nll));
}

void gpu_batch_close(gpu_batch *b) {
    vpps_gpu_layout_free(&b->layout);
    vpps_handle_destroy(b->handle);
    if (b->net) {
        network_destroy(b->instance);
        vpps_graph_destroy(b->g);
        vpps_model_destroy(b->model);
    } else {
        rg_destroy(&b->drawn);
    }
    *b = (gpu_batch){0};
}

vpps_kernel_plan gpu_batch_plan(const gpu_batch *b) {
    const vpps_trial choice = {.rpw = b->layout.target.rows.unit, .threads = b->threads};
    return vpps_gpu_kernel_plan(&b->layout, b->batch->n_groups, &choice,
                                (const vpps_compiled_cell *const *)b->batch->cells, b->batch->n_cells);
}

vpps_specialiser gpu_batch_specialiser(const gpu_batch *b) {
    return (vpps_specialiser){
        .model = b->model, .pool = &b->layout.plan, .matrix_at = b->layout.matrix_at, .machine = &b->machine};
}
