#include <stdio.h>
#include <stdlib.h>
#include <vpps.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != VPPS_OK) return fprintf(stderr, "%s\n", vpps_error_message()), 1;                                \
    } while (0)

enum { WORDS = 20, DIM = 32, HIDDEN = 64, BATCH = 32, BATCHES = 600 };

int main(void) {
    vpps_model *model;
    vpps_param words, wx, wh, b, wo, bo;
    TRY(vpps_model_create(&model, 1));
    TRY(vpps_add_lookup(model, &words, "words", WORDS, DIM, 1, NULL));
    TRY(vpps_add_matrix(model, &wx, "Wx", HIDDEN, DIM, NULL));
    TRY(vpps_add_matrix(model, &wh, "Wh", HIDDEN, HIDDEN, NULL));
    TRY(vpps_add_vector(model, &b, "b", HIDDEN, NULL));
    TRY(vpps_add_matrix(model, &wo, "Wo", 2, HIDDEN, NULL));
    TRY(vpps_add_vector(model, &bo, "bo", 2, NULL));

    vpps_graph *g, *r;
    vpps_cell rnn; /* h' = tanh(Wx x + Wh h + b) */
    TRY(vpps_cell_begin(model, "rnn", &r));
    vpps_node x = vpps_lookup(r, words, vpps_pull_index(r));
    vpps_node before = vpps_gather(r, 0, 0, HIDDEN, 1);
    TRY(vpps_scatter(r, vpps_tanh(r, vpps_affine2(r, b, wx, x, wh, before))));
    TRY(vpps_cell_end(r, &rnn));

    vpps_options options;
    vpps_options_default(&options);
    options.optimizer.kind = VPPS_ADAM;
    options.optimizer.lr = 0.003f;
    vpps_handle *h;
    TRY(vpps_handle_create(&h, model, &options));
    TRY(vpps_graph_create(&g, model));
    const float zero[HIDDEN] = {0};
    float loss;
    for (int batch = 1; batch <= BATCHES; batch++) {
        vpps_graph_clear(g);
        vpps_node losses[BATCH];
        for (int s = 0; s < BATCH; s++) {
            vpps_node start = vpps_input(g, HIDDEN, 1, zero);
            vpps_vertex v = vpps_source(g, 1, &start);
            uint32_t found = 0;
            for (int left = 1 + rand() % 25; left > 0; left--) {
                uint32_t word = (uint32_t)rand() % WORDS;
                found |= word == 7;
                v = vpps_apply(g, VPPS_APPLICATION(.cell = rnn, .n_children = 1, .children = &v, .n_indices = 1,
                                                   .indices = &word));
            }
            losses[s] = vpps_cross_entropy(g, vpps_affine1(g, bo, wo, vpps_scattered(g, v, 0)), found);
        }
        TRY(vpps_fb(h, g, vpps_average(g, BATCH, losses), &loss)); /* the loss of the preceding batch */
        if (batch % 100 == 0) printf("batch %d  loss %.4f\n", batch - 1, (double)loss);
    }
    TRY(vpps_sync_latest_loss(h, &loss));
    return loss < 0.2f ? 0 : 1;
}
