/* bench_gpu.c - measures what a script costs on a GPU: a signal and its wait, and the parts of a training batch's
 * time. Every figure is a JSON object on a line of standard output, [median, lowest, highest]. For training speed
 * see bench/train.py --device cuda.
 *
 *     bench_gpu [--device cuda|simt] [--data DIR]
 *
 * --data: a folder with sst/train.txt ($VPPS_DATA); without that file, generated ListOps. `simt` only tries this
 * program out: its times are not a GPU's, and its networks are tiny. */
#include "base/base.h"
#include "runtime/device.h"
#include "runtime/gpu/driver.h"
#include "workload.h"

#include <getopt.h>
#include <jansson.h>
#include <unistd.h>

/* ---------------------------------------------------------------- figures */

/* Sorts n figures and returns [median, lowest, highest]. */
static json_t *figure(double *x, size_t n) {
    sort_doubles(x, n);
    return json_pack("[f, f, f]", x[n / 2], x[0], x[n - 1]);
}

/* Prints an object as a line and releases it. */
static vpps_status emit(json_t *object) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for a line of JSON");
    const bool written = printf("%s\n", text) > 0 && fflush(stdout) == 0;
    free(text);
    return written ? VPPS_OK : vpps_fail(VPPS_IO, "stdout cannot be written");
}

/* ---------------------------------------------------------------- signals: kernels that do nothing else, and do it as those of cells do */

typedef struct signal_arguments {
    uint64_t counters;
    uint32_t rounds, all;
} signal_arguments;

enum { THREADS = 256, COUNTER_BYTES = 32, WARM_UP_NS = 1000000000 }; /* each counter has a sector of the L2 cache */

static const char kernel_source[] =
    "struct vpps_arguments { unsigned long long counters; unsigned rounds, all; };\n"
    "#ifndef VPPS_SIMT\n"
    "__device__ __forceinline__ void VPPS_RELEASE_ADD(unsigned *at, unsigned value) {\n"
    "    asm volatile(\"red.release.gpu.global.add.u32 [%0], %1;\" ::\"l\"(at), \"r\"(value) : \"memory\");\n"
    "}\n"
    "__device__ __forceinline__ unsigned VPPS_ACQUIRE_LOAD(const unsigned *at) {\n"
    "    unsigned value;\n"
    "    asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1];\" : \"=r\"(value) : \"l\"(at) : \"memory\");\n"
    "    return value;\n"
    "}\n"
    "#define PAUSE() (void)0\n"
    "#else\n"
    "#define PAUSE() __nanosleep(16) /* threads of software SIMT take turns */\n"
    "#endif\n"
    "__device__ __forceinline__ void wait_for(const vpps_arguments &a, unsigned counter, unsigned wanted) {\n"
    "    if (threadIdx.x == 0) {\n"
    "        const unsigned *at = (const unsigned *)a.counters + counter * 8;\n"
    "        while (VPPS_ACQUIRE_LOAD(at) < wanted) PAUSE();\n"
    "    }\n"
    "    __syncthreads();\n"
    "}\n"
    "__device__ __forceinline__ void signal_to(const vpps_arguments &a, unsigned counter) {\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0) VPPS_RELEASE_ADD((unsigned *)a.counters + counter * 8, 1u);\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256, 1) vpps_kernel(const vpps_arguments a) {\n"
    "    const bool first = blockIdx.x == 0, last = blockIdx.x == gridDim.x - 1;\n"
    "    for (unsigned round = 0; round < a.rounds; round++) {\n"
    "        if (a.all) {\n"
    "            signal_to(a, round);\n"
    "            wait_for(a, round, gridDim.x);\n"
    "        } else if (first) { /* counters 0 and 1 count how often the first and the last CTA had the turn */\n"
    "            signal_to(a, 0);\n"
    "            wait_for(a, 1, round + 1);\n"
    "        } else if (last) {\n"
    "            wait_for(a, 0, round + 1);\n"
    "            signal_to(a, 1);\n"
    "        }\n"
    "    }\n"
    "}\n";

typedef struct signals {
    vpps_driver *driver;
    vpps_kernel *kernel;
    vpps_launch_shape shape;
    signal_arguments arguments;
} signals;

static vpps_status time_rounds(signals *b, uint32_t rounds, double *ns) {
    const vpps_driver_table *t = b->driver->table;
    b->arguments.rounds = rounds;
    VPPS_TRY(t->clear(b->driver, b->arguments.counters, (size_t)(rounds + 2) * COUNTER_BYTES));
    VPPS_TRY(t->wait(b->driver));
    const uint64_t start = vpps_now_ns();
    VPPS_TRY(t->launch(b->driver, b->kernel, &b->shape, &b->arguments, sizeof b->arguments));
    VPPS_TRY(t->wait(b->driver));
    *ns = (double)(vpps_now_ns() - start);
    return VPPS_OK;
}

/* Runs rounds for some time, since an idle GPU's clock is low. */
static vpps_status warm_up(signals *b, uint32_t rounds, uint64_t ns) {
    double unused;
    b->arguments.all = 1;
    for (const uint64_t start = vpps_now_ns(); vpps_now_ns() - start < ns;) VPPS_TRY(time_rounds(b, rounds, &unused));
    return VPPS_OK;
}

/* Prints the ns of a round, from the difference of two launches, which excludes the launch itself. */
static vpps_status time_round(signals *b, uint32_t rounds, const char *what, double share) {
    enum { REPEATS = 11 };
    double ns[REPEATS], few, many;
    VPPS_TRY(time_rounds(b, rounds, &few)); /* warms up */
    for (int i = 0; i < REPEATS; i++) {
        VPPS_TRY(time_rounds(b, rounds, &few));
        VPPS_TRY(time_rounds(b, 3 * rounds, &many));
        ns[i] = share * (many - few) / (2.0 * rounds);
    }
    return emit(json_pack("{ss ss si so}", "bench", "latency", "what", what, "ctas", (int)b->shape.ctas, "ns",
                          figure(ns, REPEATS)));
}

static vpps_status measure_signals(vpps_driver *driver, const vpps_machine *machine, bool simt) {
    const uint32_t rounds = simt ? 20 : 2000;
    const vpps_driver_table *t = driver->table;
    signals b = {.driver = driver, .shape = {machine->sms, THREADS, 0}};
    vpps_cubin_report unused;
    VPPS_TRY(t->load(driver, kernel_source, "signals and waits", &b.shape, &b.kernel, &unused));
    VPPS_TRY(t->allocate(driver, (size_t)(3 * rounds + 2) * COUNTER_BYTES, &b.arguments.counters));
    VPPS_TRY(warm_up(&b, rounds, simt ? 0 : WARM_UP_NS));
    b.arguments.all = 0;
    VPPS_TRY(time_round(&b, rounds, "hand-over", 0.5));
    b.arguments.all = 1;
    return time_round(&b, rounds, "barrier", 1);
}

/* ---------------------------------------------------------------- where a batch's time goes, by scripts that stop early
 *
 *     load       a script that gives one word's embedding: the launch, filling the registers, the end
 *     forward    a script that computes every labelled node's scores and nothing else, minus load
 *     update     a training script for the smallest tree, minus load; includes its own few phases
 *     backward   the training script, minus load, forward and update
 *
 * The parts are estimates; for one batch their sum is a measurement, for the medians it need not be. One script is
 * timed at a time, and waited for. All scripts run by one kernel, which has all their cells after the first batches,
 * which do not count. */

enum { REPEATS = 31, WARM_UP = 3, SIMULATED_REPEATS = 1 };

typedef struct split {
    workload w;
    vpps_device *device;
    vpps_batch *batch;
    vpps_history history;
    vpps_options options;
    uint32_t step;
    int repeats;
} split;

/* Runs the script of the current graph and returns its device time in ns. loss VPPS_NO_NODE: inference of the
 * outputs. */
static vpps_status run_script(split *b, vpps_node loss, const vpps_node *outputs, uint32_t n, double *ns) {
    const vpps_batch_request request = {.loss = loss,
                                        .outputs = outputs,
                                        .n_outputs = n,
                                        .optimizer = &b->options.optimizer,
                                        .guard = true,
                                        .step = ++b->step};
    vpps_outcome outcome;
    VPPS_TRY(vpps_schedule_batch(b->batch, &b->history, b->device->target, b->w.x.graph, &request));
    VPPS_TRY(b->device->table->launch(b->device, b->batch));
    b->device->table->wait(b->device, &outcome);
    if (outcome.status != VPPS_OK) return vpps_fail(outcome.status, "%s", outcome.message);
    *ns = (double)outcome.device_ns;
    return VPPS_OK;
}

static vpps_status time_load(split *b, double *ns) {
    vpps_param embedding;
    VPPS_TRY(vpps_param_find(b->w.x.model, "embedding", &embedding));
    vpps_graph_clear(b->w.x.graph);
    const vpps_node word = vpps_lookup(b->w.x.graph, embedding, 0);
    return run_script(b, VPPS_NO_NODE, &word, 1, ns);
}

/* Times `batch` trees from tree `first` on: the forward part alone, then training. */
static vpps_status time_trees(split *b, uint32_t first, uint32_t batch, double *forward_ns, double *train_ns) {
    session *x = &b->w.x;
    vpps_node loss;
    uint32_t n = 0;
    b->w.next = first;
    VPPS_TRY(workload_batch(&b->w, batch, &loss));
    for (uint32_t k = 0; k < x->n_positions; k++) {
        if (x->scores.logits[k] != VPPS_NO_NODE) x->scores.logits[n++] = x->scores.logits[k];
    }
    VPPS_TRY(run_script(b, VPPS_NO_NODE, x->scores.logits, n, forward_ns)); /* every tree is complete in itself */
    return run_script(b, loss, NULL, 0, train_ns);
}

/* Finds the smallest tree that uses every matrix: one with two children. */
static uint32_t smallest_tree(const workload *w) {
    uint32_t best = 0, nodes = UINT32_MAX;
    const vpps_treebank *trees = w->c.split[SPLIT_TRAIN].bank;
    for (uint32_t i = 0; i < vpps_treebank_size(trees); i++) {
        const uint32_t n = vpps_treebank_tree(trees, i).n_nodes;
        if (n < 3 || n >= nodes) continue;
        nodes = n;
        best = i;
    }
    return best;
}

static vpps_status split_batch(split *b, uint32_t batch) {
    double load[REPEATS], forward[REPEATS], backward[REPEATS], update[REPEATS], total[REPEATS];
    const uint32_t smallest = smallest_tree(&b->w);
    const size_t n = (size_t)b->repeats;
    for (int i = -WARM_UP; i < b->repeats; i++) {
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
    return emit(json_pack("{ss si so so so so so}", "bench", "split", "batch", (int)batch, "load_us", figure(load, n),
                          "forward_us", figure(forward, n), "backward_us", figure(backward, n), "update_us",
                          figure(update, n), "total_us", figure(total, n)));
}

static vpps_status measure_split(const char *trees, bool simt) {
    static const uint32_t batches[] = {1, 16, 128};
    const vpps_device_table *table = simt ? &vpps_device_simt : &vpps_device_cuda;
    vpps_pool_plan plan;
    split b = {.repeats = simt ? SIMULATED_REPEATS : REPEATS};
    vpps_options_default(&b.options);
    b.options.no_tuning = simt;
    vpps_status status = workload_open(&b.w, "tree-lstm", trees, simt ? "16" : "256");
    if (status == VPPS_OK) status = vpps_batch_create(&b.batch);
    if (status == VPPS_OK) status = table->create(&b.device, b.w.x.model, &b.options, &plan);
    for (size_t i = 0; i < (simt ? 1 : VPPS_COUNT(batches)) && status == VPPS_OK; i++)
        status = split_batch(&b, batches[i]);
    if (b.device) table->destroy(b.device);
    vpps_batch_destroy(b.batch);
    vpps_history_free(&b.history);
    workload_close(&b.w);
    return status;
}

/* ---------------------------------------------------------------- all */

static vpps_status run(const char *device, const char *trees) {
    const bool simt = strcmp(device, "simt") == 0;
    vpps_driver *driver;
    vpps_machine m;
    VPPS_TRY((simt ? &vpps_driver_simt : &vpps_driver_cuda)->open(&driver, 0, &m));
    vpps_status status = emit(json_pack("{ss ss ss si si sb}", "bench", "machine", "device", device, "name", m.name,
                                        "arch", (int)m.arch, "sms", (int)m.sms, "sst", trees != NULL));
    if (status == VPPS_OK) status = measure_signals(driver, &m, simt);
    driver->table->close(driver);
    return status == VPPS_OK ? measure_split(trees, simt) : status;
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"device", 1, 0, 'd'}, {"data", 1, 0, 'f'}, {0, 0, 0, 0}};
    const char *device = "cuda", *data = getenv("VPPS_DATA");
    char trees[4096];
    bool good = true;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'd') device = optarg;
        if (c == 'f') data = optarg;
        good = good && c != '?';
    }
    if (!good || optind < argc || (strcmp(device, "cuda") != 0 && strcmp(device, "simt") != 0)) {
        fprintf(stderr, "usage: bench_gpu [--device cuda|simt] [--data DIR]\n");
        return 2;
    }
    snprintf(trees, sizeof trees, "%s/sst/train.txt", data ? data : ".");
    const vpps_status status = run(device, access(trees, R_OK) == 0 ? trees : NULL);
    if (status != VPPS_OK) fprintf(stderr, "bench_gpu: %s\n", vpps_error_message());
    return status != VPPS_OK;
}
