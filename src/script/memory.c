/* memory.c - where a batch's tensors lie in the pool.
 *
 * Nodes of one signature lie side by side, by level. So the nodes of a group are one block, and so are all of a
 * matrix's products in a batch. Four things save memory and traffic:
 *   - a lookup's or a parameter node's value is the parameter's own memory;
 *   - an activation overwrites its argument where nobody else reads that (see ops.def);
 *   - all lookups of one entry share a gradient, as all uses of a vector share the vector's;
 *   - an argument of a sum whose only use this is has the sum's gradient for its own.
 */
#include "script/work.h"

uint32_t vpps_take_pool(vpps_schedule_work *w, uint64_t words) {
    uint64_t at = (w->next_word + 15) & ~(uint64_t)15;
    w->next_word = at + words;
    return (uint32_t)at; /* an overflow is found at the end, where both numbers are known */
}


static bool names(const char *operands, char letter) { return strchr(operands, letter) != NULL; }

/* May nodes of this signature overwrite their argument, as far as the operation goes? */
static bool may_overwrite(const vpps_op_row *op, bool training) {
    return op->klass == VPPS_CLASS_EW && op->max_args == 1 && !(training && names(op->backward_operands[0], 'a'));
}

/* May a node of this operation be overwritten by its user? */
static bool may_be_overwritten(const vpps_op_row *op, bool training) {
    if (op->klass == VPPS_CLASS_SOURCE) return false;
    return !training || !(names(op->backward_operands[0], 'y') || names(op->backward_operands[1], 'y'));
}

static void choose_inplace(vpps_schedule_work *w, const vpps_signature_work *sw, const vpps_op_row *op) {
    if (!may_overwrite(op, w->training)) return;
    const uint32_t *nodes = w->order + w->groups[w->signature_groups[sw->first_group]].first;
    for (uint32_t j = 0; j < sw->n_nodes; j++) {
        uint32_t x = w->flat->args[w->flat->nodes[nodes[j]].args];
        const vpps_op_row *producer = &vpps_ops[w->g->signatures[w->flat->nodes[x].signature].op];
        if (w->uses[x] == 1 && !(w->flags[x] & VPPS_KEPT) && may_be_overwritten(producer, w->training)) {
            w->flags[nodes[j]] |= VPPS_INPLACE;
        }
    }
}

static void place_values(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        vpps_signature_work *sw = &w->signatures[w->signature_order[i]];
        const vpps_signature *signature = &w->g->signatures[w->signature_order[i]];
        const vpps_op_row *op = &vpps_ops[signature->op];
        const uint32_t *nodes = w->order + w->groups[w->signature_groups[sw->first_group]].first;
        uint32_t words = vpps_words(signature);
        if (signature->op == VPPS_OP_LOOKUP || signature->op == VPPS_OP_PARAMETER) {
            for (uint32_t j = 0; j < sw->n_nodes; j++) {
                s->values[nodes[j]] = w->plan->values[signature->param] + w->flat->nodes[nodes[j]].imm * words;
            }
            continue;
        }
        choose_inplace(w, sw, op);
        if (names(op->forward_operands, 'i')) words *= 2; /* the indices, behind the value */
        uint32_t n = 0;
        for (uint32_t j = 0; j < sw->n_nodes; j++) n += !(w->flags[nodes[j]] & VPPS_INPLACE);
        sw->base = vpps_take_pool(w, (uint64_t)n * words);
        uint32_t at = sw->base;
        for (uint32_t j = 0; j < sw->n_nodes; j++) {
            if (w->flags[nodes[j]] & VPPS_INPLACE) continue;
            s->values[nodes[j]] = at;
            at += words;
        }
    }
    for (uint32_t i = 0; i < w->flat->n_nodes; i++) {
        if (!(w->flags[i] & VPPS_NEEDED)) {
            s->values[i] = VPPS_NO_OFFSET;
        } else if (w->flags[i] & VPPS_INPLACE) {
            s->values[i] = s->values[w->flat->args[w->flat->nodes[i].args]];
        }
    }
}

/* ---------------------------------------------------------------- gradients */

/* The first lookup of a table's entry in this batch stands for all; every other use makes its gradient shared. */
static vpps_status find_representatives(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    const vpps_model *model = w->g->model;
    if (w->n_tables < model->n_params) {
        uint32_t **r = realloc(w->representatives, model->n_params * sizeof *r);
        if (r) w->representatives = r;
        uint32_t **t = realloc(w->stamps, model->n_params * sizeof *t);
        if (t) w->stamps = t;
        if (!r || !t) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
        for (; w->n_tables < model->n_params; w->n_tables++) w->representatives[w->n_tables] = w->stamps[w->n_tables] = NULL;
    }
    w->stamp++;
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        const vpps_signature *signature = &w->g->signatures[w->signature_order[i]];
        if (signature->op != VPPS_OP_LOOKUP && signature->op != VPPS_OP_PARAMETER) continue;
        uint32_t p = signature->param, count = model->params[p].count;
        if (!w->stamps[p]) {
            w->stamps[p] = calloc(count, sizeof **w->stamps);
            w->representatives[p] = malloc(count * sizeof **w->representatives);
            if (!w->stamps[p] || !w->representatives[p]) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
        }
        const vpps_signature_work *sw = &w->signatures[w->signature_order[i]];
        const uint32_t *nodes = w->order + w->groups[w->signature_groups[sw->first_group]].first;
        for (uint32_t j = 0; j < sw->n_nodes; j++) {
            uint32_t row = w->flat->nodes[nodes[j]].imm;
            if (w->stamps[p][row] != w->stamp) {
                w->stamps[p][row] = w->stamp;
                w->representatives[p][row] = nodes[j];
            } else {
                w->flags[nodes[j]] |= VPPS_ALIAS;
                w->flags[w->representatives[p][row]] |= w->flags[nodes[j]] & VPPS_SLOT;
            }
            w->flags[nodes[j]] |= VPPS_ZEROED; /* others may come, and affine adds anyway */
        }
    }
    return VPPS_OK;
}

/* Has x the gradient of its only user y for its own? Affine nodes do not: their gradients stay one block. */
static bool shares_gradient(const vpps_schedule_work *w, vpps_node x) {
    if (w->uses[x] != 1 || (w->flags[x] & VPPS_KEPT)) return false;
    vpps_node y = w->consumer[x];
    uint8_t op = w->g->signatures[w->flat->nodes[x].signature].op;
    const vpps_op_row *user = &vpps_ops[w->g->signatures[w->flat->nodes[y].signature].op];
    if (op == VPPS_OP_AFFINE || vpps_ops[op].klass == VPPS_CLASS_SOURCE || user->klass != VPPS_CLASS_EW) return false;
    uint32_t k = user->max_args == VPPS_MANY ? 0 : w->flat->args[w->flat->nodes[y].args] != x;
    return user->backward[k] == VPPS_I_COPY;
}

static void place_gradients(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    for (uint32_t i = 0; i < w->flat->n_nodes; i++) {
        s->gradients[i] = VPPS_NO_OFFSET;
        if (!(w->flags[i] & VPPS_NEEDED) || !(w->flags[i] & (VPPS_GRADIENT | VPPS_SLOT))) continue;
        if (shares_gradient(w, i)) w->flags[i] |= VPPS_ALIAS;
        if (w->uses[i] > 1) w->flags[i] |= VPPS_ZEROED;
    }
    for (uint32_t i = 0; i < w->n_signatures; i++) {
        vpps_signature_work *sw = &w->signatures[w->signature_order[i]];
        const vpps_signature *signature = &w->g->signatures[w->signature_order[i]];
        const uint32_t *nodes = w->order + w->groups[w->signature_groups[sw->first_group]].first;
        uint32_t words = vpps_words(signature), n = 0;
        if (signature->op == VPPS_OP_PARAMETER) {
            for (uint32_t j = 0; j < sw->n_nodes; j++) {
                if (w->flags[nodes[j]] & (VPPS_GRADIENT | VPPS_SLOT)) {
                    s->gradients[nodes[j]] = w->plan->gradients[signature->param];
                }
            }
            continue;
        }
        for (uint32_t j = 0; j < sw->n_nodes; j++) {
            n += (w->flags[nodes[j]] & (VPPS_GRADIENT | VPPS_SLOT)) && !(w->flags[nodes[j]] & VPPS_ALIAS);
        }
        sw->gradient_base = vpps_take_pool(w, (uint64_t)n * words);
        uint32_t at = sw->gradient_base;
        for (uint32_t j = 0; j < sw->n_nodes; j++) {
            if (!(w->flags[nodes[j]] & (VPPS_GRADIENT | VPPS_SLOT)) || (w->flags[nodes[j]] & VPPS_ALIAS)) continue;
            s->gradients[nodes[j]] = at;
            at += words;
        }
    }
    for (uint32_t i = w->flat->n_nodes; i-- > 0;) { /* users before what they use */
        if (!(w->flags[i] & VPPS_NEEDED) || !(w->flags[i] & VPPS_ALIAS)) continue;
        const vpps_signature *signature = &w->g->signatures[w->flat->nodes[i].signature];
        if (signature->op == VPPS_OP_LOOKUP) {
            if (!(w->flags[i] & (VPPS_GRADIENT | VPPS_SLOT))) continue;
            s->gradients[i] = s->gradients[w->representatives[signature->param][w->flat->nodes[i].imm]];
        } else if (signature->op != VPPS_OP_PARAMETER) {
            s->gradients[i] = s->gradients[w->consumer[i]];
        }
    }
}

vpps_status vpps_plan_memory(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    uint32_t n = w->flat->n_nodes;
    if (!VPPS_RESERVE(s->values, w->values_capacity, n) || !VPPS_RESERVE(s->gradients, w->gradients_capacity, n)) {
        return vpps_fail(VPPS_MEMORY, "schedule: out of memory for %u nodes", n);
    }
    w->next_word = w->plan->batch;
    place_values(s);
    if (w->training) {
        VPPS_TRY(find_representatives(s));
        place_gradients(s);
    } else {
        memset(s->gradients, 0xff, n * sizeof *s->gradients);
    }
    return VPPS_OK;
}
