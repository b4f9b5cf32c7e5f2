/* translate.c - the decoder of Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural Networks" (NeurIPS
 * 2014), with the global attention of Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine
 * Translation" (EMNLP 2015), section 3. s_k is the decoder's hidden state after words 0 to k, h_j the encoder's memory:
 *
 *     (7) a_j = exp(score(s_k, h_j)) / sum_i exp(score(s_k, h_i))
 *         ctx = sum_j a_j h_j
 *     (5) s~  = tanh(W_a [ctx; s_k])                              W_a is the paper's W_c
 *     (6) p(word k + 1) = softmax(W_s s~ + b_s)                   without attention W_s s_k + b_s
 *     (8) score(s, h) = s . h ("dot")
 *
 * Without input feeding (section 3.3) no decoder step reads s~, so that attention at all words is one level of the
 * graph. With input feeding, the decoder's first layer reads [embedding; s~] with s~ of the preceding step, zeros at the first one.
 *
 * With --layers, s_k and h_j are those of the last layer.
 *
 * Parameters, with C target words, d = hidden, e = embed: C e for the table, 4 d (e + d + 1) for an LSTM or
 * 3 d (e + d + 1) for a GRU (with d for e in layers above the first), C d + C for the output layer; attention: 2 d^2;
 * input feeding: 4 d^2 for an LSTM, 3 d^2 for a GRU.
 */
#include "translate.h"

#include <stdlib.h>

static bool attends(const translate_net *t) { return t->base.config.attention || t->base.config.input_feeding; }

/* Returns the number of vectors that a step passes to the next: the states of all layers, and with input feeding the attention's output. */
static uint32_t n_handed(const translate_net *t) {
    return part_stack_states(&t->decoder) + t->base.config.input_feeding;
}

/* ---------------------------------------------------------------- cells */

/* Records attention of the decoder's state s over h, a list of the encoder's states, and returns the attentional vector s~. */
static vpps_node attend(const translate_net *t, vpps_graph *g, vpps_node h, vpps_node s) {
    vpps_node a = vpps_softmax_list(g, vpps_dot(g, h, s)); /* eqs. (7), (8) */
    const vpps_node both[] = {vpps_weighted_sum_list(g, a, h), s};
    return vpps_tanh(g, vpps_matvec(g, t->W_a, vpps_concat(g, 2, both))); /* eq. (5) */
}

/* Records the cell of attention. Its inputs are the encoder's vectors, as a list, and the decoder's state. */
static vpps_status record_attention(translate_net *t, vpps_model *model) {
    const net_config *c = &t->base.config;
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "attention", &g));
    vpps_node h = vpps_pull_list(g, c->hidden, 1), s = vpps_pull(g, c->hidden, 1);
    vpps_push(g, attend(t, g, h, s));
    return vpps_cell_end(g, &t->attention);
}

/* Records a decoder step of all layers, which reads x, and returns the last layer's h. handed[]: the layers'
 * states, which the step replaces; with input feeding, as last element, the preceding attention's output s~, which is read with x. */
static vpps_node next_top(const translate_net *t, vpps_graph *g, bool dropout, vpps_node x, vpps_node *handed) {
    if (t->base.config.input_feeding) x = vpps_concat(g, 2, (vpps_node[]){x, handed[n_handed(t) - 1]});
    return part_stack_next(&t->decoder, g, dropout, x, handed);
}

/* Records the cell of a decoder step with input feeding. Its inputs are the word's embedding, and the encoder's vectors as a list. */
static vpps_status record_fed_step(translate_net *t, vpps_model *model) {
    const uint32_t hidden = t->base.config.hidden, n = n_handed(t);
    vpps_node handed[NET_STATES] = {0};
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "decoder", &g));
    for (uint32_t i = 0; i < n; i++) handed[i] = vpps_gather(g, 0, i, hidden, 1);
    const vpps_node top = next_top(t, g, true, vpps_pull(g, t->base.config.embed, 1), handed);
    handed[n - 1] = attend(t, g, vpps_pull_list(g, hidden, 1), top);
    for (uint32_t i = 0; i < n; i++) vpps_scatter(g, handed[i]);
    return vpps_cell_end(g, &t->fed_step);
}

/* The values that a turn of greedy search passes to the next one: whether the translation goes on, the latest word, the
 * log-probability of all words so far, the latest word's embedding, the decoder's states. */
enum { GOES_ON, WORD, LOG_P, EMBEDDING, STATES };

/* Records the cell of a turn of greedy search, which gathers the preceding word's embedding and chooses the likeliest next word. The cell's
 * inputs are the end word's number, and the encoder's vectors as a list. */
static vpps_status record_turn(translate_net *t, vpps_model *model) {
    const net_config *c = &t->base.config;
    const uint32_t n = n_handed(t);
    vpps_graph *g;
    PART_TRY(vpps_cell_begin(model, "greedy turn", &g));
    vpps_node before[STATES + NET_STATES] = {0}, handed[NET_STATES] = {0};
    for (uint32_t i = 0; i < STATES + n; i++)
        before[i] = vpps_gather(g, 0, i, i < EMBEDDING ? 1 : i == EMBEDDING ? c->embed : c->hidden, 1);
    const vpps_node end_word = vpps_pull(g, 1, 1);
    vpps_condition(g, before[GOES_ON]);

    for (uint32_t i = 0; i < n; i++) handed[i] = before[STATES + i];
    const vpps_node h = next_top(t, g, false, before[EMBEDDING], handed);
    const vpps_node s = attends(t) ? attend(t, g, vpps_pull_list(g, c->hidden, 1), h) : h;
    if (c->input_feeding) handed[n - 1] = s;
    const vpps_node best = vpps_argmax(g, part_logits(&t->base.classifier, g, s));
    const vpps_node word = vpps_slice(g, best, 0, 1);

    vpps_scatter_else(g, vpps_abs(g, vpps_sub(g, word, end_word)), before[GOES_ON]);
    vpps_scatter_else(g, word, before[WORD]);
    vpps_scatter_else(g, vpps_add(g, before[LOG_P], vpps_slice(g, best, 1, 1)), before[LOG_P]);
    vpps_scatter_else(g, vpps_lookup_at(g, t->target.table, word), before[EMBEDDING]);
    for (uint32_t i = 0; i < n; i++) vpps_scatter_else(g, handed[i], before[STATES + i]);
    return vpps_cell_end(g, &t->turn);
}

vpps_status translate_make(translate_net *t, vpps_model *model, part_stack_shape decoder) {
    const net_config *c = &t->base.config;
    const bool fed = c->input_feeding;
    if (fed) decoder.inputs += c->hidden;
    PART_TRY(part_embedding_make(&t->target, c, model, "target", c->classes, c->embed, "target"));
    PART_TRY(part_stack_make(&t->decoder, model, "decoder", fed ? NULL : "decoder", decoder));
    if (attends(t)) PART_TRY(vpps_add_matrix(model, &t->W_a, "W_a", c->hidden, 2 * c->hidden, NULL));
    if (fed) PART_TRY(record_fed_step(t, model));
    if (attends(t) && !fed) PART_TRY(record_attention(t, model));
    PART_TRY(part_classifier_make(&t->base.classifier, model, c, c->hidden, 0));
    return record_turn(t, model);
}

/* ---------------------------------------------------------------- what the encoder leaves */

vpps_status translate_encoded(translate_net *t, vpps_graph *g, const vpps_vertex *at, uint32_t n,
                              const vpps_vertex *last, net_decoding *d) {
    const uint32_t first = n > 1 ? 1 : 0;
    *d = (net_decoding){.logits = VPPS_NO_NODE};
    part_stack_keep(&t->decoder, g, last, d);
    if (t->base.config.input_feeding) d->states[d->n_states++] = vpps_zeros(g, t->base.config.hidden, 1);
    if (!attends(t)) return vpps_graph_status(g);

    vpps_node *memory = part_reserve(&t->base.scratch[1], n);
    if (!memory) return VPPS_MEMORY;
    d->memory = memory;
    d->n_memory = n - first;
    for (uint32_t k = first; k < n; k++) memory[k - first] = vpps_scattered(g, at[k], 0);
    return vpps_graph_status(g);
}

/* ---------------------------------------------------------------- words of the target */

typedef struct place {
    /* vertices that output the decoder's states, one per layer; with input feeding at[0] outputs all states and the attention's output */
    vpps_vertex at[NET_LAYERS];
    const vpps_node *memory;
    uint32_t n_memory;
} place;

static vpps_status begin(const translate_net *t, vpps_graph *g, const net_decoding *d, place *p) {
    *p = (place){.memory = d->memory, .n_memory = d->n_memory};
    if (t->base.config.input_feeding) {
        p->at[0] = vpps_source(g, n_handed(t), d->states);
    } else {
        part_stack_resume(&t->decoder, g, d->states, p->at);
    }
    return vpps_graph_status(g);
}

static vpps_node read_fed_word(const translate_net *t, vpps_graph *g, uint32_t word, place *p) {
    const vpps_node x = part_embed(&t->target, g, word);
    p->at[0] = vpps_apply(g, VPPS_APPLICATION(.cell = t->fed_step, .n_children = 1, .children = &p->at[0], .n_pulls = 1,
                                              .pulls = &x, .n_pull_lists = 1, .n_members = p->n_memory,
                                              .pull_lists = &p->memory));
    return vpps_scattered(g, p->at[0], n_handed(t) - 1);
}

/* Adds a decoder step that reads a word. Returns the output layer's input: the attention's output or, without it, the new state s. */
static vpps_node read_word(const translate_net *t, vpps_graph *g, uint32_t word, place *p) {
    if (t->base.config.input_feeding) return read_fed_word(t, g, word, p);
    const vpps_node s = part_stack_step(&t->decoder, g, p->at, part_embed(&t->target, g, word));
    if (!attends(t)) return s;
    return vpps_pushed(
        g,
        vpps_apply(g, VPPS_APPLICATION(.cell = t->attention, .n_pulls = 1, .pulls = &s, .n_pull_lists = 1,
                                       .n_members = p->n_memory, .pull_lists = &p->memory)),
        0);
}

vpps_status translate_add(void *net, vpps_graph *g, const net_example *x, net_heads heads, const net_scores *scores) {
    translate_net *t = net;
    const vpps_sentence *target = &x->target;
    net_decoding d;
    place p;
    PART_TRY(t->base.network->encode(net, g, x, &d));
    PART_TRY(begin(t, g, &d, &p));
    for (uint32_t k = 0; k + 1 < target->n_words; k++) {
        const vpps_node output = read_word(t, g, target->words[k], &p);
        part_classify(&t->base.classifier, g, k, &output, target->words[k + 1], heads, scores);
    }
    return vpps_graph_status(g);
}

vpps_status translate_decode(void *net, vpps_graph *g, uint32_t word, net_decoding *d) {
    translate_net *t = net;
    place p;
    PART_TRY(begin(t, g, d, &p));
    vpps_node nll;
    const vpps_node output = read_word(t, g, word, &p);
    part_classify(&t->base.classifier, g, 0, &output, VPPS_NO_WORD, NET_HEADS_ALL,
                  &(net_scores){.logits = &d->logits, .nll = &nll});
    if (t->base.config.input_feeding) {
        for (uint32_t i = 0; i < n_handed(t); i++) d->states[i] = vpps_scattered(g, p.at[0], i);
    } else {
        part_stack_keep(&t->decoder, g, p.at, d);
    }
    return vpps_graph_status(g);
}

vpps_status translate_greedy(void *net, vpps_graph *g, const net_decoding *d, net_greedy *out) {
    const translate_net *t = net;
    const vpps_node end_word = vpps_constant(g, 1, 1, (float)out->end_word);
    vpps_node first[STATES + NET_STATES] = {
        [GOES_ON] = vpps_ones(g, 1, 1),
        [WORD] = end_word,
        [LOG_P] = vpps_zeros(g, 1, 1),
        [EMBEDDING] = part_embed(&t->target, g, out->end_word),
    };
    for (uint32_t i = 0; i < d->n_states; i++) first[STATES + i] = d->states[i];
    const vpps_vertex start = vpps_source(g, STATES + d->n_states, first);
    vpps_vertex *turns = malloc(out->limit * sizeof *turns);
    if (!turns) return VPPS_MEMORY;
    const vpps_vertex last = vpps_while(g,
                                        VPPS_APPLICATION(.cell = t->turn, .n_children = 1, .children = &start,
                                                         .n_pulls = 1, .pulls = &end_word, .n_pull_lists = attends(t),
                                                         .n_members = d->n_memory, .pull_lists = &d->memory),
                                        out->limit, turns);
    for (uint32_t i = 0; i < out->limit; i++) out->words[i] = vpps_scattered(g, turns[i], WORD);
    out->log_p = vpps_scattered(g, last, LOG_P);
    free(turns);
    return vpps_graph_status(g);
}
