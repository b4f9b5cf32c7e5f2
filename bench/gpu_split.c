/* gpu_split.c - where a batch's time on the device goes, by scripts that stop early.
 *
 *     load       a script that gives one word's embedding: the launch, filling the registers, the end
 *     forward    a script that computes every labelled node's scores and nothing else, less load
 *     update     a training script for the smallest tree there is, less load; its own few phases are left in
 *     backward   the training script, less load, forward and update
 *
 * So the parts are estimates; of one batch their sum is a measurement, of the medians it need not be. The device is used
 * without a handle: what is timed is one script at a time, waited for. All run by one kernel, which has every cell of theirs
 * when the first batches, which do not count, are over.
 */
#include "gpu.h"
#include "runtime/device.h"
#include "workload.h"

enum { REPEATS = 31, WARM_UP = 3 };

typedef struct bench {
    workload w;
    vpps_device *device;
    vpps_batch *batch;
    vpps_types types;
    vpps_options options;
    uint32_t step;
} bench;

/* Runs the script of the graph as it is; device ns. loss NO_NODE: inference of the outputs. */
static vpps_status run_script(bench *b, vpps_node loss, const vpps_node *outputs, uint32_t n, double *ns) {
    const vpps_batch_request request = {.loss = loss,
                                        .outputs = outputs,
                                        .n_outputs = n,
                                        .optimizer = &b->options.optimizer,
                                        .guard = true,
                                        .step = ++b->step};
    vpps_outcome outcome;
    VPPS_TRY(vpps_schedule_batch(b->batch, &b->types, b->device->table->machine(b->device), b->w.g, &request));
    VPPS_TRY(b->device->table->launch(b->device, b->batch));
    b->device->table->wait(b->device, &outcome);
    if (outcome.status != VPPS_OK) return vpps_fail(outcome.status, "%s", outcome.message);
    *ns = (double)outcome.device_ns;
    return VPPS_OK;
}

static vpps_status time_load(bench *b, double *ns) {
    vpps_param embedding;
    VPPS_TRY(vpps_param_find(b->w.model, "embedding", &embedding));
    vpps_graph_clear(b->w.g);
    const vpps_node word = vpps_lookup(b->w.g, embedding, 0);
    return run_script(b, VPPS_NO_NODE, &word, 1, ns);
}

/* Training, and before it the forward part, of `batch` trees from tree `first` on. */
static vpps_status time_trees(bench *b, uint32_t first, uint32_t batch, double *forward_ns, double *train_ns) {
    vpps_node loss;
    b->w.next = first;
    VPPS_TRY(workload_batch(&b->w, batch, &loss));
    VPPS_TRY(run_script(b, VPPS_NO_NODE, b->w.scores, b->w.n_scores, forward_ns)); /* each tree for itself */
    return run_script(b, loss, NULL, 0, train_ns);
}

/* The smallest tree that uses every matrix: one with two children. */
static uint32_t smallest_tree(const workload *w) {
    uint32_t best = 0, nodes = UINT32_MAX;
    for (uint32_t i = 0; i < vpps_treebank_size(w->trees); i++) {
        const uint32_t n = vpps_treebank_tree(w->trees, i).n_nodes;
        if (n < 3 || n >= nodes) continue;
        nodes = n;
        best = i;
    }
    return best;
}

static vpps_status measure(bench *b, uint32_t batch) {
    double load[REPEATS], forward[REPEATS], backward[REPEATS], update[REPEATS], total[REPEATS];
    const uint32_t smallest = smallest_tree(&b->w);
    for (int i = -WARM_UP; i < REPEATS; i++) {
        double small_forward, small_train, at_load, to_loss, all;
        VPPS_TRY(time_load(b, &at_load));
        VPPS_TRY(time_trees(b, smallest, 1, &small_forward, &small_train));
        VPPS_TRY(time_trees(b, (uint32_t)(i + WARM_UP) * batch, batch, &to_loss, &all));
        if (i < 0) continue;
        load[i] = at_load * 1e-3;
        forward[i] = (to_loss - at_load) * 1e-3;
        update[i] = (small_train - at_load) * 1e-3;
        backward[i] = (all - to_loss - small_train + at_load) * 1e-3;
        total[i] = all * 1e-3;
    }
    return gpu_emit(json_pack(
        "{ss si so so so so so}", "bench", "split", "batch", (int)batch, "load_us",
        gpu_figure_json(gpu_figure_of(load, REPEATS)), "forward_us", gpu_figure_json(gpu_figure_of(forward, REPEATS)),
        "backward_us", gpu_figure_json(gpu_figure_of(backward, REPEATS)), "update_us",
        gpu_figure_json(gpu_figure_of(update, REPEATS)), "total_us", gpu_figure_json(gpu_figure_of(total, REPEATS))));
}

vpps_status gpu_bench_split(const gpu_settings *settings) {
    static const uint32_t batches[] = {1, 16, 128};
    const bool simt = strcmp(settings->device, "simt") == 0;
    const uint32_t size = simt ? 16 : 256;
    const vpps_device_table *table = simt ? &vpps_device_simt : &vpps_device_cuda;
    vpps_plan plan;
    bench b = {0};
    vpps_options_default(&b.options);
    b.options.no_tuning = simt; /* the profile of the training before is remembered */
    vpps_status status = workload_create(&b.w, settings->trees, size, size);
    if (status == VPPS_OK) status = vpps_batch_create(&b.batch);
    if (status == VPPS_OK) status = table->create(&b.device, b.w.model, &b.options, &plan);
    for (size_t i = 0; i < (simt ? 1 : VPPS_COUNT(batches)) && status == VPPS_OK; i++) status = measure(&b, batches[i]);
    if (b.device) table->destroy(b.device);
    vpps_batch_destroy(b.batch);
    vpps_types_free(&b.types);
    workload_destroy(&b.w);
    return status;
}
