/* in_place.c - removes copies from a stage's program, for a device whose instructions find each item by its address (in_place in
 * vpps_cell_needs): such instructions read inputs and write results in memory instead of in slots. */
#include "cell/program.h"

static bool is_slot(const vpps_operand *o, uint32_t slot) { return o->place == VPPS_PLACE_SLOT && o->at == slot; }

static bool writes(const vpps_program_step *s, uint32_t slot) {
    return is_slot(&s->to, slot) || (s->kind == VPPS_STEP_RUN && is_slot(&s->run.positions, slot));
}

static bool reads(const vpps_program *p, const vpps_program_step *s, uint32_t slot) {
    bool any = s->kind == VPPS_STEP_PRODUCT && is_slot(&s->product.start, slot);
    for (uint32_t k = 0; k < s->n; k++) any |= is_slot(&p->operands[s->first + k], slot);
    return any;
}

static void drop(vpps_program *p, uint32_t i) {
    memmove(&p->steps[i], &p->steps[i + 1], (p->n - i - 1) * sizeof *p->steps);
    p->n--;
}

/* Returns whether the instruction runs for each item (vertex, list member) by itself. Others need items that are adjacent in memory. */
static bool goes_by_items(const vpps_program_step *s) {
    if (s->kind != VPPS_STEP_RUN) return false;
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    return !(s->run.of.over_list && s->axis) && form != VPPS_FORM_DECIDED && form != VPPS_FORM_WEIGHTS;
}

bool vpps_reads_in_place(const vpps_program *p, const vpps_program_step *s, const vpps_operand *o) {
    const bool weights = s->run.weights && o == &p->operands[s->first + s->run.tensors + s->run.scalars];
    const bool parts = vpps_instructions[s->run.of.opcode].form == VPPS_FORM_PARTS && o->access == VPPS_ACCESS_MEMBERS;
    return goes_by_items(s) && !s->run.uniform && !weights && !parts;
}

bool vpps_writes_in_place(const vpps_program_step *s) {
    return goes_by_items(s) && !s->run.positions.place &&
           (s->to.place == VPPS_PLACE_CONTRIBUTION || (s->to.place == VPPS_PLACE_RECORD && !s->run.uniform));
}

/* If step i loads an input or table entry into a slot (buffer): makes the readers of the slot read it in memory. False: one cannot. */
static bool read_in_place(vpps_program *p, uint32_t i) {
    const vpps_operand *from = &p->operands[p->steps[i].first];
    const uint32_t slot = p->steps[i].to.at;
    if (p->steps[i].kind != VPPS_STEP_LOAD || (from->place != VPPS_PLACE_INPUT && from->place != VPPS_PLACE_ENTRY))
        return false;
    for (uint32_t pass = 0; pass < 2; pass++) { /* pass 0 checks all readers, pass 1 changes their operands */
        for (uint32_t j = i + 1; j < p->n; j++) {
            const vpps_program_step *s = &p->steps[j];
            if (s->kind != VPPS_STEP_RUN && reads(p, s, slot)) return false;
            for (uint32_t k = 0; k < s->n; k++) {
                vpps_operand *o = &p->operands[s->first + k];
                if (!is_slot(o, slot)) continue;
                if (!pass && !vpps_reads_in_place(p, s, o)) return false;
                if (!pass) continue;
                o->place = from->place;
                o->at = from->at;
            }
            if (writes(s, slot)) break;
        }
    }
    return true;
}

/* If the next step only copies step i's result from its slot to memory, and no later step reads the slot: makes step i write to memory.
 * Returns false if that is impossible. */
static bool write_in_place(vpps_program *p, uint32_t i) {
    vpps_program_step *s = &p->steps[i], *copy = s + 1;
    const vpps_operand to = s->to;
    if (to.place != VPPS_PLACE_SLOT || i + 1 == p->n || !reads(p, copy, to.at) || copy->to.dealt != to.dealt ||
        (copy->kind != VPPS_STEP_STORE && copy->kind != VPPS_STEP_CONTRIBUTE))
        return false;
    for (uint32_t j = i + 2; j < p->n; j++) {
        if (reads(p, &p->steps[j], to.at)) return false;
        if (writes(&p->steps[j], to.at)) break;
    }
    s->to = copy->to;
    if (vpps_writes_in_place(s)) return true;
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
