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
    if (!VPPS_RESERVE(a->nodes, a->nodes_capacity, own->n_values + (size_t)own->n_gradients + 1))
        return vpps_fail(VPPS_MEMORY, "backward: out of memory for the request");
    a->n_values = append(a->nodes, own->n_values, own->values, loss);
    a->n_gradients = append(a->nodes + a->n_values, own->n_gradients, own->gradients, loss);
    return VPPS_OK;
}

static vpps_status words_of(const vpps_graph *g, vpps_node x, uint32_t *words) {
    uint32_t rows, cols;
    VPPS_TRY(vpps_node_shape(g, x, &rows, &cols));
    *words = rows * cols;
    return VPPS_OK;
}

static vpps_status read_gradient(vpps_device *d, const vpps_batch *b, uint32_t k, uint32_t words, float *out) {
    const uint32_t at = vpps_batch_gradient(b, k);
    if (at != VPPS_NONE) return d->table->read(d, at, words, out);
    memset(out, 0, words * sizeof *out);
    return VPPS_OK;
}

vpps_status vpps_asked_read(const vpps_asked *a, vpps_device *d, const vpps_batch *b, const vpps_graph *g, float loss) {
    const vpps_request *r = &a->request;
    uint32_t words;
    for (uint32_t i = 0, k = 0; i < r->n_values; i++) {
        if (r->values[i] == a->loss) {
            *r->value_outs[i] = loss;
            continue;
        }
        VPPS_TRY(words_of(g, r->values[i], &words));
        VPPS_TRY(d->table->read(d, vpps_batch_output(b, k++), words, r->value_outs[i]));
    }
    for (uint32_t i = 0, k = 0; i < r->n_gradients; i++) {
        if (r->gradients[i] == a->loss) {
            *r->gradient_outs[i] = 1;
            continue;
        }
        VPPS_TRY(words_of(g, r->gradients[i], &words));
        VPPS_TRY(read_gradient(d, b, k++, words, r->gradient_outs[i]));
    }
    return VPPS_OK;
}
