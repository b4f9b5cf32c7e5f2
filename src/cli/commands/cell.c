/* cell.c - `vpps cell` prints the cells of the first training batch as compiled for one virtual processor (a CTA; on a
 * CPU a thread); `vpps script` prints what each virtual processor runs, in order (the batch's script). */
#include "base/base.h"
#include "cell/arrange.h"
#include "cell/flops.h"
#include "cell/print.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "cli/common/number.h"
#include "runtime/handle.h"
#include "script/task.h"

/* ---------------------------------------------------------------- as JSON */

static json_t *text_json(char *text) {
    json_t *o = text ? json_string(text) : NULL;
    free(text);
    return o;
}

typedef struct subject {
    const vpps_model *model;
    const vpps_compiled_cell *c;
} subject;

/* Returns the list of n objects that `make` makes; NULL results are left out. */
static json_t *list_json(const subject *s, uint32_t n, json_t *(*make)(const subject *s, uint32_t i)) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) json_array_append_new(list, make(s, i));
    return list;
}

static json_t *name_json(const subject *s, uint32_t v) { return text_json(vpps_value_name(s->model, s->c, v)); }

static json_t *input_json(const subject *s, uint32_t i) {
    const vpps_cell_input *in = &s->c->inputs[i];
    return json_pack("{so so sI sI sb}", "name", json_sprintf("in%u", i), "from", text_json(vpps_input_text(s->c, i)),
                     "rows", (json_int_t)in->rows, "cols", (json_int_t)in->cols, "list", s->c->input_axis[i] > 0);
}

static json_t *lookup_json(const subject *s, uint32_t i) {
    const vpps_param p = s->c->lookups[i].table;
    const vpps_parameter_data *table = p == VPPS_NO_PARAM ? NULL : &s->model->params[p];
    return json_pack("{ss so* so*}", "table", vpps_table_name(s->model, p), "rows",
                     table ? json_integer(table->rows) : NULL, "cols", table ? json_integer(table->cols) : NULL);
}

static json_t *output_json(const subject *s, uint32_t i) {
    const uint32_t v = s->c->outputs[i].value;
    return json_pack("{so}", "value", v == VPPS_NONE ? json_null() : name_json(s, v));
}

static json_t *operation_json(const subject *s, uint32_t v) {
    const vpps_cell_value *x = &s->c->values[v];
    return json_pack("{so so sI sI sb sb sb}", "value", name_json(s, v), "is",
                     text_json(vpps_value_text(s->model, s->c, v)), "rows", (json_int_t)x->rows, "cols",
                     (json_int_t)x->cols, "member", x->axis > 0, "kept", x->kept, "recomputed",
                     x->kind == VPPS_VALUE_RUN && x->run.recompute);
}

/* Returns a stack (products that multiply the same operands and run as one) as JSON, if v is its first; else NULL. */
static json_t *stack_json(const subject *s, uint32_t v) {
    const vpps_compiled_cell *c = s->c;
    const vpps_cell_value *x = &c->values[v];
    if (!vpps_is_product(x)) return NULL;
    const vpps_cell_stack stack = vpps_stack_of(c, v);
    if (stack.first != v) return NULL;
    json_t *values = json_array();
    for (uint32_t u = v; u < c->n_values; u++)
        if (c->values[u].kind == x->kind && vpps_stack_of(c, u).first == v)
            json_array_append_new(values, name_json(s, u));
    const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
    return json_pack("{sI sI so}", "rows", (json_int_t)(transposed ? stack.cols : stack.rows), "cols",
                     (json_int_t)(transposed ? stack.rows : stack.cols), "values", values);
}

static json_t *stage_json(const subject *s, uint32_t i) {
    const vpps_cell_stage *stage = &s->c->stages[i];
    json_t *operations = json_array(), *products = json_array();
    for (const uint32_t *v = s->c->order + stage->first; v < s->c->order + stage->first + stage->n; v++) {
        json_array_append_new(operations, operation_json(s, *v));
        json_array_append_new(products, stack_json(s, *v));
    }
    return json_pack("{ss ss ss so so}", "direction", stage->backward ? "backward" : "forward", "part",
                     vpps_pass_name(stage->pass), "split", vpps_split_name(stage->split), "products", products,
                     "operations", operations);
}

/* Returns value v as JSON if it is kept, i.e. stored in memory for another stage (part of the cell's program); else
 * NULL. "pass": "forward" or "backward" if only stages of that pass use the memory, else null. */
static json_t *kept_value_json(const subject *s, uint32_t v) {
    const vpps_cell_value *x = &s->c->values[v];
    if (!x->kept) return NULL;
    const char *pass = !vpps_is_pass_record(x->record)    ? NULL
                       : x->record == VPPS_RECORD_FORWARD ? "forward"
                                                          : "backward";
    return json_pack("{so sI sI ss? sb}", "value", name_json(s, v), "at", (json_int_t)x->offset, "words",
                     (json_int_t)vpps_place_words(x), "pass", pass, "member", x->axis > 0);
}

static json_t *kept_json(const subject *s) {
    const uint32_t *words = s->c->kept_words;
    return json_pack("{sI sI sI sI sI so}", "words", (json_int_t)words[0], "bytes", 4 * (json_int_t)words[0],
                     "forward_bytes", 4 * (json_int_t)words[VPPS_RECORD_FORWARD], "backward_bytes",
                     4 * (json_int_t)words[VPPS_RECORD_BACKWARD], "member_bytes", 4 * (json_int_t)words[1], "values",
                     list_json(s, s->c->n_values, kept_value_json));
}

static json_t *copies_json(const vpps_layout_copies *x) {
    return json_pack("{sI sI sI sI}", "gathers", (json_int_t)x->gathers, "scatters", (json_int_t)x->scatters,
                     "broadcasts", (json_int_t)x->broadcasts, "bytes", 4 * (json_int_t)(x->gathered + x->scattered));
}

static json_t *layout_json(const subject *s) {
    vpps_cell_layout l;
    if (vpps_arrange_cell(s->c, &l) != VPPS_OK) return NULL;
    return json_pack("{s{so so} s{so so} sI}", "as_made", "forward", copies_json(&l.as_made.forward), "backward",
                     copies_json(&l.as_made.backward), "arranged", "forward", copies_json(&l.arranged.forward),
                     "backward", copies_json(&l.arranged.backward), "gathered_bytes",
                     4 * (json_int_t)vpps_copied_words(&l.arranged));
}

static json_t *gradient_json(const subject *s, uint32_t i) {
    const vpps_parameter_data *p = &s->model->params[vpps_outer_of(s->c, i).param];
    return json_pack("{ss so sI sI}", "parameter", p->name, "is", text_json(vpps_outer_text(s->model, s->c, i)), "rows",
                     (json_int_t)p->rows, "cols", (json_int_t)p->cols);
}

static json_t *cell_json(const subject *s, uint64_t vertices, uint64_t members) {
    const vpps_compiled_cell *c = s->c;
    return json_pack("{ss sI sI so so so so so so so}", "name", c->name, "vertices", (json_int_t)vertices, "members",
                     (json_int_t)members, "inputs", list_json(s, c->n_inputs, input_json), "lookups",
                     list_json(s, c->n_lookups, lookup_json), "outputs", list_json(s, c->n_outputs, output_json),
                     "stages", list_json(s, c->n_stages, stage_json), "kept", kept_json(s), "layout", layout_json(s),
                     "gradients", list_json(s, vpps_n_outers(c), gradient_json));
}

/* ---------------------------------------------------------------- the batch */

static vpps_status show(const session *x, const vpps_batch *b) {
    const settings *s = x->settings;
    const vpps_task_header *h = vpps_task_header_of(b->script);
    vpps_stats stats = {.size = sizeof stats};
    VPPS_TRY(vpps_handle_stats(x->handle, &stats));
    json_auto_t *cells = json_array();
    if (!s->json) {
        char names[24], vps[24], groups[24];
        printf("%s: %s for training, %s in %s\n", s->network->name, number_of(b->n_cells, "cells", names, sizeof names),
               number_of(h->n_vps, "VPs", vps, sizeof vps), number_of(h->n_groups, "groups", groups, sizeof groups));
        printf("products with matrices in %s (%s), all else in fp32\n", stats.precision, stats.precision_unit);
    }
    for (uint32_t i = 0; i < b->n_cells; i++) {
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
        VPPS_TRY(vpps_print_cell(cell.model, cell.c, stdout));
    }
    if (!s->json) return flush_stdout();
    return report_json_line(json_pack("{ss sI sI ss ss sO}", "model", s->network->name, "vps", (json_int_t)h->n_vps,
                                      "groups", (json_int_t)h->n_groups, "precision", stats.precision, "precision_unit",
                                      stats.precision_unit, "cells", cells),
                            stdout);
}

static vpps_status print_cells(session *x, vpps_node loss) {
    const vpps_batch *b;
    VPPS_TRY(vpps_handle_batch(x->handle, x->graph, loss, &b));
    return show(x, b);
}

static vpps_status print_script(session *x, vpps_node loss) {
    VPPS_TRY(vpps_disassemble(x->handle, x->graph, loss, stdout));
    return flush_stdout();
}

static int with_first_batch(settings *s, vpps_status (*print)(session *x, vpps_node loss)) {
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    vpps_node loss;
    const vpps_status status = open_first_batch(&x, s, &c, true, &loss);
    return exit_code(status == VPPS_OK ? print(&x, loss) : status);
}

int command_cell(settings *s) { return with_first_batch(s, print_cells); }
int command_script(settings *s) { return with_first_batch(s, print_script); }
