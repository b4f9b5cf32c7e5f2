/* text.c - writes a compiled cell's values and operations as text, such as "sigmoid(t3)". */
#include "cell/print.h"

#include <ctype.h>

/* Texts of instructions that are written as formulas, not like function calls: $0 to $9 stand for operands that are values, $f and $u for
 * the float and the integer of the instruction. */
static const char *const formulas[VPPS_I_COUNT] = {
    [VPPS_I_FILL] = "$f",
    [VPPS_I_COPY] = "$0",
    [VPPS_I_NEG] = "-$0",
    [VPPS_I_ONE_MINUS] = "1 - $0",
    [VPPS_I_RECIPROCAL] = "1 / $0",
    [VPPS_I_ADD] = "$0 + $1",
    [VPPS_I_SUB] = "$0 - $1",
    [VPPS_I_MUL] = "$0 * $1",
    [VPPS_I_DIV] = "$0 / $1",
    [VPPS_I_SCALE] = "$f * $0",
    [VPPS_I_SCALE_BY] = "$1 * $0",
    [VPPS_I_WHEN] = "$1 > 0 ? $0 : 0",
    [VPPS_I_UNLESS] = "$1 > 0 ? 0 : $0",
    [VPPS_I_MATMUL] = "$0 $1",
    [VPPS_I_MATMUL_NT] = "$0 $1^T",
    [VPPS_I_MATMUL_TN] = "$0^T $1",
    [VPPS_I_TRANSPOSE] = "$0^T",
    [VPPS_I_SIGMOID_B] = "$0 * $1 * (1 - $1)",
    [VPPS_I_TANH_B] = "$0 * (1 - $1^2)",
    [VPPS_I_RELU_B] = "$1 > 0 ? $0 : 0",
    [VPPS_I_ELU_B] = "$1 > 0 ? $0 : $0 * ($1 + $f)",
    [VPPS_I_GELU_B] = "$0 * gelu'($1)",
    [VPPS_I_GELU_ERF_B] = "$0 * gelu_erf'($1)",
    [VPPS_I_SQUARE_B] = "2 * $0 * $1",
    [VPPS_I_SQRT_B] = "$0 / (2 * $1)",
    [VPPS_I_ABS_B] = "$0 * sign($1)",
    [VPPS_I_RECIPROCAL_B] = "-$0 * $1^2",
    [VPPS_I_DIV_B] = "-$0 * $1 / $2",
    [VPPS_I_MAX_B0] = "$1 >= $2 ? $0 : 0",
    [VPPS_I_MAX_B1] = "$1 >= $2 ? 0 : $0",
    [VPPS_I_MIN_B0] = "$1 <= $2 ? $0 : 0",
    [VPPS_I_MIN_B1] = "$1 <= $2 ? 0 : $0",
    [VPPS_I_INDEX_B] = "$1 == $u ? $0 : 0",
    [VPPS_I_SQUARED_DISTANCE_B] = "2 * $2 * ($0 - $1)",
    [VPPS_I_BINARY_LOG_LOSS_BP] = "$2 * ($0 - $1) / ($0 * (1 - $0))",
    [VPPS_I_BINARY_LOG_LOSS_BT] = "$1 * (log(1 - $0) - log($0))",
    [VPPS_I_SOFTMAX_B] = "$1 * ($0 - dot($0, $1))",
    [VPPS_I_LOG_SOFTMAX_B] = "$0 - exp($1) * sum_elements($0)",
    [VPPS_I_LOG_SUM_EXP_B] = "$2 * exp($0 - $1)",
    [VPPS_I_RMS_NORM_B] = "$1 * rms_norm'($0, $f)",
    [VPPS_I_CROSS_ENTROPY_B] = "$2 * (softmax($0) - onehot($u))",
};

typedef struct writer {
    const vpps_model *model;
    const vpps_compiled_cell *c;
    FILE *out;
} writer;

static const char *param_name(const writer *w, vpps_param p) { return w->model->params[p].name; }

/* ---------------------------------------------------------------- operands */

static void write_word(const writer *w, uint32_t word) {
    switch (w->c->words[word].kind) {
    case VPPS_WORD_INDEX: fprintf(w->out, "index%u", w->c->words[word].value); break;
    case VPPS_WORD_IMM: fputs("number", w->out); break;
    default: fputs("element", w->out); break;
    }
}

static void write_lookup(const writer *w, const vpps_cell_lookup *l) {
    fprintf(w->out, "%s[", vpps_table_name(w->model, l->table));
    if (l->kind == VPPS_WORD_INDEX) fprintf(w->out, "index%u]", l->value);
    if (l->kind == VPPS_WORD_IMM) fputs("number]", w->out);
    if (l->kind == VPPS_WORD_DROPOUT) fprintf(w->out, "%u]", l->value);
}

static void write_name(const writer *w, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    switch (x->kind) {
    case VPPS_VALUE_INPUT: fprintf(w->out, "in%u", x->input); break;
    case VPPS_VALUE_LOOKUP: write_lookup(w, &w->c->lookups[x->lookup]); break;
    case VPPS_VALUE_PARAMETER: fputs(param_name(w, x->vector), w->out); break;
    default: fprintf(w->out, "t%u", v); break;
    }
}

/* Writes an argument's name, with "..." after it if the reader takes all members of a list: "t3...". */
static void write_arg(const writer *w, const vpps_cell_value *reader, const vpps_cell_arg *a, bool scalar) {
    const vpps_cell_value *x = &w->c->values[a->value];
    write_name(w, a->value);
    if (scalar && vpps_value_words(x) > 1) fprintf(w->out, "[%u]", a->element);
    if (x->axis && (!reader->axis || (reader->kind == VPPS_VALUE_RUN && reader->run.over_list))) fputs("...", w->out);
}

static const vpps_cell_arg *arg_of(const writer *w, const vpps_cell_value *x, uint32_t k) {
    return &w->c->args[x->first_arg + k];
}

static void write_args(const writer *w, const vpps_cell_value *x, const char *between) {
    for (uint32_t k = 0; k < x->n_args; k++) {
        if (k) fputs(between, w->out);
        write_arg(w, x, arg_of(w, x, k), false);
    }
}

/* Returns whether operand k is one element. It is not if the instruction works on each column of a matrix by itself. */
static bool is_scalar(const vpps_cell_value *x, uint32_t k) {
    uint32_t at = 0;
    for (const char *type = vpps_instructions[x->run.opcode].operands; *type && *type != '*'; type++)
        if (strchr("tsv", *type) && at++ == k)
            return *type == 's' && !(x->cols > 1 && vpps_instructions[x->run.opcode].form == VPPS_FORM_ROW);
    return false;
}

static void write_f(const writer *w, const vpps_cell_value *x) {
    if (x->run.f.kind == VPPS_NUMBER_WORD) {
        write_word(w, x->run.f.word);
    } else {
        fprintf(w->out, "%g", (double)x->run.f.real);
    }
}

/* Writes a number that may depend on the length of a list input: "2 members + 1"; if there are several lists, "2 members of list 0". */
static void write_count(const writer *w, const vpps_cell_count *count) {
    const char *between = "";
    for (uint32_t d = 1; d < VPPS_AXES; d++) {
        if (!count->list[d]) continue;
        fputs(between, w->out);
        if (count->list[d] > 1) fprintf(w->out, "%u ", count->list[d]);
        fputs("members", w->out);
        if (w->c->n_lists > 1) fprintf(w->out, " of list %u", d - 1);
        between = " + ";
    }
    if (count->base || !*between) fprintf(w->out, "%s%u", between, count->base);
}

static void write_u(const writer *w, const vpps_cell_value *x) {
    const vpps_cell_number *u = &x->run.u;
    if (u->kind == VPPS_NUMBER_POSITION) {
        const bool first = !u->count.base && !vpps_counts_members(&u->count);
        if (!first || !x->axis) write_count(w, &u->count);
        if (x->axis) fputs(first ? "member" : " + member", w->out);
    } else if (u->kind == VPPS_NUMBER_WORD) {
        write_word(w, u->word);
    } else {
        fprintf(w->out, "%u", u->whole);
    }
}

/* ---------------------------------------------------------------- operations */

static void write_formula(const writer *w, const vpps_cell_value *x, const char *formula) {
    for (const char *at = formula; *at; at++) {
        if (*at != '$') {
            fputc(*at, w->out);
            continue;
        }
        at++;
        if (*at == 'f') write_f(w, x);
        if (*at == 'u') write_u(w, x);
        if (isdigit((unsigned char)*at)) {
            const uint32_t k = (uint32_t)(*at - '0');
            if (k < x->n_args) write_arg(w, x, arg_of(w, x, k), is_scalar(x, k));
        }
    }
}

/* Writes an instruction like a function call: "dropout(t3, 0.25)". */
static void write_call(const writer *w, const vpps_cell_value *x) {
    uint32_t k = 0;
    const char *between = "";
    for (const char *name = vpps_instructions[x->run.opcode].name; *name; name++)
        fputc(tolower((unsigned char)*name), w->out);
    fputc('(', w->out);
    for (const char *type = vpps_instructions[x->run.opcode].operands; *type; type++) {
        if (*type == 'i' || *type == 'e') continue;
        const uint32_t end = strchr("tsv", *type) ? k + 1 : *type == '*' ? x->n_args : k;
        if (*type == 'f' || *type == 'u') {
            fputs(between, w->out);
            if (*type == 'f') write_f(w, x);
            if (*type == 'u') write_u(w, x);
        }
        for (; k < end; k++, between = ", ") {
            fputs(between, w->out);
            write_arg(w, x, arg_of(w, x, k), *type == 's');
        }
        between = ", ";
    }
    fputc(')', w->out);
}

static void write_sum(const writer *w, const vpps_cell_value *x) {
    const bool average = x->run.f.kind == VPPS_NUMBER_INVERSE, scaled = !average && x->run.f.real != 1;
    bool list = average;
    for (uint32_t k = 0; k < x->n_args; k++) list |= w->c->values[arg_of(w, x, k)->value].axis != x->axis;
    if (scaled) fprintf(w->out, "%g * (", (double)x->run.f.real);
    if (list) fputs(average ? "average(" : "sum(", w->out);
    write_args(w, x, list ? ", " : " + ");
    if (list) fputc(')', w->out);
    if (scaled) fputc(')', w->out);
}

/* Writes a value that is a slice of another value's rows, or a stack of values, as text. */
static void write_parts(const writer *w, const vpps_cell_value *x) {
    const uint32_t first = x->run.u.whole;
    const bool stack = x->run.opcode == VPPS_I_STACK;
    fputs(stack ? "[" : x->run.opcode == VPPS_I_PLACE ? "0, but " : "", w->out);
    write_args(w, x, "; ");
    if (stack) {
        fputs(x->run.over_list ? "; 0]" : "]", w->out);
    } else if (x->run.opcode == VPPS_I_PLACE) {
        fprintf(w->out, " from row %u on", first);
    } else if (x->run.over_list) {
        fputs("[member]", w->out);
    } else {
        fprintf(w->out, "[%u:%u]", first, first + x->rows);
    }
}

static void write_run(const writer *w, const vpps_cell_value *x) {
    if (x->run.opcode == VPPS_I_SUM) {
        write_sum(w, x);
    } else if (vpps_instructions[x->run.opcode].form == VPPS_FORM_PARTS) {
        write_parts(w, x);
    } else if (x->run.opcode == VPPS_I_MATRIX) {
        fputs(param_name(w, x->run.table), w->out);
    } else if (x->run.opcode == VPPS_I_ENTRY) {
        fprintf(w->out, "%s[", param_name(w, x->run.table));
        write_args(w, x, "");
        fputc(']', w->out);
    } else if (x->run.f.kind == VPPS_NUMBER_INVERSE) {
        write_args(w, x, "");
        fputs(" / (", w->out);
        write_count(w, &x->run.f.count);
        fputc(')', w->out);
    } else if (formulas[x->run.opcode]) {
        write_formula(w, x, formulas[x->run.opcode]);
    } else {
        write_call(w, x);
    }
}

static void write_product(const writer *w, const vpps_cell_value *x) {
    const char *between = "";
    if (vpps_bias_of(x) != VPPS_NO_PARAM) {
        fputs(param_name(w, x->bias), w->out);
        between = " + ";
    }
    for (uint32_t k = 0; k < x->n_args; k++, between = " + ") {
        const vpps_cell_arg *a = arg_of(w, x, k);
        fputs(between, w->out);
        if (a->matrix != VPPS_NO_PARAM)
            fprintf(w->out, "%s%s ", param_name(w, a->matrix), x->kind == VPPS_VALUE_PRODUCT_T ? "^T" : "");
        write_arg(w, x, a, false);
    }
}

static void write_value(const writer *w, uint32_t v) {
    const vpps_cell_value *x = &w->c->values[v];
    switch (x->kind) {
    case VPPS_VALUE_DATA: fputs("data", w->out); break;
    case VPPS_VALUE_GRADIENT: fprintf(w->out, "gradient of out%u", x->output); break;
    case VPPS_VALUE_RUN: write_run(w, x); break;
    case VPPS_VALUE_PRODUCT:
    case VPPS_VALUE_PRODUCT_T: write_product(w, x); break;
    case VPPS_VALUE_POSITIONS:
        fputs("positions of ", w->out);
        write_args(w, x, "");
        break;
    default: write_name(w, v); break;
    }
}

static void write_outer(const writer *w, uint32_t i) {
    const vpps_outer o = vpps_outer_of(w->c, i);
    fprintf(w->out, "%s += ", param_name(w, o.param));
    write_name(w, o.dy->value);
    if (!o.x) return;
    fputc(' ', w->out);
    write_name(w, o.x->value);
    fputs("^T", w->out);
}

/* ---------------------------------------------------------------- */

/* Returns, as a string, what `write` writes about the cell's value (or parameter gradient) number i; NULL: out of memory. */
static char *written(const vpps_model *model, const vpps_compiled_cell *c, void (*write)(const writer *w, uint32_t i),
                     uint32_t i) {
    char *text = NULL;
    size_t bytes;
    const writer w = {model, c, open_memstream(&text, &bytes)};
    if (w.out) write(&w, i);
    vpps_text_end(w.out, VPPS_OK, &text);
    return text;
}

char *vpps_value_name(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v) {
    return written(model, c, write_name, v);
}

char *vpps_value_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t v) {
    return written(model, c, write_value, v);
}

char *vpps_input_text(const vpps_compiled_cell *c, uint32_t input) {
    const vpps_cell_input *in = &c->inputs[input];
    const uint32_t axis = c->input_axis[input];
    char text[64], list[24] = "a list";
    if (c->n_lists > 1) snprintf(list, sizeof list, "list %u", axis - 1);
    if (in->pulled) {
        snprintf(text, sizeof text, "pulled %u%s%s", in->child, axis ? ", " : "", axis ? list : "");
    } else if (axis && c->n_lists > 1) {
        snprintf(text, sizeof text, "children of %s, output %u", list, in->output);
    } else if (axis && in->child) {
        snprintf(text, sizeof text, "children from %u on, output %u", in->child, in->output);
    } else if (axis) {
        snprintf(text, sizeof text, "all children, output %u", in->output);
    } else {
        snprintf(text, sizeof text, "child %u, output %u", in->child, in->output);
    }
    return strdup(text);
}

char *vpps_outer_text(const vpps_model *model, const vpps_compiled_cell *c, uint32_t i) {
    return written(model, c, write_outer, i);
}

const char *vpps_pass_name(uint32_t pass) {
    static const char *const names[] = {"eager", "main", "lazy"};
    return names[pass % VPPS_PASS_BACK_EAGER];
}

const char *vpps_split_name(uint32_t split) { return split == VPPS_SPLIT_ROWS ? "rows" : "vertices"; }
