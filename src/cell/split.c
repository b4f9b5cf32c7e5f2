/* split.c - decides where and when values are computed: passes (eager, main, lazy; Cavs, section 3.4), stages, memory.
 *
 * A stage is work of a VP (CTA or thread) that needs no result that another VP makes meanwhile. If each VP computes
 * some rows of every vector, a product begins a stage, since it reads vectors of which a VP has only some rows. A
 * product with a transposed matrix ends a stage, since the VPs' partial sums must be added up. If each VP computes
 * whole vertices, a pass is one stage. */
#include "cell/cell.h"

typedef struct work {
    const vpps_model *model;
    vpps_compiled_cell *c;
    /* for each value of forward: whether it depends on a recurrent input (an output of a child vertex); for each value of backward: whether
     * it depends on the gradient of a recurrent output */
    uint8_t *recurrent;
    /* for each value of forward: whether a recurrent output (read by parent vertices) depends on it; for each value of backward: whether
     * the gradient of a recurrent input depends on it */
    uint8_t *leads;
    uint32_t *last; /* for each value kept in memory: number of the last stage (part of the cell) that reads it */
    /* for each value in memory: whether only its vertex reads it, in forward only or in backward only */
    uint8_t *one_pass;
} work;

static bool backward(const vpps_compiled_cell *c, uint32_t v) { return v >= c->n_forward; }

/* ---------------------------------------------------------------- passes */

static void mark_recurrence(work *w) {
    vpps_compiled_cell *c = w->c;
    const vpps_cell_needs *needs = &c->needs;
    vpps_mark_recurrent(c, w->recurrent);
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value != VPPS_NONE && (needs->recurrent_out >> k & 1)) w->leads[c->outputs[k].value] = 1;
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        if (!to->lookup && (needs->recurrent_in >> to->index & 1)) w->leads[to->value] = 1;
    }
    for (uint32_t v = c->n_values; v-- > 0;) {
        const vpps_cell_value *x = &c->values[v];
        if (!w->leads[v]) continue;
        for (uint32_t i = 0; i < x->n_args; i++) {
            const uint32_t a = c->args[x->first_arg + i].value;
            if (backward(c, v) == backward(c, a)) w->leads[a] = 1;
        }
    }
}

/* Chooses when values are computed: once after all levels (lazy) if no parent vertex needs them; once before (eager) if
 * they are products that need no child vertex, or such products' operands; else level by level (main). */
static void choose_parts(work *w) {
    vpps_compiled_cell *c = w->c;
    const bool recurrent = c->needs.recurrent_in != 0;
    mark_recurrence(w);
    for (uint32_t v = 0; v < c->n_values; v++) {
        vpps_cell_value *x = &c->values[v];
        vpps_pass pass = VPPS_PASS_MAIN;
        if (recurrent) {
            if (!w->leads[v])
                pass = VPPS_PASS_LAZY;
            else if (vpps_is_product(x) && !w->recurrent[v])
                pass = VPPS_PASS_EAGER;
        }
        x->pass = (uint8_t)(pass + (backward(c, v) ? VPPS_PASS_BACK_EAGER : 0));
    }
    for (uint32_t v = c->n_values; v-- > 0;) {
        const vpps_cell_value *x = &c->values[v];
        for (uint32_t i = 0; i < x->n_args; i++) {
            vpps_cell_value *a = &c->values[c->args[x->first_arg + i].value];
            const bool same = (a->pass < VPPS_PASS_BACK_EAGER) == (x->pass < VPPS_PASS_BACK_EAGER);
            if (same && a->pass > x->pass) a->pass = x->pass;
        }
    }
    /* positions of maxima or minima (value v) get the pass (eager, main, lazy) of the instruction that finds them (value v - 1) */
    for (uint32_t v = 1; v < c->n_values; v++)
        if (c->values[v].kind == VPPS_VALUE_POSITIONS) c->values[v].pass = c->values[v - 1].pass;
}

/* ---------------------------------------------------------------- rows or vertices */

static uint64_t matrix_elems(const work *w) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < w->c->n_args; i++) {
        const vpps_param p = w->c->args[i].matrix;
        if (p != VPPS_NO_PARAM) n += vpps_param_elems(&w->model->params[p]);
    }
    return n;
}

static bool rows_enough(const work *w, uint32_t rows) { return vpps_rows_dealt(&w->c->needs, rows); }

static vpps_split product_split(const work *w, const vpps_cell_value *x) {
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_param p = w->c->args[x->first_arg + i].matrix;
        if (p == VPPS_NO_PARAM) continue;
        if (!rows_enough(w, w->model->params[p].rows)) return VPPS_SPLIT_VERTICES;
    }
    return VPPS_SPLIT_ROWS;
}

/* Returns whether a CTA or thread that computes its own rows of an instruction needs no other rows of the operands. */
static bool by_rows(const work *w, const vpps_cell_value *x) {
    const char *types = vpps_instructions[x->run.opcode].operands;
    if (vpps_instructions[x->run.opcode].form != VPPS_FORM_EW || !rows_enough(w, x->rows) || strchr(types, 'v'))
        return false;
    for (uint32_t i = 0; types[i] && i < x->n_args; i++)
        if (types[i] == 's' && w->c->values[w->c->args[x->first_arg + i].value].rows > 1) return false;
    return true;
}

/* Returns whether a product, a parameter's gradient or the host reads v in memory: these readers cannot add up partial sums. */
static bool read_in_place(const vpps_compiled_cell *c, uint32_t v) {
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->gradient_of[k] == v) return true;
    for (uint32_t i = 0; i < c->n_outers; i++)
        if (c->outers[i].dy == v || c->outers[i].x == v) return true;
    for (uint32_t u = v + 1; u < c->n_values; u++) {
        const vpps_cell_value *x = &c->values[u];
        for (uint32_t k = 0; k < x->n_args; k++)
            if (c->args[x->first_arg + k].value == v && c->args[x->first_arg + k].matrix != VPPS_NO_PARAM) return true;
    }
    return false;
}

static vpps_split wanted_split(const work *w, const vpps_cell_value *x) {
    switch (x->kind) {
    case VPPS_VALUE_PRODUCT: return product_split(w, x);
    case VPPS_VALUE_PRODUCT_T:
        if (w->c->needs.rows.columns) return rows_enough(w, x->rows) ? VPPS_SPLIT_ROWS : VPPS_SPLIT_VERTICES;
        return read_in_place(w->c, (uint32_t)(x - w->c->values)) ? VPPS_SPLIT_VERTICES : product_split(w, x);
    case VPPS_VALUE_GRADIENT:
    case VPPS_VALUE_POSITIONS: return rows_enough(w, x->rows) ? VPPS_SPLIT_ANY : VPPS_SPLIT_VERTICES;
    case VPPS_VALUE_RUN: return by_rows(w, x) ? VPPS_SPLIT_ANY : VPPS_SPLIT_VERTICES;
    default: return VPPS_SPLIT_VERTICES;
    }
}

bool vpps_reads_whole(const vpps_compiled_cell *c, const vpps_cell_value *x, uint32_t i) {
    if (x->kind == VPPS_VALUE_PRODUCT || (x->kind == VPPS_VALUE_PRODUCT_T && c->needs.rows.columns))
        return c->args[x->first_arg + i].matrix != VPPS_NO_PARAM;
    if (x->kind != VPPS_VALUE_RUN) return false;
    const char *types = vpps_instructions[x->run.opcode].operands;
    uint32_t at = 0;
    for (; *types; types++) {
        if (*types == '*') return false; /* '*': any number of operands, read only at the result's row */
        if (strchr("tsv", *types) && at++ == i) return *types != 't';
    }
    return false;
}

/* Where it is open whether processors divide a value's rows or the vertices: takes `split` if an argument has it. */
static void split_as_read(vpps_compiled_cell *c, vpps_split split) {
    for (uint32_t v = 0; v < c->n_values; v++) {
        vpps_cell_value *x = &c->values[v];
        for (uint32_t i = 0; i < x->n_args && x->split == VPPS_SPLIT_ANY; i++) {
            const vpps_cell_value *a = &c->values[c->args[x->first_arg + i].value];
            if (a->pass == x->pass && a->split == split) x->split = (uint8_t)split;
        }
    }
}

static bool read_by_rows(const vpps_compiled_cell *c, uint32_t v) {
    bool any = false;
    for (uint32_t u = v + 1; u < c->n_values; u++) {
        const vpps_cell_value *x = &c->values[u];
        for (uint32_t i = 0; i < x->n_args && x->pass == c->values[v].pass; i++) {
            const vpps_cell_arg *a = &c->args[x->first_arg + i];
            if (a->value != v) continue;
            if (x->split != VPPS_SPLIT_ROWS || vpps_reads_whole(c, x, i)) return false;
            any = true;
        }
    }
    return any;
}

static void choose_splits(work *w) {
    vpps_compiled_cell *c = w->c;
    bool rows = c->needs.group > 1 && !c->needs.owner && matrix_elems(w) >= c->needs.rows.split_elems;
    for (uint32_t v = 0; v < c->n_values; v++) rows = rows && c->values[v].cols == 1;
    for (uint32_t v = 0; v < c->n_values; v++) {
        vpps_cell_value *x = &c->values[v];
        x->split = (uint8_t)(!vpps_is_made(x) ? VPPS_SPLIT_OFF : rows ? wanted_split(w, x) : VPPS_SPLIT_VERTICES);
        if (x->kind == VPPS_VALUE_PRODUCT_T) x->shares = c->needs.rows.columns ? 1 : c->needs.group;
    }
    split_as_read(c, VPPS_SPLIT_ROWS);
    /* if each processor reads only its own rows of a value, each processor also computes only its own rows of the value */
    for (uint32_t v = c->n_values; v-- > 0;)
        if (c->values[v].split == VPPS_SPLIT_ANY && read_by_rows(c, v)) c->values[v].split = VPPS_SPLIT_ROWS;
    split_as_read(c, VPPS_SPLIT_VERTICES);
    /* where it is open whether processors divide a value's rows or the vertices: as for a value computed from it */
    for (uint32_t v = c->n_values; v-- > 0;) {
        const vpps_cell_value *x = &c->values[v];
        for (uint32_t i = 0; i < x->n_args; i++) {
            vpps_cell_value *a = &c->values[c->args[x->first_arg + i].value];
            if (a->split == VPPS_SPLIT_ANY && a->pass == x->pass && x->split != VPPS_SPLIT_ANY) a->split = x->split;
        }
    }
    for (uint32_t v = 0; v < c->n_values; v++) {
        if (c->values[v].split == VPPS_SPLIT_ANY)
            c->values[v].split = (uint8_t)(rows ? VPPS_SPLIT_ROWS : VPPS_SPLIT_VERTICES);
        if (c->values[v].kind == VPPS_VALUE_POSITIONS) c->values[v].split = c->values[v - 1].split;
    }
}

/* ---------------------------------------------------------------- stages */

/* Divides each pass of a cell (eager: before all levels of vertices; main: level by level; lazy: after them) into
 * stages, in which no CTA or thread needs what another makes there. Numbers each pass's stages from 0. */
static bool number_stages(work *w) {
    vpps_compiled_cell *c = w->c;
    /* split_of[p * n_values + s]: how CTAs or threads divide part s of pass p: by rows or vertices; 0: it is empty */
    uint8_t *split_of = calloc(VPPS_PASSES, c->n_values + (size_t)1);
    if (!split_of) return false;
    for (uint32_t v = 0; v < c->n_values; v++) {
        vpps_cell_value *x = &c->values[v];
        uint8_t *split = split_of + (size_t)x->pass * c->n_values;
        x->stage = VPPS_NONE;
        if (x->split == VPPS_SPLIT_OFF) continue;
        uint32_t stage = 0;
        for (uint32_t i = 0; i < x->n_args; i++) {
            const vpps_cell_arg *arg = &c->args[x->first_arg + i];
            const vpps_cell_value *a = &c->values[arg->value];
            if (a->split == VPPS_SPLIT_OFF || a->pass != x->pass) continue;
            bool later = a->split != x->split;
            if (x->split == VPPS_SPLIT_ROWS) later |= vpps_makes_shares(a) || vpps_reads_whole(c, x, i);
            stage = vpps_max_u32(stage, a->stage + later);
        }
        while (split[stage] && split[stage] != x->split) stage++;
        split[stage] = x->split;
        if (x->kind == VPPS_VALUE_POSITIONS) stage = c->values[v - 1].stage;
        x->stage = stage;
    }
    free(split_of);
    return true;
}

/* Numbers all stages (parts of the cell) in the order in which they run, and makes c->stages and c->order. */
static bool list_stages(work *w) {
    vpps_compiled_cell *c = w->c;
    uint32_t n_of[VPPS_PASSES] = {0};
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (x->stage != VPPS_NONE) n_of[x->pass] = vpps_max_u32(n_of[x->pass], x->stage + 1);
    }
    c->n_stages = 0;
    for (uint32_t pass = 0; pass < VPPS_PASSES; pass++) {
        c->first_stage[pass] = c->n_stages;
        c->n_stages += n_of[pass];
    }
    c->first_stage[VPPS_PASSES] = c->n_stages;
    if (!VPPS_RESERVE(c->order, c->n_values + 1u) || !VPPS_RESERVE(c->stages, c->n_stages + 1u)) { return false; }
    memset(c->stages, 0, c->n_stages * sizeof *c->stages);
    for (uint32_t v = 0; v < c->n_values; v++) {
        vpps_cell_value *x = &c->values[v];
        if (x->stage == VPPS_NONE) continue;
        x->stage += c->first_stage[x->pass];
        vpps_cell_stage *s = &c->stages[x->stage];
        s->pass = x->pass;
        s->split = x->split;
        s->owner = vpps_by_levels(s->pass) ? c->needs.owner : 0;
        s->backward = x->pass >= VPPS_PASS_BACK_EAGER;
        s->n++;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->n_stages; i++) {
        c->stages[i].first = at;
        at += c->stages[i].n;
        c->stages[i].n = 0;
    }
    for (uint32_t v = 0; v < c->n_values; v++) {
        if (c->values[v].stage == VPPS_NONE) continue;
        vpps_cell_stage *s = &c->stages[c->values[v].stage];
        c->order[s->first + s->n++] = v;
    }
    return true;
}

/* ---------------------------------------------------------------- kept values and their places */

static void keep(work *w, uint32_t v, uint32_t last) {
    vpps_cell_value *x = &w->c->values[v];
    if (!vpps_is_made(x)) return;
    w->last[v] = x->kept ? vpps_max_u32(w->last[v], last) : last;
    x->kept = true;
}

/* Returns whether value v has exactly one use, as a gradient for an input. */
static bool only_contributed(const vpps_compiled_cell *c, uint32_t v) {
    uint32_t n = 0;
    for (uint32_t j = 0; j < c->n_contributions; j++) n += c->contributions[j].value == v;
    if (!n) return false;
    for (uint32_t i = 0; i < c->n_args; i++) n += c->args[i].value == v;
    for (uint32_t i = 0; i < c->n_outers; i++) n += c->outers[i].dy == v || c->outers[i].x == v;
    for (uint32_t k = 0; k < c->n_outputs; k++) n += c->outputs[k].value == v || c->gradient_of[k] == v;
    return n == 1;
}

/* Finds gradients that each node of a vertex's list gets as the same vector times the node's own scalar: devices may store these two factors. */
static void choose_scaled(vpps_compiled_cell *c) {
    for (uint32_t j = 0; j < c->n_contributions && c->needs.scales; j++) {
        vpps_cell_contribution *to = &c->contributions[j];
        const vpps_cell_value *v = &c->values[to->value];
        if (to->lookup || !v->axis || !vpps_is_run(v, VPPS_I_SCALE_BY)) continue;
        const uint32_t vector = c->args[v->first_arg].value, scalar = c->args[v->first_arg + 1].value;
        const vpps_cell_value *x = &c->values[vector], *by = &c->values[scalar];
        to->scaled = !x->axis && vpps_is_made(x) && !vpps_makes_shares(x) && by->axis == v->axis && vpps_is_made(by) &&
                     !vpps_makes_shares(by) && vpps_value_words(by) == 1 && only_contributed(c, to->value);
        to->vector = vector;
        to->scalar = scalar;
    }
}

/* Returns whether stage s only computes gradients for inputs as products matrix^T x with x so long that each CTA may
 * read only one of `shares` equal parts of x. It then computes `shares` times as many rows, of partial sums. */
static bool fits_shares(const vpps_compiled_cell *c, const vpps_cell_stage *s, uint32_t shares) {
    /* A part of the vector x has at least rows.columns elements, a multiple of QUAD; at most 1 / FEW of the CTAs get no rows */
    enum { QUAD = 4, FEW = 10 };
    const uint32_t least = shares * c->needs.rows.columns;
    for (const uint32_t *v = &c->order[s->first]; v < &c->order[s->first + s->n]; v++) {
        const vpps_cell_value *x = &c->values[*v];
        if (x->kind != VPPS_VALUE_PRODUCT_T || x->split != VPPS_SPLIT_ROWS || !only_contributed(c, *v)) return false;
        for (uint32_t a = x->first_arg, n; a < x->first_arg + x->n_args; a++)
            if ((n = c->values[c->args[a].value].rows) % (shares * QUAD) || n < least) return false;
    }
    return c->needs.group % shares * FEW <= c->needs.group;
}

/* Cuts the vectors x of products matrix^T x in up to MOST parts, for partial sums, if the parts are long enough. */
static void choose_shares(vpps_compiled_cell *c) {
    enum { MOST = 10 };
    for (uint32_t i = 0, shares; i < c->n_stages && c->needs.rows.columns; i++) {
        for (shares = MOST; shares > 1 && !fits_shares(c, &c->stages[i], shares);) shares--;
        for (uint32_t k = 0; k < c->stages[i].n && shares > 1; k++)
            c->values[c->order[c->stages[i].first + k]].shares = shares;
    }
}

static void choose_kept(work *w) {
    vpps_compiled_cell *c = w->c;
    const uint32_t forever = UINT32_MAX;
    choose_scaled(c);
    for (uint32_t j = 0; j < c->n_contributions; j++) {
        vpps_cell_contribution *to = &c->contributions[j];
        if (!to->scaled) continue;
        keep(w, to->vector, forever);
        keep(w, to->scalar, forever);
    }
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        if (c->outputs[k].value != VPPS_NONE) keep(w, c->outputs[k].value, forever);
        if (c->gradient_of[k] != VPPS_NONE) keep(w, c->gradient_of[k], forever);
    }
    for (uint32_t i = 0; i < c->n_outers; i++) {
        keep(w, c->outers[i].dy, forever);
        if (c->outers[i].x != VPPS_NONE) keep(w, c->outers[i].x, forever);
    }
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        for (uint32_t i = 0; i < x->n_args; i++) {
            const uint32_t a = c->args[x->first_arg + i].value;
            if (c->values[a].stage != VPPS_NONE && c->values[a].stage != x->stage) keep(w, a, x->stage);
        }
    }
}

static uint32_t place_in_stage(const vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_stage *s = &c->stages[c->values[v].stage];
    uint32_t i = 0;
    while (c->order[s->first + i] != v) i++;
    return i;
}

/* Returns whether v's stage (part of the cell) has read all of value u before v overwrites u. Products read u in
 * memory, maybe rows that other processors overwrite; other instructions read a copy, which the stage loads once. */
static bool read_before(const vpps_compiled_cell *c, uint32_t u, uint32_t v) {
    const vpps_cell_stage *s = &c->stages[c->values[v].stage];
    const uint32_t place = place_in_stage(c, v);
    bool loaded = false;
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_cell_value *x = &c->values[c->order[s->first + i]];
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = &c->args[x->first_arg + k];
            if (a->value != u) continue;
            if (a->matrix != VPPS_NO_PARAM) {
                if (i > place || (x->split == VPPS_SPLIT_ROWS && vpps_reads_whole(c, x, k))) return false;
            } else {
                if (i > place && !loaded) return false;
                loaded = true;
            }
        }
    }
    return true;
}

/* Returns whether value v may overwrite value u in memory: u is last read in an earlier stage (part of the cell), or in
 * v's stage, before v, by the same processor. A processor has the same rows of both if sizes are equal. */
static bool may_follow(const work *w, uint32_t u, uint32_t v) {
    const vpps_compiled_cell *c = w->c;
    const vpps_cell_value *a = &c->values[u], *b = &c->values[v];
    if (w->last[u] == VPPS_NONE || vpps_place_words(a) != vpps_place_words(b) || a->axis != b->axis) return false;
    if (w->one_pass[u] && w->one_pass[v] && backward(c, u) != backward(c, v))
        /* one value is used in forward only, the other in backward only: they lie in different areas of memory */
        return false;
    if (w->last[u] < b->stage) return true;
    return w->last[u] == b->stage && a->split == b->split && (a->split != VPPS_SPLIT_ROWS || a->rows == b->rows) &&
           a->kind != VPPS_VALUE_PRODUCT_T && b->kind != VPPS_VALUE_PRODUCT_T && read_before(c, u, v);
}

static void find_one_pass(work *w) {
    vpps_compiled_cell *c = w->c;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        w->one_pass[v] = x->kept && w->last[v] != UINT32_MAX && !x->axis &&
                         c->stages[w->last[v]].backward == c->stages[x->stage].backward;
    }
}

/* Lets values overwrite earlier ones in memory: place[v] becomes the first value in v's place, follower[u] the value
 * that overwrites u. one_pass[place] remains set if all values in a place are for forward alone, or backward alone. */
static void find_places(work *w, uint32_t *place, uint32_t *follower) {
    vpps_compiled_cell *c = w->c;
    for (uint32_t i = 0; i < c->n_stages; i++) {
        for (uint32_t j = 0; j < c->stages[i].n; j++) {
            const uint32_t v = c->order[c->stages[i].first + j];
            if (!c->values[v].kept) continue;
            uint32_t u = 0;
            while (u < v && !(c->values[u].kept && c->values[u].stage <= i && follower[u] == VPPS_NONE &&
                              place[u] != VPPS_NONE && may_follow(w, u, v)))
                u++;
            place[v] = u < v ? place[u] : v;
            if (u < v) follower[u] = v;
            if (u < v && !(w->one_pass[place[v]] && w->one_pass[v])) w->one_pass[place[v]] = 0;
        }
    }
}

/* Gives each kept value an offset in its record (area of a vertex's memory). Values of one place (which overwrite each other) get one
 * offset; places are in the order of their first values. */
static void place_in_records(work *w, const uint32_t *place) {
    vpps_compiled_cell *c = w->c;
    for (uint32_t i = 0; i < c->n_stages; i++) {
        for (uint32_t j = 0; j < c->stages[i].n; j++) {
            const uint32_t v = c->order[c->stages[i].first + j];
            vpps_cell_value *x = &c->values[v];
            if (!x->kept) continue;
            const uint32_t pass_record = backward(c, v) ? VPPS_RECORD_BACKWARD : VPPS_RECORD_FORWARD;
            x->record = (uint8_t)(w->one_pass[place[v]] ? pass_record : x->axis);
            if (vpps_is_pass_record(x->record))
                c->stages[i].uses_pass_record = c->stages[w->last[v]].uses_pass_record = true;
            if (place[v] != v) {
                x->offset = c->values[place[v]].offset;
                continue;
            }
            const uint32_t words = vpps_place_words(x);
            uint32_t *at = &c->kept_words[x->record];
            if (words >= 16) *at = (*at + 15) & ~15u;
            x->offset = *at;
            *at += words;
        }
    }
    for (uint32_t r = 0; r < VPPS_RECORDS; r++) c->kept_words[r] = (c->kept_words[r] + 15) & ~15u;
}

/* Notes which stages (parts of the cell) read memory that is for values of forward alone, or of backward alone. */
static void mark_readers(work *w) {
    vpps_compiled_cell *c = w->c;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        for (uint32_t k = 0; k < x->n_args && x->stage != VPPS_NONE; k++) {
            const vpps_cell_value *a = &c->values[c->args[x->first_arg + k].value];
            if (a->kept && vpps_is_pass_record(a->record)) c->stages[x->stage].uses_pass_record = true;
        }
    }
}

static bool place_kept(work *w) {
    const size_t n = w->c->n_values + (size_t)1;
    uint32_t *follower = malloc(2 * n * sizeof *follower); /* for each value: the value that later overwrites it */
    if (!follower) return false;
    memset(follower, 0xff, 2 * n * sizeof *follower);
    find_one_pass(w);
    find_places(w, follower + n, follower);
    place_in_records(w, follower + n);
    mark_readers(w);
    free(follower);
    return true;
}

vpps_status vpps_split_cell(const vpps_model *model, vpps_compiled_cell *c) {
    work w = {.model = model, .c = c};
    const size_t n = c->n_values + 1u;
    w.recurrent = calloc(n, 1);
    w.leads = calloc(n, 1);
    w.last = calloc(n, sizeof *w.last);
    w.one_pass = calloc(n, 1);
    bool ok = w.recurrent && w.leads && w.last && w.one_pass;
    if (ok) {
        for (uint32_t v = 0; v < c->n_values; v++) c->values[v].offset = VPPS_NONE;
        choose_parts(&w);
        choose_splits(&w);
        ok = number_stages(&w) && list_stages(&w);
    }
    if (ok) {
        choose_shares(c);
        choose_kept(&w);
        ok = place_kept(&w);
    }
    VPPS_FREE(w.recurrent, w.leads, w.last, w.one_pass);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}
