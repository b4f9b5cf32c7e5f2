/* symbolic_parameters.c - the instructions on parameters, as task.h and cell.h say. */
#include "symbolic_machine.h"

static vpps_rows own_rows(const symbolic_machine *m, uint32_t rows) {
    return vpps_rows_of(rows, 16, m->h.n_vps, m->vp);
}

static const vpps_parameter_data *parameter(const symbolic_machine *m, vpps_param p) {
    return &m->s->g->model->params[p];
}

/* dy x^T, or dy, of one item. */
static void add_item(symbolic_machine *m, const symbolic_block *b, const vpps_cell_outer *o, uint32_t item) {
    const vpps_parameter_data *data = parameter(m, o->param);
    const vpps_cell_value *dy = &b->c->values[o->dy], *x = o->x == VPPS_NONE ? NULL : &b->c->values[o->x];
    const vpps_rows rows = own_rows(m, data->rows);
    if ((x != NULL) != (data->kind == VPPS_MATRIX) || dy->rows != data->rows || (x && x->rows != data->cols)) {
        m->fault = true;
        return;
    }
    const uint64_t dy_at = symbolic_place(m, b, o->dy, item), x_at = x ? symbolic_place(m, b, o->x, item) : 0;
    for (uint32_t col = 0; col < dy->cols; col++) {
        for (uint32_t r = rows.first; r < rows.end && !m->fault; r++) {
            const uint64_t d = symbolic_get(m, dy_at + (uint64_t)col * dy->rows + r);
            if (!x) m->gradients[o->param][r] += d;
            for (uint32_t k = 0; x && k < data->cols; k++)
                m->gradients[o->param][(size_t)r * data->cols + k] +=
                    d * symbolic_get(m, x_at + (uint64_t)col * x->rows + k);
        }
    }
}

void symbolic_outer(symbolic_machine *m, uint32_t block, uint32_t first, uint32_t n) {
    if (block >= m->h.n_blocks || first > m->blocks[block].b.n || n > m->blocks[block].b.n - first) {
        m->fault = true;
        return;
    }
    const symbolic_block *b = &m->blocks[block];
    for (uint32_t i = 0; i < b->c->n_outers && n; i++) {
        const vpps_cell_outer *o = &b->c->outers[i];
        const uint64_t list = b->lists[b->c->values[o->dy].domain];
        const uint32_t begin = list ? symbolic_word(m, list + first) : first;
        const uint32_t end = list ? symbolic_word(m, list + first + n) : first + n;
        if (o->param >= m->s->g->model->n_params || end < begin || end - begin > m->s->words) m->fault = true;
        if (m->fault) return;
        if (end > begin) m->touched[(size_t)m->vp * m->s->g->model->n_params + o->param] = 1;
        for (uint32_t item = begin; item < end && !m->fault; item++) add_item(m, b, o, item);
    }
}

/* A table's description and where its arrays begin; false, and a fault. */
static bool table_of(symbolic_machine *m, uint32_t number, vpps_table *t, vpps_rows *own) {
    if (number >= m->h.n_tables) return !(m->fault = true);
    memcpy(t, m->s->script + m->h.tables + (size_t)number * (sizeof *t / 4), sizeof *t);
    if (t->param >= m->s->g->model->n_params || parameter(m, t->param)->kind != VPPS_LOOKUP || t->n > m->s->words)
        return !(m->fault = true);
    own->first = (uint32_t)((uint64_t)t->n * m->vp / m->h.n_vps);
    own->end = (uint32_t)((uint64_t)t->n * (m->vp + 1) / m->h.n_vps);
    return true;
}

static uint32_t entry_words(const symbolic_machine *m, const vpps_table *t) {
    return parameter(m, t->param)->rows * parameter(m, t->param)->cols;
}

void symbolic_entries(symbolic_machine *m, uint32_t number, uint32_t address) {
    vpps_table t;
    vpps_rows own;
    if (!table_of(m, number, &t, &own)) return;
    const uint32_t n = symbolic_word(m, address);
    const uint64_t starts = address + (uint64_t)1 + n, lists = starts + n + 1;
    const uint32_t words = entry_words(m, &t);
    if (n > m->s->words) m->fault = true;
    const uint32_t begin = (uint32_t)((uint64_t)n * m->vp / m->h.n_vps),
                   stop = (uint32_t)((uint64_t)n * (m->vp + 1) / m->h.n_vps);
    for (uint32_t i = begin; i < stop && !m->fault; i++) {
        const uint32_t entry = symbolic_word(m, address + (uint64_t)1 + i);
        if (entry >= t.n) m->fault = true;
        const uint32_t first = symbolic_word(m, starts + i), end = symbolic_word(m, starts + i + 1);
        if (end <= first || end - first > m->s->words) m->fault = true;
        for (uint32_t e = 0; e < words && !m->fault; e++) {
            uint64_t sum = 0;
            for (uint32_t k = first; k < end; k++) sum += symbolic_get(m, symbolic_word(m, lists + k) + (uint64_t)e);
            symbolic_put(m, t.gradients + (uint64_t)entry * words + e, sum);
        }
    }
}

void symbolic_loss(symbolic_machine *m, uint32_t address, uint32_t n) {
    uint64_t sum = 0;
    if (m->vp) return;
    if (n > m->s->words) m->fault = true;
    for (uint32_t i = 0; i < n && !m->fault; i++) {
        const uint32_t bits = symbolic_word(m, address + 2 * (uint64_t)i + 1);
        float f;
        memcpy(&f, &bits, sizeof f);
        sum += symbolic_number(f) * symbolic_get(m, symbolic_word(m, address + 2 * (uint64_t)i));
    }
    symbolic_write(m, &m->loss, symbolic_read(m, &m->loss) + sum);
}

/* Calls `visit` with the value, gradient, state of every element that the VP owns and that has a gradient. */
static void each_element(symbolic_machine *m,
                         void (*visit)(symbolic_machine *, uint64_t *, uint64_t, uint64_t *, void *), void *context) {
    const uint32_t n_params = (uint32_t)m->s->g->model->n_params;
    for (uint32_t p = 0; p < n_params; p++) {
        if (!m->touched[(size_t)m->vp * n_params + p]) continue;
        const vpps_parameter_data *data = parameter(m, p);
        const vpps_rows rows = own_rows(m, data->rows);
        const uint32_t cols = data->kind == VPPS_MATRIX ? data->cols : 1;
        uint64_t *values = data->kind == VPPS_MATRIX ? m->values[p] : m->pool + m->s->machine->values[p];
        for (size_t i = (size_t)rows.first * cols; i < (size_t)rows.end * cols; i++)
            visit(m, &values[i], m->gradients[p][i], &m->states[p][i], context);
    }
    for (uint32_t i = 0; i < m->h.n_tables; i++) {
        vpps_table t;
        vpps_rows own;
        if (!table_of(m, i, &t, &own)) return;
        const uint32_t words = entry_words(m, &t);
        for (uint32_t k = own.first; k < own.end; k++) {
            const uint32_t row = symbolic_word(m, t.rows + (uint64_t)k);
            if (row >= parameter(m, t.param)->count) m->fault = true;
            for (uint32_t e = 0; e < words && !m->fault; e++)
                visit(m, &m->pool[m->s->machine->values[t.param] + (size_t)row * words + e],
                      symbolic_get(m, t.gradients + (uint64_t)k * words + e),
                      &m->states[t.param][(size_t)row * words + e], context);
        }
    }
}

static void add_square(symbolic_machine *m, uint64_t *value, uint64_t gradient, uint64_t *state, void *context) {
    (void)m;
    (void)value;
    (void)state;
    *(uint64_t *)context += gradient * gradient;
}

void symbolic_norm(symbolic_machine *m) {
    uint64_t sum = 0;
    each_element(m, add_square, &sum);
    symbolic_write(m, &m->norms[m->vp], sum);
}

static void step(symbolic_machine *m, uint64_t *value, uint64_t gradient, uint64_t *state, void *context) {
    const uint64_t with = *(const uint64_t *)context, w = symbolic_read(m, value);
    symbolic_write(m, value, symbolic_mix(symbolic_mix(w, gradient), symbolic_mix(with, *state)));
    *state = symbolic_mix(*state + with, gradient);
}

/* The numbers of the header that this kind of optimiser uses. */
static uint64_t step_numbers(symbolic_machine *m) {
    const vpps_task_header *h = &m->h;
    const uint32_t kind = h->update - 1;
    const bool adam = kind == VPPS_ADAM || kind == VPPS_ADAMW;
    uint64_t x = symbolic_mix(h->update, symbolic_number(h->lr));
    x = symbolic_mix(x, symbolic_number(h->weight_decay));
    if (kind == VPPS_MOMENTUM) x = symbolic_mix(x, symbolic_number(h->momentum));
    if (adam || kind == VPPS_ADAGRAD) x = symbolic_mix(x, symbolic_number(h->epsilon));
    const float numbers[] = {h->beta1, h->beta2, h->corrections[0], h->corrections[1]};
    for (uint32_t i = 0; i < 4 && adam; i++) x = symbolic_mix(x, symbolic_number(numbers[i]));
    uint64_t sum = 0;
    for (uint32_t vp = 0; vp < h->n_vps && (h->guard || h->clip > 0); vp++) sum += symbolic_read(m, &m->norms[vp]);
    if (h->guard) x = symbolic_mix(x, symbolic_mix(symbolic_read(m, &m->loss), sum));
    if (h->clip > 0) x = symbolic_mix(x, symbolic_mix(symbolic_number(h->clip), sum));
    return x;
}

void symbolic_update(symbolic_machine *m) {
    uint64_t with = step_numbers(m);
    each_element(m, step, &with);
}
