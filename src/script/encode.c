/* encode.c - see encode.h; task.h has the layout. */
#include "script/encode.h"

#include "script/contributions.h"
#include "script/step.h"
#include "script/writer.h"

static uint32_t float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* ---------------------------------------------------------------- where values lie */

static uint32_t entry_words(const vpps_batch_work *w, uint32_t table) {
    return w->g->model->params[table].rows * w->g->model->params[table].cols;
}

/* Where a table's entries lie: row r at first + r * words. A kept value's "row" is its offset. */
typedef struct entry_places {
    uint32_t first, words;
} entry_places;

static entry_places places_of(const vpps_batch_work *w, const vpps_cell_lookup *l) {
    if (l->table == VPPS_NO_PARAM) return (entry_places){0, 1};
    return (entry_places){w->machine->values[l->table], entry_words(w, l->table)};
}

/* Offsets of the entries that a block's vertices look up. */
static void write_entries(const vpps_batch_work *w, const vpps_block_work *b, const vpps_cell_lookup *l, uint32_t *at) {
    const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
    const entry_places e = places_of(w, l);
    for (uint32_t p = 0, n = b->n; p < n; p++) at[p] = e.first + vpps_row_of(w, &v[p], l) * e.words;
}

/* Every block's outputs: where their values lie, in the block's record or where the parameter that it is lies. */
static void place_outputs(const vpps_batch_work *w, uint32_t *all) {
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        const vpps_compiled_cell *c = w->used[b->type].cell;
        const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
        for (uint32_t k = 0; k < c->n_outputs; k++) {
            if (c->outputs[k].value == VPPS_NONE) continue; /* nobody reads it */
            const vpps_cell_value *x = &c->values[c->outputs[k].value];
            uint32_t *output_at = all + k;
            if (x->kind == VPPS_VALUE_LOOKUP) {
                const vpps_cell_lookup *l = &c->lookups[x->lookup];
                const entry_places e = places_of(w, l);
                for (uint32_t p = 0; p < b->n; p++)
                    output_at[v[p].first_output] = e.first + vpps_row_of(w, &v[p], l) * e.words;
                continue;
            }
            const bool parameter = x->kind == VPPS_VALUE_PARAMETER;
            const uint32_t step = parameter ? 0 : c->kept_words[0];
            uint32_t at = parameter ? w->machine->values[x->vector] : b->kept[0] + x->offset;
            for (uint32_t p = 0, n = b->n; p < n; p++, at += step) output_at[v[p].first_output] = at;
        }
    }
}

/* Where the gradients lie that the host reads. */
static void place_gradients(const vpps_batch_work *w, uint32_t *gradient_at) {
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        const vpps_compiled_cell *c = w->used[b->type].cell;
        const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
        for (uint64_t left = c->needs.asked_gradients; left; left &= left - 1) {
            const uint32_t k = (uint32_t)__builtin_ctzll(left), d = c->gradient_of[k];
            if (d == VPPS_NONE) continue;
            for (uint32_t p = 0; p < b->n; p++)
                gradient_at[v[p].first_output + k] = b->kept[0] + p * c->kept_words[0] + c->values[d].offset;
        }
    }
}

uint32_t vpps_batch_output(const vpps_batch *b, uint32_t i) {
    return b->work->places.output_at[b->work->requested[i].output];
}

uint32_t vpps_batch_gradient(const vpps_batch *b, uint32_t i) {
    const vpps_batch_work *w = b->work;
    const vpps_output_ref *x = &w->requested[w->n_requested + i];
    const bool any = w->needed[x->vertex] && w->vertices[x->vertex].gradients;
    return any ? w->places.gradient_at[x->output] : VPPS_NONE;
}

/* ---------------------------------------------------------------- blocks */

/* Word k of every vertex of a block. */
static void write_words(const vpps_batch_work *w, const vpps_block_work *b, const vpps_cell_word *word, uint32_t *at) {
    const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
    for (uint32_t p = 0, n = b->n; p < n; p++)
        at[p] = word->kind == VPPS_WORD_DROPOUT ? w->rests[v[p].vertex].dropout
                                                : vpps_word_of(w, &v[p], word->kind, word->value);
}

/* A list's starts, then the offsets of each of its inputs; the address behind them. */
static uint32_t *write_list(const vpps_batch_work *w, const vpps_block_work *b, const vpps_compiled_cell *c,
                            uint32_t list, uint32_t *at) {
    const vpps_ordered_vertex *v = vpps_vertices_of(w, b);
    for (uint32_t p = 0; p < b->n; p++) at[p] = w->rests[v[p].vertex].first_member[list];
    at[b->n] = b->members[list];
    at += b->n + 1;
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        if (c->input_domain[k] != list + 1) continue;
        const vpps_input_place place = vpps_place_of_input(c, k);
        for (uint32_t p = 0; p < b->n; p++) {
            const vpps_vertex_rest *rest = &w->rests[v[p].vertex];
            const uint32_t *sources = w->source_outputs + vpps_source_at(w, &v[p], place);
            uint32_t *to = at + rest->first_member[list];
            for (uint32_t m = 0; m < rest->members[list]; m++) to[m] = w->places.output_at[sources[m]];
        }
        at += b->members[list];
    }
    return at;
}

static void encode_block(vpps_batch_work *w, uint32_t i, vpps_writer *to) {
    vpps_block_work *block = &w->blocks[i];
    const vpps_compiled_cell *c = w->used[block->type].cell;
    const uint32_t n = block->n, *output_at = w->places.output_at, *outputs = w->source_outputs;
    const vpps_ordered_vertex *v = vpps_vertices_of(w, block);
    uint64_t words = (uint64_t)n * (1 + c->inputs_of[0] + c->n_lookups + c->n_words + c->is_data);
    for (uint32_t l = 0; l < c->n_lists; l++)
        words += (uint64_t)n + 1 + (uint64_t)c->inputs_of[l + 1] * block->members[l];
    block->arrays = vpps_write_room(to, words);
    if (to->failed) return;
    uint32_t *at = to->words + block->arrays;
    for (uint32_t p = 0; p < n; p++) at[p] = v[p].vertex;
    at += n;
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        if (c->input_domain[k]) continue;
        const vpps_input_place place = vpps_place_of_input(c, k);
        for (uint32_t p = 0; p < n; p++) at[p] = output_at[outputs[vpps_source_at(w, &v[p], place)]];
        at += n;
    }
    for (uint32_t k = 0; k < c->n_lookups; k++, at += n) write_entries(w, block, &c->lookups[k], at);
    for (uint32_t k = 0; k < c->n_words; k++, at += n) write_words(w, block, &c->words[k], at);
    if (c->is_data) at += n; /* addresses come when data are there */
    for (uint32_t l = 0; l < c->n_lists; l++) at = write_list(w, block, c, l, at);
}

/* Data of input ops, copied as they lie in the graph. */
static void encode_data(const vpps_batch_work *w, uint32_t i, vpps_writer *to) {
    const vpps_block_work *block = &w->blocks[i];
    const vpps_compiled_cell *c = w->used[block->type].cell;
    if (!c->is_data || to->failed) return;
    const uint32_t words = vpps_value_words(&c->values[c->outputs[0].value]), n = block->n;
    const uint32_t data = vpps_write_room(to, (uint64_t)n * words);
    if (to->failed) return;
    uint32_t *addresses = to->words + block->arrays + (size_t)n * (1 + c->n_words);
    for (uint32_t p = 0; p < n; p++) {
        addresses[p] = data + p * words;
        memcpy(to->words + addresses[p], w->g->data + vpps_vertices_of(w, block)[p].words, words * sizeof(float));
    }
}

/* Starts of the lists of contributions to each output with a gradient, which follow the block's other arrays. */
static void encode_gradients(vpps_batch_work *w, uint32_t i, vpps_writer *to) {
    const vpps_block_work *block = &w->blocks[i];
    const vpps_used_type *u = &w->used[block->type];
    const vpps_ordered_vertex *v = vpps_vertices_of(w, block);
    const uint32_t *counts = w->contributions.counts;
    uint32_t *list_at = w->places.list_at;
    for (uint32_t k = 0; k < u->cell->n_outputs && u->needs.training; k++) {
        if (!(u->needs.gradient_out >> k & 1)) continue;
        const bool all = block->gradients >> k & 1;
        const uint32_t n = block->n, lists = vpps_write_room(to, (uint64_t)n + 1) + n + 1;
        if (to->failed) return;
        uint32_t *starts = to->words + lists - n - 1;
        uint64_t at = 0;
        for (uint32_t p = 0; p < n; p++) {
            starts[p] = (uint32_t)at;
            if (!all && !(w->vertices[v[p].vertex].gradients >> k & 1)) continue;
            list_at[v[p].first_output + k] = (uint32_t)(lists + at);
            at += counts[v[p].first_output + k];
        }
        starts[n] = (uint32_t)at;
        vpps_write_room(to, at);
        if (to->failed) return;
    }
}

/* ---------------------------------------------------------------- seeds: the loss's gradient */

/* How many constants there are, of all groups. */
static uint32_t count_constants(const vpps_batch_work *w, vpps_group_constants *constants) {
    uint32_t n = 0;
    memset(constants, 0, w->n_groups * sizeof *constants);
    for (uint32_t i = 0; i < w->n_seeds; i++) {
        vpps_group_constants *c = &constants[vpps_group_of(w, w->seeds[i].to.vertex)];
        const uint32_t factor = float_bits(w->seeds[i].factor);
        if (c->n && factor == c->last) continue;
        c->last = factor;
        c->n++;
        n++;
    }
    return n;
}

/* Every term's factor lies in the pool, as a contribution to the term. */
static void encode_seeds(vpps_batch_work *w, vpps_writer *to) {
    for (uint32_t g = 0, at = w->places.constants_at; g < w->n_groups; g++) {
        vpps_group_constants *c = &w->places.constants[g];
        c->list = vpps_write_room(to, 2 * (uint64_t)c->n);
        if (to->failed) return;
        c->next = c->list;
        c->at = at;
        at += c->n;
    }
    for (uint32_t i = 0; i < w->n_seeds; i++) {
        vpps_group_constants *c = &w->places.constants[vpps_group_of(w, w->seeds[i].to.vertex)];
        uint32_t *list_at = &w->places.list_at[w->seeds[i].to.output];
        const uint32_t factor = float_bits(w->seeds[i].factor);
        if (c->next == c->list || factor != c->last) {
            to->words[c->next++] = c->at++;
            to->words[c->next++] = c->last = factor;
        }
        if (*list_at != VPPS_NONE) to->words[(*list_at)++] = c->at - 1;
    }
}

/* ---------------------------------------------------------------- tables */

/* One description a table, its entries in the order of their first use. */
static uint32_t encode_tables(const vpps_batch_work *w, uint32_t *n_tables, vpps_writer *to) {
    const vpps_model *model = w->g->model;
    const vpps_contributions *all = &w->contributions;
    *n_tables = 0;
    for (uint32_t p = 0; p < model->n_params; p++) *n_tables += all->tables[p].n > 0;
    const uint32_t tables = vpps_write_room(to, (uint64_t)*n_tables * VPPS_TABLE_WORDS);
    uint32_t t = 0, gradients = w->entry_gradients;
    for (uint32_t p = 0; p < model->n_params && !to->failed && t < *n_tables; p++) {
        const uint32_t n = all->tables[p].n;
        if (!n) continue;
        const uint32_t rows = vpps_write_room(to, n);
        if (to->failed) return tables;
        for (uint32_t i = 0; i < all->n_entries; i++)
            if (all->entries[i].table == p) to->words[rows + all->entries[i].number] = all->entries[i].row;
        const vpps_table table = {.param = p, .n = n, .gradients = gradients, .rows = rows};
        memcpy(to->words + tables + (size_t)t * VPPS_TABLE_WORDS, &table, sizeof table);
        gradients += n * model->params[p].rows * model->params[p].cols;
        t++;
    }
    return tables;
}

/* What a slice's ENTRIES of a table adds up, but for the slice's contributions, for which room is left; its address, or 0: the
 * slice contributes nothing to the table. */
static uint32_t encode_sums(vpps_batch_work *w, const vpps_table *t, vpps_writer *to) {
    const vpps_entry *entries = w->contributions.entries;
    const vpps_entry_lists *lists = &w->places.entries;
    uint32_t n = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < lists->n_touched; i++) {
        if (entries[lists->touched[i]].table != t->param) continue;
        n++;
        count += lists->of[lists->touched[i]].count;
    }
    if (!n) return 0;
    const uint32_t words = entry_words(w, t->param), address = vpps_write_room(to, 2 + 2 * (uint64_t)n + count);
    if (to->failed) return 0;
    uint32_t *numbers = to->words + address + 1, *starts = numbers + n, at = 0;
    to->words[address] = n;
    for (uint32_t i = 0; i < lists->n_touched; i++) {
        const vpps_entry *e = &entries[lists->touched[i]];
        vpps_entry_list *list = &lists->of[lists->touched[i]];
        if (e->table != t->param) continue;
        *numbers++ = e->number;
        *starts++ = at;
        list->at = address + 2 + 2 * n + at;
        if (list->made) to->words[list->at++] = t->gradients + e->number * words;
        at += list->count;
    }
    *starts = at;
    return address;
}

/* Of every slice, each table's sums: their addresses go to sums[slice * n_tables + table]. */
static void encode_entries(vpps_batch_work *w, uint32_t tables, uint32_t n_tables, uint32_t *sums, vpps_writer *to) {
    for (uint32_t slice = 0; slice < vpps_all_slices(w) && n_tables && !to->failed; slice++) {
        vpps_touch_entries(w, &w->contributions, slice, &w->places.entries);
        for (uint32_t i = 0; i < n_tables && !to->failed; i++) {
            vpps_table t;
            memcpy(&t, to->words + tables + (size_t)i * VPPS_TABLE_WORDS, sizeof t);
            sums[(size_t)slice * n_tables + i] = encode_sums(w, &t, to);
        }
        if (!to->failed) vpps_write_entries(w, &w->contributions, slice, &w->places.entries, to->words);
    }
}

/* ---------------------------------------------------------------- tasks */

/* Where all VPs meet at a slice's end: before, or after, the parameters' gradients. Those of groups come before these. */
static uint32_t common_barrier(const vpps_batch_work *w, uint32_t slice, bool after) {
    uint32_t first = 0;
    for (uint32_t g = 0; g < w->n_groups; g++) first += w->group_phases[g];
    return first + 2 * slice + after;
}

/* Are the factors of all the cell's parameters' gradients there once a level's main part is done? */
static bool outers_by_level(const vpps_compiled_cell *c) {
    for (uint32_t i = 0; i < c->n_outers; i++)
        if (c->values[c->outers[i].dy].part != VPPS_PART_BACK_MAIN) return false;
    return c->n_outers > 0;
}

/* VPPS_GRADIENTS_ACCUMULATE: gradients are added after every level, where one group has all VPs. */
static bool accumulates(const vpps_batch_work *w, uint32_t block) {
    return w->training && w->request->gradients == VPPS_GRADIENTS_ACCUMULATE && w->n_groups == 1 &&
           outers_by_level(w->used[w->blocks[block].type].cell);
}

static bool is_last_main(const vpps_compiled_cell *c, uint32_t stage) {
    return c->stages[stage].part == VPPS_PART_BACK_MAIN &&
           (stage + 1 == c->n_stages || c->stages[stage + 1].part != VPPS_PART_BACK_MAIN);
}

/* The gradients of parameters from tasks [first, end), which ended the phase before. */
static void encode_outers(const vpps_batch_work *w, uint32_t first, uint32_t end, vpps_writer *to) {
    for (uint32_t i = first; i < end; i++) {
        const vpps_task_work *t = &w->tasks[i];
        if (accumulates(w, t->block) && is_last_main(w->used[w->blocks[t->block].type].cell, t->stage))
            VPPS_WRITE_TASK(to, OUTER, t->block, t->first, t->n);
    }
}

/* The tasks of a slice of a group, from *task on, and the gradients of parameters that are made between them. Where it ends,
 * all VPs meet. */
static void encode_slice(const vpps_batch_work *w, uint32_t slice, uint32_t g, uint32_t *task, uint32_t *barriers,
                         vpps_writer *to) {
    const uint32_t end = w->n_blocks ? w->blocks[vpps_first_of_slice(w, slice) + g].slice_end : 0;
    uint32_t i = *task, phase = slice && i < w->n_tasks ? w->tasks[i].phase : 0, phase_start = i;
    for (; i < w->n_tasks && w->tasks[i].group == g && w->tasks[i].phase < end; i++) {
        const vpps_task_work *t = &w->tasks[i];
        if (t->phase != phase) {
            vpps_write_barrier(to, (*barriers)++, w->group_size);
            encode_outers(w, phase_start, i, to);
            phase = t->phase;
            phase_start = i;
        }
        vpps_write_task(to, (vpps_task){.kind = VPPS_TASK_STAGE,
                                        .operands = {t->block, t->first, t->n},
                                        .stage = t->stage,
                                        .passing = t->passing,
                                        .contributions = t->contributions});
    }
    *task = i;
    vpps_write_barrier(to, common_barrier(w, slice, false), w->machine->n_vps);
    if (!w->training) return;
    encode_outers(w, phase_start, i, to);
    for (uint32_t k = vpps_first_of_slice(w, slice); k < w->n_blocks; k = vpps_next_of_slice(w, k)) {
        const vpps_block_work *block = &w->blocks[k];
        if (block->n && w->used[block->type].cell->n_outers && !accumulates(w, k))
            VPPS_WRITE_TASK(to, OUTER, k, 0, block->n);
    }
}

/* Where all VPs meet before the norm, where there are several slices: those who have added an entry's gradient up in the last one
 * are not those who own it. Behind the barriers of slices. */
static bool meets_before_norm(const vpps_batch_work *w, uint32_t n_tables) {
    return w->request->part == VPPS_STEP_WHOLE && vpps_all_slices(w) > 1 && n_tables;
}

/* What a group runs, each VP for its own rows and entries. `losses`: the addresses of the slices' terms, and the last one's
 * end; `sums`: see encode_entries. */
static void encode_group(const vpps_batch_work *w, uint32_t g, uint32_t *task, uint32_t *barriers,
                         const uint32_t *losses, const uint32_t *sums, uint32_t n_tables, vpps_writer *to) {
    const uint32_t n = vpps_all_slices(w);
    const vpps_group_constants *constants = &w->places.constants[g];
    if (constants->n) VPPS_WRITE_TASK(to, CONSTANTS, constants->list, constants->n);
    for (uint32_t slice = 0; slice < n; slice++) {
        encode_slice(w, slice, g, task, barriers, to);
        if (w->training && g == 0) VPPS_WRITE_TASK(to, LOSS, losses[slice], (losses[slice + 1] - losses[slice]) / 2);
        for (uint32_t i = 0; i < n_tables; i++)
            if (sums[(size_t)slice * n_tables + i]) VPPS_WRITE_TASK(to, ENTRIES, i, sums[(size_t)slice * n_tables + i]);
        if (w->training && slice + 1 < n) vpps_write_barrier(to, common_barrier(w, slice, true), w->machine->n_vps);
    }
    if (w->training && w->request->part == VPPS_STEP_WHOLE) {
        if (meets_before_norm(w, n_tables)) vpps_write_barrier(to, common_barrier(w, n, false), w->machine->n_vps);
        if (w->request->guard || w->request->optimizer->clip > 0) VPPS_WRITE_TASK(to, NORM, 0);
        /* the norm's parts; and gradients are made of parameters, too: a lookup's entry that a matrix is multiplied with */
        vpps_write_barrier(to, common_barrier(w, n - 1, true), w->machine->n_vps);
        VPPS_WRITE_TASK(to, UPDATE, 0);
    }
    VPPS_WRITE_TASK(to, END, 0);
}

/* The loss's terms, slice after slice. */
static void encode_losses(const vpps_batch_work *w, uint32_t *losses, vpps_writer *to) {
    losses[0] = vpps_write_room(to, 2 * (uint64_t)w->n_seeds);
    for (uint32_t slice = 0; slice < vpps_all_slices(w) && !to->failed; slice++) {
        losses[slice + 1] = losses[slice];
        for (uint32_t i = 0; i < w->n_seeds; i++) {
            const vpps_seed *seed = &w->seeds[i];
            if (w->place[seed->to.vertex] - slice * w->n_groups >= w->n_groups) continue; /* of another slice */
            to->words[losses[slice + 1]++] = w->places.output_at[seed->to.output];
            to->words[losses[slice + 1]++] = float_bits(seed->factor);
        }
    }
}

static void write_header(const vpps_batch_work *w, vpps_task_header h, vpps_writer *to) {
    const vpps_batch_request *request = w->request;
    if (w->training) {
        vpps_describe_step(&h, request);
        h.lasting = request->part == VPPS_STEP_WHOLE && vpps_all_slices(w) == 1;
    }
    h.magic = VPPS_TASK_MAGIC;
    h.words = (uint32_t)to->n;
    h.step = request->step;
    h.dropout_key[0] = (uint32_t)request->dropout_key;
    h.dropout_key[1] = (uint32_t)(request->dropout_key >> 32);
    memcpy(to->words, &h, sizeof h);
}

/* Room for all. */
static bool open_places(const vpps_batch_work *w, vpps_script_places *p) {
    if (!VPPS_RESERVE(p->output_at, p->output_at_capacity, w->n_outputs + 1u) ||
        !VPPS_RESERVE(p->list_at, p->list_at_capacity, w->n_outputs + 1u) ||
        !VPPS_RESERVE(p->constants, p->constants_capacity, w->n_groups)) {
        return false;
    }
    memset(p->list_at, 0xff, w->n_outputs * sizeof *p->list_at);
    if (w->n_asked && !VPPS_RESERVE(p->gradient_at, p->gradient_at_capacity, w->n_outputs + 1u)) return false;
    if (w->n_asked) memset(p->gradient_at, 0xff, w->n_outputs * sizeof *p->gradient_at);
    return vpps_open_entries(&w->contributions, &p->entries);
}

void vpps_script_places_free(vpps_script_places *p) {
    void *parts[] = {p->output_at, p->gradient_at, p->list_at, p->constants, p->entries.of, p->entries.touched};
    for (size_t i = 0; i < VPPS_COUNT(parts); i++) free(parts[i]);
    *p = (vpps_script_places){0};
}

static vpps_status place_constants(vpps_batch *b) {
    vpps_batch_work *w = b->work;
    const uint32_t n = count_constants(w, w->places.constants);
    w->places.constants_at = (uint32_t)w->next_word;
    w->next_word += n;
    if (w->next_word > w->machine->pool_words) return VPPS_POOL;
    b->pool_words = (uint32_t)w->next_word;
    return VPPS_OK;
}

/* `losses` and `sums`: see encode_group; zeros. */
static void encode(vpps_batch_work *w, vpps_writer *to, uint32_t *losses, uint32_t *sums) {
    vpps_task_header h = {.n_vps = w->machine->n_vps,
                          .n_groups = w->n_groups,
                          .n_blocks = w->n_blocks,
                          .pool_words = (uint32_t)w->next_word};
    vpps_write_room(to, VPPS_TASK_HEADER_WORDS);
    const uint32_t starts = vpps_write_room(to, w->n_groups + 1);
    h.blocks = vpps_write_room(to, (uint64_t)w->n_blocks * VPPS_BLOCK_WORDS);
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        encode_block(w, i, to);
        encode_gradients(w, i, to);
    }
    for (uint32_t i = 0; i < w->n_blocks; i++) encode_data(w, i, to);
    for (uint32_t i = 0; i < w->n_blocks && !to->failed; i++) {
        const vpps_block block = vpps_block_made(w, i);
        memcpy(to->words + h.blocks + (size_t)i * VPPS_BLOCK_WORDS, &block, sizeof block);
    }
    if (w->training) {
        h.tables = encode_tables(w, &h.n_tables, to);
        encode_entries(w, h.tables, h.n_tables, sums, to);
        if (!to->failed) vpps_write_contributions(w, &w->contributions, w->places.list_at, to->words);
        encode_seeds(w, to);
    }
    encode_losses(w, losses, to);
    const uint32_t steps = w->training ? vpps_step_words(w->request, w->g->model) : 0;
    if (steps) h.steps = vpps_write_room(to, steps);
    if (steps && !to->failed) memcpy(to->words + h.steps, w->request->steps, steps * sizeof *to->words);
    uint32_t barriers = 0, task = 0;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        const uint32_t first = vpps_write_group(to);
        if (!to->failed) to->words[starts + g] = first;
        encode_group(w, g, &task, &barriers, losses, sums, h.n_tables, to);
    }
    h.n_barriers = common_barrier(w, vpps_all_slices(w), false) + meets_before_norm(w, h.n_tables);
    if (to->failed) return;
    to->words[starts + w->n_groups] = (uint32_t)to->n;
    write_header(w, h, to);
}

vpps_status vpps_encode_batch(vpps_batch *b) {
    vpps_batch_work *w = b->work;
    if (!open_places(w, &w->places)) return vpps_no_memory();
    place_outputs(w, w->places.output_at);
    if (w->n_asked) place_gradients(w, w->places.gradient_at);
    VPPS_TRY(place_constants(b));
    const size_t n = vpps_all_slices(w) + (size_t)1, n_tables = w->g->model->n_params;
    uint32_t *losses = calloc(n * (1 + n_tables), sizeof *losses);
    if (!losses) return vpps_no_memory();
    vpps_writer to = {.words = b->script, .capacity = b->script_capacity};
    encode(w, &to, losses, losses + n);
    free(losses);
    b->script = to.words;
    b->script_words = to.n;
    b->script_capacity = to.capacity;
    b->n_tasks = to.n_tasks;
    return to.failed ? vpps_fail(VPPS_MEMORY, "schedule: out of memory, or a script of more than 2^32 words") : VPPS_OK;
}
