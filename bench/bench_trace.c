/* bench_trace.c - what noting every task for a trace costs a batch.
 *
 *     bench_trace [TREES.txt]        binary trees in brackets; without a file, generated ListOps
 *
 * Two VPs train, and note: a Tree-LSTM, and an RNN on sentences of some ten words whose operations are called one by one, so that
 * each is a task; hidden size 64, batches of 16. What a note costs, of many runs the one that other work disturbed least, times the
 * notes of a VP a batch, as a share of the quickest batch: of two runs beside each other, one with notes, the
 * difference would say more of the machine. Below 3 % is asked for.
 */
#include "runtime/handle.h"
#include "workload.h"

enum { HIDDEN = 64, VPS = 2, SENTENCES = 16, BATCHES = 200, WORDS = 100 };

/* Nanoseconds. */
static double cost_of_a_note(void) {
    enum { RUNS = 101, NOTES = 500 };
    static vpps_task_note notes[NOTES];
    double ns[RUNS];
    for (int r = 0; r < RUNS; r++) {
        vpps_track k = {notes, 0, NOTES};
        const uint64_t begin = vpps_now_ns();
        for (uint32_t i = 0; i < NOTES; i++)
            vpps_trace_note(&k, (vpps_task_note){.kind = VPPS_TASK_STAGE, .stage = i, .number = i});
        ns[r] = (double)(vpps_now_ns() - begin) / NOTES;
    }
    sort_doubles(ns, RUNS);
    return ns[0];
}

static void report(const char *name, const vpps_trace *trace) {
    double ns[BATCHES];
    for (uint32_t k = 0; k < BATCHES; k++) ns[k] = (double)trace->launches[k].device_ns;
    sort_doubles(ns, BATCHES);
    const double note = cost_of_a_note(), notes = (double)trace->tracks[0].n / BATCHES;
    printf("notes of %s, hidden %d, batches of %d: %.0f a VP and batch, of %.0f ns; the quickest of %d batches %.0f "
           "us: %.2f %% "
           "(asked: 3)\n",
           name, HIDDEN, SENTENCES, notes, note, BATCHES, ns[0] * 1e-3, 100 * note * notes / ns[0]);
}

static vpps_status open_handle(vpps_handle **h, vpps_model *model) {
    vpps_options options;
    vpps_options_default(&options);
    options.vps = VPS;
    options.trace_events = 1000000;
    return vpps_handle_create(h, model, &options);
}

static vpps_status measure_trees(const char *trees) {
    workload w;
    vpps_handle *h = NULL;
    vpps_status s = workload_create(&w, trees, HIDDEN, HIDDEN);
    if (s == VPPS_OK) s = open_handle(&h, w.model);
    for (uint32_t k = 0; k < BATCHES && s == VPPS_OK; k++) {
        vpps_node loss;
        s = workload_batch(&w, SENTENCES, &loss);
        if (s == VPPS_OK) s = vpps_fb(h, w.g, loss, NULL);
    }
    if (s == VPPS_OK) s = vpps_sync_latest_loss(h, NULL);
    if (s == VPPS_OK) report("a Tree-LSTM", h->trace);
    vpps_handle_destroy(h);
    workload_destroy(&w);
    return s;
}

typedef struct rnn {
    vpps_model *model;
    vpps_graph *g;
    vpps_param words, wx, wh, b;
} rnn;

static vpps_status open_rnn(rnn *n) {
    VPPS_TRY(vpps_model_create(&n->model, 1));
    VPPS_TRY(vpps_add_lookup(n->model, &n->words, "words", WORDS, HIDDEN, 1, NULL));
    VPPS_TRY(vpps_add_matrix(n->model, &n->wx, "wx", HIDDEN, HIDDEN, NULL));
    VPPS_TRY(vpps_add_matrix(n->model, &n->wh, "wh", HIDDEN, HIDDEN, NULL));
    VPPS_TRY(vpps_add_vector(n->model, &n->b, "b", HIDDEN, NULL));
    return vpps_graph_create(&n->g, n->model);
}

static vpps_node rnn_batch(const rnn *n, uint32_t batch) {
    vpps_node terms[SENTENCES];
    vpps_graph_clear(n->g);
    for (uint32_t s = 0; s < SENTENCES; s++) {
        const uint32_t length = 5 + (batch + s) % 10;
        vpps_node state = vpps_lookup(n->g, n->words, (batch + s) % WORDS);
        for (uint32_t i = 0; i < length; i++)
            state = vpps_tanh(n->g, vpps_affine2(n->g, n->b, n->wx, vpps_lookup(n->g, n->words, i), n->wh, state));
        terms[s] = vpps_sum_elements(n->g, state);
    }
    return vpps_average(n->g, SENTENCES, terms);
}

static vpps_status measure_operations(void) {
    rnn n = {0};
    vpps_handle *h = NULL;
    vpps_status s = open_rnn(&n);
    if (s == VPPS_OK) s = open_handle(&h, n.model);
    for (uint32_t k = 0; k < BATCHES && s == VPPS_OK; k++) s = vpps_fb(h, n.g, rnn_batch(&n, k), NULL);
    if (s == VPPS_OK) s = vpps_sync_latest_loss(h, NULL);
    if (s == VPPS_OK) report("an RNN of single operations", h->trace);
    vpps_handle_destroy(h);
    vpps_graph_destroy(n.g);
    vpps_model_destroy(n.model);
    return s;
}

int main(int argc, char **argv) {
    vpps_status s = measure_trees(argc > 1 ? argv[1] : NULL);
    if (s == VPPS_OK) s = measure_operations();
    if (s != VPPS_OK) fprintf(stderr, "bench_trace: %s\n", vpps_error_message());
    return s != VPPS_OK;
}
