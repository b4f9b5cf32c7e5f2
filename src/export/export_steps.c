/* export_steps.c - writes the loops of a cell's C function. A loop's formula is the instruction's formula in isa.def or whole.def, with the
 * operands' C expressions in place of its letters. */
#include "export/export.h"

#include <ctype.h>
#include <math.h>

typedef const vpps_c_cell cell;
typedef vpps_c_text text;

/* A letter or name in an instruction's formula, and the C expression that replaces it. */
typedef struct binding {
    const char *name;
    text value;
} binding;

/* ---------------------------------------------------------------- formulas */

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

static void put_formula(FILE *out, const char *formula, const binding *bindings, size_t n) {
    while (*formula) {
        const char *word = formula;
        while (in_word(*formula)) formula++;
        const size_t len = (size_t)(formula - word);
        size_t i = 0;
        while (i < n && (strlen(bindings[i].name) != len || strncmp(bindings[i].name, word, len) != 0)) i++;
        if (i < n)
            fputs(bindings[i].value.at, out);
        else
            fwrite(word, 1, len, out);
        while (*formula && !in_word(*formula)) fputc(*formula++, out);
    }
}

/* The C formulas of one instruction, from its row in isa.def or whole.def; NULL: the instruction has no such formula. */
typedef struct formula_row {
    const char *value, *next, *made, *beats, *head, *arguments, *term, *finish;
} formula_row;

static const formula_row formulas[VPPS_I_COUNT] = {
#define EW(id, operands, cost, flops, formula) [VPPS_I_##id] = {.value = #formula},
#define FOLD(id, operands, cost, flops, next_, made_) [VPPS_I_##id] = {.next = #next_, .made = #made_},
#define FIND(id, operands, cost, flops, beats_) [VPPS_I_##id] = {.beats = #beats_},
#define INSTR(id, ...)
#include "isa/isa.def"
#undef INSTR
#define VPPS_REDUCE(id, head_, arguments_, term_, finish_)                                                             \
    [VPPS_I_##id] = {.head = #head_, .arguments = #arguments_, .term = #term_, .finish = #finish_},
#define VPPS_ROW(id, head_, arguments_, term_, finish_, value_)                                                        \
    [VPPS_I_##id] = {.value = #value_, .head = #head_, .arguments = #arguments_, .term = #term_, .finish = #finish_},
#include "isa/whole.def"
};

/* ---------------------------------------------------------------- operands and numbers */

static const vpps_operand *operand(cell *x, const vpps_program_step *s, uint32_t i) {
    return vpps_operand_of(&x->s, s, i);
}

static text at(cell *x, const vpps_operand *o, const char *element) { return vpps_c_element(x, o->value, element); }

/* Returns a C expression for a loop over elements e: operand i's element number e, or a scalar operand's one element. */
static text own(cell *x, const vpps_program_step *s, uint32_t i) {
    const vpps_operand *o = operand(x, s, i);
    return at(x, o, o->access == VPPS_ACCESS_SCALAR ? vpps_c_say("%u", o->element).at : "e");
}

static text real_text(float f) {
    if (!isfinite(f)) return vpps_c_say("%s", f != f ? "NAN" : f < 0 ? "(-INFINITY)" : "INFINITY");
    const text t = vpps_c_say("%.9g", (double)f);
    return vpps_c_say(f < 0 ? "(%s%sf)" : "%s%sf", t.at, strpbrk(t.at, ".e") ? "" : ".0");
}

static text count_of(const vpps_cell_count *count) {
    text t = vpps_c_say("%u", count->base);
    for (uint32_t d = 1; d < VPPS_AXES; d++)
        if (count->list[d]) t = vpps_c_say("%s + %u * n%u", t.at, count->list[d], d - 1);
    return t;
}

static text number_f(const vpps_program_step *s) {
    const vpps_cell_number *f = &s->run.of.f;
    if (f->kind == VPPS_NUMBER_INVERSE) return vpps_c_say("inverse_of(%s)", count_of(&f->count).at);
    return real_text(f->real);
}

static text number_u(cell *x, const vpps_program_step *s) {
    const vpps_cell_number *u = &s->run.of.u;
    if (u->kind == VPPS_NUMBER_WORD) return vpps_c_say("index%u", x->c->words[u->word].value);
    return vpps_c_say("%uu", u->whole);
}

/* ---------------------------------------------------------------- element by element */

static void make_formula(cell *x, const vpps_program_step *s) {
    static const char *const tensors[] = {"x", "y", "z"};
    binding b[8];
    size_t n = 0;
    for (uint32_t i = 0; i < s->run.tensors; i++) b[n++] = (binding){tensors[i], own(x, s, i)};
    if (s->run.scalars) b[n++] = (binding){"s", own(x, s, s->run.tensors)};
    b[n++] = (binding){"f", number_f(s)};
    b[n++] = (binding){"u", number_u(x, s)};
    b[n++] = (binding){"random", vpps_c_say("0.0f")}; /* unused: exported cells have no dropout */
    fprintf(x->out, "const float v%u = ", s->to.value);
    put_formula(x->out, formulas[s->run.of.opcode].value, b, n);
    fputs(";\n", x->out);
}

/* Calls `put` for each operand from number `first` on. A list operand is put inside a C loop over the list's members m. */
static void each_listed(cell *x, const vpps_program_step *s, uint32_t first,
                        void (*put)(cell *x, const vpps_program_step *s, uint32_t i)) {
    for (uint32_t i = first; i < s->n; i++) {
        const vpps_operand *o = operand(x, s, i);
        if (o->access == VPPS_ACCESS_MEMBERS) fprintf(x->out, "for (size_t m = 0; m < n%u; m++) ", o->axis - 1u);
        put(x, s, i);
    }
}

static text listed(cell *x, const vpps_program_step *s, uint32_t i) {
    const vpps_operand *o = operand(x, s, i);
    return o->access == VPPS_ACCESS_MEMBERS ? at(x, o, "e") : own(x, s, i);
}

/* Writes a C statement that adds operand i to a sum; in a weighted sum, times its weight: the next element of a weight
 * vector or, for the nodes of a list input (one that takes any number of nodes), node m's own scalar. */
static void put_next(cell *x, const vpps_program_step *s, uint32_t i) {
    const uint32_t v = s->to.value;
    binding b[3] = {{"a", vpps_c_say("v%u", v)}, {"x", listed(x, s, i)}, {"w", vpps_c_say("0.0f")}};
    if (s->run.weights) {
        const vpps_operand *weights = operand(x, s, 0);
        b[2].value = at(x, weights, weights->access == VPPS_ACCESS_MEMBERS ? "0" : vpps_c_say("number%u++", v).at);
    }
    fprintf(x->out, "v%u = ", v);
    put_formula(x->out, formulas[s->run.of.opcode].next, b, 3);
    fputs(";\n", x->out);
}

static void make_fold(cell *x, const vpps_program_step *s) {
    const uint32_t v = s->to.value;
    const bool scales = strchr(vpps_instructions[s->run.of.opcode].operands, 'f');
    const binding b[] = {{"a", vpps_c_say("v%u", v)}, {"f", scales ? number_f(s) : vpps_c_say("0.0f")}};
    fprintf(x->out, "float v%u = 0.0f;\n", v);
    if (s->run.weights && operand(x, s, 0)->access != VPPS_ACCESS_MEMBERS) fprintf(x->out, "size_t number%u = 0;\n", v);
    each_listed(x, s, s->run.weights, put_next);
    if (strcmp(formulas[s->run.of.opcode].made, "a") == 0) return;
    fprintf(x->out, "v%u = ", v);
    put_formula(x->out, formulas[s->run.of.opcode].made, b, 2);
    fputs(";\n", x->out);
}

static void put_found(cell *x, const vpps_program_step *s, uint32_t i) {
    const uint32_t v = s->to.value;
    const text y = listed(x, s, i);
    const binding b[] = {{"a", vpps_c_say("v%u", v)}, {"x", y}};
    fprintf(x->out, "{ if (!any%u || ", v);
    put_formula(x->out, formulas[s->run.of.opcode].beats, b, 2);
    fprintf(x->out, " || (%s != %s && v%u == v%u)) v%u = %s; any%u = 1; }\n", y.at, y.at, v, v, v, y.at, v);
}

/* Writes C that finds the greatest or least of the operands, element by element. If one is NaN, the result is NaN. */
static void make_found(cell *x, const vpps_program_step *s) {
    fprintf(x->out, "float v%u = 0.0f;\nint any%u = 0;\n", s->to.value, s->to.value);
    each_listed(x, s, 0, put_found);
}

static void make_matmul(cell *x, const vpps_program_step *s) {
    const uint32_t rows = s->to.rows, n = operand(x, s, 1)->rows, v = s->to.value;
    const text a = at(x, operand(x, s, 0), vpps_c_say("k * %u + e %% %u", rows, rows).at);
    const text b = at(x, operand(x, s, 1), vpps_c_say("e / %u * %u + k", rows, n).at);
    fprintf(x->out, "float v%u = 0.0f;\nfor (size_t k = 0; k < %u; k++) v%u = multiply_add(%s, %s, v%u);\n", v, n, v,
            a.at, b.at, v);
}

/* Writes C that stacks the operands, or the members of a list, on top of each other, with zeros below. */
static void make_stack(cell *x, const vpps_program_step *s) {
    const uint32_t rows = s->to.rows, v = s->to.value, r = operand(x, s, 0)->rows;
    if (s->run.of.over_list) {
        const vpps_operand *o = operand(x, s, 0);
        const text e = vpps_c_say("e %% %u %% %u + e / %u * %u", rows, r, rows, r);
        fprintf(x->out, "float v%u = 0.0f;\n{ const size_t m = e %% %u / %u; if (m < n%u) v%u = %s; }\n", v, rows, r,
                o->axis - 1u, v, at(x, o, e.at).at);
        return;
    }
    fprintf(x->out, "const float v%u = ", v);
    for (uint32_t i = 0, first = 0; i < s->n; first += operand(x, s, i++)->rows) {
        const vpps_operand *o = operand(x, s, i);
        const text e = vpps_c_say("e %% %u - %u + e / %u * %u", rows, first, rows, o->rows);
        fprintf(x->out, "e %% %u < %u ? %s : ", rows, first + o->rows, at(x, o, e.at).at);
    }
    fputs("0.0f;\n", x->out);
}

static void make_argmax(cell *x, const vpps_program_step *s) {
    const vpps_operand *o = operand(x, s, 0);
    const uint32_t n = vpps_operand_words(o), v = s->to.value;
    fprintf(x->out,
            "float v%u;\n{\nfloat x[%u];\nfor (size_t k = 0; k < %u; k++) x[k] = %s;\nv%u = argmax_of(%u, x, e);\n}\n",
            v, n, n, at(x, o, "k").at, v, n);
}

/* Returns the C expression of an element of a slice, i.e. of some rows of operand 0. If over_list, operand 0 stacks the
 * values of a list input's nodes (members; any number), and the slice is those of member m, the C loop's variable. */
static text slice(cell *x, const vpps_program_step *s) {
    const vpps_operand *o = operand(x, s, 0);
    const uint32_t rows = s->to.rows;
    const text first = s->run.of.over_list ? vpps_c_say("m * %u", rows) : vpps_c_say("%u", s->run.of.u.whole);
    const text e = s->to.cols == 1 ? vpps_c_say("e + %s", first.at)
                                   : vpps_c_say("e %% %u + %s + e / %u * %u", rows, first.at, rows, o->rows);
    return at(x, o, e.at);
}

/* Returns the C expression of an element of operand 0, in the row that operand 1 numbers; NAN if there is no such row. */
static text selected(cell *x, const vpps_program_step *s) {
    const vpps_operand *from = operand(x, s, 0);
    const uint32_t r = s->to.rows;
    const text number = at(x, operand(x, s, 1), vpps_c_say("e %% %u", r).at);
    const text e = vpps_c_say("e / %u * %u + (size_t)%s", r, from->rows, number.at);
    return vpps_c_say("%s >= 0.0f && %s < %u.0f ? %s : NAN", number.at, number.at, from->rows, at(x, from, e.at).at);
}

/* Writes an instruction that one C expression of its operands computes. Returns false for other instructions. */
static bool make_expression(cell *x, const vpps_program_step *s) {
    const vpps_param table = s->run.of.table;
    const uint32_t rows = s->to.rows, cols = s->to.cols;
    text value;
    switch (s->run.of.opcode) {
    case VPPS_I_RESHAPE: value = at(x, operand(x, s, 0), "e"); break;
    case VPPS_I_SLICE: value = slice(x, s); break;
    case VPPS_I_SELECT_ROWS: value = selected(x, s); break;
    case VPPS_I_TRANSPOSE:
        value = at(x, operand(x, s, 0), vpps_c_say("e %% %u * %u + e / %u", rows, cols, rows).at);
        break;
    case VPPS_I_MATRIX:
        value = vpps_c_say("weight_at(%u, %u, e %% %u, e / %u, %s)", rows, cols, rows, rows,
                           vpps_c_weights(x->w, table).at);
        break;
    case VPPS_I_ENTRY:
        value = vpps_c_say("ENTRY(%s, %u, entry_number(%s, %u), e)", x->w->names[table], rows * cols, own(x, s, 0).at,
                           x->w->model->params[table].count);
        vpps_c_weights(x->w, table);
        break;
    default: return false;
    }
    fprintf(x->out, "const float v%u = %s;\n", s->to.value, value.at);
    return true;
}

static bool make_element(cell *x, const vpps_program_step *s) {
    const uint32_t opcode = s->run.of.opcode;
    if (s->kind != VPPS_STEP_RUN) return false;
    if (vpps_instructions[opcode].form == VPPS_FORM_EW)
        (formulas[opcode].next ? make_fold : formulas[opcode].beats ? make_found : make_formula)(x, s);
    else if (opcode == VPPS_I_STACK)
        make_stack(x, s);
    else if (opcode == VPPS_I_MATMUL)
        make_matmul(x, s);
    else if (opcode == VPPS_I_ARGMAX)
        make_argmax(x, s);
    else
        return make_expression(x, s);
    return true;
}

/* ---------------------------------------------------------------- segments of elements */

static void begin_members(cell *x, uint32_t axis) {
    if (axis) fprintf(x->out, "for (size_t m = 0; m < n%u; m++) {\n", axis - 1);
}
static void end_members(cell *x, uint32_t axis) {
    if (axis) fputs("}\n", x->out);
}

/* Writes a C assignment for each of the cell's outputs that is value number v: the output's element = `value`, a C expression. */
static void put_outputs(cell *x, uint32_t v, const char *value) {
    const vpps_cell_data *d = x->cell;
    for (uint32_t k = 0; k < d->n_scattered + d->n_pushed; k++) {
        const uint32_t output = d->offers[k].output;
        if (x->places[k] == VPPS_NONE || output & VPPS_CELL_INPUT || x->c->outputs[output].value != v) continue;
        fprintf(x->out, "%s = %s;\n", vpps_c_given(x, k).at, value);
    }
}

static void put_slot(cell *x, uint32_t v) {
    const uint32_t words = vpps_value_words(&x->c->values[v]);
    if (x->c->values[v].axis)
        fprintf(x->out, "t%u[m * %u + e] = v%u;\n", v, words, v);
    else
        fprintf(x->out, "t%u[e] = v%u;\n", v, v);
}

static bool in_slot(cell *x, uint32_t v) { return x->s.slot[v] != VPPS_NONE && x->s.made_in[v] != VPPS_NONE; }

static vpps_status refuse(cell *x, const vpps_program_step *s) {
    const char *what = s->kind == VPPS_STEP_RUN ? vpps_ops[s->run.of.op].name : "a value of another kind";
    return vpps_fail(VPPS_ARGUMENT, "cell %s: %s cannot be exported to C", x->c->name, what);
}

static vpps_status put_elements(cell *x, const vpps_segment *g) {
    begin_members(x, g->axis);
    fprintf(x->out, "for (size_t e = 0; e < %u; e++) {\n", g->words);
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_segment_step *step = &x->s.steps[g->first + k];
        const uint32_t v = step->value;
        const bool made = x->s.made_in[v] == x->segment;
        if (step->kind == VPPS_SEGMENT_MAKE && !make_element(x, step->step)) return refuse(x, step->step);
        if (step->kind == VPPS_SEGMENT_LOAD) {
            x->s.made_in[v] = VPPS_NONE; /* makes vpps_c_element read v in memory */
            const text from = vpps_c_element(x, v, "e");
            x->s.made_in[v] = x->segment;
            fprintf(x->out, "const float v%u = %s;\n", v, from.at);
        }
        if (made && in_slot(x, v) && (step->kind == VPPS_SEGMENT_LOAD || x->s.last_read[v] > x->segment + 1))
            put_slot(x, v);
        if (step->kind != VPPS_SEGMENT_LOAD) put_outputs(x, v, vpps_c_element(x, v, "e").at);
    }
    fputs("}\n", x->out);
    end_members(x, g->axis);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- whole vectors, and lists of scalars */

/* Returns the name of argument number k, not counting t, in a list of arguments of whole.def, such as "(vpps_totals t, float x)". */
static text argument_name(const char *arguments, uint32_t k) {
    for (uint32_t i = 0; i <= k; i++) arguments = strchr(arguments, ',') + 2; /* skips the first, t, and k others */
    const char *name = strchr(arguments, ' ') + 1;
    return vpps_c_say("%.*s", (int)strcspn(name, ",)"), name);
}

/* Returns the C expression of element k of an operand: of a vector, of column c of a matrix, or of a list of scalars. */
static text tensor_at(cell *x, const vpps_program_step *s, const vpps_operand *o, const char *length) {
    if (s->run.of.over_list) return vpps_c_say("t%u[k]", o->value);
    return at(x, o, vpps_step_columns(s) > 1 ? vpps_c_say("c * %s + k", length).at : "k");
}

/* Lists the C expressions, for element k, of the names in an instruction's formulas. `length`: C text of the number of elements. */
static size_t bind_whole(cell *x, const vpps_program_step *s, const char *length, text *names, binding *b) {
    static const char *const own[][2] = {{"expf", "exp_of"},
                                         {"logf", "log_of"},
                                         {"__uint_as_float", "float_of_bits"},
                                         {"u.here", "(k == label)"},
                                         {"u.value", "picked"}};
    const char *letters = vpps_instructions[s->run.of.opcode].operands;
    size_t n = 0;
    for (; n < VPPS_COUNT(own); n++) b[n] = (binding){own[n][0], vpps_c_say("%s", own[n][1])};
    for (uint32_t i = 0, o = 0; letters[i]; i++) {
        if (letters[i] == 'u') continue;
        names[i] = argument_name(formulas[s->run.of.opcode].arguments, i);
        b[n].name = names[i].at;
        if (letters[i] == 'f') {
            b[n++].value = number_f(s);
            continue;
        }
        const vpps_operand *at_k = operand(x, s, o++);
        const text scalar = vpps_c_say(at_k->access == VPPS_ACCESS_COLUMN ? "c" : "%u", at_k->element);
        b[n++].value = letters[i] == 't' ? tensor_at(x, s, at_k, length) : at(x, at_k, scalar.at);
    }
    return n;
}

/* Writes C for an instruction of whole.def: a sum over `length` elements, then the result that depends on the sum. */
static void put_result(cell *x, const vpps_program_step *s, const char *length) {
    const formula_row *row = &formulas[s->run.of.opcode];
    const uint32_t columns = vpps_step_columns(s), v = s->to.value;
    text names[8];
    binding b[16];
    const size_t n = bind_whole(x, s, length, names, b);
    if (columns > 1) fprintf(x->out, "for (size_t c = 0; c < %u; c++) ", columns);
    fprintf(x->out, "{\ntotals t = {0.0f, 0.0f, %s};\n", length);
    if (strchr(vpps_instructions[s->run.of.opcode].operands, 'u'))
        fprintf(x->out, "const size_t label = %s;\nconst float picked = %s;\n(void)picked;\n", number_u(x, s).at,
                at(x, operand(x, s, 0), "label").at);
    fprintf(x->out, "HEAD_%s(%s)\nSUM(", row->head, tensor_at(x, s, operand(x, s, 0), length).at);
    put_formula(x->out, row->term, b, n);
    fputs(")\nt.sum = ", x->out);
    put_formula(x->out, row->finish, b, n);
    text to = columns > 1 ? vpps_c_say(row->value ? "c * %s + k" : "c", length) : vpps_c_say(row->value ? "k" : "0");
    if (s->axis && !s->run.of.over_list) to = vpps_c_say("m * %u + %s", vpps_operand_words(&s->to), to.at);
    fprintf(x->out, row->value ? ";\nEACH(t%u[%s], " : ";\nt%u[%s] = t.sum;\n}\n", v, to.at);
    if (!row->value) return;
    put_formula(x->out, row->value, b, n);
    fputs(")\n}\n", x->out);
}

/* Writes the C of an instruction that sums over whole vectors, or over a list of scalars. */
static vpps_status put_whole(cell *x, const vpps_segment *g, const vpps_program_step *s) {
    const bool list = g->kind == VPPS_SEGMENT_LISTS;
    if (!formulas[s->run.of.opcode].term) return refuse(x, s);
    if (!list) begin_members(x, g->axis);
    put_result(x, s,
               list ? vpps_c_say("n%u", s->axis - 1u).at
                    : vpps_c_say("%u", vpps_operand_words(operand(x, s, 0)) / vpps_step_columns(s)).at);
    if (!list) end_members(x, g->axis);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- products */

/* Returns the C text of an array element's address: "&t4[c * 16]" for "t4[c * 16]", "t4" for "t4[0]". */
static text address_of(text element) {
    const size_t len = strlen(element.at);
    if (len > 3 && strcmp(element.at + len - 3, "[0]") == 0) return vpps_c_say("%.*s", (int)len - 3, element.at);
    return vpps_c_say("&%s", element.at);
}

/* Returns the C expression of the first element of column `c` of an operand; `c` is a variable of the exported code. */
static text column_of(cell *x, const vpps_operand *o) {
    return at(x, o, o->cols > 1 ? vpps_c_say("c * %u", o->rows).at : "0");
}

/* Returns the C text of vertex r's index in arrays for several vertices: "r - first", or "0" in a function for one vertex. */
static const char *place(cell *x) { return x->many ? "r - first" : "0"; }

static vpps_status add_product(vpps_c_cell *x, const vpps_program_step *s, uint32_t i) {
    const vpps_operand *o = operand(x, s, i);
    const text weights = vpps_c_weights(x->w, o->matrix);
    const bool entry = !in_slot(x, o->value) && x->c->values[o->value].kind == VPPS_VALUE_LOOKUP;
    vpps_c_block b;
    if (entry) fprintf(x->out, "float x%u[%s][%u];\n", i, x->many ? "TOGETHER" : "1", o->rows);
    VPPS_TRY(vpps_c_begin_vertices(x, &b));
    if (entry)
        fprintf(x->out, "for (size_t k = 0; k < %u; k++) x%u[%s][k] = %s;\n", o->rows, i, place(x),
                at(x, o, o->cols > 1 ? vpps_c_say("c * %u + k", o->rows).at : "k").at);
    fprintf(x->out, "x[%s] = %s;\n", place(x),
            entry ? vpps_c_say("x%u[%s]", i, place(x)).at : address_of(column_of(x, o)).at);
    VPPS_TRY(vpps_c_end_vertices(x, &b));
    fprintf(x->out, "multiply(%u, %u, %s, %s, x, y);\n", s->to.rows, o->rows, x->many ? "end - first" : "1",
            weights.at);
    return VPPS_OK;
}

static vpps_status put_product(vpps_c_cell *x, const vpps_program_step *s) {
    const vpps_operand *start = &s->product.start;
    const uint32_t v = s->to.value, words = vpps_operand_words(&s->to);
    vpps_c_block b;
    if (s->product.transposed) return refuse(x, s);
    begin_members(x, s->axis);
    fprintf(x->out, "{\nconst float *x[%s];\nfloat *y[%s];\n", x->many ? "TOGETHER" : "1", x->many ? "TOGETHER" : "1");
    if (s->to.cols > 1) fprintf(x->out, "for (size_t c = 0; c < %u; c++) {\n", s->to.cols);
    text y = vpps_c_say("t%u[%s]", v, s->to.cols > 1 ? vpps_c_say("c * %u", s->to.rows).at : "0");
    if (s->axis)
        y = vpps_c_say("t%u[m * %u%s]", v, words, s->to.cols > 1 ? vpps_c_say(" + c * %u", s->to.rows).at : "");
    VPPS_TRY(vpps_c_begin_vertices(x, &b));
    text from = vpps_c_say("NULL");
    if (start->place == VPPS_PLACE_PARAMETER && start->value == v)
        from = vpps_c_weights(x->w, start->at);
    else if (start->place)
        from = address_of(column_of(x, start));
    fprintf(x->out, "y[%s] = %s;\nbegin_with(%u, %s, y[%s]);\n", place(x), address_of(y).at, s->to.rows, from.at,
            place(x));
    VPPS_TRY(vpps_c_end_vertices(x, &b));
    for (uint32_t i = 0; i < s->n; i++) VPPS_TRY(add_product(x, s, i));
    fputs(s->to.cols > 1 ? "}\n}\n" : "}\n", x->out);
    end_members(x, s->axis);
    return VPPS_OK;
}

vpps_status vpps_c_write_stage(vpps_c_cell *x) {
    vpps_status status = VPPS_OK;
    for (x->segment = 0; x->segment < x->s.n && status == VPPS_OK; x->segment++) {
        const vpps_segment *g = &x->s.list[x->segment];
        const vpps_program_step *s = x->s.steps[g->first].step;
        const bool alone = g->kind <= VPPS_SEGMENT_LISTS && g->kind != VPPS_SEGMENT_PRODUCTS;
        vpps_c_block b;
        if (alone) VPPS_TRY(vpps_c_begin_vertices(x, &b));
        if (g->kind == VPPS_SEGMENT_ELEMENTS)
            status = put_elements(x, g);
        else
            status = alone ? put_whole(x, g, s) : put_product(x, s);
        if (alone) VPPS_TRY(vpps_c_end_vertices(x, &b));
    }
    return status;
}
