/* lstm_nmt.c - an LSTM that reads a sentence and an LSTM that writes its translation: Sutskever, Vinyals and Le,
 * "Sequence to Sequence Learning with Neural Networks" (NeurIPS 2014), section 2. Both have --layers layers: each layer
 * of the decoder starts from the last (h, c) of the encoder's layer of that number. With --attention the decoder also
 * reads h_j of the encoder's last layer: Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine
 * Translation" (EMNLP 2015), section 3, global, score "dot". With --input-feeding (section 3.3) it has attention, too, and its
 * first layer reads the attentional vector of the preceding word. Equations: sequence.h for the LSTM, translate.c for the rest.
 *
 * The paper reads the source backwards; here it is read as it is given.
 *
 * Parameters, with V source words, C target words, e = embed, d = hidden, L = layers:
 *     V e + C e + 8 d (e + d + 1) + (L - 1) 8 d (2 d + 1) + C d + C; with attention 2 d^2 more; with
 *     input feeding, which has attention, 4 d^2 more than that.
 */
#include "translate.h"

typedef struct lstm_nmt_net {
    translate_net base;
    part_embedding source;
    part_stack encoder;
} lstm_nmt_net;

static vpps_status build(void *net, vpps_model *model) {
    lstm_nmt_net *n = net;
    const net_config *c = &n->base.base.config;
    PART_TRY(part_embedding_make(&n->source, c, model, "source", c->words, c->embed, "source"));
    PART_TRY(part_stack_make(&n->encoder, model, "encoder", "encoder", part_lstm_layers(c)));
    return translate_make(&n->base, model, part_lstm_layers(c));
}

static vpps_status encode(void *net, vpps_graph *g, const net_example *x, net_decoding *d) {
    lstm_nmt_net *n = net;
    const uint32_t n_words = x->sentence.n_words;
    vpps_vertex *at = part_reserve(n->base.base.scratch, (size_t)n_words + 1);
    if (!at) return VPPS_MEMORY;
    vpps_vertex last[NET_LAYERS];
    const vpps_vertex *top = &last[n->encoder.n - 1];
    part_stack_start(&n->encoder, g, last);
    at[0] = *top;
    for (uint32_t j = 0; j < n_words; j++) {
        part_stack_step(&n->encoder, g, last, part_embed(&n->source, g, x->sentence.words[j]));
        at[j + 1] = *top;
    }
    return translate_encoded(&n->base, g, at, n_words + 1, last, d);
}

static const option_row options[] = {
    PART_HIDDEN("Size of the LSTMs' states"),
    PART_EMBED("Size of a word's embedding"),
    PART_LAYERS("Layers of the encoder, and of the decoder"),
    PART_DROPOUT("Dropout on embeddings, between layers and before the output layer"),
    {"attention", NULL, "Let the decoder read the encoder's state at each word", OPTION_FLAG,
     offsetof(net_config, attention), 0, 0, true},
    {"input-feeding", NULL, "Attention, whose result the decoder reads at the next word, too", OPTION_FLAG,
     offsetof(net_config, input_feeding), 0, 0, true},
    {0},
};

const network lstm_nmt = {
    .name = "lstm-nmt",
    .summary = "LSTM translator, with attention if asked for",
    .source = "Sutskever, Vinyals and Le 2014; Luong, Pham and Manning 2015",
    .options = options,
    .embedding = "source",
    .kind = NET_PAIRS,
    .defaults = {.embed = 256, .hidden = 256, .layers = 1},
    .bytes = sizeof(lstm_nmt_net),
    .build = build,
    .add = translate_add,
    .encode = encode,
    .decode = translate_decode,
    .greedy = translate_greedy,
};
