/* mv_rnn.c - the matrix-vector recursive network (MV-RNN) of Socher, Huval, Manning and Ng, "Semantic Compositionality through Recursive
 * Matrix-Vector Spaces" (EMNLP 2012): every word and every phrase is a vector, which says what it means, and a matrix, which says how it
 * changes the meaning of its neighbour.
 *
 * Equations (2) and (3) of section 2.2 compose; a softmax classifies every phrase's vector (section 2.4). W of eq. (2) and W_M of eq. (3)
 * act on two stacked operands; they are declared as halves, W_l beside W_r. Words have full matrices, not the low-rank ones of section 2.6.
 *
 * Parameters, with V words, C classes, n = hidden: V (n + n^2) + 4 n^2 + C (n + 1). */
#include "parts.h"

typedef struct mv_rnn_net {
    part_net base;
    vpps_param vectors, matrices;      /* lookup tables with an entry per word: vectors of n, and matrices n x n */
    vpps_param W_l, W_r, W_M_l, W_M_r; /* matrices n x n */
} mv_rnn_net;

/* Adds `factor` to the diagonals of a parameter's n x n matrices; of a sharded table, only in this process's
 * entries. */
static vpps_status add_identity(vpps_model *model, vpps_param param, uint32_t n, float factor) {
    vpps_param_info info = {.size = sizeof info};
    float *values = vpps_param_values(model, param);
    PART_TRY(vpps_param_describe(model, param, &info));
    for (uint32_t m = info.first; m < info.count; m += info.step, values += (size_t)n * n) {
        for (uint32_t i = 0; i < n; i++) values[i * (n + 1)] += factor;
    }
    return VPPS_OK;
}

static vpps_status record_leaf(mv_rnn_net *t, vpps_model *model) {
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "mv-rnn leaf", &g));
    const uint32_t word = vpps_pull_index(g);
    const vpps_node a = part_dropout(&t->base.config, g, vpps_lookup(g, t->vectors, word));
    vpps_scatter(g, a);
    vpps_scatter(g, vpps_lookup(g, t->matrices, word));
    part_classifier_add(&t->base.classifier, g, a);
    return vpps_cell_end(g, &t->base.leaf);
}

static vpps_status record_inner(mv_rnn_net *t, vpps_model *model) {
    const uint32_t n = t->base.config.hidden;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "mv-rnn inner", &g));
    vpps_node a = vpps_gather(g, 0, 0, n, 1), A = vpps_gather(g, 0, 1, n, n);
    vpps_node b = vpps_gather(g, 1, 0, n, 1), B = vpps_gather(g, 1, 1, n, n);

    /* eq. (2): p = tanh(W [B a; A b]) */
    vpps_node Ba = vpps_matmul(g, B, a), Ab = vpps_matmul(g, A, b);
    const vpps_node p = vpps_tanh(g, vpps_affine2(g, VPPS_NO_PARAM, t->W_l, Ba, t->W_r, Ab));
    vpps_scatter(g, p);
    /* eq. (3): P = W_M [A; B] */
    vpps_scatter(g, vpps_affine2(g, VPPS_NO_PARAM, t->W_M_l, A, t->W_M_r, B));
    part_classifier_add(&t->base.classifier, g, p);
    return vpps_cell_end(g, &t->base.inner[0]);
}

static vpps_status build(void *net, vpps_model *model) {
    mv_rnn_net *t = net;
    const uint32_t n = t->base.config.hidden, words = t->base.config.words;
    const vpps_init noise = {.kind = VPPS_INIT_NORMAL, .a = 0, .b = 0.01f};
    const part_parameter parameters[] = {
        {&t->vectors, "vectors", words, n, 1, NULL},
        {&t->matrices, "matrices", words, n, n, &noise},
        {&t->W_l, "W_l", 0, n, n, NULL},
        {&t->W_r, "W_r", 0, n, n, NULL},
        {&t->W_M_l, "W_M_l", 0, n, n, &noise},
        {&t->W_M_r, "W_M_r", 0, n, n, &noise},
    };
    PART_TRY(parts_declare(model, parameters, PART_COUNT(parameters)));
    /* Section 2.1: a word's matrix begins as the identity and a little noise, so that at first it changes nothing. A
     * phrase's matrix begins as the mean of its children's; the paper does not say how W_M begins. */
    PART_TRY(add_identity(model, t->matrices, n, 1));
    PART_TRY(add_identity(model, t->W_M_l, n, 0.5f));
    PART_TRY(add_identity(model, t->W_M_r, n, 0.5f));
    PART_TRY(part_classifier_declare(&t->base.classifier, model, &t->base.config, t->base.config.hidden, 0));
    PART_TRY(record_leaf(t, model));
    return record_inner(t, model);
}

static const option_row options[] = {
    {"hidden", "N", "Size of a vector; a matrix has its square", OPTION_U32, offsetof(net_config, hidden), 1, 4096,
     true},
    PART_DROPOUT("Dropout on words' vectors and before the classifier"),
    PART_LOSS,
    {0},
};

const network mv_rnn = {
    .name = "mv-rnn",
    .summary = "recursive network with a vector and a matrix a word",
    .source = "Socher, Huval, Manning and Ng 2012, section 2",
    .options = options,
    .embedding = "vectors",
    .defaults = {.hidden = 25, .loss = NET_HEADS_LABELLED},
    .bytes = sizeof(mv_rnn_net),
    .build = build,
    .add = part_tree_add,
};
