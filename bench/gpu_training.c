/* gpu_training.c - training speed on a GPU: the Tree-LSTM by batch size, beside what the machine allows.
 *
 * SGD, fp32, loss at every labelled node, one handle. First the handle's own profile runs to its end. Then batch sizes take
 * turns, round by round, so that a change of the machine's speed hits all alike.
 *
 * The bounds are for the GPU that runs it, by what its driver says of clocks and memory: every weight read once a batch,
 * products in fp32, and a barrier for every phase. Weights and products could overlap, barriers cannot: a batch takes at
 * least the larger of the first two, and the third. Where the driver does not say, there is none.
 */
#include "gpu.h"
#include "graph/model.h"
#include "workload.h"

enum { ROUNDS = 7, N_BATCHES = 8 };
static const uint32_t batches[N_BATCHES] = {1, 2, 4, 8, 16, 32, 64, 128};

static const double barrier_s = 1.2e-6; /* public measurements */

typedef struct results {
    double rate[ROUNDS], host_share[ROUNDS], host_ns[ROUNDS], device_us[ROUNDS];
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
    bool done = false;
    float loss;
    uint64_t unused = 0;
    while (!done) {
        uint32_t n = 0;
        VPPS_TRY(train_batch(h, w, batch, &unused));
        VPPS_TRY(vpps_handle_trials(h, NULL, &n, &done));
    }
    return vpps_sync_latest_loss(h, &loss);
}

static vpps_status run_round(vpps_handle *h, workload *w, uint32_t batch, double seconds, results *r, int round) {
    vpps_stats before = {.size = sizeof before};
    float loss;
    uint64_t build_ns = 0, n = 0;
    VPPS_TRY(vpps_handle_stats(h, &before));
    const uint64_t start = vpps_now_ns();
    do {
        VPPS_TRY(train_batch(h, w, batch, &build_ns));
        n++;
    } while ((double)(vpps_now_ns() - start) < seconds * 1e9);
    VPPS_TRY(vpps_sync_latest_loss(h, &loss));
    const double spent = (double)(vpps_now_ns() - start);
    r->stats.size = sizeof r->stats;
    VPPS_TRY(vpps_handle_stats(h, &r->stats));
    const double host = (double)(build_ns + r->stats.total_host_ns - before.total_host_ns);
    r->rate[round] = (double)(n * batch) * 1e9 / spent;
    r->host_share[round] = host / spent;
    r->host_ns[round] = host / (double)(r->stats.total_nodes - before.total_nodes);
    r->device_us[round] = (double)(r->stats.total_device_ns - before.total_device_ns) * 1e-3 / (double)n;
    return VPPS_OK;
}

static double weight_bytes(const vpps_model *model) {
    double words = 0;
    for (size_t i = 0; i < model->n_params; i++) {
        if (model->params[i].kind == VPPS_MATRIX) words += (double)vpps_param_elems(&model->params[i]);
    }
    return 4 * words;
}

static vpps_status report(const workload *w, gpu_speed speed, uint32_t batch, results *r) {
    const gpu_figure rate = gpu_figure_of(r->rate, ROUNDS), share = gpu_figure_of(r->host_share, ROUNDS);
    const gpu_figure host = gpu_figure_of(r->host_ns, ROUNDS), device = gpu_figure_of(r->device_us, ROUNDS);
    const bool known = speed.bytes_per_s > 0 && speed.flops_per_s > 0;
    const double bytes = known ? weight_bytes(w->model) / speed.bytes_per_s : 0;
    const double flops = known ? w->flops_a_tree * batch / speed.flops_per_s : 0;
    const double barriers = (double)r->stats.phases * barrier_s, least = (bytes > flops ? bytes : flops) + barriers;
    fprintf(
        stderr,
        "| %u | %.0f (%.0f - %.0f) | %.0f | %.0f %% | %.1f | %.1f (%.1f - %.1f) | %.1f + %.1f + %.1f | %llu | %.1f |\n",
        batch, rate.median, rate.low, rate.high, known ? batch / least : 0, 100 * share.median, host.median,
        device.median, device.low, device.high, bytes * 1e6, flops * 1e6, barriers * 1e6,
        (unsigned long long)r->stats.phases, (double)r->stats.script_bytes * 1e-3);
    json_t *o = json_pack("{ss si so so so so}", "bench", "training", "batch", (int)batch, "sentences_per_s",
                          gpu_figure_json(rate), "host_share", gpu_figure_json(share), "host_ns_per_node",
                          gpu_figure_json(host), "device_us", gpu_figure_json(device));
    json_object_set_new(o, "bound_sentences_per_s", known ? json_real(batch / least) : json_null());
    json_object_set_new(
        o, "bound_us",
        known ? json_pack("{sf sf sf}", "bytes", bytes * 1e6, "flops", flops * 1e6, "barriers", barriers * 1e6)
              : json_null());
    json_object_set_new(o, "phases", json_integer((json_int_t)r->stats.phases));
    json_object_set_new(o, "script_bytes", json_integer((json_int_t)r->stats.script_bytes));
    return gpu_emit(o);
}

static vpps_status report_trials(vpps_handle *h) {
    vpps_trial trials[128] = {{.size = sizeof *trials}};
    uint32_t n = VPPS_COUNT(trials);
    bool done;
    VPPS_TRY(vpps_handle_trials(h, trials, &n, &done));
    for (uint32_t i = 0; i < n && i < VPPS_COUNT(trials); i++) {
        const vpps_trial *t = &trials[i];
        const bool in_use = t->state == VPPS_TRIAL_CURRENT || t->state == VPPS_TRIAL_REMEMBERED;
        if (t->state == VPPS_TRIAL_WAITING) continue;
        VPPS_TRY(gpu_emit(json_pack("{ss si si sb sb sf si sf}", "bench", "trial", "rpw", (int)t->rpw, "threads",
                                    (int)t->threads, "in_use", (int)in_use, "rejected",
                                    (int)(t->state == VPPS_TRIAL_REJECTED), "ns_per_node", t->ns_per_node, "registers",
                                    (int)t->registers, "load_seconds", t->load_seconds)));
    }
    return VPPS_OK;
}

static vpps_status measure(const gpu_settings *settings, vpps_handle *h, workload *w, uint32_t n_batches) {
    static results all[N_BATCHES];
    const gpu_speed speed = gpu_speed_of(settings->device);
    const uint32_t profiled = n_batches == N_BATCHES ? 16 : 1;
    VPPS_TRY(finish_profile(h, w, profiled));
    VPPS_TRY(report_trials(h));
    for (uint32_t i = 0; i < n_batches; i++) VPPS_TRY(run_round(h, w, batches[i], settings->seconds / 2, &all[i], 0));
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < n_batches; i++) {
            VPPS_TRY(run_round(h, w, batches[i], settings->seconds, &all[i], round));
        }
    }
    fprintf(stderr, "\nBounds for %.3g TB/s and %.3g TFLOP/s, as the driver says (0: not known)\n",
            speed.bytes_per_s * 1e-12, speed.flops_per_s * 1e-12);
    fprintf(stderr,
            "\n| batch | sentences/s (lowest - highest) | bound | host | host ns a node | device us a batch | of it at "
            "least: bytes or products, barriers | phases | script KB |\n");
    fprintf(stderr, "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (uint32_t i = 0; i < n_batches; i++) VPPS_TRY(report(w, speed, batches[i], &all[i]));
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
    fprintf(stderr, "\nTraining, embedding %u, hidden %u\n", size, size);
    vpps_status status = workload_create(&w, settings->trees, size, size);
    if (status == VPPS_OK) status = vpps_handle_create(&h, w.model, &options);
    if (status == VPPS_OK) status = measure(settings, h, &w, simt ? 2 : N_BATCHES);
    vpps_handle_destroy(h);
    workload_destroy(&w);
    return status;
}
