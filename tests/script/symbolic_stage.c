/* symbolic_stage.c - a stage over some vertices, as task.h and program.h say. */
#include "symbolic_tile.h"

uint32_t symbolic_member(const symbolic_tile *t, uint32_t axis, uint32_t vertex) {
    return axis < VPPS_DOMAINS && t->b->lists[axis] ? symbolic_word(t->m, t->b->lists[axis] + vertex) : 0;
}

uint32_t symbolic_members(const symbolic_tile *t, uint32_t axis, uint32_t vertex) {
    return symbolic_member(t, axis, vertex + 1) - symbolic_member(t, axis, vertex);
}

uint32_t symbolic_vertex(const symbolic_tile *t, uint32_t axis, uint32_t item) {
    if (!axis) return item;
    for (uint32_t p = t->first[0]; p < t->first[0] + t->n[0]; p++)
        if (item < symbolic_member(t, axis, p + 1)) return p;
    t->m->fault = true;
    return t->first[0];
}

/* Where an item of a value that is kept, read or a parameter lies. */
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

/* ---------------------------------------------------------------- operands */

vpps_rows symbolic_own(const symbolic_tile *t, const vpps_operand *o) {
    if (!o->dealt) return (vpps_rows){0, vpps_operand_words(o)};
    if (o->dealt > t->p->n_dealt || t->p->dealt[o->dealt - 1] != o->rows || o->cols != 1) t->m->fault = true;
    return vpps_rows_of(o->rows, t->c->needs.row_unit, t->c->needs.group, t->member);
}

uint64_t *symbolic_item(const symbolic_tile *t, const vpps_operand *o, uint32_t i) {
    const vpps_slot *slot = o->place == VPPS_PLACE_SLOT && o->at < t->p->slots.n ? &t->p->slots.at[o->at] : NULL;
    if (slot && slot->axis == o->axis && slot->dealt == o->dealt && slot->words == vpps_operand_words(o) &&
        i < t->n[o->axis])
        return t->slot[o->at] + (size_t)i * slot->words;
    t->m->fault = true;
    return NULL;
}

/* Where item i of an operand lies in the pool, of a share. */
static uint64_t in_pool(const symbolic_tile *t, const vpps_operand *o, uint32_t i, uint32_t share) {
    const uint32_t item = o->axis < VPPS_DOMAINS ? t->first[o->axis] + i : 0;
    uint64_t at = 0;
    if (o->axis >= VPPS_DOMAINS || i >= t->n[o->axis] || o->value >= t->c->n_values) return t->m->fault = true, 0;
    switch (o->place) {
    case VPPS_PLACE_INPUT:
        if (o->at >= t->c->n_inputs || t->c->input_domain[o->at] != o->axis) return t->m->fault = true, 0;
        return symbolic_word(t->m, t->b->inputs[o->at] + item);
    case VPPS_PLACE_ENTRY:
        if (o->at >= t->c->n_lookups || o->axis) return t->m->fault = true, 0;
        return symbolic_word(t->m, t->b->lookups[o->at] + item);
    case VPPS_PLACE_PARAMETER:
        if (o->at >= t->m->s->g->model->n_params) return t->m->fault = true, 0;
        return t->m->s->machine->values[o->at];
    case VPPS_PLACE_RECORD:
        if (o->record >= VPPS_RECORDS || vpps_domain_of(o->record) != o->axis) return t->m->fault = true, 0;
        at = vpps_is_passing(o->record) ? t->m->passing - (uint64_t)t->m->passing_first * t->c->kept_words[o->record]
                                        : t->b->b.kept[o->axis];
        at += (uint64_t)item * t->c->kept_words[o->record] + o->at;
        return at + (o->shares ? (uint64_t)share * vpps_share_words(&t->c->values[o->value]) : 0);
    default: return t->m->fault = true, 0;
    }
}

uint64_t symbolic_element(const symbolic_tile *t, const vpps_operand *o, uint32_t i, uint32_t e) {
    if (e >= vpps_operand_words(o)) return t->m->fault = true, 0;
    if (o->place != VPPS_PLACE_SLOT) return symbolic_get(t->m, in_pool(t, o, i, t->member) + e);
    const uint64_t *item = symbolic_item(t, o, i);
    return item ? item[e] : 0;
}

/* ---------------------------------------------------------------- steps */

/* Where a contribution's item i lies. */
static uint64_t contribution(const symbolic_tile *t, const vpps_operand *o, uint32_t i) {
    uint64_t at = t->contributions;
    if (o->at >= t->c->n_contributions) return t->m->fault = true, 0;
    for (uint32_t j = 0;; j++) {
        const vpps_cell_contribution *to = &t->c->contributions[j];
        if (to->value >= t->c->n_values) return t->m->fault = true, 0;
        const vpps_cell_value *y = &t->c->values[to->value];
        const uint64_t first = y->domain ? symbolic_member(t, y->domain, t->task_first) : t->task_first;
        const uint32_t end = t->task_first + t->task_n;
        const uint64_t items = y->domain ? symbolic_member(t, y->domain, end) - first : t->task_n;
        const uint64_t share = (items * vpps_value_words(y) + 15) / 16 * 16;
        if (j == o->at) {
            if (y->stage != t->stage || y->domain != o->axis || o->shares != to->partial) t->m->fault = true;
            at += o->shares ? t->member * share : 0;
            return at + (t->first[o->axis] - first + i) * vpps_operand_words(o);
        }
        if (y->stage == t->stage) at += share * (to->partial ? t->c->needs.group : 1);
    }
}

/* Stores element e of what a step makes. */
static void put(const symbolic_tile *t, const vpps_operand *to, uint32_t i, uint32_t e, uint64_t value) {
    if (to->place == VPPS_PLACE_SLOT) {
        uint64_t *item = symbolic_item(t, to, i);
        if (item) item[e] = value;
    } else {
        const bool contributed = to->place == VPPS_PLACE_CONTRIBUTION;
        if (!contributed && to->place != VPPS_PLACE_RECORD) t->m->fault = true;
        symbolic_put(t->m, (contributed ? contribution(t, to, i) : in_pool(t, to, i, t->member)) + e, value);
    }
}

static void load(const symbolic_tile *t, const vpps_program_step *s) {
    const vpps_operand *from = &t->p->operands[s->first];
    const vpps_rows rows = symbolic_own(t, from);
    if (s->n != 1 || from->dealt != s->to.dealt || from->rows != s->to.rows || from->cols != s->to.cols)
        t->m->fault = true;
    for (uint32_t i = 0; i < t->n[s->axis] && !t->m->fault; i++) {
        const bool data = from->place == VPPS_PLACE_DATA && t->c->is_data && !s->axis;
        const uint64_t at = data ? symbolic_word(t->m, t->b->data + t->first[0] + i) : in_pool(t, from, i, 0);
        for (uint32_t e = rows.first; e < rows.end && !t->m->fault; e++) {
            uint64_t x = data ? symbolic_mix(9, symbolic_word(t->m, at + e)) : symbolic_get(t->m, at + e);
            for (uint32_t m = 1; from->shares && m < t->c->needs.group; m++)
                x += symbolic_get(t->m, in_pool(t, from, i, m) + e);
            put(t, &s->to, i, e, x);
        }
    }
}

static void sum_gradients(const symbolic_tile *t, const vpps_program_step *s) {
    const vpps_rows rows = symbolic_own(t, &s->to);
    if (s->output >= t->c->n_outputs || !t->b->gradient_starts[s->output] || s->axis) {
        t->m->fault = true;
        return;
    }
    for (uint32_t i = 0; i < t->n[0] && !t->m->fault; i++) {
        const uint64_t starts = t->b->gradient_starts[s->output] + t->first[0] + i;
        const uint32_t first = symbolic_word(t->m, starts), end = symbolic_word(t->m, starts + 1);
        if (end < first || end - first > t->m->s->words) t->m->fault = true;
        for (uint32_t e = rows.first; e < rows.end && !t->m->fault; e++) {
            uint64_t sum = 0;
            for (uint32_t k = first; k < end; k++)
                sum += symbolic_get(t->m, (uint64_t)symbolic_word(t->m, t->b->gradients[s->output] + k) + e);
            put(t, &s->to, i, e, sum);
        }
    }
}

static void multiply(const symbolic_tile *t, const vpps_program_step *s) {
    const vpps_rows rows = symbolic_own(t, &s->to);
    for (uint32_t i = 0; i < t->n[s->axis] && !t->m->fault; i++)
        for (uint32_t e = rows.first; e < rows.end && !t->m->fault; e++)
            put(t, &s->to, i, e, symbolic_product(t, s, i, e));
}

static void copy_out(const symbolic_tile *t, const vpps_program_step *s) {
    const vpps_operand *from = &t->p->operands[s->first];
    const vpps_rows rows = symbolic_own(t, &s->to);
    if (s->n != 1 || from->place != VPPS_PLACE_SLOT || from->dealt != s->to.dealt || from->rows != s->to.rows ||
        from->cols != s->to.cols || s->to.place == VPPS_PLACE_SLOT)
        t->m->fault = true;
    for (uint32_t i = 0; i < t->n[s->axis] && !t->m->fault; i++)
        for (uint32_t e = rows.first; e < rows.end && !t->m->fault; e++)
            put(t, &s->to, i, e, symbolic_element(t, from, i, e));
}

static void run_step(const symbolic_tile *t, const vpps_program_step *s) {
    if (s->first > t->p->n_operands || s->n > t->p->n_operands - s->first || s->axis > t->c->n_lists ||
        s->axis != s->to.axis) {
        t->m->fault = true;
        return;
    }
    switch (s->kind) {
    case VPPS_STEP_LOAD: load(t, s); break;
    case VPPS_STEP_GRADIENT: sum_gradients(t, s); break;
    case VPPS_STEP_RUN: symbolic_instruction(t, s); break;
    case VPPS_STEP_PRODUCT: multiply(t, s); break;
    case VPPS_STEP_STORE:
    case VPPS_STEP_CONTRIBUTE: copy_out(t, s); break;
    default: t->m->fault = true;
    }
}

/* ---------------------------------------------------------------- all */

static void open_slots(symbolic_tile *t) {
    t->slot = symbolic_take(t->p->slots.n, sizeof *t->slot);
    for (uint32_t s = 0; s < t->p->slots.n; s++) {
        const size_t n = (size_t)t->n[t->p->slots.at[s].axis] * t->p->slots.at[s].words;
        t->slot[s] = symbolic_take(n, sizeof **t->slot);
        for (size_t i = 0; i < n; i++) t->slot[s][i] = symbolic_mix(t->m->salt + 17 + s, i);
    }
}

static void run_tile(symbolic_tile *t) {
    for (uint32_t d = 1; d < VPPS_DOMAINS; d++) {
        t->first[d] = symbolic_member(t, d, t->first[0]);
        const uint32_t end = symbolic_member(t, d, t->first[0] + t->n[0]);
        t->n[d] = end - t->first[d];
        if (end < t->first[d] || t->n[d] > t->m->s->words) t->m->fault = true;
    }
    if (t->m->fault) return;
    open_slots(t);
    for (uint32_t i = 0; i < t->p->n && !t->m->fault; i++) run_step(t, &t->p->steps[i]);
    for (uint32_t s = 0; s < t->p->slots.n; s++) free(t->slot[s]);
    free(t->slot);
}

void symbolic_stage(symbolic_machine *m, const vpps_task *task) {
    const uint32_t block = task->operands[0], stage = task->stage, first = task->operands[1], n = task->operands[2];
    if (block >= m->h.n_blocks || stage >= m->blocks[block].c->n_stages || first > m->blocks[block].b.n ||
        n > m->blocks[block].b.n - first) {
        m->fault = true;
        return;
    }
    m->passing = task->passing;
    m->passing_first = first;
    const symbolic_block *b = &m->blocks[block];
    const uint32_t group = b->c->needs.group, member = m->vp % group;
    symbolic_tile t = {.m = m,
                       .b = b,
                       .c = b->c,
                       .p = &b->c->programs[stage],
                       .stage = stage,
                       .task_first = first,
                       .task_n = n,
                       .contributions = task->contributions,
                       .member = member};
    const bool rows = t.p->rows;
    const uint32_t begin = rows ? first : first + (uint32_t)((uint64_t)n * member / group);
    const uint32_t end = rows ? first + n : first + (uint32_t)((uint64_t)n * (member + 1) / group);
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
