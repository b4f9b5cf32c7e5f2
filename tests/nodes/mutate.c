/* mutate.c - the mutations. Each picks a place at random. */
#include "mutate.h"

static uint32_t below(editor *e, uint32_t n) { return vpps_random_below(&e->random, n); }

/* ---------------------------------------------------------------- which instructions */

static uint32_t opcode_at(const editor *e, const site *s) { return vpps_word_opcode(e->script[s->at]); }
static vpps_form form_at(const editor *e, const site *s) { return vpps_instructions[opcode_at(e, s)].form; }

/* A random instruction that `fits`; NULL: there is none. */
static const site *pick(editor *e, bool (*fits)(const editor *, const site *)) {
    uint32_t n = 0;
    const site *chosen = NULL;
    for (size_t i = 0; i < e->n_sites; i++) {
        if (fits(e, &e->sites[i]) && below(e, ++n) == 0) chosen = &e->sites[i];
    }
    return chosen;
}

static bool is_signal(const editor *e, const site *s) { return opcode_at(e, s) == VPPS_I_SIGNAL; }
static bool is_wait(const editor *e, const site *s) { return opcode_at(e, s) == VPPS_I_WAIT; }
static bool is_call(const editor *e, const site *s) { return opcode_at(e, s) == VPPS_I_CALL; }
static bool is_load(const editor *e, const site *s) { return opcode_at(e, s) == VPPS_I_LOAD; }
static bool is_plain(const editor *e, const site *s) {
    return form_at(e, s) != VPPS_FORM_SHARED && form_at(e, s) != VPPS_FORM_CONTROL;
}
static bool is_work(const editor *e, const site *s) { return form_at(e, s) != VPPS_FORM_CONTROL || is_load(e, s); }
static bool is_own_work(const editor *e, const site *s) { return is_work(e, s) && s->vp != UINT32_MAX; }
static bool is_elementwise(const editor *e, const site *s) { return form_at(e, s) == VPPS_FORM_EW; }
static bool is_split(const editor *e, const site *s) {
    return is_elementwise(e, s) && (e->script[s->at] & VPPS_WORD_SPLIT);
}
static bool is_bundle(const editor *e, const site *s) {
    uint32_t op = opcode_at(e, s);
    return op == VPPS_I_AFFINE || op == VPPS_I_AFFINE_T || op == VPPS_I_AFFINE_P || op == VPPS_I_REDUCE_P ||
           op == VPPS_I_OUTER;
}
static bool is_parameter(const editor *e, const site *s) {
    uint32_t op = opcode_at(e, s);
    return op == VPPS_I_TRANSPOSE || op == VPPS_I_NORM || op == VPPS_I_UPDATE;
}
static bool is_rows(const editor *e, const site *s) {
    return opcode_at(e, s) == VPPS_I_UPDATE_ROWS || opcode_at(e, s) == VPPS_I_NORM_ROWS;
}
static bool is_update(const editor *e, const site *s) {
    return is_rows(e, s) || opcode_at(e, s) == VPPS_I_NORM_END ||
           (is_parameter(e, s) && opcode_at(e, s) != VPPS_I_TRANSPOSE);
}
static bool has_length(const editor *e, const site *s) {
    return is_plain(e, s) || is_bundle(e, s) || is_rows(e, s) || is_load(e, s) || is_call(e, s);
}

/* ---------------------------------------------------------------- barriers */

static bool drop(editor *e, const site *s) {
    if (!s) return false;
    for (uint32_t i = 0; i < s->words; i++) e->script[s->at + i] = VPPS_I_NOP;
    return true;
}

static bool drop_signal(editor *e) { return drop(e, pick(e, is_signal)); }

static bool drop_signal_and_lower_waits(editor *e) {
    const site *s = pick(e, is_signal);
    if (!s) return false;
    uint32_t barrier = e->script[s->at + 1];
    drop(e, s);
    for (size_t i = 0; i < e->n_sites; i++) {
        uint32_t *w = e->script + e->sites[i].at;
        if (is_wait(e, &e->sites[i]) && w[1] == barrier) w[2]--;
    }
    return true;
}

static bool drop_wait(editor *e) { return drop(e, pick(e, is_wait)); }

static bool change_word(editor *e, const site *s, uint32_t word, uint32_t by) {
    if (s) e->script[s->at + word] += by;
    return s != NULL;
}
static bool lower_wait(editor *e) { return change_word(e, pick(e, is_wait), 2, UINT32_MAX); }
static bool raise_wait(editor *e) { return change_word(e, pick(e, is_wait), 2, 1); }
static bool other_wait(editor *e) { return change_word(e, pick(e, is_wait), 1, below(e, 2) ? 1 : UINT32_MAX); }
static bool other_signal(editor *e) { return change_word(e, pick(e, is_signal), 1, below(e, 2) ? 1 : UINT32_MAX); }

/* Exchanges two neighbouring instructions of a stream. */
static bool exchange(editor *e, uint32_t at, uint32_t n_first, uint32_t n_second) {
    uint32_t copy[64];
    if (n_first > VPPS_COUNT(copy)) return false;
    memcpy(copy, e->script + at, n_first * sizeof *copy);
    memmove(e->script + at, e->script + at + n_first, n_second * sizeof *copy);
    memcpy(e->script + at + n_second, copy, n_first * sizeof *copy);
    return true;
}

static bool delay_wait(editor *e) {
    const site *s = pick(e, is_wait);
    if (!s) return false;
    const uint32_t *next = e->script + s->at + s->words;
    if (vpps_word_opcode(*next) == VPPS_I_END) return false;
    return exchange(e, s->at, s->words, vpps_instruction_words(next, e->script + e->words));
}

static bool hasten_signal(editor *e) {
    const site *s = pick(e, is_signal);
    if (!s || s == e->sites) return false;
    for (const site *before = e->sites; before < s; before++) {
        if (before->vp == s->vp && before->at + before->words == s->at) {
            return exchange(e, before->at, before->words, s->words);
        }
    }
    return false;
}

/* ---------------------------------------------------------------- operands */

/* A random operand word whose letter is among `kinds` (isa.def's; d: the destination, r: a product's size, t also: a
 * list's member); 0: none. */
static uint32_t pick_operand(editor *e, const site *s, const char *kinds) {
    const char *letters = vpps_instructions[opcode_at(e, s)].operands;
    uint32_t at = s->at + 1 + is_split(e, s), members = 0, chosen = 0, n = 0;
    for (char kind = 'd'; at < s->at + s->words; at++) {
        if (strchr(kinds, kind) && below(e, ++n) == 0) chosen = at;
        if (kind == '*') members = e->script[at];
        kind = members ? 't' : *letters ? *letters++ : 'r';
        members -= members > 0;
    }
    return chosen;
}

static bool swap_offsets(editor *e) {
    const site *s = pick(e, is_plain);
    uint32_t a = s ? pick_operand(e, s, "dtsvi") : 0, b = s ? pick_operand(e, s, "dtsvi") : 0;
    if (!a || !b || e->script[a] == e->script[b]) return false;
    uint32_t word = e->script[a];
    e->script[a] = e->script[b];
    e->script[b] = word;
    return true;
}

static bool shift_offset(editor *e) {
    static const uint32_t by[] = {1, UINT32_MAX, 16, (uint32_t)-16};
    const site *s = pick(e, is_plain);
    uint32_t at = s ? pick_operand(e, s, "dtsvi") : 0;
    if (at) e->script[at] += by[below(e, VPPS_COUNT(by))];
    return at != 0;
}

/* Where some other node's value or gradient lies. */
static uint32_t other_offset(editor *e) {
    uint32_t node = below(e, e->of->g->flat.n_nodes);
    return (below(e, 2) ? e->of->values : e->of->gradients)[node];
}

static bool take_other_offset(editor *e) {
    const site *s = pick(e, is_plain);
    uint32_t at = s ? pick_operand(e, s, "dtsvi") : 0, offset = other_offset(e);
    if (!at || offset == VPPS_NO_OFFSET || offset == e->script[at]) return false;
    e->script[at] = offset;
    return true;
}

static bool change_immediate(editor *e) {
    for (uint32_t i = 0; i < 20; i++) {
        const site *s = pick(e, is_plain);
        uint32_t at = s ? pick_operand(e, s, "fuer") : 0;
        if (!at) continue;
        e->script[at] ^= 1u << (below(e, 2) ? 0 : below(e, 31));
        return true;
    }
    return false;
}

static bool change_list_count(editor *e) {
    for (uint32_t i = 0; i < 20; i++) {
        const site *s = pick(e, is_plain);
        uint32_t at = s ? pick_operand(e, s, "*") : 0;
        if (!at || !e->script[at]) continue;
        /* one member less; its word goes */
        uint32_t n = e->script[at];
        e->script[at] = n - 1;
        return editor_splice(e, s, at + n, 1, NULL, 0);
    }
    return false;
}

static bool change_length(editor *e) {
    const site *s = pick(e, has_length);
    if (!s) return false;
    uint32_t length = vpps_word_length(e->script[s->at]) + (below(e, 2) ? 1 : UINT32_MAX);
    e->script[s->at] = vpps_word(e->script[s->at] & 0x3ff, 0, length & VPPS_MAX_LENGTH);
    return true;
}

static bool change_vectors(editor *e) { return change_word(e, pick(e, is_split), 1, below(e, 2) ? 1 : UINT32_MAX); }

static bool flip_acc(editor *e) {
    const site *s = pick(e, is_plain);
    if (s) e->script[s->at] ^= VPPS_WORD_ACC;
    return s != NULL;
}

static bool flip_split(editor *e) {
    const site *s = pick(e, is_elementwise);
    const uint32_t one = 1;
    if (!s) return false;
    bool split = is_split(e, s);
    e->script[s->at] ^= VPPS_WORD_SPLIT;
    return split ? editor_splice(e, s, s->at + 1, 1, NULL, 0) : editor_splice(e, s, s->at + 1, 0, &one, 1);
}

static bool change_opcode(editor *e) {
    const site *s = pick(e, is_work);
    if (!s) return false;
    const vpps_instruction_row *row = &vpps_instructions[opcode_at(e, s)];
    uint32_t others[VPPS_I_COUNT], n = 0;
    for (uint32_t op = 0; op < VPPS_I_COUNT; op++) {
        const uint32_t word = (e->script[s->at] & ~0xffu) | op;
        uint32_t changed[4] = {word, 1, 1, 1};
        if (op == opcode_at(e, s) || vpps_instructions[op].form != row->form) continue;
        if (strcmp(vpps_instructions[op].operands, row->operands) != 0) continue;
        if (row->form == VPPS_FORM_SHARED && vpps_instruction_words(changed, changed + 4) != s->words) continue;
        if (row->form != VPPS_FORM_CONTROL) others[n++] = op;
    }
    if (!n) return false;
    e->script[s->at] = (e->script[s->at] & ~0xffu) | others[below(e, n)];
    return true;
}

/* ---------------------------------------------------------------- whole instructions */

static bool drop_work(editor *e) { return drop(e, pick(e, is_work)); }
static bool drop_update(editor *e) { return drop(e, pick(e, is_update)); }
static bool drop_call(editor *e) { return drop(e, pick(e, is_call)); }

static bool duplicate(editor *e) {
    const site *s = pick(e, is_work);
    if (!s) return false;
    uint32_t *copy = malloc(s->words * sizeof *copy);
    if (!copy) return false;
    memcpy(copy, e->script + s->at, s->words * sizeof *copy);
    bool done = editor_splice(e, s, s->at, 0, copy, s->words);
    free(copy);
    return done;
}

/* Takes an instruction from one VP and has another do it, somewhere. */
static bool move_to_other_vp(editor *e) {
    const site *s = pick(e, is_own_work), *to = pick(e, is_own_work);
    if (!s || !to || s->vp == to->vp) return false;
    uint32_t *copy = malloc(s->words * sizeof *copy);
    if (!copy) return false;
    memcpy(copy, e->script + s->at, s->words * sizeof *copy);
    bool done = drop(e, s) && editor_splice(e, to, to->at, 0, copy, s->words);
    free(copy);
    return done;
}

/* ---------------------------------------------------------------- bundles and parameters */

static bool shift_first_vector(editor *e) {
    return change_word(e, pick(e, is_bundle), 1, below(e, 2) ? 1 : UINT32_MAX);
}

static bool change_list_member(editor *e) {
    const site *s = pick(e, is_bundle);
    if (!s) return false;
    const uint32_t *bundle = e->script + e->script[s->at + 2];
    const uint32_t *list = bundle + 2 + 4 * below(e, bundle[0]);
    uint32_t *members = e->script + (list[1] && below(e, 2) ? list[1] : list[0]);
    uint32_t n = e->script[list[0] - 1], at = below(e, n);
    if (below(e, 2)) {
        members[at] += below(e, 2) ? 16 : 1;
    } else {
        uint32_t other = members[below(e, n)];
        if (other == members[at]) return false;
        members[at] = other;
    }
    return true;
}

static bool change_list_record(editor *e) {
    const site *s = pick(e, is_bundle);
    if (!s) return false;
    uint32_t *bundle = e->script + e->script[s->at + 2];
    uint32_t *list = bundle + 2 + 4 * below(e, bundle[0]), field = below(e, 4);
    if (!list[field]) return false;
    list[field] += below(e, 2) ? 1 : UINT32_MAX;
    return true;
}

static bool change_output(editor *e) {
    const site *s = pick(e, is_bundle);
    if (!s) return false;
    uint32_t *bundle = e->script + e->script[s->at + 2], *at = bundle + 2 + 4 * bundle[0];
    for (uint32_t o = below(e, bundle[1]); o > 0; o--) at += 5 + 2 * at[4];
    if (!at[4]) return false;
    uint32_t field = below(e, 6), pair = below(e, at[4]);
    if (field < 2)
        at[field] += below(e, 2) ? 16 : UINT32_MAX;
    else if (field == 2)
        at[2] = at[2] == VPPS_NO_PARAM || below(e, 2) ? below(e, e->of->plan->n_params) : VPPS_NO_PARAM;
    else if (field == 3)
        at[3] += below(e, 2) ? 1 : UINT32_MAX;
    else if (field == 4)
        at[5 + 2 * pair] = below(e, e->of->plan->n_params);
    else
        at[6 + 2 * pair] = below(e, bundle[0]);
    return true;
}

static bool change_parameter(editor *e) {
    const site *s = pick(e, is_parameter);
    if (s) e->script[s->at + 1] = below(e, e->of->plan->n_params);
    return s != NULL;
}

static bool change_row(editor *e) {
    const site *s = pick(e, is_rows);
    if (!s) return false;
    uint32_t pair = below(e, vpps_word_length(e->script[s->at]));
    e->script[e->script[s->at + 2] + 2 * pair + below(e, 2)] += below(e, 2) ? 1 : UINT32_MAX;
    return true;
}

static bool change_load(editor *e) {
    const site *s = pick(e, is_load);
    if (!s) return false;
    uint32_t *w = e->script + s->at, what = below(e, 3);
    if (what < 2)
        w[1 + what] += below(e, 2) ? 1 : UINT32_MAX;
    else
        e->script[w[2] + below(e, vpps_word_length(w[0]))] ^= 1u << 20;
    return true;
}

static bool change_call(editor *e) { return change_word(e, pick(e, is_call), 1, below(e, 2) ? 1 : UINT32_MAX); }

/* ---------------------------------------------------------------- header */

/* The highest word that an instruction is sure to touch is below the header's claim; one less than that must not do. */
static bool shrink_pool(editor *e) {
    uint32_t highest = 0;
    const vpps_flat *flat = &e->of->g->flat;
    for (uint32_t x = 0; x < flat->n_nodes; x++) {
        uint32_t words = vpps_words(&e->of->g->signatures[flat->nodes[x].signature]);
        if (e->of->values[x] != VPPS_NO_OFFSET) highest = vpps_max_u32(highest, e->of->values[x] + words);
        if (e->of->gradients[x] != VPPS_NO_OFFSET) highest = vpps_max_u32(highest, e->of->gradients[x] + words);
    }
    if (highest <= e->of->plan->batch) return false;
    editor_header(e)->pool_words = highest - 1 - below(e, highest - e->of->plan->batch);
    return true;
}

static bool change_loss(editor *e) {
    uint32_t offset = other_offset(e);
    if (e->of->request->loss == VPPS_NO_NODE || offset == editor_header(e)->loss) return false;
    editor_header(e)->loss = offset;
    return true;
}

static bool change_optimizer(editor *e) {
    vpps_script_header *h = editor_header(e);
    if (!h->update) return false;
    switch (below(e, 9)) {
    case 0: h->update = 1 + h->update % 5; break;
    case 1: h->lr *= 2; break;
    case 2: h->momentum += 1; break;
    case 3: h->beta1 += 1; break;
    case 4: h->beta2 += 1; break;
    case 5: h->epsilon += 1; break;
    case 6: h->weight_decay += 1; break;
    case 7: h->clip = h->clip > 0 ? 0 : 1; break;
    default: h->step++; break;
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
static bool change_start(editor *e) {
    editor_starts(e)[below(e, e->of->plan->n_vps + 1)] += below(e, 2) ? 1 : UINT32_MAX;
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
    {"wait's count lowered", lower_wait},
    {"wait's count raised", raise_wait},
    {"wait's barrier changed", other_wait},
    {"signal's barrier changed", other_signal},
    {"wait moved behind the next instruction", delay_wait},
    {"signal moved before the last instruction", hasten_signal},
    {"two offsets swapped", swap_offsets},
    {"offset shifted", shift_offset},
    {"offset of another tensor", take_other_offset},
    {"immediate changed", change_immediate},
    {"list shortened", change_list_count},
    {"length changed by one", change_length},
    {"number of vectors changed by one", change_vectors},
    {"ACC flipped", flip_acc},
    {"SPLIT flipped", flip_split},
    {"opcode changed", change_opcode},
    {"instruction dropped", drop_work},
    {"instruction duplicated", duplicate},
    {"instruction moved to another VP", move_to_other_vp},
    {"call dropped", drop_call},
    {"call's address changed", change_call},
    {"bundle's first vector changed", shift_first_vector},
    {"bundle's list member changed", change_list_member},
    {"bundle's list record changed", change_list_record},
    {"bundle's output changed", change_output},
    {"parameter changed", change_parameter},
    {"norm or update dropped", drop_update},
    {"table's row list changed", change_row},
    {"load changed", change_load},
    {"pool_words too small", shrink_pool},
    {"loss offset changed", change_loss},
    {"optimiser changed", change_optimizer},
    {"guard changed", change_guard},
    {"dropout key changed", change_dropout_key},
    {"start changed", change_start},
    {"any word corrupted", corrupt_word},
};
const size_t n_mutations = VPPS_COUNT(mutations);
