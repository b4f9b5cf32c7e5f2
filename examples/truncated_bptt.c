/* truncated_bptt.c - truncated backpropagation through time: an LSTM reads an endless text, a window of 8 words after the other.
 * Gradients end where a window begins, but the state goes on: vpps_keep lets it stay on the device, and the next window begins with
 * it as a constant.
 *
 * The text says each key twice, 5 words apart, and many windows begin between. 16 texts are read side by side. Nobody
 * can know a key the first time, which costs log(6) / 6 = 0.299 nats a word; the mean loss of the last 50 windows is below 0.34. With
 * --forget every window begins with zeros, and the loss stays above 0.44.
 *
 *     cc truncated_bptt.c $(pkg-config --cflags --libs vpps) -o truncated_bptt && ./truncated_bptt
 */
#include "example.h"

#include <string.h>

enum { WORDS = 8, EMBED = 16, HIDDEN = 64, WINDOW = 8, STREAMS = 16, WINDOWS = 800, LAST = 50 };

typedef struct network {
    vpps_model *model;
    vpps_param E, W[4], U[4], b[4], W_s, b_s;
    vpps_cell lstm;
} network;

static void declare(network *n) {
    const vpps_init one = {.kind = VPPS_INIT_CONSTANT, .a = 1};
    TRY(vpps_model_create(&n->model, 1));
    TRY(vpps_add_lookup(n->model, &n->E, "E", WORDS, EMBED, 1, NULL));
    for (int k = 0; k < 4; k++) {
        char name[3][8];
        for (int p = 0; p < 3; p++) snprintf(name[p], sizeof name[p], "%c_%c", "WUb"[p], "ifou"[k]);
        TRY(vpps_add_matrix(n->model, &n->W[k], name[0], HIDDEN, EMBED, NULL));
        TRY(vpps_add_matrix(n->model, &n->U[k], name[1], HIDDEN, HIDDEN, NULL));
        TRY(vpps_add_vector(n->model, &n->b[k], name[2], HIDDEN, k == 1 ? &one : NULL));
    }
    TRY(vpps_add_matrix(n->model, &n->W_s, "W_s", WORDS, HIDDEN, NULL));
    TRY(vpps_add_vector(n->model, &n->b_s, "b_s", WORDS, NULL));
}

/* Reads a word, and says the next. */
static void record(network *n) {
    vpps_graph *g;
    TRY(vpps_cell_begin(n->model, "lstm", &g));
    const vpps_node x = vpps_lookup(g, n->E, vpps_pull_index(g));
    const vpps_node h = vpps_gather(g, 0, 0, HIDDEN, 1), c = vpps_gather(g, 0, 1, HIDDEN, 1);
    vpps_node gate[4];
    for (int k = 0; k < 4; k++) {
        gate[k] = vpps_affine2(g, n->b[k], n->W[k], x, n->U[k], h);
        gate[k] = k < 3 ? vpps_sigmoid(g, gate[k]) : vpps_tanh(g, gate[k]);
    }
    const vpps_node state = vpps_add(g, vpps_mul(g, gate[0], gate[3]), vpps_mul(g, gate[1], c));
    const vpps_node out = vpps_mul(g, gate[2], vpps_tanh(g, state));
    TRY(vpps_scatter(g, out));
    TRY(vpps_scatter(g, state));
    TRY(vpps_push(g, vpps_cross_entropy(g, vpps_affine1(g, n->b_s, n->W_s, out), vpps_pull_index(g))));
    TRY(vpps_cell_end(g, &n->lstm));
}

/* ---------------------------------------------------------------- the text
 *
 * Periods of 6 words: a key, 0 to 5, three times the filler 6, then 7, and the key again. */

enum { KEYS = 6, PERIOD = 6 };

typedef struct stream {
    uint32_t at, key, word;
    vpps_value state[2]; /* h and c, as the preceding window has left them */
} stream;

static uint32_t next_word(stream *s) {
    const uint32_t at = s->at++ % PERIOD;
    if (at == 0) s->key = draw(KEYS);
    if (at == 0 || at == PERIOD - 1) return s->key;
    return KEYS + (at >= PERIOD - 2); /* 7 says that the key comes next */
}

int main(int argc, char **argv) {
    const bool carried = argc < 2 || strcmp(argv[1], "--forget") != 0;
    static stream streams[STREAMS];
    network n;
    declare(&n);
    record(&n);
    vpps_options options;
    vpps_options_default(&options);
    options.optimizer.kind = VPPS_ADAM;
    options.optimizer.lr = 0.005f;
    vpps_handle *handle;
    vpps_graph *g;
    TRY(vpps_handle_create(&handle, n.model, &options));
    TRY(vpps_graph_create(&g, n.model));
    const float zeros[HIDDEN] = {0};
    vpps_value start_of_all;
    TRY(vpps_keep_data(handle, HIDDEN, 1, zeros, &start_of_all));
    for (int k = 0; k < STREAMS; k++) {
        streams[k] = (stream){.at = draw(PERIOD), .state = {start_of_all, start_of_all}};
        streams[k].word = next_word(&streams[k]);
    }
    double sum = 0;
    for (int window = 0; window < WINDOWS; window++) {
        vpps_node losses[STREAMS * WINDOW];
        vpps_value before[2 * STREAMS];
        float loss;
        uint32_t count = 0;
        vpps_graph_clear(g);
        for (int k = 0; k < STREAMS; k++) {
            stream *s = &streams[k];
            const vpps_node start[] = {vpps_kept(g, handle, s->state[0]), vpps_kept(g, handle, s->state[1])};
            vpps_vertex v = vpps_source(g, 2, start);
            for (int t = 0; t < WINDOW; t++) {
                const uint32_t indices[] = {s->word, next_word(s)};
                v = vpps_apply(g, VPPS_APPLICATION(.cell = n.lstm, .n_children = 1, .children = &v, .n_indices = 2,
                                                   .indices = indices));
                losses[count++] = vpps_pushed(g, v, 0);
                s->word = indices[1];
            }
            for (uint32_t i = 0; i < 2; i++) {
                before[2 * k + (int)i] = s->state[i];
                if (carried) TRY(vpps_keep(handle, g, vpps_scattered(g, v, i), &s->state[i]));
            }
        }
        TRY(vpps_fb(handle, g, vpps_average(g, count, losses), NULL));
        for (int i = 0; carried && i < 2 * STREAMS; i++)
            if (before[i] != start_of_all) TRY(vpps_release(handle, before[i]));
        TRY(vpps_sync_latest_loss(handle, &loss));
        if (window >= WINDOWS - LAST) sum += (double)loss;
        if ((window + 1) % 200 == 0) printf("window %d  loss %.4f\n", window + 1, (double)loss);
    }
    const double mean = sum / LAST;
    vpps_graph_destroy(g);
    vpps_handle_destroy(handle);
    vpps_model_destroy(n.model);
    return reached("loss of the last windows", mean, carried ? mean < 0.34 : mean > 0.44);
}
