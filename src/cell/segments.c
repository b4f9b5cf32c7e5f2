/* segments.c - divides the steps of a stage (part of a cell) into segments. After each segment for which another one
 * waits, all threads of the CTA wait for each other. Reads of memory that the stage stores over may move to earlier
 * segments, stores to later ones; never the reverse. */
#include "cell/segments.h"

typedef struct builder {
    vpps_segments *s;
    const vpps_compiled_cell *c;
    uint8_t *load;     /* for each value: whether a segment (list of steps) loads it from memory into a slot (buffer) */
    uint32_t *read_in; /* for each value in memory: the segment (list of steps) that reads it; VPPS_NONE: none yet */
    uint32_t products; /* the latest segment (list of steps) that takes further products; VPPS_NONE: there is none */
    bool retry;
    bool free; /* whether segments may change places: a GPU divides vertices with lists, of a cell without recurrence */
    bool ok;
} builder;

uint32_t vpps_most_rows(const vpps_cell_needs *needs, uint32_t rows, uint32_t shares) {
    uint32_t most = 0;
    for (uint32_t m = 0; m < needs->group; m += shares) {
        const vpps_rows own = vpps_share_rows(needs, rows, shares, m);
        most = vpps_max_u32(most, own.end - own.first);
    }
    return most;
}

uint32_t vpps_segment_width(const vpps_segments *s, uint32_t v) {
    const vpps_cell_value *x = &s->c->values[v];
    return vpps_is_dealt(s, v) ? vpps_most_rows(&s->c->needs, x->rows, vpps_shares_of(x)) : vpps_value_words(x);
}

/* ---------------------------------------------------------------- steps */

static bool made_here(const builder *b, uint32_t v) { return b->c->values[v].stage == b->s->stage; }

/* Returns whether the step computes a value, instead of copying one that another part of the cell (stage) computed. */
static bool makes(const builder *b, const vpps_program_step *step) {
    return step->kind <= VPPS_STEP_PRODUCT && made_here(b, step->to.value);
}

static vpps_segment_kind kind_of(const builder *b, const vpps_program_step *step) {
    if (step->kind == VPPS_STEP_PRODUCT) return b->s->p->rows ? VPPS_SEGMENT_PRODUCTS : VPPS_SEGMENT_MATRICES;
    if (step->kind != VPPS_STEP_RUN) return VPPS_SEGMENT_ELEMENTS;
    const vpps_form form = vpps_instructions[step->run.of.opcode].form;
    if (form != VPPS_FORM_REDUCE && form != VPPS_FORM_ROW) return VPPS_SEGMENT_ELEMENTS;
    return step->run.of.over_list && step->axis ? VPPS_SEGMENT_LISTS : VPPS_SEGMENT_WHOLE;
}

/* Finds for each value the step that makes it, and, if the program loads it or a product reads it, its place in memory. */
static void find_memory(builder *b) {
    const vpps_program *p = b->s->p;
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_program_step *step = &p->steps[i];
        if (makes(b, step)) b->s->made_by[step->to.value] = step;
        if (step->kind == VPPS_STEP_RUN && step->run.positions.place) b->s->made_by[step->run.positions.value] = step;
        const bool reads = step->kind == VPPS_STEP_LOAD || step->kind == VPPS_STEP_PRODUCT;
        for (uint32_t k = 0; k < step->n && reads; k++) {
            const vpps_operand *o = vpps_operand_of(b->s, step, k);
            if (o->place != VPPS_PLACE_SLOT && !b->s->memory[o->value]) b->s->memory[o->value] = o;
        }
        const vpps_operand *start = step->kind == VPPS_STEP_PRODUCT ? vpps_start_of(step) : NULL;
        if (start && start->place != VPPS_PLACE_SLOT) b->s->memory[start->value] = start;
    }
}

static bool stored(const builder *b, uint32_t v) {
    const vpps_program *p = b->s->p;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->steps[i].to.value == v && p->steps[i].to.place >= VPPS_PLACE_RECORD) return true;
    return false;
}

/* Returns whether storing v may overwrite a value that an earlier stage (part of the cell) made and this one reads. */
static bool lies_over_read(const builder *b, uint32_t v) {
    for (uint32_t u = 0; u < b->c->n_values; u++)
        if (b->s->memory[u] && !made_here(b, u) && vpps_places_meet(b->c, u, v)) return true;
    return false;
}

/* Returns whether the stage (part of the cell) stores a value over value u. */
static bool is_stored_over(const builder *b, uint32_t u) {
    bool any = false;
    for (uint32_t v = 0; v < b->c->n_values; v++) any |= made_here(b, v) && vpps_places_meet(b->c, u, v);
    return any;
}

bool vpps_segment_stores_over(const vpps_segments *s, uint32_t segment, uint32_t u) {
    const vpps_segment *g = &s->list[segment];
    bool any = false;
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_segment_step *step = &s->steps[g->first + k];
        const bool here = g->kind <= VPPS_SEGMENT_PRODUCTS && step->kind == VPPS_SEGMENT_MAKE && !s->late[step->value];
        const bool positions = here && step->step->kind == VPPS_STEP_RUN && step->step->run.positions.place;
        any |= (here || step->kind == VPPS_SEGMENT_STORE) && vpps_places_meet(s->c, step->value, u);
        any |= positions && vpps_places_meet(s->c, step->step->run.positions.value, u);
    }
    const bool finishes = g->kind == VPPS_SEGMENT_ELEMENTS && segment && g[-1].kind == VPPS_SEGMENT_PRODUCTS;
    return any || (finishes && vpps_segment_stores_over(s, segment - 1, u));
}

/* ---------------------------------------------------------------- placing steps */

static uint32_t add_segment(builder *b, vpps_segment_kind kind, uint32_t v, uint32_t barriers) {
    vpps_segments *s = b->s;
    const vpps_cell_value *x = &b->c->values[v];
    b->ok = b->ok && VPPS_RESERVE(s->list, s->n + 1u);
    if (!b->ok) return 0;
    s->list[s->n] = (vpps_segment){(uint8_t)kind, x->axis, vpps_is_dealt(s, v), vpps_value_words(x), 0, 0, barriers};
    return s->n++;
}

static bool same_space(const builder *b, const vpps_segment *g, uint32_t v) {
    const vpps_cell_value *x = &b->c->values[v];
    return g->kind == VPPS_SEGMENT_ELEMENTS && g->axis == x->axis && g->words == vpps_value_words(x) &&
           g->dealt == vpps_is_dealt(b->s, v);
}

/* A step, and the number of its segment (list of steps). Steps are sorted by segment in the end. */
typedef struct placed {
    vpps_segment_step step;
    uint32_t segment;
} placed;

typedef struct placing {
    placed *steps;
    uint32_t n;
} placing;

static void add_step(builder *b, placing *to, placed p) {
    to->steps[to->n++] = p;
    if (p.step.kind != VPPS_SEGMENT_STORE) b->s->made_in[p.step.value] = p.segment;
}

/* Returns how many barriers must precede a step (if NULL, a load) in `segment` (VPPS_NONE: in a new one); VPPS_NONE if operands are made later. */
static uint32_t barriers_before(const builder *b, const vpps_program_step *step, uint32_t segment) {
    uint32_t most = 0;
    const vpps_operand *o;
    for (uint32_t i = 0; step && (o = vpps_read_of(b->s, step, i)); i++) {
        const uint32_t made_in = b->s->made_in[o->value];
        if (made_in == VPPS_NONE || (made_in == segment && vpps_reads_alike(step, o))) continue;
        most = vpps_max_u32(most, made_in >= segment ? VPPS_NONE : b->s->list[made_in].barriers + 1);
    }
    return most;
}

/* Returns the segment (list of steps) in which `step` makes value v (NULL: loads it): if elementwise, the last one; or, if b->free, one as early
 * as a new one would be, but the last one if the step stores v, as a store must not move to an earlier segment; else a new one. */
static uint32_t segment_for(builder *b, vpps_segment_kind kind, uint32_t v, const vpps_program_step *step) {
    vpps_segments *s = b->s;
    const bool stores = step && (stored(b, v) || (step->kind == VPPS_STEP_RUN && step->run.positions.place));
    const uint32_t barriers = barriers_before(b, step, VPPS_NONE);
    for (uint32_t g = s->n && (stores || !b->free) ? s->n - 1 : 0; g < s->n; g++) {
        const bool fits = kind == VPPS_SEGMENT_ELEMENTS && same_space(b, &s->list[g], v);
        const uint32_t here = fits ? barriers_before(b, step, g) : VPPS_NONE;
        if (b->free ? here <= s->list[g].barriers && s->list[g].barriers <= barriers : here != VPPS_NONE) return g;
    }
    return add_segment(b, kind, v, barriers);
}

static void note_read(builder *b, const vpps_program_step *step, const vpps_operand *o, uint32_t segment) {
    const uint32_t u = o->value;
    vpps_segments *s = b->s;
    if (s->made_in[u] != VPPS_NONE) {
        /* another thread, or a step after a barrier, reads u, so u needs a buffer (slot); 0: offset still open */
        if (s->made_in[u] != segment || !vpps_reads_alike(step, o)) s->slot[u] = 0;
        return;
    }
    const bool movable = b->c->values[u].stage != VPPS_NONE && (!b->free || is_stored_over(b, u));
    if (b->read_in[u] != VPPS_NONE && b->read_in[u] != segment && movable && !b->load[u])
        b->load[u] = 1, b->retry = true;
    b->read_in[u] = segment;
}

/* Adds steps that copy operands of `step` from memory to slots (buffers): those whose values b->load marks. A product
 * by a CTA's own rows of a matrix reads vectors in memory, and needs no copy. */
static void load_operands(builder *b, placing *to, const vpps_program_step *step) {
    const vpps_operand *o;
    for (uint32_t i = 0; (o = vpps_read_of(b->s, step, i)); i++) {
        if (i < step->n && step->kind == VPPS_STEP_PRODUCT && b->s->p->rows) continue;
        const uint32_t u = o->value;
        if (made_here(b, u) || b->s->made_in[u] != VPPS_NONE) continue;
        if (kind_of(b, step) == VPPS_SEGMENT_LISTS && !b->load[u]) {
            b->load[u] = 1;
            /* make() starts again if an earlier step was to read value u in memory: u now has a buffer */
            b->retry |= b->read_in[u] != VPPS_NONE;
        }
        if (!b->load[u]) continue;
        add_step(b, to, (placed){{VPPS_SEGMENT_LOAD, u, NULL}, segment_for(b, VPPS_SEGMENT_ELEMENTS, u, NULL)});
        b->s->slot[u] = 0;
    }
}

/* Adds a product to the latest segment of products (a list of steps that need no barrier in between), or to a new one
 * if the product reads a value that is computed there or later. */
static void place_product(builder *b, placing *to, const vpps_program_step *step) {
    const uint32_t v = step->to.value;
    load_operands(b, to, step);
    if (b->products != VPPS_NONE &&
        (b->s->list[b->products].axis != step->axis || barriers_before(b, step, b->products) == VPPS_NONE))
        b->products = VPPS_NONE;
    const bool hoisted = b->products != VPPS_NONE && b->products != b->s->n - 1;
    if (b->products == VPPS_NONE) b->products = add_segment(b, VPPS_SEGMENT_PRODUCTS, v, 0);
    add_step(b, to, (placed){{VPPS_SEGMENT_MAKE, v, step}, b->products});
    if (vpps_start_of(step)) note_read(b, step, vpps_start_of(step), b->products);
    b->s->late[v] = hoisted && lies_over_read(b, v);
    if (!b->s->late[v]) return;
    const uint32_t store = segment_for(b, VPPS_SEGMENT_ELEMENTS, v, NULL);
    add_step(b, to, (placed){{VPPS_SEGMENT_STORE, v, NULL}, store});
    b->s->slot[v] = 0;
}

static void place(builder *b, placing *to, const vpps_program_step *step) {
    const uint32_t v = step->to.value;
    const vpps_segment_kind kind = kind_of(b, step);
    if (kind == VPPS_SEGMENT_PRODUCTS) {
        place_product(b, to, step);
        return;
    }
    load_operands(b, to, step);
    const uint32_t segment = segment_for(b, kind, v, step);
    if (!b->ok) return;
    add_step(b, to, (placed){{VPPS_SEGMENT_MAKE, v, step}, segment});
    if (step->kind == VPPS_STEP_RUN && step->run.positions.place) b->s->made_in[step->run.positions.value] = segment;
    const vpps_operand *o;
    for (uint32_t i = 0; (o = vpps_read_of(b->s, step, i)); i++) note_read(b, step, o, segment);
    if (kind == VPPS_SEGMENT_ELEMENTS) return;
    b->s->slot[v] = 0;
    if (!stored(b, v)) return;
    const uint32_t store = add_segment(b, VPPS_SEGMENT_ELEMENTS, v, b->s->list[segment].barriers + 1);
    add_step(b, to, (placed){{VPPS_SEGMENT_STORE, v, NULL}, store});
}

/* ---------------------------------------------------------------- all */

/* Returns whether step list g must follow h: it reads a value of h's, or reads or stores memory that h overwrites. */
static bool follows(const vpps_segments *s, uint32_t g, uint32_t h) {
    bool any = false;
    for (uint32_t k = s->list[g].first; k < s->list[g].first + s->list[g].n; k++) {
        const vpps_segment_step *x = &s->steps[k];
        const bool positions = x->step && x->step->kind == VPPS_STEP_RUN && x->step->run.positions.place;
        any |= s->made_in[x->value] == h || vpps_segment_stores_over(s, h, x->value);
        any |= positions && vpps_segment_stores_over(s, h, x->step->run.positions.value);
        const vpps_operand *o;
        for (uint32_t i = 0; x->step && (o = vpps_read_of(s, x->step, i)); i++)
            any |= s->made_in[o->value] == VPPS_NONE ? vpps_segment_stores_over(s, h, o->value)
                                                     : s->made_in[o->value] == h;
    }
    return any;
}

/* Gives values slots (buffers). A slot is reused after the barrier that follows the last step that reads its value. */
static bool give_slots(builder *b) {
    vpps_segments *s = b->s;
    vpps_slots slots = {0};
    bool ok = true;
    for (uint32_t g = 0, end; g < s->n && ok; g = end) {
        for (end = g + 1; end < s->n && s->list[end].barriers == s->list[g].barriers;) end++;
        for (uint32_t v = 0; v < b->c->n_values && ok; v++) {
            if (s->made_in[v] < g || s->made_in[v] >= end || s->slot[v] == VPPS_NONE) continue;
            s->slot[v] = vpps_take_slot(&slots, b->c->values[v].axis, 0, vpps_segment_width(s, v));
            ok = s->slot[v] != VPPS_NONE;
        }
        for (uint32_t v = 0; v < b->c->n_values && ok; v++)
            if (s->made_in[v] != VPPS_NONE && s->slot[v] != VPPS_NONE && s->last_read[v] > g && s->last_read[v] <= end)
                vpps_release_slot(&slots, s->slot[v]);
    }
    uint32_t *before = calloc(slots.n + 1u, sizeof *before); /* for each slot (buffer): floats in preceding slots */
    ok = ok && before;
    for (uint32_t i = 0; i < slots.n && ok; i++) {
        before[i] = s->floats[slots.at[i].axis];
        s->floats[slots.at[i].axis] += slots.at[i].words;
    }
    for (uint32_t v = 0; v < b->c->n_values && ok; v++)
        if (s->made_in[v] != VPPS_NONE && s->slot[v] != VPPS_NONE) s->slot[v] = before[s->slot[v]];
    VPPS_FREE_ARRAYS(slots.at);
    free(before);
    return ok;
}

static bool list_steps(vpps_segments *s, const placing *from) {
    if (!VPPS_RESERVE(s->steps, from->n + 1u)) return false;
    s->n_steps = 0;
    for (uint32_t g = 0; g < s->n; g++) {
        s->list[g].first = s->n_steps;
        for (uint32_t i = 0; i < from->n; i++)
            if (from->steps[i].segment == g) s->steps[s->n_steps++] = from->steps[i].step;
        s->list[g].n = s->n_steps - s->list[g].first;
    }
    return true;
}

/* Returns the sort key of a segment (a list of steps); elementwise segments with equal keys are joined into one. */
static uint64_t number_of(const vpps_segment *g) {
    return (uint64_t)g->barriers << 40 | (uint64_t)g->kind << 36 | (uint64_t)g->axis << 32 | g->words;
}

/* Counts the barriers before each segment (list of steps), sorts segments by this count, and joins some. A segment
 * waits for those whose values it reads or overwrites; if CTAs divide rows, for all before it. In cells without list
 * inputs (of any number of nodes) no segment is moved ahead: values made early would fill shared memory longer. */
static bool order_segments(builder *b, placing *to) {
    vpps_segments *s = b->s;
    uint32_t *order = calloc(s->n + 1u, sizeof *order), *number = calloc(s->n + 1u, sizeof *number), n = 0;
    vpps_segment *list = calloc(s->n + 1u, sizeof *list);
    bool ok = order && number && list;
    for (uint32_t g = 0, i; g < s->n && ok; order[i] = g++) {
        vpps_segment *x = &s->list[g];
        x->barriers = g && !b->c->n_lists ? x[-1].barriers : 0;
        for (uint32_t h = 0; h < g; h++)
            if (s->list[h].barriers >= x->barriers && (s->p->rows || follows(s, g, h) || follows(s, h, g)))
                x->barriers = s->list[h].barriers + 1;
        for (i = g; i > 0 && number_of(&s->list[order[i - 1]]) > number_of(x); i--) order[i] = order[i - 1];
    }
    for (uint32_t i = 0; i < s->n && ok; number[order[i++]] = n - 1) {
        const vpps_segment *x = &s->list[order[i]];
        if (!n || x->kind != VPPS_SEGMENT_ELEMENTS || number_of(&list[n - 1]) != number_of(x)) list[n++] = *x;
    }
    for (uint32_t g = 0; g < n && ok; g++) s->list[g] = list[g];
    for (uint32_t v = 0; v < b->c->n_values && ok; v++) {
        s->made_in[v] = s->made_in[v] == VPPS_NONE ? VPPS_NONE : number[s->made_in[v]];
        s->last_read[v] = 0;
    }
    for (placed *p = to->steps; p < to->steps + to->n && ok; p++) {
        const vpps_program_step *step = p->step.step;
        const vpps_operand *o;
        p->segment = number[p->segment];
        s->last_read[p->step.value] = vpps_max_u32(s->last_read[p->step.value], p->segment + 1);
        for (uint32_t i = step && step->kind == VPPS_STEP_PRODUCT && s->p->rows ? step->n : 0;
             step && (o = vpps_read_of(s, step, i)); i++)
            s->last_read[o->value] = vpps_max_u32(s->last_read[o->value], p->segment + 1);
    }
    s->n = n;
    VPPS_FREE(order, number, list);
    return ok && list_steps(s, to);
}

/* Finds values in memory that a segment (list of steps) overwrites while its threads may still read elements that another thread
 * overwrites. These values must be loaded into slots (buffers). */
static void load_overwritten(builder *b) {
    vpps_segments *s = b->s;
    for (uint32_t g = 0; g < s->n && b->ok; g++) {
        for (uint32_t k = s->list[g].first; k < s->list[g].first + s->list[g].n; k++) {
            const vpps_program_step *step = s->steps[k].step;
            for (uint32_t i = 0; step && step->kind == VPPS_STEP_RUN && i < step->n; i++) {
                const vpps_operand *o = vpps_operand_of(s, step, i);
                if (s->made_in[o->value] == VPPS_NONE && !vpps_reads_alike(step, o) &&
                    vpps_segment_stores_over(s, g, o->value))
                    b->load[o->value] = 1, b->retry = true;
            }
        }
    }
}

static bool make(builder *b, placing *to) {
    const vpps_program *p = b->s->p;
    find_memory(b);
    do {
        to->n = 0;
        b->retry = false;
        b->s->n = 0;
        b->products = VPPS_NONE;
        for (uint32_t v = 0; v < b->c->n_values; v++)
            b->s->made_in[v] = b->s->slot[v] = b->read_in[v] = VPPS_NONE, b->s->late[v] = 0;
        for (uint32_t i = 0; i < p->n && b->ok; i++)
            if (makes(b, &p->steps[i])) place(b, to, &p->steps[i]);
        b->ok = b->ok && list_steps(b->s, to);
        load_overwritten(b);
    } while (b->retry && b->ok);
    b->ok = b->ok && order_segments(b, to);
    return b->ok && give_slots(b);
}

/* Returns whether `reader` reads value v in memory other than as a vector multiplied by a processor's own rows of a matrix. */
static bool reads_whole(const vpps_compiled_cell *c, const vpps_cell_value *reader, uint32_t v) {
    const bool product = vpps_is_product(reader) && c->stages[reader->stage].split == VPPS_SPLIT_ROWS;
    bool reads = false;
    for (uint32_t i = 0; i < reader->n_args && reader->stage != c->values[v].stage; i++) {
        const vpps_cell_arg *a = &c->args[reader->first_arg + i];
        reads |= a->value == v && (!product || a->matrix == VPPS_NO_PARAM);
    }
    return reads;
}

bool vpps_only_products_read(const vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_value *x = &c->values[v];
    bool kept = x->kept && x->cols == 1 && !vpps_makes_shares(x), multiplied = false;
    for (uint32_t k = 0; k < c->n_outputs && kept; k++) kept = c->outputs[k].value != v && c->gradient_of[k] != v;
    for (uint32_t i = 0; i < c->n_values && kept; i++) kept = !reads_whole(c, &c->values[i], v);
    for (uint32_t j = 0; j < c->n_contributions && kept; j++)
        kept = !c->contributions[j].scaled || (c->contributions[j].vector != v && c->contributions[j].scalar != v);
    for (uint32_t i = 0; i < vpps_n_outers(c) && kept; i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (!o.x || (o.x->value != v && o.dy->value != v)) continue;
        const vpps_operand *other = o.x->value == v ? o.dy : o.x;
        kept = other->cols == 1 && other->axis == x->axis;
        multiplied = true;
    }
    return kept && multiplied;
}

vpps_status vpps_segments_make(vpps_segments *out, const vpps_compiled_cell *c, uint32_t stage) {
    const size_t n = c->n_values + 1u;
    *out = (vpps_segments){.c = c, .p = &c->programs[stage], .stage = stage};
    out->memory = calloc(n, sizeof *out->memory);
    out->made_by = calloc(n, sizeof *out->made_by);
    out->made_in = calloc(n, sizeof *out->made_in);
    out->slot = calloc(n, sizeof *out->slot);
    out->late = calloc(n, 1);
    out->last_read = calloc(n, sizeof *out->last_read);
    builder b = {.s = out, .c = c, .load = calloc(n, 1), .read_in = calloc(n, sizeof *b.read_in), .ok = true};
    placing steps = {.steps = calloc(3 * n, sizeof *steps.steps)};
    b.free = c->n_lists && !out->p->rows && c->needs.rows.columns && !c->needs.recurrent_in;
    const bool ok = out->memory && out->made_by && out->made_in && out->slot && out->late && out->last_read && b.load &&
                    b.read_in && steps.steps;
    const bool made = ok && make(&b, &steps);
    VPPS_FREE(b.load, b.read_in, steps.steps);
    return made ? vpps_segments_check(out) : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name);
}

void vpps_segments_free(vpps_segments *s) {
    VPPS_FREE_ARRAYS(s->list, s->steps);
    VPPS_FREE((void *)s->memory, (void *)s->made_by, s->made_in, s->slot, s->last_read, s->late);
    *s = (vpps_segments){0};
}
