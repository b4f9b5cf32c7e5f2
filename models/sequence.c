/* sequence.c - adds cells of embeddings and recurrent steps to a model, and vertices of them, also in layers, to graphs. */
#include "sequence.h"

/* ---------------------------------------------------------------- embeddings */

vpps_status part_embedding_make(part_embedding *e, const net_config *config, vpps_model *model, const char *table,
                                uint32_t count, uint32_t size, const char *cell) {
    vpps_graph *g;
    PART_TRY(vpps_add_lookup(model, &e->table, table, count, size, 1, &part_small));
    PART_TRY(vpps_cell_begin(model, cell, &g));
    vpps_push(g, part_dropout(config, g, vpps_lookup(g, e->table, vpps_pull_index(g))));
    return vpps_cell_end(g, &e->cell);
}

vpps_node part_embed(const part_embedding *e, vpps_graph *g, uint32_t index) {
    return vpps_pushed(g, vpps_apply(g, VPPS_APPLICATION(.cell = e->cell, .n_indices = 1, .indices = &index)), 0);
}

/* ---------------------------------------------------------------- recurrent steps */

enum { I, F, O, LSTM_U }; /* gates of an LSTM */
enum { R, Z, GRU_U };     /* gates of a GRU */

static void next_lstm(const part_recurrent *p, vpps_graph *g, vpps_node x, vpps_node *states) {
    const vpps_node h = states[0], c = states[1];
    vpps_node i = vpps_sigmoid(g, part_gate(&p->gates, g, I, x, h));
    vpps_node f = vpps_sigmoid(g, part_gate(&p->gates, g, F, x, h));
    vpps_node o = vpps_sigmoid(g, part_gate(&p->gates, g, O, x, h));
    vpps_node u = vpps_tanh(g, part_gate(&p->gates, g, LSTM_U, x, h));
    vpps_node next = vpps_add(g, vpps_mul(g, i, u), vpps_mul(g, f, c));
    states[0] = vpps_mul(g, o, vpps_tanh(g, next));
    states[1] = next;
}

static void next_gru(const part_recurrent *p, vpps_graph *g, vpps_node x, vpps_node *states) {
    const vpps_node h = states[0];
    vpps_node r = vpps_sigmoid(g, part_gate(&p->gates, g, R, x, h));
    vpps_node z = vpps_sigmoid(g, part_gate(&p->gates, g, Z, x, h));
    vpps_node u = vpps_tanh(g, part_gate(&p->gates, g, GRU_U, x, vpps_mul(g, r, h)));
    states[0] = vpps_add(g, u, vpps_mul(g, z, vpps_sub(g, h, u))); /* h' = z h + (1 - z) u */
}

uint32_t part_recurrent_states(const part_recurrent *r) { return r->unit == PART_LSTM ? 2 : 1; }

void part_recurrent_next(const part_recurrent *r, vpps_graph *recorder, vpps_node x, vpps_node *states) {
    if (r->unit == PART_LSTM) {
        next_lstm(r, recorder, x, states);
    } else {
        next_gru(r, recorder, x, states);
    }
}

vpps_status part_recurrent_make(part_recurrent *r, vpps_model *model, const char *name, const char *cell) {
    vpps_graph *g;
    const char *gates = r->unit == PART_LSTM ? "ifou" : "rzu";
    PART_TRY(part_gates_declare(&r->gates, model, name, gates, r->inputs, r->hidden));
    if (!cell) return VPPS_OK;
    PART_TRY(vpps_cell_begin(model, cell, &g));
    const uint32_t n = part_recurrent_states(r);
    vpps_node states[2] = {vpps_gather(g, 0, 0, r->hidden, 1)};
    vpps_node x = vpps_pull(g, r->inputs, 1);
    if (r->dropout) x = part_dropout(r->dropout, g, x);
    if (n == 2) states[1] = vpps_gather(g, 0, 1, r->hidden, 1);
    part_recurrent_next(r, g, x, states);
    for (uint32_t i = 0; i < n; i++) vpps_scatter(g, states[i]);
    return vpps_cell_end(g, &r->cell);
}

vpps_vertex part_recurrent_start(const part_recurrent *r, vpps_graph *g) {
    static const float zeros[PART_MOST_HIDDEN];
    const vpps_node zero = vpps_input(g, r->hidden, 1, zeros), both[] = {zero, zero};
    return vpps_source(g, part_recurrent_states(r), both);
}

vpps_vertex part_recurrent_step(const part_recurrent *r, vpps_graph *g, vpps_vertex before, vpps_node x) {
    return vpps_apply(
        g, VPPS_APPLICATION(.cell = r->cell, .n_children = 1, .children = &before, .n_pulls = 1, .pulls = &x));
}

/* ---------------------------------------------------------------- layers of them */

part_stack_shape part_lstm_layers(const net_config *c) {
    return (part_stack_shape){PART_LSTM, c->layers, c->embed, c->hidden, c->hidden, c};
}

vpps_status part_stack_make(part_stack *s, vpps_model *model, const char *name, const char *cell,
                            part_stack_shape shape) {
    if (shape.layers > NET_LAYERS) return VPPS_ARGUMENT;
    s->n = shape.layers ? shape.layers : 1;
    for (uint32_t l = 0; l < s->n; l++) {
        s->layers[l] = (part_recurrent){.unit = shape.unit,
                                        .inputs = l ? shape.between : shape.inputs,
                                        .hidden = shape.hidden,
                                        .dropout = l ? shape.dropout : NULL};
        const part_name of_cell = part_layer_name(cell ? cell : "", l);
        PART_TRY(part_recurrent_make(&s->layers[l], model, part_layer_name(name, l).text, cell ? of_cell.text : NULL));
    }
    return VPPS_OK;
}

void part_stack_start(const part_stack *s, vpps_graph *g, vpps_vertex *at) {
    for (uint32_t l = 0; l < s->n; l++) at[l] = part_recurrent_start(&s->layers[l], g);
}

void part_stack_resume(const part_stack *s, vpps_graph *g, const vpps_node *states, vpps_vertex *at) {
    for (uint32_t l = 0; l < s->n; l++) {
        const uint32_t n = part_recurrent_states(&s->layers[l]);
        at[l] = vpps_source(g, n, states);
        states += n;
    }
}

vpps_node part_stack_step(const part_stack *s, vpps_graph *g, vpps_vertex *at, vpps_node x) {
    for (uint32_t l = 0; l < s->n; l++) {
        at[l] = part_recurrent_step(&s->layers[l], g, at[l], x);
        x = vpps_scattered(g, at[l], 0);
    }
    return x;
}

uint32_t part_stack_states(const part_stack *s) { return s->n * part_recurrent_states(&s->layers[0]); }

void part_stack_keep(const part_stack *s, vpps_graph *g, const vpps_vertex *at, net_decoding *d) {
    d->n_states = 0;
    for (uint32_t l = 0; l < s->n; l++) {
        const uint32_t n = part_recurrent_states(&s->layers[l]);
        for (uint32_t i = 0; i < n; i++) d->states[d->n_states++] = vpps_scattered(g, at[l], i);
    }
}

vpps_node part_stack_next(const part_stack *s, vpps_graph *recorder, bool dropout, vpps_node x, vpps_node *states) {
    for (uint32_t l = 0; l < s->n; l++) {
        if (dropout && s->layers[l].dropout) x = part_dropout(s->layers[l].dropout, recorder, x);
        part_recurrent_next(&s->layers[l], recorder, x, states);
        x = states[0];
        states += part_recurrent_states(&s->layers[l]);
    }
    return x;
}
