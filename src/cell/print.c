/* print.c - prints a compiled cell as tables: inputs, parts, operations, kept values, gradients for inputs, cost. */
#include "cell/print.h"
#include "cell/arrange.h"
#include "cell/flops.h"

#include <inttypes.h>

enum { TEXT_WIDTH = 56 /* widest formula that fits a table column; the value's shape follows */ };

typedef struct printer {
    const vpps_model *model;
    const vpps_compiled_cell *c;
    FILE *file;
    bool failed; /* whether memory ran out */
} printer;

/* Writes a number with commas between thousands: 1310720 as 1,310,720. */
static const char *grouped(uint64_t n, char *text) {
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *to = text;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

static void print_text(printer *p, char *text) {
    p->failed |= !text;
    if (text) fputs(text, p->file);
    free(text);
}

static void print_name(printer *p, uint32_t v) { print_text(p, vpps_value_name(p->model, p->c, v)); }

/* Prints " a vertex", " a member" or, if the cell has several list inputs, " a member of list 0". */
static void print_axis(printer *p, uint32_t axis) {
    fputs(axis ? " a member" : " a vertex", p->file);
    if (axis && p->c->n_lists > 1) fprintf(p->file, " of list %u", axis - 1);
}

/* Prints an amount, such as "1,024 a vertex and 256 a member"; the second only if the cell reads a list of nodes. */
static void print_amount(printer *p, const uint64_t amounts[VPPS_AXES], const char *unit) {
    char text[32];
    bool any = false;
    for (uint32_t d = 0; d < VPPS_AXES; d++) {
        if (!amounts[d]) continue;
        fprintf(p->file, "%s%s%s", any ? " and " : "", grouped(amounts[d], text), unit);
        print_axis(p, d);
        any = true;
    }
    if (any) return;
    fprintf(p->file, "0%s", unit);
    print_axis(p, 0);
}

static void print_flops(printer *p, const vpps_cell_flops *f) {
    uint64_t all[VPPS_AXES];
    for (uint32_t d = 0; d < VPPS_AXES; d++) all[d] = f->products[d] + f->other[d];
    print_amount(p, all, " flops");
}

/* ---------------------------------------------------------------- inputs and outputs */

static const char *gradient_words(uint64_t gradients, uint64_t recurrent, uint32_t i) {
    const bool gradient = gradients >> i & 1, recurs = recurrent >> i & 1;
    return gradient && recurs ? "gradient, recurrent" : gradient ? "gradient" : recurs ? "recurrent" : "";
}

static void print_origin(printer *p, char *text, const char *words) {
    p->failed |= !text;
    fprintf(p->file, *words ? "%-28s %s\n" : "%s%s\n", text ? text : "", words);
    free(text);
}

static void print_reads(printer *p) {
    const vpps_compiled_cell *c = p->c;
    if (c->n_inputs + c->n_lookups) fputs("  reads\n", p->file);
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%u", i);
        char *from = vpps_input_text(c, i);
        fprintf(p->file, "    %-6s %5u x %-5u ", name, c->inputs[i].rows, c->inputs[i].cols);
        print_origin(p, from, gradient_words(c->needs.gradient_in, c->needs.recurrent_in, i));
    }
    for (uint32_t i = 0; i < c->n_lookups; i++) {
        if (c->lookups[i].table == VPPS_NO_PARAM) {
            fputs("    lookup a kept value\n", p->file);
            continue;
        }
        const vpps_parameter_data *table = &p->model->params[c->lookups[i].table];
        fprintf(p->file, "    %-6s %5u x %-5u entry of %s%s\n", "lookup", table->rows, table->cols, table->name,
                table->frozen ? ", frozen" : "");
    }
}

static void print_outputs(printer *p) {
    const vpps_compiled_cell *c = p->c;
    if (c->n_outputs) fputs("  gives\n", p->file);
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        char name[16];
        snprintf(name, sizeof name, "out%u", k);
        if (c->outputs[k].value == VPPS_NONE) {
            fprintf(p->file, "    %-6s nobody reads it\n", name);
            continue;
        }
        const vpps_cell_value *x = &c->values[c->outputs[k].value];
        fprintf(p->file, "    %-6s %5u x %-5u ", name, x->rows, x->cols);
        print_origin(p, vpps_value_name(p->model, c, c->outputs[k].value),
                     gradient_words(c->needs.gradient_out, c->needs.recurrent_out, k));
    }
}

/* ---------------------------------------------------------------- stages */

static void print_stack(printer *p, uint32_t v) {
    const vpps_compiled_cell *c = p->c;
    const vpps_cell_value *x = &c->values[v];
    const vpps_cell_stack s = vpps_stack_of(c, v);
    if (s.first != v) return;
    fprintf(p->file, "    %s%u x %u%s times [",
            s.n > 1 ? "stacked: " : "product: ", x->kind == VPPS_VALUE_PRODUCT_T ? s.cols : s.rows,
            x->kind == VPPS_VALUE_PRODUCT_T ? s.rows : s.cols, x->kind == VPPS_VALUE_PRODUCT_T ? " transposed" : "");
    const char *between = "";
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &c->args[x->first_arg + k];
        if (a->matrix == VPPS_NO_PARAM) continue;
        fputs(between, p->file);
        print_name(p, a->value);
        between = "; ";
    }
    fputs("] gives", p->file);
    for (uint32_t u = v; u < c->n_values; u++) {
        if (c->values[u].kind != x->kind || vpps_stack_of(c, u).first != v) continue;
        fputc(' ', p->file);
        print_name(p, u);
    }
    fputc('\n', p->file);
}

static void print_value(printer *p, uint32_t v, int name_width, int text_width) {
    const vpps_compiled_cell *c = p->c;
    const vpps_cell_value *x = &c->values[v];
    char name[16], shape[32];
    snprintf(name, sizeof name, "t%u", v);
    snprintf(shape, sizeof shape, "%u x %u", x->rows, x->cols);
    char *text = vpps_value_text(p->model, c, v);
    p->failed |= !text;
    fprintf(p->file, "    %-*s = %-*s  %s", name_width, name, text_width, text ? text : "", shape);
    if (x->axis) print_axis(p, x->axis);
    free(text);
    if (x->kept) fputs(", kept", p->file);
    if (x->kind == VPPS_VALUE_RUN && x->run.recompute) fputs(", recomputed", p->file);
    for (uint32_t k = 0; k < c->n_outputs; k++)
        if (c->outputs[k].value == v) fprintf(p->file, ", out%u", k);
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        if (to->value == v) fprintf(p->file, ", to %s%u", to->lookup ? "lookup " : "in", to->index);
    }
    fputc('\n', p->file);
}

/* Finds the widths that the values' names and formulas need in the table of a stage (part of the cell). */
static void measure(printer *p, const vpps_cell_stage *s, int *name_width, int *text_width) {
    *name_width = *text_width = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t v = p->c->order[s->first + i];
        char *text = vpps_value_text(p->model, p->c, v);
        const int width = text ? (int)strlen(text) : 0;
        free(text);
        const int digits = snprintf(NULL, 0, "t%u", v);
        if (digits > *name_width) *name_width = digits;
        if (width > *text_width && width <= TEXT_WIDTH) *text_width = width;
    }
}

static void print_stage(printer *p, uint32_t number) {
    const vpps_compiled_cell *c = p->c;
    const vpps_cell_stage *s = &c->stages[number];
    vpps_cell_flops flops = {{0}, {0}};
    for (uint32_t i = 0; i < s->n; i++) vpps_add_value_flops(p->model, c, c->order[s->first + i], &flops);
    fprintf(p->file, "  stage %u: %s %s, by %s, ", number, s->backward ? "backward" : "forward",
            vpps_pass_name(s->pass), vpps_split_name(s->split));
    print_flops(p, &flops);
    fputc('\n', p->file);
    int name_width, text_width;
    measure(p, s, &name_width, &text_width);
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t v = c->order[s->first + i];
        if (vpps_is_product(&c->values[v])) print_stack(p, v);
    }
    for (uint32_t i = 0; i < s->n; i++) print_value(p, c->order[s->first + i], name_width, text_width);
    vpps_print_steps(p->file, p->model, c, number);
}

/* ---------------------------------------------------------------- records */

/* Prints the values that share one place in a vertex's memory, one overwriting the other, in order of creation. */
static void print_place(printer *p, uint32_t record, uint32_t offset) {
    const vpps_compiled_cell *c = p->c;
    const char *between = "";
    for (uint32_t i = 0; i < c->n_stages; i++) {
        for (uint32_t j = 0; j < c->stages[i].n; j++) {
            const uint32_t v = c->order[c->stages[i].first + j];
            const vpps_cell_value *x = &c->values[v];
            if (!x->kept || x->record != record || x->offset != offset) continue;
            if (!*between) {
                fprintf(p->file, "    %6u %6u words", offset, vpps_place_words(x));
                if (vpps_axis_of(record)) print_axis(p, record);
                fputs("  ", p->file);
            }
            fputs(between, p->file);
            print_name(p, v);
            between = ", then ";
        }
    }
    fputc('\n', p->file);
}

static bool begins_place(const vpps_compiled_cell *c, uint32_t v) {
    const vpps_cell_value *x = &c->values[v];
    for (uint32_t u = 0; u < v; u++)
        if (c->values[u].kept && c->values[u].record == x->record && c->values[u].offset == x->offset) return false;
    return x->kept;
}

static void print_kept(printer *p) {
    const vpps_compiled_cell *c = p->c;
    fputs("  kept: ", p->file);
    uint64_t words[VPPS_AXES], bytes[VPPS_AXES];
    for (uint32_t d = 0; d < VPPS_AXES; d++) {
        words[d] = c->kept_words[d];
        bytes[d] = 4 * words[d];
    }
    print_amount(p, words, " words");
    fputs(", ", p->file);
    print_amount(p, bytes, " bytes");
    fputc('\n', p->file);
    for (uint32_t record = 0; record < VPPS_RECORDS; record++) {
        if (vpps_is_pass_record(record) && c->kept_words[record])
            fprintf(p->file, "  while a vertex runs %s: %u words\n",
                    record == VPPS_RECORD_FORWARD ? "forward" : "backward", c->kept_words[record]);
        for (uint32_t at = 0; at < c->kept_words[record]; at++) {
            for (uint32_t v = 0; v < c->n_values; v++)
                if (c->values[v].record == record && c->values[v].offset == at && begins_place(c, v))
                    print_place(p, record, at);
        }
    }
}

static void print_copies(printer *p, const char *pass, const vpps_layout_copies *made, const vpps_layout_copies *now) {
    if (!made->gathers && !made->scatters && !now->broadcasts) return;
    fprintf(p->file,
            "  to run alike operations as one, %s: %u gathers, %u scatters, %" PRIu64
            " bytes a vertex (in the order of "
            "making %u, %u, %" PRIu64 "); %u broadcasts, %" PRIu64 " bytes\n",
            pass, now->gathers, now->scatters, 4 * (now->gathered + now->scattered), made->gathers, made->scatters,
            4 * (made->gathered + made->scattered), now->broadcasts, 4 * now->broadcast);
}

static void print_layout(printer *p) {
    vpps_cell_layout l;
    if (vpps_arrange_cell(p->c, &l) != VPPS_OK) p->failed = true;
    if (p->failed) return;
    print_copies(p, "forward", &l.as_made.forward, &l.arranged.forward);
    print_copies(p, "backward", &l.as_made.backward, &l.arranged.backward);
}

static void print_contributions(printer *p) {
    const vpps_compiled_cell *c = p->c;
    if (c->n_contributions) fputs("  contributes\n", p->file);
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        const vpps_cell_value *x = &c->values[to->value];
        fputs("    ", p->file);
        print_name(p, to->value);
        fputs(" to ", p->file);
        if (to->lookup) {
            fprintf(p->file, "the entry of %s", vpps_table_name(p->model, c->lookups[to->index].table));
        } else {
            fprintf(p->file, "in%u", to->index);
        }
        fprintf(p->file, ", %u words", vpps_value_words(x));
        if (x->axis) print_axis(p, x->axis);
        if (to->scaled) fputs(", as its factors", p->file);
        if (vpps_makes_shares(x))
            fprintf(p->file, x->shares < c->needs.group ? ", in %u shares" : ", a share from every VP", x->shares);
        fputc('\n', p->file);
    }
}

static void print_outers(printer *p) {
    const vpps_compiled_cell *c = p->c;
    if (vpps_n_outers(c)) fputs("  gradients of parameters, when all vertices are done\n", p->file);
    for (uint32_t i = 0; i < vpps_n_outers(c); i++) {
        char *text = vpps_outer_text(p->model, c, i);
        const vpps_parameter_data *param = &p->model->params[vpps_outer_of(c, i).param];
        p->failed |= !text;
        fprintf(p->file, "    %-32s %u x %u\n", text ? text : "", param->rows, param->cols);
        free(text);
    }
}

/* ---------------------------------------------------------------- the whole cell */

static void print_cost(printer *p) {
    const vpps_cell_cost cost = vpps_cost_of_cell(p->model, p->c);
    fputs("  forward ", p->file);
    print_flops(p, &cost.forward);
    fputs(", backward ", p->file);
    print_flops(p, &cost.backward);
    fputs(", parameters ", p->file);
    print_flops(p, &cost.parameters);
    fputc('\n', p->file);
}

vpps_status vpps_print_cell(const vpps_model *model, const vpps_compiled_cell *c, FILE *file) {
    printer p = {model, c, file, false};
    print_cost(&p);
    print_reads(&p);
    print_outputs(&p);
    for (uint32_t i = 0; i < c->n_stages; i++) print_stage(&p, i);
    print_kept(&p);
    print_layout(&p);
    print_contributions(&p);
    print_outers(&p);
    return p.failed ? vpps_fail(VPPS_MEMORY, "cell %s: out of memory", c->name) : VPPS_OK;
}
