/* stages.c - which stage makes which value, what it reads and writes in memory: is everything made before it is read, by who
 * reads it where nothing orders the VPs, and is nothing overwritten that is still wanted?
 *
 * Inside a stage a value from memory is taken into the tile when it is first wanted; operands of products are read where they
 * lie, each time. A value that is kept is written when it is made. */
#include "script/verify/checker.h"

typedef struct stages {
    vpps_checker *check;
    vpps_checked_cell *cell;
    const vpps_compiled_cell *c;
    uint32_t *place;     /* of each value in its stage's order */
    uint32_t *last_read; /* of each value from memory, in the stage at hand: last place, + 1 */
    uint8_t *loaded;     /* in the stage at hand */
    uint8_t *stays;      /* read after the vertex is done: an output, a factor of an outer product */
} stages;

static bool refuse(const stages *w, uint32_t v, const char *what) {
    return VPPS_REFUSE(w->check, "cell %s, value %u: %s", w->c->name, v, what);
}

/* ---------------------------------------------------------------- the order */

static bool check_order(stages *w) {
    const vpps_compiled_cell *c = w->c;
    for (uint32_t v = 0; v < c->n_values; v++) w->place[v] = VPPS_NONE;
    for (uint32_t s = 0; s < c->n_stages; s++) {
        const vpps_cell_stage *stage = &c->stages[s];
        if (stage->first > c->n_values || stage->n > c->n_values - stage->first)
            return VPPS_REFUSE(w->check, "cell %s: stage %u has more values than the cell", c->name, s);
        if (stage->split != VPPS_SPLIT_ROWS && stage->split != VPPS_SPLIT_VERTICES)
            return VPPS_REFUSE(w->check, "cell %s: stage %u is not shared out", c->name, s);
        for (uint32_t i = 0; i < stage->n; i++) {
            const uint32_t v = c->order[stage->first + i];
            if (v >= c->n_values)
                return VPPS_REFUSE(w->check, "cell %s: stage %u makes value %u, of %u", c->name, s, v, c->n_values);
            const vpps_cell_value *x = &c->values[v];
            if (!vpps_is_made(x) || x->stage != s || x->split != stage->split || w->place[v] != VPPS_NONE)
                return refuse(w, v, "it is made in another stage, or twice");
            w->place[v] = i;
        }
    }
    for (uint32_t v = 0; v < c->n_values; v++) {
        if (vpps_is_made(&c->values[v]) != (w->place[v] != VPPS_NONE)) return refuse(w, v, "no stage makes it");
        if (!vpps_is_made(&c->values[v]) && c->values[v].stage != VPPS_NONE)
            return refuse(w, v, "a stage makes what is there");
    }
    return true;
}

/* ---------------------------------------------------------------- operands */

/* The letter of argument i of a RUN. */
static char letter_of(const vpps_cell_value *x, uint32_t i) {
    uint32_t at = 0;
    for (const char *type = vpps_instructions[x->run.opcode].operands; *type; type++) {
        if (*type == '*') return '*';
        if (strchr("tsv", *type) && at++ == i) return *type;
    }
    return '?';
}

/* Is the operand read where it lies, each time, not from the tile? */
static bool by_pointer(const vpps_cell_value *x, const vpps_cell_arg *a) {
    return (x->kind == VPPS_VALUE_PRODUCT && a->matrix != VPPS_NO_PARAM) || x->kind == VPPS_VALUE_PRODUCT_T;
}

static bool add_read(stages *w, uint32_t value, vpps_extent extent, vpps_stage_info *info) {
    vpps_checked_cell *cell = w->cell;
    for (uint32_t i = info->first; i < info->first + info->n; i++) {
        if (cell->reads[i].value == value && cell->reads[i].extent == extent) return true;
    }
    if (!VPPS_RESERVE(cell->reads, cell->reads_capacity, cell->n_reads + 1u)) {
        w->check->status = VPPS_MEMORY;
        return false;
    }
    cell->reads[cell->n_reads++] = (vpps_stage_read){value, (uint8_t)extent};
    info->n++;
    return true;
}

static bool check_operand(stages *w, uint32_t s, uint32_t v, uint32_t i, vpps_stage_info *info) {
    const vpps_cell_value *x = &w->c->values[v];
    const vpps_cell_arg *arg = &w->c->args[x->first_arg + i];
    const vpps_cell_value *a = &w->c->values[arg->value];
    const bool pointer = by_pointer(x, arg), shares = vpps_makes_shares(a);
    const bool whole = (pointer && !vpps_makes_shares(x)) || (x->kind == VPPS_VALUE_RUN && letter_of(x, i) == 's');
    if (info->rows && a->cols != 1) return refuse(w, v, "rows are shared out of what has columns");
    if (vpps_is_made(a) && a->stage == s) {
        if (w->place[arg->value] >= w->place[v]) return refuse(w, v, "it is made before what it is made of");
        if (shares) return refuse(w, v, "it reads a share where it wants the sum");
        if (info->rows && whole) return refuse(w, v, "it reads rows that other VPs make in the same stage");
        return true;
    }
    if (vpps_is_made(a) && !a->kept) return refuse(w, arg->value, "another stage reads it, but it is not kept");
    if (shares && pointer) return refuse(w, v, "it reads a share where it wants the sum");
    if (pointer || !w->loaded[arg->value]) w->last_read[arg->value] = w->place[v] + 1;
    if (!pointer) w->loaded[arg->value] = true;
    if (shares) return add_read(w, arg->value, VPPS_EXTENT_SHARES, info);
    return add_read(w, arg->value, info->rows && pointer && !vpps_makes_shares(x) ? VPPS_EXTENT_WHOLE : VPPS_EXTENT_OWN,
                    info);
}

/* Can a VP make its rows of x alone? */
static bool check_rows(const stages *w, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    const char *types = x->kind == VPPS_VALUE_RUN ? vpps_instructions[x->run.opcode].operands : "";
    bool ok = x->cols == 1;
    switch (x->kind) {
    case VPPS_VALUE_DATA:
    case VPPS_VALUE_GRADIENT:
    case VPPS_VALUE_POSITIONS:
    case VPPS_VALUE_PRODUCT:
    case VPPS_VALUE_PRODUCT_T: break;
    case VPPS_VALUE_RUN: ok = ok && vpps_instructions[x->run.opcode].form == VPPS_FORM_EW && !strchr(types, 'v'); break;
    default: ok = false;
    }
    for (uint32_t i = 0; ok && x->kind == VPPS_VALUE_RUN && i < x->n_args; i++) {
        const vpps_cell_value *a = &w->c->values[w->c->args[x->first_arg + i].value];
        ok = letter_of(x, i) == 's' ? a->rows == 1 : a->rows == x->rows;
    }
    return ok || refuse(w, v, "its rows are shared out, but it wants more than rows");
}

/* ---------------------------------------------------------------- what is kept */

static uint32_t place_words(const vpps_compiled_cell *c, const vpps_cell_value *x) {
    return vpps_makes_shares(x) ? vpps_share_words(x) * c->needs.group : vpps_value_words(x);
}

static bool meet(const stages *w, uint32_t u, uint32_t v) {
    const vpps_cell_value *a = &w->c->values[u], *b = &w->c->values[v];
    if (u == v || !a->kept || a->record != b->record) return false;
    return a->offset < (uint64_t)b->offset + place_words(w->c, b) &&
           b->offset < (uint64_t)a->offset + place_words(w->c, a);
}

/* v is written at its place in the order: who lies there must have been read. What happens between stages the pool's words
 * tell. */
static bool check_kept(const stages *w, uint32_t s, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    if (!x->kept) return true;
    if (x->record >= VPPS_RECORDS || vpps_domain_of(x->record) != x->domain)
        return refuse(w, v, "it is kept in another domain's record");
    if ((uint64_t)x->offset + place_words(w->c, x) > w->c->kept_words[x->record])
        return refuse(w, v, "it is kept outside the record");
    if (vpps_is_passing(x->record) && (w->stays[v] || x->record != vpps_passing_record(w->c, s)))
        return refuse(w, v, "it passes, but is read after its vertex's pass");
    for (uint32_t u = 0; u < w->c->n_values; u++) {
        if (!meet(w, u, v)) continue;
        if (w->stays[u] && w->c->values[u].stage < s) return refuse(w, v, "it is kept in the place of what stays");
        if (w->c->values[u].stage == s) return refuse(w, v, "a stage keeps two values in one place");
        if (w->last_read[u] > w->place[v] + 1) return refuse(w, v, "it is kept in the place of what is still read");
    }
    return true;
}

static bool check_kept_from(const stages *w, uint32_t v, const char *what) {
    const vpps_cell_value *x = &w->c->values[v];
    if (vpps_is_made(x) && !x->kept) return refuse(w, v, what);
    return !vpps_makes_shares(x) || refuse(w, v, "a share is read where the sum is wanted");
}

static bool check_stays(stages *w) {
    const vpps_compiled_cell *c = w->c;
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        if (!vpps_offers(c, k)) continue;
        w->stays[c->outputs[k].value] = true;
        if (c->values[c->outputs[k].value].kind == VPPS_VALUE_INPUT)
            return refuse(w, c->outputs[k].value, "an input is no output");
        if (!check_kept_from(w, c->outputs[k].value, "it is an output, but not kept")) return false;
    }
    for (uint32_t i = 0; i < c->n_outers; i++) {
        const uint32_t both[] = {c->outers[i].dy, c->outers[i].x};
        for (uint32_t k = 0; k < 2; k++) {
            if (both[k] == VPPS_NONE) continue;
            w->stays[both[k]] = true;
            if (!check_kept_from(w, both[k], "a parameter's gradient wants it, but it is not kept")) return false;
        }
    }
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        const vpps_cell_value *x = &c->values[to->value];
        if (!vpps_is_made(x)) return refuse(w, to->value, "it is contributed, but no stage makes it");
        if (to->partial != vpps_makes_shares(x))
            return refuse(w, to->value, "its shares are contributed as a whole, or the reverse");
        if (x->domain != (to->lookup ? 0 : c->input_domain[to->index]))
            return refuse(w, to->value, "it is contributed to a list, but is none, or the reverse");
    }
    return true;
}

/* ---------------------------------------------------------------- all */

/* A stage that may be left out reads the condition, and what its outputs are where it does not hold. */
static bool read_otherwise(stages *w, uint32_t s, vpps_stage_info *info) {
    const vpps_compiled_cell *c = w->c;
    if (!vpps_stage_may_skip(c, &c->stages[s])) return true;
    bool ok = true;
    for (uint32_t v = 0; ok && v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (x->kind != VPPS_VALUE_INPUT) continue;
        if (x->input == c->condition.input) ok = add_read(w, v, VPPS_EXTENT_WHOLE, info);
        for (uint32_t k = 0; ok && k < c->n_outputs; k++)
            if (vpps_offers(c, k) && c->values[c->outputs[k].value].stage == s && c->outputs[k].otherwise == x->input)
                ok = add_read(w, v, VPPS_EXTENT_OWN, info);
    }
    return ok;
}

static bool check_stage(stages *w, uint32_t s) {
    const vpps_compiled_cell *c = w->c;
    const vpps_cell_stage *stage = &c->stages[s];
    vpps_stage_info *info = &w->cell->stages[s];
    *info = (vpps_stage_info){.first = w->cell->n_reads, .rows = stage->split == VPPS_SPLIT_ROWS};
    memset(w->last_read, 0, c->n_values * sizeof *w->last_read);
    memset(w->loaded, 0, c->n_values);
    for (uint32_t i = 0; i < stage->n; i++) {
        const uint32_t v = c->order[stage->first + i];
        if (info->rows && !check_rows(w, v)) return false;
        if (c->values[v].kind == VPPS_VALUE_POSITIONS) { /* made with what found them */
            if (w->place[v] < w->place[v - 1]) return refuse(w, v, "positions are there before they are found");
            continue;
        }
        for (uint32_t k = 0; k < c->values[v].n_args; k++)
            if (!check_operand(w, s, v, k, info)) return false;
    }
    for (uint32_t i = 0; i < stage->n; i++)
        if (!check_kept(w, s, c->order[stage->first + i])) return false;
    return read_otherwise(w, s, info);
}

bool vpps_check_stages(vpps_checker *c, vpps_checked_cell *cell) {
    const size_t n = cell->c->n_values + 1u;
    stages w = {.check = c,
                .cell = cell,
                .c = cell->c,
                .place = calloc(n, sizeof *w.place),
                .last_read = calloc(n, sizeof *w.last_read),
                .loaded = calloc(n, 1),
                .stays = calloc(n, 1)};
    cell->stages = calloc(cell->c->n_stages + 1u, sizeof *cell->stages);
    bool ok = w.place && w.last_read && w.loaded && w.stays && cell->stages;
    if (!ok) c->status = VPPS_MEMORY;
    ok = ok && check_order(&w) && check_stays(&w);
    for (uint32_t s = 0; ok && s < cell->c->n_stages; s++) ok = check_stage(&w, s);
    free(w.place);
    free(w.last_read);
    free(w.loaded);
    free(w.stays);
    return ok;
}
