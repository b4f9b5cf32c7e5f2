/* blocks.c - checks the blocks of the batch's program (a block: vertices of one cell that one group of CTAs or threads
 * runs): which vertices a block has, and where their values lie. */
#include "script/verify/checker.h"

#include <inttypes.h>

bool vpps_refuse_vertex(vpps_checker *c, const vpps_checked_block *b, uint32_t p, const char *what) {
    return VPPS_REFUSE(c, "block %u (cell %s), vertex %u: %s", (uint32_t)(b - c->blocks), b->cell->c->name, p, what);
}

/* Finds the arrays that the batch's program has for block b: the vertices of one cell that one group of
 * threads or CTAs runs. False: they do not lie inside the program. */
static bool find_arrays(vpps_checker *c, vpps_checked_block *b) {
    const vpps_block_view *view = &b->view;
    vpps_view_block(c->script, b->block, b->cell->c, &b->view);
    if (view->end > c->words)
        return VPPS_REFUSE(c, "block %u: its arrays end at word %" PRIu64 " of a script of %zu",
                           (uint32_t)(b - c->blocks), view->end, c->words);
    for (uint32_t k = 0; k < b->cell->c->n_outputs; k++)
        for (uint32_t p = 0; view->gradients[k] && p < b->block->n; p++)
            if (view->gradient_starts[k][p] > view->gradient_starts[k][p + 1] ||
                (view->pairs[k] && view->pair_starts[k][p] > view->pair_starts[k][p + 1]))
                return vpps_refuse_vertex(c, b, p, "contribution list of negative length");
    return true;
}

uint32_t vpps_check_add_tensor(vpps_checker *c, uint64_t offset, vpps_tensor t) {
    const uint64_t end = t.items ? offset + (uint64_t)(t.items - 1) * t.stride + t.words : 0;
    t.offset = (uint32_t)offset;
    if (t.items && (offset < c->target->batch || end > c->pool_words)) {
        vpps_check_record(c, "pool words %" PRIu64 " to %" PRIu64 " are used; the batch has words %u to %u", offset,
                          end, c->target->batch, c->pool_words);
        return VPPS_NONE;
    }
    if (!VPPS_RESERVE(c->tensors, c->n_tensors + 1u)) {
        c->status = VPPS_MEMORY;
        return VPPS_NONE;
    }
    c->tensors[c->n_tensors] = t;
    return c->n_tensors++;
}

bool vpps_check_add_kept(vpps_checker *c, const vpps_checked_block *b, uint32_t v, uint32_t record, uint32_t first,
                         uint32_t n) {
    const vpps_cell_value *x = &b->cell->c->values[v];
    const uint32_t words = vpps_value_words(x);
    for (uint32_t s = 0; s < vpps_shares_of(x); s++) {
        const vpps_tensor t = {.kind = VPPS_TENSOR_KEPT,
                               .stride = b->cell->c->kept_words[x->record],
                               .words = words,
                               .items = n,
                               .first = first,
                               .block = (uint32_t)(b - c->blocks),
                               .index = v,
                               .share = s};
        const uint64_t at = (uint64_t)record + x->offset + (uint64_t)s * vpps_share_words(words);
        if (vpps_check_add_tensor(c, at, t) == VPPS_NONE) return false;
    }
    return true;
}

/* The cell of the vertices in block b computes gradients (contributions) for the values that it reads. Reserves bits, one
 * for each contribution of a vertex or, by a list input, of a node; a contribution's bit is set when it is added up. */
static void count_contributions(vpps_checker *c, const vpps_checked_block *b) {
    const vpps_compiled_cell *cell = b->cell->c;
    for (uint32_t j = 0; j < cell->n_contributions; j++) {
        const vpps_cell_value *x = &cell->values[cell->contributions[j].value];
        b->contribution_bits[j] = c->n_taken;
        c->n_taken += (uint64_t)vpps_items(b->block, x->axis) * vpps_shares_of(x);
    }
}

static bool add_tensors(vpps_checker *c, vpps_checked_block *b) {
    const vpps_compiled_cell *cell = b->cell->c;
    b->kept = vpps_check_zeros(c, cell->n_values, sizeof *b->kept);
    b->pass_record = vpps_check_zeros(c, cell->n_values, sizeof *b->pass_record);
    b->contributions = vpps_check_zeros(c, cell->n_contributions, sizeof *b->contributions);
    b->contribution_bits = vpps_check_zeros(c, cell->n_contributions, sizeof *b->contribution_bits);
    b->stage_bits = vpps_check_zeros(c, cell->n_stages, sizeof *b->stage_bits);
    if (!b->kept || !b->pass_record || !b->contributions || !b->contribution_bits || !b->stage_bits) return false;
    for (uint32_t v = 0; v < cell->n_values; v++) {
        const vpps_cell_value *x = &cell->values[v];
        b->kept[v] = VPPS_NONE;
        if (x->stage == VPPS_NONE || !x->kept) continue;
        if (vpps_is_pass_record(x->record)) {
            b->pass_record[v] = vpps_check_zeros(c, b->block->n, sizeof **b->pass_record);
            if (!b->pass_record[v]) return false;
            continue;
        }
        b->kept[v] = c->n_tensors;
        if (!vpps_check_add_kept(c, b, v, b->block->kept[x->axis], 0, vpps_items(b->block, x->axis))) return false;
    }
    for (uint32_t s = 0; s < cell->n_stages; s++) {
        b->stage_bits[s] = c->n_ran;
        c->n_ran += b->block->n;
    }
    count_contributions(c, b);
    return true;
}

static bool open_vertices(vpps_checker *c, vpps_checked_block *b, uint32_t number) {
    for (uint32_t p = 0; p < b->block->n; p++) {
        const uint32_t r = b->view.vertices[p];
        if (r >= c->n_records || !c->needed[r])
            return vpps_refuse_vertex(c, b, p, "vertex that the request does not need");
        if (c->block_of[r] != VPPS_NONE) return vpps_refuse_vertex(c, b, p, "duplicate vertex");
        c->block_of[r] = number;
        c->position_of[r] = p;
        if (b->cell->record == VPPS_NONE && !vpps_check_cell(c, b->cell, r)) return false;
        if (!vpps_check_alike(c->g, r, b->cell->record)) return vpps_refuse_vertex(c, b, p, "vertex of another cell");
    }
    return true;
}

static bool open_block(vpps_checker *c, uint32_t number) {
    vpps_checked_block *b = &c->blocks[number];
    b->block = (const vpps_block *)(const void *)(c->script + c->header->blocks) + number;
    if (b->block->cell >= c->n_cells || b->block->group >= c->n_groups)
        return VPPS_REFUSE(c, "block %u: cell %u, group %u; the script has %u cells, %u groups", number, b->block->cell,
                           b->block->group, c->n_cells, c->n_groups);
    b->cell = &c->checked[b->block->cell];
    b->first_output = c->n_outputs;
    const vpps_compiled_cell *cell = b->cell->c;
    for (uint32_t l = 0; l < VPPS_CELL_LISTS; l++)
        if (b->block->members[l] && (l >= cell->n_lists || !b->block->n))
            return VPPS_REFUSE(c, "block %u: list members in a cell without lists", number);
    if (!find_arrays(c, b)) return false;
    if (!b->block->n) return true;
    if (cell->needs.training != c->training || cell->needs.drops != (c->training && !c->request->no_dropout) ||
        cell->needs.group != c->group_size)
        return VPPS_REFUSE(c, "block %u: cell %s was compiled for groups of %u%s", number, cell->name,
                           cell->needs.group, cell->needs.training ? ", for training" : "");
    if (!open_vertices(c, b, number) || !add_tensors(c, b)) return false;
    const uint64_t outputs = (uint64_t)c->n_outputs + (uint64_t)b->block->n * cell->n_outputs;
    if (outputs >= VPPS_NONE) return VPPS_REFUSE(c, "the script has too many outputs");
    c->n_outputs = (uint32_t)outputs;
    return true;
}

static bool number_outputs(vpps_checker *c) {
    c->output_block = vpps_check_zeros(c, c->n_outputs, sizeof *c->output_block);
    for (uint32_t i = 0; c->output_block && i < c->header->n_blocks; i++) {
        const uint32_t end = i + 1 < c->header->n_blocks ? c->blocks[i + 1].first_output : c->n_outputs;
        for (uint32_t o = c->blocks[i].first_output; o < end; o++) c->output_block[o] = i;
    }
    return c->output_block != NULL;
}

bool vpps_check_blocks(vpps_checker *c) {
    const uint32_t n = c->header->n_blocks;
    if (!vpps_check_words(c, c->header->blocks, (uint64_t)n * VPPS_BLOCK_WORDS, "the blocks")) return false;
    c->blocks = vpps_check_zeros(c, n, sizeof *c->blocks);
    c->checked = vpps_check_zeros(c, c->n_cells, sizeof *c->checked);
    c->block_of = vpps_check_zeros(c, c->n_records, sizeof *c->block_of);
    c->position_of = vpps_check_zeros(c, c->n_records, sizeof *c->position_of);
    if (!c->blocks || !c->checked || !c->block_of || !c->position_of) return false;
    for (uint32_t i = 0; i < c->n_cells; i++) {
        const vpps_compiled_cell *cell = c->checked[i].c = c->cells[i];
        c->checked[i].record = VPPS_NONE;
        bool lists = cell->n_lists <= VPPS_CELL_LISTS;
        for (uint32_t k = 0; k < cell->n_inputs && k < VPPS_CELL_MOST; k++)
            lists = lists && cell->input_axis[k] <= cell->n_lists;
        if (!lists || cell->n_inputs > VPPS_CELL_MOST || cell->n_outputs > VPPS_CELL_MOST ||
            cell->n_lookups > VPPS_CELL_MOST || cell->n_words > VPPS_CELL_MOST)
            return VPPS_REFUSE(c, "cell %s: counts out of range", cell->name);
    }
    memset(c->block_of, 0xff, c->n_records * sizeof *c->block_of);
    for (uint32_t i = 0; i < n; i++)
        if (!open_block(c, i)) return false;
    for (uint32_t r = 0; r < c->n_records; r++)
        if (c->needed[r] && c->block_of[r] == VPPS_NONE) return VPPS_REFUSE(c, "needed vertex %u is in no block", r);
    c->ran = vpps_check_zeros(c, vpps_bit_words(c->n_ran), sizeof *c->ran);
    c->taken = vpps_check_zeros(c, vpps_bit_words(c->n_taken), sizeof *c->taken);
    return c->ran && c->taken && number_outputs(c);
}

uint32_t vpps_check_block_of(const vpps_checker *c, uint32_t output, uint32_t *k, uint32_t *position) {
    const uint32_t block = c->output_block[output], n = c->blocks[block].block->n;
    *k = (output - c->blocks[block].first_output) / n;
    *position = (output - c->blocks[block].first_output) % n;
    return block;
}

uint32_t vpps_check_output(vpps_checker *c, vpps_node x) {
    uint32_t record, node;
    if (vpps_check_resolve(c->g, x, &record, &node) && c->block_of[record] != VPPS_NONE) {
        const vpps_checked_block *b = &c->blocks[c->block_of[record]];
        for (uint32_t k = 0; k < b->cell->c->n_outputs; k++)
            if (b->cell->c->outputs[k].node == node && vpps_offers(b->cell->c, k))
                return b->first_output + k * b->block->n + c->position_of[record];
    }
    vpps_check_record(c, "node %u: its vertex's cell was compiled without this output", x);
    return VPPS_NONE;
}

vpps_location vpps_check_location(const vpps_checker *c, uint32_t output) {
    uint32_t k, p;
    const vpps_checked_block *b = &c->blocks[vpps_check_block_of(c, output, &k, &p)];
    return vpps_check_operand(c, b, b->cell->c->outputs[k].value, p);
}
