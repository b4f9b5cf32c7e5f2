/* bench_processes.c - what several processes cost and bring.
 *
 *     mpirun -n P bench_processes [--data FILE] [--hidden N] [--vps N] [--rounds N] [--seconds S] [--batch N] [--messages]
 *
 * The Tree-LSTM, SGD, fp32, batch 32 to 512: the first process alone with --vps VPs (0: as many as there are processes), while
 * the others sleep; then all of them with one VP each, on the same trees, dealt by their sizes. Both take turns, round by round,
 * so that a change of the machine's speed hits both alike; ratios are those of one round. Reported: medians (lowest -
 * highest). Then, or with --messages at once, what sums of some sizes take: of one element, what latency costs. Last, a sum of a
 * model's gradients by a thread beside one that computes: how much of it that hides. --batch: this size alone.
 */
#include "base/base.h"
#include "runtime/comm/comm.h"
#include "workload.h"

#include <getopt.h>
#include <pthread.h>

enum { MAX_ROUNDS = 101 };

typedef struct settings {
    const char *data;
    uint32_t hidden, vps, rounds, batch;
    double seconds;
    bool messages;
} settings;

/* ---------------------------------------------------------------- trees */

/* Adds the trees of this process, of the next n: of trees from the largest on, each to the process with the least. */
static vpps_status add_share(workload *w, uint32_t n, uint32_t rank, uint32_t size, vpps_node *loss) {
    uint64_t loads[64] = {0};
    uint32_t n_losses = 0, n_trees = vpps_treebank_size(w->trees);
    bool *taken = calloc(n, sizeof *taken);
    if (!taken) return vpps_fail(VPPS_MEMORY, "no memory for a batch of %u", n);
    vpps_graph_clear(w->g);
    vpps_status s = VPPS_OK;
    for (uint32_t i = 0; i < n && s == VPPS_OK; i++) {
        uint32_t best = UINT32_MAX, most = 0, least = 0;
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t nodes = vpps_treebank_tree(w->trees, (w->next + k) % n_trees).n_nodes;
            if (!taken[k] && nodes > most) best = k, most = nodes;
        }
        taken[best] = true;
        for (uint32_t p = 1; p < size; p++)
            if (loads[p] < loads[least]) least = p;
        loads[least] += most;
        if (least != rank) continue;
        const vpps_tree tree = vpps_treebank_tree(w->trees, (w->next + best) % n_trees);
        const net_example x = {.tree = &tree};
        const net_scores scores = {.logits = w->logits, .nll = w->nll};
        s = w->net->add(w->instance, w->g, &x, NET_HEADS_LABELLED, &scores);
        for (uint32_t k = 0; k < tree.n_nodes && s == VPPS_OK; k++)
            if (w->nll[k] != VPPS_NO_NODE) w->losses[n_losses++] = w->nll[k];
    }
    free(taken);
    w->next += n;
    if (s != VPPS_OK) return s;
    *loss = n_losses ? vpps_scale(w->g, vpps_sum(w->g, n_losses, w->losses), 1.0f / (float)n) : VPPS_NO_NODE;
    return vpps_graph_status(w->g);
}

/* So many batches; sentences a second. */
static vpps_status train(vpps_handle *h, workload *w, uint32_t batch, uint32_t batches, uint32_t rank, uint32_t size,
                         double *rate) {
    const uint64_t begin = vpps_now_ns();
    for (uint32_t b = 0; b < batches; b++) {
        vpps_node loss;
        VPPS_TRY(add_share(w, batch, rank, size, &loss));
        VPPS_TRY(vpps_fb(h, w->g, loss, NULL));
    }
    float last;
    VPPS_TRY(vpps_sync_latest_loss(h, &last));
    *rate = (double)batch * batches * 1e9 / (double)(vpps_now_ns() - begin);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- rounds */

typedef struct way {
    workload w;
    vpps_handle *h;
} way;

static vpps_status open_way(way *x, const settings *o, uint32_t vps, vpps_communicator *c) {
    vpps_options options;
    vpps_options_default(&options);
    options.vps = vps;
    options.communicator = c;
    options.optimizer.lr = 0.01f;
    options.watchdog_ms = 60000;
    VPPS_TRY(workload_create(&x->w, o->data, o->hidden, o->hidden));
    return vpps_handle_create(&x->h, x->w.model, &options);
}

static void close_way(way *x) {
    vpps_handle_destroy(x->h);
    workload_destroy(&x->w);
}

static void print_row(uint32_t batch, uint32_t n, double *alone, double *together, const vpps_stats *before,
                      const vpps_stats *after, uint32_t batches) {
    double ratios[MAX_ROUNDS];
    for (uint32_t i = 0; i < n; i++) ratios[i] = together[i] / alone[i];
    sort_doubles(ratios, n);
    sort_doubles(alone, n);
    sort_doubles(together, n);
    printf("| %5u | %7.0f (%.0f - %.0f) | %7.0f (%.0f - %.0f) | %.2f (%.2f - %.2f) | %.2f ms, %.2f MB | %.1f %% |\n",
           batch, alone[n / 2], alone[0], alone[n - 1], together[n / 2], together[0], together[n - 1], ratios[n / 2],
           ratios[0], ratios[n - 1], (double)(after->total_exchange_ns - before->total_exchange_ns) * 1e-6 / batches,
           (double)(after->total_sent_bytes - before->total_sent_bytes) * 1e-6 / batches, 100 * after->imbalance);
    fflush(stdout);
}

static vpps_status measure(const settings *o, vpps_communicator *c, way *alone, way *together, uint32_t batch) {
    double rates[2][MAX_ROUNDS], rate;
    vpps_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    uint32_t batches = 1;
    if (!c->rank) {
        VPPS_TRY(train(alone->h, &alone->w, batch, 2, 0, 1, &rate)); /* warms up, and tells how many batches */
        const double wanted = rate * o->seconds / batch;
        batches = wanted < 2 ? 2 : (uint32_t)wanted;
    }
    VPPS_TRY(c->table->broadcast(c, &batches, sizeof batches, 0));
    VPPS_TRY(train(together->h, &together->w, batch, 2, c->rank, c->size, &rate));
    VPPS_TRY(vpps_handle_stats(together->h, &before));
    for (uint32_t i = 0; i < o->rounds; i++) {
        alone->w.next = together->w.next;
        if (!c->rank) VPPS_TRY(train(alone->h, &alone->w, batch, batches, 0, 1, &rates[0][i]));
        VPPS_TRY(c->table->barrier(c));
        VPPS_TRY(train(together->h, &together->w, batch, batches, c->rank, c->size, &rates[1][i]));
    }
    VPPS_TRY(vpps_handle_stats(together->h, &after));
    if (!c->rank) print_row(batch, o->rounds, rates[0], rates[1], &before, &after, batches * o->rounds);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- messages */

static vpps_status measure_messages(const settings *o, vpps_communicator *c) {
    enum { MOST = 1 << 24 };
    float *data = calloc(MOST, sizeof *data);
    vpps_status s = vpps_comm_agree(c, data ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for messages"));
    if (!c->rank) printf("\n| bytes of a sum | us, median | MB/s of what a process sends |\n| ---: | ---: | ---: |\n");
    for (size_t n = 1; n <= MOST && s == VPPS_OK; n *= 16) {
        double us[MAX_ROUNDS];
        for (uint32_t i = 0; i < o->rounds + 1 && s == VPPS_OK; i++) {
            const uint32_t times = n < 100000 ? 100 : 2;
            s = c->table->barrier(c);
            const uint64_t begin = vpps_now_ns();
            for (uint32_t k = 0; k < times && s == VPPS_OK; k++) s = c->table->allreduce(c, data, n);
            if (!i) continue; /* warms up */
            us[i - 1] = (double)(vpps_now_ns() - begin) * 1e-3 / times;
        }
        sort_doubles(us, o->rounds);
        const double median = us[o->rounds / 2], sent = 2.0 * (double)n * sizeof *data * (c->size - 1) / c->size;
        if (!c->rank && s == VPPS_OK) printf("| %zu | %.1f | %.0f |\n", n * sizeof *data, median, sent / median);
    }
    free(data);
    return s;
}

/* ---------------------------------------------------------------- beside computing */

typedef struct sum {
    vpps_communicator *c;
    float *data;
    size_t n;
    volatile float computed; /* so that it is */
    vpps_status status;
} sum;

static void *add_up(void *argument) {
    sum *x = argument;
    x->status = x->c->table->allreduce(x->c, x->data, x->n);
    return NULL;
}

/* Products as a stage has them: operands in the first cache, nothing that another core has. */
static float compute(uint32_t times) {
    static float a[4096], x[4096];
    float all = 0;
    for (uint32_t k = 0; k < times; k++) {
        for (int i = 0; i < 4096; i++) a[i] = a[i] * 0.999f + x[i];
        all += a[k % 4096];
        x[k % 4096] = all + 1;
    }
    return all;
}

/* One after the other, and side by side: *alone, *sum_alone and *both in us. */
static vpps_status measure_beside(sum *x, uint32_t times, double *alone, double *sum_alone, double *both) {
    pthread_t thread;
    VPPS_TRY(x->c->table->barrier(x->c));
    uint64_t begin = vpps_now_ns();
    x->computed += compute(times);
    *alone = (double)(vpps_now_ns() - begin) * 1e-3;
    VPPS_TRY(x->c->table->barrier(x->c));
    begin = vpps_now_ns();
    add_up(x);
    VPPS_TRY(x->status);
    *sum_alone = (double)(vpps_now_ns() - begin) * 1e-3;
    VPPS_TRY(x->c->table->barrier(x->c));
    begin = vpps_now_ns();
    if (pthread_create(&thread, NULL, add_up, x)) return vpps_fail(VPPS_DEVICE, "no thread can be started");
    x->computed += compute(times);
    pthread_join(thread, NULL);
    *both = (double)(vpps_now_ns() - begin) * 1e-3;
    return x->status;
}

static vpps_status measure_overlap(const settings *o, vpps_communicator *c) {
    double alone[MAX_ROUNDS] = {1}, sums[MAX_ROUNDS] = {1}, both[MAX_ROUNDS] = {1}, hidden[MAX_ROUNDS] = {0};
    sum x = {.c = c, .n = (size_t)13 * o->hidden * o->hidden}; /* the Tree-LSTM's matrices */
    x.data = calloc(x.n, sizeof *x.data);
    vpps_status s = vpps_comm_agree(c, x.data ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a sum"));
    if (s == VPPS_OK) s = measure_beside(&x, 1000, alone, sums, both); /* warms up, and tells how much to compute */
    if (s == VPPS_OK) s = measure_beside(&x, 1000, alone, sums, both);
    uint32_t times = (uint32_t)(3 * sums[0] / alone[0] * 1000) + 1;
    if (s == VPPS_OK) s = c->table->broadcast(c, &times, sizeof times, 0);
    for (uint32_t i = 0; i < o->rounds && s == VPPS_OK; i++) {
        s = measure_beside(&x, times, &alone[i], &sums[i], &both[i]);
        hidden[i] = 100 * (alone[i] + sums[i] - both[i]) / sums[i];
    }
    free(x.data);
    VPPS_TRY(s);
    const uint32_t n = o->rounds;
    sort_doubles(alone, n);
    sort_doubles(sums, n);
    sort_doubles(both, n);
    sort_doubles(hidden, n);
    if (!c->rank) {
        printf("\n| bytes of a sum | computing, us | the sum, us | side by side, us | of the sum hidden |\n"
               "| ---: | ---: | ---: | ---: | ---: |\n| %zu | %.0f | %.0f | %.0f | %.0f %% (%.0f - %.0f) |\n",
               x.n * sizeof(float), alone[n / 2], sums[n / 2], both[n / 2], hidden[n / 2], hidden[0], hidden[n - 1]);
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the program */

static vpps_status measure_training(const settings *o, vpps_communicator *c) {
    way alone = {.h = NULL}, together = {.h = NULL};
    vpps_status s = open_way(&together, o, 1, c);
    if (s == VPPS_OK && !c->rank) s = open_way(&alone, o, o->vps ? o->vps : c->size, NULL);
    s = vpps_comm_agree(c, s);
    if (!c->rank) {
        printf("hidden %u, %u processes on %s\n\n| batch | one process, sentences/s | %u processes | ratio | exchange, "
               "sent a "
               "batch | imbalance |\n| ---: | ---: | ---: | ---: | ---: | ---: |\n",
               o->hidden, c->size, c->hosts[0], c->size);
    }
    for (uint32_t batch = 32; batch <= 512 && s == VPPS_OK; batch *= 2)
        if (!o->batch || o->batch == batch) s = measure(o, c, &alone, &together, batch);
    close_way(&together);
    if (!c->rank && alone.w.model) close_way(&alone);
    return s;
}

static vpps_status run(const settings *o, vpps_communicator *c) {
    if (!o->messages) VPPS_TRY(measure_training(o, c));
    VPPS_TRY(measure_messages(o, c));
    return measure_overlap(o, c);
}

int main(int argc, char **argv) {
    static const struct option names[] = {
        {"data", 1, NULL, 'd'},    {"hidden", 1, NULL, 'h'}, {"vps", 1, NULL, 'v'},      {"rounds", 1, NULL, 'r'},
        {"seconds", 1, NULL, 's'}, {"batch", 1, NULL, 'b'},  {"messages", 0, NULL, 'm'}, {NULL, 0, NULL, 0}};
    settings o = {.hidden = 256, .rounds = 7, .seconds = 1};
    for (int k; (k = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (k == 'd')
            o.data = optarg;
        else if (k == 'h')
            o.hidden = (uint32_t)strtoul(optarg, NULL, 10);
        else if (k == 'v')
            o.vps = (uint32_t)strtoul(optarg, NULL, 10);
        else if (k == 'r')
            o.rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (k == 'b')
            o.batch = (uint32_t)strtoul(optarg, NULL, 10);
        else if (k == 'm')
            o.messages = true;
        else if (k == 's')
            o.seconds = strtod(optarg, NULL);
        else
            return 2;
    }
    if (!o.hidden || !o.rounds || o.rounds > MAX_ROUNDS || !(o.seconds > 0)) {
        fprintf(stderr, "bench_processes: expected --hidden, --rounds (at most %d) and --seconds above 0\n",
                MAX_ROUNDS);
        return 2;
    }
    vpps_communicator *c;
    vpps_status s = vpps_communicator_open(&c, "mpi", NULL, 60000);
    if (s == VPPS_OK) {
        atomic_store(&c->patient, true);
        s = run(&o, c);
    }
    if (s != VPPS_OK) fprintf(stderr, "bench_processes: %s\n", vpps_error_message());
    vpps_communicator_close(c);
    return s == VPPS_OK ? 0 : 1;
}
