/* crf.c - a conditional random field over the tags of a sentence (Lafferty, McCallum and Pereira 2001), as in the
 * taggers of Huang, Xu and Yu (2015) and Lample et al. (2016, section 2.2).
 *
 * For n words with scores e_1 .. e_n (vectors of C tags) and tags y_1 .. y_n:
 *     s(y) = b[y_1] + sum over k of e_k[y_k] + sum over k > 1 of T[y_k-1, y_k] + f[y_n]      p(y) = e^s(y) / sum over all y' of e^s(y')
 * T, b and f are the parameters crf.transitions (a table with one entry, C x C: preceding tag x tag), crf.begin and
 * crf.end, initially zero.
 *
 * The forward algorithm keeps a_k: for each tag of word k, the log of the sum of e^s over all taggings of words 1 to k - 1, shifted
 * so that log sum exp(a_k) is 0 and a_k stays small in long sentences. The shift is what word k adds to the log of the sum over all paths. */
#include "parts.h"

static vpps_node one_hot(const part_crf *c, vpps_graph *g, uint32_t tag) {
    return vpps_smooth_label(g, vpps_ones(g, c->classes, 1), tag, 0);
}

/* Outputs log_softmax(a) to the next word (scatter), and the word's loss (push): the term that the word adds to the log of the sum over all paths,
 * minus the term that it adds to the right path's score. */
static void finish(vpps_graph *g, vpps_node a, vpps_node right) {
    vpps_scatter(g, vpps_log_softmax(g, a));
    vpps_push(g, vpps_sub(g, vpps_log_sum_exp(g, a), right));
}

vpps_status part_crf_make(part_crf *c, vpps_model *model, const net_config *config) {
    static const vpps_init zero = {.kind = VPPS_INIT_CONSTANT};
    const uint32_t n = c->classes = config->crf ? config->classes : 0;
    const part_parameter parameters[] = {
        {&c->transitions, "crf.transitions", 1, n, n, &zero},
        {&c->begin, "crf.begin", 0, n, 0, &zero},
        {&c->end, "crf.end", 0, n, 0, &zero},
    };
    vpps_graph *g;
    if (!n) return VPPS_OK;
    PART_TRY(parts_declare(model, parameters, PART_COUNT(parameters)));

    PART_TRY(vpps_cell_begin(model, "crf first", &g));
    const vpps_node a = vpps_add(g, vpps_pull(g, n, 1), vpps_parameter(g, c->begin));
    finish(g, a, vpps_dot(g, a, one_hot(c, g, vpps_pull_index(g))));
    PART_TRY(vpps_cell_end(g, &c->first));

    /* The cell of every word but the first. T has the scores of successive tags, `before` the scores of all ways to tag the words before.
     * Column i of T + before has the scores of each preceding tag if tag i follows it. */
    PART_TRY(vpps_cell_begin(model, "crf next", &g));
    vpps_node before = vpps_gather(g, 0, 0, n, 1);
    const vpps_node e = vpps_pull(g, n, 1), T = vpps_lookup(g, c->transitions, 0);
    const vpps_node left = one_hot(c, g, vpps_pull_index(g)), tag = one_hot(c, g, vpps_pull_index(g));
    const vpps_node paths = vpps_log_sum_exp(g, vpps_add(g, T, vpps_broadcast(g, before, n, n)));
    const vpps_node right = vpps_add(g, vpps_dot(g, e, tag), vpps_dot(g, left, vpps_matmul(g, T, tag)));
    finish(g, vpps_add(g, e, paths), right);
    PART_TRY(vpps_cell_end(g, &c->next));

    PART_TRY(vpps_cell_begin(model, "crf last", &g));
    before = vpps_gather(g, 0, 0, n, 1);
    const vpps_node f = vpps_parameter(g, c->end), ended = vpps_dot(g, f, one_hot(c, g, vpps_pull_index(g)));
    vpps_push(g, vpps_sub(g, vpps_log_sum_exp(g, vpps_add(g, before, f)), ended));
    return vpps_cell_end(g, &c->last);
}

static bool knows_all(const part_crf *c, uint32_t n, const uint32_t *tags) {
    for (uint32_t k = 0; tags && k < n; k++)
        if (tags[k] >= c->classes) return false;
    return tags && n;
}

net_heads part_crf_heads(const part_crf *c, net_heads heads) { return c->classes ? NET_HEADS_ALL : heads; }

void part_crf_add(const part_crf *c, vpps_graph *g, uint32_t n, const uint32_t *tags, const net_scores *scores) {
    if (!c->classes) return;
    for (uint32_t k = 0; k < n; k++) scores->nll[k] = VPPS_NO_NODE;
    if (!knows_all(c, n, tags)) return;
    const vpps_node *e = scores->logits;
    vpps_vertex at =
        vpps_apply(g, VPPS_APPLICATION(.cell = c->first, .n_pulls = 1, .pulls = e, .n_indices = 1, .indices = tags));
    scores->nll[0] = vpps_pushed(g, at, 0);
    for (uint32_t k = 1; k < n; k++) {
        at = vpps_apply(g, VPPS_APPLICATION(.cell = c->next, .n_children = 1, .children = &at, .n_pulls = 1,
                                            .pulls = &e[k], .n_indices = 2, .indices = &tags[k - 1]));
        scores->nll[k] = vpps_pushed(g, at, 0);
    }
    const vpps_vertex end = vpps_apply(g, VPPS_APPLICATION(.cell = c->last, .n_children = 1, .children = &at,
                                                           .n_indices = 1, .indices = &tags[n - 1]));
    scores->nll[n - 1] = vpps_add(g, scores->nll[n - 1], vpps_pushed(g, end, 0));
}

void part_crf_chain(void *net, vpps_graph *g, vpps_node chain[NET_CHAIN]) {
    const part_crf *c = &((const part_net *)net)->crf;
    chain[NET_CHAIN_NEXT] = vpps_lookup(g, c->transitions, 0);
    chain[NET_CHAIN_BEGIN] = vpps_parameter(g, c->begin);
    chain[NET_CHAIN_END] = vpps_parameter(g, c->end);
}
