/* bench_host.c - what the host spends on a batch: building the graph, then scheduling and encoding it.
 *
 *     bench_host [TREES.txt]        binary trees in brackets; without a file, generated ListOps
 *
 * Thread CPU time of each step, ns a node of the expanded graph: median, and 10th and 90th percentile, of many batches
 * after warm-up. The limit it is held against is 60 ns a node for both together at batch 128.
 */
#include "models.h"
#include "script/script.h"

#include <inttypes.h>

enum { EMBED = 256, HIDDEN = 256, REPEATS = 40, CLASSES = 10, VPS = 2 };

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As the CPU device lays parameters out, near enough: offsets differ, work does not. */
static vpps_plan make_plan(const vpps_model *model, uint32_t *arrays) {
    uint32_t n = (uint32_t)model->n_params, next = 0;
    vpps_plan plan = {.n_vps = VPS, .n_params = n, .values = arrays, .gradients = arrays + n,
                      .states = {arrays + 2 * n, arrays + 3 * n}, .pool_words = UINT32_MAX, .ew_grain = 128};
    for (uint32_t i = 0; i < n; i++) {
        arrays[i] = arrays[n + i] = next;
        next += model->params[i].kind == VPPS_MATRIX ? 0 : 2 * (uint32_t)vpps_param_elems(&model->params[i]);
    }
    plan.batch = next;
    return plan;
}

typedef struct bench {
    const network *net;
    void *instance;
    vpps_graph *g;
    vpps_scheduler *scheduler;
    vpps_plan plan;
    const vpps_treebank *trees;
    const uint32_t *words;
    vpps_node *logits, *nll, *losses;
} bench;

/* One batch from tree `first` on; the two steps' ns. False: it failed. */
static bool run_batch(bench *b, uint32_t first, uint32_t batch, double *build_ns, double *schedule_ns) {
    uint64_t t0 = thread_ns();
    uint32_t n = 0;
    vpps_graph_clear(b->g);
    for (uint32_t i = 0; i < batch; i++) {
        vpps_tree tree = vpps_treebank_tree(b->trees, (first + i) % vpps_treebank_size(b->trees));
        const net_scores scores = {b->logits, b->nll};
        if (b->net->add_tree(b->instance, b->g, &tree, b->words, NET_HEADS_LABELLED, &scores) != VPPS_OK) return false;
        for (uint32_t k = 0; k < tree.n_nodes; k++) {
            if (b->nll[k] != VPPS_NO_NODE) b->losses[n++] = b->nll[k];
        }
    }
    vpps_node loss = vpps_scale(b->g, vpps_sum(b->g, n, b->losses), 1.0f / (float)batch);
    uint64_t t1 = thread_ns();
    vpps_options defaults;
    vpps_options_default(&defaults);
    vpps_request request = {.loss = loss, .optimizer = &defaults.optimizer, .step = 1};
    if (vpps_schedule(b->scheduler, &b->plan, b->g, &request) != VPPS_OK) return false;
    uint64_t t2 = thread_ns();
    *build_ns = (double)(t1 - t0) / vpps_graph_size(b->g);
    *schedule_ns = (double)(t2 - t1) / vpps_graph_size(b->g);
    return true;
}

static bool measure(bench *b, uint32_t batch) {
    double build[REPEATS], schedule[REPEATS], both[REPEATS];
    uint32_t repeats = batch < 16 ? REPEATS : REPEATS / 2;
    for (uint32_t i = 0; i < repeats + 3; i++) {
        double x, y;
        if (!run_batch(b, i * batch, batch, &x, &y)) return false;
        if (i < 3) continue;
        build[i - 3] = x;
        schedule[i - 3] = y;
        both[i - 3] = x + y;
    }
    qsort(build, repeats, sizeof *build, compare);
    qsort(schedule, repeats, sizeof *schedule, compare);
    qsort(both, repeats, sizeof *both, compare);
    printf("%6u %9u %9.1f %10.1f %8.1f %8.1f %8.1f %10zu\n", batch, vpps_graph_size(b->g), build[repeats / 2],
           schedule[repeats / 2], both[repeats / 2], both[repeats / 10], both[repeats * 9 / 10],
           b->scheduler->script_words * 4);
    return true;
}

static bool set_up(bench *b, vpps_model *model, vpps_treebank *trees, const char *path) {
    const vpps_listops listops = {.seed = 1};
    vpps_status s = path ? vpps_treebank_read_file(trees, path) : vpps_treebank_generate_listops(trees, &listops, 2000);
    if (s != VPPS_OK) return false;
    uint32_t n_words = vpps_vocab_size(vpps_treebank_vocab(trees)), most = 1;
    uint64_t total = 0;
    for (uint32_t i = 0; i < vpps_treebank_size(trees); i++) {
        most = vpps_max_u32(most, vpps_treebank_tree(trees, i).n_nodes);
        total += vpps_treebank_tree(trees, i).n_nodes;
    }
    uint32_t *words = malloc(n_words * sizeof *words);
    for (uint32_t i = 0; words && i < n_words; i++) words[i] = i;
    b->words = words;
    b->trees = trees;
    b->logits = malloc(most * sizeof *b->logits);
    b->nll = malloc(most * sizeof *b->nll);
    b->losses = malloc(total * sizeof *b->losses);
    const net_config config = {.words = n_words, .classes = CLASSES, .embed = EMBED, .hidden = HIDDEN};
    return words && b->logits && b->nll && b->losses && b->net->create(&b->instance, model, &config) == VPPS_OK &&
           vpps_graph_create(&b->g, model) == VPPS_OK && b->net->record(b->instance, b->g) == VPPS_OK &&
           vpps_scheduler_create(&b->scheduler) == VPPS_OK;
}

int main(int argc, char **argv) {
    static const uint32_t batches[] = {1, 4, 16, 64, 128};
    uint32_t arrays[4 * 64];
    bench b = {.net = network_find("tree-lstm")};
    vpps_model *model = NULL;
    vpps_treebank *trees = NULL;
    if (vpps_model_create(&model, 1) != VPPS_OK || vpps_treebank_create(&trees) != VPPS_OK ||
        !set_up(&b, model, trees, argc > 1 ? argv[1] : NULL) || model->n_params > 64) {
        fprintf(stderr, "bench_host: %s\n", vpps_error_message());
        return 1;
    }
    b.plan = make_plan(model, arrays);
    printf("host, ns a node (%s; median, 10 and 90 %%)\n", argc > 1 ? argv[1] : "generated ListOps");
    printf(" batch     nodes     build   schedule     both      10%%      90%%      bytes\n");
    for (size_t i = 0; i < VPPS_COUNT(batches); i++) {
        if (!measure(&b, batches[i])) {
            fprintf(stderr, "bench_host: %s\n", vpps_error_message());
            return 1;
        }
    }
    vpps_scheduler_destroy(b.scheduler);
    vpps_graph_destroy(b.g);
    b.net->destroy(b.instance);
    vpps_treebank_destroy(trees);
    vpps_model_destroy(model);
    free((void *)(uintptr_t)b.words);
    free(b.logits);
    free(b.nll);
    free(b.losses);
    return 0;
}
