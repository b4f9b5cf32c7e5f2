/* phase.c - items and their phases.
 *
 * An item is what is encoded together: a group forward, one argument's gradients of a group, a slice of a bundle. Its
 * phase is the earliest that its operands allow: the phase after the one that made an operand, or the same one where
 * both maker and user do every VP's own rows. So a cell's elementwise tail runs in the phase of its products, and a
 * tree costs one phase forward and one or two backward for each of its levels.
 */
#include "nodes/work.h"

/* The earliest phase for work on a tensor. The same rule orders a read after writes and a write after writes. */
static uint32_t after(const vpps_track *t, bool owned) {
    if (t->phase < 0) return 0;
    return (uint32_t)t->phase + !(owned && t->owned);
}

static void wrote(vpps_track *t, uint32_t phase, bool owned) {
    t->owned = owned && (t->phase < 0 || t->owned);
    if ((int32_t)phase > t->phase) t->phase = (int32_t)phase;
}

static void use_parameter(vpps_schedule_work *w, vpps_param p, uint32_t phase) {
    w->parameter_used[p] = vpps_max_u32(w->parameter_used[p], phase + 1);
}

static vpps_item *add_item(vpps_schedule_work *w, vpps_item item) {
    if (!VPPS_RESERVE(w->items, w->items_capacity, w->n_items + 1u)) {
        w->status = vpps_fail(VPPS_MEMORY, "schedule: out of memory");
        return NULL;
    }
    w->items[w->n_items] = item;
    return &w->items[w->n_items++];
}

static const vpps_signature *signature_of(const vpps_schedule_work *w, const vpps_group *group) {
    return &w->g->signatures[group->signature];
}

static bool make_tracks(vpps_schedule_work *w) {
    uint32_t n_params = (uint32_t)w->g->model->n_params;
    w->n_tracks = n_params + 2 * w->n_groups;
    if (!VPPS_RESERVE(w->tracks, w->tracks_capacity, w->n_tracks) ||
        !VPPS_RESERVE(w->parameter_used, w->parameter_used_capacity, n_params + 1u)) {
        return false;
    }
    for (uint32_t i = 0; i < w->n_tracks; i++) w->tracks[i] = (vpps_track){-1, true};
    memset(w->parameter_used, 0, n_params * sizeof *w->parameter_used);
    for (uint32_t i = 0; i < w->n_groups; i++) {
        const vpps_signature *s = signature_of(w, &w->groups[i]);
        w->groups[i].value = n_params + 2 * i;
        w->groups[i].gradient = s->op == VPPS_OP_PARAMETER ? s->param : n_params + 2 * i + 1;
    }
    return true;
}

/* ---------------------------------------------------------------- one group */

/* Which argument an operand letter of ops.def reads the value of; -1: none, -2: all the others. */
static int argument_of(char letter) {
    switch (letter) {
    case 'a':
    case 'v':
    case 'w': return 0;
    case 'b': return 1;
    case '*': return -2;
    default: return -1;
    }
}

/* Calls `body` with g = the group of argument k, for every such group of the group's nodes (perhaps repeatedly). */
#define FOR_ARGUMENT_GROUPS(w, group, k, g, body)                                                                      \
    do {                                                                                                               \
        const vpps_link *link_ = vpps_aligned(w, group, k);                                                            \
        uint32_t last_ = UINT32_MAX, n_ = link_ ? 1 : (group)->n;                                                      \
        for (uint32_t j_ = 0; j_ < n_; j_++) {                                                                         \
            const vpps_flat_node *node_ = &(w)->flat->nodes[(w)->order[(group)->first + j_]];                          \
            if ((k) >= node_->n_args) continue;                                                                        \
            uint32_t g = link_ ? link_->group : (w)->group[(w)->flat->args[node_->args + (k)]];                        \
            if (g == last_) continue;                                                                                  \
            last_ = g;                                                                                                 \
            body                                                                                                       \
        }                                                                                                              \
    } while (0)

/* The earliest phase after argument k of every node of the group. */
static uint32_t after_arguments(const vpps_schedule_work *w, const vpps_group *group, uint32_t k, bool owned) {
    uint32_t phase = 0;
    FOR_ARGUMENT_GROUPS(w, group, k, g, phase = vpps_max_u32(phase, after(&w->tracks[w->groups[g].value], owned)););
    return phase;
}

/* The most arguments that a node of the group has. */
static uint32_t most_arguments(const vpps_schedule_work *w, const vpps_group *group) {
    uint32_t most = group->n_links;
    for (uint32_t j = 0; j < group->n && !group->n_links; j++) {
        most = vpps_max_u32(most, w->flat->nodes[w->order[group->first + j]].n_args);
    }
    return most;
}

/* The earliest phase after everything an instruction reads. `operands`: the letters of ops.def. */
static uint32_t after_operands(const vpps_schedule_work *w, const vpps_group *group, const char *operands,
                               vpps_opcode opcode, bool shared) {
    const char *types = vpps_instructions[opcode].operands;
    uint32_t phase = 0;
    for (uint32_t i = 0; operands[i]; i++) {
        bool owned = shared && types[i] != 's' && types[i] != 'v'; /* those are read whole */
        int argument = argument_of(operands[i]);
        if (operands[i] == 'd') phase = vpps_max_u32(phase, after(&w->tracks[group->gradient], owned));
        if (operands[i] == 'y') phase = vpps_max_u32(phase, after(&w->tracks[group->value], owned));
        if (operands[i] == 'i' && types[i] == 't') phase = vpps_max_u32(phase, after(&w->tracks[group->value], owned));
        if (argument >= 0) phase = vpps_max_u32(phase, after_arguments(w, group, (uint32_t)argument, owned));
        uint32_t n = argument == -2 ? most_arguments(w, group) : 0;
        for (uint32_t k = types[0] == 'v'; k < n; k++) phase = vpps_max_u32(phase, after_arguments(w, group, k, owned));
    }
    return phase;
}

static void forward_group(vpps_schedule_work *w, uint32_t index) {
    vpps_group *group = &w->groups[index];
    const vpps_signature *s = signature_of(w, group);
    const vpps_op_row *op = &vpps_ops[s->op];
    const vpps_op_instruction_row *how = &vpps_op_instructions[s->op];
    if (s->op == VPPS_OP_INPUT) {
        add_item(w, (vpps_item){.kind = VPPS_ITEM_LOAD, .opcode = VPPS_I_LOAD, .what = index});
        wrote(&w->tracks[group->value], 0, false);
        return;
    }
    if (op->op_class == VPPS_CLASS_SOURCE) {
        use_parameter(w, s->param, 0);
        return;
    }
    bool shared = op->op_class == VPPS_CLASS_EW && vpps_is_shareable(w, s->rows);
    uint32_t phase = op->op_class == VPPS_CLASS_PARTS
                         ? after_operands(w, group, "*", VPPS_I_COPY, false)
                         : after_operands(w, group, how->forward_operands, (vpps_opcode)how->forward, shared);
    add_item(w, (vpps_item){VPPS_ITEM_FORWARD, how->forward, shared, phase, index, 0, 0});
    wrote(&w->tracks[group->value], phase, shared);
}

/* Which gradient instruction argument k has: 0, 1, or -1 for the weights of a weighted sum, which have their own. */
static int backward_of(const vpps_op_row *op, uint8_t id, uint32_t k) {
    if (id == VPPS_OP_WEIGHTED_SUM) return k == 0 ? -1 : 0;
    return op->max_args == VPPS_MANY ? 0 : (int)k;
}

/* Does the group's gradient instruction write to argument group x: has x a gradient, and one of its own? */
static bool writes_gradient(const vpps_group *group, const vpps_group *x) {
    return x->gradient_base != VPPS_NO_OFFSET && x->gradient_base != group->gradient_base;
}

/* Adds the gradients of argument k of the group's nodes, if any of them is wanted. */
static void backward_argument(vpps_schedule_work *w, uint32_t index, uint32_t k) {
    vpps_group *group = &w->groups[index];
    const vpps_signature *signature = signature_of(w, group);
    const vpps_op_row *op = &vpps_ops[signature->op];
    const vpps_op_instruction_row *how = &vpps_op_instructions[signature->op];
    int which = backward_of(op, signature->op, k);
    vpps_opcode opcode = which < 0 ? VPPS_I_DOT : (vpps_opcode)how->backward[which];
    bool parts = op->op_class == VPPS_CLASS_PARTS, wanted = false;
    bool shared = !parts && vpps_instructions[opcode].form == VPPS_FORM_EW;
    FOR_ARGUMENT_GROUPS(w, group, k, g, {
        const vpps_group *x = &w->groups[g];
        if (!writes_gradient(group, x)) continue;
        wanted = true;
        shared = shared && vpps_is_shareable(w, signature_of(w, x)->rows);
    });
    if (!wanted) return;
    const char *operands = which < 0 ? "d*" : parts ? "d" : how->backward_operands[which];
    uint32_t phase = after_operands(w, group, operands, which < 0 ? VPPS_I_ADD : opcode, shared);
    FOR_ARGUMENT_GROUPS(w, group, k, g, { /* after what others wrote there */
                                          const vpps_group *x = &w->groups[g];
                                          if (writes_gradient(group, x))
                                              phase = vpps_max_u32(phase, after(&w->tracks[x->gradient], shared));
    });
    FOR_ARGUMENT_GROUPS(w, group, k, g, {
        const vpps_group *x = &w->groups[g];
        if (writes_gradient(group, x)) wrote(&w->tracks[x->gradient], phase, shared);
    });
    add_item(w, (vpps_item){VPPS_ITEM_BACKWARD, (uint8_t)opcode, shared, phase, index, k, 0});
}

/* Arguments that share this group's gradient are ready when it is. */
static void hand_on_gradient(vpps_schedule_work *w, const vpps_group *group) {
    const vpps_track *from = &w->tracks[group->gradient];
    for (uint32_t k = 0; k < group->n_links && from->phase >= 0; k++) {
        const vpps_link *l = vpps_aligned(w, group, k);
        const vpps_group *x = l ? &w->groups[l->group] : NULL;
        if (!x || x->gradient_base == VPPS_NO_OFFSET || x->gradient_base != group->gradient_base) continue;
        wrote(&w->tracks[x->gradient], (uint32_t)from->phase, from->owned);
    }
}

static void backward_group(vpps_schedule_work *w, uint32_t index) {
    const vpps_group *group = &w->groups[index];
    const vpps_op_row *op = &vpps_ops[signature_of(w, group)->op];
    if (op->op_class == VPPS_CLASS_SOURCE || !(group->flags & VPPS_GRADIENT)) return;
    uint32_t most = most_arguments(w, group);
    for (uint32_t k = 0; k < most; k++) backward_argument(w, index, k);
    hand_on_gradient(w, group);
}

/* Gradients that are added to begin at zero; the loss's at one. */
static void fill_gradients(vpps_schedule_work *w) {
    for (uint32_t i = 0; i < w->n_groups; i++) {
        vpps_group *group = &w->groups[i];
        const vpps_signature *signature = signature_of(w, group);
        bool holds_loss = i == w->group[w->request->loss];
        if (group->gradient_base == VPPS_NO_OFFSET || signature->op == VPPS_OP_PARAMETER) continue;
        if (!(group->flags & VPPS_ZEROED) && !holds_loss) continue;
        bool shared = !holds_loss && vpps_is_shareable(w, signature->rows);
        add_item(w, (vpps_item){VPPS_ITEM_FILL, VPPS_I_FILL, shared, 0, i, 0, 0});
        wrote(&w->tracks[group->gradient], 0, shared);
    }
}

/* ---------------------------------------------------------------- bundles */

/* Slice `ordinal` (one level) of a bundle as an item. */
static vpps_item slice_item(const vpps_schedule_work *w, uint32_t bundle, uint32_t ordinal, vpps_opcode opcode) {
    const vpps_signature_work *first = &w->signatures[w->bundles[bundle].first_signature];
    const vpps_group *group = &w->groups[w->signature_groups[first->first_group + ordinal]];
    uint32_t cols = w->g->signatures[w->bundles[bundle].first_signature].cols;
    uint32_t start = w->groups[w->signature_groups[first->first_group]].first;
    return (vpps_item){.kind = VPPS_ITEM_BUNDLE,
                       .opcode = (uint8_t)opcode,
                       .shared = true,
                       .what = bundle,
                       .argument = (group->first - start) * cols,
                       .count = group->n * cols};
}

/* Ordinal of a group among its signature's, or -1 when its signature is not the first of its bundle. */
static int slice_of(const vpps_schedule_work *w, uint32_t index) {
    const vpps_group *group = &w->groups[index];
    const vpps_signature_work *sw = &w->signatures[group->signature];
    if (w->bundles[sw->bundle].first_signature != group->signature) return -1;
    for (uint32_t i = 0; i < sw->n_groups; i++) {
        if (w->signature_groups[sw->first_group + i] == index) return (int)i;
    }
    return -1;
}

#define FOR_SIGNATURES(w, b, sig)                                                                                      \
    for (uint32_t sig = (b)->first_signature; sig != VPPS_NO_OFFSET; sig = (w)->signatures[sig].next)

static vpps_group *slice_group(const vpps_schedule_work *w, uint32_t signature, uint32_t ordinal) {
    return &w->groups[w->signature_groups[w->signatures[signature].first_group + ordinal]];
}

/* Every matrix and bias of the bundle is in use until `phase`. */
static void use_parameters(vpps_schedule_work *w, const vpps_bundle *b, uint32_t phase) {
    FOR_SIGNATURES(w, b, sig) {
        const vpps_signature *s = &w->g->signatures[sig];
        for (uint32_t k = 0; k < s->n_matrices; k++) use_parameter(w, w->g->matrices[s->first_matrix + k], phase);
        if (s->param != VPPS_NO_PARAM) use_parameter(w, s->param, phase);
    }
}

static void forward_slice(vpps_schedule_work *w, uint32_t bundle, uint32_t ordinal) {
    vpps_bundle *b = &w->bundles[bundle];
    vpps_item item = slice_item(w, bundle, ordinal, VPPS_I_AFFINE);
    FOR_SIGNATURES(w, b, sig) {
        const vpps_group *group = slice_group(w, sig, ordinal);
        for (uint32_t k = 0; k < w->g->signatures[sig].n_matrices; k++) {
            item.phase = vpps_max_u32(item.phase, after_arguments(w, group, k, false));
        }
    }
    FOR_SIGNATURES(w, b, sig) wrote(&w->tracks[slice_group(w, sig, ordinal)->value], item.phase, true);
    b->forward_phase = vpps_max_u32(b->forward_phase, item.phase);
    use_parameters(w, b, item.phase);
    add_item(w, item);
}

/* OUTER of a slice, or of the whole bundle: own rows of the outputs' gradients, whole operands. */
static void outer_item(vpps_schedule_work *w, vpps_item item, uint32_t first_ordinal, uint32_t n_ordinals) {
    vpps_bundle *b = &w->bundles[item.what];
    item.opcode = VPPS_I_OUTER;
    item.phase = b->forward_phase;
    FOR_SIGNATURES(w, b, sig) {
        for (uint32_t i = 0; i < n_ordinals; i++) {
            const vpps_group *group = slice_group(w, sig, first_ordinal + i);
            item.phase = vpps_max_u32(item.phase, after(&w->tracks[group->gradient], true));
        }
        vpps_param bias = w->g->signatures[sig].param;
        if (bias != VPPS_NO_PARAM) item.phase = vpps_max_u32(item.phase, after(&w->tracks[bias], true));
    }
    FOR_SIGNATURES(w, b, sig) {
        vpps_param bias = w->g->signatures[sig].param;
        if (bias != VPPS_NO_PARAM) wrote(&w->tracks[bias], item.phase, true);
    }
    use_parameters(w, b, item.phase);
    add_item(w, item);
}

/* The earliest phase in which `owned` rows of the gradients of a slice's arguments may be added to; then the write. */
static uint32_t order_argument_gradients(vpps_schedule_work *w, const vpps_bundle *b, uint32_t ordinal, uint32_t phase,
                                         bool write) {
    FOR_SIGNATURES(w, b, sig) {
        const vpps_group *group = slice_group(w, sig, ordinal);
        const vpps_signature *s = &w->g->signatures[sig];
        for (uint32_t k = 0; k < s->n_matrices; k++) {
            if (!w->lists[w->pair_lists[w->signatures[sig].first_list + k]].gradients) continue;
            FOR_ARGUMENT_GROUPS(w, group, k, g, {
                vpps_track *t = &w->tracks[w->groups[g].gradient];
                if (write) {
                    wrote(t, phase, true);
                } else {
                    phase = vpps_max_u32(phase, after(t, true));
                }
            });
        }
    }
    return phase;
}

/* Does each level add its outer products? The host's products are one a bundle. */
static bool accumulates(const vpps_schedule_work *w) {
    return w->request->gradients == VPPS_GRADIENTS_ACCUMULATE && !w->plan->host_products;
}

static void backward_slice(vpps_schedule_work *w, uint32_t bundle, uint32_t ordinal) {
    vpps_bundle *b = &w->bundles[bundle];
    if (b->wants_gradients) {
        vpps_item item = slice_item(w, bundle, ordinal, w->transposed ? VPPS_I_AFFINE_T : VPPS_I_AFFINE_P);
        FOR_SIGNATURES(w, b, sig) {
            const vpps_track *t = &w->tracks[slice_group(w, sig, ordinal)->gradient];
            item.phase = vpps_max_u32(item.phase, after(t, !w->transposed));
        }
        if (w->transposed) {
            item.phase = order_argument_gradients(w, b, ordinal, item.phase, false);
        } else {
            add_item(w, item);
            use_parameters(w, b, item.phase);
            item.opcode = VPPS_I_REDUCE_P;
            item.phase = order_argument_gradients(w, b, ordinal, item.phase + 1, false);
        }
        order_argument_gradients(w, b, ordinal, item.phase, true);
        add_item(w, item);
    }
    if (accumulates(w)) { outer_item(w, slice_item(w, bundle, ordinal, VPPS_I_OUTER), ordinal, 1); }
}

static void deferred_outer(vpps_schedule_work *w) {
    for (uint32_t i = 0; i < w->n_bundles; i++) {
        const vpps_signature_work *first = &w->signatures[w->bundles[i].first_signature];
        vpps_item item = slice_item(w, i, 0, VPPS_I_OUTER);
        item.count = w->bundles[i].n;
        outer_item(w, item, 0, first->n_groups);
    }
}

/* ---------------------------------------------------------------- update */

static bool is_trained(const vpps_schedule_work *w, vpps_param p) {
    return w->parameter_used[p] && !w->g->model->params[p].frozen;
}

/* The group of a table's lookups: they are all sources, of level 0 and one signature. */
static vpps_group *lookups_of(const vpps_schedule_work *w, vpps_param table) {
    for (uint32_t i = 0; i < w->n_groups; i++) {
        const vpps_signature *s = signature_of(w, &w->groups[i]);
        if (s->op == VPPS_OP_LOOKUP && s->param == table) return &w->groups[i];
    }
    return NULL;
}

/* All VPs stop for the host's products. Returns the first phase after. */
static uint32_t host_item(vpps_schedule_work *w) {
    if (!w->host_list) return 0;
    uint32_t phase = 0;
    for (uint32_t i = 0; i < w->n_items; i++) phase = vpps_max_u32(phase, w->items[i].phase + 1);
    add_item(w, (vpps_item){.kind = VPPS_ITEM_HOST, .opcode = VPPS_I_HOST, .phase = phase});
    return phase + 1;
}

/* Every VP's sum of squares, then a phase boundary: for clipping, and to see that all gradients are finite. Returns the
 * first phase of updates. */
static uint32_t norm_items(vpps_schedule_work *w, uint32_t first) {
    uint32_t end = first;
    for (vpps_param p = 0; p < w->g->model->n_params; p++) {
        if (!is_trained(w, p)) continue;
        const vpps_parameter_data *param = &w->g->model->params[p];
        vpps_item item = {.kind = VPPS_ITEM_PARAMETER, .opcode = VPPS_I_NORM, .shared = true, .what = p};
        item.phase = param->kind == VPPS_MATRIX ? w->parameter_used[p] - 1 : after(&w->tracks[p], true);
        if (param->kind == VPPS_LOOKUP) {
            item.kind = VPPS_ITEM_ROWS;
            item.opcode = VPPS_I_NORM_ROWS;
            item.phase = after(&w->tracks[lookups_of(w, p)->gradient], param->cols == 1);
        }
        item.phase = vpps_max_u32(first, item.phase);
        end = vpps_max_u32(end, item.phase);
        add_item(w, item);
    }
    add_item(w, (vpps_item){.kind = VPPS_ITEM_NORM_END, .opcode = VPPS_I_NORM_END, .shared = true, .phase = end});
    return end + 1;
}

/* A matrix is updated by its owners right after its gradient, while both are in the cache; vectors and tables, which
 * anyone may read, once everything else is done. */
static void update_items(vpps_schedule_work *w) {
    uint32_t guarded = w->request->guard ? after(&w->tracks[w->groups[w->group[w->request->loss]].value], false) : 0;
    uint32_t first = host_item(w), matrices = vpps_max_u32(guarded, first);
    if (w->transposed) matrices = vpps_max_u32(matrices, 1); /* TRANSPOSE reads everybody's rows in phase 0 */
    if (w->request->guard || w->request->optimizer->clip > 0) matrices = vpps_max_u32(matrices, norm_items(w, first));
    uint32_t others = matrices;
    for (uint32_t i = 0; i < w->n_items; i++) others = vpps_max_u32(others, w->items[i].phase + 1);
    for (vpps_param p = 0; p < w->g->model->n_params; p++) {
        if (!is_trained(w, p)) continue;
        const vpps_parameter_data *param = &w->g->model->params[p];
        vpps_item item = {
            .kind = VPPS_ITEM_PARAMETER, .opcode = VPPS_I_UPDATE, .shared = true, .phase = others, .what = p};
        if (param->kind == VPPS_MATRIX) item.phase = vpps_max_u32(matrices, w->parameter_used[p] - 1);
        if (param->kind == VPPS_LOOKUP) {
            item.kind = VPPS_ITEM_ROWS;
            item.opcode = VPPS_I_UPDATE_ROWS;
        }
        add_item(w, item);
    }
}

/* ---------------------------------------------------------------- all */

static void transpose_items(vpps_schedule_work *w) {
    for (vpps_param p = 0; p < w->g->model->n_params; p++) w->parameter_used[p] = 0;
    for (uint32_t i = 0; i < w->n_bundles; i++) {
        const vpps_bundle *b = &w->bundles[i];
        if (!b->wants_gradients) continue;
        FOR_SIGNATURES(w, b, sig) {
            const vpps_signature *s = &w->g->signatures[sig];
            for (uint32_t k = 0; k < s->n_matrices; k++) {
                vpps_param p = w->g->matrices[s->first_matrix + k];
                if (w->parameter_used[p] || !w->lists[w->pair_lists[w->signatures[sig].first_list + k]].gradients)
                    continue;
                w->parameter_used[p] = 1;
                add_item(
                    w, (vpps_item){.kind = VPPS_ITEM_PARAMETER, .opcode = VPPS_I_TRANSPOSE, .shared = true, .what = p});
            }
        }
    }
}

/* Items by phase; within one, in the order they were made. */
static bool sort_items(vpps_schedule_work *w) {
    w->n_phases = 0;
    for (uint32_t i = 0; i < w->n_items; i++) w->n_phases = vpps_max_u32(w->n_phases, w->items[i].phase + 1);
    if (!VPPS_RESERVE(w->item_order, w->item_order_capacity, w->n_items + 1u) ||
        !VPPS_RESERVE(w->phase_start, w->phase_start_capacity, w->n_phases + 2u)) {
        return false;
    }
    memset(w->phase_start, 0, (w->n_phases + 2u) * sizeof *w->phase_start);
    for (uint32_t i = 0; i < w->n_items; i++) w->phase_start[w->items[i].phase + 2]++;
    for (uint32_t i = 2; i < w->n_phases + 2; i++) w->phase_start[i] += w->phase_start[i - 1];
    for (uint32_t i = 0; i < w->n_items; i++) w->item_order[w->phase_start[w->items[i].phase + 1]++] = i;
    return true;
}

vpps_status vpps_make_items(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    w->n_items = 0;
    if (!make_tracks(w)) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    if (w->training) {
        if (w->transposed) transpose_items(w);
        fill_gradients(w);
    }
    for (uint32_t i = 0; i < w->n_groups; i++) {
        uint32_t index = w->by_level[i];
        if (signature_of(w, &w->groups[index])->op != VPPS_OP_AFFINE) {
            forward_group(w, index);
        } else {
            int ordinal = slice_of(w, index);
            if (ordinal >= 0) forward_slice(w, w->signatures[w->groups[index].signature].bundle, (uint32_t)ordinal);
        }
    }
    if (w->training) {
        for (uint32_t i = w->n_groups; i-- > 0;) {
            uint32_t index = w->by_level[i];
            if (signature_of(w, &w->groups[index])->op != VPPS_OP_AFFINE) {
                backward_group(w, index);
            } else {
                int ordinal = slice_of(w, index);
                if (ordinal >= 0)
                    backward_slice(w, w->signatures[w->groups[index].signature].bundle, (uint32_t)ordinal);
            }
        }
        if (!accumulates(w)) deferred_outer(w);
        update_items(w);
    }
    if (w->status == VPPS_OK && !sort_items(w)) w->status = vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    return w->status;
}
