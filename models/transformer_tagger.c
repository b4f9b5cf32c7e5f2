/* transformer_tagger.c - the encoder of Vaswani et al., "Attention Is All You Need" (NeurIPS 2017), section 3, that tags every word of a
 * sentence of any length. Its layers normalise their inputs, not their outputs (Xiong et al., "On Layer Normalization in the Transformer
 * Architecture", ICML 2020, figure 1 b), and have GELU (Hendrycks and Gimpel 2016) in the place of ReLU.
 *
 * For the words w_1 .. w_n, with the embeddings E; D is dropout, norm(x) = gain * (x - mean(x)) / sqrt(variance(x) + 1e-5) + bias:
 *     p_k[2i] = sin(k / 10000^(2i / d))   p_k[2i + 1] = cos(k / 10000^(2i / d))      with k from 0
 *     x_k = D(sqrt(d) E[w_k] + p_k)
 * Layer by layer, with H heads of s = ceil(d / H) elements:
 *     z   = norm_1(x_k)      q_k = W_q z + b_q      k_k = W_k z      v_k = W_v z + b_v
 *     a_j = exp(q_k . k_j / sqrt(s)) / sum_i exp(q_k . k_i / sqrt(s))                for each head, of its rows of q and k
 *     y   = x_k + D(W_o [sum_j a_j v_j of each head] + b_o)
 *     x_k = y + D(W_2 D(gelu(W_1 norm_2(y) + b_1)) + b_2)
 * And of the last layer's x_k:
 *     p(tag of w_k) = softmax(W_s D(norm(x_k)) + b_s)
 * The keys have no bias, since a bias would not change the softmax.
 *
 * A word is a vertex of each layer. It reads its own x and q, and the list of k and v of all words.
 *
 * Parameters, with V words, C classes, d = hidden, f = feed-forward (4 d where it is 0), r = H s, L = layers:
 *     V d + L (4 r d + 2 r + d + 2 f d + f + d + 4 d) + 2 d + C (d + 1); with --crf (crf.c) C (C + 2) more.
 */
#include "parts.h"

#include <math.h>
#include <string.h>

typedef struct norm {
    vpps_param gain, bias;
} norm;

typedef struct layer {
    norm attention, feed;
    vpps_param W_q, b_q, W_k, W_v, b_v, W_o, b_o, W_1, b_1, W_2, b_2;
    /* The cell of a word. Children: the word, then all words, in the preceding layer. It and they output x, q, k, v. */
    vpps_cell cell;
} layer;

typedef struct transformer_net {
    part_net base;
    uint32_t n_layers, head; /* number of layers; number of elements of an attention head */
    vpps_param embedding;
    layer layers[NET_LAYERS];
    norm last;
    vpps_cell word;       /* a word's cell before the first layer; input: its position's vector; outputs: x, q, k, v */
    uint32_t n_positions; /* number of position vectors that base.scratch[1] (working memory) has so far */
} transformer_net;

/* Numbers of a word's outputs: the vector x, the query q, then the key k and value v of each head. The cells of all layers number their
 * outputs alike; therefore one cell can read the outputs of any layer. */
enum { X, Q, HEADS };
static uint32_t key_of(uint32_t head) { return HEADS + 2 * head; }
static uint32_t value_of(uint32_t head) { return HEADS + 2 * head + 1; }

/* ---------------------------------------------------------------- parameters */

static vpps_status declare_layer(layer *l, vpps_model *model, uint32_t number, uint32_t d, uint32_t r, uint32_t f) {
    const part_parameter parameters[] = {
        {&l->attention.gain, "gain_1", 0, d, 0, &part_one},
        {&l->attention.bias, "bias_1", 0, d, 0, NULL},
        {&l->W_q, "W_q", 0, r, d, NULL},
        {&l->b_q, "b_q", 0, r, 0, NULL},
        {&l->W_k, "W_k", 0, r, d, NULL},
        {&l->W_v, "W_v", 0, r, d, NULL},
        {&l->b_v, "b_v", 0, r, 0, NULL},
        {&l->W_o, "W_o", 0, d, r, NULL},
        {&l->b_o, "b_o", 0, d, 0, NULL},
        {&l->feed.gain, "gain_2", 0, d, 0, &part_one},
        {&l->feed.bias, "bias_2", 0, d, 0, NULL},
        {&l->W_1, "W_1", 0, f, d, NULL},
        {&l->b_1, "b_1", 0, f, 0, NULL},
        {&l->W_2, "W_2", 0, d, f, NULL},
        {&l->b_2, "b_2", 0, d, 0, NULL},
    };
    return parts_declare_layer(model, "layer", number, parameters, PART_COUNT(parameters));
}

/* ---------------------------------------------------------------- cells */

static vpps_node normalise(vpps_graph *g, const norm *n, vpps_node x) {
    return vpps_layer_norm(g, x, vpps_parameter(g, n->gain), vpps_parameter(g, n->bias), 1e-5f);
}

static void scatter_word(const transformer_net *t, vpps_graph *g, const layer *l, vpps_node x) {
    const vpps_node z = normalise(g, &l->attention, x);
    const vpps_node q = vpps_affine1(g, l->b_q, l->W_q, z), k = vpps_matvec(g, l->W_k, z);
    const vpps_node v = vpps_affine1(g, l->b_v, l->W_v, z);
    vpps_scatter(g, x);
    vpps_scatter(g, vpps_scale(g, q, 1 / sqrtf((float)t->head)));
    for (uint32_t h = 0; h < t->base.config.heads; h++) { /* k and v of head h: outputs key_of(h), and the next one */
        vpps_scatter(g, vpps_slice(g, k, h * t->head, t->head));
        vpps_scatter(g, vpps_slice(g, v, h * t->head, t->head));
    }
}

static vpps_status record_word(transformer_net *t, vpps_model *model) {
    const uint32_t d = t->base.config.hidden;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "transformer-tagger word", &g));
    const vpps_node e = vpps_lookup(g, t->embedding, vpps_pull_index(g)), p = vpps_pull(g, d, 1);
    const vpps_node x = vpps_add(g, vpps_scale(g, e, sqrtf((float)d)), p);
    scatter_word(t, g, t->layers, part_dropout(&t->base.config, g, x));
    return vpps_cell_end(g, &t->word);
}

/* Records attention over all words, and returns the weighted sums of v of all heads, stacked. */
static vpps_node attend(const transformer_net *t, vpps_graph *g, vpps_node q) {
    vpps_node sums[PART_MOST_HEADS];
    for (uint32_t h = 0; h < t->base.config.heads; h++) {
        const vpps_node k = vpps_gather_list_from(g, 1, key_of(h), t->head, 1);
        const vpps_node v = vpps_gather_list_from(g, 1, value_of(h), t->head, 1);
        const vpps_node a = vpps_softmax_list(g, vpps_dot(g, k, vpps_slice(g, q, h * t->head, t->head)));
        sums[h] = vpps_weighted_sum_list(g, a, v);
    }
    return vpps_concat(g, t->base.config.heads, sums);
}

static vpps_status record_layer(transformer_net *t, vpps_model *model, uint32_t number) {
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, r = c->heads * t->head;
    layer *l = &t->layers[number];
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "transformer-tagger layer", &g));
    const vpps_node x = vpps_gather(g, 0, X, d, 1), q = vpps_gather(g, 0, Q, r, 1);
    const vpps_node a = vpps_affine1(g, l->b_o, l->W_o, attend(t, g, q));
    const vpps_node y = vpps_add(g, x, part_dropout(c, g, a));
    const vpps_node z = vpps_gelu_erf(g, vpps_affine1(g, l->b_1, l->W_1, normalise(g, &l->feed, y)));
    const vpps_node f = vpps_affine1(g, l->b_2, l->W_2, part_dropout(c, g, z));
    const vpps_node above = vpps_add(g, y, part_dropout(c, g, f));
    if (number + 1 < t->n_layers) {
        scatter_word(t, g, l + 1, above);
    } else {
        vpps_scatter(g, normalise(g, &t->last, above));
    }
    return vpps_cell_end(g, &l->cell);
}

static vpps_status build(void *net, vpps_model *model) {
    transformer_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, f = c->feed_forward ? c->feed_forward : 4 * d;
    const part_parameter last[] = {
        {&t->last.gain, "gain", 0, d, 0, &part_one},
        {&t->last.bias, "bias", 0, d, 0, NULL},
    };
    t->n_layers = c->layers ? c->layers : 1;
    if (t->n_layers > NET_LAYERS || !c->heads || c->heads > PART_MOST_HEADS) return VPPS_ARGUMENT;
    t->head = (d + c->heads - 1) / c->heads;
    PART_TRY(vpps_add_lookup(model, &t->embedding, "embedding", c->words, d, 1, &part_small));
    for (uint32_t l = 0; l < t->n_layers; l++)
        PART_TRY(declare_layer(&t->layers[l], model, l, d, c->heads * t->head, f));
    PART_TRY(parts_declare(model, last, PART_COUNT(last)));
    PART_TRY(record_word(t, model));
    for (uint32_t l = 0; l < t->n_layers; l++) PART_TRY(record_layer(t, model, l));
    PART_TRY(part_classifier_make(&t->base.classifier, model, c, d, 0));
    return part_crf_make(&t->base.crf, model, c);
}

/* ---------------------------------------------------------------- a sentence */

/* Returns the position vectors p_k of the first n words for all sentences, NULL when out of memory. */
static const float *positions_of(transformer_net *t, uint32_t n) {
    const uint32_t d = t->base.config.hidden;
    float *positions = part_reserve(&t->base.scratch[1], (size_t)n * d);
    for (uint32_t k = t->n_positions; positions && k < n; k++, t->n_positions++) {
        for (uint32_t i = 0; i < d; i++) {
            const double angle = k / pow(10000, (double)(i - i % 2) / d);
            positions[(size_t)k * d + i] = (float)(i % 2 ? cos(angle) : sin(angle));
        }
    }
    return positions;
}

/* Adds a layer over n words, and replaces the preceding layer's vertices at[] by the new ones. `children` has room for n + 1 vertices. */
static void add_layer(const layer *l, vpps_graph *g, uint32_t n, vpps_vertex *at, vpps_vertex *children) {
    memcpy(children + 1, at, n * sizeof *at);
    for (uint32_t k = 0; k < n; k++) {
        children[0] = children[k + 1];
        at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = l->cell, .n_children = n + 1, .children = children));
    }
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    transformer_net *t = net;
    const vpps_sentence *s = &x->sentence;
    const uint32_t n = s->n_words;
    const float *positions = positions_of(t, n);
    vpps_vertex *at = part_reserve(t->base.scratch, 2 * (size_t)n + 1);
    if (!at || !positions) return VPPS_MEMORY;
    const vpps_node first = vpps_input_many(g, n, t->base.config.hidden, 1, positions);
    for (uint32_t k = 0; k < n; k++) {
        const vpps_node position = first + k;
        at[k] = vpps_apply(g, VPPS_APPLICATION(.cell = t->word, .n_pulls = 1, .pulls = &position, .n_indices = 1,
                                               .indices = &s->words[k]));
    }
    for (uint32_t l = 0; l < t->n_layers; l++) add_layer(&t->layers[l], g, n, at, at + n);
    return part_classify_words(&t->base, g, n, at, NULL, s->tags, heads, scores);
}

static const option_row options[] = {
    PART_HIDDEN("Size of a word's embedding and of its state"),
    PART_LAYERS("Layers of attention and feed-forward"),
    PART_HEADS,
    {"feed-forward", "N", "Units of the feed-forward layers; 0: 4 times the state's size", OPTION_U32,
     offsetof(net_config, feed_forward), 0, 4 * PART_MOST_HIDDEN, true},
    PART_DROPOUT(
        "Dropout on embeddings, on what attention and feed-forward add, within feed-forward and before the classifier"),
    PART_CRF,
    {0},
};

const network transformer_tagger = {
    .name = "transformer-tagger",
    .summary = "transformer encoder that tags every word",
    .source = "Vaswani et al. 2017, section 3; Xiong et al. 2020",
    .options = options,
    .embedding = "embedding",
    .kind = NET_TAGGING,
    .defaults = {.hidden = 256, .layers = 1, .heads = 4},
    .bytes = sizeof(transformer_net),
    .build = build,
    .add = add,
    .chain = part_crf_chain,
};
