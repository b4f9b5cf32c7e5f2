/* fixture.c - see fixture.h. */
#include "fixture.h"

/* ---------------------------------------------------------------- cases */

const option_row *option_of(const network *n, size_t offset) {
    for (const option_row *o = n->options; o->name; o++)
        if (o->offset == offset) return o;
    return NULL;
}

bool roots_only(const network *n) { return n->kind == NET_TREES && !HAS_OPTION(n, loss); }

static int choices_of(const network *n) {
    return (HAS_OPTION(n, input_feeding) ? 3
            : HAS_OPTION(n, attention)   ? 2
                                         : 1) *
           (HAS_OPTION(n, mlp) ? 2 : 1) * (HAS_OPTION(n, layers) ? MOST_LAYERS : 1);
}

int case_count(void) {
    int count = 0;
    for (const network *const *n = networks; *n; n++) count += choices_of(*n);
    return count;
}

net_case case_at(int i) {
    const network *const *n = networks;
    while (i >= choices_of(*n)) i -= choices_of(*n++);
    net_case c = {.net = *n, .attention = (*n)->defaults.attention, .mlp = (*n)->defaults.mlp > 0};
    c.fullest = i == 0;
    if (HAS_OPTION(*n, input_feeding)) {
        c.input_feeding = i % 3 == 0;
        c.attention = i % 3 == 1;
        i /= 3;
    } else if (HAS_OPTION(*n, attention)) {
        c.attention = i % 2 == 0;
        i /= 2;
    }
    if (HAS_OPTION(*n, mlp)) {
        c.mlp = i % 2 == 0;
        i /= 2;
    }
    if (HAS_OPTION(*n, layers)) c.layers = MOST_LAYERS - (uint32_t)i;
    snprintf(c.name, sizeof c.name, "%s%s%s%s", (*n)->name,
             c.input_feeding ? " with input feeding"
             : c.attention   ? " with attention"
                             : "",
             c.mlp ? " with mlp" : "",
             c.layers > 2   ? ", 3 layers"
             : c.layers > 1 ? ", 2 layers"
                            : "");
    return c;
}

/* ---------------------------------------------------------------- a network and examples */

void fixture_open(fixture *f, int i, const examples *e, uint32_t hidden, uint32_t embed, float dropout) {
    f->c = case_at(i);
    f->net = f->c.net;
    f->name = f->c.name;
    f->e = e ? e : examples_of(f->net->kind);
    f->config = f->net->defaults;
    f->config.words = f->e->words;
    f->config.characters = f->e->characters;
    f->config.classes = f->e->classes;
    f->config.edge_types = f->e->edge_types;
    f->config.numbers = f->e->numbers;
    f->config.hidden = hidden;
    f->config.embed = embed;
    f->config.character_embed = embed - 1;
    f->config.mlp = f->c.mlp ? hidden + 1 : 0;
    f->config.attention = f->c.attention;
    f->config.input_feeding = f->c.input_feeding;
    f->config.layers = f->c.layers;
    f->config.heads = 2;
    f->config.feed_forward = hidden + 2;
    f->config.dropout = dropout;
    ck_assert_uint_le(f->e->n, MOST_EXAMPLES);
    TEST_OK(vpps_model_create(&f->model, test_seed()));
    TEST_OK(network_create(f->net, &f->state, f->model, &f->config));
    TEST_OK(vpps_graph_create(&f->g, f->model));
}

void fixture_close(fixture *f) {
    network_destroy(f->state);
    vpps_graph_destroy(f->g);
    vpps_model_destroy(f->model);
}

void add_example(fixture *f, uint32_t i, const net_example *x, net_heads heads) {
    const vpps_node untouched = VPPS_NO_NODE - 1;
    const uint32_t n = net_positions(f->net->kind, x);
    ck_assert_uint_lt(n, MOST_POSITIONS);
    for (uint32_t k = 0; k < MOST_POSITIONS; k++) f->logits[i][k] = f->nll[i][k] = untouched;
    const net_scores scores = {.logits = f->logits[i], .nll = f->nll[i]};
    TEST_OK(f->net->add(f->state, f->g, x, heads, &scores));
    const vpps_node size = vpps_graph_size(f->g);
    for (uint32_t k = 0; k < MOST_POSITIONS; k++) {
        const vpps_node both[] = {f->logits[i][k], f->nll[i][k]};
        for (int b = 0; b < 2; b++) {
            const bool fits = k < n ? both[b] < size || both[b] == VPPS_NO_NODE : both[b] == untouched;
            ck_assert_msg(fits, "%s, example %u: node %u of position %u of %u", f->name, i, both[b], k, n);
        }
    }
}

vpps_node build(fixture *f, net_heads heads) {
    static vpps_node terms[MOST_EXAMPLES * (MOST_POSITIONS + 1)];
    uint32_t n_terms = 0;
    vpps_graph_clear(f->g);
    for (uint32_t i = 0; i < f->e->n; i++) {
        add_example(f, i, &f->e->x[i], heads);
        for (uint32_t k = 0; k < net_positions(f->net->kind, &f->e->x[i]); k++)
            if (f->nll[i][k] != VPPS_NO_NODE) terms[n_terms++] = f->nll[i][k];
    }
    return vpps_scale(f->g, vpps_sum(f->g, n_terms, terms), 1.0f / (float)f->e->n);
}

net_heads loss_heads(const fixture *f) {
    return f->net->kind == NET_TREES ? (net_heads)f->config.loss : NET_HEADS_LABELLED;
}

/* ---------------------------------------------------------------- the engine */

vpps_options options_for(const char *device) {
    vpps_options o;
    vpps_options_default(&o);
    o.device = device;
    o.vps = 2;
    o.threads = 64; /* number of threads of a CTA: software SIMT's time grows with it */
    o.pool_bytes = 64u << 20;
    o.verify = true;
    o.no_tuning = true;
    return o;
}
