/* request.c - checks a caller's request for values and gradients of nodes, and copies the results. */
#include "runtime/request.h"

enum { LEAST_REQUEST = VPPS_LEAST(vpps_request, no_parameters) };

static vpps_status check_list(const char *call, uint32_t n, const vpps_node *nodes, float *const *outs,
                              const char *what) {
    if (n && (!nodes || !outs))
        return vpps_fail(VPPS_ARGUMENT, "%s: the request has %u %s, but no list of nodes, or none of where to", call, n,
                         what);
    for (uint32_t i = 0; i < n; i++)
        if (!outs[i]) return vpps_fail(VPPS_ARGUMENT, "%s: the request's place of %s[%u] is NULL", call, what, i);
    return VPPS_OK;
}

static bool is_loss(const vpps_asked *a, vpps_node x) { return x == a->loss && x != VPPS_NO_NODE; }

/* Copies n nodes, except the loss, to the list `to`. Returns how many were copied. */
static uint32_t append(const vpps_asked *a, vpps_node *to, uint32_t n, const vpps_node *nodes) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!is_loss(a, nodes[i])) to[all++] = nodes[i];
    return all;
}

vpps_status vpps_asked_take(vpps_asked *a, const char *call, const vpps_request *given, vpps_node loss) {
    vpps_request *own = &a->request;
    *own = (vpps_request){.size = sizeof *own};
    a->loss = loss;
    a->n_values = a->n_gradients = 0;
    if (!given) return VPPS_OK;
    VPPS_TRY(vpps_take_struct(own, sizeof *own, LEAST_REQUEST, given, "vpps_request"));
    VPPS_TRY(check_list(call, own->n_values, own->values, own->value_outs, "values"));
    VPPS_TRY(check_list(call, own->n_gradients, own->gradients, own->gradient_outs, "gradients"));
    const size_t n = own->n_values + (size_t)own->n_gradients;
    if (!VPPS_RESERVE(a->nodes, n + 1) || !VPPS_RESERVE(a->reads, n + 1))
        return vpps_fail(VPPS_MEMORY, "%s: out of memory for the request", call);
    a->n_values = append(a, a->nodes, own->n_values, own->values);
    a->n_gradients = append(a, a->nodes + a->n_values, own->n_gradients, own->gradients);
    return VPPS_OK;
}

static uint32_t words_of(const vpps_graph *g, vpps_node x) { return vpps_words(vpps_plain_signature(g, x)); }

vpps_status vpps_asked_check(const vpps_asked *a, vpps_device *d, const vpps_graph *g) {
    const vpps_request *r = &a->request;
    if (a->pointers.on_device && a->n_values + (uint64_t)a->n_gradients < r->n_values + (uint64_t)r->n_gradients)
        return vpps_fail(VPPS_ARGUMENT,
                         "request: the loss, which the host has, cannot be copied to the device's memory");
    VPPS_TRY(vpps_check_outs(d, &a->pointers, g, r->n_values, r->values, r->value_outs, "request: value_outs"));
    return vpps_check_outs(d, &a->pointers, g, r->n_gradients, r->gradients, r->gradient_outs,
                           "request: gradient_outs");
}

/* Adds a planned copy of node x's value or gradient from an offset in device memory to the caller's array `out`. */
static void place(vpps_asked *a, uint32_t *n, const vpps_graph *g, uint32_t offset, vpps_node x, float *out) {
    a->reads[(*n)++] = (vpps_pool_copy){offset, words_of(g, x), out};
}

void vpps_asked_place(vpps_asked *a, const vpps_batch *b, const vpps_graph *g) {
    const vpps_request *r = &a->request;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_values; i++)
        if (!is_loss(a, r->values[i])) place(a, &n, g, vpps_batch_output(b, n), r->values[i], r->value_outs[i]);
    for (uint32_t i = 0; i < r->n_gradients; i++)
        if (!is_loss(a, r->gradients[i]))
            place(a, &n, g, vpps_batch_gradient(b, n - a->n_values), r->gradients[i], r->gradient_outs[i]);
}

vpps_status vpps_asked_read(vpps_asked *a, vpps_device *d, float loss) {
    const vpps_request *r = &a->request;
    for (uint32_t i = 0; i < r->n_values; i++)
        if (is_loss(a, r->values[i])) *r->value_outs[i] = loss;
    for (uint32_t i = 0; i < r->n_gradients; i++)
        if (is_loss(a, r->gradients[i])) *r->gradient_outs[i] = 1;
    return vpps_read_pool(d, &a->pointers, a->n_values + a->n_gradients, a->reads);
}

vpps_status vpps_asked_read_values(vpps_asked *a, vpps_device *d) {
    return vpps_read_pool(d, &a->pointers, a->n_values, a->reads);
}

vpps_status vpps_asked_read_gradients(vpps_asked *a, vpps_device *d) {
    return vpps_read_pool(d, &a->pointers, a->n_gradients, a->reads + a->n_values);
}
