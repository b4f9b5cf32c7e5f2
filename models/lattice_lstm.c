/* lattice_lstm.c - the lattice LSTM of Zhang and Yang, "Chinese NER Using Lattice LSTM" (ACL 2018), section 3.3: a tagger
 * that reads characters and, beside them, every word of a lexicon that some of them make.
 *
 * Character e stands at node e. If no word ends there, the character is an LSTM step, eq. (11), from the state
 * (h, c) of the preceding node with the character's embedding x:
 *     i, f, o = sigmoid(W x + U h + b)   u = tanh(W_u x + U_u h + b_u)   c' = i * u + f * c
 * A word from character b to character e has a cell of its own, without an output gate, eq. (13), from the state at its
 * first character, (h_b, c_b), with the word's embedding:
 *     i_w, f_w = sigmoid(W x_w + U h_b + b)   u_w = tanh(W_u x_w + U_u h_b + b_u)   c_w = i_w * u_w + f_w * c_b
 * and a gate, eq. (14), of how much the word counts at e:
 *     l_w = sigmoid(W_l x + U_l c_w + b_l)
 * Where words end, the character and the words share the new cell, eqs. (15) and (16); all products are elementwise:
 *     c'  = (exp(i) * u + sum over words of exp(l_w) * c_w) / (exp(i) + sum over words of exp(l_w))
 * Gates are below 1, so nothing overflows. Always h' = o * tanh(c').
 *
 * How the paper is read: eq. (15) has no forget gate, so f is used only where no word ends. The authors' program has 1 - i
 * instead of a forget gate for characters; eq. (11) is followed here.
 * Differences: one direction, left to right, where the paper joins two; without --crf a softmax for each tag; no
 * pretrained embeddings. ED-Batch (Chen et al. 2023) measures, also in one direction, a simpler network of this name: an
 * LSTM step for every arc, and states summed.
 *
 * Parameters, with A characters, V words, C classes, d = hidden, e = embed: (A + V) e + 8 d (e + d + 1) + C d + C; with a
 * hidden layer of m = mlp in the classifier, d m + m + C m + C instead of the last two. With --crf (crf.c), which the paper has,
 * C (C + 2) more.
 */
#include "sequence.h"

enum { I, F, O, U };          /* gates of a character, in part_recurrent's order */
enum { W_I, W_F, W_U, LINK }; /* a word's input gate, forget gate and new value; the gate between word and character */

typedef struct lattice_lstm_net {
    part_net base;
    part_embedding characters;
    vpps_param words;
    part_recurrent step; /* LSTM step of a character at which no word ends */
    part_gates word_gates;
    /* cells at a node where words end. character: reads the character; word: reads a word; join: combines the results */
    vpps_cell character, word, join;
} lattice_lstm_net;

/* ---------------------------------------------------------------- cells
 *
 * Where words end, the vertices of the character and of each word scatter exp(gate) and exp(gate) * cell state, and a vertex of one more
 * cell adds them up. */

static vpps_status scatter_share(vpps_graph *g, vpps_node gate, vpps_node cell) {
    vpps_node weight = vpps_exp(g, gate);
    const vpps_status s = vpps_scatter(g, weight);
    return s == VPPS_OK ? vpps_scatter(g, vpps_mul(g, weight, cell)) : s;
}

/* Records the cell of a character at which words end: eq. (11) of Zhang and Yang (2018) without the forget gate and the
 * preceding cell state. Its output gate goes to the cell that combines the character with the words (record_join). */
static vpps_status record_character(lattice_lstm_net *t, vpps_model *model) {
    const part_recurrent *p = &t->step;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "lattice-lstm character", &g));
    vpps_node h = vpps_gather(g, 0, 0, p->hidden, 1), x = vpps_pull(g, p->inputs, 1);

    vpps_node i = vpps_sigmoid(g, part_gate(&p->gates, g, I, x, h));
    vpps_node o = vpps_sigmoid(g, part_gate(&p->gates, g, O, x, h));
    vpps_node u = vpps_tanh(g, part_gate(&p->gates, g, U, x, h));

    scatter_share(g, i, u);
    vpps_scatter(g, o);
    return vpps_cell_end(g, &t->character);
}

/* Records the cell of a word, eqs. (13) and (14) of the paper. Child: the node where the word begins; x: the character where the word ends. */
static vpps_status record_word(lattice_lstm_net *t, vpps_model *model) {
    const net_config *config = &t->base.config;
    const uint32_t d = config->hidden;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "lattice-lstm word", &g));
    vpps_node h = vpps_gather(g, 0, 0, d, 1), c = vpps_gather(g, 0, 1, d, 1);
    vpps_node word = part_dropout(config, g, vpps_lookup(g, t->words, vpps_pull_index(g)));
    vpps_node x = vpps_pull(g, config->embed, 1);

    vpps_node i = vpps_sigmoid(g, part_gate(&t->word_gates, g, W_I, word, h));
    vpps_node f = vpps_sigmoid(g, part_gate(&t->word_gates, g, W_F, word, h));
    vpps_node u = vpps_tanh(g, part_gate(&t->word_gates, g, W_U, word, h));
    vpps_node c_w = vpps_add(g, vpps_mul(g, i, u), vpps_mul(g, f, c));
    vpps_node l = vpps_sigmoid(g, part_gate(&t->word_gates, g, LINK, x, c_w));

    scatter_share(g, l, c_w);
    return vpps_cell_end(g, &t->word);
}

/* Records the cell that joins a character and the words that end there (Zhang and Yang 2018, eqs. 15 and 16). Children: the character, then words. */
static vpps_status record_join(lattice_lstm_net *t, vpps_model *model) {
    const uint32_t d = t->base.config.hidden;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "lattice-lstm join", &g));
    const vpps_node weights = vpps_gather_list(g, 0, d, 1), cells = vpps_gather_list(g, 1, d, 1);
    vpps_node o = vpps_gather(g, 0, 2, d, 1);

    vpps_node c = vpps_div(g, vpps_sum(g, 1, &cells), vpps_sum(g, 1, &weights));

    vpps_scatter(g, vpps_mul(g, o, vpps_tanh(g, c)));
    vpps_scatter(g, c);
    return vpps_cell_end(g, &t->join);
}

static vpps_status build(void *net, vpps_model *model) {
    lattice_lstm_net *t = net;
    const net_config *c = &t->base.config;
    t->step = (part_recurrent){.unit = PART_LSTM, .inputs = c->embed, .hidden = c->hidden};
    PART_TRY(
        part_embedding_make(&t->characters, c, model, "characters", c->characters, c->embed, "lattice-lstm embedding"));
    PART_TRY(part_recurrent_make(&t->step, model, "char", "lattice-lstm step"));
    PART_TRY(vpps_add_lookup(model, &t->words, "words", c->words, c->embed, 1, &part_small));
    PART_TRY(part_gates_declare(&t->word_gates, model, "word", "iful", c->embed, c->hidden));
    PART_TRY(record_character(t, model));
    PART_TRY(record_word(t, model));
    PART_TRY(record_join(t, model));
    PART_TRY(part_classifier_make(&t->base.classifier, model, c, c->hidden, c->mlp));
    return part_crf_make(&t->base.crf, model, c);
}

/* ---------------------------------------------------------------- a lattice */

/* Adds the vertices (applications of cells) of node k; at[] has those of all earlier nodes. `shares` has room for a
 * vertex for each arc into node k: arc 0 is the character's, the others are words'. */
static vpps_vertex add_node(const lattice_lstm_net *t, vpps_graph *g, const vpps_lattice *lattice, uint32_t k,
                            const vpps_vertex *at, vpps_vertex *shares) {
    const vpps_lattice_arc *arcs = lattice->arcs + lattice->first_arc[k];
    const uint32_t n = lattice->first_arc[k + 1] - lattice->first_arc[k];
    const vpps_node x = part_embed(&t->characters, g, arcs[0].id);
    if (n == 1) return part_recurrent_step(&t->step, g, at[k - 1], x);

    shares[0] = vpps_apply(
        g, VPPS_APPLICATION(.cell = t->character, .n_children = 1, .children = &at[k - 1], .n_pulls = 1, .pulls = &x));
    /* arcs 1 to n - 1 are words of at least two characters, the first of which is at the node after arcs[a].from */
    for (uint32_t a = 1; a < n; a++) {
        shares[a] = vpps_apply(g, VPPS_APPLICATION(.cell = t->word, .n_children = 1, .children = &at[arcs[a].from + 1],
                                                   .n_pulls = 1, .pulls = &x, .n_indices = 1, .indices = &arcs[a].id));
    }
    return vpps_apply(g, VPPS_APPLICATION(.cell = t->join, .n_children = n, .children = shares));
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    lattice_lstm_net *t = net;
    const vpps_lattice *lattice = x->lattice;
    const uint32_t n = lattice->n_nodes;
    const net_heads asked = part_crf_heads(&t->base.crf, heads);
    vpps_vertex *at = part_reserve(t->base.scratch, (size_t)n + lattice->first_arc[n]);
    if (!at) return VPPS_MEMORY;

    at[0] = part_recurrent_start(&t->step, g);
    for (uint32_t k = 1; k < n; k++) {
        at[k] = add_node(t, g, lattice, k, at, at + n);
        const vpps_node h = vpps_scattered(g, at[k], 0);
        part_classify(&t->base.classifier, g, k - 1, &h, lattice->tags[k], asked, scores);
    }
    part_crf_add(&t->base.crf, g, n - 1, lattice->tags + 1, scores);
    return vpps_graph_status(g);
}

static const option_row options[] = {
    PART_HIDDEN("Size of a node's state"),
    PART_EMBED("Size of the embedding of a character or word"),
    {"mlp", "N", "Size of the classifier's hidden layer; 0: none", OPTION_U32, offsetof(net_config, mlp), 0, 65536,
     true},
    PART_DROPOUT("Dropout on embeddings and before the classifier"),
    PART_CRF,
    {0},
};

const network lattice_lstm = {
    .name = "lattice-lstm",
    .summary = "tagger; its LSTM reads lattices of a lexicon's words",
    .source = "Zhang and Yang 2018, section 3.3",
    .options = options,
    .embedding = "words",
    .kind = NET_LATTICES,
    .defaults = {.embed = 50, .hidden = 200}, /* the paper's sizes */
    .bytes = sizeof(lattice_lstm_net),
    .build = build,
    .add = add,
    .chain = part_crf_chain,
};
