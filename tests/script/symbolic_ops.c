/* symbolic_ops.c - what the operations of a stage make, in exact arithmetic where they are linear. */
#include "symbolic_tile.h"

/* ---------------------------------------------------------------- instructions */

/* An argument's elements for item i (counted in the tile) of `domain`. */
static const uint64_t *operand(const symbolic_tile *t, const vpps_cell_arg *a, uint32_t domain, uint32_t i) {
    const vpps_cell_value *x = value_of(t, a->value);
    uint32_t item = i;
    if (x->domain != domain) item = domain ? symbolic_vertex(t, domain, t->first[domain] + i) - t->first[0] : 0;
    static const uint64_t nothing;
    if (item >= t->n[x->domain]) return t->m->fault = true, &nothing;
    return t->slot[a->value] + (size_t)item * vpps_value_words(x);
}

/* An argument's first member of vertex p's list, whose domain it should have. */
static const uint64_t *list_operand(const symbolic_tile *t, const vpps_cell_arg *a, uint32_t domain, uint32_t p) {
    static const uint64_t nothing;
    const vpps_cell_value *x = value_of(t, a->value);
    if (x->domain != domain || !domain) return t->m->fault = true, &nothing;
    return t->slot[a->value] + (size_t)(symbolic_member(t, domain, p) - t->first[domain]) * vpps_value_words(x);
}

enum { MOST_OPERANDS = 512 };

typedef struct operands {
    const uint64_t *t[8], *v, *list[MOST_OPERANDS];
    uint64_t s[8], f, u, e;
    uint32_t n_t, n_s, n_list;
} operands;

static uint64_t count_of(const symbolic_tile *t, const vpps_cell_count *count, uint32_t p) {
    uint64_t n = count->base;
    for (uint32_t d = 1; d < VPPS_DOMAINS; d++) n += (uint64_t)count->list[d] * symbolic_members(t, d, p);
    return n;
}

static void gather(symbolic_tile *t, uint32_t v, uint32_t i, operands *o) {
    const vpps_cell_value *x = value_of(t, v);
    const uint32_t item = t->first[x->domain] + i, p = symbolic_vertex(t, x->domain, item);
    const uint32_t member = x->domain ? item - symbolic_member(t, x->domain, p) : 0;
    const uint32_t list = x->domain || !x->n_args ? x->domain : value_of(t, t->c->args[x->first_arg].value)->domain;
    const vpps_cell_number *f = &x->run.f, *u = &x->run.u;
    uint32_t n = 0;
    float number = f->real;
    *o = (operands){.u = u->whole};
    if (f->kind == VPPS_NUMBER_WORD) {
        const uint32_t bits = symbolic_word(t->m, t->b->words[f->word] + p);
        memcpy(&number, &bits, sizeof number);
    }
    if (f->kind == VPPS_NUMBER_INVERSE) {
        const uint32_t count = (uint32_t)count_of(t, &f->count, p);
        number = count ? 1.0f / (float)count : 0;
    }
    o->f = symbolic_number(number);
    if (u->kind == VPPS_NUMBER_WORD) o->u = symbolic_word(t->m, t->b->words[u->word] + p);
    if (u->kind == VPPS_NUMBER_POSITION) o->u = count_of(t, &u->count, p) + member;
    if (u->kind == VPPS_NUMBER_ELEMENT)
        o->e = symbolic_word(t->m, t->b->words[u->word] + p) + count_of(t, &u->count, p) +
               (uint64_t)member * vpps_value_words(x);
    for (const char *type = vpps_instructions[x->run.opcode].operands; *type && !t->m->fault; type++) {
        const vpps_cell_arg *a = &t->c->args[x->first_arg + n];
        if (strchr("tsv", *type)) {
            if (n++ >= x->n_args) {
                t->m->fault = true;
                return;
            }
            const uint64_t *at = x->run.over_list ? list_operand(t, a, list, p) : operand(t, a, x->domain, i);
            if (*type == 't') o->t[o->n_t++] = at + a->element;
            if (*type == 's') o->s[o->n_s++] = at[a->element];
            if (*type == 'v') o->v = at;
        }
        for (; *type == '*' && n < x->n_args; n++, a++) {
            const vpps_cell_value *y = value_of(t, a->value);
            const bool all = y->domain && !x->domain;
            const uint32_t members = all ? symbolic_members(t, y->domain, p) : 0;
            if (o->n_list + (all ? members : 1) > MOST_OPERANDS) {
                t->m->fault = true;
                return;
            }
            if (!all) o->list[o->n_list++] = operand(t, a, x->domain, i);
            for (uint32_t k = 0; all && k < members; k++)
                o->list[o->n_list++] =
                    t->slot[a->value] +
                    (size_t)(symbolic_member(t, y->domain, p) - t->first[y->domain] + k) * vpps_value_words(y);
        }
    }
    if (n != x->n_args) t->m->fault = true;
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

static uint64_t elementwise(const symbolic_tile *t, const operands *o, uint32_t opcode, uint32_t e) {
    uint64_t sum = 0;
    const uint64_t key = symbolic_mix(t->m->h.dropout_key[0], t->m->h.dropout_key[1]);
    switch (opcode) {
    case VPPS_I_FILL: return o->f;
    case VPPS_I_COPY: return o->t[0][e];
    case VPPS_I_NEG: return -o->t[0][e];
    case VPPS_I_ONE_MINUS: return symbolic_number(1) - o->t[0][e];
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

static uint64_t product_element(const symbolic_tile *t, const vpps_cell_value *x, const operands *o, uint32_t e) {
    const vpps_cell_value *a = value_of(t, t->c->args[x->first_arg].value),
                          *b = value_of(t, t->c->args[x->first_arg + 1].value);
    const uint32_t row = e % x->rows, col = e / x->rows;
    const uint32_t k = x->run.opcode == VPPS_I_MATMUL_TN ? a->rows : a->cols;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t p = x->run.opcode == VPPS_I_MATMUL_TN ? i + row * a->rows : row + i * a->rows;
        const uint32_t q = x->run.opcode == VPPS_I_MATMUL_NT ? col + i * b->rows : i + col * b->rows;
        if (p >= vpps_value_words(a) || q >= vpps_value_words(b)) return t->m->fault = true, 0;
        sum += o->t[0][p] * o->t[1][q];
    }
    return sum;
}

static bool operands_fit(const symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_form form = vpps_instructions[x->run.opcode].form;
    const char *types = vpps_instructions[x->run.opcode].operands;
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

void symbolic_instruction(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_form form = vpps_instructions[x->run.opcode].form;
    const vpps_rows rows = symbolic_own(t, x);
    if (!operands_fit(t, v) || form == VPPS_FORM_DECIDED) {
        t->m->fault = true;
        return;
    }
    uint64_t *to = symbolic_slot(t, v),
             *found = strchr(vpps_instructions[x->run.opcode].operands, 'i') ? symbolic_slot(t, v + 1) : NULL;
    const uint32_t words = vpps_value_words(x);
    operands *o = symbolic_take(1, sizeof *o);
    for (uint32_t i = 0; i < t->n[x->domain] && !t->m->fault; i++, to += words) {
        gather(t, v, i, o);
        if (t->m->fault) break;
        const uint32_t p = symbolic_vertex(t, x->domain, t->first[x->domain] + i);
        const uint32_t length = x->run.over_list && form == VPPS_FORM_ROW ? symbolic_members(t, x->domain, p)
                                : form == VPPS_FORM_REDUCE
                                    ? vpps_value_words(value_of(t, t->c->args[x->first_arg].value))
                                    : words;
        if (form == VPPS_FORM_REDUCE) to[0] = whole(o, x->run.opcode, length);
        const uint64_t all = form == VPPS_FORM_ROW ? whole(o, x->run.opcode, length) : 0;
        for (uint32_t e = rows.first; e < rows.end; e++) {
            if (form == VPPS_FORM_EW) to[e] = elementwise(t, o, x->run.opcode, e);
            if (form == VPPS_FORM_ROW)
                to[e] = symbolic_mix(all,
                                     x->run.over_list ? t->first[x->domain] + i - symbolic_member(t, x->domain, p) : e);
            if (form == VPPS_FORM_MATMUL) to[e] = product_element(t, x, o, e);
            if (found) found[(size_t)i * words + e] = symbolic_mix(31, to[e]);
        }
    }
    free(o);
}

/* ---------------------------------------------------------------- products */

/* Element e of a factor, which is read where it lies. */
static uint64_t factor(symbolic_tile *t, uint32_t v, uint32_t i, uint32_t e) {
    const vpps_cell_value *x = value_of(t, v);
    if (e >= vpps_value_words(x) || i >= t->n[x->domain]) return t->m->fault = true, 0;
    if (x->stage == t->stage)
        return t->slot[v] ? t->slot[v][(size_t)i * vpps_value_words(x) + e] : (t->m->fault = true, 0);
    return symbolic_get(t->m, symbolic_place(t->m, t->b, v, t->first[x->domain] + i) + e);
}

static const vpps_parameter_data *matrix_of(const symbolic_tile *t, const vpps_cell_arg *a) {
    const vpps_model *model = t->m->s->g->model;
    if (a->matrix < model->n_params && model->params[a->matrix].kind == VPPS_MATRIX) return &model->params[a->matrix];
    t->m->fault = true;
    return NULL;
}

void symbolic_product(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    const vpps_rows rows = symbolic_own(t, x);
    uint64_t *to = symbolic_slot(t, v);
    const uint32_t words = vpps_value_words(x);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        for (uint32_t e = rows.first; e < rows.end; e++) {
            to[e] = 0;
            if (x->bias != VPPS_NO_PARAM)
                to[e] = symbolic_get(t->m, (uint64_t)t->m->s->machine->values[x->bias] + e % x->rows);
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

void symbolic_product_t(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    uint64_t *to = symbolic_slot(t, v);
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

/* The stack of each vertex's members, zeros below them, or each member's rows of it. */
static void stack_members(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v), *y = value_of(t, t->c->args[x->first_arg].value);
    const uint64_t *from = t->slot[t->c->args[x->first_arg].value];
    const bool stack = x->run.opcode == VPPS_I_STACK;
    const uint32_t words = vpps_value_words(x), arg_words = vpps_value_words(y);
    const uint32_t rows = stack ? y->rows : x->rows, all = stack ? x->rows : y->rows;
    uint64_t *to = symbolic_slot(t, v);
    const uint32_t domain = stack ? y->domain : x->domain;
    if (x->n_args != 1 || !domain || (stack ? x->domain : y->domain) || x->cols != y->cols || x->run.u.whole) {
        t->m->fault = true;
        return;
    }
    for (uint32_t i = 0; i < t->n[0]; i++) {
        const uint32_t p = t->first[0] + i, first = symbolic_member(t, domain, p),
                       end = symbolic_member(t, domain, p + 1);
        for (uint32_t e = 0; e < words && stack; e++) to[(size_t)i * words + e] = 0;
        if (end < first || first < t->first[domain] || end - t->first[domain] > t->n[domain] ||
            (uint64_t)(end - first) * rows > all) {
            t->m->fault = true;
            return;
        }
        for (uint32_t m = 0; m < end - first; m++) {
            const size_t member = first - t->first[domain] + m;
            for (uint32_t e = 0; e < rows * x->cols; e++) {
                const uint32_t at = e / rows * all + m * rows + e % rows; /* in the stack */
                if (stack) to[(size_t)i * words + at] = from[member * arg_words + e];
                if (!stack) to[member * words + e] = from[(size_t)i * arg_words + at];
            }
        }
    }
}

void symbolic_parts(symbolic_tile *t, uint32_t v) {
    const vpps_cell_value *x = value_of(t, v);
    if (x->run.over_list) {
        stack_members(t, v);
        return;
    }
    uint64_t *to = symbolic_slot(t, v);
    const uint32_t words = vpps_value_words(x);
    for (uint32_t i = 0; i < t->n[x->domain]; i++, to += words) {
        uint32_t row = 0;
        for (uint32_t e = 0; e < words && x->run.opcode == VPPS_I_PLACE; e++) to[e] = 0;
        for (uint32_t k = 0; k < x->n_args; k++) {
            const vpps_cell_arg *a = &t->c->args[x->first_arg + k];
            const vpps_cell_value *y = value_of(t, a->value);
            const uint64_t *from = operand(t, a, x->domain, i);
            const bool slice = x->run.opcode == VPPS_I_SLICE;
            const uint32_t n = slice ? x->rows : y->rows, skip = slice ? x->run.u.whole : 0;
            const uint32_t place = slice ? 0 : x->run.opcode == VPPS_I_PLACE ? x->run.u.whole : row;
            if (skip + n > y->rows || place + n > x->rows || y->cols < x->cols) t->m->fault = true;
            for (uint32_t e = 0; e < n * x->cols && !t->m->fault; e++)
                to[e / n * x->rows + place + e % n] = from[e / n * y->rows + skip + e % n];
            row += y->rows;
        }
    }
}
