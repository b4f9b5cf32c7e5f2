/* lstm_nmt.c - an LSTM that reads a sentence and an LSTM that writes its translation: Sutskever, Vinyals and Le,
 * "Sequence to Sequence Learning with Neural Networks" (NeurIPS 2014), section 2, with one layer each. The decoder
 * starts from the encoder's last (h, c). With --attention it also reads the encoder's h_j: Luong, Pham and Manning,
 * "Effective Approaches to Attention-based Neural Machine Translation" (EMNLP 2015), section 3, global, score "dot".
 * Equations: sequence.h for the LSTM, translate.c for the rest.
 *
 * The paper reads the source backwards; here it is read as it is given.
 *
 * Parameters, with V source words, C target words, e = embed, d = hidden: V e + C e + 8 d (e + d + 1) + C d + C;
 * with attention 2 d^2 more.
 */
#include "translate.h"

typedef struct lstm_nmt_net {
    translate_net base;
    part_embedding source;
    part_recurrent encoder;
} lstm_nmt_net;

static vpps_status declare(void *net, vpps_model *model) {
    lstm_nmt_net *n = net;
    const net_config *c = &n->base.base.config;
    vpps_status s = part_embedding_declare(&n->source, model, "source", c->words, c->embed);
    if (s == VPPS_OK) s = part_recurrent_declare(&n->encoder, PART_LSTM, model, "encoder", c->embed, c->hidden);
    if (s == VPPS_OK) s = translate_declare(&n->base, model, PART_LSTM);
    return s;
}

static vpps_status record(void *net, vpps_model *model) {
    lstm_nmt_net *n = net;
    vpps_status s = part_embedding_record(&n->source, &n->base.base.config, model, "source");
    if (s == VPPS_OK) s = part_recurrent_record(&n->encoder, model, "encoder");
    if (s == VPPS_OK) s = translate_record(&n->base, model);
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(lstm_nmt_net), model, config, declare, record);
}

static vpps_status encode(void *net, vpps_graph *g, const net_example *x, net_decoding *d) {
    lstm_nmt_net *n = net;
    const uint32_t n_words = x->sentence.n_words;
    vpps_vertex *at = part_reserve_vertices(&n->base.base.scratch, n_words + 1);
    if (!at) return VPPS_MEMORY;
    at[0] = part_recurrent_start(&n->encoder, g);
    for (uint32_t j = 0; j < n_words; j++) {
        at[j + 1] = part_recurrent_step(&n->encoder, g, at[j], part_embed(&n->source, g, x->sentence.words[j]));
    }
    return translate_encoded(&n->base, g, at, n_words + 1, d);
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    return translate_add(net, g, x, encode, heads, scores);
}

static const option_row options[] = {
    PART_HIDDEN("Size of the LSTMs' states"),
    PART_EMBED("Size of a word's embedding"),
    PART_DROPOUT("Dropout on embeddings and before the output layer"),
    {"attention", NULL, "Let the decoder read the encoder's state at each word", OPTION_FLAG,
     offsetof(net_config, attention), 0, 0, true},
    {0},
};

extern const network lstm_nmt;
const network lstm_nmt = {
    .name = "lstm-nmt",
    .summary = "LSTM encoder and decoder that translate, with attention if asked for",
    .source = "Sutskever, Vinyals and Le 2014; Luong, Pham and Manning 2015",
    .options = options,
    .embedding = "source",
    .kind = NET_PAIRS,
    .defaults = {.embed = 256, .hidden = 256},
    .create = create,
    .add = add,
    .encode = encode,
    .decode = translate_decode,
    .greedy = translate_greedy,
    .destroy = translate_destroy,
};
