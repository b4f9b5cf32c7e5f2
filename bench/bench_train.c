/* bench_train.c - trains a network as `vpps train` does, as long and as often as requested, and reports the speed.
 *
 *     bench_train NETWORK [OPTION of `vpps train`...]        echo "16 0.5" | bench_train tree-lstm --data DIR
 *
 * Each line of standard input, "BATCH SECONDS", is answered by a JSON object on a line. A batch size is warmed up
 * when it first occurs, until the profile is finished, and briefly before each figure. It continues in the training
 * part where its preceding line ended, in the order of the file. The time is from building the first graph to the
 * last loss. bench/train.py runs one such process for each network, in turn with other frameworks.
 *
 * "BATCH 0 EXAMPLES" trains at least that many examples from the beginning of the training part, after a batch of
 * one example that does not count: for devices whose time is simulated (VPPS_LIBCUDA).
 *
 * peak_gflops: for a run on the CPU, the mean of the cores' peak (peak.h) right before and right after; gflops: the
 * operations of the trained examples by vpps_graph_cost. Host: building graphs and making scripts. Gap: the GPU's
 * idle time. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/input/corpus_read.h"
#include "cli/session/session.h"
#include "peak.h"

#include <jansson.h>

enum { MAX_BATCHES = 32, MAX_BATCH = 4096, COUNTED = 2048, PEAK_NS = 20000000 };
static const double WARM_UP_S = 0.1;

/* A batch size with its own handle, as a run of `vpps train` would have. */
typedef struct size {
    settings s;
    session session;
    uint32_t next; /* the next example */
} size;

typedef struct bench {
    settings s;
    corpus corpus;
    uint32_t n_examples; /* how many examples from the beginning of the training part are used */
    double flops[COUNTED];
    size sizes[MAX_BATCHES];
    uint32_t n_sizes;
} bench;

/* Counts the operations of each example. */
static vpps_status count_flops(bench *b, session *x) {
    for (uint32_t i = 0; i < b->n_examples; i++) {
        vpps_cost cost = {.size = sizeof cost};
        vpps_node loss;
        VPPS_TRY(session_add_batch(x, &b->corpus, &b->corpus.split[SPLIT_TRAIN], &i, 1, 1, &loss));
        VPPS_TRY(vpps_graph_cost(x->graph, &cost));
        b->flops[i] = (double)(cost.product_flops + cost.other_flops);
    }
    return VPPS_OK;
}

static void log_nothing(void *context, const char *line) {
    (void)context;
    (void)line;
}

typedef struct totals {
    uint64_t batches, sentences, build_ns;
    double flops;
} totals;

static vpps_status train_batch(bench *b, size *z, uint32_t n, totals *t) {
    uint32_t examples[MAX_BATCH];
    vpps_node loss;
    for (uint32_t i = 0; i < n; i++) {
        examples[i] = z->next++ % b->n_examples;
        t->flops += b->flops[examples[i]];
    }
    const uint64_t start = vpps_now_ns();
    VPPS_TRY(session_add_batch(&z->session, &b->corpus, &b->corpus.split[SPLIT_TRAIN], examples, n, n, &loss));
    t->build_ns += vpps_now_ns() - start;
    t->batches++;
    t->sentences += n;
    return vpps_fb(z->session.handle, z->session.graph, loss, NULL);
}

/* Trains for at least `seconds` and at least `examples` examples. */
static vpps_status train(bench *b, size *z, double seconds, uint32_t examples, totals *t, double *spent_ns) {
    const uint64_t start = vpps_now_ns();
    do {
        VPPS_TRY(train_batch(b, z, z->s.batch, t));
    } while ((double)(vpps_now_ns() - start) < seconds * 1e9 || t->sentences < examples);
    VPPS_TRY(vpps_sync_latest_loss(z->session.handle, NULL));
    *spent_ns = (double)(vpps_now_ns() - start);
    return VPPS_OK;
}

/* Finds a batch size's state; opens a new one and warms it up by batches of warm_up examples. */
static vpps_status find_size(bench *b, uint32_t batch, uint32_t warm_up, size **out) {
    for (uint32_t i = 0; i < b->n_sizes; i++) {
        *out = &b->sizes[i];
        if (b->sizes[i].s.batch == batch) return VPPS_OK;
    }
    if (b->n_sizes == MAX_BATCHES) return vpps_fail(VPPS_ARGUMENT, "more than %d batch sizes", MAX_BATCHES);
    size *z = *out = &b->sizes[b->n_sizes++];
    totals unused = {0};
    bool done = false;
    z->s = b->s;
    z->s.batch = batch;
    z->session.log = log_nothing;
    VPPS_TRY(session_open(&z->session, &z->s, &b->corpus));
    if (b->n_sizes == 1) VPPS_TRY(count_flops(b, &z->session));
    while (!done) {
        uint32_t n = 0;
        VPPS_TRY(train_batch(b, z, warm_up, &unused));
        VPPS_TRY(vpps_handle_trials(z->session.handle, NULL, &n, &done));
    }
    return vpps_sync_latest_loss(z->session.handle, NULL);
}

static vpps_status answer(bench *b, uint32_t batch, double seconds, uint32_t examples) {
    size *z;
    totals t = {0}, unused = {0};
    double ns;
    vpps_stats before = {.size = sizeof before}, after = before;
    VPPS_TRY(find_size(b, batch, examples ? 1 : batch, &z));
    if (examples)
        z->next = 0;
    else
        VPPS_TRY(train(b, z, WARM_UP_S, 0, &unused, &ns)); /* refills caches after other work */
    VPPS_TRY(vpps_handle_stats(z->session.handle, &before));
    const uint32_t cores = strcmp(b->s.device, "cpu") == 0 ? peak_cores() : 0;
    double peak = peak_gflops(cores, PEAK_NS);
    VPPS_TRY(train(b, z, seconds, examples, &t, &ns));
    peak = (peak + peak_gflops(cores, PEAK_NS)) / 2;
    VPPS_TRY(vpps_handle_stats(z->session.handle, &after));
    const double batches = (double)t.batches, script_ns = (double)(after.total_host_ns - before.total_host_ns);
    json_t *o = json_pack("{si sf sf sf}", "batch", (int)batch, "rate", (double)t.sentences * 1e9 / ns, "gflops",
                          t.flops / ns, "mflop_per_sentence", t.flops * 1e-6 / (double)t.sentences);
    json_object_set_new(o, cores ? "peak_gflops" : "gap_ms",
                        json_real(cores ? peak : (double)(after.total_gap_ns - before.total_gap_ns) * 1e-6 / batches));
    json_object_set_new(o, "batch_ms", json_real(ns * 1e-6 / batches));
    json_object_set_new(o, "host_ms", json_real(((double)t.build_ns + script_ns) * 1e-6 / batches));
    json_object_set_new(o, "device_ms",
                        json_real((double)(after.total_device_ns - before.total_device_ns) * 1e-6 / batches));
    json_object_set_new(o, "nodes", json_real((double)(after.total_nodes - before.total_nodes) / batches));
    json_object_set_new(o, "phases", json_integer((json_int_t)after.phases));
    json_object_set_new(o, "pool_mb", json_real((double)after.peak_pool_bytes * 1e-6));
    json_object_set_new(o, "vps", json_integer(after.vps));
    json_object_set_new(o, "precision", json_string(after.precision));
    json_object_set_new(o, "unit", json_string(after.precision_unit));
    json_object_set_new(o, "gradients", json_string(after.gradients));
    char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(o);
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for a line of JSON");
    printf("%s\n", text);
    free(text);
    return fflush(stdout) == 0 ? VPPS_OK : vpps_fail(VPPS_IO, "stdout cannot be written");
}

static vpps_status run(bench *b) {
    char line[256];
    unsigned batch, examples;
    double seconds;
    options_complete(&b->s);
    VPPS_TRY(corpus_open(&b->corpus, &b->s));
    b->n_examples = vpps_min_u32(COUNTED, b->corpus.split[SPLIT_TRAIN].n_examples);
    while (fgets(line, sizeof line, stdin)) {
        examples = 0; /* bench/train.py adds a word that is meant for its other workers */
        if (sscanf(line, "%u %lf %u", &batch, &seconds, &examples) < 2 || !batch || batch > MAX_BATCH ||
            !(seconds >= 0))
            return vpps_fail(VPPS_ARGUMENT, "expected BATCH SECONDS, a batch of 1 to %d, and got: %s", MAX_BATCH, line);
        VPPS_TRY(answer(b, batch, seconds, examples));
    }
    return VPPS_OK;
}

int main(int argc, char **argv) {
    static bench b;
    b.s = (settings){.command = COMMAND_TRAIN, .network = argc > 1 ? network_find(argv[1]) : NULL};
    if (!b.s.network) {
        fprintf(stderr,
                "usage: bench_train NETWORK [OPTION of vpps train...]; lines of BATCH SECONDS on standard input\n");
        return EXIT_USAGE;
    }
    options_parse(&b.s, command_find("train"), argc - 1, argv + 1);
    const vpps_status status = run(&b);
    if (status != VPPS_OK) report_failure(status);
    for (uint32_t i = 0; i < b.n_sizes; i++) session_close(&b.sizes[i].session);
    corpus_close(&b.corpus);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
