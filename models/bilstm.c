/* bilstm.c - see bilstm.h. */
#include "bilstm.h"

#include <stdlib.h>

vpps_status bilstm_declare(bilstm *b, vpps_model *model, const char *forward, const char *backward,
                           bilstm_sizes sizes) {
    const vpps_status s = part_recurrent_declare(&b->forward, PART_LSTM, model, forward, sizes.inputs, sizes.forward);
    if (s != VPPS_OK) return s;
    return part_recurrent_declare(&b->backward, PART_LSTM, model, backward, sizes.inputs, sizes.backward);
}

vpps_status bilstm_record(bilstm *b, vpps_model *model, const char *forward, const char *backward) {
    const vpps_status s = part_recurrent_record(&b->forward, model, forward);
    return s == VPPS_OK ? part_recurrent_record(&b->backward, model, backward) : s;
}

void bilstm_free(bilstm *b) {
    free(b->x);
    free(b->forward_at);
    free(b->backward_at);
}

/* ---------------------------------------------------------------- a sequence */

/* What cannot grow keeps its size. */
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

void bilstm_run(bilstm *b, vpps_graph *g, uint32_t n) {
    vpps_vertex before = part_recurrent_start(&b->forward, g);
    for (uint32_t k = 0; k < n; k++) {
        before = b->forward_at[k] = part_recurrent_step(&b->forward, g, before, b->x[k]);
    }
    before = part_recurrent_start(&b->backward, g);
    for (uint32_t k = n; k-- > 0;) {
        before = b->backward_at[k] = part_recurrent_step(&b->backward, g, before, b->x[k]);
    }
}

/* ---------------------------------------------------------------- tags */

vpps_status bilstm_declare_tagger(bilstm *b, part_classifier *c, vpps_model *model, const net_config *config) {
    const bilstm_sizes sizes = {.inputs = config->embed, .forward = config->hidden, .backward = config->hidden};
    const vpps_status s = bilstm_declare(b, model, "forward", "backward", sizes);
    if (s != VPPS_OK) return s;
    c->n_pulls = 2;
    return part_classifier_declare(c, model, config, 2 * config->hidden, config->mlp);
}

vpps_status bilstm_tag(bilstm *b, const part_classifier *c, vpps_graph *g, const vpps_sentence *sentence,
                       net_heads heads, const net_scores *scores) {
    bilstm_run(b, g, sentence->n_words);
    for (uint32_t k = 0; k < sentence->n_words; k++) {
        const vpps_node h[] = {vpps_scattered(g, b->forward_at[k], 0), vpps_scattered(g, b->backward_at[k], 0)};
        part_classify(c, g, k, h, sentence->tags ? sentence->tags[k] : VPPS_NO_WORD, heads, scores);
    }
    return vpps_graph_status(g);
}
