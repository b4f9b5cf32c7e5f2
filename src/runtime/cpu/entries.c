/* entries.c - lookup tables that are sharded over processes: fetches the entries that a batch looks up from the processes that own them.
 *
 * A batch's program (script) names an entry by an offset, as if device memory (the pool) began with whole tables, but
 * no process has memory there. Before the program runs, all processes meet: each asks for the entries that its batch
 * looks up, stores them after the batch's tensors, and writes their offsets into a copy of the program. So neither
 * scheduler nor stages (parts of cells) know of other processes. The processes tell each other:
 *
 *   1. what each process does, and how many entries it asks of each other process
 *   2. which entries it asks for, by the places that name them
 *   3. the values of these entries
 *
 * Gradients of entries are exchanged like gradients of whole tables: share.c. */
#include "base/index.h"
#include "runtime/comm/comm.h"
#include "runtime/cpu/cpu.h"

/* Why a process comes to a meeting of all processes. Either all processes train, or none does. */
typedef enum purpose_kind { TRAINS = 1, MEASURES, ENDS } purpose_kind;

typedef struct request {
    uint64_t model;
    uint32_t purpose, n;
} request;

/* A list of lookup-table entries that one process owns or asks for. */
typedef struct entry_list {
    uint32_t *offsets;
    size_t n, words;
} entry_list;

/* A looked-up table entry: offset that names it in the batch's program; process that owns it; place in its reply. */
typedef struct looked_up {
    uint32_t offset, owner, at;
} looked_up;

typedef struct table {
    const vpps_parameter_data *data;
    uint32_t first, words;
    uint64_t end;
} table;

struct vpps_entries {
    vpps_communicator *c;
    uint64_t model;
    table *tables;
    uint32_t n_tables;
    uint32_t *script;
    looked_up *found; /* the n_found entries that the batch looks up */
    uint32_t n_found;
    vpps_index index;   /* finds the element of `found` with a given offset */
    entry_list *wanted; /* for each process: the table entries that this process gets from it */
    entry_list *asked;  /* for each process: the table entries that this process sends to it */
    uint32_t *first;    /* for each process: offset in the batch's memory of the table entries fetched from it */
    float **answers;    /* for each process: memory for the values that are sent to that process */
    request *requests;  /* buffers for the requests sent to and received from each process */
    uint64_t fetch_ns, sent_bytes;
};

static bool list_tables(vpps_entries *e, const vpps_cpu *cpu) {
    const vpps_model *model = cpu->model;
    e->tables = calloc(model->n_params + 1, sizeof *e->tables);
    for (uint32_t p = 0; e->tables && p < model->n_params; p++) {
        const vpps_parameter_data *d = &model->params[p];
        const uint32_t first = cpu->plan.values[p];
        if (vpps_is_sharded(d))
            e->tables[e->n_tables++] = (table){d, first, d->rows * d->cols, first + (uint64_t)vpps_param_elems(d)};
    }
    return e->tables != NULL;
}

vpps_status vpps_entries_open(vpps_entries **out, const vpps_cpu *cpu, vpps_communicator *c) {
    vpps_entries *e = *out = calloc(1, sizeof *e);
    if (!e) return vpps_fail(VPPS_MEMORY, "cpu: out of memory");
    e->c = c;
    e->model = vpps_share_model(cpu->share);
    e->wanted = calloc(c->size, sizeof *e->wanted);
    e->asked = calloc(c->size, sizeof *e->asked);
    e->first = calloc(c->size, sizeof *e->first);
    e->answers = calloc(c->size, sizeof *e->answers);
    e->requests = calloc(2 * (size_t)c->size, sizeof *e->requests);
    const bool ok = e->wanted && e->asked && e->first && e->answers && e->requests && list_tables(e, cpu);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cpu: out of memory for tables of %u processes", c->size);
}

void vpps_entries_close(vpps_entries *e) {
    if (!e) return;
    for (uint32_t p = 0; p < e->c->size; p++) {
        if (e->wanted) VPPS_FREE_ARRAYS(e->wanted[p].offsets);
        if (e->asked) VPPS_FREE_ARRAYS(e->asked[p].offsets);
        if (e->answers) VPPS_FREE_ARRAYS(e->answers[p]);
    }
    VPPS_FREE_ARRAYS(e->script, e->found);
    vpps_index_free(&e->index);
    VPPS_FREE(e->tables, e->wanted, e->asked, e->first, e->answers, e->requests, e);
}

void vpps_entries_cost(const vpps_entries *e, vpps_share_cost *cost) {
    cost->fetch_ns = e->fetch_ns;
    cost->sent_bytes += e->sent_bytes;
}

uint32_t *vpps_entries_script(vpps_entries *e, const vpps_batch *batch) {
    if (!VPPS_RESERVE(e->script, batch->script_words)) return NULL;
    return memcpy(e->script, batch->script, batch->script_words * sizeof *e->script);
}

static vpps_status no_memory(void) { return vpps_fail(VPPS_MEMORY, "cpu: out of memory for entries of lookup tables"); }

/* ---------------------------------------------------------------- what is looked up */

/* Returns the sharded table that has an entry at this offset, and the number of the entry in *row; NULL if none has. */
static const table *find_table(const vpps_entries *e, uint32_t offset, uint32_t *row) {
    for (uint32_t i = 0; i < e->n_tables; i++) {
        const table *t = &e->tables[i];
        if (offset < t->first || offset >= t->end) continue;
        *row = (offset - t->first) / t->words;
        return (offset - t->first) % t->words ? NULL : t;
    }
    return NULL;
}

/* Returns the element of `found` with the entry at this offset; NULL: the batch does not look it up. */
static const looked_up *find(const vpps_entries *e, uint32_t offset) {
    const uint64_t hash = vpps_mix64(offset);
    uint32_t at = vpps_index_first(hash), i;
    while ((i = vpps_index_next(&e->index, hash, &at)) != UINT32_MAX)
        if (e->found[i].offset == offset) return &e->found[i];
    return NULL;
}

uint32_t vpps_entry_place(const vpps_entries *e, uint32_t offset) {
    const looked_up *x = find(e, offset);
    return x ? e->first[x->owner] + x->at : VPPS_NO_OFFSET;
}

static uint32_t owner_of(const vpps_entries *e, uint32_t row) { return row % vpps_max_u32(e->c->size, 1); }

static vpps_status want(vpps_entries *e, uint32_t offset) {
    uint32_t row = 0;
    if (find(e, offset)) return VPPS_OK;
    const table *t = find_table(e, offset, &row);
    if (!t) return vpps_fail(VPPS_SCRIPT, "script: it looks up word %u, which is no entry of a table", offset);
    entry_list *list = &e->wanted[owner_of(e, row)];
    if (!VPPS_RESERVE(list->offsets, list->n + 1) || !VPPS_RESERVE(e->found, e->n_found + (size_t)1) ||
        !vpps_index_add(&e->index, vpps_mix64(offset), e->n_found))
        return no_memory();
    e->found[e->n_found++] = (looked_up){offset, owner_of(e, row), (uint32_t)list->words};
    list->offsets[list->n++] = offset;
    list->words += t->words;
    return VPPS_OK;
}

/* Lists every table entry that a vertex of the batch looks up, once. */
static vpps_status list_wanted(vpps_entries *e, const vpps_cpu *cpu) {
    vpps_index_clear(&e->index);
    e->n_found = 0;
    for (uint32_t p = 0; p < e->c->size; p++) e->wanted[p].n = e->wanted[p].words = 0;
    for (uint32_t i = 0; i < cpu->batch.header.n_blocks; i++) {
        const vpps_block_view *view = &cpu->batch.views[i];
        for (uint32_t l = 0; l < view->cell->n_lookups; l++)
            for (uint32_t v = 0; v < view->block->n; v++)
                if (view->lookups[l][v] < cpu->plan.sharded) VPPS_TRY(want(e, view->lookups[l][v]));
    }
    uint64_t at = ((uint64_t)cpu->batch.header.pool_words + 15) & ~(uint64_t)15;
    for (uint32_t p = 0; p < e->c->size; p++) {
        e->first[p] = (uint32_t)at;
        at += e->wanted[p].words;
        if (at <= cpu->plan.pool_words) continue;
        return vpps_fail(
            VPPS_POOL,
            "the batch's %u entries of lookup tables do not fit after its tensors in a pool of %llu bytes. "
            "Use smaller batches, or a larger pool_bytes",
            e->n_found, (unsigned long long)cpu->pool_bytes);
    }
    return VPPS_OK;
}

static vpps_status check_requests(const vpps_entries *e, const request *all) {
    static const char *const purposes[] = {[TRAINS] = "trains", [MEASURES] = "measures", [ENDS] = "is done measuring"};
    for (uint32_t p = 1; p < e->c->size; p++) {
        if (all[p].model != all[0].model)
            return vpps_fail(VPPS_STATE, "rank %u on %s has another model than rank 0 on %s", p, e->c->hosts[p],
                             e->c->hosts[0]);
        if ((all[p].purpose == TRAINS) == (all[0].purpose == TRAINS)) continue;
        return vpps_fail(VPPS_STATE, "rank %u on %s %s, and rank 0 on %s %s", p, e->c->hosts[p],
                         purposes[all[p].purpose % VPPS_COUNT(purposes)], e->c->hosts[0],
                         purposes[all[0].purpose % VPPS_COUNT(purposes)]);
    }
    return VPPS_OK;
}

static vpps_status exchange_requests(vpps_entries *e, purpose_kind purpose, bool *done) {
    const uint32_t size = e->c->size, rank = e->c->rank;
    request *out = e->requests, *in = e->requests + size;
    for (uint32_t p = 0; p < size; p++) {
        out[p] = (request){e->model, (uint32_t)purpose, purpose == ENDS ? 0 : (uint32_t)e->wanted[p].n};
        e->c->out[p] = (vpps_parcel){&out[p], sizeof *out};
        e->c->in[p] = (vpps_parcel){&in[p], sizeof *in};
    }
    in[rank] = out[rank];
    VPPS_TRY(e->c->table->exchange(e->c));
    *done = true;
    for (uint32_t p = 0; p < size; p++) *done = *done && in[p].purpose == ENDS;
    return check_requests(e, in);
}

static vpps_status exchange_offsets(vpps_entries *e) {
    const uint32_t size = e->c->size;
    for (uint32_t p = 0; p < size; p++) {
        entry_list *asked = &e->asked[p];
        asked->n = e->requests[size + p].n;
        if (!VPPS_RESERVE(asked->offsets, asked->n + 1)) return no_memory();
        e->c->out[p] = (vpps_parcel){e->wanted[p].offsets, e->requests[p].n * sizeof *asked->offsets};
        e->c->in[p] = (vpps_parcel){asked->offsets, asked->n * sizeof *asked->offsets};
    }
    return e->c->table->exchange(e->c);
}

/* Copies the table entries that process `asker` asked for (list->offsets) to `to`, and counts their words. `to` NULL: only counts. */
static vpps_status copy_entries(const vpps_entries *e, entry_list *list, uint32_t asker, float *to) {
    list->words = 0;
    for (size_t i = 0; i < list->n; i++) {
        uint32_t row = 0;
        const table *t = find_table(e, list->offsets[i], &row);
        if (!t || owner_of(e, row) != e->c->rank)
            return vpps_fail(VPPS_STATE,
                             "rank %u on %s asks rank %u on %s for word %u of the tables, which is not there", asker,
                             e->c->hosts[asker], e->c->rank, e->c->hosts[e->c->rank], list->offsets[i]);
        if (to)
            memcpy(to + list->words, t->data->values + (size_t)(row / e->c->size) * t->words, t->words * sizeof *to);
        list->words += t->words;
    }
    return VPPS_OK;
}

/* Sends and receives the values of table entries. `pool` (the batch's memory) is NULL if this process wants none. */
static vpps_status exchange_values(vpps_entries *e, float *pool) {
    const uint32_t size = e->c->size, rank = e->c->rank;
    for (uint32_t p = 0; p < size; p++) {
        e->c->out[p] = e->c->in[p] = (vpps_parcel){NULL, 0};
        if (pool) {
            entry_list *wanted = &e->wanted[p];
            if (p == rank) VPPS_TRY(copy_entries(e, wanted, p, pool + e->first[p]));
            e->c->in[p] = (vpps_parcel){pool + e->first[p], wanted->words * sizeof(float)};
        }
        if (p == rank) continue;
        VPPS_TRY(copy_entries(e, &e->asked[p], p, NULL));
        if (!VPPS_RESERVE(e->answers[p], e->asked[p].words + 1)) return no_memory();
        VPPS_TRY(copy_entries(e, &e->asked[p], p, e->answers[p]));
        e->c->out[p] = (vpps_parcel){e->answers[p], e->asked[p].words * sizeof(float)};
    }
    return e->c->table->exchange(e->c);
}

static vpps_status meet(vpps_entries *e, purpose_kind purpose, float *pool, bool *done) {
    VPPS_TRY(exchange_requests(e, purpose, done));
    if (*done) return VPPS_OK;
    VPPS_TRY(exchange_offsets(e));
    return exchange_values(e, pool);
}

vpps_status vpps_entries_serve(vpps_entries *e) {
    for (bool done = false; !done;) VPPS_TRY(meet(e, ENDS, NULL, &done));
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the script */

/* Replaces sharded table entries' addresses in n words of the batch's program by those of this process's copies. */
static vpps_status translate(const vpps_entries *e, uint32_t sharded, uint32_t *at, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] >= sharded) continue;
        const uint32_t place = vpps_entry_place(e, at[i]);
        if (place == VPPS_NO_OFFSET)
            return vpps_fail(VPPS_SCRIPT, "script: word %u of the tables is read, and no vertex looks it up", at[i]);
        at[i] = place;
    }
    return VPPS_OK;
}

static vpps_status translate_block(const vpps_entries *e, const vpps_cpu *cpu, const vpps_block_view *view,
                                   uint32_t *script) {
    const vpps_compiled_cell *c = view->cell;
    for (uint32_t l = 0; l < c->n_lookups; l++)
        VPPS_TRY(translate(e, cpu->plan.sharded, script + (view->lookups[l] - script), view->block->n));
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        const uint32_t n = vpps_items(view->block, c->input_axis[k]);
        VPPS_TRY(translate(e, cpu->plan.sharded, script + (view->inputs[k] - script), n));
    }
    return VPPS_OK;
}

vpps_status vpps_entries_fetch(vpps_entries *e, const vpps_cpu *cpu, uint32_t *script) {
    const uint64_t begin_ns = vpps_now_ns(), sent_bytes = e->c->sent_bytes;
    bool done;
    VPPS_TRY(list_wanted(e, cpu));
    VPPS_TRY(meet(e, cpu->batch.header.update ? TRAINS : MEASURES, cpu->pool, &done));
    for (uint32_t i = 0; i < cpu->batch.header.n_blocks; i++)
        VPPS_TRY(translate_block(e, cpu, &cpu->batch.views[i], script));
    e->fetch_ns = vpps_now_ns() - begin_ns;
    e->sent_bytes = e->c->sent_bytes - sent_bytes;
    return VPPS_OK;
}
