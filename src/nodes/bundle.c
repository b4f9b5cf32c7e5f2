/* bundle.c - affine nodes: operand lists, and bundles of signatures that share them.
 *
 * The five products of a Tree-LSTM's inner vertex read the same two children. Their signatures have the same lists, so
 * they become one bundle: one instruction a level gathers each vector once and multiplies it with all the matrices.
 */
#include "nodes/work.h"

uint32_t *vpps_append(vpps_scheduler *s, size_t n) {
    if (s->script_words + n > UINT32_MAX) {
        s->work->status = vpps_fail(VPPS_POOL, "schedule: a script of %zu words or more; expected fewer than 2^32",
                                    s->script_words + n);
        return NULL;
    }
    if (!VPPS_RESERVE(s->script, s->script_capacity, s->script_words + n)) {
        s->work->status =
            vpps_fail(VPPS_MEMORY, "schedule: out of memory for a script of %zu words", s->script_words + n);
        return NULL;
    }
    uint32_t *at = s->script + s->script_words;
    s->script_words += n;
    return at;
}

/* Argument k of node number j of a signature. */
static vpps_node argument(const vpps_schedule_work *w, const uint32_t *nodes, uint32_t j, uint32_t k) {
    return w->flat->args[w->flat->nodes[nodes[j]].args + k];
}

static const uint32_t *nodes_of(const vpps_schedule_work *w, const vpps_signature_work *sw) {
    return w->order + w->groups[w->signature_groups[sw->first_group]].first;
}

/* A list with the same members, or UINT32_MAX. Lists that differ mostly do so at once. */
static uint32_t find_list(const vpps_schedule_work *w, const vpps_signature_work *sw, uint32_t cols, uint32_t k) {
    const uint32_t *nodes = nodes_of(w, sw);
    for (uint32_t i = 0; i < w->n_lists; i++) {
        const vpps_list *list = &w->lists[i];
        if (list->n != sw->n_nodes * cols || w->g->signatures[list->signature].cols != cols) continue;
        const uint32_t *others = nodes_of(w, &w->signatures[list->signature]);
        uint32_t j = 0;
        while (j < sw->n_nodes && argument(w, nodes, j, k) == argument(w, others, j, list->argument)) j++;
        if (j == sw->n_nodes) return i;
    }
    return UINT32_MAX;
}

/* Writes argument k of a signature's nodes as a list at the end of the script: its length, the values' offsets and,
 * where wanted, the gradients'. */
static bool write_list(vpps_scheduler *s, const vpps_signature_work *sw, uint32_t cols, vpps_list *list) {
    vpps_schedule_work *w = s->work;
    const uint32_t *nodes = nodes_of(w, sw);
    list->n = sw->n_nodes * cols;
    uint32_t *values = vpps_append(s, 2 + (size_t)list->n * 2);
    if (!values) return false;
    bool gathers = w->plan->host_products && w->training;
    *values++ = gathers ? vpps_take_pool(w, (uint64_t)list->n * list->elems) : 0;
    *values++ = list->n;
    uint32_t *gradients = values + list->n;
    bool wanted = false;
    for (uint32_t j = 0; j < sw->n_nodes; j++) {
        vpps_node x = argument(w, nodes, j, list->argument);
        uint32_t value = vpps_value_of(w, x), gradient = vpps_gradient_of(w, x);
        wanted |= w->flags[x] & VPPS_GRADIENT;
        for (uint32_t c = 0; c < cols; c++) {
            *values++ = value + c * list->elems;
            *gradients++ = gradient + c * list->elems;
        }
    }
    list->values = (uint32_t)(values - list->n - s->script);
    list->gradients = wanted ? list->values + list->n : 0;
    if (!wanted) s->script_words -= list->n;
    return true;
}

static bool make_lists(vpps_scheduler *s, uint32_t signature) {
    vpps_schedule_work *w = s->work;
    vpps_signature_work *sw = &w->signatures[signature];
    const vpps_signature *sig = &w->g->signatures[signature];
    if (!VPPS_RESERVE(w->pair_lists, w->pair_lists_capacity, w->n_pair_lists + sig->n_matrices) ||
        !VPPS_RESERVE(w->lists, w->lists_capacity, w->n_lists + sig->n_matrices)) {
        return false;
    }
    sw->first_list = w->n_pair_lists;
    for (uint32_t k = 0; k < sig->n_matrices; k++) {
        uint32_t found = find_list(w, sw, sig->cols, k);
        if (found == UINT32_MAX) {
            found = w->n_lists++;
            uint32_t elems = w->g->model->params[w->g->matrices[sig->first_matrix + k]].cols;
            w->lists[found] = (vpps_list){.elems = elems, .signature = signature, .argument = k};
            if (!write_list(s, sw, sig->cols, &w->lists[found])) return false;
        }
        w->pair_lists[w->n_pair_lists++] = found;
    }
    return true;
}

static bool same_slices(const vpps_schedule_work *w, const vpps_signature_work *a, const vpps_signature_work *b) {
    if (a->n_groups != b->n_groups || a->n_nodes != b->n_nodes) return false;
    for (uint32_t i = 0; i < a->n_groups; i++) {
        const vpps_group *ga = &w->groups[w->signature_groups[a->first_group + i]];
        const vpps_group *gb = &w->groups[w->signature_groups[b->first_group + i]];
        if (ga->level != gb->level || ga->n != gb->n) return false;
    }
    return true;
}

/* Adds the signature's lists to the bundle's; false, and nothing changes, when there are too many. */
static bool join_lists(const vpps_schedule_work *w, vpps_bundle *b, const vpps_signature_work *sw, uint32_t n_pairs) {
    uint32_t n = b->n_lists;
    for (uint32_t k = 0; k < n_pairs; k++) {
        uint32_t list = w->pair_lists[sw->first_list + k], i = 0;
        while (i < n && b->lists[i] != list) i++;
        if (i < n) continue;
        if (n == VPPS_MANY_PAIRS) return false;
        b->lists[n++] = list;
    }
    b->n_lists = n;
    return true;
}

static bool join_bundle(vpps_schedule_work *w, uint32_t signature) {
    vpps_signature_work *sw = &w->signatures[signature];
    const vpps_signature *sig = &w->g->signatures[signature];
    sw->next = VPPS_NO_OFFSET;
    for (uint32_t i = w->n_bundles; i-- > 0;) {
        vpps_bundle *b = &w->bundles[i];
        const vpps_signature_work *first = &w->signatures[b->first_signature];
        if (w->g->signatures[b->first_signature].cols != sig->cols || !same_slices(w, first, sw) ||
            w->pair_lists[first->first_list] != w->pair_lists[sw->first_list] ||
            !join_lists(w, b, sw, sig->n_matrices)) {
            continue;
        }
        uint32_t last = b->first_signature;
        while (w->signatures[last].next != VPPS_NO_OFFSET) last = w->signatures[last].next;
        w->signatures[last].next = signature;
        b->n_signatures++;
        sw->bundle = i;
        return true;
    }
    if (!VPPS_RESERVE(w->bundles, w->bundles_capacity, w->n_bundles + 1u)) return false;
    vpps_bundle *b = &w->bundles[w->n_bundles];
    *b = (vpps_bundle){.first_signature = signature, .n_signatures = 1, .n = sw->n_nodes * sig->cols};
    join_lists(w, b, sw, sig->n_matrices);
    sw->bundle = w->n_bundles++;
    return true;
}

static bool write_bundle(vpps_scheduler *s, vpps_bundle *b) {
    vpps_schedule_work *w = s->work;
    size_t n = 2 + 4 * (size_t)b->n_lists;
    for (uint32_t i = b->first_signature; i != VPPS_NO_OFFSET; i = w->signatures[i].next) {
        n += 5 + 2 * (size_t)w->g->signatures[i].n_matrices;
    }
    b->address = (uint32_t)s->script_words + 1;
    uint32_t *at = vpps_append(s, 1 + n);
    if (!at) return false;
    *at++ = (uint32_t)n;
    *at++ = b->n_lists;
    *at++ = b->n_signatures;
    for (uint32_t i = 0; i < b->n_lists; i++) {
        const vpps_list *list = &w->lists[b->lists[i]];
        bool partial = list->gradients && !w->transposed; /* the bundle's own: others may share the list */
        *at++ = list->values;
        *at++ = list->gradients;
        *at++ = partial ? vpps_take_pool(w, (uint64_t)w->plan->n_vps * list->n * list->elems) : 0;
        *at++ = list->elems;
        b->wants_gradients |= list->gradients != 0;
    }
    for (uint32_t i = b->first_signature; i != VPPS_NO_OFFSET; i = w->signatures[i].next) {
        const vpps_signature *sig = &w->g->signatures[i];
        const vpps_signature_work *sw = &w->signatures[i];
        const vpps_group *first = &w->groups[w->signature_groups[sw->first_group]];
        *at++ = first->value_base;
        *at++ = first->gradient_base;
        *at++ = sig->param;
        *at++ = sig->rows;
        *at++ = sig->n_matrices;
        for (uint32_t k = 0; k < sig->n_matrices; k++) {
            uint32_t list = 0;
            while (b->lists[list] != w->pair_lists[sw->first_list + k]) list++;
            *at++ = w->g->matrices[sig->first_matrix + k];
            *at++ = list;
        }
    }
    return true;
}

/* Vectors that one instruction multiplies, on the average, from where the transposed copy should pay: below, making the
 * copy costs more than the partial sums and the barrier do. An estimate from the bytes moved, not tuned. */
enum { TRANSPOSED_FROM = 4 };

static bool choose_transposed(const vpps_schedule_work *w) {
    vpps_transposed asked = w->request->transposed;
    if (asked == VPPS_TRANSPOSED_AUTO) asked = w->plan->transposed;
    if (!w->training || asked != VPPS_TRANSPOSED_AUTO) return w->training && asked == VPPS_TRANSPOSED_ALWAYS;
    uint64_t vectors = 0, slices = 0;
    for (uint32_t i = 0; i < w->n_groups; i++) {
        const vpps_signature *sig = &w->g->signatures[w->groups[i].signature];
        if (sig->op != VPPS_OP_AFFINE) continue;
        vectors += (uint64_t)w->groups[i].n * sig->cols;
        slices++;
    }
    return vectors >= TRANSPOSED_FROM * slices;
}

/* What the host multiplies at HOST. */
static bool write_host_list(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    w->host_list = 0;
    if (!w->training || !w->plan->host_products || !w->n_bundles) return true;
    uint32_t *at = vpps_append(s, 2 * (size_t)w->n_bundles);
    if (!at) return false;
    w->host_list = (uint32_t)(at - s->script);
    for (uint32_t i = 0; i < w->n_bundles; i++) {
        *at++ = w->bundles[i].address;
        *at++ = w->bundles[i].n;
    }
    return true;
}

vpps_status vpps_make_bundles(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    w->n_lists = w->n_pair_lists = w->n_bundles = 0;
    w->transposed = choose_transposed(w);
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        uint32_t signature = w->signature_order[i];
        if (w->g->signatures[signature].op != VPPS_OP_AFFINE) continue;
        if (!make_lists(s, signature) || !join_bundle(w, signature)) {
            return w->status != VPPS_OK ? w->status : vpps_fail(VPPS_MEMORY, "schedule: out of memory");
        }
    }
    for (uint32_t i = 0; i < w->n_bundles; i++) {
        if (!write_bundle(s, &w->bundles[i])) return w->status;
    }
    return write_host_list(s) ? VPPS_OK : w->status;
}
