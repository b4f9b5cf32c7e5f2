/* symbolic_stage.c - a stage over some vertices, as task.h and cell.h say. */
#include "symbolic_machine.h"

/* Vertices that are taken together, and their values. */
typedef struct tile {
    symbolic_machine *m;
    const symbolic_block *b;
    const vpps_compiled_cell *c;
    uint32_t stage, member;
    bool rows;
    uint32_t first[2], n[2];
    uint64_t **slot; /* of values: items times words */
} tile;

static const vpps_cell_value *value_of(const tile *t, uint32_t v) { return &t->c->values[v]; }

static uint32_t member_start(const tile *t, uint32_t vertex) {
    return t->b->list ? symbolic_word(t->m, t->b->list + vertex) : 0;
}

/* The vertex of an item. */
static uint32_t vertex_of(const tile *t, uint32_t domain, uint32_t item) {
    if (!domain) return item;
    for (uint32_t p = t->first[0]; p < t->first[0] + t->n[0]; p++)
        if (item < member_start(t, p + 1)) return p;
    t->m->fault = true;
    return t->first[0];
}

/* Elements that the VP has. */
static vpps_rows own(const tile *t, const vpps_cell_value *x) {
    const uint32_t words = vpps_value_words(x);
    if (!t->rows || x->rows < 16 * t->c->needs.group) return (vpps_rows){0, words};
    if (x->kind == VPPS_VALUE_PRODUCT_T && x->stage == t->stage) return (vpps_rows){0, words};
    return vpps_rows_of(x->rows, 16, t->c->needs.group, t->member);
}

static uint32_t share_words(const vpps_cell_value *x) {
    const uint32_t words = vpps_value_words(x);
    return words < 16 ? words : (words + 15) / 16 * 16;
}
static bool is_shares(const vpps_cell_value *x) {
    return x->kind == VPPS_VALUE_PRODUCT_T && x->split == VPPS_SPLIT_ROWS;
}

uint64_t symbolic_place(symbolic_machine *m, const symbolic_block *b, uint32_t value, uint32_t item) {
    const vpps_cell_value *x = &b->c->values[value];
    switch (x->kind) {
    case VPPS_VALUE_INPUT: return symbolic_word(m, b->inputs[x->index] + item);
    case VPPS_VALUE_LOOKUP: return symbolic_word(m, b->lookups[x->index] + item);
    case VPPS_VALUE_PARAMETER: return m->s->machine->values[x->param];
    default: return (uint64_t)b->b.kept[x->domain] + (uint64_t)item * b->c->kept_words[x->domain] + x->offset;
    }
}

static uint64_t *open_slot(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const size_t n = (size_t)t->n[x->domain] * vpps_value_words(x);
    if (t->slot[v]) return t->slot[v];
    t->slot[v] = symbolic_take(n, sizeof *t->slot[v]);
    for (size_t i = 0; i < n; i++) t->slot[v][i] = symbolic_mix(t->m->salt + 17, i); /* what is not owned is unknown */
    return t->slot[v];
}

/* Takes a value from memory. */
static void load(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    if (t->slot[v]) return;
    if (x->stage == t->stage && x->kind != VPPS_VALUE_DATA) { /* it is made here, but later */
        t->m->fault = true;
        return;
    }
    uint64_t *to = open_slot(t, v);
    const vpps_rows rows = own(t, x);
    const uint32_t words = vpps_value_words(x), shares = is_shares(x) ? t->c->needs.group : 1;
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        if (x->kind == VPPS_VALUE_DATA) {
            const uint32_t address = symbolic_word(t->m, t->b->data + t->first[0] + i);
            for (uint32_t e = rows.first; e < rows.end; e++)
                to[e] = symbolic_mix(9, symbolic_word(t->m, address + (uint64_t)e));
            continue;
        }
        const uint64_t at = symbolic_place(t->m, t->b, v, t->first[x->domain] + i);
        for (uint32_t e = rows.first; e < rows.end; e++) {
            to[e] = symbolic_get(t->m, at + e);
            for (uint32_t s = 1; s < shares; s++) to[e] += symbolic_get(t->m, at + (uint64_t)s * share_words(x) + e);
        }
    }
}

static void sum_gradients(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    uint64_t *to = open_slot(t, v);
    const vpps_rows rows = own(t, x);
    for (uint32_t i = 0; i < t->n[0]; i++, to += vpps_value_words(x)) {
        const uint64_t starts = t->b->gradient_starts[x->index] + t->first[0] + i;
        const uint32_t first = symbolic_word(t->m, starts), end = symbolic_word(t->m, starts + 1);
        for (uint32_t e = rows.first; e < rows.end; e++) to[e] = 0;
        if (!t->b->gradient_starts[x->index] || end < first || end - first > t->m->s->words) {
            t->m->fault = true;
            return;
        }
        for (uint32_t k = first; k < end; k++) {
            const uint64_t from = symbolic_word(t->m, t->b->gradients[x->index] + k);
            for (uint32_t e = rows.first; e < rows.end; e++) to[e] += symbolic_get(t->m, from + e);
        }
    }
}

/* ---------------------------------------------------------------- instructions */

/* An argument's elements for item i (counted in the tile) of `domain`. */
static const uint64_t *operand(const tile *t, const vpps_cell_arg *a, uint32_t domain, uint32_t i) {
    const vpps_cell_value *x = value_of(t, a->value);
    uint32_t item = i;
    if (x->domain != domain) item = domain ? vertex_of(t, 1, t->first[1] + i) - t->first[0] : 0;
    static const uint64_t nothing;
    if (item >= t->n[x->domain]) return t->m->fault = true, &nothing;
    return t->slot[a->value] + (size_t)item * vpps_value_words(x);
}

enum { MOST_OPERANDS = 512 };

typedef struct operands {
    const uint64_t *t[8], *v, *list[MOST_OPERANDS];
    uint64_t s[8], f, u, e, lists;
    uint32_t n_t, n_s, n_list;
} operands;

static void gather(tile *t, uint32_t v, uint32_t i, operands *o) {
    const vpps_cell_value *x = value_of(t, v);
    const uint32_t item = t->first[x->domain] + i, p = vertex_of(t, x->domain, item);
    const uint32_t members = t->b->list ? member_start(t, p + 1) - member_start(t, p) : 0;
    uint32_t n = 0;
    float f = x->f;
    *o = (operands){.u = x->u};
    if (x->f_word != VPPS_NONE) {
        const uint32_t bits = symbolic_word(t->m, t->b->words[x->f_word] + p);
        memcpy(&f, &bits, sizeof f);
    }
    o->f = symbolic_number(f);
    if (x->u_word != VPPS_NONE) o->u = symbolic_word(t->m, t->b->words[x->u_word] + p);
    if (x->position) o->u += (uint64_t)x->e_list * members + (x->domain ? item - member_start(t, p) : 0);
    if (x->e_word != VPPS_NONE) {
        o->e = symbolic_word(t->m, t->b->words[x->e_word] + p) + x->e_add + (uint64_t)x->e_list * members;
        if (x->domain) o->e += (uint64_t)(item - member_start(t, p)) * vpps_value_words(x);
    }
    for (const char *type = vpps_instructions[x->opcode].operands; *type && !t->m->fault; type++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + n];
        if (strchr("tsv", *type)) {
            if (n++ >= x->n_args) {
                t->m->fault = true;
                return;
            }
            const uint64_t *at = operand(t, a, x->domain, i);
            if (*type == 't') o->t[o->n_t++] = at + a->element;
            if (*type == 's') o->s[o->n_s++] = at[a->element];
            if (*type == 'v') o->v = at;
        }
        for (; *type == '*' && n < x->n_args; n++, a++) {
            const bool all = value_of(t, a->value)->domain && !x->domain;
            if (o->n_list + (all ? members : 1) > MOST_OPERANDS) {
                t->m->fault = true;
                return;
            }
            if (!all) o->list[o->n_list++] = operand(t, a, x->domain, i);
            for (uint32_t k = 0; all && k < members; k++)
                o->list[o->n_list++] = t->slot[a->value] + (size_t)(member_start(t, p) - t->first[1] + k) *
                                                               vpps_value_words(value_of(t, a->value));
        }
    }
    if (n != x->n_args) t->m->fault = true;
    if (x->average && x->opcode == VPPS_I_SUM) o->f = symbolic_number(1.0f / (float)o->n_list);
    if (x->average && x->opcode == VPPS_I_SCALE) o->f = symbolic_number(1.0f / (float)(x->e_list * members + x->u));
}

static uint64_t hash_of(const operands *o, uint32_t opcode, uint32_t e) {
    uint64_t h = symbolic_mix(opcode, 1);
    if (strchr(vpps_instructions[opcode].operands, 'f')) h = symbolic_mix(h, o->f);
    if (strchr(vpps_instructions[opcode].operands, 'u')) h = symbolic_mix(h, o->u);
    for (uint32_t i = 0; i < o->n_t; i++) h = symbolic_mix(h, o->t[i][e]);
    for (uint32_t i = 0; i < o->n_s; i++) h = symbolic_mix(h, o->s[i]);
    for (uint32_t i = 0; i < o->n_list; i++) h = symbolic_mix(h, o->list[i][e]);
    return h;
}

static uint64_t elementwise(const tile *t, const operands *o, uint32_t opcode, uint32_t e) {
    uint64_t sum = 0;
    const uint64_t key = symbolic_mix(t->m->h.dropout_key[0], t->m->h.dropout_key[1]);
    switch (opcode) {
    case VPPS_I_FILL: return o->f;
    case VPPS_I_COPY: return o->t[0][e];
    case VPPS_I_NEG: return -o->t[0][e];
    case VPPS_I_ADD: return o->t[0][e] + o->t[1][e];
    case VPPS_I_SUB: return o->t[0][e] - o->t[1][e];
    case VPPS_I_MUL: return o->t[0][e] * o->t[1][e];
    case VPPS_I_SCALE: return o->t[0][e] * o->f;
    case VPPS_I_SCALE_BY: return o->t[0][e] * o->s[0];
    case VPPS_I_BROADCAST: return o->s[0];
    case VPPS_I_DROPOUT: return o->f ? o->t[0][e] * symbolic_mix(symbolic_mix(key, o->e + e), o->f) : o->t[0][e];
    case VPPS_I_SUM:
        for (uint32_t i = 0; i < o->n_list; i++) sum += o->list[i][e];
        return sum * o->f;
    case VPPS_I_WEIGHTED_SUM:
        for (uint32_t i = 0; i < o->n_list; i++) sum += o->list[i][e] * o->v[i];
        return sum;
    default: return hash_of(o, opcode, e);
    }
}

/* One result of whole vectors. */
static uint64_t whole(const operands *o, uint32_t opcode, uint32_t words) {
    uint64_t sum = 0, h = 1;
    for (uint32_t e = 0; e < words; e++) {
        if (opcode == VPPS_I_DOT) sum += o->t[0][e] * o->t[1][e];
        if (opcode == VPPS_I_SUM_ELEMENTS) sum += o->t[0][e];
        h = symbolic_mix(h, hash_of(o, opcode, e));
    }
    return opcode == VPPS_I_DOT || opcode == VPPS_I_SUM_ELEMENTS ? sum : h;
}

static uint64_t product_element(const tile *t, const vpps_cell_value *x, const operands *o, uint32_t e) {
    const vpps_cell_value *a = value_of(t, t->c->args[x->first_arg].value),
                          *b = value_of(t, t->c->args[x->first_arg + 1].value);
    const uint32_t row = e % x->rows, col = e / x->rows;
    const uint32_t k = x->opcode == VPPS_I_MATMUL_TN ? a->rows : a->cols;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t p = x->opcode == VPPS_I_MATMUL_TN ? i + row * a->rows : row + i * a->rows;
        const uint32_t q = x->opcode == VPPS_I_MATMUL_NT ? col + i * b->rows : i + col * b->rows;
        if (p >= vpps_value_words(a) || q >= vpps_value_words(b)) return t->m->fault = true, 0;
        sum += o->t[0][p] * o->t[1][q];
    }
    return sum;
}

static bool operands_fit(const tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_form form = vpps_instructions[x->opcode].form;
    const char *types = vpps_instructions[x->opcode].operands;
    if (form >= VPPS_FORM_SHARED) return false;
    if (strchr(types, 'i') && !(v + 1 < t->c->n_values && value_of(t, v + 1)->kind == VPPS_VALUE_POSITIONS &&
                                vpps_value_words(value_of(t, v + 1)) == vpps_value_words(x))) {
        return false;
    }
    uint32_t n = 0;
    for (const char *type = types; *type; type++) {
        if (!strchr("tsv*", *type)) continue;
        const uint32_t end = *type == '*' ? x->n_args : n + 1;
        for (; n < end; n++) {
            if (n >= x->n_args) return false;
            const vpps_cell_arg *a = &t->c->args[x->first_arg + n];
            const uint32_t words = vpps_value_words(value_of(t, a->value));
            const bool equal = (*type == 't' || *type == '*') && form != VPPS_FORM_MATMUL;
            const uint32_t want = form == VPPS_FORM_REDUCE
                                      ? vpps_value_words(value_of(t, t->c->args[x->first_arg].value))
                                      : vpps_value_words(x);
            if (a->element >= words || (equal && (words != want || a->element)) ||
                (*type == 'v' && words + 1 < x->n_args))
                return false;
        }
    }
    return n == x->n_args;
}

static void run(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_form form = vpps_instructions[x->opcode].form;
    const vpps_rows rows = own(t, x);
    if (!operands_fit(t, v)) {
        t->m->fault = true;
        return;
    }
    uint64_t *to = open_slot(t, v),
             *found = strchr(vpps_instructions[x->opcode].operands, 'i') ? open_slot(t, v + 1) : NULL;
    const uint32_t words = vpps_value_words(x);
    operands *o = symbolic_take(1, sizeof *o);
    for (uint32_t i = 0; i < t->n[x->domain] && !t->m->fault; i++, to += words) {
        gather(t, v, i, o);
        if (t->m->fault) break;
        const uint32_t length =
            form == VPPS_FORM_REDUCE ? vpps_value_words(value_of(t, t->c->args[x->first_arg].value)) : words;
        if (form == VPPS_FORM_REDUCE) to[0] = whole(o, x->opcode, length);
        const uint64_t all = form == VPPS_FORM_ROW ? whole(o, x->opcode, length) : 0;
        for (uint32_t e = rows.first; e < rows.end; e++) {
            if (form == VPPS_FORM_EW) to[e] = elementwise(t, o, x->opcode, e);
            if (form == VPPS_FORM_ROW) to[e] = symbolic_mix(all, e);
            if (form == VPPS_FORM_MATMUL) to[e] = product_element(t, x, o, e);
            if (found) found[(size_t)i * words + e] = symbolic_mix(31, to[e]);
        }
    }
    free(o);
}

/* ---------------------------------------------------------------- products */

/* Element e of a factor, which is read where it lies. */
static uint64_t factor(tile *t, uint32_t v, uint32_t i, uint32_t e) {
    const vpps_cell_value *x = value_of(t, v);
    if (e >= vpps_value_words(x) || i >= t->n[x->domain]) return t->m->fault = true, 0;
    if (x->stage == t->stage)
        return t->slot[v] ? t->slot[v][(size_t)i * vpps_value_words(x) + e] : (t->m->fault = true, 0);
    return symbolic_get(t->m, symbolic_place(t->m, t->b, v, t->first[x->domain] + i) + e);
}

static const vpps_parameter_data *matrix_of(const tile *t, const vpps_cell_arg *a) {
    const vpps_model *model = t->m->s->g->model;
    if (a->matrix < model->n_params && model->params[a->matrix].kind == VPPS_MATRIX) return &model->params[a->matrix];
    t->m->fault = true;
    return NULL;
}

static void multiply(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_rows rows = own(t, x);
    uint64_t *to = open_slot(t, v);
    const uint32_t words = vpps_value_words(x);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        for (uint32_t e = rows.first; e < rows.end; e++) {
            to[e] = 0;
            if (x->param != VPPS_NO_PARAM)
                to[e] = symbolic_get(t->m, (uint64_t)t->m->s->machine->values[x->param] + e % x->rows);
        }
        for (uint32_t k = 0; k < x->n_args; k++) { /* what the product starts from replaces the bias */
            const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
            if (a->matrix != VPPS_NO_PARAM) continue;
            if (value_of(t, a->value)->domain != x->domain || vpps_value_words(value_of(t, a->value)) != words)
                t->m->fault = true;
            for (uint32_t e = rows.first; e < rows.end && !t->m->fault; e++)
                to[e] = t->slot[a->value][(size_t)i * words + e];
        }
        for (uint32_t k = 0; k < x->n_args && !t->m->fault; k++) {
            const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
            if (a->matrix == VPPS_NO_PARAM) continue;
            const vpps_parameter_data *w = matrix_of(t, a);
            if (!w || w->rows != x->rows || value_of(t, a->value)->domain != x->domain) {
                t->m->fault = true;
                return;
            }
            for (uint32_t e = rows.first; e < rows.end; e++) {
                symbolic_read(t->m, &t->m->values[a->matrix][(size_t)(e % x->rows) * w->cols]);
                for (uint32_t col = 0; col < w->cols; col++)
                    to[e] += t->m->values[a->matrix][(size_t)(e % x->rows) * w->cols + col] *
                             factor(t, a->value, i, e / x->rows * value_of(t, a->value)->rows + col);
            }
        }
    }
}

static void multiply_transposed(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    uint64_t *to = open_slot(t, v);
    const uint32_t words = vpps_value_words(x);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        for (uint32_t e = 0; e < words; e++) to[e] = 0;
        for (uint32_t k = 0; k < x->n_args && !t->m->fault; k++) {
            const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
            const vpps_parameter_data *w = matrix_of(t, a);
            if (!w || w->cols != x->rows || value_of(t, a->value)->domain != x->domain ||
                value_of(t, a->value)->rows != w->rows) {
                t->m->fault = true;
                return;
            }
            const vpps_rows rows =
                t->rows ? vpps_rows_of(w->rows, 16, t->c->needs.group, t->member) : (vpps_rows){0, w->rows};
            for (uint32_t r = rows.first; r < rows.end; r++) {
                symbolic_read(t->m, &t->m->values[a->matrix][(size_t)r * w->cols]);
                for (uint32_t col = 0; col < x->cols; col++) {
                    const uint64_t d = factor(t, a->value, i, col * w->rows + r);
                    for (uint32_t e = 0; e < w->cols; e++)
                        to[col * w->cols + e] += t->m->values[a->matrix][(size_t)r * w->cols + e] * d;
                }
            }
        }
    }
}

static void copy_parts(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    uint64_t *to = open_slot(t, v);
    const uint32_t words = vpps_value_words(x);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        uint32_t row = 0;
        for (uint32_t e = 0; e < words && x->kind == VPPS_VALUE_PLACE; e++) to[e] = 0;
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
            const vpps_cell_value *y = value_of(t, a->value);
            const uint64_t *from = operand(t, a, x->domain, i);
            const bool slice = x->kind == VPPS_VALUE_SLICE;
            const uint32_t n = slice ? x->rows : y->rows, skip = slice ? x->index : 0;
            const uint32_t place = slice ? 0 : x->kind == VPPS_VALUE_PLACE ? x->index : row;
            if (skip + n > y->rows || place + n > x->rows || y->cols < x->cols) t->m->fault = true;
            for (uint32_t e = 0; e < n * x->cols && !t->m->fault; e++)
                to[e / n * x->rows + place + e % n] = from[e / n * y->rows + skip + e % n];
            row += y->rows;
        }
    }
}

/* ---------------------------------------------------------------- results */

static void store(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_rows rows = own(t, x);
    const uint64_t skip = is_shares(x) ? (uint64_t)t->member * share_words(x) : 0;
    for (uint32_t i = 0; i < t->n[x->domain]; i++) {
        const uint64_t at = symbolic_place(t->m, t->b, v, t->first[x->domain] + i) + skip;
        for (uint32_t e = rows.first; e < rows.end; e++)
            symbolic_put(t->m, at + e, t->slot[v][(size_t)i * vpps_value_words(x) + e]);
    }
}

static void contribute(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_rows rows = own(t, x);
    uint64_t at = t->b->b.contributions;
    for (uint32_t j = 0; j < t->c->n_contributions; j++) {
        const vpps_cell_contribution *to = &t->c->contributions[j];
        const vpps_cell_value *y = value_of(t, to->value);
        const uint64_t items = y->domain ? t->b->b.members : t->b->b.n, words = vpps_value_words(y);
        const uint64_t share = (items * words + 15) / 16 * 16;
        for (uint32_t i = 0; i < t->n[x->domain] && to->value == v; i++)
            for (uint32_t e = rows.first; e < rows.end; e++)
                symbolic_put(
                    t->m, at + (to->partial ? t->member * share : 0) + (t->first[x->domain] + (uint64_t)i) * words + e,
                    t->slot[v][(size_t)i * words + e]);
        at += share * (to->partial ? t->c->needs.group : 1);
    }
}

/* ---------------------------------------------------------------- all */

static void make_value(tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    for (uint32_t k = 0; k < x->n_args && x->kind != VPPS_VALUE_POSITIONS; k++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
        const bool pointer =
            x->kind == VPPS_VALUE_PRODUCT_T || (x->kind == VPPS_VALUE_PRODUCT && a->matrix != VPPS_NO_PARAM);
        if (a->value >= t->c->n_values) t->m->fault = true;
        if (!t->m->fault && !pointer) load(t, a->value);
    }
    if (t->m->fault) return;
    switch (x->kind) {
    case VPPS_VALUE_DATA: load(t, v); break;
    case VPPS_VALUE_GRADIENT: sum_gradients(t, v); break;
    case VPPS_VALUE_RUN: run(t, v); break;
    case VPPS_VALUE_PRODUCT: multiply(t, v); break;
    case VPPS_VALUE_PRODUCT_T: multiply_transposed(t, v); break;
    case VPPS_VALUE_SLICE:
    case VPPS_VALUE_PLACE:
    case VPPS_VALUE_STACK: copy_parts(t, v); break;
    case VPPS_VALUE_POSITIONS: t->m->fault |= !t->slot[v]; break;
    default: t->m->fault = true; break;
    }
    if (!t->m->fault && x->kept) store(t, v);
    if (!t->m->fault) contribute(t, v);
}

static void run_tile(tile *t) {
    const vpps_cell_stage *stage = &t->c->stages[t->stage];
    t->slot = symbolic_take(t->c->n_values, sizeof *t->slot);
    t->first[1] = member_start(t, t->first[0]);
    const uint32_t end = member_start(t, t->first[0] + t->n[0]);
    t->n[1] = end - t->first[1];
    if (end < t->first[1] || t->n[1] > t->m->s->words) t->m->fault = true;
    for (uint32_t i = 0; i < stage->n && !t->m->fault; i++) make_value(t, t->c->order[stage->first + i]);
    for (uint32_t v = 0; v < t->c->n_values; v++) free(t->slot[v]);
    free(t->slot);
}

void symbolic_stage(symbolic_machine *m, uint32_t block, uint32_t stage, uint32_t first, uint32_t n) {
    if (block >= m->h.n_blocks || stage >= m->blocks[block].c->n_stages || first > m->blocks[block].b.n ||
        n > m->blocks[block].b.n - first) {
        m->fault = true;
        return;
    }
    const symbolic_block *b = &m->blocks[block];
    const uint32_t group = b->c->needs.group, member = m->vp % group;
    tile t = {.m = m,
              .b = b,
              .c = b->c,
              .stage = stage,
              .member = member,
              .rows = b->c->stages[stage].split == VPPS_SPLIT_ROWS};
    const uint32_t begin = t.rows ? first : first + (uint32_t)((uint64_t)n * member / group);
    const uint32_t end = t.rows ? first + n : first + (uint32_t)((uint64_t)n * (member + 1) / group);
    const uint32_t size = m->tiles == SYMBOLIC_AT_ONCE ? end - begin : 1;
    for (uint32_t i = 0; i * size < end - begin && !m->fault; i++) {
        t.first[0] = m->tiles == SYMBOLIC_BACKWARDS ? end - 1 - i : begin + i;
        t.n[0] = size;
        run_tile(&t);
    }
}

void symbolic_constants(symbolic_machine *m, uint32_t address, uint32_t n) {
    if (n > m->s->words) m->fault = true;
    for (uint32_t i = 0; i < n && m->vp % m->group_size == 0 && !m->fault; i++) {
        const uint32_t offset = symbolic_word(m, address + 2 * (uint64_t)i);
        const uint32_t bits = symbolic_word(m, address + 2 * (uint64_t)i + 1);
        float f;
        memcpy(&f, &bits, sizeof f);
        symbolic_put(m, offset, symbolic_number(f));
    }
}
