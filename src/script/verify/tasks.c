/* tasks.c - checks the tasks of a batch's program that run a stage (part of a cell) over vertices. First all reads of a
 * task are checked, then its writes: a task's vertices run in any order, so none may read what another one writes. */
#include "script/verify/checker.h"

#include <inttypes.h>

vpps_location vpps_check_operand(const vpps_checker *c, const vpps_checked_block *b, uint32_t value, uint32_t item) {
    const vpps_cell_value *x = &b->cell->c->values[value];
    const uint32_t words = vpps_value_words(x);
    if (x->kind == VPPS_VALUE_INPUT) return vpps_check_location(c, b->sources[x->input][item]);
    if (x->kind == VPPS_VALUE_LOOKUP) return (vpps_location){b->view.lookups[x->lookup][item], 0, words};
    if (x->kind == VPPS_VALUE_PARAMETER) return (vpps_location){c->target->values[x->vector], 0, words};
    const uint32_t tensor = b->pass_record[value] ? b->pass_record[value][item] : b->kept[value];
    const vpps_tensor *t = &c->tensors[tensor];
    return (vpps_location){t->offset + (item - t->first) * t->stride, tensor, words};
}

/* A CTA's or thread's part of a task: vertices first[0] to end[0] - 1, and, of the nodes that the vertices of the block
 * read through list input d (1, 2, ...), nodes first[d] to end[d] - 1. */
typedef struct share {
    const vpps_checked_block *b;
    const vpps_stage_info *info;
    uint32_t stage, member;
    /* number of the task's first vertex; offset of the values that only the task's pass (forward or backward) uses */
    uint32_t task_first, pass_record;
    uint32_t first[VPPS_AXES], end[VPPS_AXES];
} share;

static share share_of(const vpps_checker *c, const vpps_checked_block *b, const vpps_task *t, uint32_t member) {
    const uint32_t stage = t->stage, first = t->operands[1], n = t->operands[2];
    share s = {.b = b,
               .info = &b->cell->stages[stage],
               .stage = stage,
               .member = member,
               .task_first = first,
               .pass_record = t->pass_record};
    vpps_rows part = {first, first + n};
    if (!s.info->rows) /* the threads or CTAs divide the task's vertices among themselves */
        part = vpps_share_of_stage(&b->cell->c->stages[stage], b->view.lists, first, n, c->group_size, member);
    vpps_items_of(&b->view, part.first, part.end - part.first, s.first, s.end);
    for (uint32_t d = 0; d <= b->cell->c->n_lists; d++) s.end[d] += s.first[d];
    return s;
}

/* Returns which words of a value the thread or CTA handles: those of its own rows, or all if rows are not divided. */
static vpps_rows rows_of(const share *s, const vpps_cell_value *x) {
    return s->info->rows ? vpps_own_rows(&s->b->cell->c->needs, x->rows, x->cols, s->member)
                         : (vpps_rows){0, vpps_value_words(x)};
}

/* ---------------------------------------------------------------- reads */

static bool is_where_expected(vpps_checker *c, const share *s, uint32_t value, uint32_t item, vpps_location at) {
    const vpps_cell_value *x = &s->b->cell->c->values[value];
    const uint64_t stride = s->b->cell->c->kept_words[x->record];
    if (!at.tensor) return VPPS_REFUSE(c, "value %u of vertex %u was not made yet", value, item);
    if (at.offset == s->pass_record + (item - s->task_first) * stride + x->offset) return true;
    return VPPS_REFUSE(c, "value %u of vertex %u is read at %" PRIu64 "; it lies at %u", value, item,
                       s->pass_record + (item - s->task_first) * stride + x->offset, at.offset);
}

static bool read_value(vpps_checker *c, const share *s, const vpps_stage_read *read) {
    const vpps_cell_value *x = &s->b->cell->c->values[read->value];
    const bool shares = read->extent == VPPS_EXTENT_SHARES;
    const vpps_rows rows = read->extent == VPPS_EXTENT_WHOLE ? (vpps_rows){0, vpps_value_words(x)} : rows_of(s, x);
    for (uint32_t item = s->first[x->axis]; item < s->end[x->axis]; item++) {
        const vpps_location at = vpps_check_operand(c, s->b, read->value, item);
        if (s->b->pass_record[read->value] && !is_where_expected(c, s, read->value, item, at)) return false;
        for (uint32_t i = 0; i < (shares ? vpps_shares_of(x) : 1); i++)
            if (!vpps_check_read(c, at.offset + i * vpps_share_words(vpps_value_words(x)) + rows.first,
                                 rows.end - rows.first, at.tensor + i))
                return false;
    }
    return true;
}

static bool read_matrix(vpps_checker *c, vpps_param matrix) {
    if (c->matrix_spent[matrix]) return VPPS_REFUSE(c, "reads a matrix after its update");
    c->matrix_read[(size_t)matrix * c->n_groups + c->group] = c->actor.place + 1;
    return true;
}

/* Checks that a product reads its matrices before their update, and a bias that nothing has overwritten. */
static bool read_parameters(vpps_checker *c, const share *s, const vpps_program_step *product) {
    const vpps_program *p = &s->b->cell->c->programs[s->stage];
    for (uint32_t i = 0; i < product->n; i++)
        if (!read_matrix(c, p->operands[product->first + i].matrix)) return false;
    const vpps_operand *start = &product->product.start;
    if (start->place != VPPS_PLACE_PARAMETER || s->first[product->axis] == s->end[product->axis]) return true;
    const vpps_rows rows =
        start->dealt ? vpps_dealt_rows(s->b->cell->c, p, start->dealt, s->member) : (vpps_rows){0, start->rows};
    return vpps_check_read(c, c->target->values[start->at] + rows.first, rows.end - rows.first, 0);
}

/* Some terms of a gradient are stored as two factors: a scalar, and a vector of `words` words. Checks that such terms of output k's
 * gradient at vertex p may be read: the scalar, and words `rows` of the vector. `take`: marks the terms as used. */
static bool read_pairs(vpps_checker *c, const vpps_checked_block *b, uint32_t k, uint32_t p, uint32_t words,
                       vpps_rows rows, bool take) {
    const uint32_t *starts = b->view.pair_starts[k];
    for (uint32_t i = starts ? starts[p] : 0; starts && i < starts[p + 1]; i++) {
        for (vpps_pair_run x = vpps_run_of_pairs(&b->view, k, i); x.n > 0; x.n--, x.by += x.by_step, x.of += x.of_step)
            if ((take &&
                 !vpps_check_take_pair(c, (uint32_t[]){x.by, x.of}, words, b->first_output + k * b->block->n + p)) ||
                !vpps_check_read(c, x.by, 1, c->pool[x.by].tensor) ||
                !vpps_check_read(c, x.of + rows.first, rows.end - rows.first, c->pool[x.of].tensor))
                return false;
    }
    return true;
}

/* Checks a step that sums up an output's gradient: each term (one per vertex that reads the output) occurs just
 * once. */
static bool read_gradient(vpps_checker *c, const share *s, const vpps_program_step *gradient) {
    const vpps_checked_block *b = s->b;
    const uint32_t k = gradient->output, *starts = b->view.gradient_starts[k], *list = b->view.gradients[k];
    const uint32_t words = vpps_value_words(&b->cell->c->values[gradient->to.value]);
    const vpps_rows rows = rows_of(s, &b->cell->c->values[gradient->to.value]);
    const bool take = !s->info->rows || s->member == 0;
    for (uint32_t p = s->first[0]; p < s->end[0]; p++) {
        const uint32_t output = b->first_output + k * b->block->n + p;
        const uint64_t n = starts[p + 1] - starts[p] + vpps_count_pairs(&b->view, k, p, p + 1);
        if (n != c->due[output])
            return VPPS_REFUSE(c, "vertex %u: gradient %u is the sum of %" PRIu64 " contributions; expected %u", p, k,
                               n, c->due[output]);
        for (uint32_t i = starts[p]; i < starts[p + 1]; i++)
            if ((take && vpps_check_take(c, list[i], words, output, 0, 0) == VPPS_NONE) ||
                !vpps_check_read(c, list[i] + rows.first, rows.end - rows.first, c->pool[list[i]].tensor))
                return false;
        if (!read_pairs(c, b, k, p, words, rows, take)) return false;
    }
    return true;
}

static bool read_stage(vpps_checker *c, const share *s) {
    const vpps_checked_cell *cell = s->b->cell;
    const vpps_program *p = &cell->c->programs[s->stage];
    const bool many = s->info->rows && c->group_size > 1;
    for (uint32_t i = s->info->first; i < s->info->first + s->info->n; i++) {
        const vpps_cell_value *x = &cell->c->values[cell->reads[i].value];
        const bool whole = cell->reads[i].extent == VPPS_EXTENT_WHOLE || !vpps_rows_dealt(&cell->c->needs, x->rows);
        /* all threads or CTAs of the group read the same words: checked once, with the group as a whole as reader */
        if (many && whole && s->member > 0) continue;
        if (many && whole) vpps_check_act(c, c->n_vps + c->group);
        const bool ok = read_value(c, s, &cell->reads[i]);
        vpps_check_act_as(c, s->member);
        if (!ok) return false;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_program_step *step = &p->steps[i];
        if (step->kind == VPPS_STEP_GRADIENT && !read_gradient(c, s, step)) return false;
        if (step->kind == VPPS_STEP_PRODUCT && !read_parameters(c, s, step)) return false;
        if (step->kind == VPPS_STEP_RUN && step->run.of.opcode == VPPS_I_MATRIX && !read_matrix(c, step->run.of.table))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- writes */

static bool write_items(vpps_checker *c, const share *s, const vpps_cell_value *x, uint32_t tensor) {
    const vpps_cell_needs *needs = &s->b->cell->c->needs;
    const uint32_t shares = vpps_shares_of(x);
    const vpps_rows rows = shares == 1           ? rows_of(s, x)
                           : needs->rows.columns ? vpps_share_rows(needs, x->rows, shares, s->member)
                                                 : (vpps_rows){0, vpps_value_words(x)};
    const vpps_tensor *t = &c->tensors[tensor + s->member % shares];
    for (uint32_t item = s->first[x->axis]; item < s->end[x->axis]; item++)
        if (!vpps_check_write(c, t->offset + (item - t->first) * t->stride + rows.first, rows.end - rows.first,
                              (uint32_t)(t - c->tensors), item))
            return false;
    return true;
}

static bool write_stage(vpps_checker *c, const share *s) {
    const vpps_compiled_cell *cell = s->b->cell->c;
    const vpps_cell_stage *stage = &cell->stages[s->stage];
    for (uint32_t i = 0; i < stage->n; i++) {
        const uint32_t v = cell->order[stage->first + i];
        const vpps_cell_value *x = &cell->values[v];
        if (x->kept && s->first[x->axis] < s->end[x->axis] &&
            !write_items(c, s, x, s->b->pass_record[v] ? s->b->pass_record[v][s->first[0]] : s->b->kept[v]))
            return false;
        for (uint32_t j = 0; j < cell->n_contributions; j++)
            if (cell->contributions[j].value == v && !cell->contributions[j].scaled &&
                !write_items(c, s, x, s->b->contributions[j]))
                return false;
    }
    return true;
}

static bool run_once(vpps_checker *c, const vpps_checked_block *b, uint32_t stage, uint32_t first, uint32_t n) {
    for (uint32_t p = first; p < first + n; p++) {
        if (vpps_bit(c->ran, b->stage_bits[stage] + p))
            return VPPS_REFUSE(c, "duplicate task: vertex %u has run this stage", p);
        vpps_set_bit(c->ran, b->stage_bits[stage] + p);
    }
    return true;
}

/* Adds a tensor (place in memory) for each gradient, or partial sum of it, that the task (of some vertices) computes for an input: values
 * for all vertices or, for a list input (any number of nodes), for all nodes. The tensor takes a multiple of 16 words. */
static bool add_contributions(vpps_checker *c, vpps_checked_block *b, const vpps_task *task) {
    const vpps_compiled_cell *cell = b->cell->c;
    const uint32_t *o = task->operands;
    uint64_t at = task->contributions;
    uint32_t firsts[VPPS_AXES], items[VPPS_AXES];
    vpps_items_of(&b->view, o[1], o[2], firsts, items);
    for (uint32_t j = 0; j < cell->n_contributions; j++) {
        const vpps_cell_value *x = &cell->values[cell->contributions[j].value];
        if (x->stage != task->stage || cell->contributions[j].scaled) continue;
        const uint32_t first = firsts[x->axis], n = items[x->axis];
        b->contributions[j] = c->n_tensors;
        for (uint32_t s = 0; s < vpps_shares_of(x); s++) {
            const vpps_tensor t = {.kind = VPPS_TENSOR_CONTRIBUTION,
                                   .stride = vpps_value_words(x),
                                   .words = vpps_value_words(x),
                                   .items = n,
                                   .first = first,
                                   .block = o[0],
                                   .index = j,
                                   .share = s,
                                   .first_bit = b->contribution_bits[j] + (uint64_t)s * vpps_items(b->block, x->axis)};
            if (vpps_check_add_tensor(c, at, t) == VPPS_NONE) return false;
            at += ((uint64_t)n * vpps_value_words(x) + 15) & ~(uint64_t)15;
        }
    }
    return true;
}

/* Adds tensors for the values that the task stores for one pass only (forward or backward). */
static bool add_pass_record(vpps_checker *c, const vpps_checked_block *b, const vpps_task *task) {
    const vpps_compiled_cell *cell = b->cell->c;
    const vpps_cell_stage *stage = &cell->stages[task->stage];
    const uint32_t *o = task->operands;
    for (uint32_t i = 0; i < stage->n; i++) {
        const uint32_t v = cell->order[stage->first + i];
        if (!b->pass_record[v]) continue;
        for (uint32_t p = o[1]; p < o[1] + o[2]; p++) b->pass_record[v][p] = c->n_tensors;
        if (!vpps_check_add_kept(c, b, v, task->pass_record, o[1], o[2])) return false;
    }
    return true;
}

bool vpps_check_stage(vpps_checker *c, const vpps_task *t) {
    const uint32_t block = t->operands[0], stage = t->stage, first = t->operands[1], n = t->operands[2];
    if (block >= c->header->n_blocks) return VPPS_REFUSE(c, "no block %u", block);
    vpps_checked_block *b = &c->blocks[block];
    if (b->block->group != c->group) return VPPS_REFUSE(c, "block %u belongs to group %u", block, b->block->group);
    if (first > b->block->n || n > b->block->n - first || !n || stage >= b->cell->c->n_stages)
        return VPPS_REFUSE(c, "block %u has no such stage, or fewer vertices", block);
    if (!run_once(c, b, stage, first, n) || !add_pass_record(c, b, t) || !add_contributions(c, b, t)) return false;
    for (uint32_t write = 0; write < 2; write++) {
        for (uint32_t m = 0; m < c->group_size; m++) {
            const share s = share_of(c, b, t, m);
            vpps_check_act_as(c, m);
            if (!(write ? write_stage(c, &s) : read_stage(c, &s))) return false;
        }
    }
    return true;
}

/* Executes a task of the kind CONSTANTS: the first thread or CTA of a group stores n values at given offsets. */
bool vpps_check_constants(vpps_checker *c, uint32_t address, uint32_t n) {
    const uint32_t *pairs = vpps_check_words(c, address, 2 * (uint64_t)n, "constants");
    if (!pairs) return false;
    vpps_check_act_as(c, 0);
    for (uint32_t i = 0; i < n; i++) {
        const vpps_tensor t = {
            .kind = VPPS_TENSOR_CONSTANT, .stride = 1, .words = 1, .items = 1, .index = pairs[2 * i + 1]};
        const uint32_t tensor = vpps_check_add_tensor(c, pairs[2 * i], t);
        if (tensor == VPPS_NONE || !vpps_check_write(c, pairs[2 * i], 1, tensor, 0)) return false;
    }
    return true;
}

/* Lets the host write a tensor at the pause between forward and backward: after all tasks before the pause, before all tasks after it. */
static bool give(vpps_checker *c, uint64_t offset, uint32_t words, uint32_t index) {
    const vpps_tensor t = {.kind = VPPS_TENSOR_GIVEN, .stride = words, .words = words, .items = 1, .index = index};
    const uint32_t tensor = vpps_check_add_tensor(c, offset, t);
    if (tensor == VPPS_NONE) return false;
    for (uint32_t i = 0; i < words; i++) c->pool[offset + i] = (vpps_word){.tensor = tensor};
    return true;
}

bool vpps_check_pause(vpps_checker *c) {
    const vpps_given_array *given = c->given;
    if (!given || given->n != c->request->n_given)
        return VPPS_REFUSE(c, "the pause has no place for the gradients of %u outputs", c->request->n_given);
    for (uint32_t g = 0; g < c->n_groups; g++)
        for (uint32_t other = 0; other < c->n_groups; other++)
            c->known[(size_t)g * c->n_groups + other] = c->streams[other].place;
    if (!vpps_check_outputs(c) || !give(c, given->first, 1, VPPS_NONE)) return false;
    for (uint32_t i = 0; i < given->n; i++) {
        const vpps_signature *s = vpps_check_signature(c->g, c->request->outputs[i]);
        if (given->gradients[i].words != vpps_words(s))
            return VPPS_REFUSE(c, "the given gradient of output %u has %u words; expected %u", i,
                               given->gradients[i].words, vpps_words(s));
        if (!give(c, given->first + (uint64_t)given->gradients[i].at, vpps_words(s), i)) return false;
    }
    return true;
}

/* ---------------------------------------------------------------- taking contributions */

/* Marks the host's gradient of request->outputs[i] as added to that of output number `output`; an error if it belongs elsewhere or was added. */
static bool take_given(vpps_checker *c, uint32_t output, uint32_t i) {
    for (uint32_t t = c->first_term[output]; t < c->first_term[output + 1]; t++)
        if (!c->terms[t].taken && c->terms[t].given == i) return c->terms[t].taken = true;
    return VPPS_REFUSE(c, "the host's gradient of output %u is added to another gradient, or twice", i);
}

/* The loss is a sum of factor * output. Marks a term with this factor (its bits) as used in the output's gradient. */
static bool take_term(vpps_checker *c, uint32_t output, uint32_t bits) {
    for (uint32_t i = c->first_term[output]; i < c->first_term[output + 1]; i++) {
        if (c->terms[i].taken || vpps_float_bits(c->terms[i].factor) != bits) continue;
        return c->terms[i].taken = true;
    }
    return VPPS_REFUSE(c, "%g is added to a gradient without such a term of the loss", (double)vpps_bits_float(bits));
}

/* Axis d > 0 stands for the nodes (members) that a block's vertices (of one cell) read through list input d - 1; all these vertices'
 * members are numbered together. Returns the vertex that reads member number `item`. */
static uint32_t vertex_of(const vpps_checked_block *b, uint32_t axis, uint32_t item) {
    /* finds the first vertex whose list ends after the member, by binary search */
    uint32_t low = 0, high = b->block->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (b->view.lists[axis][middle + 1] <= item) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Returns whether a gradient term (contribution) belongs to the gradient of this output, or, if `output` is VPPS_NONE, of this table entry. */
static bool is_for(const vpps_checker *c, const vpps_tensor *t, uint32_t item, uint32_t output, uint32_t table,
                   uint32_t row) {
    const vpps_checked_block *b = &c->blocks[t->block];
    const vpps_compiled_cell *cell = b->cell->c;
    const vpps_cell_contribution *to = &cell->contributions[t->index];
    const uint32_t axis = to->lookup ? 0 : cell->input_axis[to->index];
    const uint32_t p = axis ? vertex_of(b, axis, item) : item;
    const uint64_t live = vpps_check_live(c, b, p);
    if (to->lookup)
        return output == VPPS_NONE && cell->lookups[to->index].table == table && b->rows[to->index][item] == row &&
               (live & b->cell->into_entry[to->index]);
    return output != VPPS_NONE && b->sources[to->index][item] == output && (live & b->cell->into_input[to->index]);
}

uint32_t vpps_check_take(vpps_checker *c, uint32_t offset, uint32_t words, uint32_t output, uint32_t table,
                         uint32_t row) {
    if ((uint64_t)offset + words > c->pool_words) {
        vpps_check_record(c, "contribution at %u is outside the pool", offset);
        return VPPS_NONE;
    }
    const uint32_t tensor = c->pool[offset].tensor;
    const vpps_tensor *t = &c->tensors[tensor];
    char text[160];
    if (t->kind == VPPS_TENSOR_CONSTANT && output != VPPS_NONE && words == 1)
        return take_term(c, output, t->index) ? tensor : VPPS_NONE;
    if (t->kind == VPPS_TENSOR_GIVEN && output != VPPS_NONE && t->index != VPPS_NONE && t->offset == offset &&
        t->words == words)
        return take_given(c, output, t->index) ? tensor : VPPS_NONE;
    const uint32_t at = t->kind == VPPS_TENSOR_CONTRIBUTION ? (offset - t->offset) / t->stride : 0;
    const uint32_t item = t->first + at;
    vpps_check_describe(c, tensor, offset, text, sizeof text);
    const bool begins =
        t->kind == VPPS_TENSOR_CONTRIBUTION && t->offset + at * t->stride == offset && t->words == words;
    if (!begins || !is_for(c, t, item, output, table, row)) {
        vpps_check_record(c, "%s contribution in a gradient: word %u holds %s", begins ? "foreign" : "no", offset,
                          text);
        return VPPS_NONE;
    }
    if (vpps_bit(c->taken, t->first_bit + item)) {
        vpps_check_record(c, "duplicate contribution: %s", text);
        return VPPS_NONE;
    }
    vpps_set_bit(c->taken, t->first_bit + item);
    return tensor;
}

/* Returns which vertex (or node in the vertices' lists) has its value in tensor t at this offset; VPPS_NONE: none. */
static uint32_t item_at(const vpps_tensor *t, uint32_t offset) {
    if (t->kind != VPPS_TENSOR_KEPT) return VPPS_NONE;
    const uint32_t at = t->stride ? (offset - t->offset) / t->stride : 0;
    return t->offset + at * t->stride == offset ? t->first + at : VPPS_NONE;
}

bool vpps_check_take_pair(vpps_checker *c, const uint32_t *pair, uint32_t words, uint32_t output) {
    if (pair[0] >= c->pool_words || (uint64_t)pair[1] + words > c->pool_words)
        return VPPS_REFUSE(c, "pair at %u and %u is outside the pool", pair[0], pair[1]);
    const vpps_tensor *by = &c->tensors[c->pool[pair[0]].tensor], *of = &c->tensors[c->pool[pair[1]].tensor];
    const uint32_t member = item_at(by, pair[0]), vertex = item_at(of, pair[1]);
    const bool kept = member != VPPS_NONE && vertex != VPPS_NONE && by->block == of->block && of->words == words;
    const vpps_checked_block *b = &c->blocks[kept ? by->block : 0];
    const vpps_compiled_cell *cell = b->cell->c;
    for (uint32_t j = 0; kept && j < cell->n_contributions; j++) {
        const vpps_cell_contribution *to = &cell->contributions[j];
        const uint64_t bit = b->contribution_bits[j] + member;
        const vpps_tensor made = {.block = by->block, .index = j};
        if (!to->scaled || to->scalar != by->index || to->vector != of->index || vpps_bit(c->taken, bit) ||
            vertex_of(b, cell->values[to->scalar].axis, member) != vertex || !is_for(c, &made, member, output, 0, 0))
            continue;
        vpps_set_bit(c->taken, bit);
        return true;
    }
    return VPPS_REFUSE(c, "foreign contribution in a gradient: words %u and %u hold none of its factors", pair[0],
                       pair[1]);
}
