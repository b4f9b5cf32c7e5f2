/* parameters.c - checks tasks on parameters (gradients, norm, update), which each thread or CTA runs for its own share of them. */
#include "script/verify/checker.h"

#include <inttypes.h>

/* Makes the group's threads or CTAs, as one, the reader or writer of the memory accesses that are checked next. */
static void act_together(vpps_checker *c) { vpps_check_act(c, c->group_size > 1 ? c->n_vps + c->group : c->group); }

/* ---------------------------------------------------------------- gradients of parameters */

static uint64_t outer_bit(const vpps_checker *c, const vpps_checked_block *b, uint32_t p) {
    return (uint64_t)c->group * c->n_records + b->view.vertices[p];
}

/* Checks that an operand of items (vertices or nodes of lists) [first, end) can be read. `late`: the update reads the operand; parameters are then not
 * checked, since the update changes them. */
static bool read_items(vpps_checker *c, const vpps_checked_block *b, const vpps_operand *o, uint32_t first,
                       uint32_t end, bool late) {
    for (uint32_t item = first; item < end; item++) {
        const vpps_location at = vpps_check_operand(c, b, o->value, item);
        if (late && at.offset < c->target->batch) continue;
        if (!vpps_check_read(c, at.offset, at.words, at.tensor)) return false;
    }
    return true;
}

/* A parameter's gradient is the sum of dy x^T over vertices. Checks that the vectors dy and x of n vertices of a block can be read now or, if `late`,
 * when the optimizer's update reads them. */
static bool read_factors(vpps_checker *c, const vpps_checked_block *b, uint32_t first, uint32_t n, bool late) {
    for (uint32_t i = 0; n && i < vpps_n_outers(b->cell->c); i++) {
        const vpps_outer o = vpps_outer_of(b->cell->c, i);
        const uint32_t axis = o.dy->axis, *starts = b->view.lists[axis];
        const uint32_t begin = axis ? starts[first] : first, end = axis ? starts[first + n] : first + n;
        if (!read_items(c, b, o.dy, begin, end, late)) return false;
        if (o.x && !read_items(c, b, o.x, begin, end, late)) return false;
        if (begin < end) c->touched[o.param] = true;
    }
    return true;
}

bool vpps_check_outer(vpps_checker *c, uint32_t block, uint32_t first, uint32_t n) {
    if (!c->training || c->streams[c->group].normed || c->streams[c->group].updated)
        return VPPS_REFUSE(c, "gradients added after their norm or update");
    if (block >= c->header->n_blocks) return VPPS_REFUSE(c, "no block %u", block);
    const vpps_checked_block *b = &c->blocks[block];
    if (first > b->block->n || n > b->block->n - first)
        return VPPS_REFUSE(c, "block %u has only %u vertices", block, b->block->n);
    for (uint32_t p = first; p < first + n; p++) {
        const uint64_t bit = outer_bit(c, b, p);
        if (vpps_bit(c->outer_done, bit)) return VPPS_REFUSE(c, "duplicate gradient: vertex %u of block %u", p, block);
        vpps_set_bit(c->outer_done, bit);
    }
    act_together(c);
    return read_factors(c, b, first, n, false);
}

/* ---------------------------------------------------------------- gradients of entries */

static vpps_rows own_entries(const vpps_checker *c, uint32_t n, uint32_t vp) {
    return (vpps_rows){(uint32_t)((uint64_t)n * vp / c->n_vps), (uint32_t)((uint64_t)n * (vp + 1) / c->n_vps)};
}

/* Adds up the terms of the gradient of a table's entry. The sum that earlier slices (parts of the batch) have begun is the first term. */
static bool add_up(vpps_checker *c, uint32_t number, uint32_t entry, const uint32_t *list, uint32_t n) {
    const vpps_table *t = vpps_table_at(c->script, number);
    const uint32_t tensor = c->table_tensors[number], words = c->tensors[tensor].words;
    const uint32_t row = c->script[t->rows + entry], to = t->gradients + entry * words;
    uint8_t *made = &c->entries_made[number][entry];
    uint32_t *due = &c->due_entries[t->param][row], k = 0;
    if (*made && (!n || list[0] != to))
        return VPPS_REFUSE(c, "table %u, entry %u: the gradient of earlier waves is lost", number, row);
    for (uint32_t e = 0; e < words && *made; e++) /* `to` must still hold the gradient summed in earlier batch parts */
        if (c->pool[to + e].tensor != tensor)
            return VPPS_REFUSE(c, "table %u, entry %u: the gradient of earlier waves is overwritten", number, row);
    k += *made;
    if (k == n || n - k > *due)
        return VPPS_REFUSE(c, "table %u, entry %u: %u contributions; expected 1 to %u", number, row, n - k, *due);
    *due -= n - k;
    *made = 1;
    for (; k < n; k++) {
        const uint32_t part = vpps_check_take(c, list[k], words, VPPS_NONE, t->param, row);
        if (part == VPPS_NONE || !vpps_check_read(c, list[k], words, part)) return false;
    }
    return vpps_check_write(c, to, words, tensor, entry);
}

bool vpps_check_entries(vpps_checker *c, uint32_t number, uint32_t address) {
    if (!c->training || c->streams[c->group].normed || c->streams[c->group].updated)
        return VPPS_REFUSE(c, "gradients added after their norm or update");
    if (number >= c->header->n_tables) return VPPS_REFUSE(c, "no table %u", number);
    const uint32_t *n = vpps_check_words(c, address, 1, "a number of entries"),
                   entries = vpps_table_at(c->script, number)->n;
    const uint32_t *entry =
        n ? vpps_check_words(c, address + (uint64_t)1, 2 * (uint64_t)*n + 1, "sums of entries") : NULL;
    if (!entry) return false;
    const uint32_t *starts = entry + *n, *lists = starts + *n + 1;
    if (!vpps_check_words(c, address + (uint64_t)2 + 2 * (uint64_t)*n, starts[*n], "an entry's contributions"))
        return false;
    for (uint32_t i = 0; i < *n; i++)
        if (entry[i] >= entries || starts[i] > starts[i + 1] || starts[i + 1] > starts[*n])
            return VPPS_REFUSE(
                c, "table %u: sum %u has entry %u, words %u to %u; the table has %u entries, the list %u words", number,
                i, entry[i], starts[i], starts[i + 1], entries, starts[*n]);
    for (uint32_t m = 0; m < c->group_size; m++) {
        const vpps_rows own = own_entries(c, *n, vpps_check_vp(c, m));
        vpps_check_act_as(c, m);
        for (uint32_t i = own.first; i < own.end; i++)
            if (!add_up(c, number, entry[i], lists + starts[i], starts[i + 1] - starts[i])) return false;
    }
    return true;
}

/* ---------------------------------------------------------------- the loss */

/* A term of the loss that is to be added: offset and tensor of the term's value, bits of its factor, number of the term. */
typedef struct pair {
    uint32_t offset, tensor, bits, term;
} pair;

/* Returns the term of the loss that has its value at offset key->offset and a factor with the bits key->bits; NULL: there is none. Parts of
 * the batch that run in turn (waves) reuse offsets: if several terms fit, prefers the term whose value lies there now. */
static const pair *find_term(const vpps_checker *c, const pair *key, const pair *want, uint32_t n) {
    const pair *other = NULL;
    uint32_t low = 0, high = n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (want[middle].offset < key->offset)
            low = middle + 1;
        else
            high = middle;
    }
    for (const pair *x = want + low; x < want + n && x->offset == key->offset; x++) {
        if (x->bits != key->bits || c->terms[x->term].added) continue;
        if (x->tensor == key->tensor) return x;
        if (!other) other = x;
    }
    return other;
}

static bool add_terms(vpps_checker *c, const uint32_t *words, uint32_t n, const pair *want, uint32_t n_want) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t offset = words[2 * i];
        const pair key = {offset, offset < c->pool_words ? c->pool[offset].tensor : 0, words[2 * i + 1], 0};
        const pair *found = find_term(c, &key, want, n_want);
        if (!found) return VPPS_REFUSE(c, "wrong term of the loss");
        c->terms[found->term].added = true;
        c->n_added++;
        if (!vpps_check_read(c, offset, 1, found->tensor)) return false;
    }
    return true;
}

/* Returns how many numbers add up to the loss: its terms, or 1 if the host computes it between forward and backward. */
static uint32_t terms_of_loss(const vpps_checker *c) { return c->request->halves ? 1 : c->n_terms; }

static bool add_given_loss(vpps_checker *c, const uint32_t *words) {
    const uint32_t offset = words[0], tensor = offset < c->pool_words ? c->pool[offset].tensor : 0;
    if (c->tensors[tensor].kind != VPPS_TENSOR_GIVEN || c->tensors[tensor].index != VPPS_NONE ||
        words[1] != vpps_float_bits(1))
        return VPPS_REFUSE(c, "the loss is not the host's value");
    c->n_added++;
    return vpps_check_read(c, offset, 1, tensor);
}

/* Executes a LOSS task, in which thread or CTA 0 of the first group of them adds up terms of the loss. */
bool vpps_check_loss(vpps_checker *c, uint32_t address, uint32_t n) {
    const uint32_t *words = vpps_check_words(c, address, 2 * (uint64_t)n, "the loss's terms");
    if (!words) return false;
    if (!c->training || c->group || n > terms_of_loss(c) - c->n_added)
        return VPPS_REFUSE(c, "%u terms of the loss; expected at most %u, in the first group's tasks", n,
                           terms_of_loss(c) - c->n_added);
    c->streams[0].loss_place = c->streams[0].place;
    if (c->request->halves && n) {
        vpps_check_act(c, 0);
        return add_given_loss(c, words);
    }
    pair *want = calloc(c->n_terms + 1u, sizeof *want);
    if (!want) return c->status = VPPS_MEMORY, false;
    uint32_t n_want = 0;
    for (uint32_t i = 0; i < c->n_terms; i++) {
        const vpps_location at = vpps_check_location(c, c->terms[i].output);
        if (!c->terms[i].added) want[n_want++] = (pair){at.offset, at.tensor, vpps_float_bits(c->terms[i].factor), i};
    }
    qsort(want, n_want, sizeof *want, vpps_by_word);
    vpps_check_act(c, 0);
    const bool ok = add_terms(c, words, n, want, n_want);
    free(want);
    return ok;
}

/* ---------------------------------------------------------------- norms and updates */

/* Checks that the parameters' gradients, in the rows that the group's CTAs or threads compute, include all vertices. */
static bool gradients_done(vpps_checker *c) {
    for (uint32_t i = 0; i < c->header->n_blocks; i++) {
        const vpps_checked_block *b = &c->blocks[i];
        for (uint32_t p = 0; p < b->block->n && vpps_n_outers(b->cell->c); p++)
            if (!vpps_bit(c->outer_done, outer_bit(c, b, p)))
                return VPPS_REFUSE(c, "vertex %u of block %u is missing in the parameters' gradients", p, i);
    }
    return true;
}

static bool entry_is_made(vpps_checker *c, uint32_t table, uint32_t row) {
    const uint32_t due = c->due_entries[vpps_table_at(c->script, table)->param][row];
    return !due || VPPS_REFUSE(c, "table %u, entry %u: %u contributions are missing", table, row, due);
}

/* Checks that each table entry's gradient is complete, and readable after barriers; if `update`, the entry writable. */
static bool each_entry(vpps_checker *c, bool update) {
    for (uint32_t i = 0; i < c->header->n_tables; i++) {
        const vpps_table *t = vpps_table_at(c->script, i);
        const uint32_t tensor = c->table_tensors[i], words = c->tensors[tensor].words, *rows = c->script + t->rows;
        for (uint32_t m = 0; m < c->group_size; m++) {
            const vpps_rows own = own_entries(c, t->n, vpps_check_vp(c, m));
            vpps_check_act_as(c, m);
            for (uint32_t k = own.first; k < own.end; k++) {
                if (!entry_is_made(c, i, rows[k])) return false;
                if (!vpps_check_read(c, t->gradients + k * words, words, tensor)) return false;
                if (update && !vpps_check_write(c, c->target->values[t->param] + rows[k] * words, words, 1, 0))
                    return false;
            }
        }
    }
    return true;
}

/* Returns whether the batch's program must end with the norm of the gradients and the update of the parameters. */
static bool steps(const vpps_checker *c) { return c->training && c->request->goal == VPPS_GOAL_STEP; }

bool vpps_check_norm(vpps_checker *c) {
    vpps_stream *stream = &c->streams[c->group];
    if (!steps(c) || stream->normed || stream->updated) return VPPS_REFUSE(c, "unexpected norm");
    stream->normed = true;
    stream->norm_place = stream->place;
    return gradients_done(c) && each_entry(c, false);
}

static bool is_known(const vpps_checker *c, uint32_t group, uint32_t place) {
    if (group == c->group && c->group_size == 1) return true;
    return place < c->known[(size_t)c->group * c->n_groups + group];
}

/* Checks that barriers stand between all groups' tasks (of threads or CTAs) that compute norms of gradients and this
 * group's update, which reads them; with guard (no update if the loss is not finite), also after the loss's sum. */
static bool knows_norms(vpps_checker *c) {
    const vpps_task_header *h = c->header;
    for (uint32_t g = 0; g < c->n_groups && (h->guard || h->clip > 0); g++)
        if (!c->streams[g].normed || !is_known(c, g, c->streams[g].norm_place))
            return VPPS_REFUSE(c, "reads the norm of group %u's gradients without a barrier in between", g);
    if (h->guard && c->n_added < c->n_terms) return VPPS_REFUSE(c, "reads the loss before all terms are added up");
    if (h->guard && !is_known(c, 0, c->streams[0].loss_place))
        return VPPS_REFUSE(c, "reads the loss without a barrier in between");
    return true;
}

static bool update_parameter(vpps_checker *c, vpps_param p) {
    const vpps_parameter_data *data = &c->g->model->params[p];
    if (data->kind == VPPS_MATRIX) {
        for (uint32_t g = 0; g < c->n_groups; g++) {
            const uint32_t read = c->matrix_read[(size_t)p * c->n_groups + g];
            if (read && !is_known(c, g, read - 1))
                return VPPS_REFUSE(c, "updates %s, which group %u reads without a barrier in between", data->name, g);
        }
        c->matrix_spent[p] = true;
        return true;
    }
    for (uint32_t m = 0; m < c->group_size; m++) {
        const vpps_rows rows = vpps_rows_of(data->rows, c->target->rows.unit, c->n_vps, vpps_check_vp(c, m));
        vpps_check_act_as(c, m);
        if (!vpps_check_write(c, c->target->values[p] + rows.first, rows.end - rows.first, 1, 0)) return false;
    }
    return true;
}

bool vpps_check_update(vpps_checker *c) {
    vpps_stream *stream = &c->streams[c->group];
    if (!steps(c) || stream->updated) return VPPS_REFUSE(c, "unexpected update");
    stream->updated = true;
    if (!gradients_done(c) || !knows_norms(c)) return false;
    act_together(c);
    for (uint32_t i = 0; i < c->header->n_blocks && c->header->lasting; i++)
        if (!read_factors(c, &c->blocks[i], 0, c->blocks[i].block->n, true)) return false;
    if (!each_entry(c, true)) return false;
    for (uint32_t p = 0; p < c->g->model->n_params; p++)
        if (c->touched[p] && !update_parameter(c, p)) return false;
    return true;
}

/* ---------------------------------------------------------------- the end */

static bool is_there(const vpps_checker *c, vpps_location at) {
    for (uint32_t k = at.offset; k < at.offset + at.words; k++)
        if (c->pool[k].tensor != at.tensor) return false;
    return true;
}

/* Returns whether a requested output is a parameter. The host copied it before the batch: the update may change it. */
static bool is_parameter(const vpps_checker *c, vpps_location at) {
    for (uint32_t p = 0; p < c->g->model->n_params; p++) {
        const vpps_parameter_data *d = &c->g->model->params[p];
        const uint32_t first = c->target->values[p];
        if (d->kind != VPPS_MATRIX && !vpps_is_sharded(d) && at.offset >= first &&
            at.offset - first < vpps_param_elems(d))
            return true;
    }
    return false;
}

bool vpps_check_outputs(vpps_checker *c) {
    for (uint32_t i = 0; i < c->request->n_outputs; i++) {
        const uint32_t output = vpps_check_output(c, c->request->outputs[i]);
        if (output == VPPS_NONE) return false;
        const vpps_location at = vpps_check_location(c, output);
        if (!c->outputs || c->outputs[i] != at.offset)
            return VPPS_REFUSE(c, "output %u is not at the offset where the host reads it", i);
        if (!is_there(c, at) && !is_parameter(c, at))
            return VPPS_REFUSE(c, "output %u is overwritten before it is read", i);
    }
    return true;
}

/* Checks that requested gradients lie where the host reads them. A gradient may be taken as zero only if the loss ignores its node. */
static bool check_asked(vpps_checker *c) {
    for (uint32_t i = 0; i < c->request->n_gradient_nodes; i++) {
        uint32_t record, node, k, p;
        const uint32_t offset = c->gradients ? c->gradients[i] : VPPS_NONE;
        if (!vpps_check_resolve(c->g, c->request->gradient_nodes[i], &record, &node)) return false;
        if (!c->needed[record] && offset == VPPS_NONE) continue;
        const uint32_t output = vpps_check_output(c, c->request->gradient_nodes[i]);
        if (output == VPPS_NONE) return false;
        const vpps_checked_block *b = &c->blocks[vpps_check_block_of(c, output, &k, &p)];
        const uint32_t d = b->cell->c->gradient_of[k];
        if (offset == VPPS_NONE && (d == VPPS_NONE || !vpps_check_live(c, b, p))) continue;
        const vpps_location at = d == VPPS_NONE ? (vpps_location){.offset = VPPS_NONE} : vpps_check_operand(c, b, d, p);
        if (offset == VPPS_NONE || offset != at.offset)
            return VPPS_REFUSE(c, "gradient %u is not at the offset where the host reads it", i);
        if (!is_there(c, at)) return VPPS_REFUSE(c, "gradient %u is overwritten before it is read", i);
    }
    return true;
}

/* If a later update uses the gradients: checks that all of them are complete. */
static bool check_kept_gradients(vpps_checker *c) {
    for (c->group = 0; c->group < c->n_groups; c->group++)
        if (!gradients_done(c)) return false;
    for (uint32_t i = 0; i < c->header->n_tables; i++) {
        const vpps_table *t = vpps_table_at(c->script, i);
        for (uint32_t k = 0; k < t->n; k++)
            if (!entry_is_made(c, i, c->script[t->rows + k])) return false;
    }
    return true;
}

bool vpps_check_end(vpps_checker *c) {
    for (uint32_t i = 0; i < c->header->n_blocks; i++) {
        const vpps_checked_block *b = &c->blocks[i];
        for (uint32_t s = 0; b->block->n && s < b->cell->c->n_stages; s++)
            for (uint32_t p = 0; p < b->block->n; p++)
                if (!vpps_bit(c->ran, b->stage_bits[s] + p))
                    return VPPS_REFUSE(c, "block %u (cell %s): vertex %u never runs stage %u", i, b->cell->c->name, p,
                                       s);
    }
    if (!c->request->halves && !vpps_check_outputs(c)) return false;
    if (!c->training) return true;
    if (!check_asked(c)) return false;
    if (c->n_added < terms_of_loss(c))
        return VPPS_REFUSE(c, "only %u of the loss's %u terms are added up", c->n_added, terms_of_loss(c));
    if (!steps(c)) return check_kept_gradients(c);
    for (uint32_t g = 0; g < c->n_groups; g++)
        if (!c->streams[g].updated) return VPPS_REFUSE(c, "group %u never updates its parameters", g);
    return true;
}
