/* gpu_training.c - training speed on a GPU: the Tree-LSTM by batch size.
 *
 * SGD, loss at every labelled node, one handle. First the handle's own profile runs to its end. Then batch sizes take
 * turns, round by round, so that a change of the machine's speed hits all alike.
 */
#include "gpu.h"
#include "workload.h"

enum { ROUNDS = 7 };
static const uint32_t batches[] = {1, 2, 4, 8, 16, 32, 64, 128};
enum { N_BATCHES = VPPS_COUNT(batches), PROFILED = 16 };

typedef struct results {
    double rate[ROUNDS], host_share[ROUNDS], host_ns[ROUNDS], device_us[ROUNDS], gap_us[ROUNDS], gflops[ROUNDS];
    vpps_stats stats;
} results;

static void log_line(void *context, const char *line) {
    (void)context;
    fprintf(stderr, "    %s\n", line);
}

static vpps_status train_batch(vpps_handle *h, workload *w, uint32_t batch, uint64_t *build_ns) {
    vpps_node loss;
    const uint64_t start = vpps_now_ns();
    VPPS_TRY(workload_batch(w, batch, &loss));
    *build_ns += vpps_now_ns() - start;
    return vpps_fb(h, w->g, loss, NULL);
}

/* The handle's profile, on batches of one size. */
static vpps_status finish_profile(vpps_handle *h, workload *w, uint32_t batch) {
    uint64_t unused = 0;
    for (bool done = false; !done;) {
        uint32_t n = 0;
        VPPS_TRY(train_batch(h, w, batch, &unused));
        VPPS_TRY(vpps_handle_trials(h, NULL, &n, &done));
    }
    return vpps_sync_latest_loss(h, NULL);
}

static vpps_status run_round(vpps_handle *h, workload *w, uint32_t batch, double seconds, results *r, int round) {
    vpps_stats before = {.size = sizeof before};
    uint64_t build_ns = 0, n = 0;
    r->stats = before;
    VPPS_TRY(vpps_handle_stats(h, &before));
    const uint64_t start = vpps_now_ns();
    for (; (double)(vpps_now_ns() - start) < seconds * 1e9; n++) VPPS_TRY(train_batch(h, w, batch, &build_ns));
    VPPS_TRY(vpps_sync_latest_loss(h, NULL));
    const double spent = (double)(vpps_now_ns() - start);
    VPPS_TRY(vpps_handle_stats(h, &r->stats));
    const double host = (double)(build_ns + r->stats.total_host_ns - before.total_host_ns);
    r->rate[round] = (double)(n * batch) * 1e9 / spent;
    r->gflops[round] = r->rate[round] * w->flops_a_tree * 1e-9;
    r->host_share[round] = host / spent;
    r->host_ns[round] = host / (double)(r->stats.total_nodes - before.total_nodes);
    r->device_us[round] = (double)(r->stats.total_device_ns - before.total_device_ns) * 1e-3 / (double)n;
    r->gap_us[round] = (double)(r->stats.total_gap_ns - before.total_gap_ns) * 1e-3 / (double)n;
    return VPPS_OK;
}

static vpps_status report(uint32_t batch, results *r) {
    return gpu_emit(json_pack("{ss ss si so so so so so so sI sI}", "bench", "training", "precision",
                              r->stats.precision, "batch", (int)batch, "sentences_per_s",
                              gpu_figure_json(gpu_figure_of(r->rate, ROUNDS)), "gflops",
                              gpu_figure_json(gpu_figure_of(r->gflops, ROUNDS)), "host_share",
                              gpu_figure_json(gpu_figure_of(r->host_share, ROUNDS)), "host_ns_per_node",
                              gpu_figure_json(gpu_figure_of(r->host_ns, ROUNDS)), "device_us",
                              gpu_figure_json(gpu_figure_of(r->device_us, ROUNDS)), "gap_us",
                              gpu_figure_json(gpu_figure_of(r->gap_us, ROUNDS)), "phases", (json_int_t)r->stats.phases,
                              "script_bytes", (json_int_t)r->stats.script_bytes));
}

static vpps_status measure(const gpu_settings *settings, vpps_handle *h, workload *w, bool simt) {
    static results all[N_BATCHES];
    const uint32_t n = simt ? 2 : N_BATCHES;
    VPPS_TRY(finish_profile(h, w, simt ? 1 : PROFILED));
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(run_round(h, w, batches[i], settings->seconds / 2, &all[i], 0));
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < n; i++) VPPS_TRY(run_round(h, w, batches[i], settings->seconds, &all[i], round));
    for (uint32_t i = 0; i < n; i++) VPPS_TRY(report(batches[i], &all[i]));
    return VPPS_OK;
}

vpps_status gpu_bench_training(const gpu_settings *settings) {
    const bool simt = strcmp(settings->device, "simt") == 0;
    const uint32_t size = simt ? 16 : 256;
    workload w = {0};
    vpps_handle *h = NULL;
    vpps_options options;
    vpps_options_default(&options);
    options.device = settings->device;
    options.optimizer.lr = 0.01f;
    options.log = log_line;
    options.no_tuning = simt;
    options.precision = settings->precision;
    vpps_status status = workload_create(&w, settings->trees, size, size);
    if (status == VPPS_OK) status = vpps_handle_create(&h, w.model, &options);
    if (status == VPPS_OK) status = measure(settings, h, &w, simt);
    vpps_handle_destroy(h);
    workload_destroy(&w);
    return status;
}
