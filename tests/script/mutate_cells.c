/* mutate_cells.c - see mutate.h. Makes cells like those of a faulty compiler: a field, or an item of a list, differs. */
#include "common/testing.h"
#include "mutate.h"

/* Copies an array to a growable array. */
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

/* ---------------------------------------------------------------- fields */

typedef struct number {
    uint32_t value;
} number;

enum {
    OF_INPUT = 1 << VPPS_VALUE_INPUT,
    OF_LOOKUP = 1 << VPPS_VALUE_LOOKUP,
    OF_PARAMETER = 1 << VPPS_VALUE_PARAMETER,
    OF_GRADIENT = 1 << VPPS_VALUE_GRADIENT,
    OF_RUN = 1 << VPPS_VALUE_RUN,
    OF_PRODUCT = 1 << VPPS_VALUE_PRODUCT,
    OF_TRANSPOSED = 1 << VPPS_VALUE_PRODUCT_T,
    RUNS = 1 << VPPS_STEP_RUN,
    PRODUCTS = 1 << VPPS_STEP_PRODUCT,
    GRADIENTS = 1 << VPPS_STEP_GRADIENT
};

#define FIELD(list, type, member, domain, kinds)                                                                       \
    {#list ": " #member, LIST_##list, DOMAIN_##domain, sizeof(((type *)0)->member), kinds, offsetof(type, member)},
#define CELL(member, domain) FIELD(CELL, vpps_compiled_cell, member, domain, 0)
#define VALUE(member, domain, kinds) FIELD(VALUES, vpps_cell_value, member, domain, kinds)
#define STEP(member, domain, kinds) FIELD(STEPS, vpps_program_step, member, domain, kinds)
/* clang-format off */
#define OPERAND(list, type, o, kinds)                                                                                  \
    FIELD(list, type, o place, NUMBER, kinds) FIELD(list, type, o access, NUMBER, kinds)                               \
    FIELD(list, type, o axis, NUMBER, kinds) FIELD(list, type, o record, NUMBER, kinds)                                \
    FIELD(list, type, o shares, BOOL, kinds) FIELD(list, type, o dealt, NUMBER, kinds)                                 \
    FIELD(list, type, o at, NUMBER, kinds) FIELD(list, type, o element, NUMBER, kinds)                                 \
    FIELD(list, type, o rows, NUMBER, kinds) FIELD(list, type, o cols, NUMBER, kinds)                                  \
    FIELD(list, type, o value, NUMBER, kinds) FIELD(list, type, o matrix, NUMBER, kinds)

const cell_field cell_fields[] = {
    CELL(is_data, BOOL)
    CELL(needs.training, BOOL)
    CELL(needs.gradient_in, NUMBER)
    CELL(needs.gradient_out, NUMBER)
    CELL(needs.read_out, NUMBER)
    CELL(needs.asked_gradients, NUMBER)
    CELL(needs.group, NUMBER)
    CELL(gradient_of[0], NUMBER)
    CELL(n_lists, NUMBER)
    CELL(input_axis[0], NUMBER)
    CELL(kept_words[0], SIZE)
    CELL(kept_words[1], SIZE)
    CELL(n_inputs, NUMBER)
    CELL(condition.input, NUMBER)
    CELL(condition.is, BOOL)
    VALUE(kind, KIND, 0)
    VALUE(axis, INDEX, 0)
    VALUE(split, NUMBER, 0)
    VALUE(kept, BOOL, 0)
    VALUE(record, NUMBER, 0)
    VALUE(rows, SIZE, 0)
    VALUE(cols, SIZE, 0)
    VALUE(stage, NUMBER, 0)
    VALUE(offset, SIZE, 0)
    VALUE(n_args, COUNT, OF_RUN | OF_PRODUCT | OF_TRANSPOSED)
    VALUE(input, INDEX, OF_INPUT)
    VALUE(lookup, INDEX, OF_LOOKUP)
    VALUE(output, INDEX, OF_GRADIENT)
    VALUE(vector, INDEX, OF_PARAMETER)
    VALUE(bias, INDEX, OF_PRODUCT)
    VALUE(shares, NUMBER, OF_TRANSPOSED)
    VALUE(run.opcode, INDEX, OF_RUN)
    VALUE(run.over_list, BOOL, OF_RUN)
    VALUE(run.f.kind, INDEX, OF_RUN)
    VALUE(run.f.real, SIZE, OF_RUN)
    VALUE(run.f.word, INDEX, OF_RUN)
    VALUE(run.f.count.base, SIZE, OF_RUN)
    VALUE(run.f.count.list[1], SIZE, OF_RUN)
    VALUE(run.u.kind, INDEX, OF_RUN)
    VALUE(run.u.whole, SIZE, OF_RUN)
    VALUE(run.u.word, INDEX, OF_RUN)
    VALUE(run.u.count.base, SIZE, OF_RUN)
    VALUE(run.u.count.list[1], SIZE, OF_RUN)
    FIELD(ARGS, vpps_cell_arg, value, VALUE, 0)
    FIELD(ARGS, vpps_cell_arg, element, SIZE, 0)
    FIELD(ARGS, vpps_cell_arg, matrix, INDEX, 0)
    FIELD(CONTRIBUTIONS, vpps_cell_contribution, lookup, BOOL, 0)
    FIELD(CONTRIBUTIONS, vpps_cell_contribution, index, INDEX, 0)
    FIELD(CONTRIBUTIONS, vpps_cell_contribution, value, VALUE, 0)
    FIELD(CONTRIBUTIONS, vpps_cell_contribution, scaled, BOOL, 0)
    FIELD(CONTRIBUTIONS, vpps_cell_contribution, vector, VALUE, 0)
    FIELD(CONTRIBUTIONS, vpps_cell_contribution, scalar, VALUE, 0)
    FIELD(OUTERS, vpps_cell_outer, param, INDEX, 0)
    FIELD(OUTERS, vpps_cell_outer, dy, VALUE, 0)
    FIELD(OUTERS, vpps_cell_outer, x, VALUE, 0)
    FIELD(STAGES, vpps_cell_stage, split, NUMBER, 0)
    FIELD(STAGES, vpps_cell_stage, first, NUMBER, 0)
    FIELD(STAGES, vpps_cell_stage, n, NUMBER, 0)
    FIELD(ORDER, number, value, NUMBER, 0)
    FIELD(OUTPUTS, vpps_cell_output, value, VALUE, 0)
    FIELD(OUTPUTS, vpps_cell_output, node, NUMBER, 0)
    FIELD(OUTPUTS, vpps_cell_output, otherwise, NUMBER, 0)
    FIELD(LOOKUPS, vpps_cell_lookup, table, INDEX, 0)
    FIELD(LOOKUPS, vpps_cell_lookup, kind, NUMBER, 0)
    FIELD(LOOKUPS, vpps_cell_lookup, value, SIZE, 0)
    FIELD(WORDS, vpps_cell_word, kind, NUMBER, 0)
    FIELD(WORDS, vpps_cell_word, value, SIZE, 0)
    FIELD(PROGRAM, vpps_program, rows, BOOL, 0)
    STEP(kind, KIND, 0)
    STEP(axis, NUMBER, 0)
    STEP(first, NUMBER, 0)
    STEP(n, COUNT, 0)
    STEP(run.of.opcode, NUMBER, RUNS)
    STEP(run.of.over_list, BOOL, RUNS)
    STEP(run.of.table, NUMBER, RUNS)
    STEP(run.of.f.word, NUMBER, RUNS)
    STEP(run.of.u.whole, NUMBER, RUNS)
    STEP(run.of.u.word, NUMBER, RUNS)
    STEP(run.tensors, NUMBER, RUNS)
    STEP(run.scalars, NUMBER, RUNS)
    STEP(run.weights, NUMBER, RUNS)
    STEP(run.uniform, BOOL, RUNS)
    STEP(output, NUMBER, GRADIENTS)
    STEP(product.transposed, BOOL, PRODUCTS)
    OPERAND(STEPS, vpps_program_step, to., 0)
    OPERAND(STEPS, vpps_program_step, run.positions., RUNS)
    OPERAND(STEPS, vpps_program_step, product.start., PRODUCTS)
    OPERAND(OPERANDS, vpps_operand, , 0)
    FIELD(SLOTS, vpps_slot, axis, NUMBER, 0)
    FIELD(SLOTS, vpps_slot, dealt, NUMBER, 0)
    FIELD(SLOTS, vpps_slot, words, NUMBER, 0)
    FIELD(DEALT, number, value, NUMBER, 0)
};
/* clang-format on */
const size_t n_cell_fields = VPPS_COUNT(cell_fields);

void *cell_items(vpps_compiled_cell *c, uint32_t list, uint32_t stage, uint32_t *n, size_t *bytes) {
    vpps_program none = {.n = 0}, *p = stage <= c->n_stages ? &c->programs[stage] : &none;
    const vpps_cell_stage *last = c->n_stages ? &c->stages[c->n_stages - 1] : NULL;
    const struct {
        void *at;
        uint32_t n;
        size_t bytes;
    } lists[CELL_LISTS] = {[LIST_CELL] = {c, 1, sizeof *c},
                           [LIST_VALUES] = {c->values, c->n_values, sizeof *c->values},
                           [LIST_ARGS] = {c->args, c->n_args, sizeof *c->args},
                           [LIST_CONTRIBUTIONS] = {c->contributions, c->n_contributions, sizeof *c->contributions},
                           [LIST_OUTERS] = {c->outers, c->n_outers, sizeof *c->outers},
                           [LIST_STAGES] = {c->stages, c->n_stages, sizeof *c->stages},
                           [LIST_ORDER] = {c->order, last ? last->first + last->n : 0, sizeof *c->order},
                           [LIST_OUTPUTS] = {c->outputs, c->n_outputs, sizeof *c->outputs},
                           [LIST_LOOKUPS] = {c->lookups, c->n_lookups, sizeof *c->lookups},
                           [LIST_WORDS] = {c->words, c->n_words, sizeof *c->words},
                           [LIST_PROGRAM] = {p, p != &none, sizeof *p},
                           [LIST_STEPS] = {p->steps, p->n, sizeof *p->steps},
                           [LIST_OPERANDS] = {p->operands, p->n_operands, sizeof *p->operands},
                           [LIST_SLOTS] = {p->slots.at, p->slots.n, sizeof *p->slots.at},
                           [LIST_DEALT] = {p->dealt, p->n_dealt, sizeof *p->dealt}};
    *n = lists[list].n;
    *bytes = lists[list].bytes;
    return lists[list].at;
}

bool has_field(const void *item, const cell_field *f) { return !f->kinds || f->kinds >> *(const uint8_t *)item & 1; }

uint64_t get_field(const void *item, const cell_field *f) {
    uint64_t value = 0;
    memcpy(&value, (const uint8_t *)item + f->at, f->bytes);
    return value;
}

void set_field(void *item, const cell_field *f, uint64_t value) {
    if (f->domain == DOMAIN_BOOL) value &= 1;
    if (f->domain == DOMAIN_KIND) { /* the union has another meaning, and a bool must be 0 or 1 */
        const size_t at = f->list == LIST_VALUES ? offsetof(vpps_cell_value, input) : offsetof(vpps_program_step, run);
        memset((uint8_t *)item + at, 0,
               (f->list == LIST_VALUES ? sizeof(vpps_cell_value) : sizeof(vpps_program_step)) - at);
    }
    memcpy((uint8_t *)item + f->at, &value, f->bytes);
}

/* ---------------------------------------------------------------- what a wrong pass could make of a field */

static uint32_t below(uint64_t *random, uint32_t n) { return vpps_random_below(random, n); }

/* Returns another value of the same shape; the same value: there is none. */
static uint32_t like(const vpps_compiled_cell *c, uint32_t value, uint64_t *random) {
    uint32_t chosen = value;
    for (uint32_t v = 0, n = 0; value < c->n_values && v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[value], *y = &c->values[v];
        if (v != value && y->rows == x->rows && y->cols == x->cols && y->axis == x->axis && below(random, ++n) == 0)
            chosen = v;
    }
    return chosen;
}

/* Returns whether two items of a list have the same form: values, if they have one shape and are made alike; others, always. */
static bool alike(uint32_t list, const void *a, const void *b) {
    const vpps_cell_value *x = a, *y = b;
    if (list != LIST_VALUES) return true;
    if (x->kind != y->kind || x->rows != y->rows || x->cols != y->cols || x->axis != y->axis) return false;
    return x->kind != VPPS_VALUE_RUN ||
           (vpps_instructions[x->run.opcode].form == vpps_instructions[y->run.opcode].form &&
            !strcmp(vpps_instructions[x->run.opcode].operands, vpps_instructions[y->run.opcode].operands));
}

/* Sorts the stages' orders by the values' numbers. */
static void order_again(vpps_compiled_cell *c) {
    uint32_t at = 0;
    for (uint32_t s = 0; s < c->n_stages; s++) {
        c->stages[s].first = at;
        for (uint32_t v = 0; v < c->n_values; v++) {
            if (c->values[v].stage != s) continue;
            c->values[v].split = c->stages[s].split;
            c->values[v].pass = c->stages[s].pass;
            c->order[at++] = v;
        }
        c->stages[s].n = at - c->stages[s].first;
    }
}

/* Returns a number in range that a faulty pass could leave in a field; the same number: there is none. theirs: of another item of the same form. */
static uint64_t plausible(const vpps_compiled_cell *c, const cell_field *f, uint64_t now, uint64_t theirs,
                          uint64_t *random) {
    const uint64_t by = now < 16 || below(random, 2) ? 1 : 16;
    switch (f->domain) {
    case DOMAIN_BOOL: return !now;
    case DOMAIN_VALUE:
        return f->list == LIST_OUTPUTS && below(random, 4) == 0 ? VPPS_NONE : like(c, (uint32_t)now, random);
    case DOMAIN_INDEX: return theirs;
    case DOMAIN_COUNT: return now > 1 ? now - 1 : now;
    case DOMAIN_SIZE: return below(random, 3) == 0 ? theirs : now < 2 || below(random, 2) ? now + by : now - by;
    default: return below(random, 3) == 0 ? theirs : now + (below(random, 2) ? 1 : UINT64_MAX);
    }
}

/* Returns any number. */
static uint64_t any(uint64_t now, uint32_t bytes, uint64_t *random) {
    switch (below(random, 4)) {
    case 0: return vpps_random(random);
    case 1: return now ^ (uint64_t)1 << below(random, 8 * bytes);
    case 2: return below(random, 10);
    default: return now + (below(random, 2) ? 1 : UINT64_MAX);
    }
}

/* Returns whether the cell's compiler makes programs from the list's items. */
static bool makes_programs(uint32_t list) { return list < LIST_PROGRAM; }

static bool change_field(vpps_compiled_cell *c, const cell_field *f, bool wild, uint64_t *random) {
    uint32_t n, m = 0;
    size_t bytes;
    uint8_t *items = cell_items(c, f->list, below(random, c->n_stages + 1), &n, &bytes), *item = NULL, *other = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (has_field(items + i * bytes, f) && below(random, ++m) == 0) item = items + i * bytes;
    if (!item) return false;
    for (uint32_t i = m = 0; i < n; i++)
        if (has_field(items + i * bytes, f) && alike(f->list, item, items + i * bytes) && below(random, ++m) == 0)
            other = items + i * bytes;
    const uint64_t now = get_field(item, f);
    set_field(item, f, wild ? any(now, f->bytes, random) : plausible(c, f, now, get_field(other, f), random));
    const bool changed = get_field(item, f) != now;
    if (changed && !wild && makes_programs(f->list) && f->domain != DOMAIN_KIND && f->domain != DOMAIN_NUMBER)
        TEST_OK(vpps_make_programs(c));
    return changed;
}

/* ---------------------------------------------------------------- items of lists */

/* Returns the member with the number of a list's items; NULL: other things depend on it. */
static uint32_t *count_of(vpps_compiled_cell *c, uint32_t list, uint32_t stage) {
    return list == LIST_CONTRIBUTIONS ? &c->n_contributions
           : list == LIST_OUTERS      ? &c->n_outers
           : list == LIST_STEPS       ? &c->programs[stage].n
                                      : NULL;
}

typedef enum item_change { DROPPED, COPIED, EXCHANGED } item_change;

static bool change_items(vpps_compiled_cell *c, uint32_t list, item_change change, uint64_t *random) {
    const uint32_t stage = below(random, c->n_stages + 1);
    uint32_t n;
    size_t bytes;
    uint8_t *items = cell_items(c, list, stage, &n, &bytes), *first = items, before[sizeof(vpps_program_step)];
    if (n < (change == DROPPED ? 1 : 2)) return false;
    if (change == DROPPED) {
        first += below(random, n) * bytes;
        memmove(first, first + bytes, (size_t)(items + n * bytes - first) - bytes);
        --*count_of(c, list, stage);
    } else if (change == COPIED) {
        first += below(random, n) * bytes;
        memmove(first, items + below(random, n) * bytes, bytes);
    } else {
        first += below(random, n - 1) * bytes;
        memcpy(before, first, bytes);
        memmove(first, first + bytes, bytes);
        memcpy(first + bytes, before, bytes);
    }
    if (makes_programs(list)) TEST_OK(vpps_make_programs(c));
    return true;
}

/* Merges two stages of a pass: the second one alone, or the first, which does not wait for its results, makes what both made. */
static bool merge_stages(vpps_compiled_cell *c, uint64_t *random) {
    if (c->n_stages < 2) return false;
    const uint32_t from = below(random, c->n_stages - 1) + below(random, 2), to = from ? from - 1 : 1;
    if (c->stages[from].split != c->stages[to].split) return false;
    for (uint32_t v = 0; v < c->n_values; v++)
        if (c->values[v].stage == from) c->values[v].stage = to;
    order_again(c);
    TEST_OK(vpps_make_programs(c));
    return true;
}

/* Gives one slot (buffer) to two values that are in use at the same time. */
static bool share_slot(vpps_compiled_cell *c, uint64_t *random) {
    vpps_program *p = c->n_stages ? &c->programs[below(random, c->n_stages)] : NULL;
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

static const struct {
    const char *what;
    uint32_t list;
    item_change change;
} item_changes[] = {
    {"contribution dropped", LIST_CONTRIBUTIONS, DROPPED},
    {"contribution copied", LIST_CONTRIBUTIONS, COPIED},
    {"outer product dropped", LIST_OUTERS, DROPPED},
    {"outer product copied", LIST_OUTERS, COPIED},
    {"step dropped", LIST_STEPS, DROPPED},
    {"step copied", LIST_STEPS, COPIED},
    {"steps exchanged", LIST_STEPS, EXCHANGED},
    {"arguments exchanged", LIST_ARGS, EXCHANGED},
    {"values exchanged", LIST_ORDER, EXCHANGED},
};

/* Every field is changed in two ways; then come changes of items, and two special ones. */
uint32_t n_cell_mutations(void) { return (uint32_t)(2 * n_cell_fields + VPPS_COUNT(item_changes) + 2); }

const char *cell_mutation(uint32_t kind) {
    const uint32_t item = kind - 2 * (uint32_t)n_cell_fields;
    if (kind < 2 * n_cell_fields) return cell_fields[kind / 2].what;
    return item < VPPS_COUNT(item_changes)    ? item_changes[item].what
           : item == VPPS_COUNT(item_changes) ? "stages made one"
                                              : "two slots made one";
}

bool mutate_cell(uint32_t kind, vpps_compiled_cell *c, uint64_t *random) {
    const uint32_t item = kind - 2 * (uint32_t)n_cell_fields;
    if (!c->n_values) return false;
    if (kind < 2 * n_cell_fields) return change_field(c, &cell_fields[kind / 2], kind % 2, random);
    if (item < VPPS_COUNT(item_changes))
        return change_items(c, item_changes[item].list, item_changes[item].change, random);
    return item == VPPS_COUNT(item_changes) ? merge_stages(c, random) : share_slot(c, random);
}
