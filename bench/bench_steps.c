/* bench_steps.c - what a training step costs in parts, with requests, and with frozen parameters.
 *
 *     bench_steps [TREES]            environment: VPS, BATCH, HIDDEN, ROUNDS
 *
 * The Tree-LSTM on a file of trees, or on generated ones. Every way trains the same batches, all in turn, round after round. A row a
 * way: the medians of the rounds, of the time and of the processor time that a batch takes, and of both as a share of vpps_fb's in
 * the same round.
 */
#include "base/base.h"
#include "workload.h"

#include <string.h>
#include <sys/resource.h>

enum { ASKED = 100, MOST_SCORES = 1 << 14, MOST_CLASSES = 64, BATCHES = 8, MOST_ROUNDS = 1000 };

typedef enum way { FB, PARTS, VALUES, GRADIENTS, NO_PARAMETERS, FROZEN, FORWARD, FORWARD_TOO, WAYS } way;

static const char *const names[] = {
    [FB] = "`vpps_fb`",
    [PARTS] = "`vpps_backward`, `vpps_update`",
    [VALUES] = "the same, the values of 100 nodes",
    [GRADIENTS] = "the same, the gradients of 100 nodes",
    [NO_PARAMETERS] = "these gradients alone, `no_parameters`",
    [FROZEN] = "`vpps_fb`, all frozen but the classifier",
    [FORWARD] = "`vpps_forward` alone, all scores",
    [FORWARD_TOO] = "`vpps_forward`, all scores, then `vpps_fb`",
};

typedef struct bench {
    workload w;
    vpps_handle *h;
    uint32_t batch;
    float values[MOST_SCORES][MOST_CLASSES], *outs[MOST_SCORES];
} bench;

static vpps_status train_batch(bench *b, way how) {
    vpps_node loss;
    VPPS_TRY(workload_batch(&b->w, b->batch, &loss));
    const uint32_t n = vpps_min_u32(b->w.n_scores, ASKED);
    vpps_request request = {.size = sizeof request, .no_parameters = how == NO_PARAMETERS};
    if (how == VALUES) {
        request.n_values = n;
        request.values = b->w.scores;
        request.value_outs = b->outs;
    } else {
        request.n_gradients = n;
        request.gradients = b->w.scores;
        request.gradient_outs = b->outs;
    }
    if (how >= FORWARD)
        VPPS_TRY(vpps_forward(b->h, b->w.g, vpps_min_u32(b->w.n_scores, MOST_SCORES), b->w.scores, b->outs));
    if (how == FORWARD) return VPPS_OK;
    if (how == FB || how == FORWARD_TOO || how == FROZEN) return vpps_fb(b->h, b->w.g, loss, NULL);
    VPPS_TRY(vpps_backward(b->h, b->w.g, loss, how == PARTS ? NULL : &request));
    return how == NO_PARAMETERS ? VPPS_OK : vpps_update(b->h);
}

static double processor_ms(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-3;
}

/* What a batch takes, by the clock and of processors. */
typedef struct cost {
    double ms, processor_ms;
} cost;

static vpps_status measure(bench *b, way how, uint32_t round, cost *out) {
    const uint32_t n = (uint32_t)vpps_param_count(b->w.model);
    for (vpps_param p = 0; p < n; p++) {
        vpps_param_info info = {.size = sizeof info};
        VPPS_TRY(vpps_param_describe(b->w.model, p, &info));
        VPPS_TRY(vpps_freeze(b->w.model, p, how == FROZEN && !strstr(info.name, "_s")));
    }
    b->w.next = round * BATCHES * b->batch;
    VPPS_TRY(train_batch(b, how));     /* compiles cells, where they are new */
    vpps_sync_latest_loss(b->h, NULL); /* there may be none yet */
    b->w.next = round * BATCHES * b->batch;
    const uint64_t begin = vpps_now_ns();
    const double processor = processor_ms();
    for (uint32_t i = 0; i < BATCHES; i++) VPPS_TRY(train_batch(b, how));
    if (how != FORWARD) VPPS_TRY(vpps_sync_latest_loss(b->h, NULL));
    *out = (cost){(double)(vpps_now_ns() - begin) * 1e-6 / BATCHES, (processor_ms() - processor) / BATCHES};
    return VPPS_OK;
}

static double median(const cost *of, const cost *by, uint32_t rounds, bool processor) {
    double x[MOST_ROUNDS];
    for (uint32_t r = 0; r < rounds; r++) {
        const double a = processor ? of[r].processor_ms : of[r].ms;
        x[r] = !by ? a : a / (processor ? by[r].processor_ms : by[r].ms);
    }
    sort_doubles(x, rounds);
    return x[rounds / 2];
}

static uint32_t number(const char *name, uint32_t otherwise) {
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static vpps_status run(bench *b, const char *path, uint32_t rounds, cost (*costs)[MOST_ROUNDS]) {
    vpps_options options;
    const uint32_t hidden = number("HIDDEN", 256);
    VPPS_TRY(workload_create(&b->w, path, hidden, hidden));
    if (vpps_treebank_classes(b->w.trees) > MOST_CLASSES)
        return vpps_fail(VPPS_ARGUMENT, "the trees have %u classes; expected at most %d",
                         vpps_treebank_classes(b->w.trees), MOST_CLASSES);
    VPPS_TRY(vpps_options_default(&options));
    options.vps = number("VPS", 0);
    options.optimizer.lr = 0.001f;
    VPPS_TRY(vpps_handle_create(&b->h, b->w.model, &options));
    for (uint32_t i = 0; i < MOST_SCORES; i++) b->outs[i] = b->values[i];
    for (uint32_t r = 0; r < rounds; r++)
        for (uint32_t k = 0; k < WAYS; k++) VPPS_TRY(measure(b, (way)((k + r) % WAYS), r, &costs[(k + r) % WAYS][r]));
    printf("Tree-LSTM, hidden %u, batches of %u, %u rounds\n\n"
           "| step | ms | of `vpps_fb` | processor ms | of `vpps_fb` |\n| --- | ---: | ---: | ---: | ---: |\n",
           hidden, b->batch, rounds);
    for (uint32_t k = 0; k < WAYS; k++)
        printf("| %s | %.2f | %.3f | %.2f | %.3f |\n", names[k], median(costs[k], NULL, rounds, false),
               median(costs[k], costs[FB], rounds, false), median(costs[k], NULL, rounds, true),
               median(costs[k], costs[FB], rounds, true));
    return VPPS_OK;
}

int main(int argc, char **argv) {
    static bench b;
    static cost costs[WAYS][MOST_ROUNDS];
    const uint32_t rounds = number("ROUNDS", 21);
    b.batch = number("BATCH", 16);
    if (argc > 2 || !b.batch || !rounds || rounds > MOST_ROUNDS) {
        fprintf(stderr, "bench_steps: expected at most a file of trees, BATCH of at least 1, ROUNDS of 1 to %d\n",
                MOST_ROUNDS);
        return 2;
    }
    const vpps_status status = run(&b, argc > 1 ? argv[1] : NULL, rounds, costs);
    if (status != VPPS_OK) fprintf(stderr, "bench_steps: %s\n", vpps_error_message());
    vpps_handle_destroy(b.h);
    workload_destroy(&b.w);
    return status == VPPS_OK ? 0 : 1;
}
