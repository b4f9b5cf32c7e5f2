/* bilstm_tagger.c - the bidirectional LSTM tagger: the BI-LSTM network of Huang, Xu and Yu, "Bidirectional LSTM-CRF
 * Models for Sequence Tagging" (2015), section 2.2, without features other than the word; with --crf that of section 2.4,
 * whose conditional random field is in crf.h. The classifier has a hidden layer, as in the benchmark of Neubig et al.,
 * "DyNet: The Dynamic Neural Network Toolkit" (2017), and in VPPS (MICRO 2018).
 *
 * For the words w_1 .. w_n, with the embeddings E:
 *     x_k = E[w_k]
 *     (h_f(k), c_f(k)) = LSTM_f(x_k, h_f(k - 1), c_f(k - 1))      from left to right
 *     (h_b(k), c_b(k)) = LSTM_b(x_k, h_b(k + 1), c_b(k + 1))      from right to left
 *     s_k = tanh(W_h [h_f(k); h_b(k)] + b_h)                      with --mlp 0: s_k = [h_f(k); h_b(k)]
 *     p(tag of w_k) = softmax(W_s s_k + b_s)
 * With --layers, both LSTMs of each further layer read D([h_f(k); h_b(k)]) of the preceding layer, where D is dropout;
 * s_k reads the last layer. Both LSTMs begin with zeros. Their equations are in sequence.h; the paper's LSTM
 * (section 2.1) also has weights from c to the gates, which are left out here.
 *
 * Parameters, with V words, C classes, e = embed, d = hidden, m = mlp, L = layers:
 *     V e + 8 d (e + d + 1) + (L - 1) 8 d (3 d + 1) + m (2 d + 1) + C (m + 1);
 * without the hidden layer the last two terms are C (2 d + 1). With --crf C (C + 2) more.
 */
#include "bilstm.h"

typedef struct bilstm_tagger_net {
    part_net base;
    part_embedding words;
    bilstm sentence;
} bilstm_tagger_net;

static vpps_status declare(void *net, vpps_model *model) {
    bilstm_tagger_net *t = net;
    const net_config *c = &t->base.config;
    const vpps_status s = part_embedding_declare(&t->words, model, "embedding", c->words, c->embed);
    return s == VPPS_OK ? bilstm_declare_tagger(&t->sentence, &t->base.classifier, model, c) : s;
}

static void destroy(void *net) {
    bilstm_tagger_net *t = net;
    if (t) bilstm_free(&t->sentence);
    part_destroy(net);
}

static vpps_status record(void *net, vpps_model *model) {
    bilstm_tagger_net *t = net;
    vpps_status s = part_embedding_record(&t->words, &t->base.config, model, "bilstm-tagger word");
    if (s == VPPS_OK) s = bilstm_record_tagger(&t->sentence, &t->base.classifier, model, "bilstm-tagger");
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(bilstm_tagger_net), model, config, declare, record);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    bilstm_tagger_net *t = net;
    const vpps_sentence *sentence = &x->sentence;
    const vpps_status s = bilstm_reserve(&t->sentence, sentence->n_words);
    if (s != VPPS_OK) return s;
    for (uint32_t k = 0; k < sentence->n_words; k++) t->sentence.x[k] = part_embed(&t->words, g, sentence->words[k]);
    return bilstm_tag(&t->sentence, &t->base.classifier, g, sentence, heads, scores);
}

static void chain(void *net, vpps_graph *g, vpps_node nodes[NET_CHAIN]) {
    const bilstm_tagger_net *t = net;
    bilstm_chain(&t->sentence, g, nodes);
}

static const option_row options[] = {PART_EMBED("Size of a word's embedding"), BILSTM_OPTIONS, PART_CRF, {0}};

extern const network bilstm_tagger;
const network bilstm_tagger = {
    .name = "bilstm-tagger",
    .summary = "bidirectional LSTM that tags every word",
    .source = "Huang, Xu and Yu 2015, section 2.2",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TAGGING,
    .defaults = {.embed = 256, .hidden = 256, .layers = 1, .mlp = 256},
    .create = create,
    .add = add,
    .chain = chain,
    .destroy = destroy,
};
