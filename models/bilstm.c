/* bilstm.c - adds the cells of bidirectional LSTMs to a model, and applies them to the words of a sequence. */
#include "bilstm.h"

#include <string.h>

/* Returns the name of a cell: the network's name, a space, and `cell`; a space replaces each '_'. */
static part_name name_cell(const part_net *net, const char *cell) {
    part_name n;
    snprintf(n.text, sizeof n.text, "%s %s", net->network->name, cell);
    for (char *at = n.text; (at = strchr(at, '_'));) *at = ' ';
    return n;
}

static vpps_status record_join(bilstm *b, const part_net *net, vpps_model *model, const char *name) {
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, name_cell(net, name).text, &g));
    const vpps_node both[] = {vpps_gather(g, 0, 0, b->forward.layers->hidden, 1),
                              vpps_gather(g, 1, 0, b->backward.layers->hidden, 1)};
    vpps_push(g, part_dropout(&net->config, g, vpps_concat(g, 2, both)));
    return vpps_cell_end(g, &b->join);
}

vpps_status bilstm_make(bilstm *b, const part_net *net, vpps_model *model, bilstm_shape shape) {
    part_stack_shape stack = {.unit = PART_LSTM,
                              .layers = shape.layers,
                              .inputs = shape.inputs,
                              .between = shape.forward_hidden + shape.backward_hidden,
                              .hidden = shape.forward_hidden};
    PART_TRY(part_stack_make(&b->forward, model, shape.forward, name_cell(net, shape.forward).text, stack));
    stack.hidden = shape.backward_hidden;
    PART_TRY(part_stack_make(&b->backward, model, shape.backward, name_cell(net, shape.backward).text, stack));
    return shape.join ? record_join(b, net, model, shape.join) : VPPS_OK;
}

vpps_status bilstm_reserve(bilstm *b, part_memory *memory, uint32_t n) {
    b->x = part_reserve(memory, 3 * (size_t)n);
    if (!b->x) return VPPS_MEMORY;
    b->forward_at = b->x + n;
    b->backward_at = b->forward_at + n;
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

vpps_status bilstm_words(bilstm_net *n, vpps_model *model) {
    const net_config *c = &n->base.config;
    return part_embedding_make(&n->words, c, model, "embedding", c->words, c->embed, name_cell(&n->base, "word").text);
}

vpps_status bilstm_predictor(bilstm_net *n, vpps_model *model) {
    const net_config *c = &n->base.config;
    const bilstm_shape shape = {.forward = "forward",
                                .backward = "backward",
                                .join = c->layers > 1 ? "layer" : NULL,
                                .inputs = c->embed,
                                .forward_hidden = c->hidden,
                                .backward_hidden = c->hidden,
                                .layers = c->layers};
    PART_TRY(bilstm_make(&n->sentence, &n->base, model, shape));
    n->base.classifier.n_pulls = 2;
    PART_TRY(part_classifier_make(&n->base.classifier, model, c, 2 * c->hidden, c->mlp));
    return part_crf_make(&n->base.crf, model, c);
}

vpps_status bilstm_build(void *net, vpps_model *model) {
    PART_TRY(bilstm_words(net, model));
    return bilstm_predictor(net, model);
}

vpps_status bilstm_embed(bilstm_net *n, vpps_graph *g, const vpps_sentence *sentence) {
    PART_TRY(bilstm_reserve(&n->sentence, n->base.scratch, sentence->n_words));
    for (uint32_t k = 0; k < sentence->n_words; k++) n->sentence.x[k] = part_embed(&n->words, g, sentence->words[k]);
    return VPPS_OK;
}

vpps_status bilstm_tag(bilstm_net *n, vpps_graph *g, const vpps_sentence *sentence, net_heads heads,
                       const net_scores *scores) {
    bilstm *b = &n->sentence;
    bilstm_run(b, g, sentence->n_words);
    return part_classify_words(&n->base, g, sentence->n_words, b->forward_at, b->backward_at, sentence->tags, heads,
                               scores);
}
