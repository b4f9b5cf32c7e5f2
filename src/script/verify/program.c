/* program.c - runs the programs of a compiled cell (vertex function) with formulas instead of numbers, and so finds each value's formula. A
 * program is a list of steps for each stage, the part of a cell that threads or CTAs run without waiting for each other. Checks that each
 * step finds its operands in slots (buffers) or in memory, and reads no result that another processor makes in the same stage. Whether the
 * stage that stores a value has run, and the value is still in memory, is checked when a script's tasks are executed (tasks.c). */
#include "script/verify/proof.h"

/* ---------------------------------------------------------------- steps */

/* Notes that the current step makes value `to`, and that its formula is number `is`. Refuses the cell if the value has
 * another shape, was made already, or belongs to another stage (part of the cell between two barriers). */
static bool make(vpps_proof *p, const vpps_operand *to, uint32_t is) {
    const vpps_cell_value *x = vpps_proof_value(p, to->value);
    if (p->check->status != VPPS_OK || p->s->failed) return false;
    if (!vpps_is_made(x) || x->stage != p->stage || x->split != p->c->stages[p->stage].split ||
        p->is[to->value] != VPPS_NONE)
        return vpps_proof_refuse(p, "made in the wrong stage, or twice");
    const vpps_expression *e = &p->s->at[is];
    if (e->rows * e->cols != vpps_value_words(x) || e->rows != x->rows)
        return vpps_proof_refuse_shape(p, "result", e->rows, e->cols, x->rows, x->cols);
    p->is[to->value] = is;
    p->n_made++;
    return true;
}

/* Returns whether each virtual processor (CTA or thread) computes only some rows of a result. */
static bool is_dealt(const vpps_proof *p, const vpps_operand *to) {
    return p->program->rows && vpps_rows_dealt(&p->c->needs, to->rows) && !vpps_proof_is_share(p, to->value);
}

static bool fill(vpps_proof *p, const vpps_operand *to) {
    if (!vpps_proof_is_sound(p, to)) return false;
    const bool there = to->place == VPPS_PLACE_SLOT && to->at < p->program->slots.n;
    const vpps_slot *slot = there ? &p->program->slots.at[to->at] : NULL;
    if (!slot || is_dealt(p, to) != (to->dealt > 0) || slot->axis != to->axis || slot->dealt != to->dealt ||
        slot->words != vpps_operand_words(to))
        return vpps_proof_refuse(p, "slot of wrong size, axis or rows");
    p->held[to->at] = to->value;
    return true;
}

/* Stores a value in its vertex's memory. It may overwrite another stage's (cell part's) value if nothing needs that. */
static bool keep(vpps_proof *p, const vpps_operand *to) {
    const vpps_cell_value *x = vpps_proof_value(p, to->value);
    if (!x->kept || x->stage != p->stage || to->record != x->record || to->at != x->offset || p->stored[to->value]++)
        return vpps_proof_refuse(p, "stored in the wrong place, or twice");
    if (to->shares != vpps_makes_shares(x) || (to->shares && p->c->needs.rows.columns))
        return vpps_proof_refuse(p, "shares stored as a whole value, or the reverse");
    if (x->record >= VPPS_RECORDS || vpps_axis_of(x->record) != x->axis)
        return vpps_proof_refuse(p, "stored in the record of another axis");
    const uint64_t end = (uint64_t)x->offset + vpps_place_words(x);
    if (end > p->c->kept_words[x->record]) return vpps_proof_refuse(p, "stored outside the record");
    if (vpps_is_pass_record(x->record) && (p->stays[to->value] || x->record != vpps_pass_record(p->c, p->stage)))
        return vpps_proof_refuse(p, "stored in a pass record, but read after the pass");
    for (uint32_t u = 0; u < p->c->n_values; u++) {
        const vpps_cell_value *y = vpps_proof_value(p, u);
        if (u == to->value || !y->kept || y->record != x->record ||
            x->offset >= y->offset + (uint64_t)vpps_place_words(y) || y->offset >= end)
            continue;
        if (p->stays[u] && y->stage < p->stage) return vpps_proof_refuse(p, "stored over a value that is read later");
        if (y->stage == p->stage) return vpps_proof_refuse(p, "two values of one stage stored in one place");
        if (p->read_until[u] > p->number + (p->step->kind == VPPS_STEP_STORE || vpps_goes_by_elements(p->step)))
            return vpps_proof_refuse(p, "stored over a value that the stage still reads");
    }
    return true;
}

static bool contribute(vpps_proof *p, const vpps_operand *to) {
    const vpps_cell_contribution *c = to->at < p->c->n_contributions ? &p->c->contributions[to->at] : NULL;
    if (!c || c->scaled || c->value != to->value || vpps_proof_value(p, to->value)->stage != p->stage ||
        p->contributed[to->at]++)
        return vpps_proof_refuse(p, "wrong or duplicate contribution");
    return to->shares == vpps_makes_shares(vpps_proof_value(p, to->value)) ||
           vpps_proof_refuse(p, "shares contributed as a whole value, or the reverse");
}

/* Checks where an instruction or product puts its result: into a slot (buffer) or, if the device can, memory. */
static bool place_result(vpps_proof *p, const vpps_operand *to) {
    if (to->place == VPPS_PLACE_SLOT) return fill(p, to);
    if (!vpps_proof_is_sound(p, to)) return false;
    if (is_dealt(p, to) != (to->dealt > 0))
        return vpps_proof_refuse(p, "rows shared out in another way than they are made");
    const bool record = to->place == VPPS_PLACE_RECORD, run = p->step->kind == VPPS_STEP_RUN;
    if ((p->c->needs.in_place && vpps_writes_in_place(p->program, p->step)) ||
        (!run && (p->step->product.transposed ? to->place == VPPS_PLACE_CONTRIBUTION : record && to->cols == 1)))
        return record ? keep(p, to) : contribute(p, to);
    return vpps_proof_refuse(p, "result without a destination");
}

/* Checks a STORE or CONTRIBUTE step, which must copy to memory all rows that the slot (buffer for one value) holds. */
static bool copy_out(vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_operand *from = vpps_proof_operand(p, 0);
    if (s->n != 1 || from->value != s->to.value || from->dealt != s->to.dealt || !vpps_proof_is_sound(p, &s->to))
        return vpps_proof_refuse(p, "stores another value than its operand");
    const bool memory = p->c->needs.in_place && s->kind == VPPS_STEP_CONTRIBUTE && from->place == VPPS_PLACE_RECORD;
    if (!(memory ? vpps_proof_reads(p, from) : vpps_proof_holds(p, from))) return false;
    if (s->kind == VPPS_STEP_STORE)
        return s->to.place == VPPS_PLACE_RECORD ? keep(p, &s->to) : vpps_proof_refuse(p, "store without a destination");
    return s->to.place == VPPS_PLACE_CONTRIBUTION ? contribute(p, &s->to)
                                                  : vpps_proof_refuse(p, "contribution without a destination");
}

static bool load(vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_operand *from = vpps_proof_operand(p, 0);
    if (s->n != 1 || from->value != s->to.value || from->dealt != s->to.dealt)
        return vpps_proof_refuse(p, "loads another value than its operand");
    if (!vpps_proof_is_sound(p, from) || !fill(p, &s->to)) return false;
    if (from->place != VPPS_PLACE_DATA) return vpps_proof_reads(p, from);
    if (!p->c->is_data || s->axis || from->shares || vpps_proof_value(p, from->value)->kind != VPPS_VALUE_DATA)
        return vpps_proof_refuse(p, "load of data in a cell without data");
    return make(p, &s->to, vpps_express(p->s, VPPS_X_DATA, s->to.rows, s->to.cols, 0, 0, 0, 0));
}

static bool sum_gradient(vpps_proof *p) {
    const vpps_program_step *s = p->step;
    if (s->output >= p->c->n_outputs || !p->c->needs.training || !(p->c->needs.gradient_out >> s->output & 1) || s->n ||
        s->axis || vpps_proof_value(p, s->to.value)->kind != VPPS_VALUE_GRADIENT ||
        vpps_proof_value(p, s->to.value)->output != s->output)
        return vpps_proof_refuse(p, "no such gradient");
    p->gradients[s->to.value] |= (uint64_t)1 << s->output;
    return make(p, &s->to, vpps_express(p->s, VPPS_X_GRADIENT, s->to.rows, s->to.cols, 0, s->output, 0, 0)) &&
           fill(p, &s->to);
}

/* For MAX_OF and MIN_OF: checks the positions of the greatest or least operands, a second result of the instruction. */
static bool find_positions(vpps_proof *p) {
    const vpps_operand *to = &p->step->run.positions, *of = &p->step->to;
    const bool finds = strchr(vpps_instructions[p->step->run.of.opcode].operands, 'i');
    if (!finds)
        return to->place == VPPS_PLACE_NONE || vpps_proof_refuse(p, "positions of an instruction that finds none");
    if (!vpps_proof_is_sound(p, to) || vpps_proof_value(p, to->value)->kind != VPPS_VALUE_POSITIONS ||
        to->rows != of->rows || to->cols != of->cols || to->axis != of->axis)
        return vpps_proof_refuse(p, "positions do not belong to their instruction");
    p->gradients[to->value] = p->gradients[of->value];
    return make(p, to, vpps_express_of(p->s, VPPS_X_POSITIONS, to->rows, to->cols, p->is[of->value], 0, 0)) &&
           fill(p, to);
}

/* Returns whether the step's result and its operand number i are in the same slot (buffer). */
static bool in_slot_of(const vpps_proof *p, uint32_t i) {
    const vpps_operand *o = vpps_proof_operand(p, i), *to = &p->step->to;
    return o->place == VPPS_PLACE_SLOT && to->place == VPPS_PLACE_SLOT && o->at == to->at;
}

static bool run_instruction(vpps_proof *p) {
    const vpps_operand *to = &p->step->to;
    if (vpps_proof_value(p, to->value)->kind != VPPS_VALUE_RUN)
        return vpps_proof_refuse(p, "instruction for a value of another kind");
    const uint32_t is = vpps_proof_run_formula(p);
    if (!make(p, to, is)) return false;
    for (uint32_t i = 0; i < p->step->n; i++)
        if (in_slot_of(p, i)) return vpps_proof_refuse(p, "result in the slot of an operand");
    return place_result(p, to) && find_positions(p);
}

static bool multiply(vpps_proof *p) {
    const vpps_operand *to = &p->step->to;
    if (vpps_proof_value(p, to->value)->kind !=
        (p->step->product.transposed ? VPPS_VALUE_PRODUCT_T : VPPS_VALUE_PRODUCT))
        return vpps_proof_refuse(p, "product for a value of another kind");
    const uint32_t is = vpps_proof_product_formula(p);
    for (uint32_t i = 0; i < p->step->n && p->check->status == VPPS_OK; i++)
        if (in_slot_of(p, i)) return vpps_proof_refuse(p, "product in the slot of a factor");
    return make(p, to, is) && place_result(p, to);
}

/* Notes that the result of the current step depends on all outputs' gradients on which the step's operand o depends. */
static bool follow(vpps_proof *p, const vpps_operand *o) {
    if (o->value >= p->c->n_values || o->value == p->step->to.value || o->place == VPPS_PLACE_NONE) return true;
    if (p->is[o->value] == VPPS_NONE) return vpps_proof_refuse(p, "made before its operands");
    p->gradients[p->step->to.value] |= p->gradients[o->value];
    return true;
}

static bool run_step(vpps_proof *p) {
    const vpps_program_step *s = p->step;
    p->v = s->to.value;
    if (s->first > p->program->n_operands || s->n > p->program->n_operands - s->first || s->axis != s->to.axis)
        return vpps_proof_refuse(p, "invalid step");
    if (!vpps_proof_is_sound(p, &s->to)) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (!follow(p, vpps_proof_operand(p, i))) return false;
    switch (s->kind) {
    case VPPS_STEP_RUN: return run_instruction(p);
    case VPPS_STEP_PRODUCT: return follow(p, &s->product.start) && multiply(p);
    case VPPS_STEP_GRADIENT: return sum_gradient(p);
    case VPPS_STEP_LOAD: return load(p);
    case VPPS_STEP_STORE:
    case VPPS_STEP_CONTRIBUTE: return copy_out(p);
    default: return vpps_proof_refuse(p, "unknown kind of step");
    }
}

/* ---------------------------------------------------------------- stages */

static void find_reads(const vpps_proof *p) {
    memset(p->read_until, 0, p->c->n_values * sizeof *p->read_until);
    for (uint32_t i = 0; i < p->program->n; i++) {
        const vpps_program_step *s = &p->program->steps[i];
        const vpps_operand *start = &s->product.start;
        for (uint32_t k = s->first; k < s->first + s->n && k < p->program->n_operands; k++) {
            const vpps_operand *o = &p->program->operands[k];
            if (o->place == VPPS_PLACE_RECORD && o->value < p->c->n_values) p->read_until[o->value] = i + 1;
        }
        if (s->kind == VPPS_STEP_PRODUCT && start->place == VPPS_PLACE_RECORD && start->value < p->c->n_values)
            p->read_until[start->value] = i + 1;
    }
}

/* A stage (part of a cell) may be skipped for vertices whose condition, a scalar input, is not > 0; other inputs are
 * then copied to the outputs. Notes that the stage reads these inputs. */
static bool read_otherwise(vpps_proof *p) {
    const vpps_compiled_cell *c = p->c;
    if (!vpps_stage_may_skip(c, &c->stages[p->stage])) return true;
    bool ok = true;
    for (uint32_t v = 0; ok && v < c->n_values; v++) {
        const vpps_cell_value *x = vpps_proof_value(p, v);
        if (x->kind != VPPS_VALUE_INPUT) continue;
        if (x->input == c->condition.input) ok = vpps_proof_add_read(p, v, VPPS_EXTENT_WHOLE);
        for (uint32_t k = 0; ok && k < c->n_outputs; k++)
            if (vpps_offers(c, k) && c->outputs[k].value < c->n_values &&
                vpps_proof_value(p, c->outputs[k].value)->stage == p->stage && c->outputs[k].otherwise == x->input)
                ok = vpps_proof_add_read(p, v, VPPS_EXTENT_OWN);
    }
    return ok;
}

/* Checks that c->order lists just the values made in the stage (part of a cell), and that those to keep are stored. */
static bool check_list(vpps_proof *p) {
    const vpps_compiled_cell *c = p->c;
    const vpps_cell_stage *stage = &c->stages[p->stage];
    bool ok = stage->first <= c->n_values && stage->n <= c->n_values - stage->first;
    uint32_t made = 0;
    for (uint32_t i = 0; ok && i < stage->n; i++) {
        const uint32_t v = c->order[stage->first + i];
        ok = v < c->n_values && vpps_proof_value(p, v)->stage == p->stage && vpps_is_made(vpps_proof_value(p, v)) &&
             !p->listed[v]++;
        made += ok && p->is[v] != VPPS_NONE;
        if (ok && vpps_proof_value(p, v)->kept && !p->stored[v]) {
            p->v = v;
            return vpps_proof_refuse(p, "kept value is not stored");
        }
    }
    return (ok && made == p->n_made) ||
           VPPS_REFUSE(p->check, "cell %s: stage %u lists other values than it makes", c->name, p->stage);
}

static bool run_stage(vpps_proof *p) {
    const vpps_cell_stage *stage = &p->c->stages[p->stage];
    vpps_stage_info *info = &p->cell->stages[p->stage];
    p->program = &p->c->programs[p->stage];
    p->n_made = 0;
    *info = (vpps_stage_info){.first = p->cell->n_reads, .rows = p->program->rows};
    if (stage->split != (p->program->rows ? VPPS_SPLIT_ROWS : VPPS_SPLIT_VERTICES))
        return VPPS_REFUSE(p->check, "cell %s: stage %u is shared out in two ways", p->c->name, p->stage);
    p->held = vpps_check_zeros(p->check, p->program->slots.n, sizeof *p->held);
    if (!p->held) return false;
    memset(p->held, 0xff, p->program->slots.n * sizeof *p->held);
    find_reads(p);
    bool ok = true;
    for (p->number = 0; ok && p->number < p->program->n; p->number++) {
        p->step = &p->program->steps[p->number];
        ok = run_step(p);
    }
    for (uint32_t i = 0; ok && i < p->program->slots.n; i++) {
        const vpps_slot *slot = &p->program->slots.at[i];
        ok = p->held[i] != VPPS_NONE || !(slot->words | slot->axis | slot->dealt) ||
             vpps_proof_refuse(p, "slot of wrong size, axis or rows");
    }
    return ok && check_list(p) && read_otherwise(p);
}

/* ---------------------------------------------------------------- values that stay */

static bool is_kept(vpps_proof *p, uint32_t v, const char *what) {
    const vpps_cell_value *x = vpps_proof_value(p, v);
    p->v = v;
    if (vpps_is_made(x) && !x->kept) return vpps_proof_refuse(p, what);
    return !vpps_makes_shares(x) || vpps_proof_refuse(p, "a share is read instead of the sum");
}

/* Checks the OUTER steps, which compute parameters' gradients dy x^T after all vertices have run, and notes that dy and x stay in memory. */
static bool find_factors(vpps_proof *p) {
    const vpps_program *all = p->program = &p->c->programs[p->c->n_stages];
    p->stage = p->c->n_stages;
    for (uint32_t i = 0; i < all->n; i++) {
        const vpps_program_step *s = p->step = &all->steps[i];
        if (s->kind != VPPS_STEP_OUTER || s->to.place != VPPS_PLACE_GRADIENT || s->first > all->n_operands ||
            s->n > all->n_operands - s->first || s->n < 1 || s->n > 2)
            return VPPS_REFUSE(p->check, "cell %s: outer product %u without factors", p->c->name, i);
        for (uint32_t k = 0; k < s->n; k++) {
            const vpps_operand *o = vpps_proof_operand(p, k);
            p->v = o->value;
            if (!vpps_proof_is_sound(p, o) || !is_kept(p, o->value, "factor of a parameter's gradient is not kept") ||
                !vpps_proof_reads(p, o))
                return false;
            p->stays[o->value] = true;
        }
    }
    return true;
}

/* Finds the values whose memory may not be reused: outputs, requested gradients, dy and x of parameters' gradients. */
static bool find_stays(vpps_proof *p) {
    const vpps_compiled_cell *c = p->c;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const uint32_t v = c->outputs[k].value;
        if (!vpps_offers(c, k) || v >= c->n_values) continue;
        p->stays[v] = true;
        p->v = v;
        if (vpps_proof_value(p, v)->kind == VPPS_VALUE_INPUT) return vpps_proof_refuse(p, "input used as an output");
        if (!is_kept(p, v, "output is not kept")) return false;
    }
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const uint32_t d = c->gradient_of[k];
        if (d >= c->n_values) continue; /* VPPS_NONE: no gradient; proof.c refuses other such numbers */
        p->stays[d] = true;
        if (!is_kept(p, d, "gradient for the host is not kept")) return false;
    }
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        const uint32_t both[] = {c->contributions[j].vector, c->contributions[j].scalar};
        for (uint32_t k = 0; k < 2 && c->contributions[j].scaled; k++) {
            if (both[k] >= c->n_values)
                return VPPS_REFUSE(p->check, "cell %s: contribution %u has no factors", c->name, j);
            p->stays[both[k]] = true;
            if (!is_kept(p, both[k], "factor of a contribution is not kept")) return false;
        }
    }
    return find_factors(p);
}

/* No step computes a contribution (gradient for an input) that is stored as two factors, a vector and a scalar. Sets the contribution's
 * expression to the product of the factors. Returns false if they cannot be multiplied, or the product has another shape. */
static bool make_scaled(vpps_proof *p, const vpps_cell_contribution *to) {
    const vpps_cell_value *x = vpps_proof_value(p, to->vector), *by = vpps_proof_value(p, to->scalar),
                          *of = vpps_proof_value(p, to->value);
    const uint32_t vector = p->is[to->vector], scalar = p->is[to->scalar];
    if (to->lookup || vpps_makes_shares(of) || x->axis || by->axis != of->axis || !by->axis || !vpps_is_made(x) ||
        !vpps_is_made(by) || vpps_value_words(by) != 1 || vector == VPPS_NONE || scalar == VPPS_NONE ||
        of->rows != x->rows || of->cols != x->cols || p->is[to->value] != VPPS_NONE)
        return false;
    p->gradients[to->value] = p->gradients[to->vector] | p->gradients[to->scalar];
    p->is[to->value] = vpps_express_pair(p->s, VPPS_I_SCALE_BY, x->rows, x->cols, vector, scalar);
    return true;
}

static bool check_contributions(vpps_proof *p) {
    const vpps_compiled_cell *c = p->c;
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        if (to->value >= c->n_values || to->index >= (to->lookup ? c->n_lookups : c->n_inputs))
            return VPPS_REFUSE(p->check, "cell %s: contribution %u goes nowhere", c->name, i);
        p->v = to->value;
        if (!to->scaled && !p->contributed[i]) return vpps_proof_refuse(p, "no step makes the contribution");
        if (to->scaled && !make_scaled(p, to))
            return vpps_proof_refuse(p, "factors of a scaled contribution do not give its value");
        if (vpps_proof_value(p, to->value)->axis != (to->lookup ? 0 : c->input_axis[to->index]))
            return vpps_proof_refuse(p, "axis of a contribution differs from its destination's");
    }
    return true;
}

/* ---------------------------------------------------------------- the whole cell */

static uint32_t express_given(const vpps_proof *p) {
    const vpps_cell_value *x = vpps_proof_value(p, p->v);
    if (x->stage != VPPS_NONE) return vpps_proof_none(p, "a stage makes a value that is given");
    if (x->kind == VPPS_VALUE_LOOKUP) {
        const vpps_cell_lookup *l = x->lookup < p->c->n_lookups ? &p->c->lookups[x->lookup] : NULL;
        if (!l || l->table != VPPS_NO_PARAM || l->kind != VPPS_WORD_IMM) return vpps_proof_lookup(p, x->lookup);
        return vpps_express(p->s, VPPS_X_LOOKUP, x->rows, x->cols, 0, VPPS_NO_PARAM, VPPS_OPERAND_OWN, 0);
    }
    if (x->kind == VPPS_VALUE_INPUT) {
        if (x->input >= p->c->n_inputs) return vpps_proof_none(p, "no such input");
        return vpps_express(p->s, VPPS_X_INPUT, x->rows, x->cols, x->axis, x->input, 0, 0);
    }
    const vpps_parameter_data *vector = vpps_proof_parameter(p, x->vector, VPPS_VECTOR);
    if (!vector) return vpps_proof_none(p, "not a vector of the model");
    return vpps_express(p->s, VPPS_X_PARAMETER, vector->rows, 1, 0, x->vector, 0, 0);
}

static bool express_all_given(vpps_proof *p) {
    for (p->v = 0; p->v < p->c->n_values; p->v++) {
        const vpps_cell_value *x = vpps_proof_value(p, p->v);
        p->is[p->v] = VPPS_NONE;
        if (x->axis > p->c->n_lists || !x->rows || !x->cols || x->kind > VPPS_VALUE_POSITIONS)
            return vpps_proof_refuse(p, "invalid description of a value");
        if (vpps_is_made(x)) continue;
        const uint32_t is = p->is[p->v] = express_given(p);
        if (p->check->status != VPPS_OK || p->s->failed) return false;
        if (p->s->at[is].rows != x->rows || p->s->at[is].cols != x->cols)
            return vpps_proof_refuse_shape(p, "given", p->s->at[is].rows, p->s->at[is].cols, x->rows, x->cols);
    }
    return true;
}

static bool run_program(vpps_proof *p) {
    if (!express_all_given(p) || !find_stays(p)) return false;
    for (p->stage = 0; p->stage < p->c->n_stages; p->stage++)
        if (!run_stage(p)) return false;
    if (!check_contributions(p)) return false;
    for (p->v = 0; p->v < p->c->n_values; p->v++)
        if (p->is[p->v] == VPPS_NONE) return vpps_proof_refuse(p, "no stage makes the value");
    return true;
}

bool vpps_proof_run(vpps_proof *p) {
    const size_t n = p->c->n_values + 1u;
    p->read_until = vpps_check_zeros(p->check, n, sizeof *p->read_until);
    p->stored = vpps_check_zeros(p->check, n, 1);
    p->listed = vpps_check_zeros(p->check, n, 1);
    p->stays = vpps_check_zeros(p->check, n, 1);
    p->contributed = vpps_check_zeros(p->check, p->c->n_contributions, 1);
    p->cell->stages = vpps_check_zeros(p->check, p->c->n_stages + 1u, sizeof *p->cell->stages);
    return p->check->status == VPPS_OK && run_program(p);
}
