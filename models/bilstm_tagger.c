/* bilstm_tagger.c - the bidirectional LSTM tagger: the BI-LSTM network of Huang, Xu and Yu, "Bidirectional LSTM-CRF
 * Models for Sequence Tagging" (2015), section 2.2, without features other than the word; with --crf that of section 2.4,
 * whose conditional random field is in crf.c. The classifier has a hidden layer, as in the benchmark of Neubig et al.,
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

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    PART_TRY(bilstm_embed(net, g, &x->sentence));
    return bilstm_tag(net, g, &x->sentence, heads, scores);
}

static const option_row options[] = {PART_EMBED("Size of a word's embedding"), BILSTM_OPTIONS, PART_CRF, {0}};

const network bilstm_tagger = {
    .name = "bilstm-tagger",
    .summary = "bidirectional LSTM that tags every word",
    .source = "Huang, Xu and Yu 2015, section 2.2",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TAGGING,
    .defaults = {.embed = 256, .hidden = 256, .layers = 1, .mlp = 256},
    .bytes = sizeof(bilstm_net),
    .build = bilstm_build,
    .add = add,
    .chain = part_crf_chain,
};
