/* tree_lstm.c - the binary N-ary Tree-LSTM of Tai, Socher and Manning, "Improved Semantic Representations From
 * Tree-Structured Long Short-Term Memory Networks" (ACL 2015), section 3.2 with N = 2, and the classifier of
 * section 4.1.
 *
 * Equations 9 to 14 add W x (the word) to U h (the children). In a binarised constituency tree only leaves have a
 * word and only inner vertices have children, so each kind of vertex keeps the half that is not zero: 3 matrix
 * products at a leaf, 10 at an inner vertex. Both halves share the biases.
 */
#include "models.h"

#include <stdlib.h>

typedef struct tree_lstm_net {
    net_config config;
    vpps_param embedding;
    vpps_param W_i, W_o, W_u;                  /* hidden x embed: the leaf's word */
    vpps_param U_i_l, U_i_r, U_o_l, U_o_r;     /* hidden x hidden: gate, child */
    vpps_param U_f_ll, U_f_lr, U_f_rl, U_f_rr; /* gate of child k, child l: U_kl of eq. 10 */
    vpps_param U_u_l, U_u_r;
    vpps_param b_i, b_o, b_f, b_u; /* hidden; eq. 10 has one b_f for both children */
    vpps_param W_s, b_s;           /* classes x hidden, classes: section 4.1 */
    vpps_cell leaf, inner, head;
    vpps_vertex *vertices; /* scratch: the vertex of every tree node */
    uint32_t n_vertices;
} tree_lstm_net;

/* ---------------------------------------------------------------- parameters */

static vpps_status declare(tree_lstm_net *t, vpps_model *model) {
    const uint32_t d = t->config.hidden, e = t->config.embed, classes = t->config.classes;
    const vpps_init small = {.kind = VPPS_INIT_UNIFORM, .a = -0.05f, .b = 0.05f};
    /* The paper does not say how biases begin. An open forget gate at the start of training is the usual choice for
     * LSTMs (Jozefowicz, Zaremba and Sutskever 2015) and is taken here. */
    const vpps_init one = {.kind = VPPS_INIT_CONSTANT, .a = 1.0f};

    const struct {
        vpps_param *param;
        const char *name;
        uint32_t rows, cols;
    } matrices[] = {
        {&t->W_i, "W_i", d, e},       {&t->W_o, "W_o", d, e},       {&t->W_u, "W_u", d, e},
        {&t->U_i_l, "U_i_l", d, d},   {&t->U_i_r, "U_i_r", d, d},   {&t->U_o_l, "U_o_l", d, d},
        {&t->U_o_r, "U_o_r", d, d},   {&t->U_f_ll, "U_f_ll", d, d}, {&t->U_f_lr, "U_f_lr", d, d},
        {&t->U_f_rl, "U_f_rl", d, d}, {&t->U_f_rr, "U_f_rr", d, d}, {&t->U_u_l, "U_u_l", d, d},
        {&t->U_u_r, "U_u_r", d, d},   {&t->W_s, "W_s", classes, d},
    };
    const struct {
        vpps_param *param;
        const char *name;
        uint32_t rows;
        const vpps_init *init;
    } vectors[] = {
        {&t->b_i, "b_i", d, NULL}, {&t->b_o, "b_o", d, NULL},       {&t->b_f, "b_f", d, &one},
        {&t->b_u, "b_u", d, NULL}, {&t->b_s, "b_s", classes, NULL},
    };

    vpps_status s = vpps_add_lookup(model, &t->embedding, "embedding", t->config.words, e, 1, &small);
    for (size_t i = 0; s == VPPS_OK && i < sizeof matrices / sizeof *matrices; i++) {
        s = vpps_add_matrix(model, matrices[i].param, matrices[i].name, matrices[i].rows, matrices[i].cols, NULL);
    }
    for (size_t i = 0; s == VPPS_OK && i < sizeof vectors / sizeof *vectors; i++) {
        s = vpps_add_vector(model, vectors[i].param, vectors[i].name, vectors[i].rows, vectors[i].init);
    }
    return s;
}

static vpps_status create(void **net, vpps_model *model, const net_config *config) {
    tree_lstm_net *t = calloc(1, sizeof *t);
    if (!t) return VPPS_MEMORY;
    t->config = *config;
    vpps_status s = declare(t, model);
    if (s != VPPS_OK) {
        free(t);
        return s;
    }
    *net = t;
    return VPPS_OK;
}

static void destroy(void *net) {
    tree_lstm_net *t = net;
    if (!t) return;
    free(t->vertices);
    free(t);
}

/* ---------------------------------------------------------------- cells */

static vpps_node dropout(const tree_lstm_net *t, vpps_graph *g, vpps_node x) {
    return t->config.dropout > 0 ? vpps_dropout(g, x, t->config.dropout) : x;
}

/* A word at a leaf: eqs. 9 to 14 without children, so there is nothing to forget. */
static vpps_status record_leaf(tree_lstm_net *t, vpps_graph *g) {
    vpps_status s = vpps_cell_begin(g, "tree-lstm leaf");
    if (s != VPPS_OK) return s;
    vpps_node x = dropout(t, g, vpps_lookup(g, t->embedding, vpps_pull_index(g)));

    vpps_node i = vpps_sigmoid(g, vpps_affine1(g, t->b_i, t->W_i, x)); /*  (9) i = sigmoid(W_i x + b_i) */
    vpps_node o = vpps_sigmoid(g, vpps_affine1(g, t->b_o, t->W_o, x)); /* (11) o = sigmoid(W_o x + b_o) */
    vpps_node u = vpps_tanh(g, vpps_affine1(g, t->b_u, t->W_u, x));    /* (12) u = tanh(W_u x + b_u)    */
    vpps_node c = vpps_mul(g, i, u);                                   /* (13) c = i * u                */
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c));                     /* (14) h = o * tanh(c)          */

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    return vpps_cell_end(g, &t->leaf);
}

/* Two children l and r: eqs. 9 to 14 without a word. */
static vpps_status record_inner(tree_lstm_net *t, vpps_graph *g) {
    const uint32_t d = t->config.hidden;
    vpps_status s = vpps_cell_begin(g, "tree-lstm inner");
    if (s != VPPS_OK) return s;
    vpps_node h_l = vpps_gather(g, 0, 0, d, 1), c_l = vpps_gather(g, 0, 1, d, 1);
    vpps_node h_r = vpps_gather(g, 1, 0, d, 1), c_r = vpps_gather(g, 1, 1, d, 1);

    /*  (9) i   = sigmoid(U_i_l h_l  + U_i_r h_r  + b_i)
     * (11) o   = sigmoid(U_o_l h_l  + U_o_r h_r  + b_o)
     * (10) f_l = sigmoid(U_f_ll h_l + U_f_lr h_r + b_f)
     *      f_r = sigmoid(U_f_rl h_l + U_f_rr h_r + b_f)
     * (12) u   = tanh(U_u_l h_l     + U_u_r h_r  + b_u) */
    vpps_node i = vpps_sigmoid(g, vpps_affine2(g, t->b_i, t->U_i_l, h_l, t->U_i_r, h_r));
    vpps_node o = vpps_sigmoid(g, vpps_affine2(g, t->b_o, t->U_o_l, h_l, t->U_o_r, h_r));
    vpps_node f_l = vpps_sigmoid(g, vpps_affine2(g, t->b_f, t->U_f_ll, h_l, t->U_f_lr, h_r));
    vpps_node f_r = vpps_sigmoid(g, vpps_affine2(g, t->b_f, t->U_f_rl, h_l, t->U_f_rr, h_r));
    vpps_node u = vpps_tanh(g, vpps_affine2(g, t->b_u, t->U_u_l, h_l, t->U_u_r, h_r));

    /* (13) c = i * u + f_l * c_l + f_r * c_r */
    const vpps_node products[] = {vpps_mul(g, i, u), vpps_mul(g, f_l, c_l), vpps_mul(g, f_r, c_r)};
    vpps_node c = vpps_sum(g, 3, products);
    vpps_node h = vpps_mul(g, o, vpps_tanh(g, c)); /* (14) h = o * tanh(c) */

    vpps_scatter(g, h);
    vpps_scatter(g, c);
    return vpps_cell_end(g, &t->inner);
}

/* Section 4.1: p(y | tree node) = softmax(W_s h + b_s), and the loss is -log p(label). */
static vpps_status record_head(tree_lstm_net *t, vpps_graph *g) {
    vpps_status s = vpps_cell_begin(g, "classifier");
    if (s != VPPS_OK) return s;
    vpps_node h = dropout(t, g, vpps_pull(g, t->config.hidden, 1));
    uint32_t label = vpps_pull_index(g);

    vpps_node logits = vpps_affine1(g, t->b_s, t->W_s, h);
    vpps_push(g, logits);
    vpps_push(g, vpps_pick_nll(g, logits, label));
    return vpps_cell_end(g, &t->head);
}

static vpps_status record(void *net, vpps_graph *g) {
    tree_lstm_net *t = net;
    vpps_status s = record_leaf(t, g);
    if (s == VPPS_OK) s = record_inner(t, g);
    if (s == VPPS_OK) s = record_head(t, g);
    return s;
}

/* ---------------------------------------------------------------- a tree */

static vpps_status add_tree(void *net, vpps_graph *g, const vpps_tree *tree, const uint32_t *words, net_heads heads,
                            const net_scores *scores) {
    tree_lstm_net *t = net;
    if (tree->n_nodes > t->n_vertices) {
        vpps_vertex *grown = realloc(t->vertices, tree->n_nodes * sizeof *grown);
        if (!grown) return VPPS_MEMORY;
        t->vertices = grown;
        t->n_vertices = tree->n_nodes;
    }
    for (uint32_t k = 0; k < tree->n_nodes; k++) { /* children come before parents */
        const vpps_tree_node *node = &tree->nodes[k];
        if (node->left < 0) {
            t->vertices[k] = vpps_apply(g, t->leaf, 0, NULL, 0, NULL, 1, &words[node->word]);
        } else {
            const vpps_vertex children[] = {t->vertices[node->left], t->vertices[node->right]};
            t->vertices[k] = vpps_apply(g, t->inner, 2, children, 0, NULL, 0, NULL);
        }

        scores->logits[k] = scores->nll[k] = VPPS_NO_NODE;
        /* A label the classifier does not know (other data than the training's) counts as none. */
        const bool labelled = node->label >= 0 && (uint32_t)node->label < t->config.classes;
        const bool is_root = k + 1 == tree->n_nodes;
        if (heads == NET_HEADS_ALL || (labelled && (is_root || heads == NET_HEADS_LABELLED))) {
            const vpps_node h = vpps_scattered(g, t->vertices[k], 0);
            const uint32_t label = labelled ? (uint32_t)node->label : 0; /* without a label the nll is not used */
            const vpps_vertex head = vpps_apply(g, t->head, 0, NULL, 1, &h, 1, &label);
            scores->logits[k] = vpps_pushed(g, head, 0);
            if (labelled) scores->nll[k] = vpps_pushed(g, head, 1);
        }
    }
    return vpps_graph_status(g);
}

/* ---------------------------------------------------------------- the table row */

static const option_row options[] = {
    {"hidden", "N", "Size of h and c", OPTION_U32, offsetof(net_config, hidden), 1, 65536, true},
    {"embed", "N", "Size of a word's embedding", OPTION_U32, offsetof(net_config, embed), 1, 65536, true},
    {"dropout", "P", "Dropout on embeddings and before the classifier", OPTION_F32, offsetof(net_config, dropout), 0,
     0.99, false},
    {"loss", "nodes|root", "Train on every labelled node, or on the root alone", OPTION_CHOICE,
     offsetof(net_config, loss), 0, 0, false},
    {0},
};

extern const network tree_lstm;
const network tree_lstm = {
    .name = "tree-lstm",
    .summary = "binary N-ary Tree-LSTM, a classifier of trees and their nodes",
    .source = "Tai, Socher and Manning 2015, section 3.2",
    .options = options,
    .defaults = {.embed = 64, .hidden = 96, .loss = NET_HEADS_LABELLED},
    .create = create,
    .record = record,
    .add_tree = add_tree,
    .destroy = destroy,
};
