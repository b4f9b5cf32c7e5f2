/* pointer_network.c - a pointer network (Vinyals, Fortunato and Jaitly 2015) that sorts: it reads 3 to 7 different numbers below 40, and
 * says where in the input the smallest is, the next one, and so on. Its answer is as long as its input: a softmax over the input's
 * positions, another graph for every length.
 *
 *     u_j = v . tanh(W_1 e_j + W_2 d)      e_j: state of the reader after number j; d: state of the writer
 *
 * After training a beam search of width 4 writes the answers to 200 new inputs; at least 0.9 are sorted wholly.
 *
 *     cc pointer_network.c $(pkg-config --cflags --libs vpps) -o pointer_network -lm && ./pointer_network
 */
#include "example.h"

#include <math.h>
#include <string.h>

enum {
    NUMBERS = 40,
    START = NUMBERS,
    EMBED = 32,
    HIDDEN = 64,
    MOST = 7,
    BATCH = 32,
    BATCHES = 900,
    TEST = 200,
    BEAM = 4
};

typedef struct network {
    vpps_model *model;
    vpps_param E, W_1, W_2, v;
    vpps_param W[2][4], U[2][4], b[2][4]; /* of reader and writer: gates i, f, o, u */
    vpps_cell lstm[2], score;
} network;

enum { READER, WRITER };

static void declare(network *n) {
    const vpps_init one = {.kind = VPPS_INIT_CONSTANT, .a = 1};
    TRY(vpps_model_create(&n->model, 1));
    TRY(vpps_add_lookup(n->model, &n->E, "E", NUMBERS + 1, EMBED, 1, NULL));
    TRY(vpps_add_matrix(n->model, &n->W_1, "W_1", HIDDEN, HIDDEN, NULL));
    TRY(vpps_add_matrix(n->model, &n->W_2, "W_2", HIDDEN, HIDDEN, NULL));
    TRY(vpps_add_matrix(n->model, &n->v, "v", 1, HIDDEN, NULL));
    for (int l = 0; l < 2; l++) {
        for (int k = 0; k < 4; k++) {
            char name[3][8];
            for (int p = 0; p < 3; p++) snprintf(name[p], sizeof name[p], "%c%d_%c", "WUb"[p], l, "ifou"[k]);
            TRY(vpps_add_matrix(n->model, &n->W[l][k], name[0], HIDDEN, EMBED, NULL));
            TRY(vpps_add_matrix(n->model, &n->U[l][k], name[1], HIDDEN, HIDDEN, NULL));
            TRY(vpps_add_vector(n->model, &n->b[l][k], name[2], HIDDEN, k == 1 ? &one : NULL));
        }
    }
}

static void record(network *n) {
    vpps_graph *g;
    for (int l = 0; l < 2; l++) { /* an LSTM that reads numbers */
        TRY(vpps_cell_begin(n->model, l == READER ? "reader" : "writer", &g));
        const vpps_node x = vpps_lookup(g, n->E, vpps_pull_index(g));
        const vpps_node h = vpps_gather(g, 0, 0, HIDDEN, 1), c = vpps_gather(g, 0, 1, HIDDEN, 1);
        vpps_node gate[4];
        for (int k = 0; k < 4; k++) {
            gate[k] = vpps_affine2(g, n->b[l][k], n->W[l][k], x, n->U[l][k], h);
            gate[k] = k < 3 ? vpps_sigmoid(g, gate[k]) : vpps_tanh(g, gate[k]);
        }
        const vpps_node state = vpps_add(g, vpps_mul(g, gate[0], gate[3]), vpps_mul(g, gate[1], c));
        TRY(vpps_scatter(g, vpps_mul(g, gate[2], vpps_tanh(g, state))));
        TRY(vpps_scatter(g, state));
        TRY(vpps_cell_end(g, &n->lstm[l]));
    }
    TRY(vpps_cell_begin(n->model, "score", &g)); /* child 0: the reader's state e_j, child 1: the writer's d */
    const vpps_node e = vpps_gather(g, 0, 0, HIDDEN, 1), d = vpps_gather(g, 1, 0, HIDDEN, 1);
    const vpps_node hidden = vpps_tanh(g, vpps_affine2(g, VPPS_NO_PARAM, n->W_1, e, n->W_2, d));
    TRY(vpps_push(g, vpps_matvec(g, n->v, hidden)));
    TRY(vpps_cell_end(g, &n->score));
}

static vpps_vertex lstm(const network *n, vpps_graph *g, int which, vpps_vertex before, uint32_t number) {
    return vpps_apply(g, VPPS_APPLICATION(.cell = n->lstm[which], .n_children = 1, .children = &before, .n_indices = 1,
                                          .indices = &number));
}

/* Reads the input; the last state. */
static vpps_vertex read(const network *n, vpps_graph *g, uint32_t length, const uint32_t *numbers,
                        vpps_vertex *states) {
    const vpps_node zero = vpps_zeros(g, HIDDEN, 1);
    vpps_vertex at = vpps_source(g, 2, (vpps_node[]){zero, zero});
    for (uint32_t j = 0; j < length; j++) at = states[j] = lstm(n, g, READER, at, numbers[j]);
    return at;
}

/* A vector with a score for each position. */
static vpps_node point(const network *n, vpps_graph *g, uint32_t length, const vpps_vertex *states,
                       vpps_vertex writer) {
    vpps_node scores[MOST];
    for (uint32_t j = 0; j < length; j++) {
        const vpps_vertex both[] = {states[j], writer};
        scores[j] =
            vpps_pushed(g, vpps_apply(g, VPPS_APPLICATION(.cell = n->score, .n_children = 2, .children = both)), 0);
    }
    return vpps_concat(g, length, scores);
}

static uint32_t draw_numbers(uint32_t *numbers, uint32_t *order) {
    const uint32_t length = 3 + draw(MOST - 2);
    bool used[NUMBERS] = {false};
    for (uint32_t j = 0; j < length; j++) {
        do numbers[j] = draw(NUMBERS);
        while (used[numbers[j]]);
        used[numbers[j]] = true;
    }
    for (uint32_t x = 0, k = 0; x < NUMBERS; x++)
        for (uint32_t j = 0; j < length; j++)
            if (numbers[j] == x) order[k++] = j;
    return length;
}

static void train(const network *n, vpps_handle *h, vpps_graph *g) {
    for (int batch = 1; batch <= BATCHES; batch++) {
        vpps_node losses[BATCH * MOST];
        uint32_t count = 0;
        float loss;
        vpps_graph_clear(g);
        for (int k = 0; k < BATCH; k++) {
            uint32_t numbers[MOST], order[MOST], last = START;
            vpps_vertex states[MOST];
            const uint32_t length = draw_numbers(numbers, order);
            vpps_vertex writer = read(n, g, length, numbers, states);
            for (uint32_t t = 0; t < length; t++) {
                writer = lstm(n, g, WRITER, writer, last);
                losses[count++] = vpps_cross_entropy(g, point(n, g, length, states, writer), order[t]);
                last = numbers[order[t]];
            }
        }
        TRY(vpps_fb(h, g, vpps_average(g, count, losses), &loss));
        if (batch % 300 == 0) printf("batch %d  loss %.4f\n", batch - 1, (double)loss);
    }
}

/* ---------------------------------------------------------------- beam search */

typedef struct hypothesis {
    double log_p;
    uint32_t said[MOST];
    float state[2][HIDDEN]; /* the writer's */
} hypothesis;

/* Extends every hypothesis by every position: keeps the best BEAM of them. */
static uint32_t extend(const network *n, vpps_handle *h, vpps_graph *g, uint32_t length, const uint32_t *numbers,
                       uint32_t t, uint32_t width, hypothesis *beam) {
    hypothesis next[BEAM + 1];
    float log_p[BEAM][MOST], states[BEAM][2][HIDDEN], *outs[3 * BEAM];
    vpps_node nodes[3 * BEAM];
    vpps_vertex read_states[MOST];
    uint32_t found = 0;
    vpps_graph_clear(g);
    const vpps_vertex end = read(n, g, length, numbers, read_states);
    for (uint32_t k = 0; k < width; k++) { /* all hypotheses in one graph */
        vpps_vertex writer = end;
        if (t > 0) {
            const vpps_node state[] = {vpps_input(g, HIDDEN, 1, beam[k].state[0]),
                                       vpps_input(g, HIDDEN, 1, beam[k].state[1])};
            writer = vpps_source(g, 2, state);
        }
        writer = lstm(n, g, WRITER, writer, t > 0 ? numbers[beam[k].said[t - 1]] : START);
        nodes[3 * k] = vpps_log_softmax(g, point(n, g, length, read_states, writer));
        nodes[3 * k + 1] = vpps_scattered(g, writer, 0);
        nodes[3 * k + 2] = vpps_scattered(g, writer, 1);
        outs[3 * k] = log_p[k];
        outs[3 * k + 1] = states[k][0];
        outs[3 * k + 2] = states[k][1];
    }
    TRY(vpps_forward(h, g, 3 * width, nodes, outs));
    for (uint32_t k = 0; k < width; k++) {
        for (uint32_t j = 0; j < length; j++) {
            hypothesis new = beam[k];
            new.log_p += (double)log_p[k][j];
            new.said[t] = j;
            memcpy(new.state, states[k], sizeof new.state);
            uint32_t at = found;
            for (; at > 0 && next[at - 1].log_p < new.log_p; at--) next[at] = next[at - 1];
            next[at] = new;
            if (found < BEAM) found++;
        }
    }
    memcpy(beam, next, found * sizeof *beam);
    return found;
}

int main(void) {
    network n;
    declare(&n);
    record(&n);
    vpps_options options;
    vpps_options_default(&options);
    options.optimizer.kind = VPPS_ADAM;
    options.optimizer.lr = 0.003f;
    vpps_handle *h;
    vpps_graph *g;
    TRY(vpps_handle_create(&h, n.model, &options));
    TRY(vpps_graph_create(&g, n.model));
    train(&n, h, g);
    int right = 0;
    for (int k = 0; k < TEST; k++) {
        uint32_t numbers[MOST], order[MOST], width = 1;
        const uint32_t length = draw_numbers(numbers, order);
        hypothesis beam[BEAM] = {{0}};
        for (uint32_t t = 0; t < length; t++) width = extend(&n, h, g, length, numbers, t, width, beam);
        right += memcmp(beam[0].said, order, length * sizeof *order) == 0;
    }
    vpps_graph_destroy(g);
    vpps_handle_destroy(h);
    vpps_model_destroy(n.model);
    return reached("sorted", (double)right / TEST, right >= 0.9 * TEST);
}
