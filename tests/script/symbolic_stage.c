/* symbolic_stage.c - a stage over some vertices, as task.h and cell.h say. */
#include "symbolic_tile.h"

uint32_t symbolic_member(const symbolic_tile *t, uint32_t domain, uint32_t vertex) {
    return t->b->lists[domain] ? symbolic_word(t->m, t->b->lists[domain] + vertex) : 0;
}

uint32_t symbolic_members(const symbolic_tile *t, uint32_t domain, uint32_t vertex) {
    return symbolic_member(t, domain, vertex + 1) - symbolic_member(t, domain, vertex);
}

uint32_t symbolic_vertex(const symbolic_tile *t, uint32_t domain, uint32_t item) {
    if (!domain) return item;
    for (uint32_t p = t->first[0]; p < t->first[0] + t->n[0]; p++)
        if (item < symbolic_member(t, domain, p + 1)) return p;
    t->m->fault = true;
    return t->first[0];
}

vpps_rows symbolic_own(const symbolic_tile *t, const vpps_cell_value *x) {
    if (!t->rows || (vpps_makes_shares(x) && x->stage == t->stage)) return (vpps_rows){0, vpps_value_words(x)};
    return vpps_own_rows(&t->c->needs, x, t->member);
}

uint64_t symbolic_place(symbolic_machine *m, const symbolic_block *b, uint32_t value, uint32_t item) {
    const vpps_cell_value *x = &b->c->values[value];
    switch (x->kind) {
    case VPPS_VALUE_INPUT: return symbolic_word(m, b->inputs[x->input] + item);
    case VPPS_VALUE_LOOKUP: return symbolic_word(m, b->lookups[x->lookup] + item);
    case VPPS_VALUE_PARAMETER: return m->s->machine->values[x->vector];
    default:
        if (vpps_is_passing(x->record))
            return m->passing + ((uint64_t)item - m->passing_first) * b->c->kept_words[x->record] + x->offset;
        return (uint64_t)b->b.kept[x->domain] + (uint64_t)item * b->c->kept_words[x->domain] + x->offset;
    }
}

uint64_t *symbolic_slot(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const size_t n = (size_t)t->n[x->domain] * vpps_value_words(x);
    if (t->slot[v]) return t->slot[v];
    t->slot[v] = symbolic_take(n, sizeof *t->slot[v]);
    for (size_t i = 0; i < n; i++) t->slot[v][i] = symbolic_mix(t->m->salt + 17, i); /* what is not owned is unknown */
    return t->slot[v];
}

/* Takes a value from memory. */
static void load(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    if (t->slot[v]) return;
    if (x->stage == t->stage && x->kind != VPPS_VALUE_DATA) { /* it is made here, but later */
        t->m->fault = true;
        return;
    }
    uint64_t *to = symbolic_slot(t, v);
    const vpps_rows rows = symbolic_own(t, x);
    const uint32_t words = vpps_value_words(x), shares = vpps_shares_of(t->c, x);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        if (x->kind == VPPS_VALUE_DATA) {
            const uint32_t address = symbolic_word(t->m, t->b->data + t->first[0] + i);
            for (uint32_t e = rows.first; e < rows.end; e++)
                to[e] = symbolic_mix(9, symbolic_word(t->m, address + (uint64_t)e));
            continue;
        }
        const uint64_t at = symbolic_place(t->m, t->b, v, t->first[x->domain] + i);
        for (uint32_t e = rows.first; e < rows.end; e++) {
            to[e] = symbolic_get(t->m, at + e);
            for (uint32_t s = 1; s < shares; s++)
                to[e] += symbolic_get(t->m, at + (uint64_t)s * vpps_share_words(x) + e);
        }
    }
}

static void sum_gradients(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    uint64_t *to = symbolic_slot(t, v);
    const vpps_rows rows = symbolic_own(t, x);
    for (uint32_t i = 0; i < t->n[0]; i++, to += vpps_value_words(x)) {
        const uint64_t starts = t->b->gradient_starts[x->output] + t->first[0] + i;
        const uint32_t first = symbolic_word(t->m, starts), end = symbolic_word(t->m, starts + 1);
        for (uint32_t e = rows.first; e < rows.end; e++) to[e] = 0;
        if (!t->b->gradient_starts[x->output] || end < first || end - first > t->m->s->words) {
            t->m->fault = true;
            return;
        }
        for (uint32_t k = first; k < end; k++) {
            const uint64_t from = symbolic_word(t->m, t->b->gradients[x->output] + k);
            for (uint32_t e = rows.first; e < rows.end; e++) to[e] += symbolic_get(t->m, from + e);
        }
    }
}

/* ---------------------------------------------------------------- results */

static void store(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_rows rows = symbolic_own(t, x);
    const uint64_t skip = vpps_makes_shares(x) ? (uint64_t)t->member * vpps_share_words(x) : 0;
    for (uint32_t i = 0; i < t->n[x->domain]; i++) {
        const uint64_t at = symbolic_place(t->m, t->b, v, t->first[x->domain] + i) + skip;
        for (uint32_t e = rows.first; e < rows.end; e++)
            symbolic_put(t->m, at + e, t->slot[v][(size_t)i * vpps_value_words(x) + e]);
    }
}

static void contribute(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_rows rows = symbolic_own(t, x);
    uint64_t at = t->contributions;
    for (uint32_t j = 0; j < t->c->n_contributions; j++) {
        const vpps_cell_contribution *to = &t->c->contributions[j];
        const vpps_cell_value *y = value_of(t, to->value);
        if (y->stage != t->stage) continue;
        const uint64_t first = y->domain ? symbolic_member(t, y->domain, t->task_first) : t->task_first;
        const uint64_t end = t->task_first + (uint64_t)t->task_n;
        const uint64_t items = y->domain ? symbolic_member(t, y->domain, (uint32_t)end) - first : t->task_n,
                       words = vpps_value_words(y);
        const uint64_t share = (items * words + 15) / 16 * 16;
        for (uint32_t i = 0; i < t->n[x->domain] && to->value == v; i++)
            for (uint32_t e = rows.first; e < rows.end; e++)
                symbolic_put(t->m,
                             at + (to->partial ? t->member * share : 0) + (t->first[x->domain] - first + i) * words + e,
                             t->slot[v][(size_t)i * words + e]);
        at += share * (to->partial ? t->c->needs.group : 1);
    }
}

/* ---------------------------------------------------------------- all */

static void make_value(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    for (uint32_t k = 0; k < x->n_args && x->kind != VPPS_VALUE_POSITIONS; k++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
        const bool pointer =
            x->kind == VPPS_VALUE_PRODUCT_T || (x->kind == VPPS_VALUE_PRODUCT && a->matrix != VPPS_NO_PARAM);
        if (a->value >= t->c->n_values) t->m->fault = true;
        if (!t->m->fault && !pointer) load(t, a->value);
    }
    if (t->m->fault) return;
    switch (x->kind) {
    case VPPS_VALUE_DATA: load(t, v); break;
    case VPPS_VALUE_GRADIENT: sum_gradients(t, v); break;
    case VPPS_VALUE_RUN:
        (vpps_instructions[x->run.opcode].form == VPPS_FORM_PARTS ? symbolic_parts : symbolic_instruction)(t, v);
        break;
    case VPPS_VALUE_PRODUCT: symbolic_product(t, v); break;
    case VPPS_VALUE_PRODUCT_T: symbolic_product_t(t, v); break;
    case VPPS_VALUE_POSITIONS: t->m->fault |= !t->slot[v]; break;
    default: t->m->fault = true; break;
    }
    if (!t->m->fault && x->kept) store(t, v);
    if (!t->m->fault) contribute(t, v);
}

static void run_tile(symbolic_tile *t) {
    const vpps_cell_stage *stage = &t->c->stages[t->stage];
    t->slot = symbolic_take(t->c->n_values, sizeof *t->slot);
    for (uint32_t d = 1; d < VPPS_DOMAINS; d++) {
        t->first[d] = symbolic_member(t, d, t->first[0]);
        const uint32_t end = symbolic_member(t, d, t->first[0] + t->n[0]);
        t->n[d] = end - t->first[d];
        if (end < t->first[d] || t->n[d] > t->m->s->words) t->m->fault = true;
    }
    for (uint32_t i = 0; i < stage->n && !t->m->fault; i++) make_value(t, t->c->order[stage->first + i]);
    for (uint32_t v = 0; v < t->c->n_values; v++) free(t->slot[v]);
    free(t->slot);
}

void symbolic_stage(symbolic_machine *m, const uint32_t *o) {
    const uint32_t block = o[0], stage = o[1], first = o[2], n = o[3];
    if (block >= m->h.n_blocks || stage >= m->blocks[block].c->n_stages || first > m->blocks[block].b.n ||
        n > m->blocks[block].b.n - first) {
        m->fault = true;
        return;
    }
    m->passing = o[4];
    m->passing_first = first;
    const symbolic_block *b = &m->blocks[block];
    const uint32_t group = b->c->needs.group, member = m->vp % group;
    symbolic_tile t = {.m = m,
                       .b = b,
                       .c = b->c,
                       .stage = stage,
                       .task_first = first,
                       .task_n = n,
                       .contributions = o[5],
                       .member = member,
                       .rows = b->c->stages[stage].split == VPPS_SPLIT_ROWS};
    const uint32_t begin = t.rows ? first : first + (uint32_t)((uint64_t)n * member / group);
    const uint32_t end = t.rows ? first + n : first + (uint32_t)((uint64_t)n * (member + 1) / group);
    const uint32_t size = m->tiles == SYMBOLIC_AT_ONCE ? end - begin : 1;
    for (uint32_t i = 0; i * size < end - begin && !m->fault; i++) {
        t.first[0] = m->tiles == SYMBOLIC_BACKWARDS ? end - 1 - i : begin + i;
        t.n[0] = size;
        run_tile(&t);
    }
}

void symbolic_constants(symbolic_machine *m, uint32_t address, uint32_t n) {
    if (n > m->s->words) m->fault = true;
    for (uint32_t i = 0; i < n && m->vp % m->group_size == 0 && !m->fault; i++) {
        const uint32_t offset = symbolic_word(m, address + 2 * (uint64_t)i);
        const uint32_t bits = symbolic_word(m, address + 2 * (uint64_t)i + 1);
        float f;
        memcpy(&f, &bits, sizeof f);
        symbolic_put(m, offset, symbolic_number(f));
    }
}
