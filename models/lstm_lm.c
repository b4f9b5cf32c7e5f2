/* lstm_lm.c - an LSTM language model on whole sentences, however long: the Var-LSTM of Xu et al., "Cavs: An Efficient
 * Runtime System for Dynamic Neural Networks" (USENIX ATC 2018), section 5. The network is that of Zaremba, Sutskever
 * and Vinyals, "Recurrent Neural Network Regularization" (2014), section 3, with one layer: dropout is on the
 * connections that are not recurrent.
 *
 *     x_t = D(embedding of w_t)      h_t, c_t = LSTM(x_t, h_t-1, c_t-1)   h_-1 = c_-1 = 0    (sequence.h)
 *     p(w_t+1 | w_0 .. w_t) = softmax(W_s D(h_t) + b_s)                   D: dropout
 *
 * Parameters, with V words, C classes (the words again), e = embed, d = hidden: V e + 4 d (e + d + 1) + C d + C.
 */
#include "lstm_lm.h"

typedef struct lstm_lm_net {
    part_net base;
    part_embedding embedding;
    part_recurrent lstm;
} lstm_lm_net;

static vpps_status declare(void *net, vpps_model *model) {
    lstm_lm_net *n = net;
    const net_config *c = &n->base.config;
    vpps_status s = part_embedding_declare(&n->embedding, model, "embedding", c->words, c->embed);
    if (s == VPPS_OK) s = part_recurrent_declare(&n->lstm, PART_LSTM, model, "lstm", c->embed, c->hidden);
    if (s == VPPS_OK) s = part_classifier_declare(&n->base.classifier, model, c, c->hidden, 0);
    return s;
}

static vpps_status record(void *net, vpps_model *model) {
    lstm_lm_net *n = net;
    vpps_status s = part_embedding_record(&n->embedding, &n->base.config, model, "embedding");
    if (s == VPPS_OK) s = part_recurrent_record(&n->lstm, model, "lstm");
    if (s == VPPS_OK) s = part_classifier_record(&n->base.classifier, model);
    return s;
}

vpps_status lstm_lm_create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(lstm_lm_net), model, config, declare, record);
}

vpps_status lstm_lm_add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    const lstm_lm_net *n = net;
    const vpps_sentence *words = &x->sentence;
    vpps_vertex step = part_recurrent_start(&n->lstm, g);
    for (uint32_t t = 0; t + 1 < words->n_words; t++) {
        step = part_recurrent_step(&n->lstm, g, step, part_embed(&n->embedding, g, words->words[t]));
        const vpps_node h = vpps_scattered(g, step, 0);
        part_classify(&n->base.classifier, g, t, &h, words->words[t + 1], heads, scores);
    }
    return vpps_graph_status(g);
}

vpps_status lstm_lm_decode(void *net, vpps_graph *g, uint32_t word, net_decoding *d) {
    const lstm_lm_net *n = net;
    const vpps_vertex before = d->n_states ? vpps_source(g, d->n_states, d->states) : part_recurrent_start(&n->lstm, g);
    const vpps_vertex step = part_recurrent_step(&n->lstm, g, before, part_embed(&n->embedding, g, word));
    const vpps_node h = vpps_scattered(g, step, 0);
    vpps_node nll;
    part_classify(&n->base.classifier, g, 0, &h, VPPS_NO_WORD, NET_HEADS_ALL,
                  &(net_scores){.logits = &d->logits, .nll = &nll});
    d->n_states = 2; /* h, c */
    for (uint32_t i = 0; i < d->n_states; i++) d->states[i] = vpps_scattered(g, step, i);
    return vpps_graph_status(g);
}

static const option_row options[] = {LSTM_LM_OPTIONS, {0}};

extern const network lstm_lm;
const network lstm_lm = {
    .name = "lstm-lm",
    .summary = "LSTM language model, a sentence an example",
    .source = "Zaremba, Sutskever and Vinyals 2014, section 3; Xu et al. 2018 (Var-LSTM)",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TEXT,
    .defaults = {.embed = 256, .hidden = 256},
    .create = lstm_lm_create,
    .add = lstm_lm_add,
    .decode = lstm_lm_decode,
    .destroy = part_destroy,
};
