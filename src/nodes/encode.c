/* encode.c - items to words: shared work once into segments of the common part, the rest to the least loaded VP. */
#include "nodes/operands.h"

#include <inttypes.h>

/* Word 0 of an instruction; every one is made here. A length that its field cannot hold ends the schedule. */
static uint32_t word_of(vpps_schedule_work *w, uint32_t opcode, uint32_t flags, uint64_t length) {
    if (length > VPPS_MAX_LENGTH && w->status == VPPS_OK) {
        w->status = vpps_fail(VPPS_POOL, "schedule: an instruction %s of %" PRIu64 "; expected at most %d",
                              vpps_instructions[opcode].name, length, VPPS_MAX_LENGTH);
    }
    return vpps_word(opcode, flags, (uint32_t)length);
}

/* ---------------------------------------------------------------- streams */

static uint32_t *stream_append(vpps_schedule_work *w, uint32_t vp, size_t n) {
    struct vpps_stream *stream = &w->streams[vp];
    if (!VPPS_RESERVE(stream->words, stream->capacity, stream->n + n)) {
        w->status = vpps_fail(VPPS_MEMORY, "schedule: out of memory");
        return NULL;
    }
    uint32_t *at = stream->words + stream->n;
    stream->n += n;
    return at;
}

/* The previous phase's barrier, and how many VPs signal it: whoever works in this phase waits for all of them. */
typedef struct boundary {
    uint32_t barrier, signals;
} boundary;

typedef struct encoder {
    vpps_scheduler *s;
    vpps_schedule_work *w;
    boundary before;
    uint32_t item; /* number of the current one, from 1 */
} encoder;

static void activate(encoder *e, uint32_t vp) {
    if (e->w->streams[vp].active) return;
    e->w->streams[vp].active = true;
    if (!e->before.signals) return;
    uint32_t *at = stream_append(e->w, vp, 3);
    if (!at) return;
    at[0] = VPPS_I_WAIT;
    at[1] = e->before.barrier;
    at[2] = e->before.signals;
}

/* Room for an instruction of n words that VP vp runs and that takes about `cost` ns. */
static uint32_t *deal(encoder *e, uint32_t vp, size_t n, uint64_t cost) {
    activate(e, vp);
    e->w->streams[vp].load += cost;
    e->s->n_instructions++;
    return stream_append(e->w, vp, n);
}

static uint32_t least_loaded(const vpps_schedule_work *w) {
    uint32_t best = 0;
    for (uint32_t vp = 1; vp < w->n_streams; vp++) {
        if (w->streams[vp].load < w->streams[best].load) best = vp;
    }
    return best;
}

enum { DISPATCH_NS = 8 }; /* of an instruction, beside its elements */

static uint64_t cost_of(uint32_t opcode, uint64_t elems) {
    return DISPATCH_NS + elems * vpps_instructions[opcode].cost / 64;
}

/* ---------------------------------------------------------------- elementwise runs */

/* Writes the run to all VPs, or in pieces to the least loaded. */
static void flush_run(encoder *e, bool shared) {
    vpps_schedule_work *w = e->w;
    struct vpps_run *run = &w->run;
    uint32_t n_nodes = run->n_nodes, rows = run->rows;
    run->n_nodes = 0;
    if (!n_nodes || w->status != VPPS_OK) return;
    if (shared) {
        uint32_t *at = vpps_append(e->s, 2 + run->n_words);
        if (!at) return;
        at[0] = word_of(w, run->opcode & 0xff, VPPS_WORD_SPLIT | (run->opcode & VPPS_WORD_ACC), rows);
        at[1] = n_nodes * (run->length / rows);
        memcpy(at + 2, run->words, run->n_words * sizeof *at);
        e->s->n_instructions++;
        return;
    }
    uint32_t opcode = run->opcode & 0xff, total = n_nodes * run->length;
    bool whole = (run->opcode & VPPS_WORD_ACC) || vpps_instructions[opcode].form != VPPS_FORM_EW;
    uint32_t pieces = whole ? 1 : vpps_max_u32(1, vpps_min_u32(w->n_streams, total / w->plan->ew_grain));
    uint32_t length = pieces == 1 ? total : (total / pieces + 15) / 16 * 16;
    for (uint32_t first = 0; first < total; first += length) {
        uint32_t n = vpps_min_u32(length, total - first);
        uint32_t *at = deal(e, least_loaded(w), 1 + run->n_words, cost_of(opcode, n));
        if (!at) return;
        at[0] = word_of(w, opcode, run->opcode & VPPS_WORD_ACC, n);
        memcpy(at + 1, run->words, run->n_words * sizeof *at);
        for (uint32_t i = 0; first && i < run->n_words; i++) {
            if (run->next[i] != run->words[i]) at[1 + i] += first; /* an operand that advances */
        }
    }
}

/* An instruction for n neighbouring nodes: continues the run when every operand lies right behind its predecessor's.
 * words[0] is the destination; next[] is what the second node's words must be. */
static void run_nodes(encoder *e, bool shared, uint32_t rows, uint32_t opcode, uint32_t length, const uint32_t *words,
                      const uint32_t *next, uint32_t n_words, uint32_t n) {
    struct vpps_run *run = &e->w->run;
    bool fits = run->n_nodes && run->opcode == opcode && run->length == length && run->rows == rows &&
                run->n_words == n_words && (shared || (uint64_t)(run->n_nodes + n) * length <= VPPS_MAX_LENGTH);
    for (uint32_t i = 0; fits && i < n_words; i++) {
        fits = words[i] == run->words[i] + run->n_nodes * (run->next[i] - run->words[i]);
    }
    if (fits) {
        run->n_nodes += n;
        return;
    }
    flush_run(e, shared);
    if (!VPPS_RESERVE(run->words, run->words_capacity, n_words) ||
        !VPPS_RESERVE(run->next, run->next_capacity, n_words)) {
        e->w->status = vpps_fail(VPPS_MEMORY, "schedule: out of memory");
        return;
    }
    memcpy(run->words, words, n_words * sizeof *words);
    memcpy(run->next, next, n_words * sizeof *next);
    run->opcode = opcode;
    run->length = length;
    run->rows = rows;
    run->n_words = n_words;
    run->n_nodes = n;
}

/* Which VP adds to the gradient at `offset` in this item: the same one for all additions, so that they need no
 * barrier. */
static uint32_t owner_of(encoder *e, uint32_t offset) {
    vpps_schedule_work *w = e->w;
    if (w->n_owners * 2 >= w->owners_size) {
        uint32_t size = w->owners_size ? w->owners_size * 2 : 256;
        struct vpps_owner *owners = calloc(size, sizeof *owners);
        if (!owners) {
            w->status = vpps_fail(VPPS_MEMORY, "schedule: out of memory");
            return 0;
        }
        for (uint32_t i = 0; i < w->owners_size; i++) {
            if (w->owners[i].item != e->item) continue; /* of an earlier item: no longer of interest */
            uint32_t at = (w->owners[i].offset * 0x9e3779b9u >> 8) & (size - 1);
            while (owners[at].item) at = (at + 1) & (size - 1);
            owners[at] = w->owners[i];
        }
        free(w->owners);
        w->owners = owners;
        w->owners_size = size;
    }
    uint32_t at = (offset * 0x9e3779b9u >> 8) & (w->owners_size - 1);
    for (; w->owners[at].item == e->item; at = (at + 1) & (w->owners_size - 1)) { /* older items' entries are free */
        if (w->owners[at].offset == offset) return w->owners[at].vp;
    }
    w->owners[at] = (struct vpps_owner){offset, e->item, least_loaded(w)};
    w->n_owners++;
    return w->owners[at].vp;
}

/* An instruction as one piece. `tensor`: what it writes a part of. */
static void place_whole(encoder *e, uint32_t tensor, uint32_t word, uint32_t elems, const uint32_t *words, uint32_t n) {
    uint32_t opcode = vpps_word_opcode(word);
    uint32_t vp = word & VPPS_WORD_ACC ? owner_of(e, tensor) : least_loaded(e->w);
    uint32_t *at = deal(e, vp, 1 + n, cost_of(opcode, elems));
    if (!at) return;
    at[0] = word;
    memcpy(at + 1, words, n * sizeof *words);
}

/* ---------------------------------------------------------------- items */

static const vpps_signature *signature_of(const vpps_schedule_work *w, vpps_node x) {
    return &w->g->signatures[w->flat->nodes[x].signature];
}

/* The flag of instructions that write to the gradient of x. */
static uint32_t accumulates(const vpps_schedule_work *w, vpps_node x) {
    return w->groups[w->group[x]].flags & VPPS_ZEROED ? VPPS_WORD_ACC : 0;
}

/* Buffers for a node's operands: on the stack, or, for a node of many arguments, from the heap. */
typedef struct operand_buffer {
    uint32_t small[2 * MAX_WORDS];
    uint32_t *words, *next, *heap;
    uint32_t capacity;
} operand_buffer;

static bool prepare(encoder *e, operand_buffer *b, uint32_t n_args) {
    uint32_t needed = n_args + MAX_CODES;
    if (!b->capacity) {
        b->capacity = MAX_WORDS;
        b->words = b->small;
        b->next = b->small + MAX_WORDS;
    }
    if (needed <= b->capacity) return true;
    free(b->heap);
    b->heap = calloc(2 * (size_t)needed, sizeof(uint32_t));
    if (!b->heap) e->w->status = vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    b->capacity = needed;
    b->words = b->heap;
    b->next = b->heap + needed;
    return b->heap != NULL;
}

/* Concatenation and slices: column by column, one copy a part. */
static void copy_parts(encoder *e, vpps_node y, uint32_t k, bool backward) {
    vpps_schedule_work *w = e->w;
    const vpps_flat_node *node = &w->flat->nodes[y];
    vpps_node x = w->flat->args[node->args + k];
    const vpps_signature *sx = signature_of(w, x), *sy = signature_of(w, y);
    bool slice = sy->op == VPPS_OP_SLICE;
    uint32_t in_x = slice ? node->imm : 0, in_y = 0, rows = slice ? sy->rows : sx->rows;
    for (uint32_t j = 0; j < k; j++) in_y += signature_of(w, w->flat->args[node->args + j])->rows;
    uint32_t flags = backward ? accumulates(w, x) : 0;
    uint32_t base_x = backward ? vpps_gradient_of(w, x) : vpps_value_of(w, x);
    uint32_t base_y = backward ? vpps_gradient_of(w, y) : vpps_value_of(w, y);
    for (uint32_t c = 0; c < sy->cols; c++) {
        uint32_t at_x = base_x + c * sx->rows + in_x, at_y = base_y + c * sy->rows + in_y;
        uint32_t words[2] = {backward ? at_x : at_y, backward ? at_y : at_x};
        place_whole(e, base_x, word_of(w, VPPS_I_COPY, flags, rows), rows, words, 2);
    }
}

static uint32_t forward_length(const vpps_schedule_work *w, vpps_node y, vpps_form form) {
    if (form != VPPS_FORM_REDUCE) return vpps_words(signature_of(w, y));
    return vpps_words(signature_of(w, w->flat->args[w->flat->nodes[y].args]));
}

static void encode_forward(encoder *e, const vpps_item *item) {
    vpps_schedule_work *w = e->w;
    const vpps_group *group = &w->groups[item->what];
    const vpps_signature *s = &w->g->signatures[group->signature];
    const vpps_op_row *op = &vpps_ops[s->op];
    const vpps_op_instruction_row *how = &vpps_op_instructions[s->op];
    vpps_form form = vpps_instructions[how->forward].form;
    operand_buffer b = {.capacity = 0, .heap = NULL};
    vpps_operand_codes c =
        vpps_make_codes(w, group, how->forward_operands, how->forward, 0, vpps_letter_code(w, group, 'y', 0));
    bool fits = (uint64_t)group->n * vpps_words(s) <= VPPS_MAX_LENGTH || item->shared;
    uint32_t n_together = form == VPPS_FORM_EW && op->op_class == VPPS_CLASS_EW && c.regular && fits ? group->n : 1;
    for (uint32_t j = 0; j < group->n && w->status == VPPS_OK; j += n_together) {
        vpps_node y = w->order[group->first + j];
        uint32_t n_args = w->flat->nodes[y].n_args;
        if (op->op_class == VPPS_CLASS_PARTS) {
            for (uint32_t k = 0; k < n_args; k++) copy_parts(e, y, k, false);
            continue;
        }
        if (!prepare(e, &b, n_args)) break;
        if (!group->n_links) vpps_fix_average(w, y, how->forward_operands, &c);
        uint32_t length = forward_length(w, y, form);
        uint32_t n = vpps_operand_words(w, group, &c, j, how->forward, length, b.words, b.next);
        if (form == VPPS_FORM_EW) {
            run_nodes(e, item->shared, s->rows, how->forward, length, b.words, b.next, n, n_together);
        } else {
            place_whole(e, b.words[0], word_of(w, how->forward, 0, length), length, b.words, n);
        }
    }
    flush_run(e, item->shared);
    free(b.heap);
}

/* d(weight k) = d . x(k), one element each */
static void encode_weights_backward(encoder *e, vpps_node y) {
    vpps_schedule_work *w = e->w;
    const uint32_t *args = w->flat->args + w->flat->nodes[y].args;
    uint32_t length = vpps_words(signature_of(w, y)), weights = vpps_gradient_of(w, args[0]);
    for (uint32_t k = 1; k < w->flat->nodes[y].n_args; k++) {
        uint32_t words[3] = {weights + k - 1, vpps_gradient_of(w, y), vpps_value_of(w, args[k])};
        place_whole(e, weights, word_of(w, VPPS_I_DOT, accumulates(w, args[0]), length), length, words, 3);
    }
}

static void encode_backward(encoder *e, const vpps_item *item) {
    vpps_schedule_work *w = e->w;
    const vpps_group *group = &w->groups[item->what];
    const vpps_signature *s = &w->g->signatures[group->signature];
    const vpps_op_row *op = &vpps_ops[s->op];
    const vpps_op_instruction_row *how = &vpps_op_instructions[s->op];
    uint32_t k = item->argument;
    bool weights = s->op == VPPS_OP_WEIGHTED_SUM;
    const char *letters = how->backward_operands[op->max_args == VPPS_MANY ? 0 : k];
    vpps_form form = vpps_instructions[item->opcode].form;
    uint32_t words[MAX_WORDS] = {0}, next[MAX_WORDS];
    const vpps_link *link = vpps_aligned(w, group, k);
    vpps_operand_codes c = vpps_make_codes(w, group, letters, item->opcode, k, vpps_gradient_code(w, group, k));
    bool together = link && form == VPPS_FORM_EW && op->op_class == VPPS_CLASS_EW && !weights && c.regular;
    if (together && !item->shared) { /* additions are placed one by one */
        together =
            !(w->groups[link->group].flags & VPPS_ZEROED) && (uint64_t)group->n * vpps_words(s) <= VPPS_MAX_LENGTH;
    }
    uint32_t n_together = together ? group->n : 1;
    for (uint32_t j = 0; j < group->n && w->status == VPPS_OK; j += n_together) {
        vpps_node y = w->order[group->first + j];
        if (k >= w->flat->nodes[y].n_args) continue;
        vpps_node x = w->flat->args[w->flat->nodes[y].args + k];
        const vpps_group *of = &w->groups[w->group[x]];
        if (of->gradient_base == VPPS_NO_OFFSET || of->gradient_base == group->gradient_base) continue;
        if (op->op_class == VPPS_CLASS_PARTS) {
            copy_parts(e, y, k, true);
            continue;
        }
        if (weights && k == 0) {
            encode_weights_backward(e, y);
            continue;
        }
        uint32_t length = vpps_words(signature_of(w, form == VPPS_FORM_REDUCE ? y : x));
        uint32_t flags = accumulates(w, x);
        if (!group->n_links) vpps_fix_average(w, y, letters, &c);
        uint32_t n = vpps_operand_words(w, group, &c, j, item->opcode, length, words, next);
        if (form == VPPS_FORM_EW && (item->shared || !flags)) {
            run_nodes(e, item->shared, signature_of(w, x)->rows, item->opcode | flags, length, words, next, n,
                      n_together);
        } else {
            place_whole(e, words[0], word_of(w, item->opcode, flags, length), length, words, n);
        }
    }
    flush_run(e, item->shared);
}

static void encode_fill(encoder *e, const vpps_item *item) {
    vpps_schedule_work *w = e->w;
    const vpps_group *group = &w->groups[item->what];
    const vpps_signature *s = &w->g->signatures[group->signature];
    uint32_t length = vpps_words(s), n = group->n;
    float value = item->what == w->group[w->request->loss] ? 1.0f : 0.0f; /* the loss is kept: alone in its group */
    if (s->op == VPPS_OP_LOOKUP) n = group->n_entries;
    bool together = item->shared || (uint64_t)n * length <= VPPS_MAX_LENGTH;
    for (uint32_t j = 0; j < n; j += together ? n : 1) {
        uint32_t words[2] = {group->gradient_base + j * length, vpps_float_bits(value)};
        uint32_t next[2] = {words[0] + length, words[1]};
        run_nodes(e, item->shared, s->rows, VPPS_I_FILL, length, words, next, 2, together ? n : 1);
    }
    flush_run(e, item->shared);
}

static void encode_load(encoder *e, const vpps_item *item) {
    vpps_schedule_work *w = e->w;
    const vpps_group *group = &w->groups[item->what];
    uint32_t length = vpps_words(&w->g->signatures[group->signature]);
    for (uint32_t j = 0; j < group->n; j++) {
        vpps_node x = w->order[group->first + j];
        uint32_t *data = vpps_append(e->s, length);
        if (!data) return;
        memcpy(data, w->g->data + w->flat->nodes[x].imm, length * sizeof *data);
        uint32_t words[2] = {vpps_value_of(w, x), (uint32_t)(data - e->s->script)};
        place_whole(e, words[0], word_of(w, VPPS_I_LOAD, 0, length), length, words, 2);
    }
}

static void encode_shared(encoder *e, uint32_t word, uint32_t a, uint32_t b, uint32_t n_operands) {
    uint32_t *at = vpps_append(e->s, 1 + n_operands);
    if (!at) return;
    at[0] = word;
    if (n_operands > 0) at[1] = a;
    if (n_operands > 1) at[2] = b;
    e->s->n_instructions++;
}

/* An instruction over `count` vectors or pairs of a list, as several where it cannot count so many. Operand `which` (0, 1)
 * moves on by `step` for each that is done. */
static void encode_counted(encoder *e, uint32_t opcode, uint32_t a, uint32_t b, uint32_t count, uint32_t which,
                           uint32_t step) {
    uint32_t operands[2] = {a, b};
    for (uint32_t done = 0, n; done < count; done += n) {
        n = vpps_min_u32(count - done, VPPS_MAX_LENGTH);
        encode_shared(e, word_of(e->w, opcode, 0, n), operands[0], operands[1], 2);
        operands[which] += n * step;
    }
}

/* Every VP stops. */
static void encode_host(encoder *e) {
    for (uint32_t vp = 0; vp < e->w->n_streams; vp++) {
        activate(e, vp);
        uint32_t *at = stream_append(e->w, vp, 1);
        if (!at) return;
        at[0] = VPPS_I_HOST;
        e->s->n_instructions++;
    }
}

static void encode_item(encoder *e, const vpps_item *item) {
    uint32_t list = item->kind == VPPS_ITEM_ROWS ? e->w->row_lists[item->what] : 0;
    switch (item->kind) {
    case VPPS_ITEM_LOAD: encode_load(e, item); break;
    case VPPS_ITEM_FORWARD: encode_forward(e, item); break;
    case VPPS_ITEM_BACKWARD: encode_backward(e, item); break;
    case VPPS_ITEM_FILL: encode_fill(e, item); break;
    case VPPS_ITEM_BUNDLE:
        encode_counted(e, item->opcode, item->argument, e->w->bundles[item->what].address, item->count, 0, 1);
        break;
    case VPPS_ITEM_PARAMETER: encode_shared(e, item->opcode, item->what, 0, 1); break;
    case VPPS_ITEM_ROWS: encode_counted(e, item->opcode, item->what, list, e->s->script[list - 1], 1, 2); break;
    case VPPS_ITEM_NORM_END: encode_shared(e, item->opcode, 0, 0, 0); break;
    case VPPS_ITEM_HOST: encode_host(e); break;
    }
}

/* Does VP vp have rows in a shared item? Elementwise items are shared only where all have. */
static bool takes_part(const vpps_schedule_work *w, const vpps_item *item, uint32_t vp) {
    uint32_t n = w->plan->n_vps, block = w->plan->row_block;
    vpps_rows r = {0, 1};
    if (item->kind == VPPS_ITEM_PARAMETER || item->kind == VPPS_ITEM_ROWS) {
        const vpps_parameter_data *p = &w->g->model->params[item->what];
        bool by_cols = item->opcode == VPPS_I_TRANSPOSE;
        r = vpps_rows_of(by_cols ? p->cols : item->kind == VPPS_ITEM_ROWS ? p->rows * p->cols : p->rows, block, n, vp);
    }
    if (item->kind != VPPS_ITEM_BUNDLE || item->opcode == VPPS_I_AFFINE_P) return r.first < r.end;
    if (item->opcode == VPPS_I_OUTER && w->plan->host_products) return true; /* the lists are gathered by all */
    const vpps_bundle *b = &w->bundles[item->what];
    bool by_lists = item->opcode == VPPS_I_AFFINE_T || item->opcode == VPPS_I_REDUCE_P;
    for (uint32_t i = 0; by_lists && i < b->n_lists; i++) {
        r = vpps_rows_of(w->lists[b->lists[i]].elems, block, n, vp);
        if (r.first < r.end) return true;
    }
    for (uint32_t i = b->first_signature; !by_lists && i != VPPS_NO_OFFSET; i = w->signatures[i].next) {
        r = vpps_rows_of(w->g->signatures[i].rows, block, n, vp);
        if (r.first < r.end) return true;
    }
    return false;
}

/* Where a call from `start` on must end: as many instructions as it can count the words of, but at least one. */
static uint32_t end_of_call(const uint32_t *script, uint32_t start, uint32_t end) {
    if (end - start <= VPPS_MAX_LENGTH) return end;
    uint32_t to = start, n = 0;
    do {
        to += n;
        n = vpps_instruction_words(script + to, script + end);
    } while (n && (to == start || to + n - start <= VPPS_MAX_LENGTH));
    return to;
}

/* Has VP vp run the segment [start, end). */
static void encode_calls(encoder *e, uint32_t vp, uint32_t start, uint32_t end) {
    while (start < end && e->w->status == VPPS_OK) {
        uint32_t to = end_of_call(e->s->script, start, end);
        uint32_t *at = stream_append(e->w, vp, 2);
        if (!at) return;
        at[0] = word_of(e->w, VPPS_I_CALL, 0, to - start);
        at[1] = start;
        start = to;
    }
}

/* The shared items of a phase as one segment that every VP with rows in any of them calls. */
static void encode_segment(encoder *e, const uint32_t *items, uint32_t n) {
    vpps_schedule_work *w = e->w;
    size_t start = e->s->script_words;
    for (uint32_t i = 0; i < n && w->status == VPPS_OK; i++) {
        if (w->items[items[i]].shared) encode_item(e, &w->items[items[i]]);
    }
    if (e->s->script_words == start || w->status != VPPS_OK) return;
    for (uint32_t vp = 0; vp < w->n_streams; vp++) {
        bool any = false;
        for (uint32_t i = 0; i < n && !any; i++) {
            any = w->items[items[i]].shared && takes_part(w, &w->items[items[i]], vp);
        }
        if (!any) continue;
        activate(e, vp);
        encode_calls(e, vp, (uint32_t)start, (uint32_t)e->s->script_words);
    }
}

static void encode_phase(encoder *e, const uint32_t *items, uint32_t n, bool last) {
    vpps_schedule_work *w = e->w;
    for (uint32_t vp = 0; vp < w->n_streams; vp++) {
        w->streams[vp].active = false;
        w->streams[vp].load = 0;
    }
    encode_segment(e, items, n);
    for (uint32_t i = 0; i < n && w->status == VPPS_OK; i++) {
        e->item = items[i] + 1;
        w->n_owners = 0;
        if (!w->items[items[i]].shared) encode_item(e, &w->items[items[i]]);
    }
    uint32_t signals = 0;
    for (uint32_t vp = 0; vp < w->n_streams; vp++) {
        if (!w->streams[vp].active) continue;
        signals++;
        uint32_t *at = last ? NULL : stream_append(w, vp, 2);
        if (!at) continue;
        at[0] = VPPS_I_SIGNAL;
        at[1] = e->s->n_phases;
    }
    if (!signals) return;
    e->before = (boundary){e->s->n_phases, signals};
    e->s->n_phases++;
}

/* For each trained table: which entries, and where their gradients are. */
static void write_row_lists(encoder *e) {
    vpps_schedule_work *w = e->w;
    for (uint32_t i = 0; i < w->n_groups; i++) {
        const vpps_group *group = &w->groups[i];
        const vpps_signature *s = &w->g->signatures[group->signature];
        if (s->op != VPPS_OP_LOOKUP || w->g->model->params[s->param].frozen) continue;
        uint32_t *at = vpps_append(e->s, 1 + 2 * (size_t)group->n);
        if (!at) return;
        uint32_t n = 0;
        for (uint32_t j = 0; j < group->n; j++) { /* slots were given out in this order: a new entry has the next one */
            uint32_t row = w->flat->nodes[w->order[group->first + j]].imm;
            if (w->slots[s->param][row] != group->gradient_base + n * vpps_words(s)) continue;
            at[1 + 2 * n] = row;
            at[2 + 2 * n] = w->slots[s->param][row];
            n++;
        }
        at[0] = n;
        w->row_lists[s->param] = (uint32_t)(at + 1 - e->s->script);
        e->s->script_words -= 2 * (size_t)(group->n - n);
    }
}

static bool prepare_encoding(vpps_schedule_work *w) {
    uint32_t n_params = (uint32_t)w->g->model->n_params;
    if (w->streams_made < w->plan->n_vps) {
        struct vpps_stream *streams = realloc(w->streams, w->plan->n_vps * sizeof *streams);
        if (!streams) return false;
        w->streams = streams;
        memset(streams + w->streams_made, 0, (w->plan->n_vps - w->streams_made) * sizeof *streams);
        w->streams_made = w->plan->n_vps;
    }
    w->n_streams = w->plan->n_vps;
    for (uint32_t vp = 0; vp < w->n_streams; vp++) w->streams[vp].n = 0;
    if (w->owners_size) memset(w->owners, 0, w->owners_size * sizeof *w->owners);
    w->n_owners = 0;
    return VPPS_RESERVE(w->row_lists, w->row_lists_capacity, n_params);
}

/* Appends the VPs' streams to the common part and fills in the prefix sums. */
static void join_streams(encoder *e) {
    vpps_schedule_work *w = e->w;
    for (uint32_t vp = 0; vp < w->n_streams && w->status == VPPS_OK; vp++) {
        uint32_t start = (uint32_t)e->s->script_words;
        uint32_t *end = stream_append(w, vp, 1);
        uint32_t *at = end ? vpps_append(e->s, w->streams[vp].n) : NULL;
        if (!at) return;
        w->streams[vp].words[w->streams[vp].n - 1] = VPPS_I_END;
        memcpy(at, w->streams[vp].words, w->streams[vp].n * sizeof *at);
        e->s->script[VPPS_HEADER_WORDS + vp] = start;
        e->s->script[VPPS_HEADER_WORDS + vp + 1] = (uint32_t)e->s->script_words;
    }
}

vpps_status vpps_encode(vpps_scheduler *s) {
    vpps_schedule_work *w = s->work;
    encoder e = {.s = s, .w = w};
    if (!prepare_encoding(w)) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    s->n_phases = s->n_instructions = 0;
    w->run.n_nodes = 0;
    if (w->training) write_row_lists(&e);
    for (uint32_t p = 0; p < w->n_phases && w->status == VPPS_OK; p++) {
        uint32_t start = w->phase_start[p], end = w->phase_start[p + 1];
        encode_phase(&e, w->item_order + start, end - start, p + 1 == w->n_phases);
    }
    join_streams(&e);
    return w->status;
}
