/* symbolic_ops.c - each instruction written down plainly, from isa.def and format.h, over integers modulo 2^64. */
#include "symbolic_machine.h"

/* ---------------------------------------------------------------- memory */

static uint64_t nowhere;

static uint64_t *word(symbolic_machine *m, uint64_t offset) {
    if (offset < m->limit) return &m->pool[offset];
    m->fault = true;
    nowhere = 0;
    return &nowhere;
}
static void note_read(symbolic_machine *m, const uint64_t *at) {
    if (m->log && !m->fault) race_log_access(m->log, m->vp, at, false);
}
uint64_t symbolic_get(symbolic_machine *m, uint64_t offset) {
    const uint64_t *at = word(m, offset);
    note_read(m, at);
    return *at;
}

static void later(symbolic_machine *m, uint64_t *at, uint64_t value, bool add) {
    if (m->log && !m->fault) race_log_access(m->log, m->vp, at, true);
    if (!VPPS_RESERVE(m->pending, m->pending_capacity, m->n_pending + 1)) abort();
    m->pending[m->n_pending++] = (struct pending){at, value, add};
}
static void put(symbolic_machine *m, uint64_t offset, uint64_t value, bool acc) {
    uint64_t *at = word(m, offset);
    later(m, at, acc ? *at + value : value, false); /* what it adds to is read now, not when it is written */
}

static uint32_t script_at(symbolic_machine *m, uint64_t address) {
    if (address < m->s->words) return m->s->script[address];
    m->fault = true;
    return 0;
}

/* ---------------------------------------------------------------- plain instructions */

/* A float as a number: 0 and 1 are themselves. */
static uint64_t number(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f == 0.0f ? 0 : f == 1.0f ? 1 : symbolic_mix(bits, 77) | 1;
}

/* Element i of an elementwise instruction; *index: what goes to the second destination. */
static uint64_t element(symbolic_machine *m, uint32_t op, const uint32_t *w, uint64_t i, uint64_t *index) {
    uint64_t h = op, sum = 0, product = 1;
    switch (op) {
    case VPPS_I_FILL: return number(w[0]);
    case VPPS_I_COPY: return symbolic_get(m, w[0] + i);
    case VPPS_I_NEG: return 0 - symbolic_get(m, w[0] + i);
    case VPPS_I_ADD: return symbolic_get(m, w[0] + i) + symbolic_get(m, w[1] + i);
    case VPPS_I_SUB: return symbolic_get(m, w[0] + i) - symbolic_get(m, w[1] + i);
    case VPPS_I_MUL: return symbolic_get(m, w[0] + i) * symbolic_get(m, w[1] + i);
    case VPPS_I_MAX:
    case VPPS_I_MIN:
        return symbolic_mix(op + symbolic_get(m, w[0] + i) + symbolic_get(m, w[1] + i),
                            symbolic_get(m, w[0] + i) * symbolic_get(m, w[1] + i));
    case VPPS_I_SCALE: return symbolic_get(m, w[0] + i) * number(w[1]);
    case VPPS_I_SCALE_BY: return symbolic_get(m, w[0] + i) * symbolic_get(m, w[1]);
    case VPPS_I_BROADCAST: return symbolic_get(m, w[0]);
    case VPPS_I_SUM:
        for (uint32_t k = 0; k < w[1]; k++) sum += symbolic_get(m, w[2 + k] + i);
        return number(w[0]) * sum;
    case VPPS_I_MAX_OF:
    case VPPS_I_MIN_OF:
        for (uint32_t k = 0; k < w[1]; k++) {
            uint64_t x = symbolic_get(m, w[2 + k] + i);
            sum += x;
            product *= x | 1;
            h = symbolic_mix(h, x);
        }
        *index = h;
        return symbolic_mix(op + sum, product);
    case VPPS_I_WEIGHTED_SUM:
        for (uint32_t k = 0; k < w[1]; k++) sum += symbolic_get(m, (uint64_t)w[0] + k) * symbolic_get(m, w[2 + k] + i);
        return sum;
    case VPPS_I_DROPOUT:
        return symbolic_get(m, w[0] + i) * (number(w[2]) == 0 ? 1 : symbolic_mix(symbolic_mix(w[1] + i, w[2]), m->key));
    default: break;
    }
    uint32_t k = 0;
    for (const char *kind = vpps_instructions[op].operands; *kind; kind++, k++) {
        uint64_t x = *kind == 't' ? symbolic_get(m, w[k] + i) : *kind == 's' ? symbolic_get(m, w[k]) : w[k];
        h = symbolic_mix(h, x);
    }
    return h;
}

static uint64_t reduced(symbolic_machine *m, uint32_t op, uint32_t length, const uint32_t *w) {
    uint64_t h = op, sum = 0;
    for (uint64_t i = 0; i < length; i++) {
        uint64_t x = symbolic_get(m, w[0] + i),
                 y = vpps_instructions[op].operands[1] == 't' ? symbolic_get(m, w[1] + i) : 0;
        if (op == VPPS_I_DOT)
            sum += x * y;
        else if (op == VPPS_I_SQUARED_DISTANCE)
            sum += (x - y) * (x - y);
        else if (op == VPPS_I_SUM_ELEMENTS)
            sum += x;
        else
            h = symbolic_mix(symbolic_mix(h, x), y);
    }
    for (uint32_t k = 1; vpps_instructions[op].operands[k]; k++) {
        if (vpps_instructions[op].operands[k] != 't') h = symbolic_mix(h, w[k]);
    }
    return op == VPPS_I_DOT || op == VPPS_I_SQUARED_DISTANCE || op == VPPS_I_SUM_ELEMENTS ? sum : h;
}

static void row(symbolic_machine *m, uint32_t op, uint32_t length, uint32_t destination, const uint32_t *w, bool acc) {
    const char *kinds = vpps_instructions[op].operands;
    uint64_t all = op;
    for (uint32_t k = 0; kinds[k]; k++) {
        for (uint64_t i = 0; i < (kinds[k] == 't' ? length : 1); i++) {
            all = symbolic_mix(all, kinds[k] == 't' || kinds[k] == 's' ? symbolic_get(m, w[k] + i) : w[k]);
        }
    }
    for (uint64_t i = 0; i < length; i++)
        put(m, destination + i, symbolic_mix(symbolic_mix(all, symbolic_get(m, w[0] + i)), i), acc);
}

static void product(symbolic_machine *m, uint32_t op, uint32_t length, uint32_t destination, const uint32_t *w,
                    bool acc) {
    uint64_t r = w[2], n = w[3], c = w[4];
    if (r * c != length || n > m->limit) {
        m->fault = true;
        return;
    }
    for (uint64_t j = 0; j < c; j++) {
        for (uint64_t i = 0; i < r; i++) {
            uint64_t sum = 0;
            for (uint64_t k = 0; k < n && !m->fault; k++) {
                uint64_t a = symbolic_get(m, w[0] + (op == VPPS_I_MATMUL_TN ? i * n + k : k * r + i));
                sum += a * symbolic_get(m, w[1] + (op == VPPS_I_MATMUL_NT ? k * c + j : j * n + k));
            }
            put(m, destination + j * r + i, sum, acc);
        }
    }
}

static void range(symbolic_machine *m, const uint32_t *at, uint32_t op, const uint32_t *w, uint64_t from, uint64_t n) {
    for (uint64_t i = from; i < from + n && !m->fault; i++) {
        uint64_t index = 0, value = element(m, op, w + 1, i, &index);
        put(m, w[0] + i, value, at[0] & VPPS_WORD_ACC);
        if (vpps_instructions[op].operands[0] == 'i') put(m, w[1] + i, index, false);
    }
}

static void plain(symbolic_machine *m, const uint32_t *at) {
    uint32_t op = vpps_word_opcode(at[0]), length = vpps_word_length(at[0]);
    bool acc = at[0] & VPPS_WORD_ACC;
    const vpps_form form = vpps_instructions[op].form;
    const uint32_t *w = at + 1;
    if (form == VPPS_FORM_EW && (at[0] & VPPS_WORD_SPLIT)) {
        vpps_rows rows = vpps_rows_of(length, m->h->row_block, m->h->n_vps, m->vp);
        for (uint64_t j = 0; j < at[1] && !m->fault && rows.first < rows.end; j++) {
            range(m, at, op, at + 2, j * length + rows.first, rows.end - rows.first);
        }
    } else if (form == VPPS_FORM_EW) {
        range(m, at, op, w, 0, length);
    } else if (form == VPPS_FORM_REDUCE) {
        put(m, w[0], reduced(m, op, length, w + 1), acc);
    } else if (form == VPPS_FORM_ROW) {
        row(m, op, length, w[0], w + 1, acc);
    } else {
        product(m, op, length, w[0], w + 1, acc);
    }
}

/* ---------------------------------------------------------------- bundles */

typedef struct list {
    uint32_t values, gradients, partial, elements;
} list;

static list list_of(symbolic_machine *m, uint32_t bundle, uint32_t number) {
    uint64_t at = (uint64_t)bundle + 2 + 4 * (uint64_t)number;
    if (number >= script_at(m, bundle)) m->fault = true;
    return (list){script_at(m, at), script_at(m, at + 1), script_at(m, at + 2), script_at(m, at + 3)};
}

static uint64_t *matrix(symbolic_machine *m, uint64_t **of, uint32_t param, uint32_t rows, uint32_t cols) {
    const vpps_model *model = m->s->g->model;
    if (param < model->n_params && model->params[param].kind == VPPS_MATRIX && model->params[param].rows == rows &&
        model->params[param].cols == cols) {
        return of[param];
    }
    m->fault = true;
    return NULL;
}

/* All of a bundle's instructions for output o's vector j; `pairs` are its (matrix, list). */
static void vector(symbolic_machine *m, uint32_t op, uint32_t bundle, uint64_t at, uint32_t j) {
    uint32_t rows = script_at(m, at + 3), n_pairs = script_at(m, at + 4), bias = script_at(m, at + 2);
    uint64_t y = script_at(m, at) + (uint64_t)j * rows, dy = script_at(m, at + 1) + (uint64_t)j * rows;
    vpps_rows own = vpps_rows_of(rows, m->h->row_block, m->h->n_vps, m->vp);
    if (bias != VPPS_NO_PARAM && (bias >= m->s->plan->n_params || m->s->g->model->params[bias].kind != VPPS_VECTOR)) {
        m->fault = true;
    }
    for (uint32_t r = own.first; op == VPPS_I_AFFINE && r < own.end && !m->fault; r++) {
        uint64_t sum = bias == VPPS_NO_PARAM ? 0 : symbolic_get(m, (uint64_t)m->s->plan->values[bias] + r);
        for (uint32_t q = 0; q < n_pairs && !m->fault; q++) {
            list l = list_of(m, bundle, script_at(m, at + 6 + 2 * q));
            uint64_t *a = matrix(m, m->matrices, script_at(m, at + 5 + 2 * q), rows, l.elements);
            uint64_t x = script_at(m, (uint64_t)l.values + j);
            for (uint32_t k = 0; k < l.elements && !m->fault; k++) {
                note_read(m, &a[(size_t)r * l.elements + k]);
                sum += a[(size_t)r * l.elements + k] * symbolic_get(m, x + k);
            }
        }
        put(m, y + r, sum, false);
    }
    for (uint32_t r = own.first; op == VPPS_I_OUTER && bias != VPPS_NO_PARAM && r < own.end && !m->fault; r++) {
        uint64_t *to = word(m, (uint64_t)m->s->plan->gradients[bias] + r);
        later(m, to, symbolic_get(m, dy + r), true);
    }
    for (uint32_t q = 0; q < n_pairs && op != VPPS_I_AFFINE && !m->fault; q++) {
        list l = list_of(m, bundle, script_at(m, at + 6 + 2 * q));
        uint32_t param = script_at(m, at + 5 + 2 * q), n = l.elements;
        uint64_t *a = matrix(m, m->matrices, param, rows, n);
        if (m->fault) return;
        if (op == VPPS_I_OUTER) {
            uint64_t x = script_at(m, (uint64_t)l.values + j);
            for (uint32_t r = own.first; r < own.end; r++) {
                for (uint32_t k = 0; k < n; k++) {
                    later(m, &m->gradients[param][(size_t)r * n + k], symbolic_get(m, dy + r) * symbolic_get(m, x + k),
                          true);
                }
            }
            continue;
        }
        if (!l.gradients) continue;
        uint64_t members = script_at(m, (uint64_t)l.values - 1);
        uint64_t share = l.partial + (m->vp * members + j) * n, dx = script_at(m, (uint64_t)l.gradients + j);
        vpps_rows mine = vpps_rows_of(n, m->h->row_block, m->h->n_vps, m->vp);
        if (op == VPPS_I_AFFINE_P) {
            for (uint32_t k = 0; k < n && !m->fault; k++) {
                uint64_t sum = 0;
                for (uint32_t r = own.first; r < own.end; r++) {
                    note_read(m, &a[(size_t)r * n + k]);
                    sum += a[(size_t)r * n + k] * symbolic_get(m, dy + r);
                }
                later(m, word(m, share + k), sum, true);
            }
        } else if (op == VPPS_I_AFFINE_T) {
            const uint64_t *t = m->transposed[(size_t)param * m->h->n_vps + m->vp];
            for (uint32_t k = mine.first; k < mine.end && !m->fault; k++) {
                uint64_t sum = 0;
                for (uint32_t r = 0; r < rows; r++) sum += t[(size_t)r * n + k] * symbolic_get(m, dy + r);
                later(m, word(m, dx + k), sum, true);
            }
        }
    }
}

/* Partial sums: AFFINE_P sets a list's share, which the outputs then add to; REDUCE_P takes it. */
static void partials(symbolic_machine *m, uint32_t op, uint32_t bundle, uint32_t j) {
    for (uint32_t i = 0; i < script_at(m, bundle) && !m->fault; i++) {
        list l = list_of(m, bundle, i);
        if (!l.gradients) continue;
        uint64_t members = script_at(m, (uint64_t)l.values - 1), dx = script_at(m, (uint64_t)l.gradients + j);
        vpps_rows mine = vpps_rows_of(l.elements, m->h->row_block, m->h->n_vps, m->vp);
        for (uint32_t k = 0; k < l.elements && !m->fault && op == VPPS_I_AFFINE_P; k++) {
            later(m, word(m, l.partial + (m->vp * members + j) * l.elements + k), 0, false);
        }
        for (uint32_t k = mine.first; k < mine.end && !m->fault && op == VPPS_I_REDUCE_P; k++) {
            uint64_t sum = 0;
            for (uint64_t vp = 0; vp < m->h->n_vps; vp++)
                sum += symbolic_get(m, l.partial + (vp * members + j) * l.elements + k);
            later(m, word(m, dx + k), sum, true);
        }
    }
}

static void bundle(symbolic_machine *m, uint32_t op, uint32_t n, uint32_t first, uint32_t address) {
    if (op == VPPS_I_AFFINE_P || op == VPPS_I_REDUCE_P) {
        for (uint32_t j = 0; j < n && !m->fault; j++) partials(m, op, address, first + j);
    }
    if (op == VPPS_I_REDUCE_P) return;
    uint64_t at = (uint64_t)address + 2 + 4 * (uint64_t)script_at(m, address);
    for (uint32_t o = 0; o < script_at(m, (uint64_t)address + 1) && !m->fault; o++) {
        for (uint32_t j = 0; j < n && !m->fault; j++) vector(m, op, address, at, first + j);
        at += 5 + 2 * (uint64_t)script_at(m, at + 4);
    }
}

/* ---------------------------------------------------------------- parameters */

/* What of the header an update depends on. */
static uint64_t header_hash(const symbolic_machine *m) {
    const vpps_script_header *h = m->h;
    uint32_t parts[9] = {h->update};
    memcpy(parts + 1, &h->lr, 4);
    memcpy(parts + 2, &h->weight_decay, 4);
    memcpy(parts + 3, &h->clip, 4);
    if (h->update == VPPS_MOMENTUM + 1) memcpy(parts + 4, &h->momentum, 4);
    if (h->update > VPPS_MOMENTUM + 1) memcpy(parts + 5, &h->epsilon, 4);
    if (h->update > VPPS_ADAGRAD + 1) {
        parts[6] = h->step;
        memcpy(parts + 7, &h->beta1, 4);
        memcpy(parts + 8, &h->beta2, 4);
    }
    uint64_t hash = 0;
    for (uint32_t i = 0; i < VPPS_COUNT(parts); i++) hash = symbolic_mix(hash, parts[i]);
    return hash;
}

static uint64_t update_context(symbolic_machine *m) {
    uint64_t norm = 0, loss = 0;
    for (uint32_t vp = 0; VPPS_TAKES_NORM(m->h) && vp < m->h->n_vps; vp++)
        norm += symbolic_get(m, (uint64_t)m->s->plan->norms + vp);
    if (m->h->guard) loss = symbolic_get(m, m->h->loss);
    return symbolic_mix(symbolic_mix(norm, loss), header_hash(m));
}

static void update_word(symbolic_machine *m, uint64_t context, uint32_t param, uint64_t i, uint64_t gradient) {
    const vpps_plan *plan = m->s->plan;
    uint64_t *value = word(m, plan->values[param] + i), *s0 = word(m, plan->states[0][param] + i);
    later(m, value, symbolic_mix(symbolic_mix(context, gradient), symbolic_mix(*value, *s0)), false);
    later(m, s0, symbolic_mix(*s0, gradient), false);
}

static void parameter(symbolic_machine *m, uint32_t op, uint32_t param) {
    const vpps_model *model = m->s->g->model;
    if (param >= model->n_params || model->params[param].kind == VPPS_LOOKUP) {
        m->fault = true;
        return;
    }
    const vpps_parameter_data *p = &model->params[param];
    const bool is_matrix = p->kind == VPPS_MATRIX;
    vpps_rows own = vpps_rows_of(p->rows, m->h->row_block, m->h->n_vps, m->vp);
    uint64_t context = op == VPPS_I_UPDATE && own.first < own.end ? update_context(m) : 0;
    size_t all = (size_t)p->rows * p->cols;
    if (op == VPPS_I_TRANSPOSE) {
        uint64_t *t = is_matrix ? m->transposed[(size_t)param * m->h->n_vps + m->vp] : NULL;
        m->fault |= !is_matrix;
        for (size_t i = 0; is_matrix && i < all; i++) {
            note_read(m, &m->matrices[param][i]);
            later(m, &t[i], m->matrices[param][i], false);
        }
        return;
    }
    for (size_t i = (size_t)own.first * p->cols; i < (size_t)own.end * p->cols && !m->fault; i++) {
        uint64_t g = is_matrix ? m->gradients[param][i] : symbolic_get(m, m->s->plan->gradients[param] + i);
        if (op == VPPS_I_NORM) {
            later(m, &m->norms[m->vp], symbolic_mix(g, 3), true);
        } else if (is_matrix) {
            later(m, &m->matrices[param][i], symbolic_mix(symbolic_mix(context, g), m->matrices[param][i]), false);
        } else {
            update_word(m, context, param, i, g);
        }
    }
}

static void table_rows(symbolic_machine *m, uint32_t op, uint32_t n, uint32_t table, uint32_t address) {
    const vpps_model *model = m->s->g->model;
    if (table >= model->n_params || model->params[table].kind != VPPS_LOOKUP) {
        m->fault = true;
        return;
    }
    const vpps_parameter_data *p = &model->params[table];
    uint32_t words = p->rows * p->cols;
    vpps_rows own = vpps_rows_of(words, m->h->row_block, m->h->n_vps, m->vp);
    uint64_t context = op == VPPS_I_UPDATE_ROWS && own.first < own.end ? update_context(m) : 0;
    for (uint32_t k = 0; k < n && !m->fault; k++) {
        uint32_t entry = script_at(m, (uint64_t)address + 2 * k),
                 gradient = script_at(m, (uint64_t)address + 2 * k + 1);
        if (entry >= p->count) m->fault = true;
        for (uint32_t i = own.first; i < own.end && !m->fault; i++) {
            uint64_t g = symbolic_get(m, (uint64_t)gradient + i);
            if (op == VPPS_I_NORM_ROWS)
                later(m, &m->norms[m->vp], symbolic_mix(g, 3), true);
            else
                update_word(m, context, table, (uint64_t)entry * words + i, g);
        }
    }
}

/* ---------------------------------------------------------------- dispatch */

void symbolic_compute(symbolic_machine *m, const uint32_t *at) {
    const uint32_t op = vpps_word_opcode(at[0]), length = vpps_word_length(at[0]);
    switch (op) {
    case VPPS_I_LOAD:
        for (uint32_t i = 0; i < length && !m->fault; i++) {
            put(m, (uint64_t)at[1] + i, symbolic_mix(script_at(m, (uint64_t)at[2] + i), 5), false);
        }
        break;
    case VPPS_I_AFFINE:
    case VPPS_I_AFFINE_T:
    case VPPS_I_AFFINE_P:
    case VPPS_I_REDUCE_P:
    case VPPS_I_OUTER: bundle(m, op, length, at[1], at[2]); break;
    case VPPS_I_TRANSPOSE:
    case VPPS_I_NORM:
    case VPPS_I_UPDATE: parameter(m, op, at[1]); break;
    case VPPS_I_NORM_ROWS:
    case VPPS_I_UPDATE_ROWS: table_rows(m, op, length, at[1], at[2]); break;
    case VPPS_I_NORM_END: put(m, (uint64_t)m->s->plan->norms + m->vp, m->norms[m->vp], false); break;
    default: plain(m, at); break;
    }
}
