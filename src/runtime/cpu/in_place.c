/* in_place.c - removes copies from a stage's program: steps whose calls each compute one item read inputs and write results directly in
 * memory, instead of in buffers ("slots", tile.h); and values that are scaled only to be summed are scaled within the sum. */
#include "runtime/cpu/tile.h"

static bool is_slot(const vpps_operand *o, uint32_t slot) { return o->place == VPPS_PLACE_SLOT && o->at == slot; }

static bool writes(const vpps_program_step *s, uint32_t slot) {
    return is_slot(&s->to, slot) || (s->kind == VPPS_STEP_RUN && is_slot(&s->run.positions, slot));
}

/* Returns how many operands of step s read the slot; *only is the last of them. */
static uint32_t reads(const vpps_program *p, const vpps_program_step *s, uint32_t slot, vpps_operand **only) {
    uint32_t n = s->kind == VPPS_STEP_PRODUCT && is_slot(&s->product.start, slot) ? 1 : 0;
    for (uint32_t k = 0; k < s->n; k++) {
        vpps_operand *o = &p->operands[s->first + k];
        if (!is_slot(o, slot)) continue;
        *only = o;
        n++;
    }
    return n;
}

/* Returns the only step that reads the value that step i writes, if it reads it in one operand; NULL if several operands do. */
static vpps_program_step *only_reader(const vpps_program *p, uint32_t i, vpps_operand **operand) {
    const uint32_t slot = p->steps[i].to.at;
    vpps_program_step *reader = NULL;
    for (uint32_t j = i + 1; j < p->n; j++) {
        vpps_program_step *s = &p->steps[j];
        const uint32_t n = reads(p, s, slot, operand);
        if (n > 1 || (n && reader)) return NULL;
        if (n) reader = s;
        if (writes(s, slot)) break;
    }
    return reader;
}

static bool is_run(const vpps_program_step *s, vpps_opcode opcode) {
    return s->kind == VPPS_STEP_RUN && s->run.of.opcode == opcode;
}

static void drop(vpps_program *p, uint32_t i) {
    memmove(&p->steps[i], &p->steps[i + 1], (p->n - i - 1) * sizeof *p->steps);
    p->n--;
}

/* ---------------------------------------------------------------- inputs */

/* Returns whether step s, of kind RUN, computes the operand's address for each item. Other steps need items that are adjacent in memory. */
static bool takes_items(const vpps_program *p, const vpps_program_step *s, const vpps_operand *o) {
    if (s->run.uniform || (s->run.of.over_list && s->axis)) return false;
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    const bool weights = s->run.weights && o == &p->operands[s->first + s->run.tensors + s->run.scalars];
    const bool parts = form == VPPS_FORM_PARTS && o->access == VPPS_ACCESS_MEMBERS;
    return !weights && !parts && form != VPPS_FORM_DECIDED && form != VPPS_FORM_WEIGHTS;
}

/* Makes all steps that read an input which step i loads into a slot read it in memory. Returns false if some need it in the slot. */
static bool read_in_place(vpps_program *p, uint32_t i) {
    const vpps_program_step *load = &p->steps[i];
    const vpps_operand *from = &p->operands[load->first];
    const uint32_t slot = load->to.at;
    if (load->kind != VPPS_STEP_LOAD || from->dealt != load->to.dealt) return false;
    if (from->place != VPPS_PLACE_INPUT && from->place != VPPS_PLACE_ENTRY) return false;
    for (uint32_t pass = 0; pass < 2; pass++) { /* pass 0 checks, pass 1 changes operands */
        for (uint32_t j = i + 1; j < p->n; j++) {
            const vpps_program_step *s = &p->steps[j];
            vpps_operand *last;
            if (reads(p, s, slot, &last) && s->kind != VPPS_STEP_RUN) return false;
            for (uint32_t k = 0; k < s->n; k++) {
                vpps_operand *o = &p->operands[s->first + k];
                if (!is_slot(o, slot)) continue;
                if (!pass && !takes_items(p, s, o)) return false;
                if (!pass) continue;
                o->place = from->place;
                o->at = from->at;
            }
            if (writes(s, slot)) break;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- sums */

/* Replaces two steps, SCALE_BY (step i) of each list member and SUM over the members, by WEIGHTED_SUM, which rounds in the same way.
 * Returns false for other steps. */
static bool sum_scaled(vpps_program *p, uint32_t i) {
    const vpps_program_step *scale = &p->steps[i];
    vpps_operand *sum_of;
    if (!is_run(scale, VPPS_I_SCALE_BY) || !scale->axis || scale->to.place != VPPS_PLACE_SLOT) return false;
    vpps_program_step *sum = only_reader(p, i, &sum_of);
    const vpps_operand *x = &p->operands[scale->first], *weight = x + 1;
    if (sum != scale + 1 || !is_run(sum, VPPS_I_SUM) || sum->n != 1 || sum->axis || sum->run.uniform) return false;
    const vpps_cell_number *f = &sum->run.of.f;
    if (f->kind != VPPS_NUMBER_CONSTANT || f->real != 1 || sum_of->access != VPPS_ACCESS_MEMBERS) return false;
    if (x->axis != scale->axis || weight->axis != scale->axis || weight->rows * weight->cols != 1) return false;
    if (weight->place != VPPS_PLACE_SLOT || weight->element) return false;
    sum->run.of.opcode = VPPS_I_WEIGHTED_SUM;
    sum->run.of.f = (vpps_cell_number){.kind = VPPS_NUMBER_NONE};
    sum->run.weights = 1;
    sum->first = scale->first;
    sum->n = 2;
    const vpps_operand list = *x;
    p->operands[sum->first] = *weight;
    p->operands[sum->first + 1] = list;
    p->operands[sum->first].access = p->operands[sum->first + 1].access = VPPS_ACCESS_MEMBERS;
    return true;
}

/* ---------------------------------------------------------------- results */

/* Makes step i write directly to memory if the next step only copies the result there. Returns false if that is impossible. */
static bool write_in_place(vpps_program *p, uint32_t i) {
    vpps_program_step *s = &p->steps[i];
    vpps_operand *from;
    if (s->kind != VPPS_STEP_RUN || (s->run.of.over_list && s->axis) || s->run.positions.place) return false;
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    if (form == VPPS_FORM_DECIDED || form == VPPS_FORM_WEIGHTS || s->to.place != VPPS_PLACE_SLOT) return false;
    const vpps_program_step *copy = only_reader(p, i, &from);
    if (copy != s + 1 || (copy->kind != VPPS_STEP_STORE && copy->kind != VPPS_STEP_CONTRIBUTE)) return false;
    if (copy->to.dealt != s->to.dealt || (s->run.uniform && copy->to.place != VPPS_PLACE_CONTRIBUTION)) return false;
    s->to = copy->to;
    return true;
}

/* ---------------------------------------------------------------- all */

/* Removes the steps that compute "scaled" contributions, which are not stored: their reader computes them. */
static void drop_scaled(vpps_program *p, const vpps_cell_contribution *contributions) {
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_program_step *s = &p->steps[i];
        if (s->kind != VPPS_STEP_CONTRIBUTE || !contributions[s->to.at].scaled) continue;
        const uint32_t slot = p->operands[s->first].at;
        drop(p, i);
        while (!writes(&p->steps[--i], slot)) continue;
        drop(p, i--);
    }
}

bool vpps_place_in_memory(const vpps_program *given, const vpps_cell_contribution *contributions, vpps_program *out) {
    vpps_program p = *given;
    p.steps = calloc(given->n + (size_t)1, sizeof *p.steps);
    p.operands = calloc(given->n_operands + (size_t)1, sizeof *p.operands);
    *out = p;
    if (!p.steps || !p.operands) return false;
    if (given->n) memcpy(p.steps, given->steps, given->n * sizeof *p.steps);
    if (given->n_operands) memcpy(p.operands, given->operands, given->n_operands * sizeof *p.operands);
    drop_scaled(&p, contributions);
    for (uint32_t i = p.n; i-- > 0;)
        if (read_in_place(&p, i) || sum_scaled(&p, i)) drop(&p, i);
    for (uint32_t i = 0; i < p.n; i++)
        if (write_in_place(&p, i)) drop(&p, i + 1);
    *out = p;
    return true;
}
