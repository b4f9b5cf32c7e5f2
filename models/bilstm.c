/* bilstm.c - records bidirectional LSTMs and runs them over a sequence. */
#include "bilstm.h"

#include <stdlib.h>

vpps_status bilstm_declare(bilstm *b, vpps_model *model, const char *forward, const char *backward,
                           bilstm_sizes sizes) {
    part_stack_shape shape = {.unit = PART_LSTM,
                              .layers = sizes.layers,
                              .inputs = sizes.inputs,
                              .between = sizes.forward + sizes.backward,
                              .hidden = sizes.forward};
    const vpps_status s = part_stack_declare(&b->forward, model, forward, shape);
    shape.hidden = sizes.backward;
    return s == VPPS_OK ? part_stack_declare(&b->backward, model, backward, shape) : s;
}

vpps_status bilstm_record(bilstm *b, vpps_model *model, const char *forward, const char *backward) {
    const vpps_status s = part_stack_record(&b->forward, model, forward);
    return s == VPPS_OK ? part_stack_record(&b->backward, model, backward) : s;
}

vpps_status bilstm_record_join(bilstm *b, const net_config *config, vpps_model *model, const char *name) {
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, name, &g);
    if (s != VPPS_OK) return s;
    const vpps_node both[] = {vpps_gather(g, 0, 0, b->forward.layers->hidden, 1),
                              vpps_gather(g, 1, 0, b->backward.layers->hidden, 1)};
    vpps_push(g, part_dropout(config, g, vpps_concat(g, 2, both)));
    return vpps_cell_end(g, &b->join);
}

void bilstm_free(bilstm *b) {
    free(b->x);
    free(b->forward_at);
    free(b->backward_at);
}

/* Grows an array to n entries. Returns false when out of memory; the array then keeps its size. */
static bool grow(uint32_t **array, uint32_t n) {
    uint32_t *grown = realloc(*array, n * sizeof *grown);
    if (grown) *array = grown;
    return grown != NULL;
}

vpps_status bilstm_reserve(bilstm *b, uint32_t n) {
    if (n <= b->room) return VPPS_OK;
    if (!grow(&b->x, n) || !grow(&b->forward_at, n) || !grow(&b->backward_at, n)) return VPPS_MEMORY;
    b->room = n;
    return VPPS_OK;
}

vpps_node bilstm_join(const bilstm *b, vpps_graph *g, vpps_vertex forward, vpps_vertex backward) {
    const vpps_vertex both[] = {forward, backward};
    return vpps_pushed(g, vpps_apply(g, VPPS_APPLICATION(.cell = b->join, .n_children = 2, .children = both)), 0);
}

static void run_layer(bilstm *b, const part_recurrent *forward, const part_recurrent *backward, vpps_graph *g,
                      uint32_t n) {
    vpps_vertex before = part_recurrent_start(forward, g);
    for (uint32_t k = 0; k < n; k++) before = b->forward_at[k] = part_recurrent_step(forward, g, before, b->x[k]);
    before = part_recurrent_start(backward, g);
    for (uint32_t k = n; k-- > 0;) before = b->backward_at[k] = part_recurrent_step(backward, g, before, b->x[k]);
}

void bilstm_run(bilstm *b, vpps_graph *g, uint32_t n) {
    for (uint32_t l = 0; l < b->forward.n; l++) {
        for (uint32_t k = 0; l && k < n; k++) b->x[k] = bilstm_join(b, g, b->forward_at[k], b->backward_at[k]);
        run_layer(b, &b->forward.layers[l], &b->backward.layers[l], g, n);
    }
}

vpps_status bilstm_declare_tagger(bilstm *b, part_classifier *c, vpps_model *model, const net_config *config) {
    const bilstm_sizes sizes = {config->embed, config->hidden, config->hidden, config->layers};
    const vpps_status s = bilstm_declare(b, model, "forward", "backward", sizes);
    if (s != VPPS_OK) return s;
    c->n_pulls = 2;
    const vpps_status declared = part_classifier_declare(c, model, config, 2 * config->hidden, config->mlp);
    return declared == VPPS_OK ? part_crf_declare(&b->crf, model, config) : declared;
}

vpps_status bilstm_record_tagger(bilstm *b, part_classifier *c, vpps_model *model, const char *name) {
    char names[3][64];
    static const char *const cells[] = {"forward", "backward", "layer"};
    for (int i = 0; i < 3; i++) snprintf(names[i], sizeof names[i], "%s %s", name, cells[i]);
    vpps_status s = bilstm_record(b, model, names[0], names[1]);
    if (s == VPPS_OK && b->forward.n > 1) s = bilstm_record_join(b, c->config, model, names[2]);
    if (s == VPPS_OK) s = part_classifier_record(c, model);
    return s == VPPS_OK ? part_crf_record(&b->crf, model) : s;
}

vpps_status bilstm_tag(bilstm *b, const part_classifier *c, vpps_graph *g, const vpps_sentence *sentence,
                       net_heads heads, const net_scores *scores) {
    const net_heads asked = part_crf_heads(&b->crf, heads);
    bilstm_run(b, g, sentence->n_words);
    for (uint32_t k = 0; k < sentence->n_words; k++) {
        const vpps_node h[] = {vpps_scattered(g, b->forward_at[k], 0), vpps_scattered(g, b->backward_at[k], 0)};
        part_classify(c, g, k, h, sentence->tags ? sentence->tags[k] : VPPS_NO_WORD, asked, scores);
    }
    part_crf_add(&b->crf, g, sentence->n_words, sentence->tags, scores);
    return vpps_graph_status(g);
}

void bilstm_chain(const bilstm *b, vpps_graph *g, vpps_node chain[NET_CHAIN]) { part_crf_chain(&b->crf, g, chain); }
