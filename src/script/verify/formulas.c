/* formulas.c - builds the expression of an instruction or a product from the expressions of its operands. */
#include "script/verify/proof.h"

/* ---------------------------------------------------------------- an instruction's numbers */

static const vpps_cell_word *word_of(const vpps_proof *p, const vpps_cell_number *n) {
    return n->word < p->c->n_words ? &p->c->words[n->word] : NULL;
}

static bool set_f(const vpps_proof *p, const vpps_cell_number *f, vpps_run *run) {
    const vpps_cell_word *word = word_of(p, f);
    switch (f->kind) {
    case VPPS_NUMBER_CONSTANT:
        run->f_source = VPPS_OPERAND_STATIC;
        run->f = f->real;
        return true;
    case VPPS_NUMBER_WORD: run->f_source = VPPS_OPERAND_OWN; return word && word->kind == VPPS_WORD_IMM;
    case VPPS_NUMBER_INVERSE:
        run->average = true;
        run->u = f->count.base;
        memcpy(run->lists, f->count.list, sizeof run->lists);
        return true;
    default: return false;
    }
}

static bool set_u(const vpps_proof *p, const vpps_cell_number *u, vpps_run *run) {
    const vpps_cell_word *word = word_of(p, u);
    switch (u->kind) {
    case VPPS_NUMBER_CONSTANT:
        run->u_source = VPPS_OPERAND_STATIC;
        run->u = u->whole;
        return true;
    case VPPS_NUMBER_WORD:
        if (!word || word->kind > VPPS_WORD_IMM) return false;
        run->u_source = word->kind == VPPS_WORD_IMM ? VPPS_OPERAND_OWN : VPPS_OPERAND_INDEX;
        run->u = word->kind == VPPS_WORD_IMM ? 0 : word->value;
        return true;
    case VPPS_NUMBER_POSITION:
        run->u_source = VPPS_OPERAND_POSITION;
        run->u = u->count.base;
        memcpy(run->lists, u->count.list, sizeof run->lists);
        run->axis = p->step->axis;
        return true;
    case VPPS_NUMBER_ELEMENT:
        run->axis = p->step->axis;
        run->e_add = u->count.base;
        memcpy(run->lists, u->count.list, sizeof run->lists);
        return word && word->kind == VPPS_WORD_DROPOUT;
    default: return false;
    }
}

/* Copies the instruction's plain numbers to `run`: a float if its `letters` (isa.def) have f, an integer if u or e. */
static bool set_numbers(const vpps_proof *p, const char *letters, vpps_run *run) {
    const vpps_cell_run *x = &p->step->run.of;
    if (strchr(letters, 'f') ? !set_f(p, &x->f, run) : x->f.kind != VPPS_NUMBER_NONE) return false;
    if (!strpbrk(letters, "ue")) return x->u.kind == VPPS_NUMBER_NONE;
    return (strchr(letters, 'e') != NULL) == (x->u.kind == VPPS_NUMBER_ELEMENT) && set_u(p, &x->u, run);
}

/* ---------------------------------------------------------------- instructions */

/* Returns the letter that isa.def has for operand i of the instruction: t (tensor), s (scalar), v (weights), * (any number of tensors). */
static char letter_of(const vpps_proof *p, uint32_t i) {
    const vpps_program_step *s = p->step;
    const uint32_t scalars = s->run.tensors, weights = scalars + s->run.scalars, list = weights + s->run.weights;
    return i < scalars ? 't' : i < weights ? 's' : i < list ? 'v' : '*';
}

/* Returns whether the instruction has as many operands of each kind (tensors, scalars, weights) as its letters in isa.def (t, s, v, *) say. */
static bool counts_fit(const vpps_proof *p, const char *letters) {
    const vpps_program_step *s = p->step;
    uint32_t tensors = 0, scalars = 0, weights = 0;
    for (const char *l = letters; *l; l++) tensors += *l == 't', scalars += *l == 's', weights += *l == 'v';
    const uint32_t all = tensors + scalars + weights;
    return s->run.tensors == tensors && s->run.scalars == scalars && s->run.weights == weights &&
           (strchr(letters, '*') ? s->n > all : s->n == all);
}

/* Returns the number (axis) of the list (input of many nodes) whose nodes an instruction takes all at once. */
static uint32_t list_of(const vpps_proof *p) { return p->step->axis ? p->step->axis : vpps_proof_operand(p, 0)->axis; }

/* Returns whether the instruction may take all members of a list at once. Each member must be a scalar, except in a weighted sum. */
static bool over_list_fits(const vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const uint32_t opcode = s->run.of.opcode;
    if (!s->n || !list_of(p)) return false;
    if (s->run.weights) return !s->axis && s->n == 2;
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    const bool vectors = row->form == VPPS_FORM_ROW && row->operands[strspn(row->operands, "t")] == '\0';
    return vectors && s->axis && vpps_operand_words(&s->to) == 1;
}

/* Returns whether operand i's shape and access fit its letter in isa.def (t tensor, s scalar, v weights, * list). */
static bool fits(const vpps_proof *p, uint32_t i) {
    const vpps_program_step *s = p->step;
    const vpps_operand *a = vpps_proof_operand(p, i);
    const vpps_form form = vpps_instructions[s->run.of.opcode].form;
    const char letter = letter_of(p, i);
    const uint32_t words = vpps_operand_words(a), made = vpps_operand_words(&s->to);
    const bool members = a->access == VPPS_ACCESS_MEMBERS, rows_alike = a->dealt == s->to.dealt;
    if (s->run.of.over_list)
        return members && a->axis == list_of(p) && words == (letter == 'v' ? 1 : made) && rows_alike;
    if (a->axis && a->axis != s->axis && !members) return false;
    switch (letter) {
    case 's':
        if (form == VPPS_FORM_ROW && s->to.cols > 1)
            return a->access == VPPS_ACCESS_COLUMN && !a->element && words == s->to.cols && !a->dealt;
        return a->access == VPPS_ACCESS_SCALAR && a->element < words && !a->dealt;
    case 'v': return a->access == VPPS_ACCESS_WHOLE && words + 1 == s->n && !a->dealt;
    case '*':
        if (members ? !a->axis || s->axis : a->access != VPPS_ACCESS_OWN) return false;
        return words == made && rows_alike;
    default: break;
    }
    if (form == VPPS_FORM_EW) return a->access == VPPS_ACCESS_OWN && words == made && rows_alike;
    if (a->access != VPPS_ACCESS_WHOLE || a->dealt) return false;
    if (form == VPPS_FORM_ROW) return a->rows == s->to.rows && a->cols == s->to.cols;
    if (form != VPPS_FORM_REDUCE) return true;
    /* REDUCE makes one number, or one for each column of its operands */
    const vpps_operand *first = vpps_proof_operand(p, 0);
    return a->rows == first->rows && a->cols == first->cols && (made == 1 || (made == first->cols && s->to.cols == 1));
}

/* An instruction marked `uniform` runs in one call for several vertices (or nodes that list inputs read) whose values follow each other in
 * memory. Returns whether the mark is right, or absent. */
static bool uniform_fits(const vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_cell_number *f = &s->run.of.f, *u = &s->run.of.u;
    const bool position = u->kind == VPPS_NUMBER_POSITION && !s->axis && !vpps_counts_members(&u->count);
    bool ok = vpps_instructions[s->run.of.opcode].form == VPPS_FORM_EW && f->kind <= VPPS_NUMBER_CONSTANT &&
              (u->kind <= VPPS_NUMBER_CONSTANT || position);
    for (uint32_t i = 0; ok && i < s->n; i++)
        ok = vpps_proof_operand(p, i)->access == VPPS_ACCESS_OWN && vpps_proof_operand(p, i)->axis == s->axis;
    return ok || !s->run.uniform;
}

static bool products_fit(const vpps_proof *p) {
    const vpps_operand *x = &p->step->to, *a = vpps_proof_operand(p, 0), *b = vpps_proof_operand(p, 1);
    const uint32_t opcode = p->step->run.of.opcode;
    if (opcode == VPPS_I_MATMUL) return a->rows == x->rows && a->cols == b->rows && b->cols == x->cols;
    if (opcode == VPPS_I_MATMUL_NT) return a->rows == x->rows && a->cols == b->cols && b->rows == x->cols;
    return a->cols == x->rows && a->rows == b->rows && b->cols == x->cols;
}

static bool moves_fit(const vpps_proof *p) {
    const vpps_operand *x = &p->step->to, *a = vpps_proof_operand(p, 0);
    const uint32_t opcode = p->step->run.of.opcode;
    if (opcode == VPPS_I_SELECT_ROWS || opcode == VPPS_I_SELECT_ROWS_B) {
        const vpps_operand *b = vpps_proof_operand(p, 1);
        const bool forward = opcode == VPPS_I_SELECT_ROWS;
        const vpps_operand *from = forward ? a : b, *numbers = forward ? b : a, *selected = forward ? x : b;
        return from->cols == x->cols && numbers->cols == 1 && numbers->rows == selected->rows;
    }
    if (opcode == VPPS_I_TRANSPOSE) return a->rows == x->cols && a->cols == x->rows;
    return vpps_operand_words(a) == vpps_operand_words(x);
}

static uint32_t express_instruction(const vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const char *letters = vpps_instructions[s->run.of.opcode].operands;
    vpps_cell_count count = {0};
    vpps_term *operands = malloc((s->n + 1u) * sizeof *operands);
    vpps_run run = {.opcode = s->run.of.opcode, .rows = s->to.rows, .cols = s->to.cols, .operands = operands};
    bool ok = operands && (!s->run.of.over_list || over_list_fits(p)) && set_numbers(p, letters, &run);
    if (s->run.of.over_list) run.axis = s->axis;
    for (; ok && run.n < s->n; run.n++) {
        const vpps_operand *a = vpps_proof_operand(p, run.n);
        const bool all = a->access == VPPS_ACCESS_MEMBERS;
        ok = fits(p, run.n);
        operands[run.n] = (vpps_term){p->is[a->value], all ? VPPS_ALL_MEMBERS | a->axis : a->element};
        if (letter_of(p, run.n) == '*') *(all ? &count.list[a->axis] : &count.base) += 1;
    }
    if (run.average && s->run.of.opcode == VPPS_I_SUM) ok = ok && !memcmp(&count, &s->run.of.f.count, sizeof count);
    if (ok && vpps_instructions[s->run.of.opcode].form == VPPS_FORM_MATMUL) ok = products_fit(p);
    if (ok && vpps_instructions[s->run.of.opcode].form == VPPS_FORM_MOVE) ok = moves_fit(p);
    ok = ok && uniform_fits(p);
    const uint32_t is = ok ? vpps_express_run(p->s, &run) : VPPS_NONE;
    if (!operands) p->s->failed = true;
    free(operands);
    return ok || p->s->failed ? is : vpps_proof_none(p, "operands do not fit the instruction");
}

/* Returns the expression of a STACK: of all nodes that a list input reads, their vectors below each other; or of a SLICE: one node's rows of it. */
static uint32_t express_members(const vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_operand *x = &s->to, *a = vpps_proof_operand(p, 0);
    const bool stack = s->run.of.opcode == VPPS_I_STACK;
    const uint32_t list = stack ? a->axis : x->axis, access = stack ? VPPS_ACCESS_MEMBERS : VPPS_ACCESS_WHOLE;
    if (s->n != 1 || !list || s->run.of.opcode == VPPS_I_PLACE || (stack ? x->axis : a->axis) || a->cols != x->cols ||
        a->access != access || (stack ? x->rows % a->rows : a->rows % x->rows) || s->run.of.u.whole)
        return vpps_proof_none(p, "neither a stack of members nor a member's rows of one");
    const uint32_t of = p->is[a->value];
    return stack ? vpps_express_members(p->s, x->rows, x->cols, of, list)
                 : vpps_express_member(p->s, x->rows, x->cols, of, list);
}

static uint32_t express_parts(const vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_operand *x = &s->to;
    const uint32_t opcode = s->run.of.opcode, first = s->run.of.u.whole;
    vpps_term *terms = vpps_express_room(p->s, s->n);
    uint64_t rows = 0;
    if (!terms) return VPPS_NONE;
    if (s->run.of.over_list) return express_members(p);
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_operand *a = vpps_proof_operand(p, i);
        if ((a->axis && a->axis != x->axis) || a->cols != x->cols || a->access != VPPS_ACCESS_WHOLE || a->dealt)
            return vpps_proof_none(p, "stacked or sliced operand of wrong shape");
        terms[i] = (vpps_term){p->is[a->value], 0};
        rows += a->rows;
    }
    if (opcode == VPPS_I_STACK) {
        if (rows != x->rows || first) return vpps_proof_none(p, "rows of the stacked operands do not add up");
        return vpps_express_stack(p->s, x->rows, x->cols, s->n, terms);
    }
    const bool place = opcode == VPPS_I_PLACE;
    const uint32_t large = place ? x->rows : (uint32_t)rows, small = place ? (uint32_t)rows : x->rows;
    if (s->run.of.u.kind != VPPS_NUMBER_CONSTANT || first > large || small > large - first)
        return vpps_proof_none(p, "slice outside of its operand");
    if (!place) return vpps_express_slice(p->s, x->rows, x->cols, terms[0].x, first);
    if (large == small) return terms[0].x;
    return vpps_express_of(p->s, VPPS_X_PLACE, x->rows, x->cols, terms[0].x, first, 0);
}

static uint32_t express_decided(const vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_operand *a = vpps_proof_operand(p, 0);
    const bool argmax = s->run.of.opcode == VPPS_I_ARGMAX;
    const uint32_t access = argmax ? VPPS_ACCESS_WHOLE : VPPS_ACCESS_SCALAR;
    if (s->n != 1 || a->axis != s->axis || a->cols != 1 || a->element || a->access != access || a->dealt ||
        p->c->needs.training)
        return vpps_proof_none(p, "operand of argmax or lookup_at does not fit");
    const uint32_t of = p->is[a->value];
    if (argmax) return vpps_express_of(p->s, VPPS_X_ARGMAX, 2, 1, of, 0, 0);
    const vpps_parameter_data *table = vpps_proof_parameter(p, s->run.of.table, VPPS_LOOKUP);
    if (!table || a->rows != 1) return vpps_proof_none(p, "not a table entry chosen by a scalar");
    return vpps_express_of(p->s, VPPS_X_ENTRY, table->rows, table->cols, of, s->run.of.table, 0);
}

static uint32_t express_weights(const vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_parameter_data *m = vpps_proof_parameter(p, s->run.of.table, VPPS_MATRIX);
    if (!m || m->rows != s->to.rows || m->cols != s->to.cols || s->n)
        return vpps_proof_none(p, "not a matrix of the model");
    return vpps_express(p->s, VPPS_X_PARAMETER, m->rows, m->cols, 0, s->run.of.table, 0, 0);
}

/* Checks that, if each thread or CTA computes only the rows that it owns, it needs only these rows of the operands. */
static bool rows_fit(const vpps_proof *p) {
    const vpps_form form = vpps_instructions[p->step->run.of.opcode].form;
    return !p->program->rows || (form == VPPS_FORM_EW && !p->step->run.weights) ||
           vpps_proof_refuse(p, "rows are shared out, but the instruction needs whole vectors");
}

/* Checks that the slot (buffer) or memory that operand o names holds o's value when the program's current step runs. */
static bool finds(vpps_proof *p, const vpps_operand *o) {
    return o->place == VPPS_PLACE_SLOT ? vpps_proof_holds(p, o) : vpps_proof_reads(p, o);
}

uint32_t vpps_proof_run_formula(vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const uint32_t opcode = s->run.of.opcode;
    if (opcode >= VPPS_I_COUNT) return vpps_proof_none(p, "unknown instruction");
    if (!rows_fit(p)) return VPPS_NONE;
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_operand *o = vpps_proof_operand(p, i);
        if (o->place != VPPS_PLACE_SLOT && !(p->c->needs.in_place && vpps_reads_in_place(p->program, s, o)))
            return vpps_proof_none(p, "instruction on an operand that is in no slot");
        if (!finds(p, o)) return VPPS_NONE;
    }
    if (!counts_fit(p, vpps_instructions[opcode].operands))
        return vpps_proof_none(p, "operands do not fit the instruction");
    switch (vpps_instructions[opcode].form) {
    case VPPS_FORM_PARTS: return express_parts(p);
    case VPPS_FORM_DECIDED: return express_decided(p);
    case VPPS_FORM_WEIGHTS: return express_weights(p);
    default: return express_instruction(p);
    }
}

/* ---------------------------------------------------------------- products */

/* Checks that a product finds operand `a` at the place that its step names, and reads no rows while other threads or CTAs compute them. */
static bool reads_factor(vpps_proof *p, const vpps_operand *a) {
    if (!finds(p, a)) return false;
    if (a->access == VPPS_ACCESS_WHOLE && a->dealt)
        return vpps_proof_refuse(p, "reads rows that other VPs make in the same stage");
    if (a->shares) return vpps_proof_refuse(p, "reads a share instead of the sum of shares");
    const bool dealt = p->program->rows && vpps_rows_dealt(&p->c->needs, a->rows);
    return a->access == VPPS_ACCESS_WHOLE || (a->access == VPPS_ACCESS_OWN && dealt == (a->dealt > 0)) ||
           vpps_proof_refuse(p, "wrong access to a factor of a product");
}

/* Returns the expression of the value, such as a bias, that the step adds to its product; VPPS_NONE: none, or an error (p->check->status). */
static uint32_t express_start(vpps_proof *p) {
    const vpps_operand *start = &p->step->product.start, *x = &p->step->to;
    if (start->place == VPPS_PLACE_NONE) return VPPS_NONE;
    if (p->step->product.transposed) return vpps_proof_none(p, "transposed product with a value to add");
    if (start->rows != x->rows || start->dealt != x->dealt)
        return vpps_proof_none(p, "value to add has other rows than the product");
    if (start->place == VPPS_PLACE_PARAMETER && start->value == x->value) {
        const vpps_parameter_data *bias = vpps_proof_parameter(p, start->at, VPPS_VECTOR);
        if (!bias || bias->rows != x->rows || start->axis) return vpps_proof_none(p, "the product's bias does not fit");
        return vpps_express(p->s, VPPS_X_PARAMETER, x->rows, x->cols, 0, start->at, 0, 0);
    }
    if (!finds(p, start)) return VPPS_NONE;
    if (start->axis != x->axis || start->cols != x->cols || start->shares)
        return vpps_proof_none(p, "value to add to the product does not fit");
    if (start->place != VPPS_PLACE_SLOT && (start->place != VPPS_PLACE_RECORD || start->cols != 1))
        return vpps_proof_none(p, "vectors to add to the product are not at equal distances");
    return p->is[start->value];
}

uint32_t vpps_proof_product_formula(vpps_proof *p) {
    const vpps_program_step *s = p->step;
    const vpps_operand *x = &s->to;
    const bool transposed = s->product.transposed;
    const vpps_cell_needs *needs = &p->c->needs;
    const uint32_t start = express_start(p), shares = vpps_shares_of(vpps_proof_value(p, x->value));
    /* false: W^T dy, each CTA or thread having rows of W: it reads just these rows of dy, and makes a partial sum */
    const bool columns = !transposed || needs->rows.columns;
    if (!shares || (shares > 1 && (columns ? shares > needs->group : shares != needs->group)) ||
        s->product.shares != (columns ? shares : 1))
        return vpps_proof_none(p, "partial sums that no virtual processors compute");
    vpps_term *terms = vpps_express_room(p->s, s->n + 1u);
    uint32_t n = 0;
    if (!terms || p->check->status != VPPS_OK) return VPPS_NONE;
    if (start != VPPS_NONE) terms[n++] = vpps_plus(start);
    for (uint32_t i = 0; i < s->n; i++) {
        const vpps_operand *a = vpps_proof_operand(p, i);
        const vpps_parameter_data *m = vpps_proof_parameter(p, a->matrix, VPPS_MATRIX);
        if (!reads_factor(p, a)) return VPPS_NONE;
        const bool fit = m && a->axis == x->axis && a->cols == x->cols && (transposed ? m->cols : m->rows) == x->rows &&
                         (transposed ? m->rows : m->cols) == a->rows && a->rows % s->product.shares == 0;
        if (!fit || (p->program->rows && columns == (a->access == VPPS_ACCESS_OWN)))
            return vpps_proof_none(p, "a factor of the product does not fit");
        terms[n++] = vpps_plus(vpps_express_of(p->s, transposed ? VPPS_X_PRODUCT_T : VPPS_X_PRODUCT, x->rows, x->cols,
                                               p->is[a->value], a->matrix, 0));
    }
    return n ? vpps_express_sum(p->s, x->rows, x->cols, n, terms) : vpps_proof_none(p, "product without operands");
}
