/* lstm_lm.c - an LSTM language model on whole sentences, however long: the Var-LSTM of Xu et al., "Cavs: An Efficient
 * Runtime System for Dynamic Neural Networks" (USENIX ATC 2018), section 5. The network is that of Zaremba, Sutskever
 * and Vinyals, "Recurrent Neural Network Regularization" (2014), section 3: dropout is on the connections that are not
 * recurrent.
 *
 *     x_t = D(embedding of w_t)      h_t, c_t = LSTM(x_t, h_t-1, c_t-1)   h_-1 = c_-1 = 0    (sequence.h)
 *     p(w_t+1 | w_0 .. w_t) = softmax(W_s D(h_t) + b_s)                   D: dropout
 * With --layers, each further LSTM reads D(h_t) of the preceding one; h_t in p is the last one's.
 *
 * lstm-lm-fixed is the same network on pieces of text that are all equally long, the Fixed-LSTM of Xu et al., which has 64 steps. The text is
 * one sequence, cut into pieces. Each piece starts from zero, or with --carry from the state at the end of the preceding piece, as in
 * Zaremba, Sutskever and Vinyals (2014), section 4.1.
 *
 * Parameters, with V words, C classes (the words again), e = embed, d = hidden, L = layers:
 *     V e + 4 d (e + d + 1) + (L - 1) 4 d (2 d + 1) + C d + C.
 */
#include "sequence.h"

typedef struct lstm_lm_net {
    part_net base;
    part_embedding embedding;
    part_stack lstm;
} lstm_lm_net;

static vpps_status build(void *net, vpps_model *model) {
    lstm_lm_net *n = net;
    const net_config *c = &n->base.config;
    PART_TRY(part_embedding_make(&n->embedding, c, model, "embedding", c->words, c->embed, "embedding"));
    PART_TRY(part_stack_make(&n->lstm, model, "lstm", "lstm", part_lstm_layers(c)));
    return part_classifier_make(&n->base.classifier, model, c, c->hidden, 0);
}

/* Starts the LSTMs from the states in d, or from zeros if d is NULL or has no states. */
static void begin(const lstm_lm_net *n, vpps_graph *g, const net_decoding *d, vpps_vertex *at) {
    if (d && d->n_states) {
        part_stack_resume(&n->lstm, g, d->states, at);
    } else {
        part_stack_start(&n->lstm, g, at);
    }
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    const lstm_lm_net *n = net;
    const vpps_sentence *words = &x->sentence;
    vpps_vertex at[NET_LAYERS];
    begin(n, g, scores->carry, at);
    for (uint32_t t = 0; t + 1 < words->n_words; t++) {
        const vpps_node h = part_stack_step(&n->lstm, g, at, part_embed(&n->embedding, g, words->words[t]));
        part_classify(&n->base.classifier, g, t, &h, words->words[t + 1], heads, scores);
    }
    if (scores->carry) part_stack_keep(&n->lstm, g, at, scores->carry);
    return vpps_graph_status(g);
}

/* A step of decoding; the first step if d has no states. */
static vpps_status decode(void *net, vpps_graph *g, uint32_t word, net_decoding *d) {
    const lstm_lm_net *n = net;
    vpps_vertex at[NET_LAYERS];
    vpps_node nll;
    begin(n, g, d, at);
    const vpps_node h = part_stack_step(&n->lstm, g, at, part_embed(&n->embedding, g, word));
    part_classify(&n->base.classifier, g, 0, &h, VPPS_NO_WORD, NET_HEADS_ALL,
                  &(net_scores){.logits = &d->logits, .nll = &nll});
    part_stack_keep(&n->lstm, g, at, d);
    return vpps_graph_status(g);
}

#define LSTM_LM_OPTIONS                                                                                                \
    PART_HIDDEN("Size of the LSTM's states"), PART_EMBED("Size of a word's embedding"),                                \
        PART_LAYERS("Layers of LSTMs, each reads the one below"),                                                      \
        PART_DROPOUT("Dropout on embeddings, between layers and before the output layer")

static const option_row options[] = {LSTM_LM_OPTIONS, {0}};
static const option_row fixed_options[] = {
    LSTM_LM_OPTIONS,
    {"steps", "N", "Words of an example", OPTION_U32, offsetof(net_config, steps), 1, 65536, true},
    {"carry", NULL, "Let a piece of text begin with the states that the piece before it has left", OPTION_FLAG,
     offsetof(net_config, carry), 0, 0, false},
    {0},
};

const network lstm_lm = {
    .name = "lstm-lm",
    .summary = "LSTM language model, a sentence an example",
    .source = "Zaremba, Sutskever and Vinyals 2014, section 3; Xu et al. 2018 (Var-LSTM)",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TEXT,
    .defaults = {.embed = 256, .hidden = 256, .layers = 1},
    .bytes = sizeof(lstm_lm_net),
    .build = build,
    .add = add,
    .decode = decode,
};
const network lstm_lm_fixed = {
    .name = "lstm-lm-fixed",
    .summary = "LSTM language model, pieces of equal length",
    .source = "Zaremba, Sutskever and Vinyals 2014, section 3; Xu et al. 2018 (Fixed-LSTM)",
    .options = fixed_options,
    .embedding = "embedding",
    .kind = NET_TEXT,
    .defaults = {.embed = 256, .hidden = 256, .layers = 1, .steps = 64},
    .bytes = sizeof(lstm_lm_net),
    .build = build,
    .add = add,
    .decode = decode,
};
