/* sequence.c - records embeddings, recurrent steps, and layers of them. */
#include "sequence.h"

/* ---------------------------------------------------------------- embeddings */

vpps_status part_embedding_declare(part_embedding *e, vpps_model *model, const char *name, uint32_t count,
                                   uint32_t size) {
    return vpps_add_lookup(model, &e->table, name, count, size, 1, &part_small);
}

vpps_status part_embedding_record(part_embedding *e, const net_config *config, vpps_model *model, const char *name) {
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, name, &g);
    if (s != VPPS_OK) return s;
    vpps_push(g, part_dropout(config, g, vpps_lookup(g, e->table, vpps_pull_index(g))));
    return vpps_cell_end(g, &e->cell);
}

vpps_node part_embed(const part_embedding *e, vpps_graph *g, uint32_t index) {
    return vpps_pushed(g, vpps_apply(g, VPPS_APPLICATION(.cell = e->cell, .n_indices = 1, .indices = &index)), 0);
}

/* ---------------------------------------------------------------- recurrent steps */

enum { I, F, O, LSTM_U }; /* gates of an LSTM */
enum { R, Z, GRU_U };     /* gates of a GRU */

static const struct {
    uint32_t n_gates;
    const char *gates;
} units[] = {[PART_LSTM] = {4, "ifou"}, [PART_GRU] = {3, "rzu"}};

vpps_status part_recurrent_declare(part_recurrent *r, part_unit unit, vpps_model *model, const char *name,
                                   uint32_t inputs, uint32_t hidden) {
    r->unit = unit;
    r->inputs = inputs;
    r->hidden = hidden;
    r->dropout = NULL;
    vpps_status s = VPPS_OK;
    for (uint32_t k = 0; k < units[unit].n_gates; k++) {
        char names[3][64];
        for (int i = 0; i < 3; i++)
            snprintf(names[i], sizeof names[i], "%s.%c_%c", name, "WUb"[i], units[unit].gates[k]);
        const vpps_init *bias = unit == PART_LSTM && k == F ? &part_one : NULL;
        const part_parameter parameters[] = {
            {&r->W[k], names[0], 0, hidden, inputs, NULL},
            {&r->U[k], names[1], 0, hidden, hidden, NULL},
            {&r->b[k], names[2], 0, hidden, 0, bias},
        };
        if (s == VPPS_OK) s = parts_declare(model, parameters, 3);
    }
    return s;
}

static vpps_node gate(const part_recurrent *r, vpps_graph *g, int k, vpps_node x, vpps_node h) {
    return vpps_affine2(g, r->b[k], r->W[k], x, r->U[k], h);
}

static void next_lstm(const part_recurrent *p, vpps_graph *g, vpps_node x, vpps_node *states) {
    const vpps_node h = states[0], c = states[1];
    vpps_node i = vpps_sigmoid(g, gate(p, g, I, x, h));
    vpps_node f = vpps_sigmoid(g, gate(p, g, F, x, h));
    vpps_node o = vpps_sigmoid(g, gate(p, g, O, x, h));
    vpps_node u = vpps_tanh(g, gate(p, g, LSTM_U, x, h));
    vpps_node next = vpps_add(g, vpps_mul(g, i, u), vpps_mul(g, f, c));
    states[0] = vpps_mul(g, o, vpps_tanh(g, next));
    states[1] = next;
}

static void next_gru(const part_recurrent *p, vpps_graph *g, vpps_node x, vpps_node *states) {
    const vpps_node h = states[0];
    vpps_node r = vpps_sigmoid(g, gate(p, g, R, x, h));
    vpps_node z = vpps_sigmoid(g, gate(p, g, Z, x, h));
    vpps_node u = vpps_tanh(g, gate(p, g, GRU_U, x, vpps_mul(g, r, h)));
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

vpps_status part_recurrent_record(part_recurrent *r, vpps_model *model, const char *name) {
    vpps_graph *g;
    const vpps_status s = vpps_cell_begin(model, name, &g);
    if (s != VPPS_OK) return s;
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

typedef struct layer_name {
    char text[64];
} layer_name;

/* Returns NAME, NAME2, NAME3, ...: the beginning of the names of a layer's parameters and cells. */
static layer_name name_layer(const char *name, uint32_t layer) {
    layer_name n;
    if (layer) {
        snprintf(n.text, sizeof n.text, "%s%u", name, layer + 1);
    } else {
        snprintf(n.text, sizeof n.text, "%s", name);
    }
    return n;
}

part_stack_shape part_lstm_layers(const net_config *c) {
    return (part_stack_shape){PART_LSTM, c->layers, c->embed, c->hidden, c->hidden, c};
}

vpps_status part_stack_declare(part_stack *s, vpps_model *model, const char *name, part_stack_shape shape) {
    if (shape.layers > NET_LAYERS) return VPPS_ARGUMENT;
    vpps_status status = VPPS_OK;
    s->n = shape.layers ? shape.layers : 1;
    for (uint32_t l = 0; status == VPPS_OK && l < s->n; l++) {
        status = part_recurrent_declare(&s->layers[l], shape.unit, model, name_layer(name, l).text,
                                        l ? shape.between : shape.inputs, shape.hidden);
        if (l) s->layers[l].dropout = shape.dropout;
    }
    return status;
}

vpps_status part_stack_record(part_stack *s, vpps_model *model, const char *name) {
    vpps_status status = VPPS_OK;
    for (uint32_t l = 0; status == VPPS_OK && l < s->n; l++) {
        status = part_recurrent_record(&s->layers[l], model, name_layer(name, l).text);
    }
    return status;
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
