/* request.c - see request.h. */
#include "runtime/request.h"

enum { LEAST_REQUEST = VPPS_LEAST(vpps_request, no_parameters) };

static vpps_status check_list(uint32_t n, const vpps_node *nodes, float *const *outs, const char *what) {
    if (n && (!nodes || !outs))
        return vpps_fail(VPPS_ARGUMENT, "backward: the request has %u %s, but no list of nodes, or none of where to", n,
                         what);
    for (uint32_t i = 0; i < n; i++)
        if (!outs[i]) return vpps_fail(VPPS_ARGUMENT, "backward: the request's place of %s[%u] is NULL", what, i);
    return VPPS_OK;
}

/* Appends the nodes that are not the loss; how many. */
static uint32_t append(vpps_node *to, uint32_t n, const vpps_node *nodes, vpps_node loss) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] != loss) to[all++] = nodes[i];
    return all;
}

vpps_status vpps_asked_take(vpps_asked *a, const vpps_request *given, vpps_node loss) {
    vpps_request *own = &a->request;
    *own = (vpps_request){.size = sizeof *own};
    a->loss = loss;
    a->n_values = a->n_gradients = 0;
    if (!given) return VPPS_OK;
    VPPS_TRY(vpps_take_struct(own, sizeof *own, LEAST_REQUEST, given, "vpps_request"));
    VPPS_TRY(check_list(own->n_values, own->values, own->value_outs, "values"));
    VPPS_TRY(check_list(own->n_gradients, own->gradients, own->gradient_outs, "gradients"));
    if (loss == VPPS_NO_NODE && vpps_asked_nodes(a))
        return vpps_fail(VPPS_ARGUMENT, "backward: the request names nodes, but no loss is given");
    const size_t n = own->n_values + (size_t)own->n_gradients;
    if (!VPPS_RESERVE(a->nodes, n + 1) || !VPPS_RESERVE(a->reads, n + 1))
        return vpps_fail(VPPS_MEMORY, "backward: out of memory for the request");
    a->n_values = append(a->nodes, own->n_values, own->values, loss);
    a->n_gradients = append(a->nodes + a->n_values, own->n_gradients, own->gradients, loss);
    return VPPS_OK;
}

static uint32_t words_of(const vpps_graph *g, vpps_node x) { return vpps_words(vpps_plain_signature(g, x)); }

vpps_status vpps_asked_read(vpps_asked *a, vpps_device *d, const vpps_batch *b, const vpps_graph *g, float loss) {
    const vpps_request *r = &a->request;
    uint32_t n = 0;
    for (uint32_t i = 0, k = 0; i < r->n_values; i++) {
        if (r->values[i] == a->loss) {
            *r->value_outs[i] = loss;
        } else {
            a->reads[n++] = (vpps_pool_read){vpps_batch_output(b, k++), words_of(g, r->values[i]), r->value_outs[i]};
        }
    }
    for (uint32_t i = 0, k = 0; i < r->n_gradients; i++) {
        if (r->gradients[i] == a->loss) {
            *r->gradient_outs[i] = 1;
            continue;
        }
        const uint32_t at = vpps_batch_gradient(b, k++), words = words_of(g, r->gradients[i]);
        if (at == VPPS_NONE) {
            memset(r->gradient_outs[i], 0, words * sizeof(float));
        } else {
            a->reads[n++] = (vpps_pool_read){at, words, r->gradient_outs[i]};
        }
    }
    return vpps_read_pool(d, n, a->reads);
}
