/* act.c - a recurrent network that learns how long to think about each word: Graves, "Adaptive Computation Time for Recurrent
 * Neural Networks" (arXiv:1603.08983, 2016), section 2. Word t is read in N(t) turns, of which there are at most --turns:
 *
 *     (4) s_t^n = tanh(W x_t^n + U_s s_t^(n-1) + b)                  s_t^0 = s_(t-1); x_t^1 = x_t with a flag, whose column of W is w_1
 *     (5) h_t^n = sigmoid(U_p s_t^n + b_p)
 *     (7) N(t)  = min {n : h_t^1 + ... + h_t^n >= 1 - epsilon}
 *     (8) R(t)  = 1 - (h_t^1 + ... + h_t^(N - 1))
 *     (6) p_t^n = R(t) if n = N(t), else h_t^n
 *    (13) s_t   = p_t^1 s_t^1 + ... + p_t^N s_t^N                  s_0 = 0
 *         label: softmax(W_s D(s_T) + b_s), where D is dropout
 *    (11) the training loss of a sentence also has --ponder times the sum of N(t) + R(t)
 *
 * A turn is a cell whose condition is that some of the word's probability is left. The graph has all turns; in inference the device decides
 * how many run. N(t) is a number of turns and has no gradient, R(t) has (equation 14).
 *
 * Parameters, with V words, C classes, e = embed, d = hidden: V e + d (e + d + 2) + d + 1 + C d + C.
 */
#include "sequence.h"

typedef struct act_net {
    part_net base;
    part_embedding words;
    vpps_param W, w_1, U_s, b, U_p, b_p;
    vpps_cell input, turn;
} act_net;

#define EPSILON 0.01f

/* Records the cell that makes the recurrent cell's input for a word, which the recurrent cell reads several times.
 * Outputs: W x + b for every reading but the first; W x + b + w_1 for the first, which tells that the word is new. */
static vpps_status record_input(act_net *n, vpps_model *model) {
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "act word", &g));
    const vpps_node x = vpps_affine1(g, n->b, n->W, vpps_pull(g, n->base.config.embed, 1));
    vpps_push(g, x);
    vpps_push(g, vpps_add(g, x, vpps_parameter(g, n->w_1)));
    return vpps_cell_end(g, &n->input);
}

/* The values that a turn (one reading of a word) passes to the next turn. LEFT: 1 - epsilon minus the halting probability spent so far.
 * STATE: the state. MEAN: the weighted mean of states so far. REST: the halting probability that is left. COST: number of turns plus
 * remainders so far, for the loss. */
enum { LEFT, STATE, MEAN, REST, COST, VALUES };

/* Records the recurrent cell, applied once for each reading (turn) of a word. Inputs: W x + b of the word, and a number
 * that is subtracted from the halting probability left: 0, but 2 in the last permitted turn, which ends the word. */
static vpps_status record_turn(act_net *n, vpps_model *model) {
    const uint32_t d = n->base.config.hidden;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "act turn", &g));
    vpps_node before[VALUES] = {0};
    for (uint32_t i = 0; i < VALUES; i++) before[i] = vpps_gather(g, 0, i, i == STATE || i == MEAN ? d : 1, 1);
    const vpps_node x = vpps_pull(g, d, 1), last = vpps_pull(g, 1, 1);
    vpps_condition(g, before[LEFT]);

    const vpps_node s = vpps_tanh(g, vpps_add(g, vpps_matvec(g, n->U_s, before[STATE]), x)); /* eq. (4) */
    const vpps_node h = vpps_sigmoid(g, vpps_affine1(g, n->b_p, n->U_p, s));                 /* eq. (5) */
    const vpps_node rest = vpps_sub(g, before[REST], h);
    const vpps_node left = vpps_sub(g, vpps_sub(g, rest, vpps_constant(g, 1, 1, EPSILON)), last); /* eq. (7) */
    const vpps_node p = vpps_select(g, left, h, before[REST]);                                    /* eqs. (6), (8) */
    /* R(t), the halting probability that is left, in the last turn of word t; 0 in the turns before */
    const vpps_node ended = vpps_unless(g, before[REST], left);
    const vpps_node one_more = vpps_add(g, before[COST], vpps_ones(g, 1, 1));
    vpps_scatter_else(g, left, before[LEFT]);
    vpps_scatter_else(g, s, before[STATE]);
    vpps_scatter_else(g, vpps_add(g, before[MEAN], vpps_scale_by(g, s, p)), before[MEAN]); /* eq. (13) */
    vpps_scatter_else(g, rest, before[REST]);
    vpps_scatter_else(g, vpps_add(g, one_more, ended), before[COST]);
    return vpps_cell_end(g, &n->turn);
}

static vpps_status build(void *net, vpps_model *model) {
    act_net *n = net;
    const net_config *c = &n->base.config;
    const part_parameter parameters[] = {
        {&n->W, "W", 0, c->hidden, c->embed, NULL},      {&n->w_1, "w_1", 0, c->hidden, 0, NULL},
        {&n->U_s, "U_s", 0, c->hidden, c->hidden, NULL}, {&n->b, "b", 0, c->hidden, 0, NULL},
        {&n->U_p, "U_p", 0, 1, c->hidden, NULL},         {&n->b_p, "b_p", 0, 1, 0, &part_one},
    };
    PART_TRY(part_embedding_make(&n->words, c, model, "embedding", c->words, c->embed, "act embedding"));
    PART_TRY(parts_declare(model, parameters, PART_COUNT(parameters)));
    PART_TRY(record_input(n, model));
    PART_TRY(record_turn(n, model));
    return part_classifier_make(&n->base.classifier, model, c, c->hidden, 0);
}

typedef struct beginning {
    vpps_node zero, one, two, zeros;
} beginning;

/* Adds a word's turns (repeated readings), from the preceding words' state and cost. Returns the last turn's vertex. */
static vpps_vertex read_word(const act_net *n, vpps_graph *g, uint32_t word, const beginning *b, vpps_node state,
                             vpps_node cost) {
    const uint32_t limit = n->base.config.turns;
    const vpps_node x = part_embed(&n->words, g, word);
    const vpps_vertex input = vpps_apply(g, VPPS_APPLICATION(.cell = n->input, .n_pulls = 1, .pulls = &x));
    const vpps_node first[VALUES] = {
        [LEFT] = b->one, [STATE] = state, [MEAN] = b->zeros, [REST] = b->one, [COST] = cost};
    vpps_vertex at = vpps_source(g, VALUES, first);
    /* part 0: the first turn (reading of the word); 1: all turns between; 2: the last permitted turn */
    for (uint32_t part = 0; part < 3; part++) {
        const uint32_t turns = part == 1 ? (limit > 2 ? limit - 2 : 0) : part == 0 || limit > 1;
        const bool ends = part == 2 || limit == 1;
        const vpps_node pulls[] = {vpps_pushed(g, input, part == 0), ends ? b->two : b->zero};
        const vpps_vertex before = at;
        const vpps_application turn = {
            .size = sizeof turn, .cell = n->turn, .n_children = 1, .children = &before, .n_pulls = 2, .pulls = pulls};
        if (turns) at = vpps_while(g, &turn, turns, NULL);
    }
    return at;
}

static vpps_status add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    const act_net *n = net;
    const beginning b = {vpps_zeros(g, 1, 1), vpps_ones(g, 1, 1), vpps_constant(g, 1, 1, 2),
                         vpps_zeros(g, n->base.config.hidden, 1)};
    vpps_node state = b.zeros, cost = b.zero;
    for (uint32_t t = 0; t < x->sentence.n_words; t++) {
        const vpps_vertex last = read_word(n, g, x->sentence.words[t], &b, state, cost);
        state = vpps_scattered(g, last, MEAN);
        cost = vpps_scattered(g, last, COST);
    }
    part_classify(&n->base.classifier, g, 0, &state, x->label, heads, scores);
    if (scores->cost && scores->nll[0] != VPPS_NO_NODE) *scores->cost = vpps_scale(g, cost, n->base.config.ponder);
    return vpps_graph_status(g);
}

static const option_row options[] = {
    PART_HIDDEN("Size of the state"),
    PART_EMBED("Size of a word's embedding"),
    PART_DROPOUT("Dropout on embeddings and before the output layer"),
    {"turns", "N", "Turns that a word is read in, at most", OPTION_U32, offsetof(net_config, turns), 1, 1000, false},
    {"ponder", "X", "What a turn costs in the training loss", OPTION_F32, offsetof(net_config, ponder), 0, 1000, false},
    {0},
};

const network act = {
    .name = "act",
    .summary = "labels sentences; decides how often it reads each word",
    .source = "Graves 2016",
    .options = options,
    .embedding = "embedding",
    .kind = NET_SENTENCES,
    .parity = true,
    .defaults = {.embed = 16, .hidden = 64, .turns = 3, .ponder = 0.001f},
    .bytes = sizeof(act_net),
    .build = build,
    .add = add,
};
