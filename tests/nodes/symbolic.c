/* symbolic.c - runs a script on the symbolic machine in some order of the VPs. */
#include "symbolic_machine.h"

/* ---------------------------------------------------------------- running */

/* One instruction of VP vp, its writes pending; false: it waits. */
static bool step(symbolic_machine *m, uint32_t vp) {
    m->vp = vp;
    while (m->calling[vp] && m->pc[vp] == m->end[vp]) {
        m->pc[vp] = m->back_pc[vp];
        m->end[vp] = m->back_end[vp];
        m->calling[vp] = 0;
    }
    const uint32_t *at = m->s->script + m->pc[vp];
    uint32_t n = vpps_instruction_words(at, m->s->script + m->end[vp]);
    if (!n) {
        m->fault = true;
        return true;
    }
    const uint32_t op = vpps_word_opcode(at[0]), length = vpps_word_length(at[0]);
    if (op == VPPS_I_WAIT) {
        if (at[1] >= m->h->n_barriers)
            m->fault = true;
        else if (m->counters[at[1]] < at[2])
            return false;
    }
    m->pc[vp] += n;
    switch (op) {
    case VPPS_I_NOP:
    case VPPS_I_HOST: break;
    case VPPS_I_WAIT:
        if (m->log && !m->fault) race_log_wait(m->log, vp, at[1], at[2]);
        break;
    case VPPS_I_SIGNAL:
        if (at[1] >= m->h->n_barriers) {
            m->fault = true;
            break;
        }
        m->counters[at[1]]++;
        if (m->log) race_log_signal(m->log, vp, at[1]);
        break;
    case VPPS_I_END: m->done[vp] = 1; break;
    case VPPS_I_CALL:
        if (m->calling[vp] || (uint64_t)at[1] + length > m->s->words) {
            m->fault = true;
            break;
        }
        m->back_pc[vp] = m->pc[vp];
        m->back_end[vp] = m->end[vp];
        m->pc[vp] = at[1];
        m->end[vp] = at[1] + length;
        m->calling[vp] = 1;
        break;
    default: symbolic_compute(m, at); break;
    }
    return true;
}

static void commit(symbolic_machine *m) {
    for (size_t i = 0; i < m->n_pending; i++) {
        *m->pending[i].at = m->pending[i].value + (m->pending[i].add ? *m->pending[i].at : 0);
    }
    m->n_pending = 0;
}

/* Lets every VP but one run until none can; true: some got further. */
static bool run_others(symbolic_machine *m, uint32_t but) {
    bool any = false, more = true;
    while (more && !m->fault) {
        more = false;
        for (uint32_t vp = 0; vp < m->h->n_vps; vp++) {
            while (vp != but && !m->done[vp] && !m->fault && step(m, vp)) {
                commit(m);
                more = any = true;
            }
        }
    }
    return any;
}

static symbolic_outcome run_starving(symbolic_machine *m, uint32_t vp) {
    for (;;) {
        run_others(m, vp);
        if (m->fault) return SYMBOLIC_FAULT;
        if (m->done[vp]) break;
        struct pending *held;
        size_t n_held, capacity;
        bool stepped = step(m, vp);
        if (m->fault) return SYMBOLIC_FAULT;
        if (!stepped) break;
        /* a signal is seen at once: it is what comes before it that may be late */
        held = m->pending;
        n_held = m->n_pending;
        capacity = m->pending_capacity;
        m->pending = NULL;
        m->n_pending = m->pending_capacity = 0;
        run_others(m, vp);
        free(m->pending);
        m->pending = held;
        m->n_pending = n_held;
        m->pending_capacity = capacity;
        commit(m);
        if (m->fault) return SYMBOLIC_FAULT;
    }
    for (uint32_t i = 0; i < m->h->n_vps; i++) {
        if (!m->done[i]) return SYMBOLIC_STUCK;
    }
    return SYMBOLIC_DONE;
}

static symbolic_outcome run_favouring(symbolic_machine *m, uint32_t favourite) {
    for (;;) {
        bool any = false;
        for (uint32_t i = 0; i < m->h->n_vps && !any && !m->fault; i++) {
            uint32_t vp = (favourite + i) % m->h->n_vps;
            if (m->done[vp] || !step(m, vp)) continue;
            commit(m);
            any = true;
        }
        if (m->fault) return SYMBOLIC_FAULT;
        if (!any) break;
    }
    for (uint32_t i = 0; i < m->h->n_vps; i++) {
        if (!m->done[i]) return SYMBOLIC_STUCK;
    }
    return SYMBOLIC_DONE;
}

/* ---------------------------------------------------------------- results */

static uint64_t result_hash(symbolic_machine *m) {
    const vpps_model *model = m->s->g->model;
    const vpps_plan *plan = m->s->plan;
    const vpps_request *r = m->s->request;
    uint64_t h = 1;
    for (uint32_t p = 0; p < model->n_params && r->loss != VPPS_NO_NODE; p++) {
        const vpps_parameter_data *data = &model->params[p];
        for (size_t i = 0; i < vpps_param_elems(data); i++) {
            h = symbolic_mix(h, data->kind == VPPS_MATRIX ? m->matrices[p][i] : m->pool[plan->values[p] + i]);
            if (data->kind != VPPS_MATRIX) h = symbolic_mix(h, m->pool[plan->states[0][p] + i]);
        }
    }
    if (r->loss != VPPS_NO_NODE) h = symbolic_mix(h, symbolic_get(m, m->h->loss));
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        const vpps_signature *s = &m->s->g->signatures[m->s->g->flat.nodes[r->outputs[i]].signature];
        if (s->param != VPPS_NO_PARAM && s->op != VPPS_OP_AFFINE) continue; /* a parameter: the host sees it updated */
        for (uint32_t k = 0; k < vpps_words(s); k++)
            h = symbolic_mix(h, symbolic_get(m, (uint64_t)m->s->values[r->outputs[i]] + k));
    }
    return h;
}

static bool header_is_usable(const subject *s, const vpps_script_header *h) {
    const uint32_t *starts = vpps_script_starts(s->script);
    if (h->magic != VPPS_SCRIPT_MAGIC || h->words != s->words || h->n_vps != s->plan->n_vps) return false;
    if (h->n_barriers > s->words || h->pool_words > s->plan->pool_words) return false;
    for (uint32_t i = 0; i < h->n_vps; i++) {
        if (starts[i] > starts[i + 1] || starts[i + 1] > s->words) return false;
    }
    return h->update <= VPPS_ADAMW + 1;
}

static void *take(size_t n, size_t bytes) {
    void *block = calloc(n ? n : 1, bytes);
    if (!block) abort();
    return block;
}

static void fill(uint64_t *at, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) at[i] = symbolic_mix(seed, i);
}

static void prepare_memory(symbolic_machine *m) {
    const vpps_model *model = m->s->g->model;
    const vpps_plan *plan = m->s->plan;
    const size_t n = model->n_params, n_vps = m->h->n_vps;
    m->pool = take(m->limit, sizeof *m->pool);
    m->matrices = take(n, sizeof *m->matrices);
    m->gradients = take(n, sizeof *m->gradients);
    m->transposed = take(n * n_vps, sizeof *m->transposed);
    m->norms = take(n_vps, sizeof *m->norms);
    fill(m->pool, plan->batch, 11);
    fill(m->pool + plan->batch, m->limit - plan->batch, m->salt);
    for (uint32_t p = 0; p < n; p++) {
        const vpps_parameter_data *data = &model->params[p];
        if (data->kind == VPPS_VECTOR) memset(m->pool + plan->gradients[p], 0, data->rows * sizeof *m->pool);
        if (data->kind != VPPS_MATRIX) continue;
        size_t all = vpps_param_elems(data);
        m->matrices[p] = take(all, sizeof **m->matrices);
        m->gradients[p] = take(all, sizeof **m->gradients);
        fill(m->matrices[p], all, 1000 + p);
        for (size_t vp = 0; vp < n_vps; vp++) {
            m->transposed[p * n_vps + vp] = take(all, sizeof **m->transposed);
            fill(m->transposed[p * n_vps + vp], all, m->salt + vp + 1);
        }
    }
}

static void prepare_vps(symbolic_machine *m) {
    const size_t n_vps = m->h->n_vps;
    const uint32_t *starts = vpps_script_starts(m->s->script);
    uint32_t **arrays[] = {&m->pc, &m->end, &m->back_pc, &m->back_end};
    for (size_t i = 0; i < VPPS_COUNT(arrays); i++) *arrays[i] = take(n_vps, sizeof **arrays[i]);
    m->counters = take(m->h->n_barriers, sizeof *m->counters);
    m->calling = take(n_vps, 1);
    m->done = take(n_vps, 1);
    for (size_t vp = 0; vp < n_vps; vp++) {
        m->pc[vp] = starts[vp];
        m->end[vp] = starts[vp + 1];
    }
}

static void release(symbolic_machine *m) {
    for (size_t p = 0; p < m->s->g->model->n_params; p++) {
        free(m->matrices[p]);
        free(m->gradients[p]);
        for (size_t vp = 0; vp < m->h->n_vps; vp++) free(m->transposed[p * m->h->n_vps + vp]);
    }
    void *blocks[] = {m->pool,    m->matrices, m->gradients, m->transposed, m->norms, m->pc,     m->end,
                      m->back_pc, m->back_end, m->counters,  m->calling,    m->done,  m->pending};
    for (size_t i = 0; i < VPPS_COUNT(blocks); i++) free(blocks[i]);
}

static symbolic_result run(const subject *s, symbolic_order order, race_log *log) {
    vpps_script_header h;
    memcpy(&h, s->script, sizeof h);
    if (!header_is_usable(s, &h)) return (symbolic_result){SYMBOLIC_FAULT, 0};
    symbolic_machine m = {.s = s,
                          .h = &h,
                          .limit = vpps_max_u32(h.pool_words, s->plan->batch),
                          .salt = order.salt,
                          .log = log,
                          .key = symbolic_mix(h.dropout_key[0], h.dropout_key[1])};
    prepare_memory(&m);
    prepare_vps(&m);
    symbolic_result result = {order.starve ? run_starving(&m, order.vp) : run_favouring(&m, order.vp), 0};
    m.log = NULL; /* what the host reads is no VP's access */
    if (result.outcome == SYMBOLIC_DONE) {
        result.hash = result_hash(&m);
        if (m.fault) result.outcome = SYMBOLIC_FAULT;
    }
    release(&m);
    return result;
}

symbolic_result symbolic_run(const subject *s, symbolic_order order) { return run(s, order, NULL); }

/* Signals count as far as the VP's instructions can be read. */
static void count_signals(race_log *log, const subject *s) {
    const uint32_t *starts = vpps_script_starts(s->script);
    for (uint32_t vp = 0; vp < s->plan->n_vps; vp++) {
        const uint32_t *at = s->script + starts[vp], *end = s->script + starts[vp + 1];
        for (uint32_t n; (n = vpps_instruction_words(at, end)) && vpps_word_opcode(*at) != VPPS_I_END; at += n)
            if (vpps_word_opcode(*at) == VPPS_I_SIGNAL) race_log_expect(log, at[1], 1);
    }
}

bool symbolic_races(const subject *s) {
    vpps_script_header h;
    memcpy(&h, s->script, sizeof h);
    if (!header_is_usable(s, &h)) return false;
    race_log *log = race_log_create(h.n_vps, h.n_barriers);
    count_signals(log, s);
    (void)run(s, (symbolic_order){0, false, 1}, log);
    const bool found = race_log_found(log);
    race_log_destroy(log);
    return found;
}

bool symbolic_differs(const subject *s, const symbolic_result *expected) {
    for (uint32_t i = 0; i < 2 * s->plan->n_vps; i++) {
        symbolic_result r = symbolic_run(s, (symbolic_order){i / 2, i % 2, 100 + i});
        if (r.outcome != expected->outcome || r.hash != expected->hash) return true;
        if (r.outcome != SYMBOLIC_DONE) return false;
    }
    return false;
}
