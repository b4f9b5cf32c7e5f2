/* kept_values.c - kept values: node values that stay on the device for later graphs. A graph lists the nodes whose values are to be kept.
 * The graph's next run requests these values as if for the host, then copies each to a reserved place in the memory pool. A node of a later
 * graph that reads a kept value is a lookup at that place. */
#include "runtime/handle.h"

#include <inttypes.h>

enum { DEFAULT_WORDS = 16 << 20 };

/* Sets *words to how much device memory to reserve for values kept between batches: option keep_bytes, or a default. */
static vpps_status words_to_take(const vpps_handle *h, uint32_t *words) {
    const uint64_t room = h->target->pool_words - h->target->batch, asked = h->options.keep_bytes / 4;
    if (asked >= room)
        return vpps_fail(VPPS_POOL, "keep: keep_bytes is %" PRIu64 "; the pool has %" PRIu64 " bytes beside parameters",
                         h->options.keep_bytes, 4 * room);
    const uint64_t most = asked ? asked : room / 2 < DEFAULT_WORDS ? room / 2 : DEFAULT_WORDS;
    *words = (uint32_t)most / VPPS_KEPT_GRAIN * VPPS_KEPT_GRAIN;
    return VPPS_OK;
}

/* Reserves device memory for values that are kept between batches, unless an earlier call did. */
static vpps_status need_space(vpps_handle *h) {
    uint32_t words = 0;
    if (h->kept.n_values) return VPPS_OK;
    VPPS_TRY(words_to_take(h, &words));
    vpps_handle_finish(h);
    VPPS_TRY(vpps_handle_whole(h));
    if (!vpps_kept_space_open(&h->kept, h->target->batch, words)) return vpps_fail(VPPS_MEMORY, "keep: out of memory");
    const vpps_status status = h->device->table->reserve_kept(h->device, words);
    if (status != VPPS_OK) vpps_kept_space_free(&h->kept);
    return status;
}

static vpps_status add_value(vpps_handle *h, uint32_t rows, uint32_t cols, vpps_kept_value **out) {
    VPPS_TRY(need_space(h));
    vpps_status status = VPPS_OK;
    *out = vpps_kept_space_add(&h->kept, rows, cols, &status);
    if (status == VPPS_MEMORY) return vpps_fail(status, "keep: out of memory for %u values", h->kept.n_live);
    if (*out) return VPPS_OK;
    return vpps_fail(status,
                     "keep: no room for %u x %u numbers; %u kept values take %" PRIu64 " of %" PRIu64
                     " bytes. Release what is no longer read, or set keep_bytes",
                     rows, cols, h->kept.n_live, 4 * (uint64_t)h->kept.used_words, 4 * (uint64_t)h->kept.words);
}

vpps_status vpps_keep(vpps_handle *h, vpps_graph *g, vpps_node x, vpps_value *out) {
    VPPS_NEED(out);
    *out = VPPS_NO_VALUE;
    VPPS_TRY(vpps_handle_check(h, "vpps_keep"));
    VPPS_NEED(g);
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_handle_whole(h));
    if (g->model != h->model)
        return vpps_fail(VPPS_ARGUMENT, "keep: the graph belongs to another model than the handle");
    if (g->recording) return vpps_fail(VPPS_STATE, "keep: the cell %s is being recorded", g->recording->name);
    const vpps_signature *s = vpps_plain_signature(g, x);
    if (!s) return vpps_fail(VPPS_ARGUMENT, "keep: %u is not a node; the graph has %u", x, g->n_nodes);
    if (!VPPS_RESERVE(g->keeps, g->n_keeps + 1)) return vpps_fail(VPPS_MEMORY, "keep: out of memory");
    vpps_kept_value *v;
    VPPS_TRY(add_value(h, s->rows, s->cols, &v));
    g->keeps[g->n_keeps++] = (vpps_kept_node){ *out = v->value, h->number, x};
    return VPPS_OK;
}

vpps_status vpps_keep_data(vpps_handle *h, uint32_t rows, uint32_t cols, const float *data, vpps_value *out) {
    VPPS_NEED(out);
    *out = VPPS_NO_VALUE;
    VPPS_TRY(vpps_handle_check(h, "vpps_keep_data"));
    VPPS_NEED(data);
    const uint64_t n = (uint64_t)rows * cols;
    if (!n || n >= VPPS_MANY_ELEMS)
        return vpps_fail(VPPS_ARGUMENT, "keep: %u x %u numbers; expected 1 to 2^22 - 1", rows, cols);
    vpps_handle_finish(h);
    VPPS_TRY(vpps_handle_whole(h));
    VPPS_TRY(vpps_check_array(h->device, &h->pointers, data, (uint32_t)n, "keep_data: data"));
    vpps_kept_value *v;
    VPPS_TRY(add_value(h, rows, cols, &v));
    const vpps_device_table *table = h->device->table;
    const vpps_pool_copy copy = {v->offset, (uint32_t)n, (float *)(uintptr_t)data};
    const vpps_status status = h->pointers.on_device ? table->trade(h->device, true, 1, &copy, h->pointers.stream)
                                                     : table->write(h->device, v->offset, (uint32_t)n, data);
    if (status != VPPS_OK) return vpps_kept_space_release(&h->kept, v), status;
    v->made = true;
    *out = v->value;
    return VPPS_OK;
}

/* Returns the record of a value on the device that the user passed to `call`; NULL: failed, with an error message. */
static vpps_kept_value *find(const vpps_handle *h, const char *call, vpps_value value) {
    vpps_kept_value *v = vpps_kept_space_find(&h->kept, value);
    if (!v) vpps_fail(VPPS_STATE, "%s: the value was released, or this handle never kept it", call);
    return v;
}

/* Returns the record of a value that an earlier batch left on the device for graph g to read. NULL: g has failed. */
static const vpps_kept_value *to_read(vpps_graph *g, vpps_handle *h, vpps_value value) {
    VPPS_NEED_OR(NULL, g);
    if (g->status != VPPS_OK) return NULL;
    const vpps_status status = vpps_handle_here(h, "vpps_kept");
    if (status != VPPS_OK) return vpps_graph_fail(g, status, "%s", vpps_error_message()), NULL;
    if (g->model != h->model)
        return vpps_graph_fail(g, VPPS_ARGUMENT, "kept: the graph belongs to another model than the handle"), NULL;
    const vpps_kept_value *v = find(h, "kept", value);
    if (!v) vpps_graph_fail(g, VPPS_STATE, "%s", vpps_error_message());
    return v;
}

vpps_node vpps_kept(vpps_graph *g, vpps_handle *h, vpps_value value) {
    const vpps_kept_value *v = to_read(g, h, value);
    return v ? vpps_make_kept(g, v->rows, v->cols, v->offset, value, h->number) : VPPS_NO_NODE;
}

vpps_node vpps_kept_columns(vpps_graph *g, vpps_handle *h, vpps_value value) {
    const vpps_kept_value *v = to_read(g, h, value);
    vpps_node last = VPPS_NO_NODE;
    for (uint32_t i = 0; v && i < v->cols; i++) {
        last = vpps_make_kept(g, v->rows, 1, v->offset + i * v->rows, value, h->number);
        if (last == VPPS_NO_NODE) return last;
    }
    return v ? last - (v->cols - 1) : VPPS_NO_NODE;
}

vpps_status vpps_read_kept(vpps_handle *h, vpps_value value, float *out) {
    VPPS_TRY(vpps_handle_check(h, "vpps_read_kept"));
    VPPS_NEED(out);
    vpps_handle_finish(h);
    VPPS_TRY(vpps_handle_whole(h));
    const vpps_kept_value *v = find(h, "read_kept", value);
    if (!v) return VPPS_STATE;
    if (!v->made) return vpps_fail(VPPS_STATE, "read_kept: no run of its graph has computed the value");
    VPPS_TRY(vpps_check_array(h->device, &h->pointers, out, v->rows * v->cols, "read_kept: out"));
    return vpps_read_pool(h->device, &h->pointers, 1, &(vpps_pool_copy){v->offset, v->rows * v->cols, out});
}

vpps_status vpps_kept_shape(vpps_handle *h, vpps_value value, uint32_t *rows, uint32_t *cols) {
    VPPS_TRY(vpps_handle_here(h, "vpps_kept_shape"));
    const vpps_kept_value *v = find(h, "kept_shape", value);
    if (!v) return VPPS_STATE;
    if (rows) *rows = v->rows;
    if (cols) *cols = v->cols;
    return VPPS_OK;
}

vpps_status vpps_release(vpps_handle *h, vpps_value value) {
    VPPS_TRY(vpps_handle_check(h, "vpps_release"));
    if (value == VPPS_NO_VALUE) return VPPS_OK;
    vpps_kept_value *v = find(h, "release", value);
    if (!v) return VPPS_STATE;
    vpps_kept_space_release(&h->kept, v);
    return VPPS_OK;
}

vpps_status vpps_keep_check(const vpps_handle *h, const vpps_graph *g) {
    for (size_t i = 0; i < g->n_kept; i++) {
        const vpps_kept_node *n = &g->kept[i];
        if (n->handle != h->number)
            return vpps_fail(VPPS_STATE, "node %u reads a value that another handle keeps", n->node);
        const vpps_kept_value *v = vpps_kept_space_find(&h->kept, n->value);
        if (!v) return vpps_fail(VPPS_STATE, "node %u reads a kept value that was released", n->node);
        if (!v->made)
            return vpps_fail(VPPS_STATE, "node %u reads a kept value that no run of its graph has computed", n->node);
    }
    return VPPS_OK;
}

/* Returns whether the value on the device belongs to this handle and has not been released. */
static bool is_wanted(const vpps_handle *h, const vpps_kept_node *n) {
    return n->handle == h->number && vpps_kept_space_find(&h->kept, n->value);
}

vpps_status vpps_keep_ask(vpps_handle *h, const vpps_graph *g, vpps_batch_request *request) {
    vpps_kept_space *k = &h->kept;
    uint32_t n = k->n_read = request->n_outputs;
    if (!g->n_keeps) return VPPS_OK;
    if (!VPPS_RESERVE(k->nodes, n + g->n_keeps) || !VPPS_RESERVE(k->copies, g->n_keeps))
        return vpps_fail(VPPS_MEMORY, "keep: out of memory for %zu values", g->n_keeps);
    if (n) memcpy(k->nodes, request->outputs, n * sizeof *k->nodes);
    for (size_t i = 0; i < g->n_keeps; i++) {
        if (!is_wanted(h, &g->keeps[i])) continue;
        if (g->keeps[i].node == request->loss)
            return vpps_fail(VPPS_ARGUMENT, "keep: node %u is the loss, which vpps_sync_latest_loss tells",
                             request->loss);
        k->nodes[n++] = g->keeps[i].node;
    }
    request->outputs = k->nodes;
    request->n_outputs = n;
    return VPPS_OK;
}

/* Returns whether a value at this offset is a parameter itself, which an update may change. (Entries of sharded tables are copies.) */
static bool is_parameter(const vpps_handle *h, uint32_t offset) {
    return offset >= h->plan.sharded && offset < h->plan.batch;
}

vpps_status vpps_keep_parameters(vpps_handle *h, const vpps_graph *g, const vpps_batch *b) {
    uint32_t at = h->kept.n_read;
    for (size_t i = 0; i < g->n_keeps; i++) {
        if (!is_wanted(h, &g->keeps[i])) continue;
        const vpps_kept_value *v = vpps_kept_space_find(&h->kept, g->keeps[i].value);
        const uint32_t from = vpps_batch_output(b, at++);
        if (is_parameter(h, from)) VPPS_TRY(h->device->table->copy(h->device, v->offset, from, v->rows * v->cols));
    }
    return VPPS_OK;
}

void vpps_keep_launched(vpps_handle *h, vpps_graph *g, const vpps_batch *b) {
    vpps_kept_space *k = &h->kept;
    uint32_t left = 0, at = k->n_read;
    for (size_t i = 0; i < g->n_keeps; i++) {
        const vpps_kept_node wish = g->keeps[i];
        if (is_wanted(h, &wish)) {
            const uint32_t from = vpps_batch_output(b, at++);
            vpps_kept_space_find(k, wish.value)->made = true;
            if (!is_parameter(h, from)) k->copies[k->n_copies++] = (vpps_kept_copy){wish.value, from};
        } else if (wish.handle != h->number) {
            g->keeps[left++] = wish;
        }
    }
    g->n_keeps = left;
}

vpps_status vpps_keep_finished(vpps_handle *h) {
    vpps_kept_space *k = &h->kept;
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < k->n_copies && status == VPPS_OK; i++) {
        const vpps_kept_value *v = vpps_kept_space_find(k, k->copies[i].value);
        if (v) status = h->device->table->copy(h->device, v->offset, k->copies[i].from, v->rows * v->cols);
    }
    k->n_copies = 0;
    return status;
}
