/* memory.c - where a batch's tensors lie in the pool.
 *
 * Nodes of one signature lie side by side, by level. So the nodes of a group are one block, and so are all of a
 * matrix's products in a batch. Four things save memory and traffic:
 *   - a lookup's or a parameter node's value is the parameter's own memory;
 *   - an activation overwrites its argument where nobody else reads that (see ops.def);
 *   - all lookups of one entry share a gradient, as all uses of a vector share the vector's;
 *   - an argument of a sum whose only use this is has the sum's gradient for its own.
 */
#include "nodes/work.h"

uint32_t vpps_take_pool(vpps_schedule_work *w, uint64_t words) {
    uint64_t at = (w->next_word + 15) & ~(uint64_t)15;
    w->next_word = at + words;
    return (uint32_t)at; /* an overflow is found at the end, where both numbers are known */
}

static bool names(const char *operands, char letter) { return strchr(operands, letter) != NULL; }

/* May a group overwrite its argument? Its own gradient must not read the argument's value, nor the argument's gradient
 * that value, and nobody else may. */
static bool is_inplace(const vpps_schedule_work *w, const vpps_group *group) {
    const vpps_op_row *op = &vpps_ops[w->g->signatures[group->signature].op];
    if (op->op_class != VPPS_CLASS_EW || op->max_args != 1) return false;
    const vpps_link *l = vpps_aligned(w, group, 0);
    if (!l) return false;
    const vpps_group *x = &w->groups[l->group];
    const vpps_op_row *producer = &vpps_ops[w->g->signatures[x->signature].op];
    if (x->user == VPPS_NO_OFFSET || &w->groups[x->user] != group || (x->flags & VPPS_KEPT)) return false;
    if (producer->op_class == VPPS_CLASS_SOURCE || x->value_stride != vpps_words(&w->g->signatures[x->signature]))
        return false;
    const vpps_op_instruction_row *own = &vpps_op_instructions[w->g->signatures[group->signature].op];
    const vpps_op_instruction_row *made = &vpps_op_instructions[w->g->signatures[x->signature].op];
    return !w->training || !(names(own->backward_operands[0], 'a') || names(made->backward_operands[0], 'y') ||
                             names(made->backward_operands[1], 'y'));
}

static void place_values(vpps_schedule_work *w) {
    for (uint32_t i = 0; i < w->n_groups; i++) {
        vpps_group *group = &w->groups[i];
        const vpps_signature *s = &w->g->signatures[group->signature];
        group->value_stride = vpps_words(s) * (names(vpps_op_instructions[s->op].forward_operands, 'i') ? 2 : 1);
    }
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        const vpps_signature_work *sw = &w->signatures[w->signature_order[i]];
        uint8_t op = w->g->signatures[w->signature_order[i]].op;
        uint32_t at = vpps_take_pool(w, 0);
        for (uint32_t j = 0; j < sw->n_groups; j++) {
            vpps_group *group = &w->groups[w->signature_groups[sw->first_group + j]];
            group->value_base = VPPS_NO_OFFSET;
            if (op == VPPS_OP_LOOKUP || op == VPPS_OP_PARAMETER || is_inplace(w, group)) continue;
            group->value_base = at;
            uint64_t words = (uint64_t)group->n * group->value_stride;
            w->next_word += words;
            at += (uint32_t)words;
        }
    }
    for (uint32_t i = 0; i < w->n_groups; i++) { /* arguments before their users */
        vpps_group *group = &w->groups[w->by_level[i]];
        if (group->value_base != VPPS_NO_OFFSET ||
            vpps_ops[w->g->signatures[group->signature].op].op_class != VPPS_CLASS_EW) {
            continue;
        }
        group->value_base = w->groups[w->links[group->links].group].value_base;
    }
}

/* ---------------------------------------------------------------- gradients */

static bool prepare_tables(vpps_schedule_work *w) {
    uint32_t n = (uint32_t)w->g->model->n_params;
    w->stamp++;
    if (w->n_tables >= n) return true;
    uint32_t **slots = realloc(w->slots, n * sizeof *slots);
    if (slots) w->slots = slots;
    uint32_t **stamps = realloc(w->stamps, n * sizeof *stamps);
    if (stamps) w->stamps = stamps;
    if (!slots || !stamps) return false;
    for (; w->n_tables < n; w->n_tables++) slots[w->n_tables] = stamps[w->n_tables] = NULL;
    return true;
}

/* Slots for the entries that a group of lookups uses. Lookups of one table may be two groups (with and without
 * gradient); the slots are common. */
static bool place_entries(vpps_schedule_work *w, vpps_group *group) {
    const vpps_signature *s = &w->g->signatures[group->signature];
    uint32_t p = s->param, count = w->g->model->params[p].count, words = vpps_words(s);
    if (!w->slots[p]) w->slots[p] = malloc(count * sizeof **w->slots);
    if (!w->stamps[p]) w->stamps[p] = calloc(count, sizeof **w->stamps);
    if (!w->slots[p] || !w->stamps[p]) return false;
    group->gradient_base = vpps_take_pool(w, 0);
    for (uint32_t j = 0; j < group->n; j++) {
        uint32_t row = w->flat->nodes[w->order[group->first + j]].imm;
        if (w->stamps[p][row] == w->stamp) continue;
        w->stamps[p][row] = w->stamp;
        w->slots[p][row] = (uint32_t)w->next_word;
        w->next_word += words;
        group->n_entries++;
    }
    return true;
}

/* Has the group the gradient of its only user for its own? Affine nodes do not: their gradients stay one block. */
static bool shares_gradient(const vpps_schedule_work *w, const vpps_group *group) {
    if (group->user == VPPS_NO_OFFSET || (group->flags & (VPPS_KEPT | VPPS_ZEROED))) return false;
    const vpps_op_row *op = &vpps_ops[w->g->signatures[group->signature].op];
    const uint8_t user_op = w->g->signatures[w->groups[group->user].signature].op;
    const vpps_op_row *user = &vpps_ops[user_op];
    const uint8_t *backward = vpps_op_instructions[user_op].backward;
    if (op->op_class == VPPS_CLASS_AFFINE || op->op_class == VPPS_CLASS_SOURCE || user->op_class != VPPS_CLASS_EW)
        return false;
    if (user->max_args == VPPS_MANY) return backward[0] == VPPS_I_COPY;
    return group->user_argument < 2 && backward[group->user_argument] == VPPS_I_COPY;
}

static bool place_gradients(vpps_schedule_work *w) {
    if (!prepare_tables(w)) return false;
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        const vpps_signature_work *sw = &w->signatures[w->signature_order[i]];
        const vpps_signature *s = &w->g->signatures[w->signature_order[i]];
        uint32_t at = vpps_take_pool(w, 0);
        for (uint32_t j = 0; j < sw->n_groups; j++) {
            vpps_group *group = &w->groups[w->signature_groups[sw->first_group + j]];
            group->gradient_base = VPPS_NO_OFFSET;
            group->gradient_stride = vpps_words(s);
            if (!(group->flags & (VPPS_GRADIENT | VPPS_SLOT))) continue;
            if (s->op == VPPS_OP_LOOKUP) {
                if (!place_entries(w, group)) return false;
                at = (uint32_t)w->next_word;
            } else if (s->op == VPPS_OP_PARAMETER) {
                group->gradient_base = w->plan->gradients[s->param];
            } else if (!shares_gradient(w, group)) {
                uint64_t words = (uint64_t)group->n * vpps_words(s);
                group->gradient_base = at;
                w->next_word += words;
                at += (uint32_t)words;
            }
        }
    }
    for (uint32_t i = w->n_groups; i-- > 0;) { /* users before what they use */
        vpps_group *group = &w->groups[w->by_level[i]];
        if ((group->flags & (VPPS_GRADIENT | VPPS_SLOT)) && group->gradient_base == VPPS_NO_OFFSET) {
            group->gradient_base = w->groups[group->user].gradient_base;
            group->gradient_stride =
                group->user_argument == VPPS_NO_OFFSET ? 0 : w->groups[group->user].gradient_stride;
        }
    }
    return true;
}

vpps_status vpps_plan_memory(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    uint32_t n = w->flat->n_nodes;
    w->next_word = w->plan->batch;
    place_values(w);
    for (uint32_t i = 0; i < w->n_groups; i++) w->groups[i].gradient_base = VPPS_NO_OFFSET;
    if (w->training && !place_gradients(w)) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    if (!w->request->layout) return VPPS_OK;
    if (!VPPS_RESERVE(s->values, w->values_capacity, n) || !VPPS_RESERVE(s->gradients, w->gradients_capacity, n)) {
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        bool needed = w->flags[i] & VPPS_NEEDED;
        s->values[i] = needed ? vpps_value_of(w, i) : VPPS_NO_OFFSET;
        s->gradients[i] = needed ? vpps_gradient_of(w, i) : VPPS_NO_OFFSET;
    }
    return VPPS_OK;
}

uint32_t vpps_scheduled_value(const vpps_scheduler *s, vpps_node x) { return vpps_value_of(s->work, x); }
