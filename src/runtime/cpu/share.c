/* share.c - processes that train one model together: their gradients become one, between a batch's gradients and its norm.
 *
 * The script knows nothing of it: it makes the gradients of this process's graph. Before the first task that reads all of
 * them (NORM, or UPDATE), the VPs meet, the first one exchanges, and they go on with the gradients of all processes. So
 * every process has the same norm and makes the same step, whatever its own graph was.
 *
 *   1. headers: who trains what; the loss; which parameters have a gradient; how many rows of tables go where
 *   2. gradients of matrices and vectors: allreduce, of those that have one in any process
 *   3. rows of lookup tables that were used: to the process that adds them up (row modulo processes), and from there to all;
 *      where tables are shared out they are that process's anyhow, and only the sum of their squares goes to all
 */
#include "runtime/comm/comm.h"
#include "runtime/cpu/cpu.h"

#include <xxhash.h>

/* What every process tells every other. Behind it: a bit for each parameter that has a gradient here, and for each lookup table
 * how many of its rows come with the next exchange. */
typedef struct header {
    uint64_t model, step; /* hashes of what is trained, and of how this batch steps */
    double loss;
    uint64_t busy_ns;
    uint32_t vote, n_rows;
} header;

/* Rows of tables on their way to a process or from it: for each table their numbers, then their gradients. */
typedef struct rows_parcel {
    uint32_t *words;
    size_t n_words, capacity;
} rows_parcel;

typedef struct slot {
    uint32_t launch, at;
} slot;

struct vpps_share {
    vpps_communicator *c;
    uint64_t model;
    vpps_counter arrived, released; /* VPs, counted through; batches */
    uint32_t batches;
    vpps_param *tables; /* lookup tables */
    uint32_t n_tables, flag_words, header_bytes;
    char *headers; /* out and in, of each process */
    vpps_parcel *parcels;
    rows_parcel *rows, *come; /* to each process, and from it, of the rows that the receiver adds up */
    rows_parcel *sums;        /* of the rows that each adds up */
    rows_parcel **out;
    slot **slots;      /* of each table, of the rows that this process adds up */
    uint32_t *counts;  /* rows in each process's sums: of its tables each */
    uint32_t *cursors; /* of each process */
    vpps_share_cost cost;
};

/* ---------------------------------------------------------------- life */

static void hash_of_model(XXH3_state_t *h, const vpps_cpu *cpu) {
    XXH3_64bits_update(h, VPPS_VERSION, sizeof VPPS_VERSION);
    XXH3_64bits_update(h, cpu->kernels->isa, strlen(cpu->kernels->isa)); /* bits depend on it */
    XXH3_64bits_update(h, &cpu->n_vps, sizeof cpu->n_vps);               /* so do they, and the layout, on this */
    for (size_t p = 0; p < cpu->model->n_params; p++) {
        const vpps_parameter_data *d = &cpu->model->params[p];
        const uint32_t shape[5] = {(uint32_t)d->kind, d->count, d->rows, d->cols, vpps_is_sharded(d)};
        XXH3_64bits_update(h, d->name, strlen(d->name));
        XXH3_64bits_update(h, shape, sizeof shape);
    }
    XXH3_64bits_update(h, &cpu->precision.precision, sizeof cpu->precision.precision);
    XXH3_64bits_update(h, cpu->precision.unit.name, strlen(cpu->precision.unit.name));
}

/* What all must have alike in a batch: the rule of the step, and what is frozen. */
static uint64_t hash_of_step(const vpps_cpu *cpu) {
    const vpps_task_header *h = &cpu->task_header;
    const float numbers[] = {h->corrections[0], h->corrections[1], h->lr,           h->momentum,
                             h->beta1,          h->beta2,          h->epsilon,      h->weight_decay,
                             h->clip,           (float)h->update,  (float)h->guard, (float)h->step};
    uint64_t hash = XXH3_64bits(numbers, sizeof numbers);
    for (size_t p = 0; p < cpu->model->n_params; p++) hash = vpps_mix64(hash ^ cpu->model->params[p].frozen);
    return hash;
}

static header *header_at(const vpps_share *s, bool in, uint32_t process) {
    return (header *)(void *)(s->headers + ((size_t)in * s->c->size + process) * s->header_bytes);
}
static uint64_t *flags_of(header *h) { return (uint64_t *)(void *)(h + 1); }
static uint32_t *counts_of(const vpps_share *s, header *h) { return (uint32_t *)(void *)(flags_of(h) + s->flag_words); }

/* Rows of a table that a process adds up: those with its rank as the remainder. */
static size_t rows_at(const vpps_share *s, uint32_t count) { return ((size_t)count + s->c->size - 1) / s->c->size; }

static bool make_room(vpps_share *s, const vpps_model *model) {
    const uint32_t size = s->c->size;
    s->tables = calloc(model->n_params + 1, sizeof *s->tables);
    for (uint32_t p = 0; s->tables && p < model->n_params; p++)
        if (model->params[p].kind == VPPS_LOOKUP) s->tables[s->n_tables++] = p;
    s->flag_words = (uint32_t)(model->n_params + 63) / 64;
    s->header_bytes =
        (uint32_t)(sizeof(header) + s->flag_words * sizeof(uint64_t) + ((s->n_tables + 1) & ~1u) * sizeof(uint32_t));
    s->headers = calloc(2 * (size_t)size, s->header_bytes);
    s->parcels = calloc(2 * (size_t)size, sizeof *s->parcels);
    s->rows = calloc(size, sizeof *s->rows);
    s->come = calloc(size, sizeof *s->come);
    s->sums = calloc(size, sizeof *s->sums);
    s->out = calloc(size, sizeof *s->out);
    s->counts = calloc((size_t)size * s->n_tables + 1, sizeof *s->counts);
    s->cursors = calloc(size, sizeof *s->cursors);
    s->slots = calloc(s->n_tables + 1, sizeof *s->slots);
    bool ok = s->tables && s->headers && s->parcels && s->rows && s->come && s->sums && s->out && s->counts &&
              s->cursors && s->slots;
    for (uint32_t t = 0; ok && t < s->n_tables; t++) {
        s->slots[t] = calloc(rows_at(s, model->params[s->tables[t]].count), sizeof *s->slots[t]);
        ok = s->slots[t] != NULL;
    }
    return ok;
}

vpps_status vpps_share_open(vpps_share **out, vpps_cpu *cpu, vpps_communicator *c) {
    void *memory = NULL;
    *out = NULL;
    if (posix_memalign(&memory, 64, sizeof(vpps_share))) return vpps_fail(VPPS_MEMORY, "cpu: out of memory");
    vpps_share *s = memset(memory, 0, sizeof(vpps_share));
    s->c = c;
    XXH3_state_t *hash = XXH3_createState();
    if (!hash || !make_room(s, cpu->model)) {
        XXH3_freeState(hash);
        vpps_share_close(s);
        return vpps_fail(VPPS_MEMORY, "cpu: out of memory for gradients of %u processes", c->size);
    }
    XXH3_64bits_reset(hash);
    hash_of_model(hash, cpu);
    s->model = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    *out = s;
    return VPPS_OK;
}

void vpps_share_close(vpps_share *s) {
    if (!s) return;
    for (uint32_t p = 0; p < s->c->size; p++) {
        if (s->rows) free(s->rows[p].words);
        if (s->come) free(s->come[p].words);
        if (s->sums) free(s->sums[p].words);
    }
    for (uint32_t t = 0; s->slots && t < s->n_tables; t++) free(s->slots[t]);
    free(s->tables);
    free(s->headers);
    free(s->parcels);
    free(s->rows);
    free(s->come);
    free(s->sums);
    free(s->out);
    free(s->counts);
    free(s->cursors);
    free(s->slots);
    free(s);
}

vpps_share_cost vpps_share_cost_of(const vpps_share *s) { return s->cost; }
uint64_t vpps_share_model(const vpps_share *s) { return s->model; }

/* ---------------------------------------------------------------- headers */

static uint32_t words_of(const vpps_cpu *cpu, vpps_param param) {
    return cpu->model->params[param].rows * cpu->model->params[param].cols;
}

static uint32_t table_number(const vpps_share *s, vpps_param param) {
    uint32_t t = 0;
    while (s->tables[t] != param) t++;
    return t;
}

static void write_headers(vpps_share *s, const vpps_cpu *cpu) {
    header *first = header_at(s, false, 0);
    memset(first, 0, s->header_bytes);
    *first = (header){.model = s->model,
                      .step = hash_of_step(cpu),
                      .loss = cpu->loss,
                      .busy_ns = vpps_now_ns() - cpu->start_ns,
                      .vote = cpu->device.vote};
    for (uint32_t i = 0; i < cpu->n_segments; i++) first->n_rows += cpu->segments[i].n;
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        if (cpu->vps[0].touched[p] == cpu->launch) flags_of(first)[p / 64] |= (uint64_t)1 << (p % 64);
    for (uint32_t p = 1; p < s->c->size; p++) memcpy(header_at(s, false, p), first, s->header_bytes);
    for (uint32_t i = 0; i < cpu->n_segments; i++) {
        const vpps_row_segment *g = &cpu->segments[i];
        const uint32_t t = table_number(s, g->param);
        for (uint32_t k = 0; k < g->n; k++) counts_of(s, header_at(s, false, g->rows[k] % s->c->size))[t]++;
    }
    memcpy(header_at(s, true, s->c->rank), header_at(s, false, s->c->rank), s->header_bytes);
}

static vpps_status exchange_headers(vpps_share *s) {
    for (uint32_t p = 0; p < s->c->size; p++) {
        s->parcels[p] = (vpps_parcel){header_at(s, false, p), s->header_bytes};
        s->parcels[s->c->size + p] = (vpps_parcel){header_at(s, true, p), s->header_bytes};
    }
    VPPS_TRY(s->c->table->exchange(s->c, s->parcels, s->parcels + s->c->size));
    const header *first = header_at(s, true, 0);
    for (uint32_t p = 1; p < s->c->size; p++) {
        const header *h = header_at(s, true, p);
        if (h->model == first->model && h->step == first->step) continue;
        return vpps_fail(VPPS_STATE, "rank %u on %s trains %s than rank 0 on %s", p, s->c->hosts[p],
                         h->model != first->model
                             ? "another model, or with other VPs, instructions, precision or version"
                             : "with other settings of the step",
                         s->c->hosts[0]);
    }
    return VPPS_OK;
}

/* The loss, votes and times of all, in the order of ranks; flags of all parameters with a gradient, in this process's. */
static void read_headers(vpps_share *s, vpps_cpu *cpu) {
    uint64_t sum_ns = 0;
    header *own = header_at(s, true, s->c->rank);
    s->cost = (vpps_share_cost){0};
    cpu->loss = 0;
    for (uint32_t p = 0; p < s->c->size; p++) {
        header *h = header_at(s, true, p);
        cpu->loss += h->loss;
        s->cost.votes += h->vote;
        sum_ns += h->busy_ns;
        if (h->busy_ns > s->cost.slowest_ns) s->cost.slowest_ns = h->busy_ns;
        for (uint32_t w = 0; w < s->flag_words; w++) flags_of(own)[w] |= flags_of(h)[w];
    }
    s->cost.mean_ns = sum_ns / vpps_max_u32(s->c->size, 1);
}

static bool has_gradient(const vpps_share *s, uint32_t param) {
    return flags_of(header_at(s, true, s->c->rank))[param / 64] >> (param % 64) & 1;
}

/* ---------------------------------------------------------------- matrices and vectors */

/* A VP's part of a matrix's gradient. */
static vpps_run matrix_run(const vpps_cpu *cpu, uint32_t param, uint32_t vp) {
    const vpps_blocks blocks = vpps_blocks_of(cpu, param, vp, cpu->n_vps);
    if (!blocks.n) return (vpps_run){NULL, 0};
    const vpps_matrix_block *first = blocks.blocks, *last = first + blocks.n - 1;
    return (vpps_run){first->gradient,
                      (size_t)(last->gradient - first->gradient) + last->ld * cpu->model->params[param].cols};
}

/* Gradients lie VP by VP, matrix by matrix: what follows each other goes at a time. */
static vpps_status reduce_matrices(vpps_share *s, vpps_cpu *cpu) {
    vpps_run all = {NULL, 0};
    for (uint32_t v = 0; v < cpu->n_vps; v++) {
        for (uint32_t p = 0; p < cpu->model->n_params; p++) {
            if (cpu->model->params[p].kind != VPPS_MATRIX || !has_gradient(s, p)) continue;
            const vpps_run own = matrix_run(cpu, p, v);
            if (!own.n) continue;
            if (cpu->vps[v].touched[p] != cpu->launch) memset(own.at, 0, own.n * sizeof *own.at);
            if (all.at && own.at != all.at + all.n) {
                VPPS_TRY(s->c->table->allreduce(s->c, all.at, all.n));
                all = (vpps_run){NULL, 0};
            }
            all = (vpps_run){all.at ? all.at : own.at, all.n + own.n};
        }
    }
    return all.n ? s->c->table->allreduce(s->c, all.at, all.n) : VPPS_OK;
}

/* Gradients of vectors were all zeroed before the launch. */
static vpps_status reduce_vectors(vpps_share *s, vpps_cpu *cpu) {
    bool any = false;
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        any |= cpu->model->params[p].kind == VPPS_VECTOR && has_gradient(s, p);
    if (!any) return VPPS_OK;
    return s->c->table->allreduce(s->c, cpu->pool + cpu->gradients.first, cpu->gradients.end - cpu->gradients.first);
}

/* ---------------------------------------------------------------- rows of tables */

/* Makes room for the rows that a header counts. */
static bool need_rows(vpps_share *s, const vpps_cpu *cpu, rows_parcel *r, const uint32_t *counts) {
    r->n_words = 0;
    for (uint32_t t = 0; t < s->n_tables; t++) r->n_words += (size_t)counts[t] * (1 + words_of(cpu, s->tables[t]));
    return VPPS_RESERVE(r->words, r->capacity, r->n_words + 1);
}

/* Where a table's rows lie in a parcel: their numbers; behind them their gradients. */
static uint32_t *rows_of_table(vpps_share *s, const vpps_cpu *cpu, const rows_parcel *r, const uint32_t *counts,
                               uint32_t table) {
    uint32_t *at = r->words;
    for (uint32_t t = 0; t < table; t++) at += (size_t)counts[t] * (1 + words_of(cpu, s->tables[t]));
    return at;
}

static bool pack_rows(vpps_share *s, const vpps_cpu *cpu) {
    for (uint32_t p = 0; p < s->c->size; p++)
        if (!need_rows(s, cpu, &s->rows[p], counts_of(s, header_at(s, false, p)))) return false;
    for (uint32_t i = 0; i < cpu->n_segments; i++) {
        const vpps_row_segment *g = &cpu->segments[i];
        const uint32_t t = table_number(s, g->param), words = words_of(cpu, g->param);
        memset(s->cursors, 0, s->c->size * sizeof *s->cursors);
        for (uint32_t k = 0; k < g->n; k++) {
            const uint32_t p = g->rows[k] % s->c->size, at = s->cursors[p]++;
            const uint32_t *counts = counts_of(s, header_at(s, false, p));
            uint32_t *to = rows_of_table(s, cpu, &s->rows[p], counts, t);
            to[at] = g->rows[k];
            memcpy(to + counts[t] + (size_t)at * words, g->gradients + (size_t)k * words, words * sizeof(float));
        }
    }
    return true;
}

static vpps_status exchange_rows(vpps_share *s, const rows_parcel *in) {
    for (uint32_t p = 0; p < s->c->size; p++) {
        s->parcels[p] = (vpps_parcel){s->out[p]->words, s->out[p]->n_words * 4};
        s->parcels[s->c->size + p] = (vpps_parcel){in[p].words, in[p].n_words * 4};
    }
    return s->c->table->exchange(s->c, s->parcels, s->parcels + s->c->size);
}

/* Adds up what came for the rows that are this process's, in the order of ranks, into its part of `sums`; `counts` are
 * those of its tables. */
static bool add_rows(vpps_share *s, const vpps_cpu *cpu, const rows_parcel *from, uint32_t *counts) {
    const uint32_t rank = s->c->rank, size = s->c->size;
    memset(counts, 0, s->n_tables * sizeof *counts);
    for (uint32_t p = 0; p < size; p++) {
        const uint32_t *had = counts_of(s, header_at(s, true, p));
        for (uint32_t t = 0; t < s->n_tables; t++) {
            const uint32_t *rows = rows_of_table(s, cpu, &from[p], had, t);
            for (uint32_t k = 0; k < had[t]; k++) {
                slot *to = &s->slots[t][rows[k] / size];
                if (to->launch != cpu->launch) *to = (slot){cpu->launch, counts[t]++};
            }
        }
    }
    rows_parcel *sums = &s->sums[rank];
    if (!need_rows(s, cpu, sums, counts)) return false;
    memset(sums->words, 0, sums->n_words * 4);
    for (uint32_t t = 0; t < s->n_tables; t++) {
        const uint32_t words = words_of(cpu, s->tables[t]);
        uint32_t *numbers = rows_of_table(s, cpu, sums, counts, t);
        float *values = (float *)(void *)(numbers + counts[t]);
        for (uint32_t p = 0; p < size; p++) {
            const uint32_t *had = counts_of(s, header_at(s, true, p));
            const uint32_t *rows = rows_of_table(s, cpu, &from[p], had, t);
            const float *gradients = (const float *)(const void *)(rows + had[t]);
            for (uint32_t k = 0; k < had[t]; k++) {
                const uint32_t at = s->slots[t][rows[k] / size].at;
                numbers[at] = rows[k];
                cpu->kernels->add(words, values + (size_t)at * words, gradients + (size_t)k * words);
            }
        }
    }
    return true;
}

static vpps_status no_memory(void) { return vpps_fail(VPPS_MEMORY, "cpu: out of memory for rows of lookup tables"); }

/* The sums of all processes' rows are the batch's segments from here on. */
static vpps_status take_segments(vpps_share *s, vpps_cpu *cpu, const uint32_t *counts) {
    cpu->n_segments = 0;
    if (!VPPS_RESERVE(cpu->segments, cpu->segments_capacity, (size_t)s->c->size * s->n_tables + 1)) return no_memory();
    for (uint32_t p = 0; p < s->c->size; p++) {
        const uint32_t *had = counts + (size_t)p * s->n_tables;
        for (uint32_t t = 0; t < s->n_tables; t++) {
            uint32_t *rows = rows_of_table(s, cpu, &s->sums[p], had, t);
            if (!had[t]) continue;
            cpu->segments[cpu->n_segments++] =
                (vpps_row_segment){s->tables[t], had[t], rows, (float *)(void *)(rows + had[t])};
        }
    }
    return VPPS_OK;
}

/* Of tables that are shared out each process steps with its own rows. Where the norm is taken, all need the squares of all. */
static vpps_status keep_rows(vpps_share *s, vpps_cpu *cpu) {
    memset(s->counts, 0, (size_t)s->c->rank * s->n_tables * sizeof *s->counts);
    const uint32_t next = s->c->rank + 1;
    memset(s->counts + (size_t)next * s->n_tables, 0, (size_t)(s->c->size - next) * s->n_tables * sizeof *s->counts);
    VPPS_TRY(take_segments(s, cpu, s->counts));
    if (!cpu->task_header.guard && !(cpu->task_header.clip > 0)) return VPPS_OK;
    for (uint32_t i = 0; i < cpu->n_segments; i++) {
        const vpps_row_segment *g = &cpu->segments[i];
        const uint32_t words = words_of(cpu, g->param);
        for (uint32_t k = 0; k < g->n; k++)
            cpu->squares += cpu->kernels->sum_squares(words, g->gradients + (size_t)k * words);
    }
    return vpps_comm_sum(s->c, &cpu->squares, 1);
}

/* To those who add them up, and the sums to all. */
static vpps_status share_rows(vpps_share *s, vpps_cpu *cpu) {
    const uint32_t size = s->c->size, rank = s->c->rank;
    uint64_t n_rows = 0;
    for (uint32_t p = 0; p < size; p++) n_rows += header_at(s, true, p)->n_rows;
    if (!n_rows) return VPPS_OK;
    if (!pack_rows(s, cpu)) return no_memory();
    for (uint32_t p = 0; p < size; p++) {
        s->out[p] = &s->rows[p];
        if (p != rank && !need_rows(s, cpu, &s->come[p], counts_of(s, header_at(s, true, p)))) return no_memory();
    }
    VPPS_TRY(exchange_rows(s, s->come));
    const rows_parcel kept = s->come[rank];
    s->come[rank] = s->rows[rank]; /* what stays here */
    const bool ok = add_rows(s, cpu, s->come, s->counts + (size_t)rank * s->n_tables);
    s->come[rank] = kept;
    if (!ok) return no_memory();
    if (cpu->entries) return keep_rows(s, cpu);
    VPPS_TRY(
        vpps_comm_gather(s->c, s->counts + (size_t)rank * s->n_tables, s->counts, s->n_tables * sizeof *s->counts));
    for (uint32_t p = 0; p < size; p++) {
        s->out[p] = &s->sums[rank];
        if (p != rank && !need_rows(s, cpu, &s->sums[p], s->counts + (size_t)p * s->n_tables)) return no_memory();
    }
    VPPS_TRY(exchange_rows(s, s->sums));
    return take_segments(s, cpu, s->counts);
}

/* ---------------------------------------------------------------- the meeting */

static vpps_status share_batch(vpps_share *s, vpps_cpu *cpu) {
    const uint64_t begin_ns = vpps_now_ns(), sent_bytes = s->c->sent_bytes;
    write_headers(s, cpu);
    VPPS_TRY(exchange_headers(s));
    read_headers(s, cpu);
    VPPS_TRY(reduce_matrices(s, cpu));
    VPPS_TRY(reduce_vectors(s, cpu));
    VPPS_TRY(share_rows(s, cpu));
    s->cost.exchange_ns = vpps_now_ns() - begin_ns;
    s->cost.sent_bytes = s->c->sent_bytes - sent_bytes;
    return VPPS_OK;
}

static void add_one(vpps_cpu *cpu, vpps_counter *counter) {
    atomic_fetch_add(&counter->value, 1);
    vpps_wake(cpu, &counter->value);
}

/* The first VP exchanges when all are here. */
static bool lead(vpps_vp *vp, vpps_share *s) {
    vpps_cpu *cpu = vp->cpu;
    const uint32_t others = (cpu->n_vps - 1) * ++s->batches;
    const vpps_wait_end end = vpps_wait_for(cpu, &s->arrived.value, others, cpu->watchdog_ns, true);
    if (end == VPPS_WAIT_TIMEOUT) vpps_cpu_fail(cpu, VPPS_STALL, "a VP's gradients are not there");
    if (end != VPPS_WAIT_REACHED) return false;
    const vpps_status status = share_batch(s, cpu);
    if (status != VPPS_OK) vpps_cpu_fail(cpu, status, vpps_error_message());
    add_one(cpu, &s->released);
    return status == VPPS_OK;
}

bool vpps_vp_share(vpps_vp *vp) {
    vpps_cpu *cpu = vp->cpu;
    vpps_share *s = cpu->share;
    if (!s || vp->shared == cpu->launch) return true;
    vp->shared = cpu->launch;
    if (vp->index == 0) {
        if (!lead(vp, s)) return false;
    } else {
        const uint32_t batch = atomic_load(&s->released.value) + 1; /* it rises when this VP is here */
        add_one(cpu, &s->arrived);
        if (vpps_wait_for(cpu, &s->released.value, batch, 0, true) != VPPS_WAIT_REACHED) return false;
    }
    for (uint32_t p = 0; p < cpu->model->n_params; p++)
        if (cpu->model->params[p].kind != VPPS_LOOKUP && has_gradient(s, p)) vp->touched[p] = cpu->launch;
    return !atomic_load(&cpu->failed);
}

void vpps_share_wake(vpps_share *s, vpps_cpu *cpu) {
    vpps_wake(cpu, &s->arrived.value);
    vpps_wake(cpu, &s->released.value);
}
