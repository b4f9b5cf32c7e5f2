/* operands.c - checks that a step of a cell's program finds the values that its operands name, in a slot (buffer) or in memory. */
#include "script/verify/proof.h"

/* Returns whether this stage (part of the cell) makes only partial sums of value v, in several CTAs or threads. */
bool vpps_proof_is_share(const vpps_proof *p, uint32_t v) {
    return vpps_proof_value(p, v)->stage == p->stage && vpps_makes_shares(vpps_proof_value(p, v));
}

const vpps_parameter_data *vpps_proof_parameter(const vpps_proof *p, vpps_param param, vpps_param_kind kind) {
    const vpps_model *model = p->check->g->model;
    return param < model->n_params && model->params[param].kind == kind ? &model->params[param] : NULL;
}

uint32_t vpps_proof_lookup(const vpps_proof *p, uint32_t index) {
    static const uint8_t sources[] = {[VPPS_WORD_INDEX] = VPPS_OPERAND_INDEX,
                                      [VPPS_WORD_IMM] = VPPS_OPERAND_OWN,
                                      [VPPS_WORD_DROPOUT] = VPPS_OPERAND_STATIC};
    if (index >= p->c->n_lookups) return vpps_proof_none(p, "no such lookup");
    const vpps_cell_lookup *l = &p->c->lookups[index];
    const vpps_parameter_data *table = vpps_proof_parameter(p, l->table, VPPS_LOOKUP);
    if (!table || l->kind > VPPS_WORD_DROPOUT) return vpps_proof_none(p, "not a lookup of a table");
    const uint32_t source = sources[l->kind];
    return vpps_express(p->s, VPPS_X_LOOKUP, table->rows, table->cols, 0, l->table, source,
                        source == VPPS_OPERAND_OWN ? 0 : l->value);
}

/* Checks an operand's shape and axis (per vertex, or node of a list); that it is one column if CTAs divide its rows. */
bool vpps_proof_is_sound(const vpps_proof *p, const vpps_operand *o) {
    if (o->value >= p->c->n_values) return vpps_proof_refuse(p, "operand is no value of the cell");
    const vpps_cell_value *x = vpps_proof_value(p, o->value);
    if (o->rows != x->rows || o->cols != x->cols || o->axis != x->axis || o->dealt > p->program->n_dealt ||
        (o->dealt && (!p->program->rows || p->program->dealt[o->dealt - 1] != o->rows)))
        return vpps_proof_refuse(p, "operand differs from its value in shape, axis or rows");
    return !p->program->rows || o->cols == 1 || vpps_proof_refuse(p, "shared-out rows of a value with several columns");
}

/* Checks that the slot (buffer for one value) that the operand names holds the operand's value now, and the rows that the operand reads. */
bool vpps_proof_holds(const vpps_proof *p, const vpps_operand *o) {
    if (!vpps_proof_is_sound(p, o)) return false;
    if (o->place != VPPS_PLACE_SLOT || o->at >= p->program->slots.n || p->held[o->at] != o->value)
        return vpps_proof_refuse(p, "reads a slot that does not hold the operand");
    const vpps_slot *slot = &p->program->slots.at[o->at];
    if (slot->dealt != o->dealt) return vpps_proof_refuse(p, "reads other rows than the slot holds");
    return !vpps_proof_is_share(p, o->value) || p->step->kind == VPPS_STEP_STORE ||
           p->step->kind == VPPS_STEP_CONTRIBUTE || vpps_proof_refuse(p, "reads a share instead of the sum of shares");
}

/* Returns whether o->place (an input, a table entry, a parameter, or the vertex's memory) is where the value lies that operand o names. */
static bool is_its_place(const vpps_proof *p, const vpps_operand *o) {
    const vpps_cell_value *x = vpps_proof_value(p, o->value);
    switch (o->place) {
    case VPPS_PLACE_INPUT:
        return x->kind == VPPS_VALUE_INPUT && o->at == x->input && o->at < p->c->n_inputs &&
               o->axis == p->c->input_axis[o->at];
    case VPPS_PLACE_ENTRY:
        return x->kind == VPPS_VALUE_LOOKUP && o->at == x->lookup && o->at < p->c->n_lookups && !o->axis;
    case VPPS_PLACE_PARAMETER: return x->kind == VPPS_VALUE_PARAMETER && o->at == x->vector && !o->axis;
    case VPPS_PLACE_RECORD: return vpps_is_made(x) && x->kept && o->record == x->record && o->at == x->offset;
    default: return false;
    }
}

bool vpps_proof_add_read(vpps_proof *p, uint32_t value, vpps_extent extent) {
    vpps_checked_cell *cell = p->cell;
    vpps_stage_info *info = &cell->stages[p->stage];
    for (uint32_t i = info->first; i < info->first + info->n; i++)
        if (cell->reads[i].value == value && cell->reads[i].extent == extent) return true;
    if (!VPPS_RESERVE(cell->reads, cell->n_reads + 1u)) {
        p->check->status = VPPS_MEMORY;
        return false;
    }
    cell->reads[cell->n_reads++] = (vpps_stage_read){value, (uint8_t)extent};
    info->n++;
    return true;
}

/* Checks that operand o, read from memory, is at its place and made before this stage (cell part); notes the read. */
bool vpps_proof_reads(vpps_proof *p, const vpps_operand *o) {
    if (!vpps_proof_is_sound(p, o)) return false;
    const vpps_cell_value *x = vpps_proof_value(p, o->value);
    if (!is_its_place(p, o)) return vpps_proof_refuse(p, "operand is not at its place");
    const bool whole = p->program->rows && !o->dealt && vpps_rows_dealt(&p->c->needs, o->rows);
    if (o->shares != vpps_makes_shares(x)) return vpps_proof_refuse(p, "shares read as a whole value, or the reverse");
    if (p->c->needs.in_place && x->stage == p->stage && p->stored[o->value] && !whole && !o->shares) return true;
    if (vpps_is_made(x) && x->stage >= p->stage)
        return vpps_proof_refuse(p, "reads a value that this stage or a later one makes");
    return vpps_proof_add_read(p, o->value,
                               o->shares ? VPPS_EXTENT_SHARES
                               : whole   ? VPPS_EXTENT_WHOLE
                                         : VPPS_EXTENT_OWN);
}
