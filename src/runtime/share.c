/* share.c - exchanges gradients between processes that train one model. */
#include "runtime/share.h"
#include "base/hash.h"

/* The first message of every process to every other. Two things follow it: for each parameter a bit (this process has a gradient of it),
 * and for each lookup table the number of rows that this process sends next. */
typedef struct header {
    /* hashes, equal in all processes: of the model, and of this batch's optimiser step (hash_of_step) */
    uint64_t model, step;
    double loss;
    uint64_t busy_ns;
    uint32_t vote, n_rows;
} header;

/* Gradients of table rows sent from one process to another: for each table the row numbers, then the rows' gradients. */
typedef struct rows_parcel {
    uint32_t *words;
    size_t n_words;
} rows_parcel;

typedef struct slot {
    uint32_t batch, at;
} slot;

struct vpps_share {
    vpps_communicator *c;
    const vpps_model *params;
    uint64_t model;
    uint32_t batches;
    bool *dense;
    vpps_param *tables; /* numbers of the model's lookup tables */
    uint32_t n_tables, flag_words, header_bytes;
    char *headers; /* buffers for the headers sent to and received from each process */
    /* gradients of table rows, by process: `rows` are sent to that process; `come` are received from it, and summed here */
    rows_parcel *rows, *come;
    rows_parcel *sums; /* gradients of table rows, by process: summed over all processes, sent by that process */
    rows_parcel **out;
    slot **slots;      /* for each table: for each row that this process sums, the place of the row's sum */
    uint32_t *counts;  /* for each process and lookup table: number of rows whose gradients that process has summed */
    uint32_t *cursors; /* indexed by process: number of rows packed so far for that process */
    vpps_share_cost cost;
};

/* ---------------------------------------------------------------- life */

static uint64_t hash_of_model(const vpps_model *model, const char *machine) {
    vpps_hash h;
    vpps_hash_begin(&h, 0);
    vpps_hash_add(&h, VPPS_VERSION, sizeof VPPS_VERSION);
    vpps_hash_add(&h, machine, strlen(machine));
    for (size_t p = 0; p < model->n_params; p++) {
        const vpps_parameter_data *d = &model->params[p];
        const uint32_t shape[5] = {(uint32_t)d->kind, d->count, d->rows, d->cols, vpps_is_sharded(d)};
        vpps_hash_add(&h, d->name, strlen(d->name));
        vpps_hash_add(&h, shape, sizeof shape);
    }
    return vpps_hash_digest(&h, 0);
}

/* Hashes what all processes must agree on: the optimiser's settings (also by parameter), the step's number, and the frozen parameters. */
static uint64_t hash_of_step(const vpps_share *s, const vpps_task_header *h, const uint32_t *steps) {
#define X(name) h->name,
    const float numbers[] = {VPPS_OPTIMIZER_NUMBERS(X)(float) h->update, (float)h->guard, (float)h->step};
#undef X
    uint64_t hash = vpps_hash_bytes(numbers, sizeof numbers, 0);
    if (h->steps) hash ^= vpps_hash_bytes(steps, s->params->n_params * sizeof(vpps_param_step), 0);
    for (size_t p = 0; p < s->params->n_params; p++) hash = vpps_mix64(hash ^ s->params->params[p].frozen);
    return hash;
}

static header *header_at(const vpps_share *s, bool in, uint32_t process) {
    return (header *)(void *)(s->headers + ((size_t)in * s->c->size + process) * s->header_bytes);
}
static uint64_t *flags_of(header *h) { return (uint64_t *)(void *)(h + 1); }
static uint32_t *counts_of(const vpps_share *s, header *h) { return (uint32_t *)(void *)(flags_of(h) + s->flag_words); }

/* Returns the most rows of a table that one process sums. Process p sums the rows whose number modulo the number of processes is p. */
static size_t rows_at(const vpps_share *s, uint32_t count) { return ((size_t)count + s->c->size - 1) / s->c->size; }

static bool make_room(vpps_share *s) {
    const uint32_t size = s->c->size;
    const vpps_model *model = s->params;
    s->dense = calloc(model->n_params + 1, sizeof *s->dense);
    s->tables = calloc(model->n_params + 1, sizeof *s->tables);
    for (uint32_t p = 0; s->tables && p < model->n_params; p++)
        if (model->params[p].kind == VPPS_LOOKUP) s->tables[s->n_tables++] = p;
    s->flag_words = (uint32_t)(model->n_params + 63) / 64;
    s->header_bytes =
        (uint32_t)(sizeof(header) + s->flag_words * sizeof(uint64_t) + ((s->n_tables + 1) & ~1u) * sizeof(uint32_t));
    s->headers = calloc(2 * (size_t)size, s->header_bytes);
    s->rows = calloc(size, sizeof *s->rows);
    s->come = calloc(size, sizeof *s->come);
    s->sums = calloc(size, sizeof *s->sums);
    s->out = calloc(size, sizeof *s->out);
    s->counts = calloc((size_t)size * s->n_tables + 1, sizeof *s->counts);
    s->cursors = calloc(size, sizeof *s->cursors);
    s->slots = calloc(s->n_tables + 1, sizeof *s->slots);
    bool ok = s->dense && s->tables && s->headers && s->rows && s->come && s->sums && s->out && s->counts &&
              s->cursors && s->slots;
    for (uint32_t t = 0; ok && t < s->n_tables; t++) {
        s->slots[t] = calloc(rows_at(s, model->params[s->tables[t]].count), sizeof *s->slots[t]);
        ok = s->slots[t] != NULL;
    }
    return ok;
}

vpps_status vpps_share_text(vpps_communicator *c, char text[VPPS_SHARE_TEXT]) {
    VPPS_TRY(vpps_comm_broadcast(c, text, VPPS_SHARE_TEXT, 0));
    text[VPPS_SHARE_TEXT - 1] = '\0';
    return VPPS_OK;
}

vpps_status vpps_share_open(vpps_share **out, const vpps_model *model, const char *machine, vpps_communicator *c) {
    vpps_share *s = calloc(1, sizeof *s);
    *out = NULL;
    if (s) {
        s->c = c;
        s->params = model;
    }
    if (!s || !make_room(s)) {
        vpps_share_close(s);
        return vpps_fail(VPPS_MEMORY, "communicator: out of memory for gradients of %u processes", c->size);
    }
    s->model = hash_of_model(model, machine);
    *out = s;
    return VPPS_OK;
}

void vpps_share_close(vpps_share *s) {
    if (!s) return;
    for (uint32_t p = 0; p < s->c->size; p++) {
        if (s->rows) VPPS_FREE_ARRAYS(s->rows[p].words);
        if (s->come) VPPS_FREE_ARRAYS(s->come[p].words);
        if (s->sums) VPPS_FREE_ARRAYS(s->sums[p].words);
    }
    for (uint32_t t = 0; s->slots && t < s->n_tables; t++) free(s->slots[t]);
    VPPS_FREE(s->dense, s->tables, s->headers, s->rows, s->come, s->sums, s->out, s->counts, s->cursors, s->slots, s);
}

bool *vpps_share_dense(vpps_share *s) { return s->dense; }
vpps_share_cost vpps_share_cost_of(const vpps_share *s) { return s->cost; }
uint64_t vpps_share_model(const vpps_share *s) { return s->model; }

/* ---------------------------------------------------------------- headers */

static uint32_t table_number(const vpps_share *s, vpps_param param) {
    uint32_t t = 0;
    while (s->tables[t] != param) t++;
    return t;
}

static void write_headers(vpps_share *s, const vpps_shared_batch *batch) {
    header *first = header_at(s, false, 0);
    memset(first, 0, s->header_bytes);
    *first = (header){.model = s->model,
                      .step = hash_of_step(s, batch->header, batch->steps),
                      .loss = batch->loss,
                      .busy_ns = vpps_now_ns() - batch->start_ns,
                      .vote = batch->vote};
    for (uint32_t i = 0; i < batch->n_segments; i++) first->n_rows += batch->segments[i].n;
    for (uint32_t p = 0; p < s->params->n_params; p++)
        if (s->dense[p]) flags_of(first)[p / 64] |= (uint64_t)1 << (p % 64);
    for (uint32_t p = 1; p < s->c->size; p++) memcpy(header_at(s, false, p), first, s->header_bytes);
    for (uint32_t i = 0; i < batch->n_segments; i++) {
        const vpps_row_segment *g = &batch->segments[i];
        const uint32_t t = table_number(s, g->param);
        for (uint32_t k = 0; k < g->n; k++) counts_of(s, header_at(s, false, g->rows[k] % s->c->size))[t]++;
    }
    memcpy(header_at(s, true, s->c->rank), header_at(s, false, s->c->rank), s->header_bytes);
}

static vpps_status exchange_headers(vpps_share *s) {
    for (uint32_t p = 0; p < s->c->size; p++) {
        s->c->out[p] = (vpps_parcel){header_at(s, false, p), s->header_bytes};
        s->c->in[p] = (vpps_parcel){header_at(s, true, p), s->header_bytes};
    }
    VPPS_TRY(s->c->table->exchange(s->c));
    const header *first = header_at(s, true, 0);
    for (uint32_t p = 1; p < s->c->size; p++) {
        const header *h = header_at(s, true, p);
        if (h->model == first->model && h->step == first->step) continue;
        return vpps_fail(VPPS_STATE, "rank %u on %s trains %s than rank 0 on %s", p, s->c->hosts[p],
                         h->model != first->model
                             ? "another model, or on another device, with other VPs, instructions, precision or version"
                             : "with other settings of the step",
                         s->c->hosts[0]);
    }
    return VPPS_OK;
}

/* Reads the headers (first messages) of all processes: sums losses, votes (a number per process) and times in the order of ranks.
 * Also finds the parameters that have a gradient in any process. */
static void read_headers(vpps_share *s, vpps_shared_batch *batch) {
    uint64_t sum_ns = 0;
    s->cost = (vpps_share_cost){0};
    batch->loss = 0;
    for (uint32_t p = 0; p < s->c->size; p++) {
        header *h = header_at(s, true, p);
        batch->loss += h->loss;
        s->cost.votes += h->vote;
        sum_ns += h->busy_ns;
        if (h->busy_ns > s->cost.slowest_ns) s->cost.slowest_ns = h->busy_ns;
        for (uint32_t i = 0; i < s->params->n_params; i++) s->dense[i] |= flags_of(h)[i / 64] >> (i % 64) & 1;
    }
    s->cost.mean_ns = sum_ns / vpps_max_u32(s->c->size, 1);
}

/* ---------------------------------------------------------------- rows of tables */

/* Reserves memory in parcel r (rows to send or receive) for counts[t] rows of each table t. */
static bool need_rows(vpps_share *s, rows_parcel *r, const uint32_t *counts) {
    r->n_words = 0;
    for (uint32_t t = 0; t < s->n_tables; t++)
        r->n_words += (size_t)counts[t] * (1 + vpps_entry_elems(s->params, s->tables[t]));
    return VPPS_RESERVE(r->words, r->n_words + 1);
}

/* Returns where a lookup table's row numbers begin in r, a message between processes; the rows' gradients follow. */
static uint32_t *rows_of_table(const vpps_share *s, const rows_parcel *r, const uint32_t *counts, uint32_t table) {
    uint32_t *at = r->words;
    for (uint32_t t = 0; t < table; t++) at += (size_t)counts[t] * (1 + vpps_entry_elems(s->params, s->tables[t]));
    return at;
}

static bool pack_rows(vpps_share *s, const vpps_shared_batch *batch) {
    for (uint32_t p = 0; p < s->c->size; p++)
        if (!need_rows(s, &s->rows[p], counts_of(s, header_at(s, false, p)))) return false;
    for (uint32_t i = 0; i < batch->n_segments; i++) {
        const vpps_row_segment *g = &batch->segments[i];
        const uint32_t t = table_number(s, g->param), words = vpps_entry_elems(s->params, g->param);
        memset(s->cursors, 0, s->c->size * sizeof *s->cursors);
        for (uint32_t k = 0; k < g->n; k++) {
            const uint32_t p = g->rows[k] % s->c->size, at = s->cursors[p]++;
            const uint32_t *counts = counts_of(s, header_at(s, false, p));
            uint32_t *to = rows_of_table(s, &s->rows[p], counts, t);
            to[at] = g->rows[k];
            memcpy(to + counts[t] + (size_t)at * words, g->gradients + (size_t)k * words, words * sizeof(float));
        }
    }
    return true;
}

static vpps_status exchange_rows(vpps_share *s, const rows_parcel *in) {
    for (uint32_t p = 0; p < s->c->size; p++) {
        s->c->out[p] = (vpps_parcel){s->out[p]->words, s->out[p]->n_words * 4};
        s->c->in[p] = (vpps_parcel){in[p].words, in[p].n_words * 4};
    }
    return s->c->table->exchange(s->c);
}

/* Sums the received gradients of table rows, in the order of ranks, into this process's sums[rank]. counts[t]: rows of table t. */
static bool add_rows(vpps_share *s, const rows_parcel *from, uint32_t *counts) {
    const uint32_t rank = s->c->rank, size = s->c->size;
    memset(counts, 0, s->n_tables * sizeof *counts);
    for (uint32_t p = 0; p < size; p++) {
        const uint32_t *had = counts_of(s, header_at(s, true, p));
        for (uint32_t t = 0; t < s->n_tables; t++) {
            const uint32_t *rows = rows_of_table(s, &from[p], had, t);
            for (uint32_t k = 0; k < had[t]; k++) {
                slot *to = &s->slots[t][rows[k] / size];
                if (to->batch != s->batches) *to = (slot){s->batches, counts[t]++};
            }
        }
    }
    rows_parcel *sums = &s->sums[rank];
    if (!need_rows(s, sums, counts)) return false;
    memset(sums->words, 0, sums->n_words * 4);
    for (uint32_t t = 0; t < s->n_tables; t++) {
        const uint32_t words = vpps_entry_elems(s->params, s->tables[t]);
        uint32_t *numbers = rows_of_table(s, sums, counts, t);
        float *values = (float *)(void *)(numbers + counts[t]);
        for (uint32_t p = 0; p < size; p++) {
            const uint32_t *had = counts_of(s, header_at(s, true, p));
            const uint32_t *rows = rows_of_table(s, &from[p], had, t);
            const float *gradients = (const float *)(const void *)(rows + had[t]);
            for (uint32_t k = 0; k < had[t]; k++) {
                const uint32_t at = s->slots[t][rows[k] / size].at;
                float *to = values + (size_t)at * words;
                const float *term = gradients + (size_t)k * words;
                numbers[at] = rows[k];
                for (uint32_t i = 0; i < words; i++) to[i] += term[i];
            }
        }
    }
    return true;
}

static vpps_status no_memory(void) {
    return vpps_fail(VPPS_MEMORY, "communicator: out of memory for rows of lookup tables");
}

/* Lists in batch->segments the table rows' gradients that all processes summed. counts: how many, by process, table. */
static vpps_status take_segments(vpps_share *s, vpps_shared_batch *batch, const uint32_t *counts) {
    batch->n_segments = 0;
    if (!VPPS_RESERVE(batch->segments, (size_t)s->c->size * s->n_tables + 1)) { return no_memory(); }
    for (uint32_t p = 0; p < s->c->size; p++) {
        const uint32_t *had = counts + (size_t)p * s->n_tables;
        for (uint32_t t = 0; t < s->n_tables; t++) {
            uint32_t *rows = rows_of_table(s, &s->sums[p], had, t);
            if (!had[t]) continue;
            batch->segments[batch->n_segments++] =
                (vpps_row_segment){s->tables[t], had[t], rows, (float *)(void *)(rows + had[t])};
        }
    }
    return VPPS_OK;
}

/* For sharded tables: keeps only the rows that this process sums, which are the rows that it owns. */
static vpps_status keep_rows(vpps_share *s, vpps_shared_batch *batch) {
    const uint32_t next = s->c->rank + 1;
    memset(s->counts, 0, (size_t)s->c->rank * s->n_tables * sizeof *s->counts);
    memset(s->counts + (size_t)next * s->n_tables, 0, (size_t)(s->c->size - next) * s->n_tables * sizeof *s->counts);
    return take_segments(s, batch, s->counts);
}

/* Sends gradients of table rows to the processes that sum them. Unless tables are divided among processes, sends the sums to all. */
static vpps_status share_rows(vpps_share *s, vpps_shared_batch *batch) {
    const uint32_t size = s->c->size, rank = s->c->rank;
    uint64_t n_rows = 0;
    for (uint32_t p = 0; p < size; p++) n_rows += header_at(s, true, p)->n_rows;
    if (!n_rows) return VPPS_OK;
    if (!pack_rows(s, batch)) return no_memory();
    for (uint32_t p = 0; p < size; p++) {
        s->out[p] = &s->rows[p];
        if (p != rank && !need_rows(s, &s->come[p], counts_of(s, header_at(s, true, p)))) return no_memory();
    }
    VPPS_TRY(exchange_rows(s, s->come));
    const rows_parcel kept = s->come[rank];
    s->come[rank] = s->rows[rank]; /* the rows that this process sends to itself */
    const bool ok = add_rows(s, s->come, s->counts + (size_t)rank * s->n_tables);
    s->come[rank] = kept;
    if (!ok) return no_memory();
    if (batch->keep_rows) return keep_rows(s, batch);
    VPPS_TRY(
        vpps_comm_gather(s->c, s->counts + (size_t)rank * s->n_tables, s->counts, s->n_tables * sizeof *s->counts));
    for (uint32_t p = 0; p < size; p++) {
        s->out[p] = &s->sums[rank];
        if (p != rank && !need_rows(s, &s->sums[p], s->counts + (size_t)p * s->n_tables)) return no_memory();
    }
    VPPS_TRY(exchange_rows(s, s->sums));
    return take_segments(s, batch, s->counts);
}

/* ---------------------------------------------------------------- a batch */

vpps_status vpps_share_exchange(vpps_share *s, vpps_shared_batch *batch) {
    const uint64_t begin_ns = vpps_now_ns(), sent_bytes = s->c->sent_bytes;
    s->batches++;
    write_headers(s, batch);
    VPPS_TRY(exchange_headers(s));
    read_headers(s, batch);
    VPPS_TRY(batch->reduce(batch->device, s->c));
    VPPS_TRY(share_rows(s, batch));
    s->cost.exchange_ns = vpps_now_ns() - begin_ns;
    s->cost.sent_bytes = s->c->sent_bytes - sent_bytes;
    return VPPS_OK;
}
