/* bilstm_classifier.c - a bidirectional LSTM (Graves and Schmidhuber, "Framewise Phoneme Classification with
 * Bidirectional LSTM", 2005) that classifies whole sentences by the last states of both LSTMs, the baseline of Tai, Socher and
 * Manning, "Improved Semantic Representations From Tree-Structured Long Short-Term Memory Networks" (2015), table 2. As
 * an option, the classifier has a hidden layer.
 *
 * For the words w_1 .. w_n, with the embeddings E:
 *     x_k = D(E[w_k])                                             D: dropout
 *     (h_f(k), c_f(k)) = LSTM_f(x_k, h_f(k - 1), c_f(k - 1))      from left to right
 *     (h_b(k), c_b(k)) = LSTM_b(x_k, h_b(k + 1), c_b(k + 1))      from right to left
 *     s = tanh(W_h D([h_f(n); h_b(1)]) + b_h)                     with --mlp 0: s = [h_f(n); h_b(1)]
 *     p(label) = softmax(W_s D(s) + b_s)
 * With --layers, both LSTMs of each further layer read D([h_f(k); h_b(k)]) of the preceding layer; s reads the last layer.
 * Both LSTMs begin with zeros. Their equations are in sequence.h; each has weights of its own.
 *
 * Parameters, with V words, C classes, e = embed, d = hidden, m = mlp, L = layers:
 *     V e + 8 d (e + d + 1) + (L - 1) 8 d (3 d + 1) + m (2 d + 1) + C (m + 1);
 * without the hidden layer the last two terms are C (2 d + 1).
 */
#include "bilstm.h"

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    bilstm_net *n = net;
    const uint32_t n_words = x->sentence.n_words;
    PART_TRY(bilstm_embed(n, g, &x->sentence));
    bilstm_run(&n->sentence, g, n_words);
    const vpps_node h[] = {vpps_scattered(g, n->sentence.forward_at[n_words - 1], 0),
                           vpps_scattered(g, n->sentence.backward_at[0], 0)};
    part_classify(&n->base.classifier, g, 0, h, x->label, heads, scores);
    return vpps_graph_status(g);
}

static const option_row options[] = {PART_EMBED("Size of a word's embedding"), BILSTM_OPTIONS, {0}};

const network bilstm_classifier = {
    .name = "bilstm-classifier",
    .summary = "bidirectional LSTM that labels sentences",
    .source = "Graves and Schmidhuber 2005; Tai, Socher and Manning 2015, table 2",
    .options = options,
    .embedding = "embedding",
    .kind = NET_SENTENCES,
    .defaults = {.embed = 256, .hidden = 256, .layers = 1},
    .bytes = sizeof(bilstm_net),
    .build = bilstm_build,
    .add = add,
};
