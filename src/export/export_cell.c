/* export_cell.c - writes a cell's C function: its parameters, checks of arguments, and results. */
#include "cell/print.h"
#include "export/export.h"

#include <ctype.h>
#include <stdarg.h>

typedef vpps_c_text text;

/* ---------------------------------------------------------------- elements */

text vpps_c_say(const char *format, ...) {
    text t;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t.at, sizeof t.at, format, arguments);
    va_end(arguments);
    return t;
}

/* Returns the name of the function's argument that holds an input, e.g. "child0". */
static text argument_of(const vpps_c_cell *x, uint32_t input) {
    const vpps_cell_input *in = &x->cell->inputs[input];
    const char *name = in->axis ? (in->pulled ? "pulls" : "list") : in->pulled ? "pull" : "child";
    return vpps_c_say("%s%u", name, in->axis && !in->pulled ? in->axis - 1u : in->child);
}

text vpps_c_input(const vpps_c_cell *x, uint32_t input, const char *element) {
    const vpps_cell_input *in = &x->cell->inputs[input];
    const text name = argument_of(x, input);
    const char *member = in->axis ? "[m]" : "";
    const uint32_t at = in->pulled ? 0 : x->w->output_at[in->output];
    return at ? vpps_c_say("%s%s[%u + %s]", name.at, member, at, element)
              : vpps_c_say("%s%s[%s]", name.at, member, element);
}

text vpps_c_given(const vpps_c_cell *x, uint32_t k) {
    const char *to = k < x->cell->n_scattered ? "out" : "pushed";
    return x->places[k] ? vpps_c_say("%s[%u + e]", to, x->places[k]) : vpps_c_say("%s[e]", to);
}

text vpps_c_element(const vpps_c_cell *x, uint32_t v, const char *element) {
    const vpps_cell_value *value = &x->c->values[v];
    const uint32_t words = vpps_value_words(value), made_in = x->s.made_in ? x->s.made_in[v] : VPPS_NONE;
    if (made_in != VPPS_NONE && made_in == x->segment) return vpps_c_say("v%u", v);
    if (made_in != VPPS_NONE && value->axis)
        return words == 1 ? vpps_c_say("t%u[m]", v) : vpps_c_say("t%u[m * %u + %s]", v, words, element);
    if (made_in != VPPS_NONE) return vpps_c_say("t%u[%s]", v, element);
    if (value->kind == VPPS_VALUE_INPUT) return vpps_c_input(x, value->input, element);
    if (value->kind == VPPS_VALUE_PARAMETER)
        return vpps_c_say("%s[%s]", vpps_c_weights(x->w, value->vector).at, element);
    const vpps_cell_lookup *lookup = &x->c->lookups[value->lookup];
    vpps_c_weights(x->w, lookup->table);
    return vpps_c_say("ENTRY(%s, %u, %s%u, %s)", x->w->names[lookup->table], words,
                      lookup->kind == VPPS_WORD_INDEX ? "index" : "", lookup->value, element);
}

/* ---------------------------------------------------------------- what the function takes */

/* How a parameter of a cell's C function, such as child0, is written, by its place. A cell has a function for one vertex (application of the
 * cell), and perhaps one for many vertices, NAME_many, which the function for one then calls with arrays of one element. */
typedef enum parameter_form {
    ONE,     /* "const float *restrict child0", a parameter of the function for one vertex */
    DEFINED, /* "const float *child0", a parameter of the function that passes &child0 to NAME_many: no restrict */
    MANY,    /* "const float *const *child0_of", a parameter of NAME_many, the function for many vertices */
    CALL,    /* "&child0", an argument in the function for one vertex, which calls NAME_many with it */
    VERTEX   /* "const float *restrict child0 = child0_of[r];", a variable in NAME_many's loop over vertices r */
} parameter_form;

typedef struct parameter_list {
    FILE *out;
    parameter_form form;
    const char *between; /* separator before the next parameter */
    const char *in;      /* C text of the function's body; only parameters that the body names are written */
} parameter_list;

static bool names(const char *in, const char *name) {
    const size_t len = strlen(name);
    for (const char *at = in; (at = strstr(at, name)); at += len) {
        const char after = at[len];
        if (!(after == '_' || isalnum((unsigned char)after)) &&
            (at == in || !(at[-1] == '_' || isalnum((unsigned char)at[-1]))))
            return true;
    }
    return false;
}

/* Writes a parameter of a cell's C function. `type`: its C type (pointer or number) in the function for one vertex. */
static void put_parameter(parameter_list *p, const char *type, text name) {
    const bool pointer = strchr(type, '*') != NULL;
    const char *exclusive = pointer && !strstr(type, "*const") && p->form != DEFINED ? "restrict " : "";
    if (!names(p->in, name.at)) return;
    if (p->form == VERTEX) {
        fprintf(p->out, "%s%s%s = %s_of[r];\n", type, exclusive, name.at, name.at);
        return;
    }
    fputs(p->between, p->out);
    p->between = ", ";
    if (p->form == CALL)
        fprintf(p->out, "&%s", name.at);
    else if (p->form == MANY)
        fprintf(p->out, "%s%s%s_of", pointer ? type : "const uint32_t ", pointer ? "const *" : "*", name.at);
    else
        fprintf(p->out, "%s%s%s", type, exclusive, name.at);
}

static void put_parameters(const vpps_c_cell *x, FILE *out, parameter_form form, const char *in) {
    const vpps_cell_data *d = x->cell;
    parameter_list p = {out, form, "", in};
#define ALONE(...) (fputs(p.between, out), fprintf(out, __VA_ARGS__), p.between = ", ")
    if (x->w->options->weights && form != VERTEX) ALONE(form == CALL ? "weights" : "const void *weights");
    if (form == MANY || form == CALL) ALONE(form == CALL ? "1" : "size_t n");
    for (uint32_t i = 0; i < d->min_children; i++) put_parameter(&p, "const float *", vpps_c_say("child%u", i));
    for (uint32_t l = 0; l < d->n_lists; l++) {
        put_parameter(&p, "const float *const *", vpps_c_say("list%u", l));
        ALONE("size_t n%u", l);
    }
    for (uint32_t i = 0; i < d->n_pulls; i++) put_parameter(&p, "const float *", vpps_c_say("pull%u", i));
    for (uint32_t i = 0; i < d->n_pull_lists; i++) put_parameter(&p, "const float *const *", vpps_c_say("pulls%u", i));
    for (uint32_t i = 0; i < d->n_indices; i++) put_parameter(&p, "uint32_t ", vpps_c_say("index%u", i));
    for (uint32_t l = 1; l <= d->n_lists; l++)
        if (x->s.floats[l]) ALONE("float *restrict scratch%u", l - 1);
    put_parameter(&p, "float *", vpps_c_say("out"));
    put_parameter(&p, "float *", vpps_c_say("pushed"));
#undef ALONE
}

/* Declares the C variables tN, which keep value N from one loop to the next. `block`: C text of a loop's body over
 * vertices r, for which only the variables that it names are declared; NULL: declares all. */
static void put_slots(const vpps_c_cell *x, FILE *out, const char *block) {
    for (uint32_t v = 0; v < x->c->n_values && x->s.made_in; v++) {
        const uint32_t axis = x->c->values[v].axis;
        if (x->s.made_in[v] == VPPS_NONE || x->s.slot[v] == VPPS_NONE) continue;
        if (block && !names(block, vpps_c_say("t%u", v).at)) continue;
        if (axis)
            fprintf(out, "float *const t%u = scratch%u + %u * n%u;\n", v, axis - 1, x->s.slot[v], axis - 1);
        else
            fprintf(out, "float *const t%u = slots%s + %u;\n", v, block ? "[r - first]" : "", x->s.slot[v]);
    }
}

vpps_status vpps_c_begin_vertices(vpps_c_cell *x, vpps_c_block *b) {
    *b = (vpps_c_block){.of = x->out};
    FILE *f = x->many ? open_memstream(&b->text, &b->bytes) : x->out;
    if (!f) return vpps_fail(VPPS_MEMORY, "cell %s: out of memory for its text", x->c->name);
    x->out = f;
    return VPPS_OK;
}

vpps_status vpps_c_end_vertices(vpps_c_cell *x, vpps_c_block *b) {
    if (!x->many) return VPPS_OK;
    const bool ok = fclose(x->out) == 0;
    x->out = b->of;
    if (ok && *b->text) {
        fputs("for (size_t r = first; r < end; r++) {\n", x->out);
        put_parameters(x, x->out, VERTEX, b->text);
        put_slots(x, x->out, b->text);
        fprintf(x->out, "%s}\n", b->text);
    }
    free(b->text);
    return ok ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory for its text", x->c->name);
}

/* ---------------------------------------------------------------- the header's part */

static void put_constants(const vpps_c_cell *x, FILE *out) {
    const vpps_cell_data *d = x->cell;
    fputs("enum {\n", out);
    for (uint32_t k = 0; k < d->n_scattered + d->n_pushed; k++) {
        const bool pushed = k >= d->n_scattered;
        if (x->places[k] == VPPS_NONE) continue;
        fprintf(out, "    %s_%s_%s%u = %u, /* %u x %u */\n", x->w->upper, x->upper, pushed ? "PUSH" : "OUT",
                pushed ? k - d->n_scattered : k, x->places[k], d->offers[k].rows, d->offers[k].cols);
    }
    for (uint32_t l = 1; l <= d->n_lists; l++)
        if (x->s.floats[l])
            fprintf(out, "    %s_%s_SCRATCH%u = %u, /* floats of scratch%u for each member of list %u */\n",
                    x->w->upper, x->upper, l - 1, x->s.floats[l], l - 1, l - 1);
    fprintf(out, "    %s_%s_OUT = %u, /* floats of out */\n", x->w->upper, x->upper, x->out_words);
    fprintf(out, "    %s_%s_PUSHED = %u /* floats of pushed */\n};\n", x->w->upper, x->upper, x->push_words);
}

/* ---------------------------------------------------------------- the function */

/* Writes the cell's equations as a C comment, in the form of `vpps cell`. */
static vpps_status put_equations(const vpps_c_cell *x) {
    const vpps_model *model = x->w->model;
    fputs("\n/* ", x->out);
    vpps_write_comment(x->out, x->c->name);
    fputc('\n', x->out);
    for (uint32_t i = 0; i < x->c->n_values; i++) {
        const vpps_cell_value *v = &x->c->values[i];
        const bool input = v->kind == VPPS_VALUE_INPUT;
        if (input ? !names(x->body, argument_of(x, v->input).at) : !vpps_is_made(v) || v->kind == VPPS_VALUE_POSITIONS)
            continue;
        char *name = vpps_value_name(model, x->c, i);
        char *value = input ? vpps_input_text(x->c, v->input) : vpps_value_text(model, x->c, i);
        const bool ok = name && value;
        if (ok) {
            fprintf(x->out, " *     %s = ", name);
            vpps_write_comment(x->out, value);
            fprintf(x->out, v->axis ? "    (%u x %u for each member of list %u)\n" : "    (%u x %u)\n", v->rows,
                    v->cols, v->axis - 1u);
        }
        VPPS_FREE(name, value);
        if (!ok) return vpps_fail(VPPS_MEMORY, "cell %s: out of memory for its text", x->c->name);
    }
    fputs(" */\n", x->out);
    return VPPS_OK;
}

/* Writes checks that return an error for an index out of range or a list of a wrong length. */
static void put_checks(const vpps_c_cell *x) {
    const vpps_cell_data *d = x->cell;
    if (x->w->options->weights) fputs("(void)weights;\n", x->out);
    for (uint32_t i = 0; i < d->n_indices; i++) {
        if (d->index_limits[i] == UINT32_MAX || !names(x->body, vpps_c_say("index%u", i).at)) continue;
        if (x->many) fputs("for (size_t r = 0; r < n; r++)\n", x->out);
        fprintf(x->out, "if (index%u%s >= %uu) return %s_INDEX;\n", i, x->many ? "_of[r]" : "", d->index_limits[i],
                x->w->upper);
    }
    for (uint32_t l = 0; l < d->n_lists; l++) {
        if (d->min_members[l + 1])
            fprintf(x->out, "if (n%u < %uu) return %s_MEMBERS;\n", l, d->min_members[l + 1], x->w->upper);
        if (d->most_members[l + 1])
            fprintf(x->out, "if (n%u > %uu) return %s_MEMBERS;\n", l, d->most_members[l + 1], x->w->upper);
        if (!d->min_members[l + 1] && !d->most_members[l + 1]) fprintf(x->out, "(void)n%u;\n", l);
    }
}

static void put_copy(const vpps_c_cell *x, uint32_t k, text from) {
    const vpps_cell_offer *offer = &x->cell->offers[k];
    fprintf(x->out, "for (size_t e = 0; e < %u; e++) %s = %s;\n", offer->rows * offer->cols, vpps_c_given(x, k).at,
            from.at);
}

/* Writes C for vertices whose condition (vpps_condition) does not hold: copies inputs, or zeros, to `out`. */
static void put_condition(const vpps_c_cell *x) {
    const vpps_cell_data *d = x->cell;
    if (!d->condition.there || x->push_words) return;
    const text c = vpps_c_input(x, d->condition.input, "0");
    if (d->condition.is)
        fprintf(x->out, "if (!(fabsf(%s - %.1ff) < 0.5f)) {\n", c.at, (double)d->condition.value);
    else
        fprintf(x->out, "if (!(%s > 0.0f)) {\n", c.at);
    for (uint32_t k = 0; k < d->n_scattered; k++) {
        text from = {"0.0f"};
        if (d->otherwise[k] != VPPS_NO_NODE) from = vpps_c_input(x, d->otherwise[k], "e");
        put_copy(x, k, from);
    }
    fprintf(x->out, "return %s_OK;\n}\n", x->w->upper);
}

/* Writes copies of the outputs that are inputs or table entries. */
static void put_handed_on(vpps_c_cell *x) {
    const vpps_cell_data *d = x->cell;
    x->segment = x->s.n;
    for (uint32_t k = 0; k < d->n_scattered + d->n_pushed; k++) {
        const uint32_t output = d->offers[k].output;
        const bool input = output & VPPS_CELL_INPUT;
        const uint32_t v = input ? output & ~VPPS_CELL_INPUT : x->c->outputs[output].value;
        if (x->places[k] != VPPS_NONE && !vpps_is_made(&x->c->values[v])) put_copy(x, k, vpps_c_element(x, v, "e"));
    }
}

/* Writes the C function's body, except the checks of its arguments. */
static vpps_status put_loops(vpps_c_cell *x) {
    vpps_c_block b;
    put_condition(x);
    VPPS_TRY(vpps_c_write_stage(x));
    VPPS_TRY(vpps_c_begin_vertices(x, &b));
    put_handed_on(x);
    return vpps_c_end_vertices(x, &b);
}

static void put_function(const vpps_c_cell *x, FILE *out, parameter_form form, const char *end) {
    fprintf(out, "int %s_%s%s(", x->w->prefix, x->name, form == MANY ? "_many" : "");
    put_parameters(x, out, form, x->body);
    fputs(end, out);
}

/* Writes the cell's C functions: for many vertices and for one, which calls the former (x->many), or only for one. */
static void put_functions(const vpps_c_cell *x) {
    put_function(x, x->out, x->many ? MANY : ONE, ") {\n");
    put_checks(x);
    if (x->s.floats[0]) fprintf(x->out, "float slots%s[%u];\n", x->many ? "[TOGETHER]" : "", x->s.floats[0]);
    if (x->many)
        fputs("for (size_t first = 0; first < n; first += TOGETHER) {\n"
              "const size_t end = n - first < TOGETHER ? n : first + TOGETHER;\n",
              x->out);
    else
        put_slots(x, x->out, NULL);
    fprintf(x->out, "%s%sreturn %s_OK;\n}\n", x->body, x->many ? "}\n" : "", x->w->upper);
    if (!x->many) return;
    put_function(x, x->out, DEFINED, ") {\n");
    fprintf(x->out, "return %s_%s_many(", x->w->prefix, x->name);
    put_parameters(x, x->out, CALL, x->body);
    fputs(");\n}\n", x->out);
}

vpps_status vpps_c_write_cell(vpps_c_cell *x, FILE *declarations) {
    const vpps_cell_data *d = x->cell;
    FILE *out = x->out;
    size_t bytes;
    if (x->c->n_stages) VPPS_TRY(vpps_segments_make(&x->s, x->c, 0));
    x->s.c = x->c;
    if (!x->out_words && !x->push_words) return VPPS_OK; /* all outputs are losses: no function is needed */
    x->many = !d->n_lists && !d->condition.there;
    x->out = open_memstream(&x->body, &bytes);
    vpps_status status = x->out ? put_loops(x) : VPPS_OK;
    if ((!x->out || fclose(x->out) != 0) && status == VPPS_OK)
        status = vpps_fail(VPPS_MEMORY, "cell %s: out of memory for its text", x->c->name);
    x->out = out;
    VPPS_TRY(status);
    put_constants(x, declarations);
    put_function(x, declarations, ONE, ");\n");
    if (x->many) put_function(x, declarations, MANY, ");\n");
    fputc('\n', declarations);
    VPPS_TRY(put_equations(x));
    put_functions(x);
    return VPPS_OK;
}
