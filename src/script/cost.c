/* cost.c - counts the flops and bytes of tasks: one function for each name in the cost column of tasks.def. */
#include "script/cost.h"
#include "cell/flops.h"
#include "script/task.h"

typedef struct costing {
    const vpps_batch *b;
    const vpps_model *model;
    vpps_task_cost *sum;
} costing;

static void add_words(const costing *w, uint64_t words) { w->sum->bytes += 4 * words; }

/* The vertices over which a task runs, as a range of their numbers in the block. */
typedef struct span {
    vpps_block_view view;
    const vpps_compiled_cell *c;
    /* first: number of the first vertex in the block; n[0]: number of vertices; n[d]: number of members of their list input d - 1 */
    uint32_t first, n[VPPS_AXES];
} span;

static span span_of(const costing *w, const vpps_task *t) {
    const uint32_t first = t->operands[1], n = t->operands[2];
    const vpps_block *at = vpps_block_at(w->b->script, t->operands[0]);
    span p = {.c = w->b->cells[at->cell], .first = first, .n = {n}};
    vpps_view_block(w->b->script, at, p.c, &p.view);
    for (uint32_t d = 1; d <= p.c->n_lists; d++) p.n[d] = p.view.lists[d][first + n] - p.view.lists[d][first];
    return p;
}

static void add_flops(const costing *w, const span *p, const vpps_cell_flops *flops) {
    for (uint32_t axis = 0; axis < VPPS_AXES; axis++) {
        w->sum->product_flops += p->n[axis] * flops->products[axis];
        w->sum->other_flops += p->n[axis] * flops->other[axis];
    }
}

/* Adds the bytes of value v of all vertices (or list members), times the number of virtual processors that store a partial sum of it. */
static void add_value(const costing *w, const span *p, uint32_t v) {
    const vpps_cell_value *x = &p->c->values[v];
    const uint64_t items = x->kind == VPPS_VALUE_PARAMETER ? 1 : p->n[x->axis];
    add_words(w, items * vpps_value_words(x) * vpps_shares_of(p->c, x));
}

/* Returns whether argument i of the stage's operation number k is a value that no earlier argument in the stage is (`matrix`: is multiplied
 * by a matrix by which no earlier argument is). */
static bool first_use(const vpps_compiled_cell *c, const vpps_cell_stage *s, uint32_t k, uint32_t i, bool matrix) {
    const vpps_cell_arg *a = &c->args[c->values[c->order[s->first + k]].first_arg + i];
    for (uint32_t at = 0; at <= k; at++) {
        const vpps_cell_value *x = &c->values[c->order[s->first + at]];
        for (uint32_t j = 0; j < (at == k ? i : x->n_args); j++) {
            const vpps_cell_arg *before = &c->args[x->first_arg + j];
            if (matrix ? before->matrix == a->matrix : before->value == a->value) return false;
        }
    }
    return true;
}

static void add_operands(const costing *w, const span *p, uint32_t stage, uint32_t k) {
    const vpps_compiled_cell *c = p->c;
    const vpps_cell_stage *s = &c->stages[stage];
    const vpps_cell_value *x = &c->values[c->order[s->first + k]];
    const bool product = vpps_is_product(x);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const vpps_cell_arg *a = &c->args[x->first_arg + i];
        if (c->values[a->value].stage != stage && first_use(c, s, k, i, false)) add_value(w, p, a->value);
        if (product && a->matrix != VPPS_NO_PARAM && first_use(c, s, k, i, true))
            add_words(w, vpps_entry_elems(w->model, a->matrix));
    }
    if (vpps_bias_of(x) != VPPS_NO_PARAM) add_words(w, vpps_entry_elems(w->model, x->bias));
}

static void cost_STAGE(const costing *w, const vpps_task *t) {
    const span p = span_of(w, t);
    const vpps_cell_stage *s = &p.c->stages[t->stage];
    vpps_cell_flops flops = {{0}, {0}};
    for (uint32_t k = 0; k < s->n; k++) {
        const uint32_t v = p.c->order[s->first + k];
        const vpps_cell_value *x = &p.c->values[v];
        vpps_add_value_flops(w->model, p.c, v, &flops);
        add_operands(w, &p, t->stage, k);
        if (x->kind == VPPS_VALUE_DATA) add_value(w, &p, v);
        if (vpps_is_run(x, VPPS_I_MATRIX)) add_words(w, vpps_entry_elems(w->model, x->run.table));
        if (x->kind == VPPS_VALUE_GRADIENT) {
            const uint32_t *starts = p.view.gradient_starts[x->output] + p.first;
            add_words(w, (uint64_t)(starts[p.n[0]] - starts[0]) * vpps_value_words(x));
            add_words(w, vpps_count_pairs(&p.view, x->output, p.first, p.first + p.n[0]) * (1 + vpps_value_words(x)));
        }
        if (x->kept) add_value(w, &p, v);
        for (uint32_t j = 0; j < p.c->n_contributions; j++)
            if (p.c->contributions[j].value == v && !p.c->contributions[j].scaled) add_value(w, &p, v);
    }
    add_flops(w, &p, &flops);
}

static void cost_OUTER(const costing *w, const vpps_task *t) {
    const span p = span_of(w, t);
    vpps_cell_flops flops = {{0}, {0}};
    for (uint32_t i = 0; i < vpps_n_outers(p.c); i++) {
        const vpps_outer o = vpps_outer_of(p.c, i);
        vpps_add_outer_flops(w->model, p.c, i, &flops);
        add_words(w, vpps_entry_elems(w->model, o.param));
        bool seen[2] = {false, !o.x};
        for (uint32_t j = 0; j < i; j++) {
            const vpps_outer before = vpps_outer_of(p.c, j);
            seen[0] |= vpps_same_value(before.dy, o.dy) || vpps_same_value(before.x, o.dy);
            seen[1] |= vpps_same_value(before.dy, o.x) || vpps_same_value(before.x, o.x);
        }
        if (!seen[0]) add_value(w, &p, o.dy->value);
        if (!seen[1]) add_value(w, &p, o.x->value);
    }
    add_flops(w, &p, &flops);
}

static void cost_ENTRIES(const costing *w, const vpps_task *t) {
    const vpps_table *table = vpps_table_at(w->b->script, t->operands[0]);
    const vpps_entry_sums s = vpps_sums_at(w->b->script, t->operands[1]);
    add_words(w, ((uint64_t)s.n + s.starts[s.n]) * vpps_entry_elems(w->model, table->param));
}

/* Returns the number of parameter elements that have a gradient. */
static uint64_t gradient_elems(const costing *w) {
    const vpps_task_header *h = vpps_task_header_of(w->b->script);
    uint64_t elems = 0;
    for (uint32_t p = 0; p < w->model->n_params; p++) {
        bool has = false;
        for (uint32_t i = 0; i < h->n_blocks && !has; i++) {
            const vpps_block *block = vpps_block_at(w->b->script, i);
            const vpps_compiled_cell *c = w->b->cells[block->cell];
            for (uint32_t j = 0; j < vpps_n_outers(c) && block->n; j++) has |= vpps_outer_of(c, j).param == p;
        }
        if (has) elems += vpps_entry_elems(w->model, p);
    }
    for (uint32_t i = 0; i < h->n_tables; i++) {
        const vpps_table *t = vpps_table_at(w->b->script, i);
        elems += t->n * vpps_entry_elems(w->model, t->param);
    }
    return elems;
}

static void cost_NORM(const costing *w, const vpps_task *t) {
    (void)t;
    w->sum->other_flops += 2 * gradient_elems(w);
    add_words(w, gradient_elems(w));
}

/* Counts every optimizer as plain SGD: each weight with a gradient is read and written, and its gradient is read. */
static void cost_UPDATE(const costing *w, const vpps_task *t) {
    (void)t;
    w->sum->other_flops += 2 * gradient_elems(w);
    add_words(w, 3 * gradient_elems(w));
}

static void cost_LOSS(const costing *w, const vpps_task *t) {
    w->sum->other_flops += 2 * (uint64_t)t->operands[1];
    add_words(w, t->operands[1]);
}

static void cost_WORDS(const costing *w, const vpps_task *t) { add_words(w, t->operands[1]); }

static void cost_NOTHING(const costing *w, const vpps_task *t) { (void)w, (void)t; }

static void (*const costs[VPPS_TASK_COUNT])(const costing *w, const vpps_task *t) = {
#define TASK(id, operands, who, cost, text) cost_##cost,
#include "script/tasks.def"
#undef TASK
};

void vpps_add_task_cost(const vpps_batch *b, const vpps_model *model, const vpps_task *t, vpps_task_cost *sum) {
    const costing w = {b, model, sum};
    costs[t->kind](&w, t);
}

vpps_task_cost vpps_cost_of_batch(const vpps_batch *b, const vpps_model *model) {
    vpps_task_cost sum = {0};
    for (uint32_t group = 0; group < vpps_task_header_of(b->script)->n_groups; group++) {
        const vpps_task *end = vpps_end_of_tasks(b->script, group);
        for (const vpps_task *t = vpps_first_task(b->script, group); t < end; t++)
            if (!group || vpps_task_rows[t->kind].who == VPPS_BY_GROUP) vpps_add_task_cost(b, model, t, &sum);
    }
    return sum;
}
