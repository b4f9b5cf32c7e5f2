/* equations_graphs.c - the equations of the networks on graphs: Velickovic et al. 2018, Brody, Alon and Yahav 2022. */
#include "equations.h"

#include "common/testing.h"

#define OF(layer, name) (name_in_layer(&(layer), (name)).text)

/* What a node reads along an edge: v of the node at the other end, and the edge's type. */
typedef struct seen_edge {
    vec v, type;
} seen_edge;

/* Computes m of one head: the mean of v + t, weighted by a . leaky(q + v + t). */
static vec attend(vec q, vec a, const seen_edge *edges, uint32_t n, uint32_t first, uint32_t size) {
    vec mean = zeros(size);
    double sum = 0;
    for (uint32_t e = 0; e < n; e++) {
        double score = 0;
        for (uint32_t i = first; i < first + size; i++) {
            const double z = q.at[i] + edges[e].v.at[i] + edges[e].type.at[i];
            score += a.at[i] * (z > 0 ? z : z / 5);
        }
        sum += exp(score);
        for (uint32_t i = 0; i < size; i++)
            mean.at[i] += exp(score) * (edges[e].v.at[first + i] + edges[e].type.at[first + i]);
    }
    for (uint32_t i = 0; n && i < size; i++) mean.at[i] /= sum;
    return mean;
}

/* Computes h of node i after a round. */
static vec next_node(const subject *s, const layer_name *l, const net_example *x, const vec *h, uint32_t i) {
    const weights *w = s->w;
    const uint32_t heads = s->config->heads, size = (s->config->hidden + heads - 1) / heads;
    seen_edge edges[2 * MOST_EDGES];
    uint32_t n = 0;
    for (uint32_t e = 0; e < x->n_edges; e++) {
        const net_edge *edge = &x->edges[e];
        if (edge->to == i)
            edges[n++] = (seen_edge){times(w, OF(*l, ".W_v"), h[edge->from]), entry(w, OF(*l, ".forward"), edge->type)};
        if (edge->from == i)
            edges[n++] = (seen_edge){times(w, OF(*l, ".W_v"), h[edge->to]), entry(w, OF(*l, ".backward"), edge->type)};
    }
    const vec q = affine(w, OF(*l, ".b_q"), OF(*l, ".W_q"), h[i]), a = vector(w, OF(*l, ".a"));
    vec m = attend(q, a, edges, n, 0, size);
    for (uint32_t k = 1; k < heads; k++) m = concatenation(m, attend(q, a, edges, n, k * size, size));
    return sum_of(h[i], elu_of(affine2(w, OF(*l, ".b_o"), OF(*l, ".W_o"), m, OF(*l, ".W_h"), h[i])));
}

static void run_rounds(const subject *s, const net_example *x, vec h[MOST_POSITIONS]) {
    const uint32_t n = x->sentence.n_words, numbers = s->config->numbers;
    for (uint32_t i = 0; i < n; i++) {
        vec f = zeros(numbers);
        for (uint32_t k = 0; k < numbers; k++) f.at[k] = (double)x->numbers[i * numbers + k];
        h[i] = affine2(s->w, "b_x", "W_x", entry(s->w, "embedding", x->sentence.words[i]), "W_n", f);
    }
    for (uint32_t round = 1; round <= s->config->layers; round++) {
        const layer_name l = name_of_layer("round", round);
        vec next[MOST_POSITIONS];
        for (uint32_t i = 0; i < n; i++) next[i] = next_node(s, &l, x, h, i);
        for (uint32_t i = 0; i < n; i++) h[i] = next[i];
    }
}

void gat_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    vec h[MOST_POSITIONS];
    run_rounds(s, x, h);
    for (uint32_t i = 0; i < x->sentence.n_words; i++) logits[i] = output_layer(s->w, h[i]);
}

void gat_classifier_equations(const subject *s, const net_example *x, vec logits[MOST_POSITIONS]) {
    vec h[MOST_POSITIONS], mean = zeros(s->config->hidden);
    run_rounds(s, x, h);
    for (uint32_t i = 0; i < x->sentence.n_words; i++)
        for (uint32_t k = 0; k < mean.n; k++) mean.at[k] += h[i].at[k] / x->sentence.n_words;
    logits[0] = output_layer(s->w, mean);
}
