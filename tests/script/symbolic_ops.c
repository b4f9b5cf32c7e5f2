/* symbolic_ops.c - what the instructions and products of a stage make, in exact arithmetic where they are linear. */
#include "symbolic_tile.h"

/* ---------------------------------------------------------------- operands */

enum { MOST_OPERANDS = 512 };

typedef struct operands {
    const uint64_t *t[8], *v, *list[MOST_OPERANDS];
    uint64_t s[8], f, u, e;
    const uint64_t *of_columns[8]; /* each s of every column */
    uint32_t n_t, n_s, n_list;
} operands;

/* An item of a step: its vertex, counted in the block, and its own number among the list's members. */
typedef struct item {
    uint32_t number, vertex, member;
} item;

static uint64_t count_of(const symbolic_tile *t, const vpps_cell_count *count, uint32_t p) {
    uint64_t n = count->base;
    for (uint32_t d = 1; d < VPPS_DOMAINS; d++) n += (uint64_t)count->list[d] * symbolic_members(t, d, p);
    return n;
}

static uint32_t word_of(const symbolic_tile *t, uint32_t word, uint32_t p) {
    if (word >= t->c->n_words) return t->m->fault = true, 0;
    return symbolic_word(t->m, t->b->words[word] + p);
}

static void set_numbers(const symbolic_tile *t, const vpps_program_step *s, const item *at, operands *o) {
    const vpps_cell_number *f = &s->run.of.f, *u = &s->run.of.u;
    float number = f->real;
    o->u = u->whole;
    if (f->kind == VPPS_NUMBER_WORD) {
        const uint32_t bits = word_of(t, f->word, at->vertex);
        memcpy(&number, &bits, sizeof number);
    }
    if (f->kind == VPPS_NUMBER_INVERSE) {
        const uint32_t count = (uint32_t)count_of(t, &f->count, at->vertex);
        number = count ? 1.0f / (float)count : 0;
    }
    o->f = symbolic_number(number);
    if (u->kind == VPPS_NUMBER_WORD) o->u = word_of(t, u->word, at->vertex);
    if (u->kind == VPPS_NUMBER_POSITION) o->u = count_of(t, &u->count, at->vertex) + at->member;
    if (u->kind == VPPS_NUMBER_ELEMENT)
        o->e = word_of(t, u->word, at->vertex) + count_of(t, &u->count, at->vertex) +
               (uint64_t)at->member * vpps_operand_words(&s->to);
}

/* The operand's item for an item of the step; of all members of a list, the first one. */
static const uint64_t *operand(const symbolic_tile *t, const vpps_operand *o, uint32_t axis, const item *at,
                               bool members) {
    if (o->element && o->access != VPPS_ACCESS_SCALAR) return t->m->fault = true, NULL;
    if (members) { /* of no member nothing is read */
        const uint32_t first = symbolic_member(t, o->axis, at->vertex) - t->first[o->axis];
        return symbolic_members(t, o->axis, at->vertex) ? symbolic_item(t, o, first) : NULL;
    }
    if (o->axis == axis) return symbolic_item(t, o, at->number);
    if (o->axis) return t->m->fault = true, NULL;
    return symbolic_item(t, o, at->vertex - t->first[0]);
}

/* Has it as many elements as the step's result has, of the same rows? */
static bool is_like(const vpps_program_step *s, const vpps_operand *o) {
    return vpps_operand_words(o) == vpps_operand_words(&s->to) && o->dealt == s->to.dealt;
}

/* Is all of it read, as many elements as the instruction takes? */
static bool is_whole(const vpps_program_step *s, const vpps_operand *o, const vpps_operand *first) {
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    const uint32_t words = vpps_operand_words(o);
    if (o->access != VPPS_ACCESS_WHOLE || o->dealt) return false;
    const uint32_t made = vpps_operand_words(&s->to);
    if (form == VPPS_FORM_REDUCE)
        return words == vpps_operand_words(first) && (made == 1 || (made == first->cols && s->to.cols == 1));
    return form != VPPS_FORM_ROW || (o->rows == s->to.rows && o->cols == s->to.cols);
}

static void add_listed(const symbolic_tile *t, const vpps_program_step *s, const vpps_operand *x, const item *at,
                       operands *o) {
    const bool all = x->access == VPPS_ACCESS_MEMBERS;
    const uint32_t n = all ? symbolic_members(t, x->axis, at->vertex) : 1;
    if ((all ? !x->axis || s->axis : x->access != VPPS_ACCESS_OWN) || !is_like(s, x) || o->n_list + n > MOST_OPERANDS) {
        t->m->fault = true;
        return;
    }
    const uint64_t *first = operand(t, x, s->axis, at, all);
    for (uint32_t m = 0; m < n && !t->m->fault; m++) o->list[o->n_list++] = first + (size_t)m * vpps_operand_words(x);
}

static void gather(const symbolic_tile *t, const vpps_program_step *s, const item *at, operands *o) {
    const vpps_operand *x = &t->p->operands[s->first];
    const bool elements = vpps_instructions[s->run.of.opcode].form == VPPS_FORM_EW, list = s->run.of.over_list;
    const uint32_t scalars = s->run.tensors, weights = scalars + s->run.scalars, rest = weights + s->run.weights;
    *o = (operands){0};
    set_numbers(t, s, at, o);
    for (uint32_t k = 0; k < s->n && !t->m->fault; k++, x++) {
        const uint32_t words = vpps_operand_words(x);
        const bool members = x->access == VPPS_ACCESS_MEMBERS;
        if (k >= rest) {
            add_listed(t, s, x, at, o);
            continue;
        }
        const uint64_t *of = operand(t, x, s->axis, at, members);
        if (k < scalars) {
            if (list       ? !members || words != 1
                : elements ? x->access != VPPS_ACCESS_OWN || !is_like(s, x)
                           : !is_whole(s, x, &t->p->operands[s->first]))
                t->m->fault = true;
            o->t[o->n_t++] = of;
        } else if (k < weights) {
            const bool columns = vpps_step_columns(s) > 1;
            const bool fits = columns ? x->access == VPPS_ACCESS_COLUMN && words == vpps_step_columns(s)
                                      : x->access == VPPS_ACCESS_SCALAR && x->element < words;
            if (!fits || x->dealt) t->m->fault = true;
            o->s[o->n_s] = t->m->fault ? 0 : of[x->element];
            o->of_columns[o->n_s++] = columns ? of : NULL;
        } else {
            if (list ? !members || words != 1 : x->access != VPPS_ACCESS_WHOLE || words + 1 < s->n || x->dealt)
                t->m->fault = true;
            o->v = of;
        }
    }
}

/* ---------------------------------------------------------------- instructions */

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

/* The operands of a column of `length` elements. */
static operands in_column(const operands *o, uint32_t column, uint32_t length) {
    operands own = *o;
    for (uint32_t i = 0; i < o->n_t; i++) own.t[i] += (size_t)column * length;
    for (uint32_t i = 0; i < o->n_s; i++)
        if (o->of_columns[i]) own.s[i] = o->of_columns[i][column];
    return own;
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

static uint64_t matmul_element(const symbolic_tile *t, const vpps_program_step *s, const operands *o, uint32_t e) {
    const vpps_operand *a = &t->p->operands[s->first], *b = a + 1;
    const uint32_t opcode = s->run.of.opcode, row = e % s->to.rows, col = e / s->to.rows;
    const uint32_t k = opcode == VPPS_I_MATMUL_TN ? a->rows : a->cols;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t p = opcode == VPPS_I_MATMUL_TN ? i + row * a->rows : row + i * a->rows;
        const uint32_t q = opcode == VPPS_I_MATMUL_NT ? col + i * b->rows : i + col * b->rows;
        if (p >= vpps_operand_words(a) || q >= vpps_operand_words(b)) return t->m->fault = true, 0;
        sum += o->t[0][p] * o->t[1][q];
    }
    return sum;
}

/* A row's factor is 1 where the number is the row's, else 0: any function of both will do. */
static uint64_t selected_element(const symbolic_tile *t, const vpps_program_step *s, const operands *o, uint32_t e) {
    const vpps_operand *a = &t->p->operands[s->first], *b = a + 1;
    const bool forward = s->run.of.opcode == VPPS_I_SELECT_ROWS;
    const uint32_t row = e % s->to.rows, col = e / s->to.rows, n = a->rows;
    uint64_t sum = 0;
    if ((forward ? a : b)->cols != s->to.cols || (forward ? b : a)->cols != 1 ||
        (forward ? b->rows != s->to.rows : b->rows != n))
        return t->m->fault = true, 0;
    for (uint32_t i = 0; i < n; i++)
        sum += forward ? symbolic_mix(o->t[1][row], i) * o->t[0][i + col * n]
                       : symbolic_mix(o->t[0][i], row) * o->t[1][i + col * n];
    return sum;
}

static uint64_t moved_element(const symbolic_tile *t, const vpps_program_step *s, const operands *o, uint32_t e) {
    if (s->n == 2) return selected_element(t, s, o, e);
    const vpps_operand *a = &t->p->operands[s->first];
    const bool transpose = s->run.of.opcode == VPPS_I_TRANSPOSE;
    const uint32_t at = transpose ? e / s->to.rows + e % s->to.rows * a->rows : e;
    if (vpps_operand_words(a) != vpps_operand_words(&s->to) || at >= vpps_operand_words(a) ||
        (transpose && a->rows != s->to.cols))
        return t->m->fault = true, 0;
    return o->t[0][at];
}

/* As many operands as letters, and places for results. */
static bool letters_fit(const vpps_program_step *s) {
    uint32_t tensors = 0, scalars = 0, weights = 0;
    bool list = false, positions = false;
    for (const char *l = vpps_instructions[s->run.of.opcode].operands; *l; l++) {
        tensors += *l == 't', scalars += *l == 's', weights += *l == 'v';
        list |= *l == '*';
        positions |= *l == 'i';
    }
    const uint32_t n = tensors + scalars + weights;
    return s->run.tensors == tensors && s->run.scalars == scalars && s->run.weights == weights &&
           (list ? s->n >= n : s->n == n) && positions == (s->run.positions.place != VPPS_PLACE_NONE) &&
           s->to.place == VPPS_PLACE_SLOT;
}

static void run_kernel(const symbolic_tile *t, const vpps_program_step *s) {
    const uint32_t opcode = s->run.of.opcode, words = vpps_operand_words(&s->to);
    const vpps_form form = vpps_instructions[opcode].form;
    const vpps_rows rows = symbolic_own(t, &s->to);
    operands *o = symbolic_take(1, sizeof *o);
    for (uint32_t i = 0; i < t->n[s->axis] && !t->m->fault; i++) {
        const uint32_t number = t->first[s->axis] + i, p = symbolic_vertex(t, s->axis, number);
        const item at = {i, p, s->axis ? number - symbolic_member(t, s->axis, p) : 0};
        if (!i || !s->run.uniform) gather(t, s, &at, o);
        uint64_t *to = symbolic_item(t, &s->to, i);
        uint64_t *found = s->run.positions.place ? symbolic_item(t, &s->run.positions, i) : NULL;
        if (t->m->fault || !to) break;
        const bool list = s->run.of.over_list && s->axis;
        const uint32_t length = list                       ? symbolic_members(t, s->axis, p)
                                : form == VPPS_FORM_REDUCE ? vpps_operand_words(&t->p->operands[s->first])
                                                           : words;
        uint64_t *made = symbolic_take(words, sizeof *made); /* all is read before anything is written */
        const uint32_t columns = vpps_step_columns(s), of_column = length / columns;
        for (uint32_t column = 0; column < columns && (form == VPPS_FORM_ROW || form == VPPS_FORM_REDUCE); column++) {
            const operands own = in_column(o, column, of_column);
            const uint64_t all = whole(&own, opcode, of_column);
            if (form == VPPS_FORM_REDUCE) made[column] = all;
            for (uint32_t e = 0; e < s->to.rows && form == VPPS_FORM_ROW; e++)
                made[column * s->to.rows + e] = symbolic_mix(all, list ? at.member : e);
        }
        for (uint32_t e = rows.first; e < rows.end; e++) {
            if (form == VPPS_FORM_EW) made[e] = elementwise(t, o, opcode, e);
            if (form == VPPS_FORM_MATMUL) made[e] = matmul_element(t, s, o, e);
            if (form == VPPS_FORM_MOVE) made[e] = moved_element(t, s, o, e);
        }
        for (uint32_t e = rows.first; e < rows.end; e++) {
            to[e] = made[e];
            if (found) found[e] = symbolic_mix(31, made[e]);
        }
        free(made);
        if (s->run.uniform) /* the next item's operands follow this one's */
            for (uint32_t k = 0; k < s->n; k++) {
                const vpps_operand *x = &t->p->operands[s->first + k];
                if (x->axis != s->axis || x->access != VPPS_ACCESS_OWN || form != VPPS_FORM_EW) t->m->fault = true;
                if (k < s->run.tensors)
                    o->t[k] += words;
                else if (k - s->run.tensors < o->n_list)
                    o->list[k - s->run.tensors] += words;
            }
    }
    free(o);
}

/* The stack of each vertex's members, zeros below them, or each member's rows of it. */
static void stack_members(const symbolic_tile *t, const vpps_program_step *s) {
    const vpps_operand *x = &s->to, *y = &t->p->operands[s->first];
    const bool stack = s->run.of.opcode == VPPS_I_STACK;
    const uint32_t rows = stack ? y->rows : x->rows, all = stack ? x->rows : y->rows, axis = stack ? y->axis : x->axis;
    if (s->n != 1 || !axis || (stack ? x->axis : y->axis) || x->cols != y->cols || s->run.of.u.whole ||
        y->access != (stack ? VPPS_ACCESS_MEMBERS : VPPS_ACCESS_WHOLE)) {
        t->m->fault = true;
        return;
    }
    for (uint32_t i = 0; i < t->n[0] && !t->m->fault; i++) {
        const uint32_t p = t->first[0] + i, first = symbolic_member(t, axis, p) - t->first[axis];
        const uint32_t n = symbolic_members(t, axis, p);
        uint64_t *stacked = stack ? symbolic_item(t, x, i) : symbolic_item(t, y, i);
        if ((uint64_t)n * rows > all || !stacked) t->m->fault = true;
        for (uint32_t e = 0; e < all * x->cols && stack && !t->m->fault; e++) stacked[e] = 0;
        for (uint32_t m = 0; m < n && !t->m->fault; m++) {
            uint64_t *member = symbolic_item(t, stack ? y : x, first + m);
            for (uint32_t e = 0; e < rows * x->cols && member; e++) {
                uint64_t *in_stack = &stacked[e / rows * all + m * rows + e % rows];
                *(stack ? in_stack : &member[e]) = stack ? member[e] : *in_stack;
            }
        }
    }
}

static void copy_parts(const symbolic_tile *t, const vpps_program_step *s) {
    const uint32_t opcode = s->run.of.opcode, first = s->run.of.u.whole;
    const bool slice = opcode == VPPS_I_SLICE;
    const vpps_operand *x = &s->to;
    for (uint32_t i = 0; i < t->n[s->axis] && !t->m->fault; i++) {
        const uint32_t p = symbolic_vertex(t, s->axis, t->first[s->axis] + i);
        const item at = {i, p, 0};
        uint64_t *to = symbolic_item(t, x, i);
        uint32_t row = opcode == VPPS_I_PLACE ? first : 0;
        for (uint32_t e = 0; e < vpps_operand_words(x) && opcode == VPPS_I_PLACE && to; e++) to[e] = 0;
        for (uint32_t k = 0; k < s->n && !t->m->fault; k++) {
            const vpps_operand *y = &t->p->operands[s->first + k];
            const uint64_t *from = operand(t, y, s->axis, &at, false);
            const uint32_t n = slice ? x->rows : y->rows, skip = slice ? first : 0;
            if (skip > y->rows || n > y->rows - skip || row > x->rows || n > x->rows - row || y->cols < x->cols ||
                !from || !to || y->access != VPPS_ACCESS_WHOLE || y->dealt) {
                t->m->fault = true;
                return;
            }
            for (uint32_t e = 0; e < n * x->cols; e++)
                to[e / n * x->rows + row + e % n] = from[e / n * y->rows + skip + e % n];
            row += slice ? 0 : n;
        }
    }
}

void symbolic_instruction(const symbolic_tile *t, const vpps_program_step *s) {
    if (s->run.of.opcode >= VPPS_I_COUNT || !letters_fit(s) || (t->p->rows && s->to.cols != 1)) {
        t->m->fault = true;
        return;
    }
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    if (form == VPPS_FORM_DECIDED) {
        t->m->fault = true;
    } else if (form != VPPS_FORM_PARTS) {
        run_kernel(t, s);
    } else if (s->run.of.over_list) {
        stack_members(t, s);
    } else {
        copy_parts(t, s);
    }
}

/* ---------------------------------------------------------------- products */

/* One factor's part of element e of item i: of a transposed matrix, the rows that the VP has of the factor. */
static uint64_t factor(const symbolic_tile *t, const vpps_program_step *s, const vpps_operand *a, uint32_t i,
                       uint32_t e) {
    const vpps_model *model = t->m->s->g->model;
    const uint32_t row = e % s->to.rows, col = e / s->to.rows;
    const bool transposed = s->product.transposed;
    const vpps_parameter_data *w = a->matrix < model->n_params ? &model->params[a->matrix] : NULL;
    if (!w || w->kind != VPPS_MATRIX || (transposed ? w->cols : w->rows) != s->to.rows ||
        (transposed ? w->rows : w->cols) != a->rows || a->axis != s->axis || a->cols != s->to.cols || a->shares)
        return t->m->fault = true, 0;
    if (t->p->rows && transposed != (a->access == VPPS_ACCESS_OWN)) return t->m->fault = true, 0;
    if (!transposed && a->dealt) return t->m->fault = true, 0;
    const vpps_rows own = symbolic_own(t, a);
    uint64_t sum = 0;
    for (uint32_t k = a->dealt ? own.first : 0; k < (a->dealt ? own.end : a->rows) && !t->m->fault; k++) {
        uint64_t *weights = t->m->values[a->matrix];
        const size_t at = transposed ? (size_t)k * w->cols + row : (size_t)row * w->cols + k;
        if (transposed ? !row : !k) symbolic_read(t->m, &weights[transposed ? (size_t)k * w->cols : at]);
        sum += weights[at] * symbolic_element(t, a, i, col * a->rows + k);
    }
    return sum;
}

uint64_t symbolic_product(const symbolic_tile *t, const vpps_program_step *s, uint32_t i, uint32_t e) {
    const vpps_operand *start = &s->product.start;
    uint64_t sum = 0;
    if (start->place == VPPS_PLACE_PARAMETER) {
        sum = symbolic_element(t, start, 0, e % s->to.rows);
    } else if (start->place != VPPS_PLACE_NONE) {
        if (start->axis != s->axis || vpps_operand_words(start) != vpps_operand_words(&s->to) ||
            start->dealt != s->to.dealt || start->shares)
            t->m->fault = true;
        sum = symbolic_element(t, start, i, e);
    }
    for (uint32_t k = 0; k < s->n && !t->m->fault; k++) sum += factor(t, s, &t->p->operands[s->first + k], i, e);
    return sum;
}
