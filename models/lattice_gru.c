/* lattice_gru.c - translation from a lattice of words: Su, Tan, Xiong, Ji, Shi and Liu, "Lattice-Based Recurrent Neural Network Encoders
 * for Neural Machine Translation" (AAAI 2017), the deep word-lattice GRU (DWL-GRU) with the gating operation. The source need not be
 * segmented into words: the arcs are several segmentations, and the encoder reads them all.
 *
 * Encoder. Every arc k into a node is a GRU step (sequence.h), with the same parameters, from the state of the node where
 * the arc begins with the embedding of its word or character. The states h_k of a node's arcs make the node's:
 *     g_k = sigmoid(U_g h_k + b_g)      h = sum_k g_k * h_k / sum_k g_k      (elementwise; of one arc it is h_1)
 * The paper's other encoders merge before the step (SWL-GRU) or merge by pooling.
 *
 * Decoder: translate.c with a GRU, which starts from the last node's state; attention reads the states of all nodes.
 *
 * Differences from the paper: the lattice has an arc for every character and for every word of the lexicon, where the paper's
 * has the words of three segmenters; the encoder reads from left to right only, where the paper joins two encoders; the
 * decoder's attention is simpler.
 *
 * Parameters, with A characters, V source words, C target words, e = embed, d = hidden:
 * (A + V + C) e + 6 d (e + d + 1) + 3 d^2 + d + C d + C.
 */
#include "translate.h"

typedef struct lattice_gru_net {
    translate_net base;
    part_embedding characters, words;
    part_recurrent encoder;
    vpps_param U_g, b_g;
    vpps_cell merge;
} lattice_gru_net;

/* Records the cell of a node. Its children are the arcs into the node, whose states it merges. */
static vpps_status record_merge(lattice_gru_net *t, vpps_model *model) {
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "lattice-gru merge", &g));
    vpps_node h = vpps_gather_list(g, 0, t->base.base.config.hidden, 1);

    vpps_node gate = vpps_sigmoid(g, vpps_affine1(g, t->b_g, t->U_g, h));
    vpps_node share = vpps_mul(g, gate, h);

    vpps_scatter(g, vpps_div(g, vpps_sum(g, 1, &share), vpps_sum(g, 1, &gate)));
    return vpps_cell_end(g, &t->merge);
}

static vpps_status build(void *net, vpps_model *model) {
    lattice_gru_net *t = net;
    const net_config *c = &t->base.base.config;
    const part_parameter gate[] = {
        {&t->U_g, "encoder.U_g", 0, c->hidden, c->hidden, NULL},
        {&t->b_g, "encoder.b_g", 0, c->hidden, 0, NULL},
    };
    const part_stack_shape decoder = {.unit = PART_GRU, .inputs = c->embed, .hidden = c->hidden};
    t->encoder = (part_recurrent){.unit = PART_GRU, .inputs = c->embed, .hidden = c->hidden};
    PART_TRY(part_embedding_make(&t->characters, c, model, "characters", c->characters, c->embed, "characters"));
    PART_TRY(part_embedding_make(&t->words, c, model, "words", c->words, c->embed, "words"));
    PART_TRY(part_recurrent_make(&t->encoder, model, "encoder", "lattice-gru step"));
    PART_TRY(parts_declare(model, gate, PART_COUNT(gate)));
    PART_TRY(record_merge(t, model));
    return translate_make(&t->base, model, decoder);
}

/* Adds node k after all earlier nodes, whose vertices are at[]. `steps` has room for the arcs into the node. */
static vpps_vertex add_node(const lattice_gru_net *t, vpps_graph *g, const vpps_lattice *lattice, uint32_t k,
                            const vpps_vertex *at, vpps_vertex *steps) {
    const vpps_lattice_arc *arcs = lattice->arcs + lattice->first_arc[k];
    const uint32_t n = lattice->first_arc[k + 1] - lattice->first_arc[k];
    for (uint32_t a = 0; a < n; a++) {
        const vpps_node x = part_embed(arcs[a].is_character ? &t->characters : &t->words, g, arcs[a].id);
        steps[a] = part_recurrent_step(&t->encoder, g, at[arcs[a].from], x);
    }
    return n == 1 ? steps[0] : vpps_apply(g, VPPS_APPLICATION(.cell = t->merge, .n_children = n, .children = steps));
}

static vpps_status encode(void *net, vpps_graph *g, const net_example *x, net_decoding *d) {
    lattice_gru_net *t = net;
    const vpps_lattice *lattice = x->lattice;
    const uint32_t n = lattice->n_nodes;
    vpps_vertex *at = part_reserve(t->base.base.scratch, (size_t)n + lattice->first_arc[n]);
    if (!at) return VPPS_MEMORY;

    at[0] = part_recurrent_start(&t->encoder, g);
    for (uint32_t k = 1; k < n; k++) at[k] = add_node(t, g, lattice, k, at, at + n);

    return translate_encoded(&t->base, g, at, n, &at[n - 1], d);
}

static const option_row options[] = {
    PART_HIDDEN("Size of the GRUs' states"),
    PART_EMBED("Size of the embedding of a character or word"),
    PART_DROPOUT("Dropout on embeddings and before the output layer"),
    {0},
};

const network lattice_gru = {
    .name = "lattice-gru",
    .summary = "translator; its GRU reads lattices of words",
    .source = "Su, Tan, Xiong, Ji, Shi and Liu 2017",
    .options = options,
    .embedding = "words",
    .kind = NET_LATTICE_PAIRS,
    .defaults = {.embed = 256, .hidden = 256, .attention = true},
    .bytes = sizeof(lattice_gru_net),
    .build = build,
    .add = translate_add,
    .encode = encode,
    .decode = translate_decode,
    .greedy = translate_greedy,
};
