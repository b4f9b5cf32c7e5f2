/* segments.c - see segments.h. What is in memory may be read early and stored late, never the reverse: a value may be kept where one
 * lies that the stage has read before. */
#include "codegen/segments.h"

typedef struct work {
    vpps_segments *s;
    const vpps_compiled_cell *c;
    uint8_t *load;     /* of every value: it is loaded into a slot */
    uint32_t *read_in; /* of every value in memory: the segment that reads it; VPPS_NONE: none yet */
    uint32_t products; /* the segment that takes products; VPPS_NONE: there is none */
    bool again;        /* a value must be loaded that was not */
    bool ok;
} work;

uint32_t vpps_most_rows(const vpps_cell_needs *needs, uint32_t rows) {
    uint32_t most = 0;
    for (uint32_t m = 0; m < needs->group; m++) {
        const vpps_rows own = vpps_rows_of(rows, needs->row_unit, needs->group, m);
        most = vpps_max_u32(most, own.end - own.first);
    }
    return most;
}

uint32_t vpps_segment_width(const vpps_segments *s, uint32_t v) {
    const vpps_cell_value *x = &s->c->values[v];
    return vpps_is_dealt(s, v) ? vpps_most_rows(&s->c->needs, x->rows) : vpps_value_words(x);
}

/* ---------------------------------------------------------------- values */

static bool made_here(const work *w, uint32_t v) { return w->c->values[v].stage == w->s->stage; }

static vpps_segment_kind kind_of(const work *w, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    if (vpps_is_product(x)) return w->s->rows ? VPPS_SEGMENT_PRODUCTS : VPPS_SEGMENT_MATRICES;
    if (x->kind != VPPS_VALUE_RUN) return VPPS_SEGMENT_ELEMENTS;
    if (x->run.over_list && x->domain) return VPPS_SEGMENT_LISTS;
    const vpps_form form = vpps_instructions[x->run.opcode].form;
    return form == VPPS_FORM_REDUCE || form == VPPS_FORM_ROW ? VPPS_SEGMENT_WHOLE : VPPS_SEGMENT_ELEMENTS;
}

/* The letter of isa.def for argument i of a RUN. */
static char letter_of(const vpps_cell_value *x, uint32_t i) {
    uint32_t at = 0;
    for (const char *type = vpps_instructions[x->run.opcode].operands; *type; type++) {
        if (*type == '*') return '*';
        if (strchr("tsv", *type) && at++ == i) return *type;
    }
    return '?';
}

bool vpps_reads_alike(const vpps_segments *s, uint32_t v, uint32_t i) {
    const vpps_cell_value *x = &s->c->values[v];
    const vpps_cell_arg *a = &s->c->args[x->first_arg + i];
    const vpps_cell_value *y = &s->c->values[a->value];
    if (x->kind == VPPS_VALUE_POSITIONS) return true;
    if (x->kind != VPPS_VALUE_RUN || vpps_instructions[x->run.opcode].form != VPPS_FORM_EW) return false;
    const char letter = letter_of(x, i);
    return y->domain == x->domain && !a->element && vpps_value_words(y) == vpps_value_words(x) &&
           (letter == 't' || letter == '*' || (letter == 's' && vpps_value_words(x) == 1));
}

static bool stored(const vpps_compiled_cell *c, uint32_t v) {
    if (c->values[v].kept) return true;
    for (uint32_t j = 0; j < c->n_contributions; j++)
        if (c->contributions[j].value == v) return true;
    return false;
}

/* Could v be stored over something that the stage reads? */
static bool lies_over_read(const work *w, uint32_t v) {
    const vpps_compiled_cell *c = w->c;
    const vpps_cell_value *x = &c->values[v];
    const vpps_cell_stage *stage = &c->stages[w->s->stage];
    for (uint32_t i = 0; i < stage->n && x->kept; i++) {
        const vpps_cell_value *reader = &c->values[c->order[stage->first + i]];
        for (uint32_t k = 0; k < reader->n_args; k++) {
            const uint32_t u = c->args[reader->first_arg + k].value;
            const vpps_cell_value *y = &c->values[u];
            if (made_here(w, u) || !y->kept || y->record != x->record) continue;
            if (y->offset < x->offset + vpps_place_words(c, x) && x->offset < y->offset + vpps_place_words(c, y))
                return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- placing steps */

static uint32_t add_segment(work *w, vpps_segment_kind kind, uint32_t v) {
    vpps_segments *s = w->s;
    const vpps_cell_value *x = &w->c->values[v];
    w->ok = w->ok && VPPS_RESERVE(s->list, s->list_capacity, s->n + 1u);
    if (!w->ok) return 0;
    s->list[s->n] = (vpps_segment){(uint8_t)kind, x->domain, vpps_is_dealt(s, v), vpps_value_words(x), 0, 0};
    return s->n++;
}

/* Steps are listed as they come, with their segment in `first` until all are known. */
typedef struct placed {
    vpps_step_of_segment step;
    uint32_t segment;
} placed;

static bool same_space(const work *w, const vpps_segment *g, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    return g->kind == VPPS_SEGMENT_ELEMENTS && g->domain == x->domain && g->words == vpps_value_words(x) &&
           g->dealt == vpps_is_dealt(w->s, v);
}

static void add_step(work *w, placed *steps, uint32_t *n, vpps_step_kind kind, uint32_t v, uint32_t segment) {
    steps[(*n)++] = (placed){{(uint8_t)kind, v}, segment};
    if (kind != VPPS_SEGMENT_STEP_STORE) w->s->made_in[v] = segment;
}

static uint32_t last_segment(const work *w) { return w->s->n - 1; }

/* The segment of elements that can take v now: the last one, or a new one. `apart`: it reads what that one makes at other
 * elements. */
static uint32_t elements_for(work *w, uint32_t v, bool apart) {
    if (w->s->n && !apart && same_space(w, &w->s->list[last_segment(w)], v)) return last_segment(w);
    return add_segment(w, VPPS_SEGMENT_ELEMENTS, v);
}

/* Notes that a segment reads argument i of v. */
static void note_read(work *w, uint32_t v, uint32_t i, uint32_t segment) {
    const uint32_t u = w->c->args[w->c->values[v].first_arg + i].value;
    vpps_segments *s = w->s;
    if (s->made_in[u] != VPPS_NONE) {
        w->s->last_read[u] = vpps_max_u32(w->s->last_read[u], segment + 1);
        if (s->made_in[u] != segment || !vpps_reads_alike(s, v, i)) s->slot[u] = 0; /* it needs one */
        return;
    }
    const bool movable = w->c->values[u].stage != VPPS_NONE;
    if (w->read_in[u] != VPPS_NONE && w->read_in[u] != segment && movable && !w->load[u]) {
        w->load[u] = 1;
        w->again = true;
    }
    w->read_in[u] = segment;
}

/* Vectors that matrices are multiplied with are read where they lie. */
static void load_arguments(work *w, placed *steps, uint32_t *n, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    for (uint32_t i = 0; i < x->n_args; i++) {
        const uint32_t u = w->c->args[x->first_arg + i].value;
        const bool factor = w->c->args[x->first_arg + i].matrix != VPPS_NO_PARAM;
        if (made_here(w, u) || w->s->made_in[u] != VPPS_NONE || (factor && w->s->rows)) continue;
        if (kind_of(w, v) == VPPS_SEGMENT_LISTS && !w->load[u]) {
            w->load[u] = 1;
            w->again |= w->read_in[u] != VPPS_NONE; /* who read it before must know */
        }
        if (w->load[u]) {
            add_step(w, steps, n, VPPS_SEGMENT_STEP_LOAD, u, elements_for(w, u, false));
            w->s->slot[u] = 0;
        }
    }
}

static void place_product(work *w, placed *steps, uint32_t *n, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    load_arguments(w, steps, n, v);
    bool later = w->products == VPPS_NONE || w->s->list[w->products].domain != x->domain;
    for (uint32_t i = 0; i < x->n_args; i++) {
        const uint32_t u = w->c->args[x->first_arg + i].value;
        if (!later && w->s->made_in[u] != VPPS_NONE) later = w->s->made_in[u] >= w->products;
    }
    const bool hoisted = !later && w->products != last_segment(w);
    if (later) w->products = add_segment(w, VPPS_SEGMENT_PRODUCTS, v);
    add_step(w, steps, n, VPPS_SEGMENT_STEP_MAKE, v, w->products);
    for (uint32_t i = 0; i < x->n_args; i++)
        if (w->c->args[x->first_arg + i].matrix == VPPS_NO_PARAM) note_read(w, v, i, w->products);
    w->s->late[v] = hoisted && lies_over_read(w, v);
    if (!w->s->late[v]) return;
    const uint32_t store = elements_for(w, v, false);
    add_step(w, steps, n, VPPS_SEGMENT_STEP_STORE, v, store);
    w->s->slot[v] = 0;
    w->s->last_read[v] = vpps_max_u32(w->s->last_read[v], store + 1);
}

static void place(work *w, placed *steps, uint32_t *n, uint32_t v) {
    const vpps_compiled_cell *c = w->c;
    const vpps_cell_value *x = &c->values[v];
    const vpps_segment_kind kind = kind_of(w, v);
    if (x->kind == VPPS_VALUE_POSITIONS) return; /* made with what found them */
    if (kind == VPPS_SEGMENT_PRODUCTS) {
        place_product(w, steps, n, v);
        return;
    }
    load_arguments(w, steps, n, v);
    uint32_t segment;
    if (kind == VPPS_SEGMENT_ELEMENTS) {
        bool apart = false;
        for (uint32_t i = 0; i < x->n_args; i++) {
            const uint32_t u = c->args[x->first_arg + i].value;
            apart |= w->s->n && w->s->made_in[u] == last_segment(w) && !vpps_reads_alike(w->s, v, i);
        }
        segment = elements_for(w, v, apart);
    } else {
        segment = add_segment(w, kind, v);
    }
    if (!w->ok) return;
    add_step(w, steps, n, VPPS_SEGMENT_STEP_MAKE, v, segment);
    const bool positions = v + 1 < c->n_values && c->values[v + 1].kind == VPPS_VALUE_POSITIONS;
    if (positions) w->s->made_in[v + 1] = segment;
    for (uint32_t i = 0; i < x->n_args; i++) note_read(w, v, i, segment);
    if (kind == VPPS_SEGMENT_ELEMENTS) return;
    w->s->slot[v] = 0;
    w->s->last_read[v] = vpps_max_u32(w->s->last_read[v], segment + 1);
    if (!stored(c, v)) return;
    const uint32_t store = elements_for(w, v, false);
    add_step(w, steps, n, VPPS_SEGMENT_STEP_STORE, v, store);
    w->s->last_read[v] = vpps_max_u32(w->s->last_read[v], store + 1);
}

/* ---------------------------------------------------------------- slots */

typedef struct range {
    uint32_t at, width;
    uint8_t domain;
} range;

static void give_slot(work *w, uint32_t v, range *free_ranges, uint32_t *n_free) {
    const uint32_t width = vpps_segment_width(w->s, v);
    const uint8_t domain = w->c->values[v].domain;
    for (uint32_t i = 0; i < *n_free; i++) {
        if (free_ranges[i].width != width || free_ranges[i].domain != domain) continue;
        w->s->slot[v] = free_ranges[i].at;
        free_ranges[i] = free_ranges[--*n_free];
        return;
    }
    w->s->slot[v] = w->s->floats[domain];
    w->s->floats[domain] += width;
}

/* As registers are given out: a value's slot is free after the last segment that reads it. */
static bool give_slots(work *w) {
    range *free_ranges = malloc((w->c->n_values + 1u) * sizeof *free_ranges);
    uint32_t n_free = 0;
    if (!free_ranges) return false;
    for (uint32_t g = 0; g < w->s->n; g++) {
        for (uint32_t v = 0; v < w->c->n_values; v++)
            if (w->s->made_in[v] == g && w->s->slot[v] != VPPS_NONE) give_slot(w, v, free_ranges, &n_free);
        for (uint32_t v = 0; v < w->c->n_values; v++) {
            if (w->s->made_in[v] == VPPS_NONE || w->s->slot[v] == VPPS_NONE || w->s->last_read[v] != g + 1) continue;
            free_ranges[n_free++] = (range){w->s->slot[v], vpps_segment_width(w->s, v), w->c->values[v].domain};
        }
    }
    free(free_ranges);
    return true;
}

/* ---------------------------------------------------------------- all */

static bool list_steps(vpps_segments *s, const placed *steps, uint32_t n) {
    if (!VPPS_RESERVE(s->steps, s->steps_capacity, n + 1u)) return false;
    s->n_steps = 0;
    for (uint32_t g = 0; g < s->n; g++) {
        s->list[g].first = s->n_steps;
        for (uint32_t i = 0; i < n; i++)
            if (steps[i].segment == g) s->steps[s->n_steps++] = steps[i].step;
        s->list[g].n = s->n_steps - s->list[g].first;
    }
    return true;
}

static bool make(work *w, placed *steps) {
    const vpps_compiled_cell *c = w->c;
    const vpps_cell_stage *stage = &c->stages[w->s->stage];
    uint32_t n;
    do {
        n = 0;
        w->again = false;
        w->s->n = 0;
        w->products = VPPS_NONE;
        for (uint32_t v = 0; v < c->n_values; v++) {
            w->s->made_in[v] = w->s->slot[v] = w->read_in[v] = VPPS_NONE;
            w->s->late[v] = 0;
            w->s->last_read[v] = 0;
        }
        for (uint32_t i = 0; i < stage->n && w->ok; i++) place(w, steps, &n, c->order[stage->first + i]);
    } while (w->again && w->ok);
    if (!w->ok || !list_steps(w->s, steps, n) || !give_slots(w)) return false;
    return true;
}

vpps_status vpps_segments_make(vpps_segments *out, const vpps_compiled_cell *c, uint32_t stage) {
    const size_t n = c->n_values + 1u;
    *out = (vpps_segments){.c = c, .stage = stage, .rows = c->stages[stage].split == VPPS_SPLIT_ROWS};
    out->made_in = calloc(n, sizeof *out->made_in);
    out->slot = calloc(n, sizeof *out->slot);
    out->late = calloc(n, 1);
    out->last_read = calloc(n, sizeof *out->last_read);
    work w = {.s = out, .c = c, .load = calloc(n, 1), .read_in = calloc(n, sizeof *w.read_in), .ok = true};
    placed *steps = calloc(3 * n, sizeof *steps);
    const bool ok = out->made_in && out->slot && out->late && out->last_read && w.load && w.read_in && steps;
    const bool made = ok && make(&w, steps);
    void *parts[] = {w.load, w.read_in, steps};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
    return made ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}

void vpps_segments_free(vpps_segments *s) {
    void *parts[] = {s->list, s->steps, s->made_in, s->slot, s->last_read, s->late};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
    *s = (vpps_segments){0};
}
