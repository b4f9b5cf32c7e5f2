/* cell.c - `vpps cell`: prints the cells of the first training batch as compiled for the device's virtual processors. */
#include "base/base.h"
#include "cell/arrange.h"
#include "cell/flops.h"
#include "cell/print.h"
#include "cli/commands/commands.h"
#include "cli/commands/open_network.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "cli/common/number.h"
#include "cli/output/output_files.h"
#include "io/output.h"
#include "runtime/handle.h"
#include "script/task.h"

/* ---------------------------------------------------------------- as JSON */

/* Makes a JSON string of a text, which is freed; NULL: out of memory. */
static json_t *text_json(char *text) {
    json_t *o = text ? json_string(text) : NULL;
    free(text);
    return o;
}

/* The model and the cell that functions of this file print as JSON. */
typedef struct subject {
    const vpps_model *model;
    const vpps_compiled_cell *c;
} subject;

/* Returns as JSON the number of the list input (of any number of vertices) to whose members an axis belongs; NULL: axis 0 (the vertex itself), or the
 * cell's only list. */
static json_t *list_json(const subject *s, uint32_t axis) {
    return s->c->n_lists > 1 && axis ? json_integer((json_int_t)axis - 1) : NULL;
}

static json_t *amounts_json(const vpps_cell_flops *f, uint32_t axis) {
    return json_pack("{sIsI}", "products", (json_int_t)f->products[axis], "other", (json_int_t)f->other[axis]);
}

/* Returns flops per vertex and per "member" of the first input list; if there are several lists, "members" has the flops for each list. */
static json_t *flops_json(const subject *s, const vpps_cell_flops *f) {
    json_t *members = s->c->n_lists > 1 ? json_array() : NULL;
    for (uint32_t d = 1; members && d <= s->c->n_lists; d++) json_array_append_new(members, amounts_json(f, d));
    return json_pack("{so so so*}", "vertex", amounts_json(f, 0), "member", amounts_json(f, 1), "members", members);
}

static json_t *name_json(const subject *s, uint32_t v) { return text_json(vpps_value_name(s->model, s->c, v)); }

static json_t *inputs_json(const subject *s) {
    const vpps_compiled_cell *c = s->c;
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        const vpps_cell_input *in = &c->inputs[i];
        char name[16];
        snprintf(name, sizeof name, "in%u", i);
        json_array_append_new(list, json_pack("{ss so sI sI sb sb sb}", "name", name, "from",
                                              text_json(vpps_input_text(c, i)), "rows", (json_int_t)in->rows, "cols",
                                              (json_int_t)in->cols, "list", c->input_axis[i] > 0, "gradient",
                                              (int)(c->needs.gradient_in >> i & 1), "recurrent",
                                              (int)(c->needs.recurrent_in >> i & 1)));
    }
    return list;
}

static json_t *lookups_json(const subject *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->c->n_lookups; i++) {
        const vpps_param p = s->c->lookups[i].table; /* VPPS_NO_PARAM: a kept value, whose shape its operation tells */
        const vpps_parameter_data *table = p == VPPS_NO_PARAM ? NULL : &s->model->params[p];
        json_array_append_new(list,
                              json_pack("{ss so* so* sb}", "table", vpps_table_name(s->model, p), "rows",
                                        table ? json_integer(table->rows) : NULL, "cols",
                                        table ? json_integer(table->cols) : NULL, "frozen", table && table->frozen));
    }
    return list;
}

static json_t *outputs_json(const subject *s) {
    const vpps_compiled_cell *c = s->c;
    json_t *list = json_array();
    for (uint32_t k = 0; k < c->n_outputs; k++) {
        const uint32_t v = c->outputs[k].value;
        const vpps_cell_value *x = v == VPPS_NONE ? NULL : &c->values[v];
        json_array_append_new(list, json_pack("{so sI sI sb sb}", "value", x ? name_json(s, v) : json_null(), "rows",
                                              (json_int_t)(x ? x->rows : 0), "cols", (json_int_t)(x ? x->cols : 0),
                                              "gradient", (int)(c->needs.gradient_out >> k & 1), "recurrent",
                                              (int)(c->needs.recurrent_out >> k & 1)));
    }
    return list;
}

static json_t *operation_json(const subject *s, uint32_t v) {
    const vpps_cell_value *x = &s->c->values[v];
    vpps_cell_flops flops = {{0}, {0}};
    vpps_add_value_flops(s->model, s->c, v, &flops);
    return json_pack("{so so sI sI sb so* sb sb so}", "value", name_json(s, v), "is",
                     text_json(vpps_value_text(s->model, s->c, v)), "rows", (json_int_t)x->rows, "cols",
                     (json_int_t)x->cols, "member", x->axis > 0, "list", list_json(s, x->axis), "kept", x->kept,
                     "recomputed", x->kind == VPPS_VALUE_RUN && x->run.recompute, "flops", flops_json(s, &flops));
}

/* Returns as JSON the stack (matrix products with one operand, which run as one) whose first product is v; NULL: v is not a stack's first product. */
static json_t *stack_json(const subject *s, uint32_t v) {
    const vpps_compiled_cell *c = s->c;
    const vpps_cell_value *x = &c->values[v];
    if (!vpps_is_product(x)) return NULL;
    const vpps_cell_stack stack = vpps_stack_of(c, v);
    if (stack.first != v) return NULL;
    json_t *values = json_array(), *operands = json_array();
    for (uint32_t u = v; u < c->n_values; u++)
        if (c->values[u].kind == x->kind && vpps_stack_of(c, u).first == v)
            json_array_append_new(values, name_json(s, u));
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = &c->args[x->first_arg + k];
        if (a->matrix != VPPS_NO_PARAM) json_array_append_new(operands, name_json(s, a->value));
    }
    const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
    return json_pack("{sI sI sb so so}", "rows", (json_int_t)(transposed ? stack.cols : stack.rows), "cols",
                     (json_int_t)(transposed ? stack.rows : stack.cols), "transposed", transposed, "operands", operands,
                     "values", values);
}

static json_t *operand_json(const subject *s, const vpps_operand *o) {
    return text_json(vpps_operand_text(s->model, s->c, o));
}

static json_t *steps_json(const subject *s, uint32_t stage) {
    const vpps_program *p = &s->c->programs[stage];
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->n; i++) {
        const vpps_program_step *step = &p->steps[i];
        const bool run = step->kind == VPPS_STEP_RUN;
        json_t *from = json_array();
        if (step->kind == VPPS_STEP_PRODUCT && step->product.start.place)
            json_array_append_new(from, operand_json(s, &step->product.start));
        for (uint32_t k = 0; k < step->n; k++)
            json_array_append_new(from, operand_json(s, &p->operands[step->first + k]));
        json_array_append_new(list,
                              json_pack("{ss so* so so so}", "step", vpps_step_name(step->kind), "instruction",
                                        run ? json_string(vpps_instructions[step->run.of.opcode].name) : NULL, "value",
                                        name_json(s, step->to.value), "to", operand_json(s, &step->to), "from", from));
    }
    return list;
}

static json_t *stages_json(const subject *s) {
    const vpps_compiled_cell *c = s->c;
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const vpps_cell_stage *stage = &c->stages[i];
        vpps_cell_flops flops = {{0}, {0}};
        json_t *operations = json_array(), *products = json_array();
        for (uint32_t k = 0; k < stage->n; k++) {
            const uint32_t v = c->order[stage->first + k];
            vpps_add_value_flops(s->model, c, v, &flops);
            json_array_append_new(operations, operation_json(s, v));
            json_t *stack = stack_json(s, v);
            if (stack) json_array_append_new(products, stack);
        }
        json_array_append_new(list,
                              json_pack("{ss ss ss so so so so}", "direction", stage->backward ? "backward" : "forward",
                                        "part", vpps_pass_name(stage->pass), "split", vpps_split_name(stage->split),
                                        "flops", flops_json(s, &flops), "products", products, "operations", operations,
                                        "steps", steps_json(s, i)));
    }
    return list;
}

/* Returns as JSON the pass, "forward" or "backward", for whose time alone the vertex keeps the value; null: the value is kept longer. */
static json_t *pass_json(const vpps_cell_value *x) {
    if (!vpps_is_pass_record(x->record)) return json_null();
    return json_string(x->record == VPPS_RECORD_FORWARD ? "forward" : "backward");
}

static json_t *kept_json(const subject *s) {
    const vpps_compiled_cell *c = s->c;
    json_t *values = json_array();
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_cell_value *x = &c->values[v];
        if (!x->kept) continue;
        json_array_append_new(values,
                              json_pack("{so sI sI so sb so*}", "value", name_json(s, v), "at", (json_int_t)x->offset,
                                        "words", (json_int_t)vpps_place_words(c, x), "pass", pass_json(x), "member",
                                        x->axis > 0, "list", list_json(s, x->axis)));
    }
    json_t *lists = c->n_lists > 1 ? json_array() : NULL;
    for (uint32_t d = 1; lists && d <= c->n_lists; d++) {
        const json_int_t words = c->kept_words[d];
        json_array_append_new(lists, json_pack("{sI sI}", "words", words, "bytes", 4 * words));
    }
    return json_pack("{sI sI sI sI sI sI so* so}", "words", (json_int_t)c->kept_words[0], "bytes",
                     4 * (json_int_t)c->kept_words[0], "forward_bytes",
                     4 * (json_int_t)c->kept_words[VPPS_RECORD_FORWARD], "backward_bytes",
                     4 * (json_int_t)c->kept_words[VPPS_RECORD_BACKWARD], "member_words", (json_int_t)c->kept_words[1],
                     "member_bytes", 4 * (json_int_t)c->kept_words[1], "members", lists, "values", values);
}

static json_t *copies_json(const vpps_layout_copies *x) {
    return json_pack("{sI sI sI sI sI}", "gathers", (json_int_t)x->gathers, "scatters", (json_int_t)x->scatters,
                     "broadcasts", (json_int_t)x->broadcasts, "bytes", 4 * (json_int_t)(x->gathered + x->scattered),
                     "broadcast_bytes", 4 * (json_int_t)x->broadcast);
}

static json_t *layout_json(const subject *s) {
    vpps_cell_layout l;
    if (vpps_arrange_cell(s->c, &l) != VPPS_OK) return NULL;
    return json_pack("{s{so so} s{so so} sI}", "as_made", "forward", copies_json(&l.as_made.forward), "backward",
                     copies_json(&l.as_made.backward), "arranged", "forward", copies_json(&l.arranged.forward),
                     "backward", copies_json(&l.arranged.backward), "gathered_bytes",
                     4 * (json_int_t)vpps_copied_words(&l.arranged));
}

static json_t *contributions_json(const subject *s) {
    const vpps_compiled_cell *c = s->c;
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->n_contributions; i++) {
        const vpps_cell_contribution *to = &c->contributions[i];
        char name[32];
        snprintf(name, sizeof name, "%s%u", to->lookup ? "lookup" : "in", to->index);
        const vpps_cell_value *x = &c->values[to->value];
        json_array_append_new(list, json_pack("{so ss sI sb so* sb sb}", "value", name_json(s, to->value), "to", name,
                                              "words", (json_int_t)vpps_value_words(x), "member", x->axis > 0, "list",
                                              list_json(s, x->axis), "shares", to->partial, "factors", to->scaled));
    }
    return list;
}

static json_t *gradients_json(const subject *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < vpps_n_outers(s->c); i++) {
        const vpps_parameter_data *p = &s->model->params[vpps_outer_of(s->c, i).param];
        vpps_cell_flops flops = {{0}, {0}};
        vpps_add_outer_flops(s->model, s->c, i, &flops);
        json_array_append_new(list,
                              json_pack("{ss so sI sI so}", "parameter", p->name, "is",
                                        text_json(vpps_outer_text(s->model, s->c, i)), "rows", (json_int_t)p->rows,
                                        "cols", (json_int_t)p->cols, "flops", flops_json(s, &flops)));
    }
    return list;
}

static json_t *cell_json(const subject *s, uint64_t vertices, uint64_t members) {
    const vpps_cell_cost cost = vpps_cost_of_cell(s->model, s->c);
    return json_pack("{ss sI sI s{so so so} so so so so so so so so}", "name", s->c->name, "vertices",
                     (json_int_t)vertices, "members", (json_int_t)members, "flops", "forward",
                     flops_json(s, &cost.forward), "backward", flops_json(s, &cost.backward), "parameters",
                     flops_json(s, &cost.parameters), "inputs", inputs_json(s), "lookups", lookups_json(s), "outputs",
                     outputs_json(s), "stages", stages_json(s), "kept", kept_json(s), "layout", layout_json(s),
                     "contributions", contributions_json(s), "gradients", gradients_json(s));
}

/* ---------------------------------------------------------------- the batch */

static vpps_status show(const session *x, const vpps_batch *b) {
    const settings *s = x->settings;
    const vpps_task_header *h = vpps_task_header_of(b->script);
    vpps_stats stats = {.size = sizeof stats};
    VPPS_TRY(vpps_handle_stats(x->handle, &stats));
    if (!s->json) {
        char cells[24], vps[24], groups[24];
        printf("%s: %s for training, %s in %s\n", s->network->name, number_of(b->n_cells, "cells", cells, sizeof cells),
               number_of(h->n_vps, "VPs", vps, sizeof vps), number_of(h->n_groups, "groups", groups, sizeof groups));
        printf("products with matrices in %s (%s), all else in fp32\n", stats.precision, stats.precision_unit);
    }
    json_t *cells = s->json ? json_array() : NULL;
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < b->n_cells && status == VPPS_OK; i++) {
        const subject cell = {x->model, b->cells[i]};
        uint64_t vertices = 0, members = 0;
        for (uint32_t k = 0; k < h->n_blocks; k++) {
            const vpps_block *block = vpps_block_at(b->script, k);
            if (block->cell != i) continue;
            vertices += block->n;
            for (uint32_t l = 0; l < VPPS_CELL_LISTS; l++) members += block->members[l];
        }
        if (s->json) {
            json_array_append_new(cells, cell_json(&cell, vertices, members));
            continue;
        }
        printf("\n%s: %llu vertices of the batch", cell.c->name, (unsigned long long)vertices);
        if (members) printf(" with %llu members", (unsigned long long)members);
        putchar('\n');
        status = vpps_print_cell(cell.model, cell.c, stdout);
    }
    if (status == VPPS_OK && s->json)
        return report_json_line(json_pack("{ss sI sI ss ss so}", "model", s->network->name, "vps", (json_int_t)h->n_vps,
                                          "groups", (json_int_t)h->n_groups, "precision", stats.precision,
                                          "precision_unit", stats.precision_unit, "cells", cells),
                                stdout);
    json_decref(cells);
    VPPS_TRY(status);
    return flush_stdout();
}

static vpps_status cell(settings *s, session *x, corpus *c) {
    const vpps_batch *b;
    vpps_node loss;
    VPPS_TRY(output_files_check(s));
    VPPS_TRY(open_first_batch(x, s, c, true, &loss));
    VPPS_TRY(vpps_handle_batch(x->handle, x->graph, loss, &b));
    return show(x, b);
}

int command_cell(settings *s) {
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    return exit_code(cell(s, &x, &c));
}
