/* bench_tuning.c - what `vpps tune` gains on a network: training with the constants that there were before products were tuned,
 * with the table's choices (--no-tuning), and with what is measured here first.
 *
 *     bench_tuning SECONDS NETWORK [OPTION of vpps tune...]
 *
 * At batch 1, 4, 16 and 128 for SECONDS each. The three have a model each, and take turns with every batch, so that a change of the
 * machine's speed hits all alike. Each runs a small one twice, and the second run counts, from building the graph to the loss: then
 * its weights lie where training leaves them. Printed, as rows of a table: the sentences a second that a quarter of the batches
 * exceed, for other work only ever adds time; and how many times as fast as the constants each is: the median of the batches, one
 * by one (of those rates). The cache is $VPPS_CACHE_DIR, which must not have been tuned yet for the times to be those of this run. */
#include "cli/corpus_read.h"
#include "cli/parse.h"
#include "cli/session.h"
#include "runtime/cpu/cpu.h"
#include "runtime/handle.h"
#include "workload.h"

enum { WAYS = 3, MOST = 4000, WARM = 1, TUNED_AT = 16, SMALL = 16 };
static const uint32_t batches[] = {1, 4, 16, 128};

/* Until this choice was measured: copies from 128 vertices and 4 vectors on. */
static const vpps_cpu_choice constants = {.tile = 96, .few = 4, .pays = 128};

typedef struct bench {
    settings s[WAYS];
    session x[WAYS];
    corpus c;
    uint32_t *order, next;
} bench;

static vpps_status run_batch(bench *b, session *x, uint32_t n, uint32_t first) {
    const corpus_split *train = &b->c.split[SPLIT_TRAIN];
    vpps_node loss;
    float value;
    VPPS_TRY(session_add_batch(x, &b->c, train, b->order + first, n, n, &loss));
    VPPS_TRY(vpps_fb(x->handle, x->graph, loss, NULL));
    return vpps_sync_latest_loss(x->handle, &value);
}

/* The first of the next n examples. */
static uint32_t take(bench *b, uint32_t n) {
    const uint32_t all = b->c.split[SPLIT_TRAIN].n_examples, first = b->next + n <= all ? b->next : 0;
    b->next = first + n;
    return first;
}

/* Is how stages are shared out still being measured? */
static bool is_tuning(vpps_handle *h) {
    vpps_trial trials[256] = {{.size = sizeof *trials}};
    uint32_t n = VPPS_COUNT(trials), splits = 0, chosen = 0;
    bool done;
    if (vpps_handle_trials(h, trials, &n, &done) != VPPS_OK) return false;
    for (uint32_t i = 0; i < n && i < VPPS_COUNT(trials); i++) {
        splits += trials[i].split != NULL;
        chosen += trials[i].split && trials[i].state >= VPPS_TRIAL_CURRENT;
    }
    return splits && !chosen;
}

static vpps_status tune(bench *b, const settings *s) {
    const uint32_t n = vpps_min_u32(TUNED_AT, b->c.split[SPLIT_TRAIN].n_examples);
    session x = {0};
    vpps_status status = session_open(&x, s, &b->c);
    while (status == VPPS_OK && is_tuning(x.handle)) status = run_batch(b, &x, n, take(b, n));
    session_close(&x);
    return status;
}

static void print_row(const char *name, uint32_t n, double ns[WAYS][MOST], uint32_t count) {
    static double ratios[WAYS][MOST];
    double least[WAYS];
    for (int w = 0; w < WAYS; w++) {
        for (uint32_t i = 0; i < count; i++) ratios[w][i] = ns[0][i] / ns[w][i];
        sort_doubles(ratios[w], count);
    }
    printf("| %s | %u |", name, n);
    for (int w = 0; w < WAYS; w++) {
        sort_doubles(ns[w], count);
        least[w] = ns[w][count / 4];
        printf(" %.4g |", 1e9 * n / least[w]);
    }
    for (int w = 1; w < WAYS; w++) printf(" %.2f (%.2f) |", ratios[w][count / 2], least[0] / least[w]);
    printf("\n");
}

static vpps_status measure(bench *b, const char *name, uint32_t n, double seconds) {
    static double ns[WAYS][MOST];
    uint32_t count = 0;
    uint64_t start = 0;
    for (uint32_t batch = 0; count < MOST; batch++) {
        if (batch == WARM) start = vpps_now_ns();
        if (batch > WARM + 2 && (double)(vpps_now_ns() - start) > seconds * 1e9) break;
        const uint32_t first = take(b, n);
        for (uint32_t i = 0; i < WAYS; i++) {
            const uint32_t w = (i + batch) % WAYS;
            if (n <= SMALL) VPPS_TRY(run_batch(b, &b->x[w], n, first));
            const uint64_t before = vpps_now_ns();
            VPPS_TRY(run_batch(b, &b->x[w], n, first));
            ns[w][count] = (double)(vpps_now_ns() - before);
        }
        count += batch >= WARM;
    }
    print_row(name, n, ns, count);
    return VPPS_OK;
}

static void set_constants(vpps_handle *h, const vpps_model *model) {
    vpps_cpu *cpu = (vpps_cpu *)h->device;
    for (uint32_t p = 0; p < model->n_params; p++) cpu->choices[p] = constants;
}

static vpps_status run(bench *b, settings *s, double seconds) {
    s->device = "cpu";
    s->lr = 0.001f;
    options_complete(s);
    VPPS_TRY(corpus_open(&b->c, s));
    const corpus_split *train = &b->c.split[SPLIT_TRAIN];
    b->order = malloc(train->n_examples * sizeof *b->order);
    if (!b->order) return vpps_fail(VPPS_MEMORY, "no memory for the order of the examples");
    corpus_shuffle(train, 1, 0, b->order);
    VPPS_TRY(tune(b, s));
    for (int w = 0; w < WAYS; w++) {
        b->s[w] = *s;
        b->s[w].command = COMMAND_TRAIN;
        b->s[w].no_tuning = w < WAYS - 1;
        VPPS_TRY(session_open(&b->x[w], &b->s[w], &b->c));
    }
    set_constants(b->x[0].handle, b->x[0].model);
    for (size_t i = 0; i < VPPS_COUNT(batches); i++)
        if (batches[i] <= train->n_examples) VPPS_TRY(measure(b, s->network->name, batches[i], seconds));
    return VPPS_OK;
}

int main(int argc, char **argv) {
    static bench b;
    const command *c = command_find("tune");
    settings s = {.command = c->bit, .network = argc > 2 ? network_find(argv[2]) : NULL};
    if (!s.network) return fprintf(stderr, "bench_tuning: expected SECONDS NETWORK [OPTION...]\n"), 2;
    options_parse(&s, c, argc - 2, argv + 2);
    const vpps_status status = run(&b, &s, atof(argv[1]));
    if (status != VPPS_OK) fprintf(stderr, "bench_tuning: %s\n", vpps_error_message());
    for (int w = 0; w < WAYS; w++) session_close(&b.x[w]);
    corpus_close(&b.c);
    free(b.order);
    return status != VPPS_OK;
}
