/* program.c - makes the steps of each stage (part of a cell) and of parameters' gradients. A value to be kept
 * is stored in memory when it is made. A later stage copies it to a buffer when it is first read, so that new values may overwrite it. */
#include "cell/program.h"

typedef struct builder {
    const vpps_compiled_cell *c;
    vpps_program *p;
    uint32_t stage;
    uint32_t *slot; /* for each value: number of the slot (buffer) that holds it; VPPS_NONE: none */
    uint32_t *last; /* for each value: the last position in this part of a cell (stage) where it is made or read */
    bool ok;
} builder;

uint32_t vpps_take_slot(vpps_slots *slots, uint8_t axis, uint16_t dealt, uint32_t words) {
    const vpps_slot slot = {axis, dealt, true, words};
    for (uint32_t i = 0; i < slots->n; i++) {
        vpps_slot *other = &slots->at[i];
        if (other->taken || other->axis != axis || other->dealt != dealt || other->words != words) continue;
        other->taken = true;
        return i;
    }
    if (!VPPS_RESERVE(slots->at, slots->n + 1u)) return VPPS_NONE;
    slots->at[slots->n] = slot;
    return slots->n++;
}

/* ---------------------------------------------------------------- operands */

static const vpps_cell_value *value_at(const builder *b, uint32_t v) { return &b->c->values[v]; }
static const vpps_cell_arg *arg_at(const builder *b, const vpps_cell_value *x, uint32_t k) {
    return &b->c->args[x->first_arg + k];
}
static bool made_here(const builder *b, uint32_t v) { return value_at(b, v)->stage == b->stage; }

/* Returns 1 + the index of `rows` in p->dealt (numbers of rows that are divided among processors); adds `rows` if it is missing. */
static uint16_t deal(builder *b, uint32_t rows) {
    vpps_program *p = b->p;
    uint32_t i = 0;
    while (i < p->n_dealt && p->dealt[i] != rows) i++;
    if (i < p->n_dealt) return (uint16_t)(i + 1);
    b->ok = b->ok && i < UINT16_MAX && VPPS_RESERVE(p->dealt, i + 1u);
    if (!b->ok) return 0;
    p->dealt[p->n_dealt++] = rows;
    return (uint16_t)p->n_dealt;
}

/* Returns an operand with the shape of value v; the caller sets the operand's place, in a slot (buffer) or in memory. */
static vpps_operand shape_of(builder *b, uint32_t v) {
    const vpps_cell_value *x = value_at(b, v);
    vpps_operand o = {.axis = x->axis, .rows = x->rows, .cols = x->cols, .value = v, .matrix = VPPS_NO_PARAM};
    if (b->p->rows && vpps_rows_dealt(&b->c->needs, x->rows)) o.dealt = deal(b, x->rows);
    if (made_here(b, v) && vpps_makes_shares(x)) o.dealt = 0;
    return o;
}

static vpps_operand in_slot(builder *b, uint32_t v) {
    vpps_operand o = shape_of(b, v);
    o.place = VPPS_PLACE_SLOT;
    o.at = b->slot[v];
    return o;
}

static vpps_operand kept_place(builder *b, uint32_t v) {
    const vpps_cell_value *x = value_at(b, v);
    vpps_operand o = shape_of(b, v);
    o.place = VPPS_PLACE_RECORD;
    o.record = x->record;
    o.at = x->offset;
    o.shares = vpps_makes_shares(x);
    return o;
}

/* Returns an operand that reads value v in memory: an input, table entry or parameter; data that the user gave (vpps_input),
 * which one stage (part of the cell) reads in the batch's program and keeps for later ones; or what an earlier stage kept. */
static vpps_operand in_memory(builder *b, uint32_t v) {
    const vpps_cell_value *x = value_at(b, v);
    vpps_operand o = shape_of(b, v);
    if (x->kind == VPPS_VALUE_INPUT) {
        o.place = VPPS_PLACE_INPUT;
        o.at = x->input;
    } else if (x->kind == VPPS_VALUE_LOOKUP) {
        o.place = VPPS_PLACE_ENTRY;
        o.at = x->lookup;
    } else if (x->kind == VPPS_VALUE_PARAMETER) {
        o.place = VPPS_PLACE_PARAMETER;
        o.at = x->vector;
    } else if (x->kind == VPPS_VALUE_DATA && made_here(b, v)) {
        o.place = VPPS_PLACE_DATA;
    } else {
        o = kept_place(b, v);
    }
    return o;
}

vpps_operand vpps_finished_operand(const vpps_compiled_cell *c, uint32_t v) {
    vpps_program none = {.rows = false};
    builder b = {.c = c, .p = &none, .stage = c->n_stages, .ok = true};
    return in_memory(&b, v);
}

static vpps_operand contributed(builder *b, uint32_t v, uint32_t j) {
    vpps_operand o = shape_of(b, v);
    o.place = VPPS_PLACE_CONTRIBUTION;
    o.at = j;
    o.shares = vpps_makes_shares(value_at(b, v));
    return o;
}

/* ---------------------------------------------------------------- steps */

static vpps_program_step *add_step(builder *b, vpps_step_kind kind, vpps_operand to) {
    vpps_program *p = b->p;
    b->ok = b->ok && VPPS_RESERVE(p->steps, p->n + 1u);
    if (!b->ok) return NULL;
    p->steps[p->n] = (vpps_program_step){.kind = (uint8_t)kind, .axis = to.axis, .to = to, .first = p->n_operands};
    return &p->steps[p->n++];
}

static void add_operand(builder *b, vpps_operand o) {
    vpps_program *p = b->p;
    b->ok = b->ok && VPPS_RESERVE(p->operands, p->n_operands + 1u);
    if (!b->ok) return;
    p->operands[p->n_operands++] = o;
    p->steps[p->n - 1].n++;
}

static void add_copy(builder *b, vpps_step_kind kind, vpps_operand to, vpps_operand from) {
    if (add_step(b, kind, to)) add_operand(b, from);
}

static void take_slot(builder *b, uint32_t v) {
    const vpps_operand o = shape_of(b, v);
    if (b->slot[v] != VPPS_NONE || !b->ok) return;
    b->slot[v] = vpps_take_slot(&b->p->slots, o.axis, o.dealt, vpps_operand_words(&o));
    b->ok = b->slot[v] != VPPS_NONE;
}

/* Releases the slot (buffer) of value v if no value after position `place` of this part of the cell reads v. */
static void release(builder *b, uint32_t v, uint32_t place) {
    if (b->slot[v] == VPPS_NONE || b->last[v] > place || b->last[v] == VPPS_NONE) return;
    vpps_release_slot(&b->p->slots, b->slot[v]);
    b->last[v] = VPPS_NONE; /* released only once */
}

static void load(builder *b, uint32_t v) {
    if (b->slot[v] != VPPS_NONE || made_here(b, v)) return;
    take_slot(b, v);
    if (b->ok) add_copy(b, VPPS_STEP_LOAD, in_slot(b, v), in_memory(b, v));
}

/* ---------------------------------------------------------------- instructions */

/* Returns which elements of argument y the instruction that makes x reads; `letter` is the argument's kind in isa.def. */
static vpps_access access_of(const vpps_cell_value *x, const vpps_cell_value *y, char letter) {
    const vpps_form form = vpps_instructions[x->run.opcode].form;
    if (letter == 's') return form == VPPS_FORM_ROW && x->cols > 1 ? VPPS_ACCESS_COLUMN : VPPS_ACCESS_SCALAR;
    if (y->axis && (x->run.over_list || (letter == '*' && !x->axis))) return VPPS_ACCESS_MEMBERS;
    return letter == 'v' || form != VPPS_FORM_EW ? VPPS_ACCESS_WHOLE : VPPS_ACCESS_OWN;
}

static bool is_uniform(const vpps_program *p, const vpps_program_step *s) {
    const vpps_cell_run *x = &s->run.of;
    const uint8_t f = x->f.kind, u = x->u.kind;
    if (vpps_instructions[x->opcode].form != VPPS_FORM_EW || s->run.scalars || s->run.weights) return false;
    if (f > VPPS_NUMBER_CONSTANT || u == VPPS_NUMBER_WORD || u == VPPS_NUMBER_ELEMENT ||
        (u == VPPS_NUMBER_POSITION && (s->axis || vpps_counts_members(&x->u.count))))
        return false;
    bool own = true;
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_operand *o = &p->operands[s->first + i];
        own = own && o->access == VPPS_ACCESS_OWN && o->axis == s->axis;
    }
    return own;
}

static void add_run(builder *b, uint32_t v) {
    const vpps_cell_value *x = value_at(b, v);
    vpps_program_step *s = add_step(b, VPPS_STEP_RUN, in_slot(b, v));
    uint32_t k = 0;
    if (!s) return;
    s->run.of = x->run;
    for (const char *letter = vpps_instructions[x->run.opcode].operands; *letter; letter++) {
        s->run.tensors += *letter == 't';
        s->run.scalars += *letter == 's';
        s->run.weights += *letter == 'v';
        if (*letter == 'i') s->run.positions = in_slot(b, v + 1);
        const uint32_t end = *letter == '*' ? x->n_args : k + (strchr("tsv", *letter) != NULL);
        for (; k < vpps_min_u32(end, x->n_args); k++) {
            const vpps_cell_arg *a = arg_at(b, x, k);
            vpps_operand o = in_slot(b, a->value);
            o.access = (uint8_t)access_of(x, value_at(b, a->value), *letter);
            o.element = a->element;
            add_operand(b, o);
        }
    }
    if (b->ok) s->run.uniform = is_uniform(b->p, s);
}

/* ---------------------------------------------------------------- products */

/* Returns the number of the first gradient for an input (contribution), from number j on, whose value is v; n_contributions: none. */
static uint32_t next_contribution(const builder *b, uint32_t v, uint32_t j) {
    while (j < b->c->n_contributions && b->c->contributions[j].value != v) j++;
    return j;
}

/* Returns where v, a sum of products W x or W^T x, is written: to a slot (buffer) if a later step of this part of the
 * cell reads v. Else W x goes to the memory from which other parts read v, if no operand overlaps it; W^T x that is
 * only the gradient for one input, to this gradient's memory; anything else to a slot. */
static vpps_operand place_of_product(builder *b, uint32_t v, uint32_t place) {
    const vpps_cell_value *x = value_at(b, v);
    const uint32_t n = b->c->n_contributions, j = next_contribution(b, v, 0);
    bool record = x->kind == VPPS_VALUE_PRODUCT && x->kept && x->cols == 1 && j == n;
    for (uint32_t k = 0; k < x->n_args; k++) record = record && !vpps_places_meet(b->c, v, arg_at(b, x, k)->value);
    const bool contribution =
        x->kind == VPPS_VALUE_PRODUCT_T && !x->kept && j < n && next_contribution(b, v, j + 1) == n;
    if (b->last[v] <= place && record) return kept_place(b, v);
    if (b->last[v] <= place && contribution) return contributed(b, v, j);
    take_slot(b, v);
    return in_slot(b, v);
}

/* Returns whether a product may read vector v, to which it is added, in memory instead of in a slot (buffer).
 * Nothing else in this stage (part of the cell) may read v, and v must be a product of an earlier stage: such
 * vectors of consecutive vertices lie at equal distances in memory. */
static bool starts_in_memory(const builder *b, const vpps_cell_value *x, uint32_t v, uint32_t place) {
    const vpps_cell_value *from = value_at(b, v);
    return !made_here(b, v) && b->last[v] == place && b->slot[v] == VPPS_NONE && from->kind == VPPS_VALUE_PRODUCT &&
           from->cols == 1 && from->axis == x->axis;
}

static void add_product(builder *b, uint32_t v, uint32_t place) {
    const vpps_cell_value *x = value_at(b, v);
    const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T,
               whole = !transposed || (b->p->rows && b->c->needs.rows.columns);
    vpps_operand start = {.place = VPPS_PLACE_NONE, .matrix = VPPS_NO_PARAM};
    if (vpps_bias_of(x) != VPPS_NO_PARAM) {
        start = shape_of(b, v);
        start.place = VPPS_PLACE_PARAMETER;
        start.axis = 0;
        start.at = x->bias;
    }
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = arg_at(b, x, k);
        if (a->matrix != VPPS_NO_PARAM || transposed) continue;
        const bool memory = starts_in_memory(b, x, a->value, place);
        if (!memory) load(b, a->value);
        start = memory ? in_memory(b, a->value) : in_slot(b, a->value);
    }
    const vpps_operand to = place_of_product(b, v, place);
    vpps_program_step *s = add_step(b, VPPS_STEP_PRODUCT, to);
    if (!s) return;
    s->product.transposed = transposed;
    s->product.shares = whole ? vpps_shares_of(x) : 1;
    s->product.start = start;
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = arg_at(b, x, k);
        if (a->matrix == VPPS_NO_PARAM && !transposed) continue;
        vpps_operand o =
            made_here(b, a->value) && b->slot[a->value] != VPPS_NONE ? in_slot(b, a->value) : in_memory(b, a->value);
        o.access = whole ? VPPS_ACCESS_WHOLE : VPPS_ACCESS_OWN;
        if (whole && o.place != VPPS_PLACE_SLOT) o.dealt = 0;
        o.matrix = a->matrix;
        add_operand(b, o);
    }
}

/* ---------------------------------------------------------------- values */

/* Returns whether v is only a gradient that memory keeps as a vector and scalars, one for each node of a list, so that no step multiplies them. */
static bool is_scaled(const builder *b, uint32_t v) {
    const uint32_t j = next_contribution(b, v, 0);
    return j < b->c->n_contributions && b->c->contributions[j].scaled;
}

static void add_stores(builder *b, uint32_t v) {
    const vpps_cell_value *x = value_at(b, v);
    if (x->kept) add_copy(b, VPPS_STEP_STORE, kept_place(b, v), in_slot(b, v));
    for (uint32_t j = next_contribution(b, v, 0); j < b->c->n_contributions; j = next_contribution(b, v, j + 1))
        add_copy(b, VPPS_STEP_CONTRIBUTE, contributed(b, v, j), in_slot(b, v));
}

static void make_value(builder *b, uint32_t v) {
    const vpps_cell_value *x = value_at(b, v);
    take_slot(b, v);
    if (v + 1 < b->c->n_values && value_at(b, v + 1)->kind == VPPS_VALUE_POSITIONS) take_slot(b, v + 1);
    if (!b->ok) return;
    if (x->kind == VPPS_VALUE_RUN) {
        add_run(b, v);
    } else if (x->kind == VPPS_VALUE_GRADIENT) {
        vpps_program_step *s = add_step(b, VPPS_STEP_GRADIENT, in_slot(b, v));
        if (s) s->output = x->output;
    } else {
        add_copy(b, VPPS_STEP_LOAD, in_slot(b, v), in_memory(b, v));
    }
}

static void add_value(builder *b, uint32_t place) {
    const vpps_cell_stage *stage = &b->c->stages[b->stage];
    const uint32_t v = b->c->order[stage->first + place];
    const vpps_cell_value *x = value_at(b, v);
    if (is_scaled(b, v)) return;
    /* value v: positions of maxima or minima; the instruction that makes value v - 1 finds them, too */
    if (x->kind == VPPS_VALUE_POSITIONS) {
        add_stores(b, v);
    } else if (vpps_is_product(x)) {
        add_product(b, v, place);
        if (b->slot[v] != VPPS_NONE) add_stores(b, v);
    } else {
        for (uint32_t k = 0; k < x->n_args; k++) load(b, arg_at(b, x, k)->value);
        make_value(b, v);
        add_stores(b, v);
    }
    for (uint32_t k = 0; k < x->n_args; k++) release(b, arg_at(b, x, k)->value, place);
    release(b, v, place);
}

static void mark_last(builder *b) {
    const vpps_cell_stage *stage = &b->c->stages[b->stage];
    memset(b->last, 0, b->c->n_values * sizeof *b->last);
    for (uint32_t i = 0; i < stage->n; i++) {
        const uint32_t v = b->c->order[stage->first + i];
        const vpps_cell_value *x = value_at(b, v);
        b->last[v] = vpps_max_u32(b->last[v], i);
        for (uint32_t k = 0; k < x->n_args && !is_scaled(b, v); k++) b->last[arg_at(b, x, k)->value] = i;
    }
}

/* Adds the steps that sum up parameters' gradients. They run after all parts of the cell, when no buffer holds operands, only memory. */
static void add_outers(builder *b) {
    for (uint32_t i = 0; i < b->c->n_outers && b->ok; i++) {
        const vpps_cell_outer *o = &b->c->outers[i];
        vpps_operand to = shape_of(b, o->dy);
        to.place = VPPS_PLACE_GRADIENT;
        to.at = o->param;
        add_copy(b, VPPS_STEP_OUTER, to, in_memory(b, o->dy));
        if (b->ok && o->x != VPPS_NONE) add_operand(b, in_memory(b, o->x));
    }
}

vpps_status vpps_make_programs(vpps_compiled_cell *c) {
    const size_t n = c->n_values + 1u;
    builder b = {.c = c, .slot = malloc(n * sizeof *b.slot), .last = malloc(n * sizeof *b.last)};
    vpps_free_programs(c);
    c->programs = calloc(c->n_stages + 1u, sizeof *c->programs);
    b.ok = b.slot && b.last && c->programs;
    for (uint32_t s = 0; b.ok && s < c->n_stages; s++) {
        b.p = &c->programs[s];
        b.p->rows = c->stages[s].split == VPPS_SPLIT_ROWS;
        b.stage = s;
        memset(b.slot, 0xff, n * sizeof *b.slot);
        mark_last(&b);
        for (uint32_t i = 0; i < c->stages[s].n && b.ok; i++) add_value(&b, i);
        if (b.ok && c->needs.in_place) vpps_place_in_memory(b.p);
    }
    b.stage = c->n_stages;
    if (b.ok) b.p = &c->programs[c->n_stages], add_outers(&b);
    VPPS_FREE(b.slot, b.last);
    return b.ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}

void vpps_free_programs(vpps_compiled_cell *c) {
    for (uint32_t s = 0; c->programs && s <= c->n_stages; s++) {
        vpps_program *p = &c->programs[s];
        VPPS_FREE_ARRAYS(p->steps, p->operands, p->slots.at, p->dealt);
    }
    free(c->programs);
    c->programs = NULL;
}
