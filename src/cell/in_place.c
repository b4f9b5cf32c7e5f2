/* in_place.c - removes copies to buffers (slots) from the steps of a stage (part of a cell), for a device whose
 * steps can read and write vertices' values in memory by address (in_place in vpps_cell_needs). */
#include "cell/program.h"

static bool is_slot(const vpps_operand *o, uint32_t slot) { return o->place == VPPS_PLACE_SLOT && o->at == slot; }

static bool writes(const vpps_program_step *s, uint32_t slot) {
    return is_slot(&s->to, slot) || (s->kind == VPPS_STEP_RUN && is_slot(&s->run.positions, slot));
}

static void drop(vpps_program *p, uint32_t i) {
    memmove(&p->steps[i], &p->steps[i + 1], (p->n - i - 1) * sizeof *p->steps);
    p->n--;
}

/* Returns whether the step takes vertices (or nodes of lists) one by one; others need all their values adjacent. */
static bool goes_by_items(const vpps_program_step *s) {
    if (s->kind != VPPS_STEP_RUN) return false;
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    return !(s->run.of.over_list && s->axis) && form != VPPS_FORM_DECIDED && form != VPPS_FORM_WEIGHTS;
}

/* Returns whether one call computes a step for all vertices (or nodes of lists), whose values must be adjacent for
 * that. A value of 64 words or more gets a call of its own, which costs less than a copy of the value. */
static bool at_once(const vpps_program_step *s) { return s->run.uniform && vpps_operand_words(&s->to) < 64; }

bool vpps_reads_in_place(const vpps_program *p, const vpps_program_step *s, const vpps_operand *o) {
    if (s->kind == VPPS_STEP_PRODUCT || s->kind == VPPS_STEP_CONTRIBUTE) return true;
    const bool weights = s->run.weights && o == &p->operands[s->first + s->run.tensors + s->run.scalars];
    const bool parts = vpps_instructions[s->run.of.opcode].form == VPPS_FORM_PARTS && o->access == VPPS_ACCESS_MEMBERS;
    return goes_by_items(s) && !at_once(s) && !weights && !parts;
}

/* Returns whether the step writes its result where operand o lies in a record (a vertex's kept values). */
static bool overwrites(const vpps_program_step *s, const vpps_operand *o) {
    return s->to.place == VPPS_PLACE_RECORD && o->place == VPPS_PLACE_RECORD && s->to.record == o->record &&
           s->to.at == o->at;
}

bool vpps_writes_in_place(const vpps_program *p, const vpps_program_step *s) {
    const bool record = s->to.place == VPPS_PLACE_RECORD, product = s->kind == VPPS_STEP_PRODUCT;
    for (uint32_t k = 0; k < s->n; k++)
        if (overwrites(s, &p->operands[s->first + k]) && !vpps_goes_by_elements(s)) return false;
    if (product) return record && s->to.cols == 1 && !overwrites(s, &s->product.start);
    return goes_by_items(s) && !s->run.positions.place &&
           (s->to.place == VPPS_PLACE_CONTRIBUTION || (record && !at_once(s)));
}

/* Makes all steps from step i on that read a slot (buffer) read `from` in memory. If a step cannot, changes nothing and returns false. */
static bool redirect(vpps_program *p, uint32_t i, uint32_t slot, const vpps_operand *from) {
    for (uint32_t pass = 0; pass < 2; pass++) {
        bool overwritten = from->place == VPPS_PLACE_CONTRIBUTION;
        for (uint32_t j = i; j < p->n; j++) {
            const vpps_program_step *s = &p->steps[j];
            if (s->kind == VPPS_STEP_PRODUCT && is_slot(&s->product.start, slot)) return false;
            overwritten |= overwrites(s, from);
            for (uint32_t k = 0; k < s->n; k++) {
                vpps_operand *o = &p->operands[s->first + k];
                if (!is_slot(o, slot)) continue;
                if (!pass && (overwritten || !vpps_reads_in_place(p, s, o))) return false;
                if (!pass) continue;
                o->place = from->place;
                o->record = from->record;
                o->at = from->at;
            }
            if (writes(s, slot)) break;
        }
    }
    return true;
}

/* If step i loads a value into a slot (buffer): makes the readers of the slot read the value in memory. Values of less than 16
 * words are read faster in slots, side by side. Returns false if a reader cannot read memory. */
static bool read_in_place(vpps_program *p, uint32_t i) {
    if (p->steps[i].kind != VPPS_STEP_LOAD) return false;
    const vpps_operand from = p->operands[p->steps[i].first];
    const bool given = from.place == VPPS_PLACE_INPUT || from.place == VPPS_PLACE_ENTRY;
    return from.place != VPPS_PLACE_DATA && !from.shares && (given || vpps_operand_words(&from) >= 16) &&
           redirect(p, i + 1, p->steps[i].to.at, &from);
}

/* If the next step copies step i's result from its slot (buffer) to memory: makes step i write to memory, and later readers of the
 * slot read memory. Returns false if one of these steps cannot. */
static bool write_in_place(vpps_program *p, uint32_t i) {
    vpps_program_step *s = &p->steps[i], *copy = s + 1;
    const vpps_operand to = s->to;
    if (to.place != VPPS_PLACE_SLOT || i + 1 == p->n || copy->to.dealt != to.dealt ||
        (copy->kind != VPPS_STEP_STORE && copy->kind != VPPS_STEP_CONTRIBUTE) ||
        !is_slot(&p->operands[copy->first], to.at))
        return false;
    s->to = copy->to;
    if (vpps_writes_in_place(p, s) && redirect(p, i + 2, to.at, &copy->to)) return true;
    s->to = to;
    return false;
}

void vpps_place_in_memory(vpps_program *p) {
    for (uint32_t i = p->n; i-- > 0;)
        if (read_in_place(p, i)) drop(p, i);
    for (uint32_t i = 0; i < p->n; i++)
        if (write_in_place(p, i)) drop(p, i + 1);
    for (uint32_t slot = 0; slot < p->slots.n; slot++) {
        bool used = false;
        for (uint32_t i = 0; i < p->n; i++) used |= writes(&p->steps[i], slot);
        if (!used) p->slots.at[slot] = (vpps_slot){.words = 0};
    }
}
