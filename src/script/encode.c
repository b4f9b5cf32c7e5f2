/* encode.c - writes a script: a batch's program, run by virtual processors (CTAs, threads); task.h has the layout. */
#include "script/encode.h"

#include "script/update.h"
#include "script/writer.h"

/* Constants that a group of threads or CTAs stores: factors of the loss's terms. Consecutive equal ones share one. */
typedef struct group_constants {
    uint32_t n, last; /* n: number of constants; last: bits of the latest constant, a float */
    /* list, next: addresses in the batch's program of the first and next constant; at: memory offset of the next */
    uint32_t list, next, at;
} group_constants;

typedef struct encoder {
    const vpps_placement *placed;
    const vpps_contributions *contributions;
    const vpps_tasks *tasks;
    const vpps_steps *s;
    const vpps_reading *r;
    const vpps_target *target;
    const vpps_batch_request *request;
    vpps_writer to;
    /* for each output: output_at: offset of the output's value; gradient_at: offset of its gradient */
    uint32_t *output_at, *gradient_at;
    /* index in to.words, the batch's program, for the next term of each output's gradient; VPPS_NONE: no gradient */
    uint32_t *list_at;
    /* index in to.words for the next term scalar * vector (two offsets) of each output's gradient; NULL: none */
    uint32_t *pairs_at;
    uint32_t *arrays;           /* for each block (vertices of one type): index in to.words of inputs' offsets etc. */
    group_constants *constants; /* for each group of threads or CTAs: the factors of its terms of the loss */
    vpps_entry_lists entries;
    /* for each slice (part of the batch): address of its terms of the loss; an extra last element: the end of all terms */
    uint32_t *losses;
    /* for each slice (part of the batch) and table: address of the list by which a task adds up the entries' gradients; 0: no task */
    uint32_t *sums;
    uint32_t n_tables;
    vpps_given_array given;
} encoder;

/* ---------------------------------------------------------------- places of values */

/* Where the rows that a lookup reads lie in the pool of memory: row r has offset first + r * words. A lookup without a table reads a value
 * that an earlier batch has kept: first is 0, words is 1, and the number r is the value's offset. */
typedef struct entry_places {
    uint32_t first, words;
} entry_places;

static entry_places places_of(const encoder *e, const vpps_cell_lookup *l) {
    if (l->table == VPPS_NO_PARAM) return (entry_places){0, 1};
    return (entry_places){e->target->values[l->table], (uint32_t)vpps_entry_elems(e->r->g->model, l->table)};
}

/* Writes the offsets of the lookup-table entries that a block's vertices look up. */
static void write_entries(const encoder *e, const vpps_step_block *b, const vpps_cell_lookup *l, uint32_t *at) {
    const vpps_ordered_vertex *v = vpps_vertices_of(e->s, b);
    const entry_places places = places_of(e, l);
    for (uint32_t p = 0, n = b->n; p < n; p++) at[p] = places.first + vpps_row_of(e->s, &v[p], l) * places.words;
}

/* Sets output_at[] for all outputs: the offset of the output's value in memory or, if the output is a parameter, the parameter's offset. */
static void place_outputs(encoder *e) {
    for (uint32_t i = 0; i < e->s->n_blocks; i++) {
        const vpps_step_block *b = &e->s->blocks[i];
        const vpps_compiled_cell *c = vpps_cell_of_block(e->s, b);
        const vpps_ordered_vertex *v = vpps_vertices_of(e->s, b);
        for (uint32_t k = 0; k < c->n_outputs; k++) {
            if (c->outputs[k].value == VPPS_NONE) continue; /* nobody reads the output */
            const vpps_cell_value *x = &c->values[c->outputs[k].value];
            uint32_t *output_at = e->output_at + k;
            if (x->kind == VPPS_VALUE_LOOKUP) {
                const vpps_cell_lookup *l = &c->lookups[x->lookup];
                const entry_places places = places_of(e, l);
                for (uint32_t p = 0; p < b->n; p++)
                    output_at[v[p].first_output] = places.first + vpps_row_of(e->s, &v[p], l) * places.words;
                continue;
            }
            const bool parameter = x->kind == VPPS_VALUE_PARAMETER;
            const uint32_t step = parameter ? 0 : c->kept_words[0];
            uint32_t at = parameter ? e->target->values[x->vector] : e->placed->blocks[i].kept[0] + x->offset;
            for (uint32_t p = 0, n = b->n; p < n; p++, at += step) output_at[v[p].first_output] = at;
        }
    }
}

/* Sets gradient_at[] to the offsets of the gradients that the host reads. */
static void place_gradients(encoder *e) {
    for (uint32_t i = 0; i < e->s->n_blocks && e->r->n_asked; i++) {
        const vpps_step_block *b = &e->s->blocks[i];
        const vpps_compiled_cell *c = vpps_cell_of_block(e->s, b);
        const vpps_ordered_vertex *v = vpps_vertices_of(e->s, b);
        for (uint64_t left = c->needs.asked_gradients; left; left &= left - 1) {
            const uint32_t k = (uint32_t)__builtin_ctzll(left), d = c->gradient_of[k];
            if (d == VPPS_NONE) continue;
            const uint32_t first = e->placed->blocks[i].kept[0] + c->values[d].offset;
            for (uint32_t p = 0; p < b->n; p++) e->gradient_at[v[p].first_output + k] = first + p * c->kept_words[0];
        }
    }
}

/* ---------------------------------------------------------------- blocks */

enum { DATA_COPIES = 256 };

/* Writes one integer of every vertex of a block (of one cell), such as a class or an index. */
static void write_words(const encoder *e, const vpps_step_block *b, const vpps_cell_word *word, uint32_t *at) {
    const vpps_ordered_vertex *v = vpps_vertices_of(e->s, b);
    for (uint32_t p = 0, n = b->n; p < n; p++)
        at[p] = word->kind == VPPS_WORD_DROPOUT ? e->r->lists[v[p].vertex].dropout
                                                : vpps_word_of(e->s, &v[p], word->kind, word->value);
}

static uint32_t arrays_of(const vpps_compiled_cell *c) {
    return 1 + c->inputs_of[0] + c->n_lookups + c->n_words + c->is_data;
}

/* Writes offsets of the nodes that one cell's vertices (block b) read through a list input (any number of nodes each); returns their address. */
static uint32_t write_members(encoder *e, const vpps_step_block *b, vpps_input_place place) {
    const vpps_ordered_vertex *v = vpps_vertices_of(e->s, b);
    const uint32_t list = place.axis - 1, address = vpps_write_room(&e->to, b->members[list]);
    for (uint32_t p = 0; p < b->n && !e->to.failed; p++) {
        const uint32_t *sources = e->r->source_outputs + vpps_source_at(e->s, &v[p], place);
        uint32_t *to = e->to.words + address + e->s->first_members[v[p].vertex].of[list];
        const uint32_t n = e->r->lists[v[p].vertex].members[list];
        if (p && vpps_repeats(e->s, &v[p])) {
            memcpy(to, to - n, n * sizeof *to);
            continue;
        }
        for (uint32_t m = 0; m < n; m++) to[m] = e->output_at[sources[m]];
    }
    return address;
}

/* Two inputs can read different outputs of the same list of nodes, such as h and c of all children. They share one
 * array of offsets if the distance from a node's first output to its second is the same for all nodes. first: address
 * of the array for the first input; place: the second input. Returns whether they can share; *shift becomes the
 * distance. Parameters never qualify, since a parameter may be divided among processes. */
static bool is_shifted(const encoder *e, const vpps_step_block *b, uint32_t first, vpps_input_place place,
                       int64_t *shift) {
    const vpps_ordered_vertex *v = vpps_vertices_of(e->s, b);
    const uint32_t list = place.axis - 1, batch = e->target->batch, *offsets = e->to.words + first;
    int64_t differs = !b->members[list];
    for (uint32_t p = 0; p < b->n && !differs; p++) {
        const uint32_t n = e->r->lists[v[p].vertex].members[list];
        if (!n || (p && vpps_repeats(e->s, &v[p]))) continue;
        const uint32_t *from = offsets + e->s->first_members[v[p].vertex].of[list],
                       *sources = e->r->source_outputs + vpps_source_at(e->s, &v[p], place);
        if (from == offsets) *shift = (int64_t)e->output_at[*sources] - *from;
        for (uint32_t m = 0; m < n; m++) {
            const uint32_t to = e->output_at[sources[m]];
            differs |= (((int64_t)to - from[m]) ^ *shift) | (to < batch) | (from[m] < batch);
        }
    }
    return !differs && *shift == (int32_t)*shift;
}

/* For each list input of a block (vertices of one cell): writes an array with the memory offsets of all nodes that the
 * vertices read through the input; and, among the block's data, the array's address in the batch's program. */
static void encode_members(encoder *e, uint32_t i) {
    const vpps_step_block *block = &e->s->blocks[i];
    const vpps_compiled_cell *c = vpps_cell_of_block(e->s, block);
    uint32_t at = e->arrays[i] + block->n * arrays_of(c);
    for (uint32_t d = 1; d <= c->n_lists; d++) {
        uint32_t first = VPPS_NONE;
        at += block->n + 1;
        for (uint32_t k = 0; k < c->n_inputs; k++) {
            if (c->input_axis[k] != d) continue;
            const vpps_input_place place = vpps_place_of_input(c, k);
            int64_t shift = 0;
            const bool shares = first != VPPS_NONE && is_shifted(e, block, first, place, &shift);
            const uint32_t address = shares ? first : write_members(e, block, place);
            if (e->to.failed) return;
            if (first == VPPS_NONE) first = address;
            e->to.words[at++] = address;
            e->to.words[at++] = shares ? (uint32_t)shift : 0;
        }
    }
}

static void encode_block(encoder *e, uint32_t i) {
    const vpps_step_block *block = &e->s->blocks[i];
    const vpps_compiled_cell *c = vpps_cell_of_block(e->s, block);
    const uint32_t n = block->n, *output_at = e->output_at, *outputs = e->r->source_outputs;
    const vpps_ordered_vertex *v = vpps_vertices_of(e->s, block);
    uint64_t words = (uint64_t)n * arrays_of(c);
    for (uint32_t d = 1; d <= c->n_lists; d++) words += (uint64_t)n + 1 + 2 * c->inputs_of[d];
    e->arrays[i] = vpps_write_room(&e->to, words);
    if (e->to.failed) return;
    uint32_t *at = e->to.words + e->arrays[i];
    for (uint32_t p = 0; p < n; p++) at[p] = v[p].vertex;
    at += n;
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        if (c->input_axis[k]) continue;
        const vpps_input_place place = vpps_place_of_input(c, k);
        for (uint32_t p = 0; p < n; p++) at[p] = output_at[outputs[vpps_source_at(e->s, &v[p], place)]];
        at += n;
    }
    for (uint32_t k = 0; k < c->n_lookups; k++, at += n) write_entries(e, block, &c->lookups[k], at);
    for (uint32_t k = 0; k < c->n_words; k++, at += n) write_words(e, block, &c->words[k], at);
    if (c->is_data) at += n; /* skips the n addresses that encode_data writes */
    for (uint32_t d = 1; d <= c->n_lists; d++) {
        for (uint32_t p = 0; p <= n; p++) *at++ = vpps_first_member(e->s, block, p, d);
        at += 2 * c->inputs_of[d]; /* skips the addresses of the inputs' arrays, which encode_members writes */
    }
}

/* Copies the data of input ops from the graph into the batch's program (script), and writes the copies' addresses.
 * Equal data, such as a position's vector in each sentence, mostly share a copy: copies[hash] is the latest one. */
static void encode_data(encoder *e, uint32_t i, vpps_rows *copies) {
    const vpps_step_block *block = &e->s->blocks[i];
    const vpps_compiled_cell *c = vpps_cell_of_block(e->s, block);
    const uint32_t addresses = e->arrays[i] + block->n * (1 + c->n_words);
    const uint32_t n = c->is_data ? vpps_value_words(&c->values[c->outputs[0].value]) : 0;
    for (uint32_t p = 0; n && p < block->n && !e->to.failed; p++) {
        const float *data = e->r->g->data + vpps_vertices_of(e->s, block)[p].words;
        uint64_t hash = n;
        for (uint64_t k = 0; k < 3; k++) hash = vpps_mix64(hash + vpps_float_bits(data[k * (n - 1) / 2]));
        vpps_rows *copy = &copies[hash % DATA_COPIES];
        if (copy->end - copy->first != n || memcmp(e->to.words + copy->first, data, n * sizeof *data) != 0) {
            copy->first = vpps_write_room(&e->to, n);
            copy->end = copy->first + n;
            if (!e->to.failed) memcpy(e->to.words + copy->first, data, n * sizeof *data);
        }
        e->to.words[addresses + p] = copy->first;
    }
}

/* An output's gradient is a sum. For output k of each vertex in a block (vertices of one cell): reserves, in the
 * batch's program, a list of counts[output] terms of `words` words, and sets list_at[output] to the list's address. */
static void encode_lists(encoder *e, const vpps_step_block *block, uint32_t k, const uint32_t *counts, uint32_t words,
                         uint32_t *list_at) {
    const vpps_ordered_vertex *v = vpps_vertices_of(e->s, block);
    const uint64_t *gradients = e->s->needs->gradients;
    const bool all = block->gradients >> k & 1;
    const uint32_t n = block->n, lists = vpps_write_room(&e->to, (uint64_t)n + 1) + n + 1;
    if (e->to.failed) return;
    uint32_t *starts = e->to.words + lists - n - 1;
    uint64_t at = 0;
    for (uint32_t p = 0; p < n; p++) {
        starts[p] = (uint32_t)at;
        if (!all && !(gradients[v[p].vertex] >> k & 1)) continue;
        list_at[v[p].first_output + k] = (uint32_t)(lists + words * at);
        at += counts[v[p].first_output + k];
    }
    starts[n] = (uint32_t)at;
    vpps_write_room(&e->to, words * at);
}

static void encode_gradients(encoder *e, uint32_t i) {
    const vpps_step_block *block = &e->s->blocks[i];
    const vpps_compiled_cell *c = vpps_cell_of_block(e->s, block);
    for (uint32_t k = 0; k < c->n_outputs && c->needs.training && !e->to.failed; k++) {
        if (!(c->needs.gradient_out >> k & 1)) continue;
        encode_lists(e, block, k, e->contributions->counts, 1, e->list_at);
        if (e->pairs_at) encode_lists(e, block, k, e->contributions->pairs, VPPS_PAIR_WORDS, e->pairs_at);
    }
}

static void encode_blocks(encoder *e, uint32_t address) {
    vpps_rows copies[DATA_COPIES] = {0};
    for (uint32_t i = 0; i < e->s->n_blocks; i++) {
        encode_block(e, i);
        encode_gradients(e, i);
    }
    for (uint32_t i = 0; i < e->s->n_blocks && !e->to.failed; i++) {
        encode_members(e, i);
        encode_data(e, i, copies);
    }
    for (uint32_t i = 0; i < e->s->n_blocks && !e->to.failed; i++) {
        const vpps_step_block *b = &e->s->blocks[i];
        vpps_block made = {
            .cell = e->s->batching->cell_numbers[b->type], .group = b->group, .n = b->n, .arrays = e->arrays[i]};
        memcpy(made.members, b->members, sizeof made.members);
        memcpy(made.kept, e->placed->blocks[i].kept, sizeof made.kept);
        memcpy(e->to.words + address + (size_t)i * VPPS_BLOCK_WORDS, &made, sizeof made);
    }
}

/* ---------------------------------------------------------------- seeds: the loss's gradient, or gradients given by the host */

/* Reserves memory, after all tensors, into which the host writes the loss and outputs' gradients between forward and
 * backward. Returns the offset after it. Out of memory: e->given stays zero. */
static uint64_t place_given(encoder *e, vpps_arena *arena) {
    enum { GRAIN = 16 };
    const uint64_t first = (e->placed->end + GRAIN - 1) / GRAIN * GRAIN;
    uint64_t words = GRAIN;
    vpps_given *gradients;
    if (!VPPS_TAKE(arena, gradients, e->r->n_seeds)) return first;
    for (uint32_t i = 0; i < e->r->n_seeds; i++) {
        gradients[i] =
            (vpps_given){(uint32_t)words, vpps_words(vpps_plain_signature(e->r->g, e->r->seeds[i].to.output))};
        words += (gradients[i].words + (uint64_t)GRAIN - 1) / GRAIN * GRAIN;
    }
    e->given = (vpps_given_array){(uint32_t)first, (uint32_t)words, e->r->n_seeds, gradients};
    return first + words;
}

/* Adds each gradient that the host gives for an output to the list of the terms of that output's gradient. */
static void encode_given(encoder *e) {
    for (uint32_t i = 0; i < e->r->n_seeds; i++) {
        uint32_t *list_at = &e->list_at[e->r->seeds[i].to.output];
        if (*list_at != VPPS_NONE) e->to.words[(*list_at)++] = e->given.first + e->given.gradients[i].at;
    }
}

/* The loss is a sum of outputs times factors. Sets constants[g].n to the number of factors (equal ones in a row count
 * once) that group g of threads or CTAs stores in memory for backward. Returns the sum. */
static uint32_t count_constants(encoder *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->r->n_seeds; i++) {
        group_constants *c = &e->constants[vpps_group_of(e->s, e->r->seeds[i].to.vertex)];
        const uint32_t factor = vpps_float_bits(e->r->seeds[i].factor);
        if (c->n && factor == c->last) continue;
        c->last = factor;
        c->n++;
        n++;
    }
    return n;
}

/* The gradient of the loss with respect to one of its terms is the term's constant factor. Lists each such factor as a constant to be stored after
 * all tensors, and as a term of the gradient of the output that the loss reads. */
static void encode_seeds(encoder *e) {
    uint32_t at = (uint32_t)e->placed->end;
    for (uint32_t g = 0; g < e->s->batching->n_groups; g++) {
        group_constants *c = &e->constants[g];
        c->list = vpps_write_room(&e->to, 2 * (uint64_t)c->n);
        if (e->to.failed) return;
        c->next = c->list;
        c->at = at;
        at += c->n;
    }
    for (uint32_t i = 0; i < e->r->n_seeds; i++) {
        const vpps_seed *seed = &e->r->seeds[i];
        group_constants *c = &e->constants[vpps_group_of(e->s, seed->to.vertex)];
        uint32_t *list_at = &e->list_at[seed->to.output];
        const uint32_t factor = vpps_float_bits(seed->factor);
        if (c->next == c->list || factor != c->last) {
            e->to.words[c->next++] = c->at++;
            e->to.words[c->next++] = c->last = factor;
        }
        if (*list_at != VPPS_NONE) e->to.words[(*list_at)++] = c->at - 1;
    }
}

/* ---------------------------------------------------------------- tables */

/* Writes a vpps_table for each trained lookup table, and lists of the tables' trained rows. Returns the first vpps_table's address. */
static uint32_t encode_tables(encoder *e) {
    const vpps_model *model = e->r->g->model;
    const vpps_contributions *all = e->contributions;
    for (uint32_t p = 0; p < model->n_params; p++) e->n_tables += all->of_table[p] > 0;
    const uint32_t tables = vpps_write_room(&e->to, (uint64_t)e->n_tables * VPPS_TABLE_WORDS);
    uint32_t t = 0, gradients = e->placed->entry_gradients;
    for (uint32_t p = 0; p < model->n_params && !e->to.failed && t < e->n_tables; p++) {
        const uint32_t n = all->of_table[p];
        if (!n) continue;
        const uint32_t rows = vpps_write_room(&e->to, n);
        if (e->to.failed) return tables;
        for (uint32_t i = 0; i < all->n_entries; i++)
            if (all->entries[i].table == p) e->to.words[rows + all->entries[i].number] = all->entries[i].row;
        const vpps_table table = {.param = p, .n = n, .gradients = gradients, .rows = rows};
        memcpy(e->to.words + tables + (size_t)t * VPPS_TABLE_WORDS, &table, sizeof table);
        gradients += n * model->params[p].rows * model->params[p].cols;
        t++;
    }
    return tables;
}

/* Writes the list of an ENTRIES task, which sums up the gradients that vertices of a slice (part of the batch) compute for a table's entries;
 * vpps_write_entries writes the gradients' offsets later. Returns the list's address; 0: the slice does not use the table. */
static uint32_t encode_sums(encoder *e, const vpps_table *t) {
    const vpps_entry *entries = e->contributions->entries;
    const vpps_entry_lists *lists = &e->entries;
    uint32_t n = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < lists->n_touched; i++) {
        if (entries[lists->touched[i]].table != t->param) continue;
        n++;
        count += lists->of[lists->touched[i]].count;
    }
    if (!n) return 0;
    const uint32_t words = (uint32_t)vpps_entry_elems(e->r->g->model, t->param),
                   address = vpps_write_room(&e->to, 2 + 2 * (uint64_t)n + count);
    if (e->to.failed) return 0;
    uint32_t *numbers = e->to.words + address + 1, *starts = numbers + n, at = 0;
    e->to.words[address] = n;
    for (uint32_t i = 0; i < lists->n_touched; i++) {
        const vpps_entry *entry = &entries[lists->touched[i]];
        vpps_entry_list *list = &lists->of[lists->touched[i]];
        if (entry->table != t->param) continue;
        *numbers++ = entry->number;
        *starts++ = at;
        list->at = address + 2 + 2 * n + at;
        if (list->made) e->to.words[list->at++] = t->gradients + entry->number * words;
        at += list->count;
    }
    *starts = at;
    return address;
}

/* Writes the lists of all ENTRIES tasks, which sum up gradients of table entries: one task for each slice (part of the batch) and table. */
static void encode_entries(encoder *e, uint32_t tables) {
    for (uint32_t slice = 0; slice < vpps_all_slices(e->s) && e->n_tables && !e->to.failed; slice++) {
        vpps_touch_entries(e->contributions, slice, &e->entries);
        for (uint32_t i = 0; i < e->n_tables && !e->to.failed; i++) {
            vpps_table t;
            memcpy(&t, e->to.words + tables + (size_t)i * VPPS_TABLE_WORDS, sizeof t);
            e->sums[(size_t)slice * e->n_tables + i] = encode_sums(e, &t);
        }
        if (!e->to.failed)
            vpps_write_entries(e->contributions, e->placed->contributions, slice, &e->entries, e->to.words);
    }
}

/* ---------------------------------------------------------------- tasks */

/* Parameters' gradients of a slice (part of the batch) are added up between two barriers for all threads or CTAs.
 * Returns the number of the first of these barriers or, if `after`, of the second. */
static uint32_t common_barrier(const encoder *e, uint32_t slice, bool after) {
    uint32_t first = 0;
    for (uint32_t g = 0; g < e->s->batching->n_groups; g++) first += e->tasks->group_phases[g];
    return first + 2 * slice + after;
}

/* Writes a barrier of all CTAs or threads before or `after` parameters' gradients of part of the batch are added up. */
static void write_common_barrier(encoder *e, uint32_t slice, bool after) {
    vpps_write_barrier(&e->to, common_barrier(e, slice, after), e->s->batching->n_vps);
}

/* A gradient of a matrix is a sum of dy x^T. Returns whether all dy and x exist after backward of a level (vertices that run together). */
static bool outers_by_level(const vpps_compiled_cell *c) {
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        const vpps_outer o = vpps_outer_of(c, i);
        if (c->values[o.dy->value].pass != VPPS_PASS_BACK_MAIN) return false;
        if (o.x && c->values[o.x->value].pass > VPPS_PASS_BACK_MAIN) return false;
    }
    return vpps_n_outers(c) > 0;
}

/* Returns whether parameters' gradients are added up, for a block (vertices of one cell), after backward of each level
 * (vertices that run together), and not once for all vertices of a slice (part of the batch). */
static bool accumulates(const encoder *e, uint32_t block) {
    return e->r->training && e->request->gradients == VPPS_GRADIENTS_ACCUMULATE && e->s->batching->n_groups == 1 &&
           outers_by_level(vpps_cell_of_block(e->s, &e->s->blocks[block]));
}

static bool is_last_main(const vpps_compiled_cell *c, uint32_t stage) {
    return c->stages[stage].pass == VPPS_PASS_BACK_MAIN &&
           (stage + 1 == c->n_stages || c->stages[stage + 1].pass != VPPS_PASS_BACK_MAIN);
}

/* Some cells' terms of parameters' gradients are added after each level (vertices that run together), not at the end.
 * For each of the tasks [first, end) that ends such a level in backward: writes a task (OUTER) that adds the terms. */
static void encode_outers(encoder *e, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const vpps_stage_task *t = &e->tasks->all[i];
        if (accumulates(e, t->block) && is_last_main(vpps_cell_of_block(e->s, &e->s->blocks[t->block]), t->stage))
            VPPS_WRITE_TASK(&e->to, OUTER, t->block, t->first, t->n);
    }
}

/* Writes the tasks of group g of threads or CTAs for one slice (part of the batch): from *task on, those that compute
 * values and gradients of vertices; a barrier for all groups; OUTER tasks, which add up parameters' gradients. */
static void encode_slice(encoder *e, uint32_t slice, uint32_t g, uint32_t *task, uint32_t *barriers) {
    const vpps_stage_task *tasks = e->tasks->all;
    const uint32_t n_tasks = e->tasks->n, first = vpps_first_of_slice(e->s, slice),
                   end = e->s->n_blocks ? e->tasks->blocks[first + g].slice_end : 0;
    uint32_t i = *task, phase = slice && i < n_tasks ? tasks[i].phase : 0, phase_start = i;
    bool forward = e->tasks->pauses != NULL;
    for (; i < n_tasks && tasks[i].group == g && tasks[i].phase < end; i++) {
        const vpps_stage_task *t = &tasks[i];
        const bool pauses = forward && t->phase >= e->tasks->pauses[g];
        if (pauses || t->phase != phase) {
            if (pauses)
                vpps_write_pause(&e->to);
            else
                vpps_write_barrier(&e->to, (*barriers)++, e->s->batching->group_size);
            encode_outers(e, phase_start, i);
            forward = forward && !pauses;
            phase = t->phase;
            phase_start = i;
        }
        vpps_write_task(&e->to, (vpps_task){.kind = VPPS_TASK_STAGE,
                                            .operands = {t->block, t->first, t->n},
                                            .stage = t->stage,
                                            .pass_record = e->placed->pass_record[i],
                                            .contributions = e->placed->contributions[i]});
    }
    *task = i;
    if (forward) vpps_write_pause(&e->to);
    write_common_barrier(e, slice, false);
    if (!e->r->training) return;
    encode_outers(e, phase_start, i);
    for (uint32_t k = first; k < e->s->n_blocks; k = vpps_next_of_slice(e->s, k)) {
        const vpps_step_block *block = &e->s->blocks[k];
        if (block->n && vpps_n_outers(vpps_cell_of_block(e->s, block)) && !accumulates(e, k))
            VPPS_WRITE_TASK(&e->to, OUTER, k, 0, block->n);
    }
}

/* Returns whether all threads or CTAs wait for each other before they compute the gradients' norm. With several slices (parts
 * of the batch) they must: each needs the gradients of the table entries that it updates, which another may have added up. */
static bool meets_before_norm(const encoder *e) {
    return e->request->goal == VPPS_GOAL_STEP && vpps_all_slices(e->s) > 1 && e->n_tables;
}

/* Writes the tasks of a group of CTAs or threads. Each of them runs all, for the matrix and table rows that it owns. */
static void encode_group(encoder *e, uint32_t g, uint32_t *task, uint32_t *barriers) {
    const uint32_t n = vpps_all_slices(e->s);
    const bool training = e->r->training;
    if (e->constants[g].n) VPPS_WRITE_TASK(&e->to, CONSTANTS, e->constants[g].list, e->constants[g].n);
    for (uint32_t slice = 0; slice < n; slice++) {
        encode_slice(e, slice, g, task, barriers);
        if (training && g == 0)
            VPPS_WRITE_TASK(&e->to, LOSS, e->losses[slice], (e->losses[slice + 1] - e->losses[slice]) / 2);
        for (uint32_t i = 0; i < e->n_tables; i++)
            if (e->sums[(size_t)slice * e->n_tables + i])
                VPPS_WRITE_TASK(&e->to, ENTRIES, i, e->sums[(size_t)slice * e->n_tables + i]);
        if (training && slice + 1 < n) write_common_barrier(e, slice, true);
    }
    if (training && e->request->goal == VPPS_GOAL_STEP) {
        if (meets_before_norm(e)) write_common_barrier(e, n, false);
        if (e->request->guard || e->request->optimizer->clip > 0) VPPS_WRITE_TASK(&e->to, NORM, 0);
        /* Before the update, all CTAs or threads must have summed squared gradients and read old parameters. */
        write_common_barrier(e, n - 1, true);
        VPPS_WRITE_TASK(&e->to, UPDATE, 0);
    }
    VPPS_WRITE_TASK(&e->to, END, 0);
}

/* Writes the loss's terms as pairs (offset of the value, factor), one part of the batch (slice) after the other. If the
 * host gives gradients, between forward and backward, the only term is a number that it writes with them. */
static void encode_losses(encoder *e) {
    const uint32_t n_groups = e->s->batching->n_groups;
    e->losses[0] = vpps_write_room(&e->to, e->r->halves ? 2 : 2 * (uint64_t)e->r->n_seeds);
    if (e->r->halves && !e->to.failed) {
        e->to.words[e->losses[0]] = e->given.first;
        e->to.words[e->losses[0] + 1] = vpps_float_bits(1);
        e->losses[1] = e->losses[0] + 2;
        return;
    }
    for (uint32_t slice = 0; slice < vpps_all_slices(e->s) && !e->to.failed; slice++) {
        e->losses[slice + 1] = e->losses[slice];
        for (uint32_t i = 0; i < e->r->n_seeds; i++) {
            const vpps_seed *seed = &e->r->seeds[i];
            if (e->s->place[seed->to.vertex] - slice * n_groups >= n_groups) continue; /* skips other slices */
            e->to.words[e->losses[slice + 1]++] = e->output_at[seed->to.output];
            e->to.words[e->losses[slice + 1]++] = vpps_float_bits(seed->factor);
        }
    }
}

/* ---------------------------------------------------------------- the whole script */

static void write_header(encoder *e, vpps_task_header h) {
    const vpps_batch_request *request = e->request;
    if (e->r->training) {
        vpps_describe_step(&h, request);
        h.lasting = request->goal == VPPS_GOAL_STEP && vpps_all_slices(e->s) == 1;
    }
    h.magic = VPPS_TASK_MAGIC;
    h.pairs = !e->pairs_at ? 0 : e->contributions->run_words ? VPPS_PAIRS_IN_RUNS : 1;
    h.words = (uint32_t)e->to.n;
    h.step = request->step;
    h.dropout_key[0] = (uint32_t)request->dropout_key;
    h.dropout_key[1] = (uint32_t)(request->dropout_key >> 32);
    memcpy(e->to.words, &h, sizeof h);
}

static void encode(encoder *e, uint32_t pool_words) {
    const uint32_t n_groups = e->s->batching->n_groups;
    vpps_task_header h = {
        .n_vps = e->s->batching->n_vps, .n_groups = n_groups, .n_blocks = e->s->n_blocks, .pool_words = pool_words};
    vpps_write_room(&e->to, VPPS_TASK_HEADER_WORDS);
    const uint32_t starts = vpps_write_room(&e->to, n_groups + 1);
    h.blocks = vpps_write_room(&e->to, (uint64_t)e->s->n_blocks * VPPS_BLOCK_WORDS);
    encode_blocks(e, h.blocks);
    if (e->r->training) {
        h.tables = encode_tables(e);
        h.n_tables = e->n_tables;
        encode_entries(e, h.tables);
        const uint32_t runs_at = vpps_write_room(&e->to, e->contributions->run_words);
        if (!e->to.failed)
            vpps_write_contributions(e->contributions, e->placed->blocks, e->placed->contributions, e->list_at,
                                     e->pairs_at, runs_at, e->to.words);
        if (!e->r->halves)
            encode_seeds(e);
        else if (!e->to.failed)
            encode_given(e);
    }
    encode_losses(e);
    if (e->r->training) h.steps = vpps_write_steps(&e->to, e->request, e->r->g->model);
    uint32_t barriers = 0, task = 0;
    for (uint32_t g = 0; g < n_groups; g++) {
        vpps_write_group(&e->to, starts + g);
        encode_group(e, g, &task, &barriers);
    }
    h.n_barriers = common_barrier(e, vpps_all_slices(e->s), false) + meets_before_norm(e);
    if (e->to.failed) return;
    e->to.words[starts + n_groups] = (uint32_t)e->to.n;
    write_header(e, h);
}

static bool open_encoder(encoder *e, vpps_arena *arena) {
    const size_t n_outputs = e->r->n_outputs, n_slices = vpps_all_slices(e->s), n_params = e->r->g->model->n_params;
    if (!VPPS_TAKE(arena, e->output_at, n_outputs) || !VPPS_TAKE(arena, e->list_at, n_outputs) ||
        !VPPS_TAKE(arena, e->arrays, e->s->n_blocks) ||
        !VPPS_TAKE_ZEROS(arena, e->constants, e->s->batching->n_groups) ||
        !VPPS_TAKE_ZEROS(arena, e->losses, n_slices + 1) || !VPPS_TAKE_ZEROS(arena, e->sums, n_slices * n_params) ||
        (e->r->n_asked && !VPPS_TAKE(arena, e->gradient_at, n_outputs)) ||
        (e->contributions->pairs && !VPPS_TAKE(arena, e->pairs_at, n_outputs)))
        return false;
    if (e->pairs_at) memset(e->pairs_at, 0xff, n_outputs * sizeof *e->pairs_at);
    memset(e->list_at, 0xff, n_outputs * sizeof *e->list_at);
    if (e->r->n_asked) memset(e->gradient_at, 0xff, n_outputs * sizeof *e->gradient_at);
    return vpps_open_entries(e->contributions, arena, &e->entries);
}

vpps_status vpps_encode_batch(const vpps_placement *placed, const vpps_contributions *contributions,
                              const vpps_target *target, const vpps_batch_request *request, vpps_arena *arena,
                              vpps_batch *b, vpps_script_places *out) {
    const vpps_tasks *tasks = placed->tasks;
    encoder e = {.placed = placed,
                 .contributions = contributions,
                 .tasks = tasks,
                 .s = tasks->steps,
                 .r = tasks->steps->reading,
                 .target = target,
                 .request = request,
                 .to = {.words = b->script}};
    if (!open_encoder(&e, arena)) return vpps_no_memory();
    const uint64_t pool_words = e.r->halves ? place_given(&e, arena) : placed->end + count_constants(&e);
    if (e.r->halves && !e.given.gradients) return vpps_no_memory();
    *out = (vpps_script_places){e.output_at, e.gradient_at, e.given, pool_words};
    if (out->pool_words > target->pool_words) return VPPS_POOL;
    place_outputs(&e);
    place_gradients(&e);
    encode(&e, (uint32_t)out->pool_words);
    b->script = e.to.words;
    b->script_words = e.to.n;
    b->n_tasks = e.to.n_tasks;
    return e.to.failed ? vpps_fail(VPPS_MEMORY, "schedule: out of memory, or a script of more than 2^32 words")
                       : VPPS_OK;
}
