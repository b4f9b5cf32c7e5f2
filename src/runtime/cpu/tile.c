/* tile.c - see tile.h. Slots are given out as registers are: a value's slot is free after its last reader. */
#include "runtime/cpu/tile.h"

typedef struct work {
    const vpps_compiled_cell *c;
    const vpps_cell_stage *stage;
    vpps_tile_program *p;
    uint32_t member, stage_index;
    const vpps_cpu_choice *choices;
    uint32_t *last;    /* last place in the stage's order where a value is read from a slot */
    uint32_t *free_at; /* free ranges of slots, by width: pairs (at, width, domain) */
    uint32_t n_free;
    bool ok;
} work;

static bool uniform(const vpps_compiled_cell *c, const vpps_cell_value *x) {
    const vpps_instruction_row *row = &vpps_instructions[x->run.opcode];
    const uint8_t f = x->run.f.kind, u = x->run.u.kind;
    if (row->form != VPPS_FORM_EW || f > VPPS_NUMBER_CONSTANT || u == VPPS_NUMBER_WORD || u == VPPS_NUMBER_ELEMENT ||
        (u == VPPS_NUMBER_POSITION && (x->domain || vpps_counts_members(&x->run.u.count)))) {
        return false;
    }
    for (const char *type = row->operands; *type; type++)
        if (*type == 's' || *type == 'v') return false;
    for (uint32_t k = 0; k < x->n_args; k++)
        if (c->values[c->args[x->first_arg + k].value].domain != x->domain) return false;
    return true;
}

static bool add_op(work *w, vpps_tile_kind kind, uint32_t value, uint32_t index) {
    vpps_tile_program *p = w->p;
    const bool same = kind == VPPS_TILE_RUN && uniform(w->c, &w->c->values[value]);
    w->ok = w->ok && VPPS_RESERVE(p->ops, p->ops_capacity, p->n_ops + 1u);
    if (w->ok) p->ops[p->n_ops++] = (vpps_tile_op){(uint8_t)kind, same, value, index};
    return w->ok;
}

/* What of a value the VP has in a tile of this stage. */
static void set_width(const work *w, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    vpps_tile_slot *slot = &w->p->slots[v];
    *slot = (vpps_tile_slot){VPPS_NO_SLOT, vpps_value_words(x), 0};
    if (w->stage->split != VPPS_SPLIT_ROWS || (x->kind == VPPS_VALUE_PRODUCT_T && x->stage == w->stage_index)) return;
    const vpps_rows rows = vpps_own_rows(&w->c->needs, x, w->member);
    slot->first = rows.first;
    slot->width = rows.end - rows.first;
}

static void take_slot(work *w, uint32_t v) {
    const uint32_t domain = w->c->values[v].domain;
    vpps_tile_slot *slot = &w->p->slots[v];
    if (slot->at != VPPS_NO_SLOT) return;
    for (uint32_t i = 0; i < w->n_free; i++) {
        uint32_t *f = w->free_at + 3 * (size_t)i;
        if (f[1] != slot->width || f[2] != domain) continue;
        slot->at = f[0];
        w->n_free--;
        memmove(f, f + 3, 3 * (size_t)(w->n_free - i) * sizeof *f);
        return;
    }
    slot->at = w->p->floats[domain];
    w->p->floats[domain] += slot->width;
}

static void release(work *w, uint32_t v, uint32_t place) {
    vpps_tile_slot *slot = &w->p->slots[v];
    if (slot->at == VPPS_NO_SLOT || w->last[v] > place || w->last[v] == VPPS_NONE) return;
    uint32_t *f = w->free_at + 3 * (size_t)w->n_free++;
    f[0] = slot->at;
    f[1] = slot->width;
    f[2] = w->c->values[v].domain;
    w->last[v] = VPPS_NONE; /* once */
}

static bool made_here(const work *w, uint32_t v) { return w->c->values[v].stage == w->stage_index; }

/* Does the operation at `place` read this argument where it lies? Vectors of products do; and what a sum of products starts
 * from, if nothing else in the stage reads it: what is read twice is loaded once, for another value may be stored in its
 * place meanwhile (see split.c). */
static bool by_pointer(const work *w, const vpps_cell_value *x, const vpps_cell_arg *a, uint32_t place) {
    if (x->kind != VPPS_VALUE_PRODUCT) return x->kind == VPPS_VALUE_PRODUCT_T;
    if (a->matrix != VPPS_NO_PARAM) return true;
    const vpps_cell_value *from = &w->c->values[a->value];
    const bool only_reader = w->last[a->value] == place && w->p->slots[a->value].at == VPPS_NO_SLOT;
    return !made_here(w, a->value) && only_reader && from->kind == VPPS_VALUE_PRODUCT && from->cols == 1 &&
           from->domain == x->domain;
}

static void load(work *w, uint32_t v) {
    if (w->p->slots[v].at != VPPS_NO_SLOT || made_here(w, v)) return;
    const vpps_cell_value *x = &w->c->values[v];
    take_slot(w, v);
    add_op(w, vpps_makes_shares(x) ? VPPS_TILE_ADD_SHARES : VPPS_TILE_LOAD, v, 0);
}

static void mark_last(work *w) {
    for (uint32_t v = 0; v < w->c->n_values; v++) w->last[v] = 0;
    for (uint32_t i = 0; i < w->stage->n; i++) {
        const uint32_t v = w->c->order[w->stage->first + i];
        const vpps_cell_value *x = &w->c->values[v];
        w->last[v] = vpps_max_u32(w->last[v], i);
        for (uint32_t k = 0; k < x->n_args; k++) w->last[w->c->args[x->first_arg + k].value] = i;
        if (x->kind == VPPS_VALUE_POSITIONS) w->last[v] = vpps_max_u32(w->last[v], i);
    }
}

static uint32_t direct_contribution(const work *w, uint32_t v) {
    const vpps_compiled_cell *c = w->c;
    uint32_t found = VPPS_NO_SLOT;
    for (uint32_t j = 0; j < c->n_contributions; j++)
        if (c->contributions[j].value == v) found = found == VPPS_NO_SLOT ? j : found;
    return found;
}

/* The one contribution that a product with transposed matrices is, and nothing else: it is made where that lies. */
static uint32_t only_contribution(const work *w, uint32_t v, uint32_t place) {
    const vpps_cell_value *x = &w->c->values[v];
    const uint32_t j = direct_contribution(w, v);
    if (x->kind != VPPS_VALUE_PRODUCT_T || x->kept || j == VPPS_NO_SLOT || w->last[v] > place) return VPPS_NO_SLOT;
    for (uint32_t i = j + 1; i < w->c->n_contributions; i++)
        if (w->c->contributions[i].value == v) return VPPS_NO_SLOT;
    return j;
}

/* Is this a product that the stage itself does not read again? Then it is made where it is kept, unless what it is made of
 * lies there. */
static bool made_in_memory(const work *w, uint32_t v, uint32_t place) {
    const vpps_compiled_cell *c = w->c;
    const vpps_cell_value *x = &c->values[v];
    if (x->kind != VPPS_VALUE_PRODUCT || !x->kept || x->cols != 1 || w->last[v] > place ||
        direct_contribution(w, v) != VPPS_NO_SLOT) {
        return false;
    }
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_value *y = &c->values[c->args[x->first_arg + k].value];
        if (y->kept && y->record == x->record && y->offset < x->offset + vpps_place_words(c, x) &&
            x->offset < y->offset + vpps_place_words(c, y)) {
            return false;
        }
    }
    return true;
}

static void add_value(work *w, uint32_t place) {
    const vpps_compiled_cell *c = w->c;
    const uint32_t v = c->order[w->stage->first + place];
    const vpps_cell_value *x = &c->values[v];
    if (x->kind == VPPS_VALUE_POSITIONS) { /* made by what comes before it, which has taken its slot */
        if (x->kept) add_op(w, VPPS_TILE_STORE, v, 0);
        release(w, v, place);
        return;
    }
    static const uint8_t kinds[] = {
        [VPPS_VALUE_DATA] = VPPS_TILE_LOAD,
        [VPPS_VALUE_GRADIENT] = VPPS_TILE_GRADIENT,
        [VPPS_VALUE_RUN] = VPPS_TILE_RUN,
        [VPPS_VALUE_PRODUCT] = VPPS_TILE_PRODUCT,
        [VPPS_VALUE_PRODUCT_T] = VPPS_TILE_PRODUCT_T,
    };
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &c->args[x->first_arg + k];
        if (!by_pointer(w, x, a, place)) load(w, a->value);
    }
    const uint32_t where = made_in_memory(w, v, place) ? 0 : only_contribution(w, v, place);
    if (where == VPPS_NO_SLOT) {
        take_slot(w, v);
        if (v + 1 < c->n_values && c->values[v + 1].kind == VPPS_VALUE_POSITIONS) take_slot(w, v + 1);
    }
    uint8_t kind = kinds[x->kind];
    if (x->kind == VPPS_VALUE_RUN && vpps_instructions[x->run.opcode].form == VPPS_FORM_PARTS) kind = VPPS_TILE_PARTS;
    if (vpps_is_run(x, VPPS_I_ARGMAX)) kind = VPPS_TILE_ARGMAX;
    if (vpps_is_run(x, VPPS_I_ENTRY)) kind = VPPS_TILE_ENTRY;
    add_op(w, kind, v, where);
    if (where == VPPS_NO_SLOT) {
        if (x->kept) add_op(w, VPPS_TILE_STORE, v, 0);
        for (uint32_t j = direct_contribution(w, v); j < c->n_contributions; j++)
            if (c->contributions[j].value == v) add_op(w, VPPS_TILE_CONTRIBUTE, v, j);
    }
    for (uint32_t k = 0; k < x->n_args; k++) release(w, c->args[x->first_arg + k].value, place);
    release(w, v, place);
}

/* As many vectors at a time as its matrices want. */
static uint32_t most_vectors(const work *w) {
    uint32_t most = vpps_cpu_defaults.tile, least = UINT32_MAX;
    for (uint32_t i = 0; i < w->p->n_ops; i++) {
        const vpps_tile_op *op = &w->p->ops[i];
        const vpps_cell_value *x = &w->c->values[op->value];
        if (op->kind != VPPS_TILE_PRODUCT) continue;
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_param matrix = w->c->args[x->first_arg + k].matrix;
            if (matrix != VPPS_NO_PARAM) least = vpps_min_u32(least, w->choices[matrix].tile);
        }
    }
    return least == UINT32_MAX ? most : least;
}

/* Contributions of values that this stage does not make (a value handed on as it is): by the first stage of their part,
 * or, where they are made in another, by that one. Values that no stage makes are never contributed. */
static void make(work *w) {
    vpps_tile_program *p = w->p;
    for (uint32_t v = 0; v < w->c->n_values; v++) set_width(w, v);
    mark_last(w);
    for (uint32_t i = 0; i < w->stage->n && w->ok; i++) add_value(w, i);
    enum { FLOATS = 48 * 1024, LEAST_WITH_ARGMAX = 24 };
    uint32_t floats = p->floats[0] + 1;
    for (uint32_t d = 1; d < VPPS_DOMAINS; d++) floats += 4 * p->floats[d];
    p->tile = FLOATS / floats;
    p->tile = vpps_min_u32(p->tile, most_vectors(w));
    /* scores of many classes: their matrix is far larger than the tile, and is read once for each */
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == VPPS_TILE_ARGMAX) p->tile = vpps_max_u32(p->tile, LEAST_WITH_ARGMAX);
    if (p->tile > 6) p->tile -= p->tile % 6;
    if (!p->tile) p->tile = 1;
}

static void free_tiles(void *program) {
    vpps_tile_cell *t = program;
    if (!t) return;
    for (uint32_t i = 0; i < t->n; i++) {
        free(t->programs[i].ops);
        free(t->programs[i].slots);
    }
    free(t->programs);
    free(t);
}

vpps_status vpps_make_tiles(vpps_compiled_cell *c, const vpps_cpu_choice *choices) {
    if (c->device_program) return VPPS_OK;
    vpps_tile_cell *t = calloc(1, sizeof *t);
    const size_t n = (size_t)c->n_stages * c->needs.group;
    uint32_t *last = calloc(c->n_values + 1u, sizeof *last);
    uint32_t *free_at = calloc(3 * (2 * (size_t)c->n_values + 2), sizeof *free_at);
    bool ok = t && last && free_at;
    if (ok) {
        t->programs = calloc(n + 1, sizeof *t->programs);
        ok = t->programs != NULL;
    }
    for (uint32_t s = 0; ok && s < c->n_stages; s++) {
        for (uint32_t m = 0; ok && m < c->needs.group; m++) {
            vpps_tile_program *p = &t->programs[t->n++];
            p->slots = calloc(c->n_values + 1u, sizeof *p->slots);
            work w = {.c = c,
                      .stage = &c->stages[s],
                      .p = p,
                      .member = m,
                      .stage_index = s,
                      .choices = choices,
                      .last = last,
                      .free_at = free_at,
                      .ok = p->slots != NULL};
            if (w.ok) make(&w);
            ok = w.ok;
        }
    }
    free(last);
    free(free_at);
    if (!ok) {
        free_tiles(t);
        return vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
    }
    c->device_program = t;
    c->device_free = free_tiles;
    return VPPS_OK;
}
