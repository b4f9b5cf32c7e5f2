/* lattice_lstm.c - the lattice LSTM of Zhang and Yang, "Chinese NER Using Lattice LSTM" (ACL 2018), section 3.3: a tagger
 * that reads characters and, beside them, every word of a lexicon that some of them make.
 *
 * Character e stands at node e. Without a word that ends there it is an ordinary LSTM step, eq. (11), from the state
 * (h, c) of the preceding node with the character's embedding x:
 *     i, f, o = sigmoid(W x + U h + b)   u = tanh(W_u x + U_u h + b_u)   c' = i * u + f * c
 * A word from character b to character e has a cell of its own, without an output gate, eq. (13), from the state at its
 * first character, (h_b, c_b), with the word's embedding:
 *     i_w, f_w = sigmoid(W x_w + U h_b + b)   u_w = tanh(W_u x_w + U_u h_b + b_u)   c_w = i_w * u_w + f_w * c_b
 * and a gate, eq. (14), of how much it counts at e:
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
 * hidden layer of m = mlp in the classifier, d m + m + C m + C instead of the last two. With --crf (crf.h), which the paper has,
 * C (C + 2) more.
 */
#include "crf.h"
#include "sequence.h"

enum { I, F, O, U };          /* gates of a character, in part_recurrent's order */
enum { W_I, W_F, W_U, LINK }; /* gates of a word */

typedef struct lattice_lstm_net {
    part_net base;
    part_embedding characters;
    vpps_param words;
    part_recurrent step; /* LSTM step of a character at which no word ends */
    vpps_param W[4], U[4], b[4];
    /* cells at a node where words end. character: reads the character; word: reads a word; join: combines the results */
    vpps_cell character, word, join;
    part_crf crf;
} lattice_lstm_net;

/* ---------------------------------------------------------------- parameters */

static vpps_status declare(void *net, vpps_model *model) {
    lattice_lstm_net *t = net;
    const net_config *c = &t->base.config;
    const uint32_t d = c->hidden, e = c->embed;
    const part_parameter of_words[] = {
        {&t->words, "words", c->words, e, 1, &part_small}, {&t->W[W_I], "word.W_i", 0, d, e, NULL},
        {&t->U[W_I], "word.U_i", 0, d, d, NULL},           {&t->b[W_I], "word.b_i", 0, d, 0, NULL},
        {&t->W[W_F], "word.W_f", 0, d, e, NULL},           {&t->U[W_F], "word.U_f", 0, d, d, NULL},
        {&t->b[W_F], "word.b_f", 0, d, 0, &part_one},      {&t->W[W_U], "word.W_u", 0, d, e, NULL},
        {&t->U[W_U], "word.U_u", 0, d, d, NULL},           {&t->b[W_U], "word.b_u", 0, d, 0, NULL},
        {&t->W[LINK], "word.W_l", 0, d, e, NULL},          {&t->U[LINK], "word.U_l", 0, d, d, NULL},
        {&t->b[LINK], "word.b_l", 0, d, 0, NULL},
    };
    vpps_status s = part_embedding_declare(&t->characters, model, "characters", c->characters, e);
    if (s == VPPS_OK) s = part_recurrent_declare(&t->step, PART_LSTM, model, "char", e, d);
    if (s == VPPS_OK) s = parts_declare(model, of_words, sizeof of_words / sizeof *of_words);
    if (s == VPPS_OK) s = part_classifier_declare(&t->base.classifier, model, c, d, c->mlp);
    if (s == VPPS_OK) s = part_crf_declare(&t->crf, model, c);
    return s;
}

/* ---------------------------------------------------------------- cells
 *
 * Where words end, the vertices of the character and of each word scatter exp(gate) and exp(gate) * cell state, and a vertex of one more
 * cell adds them up. */

static vpps_status scatter_share(vpps_graph *g, vpps_node gate, vpps_node cell) {
    vpps_node weight = vpps_exp(g, gate);
    const vpps_status s = vpps_scatter(g, weight);
    return s == VPPS_OK ? vpps_scatter(g, vpps_mul(g, weight, cell)) : s;
}

/* Records the cell of a character at which words end: the paper's eq. (11) without the forget gate and the preceding cell state. The cell
 * `join` reads the output gate of this cell. */
static vpps_status record_character(lattice_lstm_net *t, vpps_model *model) {
    const part_recurrent *p = &t->step;
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, "lattice-lstm character", &g);
    if (s != VPPS_OK) return s;
    vpps_node h = vpps_gather(g, 0, 0, p->hidden, 1), x = vpps_pull(g, p->inputs, 1);

    vpps_node i = vpps_sigmoid(g, vpps_affine2(g, p->b[I], p->W[I], x, p->U[I], h));
    vpps_node o = vpps_sigmoid(g, vpps_affine2(g, p->b[O], p->W[O], x, p->U[O], h));
    vpps_node u = vpps_tanh(g, vpps_affine2(g, p->b[U], p->W[U], x, p->U[U], h));

    scatter_share(g, i, u);
    vpps_scatter(g, o);
    return vpps_cell_end(g, &t->character);
}

/* Records the cell of a word, eqs. (13) and (14) of the paper. Child: the node where the word begins; x: the character where the word ends. */
static vpps_status record_word(lattice_lstm_net *t, vpps_model *model) {
    const net_config *config = &t->base.config;
    const uint32_t d = config->hidden;
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, "lattice-lstm word", &g);
    if (s != VPPS_OK) return s;
    vpps_node h = vpps_gather(g, 0, 0, d, 1), c = vpps_gather(g, 0, 1, d, 1);
    vpps_node word = part_dropout(config, g, vpps_lookup(g, t->words, vpps_pull_index(g)));
    vpps_node x = vpps_pull(g, config->embed, 1);

    vpps_node i = vpps_sigmoid(g, vpps_affine2(g, t->b[W_I], t->W[W_I], word, t->U[W_I], h));
    vpps_node f = vpps_sigmoid(g, vpps_affine2(g, t->b[W_F], t->W[W_F], word, t->U[W_F], h));
    vpps_node u = vpps_tanh(g, vpps_affine2(g, t->b[W_U], t->W[W_U], word, t->U[W_U], h));
    vpps_node c_w = vpps_add(g, vpps_mul(g, i, u), vpps_mul(g, f, c));
    vpps_node l = vpps_sigmoid(g, vpps_affine2(g, t->b[LINK], t->W[LINK], x, t->U[LINK], c_w));

    scatter_share(g, l, c_w);
    return vpps_cell_end(g, &t->word);
}

/* Records the cell that joins a character and the words that end there, eqs. (15) and (16). Children: the character, then the words. */
static vpps_status record_join(lattice_lstm_net *t, vpps_model *model) {
    const uint32_t d = t->base.config.hidden;
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, "lattice-lstm join", &g);
    if (s != VPPS_OK) return s;
    const vpps_node weights = vpps_gather_list(g, 0, d, 1), cells = vpps_gather_list(g, 1, d, 1);
    vpps_node o = vpps_gather(g, 0, 2, d, 1);

    vpps_node c = vpps_div(g, vpps_sum(g, 1, &cells), vpps_sum(g, 1, &weights));

    vpps_scatter(g, vpps_mul(g, o, vpps_tanh(g, c)));
    vpps_scatter(g, c);
    return vpps_cell_end(g, &t->join);
}

static vpps_status record(void *net, vpps_model *model) {
    lattice_lstm_net *t = net;
    vpps_status s = part_embedding_record(&t->characters, &t->base.config, model, "lattice-lstm embedding");
    if (s == VPPS_OK) s = part_recurrent_record(&t->step, model, "lattice-lstm step");
    if (s == VPPS_OK) s = record_character(t, model);
    if (s == VPPS_OK) s = record_word(t, model);
    if (s == VPPS_OK) s = record_join(t, model);
    if (s == VPPS_OK) s = part_classifier_record(&t->base.classifier, model);
    if (s == VPPS_OK) s = part_crf_record(&t->crf, model);
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    return part_create(net, sizeof(lattice_lstm_net), model, config, declare, record);
}

/* ---------------------------------------------------------------- a lattice */

/* Adds node k after all earlier nodes, whose vertices are at[]. `shares` has room for a vertex for each arc into the node. */
static vpps_vertex add_node(const lattice_lstm_net *t, vpps_graph *g, const vpps_lattice *lattice, uint32_t k,
                            const vpps_vertex *at, vpps_vertex *shares) {
    const vpps_lattice_arc *arcs = lattice->arcs + lattice->first_arc[k];
    const uint32_t n = lattice->first_arc[k + 1] - lattice->first_arc[k];
    const vpps_node x = part_embed(&t->characters, g, arcs[0].id);
    if (n == 1) return part_recurrent_step(&t->step, g, at[k - 1], x);

    shares[0] = vpps_apply(
        g, VPPS_APPLICATION(.cell = t->character, .n_children = 1, .children = &at[k - 1], .n_pulls = 1, .pulls = &x));
    /* an arc starts one node before its word's first character; a word has at least two characters */
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
    const net_heads asked = part_crf_heads(&t->crf, heads);
    vpps_vertex *at = part_reserve_vertices(&t->base.scratch, n + lattice->first_arc[n]);
    if (!at) return VPPS_MEMORY;

    at[0] = part_recurrent_start(&t->step, g);
    for (uint32_t k = 1; k < n; k++) {
        at[k] = add_node(t, g, lattice, k, at, at + n);
        const vpps_node h = vpps_scattered(g, at[k], 0);
        part_classify(&t->base.classifier, g, k - 1, &h, lattice->tags[k], asked, scores);
    }
    part_crf_add(&t->crf, g, n - 1, lattice->tags + 1, scores);
    return vpps_graph_status(g);
}

static void chain(void *net, vpps_graph *g, vpps_node nodes[NET_CHAIN]) {
    const lattice_lstm_net *t = net;
    part_crf_chain(&t->crf, g, nodes);
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

extern const network lattice_lstm;
const network lattice_lstm = {
    .name = "lattice-lstm",
    .summary = "tagger; its LSTM reads lattices of a lexicon's words",
    .source = "Zhang and Yang 2018, section 3.3",
    .options = options,
    .embedding = "words",
    .kind = NET_LATTICES,
    .defaults = {.embed = 50, .hidden = 200}, /* the paper's sizes */
    .create = create,
    .add = add,
    .chain = chain,
    .destroy = part_destroy,
};
