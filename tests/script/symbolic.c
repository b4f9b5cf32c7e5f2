/* symbolic.c - runs a script on the symbolic machine in some order of the VPs. */
#include "symbolic_machine.h"

/* ---------------------------------------------------------------- running */

static void compute(symbolic_machine *m, const vpps_task *t) {
    const uint32_t *o = t->operands;
    switch (t->kind) {
    case VPPS_TASK_NOTHING: break;
    case VPPS_TASK_STAGE: symbolic_stage(m, t); break;
    case VPPS_TASK_CONSTANTS: symbolic_constants(m, o[0], o[1]); break;
    case VPPS_TASK_OUTER: symbolic_outer(m, o[0], o[1], o[2]); break;
    case VPPS_TASK_ENTRIES: symbolic_entries(m, o[0], o[1]); break;
    case VPPS_TASK_LOSS: symbolic_loss(m, o[0], o[1]); break;
    case VPPS_TASK_NORM: symbolic_norm(m); break;
    case VPPS_TASK_UPDATE: symbolic_update(m); break;
    default: m->fault = true;
    }
}

/* The task at an address of a group's; NULL: there is no whole one, or its barriers are none. */
static const vpps_task *task_at(const symbolic_machine *m, uint32_t group, uint32_t at) {
    const uint32_t end = vpps_task_starts(m->s->script)[group + 1];
    if (at >= end || end - at < VPPS_TASK_WORDS) return NULL;
    const vpps_task *t = vpps_task_at(m->s->script, at);
    const bool barriers = (t->wait == VPPS_NO_BARRIER || t->wait < m->h.n_barriers) &&
                          (t->signal == VPPS_NO_BARRIER || t->signal < m->h.n_barriers);
    return barriers ? t : NULL;
}

/* One of the three parts of a task of VP vp: it waits, does it, signals. False: it must wait. */
static bool step(symbolic_machine *m, uint32_t vp) {
    const vpps_task *t = task_at(m, vp / m->group_size, m->pc[vp]);
    m->vp = vp;
    if (!t) {
        m->fault = true;
        return true;
    }
    if (t->wait != VPPS_NO_BARRIER && !m->passed[vp]) {
        if (m->counters[t->wait] < t->signals) return false;
        if (m->log) race_log_wait(m->log, vp, t->wait, t->signals);
        m->passed[vp] = 1;
        return true;
    }
    if (t->kind == VPPS_TASK_END) {
        m->done[vp] = 1;
        return true;
    }
    if (!m->computed[vp]) {
        compute(m, t);
        m->computed[vp] = 1;
        if (t->signal != VPPS_NO_BARRIER) return true;
    }
    if (t->signal != VPPS_NO_BARRIER) {
        m->counters[t->signal]++;
        if (m->log) race_log_signal(m->log, vp, t->signal);
    }
    m->passed[vp] = m->computed[vp] = 0;
    m->pc[vp] += VPPS_TASK_WORDS;
    return true;
}

static void commit(symbolic_machine *m) {
    for (size_t i = 0; i < m->n_pending; i++) *m->pending[i].at = m->pending[i].value;
    m->n_pending = 0;
}

static symbolic_outcome outcome_of(const symbolic_machine *m) {
    if (m->fault) return SYMBOLIC_FAULT;
    for (uint32_t vp = 0; vp < m->h.n_vps; vp++)
        if (!m->done[vp]) return SYMBOLIC_STUCK;
    return SYMBOLIC_DONE;
}

/* Lets every VP but one run until none can. */
static void run_others(symbolic_machine *m, uint32_t but) {
    for (bool more = true; more && !m->fault;) {
        more = false;
        for (uint32_t vp = 0; vp < m->h.n_vps; vp++)
            while (vp != but && !m->done[vp] && !m->fault && step(m, vp)) more = true;
    }
}

/* The VP reads, all others go on, then it writes. */
static void run_starving(symbolic_machine *m, uint32_t vp) {
    for (;;) {
        run_others(m, vp);
        if (m->fault || m->done[vp]) return;
        m->hold = true;
        const bool stepped = step(m, vp);
        m->hold = false;
        if (!stepped) return;
        run_others(m, vp);
        commit(m);
    }
}

static void run_favouring(symbolic_machine *m, uint32_t favourite) {
    for (bool any = true; any && !m->fault;) {
        any = false;
        for (uint32_t i = 0; i < m->h.n_vps && !any && !m->fault; i++) {
            const uint32_t vp = (favourite + i) % m->h.n_vps;
            any = !m->done[vp] && step(m, vp);
        }
    }
}

/* ---------------------------------------------------------------- results */

static uint64_t result_hash(symbolic_machine *m) {
    const vpps_model *model = m->s->g->model;
    const vpps_batch_request *r = m->s->request;
    const bool training = r->loss != VPPS_NO_NODE;
    uint64_t h = 1;
    for (uint32_t p = 0; p < model->n_params && training; p++) {
        const vpps_parameter_data *data = &model->params[p];
        for (size_t i = 0; i < vpps_param_elems(data); i++) {
            h = symbolic_mix(h, data->kind == VPPS_MATRIX ? m->values[p][i] : m->pool[m->s->machine->values[p] + i]);
            h = symbolic_mix(h, m->states[p][i]);
        }
    }
    if (training) return symbolic_mix(h, m->loss);
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        uint32_t rows = 0, cols = 0;
        vpps_node_shape(m->s->g, r->outputs[i], &rows, &cols);
        for (uint32_t k = 0; k < rows * cols; k++) h = symbolic_mix(h, symbolic_get(m, (uint64_t)m->s->outputs[i] + k));
    }
    return h;
}

static bool header_is_usable(const subject *s, const vpps_task_header *h) {
    const uint32_t *starts = s->script + VPPS_TASK_HEADER_WORDS;
    if (h->magic != VPPS_TASK_MAGIC || h->words != s->words || h->n_vps != s->machine->n_vps) return false;
    if (!h->n_groups || h->n_vps % h->n_groups || h->n_groups + VPPS_TASK_HEADER_WORDS >= s->words) return false;
    if (h->n_barriers > s->words || h->pool_words > s->machine->pool_words) return false;
    if (h->blocks + (uint64_t)h->n_blocks * VPPS_BLOCK_WORDS > s->words) return false;
    if (h->tables + (uint64_t)h->n_tables * (sizeof(vpps_table) / 4) > s->words) return false;
    for (uint32_t i = 0; i < h->n_groups; i++)
        if (starts[i] > starts[i + 1] || starts[i + 1] > s->words) return false;
    return h->update <= VPPS_ADAMW + 1 && (h->update != 0) == (s->request->loss != VPPS_NO_NODE);
}

static void fill(uint64_t *at, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) at[i] = symbolic_mix(seed, i);
}

static void prepare(symbolic_machine *m) {
    const vpps_model *model = m->s->g->model;
    const size_t n = model->n_params, n_vps = m->h.n_vps;
    const uint32_t batch = m->s->machine->batch;
    m->limit = vpps_max_u32(m->h.pool_words, batch);
    m->pool = symbolic_take(m->limit, sizeof *m->pool);
    fill(m->pool, batch, 11);
    fill(m->pool + batch, m->limit - batch, m->salt);
    uint64_t ***arrays[] = {&m->values, &m->gradients, &m->states};
    for (size_t i = 0; i < VPPS_COUNT(arrays); i++) {
        *arrays[i] = symbolic_take(n, sizeof **arrays[i]);
        for (uint32_t p = 0; p < n; p++)
            (*arrays[i])[p] = symbolic_take(vpps_param_elems(&model->params[p]), sizeof(uint64_t));
    }
    for (uint32_t p = 0; p < n; p++) fill(m->values[p], vpps_param_elems(&model->params[p]), 1000 + p);
    m->norms = symbolic_take(n_vps, sizeof *m->norms);
    fill(m->norms, n_vps, m->salt + 3);
    m->loss = 0;
    m->pc = symbolic_take(n_vps, sizeof *m->pc);
    m->counters = symbolic_take(m->h.n_barriers, sizeof *m->counters);
    m->done = symbolic_take(n_vps, 1);
    m->passed = symbolic_take(n_vps, 1);
    m->computed = symbolic_take(n_vps, 1);
    m->touched = symbolic_take(n_vps * n, 1);
    m->blocks = symbolic_take(m->h.n_blocks, sizeof *m->blocks);
    m->group_size = m->h.n_vps / m->h.n_groups;
    for (uint32_t vp = 0; vp < n_vps; vp++) m->pc[vp] = m->s->script[VPPS_TASK_HEADER_WORDS + vp / m->group_size];
    for (uint32_t i = 0; i < m->h.n_blocks && !m->fault; i++) symbolic_find(m, i);
}

static void release(symbolic_machine *m) {
    uint64_t **arrays[] = {m->values, m->gradients, m->states};
    for (size_t i = 0; i < VPPS_COUNT(arrays); i++) {
        for (size_t p = 0; p < m->s->g->model->n_params; p++) free(arrays[i][p]);
        free(arrays[i]);
    }
    void *blocks[] = {m->pool,   m->norms,    m->pc,      m->counters, m->done,
                      m->passed, m->computed, m->touched, m->blocks,   m->pending};
    for (size_t i = 0; i < VPPS_COUNT(blocks); i++) free(blocks[i]);
}

static symbolic_result run(const subject *s, symbolic_order order, race_log *log) {
    symbolic_machine m = {.s = s, .salt = order.salt, .tiles = order.tiles, .log = log};
    if (s->words < VPPS_TASK_HEADER_WORDS + 2) return (symbolic_result){SYMBOLIC_FAULT, 0};
    memcpy(&m.h, s->script, sizeof m.h);
    if (!header_is_usable(s, &m.h)) return (symbolic_result){SYMBOLIC_FAULT, 0};
    prepare(&m);
    if (!m.fault && order.starve) run_starving(&m, order.vp);
    if (!m.fault && !order.starve) run_favouring(&m, order.vp);
    m.log = NULL; /* what the host reads is no VP's access */
    symbolic_result result = {outcome_of(&m), 0};
    if (result.outcome == SYMBOLIC_DONE) result.hash = result_hash(&m);
    if (m.fault) result = (symbolic_result){SYMBOLIC_FAULT, 0};
    release(&m);
    return result;
}

symbolic_result symbolic_run(const subject *s, symbolic_order order) { return run(s, order, NULL); }

/* Signals count as far as a group's tasks can be read. */
static void count_signals(race_log *log, const subject *s, const vpps_task_header *h) {
    const symbolic_machine m = {.s = s, .h = *h};
    for (uint32_t g = 0; g < h->n_groups; g++) {
        uint32_t at = vpps_task_starts(s->script)[g];
        for (const vpps_task *t = task_at(&m, g, at); t && t->kind != VPPS_TASK_END;
             t = task_at(&m, g, at += VPPS_TASK_WORDS))
            if (t->signal != VPPS_NO_BARRIER) race_log_expect(log, t->signal, h->n_vps / h->n_groups);
    }
}

bool symbolic_races(const subject *s) {
    vpps_task_header h;
    if (s->words < VPPS_TASK_HEADER_WORDS + 2) return false;
    memcpy(&h, s->script, sizeof h);
    if (!header_is_usable(s, &h)) return false;
    race_log *log = race_log_create(h.n_vps, h.n_barriers);
    count_signals(log, s, &h);
    run(s, (symbolic_order){0, false, SYMBOLIC_AT_ONCE, 1}, log);
    const bool found = race_log_found(log);
    race_log_destroy(log);
    return found;
}

bool symbolic_differs(const subject *s, const symbolic_result *expected) {
    for (uint32_t i = 0; i < vpps_max_u32(2 * s->machine->n_vps, SYMBOLIC_TILES); i++) {
        const symbolic_order order = {i / 2 % s->machine->n_vps, i % 2, (symbolic_tiles)(i % SYMBOLIC_TILES), 100 + i};
        const symbolic_result r = symbolic_run(s, order);
        if (r.outcome != expected->outcome || r.hash != expected->hash) return true;
        if (r.outcome != SYMBOLIC_DONE) return false;
    }
    return false;
}
