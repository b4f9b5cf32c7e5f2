/* analyse.c - what a batch needs: levels, needed nodes, uses, and groups of alike nodes.
 *
 * These are the only passes that look at every node; all later steps work on groups wherever operands are aligned.
 */
#include "nodes/work.h"

/* A node's level is one more than its arguments' highest; sources have level 0. A node has a gradient when a
 * trainable parameter is below it. Affine nodes always have one: their matrices may be trained or not, but a bundle is
 * handled as a whole. */
static void set_levels(vpps_schedule_work *w) {
    const vpps_flat *flat = w->flat;
    const vpps_signature *signatures = w->g->signatures;
    const vpps_parameter_data *params = w->g->model->params;
    const uint8_t mask = w->training ? 0xff : 0;
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
        w->flags[i] = flags & mask;
    }
}

/* One more use: the first sets ONCE, a second clears it, and then the gradient has several parts to add. */
static inline uint8_t use(uint8_t flags, uint8_t mark) {
    uint8_t again = flags & VPPS_USED ? VPPS_ZEROED : VPPS_ONCE;
    return (uint8_t)(((flags & ~VPPS_ONCE) | VPPS_USED | VPPS_NEEDED | again | mark));
}

/* Marks what the loss or the outputs need, counts uses, and decides which gradients must begin at zero. */
static void mark_needed(vpps_schedule_work *w) {
    const vpps_flat *flat = w->flat;
    const vpps_signature *signatures = w->g->signatures;
    w->mixed = false;
    if (w->training) w->flags[w->request->loss] = use(w->flags[w->request->loss], VPPS_KEPT);
    for (uint32_t i = 0; i < w->request->n_outputs; i++) {
        w->flags[w->request->outputs[i]] = use(w->flags[w->request->outputs[i]], VPPS_KEPT);
    }
    for (uint32_t i = flat->n_nodes; i-- > 0;) {
        if (!(w->flags[i] & VPPS_NEEDED)) continue;
        const vpps_flat_node *node = &flat->nodes[i];
        uint8_t op = signatures[node->signature].op;
        bool affine = op == VPPS_OP_AFFINE;
        uint8_t mark = affine || op == VPPS_OP_SLICE ? VPPS_ZEROED : 0; /* these add, or write a part only */
        const uint32_t *args = flat->args + node->args;
        for (uint32_t k = 0; k < node->n_args; k++) {
            uint8_t flags = w->flags[args[k]];
            w->mixed |= affine && !(flags & VPPS_GRADIENT);
            w->flags[args[k]] = use(flags, mark);
        }
    }
}

/* Where some member of an affine argument's list has a gradient, all must have a place for one. */
static bool give_slots(vpps_schedule_work *w) {
    const vpps_flat *flat = w->flat;
    if (!VPPS_RESERVE(w->some_gradient, w->some_gradient_capacity, w->g->n_matrices)) return false;
    memset(w->some_gradient, 0, w->g->n_matrices * sizeof *w->some_gradient);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < flat->n_nodes; i++) {
            const vpps_flat_node *node = &flat->nodes[i];
            const vpps_signature *s = &w->g->signatures[node->signature];
            if (s->op != VPPS_OP_AFFINE || !(w->flags[i] & VPPS_NEEDED)) continue;
            for (uint32_t k = 0; k < node->n_args; k++) {
                uint8_t *flags = &w->flags[flat->args[node->args + k]];
                bool *some = &w->some_gradient[s->first_matrix + k];
                if (pass == 0) {
                    *some |= (*flags & VPPS_GRADIENT) != 0;
                } else if (*some && !(*flags & VPPS_GRADIENT)) {
                    *flags |= VPPS_SLOT;
                }
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- groups */

static uint32_t hash_key(uint32_t level, uint32_t signature, uint8_t key_flags) {
    uint64_t key = (uint64_t)level << 32 | (signature << 6 ^ key_flags);
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32);
}

static bool grow_table(vpps_schedule_work *w) {
    uint32_t size = w->table_size ? w->table_size * 2 : 1024;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table) return false;
    free(w->table);
    w->table = table;
    w->table_size = size;
    for (uint32_t i = 0; i < w->n_groups; i++) {
        const vpps_group *group = &w->groups[i];
        uint32_t at = hash_key(group->level, group->signature, group->key) & (size - 1);
        while (table[at]) at = (at + 1) & (size - 1);
        table[at] = i + 1;
    }
    return true;
}

/* The node's group, a new one when it is the first of its kind; UINT32_MAX when out of memory. */
static uint32_t find_group(vpps_schedule_work *w, uint32_t level, uint8_t key, const vpps_flat_node *node) {
    uint32_t mask = w->table_size - 1;
    uint32_t at = hash_key(level, node->signature, key) & mask;
    for (; w->table[at]; at = (at + 1) & mask) {
        const vpps_group *group = &w->groups[w->table[at] - 1];
        if (group->signature == node->signature && group->level == level && group->key == key) return w->table[at] - 1;
    }
    if (w->n_groups * 2 >= w->table_size) {
        if (!grow_table(w)) return UINT32_MAX;
        return find_group(w, level, key, node);
    }
    if (!VPPS_RESERVE(w->groups, w->groups_capacity, w->n_groups + 1u) ||
        !VPPS_RESERVE(w->links, w->links_capacity, w->n_links + node->n_args)) {
        return UINT32_MAX;
    }
    w->groups[w->n_groups] = (vpps_group){.signature = node->signature,
                                          .level = level,
                                          .key = key,
                                          .flags = key | VPPS_ONCE,
                                          .links = (uint32_t)w->n_links,
                                          .n_links = node->n_args,
                                          .user = VPPS_NO_OFFSET,
                                          .counted_by = VPPS_NO_OFFSET};
    w->n_links += node->n_args;
    w->table[at] = ++w->n_groups;
    return w->n_groups - 1;
}

/* Keeps the group's links true as node number `rank` joins. */
static inline void link_arguments(vpps_schedule_work *w, vpps_group *group, const vpps_flat_node *node, uint32_t rank) {
    const uint32_t *args = w->flat->args + node->args;
    vpps_link *links = w->links + group->links;
    if (VPPS_UNLIKELY(node->n_args != group->n_links)) group->n_links = 0;
    for (uint32_t k = 0; k < group->n_links; k++) {
        uint32_t g = w->group[args[k]], shift = w->rank[args[k]] - rank;
        if (rank == 0) {
            links[k] = (vpps_link){g, shift, true};
        } else if (links[k].group != g || links[k].shift != shift) {
            links[k].aligned = false;
        }
    }
}

static bool make_groups(vpps_schedule_work *w) {
    const vpps_flat *flat = w->flat;
    const vpps_signature *signatures = w->g->signatures;
    w->n_groups = w->n_levels = 0;
    w->n_links = 0;
    if (!w->table_size && !grow_table(w)) return false;
    memset(w->table, 0, w->table_size * sizeof *w->table);
    for (uint32_t i = 0; i < flat->n_nodes; i++) {
        if (!(w->flags[i] & VPPS_NEEDED)) continue;
        const vpps_flat_node *node = &flat->nodes[i];
        /* uses of one entry share a gradient, so lookups of any number of uses are alike */
        bool source = vpps_ops[signatures[node->signature].op].op_class == VPPS_CLASS_SOURCE;
        uint8_t key = w->flags[i] & (source ? VPPS_GRADIENT | VPPS_SLOT : VPPS_GRADIENT | VPPS_SLOT | VPPS_KEPT);
        uint32_t index = find_group(w, w->level[i], key, node);
        if (index == UINT32_MAX) return false;
        vpps_group *group = &w->groups[index];
        uint32_t rank = group->n++;
        if (source || !(w->flags[i] & VPPS_ONCE)) group->flags = (group->flags & ~VPPS_ONCE) | VPPS_ZEROED;
        group->flags |= w->flags[i] & VPPS_ZEROED;
        w->group[i] = index;
        w->rank[i] = rank;
        link_arguments(w, group, node, rank);
        if (w->level[i] >= w->n_levels) w->n_levels = w->level[i] + 1;
    }
    return true;
}

/* Parameters' values lie where the entries are, not side by side. And a group whose nodes are used once, by one group in
 * the same order or all by one node (losses by their sum), knows its user. */
static void finish_links(vpps_schedule_work *w) {
    for (uint32_t i = 0; i < w->n_groups; i++) {
        const vpps_group *group = &w->groups[i];
        for (uint32_t k = 0; k < group->n_links; k++) {
            vpps_link *l = &w->links[group->links + k];
            vpps_group *of = &w->groups[l->group];
            uint8_t op = w->g->signatures[of->signature].op;
            if (op == VPPS_OP_LOOKUP || op == VPPS_OP_PARAMETER) l->aligned = false;
            if (!l->aligned || !(of->flags & VPPS_ONCE)) continue;
            if (!l->shift && of->n == group->n) {
                of->user = i;
                of->user_argument = k;
            } else if (group->n == 1) {
                of->count = of->counted_by == i ? of->count + 1 : 1;
                of->counted_by = i;
                if (of->count < of->n) continue;
                of->user = i;
                of->user_argument = VPPS_NO_OFFSET;
            }
        }
    }
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
    }
    for (uint32_t i = 0; i < w->flat->n_nodes; i++) {
        if (w->flags[i] & VPPS_NEEDED) w->order[w->groups[w->group[i]].first + w->rank[i]] = i;
    }
    return true;
}

vpps_status vpps_analyse(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    uint32_t n = w->flat->n_nodes;
    if (!VPPS_RESERVE(w->level, w->level_capacity, n) || !VPPS_RESERVE(w->rank, w->rank_capacity, n) ||
        !VPPS_RESERVE(w->group, w->group_capacity, n) || !VPPS_RESERVE(w->order, w->order_capacity, n) ||
        !VPPS_RESERVE(w->flags, w->flags_capacity, n)) {
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
    }
    set_levels(w);
    mark_needed(w);
    bool done = !w->training || !w->mixed || give_slots(w);
    if (!done || !make_groups(w) || !sort_groups_by_level(w) || !sort_nodes_by_signature(w)) {
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
    }
    finish_links(w);
    s->n_levels = w->n_levels;
    return VPPS_OK;
}
