/* analyse.c - what a batch needs: levels, needed nodes, uses, and groups of alike nodes. */
#include "script/work.h"

/* A node's level is one more than its arguments' highest; sources have level 0. A node has a gradient when a
 * trainable parameter is below it. Affine nodes always have one: their matrices may be trained or not, but a bundle is
 * handled as a whole. */
static void set_levels(vpps_schedule_work *w) {
    const vpps_flat *flat = w->flat;
    const vpps_signature *signatures = w->g->signatures;
    const vpps_parameter_data *params = w->g->model->params;
    for (uint32_t i = 0; i < flat->n_nodes; i++) {
        const vpps_flat_node *node = &flat->nodes[i];
        const vpps_signature *s = &signatures[node->signature];
        uint8_t flags = 0;
        uint32_t level = 0;
        const uint32_t *args = flat->args + node->args;
        for (uint32_t k = 0; k < node->n_args; k++) {
            level = vpps_max_u32(level, w->level[args[k]] + 1);
            flags |= w->flags[args[k]];
        }
        if (s->op == VPPS_OP_AFFINE) flags = VPPS_GRADIENT;
        if (s->op == VPPS_OP_LOOKUP || s->op == VPPS_OP_PARAMETER) {
            flags = params[s->param].frozen ? 0 : VPPS_GRADIENT;
        }
        w->level[i] = level;
        w->flags[i] = w->training ? flags : 0;
        w->uses[i] = 0;
    }
}

static void need(vpps_schedule_work *w, vpps_node x) {
    w->flags[x] |= VPPS_NEEDED | VPPS_KEPT;
    w->uses[x]++;
}

/* Marks what the loss or the outputs need, counts uses, and decides which gradients must begin at zero. */
static void mark_needed(vpps_schedule_work *w) {
    const vpps_flat *flat = w->flat;
    if (w->training) need(w, w->request->loss);
    for (uint32_t i = 0; i < w->request->n_outputs; i++) need(w, w->request->outputs[i]);
    for (uint32_t i = flat->n_nodes; i-- > 0;) {
        if (!(w->flags[i] & VPPS_NEEDED)) continue;
        const vpps_flat_node *node = &flat->nodes[i];
        uint8_t op = w->g->signatures[node->signature].op;
        /* these add to what is there, or write a part only */
        uint8_t mark = VPPS_NEEDED;
        if (op == VPPS_OP_AFFINE || op == VPPS_OP_SLICE) mark |= VPPS_ZEROED;
        const uint32_t *args = flat->args + node->args;
        for (uint32_t k = 0; k < node->n_args; k++) {
            w->flags[args[k]] |= mark;
            w->uses[args[k]]++;
            w->consumer[args[k]] = i;
        }
    }
}

static uint32_t find_group(vpps_schedule_work *w, uint32_t level, uint32_t signature) {
    uint64_t key = (uint64_t)level << 32 | signature;
    uint32_t mask = w->table_size - 1;
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
    for (; w->table[at]; at = (at + 1) & mask) {
        const vpps_group *group = &w->groups[w->table[at] - 1];
        if (group->signature == signature && group->level == level) return w->table[at] - 1;
    }
    if (!VPPS_RESERVE(w->groups, w->groups_capacity, w->n_groups + 1u)) return UINT32_MAX;
    w->groups[w->n_groups] = (vpps_group){.signature = signature, .level = level};
    w->table[at] = ++w->n_groups;
    return w->n_groups - 1;
}

static bool grow_table(vpps_schedule_work *w) {
    uint32_t size = w->table_size ? w->table_size * 2 : 1024;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table) return false;
    free(w->table);
    w->table = table;
    w->table_size = size;
    for (uint32_t i = 0; i < w->n_groups; i++) {
        uint64_t key = (uint64_t)w->groups[i].level << 32 | w->groups[i].signature;
        uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (size - 1);
        while (table[at]) at = (at + 1) & (size - 1);
        table[at] = i + 1;
    }
    return true;
}

static bool make_groups(vpps_schedule_work *w) {
    const vpps_flat *flat = w->flat;
    w->n_groups = 0;
    w->n_levels = 0;
    if (w->table) memset(w->table, 0, w->table_size * sizeof *w->table);
    for (uint32_t i = 0; i < flat->n_nodes; i++) {
        if (!(w->flags[i] & VPPS_NEEDED)) continue;
        if (w->n_groups * 2 >= w->table_size && !grow_table(w)) return false;
        uint32_t group = find_group(w, w->level[i], flat->nodes[i].signature);
        if (group == UINT32_MAX) return false;
        w->groups[group].n++;
        w->group[i] = group;
        if (w->level[i] >= w->n_levels) w->n_levels = w->level[i] + 1;
    }
    return true;
}

/* Orders groups by level (stable: first appearance within a level). */
static bool sort_groups_by_level(vpps_schedule_work *w) {
    if (!VPPS_RESERVE(w->by_level, w->by_level_capacity, w->n_groups) ||
        !VPPS_RESERVE(w->level_start, w->level_start_capacity, w->n_levels + 2u)) {
        return false;
    }
    memset(w->level_start, 0, (w->n_levels + 2u) * sizeof *w->level_start);
    for (uint32_t i = 0; i < w->n_groups; i++) w->level_start[w->groups[i].level + 2]++;
    for (uint32_t i = 2; i < w->n_levels + 2; i++) w->level_start[i] += w->level_start[i - 1];
    for (uint32_t i = 0; i < w->n_groups; i++) w->by_level[w->level_start[w->groups[i].level + 1]++] = i;
    return true;
}

/* Lays the nodes of a signature side by side, by level: that is also how they lie in memory, so that work on
 * neighbours merges, and the operands of one product for a whole batch are one block. */
static bool sort_nodes_by_signature(vpps_schedule_work *w) {
    uint32_t n = w->g->n_signatures;
    if (!VPPS_RESERVE(w->signatures, w->signatures_capacity, n) ||
        !VPPS_RESERVE(w->signature_order, w->signature_order_capacity, n) ||
        !VPPS_RESERVE(w->signature_groups, w->signature_groups_capacity, w->n_groups)) {
        return false;
    }
    w->n_signatures = 0;
    memset(w->signatures, 0, n * sizeof *w->signatures);
    for (uint32_t i = 0; i < w->n_groups; i++) {
        vpps_signature_work *s = &w->signatures[w->groups[i].signature];
        if (!s->n_groups++) w->signature_order[w->n_signatures++] = w->groups[i].signature;
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        vpps_signature_work *s = &w->signatures[w->signature_order[i]];
        s->first_group = next;
        next += s->n_groups;
        s->n_groups = 0;
    }
    for (uint32_t i = 0; i < w->n_groups; i++) {
        vpps_signature_work *s = &w->signatures[w->groups[w->by_level[i]].signature];
        w->signature_groups[s->first_group + s->n_groups++] = w->by_level[i];
    }
    next = 0;
    for (uint32_t i = 0; i < w->n_groups; i++) {
        vpps_group *group = &w->groups[w->signature_groups[i]];
        group->first = next;
        next += group->n;
        w->signatures[group->signature].n_nodes += group->n;
        group->n = 0;
    }
    for (uint32_t i = 0; i < w->flat->n_nodes; i++) {
        if (!(w->flags[i] & VPPS_NEEDED)) continue;
        vpps_group *group = &w->groups[w->group[i]];
        w->order[group->first + group->n++] = i;
    }
    return true;
}

/* Where some member of an affine argument's list has a gradient, all must have a place for one. */
static void give_slots(vpps_schedule_work *w) {
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        const vpps_signature *s = &w->g->signatures[w->signature_order[i]];
        if (s->op != VPPS_OP_AFFINE) continue;
        const vpps_signature_work *sw = &w->signatures[w->signature_order[i]];
        const uint32_t *nodes = w->order + w->groups[w->signature_groups[sw->first_group]].first;
        for (uint32_t k = 0; k < s->n_matrices; k++) {
            bool some = false, all = true;
            for (uint32_t j = 0; j < sw->n_nodes; j++) {
                bool has = w->flags[w->flat->args[w->flat->nodes[nodes[j]].args + k]] & VPPS_GRADIENT;
                some |= has;
                all &= has;
            }
            for (uint32_t j = 0; some && !all && j < sw->n_nodes; j++) {
                w->flags[w->flat->args[w->flat->nodes[nodes[j]].args + k]] |= VPPS_SLOT;
            }
        }
    }
}

vpps_status vpps_analyse(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    uint32_t n = w->flat->n_nodes;
    if (!VPPS_RESERVE(w->level, w->level_capacity, n) || !VPPS_RESERVE(w->uses, w->uses_capacity, n) ||
        !VPPS_RESERVE(w->consumer, w->consumer_capacity, n) || !VPPS_RESERVE(w->group, w->group_capacity, n) ||
        !VPPS_RESERVE(w->order, w->order_capacity, n) || !VPPS_RESERVE(w->flags, w->flags_capacity, n)) {
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
    }
    set_levels(w);
    mark_needed(w);
    if (!make_groups(w) || !sort_groups_by_level(w) || !sort_nodes_by_signature(w)) {
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
    }
    if (w->training) give_slots(w);
    s->n_levels = w->n_levels;
    s->n_computed = 0;
    for (uint32_t i = 0; i < w->n_groups; i++) s->n_computed += w->groups[i].n;
    return VPPS_OK;
}
