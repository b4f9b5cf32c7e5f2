/* mutate.c - the mutations of scripts. Each picks a place at random. */
#include "mutate.h"

static uint32_t below(editor *e, uint32_t n) { return vpps_random_below(&e->random, n); }

/* One more or one less. */
static uint32_t by_one(editor *e) { return below(e, 2) ? 1 : UINT32_MAX; }

/* ---------------------------------------------------------------- tasks */

static vpps_task *task_of(editor *e, const site *s) { return editor_task(e, s->at); }

enum {
    STAGES = 1 << VPPS_TASK_STAGE,
    CONSTANTS = 1 << VPPS_TASK_CONSTANTS,
    OUTERS = 1 << VPPS_TASK_OUTER,
    LOSSES = 1 << VPPS_TASK_LOSS,
    UPDATES = 1 << VPPS_TASK_NORM | 1 << VPPS_TASK_UPDATE | 1 << VPPS_TASK_ENTRIES | OUTERS | LOSSES,
    WORK = STAGES | CONSTANTS | UPDATES,
    ANY = (1 << VPPS_TASK_COUNT) - 1,
    WAITS = ANY + 1,    /* any that waits */
    SIGNALS = 2 * WAITS /* any that signals */
};

static bool is_any_of(const vpps_task *t, uint32_t kinds) {
    return kinds >> t->kind & 1 || (kinds & WAITS && t->wait != VPPS_NO_BARRIER) ||
           (kinds & SIGNALS && t->signal != VPPS_NO_BARRIER);
}

/* A random task of these kinds (bits); NULL: there is none. */
static const site *pick(editor *e, uint32_t kinds) {
    uint32_t n = 0;
    const site *chosen = NULL;
    for (size_t i = 0; i < e->n_sites; i++)
        if (is_any_of(task_of(e, &e->sites[i]), kinds) && below(e, ++n) == 0) chosen = &e->sites[i];
    return chosen;
}

static bool drop(editor *e, const site *s) { return s && editor_remove(e, s->at); }

static void wait_for_nothing(vpps_task *t) {
    t->wait = VPPS_NO_BARRIER;
    t->signals = 0;
}

static bool drop_signal(editor *e) {
    const site *s = pick(e, SIGNALS);
    if (s) task_of(e, s)->signal = VPPS_NO_BARRIER;
    return s != NULL;
}
static bool drop_wait(editor *e) {
    const site *s = pick(e, WAITS);
    if (s) wait_for_nothing(task_of(e, s));
    return s != NULL;
}

static bool drop_signal_and_lower_waits(editor *e) {
    const site *s = pick(e, SIGNALS);
    if (!s) return false;
    const uint32_t barrier = task_of(e, s)->signal, size = editor_header(e)->n_vps / editor_header(e)->n_groups;
    task_of(e, s)->signal = VPPS_NO_BARRIER;
    for (size_t i = 0; i < e->n_sites; i++) {
        vpps_task *t = task_of(e, &e->sites[i]);
        if (t->wait == barrier) t->signals -= size;
    }
    return true;
}

/* A barrier less: its signal and its wait in one group. */
static bool drop_barrier(editor *e) {
    const site *s = pick(e, WAITS);
    if (!s || s == e->sites || task_of(e, s - 1)->signal == VPPS_NO_BARRIER) return false;
    wait_for_nothing(task_of(e, s));
    task_of(e, s - 1)->signal = VPPS_NO_BARRIER;
    return true;
}

static bool change_wait(editor *e, uint32_t barrier, uint32_t signals) {
    const site *s = pick(e, WAITS);
    if (!s) return false;
    task_of(e, s)->wait += barrier;
    task_of(e, s)->signals += signals;
    return true;
}
static bool lower_wait(editor *e) { return change_wait(e, 0, UINT32_MAX); }
static bool raise_wait(editor *e) { return change_wait(e, 0, 1); }
static bool other_wait(editor *e) { return change_wait(e, by_one(e), 0); }
static bool other_signal(editor *e) {
    const site *s = pick(e, SIGNALS);
    if (s) task_of(e, s)->signal += by_one(e);
    return s != NULL;
}

/* The task after it in its group; NULL: there is none. */
static const site *next_of(const editor *e, const site *s) {
    return s && s + 1 < e->sites + e->n_sites && s[1].group == s->group ? s + 1 : NULL;
}

/* The next task waits instead. */
static bool delay_wait(editor *e) {
    const site *s = pick(e, WAITS), *next = next_of(e, s);
    if (!next || task_of(e, next)->wait != VPPS_NO_BARRIER) return false;
    task_of(e, next)->wait = task_of(e, s)->wait;
    task_of(e, next)->signals = task_of(e, s)->signals;
    wait_for_nothing(task_of(e, s));
    return true;
}

/* The task before signals instead. */
static bool hasten_signal(editor *e) {
    const site *s = pick(e, SIGNALS);
    if (!s || s == e->sites || s[-1].group != s->group || task_of(e, s - 1)->signal != VPPS_NO_BARRIER) return false;
    task_of(e, s - 1)->signal = task_of(e, s)->signal;
    task_of(e, s)->signal = VPPS_NO_BARRIER;
    return true;
}

/* Exchanges a task with the next one of its group, with what they wait for and signal or (`bare`) without. */
static bool exchange(editor *e, bool bare) {
    const site *s = pick(e, ANY), *next = next_of(e, s);
    if (!next) return false;
    vpps_task *a = task_of(e, s), *b = task_of(e, next);
    const vpps_task first = *a, second = *b;
    *a = second;
    *b = first;
    if (!bare) return true;
    a->wait = first.wait, a->signals = first.signals, a->signal = first.signal;
    b->wait = second.wait, b->signals = second.signals, b->signal = second.signal;
    return true;
}
static bool exchange_any(editor *e) { return exchange(e, false); }
static bool exchange_bare(editor *e) { return exchange(e, true); }

static bool drop_stage(editor *e) { return drop(e, pick(e, STAGES)); }
static bool drop_update(editor *e) { return drop(e, pick(e, UPDATES)); }
static bool drop_constants(editor *e) { return drop(e, pick(e, CONSTANTS)); }

/* Nothing is done, but waits and signals stay. */
static bool do_nothing(editor *e) {
    const site *s = pick(e, WORK);
    if (s) task_of(e, s)->kind = VPPS_TASK_NOTHING;
    return s != NULL;
}

static bool duplicate(editor *e) {
    const site *s = pick(e, WORK);
    if (!s) return false;
    vpps_task copy = *task_of(e, s);
    copy.signal = VPPS_NO_BARRIER;
    return editor_insert(e, s->at, &copy);
}

/* Takes a task from its place, and has it done in another. */
static bool move(editor *e) {
    const site *s = pick(e, WORK);
    if (!s) return false;
    const vpps_task task = *task_of(e, s);
    if (!drop(e, s)) return false;
    const site *to = pick(e, ANY);
    return to && editor_insert(e, to->at, &task);
}

static bool change_stage(editor *e) {
    const site *s = pick(e, STAGES);
    if (!s) return false;
    vpps_task *t = task_of(e, s);
    uint32_t *words[] = {&t->operands[0], &t->operands[1], &t->operands[2],
                         &t->stage,       &t->pass_record, &t->contributions};
    *words[below(e, VPPS_COUNT(words))] += by_one(e);
    return true;
}

/* Leaves a vertex out, or cuts a stage in two of which the second begins one too early or too late. */
static bool cut_stage(editor *e) {
    const site *s = pick(e, STAGES);
    if (!s || task_of(e, s)->operands[2] < 2) return false;
    const uint32_t at = s->at;
    vpps_task *first = task_of(e, s), second = *first;
    const uint32_t n = 1 + below(e, first->operands[2] - 1);
    second.operands[1] += n + by_one(e);
    second.operands[2] -= n;
    wait_for_nothing(&second);
    first->operands[2] = n;
    first->signal = VPPS_NO_BARRIER;
    return editor_insert(e, at + VPPS_TASK_WORDS, &second);
}

static bool change_operand(editor *e, uint32_t kinds, uint32_t n) {
    const site *s = pick(e, kinds);
    if (s) task_of(e, s)->operands[below(e, n)] += by_one(e);
    return s != NULL;
}
static bool change_outer(editor *e) { return change_operand(e, OUTERS, 3); }
static bool change_list_address(editor *e) { return change_operand(e, CONSTANTS | LOSSES, 2); }

static bool change_kind(editor *e) {
    const site *s = pick(e, ANY);
    const uint32_t kind = below(e, VPPS_TASK_COUNT);
    if (!s || kind == task_of(e, s)->kind) return false;
    task_of(e, s)->kind = kind;
    return true;
}

/* A pair of a list of constants, or of the loss's terms: offset or value. */
static bool change_pair(editor *e, uint32_t kinds) {
    const site *s = pick(e, kinds);
    if (!s || !task_of(e, s)->operands[1]) return false;
    const uint32_t *o = task_of(e, s)->operands;
    uint32_t *pair = e->script + o[0] + 2 * (size_t)below(e, o[1]);
    if (below(e, 2)) {
        pair[0] += by_one(e);
    } else {
        pair[1] ^= 1u << (below(e, 2) ? 31 : below(e, 31));
    }
    return true;
}
static bool change_constant(editor *e) { return change_pair(e, CONSTANTS); }
static bool change_term(editor *e) { return change_pair(e, LOSSES); }

/* ---------------------------------------------------------------- blocks */

static vpps_block *pick_block(editor *e, uint32_t *number) {
    vpps_block *blocks = (vpps_block *)(void *)(e->script + editor_header(e)->blocks), *chosen = NULL;
    for (uint32_t i = 0, n = 0; i < editor_header(e)->n_blocks; i++) {
        if (!blocks[i].n || below(e, ++n)) continue;
        chosen = &blocks[i];
        *number = i;
    }
    return chosen;
}

static bool change_block(editor *e) {
    uint32_t number;
    uint32_t *words = (uint32_t *)(void *)pick_block(e, &number);
    if (!words) return false;
    const uint32_t field = below(e, VPPS_BLOCK_WORDS);
    words[field] += (field >= 4 && below(e, 2)) ? (below(e, 2) ? 16 : (uint32_t)-16) : by_one(e);
    return true;
}

/* A block's values where another's are. */
static bool overlap_blocks(editor *e) {
    uint32_t a, b;
    vpps_block *to = pick_block(e, &a), *from = pick_block(e, &b);
    if (!to || a == b) return false;
    to->kept[below(e, 3) == 0] = from->kept[0];
    return true;
}

/* A task's pass records, or what it contributes, are where another's are, or where a block's values are. */
static bool overlap_tasks(editor *e) {
    uint32_t number;
    const site *to = pick(e, STAGES), *from = pick(e, STAGES);
    const vpps_block *b = pick_block(e, &number);
    if (!to || !b || to == from) return false;
    const bool pass_record = below(e, 2);
    const vpps_task *other = task_of(e, from);
    const uint32_t at = below(e, 2) ? (pass_record ? other->pass_record : other->contributions) : b->kept[0];
    *(pass_record ? &task_of(e, to)->pass_record : &task_of(e, to)->contributions) = at;
    return true;
}

static bool change_array(editor *e, uint32_t *words, uint32_t n) {
    if (!words || !n) return false;
    uint32_t *w = &words[below(e, n)];
    switch (below(e, 3)) {
    case 0: *w += by_one(e); break;
    case 1: *w += below(e, 2) ? 16 : (uint32_t)-16; break;
    default: *w = words[below(e, n)]; break;
    }
    return true;
}

enum { VERTICES, INPUTS, LOOKUPS, NUMBERS, DATA, LISTS, GRADIENT_STARTS, GRADIENTS, PAIR_STARTS, PAIRS };

static bool change_array_of(editor *e, uint32_t what) {
    uint32_t number;
    const vpps_block *b = pick_block(e, &number);
    if (!b) return false;
    vpps_block_view view;
    const vpps_compiled_cell *c = e->of->cells[b->cell];
    vpps_view_block(e->script, b, c, &view);
    uint32_t *words = e->script + b->arrays, n = b->n;
    const uint32_t *at = NULL;
    const uint32_t input = c->n_inputs ? below(e, c->n_inputs) : 0, output = c->n_outputs ? below(e, c->n_outputs) : 0;
    switch (what) {
    case VERTICES: at = view.vertices; break;
    case INPUTS:
        at = c->n_inputs ? view.inputs[input] : NULL;
        if (at) n = vpps_items(b, c->input_axis[input]);
        break;
    case LOOKUPS: at = c->n_lookups ? view.lookups[below(e, c->n_lookups)] : NULL; break;
    case NUMBERS: at = c->n_words ? view.words[below(e, c->n_words)] : NULL; break;
    case DATA: at = view.data; break;
    case LISTS:
        at = c->n_lists ? view.lists[1 + below(e, c->n_lists)] : NULL;
        n++;
        break;
    case GRADIENT_STARTS:
        at = view.gradient_starts[output];
        n++;
        break;
    case GRADIENTS:
        at = view.gradients[output];
        if (at) n = view.gradient_starts[output][b->n];
        break;
    case PAIR_STARTS:
        at = view.pair_starts[output];
        n++;
        break;
    default:
        at = view.pairs[output];
        if (at) n = 2 * view.pair_starts[output][b->n];
    }
    return at && change_array(e, words + (at - (e->script + b->arrays)), n);
}
/* Of some block that has such an array. */
static bool change_arrays(editor *e, uint32_t what) {
    enum { TRIES = 16 };
    for (uint32_t i = 0; i < TRIES; i++)
        if (change_array_of(e, what)) return true;
    return false;
}

static bool change_vertex(editor *e) { return change_arrays(e, VERTICES); }
static bool change_input(editor *e) { return change_arrays(e, INPUTS); }
static bool change_lookup(editor *e) { return change_arrays(e, LOOKUPS); }
static bool change_number(editor *e) { return change_arrays(e, NUMBERS); }
static bool change_data(editor *e) { return change_arrays(e, DATA); }
static bool change_list(editor *e) { return change_arrays(e, LISTS); }
static bool change_gradient_start(editor *e) { return change_arrays(e, GRADIENT_STARTS); }
static bool change_gradient(editor *e) { return change_arrays(e, GRADIENTS); }
static bool change_pair_start(editor *e) { return change_arrays(e, PAIR_STARTS); }
static bool change_factors(editor *e) { return change_arrays(e, PAIRS); }

static bool change_content(editor *e) {
    uint32_t number;
    const vpps_block *b = pick_block(e, &number);
    if (!b) return false;
    vpps_block_view view;
    vpps_view_block(e->script, b, e->of->cells[b->cell], &view);
    if (!view.data) return false;
    e->script[view.data[below(e, b->n)]] ^= 1u << 20;
    return true;
}

/* ---------------------------------------------------------------- tables */

static vpps_table *pick_table(editor *e) {
    vpps_table *tables = (vpps_table *)(void *)(e->script + editor_header(e)->tables);
    return editor_header(e)->n_tables ? &tables[below(e, editor_header(e)->n_tables)] : NULL;
}

static bool change_table(editor *e) {
    uint32_t *words = (uint32_t *)(void *)pick_table(e);
    if (!words) return false;
    words[below(e, VPPS_TABLE_WORDS)] += below(e, 4) ? by_one(e) : 16;
    return true;
}

static bool change_entries(editor *e) {
    const vpps_table *t = pick_table(e);
    const site *s = pick(e, 1 << VPPS_TASK_ENTRIES);
    if (!t || !s) return false;
    uint32_t *sums = e->script + task_of(e, s)->operands[1];
    const uint32_t n = sums[0];
    switch (below(e, 5)) {
    case 0: return change_array(e, e->script + t->rows, t->n);
    case 1: return change_array(e, sums, 1);
    case 2: return change_array(e, sums + 1, n);
    case 3: return change_array(e, sums + 1 + n, n + 1);
    default: return change_array(e, sums + 2 + 2 * n, sums[1 + 2 * n]);
    }
}

/* ---------------------------------------------------------------- header */

static bool shrink_pool(editor *e) {
    vpps_task_header *h = editor_header(e);
    if (h->pool_words <= e->of->machine->batch) return false;
    h->pool_words -= 1 + below(e, h->pool_words - e->of->machine->batch);
    return true;
}

static bool change_optimizer(editor *e) {
    vpps_task_header *h = editor_header(e);
    if (!h->update) return false;
    float *numbers[] = {&h->corrections[0], &h->corrections[1], &h->lr,      &h->momentum,
                        &h->beta1,          &h->beta2,          &h->epsilon, &h->weight_decay};
    const uint32_t which = below(e, VPPS_COUNT(numbers) + 2);
    if (which < VPPS_COUNT(numbers)) {
        *numbers[which] += 1;
    } else if (which == VPPS_COUNT(numbers)) {
        h->update = 1 + h->update % 5;
    } else {
        h->clip = h->clip > 0 ? 0 : 1;
    }
    return true;
}

static bool change_guard(editor *e) {
    editor_header(e)->guard = !editor_header(e)->guard;
    return true;
}
static bool change_dropout_key(editor *e) {
    editor_header(e)->dropout_key[below(e, 2)] ^= 1u << below(e, 32);
    return true;
}

static bool change_count(editor *e) {
    vpps_task_header *h = editor_header(e);
    uint32_t *counts[] = {&h->words,  &h->n_vps,    &h->n_groups, &h->n_barriers,
                          &h->blocks, &h->n_blocks, &h->tables,   &h->n_tables};
    *counts[below(e, VPPS_COUNT(counts))] += by_one(e);
    return true;
}

static bool change_start(editor *e) {
    e->script[VPPS_TASK_HEADER_WORDS + below(e, editor_header(e)->n_groups + 1)] += by_one(e);
    return true;
}

/* Any word may become anything. */
static bool corrupt_word(editor *e) {
    uint32_t *w = &e->script[below(e, (uint32_t)e->words)];
    switch (below(e, 4)) {
    case 0: *w = (uint32_t)vpps_random(&e->random); break;
    case 1: *w ^= 1u << below(e, 32); break;
    case 2: *w = e->script[below(e, (uint32_t)e->words)]; break;
    default: *w += below(e, 64) - 32; break;
    }
    return true;
}

const mutation mutations[] = {
    {"signal dropped", drop_signal},
    {"signal dropped, waits lowered", drop_signal_and_lower_waits},
    {"wait dropped", drop_wait},
    {"signal and wait dropped", drop_barrier},
    {"wait's count lowered", lower_wait},
    {"wait's count raised", raise_wait},
    {"wait's barrier changed", other_wait},
    {"signal's barrier changed", other_signal},
    {"wait moved to the next task", delay_wait},
    {"signal moved to the task before", hasten_signal},
    {"neighbours exchanged", exchange_any},
    {"neighbours exchanged between their barriers", exchange_bare},
    {"stage dropped", drop_stage},
    {"gradient, norm, loss or update dropped", drop_update},
    {"constants dropped", drop_constants},
    {"task done twice", duplicate},
    {"task moved", move},
    {"task not done", do_nothing},
    {"task's kind changed", change_kind},
    {"stage's operand changed", change_stage},
    {"stage cut in two wrongly", cut_stage},
    {"outer's operand changed", change_outer},
    {"list's address or length changed", change_list_address},
    {"constant changed", change_constant},
    {"loss's term changed", change_term},
    {"block's description changed", change_block},
    {"blocks overlap", overlap_blocks},
    {"pass records or contributions overlap", overlap_tasks},
    {"vertex changed", change_vertex},
    {"input's offset changed", change_input},
    {"lookup's offset changed", change_lookup},
    {"record's number changed", change_number},
    {"data's address changed", change_data},
    {"data changed", change_content},
    {"list's start changed", change_list},
    {"contributions' start changed", change_gradient_start},
    {"contribution's offset changed", change_gradient},
    {"pairs' start changed", change_pair_start},
    {"pair's offset changed", change_factors},
    {"table's description changed", change_table},
    {"table's entries changed", change_entries},
    {"pool_words too small", shrink_pool},
    {"optimiser changed", change_optimizer},
    {"guard changed", change_guard},
    {"dropout key changed", change_dropout_key},
    {"header's count or address changed", change_count},
    {"start changed", change_start},
    {"any word corrupted", corrupt_word},
};
const size_t n_mutations = VPPS_COUNT(mutations);
