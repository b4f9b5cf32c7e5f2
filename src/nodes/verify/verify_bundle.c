/* verify_bundle.c - affine nodes: AFFINE, its gradients, OUTER. Each VP does the rows it owns. Matrices are not in the
 * pool; a matrix's values and its gradient have one shadow for each owner's rows. */
#include "nodes/verify/verify.h"

typedef struct vpps_bundle_list {
    const uint32_t *values, *gradients; /* offsets of the vectors; gradients NULL: none */
    uint32_t partial, elements, members;
    uint32_t id; /* address of its record: what partial sums are labelled with */
} vpps_bundle_list;

typedef struct vpps_bundle_output {
    uint32_t values, gradients, bias, rows, n_pairs;
    const uint32_t *pairs; /* (matrix, list) */
} vpps_bundle_output;

/* A vector of an output: column `column` of an affine node; v->pair_args says which argument each pair is. */
typedef struct vpps_vector {
    uint32_t node, column;
} vpps_vector;

/* ---------------------------------------------------------------- reading a bundle */

static bool read_list(vpps_verifier *v, uint32_t bundle, uint32_t number, vpps_bundle_list *list) {
    const uint32_t *head = vpps_verify_script(v, bundle, 2);
    if (!head) return false;
    if (number >= head[0]) return VPPS_REFUSE(v, "the bundle has %u lists, not %u", head[0], number + 1);
    list->id = bundle + 2 + 4 * number;
    const uint32_t *w = vpps_verify_script(v, list->id, 4);
    if (!w) return false;
    const uint32_t *length = w[0] ? vpps_verify_script(v, (uint64_t)w[0] - 1, 1) : NULL;
    if (!length) return VPPS_REFUSE(v, "list %u of its bundle is nowhere", number);
    list->members = *length;
    list->values = vpps_verify_script(v, w[0], list->members);
    list->gradients = w[1] ? vpps_verify_script(v, w[1], list->members) : NULL;
    list->partial = w[2];
    list->elements = w[3];
    return list->values && (!w[1] || list->gradients);
}

/* Reads the output whose words are at *at, and moves on to the next. */
static bool read_output(vpps_verifier *v, uint64_t *at, vpps_bundle_output *output) {
    const uint32_t *w = vpps_verify_script(v, *at, 5);
    if (!w) return false;
    *output = (vpps_bundle_output){w[0], w[1], w[2], w[3], w[4], w + 5};
    if (!vpps_verify_script(v, *at + 5, 2 * (uint64_t)output->n_pairs)) return false;
    *at += 5 + 2 * (uint64_t)output->n_pairs;
    return true;
}

/* ---------------------------------------------------------------- which node is an output vector? */

/* Is pair q column `column` of the node's argument i? */
static bool pair_is(const vpps_verifier *v, uint32_t node, uint32_t column, uint32_t i, uint32_t matrix,
                    const vpps_bundle_list *list, uint32_t vector) {
    const uint32_t x = vpps_verify_arg(v, node, i), rows = vpps_verify_signature(v, x)->rows;
    return v->g->matrices[vpps_verify_signature(v, node)->first_matrix + i] == matrix && list->elements == rows &&
           list->values[vector] == (uint64_t)v->values[x] + (uint64_t)column * rows;
}

/* Finds for each pair an argument of its own. */
static bool pairs_fit(vpps_verifier *v, uint32_t bundle, const vpps_bundle_output *output, uint32_t vector,
                      uint32_t node, uint32_t column) {
    uint32_t n = output->n_pairs;
    if (vpps_verify_signature(v, node)->n_matrices != n || v->nodes[node].n_args != n) return false;
    if (!VPPS_RESERVE(v->pair_args, v->pair_args_capacity, n)) {
        v->status = VPPS_MEMORY;
        return false;
    }
    for (uint32_t q = 0; q < n; q++) {
        vpps_bundle_list list;
        if (!read_list(v, bundle, output->pairs[2 * q + 1], &list)) return false;
        if (vector >= list.members)
            return VPPS_REFUSE(v, "list %u has %u vectors", output->pairs[2 * q + 1], list.members);
        uint32_t i = q; /* the usual order first */
        if (!pair_is(v, node, column, i, output->pairs[2 * q], &list, vector)) i = 0;
        for (; i < n; i++) {
            bool taken = false;
            for (uint32_t p = 0; p < q && !taken; p++) taken = v->pair_args[p] == i;
            if (!taken && pair_is(v, node, column, i, output->pairs[2 * q], &list, vector)) break;
        }
        if (i == n) return false;
        v->pair_args[q] = i;
    }
    return true;
}

/* Finds the affine node that is this vector of the output. */
static bool find_vector(vpps_verifier *v, uint32_t bundle, const vpps_bundle_output *output, uint32_t vector,
                        vpps_vector *found) {
    uint64_t offset = (uint64_t)output->values + (uint64_t)vector * output->rows;
    if (!vpps_verify_inside(v, offset, output->rows)) return false;
    for (uint32_t r = v->value_regions.n; vpps_verify_region(&v->value_regions, (uint32_t)offset, &r);) {
        const vpps_region *region = &v->value_regions.at[r];
        for (uint32_t i = 0; i < region->n; i++) {
            uint32_t node = v->value_regions.nodes[region->first + i], at = (uint32_t)offset - region->start;
            const vpps_signature *s = vpps_verify_signature(v, node);
            if (s->op != VPPS_OP_AFFINE || s->rows != output->rows || s->param != output->bias || at % s->rows)
                continue;
            if (pairs_fit(v, bundle, output, vector, node, at / s->rows)) {
                *found = (vpps_vector){node, at / s->rows};
                return true;
            }
            if (v->status != VPPS_OK) return false;
        }
    }
    return VPPS_REFUSE(v, "vector %u of the output at %u is no affine node with these arguments", vector,
                       output->values);
}

/* ---------------------------------------------------------------- accesses of a VP */

static bool read_lists(vpps_verifier *v, const vpps_bundle_output *output, const vpps_vector *at) {
    for (uint32_t q = 0; q < output->n_pairs; q++) {
        const uint32_t x = vpps_verify_arg(v, at->node, v->pair_args[q]), rows = vpps_verify_signature(v, x)->rows;
        if (!vpps_verify_read_value(v, x, at->column * rows, rows)) return false;
    }
    return true;
}

/* dy: elements [from, end) of the vector's gradient. */
static bool read_output_gradient(vpps_verifier *v, const vpps_bundle_output *output, const vpps_vector *at,
                                 uint32_t vector, vpps_rows rows) {
    uint32_t slot = v->slot_of[at->node], from = at->column * output->rows;
    if (slot == UINT32_MAX) return VPPS_REFUSE(v, "node %u (affine) has no gradient", at->node);
    if ((uint64_t)output->gradients + (uint64_t)vector * output->rows != (uint64_t)v->slots[slot].start + from) {
        return VPPS_REFUSE(v, "vector %u of the output's gradients at %u is not that of node %u", vector,
                           output->gradients, at->node);
    }
    return vpps_verify_read_gradient(v, slot, from + rows.first, rows.end - rows.first);
}

/* ---------------------------------------------------------------- AFFINE, OUTER */

static bool run_affine(vpps_verifier *v, const vpps_bundle_output *output, const vpps_vector *at) {
    vpps_rows rows = vpps_verify_own(v, output->rows);
    if (rows.first == rows.end) return true;
    if (!read_lists(v, output, at)) return false;
    for (uint32_t q = 0; q < output->n_pairs; q++) {
        if (!vpps_verify_read_matrix(v, output->pairs[2 * q], v->vp)) return false;
    }
    if (output->bias != VPPS_NO_PARAM &&
        !vpps_verify_read(v, v->plan->values[output->bias] + rows.first, rows.end - rows.first, VPPS_HOLDS_INITIAL)) {
        return false;
    }
    return vpps_verify_write_value(v, at->node, at->column * output->rows + rows.first, rows.end - rows.first);
}

static bool add_to_matrix(vpps_verifier *v, uint32_t matrix, uint32_t edge, uint32_t column) {
    vpps_shadow *s = &v->matrix_gradients[vpps_verify_owner(v, matrix, v->vp)];
    if (v->edges[edge].outer == VPPS_NO_BITS) {
        return VPPS_REFUSE(v, "node %u does not contribute to matrix %s", v->edges[edge].node, v->params[matrix].name);
    }
    int64_t bit = v->edges[edge].outer + (int64_t)column * v->n_vps + v->vp;
    if (vpps_verify_bit(v, bit)) {
        return VPPS_REFUSE(v, "node %u contributes to matrix %s a second time", v->edges[edge].node,
                           v->params[matrix].name);
    }
    if (s->token == VPPS_HOLDS_SPENT) return VPPS_REFUSE(v, "matrix %s is updated already", v->params[matrix].name);
    vpps_verify_set_bit(v, bit);
    s->count++;
    return vpps_verify_touch_write(v, s, "gradient of matrix", matrix);
}

/* Where the host makes the products, VPs without rows gather their part of the lists, too. */
static bool run_outer(vpps_verifier *v, const vpps_bundle_output *output, const vpps_vector *at, uint32_t vector) {
    vpps_rows rows = vpps_verify_own(v, output->rows);
    if (rows.first == rows.end && !v->plan->host_products) return true;
    if (rows.first < rows.end && !read_output_gradient(v, output, at, vector, rows)) return false;
    if (!read_lists(v, output, at)) return false;
    for (uint32_t q = 0; q < output->n_pairs; q++) {
        uint32_t edge = v->edge_first[at->node] + v->pair_args[q];
        if (!add_to_matrix(v, output->pairs[2 * q], edge, at->column)) return false;
    }
    if (output->bias == VPPS_NO_PARAM || rows.first == rows.end) return true;
    uint32_t edge = v->edge_first[at->node] + v->nodes[at->node].n_args;
    int64_t bits = v->edges[edge].bits + (int64_t)at->column * output->rows + rows.first;
    return vpps_verify_contribute(v, edge, rows.first, rows.end - rows.first, bits, true);
}

/* ---------------------------------------------------------------- AFFINE_T, AFFINE_P, REDUCE_P */

/* Adds elements `rows` of pair q's share to the gradient of its argument. */
static bool add_to_argument(vpps_verifier *v, const vpps_vector *at, uint32_t q, const vpps_bundle_list *list,
                            uint32_t vector, vpps_rows rows) {
    const uint32_t edge = v->edge_first[at->node] + v->pair_args[q];
    const uint32_t x = vpps_verify_arg(v, at->node, v->pair_args[q]), from = at->column * list->elements + rows.first;
    if (v->edges[edge].bits == VPPS_NO_BITS) { return VPPS_REFUSE(v, "the gradient of node %u is not asked for", x); }
    if (list->gradients[vector] != (uint64_t)v->gradients[x] + (uint64_t)at->column * list->elements) {
        return VPPS_REFUSE(v, "vector %u of the list's gradients is not that of node %u", vector, x);
    }
    return vpps_verify_contribute(v, edge, from, rows.end - rows.first, v->edges[edge].bits + from, true);
}

/* Does the VP own elements of some list that wants gradients? */
static bool owns_elements(const vpps_verifier *v, const vpps_bundle_list *list) {
    vpps_rows rows = vpps_verify_own(v, list->elements);
    return list->gradients && rows.first < rows.end;
}

static bool run_transposed(vpps_verifier *v, uint32_t bundle, const vpps_bundle_output *output, const vpps_vector *at,
                           uint32_t vector) {
    for (uint32_t q = 0; q < output->n_pairs; q++) {
        vpps_bundle_list list;
        uint32_t matrix = output->pairs[2 * q];
        if (!read_list(v, bundle, output->pairs[2 * q + 1], &list)) return false;
        if (!owns_elements(v, &list)) continue;
        if (!v->transposed[vpps_verify_owner(v, matrix, v->vp)]) {
            return VPPS_REFUSE(v, "matrix %s has not been transposed", v->params[matrix].name);
        }
        if (!read_output_gradient(v, output, at, vector, (vpps_rows){0, output->rows}) ||
            !add_to_argument(v, at, q, &list, vector, vpps_verify_own(v, list.elements))) {
            return false;
        }
    }
    return true;
}

static bool run_reduce(vpps_verifier *v, uint32_t bundle, const vpps_bundle_output *output, const vpps_vector *at,
                       uint32_t vector) {
    for (uint32_t q = 0; q < output->n_pairs; q++) {
        vpps_bundle_list list;
        if (!read_list(v, bundle, output->pairs[2 * q + 1], &list)) return false;
        if (owns_elements(v, &list) && !add_to_argument(v, at, q, &list, vector, vpps_verify_own(v, list.elements)))
            return false;
    }
    return true;
}

/* What the VP's own rows of the matrices give: all elements of each list's share. */
static bool read_for_partial(vpps_verifier *v, uint32_t bundle, const vpps_bundle_output *output, const vpps_vector *at,
                             uint32_t vector) {
    bool used = false;
    for (uint32_t q = 0; q < output->n_pairs; q++) {
        vpps_bundle_list list;
        if (!read_list(v, bundle, output->pairs[2 * q + 1], &list)) return false;
        used |= list.gradients != NULL;
    }
    vpps_rows rows = vpps_verify_own(v, output->rows);
    if (!used || rows.first == rows.end) return true;
    for (uint32_t q = 0; q < output->n_pairs; q++) {
        if (!vpps_verify_read_matrix(v, output->pairs[2 * q], v->vp)) return false;
    }
    return read_output_gradient(v, output, at, vector, rows);
}

static bool touch_partials(vpps_verifier *v, uint32_t bundle, uint32_t n_lists, uint32_t vector, bool write) {
    for (uint32_t i = 0; i < n_lists; i++) {
        vpps_bundle_list list;
        if (!read_list(v, bundle, i, &list)) return false;
        if (!list.gradients) continue;
        if (vector >= list.members) return VPPS_REFUSE(v, "list %u has %u vectors", i, list.members);
        if (list.partial < v->plan->batch) return VPPS_REFUSE(v, "list %u has no place for partial sums", i);
        const uint32_t token = VPPS_HOLDS_PARTIAL | list.id;
        vpps_rows rows = write ? (vpps_rows){0, list.elements} : vpps_verify_own(v, list.elements);
        if (rows.first == rows.end) continue;
        for (uint32_t vp = write ? v->vp : 0; vp < (write ? v->vp + 1 : v->n_vps); vp++) {
            uint64_t offset = list.partial + ((uint64_t)vp * list.members + vector) * list.elements + rows.first;
            if (!vpps_verify_inside(v, offset, rows.end - rows.first)) return false;
            if (!write && !vpps_verify_read(v, (uint32_t)offset, rows.end - rows.first, token)) return false;
            if (!write) continue;
            if (v->pool[offset].token == token)
                return VPPS_REFUSE(v, "partial sums at %" PRIu64 " are there already", offset);
            if (!vpps_verify_write(v, (uint32_t)offset, rows.end - rows.first, token)) return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- bundles */

static bool run_output(vpps_verifier *v, uint32_t opcode, uint32_t bundle, const vpps_bundle_output *output,
                       uint32_t vector) {
    vpps_vector at;
    if (!find_vector(v, bundle, output, vector, &at)) return false;
    switch (opcode) {
    case VPPS_I_AFFINE: return run_affine(v, output, &at);
    case VPPS_I_AFFINE_T: return run_transposed(v, bundle, output, &at, vector);
    case VPPS_I_AFFINE_P: return read_for_partial(v, bundle, output, &at, vector);
    case VPPS_I_REDUCE_P: return run_reduce(v, bundle, output, &at, vector);
    default: return run_outer(v, output, &at, vector);
    }
}

bool vpps_verify_bundle(vpps_verifier *v, uint32_t opcode, uint32_t first, uint32_t n, uint32_t bundle) {
    const uint32_t *head = vpps_verify_script(v, bundle, 2);
    if (!head) return false;
    if (!n) return VPPS_REFUSE(v, "it has no vectors");
    if (opcode != VPPS_I_AFFINE && !v->training) return VPPS_REFUSE(v, "gradients were not asked for");
    if (opcode == VPPS_I_REDUCE_P) {
        for (uint64_t j = first; j < (uint64_t)first + n; j++) {
            if (!touch_partials(v, bundle, head[0], (uint32_t)j, false)) return false;
        }
    }
    uint64_t at = bundle + 2 + 4 * (uint64_t)head[0];
    for (uint32_t o = 0; o < head[1]; o++) {
        vpps_bundle_output output;
        if (!read_output(v, &at, &output)) return false;
        if (!output.rows) return VPPS_REFUSE(v, "output %u of the bundle has no rows", o);
        for (uint64_t j = first; j < (uint64_t)first + n; j++) {
            if (!run_output(v, opcode, bundle, &output, (uint32_t)j)) return false;
        }
    }
    for (uint64_t j = first; opcode == VPPS_I_AFFINE_P && j < (uint64_t)first + n; j++) {
        if (!touch_partials(v, bundle, head[0], (uint32_t)j, true)) return false;
    }
    return true;
}
