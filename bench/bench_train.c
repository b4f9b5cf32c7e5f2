/* bench_train.c - training speed: sentences a second by batch size, beside the bound.
 *
 *     bench_train [--vps N] [--hidden N] [--embed N] [--rounds N] [--batch N] [--precision fp32|bf16x3|bf16|auto] [TREES.txt]
 *
 * SGD, loss at every labelled node, one handle. Batch sizes take turns, round by round, so that a change of the
 * machine's speed hits all alike; every round times about half a second of batches from building the graph to the
 * loss. The bound is the products' floating-point operations at the speed of the engine's own product kernel with operands
 * in L2, on all the VPs' cores at once, measured right before and after each of these half seconds: shares are of the mean of the
 * two. Reported: median (lowest - highest) of the rounds.
 */
#include "runtime/cpu/kernels.h"
#include "workload.h"

#include <getopt.h>
#include <pthread.h>
#include <sys/resource.h>

enum { MAX_ROUNDS = 101 };
static const uint32_t batches[] = {1, 2, 4, 8, 16, 32, 64, 128};
enum { N_BATCHES = VPPS_COUNT(batches) };

typedef struct settings {
    uint32_t vps, hidden, embed, rounds, batch; /* batch 0: all sizes */
    vpps_precision precision;
    const char *path;
} settings;

typedef struct results {
    double rate[MAX_ROUNDS], share[MAX_ROUNDS], host_ns[MAX_ROUNDS], device_ms[MAX_ROUNDS];
    vpps_stats stats;
} results;

/* ---------------------------------------------------------------- the bound */

enum { MAX_THREADS = 256, BLOCKS = 10, ROWS = 64, DEPTH = 256, VECTORS = 60, BOUND_NS = 30000000 };

/* Products of ten blocks of 64 rows with 60 vectors, as those of one VP's half of a Tree-LSTM's gates, for 30 ms; GFLOP/s. */
static void *multiply(void *result) {
    static const size_t block = ROWS * DEPTH, vectors = VECTORS * DEPTH, out = ROWS * VECTORS;
    const vpps_kernels *k = vpps_kernels_choose(false);
    float *a = calloc(BLOCKS * block + vectors + out + 16, sizeof *a);
    *(double *)result = 0;
    if (!a) return NULL;
    float *aligned = (float *)(((uintptr_t)a + 63) & ~(uintptr_t)63), *x = aligned + BLOCKS * block, *c = x + vectors;
    const float *xs[VECTORS];
    for (int i = 0; i < VECTORS; i++) xs[i] = x + (size_t)i * DEPTH;
    uint64_t n = 0, start = vpps_now_ns(), now = start;
    for (; now - start < BOUND_NS; now = vpps_now_ns(), n++)
        for (int b = 0; b < BLOCKS; b++)
            k->product(ROWS, VECTORS, DEPTH, aligned + b * block, ROWS, xs, 0, NULL, 0, c, ROWS,
                       aligned + (b + 1) * block);
    free(a);
    *(double *)result = 2.0 * BLOCKS * ROWS * VECTORS * DEPTH * (double)n / (double)(now - start);
    return NULL;
}

/* GFLOP/s of so many threads together. */
static double measure_products(uint32_t n_threads) {
    pthread_t threads[MAX_THREADS];
    double rates[MAX_THREADS] = {0}, sum = 0;
    bool started[MAX_THREADS] = {false};
    n_threads = vpps_min_u32(n_threads, MAX_THREADS);
    for (uint32_t i = 0; i < n_threads; i++) started[i] = !pthread_create(&threads[i], NULL, multiply, &rates[i]);
    for (uint32_t i = 0; i < n_threads; i++) {
        if (started[i]) pthread_join(threads[i], NULL);
        sum += rates[i];
    }
    return sum;
}

/* ---------------------------------------------------------------- training */

static bool chosen(const settings *o, uint32_t i) { return !o->batch || batches[i] == o->batch; }

/* Sentences a second over about `seconds` of batches. */
static vpps_status run_round(vpps_handle *h, workload *w, uint32_t batch, double seconds, results *r, uint32_t round) {
    vpps_stats before = {.size = sizeof before};
    VPPS_TRY(vpps_handle_stats(h, &before));
    uint64_t start = vpps_now_ns(), n = 0, build_ns = 0;
    do {
        vpps_node loss;
        uint64_t t = vpps_now_ns();
        VPPS_TRY(workload_batch(w, batch, &loss));
        build_ns += vpps_now_ns() - t;
        VPPS_TRY(vpps_fb(h, w->g, loss, NULL));
        n++;
    } while ((double)(vpps_now_ns() - start) < seconds * 1e9);
    float last;
    VPPS_TRY(vpps_sync_latest_loss(h, &last));
    double spent = (double)(vpps_now_ns() - start);
    r->stats.size = sizeof r->stats;
    VPPS_TRY(vpps_handle_stats(h, &r->stats));
    r->rate[round] = (double)(n * batch) * 1e9 / spent;
    r->host_ns[round] = (double)(build_ns + r->stats.total_host_ns - before.total_host_ns) /
                        (double)(r->stats.total_nodes - before.total_nodes);
    r->device_ms[round] = (double)(r->stats.total_device_ns - before.total_device_ns) * 1e-6 / (double)n;
    return VPPS_OK;
}

static void print_results(const settings *o, const workload *w, results *all, const vpps_stats *stats, double *products,
                          uint32_t n_products) {
    sort_doubles(products, n_products);
    const double median = products[n_products / 2], bound = median * 1e9 / w->flops_a_tree;
    printf("\nTraining, sentences a second: median (lowest - highest) of %u rounds\n", o->rounds);
    printf(
        "embedding %u, hidden %u, %s (%s), %u VPs, %.1f MFLOP a sentence; products alone %.0f (%.0f - %.0f) GFLOP/s in "
        "fp32: bound %.0f\n\n",
        o->embed, o->hidden, stats->precision, stats->precision_unit, stats->vps, w->flops_a_tree * 1e-6, median,
        products[0], products[n_products - 1], bound);
    printf(
        "| batch | sentences/s | of the bound | host ns a node | device ms a batch | phases | script KB | pool MB |\n");
    printf("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (uint32_t i = 0; i < N_BATCHES; i++) {
        results *r = &all[i];
        uint32_t mid = o->rounds / 2;
        if (!chosen(o, i)) continue;
        sort_doubles(r->rate, o->rounds);
        sort_doubles(r->share, o->rounds);
        sort_doubles(r->host_ns, o->rounds);
        sort_doubles(r->device_ms, o->rounds);
        printf("| %u | %.0f (%.0f - %.0f) | %.0f %% (%.0f - %.0f) | %.0f | %.2f | %llu | %.1f | %.1f |\n", batches[i],
               r->rate[mid], r->rate[0], r->rate[o->rounds - 1], 100 * r->share[mid], 100 * r->share[0],
               100 * r->share[o->rounds - 1], r->host_ns[mid], r->device_ms[mid], (unsigned long long)r->stats.phases,
               (double)r->stats.script_bytes * 1e-3, (double)r->stats.pool_bytes * 1e-6);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("\nPeak memory %.1f MB\n", (double)usage.ru_maxrss / 1024);
}

static vpps_status run(const settings *o, workload *w, results *all) {
    static double products[MAX_ROUNDS * (N_BATCHES + 1)];
    uint32_t n = 0;
    vpps_options options;
    vpps_options_default(&options);
    options.vps = o->vps;
    options.optimizer.lr = 0.01f;
    options.precision = o->precision;
    options.batch = o->batch;
    vpps_handle *h;
    VPPS_TRY(vpps_handle_create(&h, w->model, &options));
    vpps_status s = VPPS_OK;
    for (uint32_t i = 0; i < N_BATCHES && s == VPPS_OK; i++)
        if (chosen(o, i)) s = run_round(h, w, batches[i], 0.5, &all[i], 0); /* warm up */
    vpps_stats stats = {.size = sizeof stats};
    if (s == VPPS_OK) s = vpps_handle_stats(h, &stats);
    for (uint32_t round = 0; round < o->rounds && s == VPPS_OK; round++) {
        double before = products[n++] = measure_products(stats.vps);
        for (uint32_t i = 0; i < N_BATCHES && s == VPPS_OK; i++) {
            if (!chosen(o, i)) continue;
            s = run_round(h, w, batches[i], 0.5, &all[i], round);
            const double after = products[n++] = measure_products(stats.vps);
            all[i].share[round] = all[i].rate[round] * w->flops_a_tree * 1e-9 / ((before + after) / 2);
            before = after;
        }
    }
    if (s == VPPS_OK) print_results(o, w, all, &stats, products, n);
    vpps_handle_destroy(h);
    return s;
}

static bool read_precision(const char *text, vpps_precision *out) {
    static const char *const names[] = {
#define X(id, name) name,
        VPPS_PRECISION_TABLE(X)
#undef X
    };
    for (uint32_t i = 0; i < VPPS_COUNT(names); i++) {
        if (strcmp(names[i], text) != 0) continue;
        *out = (vpps_precision)i;
        return true;
    }
    return false;
}

static bool read_options(int argc, char **argv, settings *o) {
    static const struct option options[] = {{"vps", 1, 0, 'v'},    {"hidden", 1, 0, 'h'}, {"embed", 1, 0, 'e'},
                                            {"rounds", 1, 0, 'r'}, {"batch", 1, 0, 'b'},  {"precision", 1, 0, 'p'},
                                            {0, 0, 0, 0}};
    *o = (settings){.hidden = 256, .embed = 256, .rounds = 7};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'v': o->vps = (uint32_t)atoi(optarg); break;
        case 'h': o->hidden = (uint32_t)atoi(optarg); break;
        case 'e': o->embed = (uint32_t)atoi(optarg); break;
        case 'b': o->batch = (uint32_t)atoi(optarg); break;
        case 'p':
            if (!read_precision(optarg, &o->precision)) return false;
            break;
        case 'r': o->rounds = vpps_max_u32(1, vpps_min_u32(MAX_ROUNDS, (uint32_t)atoi(optarg))); break;
        default: return false;
        }
    }
    o->path = optind < argc ? argv[optind] : NULL;
    return true;
}

int main(int argc, char **argv) {
    static results all[N_BATCHES];
    settings o;
    workload w = {0};
    if (!read_options(argc, argv, &o)) return 2;
    vpps_status s = workload_create(&w, o.path, o.embed, o.hidden);
    if (s == VPPS_OK) s = run(&o, &w, all);
    if (s != VPPS_OK) fprintf(stderr, "bench_train: %s\n", vpps_error_message());
    workload_destroy(&w);
    return s != VPPS_OK;
}
