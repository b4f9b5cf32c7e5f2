/* mutate_cells.c - the mutations of compiled cells: what a bug in a pass of the compiler would look like. Numbers stay
 * in range. */
#include "cell/program.h"
#include "mutate.h"

static uint32_t below(uint64_t *random, uint32_t n) { return vpps_random_below(random, n); }

/* As a growable array. */
static void *copy(const void *from, size_t n, size_t bytes) {
    void *to = NULL;
    if (vpps_grow(&to, n + 1, bytes) && n) memcpy(to, from, n * bytes);
    return to;
}

vpps_compiled_cell *copy_cell(const vpps_compiled_cell *c) {
    vpps_compiled_cell *to = malloc(sizeof *to);
    if (!to) return NULL;
    *to = *c;
    to->name = strdup(c->name);
    to->values = copy(c->values, c->n_values, sizeof *c->values);
    to->args = copy(c->args, c->n_args, sizeof *c->args);
    to->contributions = copy(c->contributions, c->n_contributions, sizeof *c->contributions);
    to->outers = copy(c->outers, c->n_outers, sizeof *c->outers);
    to->stages = copy(c->stages, c->n_stages, sizeof *c->stages);
    to->order = copy(c->order, c->n_values, sizeof *c->order);
    to->device_program = NULL;
    to->device_free = NULL;
    to->programs = NULL;
    if (vpps_make_programs(to) == VPPS_OK) return to;
    vpps_compiled_cell_free(to);
    return NULL;
}

/* ---------------------------------------------------------------- values */

/* A random value that a stage makes; NULL: there is none. */
static vpps_cell_value *pick_made(vpps_compiled_cell *c, uint64_t *random) {
    vpps_cell_value *chosen = NULL;
    for (uint32_t v = 0, n = 0; v < c->n_values; v++)
        if (c->values[v].stage != VPPS_NONE && below(random, ++n) == 0) chosen = &c->values[v];
    return chosen;
}

static vpps_cell_value *pick_kind(vpps_compiled_cell *c, vpps_cell_kind kind, uint64_t *random) {
    vpps_cell_value *chosen = NULL;
    for (uint32_t v = 0, n = 0; v < c->n_values; v++)
        if (c->values[v].kind == kind && below(random, ++n) == 0) chosen = &c->values[v];
    return chosen;
}

/* Another value of the same shape before `end`; VPPS_NONE: there is none. */
static uint32_t like(const vpps_compiled_cell *c, uint32_t value, uint32_t end, uint64_t *random) {
    const vpps_cell_value *x = &c->values[value];
    uint32_t chosen = VPPS_NONE;
    for (uint32_t v = 0, n = 0; v < end; v++) {
        const vpps_cell_value *y = &c->values[v];
        if (v == value || y->rows != x->rows || y->cols != x->cols || y->axis != x->axis) continue;
        if (below(random, ++n) == 0) chosen = v;
    }
    return chosen;
}

static bool change_instruction(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_kind(c, VPPS_VALUE_RUN, random);
    uint32_t others[VPPS_I_COUNT], n = 0;
    for (uint32_t op = 0; x && op < VPPS_I_COUNT; op++) {
        const vpps_instruction_row *row = &vpps_instructions[op], *now = &vpps_instructions[x->run.opcode];
        if (op != x->run.opcode && row->form == now->form && !strcmp(row->operands, now->operands)) others[n++] = op;
    }
    if (n) x->run.opcode = (uint8_t)others[below(random, n)];
    return n > 0;
}

static vpps_cell_arg *pick_arg(vpps_compiled_cell *c, uint32_t *user, uint64_t *random) {
    vpps_cell_arg *chosen = NULL;
    for (uint32_t v = 0, n = 0; v < c->n_values; v++) {
        for (uint32_t i = 0; i < c->values[v].n_args; i++) {
            if (below(random, ++n)) continue;
            chosen = &c->args[c->values[v].first_arg + i];
            *user = v;
        }
    }
    return chosen;
}

static bool change_argument(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    uint32_t user;
    vpps_cell_arg *a = pick_arg(c, &user, random);
    const uint32_t other = a ? like(c, a->value, user, random) : VPPS_NONE;
    if (other != VPPS_NONE) a->value = other;
    return other != VPPS_NONE;
}

static bool exchange_arguments(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_made(c, random);
    if (!x || x->n_args < 2) return false;
    vpps_cell_arg *args = &c->args[x->first_arg], first = args[0];
    args[0] = args[1];
    args[1] = first;
    return true;
}

static bool drop_argument(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_made(c, random);
    if (!x || x->n_args < 2) return false;
    x->n_args--;
    return true;
}

static bool change_element(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    uint32_t user;
    vpps_cell_arg *a = pick_arg(c, &user, random);
    if (!a || c->values[user].kind != VPPS_VALUE_RUN ||
        !strchr(vpps_instructions[c->values[user].run.opcode].operands, 's'))
        return false;
    const uint32_t before = a->element;
    a->element = (a->element + 1) % vpps_value_words(&c->values[a->value]);
    return a->element != before;
}

static bool change_matrix(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    uint32_t user;
    vpps_cell_arg *a = pick_arg(c, &user, random);
    if (!a || a->matrix == VPPS_NO_PARAM) return false;
    const vpps_parameter_data *params = g->model->params;
    vpps_param chosen = VPPS_NO_PARAM;
    for (uint32_t p = 0, n = 0; p < g->model->n_params; p++) {
        if (p == a->matrix || params[p].kind != VPPS_MATRIX || params[p].rows != params[a->matrix].rows ||
            params[p].cols != params[a->matrix].cols) {
            continue;
        }
        if (below(random, ++n) == 0) chosen = p;
    }
    if (chosen != VPPS_NO_PARAM) a->matrix = chosen;
    return chosen != VPPS_NO_PARAM;
}

static bool change_bias(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    vpps_cell_value *x = pick_kind(c, VPPS_VALUE_PRODUCT, random);
    if (!x) return false;
    const vpps_param before = x->bias;
    for (uint32_t p = 0, n = 0; p < g->model->n_params; p++) {
        const vpps_parameter_data *data = &g->model->params[p];
        if (p != before && data->kind == VPPS_VECTOR && data->rows == x->rows && below(random, ++n) == 0) x->bias = p;
    }
    if (below(random, 3) == 0) x->bias = VPPS_NO_PARAM;
    return x->bias != before;
}

static bool change_number(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_kind(c, VPPS_VALUE_RUN, random);
    if (!x || !strpbrk(vpps_instructions[x->run.opcode].operands, "fue")) return false;
    const char *operands = vpps_instructions[x->run.opcode].operands;
    const bool real = strchr(operands, 'f') && (!strpbrk(operands, "ue") || below(random, 2));
    vpps_cell_number *n = real ? &x->run.f : &x->run.u;
    if (below(random, 4) == 0) {
        n->kind = n->kind != VPPS_NUMBER_CONSTANT ? VPPS_NUMBER_CONSTANT
                  : c->n_words                    ? VPPS_NUMBER_WORD
                  : real                          ? VPPS_NUMBER_INVERSE
                                                  : VPPS_NUMBER_POSITION;
    } else if (n->kind == VPPS_NUMBER_CONSTANT) {
        n->real = n->real == 0 ? 1 : -n->real;
        n->whole += below(random, 2) ? 1 : UINT32_MAX;
    } else if (n->kind == VPPS_NUMBER_WORD) {
        n->word = (n->word + 1) % c->n_words;
    } else {
        *(below(random, 2) ? &n->count.base : &n->count.list[1 + below(random, c->n_lists ? c->n_lists : 1)]) += 1;
    }
    return true;
}

static bool change_index(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = &c->values[below(random, c->n_values)];
    uint32_t *number = x->kind == VPPS_VALUE_INPUT      ? &x->input
                       : x->kind == VPPS_VALUE_LOOKUP   ? &x->lookup
                       : x->kind == VPPS_VALUE_GRADIENT ? &x->output
                                                        : NULL;
    const uint32_t count = x->kind == VPPS_VALUE_INPUT    ? c->n_inputs
                           : x->kind == VPPS_VALUE_LOOKUP ? c->n_lookups
                                                          : c->n_outputs;
    if (!number || count < 2) return false;
    const uint32_t before = *number, after = below(random, count);
    if (x->kind == VPPS_VALUE_GRADIENT && !(c->needs.gradient_out >> after & 1)) return false; /* it has no list */
    *number = after;
    return after != before;
}

/* An operation on a list becomes one on a member, or on the vertex, or the other way. */
static bool change_over_list(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_kind(c, VPPS_VALUE_RUN, random);
    if (!x) return false;
    x->run.over_list = !x->run.over_list;
    return true;
}

/* ---------------------------------------------------------------- what is kept */

static bool change_offset(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_made(c, random), *y = pick_made(c, random);
    if (!x || !x->kept) return false;
    const uint32_t before = x->offset;
    if (below(random, 2) && y->kept && y->axis == x->axis) {
        x->offset = y->offset;
    } else {
        x->offset += below(random, 2) ? 16 : UINT32_MAX;
    }
    return x->offset != before;
}

/* A value is kept where something lies that its stage reads. */
static bool keep_over_read(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *chosen = NULL;
    uint32_t offset = 0;
    for (uint32_t v = 0, n = 0; v < c->n_values; v++) {
        for (uint32_t i = 0; i < c->values[v].n_args; i++) {
            const vpps_cell_value *read = &c->values[c->args[c->values[v].first_arg + i].value];
            for (uint32_t u = 0; u < c->n_values && read->kept && read->stage != VPPS_NONE; u++) {
                vpps_cell_value *x = &c->values[u];
                if (x == read || !x->kept || x->stage != c->values[v].stage || x->axis != read->axis ||
                    x->offset == read->offset || below(random, ++n)) {
                    continue;
                }
                chosen = x;
                offset = read->offset;
            }
        }
    }
    if (chosen) chosen->offset = offset;
    return chosen != NULL;
}

static bool drop_kept(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_made(c, random);
    if (!x || !x->kept) return false;
    x->kept = false;
    return true;
}

static bool shrink_record(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    const uint32_t axis = below(random, c->n_lists > 1 ? c->n_lists + 1 : 2);
    if (!c->kept_words[axis]) return false;
    c->kept_words[axis] -= 1 + below(random, c->kept_words[axis]);
    return true;
}

/* ---------------------------------------------------------------- stages */

/* Stages' orders by the values' numbers. */
static void order_again(vpps_compiled_cell *c) {
    uint32_t at = 0;
    for (uint32_t s = 0; s < c->n_stages; s++) {
        c->stages[s].first = at;
        for (uint32_t v = 0; v < c->n_values; v++)
            if (c->values[v].stage == s) c->order[at++] = v;
        c->stages[s].n = at - c->stages[s].first;
    }
}

static bool move_to_stage(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = pick_made(c, random);
    if (!x || c->n_stages < 2) return false;
    const uint32_t before = x->stage;
    x->stage = below(random, c->n_stages);
    x->split = c->stages[x->stage].split;
    x->part = c->stages[x->stage].part;
    order_again(c);
    return x->stage != before;
}

/* What two stages of a part made is made by the second alone, or by the first, whose results it does not wait for. */
static bool merge_stages(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    if (c->n_stages < 2) return false;
    const uint32_t from = below(random, c->n_stages - 1) + below(random, 2), to = from ? from - 1 : 1;
    if (c->stages[from].split != c->stages[to].split) return false;
    for (uint32_t v = 0; v < c->n_values; v++)
        if (c->values[v].stage == from) c->values[v].stage = to;
    order_again(c);
    return true;
}

static bool exchange_in_order(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    if (!c->n_stages) return false;
    const vpps_cell_stage *s = &c->stages[below(random, c->n_stages)];
    if (s->n < 2) return false;
    uint32_t *order = c->order + s->first, a = below(random, s->n - 1), first = order[a];
    order[a] = order[a + 1];
    order[a + 1] = first;
    return true;
}

static bool change_split(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    if (!c->n_stages || c->needs.group < 2) return false;
    vpps_cell_stage *s = &c->stages[below(random, c->n_stages)];
    s->split = s->split == VPPS_SPLIT_ROWS ? VPPS_SPLIT_VERTICES : VPPS_SPLIT_ROWS;
    for (uint32_t i = 0; i < s->n; i++) c->values[c->order[s->first + i]].split = s->split;
    return true;
}

/* ---------------------------------------------------------------- gradients and records */

static bool change_contribution(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    if (!c->n_contributions) return false;
    vpps_cell_contribution *to = &c->contributions[below(random, c->n_contributions)];
    const vpps_cell_contribution before = *to;
    const uint32_t other = like(c, to->value, c->n_values, random);
    switch (below(random, 7)) {
    case 0:
        if (other != VPPS_NONE) to->value = other;
        break;
    case 1: to->index = below(random, to->lookup ? c->n_lookups : c->n_inputs); break;
    case 2: to->partial = !to->partial; break;
    case 3: to->scaled = !to->scaled; break;
    case 4: to->vector = to->scaled ? below(random, c->n_values) : to->vector; break;
    case 5: to->scalar = to->scaled ? below(random, c->n_values) : to->scalar; break;
    default: *to = c->contributions[--c->n_contributions]; return true;
    }
    return memcmp(to, &before, sizeof before) != 0;
}

static bool double_contribution(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    if (c->n_contributions < 2) return false;
    c->contributions[0] = c->contributions[1 + below(random, c->n_contributions - 1)];
    return true;
}

static bool change_outer(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    if (!c->n_outers) return false;
    vpps_cell_outer *o = &c->outers[below(random, c->n_outers)];
    const vpps_cell_outer before = *o;
    const uint32_t dy = like(c, o->dy, c->n_values, random),
                   x = o->x == VPPS_NONE ? o->x : like(c, o->x, c->n_values, random);
    const vpps_parameter_data *params = g->model->params;
    switch (below(random, 5)) {
    case 0:
        if (dy != VPPS_NONE) o->dy = dy;
        break;
    case 1:
        if (x != VPPS_NONE) o->x = x;
        break;
    case 2: *o = c->outers[--c->n_outers]; return true;
    case 3: *o = c->outers[below(random, c->n_outers)]; break;
    default:
        for (uint32_t p = 0; p < g->model->n_params; p++)
            if (params[p].kind == params[before.param].kind && params[p].rows == params[before.param].rows &&
                params[p].cols == params[before.param].cols && below(random, 2))
                o->param = p;
    }
    return memcmp(o, &before, sizeof before) != 0;
}

static bool change_output(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    if (!c->n_outputs) return false;
    vpps_cell_output *o = &c->outputs[below(random, c->n_outputs)];
    if (o->value == VPPS_NONE) return false;
    const uint32_t other = below(random, 4) ? like(c, o->value, c->n_values, random) : VPPS_NONE; /* NONE: left out */
    if (other != VPPS_NONE && !c->values[other].kept) return false;
    o->value = other;
    return true;
}

static bool change_lookup(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    if (!c->n_lookups) return false;
    vpps_cell_lookup *l = &c->lookups[below(random, c->n_lookups)];
    if (l->kind == VPPS_WORD_DROPOUT) {
        l->value = (l->value + 1) % g->model->params[l->table].count;
    } else {
        l->value++;
    }
    return true;
}

static bool change_word(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    if (!c->n_words) return false;
    vpps_cell_word *w = &c->words[below(random, c->n_words)];
    if (below(random, 2)) {
        w->kind = (uint8_t)((w->kind + 1) % 3);
    } else {
        w->value++;
    }
    return true;
}

/* ---------------------------------------------------------------- what makes no sense */

static bool change_shape(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = &c->values[below(random, c->n_values)];
    uint32_t *size = below(random, 2) ? &x->rows : &x->cols;
    *size += *size == 1 || below(random, 2) ? 1 : UINT32_MAX;
    return true;
}

static bool change_axis(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = &c->values[below(random, c->n_values)];
    const uint32_t axes = c->n_lists > 1 ? c->n_lists + 1 : 2;
    x->axis = (uint8_t)((x->axis + 1 + below(random, axes - 1)) % axes);
    return true;
}

static bool change_needs(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    switch (below(random, 5)) {
    case 0: c->needs.training = !c->needs.training; break;
    case 1: c->needs.group += below(random, 2) || c->needs.group == 1 ? 1 : UINT32_MAX; break;
    case 2: c->needs.gradient_in ^= (uint64_t)1 << below(random, c->n_inputs + 1); break;
    case 3: c->needs.gradient_out ^= (uint64_t)1 << below(random, c->n_outputs + 1); break;
    default: c->needs.read_out ^= (uint64_t)1 << below(random, c->n_outputs + 1); break;
    }
    return true;
}

/* ---------------------------------------------------------------- programs */

static vpps_program *pick_program(vpps_compiled_cell *c, uint64_t *random) {
    return c->n_stages ? &c->programs[below(random, c->n_stages)] : NULL;
}

static vpps_program_step *pick_step(vpps_program *p, uint64_t *random) {
    return p && p->n ? &p->steps[below(random, p->n)] : NULL;
}

/* A step of this kind; NULL: there is none. */
static vpps_program_step *pick_step_of(vpps_program *p, vpps_step_kind kind, uint64_t *random) {
    vpps_program_step *chosen = NULL;
    for (uint32_t i = 0, n = 0; p && i < p->n; i++)
        if (p->steps[i].kind == kind && below(random, ++n) == 0) chosen = &p->steps[i];
    return chosen;
}

/* An operand of a step, or its result. */
static vpps_operand *pick_operand(vpps_program *p, uint64_t *random) {
    vpps_program_step *s = pick_step(p, random);
    if (!s) return NULL;
    const uint32_t i = below(random, s->n + 1);
    return i == s->n ? &s->to : &p->operands[s->first + i];
}

static bool change_slot(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program *p = pick_program(c, random);
    vpps_operand *o = pick_operand(p, random);
    if (!o || o->place != VPPS_PLACE_SLOT || p->slots.n < 2) return false;
    o->at = (o->at + 1 + below(random, p->slots.n - 1)) % p->slots.n;
    return true;
}

/* Two values that are in use at the same time get one slot. */
static bool share_slot(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program *p = pick_program(c, random);
    if (!p || p->slots.n < 2) return false;
    const uint32_t from = below(random, p->slots.n);
    for (uint32_t to = 0; to < p->slots.n; to++) {
        const vpps_slot *a = &p->slots.at[from], *b = &p->slots.at[to];
        if (to == from || a->axis != b->axis || a->dealt != b->dealt || a->words != b->words) continue;
        for (uint32_t i = 0; i < p->n_operands; i++)
            if (p->operands[i].place == VPPS_PLACE_SLOT && p->operands[i].at == from) p->operands[i].at = to;
        for (uint32_t i = 0; i < p->n; i++)
            if (p->steps[i].to.place == VPPS_PLACE_SLOT && p->steps[i].to.at == from) p->steps[i].to.at = to;
        return true;
    }
    return false;
}

static bool change_place(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_operand *o = pick_operand(pick_program(c, random), random);
    if (!o || o->place == VPPS_PLACE_SLOT) return false;
    o->at += below(random, 2) ? 1 : UINT32_MAX;
    return true;
}

static bool change_access(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_operand *o = pick_operand(pick_program(c, random), random);
    if (!o) return false;
    o->access = (uint8_t)((o->access + 1 + below(random, VPPS_ACCESS_MEMBERS)) % (VPPS_ACCESS_MEMBERS + 1));
    return true;
}

static bool change_dealt(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program *p = pick_program(c, random);
    vpps_operand *o = pick_operand(p, random);
    if (!o || !p->n_dealt) return false;
    o->dealt = (uint8_t)((o->dealt + 1 + below(random, p->n_dealt)) % (p->n_dealt + 1));
    return true;
}

static bool change_shares(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_operand *o = pick_operand(pick_program(c, random), random);
    if (!o || (o->place != VPPS_PLACE_RECORD && o->place != VPPS_PLACE_CONTRIBUTION)) return false;
    o->shares = !o->shares;
    return true;
}

static bool drop_step(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program *p = pick_program(c, random);
    vpps_program_step *s = pick_step(p, random);
    if (!s) return false;
    memmove(s, s + 1, (size_t)(p->steps + p->n - s - 1) * sizeof *s);
    p->n--;
    return true;
}

static bool exchange_steps(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program *p = pick_program(c, random);
    if (!p || p->n < 2) return false;
    vpps_program_step *s = &p->steps[below(random, p->n - 1)], first = s[0];
    s[0] = s[1];
    s[1] = first;
    return true;
}

static bool repeat_step(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program *p = pick_program(c, random);
    if (!p || p->n < 2) return false;
    p->steps[below(random, p->n)] = p->steps[below(random, p->n)];
    return true;
}

static bool change_uniform(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program_step *s = pick_step_of(pick_program(c, random), VPPS_STEP_RUN, random);
    if (!s) return false;
    s->run.uniform = !s->run.uniform;
    return true;
}

static bool change_counts(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program_step *s = pick_step_of(pick_program(c, random), VPPS_STEP_RUN, random);
    if (!s || s->n < 2) return false;
    uint8_t *counts[] = {&s->run.tensors, &s->run.scalars, &s->run.weights};
    *counts[below(random, 3)] += 1;
    if (below(random, 2)) s->n--;
    return true;
}

static bool change_product(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_program *p = pick_program(c, random);
    vpps_program_step *s = pick_step_of(p, VPPS_STEP_PRODUCT, random);
    if (!s) return false;
    if (below(random, 2)) {
        s->product.transposed = !s->product.transposed;
    } else if (s->product.start.place) {
        s->product.start.place = VPPS_PLACE_NONE;
    } else {
        s->product.start = p->operands[s->first];
    }
    return true;
}

/* A number becomes any other. */
static bool corrupt(vpps_compiled_cell *c, const vpps_graph *g, uint64_t *random) {
    (void)g;
    vpps_cell_value *x = &c->values[below(random, c->n_values)];
    uint32_t *numbers[24] = {&x->stage}, n = 1;
    if (x->kind <= VPPS_VALUE_GRADIENT) numbers[n++] = &x->input; /* or another member of the union */
    vpps_program *p = pick_program(c, random);
    vpps_program_step *s = pick_step(p, random);
    vpps_operand *o = pick_operand(p, random);
    if (o) numbers[n++] = &o->value, numbers[n++] = &o->at, numbers[n++] = &o->rows;
    if (o && o->matrix != VPPS_NO_PARAM) numbers[n++] = &o->matrix;
    if (s) numbers[n++] = below(random, 2) ? &s->first : &s->n;
    if (s && s->kind == VPPS_STEP_RUN) numbers[n++] = below(random, 2) ? &s->run.of.f.word : &s->run.of.u.word;
    if (c->n_stages) numbers[n++] = &c->order[below(random, c->stages[0].n)];
    if (c->n_stages) numbers[n++] = below(random, 2) ? &c->stages[0].first : &c->stages[0].n;
    if (c->n_outputs) numbers[n++] = &c->outputs[below(random, c->n_outputs)].value;
    if (c->n_outputs) numbers[n++] = &c->outputs[below(random, c->n_outputs)].node;
    if (c->n_lookups) numbers[n++] = &c->lookups[below(random, c->n_lookups)].table;
    if (c->n_contributions) numbers[n++] = &c->contributions[below(random, c->n_contributions)].value;
    if (c->n_contributions) numbers[n++] = &c->contributions[below(random, c->n_contributions)].index;
    if (c->n_outers) numbers[n++] = &c->outers[below(random, c->n_outers)].dy;
    if (c->n_outers) numbers[n++] = &c->outers[below(random, c->n_outers)].x;
    if (c->n_outers) numbers[n++] = &c->outers[below(random, c->n_outers)].param;
    uint32_t *number = numbers[below(random, n)];
    const uint32_t before = *number;
    *number = below(random, 2) ? (uint32_t)vpps_random(random) : before + (below(random, 2) ? 1 : UINT32_MAX);
    return true;
}

/* Those of values are what a wrong pass would leave to the next one: programs are made anew. */
const cell_mutation cell_mutations[] = {
    {"value's instruction changed", change_instruction, true},
    {"value's argument changed", change_argument, true},
    {"value's arguments exchanged", exchange_arguments, true},
    {"value's argument dropped", drop_argument, true},
    {"scalar operand's element changed", change_element, true},
    {"product's matrix changed", change_matrix, true},
    {"product's bias changed", change_bias, true},
    {"value's number changed", change_number, true},
    {"value's index changed", change_index, true},
    {"value made of a list, or not", change_over_list, true},
    {"kept value's offset changed", change_offset, true},
    {"kept where its stage reads", keep_over_read, true},
    {"value no longer kept", drop_kept, true},
    {"record smaller", shrink_record, true},
    {"value moved to another stage", move_to_stage, true},
    {"stages made one", merge_stages, true},
    {"values exchanged in their stage", exchange_in_order, true},
    {"rows and vertices exchanged", change_split, true},
    {"contribution changed or dropped", change_contribution, true},
    {"contribution made twice", double_contribution, true},
    {"parameter's gradient changed or dropped", change_outer, true},
    {"output changed", change_output, true},
    {"lookup changed", change_lookup, true},
    {"word changed", change_word, true},
    {"value's shape changed", change_shape, true},
    {"value's axis changed", change_axis, true},
    {"needs changed", change_needs, false},
    {"operand's slot changed", change_slot, false},
    {"two slots made one", share_slot, false},
    {"operand's place changed", change_place, false},
    {"operand's access changed", change_access, false},
    {"operand's rows dealt or not", change_dealt, false},
    {"operand's shares changed", change_shares, false},
    {"step dropped", drop_step, false},
    {"steps exchanged", exchange_steps, false},
    {"step repeated, another lost", repeat_step, false},
    {"items all alike, or not", change_uniform, false},
    {"operands counted as others", change_counts, false},
    {"product transposed, or its start changed", change_product, false},
    {"any number corrupted", corrupt, false},
};
const size_t n_cell_mutations = VPPS_COUNT(cell_mutations);
