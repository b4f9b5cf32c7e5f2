/* order.c - decides which stages (parts of a cell's work) wait until all virtual processors (VPs: CTAs, or CPU threads)
 * have finished an earlier stage, since they read or overwrite what other VPs make or read there. VPs divide the rows
 * of vectors, or the vertices; no VP waits for rows or vertices that it computed itself. */
#include "cell/cell.h"

/* What of a value a processor (CTA or CPU thread) reads or writes in a stage (part of a cell without barriers). */
typedef enum extent {
    EXTENT_ROWS,     /* only rows of the value that this CTA or thread computes */
    EXTENT_VERTICES, /* all rows, but only for vertices that this CTA or thread computes */
    EXTENT_OTHERS    /* rows that other CTAs or threads read or write, too: later parts of the cell may have to wait */
} extent;

static bool has_own_rows(const vpps_compiled_cell *c, const vpps_cell_value *x) {
    return vpps_rows_dealt(&c->needs, x->rows) && x->cols == 1;
}

static extent made(const vpps_compiled_cell *c, const vpps_cell_value *x) {
    if (x->split == VPPS_SPLIT_VERTICES) return EXTENT_VERTICES;
    return vpps_makes_shares(x) || !has_own_rows(c, x) ? EXTENT_OTHERS : EXTENT_ROWS;
}

/* Returns which rows of value x's argument i are read to compute x. */
static extent read(const vpps_compiled_cell *c, const vpps_cell_value *x, uint32_t i) {
    const vpps_cell_value *a = &c->values[c->args[x->first_arg + i].value];
    if (vpps_makes_shares(a)) return EXTENT_OTHERS;
    if (x->split == VPPS_SPLIT_VERTICES) return EXTENT_VERTICES;
    return vpps_reads_whole(c, x, i) || !has_own_rows(c, a) ? EXTENT_OTHERS : EXTENT_ROWS;
}

typedef struct access {
    uint32_t value, stage;
    extent extent;
} access;

/* If access b is in a later stage (part of the cell) than access a, makes b's stage wait until all CTAs or threads made
 * a. No wait is needed if one of them makes both accesses: to the same rows, or for the same vertices. */
static void put_after(vpps_compiled_cell *c, access a, access b) {
    if (a.stage >= b.stage) return;
    const bool levels = vpps_by_levels(c->stages[a.stage].pass) == vpps_by_levels(c->stages[b.stage].pass);
    const bool rows = c->values[a.value].rows == c->values[b.value].rows;
    const bool dealt = !memcmp(c->stages[a.stage].work, c->stages[b.stage].work, sizeof c->stages[0].work);
    const bool alone =
        a.extent == b.extent && (a.extent == EXTENT_ROWS ? rows : a.extent == EXTENT_VERTICES && levels && dealt);
    uint32_t *after = &c->stages[b.stage].after;
    if (!alone && (*after == VPPS_NONE || *after < a.stage)) *after = a.stage;
}

/* Makes later parts of the cell wait for access a (a read or a write) if they overwrite the memory that it accesses. */
static void put_access(vpps_compiled_cell *c, access a) {
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (x->stage != VPPS_NONE && vpps_places_meet(c, a.value, v))
            put_after(c, a, (access){v, x->stage, made(c, x)});
    }
}

static void order_value(vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_value *x = &c->values[v];
    put_access(c, (access){v, x->stage, made(c, x)});
    for (uint32_t i = 0; i < x->n_args; i++) {
        const uint32_t value = c->args[x->first_arg + i].value;
        const vpps_cell_value *a = &c->values[value];
        if (a->stage == VPPS_NONE) continue;
        const access b = {value, x->stage, read(c, x, i)};
        put_after(c, (access){value, a->stage, made(c, a)}, b);
        put_access(c, b);
    }
}

/* Notes that a stage (part of the cell) uses input or output number i of the cell: in set->own if each CTA or thread
 * uses only rows that it computes (extent e), or one runs the stage alone (argument `own`); else in set->whole. */
static void add(vpps_stage_set *set, bool own, extent e, uint32_t i) {
    *(own || e == EXTENT_ROWS ? &set->own : &set->whole) |= (uint64_t)1 << i;
}

/* Adds what a part of a cell reads because it may be skipped: the cell's condition, inputs that replace its outputs. */
static void add_otherwise(vpps_compiled_cell *c) {
    for (uint32_t s = 0; s < c->n_stages; s++)
        if (vpps_stage_may_skip(c, &c->stages[s])) add(&c->stages[s].inputs, false, EXTENT_OTHERS, c->condition.input);
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const vpps_cell_output *o = &c->outputs[k];
        const uint32_t s = o->value == VPPS_NONE ? VPPS_NONE : c->values[o->value].stage;
        if (s == VPPS_NONE || o->otherwise == VPPS_NONE || !vpps_stage_may_skip(c, &c->stages[s])) continue;
        add(&c->stages[s].inputs, false, made(c, &c->values[o->value]), o->otherwise);
    }
}

static void find_links(vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_value *x = &c->values[v];
    vpps_cell_stage *stage = &c->stages[x->stage];
    const uint64_t in = stage->owner ? c->needs.recurrent_in : 0, out = stage->owner ? c->needs.recurrent_out : 0;
    if (x->kind == VPPS_VALUE_GRADIENT) add(&stage->gradients, out >> x->output & 1, made(c, x), x->output);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_value *a = &c->values[c->args[x->first_arg + i].value];
        if (a->kind == VPPS_VALUE_INPUT) add(&stage->inputs, in >> a->input & 1, read(c, x, i), a->input);
    }
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value == v) add(&stage->outputs, stage->owner, made(c, x), k);
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        const vpps_cell_contribution *to = &c->contributions[j];
        if (to->value == v && !to->lookup) add(&stage->contributions, stage->owner, made(c, x), to->index);
    }
}

void vpps_order_stages(vpps_compiled_cell *c) {
    for (uint32_t s = 0; s < c->n_stages; s++) c->stages[s].after = VPPS_NONE;
    for (uint32_t v = 0; v < c->n_values; v++) {
        if (c->values[v].stage == VPPS_NONE) continue;
        order_value(c, v);
        find_links(c, v);
    }
    add_otherwise(c);
}
