/* encode.c - the words of a script: records of vertices, lists of contributions, instructions. See task.h. */
#include "script/work.h"

#include <inttypes.h>
#include <math.h>

/* Room for n words at the script's end; their address. `ok` becomes false where there is none. */
static uint32_t take_words(vpps_batch *b, uint64_t n, bool *ok) {
    const uint64_t at = b->script_words;
    *ok = *ok && at + n < UINT32_MAX && VPPS_RESERVE(b->script, b->script_capacity, (size_t)(at + n));
    if (*ok) b->script_words = (size_t)(at + n);
    return (uint32_t)at;
}

static uint32_t float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* ---------------------------------------------------------------- where values lie */

static const uint32_t *indices_of(const vpps_batch_work *w, uint32_t r) {
    const vpps_record *record = &w->g->records[r];
    return w->g->words + record->at + 1 + w->vertices[r].n_sources;
}

static uint32_t imm_of(const vpps_batch_work *w, uint32_t r) {
    const vpps_record *record = &w->g->records[r];
    return record->cell == VPPS_NODE_RECORD ? w->g->record_nodes[record->at].imm : 0;
}

static uint32_t word_of(const vpps_batch_work *w, uint32_t r, uint32_t kind, uint32_t value) {
    return kind == VPPS_WORD_INDEX ? indices_of(w, r)[value] : imm_of(w, r);
}

static uint32_t row_of(const vpps_batch_work *w, uint32_t r, const vpps_cell_lookup *l) {
    return l->kind == VPPS_WORD_DROPOUT ? l->value : word_of(w, r, l->kind, l->value);
}

static uint32_t entry_offset(const vpps_batch_work *w, uint32_t r, const vpps_cell_lookup *l) {
    const vpps_parameter_data *p = &w->g->model->params[l->table];
    return w->machine->values[l->table] + row_of(w, r, l) * p->rows * p->cols;
}

/* Offset of an output's value: in its block's record, or where the parameter that it is lies. */
static uint32_t output_offset(const vpps_batch_work *w, uint32_t output) {
    const uint32_t r = w->output_vertex[output];
    const vpps_vertex_work *v = &w->vertices[r];
    const vpps_compiled_cell *c = w->used[v->type].cell;
    const vpps_cell_value *x = &c->values[c->outputs[output - v->first_output].value];
    if (x->kind == VPPS_VALUE_LOOKUP) return entry_offset(w, r, &c->lookups[x->index]);
    if (x->kind == VPPS_VALUE_PARAMETER) return w->machine->values[x->param];
    return w->blocks[v->block].kept[0] + v->position * c->kept_words[0] + x->offset;
}

/* Every block's outputs, vertex after vertex. */
static bool place_outputs(vpps_batch_work *w) {
    if (!VPPS_RESERVE(w->output_at, w->output_at_capacity, w->n_outputs + 1u)) return false;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        const vpps_compiled_cell *c = w->used[b->type].cell;
        for (uint32_t k = 0; k < c->n_outputs; k++) {
            if (c->outputs[k].value == VPPS_NONE) continue; /* nobody reads it */
            const vpps_cell_value *x = &c->values[c->outputs[k].value];
            if (x->kind == VPPS_VALUE_LOOKUP || x->kind == VPPS_VALUE_PARAMETER) {
                for (uint32_t p = 0; p < b->n; p++) {
                    const uint32_t output = w->vertices[w->order[b->first + p]].first_output + k;
                    w->output_at[output] = output_offset(w, output);
                }
                continue;
            }
            uint32_t at = b->kept[0] + x->offset;
            for (uint32_t p = 0; p < b->n; p++, at += c->kept_words[0])
                w->output_at[w->vertices[w->order[b->first + p]].first_output + k] = at;
        }
    }
    return true;
}

uint32_t vpps_batch_output(const vpps_batch *b, uint32_t i) {
    const vpps_batch_work *w = b->work;
    return output_offset(w, w->requested[i]);
}

/* ---------------------------------------------------------------- contributions */

static bool has_gradient(const vpps_batch_work *w, uint32_t output) {
    const vpps_vertex_work *v = &w->vertices[w->output_vertex[output]];
    return v->gradients >> (output - v->first_output) & 1;
}

static vpps_block block_view(const vpps_batch_work *w, uint32_t i) {
    const vpps_block_work *b = &w->blocks[i];
    return (vpps_block){.cell = w->used[b->type].cell_number,
                        .group = b->group,
                        .n = b->n,
                        .members = b->members,
                        .kept = {b->kept[0], b->kept[1]},
                        .contributions = b->contributions,
                        .arrays = b->arrays};
}

/* First source of input `input` of a vertex. */
static uint32_t source_of_input(const vpps_compiled_cell *c, const vpps_vertex_work *v, uint32_t input) {
    if (!c->list_inputs) return v->first_source + input;
    uint32_t at = v->first_source;
    for (uint32_t k = 0; k < input; k++) at += c->input_is_list[k] ? v->members : 1;
    return at;
}

/* Every contribution of every vertex: counted, where `words` is NULL, else written at its reader's cursor. */
static void each_contribution(vpps_batch_work *w, uint32_t *words) {
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        const vpps_compiled_cell *c = w->used[b->type].cell;
        const vpps_block view = block_view(w, i);
        for (uint32_t j = 0; j < c->n_contributions; j++) {
            const vpps_cell_contribution *to = &c->contributions[j];
            const vpps_cell_value *value = &c->values[to->value];
            const uint32_t stride = vpps_value_words(value), shares = to->partial ? c->needs.group : 1;
            const uint32_t at = vpps_contribution_at(c, &view, j, 0);
            const uint32_t share_words = (uint32_t)(vpps_contribution_words(c, &view, j) / shares);
            for (uint32_t p = 0; p < b->n; p++) {
                const uint32_t r = w->order[b->first + p];
                const vpps_vertex_work *v = &w->vertices[r];
                if (!((to->lookup ? v->lookups : v->inputs) >> to->index & 1)) continue;
                if (to->lookup) {
                    const vpps_cell_lookup *l = &c->lookups[to->index];
                    vpps_entry *e = &w->entries[w->entry_of_row[l->table][row_of(w, r, l)]];
                    for (uint32_t s = 0; s < shares; s++) {
                        if (words) {
                            words[e->at++] = at + s * share_words + p * stride;
                        } else {
                            e->count++;
                        }
                    }
                    continue;
                }
                const uint32_t source = source_of_input(c, v, to->index);
                const uint32_t n = value->domain ? v->members : 1, first = value->domain ? v->member_position : p;
                for (uint32_t m = 0; m < n; m++) {
                    const uint32_t output = w->sources[source + m];
                    if (w->users[output] == VPPS_NONE) continue;
                    for (uint32_t s = 0; s < shares; s++) {
                        if (words) {
                            words[w->users[output]++] = at + s * share_words + (first + m) * stride;
                        } else {
                            w->users[output]++;
                        }
                    }
                }
            }
        }
    }
}

/* ---------------------------------------------------------------- entries of tables */

static bool open_tables(vpps_batch_work *w) {
    const uint32_t n = (uint32_t)w->g->model->n_params;
    w->stamp++;
    if (w->n_tables >= n) return true;
    uint32_t **slots = realloc(w->entry_of_row, n * sizeof *slots);
    if (!slots) return false;
    w->entry_of_row = slots;
    uint32_t **stamps = realloc(w->row_stamp, n * sizeof *stamps);
    if (!stamps) return false;
    w->row_stamp = stamps;
    for (; w->n_tables < n; w->n_tables++) slots[w->n_tables] = stamps[w->n_tables] = NULL;
    return true;
}

/* Numbers the entries that get gradients, table after table. */
static bool find_entries(vpps_batch_work *w) {
    w->n_entries = 0;
    if (!open_tables(w)) return false;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        const vpps_compiled_cell *c = w->used[b->type].cell;
        for (uint32_t j = 0; j < c->n_contributions; j++) {
            if (!c->contributions[j].lookup) continue;
            const vpps_cell_lookup *l = &c->lookups[c->contributions[j].index];
            const uint32_t t = l->table, count = w->g->model->params[t].count;
            if (!w->row_stamp[t]) {
                w->row_stamp[t] = calloc(count, sizeof **w->row_stamp);
                w->entry_of_row[t] = malloc(count * sizeof **w->entry_of_row);
                if (!w->row_stamp[t] || !w->entry_of_row[t]) {
                    free(w->row_stamp[t]);
                    free(w->entry_of_row[t]);
                    w->row_stamp[t] = w->entry_of_row[t] = NULL;
                    return false;
                }
            }
            for (uint32_t p = 0; p < b->n; p++) {
                const vpps_vertex_work *v = &w->vertices[w->order[b->first + p]];
                if (!(v->lookups >> c->contributions[j].index & 1)) continue;
                const uint32_t row = row_of(w, w->order[b->first + p], l);
                if (w->row_stamp[t][row] == w->stamp) continue;
                if (!VPPS_RESERVE(w->entries, w->entries_capacity, w->n_entries + 1u)) return false;
                w->row_stamp[t][row] = w->stamp;
                w->entry_of_row[t][row] = w->n_entries;
                w->entries[w->n_entries++] = (vpps_entry){.table = t, .row = row};
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- blocks */

static void encode_block(vpps_batch *b, uint32_t i, bool *ok) {
    vpps_batch_work *w = b->work;
    vpps_block_work *block = &w->blocks[i];
    const vpps_compiled_cell *c = w->used[block->type].cell;
    const uint32_t n = block->n, *order = w->order + block->first;
    const uint32_t singles = c->n_inputs - c->list_inputs;
    uint64_t words = (uint64_t)n * (1 + singles + c->n_lookups + c->n_words + c->is_data);
    if (c->list_inputs) words += n + 1 + (uint64_t)c->list_inputs * block->members;
    block->arrays = take_words(b, words, ok);
    if (!*ok) return;
    uint32_t *at = b->script + block->arrays;
    for (uint32_t p = 0; p < n; p++) at[p] = order[p];
    at += n;
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        if (c->input_is_list[k]) continue;
        for (uint32_t p = 0; p < n; p++)
            at[p] = w->output_at[w->sources[source_of_input(c, &w->vertices[order[p]], k)]];
        at += n;
    }
    for (uint32_t k = 0; k < c->n_lookups; k++, at += n)
        for (uint32_t p = 0; p < n; p++) at[p] = entry_offset(w, order[p], &c->lookups[k]);
    for (uint32_t k = 0; k < c->n_words; k++, at += n) {
        for (uint32_t p = 0; p < n; p++) {
            at[p] = c->words[k].kind == VPPS_WORD_DROPOUT ? w->vertices[order[p]].dropout
                                                          : word_of(w, order[p], c->words[k].kind, c->words[k].value);
        }
    }
    if (c->is_data) at += n; /* addresses come when data are there */
    if (!c->list_inputs) return;
    for (uint32_t p = 0; p < n; p++) at[p] = w->vertices[order[p]].member_position;
    at[n] = block->members;
    at += n + 1;
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        if (!c->input_is_list[k]) continue;
        for (uint32_t p = 0; p < n; p++) {
            const vpps_vertex_work *v = &w->vertices[order[p]];
            const uint32_t source = source_of_input(c, v, k);
            for (uint32_t m = 0; m < v->members; m++) at[v->member_position + m] = w->output_at[w->sources[source + m]];
        }
        at += block->members;
    }
}

/* Data of input ops, copied as they lie in the graph. */
static void encode_data(vpps_batch *b, uint32_t i, bool *ok) {
    vpps_batch_work *w = b->work;
    const vpps_block_work *block = &w->blocks[i];
    const vpps_compiled_cell *c = w->used[block->type].cell;
    if (!c->is_data || !*ok) return;
    const uint32_t words = vpps_value_words(&c->values[c->outputs[0].value]), n = block->n;
    const uint32_t data = take_words(b, (uint64_t)n * words, ok);
    if (!*ok) return;
    uint32_t *addresses = b->script + block->arrays + (size_t)n * (1 + c->n_words);
    for (uint32_t p = 0; p < n; p++) {
        addresses[p] = data + p * words;
        memcpy(b->script + addresses[p], w->g->data + imm_of(w, w->order[block->first + p]), words * sizeof(float));
    }
}

/* Starts of the lists of contributions to each output with a gradient; users become cursors. They must come right behind
 * the block's other arrays. */
static void encode_gradients(vpps_batch *b, uint32_t i, bool *ok) {
    vpps_batch_work *w = b->work;
    const vpps_block_work *block = &w->blocks[i];
    const vpps_used_type *u = &w->used[block->type];
    for (uint32_t k = 0; k < u->cell->n_outputs && u->needs.training; k++) {
        if (!(u->needs.gradient_out >> k & 1)) continue;
        uint64_t entries = 0;
        for (uint32_t p = 0; p < block->n; p++) {
            const uint32_t users = w->users[w->vertices[w->order[block->first + p]].first_output + k];
            if (users != VPPS_NONE) entries += users;
        }
        const uint32_t starts = take_words(b, (uint64_t)block->n + 1 + entries, ok);
        if (!*ok) return;
        uint32_t at = 0;
        for (uint32_t p = 0; p < block->n; p++) {
            uint32_t *users = &w->users[w->vertices[w->order[block->first + p]].first_output + k];
            b->script[starts + p] = at;
            if (*users == VPPS_NONE) continue;
            at += *users;
            *users = starts + block->n + 1 + at - *users;
        }
        b->script[starts + block->n] = at;
    }
}

/* ---------------------------------------------------------------- seeds: the loss's gradient */

/* Every term's factor lies in the pool, as a contribution to the term. */
static void encode_seeds(vpps_batch *b, uint32_t *constants, bool *ok) {
    vpps_batch_work *w = b->work;
    for (uint32_t g = 0; g < w->n_groups && *ok; g++) {
        const uint32_t list = take_words(b, 0, ok);
        uint32_t n = 0, last = 0;
        for (uint32_t i = 0; i < w->n_seeds && *ok; i++) {
            const uint32_t output = w->seeds[i].output;
            if (w->component[w->output_vertex[output]] != g) continue;
            const uint32_t factor = float_bits(w->seeds[i].factor);
            if (!n || factor != last) {
                const uint32_t at = take_words(b, 2, ok);
                if (!*ok) return;
                b->script[at] = w->seeds_at++;
                b->script[at + 1] = last = factor;
                n++;
            }
            if (has_gradient(w, output)) b->script[w->users[output]++] = w->seeds_at - 1;
        }
        constants[2 * g] = list;
        constants[2 * g + 1] = n;
    }
}

/* How many constants there are: as encode_seeds will make them. */
static uint32_t count_seeds(const vpps_batch_work *w) {
    uint32_t all = 0;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        uint32_t n = 0, last = 0;
        for (uint32_t i = 0; i < w->n_seeds; i++) {
            if (w->component[w->output_vertex[w->seeds[i].output]] != g) continue;
            const uint32_t factor = float_bits(w->seeds[i].factor);
            n += !n || factor != last;
            last = factor;
        }
        all += n;
    }
    return all;
}

/* ---------------------------------------------------------------- tables */

/* One description a table, its entries in the order of their first use. */
static uint32_t encode_tables(vpps_batch *b, uint32_t *n_tables, bool *ok) {
    vpps_batch_work *w = b->work;
    const vpps_model *model = w->g->model;
    *n_tables = 0;
    for (uint32_t p = 0; p < model->n_params; p++) {
        bool any = false;
        for (uint32_t i = 0; i < w->n_entries && !any; i++) any = w->entries[i].table == p;
        *n_tables += any;
    }
    const uint32_t tables = take_words(b, (uint64_t)*n_tables * VPPS_TABLE_WORDS, ok);
    uint32_t t = 0, gradients = w->entry_gradients;
    for (uint32_t p = 0; p < model->n_params && *ok && t < *n_tables; p++) {
        uint32_t n = 0;
        uint64_t count = 0;
        for (uint32_t i = 0; i < w->n_entries; i++) {
            if (w->entries[i].table != p) continue;
            n++;
            count += w->entries[i].count;
        }
        if (!n) continue;
        const uint32_t rows = take_words(b, 2 * (uint64_t)n + 1 + count, ok);
        if (!*ok) return tables;
        uint32_t at = 0, k = 0;
        for (uint32_t i = 0; i < w->n_entries; i++) {
            vpps_entry *e = &w->entries[i];
            if (e->table != p) continue;
            b->script[rows + k] = e->row;
            b->script[rows + n + k] = at;
            e->at = rows + 2 * n + 1 + at;
            at += e->count;
            k++;
        }
        b->script[rows + 2 * n] = at;
        const vpps_table table = {.param = p, .n = n, .gradients = gradients, .rows = rows, .group = UINT32_MAX};
        memcpy(b->script + tables + (size_t)t * VPPS_TABLE_WORDS, &table, sizeof table);
        gradients += n * model->params[p].rows * model->params[p].cols;
        t++;
    }
    return tables;
}

/* ---------------------------------------------------------------- instructions */

static void emit(vpps_batch *b, bool *ok, vpps_task task, const uint32_t *operands) {
    const uint32_t at = take_words(b, 1 + vpps_tasks[task].words, ok);
    if (!*ok) return;
    b->script[at] = task;
    for (uint32_t i = 0; i < vpps_tasks[task].words; i++) b->script[at + 1 + i] = operands[i];
    b->n_instructions++;
}

#define EMIT(task, ...) emit(b, ok, VPPS_TASK_##task, (const uint32_t[4]){__VA_ARGS__})

static void barrier(vpps_batch *b, uint32_t number, uint32_t signals, bool *ok) {
    EMIT(SIGNAL, number);
    EMIT(WAIT, number, signals);
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
static void encode_outers(vpps_batch *b, uint32_t first, uint32_t end, bool *ok) {
    const vpps_batch_work *w = b->work;
    for (uint32_t i = first; i < end; i++) {
        const vpps_task_work *t = &w->tasks[i];
        if (accumulates(w, t->block) && is_last_main(w->used[w->blocks[t->block].type].cell, t->stage))
            EMIT(OUTER, t->block, t->first, t->n);
    }
}

/* What a group runs before all meet. Returns the number of barriers used so far. */
static uint32_t encode_group(vpps_batch *b, uint32_t g, uint32_t first_task, uint32_t barriers,
                             const uint32_t *constants, uint32_t *last_phase, bool *ok) {
    const vpps_batch_work *w = b->work;
    if (constants[2 * g + 1]) EMIT(CONSTANTS, constants[2 * g], constants[2 * g + 1]);
    uint32_t phase = 0, phase_start = first_task, i = first_task;
    for (; i < w->n_tasks && w->tasks[i].group == g; i++) {
        const vpps_task_work *t = &w->tasks[i];
        if (t->phase != phase) {
            barrier(b, barriers++, w->group_size, ok);
            encode_outers(b, phase_start, i, ok);
            phase = t->phase;
            phase_start = i;
        }
        EMIT(STAGE, t->block, t->stage, t->first, t->n);
    }
    *last_phase = phase_start;
    return barriers;
}

/* What all VPs do at the end, each for its own rows and entries. */
static void encode_end(vpps_batch *b, uint32_t barrier_number, uint32_t last_phase, uint32_t loss_list,
                       uint32_t n_tables, bool *ok) {
    const vpps_batch_work *w = b->work;
    const uint32_t n_vps = w->machine->n_vps;
    barrier(b, barrier_number, n_vps, ok);
    if (!w->training) {
        EMIT(END, 0);
        return;
    }
    EMIT(LOSS, loss_list, w->n_seeds);
    encode_outers(b, last_phase, w->n_tasks, ok);
    for (uint32_t i = 0; i < w->n_blocks; i++)
        if (w->used[w->blocks[i].type].cell->n_outers && w->blocks[i].n && !accumulates(w, i))
            EMIT(OUTER, i, 0, w->blocks[i].n);
    for (uint32_t i = 0; i < n_tables; i++) EMIT(ENTRIES, i);
    if (w->request->guard || w->request->optimizer->clip > 0) EMIT(NORM, 0);
    /* the norm's parts; and gradients are made of parameters, too: a lookup's entry that a matrix is multiplied with */
    barrier(b, barrier_number + 1, n_vps, ok);
    EMIT(UPDATE, 0);
    EMIT(END, 0);
}

static void write_header(vpps_batch *b, vpps_task_header h) {
    const vpps_batch_work *w = b->work;
    const vpps_batch_request *request = w->request;
    if (w->training) {
        const vpps_optimizer *o = request->optimizer;
        h.update = (uint32_t)o->kind + 1;
        h.guard = request->guard;
        h.lr = o->lr;
        h.momentum = o->momentum;
        h.beta1 = o->beta1;
        h.beta2 = o->beta2;
        h.epsilon = o->epsilon;
        h.corrections[0] = (float)(1 / (1 - pow(o->beta1, request->step)));
        h.corrections[1] = (float)(1 / (1 - pow(o->beta2, request->step)));
        h.weight_decay = o->weight_decay;
        h.clip = o->clip;
    }
    h.magic = VPPS_TASK_MAGIC;
    h.words = (uint32_t)b->script_words;
    h.step = request->step;
    h.dropout_key[0] = (uint32_t)request->dropout_key;
    h.dropout_key[1] = (uint32_t)(request->dropout_key >> 32);
    memcpy(b->script, &h, sizeof h);
}

static vpps_status place_rest(vpps_batch *b) {
    vpps_batch_work *w = b->work;
    uint64_t words = 0;
    for (uint32_t i = 0; i < w->n_entries; i++) {
        const vpps_parameter_data *p = &w->g->model->params[w->entries[i].table];
        words += (uint64_t)p->rows * p->cols;
    }
    w->entry_gradients = (uint32_t)w->next_word;
    w->next_word = (w->next_word + words + 15) & ~(uint64_t)15;
    w->seeds_at = (uint32_t)w->next_word;
    w->next_word += count_seeds(w);
    if (w->next_word > w->machine->pool_words) {
        return vpps_fail(VPPS_POOL,
                         "the batch needs %" PRIu64 " bytes of the pool, parameters included; there are %" PRIu64
                         ". Use smaller batches, or a larger pool_bytes",
                         w->next_word * 4, (uint64_t)w->machine->pool_words * 4);
    }
    b->pool_words = (uint32_t)w->next_word;
    return VPPS_OK;
}

vpps_status vpps_encode_batch(vpps_batch *b) {
    vpps_batch_work *w = b->work;
    bool is_ok = true, *ok = &is_ok;
    if (!VPPS_RESERVE(w->users, w->users_capacity, w->n_outputs + 1u)) return vpps_no_memory();
    memset(w->users, 0xff, w->n_outputs * sizeof *w->users);
    w->n_entries = 0;
    if (!place_outputs(w)) return vpps_no_memory();
    if (w->training) {
        for (uint32_t r = 0; r < w->n_vertices; r++) {
            const vpps_vertex_work *v = &w->vertices[r];
            for (uint64_t k = 0, left = v->needed ? v->gradients : 0; left; k++, left >>= 1)
                if (left & 1) w->users[v->first_output + k] = 0;
        }
        if (!find_entries(w)) return vpps_no_memory();
        each_contribution(w, NULL);
        for (uint32_t i = 0; i < w->n_seeds; i++)
            if (has_gradient(w, w->seeds[i].output)) w->users[w->seeds[i].output]++;
    }
    VPPS_TRY(place_rest(b));
    b->n_instructions = 0;
    b->script_words = 0;
    vpps_task_header h = {
        .n_vps = w->machine->n_vps, .n_groups = w->n_groups, .n_blocks = w->n_blocks, .pool_words = b->pool_words};
    take_words(b, VPPS_TASK_HEADER_WORDS, ok);
    const uint32_t starts = take_words(b, w->n_groups + 1, ok);
    h.blocks = take_words(b, (uint64_t)w->n_blocks * VPPS_BLOCK_WORDS, ok);
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        encode_block(b, i, ok);
        encode_gradients(b, i, ok);
    }
    for (uint32_t i = 0; i < w->n_blocks; i++) encode_data(b, i, ok);
    for (uint32_t i = 0; i < w->n_blocks && is_ok; i++) {
        const vpps_block block = block_view(w, i);
        memcpy(b->script + h.blocks + (size_t)i * VPPS_BLOCK_WORDS, &block, sizeof block);
    }
    uint32_t *constants = calloc(2 * (size_t)w->n_groups, sizeof *constants);
    is_ok = is_ok && constants;
    if (w->training && is_ok) {
        h.tables = encode_tables(b, &h.n_tables, ok);
        if (is_ok) each_contribution(w, b->script);
        encode_seeds(b, constants, ok);
    }
    const uint32_t loss_list = take_words(b, 2 * (uint64_t)w->n_seeds, ok);
    for (uint32_t i = 0; i < w->n_seeds && is_ok; i++) {
        b->script[loss_list + 2 * i] = w->output_at[w->seeds[i].output];
        b->script[loss_list + 2 * i + 1] = float_bits(w->seeds[i].factor);
    }
    uint32_t barriers = 0, task = 0;
    uint32_t last = 0; /* the common ones come behind all groups' */
    for (uint32_t g = 0; g < w->n_groups; g++) last += w->group_phases[g];
    for (uint32_t g = 0; g < w->n_groups && is_ok; g++) {
        b->script[starts + g] = (uint32_t)b->script_words;
        uint32_t last_phase = 0;
        barriers = encode_group(b, g, task, barriers, constants, &last_phase, ok);
        while (task < w->n_tasks && w->tasks[task].group == g) task++;
        encode_end(b, last, last_phase, loss_list, h.n_tables, ok);
    }
    h.n_barriers = last + 2;
    if (is_ok) b->script[starts + w->n_groups] = (uint32_t)b->script_words;
    free(constants);
    if (!is_ok) return vpps_fail(VPPS_MEMORY, "schedule: out of memory, or a script of more than 2^32 words");
    write_header(b, h);
    return VPPS_OK;
}
